#include "planner/steady.h"

#define PS 1e-12
#define MB 1e-6

static double of_range(const struct hd_stage_cost *c) { return (double)(c->f + c->i + c->w) * PS; }

static void stage(const struct hd_steady *a, const struct hd_steady_table *t, const struct hd_steady_how *h,
	uint32_t i, struct hd_text *text)
{
	const struct hd_steady_stage *g = &a->stage[i];
	struct hd_stage_cost c = hd_cut_sums_range(t->sums, g->first, g->last + 1);
	uint32_t most = (h->m + g->replicas - 1) / g->replicas;

	hd_text_addf(text,
		"stage %u: cuts %u-%u up to %s: %.6g s of work a virtual node, %.4g MB of weights, %.4g MB "
		"go on", i, g->first, g->last,
		t->sums->cuts->name[g->last], of_range(&c), (double)c.param * MB, (double)c.out * MB);
	if (g->replicas > 1)
		hd_text_addf(text,
			"; %u copies, each at most %u of %u virtual nodes, sums of %.4g MB once a step",
			g->replicas, most, h->m,
			2 * (double)(g->replicas - 1) / g->replicas * (double)c.param * MB);
	if (g->recompute)
		hd_text_addf(text, "; computes again (%.6g s): without, it needs %.4g MB and does not fit",
			(double)c.r * PS,
			(double)hd_steady_bytes(&c, most, h->versions ? h->versions : 1, most, false) * MB);
	hd_text_addf(text, "; %.4g MB on a device%s\n", (double)g->bytes * MB,
		i == a->slowest ? "; the slowest" : "");
}

void hd_steady_explain(const struct hd_steady *a, const struct hd_steady_table *t,
	const struct hd_steady_how *h, struct hd_text *text)
{
	struct hd_stage_cost all = hd_cut_sums_range(t->sums, 0, t->sums->cuts->n);

	hd_text_addf(text,
		"a step of %u virtual nodes takes %.6g s: %.6g s until the first is through, then %.6g s "
		"for the rest on the slowest stage\n", h->m,
		hd_steady_ps(a) * PS, a->fill_ps * PS, a->steady_ps * PS);
	hd_text_addf(text, "one device of speed 1 takes %.6g s, without waiting for memory or links\n",
		(double)h->m * of_range(&all));
	for (uint32_t i = 0; i < a->nstages; i++)
		stage(a, t, h, i, text);
	if (!h->site && a->nsites < h->cluster->ndevices)
		hd_text_addf(text,
			"%u of %u devices stay idle: more copies or stages would not make it faster\n",
			h->cluster->ndevices - a->nsites,
			h->cluster->ndevices);
	if (t->n < t->sums->cuts->n)
		hd_text_addf(text,
			"%u of %u cuts were considered: of each equal share of the time the one with the "
			"least output\n", t->n, t->sums->cuts->n);
}
