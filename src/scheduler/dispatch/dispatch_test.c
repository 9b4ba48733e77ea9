#include "scheduler/dispatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/dispatch/int.h"
#include "tests/check.h"

/* A world without processes: devices on which a worker is or is not, runs that compute, leave, die; a disk
 * that keeps what was stored. The machine can be dropped at any record or order and is rebuilt from
 * that disk. Nothing here looks at how the machine decides. */

enum { DEVICES = 6, JOBS = 24, STEP_PER_S = 5 };

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
	/* out there */
	uint64_t worker[DEVICES];         /* job of the worker there; 0: none */
	bool device_out[DEVICES], barren[DEVICES];       /* barren: whoever is started there ends at once */
	struct fake_run run[JOBS + 1];
	double speed_of[JOBS + 1];
	bool stubborn[JOBS + 1];          /* does not obey STOP */
	/* when the machine is to be dropped */
	int crash_at, point;              /* records and orders so far; below 0: never */
	uint32_t crashes, nresized, nmoved, nkilled, nstarts;
	struct hd_text log;
	struct hd_arena arena;
};

static uint64_t draw(struct world *w, uint64_t n)
{
	w->rng = w->rng * 6364136223846793005u + 1442695040888963407u;
	return (w->rng >> 33) % n;
}

static uint32_t workers_of(const struct world *w, uint64_t job)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < DEVICES; v++)
		n += w->worker[v] == job;
	return n;
}

/* ---- what must always hold of the disk ---- */

static void check_disk(const struct world *w)
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
}

static bool leased(const struct world *w, uint64_t job, uint32_t device)
{
	const struct hd_dispatch_lease *l = &w->lease[job];

	for (uint32_t i = 0; i < l->n && l->state != HD_LEASE_RELEASED; i++)
		if (l->device[i] == device)
			return true;
	return false;
}

/* Rule 10; answers come some passes later. */
static bool apart;
static int set_apart(void **state) { (void)state; apart = true; return 0; }
static int set_within(void **state) { (void)state; apart = false; return 0; }

static bool step(struct world *w, const struct hd_dispatch_event *e);

/* ---- orders ---- */

static void do_start(struct world *w, const struct hd_dispatch_out *o)
{
	struct fake_run *r = &w->run[o->job];

	CHECK(w->row[o->job].state == HD_DISPATCH_OPEN, "job %llu is started, and is %s",
		(unsigned long long)o->job,
		hd_dispatch_state_name(w->row[o->job].state));
	if (r->alive || (r->left >= 0 && r->lease == o->lease))
		/* its lock is held, or what it left behind is of this lease */
		return;
	CHECK(r->times_done == 0, "job %llu is done, and started", (unsigned long long)o->job);
	*r = (struct fake_run){ .alive = true, .lease = o->lease, .steps = r->steps, .left = -1,
		.ends_badly = r->ends_badly };
	w->nstarts++;
}

static void do_worker(struct world *w, const struct hd_dispatch_out *o)
{
	CHECK(leased(w, o->job, o->device),
		"a worker of job %llu on device %u, which the disk knows in no lease of it",
		(unsigned long long)o->job,
		o->device);
	CHECK(w->worker[o->device] == 0 || w->worker[o->device] == o->job, "two jobs on device %u",
		o->device);
	if (w->run[o->job].alive && !w->barren[o->device])
		w->worker[o->device] = o->job;
}

static void end_run(struct world *w, uint64_t job, int32_t code)
{
	w->run[job].alive = false;
	w->run[job].left = code;
	for (uint32_t v = 0; v < DEVICES && code != 137; v++)
		if (w->worker[v] == job)
			w->worker[v] = 0;
}

static void do_leave(struct world *w, const struct hd_dispatch_out *o)
{
	uint64_t job = w->worker[o->device];

	if (w->run[job].alive && workers_of(w, job) == 1)
		end_run(w, job, 75);              /* the others died meanwhile: the last one commits */
	w->worker[o->device] = 0;
}

static void order(struct world *w, const struct hd_dispatch_out *o)
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

static bool is_record(const struct hd_dispatch_out *o) { return o->kind <= HD_DISPATCH_DO_NOTE; }

/* ---- the machine, dropped and rebuilt ---- */

static void build(struct world *w)
{
	const struct hd_dispatch_setting set = { .policy = w->policy, .round_s = 20, .min_reset_s = 5,
		.move_s = 1, .start_s = 30, .drain_s = 15,
		.ntypes = strcmp(w->policy, "wfs") ? 2 : 1, .type = strcmp(w->policy, "wfs") ? types : one,
		.began_s = w->njobs ? 0 : -1,
		.apart = apart };
	struct hd_diag diag = { "" };

	CHECK(!hd_dispatch_create(&w->d, &set, &w->log, &diag), "%s", diag.text);
	for (uint64_t id = 1; id <= w->njobs; id++)
		if (w->row[id].state == HD_DISPATCH_OPEN || w->lease[id].state != HD_LEASE_RELEASED)
			CHECK(!hd_dispatch_restore(w->d, &w->row[id], &w->lease[id], &diag), "%s", diag.text);
	for (uint32_t v = 0; v < DEVICES; v++) {
		if (w->device_out[v])
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v });
		if (w->worker[v])
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_PROCESS,
				.device = v, .job = w->worker[v], .ok = true, .code = -1 });
	}
}

static void crash(struct world *w)
{
	w->crashes++;
	w->crash_at = -1;
	hd_dispatch_destroy(w->d);
	build(w);
}

