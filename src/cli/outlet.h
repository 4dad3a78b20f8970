/* Starting nacre-egress for a verb that executes. */
#ifndef NC_OUTLET_H
#define NC_OUTLET_H

/* The worker's end of its socket, or -errno, said: then boxes have no network. */
int nc_outlet_start(void (*say)(const char *text));

/* Reads what this host trusts, for a worker that did not start it. */
void nc_outlet_read_trusted(void);

/* The certificates that this host trusts, as they were then; "": none. */
const char *nc_outlet_trusted(void);

#endif
