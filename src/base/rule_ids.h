/*
 * The rules of the analysis, and the signals of the threat detector, by name: policy files name
 * them and src/policy judges by them, so that they stand where both can see them. What each means
 * is in src/policy/rules.c and threat.c.
 */
#ifndef NC_RULE_IDS_H
#define NC_RULE_IDS_H

/* clang-format off */
#define NC_RULE_IDS(X) \
	/* about the text itself */ \
	X(CUT_SHORT, "analysis.cut-short") \
	X(PARSE, "analysis.parse") \
	X(BIDI, "analysis.hidden-text") \
	/* code from text */ \
	X(EVAL, "code.eval") \
	X(EVAL_DECODED, "code.eval-decoded") \
	X(COMPILE, "code.compile") \
	X(DESERIALISE, "code.deserialise") \
	X(DYNAMIC_IMPORT, "code.dynamic-import") \
	X(HIDDEN_NAME, "code.hidden-name") \
	X(REFLECT, "code.reflect") \
	X(INTROSPECT, "code.introspect") \
	X(BUILTINS, "code.builtins") \
	/* out of the language */ \
	X(NATIVE, "native.call") \
	X(UNSAFE, "native.unsafe") \
	X(SYSCALL, "native.syscall") \
	/* processes */ \
	X(RUN, "process.run") \
	X(RUN_UNKNOWN, "process.run-unknown") \
	X(SHELL, "process.shell") \
	X(DOWNLOAD_AND_RUN, "process.download-and-run") \
	X(PIPE_TO_INTERPRETER, "process.pipe-to-interpreter") \
	X(REVERSE_SHELL, "process.reverse-shell") \
	X(FORK, "process.fork") \
	X(FORK_BOMB, "process.fork-bomb") \
	X(KILL, "process.kill") \
	X(KILL_ALL, "process.kill-all") \
	X(TRACE, "process.trace") \
	/* files */ \
	X(DELETE, "file.delete") \
	X(DESTROY, "file.destroy") \
	X(PERMISSIONS, "file.permissions") \
	X(SETUID_BIT, "file.setuid") \
	X(CREDENTIALS, "file.credentials") \
	X(ACCOUNTS, "file.accounts") \
	X(ENVIRONMENT, "file.environment") \
	X(PERSIST, "file.persist") \
	X(SYSTEM_WRITE, "file.system-write") \
	X(DEVICE, "file.device") \
	X(ESCAPE, "file.escape") \
	/* network */ \
	X(NETWORK, "network.connect") \
	X(LISTEN, "network.listen") \
	X(RAW_SOCKET, "network.raw") \
	X(METADATA, "network.metadata") \
	X(REMOTE_ACCESS, "network.remote-access") \
	X(MINER, "network.miner") \
	X(EXFILTRATE, "network.exfiltrate") \
	/* the system */ \
	X(PRIVILEGE, "system.privilege") \
	X(ADMIN, "system.admin") \
	X(KERNEL_MODULE, "system.kernel-module") \
	X(COVER_TRACKS, "system.cover-tracks") \
	X(PACKAGES, "system.packages") \
	/* the lists of security_policies.yaml */ \
	X(LIST_IMPORT, "policy.import") \
	X(LIST_FUNCTION, "policy.function") \
	X(LIST_COMMAND, "policy.command") \
	X(LIST_PATTERN, "policy.pattern")
/* clang-format on */

enum nc_rule_id {
	NC_RULE_NONE,
#define NC_RULE_MEMBER(name, id) NC_RULE_##name,
	NC_RULE_IDS(NC_RULE_MEMBER)
#undef NC_RULE_MEMBER
		NC_RULE_MAX,
};

/* What the threat detector counts; thresholds in policy files are named so. */
/* clang-format off */
#define NC_SIGNAL_IDS(X) \
	X(WALL_CALLS, "wall_calls") /* refused system calls against what holds the box */ \
	X(WALL_KINDS, "wall_kinds") /* the same, by kinds */ \
	X(REFUSED_CALLS, "refused_calls") \
	X(PROCESSES_REFUSED, "processes_refused") \
	X(MEMORY_KILLS, "memory_kills") \
	X(LIMITS_HIT, "limits_hit") /* different ones */ \
	X(OUTPUT_RATE, "output_mb_per_second") \
	X(WRITE_RATE, "written_mb_per_second") \
	X(SWITCH_RATE, "context_switches_per_second") \
	X(CPU_SECONDS, "cpu_seconds") \
	X(MEMORY_RATE, "memory_mb_per_second") \
	X(FORK_RATE, "forks_per_second") \
	/* what the hook inside of the interpreter told */ \
	X(LANGUAGE_REFUSALS, "language_refusals") \
	X(START_RATE, "programs_per_second") \
	X(SECRETS_PROBED, "secrets_probed") /* different places */ \
	X(DECOYS_TOUCHED, "decoys_touched") /* files that are there for that alone */
/* clang-format on */

enum nc_signal {
#define NC_SIGNAL_MEMBER(name, id) NC_SIGNAL_##name,
	NC_SIGNAL_IDS(NC_SIGNAL_MEMBER)
#undef NC_SIGNAL_MEMBER
		NC_SIGNAL_MAX,
};

#endif
