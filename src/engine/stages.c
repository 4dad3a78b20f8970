/* What the stages of an execution run in boxes. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/binds.h"
#include "engine/decoys.h"
#include "engine/execution.h"
#include "engine/hooks.h"
#include "engine/installer.h"
#include "engine/pool.h"
#include "engine/work.h"

#define MB (1024ULL * 1024)

/* What moving files may take; their pages count as memory of whoever wrote them. */
#define FILES_MEMORY (64 * MB)
#define FILES_WALL_MS 60000U

/* Words of a language's run step. */
#define RUN_WORDS_MAX 8U

/* Words of a language's libraries. */
#define LIBRARIES_MAX 4U

/* Room for the streams beside the files. */
#define STREAM_EXTRA (2U << 20)
/* Files from this size on. */
#define INSERT_MIN (64U * 1024)

/* Paths of one step in the box of its stage. */
struct paths {
	char workspace[NC_PLACE_SIZE], temporary[NC_PLACE_SIZE];
	char source[NC_PLACE_SIZE + 64], program[NC_PLACE_SIZE + 64];
};

static bool is_build(const struct nc_stage *stage, const struct nc_execution *execution)
{
	return stage->kind == NC_STAGE_COMPILE || stage->kind == NC_STAGE_FETCH ||
	       (stage->kind == NC_STAGE_PUT && stage->step < execution->request.n_steps);
}

static bool puts_files(const struct nc_stage *stage)
{
	return stage->kind == NC_STAGE_PUT || stage->kind == NC_STAGE_HOOK;
}

/* All that the programs are to find, as against one file behind the step before. */
static bool brings_files(const struct nc_stage *stage)
{
	return stage->kind == NC_STAGE_PUT || stage->packs;
}

static void find_paths(
	const struct nc_execution *execution, const struct nc_step_state *step, struct paths *paths)
{
	const struct nc_engine_setup *setup = nc_engine_setup(execution->engine);

	nc_box_places(setup->holder, execution->exec.tier, execution->exec.id, paths->workspace,
		paths->temporary);
	(void)snprintf(paths->source, sizeof(paths->source), "%s/%s", paths->workspace,
		step ? step->source : "");
	/* steps of a workflow have a program each */
	(void)snprintf(paths->program, sizeof(paths->program), "%s/%s", paths->workspace,
		step ? nc_step_program_name(execution, step) : "");
}

const char *nc_step_program_name(
	const struct nc_execution *execution, const struct nc_step_state *step)
{
	static const char *const names[] = {"step1", "step2", "step3", "step4", "step5", "step6",
		"step7", "step8", "step9", "step10", "step11", "step12", "step13", "step14",
		"step15", "step16"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == NC_REQUEST_STEPS_MAX, "a name each");
	return execution->request.is_workflow ? names[step - execution->step]
					      : NC_RUNTIME_PROGRAM_NAME;
}

/* Replaces the variable of the same name, or adds it. */
static void set_variable(const char **list, size_t *count, const char *word)
{
	size_t name = strcspn(word, "=") + 1;

	for (size_t i = 0; i < *count; i++) {
		if (strncmp(list[i], word, name) == 0) {
			list[i] = word;
			return;
		}
	}
	list[(*count)++] = word;
}

static struct nc_hook_places hook_places(const struct paths *paths)
{
	return (struct nc_hook_places){paths->workspace, paths->temporary};
}

/* What loads the hook; a library that the caller wants loaded stands behind it. */
static void set_hook(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct paths *paths, const char **list, size_t *count, struct nc_buf *variable)
{
	const struct nc_hook_places places = hook_places(paths);
	const char *besides = NULL;

	for (size_t i = 0; step->language.language == NC_PYTHON && i < *count && !besides; i++)
		besides = nc_text_after(list[i], nc_hooks_variable_name(step));
	nc_hooks_variable(execution, step, &places, besides, variable);
	if (variable->error == 0)
		set_variable(list, count, nc_buf_text(variable));
	/* the lines of a .pth in the workspace would be run by site.py, as if they were its own */
	if (step->language.language == NC_PYTHON &&
		nc_hooks_mode(execution->terms) == NC_HOOKS_ENFORCE)
		set_variable(list, count, "PYTHONNOUSERSITE=1");
}

