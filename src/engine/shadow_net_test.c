#include "engine/shadow.h"

#include "engine/rest.h"
#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* Lists with shadows of stages whose ranks are of several workers, over a wire that delivers in any order and
 * may be fenced: digests and losses of one device, and each forward of a shadow is its owner's. */

static const char small[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 30}\n";
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 4, heads: 1, context: 2, vocab: 8, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 30}\n";

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 2, 1, 1, HD_KEEPS_ALL, 1 }, { "1f1b", 3, 1, 1, HD_KEEPS_ALL, 1 },
	{ "1f1b", 4, 1, 1, HD_KEEPS_INPUT, 1 }, { "1f1b", 2, 1, 2, HD_KEEPS_ALL, 1 },
	{ "zb-h1", 3, 1, 1, HD_KEEPS_ALL, 1 }, { "gpipe", 4, 1, 1, HD_KEEPS_AWAY, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds, STAGES = 4 };

static struct hd_hash left[2][STAGES][HD_RIG_VNS];

static void look(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	const struct hd_pipe_stage *stage = &rank->pipe->stage[ins->stage];
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; bind->rows && ins->stage + 1u < rank->pipe->nstages &&
		i < rank->pipe->stage[ins->stage + 1].act.n; i++) {
		const uint32_t out = stage->cut->act_out[i];
		hd_hasher_add(&hasher, hd_program_value(&stage->tensor.whole, bind, out),
			hd_value_bytes(&stage->cut->graph.value[out], bind->rows));
	}
	if (bind->rows && stage->out.loss != HD_NONE)
		hd_hasher_add(&hasher, hd_program_value(&stage->tensor.whole, bind, stage->out.loss),
			sizeof(double));
	left[!!(ins->flags & HD_INS_SHADOW)][ins->stage][ins->vn] = hd_hasher_end(&hasher);
}

static void open_net(struct net *net, const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kind, uint32_t each, enum hd_redundancy mode)
{
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, model, batch, vns, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK, "%s: %s", kind->name, diag.text);
	CHECK(hd_rig_shadowed(&net->plan, mode, &net->one.arena, &diag) == HD_OK, "%s: %s", kind->name,
		diag.text);
	add_workers(net, kind->p * kind->d, each, kind->name);
	for (uint32_t m = 0; m < net->n; m++)
		hd_worker_work(net->at[m].worker)->pipe->watch = look;
}

static void check_forwards(const struct net *net, enum hd_redundancy mode, const char *what)
{
	const struct hd_hash none = { 0 };

	for (uint32_t s = 0; s < net->plan.nstages; s++)
		for (uint32_t v = 0; v < net->plan.nvns; v++)
			CHECK(hd_hash_same(left[1][s][v], mode == HD_REDUNDANCY_LAZY ? none : left[0][s][v]),
				"%s: the shadow's forward of %u.%u leaves something else", what, s, v);
}

/* Gradients that came as copies gave what the owner's backward gives. */
static void check_gradients(const struct net *net, const char *what)
{
	for (uint32_t m = 0; m < net->n; m++)
		for (uint32_t o = 0; o < net->n; o++) {
			const struct hd_pipe *held = hd_worker_work(net->at[m].worker)->pipe,
				*owns = hd_worker_work(net->at[o].worker)->pipe;
			for (uint32_t s = 1; s < held->nstages; s++)
				for (uint32_t v = 0; v < held->nvns; v++) {
					const uint8_t *own = hd_cell_of(owns, s, v)->kept[HD_MAIL_GRAD],
						*shadow = hd_cell_of(held, held->nstages + s,
						v)->kept[HD_MAIL_GRAD];
					if (!own || !shadow || held->rows[v].rows != 2)
						continue;
					CHECK(memcmp(own, shadow, held->stage[s - 1].grad.bytes) == 0,
						"%s: the shadow's gradient of %u.%u is another", what, s, v);
				}
		}
}

