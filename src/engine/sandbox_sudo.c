/*
 * `sudo` inside sandboxes.
 *
 * Theory of operation: nacre-files listens in the sandbox (src/inside/sudo_verb.c) and passes on
 * what nacre-sudo says there, as frames of up to 16 clients. Who asks is a stranger, and who passes
 * it on could be one: a frame that is wrong ends its client, or all of them. What is asked for is
 * made a request for a command, of user root, and goes the way that a request of the tenant's goes:
 * it is read as strictly, the policy reads its line, quotas count it, the journal has it.
 *
 * Nothing here is without a bound: of each client's input there is one window, and one of output is
 * on its way to it before its command waits. Commands begin as often as there are tokens, which
 * come with time: in the journal, each is a line that others pay for.
 */
#include "engine/sandbox_sudo.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sudowire.h"
#include "base/text.h"
#include "engine/analysts.h"
#include "engine/sandbox_parts.h"

/* How often commands may begin: so many at once, and so many each second. */
#define TOKENS_MAX 64U
#define TOKENS_EACH 16U
/* All that may wait for nacre-files to take it. */
#define PENDING_MAX (NC_SUDO_CLIENTS_MAX * (NC_SUDO_HELD_MAX + 4096U))
#define BACKOFF_MAX_NS (64 * NC_NS_PER_S)
/* Of what nacre-files says when it fails; nothing of it is used. */
#define SAID_MAX 4096U
/* Version and counts, before the words of a request. */
#define REQUEST_HEAD 5U
/* Processes that a sandbox has at least, for nacre-files to be one of them. */
#define PIDS_LEAST 8U

enum stage {
	FREE,
	WAITS,	 /* for a token */
	STUDIED, /* by the policy */
	RUNS,
	ENDED, /* its last word was said; GONE is to come */
};

struct client {
	struct nc_sudo *sudo;
	enum stage stage;
	json_t *body;
	struct nc_buf line;
	struct nc_study study;
	struct nc_process *process;
	struct nc_buf input; /* that the command has not taken */
	size_t input_at;
	size_t allowed; /* so much more of it may come */
	size_t owed;	/* so much was taken, and not yet said */
	bool input_ends, feeding;
	size_t on_way; /* of output */
};

struct nc_sudo {
	struct nc_sandbox *sandbox;
	struct nc_file_task *task; /* nacre-files; NULL: not now */
	uint64_t began_ns, next_ns, backoff_ns;
	unsigned int tokens;
	struct nc_buf in;  /* a frame of it, as far as it is here */
	struct nc_buf out; /* that it has not taken */
	size_t out_at;
	bool flushing;
	struct client client[NC_SUDO_CLIENTS_MAX];
};

/* ---- to nacre-files ---- */

static void flush(struct nc_sudo *sudo)
{
	if (sudo->flushing) /* writing says itself that there is room */
		return;
	sudo->flushing = true;
	while (sudo->task && sudo->out_at < sudo->out.size) {
		size_t n = nc_file_write(
			sudo->task, sudo->out.data + sudo->out_at, sudo->out.size - sudo->out_at);

		if (n == 0)
			break;
		sudo->out_at += n;
	}
	if (sudo->out_at == sudo->out.size)
		sudo->out.size = sudo->out_at = 0;
	sudo->flushing = false;
}

static void say(struct client *client, enum nc_sudo_kind kind, const void *data, size_t size)
{
	struct nc_sudo *sudo = client->sudo;
	unsigned char head[NC_SUDO_HEAD];

	nc_sudo_put_head(head, &(struct nc_sudo_head){.client = (uint8_t)(client - sudo->client),
				       .kind = (uint8_t)kind,
				       .size = (uint32_t)size});
	if (sudo->out_at > PENDING_MAX / 2) {
		memmove(sudo->out.data, sudo->out.data + sudo->out_at,
			sudo->out.size - sudo->out_at);
		sudo->out.size -= sudo->out_at;
		sudo->out_at = 0;
	}
	nc_buf_add(&sudo->out, head, sizeof(head));
	if (size > 0)
		nc_buf_add(&sudo->out, data, size);
	flush(sudo);
}

