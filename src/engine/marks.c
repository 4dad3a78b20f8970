/* Marks: words and signs by which a language shows. */
#include "engine/marks.h"

#include <ctype.h>
#include <string.h>

#include "base/span.h"

/* What is not told by so much of a program is not told by the rest. */
#define LOOKED_AT_MAX (64U * 1024)

enum where {
	ANYWHERE,
	AT_START, /* of a line, behind blanks */
	BLOCK,	  /* at the start of a line that ends in a colon */
	COMMAND,  /* at the start of a line, before a blank or the end, and not assigned to */
};

struct mark {
	const char *text;
	enum where where;
	bool needed; /* a program has one of these, or is not of the language */
};

static const struct mark python_marks[] = {
	{"import ", AT_START},
	{"from ", AT_START},
	{"def ", AT_START},
	{"async def ", AT_START},
	{"class ", BLOCK},
	{"elif ", BLOCK},
	{"except", BLOCK},
	{"if ", BLOCK},
	{"for ", BLOCK},
	{"while ", BLOCK},
	{"with ", BLOCK},
	{"match ", BLOCK},
	{"else", BLOCK},
	{"try", BLOCK},
	{"raise", AT_START},
	{"assert ", AT_START},
	{"pass", AT_START},
	{"print(", ANYWHERE},
	{"input(", ANYWHERE},
	{"len(", ANYWHERE},
	{"range(", ANYWHERE},
	{"sorted(", ANYWHERE},
	{"sum(", ANYWHERE},
	{"str(", ANYWHERE},
	{"int(", ANYWHERE},
	{"list(", ANYWHERE},
	{"dict(", ANYWHERE},
	{"zip(", ANYWHERE},
	{"enumerate(", ANYWHERE},
	{"isinstance(", ANYWHERE},
	{"getattr(", ANYWHERE},
	{"open(", ANYWHERE},
	{"exec(", ANYWHERE},
	{"__import__(", ANYWHERE},
	{"lambda ", ANYWHERE},
	{"None", ANYWHERE},
	{"True", ANYWHERE},
	{"False", ANYWHERE},
	{"self.", ANYWHERE},
	{"__name__", ANYWHERE},
	{"f\"", ANYWHERE},
	{"f'", ANYWHERE},
	{" not in ", ANYWHERE},
	{NULL},
};

static const struct mark javascript_marks[] = {
	{"const ", AT_START},
	{"let ", AT_START},
	{"var ", AT_START},
	{"function ", AT_START},
	{"async function", AT_START},
	{"import ", AT_START},
	{"export ", AT_START},
	{"class ", AT_START},
	{"await ", AT_START},
	{"throw new ", AT_START},
	{"'use strict'", AT_START},
	{"\"use strict\"", AT_START},
	{"console.", ANYWHERE},
	{"process.", ANYWHERE},
	{"require(", ANYWHERE},
	{"function(", ANYWHERE},
	{"function (", ANYWHERE},
	{"JSON.", ANYWHERE},
	{"Math.", ANYWHERE},
	{"Promise", ANYWHERE},
	{"document.", ANYWHERE},
	{"globalThis", ANYWHERE},
	{"undefined", ANYWHERE},
	{"null", ANYWHERE},
	{"typeof ", ANYWHERE},
	{"new ", ANYWHERE},
	{"=>", ANYWHERE},
	{"===", ANYWHERE},
	{"!==", ANYWHERE},
	{".length", ANYWHERE},
	{NULL},
};

static const struct mark typescript_marks[] = {
	{"interface ", AT_START, true},
	{"type ", AT_START, true},
	{"enum ", AT_START, true},
	{"declare ", AT_START, true},
	{"namespace ", AT_START, true},
	{"abstract class ", AT_START, true},
	{"import type ", AT_START, true},
	{"export interface ", AT_START, true},
	{"export type ", AT_START, true},
	{"export enum ", AT_START, true},
	{": string", ANYWHERE, true},
	{": number", ANYWHERE, true},
	{": boolean", ANYWHERE, true},
	{": void", ANYWHERE, true},
	{": any", ANYWHERE, true},
	{": unknown", ANYWHERE, true},
	{": never", ANYWHERE, true},
	{": Promise<", ANYWHERE, true},
	{": Array<", ANYWHERE, true},
	{"Record<", ANYWHERE, true},
	{"<string>", ANYWHERE, true},
	{"<number>", ANYWHERE, true},
	{"<string, ", ANYWHERE, true},
	{"<T>", ANYWHERE, true},
	{" as const", ANYWHERE, true},
	{" as string", ANYWHERE, true},
	{" as any", ANYWHERE, true},
	{"implements ", ANYWHERE, true},
	{"readonly ", ANYWHERE, true},
	{"private ", ANYWHERE, true},
	{NULL},
};

