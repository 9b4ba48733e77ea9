#include "planner/partition.h"

#include <math.h>

#include "planner/partition/bound.h"
#include "planner/partition/choose.h"
#include "planner/partition/cost.h"
#include "planner/partition/recur.h"

/* The recurrence takes n^2 M^2 / 4 steps; with that many machines the bound, at some sixty times n^2 / 2,
 * is quicker. */
enum { BOUND_MACHINES = 48 };

static const struct { const char *name, *about; } variants[HD_NPART_VARIANTS] = {
#define X(id, name, about) [HD_PART_##id] = { name, about },
	HD_PART_VARIANTS(X)
#undef X
};

const char *hd_part_variant_name(enum hd_part_variant variant) { return variants[variant].name; }
const char *hd_part_variant_about(enum hd_part_variant variant) { return variants[variant].about; }

struct part_solver {
	const struct hd_cuts *cuts;
	const struct hd_part_how *how;
	struct hd_terms level[HD_PART_LEVELS];
	struct hd_arena *arena;
};

static enum hd_err check_levels(const struct hd_part_how *how, struct hd_diag *diag)
{
	uint64_t all = 1;

	if (how->nlevels < 1 || how->nlevels > HD_PART_LEVELS)
		return hd_fail(diag, HD_E_INVAL, "machines form from 1 to %d levels, not %u", HD_PART_LEVELS,
			how->nlevels);
	for (uint32_t l = 0; l < how->nlevels; l++) {
		if (how->level[l].machines < 1 || how->level[l].machines > HD_PART_MACHINES)
			return hd_fail(diag, HD_E_INVAL,
				"level %u has %u machines; 1 to %d can be planned for", l + 1,
				how->level[l].machines,
				HD_PART_MACHINES);
		if (!(how->level[l].bytes_per_s > 0) || !isfinite(how->level[l].bytes_per_s))
			return hd_fail(diag, HD_E_INVAL,
				"the bandwidth of level %u is %g bytes/s; it must be above 0", l + 1,
				how->level[l].bytes_per_s);
		all *= how->level[l].machines;
	}
	return all <= UINT32_MAX ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%llu machines are more than can be counted", (unsigned long long)all);
}

static enum hd_err check(const struct hd_cuts *cuts, const struct hd_part_how *how, struct hd_diag *diag)
{
	enum hd_err err = check_levels(how, diag);
	int64_t out = 0;

	if (err)
		return err;
	if (!(how->activations >= 0) || !(how->memory_bytes >= 0))
		return hd_fail(diag, HD_E_INVAL, "a compression ratio and a memory limit are not negative");
	if (how->activations > 0 && how->variant != HD_PART_CODE)
		return hd_fail(diag, HD_E_INVAL,
			"the variant %s always counts activations, as they are: a compression ratio is for "
			"%s",
			variants[how->variant].name,
			variants[HD_PART_CODE].name);
	if (how->fewer && (how->memory_bytes > 0 || how->straight))
		return hd_fail(diag, HD_E_INVAL,
			"leaving machines idle goes neither with a memory limit, whose copies are counted "
			"by machines, nor with "
			"straight");
	for (uint32_t l = 0; l < how->nlevels && how->straight; l++)
		if (cuts->n < how->level[l].machines)
			return hd_fail(diag, HD_E_INVAL,
				"straight needs a cut per machine: %u machines, %u cuts",
				how->level[l].machines, cuts->n);
	for (uint32_t j = 0; j < cuts->n; j++)
		if (cuts->out[j] > INT64_MAX / 2 - out)
			return hd_fail(diag, HD_E_INPUT,
				"activations over all cuts add up to more than 2^62 bytes");
		else
			out += cuts->out[j];
	return HD_OK;
}

/* The times of the components of a level, for the level above. */
static enum hd_err component_times(struct part_solver *s, uint32_t level)
{
	uint32_t n = s->cuts->n;
	double *time = hd_arena_take(s->arena, (size_t)n * n, sizeof *time);
	struct hd_recur r;

	if (!time || hd_recur_all(&r, &s->level[level], s->arena))
		return HD_E_NOMEM;
	for (uint32_t j = 0; j < n; j++)
		for (uint32_t i = 0; i <= j; i++)
			time[(size_t)i * n + j] = hd_recur_at(&r, i, j)[s->level[level].machines - 1];
	s->level[level + 1].time = time;
	return HD_OK;
}

static struct hd_terms terms_of(const struct part_solver *s, uint32_t level)
{
	const struct hd_part_level *l = &s->how->level[level];
	double u = level ? (double)s->how->level[level - 1].machines : 1;

	return (struct hd_terms){ .cuts = s->cuts, .how = s->how, .variant = s->how->variant,
		.b = l->bytes_per_s, .u = u, .machines = l->machines };
}

/* With `fewer`, as few machines as give the best time. Of one cut alone none are left idle, as in the
 * recurrence. */
static uint32_t machines_for(const double *row, uint32_t machines, bool fewer)
{
	uint32_t x = fewer ? 1 : machines;

	while (!(row[x - 1] <= row[machines - 1]))
		x++;
	return x;
}

