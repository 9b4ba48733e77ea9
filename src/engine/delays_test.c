#include "engine/delays.h"

#include <math.h>

#include "engine/testing.h"

/* What a job with delayed updates computes is its version map (delays.h), replayed here: all versions that
 * there ever were are kept, gradients come from a worker without delays that is given what each step reads,
 * and the plain formulas (device/optim.h) make the next version. */

/* ---- the map ---- */

static const char mlp4[] =
	"model: {use: builtin:mlp, args: {hidden: [9, 8, 7]}}\ndata: {kind: synthetic, count: 61}\n";

/* Of the four layers of mlp4; `cut`: of its stages, the layers that they begin with. */
static const struct { const char *update; uint32_t cut[4], ncuts, vns; uint8_t delay[4]; } maps[] = {
	{ "flush", { 0 }, 0, 1, { 0, 0, 0, 0 } },
	{ "2bw",   { 0 }, 0, 1, { 1, 1, 1, 1 } },
	{ "stash", { 0, 1, 2, 3 }, 4,  1, { 3, 2, 1, 0 } },
	{ "stash", { 0, 1, 2, 3 }, 4,  2, { 2, 1, 1, 0 } },
	{ "stash", { 0, 1, 2, 3 }, 4, 13, { 1, 1, 1, 0 } },
	{ "stash", { 0, 2 },       2,  1, { 1, 1, 0, 0 } },
	{ "stash", { 0, 3 },       2, 26, { 1, 1, 1, 0 } },
	{ "vsync", { 0, 1, 2, 3 }, 4,  1, { 3, 3, 3, 3 } },
	{ "vsync", { 0, 1, 2, 3 }, 4,  2, { 2, 2, 2, 2 } },
	{ "vsync", { 0, 1, 3 },    3, 13, { 1, 1, 1, 1 } },
};

/* The forward node that reads the matrix of a layer; of the first layer 0. */
static uint32_t begins(const struct hd_graph *g, uint32_t layer)
{
	uint32_t p = 0, i = 0;

	for (uint32_t n = 0; g->value[g->param[p].value].rank != 2 || n++ < layer; p++)
		;
	while (i < g->nforward) {
		for (uint32_t k = 0; k < g->node[i].nin; k++)
			if (g->node[i].in[k] == g->param[p].value)
				return layer ? i : 0;
		i++;
	}
	return HD_NONE;
}

static void open_map(struct hd_rig *rig, size_t m)
{
	char more[128] = "", cuts[64] = "";
	struct hd_rig plain;

	hd_rig_open(&plain, mlp4, 26, maps[m].vns, NULL, 1);
	for (uint32_t s = 0; s < maps[m].ncuts; s++)
		snprintf(cuts + strlen(cuts), sizeof cuts - strlen(cuts), "%s%u", s ? "," : ", cuts: \"",
			begins(&plain.task->train, maps[m].cut[s]));
	hd_rig_close(&plain);
	snprintf(more, sizeof more, "optim: {update: %s%s%s}\n", maps[m].update, cuts, *cuts ? "\"" : "");
	hd_rig_open(rig, mlp4, 26, maps[m].vns, more, 1);
}

static void the_delay_of_a_parameter_follows_from_the_job(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
		struct hd_rig rig;
		open_map(&rig, m);
		const struct hd_graph *g = &rig.task->train;
		const struct hd_delays *d = &rig.task->delays;
		uint8_t most = 0, least = UINT8_MAX;
		/* a matrix, then its bias */
		for (uint32_t p = 0, layer = 0; p < g->nparams; p++) {
			layer += p && g->value[g->param[p].value].rank == 2;
			const uint8_t want = maps[m].delay[layer];
			CHECK(d->of_param[p] == want, "row %zu: parameter %u is %u late", m, p,
				d->of_param[p]);
			most = want > most ? want : most;
			least = want < least ? want : least;
		}
		assert_int_equal(d->most, most);
		assert_int_equal(d->differ, most != least);
		assert_int_equal(d->early, most && !least);
		hd_rig_close(&rig);
	}
}

