/*
 * The policy inside Python: an audit hook that was there before the interpreter, and that no Python
 * code can take away.
 *
 * Theory of operation: the dynamic loader brings this object in (LD_PRELOAD), and its constructor
 * adds the hook before main() begins; the program then runs as it would without. The constructor
 * leaves no trace that a program could stumble over: the variable and the file are gone, and the
 * one descriptor that it keeps is a high one. The object is linked with no library at all: what it
 * uses of Python and of libc is looked up when it is loaded, so that it fits every CPython from 3.9
 * on, and any libc. In a program that is no CPython it does nothing, and is handed on to what that
 * executes.
 *
 * A zygote (zygote.c) has it linked in (NC_HOOK_LINKED), and begins it when its program is known.
 *
 * This is no boundary. Machine code (ctypes, an extension) can undo it; the box holds that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hookwire.h"

#ifdef NC_HOOK_LINKED
#include "inside/hook.h"
#endif

/* What Python says of itself; nothing here depends on the layout of an object. */
typedef struct object object;
#define FROM_PYTHON __attribute__((weak)) extern
FROM_PYTHON int PySys_AddAuditHook(int (*hook)(const char *, object *, void *), void *context);
FROM_PYTHON int Py_IsInitialized(void);
FROM_PYTHON void *PyGILState_GetThisThreadState(void);
FROM_PYTHON object *PyEval_GetFrame(void);
FROM_PYTHON object *PyFrame_GetBack(object *frame);
FROM_PYTHON object *PyFrame_GetCode(object *frame);
FROM_PYTHON int PyFrame_GetLineNumber(object *frame);
FROM_PYTHON object *PyObject_GetAttrString(object *from, const char *name);
FROM_PYTHON object *PyTuple_GetItem(object *tuple, intptr_t index);
FROM_PYTHON intptr_t PyTuple_Size(object *tuple);
FROM_PYTHON const char *PyUnicode_AsUTF8AndSize(object *text, intptr_t *ret_size);
FROM_PYTHON char *PyBytes_AsString(object *bytes);
FROM_PYTHON void PyErr_Clear(void);
FROM_PYTHON void PyErr_SetString(object *type, const char *text);
FROM_PYTHON void Py_IncRef(object *it);
FROM_PYTHON void Py_DecRef(object *it);
FROM_PYTHON object *PyExc_PermissionError;
FROM_PYTHON object _Py_NoneStruct;

#define PATH_SIZE 512
/* Above what programs use, below every limit of open files that is usual. */
#define REPORT_FD 200
/* Different things that are counted; beyond them nothing new is reported. */
#define SEEN_MAX 128U

struct row {
	char kind, verdict, depth;
	const char *name, *rule, *text;
};

static struct {
	const char *token;
	struct row *rows;
	size_t n_rows;
	const char *writable[8];
	size_t n_writable;
	bool has_allowed, has_functions;
	bool begun; /* the interpreter is ready, and runs the program */
	int report_fd;
	dev_t report_dev, proc_dev;
	ino_t report_ino;
} hook = {.report_fd = -1};

/* How often each thing happened: only the first time, the second, the fourth... is written. */
static struct seen {
	const struct row *row;
	int line;
	uint32_t hash, count;
} seen[SEEN_MAX];

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t size = strlen(text), end = strlen(with);

	return size >= end && memcmp(text + size - end, with, end) == 0;
}

/* The text of a str or bytes, in ret_text; "" for anything else. Clears Python's error. */
static void text_of(object *from, char ret_text[static PATH_SIZE])
{
	intptr_t size = 0;
	const char *text = from ? PyUnicode_AsUTF8AndSize(from, &size) : NULL;

	if (!text) {
		PyErr_Clear();
		text = from ? PyBytes_AsString(from) : NULL;
	}
	if (!text)
		PyErr_Clear();
	(void)snprintf(ret_text, PATH_SIZE, "%s", text ? text : "");
}

