#include "protocol/seal.h"

#include <assert.h>
#include <stddef.h>

static uint64_t slowest(const struct hd_seals *seals)
{
	uint64_t least = UINT64_MAX;

	assert(seals->nmembers >= 1 && seals->nmembers <= seals->n && seals->n <= HD_MAX_SEALERS);
	for (uint32_t i = 0; i < seals->nmembers; i++) {
		uint64_t next = seals->by[i].next == HD_SEAL_UNKNOWN ? 0 : seals->by[i].next;
		least = next < least ? next : least;
	}
	return least;
}

void hd_seals_of(struct hd_seals *seals, uint32_t epoch, const uint32_t *worker, const uint64_t *next,
	uint64_t step, uint32_t nmembers)
{
	assert(nmembers >= 1 && nmembers <= HD_MAX_MEMBERS);
	*seals = (struct hd_seals){ .epoch = epoch, .nmembers = nmembers, .n = nmembers };
	for (uint32_t i = 0; i < nmembers; i++)
		seals->by[i] = (struct hd_sealer){ .worker = worker ? worker[i] : i,
			.next = next ? next[i] : step, .since = HD_SEAL_UNKNOWN };
	seals->committed = slowest(seals);
}

void hd_seals_init(struct hd_seals *seals, uint32_t epoch, uint32_t nmembers, uint64_t step)
{
	hd_seals_of(seals, epoch, NULL, NULL, step, nmembers);
}

/* Is the progress of every member known? Before, none can be too far ahead. */
static bool all_placed(const struct hd_seals *seals)
{
	for (uint32_t i = 0; i < seals->nmembers; i++)
		if (seals->by[i].next == HD_SEAL_UNKNOWN)
			return false;
	return true;
}

static struct hd_sealer *find(const struct hd_seals *seals, uint32_t worker)
{
	for (uint32_t i = 0; i < seals->n; i++)
		if (seals->by[i].worker == worker)
			return (struct hd_sealer *)&seals->by[i];
	return NULL;
}

void hd_seals_expect(struct hd_seals *seals, uint32_t epoch, const uint32_t *worker, uint32_t n)
{
	assert(n <= HD_MAX_MEMBERS && seals->nmembers <= HD_MAX_MEMBERS);
	seals->also = epoch;
	seals->n = seals->nmembers;
	for (uint32_t i = 0; i < seals->n; i++)
		seals->by[i].since = HD_SEAL_UNKNOWN;
	for (uint32_t i = 0; i < n; i++)
		if (!find(seals, worker[i]))
			seals->by[seals->n++] = (struct hd_sealer){ .worker = worker[i],
				.next = HD_SEAL_UNKNOWN, .since = HD_SEAL_UNKNOWN };
}

static enum hd_err agree(const struct hd_seal *first, const struct hd_seal *seal, struct hd_diag *diag)
{
	bool sums = first->sum_digest == seal->sum_digest, states = first->state_digest == seal->state_digest;

	if (sums && states)
		return HD_OK;
	return hd_fail(diag, HD_E_INTEGRITY,
		"step %llu: members %u and %u hold different %s (%016llx, %016llx)",
		(unsigned long long)seal->step, first->member, seal->member, sums ? "states" : "sums",
		(unsigned long long)(sums ? first->state_digest : first->sum_digest),
		(unsigned long long)(sums ? seal->state_digest : seal->sum_digest));
}

/* How many steps are committed now that were open, as far as they are asked for: of those before a place
 * became known nothing is. */
static uint32_t advance(struct hd_seals *seals)
{
	const uint64_t to = slowest(seals), n = to - seals->committed;

	assert(to != HD_SEAL_UNKNOWN && to >= seals->committed);
	seals->committed = to;
	return n < 2 ? (uint32_t)n : 2;
}

enum hd_err hd_seals_add(struct hd_seals *seals, const struct hd_seal *seal, uint32_t *committed,
	struct hd_diag *diag)
{
	struct hd_sealer *by = find(seals, seal->member);
	bool member = by && by < seals->by + seals->nmembers;

	if (seal->epoch != (member || !by ? seals->epoch : seals->also))
		return hd_fail(diag, HD_E_STALE, "seal of membership epoch %u in epoch %u", seal->epoch,
			seals->epoch);
	if (!by)
		return hd_fail(diag, HD_E_PROTOCOL, "seal of member %u of %u", seal->member, seals->nmembers);
	bool placed = by->next != HD_SEAL_UNKNOWN;
	if (placed && seal->step < by->next && seal->step < seals->committed)
		return hd_fail(diag, HD_E_STALE, "seal of step %llu, which is committed",
			(unsigned long long)seal->step);
	if (placed && seal->step > seals->committed + 1 && !seals->observes && all_placed(seals))
		return hd_fail(diag, HD_E_PROTOCOL, "member %u seals step %llu while step %llu is open",
			seal->member,
			(unsigned long long)seal->step, (unsigned long long)seals->committed);

	if (member) {
		struct hd_seal *first = &seals->first[seal->step & 1];
		if (!seals->has_first[seal->step & 1] || first->step < seal->step)
			*first = *seal;
		seals->has_first[seal->step & 1] = true;
		enum hd_err err = first->step == seal->step ? agree(first, seal, diag) : HD_OK;
		if (err) {
			if (!placed || seal->step > by->next)
				/* it has sealed what is before, as others have not said yet */
				by->next = seal->step;
			advance(seals);
			return err;
		}
		if (seals->also && seal->knows >= seals->also && seal->step < by->since)
			by->since = seal->step;
	}
	if (!placed || seal->step >= by->next)
		by->next = seal->step + 1;
	*committed = advance(seals);
	return HD_OK;
}

void hd_seals_reach(struct hd_seals *seals, uint32_t member, uint64_t next)
{
	struct hd_sealer *by = find(seals, member);

	if (by && (by->next == HD_SEAL_UNKNOWN || by->next < next))
		by->next = next;
	advance(seals);
}

bool hd_seals_gate(const struct hd_seals *seals, uint64_t step) { return seals->committed >= step; }

uint64_t hd_seals_known_since(const struct hd_seals *seals)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < seals->nmembers; i++)
		last = seals->by[i].since > last ? seals->by[i].since : last;
	return last;
}

bool hd_seals_has(const struct hd_seals *seals, uint32_t worker, uint64_t step)
{
	const struct hd_sealer *by = find(seals, worker);

	return by && by->next != HD_SEAL_UNKNOWN && by->next >= step;
}
