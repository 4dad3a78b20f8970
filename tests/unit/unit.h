/* What every unit test needs: cmocka with the headers that it forgets, and honest skips. */
#ifndef NC_UNIT_H
#define NC_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Skips the running test, or fails it where NACRE_TESTS_MUST_RUN=1 is set. Does not return. */
#define unit_skip(reason)                                                                          \
	do {                                                                                       \
		const char *_must = getenv("NACRE_TESTS_MUST_RUN");                                \
		if (_must && _must[0] == '1')                                                      \
			fail_msg("must run, but: %s", reason);                                     \
		print_message("skipped: %s\n", reason);                                            \
		skip();                                                                            \
	} while (0)

#define unit_count(array) (sizeof(array) / sizeof((array)[0]))

#endif
