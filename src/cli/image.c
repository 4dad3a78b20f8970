/*
 * nacre image: file trees that boxes can have instead of the host's own.
 *
 * Theory of operation of an import: with the caller's rights the source is opened and a staging
 * directory made; then privilege is gone. No archive is parsed out here: a box of the host's tree
 * gets the staging directory, writable, as /image, the archive as its standard input or the source
 * directory, read-only, as /source, and runs the script below. When the box is dead, what it left
 * in the staging directory gets its name by one rename.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/say.h"
#include "base/text.h"
#include "box/image.h"
#include "cli/cli.h"
#include "cli/order.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"

#define SIZE_BUILT_IN "16GB"
#define TIMEOUT_BUILT_IN "10m"
/* Of the box itself: a list of complaints, and what sort and the like would want. */
#define BOX_DISK "64MB"
/* What the script prints: two numbers, or a line of complaint. */
#define SAID_MAX 4096U

/* What the script ends with when there is more than --size allows. */
#define EXIT_TOO_LARGE 3

static bool arg_json;
static bool arg_replace;
static const char *arg_size = SIZE_BUILT_IN;
static const char *arg_timeout = TIMEOUT_BUILT_IN;

static const struct nc_option import_options[] = {
	{.name = "replace", .help = "Replace an image of that name", .flag = &arg_replace},
	{.name = "size",
		.value = "SIZE",
		.help = "Most that it may unpack to; built in: " SIZE_BUILT_IN,
		.text = &arg_size},
	{.name = "timeout",
		.value = "TIME",
		.help = "Most time for it; built in: " TIMEOUT_BUILT_IN,
		.text = &arg_timeout},
	{0},
};

static const struct nc_option list_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

/*
 * Fills /image: script KIND SIZE READERS. Prints how many files were left out and how many devices,
 * or the first complaint on standard error.
 *
 * One tar stream in the middle, whatever the source: head holds the limit, since no file system out
 * there would. tar is not told to preserve anything, skips what every box has of its own, and goes
 * on after a device, which it may not make. Of a directory those files are left out that no box
 * could read anyway, before chmod would open them to all: with READERS "others", when root's box
 * sees the source as its own, that is what others may not read. chmod -R follows no link.
 */
static char script[] =
	"kind=$1 size=$2 readers=$3 status=0\n"
	"export LC_ALL=C\n"
	"cd /tmp || exit\n"
	": >left\n"
	"set --\n"
	"for i in dev proc sys; do\n"
	"	set -- \"$@\" --exclude=\"$i/*\" --exclude=\"./$i/*\" --exclude=\"/$i/*\"\n"
	"done\n"
	"unpacked() {\n"
	"	head -c 6 >magic\n"
	"	case $(od -An -tx1 magic) in\n"
	"	' 1f 8b'*) unpack='gzip -dc' ;;\n"
	"	' 42 5a 68'*) unpack='bzip2 -dc' ;;\n"
	"	' fd 37 7a 58 5a 00') unpack='xz -dc' ;;\n"
	"	' 28 b5 2f fd'*) unpack='zstd -dcq' ;;\n"
	"	*) unpack=cat ;;\n"
	"	esac\n"
	"	cat magic - | $unpack\n"
	"}\n"
	"packed() {\n"
	"	cd /source || return\n"
	"	own='-path ./dev/* -o -path ./proc/* -o -path ./sys/*'\n"
	"	hidden='-type b -o -type c -o ! -type l ! -readable -o -type d ! -executable'\n"
	"	if [ $readers = others ]; then\n"
	"		hidden=\"$hidden -o -type d ! -perm -005 -o -type f ! -perm -004\"\n"
	"	fi\n"
	"	set -f\n"
	"	find . -xdev -mindepth 1 \\( $own \\) -prune -o \\\n"
	"		\\( $hidden \\) -prune -fprintf /tmp/left x -o -type s -o -print0 |\n"
	"		tar -c -f - --null --no-recursion -T -\n"
	"}\n"
	"{\n"
	"	{ $kind || : >/tmp/broken; } | { head -c $size && head -c 1 >more; } |\n"
	"		tar -x -f - -C /image --no-same-owner --no-same-permissions \\\n"
	"			--delay-directory-restore --warning=no-timestamp \\\n"
	"			--warning=no-unknown-keyword --anchored \"$@\" || status=1\n"
	"	chmod -R u+rwX,go+rX,go-w,a-st /image || status=1\n"
	"} 2>errors\n"
	"if [ -s more ]; then exit 3; fi\n"
	"complaint=$(grep -v -e ': Cannot mknod: Operation not permitted$' \\\n"
	"	-e '^tar: Exiting with failure status due to previous errors$' \\\n"
	"	-e '^tar: Removing leading ' -e '^$' errors | head -n 1 | head -c 300)\n"
	"if [ -e broken ] || { [ $status != 0 ] && [ -n \"$complaint\" ]; }; then\n"
	"	printf %s \"$complaint\" >&2\n"
	"	exit 1\n"
	"fi\n"
	"echo $(wc -c <left) $(grep -c ': Cannot mknod: ' errors)\n";

