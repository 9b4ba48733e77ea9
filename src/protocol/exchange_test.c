#include "protocol/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

/* Three workers, 7 virtual nodes (3 2 2), 5 buckets: worker 4 has roots (1,0) (0,2), 6 (0,3) (0,4), 9
 * (0,5) (0,6). */
struct rig { struct hd_view view; struct hd_passes passes; struct hd_exchange x[3]; };

static void rig_open(struct rig *rig)
{
	hd_view_even(&rig->view, 1, (uint32_t[]){ 4, 6, 9 }, (uint32_t[]){ 1, 1, 1 }, 3, 7);
	assert_int_equal(hd_passes_of_view(&rig->passes, &rig->view), HD_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(hd_exchange_init(&rig->x[i], 7, 5, 0, NULL), HD_OK);
		assert_int_equal(hd_exchange_begin(&rig->x[i], &rig->view, rig->view.member[i], 11,
			&rig->passes, NULL, NULL), HD_OK);
	}
}

static void rig_close(struct rig *rig)
{
	for (uint32_t i = 0; i < 3; i++)
		hd_exchange_finish(&rig->x[i]);
}

static void a_bucket_is_folded_once_at_its_owner_when_every_root_is_there(void **state)
{
	static const struct { uint32_t worker, ordinal; } all[] = { { 9, 0 }, { 4, 1 }, { 6, 0 }, { 9, 1 },
		{ 4, 0 }, { 6, 1 } };
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (uint32_t b = 0; b < 5; b++)
		for (uint32_t i = 0; i < 3; i++) {
			bool owner = hd_bucket_owner(b, 5, 3) == i;
			for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
				assert_false(hd_exchange_fold(&rig.x[i], b));
				CHECK(hd_exchange_root(&rig.x[i], all[k].worker, all[k].ordinal, b) == owner,
					"bucket %u member %u", b, i);
				/* twice */
				assert_false(hd_exchange_root(&rig.x[i], all[k].worker, all[k].ordinal, b));
			}
			assert_int_equal(hd_exchange_fold(&rig.x[i], b), owner);
			assert_false(hd_exchange_fold(&rig.x[i], b));
		}
	assert_false(hd_exchange_root(&rig.x[0], 4, 2, 0));       /* no such ordinal, worker, bucket */
	assert_false(hd_exchange_root(&rig.x[0], 5, 0, 0));
	assert_false(hd_exchange_root(&rig.x[0], 9, 2, 0));
	assert_false(hd_exchange_root(&rig.x[0], 4, 0, 5));
	rig_close(&rig);
}

/* Four workers of two virtual nodes each: for each bucket a tree of partial sums whose root is the owner. */
static void with_pairs_each_member_waits_for_its_children_and_gives_its_parent_one_sum(void **state)
{
	static const uint32_t workers[] = { 4, 6, 9, 11 }, ones[] = { 1, 1, 1, 1 };
	struct hd_exchange x[4];
	struct hd_view view;
	struct hd_passes passes;
	uint32_t got[4] = { 0 };                  /* bits of members that are in what each has of a bucket */

	(void)state;
	hd_view_even(&view, 1, workers, ones, 4, 8);
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(hd_exchange_init(&x[i], 8, 5, 0, NULL), HD_OK);
		x[i].pairs = true;
		assert_int_equal(hd_exchange_begin(&x[i], &view, workers[i], 3, &passes, NULL, NULL), HD_OK);
		assert_true(x[i].paired);
	}
	for (uint32_t b = 0; b < 5; b++) {
		const uint32_t owner = x[0].held.owner[b];
		for (uint32_t i = 0; i < 4; i++) {
			got[i] = 1u << i;
			assert_false(hd_exchange_combine(&x[i], b) || hd_exchange_fold(&x[i], b));
			assert_true(hd_exchange_root(&x[i], workers[i], 0, b));
			assert_false(hd_exchange_root(&x[i], workers[i], 0, b));
			/* from a member that is no child it is refused */
			for (uint32_t k = 0; k < 4; k++)
				if (k != i && hd_pair_parent(k, owner) != i)
					assert_false(hd_exchange_root(&x[i], workers[k], 0, b));
		}
		for (uint32_t sent = 0, round = 0; round < 4; round++)
			for (uint32_t i = 0; i < 4; i++) {
				if (!hd_exchange_combine(&x[i], b))
					continue;
				const uint32_t to = hd_exchange_root_to(&x[i], b), low = got[i] & (0 -
					got[i]);
				/* an aligned block, and its sibling is what is there */
				assert_true(got[i] == low || got[i] == 3 || got[i] == 12);
				assert_true((got[i] & got[to]) == 0 && to != i);
				assert_false(hd_exchange_combine(&x[i], b));
				assert_true(hd_exchange_root(&x[to], workers[i], 0, b));
				got[to] |= got[i];
				sent++;
				assert_true(sent <= 3);
			}
		assert_int_equal(hd_exchange_root_to(&x[owner], b), owner);
		CHECK(got[owner] == 15 && hd_exchange_fold(&x[owner], b), "bucket %u has %x", b, got[owner]);
	}
	/* a step that is restarted has none: all roots go to the owner */
	const struct hd_exchange_past past = { .nhave = 0 };
	assert_int_equal(hd_exchange_again(&x[1], &view, 6, 3, &passes, &past, NULL), HD_OK);
	assert_true(!x[1].paired && hd_exchange_root_to(&x[1], 0) == x[1].held.owner[0]);
	for (uint32_t i = 0; i < 4; i++)
		hd_exchange_finish(&x[i]);
}

