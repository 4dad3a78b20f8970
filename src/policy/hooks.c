/* The layer inside of interpreters. */
#include "policy/hooks.h"

#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "policy/rules.h"

enum nc_policy_hooks nc_hooks_mode(const struct nc_terms *terms)
{
	enum nc_policy_hooks hooks = (enum nc_policy_hooks)terms->values.hooks.number;

	if (hooks == NC_HOOKS_ENFORCE && terms->values.mode.number == NC_MODE_AUDIT)
		return NC_HOOKS_REPORT;
	return hooks;
}

/* What Python's audit events mean. */
static const struct event {
	const char *name;
	enum nc_rule_id rule;
	char kind, depth;
	/* it undoes the layer, so that a policy with lists cannot let it pass */
	bool guards;
} events[] = {
	{"os.system", NC_RULE_SHELL, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"subprocess.Popen", NC_RULE_RUN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"os.exec", NC_RULE_RUN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"os.posix_spawn", NC_RULE_RUN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"os.spawn", NC_RULE_RUN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"pty.spawn", NC_RULE_RUN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"os.fork", NC_RULE_FORK, NC_HOOK_EVENT, NC_HOOK_PROGRAM, false},
	{"os.forkpty", NC_RULE_FORK, NC_HOOK_EVENT, NC_HOOK_PROGRAM, false},
	{"os.kill", NC_RULE_KILL, NC_HOOK_EVENT, NC_HOOK_PROGRAM, false},
	{"os.killpg", NC_RULE_KILL, NC_HOOK_EVENT, NC_HOOK_PROGRAM, false},
	{"socket.connect", NC_RULE_NETWORK, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"socket.sendto", NC_RULE_NETWORK, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"socket.bind", NC_RULE_LISTEN, NC_HOOK_EVENT, NC_HOOK_ANYBODY, false},
	{"ctypes.*", NC_RULE_NATIVE, NC_HOOK_EVENT, NC_HOOK_PROGRAM, true},
	{"extension", NC_RULE_NATIVE, NC_HOOK_NATIVE, NC_HOOK_ANYBODY, true},
	{"memory", NC_RULE_ENVIRONMENT, NC_HOOK_MEMORY, NC_HOOK_ANYBODY, true},
	{"/etc/shadow", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.ssh/", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.aws/", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.kube/", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.docker/config.json", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.git-credentials", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"/.netrc", NC_RULE_CREDENTIALS, NC_HOOK_OPEN, NC_HOOK_ANYBODY, false},
	{"code.__new__", NC_RULE_INTROSPECT, NC_HOOK_EVENT, NC_HOOK_PROGRAM, true},
	{"function.__new__", NC_RULE_INTROSPECT, NC_HOOK_EVENT, NC_HOOK_PROGRAM, true},
	{"marshal.loads", NC_RULE_DESERIALISE, NC_HOOK_EVENT, NC_HOOK_PROGRAM, true},
};

/* What a forbidden module is used through, also by other modules and where it is loaded anyway. */
static const struct {
	const char *module, *event;
	char depth;
} uses[] = {
	{"subprocess", "subprocess.Popen", NC_HOOK_ANYBODY},
	{"subprocess", "os.system", NC_HOOK_ANYBODY},
	{"subprocess", "os.exec", NC_HOOK_ANYBODY},
	{"subprocess", "os.posix_spawn", NC_HOOK_ANYBODY},
	{"subprocess", "os.spawn", NC_HOOK_ANYBODY},
	{"subprocess", "pty.spawn", NC_HOOK_ANYBODY},
	{"socket", "socket.connect", NC_HOOK_ANYBODY},
	{"socket", "socket.sendto", NC_HOOK_ANYBODY},
	{"socket", "socket.bind", NC_HOOK_ANYBODY},
	{"socket", "socket.*", NC_HOOK_PROGRAM},
	{"os", "os.*", NC_HOOK_PROGRAM},
	/* not all: the interpreter itself has events for errors that nobody caught */
	{"sys", "sys._*", NC_HOOK_PROGRAM},
	{"sys", "sys.set*", NC_HOOK_PROGRAM},
	{"sys", "sys.addaudithook", NC_HOOK_PROGRAM},
	{"ctypes", "ctypes.*", NC_HOOK_PROGRAM},
	{"shutil", "shutil.*", NC_HOOK_PROGRAM},
	{"ftplib", "ftplib.*", NC_HOOK_ANYBODY},
	{"smtplib", "smtplib.*", NC_HOOK_ANYBODY},
	{"urllib", "urllib.*", NC_HOOK_PROGRAM},
	{"sqlite3", "sqlite3.*", NC_HOOK_PROGRAM},
	{"pickle", "pickle.*", NC_HOOK_PROGRAM},
	{"marshal", "marshal.*", NC_HOOK_PROGRAM},
};

/* The same module, without the clothes. */
static const struct {
	const char *module, *inner;
} bare[] = {
	{"os", "posix"},
	{"socket", "_socket"},
	{"subprocess", "_posixsubprocess"},
	{"ctypes", "_ctypes"},
};

/* A text of rows. */
struct page {
	const struct nc_terms *terms;
	const char *policy;
	bool enforces;
	char verdict; /* of the rows that are wanted now: refusals stand first */
	struct nc_buf *out;
};

/* Words of a policy may be anything; what cannot be a name in Python never matches. */
static bool is_plain(const char *word)
{
	for (const char *at = word; *at; at++)
		if ((unsigned char)*at <= ' ')
			return false;
	return *word != '\0';
}

static void add_row(
	const struct page *page, char kind, char depth, const char *name, enum nc_rule_id rule)
{
	bool refuses = page->enforces && nc_policy_refuses(page->terms->analyser, rule);

	if ((refuses ? NC_HOOK_REFUSE : NC_HOOK_NOTICE) != page->verdict || !is_plain(name))
		return;
	nc_buf_addf(page->out,
		"%c\t%c\t%c\t%s\t%s\tthe policy %s refuses it; another (`policy`, --policy) may "
		"allow it; instead: %s\n",
		kind, page->verdict, depth, name, nc_rules[rule].id, page->policy,
		nc_rules[rule].remedy);
}

static void add_imports(const struct page *page, const struct nc_policy_lists *lists)
{
	const char *const *at;

	for (at = lists->forbidden_imports; at && *at; at++) {
		add_row(page, NC_HOOK_IMPORT, NC_HOOK_PROGRAM, *at, NC_RULE_LIST_IMPORT);
		for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
			if (nc_streq(uses[i].module, *at))
				add_row(page, NC_HOOK_EVENT, uses[i].depth, uses[i].event,
					NC_RULE_LIST_IMPORT);
		for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++)
			if (nc_streq(bare[i].module, *at))
				add_row(page, NC_HOOK_IMPORT, NC_HOOK_PROGRAM, bare[i].inner,
					NC_RULE_LIST_IMPORT);
	}
	/* an empty list allows nothing: the row of a module that there cannot be says so */
	if (lists->allowed_imports)
		add_row(page, NC_HOOK_ALLOWED, NC_HOOK_PROGRAM, "-", NC_RULE_LIST_IMPORT);
	for (at = lists->allowed_imports; at && *at; at++)
		add_row(page, NC_HOOK_ALLOWED, NC_HOOK_PROGRAM, *at, NC_RULE_LIST_IMPORT);
}

