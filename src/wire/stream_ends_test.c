/* How transfers, epochs and connections end. */
#include "wire/stream.h"

#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing_stream.h"

/* ---- ends ---- */

static void a_cancelled_transfer_gives_its_slot_back(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1 << 20 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = malloc(1 << 20), *into = calloc(1, 1 << 20);

	(void)state;
	fill(bytes, 1 << 20, 1);
	enter(p, 1, rows, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(send(p, 0, 1, 0, 1, into, 1 << 20, 5), HD_OK);
	pair_write(p, 0, 100000);
	pair_read(p, 1, SIZE_MAX);
	hd_stream_cancel(p->stream[0], 5);
	/* not before a turn, nor before what was committed is written */
	assert_int_equal(p->heard[0].n_sents, 0);
	pair_run(p);
	assert_int_equal(p->heard[0].n_sents, 1);
	assert_int_equal(p->heard[0].sents[0].err, HD_E_STALE);
	assert_int_equal(p->heard[1].n_arrivals, 0);
	assert_int_equal(send(p, 0, 1, 0, 2, bytes, 1 << 20, 6), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_int_equal(p->heard[1].arrivals[0].step, 2);
	assert_memory_equal(into, bytes, 1 << 20);
	assert_int_equal(p->closed[0] | p->closed[1], 0);
	free(bytes);
	free(into);
	pair_free(p);
}

static void an_epoch_ends_all_transfers_and_none_comes_after_it(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1 << 20 }, { 2, 0, 100 }, { 3, 1, 100 } };

	(void)state;
	/* The receiver first, the sender first, at every stage of the first transfer. */
	for (int first = 0; first < 2; first++)
		for (size_t stage = 0; stage < 1200000; stage += 130000) {
			struct stream_pair *p = pair_make(true, true, stage + 1);
			uint8_t *bytes = malloc(1 << 20), *into = calloc(1, 1 << 20),
				*later = calloc(1, 1 << 20);
			uint32_t at_change;
			fill(bytes, 1 << 20, 1);
			enter(p, 1, rows, 3);
			assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
			pair_run(p);
			assert_int_equal(send(p, 0, 1, 0, 1, bytes, 1 << 20, 1), HD_OK);
			assert_int_equal(send(p, 0, 2, 0, 1, bytes, 100, 2), HD_OK);
			for (size_t done = 0; done < stage;) {
				size_t n = pair_write(p, 0, stage - done);
				pair_read(p, 1, SIZE_MAX);
				done = n ? done + n : stage;
			}
			for (int k = 0; k < 2; k++) {
				int i = k ^ first;
				hd_stream_decided(p->stream[1 - i], 2);
				hd_stream_epoch(p->stream[i], 2, plan_a);
				if (i == 1)
					memset(into, 0xee, 1 << 20);
				at_change = p->heard[1].n_arrivals;
				assert_int_equal(hd_stream_channel(p->stream[i], rows, 3, rows, 3, NULL),
					HD_OK);
				if (i == 1)
					assert_int_equal(hd_stream_post(p->stream[1], 1, later, 0, NULL),
						HD_OK);
				if (stage % 260000)
					pair_run(p);
			}
			pair_run(p);
			CHECK(!p->closed[0] && !p->closed[1], "stage %zu: %s %s", stage, p->diag[0].text,
				p->diag[1].text);
			CHECK(p->heard[1].n_arrivals == at_change || first == 0, "stage %zu: %u arrivals",
				stage, p->heard[1].n_arrivals);
			assert_int_equal(p->heard[0].n_sents, 2);
			for (size_t b = 0; b < 1 << 20; b++)
				CHECK(into[b] == 0xee || first == 0,
					"stage %zu: byte %zu was written after the epoch", stage, b);
			assert_int_equal(send(p, 0, 1, 0, 9, bytes, 1 << 20, 3), HD_OK);
			pair_run(p);
			CHECK(p->heard[1].arrivals[p->heard[1].n_arrivals - 1].step == 9 &&
				memcmp(later, bytes, 1 << 20) == 0, "stage %zu", stage);
			free(bytes);
			free(into);
			free(later);
			pair_free(p);
		}
}

