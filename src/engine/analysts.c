/* Those who read foreign programs for the daemon. */
#include "engine/analysts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/meeting.h"
#include "base/text.h"
#include "base/wire.h"
#include "engine/analyst.h"
#include "engine/owner.h"
#include "policy/portable.h"
#include "tier/poll.h"

/* Children at once: those who only wait cost some hundred KiB each. */
#define CHILDREN_MIN 3U
#define CHILDREN_MAX 8U
/* That a question may take; the child's own bound of CPU time is far below it. */
#define ANSWER_NS (15 * NC_NS_PER_S)
/* That a study may wait and take in all. */
#define STUDY_NS (30 * NC_NS_PER_S)
/* Who has nothing to do for so long goes. */
#define IDLE_NS (10 * NC_NS_PER_S)
/* Children that may be lost by one program: two that read it for a while, or more that were dead
 * before it came, by no fault of its own. */
#define TRIES_MAX 8U
#define TRIES_OF_A_READER 4U
#define READER_NS (50 * NC_NS_PER_MS)
/* Policies whose bytes are at hand. */
#define PACKED_MAX 16

struct nc_inquiry {
	struct nc_analysts *all;
	struct nc_inquiry *next;
	struct nc_study *study;
	char tenant[NC_REQUEST_NAME_MAX + 1];
	size_t at; /* the text that is read, or next */
	unsigned int tries;
	uint64_t until_ns;
	uint64_t served;     /* all->turn when its tenant had one last, or came */
	struct child *child; /* who reads it; NULL: it waits */
	void (*done)(void *context);
	void *context;
};

struct child {
	struct nc_analysts *all;
	struct child *next;
	int fd;
	struct nc_poll *poll;
	char tenant[NC_REQUEST_NAME_MAX + 1];
	bool used;		    /* by that tenant */
	bool large;		    /* what it reads is, and it ends after it */
	struct nc_inquiry *inquiry; /* NULL: it waits */
	uint64_t since_ns;	    /* that it reads, or waits */
	struct nc_buf answer;
};

struct nc_analysts {
	uv_loop_t *loop;
	int place_fd;
	size_t max, large_max; /* children, and those of them that read something large */
	struct child *children;
	size_t n_children, n_large;
	struct nc_inquiry *inquiries; /* the oldest first */
	size_t n_inquiries;
	uint64_t turn; /* programs that were given to a child */
	struct {
		uint64_t number;
		int fd;
	} packed[PACKED_MAX];
	size_t next_packed;
	struct nc_wire_packet packet;
};

static void assign(struct nc_analysts *all);

int nc_analysts_new(uv_loop_t *loop, int place_fd, struct nc_analysts **ret_analysts)
{
	struct nc_analysts *all = calloc(1, sizeof(*all));
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t cores = processors > 0 ? (size_t)processors : 1;

	if (!all)
		return -ENOMEM;
	all->loop = loop;
	all->place_fd = place_fd;
	all->max = cores + 2 < CHILDREN_MIN   ? CHILDREN_MIN
		   : cores + 2 > CHILDREN_MAX ? CHILDREN_MAX
					      : cores + 2;
	all->large_max = all->max < 8 ? 1 : all->max / 4;
	for (size_t i = 0; i < PACKED_MAX; i++)
		all->packed[i].fd = -EBADF;
	assign(all); /* one waits from the start */
	*ret_analysts = all;
	return 0;
}

/* ---- children ---- */

static void child_free(struct child *child)
{
	struct nc_analysts *all = child->all;
	struct child **place = &all->children;

	while (*place != child)
		place = &(*place)->next;
	*place = child->next;
	all->n_children--;
	all->n_large -= child->large;
	if (child->inquiry)
		child->inquiry->child = NULL;
	child->poll = nc_poll_free(child->poll);
	(void)nc_fd_close(child->fd);
	nc_buf_done(&child->answer);
	free(child);
}

static void on_readable(void *context, int events);

/* It can be asked at once: what it is sent waits until it has been born. */
static struct child *child_new(struct nc_analysts *all)
{
	struct child *child = calloc(1, sizeof(*child));
	int r = child ? nc_meeting_call(all->place_fd, SOCK_SEQPACKET) : -ENOMEM;

