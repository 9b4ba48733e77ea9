#include "protocol/exchange.h"

#include <string.h>

#include "tests/check.h"

/* Stages: 4 and 9 hold the first of two, 6 and 11 the second; the fifth member holds nothing. */

static const struct hd_stage_bucket of_two[4] = {
	{ .stage = 0, .makers = 1, .readers = 1 }, { .stage = 0, .makers = 1, .readers = 3 },
	{ .stage = 1, .makers = 2, .readers = 2 }, { .stage = 1, .makers = 2, .readers = 2 },
};
static const struct hd_stage_buckets two = { .n = 4, .nstages = 2,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_two };

static void open_of(bool follows, struct hd_view *view, struct hd_passes *passes, struct hd_exchange *x,
	uint32_t worker)
{
	static const uint32_t member[] = { 4, 6, 9, 11, 13 }, ndevices[] = { 1, 1, 1, 1, 1 };
	static const uint64_t all[4] = { 31, 31, 31, 31 };
	struct hd_view_shape shape;

	hd_view_shape(&shape, 2, 1, false);
	assert_true(hd_view_staged(view, 1, member, ndevices, 5, 7, &shape, 2));
	view->rank[view->nranks] = (struct hd_vrank){ 13, HD_FOLLOWS | 1 };
	view->nfollows = follows;
	assert_int_equal(hd_passes_of_view(passes, view), HD_OK);
	assert_int_equal(hd_exchange_init(x, 7, 4, 0, NULL), HD_OK);
	hd_exchange_stages(x, &two);
	assert_int_equal(hd_exchange_begin(x, view, worker, 11, passes, all, NULL), HD_OK);
}

static void stages_open(struct hd_view *view, struct hd_passes *passes, struct hd_exchange *x,
	uint32_t worker)
{
	open_of(false, view, passes, x, worker);
}

static void roots_of_a_stage_are_those_of_its_buckets(void **state)
{
	struct hd_view view;
	struct hd_passes passes;
	struct hd_exchange x;

	(void)state;
	stages_open(&view, &passes, &x, 6);       /* owner of bucket 2 */
	assert_int_equal(x.held.owner[2], 1);
	assert_true(hd_exchange_makes(&x, hd_passes_find(&passes, 6, 0), 2));
	assert_false(hd_exchange_makes(&x, hd_passes_find(&passes, 4, 0), 2));
	assert_false(hd_exchange_root(&x, 4, 0, 2) || hd_exchange_has_root(&x, 4, 0, 2));
	assert_false(hd_exchange_root(&x, 9, 0, 2));
	assert_true(hd_exchange_root(&x, 6, 0, 2) && !hd_exchange_fold(&x, 2));
	assert_true(hd_exchange_root(&x, 11, 0, 2) && hd_exchange_fold(&x, 2));
	hd_exchange_finish(&x);
}

