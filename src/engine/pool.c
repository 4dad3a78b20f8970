/*
 * Zygotes, and how many of their children wait.
 *
 * Theory of operation: a zygote is a box that stays. Its first command puts the object there that
 * makes an interpreter a zygote (src/inside/zygote.c), its second one is the interpreter. From then
 * on the spawner keeps boxes ready with its children, as many as the rate of requests asks for. One
 * that dies is started again, later each time; one that nobody needs is ended.
 */
#include "engine/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "engine/owner.h"
#include "engine/pressure.h"
#include "engine/work.h"
#include "policy/policy.h"

extern const char nc_zygote_object[], nc_zygote_object_end[];
extern const char nc_ahead_object[], nc_ahead_object_end[], nc_ahead_script[],
	nc_ahead_script_end[];

#define MB (1024ULL * 1024)
#define OBJECT_NAME ".nacre-zygote.so"

#define ZYGOTES_MAX 8
/* Boxes of one zygote that wait, at least while it is in use, and at most. */
#define READY_MIN 2U
#define READY_MAX 32U
/* How often the rate is looked at, and what one look counts. */
#define TICK_MS 1000
#define SMOOTHING 0.3
/* Processes that may wait beyond what is wanted, for as long as any is. */
#define SPARE_WAITERS 2U

/* Boxes are made ahead for this part of a second. */
#define AHEAD_S 0.3
#define IDLE_NS (60 * NC_NS_PER_S)
#define UNUSED_NS (600 * NC_NS_PER_S)
/* Its children share what they have not changed: after a while there is a fresh one. */
#define LIFE_MS (3600 * 1000ULL)
#define RETRY_NS (2 * NC_NS_PER_S)
#define RETRIES_MAX 6U
#define SAID_MAX 512
/* Some 40 MB each. */
#define WAITERS_MAX 8
#define SCRIPT_NAME ".nacre-ahead.js"
#define ADDON_NAME ".nacre-ahead.node"

/* What is imported ahead. */
enum flavor { PLAIN, DATA };
static const char usual_modules[] =
	"abc,argparse,ast,base64,bisect,collections,contextlib,copy,csv,dataclasses,"
	"datetime,decimal,enum,fractions,functools,hashlib,heapq,inspect,io,itertools,"
	"json,logging,math,operator,os,pathlib,random,re,shutil,statistics,string,"
	"struct,subprocess,sys,tempfile,textwrap,threading,time,traceback,types,typing,"
	"unittest,uuid,warnings";
static const char data_modules[] =
	"json,re,random,datetime,collections,itertools,functools,math,statistics,csv,"
	"numpy,numpy.random,pandas";

struct zygote {
	struct nc_pool *pool;
	char tenant[sizeof(((struct nc_request *)0)->tenant)];
	enum flavor flavor;
	bool taken; /* it is somebody's */
	uint64_t box_id;
	struct nc_command *command;
	bool lends;    /* its interpreter runs */
	bool is_ended; /* on purpose */
	unsigned int failures;
	uint64_t began_ns, retry_ns, used_ns;
	double rate; /* requests per second */
	unsigned int arrived, ready;
	struct nc_exec_spec exec;
	struct nc_word_list argv, env;
	char said[SAID_MAX];
};

/* A Node that waits, of which there is no zygote: it runs one program, whoever's that is. */
struct waiter {
	struct nc_pool *pool;
	uint64_t box_id; /* 0: there is none */
	struct nc_command *command;
	uint64_t memory_bytes; /* that it was begun with, and has sized its heap by */
	bool waits;
};

struct nc_pool {
	struct nc_hub *hub;
	void (*say)(const char *text);
	uv_timer_t *timer;
	struct nc_buf object; /* as nacre-files takes it */
	enum nc_warm warm;
	struct nc_buf preload; /* modules that are imported ahead, with commas between */
	int meminfo_fd;
	bool pressed; /* the host has no memory for what may not be needed */
	bool ends;
	struct zygote zygote[ZYGOTES_MAX];
	struct zygote neutral; /* boxes without an interpreter, for whatever comes */
	struct zygote node;    /* how many of these are to wait; it is none itself */
	struct waiter waiter[WAITERS_MAX];
	uint64_t node_memory; /* of requests that name none */
	struct nc_buf script; /* what they are made of */
	struct nc_word_list argv;
};

