/* testing_dispatch.h -- for tests: a world without processes in which the machine of dispatch.h works, dies
 * and is rebuilt. Included by one file of tests each. */
#ifndef HD_SCHEDULER_DISPATCH_TESTING_DISPATCH_H
#define HD_SCHEDULER_DISPATCH_TESTING_DISPATCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/dispatch.h"
#include "scheduler/dispatch/int.h"
#include "tests/check.h"

/* A world without processes: devices on which a worker is or is not, runs that compute, leave, die; a disk
 * that keeps what was stored. The machine can be dropped at any record or order and is rebuilt from
 * that disk. Nothing here looks at how the machine decides. */

enum { DEVICES = 6, JOBS = 24, STEP_PER_S = 5, WINDOWS = 8, DRAIN_S = 15 };

static const struct hd_dispatch_type types[] = { { "fast", 3, 2, 2 }, { "slow", 3, 1, 1 } },
	one[] = { { "only", DEVICES, 1, 1 } };

struct fake_run {
	bool alive, halting, ends_badly;
	uint32_t lease, times_done;
	double steps;
	int32_t left;                     /* exit code to report; -1: none */
};

struct world {
	struct hd_dispatch *d;
	const char *policy;
	double now_s;
	uint64_t rng;
	/* on the disk */
	uint32_t njobs;
	struct hd_dispatch_job row[JOBS + 1];
	struct hd_dispatch_lease lease[JOBS + 1];
	struct hd_kept window[WINDOWS];         /* name "": none; came_s: of the machine that knows it */
	double came_s[WINDOWS];
	const char *user;                         /* of jobs that are submitted; NULL: none */
	uint32_t npartitions;                     /* of the setting; jobs take turns in them */
	const struct hd_dispatch_partition *partition;
	/* out there */
	uint64_t worker[DEVICES];         /* job of the worker there; 0: none */
	bool device_out[DEVICES], barren[DEVICES];       /* barren: whoever is started there ends at once */
	struct fake_run run[JOBS + 1];
	double speed_of[JOBS + 1], ran_s[JOBS + 1];      /* ran: with workers, in all its runs */
	bool stubborn[JOBS + 1];          /* does not obey STOP */
	bool clings[JOBS + 1];            /* nor its workers LEAVE */
	/* when the machine is to be dropped */
	int crash_at, point;              /* records and orders so far; below 0: never */
	uint32_t crashes, nresized, nmoved, nkilled, nstarts, nheld;
	struct hd_text log;
	struct hd_arena arena;
};

static inline uint64_t draw(struct world *w, uint64_t n)
{
	w->rng = w->rng * 6364136223846793005u + 1442695040888963407u;
	return (w->rng >> 33) % n;
}

static inline uint32_t workers_of(const struct world *w, uint64_t job)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < DEVICES; v++)
		n += w->worker[v] == job;
	return n;
}

/* ---- what must always hold of the disk ---- */

static inline void check_disk(const struct world *w)
{
	uint64_t of[DEVICES] = { 0 };

	for (uint64_t id = 1; id <= w->njobs; id++) {
		const struct hd_dispatch_lease *l = &w->lease[id];
		for (uint32_t i = 0; i < l->n && l->state != HD_LEASE_RELEASED; i++) {
			CHECK(of[l->device[i]] == 0, "device %u is in the leases of jobs %llu and %llu",
				l->device[i], (unsigned long long)of[l->device[i]],
				(unsigned long long)id);
			of[l->device[i]] = id;
		}
	}
	for (uint64_t id = 1; id <= w->njobs; id++) {
		uint32_t n = 0;
		for (uint64_t k = 1; k <= w->njobs; k++)
			n += w->row[k].terms.array == id && w->lease[k].state != HD_LEASE_RELEASED;
		CHECK(w->row[id].terms.array != id || !w->row[id].terms.at_once ||
			n <= w->row[id].terms.at_once, "%u tasks of array %llu have leases, %u may", n,
			(unsigned long long)id, w->row[id].terms.at_once);
	}
}

/* By the disk: of the first task of an array, all of them. */
static inline enum hd_after_now judge(const struct world *w, const struct hd_after *a)
{
	uint32_t open = 0, failed = 0;

	for (uint64_t id = a->job; id <= w->njobs; id++) {
		if (id != a->job && w->row[id].terms.array != a->job)
			break;
		open += w->row[id].state == HD_DISPATCH_OPEN;
		failed += w->row[id].state != HD_DISPATCH_OPEN && w->row[id].state != HD_DISPATCH_DONE;
	}
	if (a->kind == HD_AFTER_OK)
		return failed ? HD_AFTER_BROKEN : open ? HD_AFTER_WAITS : HD_AFTER_MET;
	if (a->kind == HD_AFTER_FAIL)
		return failed ? HD_AFTER_MET : open ? HD_AFTER_WAITS : HD_AFTER_BROKEN;
	return open ? HD_AFTER_WAITS : HD_AFTER_MET;
}

