/*
 * Theory of operation: a descriptor of a box is reported once and then armed again, because the
 * registration of one that was closed lives on for as long as a process that was forked meanwhile
 * has a copy: such a ghost speaks once at the most. Each arming has a number, and what bears
 * another than the last is a ghost's. That another descriptor has come to stand under the same
 * digits is seen by the state, which is another then.
 */
#include "spawner/events.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/fd.h"

static uint32_t last_number;

int nc_events_watch(int events_fd, int fd, enum nc_event_kind kind, size_t index)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = index << 8 | kind};

	return epoll_ctl(events_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* The descriptor and which of them it is. */
static int find_awaited(const struct nc_box *box, uint32_t *ret_which)
{
	*ret_which = 0;
	switch (box->state) {
	case NC_BOX_GROWING:
	case NC_BOX_BORROWING:
	case NC_BOX_WAITING:
	case NC_BOX_STARTING:
		return box->report_fd;
	case NC_BOX_RUNS:
	case NC_BOX_STAYS:
	case NC_BOX_SETTLED:
	case NC_BOX_DYING:
		*ret_which = box->payload_fd >= 0 ? 1 : box->init_fd >= 0 ? 2 : 3;
		return box->payload_fd >= 0 ? box->payload_fd
		       : box->init_fd >= 0  ? box->init_fd
					    : box->cleaner_fd;
	case NC_BOX_CLEARING:
		return box->payload_fd;
	case NC_BOX_FREE:
	case NC_BOX_KEPT:
		break;
	}
	return -EBADF;
}

static uint32_t key_of(const struct nc_box *box, uint32_t which)
{
	return (uint32_t)box->state << 2 | which;
}

int nc_events_awaited(const struct nc_box *box)
{
	uint32_t which;

	return find_awaited(box, &which);
}

bool nc_events_is_due(const struct nc_box *box)
{
	uint32_t which;

	return box->state != NC_BOX_FREE && find_awaited(box, &which) == box->watch[0].fd &&
	       box->watch[0].key == key_of(box, which);
}

static bool arm(int events_fd, struct nc_watch *watch, int fd, uint32_t key, uint64_t name)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

	if (fd < 0) {
		watch->number = 0;
		return true;
	}
	if (watch->number > 0 && watch->fd == fd && watch->key == key)
		return true;
	if (++last_number == 0)
		last_number = 1;
	*watch = (struct nc_watch){.fd = fd, .key = key, .number = last_number};
	event.data.u64 = name | (uint64_t)watch->number << 32;
	if (epoll_ctl(events_fd, EPOLL_CTL_MOD, fd, &event) == 0 ||
		(errno == ENOENT && epoll_ctl(events_fd, EPOLL_CTL_ADD, fd, &event) == 0))
		return true;
	watch->number = 0;
	return false;
}

static bool arm_box(int events_fd, struct nc_box *box, uint64_t name)
{
	uint32_t which;
	int fd = find_awaited(box, &which);

	return box->state == NC_BOX_FREE ||
	       (arm(events_fd, &box->watch[0], fd, key_of(box, which), name | NC_EVENT_BOX) &&
		       arm(events_fd, &box->watch[1], box->listener_fd, box->state,
			       name | NC_EVENT_DENIED));
}

bool nc_events_arm(int events_fd, struct nc_table *table)
{
	bool armed = true;

	NC_EACH_MOVING (table, box)
		if (arm_box(events_fd, box, (uint64_t)(box - table->box) << 8))
			nc_table_settle(table, box);
		else
			armed = false;
	return armed;
}

int nc_events_wait(int events_fd, struct nc_box *boxes, int timeout_ms, struct nc_event *ret)
{
	struct epoll_event events[NC_EVENTS_MAX];
	int n = epoll_wait(events_fd, events, NC_EVENTS_MAX, timeout_ms), found = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		uint64_t name = events[i].data.u64;
		struct nc_event event = {(enum nc_event_kind)(name & 0xff), name >> 8 & 0xffffff};

		if (event.kind >= NC_EVENT_BOX) {
			struct nc_box *box = &boxes[event.box];
			struct nc_watch *watch = &box->watch[event.kind == NC_EVENT_DENIED];

			if (box->state == NC_BOX_FREE || watch->number != name >> 32)
				continue;
			watch->number = 0;
		}
		ret[found++] = event;
	}
	return found;
}