/* 0 in builds whose code cannot run in other programs. */
static size_t object_size(void)
{
	return (size_t)(nc_zygote_object_end - nc_zygote_object);
}

/* What is kept ready now. */
static enum nc_warm level(const struct nc_pool *pool)
{
	return pool->pressed ? NC_WARM_NOTHING : pool->warm;
}

static const struct nc_box_limits usual = {.memory_bytes = 1024 * MB,
	.cpu_milli = 1000,
	.wall_ms = LIFE_MS,
	.pids = 64,
	.disk_bytes = 16 * MB,
	.inodes = 1024,
	.open_files = 256};

static void reset(struct zygote *zygote)
{
	nc_buf_done(&zygote->argv.buf);
	nc_buf_done(&zygote->env.buf);
	zygote->argv = zygote->env = (struct nc_word_list)NC_WORD_LIST;
	zygote->exec = (struct nc_exec_spec){.id = zygote->box_id,
		.tier = NC_TIER_CONTAINER,
		.limits = usual,
		.dir = NC_BOX_WORKSPACE};
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct zygote *zygote = context;
	size_t used = strlen(zygote->said);

	(void)stream;
	(void)snprintf(zygote->said + used, sizeof(zygote->said) - used, "%.*s", (int)size, data);
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct zygote *zygote = context;

	(void)birth_ns;
	(void)door_fd;
	zygote->lends = true;
	zygote->ready = READY_MIN;
	nc_hub_ready(zygote->pool->hub, zygote->box_id, zygote->ready);
}

/* It has ended, or could not begin: once more, later each time. */
static void give_up(struct zygote *zygote, const char *why)
{
	bool lived = zygote->lends && nc_clock_ns() - zygote->began_ns > 10 * RETRY_NS;
	char text[SAID_MAX + 128];

	zygote->command = NULL;
	zygote->lends = false;
	zygote->box_id = 0;
	if (zygote->is_ended) {
		zygote->taken = false;
		return;
	}
	zygote->failures = lived ? 0 : zygote->failures + 1;
	zygote->retry_ns = nc_clock_ns() + (RETRY_NS << zygote->failures);
	if (lived || !zygote->pool->say)
		return;
	(void)snprintf(text, sizeof(text), "An interpreter cannot be started ahead of need: %s",
		*why ? why : zygote->said);
	zygote->pool->say(text);
}

static void on_lender_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct zygote *zygote = context;
	uint64_t box_id = zygote->box_id;

	(void)output_bytes;
	if (zygote->pool->ends)
		return;
	give_up(zygote, failure ? failure->message : "");
	if (!failure && end->stays)
		nc_hub_drop(zygote->pool->hub, box_id);
}

/* The interpreter, as programs will be run by it. */
static int start_interpreter(struct zygote *zygote, struct nacre_err *err)
{
	const struct nc_runtime *runtime = nc_runtimes[NC_PYTHON];
	const struct nc_command_spec spec = {.exec = &zygote->exec,
		.next = true,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.interactive = true, /* a pipe, as programs have it */
		.output_max = UINT64_MAX,
		.context = zygote,
		.started = on_started,
		.printed = on_printed,
		.ended = on_lender_ended};
	char source[NC_PLACE_SIZE + 64];
	int r;

	reset(zygote);
	zygote->exec.lends = true;
	(void)snprintf(source, sizeof(source), "%s/%s", zygote->exec.dir, runtime->source_name);
	r = nc_runtime_argv(
		runtime->run.argv, source, "", NULL, 0, &zygote->argv.buf, &zygote->argv.count);
	nc_env_fill(&zygote->env,
		&(struct nc_env_place){
			.workspace = zygote->exec.dir, .temporary = NC_BOX_TEMPORARY},
		runtime->run.env);
	nc_word_add(&zygote->env, "LD_PRELOAD=" NC_BOX_WORKSPACE "/" OBJECT_NAME);
	nc_buf_adds(&zygote->env.buf, "NACRE_PRELOAD=");
	nc_word_add(&zygote->env,
		zygote->flavor == DATA ? data_modules : nc_buf_text(&zygote->pool->preload));
	if (r == 0)
		r = zygote->argv.buf.error < 0 ? zygote->argv.buf.error : zygote->env.buf.error;
	if (r < 0)
		return nc_err_errno(err, r, "Name the interpreter");
	zygote->exec.argv = nc_word_view(&zygote->argv);
	zygote->exec.env = nc_word_view(&zygote->env);
	return nc_hub_start(zygote->pool->hub, &spec, &zygote->command, err);
}

