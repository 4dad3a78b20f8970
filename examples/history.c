/*
 * What was executed before: runs a program and finds it in the history.
 *
 *	cc history.c $(pkg-config --cflags --libs nacre) -o history && ./history
 */
#include <nacre/nacre.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct nacre_engine *engine = NULL;
	struct nacre_err err = {0};
	char *reply = NULL, *history = NULL;
	int r = nacre_engine_new(NULL, &engine, &err);

	if (r == 0)
		r = nacre_engine_execute_code(engine, "python", "print('remember')", &reply, &err);
	if (r == 0)
		r = nacre_engine_history(NULL, 1, &history, &err);
	if (r == 0 && (!strstr(history, "\"language\"") || !strstr(history, "python")))
		r = -1;
	if (r == 0)
		puts(history);
	else
		fprintf(stderr, "history: %s\n", err.message);
	nacre_free(reply);
	nacre_free(history);
	nacre_engine_free(engine);
	return r == 0 ? 0 : 1;
}
