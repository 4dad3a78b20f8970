/* A daemon somewhere (nacre serve), for verbs that can work with one: --server URL. */
#ifndef NC_REMOTE_H
#define NC_REMOTE_H

#include <jansson.h>

#include "base/error.h"
#include "box/hub.h"

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
 * Asks once: a method and a path, with a body or NULL. *ret_reply is the caller's, and NULL if
 * there is none; or -errno with what the daemon said, -ENOENT for what is not there.
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

#endif