/* false: the machine was dropped on the way. */
static bool step(struct world *w, const struct hd_dispatch_event *e)
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
		if (o->kind == HD_DISPATCH_DO_LEASE)
			w->lease[o->job] = *o->held;
		w->nresized += o->kind == HD_DISPATCH_DO_NOTE && !strcmp(o->name, "resize");
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

static void compute(struct world *w, double took_s)
{
	for (uint64_t id = 1; id <= w->njobs; id++) {
		struct fake_run *r = &w->run[id];
		double rate = 0;
		if (!r->alive)
			continue;
		for (uint32_t v = 0; v < DEVICES; v++)
			rate += w->worker[v] == id ? w->speed_of[id] * (v < 3 ? 2 : 1) : 0;
		r->steps += rate * took_s;
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
static void look(struct world *w)
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
static void give_up(struct world *w)
{
	struct hd_dispatch_question *q = hd_dispatch_asks(w->d);

	hd_dispatch_hold(q);
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_GIVE_UP,
		.text = "it takes too long" });
	CHECK(hd_dispatch_asks(w->d) != q, "what was given up is asked for");
	hd_dispatch_solve(q);
	hd_dispatch_release(q);
}

static void pass(struct world *w, double took_s)
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

static void begin(struct world *w, const char *policy, uint64_t seed)
{
	memset(w, 0, sizeof *w);
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

static void finish(struct world *w)
{
	hd_dispatch_destroy(w->d);
	hd_arena_finish(&w->arena);
}

static void submit(struct world *w, uint64_t steps, uint32_t scale)
{
	const struct hd_dispatch_job row = { .id = w->njobs + 1, .scale = scale, .weight = 1,
		.deadline_s = INFINITY, .steps = steps,
		.min = strcmp(w->policy, "wfs") ? 0 : 1, .max = strcmp(w->policy, "wfs") ? 0 : 3, .nvns = 16,
		.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } } };

	do                                        /* dropped before it was stored: the user tries again */
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	while (w->njobs < row.id);
}

static bool is_over(const struct world *w)
{
	for (uint64_t id = 1; id <= w->njobs; id++)
		if (w->row[id].state == HD_DISPATCH_OPEN || w->lease[id].state != HD_LEASE_RELEASED)
			return false;
	return true;
}

static void run_out(struct world *w)
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

static void check_done(const struct world *w)
{
	for (uint64_t id = 1; id <= w->njobs; id++) {
		bool done = w->row[id].state == HD_DISPATCH_DONE;
		CHECK(w->run[id].times_done == done, "job %llu is %s and ended %u times",
			(unsigned long long)id, hd_dispatch_state_name(w->row[id].state),
			w->run[id].times_done);
	}
}

/* ---- tests ---- */

static void jobs_are_started_run_and_end(void **state)
{
	static const char *const policies[] = { "fifo", "isolated", "las", "makespan", "sjf", "wfs" };
	(void)state;

	for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
		struct world w;
		if (p > 1 && p < 4 && !hd_policy_has_lp())
			continue;
		begin(&w, policies[p], 1);
		for (int i = 0; i < 9; i++)
			submit(&w, 100 + 20 * (uint64_t)i, 1 + (uint32_t)i % 3);
		run_out(&w);
		check_done(&w);
		for (uint64_t id = 1; id <= w.njobs; id++)
			CHECK(w.row[id].state == HD_DISPATCH_DONE, "%s: job %llu: %s", policies[p],
				(unsigned long long)id, w.row[id].why);
		finish(&w);
	}
}

/* The whole history of a small cluster, once for each point at which the machine can be dropped. */
static int story(struct world *w, int crash_at)
{
	begin(w, hd_policy_has_lp() ? "las" : "isolated", 7);
	w->crash_at = crash_at;
	submit(w, 120, 1);
	submit(w, 150, 2);
	pass(w, 1);
	submit(w, 90, 3);
	for (int i = 0; i < 3; i++)
		submit(w, 60, 1);
	for (int i = 0; i < 12; i++)
		pass(w, 0.5);
	w->device_out[0] = true;
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0 });
	submit(w, 40, 2);
	pass(w, 1);
	if (hd_dispatch_job(w->d, 2) && !w->row[2].cancel && w->row[2].state == HD_DISPATCH_OPEN) {
		while (!step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 2 }) &&
			!w->row[2].cancel)
			;
	}
	pass(w, 1);
	w->device_out[0] = false;
	(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0, .ok = true });
	run_out(w);
	check_done(w);
	return w->point;
}

static void a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice(void **state)
{
	struct world w;
	(void)state;

	int points = story(&w, -1);
	finish(&w);
	CHECK(points > 60, "only %d points", points);
	for (int k = 0; k < points; k++) {
		(void)story(&w, k);
		CHECK(w.crashes == 1, "point %d was not reached", k);
		for (uint64_t id = 1; id <= w.njobs; id++)
			CHECK(w.row[id].state == (id == 2 ? HD_DISPATCH_CANCELLED : HD_DISPATCH_DONE),
				"death at %d: job %llu is %s: %s", k,
				(unsigned long long)id, hd_dispatch_state_name(w.row[id].state),
				w.row[id].why);
		finish(&w);
	}
}

