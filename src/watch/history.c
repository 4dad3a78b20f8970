/* The history of executions: an index of the journal. */
#include "watch/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "kernel/boxwire.h"
#include "recorder/line.h"
#include "recorder/segment.h"

#define INDEX_NAME "index.db"
/* Changes with the tables: an index of another version is thrown away. */
#define INDEX_VERSION "4"

static const char schema[] =
	"DROP TABLE IF EXISTS place; DROP TABLE IF EXISTS execution;"
	"CREATE TABLE place (segment INTEGER, offset INTEGER, hash TEXT);"
	"CREATE TABLE execution (id TEXT, run TEXT, seq INTEGER, hash TEXT, opened TEXT, time TEXT,"
	" status TEXT, language TEXT, tier TEXT, risk TEXT, tenant TEXT, request_id TEXT,"
	" exit_code INTEGER,"
	" wall_seconds REAL, cpu_seconds REAL, memory_peak_bytes INTEGER, body TEXT,"
	" PRIMARY KEY (id, run)) WITHOUT ROWID;"
	"CREATE INDEX by_seq ON execution (seq);"
	"CREATE INDEX by_status ON execution (status, seq);"
	"CREATE INDEX by_language ON execution (language, seq);"
	"CREATE INDEX by_tenant ON execution (tenant, seq);"
	"CREATE INDEX by_request ON execution (request_id, seq);"
	"PRAGMA user_version = " INDEX_VERSION ";";

#define RUN_SIZE 64U

enum statement {
	FIND,
	WHOSE,
	TAKE,
	STORE,
	BILL,
	RETIRE,
	GET_PLACE,
	CLEAR_PLACE,
	SET_PLACE,
	LIST,
	SHOW,
	STATEMENT_MAX,
};

static const char *const texts[STATEMENT_MAX] = {
	[FIND] = "SELECT body, opened FROM execution WHERE id = ?1 AND run = ?2",
	[WHOSE] = "SELECT run FROM execution WHERE id = ?1 AND (run = ?2 OR status = 'running')"
		  " ORDER BY run = ?2 DESC LIMIT 1",
	[TAKE] = "UPDATE execution SET run = ?3 WHERE id = ?1 AND run = ?2",
	[STORE] = "INSERT OR REPLACE INTO execution VALUES"
		  " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
	[BILL] = "UPDATE execution SET wall_seconds = ?3, cpu_seconds = ?4, memory_peak_bytes = ?5,"
		 " body = ?6 WHERE id = ?1 AND run = ?2",
	[RETIRE] = "DELETE FROM execution WHERE seq < ?1",
	[GET_PLACE] = "SELECT segment, offset, hash FROM place",
	[CLEAR_PLACE] = "DELETE FROM place",
	[SET_PLACE] = "INSERT INTO place VALUES (?1, ?2, ?3)",
	[LIST] = "SELECT id, run, seq, hash, opened, time, status, body FROM execution"
		 " WHERE (?1 IS NULL OR time >= ?1) AND (?2 IS NULL OR status = ?2)"
		 " AND (?3 IS NULL OR language = ?3) AND (?5 IS NULL OR tenant = ?5)"
		 " AND (?6 IS NULL OR seq < ?6) ORDER BY seq DESC LIMIT ?4",
	[SHOW] = "SELECT id, run, seq, hash, opened, time, status, body FROM execution"
		 " WHERE id = ?1 OR (request_id = ?1 AND ?1 <> '') ORDER BY id = ?1, seq",
};

struct nc_history {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_MAX];
	int history_fd; /* borrowed */
	bool in_memory;
};

/* ---- the database ---- */

static int error_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
		return 0;
	case SQLITE_BUSY:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* tables that are not there, or are others */
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static int run(struct nc_history *history, const char *sql)
{
	return error_of(sqlite3_exec(history->db, sql, NULL, NULL, NULL));
}

static void close_db(struct nc_history *history)
{
	for (size_t i = 0; i < STATEMENT_MAX; i++) {
		(void)sqlite3_finalize(history->statements[i]);
		history->statements[i] = NULL;
	}
	(void)sqlite3_close(history->db);
	history->db = NULL;
}

