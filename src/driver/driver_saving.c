#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

/* How far apart checkpoints are, with checkpoint.every: auto. What a checkpoint takes is said by the worker
 * that saves; which losses go back to one follows from what members hold under the view, and from the losses
 * that were seen (spot/resilience.h). What is settled on lies in the run's folder, where the worker that
 * saves reads it (run/ckpt_every.h). */

void driver_saving_begin(struct driver *c)
{
	c->saves = c->spec->task->job->value[HD_JOB_CKPT_EVERY].is_auto;
	hd_saving_begin(&c->saving);
	c->saving_kept = (struct hd_saving){ 0 };
	c->saving_unkept = false;
	if (c->saves && hd_ckpt_every_get(&c->saving, c->spec->fs, c->spec->dir->path))
		c->saving_kept = c->saving;
}

/* A cost that was measured is another one after each checkpoint, and no other time. */
static bool is_kept(const struct driver *c)
{
	char is[HD_SAVING_TEXT], had[HD_SAVING_TEXT];
	const size_t len = hd_saving_put(&c->saving, is);

	return len == hd_saving_put(&c->saving_kept, had) && !memcmp(is, had, len);
}

/* The file is synced to its disk. False: it could not be written, which is said once until it can. */
static bool keep(struct driver *c)
{
	struct hd_diag why = { "" };

	if (is_kept(c))
		return true;
	if (!hd_ckpt_every_put(c->spec->dir, &c->saving, &why)) {
		c->saving_kept = c->saving;
		c->saving_unkept = false;
		return true;
	}
	if (!c->saving_unkept)
		driver_note(c, "warning", HD_NOBODY, why.text);
	c->saving_unkept = true;
	return false;
}

void driver_saving_noted(struct driver *c, const char *name, const char *text)
{
	double took_s;

	if (!c->saves)
		return;
	c->saving_due |= !strcmp(name, "lost");
	if (strcmp(name, "checkpoint_done") != 0 || !hd_ckpt_done_took(text, &took_s))
		return;
	hd_saving_saved(&c->saving, took_s);
	c->saving_due = true;
}

/* Parts of the state, and the holders of each: by stages; in chains, of which two copies next to each other
 * count, as of a stage and its shadow, among servers alone where there are such; or each rank all of it. */
static struct hd_resilience_now holders(const struct driver *c, const struct hd_view *view,
	enum hd_spot_strategy *mode)
{
	struct hd_resilience_now now = { .now_ms = hd_clock_now_ns(c->spec->clock) / HD_NS_PER_MS,
		.machines = view->nranks, .pipelines = view->nranks, .stages = 1 };

	*mode = driver_strategy(hd_shape_redundancy(&view->shape));
	if (view->shape.nstages && !c->config.whole) {
		now.stages = view->shape.width;
		now.pipelines = view->nranks / now.stages;
	} else if (c->config.copies && view->nmembers > 1) {
		const uint32_t servers = hd_job_servers(c->spec->task->job);
		now.machines = view->nmembers;
		now.stages = servers && servers < view->nmembers ? servers : view->nmembers;
		now.pipelines = 1;
		*mode = HD_SPOT_LAZY;
	}
	return now;
}

void driver_saving_step(struct driver *c)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	char why[HD_SAVING_WORDS], said[HD_SAVING_WORDS + 16];

	if (!c->saves || !view || !view->nmembers || (!c->saving_due &&
		++c->saving_commits < HD_RESILIENCE_COMMITS))
		return;
	enum hd_spot_strategy mode;
	const struct hd_resilience_now now = holders(c, view, &mode);
	c->saving_due = false;
	c->saving_commits = 0;
	if (!c->judges)           /* by-notice may have switched it; auto says it itself */
		hd_resilience_took(&c->resilience, mode);
	c->back_h = hd_resilience_back_h(&c->resilience, &now);
	const bool other = hd_saving_judge(&c->saving, c->back_h);
	driver_guard_keep_at_times(c);
	if (!keep(c) || !other)
		return;
	snprintf(said, sizeof said, "checkpoints %s", hd_saving_why(&c->saving, c->back_h, why));
	driver_note(c, "saving", HD_NOBODY, said);
}

const char *driver_saving(const struct driver *c, char *out, size_t cap)
{
	char why[HD_SAVING_WORDS];

	if (c->saves)
		snprintf(out, cap, "auto, %s", hd_saving_why(&c->saving, c->back_h, why));
	else
		snprintf(out, cap, "%s", hd_job_text(c->spec->task->job, HD_JOB_CKPT_EVERY));
	return out;
}

double driver_saving_every_s(const struct driver *c, double step_s)
{
	const struct hd_job_value *every = &c->spec->task->job->value[HD_JOB_CKPT_EVERY];

	return c->saves ? (double)c->saving.every_ms * 1e-3 :
		(double)every->i * (every->every_steps ? step_s : 1e-9);
}
