#include "protocol/testing_member.h"

/* A member of a job whose model is in stages (member.h, rule 7). Four members are two pipelines of two: 0 and
 * 2 hold stage 0 (buckets 0 and 1), 1 and 3 stage 1 (2 and 3). Of the four virtual nodes each pipeline has
 * two. */

static const struct hd_stage_bucket of_two[4] = {
	{ .stage = 0, .makers = 1, .readers = 1 }, { .stage = 0, .makers = 1, .readers = 1 },
	{ .stage = 1, .makers = 2, .readers = 2 }, { .stage = 1, .makers = 2, .readers = 2 },
};
static const struct hd_stage_buckets two = { .n = 4, .nstages = 2,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_two };
static const struct hd_member_config staged = { .nvns = 4, .nbuckets = 4, .buckets = &two, .nsteps = 9,
	.detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7 };
static const uint32_t place[] = { 0, 1 };
static const struct hd_vrank rank[] = { { 0, 2 }, { 1, 0 }, { 2, 2 }, { 3, 0 } };
/* holders of slots as all loaded them; as their stages are; the second stage at 3 alone */
static const struct hd_have all = { 0, 15 }, own[] = { { 0, 5 }, { 2, 10 } }, lacking[] = { { 0, 5 }, { 2,
	8 } };
static const struct hd_step_news none;

#define AT(step_) .step = (step_)
#define STAGED .nrank = 4, .rank = rank, .width = 2, .nplace = 2, .place = place
#define CAME(id, from, b) EVENT(id, .epoch = 1, .worker = (from), .bucket = (b), AT(0))

static const struct hd_member_config *job = &staged;

static void open_links(struct at_work *w, uint32_t id)
{
	at_work_synced(w, job, id);
	if (id != 3) {
		HEAR(PEER, .peer = { .worker = 3, .naddress = 1, .address = "d" });
		EVENT(UP, .worker = 3);
	}
}

/* Member `id` in step 0 of epoch 1, with its stage or without it. */
static void begin(struct at_work *w, uint32_t id, const struct hd_have *chain, uint32_t nchain)
{
	open_links(w, id);
	if (nchain > 1) {
		memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
		for (uint32_t b = 0; b < 4; b++)
			*w->m->mine |= (uint64_t)(chain[b / 2].members >> id & 1) << b;
	}
	FENCE(1);
	VIEW(1, 4, STAGED, .step = 0, .nchain = nchain, .chain = chain);
}

