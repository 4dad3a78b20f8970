/* Chunked bodies (RFC 9112, section 7.1), read strictly and passed on as they are. */
#include <errno.h>

#include "egress/http.h"

/* Digits of a size: more would not fit what is left of 2^60 bytes. */
#define DIGITS_MAX 15U
/* Extensions and trailers together. */
#define LINES_MAX 8192U

static int digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static int take_size(struct nc_chunks *chunks, char c)
{
	const int digit = digit_of(c);

	if (digit >= 0) {
		chunks->left = chunks->left * 16 + (uint64_t)digit;
		return ++chunks->digits > DIGITS_MAX ? -EBADMSG : 0;
	}
	if (chunks->digits == 0)
		return -EBADMSG;
	if (c == '\r')
		chunks->state = NC_CHUNKS_SIZE_END;
	else if (c == ';' && chunks->tolerant)
		chunks->state = NC_CHUNKS_EXTENSION;
	else
		return -EBADMSG;
	return 0;
}

/* A byte of an extension or a trailer; the line ends with CR. */
static int take_text(struct nc_chunks *chunks, char c, enum nc_chunks_state end)
{
	if (c == '\r') {
		chunks->state = end;
		return 0;
	}
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f || ++chunks->line > LINES_MAX
		       ? -EBADMSG
		       : 0;
}

static int expect(struct nc_chunks *chunks, char c, char wanted, enum nc_chunks_state next)
{
	chunks->state = next;
	return c == wanted ? 0 : -EBADMSG;
}

static int begin_line(struct nc_chunks *chunks, char c)
{
	if (c == '\r') {
		chunks->state = NC_CHUNKS_LAST_END;
		return 0;
	}
	if (!chunks->tolerant || c == ' ' || c == '\t' || c == ':')
		return -EBADMSG;
	chunks->state = NC_CHUNKS_TRAILER;
	return take_text(chunks, c, NC_CHUNKS_TRAILER_END);
}

static int take_byte(struct nc_chunks *chunks, char c)
{
	switch (chunks->state) {
	case NC_CHUNKS_SIZE:
		return take_size(chunks, c);
	case NC_CHUNKS_EXTENSION:
		return take_text(chunks, c, NC_CHUNKS_SIZE_END);
	case NC_CHUNKS_SIZE_END:
		chunks->digits = 0;
		return expect(chunks, c, '\n', chunks->left > 0 ? NC_CHUNKS_DATA : NC_CHUNKS_LINE);
	case NC_CHUNKS_DATA_CR:
		return expect(chunks, c, '\r', NC_CHUNKS_DATA_END);
	case NC_CHUNKS_DATA_END:
		return expect(chunks, c, '\n', NC_CHUNKS_SIZE);
	case NC_CHUNKS_LINE:
		return begin_line(chunks, c);
	case NC_CHUNKS_TRAILER:
		return take_text(chunks, c, NC_CHUNKS_TRAILER_END);
	case NC_CHUNKS_TRAILER_END:
		return expect(chunks, c, '\n', NC_CHUNKS_LINE);
	case NC_CHUNKS_LAST_END:
		return expect(chunks, c, '\n', NC_CHUNKS_DONE);
	case NC_CHUNKS_DATA:
	case NC_CHUNKS_DONE:
	default:
		return -EBADMSG;
	}
}

ssize_t nc_chunks_take(struct nc_chunks *chunks, const char *data, size_t size)
{
	size_t at = 0;

	while (at < size && chunks->state != NC_CHUNKS_DONE) {
		if (chunks->state == NC_CHUNKS_DATA) {
			const size_t n =
				size - at < chunks->left ? size - at : (size_t)chunks->left;

			at += n;
			chunks->left -= n;
			if (chunks->left == 0)
				chunks->state = NC_CHUNKS_DATA_CR;
		} else if (take_byte(chunks, data[at++]) < 0) {
			return -EBADMSG;
		}
	}
	return (ssize_t)at;
}
