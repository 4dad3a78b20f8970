/* Where the hierarchies are, from the texts that different hosts show. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "kernel/cgroup.h"

#define V1_MOUNTS                                                                                  \
	"24 22 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                               \
	"30 24 0:26 / %s/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"        \
	"31 24 0:27 / %s/cpuset rw - cgroup cgroup rw,cpuset\n"                                    \
	"32 24 0:28 / %s/memory rw - cgroup cgroup rw,memory\n"

static char top[] = "/tmp/nacre-cgroup-XXXXXX";

static int make_tree(void **state)
{
	static const char *const dirs[] = {"/cpu,cpuacct", "/cpuset", "/memory", "/memory/own",
		"/unified", "/unified/user.slice"};

	(void)state;
	assert_non_null(mkdtemp(top));
	for (size_t i = 0; i < unit_count(dirs); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s%s", top, dirs[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	return 0;
}

static int remove_tree(void **state)
{
	static const char *const dirs[] = {"/cpu,cpuacct", "/cpuset", "/memory/own", "/memory",
		"/unified/user.slice", "/unified", ""};

	(void)state;
	for (size_t i = 0; i < unit_count(dirs); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s%s", top, dirs[i]);
		assert_int_equal(rmdir(path), 0);
	}
	return 0;
}

static void assert_dir(const char *dir, const char *below)
{
	char wanted[128];

	(void)snprintf(wanted, sizeof(wanted), "%s%s", top, below);
	assert_non_null(dir);
	assert_string_equal(dir, wanted);
}

static void parse(struct nc_cgroup_host *host, const char *format, const char *groups)
{
	nc_buf_cleanup struct nc_buf mounts = NC_BUF(4096);

	for (const char *at = format; *at; at++) {
		if (at[0] == '%' && at[1] == 's') {
			nc_buf_adds(&mounts, top);
			at++;
		} else {
			nc_buf_add(&mounts, at, 1);
		}
	}
	*host = (struct nc_cgroup_host){0};
	assert_int_equal(nc_cgroup_parse(host, mounts.data, groups), 0);
}

static void test_v1(void **state)
{
	struct nc_cgroup_host host;

	(void)state;
	parse(&host, V1_MOUNTS, "4:memory:/own\n3:cpuset:/\n1:cpu,cpuacct:/\n");
	assert_string_equal(nc_cgroup_version(&host), "v1");
	assert_dir(host.v1_dir[NC_CGROUP_MEMORY], "/memory/own");
	/* "cpu" is not "cpuset" */
	assert_dir(host.v1_dir[NC_CGROUP_CPU], "/cpu,cpuacct");
	assert_dir(host.v1_dir[NC_CGROUP_CPUACCT], "/cpu,cpuacct");
	assert_null(host.v1_dir[NC_CGROUP_PIDS]);
	assert_null(host.v2_dir);
	nc_cgroup_done(&host);
	assert_null(host.v1_dir[NC_CGROUP_MEMORY]);
}

static void test_hybrid(void **state)
{
	struct nc_cgroup_host host;

	(void)state;
	parse(&host, V1_MOUNTS "40 24 0:30 / %s/unified rw - cgroup2 cgroup2 rw\n",
		"4:memory:/own\n0::/user.slice\n");
	assert_string_equal(nc_cgroup_version(&host), "hybrid");
	assert_dir(host.v2_dir, "/unified/user.slice");
	assert_dir(host.v2_top, "/unified");
	nc_cgroup_done(&host);
}

static void test_v2(void **state)
{
	struct nc_cgroup_host host;

	(void)state;
	parse(&host, "40 24 0:30 / %s/unified rw - cgroup2 cgroup2 rw,nsdelegate\n", "0::/\n");
	assert_string_equal(nc_cgroup_version(&host), "v2");
	assert_dir(host.v2_dir, "/unified");
	nc_cgroup_done(&host);
}

/* In a container the path is one of the host's: the mount itself is ours. */
static void test_foreign_path(void **state)
{
	struct nc_cgroup_host host;

	(void)state;
	parse(&host, "40 24 0:30 /docker/x %s/unified rw - cgroup2 cgroup2 rw\n", "0::/docker/x\n");
	assert_dir(host.v2_dir, "/unified");
	nc_cgroup_done(&host);
}

static void test_none(void **state)
{
	struct nc_cgroup_host host;

	(void)state;
	parse(&host, "24 22 0:20 / / rw - ext4 /dev/vda rw\nbroken line\n\n", "");
	assert_string_equal(nc_cgroup_version(&host), "none");
	nc_cgroup_done(&host);
}

static void assert_same(const char *found, const char *wanted)
{
	assert_int_equal(found != NULL, wanted != NULL);
	if (wanted)
		assert_string_equal(found, wanted);
}

/* Wherever they are on this host: what is found without the mounts is what those say. */
static void test_find(void **state)
{
	cleanup_free char *mounts = NULL, *groups = NULL;
	struct nc_cgroup_host found = {0}, wanted = {0};

	(void)state;
	assert_int_equal(nc_fd_read_proc("/proc/self/mountinfo", &mounts), 0);
	assert_int_equal(nc_fd_read_proc("/proc/self/cgroup", &groups), 0);
	assert_int_equal(nc_cgroup_parse(&wanted, mounts, groups), 0);
	assert_int_equal(nc_cgroup_find(&found), 0);
	assert_same(found.v2_dir, wanted.v2_dir);
	assert_same(found.v2_top, wanted.v2_top);
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++) {
		assert_same(found.v1_dir[i], wanted.v1_dir[i]);
		assert_same(found.v1_top[i], wanted.v1_top[i]);
	}
	nc_cgroup_done(&found);
	nc_cgroup_done(&wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v1),
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_v2),
		cmocka_unit_test(test_foreign_path),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
