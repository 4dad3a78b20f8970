/* What a box may do at its door: the caller's words. egress/wire.h sends them, rules.h judges. */
#ifndef NC_TERMS_H
#define NC_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Methods of plain HTTP that an entry may be limited to. */
#define NC_METHODS(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(PATCH) X(OPTIONS)

enum nc_method {
#define X(name) NC_METHOD_##name,
	NC_METHODS(X)
#undef X
		NC_METHOD_OTHER,
};

struct nc_egress_rule {
	const char *host; /* as nc_host_parse_pattern() reads it; without a port: 80 and 443, and
			     all where it denies */
	bool deny;	  /* wins over every entry that allows */
	bool inner;	  /* may lead to addresses of this host and its networks; an address that
			     is listed itself may always */
	uint32_t methods; /* bits 1 << enum nc_method, for plain HTTP only; 0: all */
	const char *const *paths; /* beginnings of paths, whole segments, for plain HTTP only */
	size_t n_paths;		  /* 0: all */
};

/*
 * The box has the placeholder; in the header of requests to this host alone the value takes its
 * place: of plain HTTP, or with tls of HTTP in TLS, in which the door then takes part. The box must
 * trust nc_egress_client.authority for that.
 */
struct nc_egress_secret {
	const char *placeholder; /* 8 or more printable characters, no blank */
	const char *value;	 /* printable, blanks inside too; "": was handed over before */
	const char *host;	 /* a pattern without "*"; without a port: 80, or 443 */
	const char *header;	 /* "Authorization" */
	bool tls;
	bool bare; /* it is not masked in what comes back from that host */
};

/* 0 means none, or the default in brackets. */
struct nc_egress_limits {
	uint32_t connections; /* at once [256] */
	uint32_t names;	      /* different hosts in its life [NC_EGRESS_NAMES_MAX] */
	uint64_t requests;    /* in its life, as are the bytes */
	uint64_t bytes_up;
	uint64_t bytes_down;
	uint64_t bytes;	     /* both together */
	uint64_t rate;	     /* bytes a second, each way */
	uint32_t head_ms;    /* until a head is there [10 s] */
	uint32_t connect_ms; /* for looking up, and for connecting [10 s] */
	uint32_t idle_ms;    /* without a byte either way [5 min] */
};

struct nc_egress_terms {
	const struct nc_egress_rule *rules; /* none: everything is denied */
	size_t n_rules;
	const struct nc_egress_secret *secrets;
	size_t n_secrets;
	struct nc_egress_limits limits;
	bool strict;	   /* tunnels are TLS, and its greeting names the host that was asked for */
	const char *group; /* boxes that reach each other by name; NULL or "": none */
	const char *name;  /* of this one among them: a label */
};

#endif
