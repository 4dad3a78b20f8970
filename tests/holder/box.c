/* Boxes and commands: their states, and what is told of them. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/tree.h"
#include "plain.h"

#define REMOVE_NS (5 * NC_NS_PER_S)

static struct plain_box *find(uint64_t id, enum plain_state first)
{
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		if (first == PLAIN_FREE ? plain.box[i].state == PLAIN_FREE
					: plain.box[i].state != PLAIN_FREE &&
						  plain.box[i].id == id && !plain.box[i].orphaned)
			return &plain.box[i];
	return NULL;
}

struct plain_box *plain_find(uint64_t id)
{
	return find(id, PLAIN_STARTS);
}

/* ---- what is told ---- */

void plain_tell_failure(uint64_t id, enum nc_fail fail, int error, const char *step)
{
	char text[NACRE_ERR_MESSAGE_MAX];
	struct nc_wire_out out;

	(void)snprintf(text, sizeof(text), "%s: %s", step, nc_errno_text(error));
	nc_wire_begin(&out, NC_BOX_FAILED);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u8(&out, (uint8_t)fail);
	nc_wire_put_u32(&out, (uint32_t)error);
	nc_wire_put_text(&out, text);
	plain_send(&out, NULL, 0);
}

void plain_tell_end(const struct plain_box *box)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &box->end);
	plain_send(&out, NULL, 0);
}

static void tell_start(struct plain_box *box)
{
	const bool has_terminal = box->flags & NC_ORDER_TTY;
	struct nc_box_fds fds = {0};
	struct nc_wire_out out;

	if (has_terminal)
		nc_box_fds_add(&fds, NC_FD_TERMINAL, box->own_fd[0]);
	nc_wire_begin(&out, NC_BOX_STARTED);
	nc_wire_put_u64(&out, box->id);
	nc_wire_put_u64(&out, nc_clock_ns() - box->ordered_ns);
	nc_boxwire_put_fds(&out, &fds);
	if (!box->orphaned)
		plain_send(&out, fds.fd, fds.n);
	else
		nc_wire_out_done(&out);
}

/* ---- ends ---- */

static void close_own(struct plain_box *box)
{
	for (size_t i = 0; i < 3; i++)
		box->own_fd[i] = nc_fd_close(box->own_fd[i]);
}

static void remove_places(const struct plain_box *box)
{
	cleanup_close int dir_fd = open(plain.scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[32];

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)box->id);
	if (box->home == 0 && dir_fd >= 0)
		(void)nc_tree_remove(dir_fd, name, nc_clock_ns() + REMOVE_NS);
}

static struct plain_box *guest_of(const struct plain_box *home)
{
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		if (plain.box[i].in == home)
			return &plain.box[i];
	return NULL;
}

void plain_forget(struct plain_box *box)
{
	close_own(box);
	*box = (struct plain_box){.line_fd = -EBADF, .own_fd = {-EBADF, -EBADF, -EBADF}};
}