/* What a job runs after, judged by the disk alone. */
static inline void check_terms(const struct world *w, uint64_t job)
{
	const struct hd_job_terms *t = &w->row[job].terms;

	CHECK(!t->held && !w->row[job].timeout, "job %llu is started, and held", (unsigned long long)job);
	for (uint32_t i = 0; i < t->nafter; i++) {
		CHECK(judge(w, &t->after[i]) == HD_AFTER_MET, "job %llu is started after %s of job %llu, "
			"which is %s",
			(unsigned long long)job, hd_after_name(t->after[i].kind),
			(unsigned long long)t->after[i].job,
			hd_dispatch_state_name(w->row[t->after[i].job].state));
	}
}

/* By the setting alone. */
static inline bool is_of(const struct world *w, uint64_t job, uint32_t device)
{
	bool is = !w->npartitions;

	for (uint32_t i = 0; i < w->npartitions; i++)
		for (uint32_t k = 0; k < w->partition[i].ndevices; k++)
			is |= w->partition[i].device[k] == device &&
				!strcmp(w->partition[i].name, w->row[job].partition);
	return is;
}

static inline bool leased(const struct world *w, uint64_t job, uint32_t device)
{
	const struct hd_dispatch_lease *l = &w->lease[job];

	for (uint32_t i = 0; i < l->n && l->state != HD_LEASE_RELEASED; i++)
		if (l->device[i] == device)
			return true;
	return false;
}

/* Rule 10; answers come some passes later. */
static bool apart;
static inline int set_apart(void **state) { (void)state; apart = true; return 0; }
static inline int set_within(void **state) { (void)state; apart = false; return 0; }

/* Rule 18. */
static bool one_set;
static inline int set_whole(void **state) { (void)state; one_set = true; return 0; }
static inline int set_parts(void **state) { (void)state; one_set = false; return 0; }

/* By the disk alone. */
static inline void check_set(const struct hd_dispatch_lease *was, const struct hd_dispatch_lease *is)
{
	CHECK(!one_set || is->state != HD_LEASE_RESIZE, "job %llu is resized while it runs",
		(unsigned long long)is->job);
	CHECK(!one_set || was->number != is->number || is->state == HD_LEASE_RELEASED || (was->n == is->n &&
		!memcmp(was->device, is->device, is->n * sizeof *is->device)),
		"lease %u of job %llu has another set", is->number, (unsigned long long)is->job);
}

static inline bool step(struct world *w, const struct hd_dispatch_event *e);

/* ---- orders ---- */

static inline void do_start(struct world *w, const struct hd_dispatch_out *o)
{
	struct fake_run *r = &w->run[o->job];

	CHECK(w->row[o->job].state == HD_DISPATCH_OPEN, "job %llu is started, and is %s",
		(unsigned long long)o->job,
		hd_dispatch_state_name(w->row[o->job].state));
	check_terms(w, o->job);
	if (r->alive || (r->left >= 0 && r->lease == o->lease))
		/* its lock is held, or what it left behind is of this lease */
		return;
	CHECK(r->times_done == 0, "job %llu is done, and started", (unsigned long long)o->job);
	*r = (struct fake_run){ .alive = true, .lease = o->lease, .steps = r->steps, .left = -1,
		.ends_badly = r->ends_badly };
	w->nstarts++;
}

/* By the disk alone: whether the device is kept from the job, so long before the window begins. */
static inline bool is_kept(const struct world *w, uint64_t job, uint32_t device, double before_s)
{
	bool reserved = false, its = false, closed = false;

	for (uint32_t i = 0; i < WINDOWS; i++) {
		const struct hd_kept *of = &w->window[i];
		bool there = false;
		for (uint32_t k = 0; k < of->ndevices; k++)
			there |= of->device[k] == device;
		if (!of->name[0] || !there || w->now_s < of->from_s - before_s || w->now_s >= of->until_s)
			continue;
		closed |= of->kind != HD_WINDOW_RESERVED;
		reserved |= of->kind == HD_WINDOW_RESERVED;
		its |= of->kind == HD_WINDOW_RESERVED && !strcmp(of->user, w->row[job].user);
	}
	return closed || (reserved && !its);
}

