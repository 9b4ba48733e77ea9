#include "data/packing.h"

#include <stdlib.h>

#include "base/philox.h"
#include "data/augment.h"
#include "tests/data_disk.h"

enum { DOCUMENTS = 40, PIECES = 400 };

static uint32_t draw(uint32_t i, uint32_t below)
{
	const uint32_t counter[4] = { i };

	return hd_philox(counter, hd_philox_key(11, HD_RNG_USER)).word[0] % below;
}

/* ---- oracles: a list of pieces, and a scan over all samples for each of them ---- */

struct naive { uint64_t at[PIECES]; uint32_t len[PIECES], sample[PIECES]; bool on[PIECES]; uint32_t n,
	nsamples; };

static void naive_put(struct naive *o, uint64_t at, uint32_t len, bool on, uint32_t sample)
{
	assert_true(o->n < PIECES);
	o->at[o->n] = at;
	o->len[o->n] = len;
	o->on[o->n] = on;
	o->sample[o->n++] = sample;
	o->nsamples = sample >= o->nsamples ? sample + 1 : o->nsamples;
}

static void naive_order(struct naive *o, uint32_t t, const uint64_t *begin, uint32_t n)
{
	uint64_t slot = 0;

	for (uint32_t d = 0; d < n; d++)
		for (uint64_t i = begin[d]; i < begin[d + 1]; i++) {
			if (i + 1 == begin[d + 1] && (i == begin[d] || slot % t == 0 ||
				o->on[o->n - 1] == false ||
				o->at[o->n - 1] + o->len[o->n - 1] != i))
				continue;                    /* alone at its end */
			const bool goes_on = o->n && slot % t && o->at[o->n - 1] + o->len[o->n - 1] == i &&
				i > begin[d];
			if (goes_on)
				o->len[o->n - 1]++;
			else
				naive_put(o, i, 1, true, (uint32_t)(slot / t));
			o->on[o->n - 1] = i + 1 < begin[d + 1];
			slot++;
		}
}

static void naive_fit(struct naive *o, uint32_t t, const uint64_t *begin, uint32_t n)
{
	uint32_t used[PIECES] = { 0 };

	for (uint32_t d = 0; d < n; d++)
		for (uint64_t i = begin[d]; begin[d + 1] - i > 1; ) {
			const uint64_t left = begin[d + 1] - i;
			const uint32_t len = left < t ? (uint32_t)left : t;
			uint32_t s = 0;
			while (used[s] + len > t)
				s++;
			used[s] += len;
			naive_put(o, i, len, len < left, s);
			i += len;
			if (i == begin[d + 1])
				break;
		}
}

static void compare(const struct hd_packing *p, const struct naive *o)
{
	uint64_t k = 0;

	CHECK(p->npieces == o->n && p->nsamples == o->nsamples, "%llu pieces in %llu, not %u in %u",
		(unsigned long long)p->npieces, (unsigned long long)p->nsamples, o->n, o->nsamples);
	for (uint32_t s = 0; s < o->nsamples; s++) {
		assert_int_equal(p->first[s], k);
		for (uint32_t i = 0; i < o->n; i++)
			if (o->sample[i] == s) {
				const struct hd_packing_piece *piece = &p->piece[k++];
				CHECK(piece->at == o->at[i] && piece->len == o->len[i] &&
					piece->goes_on == o->on[i],
					"sample %u piece %u: %llu+%u%d, not %llu+%u%d", s, i,
					(unsigned long long)piece->at,
					piece->len, piece->goes_on, (unsigned long long)o->at[i], o->len[i],
					o->on[i]);
			}
	}
	assert_int_equal(p->first[p->nsamples], p->npieces);
}

