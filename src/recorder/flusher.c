/* Flushes the journal without waiting for the disk. */
#include "recorder/flusher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/fd.h"

#define STACK_SIZE (128U * 1024)

/* What the thread is told: descriptors of its own, which it closes. */
struct order {
	int segment_fd, key_fd;
};

/* Its ends of the two pipes. */
struct ends {
	int order_fd, done_fd;
};

static int flush(const struct order *order)
{
	int r = order->segment_fd >= 0 && fdatasync(order->segment_fd) < 0 ? -errno : 0;

	if (r == 0 && fdatasync(order->key_fd) < 0)
		r = -errno;
	(void)nc_fd_close(order->segment_fd);
	(void)nc_fd_close(order->key_fd);
	return r;
}

/* Until the recorder ends, and the process with it. Its first word is that it runs. */
static void *follow(void *argument)
{
	const struct ends *ends = argument;
	struct order order;
	int r = 0;

	while (nc_fd_write_all(ends->done_fd, &r, sizeof(r)) == 0 &&
		nc_fd_read_upto(ends->order_fd, &order, sizeof(order)) == (ssize_t)sizeof(order))
		r = flush(&order);
	return NULL;
}

static int start_thread(struct ends *ends)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int r = -pthread_attr_init(&attributes);

	if (r < 0)
		return r;
	(void)sigfillset(&all);
	(void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, &attributes, follow, ends);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return r;
}

int nc_flusher_start(struct nc_flusher *flusher)
{
	static struct ends ends; /* the thread's for as long as the process lives */
	int orders[2], done[2], r;

	*flusher = (struct nc_flusher){.order_fd = -EBADF, .done_fd = -EBADF};
	if (pipe2(orders, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(done, O_CLOEXEC) < 0) {
		r = -errno;
	} else {
		ends = (struct ends){orders[0], done[1]};
		r = start_thread(&ends);
		if (r == 0) {
			*flusher = (struct nc_flusher){.order_fd = orders[1], .done_fd = done[0]};
			/* what libc calls in a new thread is not for the filter */
			return nc_flusher_take(flusher);
		}
		(void)close(done[0]);
		(void)close(done[1]);
	}
	(void)close(orders[0]);
	(void)close(orders[1]);
	return r;
}

int nc_flusher_ask(struct nc_flusher *flusher, struct nc_journal *journal)
{
	const struct order order = {
		.segment_fd = journal->segment_fd >= 0 ? nc_fd_dup(journal->segment_fd) : -EBADF,
		.key_fd = nc_fd_dup(journal->key_fd)};

	if (flusher->order_fd >= 0 && !flusher->busy && order.key_fd >= 0 &&
		(order.segment_fd >= 0 || journal->segment_fd < 0) &&
		nc_fd_write_all(flusher->order_fd, &order, sizeof(order)) == 0) {
		flusher->busy = true;
		journal->dirty = false;
		return 0;
	}
	(void)nc_fd_close(order.segment_fd);
	(void)nc_fd_close(order.key_fd);
	return nc_journal_sync(journal);
}

int nc_flusher_take(struct nc_flusher *flusher)
{
	int r;

	if (nc_fd_read_upto(flusher->done_fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		r = -EIO;
	flusher->busy = false;
	return r;
}
