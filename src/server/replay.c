/* Idempotency-Key. */
#include "server/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/owner.h"
#include "server/reply.h"

#define KEPT_NS (24 * 3600 * NC_NS_PER_S)

struct nc_replay {
	struct nc_replays *all;
	struct nc_replay *next; /* younger */
	char tenant[NC_REQUEST_NAME_MAX + 1];
	char *key;
	unsigned char request[NC_SHA256_SIZE];
	uint64_t since_ns;
	bool open; /* the first is not answered yet */
	unsigned int status;
	const char *type;
	char *body; /* NULL: it was too large to be kept */
	size_t size;
	char location[128]; /* "": it has none */
};

struct nc_replays {
	struct nc_replay *first, **end;
	size_t count, size;
};

struct nc_replays *nc_replays_new(void)
{
	struct nc_replays *replays = calloc(1, sizeof(*replays));

	if (replays)
		replays->end = &replays->first;
	return replays;
}

static void drop(struct nc_replays *replays, struct nc_replay **place)
{
	struct nc_replay *replay = *place;

	*place = replay->next;
	if (replays->end == &replay->next)
		replays->end = place;
	replays->count--;
	replays->size -= replay->size;
	free(replay->key);
	free(replay->body);
	free(replay);
}

void nc_replays_free(struct nc_replays *replays)
{
	while (replays && replays->first)
		drop(replays, &replays->first);
	free(replays);
}

/* Forgets what is too old, and the oldest of what is too much; never what is open. */
static void make_room(struct nc_replays *replays)
{
	uint64_t now = nc_clock_ns();
	struct nc_replay **at = &replays->first;

	while (*at) {
		bool much = replays->count >= NC_REPLAYS_MAX || replays->size > NC_REPLAYS_SIZE_MAX;

		if (!(*at)->open && (much || now - (*at)->since_ns > KEPT_NS))
			drop(replays, at);
		else
			at = &(*at)->next;
	}
}

/* Method, path and body: what makes two requests the same. */
static void digest(struct nc_exchange *exchange, unsigned char out[static NC_SHA256_SIZE])
{
	unsigned char parts[2 * NC_SHA256_SIZE];
	char line[NC_HTTP_TARGET_MAX + 16];

	(void)snprintf(
		line, sizeof(line), "%s %s?%s", exchange->method, exchange->path, exchange->query);
	nc_sha256(line, strlen(line), parts);
	nc_sha256_end(&exchange->hash, parts + NC_SHA256_SIZE);
	nc_sha256(parts, sizeof(parts), out);
}

static struct nc_replay *find(const struct nc_replays *replays, const char *tenant, const char *key)
{
	struct nc_replay *replay = replays->first;

	while (replay && (!nc_streq(replay->key, key) ||
				 !nc_owner_sees(NC_STORE_IDEMPOTENCY, replay->tenant, tenant)))
		replay = replay->next;
	return replay;
}

static void answer_again(
	const struct nc_replay *replay, struct nc_exchange *exchange, const unsigned char *request)
{
	if (!nc_sha256_equal(replay->request, request)) {
		nc_problem(exchange, 422, "idempotency_mismatch", "Idempotency-Key",
			"Take a new key for a new request",
			"This key came with another request before");
	} else if (replay->open) {
		nc_problem(exchange, 409, "idempotency_in_progress", "Idempotency-Key",
			"Try again later", "The first request with this key is not answered yet");
		nc_reply_retry(exchange, 1);
	} else if (!replay->body) {
		nc_problem(exchange, 410, "idempotency_gone", "Idempotency-Key",
			"Look at /v1/history", "The reply was too large to be kept");
	} else {
		nc_reply_bytes(exchange, replay->status, replay->type, replay->body, replay->size);
		nc_reply_header(exchange, "Idempotency-Replayed", "true");
		if (replay->location[0])
			nc_reply_header(exchange, "Location", replay->location);
	}
}

