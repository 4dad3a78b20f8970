/* Hosts, read strictly and in one place. */
#include "config/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"

/* RFC 1035. */
#define LABEL_MAX_BYTES 63U
/* "65535" */
#define PORT_DIGITS_MAX 5U

static bool is_label(const char *label, size_t size)
{
	if (size == 0 || size > LABEL_MAX_BYTES || label[0] == '-' || label[size - 1] == '-')
		return false;
	for (size_t i = 0; i < size; i++)
		if (!(label[i] >= 'a' && label[i] <= 'z') &&
			!(label[i] >= '0' && label[i] <= '9') && label[i] != '-')
			return false;
	return true;
}

/* A last label that is a number, decimal or not, makes programs take the whole for an address. */
static bool is_number(const char *label)
{
	const char *hex = nc_text_after(label, "0x");

	return hex ? hex[strspn(hex, "0123456789abcdef")] == '\0'
		   : label[strspn(label, "0123456789")] == '\0';
}

/* The number of labels; 0 if this is no name. */
static size_t count_labels(const char *name)
{
	const char *label = name;
	size_t labels = 0;

	for (;; label++) {
		size_t size = strcspn(label, ".");

		if (!is_label(label, size))
			return 0;
		labels++;
		if (!label[size])
			return is_number(label) ? 0 : labels;
		label += size;
	}
}

static bool take_address(enum nc_host_kind kind, struct nc_host *host)
{
	const int family = kind == NC_HOST_V4 ? AF_INET : AF_INET6;

	if (inet_pton(family, host->text, host->address) != 1)
		return false;
	host->kind = kind;
	return inet_ntop(family, host->address, host->text, sizeof(host->text)) != NULL;
}

static void lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + ('a' - 'A'));
}

int nc_host_parse(const char *text, size_t size, struct nc_host *ret_host)
{
	struct nc_host host = {.kind = NC_HOST_NAME};
	const bool bracket = size >= 2 && text[0] == '[' && text[size - 1] == ']';
	const bool dot = size >= 1 && text[size - 1] == '.';

	if (bracket) {
		text++;
		size -= 2;
	}
	size -= dot;
	if (size == 0 || size > NC_HOST_TEXT_MAX || memchr(text, '\0', size))
		return -EINVAL;
	memcpy(host.text, text, size);
	if (bracket && !take_address(NC_HOST_V6, &host))
		return -EINVAL;
	/* an address has no dot at its end, and without the dot is no name */
	if (!bracket && (dot || !take_address(NC_HOST_V4, &host))) {
		lower(host.text);
		if (count_labels(host.text) == 0)
			return -EINVAL;
	}
	*ret_host = host;
	return 0;
}

static int parse_port(const char *text, size_t size, uint16_t *ret_port)
{
	char digits[PORT_DIGITS_MAX + 1] = "";
	uint64_t port;

	if (size > PORT_DIGITS_MAX)
		return -EINVAL;
	memcpy(digits, text, size);
	if (nc_parse_u64(digits, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

int nc_host_parse_port(const char *text, size_t size, struct nc_host *ret_host, uint16_t *ret_port)
{
	const char *colon = memrchr(text, ':', size);
	uint16_t port = 0;
	int r = 0;

	/* the colons of an address are inside its brackets */
	if (colon && !memchr(colon, ']', size - (size_t)(colon - text))) {
		r = parse_port(colon + 1, (size_t)(text + size - colon) - 1, &port);
		size = (size_t)(colon - text);
	}
	if (r == 0)
		r = nc_host_parse(text, size, ret_host);
	if (r == 0)
		*ret_port = port;
	return r;
}

int nc_host_parse_pattern(const char *text, struct nc_host_pattern *ret_pattern)
{
	struct nc_host_pattern pattern = {0};
	const char *rest;

	pattern.wild = nc_text_after(text, "*.") != NULL;
	rest = pattern.wild ? text + 2 : text;
	if (nc_host_parse_port(rest, strlen(rest), &pattern.host, &pattern.port) < 0)
		return -EINVAL;
	/* an address may be written in several ways, a name in one */
	if (pattern.host.kind == NC_HOST_NAME &&
		(strncmp(rest, pattern.host.text, strlen(pattern.host.text)) != 0 ||
			rest[strlen(pattern.host.text)] == '.'))
		return -EINVAL;
	if (pattern.wild && (pattern.host.kind != NC_HOST_NAME || !strchr(pattern.host.text, '.') ||
				    strlen(pattern.host.text) > NC_HOST_TEXT_MAX - 2))
		return -EINVAL;
	*ret_pattern = pattern;
	return 0;
}

bool nc_host_is_pattern(const char *text)
{
	struct nc_host_pattern pattern;

	return nc_host_parse_pattern(text, &pattern) == 0;
}

int nc_url_host(const char *url, char ret_host[static NC_URL_HOST_SIZE])
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._~-/%+";
	bool secure = strncmp(url, "https://", 8) == 0;
	const char *host = url + (secure ? 8 : 7), *path = strchrnul(host, '/');
	struct nc_host parsed;
	uint16_t port;

	if ((!secure && strncmp(url, "http://", 7) != 0) || strlen(url) > NC_URL_MAX ||
		path[strspn(path, legal)] ||
		nc_host_parse_port(host, (size_t)(path - host), &parsed, &port) < 0)
		return -EINVAL;
	if (port == 0)
		port = secure ? 443 : 80;
	(void)snprintf(ret_host, NC_URL_HOST_SIZE, parsed.kind == NC_HOST_V6 ? "[%s]:%u" : "%s:%u",
		parsed.text, port);
	return 0;
}

bool nc_url_is_index(const char *text)
{
	char host[NC_URL_HOST_SIZE];

	return nc_url_host(text, host) == 0;
}
