/* AlloX (Le et al., EuroSys 2020): jobs of one device each, assigned to the k-th last place of a device so
 * that the sum of completion times is least. A job keeps its device until it ends; only the one that comes
 * first on a device is remembered.
 *
 * As published the columns are k blocks of all free devices. exact: of a type with F free devices no more
 * than ceil(m / F) blocks, since equal devices fill evenly: the same sum, over some m columns a type. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/policy/int.h"

struct allox_placed { uint64_t id; uint32_t type; };

/* block from 1, the last to run on the device */
struct allox_column { uint32_t device, type, block; };

struct allox_matrix { const struct hd_sched_state *s; const uint32_t *row; const struct allox_column *col; };

enum hd_err hd_allox_init(struct hd_policy *policy, struct hd_diag *diag)
{
	(void)diag;
	*(struct hd_ledger *)policy->memory = (struct hd_ledger){ .size = sizeof(struct allox_placed) };
	return HD_OK;
}

void hd_allox_finish(struct hd_policy *policy) { hd_ledger_finish(policy->memory); }

/* The order of operations is part of the published answer. */
static double cost(const void *context, uint32_t row, uint32_t col)
{
	const struct allox_matrix *m = context;
	const struct hd_sched_job *job = &m->s->jobs[m->row[row]];
	double rate = job->rate[m->col[col].type];

	return m->col[col].block * (job->steps_left / (rate > 0 ? rate : 1e-10)) + job->age_s;
}

struct allox_turn { double age_s; uint32_t job; };

static int oldest_first(const void *a, const void *b)
{
	const struct allox_turn *x = a, *y = b;

	return x->age_s != y->age_s ? (x->age_s > y->age_s ? -1 : 1) : x->job < y->job ? -1 : x->job > y->job;
}

/* Columns of blocks of all devices (as published), or of each type as many blocks as can be used. */
static uint32_t columns(struct allox_column *col, const uint32_t *free, uint32_t ntypes, uint32_t m,
	bool theirs)
{
	uint32_t n = 0;

	for (uint32_t block = 1; block <= m; block++)
		for (uint32_t j = 0, device = 0; j < ntypes; device += free[j], j++)
			for (uint32_t d = 0; d < free[j] && (theirs || block <= (m + free[j] - 1) / free[j]);
				d++, n++)
				if (col)
					col[n] = (struct allox_column){ device + d, j, block };
	return n;
}

static uint32_t oldest(const struct hd_policy *policy, const struct hd_sched_state *s,
	struct allox_turn *turns,
	uint32_t devices)
{
	const struct hd_ledger *ledger = policy->memory;
	double alpha = policy->set.alpha > 0 ? policy->set.alpha : 1;
	uint32_t m = 0, cut;

	for (uint32_t i = 0; i < s->njobs; i++)
		if (!hd_sched_absent(s, i) && !hd_ledger_find(ledger, s->jobs[i].id))
			turns[m++] = (struct allox_turn){ s->jobs[i].age_s, i };
	qsort(turns, m, sizeof *turns, oldest_first);
	cut = (uint32_t)fmin(m, floor(alpha * m));
	cut = cut > devices ? cut : devices;
	return cut < m ? cut : m;
}

static enum hd_err assign(struct hd_policy *policy, const struct hd_sched_state *s, const uint32_t *free,
	uint32_t devices, struct hd_arena *arena)
{
	struct allox_turn *turns = hd_arena_take(arena, s->njobs + 1, sizeof *turns);
	uint32_t m = turns ? oldest(policy, s, turns, devices) : 0;
	bool theirs = policy->set.fidelity == HD_FIDELITY_GAVEL;
	uint32_t ncols = columns(NULL, free, s->ntypes, m, theirs);
	struct allox_column *col = hd_arena_take(arena, ncols + 1, sizeof *col);
	uint32_t *row = hd_arena_take(arena, m + 1, sizeof *row),
		*of = hd_arena_take(arena, m + 1, sizeof *of);
	uint32_t *first = hd_arena_take(arena, devices + 1, sizeof *first);
	enum hd_err err = turns && col && row && of && first ? HD_OK : HD_E_NOMEM;

	if (err || m == 0 || devices == 0)
		return err;
	columns(col, free, s->ntypes, m, theirs);
	for (uint32_t i = 0; i < m; i++)
		row[i] = turns[i].job;
	err = hd_assign(m, ncols, cost, &(struct allox_matrix){ s, row, col }, &policy->set, arena, of);
	for (uint32_t d = 0; d < devices; d++)
		first[d] = HD_SCHED_NONE;
	for (uint32_t i = 0; !err && i < m; i++) {
		uint32_t d = col[of[i]].device;
		if (first[d] == HD_SCHED_NONE || col[of[i]].block > col[of[first[d]]].block)
			first[d] = i;
	}
	for (uint32_t d = 0; !err && d < devices; d++) {
		struct allox_placed *at;
		if (first[d] == HD_SCHED_NONE || !(s->jobs[row[first[d]]].rate[col[of[first[d]]].type] > 0))
			continue;
		at = hd_ledger_add(policy->memory, s->jobs[row[first[d]]].id);
		if (at)
			at->type = col[of[first[d]]].type;
		err = at ? HD_OK : HD_E_NOMEM;
	}
	return err;
}

enum hd_err hd_allox_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_ledger *ledger = policy->memory;
	struct hd_collect c = { .out = out, .arena = arena };
	uint32_t free[HD_SCHED_TYPES], devices = 0;
	enum hd_err err;

	for (uint32_t i = 0; i < state->njobs; i++)
		if (!hd_sched_absent(state, i) && state->jobs[i].scale != 1)
			return hd_fail(diag, HD_E_INVAL,
				"the policy allox knows jobs of one device only; job %llu wants %u",
				(unsigned long long)state->jobs[i].id, state->jobs[i].scale);
	for (uint32_t j = 0; j < state->ntypes; j++)
		free[j] = state->types[j].n;
	uint32_t kept = 0;
	struct allox_placed *was = ledger->at;
	/* a type that shrank lets its latest jobs go */
	for (uint32_t k = 0; k < ledger->n; k++) {
		uint32_t i = hd_sched_find(state, was[k].id);
		if (i == HD_SCHED_NONE || hd_sched_absent(state, i) || free[was[k].type] == 0)
			continue;
		free[was[k].type]--;
		was[kept++] = was[k];
	}
	ledger->n = kept;
	for (uint32_t j = 0; j < state->ntypes; j++)
		devices += free[j];
	err = assign(policy, state, free, devices, arena);
	was = ledger->at;
	for (uint32_t k = 0; !err && k < ledger->n; k++) {
		struct hd_shape shape = hd_way_single(state, hd_sched_find(state, was[k].id), was[k].type);
		err = hd_collect(&c, &shape, 1);
	}
	if (err == HD_E_AGAIN)
		return hd_fail(diag, err, "an assignment of %u jobs: cancelled",
			state->njobs);
	if (err == HD_E_INVAL)
		return hd_fail(diag, err, "an age or a time that is left of one of %u jobs is no number",
			state->njobs);
	return err ? hd_fail(diag, err, "no memory for %u jobs", state->njobs) : HD_OK;
}
