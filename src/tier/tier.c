/* The tiers, and what this host offers for each. */
#include "tier/tier.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "kernel/program.h"
#include "tier/rows.h"

/* A module with one function, "run", that returns 42. */
static const unsigned char tiny_module[] = {0x00, 'a', 's', 'm', 1, 0, 0, 0, /* header */
	0x01, 5, 1, 0x60, 0, 1, 0x7f,					     /* type: () -> i32 */
	0x03, 2, 1, 0,							     /* one function */
	0x07, 7, 1, 3, 'r', 'u', 'n', 0, 0,				     /* exported as "run" */
	0x0a, 6, 1, 4, 0, 0x41, 42, 0x0b};				     /* i32.const 42 */

static const char tiny_program[] = "int main(void) { return 0; }\n";

static const char *const wasm2c_argv[] = {"wasm2c", "-", NULL};
static const char *const cc_argv[] = {"cc", "-S", "-x", "c", "-", "-o", "-", NULL};
static const char *const wasi_argv[] = {
	"clang", "--target=wasm32-wasi", "-x", "c", "-", "-o", "-", NULL};
static const char *const qemu_argv[] = {"qemu-system-x86_64", "-version", NULL};

void nc_tool_questions(struct nc_ask asks[static NC_TOOL_MAX])
{
	asks[NC_TOOL_WASM2C] = (struct nc_ask){
		.argv = wasm2c_argv, .input = tiny_module, .input_size = sizeof(tiny_module)};
	asks[NC_TOOL_WASI_CC] = (struct nc_ask){
		.argv = wasi_argv, .input = tiny_program, .input_size = sizeof(tiny_program) - 1};
	asks[NC_TOOL_QEMU] = (struct nc_ask){.argv = qemu_argv};
}

void nc_tier_say(
	struct nc_tier_report *out, enum nc_grade grade, const char *fix, const char *format, ...)
{
	va_list arguments;

	*out = (struct nc_tier_report){.grade = grade, .fix = fix};
	va_start(arguments, format);
	(void)vsnprintf(out->reason, sizeof(out->reason), format, arguments);
	va_end(arguments);
}

/*
 * A tier's demands on the host: what must be there at all, and what must be full for the tier to
 * be. The first property that fails names the reason and the remedy.
 */
struct demand {
	enum nc_property property;
	enum nc_grade least;
	enum nc_grade full;
};

static const struct demand process_demands[] = {
	{NC_STRENGTH_SYSCALLS, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_ACCESS, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_KILL, NC_GRADE_NONE, NC_GRADE_FULL},
	{NC_STRENGTH_MEMORY, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_PIDS, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_MAX},
};

static const struct demand container_demands[] = {
	{NC_STRENGTH_FILESYSTEM, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_PROCESSES, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_NETWORK, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_IPC, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_DISK, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_KILL, NC_GRADE_FULL, NC_GRADE_FULL},
	{NC_STRENGTH_SYSCALLS, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_IDENTITY, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_ACCESS, NC_GRADE_NONE, NC_GRADE_REDUCED},
	{NC_STRENGTH_MEMORY, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_CPU, NC_GRADE_NONE, NC_GRADE_FULL},
	{NC_STRENGTH_PIDS, NC_GRADE_REDUCED, NC_GRADE_FULL},
	{NC_STRENGTH_MAX},
};

static void judge_demands(const struct nc_strength *strength, const struct demand *demands,
	const char *made_of, struct nc_tier_report *out)
{
	nc_tier_say(out, NC_GRADE_FULL, NULL, "%s", made_of);
	for (; demands->property != NC_STRENGTH_MAX; demands++) {
		enum nc_grade grade = strength->property[demands->property].grade;
		enum nc_grade worst = grade < demands->least  ? NC_GRADE_NONE
				      : grade < demands->full ? NC_GRADE_REDUCED
							      : NC_GRADE_FULL;

		if (worst < out->grade)
			nc_tier_say(out, worst, strength->property[demands->property].fix,
				"%s is %s", nc_property_names[demands->property],
				nc_grade_names[grade]);
	}
}

static bool compiles(const struct nc_ask *wasm2c, uint64_t deadline_ns)
{
	/* printed instead of written to a file, the source still includes its own header */
	static const char own_header[] = "#include \"wasm.h\"";
	struct nc_ask compiler = {.argv = cc_argv};
	nc_buf_cleanup struct nc_buf source = NC_BUF(NC_PROBE_OUTPUT_MAX);
	const char *text = nc_buf_text(&wasm2c->output);
	const char *line = strstr(text, own_header);
	bool good;

	if (!line)
		return false;
	nc_buf_add(&source, text, (size_t)(line - text));
	nc_buf_adds(&source, line + strlen(own_header));
	compiler.input = source.data;
	compiler.input_size = source.size;
	nc_ask_start(&compiler);
	nc_ask_finish(&compiler, 1, deadline_ns);
	good = compiler.status == 0;
	nc_ask_done(&compiler);
	return good;
}

void nc_tier_judge_process(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	judge_demands(evidence->strength, process_demands, "Landlock, seccomp and limits", out);
}

