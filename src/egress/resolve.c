/* Names to addresses. */
#include "egress/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>

#include "base/fd.h"
#include "base/span.h"
#include "base/text.h"

#define HOSTS_PATH "/etc/hosts"
#define HOSTS_FILE_MAX (1024U * 1024)
/* Of one question to one server; each is asked twice. */
#define TIMEOUT_MS 2000
#define TRIES 2

struct nc_hosts_entry {
	struct nc_address address;
	char name[NC_HOST_TEXT_MAX + 1];
};

struct nc_lookup {
	struct nc_resolver *resolver;
	nc_resolved *done; /* NULL: nobody wants to know any more */
	void *user;
	struct nc_lookup **place; /* of the pointer that the asker was given, while it is given */
};

/* ---- the hosts file ---- */

static struct nc_span take_word(struct nc_span *line)
{
	struct nc_span word;

	(void)nc_span_skip_blanks(line);
	word = (struct nc_span){line->text, 0};
	while (word.size < line->size && !strchr(" \t\r#", word.text[word.size]))
		word.size++;
	if (word.size < line->size && word.text[word.size] == '#')
		line->size = word.size;
	line->text += word.size;
	line->size -= word.size;
	return word;
}

static bool read_address(struct nc_span word, struct nc_address *ret_address)
{
	char text[NC_ADDRESS_TEXT_SIZE + 2];
	struct nc_host host;

	if (word.size == 0 || word.size >= NC_ADDRESS_TEXT_SIZE)
		return false;
	(void)snprintf(text, sizeof(text), memchr(word.text, ':', word.size) ? "[%.*s]" : "%.*s",
		(int)word.size, word.text);
	if (nc_host_parse(text, strlen(text), &host) < 0 || host.kind == NC_HOST_NAME)
		return false;
	*ret_address = nc_address_of_host(&host);
	return true;
}

static int add_line(struct nc_resolver *resolver, struct nc_span line)
{
	struct nc_address address;

	if (!read_address(take_word(&line), &address))
		return 0;
	for (;;) {
		struct nc_span word = take_word(&line);
		struct nc_host host;
		struct nc_hosts_entry *entries;

		if (word.size == 0 || resolver->n_hosts == NC_EGRESS_HOSTS_MAX)
			return 0;
		if (nc_host_parse(word.text, word.size, &host) < 0 || host.kind != NC_HOST_NAME)
			continue;
		entries = reallocarray(
			resolver->hosts, resolver->n_hosts + 1, sizeof(*resolver->hosts));
		if (!entries)
			return -ENOMEM;
		resolver->hosts = entries;
		entries[resolver->n_hosts].address = address;
		memcpy(entries[resolver->n_hosts++].name, host.text, sizeof(host.text));
	}
}

static int read_hosts(struct nc_resolver *resolver, const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	cleanup_free char *text = NULL;
	struct nc_span rest, line;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = nc_fd_read_all(fd, HOSTS_FILE_MAX, &text, &rest.size);
	rest.text = text;
	while (r == 0 && nc_span_line(&rest, &line))
		r = add_line(resolver, line);
	return r;
}

static size_t find_in_hosts(const struct nc_resolver *resolver, const char *name,
	struct nc_address addresses[static NC_EGRESS_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < resolver->n_hosts && n < NC_EGRESS_ADDRESSES_MAX; i++)
		if (nc_streq(resolver->hosts[i].name, name))
			addresses[n++] = resolver->hosts[i].address;
	return n;
}

/* ---- the name servers' sockets ---- */

static void socket_ready(struct nc_watch *watch, uint32_t events)
{
	struct nc_resolver_watch *socket = (struct nc_resolver_watch *)watch;
	const int fd = socket->fd;

	if (fd < 0)
		return; /* closed in this very turn */
	ares_process_fd(socket->resolver->channel,
		events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
		events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD);
}

static struct nc_resolver_watch *find_watch(struct nc_resolver *resolver, int fd)
{
	for (size_t i = 0; i < NC_RESOLVE_SOCKETS_MAX; i++)
		if (resolver->watches[i].fd == fd)
			return &resolver->watches[i];
	return NULL;
}

/* c-ares says what it waits for; a socket that is not watched makes its question time out. */
static void socket_changed(void *user, ares_socket_t fd, int readable, int writable)
{
	struct nc_resolver *resolver = user;
	struct nc_resolver_watch *watch = find_watch(resolver, fd);
	const uint32_t events =
		(uint32_t)(readable ? EPOLLIN : 0) | (uint32_t)(writable ? EPOLLOUT : 0);

	if (watch && events == 0) {
		nc_loop_remove(resolver->loop, fd);
		watch->fd = -EBADF;
	} else if (watch) {
		(void)nc_loop_change(resolver->loop, fd, events, &watch->watch);
	} else if (events != 0) {
		watch = find_watch(resolver, -EBADF);
		if (watch && nc_loop_add(resolver->loop, fd, events, &watch->watch) == 0)
			watch->fd = fd;
	}
}

