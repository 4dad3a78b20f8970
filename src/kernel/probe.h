/*
 * What this kernel lets this user do, found out by doing it. Each probe runs in a child of its own
 * that dies with it, so that nothing stays behind whatever happens; version numbers are not asked.
 */
#ifndef NC_PROBE_H
#define NC_PROBE_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"

enum nc_probe_id {
	/* namespaces, made inside a user namespace of our own */
	NC_PROBE_USER_NS,
	NC_PROBE_ID_RANGE, /* a user namespace with a range of 65536 ids, as a box of root's gets */
	NC_PROBE_MOUNT_NS,
	NC_PROBE_PID_NS,
	NC_PROBE_NET_NS, /* with only a loopback in it, which can be brought up */
	NC_PROBE_IPC_NS,
	NC_PROBE_UTS_NS,
	NC_PROBE_CGROUP_NS,
	NC_PROBE_TIME_NS,
	/* mounts, made inside a mount namespace of our own */
	NC_PROBE_MOUNT_API, /* fsopen, fsmount, move_mount: a tmpfs that obeys size and inode limits
			     */
	NC_PROBE_READ_ONLY, /* open_tree and a recursive mount_setattr: a /usr nobody can write */
	NC_PROBE_PROC,	    /* a /proc of a fresh pid namespace */
	NC_PROBE_PIVOT_ROOT, /* a root without the old one below */
	NC_PROBE_OVERLAYFS,
	/* filters */
	NC_PROBE_LANDLOCK, /* value: the ABI */
	NC_PROBE_SECCOMP,
	NC_PROBE_SECCOMP_NOTIFY,
	/* processes */
	NC_PROBE_PIDFD,
	/* control groups: a group made, limited, read back and removed */
	NC_PROBE_CGROUP_MEMORY,
	NC_PROBE_CGROUP_SWAP, /* the limit covers swap too */
	NC_PROBE_CGROUP_CPU,
	NC_PROBE_CGROUP_PIDS,
	NC_PROBE_CGROUP_IO,   /* bandwidth of the disk that / is on */
	NC_PROBE_CGROUP_KILL, /* value: 2 by cgroup.kill, 1 by the freezer */
	/* virtualisation */
	NC_PROBE_KVM, /* a guest's instructions really run */
	NC_PROBE_MAX,
};

struct nc_probe {
	bool ok;
	int value;	  /* where the list above says so */
	char detail[160]; /* how it went: never empty after nc_probe_all */
};

struct nc_probes {
	struct nc_probe probe[NC_PROBE_MAX];
};

extern const char *const nc_probe_names[NC_PROBE_MAX];

/* Runs all probes. The caller has one thread. Fails only if the machinery itself does. */
int nc_probe_all(struct nc_probes *ret_probes, struct nacre_err *err);

/* For the files that hold probes: the outcome of one. */
void nc_probe_pass(struct nc_probes *probes, enum nc_probe_id id, int value, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* error is a negative errno, whose description is added. */
void nc_probe_fail(struct nc_probes *probes, enum nc_probe_id id, int error, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* passes with detail if error is 0, else fails with the detail and the error. */
void nc_probe_judge(struct nc_probes *probes, enum nc_probe_id id, int error, const char *what);

/* The groups of probes. Each is called in a child of its own and fills its part of probes. */
void nc_probe_namespaces(struct nc_probes *probes);
void nc_probe_id_range(struct nc_probes *probes);
void nc_probe_mounts(struct nc_probes *probes);
void nc_probe_landlock(struct nc_probes *probes);
void nc_probe_seccomp(struct nc_probes *probes);
void nc_probe_pidfd(struct nc_probes *probes);
void nc_probe_cgroups(struct nc_probes *probes);
void nc_probe_kvm(struct nc_probes *probes);

#endif
