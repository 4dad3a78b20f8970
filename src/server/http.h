/*
 * HTTP on an event loop: libmicrohttpd reads and writes, this has the connections, their deadlines
 * and the replies that come later. One thread, the loop's; nothing here waits.
 *
 *	head()	the head of a request is there; may answer at once, before the body is read
 *	whole()	the body is too; answers now, or keeps the exchange and answers later
 *	done()	the reply has gone, or the client: the exchange is freed after it
 *
 * Every exchange is answered exactly once, with one of the functions of server/reply.h. While it is
 * not, its connection is suspended and watched: a client that hangs up is told to whoever keeps the
 * exchange (`gone`), and nothing that is answered afterwards goes anywhere.
 */
#ifndef NC_HTTP_H
#define NC_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"

struct MHD_Connection;
struct MHD_Response;
struct nc_http;
struct nc_link; /* one connection */
struct nc_route;
struct nc_replay;
struct nc_spool;

enum nc_role {
	NC_ROLE_NONE, /* whoever can reach us */
	NC_ROLE_READ,
	NC_ROLE_EXECUTE,
	NC_ROLE_ADMIN,
	NC_ROLE_MAX,
};

/* Who asks; see server/gate.h. */
struct nc_caller {
	enum nc_role role;
	char tenant[NC_REQUEST_NAME_MAX + 1]; /* "": nobody in particular */
	char key[16];			      /* the id of its key; "": it needed none */
};

/* Ids of a trace and of a span, as digits with a NUL (W3C Trace Context). */
#define NC_TRACE_SIZE 33
#define NC_SPAN_SIZE 17

/* One request and its reply. */
struct nc_exchange {
	struct nc_http *http;
	struct nc_link *link;
	struct MHD_Connection *connection;
	char id[NC_ID_SIZE];
	char trace[NC_TRACE_SIZE]; /* the caller's, by its traceparent header, or ours; "": none */
	char parent[NC_SPAN_SIZE]; /* the caller's span; "": none */
	char span[NC_SPAN_SIZE];   /* our own; "": it is not traced (server/tracer.h) */
	uint64_t began_ns;
	/* the request */
	const char *method; /* HEAD is GET here */
	char *target;	    /* as it came */
	const char *path;   /* of it, raw */
	const char *query;  /* the rest of it; "": none */
	struct nc_caller caller;
	const struct nc_route *route; /* NULL: there is none */
	char part[NC_HTTP_PARTS_MAX][NC_HTTP_PART_MAX + 1];
	size_t n_parts; /* what stands in the path for the {} of the route */
	struct nc_buf body;
	struct nc_spool *spool;	     /* of a large body; NULL: it is not large */
	struct nc_sha256_state hash; /* of the body, as it comes */
	bool spools;		     /* a large body is not kept in memory but in a file */
	bool hashes;
	/*
	 * A body that is taken as it comes, by a route that is run with the head (early): how many
	 * bytes were taken, 0: none now, see nc_exchange_wake; and that it is whole. Of what comes
	 * once it is answered nobody is told.
	 */
	bool early;
	bool is_head;	     /* the method is GET, and nobody wants the body */
	bool closes;	     /* the connection ends behind the reply */
	unsigned int status; /* of the reply; 0: none yet */
	size_t (*sink)(struct nc_exchange *exchange, const char *data, size_t size);
	void (*finish)(struct nc_exchange *exchange);
	/* the reply */
	struct MHD_Response *response;
	const char *origin;	  /* of a page of others that may read it; or NULL */
	struct nc_replay *replay; /* where; or NULL */
	/* whoever keeps it while it is not answered */
	void *keeper;
	void (*gone)(struct nc_exchange *exchange); /* the client has hung up; or NULL */
	/* a reply that is read piece by piece: bytes; 0: none yet, see nc_exchange_wake; -1: end;
	 * -2: it breaks off, which the client is to see */
	void *source;
	ssize_t (*pull)(void *source, char *data, size_t size);
	void (*unplug)(void *source); /* once, when nobody reads it any more */
	size_t reply_size;	      /* of one that is whole */
	/* or the connection becomes another: it is handed over, with what came behind the request
	 */
	void (*upgraded)(void *source, int fd, const char *data, size_t size);
	struct MHD_UpgradeResponseHandle *handle; /* while it is another */
	/* of the driver */
	unsigned int refused; /* it was answered past libmicrohttpd, with this status */
	bool seen_head, seen_body, in_handler, suspended, is_gone;
	size_t body_max, body_taken, body_passed;
	size_t held; /* of its reply, while it is on its way */
	struct nc_poll *watch;
};

struct nc_http_setup {
	uv_loop_t *loop;
	unsigned int head_ms, body_ms, idle_ms; /* how long each may take */
	int spool_fd; /* a directory for large bodies; -EBADF: they are kept in memory */
	void *context;
	size_t (*head)(
		void *context, struct nc_exchange *exchange); /* the most body that it takes */
	void (*whole)(void *context, struct nc_exchange *exchange);
	void (*done)(void *context, struct nc_exchange *exchange);
	/* a connection whose request never became an exchange: 408 */
	void (*refused)(void *context, unsigned int status);
};

/* 0 or -errno. */
int nc_http_new(const struct nc_http_setup *setup, struct nc_http **ret_http);

/* Ends all connections, those that wait too. Accepts NULL. */
void nc_http_free(struct nc_http *http);

/*
 * Takes over a connected stream socket. peer is who is on the other side. -EAGAIN: there are too
 * many; the socket is closed whatever comes of it.
 */
int nc_http_add(struct nc_http *http, int fd, const struct sockaddr *peer, socklen_t peer_size);

/* From now on every reply closes its connection, and idle ones end. */
void nc_http_drain(struct nc_http *http);

size_t nc_http_connections(const struct nc_http *http);
/* Requests that are not answered yet. */
size_t nc_http_open(const struct nc_http *http);
/* Connections on which a request or its reply is on its way. */
size_t nc_http_busy(const struct nc_http *http);
/* From now on every reply closes its connection; or not any more. */
void nc_http_close_behind(struct nc_http *http, bool closes);

/* ---- an exchange ---- */

/* A header of the request; NULL: none. */
const char *nc_exchange_header(const struct nc_exchange *exchange, const char *name);

/*
 * A value of the query, decoded, in memory of the exchange that is good until the next call; NULL:
 * there is none, or it is no text.
 */
const char *nc_exchange_query(struct nc_exchange *exchange, const char *name);

/* Whether the client is on this machine. */
bool nc_exchange_is_local(const struct nc_exchange *exchange);

/* Its source has something again, or its sink has room. */
void nc_exchange_wake(struct nc_exchange *exchange);

/* Ends a connection that has become another; unplug follows, not from within. */
void nc_exchange_hang_up(struct nc_exchange *exchange);

/* For server/reply.c: status and response are there. */
void nc_exchange_answered(struct nc_exchange *exchange);

#endif
