/*
 * What the unprivileged side and the spawner say to each other. The types and the encoding live in
 * one place, so that both sides cannot drift apart; each side still checks everything it reads.
 */
#ifndef NC_BOXWIRE_H
#define NC_BOXWIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tier_ids.h"
#include "base/wire.h"
#include "kernel/grade.h"
#include "kernel/terms.h"

/*
 * Each side says its version first. From 7 on neighbours understand each other: who is older skips
 * fields at the end of a message; the holder answers messages that it does not know with
 * EOPNOTSUPP, the worker ignores them. Who is newer sends no flag or value that the older one does
 * not know.
 */
#define NC_BOXWIRE_VERSION 7U
#define NC_BOXWIRE_OLDEST 7U

enum nc_box_message {
	/*
	 * To the holder. After HELLO each begins with a u32, its number, and has one answer: RUN
	 * and NEXT are answered by STARTED or FAILED, ASK by TOLD, all others and what could not be
	 * done by ANSWER. FORGET is an acknowledgement and has none.
	 */
	NC_BOX_HELLO = 1, /* u32 version; once, first */
	NC_BOX_RUN,	  /* struct nc_box_order */
	NC_BOX_KILL,	  /* u64 id, u8 enum nc_box_cause */
	/* u64 warm class, u32: how many boxes to keep prepared from now on with its children
	   (class 0: with none); 0 boxes: those that wait end as well */
	NC_BOX_READY,
	NC_BOX_FORGET, /* u64 id: the end of a kept box has been taken note of */
	NC_BOX_NEXT,   /* struct nc_box_order with its streams, for a box that stays */
	/* u64 id, u32 signal: for the program that runs in it; 0: no more input, if it is kept */
	NC_BOX_SIGNAL,
	NC_BOX_FREEZE, /* u64 id, u8: whether it and those at home in it stand still */
	NC_BOX_ASK,    /* u64 id: how is it */
	NC_BOX_RESIZE, /* u64 id, u32 rows, u32 columns: of its terminal */
	/*
	 * After ADOPT, of what runs: u64 id, u64 bytes of output, u64 of error that the worker has
	 * had: the holder goes on from there. In a pipe of the kernel's what was not read is still
	 * there; a holder that keeps output itself sends none before this.
	 */
	NC_BOX_HAD,
	/*
	 * With a SOCK_SEQPACKET socket: who speaks there is served as well, with numbers of boxes
	 * of its own; what it has ends with it. Only the worker may introduce others.
	 */
	NC_BOX_INTRODUCE,
	/* from the holder */
	NC_BOX_WELCOME = 101, /* u32 version, struct nc_box_welcome */
	NC_BOX_STARTED,	      /* u64 id, u64 ns since the order, fds: its terminal, its door */
	NC_BOX_ENDED,	      /* struct nc_box_end */
	NC_BOX_FAILED,	      /* u64 id, u8 enum nc_fail, u32 errno, text: which step */
	/*
	 * After a restart, a kept box: u64 id, u64 home, fds: the worker's ends of its three
	 * streams (but of input that has ended), or its terminal, or none where nothing runs. ENDED
	 * follows if that is known.
	 */
	NC_BOX_ADOPT,
	NC_BOX_TOLD, /* struct nc_box_now */
	/*
	 * u32 number of a request, u32 errno: it was done (0), there is no such box (ESRCH), it has
	 * none (ENOTTY), or this holder does not know or cannot do it (EOPNOTSUPP)
	 */
	NC_BOX_ANSWER,
};

/* Who is served beside the worker, at once. */
#define NC_BOX_CLIENTS_MAX 8U

/* Maxima of an order, which must fit into one message; words that do not come beside it. */
#define NC_BOX_ARGS_MAX 4096U
#define NC_BOX_ARG_SIZE_MAX (24U * 1024)
#define NC_BOX_WORDS_MAX (1024U * 1024) /* arguments and environment together */
#define NC_BOX_DIR_MAX 255U
#define NC_BOX_NAME_MAX 64U
#define NC_BOX_USER_MAX 32U
/* Behind a name: what runs is its compiler. */
#define NC_BOX_OF_COMPILER "/compiler"
#define NC_BOX_BINDS_MAX 16U
#define NC_BOX_LAYERS_MAX 2U
/* Descriptors that each worker finds from 4 on, after its socket, when it is started again. */
#define NC_WORKER_HEIRS_MAX 56
/* Neutral boxes that may be asked for ahead of need. */
#define NC_BOX_READY_MAX 256U

