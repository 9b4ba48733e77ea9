/* The planner against all that four devices can do with a small transformer and a small net of convolutions:
 * every number of ranks and pipelines, every schedule, every place of every boundary, each simulated. The
 * lists of pipelines are joined here, not by the planner. HD_DRAWS: up to six stages; else four. */
#include "planner/search/testing_planner.h"

#include "graph/testing.h"
#include "cost/profile_graph.h"
#include "pipeline/passes.h"
#include "pipeline/sim_plan.h"

enum { DEVICES = 4, STAGES = 8 };

struct net { const char *name, *model; const struct hd_model_arg *arg; uint32_t nargs, rows; };

static const struct hd_model_arg gpt[] = { { "layers", "1" }, { "width", "64" }, { "heads", "2" },
	{ "context", "32" }, { "vocab", "300" } };
static const struct net nets[] = {
	{ "transformer", "gpt", gpt, 5, 4 }, { "convolutions", "lenet", NULL, 0, 16 } };

static const struct { const char *name; uint32_t v; } kinds[] = { { "gpipe", 1 }, { "1f1b", 1 },
	{ "interleaved", 2 }, { "zb-h1", 1 }, { "zb-h2", 1 }, { "zb-v", 2 }, { "v-half", 2 }, { "v-min", 2 },
	{ "dualpipev", 2 } };

/* Stages with copies of their own number: 1f1b-rr. */
static const struct { uint32_t n, copies[3]; } uneven[] = { { 2, { 1, 2 } }, { 2, { 2, 1 } }, { 2, { 1, 3 } },
	{ 2, { 3, 1 } }, { 2, { 2, 2 } }, { 3, { 1, 1, 2 } }, { 3, { 1, 2, 1 } }, { 3, { 2, 1, 1 } } };

struct search {
	const struct model *model;
	const struct machines *machines;
	uint32_t vns, p, d, v, n, most;           /* most: stages */
	const char *name;
	const uint32_t *copies; uint32_t ncopies; /* NULL: d pipelines */
	int64_t best;
	char what[160];
};

/* The same list for each pipeline, on virtual nodes of its own. */
static struct hd_schedule joined(const struct search *s)
{
	const uint32_t m = s->vns / s->d;
	const struct hd_schedule one = hd_named_schedule(s->name, s->p, m, s->v);
	struct hd_schedule all = { .nranks = s->p * s->d, .nvns = s->vns, .update = one.update,
		.list = hd_arena_take(&arena, s->p * s->d, sizeof *all.list) };
	struct hd_diag diag = { "" };

	for (uint32_t r = 0; r < all.nranks; r++) {
		const struct hd_ilist *from = &one.list[r % s->p];
		all.list[r] = (struct hd_ilist){ .len = from->len, .cap = from->len,
			.at = hd_arena_take(&arena, from->len, sizeof *from->at) };
		for (uint32_t i = 0; i < from->len; i++) {
			all.list[r].at[i] = from->at[i];
			all.list[r].at[i].vn = from->at[i].vn + r / s->p * m;
		}
	}
	CHECK(hd_schedule_infer(&all, &arena, &diag) == HD_OK, "%s", diag.text);
	return all;
}

static struct hd_schedule with_copies(const struct search *s)
{
	struct hd_schedule list;
	struct hd_diag diag = { "" };

	CHECK(hd_schedule_make(&list, &(struct hd_schedule_ask){ .name = s->name, .p = s->p, .m = s->vns,
		.replicas = s->copies, .nreplicas = s->ncopies }, &arena, &diag) == HD_OK, "%s", diag.text);
	return list;
}

/* With the buffers of a run, as the planner judges. */
static void try_places(struct search *s, uint32_t *first, uint32_t nstages)
{
	struct hd_schedule list = s->copies ? with_copies(s) : joined(s);
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;

	assert_int_equal(hd_stage_costs_make(&costs, &s->model->sums, first, nstages, &arena, NULL), HD_OK);
	const struct hd_schedule_job job = { .tied = costs.tied, .ntied = costs.ntied };
	assert_int_equal(hd_schedule_updates(&list, &list, &job, &arena, NULL), HD_OK);
	assert_int_equal(hd_sim_plan(&sim, &list, &(struct hd_sim_setting){ .costs = &costs,
		.cluster = &s->machines->cluster, .transport = HD_TRANSPORT_BUFFERED, .credits = HD_CREDITS },
		&arena, NULL), HD_OK);
	s->n++;
	if (sim.makespan < s->best) {
		s->best = sim.makespan;
		snprintf(s->what, sizeof s->what, "%s p %u d %u v %u", s->name, s->p, s->d, s->v);
	}
}