/* Borrowed; NULL if there are fewer: sys.audit() takes any name with any arguments. */
static object *item_of(object *args, intptr_t index)
{
	return index < PyTuple_Size(args) ? PyTuple_GetItem(args, index) : NULL;
}

static void argument(object *args, intptr_t index, char ret_text[static PATH_SIZE])
{
	text_of(item_of(args, index), ret_text);
}

static void file_of_code(object *code, char ret_file[static PATH_SIZE])
{
	object *name = PyObject_GetAttrString(code, "co_filename");

	text_of(name, ret_file);
	if (name)
		Py_DecRef(name);
	else
		PyErr_Clear();
}

static void file_of_frame(object *frame, char ret_file[static PATH_SIZE])
{
	object *code = PyFrame_GetCode(frame);

	file_of_code(code, ret_file);
	Py_DecRef(code);
}

/*
 * Code is the program's own if it comes from where the program can write, or from a text. Whoever
 * gives a text the name of a library's file passes for that library. Texts that run before the
 * program belong to the installation (the .pth files of packages).
 */
static bool is_own_file(const char *file)
{
	if (file[0] != '/')
		return hook.begun && !begins(file, "<frozen ");
	for (size_t i = 0; i < hook.n_writable; i++)
		if (begins(file, hook.writable[i]))
			return true;
	return false;
}

/* Whether a file holds a module: ".../json/decoder.py" is part of json, "<frozen os>" is os. */
static bool is_file_of(const char *file, const char *module)
{
	char path[PATH_SIZE];
	size_t size;
	int length = snprintf(path, sizeof(path), "<frozen %s", module);

	if (length < 0 || (size_t)length >= sizeof(path) - 2)
		return false;
	if (begins(file, path) && (file[length] == '>' || file[length] == '.'))
		return true;
	size = (size_t)snprintf(path, sizeof(path), "/%s", module);
	for (char *dot = strchr(path, '.'); dot; dot = strchr(dot, '.'))
		*dot = '/';
	for (const char *at = strstr(file, path); at; at = strstr(at + 1, path))
		if (at[size] == '/' || strcmp(at + size, ".py") == 0)
			return true;
	return false;
}

/* The frame behind this one; takes over the reference. */
static object *behind(object *frame)
{
	object *back = PyFrame_GetBack(frame);

	Py_DecRef(frame);
	return back;
}

static object *top_frame(void)
{
	object *frame = PyEval_GetFrame();

	if (frame)
		Py_IncRef(frame);
	return frame;
}

/* Whether the program called, itself or through files of the module (NULL: itself). */
static bool is_programs_doing(const char *module)
{
	char file[PATH_SIZE] = "";
	object *frame = top_frame();

	for (; frame; frame = behind(frame)) {
		file_of_frame(frame, file);
		if (!module || is_own_file(file) || !is_file_of(file, module))
			break;
	}
	if (!frame)
		return false;
	Py_DecRef(frame);
	return is_own_file(file);
}

/* Where in the program it is: the nearest frame in a file of its own, else of a text. */
static int find_line(char ret_file[static PATH_SIZE])
{
	char file[PATH_SIZE];
	int line = 0;

	ret_file[0] = '\0';
	for (object *frame = top_frame(); frame; frame = behind(frame)) {
		file_of_frame(frame, file);
		if (!is_own_file(file) || (file[0] != '/' && ret_file[0]))
			continue;
		memcpy(ret_file, file, sizeof(file));
		line = PyFrame_GetLineNumber(frame);
		if (file[0] == '/') {
			Py_DecRef(frame);
			break;
		}
	}
	return line;
}

/* Nothing that ends a field, a record or a terminal's patience. */
static void clean(const char *text, char ret_text[static NC_HOOK_FIELD_MAX + 1])
{
	size_t i = 0;

	for (; i < NC_HOOK_FIELD_MAX && text[i]; i++)
		ret_text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	ret_text[i] = '\0';
}