static void views_without_aligned_blocks_have_no_pairs(void **state)
{
	static const struct { uint32_t n, nvns, devices[4]; uint32_t copies; bool pairs, has; } rows[] = {
		{ 2, 8, { 1, 1 }, 0, true, true }, { 2, 8, { 1, 1 }, 0, false, false },
		{ 2, 6, { 1, 1 }, 0, true, false }, { 3, 6, { 1, 1, 1 }, 0, true, false },
		{ 2, 8, { 3, 1 }, 0, true, false }, { 4, 16, { 1, 1, 1, 1 }, 0, true, true },
		{ 2, 8, { 1, 1 }, 2, true, false }, { 1, 8, { 1 }, 0, true, false },
		{ 2, 1, { 1, 1 }, 0, true, false },       /* a member that computes nothing */
	};
	static const uint32_t workers[] = { 4, 6, 9, 11 };
	static const uint64_t slots[5] = { 3, 3, 3, 3, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_exchange x;
		struct hd_view view;
		struct hd_passes passes;
		hd_view_even(&view, 1, workers, rows[i].devices, rows[i].n, rows[i].nvns);
		assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
		assert_int_equal(hd_exchange_init(&x, rows[i].nvns, 5, rows[i].copies, NULL), HD_OK);
		x.pairs = rows[i].pairs;
		assert_int_equal(hd_exchange_begin(&x, &view, 4, 3, &passes, slots, NULL), HD_OK);
		CHECK(x.paired == rows[i].has, "row %zu", i);
		hd_exchange_finish(&x);
	}
}

static void a_model_in_stages_has_no_pairs(void **state)
{
	static const uint32_t workers[] = { 4, 6 }, ones[] = { 1, 1 };
	static const struct hd_stage_bucket all = { .stage = 0, .makers = 1, .readers = 1 };
	const struct hd_stage_bucket at[5] = { all, all, all, all, all };
	const struct hd_stage_buckets buckets = { .n = 5, .nstages = 1, .whole = true,
		.at = (struct hd_stage_bucket *)(uintptr_t)at };
	struct hd_exchange x;
	struct hd_view view;
	struct hd_passes passes;

	(void)state;
	hd_view_even(&view, 1, workers, ones, 2, 8);
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
	for (int staged = 0; staged < 2; staged++) {
		assert_int_equal(hd_exchange_init(&x, 8, 5, 0, NULL), HD_OK);
		x.pairs = true;
		hd_exchange_stages(&x, staged ? &buckets : NULL);
		assert_int_equal(hd_exchange_begin(&x, &view, 4, 3, &passes, NULL, NULL), HD_OK);
		assert_true(!x.held.partial && x.paired == !staged);
		hd_exchange_finish(&x);
	}
}

static void a_step_is_complete_with_all_sums_and_all_entries(void **state)
{
	struct rig rig;
	struct hd_exchange *x = &rig.x[1];

	(void)state;
	rig_open(&rig);
	for (uint32_t b = 0; b < 5; b++) {
		assert_true(hd_exchange_sum(x, b));
		assert_false(hd_exchange_sum(x, b));
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(hd_exchange_complete(x));
		assert_false(hd_exchange_leaves(x, rig.view.member[i], 1));
		assert_true(hd_exchange_leaves(x, rig.view.member[i], 0));
		assert_false(hd_exchange_leaves(x, rig.view.member[i], 0));
	}
	assert_true(hd_exchange_complete(x));
	assert_false(hd_exchange_table(x));
	rig_close(&rig);
}

