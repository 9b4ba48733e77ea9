#include "data/served.h"

#include <assert.h>
#include <string.h>

enum { UNIT_BITS = 10, SUB_BITS = 3, SUB = 1 << SUB_BITS };      /* 1024 ns; bins of an octave */

static uint32_t bin_of(int64_t ns)
{
	const uint64_t v = ns > 0 ? (uint64_t)ns >> UNIT_BITS : 0;

	if (v < SUB)
		return (uint32_t)v;
	const uint32_t e = 63 - (uint32_t)__builtin_clzll(v);
	const uint64_t bin = SUB * (e - SUB_BITS + 1) + ((v >> (e - SUB_BITS)) & (SUB - 1));
	return bin < HD_SERVED_BINS ? (uint32_t)bin : HD_SERVED_BINS - 1;
}

int64_t hd_served_bin_ns(uint32_t bin)
{
	const uint32_t octave = bin < SUB ? 0 : bin / SUB - 1;
	const int64_t unit = INT64_C(1) << (UNIT_BITS + octave);
	const int64_t low = bin < SUB ? bin : SUB + bin % SUB;

	assert(bin < HD_SERVED_BINS);
	return low * unit + unit / 2;
}

void hd_served_add(struct hd_served *s, uint32_t group, int64_t ns)
{
	s->n[group % HD_FAIR_FILES][bin_of(ns)]++;
}

/* The time below which so many thousandths are; 0: there are none. */
static int64_t quantile(const uint32_t n[HD_SERVED_BINS], uint32_t thousandths)
{
	uint64_t all = 0, below = 0;

	for (uint32_t b = 0; b < HD_SERVED_BINS; b++)
		all += n[b];
	for (uint32_t b = 0; b < HD_SERVED_BINS && all; b++) {
		below += n[b];
		if (1000 * below >= thousandths * all)
			return hd_served_bin_ns(b);
	}
	return 0;
}

void hd_served_window(struct hd_served *s, struct hd_served_seen *seen, struct hd_fair_part *part)
{
	uint32_t all[HD_SERVED_BINS] = { 0 };

	for (uint32_t g = 0; g < HD_FAIR_FILES; g++) {
		uint32_t since[HD_SERVED_BINS];
		for (uint32_t b = 0; b < HD_SERVED_BINS; b++) {
			const uint32_t now = s->n[g][b];
			since[b] = now - seen->n[g][b];
			seen->n[g][b] = now;
			all[b] += since[b];
		}
		part->file_service_s[g] = (double)quantile(since, 500) * 1e-9;
	}
	part->service_s = (double)quantile(all, 500) * 1e-9;
	part->service_p99_s = (double)quantile(all, 990) * 1e-9;
}

int64_t hd_served_p99_ns(struct hd_served *s, uint32_t least)
{
	uint32_t all[HD_SERVED_BINS] = { 0 };
	uint64_t n = 0;

	for (uint32_t g = 0; g < HD_FAIR_FILES; g++)
		for (uint32_t b = 0; b < HD_SERVED_BINS; b++) {
			all[b] += s->n[g][b];
			n += s->n[g][b];
		}
	return n < least || !n ? 0 : quantile(all, 990);
}