void nc_tier_judge_container(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	judge_demands(evidence->strength, container_demands,
		"namespaces, cgroups and everything below", out);
}

void nc_tier_judge_wasm(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	const struct nc_tier_report *process = &evidence->reports[NC_TIER_PROCESS];
	const struct nc_ask *wasm2c = &evidence->tools[NC_TOOL_WASM2C];
	const struct nc_ask *wasi = &evidence->tools[NC_TOOL_WASI_CC];

	if (wasm2c->status == -ENOENT)
		nc_tier_say(out, NC_GRADE_NONE, "apt-get install wabt gcc libc6-dev", "no wasm2c");
	else if (!nc_ask_ok(wasm2c) || !compiles(wasm2c, evidence->deadline_ns))
		nc_tier_say(out, NC_GRADE_NONE, "apt-get install --reinstall wabt gcc libc6-dev",
			"wasm2c and cc do not build a module");
	else if (process->grade < NC_GRADE_FULL)
		nc_tier_say(out, process->grade, process->fix, "the process tier around it is %s",
			nc_grade_names[process->grade]);
	else
		nc_tier_say(out, NC_GRADE_FULL,
			wasi->status == 0 ? NULL : "apt-get install clang lld wasi-libc",
			"wasm2c and cc build a module%s",
			wasi->status == 0 ? ", clang builds C for WASI" : "");
}

void nc_tier_judge_docker(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	char found[192];

	if (nc_docker_ask(evidence->deadline_ns, found, sizeof(found)) < 0)
		nc_tier_say(
			out, NC_GRADE_NONE, "apt-get install docker.io, and start it", "%s", found);
	else
		nc_tier_say(out, NC_GRADE_FULL, NULL, "%s", found);
}

void nc_tier_judge_microvm(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	const struct nc_strength *strength = evidence->strength;

	if (!nc_ask_ok(&evidence->tools[NC_TOOL_QEMU]))
		nc_tier_say(out, NC_GRADE_NONE, "apt-get install qemu-system-x86", "no QEMU");
	else if (strength->property[NC_STRENGTH_HYPERVISOR].grade != NC_GRADE_FULL)
		nc_tier_say(out, NC_GRADE_NONE, strength->property[NC_STRENGTH_HYPERVISOR].fix,
			"QEMU can only emulate here, which is no boundary: %s",
			strength->property[NC_STRENGTH_HYPERVISOR].reason);
	else
		nc_tier_say(out, NC_GRADE_FULL, NULL, "QEMU on KVM");
}

void nc_tier_judge_remote(const struct nc_tier_evidence *evidence, struct nc_tier_report *out)
{
	(void)evidence;
	nc_tier_say(out, NC_GRADE_NONE, NULL, "no remote machine is configured");
}

/* Of this row: the number of its holder, or NC_TIER_HOLDERS_MAX if it has none. */
static unsigned int number_of(size_t row)
{
	unsigned int number = 1;

	if (!nc_tier_rows[row].holder)
		return NC_TIER_HOLDERS_MAX;
	if (nc_streq(nc_tier_rows[row].holder, NC_TIER_FIRST_HOLDER))
		return 0;
	for (size_t i = 0; i < row; i++) {
		const char *holder = nc_tier_rows[i].holder;

		if (holder && nc_streq(holder, nc_tier_rows[row].holder))
			return number_of(i);
		number += holder && !nc_streq(holder, NC_TIER_FIRST_HOLDER);
	}
	return number;
}

const char *nc_tier_holder(enum nc_tier tier)
{
	for (size_t i = 0; i < NC_TIER_MAX; i++)
		if (nc_tier_rows[i].tier == tier)
			return nc_tier_rows[i].holder;
	return NULL;
}

const char *nc_tier_program(unsigned int number)
{
	for (size_t i = 0; i < NC_TIER_MAX; i++)
		if (number_of(i) == number)
			return nc_tier_rows[i].holder;
	return NULL;
}

/* A row whose program is not installed is one that nothing can be run in. */
static void check_program(const char *program, struct nc_tier_report *out)
{
	char path[NC_PROGRAM_PATH_SIZE];

	if (nc_program_find(program, path, NULL) < 0)
		nc_tier_say(
			out, NC_GRADE_NONE, "install Nacre again", "%s is not installed", program);
}

void nc_tier_judge(const struct nc_strength *strength,
	const struct nc_ask tools[static NC_TOOL_MAX], uint64_t deadline_ns,
	struct nc_tier_report ret_reports[static NC_TIER_MAX])
{
	const struct nc_tier_evidence evidence = {.strength = strength,
		.tools = tools,
		.deadline_ns = deadline_ns,
		.reports = ret_reports};

	for (size_t i = 0; i < NC_TIER_MAX; i++) {
		const struct nc_tier_row *row = &nc_tier_rows[i];
		struct nc_tier_report *out = &ret_reports[row->tier];

		row->judge(&evidence, out);
		if (row->holder && !nc_streq(row->holder, NC_TIER_FIRST_HOLDER))
			check_program(row->holder, out);
		out->built = row->holder != NULL;
	}
}
