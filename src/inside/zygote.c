/*
 * Python that was started before its program was known: its children are lent to boxes, where each
 * runs one program as `python3 main.py` would.
 *
 * Theory of operation: the dynamic loader brings this object into the image's own interpreter
 * (LD_PRELOAD), and main() is ours. It initialises Python with the command line of the programs to
 * come, imports what they are likely to use, and then forks when the spawner asks for it. The fork
 * goes through a transit process with the same memory, which enters the namespaces of a box (it
 * owns their user namespace, and has no other right) and forks; so the child is in the box's pid
 * namespace, and, the transit being gone, the spawner's own. There it locks itself in as every
 * payload does, by the same code, and waits for its order. An order that names another program,
 * or variables that an interpreter reads when it starts, is followed by execve() as always.
 *
 * The zygote itself runs no code of users and never sees any. Nothing here depends on the layout of
 * an object of Python's: any CPython from 3.8 on will do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "inside/arena.h"
#include "inside/child.h"
#include "inside/hook.h"
#include "inside/lend.h"
#include "inside/shade.h"

/* More than a PyConfig has in any version. */
#define CONFIG_SIZE 8192
/* Py_file_input */
#define FILE_INPUT 257
/* A program's; larger ones are left to the interpreter. */
#define SOURCE_MAX (16U << 20)
/* No exit status: what a KeyboardInterrupt that nobody caught ends with is a signal. */
#define INTERRUPTED 256

/* For the few calls of the transit process, fork()'s handlers among them. */
#define TRANSIT_STACK (64U << 10)
/* What libc registers with the kernel, whatever more there is in it. */
#define RSEQ_AREA_SIZE 32

/* Where libc has the area that the kernel keeps up to date for it, if it has one. */
__attribute__((weak)) extern const ptrdiff_t __rseq_offset;
__attribute__((weak)) extern const unsigned int __rseq_size;

struct transit {
	const int *fds;
	pid_t pid;
	void *back[5];
};

typedef struct object object;
struct status {
	int type;
	const char *function, *message;
	int code;
};

#define FROM_PYTHON __attribute__((weak)) extern
FROM_PYTHON void PyConfig_InitPythonConfig(void *config);
FROM_PYTHON struct status PyConfig_SetBytesArgv(void *config, long argc, char *const *argv);
FROM_PYTHON struct status Py_InitializeFromConfig(const void *config);
FROM_PYTHON int Py_RunMain(void);
FROM_PYTHON void PyOS_BeforeFork(void);
FROM_PYTHON void PyOS_AfterFork_Parent(void);
FROM_PYTHON void PyOS_AfterFork_Child(void);
FROM_PYTHON object *PyDict_New(void);
FROM_PYTHON int PyDict_SetItemString(object *dict, const char *key, object *value);
FROM_PYTHON object *PyDict_GetItemString(object *dict, const char *key);
FROM_PYTHON object *PyEval_GetBuiltins(void);
FROM_PYTHON object *PyRun_String(const char *text, int start, object *globals, object *locals);
FROM_PYTHON object *PyObject_CallFunction(object *callable, const char *format, ...);
FROM_PYTHON object *PyList_New(intptr_t size);
FROM_PYTHON int PyList_Append(object *list, object *item);
FROM_PYTHON object *PyBytes_FromString(const char *text);
FROM_PYTHON object *Py_CompileStringExFlags(
	const char *text, const char *path, int start, void *flags, int optimize);
FROM_PYTHON object *PyEval_EvalCode(object *code, object *globals, object *locals);
FROM_PYTHON int PyObject_IsTrue(object *it);
FROM_PYTHON long PyLong_AsLong(object *it);
FROM_PYTHON void PyErr_Print(void);
FROM_PYTHON int PyErr_ExceptionMatches(object *type);
FROM_PYTHON void PyErr_Fetch(object **type, object **value, object **trace);
FROM_PYTHON void PyErr_NormalizeException(object **type, object **value, object **trace);
FROM_PYTHON object *PyExc_SystemExit, *PyExc_KeyboardInterrupt;
FROM_PYTHON void Py_DecRef(object *it);
FROM_PYTHON object _Py_NoneStruct;

/* What is easier said in Python: zygote.py, by zygote_script.S. */
extern const char nc_zygote_script[] __attribute__((visibility("hidden")));

