#include "chaos/play.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* The published prices of 2021, dollars per machine and hour. */
static const int64_t SPOT_NANO_USD_H = 910000000, ON_DEMAND_NANO_USD_H = 3060000000;

enum { MORE_SETS = 1, EVENTS_BYTES = 1 << 30 };

static enum hd_err open_services(const struct hd_play_ask *ask, struct hd_play *p, struct hd_diag *diag)
{
	struct hd_metadata_server *server = hd_alloc(sizeof *server);
	enum hd_err err = server ? hd_metadata_open(server, ask->clock, "tcp:127.0.0.1:0", diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for the services");

	if (err) {
		hd_free(server);
		return err;
	}
	p->market.cloud.spec.services = server;
	return HD_OK;
}

static enum hd_err prepare(const struct hd_play_ask *ask, struct hd_play *p, struct hd_diag *diag)
{
	const char **set = hd_arena_take(ask->arena, ask->nsets + MORE_SETS, sizeof *set);
	char *steps = hd_arena_take(ask->arena, 24, 1), *words = hd_arena_take(ask->arena,
		HD_HARNESS_PATH + 10, 1);
	enum hd_err err = set && steps && words ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a run");

	err = err ? err : hd_harness_init(&p->harness, ask->fs, ask->clock, ask->path, ask->parent,
		ask->nsteps,
		diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < ask->nsets; i++)
		set[i] = ask->set[i];
	set[ask->nsets] = "workers.start=others";
	(void)snprintf(steps, 24, "%llu", (unsigned long long)ask->nsteps);
	(void)snprintf(words, HD_HARNESS_PATH + 10, "%s/run.log", ask->parent);
	p->harness.said = words;
	p->harness.set = set;
	p->harness.nsets = ask->nsets + MORE_SETS;
	p->harness.twin_set = hd_harness_whole_model;
	p->harness.ntwin_sets = HD_HARNESS_WHOLE;
	p->market.harness = &p->harness;
	p->market.script = ask->script;
	err = hd_tie_open(&p->harness.tie, diag);
	err = err ? err : open_services(ask, p, diag);
	if (err)
		return err;
	const struct hd_cloud_spec spec = { .host = p->harness.host, .fs = ask->fs, .clock = ask->clock,
		.services = p->market.cloud.spec.services, .dir = p->harness.dir, .devices = "1",
		.slow = ask->slow, .vn_time = ask->vn_time, .steps = steps, .speed = ask->speed,
		.noticed = ask->noticed, .said = ask->said, .user = ask->user };
	hd_cloud_init(&p->market.cloud, &spec);
	return HD_OK;
}

/* Workers of one pipeline, each of one device. */
static uint32_t workers_of(const struct hd_job *job)
{
	const struct hd_job_value *stages = &job->value[HD_JOB_PAR_STAGES],
		*chunks = &job->value[HD_JOB_PAR_CHUNKS];
	const int64_t n = hd_job_has_stages(job) && !stages->is_auto ? stages->i : 1,
		each = chunks->is_auto || chunks->i < 1 ? 1 : chunks->i;

	return n > each ? (uint32_t)(n / each) : 1;
}

/* What the run took, as a model of the same trace. Whoever restarts starts all processes again: a
 * rendezvous is
 * a boot, in which the checkpoint is read. A checkpoint is written beside the steps: it stops none. */
static bool make_model(const struct hd_play_ask *ask, struct hd_play *p,
	const struct hd_spot_measured *measured)
{
	const struct hd_job *job = ask->job;
	const struct hd_market *m = &p->market;
	const uint32_t stages = workers_of(job), pipelines = ask->most / stages;
	const int64_t boot_ms = m->boots ? (int64_t)((double)m->boot_ms / (double)m->boots * ask->speed) : 0;
	struct hd_spot_model *model = &p->model;

	*model = (struct hd_spot_model){ .name = hd_job_text(job, HD_JOB_NAME), .stages = stages,
		.batch = hd_job_int(job, HD_JOB_GLOBAL), .boot_ms = boot_ms, .rendezvous_ms = boot_ms,
		.end_ms = (int64_t)((double)m->played_ns / 1e6 * ask->speed), .wanted = ask->most,
		.nano_usd_h = SPOT_NANO_USD_H };
	if (!hd_spot_measured_steps(model, measured, pipelines < HD_SPOT_PIPELINES ? pipelines :
		HD_SPOT_PIPELINES, job->nvns, ask->speed))
		return false;
	/* as many machines that stay as are worth most */
	uint32_t best = 1;
	for (uint32_t d = 2; d <= model->npipelines; d++)
		best = d * model->step_ms[d - 1] < best * model->step_ms[best - 1] ? d : best;
	model->on_demand.nodes = best * stages;
	model->on_demand.step_ms = model->step_ms[best - 1];
	model->on_demand.nano_usd_h = ON_DEMAND_NANO_USD_H;
	model->end_ms = model->end_ms > 0 ? model->end_ms : 1;
	return true;
}

/* The newest event "paid" of the run: what its coordinator counted, in milliseconds of this machine. */
static void read_paid(const struct hd_play_ask *ask, const struct hd_play *p, int64_t ms[HD_NLEDGER])
{
	struct hd_arena arena, lines;
	char path[HD_HARNESS_PATH + 20];
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	hd_arena_init(&lines, 0);
	(void)snprintf(path, sizeof path, "%s/events.ndjson", p->harness.dir);
	const bool there = !hd_file_read_all(ask->fs, path, &arena, EVENTS_BYTES, &bytes, &len, NULL);
	for (size_t at = 0; there && at < len;) {
		const uint8_t *nl = memchr(bytes + at, '\n', len - at);
		const size_t n = nl ? (size_t)(nl - bytes) - at : len - at;
		const struct hd_json *json;
		const char *kind = "";
		hd_arena_reset(&lines);
		if (!hd_json_parse(&lines, "event", (const char *)bytes + at, n, &json, NULL) &&
			!hd_json_get_text(json, "kind", &kind, NULL) && !strcmp(kind, "paid"))
			for (int part = 0; part < HD_NLEDGER; part++) {
				char key[32];
				(void)snprintf(key, sizeof key, "%s_ms", hd_ledger_names[part]);
				(void)!hd_json_get_i64(json, key, 0, INT64_MAX, &ms[part], NULL);
			}
		at += n + 1;
	}
	hd_arena_finish(&lines);
	hd_arena_finish(&arena);
}

static bool count(const struct hd_play_ask *ask, struct hd_play *p)
{
	int64_t ms[HD_NLEDGER] = { 0 }, known = 0;
	bool fits = true;

	read_paid(ask, p, ms);
	for (int part = 0; part < HD_NLEDGER; part++)
		known += ms[part];
	if (p->market.cloud.paid_ms > known)
		ms[HD_LEDGER_BOOT] += p->market.cloud.paid_ms - known;
	for (int part = 0; part < HD_NLEDGER; part++)
		fits &= hd_ledger_put(&p->ledger, (enum hd_ledger_part)part, ms[part] * ask->speed,
			SPOT_NANO_USD_H);
	return fits && hd_ledger_sum(&p->ledger, &p->paid);
}

static enum hd_err judge(const struct hd_play_ask *ask, struct hd_play *p, struct hd_diag *diag)
{
	const struct hd_job *job = ask->job;
	struct hd_spot_measured *measured = hd_arena_take(ask->arena, 1, sizeof *measured);
	p->samples = p->harness.nsteps * (uint64_t)hd_job_int(job, HD_JOB_GLOBAL);
	if (!count(ask, p))
		return hd_fail(diag, HD_E_INPUT, "the machines cost more than can be counted");
	p->value = p->paid.nano_usd ? (double)p->samples * 1e9 / (double)p->paid.nano_usd : 0;
	if (!ask->trace)
		return HD_OK;
	enum hd_err err = measured ? hd_market_measure(&p->market, workers_of(job), measured, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for what was measured");
	if (err || !make_model(ask, p, measured))
		return err;
	p->modelled = true;
	p->on_demand = hd_spot_model_on_demand(&p->model);
	return hd_spot_replay_best(&p->checkpoints, &p->every, HD_SPOT_CHECKPOINT, ask->trace, &p->model,
		diag);
}

/* A model that could not be read is not kept: p->not_kept says why. */
static enum hd_err keep_model(const struct hd_play_ask *ask, struct hd_play *p, struct hd_diag *diag)
{
	char path[HD_HARNESS_PATH + 20];
	struct hd_text text;
	enum hd_err err = hd_spot_model_text(&p->model, ask->arena, &text, &p->not_kept);

	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "%s", p->not_kept.text);
	if (err)
		return HD_OK;
	(void)snprintf(path, sizeof path, "%s/model.json", ask->parent);
	return hd_file_write_atomic(ask->fs, path, text.at, text.len, diag);
}

enum hd_err hd_play(const struct hd_play_ask *ask, struct hd_play *p, struct hd_diag *diag)
{
	enum hd_err err = prepare(ask, p, diag);

	err = err ? err : hd_market_play(&p->market, diag);
	err = err ? err : judge(ask, p, diag);
	if (!err && p->modelled)
		err = keep_model(ask, p, diag);
	return err ? err : hd_harness_compare(&p->harness, &p->end, diag);
}

void hd_play_close(struct hd_play *p)
{
	if (p->market.cloud.spec.services) {
		hd_cloud_finish(&p->market.cloud);
		hd_metadata_close(p->market.cloud.spec.services);
		hd_free(p->market.cloud.spec.services);
	}
	hd_harness_finish(&p->harness);
}
