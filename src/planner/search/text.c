#include "planner/planner.h"

#include <inttypes.h>
#include <stdio.h>

#define PS 1e-12
#define MB 1e-6

enum { RANKS_SHOWN = 32 };

static const char *const bound_names[HD_AUTO_NBOUNDS] = {
#define X(id, name) [HD_AUTO_BY_##id] = name,
	HD_AUTO_BOUNDS(X)
#undef X
};
static const char *const place_names[HD_AUTO_NPLACES] = {
#define X(id, name) [HD_AUTO_##id] = name,
	HD_AUTO_PLACES(X)
#undef X
};

const char *hd_auto_bound_name(enum hd_auto_bound bound) { return bound_names[bound]; }
const char *hd_auto_place_name(enum hd_auto_place place) { return place_names[place]; }

static uint32_t devices_of(const struct hd_auto_plan *p) { return p->nranks * p->shape.t; }

void hd_auto_shape_print(const struct hd_auto_plan *p, struct hd_text *text)
{
	const struct hd_auto_shape *s = &p->shape;

	if (!s->d)
		hd_text_addf(text, "%s: %u stages on %u devices, copies in different numbers", s->schedule,
			p->nstages, p->nranks);
	else if (s->p == 1)
		hd_text_addf(text, "%s on %u device%s", s->d == 1 ? "the whole model" : s->schedule,
			s->d * s->t, s->d * s->t > 1 ? "s" : "");
	else
		hd_text_addf(text, "%s: p = %u ranks, d = %u pipeline%s, v = %u chunk%s a rank", s->schedule,
			s->p, s->d, s->d > 1 ? "s" : "", s->v,
			s->v > 1 ? "s" : "");
	if (s->t > 1)
		hd_text_addf(text, ", t = %u devices a rank", s->t);
	if (s->p > 1 && s->d > 1)
		hd_text_addf(text, ", placed %s", place_names[s->place]);
}

static struct hd_stage_cost all_of(const struct hd_cut_sums *sums) { return hd_cut_sums_range(sums, 0,
	sums->cuts->n); }

static void reference(const char *what, int64_t ps, int64_t best, struct hd_text *text)
{
	if (ps == HD_AUTO_NO_SUCH)
		return;
	if (ps < 0)
		hd_text_addf(text, "%s: %s\n", what, ps == HD_AUTO_UNFIT ? "does not fit the memory" :
			"takes longer than is counted, 2^62 ps");
	else
		hd_text_addf(text, "%s: %.6g s, %.3f times the choice\n", what, (double)ps * PS,
			best ? (double)ps / (double)best : 1);
}

static void list_recomputed(const struct hd_auto_plan *p, const struct hd_auto_ask *ask, struct hd_text *text)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < p->nstages; s++)
		if (p->recompute[s])
			hd_text_addf(text, "%s%u", n++ ? ", " : "computing again: stage ", s);
	if (n)
		hd_text_add(text, ask->recompute == HD_AUTO_ALWAYS ? "; asked for\n" :
			"; with all activations kept they do not fit\n");
}

static void list_asked(const struct hd_auto_ask *ask, struct hd_text *text)
{
	const struct { const char *name; uint32_t value; } all[] = { { "t", ask->t }, { "p", ask->p },
		{ "d", ask->d }, { "v", ask->v } };
	bool any = ask->schedule;

	if (ask->schedule)
		hd_text_addf(text, "asked for: schedule %s", ask->schedule);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].value) {
			hd_text_addf(text, "%s%s = %u", any ? ", " : "asked for: ", all[i].name,
				all[i].value);
			any = true;
		}
	if (any)
		hd_text_add(text, "\n");
}

/* Whether the model is cut, and whether all devices are used, follows from what was asked. */
static bool is_asked(const struct hd_auto_ask *ask) { return ask->schedule || ask->t || ask->p || ask->d ||
	ask->v; }

