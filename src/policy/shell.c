/*
 * The shell: words, variables, commands, pipelines and redirections. A word's datum is its text as
 * far as it can be told; that of a command is what it prints, so that $(echo rm) is "rm".
 */
#include <ctype.h>
#include <string.h>

#include "policy/command.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/grammars.h"
#include "policy/lists.h"
#include "policy/literal.h"
#include "policy/texts.h"

static const struct nc_kind_name kinds[] = {
	{"comment", NC_KIND_COMMENT},
	{"command", NC_KIND_COMMAND},
	{"command_name", NC_KIND_COMMAND_NAME},
	{"word", NC_KIND_WORD},
	{"number", NC_KIND_WORD},
	{"extglob_pattern", NC_KIND_WORD},
	{"concatenation", NC_KIND_CONCATENATION},
	{"string", NC_KIND_STRING},
	{"string_content", NC_KIND_STRING_PART},
	{"raw_string", NC_KIND_RAW_STRING},
	{"ansi_c_string", NC_KIND_ANSI_STRING},
	{"simple_expansion", NC_KIND_EXPANSION},
	{"expansion", NC_KIND_EXPANSION},
	{"variable_name", NC_KIND_VARIABLE_NAME},
	{"special_variable_name", NC_KIND_VARIABLE_NAME},
	{"subscript", NC_KIND_SUBSCRIPT},
	{"array", NC_KIND_LIST},
	{"command_substitution", NC_KIND_SUBSTITUTION},
	{"process_substitution", NC_KIND_SUBSTITUTION},
	{"variable_assignment", NC_KIND_ASSIGN},
	{"pipeline", NC_KIND_PIPELINE},
	{"redirected_statement", NC_KIND_REDIRECTED},
	{"file_redirect", NC_KIND_REDIRECT},
	{"heredoc_redirect", NC_KIND_HEREDOC},
	{"heredoc_body", NC_KIND_HEREDOC_BODY},
	{"herestring_redirect", NC_KIND_HERESTRING},
	{"function_definition", NC_KIND_FUNCTION},
	{"subshell", NC_KIND_SUBSHELL},
	{"if_statement", NC_KIND_BRANCH},
	{"case_statement", NC_KIND_BRANCH},
	{"while_statement", NC_KIND_LOOP},
	{"for_statement", NC_KIND_LOOP},
	{"&", NC_KIND_BACKGROUND},
	{0},
};

/* What $IFS is folded to: it separates words, wherever it stands in one. */
#define SEPARATOR '\037'

/* A marker for names of files that something was downloaded to. */
#define DOWNLOADED '\001'

static uint32_t unescape(struct nc_scan *scan, const char *text, uint32_t size, const char *which)
{
	uint32_t used = 0;
	char *out;

	if (!memchr(text, '\\', size))
		return nc_datum_text(&scan->data, text, size);
	out = nc_arena_alloc(&scan->arena, (size_t)size + 1);
	if (!out)
		return 0;
	for (uint32_t i = 0; i < size; i++) {
		if (text[i] == '\\' && i + 1 < size && (!which || strchr(which, text[i + 1])))
			i++;
		if (text[i] != '\n' || i == 0 || text[i - 1] != '\\')
			out[used++] = text[i];
	}
	return nc_datum_text(&scan->data, out, used);
}

/* $'...': marked as decoded if it spells characters by their codes. */
static uint32_t ansi_string(struct nc_scan *scan, uint32_t node)
{
	uint32_t size;
	const char *text = nc_tree_text(&scan->tree, node, &size);
	struct nc_datum inner = {.kind = NC_DATUM_TEXT};

	if (size < 3)
		return 0;
	inner.text = text + 2;
	inner.size = size - 3;
	return nc_texts_decode(scan, &inner, nc_decode_escapes,
		memmem(inner.text, inner.size, "\\x", 2) ||
			memmem(inner.text, inner.size, "\\1", 2) ||
			memmem(inner.text, inner.size, "\\u", 2));
}

