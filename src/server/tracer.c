/* Traces. */
#include "server/tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/text.h"
#include "server/exporter.h"
#include "server/route.h"

/* Handed over at once when there are so many: a message then fits, each being 1 KiB at most. */
#define BATCH_MAX 48U
#define NS_TEXT_SIZE 24

/* enum SpanKind of OTLP. */
enum kind { KIND_INTERNAL = 1, KIND_SERVER = 2 };

struct nc_tracer {
	int fd;
	struct nc_metrics *metrics;
	json_t *spans; /* NULL: none yet */
};

struct nc_tracer *nc_tracer_new(int fd, struct nc_metrics *metrics)
{
	struct nc_tracer *tracer = calloc(1, sizeof(*tracer));

	if (tracer)
		*tracer = (struct nc_tracer){.fd = fd, .metrics = metrics};
	return tracer;
}

void nc_tracer_meet(struct nc_tracer *tracer, int fd)
{
	tracer->fd = fd;
}

/* ---- ids ---- */

/* As many digits as fit; "" if the kernel has none. Never all zeroes, which would be no id. */
static void make_id(char *out, size_t size)
{
	unsigned char bytes[(NC_TRACE_SIZE - 1) / 2];
	const size_t n = (size - 1) / 2;

	out[0] = '\0';
	if (nc_random(bytes, n) < 0)
		return;
	bytes[0] |= 1;
	for (size_t i = 0; i < n; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static bool is_id(const char *text, size_t size)
{
	return strspn(text, "0123456789abcdef") == size && strspn(text, "0") < size;
}

/* "00-<32 digits>-<16 digits>-<2 digits>" (W3C). Whether there is one, and what it asks for. */
static bool take_over(struct nc_exchange *exchange, bool *ret_sampled)
{
	const char *header = nc_exchange_header(exchange, "traceparent");
	const char *digits = header ? nc_text_after(header, "00-") : NULL;
	unsigned long flags;

	if (!digits || strlen(digits) != 52 || digits[32] != '-' || !is_id(digits, 32) ||
		digits[49] != '-' || !is_id(digits + 33, 16) ||
		strspn(digits + 50, "0123456789abcdef") != 2)
		return false;
	flags = strtoul(digits + 50, NULL, 16);
	(void)snprintf(exchange->trace, sizeof(exchange->trace), "%.32s", digits);
	(void)snprintf(exchange->parent, sizeof(exchange->parent), "%.16s", digits + 33);
	*ret_sampled = flags & 1;
	return true;
}

static bool is_chosen(uint64_t sample_milli)
{
	uint32_t number;

	return sample_milli >= 1000 ||
	       (sample_milli > 0 && nc_random(&number, sizeof(number)) == 0 &&
		       number % 1000 < sample_milli);
}

/* What only looks whether we are well is not worth a trace of its own. */
static bool is_dull(const struct nc_exchange *exchange)
{
	return !exchange->route || exchange->route->flags & NC_ROUTE_FREE;
}

void nc_tracer_take(struct nc_tracer *tracer, struct nc_exchange *exchange, uint64_t sample_milli)
{
	bool sampled;

	if (!take_over(exchange, &sampled))
		sampled = tracer->fd >= 0 && !is_dull(exchange) && is_chosen(sample_milli);
	if (!sampled || tracer->fd < 0)
		return;
	if (!exchange->trace[0])
		make_id(exchange->trace, sizeof(exchange->trace));
	if (exchange->trace[0])
		make_id(exchange->span, sizeof(exchange->span));
}

/* ---- OTLP ---- */

static void add_text(json_t *attributes, const char *key, const char *text)
{
	if (text && *text)
		(void)json_array_append_new(attributes,
			json_pack("{s:s, s:{s:s}}", "key", key, "value", "stringValue", text));
}

/* 64 bits are a text in JSON. */
static void add_number(json_t *attributes, const char *key, int64_t number)
{
	char text[NS_TEXT_SIZE];

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	(void)json_array_append_new(
		attributes, json_pack("{s:s, s:{s:s}}", "key", key, "value", "intValue", text));
}

struct span {
	const char *trace, *id, *parent, *name;
	enum kind kind;
	uint64_t begin_ns, end_ns;
	json_t *attributes; /* taken over */
	bool failed;
};

static json_t *span_json(const struct span *span)
{
	char begin[NS_TEXT_SIZE], end[NS_TEXT_SIZE];
	json_t *value;

	(void)snprintf(begin, sizeof(begin), "%" PRIu64, span->begin_ns);
	(void)snprintf(end, sizeof(end), "%" PRIu64, span->end_ns);
	value = json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:o, s:{s:i}}", "traceId", span->trace,
		"spanId", span->id, "name", span->name, "kind", (int)span->kind,
		"startTimeUnixNano", begin, "endTimeUnixNano", end, "attributes", span->attributes,
		"status", "code", span->failed ? 2 : 0);
	if (value && span->parent[0])
		(void)json_object_set_new(value, "parentSpanId", json_string(span->parent));
	return value;
}

static json_t *body_of(json_t *spans)
{
	json_t *resource = json_array();

	add_text(resource, "service.name", "nacre");
	add_text(resource, "service.version", NACRE_VERSION);
	return json_pack("{s:[{s:{s:o}, s:[{s:{s:s, s:s}, s:o}]}]}", "resourceSpans", "resource",
		"attributes", resource, "scopeSpans", "scope", "name", "nacre", "version",
		NACRE_VERSION, "spans", spans);
}

/* ---- handing over ---- */

