/*
 * Compiles filter_table.h to BPF and prints it as C. Runs at build time, links libseccomp for the
 * numbers of the calls, and is not installed. Usage: filter_gen ARCHITECTURE OUTPUT
 *
 * A program looks at the architecture, searches the number among ranges of equal answers, and looks
 * at arguments only for the calls that have rules on them. Every box loads one, and the kernel
 * checks, converts and compiles each instruction of it then: so they are as few as can be. What
 * comes out is run in an interpreter against the tables before it is printed: a wrong program fails
 * the build.
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

/* ---- the compiler ---- */

/*
 * Programs are made from their end: all jumps lead forward, so what an instruction jumps to is
 * there before it. A label is how many instructions there are from its own to the end.
 */
static size_t emit(struct program *program, struct sock_filter instruction)
{
	if (program->length < BPF_MAXINSNS)
		program->code[program->length] = instruction;
	return ++program->length; /* beyond the maximum: noticed at the end */
}

/* The label, or that of a copy of it, where the next two instructions' jumps can get to it. */
static size_t reach(struct program *program, size_t label)
{
	size_t distance = program->length - label;
	struct sock_filter target;

	if (distance + 2 <= UINT8_MAX || program->length >= BPF_MAXINSNS)
		return label;
	target = program->code[label - 1];
	if (BPF_CLASS(target.code) != BPF_RET)
		target = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)distance);
	return emit(program, target);
}

static size_t emit_jump(
	struct program *program, unsigned int test, uint32_t with, size_t if_true, size_t if_false)
{
	if_true = reach(program, if_true);
	if_false = reach(program, if_false);
	return emit(program, (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | test | BPF_K),
				     with, (uint8_t)(program->length - if_true),
				     (uint8_t)(program->length - if_false)));
}