static void happen(struct world *w)
{
	uint64_t id = 1 + draw(w, w->njobs ? w->njobs : 1);
	uint32_t v = (uint32_t)draw(w, DEVICES);
	struct hd_dispatch_outs outs;

	switch (draw(w, 12)) {
	case 0:
		if (w->njobs < JOBS)
			submit(w, 20 + draw(w, 200), 1 + (uint32_t)draw(w, 3));
		break;
	case 1:
		if (draw(w, 4) == 0 && hd_dispatch_job(w->d, id) &&
			hd_dispatch_job(w->d, id)->state == HD_DISPATCH_OPEN &&
			!hd_dispatch_job(w->d, id)->cancel)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL,
				.job = id });
		break;
	case 2:
		w->device_out[v] = !w->device_out[v];
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = v,
			.ok = !w->device_out[v] });
		break;
	case 3:
		if (hd_dispatch_job(w->d, id) && hd_dispatch_job(w->d, id)->state == HD_DISPATCH_OPEN)
			(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WEIGHT, .job = id,
				.value = 0.25 * (double)(1 + draw(w, 16)) });
		break;
	case 4:                                   /* a worker dies */
		w->worker[v] = 0;
		break;
	case 5:                                   /* all of a run dies */
		if (w->run[id].alive)
			end_run(w, id, 137);
		break;
	case 6:
		w->stubborn[id] = draw(w, 3) == 0;
		break;
	case 7:
		if (draw(w, 3) == 0)
			crash(w);
		break;
	case 8:
		w->crash_at = w->point + (int)draw(w, 6);
		break;
	case 9:                                   /* nonsense is refused and changes nothing */
		assert_int_equal(hd_dispatch_step(w->d, &(struct hd_dispatch_event){ .kind =
			HD_DISPATCH_IN_CANCEL, .job = 1000 }, w->now_s, &outs, NULL),
			HD_E_NOTFOUND);
		assert_int_equal(outs.n, 0);
		break;
	default:
		pass(w, 0.25 * (double)(1 + draw(w, 30)));
	}
}

static void whatever_happens_no_device_is_in_two_leases_and_every_job_ends(void **state)
{
	static const char *const policies[] = { "las", "wfs", "fifo", "isolated", "makespan", "wfs", "sjf",
		"las-plain" };
	uint32_t resized = 0, moved = 0, killed = 0, crashes = 0;
	const char *more = getenv("HD_DISPATCH_SEEDS");
	(void)state;

	for (uint64_t seed = 0; seed < (more ? strtoull(more, NULL, 10) : 120); seed++) {
		struct world w;
		const char *policy = policies[seed % (sizeof policies / sizeof *policies)];
		begin(&w, hd_policy_has_lp() ? policy : "fifo", seed);
		for (int i = 0; i < 120; i++)
			happen(&w);
		w.crash_at = -1;
		for (uint32_t i = 0; i < DEVICES; i++)
			if (w.device_out[i]) {
				w.device_out[i] = false;
				(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
					.device = i, .ok = true });
			}
		for (uint64_t id = 0; id <= JOBS; id++)
			w.stubborn[id] = false;
		run_out(&w);
		check_done(&w);
		resized += w.nresized;
		moved += w.nmoved;
		killed += w.nkilled;
		crashes += w.crashes;
		finish(&w);
	}
	CHECK(resized > 10 && moved > 0 && killed > 0 && crashes > 100,
		"%u resized, %u moved, %u killed, %u crashes", resized, moved, killed, crashes);
}

static void a_log_repeated_writes_the_same_bytes(void **state)
{
	struct hd_text again;
	struct hd_diag diag = { "" };
	bool given_up = false;
	uint32_t started = 0;
	struct world w;
	(void)state;

	for (uint64_t seed = 500; seed < 506; seed++) {
		begin(&w, hd_policy_has_lp() ? "las" : "isolated", seed);
		for (int i = 0; i < 80; i++)
			happen(&w);
		hd_text_init(&again, &w.arena);
		CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s",
			diag.text);
		CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len), "%zu bytes, then %zu",
			w.log.len, again.len);
		CHECK(w.log.len > 2000, "%zu bytes", w.log.len);
		started += strstr(w.log.at, "\"do\":\"worker\"") != NULL;
		given_up |= strstr(w.log.at, "\"in\":\"GIVE_UP\"") != NULL;
		finish(&w);
	}
	CHECK(started >= 4 && given_up == apart, "logs with a start: %u; a policy that was given up: %d",
		started, given_up);
}

static void a_run_that_fails_five_times_is_dropped_with_the_reason(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	w.run[1].ends_badly = true;
	for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++)
		pass(&w, 0.01);                   /* dead before its first step */
	assert_int_equal(w.row[1].state, HD_DISPATCH_FAILED);
	assert_int_equal(w.row[1].failures, HD_DISPATCH_FAILURES);
	assert_int_equal(w.nstarts, HD_DISPATCH_FAILURES);
	CHECK(strstr(w.row[1].why, "5 runs in a row failed without a step") &&
		strstr(w.row[1].why, "it fell over"), "%s", w.row[1].why);
	finish(&w);
}

/* 10 and 75 say "again" of a run that was asked to leave; one that leaves by itself before its first step
 * would do so for ever. */
static void a_run_that_leaves_by_itself_without_a_step_counts_as_failed(void **state)
{
	static const int32_t codes[] = { 10, 75 };
	(void)state;

	for (size_t k = 0; k < 2; k++) {
		struct world w;
		begin(&w, "fifo", 3);
		submit(&w, 1000, 1);
		for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++) {
			if (w.run[1].alive)
				end_run(&w, 1, codes[k]);
			pass(&w, 0.01);
		}
		CHECK(w.row[1].state == HD_DISPATCH_FAILED && w.nstarts == HD_DISPATCH_FAILURES,
			"code %d: %u starts", codes[k], w.nstarts);
		finish(&w);
	}
}

