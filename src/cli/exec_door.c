/* The way out of a box of nacre exec. */
#include "cli/exec_door.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/outlet.h"
#include "config/host.h"
#include "egress/client.h"
#include "engine/denials.h"

/* It only reads some files before it greets back. */
#define WELCOME_MS 10000
/* How long the last word of a door that is shut is waited for. */
#define SHUT_NS (2 * NC_NS_PER_S)
#define REFUSED_MAX 32U

/* A host that was refused, and why. */
struct refused {
	enum nc_reason reason;
	uint64_t count;
	char object[NC_HOST_TEXT_MAX + 8];
};

static struct {
	int fd; /* of nacre-egress, until it is greeted */
	const struct nc_words *allow;
	struct nc_egress_client client;
	uint64_t box;
	bool is_open, is_shut;
	struct refused refused[REFUSED_MAX];
	size_t n_refused;
} door = {.fd = -EBADF, .client = {.fd = -EBADF}};

static void say(const char *text)
{
	nc_say(stderr, "nacre exec: %s\n", text);
}

static bool has_variable(const struct nc_words *env, const char *word)
{
	size_t size = strcspn(word, "=") + 1;

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->words[i], word, size) == 0)
			return true;
	return false;
}

int nc_exec_door_start(struct nc_order_args *args, struct nacre_err *err)
{
	if (args->tier && nc_streq(args->tier, "process"))
		return nc_err_set(
			err, -EINVAL, "Option '--allow': a network needs a container box");
	for (size_t i = 0; i < args->allow.count; i++) {
		struct nc_host_pattern pattern;
		char quoted[NC_TEXT_QUOTED_MAX];

		if (nc_host_parse_pattern(args->allow.words[i], &pattern) < 0)
			return nc_err_set(err, -EINVAL,
				"Option '--allow': found %s, expected a host such as example.org, "
				"*.example.org:8443 or 192.0.2.1",
				nc_text_quote(quoted, args->allow.words[i]));
	}
	door.allow = &args->allow;
	door.fd = nc_outlet_start(say);
	if (door.fd < 0)
		return nc_err_set(
			err, -EOPNOTSUPP, "Option '--allow': there is no way out of a box here");
	for (const char *const *word = nc_egress_variables(); *word; word++)
		if (args->env.count < NC_WORDS_MAX && !has_variable(&args->env, *word))
			args->env.words[args->env.count++] = *word;
	return 0;
}

static void on_decision(void *user, const struct nc_egress_decision *decision)
{
	struct refused next = {.reason = decision->reason, .count = 1};

	(void)user;
	if (decision->reason == NC_REASON_ALLOWED)
		return;
	(void)snprintf(next.object, sizeof(next.object), decision->port ? "%s:%u" : "%s",
		decision->host, decision->port);
	for (size_t i = 0; i < door.n_refused; i++) {
		if (door.refused[i].reason == next.reason &&
			nc_streq(door.refused[i].object, next.object)) {
			door.refused[i].count++;
			return;
		}
	}
	if (door.n_refused < REFUSED_MAX)
		door.refused[door.n_refused++] = next;
}

static void on_meter(void *user, const struct nc_egress_meter *meter)
{
	(void)user;
	door.is_shut = meter->last;
}

static int on_readable(void *context)
{
	int r;

	(void)context;
	do
		r = nc_egress_receive(&door.client);
	while (r > 0);
	return r; /* if it has died the box has no network any more, and goes on */
}

static int on_opened(void *context, int door_fd)
{
	static struct nc_egress_rule rules[NC_WORDS_MAX];
	struct nc_egress_terms terms = {.rules = rules, .n_rules = door.allow->count};
	struct nacre_err err = {0};
	int r;

	(void)context;
	for (size_t i = 0; i < terms.n_rules; i++)
		rules[i] = (struct nc_egress_rule){.host = door.allow->words[i]};
	r = nc_egress_open(&door.client, door.box, &terms, door_fd, NULL, 0, &err);
	if (r < 0)
		say(err.message);
	door.is_open = r == 0;
	return r;
}

int nc_exec_door_prepare(struct nc_run *run, struct nacre_err *err)
{
	static const struct nc_egress_events events = {.decision = on_decision, .meter = on_meter};
	struct pollfd event = {.events = POLLIN};
	int r = nc_egress_greet(&door.client, take_fd(door.fd), &events, NULL, err);

	event.fd = door.client.fd;
	while (r == 0 && !door.client.welcome) {
		r = poll(&event, 1, WELCOME_MS) == 1 ? nc_egress_receive(&door.client) : -ETIMEDOUT;
		r = r < 0 ? nc_err_errno(err, r, "Hear from nacre-egress") : 0;
	}
	if (r < 0)
		return r;
	run->exec.door = true;
	door.box = run->exec.id;
	run->door = (struct nc_run_door){
		.opened = on_opened, .fd = door.client.fd, .readable = on_readable};
	return 0;
}

/* What was decided last may still be on its way. */
static void shut(void)
{
	uint64_t deadline_ns = nc_clock_ns() + SHUT_NS;
	struct pollfd event = {.fd = door.client.fd, .events = POLLIN};

	if (!door.is_open || nc_egress_shut(&door.client, door.box) < 0)
		return;
	while (!door.is_shut && poll(&event, 1, nc_clock_left_ms(deadline_ns)) == 1 &&
		on_readable(NULL) >= 0)
		;
	door.is_open = false;
}

json_t *nc_exec_door_denials(void)
{
	json_t *list = door.allow ? json_array() : NULL;

	if (!list)
		return NULL;
	shut();
	for (size_t i = 0; i < door.n_refused; i++) {
		struct nc_denial denial = {.layer = "egress",
			.rule = "network.allow",
			.object = door.refused[i].object,
			.count = door.refused[i].count,
			.message = nc_reason_text(door.refused[i].reason),
			.allow_with = nc_reason_remedy(door.refused[i].reason),
			.instead = "Pass the data in as a file (--bind), or on standard input"};

		(void)snprintf(
			denial.id, sizeof(denial.id), "%s", nc_reason_id(door.refused[i].reason));
		(void)nc_denials_add(list, &denial); /* or it goes unsaid */
	}
	return list;
}
