/* Time: intervals and deadlines run on the monotonic clock, only what people read on the other. */
#ifndef NC_CLOCK_H
#define NC_CLOCK_H

#include <stdint.h>

#define NC_NS_PER_MS 1000000ULL
#define NC_NS_PER_S 1000000000ULL

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t nc_clock_ns(void);

/* Milliseconds from now to deadline_ns, rounded up and never negative, for poll(). */
int nc_clock_left_ms(uint64_t deadline_ns);

/* Nanoseconds since 1970, as far as this machine knows. */
uint64_t nc_clock_real_ns(void);

/* "2026-11-15T21:55:59.123Z" with its NUL. */
#define NC_CLOCK_STAMP_SIZE 25

/* The time of day in UTC, RFC 3339 with milliseconds. */
void nc_clock_stamp(char out[static NC_CLOCK_STAMP_SIZE]);

/* The same with nanoseconds: "2026-11-15T21:55:59.123456789Z". */
#define NC_CLOCK_STAMP_NS_SIZE 31
void nc_clock_stamp_ns(char out[static NC_CLOCK_STAMP_NS_SIZE]);

/* The same of another moment: nanoseconds since 1970. */
void nc_clock_stamp_at(uint64_t real_ns, char out[static NC_CLOCK_STAMP_NS_SIZE]);

#endif
