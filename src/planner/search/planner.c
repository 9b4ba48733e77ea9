#include "planner/search/search.h"

#include <math.h>
#include <string.h>

#include "pipeline/generate.h"
#include "planner/search/bound.h"
#include "planner/search/refuse.h"

/* Shapes of the second round. */
enum { SHAPES = 4096 };

/* The plans in order; the first three whole, in the caller's arena. */
static enum hd_err hand_out(struct hd_auto_search *s, struct hd_auto *out, struct hd_arena *arena)
{
	enum hd_err err = HD_OK;
	bool late;

	s->out.nplans = s->n;
	s->out.plan = hd_arena_take(arena, s->n, sizeof *s->out.plan);
	if (!s->out.plan)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u plans", s->n);
	for (uint32_t i = 0; i < s->n && !err; i++) {
		struct hd_auto_plan *to = &s->out.plan[i];
		const struct hd_auto_plan *from = &s->list[i].plan;
		if (i >= 3) {
			*to = (struct hd_auto_plan){ .shape = from->shape, .order = from->order,
				.nstages = from->nstages, .nranks = from->nranks,
				.estimate_ps = from->estimate_ps, .makespan_ps = from->makespan_ps,
				.peak = from->peak, .low_ps = from->low_ps,
				.high_ps = from->high_ps };
			continue;
		}
		hd_arena_reset(s->space.scratch);
		err = hd_auto_build(to, &s->space, s->list[i].cand, arena, s->space.diag);
		err = err ? err : hd_auto_judge(to, &s->space, HD_AUTO_TO_PROVE, &late, s->space.scratch,
			s->space.diag);
	}
	if (!err)
		*out = s->out;
	return err;
}

/* ---- the whole */

static enum hd_err check_ask(const struct hd_auto_ask *ask, const struct hd_profile *profile,
	const struct hd_cluster *cluster, struct hd_diag *diag)
{
	const struct hd_schedule_kind *kind;
	uint32_t shards = ask->tensor_shards ? ask->tensor_shards : 1;

	if (shards > 1 && (profile->tensor_shards <= 1 || profile->tensor_shards % shards))
		return hd_fail(diag, HD_E_INVAL,
			"%u tensor shards: the profile is of a job with %u, so its nodes are not divided "
			"that way; profile the job "
			"with tensor_shards = %u, or leave the shards out", shards,
			profile->tensor_shards ? profile->tensor_shards : 1, shards);

	if (ask->vns == 0 || ask->vns > HD_MAX_VNS)
		return hd_fail(diag, HD_E_INVAL, "%u virtual nodes a step: 1 to %u can be planned for",
			ask->vns, (unsigned)HD_MAX_VNS);
	if (cluster->ndevices > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_INVAL, "the cluster has %u devices; plans are made for at most %d",
			cluster->ndevices, HD_MAX_RANKS);
	if (hd_auto_of_each(ask->update) && ask->d > 1)
		return hd_fail(diag, HD_E_INVAL,
			"d = %u: every virtual node of update %s updates the weights by itself, so there is "
			"one pipeline", ask->d,
			hd_update_names[ask->update]);
	if (ask->t && (shards % ask->t || cluster->level[0].components % ask->t))
		return hd_fail(diag, HD_E_INVAL,
			"t = %u: tensor groups divide the job's %u shards and the %u devices of a %s", ask->t,
			shards,
			cluster->level[0].components, cluster->level[0].name);
	if ((uint64_t)(ask->t ? ask->t : 1) * (ask->p ? ask->p : 1) * (ask->d ? ask->d : 1) >
		cluster->ndevices)
		return hd_fail(diag, HD_E_INVAL,
			"t = %u, p = %u, d = %u are more than the %u devices of the cluster",
			ask->t ? ask->t : 1,
			ask->p ? ask->p : 1,
			ask->d ? ask->d : 1, cluster->ndevices);
	if (ask->p > HD_AUTO_RANKS || ask->v > HD_AUTO_CHUNKS)
		return hd_fail(diag, HD_E_INVAL,
			"the planner makes pipelines of at most %d ranks and %d chunks a rank", HD_AUTO_RANKS,
			HD_AUTO_CHUNKS);
	return ask->schedule ? hd_schedule_kind_find(&kind, ask->schedule, diag) : HD_OK;
}

static enum hd_err prepare(struct hd_auto_search *s, struct hd_diag *diag)
{
	const struct hd_cluster *c = s->space.cluster;
	enum hd_err err = hd_steady_table_make(&s->space.whole, s->space.sums, HD_AUTO_CUTS, s->space.work,
		diag);

	s->space.memo = hd_arena_take(s->space.work, HD_AUTO_MEMO, sizeof *s->space.memo);
	s->speeds = hd_arena_take(s->space.work, (size_t)c->ndevices + 1, sizeof *s->speeds);
	if (!err && (!s->space.memo || !s->speeds))
		err = hd_fail(diag, HD_E_NOMEM, "no memory to plan for %u devices", c->ndevices);
	s->alike = true;
	for (uint32_t x = 0; x < c->ndevices && !err; x++) {
		s->speeds[x + 1] = s->speeds[x] + hd_cluster_kind_of(c, x)->speed;
		s->alike &= hd_cluster_kind_of(c, x)->speed == hd_cluster_kind_of(c, 0)->speed;
	}
	return err ? err : hd_auto_shard(&s->space, 1);
}

