/* Traces on their way out. */
#include "server/exporter.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/meeting.h"
#include "server/courier.h"
#include "server/dial.h"

#define TIMEOUT_S 10U
#define FIELDS_MAX (64U * 1024)
/* A collector that is away is worth a line now and then, not one for each batch. */
#define COMPLAIN_NS (60 * NC_NS_PER_S)

static bool is_worth_another_try(int status)
{
	return status < 0 || status == 429 || (status >= 502 && status <= 504);
}

/* Whether the daemon is still there after a while. */
static bool pause_once(int fd)
{
	struct pollfd event = {.fd = fd};

	return poll(&event, 1, 1000) == 0 || !(event.revents & POLLHUP);
}

static void complain(const char *url, int status, const struct nacre_err *err)
{
	static uint64_t last_ns;
	const uint64_t now_ns = nc_clock_ns();

	if (last_ns && now_ns - last_ns < COMPLAIN_NS)
		return;
	last_ns = now_ns;
	nc_log(NC_LOG_WARNING, "Traces are lost", NC_LOG_TEXT("address", url),
		NC_LOG_TEXT("reason", err->message), NC_LOG_INT("status", status > 0 ? status : 0));
}

static void deliver(int fd, const char *url, const char *fields, const char *body)
{
	struct nacre_err err = {0};
	int status = nc_dial_post(url, fields, body, TIMEOUT_S, &err);

	if (is_worth_another_try(status) && pause_once(fd)) {
		err = (struct nacre_err){0};
		status = nc_dial_post(url, fields, body, TIMEOUT_S, &err);
	}
	if (status < 200 || status > 299)
		complain(url, status, &err);
}

/* One daemon after the other, to the last message of each. */
static void serve(int fd, int place_fd, const struct nc_tracing_values *tracing)
{
	static char body[NC_EXPORTER_MESSAGE_MAX + 1];
	nc_buf_cleanup struct nc_buf fields = NC_BUF(FIELDS_MAX);
	int r;

	for (size_t i = 0; i < tracing->headers.n_list; i++)
		nc_buf_addf(&fields, "%s\r\n", tracing->headers.list[i]);
	while ((r = nc_meeting_wait(&place_fd, &fd)) > 0) {
		ssize_t n = r == 1 ? read(fd, body, sizeof(body) - 1) : 1;

		if (n <= 0)
			fd = nc_fd_close(fd);
		if (r == 2 || n <= 0)
			continue;
		body[n] = '\0';
		deliver(place_fd, tracing->endpoint.list[0], nc_buf_text(&fields), body);
	}
}

_Noreturn static void be_exporter(
	int fd, int place_fd, const struct nc_tracing_values *tracing, bool ranges)
{
	int r = nc_courier_lock_in("nacre-exporter", (const int[]){fd, place_fd}, 2, ranges);

	if (r < 0)
		nc_log(NC_LOG_ERROR, "Traces go nowhere", NC_LOG_TEXT("reason", nc_errno_text(r)));
	else
		serve(NC_COURIER_FD, NC_COURIER_PLACE_FD, tracing);
	_exit(r < 0 ? 125 : 0);
}

int nc_exporter_start(const struct nc_tracing_values *tracing, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err)
{
	int fd, r = nc_meeting_fork(SOCK_SEQPACKET, &fd, ret_pidfd, err);

	if (r > 0)
		be_exporter(fd, place_fd, tracing, ranges);
	return r < 0 ? r : fd;
}