/* "...": what stands between the expansions, and these. */
static uint32_t quoted(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t at = tree->nodes[node].start + 1, end = tree->nodes[node].end;
	uint32_t all = 0, only = nc_tree_only(tree, node);

	/* "${words[@]}" is all of them */
	if (only && nc_scan_datum(scan, only)->kind == NC_DATUM_LIST)
		return tree->nodes[only].datum;
	if (end > at)
		end--;
	for (uint32_t child = nc_tree_first(tree, node);; child = nc_tree_next(tree, child)) {
		uint32_t stop = child ? tree->nodes[child].start : end;
		uint32_t between = 0;

		if (child && tree->nodes[child].kind == NC_KIND_STRING_PART)
			continue;
		if (stop > at)
			between = unescape(scan, tree->text + at, stop - at, "$`\"\\\n");
		if (between)
			all = all ? nc_datum_concat(&scan->data, all, between) : between;
		if (!child)
			break;
		if (!all)
			all = nc_datum_text(&scan->data, "", 0);
		all = nc_datum_concat(&scan->data, all, tree->nodes[child].datum);
		at = tree->nodes[child].end;
	}
	return all ? all : nc_datum_text(&scan->data, "", 0);
}

static uint32_t concatenation(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t all = nc_datum_text(&scan->data, "", 0);

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child))
		all = nc_datum_concat(&scan->data, all, tree->nodes[child].datum);
	return all;
}

static uint32_t expansion(struct nc_scan *scan, uint32_t node)
{
	static const char separator = SEPARATOR;
	const struct nc_tree *tree = &scan->tree;
	uint32_t only = nc_tree_only(tree, node), size;
	const struct nc_binding *binding;
	const char *text;

	if (only && tree->nodes[only].kind == NC_KIND_SUBSCRIPT)
		only = nc_tree_child(tree, only, NC_ROLE_NAME);
	if (!only || tree->nodes[only].kind != NC_KIND_VARIABLE_NAME)
		return 0;
	text = nc_tree_text(tree, only, &size);
	binding = nc_scan_lookup(scan, text, size);
	if (binding)
		return binding->datum;
	if (nc_tree_is(tree, only, "IFS"))
		return nc_datum_text(&scan->data, &separator, 1);
	if (nc_tree_is(tree, only, "HOME"))
		return nc_datum_text(&scan->data, "~", 1);
	if (nc_tree_is(tree, only, "0"))
		return nc_datum_text(&scan->data, "$0", 2);
	return 0;
}

/* Whether a word is split there; marks is what IFS was set to. */
static bool separates(char c, bool bare, const struct nc_datum *marks)
{
	return c == SEPARATOR || (bare && isspace((unsigned char)c)) ||
	       (bare && marks->kind == NC_DATUM_TEXT && memchr(marks->text, c, marks->size));
}

/* Adds a word that the shell may split: at $IFS, and at blanks of a bare $variable. */
static void add_split(struct nc_scan *scan, struct nc_command *command, uint32_t number, bool bare)
{
	const struct nc_binding *binding = bare ? nc_scan_lookup(scan, "IFS", 3) : NULL;
	const struct nc_datum *marks = nc_datum(&scan->data, binding ? binding->datum : 0);
	const struct nc_datum *word = nc_datum(&scan->data, number);
	uint32_t begin = 0;

	if (word->kind != NC_DATUM_TEXT) {
		nc_command_add(command, number);
		return;
	}
	for (uint32_t i = 0; i <= word->size; i++) {
		if (i < word->size && !separates(word->text[i], bare, marks))
			continue;
		if (begin == 0 && i == word->size) { /* nothing to split */
			nc_command_add(command, number);
			return;
		}
		if (i > begin)
			nc_command_add(command, nc_datum_derive(&scan->data, word->text + begin,
							i - begin, word, false));
		begin = i + 1;
	}
}

/* Whether a line ends between two nodes; the grammar sometimes overlooks it. */
static bool line_ends(const struct nc_tree *tree, uint32_t before, uint32_t after)
{
	for (uint32_t i = tree->nodes[before].end; i < tree->nodes[after].start; i++)
		if (tree->text[i] == '\n' && (i == 0 || tree->text[i - 1] != '\\'))
			return true;
	return false;
}

static bool is_word(enum nc_kind kind)
{
	return kind != NC_KIND_ASSIGN && kind != NC_KIND_REDIRECT && kind != NC_KIND_COMMENT &&
	       kind != NC_KIND_HERESTRING && kind != NC_KIND_HEREDOC;
}

/*
 * The words of a command, from the child at which it begins. Returns the child at which a further
 * command begins that the grammar has taken for words of this one; 0: none.
 */
