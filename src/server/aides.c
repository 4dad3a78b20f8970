/* Those who work beside the daemon, as it sees them. */
#include "server/aides.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/meeting.h"
#include "engine/execution.h"
#include "engine/network.h"
#include "engine/work.h"
#include "server/archive.h"
#include "server/certificate.h"
#include "server/tracer.h"

/* How long a reply waits for a recorder that has died, at the most. */
#define PATIENCE_NS (30 * NC_NS_PER_S)

struct nc_aides {
	struct nc_server *server;
	const struct nc_keeper_page *page; /* NULL: nobody is started again */
	uint32_t seen[NC_AIDE_MAX];	   /* deaths that we know of */
	uint64_t unrecorded_ns;		   /* since when; 0: all is recorded */
	bool keeper_is_gone;
};

struct nc_aides *nc_aides_new(struct nc_server *server)
{
	struct nc_aides *aides = calloc(1, sizeof(*aides));

	if (!aides)
		return NULL;
	aides->server = server;
	if (server->setup.keeper.page_fd >= 0)
		aides->page = nc_keeper_page(server->setup.keeper.page_fd);
	for (size_t i = 0; aides->page && i < NC_AIDE_MAX; i++)
		aides->seen[i] = atomic_load(&aides->page->deaths[i]);
	return aides;
}

void nc_aides_free(struct nc_aides *aides)
{
	if (aides && aides->page)
		(void)munmap((void *)(uintptr_t)aides->page, sizeof(*aides->page));
	free(aides);
}

static struct nc_hub *hub_of(const struct nc_server *server)
{
	return nc_engine_hub(server->setup.engine);
}

static bool is_holder(enum nc_aide which)
{
	return which >= NC_AIDE_HOLDER && which < NC_AIDE_MAX;
}

/* Of a holder. */
static unsigned int number_of(enum nc_aide which)
{
	return which - NC_AIDE_HOLDER + 1;
}

/* The next one, on a socket that is taken over. */
static int meet(struct nc_server *server, enum nc_aide which, int fd)
{
	struct nc_network *network = nc_engine_setup(server->setup.engine)->network;
	struct nacre_err ignored = {0};

	if (is_holder(which))
		return nc_hub_meet(hub_of(server), number_of(which), fd);
	switch (which) {
	case NC_AIDE_RECORDER:
		return nc_engine_meet_recorder(server->setup.engine, fd);
	case NC_AIDE_EGRESS:
		return nc_network_meet(network, fd, &ignored);
	case NC_AIDE_ARCHIVE:
		return nc_archive_meet(server->archive, fd);
	case NC_AIDE_ANALYST: /* who wants one hands in a socket */
		(void)nc_fd_close(fd);
		return 0;
	case NC_AIDE_COURIER:
		(void)nc_fd_close(server->setup.courier_fd);
		server->setup.courier_fd = fd;
		return 0;
	case NC_AIDE_EXPORTER:
		(void)nc_fd_close(server->setup.exporter_fd);
		server->setup.exporter_fd = fd;
		nc_tracer_meet(server->tracer, fd);
		return 0;
	case NC_AIDE_CERTIFIER:
		return nc_certificates_meet(server->certificates, fd);
	case NC_AIDE_HOLDER:
	case NC_AIDE_MAX:
	default:
		return -EINVAL;
	}
}

/* Whether we still hear of it; of who only listens, the keeper tells. */
static bool is_heard(const struct nc_aides *aides, enum nc_aide which)
{
	const struct nc_server *server = aides->server;

	if (is_holder(which))
		return nc_hub_has(hub_of(server), number_of(which));
	switch (which) {
	case NC_AIDE_RECORDER:
		return nc_engine_has_recorder(server->setup.engine);
	case NC_AIDE_EGRESS:
		return nc_network_is_met(nc_engine_setup(server->setup.engine)->network);
	case NC_AIDE_ARCHIVE:
		return nc_archive_is_up(server->archive);
	case NC_AIDE_ANALYST:
	case NC_AIDE_COURIER:
	case NC_AIDE_EXPORTER:
	case NC_AIDE_CERTIFIER:
	case NC_AIDE_HOLDER:
	case NC_AIDE_MAX:
	default:
		return atomic_load(&aides->page->deaths[which]) == aides->seen[which];
	}
}

