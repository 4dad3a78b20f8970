/* The unprivileged side's view of the spawner. */
#include "tier/holder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/privilege.h"
#include "kernel/program.h"

/* Where nacre-spawner expects things; see src/spawner/main.c. */
#define SOCKET_FD 3
#define WORKER_EXE_FD 4
#define BINDS_FD 5
#define WITNESS_FD (BINDS_FD + (int)NC_BOX_BINDS_MAX)
#define HEIRS_FD 32
/* Words of the command that starts the worker again. */
#define AGAIN_MAX 32
/* Above all of these: what is moved down must not be overwritten before. */
#define HIGH_FD 96
_Static_assert(HEIRS_FD + NC_WORKER_HEIRS_MAX <= HIGH_FD, "an heir would be overwritten");
/* Less than the spawner waits for a worker that does not read. */
#define PATIENCE_MS 200

/* All of these at once out of the way, and then where they belong: places may be taken by others.
 */
struct placement {
	int from, to;
};

static int place_all(struct placement *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		list[i].from = fcntl(list[i].from, F_DUPFD_CLOEXEC, HIGH_FD);
		if (list[i].from < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(list[i].from, list[i].to) < 0)
			return -errno;
	return 0;
}

static int place_descriptors(int socket_fd, const struct nc_holder_setup *setup)
{
	struct placement list[3 + NC_BOX_BINDS_MAX + NC_WORKER_HEIRS_MAX];
	size_t n = 0;

	list[n++] = (struct placement){socket_fd, SOCKET_FD};
	if (setup->witness_fd > 0)
		list[n++] = (struct placement){setup->witness_fd, WITNESS_FD};
	if (setup->again) {
		int exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

		if (exe_fd < 0)
			return -errno;
		list[n++] = (struct placement){exe_fd, WORKER_EXE_FD};
	}
	for (size_t i = 0; i < setup->n_binds; i++)
		list[n++] = (struct placement){setup->binds[i], BINDS_FD + (int)i};
	for (size_t i = 0; i < setup->n_heirs; i++)
		list[n++] = (struct placement){setup->heirs[i], HEIRS_FD + (int)i};
	return place_all(list, n);
}

_Noreturn static void become_spawner(
	const char *path, int socket_fd, pid_t worker, const struct nc_holder_setup *setup)
{
	static char name[] = "nacre-spawner";
	char pid[16], ready[16], given[64];
	char *argv[AGAIN_MAX + 5] = {name, pid, ready, given};

	(void)snprintf(pid, sizeof(pid), "%d", (int)worker);
	(void)snprintf(ready, sizeof(ready), "%u", setup->ready);
	(void)snprintf(given, sizeof(given), "%zu,%d,%zu,%u,%d", setup->n_binds,
		setup->witness_fd > 0 ? WITNESS_FD : 0, setup->n_heirs, setup->patience_s,
		setup->lasting);
	for (size_t i = 0; setup->again && setup->again[i] && i < AGAIN_MAX; i++)
		argv[4 + i] = setup->again[i];
	if (place_descriptors(socket_fd, setup) == 0)
		(void)execv(path, argv);
	fprintf(stderr, "nacre: Start %s: %s\n", path, nc_errno_text(errno));
	_exit(125); /* and the worker with us */
}

/* Returns in the worker alone, its end of the pair; -errno only before the fork. */
static int fork_worker(const struct nc_holder_setup *setup, struct nacre_err *err)
{
	char path[NC_PROGRAM_PATH_SIZE];
	int ends[2];
	pid_t pid;
	int r = nc_program_find("nacre-spawner", path, err);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	pid = fork();
	if (pid < 0)
		return nc_err_errno(err, -errno, "Fork the worker");
	if (pid > 0)
		become_spawner(path, ends[0], pid, setup);
	(void)close(ends[0]);
	return ends[1];
}

int nc_holder_start(
	struct nc_holder *holder, const struct nc_holder_setup *setup, struct nacre_err *err)
{
	const bool begun = setup->begun_fd > 0;
	pid_t parent = begun ? setup->begun_parent : getpid();
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	assert(setup->n_binds <= NC_BOX_BINDS_MAX && setup->n_heirs <= NC_WORKER_HEIRS_MAX);
	if (r == 0)
		r = begun ? setup->begun_fd : fork_worker(setup, err);
	if (r < 0)
		return r;
	*holder = (struct nc_holder){.fd = r};
	r = nc_privilege_drop(ranges);
	if (r < 0) {
		nc_err_errno(err, r, "Drop privileges");
		fprintf(stderr, "nacre: %s\n", err->message);
		_exit(125);
	}
	if (getppid() != parent)
		_exit(125); /* it died before it could have taken us along */
	return 0;
}