static uint32_t collect(struct nc_scan *scan, uint32_t child, struct nc_command *command)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t last = 0;

	for (; child && !command->more; child = nc_tree_next(tree, child)) {
		enum nc_kind kind = tree->nodes[child].kind;
		const struct nc_datum *word = nc_scan_datum(scan, child);
		uint32_t inner = nc_tree_only(tree, child);

		if (!is_word(kind))
			continue;
		if (last && line_ends(tree, last, child))
			return child;
		last = child;
		for (uint32_t i = 0; word->kind == NC_DATUM_LIST && i < word->size; i++)
			nc_command_add(command, word->items[i]);
		if (word->kind == NC_DATUM_LIST)
			continue;
		if (kind == NC_KIND_COMMAND_NAME && inner)
			kind = tree->nodes[inner].kind;
		add_split(scan, command, tree->nodes[child].datum,
			kind == NC_KIND_EXPANSION || kind == NC_KIND_SUBSTITUTION);
	}
	return 0;
}

static const struct nc_datum *word_of(
	const struct nc_scan *scan, const struct nc_command *command, uint32_t i)
{
	return nc_datum(&scan->data, i < command->count ? command->words[i] : 0);
}

static bool has_word(const struct nc_scan *scan, const struct nc_command *command, const char *word)
{
	for (uint32_t i = 1; i < command->count; i++)
		if (nc_datum_is_text(word_of(scan, command, i), word))
			return true;
	return false;
}

/* What echo and printf print. */
static uint32_t print_words(struct nc_scan *scan, const struct nc_command *command, bool is_printf)
{
	uint32_t all = 0, blank = nc_datum_text(&scan->data, " ", 1);
	bool escapes = is_printf;

	for (uint32_t i = 1; i < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (nc_datum_is_text(word, "-n") || nc_datum_is_text(word, "-e") ||
			nc_datum_is_text(word, "-ne") || nc_datum_is_text(word, "-en")) {
			escapes |= word->text[word->size - 1] == 'e' || word->text[1] == 'e';
			continue;
		}
		if (is_printf && (nc_datum_is_text(word, "%s") || nc_datum_is_text(word, "%b") ||
					 nc_datum_is_text(word, "%s\\n")))
			continue;
		if (all && !is_printf)
			all = nc_datum_concat(&scan->data, all, blank);
		all = all ? nc_datum_concat(&scan->data, all, command->words[i])
			  : command->words[i];
	}
	if (all && escapes && nc_datum(&scan->data, all)->kind == NC_DATUM_TEXT &&
		memchr(nc_datum(&scan->data, all)->text, '\\', nc_datum(&scan->data, all)->size))
		all = nc_texts_decode(scan, nc_datum(&scan->data, all), nc_decode_escapes, true);
	return all;
}

/* Filters that decode. */
static uint32_t filter(struct nc_scan *scan, const struct nc_command *command, const char *program,
	size_t size, uint32_t input)
{
	const struct nc_datum *text = nc_datum(&scan->data, input);

	if (size == 6 && memcmp(program, "base64", 6) == 0)
		return nc_texts_decode(scan, text, nc_decode_base64, true);
	if (size == 6 && memcmp(program, "base32", 6) == 0)
		return nc_texts_decode(scan, text, nc_decode_base32, true);
	if (size == 7 && memcmp(program, "openssl", 7) == 0)
		return nc_texts_decode(scan, text, nc_decode_base64, true);
	if (size == 3 && memcmp(program, "xxd", 3) == 0 && has_word(scan, command, "-r"))
		return nc_texts_decode(scan, text, nc_decode_hex, true);
	if (size == 3 && memcmp(program, "xxd", 3) == 0 && has_word(scan, command, "-rp"))
		return nc_texts_decode(scan, text, nc_decode_hex, true);
	if (size == 3 && memcmp(program, "rev", 3) == 0)
		return nc_texts_decode(scan, text, nc_decode_reverse, true);
	if (size == 2 && memcmp(program, "tr", 2) == 0 &&
		(has_word(scan, command, "N-ZA-Mn-za-m") ||
			has_word(scan, command, "n-za-mN-ZA-M")))
		return nc_texts_decode(scan, text, nc_decode_rot13, true);
	if (size == 3 && memcmp(program, "cat", 3) == 0 && command->count == 1)
		return input;
	if (size == 2 && memcmp(program, "tr", 2) == 0 && has_word(scan, command, "-d"))
		return input;
	return 0;
}

