#include "daemon/batches.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/names.h"
#include "launch/slurm_text.h"

/* so long a worker that came first waits for the coordinator to listen */
#define WAIT "600s"

/* Held by pointer: its launcher borrows of it. */
struct hd_batch {
	struct hd_batches *of;
	uint64_t job;
	uint32_t lease, type, n;
	bool wanted, forgotten, said_refused;
	int code;
	/* left: since when it is to leave, refused: when it was; INT64_MIN: it is not */
	int64_t left_ns, refused_ns;
	struct hd_launcher *launcher;
	struct hd_launcher_count count;
	struct hd_launcher_settings settings;
	const char *argv[HD_LAUNCHER_ARGS + 1];
	char run[HD_BATCHES_RUN], name[160], mark[160], until[24], time[24], refusal[HD_LAUNCHER_WHY];
};

struct hd_batches {
	struct hd_batches_spec spec;
	hd_batches_say *say;
	void *user;
	struct hd_batch **at;
	uint32_t n, cap;
};

static int64_t now(const struct hd_batches *b) { return hd_clock_now_ns(b->spec.clock); }

static struct hd_batch *find(const struct hd_batches *b, uint64_t job)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->at[i]->job == job)
			return b->at[i];
	return NULL;
}

/* ---- one */

static void said(void *user, const char *kind, const char *text)
{
	const struct hd_batch *one = user;

	one->of->say(one->of->user, kind, one->job, text);
}

static void make_argv(struct hd_batch *one, const struct hd_batches_spec *spec, uint64_t until)
{
	const char *const begin[] = { spec->program, "worker", "--join", one->run, "--far", "-q", "--wait",
		WAIT };
	size_t n = sizeof begin / sizeof *begin;

	memcpy(one->argv, begin, sizeof begin);
	for (size_t i = 0; i < HD_BATCHES_PASSED && spec->passed[i]; i++)
		one->argv[n++] = spec->passed[i];
	if (until) {
		snprintf(one->until, sizeof one->until, "%llu", (unsigned long long)until);
		one->argv[n++] = "--steps";
		one->argv[n++] = one->until;
	}
	one->argv[n] = NULL;
}

/* The notice before its end comes when the limit of the job is used up, not before. */
static void make_time(struct hd_batch *one, double limit_s)
{
	double most_s = 0;
	const double ends_s = limit_s + one->settings.slurm.signal_s;

	if (!(limit_s > 0) || (*one->settings.slurm.time &&
		(!hd_slurm_time(one->settings.slurm.time, &most_s) || most_s <= ends_s)))
		return;
	snprintf(one->time, sizeof one->time, "%.0f", fmin(ceil(ends_s / 60) + 1, 1e9));
	one->settings.slurm.time = one->time;
}

static enum hd_err make(struct hd_batches *b, const struct hd_batches_ask *ask, struct hd_batch **made,
	struct hd_diag *diag)
{
	struct hd_batch *one = hd_alloc(sizeof *one);
	enum hd_err err = hd_grow(&b->at, &b->cap, (uint64_t)b->n + 1, sizeof *b->at, "batch jobs", diag);

	if (!one || err) {
		hd_free(one);
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for a batch job");
	}
	*one = (struct hd_batch){ .of = b, .job = ask->job, .lease = ask->lease, .type = ask->type,
		.n = ask->n,
		.code = -1, .left_ns = INT64_MIN, .refused_ns = INT64_MIN,
		.settings = b->spec.settings[ask->type] };
	snprintf(one->run, sizeof one->run, "%s", ask->run);
	snprintf(one->name, sizeof one->name, "job %llu %.64s", (unsigned long long)ask->job,
		hd_name_valid(ask->name) ? ask->name : "of a scheduler");
	snprintf(one->mark, sizeof one->mark, "%.100s%llu-%u", b->spec.mark, (unsigned long long)ask->job,
		ask->lease);
	make_time(one, ask->limit_s);
	make_argv(one, &b->spec, ask->until);
	const struct hd_launcher_spec spec = { .host = b->spec.host, .fs = b->spec.fs, .clock = b->spec.clock,
		.dir = one->run, .name = one->name, .mark = one->mark, .argv = one->argv, .nodes = one->n,
		.stays = true, .settings = &one->settings };
	err = b->spec.ops->open(&spec, &one->launcher, diag);
	if (err) {
		hd_free(one);
		return err;
	}
	one->launcher->said = said;
	one->launcher->user = one;
	*made = b->at[b->n++] = one;
	return HD_OK;
}

static void drop(struct hd_batches *b, uint32_t i)
{
	b->at[i]->launcher->ops->close(b->at[i]->launcher);
	hd_free(b->at[i]);
	b->at[i] = b->at[--b->n];
}

static bool is_there(const struct hd_batch *one)
{
	return one->wanted || !one->count.found || one->count.left;
}

/* ---- what is asked for */

static enum hd_err find_or_make(struct hd_batches *b, const struct hd_batches_ask *ask, struct hd_batch **one,
	struct hd_diag *diag)
{
	*one = find(b, ask->job);
	if (*one && (*one)->lease != ask->lease && is_there(*one))
		return hd_fail(diag, HD_E_AGAIN, "the batch job of lease %u of job %llu is there still",
			(*one)->lease, (unsigned long long)ask->job);
	for (uint32_t i = 0; *one && (*one)->lease != ask->lease && i < b->n; i++)
		if (b->at[i] == *one) {
			drop(b, i);
			*one = NULL;
		}
	return *one ? HD_OK : make(b, ask, one, diag);
}

enum hd_err hd_batches_find(struct hd_batches *b, const struct hd_batches_ask *ask, struct hd_diag *diag)
{
	struct hd_batch *one;