/* Limits of a box; a holder has maxima of its own for each: nc_box_limits_ok(). */
struct nc_box_limits {
	uint64_t memory_bytes;
	uint64_t cpu_milli;
	uint64_t cpu_time_ms; /* 0: none */
	uint64_t wall_ms;
	uint64_t pids;
	uint64_t disk_bytes;
	uint64_t inodes;
	uint64_t open_files;
};

/* Words end to end, each with its NUL. */
struct nc_box_words {
	const char *data;
	size_t size;
	size_t count;
};

/* A directory or file of the host's: which of those that the spawner was started with. */
struct nc_box_bind {
	uint32_t index;
	bool writable;
	char target[NC_BOX_DIR_MAX + 1]; /* where it shows in the box, absolute */
};

enum nc_box_order_flag {
	NC_ORDER_TTY = 1 << 0,	/* a terminal instead of pipes */
	NC_ORDER_KEEP = 1 << 1, /* outlives the worker, for the next one to adopt */
	/* the box outlives the command, whatever ends it, for NC_BOX_NEXT; NC_BOX_KILL ends it */
	NC_ORDER_STAY = 1 << 2,
	NC_ORDER_FILES = 1 << 3, /* the program is nacre-files, whatever argv[0] says */
	/* it can reach a socket that is handed out: what listens there is its way to the network */
	NC_ORDER_DOOR = 1 << 4,
	/*
	 * further commands will run in it beside each other: there are terminals for them, and its
	 * limits hold for all of them together
	 */
	NC_ORDER_HOME = 1 << 5,
	NC_ORDER_ALONE = 1 << 6, /* in a process box: it can make no processes */
	/* its program is a zygote: NC_BOX_READY with its id makes it lend its children to boxes */
	NC_ORDER_ZYGOTE = 1 << 7,
	/* its program is started now, and told what to run by NC_BOX_NEXT; STARTED: it waits */
	NC_ORDER_AHEAD = 1 << 8,
	/*
	 * Others come in to it: what is handed out as its door is a SOCK_SEQPACKET socket in which
	 * one message waits, with the door and NC_DOOR_GUESTS unconnected TCP sockets of its
	 * network
	 */
	NC_ORDER_GUESTS = 1 << 9,
	/* its commands may run as other users than the sandbox's, as root of the box too */
	NC_ORDER_USERS = 1 << 10,
	/* its root can be written to, within its limits; what that shows stays as it was */
	NC_ORDER_WRITABLE = 1 << 11,
	NC_ORDER_FLAGS = (1 << 12) - 1,
};

/* Where a box finds its door: a port that nothing in it could have taken before. */
#define NC_DOOR_PORT 888U
#define NC_DOOR_URL "http://127.0.0.1:888"
/* How many can be in a box of a group at once. */
#define NC_DOOR_GUESTS 12U

/* What a descriptor is that comes with a message. */
enum nc_box_fd {
	/* with an order: of the payload, unless it has a terminal */
	NC_FD_INPUT,
	NC_FD_OUTPUT,
	NC_FD_ERROR,
	NC_FD_PACK,  /* a pipe with files (base/pack.h) for its working directory */
	NC_FD_IMAGE, /* a directory instead of the host's own tree */
	/* directories of the worker's own, in the order in which they are shown */
	NC_FD_LAYER,
	NC_FD_LAYER_WRITABLE,
	/* the worker's own ends of the streams, to be kept; these come with ADOPT too */
	NC_FD_OWN_INPUT,
	NC_FD_OWN_OUTPUT,
	NC_FD_OWN_ERROR,
	/* with STARTED and ADOPT */
	NC_FD_TERMINAL, /* the master of it */
	NC_FD_DOOR,
	/* with an order: a file with its arguments and, behind them, its environment */
	NC_FD_WORDS,
	NC_FD_MAX,
};

/* Those of the payload, and the worker's ends of them, in the order of a process. */
extern const enum nc_box_fd nc_box_streams[3], nc_box_own_streams[3];

/* As many as an order can bring: three streams twice, files, an image, layers, words. */
#define NC_BOX_FDS_MAX (9U + NC_BOX_LAYERS_MAX)

