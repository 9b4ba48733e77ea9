#include "engine/pace.h"

#include "engine/testing_stages.h"

/* Ranks that wait: all that the nodes of the graph take, whatever plan shares them out. A wait is never
 * shorter than it was asked for; how much longer is not judged. */

enum { VNS = 4, NODES = 4096, NODE_NS = 20000 };

static int64_t node_ns[NODES];

static int64_t step_ns(uint32_t ndevices, const double *speed, const struct hd_rig_kind *kind)
{
	const struct hd_worker_spec spec = { .kind = "null", .ndevices = ndevices, .nthreads = 1,
		.pace_ns = node_ns, .speed = speed };
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	hd_rig_open_on(&rig, hd_rig_mlp, 8, VNS, NULL, &spec);
	assert_true(rig.task->train.nnodes < NODES);
	if (kind) {
		CHECK(hd_rig_staged(rig.worker, rig.task, kind, &rig.arena, &rig.plan, &diag) == HD_OK &&
			hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	}
	const int64_t began_ns = hd_clock_now_ns(&rig.worker->clock);
	hd_rig_step(&rig);
	const int64_t took_ns = hd_clock_now_ns(&rig.worker->clock) - began_ns;
	const int64_t least_ns = (int64_t)VNS * NODE_NS * rig.task->train.nnodes;
	hd_rig_close(&rig);
	return took_ns - least_ns;
}

static void a_step_waits_what_its_nodes_take(void **state)
{
	static const double half[] = { 0.5 };

	(void)state;
	for (int i = 0; i < NODES; i++)
		node_ns[i] = NODE_NS;
	assert_true(step_ns(1, NULL, NULL) >= 0);
	/* twice as long */
	assert_true(step_ns(1, half, NULL) >= (int64_t)VNS * NODE_NS * 20);
}

/* Two stages one after the other: the last virtual node has been through both, and all through the longer. */
static void stages_wait_what_their_nodes_take(void **state)
{
	static const struct hd_rig_kind kind = { "gpipe", 2, 1, 1, false, 1 };

	(void)state;
	for (int i = 0; i < NODES; i++)
		node_ns[i] = 2 * NODE_NS;
	assert_true(step_ns(2, NULL, &kind) >= 0);
}

/* Time that waits alone move. */
static int64_t hand_ns;
static int64_t hand_now(struct hd_clock *clock) { (void)clock; return hand_ns; }
static void hand_wait(struct hd_clock *clock, int64_t at_ns) { (void)clock; hand_ns = at_ns; }
static const struct hd_clock_ops by_hand = { "by hand", hand_now, hand_now, hand_wait };

struct seen { int64_t early_ns, late_ns; const struct hd_program *program; uint32_t n, at[NODES]; };

/* What the nodes up to that of a gradient take, all alike. */
static int64_t due_ns(const struct hd_program *p, uint32_t grad)
{
	for (uint32_t i = 0; i < p->norder[HD_RUN_B]; i++) {
		const struct hd_node *node = &p->graph->node[p->order[HD_RUN_B][i]];
		for (uint32_t v = node->out; v < node->out + node->nout; v++)
			if (p->grad_of_value[v] == grad)
				return (i + 1) * (int64_t)NODE_NS;
	}
	return INT64_MAX;
}

static void see(void *user, uint32_t grad)
{
	struct seen *s = user;
	const int64_t by_ns = hand_ns - due_ns(s->program, grad);

	s->early_ns = by_ns < s->early_ns ? by_ns : s->early_ns;
	s->late_ns = by_ns > s->late_ns ? by_ns : s->late_ns;
	s->at[s->n++] = grad;
}

/* Each is final when the nodes up to its own have taken their time, none before or later, each once. */
static void gradients_are_final_one_after_another(void **state)
{
	const struct hd_worker_spec spec = { .kind = "null", .ndevices = 1, .nthreads = 1,
		.pace_ns = node_ns };
	struct hd_rig rig;

	(void)state;
	for (int i = 0; i < NODES; i++)
		node_ns[i] = NODE_NS;
	hd_rig_open_on(&rig, hd_rig_mlp, 8, VNS, NULL, &spec);
	const struct hd_program *p = &rig.worker->stage->train;
	struct seen s = { .early_ns = INT64_MAX, .late_ns = INT64_MIN, .program = p };
	const struct hd_bind bind = { .rows = p->part_rows, .folded = see, .folded_user = &s };
	rig.worker->clock.ops = &by_hand;
	hand_ns = 0;
	hd_rank_pace(&rig.worker->rank[0], &rig.worker->stage->pace, HD_RUN_B, p, &bind);
	hd_clock_real(&rig.worker->clock);
	CHECK(s.early_ns == 0 && s.late_ns == 0, "%lld to %lld ns late", (long long)s.early_ns,
		(long long)s.late_ns);
	assert_int_equal(hand_ns, p->norder[HD_RUN_B] * (int64_t)NODE_NS);
	assert_true(s.n > 1 && s.n == rig.task->layout.ngrads);
	for (uint32_t i = 0; i < s.n; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_true(s.at[i] != s.at[k]);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_waits_what_its_nodes_take),
		cmocka_unit_test(stages_wait_what_their_nodes_take),
		cmocka_unit_test(gradients_are_final_one_after_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
