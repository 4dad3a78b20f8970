/*
 * Values of secrets in what comes back from a host that was sent them: found as they are, in
 * base64, in hexadecimal digits, with the escapes of URLs and of JSON; and replaced by as many '*'.
 *
 * Theory of operation: a text comes in pieces, of which some bytes are not text (the framing of a
 * chunked body), so that what is found may lie across pieces and across framing. Each spelling of
 * each value is a row of symbols, which is searched for as Knuth, Morris and Pratt do it. Bytes
 * with which something may have begun are not settled: they are held back until it is known. Since
 * what is found is replaced in place, lengths stay as the host told them.
 */
#ifndef NC_MASK_H
#define NC_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/http.h"

/* Of text that is held back, with its framing: what a side can hold. */
#define NC_MASK_WINDOW NC_EGRESS_HEAD_MAX

struct nc_mask;

/* Whether something that comes from this host is to be masked. */
bool nc_mask_is_wanted(const struct nc_secrets *secrets, const struct nc_host *host);

/* For all values that this host may be sent. NULL: no memory. */
struct nc_mask *nc_mask_new(struct nc_secrets *secrets, const struct nc_host *host);

/* Accepts NULL. */
void nc_mask_free(struct nc_mask *mask);

/* Another text begins; what was held back is forgotten. */
void nc_mask_begin(struct nc_mask *mask);

/*
 * Looks at the next size bytes; of those that came before and are held back, all lie directly
 * before data. is_text: they are none of the framing.
 */
void nc_mask_look(struct nc_mask *mask, char *data, size_t size, bool is_text);

/* How many of the last bytes are held back. */
size_t nc_mask_held(const struct nc_mask *mask);

/* More than 0 if something was found so far, in any text. */
uint64_t nc_mask_found(const struct nc_mask *mask);

/* A whole text. */
void nc_mask_text(struct nc_mask *mask, char *data, size_t size);

#endif
