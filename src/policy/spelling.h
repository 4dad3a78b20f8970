/* Names that a language takes for others: how they are spelled plainly. */
#ifndef NC_SPELLING_H
#define NC_SPELLING_H

#include <stddef.h>

/*
 * Writes the name as plain letters to out, which holds size bytes, and returns how many these are;
 * 0: it is as plain as can be. It never gets longer.
 *
 * Python takes identifiers for the same that are equal after normalisation (NFKC).
 */
size_t nc_spell_python(const char *name, size_t size, char *out);

/* JavaScript allows escapes in identifiers: \u0065val is eval. */
size_t nc_spell_javascript(const char *name, size_t size, char *out);

#endif
