/* nacre completion: the script that teaches a shell our verbs and options. */
#include <errno.h>

#include "base/text.h"
#include "cli/cli.h"

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	(void)cli;
	if (n_words != 1)
		return nc_err_set(err, -EINVAL, "Name the shell: nacre completion bash");
	if (!nc_streq(words[0], "bash"))
		return nc_err_set(err, -EINVAL, "No completion for %s, only for bash",
			nc_text_quote(quoted, words[0]));
	nc_completion_print(stdout, &nc_verb_root);
	return NC_EXIT_OK;
}

const struct nc_verb nc_verb_completion = {
	.name = "completion",
	.summary = "Print the completion script for a shell",
	.arguments = "bash",
	.details = "Prints a script that lets bash complete the verbs and options of nacre.",
	.example = "source <(nacre completion bash)",
	.max_words = 1,
	.without_config = true,
	.run = run,
};