/* Stages that a job leaves open are part of its identity, as those that it names are. */
static void where_stages_are_cut_is_part_of_the_identity(void **state)
{
	static const char *const more[] = { "optim: {update: flush}\n", "optim: {update: 2bw}\n",
		"optim: {update: stash, cuts: auto:2}\n", "optim: {update: stash, cuts: auto:3}\n",
		"optim: {update: vsync, cuts: auto:2}\n", "optim: {update: stash, cuts: \"0,2\"}\n" };
	enum { N = sizeof more / sizeof *more };
	struct hd_hash hash[N + 1];
	struct hd_rig rig;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		hd_rig_open(&rig, mlp4, 26, 2, more[i], 1);
		hash[i] = rig.task->job_hash;
		if (rig.task->delays.nstages && i < N - 1)
			assert_false(hd_hash_same(hash[i], rig.job->hash));
		hd_rig_close(&rig);
		for (size_t k = 0; k < i; k++)
			assert_false(hd_hash_same(hash[i], hash[k]));
	}
	/* what is not delayed is the job that it always was */
	hd_rig_open(&rig, mlp4, 26, 2, NULL, 1);
	assert_true(hd_hash_same(hash[0], rig.task->job_hash));
	hd_rig_close(&rig);
}

static void cuts_that_are_none_of_the_model_are_refused(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_begin(&rig, mlp4, 26, 2, "optim: {update: stash, cuts: \"0,2,999\"}\n");
	assert_int_equal(hd_task_create(&rig.task, rig.job, &rig.fs, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "test.yaml:5:") && strstr(diag.text, "optim.cuts: "), "%s", diag.text);
	hd_arena_finish(&rig.arena);
	hd_rig_begin(&rig, mlp4, 26, 2, "optim: {update: vsync, cuts: auto:16}\n");
	assert_int_equal(hd_task_create(&rig.task, rig.job, &rig.fs, &diag), HD_E_INVAL);
	hd_arena_finish(&rig.arena);
}

/* ---- the replay ---- */

enum { NSTEPS = 7 };

static const struct { const char *model, *optim, *update; uint32_t batch, vns; } replayed[] = {
	{ hd_rig_mlp, "kind: sgd, lr: 0.05, clip: 0", "flush", 26, 13 },
	{ hd_rig_mlp, "kind: sgd, lr: 0.05, clip: 0", "2bw", 26, 13 },
	{ hd_rig_gpt, "kind: adamw, clip: 0.5", "2bw", 26, 7 },
	{ hd_rig_gpt, "kind: momentum, lr: 0.02, clip: 0.1", "stash, cuts: auto:4", 26, 1 },
	{ hd_rig_gpt, "kind: lion, clip: 1", "stash, cuts: auto:3", 26, 2 },
	{ hd_rig_mlp, "kind: adagrad, lr: 0.01", "vsync, cuts: auto:4", 26, 1 },
	{ NULL, "kind: adam, clip: 1", "stash, cuts: auto:2", 26, 13 },
};

struct replay {
	struct hd_rig plain;
	float *version[NSTEPS + 1], *slot[2];     /* version[t]: after t steps */
	uint64_t held;
};

static void open_replay(struct replay *r, size_t c)
{
	const char *model = replayed[c].model ? replayed[c].model : hd_rig_bn();
	char more[200];

	snprintf(more, sizeof more, "optim: {%s}\n", replayed[c].optim);
	hd_rig_open(&r->plain, model, replayed[c].batch, replayed[c].vns, more, 1);
	r->held = r->plain.task->layout.held_elems;
	for (int t = 0; t <= NSTEPS; t++)
		r->version[t] = hd_arena_take(&r->plain.arena, r->held, sizeof(float));
	for (int k = 0; k < 2; k++)
		r->slot[k] = hd_arena_take(&r->plain.arena, r->held, sizeof(float));
	memcpy(r->version[0], hd_rig_params(&r->plain), r->held * sizeof(float));
}

/* Step t, with parameter p of version max(0, t - delay[p]). */
static void replay_step(struct replay *r, uint64_t t, const uint8_t *delay, struct hd_step_record *record)
{
	const struct hd_layout *layout = &r->plain.task->layout;
	struct hd_worker *w = r->plain.worker;
	float *read = hd_rig_params(&r->plain);

	for (uint32_t p = 0; p < layout->nparams; p++)
		memcpy(read + layout->at[p], r->version[t < delay[p] ? 0 : t - delay[p]] + layout->at[p],
			layout->len[p] * sizeof(float));
	*record = hd_rig_step(&r->plain);
	memcpy(r->version[t + 1], r->version[t], r->held * sizeof(float));
	for (uint32_t p = 0; p < layout->nparams; p++)
		if (!r->plain.task->train.param[p].frozen)
			hd_optim_update_plain(&w->step->scalars, r->version[t + 1] + layout->at[p],
				hd_worker_sum(w) + layout->at[p], r->slot[0] + layout->at[p],
				r->slot[1] + layout->at[p], layout->len[p]);
}

