/*
 * nacre top: the boxes that run on this machine, once or again and again in place.
 *
 * On a terminal it draws on the other screen with line wrapping off and gives both back, with the
 * mode of the keyboard, however it ends: signals are read from a descriptor, not handled.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/cli.h"
#include "tier/tier.h"
#include "watch/boxes.h"
#include "watch/monitor.h"

/* CPU use is the difference of two looks: the first answer takes this long. */
#define FIRST_LOOK_MS 200U
#define INTERVAL_MIN_MS 100U
#define INTERVAL_MAX_MS (3600U * 1000)

static bool arg_json;
static bool arg_once;
static const char *arg_interval;

static const struct nc_option options[] = {
	{.name = "interval",
		.value = "TIME",
		.help = "Time between two looks; 2s if not given",
		.text = &arg_interval},
	{.name = "json", .help = "Print JSON, one object per look", .flag = &arg_json},
	{.name = "once", .help = "Look once, also on a terminal", .flag = &arg_once},
	{0},
};

/* A box with what is known of it from look to look. */
struct row {
	char spawner[sizeof(((struct nc_live_box *)0)->spawner)];
	char name[sizeof(((struct nc_live_box *)0)->name)];
	struct nc_monitor *monitor;
};

struct screen {
	struct nc_live_boxes boxes;
	struct row *rows; /* of each box */
	size_t n_rows;
};

static void rows_free(struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		nc_monitor_free(rows[i].monitor);
	free(rows);
}

static void screen_done(struct screen *screen)
{
	rows_free(screen->rows, screen->n_rows);
	nc_boxes_done(&screen->boxes);
}

/* The monitor of the look before, or a new one; NULL: the box has just ended. */
static struct nc_monitor *monitor_of(struct screen *screen, const struct nc_live_box *box)
{
	struct nc_monitor *monitor = NULL;

	for (size_t i = 0; i < screen->n_rows; i++)
		if (nc_streq(screen->rows[i].spawner, box->spawner) &&
			nc_streq(screen->rows[i].name, box->name))
			return take_ptr(screen->rows[i].monitor);
	if (box->n_dirs > 0)
		(void)nc_monitor_start_group(
			(const char *const *)box->dir, box->n_dirs, 2, &monitor, NULL);
	else
		(void)nc_monitor_start_processes(box->pid, box->n_pids, 2, &monitor, NULL);
	return monitor;
}

static int look(struct screen *screen, struct nacre_err *err)
{
	cleanup_boxes struct nc_live_boxes boxes = {0};
	const char *holders[NC_TIER_HOLDERS_MAX + 1] = {NULL};
	struct row *rows;
	int r;

	for (unsigned int i = 0; nc_tier_program(i + 1); i++)
		holders[i] = nc_tier_program(i + 1);
	r = nc_boxes_find(holders, &boxes);
	if (r < 0)
		return nc_err_errno(err, r, "Look for boxes");
	rows = calloc(boxes.count + 1, sizeof(*rows));
	if (!rows)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	for (size_t i = 0; i < boxes.count; i++) {
		memcpy(rows[i].spawner, boxes.box[i].spawner, sizeof(rows[i].spawner));
		memcpy(rows[i].name, boxes.box[i].name, sizeof(rows[i].name));
		rows[i].monitor = monitor_of(screen, &boxes.box[i]);
		if (rows[i].monitor)
			(void)nc_monitor_sample(rows[i].monitor, NULL); /* or it has ended */
	}
	screen_done(screen);
	*screen = (struct screen){.boxes = boxes, .rows = rows, .n_rows = boxes.count};
	boxes = (struct nc_live_boxes){0};
	return 0;
}

static struct nc_monitor_sample newest(const struct row *row)
{
	struct nc_monitor_sample sample = {0};

	if (row->monitor)
		(void)nc_monitor_history(row->monitor, &sample, 1);
	return sample;
}

static uint64_t limit_of(const struct row *row)
{
	return row->monitor ? nc_monitor_memory_limit(row->monitor) : 0;
}