/* Worker 6 dies: 9 has the sums of buckets 0 and 3, none the table; 4 repairs 3, 9 repairs 4. */
static void after_a_loss_holders_publish_and_the_rest_is_folded_anew(void **state)
{
	static const struct hd_have have[] = { { 0, 2 }, { 1, 0 }, { 3, 2 }, { 4, 0 } };
	struct rig rig;
	struct hd_passes passes = { 0 };
	struct hd_view view;

	(void)state;
	rig_open(&rig);
	hd_view_even(&view, 2, (uint32_t[]){ 4, 9 }, (uint32_t[]){ 1, 1 }, 2, 7);
	assert_int_equal(hd_passes_add(&passes, 4, 0, &(struct hd_vrange){ 0, 3 }, 1), HD_OK);
	assert_int_equal(hd_passes_add(&passes, 9, 0, &(struct hd_vrange){ 5, 2 }, 1), HD_OK);
	struct hd_exchange *x = &rig.x[2];
	assert_true(hd_exchange_sum(x, 0) && hd_exchange_sum(x, 3));
	assert_true(hd_exchange_root(x, 9, 0, 4));
	assert_true(hd_exchange_leaves(x, 6, 0));
	const struct hd_exchange_past past = { .have = have, .nhave = 4 };
	/* 3 and 4 are missing */
	assert_int_equal(hd_exchange_again(x, &view, 9, 11, &passes, &past, NULL), HD_E_BADPLAN);
	assert_int_equal(hd_passes_add(&passes, 4, 1, &(struct hd_vrange){ 3, 1 }, 1), HD_OK);
	assert_int_equal(hd_passes_add(&passes, 9, 1, &(struct hd_vrange){ 4, 1 }, 1), HD_OK);
	assert_int_equal(hd_exchange_again(x, &view, 9, 11, &passes, &past, NULL), HD_OK);
	assert_true(hd_exchange_summed(x, 0) && hd_exchange_summed(x, 3) && x->nsums == 2 && x->nleaves == 0);
	assert_int_equal(hd_exchange_source(x, 0), 1);
	assert_int_equal(hd_exchange_sum_to(x, 0), 1);
	assert_int_equal(hd_exchange_source(x, 1), 0);
	assert_int_equal(hd_exchange_sum_to(x, 4), 1);
	assert_false(hd_exchange_wants_roots(x, 3));
	assert_false(hd_exchange_root(x, 4, 0, 3));
	assert_true(hd_exchange_root(x, 4, 0, 4) && hd_exchange_root(x, 9, 0, 4) &&
		hd_exchange_root(x, 4, 2, 4));
	assert_false(hd_exchange_fold(x, 4));
	assert_true(hd_exchange_root(x, 4, 1, 4));
	assert_true(hd_exchange_root(x, 9, 1, 4) && hd_exchange_root(x, 9, 2, 4));
	assert_true(hd_exchange_fold(x, 4));
	rig_close(&rig);
}

static void with_a_holder_of_the_table_entries_are_not_awaited(void **state)
{
	struct rig rig;
	struct hd_exchange *x = &rig.x[0];
	struct hd_passes none = { 0 };

	(void)state;
	rig_open(&rig);
	assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &none,
		&(struct hd_exchange_past){ .have = &(struct hd_have){ 0, 6 }, .nhave = 1, .table = 4 },
		NULL), HD_OK);
	assert_int_equal(hd_exchange_table_source(x), 2);
	assert_int_equal(hd_exchange_source(x, 0), 1);            /* dealt among the holders */
	assert_int_equal(hd_exchange_source(x, 1), 2);
	for (uint32_t b = 0; b < 5; b++)
		assert_true(hd_exchange_sum(x, b));
	assert_false(hd_exchange_complete(x));
	assert_true(hd_exchange_table(x));
	assert_true(hd_exchange_complete(x));
	rig_close(&rig);
}