int nc_holder_resume(struct nc_holder *holder, struct nacre_err *err)
{
	const char *word = getenv("NACRE_SPAWNER");

	if (!word || strcmp(word, "3") != 0 || fcntl(SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0)
		return nc_err_set(err, -EINVAL, "It is nacre-spawner that starts this");
	/* boxes of the one before may still be dying; it did not order one each nanosecond */
	*holder = (struct nc_holder){.fd = SOCKET_FD, .last_id = nc_clock_ns()};
	return 0;
}

static int read_welcome(struct nc_holder *holder, struct nc_wire_in *in)
{
	const uint32_t version = nc_wire_get_u32(in);

	in->lenient = holder->newer = version > NC_BOXWIRE_VERSION;
	if (holder->greeted || version < NC_BOXWIRE_OLDEST)
		return -EPROTO;
	nc_boxwire_get_welcome(in, &holder->welcome);
	for (enum nc_tier i = 0; holder->tiers && i < NC_TIER_MAX; i++)
		if (!(holder->tiers >> i & 1))
			holder->welcome.terms[i] = (struct nc_tier_terms){0};
	holder->greeted = in->error == 0;
	return holder->greeted ? 0 : -EPROTO;
}

int nc_holder_greet(struct nc_holder *holder)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	holder->greeted = false;
	holder->unanswered = holder->untold = 0;
	nc_wire_begin(&out, NC_BOX_HELLO);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	return nc_wire_send(holder->fd, &out, NULL, 0);
}

int nc_holder_connect(struct nc_holder *holder, struct nacre_err *err)
{
	struct nc_holder_event event;
	int r = nc_holder_greet(holder);

	if (r == 0)
		r = nc_holder_receive(holder, &event);
	if (r == 0 && event.type != NC_BOX_WELCOME)
		r = -EPROTO;
	if (r == -EPIPE || r == -ECONNRESET)
		return err->code = -ECONNRESET;
	return r < 0 ? nc_err_errno(err, r, "Greet the spawner") : 0;
}

const struct nc_holder *nc_holder_of(const struct nc_holder *first, enum nc_tier tier)
{
	for (const struct nc_holder *holder = first; holder; holder = holder->next)
		if (holder->welcome.terms[tier].here)
			return holder;
	return first;
}

const struct nc_tier_terms *nc_holder_terms(const struct nc_holder *first, enum nc_tier tier)
{
	return &nc_holder_of(first, tier)->welcome.terms[tier];
}

void nc_holder_done(struct nc_holder *holder)
{
	nc_wire_packet_done(&holder->packet);
	nc_mail_done(&holder->mail);
	holder->fd = nc_fd_close(holder->fd);
}

/*
 * A spawner that has much to do lets its mail lie for a moment. On a loop that waits in a queue;
 * elsewhere it is waited for, but not as long as it waits for us: neither may wait for the other
 * for good.
 */
static int send_soon(
	struct nc_holder *holder, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	int r = nc_mail_send(&holder->mail, holder->fd, out, fds, n_fds);

	if (r == -EAGAIN && !holder->mail.waits) {
		struct pollfd event = {.fd = holder->fd, .events = POLLOUT};

		(void)poll(&event, 1, PATIENCE_MS);
		r = nc_wire_send(holder->fd, out, fds, n_fds);
	}
	return r;
}

bool nc_exec_is_neutral(const struct nc_exec_spec *exec)
{
	return exec->tier == NC_TIER_CONTAINER && exec->n_binds == 0 && exec->n_layers == 0 &&
	       exec->home == 0 && !exec->terminal && !exec->door && !exec->shared && !exec->lends &&
	       !exec->users && !exec->writable && exec->user[0] == '\0';
}

static uint32_t flags_of(const struct nc_exec_spec *exec)
{
	const struct {
		bool is_set;
		enum nc_box_order_flag flag;
	} flags[] = {{exec->terminal, NC_ORDER_TTY}, {exec->survives, NC_ORDER_KEEP},
		{exec->stays, NC_ORDER_STAY}, {exec->files, NC_ORDER_FILES},
		{exec->door, NC_ORDER_DOOR}, {exec->shared, NC_ORDER_HOME},
		{exec->alone, NC_ORDER_ALONE}, {exec->lends, NC_ORDER_ZYGOTE},
		{exec->waits, NC_ORDER_AHEAD}, {exec->guests, NC_ORDER_GUESTS},
		{exec->users, NC_ORDER_USERS}, {exec->writable, NC_ORDER_WRITABLE}};
	uint32_t set = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		set |= flags[i].is_set ? (uint32_t)flags[i].flag : 0;
	return set;
}

