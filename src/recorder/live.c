/* Executions that have begun and not ended. */
#include "recorder/live.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "recorder/segment.h"

/* One execution: its id, filled up with blanks, and the place from which its end may be found. */
#define SLOT_FORMAT "%-64s %12" PRIu64 " %20" PRIu64 "\n"
#define AT_SEGMENT 65
#define AT_OFFSET 78
#define SLOT_SIZE 99
#define FILE_MAX ((size_t)SLOT_SIZE * NC_RECORD_OPEN_MAX)
#define OPEN_TRIES 8

_Static_assert(NC_RECORD_ID_MAX == 64, "the width in SLOT_FORMAT");

/* how: F_OFD_SETLK, or F_OFD_SETLKW to wait for whoever has it. */
static int lock_file(int fd, int how)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, how, &lock) < 0 ? -errno : 0;
}

/* -EAGAIN: a sweep was at it before we had locked it, and has removed it by now. */
static int make_file(struct nc_live *live)
{
	cleanup_close int fd =
		nc_path_open(live->dir_fd, live->name, O_RDWR | O_CREAT | O_EXCL, 0600);
	struct stat status;

	if (fd < 0)
		return fd;
	if (lock_file(fd, F_OFD_SETLKW) < 0 || fstat(fd, &status) < 0 || status.st_nlink == 0)
		return -EAGAIN;
	live->fd = take_fd(fd);
	return 0;
}

int nc_live_open(struct nc_live *live, int history_fd, const char *name)
{
	int r;

	assert(strlen(name) < sizeof(live->name));
	*live = (struct nc_live){.fd = -EBADF};
	(void)snprintf(live->name, sizeof(live->name), "%s", name);
	live->entries = calloc(NC_RECORD_OPEN_MAX, sizeof(*live->entries));
	r = live->dir_fd = nc_path_open(history_fd, "live", O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0 && !live->entries)
		r = -ENOMEM;
	if (r >= 0)
		r = -EAGAIN;
	for (int i = 0; r == -EAGAIN && i < OPEN_TRIES; i++)
		r = make_file(live);
	if (r < 0)
		nc_live_done(live);
	return r;
}

void nc_live_done(struct nc_live *live)
{
	if (live->fd >= 0 && live->count == 0)
		(void)unlinkat(live->dir_fd, live->name, 0);
	live->fd = nc_fd_close(live->fd);
	live->dir_fd = nc_fd_close(live->dir_fd);
	nc_freep(&live->entries);
}

static struct nc_live_entry *find(const struct nc_live *live, const char *id)
{
	for (size_t i = 0; i < NC_RECORD_OPEN_MAX; i++)
		if (nc_streq(live->entries[i].id, id))
			return &live->entries[i];
	return NULL;
}

bool nc_live_has(const struct nc_live *live, const char *id)
{
	return live->count > 0 && find(live, id);
}

static int write_slot(struct nc_live *live, const struct nc_live_entry *entry, const char *id,
	const struct nc_place *place)
{
	size_t i = (size_t)(entry - live->entries);
	char slot[SLOT_SIZE + 1];
	ssize_t n;

	(void)snprintf(slot, sizeof(slot), SLOT_FORMAT, id, place->segment, place->offset);
	n = pwrite(live->fd, slot, SLOT_SIZE, (off_t)(i * SLOT_SIZE));
	return n < 0 ? -errno : n == SLOT_SIZE ? 0 : -ENOSPC;
}

int nc_live_add(struct nc_live *live, const char *id, const struct nc_place *place)
{
	struct nc_live_entry *entry = live->count > 0 ? find(live, id) : NULL;
	bool is_left = entry && entry->left;

	if (entry) {
		entry->left = false;
		return is_left ? 0 : -EEXIST;
	}
	entry = find(live, "");
	if (!entry)
		return -ENOBUFS;
	(void)snprintf(entry->id, sizeof(entry->id), "%s", id);
	live->count++;
	/* on a full disk nobody will know of it if we die; while we live we do */
	(void)write_slot(live, entry, id, place);
	return 1;
}

void nc_live_remove(struct nc_live *live, const char *id)
{
	const struct nc_place nowhere = {0};
	struct nc_live_entry *entry = find(live, id);

	if (!entry)
		return;
	(void)write_slot(live, entry, "", &nowhere); /* else the journal tells that it has ended */
	*entry = (struct nc_live_entry){0};
	live->count--;
}

void nc_live_leave(struct nc_live *live)
{
	for (size_t i = 0; live->count > 0 && i < NC_RECORD_OPEN_MAX; i++)
		live->entries[i].left = live->entries[i].id[0] != '\0';
}

static int append_lost(struct nc_journal *journal, const char *id, const char *run)
{
	char body[160];
	int n = snprintf(body, sizeof(body),
		"{\"status\":\"lost\",\"error\":\"" NC_RECORD_LOST "\","
		"\"run\":\"%s\"}",
		run);
	const struct nc_entry entry = {.from = NC_FROM_RECORDER,
		.kind = NC_RECORD_EXECUTION,
		.event = "lost",
		.id = id,
		.is_end = true,
		.body = body,
		.body_size = (size_t)n};
	struct nc_receipt receipt;

	return nc_journal_append(journal, &entry, &receipt);
}

