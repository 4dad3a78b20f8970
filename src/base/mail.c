/* Messages that the other side has not taken yet. */
#include "base/mail.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/limits.h"

struct nc_letter {
	struct nc_letter *next;
	struct nc_wire_out out;
	size_t n_fds;
	int fds[NC_WIRE_FDS_MAX];
};

static void letter_free(struct nc_letter *letter)
{
	for (size_t i = 0; i < letter->n_fds; i++)
		(void)nc_fd_close(letter->fds[i]);
	nc_wire_out_done(&letter->out);
	free(letter);
}

static int put_off(struct nc_mail *mail, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	struct nc_letter *letter;

	if (mail->count >= mail->max)
		return -EAGAIN;
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return -ENOMEM;
	for (; letter->n_fds < n_fds; letter->n_fds++) {
		int fd = nc_fd_dup(fds[letter->n_fds]);

		if (fd < 0) {
			letter_free(letter);
			return fd;
		}
		letter->fds[letter->n_fds] = fd;
	}
	letter->out = *out;
	*out = (struct nc_wire_out){0};
	if (!mail->first)
		mail->end = &mail->first;
	*mail->end = letter;
	mail->end = &letter->next;
	if (mail->count++ == 0)
		mail->waits(mail->context);
	return 0;
}

int nc_mail_send(
	struct nc_mail *mail, int socket_fd, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	int r = mail->first ? -EAGAIN : nc_wire_send(socket_fd, out, fds, n_fds);

	return r == -EAGAIN && mail->waits ? put_off(mail, out, fds, n_fds) : r;
}

bool nc_mail_flush(struct nc_mail *mail, int socket_fd)
{
	while (mail->first) {
		struct nc_letter *letter = mail->first;

		/* any other failure is that it has gone, which is seen when it is listened to */
		if (nc_wire_send(socket_fd, &letter->out, letter->fds, letter->n_fds) == -EAGAIN)
			return false;
		mail->first = letter->next;
		mail->count--;
		letter_free(letter);
	}
	return true;
}

void nc_mail_done(struct nc_mail *mail)
{
	while (mail->first) {
		struct nc_letter *letter = mail->first;

		mail->first = letter->next;
		letter_free(letter);
	}
	mail->count = 0;
}
