/* Denials: the texts of all layers. */
#include "policy/denial.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/hooks.h"
#include "policy/rules.h"

/* Calls that are refused for the same reason. A name may stand in several: the first counts. */
struct group {
	const char *rule;
	unsigned int boxes; /* in which they are refused for this; 0: in all */
	const char *calls;  /* divided by blanks */
	const char *message, *allow_with, *instead;
};

#define ALONE (1U << NC_DENIAL_ALONE)
#define BARE (1U << NC_DENIAL_IN_PROCESS | ALONE)
#define TIER "the container tier: `tier`, --tier container"

/* clang-format off */
static const struct group groups[] = {
	/* what a process box has to refuse because it shares the host's world */
	{"new-processes", ALONE, "fork vfork clone",
		"A process box on this host cannot hold child processes, which could outlive it", TIER,
		"Do the work in one process; threads are allowed"},
	{"sockets", BARE, "socket connect bind listen accept accept4",
		"A process box has no network of its own, so that it may reach nobody", TIER,
		"Talk to your own children through pipes or socketpair"},
	{"files-by-path", BARE, "truncate chmod fchmodat fchmodat2 chown lchown fchownat setxattr lsetxattr "
		"removexattr lremovexattr setxattrat removexattrat utime utimes futimesat utimensat",
		"In a process box, changing a file by its path would reach every file of the user", TIER,
		"Open the file in the workspace and change it through the descriptor: fchmod, ftruncate, futimens"},
	{"watching-files", BARE, "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
		"In a process box, watching files would tell what others do with theirs", TIER,
		"Look at the files again from time to time (polling)"},
	{"ipc", BARE, "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open "
		"mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
		"In a process box, System V and POSIX message queues, semaphores and segments are the host's", TIER,
		"Use pipes, files in the workspace, or memory that threads share"},
	{"scheduling", BARE, "sched_setparam sched_setscheduler sched_setattr sched_setaffinity setpriority ioprio_set",
		"In a process box, only its own scheduling may be changed", TIER,
		"Change your own process only (pid 0), or leave it"},
	{"signals", BARE, "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal",
		"In a process box, a signal to everybody would reach the user's other processes", TIER,
		"Signal your own children by their numbers"},
	{"descriptor-owners", BARE, "fcntl ioctl",
		"This control of a descriptor reaches owners, terminals or network interfaces outside of the box", NULL,
		"Wait for descriptors with poll or epoll, and lock files with flock"},

	/* the walls themselves */
	{"namespaces", 0, "unshare setns clone clone3",
		"A namespace gives all privileges in a new world of kernel code", NULL,
		"Run the work directly: the box already is a world of its own; drop unshare, CLONE_NEW* and tools such as "
		"bwrap, docker or chrome's sandbox (--no-sandbox)"},
	{"mounts", 0, "mount umount2 umount pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount "
		"fspick mount_setattr statmount listmount",
		"Mounts and the root are the walls of the box", "a directory of the host: --bind SOURCE[:TARGET] (nacre exec)",
		"Put files below the workspace or /tmp; give input as `files`, --file"},
	{"other-processes", 0, "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp "
		"get_robust_list",
		"Looking into or controlling another process could reach what holds the box", NULL,
		"Print or log what you want to see, or use the language's own debugger inside one process (pdb, faulthandler)"},
	{"file-handles", 0, "open_by_handle_at name_to_handle_at",
		"A file handle opens files past every directory above them", NULL, "Open files by their paths"},
	{"kernel-programs", 0, "bpf perf_event_open",
		"Programs in the kernel and events of the machine tell about, and reach, everybody on it", NULL,
		"Measure with clocks and getrusage inside the program"},
	{"page-faults", 0, "userfaultfd",
		"Page faults that are held up at will are the tool of attacks on the kernel", NULL,
		"Use ordinary memory and mprotect with a signal handler"},
	{"io-uring", 0, "io_uring_setup io_uring_enter io_uring_register",
		"io_uring makes system calls that no filter sees", NULL,
		"Use read, write and epoll; most libraries, and Node, do without by themselves"},
	{"aio", 0, "io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy",
		"Contexts for asynchronous I/O come from one pool of the whole host", NULL,
		"Use ordinary reads and writes, in threads if need be"},
	{"keyrings", 0, "add_key request_key keyctl",
		"The kernel's keyrings outlive the box", NULL, "Keep secrets in memory or in files of the workspace"},
	{"kernel-modules", 0, "init_module finit_module delete_module kexec_load kexec_file_load reboot create_module "
		"query_module get_kernel_syms",
		"This changes or restarts the kernel of the host", NULL, "Remove it"},
	{"administration", 0, "swapon swapoff acct quotactl quotactl_fd iopl ioperm syslog vhangup",
		"This administers the machine", NULL, "Remove it; nothing inside a box needs it"},
	{"host-name", 0, "sethostname setdomainname",
		"The name of the host is fixed", NULL, "Leave it; the box has a name of its own"},
	{"host-clock", 0, "settimeofday clock_settime clock_adjtime adjtimex",
		"The clock belongs to the host", NULL, "Fake time inside the program, for example with libfaketime or freezegun"},
	{"sync", 0, "sync syncfs",
		"This would write out every file system of the host", NULL, "Call fsync on your own files; nothing outlives a box"},
	{"watching-others", 0, "fanotify_init fanotify_mark",
		"This watches the files of everybody on the machine", NULL, "Use inotify on your own files"},
	{"placing-pages", 0, "mbind set_mempolicy_home_node migrate_pages move_pages remap_file_pages memfd_secret vmsplice "
		"cachestat",
		"Special treatment of memory pages is seldom needed and often broken", NULL, "Use ordinary memory and files"},
	{"security-modules", 0, "lsm_get_self_attr lsm_set_self_attr lsm_list_modules file_getattr file_setattr",
		"This asks for, or changes, security attributes of the host", NULL, "Leave it"},
	{"obsolete", 0, "modify_ldt set_thread_area get_thread_area lookup_dcookie nfsservctl uselib ustat sysfs _sysctl "
		"getpmsg putpmsg afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old",
		"This is for old or 16-bit and 32-bit programs, which cannot run here", NULL, "Build the program for 64 bits"},

	/* refused by their arguments */
	{"socket-families", 0, "socket socketpair",
		"Sockets are TCP, UDP and unix ones; this is another family, or a raw one", NULL,
		"Use TCP, UDP or unix sockets; without raw sockets, test a service by connecting to it instead of by ping"},
	{"socket-options", 0, "setsockopt",
		"This option puts protocols or programs into the kernel", NULL, "Leave the option out"},
	{"personality", 0, "personality",
		"This switches address randomisation off, or changes how the kernel treats the program", NULL,
		"Run it as it is (without setarch -R)"},
	{"set-user-id", 0, "chmod fchmod fchmodat fchmodat2 creat open openat mknod mknodat",
		"This makes a device, or a file with the set-user-ID or set-group-ID bit, with which others get rights", NULL,
		"Use plain permissions such as 0644 and 0755"},
	{"terminals-and-file-flags", 0, "ioctl",
		"This control types into terminals, or sets flags, keys or subvolumes of file systems", NULL,
		"Leave it; ordinary files need none of these"},
	{"leases", 0, "fcntl",
		"A lease on a file holds up whoever opens it", NULL, "Lock the file with flock or fcntl locks"},
	{"huge-pages", 0, "mmap memfd_create shmget madvise",
		"Huge and merged pages are not charged to the box", NULL, "Leave out MAP_HUGETLB, MFD_HUGETLB and MADV_MERGEABLE"},
	{"limits-of-processes", 0, "prlimit64 setrlimit",
		"The limit of core files is fixed, and so are those of other processes", NULL, "Change other limits, of your own process"},
	{"filters", 0, "seccomp",
		"A filter that hands calls to a listener could answer for the kernel", NULL,
		"Load a filter without SECCOMP_FILTER_FLAG_NEW_LISTENER"},
	{"process-control", 0, "prctl",
		"This control of the process is not among those that programs need", NULL, "Leave it out"},
};
/* clang-format on */

