#include "worker/collective_sum.h"

#include <assert.h>
#include <string.h>

#include "worker/tree_add.h"

/* ---- where things are ---- */

static const struct hd_member_moves *moves_of(const struct hd_collective_sum *s, uint32_t bucket)
{
	return &s->moves[bucket + 1 == s->nbuckets];
}
static float *values_of(const struct hd_collective_sum *s, uint32_t bucket)
{
	return s->spec.values ? s->spec.values + bucket * s->spec.bucket : NULL;        /* of an empty one */
}
/* Of an operand. */
static float *buffer_of(const struct hd_collective_sum *s, uint32_t bucket, const struct hd_member_move *m)
{
	return !s->block.at ? NULL : (float *)s->block.at + bucket % HD_COLLECTIVE_AHEAD * s->floats + m->at;
}
static uint32_t id_of(const struct hd_collective_sum *s, uint32_t bucket, const struct hd_member_move *m)
{
	return s->spec.first_id + bucket * s->stride + m->number;
}
static uint64_t len_of(const struct hd_member_move *m) { return (m->end - m->first) * sizeof(float); }

/* ---- life ---- */

static bool is_before(const struct hd_member_move *a, const struct hd_member_move *b)
{
	if (a->round != b->round)
		return a->round < b->round;
	return a->first != b->first ? a->first < b->first : a->peer < b->peer;
}

static enum hd_err take_in(struct hd_member_moves *to, struct hd_member_move m)
{
	uint32_t i = to->nin;

	if (i == HD_COLLECTIVE_MOVES)
		return HD_E_NOSPACE;
	if (m.add) {
		m.at = to->floats;
		to->floats += m.end - m.first;
	}
	for (; i > 0 && is_before(&m, &to->in[i - 1]); i--)
		to->in[i] = to->in[i - 1];
	to->in[i] = m;
	to->nin++;
	return HD_OK;
}

/* Those of the list that are this member's. */
static enum hd_err take_moves(struct hd_collective_sum *s, struct hd_member_moves *to, uint64_t len,
	struct hd_diag *diag)
{
	struct hd_collective_schedule list;

	enum hd_err err = hd_collective_schedule(&list, s->spec.kind, &s->spec.shape, len, &s->arena, diag);
	if (err)
		return err;
	to->nmoves = list.nmoves;
	to->nrounds = list.nrounds;
	for (uint32_t i = 0; i < list.nmoves && !err; i++) {
		const struct hd_collective_move *m = &list.move[i];
		struct hd_member_move mine = { m->first, m->end, 0, m->round, m->from, i, m->add };
		if (m->to == s->spec.me)
			err = take_in(to, mine);
		if (m->from != s->spec.me)
			continue;
		mine.peer = m->to;
		if (to->nout == HD_COLLECTIVE_MOVES)
			err = HD_E_NOSPACE;
		else
			to->out[to->nout++] = mine;
	}
	return err ? hd_fail(diag, HD_E_INVAL, "%s of %u members: more than %d moves of a member in a bucket",
		hd_collective_word(s->spec.kind), s->spec.shape.p, HD_COLLECTIVE_MOVES) : HD_OK;
}

enum hd_err hd_collective_sum_init(struct hd_collective_sum *sum, const struct hd_collective_sum_spec *spec,
	struct hd_diag *diag)
{
	*sum = (struct hd_collective_sum){ .spec = *spec };
	if (spec->shape.p < 2 || spec->shape.p > HD_COLLECTIVE_MEMBERS || spec->me >= spec->shape.p ||
		!spec->len)
		return hd_fail(diag, HD_E_INVAL, "a sum of %llu floats over %u members; 2 to %d can sum",
			(unsigned long long)spec->len, spec->shape.p, HD_COLLECTIVE_MEMBERS);
	if (!sum->spec.bucket)
		sum->spec.bucket = HD_COLLECTIVE_BUCKET;
	sum->nbuckets = (uint32_t)((spec->len + sum->spec.bucket - 1) / sum->spec.bucket);
	hd_arena_init(&sum->arena, 0);
	enum hd_err err = take_moves(sum, &sum->moves[0], sum->spec.bucket, diag);
	if (!err)
		err = take_moves(sum, &sum->moves[1], spec->len - (sum->nbuckets - 1) * sum->spec.bucket,
			diag);
	if (err)
		return err;
	uint32_t full = sum->moves[0].nmoves, last = sum->moves[1].nmoves;
	sum->stride = full > last ? full : last;
	sum->floats = sum->moves[0].floats > sum->moves[1].floats ? sum->moves[0].floats
		: sum->moves[1].floats;
	sum->bucket = hd_arena_take(&sum->arena, sum->nbuckets, sizeof *sum->bucket);
	if (!sum->bucket)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u buckets", sum->nbuckets);
	sum->nover = sum->nbuckets;
	uint32_t ahead = sum->nbuckets < HD_COLLECTIVE_AHEAD ? sum->nbuckets : HD_COLLECTIVE_AHEAD;
	return sum->floats ? hd_memory_take(ahead * sum->floats * sizeof(float), HD_MEMORY_TOUCH,
		&sum->block, diag) : HD_OK;
}