/* All that belongs to a client but its number, which is free only after GONE. */
static void client_clear(struct client *client)
{
	nc_analysts_forget(&client->study);
	nc_study_done(&client->study);
	client->study = (struct nc_study){0};
	json_decref(client->body);
	client->body = NULL;
	nc_buf_done(&client->line);
	nc_buf_done(&client->input);
	if (client->process)
		nc_process_forget(client->process, client);
	client->process = NULL;
}

static void end_with(struct client *client, enum nc_sudo_kind kind, const void *data, size_t size)
{
	client_clear(client);
	client->stage = ENDED;
	say(client, kind, data, size);
}

static void refuse(struct client *client, const char *why)
{
	end_with(client, NC_SUDO_REFUSED, why, strlen(why));
}

/* ---- the command ---- */

/* Its client is not there to have anything of it. */
static void kill_command(struct client *client)
{
	struct nc_process *process = client->process;

	client_clear(client);
	if (process)
		(void)nc_process_kill(process);
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct client *client = context;

	while (size > 0) {
		size_t n = size < NC_SUDO_FRAME_MAX ? size : NC_SUDO_FRAME_MAX;

		client->on_way += NC_SUDO_HEAD + n;
		say(client, stream == NC_STREAM_OUTPUT ? NC_SUDO_OUTPUT : NC_SUDO_ERRORS, data, n);
		data += n;
		size -= n;
	}
	if (client->on_way >= NC_SUDO_WINDOW)
		nc_process_hold(client->process, client, true);
}

static void on_ended(void *context, struct nc_process *process)
{
	struct client *client = context;
	const struct nacre_err *failure = nc_process_failure(process);
	const struct nc_box_end *end = &process->end;
	unsigned char code;

	client->process = NULL; /* which forgets us by itself */
	if (failure) {
		refuse(client, end->fail == NC_FAIL_PROGRAM && failure->code == -ENOENT
				       ? "command not found"
				       : failure->message);
		return;
	}
	code = (unsigned char)(end->signal ? 128 + end->signal : end->code);
	end_with(client, NC_SUDO_EXIT, &code, 1);
}

/* So much of the window is free again; not said for each byte. */
static void give_more(struct client *client)
{
	unsigned char bytes[4];

	if (client->owed < NC_SUDO_WINDOW / 2 && client->allowed > 0)
		return;
	if (client->owed == 0)
		return;
	nc_sudo_put_u32(bytes, (uint32_t)client->owed);
	client->allowed += client->owed;
	client->owed = 0;
	say(client, NC_SUDO_GIVEN, bytes, sizeof(bytes));
}

static void feed(void *context)
{
	struct client *client = context;

	if (!client->process || client->feeding)
		return;
	client->feeding = true;
	while (client->input_at < client->input.size) {
		ssize_t n = nc_process_write(client->process, client->input.data + client->input_at,
			client->input.size - client->input_at);

		if (n == 0)
			break;
		n = n < 0 ? (ssize_t)(client->input.size - client->input_at)
			  : n; /* wanted no more */
		client->input_at += (size_t)n;
		client->owed += (size_t)n;
	}
	client->feeding = false;
	if (client->input_at == client->input.size) {
		client->input.size = client->input_at = 0;
		if (client->input_ends)
			nc_process_end_input(client->process);
	}
	give_more(client);
}

