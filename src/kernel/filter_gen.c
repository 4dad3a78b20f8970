/*
 * Compiles filter_table.h to BPF and prints it as C. Runs at build time, links libseccomp, and is
 * not installed. Usage: filter_gen ARCHITECTURE OUTPUT
 *
 * A program is three parts in a row:
 *
 *	1. the architecture, x32, and the numbers that are answered with ENOSYS: written here, since
 *	   libseccomp has no ranges of numbers
 *	2. the rules of refusal: libseccomp, default "allow"; but "allow" jumps to the third part
 *	3. the allowances: libseccomp, default "refuse"
 *
 * 2 and 3 are apart because one filter of libseccomp cannot say "all values of an argument but
 * these". Where everything is allowed by default (the spawner's profile), only the few calls that
 * are judged by their arguments come to the third part. What comes out is run in an interpreter
 *against the tables before it is printed: a wrong program, by our fault or libseccomp's, fails the
 *build.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/filter_table.h"

/* Above every number of x86_64 and aarch64, for years to come. */
#define NUMBERS 1024
#define NAME_MAX_SIZE 64
#define X32_BIT 0x40000000U
#define ARGUMENTS 6

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define RET_REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define RET_ABSENT (SECCOMP_RET_ERRNO | ENOSYS)
#define RET_UNSUPPORTED (SECCOMP_RET_ERRNO | EOPNOTSUPP)

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t length;
};

/* A rule whose call this architecture has, and its number. */
struct rule {
	const struct nc_filter_rule *what;
	int number;
};

/* The tables, by number, for one architecture. */
struct policy {
	uint32_t arch; /* SCMP_ARCH_*, which is AUDIT_ARCH_* */
	bool has_x32;
	const struct nc_filter_group *groups[NUMBERS]; /* NULL: in no group */
	unsigned int granted_in[NUMBERS];	       /* beside what the group allows */
	unsigned int unsupported_in[NUMBERS];
	struct rule rules[COUNT(nc_filter_rules)];
	size_t n_rules;
};

static int complain(const char *what, const char *name)
{
	(void)fprintf(stderr, "filter_gen: %s: %s\n", what, name);
	return -EINVAL;
}

/* ---- reading the tables ---- */

/* The number of a call; NUMBERS if there is none here and that is no error. */
static int resolve(const struct policy *policy, const char *name)
{
	bool optional = name[0] == '?';
	int number = seccomp_syscall_resolve_name_arch(policy->arch, name + optional);

	if (number == __NR_SCMP_ERROR)
		return optional ? NUMBERS : complain("libseccomp does not know", name);
	if (number < 0)
		return NUMBERS; /* a call of other architectures */
	return number < NUMBERS ? number : complain("number too high", name);
}

static int set_group(
	struct policy *policy, int number, const char *name, const struct nc_filter_group *group)
{
	if (policy->groups[number])
		return complain("in two groups", name);
	/* boxes have the spawner's filter too: what it takes away is not theirs to allow */
	if (group->allowed_in && (group->absent_in & NC_IN_SPAWNER))
		return complain("allowed, and taken away by the spawner's filter", name);
	policy->groups[number] = group;
	return 0;
}

static int set_grant(
	struct policy *policy, int number, const char *name, const struct nc_filter_group *grant)
{
	const struct nc_filter_group *group = policy->groups[number];

	if (!group || group->absent_in & (grant->allowed_in | NC_IN_SPAWNER))
		return complain("a grant of a call in no group, or one that is absent", name);
	if ((group->allowed_in | policy->granted_in[number]) & grant->allowed_in)
		return complain("granted twice", name);
	policy->granted_in[number] |= grant->allowed_in;
	return 0;
}

static int set_unsupported(
	struct policy *policy, int number, const char *name, const struct nc_filter_group *what)
{
	const struct nc_filter_group *group = policy->groups[number];

	if (!group || ((group->allowed_in | group->absent_in | policy->granted_in[number] |
			       NC_IN_SPAWNER) &
			      what->allowed_in))
		return complain("unsupported, and something else as well", name);
	policy->unsupported_in[number] |= what->allowed_in;
	return 0;
}

