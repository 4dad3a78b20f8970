/* Strict numbers: what is one, what is none, and what is one too large. */
#include "unit.h"

#include <errno.h>

#include "base/parse.h"

#define K (1ULL << 10)
#define M (1ULL << 20)
#define G (1ULL << 30)
#define T (1ULL << 40)
#define US 1000ULL
#define MS 1000000ULL
#define S 1000000000ULL

/* What a result holds before the call, and after one that failed. */
#define UNTOUCHED 0xdeadbeefcafef00dULL

struct number {
	const char *text;
	int result;
	uint64_t value;
};

static void check(const struct number *want, int result, const uint64_t *value)
{
	uint64_t wanted = want->result < 0 ? UNTOUCHED : want->value;

	if (result != want->result || *value != wanted)
		fail_msg("'%s': result %d and value %ju instead of %d and %ju", want->text, result,
			(uintmax_t)*value, want->result, (uintmax_t)wanted);
}

/* None of the four takes any of these. */
static const char *const never[] = {
	"",
	"00",
	"000",
	"01",
	"007",
	"00.5",
	"01.5",
	"01K",
	"01s",
	"+1",
	"+0",
	"-1",
	"-0",
	"--1",
	"-1.5",
	"+1.5",
	"-1K",
	"-1s",
	" 1",
	"1 ",
	"\t1",
	"1\n",
	"1\r",
	"1\v",
	" ",
	"0x10",
	"0X10",
	"0b1",
	"0o7",
	"10h0",
	"1e3",
	"1E3",
	"1e3s",
	"1.",
	".5",
	".",
	"1.K",
	"1.s",
	".5K",
	".5s",
	"1..5",
	"1.5.",
	"1.5.5",
	"1.-5",
	"1.+5",
	"1. 5",
	"1 .5",
	"1.2345",
	"1.0000",
	"1.2345K",
	"1.0001s",
	"0.0005k",
	"0.0001us",
	"1,5",
	"1,000",
	"1_000",
	"1'000",
	"nan",
	"inf",
	"infinity",
	"a",
	"1x",
	"x1",
	"\xc2\xb2",
	"\xef\xbc\x91",
	"1\xc2\xa0",
	"18446744073709551616x",
	"99999999999999999999 ",
	"99999999999999999999.",
	"99999999999999999999.1234",
	"099999999999999999999",
};

static void nothing_takes_what_is_no_number(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(never); i++) {
		const struct number want = {never[i], -EINVAL, 0};
		uint64_t value = UNTOUCHED;

		check(&want, nc_parse_u64(never[i], 0, UINT64_MAX, &value), &value);
		check(&want, nc_parse_milli(never[i], 0, UINT64_MAX, &value), &value);
		check(&want, nc_parse_size(never[i], 1000, &value), &value);
		check(&want, nc_parse_duration(never[i], &value), &value);
	}
}

static void u64_reads_the_whole_range(void **state)
{
	static const struct number numbers[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"9", 0, 9},
		{"10", 0, 10},
		{"1234567890", 0, 1234567890},
		{"4294967295", 0, UINT32_MAX},
		{"4294967296", 0, 1ULL << 32},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", 0, 1ULL << 63},
		{"18446744073709551609", 0, UINT64_MAX - 6},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"18446744073709551619", -ERANGE, 0},
		{"18446744073709551620", -ERANGE, 0},
		{"18446744073709551625", -ERANGE, 0},
		{"36893488147419103232", -ERANGE, 0}, /* 2^65: 0 if it wrapped */
		{"99999999999999999999", -ERANGE, 0},
		{"100000000000000000000", -ERANGE, 0},
		{"184467440737095516160", -ERANGE, 0},
		{"340282366920938463463374607431768211457", -ERANGE, 0}, /* 2^128 + 1 */
		{"1K", -EINVAL, 0},
		{"1s", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"0.5", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		uint64_t value = UNTOUCHED;

		check(&numbers[i], nc_parse_u64(numbers[i].text, 0, UINT64_MAX, &value), &value);
	}
}