static void frames_of_an_old_epoch_are_dropped_counted_and_answered_once(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	struct hd_hub_stats stats = { 0 };

	(void)state;
	hd_stream_epoch(p->stream[0], 1, plan_a);
	hd_stream_epoch(p->stream[1], 4, plan_a);
	assert_int_equal(hd_stream_tell(p->stream[0], 50, 1, "abc", 3, NULL), HD_OK);
	assert_int_equal(hd_stream_tell(p->stream[0], 51, 1, "abc", 3, NULL), HD_OK);
	hd_stream_decided(p->stream[0], 4);               /* so that it may read the answer */
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, 0);
	hd_stream_stats(p->stream[1], &stats);
	assert_int_equal(stats.dropped_stale, 4);
	assert_int_equal(p->heard[0].n_stales, 1);
	assert_int_equal(p->heard[0].stale_epoch, 4);
	hd_stream_epoch(p->stream[0], 4, plan_a);
	assert_int_equal(hd_stream_tell(p->stream[0], 52, 1, "abc", 3, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, 1);
	assert_int_equal(p->heard[1].messages[0].message.epoch, 4);
	pair_free(p);
}

static void frames_of_an_unknown_epoch_are_held_until_it_is_known(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	uint32_t epoch = 0;

	(void)state;
	hd_stream_epoch(p->stream[0], 6, plan_a);
	assert_int_equal(hd_stream_tell(p->stream[0], 50, 1, "abc", 3, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_AHEAD);
	assert_int_equal(epoch, 6);
	assert_int_equal(p->heard[1].n_messages, 0);
	hd_stream_decided(p->stream[1], 6);
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, 1);
	assert_int_equal(p->heard[1].messages[0].message.epoch, 6);
	pair_free(p);
}

static void a_link_with_a_coordinator_is_not_fenced(void **state)
{
	struct stream_pair *p = pair_make(false, true, 1);

	(void)state;
	hd_stream_epoch(p->stream[0], 6, plan_a);
	assert_int_equal(hd_stream_tell(p->stream[0], 50, 1, "abc", 3, NULL), HD_OK);
	assert_int_equal(hd_stream_tell(p->stream[1], 51, 1, "abc", 3, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].messages[0].message.epoch, 6);
	assert_int_equal(p->heard[0].messages[0].message.epoch, 0);
	assert_int_equal(p->heard[0].n_messages + p->heard[1].n_messages, 2);
	pair_free(p);
}

static void bulk_that_the_fence_cuts_off_is_told_to_both(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = calloc(1, 1 << 20), *into = calloc(1, 1 << 20);

	(void)state;
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into, 1 << 20, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = 7, .bytes = bytes,
		.len = 1 << 20 }, 0, NULL), HD_OK);
	pair_write(p, 0, 100000);
	while (pair_read(p, 1, SIZE_MAX))
		;
	hd_stream_epoch(p->stream[1], 1, plan_a);
	hd_stream_decided(p->stream[0], 1);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_int_equal(p->heard[1].arrivals[0].err, HD_E_STALE);
	assert_int_equal(p->heard[0].n_sents, 1);
	assert_int_equal(p->heard[0].sents[0].err, HD_E_STALE);
	hd_stream_epoch(p->stream[0], 1, plan_a);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into, 1 << 20, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = 7, .bytes = bytes,
		.len = 1 << 20 }, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].arrivals[1].err, HD_OK);
	assert_int_equal(p->closed[0] | p->closed[1], 0);
	free(bytes);
	free(into);
	pair_free(p);
}

/* A scribe that saves at the step where a view begins asks members that have gone on already, and is asked
 * by them. */
