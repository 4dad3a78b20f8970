/* The heads of the members of archives. */
#include "base/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"

/* Words before one member: two paths and numbers; others write attributes of files there. */
#define WORDS_MAX (64U * 1024)
/* The most that eleven octal digits say. */
#define OCTAL_MAX 077777777777ULL

/* A head as it stands in the archive, one block. */
struct head {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct head) == NC_TAR_BLOCK, "one block");

static const char types[] = {[NC_TAR_FILE] = '0',
	[NC_TAR_LINK] = '1',
	[NC_TAR_SYMLINK] = '2',
	[NC_TAR_DIR] = '5',
	[NC_TAR_FIFO] = '6'};

/* ---- writing ---- */

/* The sum of its bytes, where the sum itself counts as blanks. */
static unsigned int sum_of(const struct head *head)
{
	const unsigned char *bytes = (const unsigned char *)head;
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*head); i++) {
		bool inside = i >= offsetof(struct head, checksum) &&
			      i < offsetof(struct head, checksum) + sizeof(head->checksum);

		sum += inside ? ' ' : bytes[i];
	}
	return sum;
}

static void put_number(char *field, size_t size, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%0*" PRIo64, (int)size - 1, value);
	memcpy(field, digits, size);
}

static void put_text(char *field, size_t size, const char *text)
{
	memcpy(field, text, strnlen(text, size)); /* longer ones stand in words before it */
}

static void add_head(struct nc_buf *out, struct head *head, uint64_t size, uint64_t mtime)
{
	put_number(head->uid, sizeof(head->uid), 0);
	put_number(head->gid, sizeof(head->gid), 0);
	put_number(head->size, sizeof(head->size), size <= OCTAL_MAX ? size : 0);
	put_number(head->mtime, sizeof(head->mtime), mtime <= OCTAL_MAX ? mtime : 0);
	memcpy(head->magic, "ustar", sizeof(head->magic));
	memcpy(head->version, "00", sizeof(head->version));
	put_number(head->checksum, 7, sum_of(head));
	head->checksum[7] = ' ';
	nc_buf_add(out, head, sizeof(*head));
}

/* "LENGTH name=value\n", where the length counts itself. */
static void add_word(struct nc_buf *words, const char *name, const char *value)
{
	size_t bare = strlen(name) + strlen(value) + 3, size = bare, digits;

	do {
		digits = (size_t)snprintf(NULL, 0, "%zu", size);
		if (size == bare + digits)
			break;
		size = bare + digits;
	} while (true);
	nc_buf_addf(words, "%zu %s=%s\n", size, name, value);
}

static void add_padding(struct nc_buf *out, uint64_t size)
{
	static const char zeros[NC_TAR_BLOCK];

	nc_buf_add(out, zeros, nc_tar_padding(size));
}

void nc_tar_put(struct nc_buf *out, const struct nc_tar_member *member)
{
	static const char zeros[2 * NC_TAR_BLOCK];
	nc_buf_cleanup struct nc_buf words = NC_BUF(WORDS_MAX);
	struct head head = {.type = types[NC_TAR_FILE]};
	char number[24];

	if (member->kind == NC_TAR_END) {
		nc_buf_add(out, zeros, sizeof(zeros));
		return;
	}
	if (strlen(member->path) > sizeof(head.name))
		add_word(&words, "path", member->path);
	if (strlen(member->target) > sizeof(head.link))
		add_word(&words, "linkpath", member->target);
	if (member->size > OCTAL_MAX) {
		(void)snprintf(number, sizeof(number), "%" PRIu64, member->size);
		add_word(&words, "size", number);
	}
	if (words.size > 0) {
		head.type = 'x';
		put_text(head.name, sizeof(head.name), "words");
		put_number(head.mode, sizeof(head.mode), 0644);
		add_head(out, &head, words.size, 0);
		nc_buf_add(out, words.data, words.size);
		add_padding(out, words.size);
	}
	if (words.error < 0)
		out->error = words.error;
	head = (struct head){.type = types[member->kind]};
	put_text(head.name, sizeof(head.name), member->path);
	put_text(head.link, sizeof(head.link), member->target);
	put_number(head.mode, sizeof(head.mode), member->mode & 0777U);
	add_head(out, &head, member->size, member->mtime_s > 0 ? (uint64_t)member->mtime_s : 0);
}

/* ---- reading ---- */

static int refuse(struct nc_tar_reader *reader, int code, const char *why)
{
	reader->why = why;
	return code;
}