static void a_step_ends_with_own_sums_and_the_norms_of_others(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all, 1);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	assert_int_equal(w->done.at[1].stage, 0);
	IS(EVENT(FINAL, AT(0), .bucket = 2), "");         /* not of its stage */
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.1 >2; LEAVES 0.0");
	IS(CAME(ROOT, 1, 0), "");                         /* nor are they */
	IS(CAME(ROOT, 2, 0), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {2}");
	IS(CAME(SUM, 2, 1), "");
	IS(EVENT(SQUARED, AT(0), .bucket = 1), "NORM 0.1 {13}");
	for (uint32_t m = 1; m < 4; m++)
		CAME(LEAVES, m, 0);
	IS(CAME(NORM, 3, 2), "");
	IS(CAME(NORM, 1, 3), "FINISH 0");
	IS(EVENT(UPDATED, AT(0), .news = &none),
		">1 SEAL@1 0 ran knows 1; >2 SEAL@1 0 ran knows 1; >3 SEAL@1 0 ran knows 1; "
		">co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	assert_true(hd_member_has_slots(w->m, 0) && hd_member_has_slots(w->m, 1));
	assert_false(hd_member_has_slots(w->m, 2) || hd_member_whole(w->m));
	at_work_end(w);

	begin(w, 3, &all, 1);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [2+2]");
	assert_int_equal(w->done.at[1].stage, 1);
	at_work_end(w);
}

/* All that a step of member 0 needs but the sums of squares of others' parts of tensors. */
static const char *come(struct at_work *w)
{
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(ROOT, 2, 0);
	EVENT(FOLDED, AT(0));
	CAME(SUM, 2, 1);
	EVENT(SQUARED, AT(0), .bucket = 1);
	for (uint32_t m = 1; m < 4; m++)
		CAME(LEAVES, m, 0);
	CAME(NORM, 3, 2);
	return CAME(NORM, 1, 3);
}

/* A tensor lies in buckets 1 and 2: each stage holds a part. It is measured by both before any updates, and
 * what was measured is sent again in another view. */
static void whole_tensors_are_measured_before_they_are_updated(void **state)
{
	static uint32_t first[] = { 0, 2 }, bucket[] = { 1, 2 };
	static const struct hd_have have[] = { { 0, 5 }, { 2, 8 } }, chain[] = { { 0, 5 }, { 2, 8 } };
	static struct hd_stage_buckets tensors;
	struct hd_member_config whole = staged;
	struct at_work at, *w = &at;

	(void)state;
	tensors = two;
	tensors.tensors = (struct hd_bucket_tensors){ 1, first, bucket };
	whole.buckets = &tensors;
	job = &whole;
	begin(w, 0, &all, 1);
	IS(come(w), "UPDATE 0");
	assert_true(hd_member_has_slots(w->m, 0));        /* nothing has changed */
	IS(EVENT(UPDATED_OWN, AT(0)), "RATIO 0.1 {13}");
	IS(CAME(RATIO, 1, 1), "");
	IS(CAME(RATIO, 3, 2), "FINISH 0");
	assert_false(hd_member_has_slots(w->m, 0));
	at_work_end(w);

	/* they may come before it has measured its own */
	begin(w, 0, &all, 1);
	come(w);
	IS(CAME(RATIO, 3, 2), "");
	IS(EVENT(UPDATED_OWN, AT(0)), "RATIO 0.1 {13}; FINISH 0");
	at_work_end(w);

	/* a fence waits until it has; the status says of no change: what came from disk of the other stage is
	 * still here, for a view without its holders. What came from peers is forgotten, as norms are */
	begin(w, 0, &all, 1);
	come(w);
	CAME(RATIO, 3, 2);
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(UPDATED_OWN, AT(0)), ">co STATUS@2 0 member begun table [0+2] sum 3 slot ffffffffffffffff");
	IS(VIEW(2, 4, STAGED, .step = 0, .nhave = 2, .have = have, .nchain = 2, .chain = chain, .table = 5),
		"ADOPT 2 of 4; AGAIN 0; RATIO 0.1 {3}; TABLE 0 {13}; NORM 0.1 {13}");
	EVENT(NORM, .epoch = 2, .worker = 3, .bucket = 2, AT(0));
	IS(EVENT(NORM, .epoch = 2, .worker = 3, .bucket = 3, AT(0)), "");
	IS(EVENT(RATIO, .epoch = 2, .worker = 3, .bucket = 2, AT(0)), "FINISH 0");
	EVENT(UPDATED, AT(0), .news = &none);
	/* one that has finished it sends them, too, to those that have not */
	IS(FENCE(3), "EPOCH 3; >co STATUS@3 1 member prev sum 3 slot fffffffffffffff3");
	IS(VIEW(3, 4, STAGED, .step = 0, .nat = 4, .at = ((uint64_t[]){ 1, 0, 0, 0 }), .nhave = 2,
		.have = have,
		.nchain = 2, .chain = chain, .table = 5),
		"ADOPT 3 of 4; AGAIN 0; RATIO 0.1 {3}; TABLE 0 {13}; >1 SEAL@3 0 ran knows 3; "
		">2 SEAL@3 0 ran knows 3; >3 SEAL@3 0 ran knows 3; >co SEAL@3 0 ran knows 3; NORM 0.1 {13}");
	at_work_end(w);
	job = &staged;
}

/* The last to come is the sum, the norm, the table, or what a member that lacks its stage says. */
static void nothing_is_finished_before_all_is_here(void **state)
{
	static const char *const last[] = { "sum", "norm", "table", "slotted" };
	struct at_work at, *w = &at;

	(void)state;
	for (int k = 0; k < 4; k++) {
		bool lacks = k == 3;
		begin(w, 0, lacks ? lacking : &all, lacks ? 2 : 1);
		EVENT(READY, AT(0));
		EVENT(COMPUTED, AT(0));
		CAME(ROOT, 2, 0);
		EVENT(FOLDED, AT(0));
		if (k != 0)
			CAME(SUM, 2, 1);
		CAME(NORM, 3, 2);
		if (k != 1)
			CAME(NORM, 1, 3);
		CAME(LEAVES, 1, 0);
		CAME(LEAVES, 2, 0);
		if (k != 2)
			CAME(LEAVES, 3, 0);
		IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
		const char *said = k == 0 ? CAME(SUM, 2, 1) : k == 1 ? CAME(NORM, 1, 3) : k == 2 ?
			CAME(LEAVES, 3, 0) : PEER_SAYS(1, SLOTTED, .epoch = 1, .halt = { 0 });
		CHECK(!strcmp(said, "FINISH 0"), "%s: %s", last[k], said);
		assert_false(hd_member_has_slots(w->m, 0));       /* they are changing */
		at_work_end(w);
	}
}