static inline void do_worker(struct world *w, const struct hd_dispatch_out *o)
{
	CHECK(!is_kept(w, o->job, o->device, DRAIN_S),
		"a worker of job %llu on device %u, which a window keeps", (unsigned long long)o->job,
		o->device);
	CHECK(is_of(w, o->job, o->device), "a worker of job %llu on device %u, which is not of its partition",
		(unsigned long long)o->job, o->device);
	CHECK(leased(w, o->job, o->device),
		"a worker of job %llu on device %u, which the disk knows in no lease of it",
		(unsigned long long)o->job,
		o->device);
	CHECK(w->worker[o->device] == 0 || w->worker[o->device] == o->job, "two jobs on device %u",
		o->device);
	if (w->run[o->job].alive && !w->barren[o->device])
		w->worker[o->device] = o->job;
}

static inline void end_run(struct world *w, uint64_t job, int32_t code)
{
	w->run[job].alive = false;
	w->run[job].left = code;
	for (uint32_t v = 0; v < DEVICES && code != 137; v++)
		if (w->worker[v] == job)
			w->worker[v] = 0;
}

static inline void do_leave(struct world *w, const struct hd_dispatch_out *o)
{
	uint64_t job = w->worker[o->device];

	if (w->clings[job] && w->run[job].alive)
		return;
	if (w->run[job].alive && workers_of(w, job) == 1)
		end_run(w, job, 75);              /* the others died meanwhile: the last one commits */
	w->worker[o->device] = 0;
}

static inline void order(struct world *w, const struct hd_dispatch_out *o)
{
	switch (o->kind) {
	case HD_DISPATCH_DO_START:
		do_start(w, o);
		break;
	case HD_DISPATCH_DO_WORKER:
		do_worker(w, o);
		break;
	case HD_DISPATCH_DO_LEAVE:
		do_leave(w, o);
		break;
	case HD_DISPATCH_DO_STOP:
		w->run[o->job].halting = true;
		if (!w->run[o->job].alive && (w->run[o->job].left < 0 || w->run[o->job].lease != o->lease)) {
			w->run[o->job].lease = o->lease;          /* nothing of it runs: so it has left */
			w->run[o->job].left = 75;
		}
		break;
	case HD_DISPATCH_DO_KILL:
		w->nkilled++;
		if (w->run[o->job].alive || w->run[o->job].left < 0 || w->run[o->job].lease != o->lease)
			end_run(w, o->job, 137);  /* else it has ended by itself, and said how */
		w->run[o->job].lease = o->lease;
		for (uint32_t v = 0; v < DEVICES; v++)
			if (w->worker[v] == o->job)
				w->worker[v] = 0;
		break;
	case HD_DISPATCH_DO_SCALE: case HD_DISPATCH_DO_JOB: case HD_DISPATCH_DO_LEASE:
	case HD_DISPATCH_DO_NOTE: case HD_DISPATCH_DO_NKINDS:
		break;
	}
}

static inline bool is_record(const struct hd_dispatch_out *o) { return o->kind <= HD_DISPATCH_DO_NOTE; }

/* ---- the machine, dropped and rebuilt ---- */

static inline void build(struct world *w)
{
	const struct hd_dispatch_setting set = { .policy = w->policy, .round_s = 20, .min_reset_s = 5,
		.move_s = 1, .start_s = 30, .drain_s = DRAIN_S,
		.ntypes = strcmp(w->policy, "wfs") ? 2 : 1, .type = strcmp(w->policy, "wfs") ? types : one,
		.began_s = w->njobs ? 0 : -1, .npartitions = w->npartitions, .partition = w->partition,
		.apart = apart, .whole = one_set };
	struct hd_diag diag = { "" };

	CHECK(!hd_dispatch_create(&w->d, &set, &w->log, &diag), "%s", diag.text);
	for (uint64_t id = 1; id <= w->njobs; id++)
		if (w->row[id].state == HD_DISPATCH_OPEN || w->lease[id].state != HD_LEASE_RELEASED)
			CHECK(!hd_dispatch_restore(w->d, &w->row[id], &w->lease[id], &diag), "%s", diag.text);
	for (uint32_t i = 0; i < WINDOWS; i++)
		if (w->window[i].name[0] && w->window[i].until_s > w->now_s) {
			w->came_s[i] = w->now_s;
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW,
				.window = &w->window[i], .ok = true });
		}
	for (uint32_t v = 0; v < DEVICES; v++) {
		if (w->device_out[v])
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v });
		if (w->worker[v])
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS,
				.device = v, .job = w->worker[v], .ok = true, .code = -1 });
	}
}

static inline void crash(struct world *w)
{
	w->crashes++;
	w->crash_at = -1;
	hd_dispatch_destroy(w->d);
	build(w);
}

