/*
 * The policy of the system call filters, as tables. filter_gen.c compiles them at build time; this
 * is the file to read and to change.
 *
 * The verdict on a call in a profile:
 *
 *	foreign or x32 call		the process is killed
 *	absent in the profile, or in no group here (a call newer than this table)
 *					ENOSYS: programs fall back to what older kernels have
 *	unsupported in the profile	EOPNOTSUPP
 *	a rule of refusal matches	EPERM, or a notification in the reporting variant
 *	its group is allowed in the profile, or a rule of allowance matches
 *					allowed
 *	else				EPERM, or a notification
 *
 * The spawner's profile is the other way round, since all that it starts inherits it: it takes away
 * what neither the spawner nor its worker nor any box ever needs, and allows the rest, also what is
 * in no group. Its answer to what is absent, or judged by rules of which none matches, is
 * SECCOMP_RET_TRACE, which is ENOSYS where nobody traces. Of several filters the strictest answer
 * counts, in the order kill, trap, errno, notification, trace, log, allow: a box's own filter still
 * reports what it refuses.
 *
 * That nobody traces: ptrace() itself, with PTRACE_TRACEME, is among what is taken away, in every
 * process that has the filter, and whoever is started by one of them has it. A tracer would have to
 * be a process that was never below the spawner, and who commands such a process needs no tracer.
 * It is no wall against a spawner that runs foreign code: that one can load a filter of its own,
 * whose listener says "continue", which wins over "trace" (test-filter.c shows it). Errors would
 * win over both, but over the reports of boxes as well.
 *
 * Pointers are never followed: what a rule looks at is in registers, and the kernel has read them
 * once. Where the kernel takes an int from a register, so does the rule: the upper half is masked.
 */
#ifndef NC_FILTER_TABLE_H
#define NC_FILTER_TABLE_H

#include <stdint.h>

#include "kernel/filter.h"

/* Sets of profiles. */
enum {
	NC_IN_NONE = 0,
	NC_IN_SHARED = 1U << NC_FILTER_SHARED,
	NC_IN_CONTAINER = 1U << NC_FILTER_CONTAINER | NC_IN_SHARED,
	NC_IN_PROCESS = 1U << NC_FILTER_PROCESS,
	NC_IN_ALONE = 1U << NC_FILTER_ALONE,
	NC_IN_INIT = 1U << NC_FILTER_INIT,
	NC_IN_SERVER = 1U << NC_FILTER_SERVER,
	NC_IN_WORKER = 1U << NC_FILTER_WORKER | NC_IN_SERVER,
	NC_IN_SPAWNER = 1U << NC_FILTER_SPAWNER,
	NC_IN_RECORDER = 1U << NC_FILTER_RECORDER,
	NC_IN_EGRESS = 1U << NC_FILTER_EGRESS,
	NC_IN_COURIER = 1U << NC_FILTER_COURIER,
	NC_IN_ANALYST = 1U << NC_FILTER_ANALYST,
	NC_IN_RELAY = 1U << NC_FILTER_RELAY,
	NC_IN_KEEPERS = NC_IN_WORKER | NC_IN_RECORDER | NC_IN_COURIER, /* they have files */
	NC_IN_OURS = NC_IN_KEEPERS | NC_IN_EGRESS | NC_IN_ANALYST |
		     NC_IN_RELAY,		  /* all without privilege, and parsing */
	NC_IN_BARE = NC_IN_PROCESS | NC_IN_ALONE, /* no namespaces: the host's files and numbers */
	NC_IN_BOXES = NC_IN_CONTAINER | NC_IN_BARE,
	NC_IN_BOXES_AND_INIT = NC_IN_BOXES | NC_IN_INIT,
	NC_IN_CLOSED = NC_IN_BOXES_AND_INIT | NC_IN_OURS, /* all that refuse by default */
};

struct nc_filter_group {
	const char *reason;
	unsigned int allowed_in;
	unsigned int absent_in;
	/*
	 * Names, divided by blanks. "?" in front: a libseccomp that does not know it is no error.
	 * Calls that only other architectures have are passed over.
	 */
	const char *calls;
};

