#include "worker/allreduce.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "worker/tree_add.h"

enum { FLOATS = HD_ALLREDUCE_BUCKET / (int)sizeof(float) };

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
static float *received_at(const struct hd_allreduce *s, uint32_t member, uint64_t counted)
{
	return (float *)s->block.at + ((uint64_t)member * HD_ALLREDUCE_AHEAD + place_of(counted)) * FLOATS;
}
static struct hd_xfer_name part_name(const struct hd_allreduce *s, uint32_t from, uint32_t bucket)
{
	return (struct hd_xfer_name){ HD_XFER_PARTIAL, from, hd_bucket_owner(bucket, s->nbuckets, s->spec.n),
		bucket, 0 };
}
static struct hd_xfer_name sum_name(const struct hd_allreduce *s, uint32_t to, uint32_t bucket)
{
	return (struct hd_xfer_name){ HD_XFER_SUM, hd_bucket_owner(bucket, s->nbuckets, s->spec.n), to,
		bucket, 0 };
}
/* A row of a channel with so many buffers granted from the start. */
static struct hd_transfer granted(const struct hd_allreduce *s, struct hd_xfer_name name, uint32_t slots)
{
	return (struct hd_transfer){ hd_transfers_id(&s->rows, name), slots,
		hd_transfers_row(&s->rows, &name).len_bytes };
}

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
	hd_transfers_init(&sum->rows, &(struct hd_transfers_spec){ .nmembers = spec->n, .nvns = spec->n,
		.nbuckets = sum->nbuckets, .floats = spec->len, .sums_first = true });
	sum->nadded = own_count(sum);     /* parts that come before the first round wait for it */
	if (!own_count(sum))
		return HD_OK;
	return hd_memory_take((size_t)spec->n * HD_ALLREDUCE_AHEAD * HD_ALLREDUCE_BUCKET, HD_MEMORY_TOUCH,
		&sum->block, diag);
}

void hd_allreduce_finish(struct hd_allreduce *sum) { hd_memory_give(&sum->block); }

/* A buffer for the next own bucket that this member has none for. */
static enum hd_err post_part(struct hd_allreduce *s, uint32_t member, uint64_t counted, struct hd_diag *diag)
{
	uint32_t bucket = s->first + (uint32_t)(counted % own_count(s));
	return hd_hub_post(s->spec.hub, member, hd_transfers_id(&s->rows, part_name(s, member, bucket)),
		received_at(s, member, counted), diag);
}

static enum hd_err open_with(struct hd_allreduce *s, uint32_t member, struct hd_transfer *in,
	struct hd_transfer *out, struct hd_diag *diag)
{
	uint32_t n_in = 0, n_out = 0, low = first_of(s, member), end = first_of(s, member + 1);

	for (uint32_t b = s->first; b < s->end; b++)
		in[n_in++] = granted(s, part_name(s, member, b), 0);
	for (uint32_t b = low; b < end; b++) {
		in[n_in++] = granted(s, sum_name(s, s->spec.me, b), 1);
		out[n_out++] = granted(s, part_name(s, s->spec.me, b), 0);
	}
	for (uint32_t b = s->first; b < s->end; b++)
		out[n_out++] = granted(s, sum_name(s, member, b), 1);
	enum hd_err err = hd_hub_channel(s->spec.hub, member, in, n_in, out, n_out, diag);
	for (uint32_t b = low; b < end && !err; b++)
		err = hd_hub_post(s->spec.hub, member, hd_transfers_id(&s->rows, sum_name(s, s->spec.me, b)),
			bucket_at(s, b), diag);
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

/* Id, length and urgency are the row's. */
static enum hd_err send(struct hd_allreduce *s, struct hd_xfer_name name, struct hd_diag *diag)
{
	struct hd_xfer row = hd_transfers_row(&s->rows, &name);
	struct hd_send what = { .transfer = hd_transfers_id(&s->rows, name),
		.priority = (int32_t)row.priority,
		.step = s->round, .bytes = bucket_at(s, name.number), .len = row.len_bytes,
		.token = name.number };

	s->nunsent++;
	return hd_hub_send(s->spec.hub, row.to, &what, diag);
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
			err = send(sum, part_name(sum, sum->spec.me, b), diag);
	return err;
}

/* Of this round, for the first time. */
static bool is_sum(const struct hd_allreduce *s, uint64_t round, const struct hd_xfer_name *name)
{
	return name->kind == HD_XFER_SUM && round == s->round &&
		name->from == hd_bucket_owner(name->number, s->nbuckets, s->spec.n) &&
		!(s->here[name->number / 64] >> name->number % 64 & 1);
}

/* That there is a buffer for, for the first time: what is added already has a lower number, which wraps. */
static bool is_part(const struct hd_allreduce *s, const struct hd_xfer_name *name, uint64_t counted)
{
	return name->kind == HD_XFER_PARTIAL && !name->ordinal &&
		counted - s->ncounted < HD_ALLREDUCE_AHEAD &&
		!(s->part[place_of(counted)].here >> name->from & 1);
}

enum hd_err hd_allreduce_arrived(struct hd_allreduce *sum, const struct hd_arrival *arrival,
	struct hd_diag *diag)
{
	struct hd_xfer_name name;

	enum hd_err err = hd_transfers_name(&sum->rows, arrival->transfer, &name, diag);
	if (err)
		return err;
	bool its = name.from == arrival->worker && name.to == sum->spec.me;
	if (its && is_sum(sum, arrival->step, &name)) {
		sum->here[name.number / 64] |= UINT64_C(1) << name.number % 64;
		sum->nsums++;
		return hd_hub_post(sum->spec.hub, arrival->worker, arrival->transfer, arrival->buffer, diag);
	}
	uint64_t counted = (arrival->step - 1) * own_count(sum) + name.number - sum->first;
	if (!its || !is_part(sum, &name, counted))
		return hd_fail(diag, HD_E_PROTOCOL, "member %u sent transfer %u of round %llu in round %llu",
			arrival->worker, arrival->transfer, (unsigned long long)arrival->step,
			(unsigned long long)sum->round);
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
	hd_tree_add(part->at, sum->spec.n, bucket_at(sum, bucket), bucket_len(sum, bucket));
	part->here = 0;
	for (uint32_t i = 0; i < sum->spec.n && !err; i++)
		if (i != me) {
			err = send(sum, sum_name(sum, i, bucket), diag);
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