static size_t emit_load(struct program *program, size_t offset)
{
	return emit(
		program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The answer, the nearest there is. */
static size_t emit_return(struct program *program, uint32_t answer)
{
	for (size_t label = program->length; label > 0 && program->length - label < UINT8_MAX - 2;
		label--) {
		const struct sock_filter *at = &program->code[label - 1];

		if (at->code == (BPF_RET | BPF_K) && at->k == answer)
			return label;
	}
	return emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

/*
 * Where to go on, with a word of an argument, masked, in the accumulator. Who has it there already
 * goes on at once; the instructions that load it are made when somebody comes who has not.
 */
struct place {
	size_t loaded;
	size_t label;  /* of what loads it; 0: not made yet */
	size_t offset; /* of the word */
	uint32_t mask;
};

#define WHOLE UINT32_MAX

/* Its label for whoever comes with something else in the accumulator. */
static size_t settle(struct program *program, struct place *place)
{
	if (place->label)
		return place->label;
	if (place->loaded != program->length) /* something has come between */
		(void)emit(program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
					    (uint32_t)(program->length - place->loaded)));
	if (place->mask != WHOLE)
		(void)emit(program,
			(struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, place->mask));
	place->label = emit_load(program, place->offset);
	return place->label;
}

static bool has(const struct place *place, size_t offset, uint32_t mask)
{
	return place->loaded && place->offset == offset && place->mask == mask;
}

static size_t enter(struct program *program, struct place *place, size_t offset, uint32_t mask)
{
	return has(place, offset, mask) ? place->loaded : settle(program, place);
}

/* An answer is the same whatever the accumulator holds. */
static struct place answer_place(struct program *program, uint32_t answer)
{
	return (struct place){.label = emit_return(program, answer)};
}

/* One word of an argument: (word & mask) == value goes on to yes. */
static struct place emit_look(struct program *program, size_t offset, uint32_t mask, uint32_t value,
	struct place *yes, struct place *no)
{
	/* a bit, or that none is set, is seen without masking, which pays but for the next look */
	bool by_bits =
		mask != WHOLE && (value == 0 || (mask & (mask - 1)) == 0) && !has(no, offset, mask);
	struct place here = {.offset = offset, .mask = by_bits ? WHOLE : mask};
	size_t if_false = enter(program, no, offset, here.mask);
	size_t if_true = enter(program, yes, offset, here.mask);

	if (!by_bits)
		here.loaded = emit_jump(program, BPF_JEQ, value, if_true, if_false);
	else if (value == 0)
		here.loaded = emit_jump(program, BPF_JSET, mask, if_false, if_true);
	else
		here.loaded = emit_jump(program, BPF_JSET, mask, if_true, if_false);
	return here;
}

/* The halves of a register that are looked at. */
static struct place emit_when(struct program *program, const struct nc_filter_when *when,
	struct place yes, struct place *no)
{
	const size_t low = offsetof(struct seccomp_data, args[when->argument]); /* little-endian */
	const uint64_t mask = when->mask, value = when->value;

	if (mask >> 32)
		yes = emit_look(program, low + sizeof(uint32_t), (uint32_t)(mask >> 32),
			(uint32_t)(value >> 32), &yes, no);
	if ((uint32_t)mask)
		yes = emit_look(program, low, (uint32_t)mask, (uint32_t)value, &yes, no);
	return yes;
}

static bool is_same_when(const struct nc_filter_when *a, const struct nc_filter_when *b)
{
	return a->argument == b->argument && a->mask == b->mask && a->value == b->value;
}

/*
 * Rules of one verdict, from their depth-th look on; what rules in a row have in common is looked
 * at once. behind is where to go if none matches.
 */
static struct place emit_rules(struct program *program, const struct nc_filter_rule *const *rules,
	size_t n, size_t depth, uint32_t answer, struct place *behind)
{
	struct place *no = behind, next;

	while (n > 0) {
		const struct nc_filter_when *when = &rules[n - 1]->when[depth];
		struct place yes;
		size_t first = n - 1;

		if (depth == NC_FILTER_WHENS || !when->mask)
			return answer_place(program, answer);
		while (first > 0 && is_same_when(&rules[first - 1]->when[depth], when))
			first--;
		yes = emit_rules(program, rules + first, n - first, depth + 1, answer, no);
		next = emit_when(program, when, yes, no);
		no = &next;
		n = first;
	}
	return *no; /* cppcheck-suppress uninitvar ; it is the caller's */
}

/* The rules of a verdict on the call; returns how many. */
static size_t find_rules(const struct policy *policy, enum nc_filter which, unsigned int number,
	enum nc_filter_verdict verdict, const struct nc_filter_rule **rules)
{
	size_t n = 0;

	for (size_t i = 0; i < policy->n_rules; i++) {
		const struct nc_filter_rule *rule = policy->rules[i].what;

		if (policy->rules[i].number == (int)number && rule->verdict == verdict &&
			(rule->profiles & (1U << which)))
			rules[n++] = rule;
	}
	return n;
}

/* The rules on a call, refusals first; 0: there are none. */
static size_t emit_call(struct program *program, const struct policy *policy, enum nc_filter which,
	unsigned int number, uint32_t otherwise)
{
	const struct nc_filter_rule *allow[COUNT(nc_filter_rules)], *refuse[COUNT(nc_filter_rules)];
	size_t n_allow = find_rules(policy, which, number, NC_FILTER_ALLOW, allow);
	size_t n_refuse = find_rules(policy, which, number, NC_FILTER_REFUSE, refuse);
	struct place place;

	if (n_allow + n_refuse == 0)
		return 0;
	place = answer_place(program, otherwise);
	place = emit_rules(program, allow, n_allow, 0, SECCOMP_RET_ALLOW, &place);
	place = emit_rules(program, refuse, n_refuse, 0, answer_refused(which), &place);
	return settle(program, &place);
}

/* What a number is answered with where no argument counts. */
static uint32_t answer(const struct policy *policy, enum nc_filter which, unsigned int number)
{
	if (policy->has_x32 && (number & X32_BIT) && number != UINT32_MAX)
		return SECCOMP_RET_KILL_PROCESS;
	/* -1 is what programs call to see ENOSYS, and no x32 call */
	if (is_absent(policy, which, number) || (policy->has_x32 && number == UINT32_MAX))
		return answer_absent(which);
	if (is_unsupported(policy, which, number))
		return RET_UNSUPPORTED;
	return is_allowed(policy, which, number) ? SECCOMP_RET_ALLOW : answer_refused(which);
}

/* Numbers from first on, up to the next range, with the same answer or the same rules. */
struct range {
	unsigned int first;
	uint32_t answer;
	size_t rules; /* a label; 0: the answer alone counts */
};

static bool is_same(const struct range *a, const struct range *b)
{
	return a->rules == b->rules && (a->rules || a->answer == b->answer);
}

struct ranges {
	struct range range[NUMBERS + 8];
	size_t n;
};

static void add_range(struct ranges *ranges, struct range range)
{
	if (ranges->n == 0 || !is_same(&ranges->range[ranges->n - 1], &range))
		ranges->range[ranges->n++] = range;
}

/* What becomes of every number, with the rules compiled. */
static void divide(struct program *program, const struct policy *policy, enum nc_filter which,
	struct ranges *ranges)
{
	static const unsigned int far[] = {NUMBERS, X32_BIT, 2 * X32_BIT, 3 * X32_BIT, UINT32_MAX};

	for (unsigned int number = 0; number < NUMBERS; number++) {
		struct range range = {number, answer(policy, which, number), 0};

		range.rules = emit_call(program, policy, which, number, range.answer);
		add_range(ranges, range);
	}
	for (size_t i = 0; i < COUNT(far); i++)
		add_range(ranges, (struct range){far[i], answer(policy, which, far[i]), 0});
}

static bool allows(const struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->n; i++)
		if (!ranges->range[i].rules && ranges->range[i].answer == SECCOMP_RET_ALLOW)
			return true;
	return false;
}

static size_t emit_target(struct program *program, const struct range *range)
{
	return range->rules ? range->rules : emit_return(program, range->answer);
}

/* A binary search for the range that the number, which is loaded, is in. */
static size_t emit_search(struct program *program, const struct range *ranges, size_t n)
{
	size_t half = n / 2, upper, lower;

	if (n == 1)
		return emit_target(program, ranges);
	/* one number between others that have the same answer */
	if (n == 3 && is_same(&ranges[0], &ranges[2]) && ranges[1].first + 1 == ranges[2].first) {
		upper = emit_target(program, &ranges[1]);
		lower = emit_target(program, &ranges[0]);
		return emit_jump(program, BPF_JEQ, ranges[1].first, upper, lower);
	}
	upper = emit_search(program, ranges + half, n - half);
	lower = emit_search(program, ranges, half);
	return emit_jump(program, BPF_JGE, ranges[half].first, upper, lower);
}

/* The other way round: see emit(). */
static void turn(struct program *program)
{
	for (size_t i = 0; i < program->length / 2; i++) {
		struct sock_filter first = program->code[i];

		program->code[i] = program->code[program->length - 1 - i];
		program->code[program->length - 1 - i] = first;
	}
}

static int compile(struct program *program, const struct policy *policy, enum nc_filter which)
{
	static struct ranges ranges; /* 16 KiB */
	size_t killed, numbers;

	program->length = 0;
	ranges.n = 0;
	divide(program, policy, which, &ranges);
	/* one that allows nothing holds any attack, and any program */
	if (!allows(&ranges))
		return complain("an empty profile", "refused");
	(void)emit_search(program, ranges.range, ranges.n);
	numbers = emit_load(program, offsetof(struct seccomp_data, nr));
	killed = emit_return(program, SECCOMP_RET_KILL_PROCESS);
	(void)emit_jump(program, BPF_JEQ, policy->arch, numbers, killed);
	(void)emit_load(program, offsetof(struct seccomp_data, arch));
	if (program->length > BPF_MAXINSNS)
		return -E2BIG;
	turn(program);
	return 0;
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
#define VARIANTS 6
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
	case 4:
		return when->value - 1;
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
	[NC_FILTER_ANALYST] = "analyst",
	[NC_FILTER_RELAY] = "relay",
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
		       which != NC_FILTER_EGRESS && which != NC_FILTER_COURIER &&
		       which != NC_FILTER_ANALYST && which != NC_FILTER_RELAY);
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