/* Sharded state, 2 copies: bucket 0 is 4's and 6's, 2 is 6's and 9's, 4 is 9's and 4's. */
static void a_sum_goes_along_its_chain_and_the_last_sends_the_parameters(void **state)
{
	static const uint64_t nowhere[5], all[5] = { 7, 7, 7, 7, 7 };
	struct hd_exchange x[3];
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(hd_exchange_init(&x[i], 7, 5, 2, NULL), HD_OK);
		assert_int_equal(hd_exchange_begin(&x[i], &rig.view, rig.view.member[i], 11, &rig.passes,
			i ? all : nowhere, NULL), HD_OK);
		assert_int_equal(x[i].fetchers, i ? 0 : 7);
		assert_int_equal(hd_exchange_parm_source(&x[i], 4), 0);
		assert_int_equal(hd_exchange_parm_to(&x[i], 4), 2);
		assert_int_equal(hd_exchange_norm_source(&x[i], 0), 1);
		assert_int_equal(hd_exchange_norm_to(&x[i], 0), 4);
		assert_int_equal(hd_exchange_norm_source(&x[i], 4), 0);
		assert_int_equal(hd_exchange_norm_to(&x[i], 4), 2);
	}
	assert_true(hd_exchange_chained(&x[0], 0) && hd_exchange_chained(&x[1], 0) &&
		!hd_exchange_chained(&x[2], 0));
	assert_int_equal(hd_exchange_sum_to(&x[0], 0), 2);
	assert_int_equal(hd_exchange_sum_to(&x[1], 0), 0);
	assert_int_equal(hd_exchange_sum_from(&x[1], 0), 0);
	assert_int_equal(hd_exchange_sum_from(&x[0], 0), HD_NOBODY);      /* folded here */
	assert_int_equal(hd_exchange_sum_from(&x[2], 0), HD_NOBODY);
	for (uint32_t b = 0; b < 5; b++) {
		assert_false(hd_exchange_may_update(&x[1]));
		assert_true(hd_exchange_norm(&x[1], b) && !hd_exchange_norm(&x[1], b));
	}
	assert_false(hd_exchange_may_update(&x[1]));
	assert_true(hd_exchange_table(&x[1]));
	for (uint32_t b = 0; b < 5; b++)
		if (hd_exchange_chained(&x[1], b)) {
			assert_false(hd_exchange_may_update(&x[1]));
			assert_true(hd_exchange_sum(&x[1], b));
		}
	assert_true(hd_exchange_may_update(&x[1]) && !hd_exchange_complete(&x[1]));
	for (uint32_t b = 0; b < 5; b++)
		assert_true(hd_exchange_parm(&x[1], b) && !hd_exchange_parm(&x[1], b));
	assert_true(hd_exchange_complete(&x[1]));
	for (uint32_t i = 0; i < 3; i++)
		hd_exchange_finish(&x[i]);
	rig_close(&rig);
}

/* Taken up again by three: 0 holds the slots of all, 1 and 2 of none. Of bucket 0 member 2 has the sum, which
 * is not of the chain; of 2 members 0 and 1 have the parameters, and 1 the sum; of 4 no member has anything:
 * its owner, 2, folds. Member 1 has sealed the step. */
static void taken_up_again_a_step_s_chain_is_who_holds_the_slots(void **state)
{
	static const struct hd_have have[] = { { 0, 4 }, { 2, 2 }, { 4, 0 } },
		parm[] = { { 0, 0 }, { 2, 3 }, { 4, 0 } }, chain = { 0, 1 };
	const struct hd_exchange_past past = { .have = have, .nhave = 3, .parm = parm, .nparm = 3,
		.chain = &chain, .nchain = 1, .done = 2 };
	static const struct { uint32_t bucket, source, from; uint64_t to[3]; uint32_t parms;
		uint64_t parms_to, norms_to; } lines[] = {
		{ 0, 2, 2, { 0, 0, 1 }, 0, 6, 0 }, { 2, 1, 1, { 0, 1, 0 }, 0, 4, 4 },
		{ 4, 2, 2, { 0, 0, 1 }, 0, 6, 0 },
	};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (uint32_t i = 0; i < 3; i++) {
		struct hd_exchange x;
		assert_int_equal(hd_exchange_init(&x, 7, 5, 2, NULL), HD_OK);
		assert_int_equal(hd_exchange_again(&x, &rig.view, rig.view.member[i], 11, &rig.passes, &past,
			NULL), HD_OK);
		assert_int_equal(x.fetchers, 0);
		for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
			uint32_t b = lines[k].bucket;
			CHECK(hd_exchange_source(&x, b) == lines[k].source, "bucket %u from %u", b,
				hd_exchange_source(&x, b));
			CHECK(hd_exchange_sum_to(&x, b) == lines[k].to[i], "bucket %u from %u to %llx", b, i,
				(unsigned long long)hd_exchange_sum_to(&x, b));
			CHECK(hd_exchange_sum_from(&x, b) == (i ? HD_NOBODY : lines[k].from),
				"bucket %u to %u", b, i);
			CHECK(hd_exchange_parm_source(&x, b) == lines[k].parms &&
				hd_exchange_parm_to(&x, b) == lines[k].parms_to, "parameters of %u", b);
			/* member 1 has sealed the step: the norms of 0 and 4 would be for it alone */
			CHECK(hd_exchange_norm_source(&x, b) == 0 &&
				hd_exchange_norm_to(&x, b) == lines[k].norms_to, "norms of %u", b);
		}
		assert_true(hd_exchange_wants_roots(&x, 4) && !hd_exchange_wants_roots(&x, 0));
		hd_exchange_finish(&x);
	}
	rig_close(&rig);
}

/* ---- what is refused, one guard after the other ---- */

