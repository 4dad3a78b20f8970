/* Why something was let through the door, or not. */
#include "egress/reason.h"

#include <assert.h>

static const struct {
	const char *id, *text, *remedy;
} reasons[] = {
#define X(name, id, matter, help) [NC_REASON_##name] = {id, matter, help},
	NC_REASONS(X)
#undef X
};

const char *nc_reason_id(enum nc_reason reason)
{
	assert(reason < NC_REASON_MAX);
	return reasons[reason].id;
}

const char *nc_reason_text(enum nc_reason reason)
{
	assert(reason < NC_REASON_MAX);
	return reasons[reason].text;
}

const char *nc_reason_remedy(enum nc_reason reason)
{
	assert(reason < NC_REASON_MAX);
	return reasons[reason].remedy;
}
