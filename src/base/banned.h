/*
 * Functions that this code base does without, as compile errors. meson includes this header ahead
 * of every file of ours; it includes the headers that declare the functions first, so that the
 * macros never meet a declaration.
 */
#ifndef NC_BANNED_H
#define NC_BANNED_H

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NC_BANNED(name, instead) nc_banned_##name##_use_##instead

/* no bound on what they write */
#undef strcpy
#define strcpy(...) NC_BANNED(strcpy, nc_buf)
#undef strcat
#define strcat(...) NC_BANNED(strcat, nc_buf)
#undef stpcpy
#define stpcpy(...) NC_BANNED(stpcpy, nc_buf)
#undef sprintf
#define sprintf(...) NC_BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(...) NC_BANNED(vsprintf, vsnprintf)
/* may leave no NUL behind, or hide that it cut */
#undef strncpy
#define strncpy(...) NC_BANNED(strncpy, nc_buf)
#undef strncat
#define strncat(...) NC_BANNED(strncat, nc_buf)
/* hidden state */
#undef strtok
#define strtok(...) NC_BANNED(strtok, strchr)
#undef strerror
#define strerror(...) NC_BANNED(strerror, nc_err_errno)
/* no error reporting; nc_parse_* is strict */
#undef atoi
#define atoi(...) NC_BANNED(atoi, nc_parse)
#undef atol
#define atol(...) NC_BANNED(atol, nc_parse)
#undef atoll
#define atoll(...) NC_BANNED(atoll, nc_parse)
#undef atof
#define atof(...) NC_BANNED(atof, nc_parse)
/* a shell with our privileges */
#undef system
#define system(...) NC_BANNED(system, execve)
#undef popen
#define popen(...) NC_BANNED(popen, execve)
/* unbounded stack */
#undef alloca
#define alloca(...) NC_BANNED(alloca, malloc)
/* loses CLOEXEC and may land on 0, 1 or 2 */
#undef dup
#define dup(...) NC_BANNED(dup, nc_fd_dup)
/* a library must not end its caller: main returns, a forked child calls nc_child_exit */
#undef exit
#define exit(...) NC_BANNED(exit, return )
/* predictable */
#undef rand
#define rand(...) NC_BANNED(rand, nc_random)
#undef random
#define random(...) NC_BANNED(random, nc_random)
#undef mktemp
#define mktemp(...) NC_BANNED(mktemp, nc_path)

#endif