/* What an import holds. */
struct import {
	const char *name;
	uint64_t max_bytes;
	bool ranges;
	int source_fd, store_fd;
	bool from_dir;
	struct nc_staging stage;
	struct nc_order_args args;
	struct nc_order order;
};

static void import_done(struct import *import)
{
	nc_order_done(&import->order);
	import->source_fd = nc_fd_close(import->source_fd);
	import->store_fd = nc_fd_close(import->store_fd);
	import->stage.dir_fd = nc_fd_close(import->stage.dir_fd);
	nc_buf_done(&import->order.run.output);
	nc_buf_done(&import->order.run.error);
}

/* The source, opened with the caller's rights. */
static int open_source(struct import *import, const char *path, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	struct stat status;
	int fd = nc_streq(path, "-") ? nc_fd_dup(STDIN_FILENO)
				     : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return nc_err_errno(err, -errno, "Open %s", nc_text_quote(quoted, path));
	import->source_fd = fd;
	if (fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Look at %s", nc_text_quote(quoted, path));
	import->from_dir = S_ISDIR(status.st_mode);
	if (import->from_dir || S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) ||
		S_ISSOCK(status.st_mode))
		return 0;
	return nc_err_set(err, -EMEDIUMTYPE, "%s is neither a directory nor an archive",
		nc_text_quote(quoted, path));
}

/* Reads the options into the order of a box that runs the script. */
static int order_script(
	struct import *import, const struct nc_config *config, struct nacre_err *err)
{
	static char sh[] = "sh", option[] = "-c", name[] = "import", packed[] = "packed",
		    unpacked[] = "unpacked", others[] = "others", itself[] = "itself";
	char size[32], quoted[NC_TEXT_QUOTED_MAX];
	char *words[] = {sh, option, script, name, import->from_dir ? packed : unpacked, size,
		import->ranges ? others : itself};
	int r;

	if (nc_parse_size(arg_size, 1U << 20, &import->max_bytes) < 0 || import->max_bytes == 0 ||
		import->max_bytes > 1ULL << 50)
		return nc_err_set(err, -EINVAL,
			"Option '--size': found %s, expected a size such as 2GB, up to 1024 TB",
			nc_text_quote(quoted, arg_size));
	(void)snprintf(size, sizeof(size), "%" PRIu64, import->max_bytes);
	import->args = (struct nc_order_args){.timeout = arg_timeout, .disk = BOX_DISK};
	r = nc_order_read(&import->args, config, words, sizeof(words) / sizeof(words[0]),
		&import->order, err);
	import->order.run.input_fd = import->from_dir ? -EBADF : import->source_fd;
	import->order.run.output_fd = import->order.run.error_fd = -EBADF;
	import->order.run.output.max = import->order.run.error.max = SAID_MAX;
	import->order.run.output_max = SAID_MAX;
	return r;
}