/* Whether it is Node's, or may run what is. */
static bool runs_node(const struct nc_step_state *step)
{
	return step && (step->language.language == NC_JAVASCRIPT ||
			       step->language.language == NC_TYPESCRIPT ||
			       step->language.language == NC_SHELL);
}

/*
 * The words of a template, those that lead to the environment, and then the pairs, each winning
 * over those before; they are copied.
 */
static int fill_env(struct nc_execution *execution, const struct paths *paths,
	const struct nc_step_state *hooked, const char *const *template,
	const char *const *environment, const struct nc_request_pairs *const *pairs)
{
	const char *list[2 * NC_REQUEST_ENV_MAX + 128] = {NULL};
	nc_buf_cleanup struct nc_buf words = NC_BUF(1U << 20), variable = NC_BUF(1U << 20);
	size_t n_template = 0, count = 0;
	const char *word;
	int r = 0;

	if (template)
		r = nc_runtime_argv(
			template, paths->source, paths->program, NULL, 0, &words, &n_template);
	for (; r == 0 && environment && *environment; environment++)
		nc_buf_add(&words, *environment, strlen(*environment) + 1);
	if (r == 0 && pairs)
		nc_access_words(execution->reach, paths->workspace, &words);
	for (; r == 0 && pairs && *pairs; pairs++)
		for (size_t i = 0; i < (*pairs)->count; i++)
			nc_buf_addf(&words, "%s=%s%c", (*pairs)->pair[i].name,
				(*pairs)->pair[i].value, '\0');
	if (r < 0 || words.error < 0)
		return r < 0 ? r : words.error;
	for (word = nc_buf_text(&words); word < nc_buf_text(&words) + words.size;
		word += strlen(word) + 1)
		if (count < sizeof(list) / sizeof(list[0]) - 1)
			set_variable(list, &count, word);
	if (hooked && nc_hooks_has_file(hooked))
		set_hook(execution, hooked, paths, list, &count, &variable);
	if (variable.error < 0)
		return variable.error;
	nc_env_fill(&execution->env,
		&(struct nc_env_place){paths->workspace, paths->temporary, execution->tier,
			runs_node(hooked) ? execution->limits.memory_bytes : 0},
		list);
	return 0;
}

static int fill_argv(struct nc_execution *execution, const char *const *template,
	const struct paths *paths, const struct nc_request_words *args)
{
	return nc_runtime_argv(template, paths->source, paths->program,
		args ? (char *const *)(uintptr_t)args->words : NULL, args ? args->count : 0,
		&execution->argv.buf, &execution->argv.count);
}

/* Whether files beside the code are to be compiled as one package with it. */
static bool has_package(const struct nc_request_files *files, enum nc_language language)
{
	for (size_t i = 0; i < files->count; i++) {
		const char *path = files->file[i].path, *test = strstr(path, "_test.go");

		if (nc_streq(path, "go.mod") ||
			(!strchr(path, '/') && nc_language_of_file(path) == language &&
				!(test && nc_streq(test, "_test.go"))))
			return true;
	}
	return false;
}

/* The compiler's words, with those of the request's files that belong to the program. */
static int fill_compile_argv(
	struct nc_execution *execution, const struct nc_step_state *step, const struct paths *paths)
{
	const struct nc_request_files *files = &execution->request.files;
	const struct nc_runtime *runtime = step->runtime;
	const char *words[NC_REQUEST_FILES_MAX + LIBRARIES_MAX];
	nc_buf_cleanup struct nc_buf text = NC_BUF(NC_REQUEST_FILES_MAX * (NC_PATH_MAX + 1U));
	const char *source = paths->source, *at;
	size_t n = 0, n_files = 0;

	if (runtime->sources == NC_SOURCES_DIR && has_package(files, runtime->language))
		source = ".";
	for (size_t i = 0; runtime->sources == NC_SOURCES_LIST && i < files->count; i++) {
		if (nc_language_of_file(files->file[i].path) != runtime->language)
			continue;
		nc_buf_addf(&text, "%s/%s%c", paths->workspace, files->file[i].path, '\0');
		n_files++;
	}
	if (text.error < 0)
		return text.error;
	for (at = nc_buf_text(&text); n < n_files; at += strlen(at) + 1)
		words[n++] = at;
	for (const char *const *library = runtime->libraries; library && *library; library++)
		words[n++] = *library;
	return nc_runtime_argv(runtime->compile.argv, source, paths->program,
		(char *const *)(uintptr_t)words, n, &execution->argv.buf, &execution->argv.count);
}

