/* Finding the route of a request. */
#include "server/route.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Copies one part of a path; false: it is empty or too long. */
static bool take_part(const char **path, char out[static NC_HTTP_PART_MAX + 1])
{
	size_t size = strcspn(*path, "/");

	if (size == 0 || size > NC_HTTP_PART_MAX)
		return false;
	memcpy(out, *path, size);
	out[size] = '\0';
	*path += size;
	return true;
}

static bool matches(const char *pattern, const char *path, struct nc_exchange *exchange)
{
	exchange->n_parts = 0;
	while (*pattern && *path) {
		if (*pattern == '{') {
			if (exchange->n_parts == NC_HTTP_PARTS_MAX ||
				!take_part(&path, exchange->part[exchange->n_parts]))
				return false;
			exchange->n_parts++;
			pattern += strcspn(pattern, "}") + 1;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return !*pattern && !*path;
}

const struct nc_route *nc_route_find(const struct nc_route *routes, struct nc_exchange *exchange,
	char *ret_allow, size_t allow_size)
{
	*ret_allow = '\0';
	for (const struct nc_route *route = routes; route->method; route++) {
		size_t used = strlen(ret_allow);

		if (!matches(route->pattern, exchange->path, exchange))
			continue;
		if (nc_streq(route->method, exchange->method))
			return route;
		(void)snprintf(ret_allow + used, allow_size - used, "%s%s%s", used ? ", " : "",
			route->method,
			nc_streq(route->method, "GET") && !(route->flags & NC_ROUTE_SOCKET)
				? ", HEAD"
				: "");
	}
	return NULL;
}