/* Once through all shapes, by estimates; the best by them are simulated. */
static enum hd_err look(struct hd_auto_search *s)
{
	enum hd_err err;

	s->best_ps = s->again ? INFINITY : s->best_ps;      /* the first time the references count */
	err = hd_auto_enumerate(s);
	return err ? err : hd_auto_judge_kept(s);
}

static enum hd_err first_round(struct hd_auto_search *s)
{
	enum hd_err err = look(s);

	if (!err && s->unfit && s->space.ask->recompute == HD_AUTO_IF_NEEDED) {
		s->again = true;
		err = look(s);
	}
	return err ? err : hd_auto_polish_best(s);
}

/* Every shape that no bound excludes. */
static enum hd_err second_round(struct hd_auto_search *s)
{
	s->second = true;
	s->again = false;
	s->most = SHAPES;
	s->kept = hd_arena_take(s->space.work, SHAPES, sizeof *s->kept);
	if (!s->kept)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %d shapes", SHAPES);
	enum hd_err err = hd_auto_enumerate(s);
	err = err ? err : hd_auto_sweep(s);
	if (!err && s->unfit && s->space.ask->recompute == HD_AUTO_IF_NEEDED) {
		s->again = true;
		err = hd_auto_enumerate(s);
		err = err ? err : hd_auto_sweep(s);
	}
	return err;
}

static enum hd_err run(struct hd_auto_search *s, struct hd_auto *out, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = prepare(s, diag);

	s->most = HD_AUTO_KEEP;
	s->kept = hd_arena_take(s->space.work, HD_AUTO_KEEP, sizeof *s->kept);
	if (!err && !s->kept)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %d plans", HD_AUTO_KEEP);
	err = err ? err : hd_auto_refer(s);
	err = err ? err : hd_auto_judge_references(s);
	err = err ? err : first_round(s);
	err = err ? err : second_round(s);
	if (!err && !s->n)
		err = hd_auto_refuse(&s->space, &s->least, s->out.nlate);
	return err ? err : hand_out(s, out, arena);
}

static enum hd_err look_whether(struct hd_auto_search *s, int64_t target_ps, bool *may, struct hd_diag *diag)
{
	enum hd_err err = prepare(s, diag);

	s->second = true;
	s->most = SHAPES;
	s->kept = hd_arena_take(s->space.work, SHAPES, sizeof *s->kept);
	if (!err && !s->kept)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %d shapes", SHAPES);
	s->best_made_ps = target_ps;
	err = err ? err : hd_auto_enumerate(s);
	/* what does not fit as it is may where stages compute again */
	*may = s->unfit || s->out.nleft;
	for (uint32_t i = 0; i < s->nkept && !err && !*may; i++) {
		hd_arena_reset(s->space.scratch);
		err = hd_auto_may_take(&s->space, &s->kept[i], target_ps, s->space.scratch, may);
	}
	return err;
}

enum hd_err hd_auto_may(bool *may, const struct hd_cut_sums *sums, const struct hd_cluster *cluster,
	const struct hd_auto_ask *ask, int64_t target_ps, struct hd_diag *diag)
{
	struct hd_arena work, scratch;
	enum hd_err err = check_ask(ask, sums->profile, cluster, diag);

	*may = true;
	if (err || ask->p < 2 || ask->update != HD_UPDATE_FLUSH)
		return err;
	hd_arena_init(&work, 0);
	hd_arena_init(&scratch, 0);
	struct hd_auto_search *s = hd_arena_take(&work, 1, sizeof *s);
	if (!s)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to look at %u devices", cluster->ndevices);
	else {
		*s = (struct hd_auto_search){ .space = { .cluster = cluster, .ask = ask, .sums = sums,
			.work = &work, .scratch = &scratch, .diag = diag }, .best_ps = INFINITY,
			.least = { .bytes = INT64_MAX } };
		err = look_whether(s, target_ps, may, diag);
	}
	hd_arena_finish(&scratch);
	hd_arena_finish(&work);
	return err;
}

enum hd_err hd_plan_auto(struct hd_auto *out, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, const struct hd_auto_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_arena work, scratch;
	struct hd_auto_search *s;
	enum hd_err err = check_ask(ask, sums->profile, cluster, diag);

	if (err)
		return err;
	hd_arena_init(&work, 0);
	hd_arena_init(&scratch, 0);
	s = hd_arena_take(&work, 1, sizeof *s);
	if (!s)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to plan for %u devices", cluster->ndevices);
	else {
		*s = (struct hd_auto_search){ .space = { .cluster = cluster, .ask = ask, .sums = sums,
			.work = &work, .scratch = &scratch, .diag = diag },
			.best_ps = INFINITY, .best_made_ps = INT64_MAX, .least = { .bytes = INT64_MAX } };
		err = run(s, out, arena, diag);
	}
	hd_arena_finish(&scratch);
	hd_arena_finish(&work);
	return err;
}
