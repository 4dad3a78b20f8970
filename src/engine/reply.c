/* What an execution is answered with. docs/requests.md describes each field. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "box/outcome.h"
#include "engine/alerts.h"
#include "engine/chronicle.h"
#include "engine/denials.h"
#include "engine/execution.h"
#include "engine/hooks.h"
#include "engine/results.h"
#include "kernel/bill.h"
#include "policy/json.h"
#include "policy/suggest.h"

/* More than that, and others would wait while it is written. */
#define LARGE (128U * 1024)
/* A text that is not looked at any more, once the reply has been written. */
#define LONG_TEXT (64U * 1024)

const struct nc_step_state *nc_execution_last(const struct nc_execution *execution)
{
	const struct nc_step_state *last = NULL;

	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (execution->step[i].has_run || execution->step[i].compiled_badly)
			last = &execution->step[i];
	return last;
}

/* A compiler that was stopped is not the program that was stopped. */
static const char *step_status(const struct nc_step_state *step)
{
	return step->lost ? "lost" : nc_outcome_status(&step->end);
}

static const char *status_of(const struct nc_execution *execution)
{
	const struct nc_step_state *last = nc_execution_last(execution);

	if (execution->status)
		return execution->status;
	return last ? step_status(last) : "internal_error";
}

/* The sentence for an end that the program did not choose. */
static void explain_end(const struct nc_step_state *step, char *out, size_t size)
{
	char why[256];

	nc_denials_explain(&step->end, why, sizeof(why));
	(void)snprintf(out, size, "%s%s", step->compiled_badly ? "Compiler: " : "",
		*why ? why : "It did not end well");
}

static json_t *step_error(const struct nc_step_state *step)
{
	const struct nc_diagnostic *found = &step->diagnostic;
	const char *status = step_status(step);
	char text[1024];

	if (nc_streq(status, "success"))
		return json_null();
	if (!nc_streq(status, "error") || !found->message[0])
		explain_end(step, text, sizeof(text));
	else if (found->line)
		(void)snprintf(text, sizeof(text), "%s%s%s (%s, line %u)", found->kind,
			found->kind[0] ? ": " : "", found->message, found->file, found->line);
	else
		(void)snprintf(text, sizeof(text), "%s%s%s", found->kind,
			found->kind[0] ? ": " : "", found->message);
	return nc_json_text(text, strlen(text));
}

static json_t *error_of(const struct nc_execution *execution)
{
	const struct nc_step_state *last = nc_execution_last(execution);

	if (execution->status)
		return nc_json_text(execution->error.message, strlen(execution->error.message));
	return last ? step_error(last) : json_null();
}

static json_t *diagnostic_json(const struct nc_step_state *step)
{
	const struct nc_diagnostic *found = &step->diagnostic;

	if (!found->message[0])
		return json_null();
	return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s}", "phase",
		step->compiled_badly ? "compile" : "run", "file", found->file, "line",
		(int)found->line, "column", (int)found->column, "kind", found->kind, "message",
		found->message);
}

static json_t *file_json(const struct nc_unpacked *file)
{
	json_t *object = json_pack(
		"{s:I, s:b}", "size", (json_int_t)file->size, "executable", file->executable);
	bool is_text = !memchr(file->data ? file->data : "", '\0', file->data ? file->size : 0);
	char *encoded = NULL;

	for (size_t i = 0, n; is_text && i < file->size; i += n) {
		n = nc_text_utf8(file->data + i, (size_t)file->size - i);
		is_text = n > 0;
	}
	if (is_text)
		(void)json_object_set_new(object, "text",
			json_stringn(file->data ? file->data : "", (size_t)file->size));
	else if (nc_base64_encode(file->data, (size_t)file->size, &encoded) == 0)
		(void)json_object_set_new(object, "base64", json_string(encoded));
	free(encoded);
	if (json_object_size(object) == 3)
		return object;
	json_decref(object);
	return NULL;
}

static bool is_own_file(const struct nc_execution *execution, const char *path)
{
	for (size_t i = 0; i < execution->request.n_steps; i++) {
		const struct nc_step_state *step = &execution->step[i];

		if (nc_streq(path,
			    step->program ? nc_step_program_name(execution, step) : step->source))
			return true;
	}
	return nc_streq(path, NC_ACCESS_TRUSTED);
}

