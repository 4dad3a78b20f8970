/* The connections of a daemon. */
#include "server/links.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "engine/owner.h"

/* Nobody is called slow before this, or for less than that. */
#define TAKEN_NS NC_NS_PER_S
#define HELD_LEAST (64U * 1024)
#define HOLDERS_MAX 256U

/* ---- place ---- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr *b)
{
	if (a->ss_family != b->sa_family)
		return false;
	if (b->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return b->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool is_stranger(const struct nc_link *link)
{
	return !link->known && !link->ends;
}

/* The stranger of the address that came first; NULL: there is none. */
static struct nc_link *oldest_of(const struct nc_links *links, const struct sockaddr *peer)
{
	struct nc_link *found = NULL;

	for (struct nc_link *link = links->first; link; link = link->next)
		if (is_stranger(link) && same_host(&link->peer, peer))
			found = link;
	return found;
}

static void end(struct nc_link *link)
{
	link->ends = true;
	link->deadline_ns = 0;
	(void)shutdown(link->fd, SHUT_RDWR); /* which libmicrohttpd sees */
}

bool nc_links_make_place(struct nc_links *links, const struct sockaddr *peer, size_t *ret_nth)
{
	size_t all = 0, same = 0, ending = 0, strangers = 0;
	const struct nc_link *most = NULL;
	struct nc_link *oldest = NULL;

	for (const struct nc_link *link = links->first; link; link = link->next) {
		bool is_same = same_host(&link->peer, peer);

		ending += link->ends;
		all += is_same;
		if (!is_stranger(link))
			continue;
		strangers++;
		same += is_same;
		if (!most || link->nth > most->nth)
			most = link;
	}
	if (links->count - ending >= NC_HTTP_CONNECTIONS_MAX || strangers >= NC_HTTP_STRANGERS_MAX)
		oldest = most ? oldest_of(links, (const struct sockaddr *)&most->peer) : NULL;
	else if (same >= NC_HTTP_STRANGERS_EACH)
		oldest = oldest_of(links, peer);
	if (oldest)
		end(oldest);
	*ret_nth = same + 1;
	/* those that end are still there for a moment */
	return all < NC_HTTP_CONNECTIONS_EACH && ending < NC_HTTP_STRANGERS_MAX &&
	       (oldest || links->count - ending < NC_HTTP_CONNECTIONS_MAX);
}

bool nc_links_know(struct nc_links *links, struct nc_link *link, const char *tenant)
{
	size_t own = 0;

	if (!link->known || !nc_streq(link->tenant, tenant)) {
		for (const struct nc_link *other = links->first; other; other = other->next)
			own += other != link && other->known && nc_streq(other->tenant, tenant);
		if (*tenant && !nc_share_allows(own, links->count, NC_HTTP_CONNECTIONS_MAX))
			return false;
	}
	link->known = true;
	(void)snprintf(link->tenant, sizeof(link->tenant), "%s", tenant);
	return true;
}

size_t nc_links_bodies(const struct nc_links *links, const char *tenant)
{
	size_t sum = 0;

	for (const struct nc_link *link = links->first; link; link = link->next)
		if (link->exchange && nc_streq(link->exchange->caller.tenant, tenant))
			sum += link->exchange->body_taken;
	return sum;
}

/* ---- replies that wait ---- */

/* Whether its reply is one that is worth counting and on its way to a client of the tenant. */
static bool holds(const struct nc_link *link, const char *tenant)
{
	return link->sent_ns && link->exchange->reply_size >= HELD_LEAST &&
	       nc_streq(link->exchange->caller.tenant, tenant);
}

/* The bytes that are held for a tenant; its connections are marked as counted. */
static uint64_t count_held(struct nc_links *links, const char *tenant)
{
	uint64_t sum = 0;

	for (struct nc_link *link = links->first; link; link = link->next) {
		if (!holds(link, tenant))
			continue;
		link->counted = true;
		sum += link->exchange->reply_size;
	}
	return sum;
}

/* Cuts off the client of the tenant that takes longest, if it had its time. How much that frees. */
static uint64_t cut_slowest(struct nc_links *links, const char *tenant)
{
	uint64_t since = nc_clock_ns() - TAKEN_NS;
	struct nc_link *slow = NULL;

	for (struct nc_link *link = links->first; link; link = link->next)
		if (holds(link, tenant) && link->sent_ns < since &&
			(!slow || link->sent_ns < slow->sent_ns))
			slow = link;
	if (!slow)
		return 0;
	(void)shutdown(slow->fd, SHUT_RDWR);
	slow->sent_ns = slow->deadline_ns = 0;
	return slow->exchange->reply_size;
}

/* Whole replies that nobody takes are memory: so much for a tenant, less if there are many. */
void nc_links_shed(struct nc_links *links)
{
	const char *tenants[HOLDERS_MAX];
	uint64_t sums[HOLDERS_MAX], share;
	size_t n = 0;

	for (struct nc_link *link = links->first; link; link = link->next)
		link->counted = false;
	for (struct nc_link *link = links->first; link && n < HOLDERS_MAX; link = link->next) {
		if (link->counted || !link->sent_ns || link->exchange->reply_size < HELD_LEAST)
			continue;
		tenants[n] = link->exchange->caller.tenant;
		sums[n] = count_held(links, tenants[n]);
		n++;
	}
	share = n > NC_HTTP_HELD_MAX / NC_HTTP_HELD_EACH ? NC_HTTP_HELD_MAX / n : NC_HTTP_HELD_EACH;
	for (size_t i = 0; i < n; i++)
		for (uint64_t freed = 1; sums[i] > share && freed > 0; sums[i] -= freed)
			freed = cut_slowest(links, tenants[i]);
}
