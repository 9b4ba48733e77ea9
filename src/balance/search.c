#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "balance/arrange.h"
#include "balance/solve_int.h"

/* ---- what may be asked */

static enum hd_err check(const struct hd_solve_ask *ask, struct hd_diag *diag)
{
	if (ask->nvns == 0 || ask->nvns > HD_MAX_VNS || ask->ntypes == 0 || ask->ntypes > HD_SOLVE_TYPES ||
		ask->ndevices == 0 ||
	    ask->ndevices > HD_SOLVE_DEVICES || ask->nworkers == 0 || ask->nworkers > ask->ndevices)
		return hd_fail(diag, HD_E_INVAL,
			"%u virtual nodes (1 to %d) on %u devices (1 to %d) of %u types (1 to %d) and %u "
			"workers",
			ask->nvns, HD_MAX_VNS, ask->ndevices, HD_SOLVE_DEVICES, ask->ntypes, HD_SOLVE_TYPES,
			ask->nworkers);
	if (ask->gradient_bytes < 0 || ask->gradient_bytes > HD_SOLVE_GRADIENT_MAX || ask->latency_ps < 0 ||
		ask->latency_ps > HD_VN_PS_MAX / 64)
		return hd_fail(diag, HD_E_INVAL,
			"gradients of %" PRId64 " bytes, a latency of %" PRId64 " ps", ask->gradient_bytes,
			ask->latency_ps);
	for (uint32_t t = 0; t < ask->ntypes; t++)
		if (ask->type[t].nvns != ask->nvns)
			return hd_fail(diag, HD_E_INVAL,
				"the costs of %.60s are for %u virtual nodes, not %u", ask->type[t].type,
				ask->type[t].nvns,
				ask->nvns);
	for (uint32_t d = 0; d < ask->ndevices; d++)
		if (ask->device[d].type >= ask->ntypes || ask->device[d].worker >= ask->nworkers)
			return hd_fail(diag, HD_E_INVAL, "device %u is of type %u of %u, of worker %u of %u",
				d, ask->device[d].type, ask->ntypes,
				ask->device[d].worker, ask->nworkers);
	for (uint32_t i = 0; i < ask->nerrors; i++)
		if (ask->nerrors > HD_SOLVE_ERRORS || ask->error_ppm[i] > 1000000)
			return hd_fail(diag, HD_E_INVAL,
				"%u errors of predictions (up to %d), of which one is %u ppm", ask->nerrors,
				HD_SOLVE_ERRORS,
				ask->error_ppm[i]);
	return HD_OK;
}

/* ---- lines */

bool hd_solve_better(const struct hd_solve_search *s, const struct hd_solve_line *line)
{
	const struct hd_solve_line *best = &s->best;

	if (!s->found || line->step_ps != best->step_ps)
		return !s->found || line->step_ps < best->step_ps;
	if (line->n != best->n)
		return line->n < best->n;
	return line->most_roots != best->most_roots ? line->most_roots < best->most_roots :
		line->roots < best->roots;
}

enum hd_err hd_solve_keep(struct hd_solve_search *s, const struct hd_solve_line *line)
{
	if (!s->best.count) {
		s->best.class_of = hd_arena_take(s->arena, s->ask->nworkers, sizeof *s->best.class_of);
		s->best.count = hd_arena_take(s->arena, s->ask->nworkers, sizeof *s->best.count);
	}
	if (!s->best.class_of || !s->best.count)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for a map on %u workers", s->ask->nworkers);
	memcpy(s->best.class_of, line->class_of, line->n * sizeof *line->class_of);
	memcpy(s->best.count, line->count, line->n * sizeof *line->count);
	s->best.n = line->n;
	s->best.step_ps = line->step_ps;
	s->best.most_roots = line->most_roots;
	s->best.roots = line->roots;
	s->found = true;
	return HD_OK;
}

