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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_waits_what_its_nodes_take),
		cmocka_unit_test(stages_wait_what_their_nodes_take),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
