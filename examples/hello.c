/*
 * A program in a box, and its reply.
 *
 *	cc hello.c $(pkg-config --cflags --libs nacre) -o hello && ./hello
 */
#include <nacre/nacre.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct nacre_engine *engine = NULL;
	struct nacre_err err = {0};
	char *reply = NULL;
	int failed = 1;

	if (nacre_engine_new(NULL, &engine, &err) < 0 ||
		nacre_engine_execute_code(engine, "python", "print(6 * 7)", &reply, &err) < 0)
		fprintf(stderr, "hello: %s\n", err.message);
	else
		failed = strstr(reply, "\"output\":\"42\\n\"") == NULL;
	if (reply)
		puts(reply);
	nacre_free(reply);
	nacre_engine_free(engine);
	return failed;
}
