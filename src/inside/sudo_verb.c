/*
 * nacre-files passes on what nacre-sudo asks.
 *
 * Theory of operation: it runs as root of the box, so that the box's user can neither take its
 * place, nor change what it says, nor end it. It decides nothing and starts nothing: what it moves
 * are frames, whole ones from each client to the daemon, and those for a client into a buffer of
 * that client's, which has room for all that the daemon may send before it hears that something was
 * taken. A client that does not read costs itself alone.
 */
#include "inside/sudo_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/sudowire.h"
#include "inside/user.h"
#include "kernel/boxwire.h"
#include "kernel/privilege.h"

/* Who connects and asks for nothing. */
#define SILENT_NS (5 * NC_NS_PER_S)
#define FRAME_MAX (NC_SUDO_HEAD + NC_SUDO_FRAME_MAX)

struct client {
	int fd;	     /* -EBADF: it has closed, or is not there */
	bool known;  /* to the daemon, which has had a frame of it */
	bool gone;   /* and has been told so */
	bool closes; /* its last word is here, and goes out */
	uint64_t since_ns;
	size_t in_size, out_at, out_size;
	unsigned char in[FRAME_MAX];
	unsigned char out[NC_SUDO_HELD_MAX + FRAME_MAX];
};

/* All of it is zero at first, and takes memory as far as it is used. */
static struct {
	int listen_fd;
	struct nc_user user; /* who may ask beside the usual one */
	bool over;	     /* the daemon's side has closed */
	size_t in_size, out_at, out_size;
	unsigned char in[FRAME_MAX];
	unsigned char out[4 * FRAME_MAX];
	struct client client[NC_SUDO_CLIENTS_MAX];
} agent;

static bool try_again(ssize_t n)
{
	return n < 0 && (errno == EINTR || errno == EAGAIN);
}

static bool is_used(const struct client *client)
{
	return client->fd >= 0 || client->known;
}

/* For the daemon. false: not now. */
static bool tell(const struct client *client, enum nc_sudo_kind kind, const void *data, size_t size)
{
	unsigned char *at = agent.out + agent.out_size;

	if (NC_SUDO_HEAD + size > sizeof(agent.out) - agent.out_size)
		return false;
	nc_sudo_put_head(at, &(struct nc_sudo_head){.client = (uint8_t)(client - agent.client),
				     .kind = (uint8_t)kind,
				     .size = (uint32_t)size});
	if (size > 0)
		memcpy(at + NC_SUDO_HEAD, data, size);
	agent.out_size += NC_SUDO_HEAD + size;
	return true;
}

static void say_gone(struct client *client)
{
	if (client->fd < 0 && client->known && !client->gone)
		client->gone = tell(client, NC_SUDO_GONE, NULL, 0);
}

static void drop(struct client *client)
{
	client->fd = nc_fd_close(client->fd);
	say_gone(client);
}

/* Passes on what it has said, if that is whole and there is room. */
static void pass_frame(struct client *client)
{
	struct nc_sudo_head head;

	while (client->fd >= 0 && client->in_size >= NC_SUDO_HEAD) {
		size_t whole;

		if (nc_sudo_get_head(client->in, &head) < 0 || head.kind >= NC_SUDO_GONE ||
			client->known == (head.kind == NC_SUDO_REQUEST)) {
			drop(client);
			return;
		}
		whole = NC_SUDO_HEAD + head.size;
		if (client->in_size < whole ||
			!tell(client, head.kind, client->in + NC_SUDO_HEAD, head.size))
			return;
		client->known = true;
		client->in_size -= whole;
		memmove(client->in, client->in + whole, client->in_size);
	}
}

static void hear_client(struct client *client)
{
	ssize_t n = read(
		client->fd, client->in + client->in_size, sizeof(client->in) - client->in_size);

	if (n > 0)
		client->in_size += (size_t)n;
	else if (!try_again(n))
		drop(client);
	pass_frame(client);
}

static void feed_client(struct client *client)
{
	ssize_t n = send(client->fd, client->out + client->out_at,
		client->out_size - client->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n >= 0)
		client->out_at += (size_t)n;
	else if (!try_again(n))
		drop(client);
	if (client->out_at == client->out_size) {
		client->out_at = client->out_size = 0;
		if (client->closes)
			drop(client);
	}
}

/* A frame of the daemon's, head and all. */
static int give(struct client *client, const struct nc_sudo_head *head, const void *frame)
{
	const bool last = head->kind == NC_SUDO_EXIT || head->kind == NC_SUDO_REFUSED;
	const size_t size = NC_SUDO_HEAD + head->size;

	if (!client->known || client->closes || head->kind <= NC_SUDO_GONE)
		return -EPROTO;
	client->closes = last;
	if (client->fd < 0)
		return 0;
	memmove(client->out, client->out + client->out_at, client->out_size - client->out_at);
	client->out_size -= client->out_at;
	client->out_at = 0;
	if (size > sizeof(client->out) - client->out_size) { /* it reads nothing */
		drop(client);
		return 0;
	}
	memcpy(client->out + client->out_size, frame, size);
	client->out_size += size;
	feed_client(client);
	return 0;
}