static void an_exchange_of_nothing_or_too_much_is_not_made(void **state)
{
	static const struct { uint32_t nvns, nbuckets; enum hd_err err; } row[] = {
		{ 0, 1, HD_E_INVAL }, { HD_MAX_VNS + 1, 1, HD_E_INVAL }, { 1, 0, HD_E_INVAL }, { 1, HD_MAX_BUCKETS + 1, HD_E_INVAL },
		{ 1, 1, HD_OK }, { HD_MAX_VNS, HD_MAX_BUCKETS, HD_OK },
	};
	struct hd_exchange x;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK(hd_exchange_init(&x, row[i].nvns, row[i].nbuckets, 0, NULL) == row[i].err, "row %zu",
			i);
		hd_exchange_finish(&x);
	}
}

/* Whichever request fails; a step of the same size takes none. */
static void an_exchange_takes_memory_only_where_it_may(void **state)
{
	struct hd_exchange x;
	struct rig rig;
	uint64_t n = 1;

	(void)state;
	rig_open(&rig);
	for (;; n++) {
		hd_alloc_arm(n);
		enum hd_err err = hd_exchange_init(&x, 7, 5, 0, NULL);
		hd_alloc_arm(0);
		if (!err)
			break;
		assert_int_equal(err, HD_E_NOMEM);
		assert_null(x.sum);
	}
	assert_int_equal(n, 18);
	hd_alloc_arm(1);
	assert_int_equal(hd_exchange_begin(&x, &rig.view, 4, 11, &rig.passes, NULL, NULL), HD_E_NOMEM);
	hd_alloc_arm(0);
	assert_int_equal(hd_exchange_begin(&x, &rig.view, 4, 11, &rig.passes, NULL, NULL), HD_OK);
	hd_alloc_arm(1);
	assert_int_equal(hd_exchange_begin(&x, &rig.view, 4, 12, &rig.passes, NULL, NULL), HD_OK);
	hd_alloc_arm(0);
	hd_exchange_finish(&x);
	rig_close(&rig);
}

/* Passes must tile, unless every sum and the table are somewhere; whoever takes part is a member. */
static void a_step_that_is_not_computed_once_is_not_begun(void **state)
{
	static const struct hd_have all = { 0, 1 }, some[] = { { 0, 1 }, { 2, 0 } };
	static const struct { bool tiles; uint32_t worker; struct hd_exchange_past past; enum hd_err err;
		} row[] = {
		{ true, 4, { 0 }, HD_OK },
		{ true, 5, { 0 }, HD_E_BADPLAN },
		{ false, 4, { 0 }, HD_E_BADPLAN },
		{ false, 4, { .have = &all, .nhave = 1, .table = 1 }, HD_OK },
		{ false, 5, { .have = &all, .nhave = 1, .table = 1 }, HD_E_BADPLAN },
		{ false, 4, { .have = &all, .nhave = 1 }, HD_E_BADPLAN },
		{ false, 4, { .table = 1 }, HD_E_BADPLAN },
		{ false, 4, { .have = some, .nhave = 2, .table = 1 }, HD_E_BADPLAN },
	};
	struct hd_passes part = { 0 };
	struct rig rig;

	(void)state;
	rig_open(&rig);
	assert_int_equal(hd_passes_add(&part, 4, 0, &(struct hd_vrange){ 0, 3 }, 1), HD_OK);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_passes *passes = row[i].tiles ? &rig.passes : &part;
		struct hd_exchange *x = &rig.x[0];
		CHECK(hd_exchange_again(x, &rig.view, row[i].worker, 11, passes, &row[i].past,
			NULL) == row[i].err, "row %zu", i);
		if (!row[i].past.nhave && !row[i].past.table)
			CHECK(hd_exchange_begin(x, &rig.view, row[i].worker, 11, passes, NULL,
				NULL) == row[i].err, "row %zu, begun", i);
	}
	rig_close(&rig);
}

/* Of no bucket of this step, of no member, twice: nothing new. */
static void what_names_nothing_of_the_step_is_nothing_new(void **state)
{
	static const uint32_t beyond[] = { 5, UINT32_MAX };
	struct rig rig;
	struct hd_exchange *x = &rig.x[0];

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < 2; i++) {
		assert_false(hd_exchange_root(x, 4, 0, beyond[i]));
		assert_false(hd_exchange_sum(x, beyond[i]));
		assert_false(hd_exchange_norm(x, beyond[i]));
		assert_false(hd_exchange_parm(x, beyond[i]));
		assert_false(hd_exchange_fold(x, beyond[i]));
	}
	assert_true(!x->nsums && !x->nnorms && !x->nparms);
	assert_false(hd_exchange_has_root(x, 4, 0, 0));
	assert_true(hd_exchange_root(x, 4, 0, 0) && hd_exchange_has_root(x, 4, 0, 0));
	assert_false(hd_exchange_has_root(x, 5, 0, 0) || hd_exchange_has_root(x, 4, 2, 0) ||
		hd_exchange_has_root(x, 4, 1, 0));
	assert_true(hd_exchange_leaves(x, 4, 0) && hd_exchange_table(x));
	assert_false(hd_exchange_leaves(x, 6, 0));        /* the whole table is here */
	rig_close(&rig);
}