/* Whether dir_fd is outer_fd or somewhere below it. -errno if that cannot be told. */
static int is_within(int dir_fd, int outer_fd)
{
	cleanup_close int fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat outer, at, above;

	if (fd < 0 || fstat(outer_fd, &outer) < 0 || fstat(fd, &at) < 0)
		return -errno;
	while (at.st_dev != outer.st_dev || at.st_ino != outer.st_ino) {
		int above_fd = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (above_fd < 0)
			return -errno;
		(void)close(fd);
		fd = above_fd;
		if (fstat(fd, &above) < 0)
			return -errno;
		if (above.st_dev == at.st_dev && above.st_ino == at.st_ino)
			return 0; /* the root is above itself */
		at = above;
	}
	return 1;
}

/* Opens the store, where the image must have a place and must not be copied into itself. */
static int open_store(struct import *import, struct nacre_err *err)
{
	int r = 0;

	import->store_fd = nc_image_store_open(true, import->ranges, err);
	if (import->store_fd < 0)
		return import->store_fd;
	if (!arg_replace)
		r = nc_image_check_free(import->store_fd, import->name, err);
	if (r < 0 || !import->from_dir)
		return r;
	r = is_within(import->store_fd, import->source_fd);
	if (r < 0)
		return nc_err_errno(err, r, "Find the way from the images to the source");
	return r == 0 ? 0
		      : nc_err_set(err, -ELOOP,
				"The source contains the images themselves: import a part of it, "
				"or "
				"use the image '" NC_IMAGE_HOST "'");
}

static void show_to_box(struct import *import, int fd, bool writable, const char *target)
{
	struct nc_order *order = &import->order;
	struct nc_box_bind *bind = &order->run.exec.binds[order->run.exec.n_binds];

	bind->index = order->run.exec.n_binds++;
	bind->writable = writable;
	(void)snprintf(bind->target, sizeof(bind->target), "%s", target);
	order->bind_fd[order->n_bind_fds++] = fd;
}

/* Makes the staging directory; from here on it must be removed again. */
static int open_stage(struct import *import, struct nacre_err *err)
{
	int fd, r = nc_staging_open(import->store_fd, import->ranges, &import->stage, err);

	if (r < 0)
		return r;
	fd = nc_staging_root(&import->stage, import->ranges, err);
	if (fd < 0) {
		(void)nc_staging_close(import->store_fd, import->ranges, &import->stage);
		return fd; /* the first error counts */
	}
	show_to_box(import, fd, true, "/image");
	if (import->from_dir)
		show_to_box(import, take_fd(import->source_fd), false, "/source");
	return 0;
}

/* Why there is no tree, from how the box ended. */
static int judge(const struct nc_run *run, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (run->failure.code < 0)
		return nc_err_set(err, run->failure.code, "The box could not be made: %s",
			run->failure.message);
	if (run->end.cause == NC_CAUSE_CANCEL)
		return nc_err_set(err, -EINTR, "Interrupted");
	if (run->end.cause == NC_CAUSE_WALL)
		return nc_err_set(err, -ETIMEDOUT, "Not done after %s: see --timeout", arg_timeout);
	if (run->end.cause == NC_CAUSE_MEMORY)
		return nc_err_set(err, -ENOMEM,
			"Unpacking takes more memory than default_limits.memory_mb allows");
	if (run->end.cause == NC_CAUSE_EXIT && run->end.signal == 0 && run->end.code == 0)
		return 0;
	if (run->end.code == EXIT_TOO_LARGE)
		return nc_err_set(err, -EFBIG, "It unpacks to more than %s: see --size", arg_size);
	if (run->error.size > 0)
		return nc_err_set(err, -EBADMSG, "It cannot be unpacked: %s",
			nc_text_quote(quoted, nc_buf_text(&run->error)));
	return nc_err_set(err, -EBADMSG, "It cannot be unpacked: status %u, signal %u",
		run->end.code, run->end.signal);
}