bool nc_hooks_watches_imports(const struct nc_terms *terms)
{
	const struct nc_policy_lists *lists = nc_policy_lists(terms->analyser, NC_PYTHON);

	return nc_hooks_mode(terms) != NC_HOOKS_OFF && lists &&
	       (lists->allowed_imports ||
		       (lists->forbidden_imports && lists->forbidden_imports[0]));
}

static void add_functions(const struct page *page, const struct nc_policy_lists *lists)
{
	for (const char *const *at = lists->forbidden_functions; at && *at; at++)
		add_row(page,
			nc_text_has_word("eval exec compile", ' ', *at) ? NC_HOOK_FUNCTION
									: NC_HOOK_EVENT,
			NC_HOOK_PROGRAM, *at, NC_RULE_LIST_FUNCTION);
}

static bool holds_lists(const struct nc_terms *terms, const struct nc_policy_lists *lists)
{
	return (lists->forbidden_imports || lists->forbidden_functions || lists->allowed_imports) &&
	       nc_policy_refuses(terms->analyser, NC_RULE_LIST_IMPORT);
}

static void add_events(const struct page *page, bool guarded)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const struct event *event = &events[i];

		if (!(event->guards && guarded)) {
			add_row(page, event->kind, event->depth, event->name, event->rule);
			continue;
		}
		if (page->verdict != NC_HOOK_REFUSE)
			continue;
		nc_buf_addf(page->out,
			"%c\t%c\t%c\t%s\t%s\tthe policy %s has lists, which this would get "
			"around; another (`policy`, --policy) may allow it; instead: %s\n",
			event->kind, NC_HOOK_REFUSE, event->depth, event->name,
			nc_rules[event->rule].id, page->policy, nc_rules[event->rule].remedy);
	}
}

