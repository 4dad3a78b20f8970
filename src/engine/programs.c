/*
 * Compiled programs that are kept.
 *
 * A key covers whose it is and everything that the program is made from: language, compiler (which
 * file it is, and when that was changed), words and environment of the compilation, source and
 * files. So whoever has hostile code compiled can only put a hostile program behind the key of that
 * code.
 */
#include "engine/programs.h"

#include "engine/keep.h"
#include "engine/owner.h"

#define KIND "programs"

static void add_words(struct nc_digest *digest, const char *const *words)
{
	for (; words && *words; words++)
		nc_digest_text(digest, *words);
	nc_digest_text(digest, "");
}

static void make_key(const struct nc_execution *execution, struct nc_step_state *step)
{
	const struct nc_request_step *wanted = &execution->request.step[step - execution->step];
	const struct nc_request_files *files = &execution->request.files;
	const struct nc_runtime_step *compile = &step->runtime->compile;
	struct nc_digest *digest = nc_owner_digest(NC_STORE_PROGRAMS, execution->request.tenant);

	nc_digest_text(digest, NACRE_VERSION);
	nc_digest_text(digest, step->runtime->name);
	nc_digest_program(digest, compile->argv[0]);
	add_words(digest, compile->argv);
	add_words(digest, step->runtime->libraries);
	add_words(digest, compile->env);
	nc_digest_text(digest, step->source);
	nc_digest_add(digest, wanted->code, wanted->code_size);
	for (size_t i = 0; i < files->count; i++) {
		nc_digest_text(digest, files->file[i].path);
		if (files->file[i].cut) /* its size alone is no text's: nothing else is like it */
			nc_digest_add(digest, files->file[i].cut_digest, NC_SHA256_HEX_SIZE);
		else
			nc_digest_add(digest, files->file[i].data, files->file[i].size);
		nc_digest_add(digest, &files->file[i].executable, sizeof(bool));
	}
	nc_digest_end(digest, step->key);
}

void nc_programs_find(struct nc_execution *execution)
{
	int cache_fd = nc_engine_setup(execution->engine)->cache_fd;

	for (size_t i = 0; i < execution->request.n_steps; i++) {
		struct nc_step_state *step = &execution->step[i];

		if (!step->runtime->compile.argv)
			continue;
		make_key(execution, step);
		step->from_cache = nc_keep_read(cache_fd, KIND, step->key, NC_TAKEN_MAX,
					   &step->program, &step->program_size) == 0;
	}
}

void nc_programs_keep(const struct nc_execution *execution, const struct nc_step_state *step)
{
	nc_keep_write(nc_engine_setup(execution->engine)->cache_fd, KIND, step->key, step->program,
		step->program_size);
}