static bool has_version(struct nc_history *history)
{
	sqlite3_stmt *statement = NULL;
	bool same = sqlite3_prepare_v2(history->db, "PRAGMA user_version", -1, &statement, NULL) ==
			    SQLITE_OK &&
		    sqlite3_step(statement) == SQLITE_ROW &&
		    nc_streq((const char *)sqlite3_column_text(statement, 0), INDEX_VERSION);

	(void)sqlite3_finalize(statement);
	return same;
}

/*
 * One connection at a time, and a write-ahead log: a reader that is killed leaves a whole index.
 * The exclusive lock is taken here and all files are opened, since later we may open none.
 */
static int open_db(struct nc_history *history, const char *path)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int r = error_of(sqlite3_open_v2(path, &history->db, flags, NULL));

	if (r == 0)
		r = run(history, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
				 "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
				 "BEGIN IMMEDIATE");
	if (r == 0 && !has_version(history))
		r = run(history, schema);
	if (r == 0)
		r = run(history, "COMMIT");
	for (size_t i = 0; r == 0 && i < STATEMENT_MAX; i++)
		r = error_of(sqlite3_prepare_v2(
			history->db, texts[i], -1, &history->statements[i], NULL));
	if (r < 0)
		close_db(history);
	return r;
}

static int open_in_memory(struct nc_history *history)
{
	history->in_memory = true;
	return open_db(history, ":memory:");
}

/* The index in the state directory. It tells what others ran, so nobody else may read it. */
static int open_on_disk(struct nc_history *history, int state_fd)
{
	cleanup_close int fd = nc_path_open(state_fd, INDEX_NAME, O_RDWR | O_CREAT, 0600);
	char path[64];
	int r;

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" INDEX_NAME, state_fd);
	r = open_db(history, path);
	if (r == -EBADMSG) {
		/* damaged: it has nothing that the journal has not */
		if (ftruncate(fd, 0) < 0)
			return -errno;
		(void)unlinkat(state_fd, INDEX_NAME "-wal", 0);
		r = open_db(history, path);
	}
	return r;
}

int nc_history_open(
	int state_fd, int history_fd, struct nc_history **ret_history, struct nacre_err *err)
{
	struct nc_history *history = calloc(1, sizeof(*history));
	int r;

	if (!history)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	history->history_fd = history_fd;
	r = open_on_disk(history, state_fd);
	if (r < 0)
		r = open_in_memory(history);
	if (r < 0) {
		nc_history_free(history);
		return nc_err_set(err, r, "Open the index of the history");
	}
	*ret_history = history;
	return 0;
}

void nc_history_free(struct nc_history *history)
{
	if (!history)
		return;
	close_db(history);
	free(history);
}

/* A statement, fresh. */
static sqlite3_stmt *use(struct nc_history *history, enum statement which)
{
	sqlite3_stmt *statement = history->statements[which];

	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
	return statement;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	if (text)
		(void)sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static int finish(sqlite3_stmt *statement)
{
	int r = error_of(sqlite3_step(statement));

	(void)sqlite3_reset(statement);
	return r;
}

/* ---- from lines to rows ---- */

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void bind_number(sqlite3_stmt *statement, int at, const json_t *body, const char *key)
{
	const json_t *value = json_object_get(body, key);

	if (json_is_integer(value))
		(void)sqlite3_bind_int64(statement, at, json_integer_value(value));
	else if (json_is_real(value))
		(void)sqlite3_bind_double(statement, at, json_real_value(value));
}

/* What was told of it before, and when; an empty object if nothing was. */
static json_t *find_body(
	struct nc_history *history, const char *id, const char *run_name, char *opened, size_t size)
{
	sqlite3_stmt *statement = use(history, FIND);
	struct nacre_err err = {0};
	json_t *body = NULL;

	bind_text(statement, 1, id);
	bind_text(statement, 2, run_name);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);
		const char *when = (const char *)sqlite3_column_text(statement, 1);

		(void)snprintf(opened, size, "%s", when ? when : "");
		(void)nc_json_parse(text, strlen(text), &body, &err);
	}
	(void)sqlite3_reset(statement);
	return body ? body : json_object();
}

/* The run that an execution is kept under: its own, or that of a recorder that died while it ran.
 */
static const char *whose(
	struct nc_history *history, const char *id, const char *run_name, char out[static RUN_SIZE])
{
	sqlite3_stmt *statement = use(history, WHOSE);
	const char *found = NULL;

