/* One line of the journal. */
#include "recorder/line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"

#define BEGIN "{\"seq\":"
#define PREV ",\"prev\":\""
#define MAC "\",\"mac\":\""
#define END "\"}"
#define LENGTH(literal) (sizeof(literal) - 1)
#define DIGITS (2 * NC_SHA256_SIZE)
/* What stands behind the body has a fixed length, so no body can imitate it. */
#define TAIL (LENGTH(PREV) + DIGITS + LENGTH(MAC) + DIGITS + LENGTH(END))

const char *const nc_record_kind_names[] = {
	[NC_RECORD_EXECUTION] = "execution",
	[NC_RECORD_SECURITY] = "security",
	[NC_RECORD_PERFORMANCE] = "performance",
	[NC_RECORD_AUDIT] = "audit",
	[NC_RECORD_KIND_MAX] = NULL,
};

static const char *const source_names[] = {
	[NC_FROM_WORKER] = "worker",
	[NC_FROM_SPAWNER] = "spawner",
	[NC_FROM_RECORDER] = "recorder",
};

void nc_link_first(struct nc_link *link, const unsigned char key[static NC_SHA256_SIZE])
{
	*link = (struct nc_link){.seq = 1};
	memcpy(link->key, key, sizeof(link->key));
}

static void next_key(struct nc_link *link)
{
	static const char label[] = "nacre journal: the next key";
	unsigned char next[NC_SHA256_SIZE];

	nc_hmac_sha256(link->key, label, sizeof(label), next);
	memcpy(link->key, next, sizeof(next));
	explicit_bzero(next, sizeof(next));
	link->seq++;
}

void nc_link_step(struct nc_link *link, const char *line, size_t size)
{
	next_key(link);
	nc_sha256(line, size, link->last);
}

void nc_link_skip(struct nc_link *link)
{
	next_key(link);
	memset(link->last, 0, sizeof(link->last));
}

void nc_line_add(struct nc_buf *out, const struct nc_link *link, const char *run,
	const struct nc_entry *entry)
{
	char time[NC_CLOCK_STAMP_NS_SIZE], hex[NC_SHA256_HEX_SIZE];
	unsigned char mac[NC_SHA256_SIZE];
	size_t begin = out->size;

	nc_clock_stamp_ns(time);
	nc_sha256_hex(link->last, hex);
	nc_buf_addf(out,
		BEGIN "%" PRIu64 ",\"time\":\"%s\",\"run\":\"%s\",\"from\":\"%s\",\"kind\":\"%s\","
		      "\"event\":\"%s\",\"id\":\"%s\",\"body\":",
		link->seq, time, run, source_names[entry->from], nc_record_kind_names[entry->kind],
		entry->event, entry->id);
	nc_buf_add(out, entry->body, entry->body_size);
	nc_buf_addf(out, PREV "%s\"", hex);
	if (out->error < 0)
		return;
	nc_hmac_sha256(link->key, out->data + begin, out->size - begin, mac);
	nc_sha256_hex(mac, hex);
	nc_buf_addf(out, "%s%s" END "\n", &MAC[1], hex); /* its first quote is there already */
}

static bool is_at(const char *at, const char *literal)
{
	return memcmp(at, literal, strlen(literal)) == 0;
}

bool nc_line_text_ok(const char *text)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	size_t size = strlen(text);

	return size > 0 && size <= NC_RECORD_ID_MAX && strspn(text, allowed) == size;
}

bool nc_line_is_about(const char *line, size_t size, const char *event, const char *id)
{
	static const char behind[] = ",\"body\":";
	char wanted[2 * NC_RECORD_ID_MAX + 32];
	size_t length = (size_t)snprintf(
		wanted, sizeof(wanted), "\"event\":\"%s\",\"id\":\"%s\"", event, id);
	/* no text of the envelope has a quote in it, so the first one is where the body begins */
	const char *body = memmem(line, size, behind, LENGTH(behind));

	return body && (size_t)(body - line) >= length && is_at(body - length, wanted);
}

bool nc_line_is(const char *line, size_t size, const struct nc_entry *entry)
{
	const size_t tail = size < TAIL ? 0 : size - TAIL;
	char head[2 * NC_RECORD_ID_MAX + 96];
	size_t length = (size_t)snprintf(head, sizeof(head),
		"\"from\":\"%s\",\"kind\":\"%s\",\"event\":\"%s\",\"id\":\"%s\",\"body\":",
		source_names[entry->from], nc_record_kind_names[entry->kind], entry->event,
		entry->id);

	if (tail < length + entry->body_size)
		return false;
	return is_at(line + tail - entry->body_size - length, head) &&
	       memcmp(line + tail - entry->body_size, entry->body, entry->body_size) == 0;
}

static int read_seq(const char *line, uint64_t *ret_seq)
{
	char number[24];
	size_t length = strspn(line + LENGTH(BEGIN), "0123456789");

	if (length == 0 || length >= sizeof(number) || line[LENGTH(BEGIN) + length] != ',')
		return -EBADMSG;
	memcpy(number, line + LENGTH(BEGIN), length);
	number[length] = '\0';
	return nc_parse_u64(number, 1, UINT64_MAX - 1, ret_seq) < 0 ? -EBADMSG : 0;
}

int nc_line_split(const char *line, size_t size, struct nc_line_parts *ret_parts)
{
	struct nc_line_parts parts;
	const char *tail, *mac;

	if (size > NC_LINE_MAX || size < LENGTH(BEGIN) + TAIL + 24)
		return -EBADMSG;
	tail = line + size - TAIL;
	mac = tail + LENGTH(PREV) + DIGITS;
	if (!is_at(line, BEGIN) || !is_at(tail, PREV) || !is_at(mac, MAC) ||
		!is_at(line + size - LENGTH(END), END))
		return -EBADMSG;
	if (read_seq(line, &parts.seq) < 0 ||
		nc_sha256_parse(tail + LENGTH(PREV), parts.prev) < 0 ||
		nc_sha256_parse(mac + LENGTH(MAC), parts.mac) < 0)
		return -EBADMSG;
	parts.signed_size = (size_t)(mac - line) + 1; /* with the quote that ends prev */
	*ret_parts = parts;
	return 0;
}

bool nc_line_is_signed(const char *line, const struct nc_line_parts *parts,
	const unsigned char key[static NC_SHA256_SIZE])
{
	unsigned char mac[NC_SHA256_SIZE];

	nc_hmac_sha256(key, line, parts->signed_size, mac);
	return nc_sha256_equal(mac, parts->mac);
}

bool nc_line_follows(const struct nc_link *link, const char *line, size_t size)
{
	struct nc_line_parts parts;

	return nc_line_split(line, size, &parts) == 0 && parts.seq == link->seq &&
	       nc_sha256_equal(parts.prev, link->last) &&
	       nc_line_is_signed(line, &parts, link->key);
}