static void pieces_stand_where_a_plain_scan_puts_them(void **state)
{
	static struct naive order, fit;
	uint32_t at = 0, ntried = 0;

	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		uint64_t begin[DOCUMENTS + 1] = { 0 };
		const uint32_t t = 2 + draw(at++, 8), n = 1 + draw(at++, DOCUMENTS);
		struct hd_arena arena;
		struct hd_packing p;
		struct hd_diag diag = { "" };
		for (uint32_t d = 0; d < n; d++)
			begin[d + 1] = begin[d] + draw(at++, 25);
		order = fit = (struct naive){ .n = 0 };
		naive_order(&order, t, begin, n);
		naive_fit(&fit, t, begin, n);
		hd_arena_init(&arena, 0);
		if (fit.n) {
			CHECK(!hd_packing_make(&p, &arena, HD_PACKING_ORDER, t, begin, n, &diag), "%s",
				diag.text);
			compare(&p, &order);
			CHECK(!hd_packing_make(&p, &arena, HD_PACKING_FIT, t, begin, n, &diag), "%s",
				diag.text);
			compare(&p, &fit);
			ntried++;
		} else {
			assert_int_equal(hd_packing_make(&p, &arena, HD_PACKING_FIT, t, begin, n, NULL),
				HD_E_INPUT);
		}
		hd_arena_finish(&arena);
	}
	assert_true(ntried > 250);
}

/* ---- the set ---- */

static uint16_t token_of(uint32_t i) { return (uint16_t)(i + 10); }

static void put_tokens(const char *path, uint32_t n)
{
	static uint8_t bytes[2048];

	put_file(&sim.fs, path, bytes, make_tokens(bytes, n, token_of));
}

static void put_boundaries(const char *path, const uint64_t *at, size_t n)
{
	uint8_t bytes[256];

	for (size_t i = 0; i < n; i++)
		store_le(bytes + 8 * i, at[i], 8);
	put_file(&sim.fs, path, bytes, 8 * n);
}

static struct hd_data_spec spec_of(enum hd_packing_how how)
{
	return (struct hd_data_spec){ .kind = "tokens", .path = "d/t.bin", .boundaries = "d/t.at",
		.pack = how,
		.context = 4, .train = 1, .tokens = 100, .pad = -1 };
}

static void check_sample(const struct hd_dataset *set, uint64_t i, const int32_t x[4], const int32_t y[4])
{
	int32_t gx[4], gy[4];

	read_sample(set, 0, i, gx, gy);
	CHECK(!memcmp(gx, x, sizeof gx) && !memcmp(gy, y, sizeof gy),
		"sample %llu: x %d %d %d %d, y %d %d %d %d",
		(unsigned long long)i, gx[0], gx[1], gx[2], gx[3], gy[0], gy[1], gy[2], gy[3]);
}

/* Documents of 3, 6 and 2 tokens: 10..12, 13..18, 19..20. */
static void no_label_crosses_a_document(void **state)
{
	static const uint64_t at[] = { 0, 3, 9, 11 };

	(void)state;
	put_tokens("d/t.bin", 11);
	put_boundaries("d/t.at", at, 4);
	struct hd_dataset *set = open_set(&sim.fs, spec_of(HD_PACKING_ORDER));
	assert_true(set->count == 3);
	check_sample(set, 0, (int32_t[]){ 10, 11, 12, 13 }, (int32_t[]){ 11, 12, -1, 14 });
	check_sample(set, 1, (int32_t[]){ 14, 15, 16, 17 }, (int32_t[]){ 15, 16, 17, 18 });
	check_sample(set, 2, (int32_t[]){ 19, 20, 0, 0 }, (int32_t[]){ 20, -1, -1, -1 });
	hd_dataset_destroy(set);
	set = open_set(&sim.fs, spec_of(HD_PACKING_FIT));
	CHECK(strstr(set->about, "3 documents of 11 tokens in 3 samples of 4"), "%s", set->about);
	check_sample(set, 0, (int32_t[]){ 10, 11, 12, 0 }, (int32_t[]){ 11, 12, -1, -1 });
	check_sample(set, 1, (int32_t[]){ 13, 14, 15, 16 }, (int32_t[]){ 14, 15, 16, 17 });
	check_sample(set, 2, (int32_t[]){ 17, 18, 19, 20 }, (int32_t[]){ 18, -1, 20, -1 });
	hd_dataset_destroy(set);
}