static void a_step_of_stages_takes_own_sums_and_the_norms_of_others(void **state)
{
	/* bucket 1 is read by both stages */
	static const struct { uint32_t worker; const char *sums, *norms; } is[] = {
		{ 4, "01", "23" }, { 6, "123", "0" }, { 9, "01", "23" }, { 11, "123", "0" }, { 13, "", "0123" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		struct hd_view view;
		struct hd_passes passes;
		struct hd_exchange x;
		stages_open(&view, &passes, &x, is[i].worker);
		assert_true(hd_exchange_table(&x));
		for (const char *b = is[i].sums; *b; b++) {
			assert_false(hd_exchange_complete(&x));
			assert_true(hd_exchange_norm(&x, (uint32_t)(*b - '0')));        /* is no sum */
			assert_true(hd_exchange_sum(&x, (uint32_t)(*b - '0')));
		}
		for (const char *b = is[i].norms; *b; b++) {
			CHECK(!hd_exchange_complete(&x), "worker %u before norm %c", is[i].worker, *b);
			assert_true(hd_exchange_norm(&x, (uint32_t)(*b - '0')));
		}
		CHECK(hd_exchange_complete(&x) && hd_exchange_may_update(&x), "worker %u", is[i].worker);
		assert_int_equal(x.fetchers, 0);
		assert_int_equal(hd_exchange_parm_to(&x, 1), 0);
		hd_exchange_finish(&x);
	}
}

static void norms_of_a_stage_come_from_the_last_of_its_holders(void **state)
{
	static const struct { uint32_t owner, last; uint64_t to; } is[4] = { { 0, 2, 26 }, { 2, 1, 16 },
		{ 1, 3, 21 }, { 3, 1, 21 } };
	struct hd_view view;
	struct hd_passes passes;
	struct hd_exchange x;

	(void)state;
	stages_open(&view, &passes, &x, 4);
	for (uint32_t b = 0; b < 4; b++)
		CHECK(x.held.owner[b] == is[b].owner && hd_exchange_norm_source(&x, b) == is[b].last &&
			hd_exchange_norm_to(&x, b) == is[b].to, "bucket %u: %u %u %llx", b, x.held.owner[b],
			hd_exchange_norm_source(&x, b), (unsigned long long)hd_exchange_norm_to(&x, b));
	hd_exchange_finish(&x);
}

/* The fifth follows the second stage. It has the sums that this one reads and the norm of the other bucket,
 * and others have norms from it alone: then it has the sum. Of bucket 3 the way round would be 3 4 1. */
static void a_follower_is_the_last_of_a_line(void **state)
{
	static const struct { uint32_t n, at[5]; } is[4] = { { 2, { 0, 2 } }, { 5, { 2, 3, 0, 1, 4 } },
		{ 3, { 1, 3, 4 } }, { 3, { 3, 1, 4 } } };
	struct hd_view view;
	struct hd_passes passes;
	struct hd_sum_line line;
	struct hd_exchange x;

	(void)state;
	open_of(true, &view, &passes, &x, 13);
	for (uint32_t b = 0; b < 4; b++) {
		hd_exchange_line(&x, b, &line);
		CHECK(line.n == is[b].n && !memcmp(line.at, is[b].at, line.n * sizeof *line.at),
			"bucket %u: %u %u %u %u", b, line.n, line.at[0], line.at[1], line.at[2]);
	}
	assert_int_equal(hd_exchange_norm_source(&x, 3), 4);
	assert_int_equal(hd_exchange_sum_from(&x, 3), 1);
	assert_true(hd_exchange_table(&x) && hd_exchange_norm(&x, 0));
	for (uint32_t b = 1; b < 4; b++) {
		assert_false(hd_exchange_complete(&x));
		assert_true(hd_exchange_sum(&x, b));
	}
	assert_true(hd_exchange_complete(&x) && hd_exchange_may_update(&x));
	hd_exchange_finish(&x);
}

static void members_that_lack_their_stages_fetch(void **state)
{
	static const uint64_t slots[4] = { 1, 3, 10, 10 };         /* the first stage at 4 alone */
	struct hd_view view;
	struct hd_passes passes;
	struct hd_exchange x;

	(void)state;
	stages_open(&view, &passes, &x, 4);
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 12, &passes, slots, NULL), HD_OK);
	assert_int_equal(x.fetchers, 4 | 8);
	hd_exchange_finish(&x);
}

static void a_view_of_other_stages_is_not_begun(void **state)
{
	struct hd_view view, other;
	struct hd_passes passes, bad;
	struct hd_exchange x;
	struct hd_diag diag = { "" };

	(void)state;
	stages_open(&view, &passes, &x, 4);
	other = view;
	other.shape = (struct hd_view_shape){ .nstages = 3, .width = 2, .place = { 0, 1, 0 } };
	assert_int_equal(hd_exchange_again(&x, &other, 4, 11, &passes, &(struct hd_exchange_past){ .nhave =
		0 },
		&diag), HD_E_BADPLAN);
	assert_non_null(strstr(diag.text, "has 3 stages, and the job 2"));
	hd_exchange_stages(&x, NULL);
	*diag.text = '\0';
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 12, &passes, NULL, &diag), HD_E_BADPLAN);
	assert_non_null(strstr(diag.text, "has 2 stages, and the job 1"));
	hd_exchange_stages(&x, &two);
	*diag.text = '\0';
	bad = passes;
	bad.pass[0].stage = 2;
	bad.nstages = 0;
	assert_int_equal(hd_exchange_again(&x, &view, 4, 11, &bad, &(struct hd_exchange_past){
		.have = &(struct hd_have){ 0, 1 }, .nhave = 1, .table = 1 }, &diag), HD_E_BADPLAN);
	assert_non_null(strstr(diag.text, "is of stage 2 of 2"));
	hd_exchange_finish(&x);
}

/* The step is finished from its sums, under a view in which a stage has another holder. */
static void of_stages_a_step_is_finished_by_the_holders_of_its_slots(void **state)
{
	static const struct hd_have have[] = { { 0, 4 }, { 2, 8 } }, chain[] = { { 0, 5 }, { 2, 10 } },
		alone[] = { { 0, 4 }, { 2, 10 } };
	struct hd_passes none = { 0 }, passes;
	struct hd_view view;
	struct hd_exchange x;

	(void)state;
	for (uint32_t done = 0; done < 2; done++) {
		stages_open(&view, &passes, &x, 4);
		assert_int_equal(hd_exchange_again(&x, &view, 4, 11, &none, &(struct hd_exchange_past){
			.have = have, .nhave = 2, .chain = chain, .nchain = 2, .table = 4, .done = done,
			.afresh = true }, NULL), HD_OK);
		assert_int_equal(x.fetchers, 0);
		assert_int_equal(hd_exchange_sum_from(&x, 0), 2);
		assert_int_equal(hd_exchange_norm_source(&x, 2), 1);
		assert_int_equal(hd_exchange_norm_to(&x, 2), 21 & ~done);
		assert_true(hd_exchange_table(&x));
		assert_int_equal(hd_exchange_complete(&x), done);          /* it has sealed it before */
		for (uint32_t b = 0; b < 4; b++)
			assert_true(b < 2 ? hd_exchange_sum(&x, b) : hd_exchange_norm(&x, b));
		assert_true(hd_exchange_complete(&x));
		/* a member that lacks its slots has no use for parameters now: it fetches both */
		assert_int_equal(hd_exchange_again(&x, &view, 4, 11, &none, &(struct hd_exchange_past){
			.have = have, .nhave = 2, .chain = alone, .nchain = 2, .table = 4 }, NULL), HD_OK);
		assert_int_equal(hd_exchange_parm_to(&x, 0), 0);
		hd_exchange_finish(&x);
	}
}

