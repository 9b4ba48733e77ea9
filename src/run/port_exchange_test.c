#include "run/port_exchange.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { MOST = 6, BUCKETS = 9, LATE = 5 };

static double took(uint32_t nworkers, const struct hd_port_bucket *bucket, uint32_t n, bool apart)
{
	const struct hd_port_exchange x = { .nworkers = nworkers, .nbuckets = n, .bucket = bucket,
		.ns_per_byte = 1, .late_ns = LATE, .apart = apart };
	double ns = -1;

	assert_int_equal(hd_port_exchange_time(&ns, &x, &arena, NULL), HD_OK);
	return ns;
}

/* A byte a nanosecond, five until a message is there. */
static void exchanges_take_what_is_counted_by_hand(void **state)
{
	static const struct {
		const char *what; uint32_t nworkers; bool apart;
		struct { double bytes, ready_ns; uint32_t owner; uint16_t parts[4]; bool holds[4]; }
			bucket[2];
		uint32_t n; double ns;
	} rows[] = {
		{ "nothing is sent", 2, false, { { 100, 30, 0, { 1 }, { true } } }, 1, 0 },
		{ "a part, a sum", 2, false, { { 100, 30, 0, { 1, 1 }, { true, true } } }, 1, 240 },
		{ "two parts of one worker", 2, false, { { 100, 0, 0, { 1, 2 }, { true, true } } }, 1, 310 },
		{ "a sum without parts of others", 2, false, { { 100, 30, 0, { 3 }, { true, true } } }, 1, 135 },
		{ "both ways at once", 2, false, { { 100, 0, 1, { 1, 1 }, { true, true } },
			{ 100, 0, 0, { 1, 1 }, { true, true } } }, 2, 210 },
		{ "two senders share a port", 3, false, { { 100, 0, 0, { 1, 1, 1 }, { true, true, true } } },
			1, 410 },
		{ "holders that are not all pass it on", 4, false, { { 100, 0, 0, { 1, 1, 1 },
			{ true, true, true } } }, 1, 415 },
		{ "from the owner on, around", 4, false, { { 100, 0, 2, { 1, 0, 1, 1 },
			{ true, false, true, true } } }, 1, 415 },
		{ "new parameters, by the last that holds", 3, true, { { 100, 0, 0, { 1, 1, 1 },
			{ true, true } } }, 1, 415 },
		{ "when all sums are there", 3, true, { { 100, 0, 0, { 1, 1, 1 }, { true, true } },
			{ 100, 300, 1, { 0, 1 }, { false, true, true } } }, 2, 510 },
		{ "of four, the third to those that do not hold", 4, true, { { 100, 0, 0, { 1, 0, 1 },
			{ true, false, true } } }, 1, 415 },
		{ "each by the last of its own line", 4, true, { { 100, 0, 0, { 1, 0, 0, 1 },
			{ true, false, true } }, { 100, 0, 0, { 1, 0, 0, 1 }, { true, true } } }, 2, 515 },
		{ "a more urgent one goes between", 2, false, { { 100, 50, 1, { 1, 1 }, { true, true } },
			{ 100, 0, 1, { 1, 1 }, { false, true } } }, 2, 260 },
		{ "parts before sums", 2, false, { { 100, 0, 0, { 1, 1 }, { true, true } },
			{ 100, 105, 1, { 1, 1 }, { true, true } } }, 2, 315 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_port_bucket bucket[2] = { { 0 } };
		for (uint32_t b = 0; b < rows[i].n; b++) {
			bucket[b].bytes = rows[i].bucket[b].bytes;
			bucket[b].owner = rows[i].bucket[b].owner;
			for (uint32_t w = 0; w < 4; w++) {
				bucket[b].ready_ns[w] = rows[i].bucket[b].ready_ns;
				bucket[b].parts[w] = rows[i].bucket[b].parts[w];
				bucket[b].holds[w] = rows[i].bucket[b].holds[w];
			}
		}
		const double ns = took(rows[i].nworkers, bucket, rows[i].n, rows[i].apart);
		CHECK(fabs(ns - rows[i].ns) < 1e-3, "%s: %g, not %g", rows[i].what, ns, rows[i].ns);
	}
}

/* ---- beside a model in small slices of time, whose rates grow together until ports are full ---- */

/* Each worker's parts when it has them, no sum before the owner has its own. */
static void workers_are_ready_at_times_of_their_own(void **state)
{
	struct hd_port_bucket bucket = { .bytes = 100, .ready_ns = { 30, 80 }, .parts = { 1, 1 },
		.holds = { true, true } };

	(void)state;
	assert_true(fabs(took(2, &bucket, 1, false) - 290) < 1e-3);
	bucket.ready_ns[0] = 330;
	assert_true(fabs(took(2, &bucket, 1, false) - 435) < 1e-3);
}

/* What is left by rounding takes no time that can be added to so late a now: it must not stand still. */
static void late_messages_of_fast_ports_arrive(void **state)
{
	static const struct { double ready_ns, ns_per_byte, bytes; } rows[] = {
		{ 1e9, 1e-6, 1 }, { 1e9, 1e-6, 7 }, { 1e9, 1e-6, 64 }, { 1e11, 1e-6, 1 }, { 7e10, 0.08, 64 },
		{ 7e10, 0.08, 100 }, { 1e13, 0.08, 64 },
	};

	(void)state;
	alarm(120);               /* where it does stand still */
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_port_bucket bucket = { .bytes = rows[i].bytes };
		double ns = -1;
		for (uint32_t w = 0; w < 4; w++) {
			bucket.ready_ns[w] = rows[i].ready_ns;
			bucket.parts[w] = 1;
			bucket.holds[w] = true;
		}
		const struct hd_port_exchange x = { .nworkers = 4, .nbuckets = 1, .bucket = &bucket,
			.ns_per_byte = rows[i].ns_per_byte, .late_ns = LATE };
		assert_int_equal(hd_port_exchange_time(&ns, &x, &arena, NULL), HD_OK);
		/* three parts through a port, three sums */
		const double want = rows[i].ready_ns + 6 * rows[i].bytes * rows[i].ns_per_byte + 2 * LATE;
		CHECK(fabs(ns / want - 1) < 1e-12, "row %zu: %.9g, not %.9g", i, ns, want);
	}
	alarm(0);
}

