/*
 * What is recorded of executions.
 *
 * Theory of operation: code and output go to the recorder as blobs, then the line, all at once;
 * their digests are made here too, so that the line need not wait for the blobs. Answers come in
 * the order of the questions. When too many are outstanding an execution waits for its turn. What
 * is large goes part by part, and each part waits for its turn: nobody's receipt waits for all that
 * another has printed. Notes (of commands, of what was refused) are answered too, and go first.
 *
 * What a recorder that dies has not answered is told to the next one. That finds in the journal
 * what the dead one had written: nothing is missing, and nothing there twice.
 */
#include "engine/chronicle.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "engine/access.h"
#include "tier/poll.h"

/* Code, output, error and the line. */
#define ANSWERS_EACH 4U
/* How long it may say nothing: it writes files, and a disk may be slow. */
#define PATIENCE_MS 20000
/* How long the end of all of us waits for it. */
#define LAST_MS 5000

struct waiting {
	struct nc_execution *execution;
	char *body;	      /* of the line, until it is sent */
	uint64_t from;	      /* where the line may be found, if a recorder was told it; or 0 */
	char *times;	      /* of the line about performance, which nobody waits for */
	unsigned int answers; /* that are still to come; the last one is the receipt */
	int error;	      /* the first that a blob met */
	bool hopeless;	      /* it cannot be told */
	bool large;	      /* the recorder is busy with its blobs for a while */
	unsigned int blob;    /* before which all that are large are kept */
	uint64_t kept;	      /* bytes of that one */
	bool is_part;	      /* it was asked to keep a part of it */
	struct waiting *next;
};

/* What was noted and not answered. */
struct note {
	struct note *next;
	enum nc_record_kind kind;
	const char *event; /* a name of ours */
	char *text;
	uint64_t from; /* where its line may be found, if a recorder was told it; or 0 */
};

struct nc_chronicle {
	uv_loop_t *loop;
	struct nc_record *record;
	struct nc_poll *poll;
	bool returns; /* another recorder comes if this one dies */
	nc_chronicle_written written;
	void (*say)(const char *text);
	struct waiting *asked, **asked_end;	/* answers are for the first of these */
	struct waiting *waiting, **waiting_end; /* not sent yet */
	size_t n_ended;				/* that are in either list */
	struct note *notes, **notes_end;	/* those that were told come first */
	struct note *untold;			/* the first of the others */
	size_t n_notes;
	uint64_t from;	/* no line that is written from now on has a number below this */
	size_t n_large; /* of those that are asked */
	size_t n_open;	/* executions that have begun and not ended, as the recorder knows them */
	bool gone;
	bool silent; /* the one before did not answer, and this one has not said welcome */
	uv_timer_t *patience;
	uint64_t lost;
};

static void lose(struct nc_chronicle *chronicle);
static void keep_note(
	struct nc_chronicle *chronicle, enum nc_record_kind kind, const char *event, char *text);

/* Takes it out of what the recorder was asked. */
static struct waiting *unlink_asked(struct nc_chronicle *chronicle)
{
	struct waiting *waiting = chronicle->asked;

	assert(waiting);
	chronicle->asked = waiting->next;
	if (!chronicle->asked)
		chronicle->asked_end = &chronicle->asked;
	chronicle->n_large -= waiting->large;
	return waiting;
}

/* The place of the next to be told: the oldest, but of those with large blobs one at a time. NULL:
 * none may be now. */
static struct waiting **find_next(struct nc_chronicle *chronicle)
{
	struct waiting **place = &chronicle->waiting;

	while (*place && (*place)->large && chronicle->n_large > 0)
		place = &(*place)->next;
	return *place ? place : NULL;
}

static struct waiting *unlink_waiting(struct nc_chronicle *chronicle, struct waiting **place)
{
	struct waiting *waiting = *place;

	*place = waiting->next;
	if (!*place)
		chronicle->waiting_end = place;
	return waiting;
}

static void settle(struct nc_chronicle *chronicle, struct waiting *waiting, json_t *receipt)
{
	chronicle->n_ended--;
	chronicle->written(waiting->execution, receipt);
	if (waiting->times)
		keep_note(chronicle, NC_RECORD_PERFORMANCE, "execution", take_ptr(waiting->times));
	free(waiting->body);
	free(waiting);
}