struct bounded {
	struct number number;
	uint64_t min, max;
};

static void u64_keeps_to_its_bounds(void **state)
{
	static const struct bounded numbers[] = {
		{{"4", -ERANGE, 0}, 5, 7},
		{{"5", 0, 5}, 5, 7},
		{{"6", 0, 6}, 5, 7},
		{{"7", 0, 7}, 5, 7},
		{{"8", -ERANGE, 0}, 5, 7},
		{{"0", -ERANGE, 0}, 1, UINT64_MAX},
		{{"0", 0, 0}, 0, 0},
		{{"1", -ERANGE, 0}, 0, 0},
		{{"18446744073709551614", -ERANGE, 0}, UINT64_MAX, UINT64_MAX},
		{{"18446744073709551615", 0, UINT64_MAX}, UINT64_MAX, UINT64_MAX},
		{{"18446744073709551616", -ERANGE, 0}, 0, 7},
		{{"8x", -EINVAL, 0}, 5, 7},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		const struct bounded *b = &numbers[i];
		uint64_t value = UNTOUCHED;

		check(&b->number, nc_parse_u64(b->number.text, b->min, b->max, &value), &value);
	}
}

static void milli_reads_thousandths(void **state)
{
	static const struct number numbers[] = {
		{"0", 0, 0},
		{"0.0", 0, 0},
		{"0.000", 0, 0},
		{"2", 0, 2000},
		{"0.5", 0, 500},
		{"0.05", 0, 50},
		{"0.005", 0, 5},
		{"0.001", 0, 1},
		{"0.999", 0, 999},
		{"1.125", 0, 1125},
		{"1.5", 0, 1500},
		{"1.50", 0, 1500},
		{"1.500", 0, 1500},
		{"10.01", 0, 10010},
		{"18446744073709551", 0, UINT64_MAX - 615},
		{"18446744073709551.615", 0, UINT64_MAX},
		{"18446744073709551.616", -ERANGE, 0},
		{"18446744073709551.999", -ERANGE, 0},
		{"18446744073709552", -ERANGE, 0},
		{"18446744073709551615", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"1K", -EINVAL, 0},
		{"1.5s", -EINVAL, 0},
		{"1.a", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		uint64_t value = UNTOUCHED;

		check(&numbers[i], nc_parse_milli(numbers[i].text, 0, UINT64_MAX, &value), &value);
	}
}

static void milli_keeps_to_its_bounds_in_thousandths(void **state)
{
	static const struct bounded numbers[] = {
		{{"0.499", -ERANGE, 0}, 500, 2000},
		{{"0.5", 0, 500}, 500, 2000},
		{{"2", 0, 2000}, 500, 2000},
		{{"2.001", -ERANGE, 0}, 500, 2000},
		{{"0", -ERANGE, 0}, 1, UINT64_MAX},
		{{"0.001", 0, 1}, 1, 1},
		{{"2.0010", -EINVAL, 0}, 500, 2000},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		const struct bounded *b = &numbers[i];
		uint64_t value = UNTOUCHED;

		check(&b->number, nc_parse_milli(b->number.text, b->min, b->max, &value), &value);
	}
}

static void size_knows_its_units(void **state)
{
	static const struct {
		const char *spellings[10];
		uint64_t factor;
	} units[] = {
		{{"K", "k", "KB", "kb", "Kb", "kB", "KiB", "kib"}, K},
		{{"M", "m", "MB", "mb", "Mb", "mB", "MiB", "mib"}, M},
		{{"G", "g", "GB", "gb", "Gb", "gB", "GiB", "gib"}, G},
		{{"T", "t", "TB", "tb", "Tb", "tB", "TiB", "tib"}, T},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(units); i++) {
		for (const char *const *s = units[i].spellings; *s; s++) {
			char text[16];
			const struct number whole = {text, 0, 3 * units[i].factor};
			const struct number half = {text, 0, units[i].factor + units[i].factor / 2};
			uint64_t value = UNTOUCHED;

			snprintf(text, sizeof(text), "3%s", *s);
			check(&whole, nc_parse_size(text, 7, &value), &value);
			value = UNTOUCHED;
			snprintf(text, sizeof(text), "1.5%s", *s);
			check(&half, nc_parse_size(text, 7, &value), &value);
		}
	}
}

static const struct number sizes[] = {
	{"0", 0, 0},
	{"100", 0, 100},
	{"0K", 0, 0},
	{"0.000T", 0, 0},
	{"512MB", 0, 512 * M},
	{"512mb", 0, 512 * M},
	{"64KiB", 0, 64 * K},
	{"1.5G", 0, G + G / 2},
	{"1.5GiB", 0, G + G / 2},
	{"0.125k", 0, 128},
	{"0.375T", 0, T / 8 * 3},
	{"0.001K", -EINVAL, 0}, /* 1.024 bytes */
	{"0.1M", -EINVAL, 0},
	{"1.5", -EINVAL, 0},
	{"18446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -ERANGE, 0},
	{"18014398509481983K", 0, UINT64_MAX - K + 1},
	{"18014398509481983.875K", 0, UINT64_MAX - K / 8 + 1},
	{"18014398509481984K", -ERANGE, 0},
	{"16777215T", 0, UINT64_MAX - T + 1},
	{"16777215.875T", 0, UINT64_MAX - T / 8 + 1},
	{"16777216T", -ERANGE, 0},
	{"99999999T", -ERANGE, 0},
	{"18446744073709551615K", -ERANGE, 0},
	{"99999999999999999999", -ERANGE, 0},
	{"99999999999999999999K", -ERANGE, 0},
	{"99999999999999999999X", -EINVAL, 0},
	{"K", -EINVAL, 0},
	{"MB", -EINVAL, 0},
	{"GiB", -EINVAL, 0},
	{"1 K", -EINVAL, 0},
	{"1K ", -EINVAL, 0},
	{"512M B", -EINVAL, 0},
	{"512MB\n", -EINVAL, 0},
	{"K1", -EINVAL, 0},
	{"1KK", -EINVAL, 0},
	{"1Ki", -EINVAL, 0},
	{"1i", -EINVAL, 0},
	{"1iB", -EINVAL, 0},
	{"1KBs", -EINVAL, 0},
	{"1KiBi", -EINVAL, 0},
	{"1P", -EINVAL, 0},
	{"1PB", -EINVAL, 0},
	{"1s", -EINVAL, 0},
	{"1ms", -EINVAL, 0},
	{"1M2K", -EINVAL, 0},
};

static void size_reads_bytes_exactly_or_not_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(sizes); i++) {
		uint64_t value = UNTOUCHED;

		check(&sizes[i], nc_parse_size(sizes[i].text, 1, &value), &value);
	}
}

