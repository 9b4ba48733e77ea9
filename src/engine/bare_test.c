#include "engine/post.h"

#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* A worker of a grid without shadows is lost at every instruction of its list, or as the owner of a sum that
 * no other has: the others begin the step again in a plan of their own. Both this step and the next have the
 * bits of one device, and no virtual node is computed a third time. Each worker has a state of its own; one
 * thread runs all of them, an instruction at a time, and delivers in between, so that each case is the same
 * every time. HD_DRAWS: all instructions; else every 53rd. */

static const char net4[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 60}\n";
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 4, heads: 1, context: 2, vocab: 8, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 60}\n";

static const struct hd_rig_kind kinds[] = {
	{ "1f1b", 2, 1, 2, HD_KEEPS_ALL, 1 }, { "gpipe", 2, 1, 2, HD_KEEPS_INPUT, 1 },
	{ "interleaved", 2, 2, 2, HD_KEEPS_ALL, 1 }, { "zb-v", 2, 2, 2, HD_KEEPS_ALL, 1 },
	{ "zb-h1", 2, 1, 2, HD_KEEPS_ALL, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds, RANKS = 4, VNS = 8, STAGES = 4 };

static uint32_t at[RANKS];                /* next instruction of each worker */
static uint32_t forwards[STAGES][VNS];

static void look(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	(void)rank;
	(void)bind;
	forwards[ins->stage][ins->vn]++;
}

/* ---- one thread */

static struct hd_rank *rank_of(const struct net *net, uint32_t m) { return &net->at[m].worker->rank[0]; }

static const struct hd_ilist *list_of(const struct net *net, uint32_t m)
{
	return rank_of(net, m)->work->list;
}

/* What of the list is run before sums are made. */
static bool computes(const struct net *net, uint32_t m, const struct hd_ins *ins)
{
	const struct hd_pipe *pipe = hd_worker_work(net->at[m].worker)->pipe;

	return hd_pipe_runners_of(pipe, rank_of(net, m))[ins->op].section == HD_SECTION_COMPUTE;
}

static bool can_run(const struct net *net, uint32_t m, const struct hd_ins *ins)
{
	const struct hd_pipe *pipe = hd_worker_work(net->at[m].worker)->pipe;
	const enum hd_mail kind = ins->op == HD_INS_RA || ins->op == HD_INS_SA ? HD_MAIL_ACT : HD_MAIL_GRAD;
	const uint32_t to = kind == HD_MAIL_ACT ? ins->stage + 1u : ins->stage - 1u;

	switch (ins->op) {
	case HD_INS_RA: case HD_INS_RG: return hd_cell_for(pipe, ins, ins->stage)->here[kind];
	case HD_INS_SA: case HD_INS_SG:
		return pipe->line[hd_cell_of(pipe, to, ins->vn)->line[kind]].pool.nfree > 0;
	default: return true;
	}
}

/* Has it a rank? One that is left over has a device without a stage. */
static bool runs(const struct net *net, uint32_t m)
{
	for (uint32_t r = 0; r < net->plan.nranks; r++)
		if (net->plan.worker[r] == m)
			return !net->at[m].gone;
	return false;
}

static bool go(struct net *net, uint32_t m)
{
	if (!runs(net, m))
		return false;
	const struct hd_ilist *list = list_of(net, m);
	while (at[m] < list->len && !computes(net, m, &list->at[at[m]]))
		at[m]++;
	if (at[m] == list->len || !can_run(net, m, &list->at[at[m]]))
		return false;
	hd_interp_one(rank_of(net, m), at[m]++);
	CHECK(!rank_of(net, m)->err, "worker %u: %s", m, rank_of(net, m)->diag.text);
	return true;
}

static void carry(struct net *net)
{
	take_letters(net);
	deliver_some(net);
}

static void go_all(struct net *net, uint32_t but)
{
	for (uint32_t still = 0; still < 40;) {
		bool moved = false;
		for (uint32_t m = 0; m < net->n; m++)
			while (m != but && go(net, m))
				moved = true;
		carry(net);
		still = moved ? 0 : still + 1;
	}
}

/* Others go on just as far as the worker needs. */
static void go_to(struct net *net, uint32_t victim, uint32_t to)
{
	for (uint32_t tries = 0; at[victim] < to; tries++) {
		CHECK(tries < 100000, "worker %u never comes to %u", victim, to);
		if (go(net, victim))
			continue;
		(void)go(net, draw(net->n));
		carry(net);
	}
}

static void begin_all(struct net *net)
{
	memset(at, 0, sizeof at);
	clear_mail(net);
	begin(net);
	for (uint32_t m = 0; m < net->n; m++)
		if (!net->at[m].gone)
			net->at[m].worker->step->section = HD_SECTION_COMPUTE;
}

/* The pass is over: as the call that runs all of the list, with nothing left of it. */
static void computed(struct net *net, const char *what)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++) {
		if (net->at[m].gone)
			continue;
		if (runs(net, m)) {
			CHECK(at[m] == list_of(net, m)->len, "%s: worker %u waits for ever at #%u %s", what,
				m, at[m], hd_ins_row(list_of(net, m)->at[at[m]].op)->text);
			rank_of(net, m)->work->from = at[m];
		}
		CHECK(hd_dist_compute(net->at[m].worker, &diag) == HD_OK, "%s: worker %u: %s", what, m,
			diag.text);
		if (runs(net, m))
			rank_of(net, m)->work->from = 0;          /* its end is to come */
	}
}

