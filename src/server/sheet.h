/* A text that several replies and events share, however long it is, without copies. */
#ifndef NC_SHEET_H
#define NC_SHEET_H

#include <stddef.h>

#include "base/buf.h"

struct nc_sheet {
	unsigned int refs; /* all on the loop's thread */
	struct nc_buf text;
};

/* Takes over the text, also if there is no memory: NULL. */
struct nc_sheet *nc_sheet_new(struct nc_buf *text);
struct nc_sheet *nc_sheet_ref(struct nc_sheet *sheet);
void nc_sheet_unref(struct nc_sheet *sheet); /* accepts NULL */

#endif
