/* nacre doctor: how strong the layers are on this very host, and how to get the rest. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "kernel/cgroup.h"
#include "kernel/privilege.h"
#include "kernel/strength.h"
#include "runtime/runtime.h"
#include "tier/tier.h"

/* A program that has not told its version by then counts as broken. */
#define ASK_TIMEOUT_NS (2 * NC_NS_PER_S)

static bool arg_json;
static bool arg_probes;

static const struct nc_option options[] = {
	{.name = "json", .help = "Print one JSON object (docs/doctor.md)", .flag = &arg_json},
	{.name = "probes", .help = "Show every single probe too", .flag = &arg_probes},
	{0},
};

/* Everything that the doctor found out. */
struct findings {
	struct utsname host;
	char user[64];
	uid_t uid;
	struct nc_cgroup_host cgroups;
	struct nc_probes probes;
	struct nc_strength strength;
	struct nc_tier_report tiers[NC_TIER_MAX];
	struct nc_runtime_report languages[NC_LANGUAGE_MAX];
	double elapsed_ms;
};

/* The questions that run while the kernel is probed: languages first, then tools. */
struct questions {
	struct nc_ask ask[NC_LANGUAGE_MAX + NC_TOOL_MAX];
};

static void questions_start(struct questions *questions)
{
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		questions->ask[i] = (struct nc_ask){.argv = nc_runtimes[i]->version_argv};
	nc_tool_questions(&questions->ask[NC_LANGUAGE_MAX]);
	for (size_t i = 0; i < NC_LANGUAGE_MAX + NC_TOOL_MAX; i++)
		/* Node answers for both of its languages at once */
		if (i != NC_TYPESCRIPT)
			nc_ask_start(&questions->ask[i]);
		else
			questions->ask[i].pidfd = questions->ask[i].output_fd = -EBADF;
}

static void questions_done(struct questions *questions)
{
	for (size_t i = 0; i < NC_LANGUAGE_MAX + NC_TOOL_MAX; i++)
		nc_ask_done(&questions->ask[i]);
}

static void judge_languages(const struct questions *questions, struct findings *findings)
{
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		size_t asked = i == NC_TYPESCRIPT ? NC_JAVASCRIPT : i;

		nc_runtime_judge(nc_runtimes[i], &questions->ask[asked], &findings->languages[i]);
	}
}

/* From the file alone: what asks the network for users cannot be linked statically. */
static void find_user(struct findings *findings)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user = file ? fgetpwent(file) : NULL;

	while (user && user->pw_uid != findings->uid)
		user = fgetpwent(file);
	(void)snprintf(findings->user, sizeof(findings->user), "%s", user ? user->pw_name : "?");
	if (file)
		(void)fclose(file);
}

static int examine(struct findings *findings, struct nacre_err *err)
{
	uint64_t started = nc_clock_ns(), deadline = started + ASK_TIMEOUT_NS;
	struct questions questions = {0};
	struct nacre_err refusal = {0};
	bool ranges = false;
	int r;

	findings->uid = geteuid();
	find_user(findings);
	if (uname(&findings->host) < 0)
		return nc_err_errno(err, -errno, "uname");
	r = nc_cgroup_find(&findings->cgroups);
	if (r < 0)
		return r == -ENOENT
			       ? nc_err_set(err, r,
					 "/proc is not mounted here, and nothing works without "
					 "it: mount -t proc proc /proc")
			       : nc_err_errno(err, r, "Look for control groups");
	questions_start(&questions);
	r = nc_probe_all(&findings->probes, err);
	nc_ask_finish(questions.ask, NC_LANGUAGE_MAX + NC_TOOL_MAX, deadline);
	if (r == 0) {
		r = nc_privilege_ranges(&ranges, &refusal);
		nc_strength_judge(&findings->probes, r == 0 && ranges, &findings->strength);
		if (r < 0)
			nc_strength_nothing(refusal.message,
				"run Nacre outside of it, or as another user", &findings->strength);
		r = 0;
		nc_tier_judge(&findings->strength, &questions.ask[NC_LANGUAGE_MAX], deadline,
			findings->tiers);
		judge_languages(&questions, findings);
	}
	questions_done(&questions);
	findings->elapsed_ms = (double)(nc_clock_ns() - started) / 1e6;
	return r;
}

static json_t *probes_json(const struct nc_probes *probes)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < NC_PROBE_MAX; i++) {
		const struct nc_probe *probe = &probes->probe[i];
		json_t *entry = json_pack("{s:s, s:b, s:i, s:s}", "name", nc_probe_names[i], "ok",
			probe->ok, "value", probe->value, "detail", probe->detail);

		(void)json_array_append_new(list, entry); /* a NULL entry shows in the size */
	}
	return list;
}

static json_t *strength_json(const struct nc_strength *strength)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < NC_STRENGTH_MAX; i++)
		(void)json_object_set_new(object, nc_property_names[i],
			json_pack("{s:s, s:s, s:s?}", "grade",
				nc_grade_names[strength->property[i].grade], "reason",
				strength->property[i].reason, "fix", strength->property[i].fix));
	return object;
}