/* The descriptors of a message; on the wire as u8 how many, and the u8 kind of each. */
struct nc_box_fds {
	size_t n;
	enum nc_box_fd kind[NC_BOX_FDS_MAX];
	int fd[NC_BOX_FDS_MAX]; /* -EBADF: not here */
};

struct nc_box_order {
	uint64_t id;
	uint64_t home; /* the box that stays in which it runs, beside what else runs there; or 0 */
	/* the command that lends its children to other boxes: one with a child of it is preferred,
	 * if one is ready; or 0 */
	uint64_t warm_class;
	char name[NC_BOX_NAME_MAX + 1]; /* what the journal calls what runs in it; or "" */
	struct nc_box_limits limits;
	enum nc_tier tier;
	uint32_t flags;				 /* enum nc_box_order_flag */
	enum nc_grade required[NC_STRENGTH_MAX]; /* held by less nothing foreign runs */
	uint32_t rows, columns;			 /* of the terminal */
	struct nc_box_fds fds;
	char dir[NC_BOX_DIR_MAX + 1]; /* working directory, absolute */
	struct nc_box_words argv;
	struct nc_box_words env; /* "NAME=value" */
	uint32_t n_binds;
	struct nc_box_bind binds[NC_BOX_BINDS_MAX];
	/* whose command it is, by name or number in the box's /etc/passwd; "": the sandbox's */
	char user[NC_BOX_USER_MAX + 1];
};

/* Why it ended. */
enum nc_box_cause {
	NC_CAUSE_EXIT,	 /* by itself: see code and signal */
	NC_CAUSE_WALL,	 /* wall time was up */
	NC_CAUSE_CPU,	 /* CPU time was up */
	NC_CAUSE_MEMORY, /* the kernel killed it for memory */
	NC_CAUSE_OUTPUT, /* it printed too much */
	NC_CAUSE_CANCEL, /* the caller wanted it */
	NC_CAUSE_MAX,
};

/* What could not be done, where nothing has run. */
enum nc_fail {
	NC_FAIL_NONE,
	NC_FAIL_BOX,	 /* the box could not be made */
	NC_FAIL_FILES,	 /* what belongs into it could not be put there */
	NC_FAIL_PROGRAM, /* the program cannot be started: ENOENT if it is not there */
	NC_FAIL_LOST,	 /* whoever holds the box has died; never on the wire */
	NC_FAIL_MAX,
};

/* What this spawner's boxes are held by, whatever is ordered. */
struct nc_box_host {
	bool ranges;	  /* each box has user ids of its own */
	bool user_ns;	  /* a user namespace can be had; without it there are only process boxes */
	uint32_t cgroups; /* bits of enum nc_cgroup_can */
	uint32_t landlock; /* the ABI of this kernel, or 0 */
};

/* What a holder says of itself. */
struct nc_box_welcome {
	bool ranges; /* it has privilege: each box has user ids of its own */
	/* boxes without mounts work below this/<id>, in the directories workspace and tmp */
	char scratch[NC_BOX_DIR_MAX + 1];
	struct nc_tier_terms terms[NC_TIER_MAX];
	uint32_t n_adopted; /* ADOPT messages that follow */
};

/* System calls that were refused in a box: as many kinds as are kept, each with its count. */
#define NC_DENIED_MAX 32U

struct nc_box_denied {
	uint32_t call; /* its number */
	uint32_t count;
};

/* Limits that were met, as bits; the program may have survived it. */
enum nc_box_hit {
	NC_HIT_MEMORY = 1 << 0,
	NC_HIT_PIDS = 1 << 1,
	NC_HIT_DISK = 1 << 2,
	NC_HIT_INODES = 1 << 3,
	NC_HIT_FILES = 1 << 4,
};
#define NC_HITS 5U

/* What a box used. */
struct nc_box_usage {
	uint64_t wall_ns;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_peak_bytes;
	uint64_t pids_peak; /* 0: not known */
	uint64_t oom_kills;
	uint64_t pids_refused;
	uint64_t disk_bytes;
	uint64_t context_switches;
	uint64_t io_read_bytes;
	uint64_t io_written_bytes;
	/* of a network of the holder's; what passes a door is counted by who stands there */
	uint64_t net_received_bytes;
	uint64_t net_sent_bytes;
};