/* Whatever a run says of itself: with steps to go it is not done. */
static void a_run_that_ends_with_0_before_its_last_step_goes_on(void **state)
{
	struct hd_text again;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	for (int i = 0; i < 5; i++)
		pass(&w, 1);
	CHECK(w.run[1].steps > 1 && w.run[1].steps < 900, "at step %g", w.run[1].steps);
	end_run(&w, 1, 0);
	pass(&w, 0.5);
	CHECK(w.row[1].state == HD_DISPATCH_OPEN && w.row[1].failures == 0, "it is %s: %s",
		hd_dispatch_state_name(w.row[1].state), w.row[1].why);
	run_out(&w);
	check_done(&w);
	CHECK(w.row[1].state == HD_DISPATCH_DONE && w.row[1].done == 1000 && w.nstarts == 2, "%u starts",
		w.nstarts);
	hd_text_init(&again, &w.arena);
	CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s", diag.text);
	CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len), "%zu bytes, then %zu",
		w.log.len, again.len);
	finish(&w);
	begin(&w, "fifo", 3);
	submit(&w, 1000, 1);
	for (int i = 0; i < 400 && w.row[1].state == HD_DISPATCH_OPEN; i++) {
		if (w.run[1].alive)
			end_run(&w, 1, 0);
		pass(&w, 0.01);
	}
	CHECK(w.row[1].state == HD_DISPATCH_FAILED && strstr(w.row[1].why,
		"exit code 0 at step 0, before its last one"), "%s", w.row[1].why);
	finish(&w);
}

/* The run goes on with the others; that one place stays empty is said, once. */
static void a_device_on_which_workers_fail_is_told(void **state)
{
	struct world w;
	uint32_t reports = 0;

	(void)state;
	begin(&w, "fifo", 3);
	w.barren[1] = true;
	submit(&w, 100000, 2);
	for (int i = 0; i < 200; i++)
		pass(&w, 0.5);
	for (const char *at = w.log.at; (at = strstr(at, "\"kind\":\"failing\"")); at++)
		reports++;
	CHECK(reports == 1 && w.row[1].state == HD_DISPATCH_OPEN && workers_of(&w, 1) == 1,
		"reported %u times",
		reports);
	CHECK(strstr(w.log.at, "6 workers in a row ended on fast-1 before they took part: log/fast-1.log"),
		"%s", w.row[1].why);
	finish(&w);
}

static void an_error_of_the_job_is_not_tried_again(void **state)
{
	(void)state;

	for (int32_t code = 2; code <= 5; code++) {
		struct world w;
		begin(&w, "fifo", 3);
		submit(&w, 1000, 1);
		pass(&w, 1);
		end_run(&w, 1, code);
		run_out(&w);
		CHECK(w.row[1].state == HD_DISPATCH_FAILED && w.row[1].exit == code && w.nstarts == 1,
			"code %d", code);
		finish(&w);
	}
}

static void pass_a_boundary(struct world *w)
{
	for (double at_s = hd_dispatch_boundary_s(w->d); w->now_s < at_s;)
		pass(w, 0.5);
}

static void measured_speed_takes_half_and_the_impossible_waits(void **state)
{
	struct hd_dispatch_rate *rate;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	w.speed_of[1] = 8;                        /* 16 steps/s on fast, guessed 2 */
	submit(&w, 100000, 1);
	for (int i = 0; i < 5; i++)
		pass(&w, 1);
	rate = w.row[1].rate;
	CHECK(rate[0].from == HD_RATE_GUESSED && rate[0].steps_s == 2 && rate[1].steps_s == 1, "%g %g",
		rate[0].steps_s, rate[1].steps_s);
	pass_a_boundary(&w);
	CHECK(rate[0].from == HD_RATE_MEASURED && fabs(rate[0].steps_s - 16) < 0.5, "measured %g",
		rate[0].steps_s);
	CHECK(rate[1].from == HD_RATE_GUESSED && fabs(rate[1].steps_s - 8) < 0.5, "guessed by it %g",
		rate[1].steps_s);
	w.speed_of[1] = 4;
	double was = rate[0].steps_s;
	pass_a_boundary(&w);
	CHECK(fabs(rate[0].steps_s - (0.5 * was + 4)) < 0.5, "halfway from %g to 8: %g", was,
		rate[0].steps_s);
	was = rate[0].steps_s;
	w.speed_of[1] = was / 2 * 1.08;           /* nearly what is believed: no news */
	pass_a_boundary(&w);
	CHECK(rate[0].steps_s == was && rate[0].from == HD_RATE_MEASURED, "%g, then %g", was,
		rate[0].steps_s);
	w.speed_of[1] = 1000;
	pass_a_boundary(&w);
	CHECK(rate[0].outlier > 1000 && rate[0].steps_s == was, "outlier %g, %g", rate[0].outlier,
		rate[0].steps_s);
	finish(&w);
}

static void a_job_that_goes_elsewhere_never_stops_if_the_place_is_free(void **state)
{
	struct world w;
	uint32_t most = 0;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 400, 2);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	assert_int_equal(workers_of(&w, 1), 2);
	assert_true(w.worker[0] && w.worker[1]);
	w.device_out[0] = true;
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 0 });
	for (int i = 0; i < 12; i++) {
		pass(&w, 0.25);
		uint32_t n = workers_of(&w, 1);
		CHECK(n >= 1 && w.run[1].alive, "turn %d: %u workers", i, n);
		most = n > most ? n : most;
	}
	CHECK(w.worker[0] == 0 && w.worker[1] == 1 && w.worker[2] == 1, "on %llu %llu %llu",
		(unsigned long long)w.worker[0],
		(unsigned long long)w.worker[1], (unsigned long long)w.worker[2]);
	assert_int_equal(w.nstarts, 1);
	assert_true(w.nresized >= 1);
	assert_int_equal(w.lease[1].state, HD_LEASE_HELD);
	finish(&w);
}

