#include "pipeline/lanes.h"

uint32_t hd_lanes_count(const uint32_t *copies, uint32_t nstages)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < nstages; s++) {
		for (uint32_t k = 0; k < s; k++)
			if (copies[s] && copies[k] % copies[s] && copies[s] % copies[k])
				return 0;
		if (!copies[s])
			return 0;
		most = copies[s] > most ? copies[s] : most;
	}
	return most;
}

/* Turns that the copies of a lane have had; turns[stage n + copy]. */
static uint64_t turns_of(const struct hd_lanes *lanes, const uint32_t *turns, uint32_t lane)
{
	uint64_t sum = 0;

	for (uint32_t s = 0; s < lanes->nstages; s++)
		sum += turns[(size_t)s * lanes->n + hd_lanes_copy(lanes, lane, s)];
	return sum;
}

enum hd_err hd_lanes_make(struct hd_lanes *lanes, const uint32_t *copies, uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_lanes made = { .n = hd_lanes_count(copies, nstages), .copies = copies, .nstages = nstages };

	if (!made.n)
		return hd_fail(diag, HD_E_INVAL,
			"the copies of two stages are numbers of which neither divides the other: use "
			"numbers that do, as 3,1 or 4,2,1");
	uint32_t *turns = hd_arena_take(arena, (size_t)nstages * made.n + 1, sizeof *turns);
	uint8_t *had = hd_arena_take(arena, made.n, 1);
	made.order = hd_arena_take(arena, made.n, sizeof *made.order);
	if (!turns || !had || !made.order)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u lanes", made.n);
	for (uint32_t i = 0; i < made.n; i++) {
		uint64_t fewest = UINT64_MAX;
		for (uint32_t l = 0; l < made.n; l++) {
			const uint64_t n = turns_of(&made, turns, l);
			if (!had[l] && n < fewest) {
				fewest = n;
				made.order[i] = l;
			}
		}
		had[made.order[i]] = 1;
		for (uint32_t s = 0; s < nstages; s++)
			turns[(size_t)s * made.n + hd_lanes_copy(&made, made.order[i], s)]++;
	}
	*lanes = made;
	return HD_OK;
}
