/* The public history: read by the program nacre, which gives up its rights before it does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "library/execute.h"
#include "library/program.h"

/* What a hundred thousand records take, and more. */
#define ANSWER_MAX (256U << 20)

int nacre_engine_history(const struct nacre_engine_options *options, size_t limit,
	char **ret_history, struct nacre_err *err)
{
	struct nacre_engine_options all = {0};
	const char *words[8] = {"nacre", "history", "--json", "--limit"};
	char number[24];
	size_t n = 4;

	if (!ret_history)
		return nc_null_pointer(err);
	if (options)
		memcpy(&all, options, options->size < sizeof(all) ? options->size : sizeof(all));
	(void)snprintf(number, sizeof(number), "%zu", limit ? limit : 100);
	words[n++] = number;
	if (all.config_dir) {
		words[n++] = "--config";
		words[n++] = all.config_dir;
	}
	return nc_program_ask(all.program, words, ANSWER_MAX, ret_history, err);
}
