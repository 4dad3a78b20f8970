/* Structured logging. */
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

const char *const nc_log_level_names[] = {"error", "warning", "info", "debug", NULL};
const char *const nc_log_format_names[] = {"auto", "text", "json", NULL};

_Static_assert(sizeof(nc_log_level_names) / sizeof(char *) == NC_LOG_LEVEL_MAX + 1, "level names");
_Static_assert(
	sizeof(nc_log_format_names) / sizeof(char *) == NC_LOG_FORMAT_MAX + 1, "format names");

/* A record longer than this is not worth a disk. */
#define RECORD_MAX (32U * 1024)

static struct {
	int fd;
	enum nc_log_level least;
	enum nc_log_format format; /* AUTO until the first record has looked at the descriptor */
} sink = {.fd = 2, .least = NC_LOG_WARNING, .format = NC_LOG_AUTO};

void nc_log_setup(int fd, enum nc_log_level least, enum nc_log_format format)
{
	sink.fd = fd;
	sink.least = least;
	sink.format = format;
}

bool nc_log_wants(enum nc_log_level level)
{
	return level <= sink.least;
}

static bool names_secret(const char *key)
{
	static const char *const words[] = {"token", "secret", "password", "authorization",
		"cookie", "credential", "api_key", "api-key", "apikey"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(key, words[i]))
			return true;
	return false;
}

static void add_text(struct nc_buf *buf, const char *text)
{
	nc_buf_adds(buf, "\"");
	nc_text_json(buf, text, strlen(text));
	nc_buf_adds(buf, "\"");
}

static void add_value(struct nc_buf *buf, const struct nc_log_field *field)
{
	if (names_secret(field->key))
		nc_buf_adds(buf, "\"[redacted]\"");
	else if (field->text)
		add_text(buf, field->text);
	else
		nc_buf_addf(buf, "%lld", (long long)field->number);
}

static void add_json(struct nc_buf *buf, enum nc_log_level level, const char *message,
	const struct nc_log_field *fields)
{
	char stamp[NC_CLOCK_STAMP_SIZE];

	nc_clock_stamp(stamp);
	nc_buf_addf(buf, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", stamp,
		nc_log_level_names[level]);
	add_text(buf, message);
	for (; fields->key; fields++) {
		nc_buf_adds(buf, ",");
		add_text(buf, fields->key);
		nc_buf_adds(buf, ":");
		add_value(buf, fields);
	}
	nc_buf_adds(buf, "}\n");
}

static void add_line(struct nc_buf *buf, enum nc_log_level level, const char *message,
	const struct nc_log_field *fields)
{
	nc_buf_addf(buf, "%s: %s", nc_log_level_names[level], message);
	for (; fields->key; fields++) {
		nc_buf_addf(buf, " %s=", fields->key);
		add_value(buf, fields);
	}
	nc_buf_adds(buf, "\n");
}

/* write() without the signal that a reader who has gone would send us. */
static void write_quietly(int fd, const void *data, size_t size)
{
	const struct timespec at_once = {0};
	sigset_t pipe_signal, before, pending;
	ssize_t n;

	(void)sigemptyset(&pipe_signal);
	(void)sigaddset(&pipe_signal, SIGPIPE);
	(void)sigpending(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	n = write(fd, data, size);
	/* ours is taken back; one that was pending before stays */
	if (n < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe_signal, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void nc_log_record(enum nc_log_level level, const char *message, const struct nc_log_field *fields)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(RECORD_MAX);
	int saved = errno;

	if (!nc_log_wants(level))
		return;
	if (sink.format == NC_LOG_AUTO)
		sink.format = isatty(sink.fd) ? NC_LOG_PLAIN : NC_LOG_JSON;
	if (sink.format == NC_LOG_JSON)
		add_json(&buf, level, message, fields);
	else
		add_line(&buf, level, message, fields);
	if (buf.error == 0)
		write_quietly(sink.fd, buf.data, buf.size);
	errno = saved;
}