/* What a command prints, given what it reads; 0 if it cannot be told. */
static uint32_t output(struct nc_scan *scan, struct nc_command *command, uint32_t input)
{
	size_t size = 0;
	const char *program = nc_command_program(scan, command, &size);

	if (!program)
		return 0;
	if (size == 4 && memcmp(program, "echo", 4) == 0)
		return print_words(scan, command, false);
	if (size == 6 && memcmp(program, "printf", 6) == 0)
		return print_words(scan, command, true);
	return filter(scan, command, program, size, input);
}

/* The command inside a node of a pipeline: itself, or what stands before its redirections. */
static uint32_t command_in(const struct nc_tree *tree, uint32_t node)
{
	if (tree->nodes[node].kind == NC_KIND_REDIRECTED)
		node = nc_tree_child(tree, node, NC_ROLE_BODY);
	return node && tree->nodes[node].kind == NC_KIND_COMMAND ? node : 0;
}

/* The program of a command, or NULL. */
static const char *program_of(
	struct nc_scan *scan, uint32_t node, struct nc_command *ret_command, size_t *ret_size)
{
	*ret_command = (struct nc_command){0};
	(void)collect(scan, nc_tree_first(&scan->tree, node), ret_command);
	return nc_command_program(scan, ret_command, ret_size);
}

/* Whether a command somewhere below a node downloads. */
static bool downloads_below(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t end = tree->nodes[node].next;

	/* nested ones look at the same nodes again: a few are enough */
	if (end > node + 256)
		end = node + 256;
	for (uint32_t i = node + 1; i < end; i++) {
		struct nc_command command;
		size_t size;
		const char *program;

		if (tree->nodes[i].kind != NC_KIND_COMMAND)
			continue;
		program = program_of(scan, i, &command, &size);
		if (program && nc_command_downloads(program, size))
			return true;
	}
	return false;
}

/* The interpreter at a node gets its code from a text that may be known. */
static void feed(struct nc_scan *scan, uint32_t node, const char *program, size_t size,
	uint32_t input, bool downloaded)
{
	const struct nc_datum *code = nc_datum(&scan->data, input);
	enum nc_language language = nc_command_interprets(program, size);

	if (code->kind == NC_DATUM_TEXT) {
		if (code->decoded)
			nc_scan_find_datum(scan, NC_RULE_EVAL_DECODED, node, code);
		if (language >= 0)
			nc_scan_queue(scan, language, node, code, false);
		else
			nc_scan_find_datum(scan, NC_RULE_EVAL, node, code);
		return;
	}
	nc_scan_find(scan, downloaded ? NC_RULE_DOWNLOAD_AND_RUN : NC_RULE_PIPE_TO_INTERPRETER,
		node, program, size);
}

/* Whether a pipeline is only a part of one, with redirections between. */
static bool is_part(const struct nc_tree *tree, uint32_t node)
{
	uint32_t around = tree->nodes[node].parent;

	if (tree->nodes[around].kind == NC_KIND_REDIRECTED && around > 0)
		around = tree->nodes[around].parent;
	return tree->nodes[around].kind == NC_KIND_PIPELINE;
}

/* What a pipeline prints. Each command reads what the one before it has printed. */
static uint32_t pipeline(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t text = 0, next;
	bool downloaded = false, first = true;

	if (is_part(tree, node))
		return 0;
	for (uint32_t at = node + 1; at < tree->nodes[node].next; at = next) {
		enum nc_kind kind = tree->nodes[at].kind;
		struct nc_command command;
		const char *program;
		size_t size = 0;

		next = tree->nodes[at].next;
		if (kind == NC_KIND_PIPELINE || kind == NC_KIND_REDIRECTED) {
			next = at + 1;
			continue;
		}
		if (!is_word(kind))
			continue;
		if (kind != NC_KIND_COMMAND) {
			text = first ? tree->nodes[at].datum : 0;
			downloaded |= downloads_below(scan, at);
			first = false;
			continue;
		}
		program = program_of(scan, at, &command, &size);
		if (program && !first && nc_command_is_interpreter(program, size) &&
			nc_command_reads_input(scan, &command))
			feed(scan, node, program, size, text, downloaded);
		if (program && nc_command_downloads(program, size))
			downloaded = true;
		text = program ? output(scan, &command, text) : 0;
		first = false;
	}
	return text;
}