/* T of a line, by the formula of solver.h; sets everything but the line itself. */
static void price_line(const struct hd_solve_search *s, struct hd_solve_line *line)
{
	int64_t cost = 0, exchange = 0, back = INT64_MAX;
	uint32_t first = 0;

	line->most_roots = line->roots = 0;
	for (uint32_t i = 0; i < line->n; i++) {
		const struct hd_solve_class *c = &s->class[line->class_of[i]];
		uint32_t v = line->count[i], roots = hd_range_roots(s->ask->nvns, first, first + v);
		int64_t mine = hd_solve_exchange(s->ask, c->bytes_per_s, roots, line->n);
		cost = c->cost.ps[v] > cost ? c->cost.ps[v] : cost;
		back = c->cost.back_ps[v] < back ? c->cost.back_ps[v] : back;
		exchange = mine > exchange ? mine : exchange;
		line->most_roots = roots > line->most_roots ? roots : line->most_roots;
		line->roots += roots;
		first += v;
	}
	line->step_ps = cost + (exchange > back ? exchange - back : 0);
}

/* ---- one set */

static bool enough_by(const struct hd_solve_search *s, int64_t tau)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < s->nclasses; c++)
		if (s->used[c]) {
			uint64_t most = hd_vn_cost_most(&s->class[c].cost, tau);
			if (!most)
				return false;             /* every member has one at least */
			sum += s->used[c] * most;
		}
	return sum >= s->ask->nvns;
}

/* The least max cost of a set of which it is known that `high` is enough. */
static int64_t least_cost(const struct hd_solve_search *s, int64_t high)
{
	int64_t low = 0;

	while (low < high) {
		int64_t mid = low + (high - low) / 2;
		if (enough_by(s, mid))
			high = mid;
		else
			low = mid + 1;
	}
	return high;
}

static int64_t least_exposed(const struct hd_solve_search *s, uint32_t n)
{
	int64_t exchange = 0, back = INT64_MAX;

	for (uint32_t c = 0; c < s->nclasses; c++) {
		int64_t mine = hd_solve_exchange(s->ask, s->class[c].bytes_per_s, 1, n), most = 0;
		if (!s->used[c])
			continue;
		for (uint32_t v = 1; v <= s->ask->nvns; v++)
			most = s->class[c].cost.back_ps[v] > most ? s->class[c].cost.back_ps[v] : most;
		back = most < back ? most : back;
		exchange = mine > exchange ? mine : exchange;
	}
	return exchange > back ? exchange - back : 0;
}

/* Rule 3, where the search is not exact. Members of a class stand together, in the order of the classes. */
static void level_counts(const struct hd_solve_search *s, int64_t tau, uint32_t n, uint32_t *class_of,
	uint32_t *count)
{
	uint64_t surplus = 0;
	uint32_t i = 0;

	for (uint32_t c = 0; c < s->nclasses; c++)
		for (uint32_t k = 0; k < s->used[c]; k++, i++) {
			class_of[i] = c;
			surplus += count[i] = hd_vn_cost_most(&s->class[c].cost, tau);
		}
	for (surplus -= s->ask->nvns; surplus; surplus--) {
		uint32_t worst = UINT32_MAX;
		for (i = 0; i < n; i++)
			if (count[i] > 1 && (worst == UINT32_MAX ||
				s->class[class_of[i]].cost.ps[count[i]] >=
				s->class[class_of[worst]].cost.ps[count[worst]]))
				worst = i;
		/* there are at least as many virtual nodes as members */
		assert(worst != UINT32_MAX);
		count[worst]--;
	}
}

static enum hd_err level_set(struct hd_solve_search *s, int64_t tau, uint32_t n)
{
	struct hd_solve_line line = { .n = n, .class_of = hd_arena_take(s->scratch, n, sizeof *line.class_of),
		.count = hd_arena_take(s->scratch, n, sizeof *line.count) };
	uint32_t *order = hd_arena_take(s->scratch, n, sizeof *order),
		*class_of = hd_arena_take(s->scratch, n, sizeof *class_of),
		 *count = hd_arena_take(s->scratch, n, sizeof *count);
	struct hd_arranged arranged;

