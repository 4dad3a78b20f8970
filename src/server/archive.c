/* The past, for the daemon: the side that asks. */
#include "server/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/frame.h"
#include "base/limits.h"
#include "base/text.h"
#include "engine/owner.h"
#include "tier/poll.h"

#define CHUNK 65536
#define WAITING_MAX 256U
#define QUESTION_MAX 4096U
/* The first of those that wait: verifying a long journal takes its time. */
#define ANSWER_NS (120 * NC_NS_PER_S)

struct question {
	struct question *next;
	json_int_t n;
	json_t *words; /* that are to be sent; NULL: it is being answered, and the first */
	char tenant[NC_NAME_MAX + 1];
	uint64_t turn;
	nc_archive_answer answer; /* NULL: nobody waits any more */
	void *context;
	uint64_t since_ns;
};

struct nc_archive {
	uv_loop_t *loop;
	int fd;
	struct nc_poll *poll;
	struct nc_frame_in in;
	struct nc_frame_out out;
	struct question *asked; /* by their turns; one after the other is sent */
	size_t n_asked;
	uint64_t turn; /* of the one that was sent last */
	json_int_t last_n;
};

/* The first of those that wait has its answer. */
static void settle(struct nc_archive *archive, const json_t *answer)
{
	struct question *question = archive->asked;

	archive->asked = question->next;
	archive->n_asked--;
	if (question->answer)
		question->answer(question->context, answer);
	json_decref(question->words);
	free(question);
}

/* Who waits no more is not asked for. */
static void send_next(struct nc_archive *archive)
{
	struct question *next;

	while ((next = archive->asked) && next->words) {
		archive->turn = next->turn;
		next->since_ns = nc_clock_ns();
		if (next->answer &&
			nc_frame_put(&archive->out, take_ptr(next->words), QUESTION_MAX) == 0) {
			nc_poll_set(archive->poll, UV_READABLE | UV_WRITABLE);
			return;
		}
		settle(archive, NULL);
	}
}

static void lose(struct nc_archive *archive)
{
	archive->poll = nc_poll_free(archive->poll);
	archive->fd = nc_fd_close(archive->fd);
	while (archive->asked)
		settle(archive, NULL);
}

static void flush(struct nc_archive *archive)
{
	if (nc_frame_send(&archive->out, archive->fd) < 0)
		lose(archive);
	else
		nc_poll_set(archive->poll,
			UV_READABLE | (nc_frame_unsent(&archive->out) ? UV_WRITABLE : 0));
}

/* What was read; -errno: it is no answer. */
static int take(struct nc_archive *archive, const char *data, size_t size)
{
	struct nacre_err err = {0};
	int r = 0;

	while (r >= 0 && size > 0) {
		cleanup_json json_t *answer = NULL;
		size_t used;

		r = nc_frame_take(&archive->in, data, size, &used, &answer, &err);
		if (r <= 0)
			break;
		if (!archive->asked || archive->asked->words ||
			json_integer_value(json_object_get(answer, "n")) != archive->asked->n)
			return -EPROTO;
		settle(archive, answer);
		send_next(archive);
		data += used;
		size -= used;
	}
	return r;
}

static void on_ready(void *context, int events)
{
	struct nc_archive *archive = context;
	char chunk[CHUNK];
	ssize_t n;

	if (events & UV_READABLE) {
		n = read(archive->fd, chunk, sizeof(chunk));
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) ||
			(n > 0 && take(archive, chunk, (size_t)n) < 0)) {
			lose(archive);
			return;
		}
	}
	if (archive->fd >= 0)
		flush(archive);
}

void nc_archive_tick(struct nc_archive *archive)
{
	if (archive->asked && !archive->asked->words &&
		nc_clock_ns() - archive->asked->since_ns > ANSWER_NS)
		lose(archive); /* and what it was asked is answered with that; it is called again */
}

bool nc_archive_is_up(const struct nc_archive *archive)
{
	return archive->fd >= 0;
}

int nc_archive_meet(struct nc_archive *archive, int fd)
{
	int r;

	lose(archive);
	nc_frame_in_done(&archive->in);
	nc_frame_out_done(&archive->out);
	archive->in = (struct nc_frame_in){
		.max = NC_FRAME_REPLY_MAX, .max_values = NC_FRAME_REPLY_VALUES_MAX};
	archive->out = (struct nc_frame_out){.buf = NC_BUF(2 * QUESTION_MAX)};
	r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno
					       : nc_poll_new(archive->loop, fd, UV_READABLE,
							 on_ready, archive, &archive->poll);
	archive->fd = r < 0 ? nc_fd_close(fd) : fd;
	return r;
}

int nc_archive_new(uv_loop_t *loop, int fd, struct nc_archive **ret_archive)
{
	struct nc_archive *archive = calloc(1, sizeof(*archive));
	int r = -ENOMEM;

	if (archive) {
		*archive = (struct nc_archive){.loop = loop, .fd = -EBADF};
		r = nc_archive_meet(archive, fd);
	} else {
		(void)close(fd);
	}
	if (r < 0) {
		nc_archive_free(archive);
		return r;
	}
	*ret_archive = archive;
	return 0;
}

void nc_archive_free(struct nc_archive *archive)
{
	if (!archive)
		return;
	lose(archive);
	nc_frame_in_done(&archive->in);
	nc_frame_out_done(&archive->out);
	free(archive);
}

/* Before all whose turn is later. As many as a tenant asks at once, as much later is the last. */
static void queue(struct nc_archive *archive, struct question *question, size_t own)
{
	struct question **place = &archive->asked;

	question->turn = archive->turn + own + 1;
	while (*place && (!(*place)->words || (*place)->turn <= question->turn))
		place = &(*place)->next;
	question->next = *place;
	*place = question;
	archive->n_asked++;
}

int nc_archive_ask(struct nc_archive *archive, const char *tenant, json_t *question,
	nc_archive_answer answer, void *context)
{
	cleanup_json json_t *words = question;
	struct question *asked;
	size_t own = 0;

	for (asked = archive->asked; asked; asked = asked->next)
		own += nc_streq(asked->tenant, tenant);
	if (archive->fd < 0)
		return -ECONNRESET;
	if (archive->n_asked >= WAITING_MAX ||
		(*tenant && !nc_share_allows(own, archive->n_asked, WAITING_MAX)))
		return -EAGAIN;
	if (!words || json_object_set_new(words, "n", json_integer(++archive->last_n)) < 0)
		return -ENOMEM;
	if (json_dumpb(words, NULL, 0, JSON_COMPACT) > QUESTION_MAX)
		return -EMSGSIZE;
	asked = calloc(1, sizeof(*asked));
	if (!asked)
		return -ENOMEM;
	*asked = (struct question){.n = archive->last_n,
		.words = take_ptr(words),
		.answer = answer,
		.context = context};
	(void)snprintf(asked->tenant, sizeof(asked->tenant), "%s", tenant);
	queue(archive, asked, own);
	if (archive->n_asked == 1)
		send_next(archive);
	return 0;
}

void nc_archive_forget(struct nc_archive *archive, const void *context)
{
	for (struct question *asked = archive->asked; asked; asked = asked->next)
		if (asked->context == context)
			asked->answer = NULL;
}
