#include "plan/holding.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum hd_err hd_holding_init(struct hd_holding *h, uint32_t nbuckets, struct hd_diag *diag)
{
	*h = (struct hd_holding){ .nbuckets = nbuckets };
	h->param = hd_alloc(nbuckets * sizeof *h->param);
	h->slot = hd_alloc(nbuckets * sizeof *h->slot);
	h->owner = hd_alloc(nbuckets * sizeof *h->owner);
	h->kin = hd_alloc(nbuckets * sizeof *h->kin);
	h->spare = hd_alloc(nbuckets * sizeof *h->spare);
	if (!h->param || !h->slot || !h->owner || !h->kin || !h->spare) {
		hd_holding_finish(h);
		return hd_fail(diag, HD_E_NOMEM, "no memory for the holders of %u buckets", nbuckets);
	}
	memset(h->param, 0, nbuckets * sizeof *h->param);
	memset(h->slot, 0, nbuckets * sizeof *h->slot);
	memset(h->owner, 0, nbuckets * sizeof *h->owner);
	memset(h->kin, 0, nbuckets * sizeof *h->kin);
	memset(h->spare, 0, nbuckets * sizeof *h->spare);
	return HD_OK;
}

void hd_holding_finish(struct hd_holding *h)
{
	hd_free(h->param);
	hd_free(h->slot);
	hd_free(h->owner);
	hd_free(h->kin);
	hd_free(h->spare);
	*h = (struct hd_holding){ 0 };
}

uint32_t hd_members_nth(uint64_t members, uint32_t n)
{
	while (n--)
		members &= members - 1;
	assert(members);
	return (uint32_t)__builtin_ctzll(members);
}

/* The holders of the stages in a mask. */
static uint64_t holders(const uint64_t *stage, uint64_t stages, uint64_t all)
{
	uint64_t members = 0;

	if (!stage)
		return all;
	for (; stages; stages &= stages - 1)
		members |= stage[__builtin_ctzll(stages)];
	assert(members && !(members & ~all));
	return members;
}

static uint64_t shadows(const uint64_t *shadow, uint64_t stages)
{
	uint64_t members = 0;

	for (; shadow && stages; stages &= stages - 1)
		members |= shadow[__builtin_ctzll(stages)];
	return members;
}

/* `copies` of the members of a mask, from `owner` on, round. */
static uint64_t chain(uint64_t members, uint32_t owner, uint32_t copies)
{
	uint64_t behind = members >> owner << owner, found = 0;

	assert(members >> owner & 1);
	for (uint32_t i = 0; i < copies && found != members; i++) {
		uint64_t next = behind & ~found ? behind & ~found : members & ~found;
		found |= next & -next;
	}
	return found;
}

void hd_holding_make(struct hd_holding *h, const struct hd_stage_buckets *buckets, const uint64_t *stage,
	const uint64_t *shadow, uint32_t nmembers, uint32_t copies, uint32_t servers)
{
	uint32_t n[HD_STAGE_BITS] = { 0 }, at[HD_STAGE_BITS] = { 0 };
	const uint64_t all = hd_members_all(nmembers),
		serve = servers && servers < nmembers ? hd_members_all(servers) : all;

	assert(!servers || (copies && !stage));
	assert(nmembers >= 1 && nmembers <= 64 && (!buckets || buckets->n == h->nbuckets));
	h->apart = copies > 0;
	h->partial = hd_state_is_partial(buckets, copies);
	for (uint32_t b = 0; b < h->nbuckets; b++)
		n[buckets ? buckets->at[b].stage : 0]++;
	for (uint32_t b = 0; b < h->nbuckets; b++) {
		uint32_t s = buckets ? buckets->at[b].stage : 0;
		uint64_t of = holders(stage, UINT64_C(1) << s, all) & serve;
		uint64_t many = (uint64_t)at[s]++ * (uint64_t)__builtin_popcountll(of);
		const uint64_t readers = buckets && !buckets->whole ? buckets->at[b].readers : 0,
			run = readers ? holders(stage, readers, all) : all;
		h->param[b] = run | shadows(shadow, readers);
		h->spare[b] = h->param[b] & ~run;
		h->owner[b] = hd_members_nth(of, (uint32_t)(many / n[s]));
		h->slot[b] = copies ? chain(h->param[b] & serve, h->owner[b], copies) : h->param[b];
	}
	hd_holding_kin(h->kin, buckets, h->slot, h->nbuckets);
}

bool hd_holding_kin(uint64_t *kin, const struct hd_stage_buckets *buckets, const uint64_t *slot,
	uint32_t nbuckets)
{
	const struct hd_bucket_tensors none = { .n = 0 }, *t = buckets ? &buckets->tensors : &none;
	uint64_t any = 0;

	memset(kin, 0, nbuckets * sizeof *kin);
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t some = 0;
		for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++)
			some |= slot[t->bucket[k]];
		for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++)
			kin[t->bucket[k]] |= some & ~slot[t->bucket[k]];
	}
	for (uint32_t b = 0; b < nbuckets; b++)
		any |= kin[b];
	return any != 0;
}
