/* Heads and chunked bodies of HTTP/1, at every length that they can be cut to. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "egress/http.h"

static int read_text(const char *text, struct nc_http_request *request, enum nc_reason *reason)
{
	return nc_http_read_request(text, strlen(text), NULL, request, reason);
}

static void a_request_is_read_when_it_is_whole(void **state)
{
	static const char text[] = "POST http://Example.org:8080/a?b HTTP/1.1\r\n"
				   "Host: example.org:8080\r\nContent-Length: 12\r\n"
				   "Connection: close, X-Hop\r\nX-Hop: 1\r\nX:\t y \r\n\r\n";
	struct nc_http_request request;
	enum nc_reason reason;

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		assert_int_equal(nc_http_read_request(text, i, NULL, &request, &reason), 0);
	assert_int_equal(read_text(text, &request, &reason), 1);
	assert_string_equal(request.host.text, "example.org");
	assert_int_equal(request.port, 8080);
	assert_int_equal(request.method, NC_METHOD_POST);
	assert_false(request.tunnel);
	assert_memory_equal(request.path.text, "/a?b", request.path.size);
	assert_int_equal(request.head.body, NC_BODY_LENGTH);
	assert_int_equal(request.head.length, 12);
	assert_false(request.head.keep_alive);
	assert_int_equal(request.head.size, sizeof(text) - 1);
}

static void what_goes_out_is_ours(void **state)
{
	const struct nc_egress_secret secret = {
		"PLACEHOLDER", "value of it", "example.org:8080", "authorization", false};
	const char *text = "GET HTTP://Example.org:8080?q HTTP/1.1\r\nAccept: */*\r\n"
			   "hOST: example.org:8080\r\nProxy-Authorization: x\r\n"
			   "Authorization: Bearer PLACEHOLDER!\r\nX: PLACEHOLDER\r\n"
			   "Connection: a\r\nA: b\r\n\r\n";
	nc_buf_cleanup struct nc_buf out = NC_BUF(4096);
	struct nc_secrets secrets = {0};
	struct nc_http_request request;
	enum nc_reason reason;

	(void)state;
	assert_int_equal(nc_secrets_add(&secrets, &secret), 0);
	assert_int_equal(read_text(text, &request, &reason), 1);
	nc_http_write_request(&out, &request, &secrets, false);
	assert_string_equal(nc_buf_text(&out),
		"GET /?q HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\n"
		"Authorization: Bearer value of it!\r\nX: PLACEHOLDER\r\n"
		"Connection: keep-alive\r\n\r\n");
	nc_secrets_done(&secrets);
}

static void secrets_are_bound(void **state)
{
	static const char *const hosts[] = {
		"example.org", "example.org:81", "sub.example.org:8080"};
	const char *text = "GET http://example.org:8080/ HTTP/1.1\r\nHost: example.org:8080\r\n"
			   "A: PLACEHOLDER\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < unit_count(hosts); i++) {
		const struct nc_egress_secret secret = {
			"PLACEHOLDER", "value", hosts[i], "A", false};
		nc_buf_cleanup struct nc_buf out = NC_BUF(4096);
		struct nc_secrets secrets = {0};
		struct nc_http_request request;
		enum nc_reason reason;

		assert_int_equal(nc_secrets_add(&secrets, &secret), 0);
		assert_int_equal(read_text(text, &request, &reason), 1);
		nc_http_write_request(&out, &request, &secrets, false);
		assert_null(strstr(nc_buf_text(&out), "value"));
		nc_secrets_done(&secrets);
	}
}

