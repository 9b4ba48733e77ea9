#include "protocol/held.h"

#include <stddef.h>

#include "base/hash.h"

enum { PARTS = 32 };

static bool any_shared(const uint64_t *holders, uint32_t nbuckets)
{
	for (uint32_t b = 0; b < nbuckets; b++)
		if (holders[b] & (holders[b] - 1))
			return true;
	return false;
}

uint32_t hd_held_make(struct hd_held_run run[HD_SEAL_HELD], const uint64_t *digest, const uint64_t *holders,
	uint32_t nbuckets)
{
	const uint32_t part = (nbuckets + PARTS - 1) / PARTS;
	uint32_t n = 0, end;

	if (!any_shared(holders, nbuckets))
		return 0;
	for (uint32_t b = 0; b < nbuckets && n < HD_SEAL_HELD; b = end) {
		for (end = b + 1; end < nbuckets && digest[b] && digest[end] && end % part &&
			holders[end] == holders[b];)
			end++;
		if (digest[b])
			run[n++] = (struct hd_held_run){ b, end - b,
				hd_hash64(digest + b, (end - b) * sizeof *digest) };
	}
	return n;
}

const struct hd_held_run *hd_held_of(const struct hd_held_run *run, uint32_t n, uint32_t first,
	uint32_t nbuckets)
{
	for (uint32_t i = 0; i < n; i++)
		if (run[i].first == first && run[i].n == nbuckets)
			return &run[i];
	return NULL;
}

const struct hd_held_run *hd_held_differ(const struct hd_held_run *a, uint32_t na,
	const struct hd_held_run *b, uint32_t nb)
{
	for (uint32_t i = 0; i < na; i++) {
		const struct hd_held_run *of = hd_held_of(b, nb, a[i].first, a[i].n);
		if (of && of->digest != a[i].digest)
			return &a[i];
	}
	return NULL;
}

bool hd_held_meet(const struct hd_held_run *a, uint32_t na, const struct hd_held_run *b, uint32_t nb,
	bool *met)
{
	uint32_t i = 0, k = 0;

	while (i < na && k < nb) {
		const bool same = a[i].first == b[k].first && a[i].n == b[k].n,
			before = (uint64_t)a[i].first + a[i].n <= b[k].first,
			behind = (uint64_t)b[k].first + b[k].n <= a[i].first;
		if (!same && !before && !behind)
			return false;
		*met |= same;
		i += same || before;
		k += same || behind;
	}
	return true;
}
