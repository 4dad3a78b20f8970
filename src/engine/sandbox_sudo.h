/* `sudo` inside sandboxes: commands as root that are asked for from within. */
#ifndef NC_SANDBOX_SUDO_H
#define NC_SANDBOX_SUDO_H

struct nc_sandbox;
struct nc_sudo;

/* Once it lives, and about once a second: listens in it if its commands may be root's. */
void nc_sudo_tick(struct nc_sandbox *sandbox);

/* Whoever waits hears nothing more; what runs is told of no more. Accepts NULL. */
void nc_sudo_free(struct nc_sudo *sudo);

#endif
