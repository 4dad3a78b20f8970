/* nacre: the command line. Finds the verb, loads the configuration, runs it, reports its error. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/answer_json.h"
#include "cli/cli.h"
#include "cli/upgrade.h"

static bool arg_help;
static bool arg_version;
static const char *arg_config, *arg_server;

static const struct nc_option root_options[] = {
	{.name = "config",
		.value = "DIR",
		.help = "Read the configuration from DIR",
		.text = &arg_config},
	{.name = "help", .letter = 'h', .help = "Print this help", .flag = &arg_help},
	{.name = "server",
		.value = "URL",
		.help = "Work with the nacre serve that is there",
		.text = &arg_server},
	{.name = "version", .letter = 'V', .help = "Print the version", .flag = &arg_version},
	{0},
};

static const struct nc_verb *const root_verbs[] = {
	&nc_verb_doctor,
	&nc_verb_exec,
	&nc_verb_env,
	&nc_verb_check,
	&nc_verb_policy,
	&nc_verb_history,
	&nc_verb_audit,
	&nc_verb_image,
	&nc_verb_key,
	&nc_verb_run,
	&nc_verb_serve,
	&nc_verb_ps,
	&nc_verb_logs,
	&nc_verb_kill,
	&nc_verb_shell,
	&nc_verb_cp,
	&nc_verb_top,
	&nc_verb_config,
	&nc_verb_completion,
	&nc_verb_engine,
	NULL,
};

const struct nc_verb nc_verb_root = {
	.name = "nacre",
	.summary = "",
	.arguments = "VERB",
	.details = "Runs code that nobody trusts inside as many layers as its risk asks for.",
	.example = "nacre doctor",
	.options = root_options,
	.verbs = root_verbs,
};

/* A word on NO_COLOR: any value that is not empty means no colours (no-color.org). */
static bool wants_color(const struct nc_config *config)
{
	const char *no_color = getenv("NO_COLOR");
	const char *terminal = getenv("TERM");

	switch ((enum nc_color)config->main.color.number) {
	case NC_COLOR_ALWAYS:
		return !(no_color && *no_color);
	case NC_COLOR_NEVER:
	case NC_COLOR_MAX:
		return false;
	case NC_COLOR_AUTO:
		break;
	}
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(terminal && nc_streq(terminal, "dumb"));
}

static int check_words(const struct nc_call *call, struct nacre_err *err)
{
	const struct nc_verb *verb = nc_call_verb(call);
	char quoted[NC_TEXT_QUOTED_MAX];

	if (verb->verbs)
		return nc_err_set(err, -EINVAL, "Name a verb");
	if (call->n_words > verb->max_words)
		return nc_err_set(err, -EINVAL, "Unexpected argument %s",
			nc_text_quote(quoted, call->words[verb->max_words]));
	return 0;
}

static int run_call(const struct nc_call *call, struct nacre_err *err)
{
	const struct nc_verb *verb = nc_call_verb(call);
	cleanup_config struct nc_config config = {0};
	struct nc_cli cli = {.config = &config, .config_dir = arg_config, .server = arg_server};
	int r = check_words(call, err);

	if (r == 0 && arg_server && !verb->takes_server)
		r = nc_err_set(err, -EINVAL, "Option '--server': this works here alone, not there");
	if (r == 0 && !verb->without_config) {
		r = nc_config_load(&config, arg_config, err);
		if (r == 0) {
			nc_log_setup(STDERR_FILENO, (enum nc_log_level)config.main.log.level.number,
				(enum nc_log_format)config.main.log.format.number);
			cli.color = wants_color(&config);
		}
	}
	if (r == 0)
		r = verb->run(&cli, call->n_words, call->words, err);
	/* a full disk behind standard output must not look like success */
	if (r >= 0 && (fflush(stdout) == EOF || ferror(stdout)))
		r = nc_err_errno(err, errno ? -errno : -EIO, "Write to standard output");
	return r;
}

static bool is_said(int argc, char **argv, const char *word)
{
	for (int at = 1; at < argc && !nc_streq(argv[at], "--"); at++)
		if (nc_streq(argv[at], word))
			return true;
	return false;
}

/* Whether the caller wants JSON: it was said, or stands behind what could not be understood. */
static bool wants_json(const struct nc_call *call, int argc, char **argv)
{
	for (size_t i = 0; i < call->depth; i++)
		for (const struct nc_option *option = call->chain[i]->options;
			option && option->name; option++)
			if (nc_streq(option->name, "json"))
				return *option->flag || is_said(argc, argv, "--json");
	/* of a verb that is none nobody knows whether it would have it */
	return nc_call_verb(call)->verbs && is_said(argc, argv, "--json");
}

/* Says what was wrong, to people and, if it was asked for, to programs; the exit code. */
static int report(const struct nc_call *call, const struct nacre_err *err, bool json)
{
	int code = nc_call_report(call, err);
	char help[128] = "nacre";

	for (size_t i = 1; i < call->depth; i++)
		(void)snprintf(help + strlen(help), sizeof(help) - strlen(help), " %s",
			call->chain[i]->name);
	(void)snprintf(help + strlen(help), sizeof(help) - strlen(help), " --help");
	if (json && err->message[0])
		nc_answer_error(err->message, code, err->code == -EINVAL ? help : NULL);
	return code;
}

/* Whatever we open must not land where programs look for their standard streams. */
static bool fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

int main(int argc, char **argv)
{
	struct nc_call call = {0};
	struct nacre_err err = {0};
	int r;

	if (!fill_standard_streams()) {
		fputs("nacre: /dev/null cannot be opened\n", stderr);
		return NC_EXIT_SELF;
	}
	nc_upgrade_follow(argv);
	nc_json_wipe();
	r = nc_call_parse(&nc_verb_root, argc, argv, &call, &err);

	if (r < 0)
		return report(&call, &err, wants_json(&call, argc, argv));
	if (arg_version) {
		puts("nacre " NACRE_VERSION);
		return fflush(stdout) == EOF ? NC_EXIT_SELF : NC_EXIT_OK;
	}
	if (arg_help) {
		nc_help_print(stdout, &call);
		return fflush(stdout) == EOF ? NC_EXIT_SELF : NC_EXIT_OK;
	}
	r = run_call(&call, &err);
	return r < 0 ? report(&call, &err, wants_json(&call, 0, argv)) : r;
}
