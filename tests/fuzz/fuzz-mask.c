/*
 * What a host sends back, byte by byte with framing between, and in one piece: the same is masked,
 * nothing else is touched, and the value itself is nowhere afterwards. The first byte says how
 * often there is framing.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egress/mask.h"

#define VALUE "aXaab"
#define TEXT_MAX 4096U

static struct nc_secrets secrets;
static struct nc_host host;

static struct nc_mask *new_mask(void)
{
	static const struct nc_egress_secret secret = {.placeholder = "NACRE-SECRET",
		.value = VALUE,
		.host = "good.test",
		.header = "Authorization"};

	if (secrets.n == 0) {
		assert(nc_secrets_add(&secrets, &secret) == 0);
		assert(nc_host_parse("good.test", strlen("good.test"), &host) == 0);
	}
	return nc_mask_new(&secrets, &host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_mask *whole = new_mask(), *pieces = new_mask();
	static char first[TEXT_MAX], second[3 * TEXT_MAX];
	const size_t often = size > 0 ? data[0] % 5U + 1 : 1;
	const size_t n = size == 0 ? 0 : size - 1 < TEXT_MAX ? size - 1 : TEXT_MAX;
	size_t at = 0, gone = 0;

	assert(whole && pieces);
	memcpy(first, data + (size > 0), n);
	nc_mask_text(whole, first, n);
	assert(!memmem(first, n, VALUE, strlen(VALUE)));
	nc_mask_begin(pieces);
	for (size_t i = 0; i < n; i++) {
		second[at] = (char)data[1 + i];
		nc_mask_look(pieces, second + at++, 1, true);
		if (i % often == 0) {
			second[at] = '#';
			nc_mask_look(pieces, second + at++, 1, false);
		}
		assert(nc_mask_held(pieces) <= at && at - nc_mask_held(pieces) >= gone);
		gone = at - nc_mask_held(pieces);
	}
	at = 0;
	for (size_t i = 0; i < n; i++) {
		assert(second[at] == first[i]);
		assert(first[i] == (char)data[1 + i] || first[i] == '*');
		at++;
		if (i % often == 0)
			assert(second[at++] == '#');
	}
	nc_mask_free(whole);
	nc_mask_free(pieces);
	return 0;
}