/* Why a file that matched stayed behind. */
static const char *skip_reason(int error)
{
	return error == EFBIG	? "more than the 64 MiB that all captured files may have together"
	       : error == ELOOP ? "a symbolic link, which is not followed"
	       : error == EINVAL || error == ENXIO ? "not a regular file"
						   : nc_errno_text(error);
}

/* Why what was captured is not all that matched; NULL: it is all. */
static const char *cut_reason(const struct nc_execution *execution)
{
	int error = execution->unpack.error;

	_Static_assert(NC_CAPTURE_FILES_MAX == 1000, "the text says so");
	if (!execution->captured)
		return "the files could not be read after the program had ended";
	return error == 0	 ? NULL
	       : error == EMFILE ? "more than 1,000 files match"
	       : error == E2BIG	 ? "there are too many files to look at all of them"
	       : error == ELOOP	 ? "directories are nested too deeply to look at all of them"
	       : error == EACCES ? "a directory cannot be read"
				 : nc_errno_text(error);
}

static int add_file(const struct nc_unpacked *file, json_t *files, json_t *skipped)
{
	/* names are bytes, and become text as output does */
	cleanup_json json_t *path = nc_json_text(file->path, strlen(file->path));

	if (!path)
		return -1;
	if (!file->error)
		return json_object_set_new(files, json_string_value(path), file_json(file));
	return json_array_append_new(
		skipped, json_pack("{s:O, s:I, s:s}", "path", path, "size", (json_int_t)file->size,
				 "reason", skip_reason(file->error)));
}

/* Captured files by path; those that stayed behind, with the reason. */
static int add_files(const struct nc_execution *execution, json_t *reply)
{
	const struct nc_unpack *unpack = &execution->unpack;
	json_t *files = json_object(), *skipped = json_array();
	const char *reason = cut_reason(execution);
	int r = 0;

	if (execution->request.capture.count == 0 || !files || !skipped) {
		json_decref(files);
		json_decref(skipped);
		return execution->request.capture.count == 0 ? 0 : -1;
	}
	for (size_t i = 0; r == 0 && i < unpack->n_files; i++) {
		const struct nc_unpacked *file = &unpack->files[i];

		if (!is_own_file(execution, file->path) &&
			(file->data || file->size == 0 || file->error))
			r = add_file(file, files, skipped);
	}
	r |= json_object_set_new(reply, "files", files);
	r |= json_object_set_new(reply, "files_skipped", skipped);
	r |= json_object_set_new(reply, "files_complete", json_boolean(!reason));
	r |= json_object_set_new(reply, "files_reason", reason ? json_string(reason) : json_null());
	return r;
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static json_t *timings_json(const struct nc_execution *e)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "queued",
		seconds_between(e->submitted_ns, e->admitted_ns), "prepared",
		seconds_between(e->admitted_ns, e->prepared_ns), "ran",
		seconds_between(e->prepared_ns, e->ran_ns), "collected",
		seconds_between(e->ran_ns, e->ended_ns));
}

static void put_size(char *out, size_t size, uint64_t bytes)
{
	if (bytes < 1024 * 1024)
		(void)snprintf(out, size, "%lluKB", (unsigned long long)((bytes + 1023) / 1024));
	else
		(void)snprintf(
			out, size, "%lluMB", (unsigned long long)((bytes + (1 << 20) - 1) >> 20));
}

/* Seed 001's words for it. */
static json_t *resource_usage_json(const struct nc_box_usage *usage)
{
	char memory[32], disk[32];

	put_size(memory, sizeof(memory), usage->memory_peak_bytes);
	put_size(disk, sizeof(disk), usage->disk_bytes);
	return json_pack("{s:f, s:s, s:s}", "cpu_time",
		(double)(usage->cpu_user_us + usage->cpu_system_us) / 1e6, "memory_peak", memory,
		"disk_usage", disk);
}

/* How the last program ended, or a compiler that had it not run; NULL: nothing ran at all. */
static const struct nc_box_end *last_end(const struct nc_execution *execution)
{
	const struct nc_step_state *last = nc_execution_last(execution);
	const struct nc_box_end *end = last ? &last->end : NULL;

	for (size_t i = execution->request.n_steps; !end && i > 0; i--)
		if (execution->step[i - 1].compiler.id)
			end = &execution->step[i - 1].compiler;
	return end;
}