void nc_chronicle_give_up(struct nc_chronicle *chronicle)
{
	while (chronicle->waiting)
		settle(chronicle, unlink_waiting(chronicle, &chronicle->waiting), json_null());
}

/* ---- notes: what happens beside executions ---- */

static void complain(const struct nc_chronicle *chronicle)
{
	if (chronicle->say)
		chronicle->say("Something that happened could not be recorded");
}

static void drop_first_note(struct nc_chronicle *chronicle)
{
	struct note *note = chronicle->notes;

	chronicle->notes = note->next;
	if (!chronicle->notes)
		chronicle->notes_end = &chronicle->notes;
	if (chronicle->untold == note)
		chronicle->untold = note->next;
	chronicle->n_notes--;
	free(note->text);
	free(note);
}

/* Who was told them may still write them: nobody else is told. */
static void forget_told(struct nc_chronicle *chronicle)
{
	while (chronicle->notes && chronicle->notes != chronicle->untold)
		drop_first_note(chronicle);
}

/* Takes over the text. */
static void keep_note(
	struct nc_chronicle *chronicle, enum nc_record_kind kind, const char *event, char *text)
{
	struct note *note = NULL;

	if (chronicle->gone && !chronicle->returns) {
		free(text);
		return;
	}
	if (text && strlen(text) <= NC_RECORD_BODY_MAX && chronicle->n_notes < NC_RECORD_NOTES_MAX)
		note = calloc(1, sizeof(*note));
	if (!note) {
		free(text);
		complain(chronicle);
		return;
	}
	*note = (struct note){.kind = kind, .event = event, .text = text};
	*chronicle->notes_end = note;
	chronicle->notes_end = &note->next;
	chronicle->n_notes++;
	if (!chronicle->untold)
		chronicle->untold = note;
}

/* Only the first one can have been written: the next was not heard before its answer was sent. */
static int tell_note(struct nc_chronicle *chronicle, struct note *note)
{
	const uint64_t before = note == chronicle->notes ? note->from : 0;

	if (note->from == 0)
		note->from = chronicle->from;
	return nc_record_note(chronicle->record, note->kind, note->event, note->text, before);
}

/* Whether all of them are told. What cannot be told now is tried again. */
static bool tell_notes(struct nc_chronicle *chronicle, bool *has_room)
{
	while (chronicle->untold &&
		chronicle->record->waiting + ANSWERS_EACH <= NC_RECORD_WAITING_MAX &&
		(*has_room = nc_record_has_room(chronicle->record)) &&
		tell_note(chronicle, chronicle->untold) == 0)
		chronicle->untold = chronicle->untold->next;
	return !chronicle->untold;
}

static void know(struct nc_chronicle *chronicle, uint64_t from)
{
	if (from > chronicle->from)
		chronicle->from = from;
}

/* The first of those that were told is written; false: none was. */
static bool take_noted(struct nc_chronicle *chronicle, const struct nc_record_event *event)
{
	if (chronicle->notes == chronicle->untold)
		return false;
	know(chronicle, event->seq + 1);
	drop_first_note(chronicle);
	return true;
}

/* Its answers, which nobody will read any more. Those about executions are found by their ids. */
static void hear_last_answers(struct nc_chronicle *chronicle)
{
	struct nc_record_event event;

	while (chronicle->record->fd >= 0 && nc_record_receive(chronicle->record, &event) == 0)
		if (event.type == NC_RECORD_NOTED)
			(void)take_noted(chronicle, &event);
}

/* As many as can be told before all of us ends; waits for the recorder. */
static void tell_last_notes(struct nc_chronicle *chronicle)
{
	struct pollfd readable = {.fd = chronicle->record->fd, .events = POLLIN};

	if (chronicle->gone || chronicle->silent)
		return;
	chronicle->record->mail.waits = NULL;
	while (chronicle->untold) {
		if (chronicle->record->waiting == NC_RECORD_WAITING_MAX &&
			poll(&readable, 1, LAST_MS) != 1)
			return;
		hear_last_answers(chronicle);
		if (tell_note(chronicle, chronicle->untold) < 0)
			return;
		chronicle->untold = chronicle->untold->next;
	}
}