/* false: the machine was dropped on the way. */
static inline bool step(struct world *w, const struct hd_dispatch_event *e)
{
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_dispatch_step(w->d, e, w->now_s, &outs, &diag);

	CHECK(!err, "event %d: %s", e->kind, diag.text);
	if (outs.n && w->crash_at == w->point++) {        /* before the transaction */
		crash(w);
		return false;
	}
	size_t i = 0;
	for (; i < outs.n && is_record(&outs.at[i]); i++) {
		const struct hd_dispatch_out *o = &outs.at[i];
		if (o->kind == HD_DISPATCH_DO_JOB) {
			w->row[o->job] = *o->row;
			w->njobs = o->job > w->njobs ? (uint32_t)o->job : w->njobs;
		}
		if (o->kind == HD_DISPATCH_DO_LEASE) {
			check_set(&w->lease[o->job], o->held);
			w->lease[o->job] = *o->held;
		}
		w->nresized += o->kind == HD_DISPATCH_DO_NOTE && !strcmp(o->name, "resize");
		w->nheld += o->kind == HD_DISPATCH_DO_NOTE && !strcmp(o->name, "hold");
		w->nmoved += o->kind == HD_DISPATCH_DO_NOTE && !strcmp(o->name, "move");
	}
	check_disk(w);
	for (; i < outs.n; i++) {
		CHECK(!is_record(&outs.at[i]), "a record after an order");
		if (w->crash_at == w->point++) {
			crash(w);
			return false;
		}
		order(w, &outs.at[i]);
	}
	return true;
}

/* ---- time ---- */

static inline void compute(struct world *w, double took_s)
{
	for (uint64_t id = 1; id <= w->njobs; id++) {
		struct fake_run *r = &w->run[id];
		double rate = 0;
		if (!r->alive)
			continue;
		for (uint32_t v = 0; v < DEVICES; v++)
			rate += w->worker[v] == id ? w->speed_of[id] * (v < 3 ? 2 : 1) : 0;
		r->steps += rate * took_s;
		w->ran_s[id] += workers_of(w, id) ? took_s : 0;
		if (r->steps >= (double)w->row[id].steps) {
			r->steps = (double)w->row[id].steps;
			r->times_done++;
			end_run(w, id, 0);
		} else if (r->halting && !w->stubborn[id]) {
			end_run(w, id, 75);
		} else if (r->ends_badly && workers_of(w, id)) {
			end_run(w, id, 1);
		}
	}
}

/* What a daemon sees when it looks. */
static inline void look(struct world *w)
{
	static uint64_t reported[DEVICES];

	for (uint32_t v = 0; v < DEVICES; v++) {
		struct hd_dispatch_device seen = hd_dispatch_device(w->d, v);
		if (seen.there != (w->worker[v] != 0) || (w->worker[v] && reported[v] != w->worker[v])) {
			reported[v] = w->worker[v];
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS,
				.device = v, .job = w->worker[v], .ok = w->worker[v] != 0,
				.code = -1 });
		}
	}
	for (uint64_t id = 1; id <= w->njobs; id++) {
		const struct fake_run *r = &w->run[id];
		if (!hd_dispatch_lease(w->d, id))
			continue;
		if (r->alive)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SEEN, .job = id,
				.lease = r->lease, .step = (uint64_t)r->steps,
				.n = workers_of(w, id) });
		else if (r->left >= 0)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_ENDED, .job = id,
				.lease = r->lease, .code = r->left,
				.step = (uint64_t)r->steps, .early = r->left == 0 &&
				r->steps < (double)w->row[id].steps,
				.text = r->left == 1 ? "it fell over" : "" });
	}
}

/* As a thread that goes on with its question when its answer is no longer awaited; the machine may be gone
 * before it is. */
static inline void give_up(struct world *w)
{
	struct hd_dispatch_question *q = hd_dispatch_asks(w->d);

	hd_dispatch_hold(q);
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_GIVE_UP,
		.text = "it takes too long" });
	CHECK(hd_dispatch_asks(w->d) != q, "what was given up is asked for");
	hd_dispatch_solve(q);
	hd_dispatch_release(q);
}

static inline void pass(struct world *w, double took_s)
{
	compute(w, took_s);
	w->now_s += took_s;
	look(w);
	if (hd_dispatch_asks(w->d) && !draw(w, 16))
		give_up(w);
	if (hd_dispatch_asks(w->d) && draw(w, 3)) {
		if (draw(w, 2))
			hd_dispatch_solve(hd_dispatch_asks(w->d));  /* else the step does */
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
	}
	if (step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK }))
		CHECK(hd_dispatch_next_s(w->d) > w->now_s,
			"at %.17g s it wants to be called again at %.17g s", w->now_s,
			hd_dispatch_next_s(w->d));
}