/* Calls set for each name of the list. */
static int read_group(struct policy *policy, const struct nc_filter_group *group,
	int (*set)(struct policy *, int, const char *, const struct nc_filter_group *))
{
	const char *at = group->calls;
	char name[NAME_MAX_SIZE];

	while (*at) {
		size_t length = strcspn(at, " ");
		int number;

		if (length == 0 || length >= sizeof(name))
			return complain("bad list of calls", at);
		memcpy(name, at, length);
		name[length] = '\0';
		number = resolve(policy, name);
		if (number < 0 || (number < NUMBERS && set(policy, number, name, group) < 0))
			return -EINVAL;
		at += length;
		at += *at == ' ';
	}
	return 0;
}

static int read_rule(struct policy *policy, const struct nc_filter_rule *rule)
{
	int number = resolve(policy, rule->call);
	const struct nc_filter_group *group;

	if (number < 0)
		return number;
	if (number == NUMBERS)
		return 0;
	group = policy->groups[number];
	if (!group)
		return complain("a rule for a call in no group", rule->call);
	if (!rule->when[0].mask)
		return complain("a rule that looks at nothing", rule->call);
	/* what is allowed anyway, or not there at all, was meant to be something else */
	if (rule->verdict == NC_FILTER_ALLOW &&
		(rule->profiles &
			(group->allowed_in | policy->granted_in[number] | group->absent_in)))
		return complain("a rule without effect", rule->call);
	if (rule->profiles & policy->unsupported_in[number] ||
		(rule->verdict == NC_FILTER_REFUSE && (rule->profiles & group->absent_in)))
		return complain("a rule without effect", rule->call);
	policy->rules[policy->n_rules++] = (struct rule){.what = rule, .number = number};
	return 0;
}

static int read_tables(struct policy *policy, const char *architecture)
{
	int r = 0;

	policy->arch = seccomp_arch_resolve_name(architecture);
	if (policy->arch != SCMP_ARCH_X86_64 && policy->arch != SCMP_ARCH_AARCH64)
		return complain("no such architecture", architecture);
	policy->has_x32 = policy->arch == SCMP_ARCH_X86_64;
	for (size_t i = 0; i < COUNT(nc_filter_groups) && r == 0; i++)
		r = read_group(policy, &nc_filter_groups[i], set_group);
	for (size_t i = 0; i < COUNT(nc_filter_grants) && r == 0; i++)
		r = read_group(policy, &nc_filter_grants[i], set_grant);
	for (size_t i = 0; i < COUNT(nc_filter_unsupported) && r == 0; i++)
		r = read_group(policy, &nc_filter_unsupported[i], set_unsupported);
	for (size_t i = 0; i < COUNT(nc_filter_rules) && r == 0; i++)
		r = read_rule(policy, &nc_filter_rules[i]);
	return r;
}

/* Whether a profile allows what the tables do not mention. */
static bool is_open(enum nc_filter which)
{
	return which == NC_FILTER_SPAWNER;
}

static bool is_absent(const struct policy *policy, enum nc_filter which, unsigned int number)
{
	if (number >= NUMBERS || !policy->groups[number])
		return !is_open(which);
	return policy->groups[number]->absent_in & (1U << which);
}

static bool is_unsupported(const struct policy *policy, enum nc_filter which, unsigned int number)
{
	return number < NUMBERS && (policy->unsupported_in[number] & (1U << which));
}

/* Whether a rule of allowance decides on the call. */
static bool is_judged(const struct policy *policy, enum nc_filter which, unsigned int number)
{
	for (size_t i = 0; i < policy->n_rules; i++)
		if (policy->rules[i].number == (int)number &&
			policy->rules[i].what->verdict == NC_FILTER_ALLOW &&
			(policy->rules[i].what->profiles & (1U << which)))
			return true;
	return false;
}

/* Whether it is allowed whatever its arguments; but rules of refusal come first. */
static bool is_allowed(const struct policy *policy, enum nc_filter which, unsigned int number)
{
	if (is_absent(policy, which, number))
		return false;
	if (is_open(which))
		return !is_judged(policy, which, number);
	return (policy->groups[number]->allowed_in | policy->granted_in[number]) & (1U << which);
}

/* What the profile answers to a call that is absent, and to one that is refused. */
static uint32_t answer_absent(enum nc_filter which)
{
	return is_open(which) ? SECCOMP_RET_TRACE : RET_ABSENT;
}

static uint32_t answer_refused(enum nc_filter which)
{
	return is_open(which) ? SECCOMP_RET_TRACE : RET_REFUSE;
}