static void inside_tls_the_host_is_known(void **state)
{
	static const struct nc_origin origin = {{.kind = NC_HOST_NAME, .text = "a.test"}, 443};
	static const char *const bad[] = {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
		"GET x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"};
	const char *good = "GET /x HTTP/1.1\r\nHost: A.test\r\nA: PLACEHOLDER\r\n\r\n";
	const struct nc_egress_secret secrets_of[] = {
		{"PLACEHOLDER", "plain", "a.test:443", "A", false},
		{"PLACEHOLDER", "value", "a.test", "A", true}};
	nc_buf_cleanup struct nc_buf out = NC_BUF(4096);
	struct nc_secrets secrets = {0};
	struct nc_http_request request;
	enum nc_reason reason;

	(void)state;
	for (size_t i = 0; i < unit_count(bad); i++)
		assert_int_equal(
			nc_http_read_request(bad[i], strlen(bad[i]), &origin, &request, &reason),
			-EBADMSG);
	assert_int_equal(nc_http_read_request(good, strlen(good), &origin, &request, &reason), 1);
	for (size_t i = 0; i < unit_count(secrets_of); i++)
		assert_int_equal(nc_secrets_add(&secrets, &secrets_of[i]), 0);
	nc_http_write_request(&out, &request, &secrets, false);
	assert_string_equal(nc_buf_text(&out),
		"GET /x HTTP/1.1\r\nHost: a.test\r\nA: value\r\nConnection: keep-alive\r\n\r\n");
	nc_secrets_done(&secrets);
}

