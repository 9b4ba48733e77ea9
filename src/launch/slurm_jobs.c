#include "launch/slurm_jobs.h"

#include <stdio.h>
#include <string.h>

#include "launch/launcher_ops.h"

void hd_slurm_jobs_init(struct hd_slurm_jobs *jobs)
{
	*jobs = (struct hd_slurm_jobs){ .look_ns = INT64_MAX, .pause_ns = HD_SLURM_SOON_NS };
}

void hd_slurm_jobs_find(struct hd_slurm_jobs *jobs)
{
	jobs->finds = jobs->unsaid = true;
	jobs->look_ns = 0;
}

static bool has_seat(const struct hd_batch_job *job)
{
	return job->line.stage != HD_SLURM_OVER && !job->taken_back;
}

uint32_t hd_slurm_jobs_seats(const struct hd_slurm_jobs *jobs, enum hd_slurm_stage stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < jobs->n; i++)
		n += has_seat(&jobs->job[i]) && jobs->job[i].line.stage == stage;
	return n;
}

uint32_t hd_slurm_jobs_left(const struct hd_slurm_jobs *jobs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < jobs->n; i++)
		n += jobs->job[i].line.stage != HD_SLURM_OVER;
	return n;
}

static uint32_t seats(const struct hd_slurm_jobs *jobs)
{
	return hd_slurm_jobs_seats(jobs, HD_SLURM_WAITS) + hd_slurm_jobs_seats(jobs, HD_SLURM_RUNS);
}

static void look_soon(struct hd_slurm_jobs *jobs, int64_t now_ns)
{
	jobs->pause_ns = HD_SLURM_SOON_NS;
	jobs->look_ns = now_ns + jobs->pause_ns;
}

void hd_slurm_jobs_want(struct hd_slurm_jobs *jobs, uint32_t n, int64_t now_ns)
{
	jobs->unsaid = false;
	if (n == jobs->want)
		return;
	jobs->want = n;
	if (jobs->n)
		look_soon(jobs, now_ns);
}

void hd_slurm_jobs_end(struct hd_slurm_jobs *jobs, int64_t now_ns)
{
	hd_slurm_jobs_want(jobs, 0, now_ns);
	/* what was taken back as it began may run on */
	for (uint32_t i = 0; i < jobs->n && !jobs->ends; i++)
		jobs->job[i].taken_back = false;
	jobs->ends = true;
}

void hd_slurm_jobs_changed(struct hd_slurm_jobs *jobs, int64_t now_ns)
{
	if (jobs->n && jobs->look_ns > now_ns + HD_SLURM_SOON_NS)
		look_soon(jobs, now_ns);
}

/* ---- what to ask */

/* The newest first: the others have waited for longer. */
static void take_back(const struct hd_slurm_jobs *jobs, uint32_t n, struct hd_slurm_next *next)
{
	next->n = 0;
	for (uint32_t i = jobs->n; i-- && next->n < n && next->n < HD_SLURM_IDS;)
		if (has_seat(&jobs->job[i]) && (jobs->ends || jobs->job[i].line.stage == HD_SLURM_WAITS))
			next->id[next->n++] = jobs->job[i].line.id;
	if (next->n)
		next->ask = HD_SLURM_TAKE_BACK;
}

void hd_slurm_jobs_next(struct hd_slurm_jobs *jobs, int64_t now_ns, struct hd_slurm_next *next)
{
	const uint32_t there = seats(jobs), room = HD_SLURM_JOBS - jobs->n;

	*next = (struct hd_slurm_next){ .at_ns = jobs->look_ns };
	if (now_ns >= jobs->look_ns) {
		next->ask = HD_SLURM_LOOK;
		return;
	}
	if (jobs->finds || jobs->unsaid)
		return;
	if (there > jobs->want && now_ns >= jobs->ready_ns)
		take_back(jobs, there - jobs->want, next);
	if (there >= jobs->want || next->ask)
		return;
	if (now_ns >= jobs->ready_ns && room) {
		next->ask = HD_SLURM_SUBMIT;
		next->n = jobs->want - there < room ? jobs->want - there : room;
	} else if (room && jobs->ready_ns < next->at_ns) {
		next->at_ns = jobs->ready_ns;
	}
}