static void a_job_whose_type_goes_runs_on_another(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 4000, 2);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	for (uint32_t v = 0; v < 3; v++) {
		w.device_out[v] = true;
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = v });
	}
	pass_a_boundary(&w);
	for (int i = 0; i < 10; i++)
		pass(&w, 0.5);
	CHECK(w.worker[3] == 1 && w.worker[4] == 1 && w.run[1].alive, "it waits for ever: %s",
		hd_lease_name(w.lease[1].state));
	finish(&w);
}

/* A round counts as one round, however late the call came that closed it. */
static void a_round_ends_at_its_boundary(void **state)
{
	struct hd_dispatch_why why;
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 100000, 1);
	pass(&w, 0.5);
	double began_s = w.now_s - 0.5, at_s = hd_dispatch_boundary_s(w.d);
	for (int k = 0; k < 3; k++) {
		pass(&w, hd_dispatch_boundary_s(w.d) - w.now_s - 0.25);
		pass(&w, 0.95 + 0.1 * k);
	}
	assert_int_equal(hd_dispatch_explain(w.d, 1, w.now_s, false, NULL, &why, NULL), HD_OK);
	CHECK(hd_dispatch_boundary_s(w.d) == at_s + 60 && fabs(why.type[0].received_s - 60) < 0.5,
		"from %g s on, first boundary %g s: received %g s",
		began_s, at_s, why.type[0].received_s);
	finish(&w);
}

/* Under a policy that starts no job without a share, too: there is a free device, so the run does not
 * stop. */
static void a_job_whose_only_device_goes_moves_while_it_runs(void **state)
{
	struct world w;
	(void)state;

	begin(&w, "fifo", 3);
	submit(&w, 4000, 1);
	for (int i = 0; i < 4; i++)
		pass(&w, 0.5);
	assert_int_equal(w.worker[0], 1);
	/* those that stand free go first, so it has nowhere to go but to the other type */
	for (uint32_t v = 0; v < 3; v++) {
		w.device_out[2 - v] = true;
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE, .device = 2 - v });
	}
	for (int i = 0; i < 12; i++) {
		pass(&w, 0.25);
		CHECK(workers_of(&w, 1) >= 1 && w.run[1].alive, "turn %d: it stands still, its lease is %s",
			i, hd_lease_name(w.lease[1].state));
	}
	CHECK(w.worker[0] == 0 && w.worker[3] == 1 && w.nstarts == 1, "on %llu and %llu, %u starts",
		(unsigned long long)w.worker[0],
		(unsigned long long)w.worker[3], w.nstarts);
	pass_a_boundary(&w);
	CHECK(w.worker[3] == 1 && w.nstarts == 1 && w.lease[1].state == HD_LEASE_HELD,
		"after the boundary its lease is %s, %u starts",
		hd_lease_name(w.lease[1].state), w.nstarts);
	finish(&w);
}

static void why_has_a_code_for_everybody(void **state)
{
	struct hd_dispatch_why why;
	struct hd_diag diag = { "" };
	struct world w;
	(void)state;

	begin(&w, hd_policy_has_lp() ? "las" : "isolated", 3);
	for (int i = 0; i < 12; i++)
		submit(&w, 4000, 1 + (uint32_t)(i % 3));
	submit(&w, 10, 4);                        /* of no type there are four */
	for (int k = 0; k < 30; k++) {
		pass(&w, 2.5);
		for (uint64_t id = 1; id <= w.njobs; id++) {
			if (!hd_dispatch_job(w.d, id))
				continue;
			CHECK(!hd_dispatch_explain(w.d, id, w.now_s, true, NULL, &why, &diag), "%s",
				diag.text);
			CHECK(*why.code && *why.text, "job %llu has no code", (unsigned long long)id);
			if (id == 13 && k > 9)
				assert_string_equal(why.code, "UNRUNNABLE");
			if (w.lease[id].state == HD_LEASE_HELD)
				assert_string_equal(why.code, "RUNS");
			else if (w.lease[id].state == HD_LEASE_RELEASED)
				assert_string_not_equal(why.code, "RUNS");
		}
	}
	assert_int_equal(hd_dispatch_explain(w.d, 99, 0, true, NULL, &why, NULL), HD_E_NOTFOUND);
	finish(&w);
}

static void a_setting_that_makes_no_sense_is_refused(void **state)
{
	static const struct hd_dispatch_type twice[] = { { "a", 1, 1, 0 }, { "a", 1, 1, 0 } },
		slow[] = { { "a", 1, 0, 0 } };
	const struct hd_dispatch_setting bad[] = {
		{ .policy = "unknown", .ntypes = 2, .type = types }, { .policy = "las-packed", .ntypes = 2, .type = types },
		{ .policy = "gandiva", .ntypes = 2, .type = types }, { .policy = "wfs", .ntypes = 2, .type = types }, { .policy = "fifo", .ntypes = 0 }, { .policy = "fifo", .ntypes = 2, .type = twice },
		{ .policy = "fifo", .ntypes = 1, .type = slow }, { .policy = "fifo", .ntypes = HD_DISPATCH_TYPES + 1, .type = types },
	};
	struct hd_dispatch *d = NULL;
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_dispatch_create(&d, &bad[i], NULL, &diag) == HD_E_INVAL && *diag.text,
			"case %zu: %s", i, diag.text);
	}
}

/* allox and wfs-2020 know jobs of one device; what they would refuse later, with everybody's decisions, is
 * refused as it comes. */