static const struct mark shell_marks[] = {
	{"if [", AT_START},
	{"while [", AT_START},
	{"until ", AT_START},
	{"[ ", AT_START},
	{"[[ ", AT_START},
	{"fi", COMMAND},
	{"done", COMMAND},
	{"esac", COMMAND},
	{"then", COMMAND},
	{"do", COMMAND},
	{"; then", ANYWHERE},
	{"; do", ANYWHERE},
	{"$(", ANYWHERE},
	{"\"$", ANYWHERE},
	{"=$", ANYWHERE},
	{"<<EOF", ANYWHERE},
	{"<<'EOF'", ANYWHERE},
	{">/dev/null", ANYWHERE},
	{"2>&1", ANYWHERE},
	{"echo", COMMAND},
	{"printf", COMMAND},
	{"cd", COMMAND},
	{"ls", COMMAND},
	{"cat", COMMAND},
	{"grep", COMMAND},
	{"sed", COMMAND},
	{"awk", COMMAND},
	{"find", COMMAND},
	{"sort", COMMAND},
	{"head", COMMAND},
	{"tail", COMMAND},
	{"wc", COMMAND},
	{"mkdir", COMMAND},
	{"rm", COMMAND},
	{"cp", COMMAND},
	{"mv", COMMAND},
	{"ln", COMMAND},
	{"touch", COMMAND},
	{"chmod", COMMAND},
	{"tar", COMMAND},
	{"curl", COMMAND},
	{"wget", COMMAND},
	{"git", COMMAND},
	{"pip", COMMAND},
	{"npm", COMMAND},
	{"make", COMMAND},
	{"python3", COMMAND},
	{"node", COMMAND},
	{"seq", COMMAND},
	{"sleep", COMMAND},
	{"date", COMMAND},
	{"pwd", COMMAND},
	{"whoami", COMMAND},
	{"uname", COMMAND},
	{"id", COMMAND},
	{"ps", COMMAND},
	{"df", COMMAND},
	{"du", COMMAND},
	{"env", COMMAND},
	{"export", COMMAND},
	{"local", COMMAND},
	{"read", COMMAND},
	{"set", COMMAND},
	{"shift", COMMAND},
	{"source", COMMAND},
	{"trap", COMMAND},
	{"exit", COMMAND},
	{"sudo", COMMAND},
	{"bash", COMMAND},
	{"sh", COMMAND},
	{"eval", COMMAND},
	{"exec", COMMAND},
	{"command", COMMAND},
	{"nohup", COMMAND},
	{"xargs", COMMAND},
	{"tee", COMMAND},
	{"cut", COMMAND},
	{"tr", COMMAND},
	{"diff", COMMAND},
	{"dd", COMMAND},
	{"kill", COMMAND},
	{"nc", COMMAND},
	{"ssh", COMMAND},
	{"mount", COMMAND},
	{"chown", COMMAND},
	{"crontab", COMMAND},
	{"apt-get", COMMAND},
	{"docker", COMMAND},
	{"timeout", COMMAND},
	{"unset", COMMAND},
	{"declare", COMMAND},
	{"wait", COMMAND},
	{"test", COMMAND},
	{NULL},
};

static const struct mark go_marks[] = {
	{"package ", AT_START, true},
	{"func ", AT_START, true},
	{"import (", AT_START},
	{"import \"", AT_START},
	{"fmt.", ANYWHERE},
	{":=", ANYWHERE},
	{"nil", ANYWHERE},
	{"defer ", ANYWHERE},
	{"go func", ANYWHERE},
	{"chan ", ANYWHERE},
	{"struct {", ANYWHERE},
	{"range ", ANYWHERE},
	{NULL},
};

