/* What is kept for boxes: environments of packages, and images. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "box/image.h"
#include "engine/environment.h"
#include "engine/owner.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"
#include "server/writing.h"

/* More are not listed: a page of people's size, and no long walk. */
#define LISTED_MAX 1000U

static void put_time(char out[static 32], time_t at)
{
	struct tm parts;

	(void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
}

struct listing {
	const char *tenant; /* who asks; NULL: an administrator */
	json_t *list;
};

/* What has lost its lock file is nobody's. */
static bool is_shown(const struct listing *listing, const struct nc_environment_entry *entry)
{
	const char *owner = json_string_value(json_object_get(entry->lock, "tenant"));

	return json_array_size(listing->list) < LISTED_MAX &&
	       (owner ? nc_owner_sees(NC_STORE_ENVIRONMENTS, owner, listing->tenant)
		      : !listing->tenant);
}

static int add_environment(void *context, const struct nc_environment_entry *entry)
{
	const struct listing *listing = context;
	char used[32];

	if (!is_shown(listing, entry))
		return 0;
	put_time(used, entry->used.tv_sec);
	return json_array_append_new(listing->list,
		       json_pack("{s:s, s:I, s:s, s:O?, s:O?, s:O?}", "key", entry->key, "bytes",
			       (json_int_t)entry->bytes, "used", used, "tenant",
			       json_object_get(entry->lock, "tenant"), "language",
			       json_object_get(entry->lock, "language"), "asked",
			       json_object_get(entry->lock, "asked"))) < 0
		       ? -ENOMEM
		       : 0;
}

/* What a listing needs, before the name of the tenant. */
struct asked {
	const struct nc_environments *environments; /* NULL: there are none */
	bool by_admin;
};

static void write_environments(const struct nc_buf *data, struct nc_buf *out)
{
	struct asked asked;
	cleanup_json json_t *list = json_array(), *reply = json_pack("{s:O}", "environments", list);
	struct listing listing = {.list = list};

	memcpy(&asked, nc_buf_text(data), sizeof(asked));
	if (!asked.by_admin)
		listing.tenant = nc_buf_text(data) + sizeof(asked);
	if (asked.environments &&
		nc_environment_visit(asked.environments, add_environment, &listing) < 0)
		json_decref(take_ptr(reply));
	nc_json_dump(reply, out);
}

/* Each has a file to be read, and there may be thousands. */
NC_REST(environments)
{
	const struct asked asked = {
		server->setup.environments, exchange->caller.role == NC_ROLE_ADMIN};
	struct nc_buf data = NC_BUF(sizeof(asked) + NC_NAME_MAX);

	nc_buf_add(&data, &asked, sizeof(asked));
	nc_buf_adds(&data, exchange->caller.tenant);
	nc_writing_begin(server, exchange, &data, true, write_environments);
}

/* By name and age alone: their sizes are the work of a walk through all of them. */
static int add_images(int store_fd, json_t *list)
{
	cleanup_close int fd = nc_fd_dup(store_fd);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct nacre_err ignored;

	if (!dir)
		return fd < 0 ? fd : -errno;
	(void)take_fd(fd);
	rewinddir(dir);
	while (json_array_size(list) < LISTED_MAX && (entry = readdir(dir))) {
		struct stat status;
		char imported[32];

		if (nc_image_name_check(entry->d_name, &ignored) < 0 ||
			fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		put_time(imported, status.st_mtime);
		if (json_array_append_new(list, json_pack("{s:s, s:s}", "name", entry->d_name,
							"imported", imported)) < 0)
			return -ENOMEM;
	}
	return 0;
}

NC_REST(images)
{
	json_t *list = json_pack("[{s:s, s:n}]", "name", NC_IMAGE_HOST, "imported");
	struct nacre_err err = {0};
	int r = list && server->setup.image_store_fd >= 0
			? add_images(server->setup.image_store_fd, list)
			: 0;

	if (r < 0) {
		json_decref(list);
		nc_err_errno(&err, r, "List the images");
		nc_problem_err(exchange, &err);
		return;
	}
	nc_reply_json(exchange, 200, json_pack("{s:o}", "images", list));
}
