#include "graph/layout.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

/* Parameter sizes around every boundary of segments, chunks and alignment. */
static const int64_t sizes[] = { 1, 15, 16, 17, 1000, 65520, 65535, 65536, 65537, 131072, 131073 };
enum { NSIZES = sizeof sizes / sizeof sizes[0] };

static void graph_of(struct hd_subject *s, const int64_t *len, uint32_t n)
{
	hd_subject_init(s);
	for (uint32_t i = 0; i < n; i++) {
		char name[16];
		uint32_t value;
		snprintf(name, sizeof name, "p%u", i);
		assert_int_equal(hd_graph_param(&s->graph, name, 1, &len[i], HD_INIT_ZEROS, 0, &value, NULL),
			HD_OK);
	}
}

/* The rules of the header, read off the result without the code's own arithmetic. */
static void check_rules(const struct hd_layout *l, const int64_t *len, uint32_t n)
{
	uint64_t at = 0, params = 0;
	uint32_t s = 0, c = 0;

	for (uint32_t p = 0; p < n; p++) {
		CHECK(l->at[p] == at && at % 16 == 0 && l->len[p] == (uint64_t)len[p], "tensor %u", p);
		CHECK(l->first_segment[p] == s, "tensor %u", p);
		for (int64_t left = len[p], from = 0; left > 0; s++) {
			int64_t take = left < 65536 ? left : 65536;
			CHECK(l->segment[s].at == at + (uint64_t)from &&
				l->segment[s].len == (uint64_t)take && l->segment[s].param == p, "segment %u",
				s);
			from += take;
			left -= take;
		}
		params += (uint64_t)len[p];
		at += ((uint64_t)len[p] + 15) / 16 * 16;
	}
	assert_int_equal(l->elems, at);
	assert_int_equal(l->params_elems, params);
	assert_int_equal(l->nsegments, s);
	assert_int_equal(l->first_segment[n], s);
	for (uint64_t end = 0, first = 0; c < l->nchunks; c++) {
		const struct hd_chunk *k = &l->chunk[c];
		CHECK(k->at == end && k->first_segment == first && k->nsegments > 0 && k->len <= 65536,
			"chunk %u", c);
		for (uint32_t i = 0; i < k->nsegments; i++)
			CHECK(l->segment[first + i].chunk == c, "chunk %u", c);
		end += k->len;
		first += k->nsegments;
		if (c + 1 < l->nchunks) {
			/* it was closed because the next segment did not fit */
			uint64_t next_end = first + 1 < l->nsegments ? l->segment[first + 1].at : l->elems;
			CHECK(next_end - k->at > 65536, "chunk %u was closed too early", c);
		} else {
			CHECK(end == l->elems && first == l->nsegments, "the last chunk ends at %llu",
				(unsigned long long)end);
		}
	}
	uint64_t end = 0, first = 0, nbuckets = hd_layout_nbuckets(l);
	for (uint32_t b = 0; b < nbuckets; b++) {
		struct hd_chunk k = hd_layout_bucket(l, b);
		CHECK(k.at == end && k.first_segment == first && k.len * 4 <= HD_BUCKET_BYTES, "bucket %u",
			b);
		CHECK(k.at == l->chunk[4 * b].at, "bucket %u", b);
		end += k.len;
		first += k.nsegments;
	}
	assert_int_equal(end, l->elems);
	assert_int_equal(first, l->nsegments);
}

static void layouts_tile_for_all_pairs_and_triples_of_sizes(void **state)
{
	(void)state;
	for (int i = 0; i < NSIZES * NSIZES * NSIZES; i++) {
		int64_t len[3] = { sizes[i % NSIZES], sizes[i / NSIZES % NSIZES],
			sizes[i / NSIZES / NSIZES] };
		struct hd_subject s;
		struct hd_layout l;
		graph_of(&s, len, i % 2 ? 3 : 2);
		assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, NULL), HD_OK);
		check_rules(&l, len, i % 2 ? 3 : 2);
		hd_subject_finish(&s);
	}
}

