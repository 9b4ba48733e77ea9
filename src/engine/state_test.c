#include "engine/judge.h"

#include "engine/testing.h"

/* The law of the table: a fresh process that has only the job and the table computes the
 * identical next step. And nothing in it is idle: without any one entry the next step's
 * digest is another. 61 samples, so steps 2, 5, 8 are short and end a data epoch. */

enum { NSTEPS = 8, NAHEAD = 2 };

static const struct { const char *name, *model, *more; uint32_t batch, vns; } cases[] = {
	{ "mlp adamw",    hd_rig_mlp, "optim: {kind: adamw, schedule: {warmup: 2}}", 26, 13 },
	{ "mlp momentum", hd_rig_mlp, "optim: {kind: momentum, lr: 0.05}",           22, 11 },
	{ "mlp sgd",      hd_rig_mlp, "optim: {kind: sgd, lr: 0.05}",                26, 13 },
	{ "mlp lamb",     hd_rig_mlp, "optim: {kind: lamb, lr: 0.01}",               26, 13 },
	{ "mlp lion",     hd_rig_mlp, "optim: {kind: lion}",                         22, 11 },
	{ "mlp adagrad",  hd_rig_mlp, "optim: {kind: adagrad, lr: 0.01}",            26, 13 },
	{ "gpt adamw",    hd_rig_gpt, "optim: {kind: adamw}",                        26, 7 },
	{ "bn adamw",     NULL,       "optim: {kind: adamw, schedule: {warmup: 2}}", 26, 13 },
	{ "mlp 2bw",      hd_rig_mlp, "optim: {kind: adamw, update: 2bw, schedule: {warmup: 2}}", 26, 13 },
	{ "mlp stash",   hd_rig_mlp, "optim: {kind: momentum, lr: 0.1, update: stash, cuts: auto:4}", 26, 1 },
	{ "gpt vsync",    hd_rig_gpt, "optim: {kind: sgd, lr: 0.05, update: vsync, cuts: auto:3}", 26, 1 },
	{ "gpt groups",   hd_rig_gpt, "optim: {kind: adamw, weight_decay: 0.2, no_decay: norms-and-biases, groups: "
		"[{params: [\"h.1.*\"], lr_scale: 0.5}, {params: [wpe.weight], decay: 0.4}]}", 26, 7 },
	{ "mlp means",   hd_rig_mlp, "optim: {kind: adamw, ema: {decay: 0.9}}",     26, 13 },
	{ "gpt means",   hd_rig_gpt, "optim: {kind: sgd, lr: 0.05, ema: {decay: 0.5, every: 2}}", 26, 7 },
	{ "mlp plateau", hd_rig_mlp, "optim: {kind: sgd, lr: 0.05, schedule: {kind: plateau, warmup: 0, every: 3, "
		"patience: 5, threshold: 0.9, metric: loss}}\nstop: {patience: 90, min_delta: 9, every: 1}",
			26, 13 },
	{ "gpt plateau", hd_rig_gpt, "optim: {kind: adamw, schedule: {kind: plateau, warmup: 0, every: 1, "
		"patience: 1, threshold: 0.9}}\nstop: {patience: 90, metric: loss, min_delta: 9, every: 3}",
			26, 7 },
	{ "gpt nesterov", hd_rig_gpt, "optim: {kind: nesterov, lr: 0.05}",           26, 13 },
};
enum { NCASES = sizeof cases / sizeof *cases };

static void open_case(struct hd_rig *rig, size_t c, uint32_t ndevices)
{
	hd_rig_open(rig, cases[c].model ? cases[c].model : hd_rig_bn(), cases[c].batch, cases[c].vns,
		cases[c].more, ndevices);
}

static bool same_record(const struct hd_step_record *a, const struct hd_step_record *b)
{
	return a->step == b->step && a->samples == b->samples && a->epoch == b->epoch &&
		memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0 &&
		memcmp(&a->correct, &b->correct, sizeof a->correct) == 0 &&
		memcmp(&a->gnorm, &b->gnorm, sizeof a->gnorm) == 0 &&
		memcmp(&a->lr, &b->lr, sizeof a->lr) == 0 && hd_hash_same(a->digest, b->digest);
}

static void a_fresh_worker_with_the_table_computes_the_identical_steps(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct hd_step_record want[NSTEPS + NAHEAD];
		struct hd_rig_bytes bytes[NSTEPS];
		struct hd_rig whole;
		open_case(&whole, c, 1);
		for (uint32_t k = 0; k < NSTEPS + NAHEAD; k++) {
			if (k < NSTEPS)
				hd_rig_copy(&whole, &bytes[k], &whole.arena);
			want[k] = hd_rig_step(&whole);
		}
		for (uint32_t k = 0; k < NSTEPS; k++) {
			struct hd_rig fresh;
			open_case(&fresh, c, 1 + k % 3);
			hd_rig_paste(&fresh, &bytes[k], HD_NONE);
			assert_int_equal(hd_worker_at(fresh.worker), k);
			for (uint32_t a = 0; a < NAHEAD; a++) {
				struct hd_step_record got = hd_rig_step(&fresh);
				CHECK(same_record(&got, &want[k + a]),
					"%s: step %u of a worker that began at %u differs", cases[c].name,
					k + a, k);
			}
			hd_rig_close(&fresh);
		}
		hd_rig_close(&whole);
	}
}