/* Whether our descriptor is still what it was: else the token would go to the program. */
static bool can_report(void)
{
	struct stat status;

	return hook.report_fd >= 0 && syscall(SYS_fstat, hook.report_fd, &status) == 0 &&
	       status.st_dev == hook.report_dev && status.st_ino == hook.report_ino;
}

/* How often this was seen, with this time. */
static uint32_t count_again(const struct row *row, int line, const char *object_text)
{
	uint32_t hash = 2166136261U;

	for (const char *at = object_text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619U;
	for (size_t i = 0; i < SEEN_MAX; i++) {
		struct seen *it = &seen[i];

		if (!it->row)
			*it = (struct seen){row, line, hash, 0};
		if (it->row == row && it->line == line && it->hash == hash)
			return it->count < UINT32_MAX ? ++it->count : it->count;
	}
	return 0;
}

static void report(const struct row *row, const char *what)
{
	char record[NC_HOOK_RECORD_MAX], file[PATH_SIZE];
	char shown[NC_HOOK_FIELD_MAX + 1], shown_file[NC_HOOK_FIELD_MAX + 1];
	int line = find_line(file);
	uint32_t count = count_again(row, line, what);
	const char *slash = strrchr(file, '/');
	int size;

	if (count == 0 || (count & (count - 1)) != 0 || !can_report())
		return;
	clean(what, shown);
	clean(slash ? slash + 1 : file, shown_file);
	size = snprintf(record, sizeof(record), "%c%s\t%c\t%u\t%d\t%s\t%s\t%s\n", NC_HOOK_MARK,
		hook.token, row->verdict, count, line, row->rule, shown, shown_file);
	if (size > 0 && (size_t)size < sizeof(record))
		(void)!write(hook.report_fd, record, (size_t)size);
}

/* Reports it, and refuses it if the row says so: -1 with Python's exception set. */
static int act(const struct row *row, const char *what)
{
	char text[NC_HOOK_RECORD_MAX + 256];

	report(row, what);
	if (row->verdict != NC_HOOK_REFUSE)
		return 0;
	(void)snprintf(text, sizeof(text), "%.120s: %s [%s]", what, row->text, row->rule);
	PyErr_SetString(PyExc_PermissionError, text);
	return -1;
}

/* "os" is meant with "os.path". */
static bool is_in_module(const char *name, const char *module)
{
	size_t size = strlen(module);

	return strncmp(name, module, size) == 0 && (name[size] == '\0' || name[size] == '.');
}

/* The row that an import falls under; NULL: none does. Known by its name, or else by its file. */
static const struct row *judge_import(const char *name, const char *file)
{
	const struct row *missed = NULL;
	bool allowed = !hook.has_allowed;

	for (size_t i = 0; i < hook.n_rows; i++) {
		const struct row *row = &hook.rows[i];
		bool is_it = name ? is_in_module(name, row->name) : is_file_of(file, row->name);

		if (row->kind == NC_HOOK_IMPORT && is_it)
			return row;
		if (row->kind != NC_HOOK_ALLOWED)
			continue;
		missed = missed ? missed : row;
		allowed |= is_it;
	}
	return allowed ? NULL : missed;
}

/* The row about machine code that the program brings along; NULL: there is none. */
static const struct row *judge_extension(const char *file)
{
	for (size_t i = 0; file[0] == '/' && is_own_file(file) && i < hook.n_rows; i++)
		if (hook.rows[i].kind == NC_HOOK_NATIVE)
			return &hook.rows[i];
	return NULL;
}

static int on_import(object *args)
{
	char name[PATH_SIZE], file[PATH_SIZE];
	const struct row *row;

	argument(args, 0, name);
	argument(args, 1, file); /* of an extension module only */
	row = judge_extension(file);
	if (row)
		return act(row, name);
	row = judge_import(name, "");
	return row && is_programs_doing(NULL) ? act(row, name) : 0;
}

/* A name that is looked up in the code of the caller. */
static bool calls_by_name(const char *name)
{
	object *frame = top_frame(), *code, *names;
	char text[PATH_SIZE];
	bool found = false;

	if (!frame)
		return false;
	code = PyFrame_GetCode(frame);
	names = PyObject_GetAttrString(code, "co_names");
	for (intptr_t i = 0; names && !found && i < PyTuple_Size(names); i++) {
		text_of(PyTuple_GetItem(names, i), text);
		found = strcmp(text, name) == 0;
	}
	if (names)
		Py_DecRef(names);
	else
		PyErr_Clear();
	Py_DecRef(code);
	Py_DecRef(frame);
	return found;
}

/*
 * The program runs text as code, or compiles it. The event does not say by which function; the
 * names in the calling code do, and where none of them stands there somebody hides it.
 */
static int on_code(void)
{
	static const char *const functions[] = {"eval", "exec", "compile"};
	const struct row *first = NULL;
	bool named = false;

	if (!hook.has_functions || !is_programs_doing(NULL))
		return 0;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		named |= calls_by_name(functions[i]);
	for (size_t i = 0; i < hook.n_rows; i++) {
		const struct row *row = &hook.rows[i];

		if (row->kind != NC_HOOK_FUNCTION)
			continue;
		if (calls_by_name(row->name))
			return act(row, row->name);
		first = first ? first : row;
	}
	return named || !first ? 0 : act(first, first->name);
}

/* importlib runs the code of a module that it was asked for by a function, without import. */
static bool is_import_by_function(void)
{
	char file[PATH_SIZE] = "";
	object *frame = top_frame();
	size_t passed = 0;

	for (; frame; frame = behind(frame), passed++) {
		file_of_frame(frame, file);
		if (!begins(file, "<frozen importlib") && !is_file_of(file, "importlib"))
			break;
	}
	if (!frame)
		return false;
	Py_DecRef(frame);
	return passed > 0 && is_own_file(file);
}

static int on_exec(object *args)
{
	char file[PATH_SIZE];
	const struct row *row;

	if (on_code() < 0)
		return -1;
	if (!item_of(args, 0))
		return 0;
	file_of_code(item_of(args, 0), file);
	if (is_own_file(file))
		return 0;
	row = judge_import(NULL, file);
	return row && is_import_by_function()
		       ? act(row, row->kind == NC_HOOK_IMPORT ? row->name : file)
		       : 0;
}

/* A memory of a process, by whatever name: nothing else in /proc is readable and writable. */
static bool is_process_memory(const char *path)
{
	struct stat status;

	if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) < 0)
		/* below a directory that we do not know */
		return strcmp(path, "mem") == 0 || ends(path, "/mem");
	return status.st_dev == hook.proc_dev && S_ISREG(status.st_mode) &&
	       (status.st_mode & 0777) == 0600;
}

