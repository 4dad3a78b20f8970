/* Values of secrets in what comes back. */
#include "egress/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/text.h"

enum spelling {
	PLAIN,
	HEX,	    /* pairs of digits, in either case */
	URL,	    /* %41 */
	FORM,	    /* the same, with '+' for a blank */
	ESCAPE,	    /* of JSON: \", \/, \u0041 */
	BASE64,	    /* in either alphabet, with line ends, and '\' before '/' */
	BASE64_URL, /* the same with escapes of URLs */
};

#define BASE64_SHIFTS 3U
/* Escapes of one symbol: \u0041 */
#define ESCAPE_MAX 6U
#define ROWS_MAX (5U + 2 * BASE64_SHIFTS)

/* A row of symbols. */
struct row {
	enum spelling spelling;
	uint16_t size;
	uint16_t *back; /* how far it is met still when the symbol behind that many is another */
	unsigned char *symbols;
};

/* One value in all spellings, for all connections that look for it. */
struct nc_mask_rows {
	unsigned int refs;
	size_t n;
	struct row row[ROWS_MAX];
};

/* How far a row has been met. */
struct seeker {
	const struct row *row;
	uint16_t met;
	/* an escape that has begun */
	unsigned char escape[ESCAPE_MAX];
	uint64_t escape_at[ESCAPE_MAX];
	size_t n_escape;
};

struct nc_mask {
	struct nc_mask_rows *rows[NC_EGRESS_SECRETS_MAX];
	size_t n_rows;
	struct seeker seekers[NC_EGRESS_SECRETS_MAX * ROWS_MAX];
	size_t n_seekers;
	uint64_t at, found; /* bytes that were looked at */
	/* of each of the last bytes: the spellings for which a symbol begins with it */
	unsigned char begins[NC_MASK_WINDOW];
	bool is_text[NC_MASK_WINDOW];
};

/* ---- rows ---- */

static void make_back(struct row *row)
{
	uint16_t met = 0;

	row->back[0] = 0;
	for (uint16_t i = 1; i < row->size; i++) {
		while (met > 0 && row->symbols[i] != row->symbols[met])
			met = row->back[met - 1];
		if (row->symbols[i] == row->symbols[met])
			met++;
		row->back[i] = met;
	}
}

static int add(struct nc_mask_rows *rows, enum spelling spelling, const char *symbols, size_t size)
{
	struct row *row = &rows->row[rows->n];

	*row = (struct row){.spelling = spelling,
		.size = (uint16_t)size,
		.symbols = malloc(size),
		.back = calloc(size, sizeof(*row->back))};
	if (!row->symbols || !row->back) {
		free(row->symbols);
		free(row->back);
		return -ENOMEM;
	}
	memcpy(row->symbols, symbols, size);
	make_back(row);
	rows->n++;
	return 0;
}

static int add_hex(struct nc_mask_rows *rows, const char *value, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char row[2 * NC_EGRESS_SECRET_MAX];
	int r;

	for (size_t i = 0; i < size; i++) {
		row[2 * i] = digits[(unsigned char)value[i] >> 4];
		row[2 * i + 1] = digits[value[i] & 0xf];
	}
	r = add(rows, HEX, row, 2 * size);
	explicit_bzero(row, sizeof(row));
	return r;
}

/* Where it stands in a longer text, the first and last digits have bits of its neighbours. */
static int add_base64(struct nc_mask_rows *rows, const char *value, size_t size, size_t shift)
{
	char longer[NC_EGRESS_SECRET_MAX + BASE64_SHIFTS] = {0};
	const size_t from = (8 * shift + 5) / 6, to = 8 * (shift + size) / 6;
	char *digits = NULL;
	int r;

	memcpy(longer + shift, value, size);
	r = nc_base64_encode(longer, shift + size, &digits);
	explicit_bzero(longer, sizeof(longer));
	if (r < 0)
		return r;
	r = add(rows, BASE64, digits + from, to - from);
	if (r == 0)
		r = add(rows, BASE64_URL, digits + from, to - from);
	explicit_bzero(digits, strlen(digits));
	free(digits);
	return r;
}

static int add_value(struct nc_mask_rows *rows, const char *value)
{
	static const enum spelling same[] = {PLAIN, URL, FORM, ESCAPE};
	const size_t size = strlen(value);
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(same) / sizeof(same[0]); i++)
		r = add(rows, same[i], value, size);
	if (r == 0)
		r = add_hex(rows, value, size);
	for (size_t i = 0; r == 0 && i < BASE64_SHIFTS; i++)
		r = add_base64(rows, value, size, i);
	return r;
}

