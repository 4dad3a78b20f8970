/* Commands: a program with its words, wherever they were found. */
#ifndef NC_COMMAND_H
#define NC_COMMAND_H

#include "policy/scan.h"

/* A command: the numbers of the data of its words, 0 for those that cannot be told. */
struct nc_command {
	uint32_t words[NC_ARGUMENTS_MAX];
	uint32_t count;
	bool more; /* there are words that did not fit */
};

void nc_command_add(struct nc_command *command, uint32_t word);

/*
 * Takes away what stands in front of the program that runs in the end: env, nohup, busybox and so
 * on. Returns the program's name without its path, or NULL if it cannot be told; *ret_size is its
 * size. What is taken away is not judged.
 */
const char *nc_command_program(
	const struct nc_scan *scan, struct nc_command *command, size_t *ret_size);

/* Judges a command, with everything in front of it. */
void nc_command_judge(struct nc_scan *scan, uint32_t node, const struct nc_command *command);

/* The language that a program interprets; NC_LANGUAGE_INVALID: none that we know. */
enum nc_language nc_command_interprets(const char *program, size_t size);

/* Whether a program, such as sh or perl, runs code that it is given. */
bool nc_command_is_interpreter(const char *program, size_t size);

/* Whether a program fetches something from the network. */
bool nc_command_downloads(const char *program, size_t size);

/* Whether an interpreter is called without a script, so that it reads one from its input. */
bool nc_command_reads_input(const struct nc_scan *scan, const struct nc_command *command);

#endif
