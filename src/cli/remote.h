/* A daemon somewhere (nacre serve), for verbs that can work with one: --server URL. */
#ifndef NC_REMOTE_H
#define NC_REMOTE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "tier/hub.h"

struct nc_dial;

/* Who is told of what happens meanwhile; each may be NULL. */
struct nc_remote_listener {
	void (*printed)(void *context, enum nc_stream stream, const char *data, size_t size);
	void (*progress)(void *context, const char *text);
};

/*
 * Executes there and waits. url is http://HOST[:PORT] or https://...; the key is $NACRE_KEY. A
 * connection that is lost is made again, and the output goes on where it was. Returns 0 and the
 * reply, the caller's; or -errno with what the daemon said.
 */
int nc_remote_execute(const char *url, const json_t *request,
	const struct nc_remote_listener *listener, json_t **ret_reply, struct nacre_err *err);

/*
 * One question, with a body or NULL, and its reply (may be NULL) if that is JSON, the caller's.
 * -errno with what the daemon said; -ENOENT: there is no such file.
 */
int nc_remote_ask(const char *url, const char *method, const char *path, const json_t *body,
	json_t **ret_reply, struct nacre_err *err);

/* Follows the events of a command at that path to the end, which is the caller's; as above. */
int nc_remote_follow(const char *url, const char *path, const struct nc_remote_listener *listener,
	json_t **ret_end, struct nacre_err *err);

/* Whether it is of the form of ids, with nothing in it that a path could misread. */
bool nc_remote_is_id(const char *text);

/* What a stranger's machine answers is not read as root: drops all rights, for good. */
int nc_remote_drop(struct nacre_err *err);

/* Connects and sends the head of a request, with the key; headers are whole lines. */
int nc_remote_begin(struct nc_dial *remote, const char *method, const char *path,
	const char *version, const char *headers, struct nacre_err *err);

/* What a daemon says that refuses; first is the first line of its reply. Returns err->code. */
int nc_remote_refused(struct nc_dial *remote, const char *first, struct nacre_err *err);

/* Whether a word can be the id of a sandbox; adds text as a part of a query. */
bool nc_remote_is_sandbox(const char *text);
void nc_remote_escape(struct nc_buf *out, const char *text);

#endif
