/* The worker's side of nacre-egress. */
#include "egress/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "egress/wire.h"
#include "kernel/privilege.h"
#include "kernel/program.h"

/* Where nacre-egress expects it; see main.c. */
#define WORKER_FD 3
#define PLACE_FD 4
/* Above it: what is moved down must not be overwritten before. */
#define HIGH_FD 64

/* ---- the process ---- */

_Noreturn static void become_egress(
	int program_fd, int socket_fd, int place_fd, bool ranges, char **argv)
{
	char *environment[] = {NULL};
	int null_fd, r = 0;

	program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (place_fd > 0)
		place_fd = fcntl(place_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (program_fd < 0 || socket_fd < 0 || null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
		dup2(null_fd, STDOUT_FILENO) < 0 || dup2(socket_fd, WORKER_FD) < 0 ||
		(place_fd > 0 && dup2(place_fd, PLACE_FD) < 0))
		_exit(125);
	r = nc_privilege_become_egress(ranges);
	if (r == 0)
		r = nc_become(program_fd, argv, environment);
	(void)dprintf(STDERR_FILENO, "nacre: Start nacre-egress: %s\n", nc_errno_text(r));
	_exit(125);
}

static int launch(const struct nc_egress_setup *setup, int program_fd, bool ranges, int *ret_pidfd)
{
	char name[] = "nacre-egress", one[] = "1", none[] = "0", servers[1024], hosts[4096],
	     bundle[4096];
	char *argv[] = {name, servers, hosts, bundle, setup->place_fd > 0 ? one : none, NULL};
	cleanup_close int ours = -EBADF, theirs = -EBADF;
	int ends[2];
	pid_t pid;

	if (snprintf(servers, sizeof(servers), "%s", setup->servers ? setup->servers : "") >=
			(int)sizeof(servers) ||
		snprintf(hosts, sizeof(hosts), "%s", setup->hosts ? setup->hosts : "") >=
			(int)sizeof(hosts) ||
		snprintf(bundle, sizeof(bundle), "%s", setup->bundle ? setup->bundle : "") >=
			(int)sizeof(bundle))
		return -ENAMETOOLONG;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	pid = fork(); /* not nc_fork: it must outlive the thread that starts it */
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_egress(program_fd, theirs, setup->place_fd, ranges, argv);
	*ret_pidfd = nc_pidfd_open(pid);
	return *ret_pidfd < 0 ? *ret_pidfd : take_fd(ours);
}

int nc_egress_start(const struct nc_egress_setup *setup, int *ret_pidfd, struct nacre_err *err)
{
	char path[NC_PROGRAM_PATH_SIZE];
	cleanup_close int program_fd = -EBADF;
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	if (r == 0 && setup->program)
		(void)snprintf(path, sizeof(path), "%s", setup->program);
	else if (r == 0)
		r = nc_program_find("nacre-egress", path, err);
	if (r < 0)
		return r;
	/* opened with our rights: its own user may not walk the way there */
	program_fd = open(path, O_PATH | O_CLOEXEC);
	r = program_fd < 0 ? -errno : launch(setup, program_fd, ranges, ret_pidfd);
	return r < 0 ? nc_err_errno(err, r, "Start %s", path) : r;
}

/* ---- asking ---- */

static int send_out(
	struct nc_egress_client *client, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	int r;

	if (client->fd < 0)
		return -EPIPE;
	r = nc_wire_send(client->fd, out, fds, n_fds);
	/* it may have held secrets */
	if (out->buf.data)
		explicit_bzero(out->buf.data, out->buf.size);
	return r == -ECONNRESET ? -EPIPE : r;
}

int nc_egress_greet(struct nc_egress_client *client, int fd, const struct nc_egress_events *events,
	void *user, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r;

	*client = (struct nc_egress_client){.fd = fd, .events = *events, .user = user};
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return nc_err_errno(err, -errno, "Talk to nacre-egress");
	nc_wire_begin(&out, NC_EGRESS_HELLO);
	nc_wire_put_u32(&out, NC_EGRESSWIRE_VERSION);
	r = send_out(client, &out, NULL, 0);
	return r < 0 ? nc_err_errno(err, r, "Talk to nacre-egress") : 0;
}

void nc_egress_done(struct nc_egress_client *client)
{
	client->fd = nc_fd_close(client->fd);
	nc_wire_packet_done(&client->packet);
}

/* Says which of the entries is wrong, before anything is sent. */
static int check_terms(const struct nc_egress_terms *terms, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	struct nc_door_terms checked;
	int r = 0;

	for (size_t i = 0; i < terms->n_rules; i++)
		if (!nc_host_is_pattern(terms->rules[i].host))
			return nc_err_set(err, -EINVAL, "%s is not " NC_HOST_EXPECTED,
				nc_text_quote(quoted, terms->rules[i].host));
	r = nc_terms_init(&checked, terms);
	if (r == 0)
		nc_door_terms_done(&checked);
	return r < 0 ? nc_err_errno(err, r, "Take the network's rules, limits and secrets") : 0;
}

static int send_terms(struct nc_egress_client *client, enum nc_egress_message type, uint64_t box,
	const struct nc_egress_terms *terms, const int *fds, size_t n_fds, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r = check_terms(terms, err);

	if (r < 0)
		return r;
	nc_wire_begin(&out, (uint16_t)type);
	nc_wire_put_u64(&out, box);
	nc_egresswire_put_terms(&out, terms);
	r = send_out(client, &out, fds, n_fds);
	return r < 0 ? nc_err_errno(err, r, "Send the network's rules") : 0;
}

int nc_egress_open(struct nc_egress_client *client, uint64_t box,
	const struct nc_egress_terms *terms, int listener_fd, const int *spare_fds, size_t n_spares,
	struct nacre_err *err)
{
	int fds[NC_WIRE_FDS_MAX] = {listener_fd};

	if (n_spares > NC_SPARES_MAX)
		return nc_err_set(
			err, -EINVAL, "A box has at most %u spare sockets", NC_SPARES_MAX);
	for (size_t i = 0; i < n_spares; i++)
		fds[i + 1] = spare_fds[i];
	return send_terms(client, NC_EGRESS_OPEN, box, terms, fds, n_spares + 1, err);
}

int nc_egress_change(struct nc_egress_client *client, uint64_t box,
	const struct nc_egress_terms *terms, struct nacre_err *err)
{
	return send_terms(client, NC_EGRESS_CHANGE, box, terms, NULL, 0, err);
}

int nc_egress_keep(struct nc_egress_client *client, const char *placeholder, const char *value,
	struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r;

	nc_wire_begin(&out, NC_EGRESS_KEEP);
	out.buf.wipes = true;
	nc_wire_put_text(&out, placeholder);
	nc_wire_put_text(&out, value);
	r = send_out(client, &out, NULL, 0);
	return r < 0 ? nc_err_errno(err, r, "Hand a secret to nacre-egress") : 0;
}

int nc_egress_drop(struct nc_egress_client *client, const char *placeholder)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_EGRESS_DROP);
	nc_wire_put_text(&out, placeholder);
	return send_out(client, &out, NULL, 0);
}