/* What all programs used together; peaks are those of the largest. */
static struct nc_box_end total(const struct nc_execution *execution)
{
	const struct nc_box_end *last = last_end(execution);
	struct nc_box_end sum = last ? *last : (struct nc_box_end){.tier = execution->tier};

	for (size_t i = 0; i < execution->request.n_steps; i++) {
		const struct nc_box_end *more = &execution->step[i].end;

		if (more == last || !execution->step[i].has_run)
			continue;
		sum.usage.wall_ns += more->usage.wall_ns;
		nc_bill_add(&sum.usage, &more->usage);
		sum.hit |= more->hit;
	}
	return sum;
}

/* And with what their compilers used. */
static struct nc_box_end bill(const struct nc_execution *execution, const struct nc_box_end *sum)
{
	const struct nc_box_end *last = last_end(execution);
	struct nc_box_end whole = *sum;

	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (&execution->step[i].compiler != last)
			nc_bill_add(&whole.usage, &execution->step[i].compiler.usage);
	return whole;
}

static struct nc_box_end bill_of(const struct nc_step_state *step)
{
	struct nc_box_end whole = step->end;

	nc_bill_add(&whole.usage, &step->compiler.usage);
	return whole;
}

static json_t *limits_json(const struct nc_execution *execution, const struct nc_box_end *end)
{
	const struct nc_box_limits *l = &execution->limits;

	return json_pack("{s:o, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "hit",
		nc_outcome_hit(end), "memory_bytes", (json_int_t)l->memory_bytes, "cpu_cores",
		(double)l->cpu_milli / 1000, "execution_time_seconds", (double)l->wall_ms / 1000,
		"max_processes", (json_int_t)l->pids, "disk_bytes", (json_int_t)l->disk_bytes,
		"inodes", (json_int_t)l->inodes, "open_files", (json_int_t)l->open_files,
		"output_bytes", (json_int_t)execution->output_max);
}

/* Twice what it used, in whole units, and no less than what any interpreter wants at its worst. */
static json_int_t with_room(uint64_t used, uint64_t unit, uint64_t least)
{
	uint64_t units = (used * 2 + unit - 1) / unit;

	return (json_int_t)(units > least ? units : least);
}

/* The least policy; what was used says more about limits than the analysis can. */
static json_t *suggested_json(const struct nc_step_state *step)
{
	const struct nc_box_usage *usage = &step->end.usage;
	json_t *suggested =
		step->report ? nc_suggest_json(step->report, step->language.language) : json_null();
	json_t *limits = json_object_get(json_object_get(suggested, "policy"), "limits");
	int r = 0;

	if (!limits || !step->has_run || !nc_streq(step_status(step), "success"))
		return suggested;
	r |= json_object_set_new(limits, "execution_time_seconds",
		json_integer(with_room(usage->wall_ns, 1000000000, 5)));
	if (usage->memory_peak_bytes)
		r |= json_object_set_new(limits, "memory_mb",
			json_integer(with_room(usage->memory_peak_bytes, 1 << 20, 64)));
	r |= json_object_set_new(
		limits, "disk_mb", json_integer(with_room(usage->disk_bytes, 1 << 20, 8)));
	if (r == 0)
		return suggested;
	json_decref(suggested);
	return NULL;
}

static json_t *step_denials(const struct nc_step_state *step)
{
	cleanup_json json_t *list = json_array();
	int r = list ? 0 : -ENOMEM;

	if (r == 0 && step->report)
		r = nc_denials_add_report(list, step->report);
	if (r == 0)
		r = nc_hooks_denials(step, list);
	if (r == 0)
		r = nc_denials_add_end(list, &step->end);
	return r == 0 ? take_ptr(list) : NULL;
}

/* Of the request, of all programs, and of what the last one did. */
static json_t *denials_json(const struct nc_execution *execution, const struct nc_box_end *end)
{
	cleanup_json json_t *list = json_array();
	int r = list ? 0 : -ENOMEM;

	if (r == 0 && execution->refused.id[0])
		r = nc_denials_add(list, &execution->refused);
	if (r == 0)
		r = nc_hooks_env_denials(execution, list);
	if (r == 0)
		r = nc_access_denials(execution->reach, list);
	for (size_t i = 0; r == 0 && i < execution->request.n_steps; i++) {
		if (execution->step[i].report)
			r = nc_denials_add_report(list, execution->step[i].report);
		if (r == 0)
			r = nc_hooks_denials(&execution->step[i], list);
	}
	if (r == 0)
		r = nc_denials_add_end(list, end);
	return r == 0 ? take_ptr(list) : NULL;
}

