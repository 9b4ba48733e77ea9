#include "timeline/tighten.h"

#include <math.h>

#include "base/alloc.h"
#include "timeline/build.h"
#include "timeline/testing_files.h"

enum { WORKERS = 8, STEPS = 60, SECONDS = 70 };

static struct hd_arena arena;
static struct tl_flight file[WORKERS + 1];
static struct hd_tl_input input[WORKERS + 2];
static uint32_t ninputs;
static double offset[WORKERS], drift[WORKERS];
static uint64_t drawn;

static double draw(void)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (double)(drawn >> 11) * 0x1p-53;
}

static uint64_t local_at(uint32_t w, double reference)
{
	return (uint64_t)llround(reference * (1 + drift[w]) - offset[w]);
}

/* Clocks a second and 100 ppm apart; probes whose two ways differ by up to 400 us, transfers of up to 4. */
static int open_files(void **state)
{
	(void)state;
	drawn = 3;
	hd_arena_init(&arena, 0);
	ninputs = WORKERS + 1;
	tl_flight_open(&file[WORKERS], UINT32_MAX, 2, 64);
	input[WORKERS] = tl_flight_file(&file[WORKERS], "c");
	for (uint32_t w = 0; w < WORKERS; w++) {
		offset[w] = 2e9 * (draw() - 0.5) - 10e9;
		drift[w] = 200e-6 * (draw() - 0.5);
		tl_flight_open(&file[w], w, 3, 2048);
		input[w] = tl_flight_file(&file[w], "w");
		for (double t = 0; t < SECONDS * 1e9; t += 2e9) {
			double there = t + 1e4 + 4e5 * draw(), back = there + 1e3 + 1e4 + 4e5 * draw();
			tl_flight_probe(&file[w], 1, local_at(w, t), (uint64_t)llround(there),
				(uint64_t)llround(there + 1e3), local_at(w, back));
		}
	}
	for (uint32_t s = 0; s < STEPS; s++)
		for (uint32_t w = 0; w < WORKERS; w++) {
			uint32_t to = (w + 1 + s % (WORKERS - 1)) % WORKERS;
			double sent = 1.1e9 * s + 1e6 * w + 1e8 * draw(), got = sent + 4e3 * draw();
			uint64_t flow = s * WORKERS + w + 1;
			tl_flight_transfer(&file[w], 2, HD_EVENT_SEND, local_at(w, sent), 0,
				(struct hd_event_transfer){ .flow = flow, .peer = (uint16_t)to });
			tl_flight_transfer(&file[to], 2, HD_EVENT_RECV, local_at(to, got), 0,
				(struct hd_event_transfer){ .flow = flow, .peer = (uint16_t)w });
		}
	return 0;
}

static int close_files(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= WORKERS; i++)
		tl_flight_close(&file[i]);
	hd_arena_finish(&arena);
	return 0;
}

static struct hd_tl_lives lives;
static struct hd_tl_clock *aligned(void)
{
	struct hd_tl_clock *clock;
	uint32_t reference;

	assert_int_equal(hd_tl_collect(&arena, input, ninputs, &lives, NULL), HD_OK);
	assert_int_equal(hd_tl_align(&arena, &lives, &clock, &reference, NULL), HD_OK);
	return clock;
}

static uint32_t worker_of(uint32_t life) { return lives.life[life]->info.worker; }

/* Receives before their sends, over all transfers. */
static uint32_t backwards(const struct hd_tl_clock *clock)
{
	struct hd_timeline t;
	uint32_t n = 0, pairs = 0;

	assert_int_equal(hd_tl_build_of(&arena, &lives, clock, 0, &t, NULL), HD_OK);
	for (uint64_t a = 0; a < t.nevents; a++)
		for (uint64_t b = 0; t.event[a].kind == HD_EVENT_SEND && b < t.nevents; b++)
			if (t.event[b].kind == HD_EVENT_RECV && t.event[b].flow == t.event[a].flow) {
				n += t.event[b].first < t.event[a].first;
				pairs++;
			}
	assert_int_equal(pairs, STEPS * WORKERS);
	return n;
}

