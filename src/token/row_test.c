#include "token/row_int.h"

#include <string.h>

#include "tests/check.h"

/* What is right was written down from the package `tokenizers`; bench/tokenize_rows.py compares at large. */

enum { MOST = 8, CLS = 2, SEP = 3, PAD = 0 };

static const struct hd_token_slots single = { { { CLS, 0, 0 }, { HD_TOKEN_NONE, 0, 0 }, { SEP, 0, 0 } }, 3 };
static const struct hd_token_slots pair = { { { CLS, 0, 0 }, { HD_TOKEN_NONE, 0, 0 }, { SEP, 0, 0 },
	{ HD_TOKEN_NONE, 1, 1 }, { SEP, 0, 1 } }, 5 };
#define RIGHT { .pad = HD_TOKEN_NONE }
#define LEFT { .cut_left = true, .pad_left = true, .pad = HD_TOKEN_NONE, .pad_kind = 1 }

static const struct {
	struct hd_token_fill fill;
	uint32_t na, nb;                  /* tokens 10, 11, .. and 20, 21, ..; nb 0: one text */
	uint32_t id[MOST]; uint8_t kind[MOST]; uint32_t first, n;
	bool cut;
} cases[] = {
	{ RIGHT, 3, 0, { 2, 10, 11, 12, 3 }, { 0 }, 0, 5, false },
	{ RIGHT, 0, 0, { 2, 3 }, { 0 }, 0, 2, false },
	{ RIGHT, 9, 0, { 2, 10, 11, 12, 13, 14, 15, 3 }, { 0 }, 0, 8, true },
	{ LEFT, 9, 0, { 2, 13, 14, 15, 16, 17, 18, 3 }, { 0 }, 0, 8, true },
	{ LEFT, 3, 0, { 0, 0, 0, 2, 10, 11, 12, 3 }, { 1, 1, 1 }, 3, 5, false },
	{ RIGHT, 2, 2, { 2, 10, 11, 3, 20, 21, 3 }, { 0, 0, 0, 0, 1, 1, 1 }, 0, 7, false },
	/* five places: the longer loses first, then both, the second has the odd one */
	{ RIGHT, 1, 9, { 2, 10, 3, 20, 21, 22, 23, 3 }, { 0, 0, 0, 1, 1, 1, 1, 1 }, 0, 8, true },
	{ RIGHT, 9, 1, { 2, 10, 11, 12, 13, 3, 20, 3 }, { 0, 0, 0, 0, 0, 0, 1, 1 }, 0, 8, true },
	{ RIGHT, 9, 9, { 2, 10, 11, 3, 20, 21, 22, 3 }, { 0, 0, 0, 0, 1, 1, 1, 1 }, 0, 8, true },
	{ RIGHT, 9, 8, { 2, 10, 11, 12, 3, 20, 21, 3 }, { 0, 0, 0, 0, 0, 1, 1, 1 }, 0, 8, true },
	{ { .cut = HD_TOKEN_CUT_FIRST, .pad = HD_TOKEN_NONE }, 9, 4, { 2, 10, 3, 20, 21, 22, 23, 3 },
		{ 0, 0, 0, 1, 1, 1, 1, 1 }, 0, 8, true },
	{ { .cut = HD_TOKEN_CUT_SECOND, .pad = HD_TOKEN_NONE }, 4, 9, { 2, 10, 11, 12, 13, 3, 20, 3 },
		{ 0, 0, 0, 0, 0, 0, 1, 1 }, 0, 8, true },
};

static enum hd_err fill_row(const struct hd_token_fill *fill, const struct hd_token_slots *slots, uint32_t na,
	uint32_t nb, uint32_t most, struct hd_token_row *row, struct hd_diag *diag)
{
	uint32_t a[16], b[16];
	const struct hd_token_ids own[2] = { { a, na, 16 }, { b, nb, 16 } };

	for (uint32_t i = 0; i < 16; i++) {
		a[i] = 10 + i;
		b[i] = 20 + i;
	}
	return hd_token_fill_row(fill, slots, own, "t", most, PAD, row, diag);
}

static void texts_are_cut_joined_and_filled_up(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		uint32_t id[MOST];
		uint8_t kind[MOST];
		struct hd_token_row row = { .id = id, .kind = kind };
		struct hd_diag diag = { "" };
		CHECK(fill_row(&cases[c].fill, cases[c].nb ? &pair : &single, cases[c].na, cases[c].nb, MOST,
			&row,
			&diag) == HD_OK, "case %zu: %s", c, diag.text);
		CHECK(!memcmp(id, cases[c].id, sizeof id), "case %zu: tokens", c);
		CHECK(!memcmp(kind, cases[c].kind, sizeof kind), "case %zu: kinds", c);
		CHECK(row.first == cases[c].first && row.n == cases[c].n && row.cut == cases[c].cut,
			"case %zu: %u tokens from %u, cut %d", c, row.n, row.first, row.cut);
	}
}

static void what_cannot_fit_is_refused(void **state)
{
	static const struct hd_token_fill first = { .cut = HD_TOKEN_CUT_FIRST, .pad = HD_TOKEN_NONE },
		plain = RIGHT;
	static const struct hd_token_slots nothing;
	uint32_t id[MOST];
	uint8_t kind[MOST];
	struct hd_token_row row = { .id = id, .kind = kind };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(fill_row(&plain, &single, 3, 0, 2, &row, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "adds 2 tokens, the model reads 2: no text fits"), "%s", diag.text);
	diag = (struct hd_diag){ "" };
	assert_int_equal(fill_row(&first, &pair, 9, 5, MOST, &row, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "leaves no room for it: 5 tokens of 5"), "%s", diag.text);
	diag = (struct hd_diag){ "" };
	assert_int_equal(fill_row(&plain, &nothing, 1, 1, MOST, &row, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "no form for two texts"), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_cut_joined_and_filled_up),
		cmocka_unit_test(what_cannot_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