static void on_put(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct zygote *zygote = context;
	struct nacre_err err = {0};

	(void)output_bytes;
	if (zygote->pool->ends)
		return;
	if (failure)
		err = *failure;
	else if (!end->stays || end->code != 0)
		nc_err_set(&err, -EIO, "%s", zygote->said);
	else
		(void)start_interpreter(zygote, &err);
	if (err.code == 0)
		return;
	if (!failure && end->stays)
		nc_hub_drop(zygote->pool->hub, zygote->box_id);
	give_up(zygote, err.message);
}

static void begin(struct zygote *zygote)
{
	struct nc_pool *pool = zygote->pool;
	const struct nc_command_spec spec = {.exec = &zygote->exec,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.input = nc_buf_text(&pool->object),
		.input_size = pool->object.size,
		.output_max = UINT64_MAX,
		.context = zygote,
		.printed = on_printed,
		.ended = on_put};
	struct nacre_err err = {0};

	zygote->box_id = nc_hub_box_id(pool->hub, NC_TIER_CONTAINER);
	zygote->began_ns = zygote->used_ns = nc_clock_ns();
	zygote->said[0] = '\0';
	zygote->is_ended = false;
	reset(zygote);
	zygote->exec.stays = zygote->exec.files = true;
	nc_word_add(&zygote->argv, "nacre-files");
	nc_word_add(&zygote->argv, "put");
	zygote->exec.argv = nc_word_view(&zygote->argv);
	zygote->exec.env = nc_word_view(&zygote->env);
	if (nc_hub_start(pool->hub, &spec, &zygote->command, &err) < 0)
		give_up(zygote, err.message);
}

static void keep_ready(struct zygote *zygote, unsigned int wanted)
{
	if (wanted > READY_MAX)
		wanted = READY_MAX;
	if (zygote->lends && wanted != zygote->ready) {
		zygote->ready = wanted;
		nc_hub_ready(zygote->pool->hub, zygote->box_id, wanted);
	}
}

static void follow_rate(struct zygote *zygote, uint64_t now)
{
	bool idle = now - zygote->used_ns > IDLE_NS;
	unsigned int wanted;

	zygote->rate += (zygote->arrived - zygote->rate) * SMOOTHING;
	zygote->arrived = 0;
	wanted = (idle ? 1 : READY_MIN) + (unsigned int)(zygote->rate * AHEAD_S);
	/* 0 ends those that a busy time has left waiting; one comes back with the next tick */
	if (level(zygote->pool) == NC_WARM_NOTHING || (idle && zygote->ready > 1))
		wanted = 0;
	keep_ready(zygote, wanted);
}

static void retire(struct zygote *zygote)
{
	zygote->is_ended = true;
	if (zygote->command) /* again if it was about to begin the first time */
		(void)nc_command_cancel(zygote->command);
	zygote->taken = zygote->command != NULL;
}

static void look_after(struct zygote *zygote, uint64_t now)
{
	uint64_t idle_ns = now - zygote->used_ns;

	if (level(zygote->pool) > NC_WARM_INTERPRETERS || idle_ns > UNUSED_NS)
		retire(zygote);
	else if (zygote->box_id == 0 && zygote->failures < RETRIES_MAX && now >= zygote->retry_ns)
		begin(zygote);
	else
		follow_rate(zygote, now);
}

static void on_waits(void *context, uint64_t birth_ns, int door_fd)
{
	struct waiter *waiter = context;

	(void)birth_ns;
	(void)door_fd;
	waiter->waits = true;
	waiter->pool->node.failures = 0;
}

/* It died while it waited, or could not begin; without Node that is no news. */
static void on_waiter_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct waiter *waiter = context;

	(void)end;
	(void)output_bytes;
	(void)failure;
	waiter->box_id = 0;
	waiter->command = NULL;
	waiter->waits = false;
	waiter->pool->node.failures++;
}

static void on_waiter_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context;
	(void)stream;
	(void)data;
	(void)size;
}

