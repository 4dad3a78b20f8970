/* Decoys. */
#include "engine/decoys.h"

#include <string.h>

#include "base/id.h"
#include "base/text.h"
#include "box/unpack.h"

/* '@' is a random letter or digit, so that no two boxes have the same and nobody knows them. */
static const struct decoy {
	const char *path, *text;
} decoys[] = {
	{".aws/credentials", "[default]\naws_access_key_id = AKIA@@@@@@@@@@@@@@@@\n"
			     "aws_secret_access_key = "
			     "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"},
	{".ssh/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\n"
			"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
			"QyNTUxOQAAACB@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
			"@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
			"@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@AQIDBA==\n"
			"-----END OPENSSH PRIVATE KEY-----\n"},
	{".kube/config", "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n"
			 "  cluster: {server: \"https://10.0.0.1:6443\"}\nusers:\n- name: admin\n"
			 "  user: {token: @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@}\n"},
	/* not .env: honest programs read that where they start */
	{".env.production",
		"DATABASE_URL=postgres://app:@@@@@@@@@@@@@@@@@@@@@@@@@@db.internal/app\n"
		"API_SECRET=@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"},
};

#define DECOYS (sizeof(decoys) / sizeof(decoys[0]))

bool nc_decoys_wanted(const struct nc_terms *terms)
{
	return terms && terms->values.decoys.number == 1;
}

/* Whether one is the other, or a directory on the way to it. */
static bool stands_in_the_way(const char *a, const char *b)
{
	size_t size = strlen(a);

	return strncmp(a, b, size) == 0 && (b[size] == '\0' || b[size] == '/');
}

static bool is_free(const struct nc_request_files *files, const char *path)
{
	for (size_t i = 0; files && i < files->count; i++)
		if (stands_in_the_way(files->file[i].path, path) ||
			stands_in_the_way(path, files->file[i].path))
			return false;
	return true;
}

/* 0, or -errno: without random numbers it would be the same everywhere. */
static int write_decoy(const char *text, struct nc_buf *out)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char bytes[256];
	size_t n = 0;
	int r = nc_random(bytes, sizeof(bytes));

	for (; r == 0 && *text; text++) {
		char c = *text;

		if (c == '@')
			c = alphabet[bytes[n++ % sizeof(bytes)] % (sizeof(alphabet) - 1)];
		nc_buf_add(out, &c, 1);
	}
	return r < 0 ? r : out->error;
}

void nc_decoys_put(const struct nc_request_files *files, struct nc_buf *stream)
{
	for (size_t i = 0; i < DECOYS; i++) {
		nc_buf_cleanup struct nc_buf text = NC_BUF(4096);

		if (is_free(files, decoys[i].path) && write_decoy(decoys[i].text, &text) == 0)
			nc_pack_add_old(stream, decoys[i].path, text.data, text.size);
	}
}

void nc_decoys_words(const struct nc_request_files *files, struct nc_word_list *argv)
{
	nc_word_add(argv, "touched");
	for (size_t i = 0; i < DECOYS; i++)
		if (is_free(files, decoys[i].path))
			nc_word_add(argv, decoys[i].path);
}

size_t nc_decoys_count(const char *said)
{
	size_t count = 0;

	for (; *said == '0' || *said == '1'; said++)
		count += *said == '1';
	return count;
}

const char *const *nc_decoys_look(void)
{
	static const char *words[DECOYS + 2] = {"renewed"};

	for (size_t i = 0; i < DECOYS; i++)
		words[i + 1] = decoys[i].path;
	return words;
}

size_t nc_decoys_count_again(const char *said, unsigned int *lost)
{
	size_t count = 0;

	for (size_t i = 0; i < DECOYS && said[i] >= '0' && said[i] <= '2'; i++) {
		unsigned int bit = 1U << i;

		count += said[i] == '1' || (said[i] == '2' && !(*lost & bit));
		*lost = said[i] == '2' ? *lost | bit : *lost & ~bit;
	}
	return count;
}