void hd_collective_sum_finish(struct hd_collective_sum *sum)
{
	hd_memory_give(&sum->block);
	hd_arena_finish(&sum->arena);
}

uint32_t hd_collective_sum_ids(const struct hd_collective_sum *s) { return s->nbuckets * s->stride; }

uint32_t hd_collective_sum_streams(const struct hd_collective_sum *s)
{
	uint32_t most = 0;

	for (uint32_t peer = 0; peer < s->spec.shape.p; peer++) {
		uint32_t n = (uint32_t)hd_collective_sum_rows(s, peer, true, NULL);
		most = n > most ? n : most;
	}
	return most;
}

size_t hd_collective_sum_rows(const struct hd_collective_sum *s, uint32_t member, bool out,
	struct hd_transfer *row)
{
	size_t n = 0;

	for (uint32_t b = 0; b < s->nbuckets; b++) {
		const struct hd_member_moves *moves = moves_of(s, b);
		for (uint32_t i = 0; i < (out ? moves->nout : moves->nin); i++) {
			const struct hd_member_move *m = out ? &moves->out[i] : &moves->in[i];
			if (m->peer != member)
				continue;
			if (row)
				row[n] = (struct hd_transfer){ id_of(s, b, m), 0, len_of(m) };
			n++;
		}
	}
	return n;
}

/* ---- a round of the vector ---- */

static enum hd_err post(struct hd_collective_sum *s, uint32_t bucket, bool add, struct hd_diag *diag)
{
	const struct hd_member_moves *moves = moves_of(s, bucket);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < moves->nin && !err; i++) {
		const struct hd_member_move *m = &moves->in[i];
		if (m->add == add)
			err = hd_hub_post(s->spec.hub, m->peer, id_of(s, bucket, m), add ? buffer_of(s,
				bucket, m) :
				values_of(s, bucket) + m->first, diag);
	}
	return err;
}

enum hd_err hd_collective_sum_prepare(struct hd_collective_sum *sum, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(hd_collective_sum_done(sum));
	sum->number++;
	sum->nover = 0;
	sum->begun = false;
	memset(sum->bucket, 0, sum->nbuckets * sizeof *sum->bucket);
	for (uint32_t b = 0; b < sum->nbuckets && !err; b++) {
		err = post(sum, b, false, diag);
		if (!err && b < HD_COLLECTIVE_AHEAD)
			err = post(sum, b, true, diag);
	}
	return err;
}

/* The moves of the bucket's round go out. */
static enum hd_err send_round(struct hd_collective_sum *s, uint32_t b, struct hd_diag *diag)
{
	const struct hd_member_moves *moves = moves_of(s, b);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < moves->nout && !err; i++) {
		const struct hd_member_move *m = &moves->out[i];
		if (m->round != s->bucket[b].round)
			continue;
		err = hd_hub_send(s->spec.hub, m->peer, &(struct hd_send){ .transfer = id_of(s, b, m),
			.priority = (int32_t)(m->add ? s->nbuckets + b : b), .step = s->number,
			.bytes = values_of(s, b) + m->first, .len = len_of(m),
			.token = (uint64_t)b * HD_COLLECTIVE_MOVES + i }, diag);
	}
	return err;
}

enum hd_err hd_collective_sum_begin(struct hd_collective_sum *sum, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	sum->begun = true;
	for (uint32_t b = 0; b < sum->nbuckets && !err; b++)
		err = send_round(sum, b, diag);
	return err;
}

