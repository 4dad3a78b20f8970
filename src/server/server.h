/*
 * The daemon: routes over HTTP, in front of an engine. One event loop owns all of it.
 *
 * To add routes: write handlers in a file of rest/, add their lines to rest/routes.c and to
 * docs/openapi.json, which tests hold against each other.
 */
#ifndef NC_SERVER_H
#define NC_SERVER_H

#include "engine/engine.h"
#include "server/http.h"
#include "server/keeper.h"
#include "server/keys.h"
#include "server/metrics.h"
#include "server/quota.h"
#include "server/route.h"

struct nc_aides;
struct nc_analysts;
struct nc_alerts;
struct nc_archive;
struct nc_book;
struct nc_certificates;
struct nc_channel;
struct nc_generation;
struct nc_jobs;
struct nc_listeners;
struct nc_intake;
struct nc_ready;
struct nc_replays;
struct nc_sandboxes;
struct nc_snapshots;
struct nc_tally;
struct nc_socket;
struct nc_tls;
struct nc_tracer;
struct nc_transfer;
struct nc_turns;
struct nc_wait;
struct nc_watch;
struct nc_writing;

/* What it stands on; borrowed until it is freed. */
struct nc_server_setup {
	uv_loop_t *loop;
	struct nc_engine *engine;
	struct nc_sandboxes *sandboxes;
	const struct nc_config *config;
	struct nc_book *policies;
	const char *config_dir;			    /* as it was named, to be read again; or NULL */
	const struct nc_environments *environments; /* NULL: there are none */
	int image_store_fd;			    /* or -EBADF */
	int state_fd;				    /* or -EBADF */
	int spool_fd;				    /* a directory for large bodies, or -EBADF */
	int statm_fd;				    /* of /proc/self/statm; or -EBADF */
	int tally_fd;				    /* nc_tally_open(); or -EBADF */
	int serve_fd;				    /* nc_keys_dir() */
	int snapshots_fd;			    /* the store of snapshots; or -EBADF */
	/* of those who work beside us, or -EBADF; all but the first are taken over */
	int archive_fd, courier_fd, exporter_fd, certifier_fd;
	struct nc_keeper keeper; /* who starts them again */
	const int *listen_fds;	 /* listening stream sockets, non-blocking */
	size_t n_listen_fds;
	struct nc_tls *tls; /* or NULL */
	size_t max_running, max_queued;
	uint64_t memory_bytes;
	bool insecure; /* whoever can reach us without a key may ask */
	unsigned int head_ms, body_ms, idle_ms;
	void *context;
	void (*stopped)(void *context); /* once, when nothing is left to be done */
	void (*stays)(void *context);	/* after nc_server_leave(), if that is not to be */
};

struct nc_server {
	struct nc_server_setup setup;
	const struct nc_config *config; /* that holds now */
	struct nc_book *policies;
	struct nc_generation *generation; /* that were read since; NULL: the setup's holds */
	struct nc_sandboxes *sandboxes;
	struct nc_wait *waits;	     /* exchanges that wait for one */
	struct nc_intake *intakes;   /* of bodies */
	bool reads_large;	     /* one of them, at a time */
	struct nc_writing *writings; /* of replies */
	struct nc_analysts *analysts;
	struct nc_turns *turns;
	struct nc_channel *channels; /* of commands in them */
	size_t channels_size;
	struct nc_watch *watches;      /* of files in sandboxes */
	struct nc_socket *sockets;     /* WebSockets */
	struct nc_transfer *transfers; /* of archives */
	struct nc_http *http;
	struct nc_listeners *listeners;
	struct nc_keys keys;
	uint64_t keys_seen_ns, began_ns, drain_until_ns;
	struct nc_metrics *metrics;
	struct nc_quotas *quotas;
	struct nc_quota_refusal refusal; /* the last of a sandbox, or of a command in one */
	struct nc_replays *replays;
	struct nc_jobs *jobs;
	struct nc_archive *archive;	/* NULL: nothing is recorded */
	struct nc_snapshots *snapshots; /* NULL: there is no place for them */
	struct nc_aides *aides;
	struct nc_certificates *certificates; /* NULL: there is no TLS */
	struct nc_alerts *alerts;
	struct nc_tally *tally;
	uint64_t lost; /* executions of daemons before us, as far as they are counted */
	struct nc_tracer *tracer;
	struct nc_ready *ready;
	uv_timer_t *tick;
	unsigned int quiet_ticks;	/* since the last request, while nothing runs */
	char token[NC_SHA256_HEX_SIZE]; /* for browsers, see server/gate.h */
	bool drains, cancelled;
	bool orphaned;		   /* the spawner has died */
	bool leaves;		   /* to the next worker, which goes on with the sandboxes */
	uint64_t busy_ns, open_ns; /* when something was on its way last, and an execution ran */
};

int nc_server_new(
	const struct nc_server_setup *setup, struct nc_server **ret_server, struct nacre_err *err);

/* After nc_engine_free(), which ends what runs without a word to us. Accepts NULL. */
void nc_server_free(struct nc_server *server);

/* Finishes what runs, within drain_seconds, and refuses everything new; `stopped` follows. */
void nc_server_drain(struct nc_server *server);

/*
 * Finishes executions, within drain_seconds, and takes no connection meanwhile: those wait for the
 * next worker. `stopped` follows when we can end at once, and sandboxes go on; or `stays`, when all
 * is as it was.
 */
void nc_server_leave(struct nc_server *server);

/* Logs as it says: a daemon tells what it does, unless it was told not to. */
void nc_server_log(const struct nc_config *config);

/* Reads configuration, policies and keys again; if one is bad, all stays as it was. */
int nc_server_reload(struct nc_server *server, struct nacre_err *err);

#endif
