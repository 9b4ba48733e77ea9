#include "worker/allreduce.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/exchange.h"

/* floats that are added through all levels at once: a few of them fit the first cache */
enum { BLOCK = 2048 };
enum { FLOATS = HD_ALLREDUCE_BUCKET / (int)sizeof(float) };

/* ---- adding ---- */

/* The part of members [low, end) of the tree; `out` is none of the operands. Levels: 16 members have 4. */
static void add_tree(const float *const *at, uint32_t low, uint32_t end, uint64_t from, uint32_t n,
	float *restrict out)
{
	float right[BLOCK];
	uint32_t half = 1;

	while (2 * half < end - low)
		half *= 2;
	const float *restrict a = at[low] + from, *restrict b = at[low + half] + from;
	if (half > 1) {
		add_tree(at, low, low + half, from, n, out);
		a = out;
	}
	if (end - low - half > 1) {
		add_tree(at, low + half, end, from, n, right);
		b = right;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = a[i] + b[i];
}

static void add_into(float *restrict to, const float *restrict other, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		to[i] += other[i];
}

/* Two operands commute; more go through a block, as the sum is written over one of them. */
static void add(const float *const *at, uint32_t n, uint32_t me, float *to, uint64_t len)
{
	float block[BLOCK];

	if (n == 2) {
		add_into(to, at[!me], len);
		return;
	}
	for (uint64_t from = 0; from < len; from += BLOCK) {
		uint32_t k = (uint32_t)(len - from < BLOCK ? len - from : BLOCK);
		add_tree(at, 0, n, from, k, block);
		memcpy(to + from, block, k * sizeof *to);
	}
}

/* ---- where things are ---- */

static uint32_t bucket_count(uint64_t len) { return (uint32_t)((len + FLOATS - 1) / FLOATS); }
static float *bucket_at(const struct hd_allreduce *s, uint32_t bucket) { return s->spec.values +
	(uint64_t)bucket * FLOATS; }
static uint64_t bucket_len(const struct hd_allreduce *s, uint32_t bucket)
{
	uint64_t left = s->spec.len - (uint64_t)bucket * FLOATS;
	return left < FLOATS ? left : FLOATS;
}
static uint32_t first_of(const struct hd_allreduce *s, uint32_t member) { return hd_bucket_first(member,
	s->nbuckets, s->spec.n); }
static uint32_t own_count(const struct hd_allreduce *s) { return s->end - s->first; }
static uint32_t place_of(uint64_t counted) { return (uint32_t)(counted % HD_ALLREDUCE_AHEAD); }
static float *room_of(const struct hd_allreduce *s, uint32_t member, uint64_t counted)
{
	return (float *)s->block.at + ((uint64_t)member * HD_ALLREDUCE_AHEAD + place_of(counted)) * FLOATS;
}
static uint32_t name(enum hd_transfer_kind kind,
	uint32_t bucket) { return hd_transfer_id((struct hd_transfer_name){ kind, 0, bucket }); }

/* ---- life ---- */

uint32_t hd_allreduce_streams(uint64_t len, uint32_t n) { return 2 * (bucket_count(len) / n + 1); }

enum hd_err hd_allreduce_init(struct hd_allreduce *sum, const struct hd_allreduce_spec *spec,
	struct hd_diag *diag)
{
	*sum = (struct hd_allreduce){ .spec = *spec };
	if (spec->n < 2 || spec->n > HD_ALLREDUCE_MEMBERS || spec->me >= spec->n || !spec->len ||
		spec->len > HD_ALLREDUCE_MOST / sizeof(float))
		return hd_fail(diag, HD_E_INVAL,
			"a sum of %llu floats over %u members; 2 to %d members and 1 to %llu floats can be "
			"had",
			(unsigned long long)spec->len, spec->n, HD_ALLREDUCE_MEMBERS,
			(unsigned long long)(HD_ALLREDUCE_MOST / sizeof(float)));
	sum->nbuckets = bucket_count(spec->len);
	sum->first = first_of(sum, spec->me);
	sum->end = first_of(sum, spec->me + 1);
	sum->nadded = own_count(sum);     /* parts that come before the first round wait for it */
	if (!own_count(sum))
		return HD_OK;
	return hd_memory_take((size_t)spec->n * HD_ALLREDUCE_AHEAD * HD_ALLREDUCE_BUCKET, HD_MEMORY_TOUCH,
		&sum->block, diag);
}

void hd_allreduce_finish(struct hd_allreduce *sum) { hd_memory_give(&sum->block); }

/* Room for the next own bucket that this member has none for. */
static enum hd_err post_part(struct hd_allreduce *s, uint32_t member, uint64_t counted, struct hd_diag *diag)
{
	uint32_t bucket = s->first + (uint32_t)(counted % own_count(s));
	return hd_hub_post(s->spec.hub, member, name(HD_TRANSFER_ROOT, bucket), room_of(s, member, counted),
		diag);
}

static enum hd_err open_with(struct hd_allreduce *s, uint32_t member, struct hd_transfer *in,
	struct hd_transfer *out, struct hd_diag *diag)
{
	uint32_t n_in = 0, n_out = 0, low = first_of(s, member), end = first_of(s, member + 1);

	for (uint32_t b = s->first; b < s->end; b++)
		in[n_in++] = (struct hd_transfer){ name(HD_TRANSFER_ROOT, b), 0,
			bucket_len(s, b) * sizeof(float) };
	for (uint32_t b = low; b < end; b++) {
		in[n_in++] = (struct hd_transfer){ name(HD_TRANSFER_SUM, b), 1,
			bucket_len(s, b) * sizeof(float) };
		out[n_out++] = (struct hd_transfer){ name(HD_TRANSFER_ROOT, b), 0,
			bucket_len(s, b) * sizeof(float) };
	}
	for (uint32_t b = s->first; b < s->end; b++)
		out[n_out++] = (struct hd_transfer){ name(HD_TRANSFER_SUM, b), 1,
			bucket_len(s, b) * sizeof(float) };
	enum hd_err err = hd_hub_channel(s->spec.hub, member, in, n_in, out, n_out, diag);
	for (uint32_t b = low; b < end && !err; b++)
		err = hd_hub_post(s->spec.hub, member, name(HD_TRANSFER_SUM, b), bucket_at(s, b), diag);
	for (uint32_t k = 0; k < HD_ALLREDUCE_AHEAD && own_count(s) && !err; k++)
		err = post_part(s, member, k, diag);
	return err;
}

enum hd_err hd_allreduce_open(struct hd_allreduce *sum, struct hd_diag *diag)
{
	uint32_t rows = hd_allreduce_streams(sum->spec.len, sum->spec.n);
	struct hd_transfer *in = hd_alloc(2 * rows * sizeof *in);
	enum hd_err err = in ? HD_OK : hd_fail(diag, HD_E_NOMEM, "out of memory for %u transfers", rows);

	for (uint32_t i = 0; i < sum->spec.n && !err; i++)
		if (i != sum->spec.me)
			err = open_with(sum, i, in, in + rows, diag);
	hd_free(in);
	return err;
}

/* ---- a round ---- */

static enum hd_err send(struct hd_allreduce *s, uint32_t to, enum hd_transfer_kind kind, uint32_t bucket,
	int32_t priority, struct hd_diag *diag)
{
	struct hd_send what = { .transfer = name(kind, bucket), .priority = priority, .step = s->round,
		.bytes = bucket_at(s, bucket),
		.len = bucket_len(s, bucket) * sizeof(float), .token = bucket };

	s->nunsent++;
	return hd_hub_send(s->spec.hub, to, &what, diag);
}

/* Parts in the order in which their owners will add them; sums, which others wait for with nothing left to
 * do, before parts. */
enum hd_err hd_allreduce_begin(struct hd_allreduce *sum, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(!sum->round || hd_allreduce_done(sum));
	sum->round++;
	sum->nsums = sum->nadded = 0;
	memset(sum->here, 0, sizeof sum->here);
	for (uint32_t i = 0; i < sum->spec.n; i++)
		for (uint32_t b = first_of(sum, i); b < first_of(sum, i + 1) && i != sum->spec.me && !err;
			b++)
			err = send(sum, i, HD_TRANSFER_ROOT, b, (int32_t)(b - first_of(sum, i)) + 1, diag);
	return err;
}

/* Of this round, from the owner, for the first time. */
static bool is_sum(const struct hd_allreduce *s, const struct hd_arrival *arrival,
	struct hd_transfer_name what)
{
	return what.kind == HD_TRANSFER_SUM && arrival->step == s->round &&
		what.bucket >= first_of(s, arrival->worker) &&
		what.bucket < first_of(s, arrival->worker + 1) &&
		!(s->here[what.bucket / 64] >> what.bucket % 64 & 1);
}

/* Of an own bucket that there is room for, for the first time: what is added already has a lower number,
 * which wraps. */
static bool is_part(const struct hd_allreduce *s, const struct hd_arrival *arrival,
	struct hd_transfer_name what, uint64_t counted)
{
	return what.kind == HD_TRANSFER_ROOT && what.bucket >= s->first && what.bucket < s->end &&
		counted - s->ncounted < HD_ALLREDUCE_AHEAD &&
		!(s->part[place_of(counted)].here >> arrival->worker & 1);
}

enum hd_err hd_allreduce_arrived(struct hd_allreduce *sum, const struct hd_arrival *arrival,
	struct hd_diag *diag)
{
	struct hd_transfer_name what;

	enum hd_err err = hd_transfer_name(arrival->transfer, sum->nbuckets, &what, diag);
	if (err)
		return err;
	bool other = arrival->worker < sum->spec.n && arrival->worker != sum->spec.me && !what.ordinal;
	if (other && is_sum(sum, arrival, what)) {
		sum->here[what.bucket / 64] |= UINT64_C(1) << what.bucket % 64;
		sum->nsums++;
		return hd_hub_post(sum->spec.hub, arrival->worker, arrival->transfer, arrival->buffer, diag);
	}
	uint64_t counted = (arrival->step - 1) * own_count(sum) + what.bucket - sum->first;
	if (!other || !is_part(sum, arrival, what, counted))
		return hd_fail(diag, HD_E_PROTOCOL,
			"member %u sent transfer %08x of round %llu in round %llu", arrival->worker,
			arrival->transfer,
			(unsigned long long)arrival->step, (unsigned long long)sum->round);
	struct hd_allreduce_part *part = &sum->part[place_of(counted)];
	part->at[arrival->worker] = arrival->buffer;
	part->here |= 1u << arrival->worker;
	return HD_OK;
}

enum hd_err hd_allreduce_sent(struct hd_allreduce *sum, const struct hd_sent *sent, struct hd_diag *diag)
{
	if (sent->err)
		return hd_fail(diag, sent->err, "a bucket to member %u did not get there", sent->worker);
	sum->nunsent--;
	return HD_OK;
}

/* Is the next own bucket of this round all here? */
static bool is_ready(const struct hd_allreduce *s)
{
	return s->nadded < own_count(s) && s->part[place_of(s->ncounted)].here ==
		((1u << s->spec.n) - 1 - (1u << s->spec.me));
}

enum hd_err hd_allreduce_turn(struct hd_allreduce *sum, bool *more, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	*more = false;
	if (!is_ready(sum))
		return HD_OK;
	uint32_t bucket = sum->first + sum->nadded, me = sum->spec.me;
	struct hd_allreduce_part *part = &sum->part[place_of(sum->ncounted)];
	part->at[me] = bucket_at(sum, bucket);
	add(part->at, sum->spec.n, me, bucket_at(sum, bucket), bucket_len(sum, bucket));
	part->here = 0;
	for (uint32_t i = 0; i < sum->spec.n && !err; i++)
		if (i != me) {
			err = send(sum, i, HD_TRANSFER_SUM, bucket, 0, diag);
			if (!err)
				err = post_part(sum, i, sum->ncounted + HD_ALLREDUCE_AHEAD, diag);
		}
	sum->nadded++;
	sum->ncounted++;
	*more = is_ready(sum);
	return err;
}

bool hd_allreduce_done(const struct hd_allreduce *sum)
{
	return !sum->nunsent && sum->nadded == own_count(sum) && sum->nsums == sum->nbuckets - own_count(sum);
}
