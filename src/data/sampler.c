#include "data/sampler.h"

#include <assert.h>
#include <stdbool.h>

#include "base/bits.h"
#include "base/philox.h"

enum { ROUNDS = 8, BLOCK = 4096 };
#define MAX_COUNT (UINT64_C(1) << 48)

/* One permutation: the network's width and all that keys its round function. `word`
 * is or-ed to the round number; above 2^24 blocks it repeats, which costs two far
 * blocks the same inside order and nothing else. */
struct net { uint64_t key, mask, count; uint32_t h, epoch, word; };

static struct net net_make(uint64_t seed, uint64_t epoch, uint64_t count, uint32_t word)
{
	assert(count > 0 && count < MAX_COUNT);
	uint32_t h = (hd_ceil_log2(count) + 1) / 2;

	if (h == 0)
		h = 1;
	return (struct net){
		.key = hd_philox_key(seed, HD_RNG_ORDER), .mask = (UINT64_C(1) << h) - 1, .count = count,
		.h = h, .epoch = (uint32_t)epoch, .word = word,
	};
}

static uint64_t net_f(const struct net *net, uint32_t round, uint64_t right)
{
	const uint32_t counter[4] = { (uint32_t)right, (uint32_t)(right >> 32), round | net->word,
		net->epoch };
	struct hd_philox drawn = hd_philox(counter, net->key);

	return (drawn.word[0] | (uint64_t)drawn.word[1] << 32) & net->mask;
}

static uint64_t net_forward(const struct net *net, uint64_t at)
{
	uint64_t left = at >> net->h, right = at & net->mask;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t next = left ^ net_f(net, round, right);
		left = right;
		right = next;
	}
	return left << net->h | right;
}

static uint64_t net_backward(const struct net *net, uint64_t at)
{
	uint64_t left = at >> net->h, right = at & net->mask;

	for (uint32_t round = ROUNDS; round-- > 0;) {
		uint64_t before = right ^ net_f(net, round, left);
		right = left;
		left = before;
	}
	return left << net->h | right;
}

/* The walk ends: it follows a cycle of the network that holds its start, which is below count. */
static uint64_t net_walk(const struct net *net, uint64_t at, bool backward)
{
	assert(at < net->count);
	do
		at = backward ? net_backward(net, at) : net_forward(net, at);
	while (at >= net->count);
	return at;
}

uint64_t hd_perm(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position)
{
	struct net net = net_make(seed, epoch, count, 0);
	return net_walk(&net, position, false);
}

uint64_t hd_perm_inverse(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t index)
{
	struct net net = net_make(seed, epoch, count, 0);
	return net_walk(&net, index, true);
}

/* Blocks are drawn in permuted order; the positions behind the one short block are
 * shifted by its length, so its place in that order must be known first. */
static uint64_t in_blocks(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t position)
{
	uint64_t nblocks = hd_ceil_div(count, BLOCK), last_len = count - (nblocks - 1) * BLOCK;
	uint64_t last_place = hd_perm_inverse(seed, epoch, nblocks, nblocks - 1),
		last_at = last_place * BLOCK;
	uint64_t place = position / BLOCK, inside = position % BLOCK;

	if (position >= last_at + last_len) {
		place = (position - last_len) / BLOCK + 1;
		inside = (position - last_len) % BLOCK;
	}
	uint64_t block = hd_perm(seed, epoch, nblocks, place);
	struct net net = net_make(seed, epoch, block == nblocks - 1 ? last_len : BLOCK,
		(uint32_t)(1 + block) << 8);
	return block * BLOCK + net_walk(&net, inside, false);
}

enum hd_err hd_sampler_init(struct hd_sampler *sampler, uint64_t seed, uint64_t count, uint64_t batch,
	enum hd_order order, enum hd_last last, struct hd_diag *diag)
{
	if (count == 0)
		return hd_fail(diag, HD_E_INPUT,
			"the data set has no samples: name another file (data.path) or split");
	if (count >= MAX_COUNT)
		return hd_fail(diag, HD_E_INPUT, "the data set has %llu samples; the limit is 2^48 - 1",
			(unsigned long long)count);
	if (batch == 0)
		return hd_fail(diag, HD_E_INVAL, "the global batch is 0: set batch.global to 1 or more");
	if (last == HD_LAST_DROP && count < batch)
		return hd_fail(diag, HD_E_INVAL,
			"a batch of %llu of %llu samples with batch.last: drop leaves no step: make "
			"batch.global smaller, or last: ragged",
			(unsigned long long)batch, (unsigned long long)count);
	*sampler = (struct hd_sampler){ .seed = seed, .count = count, .batch = batch, .order = order,
		.last = last };
	return HD_OK;
}

uint64_t hd_sampler_steps(const struct hd_sampler *sampler)
{
	return sampler->last == HD_LAST_DROP ? sampler->count / sampler->batch : hd_ceil_div(sampler->count,
		sampler->batch);
}

uint64_t hd_sampler_rows(const struct hd_sampler *sampler, uint64_t step)
{
	uint64_t first = step % hd_sampler_steps(sampler) * sampler->batch;

	if (sampler->last != HD_LAST_RAGGED || sampler->count - first >= sampler->batch)
		return sampler->batch;
	return sampler->count - first;
}

/* Data epoch and position in it of a row. */
static void place_of(const struct hd_sampler *sampler, uint64_t step, uint64_t row, uint64_t *epoch,
	uint64_t *position)
{
	if (sampler->last == HD_LAST_WRAP) {
		uint64_t at = step * sampler->batch + row;
		*epoch = at / sampler->count;
		*position = at % sampler->count;
		return;
	}
	uint64_t nsteps = hd_sampler_steps(sampler);
	*epoch = step / nsteps;
	*position = step % nsteps * sampler->batch + row;
}

uint64_t hd_sampler_epoch_at(const struct hd_sampler *sampler, uint64_t step, uint64_t row)
{
	uint64_t epoch, position;

	place_of(sampler, step, row, &epoch, &position);
	return epoch;
}

uint64_t hd_sampler_epoch(const struct hd_sampler *sampler,
	uint64_t step) { return hd_sampler_epoch_at(sampler, step, 0); }

uint64_t hd_sampler_at(const struct hd_sampler *sampler, uint64_t step, uint64_t row)
{
	uint64_t epoch, position;

	assert(row < hd_sampler_rows(sampler, step));
	place_of(sampler, step, row, &epoch, &position);
	switch (sampler->order) {
	case HD_ORDER_SHUFFLE:
		return hd_perm(sampler->seed, epoch, sampler->count, position);
	case HD_ORDER_BLOCKS:
		return in_blocks(sampler->seed, epoch, sampler->count, position);
	case HD_ORDER_SEQUENTIAL:
		break;
	}
	return position;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void hd_vn_rows(uint64_t per_vn, uint64_t nrows, uint32_t vn, uint64_t *first, uint64_t *end)
{
	*first = least(vn * per_vn, nrows);
	*end = least((UINT64_C(1) + vn) * per_vn, nrows);
}