static void begin_waiter(struct waiter *waiter)
{
	static const char *const none[] = {NULL};
	struct nc_pool *pool = waiter->pool;
	struct nc_word_list env = NC_WORD_LIST;
	struct nc_exec_spec exec = {.id = nc_hub_box_id(pool->hub, NC_TIER_CONTAINER),
		.tier = NC_TIER_CONTAINER,
		.waits = true,
		.limits = usual,
		.dir = NC_BOX_WORKSPACE,
		.argv = nc_word_view(&pool->argv)};
	const struct nc_command_spec spec = {.exec = &exec,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.interactive = true,
		.pack = pool->script.data,
		.pack_size = pool->script.size,
		.output_max = UINT64_MAX,
		.context = waiter,
		.started = on_waits,
		.printed = on_waiter_printed,
		.ended = on_waiter_ended};
	struct nacre_err err = {0};

	exec.limits.memory_bytes = waiter->memory_bytes = pool->node_memory;
	nc_env_fill(&env,
		&(struct nc_env_place){NC_BOX_WORKSPACE, NC_BOX_TEMPORARY, NC_TIER_CONTAINER,
			waiter->memory_bytes},
		none);
	exec.env = nc_word_view(&env);
	if (env.buf.error < 0 || nc_hub_start(pool->hub, &spec, &waiter->command, &err) < 0)
		pool->node.failures++;
	else
		waiter->box_id = exec.id;
	nc_buf_done(&env.buf);
}

/* As many as are wanted; who is too many is ended by and by. */
static void keep_waiters(struct nc_pool *pool)
{
	unsigned int n = 0;

	for (size_t i = 0; i < WAITERS_MAX; i++) {
		struct waiter *waiter = &pool->waiter[i];

		n += waiter->box_id > 0;
		/* a rate that wavers ends nobody who would have to be started again at once */
		if (waiter->waits &&
			(waiter->memory_bytes != pool->node_memory ||
				n > pool->node.ready +
						(pool->node.ready > 0 ? SPARE_WAITERS : 0))) {
			waiter->waits = false;
			(void)nc_command_cancel(waiter->command);
			pool->node.failures = 0;
		}
	}
	for (size_t i = 0; i < WAITERS_MAX && n < pool->node.ready; i++)
		if (pool->waiter[i].box_id == 0 && pool->node.failures < RETRIES_MAX) {
			begin_waiter(&pool->waiter[i]);
			n++;
		}
}

/* From the second request on: one alone says nothing of the next. */
static void look_after_node(struct nc_pool *pool, uint64_t now)
{
	struct zygote *node = &pool->node;

	node->rate += (node->arrived - node->rate) * SMOOTHING;
	node->arrived = 0;
	node->ready = node->used_ns == 0 || now - node->used_ns > IDLE_NS ||
				      level(pool) > NC_WARM_INTERPRETERS
			      ? 0
			      : 1 + (unsigned int)(node->rate * AHEAD_S);
	if (node->ready > WAITERS_MAX)
		node->ready = WAITERS_MAX;
	keep_waiters(pool);
}

static void on_tick(uv_timer_t *timer)
{
	struct nc_pool *pool = timer->data;
	uint64_t now = nc_clock_ns();

	pool->pressed = nc_pressure_is_high(pool->meminfo_fd, pool->pressed);
	for (size_t i = 0; i < ZYGOTES_MAX; i++)
		if (pool->zygote[i].taken)
			look_after(&pool->zygote[i], now);
	follow_rate(&pool->neutral, now);
	if (pool->script.size > 0)
		look_after_node(pool, now);
}

/* That of the tenant, which may have to be started; NULL: there are too many. */
static struct zygote *find(struct nc_pool *pool, const char *tenant, enum flavor flavor)
{
	struct zygote *found = NULL;

	for (size_t i = 0; i < ZYGOTES_MAX; i++) {
		struct zygote *zygote = &pool->zygote[i];

		if (zygote->taken && zygote->flavor == flavor &&
			nc_owner_sees(NC_STORE_INTERPRETERS, zygote->tenant, tenant))
			return zygote;
		if (!zygote->taken && !found)
			found = zygote;
	}
	if (!found)
		return NULL;
	*found = (struct zygote){.pool = pool,
		.taken = true,
		.flavor = flavor,
		.argv = NC_WORD_LIST,
		.env = NC_WORD_LIST};
	(void)snprintf(found->tenant, sizeof(found->tenant), "%s", tenant);
	begin(found);
	return found;
}