/* As many as are not simulated: ports are taken one after another, and none waits. */
static void many_workers_take_their_ports_alone(void **state)
{
	enum { N = HD_PORT_FLUID + 1 };
	struct hd_port_bucket bucket[] = { { .bytes = 100, .owner = 2 }, { .bytes = 10, .owner = N - 1 } };

	(void)state;
	assert_true(took(N, bucket, 2, false) == 0);
	for (uint32_t w = 0; w < N; w++) {
		bucket[0].parts[w] = bucket[1].parts[w] = 1;
		bucket[0].holds[w] = w == 2 || w == 5;
		bucket[0].ready_ns[w] = 30;
		bucket[1].ready_ns[w] = 40;
	}
	/* eight parts to their owners, one sum back */
	assert_true(fabs(took(N, bucket, 1, false) - (30 + 800 + 2 * LATE)) < 1e-9);
	/* the first owner gets 800 and gives 10; the other gives 100, gets 80 */
	assert_true(fabs(took(N, bucket, 2, false) - (30 + 800 + 2 * LATE)) < 1e-9);
	bucket[1].bytes = 1000;
	assert_true(fabs(took(N, bucket, 2, false) - (40 + 8000 + 2 * LATE)) < 1e-9);
	/* what one gives comes behind what it gave before: 100, then 1000 to each */
	bucket[0].owner = 3;
	for (uint32_t w = 0; w < N; w++) {
		bucket[1].parts[w] = w == N - 1;
		bucket[1].holds[w] = true;
	}
	assert_true(fabs(took(N, bucket, 2, false) - (30 + 100 + 8000 + 2 * LATE)) < 1e-9);
	assert_true(fabs(took(N, bucket, 1, true) - (30 + 800 + 2 * LATE)) < 1e-9);
}

struct slice_message { uint32_t from, to, bucket, line; bool sum, gone; double left, ready_ns; };

struct slices {
	const struct hd_port_bucket *bucket;
	uint32_t nworkers, nbuckets, n;
	struct slice_message at[4096];
	double now_ns, end_ns;
};

static void put(struct slices *s, struct slice_message p) { s->at[s->n++] = p; }

/* All holders but the owner, in their order around it. */
static uint32_t line_of(const struct slices *s, uint32_t b, uint32_t line[MOST])
{
	uint32_t n = 0;

	for (uint32_t w = s->bucket[b].owner + 1; w < s->bucket[b].owner + s->nworkers; w++)
		if (s->bucket[b].holds[w % s->nworkers])
			line[n++] = w % s->nworkers;
	return n;
}

static void sum_at(struct slices *s, uint32_t b, uint32_t from, uint32_t have)
{
	uint32_t line[MOST], n = line_of(s, b, line);
	const bool all = n == s->nworkers - 1;

	for (uint32_t i = have; i < n && (all ? have == 0 : i == have); i++)
		put(s, (struct slice_message){ from, line[i], b, i + 1, true, false, s->bucket[b].bytes,
			fmax(s->now_ns + LATE, s->bucket[b].ready_ns[from]) });
}

