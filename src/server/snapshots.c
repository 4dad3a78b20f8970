/* What users of sandboxes had written, kept. */
#include "server/snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/owner.h"

/* What is told of it stands before the archive, in so many bytes. */
#define HEAD_SIZE 4096
#define FRESH "fresh_"
struct nc_draft {
	struct nc_draft *next;
	struct nc_snapshots *all; /* NULL: they are gone, and only the thread holds it */
	struct nc_snapshot snapshot;
	char file[sizeof(FRESH) + NC_ID_SIZE];
	int fd;
	uint64_t max;
	struct nc_sha256_state content, named;
	uv_work_t sync;
	bool syncs;	    /* a thread has it, and it cannot be freed */
	int error;	    /* that this thread met */
	nc_draft_kept kept; /* NULL: nobody waits for it any more */
	void *context;
};

struct nc_snapshots {
	int dir_fd;
	struct nc_snapshot *list;
	struct nc_draft *drafts;
	size_t count;
};

/* ---- what is there ---- */

json_t *nc_snapshot_json(const struct nc_snapshot *snapshot)
{
	return json_pack("{s:s, s:s, s:s?, s:s, s:s, s:s, s:I}", "id", snapshot->id, "tenant",
		snapshot->tenant, "name", *snapshot->name ? snapshot->name : NULL, "sandbox",
		snapshot->sandbox, "created", snapshot->created, "sha256", snapshot->sha256, "size",
		(json_int_t)snapshot->size);
}

static bool is_id(const char *text)
{
	return strlen(text) == NC_ID_SIZE - 1 && strncmp(text, "sn_", 3) == 0 &&
	       strspn(text + 3, "0123456789abcdef") == NC_ID_SIZE - 4;
}

static bool take_text(const json_t *head, const char *key, char *place, size_t size)
{
	const char *text = json_string_value(json_object_get(head, key));

	return snprintf(place, size, "%s", text ? text : "") < (int)size;
}

static int read_head(int fd, const char *id, struct nc_snapshot *ret_snapshot)
{
	char text[HEAD_SIZE];
	cleanup_json json_t *head = NULL;
	struct nacre_err err = {0};
	off_t end = lseek(fd, 0, SEEK_END);

	if (end < HEAD_SIZE || pread(fd, text, sizeof(text), 0) != sizeof(text) ||
		nc_json_parse(text, sizeof(text), &head, &err) < 0)
		return -EBADMSG;
	ret_snapshot->size = (uint64_t)end - HEAD_SIZE;
	(void)snprintf(ret_snapshot->id, sizeof(ret_snapshot->id), "%s", id);
	if ((uint64_t)json_integer_value(json_object_get(head, "size")) != ret_snapshot->size ||
		!take_text(head, "tenant", ret_snapshot->tenant, sizeof(ret_snapshot->tenant)) ||
		!take_text(head, "name", ret_snapshot->name, sizeof(ret_snapshot->name)) ||
		!take_text(head, "sandbox", ret_snapshot->sandbox, sizeof(ret_snapshot->sandbox)) ||
		!take_text(head, "created", ret_snapshot->created, sizeof(ret_snapshot->created)) ||
		!take_text(head, "sha256", ret_snapshot->sha256, sizeof(ret_snapshot->sha256)))
		return -EBADMSG;
	return 0;
}

/* In the order of their time. */
static void enlist(struct nc_snapshots *all, struct nc_snapshot *snapshot)
{
	struct nc_snapshot **place = &all->list;

	while (*place && strcmp((*place)->created, snapshot->created) <= 0)
		place = &(*place)->next;
	snapshot->next = *place;
	*place = snapshot;
	all->count++;
}

