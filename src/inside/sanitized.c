/*
 * In builds with AddressSanitizer alone: what its run-time must not try in a box, where
 * setrlimit(RLIMIT_CORE) and ptrace() are refused.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "disable_coredump=0:detect_leaks=0";
}