/* Whether a row is about the event, whose first argument is a text or "". */
static bool is_about(const struct row *row, const char *event, object *args, const char *first)
{
	size_t size = strlen(row->name);

	if (row->kind == NC_HOOK_MEMORY)
		return strcmp(event, "open") == 0 && is_process_memory(first);
	if (row->kind == NC_HOOK_OPEN)
		return strcmp(event, "open") == 0 && strstr(first, row->name);
	if (row->kind != NC_HOOK_EVENT)
		return false;
	if (row->name[size - 1] == '*' ? strncmp(event, row->name, size - 1) != 0
				       : strcmp(event, row->name) != 0)
		return false;
	/* ctypes opens the program itself when it is imported */
	return strcmp(event, "ctypes.dlopen") != 0 || item_of(args, 0) != &_Py_NoneStruct;
}

static int on_other(const char *event, object *args)
{
	char first[PATH_SIZE] = "", module[64], shown[PATH_SIZE];

	argument(args, 0, first);
	(void)snprintf(module, sizeof(module), "%.*s", (int)strcspn(event, "."), event);
	for (size_t i = 0; i < hook.n_rows; i++) {
		const struct row *row = &hook.rows[i];

		if (!is_about(row, event, args, first) ||
			(row->depth == NC_HOOK_PROGRAM && !is_programs_doing(module)))
			continue;
		(void)snprintf(shown, sizeof(shown), "%.60s%s%.*s", event, first[0] ? " " : "",
			(int)(sizeof(shown) - 64), first);
		return act(row, shown);
	}
	return 0;
}

