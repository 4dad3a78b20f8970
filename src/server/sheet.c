/* A text that several replies and events share. */
#include "server/sheet.h"

#include <assert.h>
#include <stdlib.h>

struct nc_sheet *nc_sheet_new(struct nc_buf *text)
{
	struct nc_sheet *sheet = text->error < 0 ? NULL : calloc(1, sizeof(*sheet));

	if (!sheet) {
		nc_buf_done(text);
		return NULL;
	}
	sheet->refs = 1;
	sheet->text = *text;
	*text = (struct nc_buf)NC_BUF(text->max);
	return sheet;
}

struct nc_sheet *nc_sheet_ref(struct nc_sheet *sheet)
{
	assert(sheet->refs > 0);
	sheet->refs++;
	return sheet;
}

void nc_sheet_unref(struct nc_sheet *sheet)
{
	if (!sheet || --sheet->refs > 0)
		return;
	nc_buf_done(&sheet->text);
	free(sheet);
}