static int hear_daemon(void)
{
	ssize_t n = read(STDIN_FILENO, agent.in + agent.in_size, sizeof(agent.in) - agent.in_size);
	struct nc_sudo_head head;
	size_t at = 0;
	int r = 0;

	if (n > 0)
		agent.in_size += (size_t)n;
	else if (!try_again(n))
		agent.over = true;
	while (r == 0 && agent.in_size - at >= NC_SUDO_HEAD) {
		if (nc_sudo_get_head(agent.in + at, &head) < 0)
			return -EPROTO;
		if (agent.in_size - at < NC_SUDO_HEAD + head.size)
			break;
		r = give(&agent.client[head.client], &head, agent.in + at);
		at += NC_SUDO_HEAD + head.size;
	}
	memmove(agent.in, agent.in + at, agent.in_size - at);
	agent.in_size -= at;
	return r;
}

static void feed_daemon(void)
{
	ssize_t n = write(STDOUT_FILENO, agent.out + agent.out_at, agent.out_size - agent.out_at);

	if (n > 0)
		agent.out_at += (size_t)n;
	else if (!try_again(n))
		agent.over = true;
	memmove(agent.out, agent.out + agent.out_at, agent.out_size - agent.out_at);
	agent.out_size -= agent.out_at;
	agent.out_at = 0;
}

/* Its first word, and the last one. */
static void refuse(int fd, const char *why)
{
	unsigned char frame[NC_SUDO_HEAD + 128];
	size_t size = strlen(why);

	nc_sudo_put_head(
		frame, &(struct nc_sudo_head){.kind = NC_SUDO_REFUSED, .size = (uint32_t)size});
	memcpy(frame + NC_SUDO_HEAD, why, size);
	(void)send(fd, frame, NC_SUDO_HEAD + size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool may_ask(int fd)
{
	struct ucred caller;
	socklen_t size = sizeof(caller);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) == 0 &&
	       (caller.uid == 0 || caller.uid == NC_SANDBOX_ID || caller.uid == agent.user.uid);
}

static void welcome(void)
{
	cleanup_close int fd = accept4(agent.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client = agent.client;

	if (fd < 0)
		return;
	if (!may_ask(fd)) {
		refuse(fd, "this user of the sandbox may not");
		return;
	}
	while (client < agent.client + NC_SUDO_CLIENTS_MAX && is_used(client))
		client++;
	if (client == agent.client + NC_SUDO_CLIENTS_MAX) {
		refuse(fd, "16 commands run by sudo at once; wait for one to end");
		return;
	}
	client->known = client->gone = client->closes = false;
	client->in_size = client->out_at = client->out_size = 0;
	client->since_ns = nc_clock_ns();
	client->fd = take_fd(fd);
}

static int listen_there(void)
{
	const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = NC_BOX_SUDO_SOCKET};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* what one before us has left; others cannot make anything there */
	if (fd < 0 || (unlink(NC_BOX_SUDO_SOCKET) < 0 && errno != ENOENT) ||
		bind(fd, (const struct sockaddr *)&place, sizeof(place)) < 0 ||
		chmod(NC_BOX_SUDO_SOCKET, 0666) < 0 || listen(fd, NC_SUDO_CLIENTS_MAX) < 0)
		return -errno;
	return take_fd(fd);
}

/* Once both have said their last word its number is free. */
static void tidy(struct client *client)
{
	say_gone(client);
	if (client->fd >= 0 && !client->known && nc_clock_ns() - client->since_ns > SILENT_NS)
		drop(client);
	if (client->fd < 0 && client->gone && client->closes)
		client->known = false;
}

static short wanted_of(const struct client *client)
{
	const bool reads = client->in_size < sizeof(client->in);
	const bool writes = client->out_at < client->out_size;

	return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

/* Somebody's first word is waited for. */
static bool is_patient(void)
{
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		if (agent.client[i].fd >= 0 && !agent.client[i].known)
			return true;
	return false;
}

static int turn(void)
{
	struct pollfd fds[3 + NC_SUDO_CLIENTS_MAX] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = agent.out_size > 0 ? STDOUT_FILENO : -1, .events = POLLOUT},
		{.fd = agent.listen_fd, .events = POLLIN}};
	int r = 0;

	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		fds[3 + i] = (struct pollfd){
			.fd = agent.client[i].fd, .events = wanted_of(&agent.client[i])};
	if (poll(fds, 3 + NC_SUDO_CLIENTS_MAX, is_patient() ? 1000 : -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		r = hear_daemon();
	if (fds[1].revents)
		feed_daemon();
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++) {
		struct client *client = &agent.client[i];

		if (client->fd >= 0 && fds[3 + i].revents & POLLOUT)
			feed_client(client);
		if (client->fd >= 0 && fds[3 + i].revents & (POLLIN | POLLHUP | POLLERR))
			hear_client(client);
		else if (client->fd >= 0)
			pass_frame(client); /* there may be room now */
		tidy(client);
	}
	if (fds[2].revents)
		welcome();
	return r;
}

int nc_verb_sudo(char **argv, struct nacre_err *err)
{
	int r = nc_user_find(argv[0], &agent.user);

	if (r < 0)
		agent.user = (struct nc_user){0, 0};
	for (size_t i = 0; i < NC_SUDO_CLIENTS_MAX; i++)
		agent.client[i].fd = -EBADF;
	agent.listen_fd = r = listen_there();
	if (r < 0)
		return nc_err_errno(err, r, "Listen at " NC_BOX_SUDO_SOCKET);
	for (int i = 0; i < 2; i++)
		if (fcntl(i, F_SETFL, O_NONBLOCK | fcntl(i, F_GETFL)) < 0)
			return nc_err_errno(err, -errno, "Move bytes");
	r = 0;
	while (r == 0 && !agent.over)
		r = turn();
	return r < 0 ? nc_err_errno(err, r, "Pass on what sudo asks") : 0;
}