/* ---- what became of it */

static void answered(struct hd_slurm_jobs *jobs) { jobs->unanswered = 0; }

static int64_t pause_after(uint32_t n)
{
	int64_t pause = HD_SLURM_AGAIN_NS;

	while (n-- > 1 && pause < HD_SLURM_LONGEST_NS)
		pause *= 2;
	return pause < HD_SLURM_LONGEST_NS ? pause : HD_SLURM_LONGEST_NS;
}

static struct hd_batch_job *find(struct hd_slurm_jobs *jobs, const char *id)
{
	for (uint32_t i = 0; i < jobs->n; i++)
		if (!strcmp(jobs->job[i].line.id, id))
			return &jobs->job[i];
	return NULL;
}

void hd_slurm_jobs_submitted(struct hd_slurm_jobs *jobs, const char *id, uint32_t n, int64_t
	now_ns)
{
	answered(jobs);
	look_soon(jobs, now_ns);
	for (uint32_t i = 0; i < n && jobs->n < HD_SLURM_JOBS; i++) {
		struct hd_batch_job job = { .since_ns = now_ns, .line = { .state = "PENDING",
			.stage = HD_SLURM_WAITS } };
		snprintf(job.line.id, sizeof job.line.id, "%.15s_%u", id, i);
		if (!find(jobs, job.line.id))
			jobs->job[jobs->n++] = job;
	}
}

void hd_slurm_jobs_taken_back(struct hd_slurm_jobs *jobs, const struct hd_slurm_next *next, int64_t now_ns)
{
	answered(jobs);
	look_soon(jobs, now_ns);
	for (uint32_t i = 0; i < next->n; i++) {
		struct hd_batch_job *job = find(jobs, next->id[i]);
		if (job)
			job->taken_back = true;
	}
}

bool hd_slurm_jobs_failed(struct hd_slurm_jobs *jobs, enum hd_slurm_ask ask, int64_t now_ns)
{
	const int64_t pause = pause_after(++jobs->unanswered);

	if (ask == HD_SLURM_LOOK)
		jobs->look_ns = now_ns + (pause < HD_SLURM_RARE_NS ? pause : HD_SLURM_RARE_NS);
	else
		jobs->ready_ns = now_ns + pause;
	/* did sbatch make jobs before its answer was lost? */
	if (ask == HD_SLURM_SUBMIT && jobs->look_ns > jobs->ready_ns)
		jobs->look_ns = jobs->ready_ns;
	return jobs->unanswered == 1;
}

/* A worker that left as it was asked to is none of the user's business. */
static bool is_news(const struct hd_slurm_line *l)
{
	return strcmp(l->state, "COMPLETED") != 0 && (strcmp(l->state, "FAILED") != 0 ||
		hd_launcher_is_failure(l->code));
}

/* A node is named once it has one. */
static void tell_change(const struct hd_batch_job *job, enum hd_slurm_stage was, uint32_t restarts, int64_t
	now_ns,
	hd_slurm_tell *tell, void *user)
{
	const struct hd_slurm_line *l = &job->line;
	const double waited_s = (double)(now_ns - job->since_ns) * 1e-9;
	char text[HD_LAUNCHER_WHY];

	if (l->stage == HD_SLURM_RUNS && was == HD_SLURM_WAITS)
		snprintf(text, sizeof text, "Slurm job %s runs on %s, after %.1f s in the queue", l->id,
			*l->node ? l->node : "a node", waited_s);
	else if (l->stage == HD_SLURM_WAITS && (was == HD_SLURM_RUNS || l->restarts > restarts))
		snprintf(text, sizeof text, "Slurm job %s was taken from its node and is in the queue "
			"again%s%s",
			l->id, *l->reason ? ": " : "", l->reason);
	else if (l->stage == HD_SLURM_OVER && !job->taken_back && is_news(l))
		snprintf(text, sizeof text, "Slurm job %s is over: %s, exit code %d%s%s", l->id, l->state,
			l->code,
			*l->node ? ", on " : "", l->node);
	else
		return;
	tell(user, job, text);
}

