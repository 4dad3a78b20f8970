/*
 * C, C++ and what looks like them, by their tokens: there is no grammar for them here. The tokens
 * stand in a flat tree below one root, so that everything else works on them as on the nodes of a
 * parser.
 */
#include "policy/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/decode.h"
#include "policy/literal.h"
#include "policy/use.h"

static const struct nc_name_rule names[] = {
	{"accept", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"bind", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"bpf", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"chmod", NC_USE_MODE, NC_RULE_NONE, 0},
	{"chroot", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"clone", NC_USE_FORK, NC_RULE_NONE, 0},
	{"connect", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"creat", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"delete_module", NC_USE_NOTHING, NC_RULE_KERNEL_MODULE, 0},
	{"dlopen", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"execl", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"execle", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"execlp", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"execv", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"execve", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"execvp", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"finit_module", NC_USE_NOTHING, NC_RULE_KERNEL_MODULE, 0},
	{"fopen", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"fork", NC_USE_FORK, NC_RULE_NONE, 0},
	{"gethostbyname", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"init_module", NC_USE_NOTHING, NC_RULE_KERNEL_MODULE, 0},
	{"io_uring_setup", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"ioctl", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
	{"kill", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"listen", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"mount", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"open", NC_USE_READ, NC_RULE_NONE, 0},
	{"openat", NC_USE_READ, NC_RULE_NONE, 1},
	{"perf_event_open", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"pivot_root", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"popen", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"posix_spawn", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"process_vm_readv", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"process_vm_writev", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"pthread_create", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"ptrace", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"reboot", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"remove", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"remove_all", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"setgid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"setns", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"socket", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"syscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"system", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"unlink", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"unshare", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"vfork", NC_USE_FORK, NC_RULE_NONE, 0},
};

static const struct nc_name_rule imports[] = {
	{"dlfcn.h", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"linux/bpf.h", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"netinet/in.h", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"pthread.h", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"sys/ptrace.h", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"sys/socket.h", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"thread", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"threads.h", NC_USE_THREAD, NC_RULE_NONE, 0},
};

static void no_step(struct nc_scan *scan, uint32_t node)
{
	(void)scan;
	(void)node;
}

static const struct nc_analyser analyser = {
	.name = "c",
	.names = names,
	.n_names = sizeof(names) / sizeof(names[0]),
	.imports = imports,
	.n_imports = sizeof(imports) / sizeof(imports[0]),
	.enter = no_step,
	.leave = no_step,
};

/* The longest mark that ends a raw string of C++. */
#define RAW_MARK_MAX 16U

/* Reads tokens one after another. */
struct reader {
	const char *text;
	uint32_t size, at;
	bool cpp;
	struct nc_tree *tree;
	uint32_t capacity;
	int error;
};

static void add_token(struct reader *reader, enum nc_kind kind, uint32_t start, uint32_t end)
{
	struct nc_tree *tree = reader->tree;

	if (tree->count == reader->capacity) {
		uint32_t capacity = reader->capacity ? reader->capacity * 2 : 1024;
		struct nc_node *nodes = NULL;

		if (capacity <= NC_NODES_MAX)
			nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
		if (!nodes) {
			reader->error = capacity <= NC_NODES_MAX ? -ENOMEM : -EFBIG;
			return;
		}
		tree->nodes = nodes;
		reader->capacity = capacity;
	}
	tree->nodes[tree->count] = (struct nc_node){
		.start = start, .end = end, .next = tree->count + 1, .kind = (uint8_t)kind};
	tree->count++;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Skips a comment; false if there is none here. */
static bool skip_comment(struct reader *reader)
{
	const char *at = reader->text + reader->at;
	size_t left = reader->size - reader->at;
	const char *end;

	if (left < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
		return false;
	end = at[1] == '/' ? memchr(at, '\n', left) : memmem(at + 2, left - 2, "*/", 2);
	reader->at = end ? (uint32_t)(end - reader->text) + (at[1] == '/' ? 1 : 2) : reader->size;
	return true;
}

/* A string or character; an unclosed one ends with its line. */
static void read_string(struct reader *reader)
{
	uint32_t start = reader->at++;
	char quote = reader->text[start];

	while (reader->at < reader->size && reader->text[reader->at] != quote &&
		reader->text[reader->at] != '\n')
		reader->at +=
			reader->text[reader->at] == '\\' && reader->at + 1 < reader->size ? 2 : 1;
	add_token(reader, quote == '"' ? NC_KIND_STRING : NC_KIND_NUMBER, start + 1, reader->at);
	reader->at++;
}

/* R"end(text)end": quotes and backslashes in it are text. False if there is none here. */
static bool read_raw(struct reader *reader)
{
	const char *at = reader->text + reader->at;
	size_t left = reader->size - reader->at, mark = 2;
	char tail[RAW_MARK_MAX + 3];
	const char *end;

	if (!reader->cpp || left < 3 || at[0] != 'R' || at[1] != '"')
		return false;
	while (mark < left && mark < RAW_MARK_MAX + 2 && !strchr("( )\\\t\v\f\n", at[mark]))
		mark++;
	if (mark == left || at[mark] != '(')
		return false;
	tail[0] = ')';
	memcpy(tail + 1, at + 2, mark - 2);
	tail[mark - 1] = '"';
	end = memmem(at + mark + 1, left - mark - 1, tail, mark);
	add_token(reader, NC_KIND_STRING, reader->at + (uint32_t)mark + 1,
		end ? (uint32_t)(end - reader->text) : reader->size);
	reader->at = end ? (uint32_t)(end - reader->text) + (uint32_t)mark : reader->size;
	return true;
}

/* Passes a word; in numbers of C++ the sign ' may stand between two digits. */
static void read_word(struct reader *reader)
{
	uint32_t start = reader->at;
	bool number = isdigit((unsigned char)reader->text[start]);

	while (reader->at < reader->size &&
		(is_word(reader->text[reader->at]) ||
			(number && reader->cpp && reader->text[reader->at] == '\'' &&
				reader->at + 1 < reader->size &&
				is_word(reader->text[reader->at + 1]))))
		reader->at++;
	/* L, u8, U and u before a raw string are no part of it */
	if (reader->cpp && reader->text[reader->at - 1] == 'R' && reader->at - start <= 3 &&
		reader->at < reader->size && reader->text[reader->at] == '"') {
		reader->at--;
		if (read_raw(reader))
			return;
		reader->at++;
	}
	add_token(reader, number ? NC_KIND_NUMBER : NC_KIND_IDENTIFIER, start, reader->at);
}

/* #include <name>: the rest of the line is one token; other directives are ordinary text. */
static bool read_include(struct reader *reader)
{
	const char *at = reader->text + reader->at;
	size_t left = reader->size - reader->at;
	const char *end = memchr(at, '\n', left);
	const char *begin, *close;

	if (*at != '#')
		return false;
	if (!end)
		end = at + left;
	begin = memmem(at, (size_t)(end - at), "include", 7);
	while (begin && begin < end && *begin != '<' && *begin != '"')
		begin++;
	if (!begin || begin == end)
		return false;
	close = memchr(begin + 1, *begin == '<' ? '>' : '"', (size_t)(end - begin - 1));
	if (!close)
		return false;
	add_token(reader, NC_KIND_IMPORT, (uint32_t)(begin + 1 - reader->text),
		(uint32_t)(close - reader->text));
	reader->at = (uint32_t)(end - reader->text);
	return true;
}

static void read_token(struct reader *reader)
{
	uint32_t start = reader->at;
	char c = reader->text[start];

	if (isspace((unsigned char)c) || c == '\0') {
		reader->at++;
	} else if (c == '"' || c == '\'') {
		read_string(reader);
	} else if (is_word(c)) {
		read_word(reader);
	} else if (!skip_comment(reader) && !read_include(reader)) {
		reader->at++;
		add_token(reader, NC_KIND_NONE, start, reader->at);
	}
}

/* What single tokens are worth; strings that stand beside each other are one. */
static void set_data(struct nc_scan *scan)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t i = 1; i < tree->count; i++) {
		struct nc_node *node = &tree->nodes[i];
		uint32_t size;
		const char *text = nc_tree_text(tree, i, &size);
		char *out;
		ssize_t length;

		if (node->kind != NC_KIND_STRING)
			continue;
		out = nc_arena_alloc(&scan->arena, (size_t)size + 1);
		if (!out)
			return;
		length = nc_decode_escapes(text, size, out);
		node->datum = nc_datum_text(&scan->data, out, (size_t)length);
		if (tree->nodes[i - 1].kind == NC_KIND_STRING)
			node->datum =
				nc_datum_concat(&scan->data, tree->nodes[i - 1].datum, node->datum);
	}
}

/* The character of a token that is no word; NUL for others. */
static char sign_at(const struct nc_tree *tree, uint32_t node)
{
	if (node >= tree->count || tree->nodes[node].kind != NC_KIND_NONE)
		return '\0';
	return tree->text[tree->nodes[node].start];
}

/* The arguments of a call: the last token before each comma that stands in no other bracket. */
static void judge_call(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	struct nc_call call = {.node = node, .function = node};
	uint32_t size, depth = 0, last = 0;
	const char *text = nc_tree_text(tree, node, &size);
	uint32_t function = nc_datum_name(&scan->data, text, size);

	/* calls are short; what is not is no call */
	for (uint32_t i = node + 2; i < tree->count && i < node + 256; i++) {
		char sign = sign_at(tree, i);

		if (sign == '(' || sign == '{' || sign == '[')
			depth++;
		else if ((sign == ')' || sign == '}' || sign == ']') && depth > 0)
			depth--;
		else if ((sign == ',' || sign == ')') && depth == 0) {
			if (last && call.count < NC_ARGUMENTS_MAX)
				call.argument[call.count++] = last;
			last = 0;
			if (sign == ')')
				break;
		} else if (depth == 0) {
			last = i;
		}
	}
	nc_use_judge(scan, node, &call, function);
}

static void judge_tokens(struct nc_scan *scan)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t i = 1; i < tree->count; i++) {
		uint32_t size;
		const char *text = nc_tree_text(tree, i, &size);

		switch (tree->nodes[i].kind) {
		case NC_KIND_IMPORT:
			nc_scan_import(scan, i, text, size, false);
			break;
		case NC_KIND_STRING:
			nc_literal_judge(scan, i, nc_scan_datum(scan, i), NC_ACCESS_MENTION);
			nc_literal_blob(scan, i, nc_scan_datum(scan, i));
			break;
		case NC_KIND_IDENTIFIER:
			if (sign_at(tree, i + 1) == '(')
				judge_call(scan, i);
			if (nc_tree_is(tree, i, "asm") || nc_tree_is(tree, i, "__asm__"))
				nc_scan_find(scan, NC_RULE_NATIVE, i, text, size);
			break;
		default:
			break;
		}
	}
}

void nc_tokens_judge(struct nc_scan *scan)
{
	struct reader reader = {.text = scan->job->text,
		.size = scan->job->size,
		.cpp = scan->job->language == NC_CPP};

	scan->tree = (struct nc_tree){.text = scan->job->text, .size = scan->job->size};
	scan->analyser = &analyser;
	scan->learning = false;
	reader.tree = &scan->tree;
	add_token(&reader, NC_KIND_BRANCH, 0, reader.size); /* the root */
	while (reader.error == 0 && reader.at < reader.size)
		read_token(&reader);
	if (reader.error < 0)
		scan->data.error = reader.error; /* cuts short, or ends the analysis */
	if (scan->tree.count > 0) {
		scan->tree.nodes[0].next = scan->tree.count;
		set_data(scan);
		judge_tokens(scan);
	}
	nc_tree_done(&scan->tree);
}