static void whole_step(struct net *net, const char *what)
{
	begin_all(net);
	go_all(net, MOST);
	computed(net, what);
	end_step(net, what);
}

/* ---- the loss */

static void open_grid(struct net *net, const char *model, const char *more, const struct hd_rig_kind *k)
{
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, model, 2 * VNS, VNS, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, k, &net->one.arena, &net->plan, &diag) == HD_OK,
		"%s: %s", k->name, diag.text);
	add_workers(net, RANKS, 1, k->name);
}

static void watch(struct net *net)
{
	for (uint32_t m = 0; m < net->n; m++)
		if (!net->at[m].gone)
			hd_worker_work(net->at[m].worker)->pipe->watch = look;
}

/* Nothing of it is left; the others are one pipeline, on any two of the three. */
static void lose(struct net *net, uint32_t victim, const struct hd_rig_kind *k, const char *what)
{
	const struct hd_rig_kind one = { k->name, k->p, k->v, 1, k->keeps, 1 };
	uint32_t left[RANKS], n = 0;
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_fence(net->at[m].worker, net->epoch + 1);
	cancel(net);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	net->at[victim].gone = true;
	net->epoch++;
	for (uint32_t m = 0; m < net->n; m++)
		if (!net->at[m].gone)
			left[n++] = m;
	const uint32_t out = draw(n);
	left[out] = left[n - 1];
	CHECK(hd_rig_staged(net->one.worker, net->one.task, &one, &net->one.arena, &net->plan, &diag) ==
		HD_OK, "%s: %s", what, diag.text);
	for (uint32_t r = 0; r < net->plan.nranks; r++)
		net->plan.worker[r] = (uint16_t)left[r];
	for (uint32_t m = 0; m < net->n; m++) {
		const struct hd_dist_view view = { .plan = &net->plan, .worker = (uint16_t)(runs(net, m) ? m :
			HD_DIST_NOBODY), .nplaces = 2 * MOST_ROOTS };
		if (net->at[m].gone)
			continue;
		hd_dist_epoch(net->at[m].worker, net->epoch);
		CHECK(hd_dist_prepare(net->at[m].worker, &view, &diag) == HD_OK, "%s: %s", what, diag.text);
		hd_dist_adopt(net->at[m].worker);
	}
}

static void redo(struct net *net, uint32_t victim, const struct hd_rig_kind *k, const char *what)
{
	lose(net, victim, k, what);
	watch(net);
	whole_step(net, what);
	for (uint32_t s = 0; s < net->plan.nstages; s++)
		for (uint32_t v = 0; v < VNS; v++)
			CHECK(forwards[s][v] <= 2, "%s: F%u.%u was run %u times", what, s, v, forwards[s][v]);
	whole_step(net, what);
	close_net(net);
}

static uint32_t slice(void) { return getenv("HD_DRAWS") ? 1 : SANITIZED ? 211 : 53; }