static void questions_and_bulk_reach_who_is_in_the_decided_epoch_already(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t bytes[300] = { 1, 2, 3 }, into[2][300] = { { 0 } };
	struct hd_hub_stats stats = { 0 };

	(void)state;
	hd_stream_decided(p->stream[0], 4);
	hd_stream_epoch(p->stream[1], 4, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], NULL, 0, NULL, 0, NULL), HD_OK);
	pair_run(p);                                      /* its EPOCH is heard; nothing was dropped */
	assert_int_equal(hd_stream_expect(p->stream[0], 7, into[0], 300, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_tell(p->stream[0], HD_TELL_ASKS, 1, "abc", 3, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 8, into[1], 300, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, 1);
	assert_int_equal(hd_stream_answer(p->stream[1], &(struct hd_answer){ .request = 7, .bytes = bytes,
		.len = 300 }, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = 8, .bytes = bytes,
		.len = 300 }, 0, NULL), HD_OK);
	pair_run(p);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p->heard[i].n_arrivals, 1);
		assert_int_equal(p->heard[i].arrivals[0].err, HD_OK);
		assert_memory_equal(into[i], bytes, 300);
	}
	assert_int_equal(hd_stream_tell(p->stream[0], HD_TELL_ASKS - 1, 1, "abc", 3, NULL), HD_OK);
	/* any other message stays one of the epoch that is over there */
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, 1);
	hd_stream_stats(p->stream[1], &stats);
	assert_int_equal(stats.dropped_stale, 2);
	pair_free(p);
}

static void different_plans_of_one_epoch_close_the_connection(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);

	(void)state;
	hd_stream_epoch(p->stream[0], 1, plan_a);
	hd_stream_epoch(p->stream[1], 1, plan_b);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hd_stream_channel(p->stream[i], NULL, 0, NULL, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->closed[0], HD_CLOSE_PLAN);
	assert_int_equal(p->closed[1], HD_CLOSE_PLAN);
	pair_free(p);
}

static void what_was_told_goes_before_a_good_bye_and_nothing_after(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = calloc(1, HD_TELL_MAX);

	(void)state;
	assert_int_equal(hd_stream_tell(p->stream[0], 50, 1, bytes, HD_TELL_MAX, NULL), HD_OK);
	hd_stream_bye(p->stream[0], HD_CLOSE_DONE, "see \x1b you");
	assert_int_equal(hd_stream_tell(p->stream[0], 50, 1, "abc", 3, NULL), HD_E_PEERLOST);
	pair_run(p);
	assert_true(hd_stream_said_bye(p->stream[0]));
	assert_int_equal(p->heard[1].n_messages, 1);
	assert_int_equal(p->closed[1], HD_CLOSE_DONE);
	assert_string_equal(p->diag[1].text, "worker 0 closed: it said good-bye: see ? you");
	free(bytes);
	pair_free(p);
}

static void a_lost_connection_reports_every_send_once(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1 << 20 }, { 2, 0, 100 }, { 3, 1, 100 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = calloc(1, 1 << 20);

	(void)state;
	enter(p, 1, rows, 3);
	pair_run(p);
	for (uint32_t t = 1; t <= 3; t++)
		assert_int_equal(send(p, 0, t, 0, 1, bytes, rows[t - 1].bytes, t), HD_OK);
	pair_write(p, 0, 50000);
	hd_stream_lost(p->stream[0]);
	assert_int_equal(p->heard[0].n_sents, 3);
	for (int i = 0; i < 3; i++)
		assert_true(p->heard[0].sents[i].err == HD_E_PEERLOST ||
			(p->heard[0].sents[i].token == 3 && !p->heard[0].sents[i].err));
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 1 << 20, 9), HD_E_PEERLOST);
	free(bytes);
	pair_free(p);
}

static enum hd_err answers(struct stream_pair *p, uint64_t request, const uint8_t *bytes, uint64_t len)
{
	return hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = request, .step = 1,
		.bytes = bytes, .len = len, .token = request }, p->now, &p->diag[0]);
}

/* After so many bytes of the connection: before it begins, at each stage of it, when it is here. Not a byte
 * comes to the buffer after the call, the sender hears of it, and the number can be expected again. */