static int on_event(const char *event, object *args, void *context)
{
	(void)context;
	if (begins(event, "cpython.run_"))
		hook.begun = true;
	/* the interpreter's own, and the one that comes with every attribute */
	if (begins(event, "cpython.") || begins(event, "object.__"))
		return 0;
	if (!Py_IsInitialized() || !PyGILState_GetThisThreadState())
		return 0;
	if (strcmp(event, "import") == 0)
		return on_import(args);
	if (strcmp(event, "exec") == 0)
		return on_exec(args);
	if (strcmp(event, "compile") == 0)
		return on_code();
	return on_other(event, args);
}

/* The next field, whose end becomes a NUL. */
static char *take(char **rest, char until)
{
	char *field = *rest, *end = strchr(field, until);

	if (end)
		*end = '\0';
	*rest = end ? end + 1 : field + strlen(field);
	return field;
}

static void read_row(char *line)
{
	struct row *row = &hook.rows[hook.n_rows];
	char *kind = take(&line, '\t'), *verdict, *depth;

	if (kind[0] == NC_HOOK_WRITABLE) {
		if (hook.n_writable < sizeof(hook.writable) / sizeof(hook.writable[0]))
			hook.writable[hook.n_writable++] = take(&line, '\t');
		return;
	}
	verdict = take(&line, '\t');
	depth = take(&line, '\t');
	*row = (struct row){kind[0], verdict[0], depth[0], take(&line, '\t'), take(&line, '\t'),
		take(&line, '\t')};
	if (row->name[0] == '\0')
		return;
	hook.has_allowed |= row->kind == NC_HOOK_ALLOWED;
	hook.has_functions |= row->kind == NC_HOOK_FUNCTION;
	hook.n_rows++;
}

static bool read_rows(char *text)
{
	size_t lines = 1;

	for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
		lines++;
	hook.rows = calloc(lines, sizeof(*hook.rows));
	hook.token = take(&text, '\n');
	if (!hook.rows || strlen(hook.token) != NC_HOOK_TOKEN_SIZE)
		return false;
	while (*text)
		read_row(take(&text, '\n'));
	return true;
}

/* What stands behind the object in its file, in memory of our own. */
static bool load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct nc_hook_trailer trailer = {0};
	off_t end = fd < 0 ? -1 : lseek(fd, -(off_t)sizeof(trailer), SEEK_END);
	char *text = NULL;
	bool good = end > 0 && read(fd, &trailer, sizeof(trailer)) == (ssize_t)sizeof(trailer) &&
		    memcmp(trailer.magic, NC_HOOK_MAGIC, sizeof(trailer.magic)) == 0 &&
		    trailer.size <= (1U << 20) && trailer.size < end;

	if (good)
		text = calloc(1, (size_t)trailer.size + 1);
	good = text && lseek(fd, end - (off_t)trailer.size, SEEK_SET) >= 0 &&
	       read(fd, text, trailer.size) == (ssize_t)trailer.size && read_rows(text);
	if (fd >= 0)
		(void)close(fd);
	return good;
}