static void open_to_lose(struct net *net, const char *model, const char *more, const struct hd_rig_kind *k)
{
	open_grid(net, model, more, k);
	whole_step(net, k->name);
	memset(forwards, 0, sizeof forwards);
	watch(net);
	begin_all(net);
}

/* `how`: the others stand where they were needed, go on a little, or as far as they can. */
static void lose_at(const char *model, const char *more, const struct hd_rig_kind *k, uint32_t victim,
	uint32_t to, uint32_t how)
{
	static struct net net;
	char what[160];

	open_to_lose(&net, model, more, k);
	const struct hd_ilist *list = list_of(&net, victim);
	snprintf(what, sizeof what, "%.20s %s: worker %u at #%u %s, %u", model + 8, k->name, victim, to,
		to < list->len ? hd_ins_row(list->at[to].op)->text : "the end", how);
	go_to(&net, victim, to);
	for (uint32_t i = how == 1 ? 60 : 0; i; i--) {
		const uint32_t m = draw(net.n);
		if (m != victim)
			go(&net, m);
		carry(&net);
	}
	if (how == 2)
		go_all(&net, victim);
	redo(&net, victim, k, what);
}

/* How many instructions of its list the worker computes with. */
static uint32_t ninstructions(const char *model, const struct hd_rig_kind *k, uint32_t victim)
{
	static struct net net;
	uint32_t n = 0;

	open_grid(&net, model, NULL, k);
	const struct hd_ilist *list = list_of(&net, victim);
	while (n < list->len && list->at[n].op != HD_INS_NORM)
		n++;
	close_net(&net);
	return n;
}

static uint32_t lose_each(const char *model, const char *more, const struct hd_rig_kind *k, uint32_t every)
{
	uint32_t n = 0, next = draw(every);

	for (uint32_t victim = 0; victim < RANKS; victim++) {
		const uint32_t end = ninstructions(model, k, victim);
		for (uint32_t to = 0; to <= end; to++)
			for (uint32_t how = 0; how < 3; how++) {
				if (next--)
					continue;
				next = every - 1;
				lose_at(model, more, k, victim, to, how);
				n++;
			}
	}
	return n;
}

static void a_worker_of_a_bare_grid_may_be_lost_at_any_instruction(void **state)
{
	uint32_t n = 0;

	(void)state;
	seed = 1;
	for (size_t i = 0; i < NKINDS; i++)
		n += lose_each(net4, "optim: {kind: adamw, clip: 0.5}\n", &kinds[i], slice());
	for (size_t i = 0; i < NKINDS; i++)
		n += lose_each(tied, "optim: {kind: lamb}\n", &kinds[i], 2 * slice());
	print_message("%u losses\n", n);
	assert_true(n > (SANITIZED ? 5 : 25));
}

/* All have computed; of some buckets each has the sum, of one its owner alone. */
static void the_owner_of_a_sum_may_be_lost_before_the_norm(void **state)
{
	static struct net net;
	uint32_t n = 0, next = 0;

	(void)state;
	seed = 2;
	for (size_t i = 0; i < NKINDS; i++)
		for (uint32_t victim = 0; victim < RANKS; victim++)
			for (uint32_t b = 0; b < 2; b++) {
				struct roots roots;
				char what[100];
				if (next--)
					continue;
				next = slice() == 1 ? 0 : 6;
				snprintf(what, sizeof what, "%s: worker %u with the sum of bucket %u",
					kinds[i].name, victim, b);
				open_to_lose(&net, net4, "optim: {kind: adamw}\n", &kinds[i]);
				go_all(&net, MOST);
				computed(&net, what);
				find_roots(&net, &roots);
				for (uint32_t k = 0; k < b && k < net.nbuckets; k++)
					sum_bucket(&net, &roots, k);
				if (b < net.nbuckets)
					fold_bucket(&net, &roots, b, victim);
				redo(&net, victim, &kinds[i], what);
				n++;
			}
	print_message("%u owners\n", n);
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_of_a_bare_grid_may_be_lost_at_any_instruction),
		cmocka_unit_test(the_owner_of_a_sum_may_be_lost_before_the_norm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