static const struct mark rust_marks[] = {
	{"fn ", ANYWHERE, true},
	{"let mut ", ANYWHERE},
	{"println!", ANYWHERE},
	{"vec!", ANYWHERE},
	{"format!", ANYWHERE},
	{"use ", AT_START},
	{"impl ", AT_START},
	{"impl<", AT_START},
	{"pub ", AT_START},
	{"mod ", AT_START},
	{"#[", AT_START},
	{"match ", ANYWHERE},
	{"&str", ANYWHERE},
	{"&mut ", ANYWHERE},
	{"Vec<", ANYWHERE},
	{"Some(", ANYWHERE},
	{".unwrap()", ANYWHERE},
	{"::", ANYWHERE},
	{"-> ", ANYWHERE},
	{NULL},
};

static const struct mark c_marks[] = {
	{"#include ", AT_START, true},
	{"#include<", AT_START, true},
	{"int main", AT_START, true},
	{"void main", AT_START, true},
	{"#define ", AT_START},
	{"int ", ANYWHERE},
	{"char ", ANYWHERE},
	{"void ", ANYWHERE},
	{"unsigned ", ANYWHERE},
	{"static ", AT_START},
	{"struct ", ANYWHERE},
	{"printf(", ANYWHERE},
	{"puts(", ANYWHERE},
	{"malloc(", ANYWHERE},
	{"sizeof(", ANYWHERE},
	{"NULL", ANYWHERE},
	{"return 0;", ANYWHERE},
	{NULL},
};

/* What C++ has and C does not; the rest is as in C. */
static const struct mark cpp_marks[] = {
	{"<iostream>", ANYWHERE, true},
	{"<vector>", ANYWHERE, true},
	{"<string>", ANYWHERE, true},
	{"<map>", ANYWHERE, true},
	{"<algorithm>", ANYWHERE, true},
	{"<memory>", ANYWHERE, true},
	{"using namespace ", AT_START, true},
	{"std::", ANYWHERE, true},
	{"template", AT_START, true},
	{"class ", AT_START, true},
	{"#include ", AT_START},
	{"#include<", AT_START},
	{"int main", AT_START},
	{"#define ", AT_START},
	{"int ", ANYWHERE},
	{"void ", ANYWHERE},
	{"auto ", ANYWHERE},
	{"struct ", ANYWHERE},
	{"cout <<", ANYWHERE},
	{"return 0;", ANYWHERE},
	{NULL},
};

static const struct mark *const marks_of[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = python_marks,
	[NC_JAVASCRIPT] = javascript_marks,
	[NC_TYPESCRIPT] = typescript_marks,
	[NC_SHELL] = shell_marks,
	[NC_GO] = go_marks,
	[NC_RUST] = rust_marks,
	[NC_C] = c_marks,
	[NC_CPP] = cpp_marks,
};

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether the size bytes at text are no part of a longer word in line. */
static bool is_whole(struct nc_span line, const char *text, size_t size)
{
	const char *end = text + size;
	bool joined_before = text > line.text && is_word_char(text[0]) && is_word_char(text[-1]);
	bool joined_behind =
		end < line.text + line.size && is_word_char(end[-1]) && is_word_char(end[0]);

	return !joined_before && !joined_behind;
}

static bool is_command(struct nc_span rest)
{
	if (rest.size > 0 && !isblank((unsigned char)rest.text[0]))
		return rest.text[0] == ';';
	(void)nc_span_skip_blanks(&rest);
	return rest.size == 0 || (rest.text[0] != '=' && rest.text[0] != '(');
}

static bool ends_in_colon(struct nc_span line)
{
	while (line.size > 0 && isblank((unsigned char)line.text[line.size - 1]))
		line.size--;
	return line.size > 0 && line.text[line.size - 1] == ':';
}

/* Whether a line, without the blanks before it, has a mark. */
static bool has_mark(struct nc_span line, const struct mark *mark)
{
	size_t length = strlen(mark->text);
	struct nc_span rest = line;

	if (mark->where == ANYWHERE) {
		const char *at = nc_span_find(line, mark->text);

		return at && is_whole(line, at, length);
	}
	if (!nc_span_skip(&rest, mark->text) || !is_whole(line, line.text, length))
		return false;
	return mark->where == COMMAND ? is_command(rest)
				      : mark->where == AT_START || ends_in_colon(line);
}

static bool find_mark(const char *code, size_t size, const struct mark *mark)
{
	struct nc_span rest = {code, size}, line;

	while (nc_span_line(&rest, &line)) {
		(void)nc_span_skip_blanks(&line);
		if (has_mark(line, mark))
			return true;
	}
	return false;
}