	if (r >= 0) {
		child->fd = r;
		r = fcntl(child->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
		if (r == 0)
			r = nc_poll_new(all->loop, child->fd, UV_READABLE, on_readable, child,
				&child->poll);
		if (r < 0)
			(void)nc_fd_close(child->fd);
	}
	if (r < 0) {
		free(child);
		return NULL;
	}
	child->all = all;
	child->since_ns = nc_clock_ns();
	child->answer = (struct nc_buf)NC_BUF(NC_PORTABLE_REPORT_MAX + 1024);
	child->next = all->children;
	all->children = child;
	all->n_children++;
	return child;
}

/* One that waits and is the tenant's, else one that is nobody's yet, else a new one. */
static struct child *find_child(struct nc_analysts *all, const char *tenant)
{
	struct child *fresh = NULL, *other = NULL;

	for (struct child *child = all->children; child; child = child->next) {
		if (child->inquiry)
			continue;
		if (child->used && nc_streq(child->tenant, tenant))
			return child;
		if (!child->used)
			fresh = child;
		else
			other = child;
	}
	if (fresh)
		return fresh;
	if (all->n_children >= all->max && other)
		child_free(other);
	return all->n_children < all->max ? child_new(all) : NULL;
}

/* So that a tenant who comes next need not wait for a birth. */
static void keep_spare(struct nc_analysts *all)
{
	for (const struct child *child = all->children; child; child = child->next)
		if (!child->used)
			return;
	if (all->n_children < all->max)
		(void)child_new(all); /* else one is made when it is needed */
}

/* ---- questions ---- */

static int make_memory(const void *data, size_t size)
{
	cleanup_close int fd = memfd_create("nacre-analyst", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : nc_fd_write_all(fd, data, size);

	if (r == 0 && fcntl(fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(fd);
}

/* The bytes of a policy, which stay ours. */
static int pack_policy(struct nc_analysts *all, const struct nc_terms *terms)
{
	nc_buf_cleanup struct nc_buf bytes = NC_BUF(NC_PORTABLE_POLICY_MAX);
	size_t at = all->next_packed;
	int r;

	for (size_t i = 0; i < PACKED_MAX; i++)
		if (all->packed[i].fd >= 0 && all->packed[i].number == terms->number)
			return all->packed[i].fd;
	nc_policy_pack(terms->analyser, &bytes);
	r = bytes.error < 0 ? bytes.error : make_memory(bytes.data, bytes.size);
	if (r < 0)
		return r;
	(void)nc_fd_close(all->packed[at].fd);
	all->packed[at].number = terms->number;
	all->next_packed = (at + 1) % PACKED_MAX;
	return all->packed[at].fd = r;
}

static int send_question(struct child *child, const struct nc_inquiry *inquiry)
{
	const struct nc_study_text *text = &inquiry->study->text[inquiry->at];
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_close int code_fd = -EBADF;
	const bool large = text->size > NC_ANALYST_SMALL;
	int fds[2], r = pack_policy(child->all, inquiry->study->terms);

	if (r < 0)
		return r;
	fds[0] = r;
	if (large)
		r = fds[1] = code_fd = make_memory(text->code, text->size);
	if (r < 0)
		return r;
	nc_wire_begin(&out, NC_ANALYST_QUESTION);
	nc_wire_put_u64(&out, inquiry->study->terms->number);
	nc_wire_put_u8(&out, text->language >= 0 ? (uint8_t)text->language : NC_ANALYST_DETECT);
	nc_wire_put_text(&out, text->file);
	nc_wire_put_bytes(&out, text->code, large ? 0 : text->size);
	return nc_wire_send(child->fd, &out, fds, large ? 2 : 1);
}

static void end_inquiry(struct nc_inquiry *inquiry)
{
	struct nc_inquiry **place = &inquiry->all->inquiries;

	while (*place != inquiry)
		place = &(*place)->next;
	*place = inquiry->next;
	inquiry->all->n_inquiries--;
	inquiry->study->inquiry = NULL;
	free(inquiry);
}

static void tell(struct nc_inquiry *inquiry)
{
	void (*done)(void *context) = inquiry->done;
	void *context = inquiry->context;

	end_inquiry(inquiry);
	done(context);
}

/* This text is done with, by whatever came of it. */
static void step(struct nc_inquiry *inquiry, int error)
{
	struct nc_study_text *text = &inquiry->study->text[inquiry->at];

	text->error = error;
	inquiry->tries = 0;
	/* the first that is bad decides */
	if (error < 0 || ++inquiry->at == inquiry->study->count)
		tell(inquiry);
}

/* ---- whose turn it is ---- */

static size_t children_of(const struct nc_analysts *all, const char *tenant)
{
	size_t n = 0;

	for (const struct child *child = all->children; child; child = child->next)
		n += child->inquiry && nc_streq(child->inquiry->tenant, tenant);
	return n;
}

static bool is_large(const struct nc_inquiry *inquiry)
{
	return inquiry->study->text[inquiry->at].size > NC_ANALYST_SMALL;
}

/* Of the tenant that has the fewest read, or of those the one that waited longest for its turn:
 * where large programs are read one after the other, nobody has any when the next is chosen. */
static struct nc_inquiry *find_next(const struct nc_analysts *all)
{
	struct nc_inquiry *best = NULL;
	size_t least = all->max - 1; /* the last one is left to others */

	for (struct nc_inquiry *at = all->inquiries; at; at = at->next) {
		size_t n;

		if (at->child || !at->until_ns || (is_large(at) && all->n_large >= all->large_max))
			continue;
		n = children_of(all, at->tenant);
		if (best ? n > least || (n == least && at->served >= best->served) : n >= least)
			continue;
		best = at;
		least = n;
	}
	return best;
}

static void mark_served(struct nc_analysts *all, const char *tenant)
{
	all->turn++;
	for (struct nc_inquiry *at = all->inquiries; at; at = at->next)
		if (nc_streq(at->tenant, tenant))
			at->served = all->turn;
}

static void begin(struct child *child, struct nc_inquiry *inquiry)
{
	int r = send_question(child, inquiry);

	if (r < 0) {
		child_free(child);
		if (++inquiry->tries >= TRIES_MAX)
			inquiry->until_ns = 0; /* the next tick tells */
		return;
	}
	child->used = true;
	(void)snprintf(child->tenant, sizeof(child->tenant), "%s", inquiry->tenant);
	child->large = is_large(inquiry);
	child->all->n_large += child->large;
	child->since_ns = nc_clock_ns();
	child->inquiry = inquiry;
	inquiry->child = child;
	mark_served(child->all, inquiry->tenant);
}

static void assign(struct nc_analysts *all)
{
	struct nc_inquiry *next;
	struct child *child;

	while ((next = find_next(all)) && (child = find_child(all, next->tenant)))
		begin(child, next);
	keep_spare(all);
}

/* ---- answers ---- */

static void read_answer(const struct nc_buf *answer, struct nc_study_text *text, int *ret_error)
{
	struct nc_wire_in in = {
		.at = (const unsigned char *)nc_buf_text(answer), .left = answer->size};
	uint32_t error = nc_wire_get_u32(&in);
	uint8_t language = nc_wire_get_u8(&in);

	nc_wire_get_text(&in, text->found.reason, sizeof(text->found.reason) - 1);
	if (in.error < 0 || language >= NC_LANGUAGE_MAX || error > 4095)
		*ret_error = -EPROTO;
	else if (error)
		*ret_error = error == ENOENT || error == ENOMEM ? -(int)error : -EPROTO;
	else
		*ret_error = nc_report_unpack(in.at, in.left, &text->report);
	if (*ret_error == -EBADMSG)
		*ret_error = -EPROTO;
	text->found.language = (enum nc_language)language;
}

/* The child has gone, or is given up. */
static void lose(struct child *child)
{
	struct nc_inquiry *inquiry = child->inquiry;
	bool has_read = nc_clock_ns() - child->since_ns > READER_NS;

	child_free(child);
	if (!inquiry)
		return;
	inquiry->tries += has_read ? TRIES_OF_A_READER : 1;
	if (inquiry->tries >= TRIES_MAX)
		step(inquiry, -EPROTO);
}

static int take_part(struct child *child)
{
	struct nc_analysts *all = child->all;
	struct nc_wire_in in;
	const void *data;
	size_t size;
	bool last;
	int r = nc_wire_receive(child->fd, &all->packet, 0);

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	r = nc_wire_open(&in, all->packet.data, all->packet.size);
	last = nc_wire_get_u8(&in);
	size = nc_wire_get_bytes(&in, NC_ANALYST_PART_MAX, &data);
	if (r < 0 || in.type != NC_ANALYST_ANSWER || nc_wire_close(&in) < 0 || !child->inquiry)
		return -EBADMSG;
	nc_buf_add(&child->answer, data, size);
	return child->answer.error < 0 ? child->answer.error : last;
}

static void on_readable(void *context, int events)
{
	struct child *child = context;
	struct nc_analysts *all = child->all;
	struct nc_inquiry *inquiry = child->inquiry;
	int error, r = take_part(child);

	(void)events;
	if (r == -EAGAIN || r == 0)
		return;
	if (r < 0) {
		lose(child);
	} else {
		read_answer(&child->answer, &inquiry->study->text[inquiry->at], &error);
		child->inquiry = NULL;
		inquiry->child = NULL;
		child->since_ns = nc_clock_ns();
		child->answer.size = 0;
		if (child->large)
			child_free(child); /* it ends, and so does what it has taken */
		step(inquiry, error);
	}
	assign(all);
}

/* ---- asking ---- */

/* What a tenant has open, and when it had its turn: who has nothing open counts as served just now,
 * or coming again and again would be a way past those who wait. */
static size_t open_of(const struct nc_analysts *all, const char *tenant, uint64_t *ret_served)
{
	uint64_t served = all->turn;
	size_t n = 0;

	for (const struct nc_inquiry *at = all->inquiries; at; at = at->next) {
		if (!nc_streq(at->tenant, tenant))
			continue;
		served = at->served;
		n++;
	}
	*ret_served = served;
	return n;
}

int nc_analysts_ask(struct nc_analysts *all, const char *tenant, struct nc_study *study,
	void (*done)(void *context), void *context)
{
	struct nc_inquiry *inquiry, **end = &all->inquiries;
	uint64_t served;
	size_t own = open_of(all, tenant, &served);

	assert(study->count > 0 && !study->inquiry);
	if (all->n_inquiries >= NC_STUDIES_MAX ||
		(*tenant && !nc_share_allows(own, all->n_inquiries, NC_STUDIES_MAX)))
		return -EAGAIN;
	inquiry = calloc(1, sizeof(*inquiry));
	if (!inquiry)
		return -ENOMEM;
	*inquiry = (struct nc_inquiry){.all = all,
		.study = study,
		.until_ns = nc_clock_ns() + STUDY_NS,
		.served = served,
		.done = done,
		.context = context};
	(void)snprintf(inquiry->tenant, sizeof(inquiry->tenant), "%s", tenant);
	study->inquiry = inquiry;
	while (*end)
		end = &(*end)->next;
	*end = inquiry;
	all->n_inquiries++;
	assign(all);
	return 0;
}

void nc_analysts_forget(struct nc_study *study)
{
	struct nc_inquiry *inquiry = study->inquiry;
	struct nc_analysts *all;

	if (!inquiry)
		return;
	all = inquiry->all;
	if (inquiry->child) /* it would answer what nobody asked */
		child_free(inquiry->child);
	end_inquiry(inquiry);
	assign(all);
}

/* Who does not answer has been stopped, or worse. */
static void give_up(struct nc_analysts *all, uint64_t now)
{
	for (struct child *next, *child = all->children; child; child = next) {
		struct nc_inquiry *inquiry = child->inquiry;

		next = child->next;
		if (inquiry && now - child->since_ns > ANSWER_NS)
			child_free(child);
		else if (!inquiry && child->used && now - child->since_ns > IDLE_NS)
			child_free(child);
	}
}

void nc_analysts_tick(struct nc_analysts *all)
{
	const uint64_t now = nc_clock_ns();

	give_up(all, now);
	for (struct nc_inquiry *next, *at = all->inquiries; at; at = next) {
		next = at->next;
		if (now < at->until_ns)
			continue;
		if (at->child)
			child_free(at->child);
		at->study->text[at->at].error = -ETIME;
		tell(at);
		next = all->inquiries; /* whoever was told may have asked, or forgotten, another */
	}
	assign(all);
}

size_t nc_analysts_open(const struct nc_analysts *all)
{
	return all->n_inquiries;
}

void nc_analysts_free(struct nc_analysts *all)
{
	if (!all)
		return;
	while (all->inquiries)
		end_inquiry(all->inquiries);
	while (all->children)
		child_free(all->children);
	for (size_t i = 0; i < PACKED_MAX; i++)
		(void)nc_fd_close(all->packed[i].fd);
	nc_wire_packet_done(&all->packet);
	free(all);
}