static bool newest_is(const struct hd_rig *rig, const float *version)
{
	const struct hd_layout *layout = &rig->task->layout;
	bool same = true;

	for (uint32_t p = 0; p < layout->nparams; p++)
		same &= !memcmp(hd_rig_params(rig) + layout->at[p], version + layout->at[p],
			layout->len[p] * sizeof(float));
	return same;
}

static void what_a_job_computes_is_the_replay_of_its_version_map(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof replayed / sizeof *replayed; c++) {
		char more[200];
		struct replay r;
		struct hd_rig rig;
		open_replay(&r, c);
		snprintf(more, sizeof more, "optim: {%s, update: %s}\n", replayed[c].optim,
			replayed[c].update);
		hd_rig_open(&rig, replayed[c].model ? replayed[c].model : hd_rig_bn(), replayed[c].batch,
			replayed[c].vns, more, 2);
		for (uint64_t t = 0; t < NSTEPS; t++) {
			struct hd_step_record want, got = hd_rig_step(&rig);
			replay_step(&r, t, rig.task->delays.of_param, &want);
			CHECK(newest_is(&rig, r.version[t + 1]) && got.loss_sum == want.loss_sum &&
				got.gnorm == want.gnorm, "%s: step %llu differs from its replay", more,
				(unsigned long long)t);
		}
		hd_rig_close(&rig);
		hd_rig_close(&r.plain);
	}
}

/* ---- steps without an update ---- */

/* Version t + 1 equals version t, and step t + 2 reads it: the map counts steps. */
static void a_skipped_step_makes_a_version_that_equals_the_one_before(void **state)
{
	struct hd_rig rig;
	float *newest[2], *reads;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {update: 2bw, on_nonfinite: skip}\n", 2);
	const uint64_t bytes = rig.task->layout.elems * sizeof(float);
	for (int i = 0; i < 2; i++)
		newest[i] = hd_arena_take(&rig.arena, 1, bytes);
	reads = hd_param_store_at(rig.worker->store, HD_VEC_EARLIER, 0, rig.task->layout.elems);
	hd_rig_step(&rig);
	hd_rig_step(&rig);
	memcpy(newest[0], hd_rig_params(&rig), bytes);
	assert_memory_not_equal(reads, newest[0], bytes);
	reads[rig.task->layout.at[1]] = INFINITY;         /* a bias: all of it becomes infinite */
	struct hd_step_record r = hd_rig_step(&rig);
	assert_true(r.skipped);
	assert_memory_equal(hd_rig_params(&rig), newest[0], bytes);
	assert_memory_equal(reads, newest[0], bytes);
	r = hd_rig_step(&rig);
	assert_false(r.skipped);
	memcpy(newest[1], hd_rig_params(&rig), bytes);
	assert_memory_equal(reads, newest[0], bytes);
	hd_rig_step(&rig);
	assert_memory_equal(reads, newest[1], bytes);
	hd_rig_close(&rig);
}

/* In the memory that is predicted, and in the table: as many as a parameter is late. */
static void earlier_versions_are_counted_and_named(void **state)
{
	struct hd_memory_terms plain, late;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, mlp4, 26, 1, NULL, 1);
	hd_worker_memory(rig.worker, &plain);
	const uint64_t vector = rig.task->layout.held_elems * sizeof(float);
	assert_null(hd_state_find(hd_worker_state(rig.worker), "fc1.weight@-1"));
	hd_rig_close(&rig);
	hd_rig_open(&rig, mlp4, 26, 1, "optim: {update: vsync, cuts: auto:3}\n", 1);
	hd_worker_memory(rig.worker, &late);
	assert_int_equal(late.params, plain.params + 2 * vector);
	const struct hd_state_entry *e = hd_state_find(hd_worker_state(rig.worker), "fc1.weight@-2");
	assert_non_null(e);
	assert_int_equal(e->group, HD_STATE_OPTIM);
	assert_non_null(hd_state_find(hd_worker_state(rig.worker), "fc1.weight@-1"));
	assert_null(hd_state_find(hd_worker_state(rig.worker), "fc1.weight@-3"));
	hd_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_delay_of_a_parameter_follows_from_the_job),
		cmocka_unit_test(where_stages_are_cut_is_part_of_the_identity),
		cmocka_unit_test(cuts_that_are_none_of_the_model_are_refused),
		cmocka_unit_test(what_a_job_computes_is_the_replay_of_its_version_map),
		cmocka_unit_test(a_skipped_step_makes_a_version_that_equals_the_one_before),
		cmocka_unit_test(earlier_versions_are_counted_and_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