/* A host behind /dev/tcp/; a program that is connected with it is in somebody else's hands. */
static bool is_socket(const struct nc_datum *file)
{
	return file->kind == NC_DATUM_TEXT && file->size > 9 &&
	       (memcmp(file->text, "/dev/tcp/", 9) == 0 || memcmp(file->text, "/dev/udp/", 9) == 0);
}

static void judge_socket(struct nc_scan *scan, uint32_t node, const struct nc_datum *file)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t around = tree->nodes[node].parent;
	uint32_t at = command_in(tree, around);
	struct nc_datum host = *file;
	struct nc_command command;
	size_t size = 0;
	const char *program = NULL;

	if (tree->nodes[around].kind == NC_KIND_COMMAND)
		at = around;
	if (at)
		program = program_of(scan, at, &command, &size);
	scan->report->needs.network = true;
	host.text += 9;
	host.size -= 9;
	nc_literal_host(scan, node, &host);
	/* exec 5<>/dev/tcp/... gives it to the shell itself */
	if (!program || nc_command_is_interpreter(program, size) ||
		(size == 4 && memcmp(program, "exec", 4) == 0))
		nc_scan_find_datum(scan, NC_RULE_REVERSE_SHELL, node, file);
	else
		nc_scan_find_datum(scan, NC_RULE_NETWORK, node, file);
}

static void redirect(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t to = nc_tree_child(tree, node, NC_ROLE_DESTINATION);
	const struct nc_datum *file;
	bool writes;

	if (!to || scan->learning)
		return;
	file = nc_scan_datum(scan, to);
	if (is_socket(file)) {
		judge_socket(scan, node, file);
		return;
	}
	writes = memchr(tree->text + tree->nodes[node].start, '>',
		tree->nodes[to].start - tree->nodes[node].start);
	if (writes)
		nc_lists_write(scan, node, file);
	nc_literal_judge(scan, node, file, writes ? NC_ACCESS_WRITE : NC_ACCESS_READ);
}

/* Code for an interpreter that stands behind << or <<<. */
static void here(struct nc_scan *scan, uint32_t node, uint32_t text)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t around = tree->nodes[node].parent;
	uint32_t at = command_in(tree, around);
	struct nc_command command;
	const char *program;
	size_t size = 0;

	if (tree->nodes[around].kind == NC_KIND_COMMAND)
		at = around;
	if (!at)
		return;
	program = program_of(scan, at, &command, &size);
	if (program && nc_command_is_interpreter(program, size) &&
		nc_command_reads_input(scan, &command))
		feed(scan, node, program, size, text, false);
}

static void heredoc(struct nc_scan *scan, uint32_t node)
{
	uint32_t body = nc_tree_child_of_kind(&scan->tree, node, NC_KIND_HEREDOC_BODY), size;
	const char *text;

	if (!body)
		return;
	text = nc_tree_text(&scan->tree, body, &size);
	here(scan, node, nc_datum_text(&scan->data, text, size));
}

static void herestring(struct nc_scan *scan, uint32_t node)
{
	uint32_t only = nc_tree_only(&scan->tree, node);

	if (only)
		here(scan, node, nc_scan_node(scan, only)->datum);
}

/* Remembers, or asks, whether a file was downloaded. */
static const struct nc_binding *downloaded(
	struct nc_scan *scan, const struct nc_datum *file, bool remember)
{
	char name[NC_NAME_TEXT_MAX];
	const char *text = file->text, *key;
	uint32_t size = file->size;

	if (file->kind != NC_DATUM_TEXT)
		return NULL;
	if (size > 2 && memcmp(text, "./", 2) == 0) {
		text += 2;
		size -= 2;
	}
	if (size + 1 > sizeof(name) || size < 2)
		return NULL;
	name[0] = DOWNLOADED;
	memcpy(name + 1, text, size);
	if (remember) {
		key = nc_arena_text(&scan->arena, name, size + 1);
		if (key)
			nc_scopes_bind(&scan->scopes, 0, key, size + 1, 0);
	}
	return nc_scopes_find(&scan->scopes, 0, name, size + 1);
}

