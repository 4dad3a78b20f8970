/* API keys. */
#include "server/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/state.h"
#include "base/text.h"
#include "config/policy_file.h"
#include "kernel/privilege.h"

#define DIR_NAME "serve"
#define FILE_NAME "keys.json"
#define PREFIX "nk_"
#define ID_DIGITS (NC_KEY_ID_SIZE - 1)
#define SECRET_DIGITS 48

const char *const nc_role_names[NC_ROLE_MAX] = {"none", "read", "execute", "admin"};

enum nc_role nc_role_parse(const char *name)
{
	enum nc_role role = NC_ROLE_READ;

	while (role < NC_ROLE_MAX && !nc_streq(name, nc_role_names[role]))
		role++;
	return role;
}

int nc_keys_dir(const char *state_dir, bool make, struct nacre_err *err)
{
	cleanup_close int state_fd = nc_state_open(state_dir, make, err);
	bool ranges = false;
	cleanup_close int fd = -EBADF;

	if (state_fd < 0)
		return state_fd;
	if (make && mkdirat(state_fd, DIR_NAME, 0750) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Make " DIR_NAME " in the state directory");
	fd = nc_path_open(state_fd, DIR_NAME, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return nc_err_errno(err, fd, "Open " DIR_NAME " in the state directory");
	/* the daemon reads it as a user of its own, and writes nothing there */
	if (make && nc_privilege_ranges(&ranges, err) == 0 && ranges &&
		fchown(fd, 0, NC_WORKER_ID) < 0)
		return nc_err_errno(err, -errno, "Let the daemon read " DIR_NAME);
	return take_fd(fd);
}

static int parse_key(const json_t *value, struct nc_key *ret_key)
{
	const char *id, *hash, *tenant, *name = "", *role, *created, *revoked = "";
	struct nc_key key = {0};

	if (json_unpack((json_t *)(uintptr_t)value, "{s:s, s:s, s:s, s:s, s:s, s?s, s?s !}", "id",
		    &id, "sha256", &hash, "tenant", &tenant, "role", &role, "created", &created,
		    "name", &name, "revoked", &revoked) < 0)
		return -EINVAL;
	key.role = nc_role_parse(role);
	if (strlen(id) != ID_DIGITS || strlen(hash) != 2 * NC_SHA256_SIZE ||
		nc_sha256_parse(hash, key.hash) < 0 || !nc_policy_is_tenant(tenant) ||
		(*name && !nc_policy_is_tenant(name)) || key.role == NC_ROLE_MAX ||
		strlen(created) >= sizeof(key.created) || strlen(revoked) >= sizeof(key.revoked))
		return -EINVAL;
	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	(void)snprintf(key.tenant, sizeof(key.tenant), "%s", tenant);
	(void)snprintf(key.name, sizeof(key.name), "%s", name);
	(void)snprintf(key.created, sizeof(key.created), "%s", created);
	(void)snprintf(key.revoked, sizeof(key.revoked), "%s", revoked);
	*ret_key = key;
	return 0;
}

static int parse_keys(const json_t *file, struct nc_keys *keys, struct nacre_err *err)
{
	const json_t *list = json_object_get(file, "keys");
	size_t n = json_array_size(list);
	int r = json_is_array(list) && n <= NC_KEYS_MAX ? 0 : -EINVAL;

	keys->key = r == 0 ? calloc(n + 1, sizeof(*keys->key)) : NULL;
	for (; r == 0 && keys->key && keys->count < n; keys->count++)
		r = parse_key(json_array_get(list, keys->count), &keys->key[keys->count]);
	if (r < 0)
		return nc_err_set(err, r, FILE_NAME ": key %zu is none", keys->count);
	return keys->key ? 0 : nc_err_set(err, -ENOMEM, "Out of memory");
}

int nc_keys_read(int dir_fd, struct nc_keys *ret_keys, struct nacre_err *err)
{
	cleanup_keys struct nc_keys keys = {0};
	cleanup_json json_t *file = NULL;
	cleanup_free char *text = NULL;
	size_t size = 0;
	int r = nc_path_read(dir_fd, FILE_NAME, NC_KEYS_FILE_MAX, &text, &size);

	if (r == 0) {
		if (fstatat(dir_fd, FILE_NAME, &keys.from, AT_SYMLINK_NOFOLLOW) < 0)
			return nc_err_errno(err, -errno, "Look at " FILE_NAME);
		r = nc_json_parse(text, size, &file, err);
		if (r == 0)
			r = parse_keys(file, &keys, err);
		if (r < 0)
			return r;
	} else if (r != -ENOENT) {
		return nc_err_errno(err, r, "Read " FILE_NAME);
	}
	*ret_keys = keys;
	keys = (struct nc_keys){0};
	return 0;
}

void nc_keys_done(struct nc_keys *keys)
{
	nc_freep(&keys->key);
	keys->count = 0;
}

bool nc_keys_changed(int dir_fd, const struct nc_keys *keys)
{
	struct stat now;

	/* a file that is gone is no leave for everybody */
	if (fstatat(dir_fd, FILE_NAME, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return now.st_ino != keys->from.st_ino || now.st_size != keys->from.st_size ||
	       now.st_mtim.tv_sec != keys->from.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != keys->from.st_mtim.tv_nsec;
}

static json_t *stored_json(const struct nc_key *key)
{
	char hash[NC_SHA256_HEX_SIZE];
	json_t *value = nc_key_json(key);

	nc_sha256_hex(key->hash, hash);
	if (value && json_object_set_new(value, "sha256", json_string(hash)) < 0) {
		json_decref(value);
		value = NULL;
	}
	return value;
}

int nc_keys_write(int dir_fd, const struct nc_keys *keys, struct nacre_err *err)
{
	cleanup_json json_t *list = json_array();
	cleanup_json json_t *file = json_pack("{s:i, s:O}", "version", 1, "keys", list);
	cleanup_free char *text = NULL;
	cleanup_close int fd = -EBADF;
	bool ranges = false;
	int r = file ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < keys->count; i++)
		r = json_array_append_new(list, stored_json(&keys->key[i]));
	text = r == 0 ? json_dumps(file, JSON_INDENT(1)) : NULL;
	r = text ? nc_path_write(dir_fd, FILE_NAME, text, strlen(text), 0640) : -ENOMEM;
	if (r == 0 && nc_privilege_ranges(&ranges, err) == 0 && ranges) {
		fd = nc_path_open(dir_fd, FILE_NAME, O_RDONLY, 0);
		r = fd < 0 ? fd : fchown(fd, 0, NC_WORKER_ID) < 0 ? -errno : 0;
	}
	return r < 0 ? nc_err_errno(err, r, "Write " FILE_NAME) : 0;
}

static int digits(char *out, size_t n)
{
	unsigned char bytes[SECRET_DIGITS / 2];
	int r = nc_random(bytes, n / 2);

	for (size_t i = 0; r == 0 && i < n / 2; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

int nc_keys_add(struct nc_keys *keys, const char *tenant, enum nc_role role, const char *name,
	char ret_text[static NC_KEY_SIZE_TEXT], struct nacre_err *err)
{
	char secret[SECRET_DIGITS + 1];
	struct nc_key *more, key = {.role = role};
	int r;

	if (keys->count >= NC_KEYS_MAX)
		return nc_err_set(err, -ENOSPC, "There are %u keys already", NC_KEYS_MAX);
	more = reallocarray(keys->key, keys->count + 1, sizeof(*more));
	if (!more)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	keys->key = more;
	r = digits(key.id, ID_DIGITS);
	if (r == 0)
		r = digits(secret, SECRET_DIGITS);
	if (r < 0)
		return nc_err_errno(err, r, "Make a key");
	(void)snprintf(ret_text, NC_KEY_SIZE_TEXT, PREFIX "%s_%s", key.id, secret);
	explicit_bzero(secret, sizeof(secret));
	nc_sha256(ret_text, strlen(ret_text), key.hash);
	(void)snprintf(key.tenant, sizeof(key.tenant), "%s", tenant);
	(void)snprintf(key.name, sizeof(key.name), "%s", name);
	nc_clock_stamp(key.created);
	keys->key[keys->count++] = key;
	return 0;
}

int nc_keys_revoke(struct nc_keys *keys, const char *id, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	const char *bare = nc_text_after(id, PREFIX);

	for (size_t i = 0; i < keys->count; i++) {
		if (!nc_streq(keys->key[i].id, bare ? bare : id))
			continue;
		if (!keys->key[i].revoked[0])
			nc_clock_stamp(keys->key[i].revoked);
		return 0;
	}
	return nc_err_set(err, -ENOENT, "There is no key %s", nc_text_quote(quoted, id));
}

const struct nc_key *nc_keys_find(const struct nc_keys *keys, const char *text)
{
	unsigned char hash[NC_SHA256_SIZE];
	const char *id = nc_text_after(text, PREFIX);

	if (strlen(text) != NC_KEY_SIZE_TEXT - 1 || !id || id[ID_DIGITS] != '_')
		return NULL;
	nc_sha256(text, NC_KEY_SIZE_TEXT - 1, hash);
	for (size_t i = 0; i < keys->count; i++)
		if (strncmp(keys->key[i].id, id, ID_DIGITS) == 0 &&
			nc_sha256_equal(keys->key[i].hash, hash) && !keys->key[i].revoked[0])
			return &keys->key[i];
	return NULL;
}

json_t *nc_key_json(const struct nc_key *key)
{
	json_t *value = json_pack("{s:s, s:s, s:s, s:s}", "id", key->id, "tenant", key->tenant,
		"role", nc_role_names[key->role], "created", key->created);

	if (value && key->name[0])
		(void)json_object_set_new(value, "name", json_string(key->name));
	if (value && key->revoked[0])
		(void)json_object_set_new(value, "revoked", json_string(key->revoked));
	return value;
}
