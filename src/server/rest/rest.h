/* The handlers of the table in rest/routes.c, a file per family. */
#ifndef NC_REST_H
#define NC_REST_H

#include "server/server.h"

#define NC_REST(name) void nc_rest_##name(struct nc_server *server, struct nc_exchange *exchange)

/* execute.c */
NC_REST(execute);
NC_REST(jobs_create);
NC_REST(jobs_list);
NC_REST(jobs_get);
NC_REST(jobs_wait);
NC_REST(jobs_events);
NC_REST(jobs_cancel);

/* There is no such job. */
void nc_rest_no_job(struct nc_exchange *exchange);

/* past.c: what the history knows of a job that we do not know any more. */
void nc_rest_past_job(struct nc_server *server, struct nc_exchange *exchange);

/* sandboxes.c */
NC_REST(sandboxes_create);
NC_REST(sandboxes_list);
NC_REST(sandboxes_get);
NC_REST(sandboxes_destroy);
NC_REST(sandboxes_destroy_all);
NC_REST(sandboxes_timeout);
NC_REST(sandboxes_network);
NC_REST(sandboxes_pause);
NC_REST(sandboxes_resume);
NC_REST(sandboxes_stats);
NC_REST(sandboxes_stats_all);
NC_REST(commands_create);
NC_REST(commands_list);
NC_REST(commands_get);
NC_REST(commands_kill);
NC_REST(commands_signal);
NC_REST(commands_input);
NC_REST(commands_resize);
NC_REST(commands_events);

/* sandbox_files.c */
NC_REST(sandboxes_health);
NC_REST(sandboxes_health_all);
NC_REST(files_read);
NC_REST(files_write);
NC_REST(files_remove);
NC_REST(files_make);
NC_REST(files_move);
NC_REST(files_list);
NC_REST(files_stat);

/* sandbox_archives.c */
NC_REST(archives_pack);
NC_REST(archives_unpack);

/* sandbox_watch.c */
NC_REST(files_watch);

/* snapshots.c */
NC_REST(snapshots_create);
NC_REST(snapshots_list);
NC_REST(snapshots_get);
NC_REST(snapshots_remove);
NC_REST(snapshots_restore);

/* terminals.c */
NC_REST(terminals_exec);
NC_REST(terminals_attach);

/* past.c */
NC_REST(history_list);
NC_REST(history_get);
NC_REST(audit_head);
NC_REST(audit_verify);

/* Whether an answer of the archive is one; else the exchange is told why. */
bool nc_rest_is_answer(struct nc_exchange *exchange, const json_t *answer);

/* blobs.c */
NC_REST(history_blob);

/* policy.c */
NC_REST(policy_analyse);
NC_REST(policies);

/* stores.c */
NC_REST(environments);
NC_REST(images);

/* system.c */
NC_REST(version);
NC_REST(health);
NC_REST(ready);
NC_REST(metrics);
NC_REST(alerts);
NC_REST(token);

/* pages.c */
NC_REST(openapi);
NC_REST(docs);

/* A number of the query within bounds. false: it was answered. */
bool nc_rest_number(struct nc_exchange *exchange, const char *name, uint64_t preset, uint64_t max,
	uint64_t *ret_value);

#endif