/* A line of a job; *changed: it went on to another stage, or back. */
static bool take_line(struct hd_slurm_jobs *jobs, const struct hd_slurm_line *line, int64_t now_ns,
	hd_slurm_tell *tell, void *user)
{
	struct hd_batch_job *job = find(jobs, line->id);

	if (!job && jobs->n == HD_SLURM_JOBS)
		return false;
	const bool known = job;
	if (!known) {
		job = &jobs->job[jobs->n++];
		*job = (struct hd_batch_job){ .since_ns = now_ns, .line = { .stage = HD_SLURM_WAITS } };
		memcpy(job->line.id, line->id, sizeof job->line.id);
	}
	job->seen = true;
	const enum hd_slurm_stage was = job->line.stage;
	const uint32_t restarts = job->line.restarts;
	job->line = *line;
	if (was == HD_SLURM_OVER && line->stage != HD_SLURM_OVER)
		job->reported = false;        /* requeued by hand */
	const bool changed = was != line->stage || restarts != line->restarts;
	/* what is over before it is seen is an earlier process's, or stands for tasks that were taken back */
	if (!known && line->stage == HD_SLURM_OVER) {
		job->reported = true;
	} else if (changed) {
		tell_change(job, was, restarts, now_ns, tell, user);
		job->since_ns = now_ns;
	}
	return changed;
}

/* Slurm forgets what is over some minutes later. */
static bool miss(struct hd_batch_job *job, int64_t now_ns, hd_slurm_tell *tell, void *user)
{
	if (job->seen || job->line.stage == HD_SLURM_OVER)
		return false;
	const enum hd_slurm_stage was = job->line.stage;
	job->line.stage = HD_SLURM_OVER;
	job->line.code = 0;
	snprintf(job->line.state, sizeof job->line.state, "forgotten");
	tell_change(job, was, job->line.restarts, now_ns, tell, user);
	return true;
}

static void forget(struct hd_slurm_jobs *jobs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < jobs->n; i++)
		if (jobs->job[i].seen || !jobs->job[i].reported)
			jobs->job[n++] = jobs->job[i];
	jobs->n = n;
}

void hd_slurm_jobs_looked(struct hd_slurm_jobs *jobs, const struct hd_slurm_lines *lines, bool whole,
	int64_t now_ns, hd_slurm_tell *tell, void *user)
{
	bool changed = false;

	answered(jobs);
	for (uint32_t i = 0; i < jobs->n; i++)
		jobs->job[i].seen = false;
	for (uint32_t i = 0; i < lines->n; i++)
		changed |= take_line(jobs, &lines->at[i], now_ns, tell, user);
	/* what a line said that was not understood is not known: no job is missed */
	for (uint32_t i = 0; i < jobs->n && whole; i++)
		changed |= miss(&jobs->job[i], now_ns, tell, user);
	if (whole) {
		forget(jobs);
		jobs->finds = false;
	}
	if (changed)
		look_soon(jobs, now_ns);
	else
		jobs->pause_ns = 2 * jobs->pause_ns < HD_SLURM_RARE_NS ? 2 * jobs->pause_ns :
			HD_SLURM_RARE_NS;
	jobs->look_ns = jobs->n ? now_ns + jobs->pause_ns : INT64_MAX;
}

/* A failure: the next submission waits. */
static uint32_t judge(struct hd_slurm_jobs *jobs, const struct hd_batch_job *job, int64_t now_ns)
{
	const bool failed = !job->taken_back && hd_launcher_is_failure(job->line.code);

	if (!failed) {
		jobs->nbad = jobs->nalike = 0;
		return 0;
	}
	jobs->ready_ns = now_ns + pause_after(++jobs->nbad);
	jobs->nalike = jobs->alike_code == job->line.code ? jobs->nalike + 1 : 1;
	jobs->alike_code = job->line.code;
	return jobs->nalike;
}