/* The run's own words, and those that hold the interpreter behind its name. */
static int fill_run_argv(struct nc_execution *execution, const struct nc_step_state *step,
	const struct paths *paths, const struct nc_request_words *args)
{
	const char *const *template = step->run_argv ? step->run_argv : step->runtime->run.argv;
	const char *words[NC_NODE_FLAGS_MAX + RUN_WORDS_MAX + 1] = {NULL};
	size_t n = 0;

	words[n++] = *template ++;
	for (const char *const *flag = step->node_flags; *flag; flag++)
		words[n++] = *flag;
	while (*template && n < sizeof(words) / sizeof(words[0]) - 1)
		words[n++] = *template ++;
	assert(!*template);
	return fill_argv(execution, words, paths, args);
}

/* Makes a place behind what the stream has, for what is not copied into it. */
static void put_insert(struct nc_execution *execution, const struct nc_insert *insert)
{
	struct nc_insert *more = reallocarray(
		execution->inserts, execution->n_inserts + 1, sizeof(*execution->inserts));

	if (!more) {
		execution->stream.error = -ENOMEM;
		return;
	}
	execution->inserts = more;
	more[execution->n_inserts] = *insert;
	more[execution->n_inserts++].at = execution->stream.size;
}

/* Large files are not copied into the stream, where it may be read piece by piece. */
static void put_file(struct nc_execution *execution, const struct nc_stage *stage, const char *path,
	const char *data, size_t size, bool executable)
{
	bool is_large = puts_files(stage) && size >= INSERT_MIN;

	nc_pack_add(&execution->stream, path, is_large ? NULL : data, size, executable);
	if (is_large)
		put_insert(execution, &(struct nc_insert){.data = data, .size = size});
}

/* The next bytes of one that is read from the request's body: none behind the last. */
static int read_cut(struct nc_execution *execution, const struct nc_request_file *file, bool begin,
	const char **ret_data, size_t *ret_size)
{
	size_t at;

	if (begin) {
		if (!execution->reader)
			execution->reader = malloc(sizeof(*execution->reader));
		if (!execution->reader)
			return -ENOMEM;
		nc_cut_begin(
			execution->reader, execution->request.cuts, file->cut, file->cut_base64);
	}
	return nc_cut_next(execution->reader, ret_data, ret_size, &at);
}

static void put_cut(struct nc_execution *execution, const struct nc_stage *stage,
	const struct nc_request_file *file)
{
	struct nc_buf *stream = &execution->stream;
	const char *data;
	size_t size = 0;
	bool begin = true;

	nc_pack_add(stream, file->path, NULL, file->size, file->executable);
	if (puts_files(stage)) {
		put_insert(execution, &(struct nc_insert){.cut = file});
		return;
	}
	do {
		int r = read_cut(execution, file, begin, &data, &size);

		if (r < 0)
			stream->error = r;
		else
			nc_buf_add(stream, data, size);
		begin = false;
	} while (stream->error == 0 && size > 0);
}

/* A part that is read from the request's body is several. */
static bool next_piece(struct nc_execution *execution, const struct nc_request_file *cut,
	const char **ret_data, size_t *ret_size)
{
	bool begin = !execution->is_inserting;

	execution->is_inserting =
		read_cut(execution, cut, begin, ret_data, ret_size) == 0 && *ret_size > 0;
	return execution->is_inserting;
}

/* The parts of the stream that goes into a box: in turn what was written, and what belongs behind
 * it. */
static bool next_part(void *context, const char **ret_data, size_t *ret_size)
{
	struct nc_execution *execution = context;
	const struct nc_buf *stream = &execution->stream;
	const struct nc_insert *inserts = execution->inserts;
	const size_t part = execution->inserted, i = part / 2;
	const size_t from = i > 0 ? inserts[i - 1].at : 0;

	if (part > 2 * execution->n_inserts)
		return false;
	if (part % 2 == 1 && inserts[i].cut &&
		next_piece(execution, inserts[i].cut, ret_data, ret_size))
		return true;
	execution->inserted++;
	if (part % 2 == 1 && inserts[i].cut)
		return next_part(context, ret_data, ret_size);
	if (part % 2 == 1) {
		*ret_data = inserts[i].data;
		*ret_size = inserts[i].size;
	} else {
		*ret_data = nc_buf_text(stream) + from;
		*ret_size = (i < execution->n_inserts ? inserts[i].at : stream->size) - from;
	}
	return true;
}