static json_t *box_json(const struct nc_live_box *box, const struct row *row)
{
	struct nc_monitor_sample sample = newest(row);
	uint64_t limit = limit_of(row);

	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:o}",
		"spawner", box->spawner, "box", box->name, "state",
		box->waits ? "waiting" : "running", "processes", (json_int_t)sample.processes,
		"threads", (json_int_t)sample.threads, "cpu_percent", sample.cpu_percent,
		"memory_bytes", (json_int_t)sample.memory_bytes, "memory_peak_bytes",
		(json_int_t)sample.memory_peak_bytes, "memory_limit_bytes",
		limit ? json_integer((json_int_t)limit) : json_null(), "io_read_bytes",
		(json_int_t)sample.io_read_bytes, "io_written_bytes",
		(json_int_t)sample.io_written_bytes, "open_files", (json_int_t)sample.open_files,
		"age_seconds", (json_int_t)box->age_s, "command",
		nc_json_text(box->command, strlen(box->command)));
}

static int print_json(const struct screen *screen, struct nacre_err *err)
{
	cleanup_json json_t *list = json_array();
	char stamp[NC_CLOCK_STAMP_SIZE];

	nc_clock_stamp(stamp);
	for (size_t i = 0; list && i < screen->n_rows; i++)
		if (json_array_append_new(list, box_json(&screen->boxes.box[i], &screen->rows[i])) <
			0)
			return nc_err_set(err, -ENOMEM, "Out of memory");
	if (nc_json_print(stdout,
		    json_pack("{s:s, s:s, s:O}", "schema", "nacre.top/1", "time", stamp, "boxes",
			    list),
		    false) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	return 0;
}

static const char *size_text(char out[static 16], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes == 0)
		return "-";
	for (value /= 1024; value >= 1000 && unit < 5; unit++)
		value /= 1024;
	(void)snprintf(out, 16, "%.1f%c", value, units[unit]);
	return out;
}

static const char *age_text(char out[static 32], uint64_t seconds)
{
	if (seconds < 3600)
		(void)snprintf(out, 32, "%llu:%02llu", (unsigned long long)seconds / 60,
			(unsigned long long)seconds % 60);
	else
		(void)snprintf(out, 32, "%lluh%02llu", (unsigned long long)seconds / 3600,
			(unsigned long long)seconds / 60 % 60);
	return out;
}

/* The table, each line ended by end; at most max_lines. */
static void print_table(const struct screen *screen, const char *end, size_t max_lines)
{
	printf("%-13s %-12s %5s %6s %8s %8s %7s  %s%s", "SPAWNER", "BOX", "PIDS", "CPU%", "MEMORY",
		"LIMIT", "AGE", "COMMAND", end);
	for (size_t i = 0; i < screen->n_rows && i + 1 < max_lines; i++) {
		const struct nc_live_box *box = &screen->boxes.box[i];
		struct nc_monitor_sample sample = newest(&screen->rows[i]);
		char memory[16], limit[16], age[32], quoted[NC_TEXT_QUOTED_MAX];

		printf("%-13.13s %-12.12s %5llu %6.1f %8s %8s %7s  %s%s", box->spawner, box->name,
			(unsigned long long)sample.threads, sample.cpu_percent,
			size_text(memory, sample.memory_bytes),
			size_text(limit, limit_of(&screen->rows[i])), age_text(age, box->age_s),
			box->waits ? "(waiting)" : nc_text_quote(quoted, box->command), end);
	}
}

static int print_once(const struct screen *screen, struct nacre_err *err)
{
	if (arg_json)
		return print_json(screen, err);
	print_table(screen, "\n", SIZE_MAX);
	return fflush(stdout) == EOF ? nc_err_errno(err, -errno, "Write the answer") : 0;
}

struct tty {
	struct termios before;
	bool keys; /* standard input is a terminal, and its mode was changed */
	int signal_fd;
};

static void tty_give_back(struct tty *tty)
{
	if (!arg_json)
		fputs("\033[?7h\033[?25h\033[?1049l", stdout);
	(void)fflush(stdout);
	if (tty->keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &tty->before);
	tty->signal_fd = nc_fd_close(tty->signal_fd);
}