/* The file that curl -o FILE or wget -O FILE writes. */
static void remember_download(struct nc_scan *scan, const struct nc_command *command)
{
	for (uint32_t i = 1; i + 1 < command->count; i++) {
		const struct nc_datum *word = word_of(scan, command, i);

		if (word->kind == NC_DATUM_TEXT && word->size >= 2 && word->text[0] == '-' &&
			(memchr(word->text, 'o', word->size) ||
				memchr(word->text, 'O', word->size)))
			(void)downloaded(scan, word_of(scan, command, i + 1), true);
	}
}

/* Runs a file that this program has downloaded, by itself or with an interpreter. */
static void judge_downloaded(
	struct nc_scan *scan, uint32_t node, const struct nc_command *command, bool interpreter)
{
	for (uint32_t i = 0; i < command->count && i < (interpreter ? 2U : 1U); i++)
		if (downloaded(scan, word_of(scan, command, i), false))
			nc_scan_find_datum(
				scan, NC_RULE_DOWNLOAD_AND_RUN, node, word_of(scan, command, i));
}

static bool is_one_of(const char *program, size_t size, const char *first, const char *second)
{
	return (strlen(first) == size && memcmp(first, program, size) == 0) ||
	       (strlen(second) == size && memcmp(second, program, size) == 0);
}

/* A script that starts itself beside itself. With arguments, it is to do something else. */
static void judge_itself(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t next = nc_tree_next(tree, node);

	if (command->count != 1 || !nc_datum_is_text(word_of(scan, command, 0), "$0"))
		return;
	if (tree->nodes[tree->nodes[node].parent].kind == NC_KIND_PIPELINE ||
		(next && tree->nodes[next].kind == NC_KIND_BACKGROUND))
		nc_scan_find(scan, NC_RULE_FORK_BOMB, node, "$0", 2);
}

/* alias x='rm -rf /' and trap '...' EXIT: code that runs later. */
static void judge_later(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	struct nc_datum code = *word_of(scan, command, 1);
	const char *equals = code.kind == NC_DATUM_TEXT ? memchr(code.text, '=', code.size) : NULL;

	if (equals) {
		code.size -= (uint32_t)(equals + 1 - code.text);
		code.text = equals + 1;
	}
	nc_scan_queue(scan, NC_SHELL, node, &code, true);
}

/* set -- WORD...: what "$@" is from here on. */
static void set_words(struct nc_scan *scan, const struct nc_command *command)
{
	uint32_t *items, begin = 1;

	while (begin < command->count && !nc_datum_is_text(word_of(scan, command, begin), "--"))
		begin++;
	if (++begin >= command->count)
		return;
	items = nc_arena_alloc(&scan->arena, (command->count - begin) * sizeof(*items));
	if (!items)
		return;
	memcpy(items, command->words + begin, (command->count - begin) * sizeof(*items));
	for (size_t i = 0; i < 2; i++)
		nc_scan_bind(scan, i == 0 ? "@" : "*", 1,
			nc_datum_list(&scan->data, NC_DATUM_LIST, items, command->count - begin));
}

/* source <(COMMAND), bash <(COMMAND): what that prints is code. */
static void judge_printed(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child))
		if (tree->nodes[child].kind == NC_KIND_SUBSTITUTION &&
			tree->text[tree->nodes[child].start] == '<')
			nc_scan_queue(scan, NC_SHELL, node, nc_scan_datum(scan, child), true);
}

static void judge_program(struct nc_scan *scan, uint32_t node, const struct nc_command *command,
	const char *program, size_t size)
{
	bool interpreter = nc_command_is_interpreter(program, size);

	if (nc_command_interprets(program, size) == NC_SHELL ||
		is_one_of(program, size, ".", "source"))
		judge_printed(scan, node);

	if ((interpreter || is_one_of(program, size, "eval", "source") ||
		    is_one_of(program, size, ".", "exec")) &&
		downloads_below(scan, node))
		nc_scan_find(scan, NC_RULE_DOWNLOAD_AND_RUN, node, program, size);
	if (nc_command_downloads(program, size))
		remember_download(scan, command);
	judge_downloaded(scan, node, command, interpreter);
	judge_itself(scan, node, command);
	if (is_one_of(program, size, "alias", "trap"))
		judge_later(scan, node, command);
	if (is_one_of(program, size, "set", "set"))
		set_words(scan, command);
}