/* A list has work for a loss, and waits for its neighbours, or it has not: so has the record of its step. */
static void check_times(const struct net *net, const char *what)
{
	for (uint32_t m = 0; m < net->n; m++) {
		bool redundant = false, waits = false;
		for (uint32_t r = 0; r < net->plan.nranks; r++)
			for (uint32_t i = 0; net->plan.worker[r] == m && i < net->plan.list[r].len; i++) {
				const struct hd_ins *ins = &net->plan.list[r].at[i];
				const bool comes = ins->op == HD_INS_RA || ins->op == HD_INS_RG;
				waits |= comes;
				redundant |= hd_ins_redundant(ins) && !comes;
			}
		CHECK(redundant == (net->at[m].redundant_ns > 0) && waits == (net->at[m].stalled_ns > 0),
			"%s: worker %u: %llu ns of redundant work, %llu of waiting", what, m,
			(unsigned long long)net->at[m].redundant_ns,
			(unsigned long long)net->at[m].stalled_ns);
	}
}

static uint32_t count_far(const struct net *net)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < net->n; m++) {
		const struct hd_pipe *pipe = hd_worker_work(net->at[m].worker)->pipe;
		for (uint32_t i = 0; i < pipe->nshadows; i++)
			n += pipe->shadow[i].far;
	}
	return n;
}

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more, size_t n,
	uint32_t fences)
{
	struct net *net = malloc(sizeof *net);
	uint32_t stale = 0;

	assert_non_null(net);
	for (size_t k = 0; k < n; k++)
		for (uint32_t each = 1; each <= 2 && each < kinds[k].p * kinds[k].d; each++)
			for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++) {
				char what[120];
				snprintf(what, sizeof what, "%s p %u d %u %s, %u ranks a worker",
					kinds[k].name, kinds[k].p, kinds[k].d, hd_redundancy_names[mode],
					each);
				open_net(net, model, batch, vns, more, &kinds[k], each,
					(enum hd_redundancy)mode);
				assert_true(count_far(net) >= (each == 1 ? kinds[k].p * kinds[k].d : 0));
				for (int i = 0; i < STEPS; i++) {
					memset(left, 0, sizeof left);
					net->fence_after = fences ? 1 + draw(fences) : 0;
					step(net, what);
					check_forwards(net, (enum hd_redundancy)mode, what);
					check_gradients(net, what);
					check_times(net, what);
				}
				stale += net->stale;
				close_net(net);
			}
	assert_true(!fences || stale > n);
	free(net);
}