static json_t *tiers_json(const struct nc_tier_report *tiers)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < NC_TIER_MAX; i++)
		(void)json_object_set_new(object, nc_tier_names[i],
			json_pack("{s:s, s:b, s:s, s:s?}", "grade", nc_grade_names[tiers[i].grade],
				"built", tiers[i].built, "reason", tiers[i].reason, "fix",
				tiers[i].fix));
	return object;
}

static json_t *languages_json(const struct nc_runtime_report *languages)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < NC_LANGUAGE_MAX; i++) {
		const struct nc_runtime_report *report = &languages[i];

		(void)json_object_set_new(object, nc_runtimes[i]->name,
			json_pack("{s:b, s:s?, s:s?, s:s?, s:s?}", "ok", report->ok, "version",
				report->version[0] ? report->version : NULL, "program",
				report->program[0] ? report->program : NULL, "reason",
				report->ok ? NULL : report->reason, "fix",
				report->ok ? NULL : nc_runtimes[i]->fix));
	}
	return object;
}

static json_t *findings_json(const struct findings *findings)
{
	json_t *probes = probes_json(&findings->probes);
	json_t *strength = strength_json(&findings->strength);
	json_t *tiers = tiers_json(findings->tiers);
	json_t *languages = languages_json(findings->languages);

	/* members that memory was too short for are missing; a doctor with gaps must not answer */
	if (json_array_size(probes) != NC_PROBE_MAX ||
		json_object_size(strength) != NC_STRENGTH_MAX ||
		json_object_size(tiers) != NC_TIER_MAX ||
		json_object_size(languages) != NC_LANGUAGE_MAX) {
		json_decref(probes);
		json_decref(strength);
		json_decref(tiers);
		json_decref(languages);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:i, s:s}, s:o, s:o, s:o, s:o, s:f}",
		"schema", "nacre.doctor/1", "version", NACRE_VERSION, "host", "kernel",
		findings->host.release, "machine", findings->host.machine, "user", findings->user,
		"uid", (int)findings->uid, "cgroup", nc_cgroup_version(&findings->cgroups),
		"strength", strength, "tiers", tiers, "languages", languages, "probes", probes,
		"elapsed_ms", findings->elapsed_ms);
}

/* A grade in the colour of a traffic light, padded to the column's width. */
static void print_grade(bool color, enum nc_grade grade)
{
	static const char *const codes[NC_GRADE_MAX] = {"\033[31m", "\033[33m", "\033[32m"};

	printf("%s%-8s%s", color ? codes[grade] : "", nc_grade_names[grade],
		color ? "\033[0m" : "");
}

static void print_fix(const char *fix)
{
	if (fix)
		printf("  %-12s %-8s to fix: %s\n", "", "", fix);
}

static void print_findings(const struct findings *findings, bool color)
{
	printf("Nacre %s on Linux %s (%s), as %s, cgroup %s\n", NACRE_VERSION,
		findings->host.release, findings->host.machine, findings->user,
		nc_cgroup_version(&findings->cgroups));
	printf("\nStrength: what a box on this host can be held by\n");
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++) {
		printf("  %-12s ", nc_property_names[i]);
		print_grade(color, findings->strength.property[i].grade);
		printf(" %s\n", findings->strength.property[i].reason);
		print_fix(findings->strength.property[i].fix);
	}
	printf("\nTiers: what the host can give; this version has those marked *\n");
	for (size_t i = 0; i < NC_TIER_MAX; i++) {
		printf("%c %-12s ", findings->tiers[i].built ? '*' : ' ', nc_tier_names[i]);
		print_grade(color, findings->tiers[i].grade);
		printf(" %s\n", findings->tiers[i].reason);
		print_fix(findings->tiers[i].fix);
	}
	printf("\nLanguages\n");
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		const struct nc_runtime_report *report = &findings->languages[i];

		printf("  %-12s %-8s %s\n", nc_runtimes[i]->name,
			report->ok ? report->version : "none",
			report->ok ? report->program : report->reason);
		print_fix(report->ok ? NULL : nc_runtimes[i]->fix);
	}
}

static void print_probes(const struct nc_probes *probes)
{
	printf("\nProbes\n");
	for (size_t i = 0; i < NC_PROBE_MAX; i++)
		printf("  %-16s %-4s %s\n", nc_probe_names[i], probes->probe[i].ok ? "yes" : "no",
			probes->probe[i].detail);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	struct findings findings = {0};
	int r = examine(&findings, err);

	(void)n_words;
	(void)words;
	if (r == 0 && arg_json) {
		r = nc_json_print(stdout, findings_json(&findings), true);
		if (r < 0)
			nc_err_errno(err, r, "Write the answer");
	} else if (r == 0) {
		print_findings(&findings, cli->color);
		if (arg_probes)
			print_probes(&findings.probes);
	}
	nc_cgroup_done(&findings.cgroups);
	return r;
}

const struct nc_verb nc_verb_doctor = {
	.name = "doctor",
	.summary = "Say how strong the layers are on this host",
	.arguments = "",
	.details =
		"Tries out what this kernel lets this user do, and prints how strongly a box can\n"
		"be held here, which tiers and languages there are, and how to get the rest.",
	.example = "nacre doctor --json",
	.options = options,
	.run = run,
};