static void faults_have_reasons(void **state)
{
	static const struct {
		const char *text;
		enum nc_reason reason;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_NOT_FOR_PROXY},
		{"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_NOT_FOR_PROXY},
		{"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_SPELLING},
		{"CONNECT 127.1:443 HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_SPELLING},
		{"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_SPELLING},
		{"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", NC_REASON_SPELLING},
		{"GET http://a/ HTTP/1.1\r\n\r\n", NC_REASON_MALFORMED},
		{"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", NC_REASON_MALFORMED},
		{"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", NC_REASON_MALFORMED},
		{"GET http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
			NC_REASON_MALFORMED},
		{"GET http://a/ HTTP/1.1\nHost: a\n\n", NC_REASON_MALFORMED},
		{"\r\n\r\n", NC_REASON_MALFORMED},
		{"get http://a/\r\n\r\n", NC_REASON_MALFORMED},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_http_request request;
		enum nc_reason reason;

		assert_int_equal(read_text(cases[i].text, &request, &reason), -EBADMSG);
		if (reason != cases[i].reason)
			fail_msg("%s: %s", cases[i].text, nc_reason_id(reason));
	}
}

static void too_much_is_refused(void **state)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(1 << 20);
	struct nc_http_request request;
	enum nc_reason reason;

	(void)state;
	nc_buf_adds(&text, "GET http://a/ HTTP/1.1\r\nHost: a\r\n");
	for (size_t i = 0; i < NC_EGRESS_FIELDS_MAX - 1; i++)
		nc_buf_adds(&text, "X: y\r\n");
	nc_buf_adds(&text, "\r\n");
	assert_int_equal(nc_http_read_request(text.data, text.size, NULL, &request, &reason), 1);
	text.size -= 2;
	nc_buf_adds(&text, "X: y\r\n\r\n");
	assert_int_equal(
		nc_http_read_request(text.data, text.size, NULL, &request, &reason), -EBADMSG);
	nc_buf_done(&text);
	nc_buf_adds(&text, "GET http://a/");
	while (text.size < NC_EGRESS_HEAD_MAX)
		nc_buf_adds(&text, "a");
	assert_int_equal(
		nc_http_read_request(text.data, NC_EGRESS_HEAD_MAX - 1, NULL, &request, &reason),
		0);
	assert_int_equal(
		nc_http_read_request(text.data, NC_EGRESS_HEAD_MAX, NULL, &request, &reason),
		-EBADMSG);
}

static int read_reply(const char *text, enum nc_method method, struct nc_http_reply *reply)
{
	return nc_http_read_reply(text, strlen(text), method, reply);
}

static void replies_say_where_they_end(void **state)
{
	struct nc_http_reply reply;

	(void)state;
	assert_int_equal(read_reply("HTTP/1.1 200 OK\r\n\r\n", NC_METHOD_GET, &reply), 1);
	assert_int_equal(reply.head.body, NC_BODY_REST);
	assert_int_equal(read_reply("HTTP/1.1 200\r\n\r\n", NC_METHOD_GET, &reply), 1);
	assert_int_equal(
		read_reply("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", NC_METHOD_HEAD, &reply),
		1);
	assert_int_equal(reply.head.body, NC_BODY_NONE);
	assert_int_equal(
		read_reply("HTTP/1.1 304 X\r\nContent-Length: 7\r\n\r\n", NC_METHOD_GET, &reply),
		1);
	assert_int_equal(reply.head.body, NC_BODY_NONE);
	assert_int_equal(read_reply("HTTP/1.1 101 X\r\n\r\n", NC_METHOD_GET, &reply), -EBADMSG);
	assert_int_equal(read_reply("HTTP/1.1 600 X\r\n\r\n", NC_METHOD_GET, &reply), -EBADMSG);
	assert_int_equal(read_reply("HTTP/1.1 20 X\r\n\r\n", NC_METHOD_GET, &reply), -EBADMSG);
}

static void a_reply_loses_what_was_for_us(void **state)
{
	nc_buf_cleanup struct nc_buf out = NC_BUF(4096);
	struct nc_http_reply reply;

	(void)state;
	assert_int_equal(read_reply("HTTP/1.0 200 Fine\r\nConnection: x\r\nX: y\r\nA: b\r\n"
				    "Keep-Alive: 5\r\nContent-Length: 0\r\n\r\n",
				 NC_METHOD_GET, &reply),
		1);
	nc_http_write_reply(&out, &reply, true);
	assert_string_equal(nc_buf_text(&out), "HTTP/1.1 200 Fine\r\nA: b\r\nContent-Length: 0\r\n"
					       "Connection: keep-alive\r\n\r\n");
}

/* The number of bytes of the body, or the error, with the text fed in pieces of this size. */
static ssize_t feed(const char *text, size_t piece, bool tolerant)
{
	struct nc_chunks chunks = {.tolerant = tolerant};
	const size_t size = strlen(text);
	size_t at = 0;

	while (at < size && chunks.state != NC_CHUNKS_DONE) {
		const size_t n = size - at < piece ? size - at : piece;
		ssize_t took = nc_chunks_take(&chunks, text + at, n);

		if (took < 0)
			return took;
		assert_true((size_t)took == n || chunks.state == NC_CHUNKS_DONE);
		at += (size_t)took;
	}
	return chunks.state == NC_CHUNKS_DONE ? (ssize_t)at : 0;
}

static void chunks_in_every_size_of_pieces(void **state)
{
	static const char body[] = "5\r\nhello\r\n0A\r\n0123456789\r\n0\r\n\r\n";
	static const char rich[] = "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n";
	static const char *const bad[] = {"5\nhello", "5\r\nhellox", "g\r\n", "\r\n", ";\r\n",
		"-5\r\n", "5 \r\n", "fffffffffffffffff\r\n", "0\r\n\rx", "0\r\n\nx", "0\r\r\n",
		"5\r\nhello\r5"};
	nc_buf_cleanup struct nc_buf text = NC_BUF(4096);

	(void)state;
	for (size_t piece = 1; piece < sizeof(body) + 4; piece++) {
		nc_buf_done(&text);
		nc_buf_addf(&text, "%snext", body);
		assert_int_equal(feed(text.data, piece, false), sizeof(body) - 1);
		assert_int_equal(feed(rich, piece, true), sizeof(rich) - 1);
		assert_int_equal(feed(rich, piece, false), -EBADMSG);
		for (size_t i = 0; i < unit_count(bad); i++)
			assert_int_equal(feed(bad[i], piece, true), -EBADMSG);
	}
	assert_int_equal(feed("0\r\nX: y\r\n\r\n", 100, false), -EBADMSG);
	assert_int_equal(feed("0\r\n x\r\n\r\n", 100, true), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_read_when_it_is_whole),
		cmocka_unit_test(what_goes_out_is_ours),
		cmocka_unit_test(secrets_are_bound),
		cmocka_unit_test(inside_tls_the_host_is_known),
		cmocka_unit_test(faults_have_reasons),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(replies_say_where_they_end),
		cmocka_unit_test(a_reply_loses_what_was_for_us),
		cmocka_unit_test(chunks_in_every_size_of_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
