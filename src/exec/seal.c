#include "exec/seal.h"

#include <string.h>

void hd_seals_init(struct hd_seals *seals, uint32_t epoch, uint32_t nmembers, uint64_t step)
{
	*seals = (struct hd_seals){ .epoch = epoch, .nmembers = nmembers, .committed = step };
}

static uint64_t everybody(const struct hd_seals *seals)
{
	return seals->nmembers == 64 ? UINT64_MAX : (UINT64_C(1) << seals->nmembers) - 1;
}

static enum hd_err agree(const struct hd_seal *first, const struct hd_seal *seal, struct hd_diag *diag)
{
	bool sums = first->sum_digest == seal->sum_digest, states = first->state_digest == seal->state_digest;

	if (sums && states)
		return HD_OK;
	return hd_fail(diag, HD_E_INTEGRITY, "step %llu: members %u and %u hold different %s (%016llx, %016llx)",
		(unsigned long long)seal->step, first->member, seal->member, sums ? "states" : "sums",
		(unsigned long long)(sums ? first->state_digest : first->sum_digest),
		(unsigned long long)(sums ? seal->state_digest : seal->sum_digest));
}

enum hd_err hd_seals_add(struct hd_seals *seals, const struct hd_seal *seal, uint32_t *committed, struct hd_diag *diag)
{
	if (seal->epoch != seals->epoch)
		return hd_fail(diag, HD_E_STALE, "seal of membership epoch %u in epoch %u", seal->epoch, seals->epoch);
	if (seal->member >= seals->nmembers)
		return hd_fail(diag, HD_E_PROTOCOL, "seal of member %u of %u", seal->member, seals->nmembers);
	if (seal->step < seals->committed)
		return hd_fail(diag, HD_E_STALE, "seal of step %llu, which is committed", (unsigned long long)seal->step);
	if (seal->step > seals->committed + 1)
		return hd_fail(diag, HD_E_PROTOCOL, "member %u seals step %llu while step %llu is open", seal->member,
			(unsigned long long)seal->step, (unsigned long long)seals->committed);

	uint64_t ahead = seal->step - seals->committed;
	if (!seals->sealed[ahead])
		seals->first[ahead] = *seal;
	enum hd_err err = agree(&seals->first[ahead], seal, diag);
	if (err)
		return err;
	seals->sealed[ahead] |= UINT64_C(1) << seal->member;
	*committed = 0;
	while (seals->sealed[0] == everybody(seals)) {
		seals->sealed[0] = seals->sealed[1];
		seals->first[0] = seals->first[1];
		seals->sealed[1] = 0;
		seals->committed++;
		++*committed;
	}
	return HD_OK;
}

bool hd_seals_gate(const struct hd_seals *seals, uint64_t step) { return seals->committed >= step; }