	return find_or_make(b, ask, &one, diag);
}

enum hd_err hd_batches_want(struct hd_batches *b, const struct hd_batches_ask *ask, struct hd_diag *diag)
{
	struct hd_batch *one = NULL;
	enum hd_err err = find_or_make(b, ask, &one, diag);

	if (err || one->wanted || one->left_ns != INT64_MIN)
		return err;
	one->wanted = true;
	one->launcher->ops->want(one->launcher, 1);
	return HD_OK;
}

static void leave(struct hd_batch *one)
{
	if (one->left_ns == INT64_MIN)
		one->left_ns = now(one->of);
	one->wanted = false;
	one->launcher->ops->want(one->launcher, 0);
}

void hd_batches_leave(struct hd_batches *b, uint64_t job)
{
	struct hd_batch *one = find(b, job);

	if (one)
		leave(one);
}

void hd_batches_kill(struct hd_batches *b, uint64_t job)
{
	struct hd_batch *one = find(b, job);

	if (!one)
		return;
	leave(one);
	one->launcher->ops->end(one->launcher);
}

void hd_batches_changed(struct hd_batches *b, uint64_t job)
{
	const struct hd_batch *one = find(b, job);

	if (one)
		one->launcher->ops->changed(one->launcher);
}

void hd_batches_forget(struct hd_batches *b, uint64_t job)
{
	struct hd_batch *one = find(b, job);

	if (!one)
		return;
	leave(one);
	one->forgotten = true;
}

/* ---- what is there */

static void refused(struct hd_batches *b, struct hd_batch *one, const char *why)
{
	const bool again = !strncmp(one->refusal, why, sizeof one->refusal - 1);

	one->refused_ns = now(b);
	snprintf(one->refusal, sizeof one->refusal, "%.199s", why);
	if (!again)
		b->say(b->user, "refused", one->job, why);
}

static void ended(struct hd_batches *b, struct hd_batch *one, const struct hd_launcher_end *end)
{
	char text[300];

	one->code = end->code;
	one->wanted = false;
	one->launcher->ops->want(one->launcher, 0);
	if (end->alike != 1)
		return;
	snprintf(text, sizeof text, "%.60s ended with exit code %d: %.63s in the folder of its run",
		end->name,
		end->code, end->log);
	b->say(b->user, "warning", one->job, text);
}

static void look_at(struct hd_batches *b, struct hd_batch *one)
{
	struct hd_launcher *l = one->launcher;
	struct hd_diag why = { "" };
	struct hd_launcher_end end;

	if (one->refused_ns != INT64_MIN && now(b) - one->refused_ns < HD_BATCHES_REFUSED_NS && one->wanted)
		return;
	one->refused_ns = INT64_MIN;
	if (one->left_ns != INT64_MIN && now(b) - one->left_ns >= HD_BATCHES_LEAVE_NS)
		l->ops->end(l);
	if (l->ops->look(l, &why))
		refused(b, one, why.text);
	while (l->ops->ended(l, &end))
		ended(b, one, &end);
	l->ops->count(l, &one->count);
	if (one->count.left)
		one->refusal[0] = '\0';
}

void hd_batches_look(struct hd_batches *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		look_at(b, b->at[i]);
	for (uint32_t i = b->n; i-- > 0;)
		if (b->at[i]->forgotten && !is_there(b->at[i]))
			drop(b, i);
}

uint32_t hd_batches_n(const struct hd_batches *b) { return b->n; }

struct hd_batch_seen hd_batches_at(const struct hd_batches *b, uint32_t i)
{
	const struct hd_batch *one = b->at[i];

	return (struct hd_batch_seen){ .job = one->job, .lease = one->lease, .type = one->type, .n = one->n,
		.there = is_there(one), .runs = one->count.running, .code = one->code };
}

bool hd_batches_of(const struct hd_batches *b, uint64_t job, struct hd_batch_seen *seen)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->at[i]->job == job) {
			*seen = hd_batches_at(b, i);
			return true;
		}
	return false;
}

void hd_batches_text(const struct hd_batches *b, uint64_t job, char *text, size_t cap)
{
	const struct hd_batch *one = find(b, job);

	text[0] = '\0';
	if (one)
		snprintf(text, cap, "%s%s%s", *one->refusal ? one->refusal : one->count.at,
			!*one->refusal && *one->count.why ? " waits: " : "",
			!*one->refusal ? one->count.why : "");
}

void hd_batches_count(const struct hd_batches *b, uint32_t type, struct hd_launcher_count *count,
	uint32_t *want)
{
	*count = (struct hd_launcher_count){ .found = true };
	*want = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct hd_batch *one = b->at[i];
		if (one->type != type)
			continue;
		*want += one->wanted ? one->n : 0;
		count->running += one->count.running ? one->n : 0;
		count->waiting += one->count.waiting ? one->n : 0;
		if (!*count->why)
			memcpy(count->why, one->count.why, sizeof count->why);
	}
}

/* ---- begin, end */

enum hd_err hd_batches_open(struct hd_batches **batches, const struct hd_batches_spec *spec,
	hd_batches_say *say,
	void *user, struct hd_diag *diag)
{
	struct hd_batches *b = hd_alloc(sizeof *b);

	if (!b)
		return hd_fail(diag, HD_E_NOMEM, "no memory for batch jobs");
	*b = (struct hd_batches){ .spec = *spec, .say = say, .user = user };
	*batches = b;
	return HD_OK;
}

void hd_batches_close(struct hd_batches *b)
{
	while (b && b->n)
		drop(b, b->n - 1);
	if (b)
		hd_free(b->at);
	hd_free(b);
}
