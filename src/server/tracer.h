/*
 * Traces: what a request spent its time on, told as OTLP in JSON to whoever collects it
 * (server/exporter.h). The caller's traceparent is taken over, so that our spans stand below his.
 *
 *	POST /v1/execute	the request, from its first line to the end of its reply
 *	  execution		from being asked for to being recorded
 *	    queue, prepare, run, collect
 *
 * Spans are gathered and handed over once a second. Nothing waits for the collector: what nobody
 * takes is dropped, and counted (nacre_trace_spans_dropped_total).
 */
#ifndef NC_TRACER_H
#define NC_TRACER_H

#include <jansson.h>

#include "server/http.h"
#include "server/metrics.h"

struct nc_tracer;

/* fd: nc_exporter_start(); -EBADF: nothing is traced. NULL: no memory. */
struct nc_tracer *nc_tracer_new(int fd, struct nc_metrics *metrics);

/* The next exporter, after one that died; the socket stays the caller's. */
void nc_tracer_meet(struct nc_tracer *tracer, int fd);

/* Hands over what is left. Accepts NULL. */
void nc_tracer_free(struct nc_tracer *tracer);

/*
 * Takes the caller's trace over from its header, and decides whether this is traced: as the caller
 * says, else so many of a thousand. exchange->span is "" if not.
 */
void nc_tracer_take(struct nc_tracer *tracer, struct nc_exchange *exchange, uint64_t sample_milli);

/* The request is over. */
void nc_tracer_request(struct nc_tracer *tracer, const struct nc_exchange *exchange);

/* Whose execution it is: that of the request's trace. */
struct nc_trace {
	char id[NC_TRACE_SIZE];
	char span[NC_SPAN_SIZE]; /* "": it is not traced */
	uint64_t began_ns;	 /* when it was asked for, by the clock of the world */
};

void nc_trace_begin(struct nc_trace *trace, const struct nc_exchange *exchange);

/* It has ended; box: the number of the last box that it had. */
void nc_tracer_execution(struct nc_tracer *tracer, const struct nc_trace *trace, const char *id,
	uint64_t box, const json_t *reply);

/* Once a second. */
void nc_tracer_tick(struct nc_tracer *tracer);

#endif
