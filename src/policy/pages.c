/* Much memory at once, in huge pages where the kernel has them. */
#include "policy/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *nc_pages_alloc(size_t size)
{
	void *memory;

	if (size < NC_PAGES_HUGE || size > SIZE_MAX - NC_PAGES_HUGE)
		return malloc(size);
	size = (size + NC_PAGES_HUGE - 1) / NC_PAGES_HUGE * NC_PAGES_HUGE;
	memory = aligned_alloc(NC_PAGES_HUGE, size);
	/* a kernel without them has ordinary pages, which are as good but for the time they take */
	if (memory)
		(void)madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}