static inline void begin_with(struct world *w, const char *policy, uint64_t seed,
	const struct hd_dispatch_partition *partition, uint32_t npartitions)
{
	memset(w, 0, sizeof *w);
	w->partition = partition;
	w->npartitions = npartitions;
	w->policy = policy;
	w->rng = seed * 2654435761u + 1;
	w->crash_at = -1;
	for (uint32_t i = 0; i <= JOBS; i++) {
		w->lease[i].state = HD_LEASE_RELEASED;
		w->run[i].left = -1;
		w->speed_of[i] = 1;
	}
	hd_arena_init(&w->arena, 0);
	hd_text_init(&w->log, &w->arena);
	build(w);
}

static inline void begin(struct world *w, const char *policy, uint64_t seed)
{
	begin_with(w, policy, seed, NULL, 0);
}

static inline void finish(struct world *w)
{
	hd_dispatch_destroy(w->d);
	hd_arena_finish(&w->arena);
}

/* As the daemon does: what a job runs after is judged of those that are over. n tasks of an array, 0: one
 * job. */
static inline void submit_on(struct world *w, uint64_t steps, uint32_t scale,
	const struct hd_job_terms *terms,
	uint32_t n)
{
	uint32_t first = w->njobs + 1, count = n ? n : 1;
	struct hd_dispatch_job row[JOBS];

	for (uint32_t i = 0; i < count; i++)
		row[i] = (struct hd_dispatch_job){ .id = first + i, .scale = scale, .weight = 1,
			.deadline_s = INFINITY, .steps = steps, .min = strcmp(w->policy, "wfs") ? 0 : 1,
			.max = strcmp(w->policy, "wfs") ? 0 : 3, .nvns = 16,
			.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };
	do {                                      /* dropped before it was stored: the user tries again */
		for (uint32_t i = 0; i < count; i++) {
			row[i].terms = *terms;
			row[i].terms.array = n ? first : 0;
			row[i].terms.index = i;
			snprintf(row[i].user, sizeof row[i].user, "%s", w->user ? w->user : "");
			for (uint32_t k = 0; k < terms->nafter; k++) {
				struct hd_after *a = &row[i].terms.after[k];
				a->now = judge(w, a);
			}
		}
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = row, .n =
			n });
	} while (w->njobs < first + count - 1);
}

static inline void submit(struct world *w, uint64_t steps, uint32_t scale)
{
	submit_on(w, steps, scale, &(struct hd_job_terms){ 0 }, 0);
}

static inline bool hold(struct world *w, uint64_t id, bool held)
{
	const struct hd_dispatch_job *row = hd_dispatch_job(w->d, id);

	if (!row || row->state != HD_DISPATCH_OPEN || row->cancel || row->terms.held == held)
		return true;
	return step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_HOLD, .job = id, .ok = held });
}

static inline bool is_over(const struct world *w)
{
	for (uint64_t id = 1; id <= w->njobs; id++)
		if (w->row[id].state == HD_DISPATCH_OPEN || w->lease[id].state != HD_LEASE_RELEASED)
			return false;
	return true;
}

static inline void run_out(struct world *w)
{
	for (int i = 0; i < 4000 && !is_over(w); i++)
		pass(w, 0.5);
	for (uint64_t id = 1; id <= w->njobs; id++)
		CHECK(w->row[id].state != HD_DISPATCH_OPEN,
			"job %llu is lost: lease %s, %u devices, step %g of %llu, why %s",
			(unsigned long long)id,
			hd_lease_name(w->lease[id].state), w->lease[id].n, w->run[id].steps,
			(unsigned long long)w->row[id].steps, w->row[id].why);
	CHECK(is_over(w), "a lease is left");
	for (uint32_t v = 0; v < DEVICES; v++)
		CHECK(w->worker[v] == 0, "a worker is left on device %u", v);
}

static inline void check_done(const struct world *w)
{
	for (uint64_t id = 1; id <= w->njobs; id++) {
		bool done = w->row[id].state == HD_DISPATCH_DONE;
		CHECK(w->run[id].times_done == done, "job %llu is %s and ended %u times",
			(unsigned long long)id, hd_dispatch_state_name(w->row[id].state),
			w->run[id].times_done);
	}
}

static inline void pass_a_boundary(struct world *w)
{
	for (double at_s = hd_dispatch_boundary_s(w->d); w->now_s < at_s;)
		pass(w, 0.5);
}

#endif