static void a_job_that_the_policy_does_not_know_is_refused_alone(void **state)
{
	static const struct { const char *policy; uint32_t scale; bool fits;
		} rows[] = { { "allox", 1, true }, { "allox", 2, false },
		{ "wfs-2020", 1, true }, { "wfs-2020", 2, false }, { "fifo", 2, true }, { "isolated", 2, true }, { "las", 2, true } };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy, .ntypes = 1, .type = one,
			.began_s = -1 };
		struct hd_dispatch_job job = { .id = 1, .scale = rows[i].scale, .weight = 1,
			.deadline_s = INFINITY, .steps = 100 };
		struct hd_dispatch *d = NULL;
		struct hd_diag diag = { "" };
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
		if (!strcmp(rows[i].policy, "las") && !hd_policy_has_lp())
			continue;
		CHECK(hd_dispatch_create(&d, &set, NULL, &diag) == HD_OK, "%s: %s", rows[i].policy,
			diag.text);
		enum hd_err err = hd_dispatch_fits(d, &job, 5, NULL, &diag);
		CHECK(err == (rows[i].fits ? HD_OK : HD_E_INVAL), "%s, %u devices: error %d, %s",
			rows[i].policy, job.scale, err, diag.text);
		CHECK(rows[i].fits || strstr(diag.text, rows[i].policy), "%s", diag.text);
		hd_dispatch_destroy(d);
	}
}

/* A row as a submission makes it is elastic (max is set) whether or not the policy resizes. */
static void a_job_that_no_type_can_run_is_called_so(void **state)
{
	static const struct { const char *policy; uint32_t scale, min; double slow; const char *says;
		} rows[] = {
		{ "fifo", 3, 1, -1, "" }, { "fifo", 4, 1, -1, "submit it for 3" }, { "fifo", 6, 4, -1, "smaller workers.min" }, { "wfs", 6, 3, -1, "" },
		{ "wfs", 6, 4, -1, "it needs 4 devices" }, { "isolated", 4, 1, -1, "or choose a policy that resizes" }, { "fifo", 1, 1, 0, "rate is 0" },
	};
	const struct hd_dispatch_event tick = { .kind = HD_DISPATCH_IN_TICK };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy,
			.ntypes = strcmp(rows[i].policy, "wfs") ? 2 : 1, .type = types,
			.began_s = -1 };
		struct hd_dispatch_job job = { .id = 1, .scale = rows[i].scale, .min = rows[i].min, .max = 8,
			.nvns = 8, .weight = 1,
			.deadline_s = INFINITY, .steps = 100 };
		const struct hd_dispatch_event submit = { .kind = HD_DISPATCH_IN_SUBMIT, .job = 1,
			.row = &job };
		char text[HD_DISPATCH_WHY] = "?";
		struct hd_dispatch_outs outs;
		struct hd_dispatch *d = NULL;
		struct hd_dispatch_why why;
		struct hd_diag diag = { "" };
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ rows[i].slow, -1, HD_RATE_GUESSED };
		CHECK(!hd_dispatch_create(&d, &set, NULL, &diag), "%s", diag.text);
		CHECK(hd_dispatch_unrunnable(d, &job, text) == (*rows[i].says != 0), "case %zu: \"%s\"", i,
			text);
		CHECK(!*rows[i].says == !*text && strstr(text, rows[i].says), "case %zu: \"%s\"", i, text);
		CHECK(!hd_dispatch_step(d, &submit, 1, &outs, &diag) &&
			!hd_dispatch_step(d, &tick, 2, &outs, &diag), "%s", diag.text);
		CHECK(!hd_dispatch_explain(d, 1, 2, false, NULL, &why, &diag), "%s", diag.text);
		CHECK(!strcmp(why.code, "UNRUNNABLE") == (*rows[i].says != 0), "case %zu: %s, \"%s\"", i,
			why.code, why.text);
		hd_dispatch_destroy(d);
	}
}

static void what_came_and_went_while_the_policy_was_asked_holds(void **state)
{
	struct hd_dispatch_event shares = { .kind = HD_DISPATCH_IN_SHARES };
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 1);
	CHECK(hd_dispatch_step(w.d, &shares, 0, &outs, &diag) == HD_E_INVAL,
		"shares that were not asked for");
	submit(&w, 100, 1);
	submit(&w, 100, 1);
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
	CHECK(hd_dispatch_asks(w.d), "no shares are asked for");
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL, .job = 1 });
	submit(&w, 100, 1);
	CHECK(w.lease[2].state == HD_LEASE_RELEASED && w.lease[3].state == HD_LEASE_RELEASED,
		"somebody has devices before there are shares");
	hd_dispatch_solve(hd_dispatch_asks(w.d));
	CHECK(!hd_dispatch_asks(w.d) && w.lease[2].state == HD_LEASE_RELEASED, "the solver decides");
	(void)step(&w, &shares);
	CHECK(w.lease[1].state == HD_LEASE_RELEASED && w.row[1].state == HD_DISPATCH_CANCELLED,
		"a job that left got devices");
	CHECK(w.lease[2].state == HD_LEASE_OFFERED, "a job that stayed got none");
	for (int i = 0; i < 400 && w.row[3].state == HD_DISPATCH_OPEN; i++)
		pass(&w, 1);
	CHECK(w.run[3].times_done == 1, "the job that came while the policy was asked was never asked about");
	finish(&w);
}

/* 30 jobs on 6 devices, the first with priority 10. A policy that is stopped gives each the
 * same (sched_policy.h, rule 5); one without memory, nothing. */