static const struct group other = {"other", 0, "",
	"This system call, with these arguments, is not allowed in a box", NULL, "Do without it"};

static const struct group *find_group(const char *call, enum nc_denial_box box)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if ((groups[i].boxes == 0 || groups[i].boxes & 1U << box) &&
			nc_text_has_word(groups[i].calls, ' ', call))
			return &groups[i];
	return &other;
}

static void set_id(struct nc_denial *denial, const char *layer, const char *name)
{
	denial->layer = layer;
	(void)snprintf(denial->id, sizeof(denial->id), "%s.%s", layer, name);
}

void nc_denial_of_call(
	const char *call, enum nc_denial_box box, uint64_t count, struct nc_denial *ret_denial)
{
	const struct group *group = find_group(call, box);

	*ret_denial = (struct nc_denial){.rule = group->rule,
		.object = call,
		.count = count,
		.message = group->message,
		.allow_with = group->allow_with,
		.instead = group->instead};
	set_id(ret_denial, "seccomp", call);
}

void nc_denial_of_limit(enum nc_denial_limit limit, uint64_t count, struct nc_denial *ret_denial)
{
	static const struct {
		const char *name, *object, *message, *allow_with, *instead;
	} texts[NC_DENIAL_LIMIT_MAX] = {
		[NC_DENIAL_MEMORY] = {"memory", "memory",
			"It needed more memory than it may have (`limits.memory_mb`)",
			"`limits.memory_mb`, --memory",
			"Work on parts of the data: read and write in pieces, free what is done "
			"with"},
		[NC_DENIAL_PIDS] = {"pids", "processes",
			"It started more processes and threads at once than it may "
			"(`limits.max_processes`)",
			"`limits.max_processes`, --pids",
			"Use fewer workers, and wait for those that are done"},
		[NC_DENIAL_DISK] = {"disk", "disk",
			"It wrote more than its disk holds (`limits.disk_mb`)",
			"`limits.disk_mb`, --disk",
			"Delete what is done with, compress, or keep it in memory"},
		[NC_DENIAL_INODES] = {"inodes", "files and directories",
			"It made more files and directories than its disk may hold "
			"(`limits.inodes`)",
			"`limits.inodes`, --inodes", "Put many small things into few files"},
		[NC_DENIAL_FILES] = {"files", "open files",
			"It had more files open at once than it may (`limits.open_files`)",
			"`limits.open_files`, --files",
			"Close files as soon as they are done with"},
		[NC_DENIAL_WALL] = {"wall_time", "wall time",
			"It took longer than its wall time (`timeout`)", "`timeout`, --timeout",
			"Do less at once, print what is done so far, and do not wait for input or "
			"a network that is not there"},
		[NC_DENIAL_CPU] = {"cpu_time", "CPU time",
			"It used up its CPU time (`limits.cpu_time_seconds`)",
			"`limits.cpu_time_seconds`, --cpu-time",
			"Use a faster algorithm, and sleep instead of looking again and again"},
		[NC_DENIAL_OUTPUT] = {"output", "output",
			"It printed more than it may (`limits.output_bytes`)",
			"`limits.output_bytes`, --output",
			"Print a summary, write the rest to a file and `capture` it"},
	};

	assert(limit >= 0 && limit < NC_DENIAL_LIMIT_MAX);
	*ret_denial = (struct nc_denial){.rule = texts[limit].name,
		.object = texts[limit].object,
		.count = count,
		.message = texts[limit].message,
		.allow_with = texts[limit].allow_with,
		.instead = texts[limit].instead};
	set_id(ret_denial, "limit", texts[limit].name);
}

