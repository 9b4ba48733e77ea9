#include "engine/pace.h"

#include "engine/worker_int.h"

void hd_waits_make(struct hd_waits *pace, const struct hd_program *program, const int64_t *node_ns)
{
	for (int phase = HD_RUN_F; phase <= HD_RUN_W; phase++) {
		pace->ns[phase] = 0;
		for (uint32_t i = 0; i < program->norder[phase]; i++)
			pace->ns[phase] += node_ns[program->order[phase][i]];
	}
}

static void wait_ns(const struct hd_rank *rank, int64_t ns, const struct hd_program *program,
	const struct hd_bind *bind)
{
	const double speed = rank->worker->spec.speed ? rank->worker->spec.speed[rank->id] : 1;
	uint64_t rows = bind->nparts ? 0 : bind->rows;

	if (!ns)
		return;
	for (uint32_t i = 0; i < bind->nparts; i++)
		rows += bind->part[i].rows;
	hd_clock_wait_until(&rank->worker->clock, hd_clock_now_ns(&rank->worker->clock) +
		(int64_t)((double)ns * (double)rows / (double)program->part_rows / speed));
}

void hd_rank_pace(const struct hd_rank *rank, const struct hd_waits *pace, enum hd_run_phase phase,
	const struct hd_program *program, const struct hd_bind *bind)
{
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
