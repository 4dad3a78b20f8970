/* What outlives the worker. */
#include "engine/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"

#define PAGES_MAX 65536U
/* Of a page, most of which is a hole: its head, two halves for notes, two streams. */
#define PAGE_ROOM (8ULL << 20)
#define AT_COUNTS 64U
#define AT_NOTES 4096U
#define AT_STREAMS (AT_NOTES + 2ULL * NC_LEDGER_NOTE_MAX)
#define STREAM_HEAD (NC_LEDGER_STREAM_MAX / 2)
#define CHUNK 65536U

_Static_assert(AT_STREAMS + 2ULL * NC_LEDGER_STREAM_MAX <= PAGE_ROOM, "a page holds all of it");

/* At the beginning of a page: the note that holds. Written at once. */
struct head {
	uint32_t half; /* 1 or 2; 0: nothing is here */
	uint32_t size;
};

/* The same for what it has received. */
struct counts {
	uint64_t bytes[NC_LEDGER_STREAMS];
	uint64_t pieces;
};

/* At the beginning of page 0, which is nobody's: whose the inbox is, and how far his stream was. */
struct intent {
	uint32_t page, stream;
	uint64_t bytes;
};

struct nc_ledger {
	int memory_fd, inbox_fd;
	bool used[PAGES_MAX];
	struct counts counts[PAGES_MAX]; /* as they are written */
	uint32_t halves[PAGES_MAX];
};

int nc_ledger_make(int *ret_memory_fd, int *ret_inbox_fd)
{
	cleanup_close int memory_fd = memfd_create("nacre-ledger", MFD_CLOEXEC);
	cleanup_close int inbox_fd = memfd_create("nacre-inbox", MFD_CLOEXEC);

	if (memory_fd < 0 || inbox_fd < 0)
		return -errno;
	*ret_memory_fd = take_fd(memory_fd);
	*ret_inbox_fd = take_fd(inbox_fd);
	return 0;
}

static off_t place_of(uint32_t page, uint64_t at)
{
	return (off_t)(page * PAGE_ROOM + at);
}

static int put(
	const struct nc_ledger *ledger, uint32_t page, uint64_t at, const void *data, size_t size)
{
	ssize_t n = pwrite(ledger->memory_fd, data, size, place_of(page, at));

	return n < 0 ? -errno : (size_t)n < size ? -ENOSPC : 0;
}

/* What was never written reads as zeros. */
static int get(const struct nc_ledger *ledger, uint32_t page, uint64_t at, void *data, size_t size)
{
	ssize_t n = pread(ledger->memory_fd, data, size, place_of(page, at));

	if (n < 0)
		return -errno;
	memset((char *)data + n, 0, size - (size_t)n);
	return 0;
}

/* ---- streams ---- */

/* Where a byte of a stream is: the first half stays, the rest is a ring. */
static uint64_t place_in(unsigned int stream, uint64_t byte)
{
	uint64_t at =
		byte < STREAM_HEAD
			? byte
			: STREAM_HEAD + (byte - STREAM_HEAD) % (NC_LEDGER_STREAM_MAX - STREAM_HEAD);

	return AT_STREAMS + stream * (uint64_t)NC_LEDGER_STREAM_MAX + at;
}

/* How many from there on lie side by side. */
static uint64_t run_of(uint64_t byte)
{
	return byte < STREAM_HEAD
		       ? STREAM_HEAD - byte
		       : NC_LEDGER_STREAM_MAX - STREAM_HEAD -
				 (byte - STREAM_HEAD) % (NC_LEDGER_STREAM_MAX - STREAM_HEAD);
}

/* The bytes, then the counts; if the former fail the latter stay. */
static int append(
	struct nc_ledger *ledger, uint32_t page, unsigned int stream, const char *data, size_t size)
{
	struct counts counts = ledger->counts[page];
	int r = 0;