static enum hd_err split_row(struct part_solver *s, uint32_t level, uint32_t first, uint32_t last,
	struct hd_part_split *split)
{
	const struct hd_terms *t = &s->level[level];
	struct hd_recur r;

	if (hd_recur_row(&r, t, first, last, s->arena))
		return HD_E_NOMEM;
	const double *row = hd_recur_at(&r, first, last);
	double best = row[t->machines - 1];
	if (!isfinite(best))
		return HD_E_NOTFOUND;
	return hd_part_choose(split, t, first, last, machines_for(row, t->machines, s->how->fewer &&
		last > first), best, s->arena);
}

static enum hd_err split_wide(struct part_solver *s, uint32_t level, struct hd_part_split *split)
{
	const struct hd_terms *t = &s->level[level];
	struct hd_bound b;

	if (hd_bound_init(&b, t, s->arena))
		return HD_E_NOMEM;
	double best = hd_bound_best(&b);
	if (!isfinite(best))
		return HD_E_NOTFOUND;
	return hd_part_choose_wide(split, t, s->how->fewer &&
		s->cuts->n > 1 ? b.least[s->cuts->n - 1] : t->machines, best, s->arena);
}

static enum hd_err split_down(struct part_solver *s, uint32_t level, struct hd_part_split *split)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < split->nstages && level > 0 && !err; i++) {
		struct hd_part_stage *stage = &split->stage[i];
		stage->split = hd_arena_take(s->arena, 1, sizeof *stage->split);
		err = stage->split ? split_row(s, level - 1, stage->first, stage->last, stage->split) :
			HD_E_NOMEM;
		if (!err)
			err = split_down(s, level - 1, stage->split);
	}
	return err;
}

static bool wide(const struct part_solver *s, uint32_t level)
{
	bool can = s->how->memory_bytes <= 0;

	return can && (s->how->search == HD_PART_BOUND || (s->how->search == HD_PART_AUTO &&
		s->level[level].machines > BOUND_MACHINES));
}

static enum hd_err solve(struct part_solver *s, struct hd_part_split *split)
{
	uint32_t top = s->how->nlevels - 1;
	enum hd_err err = HD_OK;

	for (uint32_t l = 0; l <= top; l++)
		s->level[l] = terms_of(s, l);
	for (uint32_t l = 0; l < top && !err; l++)
		err = component_times(s, l);
	if (!err)
		err = wide(s, top) ? split_wide(s, top, split) : split_row(s, top, 0, s->cuts->n - 1, split);
	return err ? err : split_down(s, top, split);
}

/* All machines with the same stage, level by level, as the program counts it. */
static double data_parallel(const struct hd_cuts *c, const struct hd_part_how *how)
{
	double time = (double)c->time_ns[c->n - 1] / HD_NS_PER_S, u = 1;

	for (uint32_t l = 0; l < how->nlevels; l++) {
		double m = (double)how->level[l].machines;
		time = (time + 4 * (m - 1) * (double)c->param[c->n - 1] / (how->level[l].bytes_per_s *
			m) / u) / m;
		u = m;
	}
	return time;
}

enum hd_err hd_part_solve(struct hd_partition *part, const struct hd_cuts *cuts,
	const struct hd_part_how *how,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct part_solver s = { .cuts = cuts, .how = how, .arena = arena };
	struct hd_part_split top;
	enum hd_err err = check(cuts, how, diag);

	if (err)
		return err;
	err = solve(&s, &top);
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "no memory to partition %u cuts over %u levels of machines",
			cuts->n, how->nlevels);
	if (err == HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_INVAL, "no partition of %u cuts keeps to %s", cuts->n,
			how->memory_bytes > 0 ? "the memory limit" :
			"the machines asked for; are there fewer cuts in a row than machines?");
	double again = err ? -INFINITY : hd_part_cost(&top, cuts, how, how->nlevels - 1, 0, cuts->n - 1);
	if (err || again != top.time_s)
		return hd_fail(diag, HD_E_BUG,
			"the partition found does not take the time found (%.17g s, not %.17g s): please "
			"report this profile", again,
			err ? INFINITY : top.time_s);
	*part = (struct hd_partition){ top, top.time_s, (double)cuts->time_ns[cuts->n - 1] / HD_NS_PER_S,
		data_parallel(cuts, how) };
	return HD_OK;
}

static void print_level(const struct hd_part_split *split, uint32_t at, uint32_t level, struct hd_text *text)
{
	if (at == level) {
		hd_text_addf(text, "%sL%u:", text->len ? "; " : "", level);
		for (uint32_t i = 0; i < split->nstages; i++)
			hd_text_addf(text, " %u-%u x%u", split->stage[i].first, split->stage[i].last + 1,
				split->stage[i].replicas);
		return;
	}
	for (uint32_t i = 0; i < split->nstages; i++)
		print_level(split->stage[i].split, at - 1, level, text);
}

void hd_part_print(const struct hd_partition *part, uint32_t nlevels, struct hd_text *text)
{
	for (uint32_t level = nlevels; level > 0; level--)
		print_level(&part->top, nlevels, level, text);
}