void nc_hooks_python(const struct nc_terms *terms, const char *token, const char *const *writable,
	struct nc_buf *out)
{
	static const char verdicts[] = {NC_HOOK_REFUSE, NC_HOOK_NOTICE};
	const struct nc_policy_lists *lists = nc_policy_lists(terms->analyser, NC_PYTHON);
	bool enforces = nc_hooks_mode(terms) == NC_HOOKS_ENFORCE;
	char policy[NC_TEXT_QUOTED_MAX];

	(void)nc_text_quote(policy, terms->policy);
	nc_buf_addf(out, "%s\n", token);
	for (; *writable; writable++)
		nc_buf_addf(out, "%c\t%s/\n", NC_HOOK_WRITABLE, *writable);
	for (size_t i = 0; i < sizeof(verdicts); i++) {
		const struct page page = {terms, policy, enforces, verdicts[i], out};

		add_imports(&page, lists);
		add_functions(&page, lists);
		add_events(&page, enforces && holds_lists(terms, lists));
	}
}

bool nc_hooks_holds_shell(const struct nc_terms *terms)
{
	const struct nc_policy_lists *lists = nc_policy_lists(terms->analyser, NC_SHELL);

	return nc_hooks_mode(terms) == NC_HOOKS_ENFORCE &&
	       nc_policy_refuses(terms->analyser, NC_RULE_LIST_COMMAND) &&
	       (lists->forbidden_commands || lists->allowed_commands);
}

/* A word that bash takes for itself wherever it stands. */
static bool is_program_name(const char *word)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.+-";
	static const char reserved[] = "if then else elif fi case esac for select while until do "
				       "done in function time coproc command";

	return *word && *word != '-' && word[strspn(word, legal)] == '\0' &&
	       !nc_text_has_word(reserved, ' ', word);
}

/* The shell's own words below stand in single quotes: no name of a policy may end them. */
static void add_quoted(struct nc_buf *out, const char *text)
{
	for (; *text; text++)
		nc_buf_add(out, *text == '\'' ? "?" : text, 1);
}

static void add_refusal(const struct nc_terms *terms, const char *token, struct nc_buf *out)
{
	const struct nc_rule_text *rule = &nc_rules[NC_RULE_LIST_COMMAND];

	nc_buf_addf(out,
		"\"$(type -P rm)\" -f -- \"$BASH_ENV\"\n"
		"unset BASH_ENV\n"
		"exec 200>&2\n"
		"__nacre_refuse() {\n"
		"local __line=\"${BASH_LINENO[1]:-0}\" __file=\"${0##*/}\"\n"
		"printf '\\036%s\\t!\\t1\\t%%d\\t%s\\t%%.100s\\t%%.100s\\n' "
		"\"$__line\" \"$1\" \"$__file\" >&200\n"
		"printf '%%s: line %%d: %%s: %%s\\n' \"$0\" \"$__line\" \"$1\" 'the policy ",
		token, rule->id);
	add_quoted(out, terms->policy);
	nc_buf_addf(out,
		" refuses it; another (`policy`, --policy) may allow it; instead: %s [%s]' >&2\n"
		"return 126\n"
		"}\n"
		"readonly -f __nacre_refuse\n",
		rule->remedy, rule->id);
}

static void add_forbidden(const char *const *commands, struct nc_buf *out)
{
	nc_buf_adds(out, "command() {\n"
			 "local __at=1\n"
			 "while [[ ${!__at-} == -p || ${!__at-} == -- ]]; do ((__at++)); done\n"
			 "case \"${!__at-}\" in\n");
	for (const char *const *at = commands; *at; at++)
		if (is_program_name(*at))
			nc_buf_addf(out, "%s) __nacre_refuse %s; return;;\n", *at, *at);
	nc_buf_adds(out, "esac\nbuiltin command \"$@\"\n}\nreadonly -f command\n");
	for (const char *const *at = commands; *at; at++)
		if (is_program_name(*at))
			nc_buf_addf(out, "function %s { __nacre_refuse %s; }\nreadonly -f %s\n",
				*at, *at, *at);
}

