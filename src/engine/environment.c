/* Environments: the store of them. */
#include "engine/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "box/store.h"
#include "engine/installer.h"
#include "engine/owner.h"
#include "runtime/runtime.h"

#define MB (1024ULL * 1024)

/* Raise it when what is built from the same packages differs from before. */
#define FORMAT "2"

#define BUILD_PREFIX ".build-"
#define LAYER "layer"
#define LOCK "lock.json"
#define USED "used"
/* A lock file: 64 packages and what they need. */
#define LOCK_MAX (4U << 20)
/* Environments that are looked at; each takes a directory. */
#define ENTRIES_MAX 65536U
/* There is room for as many at most. */
#define COUNT_MAX 4096U

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY)

void nc_environments_init(struct nc_environments *all)
{
	*all = (struct nc_environments){.store_fd = -EBADF};
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		all->source[i].fd = -EBADF;
}

void nc_environments_close(struct nc_environments *all)
{
	all->store_fd = nc_fd_close(all->store_fd);
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		all->source[i].fd = nc_fd_close(all->source[i].fd);
}

int nc_environments_open(struct nc_environments *all, const struct nc_config *config, bool make,
	bool ranges, struct nacre_err *err)
{
	int fd = nc_store_open("environments", make, ranges, err);

	if (fd < 0)
		return fd;
	all->store_fd = fd;
	all->max_bytes = config->main.environments.max_mb.number * MB;
	return 0;
}

static int open_source(struct nc_environments *all, enum nc_language language,
	const struct nc_packages_config *config, struct nacre_err *err)
{
	const struct nc_value *value = &config->files;
	char quoted[NC_TEXT_QUOTED_MAX];
	int fd;

	all->source[language].config = config;
	if (value->n_list == 0)
		return 0;
	/* to read: the spawner takes no mere path descriptor */
	fd = open(value->list[0], DIR_FLAGS | O_CLOEXEC);
	if (fd < 0)
		return nc_err_errno(err, -errno, "%s: %s", nc_installer_of(language)->source_key,
			nc_text_quote(quoted, value->list[0]));
	all->source[language].fd = fd;
	all->source[language].path = value->list[0];
	return 0;
}

int nc_environments_open_source(
	struct nc_environments *all, const struct nc_config *config, struct nacre_err *err)
{
	int r = open_source(all, NC_PYTHON, &config->main.packages.python, err);

	return r < 0 ? r : open_source(all, NC_JAVASCRIPT, &config->main.packages.javascript, err);
}

static void take_source(struct nc_environments *all, const struct nc_packages_config *config,
	enum nc_language i, int fd)
{
	all->source[i].config = config;
	all->source[i].fd = fd;
	all->source[i].path = config->files.n_list > 0 ? config->files.list[0] : NULL;
}

void nc_environments_take(struct nc_environments *all, const struct nc_config *config, int store_fd,
	int python_fd, int javascript_fd)
{
	all->store_fd = store_fd;
	all->max_bytes = config->main.environments.max_mb.number * MB;
	take_source(all, &config->main.packages.python, NC_PYTHON, python_fd);
	take_source(all, &config->main.packages.javascript, NC_JAVASCRIPT, javascript_fd);
}

bool nc_environments_have_index(const struct nc_environments *all, enum nc_language language)
{
	return all->source[language].config && all->source[language].config->index.n_list > 0;
}

bool nc_environments_have_source(const struct nc_environments *all, enum nc_language language)
{
	return all->source[language].fd >= 0 || nc_environments_have_index(all, language);
}

uint64_t nc_environments_each(const struct nc_environments *all)
{
	return all->max_bytes < NC_ENVIRONMENT_MAX ? all->max_bytes : NC_ENVIRONMENT_MAX;
}

static int by_text(const void *a, const void *b)
{
	char *const *left = a, *const *right = b;

	return strcmp(*left, *right);
}

