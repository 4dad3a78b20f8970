/* One analysis: its jobs, its walks, its names. */
#include "policy/scan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "policy/lists.h"
#include "policy/tokens.h"

/* C and C++ have no grammar here. */
static const struct nc_analyser *const analysers[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = &nc_python,
	[NC_JAVASCRIPT] = &nc_javascript,
	[NC_TYPESCRIPT] = &nc_typescript,
	[NC_SHELL] = &nc_shell,
	[NC_GO] = &nc_go,
	[NC_RUST] = &nc_rust,
};

/* Scopes are numbered so that those of different jobs and languages do not meet. */
#define SCOPE_NODE_BITS 22
#define SCOPE_JOB_BITS 6
static_assert(NC_NODES_MAX < 1U << SCOPE_NODE_BITS, "a node's number fits");
static_assert(NC_JOBS_MAX <= 1U << SCOPE_JOB_BITS, "a job's number fits");
static_assert(NC_LANGUAGE_MAX <= 8, "three bits are left for a language");

uint32_t nc_scan_global(const struct nc_scan *scan)
{
	enum nc_language language = scan->job->language;

	if (language == NC_TYPESCRIPT)
		language = NC_JAVASCRIPT;
	return (uint32_t)language << (SCOPE_NODE_BITS + SCOPE_JOB_BITS);
}

static uint32_t scope_of(const struct nc_scan *scan, uint32_t node)
{
	return nc_scan_global(scan) | (uint32_t)(scan->job - scan->jobs) << SCOPE_NODE_BITS |
	       (node + 1);
}

/* A function's node keeps the scope around it until the walk leaves it. */
static uint32_t scope_around(const struct nc_scan *scan, uint32_t scope)
{
	uint32_t node = (scope & ((1U << SCOPE_NODE_BITS) - 1)) - 1;

	return scan->tree.nodes[node].datum;
}

void nc_scan_enter_function(struct nc_scan *scan, uint32_t node)
{
	nc_scan_node(scan, node)->datum = scan->scope;
	scan->scope = scope_of(scan, node);
}

void nc_scan_leave_function(struct nc_scan *scan, uint32_t node)
{
	scan->scope = nc_scan_node(scan, node)->datum;
	nc_scan_node(scan, node)->datum = 0;
}

void nc_scan_cut(struct nc_scan *scan)
{
	scan->report->cut = true;
}

const struct nc_binding *nc_scan_lookup(const struct nc_scan *scan, const char *name, size_t size)
{
	uint32_t global = nc_scan_global(scan), scope = scan->scope;

	for (uint32_t i = 0; scope != global && i < NC_SCOPES_MAX; i++) {
		const struct nc_binding *binding = nc_scopes_find(&scan->scopes, scope, name, size);

		if (binding)
			return binding;
		scope = scope_around(scan, scope);
	}
	return nc_scopes_find(&scan->scopes, global, name, size);
}

/* What a name may be when the binding at hand does not happen. */
static uint32_t otherwise(struct nc_scan *scan, const char *name, size_t size)
{
	const struct nc_binding *old = nc_scan_lookup(scan, name, size);

	if (old)
		return old->datum;
	if (nc_scan_name(scan->analyser->names, scan->analyser->n_names, name, size))
		return nc_datum_name(&scan->data, name, size);
	return 0;
}

/* A short text, or a name that there is a rule for, or something in it. Others are forgotten. */
static bool is_of_interest(const struct nc_scan *scan, const struct nc_datum *datum)
{
	const struct nc_analyser *analyser = scan->analyser;

	if (datum->kind != NC_DATUM_NAME)
		return datum->kind == NC_DATUM_TEXT && datum->size > 0 && datum->size <= 1024;
	for (size_t i = 0; i < analyser->n_names; i++) {
		const char *name = analyser->names[i].name;

		if (name[0] == datum->text[0] && strlen(name) >= datum->size &&
			memcmp(name, datum->text, datum->size) == 0)
			return true;
	}
	return nc_scan_name(analyser->names, analyser->n_names, datum->text, datum->size);
}