void nc_mask_rows_unref(struct nc_mask_rows *rows)
{
	if (!rows || --rows->refs > 0)
		return;
	for (size_t i = 0; i < rows->n; i++) {
		explicit_bzero(rows->row[i].symbols, rows->row[i].size);
		free(rows->row[i].symbols);
		free(rows->row[i].back);
	}
	free(rows);
}

/* Those of the secret, which are made when they are wanted first. */
static struct nc_mask_rows *rows_of(struct nc_secret *secret)
{
	struct nc_mask_rows *rows = secret->rows ? secret->rows : calloc(1, sizeof(*rows));

	if (!rows || rows == secret->rows)
		return rows;
	rows->refs = 1;
	if (add_value(rows, secret->value) < 0) {
		nc_mask_rows_unref(rows);
		return NULL;
	}
	return secret->rows = rows;
}

/* ---- making ---- */

static bool is_of(const struct nc_secret *secret, const struct nc_host *host)
{
	return secret->mask && secret->host.kind == host->kind &&
	       nc_streq(secret->host.text, host->text);
}

bool nc_mask_is_wanted(const struct nc_secrets *secrets, const struct nc_host *host)
{
	for (size_t i = 0; i < secrets->n; i++)
		if (is_of(&secrets->entries[i], host))
			return true;
	return false;
}

struct nc_mask *nc_mask_new(struct nc_secrets *secrets, const struct nc_host *host)
{
	struct nc_mask *mask = calloc(1, sizeof(*mask));

	for (size_t i = 0; mask && i < secrets->n; i++) {
		struct nc_mask_rows *rows;

		if (!is_of(&secrets->entries[i], host))
			continue;
		rows = rows_of(&secrets->entries[i]);
		if (!rows) {
			nc_mask_free(mask);
			return NULL;
		}
		rows->refs++;
		mask->rows[mask->n_rows++] = rows;
		for (size_t k = 0; k < rows->n; k++)
			mask->seekers[mask->n_seekers++].row = &rows->row[k];
	}
	return mask;
}

void nc_mask_free(struct nc_mask *mask)
{
	if (!mask)
		return;
	for (size_t i = 0; i < mask->n_rows; i++)
		nc_mask_rows_unref(mask->rows[i]);
	free(mask);
}

void nc_mask_begin(struct nc_mask *mask)
{
	mask->at = 0;
	for (size_t i = 0; i < mask->n_seekers; i++) {
		mask->seekers[i].met = 0;
		mask->seekers[i].n_escape = 0;
	}
}

/* ---- looking ---- */

/* Where the last `count` symbols of the spelling begin; as far back as is remembered. */
static uint64_t start_of(
	const struct nc_mask *mask, enum spelling spelling, size_t count, uint64_t before)
{
	const uint64_t first = mask->at > NC_MASK_WINDOW ? mask->at - NC_MASK_WINDOW : 0;

	while (count > 0 && before > first) {
		before--;
		count -= mask->begins[before % NC_MASK_WINDOW] >> spelling & 1;
	}
	return before;
}

/* Replaces the text from there to the byte before `behind`; *last is the byte looked at last. */
static void blot(struct nc_mask *mask, uint64_t from, uint64_t behind, char *last)
{
	last -= mask->at - behind;
	for (uint64_t at = behind; at-- > from; last--)
		if (mask->is_text[at % NC_MASK_WINDOW])
			*last = '*';
	mask->found++;
}

/* A symbol, whose bytes are those from `at` to before `behind`. */
static void meet(struct nc_mask *mask, struct seeker *seeker, unsigned char symbol, uint64_t at,
	uint64_t behind, char *last)
{
	const struct row *row = seeker->row;

	mask->begins[at % NC_MASK_WINDOW] |= (unsigned char)(1U << row->spelling);
	while (seeker->met > 0 && row->symbols[seeker->met] != symbol)
		seeker->met = row->back[seeker->met - 1];
	if (row->symbols[seeker->met] == symbol)
		seeker->met++;
	if (seeker->met < row->size)
		return;
	blot(mask, start_of(mask, row->spelling, row->size, behind), behind, last);
	seeker->met = row->back[row->size - 1];
}