/* Whether there is somebody here who misses it: it was there when we began. */
static bool is_missed(const struct nc_server *server, enum nc_aide which)
{
	if (server->setup.keeper.place_fd[which] < 0)
		return false;
	switch (which) {
	case NC_AIDE_RECORDER:
		return nc_engine_setup(server->setup.engine)->record;
	case NC_AIDE_EGRESS:
		return nc_engine_setup(server->setup.engine)->network;
	case NC_AIDE_ARCHIVE:
		return server->archive;
	case NC_AIDE_ANALYST:
	case NC_AIDE_COURIER:
	case NC_AIDE_EXPORTER:
	case NC_AIDE_CERTIFIER:
	case NC_AIDE_HOLDER:
	case NC_AIDE_MAX:
	default:
		return true;
	}
}

static void look_after(struct nc_aides *aides, enum nc_aide which)
{
	const int type = which == NC_AIDE_ARCHIVE ? SOCK_STREAM : SOCK_SEQPACKET;
	uint32_t deaths = atomic_load(&aides->page->deaths[which]);
	int r;

	if (is_heard(aides, which) || !atomic_load(&aides->page->up[which]))
		return;
	if (is_holder(which) && deaths == aides->seen[which])
		nc_log(NC_LOG_ERROR, "A holder of boxes did not answer: all that it held is lost",
			NC_LOG_TEXT("aide", nc_aide_name(which)));
	r = nc_meeting_call(aides->server->setup.keeper.place_fd[which], type);
	if (r >= 0)
		r = meet(aides->server, which, r);
	if (r < 0)
		return; /* the next time */
	aides->seen[which] = deaths;
	nc_log(NC_LOG_INFO, "An aide is there again", NC_LOG_TEXT("aide", nc_aide_name(which)));
}

/* Nobody waits for ever for a recorder that cannot be started. */
static void give_up_recording(struct nc_aides *aides)
{
	const uint64_t now = nc_clock_ns();

	if (nc_engine_records(aides->server->setup.engine))
		aides->unrecorded_ns = 0;
	else if (!aides->unrecorded_ns)
		aides->unrecorded_ns = now;
	else if (now - aides->unrecorded_ns > PATIENCE_NS)
		nc_engine_unrecorded(aides->server->setup.engine);
}

static void look_after_keeper(struct nc_aides *aides)
{
	struct pollfd event = {.fd = aides->server->setup.keeper.life_fd};

	if (aides->keeper_is_gone || poll(&event, 1, 0) != 1)
		return;
	aides->keeper_is_gone = true;
	nc_log(NC_LOG_ERROR,
		"nacre-keeper has died: who works beside the daemon is not started again");
}

void nc_aides_tick(struct nc_aides *aides)
{
	if (!aides->page)
		return;
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		if (is_missed(aides->server, (enum nc_aide)i))
			look_after(aides, (enum nc_aide)i);
	if (is_missed(aides->server, NC_AIDE_RECORDER))
		give_up_recording(aides);
	look_after_keeper(aides);
}

bool nc_aides_record(const struct nc_aides *aides)
{
	return !is_missed(aides->server, NC_AIDE_RECORDER) ||
	       nc_engine_records(aides->server->setup.engine);
}

/* Of those that answer: whether it does. */
static bool answers(const struct nc_server *server, enum nc_aide which)
{
	if (!is_missed(server, which))
		return true;
	if (which == NC_AIDE_RECORDER)
		return nc_engine_records(server->setup.engine);
	if (is_holder(which))
		return nc_hub_hears(hub_of(server), number_of(which));
	return which != NC_AIDE_EGRESS ||
	       nc_network_is_up(nc_engine_setup(server->setup.engine)->network);
}

void nc_aides_count(const struct nc_aides *aides)
{
	struct nc_metrics *metrics = aides->server->metrics;

	for (size_t i = 0; aides->page && i < NC_AIDE_MAX; i++) {
		const char *labels[1];

		if (aides->server->setup.keeper.place_fd[i] < 0)
			continue;
		labels[0] = nc_aide_name((enum nc_aide)i);
		nc_metrics_set(metrics, NC_METRIC_AIDE_UP,
			atomic_load(&aides->page->up[i]) && answers(aides->server, (enum nc_aide)i),
			labels);
		nc_metrics_set(metrics, NC_METRIC_AIDE_DEATHS, atomic_load(&aides->page->deaths[i]),
			labels);
	}
	if (aides->page)
		nc_metrics_set(metrics, NC_METRIC_AIDE_UP, !aides->keeper_is_gone,
			(const char *[]){"keeper"});
}