/* The request's files, and the code of one step to be compiled or of all to be run. */
static int fill_stream(struct nc_execution *execution, const struct nc_stage *stage)
{
	const struct nc_request *request = &execution->request;
	struct nc_buf *stream = &execution->stream;
	bool build = is_build(stage, execution);
	const struct nc_buf *trusted = nc_access_trusted(execution->reach);
	const struct nc_step_state *hooked = stage->kind == NC_STAGE_HOOK
						     ? &execution->step[stage->step]
					     : build ? NULL
						     : &execution->step[0];

	stream->max = NC_REQUEST_FILES_SIZE_MAX + (size_t)NC_REQUEST_STEPS_MAX * NC_TAKEN_MAX +
		      STREAM_EXTRA;
	if (hooked && nc_hooks_has_file(hooked)) {
		struct nc_hook_places places;
		struct paths paths;

		find_paths(execution, hooked, &paths);
		places = hook_places(&paths);
		nc_hooks_put(execution, hooked, &places, stream);
	}
	for (size_t i = 0; brings_files(stage) && i < request->files.count; i++) {
		const struct nc_request_file *file = &request->files.file[i];

		if (file->cut)
			put_cut(execution, stage, file);
		else
			put_file(execution, stage, file->path, file->data, file->size,
				file->executable);
	}
	if (brings_files(stage) && !build && trusted)
		nc_pack_add(stream, NC_ACCESS_TRUSTED, trusted->data, trusted->size, false);
	for (size_t i = 0; brings_files(stage) && i < request->n_steps; i++) {
		const struct nc_step_state *step = &execution->step[i];

		if (build && i != stage->step)
			continue;
		if (build || !step->program)
			put_file(execution, stage, step->source, request->step[i].code,
				request->step[i].code_size, false);
		else
			put_file(execution, stage, nc_step_program_name(execution, step),
				step->program, step->program_size, true);
	}
	if (brings_files(stage) && !build && nc_decoys_wanted(execution->terms))
		nc_decoys_put(&execution->request.files, stream);
	nc_pack_end(stream);
	return stream->error;
}

/* Words for nacre-files, which finds itself. */
static void files_words(struct nc_execution *execution, const struct nc_stage *stage)
{
	const struct nc_request_words *patterns = &execution->request.capture;
	char bytes[32], files[32];

	nc_word_add(&execution->argv, "nacre-files");
	execution->exec.files = true;
	if (stage->kind == NC_STAGE_LOOK) {
		nc_decoys_words(&execution->request.files, &execution->argv);
		return;
	}
	nc_word_add(&execution->argv, puts_files(stage) ? "put" : "get");
	if (puts_files(stage))
		return;
	(void)snprintf(bytes, sizeof(bytes), "%u", NC_TAKEN_MAX);
	(void)snprintf(files, sizeof(files), "%u", NC_CAPTURE_FILES_MAX);
	nc_word_add(&execution->argv, bytes);
	nc_word_add(&execution->argv, files);
	if (stage->kind == NC_STAGE_FETCH)
		nc_word_add(&execution->argv,
			nc_step_program_name(execution, &execution->step[stage->step]));
	for (size_t i = 0; stage->kind == NC_STAGE_CAPTURE && i < patterns->count; i++)
		nc_word_add(&execution->argv, patterns->words[i]);
}

/* Of the time for all steps together; a moment at least, so that it is seen to be up. */
static uint64_t time_left(const struct nc_execution *execution)
{
	uint64_t used_ms = 0;

	for (size_t i = 0; i < execution->request.n_steps; i++)
		used_ms += execution->step[i].end.usage.wall_ns / 1000000;
	return execution->limits.wall_ms > used_ms ? execution->limits.wall_ms - used_ms : 1;
}