static int digit_of(unsigned char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* What the digits at the end of an escape mean; -1: they are none. */
static int value_of(const unsigned char *digits, size_t count)
{
	int value = 0;

	for (size_t i = 0; i < count; i++) {
		int digit = digit_of(digits[i]);

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* The symbol that an escape is: 256 and more is none of ours; -1: not an escape; -2: not yet whole.
 */
static int read_escape(const struct seeker *seeker)
{
	const unsigned char *escape = seeker->escape;
	const size_t n = seeker->n_escape;

	if (seeker->row->spelling == ESCAPE) {
		if (n < 2)
			return -2;
		if (escape[1] != 'u')
			return escape[1];
		return value_of(escape + 2, n - 2) < 0 ? -1 : n < 6 ? -2 : value_of(escape + 2, 4);
	}
	if (n > 1 && value_of(escape + 1, n - 1) < 0)
		return -1;
	return n < 3 ? -2 : value_of(escape + 1, 2);
}

/* A byte that is no part of an escape; -1: it means nothing. */
static int read_plain(enum spelling spelling, unsigned char c)
{
	switch (spelling) {
	case HEX:
		return c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c;
	case FORM:
		return c == '+' ? ' ' : c;
	case BASE64:
	case BASE64_URL:
		return c == '-'				     ? '+'
		       : c == '_'			     ? '/'
		       : c == '\r' || c == '\n' || c == '\\' ? -1
							     : c;
	case PLAIN:
	case URL:
	case ESCAPE:
	default:
		return c;
	}
}

static bool begins_escape(enum spelling spelling, unsigned char c)
{
	return spelling == ESCAPE ? c == '\\'
				  : c == '%' && (spelling == URL || spelling == FORM ||
							spelling == BASE64_URL);
}

/* It was none: its bytes stand for themselves. */
static void give_up_escape(struct nc_mask *mask, struct seeker *seeker, char *last)
{
	for (size_t i = 0; i < seeker->n_escape; i++) {
		int symbol = read_plain(seeker->row->spelling, seeker->escape[i]);

		if (symbol >= 0)
			meet(mask, seeker, (unsigned char)symbol, seeker->escape_at[i],
				seeker->escape_at[i] + 1, last);
	}
	seeker->n_escape = 0;
}

static void look(struct nc_mask *mask, struct seeker *seeker, unsigned char c, char *last)
{
	const uint64_t at = mask->at - 1;
	int symbol;

	if (seeker->n_escape > 0 && begins_escape(seeker->row->spelling, c) &&
		seeker->row->spelling != ESCAPE)
		give_up_escape(mask, seeker, last); /* another begins */
	if (seeker->n_escape == 0 && !begins_escape(seeker->row->spelling, c)) {
		symbol = read_plain(seeker->row->spelling, c);
		if (symbol >= 0)
			meet(mask, seeker, (unsigned char)symbol, at, mask->at, last);
		return;
	}
	seeker->escape[seeker->n_escape] = c;
	seeker->escape_at[seeker->n_escape++] = at;
	symbol = read_escape(seeker);
	if (symbol == -1) {
		give_up_escape(mask, seeker, last);
	} else if (symbol >= 0) {
		seeker->n_escape = 0;
		if (seeker->row->spelling == BASE64_URL)
			symbol = read_plain(BASE64, (unsigned char)symbol);
		if (symbol > 255)
			seeker->met = 0;
		else if (symbol >= 0)
			meet(mask, seeker, (unsigned char)symbol, seeker->escape_at[0], mask->at,
				last);
	}
}

void nc_mask_look(struct nc_mask *mask, char *data, size_t size, bool is_text)
{
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)data[i];

		mask->begins[mask->at % NC_MASK_WINDOW] = 0;
		mask->is_text[mask->at % NC_MASK_WINDOW] = is_text;
		mask->at++;
		for (size_t k = 0; is_text && k < mask->n_seekers; k++)
			look(mask, &mask->seekers[k], c, data + i);
	}
}

size_t nc_mask_held(const struct nc_mask *mask)
{
	uint64_t first = mask->at;

	for (size_t i = 0; i < mask->n_seekers; i++) {
		const struct seeker *seeker = &mask->seekers[i];
		uint64_t at = seeker->n_escape > 0 ? seeker->escape_at[0] : mask->at;

		if (seeker->met > 0)
			at = start_of(mask, seeker->row->spelling, seeker->met, at);
		if (at < first)
			first = at;
	}
	return (size_t)(mask->at - first);
}

uint64_t nc_mask_found(const struct nc_mask *mask)
{
	return mask->found;
}

void nc_mask_text(struct nc_mask *mask, char *data, size_t size)
{
	nc_mask_begin(mask);
	nc_mask_look(mask, data, size, true);
}