static json_t *step_json(const struct nc_execution *execution, size_t i)
{
	const struct nc_step_state *step = &execution->step[i];
	bool ran = step->has_run || step->compiled_badly;
	struct nc_box_end whole = bill_of(step);
	json_t *findings = step->report ? nc_report_findings_json(step->report) : json_array();

	cleanup_json json_t *value = json_pack(
		"{s:s, s:s?, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:f, s:o, s:o, "
		"s:o, s:o, s:o}",
		"name", execution->request.step[i].name, "language",
		step->runtime ? step->runtime->name : NULL, "language_reason",
		step->language.reason, "status", ran ? step_status(step) : "skipped", "error",
		ran ? step_error(step) : json_null(), "diagnostic", diagnostic_json(step),
		"exit_code", ran ? nc_outcome_code(&step->end) : json_null(), "signal",
		ran ? nc_outcome_signal(&step->end) : json_null(), "cached_program",
		step->from_cache, "execution_time", (double)step->end.usage.wall_ns / 1e9, "usage",
		nc_outcome_usage(&whole, step->output_bytes, step->birth_ns), "findings", findings,
		"suggested", suggested_json(step), "denials", step_denials(step), "noticed",
		nc_hooks_noticed(step));

	if (!value || nc_output_set(&step->output[NC_STREAM_OUTPUT], value, "output") < 0 ||
		nc_output_set(&step->output[NC_STREAM_ERROR], value, "stderr") < 0)
		return NULL;
	return take_ptr(value);
}

json_t *nc_execution_name(const struct nc_execution *execution)
{
	return json_string(*execution->request.id ? execution->request.id : execution->id);
}

json_t *nc_execution_labels(const struct nc_execution *execution)
{
	const struct nc_request_pairs *labels = &execution->request.labels;
	json_t *object = json_object();

	for (size_t i = 0; object && i < labels->count; i++)
		(void)json_object_set_new(
			object, labels->pair[i].name, json_string(labels->pair[i].value));
	return object;
}

/* In fresh memory. NULL: out of memory. */
static char *code_of(const struct nc_execution *execution)
{
	if (execution->request.is_workflow)
		return json_dumps(
			json_object_get(execution->request.source, "steps"), JSON_INDENT(2));
	return strndup(execution->request.step[0].code, execution->request.step[0].code_size);
}

static enum nc_severity risk_of(const struct nc_execution *execution)
{
	enum nc_severity risk = NC_SEVERITY_LOW;

	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (execution->step[i].report && nc_report_risk(execution->step[i].report) > risk)
			risk = nc_report_risk(execution->step[i].report);
	return risk;
}

/* Moves what the only step says up to where seed 001 has it. */
static int merge_steps(const struct nc_execution *execution, json_t *reply)
{
	static const char *const shared[] = {"output", "stderr", "exit_code", "signal", "language",
		"language_reason", "diagnostic", "findings", "suggested", "cached_program",
		"noticed"};
	static const char *const bytes[] = {"output_base64", "stderr_base64"}; /* seldom there */
	const struct nc_step_state *last = nc_execution_last(execution);
	json_t *steps = json_array();
	json_t *said = json_array_get(steps, 0);
	int r = steps ? 0 : -1;

	for (size_t i = 0; r == 0 && i < execution->request.n_steps; i++)
		r = json_array_append_new(steps, step_json(execution, i));
	said = json_array_get(steps, last ? (size_t)(last - execution->step) : 0);
	for (size_t i = 0; r == 0 && i < sizeof(shared) / sizeof(shared[0]); i++)
		r = json_object_set(reply, shared[i], json_object_get(said, shared[i]));
	for (size_t i = 0; r == 0 && i < sizeof(bytes) / sizeof(bytes[0]); i++)
		if (json_object_get(said, bytes[i]))
			r = json_object_set(reply, bytes[i], json_object_get(said, bytes[i]));
	if (r == 0 && execution->request.is_workflow)
		r = json_object_set(reply, "steps", steps);
	json_decref(steps);
	return r;
}