static void an_answer_that_is_refused_writes_nothing_more(void **state)
{
	enum { LEN = 300000 };
	uint8_t *bytes = malloc(LEN), *into = malloc(LEN), *again = calloc(1, LEN);

	(void)state;
	fill(bytes, LEN, 1);
	for (size_t stage = 0; stage < 310000; stage += 7777) {
		struct stream_pair *p = pair_make(true, true, stage + 1);
		enter(p, 1, NULL, 0);
		pair_run(p);
		assert_int_equal(hd_stream_expect(p->stream[1], 3, into, LEN, 0, NULL), HD_OK);
		assert_int_equal(answers(p, 3, bytes, LEN), HD_OK);
		for (size_t done = 0, n = 1; done < stage && n; done += n) {
			n = pair_write(p, 0, stage - done);
			while (pair_read(p, 1, 1 + n % 5000))
				;
		}
		const bool came = p->heard[1].n_arrivals;
		hd_stream_refuse(p->stream[1], 3);
		hd_stream_refuse(p->stream[1], 3);
		memset(into, 0xee, LEN);
		pair_run(p);
		for (size_t i = 0; i < LEN; i++)
			CHECK(into[i] == 0xee, "byte %zu was written after %zu", i, stage);
		assert_int_equal(p->heard[1].n_arrivals, came);
		assert_int_equal(p->heard[0].n_sents, 1);
		assert_true(p->heard[0].sents[0].err == HD_E_STALE || stage + 2 * HD_CHUNK_FIRST > LEN);
		assert_int_equal(p->closed[0] | p->closed[1], 0);
		assert_int_equal(hd_stream_expect(p->stream[1], 3, again, LEN, 0, NULL), HD_OK);
		assert_int_equal(answers(p, 3, bytes, LEN), HD_OK);
		pair_run(p);
		assert_int_equal(p->heard[1].n_arrivals, came + 1);
		assert_memory_equal(again, bytes, LEN);
		/* every byte of credit is there, or is given back with the next quarter */
		for (int i = 0; i < 2; i++)
			assert_int_equal(p->stream[i]->credit[HD_CLASS_BULK] +
				p->stream[1 - i]->owed_credit[HD_CLASS_BULK], HD_CREDIT_BULK);
		pair_free(p);
	}
	free(bytes);
	free(into);
	free(again);
}

/* The fence drops it before it begins: the number is free, and nothing is reported. */
static void a_refused_answer_of_an_old_epoch_is_over(void **state)
{
	uint8_t byte = 7, into = 0;
	struct stream_pair *p = pair_make(true, true, 1);

	(void)state;
	enter(p, 1, NULL, 0);
	pair_run(p);
	assert_int_equal(hd_stream_expect(p->stream[1], 3, &into, 1, 0, NULL), HD_OK);
	hd_stream_refuse(p->stream[1], 3);
	hd_stream_refuse(p->stream[1], 4);        /* none */
	assert_int_equal(hd_stream_expect(p->stream[1], 3, &into, 1, 0, NULL), HD_E_INVAL);
	assert_int_equal(answers(p, 3, &byte, 1), HD_OK);
	pair_write(p, 0, 60);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 0);
	assert_int_equal(hd_stream_expect(p->stream[1], 3, &into, 1, 0, NULL), HD_OK);
	assert_int_equal(p->closed[0] | p->closed[1], 0);
	pair_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cancelled_transfer_gives_its_slot_back),
		cmocka_unit_test(an_epoch_ends_all_transfers_and_none_comes_after_it),
		cmocka_unit_test(frames_of_an_old_epoch_are_dropped_counted_and_answered_once),
		cmocka_unit_test(frames_of_an_unknown_epoch_are_held_until_it_is_known),
		cmocka_unit_test(a_link_with_a_coordinator_is_not_fenced),
		cmocka_unit_test(bulk_that_the_fence_cuts_off_is_told_to_both),
		cmocka_unit_test(questions_and_bulk_reach_who_is_in_the_decided_epoch_already),
		cmocka_unit_test(different_plans_of_one_epoch_close_the_connection),
		cmocka_unit_test(what_was_told_goes_before_a_good_bye_and_nothing_after),
		cmocka_unit_test(a_lost_connection_reports_every_send_once),
		cmocka_unit_test(an_answer_that_is_refused_writes_nothing_more),
		cmocka_unit_test(a_refused_answer_of_an_old_epoch_is_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
