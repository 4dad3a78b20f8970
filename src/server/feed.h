/*
 * Numbered events (server-sent events), of which the last NC_FEED_MAX bytes are kept: who lost his
 * connection goes on behind the last one that he saw, and is told if some are gone.
 */
#ifndef NC_FEED_H
#define NC_FEED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_exchange;
struct nc_feed_event;
struct nc_feed_watcher;

struct nc_feed {
	struct nc_feed_event *events, **end;
	size_t size;
	uint64_t n_events;
	struct nc_feed_watcher *watchers; /* NULL: nobody listens */
	uint64_t alone_ns; /* since when nobody does; 0: nobody ever did, or somebody */
	bool ended;	   /* nothing follows */
	size_t *kept;	   /* counts the bytes of several */
};

/* It must not move. */
void nc_feed_init(struct nc_feed *feed, size_t *kept);

/* Whoever listens is cut off. */
void nc_feed_done(struct nc_feed *feed);

/* Takes over the value. Without memory an event is missing, which its number shows. */
void nc_feed_tell(struct nc_feed *feed, const char *name, json_t *value);

/* The same of a text that is shared; NULL: no memory. */
struct nc_sheet;
void nc_feed_sheet(struct nc_feed *feed, const char *name, struct nc_sheet *sheet);

/* What a program printed: as text if it is some, else in base64. */
void nc_feed_output(struct nc_feed *feed, const char *stream, const char *data, size_t size);

/* Lets those who listen see that it has ended. */
void nc_feed_wake(struct nc_feed *feed);

/* Answers with the events behind number last. */
void nc_feed_watch(struct nc_feed *feed, struct nc_exchange *exchange, uint64_t last);

/* The number that the client saw last. false: it was answered. */
bool nc_feed_position(struct nc_exchange *exchange, uint64_t *ret_last);

#endif