/* ---- part 1: architecture and numbers ---- */

static void emit(struct program *program, struct sock_filter instruction)
{
	if (program->length < BPF_MAXINSNS)
		program->code[program->length] = instruction;
	program->length++; /* beyond the maximum: noticed at the end */
}

static void emit_return(struct program *program, uint32_t answer)
{
	emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

/* Where the first part's jumps lead. */
struct targets {
	size_t absent, killed, behind;
};

/* A jump to one of two places at or behind the next instruction. */
static int emit_jump(
	struct program *program, unsigned int test, uint32_t with, size_t if_true, size_t if_false)
{
	size_t next = program->length + 1;

	if (if_true - next > UINT8_MAX || if_false - next > UINT8_MAX)
		return complain("too far a jump", "first part");
	emit(program, (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | test | BPF_K), with,
			      (uint8_t)(if_true - next), (uint8_t)(if_false - next)));
	return 0;
}

static int emit_gaps(struct program *program, const struct policy *policy, enum nc_filter which,
	const struct targets *targets)
{
	int r = 0;

	for (unsigned int first = 0; first <= NUMBERS && r == 0;) {
		unsigned int end = first;
		size_t next = program->length + 1;

		while (end < NUMBERS && is_absent(policy, which, end))
			end++;
		if (end == NUMBERS) /* from here on there is nothing, or all */
			return emit_jump(program, BPF_JGE, first,
				is_open(which) ? targets->behind : targets->absent,
				targets->behind);
		if (end > first) {
			r = emit_jump(program, BPF_JGE, first, next, targets->behind);
			if (r == 0)
				r = emit_jump(program, BPF_JGE, end, next + 1, targets->absent);
		}
		first = end + 1;
	}
	return r;
}

