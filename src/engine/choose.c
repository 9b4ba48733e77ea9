#include "engine/choose.h"

#include "base/alloc.h"
#include "device/tiles.h"
#include "engine/worker_int.h"
#include "engine/fore.h"

/* Nominal, of the size that bench/step.sh prints (docs/results/step.md); what threads of a device share
 * beside tiles (caches, waiting) costs each further thread its share. */
static const double second_per_flop = 1e-11, second_per_byte = 5e-11, second_per_meeting = 4e-6,
	uneven = 0.03;

/* The most tiles that one of the threads computes, of all. */
static double longest(uint32_t ntiles, uint32_t nthreads)
{
	return ntiles ? (double)((ntiles + nthreads - 1) / nthreads) / ntiles : 1.0 / nthreads;
}

static double vn_seconds(const struct hd_program *program, uint32_t nthreads)
{
	double sum = 0;

	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t i = 0; i < program->norder[phase]; i++) {
			const uint32_t inode = program->order[phase][i];
			const struct hd_node *node = &program->graph->node[inode];
			struct hd_cost cost = hd_ops[node->op].cost(program->graph, node, program->part_rows);
			double compute = cost.flops * second_per_flop, move = cost.bytes * second_per_byte;
			sum += (compute > move ? compute : move) * (1 + uneven * (nthreads - 1.0)) *
				longest(hd_program_tiles(program, inode, program->max_parts), nthreads);
		}
	return sum;
}

/* Every device does this for its own virtual nodes: where parameters are many and rows few, threads of one
 * device are faster than devices. */
static double wave_seconds(const struct hd_worker *w, uint32_t nthreads)
{
	double meetings = nthreads > 1 ? (double)w->stage->train.norder[HD_RUN_F] +
		(double)w->stage->train.norder[HD_RUN_B] : 0;

	return 3.0 * (double)w->stage->flat_bytes * second_per_byte / nthreads +
		meetings * second_per_meeting;
}

/* Update: parameters, gradients and slots once; joins: three passes for each root but one. */
static double end_seconds(const struct hd_worker *w, uint32_t nroots, uint32_t ncores)
{
	double flat = (double)w->stage->flat_bytes,
		passes = 3.0 + 2.0 * hd_optim_nslots(&w->task->optim) +
		3.0 * (nroots - 1.0);

	return flat * passes * second_per_byte / ncores;
}

static enum hd_err sketch_rank(struct hd_worker *w, struct hd_rank *rank, uint32_t first, uint32_t n,
	uint32_t wave, uint32_t *nroots,
	struct hd_diag *diag)
{
	uint32_t *vn = hd_arena_take(&w->arena, n + 1, sizeof *vn),
		*wave_of = hd_arena_take(&w->arena, n + 1, sizeof *wave_of);
	struct hd_fold_script script = { 0 };

	if (!vn || !wave_of)
		return hd_fail(diag, HD_E_NOMEM, "no memory to sketch %u virtual nodes", n);
	for (uint32_t i = 0; i < n; i++) {
		vn[i] = first + i;
		wave_of[i] = i / wave;
	}
	enum hd_err err = hd_fold_script_make_waves(&script, w->task->job->nvns, vn, n,
		(uint32_t)hd_job_int(w->task->job, HD_JOB_SLICES), wave_of,
		&w->arena, diag);
	rank->need = (struct hd_rank_need){ .nbuffers = (1 + hd_fore_steps(w->task->job)) *
		script.nbuffers, .ntemps = script.ntemps,
		.narenas = hd_lockstep_needed(&w->stage->lockstep) ? n : 0 };
	*nroots += script.nroots;
	return err;
}

/* The even map of plan.h, without lists. */
static enum hd_err sketch(struct hd_choice *choice, const struct hd_task *task, uint32_t ncores,
	struct hd_diag *diag)
{
	struct hd_worker *w = hd_alloc(sizeof *w);
	uint32_t nvns = task->job->nvns, d = choice->ndevices, first = 0, nroots = 0;
	enum hd_err err;

