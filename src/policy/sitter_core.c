/*
 * tree-sitter in one unit, as its own lib.c has it, but for the search in its tables: in most
 * states of a parser that is one symbol after the other, three times for each token, and mostly
 * for what was looked up shortly before.
 */
#include <string.h>

#define ts_language_lookup ts_language_search
#include <language.h>
#undef ts_language_lookup

#define MEMO_BITS 11

/* What was found last, for each place that a state and a symbol may have. */
static struct {
	uint32_t key; /* no state that is searched is 0 */
	uint16_t value;
} memos[1U << MEMO_BITS];
static const TSLanguage *memos_of;

static inline uint16_t ts_language_lookup(const TSLanguage *self, TSStateId state, TSSymbol symbol)
{
	const uint32_t key = (uint32_t)state << 16 | symbol;
	const uint32_t at = key * 0x9e3779b1U >> (32 - MEMO_BITS);

	if (state < self->large_state_count)
		return self->parse_table[state * self->symbol_count + symbol];
	if (memos_of != self) {
		memset(memos, 0, sizeof(memos));
		memos_of = self;
	}
	if (memos[at].key != key) {
		memos[at].value = ts_language_search(self, state, symbol);
		memos[at].key = key;
	}
	return memos[at].value;
}

#include <lib.c> /* NOLINT(bugprone-suspicious-include) */