	while (r == 0 && size > 0) {
		uint64_t byte = counts.bytes[stream], run = run_of(byte);
		size_t n = run < size ? (size_t)run : size;

		r = put(ledger, page, place_in(stream, byte), data, n);
		counts.bytes[stream] += n;
		data += n;
		size -= n;
	}
	counts.pieces++;
	if (r == 0)
		r = put(ledger, page, AT_COUNTS, &counts, sizeof(counts));
	if (r == 0)
		ledger->counts[page] = counts;
	return r;
}

/* What is in the inbox, and how much. */
static ssize_t read_inbox(const struct nc_ledger *ledger, char *data, size_t size)
{
	ssize_t n = pread(ledger->inbox_fd, data, size, 0);

	return n < 0 ? -errno : n;
}

ssize_t nc_ledger_receive(struct nc_ledger *ledger, uint32_t page, unsigned int stream, int fd,
	char *data, size_t size)
{
	const struct intent intent = {page, stream, ledger->counts[page].bytes[stream]};
	loff_t at = 0;
	ssize_t n = put(ledger, 0, 0, &intent, sizeof(intent));

	if (n == 0) {
		n = splice(fd, NULL, ledger->inbox_fd, &at, size < CHUNK ? size : CHUNK,
			SPLICE_F_NONBLOCK);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return n;
		if (n > 0)
			n = read_inbox(ledger, data, size);
	}
	/* a terminal; or there is no memory, and what was printed is told all the same */
	if (n < 0)
		n = read(fd, data, size);
	if (n > 0)
		(void)append(ledger, page, stream, data, (size_t)n);
	(void)!ftruncate(ledger->inbox_fd, 0);
	return n;
}

/* The worker before died between the pipe and the page. */
static void finish_intent(struct nc_ledger *ledger)
{
	struct intent intent;
	char *data = malloc(CHUNK);
	ssize_t n = data ? read_inbox(ledger, data, CHUNK) : -ENOMEM;

	if (n > 0 && get(ledger, 0, 0, &intent, sizeof(intent)) == 0 && intent.page > 0 &&
		intent.page < PAGES_MAX && ledger->used[intent.page] &&
		intent.stream < NC_LEDGER_STREAMS &&
		ledger->counts[intent.page].bytes[intent.stream] == intent.bytes)
		(void)append(ledger, intent.page, intent.stream, data, (size_t)n);
	(void)!ftruncate(ledger->inbox_fd, 0);
	free(data);
}

int nc_ledger_output(
	struct nc_ledger *ledger, uint32_t page, unsigned int stream, struct nc_output *output)
{
	uint64_t bytes = ledger->counts[page].bytes[stream];
	size_t head = bytes < STREAM_HEAD ? (size_t)bytes : STREAM_HEAD;
	size_t ring = NC_LEDGER_STREAM_MAX - STREAM_HEAD;
	cleanup_free char *data = malloc(STREAM_HEAD);
	int r = data ? get(ledger, page, place_in(stream, 0), data, head) : -ENOMEM;

	if (r == 0)
		nc_output_add(output, data, head);
	if (r < 0 || bytes <= STREAM_HEAD)
		return r < 0 ? r : output->error;
	output->tail = malloc(ring);
	output->error = -EFBIG; /* the whole is not there */
	output->bytes = bytes;
	return output->tail ? get(ledger, page, place_in(stream, STREAM_HEAD), output->tail, ring)
			    : -ENOMEM;
}

uint64_t nc_ledger_pieces(struct nc_ledger *ledger, uint32_t page)
{
	return ledger->counts[page].pieces;
}

/* ---- notes ---- */

static uint64_t at_half(uint32_t half)
{
	return AT_NOTES + (half - 1) * (uint64_t)NC_LEDGER_NOTE_MAX;
}

