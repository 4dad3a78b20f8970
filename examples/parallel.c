/*
 * Many programs of several languages at once, each with its right answer.
 *
 *	cc parallel.c $(pkg-config --cflags --libs nacre) -o parallel && ./parallel [COUNT
 *[LANGUAGES]]
 */
#include <nacre/nacre.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each prints seven times the number of its request. */
static const char *const requests[] = {
	"{\"language\":\"python\",\"code\":\"print(7 * %zu)\"}",
	"{\"language\":\"javascript\",\"code\":\"console.log(7 * %zu)\"}",
	"{\"language\":\"shell\",\"code\":\"echo $((7 * %zu))\"}",
	"{\"language\":\"shell\",\"code\":\"read n; echo $((7 * n))\",\"inputs\":[\"%zu\"]}",
	"{\"language\":\"python\",\"code\":\"import sys; print(7 * int(sys.argv[1]))\","
	"\"args\":[\"%zu\"]}",
	/* the same program each time, which is compiled once and kept */
	"{\"language\":\"c\",\"code\":\"#include <stdio.h>\\n#include <stdlib.h>\\n"
	"int main(int argc, char **argv) { return argc < 2 || "
	"printf(\\\"%%d\\\\n\\\", 7 * atoi(argv[1])) < 0; }\",\"args\":[\"%zu\"]}",
	/* not everybody has these two: ./parallel 500 8 */
	"{\"language\":\"go\",\"code\":\"package main\\nimport (\\\"fmt\\\"; \\\"os\\\"; "
	"\\\"strconv\\\")\\nfunc main() { n, _ := strconv.Atoi(os.Args[1]); "
	"fmt.Println(7 * n) }\",\"args\":[\"%zu\"]}",
	"{\"language\":\"rust\",\"code\":\"fn main() { let n: u64 = std::env::args().nth(1)"
	".unwrap().parse().unwrap(); println!(\\\"{}\\\", 7 * n); }\",\"args\":[\"%zu\"]}",
};
#define KINDS_MAX (sizeof(requests) / sizeof(requests[0]))
#define KINDS 6

static void show_progress(void *context, size_t index, const char *reply)
{
	size_t *done = context;

	(void)index, (void)reply;
	if (++*done % 100 == 0)
		printf("%zu done\n", *done);
}

static int is_right(size_t i, const char *reply)
{
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "\"output\":\"%zu\\n\"", 7 * i);
	if (strstr(reply, expected) && strstr(reply, "\"status\":\"success\""))
		return 1;
	fprintf(stderr, "parallel: %zu: %s\n", i, reply);
	return 0;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 500, done = 0, right = 0;
	size_t kinds = argc > 2 ? strtoul(argv[2], NULL, 10) : KINDS;
	char **texts = calloc(count, sizeof(*texts)), **replies = calloc(count, sizeof(*replies));
	struct nacre_engine *engine = NULL;
	struct nacre_err err = {0};

	if (kinds < 1 || kinds > KINDS_MAX)
		kinds = KINDS;
	for (size_t i = 0; texts && i < count; i++)
		if (asprintf(&texts[i], requests[i % kinds], i) < 0)
			return 1;
	if (!texts || !replies || nacre_engine_new(NULL, &engine, &err) < 0 ||
		nacre_engine_execute_parallel(engine, (const char *const *)texts, count,
			show_progress, &done, replies, &err) < 0)
		fprintf(stderr, "parallel: %s\n", err.message);
	for (size_t i = 0; texts && replies && i < count; i++) {
		right += replies[i] && is_right(i, replies[i]);
		nacre_free(replies[i]);
		free(texts[i]);
	}
	printf("%zu of %zu right\n", right, count);
	nacre_engine_free(engine);
	free(replies);
	free(texts);
	return right != count;
}