static void a_policy_that_is_stopped_or_has_no_memory_decides_nothing(void **state)
{
	static const struct { const char *policy; size_t bytes; bool stop; double share; } rows[] = {
		{ "las", 0, false, 5.0 / 29 }, { "las", 0, true, 0.2 }, { "las", 24000, false, 0 }, { "goodput", 0, true, 0.2 },
		{ "goodput", 0, false, 0 }, { "allox", 0, true, 0.2 }, { "allox", 0, false, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_dispatch_setting set = { .policy = rows[i].policy, .ntypes = 1, .type = one,
			.began_s = -1, .apart = true,
			.policy_bytes = rows[i].bytes };
		struct hd_dispatch_job job = { .id = 1, .scale = 1, .weight = 10, .deadline_s = INFINITY,
			.steps = 100 };
		struct hd_policy_setting asked;
		struct hd_sched_state seen;
		struct hd_dispatch_outs outs;
		struct hd_dispatch_why why;
		struct hd_dispatch *d = NULL;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		uint32_t offered = 0, said = 0;
		if (!strcmp(rows[i].policy, "las") && !hd_policy_has_lp())
			continue;
		for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
			job.rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
		CHECK(hd_dispatch_create(&d, &set, NULL, &diag) == HD_OK, "row %zu: %s", i, diag.text);
		for (; job.id <= 30; job.id++, job.weight = 1)
			CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
				.row = &job }, 1, &outs, &diag),
				"row %zu: %s", i, diag.text);
		hd_arena_init(&arena, 0);
		CHECK(!hd_dispatch_snapshot(d, 2, &arena, &asked, &seen, &diag) && seen.njobs == 30,
			"row %zu: %u jobs", i, seen.njobs);
		CHECK(seen.jobs[29].age_s >= 0 && seen.jobs[0].age_s <= 2,
			"before the first step jobs are %g s old", seen.jobs[0].age_s);
		hd_arena_finish(&arena);
		CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK }, 2,
			&outs, &diag), "row %zu: %s", i, diag.text);
		CHECK(hd_dispatch_asks(d), "row %zu", i);
		if (rows[i].stop)
			hd_dispatch_stop(hd_dispatch_asks(d));
		hd_dispatch_solve(hd_dispatch_asks(d));
		CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES }, 3,
			&outs, &diag), "row %zu: %s", i, diag.text);
		for (size_t k = 0; k < outs.n; k++)
			said += outs.at[k].kind == HD_DISPATCH_DO_NOTE &&
				strstr(outs.at[k].text, "more memory than there is");
		for (uint64_t id = 1; id <= 30; id++)
			offered += hd_dispatch_lease(d, id) != NULL;
		CHECK(!hd_dispatch_explain(d, 30, 3, false, NULL, &why, &diag), "row %zu: %s", i, diag.text);
		CHECK(fabs(why.type[0].share - rows[i].share) < 1e-6,
			"row %zu: the last job has %g of a device", i, why.type[0].share);
		CHECK(offered == (rows[i].bytes ? 0 : 6), "row %zu: %u jobs got devices", i, offered);
		CHECK(said == (rows[i].bytes > 0), "row %zu: %u notes of the memory", i, said);
		hd_dispatch_destroy(d);
	}
}

static void a_policy_that_is_given_up_takes_nothing_away_and_is_asked_again(void **state)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_GIVE_UP, .text = "it takes too long" };
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	CHECK(hd_dispatch_step(w.d, &event, 0, &outs, &diag) == HD_E_INVAL,
		"a question that was not asked was given up");
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	/* the first question of a machine, which has no shares yet, and then one that has */
	crash(&w);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100 && !hd_dispatch_asks(w.d); i++) {
			if (!i && round)
				submit(&w, 100, 1);
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			CHECK(w.lease[1].state == HD_LEASE_HELD,
				"round %d, after %d s the job has lost its devices: %d", round, i,
				w.lease[1].state);
		}
		CHECK(hd_dispatch_asks(w.d), "round %d: not asked again", round);
		give_up(&w);
		CHECK(!hd_dispatch_asks(w.d) && w.lease[1].state == HD_LEASE_HELD, "round %d: %d", round,
			w.lease[1].state);
		for (int i = 0; i < 100 && !hd_dispatch_asks(w.d); i++) {
			if (!i && !round)
				submit(&w, 100, 1);
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			CHECK(w.lease[1].state == HD_LEASE_HELD, "round %d, given up for %d s: %d", round, i,
				w.lease[1].state);
		}
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
	}
	for (int i = 0; i < 50; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD && w.run[1].times_done == 0, "%d", w.lease[1].state);
	CHECK(w.run[2].times_done == 1 && w.run[3].times_done == 1, "a job that came was never asked about");
	finish(&w);
}

/* A machine made from the store has leases and no shares: a question that takes rounds takes nothing away. */
static void jobs_run_on_while_a_new_scheduler_asks_its_first_question(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	crash(&w);
	for (int i = 0; i < 100; i++) {           /* five rounds without a solver */
		compute(&w, 1);
		w.now_s += 1;
		look(&w);
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
		CHECK(w.lease[1].state == HD_LEASE_HELD, "after %d s it lost its devices: %d", i,
			w.lease[1].state);
	}
	CHECK(hd_dispatch_asks(w.d), "nothing was asked");
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
	for (int i = 0; i < 50; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD && w.run[1].times_done == 0,
		"and keeps them with the answer: %d", w.lease[1].state);
	finish(&w);
}

/* Nor does it keep anybody on a device that is out of service: so a scheduler that ends, and drains, does
 * end. */
