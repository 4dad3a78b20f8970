/*
 * What the engine and the hook inside an interpreter say to each other (src/policy/hooks.h,
 * src/inside/python.c).
 *
 * To the hook: the shared object is one file with what the policy says behind it, so that nothing
 * has to stand in the environment. The text has a line for the token, one for each directory that
 * the program may write ("W", path), and one for each row, all fields with a tab between them:
 *
 *	kind, verdict, depth, name, rule, text
 *
 * From the hook: records in the stream of errors, each in one write of at most NC_HOOK_RECORD_MAX
 * bytes, which begin with a mark and the token, and end with a newline:
 *
 *	verdict, count, line, rule, object, file
 *
 * What comes from there is hostile: a program that runs machine code can read the token.
 */
#ifndef NC_HOOKWIRE_H
#define NC_HOOKWIRE_H

#include <stdint.h>

#define NC_HOOK_TOKEN_SIZE 32U /* hexadecimal digits */
#define NC_HOOK_MARK '\x1e'    /* then the token */
#define NC_HOOK_RECORD_MAX 512U
#define NC_HOOK_FIELD_MAX 120U /* of an object or a file name */
#define NC_HOOK_MAGIC "nacrehk1"
#define NC_HOOK_MAGIC_BYTES                                                                        \
	{                                                                                          \
		'n', 'a', 'c', 'r', 'e', 'h', 'k', '1'                                             \
	}

/* The last bytes of the file. */
struct nc_hook_trailer {
	char magic[8];
	uint32_t size; /* of the text in front of it */
	uint32_t zero;
};

/* Kinds of rows. */
#define NC_HOOK_EVENT 'E'    /* an audit event; a name may end in an asterisk */
#define NC_HOOK_IMPORT 'I'   /* a module, with all in it */
#define NC_HOOK_ALLOWED 'A'  /* a module; if there are any, all others are meant */
#define NC_HOOK_FUNCTION 'F' /* eval, exec or compile */
#define NC_HOOK_MEMORY 'M'   /* the memory of a process is opened; any name */
#define NC_HOOK_NATIVE 'N'   /* an extension module of the program's own; any name */
#define NC_HOOK_OPEN 'O'     /* a file with this in its path is opened */
#define NC_HOOK_WRITABLE 'W' /* no row: a directory */

#define NC_HOOK_REFUSE '!'
#define NC_HOOK_NOTICE '?'

/* Whose doing it has to be. */
#define NC_HOOK_ANYBODY 'a' /* also what a library does for the program */
#define NC_HOOK_PROGRAM 'p' /* the program calls it, or the module of that event for it */

#endif