bool hd_slurm_jobs_ended(struct hd_slurm_jobs *jobs, struct hd_launcher_end *end, int64_t now_ns)
{
	for (uint32_t i = 0; i < jobs->n; i++) {
		struct hd_batch_job *job = &jobs->job[i];
		if (job->line.stage != HD_SLURM_OVER || job->reported)
			continue;
		job->reported = true;
		*end = (struct hd_launcher_end){ .code = job->line.code, .alike = judge(jobs, job, now_ns) };
		snprintf(end->name, sizeof end->name, "Slurm job %.31s", job->line.id);
		snprintf(end->log, sizeof end->log, "log/slurm-%.31s.log", job->line.id);
		return true;
	}
	return false;
}

/* ---- what the others wait for */

void hd_slurm_jobs_at(const struct hd_slurm_jobs *jobs, char *at, size_t cap)
{
	at[0] = '\0';
	for (uint32_t i = 0; i < jobs->n; i++) {
		const struct hd_slurm_line *l = &jobs->job[i].line;
		if (!has_seat(&jobs->job[i]))
			continue;
		snprintf(at, cap, "Slurm job %s%s%s", l->id, *l->node ? " on " : "", l->node);
		return;
	}
}

static const char *reason_of(const struct hd_batch_job *job)
{
	return *job->line.reason ? job->line.reason : "not looked at yet";
}

void hd_slurm_jobs_why(const struct hd_slurm_jobs *jobs, char why[HD_LAUNCHER_WHY])
{
	struct hd_text text;

	hd_text_fixed(&text, why, HD_LAUNCHER_WHY);
	why[0] = '\0';
	for (uint32_t i = 0; i < jobs->n; i++) {
		uint32_t before = 0, same = 0;
		for (uint32_t k = 0; k < jobs->n; k++) {
			const bool counts = has_seat(&jobs->job[k]) && jobs->job[k].line.stage ==
				HD_SLURM_WAITS &&
				!strcmp(reason_of(&jobs->job[k]), reason_of(&jobs->job[i]));
			before += counts && k < i;
			same += counts;
		}
		if (has_seat(&jobs->job[i]) && jobs->job[i].line.stage == HD_SLURM_WAITS && !before &&
			text.len + HD_SLURM_REASON + 16 < HD_LAUNCHER_WHY)
			hd_text_addf(&text, "%s%s (%u)", text.len ? ", " : "", reason_of(&jobs->job[i]),
				same);
	}
}

bool hd_slurm_jobs_waits(struct hd_slurm_jobs *jobs, int64_t now_ns, char text[HD_LAUNCHER_WHY + 64])
{
	const uint32_t n = hd_slurm_jobs_seats(jobs, HD_SLURM_WAITS);
	char why[HD_LAUNCHER_WHY];
	bool patient = true;

	for (uint32_t i = 0; i < jobs->n; i++)
		patient &= !has_seat(&jobs->job[i]) || jobs->job[i].line.stage != HD_SLURM_WAITS ||
			now_ns - jobs->job[i].since_ns < HD_SLURM_PATIENT_NS;
	hd_slurm_jobs_why(jobs, why);
	if (!n || patient || !strcmp(why, jobs->said) || (jobs->said_ns && now_ns - jobs->said_ns <
		HD_SLURM_PATIENT_NS)) {
		if (!n)
			jobs->said[0] = '\0';
		return false;
	}
	memcpy(jobs->said, why, sizeof jobs->said);
	jobs->said_ns = now_ns;
	snprintf(text, HD_LAUNCHER_WHY + 64, "%u of %u nodes wait in Slurm's queue: %s", n, jobs->want, why);
	return true;
}
