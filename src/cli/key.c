/* nacre key: who may ask a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "server/keys.h"

static bool arg_json;
static const char *arg_tenant = "default", *arg_role = "execute", *arg_name = "";

static const struct nc_option create_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{.name = "name", .value = "NAME", .help = "What it is for", .text = &arg_name},
	{.name = "role",
		.value = "ROLE",
		.help = "read, execute or admin; built in: execute",
		.text = &arg_role},
	{.name = "tenant",
		.value = "TENANT",
		.help = "Whose it is; built in: default",
		.text = &arg_tenant},
	{0},
};

static const struct nc_option list_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

/* The directory, locked: of two that change the file at once one would win. */
static int enter(bool make, int *ret_fd, struct nc_keys *keys, struct nacre_err *err)
{
	cleanup_close int fd = nc_keys_dir(NULL, make, err);
	int r = fd;

	if (r == -ENOENT && !make) { /* nothing was ever served: there are none */
		*err = (struct nacre_err){0};
		*ret_fd = -EBADF;
		return 0;
	}
	if (r >= 0 && flock(fd, LOCK_EX) < 0)
		r = nc_err_errno(err, -errno, "Lock the keys");
	if (r >= 0)
		r = nc_keys_read(fd, keys, err);
	if (r >= 0)
		*ret_fd = take_fd(fd);
	return r < 0 ? r : 0;
}

static int print(json_t *value, struct nacre_err *err)
{
	return nc_json_print(stdout, value, true) < 0 ? nc_err_set(err, -EIO, "Write the answer")
						      : NC_EXIT_OK;
}

static int run_create(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_keys struct nc_keys keys = {0};
	cleanup_close int fd = -EBADF;
	char text[NC_KEY_SIZE_TEXT], quoted[NC_TEXT_QUOTED_MAX];
	enum nc_role role = nc_role_parse(arg_role);
	json_t *answer;
	int r;

	(void)cli, (void)n_words, (void)words;
	if (role == NC_ROLE_MAX)
		return nc_err_set(err, -EINVAL,
			"Option '--role': found %s, expected read, execute or admin",
			nc_text_quote(quoted, arg_role));
	if (!nc_policy_is_tenant(arg_tenant) || (*arg_name && !nc_policy_is_tenant(arg_name)))
		return nc_err_set(
			err, -EINVAL, "Names of tenants and keys have " NC_POLICY_NAME_EXPECTED);
	r = enter(true, &fd, &keys, err);
	if (r == 0)
		r = nc_keys_add(&keys, arg_tenant, role, arg_name, text, err);
	if (r == 0)
		r = nc_keys_write(fd, &keys, err);
	if (r < 0)
		return r;
	if (!arg_json) {
		nc_say(stdout, "%s\n", text);
		return NC_EXIT_OK;
	}
	answer = nc_key_json(&keys.key[keys.count - 1]);
	if (answer)
		(void)json_object_set_new(answer, "key", json_string(text));
	return print(answer, err);
}

static int run_list(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_keys struct nc_keys keys = {0};
	cleanup_close int fd = -EBADF;
	cleanup_json json_t *list = json_array();
	int r = enter(false, &fd, &keys, err);

	(void)cli, (void)n_words, (void)words;
	for (size_t i = 0; r == 0 && i < keys.count; i++) {
		const struct nc_key *key = &keys.key[i];

		if (!arg_json)
			nc_say(stdout, "%-14s %-8s %-20s %-24s %s%s%s\n", key->id,
				nc_role_names[key->role], key->tenant, key->created, key->name,
				key->revoked[0] ? "  revoked " : "", key->revoked);
		else if (json_array_append_new(list, nc_key_json(key)) < 0)
			r = nc_err_set(err, -ENOMEM, "Out of memory");
	}
	if (r < 0)
		return r;
	return arg_json ? print(json_pack("{s:O}", "keys", list), err) : NC_EXIT_OK;
}

static int run_revoke(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_keys struct nc_keys keys = {0};
	cleanup_close int fd = -EBADF;
	int r;

	(void)cli;
	if (n_words != 1)
		return nc_err_set(err, -EINVAL, "Name the key: nacre key revoke ID");
	r = enter(false, &fd, &keys, err);
	if (r == 0)
		r = nc_keys_revoke(&keys, words[0], err);
	if (r == 0)
		r = nc_keys_write(fd, &keys, err);
	return r < 0 ? r : NC_EXIT_OK;
}

static const struct nc_verb create_verb = {
	.name = "create",
	.summary = "Make a key and print it, this once",
	.arguments = "",
	.details = "Of a key only a digest is kept. A daemon that runs takes it within a second.",
	.example = "nacre key create --tenant acme --role execute",
	.options = create_options,
	.run = run_create,
};

static const struct nc_verb list_verb = {
	.name = "list",
	.summary = "List the keys",
	.arguments = "",
	.details = "Prints id, role, tenant, time of making and name of each.",
	.example = "nacre key list --json",
	.options = list_options,
	.run = run_list,
};

static const struct nc_verb revoke_verb = {
	.name = "revoke",
	.summary = "Make a key worthless",
	.arguments = "ID",
	.details =
		"A daemon that runs refuses it within a second. It stays in the list, so that a\n"
		"daemon whose last key was revoked goes on asking for one.",
	.example = "nacre key revoke 0123456789ab",
	.max_words = 1,
	.run = run_revoke,
};

static const struct nc_verb *const verbs[] = {&create_verb, &list_verb, &revoke_verb, NULL};

const struct nc_verb nc_verb_key = {
	.name = "key",
	.summary = "Make, list and revoke keys of nacre serve",
	.arguments = "VERB",
	.details =
		"With keys, every request to the daemon needs one; it says whose the request is\n"
		"and what it may. Without any, only this machine is served.",
	.example = "nacre key create --tenant acme",
	.verbs = verbs,
};