static void a_device_out_of_service_is_left_while_nobody_answers(void **state)
{
	struct world w;

	(void)state;
	for (int given_up = 0; given_up < 2; given_up++) {
		begin(&w, "fifo", 2);
		submit(&w, 1000000, 1);
		for (int i = 0; i < 60; i++)
			pass(&w, 1);
		CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
		crash(&w);
		for (int i = 0; i < 200; i++) {
			compute(&w, 1);
			w.now_s += 1;
			look(&w);
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
			if (i == 10 && given_up)
				give_up(&w);
			for (uint32_t v = 0; v < DEVICES && i == 50; v++)
				(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
					.device = v });
			CHECK(i >= 50 || w.lease[1].state == HD_LEASE_HELD,
				"after %d s it lost its devices: %d", i, w.lease[1].state);
		}
		CHECK(w.lease[1].state == HD_LEASE_RELEASED,
			"it stays on a device that is out of service: %d", w.lease[1].state);
		for (uint32_t v = 0; v < DEVICES; v++)
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_DEVICE,
				.device = v, .ok = true });
		for (int i = 0; i < 100; i++)
			pass(&w, 1);
		CHECK(w.lease[1].state == HD_LEASE_HELD, "it did not go on: %d", w.lease[1].state);
		finish(&w);
	}
}

/* Nor does one whose answer is an error. */
static void an_error_in_place_of_the_first_answer_takes_nothing_away(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "fifo", 2);
	submit(&w, 1000000, 1);
	for (int i = 0; i < 60; i++)
		pass(&w, 1);
	CHECK(w.lease[1].state == HD_LEASE_HELD, "the job has no devices: %d", w.lease[1].state);
	crash(&w);
	for (int errors = 0, i = 0; i < 200; i++) {
		struct hd_dispatch_question *q;
		compute(&w, 1);
		w.now_s += 1;
		look(&w);
		(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK });
		if (errors < 3 && (q = hd_dispatch_asks(w.d))) {
			hd_dispatch_solve(q);
			q->err = hd_fail(&q->why, HD_E_BUG, "no answer");
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
			errors++;
		} else if (hd_dispatch_asks(w.d)) {
			(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES });
		}
		CHECK(w.lease[1].state == HD_LEASE_HELD, "after %d s and %d errors it lost its devices: %d",
			i, errors, w.lease[1].state);
	}
	CHECK(w.run[1].times_done == 0, "it was run again");
	finish(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_started_run_and_end),
		cmocka_unit_test(a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice),
		cmocka_unit_test(whatever_happens_no_device_is_in_two_leases_and_every_job_ends),
		cmocka_unit_test(a_log_repeated_writes_the_same_bytes),
		cmocka_unit_test(a_run_that_fails_five_times_is_dropped_with_the_reason),
		cmocka_unit_test(a_run_that_leaves_by_itself_without_a_step_counts_as_failed),
		cmocka_unit_test(a_run_that_ends_with_0_before_its_last_step_goes_on),
		cmocka_unit_test(a_device_on_which_workers_fail_is_told),
		cmocka_unit_test(an_error_of_the_job_is_not_tried_again),
		cmocka_unit_test(measured_speed_takes_half_and_the_impossible_waits),
		cmocka_unit_test(a_job_that_goes_elsewhere_never_stops_if_the_place_is_free),
		cmocka_unit_test(a_job_whose_type_goes_runs_on_another),
		cmocka_unit_test(a_round_ends_at_its_boundary),
		cmocka_unit_test(a_job_whose_only_device_goes_moves_while_it_runs),
		cmocka_unit_test(why_has_a_code_for_everybody),
		cmocka_unit_test(a_job_that_the_policy_does_not_know_is_refused_alone),
		cmocka_unit_test(a_job_that_no_type_can_run_is_called_so),
		cmocka_unit_test(a_setting_that_makes_no_sense_is_refused),
		cmocka_unit_test_setup_teardown(what_came_and_went_while_the_policy_was_asked_holds,
		set_apart, set_within),
		cmocka_unit_test_setup_teardown(
			a_policy_that_is_given_up_takes_nothing_away_and_is_asked_again,
			set_apart, set_within),
		cmocka_unit_test(a_policy_that_is_stopped_or_has_no_memory_decides_nothing),
		cmocka_unit_test_setup_teardown(
			jobs_run_on_while_a_new_scheduler_asks_its_first_question, set_apart, set_within),
		cmocka_unit_test_setup_teardown(a_device_out_of_service_is_left_while_nobody_answers,
		set_apart, set_within),
		cmocka_unit_test_setup_teardown(an_error_in_place_of_the_first_answer_takes_nothing_away,
		set_apart, set_within),
		{ "apart: jobs_are_started_run_and_end", jobs_are_started_run_and_end, set_apart, set_within, NULL },
		{ "apart: a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice", a_death_at_any_record_or_order_loses_no_job_and_runs_none_twice, set_apart, set_within, NULL },
		{ "apart: whatever_happens_no_device_is_in_two_leases_and_every_job_ends", whatever_happens_no_device_is_in_two_leases_and_every_job_ends, set_apart, set_within, NULL },
		{ "apart: a_log_repeated_writes_the_same_bytes", a_log_repeated_writes_the_same_bytes, set_apart, set_within, NULL },
		{ "apart: a_run_that_fails_five_times_is_dropped_with_the_reason", a_run_that_fails_five_times_is_dropped_with_the_reason, set_apart, set_within, NULL },
		{ "apart: a_job_whose_type_goes_runs_on_another", a_job_whose_type_goes_runs_on_another, set_apart, set_within, NULL },
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