/* A tensor lies in buckets 1 and 2. Worker 4 and 9 hold the first of them alone, 6 and 11 both: so squares of
 * 2 go from the last of its chain to the first stage. Another in 2 and 3 is whole where it is held. */
static void parts_of_a_tensor_that_others_hold_are_measured_by_them(void **state)
{
	static uint32_t first[] = { 0, 2, 4 }, bucket[] = { 1, 2, 2, 3 };
	static const struct hd_have have[] = { { 0, 0 } }, chain[] = { { 0, 5 }, { 1, 13 }, { 2, 8 } };
	static const uint64_t all[4] = { 31, 31, 31, 31 };
	struct hd_stage_buckets tensors = two;
	struct hd_view view;
	struct hd_passes passes;
	struct hd_exchange x;

	(void)state;
	tensors.tensors = (struct hd_bucket_tensors){ 2, first, bucket };
	for (uint32_t me = 0; me < 5; me++) {
		const bool lacks = me == 0 || me == 2;
		stages_open(&view, &passes, &x, (uint32_t[]){ 4, 6, 9, 11, 13 }[me]);
		assert_false(x.joint);
		hd_exchange_stages(&x, &tensors);
		assert_int_equal(hd_exchange_begin(&x, &view, view.member[me], 12, &passes, all, NULL),
			HD_OK);
		assert_true(x.joint);
		for (uint32_t b = 0; b < 4; b++)
			CHECK(hd_exchange_ratio_to(&x, b) == (b == 2 ? 5 : 0), "squares of %u go to %llx", b,
				(unsigned long long)hd_exchange_ratio_to(&x, b));
		assert_int_equal(hd_exchange_ratio_source(&x, 2), 3);
		for (uint32_t b = 0; b < 4; b++) {
			(void)hd_exchange_sum(&x, b);
			(void)hd_exchange_norm(&x, b);
			hd_exchange_measure(&x, b);
			CHECK(hd_exchange_is_measured(&x, b) == hd_exchange_chained(&x, b), "member %u", me);
		}
		hd_exchange_measure(&x, 4);
		assert_true(hd_exchange_table(&x) && hd_exchange_may_update(&x));
		assert_int_equal(hd_exchange_complete(&x), !lacks);
		assert_true(hd_exchange_ratio(&x, 2) && !hd_exchange_ratio(&x, 2) && !hd_exchange_ratio(&x,
			4));
		assert_true(hd_exchange_complete(&x));
		/* again without the second copy of the first stage: they come once more, 11 has measured */
		assert_int_equal(hd_exchange_again(&x, &view, view.member[me], 12, &passes,
			&(struct hd_exchange_past){ .have = have, .nhave = 1, .chain = chain, .nchain = 3,
			.done = 1 }, NULL), HD_OK);
		assert_int_equal(hd_exchange_is_measured(&x, 2), me % 2);
		assert_int_equal(hd_exchange_ratio_to(&x, 2), 4);
		assert_int_equal(hd_exchange_complete(&x), me == 0);
		assert_int_equal(x.due_ratios, me == 2);
		assert_int_equal(hd_exchange_begin(&x, &view, view.member[me], 13, &passes, all, NULL),
			HD_OK);
		assert_false(hd_exchange_is_measured(&x, 2));
		hd_exchange_finish(&x);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_of_a_stage_are_those_of_its_buckets),
		cmocka_unit_test(a_step_of_stages_takes_own_sums_and_the_norms_of_others),
		cmocka_unit_test(norms_of_a_stage_come_from_the_last_of_its_holders),
		cmocka_unit_test(a_follower_is_the_last_of_a_line),
		cmocka_unit_test(members_that_lack_their_stages_fetch),
		cmocka_unit_test(a_view_of_other_stages_is_not_begun),
		cmocka_unit_test(of_stages_a_step_is_finished_by_the_holders_of_its_slots),
		cmocka_unit_test(parts_of_a_tensor_that_others_hold_are_measured_by_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