void nc_denial_of_finding(const struct nc_finding *finding, struct nc_denial *ret_denial)
{
	*ret_denial = (struct nc_denial){.rule = finding->rule,
		.object = finding->object,
		.line = finding->line,
		.count = 1,
		.message = finding->why,
		.allow_with = "another policy: `policy`, --policy",
		.instead = finding->remedy};
	set_id(ret_denial, "static", finding->rule);
}

void nc_denial_of_hook(const struct nc_hook_record *record, struct nc_denial *ret_denial)
{
	const struct nc_rule_text *rule = &nc_rules[record->rule];

	*ret_denial = (struct nc_denial){.rule = rule->id,
		.object = record->object,
		.line = record->line,
		.count = record->count,
		.message = rule->why,
		.allow_with = "another policy: `policy`, --policy",
		.instead = rule->remedy};
	set_id(ret_denial, "language", rule->id);
}

void nc_denial_of_risk(enum nc_severity risk, struct nc_denial *ret_denial)
{
	*ret_denial = (struct nc_denial){.rule = "risk",
		.object = nc_severity_names[risk],
		.count = 1,
		.message = "Its findings together come to a risk that the policy refuses",
		.allow_with = "another policy: `policy`, --policy",
		.instead = "Do without some of what the findings name"};
	set_id(ret_denial, "static", "risk");
}

void nc_denial_of_variable(const char *name, const char *reason, struct nc_denial *ret_denial)
{
	*ret_denial = (struct nc_denial){.rule = "variable",
		.object = name,
		.count = 1,
		.message = reason,
		.allow_with = "a policy that does not enforce hooks: `policy`, --policy",
		.instead = "Leave it out; pass values under a name of your own, as `args` or as "
			   "`inputs`"};
	set_id(ret_denial, "request", "variable");
}

void nc_denial_of_request(
	enum nc_denial_request what, const char *object, struct nc_denial *ret_denial)
{
	static const struct {
		const char *name, *message, *allow_with, *instead;
	} texts[NC_DENIAL_REQUEST_MAX] = {
		[NC_DENIAL_NETWORK] = {"network", "The policy allows no way there",
			"the host by name in network.allow of the policy",
			"Pass the data in as `files` or `inputs`, and leave network_access false"},
		[NC_DENIAL_CEILING] = {"ceiling", "This is more than the policy allows",
			"another policy: `policy`, --policy",
			"Ask for less, or leave the limit out to get what there is"},
		[NC_DENIAL_FLOOR] = {"floor",
			"This host cannot hold a box as strongly as is wanted (see: nacre doctor)",
			"a stronger host, or a policy with a lower floor",
			"Use another tier, or leave out the limit that cannot be held here"},
	};

	assert(what >= 0 && what < NC_DENIAL_REQUEST_MAX);
	*ret_denial = (struct nc_denial){.rule = texts[what].name,
		.object = object,
		.count = 1,
		.message = texts[what].message,
		.allow_with = texts[what].allow_with,
		.instead = texts[what].instead};
	set_id(ret_denial, "request", texts[what].name);
}
