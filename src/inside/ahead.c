/*
 * Node that was started before its program was known: an addon that waits, in the box and locked in
 * like any payload, for the order, follows it, and tells the script that loaded it (ahead.js) what
 * the program is to find. Of Node-API it uses three functions, which every version has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "inside/child.h"
#include "inside/lend.h"
#include "inside/shade.h"

#define SAID_MAX (1U << 20)

typedef struct environment *napi_env;
typedef struct value *napi_value;
__attribute__((weak)) extern int napi_create_string_utf8(
	napi_env env, const char *text, size_t size, napi_value *ret_value);
__attribute__((weak)) extern int napi_throw_error(napi_env env, const char *code, const char *text);

__attribute__((visibility("default"))) napi_value napi_register_module_v1(
	napi_env env, napi_value exports);

static void add_words(struct nc_buf *buf, char *const *words)
{
	for (; *words; words++)
		nc_buf_add(buf, *words, strlen(*words) + 1);
}

static size_t count_words(char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* Loads in a moment, returns when there is a program to run. */
napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	static struct nc_cgroup_parent parent;
	static struct nc_cgroup group = {.parent = &parent, .clone_fd = -EBADF};
	struct nc_payload payload = {.tier = NC_TIER_CONTAINER,
		.ahead = true,
		.box_fd = NC_AHEAD_FD,
		.built_fd = -EBADF};
	struct nc_held held = {.channel_fd = NC_AHEAD_FD};
	nc_buf_cleanup struct nc_buf words = NC_BUF(SAID_MAX);
	const char *known = getenv(NC_AHEAD_VARIABLE);
	struct nc_child_program program;
	napi_value text = exports;
	char ready[] = NC_AHEAD_READY;
	int listens = 0, shade_fd;

	if (!known || sscanf(known, "%9u,%9d,%1d", &parent.can, &held.landlock, &listens) != 3) {
		(void)napi_throw_error(env, NULL, "this is not for programs");
		return exports;
	}
	held.listens = listens != 0;
	payload.group = parent.can ? &group : NULL;
	shade_fd = nc_shade_wanted(parent.can) ? nc_shade_make() : -EBADF;
	/* a domain of Landlock more, which the shade is not in: the program can do nothing to it */
	if ((shade_fd < 0 && shade_fd != -EBADF) || (shade_fd >= 0 && nc_fence_scopes() < 0) ||
		nc_child_send(NC_AHEAD_FD, ready, 1, &shade_fd, shade_fd >= 0) < 0)
		_exit(125);
	nc_child_follow(&payload, &held, &program);
	if (shade_fd >= 0)
		nc_shade_wait();
	(void)nc_fd_close(shade_fd);
	if (nc_fd_write_all(NC_AHEAD_FD, NC_LAST_WORD, 1) < 0)
		_exit(125); /* nobody is there any more */
	(void)close(NC_AHEAD_FD);
	nc_buf_addf(&words, "%zu%c", count_words(program.argv), '\0');
	add_words(&words, program.argv);
	add_words(&words, program.env);
	if (words.error < 0 || napi_create_string_utf8(env, words.data, words.size, &text) != 0)
		_exit(125);
	return text;
}