/* Python's names are the same with any case, and '-', '_' and '.' are one: PEP 503. */
static void normalise(char *package)
{
	size_t name = strcspn(package, "[<>=!~,"), out = 0;

	for (size_t i = 0; i < name; i++) {
		bool divides = strchr("-_.", package[i]) != NULL;
		char c = package[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (divides)
			c = '-';
		if (!divides || out == 0 || package[out - 1] != '-')
			package[out++] = c;
	}
	memmove(package + out, package + name, strlen(package + name) + 1);
}

/* The packages in one form and order, each once. */
static int add_packages(struct nc_digest *digest, enum nc_language language,
	const char *const *packages, size_t n_packages)
{
	cleanup_free char **sorted = calloc(n_packages + 1, sizeof(*sorted));
	int r = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n_packages; i++) {
		sorted[i] = strdup(packages[i]);
		r = sorted[i] ? 0 : -ENOMEM;
		if (sorted[i] && language == NC_PYTHON)
			normalise(sorted[i]);
	}
	if (r == 0)
		qsort(sorted, n_packages, sizeof(*sorted), by_text);
	for (size_t i = 0; r == 0 && i < n_packages; i++)
		if (i == 0 || !nc_streq(sorted[i], sorted[i - 1]))
			nc_digest_text(digest, sorted[i]);
	for (size_t i = 0; sorted && i < n_packages; i++)
		free(sorted[i]);
	return r;
}

void nc_environment_key(const struct nc_environments *all, const char *tenant,
	enum nc_language language, const char *const *packages, size_t n_packages,
	char key[static NC_KEY_SIZE])
{
	const struct nc_installer *installer =
		n_packages > 0 ? nc_installer_of(language) : nc_warmer_of(language);
	struct nc_digest *digest = nc_owner_digest(
		n_packages > 0 ? NC_STORE_ENVIRONMENTS : NC_STORE_BUILD_CACHES, tenant);
	int r;

	nc_digest_text(digest, FORMAT);
	nc_digest_text(digest, nc_runtimes[language]->name);
	nc_digest_program(digest, installer->interpreter);
	if (n_packages == 0)
		nc_digest_text(digest, installer->install);
	nc_digest_text(digest, all->source[language].path ? all->source[language].path : "");
	for (size_t i = 0; nc_environments_have_index(all, language) &&
			   i < all->source[language].config->index.n_list;
		i++)
		nc_digest_text(digest, all->source[language].config->index.list[i]);
	r = add_packages(digest, language, packages, n_packages);
	nc_digest_end(digest, key);
	if (r < 0)
		key[0] = '\0';
}

static bool is_key(const char *name)
{
	return strlen(name) == NC_KEY_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == NC_KEY_SIZE - 1;
}

void nc_environment_init(struct nc_environment *environment)
{
	*environment = (struct nc_environment){.dir_fd = -EBADF, .layer_fd = -EBADF};
}

void nc_environment_close(struct nc_environment *environment)
{
	environment->dir_fd = nc_fd_close(environment->dir_fd);
	environment->layer_fd = nc_fd_close(environment->layer_fd);
	json_decref(environment->lock);
	environment->lock = NULL;
}

static int read_lock(int dir_fd, json_t **ret_lock)
{
	cleanup_free char *text = NULL;
	struct nacre_err ignored = {0};
	size_t size;
	int r = nc_path_read(dir_fd, LOCK, LOCK_MAX, &text, &size);

	return r < 0 ? r : nc_json_parse(text, size, ret_lock, &ignored);
}