	if (!w)
		return hd_fail(diag, HD_E_NOMEM, "no memory to sketch a worker");
	*w = (struct hd_worker){ .task = task,
		.spec = { .kind = "cpu", .ndevices = d, .nthreads = choice->nthreads,
		.wave = choice->wave } };
	err = hd_worker_begin(w, diag);
	if (err)
		goto out;
	hd_reading_spare(w, (uint64_t)d * choice->nthreads < ncores);
	err = hd_worker_programs(w, diag);
	choice->wave = w->stage->train.max_parts;
	w->rank = hd_arena_take(&w->arena, d, sizeof *w->rank);
	if (!err && !w->rank)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to sketch %u devices", d);
	for (uint32_t r = 0; r < d && !err; r++) {
		uint32_t n = nvns / d + (r < nvns % d);
		w->rank[r].pool = &w->stage->pool[r];
		err = sketch_rank(w, &w->rank[r], first, n, choice->wave, &nroots, diag);
		first += n;
	}
	if (!err) {
		hd_worker_memory(w, &choice->memory);
		uint32_t most = (nvns + d - 1) / d, nwaves = (most + choice->wave - 1) / choice->wave;
		choice->step_s = vn_seconds(&w->stage->train, choice->nthreads) * most + wave_seconds(w,
			choice->nthreads) * nwaves
			+ end_seconds(w, nroots, ncores);
	}
out:
	hd_worker_end(w);
	hd_free(w);
	return err;
}

static bool fits(const struct hd_choice *choice, const struct hd_choose_spec *spec)
{
	uint64_t total = choice->memory.total;

	/* the fullest device, and as in fits.c all of it */
	bool limited = spec->device_limit_bytes && (choice->memory.device > spec->device_limit_bytes
		|| choice->memory.held / choice->ndevices > spec->device_limit_bytes);

	return !limited && (!spec->machine_bytes || total <= spec->machine_bytes);
}

static bool better(const struct hd_choice *a, const struct hd_choice *b)
{
	if (a->fits != b->fits)
		return a->fits;
	return a->fits ? a->step_s < b->step_s : a->memory.total < b->memory.total;
}

static enum hd_err try_division(struct hd_choices *made, const struct hd_task *task,
	const struct hd_choose_spec *spec, uint32_t ndevices,
	uint32_t nthreads, struct hd_diag *diag)
{
	struct hd_choice *choice = &made->at[made->n];

	*choice = (struct hd_choice){ .ndevices = ndevices, .nthreads = nthreads };
	enum hd_err err = sketch(choice, task, spec->ncores, diag);
	choice->fits = !err && fits(choice, spec);
	while (!err && !choice->fits && choice->wave > 1) {
		choice->wave /= 2;
		err = sketch(choice, task, spec->ncores, diag);
		choice->fits = !err && fits(choice, spec);
	}
	if (better(choice, &made->at[made->best]))
		made->best = made->n;
	made->n++;
	return err;
}

enum hd_err hd_choose(struct hd_choices *choices, const struct hd_task *task,
	const struct hd_choose_spec *spec, struct hd_diag *diag)
{
	struct hd_choices made = { .n = 0 };
	uint32_t most = spec->ncores < task->job->nvns ? spec->ncores : task->job->nvns, threads = 0;
	enum hd_err err = HD_OK;

	if (spec->ndevices)
		err = try_division(&made, task, spec, spec->ndevices, spec->nthreads, diag);
	for (uint32_t d = most; !spec->ndevices && d >= 1 && !err && made.n < HD_MAX_CHOICES; d--) {
		if (spec->ncores / d == threads)
			continue;         /* fewer devices of as many threads leave cores idle */
		threads = spec->ncores / d;
		err = try_division(&made, task, spec, d, threads, diag);
	}
	if (!err)
		*choices = made;
	return err;
}
