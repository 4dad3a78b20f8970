/* Numbers in text, read strictly. */
#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"b", 1},
	{"k", 1ULL << 10},
	{"kb", 1ULL << 10},
	{"kib", 1ULL << 10},
	{"m", 1ULL << 20},
	{"mb", 1ULL << 20},
	{"mib", 1ULL << 20},
	{"g", 1ULL << 30},
	{"gb", 1ULL << 30},
	{"gib", 1ULL << 30},
	{"t", 1ULL << 40},
	{"tb", 1ULL << 40},
	{"tib", 1ULL << 40},
	{NULL, 0},
};

static const struct unit duration_units[] = {
	{"ns", 1},
	{"us", 1000ULL},
	{"ms", 1000000ULL},
	{"s", 1000000000ULL},
	{"m", 60 * 1000000000ULL},
	{"h", 3600 * 1000000000ULL},
	{"d", 86400 * 1000000000ULL},
	{NULL, 0},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits from *text on and moves it behind them. */
static int scan_whole(const char **text, uint64_t *ret_value)
{
	const char *at = *text;
	uint64_t value = 0;
	bool overflow = false;

	if (!is_digit(*at) || (at[0] == '0' && is_digit(at[1])))
		return -EINVAL;
	for (; is_digit(*at); at++) {
		overflow |= __builtin_mul_overflow(value, 10, &value);
		overflow |= __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value);
	}
	*text = at;
	if (overflow)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

/* Reads "12" or "12.345"; the part behind the point comes back in thousandths. */
static int scan_milli(const char **text, uint64_t *ret_whole, uint64_t *ret_thousandths)
{
	uint64_t thousandths = 0, weight = 100;
	int r = scan_whole(text, ret_whole);

	if (r < 0 && r != -ERANGE) /* what is too large may still turn out to be no number */
		return r;
	if (**text == '.') {
		const char *at = *text + 1;

		if (!is_digit(*at))
			return -EINVAL;
		for (; is_digit(*at); at++, weight /= 10) {
			if (weight == 0)
				return -EINVAL;
			thousandths += (uint64_t)(*at - '0') * weight;
		}
		*text = at;
	}
	*ret_thousandths = thousandths;
	return r;
}

static int in_range(uint64_t value, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int nc_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	int r = scan_whole(&text, &value);

	if (*text != '\0')
		return -EINVAL;
	return r < 0 ? r : in_range(value, min, max, ret_value);
}

int nc_parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret_thousandths)
{
	uint64_t whole = 0, part = 0, value;
	int r = scan_milli(&text, &whole, &part);

	if (*text != '\0')
		return -EINVAL;
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(whole, 1000, &value) ||
		__builtin_add_overflow(value, part, &value))
		return -ERANGE;
	return in_range(value, min, max, ret_thousandths);
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcasecmp(units->name, name) == 0)
			return units;
	return NULL;
}

static int parse_unit(
	const char *text, const struct unit *units, uint64_t bare_unit, uint64_t *ret_value)
{
	uint64_t whole = 0, part = 0, factor = bare_unit, value;
	unsigned __int128 rest;
	int r = scan_milli(&text, &whole, &part);

	if (r < 0 && r != -ERANGE)
		return r;
	if (*text != '\0') {
		const struct unit *unit = unit_find(units, text);

		if (!unit)
			return -EINVAL;
		factor = unit->factor;
	}
	if (r < 0)
		return r;
	/* a fraction that is no whole number of the smallest unit is refused, not rounded */
	rest = (unsigned __int128)part * factor;
	if (rest % 1000 != 0)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, factor, &value) ||
		__builtin_add_overflow(value, (uint64_t)(rest / 1000), &value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int nc_parse_size(const char *text, uint64_t bare_unit, uint64_t *ret_bytes)
{
	return parse_unit(text, size_units, bare_unit, ret_bytes);
}

int nc_parse_duration(const char *text, uint64_t *ret_ns)
{
	return parse_unit(text, duration_units, 1000000000ULL, ret_ns);
}
