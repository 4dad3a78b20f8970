/* The unprivileged side's view of the spawner. */
#include "tier/spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/privilege.h"

/* Where nacre-spawner expects things; see src/spawner/main.c. */
#define SOCKET_FD 3
#define BINDS_FD 5
#define WITNESS_FD (BINDS_FD + (int)NC_BOX_BINDS_MAX)
/* Above all of these: what is moved down must not be overwritten before. */
#define HIGH_FD 64

/* It stands beside us in the build tree, and in libexec when installed. */
static int find_spawner(char *path, size_t size, struct nacre_err *err)
{
	char own[4096];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return nc_err_errno(err, -errno, "Find our own executable");
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	(void)snprintf(path, size, "%s/nacre-spawner", own);
	if (access(path, X_OK) < 0)
		(void)snprintf(path, size, "%s", NACRE_LIBEXECDIR "/nacre-spawner");
	if (access(path, X_OK) < 0)
		return nc_err_errno(err, -errno, "Find %s", path);
	return 0;
}

_Noreturn static void become_spawner(
	const char *path, int socket_fd, pid_t worker, const struct nc_spawn_setup *setup)
{
	static char name[] = "nacre-spawner";
	char pid[16], ready[16], binds[32];
	char *argv[] = {name, pid, ready, binds, NULL};
	int high[NC_BOX_BINDS_MAX];
	int r = 0;

	(void)snprintf(pid, sizeof(pid), "%d", (int)worker);
	(void)snprintf(ready, sizeof(ready), "%u", setup->ready);
	if (setup->witness_fd > 0)
		(void)snprintf(binds, sizeof(binds), "%zu,%d", setup->n_binds, WITNESS_FD);
	else
		(void)snprintf(binds, sizeof(binds), "%zu", setup->n_binds);
	socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	for (size_t i = 0; i < setup->n_binds; i++)
		r |= high[i] = fcntl(setup->binds[i], F_DUPFD_CLOEXEC, HIGH_FD);
	r |= socket_fd;
	if (setup->witness_fd > 0) {
		int witness_fd = fcntl(setup->witness_fd, F_DUPFD_CLOEXEC, HIGH_FD);

		r |= witness_fd < 0 ? witness_fd : dup2(witness_fd, WITNESS_FD);
	}
	for (size_t i = 0; r >= 0 && i < setup->n_binds; i++)
		r |= dup2(high[i], BINDS_FD + (int)i);
	if (r >= 0 && dup2(socket_fd, SOCKET_FD) >= 0)
		(void)execv(path, argv);
	fprintf(stderr, "nacre: Start %s: %s\n", path, nc_errno_text(errno));
	_exit(125); /* and the worker with us */
}

int nc_spawn_start(
	struct nc_spawn *spawn, const struct nc_spawn_setup *setup, struct nacre_err *err)
{
	char path[4096 + sizeof("/nacre-spawner")];
	pid_t pid, parent = getpid();
	bool ranges;
	int ends[2];
	int r = nc_privilege_ranges(&ranges, err);

	assert(setup->n_binds <= NC_BOX_BINDS_MAX);
	if (r == 0)
		r = find_spawner(path, sizeof(path), err);
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
	r = nc_privilege_drop(ranges);
	if (r < 0) {
		nc_err_errno(err, r, "Drop privileges");
		fprintf(stderr, "nacre: %s\n", err->message);
		_exit(125);
	}
	if (getppid() != parent)
		_exit(125); /* it died before it could have taken us along */
	*spawn = (struct nc_spawn){.fd = ends[1]};
	return 0;
}

int nc_spawn_connect(struct nc_spawn *spawn, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;
	int r;

	nc_wire_begin(&out, NC_BOX_HELLO);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	r = nc_wire_send(spawn->fd, &out, NULL, 0);
	if (r == 0) {
		r = nc_wire_receive(spawn->fd, &spawn->packet, 0);
		r = r > 0   ? nc_wire_open(&in, spawn->packet.data, spawn->packet.size)
		    : r < 0 ? r
			    : -EPIPE;
	}
	if (r == 0 && (in.type != NC_BOX_WELCOME || nc_wire_get_u32(&in) != NC_BOXWIRE_VERSION))
		r = -EPROTO;
	if (r == 0) {
		nc_boxwire_get_host(&in, &spawn->host);
		r = nc_wire_close(&in);
	}
	if (r == -EPIPE || r == -ECONNRESET)
		return err->code = -ECONNRESET;
	return r < 0 ? nc_err_errno(err, r, "Greet the spawner") : 0;
}

void nc_spawn_done(struct nc_spawn *spawn)
{
	nc_wire_packet_done(&spawn->packet);
	spawn->fd = nc_fd_close(spawn->fd);
}

int nc_spawn_order(struct nc_spawn *spawn, enum nc_box_message type,
	const struct nc_box_order *order, const int *fds, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r = -E2BIG;

	/* the spawner would take a longer order for a broken one, and end us */
	if (order->argv.size <= NC_BOX_ARG_SIZE_MAX && order->env.size <= NC_BOX_ARG_SIZE_MAX) {
		nc_wire_begin(&out, (uint16_t)type);
		nc_boxwire_put_order(&out, order);
		r = nc_wire_send(spawn->fd, &out, fds, nc_box_order_fds(order));
	}
	if (r == -E2BIG || r == -EMSGSIZE)
		return nc_err_set(err, -E2BIG, "Arguments or environment are longer than %u KiB",
			NC_BOX_ARG_SIZE_MAX / 1024);
	return r < 0 ? nc_err_errno(err, r, "Order a box") : 0;
}

int nc_spawn_kill(struct nc_spawn *spawn, uint64_t id, enum nc_box_cause cause)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_KILL);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u8(&out, (uint8_t)cause);
	return nc_wire_send(spawn->fd, &out, NULL, 0);
}

int nc_spawn_receive(struct nc_spawn *spawn, struct nc_spawn_event *ret_event)
{
	struct nc_spawn_event event = {.terminal_fd = -EBADF};
	struct nc_wire_in in;
	int r = nc_wire_receive(spawn->fd, &spawn->packet, 1);

	if (r <= 0)
		return r < 0 ? r : -ECONNRESET;
	r = nc_wire_open(&in, spawn->packet.data, spawn->packet.size);
	if (r < 0)
		return r;
	event.type = (enum nc_box_message)in.type;
	if (in.type == NC_BOX_ENDED) {
		nc_boxwire_get_end(&in, &event.end);
		event.id = event.end.id;
	} else if (in.type == NC_BOX_STARTED) {
		event.id = nc_wire_get_u64(&in);
		event.birth_ns = nc_wire_get_u64(&in);
	} else if (in.type == NC_BOX_FAILED) {
		event.id = nc_wire_get_u64(&in);
		event.failure.code = -(int)nc_wire_get_u32(&in);
		nc_wire_get_text(&in, event.failure.message, NACRE_ERR_MESSAGE_MAX - 1);
	} else {
		return -EPROTO;
	}
	if (nc_wire_close(&in) < 0)
		return -EPROTO;
	if (event.type == NC_BOX_STARTED && spawn->packet.n_fds == 1) {
		event.terminal_fd = spawn->packet.fds[0];
		spawn->packet.fds[0] = -EBADF;
	}
	*ret_event = event;
	return 0;
}