/* Says what is not in the image. The numbers come from the box: they are words, not facts. */
static void warn_about_gaps(const struct nc_buf *said)
{
	char text[64] = "";
	uint64_t left, devices;
	char *second;

	(void)snprintf(text, sizeof(text), "%s", nc_buf_text(said));
	text[strcspn(text, "\n")] = '\0';
	second = strchr(text, ' ');
	if (!second)
		return;
	*second++ = '\0';
	if (nc_parse_u64(text, 1, UINT64_MAX, &left) == 0)
		fprintf(stderr,
			"nacre image import: Left out what no box could read or use: %" PRIu64
			" files and directories\n",
			left);
	if (nc_parse_u64(second, 1, UINT64_MAX, &devices) == 0)
		fprintf(stderr,
			"nacre image import: Left out, since boxes have their own: %" PRIu64
			" devices\n",
			devices);
}

static bool has_entry(int dir_fd)
{
	cleanup_closedir DIR *dir = NULL;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;

	dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && !found;
		entry = readdir(dir))
		found = !nc_streq(entry->d_name, ".") && !nc_streq(entry->d_name, "..");
	return found;
}

/* Whether that is a file tree: something at least, and where programs are it says nothing more. */
static int check_tree(int root_fd, struct nacre_err *err)
{
	struct stat status;

	if (!has_entry(root_fd))
		return nc_err_set(err, -ENODATA, "There is nothing in it");
	if (fstatat(root_fd, "usr", &status, AT_SYMLINK_NOFOLLOW) < 0 &&
		fstatat(root_fd, "bin", &status, AT_SYMLINK_NOFOLLOW) < 0)
		fputs("nacre image import: It has neither usr nor bin: a tree of files is wanted, "
		      "as docker export and debootstrap make it\n",
			stderr);
	return 0;
}

/* The signals that end us are read instead of obeyed: the staging directory has to go first. */
static int catch_signals(sigset_t *ret_caught)
{
	(void)sigemptyset(ret_caught);
	(void)sigaddset(ret_caught, SIGHUP);
	(void)sigaddset(ret_caught, SIGINT);
	(void)sigaddset(ret_caught, SIGTERM);
	return sigprocmask(SIG_BLOCK, ret_caught, NULL) < 0 ? -errno : 0;
}

