/* A large request, whose body is in a file. */
#include "engine/cut.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/parse.h"

/* Where a scan of the body is. */
struct scan {
	struct nc_cuts *cuts;
	struct nc_buf *rest;
	off_t at;      /* in the file, of the byte that is looked at */
	size_t depth;  /* of brackets */
	size_t text;   /* where in the rest the last string began, at its quote */
	off_t text_at; /* and in the file */
	char before;   /* what stood there last, blanks and strings aside */
	bool in_text, escaped, in_files;
	bool cutting; /* the string is too long, and goes on */
};

static int read_at(int fd, off_t at, char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = pread(fd, data, size, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int add_cut(struct nc_cuts *cuts, off_t from, off_t to)
{
	struct nc_cut *more = cuts->count & (cuts->count - 1)
				      ? cuts->cut
				      : reallocarray(cuts->cut, cuts->count ? 2 * cuts->count : 1,
						sizeof(*cuts->cut));

	if (!more)
		return -ENOMEM;
	cuts->cut = more;
	more[cuts->count++] = (struct nc_cut){from, (size_t)(to - from)};
	return 0;
}

/* A string ends at its second quote. */
static int end_text(struct scan *scan)
{
	int r = 0;

	scan->in_text = false;
	if (scan->cutting) {
		r = add_cut(scan->cuts, scan->text_at + 1, scan->at);
		nc_buf_addf(scan->rest, "%s:%zu", scan->cuts->mark, scan->cuts->count - 1);
	}
	scan->cutting = false;
	nc_buf_add(scan->rest, "\"", 1);
	return r;
}

/* Bytes of the string that neither end nor escape anything, or one that is escaped. */
static size_t text_run(const struct scan *scan, const char *data, size_t size)
{
	size_t n = scan->escaped;

	while (!scan->escaped && n < size && data[n] != '"' && data[n] != '\\')
		n++;
	return n;
}

static void add_text(struct scan *scan, const char *data, size_t size)
{
	if (scan->cutting)
		return;
	nc_buf_add(scan->rest, data, size);
	/* values only: what a file is called is not long */
	if (scan->in_files && scan->before == ':' && scan->rest->size - scan->text > NC_CUT_MIN) {
		scan->rest->size = scan->text + 1;
		scan->cutting = true;
	}
}

/* How much of it was read, or an error. */
static ssize_t scan_text(struct scan *scan, const char *data, size_t size)
{
	size_t n = text_run(scan, data, size);

	if (n == 0 && *data == '"') {
		int r = end_text(scan);

		return r < 0 ? r : 1;
	}
	scan->escaped = n == 0; /* by the backslash that stands here */
	n += n == 0;
	add_text(scan, data, n);
	return (ssize_t)n;
}

/* Whether the string that was read last is the name of a member, and that one's. */
static bool is_named_files(const struct scan *scan)
{
	static const char name[] = "\"files\"";

	return scan->depth == 1 && scan->rest->size - scan->text >= sizeof(name) - 1 &&
	       memcmp(scan->rest->data + scan->text, name, sizeof(name) - 1) == 0;
}

static void scan_mark(struct scan *scan, char c)
{
	if (c == '"') {
		scan->in_text = true;
		scan->text = scan->rest->size;
		scan->text_at = scan->at;
	} else if (c == '{' || c == '[') {
		scan->depth++;
	} else if (c == '}' || c == ']') {
		scan->depth -= scan->depth > 0;
	} else if (c == ':' && scan->depth == 1) {
		scan->in_files = is_named_files(scan);
	}
	if (scan->depth == 0 || (c == ',' && scan->depth == 1))
		scan->in_files = false;
	if (c != '"' && c != ' ' && c != '\n' && c != '\r' && c != '\t')
		scan->before = c;
	nc_buf_add(scan->rest, &c, 1);
}

static int scan_block(struct scan *scan, const char *data, size_t size)
{
	for (size_t i = 0; i < size;) {
		ssize_t n = 1;

		if (scan->in_text)
			n = scan_text(scan, data + i, size - i);
		else
			scan_mark(scan, data[i]);
		if (n < 0)
			return (int)n;
		scan->at += n;
		i += (size_t)n;
	}
	return scan->rest->error;
}

/* What passed through it may have been a secret. */
static void block_freep(char **block)
{
	if (*block)
		explicit_bzero(*block, NC_CUT_BLOCK);
	nc_freep(block);
}

int nc_cuts_make(int fd, size_t size, struct nc_cuts **ret_cuts, struct nc_buf *rest)
{
	cleanup_close int body_fd = fd;
	cleanup_cuts struct nc_cuts *cuts = calloc(1, sizeof(*cuts));
	nc_cleanup(block_freep) char *block = malloc(NC_CUT_BLOCK);
	struct scan scan = {.cuts = cuts, .rest = rest};
	int r;

	if (!cuts || !block)
		return -ENOMEM;
	cuts->fd = take_fd(body_fd);
	r = nc_id_new("ct", cuts->mark);
	while (r == 0 && (size_t)scan.at < size) {
		size_t left = size - (size_t)scan.at, n = left < NC_CUT_BLOCK ? left : NC_CUT_BLOCK;

		r = read_at(cuts->fd, scan.at, block, n);
		if (r == 0)
			r = scan_block(&scan, block, n);
	}
	if (r < 0)
		return r;
	*ret_cuts = take_ptr(cuts);
	return 0;
}

static int blank(int fd, off_t from, off_t to)
{
	static const char nothing[4096];

	while (from < to) {
		const size_t left = (size_t)(to - from);
		ssize_t n =
			pwrite(fd, nothing, left < sizeof(nothing) ? left : sizeof(nothing), from);

		if (n < 0 && errno != EINTR)
			return -errno;
		from += n > 0 ? n : 0;
	}
	return 0;
}

int nc_cuts_blank(const struct nc_cuts *cuts, size_t size)
{
	off_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < cuts->count; i++) {
		r = blank(cuts->fd, at, cuts->cut[i].offset);
		at = cuts->cut[i].offset + (off_t)cuts->cut[i].size;
	}
	return r == 0 ? blank(cuts->fd, at, (off_t)size) : r;
}

void nc_cuts_free(struct nc_cuts *cuts)
{
	if (!cuts)
		return;
	(void)nc_fd_close(cuts->fd);
	free(cuts->cut);
	free(cuts);
}

const struct nc_cut *nc_cuts_find(const struct nc_cuts *cuts, const char *text)
{
	const size_t size = cuts ? strlen(cuts->mark) : 0;
	uint64_t i;

	if (!cuts || strncmp(text, cuts->mark, size) != 0 || text[size] != ':' ||
		nc_parse_u64(text + size + 1, 0, UINT64_MAX, &i) < 0 || i >= cuts->count)
		return NULL;
	return &cuts->cut[i];
}

/* ---- reading one ---- */

void nc_cut_begin(struct nc_cut_reader *reader, const struct nc_cuts *cuts,
	const struct nc_cut *cut, bool base64)
{
	reader->fd = cuts->fd;
	reader->left = *cut;
	reader->base64 = base64;
	reader->passed = reader->carried = 0;
	reader->uneven = false;
}

/* Text of the next block, behind what is carried; how much there is of both. */
static int read_text(struct nc_cut_reader *reader, size_t *ret_size)
{
	const size_t left = reader->left.size, n = left < NC_CUT_BLOCK ? left : NC_CUT_BLOCK;
	size_t used, size;
	int r = read_at(reader->fd, reader->left.offset, reader->raw, n);

	if (r < 0)
		return r;
	if (nc_json_unescape(
		    reader->raw, n, n == left, reader->text + reader->carried, &used, &size) < 0)
		return -EILSEQ;
	reader->left.offset += (off_t)used;
	reader->left.size -= used;
	*ret_size = reader->carried + size;
	return 0;
}

static int decode_text(struct nc_cut_reader *reader, size_t size, size_t *ret_size, size_t *ret_at)
{
	const bool is_last = reader->left.size == 0;
	const size_t whole = is_last ? size : size / 4 * 4;
	size_t at = 0;
	int r = nc_base64_piece(reader->text, whole, is_last, reader->data, ret_size, &at);

	*ret_at = reader->passed + at;
	reader->uneven = whole % 4 != 0;
	if (r < 0)
		return r;
	reader->passed += whole;
	reader->carried = size - whole;
	memmove(reader->text, reader->text + whole, reader->carried);
	return 0;
}

int nc_cut_next(
	struct nc_cut_reader *reader, const char **ret_data, size_t *ret_size, size_t *ret_at)
{
	size_t size = 0;
	int r = 0;

	while (r == 0 && size == 0 && reader->left.size > 0) {
		r = read_text(reader, &size);
		if (r == 0 && reader->base64)
			r = decode_text(reader, size, &size, ret_at);
	}
	if (r < 0)
		return r;
	*ret_data = reader->base64 ? (const char *)reader->data : reader->text;
	*ret_size = size;
	return 0;
}
