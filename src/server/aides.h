/*
 * Those who work beside the daemon (server/keeper.h), as it sees them: who has died is missed, and
 * met again when the keeper has started the next one.
 */
#ifndef NC_AIDES_H
#define NC_AIDES_H

#include "server/server.h"

struct nc_aides;

/* NULL: no memory. */
struct nc_aides *nc_aides_new(struct nc_server *server);
void nc_aides_free(struct nc_aides *aides);

/* Once a second. */
void nc_aides_tick(struct nc_aides *aides);

/* Whether what happens is recorded, or never was since the daemon began. */
bool nc_aides_record(const struct nc_aides *aides);

/* Sets what is counted of them. */
void nc_aides_count(const struct nc_aides *aides);

#endif