/* The number of marks that code has; 0 if it lacks all that are needed. */
static unsigned int count(const char *code, size_t size, const struct mark *marks)
{
	unsigned int found = 0;
	bool needs = false, has_needed = false;

	for (; marks->text; marks++) {
		bool has = find_mark(code, size, marks);

		found += has;
		needs |= marks->needed;
		has_needed |= has && marks->needed;
	}
	return needs && !has_needed ? 0 : found;
}

bool nc_marks_count(const char *code, size_t size, unsigned int ret_marks[static NC_LANGUAGE_MAX])
{
	bool any = false;

	if (size > LOOKED_AT_MAX)
		size = LOOKED_AT_MAX;
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		ret_marks[i] = count(code, size, marks_of[i]);
	/* classes and templates are in other languages too: C++ needs what C needs, and C is what
	 * has nothing of C++ */
	if (ret_marks[NC_C] == 0)
		ret_marks[NC_CPP] = 0;
	if (ret_marks[NC_CPP] > 0)
		ret_marks[NC_C] = 0;
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		any |= ret_marks[i] > 0;
	return any;
}

/* What the tokens of C stand in. */
struct tokens {
	bool comment;
	bool directive; /* continued from the line before by a backslash */
	size_t parens, braces;
	size_t faults;
};

/* Passes a text or character constant; returns its last byte. */
static size_t pass_quoted(struct nc_span line, size_t at)
{
	char quote = line.text[at];

	for (at++; at < line.size && line.text[at] != quote; at++)
		if (line.text[at] == '\\')
			at++;
	return at;
}

static void close_bracket(struct tokens *tokens, size_t *depth)
{
	if (*depth > 0)
		(*depth)--;
	else
		tokens->faults++;
}

/* Passes a line; returns its last character that is neither blank nor in a comment, or NUL. */
static char pass_line(struct tokens *tokens, struct nc_span line)
{
	char last = '\0';

	for (size_t i = 0; i < line.size; i++) {
		struct nc_span rest = nc_span_behind(line, line.text + i);
		char c = line.text[i];

		if (tokens->comment) {
			tokens->comment = !nc_span_begins(rest, "*/");
			i += !tokens->comment;
			continue;
		}
		if (nc_span_begins(rest, "//"))
			break;
		if (nc_span_begins(rest, "/*")) {
			tokens->comment = true;
			i++;
			continue;
		}
		if (c == '"' || c == '\'')
			i = pass_quoted(line, i);
		else if (c == '(' || c == '{')
			(*(c == '(' ? &tokens->parens : &tokens->braces))++;
		else if (c == ')' || c == '}')
			close_bracket(tokens, c == ')' ? &tokens->parens : &tokens->braces);
		last = isblank((unsigned char)c) ? last : c;
	}
	return last;
}

static bool begins_with_any(struct nc_span line, const char *const *words)
{
	for (; *words; words++)
		if (nc_span_begins(line, *words) && is_whole(line, line.text, strlen(*words)))
			return true;
	return false;
}

/* Lines that go on in the next one: heads of statements and functions, long expressions. */
static bool goes_on(struct nc_span line, struct nc_span rest)
{
	static const char *const heads[] = {"if", "for", "while", "else", "do", "switch", NULL};
	static const char *const tails[] = {"{", "\"", "?", ":", "&&", "||", "+", "|", ".", NULL};
	struct nc_span next = {0};

	(void)nc_span_line(&rest, &next);
	(void)nc_span_skip_blanks(&next);
	return begins_with_any(line, heads) || begins_with_any(next, tails);
}

size_t nc_marks_c_faults(const char *code, size_t size)
{
	struct nc_span rest = {code, size}, line;
	struct tokens tokens = {0};

	while (nc_span_line(&rest, &line)) {
		bool directive;
		char last;

		(void)nc_span_skip_blanks(&line);
		directive = tokens.directive || (!tokens.comment && nc_span_begins(line, "#"));
		tokens.directive = directive && line.size > 0 && line.text[line.size - 1] == '\\';
		if (directive)
			continue;
		last = pass_line(&tokens, line);
		if (last != '\0' && tokens.parens == 0 && !strchr(";{},:\\|&+-*/=<>?", last) &&
			!goes_on(line, rest))
			tokens.faults += line.size;
	}
	return tokens.faults + tokens.parens + tokens.braces;
}