static bool is_key(const char *key)
{
	size_t size = strlen(key);

	for (size_t i = 0; i < size; i++)
		if (key[i] <= ' ' || key[i] >= 0x7f)
			return false;
	return size > 0 && size <= NC_REPLAY_KEY_MAX;
}

void nc_replay_expect(struct nc_exchange *exchange)
{
	exchange->hashes = nc_exchange_header(exchange, "Idempotency-Key");
	if (exchange->hashes)
		nc_sha256_begin(&exchange->hash);
}

/* A tenant that has its share gives up its own oldest, not those of others. */
static void keep_to_share(struct nc_replays *replays, const char *tenant)
{
	struct nc_replay **oldest = NULL;
	size_t own = 0, bytes = 0;

	for (struct nc_replay **at = &replays->first; *at; at = &(*at)->next) {
		if (!nc_streq((*at)->tenant, tenant))
			continue;
		own++;
		bytes += (*at)->size;
		if (!oldest && !(*at)->open)
			oldest = at;
	}
	if (oldest && (!nc_share_allows(own, replays->count, NC_REPLAYS_MAX) ||
			      !nc_share_allows(bytes, replays->size, NC_REPLAYS_SIZE_MAX)))
		drop(replays, oldest);
}

bool nc_replay_begin(struct nc_replays *replays, struct nc_exchange *exchange)
{
	const char *key = nc_exchange_header(exchange, "Idempotency-Key");
	unsigned char request[NC_SHA256_SIZE];
	struct nc_replay *replay;

	if (!key)
		return true;
	if (!is_key(key)) {
		nc_problem(exchange, 400, "bad_idempotency_key", "Idempotency-Key",
			"Send 1 to 255 printable characters", "It is no key");
		return false;
	}
	digest(exchange, request);
	make_room(replays);
	replay = find(replays, exchange->caller.tenant, key);
	if (replay) {
		answer_again(replay, exchange, request);
		return false;
	}
	keep_to_share(replays, exchange->caller.tenant);
	replay = calloc(1, sizeof(*replay));
	if (!replay || replays->count >= NC_REPLAYS_MAX || !(replay->key = strdup(key))) {
		free(replay);
		nc_problem(exchange, 503, "busy", "Idempotency-Key", "Try again later",
			"Too many requests with a key are open");
		nc_reply_retry(exchange, 1);
		return false;
	}
	replay->all = replays;
	replay->open = true;
	replay->since_ns = nc_clock_ns();
	memcpy(replay->request, request, sizeof(request));
	(void)snprintf(replay->tenant, sizeof(replay->tenant), "%s", exchange->caller.tenant);
	*replays->end = replay;
	replays->end = &replay->next;
	replays->count++;
	exchange->replay = replay;
	return true;
}

void nc_replay_keep(struct nc_exchange *exchange, unsigned int status, const char *type,
	const void *data, size_t size)
{
	struct nc_replay *replay = exchange->replay;

	/* what was nobody's fault or passes by itself may be tried again */
	if (status >= 500 || status == 499 || status == 429 || status == 408 || exchange->is_gone)
		return;
	replay->open = false;
	replay->status = status;
	replay->type = type;
	if (size <= NC_REPLAY_SIZE_MAX)
		replay->body = malloc(size + 1);
	if (!replay->body)
		return;
	memcpy(replay->body, data, size);
	replay->size = size;
	replay->all->size += size;
}

void nc_replay_locate(struct nc_exchange *exchange, const char *location)
{
	struct nc_replay *replay = exchange->replay;

	(void)snprintf(replay->location, sizeof(replay->location), "%s", location);
}

void nc_replay_end(struct nc_exchange *exchange)
{
	struct nc_replay *replay = exchange->replay;
	struct nc_replay **place;

	exchange->replay = NULL;
	if (!replay || !replay->open)
		return;
	place = &replay->all->first;
	while (*place != replay)
		place = &(*place)->next;
	drop(replay->all, place);
}