static void shadows_of_other_workers_stages_have_their_owners_bits(void **state)
{
	(void)state;
	seed = 1;
	compare(small, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", NKINDS, 0);
	compare(tied, 16, 8, "optim: {kind: lamb}\n", 4, 0);
}

static void ragged_and_empty_virtual_nodes(void **state)
{
	(void)state;
	seed = 2;
	compare(small, 14, 4, "optim: {kind: momentum, lr: 0.05}\n", NKINDS, 0);
	compare(hd_rig_bn(), 16, 8, NULL, 2, 0);
}

static void a_fenced_step_is_begun_again(void **state)
{
	(void)state;
	seed = 3;
	compare(small, 16, 8, NULL, NKINDS, 20);
}

/* Of a model whose parameters are one stage's each: a bucket in which no stage of a worker's lists has a
 * gradient is there for a loss alone. */
static void what_no_stage_here_reads_is_a_shadows(void **state)
{
	static const char wide[] =
		"model: {use: builtin:mlp, args: {input: [1, 16, 16], hidden: [700, 600, 300], classes: 3}}\n"
		"data: {kind: synthetic, count: 30}\n";
	struct net *net = malloc(sizeof *net);
	uint32_t shadows = 0;

	(void)state;
	assert_non_null(net);
	assert_false(hd_shadow_has(NULL, 0));
	open_net(net, wide, 16, 8, NULL, &kinds[2], 1, HD_REDUNDANCY_LAZY);
	for (uint32_t m = 0; m < net->n; m++)
		for (uint32_t b = 0; b < net->nbuckets; b++) {
			bool reads = false;
			for (uint32_t r = 0; r < net->plan.nranks; r++) {
				const struct hd_ilist *list = &net->plan.list[r];
				for (uint32_t i = 0; net->plan.worker[r] == m && i < list->len; i++)
					reads |= list->at[i].op == HD_INS_F &&
						hd_dist_run_has(net->at[m].worker, b, list->at[i].stage);
			}
			shadows += !reads;
			CHECK(hd_shadow_has(hd_worker_work(net->at[m].worker)->pipe, b) == !reads,
				"worker %u, bucket %u", m, b);
		}
	assert_true(shadows > 0 && shadows < net->n * net->nbuckets);
	close_net(net);
	free(net);
}

/* State by stages: what a rank shadows, its worker has to hold. */
static void a_shadow_without_its_state_is_refused(void **state)
{
	struct net *net = malloc(sizeof *net);
	uint8_t held[64] = { 0 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(net);
	open_net(net, small, 16, 8, NULL, &kinds[1], 1, HD_REDUNDANCY_EAGER);
	const struct hd_dist_view view = { .plan = &net->plan, .worker = 1, .held = held };
	assert_in_range(net->nbuckets, 1, 64);
	assert_int_equal(hd_dist_prepare(net->at[1].worker, &view, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "rank 1 shadows stage 2"), "%s", diag.text);
	memset(held, 1, sizeof held);
	assert_int_equal(hd_dist_prepare(net->at[1].worker, &view, &diag), HD_OK);
	hd_dist_forget(net->at[1].worker);
	close_net(net);
	free(net);
}

/* Where only some hold slots, a second copy beside the owner would be updated by nothing. */
static void a_shadow_beside_its_owner_is_refused_where_state_is_sharded(void **state)
{
	const char *const sync[] = { "comm: {sync: sharded}\n", NULL };
	struct hd_diag diag = { "" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct hd_rig rig;
		hd_rig_open(&rig, small, 16, 8, sync[i], 2);
		CHECK(hd_rig_staged(rig.worker, rig.task, &kinds[1], &rig.arena, &rig.plan, &diag) == HD_OK,
			"%s", diag.text);
		CHECK(hd_rig_shadowed(&rig.plan, HD_REDUNDANCY_LAZY, &rig.arena, &diag) == HD_OK, "%s",
			diag.text);
		rig.plan.worker[2] = 1;
		const struct hd_dist_view view = { .plan = &rig.plan, .worker = 0 };
		assert_int_equal(hd_dist_prepare(rig.worker, &view, &diag), i ? HD_OK : HD_E_REFUSED);
		CHECK(i || strstr(diag.text, "are of one worker"), "%s", diag.text);
		diag.text[0] = '\0';
		if (i) {                          /* what is left of the step is of one worker's devices */
			const struct hd_ilist *lists;
			const uint32_t at[3] = { 0 };
			const bool lost[3] = { true };
			hd_dist_adopt(rig.worker);
			assert_int_equal(hd_rest_adopt(rig.worker, at, lost, &lists, &diag), HD_E_REFUSED);
			CHECK(strstr(diag.text, "ranks of other workers"), "%s", diag.text);
		}
		hd_rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shadows_of_other_workers_stages_have_their_owners_bits),
		cmocka_unit_test(ragged_and_empty_virtual_nodes),
		cmocka_unit_test(a_fenced_step_is_begun_again),
		cmocka_unit_test(what_no_stage_here_reads_is_a_shadows),
		cmocka_unit_test(a_shadow_without_its_state_is_refused),
		cmocka_unit_test(a_shadow_beside_its_owner_is_refused_where_state_is_sharded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
