/*
 * Structured logging. A record is a level, a fixed message and typed fields:
 *
 *	nc_log(NC_LOG_INFO, "Box started", NC_LOG_TEXT("box", id), NC_LOG_INT("pid", pid));
 *
 * On a terminal it becomes one line of text, elsewhere one JSON object per line. The sink is the
 * one piece of mutable global state; only main files set it. Library code logs at NC_LOG_DEBUG at
 * most and returns its errors.
 */
#ifndef NC_LOG_H
#define NC_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum nc_log_level {
	NC_LOG_ERROR,
	NC_LOG_WARNING,
	NC_LOG_INFO,
	NC_LOG_DEBUG,
	NC_LOG_LEVEL_MAX,
};

enum nc_log_format {
	NC_LOG_AUTO, /* text if the descriptor is a terminal, else JSON */
	NC_LOG_PLAIN,
	NC_LOG_JSON,
	NC_LOG_FORMAT_MAX,
};

/* The names of the levels and formats, as configuration files use them. NULL-terminated. */
extern const char *const nc_log_level_names[];
extern const char *const nc_log_format_names[];

struct nc_log_field {
	const char *key;  /* NULL ends a list of fields */
	const char *text; /* NULL: the field is the number */
	int64_t number;
};

#define NC_LOG_TEXT(name, value) ((struct nc_log_field){.key = (name), .text = (value)})
#define NC_LOG_INT(name, value) ((struct nc_log_field){.key = (name), .number = (value)})

/* Where records go from now on. Before the first call they go to descriptor 2 from level warning.
 */
void nc_log_setup(int fd, enum nc_log_level least, enum nc_log_format format);

bool nc_log_wants(enum nc_log_level level);

/*
 * Writes a record with one write(). The value of a field whose key names a secret (it contains
 * token, secret, password, authorization, cookie, credential or a spelling of api_key, in any case)
 * is replaced by "[redacted]". A record that cannot be written is dropped: logging never fails its
 * caller.
 */
void nc_log_record(enum nc_log_level level, const char *message, const struct nc_log_field *fields);

/* The empty element in front lets a record without fields end in no stray comma. */
#define nc_log(level, message, ...)                                                                \
	nc_log_record(level, message,                                                              \
		(const struct nc_log_field[]){{.key = ""}, ##__VA_ARGS__, {.key = NULL}} + 1)

#endif
