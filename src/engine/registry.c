/* Which sandboxes there are, on disk. */
#include "engine/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/tier_ids.h"
#include "config/policy_file.h"

/* Written and synced together. */
#define LOT_MAX 64U
/* Before the name of a file that is not finished. */
#define FRESH "fresh_"
#define STAMP_SIZE (NC_CLOCK_STAMP_SIZE - 1)

struct entry {
	struct entry *next;
	char id[NC_ID_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	size_t size; /* of its record */
	char *text;  /* to be written; NULL: nothing */
	bool busy;   /* a thread writes it */
	bool gone;   /* since that began */
	bool there;  /* it was written once, or found */
	nc_registry_written written;
	void *context;
};

/* What a thread does: all that it looks at. */
struct lot {
	uv_work_t work;
	struct nc_registry *registry; /* NULL: it is gone */
	uv_sem_t through;
	int dir_fd;
	size_t n;
	struct job {
		char id[NC_ID_SIZE];
		char *text;
		int fd, error;
	} job[LOT_MAX];
};

struct nc_registry {
	uv_loop_t *loop;
	int dir_fd;
	void (*say)(const char *text);
	struct entry *entries;
	struct lot *lot; /* that is being written; or NULL */
	size_t size;	 /* of all records */
	bool fails;	 /* the disk did; tried again once a second */
};

/* ---- reading ---- */

static bool is_id(const char *text)
{
	return strlen(text) == NC_ID_SIZE - 1 && strncmp(text, "sb_", 3) == 0 &&
	       strspn(text + 3, "0123456789abcdef") == NC_ID_SIZE - 4;
}

static bool is_stamp(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == STAMP_SIZE && strspn(text, "0123456789-:.TZ") == STAMP_SIZE;
}

static bool is_tenant(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && json_string_length(value) == strlen(text) &&
	       (!*text || nc_policy_is_tenant(text));
}

static bool is_tier(const json_t *value)
{
	const char *text = json_string_value(value);

	for (enum nc_tier i = 0; text && i < NC_TIER_MAX; i++)
		if (nc_streq(text, nc_tier_names[i]))
			return true;
	return false;
}

static bool is_number(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool is_bool(const json_t *value)
{
	return json_is_boolean(value);
}

static bool is_object(const json_t *value)
{
	return json_is_object(value);
}

/* Its network as it was changed since, if it was. */
static bool is_network(const json_t *value)
{
	return json_is_object(value) || json_is_null(value);
}

static const struct field {
	const char *name;
	bool (*is_good)(const json_t *value);
} fields[] = {
	{"version", is_number},
	{"tenant", is_tenant},
	{"created", is_stamp},
	{"expires", is_number}, /* seconds since 1970 */
	{"tier", is_tier},
	{"holder", is_number},
	{"box", is_number},
	{"paused", is_bool},
	{"filling", is_bool},
	{"trusted", is_bool},
	{"spec", is_object},
	{"network", is_network},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static int check(const char *id, const json_t *record, struct nacre_err *err)
{
	const char *own = json_string_value(json_object_get(record, "id"));
	json_int_t version = json_integer_value(json_object_get(record, "version"));

	if (!json_is_object(record) || !own || !nc_streq(own, id))
		return nc_err_set(err, -EINVAL, "id: it is not that of its file");
	if (version > NC_REGISTRY_VERSION + 1)
		return nc_err_set(err, -EPROTONOSUPPORT, "version: it is too new");
	if (version < 1)
		return nc_err_set(err, -EINVAL, "version: it is none");
	for (size_t i = 0; i < FIELDS; i++)
		if (!fields[i].is_good(json_object_get(record, fields[i].name)))
			return nc_err_set(err, -EINVAL,
				"%s: it is missing, or not what it should be", fields[i].name);
	if (version == NC_REGISTRY_VERSION && json_object_size(record) != FIELDS + 1)
		return nc_err_set(err, -EINVAL, "it has members that nobody has written");
	return 0;
}

int nc_registry_parse(
	const char *id, const char *text, size_t size, json_t **ret_record, struct nacre_err *err)
{
	cleanup_json json_t *record = NULL;
	int r = is_id(id) ? nc_json_parse(text, size, &record, err)
			  : nc_err_set(err, -EINVAL, "id: it is none");

	if (r == 0)
		r = check(id, record, err);
	if (r == 0)
		*ret_record = take_ptr(record);
	return r;
}

static int read_record(const struct nc_registry *registry, const char *id, json_t **ret_record,
	struct nacre_err *err)
{
	cleanup_close int fd =
		openat(registry->dir_fd, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *text = NULL;
	struct stat status;
	ssize_t n;

	if (fd < 0 && errno == ELOOP)
		return nc_err_set(err, -EINVAL, "it is a link");
	if (fd < 0 || fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Open it");
	if (!S_ISREG(status.st_mode) || status.st_size > NC_REGISTRY_RECORD_MAX)
		return nc_err_set(err, -EINVAL, "it is no file of that size");
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return nc_err_errno(err, -ENOMEM, "Read it");
	n = pread(fd, text, (size_t)status.st_size, 0);
	if (n < 0)
		return nc_err_errno(err, -errno, "Read it");
	return nc_registry_parse(id, text, (size_t)n, ret_record, err);
}

static struct entry *find(const struct nc_registry *registry, const char *id)
{
	struct entry *entry = registry->entries;

	while (entry && !nc_streq(entry->id, id))
		entry = entry->next;
	return entry;
}

static struct entry *add(struct nc_registry *registry, const json_t *record)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	(void)snprintf(entry->id, sizeof(entry->id), "%s",
		json_string_value(json_object_get(record, "id")));
	(void)snprintf(entry->tenant, sizeof(entry->tenant), "%s",
		json_string_value(json_object_get(record, "tenant")));
	entry->next = registry->entries;
	registry->entries = entry;
	return entry;
}

static void say_bad(const struct nc_registry *registry, const char *id, struct nacre_err *err)
{
	(void)nc_err_wrap(err, "The record of sandbox %s cannot be read and is %s", id,
		err->code == -EINVAL ? "removed" : "left");
	if (registry->say)
		registry->say(err->message);
}

/* One file that is there. */
static void meet(struct nc_registry *registry, const char *name,
	void (*visit)(void *context, const json_t *record), void *context)
{
	cleanup_json json_t *record = NULL;
	struct nacre_err err = {0};
	struct entry *entry = NULL;

	if (nc_text_after(name, FRESH)) { /* it was never finished */
		(void)unlinkat(registry->dir_fd, name, 0);
		return;
	}
	if (!is_id(name))
		return;
	if (read_record(registry, name, &record, &err) < 0) {
		say_bad(registry, name, &err);
		if (err.code == -EINVAL)
			(void)unlinkat(registry->dir_fd, name, 0);
		return;
	}
	entry = add(registry, record);
	if (!entry)
		return; /* it is there still for the next worker */
	entry->there = true;
	entry->size = json_dumpb(record, NULL, 0, JSON_COMPACT);
	registry->size += entry->size;
	visit(context, record);
}

void nc_registry_visit(struct nc_registry *registry,
	void (*visit)(void *context, const json_t *record), void *context)
{
	int fd = openat(registry->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (registry->say)
			registry->say("The records of sandboxes cannot be read");
		(void)nc_fd_close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		meet(registry, entry->d_name, visit, context);
}

/* ---- writing, in a thread ---- */

static int write_fresh(const struct lot *lot, struct job *job)
{
	char name[sizeof(FRESH) + NC_ID_SIZE];
	int r;

	(void)snprintf(name, sizeof(name), FRESH "%s", job->id);
	job->fd = openat(
		lot->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (job->fd < 0)
		return -errno;
	r = nc_fd_write_all(job->fd, job->text, strlen(job->text));
	return r < 0 ? r : 0;
}

/* It is on the disk, and gets its name. */
static int name_it(const struct lot *lot, struct job *job)
{
	char name[sizeof(FRESH) + NC_ID_SIZE];
	int r = job->error;

	(void)snprintf(name, sizeof(name), FRESH "%s", job->id);
	if (r == 0 && fdatasync(job->fd) < 0)
		r = -errno;
	job->fd = nc_fd_close(job->fd);
	if (r == 0 && renameat(lot->dir_fd, name, lot->dir_fd, job->id) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(lot->dir_fd, name, 0);
	return r;
}

/* All of them are written before the first is waited for: the disk takes them together. */
static void write_lot(struct lot *lot)
{
	int r;

	for (size_t i = 0; i < lot->n; i++)
		lot->job[i].error = write_fresh(lot, &lot->job[i]);
	for (size_t i = 0; i < lot->n; i++)
		lot->job[i].error = name_it(lot, &lot->job[i]);
	r = fsync(lot->dir_fd) < 0 ? -errno : 0;
	for (size_t i = 0; r < 0 && i < lot->n; i++)
		if (lot->job[i].error == 0)
			lot->job[i].error = r;
}

static void on_thread(uv_work_t *work)
{
	struct lot *lot = work->data;

	write_lot(lot);
	uv_sem_post(&lot->through);
}

static void lot_free(struct lot *lot)
{
	for (size_t i = 0; i < lot->n; i++)
		free(lot->job[i].text);
	uv_sem_destroy(&lot->through);
	free(lot);
}

/* ---- the loop's side ---- */

/* As many as wait, up to a lot of them. */
static void collect(struct nc_registry *registry, struct lot *lot)
{
	for (struct entry *e = registry->entries; e && lot->n < LOT_MAX; e = e->next) {
		struct job *job = &lot->job[lot->n];

		if (!e->text || e->busy)
			continue;
		*job = (struct job){.text = take_ptr(e->text), .fd = -EBADF};
		memcpy(job->id, e->id, sizeof(job->id));
		e->busy = true;
		lot->n++;
	}
}

static struct lot *lot_new(struct nc_registry *registry)
{
	struct lot *lot = calloc(1, sizeof(*lot));

	if (!lot)
		return NULL;
	if (uv_sem_init(&lot->through, 0) < 0) {
		free(lot);
		return NULL;
	}
	lot->work.data = lot;
	lot->registry = registry;
	lot->dir_fd = registry->dir_fd;
	collect(registry, lot);
	return lot;
}

static void entry_free(struct nc_registry *registry, struct entry *entry)
{
	struct entry **place = &registry->entries;

	while (*place != entry)
		place = &(*place)->next;
	*place = entry->next;
	registry->size -= entry->size;
	free(entry->text);
	free(entry);
}

static void settle(struct nc_registry *registry, struct job *job)
{
	struct entry *entry = find(registry, job->id);
	nc_registry_written written = entry->written;

	entry->busy = false;
	if (entry->gone) {
		(void)unlinkat(registry->dir_fd, entry->id, 0);
		entry_free(registry, entry);
		return;
	}
	entry->written = NULL;
	entry->there = entry->there || job->error == 0;
	if (job->error < 0 && !written) {
		registry->fails = true;
		if (!entry->text)
			entry->text = take_ptr(job->text);
	}
	if (written)
		written(entry->context, job->error);
}

static void begin(struct nc_registry *registry);

static void on_written(uv_work_t *work, int status)
{
	struct lot *lot = work->data;
	struct nc_registry *registry = lot->registry;
	bool failed = registry && registry->fails;

	(void)status; /* nobody cancels it */
	if (registry) {
		registry->lot = NULL;
		registry->fails = false;
		for (size_t i = 0; i < lot->n; i++)
			settle(registry, &lot->job[i]);
		if (registry->fails && !failed && registry->say)
			registry->say("Changes of sandboxes cannot be written down, which is tried "
				      "again: is the disk full?");
		if (!registry->fails)
			begin(registry);
	}
	lot_free(lot);
}

static bool has_work(const struct nc_registry *registry)
{
	for (const struct entry *e = registry->entries; e; e = e->next)
		if (e->text)
			return true;
	return false;
}

/* Without memory for it, it is begun with the next. */
static void begin(struct nc_registry *registry)
{
	if (registry->lot || !has_work(registry))
		return;
	registry->lot = lot_new(registry);
	/* it fails for a NULL alone */
	if (registry->lot &&
		uv_queue_work(registry->loop, &registry->lot->work, on_thread, on_written) < 0)
		abort();
}

static size_t size_of(const struct nc_registry *registry, const char *tenant)
{
	size_t size = 0;

	for (const struct entry *e = registry->entries; e; e = e->next)
		size += nc_streq(e->tenant, tenant) ? e->size : 0;
	return size;
}

/* Room for one of this size in place of one of that. */
static int check_room(const struct nc_registry *registry, const char *tenant, size_t before,
	size_t size, struct nacre_err *err)
{
	if (size > NC_REGISTRY_RECORD_MAX)
		return nc_err_set(err, -ENOSPC,
			"What is asked of the sandbox is longer than %u KiB",
			NC_REGISTRY_RECORD_MAX / 1024);
	if (registry->size - before + size > NC_REGISTRY_MAX ||
		(*tenant && size_of(registry, tenant) - before + size > NC_REGISTRY_EACH))
		return nc_err_set(err, -ENOSPC,
			"No room to write down one more sandbox of this size; destroy one first");
	return 0;
}

int nc_registry_put(struct nc_registry *registry, const json_t *record, nc_registry_written written,
	void *context, struct nacre_err *err)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	const char *tenant = json_string_value(json_object_get(record, "tenant"));
	cleanup_free char *text = json_dumps(record, JSON_COMPACT);
	struct entry *entry = id ? find(registry, id) : NULL;
	size_t size = text ? strlen(text) : 0;
	int r = text && id && tenant ? 0 : nc_err_errno(err, -ENOMEM, "Write a sandbox down");

	if (r == 0)
		r = check_room(registry, tenant, entry ? entry->size : 0, size, err);
	if (r == 0 && !entry)
		entry = add(registry, record);
	if (r < 0 || !entry)
		return r < 0 ? r : nc_err_errno(err, -ENOMEM, "Write a sandbox down");
	registry->size += size - entry->size;
	entry->size = size;
	free(entry->text);
	entry->text = take_ptr(text);
	if (written) {
		entry->written = written;
		entry->context = context;
	}
	begin(registry);
	return 0;
}

void nc_registry_remove(struct nc_registry *registry, const char *id)
{
	struct entry *entry = find(registry, id);

	if (is_id(id)) /* which may be foreign */
		(void)unlinkat(registry->dir_fd, id, 0);
	if (!entry)
		return;
	entry->written = NULL;
	entry->gone = true;
	nc_freep(&entry->text);
	registry->size -= entry->size;
	entry->size = 0;
	if (!entry->busy)
		entry_free(registry, entry);
}

bool nc_registry_has(const struct nc_registry *registry, const char *id)
{
	return find(registry, id);
}

bool nc_registry_was_taken(const struct nc_registry *registry, const char *id)
{
	const struct entry *entry = find(registry, id);
	struct stat status;

	return entry && entry->there &&
	       fstatat(registry->dir_fd, id, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

void nc_registry_tick(struct nc_registry *registry)
{
	begin(registry);
}

int nc_registry_new(uv_loop_t *loop, int dir_fd, void (*say)(const char *text),
	struct nc_registry **ret_registry)
{
	struct nc_registry *registry = calloc(1, sizeof(*registry));

	if (!registry)
		return -ENOMEM;
	*registry = (struct nc_registry){.loop = loop, .dir_fd = dir_fd, .say = say};
	*ret_registry = registry;
	return 0;
}

/* Who waited is not told any more; what waited is written. */
static void finish(struct nc_registry *registry)
{
	struct lot *lot = registry->lot;

	if (lot) {
		uv_sem_wait(&lot->through);
		lot->registry = NULL; /* it is freed when the loop hears of it */
		for (size_t i = 0; i < lot->n; i++) {
			struct entry *entry = find(registry, lot->job[i].id);

			entry->busy = false;
			if (entry->gone)
				(void)unlinkat(registry->dir_fd, entry->id, 0);
		}
	}
	while (has_work(registry) && (lot = lot_new(registry))) {
		write_lot(lot);
		lot_free(lot);
	}
}

void nc_registry_free(struct nc_registry *registry)
{
	if (!registry)
		return;
	finish(registry);
	(void)fsync(registry->dir_fd); /* what was removed */
	while (registry->entries)
		entry_free(registry, registry->entries);
	free(registry);
}