static bool goes_before(const struct slice_message *a, const struct slice_message *b)
{
	return a->sum != b->sum ? !a->sum : a->bucket < b->bucket;
}

static void slice(struct slices *s, double ns)
{
	struct slice_message *goes[MOST][MOST] = { { NULL } };
	double out[MOST] = { 0 }, in[MOST] = { 0 }, rate[MOST][MOST] = { { 0 } };
	const double grain = 1.0 / 120;

	for (uint32_t i = 0; i < s->n; i++) {
		struct slice_message *p = &s->at[i], **q = &goes[p->from][p->to];
		if (!p->gone && p->ready_ns <= s->now_ns && (!*q || goes_before(p, *q)))
			*q = p;
	}
	for (bool grew = true; grew;) {
		grew = false;
		for (uint32_t f = 0; f < s->nworkers; f++)
			for (uint32_t t = 0; t < s->nworkers; t++)
				if (goes[f][t] && out[f] + grain < 1 + 1e-9 && in[t] + grain < 1 + 1e-9) {
					out[f] += grain;
					in[t] += grain;
					rate[f][t] += grain;
					grew = true;
				}
	}
	s->now_ns += ns;
	for (uint32_t f = 0; f < s->nworkers; f++)
		for (uint32_t t = 0; t < s->nworkers; t++) {
			struct slice_message *p = goes[f][t];
			if (!p || (p->left -= rate[f][t] * ns) > 0)
				continue;
			p->gone = true;
			s->end_ns = s->now_ns + LATE;
			bool last = true;
			for (uint32_t i = 0; i < s->n; i++)
				last &= s->at[i].gone || s->at[i].bucket != p->bucket;
			if (p->sum)
				sum_at(s, p->bucket, t, p->line);
			else if (last)
				sum_at(s, p->bucket, t, 0);
		}
}

static double by_slices(uint32_t nworkers, const struct hd_port_bucket *bucket, uint32_t n)
{
	static struct slices s;
	uint64_t left = 1;

	s = (struct slices){ .bucket = bucket, .nworkers = nworkers, .nbuckets = n };
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t w = 0; w < nworkers; w++)
			if (w != bucket[b].owner && bucket[b].parts[w])
				put(&s, (struct slice_message){ w, bucket[b].owner, b, 0, false, false,
					bucket[b].parts[w] * bucket[b].bytes, bucket[b].ready_ns[w] });
	while (left) {
		slice(&s, 4);
		left = 0;
		for (uint32_t i = 0; i < s.n; i++)
			left += !s.at[i].gone;
	}
	return s.end_ns;
}

static uint32_t dice;

static uint32_t draw(uint32_t n)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % n;
}

static void drawn_exchanges_take_what_small_slices_of_time_say(void **state)
{
	double worst = 0;

	(void)state;
	for (uint32_t seed = 0; seed < 12; seed++) {
		struct hd_port_bucket bucket[BUCKETS] = { { 0 } };
		dice = seed;
		const uint32_t nworkers = 2 + draw(MOST - 1), n = 1 + draw(BUCKETS);
		for (uint32_t b = 0; b < n; b++) {
			const uint32_t ready_ns = draw(20000);
			bucket[b].bytes = 2000 + draw(2000);
			bucket[b].owner = draw(nworkers);
			for (uint32_t w = 0; w < nworkers; w++) {
				bucket[b].ready_ns[w] = ready_ns + draw(3000);
				bucket[b].parts[w] = (uint16_t)draw(3);
				bucket[b].holds[w] = draw(4) > 0;
			}
			bucket[b].parts[(bucket[b].owner + 1) % nworkers] |= 1;
		}
		const double ns = took(nworkers, bucket, n, false), want = by_slices(nworkers, bucket, n);
		worst = fmax(worst, fabs(ns / want - 1));
		CHECK(fabs(ns / want - 1) < 0.02, "seed %u, %u workers, %u buckets: %g, not %g", seed,
			nworkers, n, ns, want);
	}
	assert_true(worst > 0);           /* they are two models */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(exchanges_take_what_is_counted_by_hand),
		cmocka_unit_test(workers_are_ready_at_times_of_their_own),
		cmocka_unit_test(late_messages_of_fast_ports_arrive),
		cmocka_unit_test(many_workers_take_their_ports_alone),
		cmocka_unit_test(drawn_exchanges_take_what_small_slices_of_time_say) };

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