static void begin(struct client *client)
{
	static struct nc_faults faults;
	const struct nc_process_listener listener = {
		.context = client, .printed = on_printed, .writable = feed, .ended = on_ended};
	struct nacre_err err = {0};
	int r;

	faults = (struct nc_faults){0};
	r = nc_sandbox_exec(client->sudo->sandbox, client->body, &client->study.text[0], &listener,
		&client->process, &faults, &err);
	if (r == 0) {
		client->stage = RUNS;
		feed(client);
	} else if (r == -EINVAL && faults.count > 0) {
		refuse(client, faults.fault[0].message);
	} else {
		refuse(client, err.message);
	}
}

static void on_studied(void *context)
{
	begin(context);
}

/* Has the policy read it. */
static void study(struct client *client)
{
	static struct nc_faults faults;
	const struct nc_sandbox *sandbox = client->sudo->sandbox;
	struct nacre_err err = {0};
	int r;

	faults = (struct nc_faults){0};
	client->sudo->tokens--;
	client->stage = STUDIED;
	client->line = (struct nc_buf)NC_BUF(NC_SANDBOX_LINE_MAX);
	r = nc_sandbox_line(client->body, &client->line, &faults, &err);
	if (r == 0) {
		client->study.terms = nc_sandbox_terms(sandbox);
		nc_study_add(&client->study, NC_SHELL, NULL, nc_buf_text(&client->line),
			client->line.size);
		r = nc_analysts_ask(sandbox->all->gate.analysts, sandbox->tenant, &client->study,
			on_studied, client);
		if (r < 0)
			nc_err_errno(&err, r, "Have the command analysed");
	}
	if (r == -EINVAL && faults.count > 0)
		refuse(client, faults.fault[0].message);
	else if (r < 0)
		refuse(client, err.message);
}

/* ---- requests ---- */

/* Bytes of a request that are still to be read. */
struct words {
	const char *at;
	size_t left;
};

/* The next one, with its NUL; NULL: there is none. */
static const char *next_word(struct words *words)
{
	const char *word = words->at;
	const char *end = words->left > 0 ? memchr(word, '\0', words->left) : NULL;

	if (!end)
		return NULL;
	words->left -= (size_t)(end + 1 - word);
	words->at = end + 1;
	return word;
}

static int add_words(struct words *words, size_t n, json_t *list)
{
	for (; n > 0; n--) {
		const char *word = next_word(words);

		if (!word || json_array_append_new(list, json_string(word)) < 0)
			return -1;
	}
	return 0;
}

/* "NAME=value": the last one of a name counts. */
static int add_variables(struct words *words, size_t n, json_t *env)
{
	for (; n > 0; n--) {
		const char *word = next_word(words);
		const char *value = word ? strchr(word, '=') : NULL;
		cleanup_free char *name = value ? strndup(word, (size_t)(value - word)) : NULL;

		if (!name || json_object_set_new(env, name, json_string(value + 1)) < 0)
			return -1;
	}
	return 0;
}

/* As the tenant would ask for it; NULL: it is none, or has other bytes than UTF-8. */
static json_t *read_request(const unsigned char *data, size_t size)
{
	struct words words = {(const char *)data + REQUEST_HEAD, size - REQUEST_HEAD};
	cleanup_json json_t *command = json_array(), *env = json_object();
	size_t n_words, n_variables;
	const char *dir;

	if (!command || !env)
		return NULL;
	n_words = data[1] | (size_t)data[2] << 8;
	n_variables = data[3] | (size_t)data[4] << 8;
	dir = next_word(&words);
	if (!dir || add_words(&words, n_words, command) < 0 ||
		add_variables(&words, n_variables, env) < 0 || words.left > 0)
		return NULL;
	return json_pack("{s:O, s:O, s:s, s:s, s:b}", "command", command, "env", env, "dir", dir,
		"user", "root", "keep_input", 1);
}