/* With a holder the whole table comes: what is sent beside it makes none. */
static void entries_of_all_passes_are_no_table_where_somebody_holds_it(void **state)
{
	struct rig rig;
	struct hd_exchange *x = &rig.x[0];

	(void)state;
	rig_open(&rig);
	for (uint64_t table = 0; table < 5; table += 4) {
		const struct hd_exchange_past past = { .table = table, .afresh = true };
		assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &rig.passes, &past, NULL), HD_OK);
		for (uint32_t i = 0; i < 3; i++)
			assert_true(hd_exchange_leaves(x, rig.view.member[i], 0));
		assert_int_equal(x->table, !table);
	}
	rig_close(&rig);
}

/* Rule 4: own sums and the table stay in the same step, unless what was had of it is void; of another step
 * nothing does. */
static void what_stays_when_a_step_is_taken_up_again(void **state)
{
	static const struct { uint64_t step; bool afresh, stays; } row[] = {
		{ 11, false, true }, { 11, true, false }, { 10, false, false }, { 12, true, false },
	};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_exchange *x = &rig.x[0];
		assert_int_equal(hd_exchange_begin(x, &rig.view, 4, 11, &rig.passes, NULL, NULL), HD_OK);
		assert_true(hd_exchange_sum(x, 1) && hd_exchange_parm(x, 2) && hd_exchange_table(x) &&
			hd_exchange_norm(x, 1));
		const struct hd_exchange_past past = { .afresh = row[i].afresh };
		assert_int_equal(hd_exchange_again(x, &rig.view, 4, row[i].step, &rig.passes, &past, NULL),
			HD_OK);
		CHECK(hd_exchange_summed(x, 1) == row[i].stays && hd_exchange_fresh(x, 2) == row[i].stays &&
			x->table == row[i].stays, "row %zu", i);
		CHECK(x->nsums == row[i].stays && x->nparms == row[i].stays && !x->nnorms &&
			hd_exchange_norm(x, 1), "row %zu", i);
	}
	rig_close(&rig);
}

/* A sum that is here is not added again, though it was not reported and all roots come again; one that
 * another has is not added. */
static void no_sum_is_made_twice(void **state)
{
	static const struct hd_have mine = { 0, 1 };
	struct hd_passes none = { 0 };
	struct rig rig;
	struct hd_exchange *x = &rig.x[0];

	(void)state;
	rig_open(&rig);
	for (int reported = 0; reported < 2; reported++) {
		assert_int_equal(hd_exchange_begin(x, &rig.view, 4, 11, &rig.passes, NULL, NULL), HD_OK);
		if (reported)
			assert_true(hd_exchange_sum(x, 0));
		assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &rig.passes,
			&(struct hd_exchange_past){ .nhave = 0 }, NULL), HD_OK);
		for (uint32_t i = 0; i < 3; i++)
			for (uint32_t o = 0; o < 2; o++)
				assert_true(hd_exchange_root(x, rig.view.member[i], o, 0));
		assert_int_equal(hd_exchange_fold(x, 0), !reported);
		if (!reported) {                      /* what was asked for before counts for nothing */
			assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &rig.passes,
				&(struct hd_exchange_past){ .nhave = 0 }, NULL), HD_OK);
			for (uint32_t i = 0; i < 6; i++)
				assert_true(hd_exchange_root(x, rig.view.member[i / 2], i % 2, 0));
			assert_true(hd_exchange_fold(x, 0));
		}
	}
	assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &none,
		&(struct hd_exchange_past){ .have = &mine, .nhave = 1, .table = 1, .afresh = true },
		NULL), HD_OK);
	assert_false(hd_exchange_fold(x, 0));
	rig_close(&rig);
}

static void runs_of_holders_are_spread_over_their_buckets(void **state)
{
	static const struct hd_have run[] = { { 1, 3 }, { 3, 0 }, { 4, 5 }, { 6, 7 } };
	static const uint64_t is[6] = { 0, 3, 3, 0, 5, 9 };
	uint64_t members[6] = { 9, 9, 9, 9, 9, 9 };

	(void)state;
	hd_have_spread(members, 5, run, 4);
	assert_memory_equal(members, is, sizeof is);
	hd_have_spread(members, 5, run, 0);
	assert_int_equal(members[1] | members[4], 0);
}

/* Without sharding whoever is the source sends to all; parameters come from holders, else from the last of
 * the chain, if there is one. */
