/* Hosts that a policy allows. */
#include "config/host.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"

/* RFC 1035: a name with its dots, and one label. */
#define NAME_MAX_BYTES 253U
#define LABEL_MAX_BYTES 63U

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

static bool is_name(const char *name)
{
	const char *rest = nc_text_after(name, "*.");
	bool wild = rest != NULL, all_digits = true;
	size_t labels = 0;

	for (rest = wild ? rest : name;; rest++) {
		size_t size = strcspn(rest, ".");

		if (!is_label(rest, size))
			return false;
		labels++;
		all_digits = strspn(rest, "0123456789") == size;
		rest += size;
		if (!*rest)
			break;
	}
	/* a last label of digits makes programs take the whole for an address */
	return !all_digits && labels >= (wild ? 2 : 1) && strlen(name) <= NAME_MAX_BYTES;
}

static bool is_address(int family, const char *text)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(family, text, address) == 1;
}

static bool is_port(const char *text)
{
	uint64_t port;

	return nc_parse_u64(text, 1, 65535, &port) == 0;
}

bool nc_host_is_pattern(const char *text)
{
	char host[NAME_MAX_BYTES + 1] = "";
	bool bracket = text[0] == '[';
	const char *end = bracket ? strchr(text, ']') : strchrnul(text, ':');
	const char *begin = bracket ? text + 1 : text;

	if (!end || (size_t)(end - begin) >= sizeof(host))
		return false;
	memcpy(host, begin, (size_t)(end - begin));
	end += bracket;
	if (*end == ':' ? !is_port(end + 1) : *end != '\0')
		return false;
	return bracket ? is_address(AF_INET6, host) : is_address(AF_INET, host) || is_name(host);
}