static void add_allowed(const char *const *commands, const char *bin, struct nc_buf *out)
{
	nc_buf_adds(out, "__nacre_make() {\n"
			 "local __name __path __found=() __ln __mkdir\n"
			 "__ln=$(type -P ln) __mkdir=$(type -P mkdir)\n"
			 "for __name in");
	for (const char *const *at = commands; *at; at++)
		if (is_program_name(*at))
			nc_buf_addf(out, " %s", *at);
	nc_buf_addf(out,
		"; do __path=$(type -P \"$__name\") && __found+=(\"$__path\"); done\n"
		"\"$__mkdir\" -m 755 -- '%s' || exit 125\n"
		"if ((${#__found[@]})); then \"$__ln\" -s -t '%s' -- \"${__found[@]}\" || exit "
		"125; fi\n"
		"}\n"
		"__nacre_make\nunset -f __nacre_make\n"
		"readonly PATH='%s'\n"
		"command_not_found_handle() { __nacre_refuse \"$1\"; }\n"
		"readonly -f command_not_found_handle\n",
		bin, bin, bin);
}

void nc_hooks_shell(
	const struct nc_terms *terms, const char *token, const char *bin, struct nc_buf *out)
{
	const struct nc_policy_lists *lists = nc_policy_lists(terms->analyser, NC_SHELL);

	add_refusal(terms, token, out);
	if (lists->allowed_commands)
		add_allowed(lists->allowed_commands, bin, out);
	if (lists->forbidden_commands)
		add_forbidden(lists->forbidden_commands, out);
}

static bool names(const char *const *words, const char *word)
{
	while (words && *words && !nc_streq(*words, word))
		words++;
	return words && *words;
}

/* Whether the lists keep a module of Node's from programs. */
static bool forbids_module(
	const struct nc_terms *terms, const struct nc_policy_lists *lists, const char *module)
{
	char pattern[64];

	if (nc_policy_refuses(terms->analyser, NC_RULE_LIST_IMPORT) &&
		(names(lists->forbidden_imports, module) ||
			(lists->allowed_imports && !names(lists->allowed_imports, module))))
		return true;
	(void)snprintf(pattern, sizeof(pattern), "require('%s')", module);
	return nc_policy_refuses(terms->analyser, NC_RULE_LIST_PATTERN) &&
	       names(lists->forbidden_patterns, pattern);
}

unsigned int nc_hooks_node(const struct nc_terms *terms, enum nc_language language)
{
	const struct nc_policy_lists *lists = nc_policy_lists(terms->analyser, language);
	unsigned int forbids = 0;

	if (nc_hooks_mode(terms) != NC_HOOKS_ENFORCE)
		return 0;
	if (forbids_module(terms, lists, "child_process") ||
		nc_policy_refuses(terms->analyser, NC_RULE_RUN))
		forbids |= NC_NODE_NO_PROGRAMS;
	if (forbids_module(terms, lists, "worker_threads"))
		forbids |= NC_NODE_NO_WORKERS;
	if (forbids_module(terms, lists, "fs"))
		forbids |= NC_NODE_NO_WRITING;
	if ((nc_policy_refuses(terms->analyser, NC_RULE_LIST_FUNCTION) &&
		    names(lists->forbidden_functions, "eval")) ||
		(nc_policy_refuses(terms->analyser, NC_RULE_LIST_PATTERN) &&
			names(lists->forbidden_patterns, "eval(")) ||
		nc_policy_refuses(terms->analyser, NC_RULE_EVAL))
		forbids |= NC_NODE_NO_EVAL;
	return forbids;
}

void nc_hook_reader_init(struct nc_hook_reader *reader, const char *token)
{
	*reader = (struct nc_hook_reader){0};
	(void)snprintf(reader->token, sizeof(reader->token), "%s", token);
}

static enum nc_rule_id find_rule(const char *id)
{
	for (enum nc_rule_id rule = 1; rule < NC_RULE_MAX; rule++)
		if (nc_streq(nc_rules[rule].id, id))
			return rule;
	return NC_RULE_NONE;
}

/* A text as it may be shown: whoever made the record may have put anything into it. */
static bool take_text(char *field, char ret_text[static NC_HOOK_FIELD_MAX + 1])
{
	size_t size = strlen(field);

	if (size > NC_HOOK_FIELD_MAX)
		return false;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)field[i] < ' ' || field[i] == 0x7f)
			field[i] = '?';
	memcpy(ret_text, field, size + 1);
	return true;
}

