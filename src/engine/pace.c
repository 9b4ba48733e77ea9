#include "engine/pace.h"

#include "cost/profile.h"
#include "engine/worker_int.h"

void hd_waits_make(struct hd_waits *pace, const struct hd_program *program, const int64_t *node_ns)
{
	for (int phase = HD_RUN_F; phase <= HD_RUN_W; phase++) {
		pace->ns[phase] = 0;
		for (uint32_t i = 0; i < program->norder[phase]; i++)
			pace->ns[phase] += node_ns[program->order[phase][i]];
	}
}

/* How much longer than full rows of one virtual node on a device of speed 1. */
static double times_of(const struct hd_rank *rank, const struct hd_program *program,
	const struct hd_bind *bind)
{
	const double speed = rank->worker->spec.speed ? rank->worker->spec.speed[rank->id] : 1;
	uint64_t rows = bind->nparts ? 0 : bind->rows;

	for (uint32_t i = 0; i < bind->nparts; i++)
		rows += bind->part[i].rows;
	return (double)rows / (double)program->part_rows / speed;
}

/* What is more than a profile can say waits as long: rows and speeds are factors of their own. */
static int64_t times_ns(int64_t ns, double times)
{
	const double all = (double)ns * times, most = (double)HD_PROFILE_SUM_MAX;

	return (int64_t)(all < most ? all : most);
}

static void wait_ns(const struct hd_rank *rank, int64_t ns, const struct hd_program *program,
	const struct hd_bind *bind)
{
	if (ns)
		hd_clock_wait_until(&rank->worker->clock, hd_clock_now_ns(&rank->worker->clock) +
			times_ns(ns, times_of(rank, program, bind)));
}

/* A gradient is there when its node has taken its time, as on a device that computes: what is sent early is
 * sent no earlier. */
static void wait_folding(const struct hd_rank *rank, enum hd_run_phase phase,
	const struct hd_program *program, const struct hd_bind *bind)
{
	const int64_t began_ns = hd_clock_now_ns(&rank->worker->clock);
	const double times = times_of(rank, program, bind);
	int64_t ns = 0;

	for (uint32_t i = 0; i < program->norder[phase]; i++) {
		const struct hd_node *node = &program->graph->node[program->order[phase][i]];
		ns += rank->worker->spec.pace_ns[program->order[phase][i]];
		for (uint32_t v = node->out; v < node->out + node->nout; v++) {
			if (program->grad_of_value[v] == HD_NONE)
				continue;
			hd_clock_wait_until(&rank->worker->clock, began_ns + times_ns(ns, times));
			bind->folded(bind->folded_user, program->grad_of_value[v]);
		}
	}
	hd_clock_wait_until(&rank->worker->clock, began_ns + times_ns(ns, times));
}

void hd_rank_pace(const struct hd_rank *rank, const struct hd_waits *pace, enum hd_run_phase phase,
	const struct hd_program *program, const struct hd_bind *bind)
{
	if (bind->folded && rank->worker->spec.pace_ns)
		wait_folding(rank, phase, program, bind);
	else
		wait_ns(rank, pace->ns[phase], program, bind);
}

void hd_rank_pace_nodes(const struct hd_rank *rank, const int64_t *node_ns, const struct hd_program *program,
	enum hd_run_phase phase, const struct hd_bind *bind)
{
	int64_t ns = 0;

	for (uint32_t i = bind->from; i < bind->to; i++)
		ns += node_ns[program->order[phase][i]];
	wait_ns(rank, ns, program, bind);
}
