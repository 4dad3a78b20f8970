/* What outlives the daemon. */
#include "server/tally.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"

#define FILE_NAME "tally"
/* So often, in seconds, it is looked up what others have added. */
#define LOOK_TICKS 5U

typedef char alert_name[NC_REQUEST_NAME_MAX + 1];

/* The file; of a name that is not text nothing is taken. */
struct page {
	uint64_t lost;
	alert_name firing[NC_CONFIG_MAP_MAX];
};

struct nc_tally {
	uv_work_t work;
	uv_loop_t *loop;
	int fd;
	uv_mutex_t file; /* held while it is read and written */
	uv_mutex_t data; /* held for a moment */
	struct page page;
	uint64_t more_lost; /* than the file says */
	bool changed;	    /* the alerts */
	bool works, freed, failed;
	unsigned int ticks;
};

int nc_tally_open(int dir_fd)
{
	return nc_path_open(dir_fd, FILE_NAME, O_RDWR | O_CREAT, 0600);
}

/* It may have been written by a daemon that was taken over. */
static void read_page(struct nc_tally *tally)
{
	if (tally->fd >= 0 && pread(tally->fd, &tally->page, sizeof(tally->page), 0) < 0)
		tally->page = (struct page){0};
	for (size_t i = 0; i < NC_CONFIG_MAP_MAX; i++)
		tally->page.firing[i][NC_REQUEST_NAME_MAX] = '\0';
}

struct nc_tally *nc_tally_new(uv_loop_t *loop, int fd)
{
	struct nc_tally *tally = calloc(1, sizeof(*tally));

	if (!tally || uv_mutex_init(&tally->file) < 0) {
		free(tally);
		return NULL;
	}
	if (uv_mutex_init(&tally->data) < 0) {
		uv_mutex_destroy(&tally->file);
		free(tally);
		return NULL;
	}
	tally->loop = loop;
	tally->fd = fd;
	tally->work.data = tally;
	read_page(tally);
	return tally;
}

/* Adds to what the file says now, and learns it. */
static void exchange(struct nc_tally *tally)
{
	uint64_t more, lost = 0;
	struct page now;
	bool changed, failed;

	uv_mutex_lock(&tally->data);
	now = tally->page;
	more = tally->more_lost;
	changed = tally->changed;
	tally->changed = false;
	uv_mutex_unlock(&tally->data);
	if (pread(tally->fd, &lost, sizeof(lost), 0) != (ssize_t)sizeof(lost))
		lost = 0;
	lost += more;
	if (more > 0 && pwrite(tally->fd, &lost, sizeof(lost), 0) != (ssize_t)sizeof(lost)) {
		lost -= more; /* the next time */
		more = 0;
	}
	failed = changed && pwrite(tally->fd, now.firing, sizeof(now.firing),
				    offsetof(struct page, firing)) < 0;
	uv_mutex_lock(&tally->data);
	tally->failed = failed;
	tally->page.lost = lost;
	tally->more_lost -= more;
	tally->changed = tally->changed || failed; /* the next time */
	uv_mutex_unlock(&tally->data);
}

static void work(uv_work_t *request)
{
	struct nc_tally *tally = request->data;

	uv_mutex_lock(&tally->file);
	exchange(tally);
	uv_mutex_unlock(&tally->file);
}

static void destroy(struct nc_tally *tally)
{
	uv_mutex_destroy(&tally->file);
	uv_mutex_destroy(&tally->data);
	free(tally);
}

static void on_worked(uv_work_t *request, int status)
{
	struct nc_tally *tally = request->data;

	(void)status;
	tally->works = false;
	if (tally->failed)
		nc_log(NC_LOG_ERROR, "Which alerts fire could not be kept");
	if (tally->freed)
		destroy(tally);
}

void nc_tally_tick(struct nc_tally *tally)
{
	if (tally->fd < 0 || tally->works ||
		(tally->ticks++ % LOOK_TICKS != 0 && tally->more_lost == 0 && !tally->changed))
		return;
	tally->works = uv_queue_work(tally->loop, &tally->work, work, on_worked) == 0;
}

void nc_tally_free(struct nc_tally *tally)
{
	if (!tally)
		return;
	if (tally->fd >= 0)
		work(&tally->work);
	tally->freed = true;
	if (!tally->works)
		destroy(tally);
}

void nc_tally_lose(struct nc_tally *tally, uint64_t count)
{
	uv_mutex_lock(&tally->data);
	if (tally->fd >= 0)
		tally->more_lost += count;
	else
		tally->page.lost += count;
	uv_mutex_unlock(&tally->data);
}

uint64_t nc_tally_lost(const struct nc_tally *tally)
{
	struct nc_tally *own = (struct nc_tally *)(uintptr_t)tally;
	uint64_t lost;

	uv_mutex_lock(&own->data);
	lost = own->page.lost + own->more_lost;
	uv_mutex_unlock(&own->data);
	return lost;
}

bool nc_tally_is_behind(const struct nc_tally *tally)
{
	struct nc_tally *own = (struct nc_tally *)(uintptr_t)tally;
	bool behind;

	uv_mutex_lock(&own->data);
	behind = own->fd >= 0 && (own->works || (own->changed && !own->failed));
	uv_mutex_unlock(&own->data);
	return behind;
}

/* Only the loop writes names, so that it reads them without the lock. */
bool nc_tally_fires(const struct nc_tally *tally, const char *alert)
{
	for (size_t i = 0; i < NC_CONFIG_MAP_MAX; i++)
		if (nc_streq(tally->page.firing[i], alert))
			return true;
	return false;
}

void nc_tally_set(struct nc_tally *tally, const char *alert, bool fires)
{
	const char *old = fires ? "" : alert, *new = fires ? alert : "";

	if (nc_tally_fires(tally, alert) == fires)
		return;
	uv_mutex_lock(&tally->data);
	for (size_t i = 0; i < NC_CONFIG_MAP_MAX; i++)
		if (nc_streq(tally->page.firing[i], old)) {
			memset(tally->page.firing[i], 0, sizeof(tally->page.firing[i]));
			(void)snprintf(
				tally->page.firing[i], sizeof(tally->page.firing[i]), "%s", new);
			break;
		}
	tally->changed = true;
	uv_mutex_unlock(&tally->data);
}