/* ---- executions ---- */

/*
 * The recorder is gone. What it had not answered is told to the next one; without a next one nobody
 * gets a receipt any more.
 */
static void lose(struct nc_chronicle *chronicle)
{
	struct waiting *hopeless = NULL;

	hear_last_answers(chronicle);
	chronicle->gone = true;
	chronicle->untold = chronicle->notes;
	(void)uv_timer_stop(chronicle->patience);
	chronicle->poll = nc_poll_free(chronicle->poll);
	chronicle->record->fd = nc_fd_close(chronicle->record->fd);
	*chronicle->asked_end = chronicle->waiting;
	chronicle->waiting = chronicle->asked;
	chronicle->asked = NULL;
	chronicle->asked_end = &chronicle->asked;
	chronicle->n_large = 0;
	chronicle->waiting_end = &chronicle->waiting;
	while (*chronicle->waiting_end) {
		struct waiting *waiting = *chronicle->waiting_end;

		waiting->answers = 0;
		waiting->error = 0;
		waiting->blob = 0;
		waiting->kept = 0;
		waiting->is_part = false;
		if (waiting->hopeless) { /* the last one that was tried */
			*chronicle->waiting_end = waiting->next;
			hopeless = waiting;
		} else {
			chronicle->waiting_end = &waiting->next;
		}
	}
	if (hopeless)
		settle(chronicle, hopeless, json_null());
	if (!chronicle->returns)
		nc_chronicle_give_up(chronicle);
}

bool nc_chronicle_is_behind(const struct nc_chronicle *chronicle)
{
	return chronicle->n_ended >= NC_RECORD_BEHIND_MAX;
}

bool nc_chronicle_has_room(const struct nc_chronicle *chronicle)
{
	return chronicle->gone || nc_record_has_room(chronicle->record);
}

bool nc_chronicle_is_up(const struct nc_chronicle *chronicle)
{
	return !chronicle->gone && !chronicle->silent;
}

bool nc_chronicle_is_met(const struct nc_chronicle *chronicle)
{
	return !chronicle->gone;
}

/* ---- who does not answer ---- */

static bool is_asked(const struct nc_chronicle *chronicle)
{
	return chronicle->asked || chronicle->notes != chronicle->untold;
}

/* What it was told it may still write, when it goes on: nobody else is told it again. */
static void on_impatience(uv_timer_t *timer)
{
	struct nc_chronicle *chronicle = timer->data;

	if (chronicle->gone || !is_asked(chronicle))
		return;
	if (chronicle->say)
		chronicle->say("nacre-recorder does not answer: replies go out without a receipt");
	chronicle->silent = true;
	chronicle->gone = true;
	forget_told(chronicle);
	while (chronicle->asked) {
		struct waiting *first = unlink_asked(chronicle);

		settle(chronicle, first,
			json_pack("{s:s, s:s}", "id", first->execution->id, "error",
				"nacre-recorder does not answer"));
	}
	lose(chronicle);
}

/* From now on it has so long to answer what it was asked. */
static void be_patient(struct nc_chronicle *chronicle)
{
	if (is_asked(chronicle))
		(void)uv_timer_start(chronicle->patience, on_impatience, PATIENCE_MS, 0);
	else
		(void)uv_timer_stop(chronicle->patience);
}

static void watch(struct nc_chronicle *chronicle, bool for_room)
{
	for_room = for_room || chronicle->record->mail.first;
	nc_poll_set(chronicle->poll, UV_READABLE | (for_room ? UV_WRITABLE : 0));
}

static void on_mail(void *context)
{
	struct nc_chronicle *chronicle = context;

	if (chronicle->poll)
		watch(chronicle, true);
}

static int send_blob(struct nc_chronicle *chronicle, struct waiting *waiting, const void *data,
	size_t size, int memory_fd)
{
	int r = memory_fd >= 0 ? nc_record_blob_fd(chronicle->record, memory_fd)
			       : nc_record_blob(chronicle->record, data, size);

	if (r == 0)
		waiting->answers++;
	return r;
}

