/* Much memory at once, in huge pages where the kernel has them: 1 MiB of source takes 30 of it. */
#ifndef NC_PAGES_H
#define NC_PAGES_H

#include <stddef.h>

#define NC_PAGES_HUGE ((size_t)2 * 1024 * 1024)

/* As malloc(); what is at least one huge page is made of such. Given back with free(). */
void *nc_pages_alloc(size_t size);

#endif