static uint32_t only_datum(const struct nc_scan *scan, uint32_t node)
{
	uint32_t only = nc_tree_only(&scan->tree, node);

	return only ? scan->tree.nodes[only].datum : 0;
}

static void command(struct nc_scan *scan, uint32_t node)
{
	uint32_t child = nc_tree_first(&scan->tree, node), printed = 0;
	uint32_t text = nc_tree_child_of_kind(&scan->tree, node, NC_KIND_HERESTRING);
	bool first = true;

	while (child) {
		struct nc_command whole = {0}, inner;
		const char *program;
		size_t size = 0;

		child = collect(scan, child, &whole);
		inner = whole;
		program = nc_command_program(scan, &inner, &size);
		nc_command_judge(scan, node, &whole);
		for (uint32_t i = 0; i < whole.count; i++)
			nc_literal_judge(scan, node, word_of(scan, &whole, i), NC_ACCESS_MENTION);
		if (program)
			judge_program(scan, node, &inner, program, size);
		if (first)
			printed = output(scan, &inner, text ? only_datum(scan, text) : 0);
		first = false;
	}
	nc_scan_node(scan, node)->datum = printed;
}

/* f() { f | f & }: a function that starts itself again and again. */
static void judge_function(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_NAME);
	uint32_t calls = 0, size, end = tree->nodes[node].next;
	bool at_once = false;
	const char *text;

	if (!name || scan->learning)
		return;
	text = nc_tree_text(tree, name, &size);
	/* functions inside functions look at the same nodes again: bombs are short */
	if (end > node + 512)
		end = node + 512;
	for (uint32_t i = node + 1; i < end; i++) {
		uint32_t own;
		const char *called;

		at_once |= tree->nodes[i].kind == NC_KIND_PIPELINE ||
			   tree->nodes[i].kind == NC_KIND_BACKGROUND;
		if (tree->nodes[i].kind != NC_KIND_COMMAND_NAME)
			continue;
		called = nc_tree_text(tree, i, &own);
		calls += own == size && memcmp(called, text, size) == 0;
	}
	if (calls > 0 && at_once)
		nc_scan_find(scan, NC_RULE_FORK_BOMB, node, text, size);
}

/* Variables that make programs run something; all but the first two hold shell code. */
static void judge_variable(
	struct nc_scan *scan, uint32_t node, const char *name, uint32_t size, uint32_t value)
{
	static const char *const loads[] = {"LD_PRELOAD", "LD_AUDIT", NULL};
	static const char *const runs[] = {"PROMPT_COMMAND", "PS4", "GIT_SSH_COMMAND", "PAGER",
		"GIT_PAGER", "EDITOR", "GIT_EDITOR", NULL};

	for (const char *const *at = loads; *at; at++)
		if (strlen(*at) == size && memcmp(*at, name, size) == 0)
			nc_scan_find(scan, NC_RULE_NATIVE, node, name, size);
	for (const char *const *at = runs; *at; at++)
		if (strlen(*at) == size && memcmp(*at, name, size) == 0)
			nc_scan_queue(scan, NC_SHELL, node, nc_datum(&scan->data, value), true);
	if (size == 8 && memcmp(name, "BASH_ENV", 8) == 0)
		nc_scan_find(scan, NC_RULE_EVAL, node, name, size);
}

static void assign(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_NAME);
	uint32_t value = nc_tree_child(tree, node, NC_ROLE_VALUE), size;
	const char *text;

	if (!name)
		return;
	text = nc_tree_text(tree, name, &size);
	/* X= is an empty text, which is nothing in front of what follows */
	nc_scan_bind(scan, text, size,
		value ? tree->nodes[value].datum : nc_datum_text(&scan->data, "", 0));
	judge_variable(scan, node, text, size, value ? tree->nodes[value].datum : 0);
}

/* for x in rm ls: the variable is the first of them, or any. */
static void bind_loop(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t loop = tree->nodes[node].parent;
	uint32_t name = nc_tree_child(tree, loop, NC_ROLE_NAME), size;
	const char *text;

	if (!name || nc_tree_child(tree, loop, NC_ROLE_VALUE) != node)
		return;
	text = nc_tree_text(tree, name, &size);
	nc_scopes_bind(&scan->scopes, scan->scope, text, size, tree->nodes[node].datum);
}