static void hand_over(struct nc_tracer *tracer)
{
	const double count = (double)json_array_size(tracer->spans);
	cleanup_json json_t *body = NULL;
	cleanup_free char *text = NULL;
	size_t size;
	bool sent;

	if (count == 0)
		return;
	body = body_of(take_ptr(tracer->spans));
	text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	size = text ? strlen(text) : 0;
	sent = size > 0 && size <= NC_EXPORTER_MESSAGE_MAX &&
	       send(tracer->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
	nc_metrics_add(tracer->metrics, sent ? NC_METRIC_TRACE_SPANS : NC_METRIC_TRACE_DROPPED,
		count, NULL);
}

static void add(struct nc_tracer *tracer, const struct span *span)
{
	json_t *value = span_json(span);

	if (!tracer->spans)
		tracer->spans = json_array();
	if (!value || json_array_append_new(tracer->spans, value) < 0) {
		nc_metrics_add(tracer->metrics, NC_METRIC_TRACE_DROPPED, 1, NULL);
		return;
	}
	if (json_array_size(tracer->spans) >= BATCH_MAX)
		hand_over(tracer);
}

void nc_tracer_tick(struct nc_tracer *tracer)
{
	hand_over(tracer);
}

void nc_tracer_free(struct nc_tracer *tracer)
{
	if (!tracer)
		return;
	hand_over(tracer);
	json_decref(tracer->spans);
	free(tracer);
}

/* ---- spans ---- */

void nc_tracer_request(struct nc_tracer *tracer, const struct nc_exchange *exchange)
{
	const char *route = exchange->route ? exchange->route->pattern : "";
	const char *method = exchange->method ? exchange->method : "?";
	const uint64_t end_ns = nc_clock_real_ns();
	struct span span = {.trace = exchange->trace,
		.id = exchange->span,
		.parent = exchange->parent,
		.kind = KIND_SERVER,
		.begin_ns = end_ns - (nc_clock_ns() - exchange->began_ns),
		.end_ns = end_ns,
		.failed = exchange->status >= 500};
	char name[128];

	if (!exchange->span[0])
		return;
	(void)snprintf(name, sizeof(name), "%s %s", method, route);
	span.name = name;
	span.attributes = json_array();
	add_text(span.attributes, "http.request.method", method);
	add_text(span.attributes, "http.route", route);
	add_number(span.attributes, "http.response.status_code", exchange->status);
	add_text(span.attributes, "nacre.request.id", exchange->id);
	add_text(span.attributes, "nacre.tenant", exchange->caller.tenant);
	if (nc_text_after(route, "/v1/sandboxes/{id}"))
		add_text(span.attributes, "nacre.sandbox.id", exchange->part[0]);
	add(tracer, &span);
}

void nc_trace_begin(struct nc_trace *trace, const struct nc_exchange *exchange)
{
	*trace = (struct nc_trace){.began_ns = nc_clock_real_ns()};
	memcpy(trace->id, exchange->trace, sizeof(trace->id));
	memcpy(trace->span, exchange->span, sizeof(trace->span));
}

static json_t *execution_attributes(const char *id, uint64_t box)
{
	json_t *attributes = json_array();

	add_text(attributes, "nacre.execution.id", id);
	if (box > 0)
		add_number(attributes, "nacre.box.id", (int64_t)box);
	return attributes;
}

static const char *word(const json_t *reply, const char *name)
{
	return json_string_value(json_object_get(reply, name));
}

/* One after the other, as long as the reply says that each took. */
static void add_stages(struct nc_tracer *tracer, const struct span *whole, const char *id,
	uint64_t box, const json_t *timings)
{
	static const char *const names[][2] = {{"queue", "queued"}, {"prepare", "prepared"},
		{"run", "ran"}, {"collect", "collected"}};
	uint64_t at_ns = whole->begin_ns;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const double seconds = json_number_value(json_object_get(timings, names[i][1]));
		char own[NC_SPAN_SIZE];
		struct span span = {.trace = whole->trace,
			.id = own,
			.parent = whole->id,
			.name = names[i][0],
			.kind = KIND_INTERNAL,
			.begin_ns = at_ns};

		at_ns += (uint64_t)(seconds * 1e9);
		span.end_ns = at_ns;
		make_id(own, sizeof(own));
		if (!own[0])
			continue;
		span.attributes = execution_attributes(id, box);
		add(tracer, &span);
	}
}

void nc_tracer_execution(struct nc_tracer *tracer, const struct nc_trace *trace, const char *id,
	uint64_t box, const json_t *reply)
{
	const char *status = word(reply, "status");
	const json_t *code = json_object_get(reply, "exit_code");
	char own[NC_SPAN_SIZE];
	struct span span = {.trace = trace->id,
		.id = own,
		.parent = trace->span,
		.name = "execution",
		.kind = KIND_INTERNAL,
		.begin_ns = trace->began_ns,
		.end_ns = nc_clock_real_ns(),
		.failed = !status || !nc_streq(status, "success")};

	if (!trace->span[0])
		return;
	make_id(own, sizeof(own));
	if (!own[0])
		return;
	span.attributes = execution_attributes(id, box);
	add_text(span.attributes, "nacre.status", status);
	add_text(span.attributes, "nacre.language", word(reply, "language"));
	add_text(span.attributes, "nacre.tier", word(reply, "tier"));
	if (json_is_integer(code))
		add_number(span.attributes, "process.exit.code", json_integer_value(code));
	add(tracer, &span);
	add_stages(tracer, &span, id, box, json_object_get(reply, "timings"));
}