	bind_text(statement, 1, id);
	bind_text(statement, 2, run_name);
	if (sqlite3_step(statement) == SQLITE_ROW)
		found = (const char *)sqlite3_column_text(statement, 0);
	(void)snprintf(out, RUN_SIZE, "%s", found ? found : run_name);
	(void)sqlite3_reset(statement);
	return out;
}

/* It goes on with another recorder. */
static int take_over(struct nc_history *history, const char *id, const char *run_name)
{
	char before[RUN_SIZE];
	sqlite3_stmt *statement;

	if (nc_streq(whose(history, id, run_name, before), run_name))
		return 0;
	statement = use(history, TAKE);
	bind_text(statement, 1, id);
	bind_text(statement, 2, before);
	bind_text(statement, 3, run_name);
	return finish(statement);
}

static int store(struct nc_history *history, const json_t *line, const char *run_name,
	const char *opened, const json_t *body, const char *hash)
{
	static const char *const columns[] = {
		"status", "language", "tier", "risk", "tenant", "request_id"};
	static const char *const numbers[] = {
		"exit_code", "wall_seconds", "cpu_seconds", "memory_peak_bytes"};
	sqlite3_stmt *statement = use(history, STORE);
	cleanup_free char *text = json_dumps(body, JSON_COMPACT);
	int at = 7;

	if (!text)
		return -ENOMEM;
	bind_text(statement, 1, text_of(line, "id"));
	bind_text(statement, 2, run_name);
	(void)sqlite3_bind_int64(statement, 3, json_integer_value(json_object_get(line, "seq")));
	bind_text(statement, 4, hash);
	bind_text(statement, 5, opened[0] ? opened : NULL);
	bind_text(statement, 6, text_of(line, "time"));
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		bind_text(statement, at++, text_of(body, columns[i]));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		bind_number(statement, at++, body, numbers[i]);
	bind_text(statement, at, text);
	return finish(statement);
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Of a compiler that has done its work only the costs count: the program follows. */
static bool has_compiled(const json_t *death)
{
	const char *of = text_of(death, "of");

	return of && nc_streq(of, "compiler") && number_of(death, "cause") == NC_CAUSE_EXIT &&
	       number_of(death, "exit_code") == 0 && number_of(death, "signal") == 0;
}

/*
 * What the spawner bore witness of when a program of it was dead: the bill, if its own end does not
 * tell, because who would have written that has died. That may be in the journal before.
 */
static int add_death(
	struct nc_history *history, const char *id, const char *run_name, const json_t *death)
{
	char opened[64] = "", run_kept[RUN_SIZE];
	const char *kept = whose(history, id, run_name, run_kept);
	cleanup_json json_t *body = find_body(history, id, kept, opened, sizeof(opened));
	const char *status = text_of(body, "status");
	double peak = number_of(death, "memory_peak_bytes");
	cleanup_free char *text = NULL;
	sqlite3_stmt *statement;

	if (!status || (!nc_streq(status, "running") && !nc_streq(status, "lost")))
		return 0;
	if (peak < number_of(body, "memory_peak_bytes"))
		peak = number_of(body, "memory_peak_bytes");
	if (!has_compiled(death))
		(void)json_object_set_new(body, "wall_seconds",
			json_real(number_of(body, "wall_seconds") +
				  number_of(death, "wall_ns") / 1e9));
	(void)json_object_set_new(body, "cpu_seconds",
		json_real(number_of(body, "cpu_seconds") + number_of(death, "cpu_us") / 1e6));
	(void)json_object_set_new(body, "memory_peak_bytes", json_integer((json_int_t)peak));
	if (!has_compiled(death)) {
		(void)json_object_set(body, "disk_bytes", json_object_get(death, "disk_bytes"));
		(void)json_object_del(body, "denials"); /* those of the last, as replies have */
		(void)json_object_set(body, "denials", json_object_get(death, "denials"));
	}
	text = json_dumps(body, JSON_COMPACT);
	if (!text)
		return -ENOMEM;
	statement = use(history, BILL);
	bind_text(statement, 1, id);
	bind_text(statement, 2, kept);
	bind_number(statement, 3, body, "wall_seconds");
	bind_number(statement, 4, body, "cpu_seconds");
	bind_number(statement, 5, body, "memory_peak_bytes");
	bind_text(statement, 6, text);
	return finish(statement);
}

/* Adds a line about an execution. What is not of that form is passed over: verify tells of it. */
static int add_line(struct nc_history *history, const char *text, size_t size)
{
	cleanup_json json_t *line = NULL, *body = NULL;
	unsigned char digest[NC_SHA256_SIZE];
	char hash[NC_SHA256_HEX_SIZE], opened[64] = "";
	const char *event, *run_name, *id;
	struct nacre_err err = {0};
	const json_t *told;

	if (nc_json_parse(text, size, &line, &err) < 0)
		return 0;
	event = text_of(line, "event");
	run_name = text_of(line, "run");
	id = text_of(line, "id");
	told = json_object_get(line, "body");
	if (!event || !run_name || !id || !json_is_object(told) || !text_of(line, "time") ||
		!text_of(line, "kind"))
		return 0;
	if (nc_streq(event, "died") && id[0] && nc_streq(text_of(line, "from"), "spawner"))
		return add_death(history, id, run_name, told);
	if (!nc_streq(text_of(line, "kind"), "execution"))
		return 0;
	/* told by another recorder, about one that had died */
	if (nc_streq(event, "lost") && text_of(told, "run"))
		run_name = text_of(told, "run");
	if (nc_streq(event, "open") && take_over(history, id, run_name) < 0)
		return -EIO;
	body = find_body(history, id, run_name, opened, sizeof(opened));
	if (nc_streq(event, "finish"))
		(void)json_object_del(body, "denials"); /* its worker has told */
	if (json_object_update(body, (json_t *)(uintptr_t)told) < 0)
		return -ENOMEM;
	if (nc_streq(event, "open")) {
		if (!opened[0])
			(void)snprintf(opened, sizeof(opened), "%s", text_of(line, "time"));
		(void)json_object_set_new(body, "status", json_string("running"));
	}
	nc_sha256(text, size, digest);
	nc_sha256_hex(digest, hash);
	return store(history, line, run_name, opened, body, hash);
}

/* ---- bringing it up to date ---- */

/* The place of the last line that was read. */
struct mark {
	uint64_t segment;
	uint64_t offset;
	char hash[NC_SHA256_HEX_SIZE];
};

static bool get_mark(struct nc_history *history, struct mark *ret_mark)
{
	sqlite3_stmt *statement = use(history, GET_PLACE);
	bool found = sqlite3_step(statement) == SQLITE_ROW;

	if (found) {
		ret_mark->segment = (uint64_t)sqlite3_column_int64(statement, 0);
		ret_mark->offset = (uint64_t)sqlite3_column_int64(statement, 1);
		(void)snprintf(ret_mark->hash, sizeof(ret_mark->hash), "%s",
			(const char *)sqlite3_column_text(statement, 2));
	}
	(void)sqlite3_reset(statement);
	return found;
}

static int set_mark(struct nc_history *history, const struct mark *mark)
{
	sqlite3_stmt *statement;
	int r = finish(use(history, CLEAR_PLACE));

	statement = use(history, SET_PLACE);
	(void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)mark->segment);
	(void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)mark->offset);
	bind_text(statement, 3, mark->hash);
	return r < 0 ? r : finish(statement);
}

