/*
 * What a program would do, before it runs.
 *
 *	cc check.c $(pkg-config --cflags --libs nacre) -o check && ./check
 */
#include <nacre/nacre.h>
#include <stdio.h>

static const char *const names[] = {"low", "medium", "high", "critical"};

static int show(struct nacre_engine *engine, const char *language, const char *code,
	enum nacre_risk *ret_risk, struct nacre_err *err)
{
	char *imports = NULL;
	int r = nacre_policy_risk(engine, language, code, ret_risk, err);

	if (r == 0)
		r = nacre_policy_check_imports(engine, language, code, &imports, err);
	if (r == 0)
		printf("%s: risk %s, imports %s\n", language, names[*ret_risk], imports);
	nacre_free(imports);
	return r;
}

int main(void)
{
	static const char harmless[] = "import math\nprint(math.pi)\n";
	static const char harmful[] = "rm -rf / --no-preserve-root\n";
	enum nacre_risk first = NACRE_RISK_CRITICAL, second = NACRE_RISK_LOW;
	struct nacre_engine *engine = NULL;
	struct nacre_err err = {0};
	char *report = NULL;
	int r = nacre_engine_new(NULL, &engine, &err);

	if (r == 0)
		r = show(engine, "python", harmless, &first, &err);
	if (r == 0)
		r = show(engine, "shell", harmful, &second, &err);
	if (r == 0)
		r = nacre_policy_check(engine, "shell", harmful, "strict", &report, &err);
	if (r < 0)
		fprintf(stderr, "check: %s\n", err.message);
	else
		puts(report);
	nacre_free(report);
	nacre_engine_free(engine);
	return r < 0 || first != NACRE_RISK_LOW || second != NACRE_RISK_CRITICAL;
}