static bool is_among(const struct nc_data *data, const uint32_t *numbers, uint32_t count,
	const struct nc_datum *wanted)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct nc_datum *datum = nc_datum(data, numbers[i]);

		if (datum->kind == wanted->kind && datum->size == wanted->size &&
			memcmp(datum->text, wanted->text, wanted->size) == 0)
			return true;
	}
	return false;
}

/* What a variable stands for that may have been bound anew: that, and the names from before. */
static uint32_t merge(struct nc_scan *scan, uint32_t fresh, uint32_t old)
{
	uint32_t numbers[NC_ALTERNATIVES_MAX], count = 0, known;

	numbers[count++] = fresh;
	for (uint32_t at = nc_datum(&scan->data, fresh)->other; at && count < NC_ALTERNATIVES_MAX;
		at = nc_datum(&scan->data, at)->other)
		numbers[count++] = at;
	known = count;
	for (; old; old = nc_datum(&scan->data, old)->other) {
		const struct nc_datum *datum = nc_datum(&scan->data, old);

		if (!is_of_interest(scan, datum) || is_among(&scan->data, numbers, count, datum))
			continue;
		if (count == NC_ALTERNATIVES_MAX) {
			/* honest variables have many texts, but not many dangerous names */
			if (datum->kind == NC_DATUM_NAME)
				nc_scan_cut(scan);
			continue;
		}
		numbers[count++] = old;
	}
	return count > known ? nc_datum_any(&scan->data, numbers, count) : fresh;
}

void nc_scan_bind(struct nc_scan *scan, const char *name, size_t size, uint32_t datum)
{
	if (scan->conditional > 0 && !scan->unrolling)
		datum = merge(scan, datum, otherwise(scan, name, size));
	nc_scopes_bind(&scan->scopes, scan->scope, name, size, datum);
}

/* Where a node stands in the outermost source. */
static struct nc_place place_of(struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *at = nc_scan_node(scan, node);
	struct nc_place place = {
		.offset = scan->job->depth > 0 ? scan->job->offset : at->start,
		.size = scan->job->depth > 0 ? scan->job->span : at->end - at->start,
		.snippet = scan->job->text + at->start,
		.snippet_size = at->end - at->start,
		.within = scan->job->within,
	};

	return place;
}

void nc_scan_find(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const char *object, size_t size)
{
	struct nc_place place;

	if (scan->learning || scan->unrolling || rule == NC_RULE_NONE)
		return;
	place = place_of(scan, node);
	nc_report_find(scan->report, rule, &place, object, size);
	nc_lists_unknown(scan, rule, node, object, size);
}

void nc_scan_find_datum(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const struct nc_datum *datum)
{
	const struct nc_node *at = nc_scan_node(scan, node);

	if (datum->kind == NC_DATUM_TEXT || datum->kind == NC_DATUM_NAME)
		nc_scan_find(scan, rule, node, datum->text, datum->size);
	else
		nc_scan_find(scan, rule, node, scan->job->text + at->start, at->end - at->start);
}

/* "shell in python", and whether it had to be decoded first. */
static const char *describe(
	struct nc_scan *scan, enum nc_language language, const struct nc_datum *text)
{
	static const char decoded[] = "decoded ", in[] = " in ";
	const char *inner = nc_policy_language_names[language];
	const char *outer = *scan->job->within ? scan->job->within
					       : nc_policy_language_names[scan->job->language];
	struct nc_buf words = NC_BUF(256);
	char *copy = NULL;

	nc_buf_addf(&words, "%s%s%s%s", text->decoded ? decoded : "", inner, in, outer);
	if (words.error == 0)
		copy = nc_arena_text(&scan->arena, words.data, words.size);
	nc_buf_done(&words);
	return copy ? copy : inner;
}