static void fill_mark(
	struct mark *mark, const struct nc_reader *reader, const char *line, size_t size)
{
	unsigned char digest[NC_SHA256_SIZE];

	mark->segment = nc_reader_segment(reader);
	mark->offset = reader->line_from;
	nc_sha256(line, size, digest);
	nc_sha256_hex(digest, mark->hash);
}

/* Whether the journal still has the line at which the index ends; the reader is behind it then. */
static bool resumes(struct nc_reader *reader, int journal_fd, const struct mark *mark)
{
	struct mark now;
	const char *line;
	size_t size;

	if (nc_reader_open(reader, journal_fd, mark->segment, mark->offset) < 0)
		return false;
	if (nc_reader_next(reader, &line, &size) > 0) {
		fill_mark(&now, reader, line, size);
		if (now.segment == mark->segment && nc_streq(now.hash, mark->hash))
			return true;
	}
	nc_reader_done(reader);
	return false;
}

static int forget_retired(struct nc_history *history, int journal_fd)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	struct nc_line_parts parts;
	sqlite3_stmt *statement;
	const char *line;
	size_t size;
	int r = nc_reader_open(&reader, journal_fd, 0, 0);

	if (r < 0)
		return r;
	r = nc_reader_next(&reader, &line, &size);
	if (r <= 0 || nc_line_split(line, size, &parts) < 0)
		return r < 0 ? r : 0;
	statement = use(history, RETIRE);
	(void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)parts.seq);
	return finish(statement);
}

