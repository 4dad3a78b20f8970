/*
 * nacre-sudo: `sudo` in a box whose commands may be root's.
 *
 * Theory of operation: it has no right that its caller has not, and is no set-user-id file. It asks
 * at a socket in a directory that root of the box alone can write to, where nacre-files listens
 * (sudo_verb.c); that passes the request on to the daemon, which decides, and orders the command as
 * it orders any other. Then it moves bytes, and ends as the command does. When it dies the command
 * is ended.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "base/sudowire.h"
#include "base/text.h"

#define EXIT_REFUSED 1
#define DIR_MAX 4096
/* Who listens may have just been started, or be started again. */
#define PATIENCE 60
#define PAUSE_NS 50000000

extern char **environ;

struct wish {
	bool keeps_env;
	bool lists, only_asks;	 /* -l; -l or -v: nothing runs */
	bool forgets;		 /* -k, which may stand alone: there is nothing to forget */
	char **variables, **end; /* NAME=value words */
	char **command;
};

struct ask {
	unsigned char bytes[NC_SUDO_HEAD + NC_SUDO_FRAME_MAX];
	size_t size;
	bool overflows;
};

_Noreturn static void refuse(const char *what)
{
	fprintf(stderr, "sudo: %s\n", what);
	_exit(EXIT_REFUSED);
}

/* With the words of a stranger, who is the caller. */
_Noreturn static void refuse_word(const char *before, const char *word, const char *behind)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	fprintf(stderr, "sudo: %s%s%s\n", before, nc_text_quote(quoted, word), behind);
	_exit(EXIT_REFUSED);
}

static void take_user(const char *user)
{
	if (!user)
		refuse("-u: a user is missing");
	if (strcmp(user, "root") != 0 && strcmp(user, "0") != 0 && strcmp(user, "#0") != 0)
		refuse_word("commands run as root here, not as ", user, "");
}

static void take_long(const char *word, char ***arg, struct wish *wish)
{
	if (strcmp(word, "--preserve-env") == 0)
		wish->keeps_env = true;
	else if (strncmp(word, "--user=", 7) == 0)
		take_user(word + 7);
	else if (strcmp(word, "--user") == 0)
		take_user(*++*arg);
	else if (strcmp(word, "--list") == 0)
		wish->only_asks = wish->lists = true;
	else if (strcmp(word, "--validate") == 0)
		wish->only_asks = true;
	else if (strcmp(word, "--reset-timestamp") == 0)
		wish->forgets = true;
	else if (strcmp(word, "--non-interactive") != 0 && strcmp(word, "--set-home") != 0)
		refuse_word("the option ", word, " is not known here");
}

/* Letters behind one '-'. */
static void take_letters(const char *letters, char ***arg, struct wish *wish)
{
	for (const char *at = letters; *at; at++) {
		const char letter[] = {'-', *at, '\0'};

		switch (*at) {
		case 'n': /* nobody is asked for anything */
		case 'H': /* it is root's already */
			break;
		case 'E':
			wish->keeps_env = true;
			break;
		case 'l':
			wish->lists = true;
			wish->only_asks = true;
			break;
		case 'v':
			wish->only_asks = true;
			break;
		case 'k':
			wish->forgets = true;
			break;
		case 'u':
			take_user(at[1] ? at + 1 : *++*arg);
			return;
		default:
			refuse_word("the option ", letter, " is not known here");
		}
	}
}

static void read_arguments(char **argv, struct wish *wish)
{
	char **arg = argv + 1;

	for (; *arg && **arg == '-' && (*arg)[1]; arg++) {
		if (strcmp(*arg, "--") == 0) {
			arg++;
			break;
		}
		if ((*arg)[1] == '-')
			take_long(*arg, &arg, wish);
		else
			take_letters(*arg + 1, &arg, wish);
	}
	wish->variables = arg;
	while (*arg && strchr(*arg, '=') && **arg != '=')
		arg++;
	wish->end = wish->command = arg;
	if (!*arg && !wish->only_asks && !wish->forgets)
		refuse("a command is missing (sudo [-nEHk] [-u root] [NAME=value...] COMMAND "
		       "[ARGUMENT...])");
}