static void make_order(const struct nc_exec_spec *exec, const struct nc_box_fds *fds,
	struct nc_box_order *ret_order)
{
	*ret_order = (struct nc_box_order){.id = exec->id,
		.home = exec->home,
		.warm_class = exec->warm,
		.limits = exec->limits,
		.tier = exec->tier,
		.flags = flags_of(exec),
		.rows = exec->rows,
		.columns = exec->columns,
		.fds = *fds,
		.argv = exec->argv,
		.env = exec->env,
		.n_binds = exec->n_binds};
	memcpy(ret_order->name, exec->name, sizeof(exec->name));
	memcpy(ret_order->dir, exec->dir, sizeof(exec->dir));
	memcpy(ret_order->user, exec->user, sizeof(exec->user));
	memcpy(ret_order->required, exec->required, sizeof(exec->required));
	memcpy(ret_order->binds, exec->binds, exec->n_binds * sizeof(exec->binds[0]));
}

/* What is too long for a message goes beside it. */
static int add_words(const struct nc_exec_spec *exec, struct nc_box_fds *fds)
{
	cleanup_close int fd = -EBADF;
	int r;

	if (exec->argv.size <= NC_BOX_ARG_SIZE_MAX && exec->env.size <= NC_BOX_ARG_SIZE_MAX)
		return 0;
	if (exec->argv.size + exec->env.size > NC_BOX_WORDS_MAX)
		return -E2BIG;
	fd = memfd_create("nacre-words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = fd < 0 ? -errno : nc_fd_write_all(fd, exec->argv.data, exec->argv.size);
	if (r == 0)
		r = nc_fd_write_all(fd, exec->env.data, exec->env.size);
	if (r == 0 &&
		(lseek(fd, 0, SEEK_SET) < 0 ||
			fcntl(fd, F_ADD_SEALS,
				F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0))
		r = -errno;
	if (r == 0)
		nc_box_fds_add(fds, NC_FD_WORDS, take_fd(fd));
	return r;
}

static void begin_request(
	struct nc_holder *holder, struct nc_wire_out *out, enum nc_box_message type)
{
	if (++holder->last_number == 0)
		holder->last_number = 1;
	nc_wire_begin(out, (uint16_t)type);
	nc_wire_put_u32(out, holder->last_number);
}

int nc_holder_order(struct nc_holder *holder, bool next, const struct nc_exec_spec *exec,
	const struct nc_box_fds *fds, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_fds all = *fds;
	struct nc_box_order order;
	int words_fd, r = add_words(exec, &all);

	/* the spawner would take a longer order for a broken one, and end us */
	if (r == 0) {
		make_order(exec, &all, &order);
		begin_request(holder, &out, next ? NC_BOX_NEXT : NC_BOX_RUN);
		nc_boxwire_put_order(&out, &order);
		r = send_soon(holder, &out, all.fd, all.n);
	}
	words_fd = nc_box_fds_find(&all, NC_FD_WORDS);
	(void)nc_fd_close(words_fd);
	if (r == -E2BIG || r == -EMSGSIZE)
		return nc_err_set(err, -E2BIG, "Arguments and environment are longer than %u KiB",
			NC_BOX_WORDS_MAX / 1024);
	return r < 0 ? nc_err_errno(err, r, "Order a box") : 0;
}

static void begin_of_box(
	struct nc_holder *holder, struct nc_wire_out *out, enum nc_box_message type, uint64_t id)
{
	begin_request(holder, out, type);
	nc_wire_put_u64(out, id);
}

/* owed: where it is noted until it is answered; NULL: it has no answer. */
static int64_t send_request(struct nc_holder *holder, struct nc_wire_out *out, uint32_t *owed)
{
	const uint32_t number = holder->last_number;
	const int r = send_soon(holder, out, NULL, 0);

	if (r == 0 && owed)
		*owed = number;
	return r < 0 ? r : (int64_t)number;
}

int64_t nc_holder_kill(struct nc_holder *holder, uint64_t id, enum nc_box_cause cause)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_KILL, id);
	nc_wire_put_u8(&out, (uint8_t)cause);
	return send_request(holder, &out, &holder->unanswered);
}

int64_t nc_holder_signal(struct nc_holder *holder, uint64_t id, int signal)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_SIGNAL, id);
	nc_wire_put_u32(&out, (uint32_t)signal);
	return send_request(holder, &out, &holder->unanswered);
}