int nc_live_lose_left(struct nc_live *live, struct nc_journal *journal, struct nc_refused *refused)
{
	int r = 0;

	for (size_t i = 0; r == 0 && live->count > 0 && i < NC_RECORD_OPEN_MAX; i++) {
		const struct nc_live_entry entry = live->entries[i];

		if (!entry.left)
			continue;
		r = append_lost(journal, entry.id, journal->run);
		if (r < 0)
			break;
		nc_live_remove(live, entry.id);
		live->lost++;
		nc_refused_lost(refused, entry.id, true);
	}
	return r;
}

/* What a dead recorder had open. */
struct dead {
	char (*ids)[NC_RECORD_ID_MAX + 1];
	size_t count;
	struct nc_place from; /* the first place from which an end may be found */
};

static int read_number(const char *slot, size_t at, size_t width, uint64_t *ret_number)
{
	char text[24];

	memcpy(text, slot + at, width);
	text[width] = '\0';
	return nc_parse_u64(text + strspn(text, " "), 0, INT64_MAX, ret_number);
}

static void read_slot(struct dead *dead, const char *slot)
{
	char *id = dead->ids[dead->count];
	struct nc_place place;
	size_t length;

	memcpy(id, slot, NC_RECORD_ID_MAX);
	id[NC_RECORD_ID_MAX] = '\0';
	length = strcspn(id, " ");
	id[length] = '\0';
	/* a slot that was not written whole was never answered either */
	if (!nc_line_text_ok(id) || read_number(slot, AT_SEGMENT, 12, &place.segment) < 0 ||
		read_number(slot, AT_OFFSET, 20, &place.offset) < 0)
		return;
	if (dead->count == 0 || place.segment < dead->from.segment ||
		(place.segment == dead->from.segment && place.offset < dead->from.offset))
		dead->from = place;
	dead->count++;
}

/* Takes those off whose end is in the journal, and notes what was refused to them. */
static int drop_ended(struct dead *dead, int journal_fd, struct nc_refused *refused)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	const char *line;
	size_t size;
	int r = nc_reader_open(&reader, journal_fd, dead->from.segment, dead->from.offset);

	while (r >= 0 && (r = nc_reader_next(&reader, &line, &size)) > 0)
		for (size_t i = 0; i < dead->count; i++) {
			if (nc_line_is_about(line, size, "died", dead->ids[i]))
				nc_refused_read(refused, dead->ids[i], line, size);
			if (!nc_line_is_about(line, size, "finish", dead->ids[i]) &&
				!nc_line_is_about(line, size, "lost", dead->ids[i]))
				continue;
			nc_refused_end(refused, dead->ids[i]);
			memmove(dead->ids[i--], dead->ids[--dead->count], sizeof(*dead->ids));
		}
	return r;
}

/* Reports what the file lists. Returns how many were lost. */
static int bury(struct nc_live *live, const char *text, size_t size, const char *run,
	struct nc_journal *journal, struct nc_refused *refused)
{
	struct dead dead = {.ids = calloc(NC_RECORD_OPEN_MAX, sizeof(*dead.ids))};
	int r = dead.ids ? 0 : -ENOMEM, lost = 0;

	for (size_t at = 0; r == 0 && at + SLOT_SIZE <= size && dead.count < NC_RECORD_OPEN_MAX;
		at += SLOT_SIZE)
		read_slot(&dead, text + at);
	if (r == 0 && dead.count > 0)
		r = drop_ended(&dead, journal->journal_fd, refused);
	for (size_t i = 0; r >= 0 && i < dead.count; i++) {
		if (nc_live_has(live, dead.ids[i]))
			continue;
		r = append_lost(journal, dead.ids[i], run);
		if (r >= 0)
			nc_refused_lost(refused, dead.ids[i], false);
		lost += r >= 0;
	}
	free(dead.ids);
	return r < 0 ? r : lost;
}

static int sweep_file(struct nc_live *live, const char *name, struct nc_journal *journal,
	struct nc_refused *refused)
{
	cleanup_close int fd = nc_path_open(live->dir_fd, name, O_RDWR, 0);
	cleanup_free char *text = NULL;
	size_t size;
	int r;

	if (fd < 0 || lock_file(fd, F_OFD_SETLK) < 0)
		return 0; /* gone already, or alive */
	r = nc_fd_read_all(fd, FILE_MAX, &text, &size);
	if (r == 0)
		r = bury(live, text, size, name, journal, refused);
	if (r >= 0)
		(void)unlinkat(live->dir_fd, name, 0);
	return r;
}

int nc_live_sweep(struct nc_live *live, struct nc_journal *journal, struct nc_refused *refused)
{
	int fd = openat(live->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0, lost = 0;

	if (!dir) {
		r = -errno;
		(void)nc_fd_close(fd);
		return r;
	}
	for (struct dirent *entry; r >= 0 && (entry = readdir(dir));) {
		if (strlen(entry->d_name) != sizeof(live->name) - 1 ||
			strspn(entry->d_name, "0123456789abcdef") != sizeof(live->name) - 1 ||
			nc_streq(entry->d_name, live->name))
			continue;
		r = sweep_file(live, entry->d_name, journal, refused);
		lost += r > 0 ? r : 0;
	}
	return r < 0 ? r : lost;
}