static void say(const struct plain_box *box, char what)
{
	if (box->line_fd >= 0) /* if it does not take it, it is gone, and that is heard */
		(void)send(box->line_fd, &what, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Its end is told when nothing of it is left, its guests included. */
static void conclude(struct plain_box *box)
{
	struct plain_box *home = box->in;

	if (guest_of(box)) {
		for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
			if (plain.box[i].in == box)
				plain_kill(&plain.box[i], NC_CAUSE_CANCEL);
		return;
	}
	box->end.stays = false;
	remove_places(box);
	if (!box->orphaned)
		plain_tell_end(box);
	box->in = NULL;
	if (box->kept && !box->orphaned)
		box->state = PLAIN_DEAD;
	else
		plain_forget(box);
	if (home && home->dies && home->state == PLAIN_STAYS)
		conclude(home);
}

static void let_go_of_reaper(struct plain_box *box)
{
	box->line_fd = nc_fd_close(box->line_fd);
	if (box->reaper > 0)
		(void)waitpid(box->reaper, NULL, __WALL);
	box->reaper = 0;
	if (box->told)
		(void)munmap(box->told, sizeof(*box->told));
	box->told = NULL;
}

/* It could not be begun: a box goes with that, a home does not. */
static void fail(struct plain_box *box, enum nc_fail why, int error, const char *step)
{
	struct plain_box *home = box->in;

	if (!box->orphaned)
		plain_tell_failure(box->id, why, error, step);
	let_go_of_reaper(box);
	remove_places(box);
	plain_forget(box);
	if (home && home->dies && home->state == PLAIN_STAYS)
		conclude(home);
}

static void fill_usage(const struct plain_box *box, struct nc_box_usage *usage)
{
	const struct rusage *used = &box->told->usage;
	const uint64_t since = box->began_ns ? box->began_ns : box->ordered_ns;

	*usage = (struct nc_box_usage){.wall_ns = nc_clock_ns() - since,
		.cpu_user_us = (uint64_t)used->ru_utime.tv_sec * 1000000 +
			       (uint64_t)used->ru_utime.tv_usec,
		.cpu_system_us = (uint64_t)used->ru_stime.tv_sec * 1000000 +
				 (uint64_t)used->ru_stime.tv_usec,
		.memory_peak_bytes = (uint64_t)used->ru_maxrss * 1024,
		.context_switches = (uint64_t)(used->ru_nvcsw + used->ru_nivcsw),
		.io_read_bytes = (uint64_t)used->ru_inblock * 512,
		.io_written_bytes = (uint64_t)used->ru_oublock * 512};
}

static void end_as_it_is(const struct plain_box *box, struct nc_box_end *end)
{
	*end = (struct nc_box_end){.id = box->id, .cause = box->cause, .tier = NC_TIER_REMOTE};
	memcpy(end->held, plain.terms.grades, sizeof(end->held));
}

/* Nothing runs in it any more. */
static void finish(struct plain_box *box)
{
	const int status = box->told->status;
	struct plain_box *home = box->in;

	end_as_it_is(box, &box->end);
	fill_usage(box, &box->end.usage);
	box->end.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
	box->end.code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
	box->spent_us += box->end.usage.cpu_user_us + box->end.usage.cpu_system_us;
	if (home)
		home->spent_us += box->spent_us;
	if (box->cause == NC_CAUSE_EXIT && box->end.signal == SIGXCPU)
		box->end.cause = NC_CAUSE_CPU;
	let_go_of_reaper(box);
	box->state = PLAIN_STAYS;
	box->dies = box->dies || !(box->flags & NC_ORDER_STAY);
	if (box->dies) {
		conclude(box);
		return;
	}
	box->end.stays = true;
	plain_tell_end(box);
}

void plain_hear(struct plain_box *box)
{
	char what = PLAIN_ENDED;
	const ssize_t n = recv(box->line_fd, &what, 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) /* somebody has killed it, and we are who ends what it leaves */
		box->told->status = SIGKILL;
	if (n > 0 && what == PLAIN_STARTED) {
		box->state = PLAIN_RUNS;
		box->began_ns = nc_clock_ns();
		tell_start(box);
	} else if (n > 0 && what == PLAIN_FAILED) {
		fail(box, box->told->fail, box->told->error, box->told->step);
	} else {
		finish(box);
	}
}

/* ---- what is asked for ---- */

void plain_kill(struct plain_box *box, enum nc_box_cause cause)
{
	if (cause == NC_CAUSE_CANCEL)
		box->dies = true; /* else it is there for its next command */
	if (box->state == PLAIN_STAYS) {
		box->end.cause = cause;
		if (box->dies)
			conclude(box);
	} else if (box->state != PLAIN_DEAD) {
		if (box->cause == NC_CAUSE_EXIT)
			box->cause = cause;
		say(box, PLAIN_KILL);
		for (size_t i = 0; box->home == 0 && box->dies && i < PLAIN_BOXES_MAX; i++)
			if (plain.box[i].in == box)
				plain_kill(&plain.box[i], cause);
	}
}

void plain_freeze(struct plain_box *box, bool frozen)
{
	if (box->frozen == frozen || box->state == PLAIN_DEAD)
		return;
	box->frozen = frozen;
	if (frozen)
		box->frozen_ns = nc_clock_ns();
	else
		box->deadline_ns += nc_clock_ns() - box->frozen_ns; /* its clock stood still too */
	say(box, frozen ? PLAIN_STOP : PLAIN_GO);
}

void plain_signal(struct plain_box *box, int number)
{
	if (box->state == PLAIN_RUNS)
		say(box, PLAIN_SIGNAL(number));
}

static uint64_t tree_bytes; /* nftw() knows no context */

static int add_size(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)path, (void)type, (void)where;
	tree_bytes += (uint64_t)status->st_blocks * 512;
	return 0;
}

static void add_sizes(const struct plain_box *box, struct nc_box_now *now)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%llu", plain.scratch, (unsigned long long)box->id);
	tree_bytes = 0;
	if (box->home == 0)
		(void)nftw(path, add_size, 16, FTW_PHYS); /* what can be seen of it */
	now->disk_bytes = tree_bytes;
}