static bool imports_data(const struct nc_report *report)
{
	size_t count;
	const struct nc_import *imports = nc_report_imports(report, &count);

	for (size_t i = 0; i < count; i++)
		if (nc_streq(imports[i].name, "numpy") || nc_streq(imports[i].name, "pandas"))
			return true;
	return false;
}

/* One more request; a burst is not waited out. */
static void count(struct zygote *zygote)
{
	zygote->used_ns = nc_clock_ns();
	zygote->arrived++;
	if (zygote->arrived > zygote->ready && level(zygote->pool) < NC_WARM_NOTHING)
		keep_ready(zygote, zygote->arrived + READY_MIN);
}

uint64_t nc_pool_choose(struct nc_pool *pool, const struct nc_execution *execution)
{
	const struct nc_step_state *step = &execution->step[0];
	struct zygote *zygote = NULL;

	if (!pool)
		return 0;
	if (step->language.language == NC_PYTHON && object_size() > 0 &&
		level(pool) == NC_WARM_INTERPRETERS && !nc_hooks_watches_imports(execution->terms))
		zygote = find(
			pool, execution->request.tenant, imports_data(step->report) ? DATA : PLAIN);
	if (zygote)
		count(zygote);
	if (zygote && zygote->lends)
		return zygote->box_id;
	count(&pool->neutral);
	return 0;
}

/* Whether the program is what the waiting ones were started for. */
static bool suits_node(const struct nc_execution *execution)
{
	const struct nc_request_pairs *lists[] = {
		&execution->request.env, &execution->request.step[0].env};

	if (execution->step[0].language.language != NC_JAVASCRIPT ||
		!nc_streq(execution->step[0].source, nc_runtimes[NC_JAVASCRIPT]->source_name))
		return false;
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < lists[i]->count; j++) {
			const char *name = lists[i]->pair[j].name;

			/* what Node or libraries read when they start */
			if (nc_text_after(name, "NODE") || nc_text_after(name, "LD_") ||
				nc_text_after(name, "LC_") || nc_text_after(name, "LANG") ||
				nc_text_after(name, "UV_") || nc_text_after(name, "SSL_") ||
				nc_text_after(name, "OPENSSL_") || nc_text_after(name, "TZ") ||
				nc_text_after(name, "FORCE_COLOR") ||
				nc_text_after(name, "MALLOC_") || nc_text_after(name, "GLIBC_"))
				return false;
		}
	return true;
}

uint64_t nc_pool_take(struct nc_pool *pool, const struct nc_execution *execution)
{
	uint64_t box_id = 0, memory = execution->limits.memory_bytes;

	if (!pool || pool->script.size == 0 || level(pool) > NC_WARM_INTERPRETERS ||
		!suits_node(execution))
		return 0;
	if (!execution->request.limits.memory_bytes.given || pool->node_memory == 0)
		pool->node_memory = memory;
	if (memory != pool->node_memory) /* their heaps are sized by that */
		return 0;
	pool->node.arrived++;
	pool->node.used_ns = nc_clock_ns();
	for (size_t i = 0; i < WAITERS_MAX && box_id == 0; i++) {
		struct waiter *waiter = &pool->waiter[i];

		if (!waiter->waits || waiter->memory_bytes != memory)
			continue;
		box_id = waiter->box_id;
		nc_command_release(waiter->command);
		*waiter = (struct waiter){.pool = pool};
	}
	/* the next one is begun now, and more if they come faster than the clock ticks */
	if (pool->node.arrived > pool->node.ready && pool->node.ready < WAITERS_MAX)
		pool->node.ready++;
	keep_waiters(pool);
	return box_id;
}

void nc_pool_load(const struct nc_pool *pool, struct nc_engine_load *load)
{
	for (size_t i = 0; pool && i < ZYGOTES_MAX; i++)
		load->ready_python += pool->zygote[i].lends ? pool->zygote[i].ready : 0;
	load->ready_node = pool ? pool->node.ready : 0;
	load->ready_neutral = pool ? pool->neutral.ready : 0;
}

