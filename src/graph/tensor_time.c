#include "graph/tensor_time.h"

/* Devices take turns until none goes on. */
struct race {
	const struct hd_tensor_list *list;
	const struct hd_tensor_link *link;
	uint32_t t, each;                 /* devices; of a group */
	const double *ns;
	struct hd_tensor_wakes wakes;
	double now[HD_MAX_TENSOR], *done[HD_MAX_TENSOR];      /* when each node of a list is done */
	uint32_t at[HD_MAX_TENSOR], count[HD_MAX_TENSOR];     /* the step that is next; nodes that are done */
	double *here;                     /* [parcels] when each has come */
	double left[HD_MAX_TENSOR][HD_MAX_TENSOR];            /* when a device's line to a group is free */
};

static double later(double a, double b) { return a > b ? a : b; }

/* When a step can begin; false: something that it reads is not begun. */
static bool begins(const struct race *r, uint32_t d, double *at)
{
	const struct hd_tensor_step *s = &r->list[d].step[r->at[d]];

	*at = r->now[d];
	for (uint32_t j = 0; j < r->t; j++) {
		if (s->after[j] > r->count[j])
			return false;
		const double done = s->after[j] ? r->done[j][s->after[j] - 1] : 0;
		if (j / r->each == d / r->each && done > r->now[d])
			*at = later(*at, done + r->wakes.hop_ns);
	}
	const struct hd_parcel_needs *needs = r->link ? &r->link->parcels->needs[d][r->at[d]] : NULL;
	for (uint32_t i = 0; needs && i < needs->n; i++)
		*at = later(*at, r->here[needs->parcel[i]]);
	return true;
}

/* What a step has made leaves for the other groups. */
static void send(struct race *r, uint32_t d)
{
	const struct hd_parcels *p = r->link ? r->link->parcels : NULL;

	for (uint32_t i = p ? p->first[d][r->at[d]] : 0; p && i < p->first[d][r->at[d] + 1]; i++) {
		double *left = &r->left[d][p->at[i].to];
		*left = later(*left, r->now[d]) + r->link->parcel_ns[i];
		r->here[i] = *left + r->link->hop_ns;
	}
}

static bool run_step(struct race *r, uint32_t d)
{
	double at;

	if (r->at[d] == r->list[d].nsteps || !begins(r, d, &at))
		return false;
	const struct hd_tensor_step *s = &r->list[d].step[r->at[d]];
	r->now[d] = at;
	for (uint32_t i = s->from; i < s->to; i++)
		r->now[d] += r->ns[r->list[d].node[i]];
	if (r->now[d] > at)
		r->now[d] += r->wakes.late_ns;
	for (uint32_t i = s->from; i < s->to; i++)      /* others learn of a step when it is over */
		r->done[d][i] = r->now[d];
	r->count[d] = s->to;
	send(r, d);
	r->at[d]++;
	return true;
}

enum hd_err hd_tensor_time(double *took_ns, const struct hd_tensor_list *list, uint32_t t, const double *ns,
	struct hd_tensor_wakes wakes, const struct hd_tensor_link *link, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct race *r = hd_arena_take(arena, 1, sizeof *r);
	bool went = true;

	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the times of %u devices", t);
	*r = (struct race){ .list = list, .link = link, .t = t, .each = link ? t / link->ngroups : t,
		.ns = ns, .wakes = wakes };
	r->here = hd_arena_take(arena, (link ? link->parcels->n : 0) + (size_t)1, sizeof *r->here);
	for (uint32_t d = 0; d < t; d++)
		if (!r->here || !(r->done[d] = hd_arena_take(arena, (size_t)list[d].n + 1, sizeof **r->done)))
			return hd_fail(diag, HD_E_NOMEM, "no memory for the times of %u nodes", list[d].n);
	while (went) {
		went = false;
		for (uint32_t d = 0; d < t; d++)
			while (run_step(r, d))
				went = true;
	}
	*took_ns = 0;
	for (uint32_t d = 0; d < t; d++)
		*took_ns = later(*took_ns, r->now[d]);
	return HD_OK;
}
