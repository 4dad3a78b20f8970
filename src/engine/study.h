/*
 * What is found out about programs before anything is decided about them: their language, and what
 * the policy's analysis says. That is parsing of foreign text, which the daemon leaves to others
 * (engine/analysts.h).
 */
#ifndef NC_STUDY_H
#define NC_STUDY_H

#include "base/limits.h"
#include "engine/detect.h"
#include "policy/book.h"

/* One program. All that is asked is borrowed. */
struct nc_study_text {
	enum nc_language language; /* NC_LANGUAGE_INVALID: it is to be detected */
	const char *file;	   /* its name, a hint for that; "": none */
	const char *code;
	size_t size;
	/* what was found */
	struct nc_detection found;
	struct nc_report *report;
	/* 0; -ENOENT: its language cannot be told; -EPROTO: reading it took too much memory or
	 * time, or ended the process that did; -ETIME: nobody was there to read it; -ENOMEM */
	int error;
};

/* The programs of one request, by one policy. Zeroed to begin with. */
struct nc_study {
	const struct nc_terms *terms;
	struct nc_study_text text[NC_REQUEST_STEPS_MAX];
	size_t count;
	struct nc_inquiry *inquiry; /* of nc_analysts_ask(), while it goes on */
};

/* Adds a program; file may be NULL. */
void nc_study_add(struct nc_study *study, enum nc_language language, const char *file,
	const char *code, size_t size);

/* Reads one here and now. */
void nc_study_read(struct nc_study_text *text, struct nc_policy *policy);

/* The same for all of them. */
void nc_study_read_all(struct nc_study *study);

/* What an error means, for people. */
const char *nc_study_error(int error);

/* Frees what was found. */
void nc_study_done(struct nc_study *study);

#endif