/* Root already: nobody has to be asked. */
_Noreturn static void execute(const struct wish *wish)
{
	int error;

	for (char **word = wish->variables; word < wish->end; word++)
		if (putenv(*word) != 0)
			refuse("out of memory");
	(void)execvp(wish->command[0], wish->command);
	error = errno;
	refuse_word("", wish->command[0],
		error == ENOENT ? ": command not found" : ": cannot be executed");
}

static void add(struct ask *ask, const void *data, size_t size)
{
	if (size > sizeof(ask->bytes) - ask->size) {
		ask->overflows = true;
		return;
	}
	memcpy(ask->bytes + ask->size, data, size);
	ask->size += size;
}

static void add_word(struct ask *ask, const char *word)
{
	add(ask, word, strlen(word) + 1);
}

/* What tells of the user, and what would change the program's own loading, is not kept. */
static bool is_kept(const char *word)
{
	static const char *const left_out[] = {"HOME=", "USER=", "LOGNAME=", "MAIL=", "SHELL=",
		"PWD=", "OLDPWD=", "_=", "SUDO_", "LD_"};

	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strncmp(word, left_out[i], strlen(left_out[i])) == 0)
			return false;
	return strchr(word, '=') != NULL;
}

static unsigned int add_variables(struct ask *ask, const struct wish *wish)
{
	const char *user = getenv("USER");
	char word[256];
	unsigned int n = 0;

	for (char **own = environ; wish->keeps_env && *own; own++)
		if (is_kept(*own)) {
			add_word(ask, *own);
			n++;
		}
	(void)snprintf(word, sizeof(word), "SUDO_UID=%u", (unsigned int)getuid());
	add_word(ask, word);
	(void)snprintf(word, sizeof(word), "SUDO_GID=%u", (unsigned int)getgid());
	add_word(ask, word);
	(void)snprintf(word, sizeof(word), "SUDO_USER=%s", user ? user : "");
	add_word(ask, word);
	n += 3;
	for (char **given = wish->variables; given < wish->end; given++, n++)
		add_word(ask, *given);
	return n;
}

static void fill(struct ask *ask, const struct wish *wish)
{
	unsigned int n_words = 0, n_variables;
	char dir[DIR_MAX];

	ask->size = NC_SUDO_HEAD + 5;
	add_word(ask, getcwd(dir, sizeof(dir)) && dir[0] == '/' ? dir : "/");
	for (; wish->command[n_words]; n_words++)
		add_word(ask, wish->command[n_words]);
	n_variables = add_variables(ask, wish);
	if (ask->overflows || n_words > UINT16_MAX || n_variables > UINT16_MAX)
		refuse("the command and its variables are longer than 64 KiB");
	nc_sudo_put_head(ask->bytes, &(struct nc_sudo_head){.kind = NC_SUDO_REQUEST,
					     .size = (uint32_t)(ask->size - NC_SUDO_HEAD)});
	ask->bytes[NC_SUDO_HEAD] = NC_SUDO_VERSION;
	ask->bytes[NC_SUDO_HEAD + 1] = (unsigned char)n_words;
	ask->bytes[NC_SUDO_HEAD + 2] = (unsigned char)(n_words >> 8);
	ask->bytes[NC_SUDO_HEAD + 3] = (unsigned char)n_variables;
	ask->bytes[NC_SUDO_HEAD + 4] = (unsigned char)(n_variables >> 8);
}

static int call(void)
{
	const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = NC_BOX_SUDO_SOCKET};
	const struct timespec moment = {.tv_nsec = PAUSE_NS};
	cleanup_close int made_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = nc_fd_dup(made_fd); /* or it could be taken for a stream that is closed */

	for (int i = 0; fd >= 0 && i < PATIENCE; i++) {
		if (connect(fd, (const struct sockaddr *)&place, sizeof(place)) == 0)
			return fd;
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EINTR)
			break;
		(void)nanosleep(&moment, NULL);
	}
	refuse("nobody answers in this sandbox: commands as root are not to be had from within");
}

_Noreturn static void lost(void)
{
	refuse("the connection to the daemon is lost; the command may go on");
}