	if (!line.class_of || !line.count || !order || !class_of || !count)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for a map on %u workers", n);
	level_counts(s, tau, n, class_of, count);
	enum hd_err err = hd_arrange(s->ask->nvns, 0, count, n, order, &arranged, s->scratch, s->diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++) {
		line.class_of[i] = class_of[order[i]];
		line.count[i] = count[order[i]];
	}
	price_line(s, &line);
	return hd_solve_better(s, &line) ? hd_solve_keep(s, &line) : HD_OK;
}

static bool has_must(const struct hd_solve_search *s)
{
	for (uint32_t c = 0; s->must && c < s->nclasses; c++)
		for (uint32_t d = 0; s->used[c] && d < s->class[c].ndevices; d++)
			if (s->class[c].type[d] == *s->must)
				return true;
	return !s->must;
}

static enum hd_err try_set(struct hd_solve_search *s)
{
	int64_t limit = s->found ? s->best.step_ps : HD_VN_PS_MAX;
	uint64_t n = 0;

	for (uint32_t c = 0; c < s->nclasses; c++)
		n += s->used[c];
	if (n == 0 || n > s->ask->nvns || !has_must(s) || !enough_by(s, limit))
		return HD_OK;
	int64_t least = least_cost(s, limit);
	if (s->found && least + least_exposed(s, (uint32_t)n) > limit)
		return HD_OK;
	hd_arena_reset(s->scratch);
	return s->exact ? hd_solve_exactly(s, least) : level_set(s, least, (uint32_t)n);
}

/* ---- all sets */

static enum hd_err all_sets(struct hd_solve_search *s)
{
	enum hd_err err = HD_OK;
	uint32_t c = 0;

	for (uint32_t i = 0; i < s->nclasses; i++)
		s->used[i] = s->class[i].nworkers;        /* the largest first: it bounds the others */
	while (!err && c < s->nclasses) {
		err = try_set(s);
		for (c = 0; c < s->nclasses && s->used[c] == 0; c++)
			s->used[c] = s->class[c].nworkers;
		if (c < s->nclasses)
			s->used[c]--;
	}
	return err;
}

static enum hd_err greedy_sets(struct hd_solve_search *s)
{
	enum hd_err err = HD_OK;

	for (bool more = true; more && !err;) {
		uint32_t best = UINT32_MAX;
		for (uint32_t c = 0; c < s->nclasses; c++)
			if (s->used[c] < s->class[c].nworkers &&
				(best == UINT32_MAX || s->class[c].cost.ps[1] < s->class[best].cost.ps[1]))
				best = c;
		more = best != UINT32_MAX;
		if (more) {
			s->used[best]++;
			err = try_set(s);
		}
	}
	return err;
}

static bool few_sets(const struct hd_solve_search *s, uint64_t *nsets)
{
	*nsets = 1;
	for (uint32_t c = 0; c < s->nclasses; c++) {
		*nsets *= s->class[c].nworkers + 1;
		if (*nsets > HD_SOLVE_SETS)
			return false;
	}
	return true;
}

static enum hd_err prepare_exact(struct hd_solve_search *s, uint64_t nsets)
{
	uint64_t nvns = s->ask->nvns;

	s->exact = nsets <= HD_SOLVE_WORK && nvns * nvns <= HD_SOLVE_WORK &&
		nsets * nsets * nvns * nvns * s->nclasses <= HD_SOLVE_WORK;
	if (!s->exact)
		return HD_OK;
	s->range_roots = hd_arena_take(s->arena, (size_t)((nvns + 1) * (nvns + 1)), 1);
	if (!s->range_roots)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for the roots of %u virtual nodes",
			s->ask->nvns);
	for (uint32_t first = 0; first < nvns; first++)
		for (uint32_t end = first + 1; end <= nvns; end++) {
			uint32_t roots = hd_range_roots(s->ask->nvns, first, end);
			s->range_roots[(size_t)first * (nvns + 1) + end] = (uint8_t)roots;
			s->range_most = roots > s->range_most ? roots : s->range_most;
		}
	return HD_OK;
}

/* ---- from a line to a plan */