/* ---- asking ---- */

static size_t collect(const struct ares_addrinfo *info,
	struct nc_address addresses[static NC_EGRESS_ADDRESSES_MAX])
{
	size_t n = 0;

	for (const struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next) {
		/* one that was not looked at might be the one that is not to be reached */
		if (n == NC_EGRESS_ADDRESSES_MAX)
			return 0;
		if (nc_address_take(node->ai_addr, &addresses[n]))
			n++;
	}
	return n;
}

static void answered(void *user, int status, int timeouts, struct ares_addrinfo *info)
{
	struct nc_address addresses[NC_EGRESS_ADDRESSES_MAX];
	struct nc_lookup *lookup = user;
	size_t n = 0;

	(void)timeouts;
	if (status == ARES_SUCCESS && info)
		n = collect(info, addresses);
	if (info)
		ares_freeaddrinfo(info);
	lookup->resolver->n_open--;
	if (lookup->place)
		*lookup->place = NULL;
	if (lookup->done)
		lookup->done(lookup->user, addresses, n,
			status == ARES_SUCCESS || status == ARES_ENOTFOUND ||
				status == ARES_ENODATA);
	free(lookup);
}

int nc_resolver_ask(struct nc_resolver *resolver, const char *name, nc_resolved *done, void *user,
	struct nc_lookup **ret_lookup)
{
	const struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT, .ai_socktype = SOCK_STREAM};
	struct nc_address addresses[NC_EGRESS_ADDRESSES_MAX];
	size_t n = find_in_hosts(resolver, name, addresses);
	struct nc_lookup *lookup;

	*ret_lookup = NULL;
	if (n > 0) {
		done(user, addresses, n, true);
		return 0;
	}
	if (resolver->n_open == NC_EGRESS_LOOKUPS_MAX)
		return -EAGAIN;
	lookup = malloc(sizeof(*lookup));
	if (!lookup)
		return -ENOMEM;
	*lookup = (struct nc_lookup){
		.resolver = resolver, .done = done, .user = user, .place = ret_lookup};
	*ret_lookup = lookup;
	resolver->n_open++;
	ares_getaddrinfo(resolver->channel, name, NULL, &hints, answered, lookup);
	return 0;
}

void nc_lookup_forget(struct nc_lookup *lookup)
{
	if (!lookup)
		return;
	lookup->done = NULL;
	lookup->place = NULL;
}

int nc_resolver_timeout_ms(struct nc_resolver *resolver)
{
	struct timeval left, *timeout = ares_timeout(resolver->channel, NULL, &left);

	if (!timeout)
		return -1;
	return (int)(timeout->tv_sec * 1000 + timeout->tv_usec / 1000 + 1);
}

void nc_resolver_tick(struct nc_resolver *resolver)
{
	ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* ---- beginning and end ---- */

int nc_resolver_init(struct nc_resolver *resolver, struct nc_loop *loop, const char *servers,
	const char *hosts, struct nacre_err *err)
{
	static char dns_only[] = "b";
	struct ares_options options = {
		/* names as they are: no search list, no file of aliases */
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.lookups = dns_only,
		.sock_state_cb = socket_changed,
		.sock_state_cb_data = resolver,
	};
	int r;

	*resolver = (struct nc_resolver){.loop = loop};
	for (size_t i = 0; i < NC_RESOLVE_SOCKETS_MAX; i++)
		resolver->watches[i] = (struct nc_resolver_watch){
			.watch.ready = socket_ready, .resolver = resolver, .fd = -EBADF};
	r = read_hosts(resolver, hosts ? hosts : HOSTS_PATH);
	if (r < 0)
		return nc_err_errno(err, r, "Read the hosts file");
	r = ares_library_init(ARES_LIB_INIT_ALL);
	if (r == ARES_SUCCESS)
		r = ares_init_options(&resolver->channel, &options,
			ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
				ARES_OPT_SOCK_STATE_CB);
	if (r == ARES_SUCCESS && servers)
		r = ares_set_servers_ports_csv(resolver->channel, servers);
	return r == ARES_SUCCESS
		       ? 0
		       : nc_err_set(err, -EINVAL, "Prepare to look names up: %s", ares_strerror(r));
}

void nc_resolver_done(struct nc_resolver *resolver)
{
	if (resolver->channel) {
		ares_destroy(resolver->channel);
		ares_library_cleanup();
	}
	nc_freep(&resolver->hosts);
}
