/* Numbered events that are told to whoever listens, and to who comes back. */
#include "server/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "server/http.h"
#include "server/reply.h"
#include "server/sheet.h"

struct nc_feed_event {
	struct nc_feed_event *next;
	unsigned int users; /* the feed, and who is in the middle of it */
	uint64_t number;
	size_t size;		/* of all of it */
	struct nc_sheet *sheet; /* between what is in the text and its end; or NULL */
	char text[];
};

/* An exchange that is told of events. */
struct nc_feed_watcher {
	struct nc_feed_watcher *next;
	struct nc_feed *feed; /* NULL: it is gone */
	struct nc_exchange *exchange;
	uint64_t seen;		    /* the number of the last event that was sent whole */
	struct nc_feed_event *last; /* that is being sent or was, kept for that; or NULL */
	size_t at;		    /* bytes of it that were sent; 0: all, or none */
	char gap[96];		    /* what is sent before: some are missing */
	size_t gap_at;
};

static void event_unref(struct nc_feed_event *event)
{
	if (!event || --event->users > 0)
		return;
	nc_sheet_unref(event->sheet);
	free(event);
}

static void drop_event(struct nc_feed *feed)
{
	struct nc_feed_event *event = feed->events;

	feed->events = event->next;
	if (!feed->events)
		feed->end = &feed->events;
	feed->size -= event->size;
	*feed->kept -= event->size;
	event_unref(event);
}

void nc_feed_wake(struct nc_feed *feed)
{
	for (struct nc_feed_watcher *watcher = feed->watchers; watcher; watcher = watcher->next)
		nc_exchange_wake(watcher->exchange);
}

#define EVENT_END "\n\n"

/* The sheet is referred to; data is copied. */
static void add_event(struct nc_feed *feed, const char *name, const char *data, size_t size,
	struct nc_sheet *sheet)
{
	char head[96];
	const size_t head_size = (size_t)snprintf(
		head, sizeof(head), "id: %" PRIu64 "\nevent: %s\ndata: ", feed->n_events, name);
	const size_t own_size = head_size + size;
	struct nc_feed_event *event = malloc(sizeof(*event) + own_size);

	if (!event)
		return;
	*event = (struct nc_feed_event){.users = 1,
		.number = feed->n_events,
		.size = own_size + (sheet ? sheet->text.size : 0) + strlen(EVENT_END),
		.sheet = sheet ? nc_sheet_ref(sheet) : NULL};
	memcpy(event->text, head, head_size);
	memcpy(event->text + head_size, data, size);
	*feed->end = event;
	feed->end = &event->next;
	feed->size += event->size;
	*feed->kept += event->size;
	while (feed->events->next && feed->size > NC_FEED_MAX)
		drop_event(feed);
	nc_feed_wake(feed);
}

void nc_feed_tell(struct nc_feed *feed, const char *name, json_t *value)
{
	cleanup_free char *data = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	feed->n_events++;
	if (data)
		add_event(feed, name, data, strlen(data), NULL);
}

void nc_feed_sheet(struct nc_feed *feed, const char *name, struct nc_sheet *sheet)
{
	feed->n_events++;
	if (sheet)
		add_event(feed, name, "", 0, sheet);
}

/* What it is to send next; NULL: nothing yet. */
static struct nc_feed_event *next_event(struct nc_feed_watcher *watcher)
{
	struct nc_feed_event *event = watcher->feed->events, *last = watcher->last;

	if (watcher->at > 0)
		return last;
	/* what is still in the list leads on; the search would be long for who is nearly at its end
	 */
	if (event && last && last->number >= event->number && last->number == watcher->seen)
		event = last->next;
	while (event && event->number <= watcher->seen)
		event = event->next;
	if (!event || event->number == watcher->seen + 1)
		return event;
	(void)snprintf(watcher->gap, sizeof(watcher->gap),
		"event: gap\ndata: {\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}\n\n",
		watcher->seen + 1, event->number - 1);
	watcher->gap_at = 0;
	watcher->seen = event->number - 1;
	return event;
}

static size_t copy(char *data, size_t size, const char *text, size_t text_size)
{
	size_t n = text_size < size ? text_size : size;

	memcpy(data, text, n);
	return n;
}