/* Any runs of segments as buckets, and back again: chunks tile as by the rules, and none lies in two. */
static void a_cut_layout_has_the_buckets_that_were_given(void **state)
{
	static const int64_t len[] = { 131073, 17, 65536, 1000, 1000, 300000, 1 };
	static const uint32_t cuts[][8] = { { 13 }, { 1, 1, 1, 1, 1, 1, 1, 6 }, { 2, 5, 6 }, { 12, 1 },
		{ 4, 3, 6 } };
	struct hd_subject s;
	struct hd_layout l, was;
	struct hd_diag diag = { "" };

	(void)state;
	graph_of(&s, len, sizeof len / sizeof *len);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, NULL), HD_OK);
	assert_int_equal(l.nsegments, 13);
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		uint32_t n = 0, segment = 0, chunk = 0;
		while (n < 8 && cuts[i][n])
			n++;
		CHECK(hd_layout_cut(&l, n, cuts[i], &s.arena, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(hd_layout_nbuckets(&l), n);
		uint64_t at = 0, most = 0;
		for (uint32_t b = 0; b < n; b++) {
			const struct hd_chunk run = hd_layout_bucket(&l, b);
			assert_true(run.at == at && run.first_segment == segment &&
				run.nsegments == cuts[i][b]);
			assert_int_equal(hd_layout_first_chunk(&l, b), chunk);
			for (; chunk < l.nchunks && l.chunk[chunk].first_segment < segment +
				cuts[i][b]; chunk++) {
				assert_int_equal(hd_layout_bucket_of(&l, chunk), b);
				assert_true(l.chunk[chunk].len <= 65536 && l.chunk[chunk].at == at);
				at += l.chunk[chunk].len;
			}
			segment += cuts[i][b];
			most = run.len * 4 > most ? run.len * 4 : most;
		}
		assert_true(at == l.elems && chunk == l.nchunks && hd_layout_most_bytes(&l) == most);
	}
	was = l;
	assert_int_equal(hd_layout_cut(&l, 2, (const uint32_t[]){ 12, 2 }, &s.arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_layout_cut(&l, 2, (const uint32_t[]){ 13, 0 }, &s.arena, NULL), HD_E_INVAL);
	assert_memory_equal(&l, &was, sizeof l);
	assert_int_equal(hd_layout_cut(&l, 0, NULL, &s.arena, NULL), HD_OK);
	check_rules(&l, len, sizeof len / sizeof *len);
	hd_subject_finish(&s);
}

static void small_tensors_share_a_chunk(void **state)
{
	struct hd_subject s;
	struct hd_layout l;

	(void)state;
	graph_of(&s, (int64_t[]){ 65520, 1, 1 }, 3);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, NULL), HD_OK);
	assert_int_equal(l.nchunks, 2);
	assert_int_equal(l.chunk[0].len, 65536);
	assert_int_equal(l.chunk[0].nsegments, 2);
	assert_int_equal(l.chunk[1].len, 16);
	hd_subject_finish(&s);
}

static void buffers_lie_in_a_vector_of_their_own(void **state)
{
	static const int64_t len[] = { 17, 16, 1 };
	static const uint64_t at[] = { 0, 32, 48 };
	static const char *const names[] = { "m", "n", "o" };
	struct hd_subject s;
	struct hd_layout l;
	uint32_t value;

	(void)state;
	graph_of(&s, (int64_t[]){ 20, 1 }, 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hd_graph_buffer(&s.graph, names[i], 1, &len[i], HD_INIT_ONES, &value, NULL),
			HD_OK);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, NULL), HD_OK);
	check_rules(&l, (int64_t[]){ 20, 1 }, 2);
	assert_int_equal(l.nbuffers, 3);
	assert_int_equal(l.buffer_elems, 32 + 16 + 16);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(l.buffer_len[i], len[i]);
		assert_int_equal(l.buffer_at[i], at[i]);
	}
	hd_subject_finish(&s);
}

static void a_graph_without_parameters_has_no_layout(void **state)
{
	struct hd_subject s;
	struct hd_layout l;

	(void)state;
	hd_subject_init(&s);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, &s.diag), HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "nothing to train"));
	hd_subject_finish(&s);
}

static void more_parameters_than_2_to_the_40_are_refused(void **state)
{
	struct hd_subject s;
	struct hd_layout l;
	uint32_t value;

	(void)state;
	hd_subject_init(&s);
	assert_int_equal(hd_graph_param(&s.graph, "big", 2, (int64_t[]){ 1 << 20, 1 << 20 }, HD_INIT_ZEROS, 0,
		&value, NULL), HD_OK);
	assert_int_equal(hd_graph_param(&s.graph, "more", 1, (int64_t[]){ 1 }, HD_INIT_ZEROS, 0, &value,
		NULL), HD_OK);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, &s.diag), HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "'more'"));
	hd_subject_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_tile_for_all_pairs_and_triples_of_sizes),
		cmocka_unit_test(a_cut_layout_has_the_buckets_that_were_given),
		cmocka_unit_test(small_tensors_share_a_chunk),
		cmocka_unit_test(buffers_lie_in_a_vector_of_their_own),
		cmocka_unit_test(a_graph_without_parameters_has_no_layout),
		cmocka_unit_test(more_parameters_than_2_to_the_40_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
