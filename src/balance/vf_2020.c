#include "balance/vf_2020.h"

#include <inttypes.h>

/* For every number of samples of a whole type the least time and how; then type after type over the samples
 * given out so far. Of the last type only what is missing is asked for, so two types cost O(B). */
struct option { int64_t ps; struct hd_vf_share share; };         /* ps < 0: none */
/* least of types up to one; samples of that one; types used before it */
struct vf_sum { int64_t ps; uint32_t vns, mine, used; };

enum { USED = 3 };                                /* no type, one, more */

struct vf_search {
	const struct hd_vf_type *type; uint32_t ntypes, batch;
	struct option *option[HD_VF_TYPES];      /* [batch + 1] by samples of all devices of the type */
	struct vf_sum *upto[HD_VF_TYPES];           /* [(batch + 1) * USED] */
};

static enum hd_err check(const struct vf_search *s, int64_t exchange_ps, struct hd_diag *diag)
{
	if (s->ntypes == 0 || s->ntypes > HD_VF_TYPES || s->batch == 0 || s->batch > HD_VF_BATCH_MAX ||
		exchange_ps < 0)
		return hd_fail(diag, HD_E_INVAL,
			"%u types (1 to %d), %u samples (1 to %d), an exchange of %" PRId64 " ps", s->ntypes,
			HD_VF_TYPES, s->batch,
			HD_VF_BATCH_MAX, exchange_ps);
	for (uint32_t t = 0; t < s->ntypes; t++) {
		const struct hd_vf_type *type = &s->type[t];
		if (type->ndevices == 0 || type->ntimes == 0 || type->ntimes > HD_VF_BATCHES ||
			type->exchange_ps < 0)
			return hd_fail(diag, HD_E_INVAL, "type %u: %u devices, %u batches (1 to %d)", t,
				type->ndevices, type->ntimes, HD_VF_BATCHES);
		for (uint32_t i = 0; i < type->ntimes; i++)
			if (type->time[i].batch == 0 || type->time[i].ps <= 0 ||
				type->time[i].ps > INT64_MAX / HD_VF_BATCH_MAX / 2)
				return hd_fail(diag, HD_E_INVAL, "type %u: a batch of %u in %" PRId64 " ps",
					t, type->time[i].batch, type->time[i].ps);
	}
	return HD_OK;
}

static void put_options(struct vf_search *s, uint32_t t)
{
	const struct hd_vf_type *type = &s->type[t];

	for (uint32_t n = 1; n <= s->batch; n++)
		s->option[t][n].ps = -1;
	for (uint32_t i = 0; i < type->ntimes; i++)
		for (uint32_t v = 1; (uint64_t)v * type->time[i].batch * type->ndevices <= s->batch; v++) {
			struct option *o = &s->option[t][v * type->time[i].batch * type->ndevices];
			int64_t ps = v * type->time[i].ps;
			if (o->ps < 0 || ps < o->ps || (ps == o->ps && v < o->share.vns))
				*o = (struct option){ ps, { v, type->time[i].batch } };
		}
}

static struct vf_sum *sum_at(const struct vf_search *s, uint32_t t, uint32_t n,
	uint32_t used) { return &s->upto[t][(size_t)n * USED + used]; }

/* `given` samples by `used` of the types before t, and `mine` by t. */
static struct vf_sum join(const struct vf_search *s, uint32_t t, uint32_t given, uint32_t used, uint32_t mine)
{
	const struct option *o = &s->option[t][mine];
	struct vf_sum before = t ? *sum_at(s, t - 1, given, used) : (struct vf_sum){ given || used ? -1 : 0,
		0, 0,
		0 };

	if (o->ps < 0 || before.ps < 0)
		return (struct vf_sum){ -1, 0, 0, 0 };
	return (struct vf_sum){ o->ps > before.ps ? o->ps : before.ps,
		before.vns + o->share.vns * s->type[t].ndevices, mine, used };
}

static bool better(const struct vf_sum *a, const struct vf_sum *b)
{
	if (a->ps < 0 || b->ps < 0)
		return a->ps >= 0;
	if (a->ps != b->ps)
		return a->ps < b->ps;
	/* fewer of this type: more of the lower ones */
	return a->vns != b->vns ? a->vns < b->vns : a->mine < b->mine;
}

static void extend(struct vf_search *s, uint32_t t)
{
	for (uint32_t n = t + 1 == s->ntypes ? s->batch : 0; n <= s->batch; n++) {
		for (uint32_t used = 0; used < USED; used++)
			sum_at(s, t, n, used)->ps = -1;
		for (uint32_t mine = t ? 0 : n; mine <= n; mine++)
			for (uint32_t used = 0; used < USED; used++) {
				struct vf_sum sum = join(s, t, n - mine, used, mine);
				struct vf_sum *best = sum_at(s, t, n,
					used + (mine > 0) < USED ? used + (mine > 0) : USED - 1);
				if (better(&sum, best))
					*best = sum;
			}
	}
}

/* The best of one type; HD_VF_TYPES: none has B samples. */
static uint32_t best_alone(const struct vf_search *s, int64_t *step_ps)
{
	uint32_t best = HD_VF_TYPES;

	for (uint32_t t = 0; t < s->ntypes; t++) {
		const struct option *o = &s->option[t][s->batch];
		if (o->ps >= 0 && (best == HD_VF_TYPES || o->ps + s->type[t].exchange_ps < *step_ps)) {
			best = t;
			*step_ps = o->ps + s->type[t].exchange_ps;
		}
	}
	return best;
}

static void read_mixed(const struct vf_search *s, struct hd_vf_plan *plan)
{
	uint32_t left = s->batch, used = USED - 1;

	for (uint32_t t = s->ntypes; t-- > 0;) {
		const struct vf_sum *sum = sum_at(s, t, left, used);
		plan->share[t] = s->option[t][sum->mine].share;
		left -= sum->mine;
		used = sum->used;
	}
}

enum hd_err hd_vf_2020(struct hd_vf_plan *plan, const struct hd_vf_type *type, uint32_t ntypes,
	uint32_t batch, int64_t exchange_ps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct vf_search s = { .type = type, .ntypes = ntypes, .batch = batch };
	struct hd_vf_plan made = { .step_ps = 0 };
	int64_t alone_ps = 0;
	enum hd_err err = check(&s, exchange_ps, diag);

	for (uint32_t t = 0; t < ntypes && !err; t++) {
		s.option[t] = hd_arena_take(arena, (size_t)batch + 1, sizeof *s.option[t]);
		s.upto[t] = hd_arena_take(arena, ((size_t)batch + 1) * USED, sizeof *s.upto[t]);
		if (!s.option[t] || !s.upto[t])
			return hd_fail(diag, HD_E_NOMEM, "no memory to share out %u samples", batch);
		put_options(&s, t);
		extend(&s, t);
	}
	if (err)
		return err;
	uint32_t alone = best_alone(&s, &alone_ps);
	struct vf_sum mixed = *sum_at(&s, ntypes - 1, batch, USED - 1);
	if (alone == HD_VF_TYPES && mixed.ps < 0)
		return hd_fail(diag, HD_E_INVAL,
			"no virtual nodes of the profiled batches have %u samples together", batch);
	if (mixed.ps >= 0 && (alone == HD_VF_TYPES || mixed.ps + exchange_ps < alone_ps)) {
		read_mixed(&s, &made);
		made.mixed = true;
		made.step_ps = mixed.ps + exchange_ps;
	} else {
		made.share[alone] = s.option[alone][batch].share;
		made.step_ps = alone_ps;
	}
	*plan = made;
	return HD_OK;
}