static int send_box(struct nc_egress_client *client, enum nc_egress_message type, uint64_t box)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, (uint16_t)type);
	nc_wire_put_u64(&out, box);
	return send_out(client, &out, NULL, 0);
}

int nc_egress_ask(struct nc_egress_client *client, uint64_t box)
{
	return send_box(client, NC_EGRESS_ASK, box);
}

int nc_egress_shut(struct nc_egress_client *client, uint64_t box)
{
	return send_box(client, NC_EGRESS_SHUT, box);
}

/* ---- hearing ---- */

static int hear_welcome(struct nc_egress_client *client, struct nc_wire_in *in)
{
	const uint32_t version = nc_wire_get_u32(in);

	nc_wire_get_text(in, client->authority, NC_EGRESS_AUTHORITY_MAX);
	if (nc_wire_close(in) < 0 || version != NC_EGRESSWIRE_VERSION || client->welcome)
		return -EBADMSG;
	client->welcome = true;
	return 0;
}

static int hear_done(struct nc_egress_client *client, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	const uint32_t error = nc_wire_get_u32(in);

	if (nc_wire_close(in) < 0 || error > 4095)
		return -EBADMSG;
	if (client->events.done)
		client->events.done(client->user, box, -(int)error);
	return 0;
}

static int hear_decision(struct nc_egress_client *client, struct nc_wire_in *in)
{
	struct nc_egress_decision decision;

	nc_egresswire_get_decision(in, &decision);
	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (client->events.decision)
		client->events.decision(client->user, &decision);
	return 0;
}