static int (*real_main)(int, char **, char **);
static char *const *own_argv, **own_env; /* as they were at the start */
static object *names;

static int fail(const char *what)
{
	fprintf(stderr, "zygote: %s\n", what);
	return 125;
}

/* Whether an interpreter reads the variable when it starts, or before. */
static bool is_read_early(const char *word)
{
	static const char *const prefixes[] = {
		"PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(word, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static bool has_word(char *const *words, const char *word)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

/* The path of the hook (src/inside/python.c) that the variable has loaded, and nothing else; NULL.
 */
static const char *hook_of(const char *word)
{
	static const char name[] = "LD_PRELOAD=", ending[] = ".nacre";
	size_t size = strlen(word);

	if (strncmp(word, name, sizeof(name) - 1) != 0 || size < sizeof(name) + sizeof(ending) ||
		strcmp(word + size - (sizeof(ending) - 1), ending) != 0 || strpbrk(word, " :"))
		return NULL;
	return word + sizeof(name) - 1;
}

static bool are_same(char *const *words, char *const *others)
{
	while (*words && *others && strcmp(*words, *others) == 0)
		words++, others++;
	return !*words && !*others;
}

static bool has_early(char *const *words, char *const *others)
{
	for (; *words; words++)
		if (is_read_early(*words) && !hook_of(*words) && !has_word(others, *words))
			return false;
	return true;
}

/* Whether this interpreter, as it was started, is the one that the order names. */
static bool is_ours(char *const *argv, char *const *env)
{
	return argv[0] && argv[1] && strcmp(argv[0], own_argv[0]) == 0 &&
	       strcmp(argv[1], own_argv[1]) == 0 && has_early(env, own_env) &&
	       has_early(own_env, env);
}

/* Descriptors of a request; -EBADF where there are fewer. Returns how many there are, or -errno. */
static int receive(struct nc_lend *lend, int *fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(NC_LEND_FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = lend, .iov_len = sizeof(*lend)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(NC_ZYGOTE_FD, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	if (n != sizeof(*lend) || !header || header->cmsg_type != SCM_RIGHTS)
		return -EBADMSG;
	n = (ssize_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(header), (size_t)n * sizeof(int));
	return n >= NC_LEND_JOIN ? (int)n : -EBADMSG; /* there may be no groups */
}

/*
 * In the transit process, which has the zygote's memory while the zygote stands still: leaves the
 * child's process id, or -errno. Its child goes back to where the zygote is, with memory of its
 * own.
 */
static int pass(void *arg)
{
	static const int spaces[] = {
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS};
	struct transit *transit = arg;

	for (int i = 0; i < (int)(sizeof(spaces) / sizeof(spaces[0])); i++)
		if (setns(transit->fds[NC_LEND_USER + i], spaces[i]) < 0) {
			transit->pid = -errno;
			_exit(0);
		}
	transit->pid = fork();
	if (transit->pid == 0)
		__builtin_longjmp(transit->back, 1);
	if (transit->pid < 0)
		transit->pid = -errno;
	_exit(0);
}

/* The kernel forgets the area of a process that has another's memory, and so of its children. */
static void register_rseq(void)
{
	const unsigned int signature = 0x53053053;

	if (&__rseq_size && __rseq_size > 0)
		(void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
			RSEQ_AREA_SIZE, 0, signature);
}

/*
 * Lends a child: 1 in the child. A pipe that nobody writes to tells the spawner of a failure. The
 * child is the spawner's as soon as the transit has ended.
 */
static int lend_child(const int *fds)
{
	static char stack[TRANSIT_STACK] __attribute__((aligned(16)));
	static struct transit transit;
	pid_t pid;

	transit.fds = fds;
	transit.pid = -EAGAIN; /* unless it says otherwise */
	PyOS_BeforeFork();
	if (__builtin_setjmp(transit.back)) {
		register_rseq();
		return 1;
	}
	pid = clone(pass, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &transit);
	PyOS_AfterFork_Parent();
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	/* without it the spawner sees the pipe's end; whose box is gone needs no answer */
	if (transit.pid > 0)
		(void)nc_fd_write_all(fds[NC_LEND_PID], &transit.pid, sizeof(transit.pid));
	else
		fprintf(stderr, "zygote: lend a child: %s\n", nc_errno_text(-transit.pid));
	return 0;
}

static object *list_of(char *const *words)
{
	object *list = PyList_New(0);

	for (; list && *words; words++) {
		object *word = PyBytes_FromString(*words);

		if (!word || PyList_Append(list, word) < 0)
			return NULL;
		Py_DecRef(word);
	}
	return list;
}

/* A new reference; NULL: it is printed. */
static object *call(const char *name, object *const *given, size_t n)
{
	static const char *const formats[] = {"", "(O)", "(OO)"};
	object *function = PyDict_GetItemString(names, name);
	object *result =
		function ? PyObject_CallFunction(function, formats[n], n > 0 ? given[0] : NULL,
				   n > 1 ? given[1] : NULL, n > 2 ? given[2] : NULL)
			 : NULL;

	if (!result)
		PyErr_Print();
	return result;
}

/* What the dynamic loader would do. */
static void load_hook(char **env)
{
	for (char **word = env; *word; word++)
		if (hook_of(*word)) {
			nc_hook_begin(word);
			return;
		}
}

/* The program as the compiler takes it; NULL: it is not to be had, or has bytes that no C string
 * has. */
static char *read_source(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	char *text = NULL;

	if (fd < 0 || nc_fd_read_all(fd, SOURCE_MAX, &text, &size) < 0)
		return NULL;
	if (memchr(text, '\0', size)) {
		free(text);
		return NULL;
	}
	return text;
}

/* What ended it, if it was no return: the exit status. */
static int status_of_error(void)
{
	bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
	object *type, *value, *trace, *code;
	long status;

	if (!PyErr_ExceptionMatches(PyExc_SystemExit)) {
		PyErr_Print();
		return interrupted ? INTERRUPTED : 1;
	}
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	code = call("exit_code", &value, 1);
	status = code ? PyLong_AsLong(code) : 1;
	Py_DecRef(type);
	Py_DecRef(value);
	Py_DecRef(trace);
	return (int)status;
}

static int run(const char *source, const char *path, object *space)
{
	object *code = Py_CompileStringExFlags(source, path, FILE_INPUT, NULL, -1);
	object *result = code ? PyEval_EvalCode(code, space, space) : NULL;

	Py_DecRef(code);
	Py_DecRef(result);
	return result ? 0 : status_of_error();
}

/* Runs the program as the interpreter's own main() would, and ends as that does. */
static int be_python(const struct nc_child_program *program)
{
	bool usual = are_same(program->env, own_env);
	object *given[] = {
		list_of(program->argv + 2), usual ? &_Py_NoneStruct : list_of(program->env)};
	object *space = given[0] && given[1] ? call("begin", given, 2) : NULL;
	char *source = read_source(program->argv[1]);
	object *good;
	int status;

	if (!space)
		return 125;
	if (!source)
		return Py_RunMain();
	status = run(source, program->argv[1], space);
	Py_DecRef(space);
	good = call("finish", NULL, 0);
	if (status == INTERRUPTED) {
		(void)signal(SIGINT, SIG_DFL);
		(void)raise(SIGINT);
	}
	if (!good || !PyObject_IsTrue(good))
		status = 120;
	/* what libraries would free now goes with the process; that takes most of the time */
	(void)fflush(NULL);
	_exit(status);
}

/* While it waits for its order: goes through what programs do, whenever it is told to. */
static int wait_for_order(int channel_fd)
{
	char word;
	object *done;

	while (recv(channel_fd, &word, 1, MSG_PEEK | MSG_TRUNC) == 1) {
		done = recv(channel_fd, &word, 1, 0) == 1 ? call("warm", NULL, 0) : NULL;
		if (!done || nc_fd_write_all(channel_fd, NC_WARM_UP, 1) < 0)
			return 125;
		Py_DecRef(done);
	}
	return 0;
}

/* In the child, in its box: locks itself in, takes its order, and runs it. Returns its status. */
static int live(const struct nc_lend *lend, const int *fds, int n)
{
	struct nc_cgroup_parent parent = {.can = lend->can};
	struct nc_cgroup group = {.parent = &parent, .clone_fd = -EBADF};
	struct nc_payload payload = {.tier = NC_TIER_CONTAINER,
		.lent = true,
		.box_fd = fds[NC_LEND_USER],
		.channel_fd = fds[NC_LEND_CHANNEL],
		.other_fd = -EBADF,
		.go_fd = fds[NC_LEND_GO],
		.built_fd = -EBADF,
		.id = NC_SANDBOX_ID,
		.join_fds = fds + NC_LEND_JOIN,
		.n_join = (size_t)(n - NC_LEND_JOIN),
		.group = lend->can ? &group : NULL};
	struct nc_child_program program;
	struct nc_held held;

	nc_child_hold(&payload, &held);
	PyOS_AfterFork_Child();
	if (!call("reseed", NULL, 0))
		return 125;
	nc_child_tell(&held);
	if (wait_for_order(held.channel_fd) != 0)
		return 125;
	nc_child_follow(&payload, &held, &program);
	if (nc_fd_write_all(held.channel_fd, NC_LAST_WORD, 1) < 0)
		return 125; /* nobody is there any more */
	if (nc_shade_wanted(lend->can))
		nc_shade_wait();
	if (!is_ours(program.argv, program.env))
		nc_child_execute(&held, &program);
	/* as execve would do it: it is nobody's business that its memory was another's before */
	(void)prctl(PR_SET_DUMPABLE, 1);
	(void)close(held.channel_fd);
	load_hook(program.env);
	return be_python(&program);
}

static int serve(void)
{
	for (;;) {
		int fds[NC_LEND_FDS_MAX];
		struct nc_lend lend;
		int n = receive(&lend, fds);

		if (n < 0)
			_exit(n == -ECONNRESET ? 0 : 125); /* the spawner is gone */
		if (lend_child(fds) > 0)
			return live(&lend, fds, n);
		while (n > 0)
			(void)close(fds[--n]);
	}
}

static size_t count_words(char **words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static char **copy_of(char **words)
{
	size_t n = count_words(words);
	char **copy;

	copy = malloc((n + 1) * sizeof(*copy));
	if (!copy)
		_exit(fail("out of memory"));
	/* cppcheck-suppress nullPointerRedundantCheck ; _exit() does not return */
	return memcpy(copy, words, (n + 1) * sizeof(*copy));
}

/* Also where /proc shows it: children see what they were started with. */
static void leave_variable(const char *name)
{
	char *value = getenv(name);

	if (value)
		memset(value - strlen(name) - 1, 0, strlen(name) + 1 + strlen(value));
	for (char **word = environ; value && *word; word++)
		while (*word && !**word)
			memmove(word, word + 1, sizeof(*word) * (count_words(word + 1) + 1));
}

static int zygote_main(int argc, char **argv, char **env)
{
	static char config[CONFIG_SIZE] __attribute__((aligned(16)));
	const char *modules = getenv("NACRE_PRELOAD");
	object *text;
	struct status status;

	if (!PyConfig_InitPythonConfig || !Py_RunMain || argc != 2 || !modules)
		return real_main(argc, argv, env);
	modules = strdup(modules);
	leave_variable("NACRE_PRELOAD");
	leave_variable("LD_PRELOAD");
	own_argv = argv;
	own_env = copy_of(environ); /* Python adds to it */
	nc_arena_begin();
	PyConfig_InitPythonConfig(config);
	status = PyConfig_SetBytesArgv(config, argc, argv);
	if (status.type == 0)
		status = Py_InitializeFromConfig(config);
	if (status.type != 0)
		return fail(status.message ? status.message : "Python could not be initialised");
	names = PyDict_New();
	if (!names || PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) < 0 ||
		!PyRun_String(nc_zygote_script, FILE_INPUT, names, names))
		return PyErr_Print(), fail("the helpers could not be made");
	text = PyBytes_FromString(modules ? modules : "");
	if (!text || !call("load", &text, 1))
		return fail("modules could not be loaded");
	nc_arena_settle();
	return serve();
}

/* The interpreter's main() is called by libc, through this, which no header declares. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
	void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

__attribute__((visibility("default"))) int __libc_start_main(int (*main)(int, char **, char **),
	int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
	void *stack_end)
{
	int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
		void (*)(void), void *) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
	if (!real)
		_exit(fail("there is no libc"));
	real_main = main;
	/* cppcheck-suppress nullPointerRedundantCheck ; as above */
	return real(zygote_main, argc, argv, init, fini, rtld_fini, stack_end);
}
