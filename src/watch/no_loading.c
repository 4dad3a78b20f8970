/*
 * Nothing is loaded into nacre. Debian's SQLite can load extensions from shared objects; a static
 * program has no loader that could, and the linker warns about the call. It is told to put this
 * function in its place (--wrap): no extension is ever asked for, and none could be had.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode);

void *__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}