/* clang-format would spread the lists over one line per few words. */
/* clang-format off */
static const struct nc_filter_group nc_filter_groups[] __attribute__((unused)) = {
	/* what nacre-init has too: it waits, reaps, forwards signals and reports */
	{"end", NC_IN_BOXES_AND_INIT, 0,
		"exit exit_group"},
	{"wait for children", NC_IN_BOXES_AND_INIT, 0,
		"wait4 waitid"},
	{"signals of its own, and to its children", NC_IN_BOXES_AND_INIT, 0,
		"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigsuspend "
		"rt_sigpending kill getpid restart_syscall"},
	{"descriptors that it holds already", NC_IN_BOXES_AND_INIT, 0,
		"read write close poll ppoll sendmsg recvmsg"},

	/* the payload */
	{"programs and processes", NC_IN_BOXES, 0,
		"execve execveat getppid gettid getpgid setpgid getpgrp getsid setsid "
		"set_tid_address pidfd_open"},
	{"new processes", NC_IN_CONTAINER | NC_IN_PROCESS, 0,
		"fork vfork"},
	{"signals to others; the kernel checks whom", NC_IN_BOXES, 0,
		"tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal sigaltstack "
		"pause"},
	{"memory of its own", NC_IN_BOXES, 0,
		"brk mmap munmap mremap mprotect msync madvise mincore mlock mlock2 mlockall "
		"munlock munlockall membarrier memfd_create pkey_alloc pkey_free pkey_mprotect "
		"get_mempolicy set_mempolicy ?map_shadow_stack ?mseal"},
	{"threads and locks", NC_IN_BOXES, 0,
		"futex futex_waitv set_robust_list rseq sched_yield getcpu arch_prctl "
		"?futex_wake ?futex_wait ?futex_requeue"},
	{"reading what the scheduler does with it", NC_IN_BOXES, 0,
		"sched_getparam sched_getscheduler sched_getattr sched_getaffinity "
		"sched_rr_get_interval sched_get_priority_max sched_get_priority_min "
		"getpriority ioprio_get"},
	{"changing that: in its own pid namespace for all, else by rules below", NC_IN_CONTAINER, 0,
		"sched_setparam sched_setscheduler sched_setattr sched_setaffinity setpriority "
		"ioprio_set"},
	{"clocks and timers", NC_IN_BOXES, 0,
		"time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep times "
		"alarm getitimer setitimer timer_create timer_settime timer_gettime "
		"timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime"},
	{"waiting for descriptors", NC_IN_BOXES, 0,
		"select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
		"epoll_pwait2 eventfd eventfd2 signalfd signalfd4"},
	{"tells what others do with any file that the user may read, which Landlock does not see",
		NC_IN_CONTAINER, 0,
		"inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},
	{"data through descriptors", NC_IN_BOXES, 0,
		"readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek sendfile "
		"splice tee copy_file_range readahead fadvise64 fallocate ftruncate fsync "
		"fdatasync sync_file_range pipe pipe2 dup dup2 dup3 fcntl flock ioctl "
		"close_range"},
	{"files by path", NC_IN_BOXES, 0,
		"open openat creat access faccessat faccessat2 stat fstat lstat newfstatat "
		"statx statfs fstatfs getdents getdents64 getcwd chdir fchdir readlink "
		"readlinkat mkdir mkdirat rmdir rename renameat renameat2 link linkat symlink "
		"symlinkat unlink unlinkat umask"},
	{"takes modes of new files from memory, where rules against set-user-id files are blind",
		NC_IN_CONTAINER & ~NC_IN_SHARED, NC_IN_BARE | NC_IN_SHARED,
		"openat2"},
	{"modes, owners and attributes of files that it could open", NC_IN_BOXES, 0,
		"fchmod fchown fsetxattr fgetxattr flistxattr fremovexattr"},
	/*
	 * By path they reach every file of the user, since Landlock covers none of them (truncate()
	 * from ABI 3 on): a key made readable for all, a home closed to its owner.
	 */
	{"the same by path: without mounts of its own, all files of the user", NC_IN_CONTAINER, 0,
		"truncate chmod fchmodat ?fchmodat2 chown lchown fchownat setxattr lsetxattr "
		"removexattr lremovexattr ?setxattrat ?removexattrat utime utimes futimesat "
		"utimensat"},
	{"reading them", NC_IN_CONTAINER, 0,
		"getxattr lgetxattr listxattr llistxattr ?getxattrat ?listxattrat"},
	{"who it is; it has no privilege that these could give", NC_IN_BOXES, 0,
		"getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid "
		"setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget "
		"capset"},
	{"the system, read only", NC_IN_BOXES, 0,
		"uname sysinfo getrusage getrlimit setrlimit getrandom"},
	{"restricting itself further", NC_IN_BOXES, 0,
		"landlock_create_ruleset landlock_add_rule landlock_restrict_self"},
	{"sockets that it holds; in a process box both ends of its own pairs only", NC_IN_BOXES, 0,
		"sendto recvfrom sendmmsg recvmmsg shutdown getsockname getpeername getsockopt "
		"setsockopt"},
	{"reaching others: a process box has no network namespace, and pathnames of unix sockets "
	 "are beyond Landlock before ABI 9", NC_IN_CONTAINER, 0,
		"connect bind listen accept accept4"},
	{"System V IPC and message queues: without an IPC namespace they are the host's",
		NC_IN_CONTAINER, 0,
		"shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv "
		"msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},

	/* judged by the rules below, and refused where none of them matches */
	{"judged by its arguments", NC_IN_NONE, 0,
		"clone socket socketpair prctl prlimit64 seccomp personality mknod mknodat"},

	/* as if the kernel had none */
	{"its flags are in memory, where a filter cannot see CLONE_NEW*; libcs fall back to clone",
		NC_IN_NONE, NC_IN_CLOSED,
		"clone3"},

	/* known and refused; but what not even the spawner needs is absent there */
	{"mounts and the root: the walls of the box", NC_IN_NONE, 0,
		"mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount "
		"fspick mount_setattr ?statmount ?listmount ?open_tree_attr"},
	{"namespaces: a user namespace gives all privileges to a new world of kernel code",
		NC_IN_NONE, 0,
		"unshare setns"},
	{"file handles open files past every directory above them", NC_IN_NONE, NC_IN_SPAWNER,
		"open_by_handle_at name_to_handle_at"},
	{"other processes: memory, descriptors, relations", NC_IN_NONE, NC_IN_SPAWNER,
		"ptrace process_vm_readv process_vm_writev process_madvise process_mrelease "
		"pidfd_getfd kcmp get_robust_list"},
	{"programs in the kernel and events of the machine", NC_IN_NONE, NC_IN_SPAWNER,
		"bpf perf_event_open"},
	{"page faults held up at will are the tool of kernel races", NC_IN_NONE, NC_IN_SPAWNER,
		"userfaultfd"},
	{"io_uring makes calls that no filter sees", NC_IN_NONE, NC_IN_SPAWNER,
		"io_uring_setup io_uring_enter io_uring_register"},
	{"aio contexts come from one pool of the host, fs.aio-max-nr", NC_IN_NONE, NC_IN_SPAWNER,
		"io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy"},
	{"keyrings outlive the box, and know no namespace but users", NC_IN_NONE, NC_IN_SPAWNER,
		"add_key request_key"},
	{"the spawner leaves one, by a rule below", NC_IN_NONE, 0,
		"keyctl"},
	{"kernel images and modules", NC_IN_NONE, NC_IN_SPAWNER,
		"init_module finit_module delete_module kexec_load kexec_file_load reboot"},
	{"administration of the machine", NC_IN_NONE, NC_IN_SPAWNER,
		"swapon swapoff acct quotactl quotactl_fd iopl ioperm syslog vhangup"},
	{"the name of the host", NC_IN_NONE, 0,
		"sethostname setdomainname"},
	{"the clock of the host", NC_IN_NONE, NC_IN_SPAWNER,
		"settimeofday clock_settime clock_adjtime adjtimex"},
	{"writing out every file system of the host is charged to nobody", NC_IN_NONE, NC_IN_SPAWNER,
		"sync syncfs"},
	{"watching the files of others", NC_IN_NONE, NC_IN_SPAWNER,
		"fanotify_init fanotify_mark"},
	{"placing pages: rarely used, often broken", NC_IN_NONE, NC_IN_SPAWNER,
		"mbind set_mempolicy_home_node migrate_pages move_pages remap_file_pages"},
	{"pages that leave the direct map, or are given away to pipes", NC_IN_NONE, NC_IN_SPAWNER,
		"memfd_secret vmsplice"},
	{"what the page cache holds of files that others read", NC_IN_NONE, NC_IN_SPAWNER,
		"?cachestat"},
	{"security modules and attributes of files beyond the rules on ioctl", NC_IN_NONE, NC_IN_SPAWNER,
		"?lsm_get_self_attr ?lsm_set_self_attr ?lsm_list_modules ?file_getattr "
		"?file_setattr"},
	{"segments of 16-bit and 32-bit programs, which cannot run here", NC_IN_NONE, NC_IN_SPAWNER,
		"modify_ldt set_thread_area get_thread_area"},
	{"obsolete: code that nobody looks after", NC_IN_NONE, NC_IN_SPAWNER,
		"lookup_dcookie nfsservctl uselib ustat sysfs _sysctl create_module "
		"get_kernel_syms query_module getpmsg putpmsg afs_syscall tuxcall security "
		"vserver epoll_ctl_old epoll_wait_old"},
};

/*
 * What our own programs have of the same calls: each is in a group above as well, whose refusals
 * and absences hold here too.
 */
static const struct nc_filter_group nc_filter_grants[] __attribute__((unused)) = {
	{"end", NC_IN_OURS, 0,
		"exit exit_group"},
	{"memory", NC_IN_OURS, 0,
		"brk mmap munmap mremap mprotect madvise"},
	{"bytes for the recorder, too many for a message", NC_IN_WORKER, 0,
		"memfd_create"},
	{"threads and locks", NC_IN_WORKER, 0,
		"futex set_robust_list rseq sched_yield sched_getaffinity getcpu membarrier "
		"set_tid_address"},
	{"who it is, and on what", NC_IN_WORKER, 0,
		"getuid geteuid getgid getegid getrusage uname sysinfo"},
	{"signals to itself; whom tgkill() reaches is Landlock's part", NC_IN_OURS, 0,
		"rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall getpid gettid tgkill"},
	{"locks that its libraries have, though nobody else wants them", NC_IN_EGRESS, 0,
		"futex"},
	{"waiting for signals", NC_IN_WORKER, 0,
		"rt_sigtimedwait rt_sigsuspend rt_sigpending sigaltstack"},
	{"time and chance", NC_IN_OURS, 0,
		"time gettimeofday clock_gettime getrandom"},
	{"timers", NC_IN_WORKER, 0,
		"clock_getres clock_nanosleep nanosleep timerfd_create timerfd_settime "
		"timerfd_gettime"},
	{"waiting for descriptors", NC_IN_KEEPERS | NC_IN_RELAY, 0,
		"poll ppoll"},
	{"the same, for many", NC_IN_WORKER, 0,
		"select pselect6 epoll_create1 epoll_pwait2 eventfd2 signalfd4"},
	{"the same, of a set that is there", NC_IN_WORKER | NC_IN_EGRESS, 0,
		"epoll_ctl epoll_wait epoll_pwait"},
	{"data through descriptors that it holds", NC_IN_OURS, 0,
		"read write close fcntl sendmsg recvmsg"},
	{"the same, of files", NC_IN_KEEPERS, 0,
		"pread64 pwrite64 lseek dup3 fstat ftruncate fsync fdatasync"},
	{"the same, by a program of many parts", NC_IN_WORKER, 0,
		"readv writev close_range dup dup2 flock"},
	{"the same, to and fro", NC_IN_WORKER | NC_IN_EGRESS, 0,
		"pipe2 shutdown"},
	{"connections of boxes, to others and to name servers; which sockets is below", NC_IN_EGRESS, 0,
		"accept4 connect getsockname getsockopt sendto recvfrom writev splice"},
	{"files; Landlock says which", NC_IN_KEEPERS, 0,
		"openat openat2 newfstatat getdents64 mkdirat renameat unlinkat"},
	{"files of image stores", NC_IN_WORKER, 0,
		"statx renameat2 linkat symlinkat readlinkat fchmod"},
	{"clients of a socket that listened before it was locked in", NC_IN_SERVER, 0,
		"accept4 sendto recvfrom getsockopt setsockopt getpeername getsockname"},
	{"servers of others, and their names", NC_IN_COURIER, 0,
		"connect sendto recvfrom sendmmsg getsockname getpeername getsockopt setsockopt "
		"uname clock_nanosleep nanosleep futex"},
	{"how large the memory is that it was handed, and its own time", NC_IN_ANALYST, 0,
		"lseek setitimer"},
	{"what a descriptor is, and pipes in place of those that cannot travel", NC_IN_RELAY, 0,
		"fstat pipe2 shutdown splice writev"},
	{"what programs print, from their pipes into memory that outlives it", NC_IN_SERVER, 0,
		"splice fallocate"},
	{"room on the disk of its state", NC_IN_WORKER, 0,
		"fstatfs"},
};

/*
 * Calls of groups above that are answered, in the profiles of the second column, as by a file
 * system that does not have them: programs that do without would complain about EPERM and ENOSYS.
 */
static const struct nc_filter_group nc_filter_unsupported[] __attribute__((unused)) = {
	{"ls(1) looks for attributes of every file", NC_IN_BARE, 0,
		"getxattr lgetxattr listxattr llistxattr ?getxattrat ?listxattrat"},
};
/* clang-format on */

/* One look at one argument: (argument & mask) == value. An empty mask looks at nothing. */
struct nc_filter_when {
	unsigned int argument;
	uint64_t mask;
	uint64_t value;
};

enum nc_filter_verdict { NC_FILTER_ALLOW, NC_FILTER_REFUSE };

#define NC_FILTER_WHENS 3

/* The verdict where all looks are true. A refusal wins over every allowance. */
struct nc_filter_rule {
	enum nc_filter_verdict verdict;
	unsigned int profiles;
	const char *call; /* as in a group: "?" in front makes it optional */
	struct nc_filter_when when[NC_FILTER_WHENS];
};

/* The argument as an int; some of its bits set, or clear. */
#define NC_IS(n, number)                                                                           \
	{                                                                                          \
		(n), 0xffffffffU, (uint32_t)(number)                                               \
	}
#define NC_FIELD(n, bits, number)                                                                  \
	{                                                                                          \
		(n), (bits), (number)                                                              \
	}
#define NC_SET(n, bit)                                                                             \
	{                                                                                          \
		(n), (bit), (bit)                                                                  \
	}
#define NC_CLEAR(n, bits)                                                                          \
	{                                                                                          \
		(n), (bits), 0                                                                     \
	}

#define NC_ALLOW(in, name, ...)                                                                    \
	{                                                                                          \
		NC_FILTER_ALLOW, (in), (name),                                                     \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define NC_REFUSE(in, name, ...)                                                                   \
	{                                                                                          \
		NC_FILTER_REFUSE, (in), (name),                                                    \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/*
 * Numbers of the kernel's interface, the same on x86_64 and aarch64. They are written out because
 * the headers of Debian 12 lack some, others exclude each other, and the generator may run on
 * another architecture than what it generates for.
 */
enum {
	NC_CLONE_NEW_ANY = 0x7e020080, /* time, mount, cgroup, uts, ipc, user, pid, net */
	NC_CLONE_PARENT = 0x8000,
	NC_CLONE_THREAD = 0x10000,
	NC_PROT_EXEC = 4,
	NC_OPEN_CREAT = 0100,
	NC_OPEN_ASYNC = 020000,
	NC_OPEN_TMPFILE = 020000000,
	NC_MODE_SUID = 04000,
	NC_MODE_SGID = 02000,
	NC_MODE_TYPE = 0170000,
	NC_MAP_HUGETLB = 0x40000,
	NC_MFD_HUGETLB = 4,
	NC_SHM_HUGETLB = 04000,
	NC_SOCKET_TYPE = 0xf, /* without SOCK_NONBLOCK and SOCK_CLOEXEC */
	NC_SECCOMP_NEW_LISTENER = 8,
};

#define NC_SOCKET(domain, type, protocol)                                                          \
	NC_IS(0, domain), NC_FIELD(1, NC_SOCKET_TYPE, type), NC_IS(2, protocol)

/* clang-format off */
static const struct nc_filter_rule nc_filter_rules[] __attribute__((unused)) = {
	/*
	 * Children, but no namespaces. CLONE_PARENT would make a child of whoever started the
	 * payload: the supervisor, where there is no nacre-init in between.
	 */
	NC_ALLOW(NC_IN_CONTAINER | NC_IN_PROCESS, "clone",
		NC_CLEAR(0, NC_CLONE_NEW_ANY | NC_CLONE_PARENT)),
	/* threads alone */
	NC_ALLOW(NC_IN_ALONE | NC_IN_WORKER, "clone",
		NC_FIELD(0, NC_CLONE_NEW_ANY | NC_CLONE_PARENT | NC_CLONE_THREAD, NC_CLONE_THREAD)),

	/* PER_LINUX and the query; others switch off address randomisation or change the ABI */
	NC_ALLOW(NC_IN_BOXES, "personality", NC_IS(0, 0)),
	NC_ALLOW(NC_IN_BOXES, "personality", NC_IS(0, 0xffffffff)),

	/*
	 * Its own limits: all may be read (no new value), and set but that of core files (4): it is
	 * 1, which keeps the kernel from starting the host's core handler, and 0 would not. Of the
	 * numbers up to 15, which is all there are, 4 alone is not 0 and has none of these bits.
	 */
	NC_ALLOW(NC_IN_BOXES, "prlimit64", NC_IS(0, 0), NC_FIELD(2, UINT64_MAX, 0)),
	NC_ALLOW(NC_IN_BOXES, "prlimit64", NC_IS(0, 0), NC_IS(1, 0)),
	NC_ALLOW(NC_IN_BOXES, "prlimit64", NC_IS(0, 0), NC_SET(1, 1)),
	NC_ALLOW(NC_IN_BOXES, "prlimit64", NC_IS(0, 0), NC_SET(1, 2)),
	NC_ALLOW(NC_IN_BOXES, "prlimit64", NC_IS(0, 0), NC_SET(1, 8)),
	NC_REFUSE(NC_IN_BOXES, "setrlimit", NC_IS(0, 4)),

	/* filters only tighten; but a listener could answer for the kernel, and "continue" */
	NC_ALLOW(NC_IN_BOXES, "seccomp", NC_IS(0, 1), NC_CLEAR(1, NC_SECCOMP_NEW_LISTENER)),
	NC_ALLOW(NC_IN_BOXES, "seccomp", NC_IS(0, 2)), /* SECCOMP_GET_ACTION_AVAIL */
	NC_ALLOW(NC_IN_BOXES, "seccomp", NC_IS(0, 3)), /* SECCOMP_GET_NOTIF_SIZES */

	/* no devices, not even the 0:0 that is a whiteout of overlayfs and needs no privilege */
	NC_ALLOW(NC_IN_BOXES, "mknod", NC_FIELD(1, NC_MODE_TYPE, 0)),
	NC_ALLOW(NC_IN_BOXES, "mknod", NC_FIELD(1, NC_MODE_TYPE, 0100000)), /* file */
	NC_ALLOW(NC_IN_BOXES, "mknod", NC_FIELD(1, NC_MODE_TYPE, 0010000)), /* FIFO */
	NC_ALLOW(NC_IN_BOXES, "mknod", NC_FIELD(1, NC_MODE_TYPE, 0140000)), /* socket */
	NC_ALLOW(NC_IN_BOXES, "mknodat", NC_FIELD(2, NC_MODE_TYPE, 0)),
	NC_ALLOW(NC_IN_BOXES, "mknodat", NC_FIELD(2, NC_MODE_TYPE, 0100000)),
	NC_ALLOW(NC_IN_BOXES, "mknodat", NC_FIELD(2, NC_MODE_TYPE, 0010000)),
	NC_ALLOW(NC_IN_BOXES, "mknodat", NC_FIELD(2, NC_MODE_TYPE, 0140000)),

	/*
	 * Sockets: TCP, UDP and unix. Not raw, not MPTCP (262), which Landlock's rules on TCP do
	 * not see, and none of the families that are mostly known for their CVEs.
	 */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 1)), /* unix */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 2)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 5)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(2, 1, 0)), /* IPv4: TCP */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(2, 1, 6)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(2, 2, 0)), /* UDP */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(2, 2, 17)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(10, 1, 0)), /* IPv6 */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(10, 1, 6)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(10, 2, 0)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(10, 2, 17)),
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(16, 3, 0)), /* NETLINK_ROUTE: getifaddrs() */
	NC_ALLOW(NC_IN_CONTAINER, "socket", NC_SOCKET(16, 2, 0)),
	/*
	 * Pairs. One end of a SOCK_DGRAM pair can still send to any unix address, by the name in
	 * sendmsg(), which no filter sees: where that address may be the host's, streams only.
	 */
	NC_ALLOW(NC_IN_BOXES, "socketpair", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 1)),
	NC_ALLOW(NC_IN_BOXES, "socketpair", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 5)),
	NC_ALLOW(NC_IN_CONTAINER, "socketpair", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 2)),
	/* protocols over TCP (TLS, SMC) and in UDP (IPsec); programs in the kernel */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 6), NC_IS(2, 31)),   /* TCP_ULP */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 17), NC_IS(2, 100)), /* UDP_ENCAP */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 1), NC_IS(2, 26)),   /* SO_ATTACH_FILTER */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 1), NC_IS(2, 50)),   /* SO_ATTACH_BPF */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 1), NC_IS(2, 51)),   /* ..._REUSEPORT_CBPF */
	NC_REFUSE(NC_IN_BOXES, "setsockopt", NC_IS(1, 1), NC_IS(2, 52)),   /* ..._REUSEPORT_EBPF */

	/*
	 * prctl: what programs ask for. Not here: PR_SET_MM, PR_SET_PTRACER,
	 * PR_SET_SPECULATION_CTRL (would take back a mitigation), PR_SET_MEMORY_MERGE (pages
	 * shared with others tell what these hold), PR_SCHED_CORE, PR_SET_SYSCALL_USER_DISPATCH,
	 * PR_SET_IO_FLUSHER, PR_MCE_KILL.
	 */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 1)),  /* PR_SET_PDEATHSIG */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 2)),  /* PR_GET_PDEATHSIG */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 3)),  /* PR_GET_DUMPABLE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 4)),  /* PR_SET_DUMPABLE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 7)),  /* PR_GET_KEEPCAPS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 8)),  /* PR_SET_KEEPCAPS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 15)), /* PR_SET_NAME */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 16)), /* PR_GET_NAME */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 21)), /* PR_GET_SECCOMP */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 22), NC_IS(1, 2)), /* PR_SET_SECCOMP, filter */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 23)), /* PR_CAPBSET_READ */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 24)), /* PR_CAPBSET_DROP */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 27)), /* PR_GET_SECUREBITS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 28)), /* PR_SET_SECUREBITS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 29)), /* PR_SET_TIMERSLACK */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 30)), /* PR_GET_TIMERSLACK */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 36)), /* PR_SET_CHILD_SUBREAPER */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 37)), /* PR_GET_CHILD_SUBREAPER */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 38)), /* PR_SET_NO_NEW_PRIVS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 39)), /* PR_GET_NO_NEW_PRIVS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 41)), /* PR_SET_THP_DISABLE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 42)), /* PR_GET_THP_DISABLE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 47)), /* PR_CAP_AMBIENT */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 50)), /* PR_SVE_SET_VL */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 51)), /* PR_SVE_GET_VL */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 52)), /* PR_GET_SPECULATION_CTRL */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 54)), /* PR_PAC_RESET_KEYS */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 55)), /* PR_SET_TAGGED_ADDR_CTRL */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 56)), /* PR_GET_TAGGED_ADDR_CTRL */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 65)), /* PR_SET_MDWE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 66)), /* PR_GET_MDWE */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 0x53564d41)), /* PR_SET_VMA: names */
	NC_ALLOW(NC_IN_BOXES, "prctl", NC_IS(0, 0x41555856)), /* PR_GET_AUXV */

	/* input for other programs on the terminal; line disciplines are modules with a history */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x5412)), /* TIOCSTI */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x541c)), /* TIOCLINUX */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x541d)), /* TIOCCONS */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x5423)), /* TIOCSETD */
	/* files that cannot be removed, or count for another project's quota */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x40086602)), /* FS_IOC_SETFLAGS */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x40046602)), /* FS_IOC32_SETFLAGS */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x40087602)), /* FS_IOC_SETVERSION */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x40047602)), /* FS_IOC32_SETVERSION */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x401c5820)), /* FS_IOC_FSSETXATTR */
	/* keys and seals in file systems, and btrfs subvolumes, which rmdir() leaves behind */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x800c6613)), /* FS_IOC_SET_ENCRYPTION_POLICY */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0xc0506617)), /* FS_IOC_ADD_ENCRYPTION_KEY */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x40806685)), /* FS_IOC_ENABLE_VERITY */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x50009401)), /* BTRFS_IOC_SNAP_CREATE */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x5000940e)), /* BTRFS_IOC_SUBVOL_CREATE */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x50009417)), /* BTRFS_IOC_SNAP_CREATE_V2 */
	NC_REFUSE(NC_IN_BOXES, "ioctl", NC_IS(1, 0x50009418)), /* BTRFS_IOC_SUBVOL_CREATE_V2 */

	/* a lease holds up whoever opens the file from outside, for 45 seconds */
	NC_REFUSE(NC_IN_BOXES, "fcntl", NC_IS(1, 1024)), /* F_SETLEASE */

	/* huge pages are not charged to the memory cgroup; merged ones tell what others hold */
	NC_REFUSE(NC_IN_BOXES, "mmap", NC_SET(3, NC_MAP_HUGETLB)),
	NC_REFUSE(NC_IN_BOXES, "memfd_create", NC_SET(1, NC_MFD_HUGETLB)),
	NC_REFUSE(NC_IN_BOXES, "shmget", NC_SET(2, NC_SHM_HUGETLB)),
	NC_REFUSE(NC_IN_BOXES, "madvise", NC_IS(2, 12)), /* MADV_MERGEABLE */

	/* where pids are the host's: only itself, and no signal to everybody of the same user */
	NC_REFUSE(NC_IN_BARE, "kill", NC_IS(0, -1)),
	/* a descriptor that becomes ready signals its owner, who may be anybody of the same user */
	NC_REFUSE(NC_IN_BARE, "fcntl", NC_IS(1, 8)),  /* F_SETOWN */
	NC_REFUSE(NC_IN_BARE, "fcntl", NC_IS(1, 15)), /* F_SETOWN_EX */
	/* a terminal has an owner by itself: its foreground process group */
	NC_REFUSE(NC_IN_BARE, "fcntl", NC_IS(1, 4), NC_SET(2, NC_OPEN_ASYNC)), /* F_SETFL */
	NC_REFUSE(NC_IN_BARE, "ioctl", NC_IS(1, 0x5452)), /* FIOASYNC */
	/* of sockets: owners again, and interfaces of the host, which any socket tells about */
	NC_REFUSE(NC_IN_BARE, "ioctl", NC_FIELD(1, 0xffffff00U, 0x8900)),
	NC_ALLOW(NC_IN_BARE, "sched_setparam", NC_IS(0, 0)),
	NC_ALLOW(NC_IN_BARE, "sched_setscheduler", NC_IS(0, 0)),
	NC_ALLOW(NC_IN_BARE, "sched_setattr", NC_IS(0, 0)),
	NC_ALLOW(NC_IN_BARE, "sched_setaffinity", NC_IS(0, 0)),
	NC_ALLOW(NC_IN_BARE, "setpriority", NC_IS(0, 0), NC_IS(1, 0)), /* PRIO_PROCESS */
	NC_ALLOW(NC_IN_BARE, "ioprio_set", NC_IS(0, 1), NC_IS(1, 0)),  /* IOPRIO_WHO_PROCESS */

	/* the times of a file that it could open: without a path */
	NC_ALLOW(NC_IN_BARE | NC_IN_RECORDER, "utimensat", NC_FIELD(1, UINT64_MAX, 0)),

	/*
	 * Where the user may be the one who started Nacre: a set-user-id file would hand his
	 * rights to any accomplice on the host, after the box has ended.
	 */
	NC_REFUSE(NC_IN_SHARED, "chmod", NC_SET(1, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_SHARED, "chmod", NC_SET(1, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_SHARED, "fchmodat", NC_SET(2, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_SHARED, "fchmodat", NC_SET(2, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_SHARED, "?fchmodat2", NC_SET(2, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_SHARED, "?fchmodat2", NC_SET(2, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "fchmod", NC_SET(1, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "fchmod", NC_SET(1, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "creat", NC_SET(1, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "creat", NC_SET(1, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "mknod", NC_SET(1, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "mknod", NC_SET(1, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "mknodat", NC_SET(2, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "mknodat", NC_SET(2, NC_MODE_SGID)),
	/* without these flags the kernel ignores the mode, and callers leave anything there */
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "open", NC_SET(1, NC_OPEN_CREAT), NC_SET(2, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "open", NC_SET(1, NC_OPEN_CREAT), NC_SET(2, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "open", NC_SET(1, NC_OPEN_TMPFILE), NC_SET(2, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "open", NC_SET(1, NC_OPEN_TMPFILE), NC_SET(2, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "openat", NC_SET(2, NC_OPEN_CREAT), NC_SET(3, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "openat", NC_SET(2, NC_OPEN_CREAT), NC_SET(3, NC_MODE_SGID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "openat", NC_SET(2, NC_OPEN_TMPFILE), NC_SET(3, NC_MODE_SUID)),
	NC_REFUSE(NC_IN_BARE | NC_IN_SHARED, "openat", NC_SET(2, NC_OPEN_TMPFILE), NC_SET(3, NC_MODE_SGID)),

	/* the worker: its name, its own limits to read, terminals, no new code, no other owner */
	NC_ALLOW(NC_IN_WORKER, "prctl", NC_IS(0, 15)), /* PR_SET_NAME */
	NC_ALLOW(NC_IN_WORKER, "sched_setaffinity", NC_IS(0, 0)), /* its own */
	NC_ALLOW(NC_IN_WORKER, "prlimit64", NC_IS(0, 0), NC_FIELD(2, UINT64_MAX, 0)),
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5401)),     /* TCGETS */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5402)),     /* TCSETS */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5403)),     /* TCSETSW */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5404)),     /* TCSETSF */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x802c542a)), /* TCGETS2, of newer libcs */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x402c542b)), /* TCSETS2 */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x402c542c)), /* TCSETSW2 */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x402c542d)), /* TCSETSF2 */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5413)),     /* TIOCGWINSZ */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5414)),     /* TIOCSWINSZ */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x541b)),     /* FIONREAD */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5421)),     /* FIONBIO, as libuv wants it */
	NC_ALLOW(NC_IN_WORKER, "ioctl", NC_IS(1, 0x5451)),     /* FIOCLEX */
	/* its own, to step back; of the server a thread's */
	NC_ALLOW(NC_IN_ANALYST | NC_IN_SERVER, "setpriority", NC_IS(0, 0), NC_IS(1, 0)),
	NC_REFUSE(NC_IN_OURS, "mmap", NC_SET(2, NC_PROT_EXEC)),
	NC_REFUSE(NC_IN_OURS, "mprotect", NC_SET(2, NC_PROT_EXEC)),
	NC_REFUSE(NC_IN_OURS, "fcntl", NC_IS(1, 8)),	  /* F_SETOWN */
	NC_REFUSE(NC_IN_OURS, "fcntl", NC_IS(1, 15)),	  /* F_SETOWN_EX */
	NC_REFUSE(NC_IN_OURS, "fcntl", NC_IS(1, 1024)), /* F_SETLEASE */

	/* the courier: no other families than the net's */
	NC_ALLOW(NC_IN_COURIER, "socket", NC_IS(0, 2)),	  /* AF_INET */
	NC_ALLOW(NC_IN_COURIER, "socket", NC_IS(0, 10)),  /* AF_INET6 */
	NC_ALLOW(NC_IN_COURIER, "ioctl", NC_IS(1, 0x541b)), /* FIONREAD */
	/* between TLS and what is inside it; both ends are its own */
	NC_ALLOW(NC_IN_SERVER, "socketpair", NC_IS(0, 1)), /* AF_UNIX */

	/* the relay: in place of a terminal */
	NC_ALLOW(NC_IN_RELAY, "socketpair", NC_IS(0, 1), NC_FIELD(1, NC_SOCKET_TYPE, 1)),

	/* the egress: TCP, UDP for name servers, no delay and no pacing */
	NC_ALLOW(NC_IN_EGRESS, "socket", NC_SOCKET(2, 1, 0)),
	NC_ALLOW(NC_IN_EGRESS, "socket", NC_SOCKET(2, 2, 0)),
	NC_ALLOW(NC_IN_EGRESS, "socket", NC_SOCKET(10, 1, 0)),
	NC_ALLOW(NC_IN_EGRESS, "socket", NC_SOCKET(10, 2, 0)),
	NC_ALLOW(NC_IN_EGRESS, "setsockopt", NC_IS(1, 6), NC_IS(2, 1)), /* TCP_NODELAY */
	/* TCP_CONGESTION: no pacing on the loopback of a box; no algorithm is loaded for the unprivileged */
	NC_ALLOW(NC_IN_EGRESS, "setsockopt", NC_IS(1, 6), NC_IS(2, 13)),

	/* the spawner: a child leaves the keyring of the caller */
	NC_ALLOW(NC_IN_SPAWNER, "keyctl", NC_IS(0, 1)), /* KEYCTL_JOIN_SESSION_KEYRING */
};
/* clang-format on */

#endif