static void a_member_without_its_stage_fetches_it_and_computes_then(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, lacking, 2);
	IS(EVENT(READY, AT(0)), "BEGIN 0; FETCH 0 own");
	IS(EVENT(FETCHED, .epoch = 0, AT(0)), "");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)),
		">0 SLOTTED@1 0; >2 SLOTTED@1 0; >3 SLOTTED@1 0; COMPUTE 0.0 [0+2]");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), "");
	assert_true(hd_member_has_slots(w->m, 2) && hd_member_has_slots(w->m, 3));
	at_work_end(w);

	/* what comes behind a fence is said, and computed with in the next view */
	begin(w, 1, lacking, 2);
	EVENT(READY, AT(0));
	FENCE(2);
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), ">co STATUS@2 0 member begun [0+2] slot c");
	IS(VIEW(2, 4, STAGED, .step = 0, .afresh = true, .nchain = 2, .chain = own),
		"ADOPT 2 of 4; CANCEL 0; BEGIN 0; COMPUTE 0.0 [0+2]");
	at_work_end(w);
}

/* 0 runs stage 0 and has the shadow of stage 1, 1 the other way round: both hold all. 1 has lost all, or its
 * shadow, or its stage. */
static void what_the_own_stage_reads_comes_first_and_the_shadow_while_it_computes(void **state)
{
	static const struct hd_vrank ranks_of_two[] = { { 0, 4 }, { 1, 0 } };
	static const struct { uint64_t mine; const char *begins, *then, *last; } row[] = {
		{ 0, "BEGIN 0; FETCH 0 own", "FETCH 0; COMPUTE 0.0 [0+4]", ">0 SLOTTED@1 0" },
		{ 12, "BEGIN 0; FETCH 0; COMPUTE 0.0 [0+4]", ">0 SLOTTED@1 0", "" },
		{ 3, "BEGIN 0; FETCH 0 own", ">0 SLOTTED@1 0; COMPUTE 0.0 [0+4]", "" },
	};
	static struct hd_stage_buckets shadowed;
	struct hd_member_config config = staged;
	struct at_work at, *w = &at;

	(void)state;
	shadowed = two;
	shadowed.shadows = true;
	config.buckets = &shadowed;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_have held[] = { { 0, 1 | (row[i].mine & 1) << 1 },
			{ 2, 1 | (row[i].mine & 4) >> 1 } };
		at_work_synced(w, &config, 1);
		*w->m->mine = row[i].mine;
		FENCE(1);
		VIEW(1, 2, .nrank = 2, .rank = ranks_of_two, .width = 2, .nplace = 2, .place = place,
			.step = 0, .nchain = 2, .chain = held);
		IS(EVENT(READY, AT(0)), row[i].begins);
		IS(EVENT(FETCHED, .epoch = 1, AT(0)), row[i].then);
		CHECK(hd_member_has_slots(w->m, 2) && hd_member_has_slots(w->m, 0) == (i > 0), "row %zu", i);
		IS(EVENT(FETCHED, .epoch = 1, AT(0)), row[i].last);
		assert_true(hd_member_has_slots(w->m, 0) && hd_member_has_slots(w->m, 1));
		at_work_end(w);
	}
	/* a fence between the two: what came is said, and the next view begins with the rest */
	at_work_synced(w, &config, 1);
	*w->m->mine = 0;
	FENCE(1);
	VIEW(1, 2, .nrank = 2, .rank = ranks_of_two, .width = 2, .nplace = 2, .place = place, .step = 0,
		.nchain = 1, .chain = &(const struct hd_have){ 0, 1 });
	EVENT(READY, AT(0));
	FENCE(2);
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), ">co STATUS@2 0 member begun [0+4] slot c");
	IS(VIEW(2, 2, .nrank = 2, .rank = ranks_of_two, .width = 2, .nplace = 2, .place = place, .step = 0,
		.afresh = true, .nchain = 2, .chain = ((const struct hd_have[]){ { 0, 1 }, { 2, 3 } })),
		"ADOPT 2 of 2; CANCEL 0; BEGIN 0; FETCH 0; COMPUTE 0.0 [0+4]");
	at_work_end(w);
}

