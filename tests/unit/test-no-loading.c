/* Nothing can be loaded into nacre, which is linked as this test is. */
#include <dlfcn.h>

#include "unit.h"

void *__real_dlopen(const char *file, int mode);

static void a_library_is_not_loaded(void **state)
{
	(void)state;
	assert_non_null(__real_dlopen("libc.so.6", RTLD_NOW)); /* which is there */
	assert_null(dlopen("libc.so.6", RTLD_NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_library_is_not_loaded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
