/*
 * What was refused to executions, as the spawner tells it. Of one that ends its worker tells; of
 * one that is lost nobody else does, so that the line of kind security is ours.
 */
#ifndef NC_REFUSED_H
#define NC_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/recordwire.h"

/* What is said of an execution that is lost. */
#define NC_RECORD_LOST "What executed it died before it had ended"

struct nc_refused_entry {
	char id[NC_RECORD_ID_MAX + 1];
	bool lost;	 /* its end is in the journal, and its line of kind security is not yet */
	bool certain;	 /* and nobody can come and end it yet: its worker was ours, and is dead */
	uint64_t due_ns; /* when that line is written, if no death is told before */
	char *denials;	 /* a JSON list, of the program that ran last; NULL: nothing */
};

struct nc_refused {
	struct nc_refused_entry *entries; /* NC_RECORD_OPEN_MAX, from the first that is needed on */
	size_t count, n_lost;
	size_t next; /* where the next one goes if all are taken */
};

void nc_refused_done(struct nc_refused *refused);

/* Appends the list of a death. */
void nc_refused_list(const struct nc_record_death *death, struct nc_buf *out);

/* A program of it is dead; denials as the list, or NULL. */
void nc_refused_died(struct nc_refused *refused, const char *id, const char *denials);

/* The same from a line of the journal. */
void nc_refused_read(struct nc_refused *refused, const char *id, const char *line, size_t size);

/* Its worker tells of it: it is open, or has ended. Not where that worker is dead for certain. */
void nc_refused_open(struct nc_refused *refused, const char *id);
void nc_refused_end(struct nc_refused *refused, const char *id);

/* It is lost; a program of it may be dying yet. */
void nc_refused_lost(struct nc_refused *refused, const char *id, bool certain);

/* When the next line is due; 0: none is to be written. */
uint64_t nc_refused_due(const struct nc_refused *refused);

/* Writes the lines that are due until then. */
void nc_refused_tell(
	struct nc_refused *refused, uint64_t until_ns, void (*write)(const char *body));

#endif