static void who_sends_sums_and_parameters_to_whom(void **state)
{
	static const struct hd_have have[] = { { 0, 0 }, { 1, 6 }, { 2, 0 } },
		parm[] = { { 0, 0 }, { 1, 4 }, { 2, 0 } };
	static const struct hd_have chain[] = { { 0, 1 }, { 1, 3 }, { 2, 0 } };
	struct rig rig;
	struct hd_exchange x;

	(void)state;
	rig_open(&rig);
	assert_int_equal(hd_exchange_again(&rig.x[0], &rig.view, 4, 11, &rig.passes,
		&(struct hd_exchange_past){ .have = have, .nhave = 3 }, NULL), HD_OK);
	assert_int_equal(hd_exchange_sum_from(&rig.x[0], 0), 0);
	assert_int_equal(hd_exchange_sum_from(&rig.x[0], 1), 2);
	assert_int_equal(hd_exchange_sum_to(&rig.x[0], 0), 6);
	assert_int_equal(hd_exchange_sum_to(&rig.x[0], 1), 0);
	assert_int_equal(hd_exchange_init(&x, 7, 5, 2, NULL), HD_OK);
	assert_int_equal(hd_exchange_again(&x, &rig.view, 4, 11, &rig.passes,
		&(struct hd_exchange_past){ .have = have, .nhave = 3, .parm = parm, .nparm = 3,
		.chain = chain, .nchain = 3 }, NULL), HD_OK);
	assert_int_equal(hd_exchange_parm_source(&x, 0), 0);
	assert_int_equal(hd_exchange_parm_source(&x, 1), 2);      /* a holder, which is not of the chain */
	assert_int_equal(hd_exchange_parm_source(&x, 2), HD_NOBODY);
	hd_exchange_finish(&x);
	rig_close(&rig);
}

/* Whichever is the last to come: the norms of the others (buckets 2 and 3), the sums of the own chains, the
 * table. */
static void the_own_buckets_are_brought_on_with_all_that_it_takes(void **state)
{
	static const uint64_t all[5] = { 7, 7, 7, 7, 7 };
	struct hd_exchange x;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	assert_int_equal(hd_exchange_init(&x, 7, 5, 2, NULL), HD_OK);
	for (int last = 0; last < 3; last++) {
		assert_int_equal(hd_exchange_begin(&x, &rig.view, 4, 11, &rig.passes, all, NULL), HD_OK);
		for (uint32_t b = 0; b < 5; b++) {
			assert_int_equal(hd_exchange_chained(&x, b), b != 2 && b != 3);
			if (b != 2 && (b != 3 || last != 0))
				assert_true(hd_exchange_norm(&x, b));
			if (b != 4 || last != 1)
				assert_true(hd_exchange_sum(&x, b));
			if (b == 2)               /* its sum is no proof that others have it */
				assert_false(hd_exchange_may_update(&x));
			if (b == 2)
				assert_true(hd_exchange_norm(&x, b));
		}
		if (last != 2)
			assert_true(hd_exchange_table(&x));
		assert_false(hd_exchange_may_update(&x));
		assert_true(last == 0 ? hd_exchange_norm(&x, 3) : last == 1 ? hd_exchange_sum(&x, 4) :
			hd_exchange_table(&x));
		assert_true(hd_exchange_may_update(&x));
	}
	hd_exchange_finish(&x);
	rig_close(&rig);
}

/* Of what was taken up again a new step knows nothing; and the other way round. */
static void a_new_step_knows_nothing_of_the_one_before(void **state)
{
	static const uint64_t nowhere[5];
	static const struct hd_have held = { 0, 6 };
	const struct hd_exchange_past past = { .have = &held, .nhave = 1, .parm = &held, .nparm = 1,
		.chain = &held, .nchain = 1, .table = 4, .done = 2 };
	struct rig rig;
	struct hd_exchange x;

	(void)state;
	rig_open(&rig);
	assert_int_equal(hd_exchange_init(&x, 7, 5, 2, NULL), HD_OK);
	for (uint32_t b = 0; b < 5; b++)
		assert_false(hd_exchange_summed(&x, b) || hd_exchange_fresh(&x, b) ||
			hd_exchange_chained(&x, b));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(hd_exchange_begin(&x, &rig.view, 4, 11, &rig.passes, nowhere, NULL), HD_OK);
		assert_false(hd_exchange_any_sum(&x));
		assert_int_equal(x.fetchers, 7);
		assert_int_equal(hd_exchange_source(&x, 4), 2);
		assert_true(hd_exchange_wants_roots(&x, 4));
		assert_int_equal(hd_exchange_parm_source(&x, 4), 0);
		assert_int_equal(hd_exchange_table_source(&x), HD_NOBODY);
		assert_int_equal(hd_exchange_norm_to(&x, 0), 4);
		assert_int_equal(hd_exchange_again(&x, &rig.view, 4, 11, &rig.passes, &past, NULL), HD_OK);
		assert_true(hd_exchange_any_sum(&x));
		assert_int_equal(x.fetchers, 0);
		assert_int_equal(hd_exchange_norm_to(&x, 0), 1);
	}
	hd_exchange_finish(&x);
	rig_close(&rig);
}

