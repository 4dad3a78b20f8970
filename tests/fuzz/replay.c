/*
 * Runs a fuzz target over the files of a directory. Files named *.hex hold pairs of hexadecimal
 * digits (blanks ignored), so that the corpus of a binary format can be read and reviewed.
 */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "fuzz.h"

#define FILE_MAX (1024U * 1024)

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = memchr(digits, tolower((unsigned char)c), 16);

	assert(at);
	return (int)(at - digits);
}

static size_t decode_hex(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		if (isspace((unsigned char)text[i]))
			continue;
		assert(i + 1 < size);
		text[used++] = (char)(digit(text[i]) * 16 + digit(text[i + 1]));
		i++;
	}
	return used;
}

static void replay(int dir_fd, const char *name)
{
	cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	cleanup_free char *text = NULL;
	const char *ending = strrchr(name, '.');
	size_t size = 0;
	int r = nc_fd_read_all(fd, FILE_MAX, &text, &size);

	assert(r == 0);
	if (ending && strcmp(ending, ".hex") == 0)
		size = decode_hex(text, size);
	(void)LLVMFuzzerTestOneInput((const uint8_t *)text, size);
}

int main(int argc, char **argv)
{
	cleanup_closedir DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "Usage: replay CORPUS-DIR\n");
		return 2;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		replay(dirfd(dir), entry->d_name);
		count++;
	}
	printf("%d inputs replayed\n", count);
	return count > 0 ? 0 : 1;
}
