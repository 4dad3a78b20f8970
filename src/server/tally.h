/*
 * What outlives the daemon, in a small file of its state (serve/tally): how many executions were
 * lost, whoever lost them, and which alerts fire. A thread reads and writes it, so that no disk
 * holds up the loop. The daemon that was killed may still end while the next one begins: lost ones
 * are added to what the file says at that moment.
 */
#ifndef NC_TALLY_H
#define NC_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct nc_tally;

/* The file, with the caller's rights; dir_fd: serve/ of the state. A descriptor, or -errno. */
int nc_tally_open(int dir_fd);

/* fd stays the caller's; -EBADF: it is kept in memory alone. NULL: no memory. */
struct nc_tally *nc_tally_new(uv_loop_t *loop, int fd);

/* Writes what has changed. Accepts NULL. */
void nc_tally_free(struct nc_tally *tally);

void nc_tally_lose(struct nc_tally *tally, uint64_t count);
uint64_t nc_tally_lost(const struct nc_tally *tally);

/* Whether the alert fires, as was said last. */
bool nc_tally_fires(const struct nc_tally *tally, const char *alert);
void nc_tally_set(struct nc_tally *tally, const char *alert, bool fires);

/* Whether something is still to be written, and may be yet. */
bool nc_tally_is_behind(const struct nc_tally *tally);

/* Once a second. */
void nc_tally_tick(struct nc_tally *tally);

#endif