/* Counts of the devices of one worker with v virtual nodes, and their ranges from `first`. */
static enum hd_err fill_worker(const struct hd_solve_search *s, struct hd_solve_plan *plan,
	const struct hd_solve_class *c, uint32_t worker, uint32_t v,
	uint32_t first)
{
	uint32_t *count = hd_arena_take(s->scratch, c->ndevices, sizeof *count),
		*order = hd_arena_take(s->scratch, c->ndevices, sizeof *order),
		 *device = hd_arena_take(s->scratch, c->ndevices, sizeof *device), n = 0;
	struct hd_arranged arranged;

	if (!count || !order || !device)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for a worker of %u devices", c->ndevices);
	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		if (s->ask->device[d].worker == worker && (!s->allowed || s->allowed[d]) &&
			s->ask->type[s->ask->device[d].type].ps[1] != HD_VN_NEVER)
			device[n++] = d;
	hd_solve_divide(s->ask, c->type, c->ndevices, v, count);
	enum hd_err err = hd_arrange(s->ask->nvns, first, count, c->ndevices, order, &arranged, s->scratch,
		s->diag);
	for (uint32_t i = 0; i < c->ndevices && !err; i++) {
		uint32_t d = device[order[i]];
		plan->count[d] = count[order[i]];
		plan->first[d] = first;
		plan->ndevices += plan->count[d] > 0;
		plan->compute_ps = s->ask->type[s->ask->device[d].type].ps[plan->count[d]] > plan->compute_ps
			? s->ask->type[s->ask->device[d].type].ps[plan->count[d]] : plan->compute_ps;
		first += plan->count[d];
	}
	return err;
}

/* Larger counts to the workers of a class that come first in it; of equal counts the lower range. */
static uint32_t worker_for(const struct hd_solve_search *s, uint32_t i)
{
	const struct hd_solve_line *line = &s->best;
	uint32_t rank = 0;

	for (uint32_t j = 0; j < line->n; j++)
		rank += line->class_of[j] == line->class_of[i] &&
			(line->count[j] > line->count[i] || (line->count[j] == line->count[i] && j < i));
	return s->class[line->class_of[i]].worker[rank];
}

static enum hd_err fill_plan(const struct hd_solve_search *s, struct hd_solve_plan *plan)
{
	const struct hd_solve_line *line = &s->best;
	uint32_t first = 0;
	enum hd_err err = HD_OK;

	*plan = (struct hd_solve_plan){ .count = hd_arena_take(s->arena, s->ask->ndevices,
		sizeof *plan->count),
		.first = hd_arena_take(s->arena, s->ask->ndevices, sizeof *plan->first),
		.step_ps = line->step_ps, .nmembers = line->n,
		.most_roots = line->most_roots, .roots = line->roots, .exact = s->exact };
	if (!plan->count || !plan->first)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for a map on %u devices", s->ask->ndevices);
	hd_arena_reset(s->scratch);
	for (uint32_t i = 0; i < line->n && !err; i++) {
		const struct hd_solve_class *c = &s->class[line->class_of[i]];
		int64_t exchange = hd_solve_exchange(s->ask, c->bytes_per_s,
			hd_range_roots(s->ask->nvns, first, first + line->count[i]), line->n);
		plan->exchange_ps = exchange > plan->exchange_ps ? exchange : plan->exchange_ps;
		err = fill_worker(s, plan, c, worker_for(s, i), line->count[i], first);
		first += line->count[i];
	}
	return err;
}

/* ---- the plan in use */

static uint32_t class_of_worker(const struct hd_solve_search *s, uint32_t worker)
{
	for (uint32_t c = 0; c < s->nclasses; c++)
		for (uint32_t k = 0; k < s->class[c].nworkers; k++)
			if (s->class[c].worker[k] == worker)
				return c;
	return s->nclasses;
}