/* Opens and locks an environment: what has this name now, and keeps it. */
static int open_locked(int store_fd, const char *key, int lock)
{
	cleanup_close int fd = is_key(key) ? nc_path_open(store_fd, key, DIR_FLAGS, 0) : -ENOENT;
	struct stat opened, named;

	if (fd < 0)
		return fd;
	if (flock(fd, lock | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* between the two it may have been removed, by somebody who had the lock */
	if (fstat(fd, &opened) < 0 || fstatat(store_fd, key, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return opened.st_ino == named.st_ino ? take_fd(fd) : -ENOENT;
}

/* The filter of the worker knows no utimensat(): a write does it. */
static void note_use(int dir_fd)
{
	cleanup_close int fd = nc_path_open(dir_fd, USED, O_WRONLY | O_CREAT, 0600);

	if (fd >= 0) /* or it goes sooner than it might */
		(void)nc_fd_write_all(fd, "1", 1);
}

int nc_environment_open(
	const struct nc_environments *all, const char *key, struct nc_environment *ret_environment)
{
	struct nc_environment found;
	int r;

	nc_environment_init(&found);
	r = found.dir_fd = open_locked(all->store_fd, key, LOCK_SH);
	if (r >= 0)
		r = read_lock(found.dir_fd, &found.lock);
	if (r >= 0)
		r = found.layer_fd = nc_path_open(found.dir_fd, LAYER, DIR_FLAGS, 0);
	if (r < 0) {
		nc_environment_close(&found);
		return r == -EBUSY ? -ENOENT : r; /* locked by who removes it */
	}
	note_use(found.dir_fd);
	(void)snprintf(found.key, sizeof(found.key), "%s", key);
	*ret_environment = found;
	return 0;
}

int nc_environment_lock(const struct nc_environments *all, const char *key)
{
	char name[sizeof(BUILD_PREFIX) + NC_KEY_SIZE];
	cleanup_close int fd = -EBADF;
	struct stat opened, named;

	(void)snprintf(name, sizeof(name), BUILD_PREFIX "%s", key);
	fd = nc_path_open(all->store_fd, name, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	/* who had it before us has removed the name that we opened */
	if (fstat(fd, &opened) < 0 ||
		fstatat(all->store_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		opened.st_ino != named.st_ino)
		return -EAGAIN;
	return take_fd(fd);
}

void nc_environment_unlock(const struct nc_environments *all, const char *key, int lock_fd)
{
	char name[sizeof(BUILD_PREFIX) + NC_KEY_SIZE];

	if (lock_fd < 0)
		return;
	(void)snprintf(name, sizeof(name), BUILD_PREFIX "%s", key);
	(void)unlinkat(all->store_fd, name, 0); /* while it is ours; else it is swept */
	(void)nc_fd_close(lock_fd);
}

static int write_lock(int root_fd, const json_t *lock)
{
	cleanup_free char *text = json_dumps(lock, JSON_INDENT(2) | JSON_SORT_KEYS);

	return text ? nc_path_write(root_fd, LOCK, text, strlen(text), 0600) : -ENOMEM;
}

int nc_environment_keep(const struct nc_environments *all, const struct nc_staging *stage,
	const char *key, json_t *lock, struct nacre_err *err)
{
	cleanup_close int root_fd = nc_path_open(stage->dir_fd, NC_STAGING_ROOT, DIR_FLAGS, 0);
	uint64_t bytes = root_fd < 0 ? 0 : nc_staging_measure(root_fd, LAYER);
	int r;

	if (bytes > nc_environments_each(all))
		return nc_err_set(err, -EFBIG, "These packages take more than %llu MB",
			(unsigned long long)(nc_environments_each(all) / MB));
	if (json_object_set_new(lock, "size", json_integer((json_int_t)bytes)) < 0)
		return nc_err_errno(err, -ENOMEM, "Write " LOCK);
	r = root_fd < 0 ? root_fd : write_lock(root_fd, lock);
	if (r < 0)
		return nc_err_errno(err, r, "Write " LOCK);
	note_use(root_fd);
	r = nc_environment_make_room(all, key, bytes, err);
	if (r < 0)
		return r;
	r = nc_staging_commit(all->store_fd, stage, key);
	return r < 0 ? nc_err_errno(err, r, "Name the environment") : 0;
}

/* An entry, and what it points to. */
struct entry {
	struct nc_environment_entry entry;
	char key[NC_KEY_SIZE];
	json_t *lock;
};

static int by_use(const void *a, const void *b)
{
	const struct timespec *left = &((const struct entry *)a)->entry.used;
	const struct timespec *right = &((const struct entry *)b)->entry.used;

	if (left->tv_sec != right->tv_sec)
		return left->tv_sec < right->tv_sec ? -1 : 1;
	return left->tv_nsec < right->tv_nsec ? -1 : left->tv_nsec > right->tv_nsec;
}

/* What is broken has no lock file and counts for nothing; it is removed first. */
static int look_at(int store_fd, const char *key, struct entry *ret_entry)
{
	cleanup_close int fd = nc_path_open(store_fd, key, DIR_FLAGS, 0);
	struct stat status;

	if (fd < 0)
		return fd;
	*ret_entry = (struct entry){0};
	(void)snprintf(ret_entry->key, sizeof(ret_entry->key), "%s", key);
	if (fstatat(fd, USED, &status, AT_SYMLINK_NOFOLLOW) == 0)
		ret_entry->entry.used = status.st_mtim;
	if (read_lock(fd, &ret_entry->lock) == 0) {
		json_int_t size = json_integer_value(json_object_get(ret_entry->lock, "size"));

		ret_entry->entry.bytes = size > 0 ? (uint64_t)size : 0;
	}
	return 0;
}

static int collect(int store_fd, struct entry **ret_entries, size_t *ret_count)
{
	cleanup_closedir DIR *dir = nc_staging_list(store_fd, ".");
	struct entry *entries = NULL;
	size_t count = 0;

	if (!dir)
		return -errno;
	for (struct dirent *name = readdir(dir); name && count < ENTRIES_MAX; name = readdir(dir)) {
		struct entry *grown;

		if (!is_key(name->d_name))
			continue;
		grown = reallocarray(entries, count + 1, sizeof(*entries));
		if (!grown)
			break; /* those that are known */
		entries = grown;
		count += look_at(store_fd, name->d_name, &entries[count]) == 0;
	}
	if (count > 0)
		qsort(entries, count, sizeof(*entries), by_use);
	*ret_entries = entries;
	*ret_count = count;
	return 0;
}

int nc_environment_visit(const struct nc_environments *all,
	int (*visit)(void *context, const struct nc_environment_entry *entry), void *context)
{
	struct entry *entries = NULL;
	size_t count = 0;
	int r = collect(all->store_fd, &entries, &count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		entries[i].entry.key = entries[i].key;
		entries[i].entry.lock = entries[i].lock;
		if (r >= 0)
			r = visit(context, &entries[i].entry);
		json_decref(entries[i].lock);
	}
	free(entries);
	return r < 0 ? r : 0;
}

int nc_environment_remove(const struct nc_environments *all, const char *key, struct nacre_err *err)
{
	cleanup_close int fd = open_locked(all->store_fd, key, LOCK_EX);

	if (fd == -EBUSY)
		return nc_err_set(err, fd, "The environment %.12s is in use", key);
	if (fd == -ENOENT)
		return nc_err_set(err, fd, "There is no environment '%s'", key);
	return fd < 0 ? nc_err_errno(err, fd, "Open the environment %.12s", key)
		      : nc_staging_remove(all->store_fd, key, err);
}

struct room {
	const struct nc_environments *all;
	const char *owner; /* whose share it is about; "": nobody's */
	uint64_t bytes;	   /* that all, or all of the owner's, take */
	uint64_t most;
};

/* A small one takes some room as well: whoever makes room looks at all of them. */
static uint64_t counts_for(const struct nc_environments *all, uint64_t bytes)
{
	uint64_t least = all->max_bytes / COUNT_MAX;

	return bytes > least ? bytes : least;
}

static bool is_meant(const struct room *room, const struct nc_environment_entry *entry)
{
	return strncmp(entry->key, room->owner, NC_KEY_OWNER) == 0 || !*room->owner;
}

static int add_bytes(void *context, const struct nc_environment_entry *entry)
{
	struct room *room = context;

	if (is_meant(room, entry))
		room->bytes += counts_for(room->all, entry->bytes);
	return 0;
}

static int evict(void *context, const struct nc_environment_entry *entry)
{
	struct nacre_err ignored = {0}; /* in use, or it would not go: the next one then */
	struct room *room = context;

	if (room->bytes > room->most && is_meant(room, entry) &&
		nc_environment_remove(room->all, entry->key, &ignored) == 0)
		room->bytes -= counts_for(room->all, entry->bytes);
	return 0;
}

/* Removes what was not used for longest of the owner's until wanted bytes more fit into most. */
static int make_room(const struct nc_environments *all, const char *owner, uint64_t most,
	uint64_t wanted, struct nacre_err *err)
{
	struct room room = {.all = all, .owner = owner, .most = wanted < most ? most - wanted : 0};
	int r = nc_environment_visit(all, add_bytes, &room);

	if (r == 0 && room.bytes > room.most)
		r = nc_environment_visit(all, evict, &room);
	if (r < 0)
		return nc_err_errno(err, r, "Look at the environments");
	return room.bytes <= room.most ? 0 : -ENOSPC;
}

int nc_environment_make_room(
	const struct nc_environments *all, const char *key, uint64_t wanted, struct nacre_err *err)
{
	uint64_t counts = *key ? counts_for(all, wanted) : wanted;
	int r = *key ? make_room(all, key, all->max_bytes / 4, counts, err) : 0;

	if (r == 0 || r == -ENOSPC) /* one that is larger than the share is not refused for that */
		r = make_room(all, "", all->max_bytes, counts, err);
	return r != -ENOSPC ? r
			    : nc_err_set(err, r,
				      "The environments that are in use leave no room for another: "
				      "environments.max_mb is %llu",
				      (unsigned long long)(all->max_bytes / MB));
}

void nc_environment_sweep(const struct nc_environments *all)
{
	cleanup_closedir DIR *dir = nc_staging_list(all->store_fd, ".");

	for (struct dirent *name = dir ? readdir(dir) : NULL; name; name = readdir(dir)) {
		const char *key = nc_text_after(name->d_name, BUILD_PREFIX);
		int fd = key && is_key(key) ? nc_environment_lock(all, key) : -ENOENT;

		nc_environment_unlock(all, key, fd);
	}
	nc_staging_sweep(all->store_fd);
}