static int open_at(const struct nc_snapshots *all, const char *id)
{
	int fd = openat(all->dir_fd, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int load(struct nc_snapshots *all, const char *id)
{
	cleanup_close int fd = open_at(all, id);
	struct nc_snapshot *snapshot = fd < 0 ? NULL : calloc(1, sizeof(*snapshot));
	int r = fd < 0 ? fd : snapshot ? read_head(fd, id, snapshot) : -ENOMEM;

	if (r < 0) {
		nc_log(NC_LOG_WARNING, "A snapshot cannot be read, leaving it out",
			NC_LOG_TEXT("snapshot", id), NC_LOG_TEXT("reason", nc_errno_text(r)));
		free(snapshot);
		return r == -ENOMEM ? r : 0;
	}
	enlist(all, snapshot);
	return 0;
}

static int load_all(struct nc_snapshots *all)
{
	int fd = openat(all->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		(void)nc_fd_close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (nc_text_after(entry->d_name, FRESH)) /* it was never finished */
			(void)unlinkat(all->dir_fd, entry->d_name, 0);
		else if (is_id(entry->d_name) && all->count < NC_SNAPSHOTS_MAX)
			r = load(all, entry->d_name);
	}
	return r;
}

int nc_snapshots_new(int dir_fd, struct nc_snapshots **ret_snapshots)
{
	struct nc_snapshots *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->dir_fd = dir_fd;
	r = load_all(all);
	if (r < 0)
		nc_snapshots_free(all);
	else
		*ret_snapshots = all;
	return r;
}

void nc_snapshots_free(struct nc_snapshots *all)
{
	if (!all)
		return;
	while (all->drafts) {
		struct nc_draft *draft = all->drafts;

		if (draft->syncs) { /* it is freed when the thread has done */
			all->drafts = draft->next;
			draft->all = NULL;
		} else {
			nc_draft_free(draft);
		}
	}
	while (all->list) {
		struct nc_snapshot *snapshot = all->list;

		all->list = snapshot->next;
		free(snapshot);
	}
	free(all);
}

const struct nc_snapshot *nc_snapshot_find(
	const struct nc_snapshots *all, const char *tenant, const char *id)
{
	for (const struct nc_snapshot *s = all->list; s; s = s->next)
		if (nc_streq(s->id, id) && nc_owner_sees(NC_STORE_SNAPSHOTS, s->tenant, tenant))
			return s;
	return NULL;
}

json_t *nc_snapshots_json(const struct nc_snapshots *all, const char *tenant)
{
	json_t *list = json_array();

	for (const struct nc_snapshot *s = all->list; list && s; s = s->next)
		if (nc_owner_sees(NC_STORE_SNAPSHOTS, s->tenant, tenant))
			(void)json_array_append_new(list, nc_snapshot_json(s));
	return list;
}

uint64_t nc_snapshots_used(const struct nc_snapshots *all, const char *tenant)
{
	uint64_t used = 0;

	for (const struct nc_snapshot *s = all->list; s; s = s->next)
		used += nc_streq(s->tenant, tenant) ? s->size : 0;
	for (const struct nc_draft *d = all->drafts; d; d = d->next)
		used += nc_streq(d->snapshot.tenant, tenant) ? d->snapshot.size : 0;
	return used;
}

int nc_snapshot_open(const struct nc_snapshots *all, const struct nc_snapshot *snapshot)
{
	cleanup_close int fd = open_at(all, snapshot->id);

	if (fd < 0)
		return fd;
	return lseek(fd, HEAD_SIZE, SEEK_SET) < 0 ? -errno : take_fd(fd);
}

int nc_snapshot_remove(struct nc_snapshots *all, const struct nc_snapshot *snapshot)
{
	struct nc_snapshot **place = &all->list;

	if (unlinkat(all->dir_fd, snapshot->id, 0) < 0 && errno != ENOENT)
		return -errno;
	while (*place != snapshot)
		place = &(*place)->next;
	*place = snapshot->next;
	all->count--;
	free((struct nc_snapshot *)(uintptr_t)snapshot);
	return 0;
}

/* ---- one more ---- */

static size_t count_of(const struct nc_snapshots *all, const char *tenant)
{
	size_t n = 0;

	for (const struct nc_snapshot *s = all->list; s; s = s->next)
		n += nc_streq(s->tenant, tenant);
	for (const struct nc_draft *d = all->drafts; d; d = d->next)
		n += nc_streq(d->snapshot.tenant, tenant);
	return n;
}

static int create(struct nc_draft *draft)
{
	char id[NC_ID_SIZE];
	int r = nc_id_new("fr", id);

	if (r < 0)
		return r;
	(void)snprintf(draft->file, sizeof(draft->file), FRESH "%s", id);
	draft->fd = openat(draft->all->dir_fd, draft->file,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (draft->fd < 0)
		return -errno;
	return lseek(draft->fd, HEAD_SIZE, SEEK_SET) < 0 ? -errno : 0;
}

int nc_draft_new(struct nc_snapshots *all, const char *tenant, const char *name,
	const char *sandbox, uint64_t max, struct nc_draft **ret_draft, struct nacre_err *err)
{
	struct nc_draft *draft;
	int r;

	if (count_of(all, tenant) >= NC_SNAPSHOTS_EACH || all->count >= NC_SNAPSHOTS_MAX)
		return nc_err_set(err, -EDQUOT, "The tenant may have %u snapshots; delete one",
			NC_SNAPSHOTS_EACH);
	draft = calloc(1, sizeof(*draft));
	if (!draft)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	draft->all = all;
	draft->fd = -EBADF;
	draft->max = max ? max : UINT64_MAX;
	(void)snprintf(draft->snapshot.tenant, sizeof(draft->snapshot.tenant), "%s", tenant);
	(void)snprintf(draft->snapshot.name, sizeof(draft->snapshot.name), "%s", name);
	(void)snprintf(draft->snapshot.sandbox, sizeof(draft->snapshot.sandbox), "%s", sandbox);
	nc_sha256_begin(&draft->content);
	nc_sha256_begin(&draft->named);
	nc_sha256_add(&draft->named, tenant, strlen(tenant) + 1);
	draft->next = all->drafts;
	all->drafts = draft;
	r = create(draft);
	if (r < 0) {
		nc_draft_free(draft);
		return nc_err_errno(err, r, "Make a snapshot");
	}
	*ret_draft = draft;
	return 0;
}

void nc_draft_free(struct nc_draft *draft)
{
	struct nc_draft **place = draft ? &draft->all->drafts : NULL;

	if (!draft)
		return;
	if (draft->syncs) {
		draft->kept = NULL;
		return;
	}
	while (*place != draft)
		place = &(*place)->next;
	*place = draft->next;
	if (draft->fd >= 0)
		(void)unlinkat(draft->all->dir_fd, draft->file, 0); /* it may have its name now */
	(void)nc_fd_close(draft->fd);
	free(draft);
}

int nc_draft_add(struct nc_draft *draft, const void *data, size_t size)
{
	struct nc_snapshot *snapshot = &draft->snapshot;
	int r;

	if (snapshot->size + size > NC_SNAPSHOT_MAX)
		return -EFBIG;
	if (snapshot->size + size > draft->max)
		return -ERANGE;
	if (nc_snapshots_used(draft->all, snapshot->tenant) + size > draft->max)
		return -EDQUOT;
	r = nc_fd_write_all(draft->fd, data, size);
	if (r < 0)
		return r;
	nc_sha256_add(&draft->content, data, size);
	nc_sha256_add(&draft->named, data, size);
	snapshot->size += size;
	return 0;
}

uint64_t nc_draft_max(const struct nc_draft *draft)
{
	return draft->max;
}

/* Its name, from what is in it. */
static void name_it(struct nc_draft *draft)
{
	unsigned char digest[NC_SHA256_SIZE];
	char hex[NC_SHA256_HEX_SIZE];

	nc_sha256_end(&draft->content, digest);
	nc_sha256_hex(digest, draft->snapshot.sha256);
	nc_sha256_end(&draft->named, digest);
	nc_sha256_hex(digest, hex);
	(void)snprintf(draft->snapshot.id, sizeof(draft->snapshot.id), "sn_%.32s", hex);
	nc_clock_stamp(draft->snapshot.created);
}

static int write_head(struct nc_draft *draft)
{
	cleanup_json json_t *head = nc_snapshot_json(&draft->snapshot);
	cleanup_free char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
	char block[HEAD_SIZE];

	if (!text)
		return -ENOMEM;
	if (strlen(text) > sizeof(block))
		return -EFBIG;
	memset(block, ' ', sizeof(block));
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): it ends with the block */
	memcpy(block, text, strlen(text));
	return pwrite(draft->fd, block, sizeof(block), 0) == sizeof(block) ? 0 : -EIO;
}

/* It is on the disk, and gets its name, unless an equal one came first. */
static int publish(struct nc_draft *draft, const struct nc_snapshot **ret_snapshot)
{
	struct nc_snapshots *all = draft->all;
	const struct nc_snapshot *equal = nc_snapshot_find(all, NULL, draft->snapshot.id);
	struct nc_snapshot *snapshot = equal ? NULL : malloc(sizeof(*snapshot));

	*ret_snapshot = equal;
	if (equal)
		return 0;
	if (!snapshot)
		return -ENOMEM;
	if (renameat(all->dir_fd, draft->file, all->dir_fd, draft->snapshot.id) < 0) {
		free(snapshot);
		return -errno;
	}
	*snapshot = draft->snapshot;
	enlist(all, snapshot);
	*ret_snapshot = snapshot;
	return 0;
}

static void finish(struct nc_draft *draft, int r)
{
	const nc_draft_kept kept = draft->kept;
	void *context = draft->context;
	const struct nc_snapshot *snapshot = NULL;

	if (r == 0 && kept)
		r = publish(draft, &snapshot);
	nc_draft_free(draft);
	if (kept)
		kept(context, r, snapshot);
}

/* In a thread of its own: nothing but the descriptor is looked at. */
static void sync_file(uv_work_t *work)
{
	struct nc_draft *draft = work->data;

	draft->error = fdatasync(draft->fd) < 0 ? -errno : 0;
}

static void on_synced(uv_work_t *work, int status)
{
	struct nc_draft *draft = work->data;

	draft->syncs = false;
	if (draft->all) {
		finish(draft, status < 0 ? status : draft->error);
		return;
	}
	(void)nc_fd_close(draft->fd); /* the next daemon removes what has no name */
	free(draft);
}

void nc_draft_keep(struct nc_draft *draft, uv_loop_t *loop, nc_draft_kept kept, void *context)
{
	int r = 0;

	draft->kept = kept;
	draft->context = context;
	name_it(draft);
	if (nc_snapshot_find(draft->all, NULL, draft->snapshot.id)) {
		finish(draft, 0);
		return;
	}
	r = write_head(draft);
	draft->sync.data = draft;
	draft->syncs = r == 0;
	if (r == 0)
		r = uv_queue_work(loop, &draft->sync, sync_file, on_synced);
	if (r < 0) {
		draft->syncs = false;
		finish(draft, r);
	}
}
