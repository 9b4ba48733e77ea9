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

/* How much a bucket likes a member. */
static uint64_t likes(uint32_t bucket, uint32_t id)
{
	uint64_t x = ((uint64_t)bucket << 32 | id) + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* What is dealt to the holders of one stage, which `of` says. `fixed`: no state moves with an owner. */
struct holding_deal { const uint32_t *id; uint64_t of, slack, has[64]; bool fixed; };

static uint32_t liked(const struct holding_deal *d, uint32_t bucket, uint64_t bytes)
{
	uint64_t least = UINT64_MAX, most = 0, left;
	uint32_t best = HD_NONE;

	for (left = d->of; left; left &= left - 1) {
		const uint64_t has = d->has[__builtin_ctzll(left)];
		least = has < least ? has : least;
	}
	const uint64_t bound = d->fixed ? least : least + (bytes / 2 > d->slack ? bytes / 2 : d->slack);
	for (left = d->of; left; left &= left - 1) {
		const uint32_t m = (uint32_t)__builtin_ctzll(left);
		const uint64_t likes_it = d->fixed ? 1 : likes(bucket, d->id ? d->id[m] : m);
		if (d->has[m] > bound || (best != HD_NONE && likes_it <= most))
			continue;
		most = likes_it;
		best = m;
	}
	assert(best != HD_NONE);
	return best;
}

static uint32_t bucket_stage(const struct hd_stage_buckets *buckets, uint32_t bucket)
{
	return buckets ? buckets->at[bucket].stage : 0;
}

/* Rule 2, of the n buckets of a stage. */
static void deal_bytes(struct hd_holding *h, const struct hd_stage_buckets *buckets, uint32_t stage,
	uint32_t n, struct holding_deal *d)
{
	const uint32_t together = 1 + (n - 1) / HD_HOLDING_DEALT;
	uint32_t owner = HD_NONE, left = 0;
	uint64_t all = 0;

	for (uint32_t b = 0; b < h->nbuckets; b++)
		all += bucket_stage(buckets, b) == stage ? h->bytes[b] : 0;
	d->slack = all / (HD_HOLDING_SLACK * (uint64_t)__builtin_popcountll(d->of));
	for (uint32_t b = h->nbuckets; b-- > 0;) {
		if (bucket_stage(buckets, b) != stage)
			continue;
		if (!left) {
			owner = liked(d, b, h->bytes[b]);
			left = together;
		}
		left--;
		h->owner[b] = owner;
		d->has[owner] += h->bytes[b];
	}
}

static void deal_numbers(struct hd_holding *h, const struct hd_stage_buckets *buckets, uint32_t stage,
	uint32_t n, uint64_t of)
{
	uint64_t at = 0;

	for (uint32_t b = 0; b < h->nbuckets; b++)
		if (bucket_stage(buckets, b) == stage)
			h->owner[b] = hd_members_nth(of, (uint32_t)(at++ *
				(uint64_t)__builtin_popcountll(of) / n));
}

static void deal(struct hd_holding *h, const struct hd_stage_buckets *buckets,
	const struct hd_holders *members, uint64_t serve, uint32_t copies)
{
	uint32_t n[HD_STAGE_BITS] = { 0 };

	for (uint32_t b = 0; b < h->nbuckets; b++)
		n[bucket_stage(buckets, b)]++;
	for (uint32_t s = 0; s < HD_STAGE_BITS; s++) {
		if (!n[s])
			continue;
		struct holding_deal d = { .id = members->id, .of = holders(members->stage, UINT64_C(1) << s,
			hd_members_all(members->n)) & serve };
		d.fixed = !copies || copies >= (uint32_t)__builtin_popcountll(d.of);
		if (h->bytes)
			deal_bytes(h, buckets, s, n[s], &d);
		else
			deal_numbers(h, buckets, s, n[s], d.of);
	}
}

void hd_holding_make(struct hd_holding *h, const struct hd_stage_buckets *buckets,
	const struct hd_holders *members, uint32_t copies, uint32_t servers)
{
	const uint64_t all = hd_members_all(members->n),
		serve = servers && servers < members->n ? hd_members_all(servers) : all;

	assert(!servers || (copies && !members->stage));
	assert(members->n >= 1 && members->n <= 64 && (!buckets || buckets->n == h->nbuckets));
	h->apart = copies > 0;
	h->partial = hd_state_is_partial(buckets, copies);
	deal(h, buckets, members, serve, copies);
	for (uint32_t b = 0; b < h->nbuckets; b++) {
		const uint64_t readers = buckets && !buckets->whole ? buckets->at[b].readers : 0,
			run = readers ? holders(members->stage, readers, all) : all;
		h->param[b] = run | shadows(members->shadow, readers);
		h->spare[b] = h->param[b] & ~run;
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
