/* Where the zygote's Python keeps its small objects: together, and in large pages at the end. */
#ifndef NC_INSIDE_ARENA_H
#define NC_INSIDE_ARENA_H

/* Before Python is initialised. */
void nc_arena_begin(void);

/* When all that children shall share is there. What is allocated from now on is as always. */
void nc_arena_settle(void);

#endif
