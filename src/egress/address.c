/* Addresses: which are somebody's on the internet. */
#include "egress/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/fd.h"

struct block {
	unsigned char bytes[16];
	unsigned int bits;
	enum nc_reach reach;
};

/*
 * The first that fits counts. IANA's registries of special addresses, and metadata services. What
 * is reserved for examples and benchmarks is nobody's on the internet: where it leads somewhere, it
 * is inside.
 */
/* clang-format off */
static const struct block v4_blocks[] = {
	{{100, 100, 100, 200}, 32, NC_REACH_NEVER}, /* metadata of Alibaba */
	{{168, 63, 129, 16}, 32, NC_REACH_NEVER}, /* the host's agent at Azure */
	{{10}, 8, NC_REACH_PRIVATE},
	{{100, 64}, 10, NC_REACH_PRIVATE}, /* behind a provider's NAT */
	{{127}, 8, NC_REACH_PRIVATE},
	{{172, 16}, 12, NC_REACH_PRIVATE},
	{{192, 0, 2}, 24, NC_REACH_PRIVATE}, /* examples */
	{{192, 168}, 16, NC_REACH_PRIVATE},
	{{198, 18}, 15, NC_REACH_PRIVATE}, /* benchmarks */
	{{198, 51, 100}, 24, NC_REACH_PRIVATE},
	{{203, 0, 113}, 24, NC_REACH_PRIVATE},
	{{0}, 8, NC_REACH_NEVER},
	{{169, 254}, 16, NC_REACH_NEVER}, /* links, and metadata services on them */
	{{192, 0, 0}, 24, NC_REACH_NEVER}, /* protocols of the IETF */
	{{192, 88, 99}, 24, NC_REACH_NEVER}, /* relays of 6to4 */
	{{224}, 3, NC_REACH_NEVER}, /* groups, the reserved, all of a network */
};

static const struct block v6_blocks[] = {
	{{[15] = 1}, 128, NC_REACH_PRIVATE},
	/* metadata services inside what is private otherwise: Amazon, Google */
	{{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, NC_REACH_NEVER},
	{{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128, NC_REACH_NEVER},
	{{0xfc}, 7, NC_REACH_PRIVATE},
	{{0x20, 0x01, 0x0d, 0xb8}, 32, NC_REACH_PRIVATE}, /* examples */
	{{0x3f, 0xff}, 20, NC_REACH_PRIVATE},
	/* tunnels with IPv4 addresses in them: Teredo and others of the IETF, 6to4 */
	{{0x20, 0x01}, 23, NC_REACH_NEVER},
	{{0x20, 0x02}, 16, NC_REACH_NEVER},
	{{0x20}, 3, NC_REACH_PUBLIC},
	/* all else: links, groups, IPv4 in other forms, and what nobody has */
	{{0}, 0, NC_REACH_NEVER},
};
/* clang-format on */

/* IPv4 behind the translator of a network that has none: 64:ff9b::/96. */
static const struct block translated = {{0x00, 0x64, 0xff, 0x9b}, 96, NC_REACH_MAX};

static bool is_in(const unsigned char *bytes, const struct block *block)
{
	const unsigned int whole = block->bits / 8, rest = block->bits % 8;
	const unsigned int mask = 0xff00U >> rest & 0xffU;

	return memcmp(bytes, block->bytes, whole) == 0 &&
	       (rest == 0 || ((bytes[whole] ^ block->bytes[whole]) & mask) == 0);
}

static enum nc_reach look_up(
	const unsigned char *bytes, const struct block *blocks, size_t n, enum nc_reach otherwise)
{
	for (size_t i = 0; i < n; i++)
		if (is_in(bytes, &blocks[i]))
			return blocks[i].reach;
	return otherwise;
}

static enum nc_reach reach_v4(const unsigned char *bytes)
{
	return look_up(bytes, v4_blocks, sizeof(v4_blocks) / sizeof(v4_blocks[0]), NC_REACH_PUBLIC);
}

enum nc_reach nc_address_reach(const struct nc_address *address)
{
	if (address->family == AF_INET)
		return reach_v4(address->bytes);
	if (is_in(address->bytes, &translated))
		return reach_v4(address->bytes + 12);
	return look_up(address->bytes, v6_blocks, sizeof(v6_blocks) / sizeof(v6_blocks[0]),
		NC_REACH_NEVER);
}

struct nc_address nc_address_of_host(const struct nc_host *host)
{
	struct nc_address address = {.family = host->kind == NC_HOST_V4 ? AF_INET : AF_INET6};

	memcpy(address.bytes, host->address, sizeof(address.bytes));
	return address;
}

socklen_t nc_address_fill(
	const struct nc_address *address, uint16_t port, struct sockaddr_storage *ret_socket)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	*ret_socket = (struct sockaddr_storage){0};
	if (address->family == AF_INET) {
		memcpy(&v4.sin_addr, address->bytes, sizeof(v4.sin_addr));
		memcpy(ret_socket, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(&v6.sin6_addr, address->bytes, sizeof(v6.sin6_addr));
	memcpy(ret_socket, &v6, sizeof(v6));
	return sizeof(v6);
}

bool nc_address_take(const struct sockaddr *socket, struct nc_address *ret_address)
{
	struct nc_address address = {.family = socket->sa_family};

	if (socket->sa_family == AF_INET)
		memcpy(address.bytes, &((const struct sockaddr_in *)(const void *)socket)->sin_addr,
			4);
	else if (socket->sa_family == AF_INET6)
		memcpy(address.bytes,
			&((const struct sockaddr_in6 *)(const void *)socket)->sin6_addr, 16);
	else
		return false;
	*ret_address = address;
	return true;
}

bool nc_address_equal(const struct nc_address *a, const struct nc_address *b)
{
	return a->family == b->family &&
	       memcmp(a->bytes, b->bytes, a->family == AF_INET ? 4 : 16) == 0;
}

void nc_address_text(const struct nc_address *address, char out[static NC_ADDRESS_TEXT_SIZE])
{
	if (!inet_ntop(address->family, address->bytes, out, NC_ADDRESS_TEXT_SIZE))
		out[0] = '\0';
}

int nc_address_is_own(const struct nc_address *address)
{
	cleanup_close int fd = socket(address->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage there, here = {0};
	socklen_t size = nc_address_fill(address, 9, &there), here_size = sizeof(here);
	struct nc_address source;

	/* a packet to an address of this host comes from that address, or from the loopback's */
	if (fd < 0 || connect(fd, (const struct sockaddr *)&there, size) < 0 ||
		getsockname(fd, (struct sockaddr *)&here, &here_size) < 0)
		return -errno;
	if (!nc_address_take((const struct sockaddr *)&here, &source))
		return -EAFNOSUPPORT;
	return nc_address_equal(&source, address) ||
	       (source.family == AF_INET ? source.bytes[0] == 127
					 : nc_address_reach(&source) == NC_REACH_PRIVATE &&
						   source.bytes[0] == 0);
}