void nc_scan_queue(struct nc_scan *scan, enum nc_language language, uint32_t node,
	const struct nc_datum *text, bool guess)
{
	struct nc_place place;

	if (scan->learning || scan->unrolling || text->kind != NC_DATUM_TEXT || text->size == 0)
		return;
	if (text->too_long && !guess)
		nc_scan_cut(scan);
	if (text->partial && text->size == NC_HOLE_SIZE)
		return; /* nothing of it is known */
	for (uint32_t i = 0; i < scan->n_jobs; i++)
		if (scan->jobs[i].language == language && scan->jobs[i].size == text->size &&
			memcmp(scan->jobs[i].text, text->text, text->size) == 0)
			return;
	if (scan->n_jobs == NC_JOBS_MAX || scan->job->depth == NC_JOB_DEPTH_MAX) {
		if (!guess)
			nc_scan_cut(scan);
		return;
	}
	place = place_of(scan, node);
	scan->jobs[scan->n_jobs++] = (struct nc_job){.language = language,
		.text = text->text,
		.size = text->size,
		.offset = place.offset,
		.span = place.size,
		.depth = scan->job->depth + 1,
		.guess = guess,
		.within = describe(scan, language, text)};
}

static int compare_name(const char *name, size_t size, const char *entry)
{
	int order = strncmp(name, entry, size);

	return order != 0 ? order : entry[size] == '\0' ? 0 : -1;
}

static const struct nc_name_rule *find_exactly(
	const struct nc_name_rule *table, size_t count, const char *name, size_t size)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_name(name, size, table[middle].name);

		if (order == 0)
			return &table[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct nc_name_rule *nc_scan_name(
	const struct nc_name_rule *table, size_t count, const char *name, size_t size)
{
	const struct nc_name_rule *found = NULL;
	char module[NC_NAME_TEXT_MAX + 2];

	/* a text that is taken for a name may hold a NUL, at which comparisons would end */
	if (size == 0 || size > NC_NAME_TEXT_MAX || memchr(name, '\0', size))
		return NULL;
	found = find_exactly(table, count, name, size);
	memcpy(module, name, size);
	while (!found && size > 0) {
		size--;
		if (module[size] != '.')
			continue;
		module[size + 1] = '*';
		found = find_exactly(table, count, module, size + 2);
	}
	return found;
}

void nc_scan_import(struct nc_scan *scan, uint32_t node, const char *name, size_t size, bool hidden)
{
	const struct nc_name_rule *rule;

	if (scan->learning || scan->unrolling)
		return;
	nc_report_import(scan->report, name, size, place_of(scan, node).offset, hidden);
	if (hidden)
		nc_scan_find(scan, NC_RULE_HIDDEN_NAME, node, name, size);
	nc_lists_import(scan, node, name, size);
	rule = nc_scan_name(scan->analyser->imports, scan->analyser->n_imports, name, size);
	if (!rule)
		return;
	nc_scan_find(scan, rule->rule, node, name, size);
	if (rule->use == NC_USE_THREAD)
		scan->report->needs.threads = true;
	if (rule->use == NC_USE_CONNECT || rule->use == NC_USE_LISTEN)
		scan->report->needs.network = true;
	if (rule->use == NC_USE_COMMAND)
		scan->report->needs.subprocess = true;
}

/* How often a walk looks at the clock. */
#define NODES_PER_LOOK 4096U

/* One walk over the whole tree: each node on the way in, and on the way out. */
static void walk(struct nc_scan *scan)
{
	const struct nc_tree *tree = &scan->tree;

	scan->scope = nc_scan_global(scan);
	scan->conditional = 0;
	scan->endless = 0;
	scan->unrolled = 0;
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t at = i;

		/* what was not thought of when the other bounds were set ends here */
		if (i % NODES_PER_LOOK == 0 && nc_clock_ns() >= scan->walk_end_ns) {
			nc_scan_cut(scan);
			return;
		}
		tree->nodes[i].datum = 0;
		scan->analyser->enter(scan, i);
		/* the last node of a subtree is the last of its parent's too, and so on up */
		while (tree->nodes[at].next == i + 1) {
			scan->analyser->leave(scan, at);
			if (at == 0)
				break;
			at = tree->nodes[at].parent;
		}
	}
}

