/* What a box of plain processes can do, and what it is held by: next to nothing, and it says so. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

void plain_make_terms(struct nc_tier_terms *terms)
{
	/* for tests of those who ask for more: what it says then is not true */
	const char *claims = getenv("NACRE_PLAIN_CLAIMS");

	*terms = (struct nc_tier_terms){.here = true, .stops = true, .shares = true};
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		terms->grades[i] =
			claims && strcmp(claims, "all") == 0 ? NC_GRADE_FULL : NC_GRADE_NONE;
}
