/*
 * Trees as they are read from inside of tree-sitter, against what its API tells about the same
 * text: its parser untouched, its tree seen through its cursor.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>
#include <unistd.h>

#include "policy/grammars.h"
#include "policy/scan.h"

static const struct nc_analyser *const analysers[] = {
	&nc_python, &nc_javascript, &nc_typescript, &nc_shell, &nc_go, &nc_rust};
#define LANGUAGES (sizeof(analysers) / sizeof(analysers[0]))
static struct nc_grammar grammars[LANGUAGES];

/* What the API tells about the node at the cursor; false: it is one that is left out. */
static bool describe(
	const struct nc_grammar *grammar, const TSTreeCursor *cursor, struct nc_node *ret_node)
{
	TSNode node = ts_tree_cursor_current_node(cursor);
	TSSymbol symbol = ts_node_symbol(node);

	*ret_node = (struct nc_node){
		.start = ts_node_start_byte(node),
		.end = ts_node_end_byte(node),
		.role = grammar->role[ts_tree_cursor_current_field_id(cursor)],
		.kind = ts_node_is_error(node)		 ? (uint8_t)NC_KIND_ERROR
			: symbol < sizeof(grammar->kind) ? grammar->kind[symbol]
							 : 0,
		.missing = ts_node_is_missing(node),
	};
	if (ts_node_child_count(node) > 0)
		return true;
	return ret_node->kind != NC_KIND_DULL &&
	       (ret_node->kind != NC_KIND_NONE || ret_node->role != NC_ROLE_NONE ||
		       ret_node->missing || ts_node_is_named(node));
}

static void compare_node(const struct nc_tree *tree, uint32_t at, const struct nc_node *wanted)
{
	const struct nc_node *node = &tree->nodes[at];

	assert_true(at < tree->count);
	assert_int_equal(node->start, wanted->start);
	assert_int_equal(node->end, wanted->end);
	assert_int_equal(node->kind, wanted->kind);
	assert_int_equal(node->role, wanted->role);
	assert_int_equal(node->missing, wanted->missing);
	assert_int_equal(node->parent, wanted->parent);
}

/* Walks with the cursor and compares; the number of nodes on the way. */
static uint32_t compare(const struct nc_grammar *grammar, const struct nc_tree *tree, TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	uint32_t count = 0, parent = 0;
	bool more = true;

	while (more) {
		struct nc_node wanted;

		/* the root is there even if it has nothing */
		if (describe(grammar, &cursor, &wanted) || count == 0) {
			wanted.parent = parent;
			compare_node(tree, count++, &wanted);
		}
		if (ts_tree_cursor_goto_first_child(&cursor)) {
			parent = count - 1;
			continue;
		}
		while (more && !ts_tree_cursor_goto_next_sibling(&cursor)) {
			more = ts_tree_cursor_goto_parent(&cursor);
			assert_int_equal(tree->nodes[parent].next, count);
			parent = tree->nodes[parent].parent;
		}
	}
	ts_tree_cursor_delete(&cursor);
	return count;
}

static void check(size_t language, const char *text, size_t size)
{
	struct nc_grammar *grammar = &grammars[language];
	struct nc_tree tree;
	TSParser *parser;
	TSTree *wanted;
	bool is_broken = false;

	assert_int_equal(nc_tree_parse(grammar, text, (uint32_t)size, UINT64_MAX, &tree), 0);
	ts_set_allocator(NULL, NULL, NULL, NULL);
	parser = ts_parser_new();
	assert_true(ts_parser_set_language(parser, grammar->language));
	wanted = ts_parser_parse_string(parser, NULL, text, (uint32_t)size);
	assert_int_equal(compare(grammar, &tree, ts_tree_root_node(wanted)), tree.count);
	for (uint32_t i = 0; i < tree.count && !is_broken; i++)
		is_broken = tree.nodes[i].missing || tree.nodes[i].kind == NC_KIND_ERROR;
	assert_int_equal(tree.broken, is_broken);
	ts_tree_delete(wanted);
	ts_parser_delete(parser);
	nc_tree_done(&tree);
}

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < LANGUAGES; i++)
		nc_grammar_init(&grammars[i], analysers[i]->grammar(), analysers[i]->kinds);
	return 0;
}

/* Each text as each language: most then do not parse, and tree-sitter mends what it can. */
static void check_all(const char *text, size_t size)
{
	for (size_t i = 0; i < LANGUAGES; i++)
		check(i, text, size);
}

static void odd_texts_are_read_as_tree_sitter_reads_them(void **state)
{
	static const char *const texts[] = {"", "\n", "x", "\xff", "\xe2\x82", "\xef\xbb\xbf",
		"\xef\xbb\xbfx = 1\n", "x = 1\r\ny = 2\r\n",
		"if x:\n\ty = '\xc3\xa9\xe6\xbc\xa2'\n z\n", "f(\xf0\x9f\x98\x80, 'a' \\\n 'b')\n",
		"a\xff\xfe = 'b\x80'\n# \xc3\n", "\xc3", "cat <<E\n$x \xc3\xa9\nE\n",
		"def f(:\n  x = (((\n", "`${a}\xe2\x80\xae`"};
	static const char nul[] = "a = 'b\0c'\nd\0 = 1\n";

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_all(texts[i], strlen(texts[i]));
	check_all(nul, sizeof(nul) - 1);
}

static void deep_trees_are_read_to_the_bottom(void **state)
{
	static char text[20001];

	(void)state;
	memset(text, '(', 10000);
	memset(text + 10000, ')', 10000);
	text[10000] = '1';
	check(0, text, sizeof(text));
}

/* The programs of tests/policy, whole and without their ends. */
static void check_file(int folder, const char *name)
{
	static char text[64 * 1024];
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, text, sizeof(text));

	assert_true(size >= 0);
	close(fd);
	check_all(text, (size_t)size);
	check_all(text, (size_t)size * 2 / 3);
}

static void programs_are_read_as_tree_sitter_reads_them(void **state)
{
	static const char *const folders[] = {"benign/python", "hostile/python", "hostile/shell",
		"hostile/javascript", "hostile/go", "hostile/rust"};
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[256];
		struct dirent *entry;
		DIR *folder;

		(void)snprintf(path, sizeof(path), NC_UNIT_DIR "/../policy/%s", folders[i]);
		folder = opendir(path);
		assert_non_null(folder);
		while ((entry = readdir(folder))) {
			if (entry->d_type != DT_REG)
				continue;
			check_file(dirfd(folder), entry->d_name);
			count++;
		}
		closedir(folder);
	}
	assert_true(count > 50);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_texts_are_read_as_tree_sitter_reads_them),
		cmocka_unit_test(deep_trees_are_read_to_the_bottom),
		cmocka_unit_test(programs_are_read_as_tree_sitter_reads_them),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