/* The blobs of an execution: the streams, by their numbers, and the code. */
#define BLOB_CODE NC_STREAM_MAX

/* The memory of one that is more than one part; -EBADF: it is not. */
static int large_blob(const struct nc_execution *execution, unsigned int blob)
{
	const struct nc_step_state *said = nc_execution_last(execution);
	const struct nc_output *output;

	if (blob == BLOB_CODE)
		return execution->code && strlen(execution->code) > NC_BLOB_PART
			       ? execution->code_fd
			       : -EBADF;
	output = said ? &said->output[blob] : NULL;
	return output && output->error == 0 && output->bytes > NC_BLOB_PART ? output->whole_fd
									    : -EBADF;
}

/* Sends the next part of what is large, if there is one: 1; else 0. */
static int send_part(struct nc_chronicle *chronicle, struct waiting *waiting)
{
	int fd = -EBADF, r;

	while (waiting->blob <= BLOB_CODE &&
		(fd = large_blob(waiting->execution, waiting->blob)) < 0)
		waiting->blob++;
	if (fd < 0)
		return 0;
	r = nc_record_part(chronicle->record, fd, waiting->kept);
	if (r < 0)
		return r;
	waiting->is_part = true;
	waiting->answers++;
	return 1;
}

static int tell_end(struct nc_chronicle *chronicle, struct waiting *waiting)
{
	const uint64_t before = waiting->from;

	if (before == 0)
		waiting->from = chronicle->from;
	return nc_record_finish(chronicle->record, waiting->execution->id, waiting->body, before);
}

/* Everything of one execution: its blobs, then its line. */
static int send_all(struct nc_chronicle *chronicle, struct waiting *waiting)
{
	const struct nc_execution *execution = waiting->execution;
	const struct nc_step_state *said = nc_execution_last(execution);
	const char *code = execution->code;
	int r = send_part(chronicle, waiting);

	if (r != 0)
		return r < 0 ? r : 0;
	if (!code)
		r = -ENOMEM;
	else if (large_blob(execution, BLOB_CODE) < 0)
		r = send_blob(chronicle, waiting, code, strlen(code), execution->code_fd);
	for (enum nc_stream i = 0; r == 0 && said && i < NC_STREAM_MAX; i++)
		if (said->output[i].error == 0 && said->output[i].bytes > 0 &&
			large_blob(execution, i) < 0)
			r = send_blob(chronicle, waiting, nc_buf_text(&said->output[i].head),
				said->output[i].head.size, said->output[i].whole_fd);
	if (r == 0)
		r = tell_end(chronicle, waiting);
	if (r == 0) {
		waiting->answers++;
		chronicle->n_open--;
	}
	return r;
}

static void send_waiting(struct nc_chronicle *chronicle)
{
	struct waiting **next;
	bool has_room = true, told;

	if (chronicle->gone)
		return;
	/* first, so that what was refused to an execution stands in front of its end */
	told = tell_notes(chronicle, &has_room);
	while (told && (next = find_next(chronicle)) &&
		chronicle->record->waiting + ANSWERS_EACH <= NC_RECORD_WAITING_MAX &&
		(has_room = nc_record_has_room(chronicle->record))) {
		struct waiting *waiting = unlink_waiting(chronicle, next);
		int r;

		waiting->next = NULL;
		*chronicle->asked_end = waiting;
		chronicle->asked_end = &waiting->next;
		chronicle->n_large += waiting->large;
		if (chronicle->asked == waiting)
			be_patient(chronicle);
		r = send_all(chronicle, waiting);
		if (r < 0) {
			waiting->hopeless = r != -EPIPE;
			if (waiting->hopeless) /* it lives, and hears all that it was told */
				forget_told(chronicle);
			lose(chronicle);
			return;
		}
	}
	if (!uv_is_active((uv_handle_t *)chronicle->patience))
		be_patient(chronicle);
	watch(chronicle, !has_room);
}

