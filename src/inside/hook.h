/* The policy inside Python (python.c), for an interpreter that has it linked in. */
#ifndef NC_INSIDE_HOOK_H
#define NC_INSIDE_HOOK_H

/*
 * Adds the hook. *variable is "LD_PRELOAD=" with the path of the file that it is told by, which
 * goes, as does the variable from its list. Ends the process if that cannot be done.
 */
void nc_hook_begin(char **variable);

#endif