enum hd_err hd_collective_sum_arrived(struct hd_collective_sum *sum, const struct hd_arrival *arrival,
	struct hd_diag *diag)
{
	uint32_t of = arrival->transfer - sum->spec.first_id, b = of / sum->stride, number = of % sum->stride;

	if (b < sum->nbuckets && arrival->step == sum->number) {
		const struct hd_member_moves *moves = moves_of(sum, b);
		for (uint32_t i = 0; i < moves->nin; i++) {
			uint64_t bit = UINT64_C(1) << i;
			if (moves->in[i].number != number || moves->in[i].peer != arrival->worker ||
				sum->bucket[b].here & bit)
				continue;
			sum->bucket[b].here |= bit;
			return HD_OK;
		}
	}
	return hd_fail(diag, HD_E_PROTOCOL, "member %u sent move %u of round %llu in round %llu",
		arrival->worker,
		arrival->transfer, (unsigned long long)arrival->step, (unsigned long long)sum->number);
}

enum hd_err hd_collective_sum_sent(struct hd_collective_sum *sum, const struct hd_sent *sent,
	struct hd_diag *diag)
{
	if (sent->err)
		return hd_fail(diag, sent->err, "a bucket to member %u did not get there", sent->worker);
	sum->bucket[sent->token / HD_COLLECTIVE_MOVES].sent |=
		UINT64_C(1) << sent->token % HD_COLLECTIVE_MOVES;
	return HD_OK;
}

/* Is all here that the bucket's round brings, and all gone from where it adds? */
static bool may_go_on(const struct hd_collective_sum *s, uint32_t b)
{
	const struct hd_member_moves *moves = moves_of(s, b);
	const struct hd_collective_bucket *at = &s->bucket[b];

	for (uint32_t i = 0; i < moves->nin; i++) {
		const struct hd_member_move *m = &moves->in[i];
		if (m->round != at->round)
			continue;
		if (!(at->here >> i & 1))
			return false;
		for (uint32_t k = 0; k < moves->nout && m->add; k++) {
			const struct hd_member_move *o = &moves->out[k];
			if (o->round <= at->round && o->first < m->end && m->first < o->end &&
				!(at->sent >> k & 1))
				return false;
		}
	}
	/* it is over when what was lent is the owner's again */
	return at->round + 1 < moves->nrounds || at->sent == (moves->nout ?
		UINT64_MAX >> (HD_COLLECTIVE_MOVES - moves->nout) : 0);
}

/* Adds what came of the round: each range with its operands in the order of ranks. */
static void add_round(struct hd_collective_sum *s, uint32_t b)
{
	const struct hd_member_moves *moves = moves_of(s, b);
	const float *at[HD_COLLECTIVE_MEMBERS];

	for (uint32_t i = 0, next; i < moves->nin; i = next) {
		const struct hd_member_move *m = &moves->in[i];
		float *own = values_of(s, b) + m->first;
		bool placed = false;
		uint32_t n = 0;
		for (next = i; next < moves->nin && moves->in[next].round == m->round &&
			moves->in[next].first == m->first && moves->in[next].add == m->add; next++) {
			if (!placed && moves->in[next].peer > s->spec.me) {
				at[n++] = own;
				placed = true;
			}
			at[n++] = buffer_of(s, b, &moves->in[next]);
		}
		if (!placed)
			at[n++] = own;
		if (m->add && m->round == s->bucket[b].round)
			hd_tree_add(at, n, own, m->end - m->first);
	}
}

enum hd_err hd_collective_sum_turn(struct hd_collective_sum *sum, bool *more, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	*more = false;
	for (uint32_t i = 0; i < sum->nbuckets && sum->begun; i++) {
		uint32_t b = (sum->cursor + i) % sum->nbuckets;
		struct hd_collective_bucket *at = &sum->bucket[b];
		if (at->over || !may_go_on(sum, b))
			continue;
		add_round(sum, b);
		at->round++;
		if (at->round < moves_of(sum, b)->nrounds)
			err = send_round(sum, b, diag);
		else {
			at->over = true;
			sum->nover++;
			if (b + HD_COLLECTIVE_AHEAD < sum->nbuckets)
				err = post(sum, b + HD_COLLECTIVE_AHEAD, true, diag);
		}
		sum->cursor = b;
		*more = !err && sum->nover < sum->nbuckets;
		return err;
	}
	return HD_OK;
}

bool hd_collective_sum_done(const struct hd_collective_sum *sum) { return sum->nover == sum->nbuckets; }