/* Shuts us into the store, and sweeps it while we may still change modes there. */
static int lock_in(int store_fd, struct nacre_err *err)
{
	char path[32];
	int abi, r;

	/* by its descriptor: the worker may have no right to walk there */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", store_fd);
	abi = nc_fence_worker(path);
	if (abi >= 0)
		nc_staging_sweep(store_fd);
	r = abi < 0 ? abi : nc_filter_load(NC_FILTER_WORKER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict ourselves") : abi;
}

/* The unprivileged half: has a box fill the staging directory, and gives the result its name. */
static int fill_and_commit(struct import *import, struct nc_holder *holder, struct nacre_err *err)
{
	struct nc_run *run = &import->order.run;
	int abi = lock_in(import->store_fd, err);
	int r = abi < 0 ? abi : nc_holder_connect(holder, err);

	if (r == 0)
		r = nc_order_settle(&import->args, holder, &import->order, err);
	(void)signal(SIGPIPE, SIG_IGN); /* a box that ends does not read its input to the end */
	if (r == 0)
		r = nc_run(holder, run, err);
	if (r == 0)
		r = judge(run, err);
	if (r == 0)
		r = check_tree(import->order.bind_fd[0], err);
	if (r == 0)
		r = nc_image_commit(
			import->store_fd, &import->stage, import->name, arg_replace, err);
	if (r == 0)
		warn_about_gaps(&run->output);
	return r;
}

static int import_as_worker(struct import *import, struct nc_holder *holder, const sigset_t *caught,
	struct nacre_err *err)
{
	cleanup_close int signal_fd = signalfd(-1, caught, SFD_CLOEXEC);
	int left, r = signal_fd < 0 ? nc_err_errno(err, -errno, "Catch signals") : 0;

	import->order.run.cancel_fd = signal_fd;
	if (r == 0)
		r = fill_and_commit(import, holder, err);
	left = nc_staging_close(import->store_fd, false, &import->stage);
	if (left < 0)
		nc_say(stderr, "nacre image import: Left for the next import to remove: %s: %s\n",
			import->stage.name, nc_errno_text(left));
	return r;
}

static int run_import(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_holder struct nc_holder holder = {.fd = -EBADF};
	nc_cleanup(import_done) struct import import = {.source_fd = -EBADF,
		.store_fd = -EBADF,
		.stage = {.dir_fd = -EBADF},
		.order = {.run = {.image_fd = -EBADF}}};
	struct nc_holder_setup setup = {.binds = import.order.bind_fd, .witness_fd = -EBADF};
	sigset_t caught;
	int r;

	if (n_words != 2)
		return nc_err_set(err, -EINVAL,
			"Name the image and its source: nacre image import NAME DIRECTORY|TAR");
	import.name = words[0];
	r = nc_image_name_check(import.name, err);
	if (r == 0)
		r = nc_privilege_ranges(&import.ranges, err);
	if (r == 0)
		r = open_source(&import, words[1], err);
	if (r == 0)
		r = order_script(&import, cli->config, err);
	if (r == 0)
		r = open_store(&import, err);
	if (r == 0 && catch_signals(&caught) < 0)
		r = nc_err_errno(err, -errno, "Block signals");
	if (r == 0)
		r = open_stage(&import, err);
	if (r < 0)
		return r;
	setup.n_binds = import.order.n_bind_fds;
	r = nc_holder_start(&holder, &setup, err);
	if (r < 0) {
		(void)nc_staging_close(import.store_fd, import.ranges, &import.stage);
		return r; /* the first error counts */
	}
	return import_as_worker(&import, &holder, &caught, err);
}

/* Opens the store for a verb that needs no box, and leaves all privilege. */
static int enter_store(struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	char path[32];
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	if (r == 0)
		r = fd = nc_image_store_open(false, ranges, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = nc_privilege_drop(ranges);
	if (r == 0)
		r = nc_fence_worker(path);
	return r < 0 ? nc_err_errno(err, r, "Drop privileges") : take_fd(fd);
}

static int run_remove(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_close int store_fd = -EBADF;
	int r;

	(void)cli;
	if (n_words != 1)
		return nc_err_set(err, -EINVAL, "Name the image: nacre image remove NAME");
	r = nc_image_name_check(words[0], err);
	if (r == 0)
		r = store_fd = enter_store(err);
	if (r == -ENOENT)
		return nc_err_set(err, -ENOENT, "There is no image '%s'", words[0]);
	if (r >= 0)
		r = nc_image_remove(store_fd, words[0], err);
	if (store_fd >= 0)
		nc_staging_sweep(store_fd);
	return r < 0 ? r : NC_EXIT_OK;
}

static int add_image(void *context, const struct nc_image_entry *entry)
{
	char imported[32] = "";
	struct tm parts;

	(void)strftime(imported, sizeof(imported), "%Y-%m-%dT%H:%M:%SZ",
		gmtime_r(&entry->imported.tv_sec, &parts));
	return json_array_append_new(
		       context, json_pack("{s:s, s:I, s:s}", "name", entry->name, "bytes",
					(json_int_t)entry->bytes, "imported", imported)) < 0
		       ? -ENOMEM
		       : 0;
}

static int by_name(const void *a, const void *b)
{
	json_t *const *left = a, *const *right = b;

	return strcmp(json_string_value(json_object_get(*left, "name")),
		json_string_value(json_object_get(*right, "name")));
}

/* Moves the images over to a fresh list, in order. NULL: out of memory. */
static json_t *sorted(const json_t *images)
{
	size_t n = json_array_size(images);
	cleanup_free json_t **order = calloc(n + 1, sizeof(json_t *));
	cleanup_json json_t *list = json_array();

	if (!order)
		return NULL;
	for (size_t i = 0; i < n; i++)
		order[i] = json_array_get(images, i);
	qsort(order, n, sizeof(json_t *), by_name);
	for (size_t i = 0; i < n; i++)
		if (json_array_append(list, order[i]) < 0)
			return NULL;
	return take_ptr(list);
}

static void print_image(const json_t *image)
{
	const json_t *bytes = json_object_get(image, "bytes");
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	double size = (double)json_integer_value(bytes);
	size_t unit = 0;

	if (json_is_null(bytes)) {
		nc_say(stdout, "%-32s %9s  this machine's own programs\n", NC_IMAGE_HOST, "-");
		return;
	}
	for (; size >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	nc_say(stdout, "%-32s %6.1f %-2s  %s\n", json_string_value(json_object_get(image, "name")),
		size, units[unit], json_string_value(json_object_get(image, "imported")));
}

static int run_list(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *images = json_array(), *list = NULL;
	cleanup_close int store_fd = enter_store(err);
	int r = store_fd == -ENOENT ? 0 : store_fd;

	(void)cli;
	(void)n_words;
	(void)words;
	if (r < 0)
		return r;
	if (store_fd >= 0)
		r = nc_image_visit(store_fd, add_image, images);
	if (r < 0)
		return nc_err_errno(err, r, "List the images");
	list = sorted(images);
	if (json_array_insert_new(list, 0,
		    json_pack("{s:s, s:n, s:n}", "name", NC_IMAGE_HOST, "bytes", "imported")) < 0)
		return nc_err_errno(err, -ENOMEM, "List the images");
	for (size_t i = 0; !arg_json && i < json_array_size(list); i++)
		print_image(json_array_get(list, i));
	if (arg_json && nc_json_print(stdout, json_pack("{s:O}", "images", list), true) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	return NC_EXIT_OK;
}

static const struct nc_verb import_verb = {
	.name = "import",
	.summary = "Make an image from a directory or a tar archive",
	.arguments = "NAME DIRECTORY|TAR|-",
	.details =
		"Copies a directory, or unpacks a tar archive (plain, gzip, bzip2, xz or zstd; "
		"- is\n"
		"standard input) inside a box, and keeps the result for nacre exec --image NAME.",
	.example = "docker export my-container | nacre image import my-image -",
	.options = import_options,
	.max_words = 2,
	.run = run_import,
};

static const struct nc_verb list_verb = {
	.name = "list",
	.summary = "List the images",
	.arguments = "",
	.details = "Prints the name of each image, its size on the disk and when it was imported.",
	.example = "nacre image list --json",
	.options = list_options,
	.run = run_list,
};

static const struct nc_verb remove_verb = {
	.name = "remove",
	.summary = "Remove an image",
	.arguments = "NAME",
	.details = "Removes the image from the disk. Boxes that run on it lose their files.",
	.example = "nacre image remove my-image",
	.max_words = 1,
	.run = run_remove,
};

static const struct nc_verb *const verbs[] = {&import_verb, &list_verb, &remove_verb, NULL};

const struct nc_verb nc_verb_image = {
	.name = "image",
	.summary = "Import, list or remove images",
	.arguments = "VERB",
	.details = "An image is a tree of files that a box can have instead of the host's own:\n"
		   "nacre exec --image NAME. Images are kept in $NACRE_STATE/images, else for root "
		   "in\n"
		   "/var/lib/nacre/images, else in ~/.local/share/nacre/images.",
	.example = "nacre image import alpine alpine-minirootfs.tar.gz",
	.verbs = verbs,
};
