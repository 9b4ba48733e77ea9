#include "timeline/align.h"

#include <math.h>

#include "base/alloc.h"
#include "timeline/build.h"
#include "timeline/testing_files.h"

#define SECOND INT64_C(1000000000)

static struct hd_arena arena;
static uint64_t drawn;

static int open_arena(void **state) { (void)state; hd_arena_init(&arena, 0); drawn = 1; return 0; }
static int close_arena(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

/* From 0 to 1. */
static double draw(void)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (double)(drawn >> 11) * 0x1p-53;
}

/* The injected clock: what it shows at a time of the reference. */
struct world { double offset, drift; double jitter, there, back; };
static int64_t local_at(const struct world *w, double reference)
{
	return llround(reference * (1 + w->drift) - w->offset);
}
static double reference_at(const struct world *w, int64_t local) { return ((double)local + w->offset) /
	(1 + w->drift); }

/* Probes each `every` seconds for `seconds`; both ways take what they take, and some jitter. */
static uint32_t probe_for(const struct world *w, double seconds, double every, struct hd_tl_probe *out)
{
	uint32_t n = 0;

	for (double t = 0; t < seconds; t += every, n++) {
		double sent = t * 1e9, there = sent + w->there + w->jitter * draw(), held = there + 2000,
			back = held + w->back + w->jitter * draw();
		out[n] = (struct hd_tl_probe){ .t1 = local_at(w, sent), .t2 = llround(there),
			.t3 = llround(held), .t4 = local_at(w, back) };
	}
	return n;
}

static struct hd_tl_clock fit(const struct hd_tl_probe *probe, uint32_t n, int64_t begin, int64_t end)
{
	struct hd_tl_clock clock;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_tl_fit(&arena, probe, n, begin, end, &clock, &diag);

	CHECK(err == HD_OK, "%s", diag.text);
	return clock;
}

enum { PROBES = 4000 };
static struct hd_tl_probe probe[PROBES];

/* Goal 6: the true offset lies inside what is stated, for every stamp. */
static void the_true_time_lies_within_the_stated_error(void **state)
{
	(void)state;
	static const double offset[] = { 0, 3600e9, -3600e9, 1e6, 9e15 };
	static const double drift[] = { 0, 500e-6, -500e-6, 3e-6 };
	static const double way[][3] = {
		{ 20e3, 20e3, 0 }, { 1e6, 10e3, 5e5 }, { 0, 0, 0 }, { 5e3, 9e6, 3e6 },
	};

	for (size_t o = 0; o < 5; o++)
		for (size_t d = 0; d < 4; d++)
			for (size_t k = 0; k < 4; k++) {
				struct world w = { offset[o], drift[d], way[k][2], way[k][0], way[k][1] };
				uint32_t n = probe_for(&w, 150, 2, probe);
				int64_t begin = local_at(&w, -SECOND), end = local_at(&w, 151e9);
				struct hd_tl_clock clock = fit(probe, n, begin, end);
				assert_true(clock.aligned && clock.nsteps == 0);
				for (double t = -1e9; t < 151e9; t += 0.37e9) {
					int64_t local = local_at(&w, t), error, got = hd_tl_reference(&clock,
						local, &error);
					/* doubles of the test hold 2 ns at 9e15 */
					double off = fabs((double)got - reference_at(&w, local));
					CHECK(off <= (double)error + 2, "offset %g drift %g way %zu at %g: "
						"off by %g, stated %lld", offset[o], drift[d], k, t, off,
						(long long)error);
				}
			}
}

/* Inside the probed span half the larger way of the two probes around, and a hundredth, and two ticks. */
static void the_error_is_at_most_half_a_way_there_and_back(void **state)
{
	(void)state;
	struct world w = { 5e9, 100e-6, 4e5, 3e4, 6e4 };
	uint32_t n = probe_for(&w, 300, 2, probe);
	struct hd_tl_clock clock = fit(probe, n, probe[0].t1, probe[n - 1].t4);

	for (uint32_t i = 0; i + 1 < n; i++)
		for (int part = 0; part <= 10; part++) {
			int64_t middle = probe[i].t1 + (probe[i].t4 - probe[i].t1) / 2,
				next = probe[i + 1].t1 + (probe[i + 1].t4 - probe[i + 1].t1) / 2, error;
			double way = fmax((double)(probe[i].t4 - probe[i].t1 - 2000),
				(double)(probe[i + 1].t4 - probe[i + 1].t1 - 2000));
			hd_tl_reference(&clock, middle + (next - middle) / 10 * part, &error);
			CHECK((double)error <= 1.01 * way / 2 + 2 * HD_TL_RESOLUTION_NS + 1,
				"probe %u: %lld of a way of %g", i, (long long)error, way);
		}
}