static json_t *receipt_json(
	const struct nc_execution *execution, const struct nc_record_event *event, int blob_error)
{
	char hash[NC_SHA256_HEX_SIZE];
	int error = event->error ? event->error : blob_error;

	if (event->error)
		return json_pack("{s:s, s:s}", "id", execution->id, "error", nc_errno_text(error));
	nc_sha256_hex(event->hash, hash);
	if (blob_error)
		return json_pack("{s:s, s:I, s:s, s:s}", "id", execution->id, "seq",
			(json_int_t)event->seq, "hash", hash, "blob_error",
			nc_errno_text(blob_error));
	return json_pack("{s:s, s:I, s:s}", "id", execution->id, "seq", (json_int_t)event->seq,
		"hash", hash);
}

/* What the recorder found of those who died before us. */
static void tell_news(const struct nc_chronicle *chronicle, const struct nc_record_event *welcome)
{
	char news[NC_RECORD_NEWS_SIZE];

	if (chronicle->say && *nc_record_news(welcome, news))
		chronicle->say(news);
}

/* A part is kept, or the recorder has met an error: the rest has its turn behind others. */
static void go_on(struct nc_chronicle *chronicle, int error)
{
	struct waiting *waiting = unlink_asked(chronicle);

	waiting->is_part = false;
	if (error == -EINPROGRESS) {
		waiting->kept += NC_BLOB_PART;
	} else {
		waiting->blob++;
		waiting->kept = 0;
	}
	waiting->next = NULL;
	*chronicle->waiting_end = waiting;
	chronicle->waiting_end = &waiting->next;
}

static void on_answer(void *context, int events)
{
	struct nc_chronicle *chronicle = context;
	struct nc_record_event event = {0};
	struct waiting *first = chronicle->asked;
	int r;

	if (events & UV_WRITABLE)
		(void)nc_mail_flush(&chronicle->record->mail, chronicle->record->fd);
	r = events & UV_READABLE ? nc_record_receive(chronicle->record, &event) : -EAGAIN;

	if (r == -EAGAIN) {
		send_waiting(chronicle);
		return;
	}
	if (r == 0 && event.type == NC_RECORD_WELCOME) {
		chronicle->silent = false;
		chronicle->lost += event.lost;
		know(chronicle, event.seq);
		tell_news(chronicle, &event);
		send_waiting(chronicle);
		return;
	}
	if (r == 0 && event.type == NC_RECORD_NOTED && take_noted(chronicle, &event)) {
		be_patient(chronicle);
		send_waiting(chronicle);
		return;
	}
	if (r < 0 || event.type == NC_RECORD_NOTED || !first) {
		lose(chronicle);
		return;
	}
	if (event.type == NC_RECORD_RECEIPT)
		know(chronicle, event.seq + 1);
	if (event.error && event.error != -EINPROGRESS && !first->error)
		first->error = event.error;
	if (--first->answers == 0 && first->is_part) {
		go_on(chronicle, event.error);
	} else if (first->answers == 0) {
		settle(chronicle, unlink_asked(chronicle),
			receipt_json(first->execution, &event, event.error ? 0 : first->error));
	}
	be_patient(chronicle);
	send_waiting(chronicle);
}

/* ---- the next recorder ---- */

int nc_chronicle_meet(struct nc_chronicle *chronicle, int fd)
{
	int r;

	lose(chronicle);
	nc_record_done(chronicle->record);
	nc_record_take(chronicle->record, fd);
	r = nc_poll_new(chronicle->loop, fd, UV_READABLE, on_answer, chronicle, &chronicle->poll);
	if (r < 0)
		return r;
	chronicle->gone = false;
	chronicle->n_open = 0;
	for (struct waiting *waiting = chronicle->waiting; waiting; waiting = waiting->next)
		waiting->execution->is_open = false;
	return 0;
}

uint64_t nc_chronicle_lost(const struct nc_chronicle *chronicle)
{
	return chronicle->lost;
}

void nc_chronicle_resume(struct nc_chronicle *chronicle)
{
	struct nacre_err ignored = {0};

	for (struct waiting *waiting = chronicle->waiting; waiting; waiting = waiting->next)
		nc_chronicle_begin(chronicle, waiting->execution);
	/* if it is gone already, that is noticed */
	(void)nc_record_greet(chronicle->record, &ignored);
	send_waiting(chronicle);
}