static bool is_truncated(const struct nc_execution *execution)
{
	for (size_t i = 0; i < execution->request.n_steps; i++) {
		const struct nc_step_state *step = &execution->step[i];

		if (step->output_bytes > execution->output_max ||
			nc_output_is_cut(&step->output[NC_STREAM_OUTPUT]) ||
			nc_output_is_cut(&step->output[NC_STREAM_ERROR]))
			return true;
	}
	return false;
}

/* Where its packages are; null if none were asked for, or it did not get so far. */
static json_t *environment_json(const struct nc_execution *execution)
{
	bool has_one = execution->environment.dir_fd >= 0;

	if (!execution->packages)
		return json_null();
	return json_pack("{s:s?, s:s, s:O}", "key", has_one ? execution->environment.key : NULL,
		"state",
		execution->environment_built ? "built"
		: has_one		     ? "reused"
					     : "in the image",
		"packages", execution->packages);
}

json_t *nc_execution_reply(const struct nc_execution *execution)
{
	const struct nc_step_state *last = nc_execution_last(execution);
	const struct nc_box_end *end = last_end(execution);
	struct nc_box_end sum = total(execution), whole = bill(execution, &sum);
	cleanup_json json_t *reply = json_pack(
		"{s:o, s:s, s:o, s:f, s:o, s:o, s:o, s:b, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, s:b, "
		"s:o, s:o, s:o}",
		"id", nc_execution_name(execution), "status", status_of(execution), "error",
		error_of(execution), "execution_time", (double)sum.usage.wall_ns / 1e9,
		"resource_usage", resource_usage_json(&whole.usage), "tier",
		end ? json_string(nc_tier_names[sum.tier]) : json_null(), "tier_reason",
		execution->tier_reason ? json_string(execution->tier_reason) : json_null(),
		"truncated", is_truncated(execution), "policy",
		execution->terms ? execution->terms->policy : NULL, "risk",
		nc_severity_names[risk_of(execution)], "strength",
		end && end->id ? nc_outcome_strength(&sum) : json_null(), "denials",
		denials_json(execution, &sum), "alerts",
		nc_alerts_json(execution, &sum, last ? last->output_bytes : 0), "limits",
		limits_json(execution, &sum), "usage",
		nc_outcome_usage(&whole, last ? last->output_bytes : 0, last ? last->birth_ns : 0),
		"cached", 0, "timings", timings_json(execution), "labels",
		nc_execution_labels(execution), "environment", environment_json(execution));

	if (!reply || merge_steps(execution, reply) < 0 || add_files(execution, reply) < 0 ||
		json_object_set_new(json_object_get(reply, "usage"), "network",
			nc_access_usage(execution->reach)) < 0)
		return NULL;
	return take_ptr(reply);
}

bool nc_execution_is_large(const struct nc_execution *execution)
{
	uint64_t size = 0;

	for (size_t i = 0; i < execution->unpack.n_files; i++)
		size += execution->unpack.files[i].data ? execution->unpack.files[i].size : 0;
	for (size_t i = 0; i < execution->request.n_steps; i++) {
		size += execution->request.step[i].code_size;
		for (enum nc_stream j = 0; j < NC_STREAM_MAX; j++)
			size += execution->step[i].output[j].bytes;
	}
	return size > LARGE || execution->kept;
}

/* The reply, which is the same as an earlier one, or is kept for a later one. */
static json_t *final_reply(struct nc_execution *execution)
{
	json_t *reply;

	if (execution->kept && !execution->status)
		return take_ptr(execution->kept);
	reply = nc_execution_reply(execution);
	if (reply)
		nc_results_keep(execution, reply);
	return reply;
}

void nc_execution_close(struct nc_execution *execution)
{
	execution->reply = final_reply(execution);
	if (!execution->reply)
		return;
	execution->code = code_of(execution);
	execution->line = nc_chronicle_line(execution, execution->reply);
	if (!nc_execution_is_large(execution) || !nc_engine_setup(execution->engine)->threads)
		return;
	execution->text.max = NC_REPLY_TEXT_MAX;
	nc_json_dump(execution->reply, &execution->text);
	if (execution->text.error < 0)
		nc_buf_done(&execution->text); /* whoever wants it writes it */
	else
		nc_json_shorten(execution->reply, LONG_TEXT); /* freed here, and not on the loop */
	if (execution->code && strlen(execution->code) > LARGE)
		execution->code_fd = nc_record_seal(execution->code, strlen(execution->code));
}
