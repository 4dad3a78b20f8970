/*
 * Which language a program is written in. Theory of operation:
 *
 * A name or a first line says it outright. Content is judged in two steps: marks, which are words
 * and signs that programs of a language have, say which languages come into question; then each of
 * these parses the program, and the one whose grammar it fits is taken. Marks alone are a guess,
 * and grammars alone say little: bash takes any words for a command, and what is short often
 * parses as Python, JavaScript and Go alike. So a language needs both.
 */
#include "engine/detect.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/text.h"
#include "engine/marks.h"
#include "policy/bounds.h"
#include "policy/policy.h"
#include "runtime/runtime.h"

/* A language that comes into question. */
struct candidate {
	enum nc_language language;
	size_t faults;
	unsigned int marks;
};

struct contest {
	struct candidate list[NC_LANGUAGE_MAX];
	size_t count;
};

/* The word in the first line "#!" that names the interpreter, without its path. */
static bool read_shebang(const char *code, size_t size, char *out, size_t out_size)
{
	struct nc_span rest = {code, size}, line = {0};

	if (!nc_span_skip(&rest, "#!") || !nc_span_line(&rest, &line))
		return false;
	while (nc_span_skip_blanks(&line), line.size > 0) {
		struct nc_span word = line;
		const char *slash;

		word.size = 0;
		while (word.size < line.size && !isblank((unsigned char)line.text[word.size]))
			word.size++;
		line = nc_span_behind(line, line.text + word.size);
		/* env's options and variables */
		if (word.text[0] == '-' || nc_span_find(word, "="))
			continue;
		slash = nc_span_find_last(word, "/");
		if (slash)
			word = nc_span_behind(word, slash + 1);
		nc_span_copy(word, out, out_size);
		if (!nc_streq(out, "env"))
			return true;
	}
	out[0] = '\0';
	return false;
}

/* By the file's name. */
static bool detect_by_name(
	const char *file_name, const char *interpreter, struct nc_detection *detection)
{
	enum nc_language language = nc_language_of_file(file_name);
	bool contradicts = *interpreter && nc_language_of_interpreter(interpreter) != language;

	if (language < 0)
		return false;
	detection->language = language;
	(void)snprintf(detection->reason, sizeof(detection->reason), "file name ends in %s%s%s",
		strrchr(file_name, '.'), contradicts ? ", though the shebang names " : "",
		contradicts ? interpreter : "");
	return true;
}

/*
 * How badly a program fits. C and C++ have no grammar here: their tokens are looked at. TypeScript
 * is read with JavaScript's grammar, which stumbles over each type: most of that is no fault.
 */
static int count_faults(enum nc_language language, const char *code, size_t size,
	uint64_t deadline_ns, size_t *ret_faults)
{
	int r;

	if (language == NC_C || language == NC_CPP) {
		*ret_faults = nc_marks_c_faults(code, size);
		return 0;
	}
	r = nc_policy_faults(language, code, size, deadline_ns, ret_faults);
	if (r == 0 && language == NC_TYPESCRIPT && *ret_faults < size / 2)
		*ret_faults /= 4;
	return r;
}

/* Parses the program as each of the languages; one that it cannot be parsed as does not count. */
static int hold(struct contest *contest, const unsigned int marks[static NC_LANGUAGE_MAX],
	const char *code, size_t size)
{
	uint64_t deadline_ns = nc_clock_ns() + NC_PARSE_TIME_NS;

	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++) {
		struct candidate *candidate = &contest->list[contest->count];
		int r;

		if (marks[i] == 0)
			continue;
		*candidate = (struct candidate){.language = i, .marks = marks[i]};
		r = count_faults(i, code, size, deadline_ns, &candidate->faults);
		if (r == -ENOMEM)
			return r;
		contest->count += r == 0;
	}
	return 0;
}

static struct candidate *find(struct contest *contest, enum nc_language language)
{
	for (size_t i = 0; i < contest->count; i++)
		if (contest->list[i].language == language)
			return &contest->list[i];
	return NULL;
}

static void drop(struct contest *contest, struct candidate *candidate)
{
	size_t behind = (size_t)(contest->list + contest->count - (candidate + 1));

	memmove(candidate, candidate + 1, behind * sizeof(*candidate));
	contest->count--;
}

/* What is JavaScript is TypeScript too: it is that only if it is not JavaScript. */
static void settle_typescript(struct contest *contest)
{
	struct candidate *script = find(contest, NC_JAVASCRIPT);
	struct candidate *typed = find(contest, NC_TYPESCRIPT);

	if (!typed)
		return;
	if (typed->faults == 0 && script && script->faults == 0) {
		drop(contest, typed);
	} else if (script) {
		typed->marks += script->marks;
		drop(contest, script);
	}
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	return a->faults != b->faults ? a->faults < b->faults : a->marks > b->marks;
}