static bool parse_record(char *text, struct nc_hook_record *ret_record)
{
	struct nc_hook_record record = {0};
	char *fields[6] = {text};
	uint64_t line;

	for (size_t i = 1; i < 6; i++) {
		char *tab = strchr(fields[i - 1], '\t');

		if (!tab)
			return false;
		*tab = '\0';
		fields[i] = tab + 1;
	}
	record.refused = fields[0][0] == NC_HOOK_REFUSE;
	record.rule = find_rule(fields[3]);
	if ((!record.refused && fields[0][0] != NC_HOOK_NOTICE) || fields[0][1] != '\0' ||
		nc_parse_u64(fields[1], 1, UINT32_MAX, &record.count) < 0 ||
		nc_parse_u64(fields[2], 0, INT32_MAX, &line) < 0 || record.rule == NC_RULE_NONE ||
		!take_text(fields[4], record.object) || !take_text(fields[5], record.file))
		return false;
	record.line = (uint32_t)line;
	*ret_record = record;
	return true;
}

/* A count that is known already grows; what does not fit is dropped. */
static void keep_record(struct nc_hook_reader *reader, const struct nc_hook_record *record)
{
	for (size_t i = 0; i < reader->n_records; i++) {
		struct nc_hook_record *known = &reader->records[i];

		if (known->refused != record->refused || known->line != record->line ||
			known->rule != record->rule || !nc_streq(known->object, record->object) ||
			!nc_streq(known->file, record->file))
			continue;
		if (record->count > known->count)
			known->count = record->count;
		return;
	}
	if (reader->n_records < NC_HOOK_RECORDS_MAX)
		reader->records[reader->n_records++] = *record;
}

/* A whole line that began as a record does. */
static void take_record(struct nc_hook_reader *reader)
{
	struct nc_hook_record record;
	char *text = reader->held + 1 + NC_HOOK_TOKEN_SIZE;

	reader->held[reader->n_held] = '\0';
	if (*text == '\t' && strlen(reader->held) == reader->n_held &&
		parse_record(text + 1, &record))
		keep_record(reader, &record);
	reader->n_held = 0;
}

/* Whether the byte goes on with what is held. */
static bool goes_on(const struct nc_hook_reader *reader, char c)
{
	if (reader->n_held <= NC_HOOK_TOKEN_SIZE)
		return c == reader->token[reader->n_held - 1];
	return reader->n_held < sizeof(reader->held) - 1;
}

void nc_hook_reader_add(struct nc_hook_reader *reader, const char *data, size_t size,
	nc_hook_pass *pass, void *context)
{
	while (size > 0) {
		const char *mark = reader->n_held == 0 ? memchr(data, NC_HOOK_MARK, size) : data;
		size_t plain = mark ? (size_t)(mark - data) : size;

		if (plain > 0)
			pass(context, data, plain);
		data += plain;
		size -= plain;
		if (size == 0)
			return;
		if (reader->n_held > NC_HOOK_TOKEN_SIZE && *data == '\n') {
			take_record(reader);
		} else if (reader->n_held == 0 || goes_on(reader, *data)) {
			reader->held[reader->n_held++] = *data;
		} else { /* the byte may begin another */
			nc_hook_reader_end(reader, pass, context);
			continue;
		}
		data++;
		size--;
	}
}

void nc_hook_reader_end(struct nc_hook_reader *reader, nc_hook_pass *pass, void *context)
{
	size_t size = reader->n_held;

	reader->n_held = 0;
	if (size > 0)
		pass(context, reader->held, size);
}

void nc_hooks_count(const struct nc_hook_reader *reader, struct nc_hook_counts *ret_counts)
{
	struct nc_hook_counts counts = {0};

	for (size_t i = 0; i < reader->n_records; i++) {
		const struct nc_hook_record *record = &reader->records[i];

		counts.refusals += record->refused ? record->count : 0;
		counts.secrets += record->rule == NC_RULE_CREDENTIALS;
		if (!record->refused &&
			(record->rule == NC_RULE_RUN || record->rule == NC_RULE_SHELL ||
				record->rule == NC_RULE_FORK))
			counts.starts += record->count;
	}
	*ret_counts = counts;
}
