/* Paths and hosts in texts of the program. */
#ifndef NC_LITERAL_H
#define NC_LITERAL_H

#include "policy/scan.h"

enum nc_access { NC_ACCESS_MENTION, NC_ACCESS_READ, NC_ACCESS_WRITE, NC_ACCESS_DELETE };

/* Looks at a text: a path, a URL, an address, a device. What it is not is no finding. */
void nc_literal_judge(
	struct nc_scan *scan, uint32_t node, const struct nc_datum *text, enum nc_access access);

/* The text names a host, with or without a URL around it. */
void nc_literal_host(struct nc_scan *scan, uint32_t node, const struct nc_datum *text);

/* A long text that decodes to something that may be code is queued for analysis. */
void nc_literal_blob(struct nc_scan *scan, uint32_t node, const struct nc_datum *text);

/* Whether a path is one whose loss is the loss of a system or of all of a user's files. */
bool nc_literal_is_precious(const char *path, size_t size);

#endif