/* Copies what is behind the first `at` bytes of an event, up to the end of one of its parts. */
static size_t copy_event(char *data, size_t size, const struct nc_feed_event *event, size_t at)
{
	const size_t middle = event->sheet ? event->sheet->text.size : 0;
	const size_t own = event->size - middle - strlen(EVENT_END);

	if (at < own)
		return copy(data, size, event->text + at, own - at);
	if (at < own + middle)
		return copy(data, size, event->sheet->text.data + (at - own), own + middle - at);
	return copy(data, size, &EVENT_END[at - own - middle], event->size - at);
}

static ssize_t pull_events(void *source, char *data, size_t size)
{
	struct nc_feed_watcher *watcher = source;
	size_t filled = 0;

	while (watcher->feed && filled < size) {
		struct nc_feed_event *event = next_event(watcher);
		size_t n, gap;

		gap = strlen(watcher->gap);
		if (watcher->gap_at < gap) {
			n = copy(data + filled, size - filled, watcher->gap + watcher->gap_at,
				gap - watcher->gap_at);
			watcher->gap_at += n;
			filled += n;
			continue;
		}
		watcher->gap[0] = '\0';
		watcher->gap_at = 0;
		if (!event)
			break;
		if (watcher->last != event) {
			event_unref(watcher->last);
			watcher->last = event;
			event->users++;
		}
		n = copy_event(data + filled, size - filled, event, watcher->at);
		watcher->at += n;
		filled += n;
		if (watcher->at == event->size) {
			watcher->seen = event->number;
			watcher->at = 0;
		}
	}
	if (filled > 0)
		return (ssize_t)filled;
	return watcher->feed && (!watcher->feed->ended || watcher->seen < watcher->feed->n_events)
		       ? 0
		       : -1;
}

static void unplug_events(void *source)
{
	struct nc_feed_watcher *watcher = source;
	struct nc_feed *feed = watcher->feed;
	struct nc_feed_watcher **place = feed ? &feed->watchers : NULL;

	while (place && *place && *place != watcher)
		place = &(*place)->next;
	if (place && *place)
		*place = watcher->next;
	if (feed && !feed->watchers)
		feed->alone_ns = nc_clock_ns();
	event_unref(watcher->last);
	free(watcher);
}

void nc_feed_watch(struct nc_feed *feed, struct nc_exchange *exchange, uint64_t last)
{
	struct nc_feed_watcher *watcher = calloc(1, sizeof(*watcher));

	if (!watcher) {
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	watcher->feed = feed;
	watcher->exchange = exchange;
	watcher->seen = last;
	watcher->next = feed->watchers;
	feed->watchers = watcher;
	feed->alone_ns = 0;
	nc_reply_stream(exchange, "text/event-stream", watcher, pull_events, unplug_events);
}

void nc_feed_init(struct nc_feed *feed, size_t *kept)
{
	*feed = (struct nc_feed){.end = &feed->events, .kept = kept};
}

void nc_feed_done(struct nc_feed *feed)
{
	while (feed->events)
		drop_event(feed);
	for (struct nc_feed_watcher *watcher = feed->watchers; watcher; watcher = watcher->next) {
		watcher->feed = NULL;
		nc_exchange_wake(watcher->exchange);
	}
	feed->watchers = NULL;
}

void nc_feed_output(struct nc_feed *feed, const char *stream, const char *data, size_t size)
{
	cleanup_free char *encoded = NULL;
	bool plain = true;

	for (size_t i = 0, n; plain && i < size; i += n) {
		n = data[i] ? nc_text_utf8(data + i, size - i) : 0;
		plain = n > 0;
	}
	if (!plain && nc_base64_encode(data, size, &encoded) < 0)
		return;
	nc_feed_tell(feed, "output",
		json_pack("{s:s, s:s%}", "stream", stream, plain ? "text" : "base64",
			plain ? data : encoded, plain ? size : strlen(encoded)));
}

bool nc_feed_position(struct nc_exchange *exchange, uint64_t *ret_last)
{
	const char *last = nc_exchange_header(exchange, "Last-Event-ID");

	*ret_last = 0;
	if (!last || nc_parse_u64(last, 0, INT64_MAX, ret_last) == 0)
		return true;
	nc_problem(exchange, 400, "bad_event", "Last-Event-ID", NULL,
		"Expected the number of an event");
	return false;
}
