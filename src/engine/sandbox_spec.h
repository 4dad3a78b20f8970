/* What is asked of sandboxes and their commands, read from JSON. */
#ifndef NC_SANDBOX_SPEC_H
#define NC_SANDBOX_SPEC_H

#include "engine/request.h"
#include "kernel/boxwire.h"

/* Texts borrow from source. */
struct nc_sandbox_spec {
	json_t *source;
	char policy[NC_REQUEST_NAME_MAX + 1];
	char image[NC_REQUEST_NAME_MAX + 1]; /* "": the host's */
	enum nc_tier tier;
	/* whose its commands are, if they name nobody; given: they may. "": the usual one's, all */
	char user[NC_BOX_USER_MAX + 1];
	bool writable_root;
	char snapshot[NC_REQUEST_NAME_MAX + 1]; /* whose files it begins with; "": none */
	struct nc_request_words binds;		/* of the host, by the operator's names */
	struct nc_request_pairs env, labels;
	struct nc_request_limits limits;
	struct nc_request_network network;
	struct nc_request_limit life_ms, idle_ms;
};

struct nc_process_spec {
	json_t *source;
	struct nc_request_words command; /* words; or one, for the shell */
	bool shell;
	struct nc_request_pairs env;
	const char *dir;		/* NULL: the workspace */
	char user[NC_BOX_USER_MAX + 1]; /* "": the sandbox's */
	const char *input;
	struct nc_request_limit wall_ms, rows, columns;
	bool terminal, background, keeps_input;
};

#define NC_SANDBOX_LIFE_MS (300U * 1000)
#define NC_SANDBOX_LIFE_MAX_MS (24U * 3600 * 1000)

/* Takes over source, whatever comes of it. 0, -EINVAL with faults, -ENOMEM. */
int nc_sandbox_spec_read(
	json_t *source, struct nc_sandbox_spec *ret_spec, struct nc_faults *faults);
void nc_sandbox_spec_done(struct nc_sandbox_spec *spec);
#define cleanup_sandbox_spec nc_cleanup(nc_sandbox_spec_done)

/* Other terms of its network: what `network` holds. Borrows from source. */
int nc_sandbox_network_read(
	json_t *source, struct nc_request_network *ret_network, struct nc_faults *faults);

int nc_process_spec_read(
	json_t *source, struct nc_process_spec *ret_spec, struct nc_faults *faults);
void nc_process_spec_done(struct nc_process_spec *spec);
#define cleanup_process_spec nc_cleanup(nc_process_spec_done)

#endif
