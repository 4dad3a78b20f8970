/* Which language a program is written in. */
#ifndef NC_DETECT_H
#define NC_DETECT_H

#include <stddef.h>

#include "base/language.h"

struct nc_detection {
	enum nc_language language;
	char reason[256]; /* one sentence: "shebang names python3" */
};

/*
 * Tells the language by the ending of file_name (NULL: there is none), else by the first line "#!",
 * else by content. Any bytes are welcome. 0; -ENOENT: it could not be told, and should be named;
 * -ENOMEM.
 */
int nc_detect(const char *file_name, const char *code, size_t size, struct nc_detection *ret);

#endif