/* Whether we were started so that it does nothing, as by nohup. */
static bool is_ignored(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Signals that would end or stop us wait in a descriptor from now on. */
static int tty_take(struct tty *tty, struct nacre_err *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP, SIGWINCH};
	sigset_t ours;

	(void)sigemptyset(&ours);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!is_ignored(signals[i]))
			(void)sigaddset(&ours, signals[i]);
	if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
		return nc_err_errno(err, -errno, "Block signals");
	tty->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (tty->signal_fd < 0)
		return nc_err_errno(err, -errno, "Make a signal descriptor");
	if (tcgetattr(STDIN_FILENO, &tty->before) == 0) {
		struct termios mode = tty->before;

		mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tty->keys = tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
	}
	if (!arg_json)
		fputs("\033[?1049h\033[?25l\033[?7l", stdout);
	return 0;
}

/* Waits for so long, a key or a signal: 0 to go on, -1 for q, or the signal that ends us. */
static int tty_wait(struct tty *tty, uint64_t deadline_ns)
{
	struct pollfd fds[] = {{.fd = tty->signal_fd, .events = POLLIN},
		{.fd = tty->keys ? STDIN_FILENO : -1, .events = POLLIN}};
	struct signalfd_siginfo info;
	char key = 0;

	while (poll(fds, 2, nc_clock_left_ms(deadline_ns)) != 0) {
		if (fds[0].revents && read(tty->signal_fd, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGWINCH)
				return 0; /* draw anew */
			if (info.ssi_signo != SIGTSTP)
				return (int)info.ssi_signo;
		}
		if (fds[1].revents &&
			(read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
			return -1;
	}
	return 0;
}

static void draw(const struct screen *screen)
{
	struct winsize size = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs("\033[H", stdout);
	/* the last line stays empty: a newline there would scroll */
	print_table(screen, "\033[K\r\n", size.ws_row > 2 ? size.ws_row - 1U : SIZE_MAX);
	fputs("\033[J", stdout);
}

/* Looks until q or a signal, which is raised again when the terminal is as it was. */
static int watch(struct screen *screen, uint64_t interval_ns, struct nacre_err *err)
{
	struct tty tty = {.signal_fd = -EBADF};
	int r = tty_take(&tty, err), ended = 0;

	if (r < 0)
		return r;
	while (r == 0 && ended == 0) {
		if (arg_json)
			r = print_json(screen, err);
		else
			draw(screen);
		if (r == 0 && fflush(stdout) == EOF)
			r = nc_err_errno(err, -errno, "Write to the terminal");
		if (r == 0)
			ended = tty_wait(&tty, nc_clock_ns() + interval_ns);
		if (r == 0 && ended == 0)
			r = look(screen, err);
	}
	tty_give_back(&tty);
	if (ended > 0) {
		sigset_t ours;

		(void)sigemptyset(&ours);
		(void)sigaddset(&ours, ended);
		(void)raise(ended);
		(void)sigprocmask(SIG_UNBLOCK, &ours, NULL); /* it comes now */
	}
	return r;
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	nc_cleanup(screen_done) struct screen screen = {0};
	uint64_t interval_ns = 2 * NC_NS_PER_S;
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	(void)cli;
	(void)n_words;
	(void)words;
	if (arg_interval && (nc_parse_duration(arg_interval, &interval_ns) < 0 ||
				    interval_ns < INTERVAL_MIN_MS * NC_NS_PER_MS ||
				    interval_ns > INTERVAL_MAX_MS * NC_NS_PER_MS))
		return nc_err_set(err, -EINVAL,
			"Option '--interval': found %s, expected a time from 100ms to 1h",
			nc_text_quote(quoted, arg_interval));
	r = look(&screen, err);
	if (r == 0)
		(void)usleep(FIRST_LOOK_MS * 1000);
	if (r == 0)
		r = look(&screen, err);
	if (r < 0)
		return r;
	if (arg_once || !isatty(STDOUT_FILENO))
		r = print_once(&screen, err);
	else
		r = watch(&screen, interval_ns, err);
	return r < 0 ? r : NC_EXIT_OK;
}

const struct nc_verb nc_verb_top = {
	.name = "top",
	.summary = "Show the boxes that run",
	.arguments = "",
	.details =
		"Shows the boxes that run on this machine, with what they use; on a terminal again "
		"and\nagain, until q is pressed.",
	.example = "nacre top --once",
	.options = options,
	.without_config = true,
	.run = run,
};
