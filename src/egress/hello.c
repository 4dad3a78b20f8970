/* The first message of TLS (RFC 8446, sections 4 and 5; RFC 6066, section 3). */
#include "egress/hello.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define RECORD_HEAD 5U
#define RECORD_HANDSHAKE 22
#define RECORD_MAX 16384U
#define MESSAGE_HEAD 4U
#define MESSAGE_CLIENT_HELLO 1
#define MESSAGE_MAX 16384U
#define RANDOM_SIZE 32U
#define EXTENSION_NAME 0
#define EXTENSION_ECH 0xfe0d
#define NAME_IS_HOST 0

/* Bytes that are still to be read; an over-long piece leaves an error behind. */
struct bytes {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static size_t number(struct bytes *in, size_t width)
{
	size_t value = 0;

	if (in->left < width) {
		in->bad = true;
		in->left = 0;
		return 0;
	}
	for (size_t i = 0; i < width; i++)
		value = value << 8 | in->at[i];
	in->at += width;
	in->left -= width;
	return value;
}

/* A piece with its length in front. */
static struct bytes piece(struct bytes *in, size_t width)
{
	size_t size = number(in, width);
	struct bytes part = {.at = in->at, .left = size};

	if (size > in->left) {
		in->bad = true;
		return (struct bytes){.at = in->at, .bad = true};
	}
	in->at += size;
	in->left -= size;
	return part;
}

static void skip(struct bytes *in, size_t size)
{
	if (size > in->left) {
		in->bad = true;
		size = in->left;
	}
	in->at += size;
	in->left -= size;
}

/* One name of one kind, and nothing behind it. */
static int read_name(struct bytes extension, struct nc_hello *hello)
{
	struct bytes list = piece(&extension, 2);
	const size_t kind = number(&list, 1);
	const struct bytes name = piece(&list, 2);

	if (extension.bad || list.bad || extension.left > 0 || list.left > 0 || hello->named ||
		kind != NAME_IS_HOST)
		return -EBADMSG;
	if (nc_host_parse((const char *)name.at, name.left, &hello->host) < 0 ||
		hello->host.kind != NC_HOST_NAME)
		return -EBADMSG;
	hello->named = true;
	return 0;
}

static int read_extensions(struct bytes extensions, struct nc_hello *hello)
{
	while (extensions.left > 0 && !extensions.bad) {
		const size_t type = number(&extensions, 2);
		const struct bytes body = piece(&extensions, 2);
		int r = 0;

		if (extensions.bad)
			break;
		if (type == EXTENSION_NAME)
			r = read_name(body, hello);
		hello->hidden = hello->hidden || type == EXTENSION_ECH;
		if (r < 0)
			return r;
	}
	return extensions.bad ? -EBADMSG : 0;
}

static int read_message(struct bytes in, struct nc_hello *hello)
{
	skip(&in, 2); /* the version; TLS 1.3 has it in an extension */
	skip(&in, RANDOM_SIZE);
	(void)piece(&in, 1); /* session */
	(void)piece(&in, 2); /* ciphers */
	(void)piece(&in, 1); /* compression */
	if (in.bad)
		return -EBADMSG;
	if (in.left > 0) {
		const struct bytes extensions = piece(&in, 2);
		int r = in.bad ? -EBADMSG : read_extensions(extensions, hello);

		if (r < 0)
			return r;
	}
	return in.left > 0 ? -EBADMSG : 0;
}

/* The size of the message by its head, if that is there; the head is at the front of the first
 * record. */
static int check_head(const unsigned char *message, size_t have, size_t *ret_size)
{
	if (have >= 1 && message[0] != MESSAGE_CLIENT_HELLO)
		return -EBADMSG;
	if (have < MESSAGE_HEAD)
		return 0;
	*ret_size = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
	return *ret_size > MESSAGE_MAX - MESSAGE_HEAD ? -EBADMSG : 1;
}

int nc_hello_parse(const unsigned char *data, size_t size, struct nc_hello *ret_hello)
{
	unsigned char message[MESSAGE_MAX];
	struct nc_hello hello = {0};
	size_t have = 0, at = 0, wanted = 0;
	int r;

	for (;;) {
		const unsigned char *head = data + at;
		const size_t left = size - at;
		size_t record, taken;

		if ((left >= 1 && head[0] != RECORD_HANDSHAKE) || (left >= 2 && head[1] != 3))
			return -EBADMSG;
		if (left < RECORD_HEAD)
			return 0;
		record = (size_t)head[3] << 8 | head[4];
		if (record == 0 || record > RECORD_MAX)
			return -EBADMSG;
		taken = left - RECORD_HEAD < record ? left - RECORD_HEAD : record;
		if (taken > sizeof(message) - have)
			return -EBADMSG;
		memcpy(message + have, head + RECORD_HEAD, taken);
		have += taken;
		r = check_head(message, have, &wanted);
		if (r < 0)
			return r;
		if (r > 0 && have >= MESSAGE_HEAD + wanted) {
			/* nothing may follow it in its record */
			if (taken < record || have > MESSAGE_HEAD + wanted)
				return -EBADMSG;
			break;
		}
		if (taken < record)
			return 0;
		at += RECORD_HEAD + record;
	}
	r = read_message((struct bytes){.at = message + MESSAGE_HEAD, .left = wanted}, &hello);
	if (r < 0)
		return r;
	*ret_hello = hello;
	return 1;
}
