/* Reads a request from standard input and prints its faults: 0 if it is good, 1 if it is not. */
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/request.h"

int main(void)
{
	static struct nc_faults faults;
	cleanup_request struct nc_request request = {0};
	nc_buf_cleanup struct nc_buf text = NC_BUF(1024U * 1024);
	cleanup_free char *json = NULL;
	size_t size = 0;
	int r = nc_fd_read_all(STDIN_FILENO, 2U * NC_REQUEST_SIZE_MAX, &json, &size);

	if (r == 0)
		r = nc_request_parse(json, size, &request, &faults);
	nc_faults_text(&faults, &text);
	fputs(nc_buf_text(&text), stdout);
	return r == 0 ? 0 : r == -EINVAL ? 1 : 2;
}
