/* The threat detector. */
#include "policy/threat.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/*
 * Thresholds are above what honest programs of our tests do: a browser asks for namespaces once, a
 * build meets its limit of processes a few times.
 */
const uint64_t nc_threat_thresholds[NC_SIGNAL_MAX] = {
	[NC_SIGNAL_WALL_CALLS] = 10,
	[NC_SIGNAL_WALL_KINDS] = 3,
	[NC_SIGNAL_REFUSED_CALLS] = 1000,
	[NC_SIGNAL_PROCESSES_REFUSED] = 50,
	[NC_SIGNAL_MEMORY_KILLS] = 2,
	[NC_SIGNAL_LIMITS_HIT] = 3,
	[NC_SIGNAL_OUTPUT_RATE] = 64,
	[NC_SIGNAL_WRITE_RATE] = 512,
	[NC_SIGNAL_SWITCH_RATE] = 200000,
	[NC_SIGNAL_CPU_SECONDS] = 3600,
	[NC_SIGNAL_MEMORY_RATE] = 1024,
	[NC_SIGNAL_FORK_RATE] = 1000,
	[NC_SIGNAL_LANGUAGE_REFUSALS] = 16,
	[NC_SIGNAL_START_RATE] = 200,
	[NC_SIGNAL_SECRETS_PROBED] = 2,
	[NC_SIGNAL_DECOYS_TOUCHED] = 1,
};

static const struct {
	const char *id;
	enum nc_severity severity;
	const char *reason;
} texts[NC_SIGNAL_MAX] = {
#define ID(name, text) [NC_SIGNAL_##name].id = (text),
	NC_SIGNAL_IDS(ID)
#define SIGNAL(name, level, because)                                                               \
	[NC_SIGNAL_##name].severity = NC_SEVERITY_##level, [NC_SIGNAL_##name].reason = (because)
		SIGNAL(WALL_CALLS, HIGH,
			"System calls against what holds the box were tried again and again"),
	SIGNAL(WALL_KINDS, CRITICAL,
		"One way out of the box after the other was tried, as attacks do"),
	SIGNAL(REFUSED_CALLS, MEDIUM, "It went on making system calls that are refused"),
	SIGNAL(PROCESSES_REFUSED, HIGH,
		"It went on making processes that it may not have, as a fork bomb does"),
	SIGNAL(MEMORY_KILLS, MEDIUM, "It was killed for its memory and went on taking more"),
	SIGNAL(LIMITS_HIT, MEDIUM, "It used up one resource after the other"),
	SIGNAL(OUTPUT_RATE, LOW, "It printed more megabytes a second than anybody reads"),
	SIGNAL(WRITE_RATE, LOW, "It kept the disk busy for everybody on the machine"),
	SIGNAL(SWITCH_RATE, LOW, "It kept the scheduler busy for everybody on the machine"),
	SIGNAL(CPU_SECONDS, LOW, "It computed for longer than programs here do"),
	SIGNAL(MEMORY_RATE, LOW, "It took memory faster than programs fill it with data"),
	SIGNAL(FORK_RATE, MEDIUM, "It made processes or threads faster than work needs them"),
	SIGNAL(LANGUAGE_REFUSALS, HIGH,
		"It went on trying what the policy had refused inside the language"),
	SIGNAL(START_RATE, MEDIUM, "It started programs faster than work needs them"),
	SIGNAL(SECRETS_PROBED, HIGH,
		"It looked for keys and passwords in one place after the other"),
	SIGNAL(DECOYS_TOUCHED, HIGH,
		"It read keys that are there to show who looks for keys (decoys)"),
};

bool nc_threat_is_wall(const char *rule)
{
	static const char walls[] = "namespaces mounts other-processes file-handles "
				    "kernel-programs page-faults io-uring keyrings kernel-modules "
				    "administration watching-others set-user-id filters";

	return nc_text_has_word(walls, ' ', rule);
}

static int by_severity(const void *left, const void *right)
{
	const struct nc_alert *a = left, *b = right;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	return a->signal < b->signal ? -1 : 1;
}

size_t nc_threat_judge(const struct nc_signals *signals, const uint64_t *thresholds,
	struct nc_alert ret_alerts[static NC_SIGNAL_MAX])
{
	size_t count = 0;

	for (enum nc_signal i = 0; i < NC_SIGNAL_MAX; i++)
		if (thresholds[i] > 0 && signals->value[i] >= thresholds[i])
			ret_alerts[count++] = (struct nc_alert){.signal = i,
				.id = texts[i].id,
				.severity = texts[i].severity,
				.value = signals->value[i],
				.threshold = thresholds[i],
				.reason = texts[i].reason};
	if (count > 0)
		qsort(ret_alerts, count, sizeof(ret_alerts[0]), by_severity);
	return count;
}

void nc_rate_add(struct nc_rate *rate, uint64_t now_ns, uint64_t total)
{
	uint64_t span_ms = (now_ns - rate->since_ns) / 1000000;

	if (rate->since_ns == 0 || now_ns < rate->since_ns || total < rate->before) {
		rate->since_ns = now_ns;
		rate->before = total;
		return;
	}
	if (span_ms < 1000)
		return;
	total -= rate->before;
	rate->before += total;
	rate->since_ns = now_ns;
	/* no more than the total, whatever that is: nothing here can overflow */
	total = total / span_ms * 1000 + total % span_ms * 1000 / span_ms;
	if (total > rate->peak)
		rate->peak = total;
}

#define SECOND_NS 1000000000ULL

void nc_forks_add(struct nc_forks *forks, uint64_t at_ns, uint64_t made, uint64_t refused)
{
	uint64_t span_ns = at_ns - forks->since_ns, gained, lost;

	/* one that was made before says nothing new; a lower number is one of a new round */
	if (at_ns > forks->since_ns && made > forks->before) {
		gained = made - forks->before;
		lost = refused > forks->refused_before ? refused - forks->refused_before : 0;
		gained = gained > lost ? gained - lost : 0;
		if (span_ns > SECOND_NS)
			gained = (uint64_t)((double)gained * 1e9 / (double)span_ns);
		if (gained > forks->peak)
			forks->peak = gained;
	}
	if (at_ns > forks->since_ns && (span_ns >= SECOND_NS || made < forks->before)) {
		forks->since_ns = at_ns;
		forks->before = made;
		forks->refused_before = forks->refused;
	}
	forks->refused = refused;
}

void nc_forks_skip(struct nc_forks *forks, uint64_t at_ns, uint64_t made, uint64_t refused)
{
	*forks = (struct nc_forks){.since_ns = at_ns,
		.before = made,
		.refused_before = refused,
		.refused = refused,
		.peak = forks->peak};
}
