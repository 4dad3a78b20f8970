/* Help texts and the completion script, from the tables of verbs and options. */
#include <string.h>

#include "cli/cli.h"

/* Where the second column begins. */
#define COLUMN 24

static void print_entry(FILE *out, const char *left, const char *right)
{
	fprintf(out, "  %-*s %s\n", COLUMN - 3, left, right);
}

static void print_options(FILE *out, const struct nc_option *option)
{
	for (; option && option->name; option++) {
		char left[64];
		char letter[8] = "";

		if (option->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", option->letter);
		(void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
			option->value ? " " : "", option->value ? option->value : "");
		print_entry(out, left, option->help);
	}
}

void nc_help_print(FILE *out, const struct nc_call *call)
{
	const struct nc_verb *verb = nc_call_verb(call);

	fputs("Usage:", out);
	for (size_t i = 0; i < call->depth; i++)
		fprintf(out, " %s", call->chain[i]->name);
	fprintf(out, " [OPTION...]%s%s\n\n%s\n", *verb->arguments ? " " : "", verb->arguments,
		verb->details);
	if (verb->verbs) {
		fputs("\nVerbs:\n", out);
		for (const struct nc_verb *const *sub = verb->verbs; *sub; sub++)
			print_entry(out, (*sub)->name, (*sub)->summary);
	}
	fputs("\nOptions:\n", out);
	for (size_t i = call->depth; i-- > 0;)
		print_options(out, call->chain[i]->options);
	fprintf(out, "\nExample:\n  %s\n", verb->example);
}

static void print_words(FILE *out, const struct nc_verb *verb, const struct nc_verb *root)
{
	const struct nc_option *tables[] = {verb->options, root->options};

	for (const struct nc_verb *const *sub = verb->verbs; sub && *sub; sub++)
		fprintf(out, " %s", (*sub)->name);
	for (size_t i = 0; i < (verb == root ? 1U : 2U); i++)
		for (const struct nc_option *option = tables[i]; option && option->name; option++)
			fprintf(out, " --%s", option->name);
}

/* A case of the script for the verb and each one below: after the words in path, these may come. */
static void print_cases(
	FILE *out, const char *path, const struct nc_verb *verb, const struct nc_verb *root)
{
	fprintf(out, "\t\"%s\") words=\"", path);
	print_words(out, verb, root);
	fputs("\" ;;\n", out);
	for (const struct nc_verb *const *sub = verb->verbs; sub && *sub; sub++) {
		char below[128];

		(void)snprintf(below, sizeof(below), "%s %s", path, (*sub)->name);
		print_cases(out, below, *sub, root);
	}
}

void nc_completion_print(FILE *out, const struct nc_verb *root)
{
	fputs("# bash completion for nacre, made by: nacre completion bash\n"
	      "_nacre() {\n"
	      "\tlocal word path='' words=''\n"
	      "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
	      "\t\t[[ $word == -* ]] || path=\"$path $word\"\n"
	      "\tdone\n"
	      "\tif [[ ${COMP_WORDS[COMP_CWORD-1]} == --config ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -d -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tcase $path in\n",
		out);
	print_cases(out, "", root, root);
	fputs("\tesac\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
	      "}\n"
	      "complete -o default -F _nacre nacre\n",
		out);
}
