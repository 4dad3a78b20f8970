/*
 * What outlives the worker: notes about what it does, and what programs have printed.
 *
 * Theory of operation: the spawner holds two files in memory for all workers. The first has pages,
 * each with a note (JSON) and what two streams brought. A note is written to the half of its page
 * that does not hold, and holds by one small write; so whoever is killed leaves the old one or the
 * new one. What a program prints goes from its pipe into the second file, the inbox, by splice(),
 * so that at each moment every byte is in the pipe or in memory; from there to its page, whose
 * count is written last; then the inbox is emptied. The first file says whose the inbox is and how
 * far his page was: the next worker finishes what was begun, once.
 *
 * All of it is foreign to the worker that finds it: the one before may have been taken over.
 */
#ifndef NC_LEDGER_H
#define NC_LEDGER_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/output.h"

struct nc_ledger;

/* The most of a note, and how much is kept of a stream: the first half and the last. */
#define NC_LEDGER_NOTE_MAX (2U << 20)
#define NC_LEDGER_STREAM_MAX (1U << 20)
#define NC_LEDGER_STREAMS 2U

/* Files for all workers, which are the caller's. 0 or -errno. */
int nc_ledger_make(int *ret_memory_fd, int *ret_inbox_fd);

/* Takes up both, which stay the caller's, and finishes what the worker before had begun. */
int nc_ledger_open(int memory_fd, int inbox_fd, struct nc_ledger **ret_ledger);
void nc_ledger_free(struct nc_ledger *ledger); /* accepts NULL */

/* Every page that has a note, which visit borrows. */
void nc_ledger_visit(struct nc_ledger *ledger,
	void (*visit)(void *context, uint32_t page, const json_t *note), void *context);

/* A new page, empty; 0: there is no room. */
uint32_t nc_ledger_add(struct nc_ledger *ledger);
void nc_ledger_remove(struct nc_ledger *ledger, uint32_t page);

/* Takes over the note, and writes it: all of it, or nothing has changed. */
int nc_ledger_write(struct nc_ledger *ledger, uint32_t page, json_t *note);

/*
 * As read() on fd, which does not block; and what was read is on the page. Pipes lose nothing
 * whenever we are killed; a terminal may lose what was just read.
 */
ssize_t nc_ledger_receive(struct nc_ledger *ledger, uint32_t page, unsigned int stream, int fd,
	char *data, size_t size);

/* What is there of a stream, into an output for NC_LEDGER_STREAM_MAX that is empty. */
int nc_ledger_output(
	struct nc_ledger *ledger, uint32_t page, unsigned int stream, struct nc_output *output);

/* How often something was received for it, on either stream. */
uint64_t nc_ledger_pieces(struct nc_ledger *ledger, uint32_t page);

#endif