/* Cut into stages or not, of what the planner chose by itself. */
static void choice(const struct hd_auto *a, const struct hd_cut_sums *sums, const struct hd_cluster *cluster,
	struct hd_text *text)
{
	const struct hd_auto_plan *p = &a->plan[0];
	struct hd_stage_cost all = all_of(sums);
	const struct hd_cluster_level *outer = &cluster->level[cluster->nlevels - 1];

	if (p->shape.p == 1 && p->shape.d == 1 && p->shape.t > 1)
		hd_text_addf(text,
			"no pipeline: %u devices share the work of every node, and sum outputs over links "
			"of %.4g bytes/s\n", p->shape.t,
			cluster->level[0].bytes_per_s);
	else if (p->shape.p == 1 && p->shape.d > 1)
		hd_text_addf(text,
			"no pipeline: sums of %.4g MB of weights a step cost less than the fill and the "
			"transfers of stages\n",
			(double)all.param * MB);
	else if (p->shape.p > 1 && a->data_ps == HD_AUTO_NO_SUCH)
		hd_text_add(text,
			"stages: every virtual node updates the weights by itself, so copies would compute "
			"other steps\n");
	else if (p->shape.p > 1 && a->data_ps != HD_AUTO_UNFIT)
		hd_text_addf(text,
			"stages: data parallel would sum %.4g MB of weights a step over links of down to "
			"%.4g bytes/s\n", (double)all.param * MB,
			outer->bytes_per_s);
	else if (p->shape.p > 1)
		hd_text_addf(text,
			"stages: a device does not hold the whole model (%.4g MB of weights, %.4g MB of "
			"activations a virtual node)\n",
			(double)all.param * MB, (double)all.saved * MB);
}

/* Why this shape and not the plainest one. */
static void reasons(const struct hd_auto *a, const struct hd_cut_sums *sums, const struct hd_cluster *cluster,
	const struct hd_auto_ask *ask,
	struct hd_text *text)
{
	const struct hd_auto_plan *p = &a->plan[0];
	uint32_t few = UINT32_MAX, many = 0;

	list_asked(ask, text);
	if (!is_asked(ask))
		choice(a, sums, cluster, text);
	if (p->shape.t > 1)
		hd_text_addf(text, "tensor groups: norms, dropout and sums between products are %s\n",
			ask->sequence ?
			"shared out along the sequence (model.sequence_shards)" :
			"whole on each device; model.sequence_shards would share them out");
	list_recomputed(p, ask, text);
	if (hd_auto_of_each(ask->update) && p->nstages > 1)
		hd_text_addf(text,
			"update %s: these %u stages become part of the job, for others learn something "
			"else\n", hd_update_names[ask->update],
			p->nstages);
	for (uint32_t q = 0; q < p->npipelines; q++) {
		few = p->share[q] < few ? p->share[q] : few;
		many = p->share[q] > many ? p->share[q] : many;
	}
	if (p->npipelines > 1 && many > few + 1)
		hd_text_addf(text, "virtual nodes in proportion to speed: from %u to %u of %u a pipeline\n",
			few, many, ask->vns);
	else if (p->npipelines > 1 && many > few)
		hd_text_addf(text, "%u virtual nodes do not divide by %u: pipelines take %u or %u\n",
			ask->vns, p->npipelines, few, many);
	if (devices_of(p) < cluster->ndevices)
		hd_text_addf(text, "%u of %u devices stay idle: with them %s\n",
			cluster->ndevices - devices_of(p), cluster->ndevices,
			is_asked(ask) ? "what was asked for is not faster" : "it is not faster");
}

