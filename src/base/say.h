/*
 * What we print for people. Part of it comes from strangers: programs, their files, daemons,
 * archives. Their control characters could move the cursor, retitle the window or type for the
 * user, so that no byte of them reaches a terminal, whoever reads it first. What a program that
 * runs prints itself is passed through elsewhere, and is not touched.
 */
#ifndef NC_SAY_H
#define NC_SAY_H

#include <stdio.h>

/*
 * Prints size bytes of a stranger's: control characters but newline and tab, marks that turn the
 * direction of writing, and bytes that are not UTF-8 become \xNN.
 */
void nc_show(FILE *out, const char *data, size_t size);

/* The same, and newlines too: a stranger does not begin a line of ours. */
void nc_show_line(FILE *out, const char *data, size_t size);

/* printf() whose whole outcome is printed so. Colours and the like are printed beside it. */
void nc_say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