struct nc_box_end {
	uint64_t id;
	enum nc_box_cause cause;
	uint32_t code;	 /* exit status, where signal is 0 */
	uint32_t signal; /* that ended it, or 0 */
	enum nc_tier tier;
	enum nc_grade held[NC_STRENGTH_MAX]; /* what it was held by */
	bool alone;	   /* it could make no processes, because nothing could have ended them */
	uint32_t hit;	   /* enum nc_box_hit */
	bool stays;	   /* the box is there still, without processes, for its next command */
	enum nc_fail fail; /* told by FAILED: nothing of this end was, then */
	struct nc_box_usage usage;
	uint32_t n_denied;
	struct nc_box_denied denied[NC_DENIED_MAX];
};

/* What a box or a command uses, while it lives; of a home, with everything that runs in it. */
struct nc_box_now {
	uint64_t id;
	uint64_t cpu_us, memory_bytes, memory_peak_bytes, pids, disk_bytes, io_read_bytes,
		io_written_bytes;
	/*
	 * Processes and threads that had been tried to be made since its program began when its
	 * newest process was, as those are numbered, and that one's age after the program began.
	 */
	uint64_t made, made_ns;
	bool frozen;
	struct nc_box_end so_far; /* what its end would tell if it were now; as if it exited */
};

/* Adds one, which stays the caller's; less than 0: none. */
void nc_box_fds_add(struct nc_box_fds *fds, enum nc_box_fd kind, int fd);

/* Whether there is one of the kind; the first, or -EBADF; the same, and it is the caller's now. */
bool nc_box_fds_has(const struct nc_box_fds *fds, enum nc_box_fd kind);
int nc_box_fds_find(const struct nc_box_fds *fds, enum nc_box_fd kind);
int nc_box_fds_take(struct nc_box_fds *fds, enum nc_box_fd kind);

void nc_box_fds_close(struct nc_box_fds *fds);

/*
 * Gives those that came with a message their kinds, as it says; they stay the packet's.
 * -EBADMSG: it has said another number.
 */
int nc_box_fds_meet(struct nc_box_fds *fds, const struct nc_wire_packet *packet);

void nc_boxwire_put_fds(struct nc_wire_out *out, const struct nc_box_fds *fds);
/* The kinds; the descriptors themselves are -EBADF. */
void nc_boxwire_get_fds(struct nc_wire_in *in, struct nc_box_fds *ret_fds);

/* An image or a layer: a directory; everything else with an order is a stream. */
bool nc_box_fd_is_tree(enum nc_box_fd kind);

/* Whether those of an order are what it says: streams all or, with a terminal, none; no kind that
 * is not an order's, and none but layers twice. */
bool nc_box_fds_fit(const struct nc_box_order *order);

/* How many layers come with an order. */
size_t nc_box_layers(const struct nc_box_order *order);

/*
 * Whether a bind may show there: an absolute path without dots, neither the root nor in what holds
 * the box (/proc, /dev, /sys).
 */
bool nc_box_target_ok(const char *target);

/* A holder's own maxima, whatever the other side thinks of them. */
bool nc_box_limits_ok(const struct nc_box_limits *limits);

/* Whether any box will do for it, also one that was prepared before the order was known. */
bool nc_box_is_neutral(const struct nc_box_order *order);

void nc_boxwire_put_order(struct nc_wire_out *out, const struct nc_box_order *order);
/*
 * The words borrow from the message; those that come beside it have no data yet. Errors are
 * in->error, as with every getter.
 */
void nc_boxwire_get_order(struct nc_wire_in *in, struct nc_box_order *ret_order);

/* The same of a whole RUN or NEXT, of whatever version. 0 or -errno. */
int nc_boxwire_read_order(const void *data, size_t size, struct nc_box_order *ret_order);

/* Reads the words that came beside an order; they borrow from data. 0 or -errno. */
int nc_box_words_read(struct nc_box_order *order, int fd, char data[static NC_BOX_WORDS_MAX]);

void nc_boxwire_put_welcome(struct nc_wire_out *out, const struct nc_box_welcome *welcome);
void nc_boxwire_get_welcome(struct nc_wire_in *in, struct nc_box_welcome *ret_welcome);

void nc_boxwire_put_now(struct nc_wire_out *out, const struct nc_box_now *now);
void nc_boxwire_get_now(struct nc_wire_in *in, struct nc_box_now *ret_now);

void nc_boxwire_put_end(struct nc_wire_out *out, const struct nc_box_end *end);
void nc_boxwire_get_end(struct nc_wire_in *in, struct nc_box_end *ret_end);

#endif