int nc_chronicle_new(uv_loop_t *loop, struct nc_record *record, bool returns,
	nc_chronicle_written written, void (*say)(const char *text),
	struct nc_chronicle **ret_chronicle)
{
	struct nc_chronicle *chronicle = calloc(1, sizeof(*chronicle));
	int r = -ENOMEM;

	if (chronicle) {
		*chronicle = (struct nc_chronicle){.loop = loop,
			.record = record,
			.returns = returns,
			.written = written,
			.say = say,
			.from = 1};
		chronicle->asked_end = &chronicle->asked;
		chronicle->waiting_end = &chronicle->waiting;
		chronicle->notes_end = &chronicle->notes;
		chronicle->patience = calloc(1, sizeof(*chronicle->patience));
		if (chronicle->patience)
			r = nc_poll_new(loop, record->fd, UV_READABLE, on_answer, chronicle,
				&chronicle->poll);
	}
	if (r < 0) {
		if (chronicle)
			free(chronicle->patience);
		free(chronicle);
		return r;
	}
	(void)uv_timer_init(loop, chronicle->patience); /* cannot fail */
	chronicle->patience->data = chronicle;
	record->mail.max = NC_RECORD_MAIL_MAX;
	record->mail.waits = on_mail;
	record->mail.context = chronicle;
	*ret_chronicle = chronicle;
	return 0;
}

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

void nc_chronicle_free(struct nc_chronicle *chronicle)
{
	if (!chronicle)
		return;
	tell_last_notes(chronicle);
	chronicle->returns = false;
	lose(chronicle);
	while (chronicle->notes)
		drop_first_note(chronicle);
	chronicle->record->mail.waits = NULL;
	uv_close((uv_handle_t *)chronicle->patience, close_timer);
	free(chronicle);
}

void nc_chronicle_begin(struct nc_chronicle *chronicle, struct nc_execution *execution)
{
	cleanup_json json_t *body = json_pack("{s:s, s:s, s:s, s:s}", "language",
		execution->step[0].runtime ? execution->step[0].runtime->name : "unknown", "tier",
		nc_tier_names[execution->tier], "tenant", execution->request.tenant, "request_id",
		execution->request.id);
	cleanup_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	if (chronicle->gone || execution->is_open || !text ||
		chronicle->n_open >= NC_RECORD_OPEN_MAX)
		return;
	execution->is_open = nc_record_open(chronicle->record, execution->id, text) == 0;
	chronicle->n_open += execution->is_open;
}

static void set_digest(json_t *body, const char *name, const void *data, size_t size)
{
	unsigned char hash[NC_SHA256_SIZE];
	char text[NC_SHA256_HEX_SIZE];

	nc_sha256(data, size, hash);
	nc_sha256_hex(hash, text);
	(void)json_object_set_new(body, name, json_string(text));
}

/* All that was printed; what was not kept whole is not there to be named. */
static void set_output_digest(json_t *body, const char *name, const struct nc_output *output)
{
	char data[16 * 1024], text[NC_SHA256_HEX_SIZE];
	unsigned char hash[NC_SHA256_SIZE];
	struct nc_sha256_state state;
	off_t at = 0;
	ssize_t n = 1;

	if (output->error < 0)
		return;
	if (output->whole_fd < 0) {
		set_digest(body, name, nc_buf_text(&output->head), output->head.size);
		return;
	}
	nc_sha256_begin(&state);
	for (; n > 0 && (uint64_t)at < output->bytes; at += n) {
		n = pread(output->whole_fd, data, sizeof(data), at);
		nc_sha256_add(&state, data, n > 0 ? (size_t)n : 0);
	}
	nc_sha256_end(&state, hash);
	nc_sha256_hex(hash, text);
	if (n > 0)
		(void)json_object_set_new(body, name, json_string(text));
}

