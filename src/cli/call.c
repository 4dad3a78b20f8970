/* Reading the command line by the tables of verbs and options. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"

static const struct nc_option *find_long(
	const struct nc_call *call, const char *name, size_t size, struct nc_nearest *nearest)
{
	for (size_t i = call->depth; i-- > 0;) {
		const struct nc_option *option = call->chain[i]->options;

		for (; option && option->name; option++) {
			if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
				return option;
			nc_nearest_offer(nearest, option->name);
		}
	}
	return NULL;
}

static const struct nc_option *find_letter(const struct nc_call *call, char letter)
{
	for (size_t i = call->depth; i-- > 0;) {
		const struct nc_option *option = call->chain[i]->options;

		for (; option && option->name; option++)
			if (option->letter == letter)
				return option;
	}
	return NULL;
}

static int unknown_option(const char *word, const struct nc_nearest *nearest, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	nc_text_quote(quoted, word);
	if (nearest->best)
		return nc_err_set(err, -EINVAL, "Unknown option %s, did you mean '--%s'?", quoted,
			nearest->best);
	return nc_err_set(err, -EINVAL, "Unknown option %s", quoted);
}

/* Takes the option at argv[*at] and its value, which may be the next word. */
static int take_option(
	const struct nc_call *call, int argc, char **argv, int *at, struct nacre_err *err)
{
	const char *word = argv[*at];
	const char *name = nc_text_after(word, "--");
	const char *value = NULL;
	char plain[64] = "";
	struct nc_nearest nearest = {.word = plain};
	const struct nc_option *option;

	if (name) {
		size_t size = strcspn(name, "=");

		if (size < sizeof(plain))
			memcpy(plain, name, size);
		value = name[size] == '=' ? name + size + 1 : NULL;
		option = find_long(call, name, size, &nearest);
	} else {
		option = word[2] == '\0' ? find_letter(call, word[1]) : NULL;
	}
	if (!option)
		return unknown_option(word, &nearest, err);
	if (option->flag) {
		if (value)
			return nc_err_set(
				err, -EINVAL, "Option '--%s' takes no value", option->name);
		*option->flag = true;
		return 0;
	}
	if (!value && *at + 1 < argc)
		value = argv[++*at];
	if (!value)
		return nc_err_set(err, -EINVAL, "Option '--%s' needs a value: --%s %s",
			option->name, option->name, option->value);
	if (!option->words) {
		*option->text = value;
	} else {
		if (option->words->count == NC_WORDS_MAX)
			return nc_err_set(err, -EINVAL, "Option '--%s' is given more than %d times",
				option->name, NC_WORDS_MAX);
		option->words->words[option->words->count++] = value;
	}
	return 0;
}

static int take_verb(struct nc_call *call, const char *word, struct nacre_err *err)
{
	struct nc_nearest nearest = {.word = word};
	char quoted[NC_TEXT_QUOTED_MAX];

	for (const struct nc_verb *const *verb = nc_call_verb(call)->verbs; *verb; verb++) {
		if (nc_streq((*verb)->name, word)) {
			assert(call->depth < NC_CALL_DEPTH);
			call->chain[call->depth++] = *verb;
			return 0;
		}
		nc_nearest_offer(&nearest, (*verb)->name);
	}
	nc_text_quote(quoted, word);
	if (nearest.best)
		return nc_err_set(
			err, -EINVAL, "Unknown verb %s, did you mean '%s'?", quoted, nearest.best);
	return nc_err_set(err, -EINVAL, "Unknown verb %s", quoted);
}

int nc_call_parse(const struct nc_verb *root, int argc, char **argv, struct nc_call *call,
	struct nacre_err *err)
{
	bool options = true;
	int r = 0;

	*call = (struct nc_call){.chain = {root}, .depth = 1, .words = argv};
	for (int i = 1; r == 0 && i < argc; i++) {
		if (options && nc_streq(argv[i], "--"))
			options = false;
		else if (options && argv[i][0] == '-' && argv[i][1] != '\0')
			r = take_option(call, argc, argv, &i, err);
		else if (nc_call_verb(call)->verbs)
			r = take_verb(call, argv[i], err);
		else {
			/* words move to the front of argv, over what has been read */
			argv[call->n_words++] = argv[i];
			options = options && !nc_call_verb(call)->is_command;
		}
	}
	return r;
}

int nc_call_report(const struct nc_call *call, const struct nacre_err *err)
{
	if (!err->message[0]) /* somebody else has said it */
		return NC_EXIT_SELF;
	fputs("nacre", stderr);
	for (size_t i = 1; i < call->depth; i++)
		nc_say(stderr, " %s", call->chain[i]->name);
	nc_say(stderr, ": %s\n", err->message);
	if (err->code == -EINVAL) {
		fputs("Try: nacre", stderr);
		for (size_t i = 1; i < call->depth; i++)
			nc_say(stderr, " %s", call->chain[i]->name);
		fputs(" --help\n", stderr);
	}
	return NC_EXIT_SELF;
}
