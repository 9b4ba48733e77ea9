#include "engine/profile.h"

#include <math.h>
#include <string.h>

#include "sys/memory.h"
#include "engine/walk.h"

enum { MOST = 1 << (HD_REUSE_POINTS - 1),         /* places of the farthest point */
	PASSES = 3 };                             /* of each point in a round */

struct reuse_places {
	void *at[MOST];
	struct hd_walk walk;
	bool processor;
	int64_t ns[3];                    /* of the pass at hand, by enum hd_phase */
};

/* [kind][point][round] */
typedef int64_t reuse_samples[HD_REUSE_KINDS][HD_REUSE_POINTS][HD_PROFILE_ROUNDS];

static int64_t now_ns(const struct reuse_places *p)
{
	return p->processor ? hd_clock_thread_ns() : hd_clock_now_ns(&p->walk.worker->clock);
}

static enum hd_err nodes(struct reuse_places *k, enum hd_run_phase phase, struct hd_diag *diag)
{
	const struct hd_program *p = &k->walk.worker->stage->train;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < p->norder[phase] && !err; i++) {
		const int64_t began_ns = now_ns(k);
		err = hd_walk_run(&k->walk, phase, i, diag);
		k->ns[p->graph->node[p->order[phase][i]].phase] += now_ns(k) - began_ns;
	}
	return err;
}

/* All forward, then all backward, so that n places lie between two uses of one. */
static enum hd_err pass(struct reuse_places *k, unsigned n, bool apart, struct hd_diag *diag)
{
	static const enum hd_run_phase within[] = { HD_RUN_F, HD_RUN_B },
		alone[] = { HD_RUN_F, HD_RUN_I, HD_RUN_W };
	enum hd_err err = HD_OK;

	memset(k->ns, 0, sizeof k->ns);
	for (int phase = 0; phase < (apart ? 3 : 2); phase++)
		for (unsigned i = 0; i < n && !err; i++) {
			k->walk.bind.arena = k->at[i];
			err = nodes(k, apart ? alone[phase] : within[phase], diag);
		}
	return err;
}

/* Each point once before it counts, so that its own places are what was used last. */
static enum hd_err round_of(struct reuse_places *k, bool joined, reuse_samples ns, uint64_t round,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (unsigned point = 0; point < HD_REUSE_POINTS && !err; point++) {
		const int64_t n = hd_reuse_distance(point);
		err = pass(k, (unsigned)n, false, diag);
		err = err ? err : pass(k, (unsigned)n, false, diag);
		for (int i = HD_PHASE_F; i <= HD_PHASE_W; i++)
			ns[i][point][round] = k->ns[i] / n;
		if (!err && !joined)
			err = pass(k, (unsigned)n, true, diag);
		ns[HD_REUSE_I_APART][point][round] = k->ns[HD_PHASE_I] / n;
		ns[HD_REUSE_W_APART][point][round] = k->ns[HD_PHASE_W] / n;
	}
	return err;
}

/* The first pass meets pages and caches as they come. */
static enum hd_err is_beyond(struct reuse_places *k, int64_t budget_ns, bool *beyond, struct hd_diag *diag)
{
	int64_t passes = 0;
	enum hd_err err = pass(k, 1, false, diag);
	const int64_t began_ns = hd_clock_now_ns(&k->walk.worker->clock);

	err = err ? err : pass(k, 1, false, diag);
	for (unsigned point = 0; point < HD_REUSE_POINTS; point++)
		passes += PASSES * (int64_t)hd_reuse_distance(point);
	*beyond = (hd_clock_now_ns(&k->walk.worker->clock) - began_ns) * passes > budget_ns;
	return err;
}

/* Of sorted samples; of two the mean, since whichever was disturbed is not known. */
static double middle(int64_t *ns, uint64_t n)
{
	(void)hd_profile_cost_of(ns, n);
	return (double)(ns[(n - 1) / 2] + ns[n / 2]) / 2;
}

/* The last two rounds say of all points what they take, within three times the error of a median. */
static bool agree(reuse_samples ns, uint64_t n)
{
	for (unsigned point = 0; point < HD_REUSE_POINTS && n > 1; point++) {
		double last = 0, before = 0;
		for (int i = 0; i < HD_REUSE_KINDS; i++) {
			last += (double)ns[i][point][n - 1];
			before += (double)ns[i][point][n - 2];
		}
		if (fabs(last - before) > 3 * HD_PROFILE_ERROR * before)
			return false;
	}
	return n > 1;
}

static enum hd_err sample(struct reuse_places *k, const struct hd_profile_how *how, struct hd_reuse *reuse,
	struct hd_diag *diag)
{
	reuse_samples ns;
	const int64_t began_ns = hd_clock_now_ns(&k->walk.worker->clock);
	bool beyond = false;
	uint64_t n = 0;
	enum hd_err err = is_beyond(k, how->budget_ns, &beyond, diag);

	while (!err && !beyond && n < HD_PROFILE_ROUNDS && !agree(ns, n) &&
		hd_clock_now_ns(&k->walk.worker->clock) - began_ns < how->budget_ns)
		err = round_of(k, how->joined, ns, n++, diag);
	if (err || !n)
		return err;
	for (int i = 0; i < HD_REUSE_KINDS; i++)
		for (unsigned point = 0; point < HD_REUSE_POINTS; point++)
			reuse->by[i][point] = middle(ns[i][point], n);
	hd_reuse_settle(reuse);
	return HD_OK;
}

static bool has_room(const struct hd_worker *w, uint64_t bytes)
{
	struct hd_memory_info info;

	hd_memory_look(&info);
	return bytes && bytes <= info.free_bytes / 2 &&
		(!w->spec.memory_limit_bytes || bytes <= w->spec.memory_limit_bytes / 2);
}

enum hd_err hd_worker_profile_reuse(struct hd_worker *w, const struct hd_profile_how *how,
	struct hd_reuse *reuse, struct hd_diag *diag)
{
	struct reuse_places k = { .processor = how->processor };
	struct hd_device *device = w->rank[0].device;
	const uint64_t bytes = w->stage->train.memory.len_bytes;
	enum hd_err err = HD_OK;

	hd_reuse_none(reuse);
	if (!has_room(w, bytes * MOST))
		return HD_OK;
	for (unsigned i = 0; i < MOST && !err; i++)
		err = device->ops->take(device, bytes, &k.at[i], diag);
	err = err ? err : hd_walk_open(&k.walk, w, 1, diag);
	if (!err) {
		err = sample(&k, how, reuse, diag);
		hd_walk_close(&k.walk);
	}
	for (unsigned i = 0; i < MOST && k.at[i]; i++)
		device->ops->give(device, k.at[i], bytes);
	return err;
}
