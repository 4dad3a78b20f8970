/* The caller's own terminal, while a program in a box has one too. */
#include "tier/terminal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

#define USUAL_ROWS 24
#define USUAL_COLUMNS 80

int nc_terminal_take(struct nc_terminal *terminal, int fd)
{
	struct termios raw;
	sigset_t resized;

	*terminal = (struct nc_terminal){.fd = -EBADF, .resized_fd = -EBADF};
	if (!isatty(fd))
		return 0;
	if (tcgetattr(fd, &terminal->was) < 0)
		return -errno;
	(void)sigemptyset(&resized);
	(void)sigaddset(&resized, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &resized, NULL) < 0)
		return -errno;
	terminal->resized_fd = signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK);
	if (terminal->resized_fd < 0)
		return -errno;
	raw = terminal->was;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw) < 0)
		return -errno;
	terminal->fd = fd;
	return 0;
}

void nc_terminal_give_back(struct nc_terminal *terminal)
{
	if (terminal->fd >= 0)
		(void)tcsetattr(terminal->fd, TCSANOW, &terminal->was); /* it may have gone */
	terminal->fd = -EBADF;
	terminal->resized_fd = nc_fd_close(terminal->resized_fd);
}

void nc_terminal_size(const struct nc_terminal *terminal, uint32_t *ret_rows, uint32_t *ret_columns)
{
	struct winsize size = {.ws_row = USUAL_ROWS, .ws_col = USUAL_COLUMNS};

	if (terminal->fd >= 0)
		(void)ioctl(terminal->fd, TIOCGWINSZ, &size); /* the usual one then */
	*ret_rows = size.ws_row ? size.ws_row : USUAL_ROWS;
	*ret_columns = size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

void nc_terminal_resized(
	const struct nc_terminal *terminal, uint32_t *ret_rows, uint32_t *ret_columns)
{
	struct signalfd_siginfo info;

	while (read(terminal->resized_fd, &info, sizeof(info)) > 0)
		; /* any number of them is one change */
	nc_terminal_size(terminal, ret_rows, ret_columns);
}
