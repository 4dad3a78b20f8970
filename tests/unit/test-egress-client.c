/* The worker's side: starts the real nacre-egress, and talks to it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "egress/client.h"
#include "unit-files.h"

static struct {
	unsigned int dones, meters, overs;
	int error;
	struct nc_egress_meter meter;
	struct nc_egress_decision decision;
	unsigned int decisions;
} heard;

static void on_done(void *user, uint64_t box, int error)
{
	(void)user, (void)box;
	heard.dones++;
	heard.error = error;
}

static void on_decision(void *user, const struct nc_egress_decision *decision)
{
	(void)user;
	heard.decisions++;
	heard.decision = *decision;
}

static void on_meter(void *user, const struct nc_egress_meter *meter)
{
	(void)user;
	heard.meters++;
	heard.meter = *meter;
}

static void on_over(void *user, uint64_t box, enum nc_reason reason)
{
	(void)user, (void)box, (void)reason;
	heard.overs++;
}

static void start(struct nc_egress_client *client, int *pidfd)
{
	const struct nc_egress_setup setup = {
		.program = NACRE_BUILD "/nacre-egress", .servers = "127.0.0.1:9"};
	const struct nc_egress_events events = {on_done, on_decision, on_meter, on_over};
	struct nacre_err err = {0};
	int fd = nc_egress_start(&setup, pidfd, &err);

	if (fd < 0)
		fail_msg("%s", err.message);
	memset(&heard, 0, sizeof(heard));
	assert_int_equal(nc_egress_greet(client, fd, &events, NULL, &err), 0);
}

static void end(struct nc_egress_client *client, int pidfd)
{
	siginfo_t info = {0};

	nc_egress_done(client);
	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + 10 * NC_NS_PER_S, &info), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
	close(pidfd);
}

/* Hears until this counter has risen to wanted. */
static void hear(struct nc_egress_client *client, const unsigned int *counter, unsigned int wanted)
{
	struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};

	while (*counter < wanted) {
		assert_int_equal(poll(&poll_fd, 1, 10000), 1);
		assert_true(nc_egress_receive(client) >= 0);
	}
}

static int listen_somewhere(struct sockaddr_in *ret_address)
{
	socklen_t size = sizeof(*ret_address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)ret_address, size), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, &size), 0);
	return fd;
}

static void a_door_is_opened_changed_and_shut(void **state)
{
	static const char request[] = "GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n";
	const struct nc_egress_rule rule = {.host = "example.org"};
	const struct nc_egress_terms terms = {.rules = &rule, .n_rules = 1};
	struct nc_egress_client client;
	struct nacre_err err = {0};
	struct sockaddr_in address;
	char reply[4096] = "";
	int pidfd, listener, fd;

	(void)state;
	start(&client, &pidfd);
	listener = listen_somewhere(&address);
	assert_int_equal(nc_egress_open(&client, 7, &terms, listener, NULL, 0, &err), 0);
	close(listener);
	hear(&client, &heard.dones, 1);
	assert_int_equal(heard.error, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(nc_fd_write_all(fd, request, sizeof(request) - 1), 0);
	assert_true(nc_fd_read_upto(fd, reply, sizeof(reply) - 1) > 0);
	assert_non_null(strstr(reply, "HTTP/1.1 403 "));
	close(fd);
	hear(&client, &heard.decisions, 1);
	assert_int_equal(heard.decision.box, 7);
	assert_int_equal(heard.decision.reason, NC_REASON_NOT_LISTED);
	assert_string_equal(heard.decision.host, "x.test");
	assert_int_equal(nc_egress_change(&client, 7, &terms, &err), 0);
	assert_int_equal(nc_egress_ask(&client, 7), 0);
	hear(&client, &heard.meters, 1);
	assert_int_equal(heard.meter.denied, 1);
	assert_int_equal(nc_egress_shut(&client, 7), 0);
	hear(&client, &heard.meters, 2);
	assert_true(heard.meter.last && heard.dones == 2);
	end(&client, pidfd);
}

static void wrong_terms_are_not_sent(void **state)
{
	const struct nc_egress_rule rule = {.host = "https://example.org"};
	const struct nc_egress_terms terms = {.rules = &rule, .n_rules = 1};
	const struct nc_egress_terms lonely = {.group = "g"};
	char longest[NC_EGRESS_SECRET_MAX + 2] = "";
	const struct nc_egress_secret secret = {"placeholder", longest, "a.test", "A", false};
	const struct nc_egress_terms too_long = {.secrets = &secret, .n_secrets = 1};
	struct nc_egress_client client;
	struct nacre_err err = {0};
	int pidfd;

	(void)state;
	start(&client, &pidfd);
	assert_int_equal(nc_egress_open(&client, 1, &terms, 0, NULL, 0, &err), -EINVAL);
	assert_non_null(strstr(err.message, "'https://example.org' is not a host"));
	assert_int_equal(nc_egress_change(&client, 1, &lonely, &err), -EINVAL);
	/* what would break the message is not sent, since that would end it for all boxes */
	memset(longest, 'x', NC_EGRESS_SECRET_MAX);
	assert_int_equal(nc_egress_change(&client, 1, &too_long, &err), 0);
	longest[NC_EGRESS_SECRET_MAX] = 'x';
	assert_int_equal(nc_egress_change(&client, 1, &too_long, &err), -EINVAL);
	hear(&client, &heard.dones, 1);
	assert_int_equal(heard.error, -ENOENT);
	assert_non_null(strstr(client.authority, "BEGIN CERTIFICATE"));
	end(&client, pidfd);
}

static void its_death_is_noticed(void **state)
{
	struct nc_egress_client client;
	siginfo_t info;
	int pidfd, r;

	(void)state;
	start(&client, &pidfd);
	assert_int_equal(nc_pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + 10 * NC_NS_PER_S, &info), 0);
	close(pidfd);
	do
		r = nc_egress_receive(&client);
	while (r > 0);
	assert_int_equal(r, -EPIPE);
	assert_int_equal(client.fd, -EBADF);
	assert_int_equal(nc_egress_ask(&client, 1), -EPIPE);
	nc_egress_done(&client);
}

static void variables_name_the_door(void **state)
{
	static const char *const wanted[] = {"http_proxy=http://127.0.0.1:888",
		"HTTPS_PROXY=http://127.0.0.1:888", "all_proxy=http://127.0.0.1:888",
		"no_proxy=localhost,127.0.0.1,::1", "PIP_PROXY=http://127.0.0.1:888",
		"npm_config_https_proxy=http://127.0.0.1:888", "NODE_USE_ENV_PROXY=1"};
	const char *const *variables = nc_egress_variables();

	(void)state;
	for (size_t i = 0; i < unit_count(wanted); i++) {
		bool found = false;

		for (size_t j = 0; variables[j]; j++)
			found = found || nc_streq(variables[j], wanted[i]);
		assert_true(found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_door_is_opened_changed_and_shut, unit_fds_note, unit_fds_check),
		cmocka_unit_test_setup_teardown(
			wrong_terms_are_not_sent, unit_fds_note, unit_fds_check),
		cmocka_unit_test_setup_teardown(
			its_death_is_noticed, unit_fds_note, unit_fds_check),
		cmocka_unit_test(variables_name_the_door),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
