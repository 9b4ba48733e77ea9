#include "worker/elastic_int.h"

#include "base/alloc.h"
#include "run/forecast.h"

/* What the own instructions take, for the coordinator: it predicts them (run/forecast.h). */

enum hd_err hd_elastic_spent_init(struct hd_elastic *e, struct hd_diag *diag)
{
	struct hd_elastic_spent *s = &e->spent;

	s->base = hd_alloc(HD_MSG_SPENTS * sizeof *s->base);
	s->said = hd_alloc(HD_MSG_SPENTS * sizeof *s->said);
	return s->base && s->said ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for the times of a worker's instructions");
}

void hd_elastic_spent_finish(struct hd_elastic *e)
{
	hd_free(e->spent.base);
	hd_free(e->spent.said);
}

/* Of whole models nothing is predicted where devices compute (run/pipes_forecast.h, rule 4). */
static bool is_predicted(const struct hd_elastic *e)
{
	return e->adopted.epoch && (e->adopted.shape.nstages || !hd_worker_computes(e->worker));
}

static bool has(const struct hd_ilist *list, uint8_t op, uint16_t stage, bool staged)
{
	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == op && (!staged || list->at[i].stage == stage))
			return true;
	return false;
}

/* What others hold of the plan takes no time here. False: there are more kinds than a message has. */
static bool list_rank(struct hd_elastic_spent *s, const struct hd_plan *plan, uint32_t rank)
{
	for (uint32_t k = 0; k < plan->nstages; k++)
		for (uint8_t op = 0; op < HD_INS_END; op++) {
			const bool staged = plan->nstages > 1 && hd_ins_uses(op, 's');
			if (!hd_forecast_counts(op) || (!staged && k) ||
				!has(&plan->list[rank], op, (uint16_t)k, staged))
				continue;
			if (s->nkinds == HD_MSG_SPENTS)
				return false;
			s->base[s->nkinds++] = (struct hd_spent_kind){ .rank = rank, .stage = (uint8_t)k,
				.op = op };
		}
	return true;
}

static void list(struct hd_elastic *e)
{
	const uint32_t self = atomic_load(&e->self);
	const struct hd_plan *plan = &e->plan[e->plan_now];
	struct hd_elastic_spent *s = &e->spent;

	s->nkinds = 0;
	for (uint32_t r = 0; r < e->adopted.nranks && r < plan->nranks; r++)
		if (e->adopted.rank[r].worker == self && !list_rank(s, plan, r)) {
			s->nkinds = 0;
			return;
		}
}

/* A rank's first device says what its devices take together. */
static struct hd_spent spent_of(const struct hd_elastic *e, const struct hd_spent_kind *kind)
{
	const uint32_t self = atomic_load(&e->self);
	uint32_t nth = 0;

	for (uint32_t r = 0; r < kind->rank; r++)
		nth += e->adopted.rank[r].worker == self;
	return hd_worker_spent(e->worker, nth * hd_view_each(&e->adopted.shape), kind->stage, kind->op);
}

static void begin(struct hd_elastic *e)
{
	list(e);
	for (uint32_t i = 0; i < e->spent.nkinds; i++) {
		struct hd_spent_kind *kind = &e->spent.base[i];
		const struct hd_spent now = spent_of(e, kind);
		kind->n = now.n;
		kind->ns = now.ns;
		kind->processor_ns = now.processor_ns;
	}
}

void hd_elastic_spent_count(struct hd_elastic *e)
{
	struct hd_elastic_spent *s = &e->spent;
	const double slow = e->spec->slow > 1 ? e->spec->slow : 1;

	s->n = 0;
	if (s->rested || !is_predicted(e)) {
		s->rested = s->begun = false;
		return;
	}
	if (!s->begun)
		begin(e);
	s->begun = true;
	for (uint32_t i = 0; i < s->nkinds; i++) {
		const struct hd_spent_kind *was = &s->base[i];
		const struct hd_spent now = spent_of(e, was);
		s->said[s->n++] = (struct hd_spent_kind){ .rank = was->rank, .stage = was->stage,
			.op = was->op, .n = now.n - was->n,
			.ns = (uint64_t)((double)(now.ns - was->ns) * slow),
			.processor_ns = now.processor_ns - was->processor_ns };
	}
}