static void more_probes_never_widen_the_error(void **state)
{
	(void)state;
	struct world w = { -8e9, -300e-6, 1e6, 1e5, 4e5 };
	uint32_t n = probe_for(&w, 58, 1, probe), few = 0;
	struct hd_tl_probe thin[64];
	for (uint32_t i = 0; i < n; i += 3)
		thin[few++] = probe[i];
	thin[few++] = probe[n - 1];
	struct hd_tl_clock all = fit(probe, n, probe[0].t1, probe[n - 1].t4),
		some = fit(thin, few, probe[0].t1, probe[n - 1].t4);
	double sum[2] = { 0 };
	for (uint32_t i = 0; i < n; i++) {
		int64_t a, b;
		hd_tl_reference(&all, probe[i].t1, &a);
		hd_tl_reference(&some, probe[i].t1, &b);
		CHECK(a <= b + 1, "probe %u: %lld, with fewer %lld", i, (long long)a, (long long)b);
		sum[0] += (double)a;
		sum[1] += (double)b;
	}
	assert_true(sum[0] < 0.9 * sum[1]);
}

static void times_stay_in_order(void **state)
{
	(void)state;
	struct world w = { 1e9, 500e-6, 5e6, 1e4, 1e4 };
	uint32_t n = probe_for(&w, 200, 2, probe);
	struct hd_tl_clock clock = fit(probe, n, probe[0].t1, probe[n - 1].t4);
	int64_t last = INT64_MIN;
	for (int64_t t = probe[0].t1 - SECOND; t < probe[n - 1].t4 + SECOND; t += SECOND / 100) {
		int64_t got = hd_tl_reference(&clock, t, NULL);
		CHECK(got > last, "at %lld", (long long)t);
		last = got;
	}
}

static void a_clock_that_was_set_is_found_and_bounded(void **state)
{
	(void)state;
	struct world w = { 2e9, 20e-6, 1e5, 2e4, 2e4 }, after = w;
	after.offset = -3e9;
	uint32_t n = probe_for(&w, 40, 2, probe), all = n + probe_for(&after, 40, 2, probe + n);
	for (uint32_t i = n; i < all; i++) {            /* at 40 s of the reference it is set on by 5 s */
		probe[i].t1 += 40 * SECOND;
		probe[i].t4 += 40 * SECOND;
		probe[i].t2 += 40 * SECOND;
		probe[i].t3 += 40 * SECOND;
	}
	struct hd_tl_clock clock = fit(probe, all, probe[0].t1, probe[all - 1].t4);
	assert_int_equal(clock.nsteps, 1);
	assert_true(clock.step[0] > probe[n - 1].t4 && clock.step[0] < probe[n].t1);
	for (uint32_t i = 0; i < all; i++) {
		int64_t middle = probe[i].t1 + (probe[i].t4 - probe[i].t1) / 2, error,
			got = hd_tl_reference(&clock, middle, &error);
		CHECK(llabs(got - probe[i].t2) < 300000 && error < 300000, "probe %u", i);
	}
	int64_t gap = probe[n].t1 - probe[n - 1].t4, error;
	hd_tl_reference(&clock, probe[n - 1].t4 + gap / 4, &error);
	assert_true(error > 37 * SECOND / 10);
	hd_tl_reference(&clock, probe[n - 1].t4 + gap / 4 * 3, &error);
	assert_true(error > 37 * SECOND / 10);
}

static void two_probes_are_enough_and_a_long_gap_is_bounded(void **state)
{
	(void)state;
	struct world w = { 2e9, 400e-6, 0, 2e4, 2e4 };
	uint32_t n = probe_for(&w, 4, 2, probe);
	assert_int_equal(n, 2);
	probe_for(&w, 1, 2, probe);
	struct hd_tl_probe late[1];
	late[0] = probe[1];
	late[0].t1 = local_at(&w, 500e9);
	late[0].t2 = 500 * SECOND + 20000;
	late[0].t3 = late[0].t2;
	late[0].t4 = local_at(&w, 500e9 + 40000);
	probe[1] = late[0];
	struct hd_tl_clock clock = fit(probe, 2, local_at(&w, -100e9), local_at(&w, 900e9));
	assert_int_equal(clock.nsteps, 0);
	for (double t = -100e9; t < 900e9; t += 1.7e9) {
		int64_t local = local_at(&w, t), error, got = hd_tl_reference(&clock, local, &error);
		CHECK(fabs((double)got - reference_at(&w, local)) <= (double)error + 1, "at %g", t);
		/* what lies a window's length and more outside drifts as it likes */
		assert_true(t > -61e9 || (double)error > 0.99e-3 * (-60e9 - t));
		assert_true(t < 561e9 || (double)error > 0.99e-3 * (t - 560e9));
	}
}

