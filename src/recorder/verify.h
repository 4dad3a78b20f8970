/* Holds a journal against the key that it began with, and finds what was done to it. */
#ifndef NC_VERIFY_H
#define NC_VERIFY_H

#include "recorder/journal.h"

enum nc_damage_kind {
	NC_DAMAGE_CHANGED, /* a line is not what was written, or never was one */
	NC_DAMAGE_MISSING, /* lines that were written are gone */
	NC_DAMAGE_ORDER,   /* a line stands a second time, or behind a later one */
	NC_DAMAGE_FORKED,  /* two lines follow upon the same: somebody had an old key */
	NC_DAMAGE_CUT,	   /* the end is missing */
	NC_DAMAGE_KEY,	   /* the key file is gone, damaged, or not of this journal */
	NC_DAMAGE_KIND_MAX,
};

/* Their names, as in --json. */
extern const char *const nc_damage_names[];

struct nc_damage {
	enum nc_damage_kind kind;
	uint64_t segment; /* 0: none */
	uint64_t line;	  /* in the segment, from 1; 0: none */
	uint64_t seq;	  /* of the first line concerned; 0: unknown */
	char text[160];	  /* what is wrong, for people */
};

struct nc_verdict {
	uint64_t lines; /* that are good */
	uint64_t first_seq;
	struct nc_receipt last;	   /* the head; seq 0: there is no line */
	uint64_t retired;	   /* lines up to this number were retired, and the chain says so */
	uint64_t unfinished_bytes; /* at the end: an append that was killed, or is going on */
	uint64_t damages;
};

/*
 * Walks through the whole journal and calls report for each damage. key is the one of the first
 * line; head, if not NULL, a line that is known to have been written. Returns 0 whatever was found,
 * or -errno if it could not be read.
 */
int nc_verify(int history_fd, const unsigned char key[static NC_SHA256_SIZE],
	const struct nc_receipt *head,
	void (*report)(void *context, const struct nc_damage *damage), void *context,
	struct nc_verdict *ret_verdict);

#endif
