/* A reply that takes long to be written. */
#include "server/writing.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "server/reply.h"
#include "server/sheet.h"

/* Less is written at once. */
#define AT_ONCE_MAX (32U * 1024)

struct nc_writing {
	uv_work_t work;
	struct nc_writing *next; /* of the server's */
	struct nc_server *server;
	struct nc_exchange *exchange; /* NULL: nobody waits any more */
	void (*write)(const struct nc_buf *data, struct nc_buf *out);
	struct nc_buf data, out;
};

static void let_go(struct nc_writing *writing)
{
	struct nc_writing **place = &writing->server->writings;

	while (*place != writing)
		place = &(*place)->next;
	*place = writing->next;
	writing->exchange->keeper = NULL;
	writing->exchange->gone = NULL;
	writing->exchange = NULL;
}

static void finish(struct nc_writing *writing)
{
	struct nc_exchange *exchange = writing->exchange;
	struct nc_sheet *sheet = exchange ? nc_sheet_new(&writing->out) : NULL;

	if (exchange) {
		let_go(writing);
		nc_reply_sheet(exchange, 200, "", sheet, "");
		nc_sheet_unref(sheet);
	}
	nc_buf_done(&writing->data);
	nc_buf_done(&writing->out);
	free(writing);
}

static void work(uv_work_t *request)
{
	struct nc_writing *writing = request->data;

	(void)setpriority(PRIO_PROCESS, 0, NC_ASIDE_NICE);
	writing->write(&writing->data, &writing->out);
}

static void on_worked(uv_work_t *request, int status)
{
	(void)status; /* if it was cancelled nobody waits */
	finish(request->data);
}

static void abandon(struct nc_writing *writing)
{
	let_go(writing);
	(void)uv_cancel((uv_req_t *)&writing->work); /* on_worked follows in any case */
}

static void on_gone(struct nc_exchange *exchange)
{
	abandon(exchange->keeper);
}

void nc_writing_begin(struct nc_server *server, struct nc_exchange *exchange, struct nc_buf *data,
	bool is_work, void (*write)(const struct nc_buf *data, struct nc_buf *out))
{
	struct nc_writing *writing = calloc(1, sizeof(*writing));

	if (!writing) {
		nc_buf_done(data);
		nc_reply_json(exchange, 200, NULL);
		return;
	}
	*writing = (struct nc_writing){.work.data = writing,
		.next = server->writings,
		.server = server,
		.exchange = exchange,
		.write = write,
		.data = *data,
		.out = NC_BUF(NC_REPLY_TEXT_MAX)};
	*data = (struct nc_buf)NC_BUF(0);
	server->writings = writing;
	exchange->keeper = writing;
	exchange->gone = on_gone;
	if ((is_work || writing->data.size > AT_ONCE_MAX) &&
		uv_queue_work(server->setup.loop, &writing->work, work, on_worked) == 0)
		return;
	write(&writing->data, &writing->out);
	finish(writing);
}

void nc_writings_drop(struct nc_server *server)
{
	while (server->writings)
		abandon(server->writings);
}
