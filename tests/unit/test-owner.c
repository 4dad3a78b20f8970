/* Shares: nobody takes what belongs to all, and there is always some left for the next. */
#include "unit.h"

#include "engine/owner.h"

/* So many tenants, each of which takes what it can get, in turn. */
static void fill(size_t tenants, size_t max, size_t *own)
{
	size_t all = 0;
	bool took = true;

	for (size_t i = 0; i < tenants; i++)
		own[i] = 0;
	while (took) {
		took = false;
		for (size_t i = 0; i < tenants; i++) {
			if (all >= max || !nc_share_allows(own[i], all, max))
				continue;
			own[i]++;
			all++;
			took = true;
		}
	}
	assert_true(all < max); /* some is left */
	assert_true(nc_share_allows(0, all, max));
}

static void test_shares(void **state)
{
	size_t own[8];

	(void)state;
	for (size_t tenants = 1; tenants <= 8; tenants++) {
		const size_t max = 2000, fair = 2 * max / (2 * tenants + 1);

		fill(tenants, max, own);
		for (size_t i = 0; i < tenants; i++)
			assert_in_range(own[i], fair - tenants, fair + tenants);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