/* Virtual nodes of each worker in the plan in use; false: it is none of what is asked for. */
static bool count_now(const struct hd_solve_search *s, uint32_t *count)
{
	const struct hd_solve_ask *ask = s->ask;
	uint64_t sum = 0;

	for (uint32_t d = 0; d < ask->ndevices; d++) {
		count[ask->device[d].worker] += ask->now[d] <= ask->nvns ? ask->now[d] : ask->nvns;
		sum += ask->now[d];
		if (ask->now[d] && class_of_worker(s, ask->device[d].worker) == s->nclasses)
			return false;
	}
	return sum == ask->nvns;
}

/* The line of the counts in use, where each worker divides its share as the solver would; n == 0: it is
 * none. */
static enum hd_err line_of_now(struct hd_solve_search *s, struct hd_solve_line *line)
{
	uint32_t n = s->ask->nworkers, *count = hd_arena_take(s->scratch, n, sizeof *count),
		*order = hd_arena_take(s->scratch, n, sizeof *order);
	struct hd_arranged arranged;

	line->class_of = hd_arena_take(s->scratch, n, sizeof *line->class_of);
	line->count = hd_arena_take(s->scratch, n, sizeof *line->count);
	if (!count || !order || !line->class_of || !line->count)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for a map on %u workers", n);
	if (!count_now(s, count))
		return HD_OK;
	enum hd_err err = hd_arrange(s->ask->nvns, 0, count, n, order, &arranged, s->scratch, s->diag);
	for (uint32_t i = 0; i < n && !err && count[order[i]]; i++) {
		line->class_of[line->n] = class_of_worker(s, order[i]);
		line->count[line->n++] = count[order[i]];
	}
	return err;
}

/* Tie: what is in use stays in use. */
static enum hd_err prefer_now(struct hd_solve_search *s)
{
	struct hd_solve_line line = { 0 };

	hd_arena_reset(s->scratch);
	enum hd_err err = line_of_now(s, &line);
	if (err || !line.n)
		return err;
	price_line(s, &line);
	bool equal = line.step_ps == s->best.step_ps && line.n == s->best.n &&
		line.most_roots == s->best.most_roots && line.roots == s->best.roots;
	return equal ? hd_solve_keep(s, &line) : HD_OK;
}

static enum hd_err nothing_fits(const struct hd_solve_search *s)
{
	const struct hd_vn_cost *least = NULL;

	for (uint32_t d = 0; d < s->ask->ndevices; d++) {
		const struct hd_vn_cost *type = &s->ask->type[s->ask->device[d].type];
		if ((!s->allowed || s->allowed[d]) && (!least ||
			type->needs_bytes - type->limit_bytes < least->needs_bytes - least->limit_bytes))
			least = type;
	}
	if (!least)
		return hd_fail(s->diag, HD_E_INVAL, "no device may be used");
	return hd_fail(s->diag, HD_E_REFUSED,
		"not even one virtual node fits: %.60s has %.1f MiB and needs %.1f MiB; more slices of "
		"a virtual node (batch.slices) need less", least->type, (double)least->limit_bytes * 0x1p-20,
		(double)least->needs_bytes * 0x1p-20);
}

enum hd_err hd_solve_least(struct hd_solve_plan *plan, const struct hd_solve_ask *ask, const uint8_t *allowed,
	const uint32_t *must,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_arena scratch;
	struct hd_solve_search s = { .ask = ask, .allowed = allowed, .must = must, .arena = arena,
		.scratch = &scratch, .diag = diag };
	struct hd_solve_plan made;
	uint64_t nsets = 0;
	enum hd_err err = check(ask, diag);

	if (err)
		return err;
	hd_arena_init(&scratch, 0);
	err = hd_solve_classes(&s);
	bool few = !err && few_sets(&s, &nsets);
	if (few)
		err = prepare_exact(&s, nsets);
	if (!err)
		err = few ? all_sets(&s) : greedy_sets(&s);
	if (!err && !s.found)
		err = nothing_fits(&s);
	if (!err && ask->now)
		err = prefer_now(&s);
	if (!err)
		err = fill_plan(&s, &made);
	hd_arena_finish(&scratch);
	if (!err)
		*plan = made;
	return err;
}