/* Octal digits between blanks, or a number of GNU tar's: the first bit, then big-endian. */
static int get_number(const char *field, size_t size, uint64_t *ret_value)
{
	const unsigned char *at = (const unsigned char *)field;
	const unsigned char *end = at + size;
	uint64_t value = 0;

	if (*at & 0x80) {
		value = *at++ & 0x7f;
		for (; at < end; at++) {
			if (value >> 55)
				return -EBADMSG; /* more than a signed number holds, or below 0 */
			value = value << 8 | *at;
		}
		*ret_value = value;
		return 0;
	}
	while (at < end && *at == ' ')
		at++;
	for (; at < end && *at >= '0' && *at <= '7'; at++)
		value = value << 3 | (uint64_t)(*at - '0'); /* twelve digits at most: it fits */
	while (at < end && (*at == ' ' || *at == '\0'))
		at++;
	if (at < end)
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

static bool is_zero(const unsigned char *block)
{
	for (size_t i = 0; i < NC_TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* Takes "." and what is empty out of a path; false: it leads out of the directory. */
static bool clean(char *path)
{
	char *out = path, *at = path;

	if (*path == '/')
		return false;
	while (*at) {
		size_t size = strcspn(at, "/");

		if (size == 2 && at[0] == '.' && at[1] == '.')
			return false;
		if (size > 0 && !(size == 1 && at[0] == '.')) {
			if (out > path)
				*out++ = '/';
			memmove(out, at, size);
			out += size;
		}
		at += size;
		if (*at == '/')
			at++;
	}
	*out = '\0';
	return true;
}

static int check_paths(struct nc_tar_reader *reader)
{
	struct nc_tar_member *member = &reader->member;

	if (!clean(member->path) || (member->kind == NC_TAR_LINK && !clean(member->target)))
		return refuse(reader, -EPERM, "it leads out of the directory");
	if (!*member->path && member->kind != NC_TAR_DIR)
		return refuse(reader, -EBADMSG, "a member has no name");
	if (*member->path && !nc_path_is_plain(member->path))
		return refuse(reader, -ENAMETOOLONG, "its name is too long");
	if (member->kind == NC_TAR_LINK && !nc_path_is_plain(member->target))
		return refuse(reader, -EBADMSG, "it is a link to nothing");
	if (member->kind == NC_TAR_SYMLINK && !*member->target)
		return refuse(reader, -EBADMSG, "it is a link to nothing");
	return 1;
}

static int take_kind(struct nc_tar_reader *reader, const struct head *head)
{
	struct nc_tar_member *member = &reader->member;
	size_t size = strlen(member->path);

	switch (head->type) {
	case '0':
	case '\0':
	case '7': /* contiguous, once */
		/* before there was a type for directories */
		member->kind = size > 0 && member->path[size - 1] == '/' ? NC_TAR_DIR : NC_TAR_FILE;
		return 0;
	case '3':
	case '4':
		return refuse(reader, -EPERM, "it is a device");
	case 'S':
		return refuse(reader, -EOPNOTSUPP, "it is a sparse file (tar without --sparse)");
	default:
		break;
	}
	for (size_t i = 0; i < sizeof(types); i++) {
		if (types[i] != head->type)
			continue;
		member->kind = (enum nc_tar_kind)i;
		return 0;
	}
	return refuse(reader, -EOPNOTSUPP, "it is of a kind that is not unpacked");
}

/* Words that come before a member: how many bytes, and what they are. */
static int begin_words(struct nc_tar_reader *reader, const struct head *head, uint64_t size)
{
	if (size > WORDS_MAX)
		return refuse(reader, -EBADMSG, "too much is said about one member");
	reader->words.size = 0;
	reader->words_kind = head->type;
	reader->words_left = size + nc_tar_padding(size);
	reader->words.max = (size_t)size;
	return 0;
}

static int take_head(struct nc_tar_reader *reader, const struct head *head)
{
	struct nc_tar_member *member = &reader->member;
	uint64_t sum, size, mode, mtime;
	int r;

	if (get_number(head->checksum, sizeof(head->checksum), &sum) < 0 || sum != sum_of(head))
		return refuse(reader, -EBADMSG, "that is no tar archive, or a damaged one");
	if (get_number(head->size, sizeof(head->size), &size) < 0 ||
		get_number(head->mode, sizeof(head->mode), &mode) < 0 ||
		get_number(head->mtime, sizeof(head->mtime), &mtime) < 0)
		return refuse(reader, -EBADMSG, "a number in it is none");
	if (strchr("xgLK", head->type) && head->type)
		return begin_words(reader, head, size);
	if (!reader->has_path) {
		bool long_name = memcmp(head->magic, "ustar", 6) == 0 && *head->prefix;

		(void)snprintf(member->path, sizeof(member->path), "%.*s%s%.*s",
			long_name ? (int)sizeof(head->prefix) : 0, head->prefix,
			long_name ? "/" : "", (int)sizeof(head->name), head->name);
	}
	if (!reader->has_target)
		(void)snprintf(member->target, sizeof(member->target), "%.*s",
			(int)sizeof(head->link), head->link);
	if (!reader->has_size)
		member->size = size;
	if (!reader->has_mtime)
		member->mtime_s = (int64_t)mtime;
	member->mode = (mode_t)(mode & 0777);
	r = take_kind(reader, head);
	if (r < 0)
		return r;
	if (member->kind != NC_TAR_FILE)
		member->size = 0;
	reader->has_path = reader->has_target = reader->has_size = reader->has_mtime = false;
	return check_paths(reader);
}

static int take_path(
	struct nc_tar_reader *reader, char *place, bool *ret_has, const char *value, size_t size)
{
	if (size > NC_PATH_MAX)
		return refuse(reader, -ENAMETOOLONG, "its name is too long");
	if (memchr(value, '\0', size))
		return refuse(reader, -EBADMSG, "its name is none");
	memcpy(place, value, size);
	place[size] = '\0';
	*ret_has = true;
	return 0;
}

/* One "name=value" of a pax record; what we do not know does not matter. */
static int take_word(struct nc_tar_reader *reader, const char *word, size_t size)
{
	struct nc_tar_member *member = &reader->member;
	const char *equals = memchr(word, '=', size);
	size_t name_size = equals ? (size_t)(equals - word) : 0;
	const char *value = word + name_size + 1;
	size_t value_size = size - name_size - 1;
	char number[24];
	char *end;

	if (!equals)
		return refuse(reader, -EBADMSG, "what is said about a member is no words");
	if (name_size == 4 && memcmp(word, "path", 4) == 0)
		return take_path(reader, member->path, &reader->has_path, value, value_size);
	if (name_size == 8 && memcmp(word, "linkpath", 8) == 0)
		return take_path(reader, member->target, &reader->has_target, value, value_size);
	if (name_size > 10 && memcmp(word, "GNU.sparse", 10) == 0)
		return refuse(reader, -EOPNOTSUPP, "it is a sparse file (tar without --sparse)");
	(void)snprintf(
		number, sizeof(number), "%.*s", (int)(value_size < 23 ? value_size : 23), value);
	if (name_size == 4 && memcmp(word, "size", 4) == 0) {
		if (nc_parse_u64(number, 0, INT64_MAX, &member->size) < 0)
			return refuse(reader, -EBADMSG, "a number in it is none");
		reader->has_size = true;
	} else if (name_size == 5 && memcmp(word, "mtime", 5) == 0) {
		member->mtime_s = strtoll(number, &end, 10);
		reader->has_mtime = end > number;
	}
	return 0;
}

static int take_pax(struct nc_tar_reader *reader)
{
	const char *at = nc_buf_text(&reader->words), *end = at + reader->words.size;
	int r = 0;

	while (r == 0 && at < end) {
		char *rest;
		unsigned long size = *at >= '1' && *at <= '9' ? strtoul(at, &rest, 10) : 0;

		if (size == 0 || size > (size_t)(end - at) || *rest != ' ' ||
			rest + 1 >= at + size || at[size - 1] != '\n')
			return refuse(reader, -EBADMSG, "what is said about a member is no words");
		r = take_word(reader, rest + 1, (size_t)(at + size - 1 - (rest + 1)));
		at += size;
	}
	return r;
}

static int take_words(struct nc_tar_reader *reader)
{
	struct nc_tar_member *member = &reader->member;
	const char *text = nc_buf_text(&reader->words);

	switch (reader->words_kind) {
	case 'x':
		return take_pax(reader);
	case 'L':
		return take_path(reader, member->path, &reader->has_path, text, strlen(text));
	case 'K':
		return take_path(reader, member->target, &reader->has_target, text, strlen(text));
	default: /* about all members: a comment, of those that we know */
		return 0;
	}
}

void nc_tar_reader_init(struct nc_tar_reader *reader)
{
	*reader = (struct nc_tar_reader){.words = NC_BUF(0)};
}

void nc_tar_reader_done(struct nc_tar_reader *reader)
{
	nc_buf_done(&reader->words);
}

int nc_tar_take(struct nc_tar_reader *reader, const unsigned char block[static NC_TAR_BLOCK])
{
	size_t room = reader->words.max - reader->words.size;

	if (reader->words_left > 0) {
		nc_buf_add(&reader->words, block, room < NC_TAR_BLOCK ? room : NC_TAR_BLOCK);
		reader->words_left -= NC_TAR_BLOCK;
		if (reader->words.error < 0)
			return refuse(reader, reader->words.error, "out of memory");
		return reader->words_left > 0 ? 0 : take_words(reader);
	}
	if (is_zero(block)) {
		reader->member = (struct nc_tar_member){.kind = NC_TAR_END};
		if (reader->zeros)
			return 1;
		reader->zeros = true;
		return 0;
	}
	if (reader->zeros)
		return refuse(reader, -EBADMSG, "something follows its end");
	return take_head(reader, (const struct head *)block);
}