static int hear_meter(struct nc_egress_client *client, struct nc_wire_in *in)
{
	struct nc_egress_meter meter;

	nc_egresswire_get_meter(in, &meter);
	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (client->events.meter)
		client->events.meter(client->user, &meter);
	return 0;
}

static int hear_over(struct nc_egress_client *client, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	const uint8_t reason = nc_wire_get_u8(in);

	if (nc_wire_close(in) < 0 || reason >= NC_REASON_MAX)
		return -EBADMSG;
	if (client->events.over)
		client->events.over(client->user, box, (enum nc_reason)reason);
	return 0;
}

static int hear(struct nc_egress_client *client)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, client->packet.data, client->packet.size) < 0)
		return -EBADMSG;
	if (in.type != NC_EGRESS_WELCOME && !client->welcome)
		return -EBADMSG;
	switch ((enum nc_egress_message)in.type) {
	case NC_EGRESS_WELCOME:
		return hear_welcome(client, &in);
	case NC_EGRESS_DONE:
		return hear_done(client, &in);
	case NC_EGRESS_DECISION:
		return hear_decision(client, &in);
	case NC_EGRESS_METER:
		return hear_meter(client, &in);
	case NC_EGRESS_OVER:
		return hear_over(client, &in);
	case NC_EGRESS_HELLO:
	case NC_EGRESS_OPEN:
	case NC_EGRESS_CHANGE:
	case NC_EGRESS_ASK:
	case NC_EGRESS_SHUT:
	case NC_EGRESS_KEEP:
	case NC_EGRESS_DROP:
	default:
		return -EBADMSG;
	}
}

int nc_egress_receive(struct nc_egress_client *client)
{
	int r;

	if (client->fd < 0)
		return -EPIPE;
	r = nc_wire_receive(client->fd, &client->packet, 0);
	if (r == -EAGAIN)
		return 0;
	if (r > 0)
		r = hear(client);
	else if (r == 0 || r == -ECONNRESET)
		r = -EPIPE;
	if (r < 0) {
		client->fd = nc_fd_close(client->fd);
		return r;
	}
	return 1;
}

/* ---- inside ---- */

#define DOOR "http://" NC_EGRESS_ADDRESS ":888"
_Static_assert(NC_EGRESS_PORT == 888, "as in DOOR");
#define NOT_FOR_DOOR "localhost,127.0.0.1,::1"

const char *const *nc_egress_variables(void)
{
	/* all_proxy is HTTP as well: a program that tunnels anything tunnels by CONNECT */
	static const char *const variables[] = {"http_proxy=" DOOR, "HTTP_PROXY=" DOOR,
		"https_proxy=" DOOR, "HTTPS_PROXY=" DOOR, "all_proxy=" DOOR, "ALL_PROXY=" DOOR,
		"no_proxy=" NOT_FOR_DOOR, "NO_PROXY=" NOT_FOR_DOOR, "npm_config_proxy=" DOOR,
		"npm_config_https_proxy=" DOOR, "npm_config_noproxy=" NOT_FOR_DOOR,
		"PIP_PROXY=" DOOR, "NODE_USE_ENV_PROXY=1", NULL};

	return variables;
}