/* A word by itself: it may name a file or a host. */
static void judge_word(struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *at = nc_scan_node(scan, node);
	enum nc_kind around = scan->tree.nodes[at->parent].kind;

	if (scan->learning || around == NC_KIND_CONCATENATION || around == NC_KIND_REDIRECT ||
		around == NC_KIND_COMMAND || around == NC_KIND_COMMAND_NAME)
		return;
	nc_literal_judge(scan, node, nc_datum(&scan->data, at->datum), NC_ACCESS_MENTION);
}

/* What a command with redirections prints; it may read the text behind <<<. */
static uint32_t redirected(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t body = nc_tree_child(tree, node, NC_ROLE_BODY);
	uint32_t text = nc_tree_child_of_kind(tree, node, NC_KIND_HERESTRING);
	struct nc_command command;
	size_t size;

	if (!body || !text || tree->nodes[body].kind != NC_KIND_COMMAND)
		return body ? tree->nodes[body].datum : 0;
	return program_of(scan, body, &command, &size)
		       ? output(scan, &command, only_datum(scan, text))
		       : 0;
}

static void leave_word(struct nc_scan *scan, uint32_t node)
{
	struct nc_node *at = nc_scan_node(scan, node);
	uint32_t size;
	const char *text = nc_tree_text(&scan->tree, node, &size);

	switch (at->kind) {
	case NC_KIND_WORD:
		at->datum = unescape(scan, text, size, NULL);
		break;
	case NC_KIND_RAW_STRING:
		at->datum = size >= 2 ? nc_datum_text(&scan->data, text + 1, size - 2) : 0;
		break;
	case NC_KIND_ANSI_STRING:
		at->datum = ansi_string(scan, node);
		break;
	case NC_KIND_STRING:
		at->datum = quoted(scan, node);
		break;
	default:
		at->datum = concatenation(scan, node);
	}
	judge_word(scan, node);
}

static void leave(struct nc_scan *scan, uint32_t node)
{
	struct nc_node *at = nc_scan_node(scan, node);

	switch (at->kind) {
	case NC_KIND_WORD:
	case NC_KIND_RAW_STRING:
	case NC_KIND_ANSI_STRING:
	case NC_KIND_STRING:
	case NC_KIND_CONCATENATION:
		leave_word(scan, node);
		break;
	case NC_KIND_EXPANSION:
		at->datum = expansion(scan, node);
		break;
	case NC_KIND_COMMAND_NAME:
	case NC_KIND_SUBSTITUTION:
	case NC_KIND_SUBSHELL:
		at->datum = only_datum(scan, node);
		break;
	case NC_KIND_COMMAND:
		command(scan, node);
		break;
	case NC_KIND_PIPELINE:
		at->datum = pipeline(scan, node);
		break;
	case NC_KIND_REDIRECTED:
		at->datum = redirected(scan, node);
		break;
	case NC_KIND_REDIRECT:
		redirect(scan, node);
		break;
	case NC_KIND_HEREDOC:
		heredoc(scan, node);
		break;
	case NC_KIND_HERESTRING:
		herestring(scan, node);
		break;
	case NC_KIND_ASSIGN:
		assign(scan, node);
		break;
	case NC_KIND_FUNCTION:
		judge_function(scan, node);
		break;
	case NC_KIND_LIST:
	case NC_KIND_BRANCH:
	case NC_KIND_LOOP:
		nc_eval_leave(scan, node);
		break;
	default:
		break;
	}
	if (at->role == NC_ROLE_VALUE && scan->tree.nodes[at->parent].kind == NC_KIND_LOOP)
		bind_loop(scan, node);
}

static void enter(struct nc_scan *scan, uint32_t node)
{
	enum nc_kind kind = nc_scan_node(scan, node)->kind;

	if (kind == NC_KIND_BRANCH || kind == NC_KIND_LOOP)
		nc_eval_enter(scan, node);
}

const struct nc_analyser nc_shell = {
	.name = "shell",
	.grammar = tree_sitter_bash,
	.kinds = kinds,
	.is_hoisted = true,
	.enter = enter,
	.leave = leave,
};