/* Whether the faults of a are so few that those of b are clearly more. */
static bool is_clear(const struct candidate *a, const struct candidate *b)
{
	return b->faults / 2 > a->faults || (a->faults == 0 && b->faults > 0);
}

/* Whether a program with an error in it still looks like one. */
static bool looks_faulty(const struct candidate *candidate, size_t size)
{
	return candidate->marks >= 4 || (candidate->marks >= 2 && candidate->faults <= size / 4);
}

/* The winner; NULL: nobody, or several. *ret_parsed: its grammar alone made it win. */
static const struct candidate *judge(const struct contest *contest, size_t size, bool *ret_parsed)
{
	const struct candidate *best = contest->count > 0 ? &contest->list[0] : NULL;

	for (size_t i = 1; i < contest->count; i++)
		if (is_better(&contest->list[i], best))
			best = &contest->list[i];
	if (!best || (best->faults > 0 && !looks_faulty(best, size)))
		return NULL;
	*ret_parsed = true;
	for (size_t i = 0; i < contest->count; i++) {
		const struct candidate *other = &contest->list[i];

		if (other == best || is_clear(best, other))
			continue;
		*ret_parsed = false;
		if (other->marks >= best->marks)
			return NULL;
	}
	return best;
}

/* "javascript or shell": the others. */
static void list_others(
	const struct contest *contest, const struct candidate *winner, struct nc_buf *text)
{
	size_t left = contest->count - 1;

	for (size_t i = 0; i < contest->count; i++) {
		if (&contest->list[i] == winner)
			continue;
		left--;
		nc_buf_addf(text, "%s%s", nc_runtimes[contest->list[i].language]->name,
			left > 1    ? ", "
			: left == 1 ? " or "
				    : "");
	}
}

static void explain(const struct contest *contest, const struct candidate *winner, bool parsed,
	struct nc_detection *detection)
{
	const char *name = nc_runtimes[winner->language]->name;
	nc_buf_cleanup struct nc_buf others = NC_BUF(sizeof(detection->reason));
	char *out = detection->reason;
	size_t room = sizeof(detection->reason);

	list_others(contest, winner, &others);
	if (contest->count == 1 && winner->faults > 0)
		(void)snprintf(out, room, "it looks like %s, though it does not parse", name);
	else if (contest->count == 1)
		(void)snprintf(out, room, "it looks like %s and parses as such", name);
	else if (!parsed)
		(void)snprintf(out, room, "it looks more like %s than like %s", name,
			nc_buf_text(&others));
	else if (winner->faults > 0)
		(void)snprintf(
			out, room, "it parses better as %s than as %s", name, nc_buf_text(&others));
	else
		(void)snprintf(
			out, room, "it parses as %s and not as %s", name, nc_buf_text(&others));
	detection->language = winner->language;
}

static int detect_by_content(const char *code, size_t size, struct nc_detection *detection)
{
	unsigned int marks[NC_LANGUAGE_MAX] = {0};
	struct contest contest = {0};
	const struct candidate *winner;
	bool marked = nc_marks_count(code, size, marks), parsed = false;
	int r;

	/* without any mark it may still parse as one of those that need none */
	if (!marked)
		marks[NC_PYTHON] = marks[NC_JAVASCRIPT] = marks[NC_SHELL] = 1;
	r = hold(&contest, marks, code, size);
	if (r < 0)
		return r;
	settle_typescript(&contest);
	winner = judge(&contest, size, &parsed);
	/* unmarked, any words are a command, and any markup is JavaScript's JSX */
	if (!winner || (!marked && (winner->language == NC_SHELL || code[0] == '<')))
		return -ENOENT;
	explain(&contest, winner, parsed, detection);
	return 0;
}

static bool is_blank(const char *code, size_t size)
{
	while (size > 0 && isspace((unsigned char)code[size - 1]))
		size--;
	return size == 0;
}

int nc_detect(const char *file_name, const char *code, size_t size, struct nc_detection *ret)
{
	struct nc_detection detection = {0};
	char interpreter[64] = "";
	int r;

	(void)read_shebang(code, size, interpreter, sizeof(interpreter));
	if (file_name && detect_by_name(file_name, interpreter, &detection)) {
		*ret = detection;
		return 0;
	}
	if (*interpreter) {
		detection.language = nc_language_of_interpreter(interpreter);
		if (detection.language < 0)
			return -ENOENT;
		(void)snprintf(detection.reason, sizeof(detection.reason), "shebang names %s",
			interpreter);
		*ret = detection;
		return 0;
	}
	if (is_blank(code, size))
		return -ENOENT;
	r = detect_by_content(code, size, &detection);
	if (r == 0)
		*ret = detection;
	return r;
}
