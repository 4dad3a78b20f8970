/*
 * Numbers in text, read strictly: no sign, no blanks, no leading zeros, no hexadecimal, nothing
 * behind. -EINVAL: not such a number; -ERANGE: a number, but outside what is allowed.
 */
#ifndef NC_PARSE_H
#define NC_PARSE_H

#include <stdint.h>

int nc_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* "2", "0.5", "1.125" in thousandths, with at most three digits behind the point. */
int nc_parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret_thousandths);

/*
 * "512MB", "64KiB", "1.5G", "100": bytes. K, KB and KiB are all 1024, and so on up to T, as in
 * Docker; the letters may be small. A bare number counts in units of bare_unit bytes.
 */
int nc_parse_size(const char *text, uint64_t bare_unit, uint64_t *ret_bytes);

/*
 * "250ms", "30s", "1.5m", "2h", "100us", "1d" in nanoseconds; a bare number counts seconds. As
 * with sizes, the letters may be large or small, and a fraction that is no whole number of the
 * smallest unit is -EINVAL.
 */
int nc_parse_duration(const char *text, uint64_t *ret_ns);

#endif