char *nc_chronicle_line(const struct nc_execution *execution, const json_t *reply)
{
	static const char *const same[] = {"status", "language", "tier", "exit_code", "signal",
		"risk", "labels", "cached", "error"};
	static const char *const names[] = {"stdout_sha256", "stderr_sha256"};
	const struct nc_step_state *said = nc_execution_last(execution);
	const json_t *usage = json_object_get(reply, "usage");
	const char *code = execution->code;
	char started[NC_CLOCK_STAMP_NS_SIZE] = "";
	cleanup_json json_t *body = NULL;

	if (execution->started_ns > 0)
		nc_clock_stamp_at(execution->started_ns, started);
	body = json_pack("{s:s, s:s, s:s?, s:O?, s:f, s:O?, s:O?}", "request_id",
		execution->request.id, "tenant", execution->request.tenant, "started",
		*started ? started : NULL, "wall_seconds", json_object_get(usage, "wall_seconds"),
		"cpu_seconds",
		json_real_value(json_object_get(usage, "cpu_user_seconds")) +
			json_real_value(json_object_get(usage, "cpu_system_seconds")),
		"memory_peak_bytes", json_object_get(usage, "memory_peak_bytes"), "disk_bytes",
		json_object_get(usage, "disk_bytes"));
	if (!body || !code)
		return NULL;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		(void)json_object_set(body, same[i], json_object_get(reply, same[i]));
	if (execution->reach)
		(void)json_object_set_new(body, "decisions", nc_access_decisions(execution->reach));
	set_digest(body, "code_sha256", code, strlen(code));
	for (enum nc_stream i = 0; said && i < NC_STREAM_MAX; i++)
		set_output_digest(body, names[i], &said->output[i]);
	return json_dumps(body, JSON_COMPACT);
}

/* How long it took, for a line of its own. */
static char *times_of(const struct nc_execution *execution, const json_t *reply)
{
	cleanup_json json_t *performance = json_pack("{s:s, s:O, s:O}", "id", execution->id,
		"timings", json_object_get(reply, "timings"), "resource_usage",
		json_object_get(reply, "resource_usage"));

	return performance ? json_dumps(performance, JSON_COMPACT) : NULL;
}

void nc_chronicle_warn(struct nc_chronicle *chronicle, const char *id, const json_t *told)
{
	const json_t *denials = json_object_get(told, "denials");
	const json_t *alerts = json_object_get(told, "alerts");
	bool blocked = nc_streq(json_string_value(json_object_get(told, "status")), "blocked");
	const char *event = json_array_size(alerts) > 0 ? "alert" : blocked ? "blocked" : "denied";
	cleanup_json json_t *security = NULL;

	if (!blocked && json_array_size(denials) == 0 && json_array_size(alerts) == 0)
		return;
	security = json_pack("{s:s, s:O, s:O, s:O, s:O, s:O*, s:O*}", "id", id, "error",
		json_object_get(told, "error"), "risk", json_object_get(told, "risk"), "denials",
		denials, "alerts", alerts, "sandbox", json_object_get(told, "sandbox"), "tenant",
		json_object_get(told, "tenant"));
	keep_note(chronicle, NC_RECORD_SECURITY, event,
		security ? json_dumps(security, JSON_COMPACT) : NULL);
	send_waiting(chronicle);
}

void nc_chronicle_note(
	struct nc_chronicle *chronicle, enum nc_record_kind kind, const char *event, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	json_decref(body);
	if (!chronicle) {
		free(text);
		return;
	}
	keep_note(chronicle, kind, event, text);
	send_waiting(chronicle);
}

void nc_chronicle_end(
	struct nc_chronicle *chronicle, struct nc_execution *execution, const json_t *reply)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	char *body = take_ptr(execution->line);

	nc_chronicle_begin(chronicle, execution);
	if (!waiting || !body || (chronicle->gone ? !chronicle->returns : !execution->is_open)) {
		free(waiting);
		free(body);
		chronicle->written(execution, json_null());
		return;
	}
	chronicle->n_ended++;
	*waiting = (struct waiting){.execution = execution,
		.body = body,
		.times = times_of(execution, reply),
		.large = nc_execution_is_large(execution)};
	nc_chronicle_warn(chronicle, execution->id, reply);
	*chronicle->waiting_end = waiting;
	chronicle->waiting_end = &waiting->next;
	send_waiting(chronicle);
}