/* A worker that has trained already is no better than a fresh one. */
static void a_used_worker_with_the_table_computes_the_identical_steps(void **state)
{
	struct hd_rig rig;
	struct hd_rig_bytes bytes;
	struct hd_step_record want[3], got;

	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		open_case(&rig, c, 2);
		hd_rig_step(&rig);
		hd_rig_copy(&rig, &bytes, &rig.arena);
		for (int i = 0; i < 3; i++)
			want[i] = hd_rig_step(&rig);
		hd_rig_paste(&rig, &bytes, HD_NONE);
		for (int i = 0; i < 3; i++) {
			got = hd_rig_step(&rig);
			CHECK(same_record(&got, &want[i]), "%s: step %d after going back differs",
				cases[c].name, i + 1);
		}
		hd_rig_close(&rig);
	}
}

/* Step 4 stands in the middle of the second data epoch: sums of the epoch are not zero. The count
 * of skips acts when a step is not finite only (nonfinite_test.c): here it is in the digest alone. */
static void without_any_one_entry_the_next_step_is_another(void **state)
{
	enum { AT = 4 };

	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct hd_rig whole;
		struct hd_rig_bytes bytes;
		struct hd_hash want;
		open_case(&whole, c, 1);
		for (uint32_t k = 0; k < AT; k++)
			hd_rig_step(&whole);
		/* nothing was skipped ... */
		*(int64_t *)hd_state_find(hd_worker_state(whole.worker), "run.skips")->at = 3;
		/* ... and perhaps nothing hit */
		*(double *)hd_state_find(hd_worker_state(whole.worker), "run.epoch_correct")->at += 5;
		/* a count of looks may stand at nothing */
		for (int k = 0; k < HD_NJUDGES && whole.worker->judges; k++) {
			whole.worker->judges->of[k].state.bad += 2;
			whole.worker->judges->of[k].state.falls++;
		}
		hd_rig_copy(&whole, &bytes, &whole.arena);
		struct hd_rig fresh;
		open_case(&fresh, c, 1);
		struct hd_rig_bytes initial;
		hd_rig_copy(&fresh, &initial, &fresh.arena);
		hd_rig_paste(&fresh, &bytes, HD_NONE);
		want = hd_worker_digest(fresh.worker);
		for (uint32_t e = 0; e < bytes.n; e++) {
			hd_rig_paste(&fresh, &initial, HD_NONE);
			hd_rig_paste(&fresh, &bytes, e);
			CHECK(!hd_hash_same(hd_worker_digest(fresh.worker), want),
				"%s: a table without %s has the same digest", cases[c].name,
				hd_worker_state(fresh.worker)->entry[e].name);
		}
		hd_rig_paste(&fresh, &bytes, HD_NONE);
		want = hd_rig_step(&fresh).digest;
		for (uint32_t e = 0; e < bytes.n; e++) {
			const char *name = hd_worker_state(fresh.worker)->entry[e].name;
			hd_rig_paste(&fresh, &initial, HD_NONE);
			hd_rig_paste(&fresh, &bytes, e);
			bool same = hd_hash_same(hd_rig_step(&fresh).digest, want);
			CHECK(same == !strcmp(name, "run.skips"), "%s: without %s the next step is %s",
				cases[c].name, name, same ? "the same" : "another");
		}
		hd_rig_close(&fresh);
		hd_rig_close(&whole);
	}
}

/* What a run has to remember, by name: an entry that is dropped is missing here, also one whose absence some
 * steps would not show. */
static void the_table_has_every_entry_by_name(void **state)
{
	static const char *const counters[] = { "run.epoch_correct", "run.epoch_loss", "run.epoch_weight",
		"run.plateau.bad", "run.plateau.best", "run.plateau.falls", "run.plateau.gains",
		"run.plateau.loss", "run.plateau.weight", "run.samples", "run.skips", "run.step",
		"run.stop.bad", "run.stop.best", "run.stop.gains", "run.stop.loss", "run.stop.weight",
		"run.updates" };
	static const char *const slots[] = { "", ".ema", ".m", ".v" };
	enum { NCOUNTERS = sizeof counters / sizeof *counters, NSLOTS = sizeof slots / sizeof *slots };
	struct hd_rig rig;
	char name[HD_MAX_NAME + 8];

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {kind: adamw, ema: {decay: 0.9}, schedule: {kind: "
		"plateau, warmup: 0, metric: loss}}\nstop: {patience: 9, metric: loss, every: 3}", 1);
	const struct hd_state *table = hd_worker_state(rig.worker);
	const struct hd_graph *g = &rig.worker->task->train;
	for (size_t i = 0; i < NCOUNTERS; i++)
		CHECK(hd_state_find(table, counters[i]), "the table has no %s", counters[i]);
	for (uint32_t p = 0; p < g->nparams; p++)
		for (size_t i = 0; i < NSLOTS; i++) {
			snprintf(name, sizeof name, "%s%s",
				hd_graph_text_of(g, g->value[g->param[p].value].name), slots[i]);
			CHECK(hd_state_find(table, name), "the table has no %s", name);
		}
	assert_int_equal(table->nentries, NCOUNTERS + NSLOTS * g->nparams);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_worker_with_the_table_computes_the_identical_steps),
		cmocka_unit_test(a_used_worker_with_the_table_computes_the_identical_steps),
		cmocka_unit_test(without_any_one_entry_the_next_step_is_another),
		cmocka_unit_test(the_table_has_every_entry_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