/* Who answers may have closed behind its last word, which is still to be read: no SIGPIPE. */
static int send_all(int fd, const unsigned char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += n < 0 ? 0 : n;
		size -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static void send_frame(int fd, enum nc_sudo_kind kind, const void *data, size_t size)
{
	unsigned char frame[NC_SUDO_HEAD + NC_SUDO_WINDOW];

	nc_sudo_put_head(
		frame, &(struct nc_sudo_head){.kind = (uint8_t)kind, .size = (uint32_t)size});
	if (size > 0)
		memcpy(frame + NC_SUDO_HEAD, data, size);
	(void)send_all(fd, frame, NC_SUDO_HEAD + size); /* reading finds out */
}

/* Returns how much more may be read before credit comes; SIZE_MAX: input has ended. */
static size_t pass_input(int fd, size_t credit)
{
	static char data[NC_SUDO_WINDOW];
	ssize_t n = read(STDIN_FILENO, data, credit < sizeof(data) ? credit : sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return credit;
	send_frame(fd, n > 0 ? NC_SUDO_INPUT : NC_SUDO_INPUT_END, data, n > 0 ? (size_t)n : 0);
	return n > 0 ? credit - (size_t)n : SIZE_MAX;
}

static void pass_output(int fd, int to_fd, const unsigned char *data, uint32_t size)
{
	unsigned char taken[4];

	if (nc_fd_write_all(to_fd, data, size) < 0)
		refuse("the command's output could not be written");
	nc_sudo_put_u32(taken, NC_SUDO_HEAD + size);
	send_frame(fd, NC_SUDO_TAKEN, taken, sizeof(taken));
}

/* One frame of the daemon's; ends with the command. Returns the credit that it brings. */
static size_t take_frame(int fd)
{
	static unsigned char bytes[NC_SUDO_HEAD + NC_SUDO_FRAME_MAX];
	unsigned char *data = bytes + NC_SUDO_HEAD;
	struct nc_sudo_head head;

	if (nc_fd_read_upto(fd, bytes, NC_SUDO_HEAD) != NC_SUDO_HEAD ||
		nc_sudo_get_head(bytes, &head) < 0 ||
		nc_fd_read_upto(fd, data, head.size) != (ssize_t)head.size)
		lost();
	if (head.kind == NC_SUDO_OUTPUT || head.kind == NC_SUDO_ERRORS)
		pass_output(fd, head.kind == NC_SUDO_OUTPUT ? STDOUT_FILENO : STDERR_FILENO, data,
			head.size);
	else if (head.kind == NC_SUDO_EXIT && head.size == 1)
		_exit(data[0]);
	else if (head.kind == NC_SUDO_GIVEN && head.size == 4)
		return nc_sudo_get_u32(data);
	else if (head.kind == NC_SUDO_REFUSED) {
		fprintf(stderr, "sudo: %.*s\n", (int)head.size, (const char *)data);
		_exit(EXIT_REFUSED);
	} else
		lost();
	return 0;
}

_Noreturn static void converse(int fd)
{
	size_t credit = NC_SUDO_WINDOW;
	bool input = true;

	for (;;) {
		struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			{.fd = input && credit > 0 ? STDIN_FILENO : -1, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			refuse("waiting has failed");
		if (fds[0].revents)
			credit += take_frame(fd);
		if (fds[1].revents) {
			size_t left = pass_input(fd, credit);

			input = left != SIZE_MAX;
			credit = input ? left : 0;
		}
	}
}

int main(int argc, char **argv)
{
	static struct ask ask;
	struct wish wish = {0};
	int fd;

	if (argc < 1)
		return EXIT_REFUSED;
	read_arguments(argv, &wish);
	if (wish.only_asks || !*wish.command) {
		if (wish.lists)
			puts("Every command of this sandbox, as root, without a password, as far "
			     "as its policy allows it");
		return 0;
	}
	if (getuid() == 0)
		execute(&wish);
	fill(&ask, &wish);
	fd = call();
	(void)send_all(fd, ask.bytes, ask.size); /* reading finds out */
	converse(fd);
}
