#include <math.h>

#include "base/philox.h"
#include "autoscale/autoscale_sim.h"
#include "autoscale/int.h"

struct driving {
	struct hd_scale *scale;
	const struct hd_scale_job *job;
	struct hd_scale_run run;
	uint32_t joining;                         /* the size that joiners make; 0: none awaited */
	double ready_s;
	struct hd_text *log;
};

static double step_time(const struct hd_scale_job *job, uint64_t step, uint32_t size)
{
	const double *times = job->then_step_s && step >= job->then_at ? job->then_step_s : job->step_s;
	const uint32_t counter[4] = { 0, 0, (uint32_t)step, (uint32_t)(step >> 32) };
	struct hd_philox draw = hd_philox(counter, hd_philox_key(job->seed, HD_RNG_NOISE));

	return times[size] * (1 + job->noise * sqrt(3.0) * (2.0 * (double)hd_uniform(draw.word[0]) - 1));
}

static void pay(struct driving *d, uint32_t workers,
	double seconds) { d->run.cost_usd += hd_scale_money(d->scale, workers, seconds); }

static void change(struct driving *d, uint32_t to, uint64_t step)
{
	d->run.time_s += d->scale->set.stall_s;
	pay(d, d->run.size, d->scale->set.stall_s);
	d->run.size = to;
	d->run.nchanges++;
	d->run.last_change = step;
}

static void ask(struct driving *d, uint64_t step)
{
	struct hd_scale_now now = { d->job->steps - step, d->run.time_s, d->run.size, d->joining != 0 };
	struct hd_scale_answer answer;

	hd_scale_propose(d->scale, &now, &answer);
	if (answer.why[0] && d->log)
		hd_text_addf(d->log, "step %llu, %u workers: %s\n", (unsigned long long)step, d->run.size,
			answer.why);
	if (answer.size < d->run.size)
		change(d, answer.size, step);
	if (answer.size > d->run.size) {
		d->joining = answer.size;
		d->ready_s = d->run.time_s + d->scale->set.boot_s;
	}
}

enum hd_err hd_scale_simulate(struct hd_scale_run *run, const char *policy,
	const struct hd_scale_setting *setting, const struct hd_scale_job *job,
	struct hd_arena *arena, struct hd_text *log, struct hd_diag *diag)
{
	struct driving d = { .scale = hd_arena_take(arena, 1, sizeof *d.scale), .job = job,
		.run.size = job->start, .log = log };

	if (!d.scale)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an autoscaler");
	enum hd_err err = hd_scale_init(d.scale, policy, setting, diag);
	if (!err && (job->start < setting->min || job->start > setting->max ||
		!(job->noise >= 0 && job->noise < 0.5)))
		err = hd_fail(diag, HD_E_INVAL,
			"a start at %u of %u to %u workers, steps that vary by %g (below 0.5)", job->start,
			setting->min, setting->max,
			job->noise);
	for (uint64_t step = 0; step < job->steps && !err; step++) {
		ask(&d, step);
		if (d.joining && d.run.time_s >= d.ready_s) {
			change(&d, d.joining, step);
			d.joining = 0;
		}
		double t = step_time(job, step, d.run.size);
		d.run.time_s += t;
		pay(&d, d.joining ? d.joining : d.run.size, t);
		hd_scale_sample(d.scale, d.run.size, t);
	}
	if (!err)
		*run = d.run;
	return err;
}