/* Files are moved and compilers run by limits of their own; a disk has one size for all. */
static void stage_limits(struct nc_execution *execution, const struct nc_stage *stage)
{
	struct nc_box_limits *limits = &execution->exec.limits;
	const struct nc_request_step *wanted = &execution->request.step[stage->step];

	*limits = execution->limits;
	if (is_build(stage, execution)) {
		const struct nc_runtime_needs *needs =
			&execution->step[stage->step].runtime->compile.needs;

		limits->disk_bytes = needs->disk_mb * MB + NC_REQUEST_FILES_SIZE_MAX;
		limits->inodes = limits->disk_bytes / 4096 + 64;
		limits->memory_bytes = needs->memory_mb * MB;
		limits->pids = needs->processes;
		limits->wall_ms = needs->wall_seconds * 1000ULL;
		limits->cpu_time_ms = 0;
		limits->cpu_milli = 4000; /* a compiler that is waited for may have more */
		limits->open_files = 1024;
	}
	if (stage->kind == NC_STAGE_RUN) {
		limits->wall_ms = time_left(execution);
		if (wanted->wall_ms.given && wanted->wall_ms.value < limits->wall_ms)
			limits->wall_ms = wanted->wall_ms.value;
	}
	if (execution->exec.files || stage->kind == NC_STAGE_PROBE) {
		limits->memory_bytes = FILES_MEMORY + limits->disk_bytes;
		limits->cpu_milli = 1000;
		limits->cpu_time_ms = 0;
		limits->wall_ms = FILES_WALL_MS;
		limits->pids = 32;
		limits->open_files = 256;
	}
}

/* What leads the programs of a step to the packages; NULL: it has none. */
static const char *const *environment_words(
	const struct nc_execution *execution, const struct nc_step_state *step)
{
	if (execution->environment.dir_fd < 0 ||
		nc_installer_language(step->runtime->language) != execution->packages_language)
		return NULL;
	return nc_installer_of(execution->packages_language)->env;
}

/* What leads the compiler of a step to its cache; NULL: it has none. */
static const char *const *warmth_words(
	const struct nc_execution *execution, const struct nc_step_state *step)
{
	const struct nc_installer *warmer = nc_warmer_of(step->runtime->language);

	return warmer && execution->warmth.dir_fd >= 0 ? warmer->env : NULL;
}

static int fill_words(struct nc_execution *execution, const struct nc_stage *stage)
{
	const struct nc_request *request = &execution->request;
	struct nc_step_state *step =
		stage->step < request->n_steps ? &execution->step[stage->step] : NULL;
	const struct nc_request_pairs *const pairs[] = {
		&request->env, step ? &request->step[stage->step].env : NULL, NULL};
	struct paths paths;
	int r;

	find_paths(execution, step, &paths);
	/* what runs is one step's; files may be those of all */
	assert(step || stage->kind == NC_STAGE_PUT || stage->kind >= NC_STAGE_LOOK);
	switch (stage->kind) {
	case NC_STAGE_COMPILE:
		r = fill_compile_argv(execution, step, &paths);
		return r < 0 ? r
			     : fill_env(execution, &paths, NULL, step->runtime->compile.env,
				       warmth_words(execution, step), NULL);
	case NC_STAGE_PROBE:
		r = fill_argv(execution, step->runtime->version_argv, &paths, NULL);
		return r < 0 ? r
			     : fill_env(execution, &paths, NULL, NULL,
				       environment_words(execution, step), NULL);
	case NC_STAGE_RUN:
		r = fill_run_argv(execution, step, &paths, &request->step[stage->step].args);
		return r < 0 ? r
			     : fill_env(execution, &paths, step, step->runtime->run.env,
				       environment_words(execution, step), pairs);
	case NC_STAGE_PUT:
	case NC_STAGE_HOOK:
	case NC_STAGE_FETCH:
	case NC_STAGE_LOOK:
	case NC_STAGE_CAPTURE:
		break;
	}
	files_words(execution, stage);
	return 0;
}

static void add_layer(
	struct nc_execution *execution, const struct nc_stage *stage, struct nc_command_spec *spec)
{
	bool build = is_build(stage, execution);
	const struct nc_environment *shown = build ? &execution->warmth : &execution->environment;

	if (shown->dir_fd < 0 || (build && !warmth_words(execution, &execution->step[stage->step])))
		return;
	execution->exec.n_layers = 1;
	spec->layer_fd[0] = shown->layer_fd;
}