struct bare {
	struct number number;
	uint64_t unit;
};

static void check_bare(const struct bare *want)
{
	uint64_t value = UNTOUCHED;

	check(&want->number, nc_parse_size(want->number.text, want->unit, &value), &value);
}

static void size_counts_a_bare_number_in_bare_units(void **state)
{
	static const struct bare numbers[] = {
		{{"2", 0, 2 * M}, M},
		{{"0.5", 0, M / 2}, M},
		{{"1.5", 0, K + K / 2}, K},
		{{"0.001", 0, 1}, 1000},
		{{"0.001", -EINVAL, 0}, 999},
		{{"0", 0, 0}, 7},
		{{"2K", 0, 2 * K}, M},
		{{"9223372036854775807", 0, UINT64_MAX - 1}, 2},
		{{"9223372036854775808", -ERANGE, 0}, 2},
		{{"18446744073709551615", -ERANGE, 0}, 2},
		{{"1", 0, UINT64_MAX}, UINT64_MAX},
		{{"2", -ERANGE, 0}, UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++)
		check_bare(&numbers[i]);
}

static void size_takes_a_fraction_of_a_huge_bare_unit(void **state)
{
	static const struct bare half = {{"0.5", 0, 1ULL << 62}, 1ULL << 63};

	(void)state;
	check_bare(&half);
}

static const struct number durations[] = {
	{"0", 0, 0},
	{"0s", 0, 0},
	{"0.000d", 0, 0},
	{"30", 0, 30 * S},
	{"0.5", 0, S / 2},
	{"0.001", 0, MS},
	{"100us", 0, 100 * US},
	{"0.001us", 0, 1},
	{"0.5us", 0, 500},
	{"250ms", 0, 250 * MS},
	{"1.5ms", 0, 1500 * US},
	{"30s", 0, 30 * S},
	{"1.001s", 0, 1001 * MS},
	{"1.5m", 0, 90 * S},
	{"0.001m", 0, 60 * MS},
	{"2h", 0, 7200 * S},
	{"1d", 0, 86400 * S},
	{"18446744073", 0, 18446744073 * S},
	{"18446744073.709", 0, 18446744073709 * MS},
	{"18446744073.710", -ERANGE, 0},
	{"18446744074", -ERANGE, 0},
	{"18446744073s", 0, 18446744073 * S},
	{"18446744074s", -ERANGE, 0},
	{"18446744073709551.615us", 0, UINT64_MAX},
	{"18446744073709551.616us", -ERANGE, 0},
	{"5124095h", 0, 5124095 * (3600 * S)},
	{"5124096h", -ERANGE, 0},
	{"213503d", 0, 213503 * (86400 * S)},
	{"213504d", -ERANGE, 0},
	{"18446744073709551615d", -ERANGE, 0},
	{"99999999999999999999ms", -ERANGE, 0},
	{"99999999999999999999fortnights", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{"ms", -EINVAL, 0},
	{"d", -EINVAL, 0},
	{"1 s", -EINVAL, 0},
	{"1s ", -EINVAL, 0},
	{"1ss", -EINVAL, 0},
	{"1sec", -EINVAL, 0},
	{"1min", -EINVAL, 0},
	{"1hr", -EINVAL, 0},
	{"1hours", -EINVAL, 0},
	{"1w", -EINVAL, 0},
	{"1y", -EINVAL, 0},
	{"1h30m", -EINVAL, 0},
	{"1K", -EINVAL, 0},
	{"1MB", -EINVAL, 0},
	{"1\xc2\xb5s", -EINVAL, 0},
};

static void duration_reads_nanoseconds_exactly_or_not_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(durations); i++) {
		uint64_t value = UNTOUCHED;

		check(&durations[i], nc_parse_duration(durations[i].text, &value), &value);
	}
}

