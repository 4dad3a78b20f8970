/* The table of rules. Severities follow the comments of enum nc_severity. */
#include "policy/rules.h"

#define LOW NC_SEVERITY_LOW
#define MEDIUM NC_SEVERITY_MEDIUM
#define HIGH NC_SEVERITY_HIGH
#define CRITICAL NC_SEVERITY_CRITICAL

#define RULE(name, level, reason, instead)                                                         \
	[NC_RULE_##name].severity = (level), [NC_RULE_##name].why = (reason),                      \
	[NC_RULE_##name].remedy = (instead)
#define ID(name, text) [NC_RULE_##name].id = (text),

const struct nc_rule_text nc_rules[NC_RULE_MAX] = {
	RULE(CUT_SHORT, CRITICAL, "The analysis was cut short, so that the rest may do anything",
		"Make the program smaller or less nested; 1 MiB of ordinary code is understood"),
	RULE(PARSE, MEDIUM, "Does not parse, so that it was understood only in part",
		"Correct the syntax, or name the right language with --lang"),
	RULE(BIDI, HIGH, "Contains characters that make code look different from what it is",
		"Remove the bidirectional control characters"),

	RULE(EVAL, MEDIUM, "Runs text as code",
		"Call the function itself; for data use a parser such as json or ast.literal_eval"),
	RULE(EVAL_DECODED, HIGH, "Decodes hidden text and runs it", "Write the code as it is"),
	RULE(COMPILE, LOW, "Compiles text to code", "Write the code as it is"),
	RULE(DESERIALISE, MEDIUM, "Reads a format that can run code while it is read",
		"Use json, or a loader that makes plain data only"),
	RULE(DYNAMIC_IMPORT, MEDIUM, "Imports a module whose name cannot be told",
		"Import modules by their names"),
	RULE(HIDDEN_NAME, HIGH, "Puts the name of a function or module together to hide it",
		"Write the name as it is"),
	RULE(REFLECT, MEDIUM, "Takes a member of a module by a name that cannot be told",
		"Write the name as it is, or choose from a table of functions"),
	RULE(INTROSPECT, HIGH, "Reaches for what the interpreter hides",
		"Import what you need; the interpreter's own objects are not needed"),
	RULE(BUILTINS, MEDIUM, "Takes functions from the interpreter's tables of names",
		"Call the function by its name"),

	RULE(NATIVE, MEDIUM, "Calls machine code outside of the language",
		"Use the language's own library"),
	RULE(UNSAFE, LOW, "Leaves the safety of the language", "Use the safe form"),
	RULE(SYSCALL, HIGH, "Makes system calls by number", "Use the language's own library"),

	RULE(RUN, LOW, "Starts a program", "Use a library where there is one"),
	RULE(RUN_UNKNOWN, MEDIUM, "Starts a program whose name cannot be told",
		"Write the program's name as it is, and pass arguments as a list"),
	RULE(SHELL, MEDIUM, "Gives text to a shell",
		"Start the program itself with a list of arguments"),
	RULE(DOWNLOAD_AND_RUN, HIGH, "Downloads a program and runs it unseen",
		"Download to a file, check its digest, then run it"),
	RULE(PIPE_TO_INTERPRETER, HIGH, "Gives an interpreter code that cannot be told",
		"Write the code to a file that can be read first"),
	RULE(REVERSE_SHELL, CRITICAL, "Gives a shell to somebody on the network", "Remove it"),
	RULE(FORK, LOW, "Makes copies of its process", "Use a pool of a fixed size"),
	RULE(FORK_BOMB, CRITICAL, "Makes processes without end",
		"Remove it, or make a fixed number"),
	RULE(KILL, LOW, "Sends signals to processes",
		"End your own children through their handles"),
	RULE(KILL_ALL, HIGH, "Ends every process that it can reach",
		"End your own children through their handles"),
	RULE(TRACE, HIGH, "Looks into or controls another process", "Debug outside of the box"),

	RULE(DELETE, LOW, "Deletes a tree of files", "Name the files, below the working directory"),
	RULE(DESTROY, CRITICAL, "Destroys a file system or all files of a user",
		"Name what is to be deleted, below the working directory"),
	RULE(PERMISSIONS, LOW, "Changes owners or permissions",
		"Make files with the right permissions"),
	RULE(SETUID_BIT, HIGH, "Makes a program that runs with another user's rights", "Remove it"),
	RULE(CREDENTIALS, HIGH, "Reaches for keys or passwords", "Take what is needed as an input"),
	RULE(ACCOUNTS, LOW, "Reads the list of users", "Remove it"),
	RULE(ENVIRONMENT, MEDIUM, "Reads the environment or memory of processes",
		"Read the variables by their names"),
	RULE(PERSIST, HIGH, "Writes where programs are started from later",
		"Nothing outlives a box; start what is needed from the program"),
	RULE(SYSTEM_WRITE, MEDIUM, "Writes files of the system",
		"Write below the working directory or /tmp"),
	RULE(DEVICE, HIGH, "Reaches for a device of the machine", "Use ordinary files"),
	RULE(ESCAPE, CRITICAL, "Reaches for what leads out of a container", "Remove it"),

	RULE(NETWORK, LOW, "Talks to the network",
		"Pass the data as an input, or allow the host by name"),
	RULE(LISTEN, LOW, "Waits for connections", "Listen on the loopback address only"),
	RULE(RAW_SOCKET, MEDIUM, "Makes or reads network packets by itself",
		"Use ordinary connections"),
	RULE(METADATA, HIGH, "Asks the cloud's metadata service, which hands out keys",
		"Take what is needed as an input"),
	RULE(REMOTE_ACCESS, MEDIUM, "Opens a session or tunnel to another machine",
		"Pass the data as an input"),
	RULE(MINER, CRITICAL, "Mines a cryptocurrency", "Remove it"),
	RULE(EXFILTRATE, CRITICAL, "Reads keys or passwords and talks to the network",
		"Do one or the other, and take keys as an input"),

	RULE(PRIVILEGE, HIGH, "Asks for more rights", "Nothing inside a box needs root; remove it"),
	RULE(ADMIN, HIGH, "Administers the machine", "Remove it"),
	RULE(KERNEL_MODULE, CRITICAL, "Changes the kernel", "Remove it"),
	RULE(COVER_TRACKS, HIGH, "Deletes logs or history", "Remove it"),
	RULE(PACKAGES, LOW, "Installs packages",
		"Name packages in the request; they are installed outside of the box"),

	RULE(LIST_IMPORT, MEDIUM, "The policy forbids this import",
		"Do without it, or ask for a policy that allows it"),
	RULE(LIST_FUNCTION, MEDIUM, "The policy forbids this function",
		"Do without it, or ask for a policy that allows it"),
	RULE(LIST_COMMAND, MEDIUM, "The policy forbids this command",
		"Do without it, or ask for a policy that allows it"),
	RULE(LIST_PATTERN, MEDIUM, "The policy forbids this pattern",
		"Do without it, or ask for a policy that allows it"),

	NC_RULE_IDS(ID)};

const struct nc_rule_text *nc_policy_rule(size_t index)
{
	/* number 0 is no rule */
	return index + 1 < NC_RULE_MAX ? &nc_rules[index + 1] : NULL;
}