static void reset(struct nc_execution *execution)
{
	nc_buf_done(&execution->argv.buf);
	nc_buf_done(&execution->env.buf);
	nc_buf_done(&execution->stream);
	nc_freep(&execution->inserts);
	nc_freep(&execution->reader);
	execution->n_inserts = execution->inserted = 0;
	execution->is_inserting = false;
	nc_buf_done(&execution->said);
	execution->argv = execution->env = (struct nc_word_list)NC_WORD_LIST;
	execution->said = (struct nc_buf)NC_BUF(64U * 1024);
}

enum nc_tier nc_execution_tier(const struct nc_execution *execution)
{
	return is_build(&execution->stages[execution->at], execution) ? NC_TIER_CONTAINER
								      : execution->tier;
}

int nc_execution_order(struct nc_execution *execution, struct nc_command_spec *spec)
{
	const struct nc_engine_setup *setup = nc_engine_setup(execution->engine);
	const struct nc_stage *stage = &execution->stages[execution->at];
	struct nc_wish unnamed = {.names = execution->wish.names};
	struct nc_exec_spec *exec = &execution->exec;
	struct nacre_err err = {0};
	int r;

	reset(execution);
	*exec = (struct nc_exec_spec){.id = execution->box_id,
		.tier = nc_execution_tier(execution),
		.stays = !stage->last};
	/* what is billed is what the spawner bears witness of under its name */
	if (stage->kind == NC_STAGE_RUN || stage->kind == NC_STAGE_COMPILE)
		(void)snprintf(exec->name, sizeof(exec->name), "%s%s", execution->id,
			stage->kind == NC_STAGE_RUN ? "" : NC_BOX_OF_COMPILER);
	memcpy(unnamed.floor, execution->wish.floor, sizeof(unnamed.floor));
	r = nc_settle(setup->holder, stage->kind == NC_STAGE_RUN ? &execution->wish : &unnamed,
		exec, &err);
	if (r < 0)
		return nc_execution_fail(execution, "internal_error", "%s", err.message);
	for (size_t i = 0;
		stage->first && !is_build(stage, execution) && i < execution->request.binds.count;
		i++)
		nc_binds_show(setup->binds, execution->request.binds.words[i], exec);
	r = fill_words(execution, stage);
	if (r == 0 && (puts_files(stage) || stage->packs))
		r = fill_stream(execution, stage);
	if (r == 0)
		r = execution->argv.buf.error < 0 ? execution->argv.buf.error
						  : execution->env.buf.error;
	if (r < 0)
		return nc_execution_fail(execution, "error",
			"Arguments, environment or files do not fit: %s", nc_errno_text(r));
	stage_limits(execution, stage);
	/* no layer above what nobody needs */
	exec->alone = stage->kind == NC_STAGE_RUN && execution->tier == NC_TIER_PROCESS &&
		      execution->alone;
	if (stage->first && stage->kind == NC_STAGE_RUN && nc_exec_is_neutral(exec) &&
		!execution->reach && execution->environment.dir_fd < 0 && !execution->took &&
		!execution->retried)
		exec->warm = nc_pool_choose(nc_engine_pool(execution->engine), execution);
	exec->door = stage->first && !is_build(stage, execution) && execution->reach;
	exec->guests = exec->door && nc_access_has_guests(execution->reach);
	/* what compilers are shown is what the key of their program covers: a cache that was made
	 * by the compiler alone is no more than that */
	if (stage->first)
		add_layer(execution, stage, spec);
	exec->argv = nc_word_view(&execution->argv);
	exec->env = nc_word_view(&execution->env);
	spec->exec = exec;
	spec->next = !stage->first || execution->took;
	spec->image_fd = spec->input_fd = -EBADF;
	spec->output_max = stage->kind == NC_STAGE_RUN ? execution->output_max : UINT64_MAX;
	if (stage->packs) {
		spec->pack = execution->stream.data;
		spec->pack_size = execution->stream.size;
	}
	if (puts_files(stage)) {
		(void)next_part(execution, &spec->input, &spec->input_size);
		spec->more = next_part;
	} else if (stage->kind == NC_STAGE_RUN) {
		const struct nc_buf *input = &execution->step[stage->step].input;

		spec->input = input->size > 0 ? input->data : NULL;
		spec->input_size = input->size;
		spec->input_fd =
			stage->step == 0 && input->size == 0 ? execution->input_fd : -EBADF;
	}
	return 0;
}