uint32_t nc_ledger_add(struct nc_ledger *ledger)
{
	const struct counts none = {0};

	for (uint32_t page = 1; page < PAGES_MAX; page++) {
		if (ledger->used[page])
			continue;
		/* a worker that died may have left some of whose it was */
		if (put(ledger, page, AT_COUNTS, &none, sizeof(none)) < 0)
			return 0;
		ledger->used[page] = true;
		return page;
	}
	return 0;
}

void nc_ledger_remove(struct nc_ledger *ledger, uint32_t page)
{
	const struct head nothing = {0};

	if (page == 0)
		return;
	/* the head first: half a page must not be found */
	(void)put(ledger, page, 0, &nothing, sizeof(nothing));
	(void)fallocate(ledger->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		place_of(page, 0), (off_t)PAGE_ROOM);
	ledger->used[page] = false;
	ledger->halves[page] = 0;
	ledger->counts[page] = (struct counts){0};
}

int nc_ledger_write(struct nc_ledger *ledger, uint32_t page, json_t *note)
{
	cleanup_free char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
	struct head head = {.half = ledger->halves[page] == 1 ? 2 : 1};
	int r = text ? 0 : -ENOMEM;

	json_decref(note);
	if (r == 0 && strlen(text) > NC_LEDGER_NOTE_MAX)
		r = -EFBIG;
	if (r == 0) {
		head.size = (uint32_t)strlen(text);
		r = put(ledger, page, at_half(head.half), text, head.size);
	}
	if (r == 0)
		r = put(ledger, page, 0, &head, sizeof(head));
	if (r == 0)
		ledger->halves[page] = head.half;
	return r;
}

static json_t *read_note(const struct nc_ledger *ledger, uint32_t page)
{
	cleanup_free char *text = NULL;
	struct nacre_err err = {0};
	struct head head;
	json_t *note = NULL;

	if (get(ledger, page, 0, &head, sizeof(head)) < 0 || head.half != ledger->halves[page] ||
		head.size > NC_LEDGER_NOTE_MAX)
		return NULL;
	text = malloc(head.size + 1);
	if (!text || get(ledger, page, at_half(head.half), text, head.size) < 0 ||
		nc_json_parse(text, head.size, &note, &err) < 0)
		return NULL;
	return note;
}

void nc_ledger_visit(struct nc_ledger *ledger,
	void (*visit)(void *context, uint32_t page, const json_t *note), void *context)
{
	for (uint32_t page = 1; page < PAGES_MAX; page++) {
		cleanup_json json_t *note = ledger->used[page] ? read_note(ledger, page) : NULL;

		if (note)
			visit(context, page, note);
	}
}

static int find_pages(struct nc_ledger *ledger)
{
	struct stat status;

	if (fstat(ledger->memory_fd, &status) < 0)
		return -errno;
	for (uint32_t page = 1; page < PAGES_MAX && place_of(page, 0) < status.st_size; page++) {
		struct head head;
		int r = get(ledger, page, 0, &head, sizeof(head));

		if (r == 0)
			r = get(ledger, page, AT_COUNTS, &ledger->counts[page],
				sizeof(ledger->counts[page]));
		if (r < 0)
			return r;
		ledger->used[page] = head.half == 1 || head.half == 2;
		ledger->halves[page] = ledger->used[page] ? head.half : 0;
		if (!ledger->used[page])
			ledger->counts[page] = (struct counts){0};
	}
	return 0;
}

int nc_ledger_open(int memory_fd, int inbox_fd, struct nc_ledger **ret_ledger)
{
	struct nc_ledger *ledger = calloc(1, sizeof(*ledger));
	int r;

	if (!ledger)
		return -ENOMEM;
	ledger->memory_fd = memory_fd;
	ledger->inbox_fd = inbox_fd;
	r = find_pages(ledger);
	if (r < 0) {
		free(ledger);
		return r;
	}
	finish_intent(ledger);
	*ret_ledger = ledger;
	return 0;
}

void nc_ledger_free(struct nc_ledger *ledger)
{
	free(ledger);
}