static double sum_of_errors(const struct hd_tl_clock *clock, double *off)
{
	double sum = 0;

	*off = 0;
	for (uint32_t i = 1; i <= WORKERS; i++)
		for (double at = 1e9; at < SECONDS * 1e9 - 3e9; at += 0.31e9) {
			uint32_t w = worker_of(i);
			int64_t local = (int64_t)local_at(w, at), error,
				got = hd_tl_reference(&clock[i], local, &error);
			double truth = ((double)local + offset[w]) / (1 + drift[w]),
				by = fabs((double)got - truth);
			CHECK(by <= (double)error + 1, "worker %u at %g: off by %g, stated %lld", w, at, by,
				(long long)error);
			sum += (double)error;
			*off += by;
		}
	return sum;
}

static void no_receive_is_before_its_send(void **state)
{
	(void)state;
	struct hd_tl_clock *clock = aligned();
	uint32_t nkept;
	double before_off, after_off, before = sum_of_errors(clock, &before_off), after;
	assert_true(backwards(clock) > STEPS);
	assert_int_equal(hd_tl_tighten(&arena, &lives, clock, &nkept, NULL), HD_OK);
	assert_int_equal(nkept, 0);
	assert_int_equal(backwards(clock), 0);
	after = sum_of_errors(clock, &after_off);
	CHECK(after < 0.4 * before && after_off < 0.2 * before_off, "errors of %g became %g, distances of %g "
		"%g", before, after, before_off, after_off);
}

/* Two flows say that they came a second before they were sent. */
static void transfers_that_contradict_the_probes_are_left_out(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		tl_flight_transfer(&file[0], 2, HD_EVENT_SEND, local_at(0, 30e9 + 1e6 * k), 0,
			(struct hd_event_transfer){ .flow = 100000 + k });
		tl_flight_transfer(&file[1], 2, HD_EVENT_RECV, local_at(1, 29e9), 0,
			(struct hd_event_transfer){ .flow = 100000 + k });
	}
	struct hd_tl_clock *clock = aligned();
	uint32_t nkept;
	double off;
	assert_int_equal(hd_tl_tighten(&arena, &lives, clock, &nkept, NULL), HD_OK);
	assert_true(nkept > 0);
	for (uint32_t i = 1; i <= WORKERS; i++)
		assert_int_equal(clock[i].nsteps, 0);
	(void)sum_of_errors(clock, &off);
}

static void a_process_that_is_not_aligned_bounds_nothing(void **state)
{
	(void)state;
	struct tl_flight f;
	tl_flight_open(&f, 99, 3, 64);
	tl_flight_transfer(&f, 2, HD_EVENT_SEND, 200000000000, 0,
		(struct hd_event_transfer){ .flow = 100000 });
	tl_flight_transfer(&file[0], 2, HD_EVENT_RECV, local_at(0, 30e9), 0,
		(struct hd_event_transfer){ .flow = 100000 });
	input[ninputs++] = tl_flight_file(&f, "f");
	struct hd_tl_clock *clock = aligned();
	uint32_t nkept;
	double off;
	assert_int_equal(hd_tl_tighten(&arena, &lives, clock, &nkept, NULL), HD_OK);
	assert_true(nkept == 0 && !clock[WORKERS + 1].aligned);
	(void)sum_of_errors(clock, &off);
	tl_flight_close(&f);
}

static void each_piece_of_memory_may_be_refused(void **state)
{
	(void)state;
	struct hd_tl_clock *clock = aligned();
	uint32_t nkept;
	enum hd_err err;
	EACH_PIECE_REFUSED(err, hd_tl_tighten(&arena, &lives, clock, &nkept, NULL));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_files, close_files)
	const struct CMUnitTest tests[] = {
		T(no_receive_is_before_its_send),
		T(transfers_that_contradict_the_probes_are_left_out),
		T(a_process_that_is_not_aligned_bounds_nothing),
		T(each_piece_of_memory_may_be_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
