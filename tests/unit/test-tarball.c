/* A tree as an archive and back, where links stand in its way. */
#include "unit-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tar.h"
#include "base/tarball.h"

static void write_file(int dir_fd, const char *name, const char *text)
{
	cleanup_close int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

	assert_int_equal(nc_fd_write_all(fd, text, strlen(text)), 0);
}

static const char *const all[] = {".", NULL};

static void a_tree_comes_back(void **state)
{
	char from[UNIT_DIR_SIZE], to[UNIT_DIR_SIZE];
	cleanup_close int from_fd = unit_dir_make(from), to_fd = unit_dir_make(to);
	cleanup_close int archive_fd = memfd_create("archive", MFD_CLOEXEC);
	struct nc_tarball_pack pack = {
		.base_fd = from_fd, .names = all, .max = 10, .leave_out = "d/secret"};
	struct nacre_err err = {0};
	char text[16] = "";
	struct stat status;

	(void)state;
	assert_int_equal(mkdirat(from_fd, "d", 0750), 0);
	write_file(from_fd, "d/f", "0123456789");
	write_file(from_fd, "d/secret", "x");
	assert_int_equal(linkat(from_fd, "d/f", from_fd, "again", 0), 0);
	assert_int_equal(symlinkat("/nowhere", from_fd, "s"), 0);
	assert_int_equal(nc_tarball_pack(&pack, archive_fd, &err), 0);
	assert_int_equal(lseek(archive_fd, 0, SEEK_SET), 0);
	assert_int_equal(nc_tarball_unpack(to_fd, archive_fd, NULL, &err), 0);
	assert_int_equal(fstatat(to_fd, "d/f", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_size, 10);
	assert_int_equal(status.st_mode & 07777, 0640);
	assert_int_equal(status.st_nlink, 2);
	assert_int_equal(readlinkat(to_fd, "s", text, sizeof(text)), 8);
	assert_int_equal(faccessat(to_fd, "d/secret", F_OK, 0), -1);
	/* nothing is written of what is too much */
	pack.max = 9;
	assert_int_equal(lseek(archive_fd, 0, SEEK_SET), 0);
	assert_int_equal(ftruncate(archive_fd, 0), 0);
	assert_int_equal(nc_tarball_pack(&pack, archive_fd, &err), -EFBIG);
	assert_int_equal(lseek(archive_fd, 0, SEEK_CUR), 0);
	unit_remove(AT_FDCWD, from);
	unit_remove(AT_FDCWD, to);
}

/* A link that somebody planted where a directory was is not gone through. */
static void links_are_not_followed(void **state)
{
	static const struct nc_tar_member member = {.kind = NC_TAR_DIR, .path = "l/d"};
	char to[UNIT_DIR_SIZE], other[UNIT_DIR_SIZE];
	cleanup_close int to_fd = unit_dir_make(to), other_fd = unit_dir_make(other);
	cleanup_close int archive_fd = memfd_create("archive", MFD_CLOEXEC);
	nc_buf_cleanup struct nc_buf archive = NC_BUF(8192);
	struct nacre_err err = {0};
	char path[32];

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", other_fd);
	assert_int_equal(symlinkat(path, to_fd, "l"), 0);
	nc_tar_put(&archive, &member);
	nc_tar_put(&archive, &(struct nc_tar_member){.kind = NC_TAR_END});
	assert_int_equal(nc_fd_write_all(archive_fd, archive.data, archive.size), 0);
	assert_int_equal(lseek(archive_fd, 0, SEEK_SET), 0);
	assert_int_equal(nc_tarball_unpack(to_fd, archive_fd, NULL, &err), -ENOTDIR);
	assert_int_equal(faccessat(other_fd, "d", F_OK, 0), -1);
	assert_int_equal(lseek(archive_fd, NC_TAR_BLOCK, SEEK_SET), NC_TAR_BLOCK);
	assert_int_equal(ftruncate(archive_fd, 2 * NC_TAR_BLOCK), 0);
	assert_int_equal(nc_tarball_unpack(to_fd, archive_fd, NULL, &err), -ENODATA);
	unit_remove(AT_FDCWD, to);
	unit_remove(AT_FDCWD, other);
}

/* Links that lead out of the tree, also by way of others, are left out where that is asked for. */
static void links_lead_nowhere_else(void **state)
{
	static const struct nc_tar_member members[] = {
		{.kind = NC_TAR_DIR, .path = "a/b/c", .mode = 0755},
		{.kind = NC_TAR_SYMLINK, .path = "a/b/c/top", .target = "../../.."},
		{.kind = NC_TAR_SYMLINK, .path = "a/beside", .target = "..//a/b/"},
		{.kind = NC_TAR_SYMLINK, .path = "dots", .target = "..a/b..c"},
		/* lead out */
		{.kind = NC_TAR_SYMLINK, .path = "a/b/c/sly", .target = "top/../.."},
		{.kind = NC_TAR_SYMLINK, .path = "above", .target = ".."},
		{.kind = NC_TAR_SYMLINK, .path = "a/deep", .target = "../../x"},
		{.kind = NC_TAR_SYMLINK, .path = "root", .target = "/etc"},
		{.kind = NC_TAR_SYMLINK, .path = "dot", .target = "./.."},
		{.kind = NC_TAR_LINK, .path = "second", .target = "a/b/c/top"},
		{.kind = NC_TAR_END},
	};
	static const char *const kept[] = {"a/b/c/top", "a/beside", "dots"};
	static const char *const gone[] = {"a/b/c/sly", "above", "a/deep", "root", "dot", "second"};
	char to[UNIT_DIR_SIZE];
	cleanup_close int to_fd = unit_dir_make(to);
	cleanup_close int archive_fd = memfd_create("archive", MFD_CLOEXEC);
	nc_buf_cleanup struct nc_buf archive = NC_BUF(65536);
	struct nc_tarball_left left = {.count = 99};
	struct nacre_err err = {0};
	struct stat status;

	(void)state;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		nc_tar_put(&archive, &members[i]);
	assert_int_equal(nc_fd_write_all(archive_fd, archive.data, archive.size), 0);
	assert_int_equal(lseek(archive_fd, 0, SEEK_SET), 0);
	assert_int_equal(nc_tarball_unpack(to_fd, archive_fd, &left, &err), 0);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_int_equal(fstatat(to_fd, kept[i], &status, AT_SYMLINK_NOFOLLOW), 0);
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_int_equal(fstatat(to_fd, gone[i], &status, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(left.count, sizeof(gone) / sizeof(gone[0]));
	assert_string_equal(left.first, "'a/b/c/sly'");
	unit_remove(AT_FDCWD, to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_fds(a_tree_comes_back),
		unit_test_fds(links_are_not_followed),
		unit_test_fds(links_lead_nowhere_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