static void open_report(void)
{
	struct stat status;

	if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self", &status, 0) == 0)
		hook.proc_dev = status.st_dev;
	hook.report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, REPORT_FD);
	if (hook.report_fd < 0)
		hook.report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (hook.report_fd < 0 || syscall(SYS_fstat, hook.report_fd, &status) < 0)
		return;
	hook.report_dev = status.st_dev;
	hook.report_ino = status.st_ino;
}

/* The variable as it would be without us; also where /proc shows it. */
static void leave_environment(char **variable)
{
	static const char name[] = "LD_PRELOAD=";
	char *value = *variable + sizeof(name) - 1;
	char *rest = value + strcspn(value, " :");
	size_t own = (size_t)(rest - value);

	if (*rest) { /* what else is to be loaded was named behind us */
		size_t size = strlen(++rest);

		memmove(value, rest, size + 1);
		memset(value + size, 0, own + 1);
		return;
	}
	memset(*variable, 0, strlen(*variable));
	for (; *variable; variable++)
		*variable = variable[1];
}

#ifndef NC_HOOK_LINKED
/* The first bytes of the object in memory; the linker knows where. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/*
 * Puts a copy of a part of the object in its place, at the same address and at once: whoever runs
 * in it does not notice. Where that is not possible, the part stays what it is.
 */
static void copy_part(const ElfW(Phdr) * part)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)&__ehdr_start + part->p_vaddr) & ~(page - 1);
	uintptr_t end = (uintptr_t)&__ehdr_start + part->p_vaddr + part->p_memsz;
	size_t size = (end - begin + page - 1) & ~(page - 1);
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return;
	memcpy(copy, (const void *)begin, size);
	if (mprotect(copy, size,
		    (part->p_flags & PF_R ? PROT_READ : 0) |
			    (part->p_flags & PF_W ? PROT_WRITE : 0) |
			    (part->p_flags & PF_X ? PROT_EXEC : 0)) < 0 ||
		mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) ==
			MAP_FAILED)
		(void)munmap(copy, size);
}

/* Lets go of the file: as long as it is mapped it takes room on the program's disk. */
static void leave_file(void)
{
	const ElfW(Phdr) *parts =
		(const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);

	for (size_t i = 0; i < __ehdr_start.e_phnum; i++)
		if (parts[i].p_type == PT_LOAD)
			copy_part(&parts[i]);
}
#endif

static bool refuses_something(void)
{
	for (size_t i = 0; i < hook.n_rows; i++)
		if (hook.rows[i].verdict == NC_HOOK_REFUSE)
			return true;
	return false;
}

/* What was to be refused would not be: nothing runs. */
_Noreturn static void give_up(const char *reason)
{
	(void)!write(STDERR_FILENO, reason, strlen(reason));
	_exit(125);
}

/* Where the variable is that names this object: finds what it is to know, and leaves both. */
static void begin(char **variable)
{
	bool can_hook = PySys_AddAuditHook && PyFrame_GetCode && PyFrame_GetBack;
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "%s", *variable + strlen("LD_PRELOAD="));
	path[strcspn(path, " :")] = '\0';
	if (!ends(path, ".nacre") || !load(path))
		give_up("nacre: the policy for Python cannot be read\n");
	leave_environment(variable);
	(void)unlink(path);
#ifndef NC_HOOK_LINKED
	leave_file();
#endif
	if (!can_hook && refuses_something())
		give_up("nacre: this Python is older than 3.9, and the policy cannot hold it\n");
	open_report();
	if (can_hook && PySys_AddAuditHook(on_event, NULL) < 0)
		give_up("nacre: the policy cannot hold this Python\n");
}

#ifdef NC_HOOK_LINKED
void nc_hook_begin(char **variable)
{
	begin(variable);
}
#else
__attribute__((constructor)) static void loaded(void)
{
	char **variable = environ;

	if (!Py_IsInitialized) /* no CPython: perhaps what it executes is one */
		return;
	while (variable && *variable && !begins(*variable, "LD_PRELOAD="))
		variable++;
	if (variable && *variable)
		begin(variable);
}
#endif