static void take_request(struct client *client, const unsigned char *data, size_t size)
{
	struct nc_sudo *sudo = client->sudo;

	*client = (struct client){.sudo = sudo,
		.input = NC_BUF(NC_SUDO_WINDOW),
		.allowed = NC_SUDO_WINDOW,
		.stage = WAITS};
	if (size > 0 && data[0] != NC_SUDO_VERSION) {
		refuse(client, "this sandbox is older than the daemon, or newer: make another");
		return;
	}
	client->body = size >= REQUEST_HEAD ? read_request(data, size) : NULL;
	if (!client->body)
		refuse(client, "the request could not be read: words, variables and directory have "
			       "to be UTF-8");
	else if (sudo->tokens > 0)
		study(client);
}

/* ---- from nacre-files ---- */

static bool take_input(struct client *client, const unsigned char *data, size_t size)
{
	if (size > client->allowed || client->input_ends)
		return false;
	client->allowed -= size;
	nc_buf_add(&client->input, data, size);
	feed(client);
	return true;
}

static bool take_credit(struct client *client, const unsigned char *data, size_t size)
{
	const uint32_t n = size == 4 ? nc_sudo_get_u32(data) : 0;

	if (n == 0 || n > client->on_way)
		return false;
	client->on_way -= n;
	if (client->process && client->on_way < NC_SUDO_WINDOW)
		nc_process_hold(client->process, client, false);
	return true;
}

/* false: the frame is not one that may come now. */
static bool take_of(
	struct client *client, const struct nc_sudo_head *head, const unsigned char *data)
{
	if (head->kind == NC_SUDO_INPUT)
		return take_input(client, data, head->size);
	if (head->kind == NC_SUDO_TAKEN)
		return take_credit(client, data, head->size);
	if (head->kind != NC_SUDO_INPUT_END || head->size > 0 || client->input_ends)
		return false;
	client->input_ends = true;
	feed(client);
	return true;
}

/* 0, or -EPROTO: who passes frames on is not who we took it for. */
static int take_frame(
	struct nc_sudo *sudo, const struct nc_sudo_head *head, const unsigned char *data)
{
	struct client *client = &sudo->client[head->client];
	const bool begins = head->kind == NC_SUDO_REQUEST;

	if (head->kind > NC_SUDO_GONE || begins != (client->stage == FREE))
		return -EPROTO;
	if (begins) {
		take_request(client, data, head->size);
	} else if (head->kind == NC_SUDO_GONE) {
		bool ended = client->stage == ENDED;
		unsigned char code = 1;

		kill_command(client);
		if (!ended)
			say(client, NC_SUDO_EXIT, &code, 1);
		client->stage = FREE;
	} else if (client->stage != ENDED && !take_of(client, head, data)) {
		kill_command(client);
		refuse(client, "it said what could not be");
	}
	return sudo->out.error;
}

/* All clients, and nacre-files. */
static void let_go(struct nc_sudo *sudo)
{
	const uint64_t now = nc_clock_ns();

	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++) {
		kill_command(&sudo->client[i]);
		sudo->client[i].stage = FREE;
	}
	if (sudo->task)
		nc_file_tasks_forget(sudo->sandbox->all, sudo);
	sudo->task = NULL;
	nc_buf_done(&sudo->in);
	nc_buf_done(&sudo->out);
	sudo->out_at = 0;
	if (now - sudo->began_ns >= BACKOFF_MAX_NS)
		sudo->backoff_ns = NC_NS_PER_S;
	sudo->next_ns = now + sudo->backoff_ns;
	if (sudo->backoff_ns < BACKOFF_MAX_NS)
		sudo->backoff_ns *= 2;
}

/* So much that the frame has at least. 1: it is here; 0: not all of it; -errno. */
static int gather(struct nc_buf *in, size_t wanted, const char **data, size_t *size)
{
	size_t n = wanted > in->size ? wanted - in->size : 0;

	if (n > *size)
		n = *size;
	nc_buf_add(in, *data, n);
	*data += n;
	*size -= n;
	return in->error < 0 ? in->error : in->size >= wanted;
}