/* A pass that was computed before the step was cancelled is not said to be there while state is fetched. */
static void entries_of_a_cancelled_step_are_not_sent_again(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, own, 2);
	EVENT(READY, AT(0));
	FENCE(2);
	IS(EVENT(COMPUTED, AT(0)), "");
	*w->m->mine = 0;
	IS(VIEW(2, 4, STAGED, .step = 0, .afresh = true, .nchain = 2, .chain = lacking),
		"ADOPT 2 of 4; CANCEL 0; BEGIN 0; FETCH 0 own");
	IS(EVENT(TICK), ">co PROGRESS@2 0 0 0");
	at_work_end(w);
}

static void a_fence_waits_for_finish(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all, 1);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(ROOT, 2, 0);
	EVENT(FOLDED, AT(0));
	CAME(SUM, 2, 1);
	CAME(NORM, 3, 2);
	CAME(NORM, 1, 3);
	for (uint32_t m = 1; m < 4; m++)
		CAME(LEAVES, m, 0);
	assert_true(w->m->finishing);
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(UPDATED, AT(0), .news = &none),
		">1 SEAL@2 0 ran knows 1; >2 SEAL@2 0 ran knows 1; >3 SEAL@2 0 ran knows 1; "
		">co SEAL@2 0 ran knows 1; >co STATUS@2 1 member prev sum 3 slot fffffffffffffff3; "
		"BOUNDARY 1 writer");
	at_work_end(w);
}

/* Others had finished it: sums go to the holders that lack them, norms to all that do not take them. */
static void a_step_that_is_taken_up_again_is_finished_from_its_sums(void **state)
{
	static const struct hd_have sums[] = { { 0, 5 }, { 2, 2 }, { 3, 10 } };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, &all, 1);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(ROOT, 3, 2);
	EVENT(FOLDED, AT(0), .bucket = 2);
	CAME(SUM, 3, 3);
	EVENT(SQUARED, AT(0), .bucket = 3);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2] sum c slot ffffffffffffffff");
	IS(VIEW(2, 4, STAGED, .step = 0, .nhave = 3, .have = sums, .nchain = 2, .chain = own, .table = 1),
		"ADOPT 2 of 4; AGAIN 0; PUBLISH 0.2 {3}; NORM 0.3 {02}");
	EVENT(NORM, .epoch = 2, .worker = 2, .bucket = 0, AT(0));
	EVENT(NORM, .epoch = 2, .worker = 2, .bucket = 1, AT(0));
	IS(EVENT(TABLE, .epoch = 2, .worker = 0, AT(0)), "FINISH 0");
	at_work_end(w);
}

/* A view of another number of stages, or with a map that its shape forbids, is no answer. */
/* The writer has no rank in the new view, and another one saves: what it gathers for that may be gone when
 * the others end the step without it. */
static void a_writer_that_has_no_rank_any_more_saves_nothing(void **state)
{
	static const struct hd_vrank without[] = { { 1, 4 }, { 2, 0 } };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all, 1);
	assert_true(hd_member_saves(w->m));
	FENCE(2);
	IS(VIEW(2, 4, .nrank = 2, .rank = without, .width = 2, .nplace = 2, .place = place, .step = 0,
		.nchain = 1, .chain = &all), "ADOPT 2 of 4; BOUNDARY 0");
	assert_false(hd_member_saves(w->m));
	IS(EVENT(READY, AT(0)), "");
	IS(EVENT(READY, AT(0)), "BEGIN 0");
	at_work_end(w);
}

static void a_view_of_another_shape_is_not_taken(void **state)
{
	static const uint32_t three[] = { 0, 1, 1 };
	static const struct hd_vrank bad[] = { { 0, 2 }, { 1, 1 }, { 2, 1 }, { 3, 0 } };
	struct at_work at, *w = &at;

	(void)state;
	open_links(w, 0);
	FENCE(1);
	IS(VIEW(1, 4, .nrank = 4, .rank = rank, .width = 2, .nplace = 3, .place = three, .step = 0), "");
	IS(VIEW(1, 4, .nrank = 4, .rank = bad, .width = 2, .nplace = 2, .place = place, .step = 0), "");
	IS(VIEW(1, 4, STAGED, .step = 0, .nchain = 1, .chain = &all), "ADOPT 1 of 4; BOUNDARY 0 writer");
	at_work_end(w);
	/* one without stages is to hold in */
	open_links(w, 0);
	FENCE(1);
	IS(VIEW(1, 4, .step = 0, .hold = true, .nchain = 1, .chain = &all),
		"ADOPT 1 of 4; BOUNDARY 0 writer");
	IS(EVENT(READY, AT(0)), "");
	at_work_end(w);
}

