/*
 * nacre-egress: the one door to the network.
 *
 *	nacre-egress SERVERS HOSTS BUNDLE [PLACE]
 *
 * Theory of operation: `nacre` starts it before privilege is dropped, as a user of its own, with
 * its end of a socket pair to the worker as descriptor 3 and /dev/null as 0 and 1. SERVERS are name
 * servers instead of the host's, HOSTS is a file instead of /etc/hosts, BUNDLE one instead of the
 * host's trusted certificates; "" for each is the host's own. The worker hands in the listening
 * sockets of boxes, which were made inside their network namespaces; what is accepted there is
 * judged by the list of that box and dialled from out here.
 *
 * A worker that breaks the rules ends us, and then its boxes have no network. So does one that
 * goes, unless there is a PLACE, 1, where the next one meets us at descriptor 4 (base/meeting.h):
 * until then doors stay as they are, and the next one shuts those that are nobody's any more.
 *
 * Stages of locking in: (1) the files that are needed are read, nothing else is open, and no signal
 * of a terminal ends us; (2) no file can be reached (Landlock), and no port listened on; (3) only
 * what sockets are served with can be called. All before the first byte of a box or the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "egress/conn.h"
#include "egress/worker.h"
#include "kernel/fence.h"
#include "kernel/filter.h"

#define WORKER_FD 3
#define PLACE_FD 4
#define EXIT_SELF 125
/* How often those are looked at that take too long, and that wait for bandwidth. */
#define TICK_MS 250
#define HELD_MS 5

static struct nc_egress egress; /* there is only one */

static int lock_in(struct nacre_err *err)
{
	int r;

	/* keys are not for core files or whoever traces his own processes */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return nc_err_errno(err, -errno, "Give up rights");
	r = nc_fence_egress();
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_EGRESS, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict ourselves") : 0;
}

/* Each connection has two descriptors, and more while bytes are on their way. */
static void take_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* with fewer there are fewer connections */
}

static int start(const char *servers, const char *hosts, const char *bundle, bool place,
	struct nacre_err *err)
{
	const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU};
	int r;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	if (close_range(place ? PLACE_FD + 1 : WORKER_FD + 1, ~0U, 0) < 0 ||
		(place && fcntl(PLACE_FD, F_SETFL, O_NONBLOCK) < 0) ||
		fcntl(WORKER_FD, F_SETFL, O_NONBLOCK) < 0)
		return nc_err_errno(err, -errno, "Close what is not ours");
	take_descriptors();
	r = nc_loop_init(&egress.loop);
	if (r < 0)
		return nc_err_errno(err, r, "Make a set of descriptors");
	r = nc_resolver_init(&egress.resolver, &egress.loop, servers[0] ? servers : NULL,
		hosts[0] ? hosts : NULL, err);
	if (r == 0)
		r = nc_tls_init(&egress.tls, bundle[0] ? bundle : NULL, err);
	if (r == 0)
		r = lock_in(err);
	if (r < 0)
		return r;
	r = nc_worker_init(&egress, WORKER_FD, place ? PLACE_FD : -EBADF);
	return r < 0 ? nc_err_errno(err, r, "Listen to the worker") : 0;
}

/* ---- serving ---- */

static void run_eager(void)
{
	struct nc_conn *conn = egress.eager;

	egress.eager = NULL;
	while (conn) {
		struct nc_conn *next = conn->next_eager;

		conn->is_eager = false;
		nc_conn_run(conn);
		conn = next;
	}
}

static void run_held(void)
{
	egress.held = false;
	for (struct nc_door *door = egress.doors; door; door = door->next)
		nc_door_tick(door);
}

static void tick(void)
{
	for (struct nc_door *door = egress.doors; door; door = door->next)
		for (struct nc_conn *conn = door->conns, *next; conn; conn = next) {
			next = conn->next;
			nc_conn_tick(conn);
		}
}

static bool has_conns(void)
{
	for (const struct nc_door *door = egress.doors; door; door = door->next)
		if (door->conns)
			return true;
	return false;
}

static int timeout_ms(void)
{
	const int resolver =
		egress.resolver.n_open > 0 ? nc_resolver_timeout_ms(&egress.resolver) : -1;
	const int own = egress.eager ? 0 : egress.held ? HELD_MS : has_conns() ? TICK_MS : -1;

	return resolver >= 0 && (own < 0 || resolver < own) ? resolver : own;
}

static int serve(void)
{
	uint64_t tick_ns = 0, held_ns = 0;

	while (nc_worker_may_come(&egress)) {
		int r = nc_loop_turn(&egress.loop, timeout_ms());
		const uint64_t now_ns = egress.loop.now_ns;

		if (r < 0)
			return r;
		run_eager();
		if (egress.resolver.n_open > 0)
			nc_resolver_tick(&egress.resolver);
		if (egress.held && now_ns >= held_ns) {
			held_ns = now_ns + HELD_MS * NC_NS_PER_MS;
			run_held();
		}
		if (now_ns >= tick_ns) {
			tick_ns = now_ns + TICK_MS * NC_NS_PER_MS;
			tick();
		}
		nc_conns_bury(&egress);
		nc_doors_bury(&egress);
	}
	return 0;
}

static void finish(void)
{
	while (egress.doors)
		nc_door_shut(egress.doors);
	egress.held = false;
	run_eager(); /* those that have ended leave the list */
	nc_conns_bury(&egress);
	nc_doors_bury(&egress);
	nc_worker_done(&egress);
	nc_resolver_done(&egress.resolver);
	nc_tls_done(&egress.tls);
	nc_pipes_done(&egress.pipes);
	nc_loop_done(&egress.loop);
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	int r;

	if (argc < 4 || argc > 5 || fcntl(WORKER_FD, F_GETFD) < 0) {
		fputs("nacre-egress is started by nacre, not by hand\n", stderr);
		return EXIT_SELF;
	}
	if (start(argv[1], argv[2], argv[3], argc == 5 && nc_streq(argv[4], "1"), &err) < 0) {
		fprintf(stderr, "nacre-egress: %s\n", err.message);
		return EXIT_SELF;
	}
	r = serve();
	finish();
	return r < 0 ? EXIT_SELF : 0;
}