/* Documents of 3, 6 and 2 tokens again. */
static void positions_begin_again_and_fillers_are_hidden(void **state)
{
	static const uint64_t at[] = { 0, 3, 9, 11 };
	static const int32_t fit[3][3][4] = { { { 0, 1, 2, 0 }, { 1, 1, 1, 0 }, { 1, 1, 1, 0 } },
		{ { 0, 1, 2, 3 }, { 1, 1, 1, 1 }, { 1, 1, 1, 1 } },
		{ { 0, 1, 0, 1 }, { 1, 1, 1, 1 }, { 1, 1, 2, 2 } } };
	const struct hd_data_want want[] = { { "position_ids", HD_I32, 1, { 4 }, 4 },
		{ "attention_mask", HD_I32, 1, { 4 }, 0 }, { "document_ids", HD_I32, 1, { 4 }, 0 } };
	struct hd_data_spec spec = spec_of(HD_PACKING_FIT);
	int32_t got[5][4];
	void *out[] = { got[0], got[1], got[2], got[3], got[4] };

	(void)state;
	put_tokens("d/t.bin", 11);
	put_boundaries("d/t.at", at, 4);
	spec.want = want;
	spec.nwant = 3;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->nfields == 5 && !strcmp(set->field[2].name, "attention_mask"));
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(hd_dataset_read(set, 0, i, HD_NO_EPOCH, out, NULL), HD_OK);
		assert_memory_equal(got[3], fit[i][0], sizeof got[3]);
		assert_memory_equal(got[2], fit[i][1], sizeof got[2]);
		assert_memory_equal(got[4], fit[i][2], sizeof got[4]);
	}
	hd_dataset_destroy(set);
	spec.want = (struct hd_data_want[]){ { "position_ids", HD_I32, 1, { 4 }, 3 } };
	spec.nwant = 1;
	check_refused(&sim.fs, spec, HD_E_INPUT, "the model knows 3 positions, its samples have 4 tokens");
}

static void several_files_have_boundaries_each(void **state)
{
	static const uint64_t one[] = { 0, 3 }, two[] = { 0, 2, 5 };
	struct hd_data_spec spec = spec_of(HD_PACKING_FIT);

	(void)state;
	put_tokens("d/a.bin", 3);
	put_tokens("d/b.bin", 5);
	put_boundaries("d/a.at", one, 2);
	put_boundaries("d/b.at", two, 3);
	spec.path = "d/*.bin";
	spec.boundaries = "d/*.at";
	struct hd_dataset *set = open_set(&sim.fs, spec);
	struct hd_hash before = set->hash;
	check_sample(set, 1, (int32_t[]){ 10, 11, 0, 0 }, (int32_t[]){ 11, -1, -1, -1 });
	check_sample(set, 2, (int32_t[]){ 12, 13, 14, 0 }, (int32_t[]){ 13, 14, -1, -1 });
	hd_dataset_destroy(set);
	put_boundaries("d/b.at", (const uint64_t[]){ 0, 3, 5 }, 3);
	set = open_set(&sim.fs, spec);
	assert_false(hd_hash_same(before, set->hash));
	hd_dataset_destroy(set);
	spec.boundaries = "d/a.at";
	check_refused(&sim.fs, spec, HD_E_INPUT, "data.boundaries d/a.at: 1 files, data.path d/*.bin has 2");
}

static void boundaries_that_are_none_are_refused(void **state)
{
	static const struct { uint64_t at[4]; size_t n; const char *says; } cases[] = {
		{ { 1, 11 }, 2, "d/t.at: boundary 0 is 1: they begin with 0" }, { { 0, 5, 4, 11 }, 4, "d/t.at: boundary 2 is 4" },
		{ { 0, 12, 11 }, 3, "d/t.at: boundary 1 is 12" }, { { 0, 10 }, 2, "boundary 1 is 10: they begin with 0, never fall, "
			"and end with the 11 tokens of d/t.bin" }, { { 0 }, 1, "d/t.at has 8 bytes" },
	};
	struct hd_data_spec spec = spec_of(HD_PACKING_ORDER);

	(void)state;
	put_tokens("d/t.bin", 11);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_boundaries("d/t.at", cases[i].at, cases[i].n);
		check_refused(&sim.fs, spec, HD_E_INPUT, cases[i].says);
	}
	spec.boundaries = NULL;
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.pack needs to know where documents begin");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_stand_where_a_plain_scan_puts_them),
		ON_DISK(no_label_crosses_a_document),
		ON_DISK(positions_begin_again_and_fillers_are_hidden),
		ON_DISK(several_files_have_boundaries_each),
		ON_DISK(boundaries_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