static void prepare_node(struct nc_pool *pool)
{
	const char *const words[] = {/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma) */
		"node", "--require", NC_BOX_WORKSPACE "/" SCRIPT_NAME, NC_BOX_WORKSPACE "/main.js",
		NULL};

	nc_pack_add(&pool->script, SCRIPT_NAME, nc_ahead_script,
		(size_t)(nc_ahead_script_end - nc_ahead_script), false);
	nc_pack_add(&pool->script, ADDON_NAME, nc_ahead_object,
		(size_t)(nc_ahead_object_end - nc_ahead_object), false);
	nc_pack_end(&pool->script);
	for (const char *const *word = words; *word; word++)
		nc_word_add(&pool->argv, *word);
	for (size_t i = 0; i < WAITERS_MAX; i++)
		pool->waiter[i].pool = pool;
}

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

/* Zygotes that have imported others end; the next request has another begun. */
static void set_preload(struct nc_pool *pool, const struct nc_value *list)
{
	struct nc_buf text = NC_BUF(MB);

	if (!list->given)
		nc_buf_adds(&text, usual_modules);
	for (size_t i = 0; i < list->n_list; i++) {
		nc_buf_adds(&text, i > 0 ? "," : "");
		nc_buf_adds(&text, list->list[i]);
	}
	if (text.error < 0 || nc_streq(nc_buf_text(&text), nc_buf_text(&pool->preload))) {
		nc_buf_done(&text);
		return;
	}
	nc_buf_done(&pool->preload);
	pool->preload = text;
	for (size_t i = 0; i < ZYGOTES_MAX; i++)
		if (pool->zygote[i].taken && pool->zygote[i].flavor == PLAIN)
			retire(&pool->zygote[i]);
}

void nc_pool_warm(struct nc_pool *pool, const struct nc_serve_config *config)
{
	if (!pool)
		return;
	pool->warm = (enum nc_warm)config->warm.number;
	set_preload(pool, &config->preload);
	if (pool->warm == NC_WARM_INTERPRETERS && pool->object.error == 0 && object_size() > 0)
		(void)find(pool, "", PLAIN);
}

int nc_pool_new(uv_loop_t *loop, struct nc_hub *hub, const struct nc_serve_config *config,
	int meminfo_fd, void (*say)(const char *text), struct nc_pool **ret_pool)
{
	struct nc_pool *pool = calloc(1, sizeof(*pool));
	uv_timer_t *timer = calloc(1, sizeof(*timer));

	if (!pool || !timer) {
		free(pool);
		free(timer);
		return -ENOMEM;
	}
	*pool = (struct nc_pool){.hub = hub,
		.meminfo_fd = meminfo_fd,
		.say = say,
		.timer = timer,
		.object = NC_BUF(16 * MB),
		.preload = NC_BUF(MB),
		.script = NC_BUF(16 * MB),
		.argv = NC_WORD_LIST};
	nc_pack_add(&pool->object, OBJECT_NAME, nc_zygote_object, object_size(), false);
	nc_pack_end(&pool->object);
	timer->data = pool;
	(void)uv_timer_init(loop, timer); /* cannot fail */
	(void)uv_timer_start(timer, on_tick, TICK_MS, TICK_MS);
	uv_unref((uv_handle_t *)timer);
	pool->neutral = (struct zygote){.pool = pool, .lends = true, .used_ns = nc_clock_ns()};
	pool->neutral.ready = config->warm.number < NC_WARM_NOTHING ? READY_MIN : 0;
	nc_hub_ready(hub, 0, pool->neutral.ready); /* a worker before us may have wanted others */
	if (object_size() > 0)
		prepare_node(pool);
	nc_pool_warm(pool, config);
	*ret_pool = pool;
	return 0;
}

void nc_pool_free(struct nc_pool *pool)
{
	if (!pool)
		return;
	pool->ends = true;
	for (size_t i = 0; i < ZYGOTES_MAX; i++) {
		struct zygote *zygote = &pool->zygote[i];

		if (zygote->command)
			nc_command_disown(zygote->command);
		nc_buf_done(&zygote->argv.buf);
		nc_buf_done(&zygote->env.buf);
	}
	for (size_t i = 0; i < WAITERS_MAX; i++)
		if (pool->waiter[i].command)
			nc_command_disown(pool->waiter[i].command);
	nc_buf_done(&pool->script);
	nc_buf_done(&pool->preload);
	nc_buf_done(&pool->argv.buf);
	uv_close((uv_handle_t *)pool->timer, close_timer);
	nc_buf_done(&pool->object);
	free(pool);
}
