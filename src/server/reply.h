/* Answering an exchange, each exactly once. */
#ifndef NC_REPLY_H
#define NC_REPLY_H

#include "base/error.h"
#include "server/http.h"

/* Takes over the value; NULL stands for memory that ran out, and answers 500. */
void nc_reply_json(struct nc_exchange *exchange, unsigned int status, json_t *value);

/* Copies the bytes. type is static. */
void nc_reply_bytes(struct nc_exchange *exchange, unsigned int status, const char *type,
	const void *data, size_t size);

/* JSON: a text that is shared, between two short ones that are copied. NULL answers 500. */
struct nc_sheet;
void nc_reply_sheet(struct nc_exchange *exchange, unsigned int status, const char *before,
	struct nc_sheet *sheet, const char *behind);

void nc_reply_empty(struct nc_exchange *exchange, unsigned int status);

/*
 * A problem document (RFC 9457). code is one word for programs; field what it is about, or NULL;
 * remedy what to do, or NULL.
 */
void nc_problem(struct nc_exchange *exchange, unsigned int status, const char *code,
	const char *field, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* The same with members of its own, taken over; its title is that of the status. */
void nc_problem_with(struct nc_exchange *exchange, unsigned int status, const char *code,
	const char *field, const char *remedy, const char *detail, json_t *more);

/* The same from an error: not found is 404, no room 429, all that is ours 500. */
void nc_problem_err(struct nc_exchange *exchange, const struct nacre_err *err);

/*
 * A reply that is read from source as it grows; unplug is called once, in any case, when nobody
 * reads it any more.
 */
void nc_reply_stream(struct nc_exchange *exchange, const char *type, void *source,
	ssize_t (*pull)(void *source, char *data, size_t size), void (*unplug)(void *source));

/*
 * The connection becomes another (101): upgraded is called with it, which stays libmicrohttpd's
 * until nc_exchange_hang_up, and unplug as above.
 */
void nc_reply_upgrade(struct nc_exchange *exchange, const char *protocol, void *source,
	void (*upgraded)(void *source, int fd, const char *data, size_t size),
	void (*unplug)(void *source));

/* After one of these: one more header. Values are ours, or were looked at. */
void nc_reply_header(struct nc_exchange *exchange, const char *name, const char *value);
void nc_reply_retry(struct nc_exchange *exchange, unsigned int seconds);

/* A whole reply as it goes over the wire, for connections that libmicrohttpd does not answer. */
void nc_reply_bare(unsigned int status, struct nc_buf *out);

/* Of the driver's, for nc_reply_stream and nc_reply_upgrade. */
struct MHD_UpgradeResponseHandle;
ssize_t nc_exchange_pull(void *cls, uint64_t at, char *data, size_t size);
void nc_exchange_upgrade(void *cls, struct MHD_Connection *connection, void *con_cls,
	const char *data, size_t size, int fd, struct MHD_UpgradeResponseHandle *handle);

#endif