/* The next frame of what is here. As gather(). */
static int take_next(struct nc_sudo *sudo, const char **data, size_t *size)
{
	struct nc_sudo_head head;
	int r = gather(&sudo->in, NC_SUDO_HEAD, data, size);

	if (r <= 0)
		return r;
	if (nc_sudo_get_head((const unsigned char *)sudo->in.data, &head) < 0)
		return -EPROTO;
	r = gather(&sudo->in, NC_SUDO_HEAD + head.size, data, size);
	if (r <= 0)
		return r;
	r = take_frame(sudo, &head, (const unsigned char *)sudo->in.data + NC_SUDO_HEAD);
	sudo->in.size = 0;
	return r < 0 ? r : 1;
}

static void on_said(void *context, const char *data, size_t size)
{
	struct nc_sudo *sudo = context;
	int r;

	do
		r = take_next(sudo, &data, &size);
	while (r > 0);
	if (r < 0)
		let_go(sudo);
}

static void on_room(void *context)
{
	flush(context);
}

static void on_done(void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_sudo *sudo = context;

	(void)sandbox, (void)error, (void)data, (void)size;
	sudo->task = NULL;
	let_go(sudo);
}

/* ---- life ---- */

static struct nc_sudo *sudo_new(struct nc_sandbox *sandbox)
{
	struct nc_sudo *sudo = calloc(1, sizeof(*sudo));

	if (!sudo)
		return NULL;
	sudo->sandbox = sandbox;
	sudo->tokens = TOKENS_MAX;
	sudo->backoff_ns = NC_NS_PER_S;
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		sudo->client[i].sudo = sudo;
	return sudo;
}

static void start(struct nc_sudo *sudo)
{
	const char *const words[] = {"sudo", sudo->sandbox->spec.user, NULL};
	const struct nc_file_work work = {.words = words,
		.output_max = SAID_MAX,
		.wall_ms = NC_SANDBOX_LIFE_MAX_MS,
		.serves = true,
		.interactive = true,
		.context = sudo,
		.printed = on_said,
		.writable = on_room,
		.done = on_done};
	struct nacre_err err = {0};

	sudo->began_ns = nc_clock_ns();
	sudo->in = (struct nc_buf)NC_BUF(NC_SUDO_HEAD + NC_SUDO_FRAME_MAX);
	sudo->out = (struct nc_buf)NC_BUF(PENDING_MAX);
	if (nc_sandbox_stream(sudo->sandbox, &work, &sudo->task, &err) < 0)
		let_go(sudo); /* and again later */
}

/* Whether there are commands of its as root, and one can begin beside the others. */
static bool is_wanted(const struct nc_sandbox *sandbox)
{
	return *sandbox->spec.user && sandbox->all->gate.analysts && sandbox->lives &&
	       !sandbox->ends && !sandbox->recalled && !sandbox->paused &&
	       sandbox->limits.pids >= PIDS_LEAST && nc_sandbox_is_home(sandbox);
}

void nc_sudo_tick(struct nc_sandbox *sandbox)
{
	struct nc_sudo *sudo;

	if (!is_wanted(sandbox))
		return;
	if (!sandbox->sudo)
		sandbox->sudo = sudo_new(sandbox);
	sudo = sandbox->sudo;
	if (!sudo)
		return;
	sudo->tokens += TOKENS_EACH;
	if (sudo->tokens > TOKENS_MAX)
		sudo->tokens = TOKENS_MAX;
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		if (sudo->client[i].stage == WAITS && sudo->tokens > 0)
			study(&sudo->client[i]);
	if (!sudo->task && nc_clock_ns() >= sudo->next_ns)
		start(sudo);
}

void nc_sudo_free(struct nc_sudo *sudo)
{
	if (!sudo)
		return;
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		client_clear(&sudo->client[i]);
	sudo->task = NULL;
	nc_file_tasks_forget(sudo->sandbox->all, sudo);
	nc_buf_done(&sudo->in);
	nc_buf_done(&sudo->out);
	free(sudo);
}
