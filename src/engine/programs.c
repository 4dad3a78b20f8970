/*
 * Compiled programs that are kept.
 *
 * A key covers everything that the program is made from: language, compiler (which file it is, and
 * when that was changed), words and environment of the compilation, source and files. So whoever
 * has hostile code compiled can only put a hostile program behind the key of that code. Programs
 * that were not used for longest go first when there is no room.
 */
#include "engine/programs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

/* All programs together. */
#define STORE_MAX (1ULL << 30)
#define DIR_NAME "programs"

static void digest_bytes(EVP_MD_CTX *digest, const void *data, size_t size)
{
	uint64_t length = size;

	/* with its length, so that two parts cannot pass for two others */
	(void)EVP_DigestUpdate(digest, &length, sizeof(length));
	(void)EVP_DigestUpdate(digest, data, size);
}

static void digest_text(EVP_MD_CTX *digest, const char *text)
{
	digest_bytes(digest, text, strlen(text));
}

static void digest_words(EVP_MD_CTX *digest, const char *const *words)
{
	for (; words && *words; words++)
		digest_text(digest, *words);
	digest_text(digest, "");
}

/* Which compiler it is, as a box of the host's own tree will find it. */
static void digest_compiler(EVP_MD_CTX *digest, const char *name)
{
	static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct stat status;
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (stat(path, &status) < 0)
			continue;
		digest_bytes(digest, &status.st_ino, sizeof(status.st_ino));
		digest_bytes(digest, &status.st_size, sizeof(status.st_size));
		digest_bytes(digest, &status.st_mtim, sizeof(status.st_mtim));
	}
}

static void digest_files(EVP_MD_CTX *digest, const struct nc_request_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		digest_text(digest, files->file[i].path);
		digest_bytes(digest, files->file[i].data, files->file[i].size);
		digest_bytes(digest, &files->file[i].executable, sizeof(bool));
	}
}

static void make_key(const struct nc_execution *execution, struct nc_step_state *step)
{
	const struct nc_request_step *wanted = &execution->request.step[step - execution->step];
	const struct nc_runtime_step *compile = &step->runtime->compile;
	unsigned char bytes[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	unsigned int size = 0;

	if (digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1) {
		digest_text(digest, NACRE_VERSION);
		digest_text(digest, step->runtime->name);
		digest_compiler(digest, compile->argv[0]);
		digest_words(digest, compile->argv);
		digest_words(digest, compile->env);
		digest_text(digest, step->source);
		digest_bytes(digest, wanted->code, wanted->code_size);
		digest_files(digest, &execution->request.files);
		if (EVP_DigestFinal_ex(digest, bytes, &size) == 1)
			for (unsigned int i = 0; i < size; i++)
				(void)snprintf(step->key + 2 * (size_t)i, 3, "%02x", bytes[i]);
	}
	EVP_MD_CTX_free(digest);
}

/* The directory of programs; -EBADF: none are kept here. */
static int open_store(const struct nc_execution *execution)
{
	int cache_fd = nc_engine_setup(execution->engine)->cache_fd;

	if (cache_fd < 0)
		return -EBADF;
	if (mkdirat(cache_fd, DIR_NAME, 0700) < 0 && errno != EEXIST)
		return -errno;
	return nc_path_open(cache_fd, DIR_NAME, O_RDONLY | O_DIRECTORY, 0);
}

void nc_programs_find(struct nc_execution *execution)
{
	cleanup_close int store_fd = -EBADF;

	for (size_t i = 0; i < execution->request.n_steps; i++) {
		struct nc_step_state *step = &execution->step[i];

		if (!step->runtime->compile.argv)
			continue;
		if (store_fd < 0)
			store_fd = open_store(execution);
		if (store_fd < 0)
			return;
		make_key(execution, step);
		if (!*step->key || nc_path_read(store_fd, step->key, NC_PROGRAM_MAX, &step->program,
					   &step->program_size) < 0)
			continue;
		step->from_cache = true;
		(void)utimensat(store_fd, step->key, NULL, 0); /* or it goes sooner than it might */
	}
}

/* Removes what was not used for longest until there is room. */
static void make_room(int store_fd, uint64_t wanted)
{
	for (;;) {
		cleanup_closedir DIR *dir = NULL;
		int fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct timespec oldest = {0};
		char name[NC_NAME_MAX + 1] = "";
		struct dirent *entry;
		uint64_t sum = 0;

		dir = fd < 0 ? NULL : fdopendir(fd);
		if (!dir) {
			(void)nc_fd_close(fd);
			return;
		}
		while ((entry = readdir(dir))) {
			struct stat status;

			if (fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
				!S_ISREG(status.st_mode))
				continue;
			sum += (uint64_t)status.st_size;
			if (*name && (status.st_mtim.tv_sec > oldest.tv_sec ||
					     (status.st_mtim.tv_sec == oldest.tv_sec &&
						     status.st_mtim.tv_nsec > oldest.tv_nsec)))
				continue;
			oldest = status.st_mtim;
			(void)snprintf(name, sizeof(name), "%s", entry->d_name);
		}
		if (sum + wanted <= STORE_MAX || !*name || unlinkat(store_fd, name, 0) < 0)
			return;
	}
}

void nc_programs_keep(const struct nc_execution *execution, const struct nc_step_state *step)
{
	cleanup_close int store_fd = *step->key ? open_store(execution) : -EBADF;

	if (store_fd < 0)
		return;
	make_room(store_fd, step->program_size);
	/* if it cannot be kept it is compiled again */
	(void)nc_path_write(store_fd, step->key, step->program, step->program_size, 0600);
}
