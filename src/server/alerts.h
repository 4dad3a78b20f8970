/*
 * Alerts: rules of serve.yaml over what is counted, looked at every few seconds. One that fires is
 * logged, shown by /v1/alerts and /metrics, and told to webhooks (courier.h), and again when it is
 * over.
 */
#ifndef NC_ALERTS_H
#define NC_ALERTS_H

#include "server/server.h"

struct nc_alerts *nc_alerts_new(struct nc_server *server); /* NULL: no memory */
void nc_alerts_free(struct nc_alerts *alerts);

/* -EINVAL with err: a rule does not say what it looks at. */
int nc_alerts_check(const struct nc_serve_config *config, struct nacre_err *err);

/* Once a second. */
void nc_alerts_tick(struct nc_alerts *alerts);

/* Each rule with its state; NULL: no memory. */
json_t *nc_alerts_list(const struct nc_alerts *alerts);

#endif