void plain_look(const struct plain_box *box, struct nc_box_now *ret_now)
{
	*ret_now = (struct nc_box_now){.id = box->id, .frozen = box->frozen};
	ret_now->cpu_us = box->spent_us;
	add_sizes(box, ret_now);
	end_as_it_is(box, &ret_now->so_far);
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		if (plain.box[i].reaper > 0 && (&plain.box[i] == box || plain.box[i].in == box))
			plain_count(plain.box[i].reaper, ret_now);
	ret_now->memory_peak_bytes = ret_now->memory_bytes;
	ret_now->so_far.usage.cpu_user_us = ret_now->cpu_us;
	ret_now->so_far.usage.memory_peak_bytes = ret_now->memory_bytes;
	if (box->began_ns)
		ret_now->so_far.usage.wall_ns = nc_clock_ns() - box->began_ns;
}

uint64_t plain_check(void)
{
	uint64_t now = nc_clock_ns(), next = UINT64_MAX;

	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++) {
		struct plain_box *box = &plain.box[i];

		if ((box->state != PLAIN_RUNS && box->state != PLAIN_STARTS) || box->frozen)
			continue;
		if (box->deadline_ns <= now && box->cause == NC_CAUSE_EXIT) {
			box->cause = NC_CAUSE_WALL;
			say(box, PLAIN_KILL);
		} else if (box->deadline_ns > now && box->deadline_ns < next) {
			next = box->deadline_ns;
		}
	}
	return next;
}

bool plain_orphan(bool all)
{
	bool left = false;

	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++) {
		struct plain_box *box = &plain.box[i];

		if (box->state == PLAIN_FREE || box->orphaned || (box->kept && !all))
			continue;
		box->orphaned = true;
		if (box->state == PLAIN_DEAD)
			plain_forget(box);
		else
			plain_kill(box, NC_CAUSE_CANCEL);
	}
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		left |= plain.box[i].state != PLAIN_FREE;
	return left;
}

/* ---- beginnings ---- */

static int make_places(const struct plain_box *box)
{
	static const char *const below[] = {"", "/workspace", "/tmp"};
	char path[128];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%llu%s", plain.scratch,
			(unsigned long long)box->id, below[i]);
		if (mkdir(path, 0700) < 0)
			return -errno;
	}
	return 0;
}

/* The end of it that is the program's; ours is the worker's. */
static int open_terminal(struct plain_box *box, const struct nc_box_order *order)
{
	const struct winsize size = {
		.ws_row = (unsigned short)order->rows, .ws_col = (unsigned short)order->columns};
	int fd;

	box->own_fd[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (box->own_fd[0] < 0 || unlockpt(box->own_fd[0]) < 0 ||
		ioctl(box->own_fd[0], TIOCSWINSZ, &size) < 0)
		return -errno;
	fd = ioctl(box->own_fd[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int begin(struct plain_box *box, const struct nc_box_order *order, bool next)
{
	cleanup_close int terminal_fd = -EBADF;
	int r = next || box->home ? 0 : make_places(box);

	for (size_t i = 0; r == 0 && i < 3; i++) {
		const int fd = nc_box_fds_find(&order->fds, nc_box_own_streams[i]);

		box->own_fd[i] = fd < 0 ? -EBADF : nc_fd_dup(fd);
		r = fd >= 0 && box->own_fd[i] < 0 ? box->own_fd[i] : 0;
	}
	if (r == 0 && order->flags & NC_ORDER_TTY)
		r = terminal_fd = open_terminal(box, order);
	return r < 0 ? r : plain_fork(box, order, terminal_fd);
}

void plain_begin(const struct nc_box_order *order, bool next)
{
	struct plain_box *box = next ? plain_find(order->id) : find(0, PLAIN_FREE);
	int r;

	if (!box) {
		plain_tell_failure(order->id, NC_FAIL_BOX, EAGAIN, "This holder has no room");
		return;
	}
	close_own(box);
	if (!next)
		*box = (struct plain_box){.id = order->id,
			.home = order->home,
			.in = order->home ? plain_find(order->home) : NULL,
			.made = order->flags,
			.kept = order->flags & NC_ORDER_KEEP,
			.own_fd = {-EBADF, -EBADF, -EBADF},
			.line_fd = -EBADF};
	box->state = PLAIN_STARTS;
	box->flags = order->flags;
	box->cause = NC_CAUSE_EXIT;
	box->began_ns = 0;
	box->ordered_ns = nc_clock_ns();
	box->deadline_ns = box->ordered_ns + order->limits.wall_ms * NC_NS_PER_MS;
	r = begin(box, order, next);
	if (r < 0)
		fail(box, NC_FAIL_BOX, -r, "Begin a command");
}