static void stages(const struct hd_auto_plan *p, const struct hd_cut_sums *sums, struct hd_text *text)
{
	hd_text_addf(text, "%-6s %-12s %-24s %8s %12s %12s %12s  %s\n", "stage", "cuts", "up to node",
		"replicas", "s a vn", "weights MB", "out MB",
		"recompute");
	for (uint32_t s = 0; s < p->nstages; s++) {
		uint32_t last = (s + 1 < p->nstages ? p->first[s + 1] : sums->cuts->n) - 1;
		const struct hd_stage_cost *c = &p->costs.stage[s];
		char cuts[32];
		snprintf(cuts, sizeof cuts, "%u-%u", p->first[s], last);
		hd_text_addf(text, "%-6u %-12s %-24.24s %8u %12.6g %12.4g %12.4g  %s\n", s, cuts,
			sums->cuts->name[last], p->replicas[s],
			(double)(c->f + c->i + c->w) * PS, (double)c->param * MB, (double)c->out * MB,
			p->recompute[s] ? "yes" : "no");
	}
}

static void ranks(const struct hd_auto_plan *p, const struct hd_cluster *cluster, struct hd_text *text)
{
	hd_text_addf(text, "%-6s %-8s %-12s %8s %8s %12s %12s  %s\n", "rank", "device", "kind", "pipeline",
		"busy %", "peak MB", "memory MB", "held back by");
	for (uint32_t r = 0; r < p->nranks && r < RANKS_SHOWN; r++) {
		const struct hd_auto_rank *x = &p->rank[r];
		char memory[32] = "-";
		if (x->memory)
			snprintf(memory, sizeof memory, "%.4g", (double)x->memory * MB);
		hd_text_addf(text, "%-6u %-8u %-12.12s %8u %8.1f %12.4g %12s  %s\n", r, x->device,
			hd_cluster_kind_of(cluster, x->device)->name, x->pipeline,
			p->makespan_ps ? 100 * (double)x->busy_ps / (double)p->makespan_ps : 0,
			(double)x->peak * MB, memory, bound_names[x->bound]);
	}
	if (p->nranks > RANKS_SHOWN)
		hd_text_addf(text, "... and %u ranks more\n", p->nranks - RANKS_SHOWN);
}

static void lost(const struct hd_auto_plan *best, const struct hd_auto_plan *p, struct hd_text *text)
{
	if (p->makespan_ps > best->makespan_ps)
		hd_text_addf(text, "%.2f %% slower",
			100 * ((double)p->makespan_ps / (double)best->makespan_ps - 1));
	else if (devices_of(p) > devices_of(best))
		hd_text_addf(text, "as fast, on %u devices more", devices_of(p) - devices_of(best));
	else if (p->peak > best->peak)
		hd_text_addf(text, "as fast, with %.4g MB more on its fullest rank",
			(double)(p->peak - best->peak) * MB);
	else
		hd_text_add(text, "equal; it comes later in the enumeration");
}

/* The choice and what it is compared with. */
static void chosen(const struct hd_auto *a, const struct hd_cut_sums *sums, const struct hd_cluster *cluster,
	const struct hd_auto_ask *ask,
	struct hd_text *text)
{
	const struct hd_auto_plan *p = &a->plan[0];

	hd_auto_shape_print(p, text);
	hd_text_addf(text, "\na step of %u virtual nodes: %.6g s", ask->vns, (double)p->makespan_ps * PS);
	if (p->high_ps > p->makespan_ps)
		hd_text_addf(text, ", from %.6g to %.6g s by the deviations in the profile\n",
			(double)p->low_ps * PS, (double)p->high_ps * PS);
	else
		hd_text_add(text, " (the profile has no deviations: no error band)\n");
	reference("one device", a->one_ps, p->makespan_ps, text);
	char data[64] = "data parallel";
	if (a->data_ps >= 0 && a->data_d < cluster->ndevices && a->data_d < ask->vns)
		snprintf(data, sizeof data, "data parallel, best on %u of %u devices", a->data_d,
			cluster->ndevices);
	reference(data, a->data_ps, p->makespan_ps, text);
	reasons(a, sums, cluster, ask, text);
}

