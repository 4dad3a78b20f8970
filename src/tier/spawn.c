/* The unprivileged side's view of the spawner. */
#include "tier/spawn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/text.h"

#define SPAWNER_FD 3

bool nc_spawn_here(void)
{
	const char *word = getenv("NACRE_SPAWNER");

	return word && nc_streq(word, "3");
}

int nc_spawn_connect(struct nc_spawn *spawn, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;
	int r;

	*spawn = (struct nc_spawn){.fd = SPAWNER_FD};
	nc_wire_begin(&out, NC_BOX_HELLO);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	r = nc_wire_send(spawn->fd, &out, NULL, 0);
	if (r == 0) {
		r = nc_wire_receive(spawn->fd, &spawn->packet, 0);
		r = r > 0   ? nc_wire_open(&in, spawn->packet.data, spawn->packet.size)
		    : r < 0 ? r
			    : -EPIPE;
	}
	if (r == 0 && (in.type != NC_BOX_WELCOME || nc_wire_get_u32(&in) != NC_BOXWIRE_VERSION))
		r = -EPROTO;
	if (r == 0) {
		nc_boxwire_get_host(&in, &spawn->host);
		r = nc_wire_close(&in);
	}
	return r < 0 ? nc_err_errno(err, r, "Greet the spawner") : 0;
}

void nc_spawn_done(struct nc_spawn *spawn)
{
	nc_wire_packet_done(&spawn->packet);
	spawn->fd = nc_fd_close(spawn->fd);
}

int nc_spawn_run(struct nc_spawn *spawn, const struct nc_box_order *order, const int stdio[3],
	struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r = -E2BIG;

	/* the spawner would take a longer order for a broken one, and end us */
	if (order->argv.size <= NC_BOX_ARG_SIZE_MAX && order->env.size <= NC_BOX_ARG_SIZE_MAX) {
		nc_wire_begin(&out, NC_BOX_RUN);
		nc_boxwire_put_order(&out, order);
		r = nc_wire_send(spawn->fd, &out, stdio, 3);
	}
	if (r == -E2BIG || r == -EMSGSIZE)
		return nc_err_set(err, -E2BIG, "Arguments or environment are longer than %u KiB",
			NC_BOX_ARG_SIZE_MAX / 1024);
	return r < 0 ? nc_err_errno(err, r, "Order a box") : 0;
}

int nc_spawn_kill(struct nc_spawn *spawn, uint64_t id, enum nc_box_cause cause)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_KILL);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u8(&out, (uint8_t)cause);
	return nc_wire_send(spawn->fd, &out, NULL, 0);
}

int nc_spawn_receive(struct nc_spawn *spawn, struct nc_spawn_event *ret_event)
{
	struct nc_spawn_event event = {0};
	struct nc_wire_in in;
	int r = nc_wire_receive(spawn->fd, &spawn->packet, 0);

	if (r <= 0)
		return r < 0 ? r : -ECONNRESET;
	r = nc_wire_open(&in, spawn->packet.data, spawn->packet.size);
	if (r < 0)
		return r;
	event.type = (enum nc_box_message)in.type;
	if (in.type == NC_BOX_ENDED) {
		nc_boxwire_get_end(&in, &event.end);
		event.id = event.end.id;
	} else if (in.type == NC_BOX_STARTED) {
		event.id = nc_wire_get_u64(&in);
		event.birth_ns = nc_wire_get_u64(&in);
	} else if (in.type == NC_BOX_FAILED) {
		event.id = nc_wire_get_u64(&in);
		event.failure.code = -(int)nc_wire_get_u32(&in);
		nc_wire_get_text(&in, event.failure.message, NACRE_ERR_MESSAGE_MAX - 1);
	} else {
		return -EPROTO;
	}
	if (nc_wire_close(&in) < 0)
		return -EPROTO;
	*ret_event = event;
	return 0;
}