/*
 * A function of the program's own, seen further down, must not hide the builtin of that name that
 * runs until then; where functions are hoisted it does.
 */
static void forget_own(struct nc_scan *scan)
{
	const struct nc_analyser *analyser = scan->analyser;

	for (uint32_t i = 0; i < scan->scopes.capacity; i++) {
		struct nc_binding *binding = &scan->scopes.table[i];
		uint8_t kind = nc_datum(&scan->data, binding->datum)->kind;

		if (binding->used && binding->scope == nc_scan_global(scan) &&
			(kind == NC_DATUM_OWN || kind == NC_DATUM_NONE) &&
			nc_scan_name(
				analyser->names, analyser->n_names, binding->name, binding->size))
			binding->datum = nc_datum_name(&scan->data, binding->name, binding->size);
	}
}

/* Right-to-left overrides and their like: the code that people see is not the code that runs. */
static void check_bidi(struct nc_scan *scan)
{
	const char *text = scan->job->text;

	for (uint32_t i = 0; i + 2 < scan->job->size; i++) {
		unsigned char second = (unsigned char)text[i + 1];
		unsigned char third = (unsigned char)text[i + 2];

		if ((unsigned char)text[i] != 0xe2)
			continue;
		/* U+202A to U+202E, U+2066 to U+2069 */
		if ((second == 0x80 && third >= 0xaa && third <= 0xae) ||
			(second == 0x81 && third >= 0xa6 && third <= 0xa9)) {
			struct nc_place place = {.offset = scan->job->depth ? scan->job->offset : i,
				.size = 3,
				.snippet = "",
				.within = scan->job->within};

			nc_report_find(scan->report, NC_RULE_BIDI, &place, "", 0);
			return;
		}
	}
}

static int parse_job(struct nc_scan *scan)
{
	const struct nc_job *job = scan->job;
	struct nc_grammar *grammar = &scan->policy->grammars[job->language];
	int r;

	if (!grammar->language)
		nc_grammar_init(grammar, scan->analyser->grammar(), scan->analyser->kinds);
	r = nc_tree_parse(grammar, job->text, job->size, scan->deadline_ns, &scan->tree);
	if (r == -ETIME || r == -EFBIG)
		nc_scan_cut(scan);
	return r;
}

/*
 * Names that are the same as others to the language become those: in a copy of the text, in which
 * everything stays where it was. Nobody spells a name of several letters so but to hide it.
 */
static int respell(struct nc_scan *scan)
{
	struct nc_job *job = &scan->jobs[scan->job - scan->jobs];
	char *text = NULL, buffer[NC_NAME_TEXT_MAX];

	for (uint32_t i = 0; i < scan->tree.count; i++) {
		const struct nc_node *node = nc_scan_node(scan, i);
		uint32_t size = node->end - node->start;
		char *plain = buffer;
		size_t length;

		if (node->kind != NC_KIND_IDENTIFIER)
			continue;
		if (size > sizeof(buffer)) /* \u{000...65} */
			plain = nc_arena_alloc(&scan->arena, size);
		length = plain ? scan->analyser->spell(job->text + node->start, size, plain) : 0;
		if (length == 0)
			continue;
		if (!text)
			text = nc_arena_text(&scan->arena, job->text, job->size);
		if (!text)
			return 0; /* check_room() tells */
		memset(text + node->start, ' ', size);
		memcpy(text + node->start, plain, length);
		if (length > 1 && !job->guess)
			nc_scan_find(scan, NC_RULE_HIDDEN_NAME, i, plain, length);
	}
	if (!text)
		return 0;
	job->text = text;
	nc_tree_done(&scan->tree);
	return parse_job(scan);
}