static int read_on(struct nc_history *history, int journal_fd)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	struct mark mark;
	const char *line;
	size_t size;
	bool moved = false;
	int r = 0;

	if (!get_mark(history, &mark) || !resumes(&reader, journal_fd, &mark)) {
		r = run(history, schema);
		if (r == 0)
			r = nc_reader_open(&reader, journal_fd, 0, 0);
	}
	while (r >= 0 && (r = nc_reader_next(&reader, &line, &size)) > 0) {
		if (reader.cut)
			continue; /* it may yet become whole: it is read again next time */
		r = add_line(history, line, size);
		fill_mark(&mark, &reader, line, size);
		moved = true;
	}
	if (r == 0 && moved)
		r = set_mark(history, &mark);
	return r < 0 ? r : forget_retired(history, journal_fd);
}

static int update(struct nc_history *history)
{
	cleanup_close int journal_fd =
		nc_path_open(history->history_fd, "journal", O_RDONLY | O_DIRECTORY, 0);
	int r = journal_fd < 0 ? journal_fd : run(history, "BEGIN");

	if (r == 0)
		r = read_on(history, journal_fd);
	if (r == 0)
		r = run(history, "COMMIT");
	if (r < 0)
		(void)run(history, "ROLLBACK");
	return r;
}

int nc_history_update(struct nc_history *history, struct nacre_err *err)
{
	int r = update(history);

	if ((r == -EIO || r == -EBADMSG) && !history->in_memory) {
		/* the index is damaged, or its disk full: the journal is what counts */
		close_db(history);
		r = open_in_memory(history);
		if (r == 0)
			r = update(history);
	}
	return r < 0 ? nc_err_errno(err, r, "Read the journal") : 0;
}

/* ---- asking ---- */

static json_t *row_json(sqlite3_stmt *row)
{
	static const char *const names[] = {"id", "run", "seq", "hash", "opened", "time"};
	const char *text = (const char *)sqlite3_column_text(row, 7);
	struct nacre_err err = {0};
	json_t *body = NULL;

	if (!text || nc_json_parse(text, strlen(text), &body, &err) < 0)
		return NULL;
	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
		const char *value = (const char *)sqlite3_column_text(row, i);
		json_t *item = !value	? json_null()
			       : i == 2 ? json_integer(sqlite3_column_int64(row, i))
					: json_string(value);

		if (json_object_set_new(body, names[i], item) < 0) {
			json_decref(body);
			return NULL;
		}
	}
	return body;
}

static int collect(sqlite3_stmt *statement, json_t **ret_list, struct nacre_err *err)
{
	cleanup_json json_t *list = json_array();
	int step;

	while ((step = sqlite3_step(statement)) == SQLITE_ROW)
		if (json_array_append_new(list, row_json(statement)) < 0)
			break;
	(void)sqlite3_reset(statement);
	if (step != SQLITE_DONE || !list)
		return nc_err_set(err, -EIO, "Read the index of the history");
	*ret_list = take_ptr(list);
	return 0;
}

int nc_history_list(struct nc_history *history, const struct nc_history_filter *filter,
	json_t **ret_list, struct nacre_err *err)
{
	sqlite3_stmt *statement = use(history, LIST);

	bind_text(statement, 1, filter->since);
	bind_text(statement, 2, filter->status);
	bind_text(statement, 3, filter->language);
	(void)sqlite3_bind_int64(statement, 4, (sqlite3_int64)filter->limit);
	bind_text(statement, 5, filter->tenant);
	if (filter->before > 0)
		(void)sqlite3_bind_int64(statement, 6, (sqlite3_int64)filter->before);
	return collect(statement, ret_list, err);
}

int nc_history_find(
	struct nc_history *history, const char *id, json_t **ret_list, struct nacre_err *err)
{
	sqlite3_stmt *statement = use(history, SHOW);
	cleanup_json json_t *list = NULL;
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	bind_text(statement, 1, id);
	r = collect(statement, &list, err);
	if (r < 0)
		return r;
	if (json_array_size(list) == 0)
		return nc_err_set(
			err, -ENOENT, "There is no execution %s", nc_text_quote(quoted, id));
	*ret_list = take_ptr(list);
	return 0;
}
