#include "data/ranges.h"

#include <stdbool.h>
#include <string.h>

#include "tests/check.h"

enum { BYTES = 4000, RANGES = 12 };

/* A small generator of its own, so that a case has a number. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

struct made {
	struct hd_range range[RANGES];
	uint8_t into[RANGES][BYTES], want[RANGES][BYTES];
	uint32_t n;
	struct hd_ranges_knobs knobs;
};

static uint8_t byte_at(uint64_t offset) { return (uint8_t)(offset * 37 + offset / 251); }

static void make(struct made *m, uint64_t seed)
{
	uint64_t state = seed + 1;

	m->n = draw(&state, RANGES + 1);
	m->knobs = (struct hd_ranges_knobs){ 1, 1 + draw(&state, 700), 0 };
	m->knobs.gap_bytes = draw(&state, m->knobs.size_bytes + 1);
	memset(m->into, 0xee, sizeof m->into);
	memset(m->want, 0xee, sizeof m->want);
	for (uint32_t i = 0; i < m->n; i++) {
		const uint32_t len = draw(&state, 4) ? draw(&state, 300) : 0, first = draw(&state,
			BYTES - len);
		m->range[i] = (struct hd_range){ first, len, m->into[i] };
		for (uint32_t k = 0; k < len; k++)
			m->want[i][k] = byte_at(first + k);
	}
	hd_ranges_sort(m->range, m->n);
}

/* Reads what the requests say, in two pieces, the last first. */
static void requests_bring_each_wanted_byte_once(void **state)
{
	static struct made m;

	(void)state;
	for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
		struct hd_request r;
		uint32_t i = 0, hits[BYTES] = { 0 };
		uint64_t done = 0, waste = 0, wasted = 0, end = 0;
		make(&m, seed);
		while (hd_ranges_plan(m.range, m.n, &m.knobs, &i, &done, &r, 1)) {
			uint8_t bytes[BYTES];
			CHECK(r.len > 0 && r.len <= m.knobs.size_bytes && r.offset >= end,
				"seed %d: request at %d",
				(int)seed, (int)r.offset);
			end = r.offset + r.len;
			for (uint64_t k = 0; k < r.len; k++) {
				bytes[k] = byte_at(r.offset + k);
				hits[r.offset + k]++;
			}
			const size_t half = r.len / 2;
			hd_ranges_put(&r, r.offset + half, bytes + half, r.len - half);
			hd_ranges_put(&r, r.offset, bytes, half);
			waste += hd_ranges_waste(&r);
		}
		for (uint32_t at = 0; at < BYTES; at++) {
			bool wanted = false;
			for (uint32_t k = 0; k < m.n; k++)
				wanted = wanted || (at >= m.range[k].offset &&
					at < m.range[k].offset + m.range[k].len);
			CHECK(wanted ? hits[at] == 1 : hits[at] <= 1, "seed %d: byte %d is read %d times",
				(int)seed,
				(int)at, (int)hits[at]);
			wasted += !wanted && hits[at];
		}
		CHECK(waste == wasted, "seed %d: waste %d, counted %d", (int)seed, (int)waste, (int)wasted);
		CHECK(!memcmp(m.into, m.want, sizeof m.into), "seed %d: other bytes", (int)seed);
	}
}

static void a_gap_joins_and_a_size_parts(void **state)
{
	static const struct { uint32_t size, gap, nrequests; } cases[] = {
		{ 4096, 100, 1 }, { 4096, 99, 2 }, { 4096, 0, 2 }, { 50, 50, 4 }, { 150, 100, 2 }, { 299, 100, 2 },
		{ 300, 100, 1 },
	};
	uint8_t into[100];
	const struct hd_range range[] = { { 1000, 100, into }, { 1200, 100, into } };

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const struct hd_ranges_knobs knobs = { 1, cases[k].size, cases[k].gap };
		struct hd_request request[8];
		uint32_t i = 0;
		uint64_t done = 0;
		assert_int_equal(hd_ranges_plan(range, 2, &knobs, &i, &done, request, 8), cases[k].nrequests);
		assert_int_equal(hd_ranges_plan(range, 2, &knobs, &i, &done, request, 8), 0);
	}
}

static void knobs_keep_to_their_memory(void **state)
{
	(void)state;
	for (uint32_t q = 1; q <= 512; q *= 2)
		for (uint32_t b = 1024; b <= 16 << 20; b *= 2)
			for (uint64_t memory = 4096; memory <= HD_RANGES_MEMORY; memory *= 16) {
				const struct hd_ranges_knobs k = hd_ranges_bound((struct hd_ranges_knobs){ q,
					b, b },
					memory);
				CHECK((uint64_t)k.depth * k.size_bytes <= memory && k.depth >= 1 &&
					k.size_bytes >= HD_RANGES_SIZE_MIN && k.gap_bytes <= k.size_bytes &&
					!(k.depth & (k.depth - 1)), "q %u, b %u, memory %llu: q %u, b %u", q,
						b,
					(unsigned long long)memory, k.depth, k.size_bytes);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_bring_each_wanted_byte_once),
		cmocka_unit_test(a_gap_joins_and_a_size_parts),
		cmocka_unit_test(knobs_keep_to_their_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
