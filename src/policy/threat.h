/*
 * The threat detector: what an execution did, as numbers, held against thresholds of the policy.
 * Each that is reached is an alert with its reason. A pure function: who counts, and who is told,
 * is others' part.
 */
#ifndef NC_THREAT_H
#define NC_THREAT_H

#include "policy/policy.h"

/* What is counted, by enum nc_signal. */
struct nc_signals {
	uint64_t value[NC_SIGNAL_MAX];
};

struct nc_alert {
	enum nc_signal signal;
	enum nc_severity severity;
	const char *id; /* "refused_calls" and so on, as in policy files */
	uint64_t value, threshold;
	const char *reason;
};

/* Thresholds that hold where no policy says otherwise; 0: never. */
extern const uint64_t nc_threat_thresholds[NC_SIGNAL_MAX];

/* Fills in the alerts, the worst first, and returns how many there are. */
size_t nc_threat_judge(const struct nc_signals *signals, const uint64_t *thresholds,
	struct nc_alert ret_alerts[static NC_SIGNAL_MAX]);

/* How fast a total grew at most, over a second or so. Begins as zeroes. */
struct nc_rate {
	uint64_t since_ns, before;
	uint64_t peak; /* per second; 0 until a second is over */
};

/* What the total is now; a clock or a total that went backwards begins anew. */
void nc_rate_add(struct nc_rate *rate, uint64_t now_ns, uint64_t total);

/* How fast processes are made, at their fastest, from the numbers of some of them. Begins as
 * zeroes. */
struct nc_forks {
	uint64_t since_ns, before; /* the one from which is counted */
	uint64_t refused_before;   /* at least so many of those up to it had been refused */
	uint64_t refused;	   /* when it was looked last */
	uint64_t peak;		   /* in a second; over more than that if only so much is known */
};

/*
 * made were tried to be made up to at_ns, both since the program began, and refused of them up to
 * now. Never more than there were: who comes between two of whom the first is known, and no later
 * than the second, was made in the time between them, which is never taken for less than a second.
 */
void nc_forks_add(struct nc_forks *forks, uint64_t at_ns, uint64_t made, uint64_t refused);

/* They were not all its own: those up to now are not counted. */
void nc_forks_skip(struct nc_forks *forks, uint64_t at_ns, uint64_t made, uint64_t refused);

/* Whether a refused system call was aimed at what holds the box, by the rule of its denial. */
bool nc_threat_is_wall(const char *rule);

#endif