/* Without memory for the roots of many passes a step of few is begun as before. */
static void who_had_no_memory_for_a_step_takes_it_anew(void **state)
{
	struct hd_passes few, many = { 0 };
	struct hd_vrange odd[128], even[128];
	struct hd_view view;
	struct hd_exchange x;

	(void)state;
	for (uint32_t i = 0; i < 128; i++) {
		even[i] = (struct hd_vrange){ 2 * i, 1 };
		odd[i] = (struct hd_vrange){ 2 * i + 1, 1 };
	}
	hd_view_even(&view, 1, (uint32_t[]){ 4, 6 }, (uint32_t[]){ 1, 1 }, 2, 256);
	assert_int_equal(hd_passes_of_view(&few, &view), HD_OK);
	assert_int_equal(hd_passes_add(&many, 4, 0, even, 128), HD_OK);
	assert_int_equal(hd_passes_add(&many, 6, 0, odd, 128), HD_OK);
	assert_int_equal(hd_exchange_init(&x, 256, 1, 0, NULL), HD_OK);
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 1, &few, NULL, NULL), HD_OK);
	hd_alloc_arm(1);
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 1, &many, NULL, NULL), HD_E_NOMEM);
	hd_alloc_arm(0);
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 1, &few, NULL, NULL), HD_OK);
	assert_true(hd_exchange_root(&x, 4, 0, 0) && !hd_exchange_fold(&x, 0) &&
		hd_exchange_root(&x, 6, 0, 0) && hd_exchange_fold(&x, 0));
	hd_exchange_finish(&x);
}

static void squares_are_those_of_a_sum_that_is_here(void **state)
{
	struct rig rig;
	struct hd_exchange *x = &rig.x[0];

	(void)state;
	rig_open(&rig);
	assert_false(hd_exchange_square(x, 1) || hd_exchange_square(x, 5));
	assert_true(hd_exchange_sum(x, 1) && !hd_exchange_squared(x, 1));
	assert_true(hd_exchange_square(x, 1) && hd_exchange_squared(x, 1) && !hd_exchange_square(x, 1));
	assert_int_equal(hd_exchange_again(x, &rig.view, 4, 11, &rig.passes,
		&(struct hd_exchange_past){ .nhave = 0 }, NULL), HD_OK);
	assert_true(hd_exchange_squared(x, 1));
	assert_int_equal(hd_exchange_begin(x, &rig.view, 4, 12, &rig.passes, NULL, NULL), HD_OK);
	assert_false(hd_exchange_squared(x, 1));
	rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_is_folded_once_at_its_owner_when_every_root_is_there),
		cmocka_unit_test(with_pairs_each_member_waits_for_its_children_and_gives_its_parent_one_sum),
		cmocka_unit_test(views_without_aligned_blocks_have_no_pairs),
		cmocka_unit_test(a_model_in_stages_has_no_pairs),
		cmocka_unit_test(a_step_is_complete_with_all_sums_and_all_entries),
		cmocka_unit_test(after_a_loss_holders_publish_and_the_rest_is_folded_anew),
		cmocka_unit_test(with_a_holder_of_the_table_entries_are_not_awaited),
		cmocka_unit_test(a_sum_goes_along_its_chain_and_the_last_sends_the_parameters),
		cmocka_unit_test(taken_up_again_a_step_s_chain_is_who_holds_the_slots),
		cmocka_unit_test(an_exchange_of_nothing_or_too_much_is_not_made),
		cmocka_unit_test(an_exchange_takes_memory_only_where_it_may),
		cmocka_unit_test(a_step_that_is_not_computed_once_is_not_begun),
		cmocka_unit_test(what_names_nothing_of_the_step_is_nothing_new),
		cmocka_unit_test(entries_of_all_passes_are_no_table_where_somebody_holds_it),
		cmocka_unit_test(what_stays_when_a_step_is_taken_up_again),
		cmocka_unit_test(no_sum_is_made_twice),
		cmocka_unit_test(runs_of_holders_are_spread_over_their_buckets),
		cmocka_unit_test(who_sends_sums_and_parameters_to_whom),
		cmocka_unit_test(the_own_buckets_are_brought_on_with_all_that_it_takes),
		cmocka_unit_test(a_new_step_knows_nothing_of_the_one_before),
		cmocka_unit_test(who_had_no_memory_for_a_step_takes_it_anew),
		cmocka_unit_test(squares_are_those_of_a_sum_that_is_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