/* Errors of the memory that folding uses: room that ran out cuts the analysis short. */
static int check_room(struct nc_scan *scan)
{
	const int errors[] = {scan->arena.error, scan->data.error, scan->scopes.error};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i] == -ENOMEM)
			return -ENOMEM;
		if (errors[i] < 0)
			nc_scan_cut(scan);
	}
	return 0;
}

static int run_job(struct nc_scan *scan)
{
	int r;

	scan->analyser = analysers[scan->job->language];
	if (!scan->job->guess)
		check_bidi(scan);
	if (!scan->analyser) {
		nc_tokens_judge(scan);
		return check_room(scan);
	}
	r = parse_job(scan);
	if (r == 0 && scan->analyser->spell)
		r = respell(scan);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (scan->tree.broken && scan->job->guess) {
		nc_tree_done(&scan->tree);
		return 0;
	}
	scan->learning = true;
	walk(scan);
	if (!scan->analyser->is_hoisted)
		forget_own(scan);
	scan->learning = false;
	walk(scan);
	nc_lists_text(scan);
	if (scan->tree.broken)
		nc_scan_find(scan, NC_RULE_PARSE, scan->tree.error, "", 0);
	nc_tree_done(&scan->tree);
	return check_room(scan);
}

int nc_scan_run(struct nc_policy *policy, enum nc_language language, struct nc_report *report)
{
	struct nc_scan *scan = calloc(1, sizeof(*scan));
	int r;

	if (!scan)
		return -ENOMEM;
	scan->policy = policy;
	scan->report = report;
	scan->arena.max = NC_FOLD_MEMORY_MAX;
	scan->deadline_ns = nc_clock_ns() + NC_PARSE_TIME_NS;
	scan->walk_end_ns = scan->deadline_ns + NC_WALK_TIME_NS;
	scan->n_jobs = 1;
	scan->jobs[0] = (struct nc_job){.language = language,
		.text = report->source,
		.size = report->source_size,
		.within = ""};
	r = nc_data_init(&scan->data, &scan->arena);
	for (uint32_t i = 0; r == 0 && i < scan->n_jobs; i++) {
		scan->job = &scan->jobs[i];
		r = run_job(scan);
	}
	nc_data_done(&scan->data);
	nc_scopes_done(&scan->scopes);
	nc_arena_done(&scan->arena);
	free(scan);
	return r;
}

/* The bytes below ERROR nodes, each counted once, and the nodes that were made up. */
static size_t count_faults(const struct nc_tree *tree)
{
	size_t faults = 0;

	for (uint32_t i = 0; i < tree->count;) {
		const struct nc_node *node = &tree->nodes[i];

		if (node->kind == NC_KIND_ERROR)
			faults += node->end > node->start ? node->end - node->start : 1;
		else if (node->missing)
			faults++;
		i = node->kind == NC_KIND_ERROR ? node->next : i + 1;
	}
	return faults;
}

int nc_policy_faults(enum nc_language language, const char *text, size_t size, uint64_t deadline_ns,
	size_t *ret_faults)
{
	/* by JavaScript's grammar: what that stumbles over tells the two apart */
	const struct nc_analyser *analyser = language == NC_TYPESCRIPT ? &nc_javascript
					     : language >= 0 && language < NC_LANGUAGE_MAX
						     ? analysers[language]
						     : NULL;
	struct nc_grammar grammar = {0};
	struct nc_tree tree;
	int r;

	if (language < 0 || language >= NC_LANGUAGE_MAX)
		return -EINVAL;
	if (!analyser)
		return -EOPNOTSUPP;
	if (size > NC_SOURCE_MAX)
		return -EFBIG;
	nc_grammar_init(&grammar, analyser->grammar(), analyser->kinds);
	r = nc_tree_parse(&grammar, size > 0 ? text : "", (uint32_t)size, deadline_ns, &tree);
	if (r < 0)
		return r;
	*ret_faults = count_faults(&tree);
	nc_tree_done(&tree);
	return 0;
}