static int emit_head(struct program *program, const struct policy *policy, enum nc_filter which,
	const struct targets *targets)
{
	size_t next;
	int r;

	program->length = 0;
	emit(program, (struct sock_filter)BPF_STMT(
			      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	next = program->length + 1;
	r = emit_jump(program, BPF_JEQ, policy->arch, next, targets->killed);
	emit(program, (struct sock_filter)BPF_STMT(
			      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	if (r == 0 && policy->has_x32) {
		next = program->length + 1;
		r = emit_jump(program, BPF_JSET, X32_BIT, next, next + 1);
		/* -1 is what programs call to see ENOSYS, and no x32 call */
		if (r == 0)
			r = emit_jump(
				program, BPF_JEQ, UINT32_MAX, targets->absent, targets->killed);
	}
	if (r == 0)
		r = emit_gaps(program, policy, which, targets);
	emit_return(program, answer_absent(which));
	emit_return(program, SECCOMP_RET_KILL_PROCESS);
	return r;
}

/* Twice: the first time for its length alone. */
static int compile_numbers(
	struct program *program, const struct policy *policy, enum nc_filter which)
{
	struct targets targets = {UINT8_MAX / 2, UINT8_MAX / 2, UINT8_MAX / 2};
	int r = emit_head(program, policy, which, &targets);

	targets = (struct targets){program->length - 2, program->length - 1, program->length};
	return r < 0 ? r : emit_head(program, policy, which, &targets);
}

/* ---- parts 2 and 3: libseccomp ---- */

static void releasep(scmp_filter_ctx *place)
{
	if (*place)
		seccomp_release(*place);
}

/* An empty filter for the policy's architecture. */
static int open_filter(const struct policy *policy, uint32_t default_action, scmp_filter_ctx *ret)
{
	nc_cleanup(releasep) scmp_filter_ctx filter = seccomp_init(default_action);
	int r;

	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
	if (r == 0 && policy->arch != seccomp_arch_native()) {
		r = seccomp_arch_add(filter, policy->arch);
		if (r == 0)
			r = seccomp_arch_remove(filter, SCMP_ARCH_NATIVE);
	}
	if (r == 0)
		*ret = take_ptr(filter);
	return r;
}

/* libseccomp takes native numbers, also for filters of another architecture. */
static int native_number(const struct policy *policy, int number)
{
	cleanup_free char *name = seccomp_syscall_resolve_num_arch(policy->arch, number);

	return name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
}

static int add_rule(scmp_filter_ctx filter, const struct policy *policy, uint32_t action,
	const struct rule *rule)
{
	struct scmp_arg_cmp looks[NC_FILTER_WHENS];
	unsigned int n = 0;

	for (size_t i = 0; i < NC_FILTER_WHENS; i++) {
		const struct nc_filter_when *when = &rule->what->when[i];

		if (when->mask)
			looks[n++] = (struct scmp_arg_cmp){
				.arg = when->argument,
				.op = SCMP_CMP_MASKED_EQ,
				.datum_a = when->mask,
				.datum_b = when->value,
			};
	}
	return seccomp_rule_add_exact_array(
		filter, action, native_number(policy, rule->number), n, looks);
}

/* Adds the rules of one verdict, and returns how many there are. */
static int add_rules(scmp_filter_ctx filter, const struct policy *policy, enum nc_filter which,
	enum nc_filter_verdict verdict, uint32_t action)
{
	int n = 0;

	for (size_t i = 0; i < policy->n_rules; i++) {
		const struct rule *rule = &policy->rules[i];
		int r;

		if (rule->what->verdict != verdict || !(rule->what->profiles & (1U << which)))
			continue;
		r = add_rule(filter, policy, action, rule);
		if (r < 0) {
			(void)complain("libseccomp takes no rule for", rule->what->call);
			return r;
		}
		n++;
	}
	return n;
}

/* Appends what libseccomp makes of the filter. */
static int append(struct program *program, scmp_filter_ctx filter)
{
	cleanup_fclose FILE *file = tmpfile();
	struct sock_filter instruction;
	int r;

	if (!file)
		return -errno;
	r = seccomp_export_bpf(filter, fileno(file));
	if (r < 0)
		return r;
	rewind(file);
	while (fread(&instruction, sizeof(instruction), 1, file) == 1)
		emit(program, instruction);
	if (ferror(file))
		return -EIO;
	return program->length <= BPF_MAXINSNS ? 0 : -E2BIG;
}

static int compile_refusals(
	struct program *program, const struct policy *policy, enum nc_filter which)
{
	nc_cleanup(releasep) scmp_filter_ctx filter = NULL;
	size_t start = program->length;
	int n, r;

	r = open_filter(policy, SCMP_ACT_ALLOW, &filter);
	if (r < 0)
		return r;
	n = add_rules(filter, policy, which, NC_FILTER_REFUSE, SCMP_ACT_ERRNO(EPERM));
	if (n <= 0)
		return n;
	r = append(program, filter);
	if (r < 0)
		return r;
	for (size_t i = start; i < program->length; i++) {
		struct sock_filter *at = &program->code[i];

		if (at->code == (BPF_RET | BPF_K) && at->k == SECCOMP_RET_ALLOW)
			*at = (struct sock_filter)BPF_STMT(
				BPF_JMP | BPF_JA, (uint32_t)(program->length - i - 1));
	}
	return 0;
}

/* Adds the calls that are allowed, or unsupported, whatever their arguments. */
static int add_allowed(scmp_filter_ctx filter, const struct policy *policy, enum nc_filter which)
{
	size_t n = 0;

	for (unsigned int number = 0; number < NUMBERS; number++) {
		bool allowed = is_allowed(policy, which, number);
		int r;

		if (!allowed && !is_unsupported(policy, which, number))
			continue;
		r = seccomp_rule_add_exact_array(filter,
			allowed ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EOPNOTSUPP),
			native_number(policy, (int)number), 0, NULL);
		if (r < 0)
			return r;
		n += allowed;
	}
	/* such a filter holds any attack, and any program */
	return n > 0 ? 0 : complain("an empty profile", "refused");
}

/* Where all is allowed that comes here, but for the calls that are judged. The number is loaded. */
static int emit_allowed(struct program *program, const struct policy *policy, enum nc_filter which)
{
	size_t behind = program->length + 1;
	int r = 0;

	for (unsigned int number = 0; number < NUMBERS; number++)
		behind += is_judged(policy, which, number);
	for (unsigned int number = 0; number < NUMBERS && r == 0; number++)
		if (is_judged(policy, which, number))
			r = emit_jump(program, BPF_JEQ, number, behind, program->length + 1);
	emit_return(program, SECCOMP_RET_ALLOW);
	return r;
}

static int compile_allowances(
	struct program *program, const struct policy *policy, enum nc_filter which)
{
	nc_cleanup(releasep) scmp_filter_ctx filter = NULL;
	int r;

	r = open_filter(
		policy, is_open(which) ? SCMP_ACT_TRACE(0) : SCMP_ACT_ERRNO(EPERM), &filter);
	if (r == 0)
		r = is_open(which) ? emit_allowed(program, policy, which)
				   : add_allowed(filter, policy, which);
	if (r < 0)
		return r;
	r = add_rules(filter, policy, which, NC_FILTER_ALLOW, SCMP_ACT_ALLOW);
	return r < 0 ? r : append(program, filter);
}

static int compile(struct program *program, const struct policy *policy, enum nc_filter which)
{
	int r = compile_numbers(program, policy, which);

	if (r == 0)
		r = compile_refusals(program, policy, which);
	if (r == 0)
		r = compile_allowances(program, policy, which);
	return r;
}

/* The same program with notifications for refusals. */
static void make_reporting(struct program *program)
{
	for (size_t i = 0; i < program->length; i++)
		if (program->code[i].code == (BPF_RET | BPF_K) && program->code[i].k == RET_REFUSE)
			program->code[i].k = SECCOMP_RET_USER_NOTIF;
}

/* ---- the proof: program against tables ---- */

static bool matches(const struct nc_filter_rule *rule, const struct seccomp_data *data)
{
	for (size_t i = 0; i < NC_FILTER_WHENS; i++)
		if ((data->args[rule->when[i].argument] & rule->when[i].mask) !=
			rule->when[i].value)
			return false;
	return true;
}

/* What the tables say. */
static uint32_t judge(const struct policy *policy, enum nc_filter which, uint32_t refusal,
	const struct seccomp_data *data)
{
	unsigned int number = (unsigned int)data->nr;
	bool allowed = is_allowed(policy, which, number);

	if (data->arch != policy->arch)
		return SECCOMP_RET_KILL_PROCESS;
	if (policy->has_x32 && (number & X32_BIT) && number != UINT32_MAX)
		return SECCOMP_RET_KILL_PROCESS;
	if (is_absent(policy, which, number) || (policy->has_x32 && number == UINT32_MAX))
		return answer_absent(which);
	if (is_unsupported(policy, which, number))
		return RET_UNSUPPORTED;
	for (size_t i = 0; i < policy->n_rules; i++) {
		const struct nc_filter_rule *rule = policy->rules[i].what;

		if (policy->rules[i].number != data->nr || !(rule->profiles & (1U << which)) ||
			!matches(rule, data))
			continue;
		if (rule->verdict == NC_FILTER_REFUSE)
			return refusal;
		allowed = true;
	}
	return allowed ? SECCOMP_RET_ALLOW : refusal;
}

/* Whether the instruction's test is true of a. */
static bool test(const struct sock_filter *at, uint32_t a)
{
	switch (BPF_OP(at->code)) {
	case BPF_JEQ:
		return a == at->k;
	case BPF_JGT:
		return a > at->k;
	case BPF_JGE:
		return a >= at->k;
	default: /* BPF_JSET; interpret() lets no others through */
		return a & at->k;
	}
}

/* What the program says. Anything but the few instructions that we know is a fault: 0, "kill". */
static uint32_t interpret(const struct program *program, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < program->length; pc++) {
		const struct sock_filter *at = &program->code[pc];

		switch (at->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (at->k > sizeof(*data) - sizeof(a) || at->k % sizeof(a))
				return 0;
			memcpy(&a, (const char *)data + at->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= at->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += at->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += test(at, a) ? at->jt : at->jf;
			break;
		case BPF_RET | BPF_K:
			return at->k;
		default:
			return 0;
		}
	}
	return 0;
}

/* What is needed to try one program. */
struct trial {
	const struct policy *policy;
	const struct program *program;
	enum nc_filter which;
	uint32_t refusal;
};

static int try_one(const struct trial *trial, const struct seccomp_data *data)
{
	uint32_t expected = judge(trial->policy, trial->which, trial->refusal, data);
	uint32_t found = interpret(trial->program, data);

	if (expected == found)
		return 0;
	(void)fprintf(stderr,
		"filter_gen: profile %d, arch %#x, call %d (%#llx, %#llx, %#llx, %#llx): %#x "
		"expected, %#x found\n",
		trial->which, data->arch, data->nr, data->args[0], data->args[1], data->args[2],
		data->args[3], expected, found);
	return -EBADMSG;
}

/* Values of an argument that a rule may take for each other. */
#define VARIANTS 5
static uint64_t variant(const struct nc_filter_when *when, unsigned int which)
{
	switch (which) {
	case 0:
		return when->value;
	case 1:
		return when->value | (1ULL << 32);
	case 2:
		return when->value ^ (when->mask & -when->mask);
	case 3:
		return when->value | ~when->mask;
	default:
		return when->value + 1;
	}
}

/* The n-th look at this argument of this call, among all rules; repetitions are left out. */
static const struct nc_filter_when *find_look(
	const struct policy *policy, int number, unsigned int argument, size_t n)
{
	const struct nc_filter_when *looks[COUNT(nc_filter_rules) * NC_FILTER_WHENS];
	size_t found = 0;

	for (size_t i = 0; i < policy->n_rules * NC_FILTER_WHENS; i++) {
		const struct rule *rule = &policy->rules[i / NC_FILTER_WHENS];
		const struct nc_filter_when *when = &rule->what->when[i % NC_FILTER_WHENS];
		size_t same = 0;

		if (rule->number != number || !when->mask || when->argument != argument)
			continue;
		while (same < found &&
			(looks[same]->mask != when->mask || looks[same]->value != when->value))
			same++;
		if (same < found)
			continue;
		if (found == n)
			return when;
		looks[found++] = when;
	}
	return NULL;
}

/* Every value that the rules on this call look for, in this argument and all behind it. */
static int try_arguments(const struct trial *trial, struct seccomp_data *data, unsigned int n)
{
	const struct nc_filter_when *when;
	int r;

	if (n == ARGUMENTS)
		return try_one(trial, data);
	data->args[n] = 0;
	r = try_arguments(trial, data, n + 1);
	for (size_t i = 0; r == 0 && (when = find_look(trial->policy, data->nr, n, i)); i++)
		for (unsigned int k = 0; k < VARIANTS && r == 0; k++) {
			data->args[n] = variant(when, k);
			r = try_arguments(trial, data, n + 1);
		}
	data->args[n] = UINT64_MAX;
	return r < 0 ? r : try_arguments(trial, data, n + 1);
}

static int try_program(const struct trial *trial)
{
	static const uint32_t far[] = {NUMBERS, 4095, X32_BIT, X32_BIT | 1, X32_BIT | 520,
		0x7fffffff, 0x80000000, 0x80000001, UINT32_MAX - 1, UINT32_MAX};
	static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64,
		AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0};
	struct seccomp_data data = {.arch = trial->policy->arch};
	int r = 0;

	for (data.nr = 0; data.nr < NUMBERS && r == 0; data.nr++)
		r = try_arguments(trial, &data, 0);
	for (size_t i = 0; i < COUNT(far) && r == 0; i++) {
		data.nr = (int)far[i];
		r = try_one(trial, &data);
	}
	memset(data.args, 0, sizeof(data.args));
	for (size_t i = 0; i < COUNT(foreign) && r == 0; i++) {
		data.arch = foreign[i];
		for (data.nr = 0; data.nr < NUMBERS && r == 0; data.nr++)
			r = try_one(trial, &data);
	}
	return r;
}

/* ---- printing ---- */

static const char *const profile_names[] = {
	[NC_FILTER_CONTAINER] = "container",
	[NC_FILTER_SHARED] = "shared",
	[NC_FILTER_PROCESS] = "process",
	[NC_FILTER_ALONE] = "alone",
	[NC_FILTER_INIT] = "init",
	[NC_FILTER_WORKER] = "worker",
	[NC_FILTER_RECORDER] = "recorder",
	[NC_FILTER_SERVER] = "server",
	[NC_FILTER_COURIER] = "courier",
	[NC_FILTER_SPAWNER] = "spawner",
	[NC_FILTER_EGRESS] = "egress",
};
_Static_assert(COUNT(profile_names) == NC_FILTER_MAX, "a name for each profile");

static const char *const variant_names[] = {
	[NC_FILTER_PLAIN] = "plain",
	[NC_FILTER_REPORTING] = "reporting",
};
_Static_assert(COUNT(variant_names) == NC_FILTER_VARIANT_MAX, "a name for each variant");

/* Nobody listens to our own programs: what they should not do is a fault of ours. */
static bool has_variant(enum nc_filter which, enum nc_filter_variant variant)
{
	return variant == NC_FILTER_PLAIN ||
	       (which != NC_FILTER_WORKER && which != NC_FILTER_SPAWNER &&
		       which != NC_FILTER_RECORDER && which != NC_FILTER_SERVER &&
		       which != NC_FILTER_EGRESS && which != NC_FILTER_COURIER);
}

static void print_program(FILE *out, const struct program *program, enum nc_filter which,
	enum nc_filter_variant variant)
{
	(void)fprintf(out, "\n/* %zu instructions */\n", program->length);
	(void)fprintf(out, "static const struct sock_filter %s_%s[] = {\n", profile_names[which],
		variant_names[variant]);
	for (size_t i = 0; i < program->length; i++)
		(void)fprintf(out, "\t{0x%02x, %u, %u, 0x%08x},\n", program->code[i].code,
			program->code[i].jt, program->code[i].jf, program->code[i].k);
	(void)fprintf(out, "};\n");
}

static int print_profile(FILE *out, const struct policy *policy, enum nc_filter which)
{
	static struct program program; /* 32 KiB */
	struct trial trial = {policy, &program, which, answer_refused(which)};
	int r = compile(&program, policy, which);

	if (r == 0)
		r = try_program(&trial);
	if (r < 0)
		return r;
	print_program(out, &program, which, NC_FILTER_PLAIN);
	if (!has_variant(which, NC_FILTER_REPORTING))
		return 0;
	make_reporting(&program);
	trial.refusal = SECCOMP_RET_USER_NOTIF;
	r = try_program(&trial);
	if (r == 0)
		print_program(out, &program, which, NC_FILTER_REPORTING);
	return r;
}

static void print_index(FILE *out)
{
	(void)fprintf(out, "\n#define BYTES(array) {array, sizeof(array) / sizeof((array)[0])}\n"
			   "\nconst struct nc_filter_bytes "
			   "nc_filter_bytes[NC_FILTER_MAX][NC_FILTER_VARIANT_MAX] = {\n");
	for (int i = 0; i < NC_FILTER_MAX; i++) {
		(void)fprintf(out, "\t{");
		for (int j = 0; j < NC_FILTER_VARIANT_MAX; j++)
			if (has_variant((enum nc_filter)i, (enum nc_filter_variant)j))
				(void)fprintf(
					out, "BYTES(%s_%s), ", profile_names[i], variant_names[j]);
			else
				(void)fprintf(out, "{0}, ");
		(void)fprintf(out, "},\n");
	}
	(void)fprintf(out, "};\n");
}

/* All that libseccomp knows, in the tables or not. */
static void print_names(FILE *out, const struct policy *policy)
{
	(void)fprintf(out, "\nconst char *const nc_filter_names[] = {\n");
	for (int number = 0; number < NUMBERS; number++) {
		cleanup_free char *name = seccomp_syscall_resolve_num_arch(policy->arch, number);

		if (name)
			(void)fprintf(out, "\t[%d] = \"%s\",\n", number, name);
	}
	(void)fprintf(out, "};\n\nconst size_t nc_filter_n_names =\n"
			   "\tsizeof(nc_filter_names) / sizeof(nc_filter_names[0]);\n");
}

static int print_all(FILE *out, const struct policy *policy, const char *architecture)
{
	int r;

	(void)fprintf(out, "/* Made by filter_gen from filter_table.h for %s. */\n", architecture);
	(void)fprintf(out, "#include \"kernel/filter_bytes.h\"\n");
	for (int i = 0; i < NC_FILTER_MAX; i++) {
		r = print_profile(out, policy, (enum nc_filter)i);
		if (r < 0)
			return complain("no filter made for the profile", profile_names[i]);
	}
	print_index(out);
	print_names(out, policy);
	return ferror(out) ? -EIO : 0;
}

int main(int argc, char **argv)
{
	static struct policy policy;
	FILE *out;
	int r;

	if (argc != 3)
		return 2;
	/* kill-process and the like, whatever the kernel of the build machine has */
	if (seccomp_api_set(3) < 0)
		return 1;
	if (read_tables(&policy, argv[1]) < 0)
		return 1;
	out = fopen(argv[2], "we");
	if (!out)
		return 1;
	r = print_all(out, &policy, argv[1]);
	if (fclose(out) != 0)
		r = -EIO;
	if (r < 0)
		(void)remove(argv[2]); /* half a source must not look like a whole one */
	return r < 0;
}