/* PREPARE names what the old view held: of 0, 1, 2, 3 the last two leave, 4 and 5 come in their place. */
static void a_planned_change_carries_stages_over(void **state)
{
	static const uint32_t old[] = { 0, 1, 2, 3 }, next[] = { 0, 1, 4, 5 }, off[] = { 0, 2 },
		cuts[] = { 0, 5 };
	static const struct hd_vrank to[] = { { 0, 2 }, { 1, 0 }, { 4, 2 }, { 5, 0 } };
	struct hd_msg_prepare p = { .next = 2, .nold = 4, .old = old, .nmember = 4, .member = next, .nrank =
		4,
		.rank = to, .width = 2, .nplace = 2, .place = place, .old_width = 2, .nold_place = 2,
		.old_place = place, .nold_rank = 4, .old_rank = rank, .nfirst = 2, .first = cuts };
	struct at_work at, *w = &at;

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		begin(w, 0, &all, 1);
		struct hd_msg_prepare q = p;
		q.place = turn == 1 ? off : place;
		q.old_place = turn == 2 ? off : place;
		IS(HEAR(PREPARE, .epoch = 1, .prepare = q), turn ? "" : "PREPARE 2 of 4");
		assert_int_equal(w->m->next.open, !turn);
		assert_true(turn || w->m->next.view.shape.first[1] == 5);
		at_work_end(w);
	}
	begin(w, 0, &all, 1);
	HEAR(PREPARE, .epoch = 1, .prepare = p);
	EVENT(PREPARED, .epoch = 2);
	EVENT(READY, AT(0));
	w->m->at = w->m->switch_step = 6;
	w->m->begun = false;
	w->m->next.decided = true;
	hd_seals_of(&w->m->seals, 1, old, NULL, 6, 4);
	hd_seals_expect(&w->m->seals, 2, next, 4);
	PEER_SAYS(4, SEAL, .epoch = 2, .seal = { .step = 5 });
	IS(PEER_SAYS(5, SEAL, .epoch = 2, .seal = { .step = 5 }),
		"EPOCH 2; ADOPT 2 of 4; >co SUSPECT@2 4 closed; >co SUSPECT@2 5 closed; BEGIN 6; "
		"COMPUTE 6.0 [0+2]");
	for (uint32_t b = 0; b < 4; b++)
		assert_int_equal(w->m->slots[b], b < 2 ? 1 : 2);   /* of 2 and 3 nothing is left */
	assert_int_equal(w->m->x.fetchers, 12);
	at_work_end(w);
}

static void sharded_stages_are_refused(void **state)
{
	struct hd_member_config config = staged;
	struct hd_member *m = NULL;
	struct hd_diag diag = { "" };

	(void)state;
	config.copies = 2;
	assert_int_equal(hd_member_create(&m, &config, &diag), HD_E_REFUSED);
	assert_true(!m && strstr(diag.text, "comm.sync: allreduce"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_ends_with_own_sums_and_the_norms_of_others),
		cmocka_unit_test(whole_tensors_are_measured_before_they_are_updated),
		cmocka_unit_test(nothing_is_finished_before_all_is_here),
		cmocka_unit_test(a_member_without_its_stage_fetches_it_and_computes_then),
		cmocka_unit_test(what_the_own_stage_reads_comes_first_and_the_shadow_while_it_computes),
		cmocka_unit_test(entries_of_a_cancelled_step_are_not_sent_again),
		cmocka_unit_test(a_fence_waits_for_finish),
		cmocka_unit_test(a_step_that_is_taken_up_again_is_finished_from_its_sums),
		cmocka_unit_test(a_writer_that_has_no_rank_any_more_saves_nothing),
		cmocka_unit_test(a_view_of_another_shape_is_not_taken),
		cmocka_unit_test(a_planned_change_carries_stages_over),
		cmocka_unit_test(sharded_stages_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