int64_t nc_holder_freeze(struct nc_holder *holder, uint64_t id, bool frozen)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_FREEZE, id);
	nc_wire_put_u8(&out, frozen);
	return send_request(holder, &out, &holder->unanswered);
}

int64_t nc_holder_forget(struct nc_holder *holder, uint64_t id)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_FORGET, id);
	return send_request(holder, &out, NULL);
}

int64_t nc_holder_ask(struct nc_holder *holder, uint64_t id)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_ASK, id);
	return send_request(holder, &out, &holder->untold);
}

int64_t nc_holder_ready(struct nc_holder *holder, uint64_t warm_class, unsigned int n)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_READY, warm_class);
	nc_wire_put_u32(&out, n);
	return send_request(holder, &out, &holder->unanswered);
}

int64_t nc_holder_resize(
	struct nc_holder *holder, uint64_t id, unsigned short rows, unsigned short columns)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_RESIZE, id);
	nc_wire_put_u32(&out, rows);
	nc_wire_put_u32(&out, columns);
	return send_request(holder, &out, &holder->unanswered);
}

int64_t nc_holder_had(
	struct nc_holder *holder, uint64_t id, uint64_t output_bytes, uint64_t error_bytes)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	begin_of_box(holder, &out, NC_BOX_HAD, id);
	nc_wire_put_u64(&out, output_bytes);
	nc_wire_put_u64(&out, error_bytes);
	return send_request(holder, &out, &holder->unanswered);
}

/* The descriptors of the message are the event's from here on. */
static int take_fds(struct nc_holder *holder, struct nc_holder_event *event)
{
	int r = nc_box_fds_meet(&event->fds, &holder->packet);

	for (size_t i = 0; r == 0 && i < holder->packet.n_fds; i++)
		holder->packet.fds[i] = -EBADF;
	return r;
}

int nc_holder_receive(struct nc_holder *holder, struct nc_holder_event *ret_event)
{
	struct nc_holder_event event = {0};
	struct nc_wire_in in;
	int r = nc_wire_receive(holder->fd, &holder->packet, 3);

	if (r <= 0)
		return r < 0 ? r : -ECONNRESET;
	r = nc_wire_open(&in, holder->packet.data, holder->packet.size);
	if (r < 0)
		return r;
	in.lenient = holder->newer;
	event.type = (enum nc_box_message)in.type;
	if (!holder->greeted != (in.type == NC_BOX_WELCOME))
		return -EPROTO;
	if (in.type == NC_BOX_WELCOME) {
		r = read_welcome(holder, &in);
		if (r < 0)
			return r;
	} else if (in.type == NC_BOX_ENDED) {
		nc_boxwire_get_end(&in, &event.end);
		event.id = event.end.id;
	} else if (in.type == NC_BOX_STARTED) {
		event.id = nc_wire_get_u64(&in);
		event.birth_ns = nc_wire_get_u64(&in);
		nc_boxwire_get_fds(&in, &event.fds);
	} else if (in.type == NC_BOX_ADOPT) {
		event.id = nc_wire_get_u64(&in);
		event.home = nc_wire_get_u64(&in);
		nc_boxwire_get_fds(&in, &event.fds);
	} else if (in.type == NC_BOX_TOLD) {
		nc_boxwire_get_now(&in, &event.now);
		event.id = event.now.id;
		holder->untold = 0;
	} else if (in.type == NC_BOX_FAILED) {
		event.id = nc_wire_get_u64(&in);
		event.end.fail = nc_wire_get_u8(&in);
		if (event.end.fail == NC_FAIL_NONE || event.end.fail >= NC_FAIL_LOST)
			return -EPROTO;
		event.failure.code = -(int)nc_wire_get_u32(&in);
		nc_wire_get_text(&in, event.failure.message, NACRE_ERR_MESSAGE_MAX - 1);
	} else if (in.type == NC_BOX_ANSWER) {
		event.number = nc_wire_get_u32(&in);
		event.error = -(int)(nc_wire_get_u32(&in) & 0xfff);
		if (event.number == 0) /* that of no request: the hub's word for all of them */
			return -EPROTO;
		if (event.number == holder->unanswered)
			holder->unanswered = 0;
		if (event.number == holder->untold)
			holder->untold = 0;
	} else {
		return holder->newer ? -EAGAIN : -EPROTO;
	}
	if (nc_wire_close(&in) < 0 || take_fds(holder, &event) < 0)
		return -EPROTO;
	*ret_event = event;
	return 0;
}