static void try_cuts(struct search *s, uint32_t at, uint32_t *first, uint32_t nstages)
{
	if (at == nstages) {
		try_places(s, first, nstages);
		return;
	}
	for (first[at] = first[at - 1] + 1; first[at] + (nstages - at) <= s->model->cuts.n; first[at]++)
		try_cuts(s, at + 1, first, nstages);
}

static void try_all(struct search *s)
{
	uint32_t first[STAGES] = { 0 };

	for (s->p = 1; s->p <= DEVICES; s->p++)
		for (s->d = 1; s->p * s->d <= DEVICES; s->d++)
			for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
				s->name = kinds[k].name;
				s->v = kinds[k].v;
				if (s->vns % s->d || s->p * s->v > s->model->cuts.n || (s->p == 1 && k) ||
					s->p * s->v > s->most)
					continue;
				try_cuts(s, 1, first, s->p * s->v);
			}
	s->name = "1f1b-rr";
	s->d = 0;
	s->v = 1;
	for (size_t i = 0; i < sizeof uneven / sizeof *uneven; i++) {
		s->copies = uneven[i].copies;
		s->ncopies = uneven[i].n;
		s->p = 0;
		for (uint32_t k = 0; k < s->ncopies; k++)
			s->p += s->copies[k];
		try_cuts(s, 1, first, s->ncopies);
	}
}

struct way { double bytes_per_s; uint32_t vns; };

static void open_net(struct model *m, struct hd_subject *subject, const struct net *net)
{
	const struct hd_profile_ask ask = { .rows = net->rows, .nslots = 2, .tensor_shards = 1 };
	uint32_t *home;

	hd_subject_model(subject, net->model, net->arg, net->nargs, (struct hd_model_opts){ 0 });
	CHECK(subject->err == HD_OK, "%s", subject->diag.text);
	CHECK(!hd_graph_optimize(&subject->graph, ask.rows, &subject->diag) &&
		!hd_graph_autodiff(&subject->graph, &subject->diag) &&
		!hd_profile_of_graph(&m->profile, &home, &subject->graph, &ask, &arena, &subject->diag), "%s",
		subject->diag.text);
	hd_profile_model(&m->profile, home, &subject->graph, &ask, hd_profile_nominal);
	settle(m);
}

/* What the choice takes of the best of all. */
static double judge(const struct net *net, const struct way *way)
{
	struct hd_dice dice = { 1 };
	struct hd_subject subject;
	struct machines c;
	struct model m;
	struct hd_auto a;

	open_net(&m, &subject, net);
	make_machines(&c, &dice, DEVICES, 1, true, 0, 1);
	c.cluster.level[0] = (struct hd_cluster_level){ "in", DEVICES, way->bytes_per_s, 1000000 };
	struct search s = { .model = &m, .machines = &c, .vns = way->vns, .best = INT64_MAX,
		.most = getenv("HD_DRAWS") ? 6 : 4 };
	try_all(&s);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = way->vns },
		&arena, NULL), HD_OK);
	const struct hd_auto_shape *shape = &a.plan[0].shape;
	const double over = (double)a.plan[0].makespan_ps / (double)s.best;
	print_message("%s, %u cuts, %g bytes/s: %s p %u d %u v %u takes %.4f of %s, the best of %u\n",
		net->name, m.cuts.n, way->bytes_per_s, shape->schedule, shape->p, shape->d, shape->v, over,
		s.what, s.n);
	CHECK(over <= 1.05, "%s at %g bytes/s: %.3f of the best", net->name, way->bytes_per_s, over);
	hd_subject_finish(&subject);
	hd_arena_reset(&arena);
	return over;
}

static void of_all_grids_of_four_devices_none_is_much_faster(void **state)
{
	static const struct way ways[] = { { 3e8, 8 }, { 1e9, 8 }, { 1e8, 8 } };
	double worst = 1;

	(void)state;
	for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
		for (size_t w = 0; w < (SANITIZED ? 1 : sizeof ways / sizeof *ways); w++) {
			const double over = judge(&nets[i], &ways[w]);
			worst = over > worst ? over : worst;
		}
	print_message("at worst %.4f times the best of all grids\n", worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_all_grids_of_four_devices_none_is_much_faster),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
