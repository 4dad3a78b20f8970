/* What the verbs that read the history share. */
#include "cli/past.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "watch/recorder.h"

int nc_past_open(struct nc_past *past, struct nacre_err *err)
{
	int r = nc_history_dir(NULL, &past->state_fd, err);

	if (r < 0)
		return r;
	past->history_fd = r;
	return 0;
}

void nc_past_close(struct nc_past *past)
{
	past->state_fd = nc_fd_close(past->state_fd);
	past->history_fd = nc_fd_close(past->history_fd);
}

int nc_past_since(const char *text, char out[static NC_CLOCK_STAMP_NS_SIZE], struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	size_t size = strlen(text);
	struct timespec now;
	struct tm parts;
	uint64_t ns;

	if (size >= 4 && size < NC_CLOCK_STAMP_NS_SIZE && strspn(text, "0123456789") == 4 &&
		strspn(text, "0123456789-T:.Z") == size && (size == 4 || text[4] == '-')) {
		(void)snprintf(out, NC_CLOCK_STAMP_NS_SIZE, "%s", text);
		/* or else the second itself would be later than its fractions */
		out[strcspn(out, "Z")] = '\0';
		return 0;
	}
	if (nc_parse_duration(text, &ns) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return nc_err_set(err, -EINVAL,
			"Time %s: neither a time such as 2026-11-16T03:00:00Z nor a span such as "
			"2h",
			nc_text_quote(quoted, text));
	now.tv_sec -= (time_t)(ns / NC_NS_PER_S);
	(void)strftime(
		out, NC_CLOCK_STAMP_NS_SIZE, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &parts));
	return 0;
}

const char *nc_past_text(const json_t *object, const char *key, char out[static NC_PAST_TEXT_SIZE])
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		(void)snprintf(
			out, NC_PAST_TEXT_SIZE, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		(void)snprintf(out, NC_PAST_TEXT_SIZE, "%.3f", json_real_value(value));
	else
		(void)snprintf(out, NC_PAST_TEXT_SIZE, "%s", text && *text ? text : "-");
	for (char *at = out; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
			*at = '?';
	return out;
}
