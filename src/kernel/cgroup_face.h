/* What the files of cgroup_box.h share: the faces of both versions and steps on directories. */
#ifndef NC_CGROUP_FACE_H
#define NC_CGROUP_FACE_H

#include "kernel/cgroup_box.h"

/* How long the kernel may take to notice that a group is empty, frozen or killed. */
#define NC_CGROUP_BUSY_MS 500U
#define NC_CGROUP_STEP_MS 200U
/* Depth of groups below a parent that a crash may have left; ours are two levels. */
#define NC_CGROUP_DEPTH_MAX 8U
/* Of CPU limits, in a new group. */
#define NC_CGROUP_PERIOD_US 100000U
/* A counter file; those with a line per disk are the longest. */
#define NC_CGROUP_FILE_MAX (16U * 1024)

/* The directory name below fd. */
struct nc_cgroup_place {
	int fd;
	const char *name;
};

/* A file that counters are read from. */
struct nc_cgroup_gauge {
	const char *file;
	bool writable; /* a write makes the kernel forget: opened for both where it can be */
	bool time;     /* of CPU time */
	bool rare;     /* no part of a bill: opened whenever somebody asks, and not kept open */
	void (*take)(const char *text, struct nc_cgroup_usage *usage);
};

/* One limit of one group, to be set. */
struct nc_cgroup_setting {
	struct nc_cgroup_place place;
	const char *const *file; /* the face's knobs */
	const int *fd;		 /* open descriptors of them, or -EBADF */
	uint64_t value;		 /* 0: no limit */
	bool fresh;		 /* no limit was set before */
	bool in_use;		 /* processes are in the group */
	unsigned int can;	 /* of the parent */
};

/* One version's way with one controller. */
struct nc_cgroup_face {
	const char *name; /* for messages */
	const char *file; /* exists in every group if the controller works */
	unsigned int can; /* the bit that it gives */
	/* Sets the limit and reads it back. */
	int (*limit)(const struct nc_cgroup_setting *setting, struct nacre_err *err);
	const char *knob[NC_CGROUP_KNOBS_MAX]; /* what limit writes to; those not there are NULL */
	size_t rare_from; /* those from there on are rarely written to, and not kept open; 0: none
			   */
	struct nc_cgroup_gauge gauge[4]; /* up to the first without a file */
};

extern const struct nc_cgroup_face nc_cgroup_v1[NC_CGROUP_CONTROLLER_MAX];
extern const struct nc_cgroup_face nc_cgroup_v2[NC_CGROUP_CONTROLLER_MAX];
/* CPU time, which version 2 has without a controller. */
extern const struct nc_cgroup_gauge nc_cgroup_v2_time;

/* Letters, digits, '_' and '-' only. */
bool nc_cgroup_name_ok(const char *name);

/* Opens a file of the group; CLOEXEC. A descriptor or -errno. */
int nc_cgroup_open_file(const struct nc_cgroup_place *place, const char *file, int flags);

/* Reads what fd has from its start into text, NUL-terminated. 0, -EFBIG or another -errno. */
int nc_cgroup_read(int fd, char *text, size_t size);

/* nc_cgroup_open_file and nc_cgroup_read. */
int nc_cgroup_read_file(
	const struct nc_cgroup_place *place, const char *file, char *text, size_t size);

/* Whether the group has the file. */
bool nc_cgroup_has_file(const struct nc_cgroup_place *place, const char *file);

/* One write() of text. 0 or -errno. */
int nc_cgroup_write_file(const struct nc_cgroup_place *place, const char *file, const char *text);

/* Writes to a knob and reads it back, which must give wanted; otherwise fills err. */
int nc_cgroup_put(const struct nc_cgroup_setting *setting, size_t knob, const char *text,
	const char *wanted, struct nacre_err *err);

/* The number behind "key " at the beginning of a line, to *value; untouched without that line. */
void nc_cgroup_field(const char *text, const char *key, uint64_t *value);

/* A whole file that is one number. */
uint64_t nc_cgroup_number(const char *text);

/* The limit on memory as the kernel shows it: whole pages, or all that it can count. */
uint64_t nc_cgroup_pages(uint64_t bytes);
uint64_t nc_cgroup_pages_max(void);

/* Quota and period in microseconds for so many thousandths of a CPU. */
void nc_cgroup_quota(uint64_t cpu_milli, uint64_t *ret_quota_us, uint64_t *ret_period_us);

/* Fills err: the memory limit is below what file says is charged. -EBUSY. */
int nc_cgroup_memory_busy(
	const struct nc_cgroup_setting *setting, const char *file, struct nacre_err *err);

/* What both versions have alike. */
int nc_cgroup_limit_pids(const struct nc_cgroup_setting *setting, struct nacre_err *err);
void nc_cgroup_take_peak(const char *text, struct nc_cgroup_usage *usage);
void nc_cgroup_take_now(const char *text, struct nc_cgroup_usage *usage);
void nc_cgroup_take_oom(const char *text, struct nc_cgroup_usage *usage);
void nc_cgroup_take_pids_now(const char *text, struct nc_cgroup_usage *usage);
void nc_cgroup_take_pids_peak(const char *text, struct nc_cgroup_usage *usage);
void nc_cgroup_take_pids_refused(const char *text, struct nc_cgroup_usage *usage);

/* As nc_cgroup_pids, of this one directory. */
int nc_cgroup_place_pids(const struct nc_cgroup_place *place, pid_t *ret_pids, size_t max);

/* Whether a process is alive in this one directory. 1, 0 or -errno. */
int nc_cgroup_place_busy(const struct nc_cgroup_place *place, bool v2);

/* Kills everything in the directory (by cgroup.kill: and below it). As nc_cgroup_kill. */
int nc_cgroup_place_kill(const struct nc_cgroup_place *place, bool v2);

/* The way without cgroup.kill: frozen, killed by the list of processes, thawed, until empty. */
int nc_cgroup_place_kill_listed(const struct nc_cgroup_place *place, bool v2);

/* Sleeps for a moment that grows from call to call; *moment_us begins with 0. */
void nc_cgroup_pause(unsigned int *moment_us);

/* Removes the directory and all below it. -EBUSY: a process is in it after NC_CGROUP_BUSY_MS. */
int nc_cgroup_place_remove(const struct nc_cgroup_place *place);

/* Calls each for every directory in place; stops at a negative result and returns it. */
int nc_cgroup_place_each(const struct nc_cgroup_place *place,
	int (*each)(int dir_fd, const char *name, void *context), void *context);

/* Version 2: has these controllers for the groups below place. */
int nc_cgroup_hand_down(const struct nc_cgroup_place *place, unsigned int controllers);

#endif