/* What the search did not come to, and the way to it. */
static void list_left(const struct hd_auto *a, struct hd_text *text)
{
	if (!a->nleft)
		return;
	hd_text_addf(text,
		"%" PRIu64 " shapes more may be better, and the search is bounded; asked for by itself each "
		"is gone through:", a->nleft);
	for (uint64_t k = 0; k < a->nleft && k < HD_AUTO_LEFT; k++) {
		const struct hd_auto_shape *x = &a->left[k].shape;
		hd_text_addf(text, "%s --schedule %s", k ? "," : "", x->schedule);
		if (x->d)
			hd_text_addf(text, " -p %u --pipelines %u -v %u", x->p, x->d, x->v);
		if (x->p > 1 && x->d > 1)
			hd_text_addf(text, " (%s)", place_names[x->place]);
		if (x->t > 1)
			hd_text_addf(text, " with t = %u", x->t);
	}
	hd_text_addf(text, "%s\n", a->nleft > HD_AUTO_LEFT ? ", ..." : "");
}

/* What was not chosen, and how many there were. */
static void others(const struct hd_auto *a, bool all, struct hd_text *text)
{
	const struct hd_auto_plan *p = &a->plan[0];

	for (uint32_t i = 1; i < a->nplans && (all || i < 3); i++) {
		hd_text_addf(text, "%u. ", i + 1);
		hd_auto_shape_print(&a->plan[i], text);
		hd_text_addf(text, ": %.6g s, ", (double)a->plan[i].makespan_ps * PS);
		lost(p, &a->plan[i], text);
		hd_text_add(text, "\n");
	}
	hd_text_addf(text,
		"%" PRIu64 " shapes, %" PRIu64 " times (p, d) skipped by their bound, %" PRIu64 " "
		"estimated, %" PRIu64 " simulated, %" PRIu64
		" did not fit the memory\n", a->nshapes, a->nskipped, a->nestimated, a->nsimulated,
			a->nunfit);
	list_left(a, text);
	if (a->nlate)
		hd_text_addf(text,
			"left out: %" PRIu64 " that take more than 2^62 ps (53 days), as far as times are "
			"counted: is a bandwidth of the "
			"cluster wrong?\n", a->nlate);
}

void hd_auto_explain(const struct hd_auto *a, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask, bool all,
	struct hd_text *text)
{
	chosen(a, sums, cluster, ask, text);
	stages(&a->plan[0], sums, text);
	ranks(&a->plan[0], cluster, text);
	others(a, all, text);
}

void hd_auto_explain_short(const struct hd_auto *a, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask,
	struct hd_text *text)
{
	chosen(a, sums, cluster, ask, text);
	others(a, false, text);
}

void hd_auto_print(const struct hd_auto_plan *p, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, struct hd_text *text)
{
	uint32_t first = 0;

	hd_text_add(text, "# ");
	hd_auto_shape_print(p, text);
	hd_text_addf(text, "\n# predicted step: %" PRId64 " ps\n", p->makespan_ps);
	for (uint32_t s = 0; s < p->nstages; s++) {
		uint32_t end = s + 1 < p->nstages ? p->first[s + 1] : sums->cuts->n;
		hd_text_addf(text, "# stage %u: cuts %u-%u, up to %s%s\n", s, p->first[s], end - 1,
			sums->cuts->name[end - 1],
			p->recompute[s] ? ", recompute" : "");
	}
	for (uint32_t q = 0; q < p->npipelines; first += p->share[q++])
		hd_text_addf(text, "# pipeline %u: virtual nodes %u-%u\n", q, first, first + p->share[q] - 1);
	for (uint32_t r = 0; r < p->nranks; r++)
		hd_text_addf(text, "# rank %u: device %u (%s), pipeline %u\n", r, p->rank[r].device,
			hd_cluster_kind_of(cluster, p->rank[r].device)->name,
			p->rank[r].pipeline);
	hd_schedule_print(&p->schedule, text);
}