/* Also with a fraction, a number beyond 64 bits is a number. */
static void a_whole_part_beyond_64_bits_is_out_of_range(void **state)
{
	const struct number bare = {"99999999999999999999.5", -ERANGE, 0};
	const struct number size = {"99999999999999999999.5K", -ERANGE, 0};
	const struct number duration = {"18446744073709551616.125h", -ERANGE, 0};
	uint64_t value = UNTOUCHED;

	(void)state;
	check(&bare, nc_parse_milli(bare.text, 0, UINT64_MAX, &value), &value);
	check(&bare, nc_parse_size(bare.text, 1000, &value), &value);
	check(&bare, nc_parse_duration(bare.text, &value), &value);
	check(&size, nc_parse_size(size.text, 1, &value), &value);
	check(&duration, nc_parse_duration(duration.text, &value), &value);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_takes_what_is_no_number),
		cmocka_unit_test(u64_reads_the_whole_range),
		cmocka_unit_test(u64_keeps_to_its_bounds),
		cmocka_unit_test(milli_reads_thousandths),
		cmocka_unit_test(milli_keeps_to_its_bounds_in_thousandths),
		cmocka_unit_test(size_knows_its_units),
		cmocka_unit_test(size_reads_bytes_exactly_or_not_at_all),
		cmocka_unit_test(size_counts_a_bare_number_in_bare_units),
		cmocka_unit_test(size_takes_a_fraction_of_a_huge_bare_unit),
		cmocka_unit_test(duration_reads_nanoseconds_exactly_or_not_at_all),
		cmocka_unit_test(a_whole_part_beyond_64_bits_is_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
