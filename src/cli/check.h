/* What a policy says about programs: nacre check, and nacre policy test. */
#ifndef NC_CHECK_H
#define NC_CHECK_H

#include "cli/cli.h"

struct nc_check {
	const char *policy; /* a name or a file; NULL: the usual one */
	const char *tenant; /* NULL: nobody in particular */
	const char *lang;   /* NULL: told from the names */
	bool json, sarif;
};

/* Reads and judges the files, and prints that. An enum nc_exit, or a negative errno. */
int nc_check_files(const struct nc_cli *cli, const struct nc_check *check, int n_words,
	char **words, struct nacre_err *err);

#endif