/* ---- of recordings ---- */

static struct hd_timeline built(const struct hd_tl_input *in, uint32_t n)
{
	struct hd_diag diag = { "" };
	struct hd_timeline t;
	enum hd_err err = tl_build(&arena, in, n, &t, &diag);

	CHECK(err == HD_OK, "%s", diag.text);
	return t;
}

static void processes_of_one_boot_have_one_clock_unless_probes_say_otherwise(void **state)
{
	(void)state;
	for (int off = 0; off < 2; off++) {
		struct tl_flight f[3];
		struct hd_tl_input in[3];
		for (uint32_t i = 0; i < 3; i++) {
			tl_flight_open(&f[i], i ? i - 1 : UINT32_MAX, 2, 64);
			f[i].info.boot[1] = 9;
			hd_flight_format(&f[i].flight, f[i].memory, &f[i].info, 64);
			tl_flight_op(&f[i], 0, 5000, 10, "F", 0);
			in[i] = tl_flight_file(&f[i], "f");
		}
		uint64_t by = off ? 100000 : 0;
		tl_flight_probe(&f[1], 1, 1000, 2000 + by, 2100 + by, 9000);
		tl_flight_probe(&f[1], 1, 21000, 22000 + by, 22100 + by, 29000);
		struct hd_timeline t = built(in, 3);
		assert_true(t.process[1].aligned && t.process[2].aligned);
		assert_true(t.process[2].error_ns == HD_TL_RESOLUTION_NS);
		int64_t t0 = t.event[t.lane[t.process[1].lane_begin].begin].t0;
		if (off)
			assert_true(t.process[1].error_ns > 3000 && t0 > 4990 + 90000);
		else
			assert_true(t.process[1].error_ns == HD_TL_RESOLUTION_NS && t0 == 4990);
		for (uint32_t i = 0; i < 3; i++)
			tl_flight_close(&f[i]);
	}
}

/* Another boot than the coordinator's: the clock of the one that has probes is that of the other. */
static void a_process_without_probes_takes_the_clock_of_its_boot(void **state)
{
	(void)state;
	struct tl_flight f[3];
	struct hd_tl_input in[3];
	for (uint32_t i = 0; i < 3; i++) {
		tl_flight_open(&f[i], i ? i - 1 : UINT32_MAX, 2, 64);
		f[i].info.boot[1] = i ? 9 : 8;
		hd_flight_format(&f[i].flight, f[i].memory, &f[i].info, 64);
		tl_flight_op(&f[i], 0, 5000, 10, "F", 0);
		in[i] = tl_flight_file(&f[i], "f");
	}
	/* in any order; one says that it came back before it was sent, and counts for nothing */
	tl_flight_probe(&f[2], 1, 21000, 122000, 122100, 29000);
	tl_flight_probe(&f[2], 1, 15000, 116000, 916100, 17000);
	tl_flight_probe(&f[2], 1, 1000, 102000, 102100, 9000);
	struct hd_timeline t = built(in, 3);
	assert_true(t.process[1].aligned && t.process[2].aligned);
	assert_true(t.process[1].error_ns > 3000 && t.process[1].error_ns < 30000);
	int64_t a = t.event[t.lane[t.process[1].lane_begin].begin].t0,
		b = t.event[t.lane[t.process[2].lane_begin].begin].t0;
	assert_true(a == b && a > 4990 + 90000 && a < 4990 + 101001);
	for (uint32_t i = 0; i < 3; i++)
		tl_flight_close(&f[i]);
}

static void a_process_with_one_probe_is_not_aligned(void **state)
{
	(void)state;
	struct tl_flight c, f;
	tl_flight_open(&c, UINT32_MAX, 1, 64);
	tl_flight_open(&f, 3, 2, 64);
	tl_flight_op(&c, 0, 5000, 10, "F", 0);
	tl_flight_op(&f, 0, 70, 10, "F", 0);
	tl_flight_probe(&f, 1, 1000, 2000, 2100, 9000);
	const struct hd_tl_input in[] = { tl_flight_file(&c, "c"), tl_flight_file(&f, "f") };
	struct hd_timeline t = built(in, 2);
	assert_true(t.process[0].aligned && !t.process[1].aligned && t.process[1].error_ns == 0);
	assert_true(t.event[t.lane[t.process[1].lane_begin].begin].t0 == 60);
	tl_flight_close(&c);
	tl_flight_close(&f);
}

/* Eight workers whose clocks are up to a second and 100 ppm off send to one another. */
static void no_receive_is_before_its_send_beyond_both_errors(void **state)
{
	(void)state;
	enum { N = 8, STEPS = 40 };
	struct tl_flight f[N + 1];
	struct hd_tl_input in[N + 1];
	struct world w[N];
	tl_flight_open(&f[N], UINT32_MAX, 2, 256);
	in[N] = tl_flight_file(&f[N], "c");
	for (uint32_t i = 0; i < N; i++) {
		w[i] = (struct world){ 2e9 * (draw() - 0.5) - 10e9, 200e-6 * (draw() - 0.5), 2e5, 3e4, 9e4 };
		tl_flight_open(&f[i], i, 3, 256);
		in[i] = tl_flight_file(&f[i], "w");
		uint32_t n = probe_for(&w[i], 80, 2, probe);
		for (uint32_t k = 0; k < n; k++)
			tl_flight_probe(&f[i], 1, (uint64_t)probe[k].t1, (uint64_t)probe[k].t2,
				(uint64_t)probe[k].t3, (uint64_t)probe[k].t4);
	}
	for (uint32_t s = 0; s < STEPS; s++)
		for (uint32_t i = 0; i < N; i++) {
			uint32_t to = (i + 1 + s) % N;
			double sent = 2e9 * s + 1e6 * i, came = sent + 1e4 * draw();
			if (to == i)
				continue;
			tl_flight_transfer(&f[i], 2, HD_EVENT_SEND, (uint64_t)local_at(&w[i], sent), 0,
				(struct hd_event_transfer){ .flow = s * N + i + 1, .peer = (uint16_t)to });
			tl_flight_transfer(&f[to], 2, HD_EVENT_RECV, (uint64_t)local_at(&w[to], came), 0,
				(struct hd_event_transfer){ .flow = s * N + i + 1, .peer = (uint16_t)i });
		}
	struct hd_timeline t = built(in, N + 1);
	uint32_t pairs = 0;
	for (uint64_t a = 0; a < t.nevents; a++)
		for (uint64_t b = 0; t.event[a].kind == HD_EVENT_SEND && b < t.nevents; b++) {
			const struct hd_tl_event *send = &t.event[a], *recv = &t.event[b];
			if (recv->kind != HD_EVENT_RECV || recv->flow != send->flow)
				continue;
			pairs++;
			int64_t both = t.process[t.lane[send->lane].process].error_ns +
				t.process[t.lane[recv->lane].process].error_ns;
			CHECK(recv->first - send->first >= -both && both > 0 && both < 1000000,
				"flow %llu: %lld of %lld", (unsigned long long)send->flow,
				(long long)(recv->first - send->first), (long long)both);
		}
	assert_true(pairs == 280);
	for (uint32_t i = 0; i <= N; i++)
		tl_flight_close(&f[i]);
}

static void ticks_become_ns_by_the_pairs_of_the_header(void **state)
{
	(void)state;
	struct hd_flight_info info = { .clock = HD_FLIGHT_CLOCK_TSC, .first = { 1000, 50 },
		.latest = { 4000, 1050 } };

	assert_true(hd_tl_local(&info, 1000) == 50 && hd_tl_local(&info, 4000) == 1050);
	assert_true(hd_tl_local(&info, 2500) == 550 && hd_tl_local(&info, 7000) == 2050);
	assert_true(hd_tl_local(&info, 400) == -150);
	assert_true(hd_tl_local(&info, UINT64_MAX) == (INT64_C(1) << 59));
	info.latest = info.first;
	assert_true(hd_tl_local(&info, 1010) == 60);
	info.clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW;
	assert_true(hd_tl_local(&info, 1010) == 1010);
}

static void each_piece_of_memory_may_be_refused(void **state)
{
	(void)state;
	struct world w = { 2e9, 20e-6, 1e5, 2e4, 2e4 };
	uint32_t n = probe_for(&w, 100, 2, probe);
	struct hd_tl_clock clock;
	enum hd_err err;
	EACH_PIECE_REFUSED(err, hd_tl_fit(&arena, probe, n, probe[0].t1, probe[n - 1].t4, &clock, NULL));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_arena, close_arena)
	const struct CMUnitTest tests[] = {
		T(the_true_time_lies_within_the_stated_error),
		T(the_error_is_at_most_half_a_way_there_and_back),
		T(more_probes_never_widen_the_error),
		T(times_stay_in_order),
		T(a_clock_that_was_set_is_found_and_bounded),
		T(two_probes_are_enough_and_a_long_gap_is_bounded),
		T(processes_of_one_boot_have_one_clock_unless_probes_say_otherwise),
		T(a_process_without_probes_takes_the_clock_of_its_boot),
		T(a_process_with_one_probe_is_not_aligned),
		T(no_receive_is_before_its_send_beyond_both_errors),
		T(ticks_become_ns_by_the_pairs_of_the_header),
		T(each_piece_of_memory_may_be_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
