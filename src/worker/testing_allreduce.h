/* testing_allreduce.h -- the leader and the members of the bench of all-reduce, each in a thread, against
 * others that say what a test tells them: included by *_test.c only.
 *
 * enter() and leave() begin and end a world; what runs in it ends by ends(). */
#ifndef HD_WORKER_TESTING_ALLREDUCE_H
#define HD_WORKER_TESTING_ALLREDUCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "worker/allreduce_bench_int.h"
#include "tests/check.h"

enum { MOST = 3, LEADER = MOST, ROUNDS = 2, LEN = 5, LAST = HD_ALLREDUCE_WARMUP + ROUNDS, SAID = 32,
	PATIENCE_S = 100, LOST = -2 };
/* Rows of the table of two members and one bucket: member 1's part to 0, and the sum from 0 to 1. */
enum { PART = 2, SUM = 5 };

struct said { uint32_t worker, id, len; uint64_t step; uint8_t bytes[MOST * HD_ADDR_CAP]; };

/* One that the test speaks for: a member, or the leader. */
struct party {
	struct hd_loop loop;
	struct hd_hub hub;
	struct said said[SAID];
	uint32_t nsaid, nups, nlosts, nparts, nsums;
	float part[LEN], sum[LEN];        /* what came last */
};

struct world {
	const char *name;                 /* of the case; NULL: there is one only */
	struct hd_clock clock, real;
	_Atomic int64_t ahead_ns;         /* of the machine's clock */
	struct hd_net net;
	char folder[32];
	struct hd_allreduce_bench bench;
	struct party party[MOST + 1];
	/* the processes that the leader believes in: exit codes */
	struct hd_host host;
	/* while it gathers; when it waits for them. -1: it has not ended; LOST: the system knows of no such
	 * process */
	_Atomic int early[MOST], late[MOST];
	_Atomic uint32_t nspawned, nwaits, nkills;
	uint32_t refused;                 /* the n-th start is; 0: none */
	char env[MOST][HD_ADDR_CAP + 40];
	_Atomic bool one_after_another;   /* 1 ends when it is known that 0 has */
	double ms[ROUNDS];
	struct hd_allreduce_times times;
	/* what runs */
	struct job {
		struct world *w;
		uint32_t me;
		struct hd_thread thread;
		struct hd_diag diag;
		enum hd_err err;
		_Atomic bool ended;
	} job[MOST + 1];
};

/* ---- the clock and the processes ---- */

static inline struct world *by_clock(struct hd_clock *clock)
{
	return (struct world *)((char *)clock - offsetof(struct world, clock));
}
static inline int64_t clock_now(struct hd_clock *clock)
{
	return hd_clock_now_ns(&by_clock(clock)->real) + by_clock(clock)->ahead_ns;
}
static inline int64_t clock_wall(struct hd_clock *clock) { return hd_clock_wall_ns(&by_clock(clock)->real); }
static inline void clock_wait(struct hd_clock *clock, int64_t at_ns)
{
	hd_clock_wait_until(&by_clock(clock)->real, at_ns - by_clock(clock)->ahead_ns);
}
static const struct hd_clock_ops clock_ops = { "ahead", clock_now, clock_wall, clock_wait };

static inline struct world *by_host(struct hd_host *host)
{
	return (struct world *)((char *)host - offsetof(struct world, host));
}
static inline enum hd_err host_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag)
{
	struct world *w = by_host(host);

	if (w->nspawned + 1 == w->refused) {
		w->refused = 0;
		return hd_fail(diag, HD_E_REFUSED, "not started");
	}
	snprintf(w->env[w->nspawned], sizeof w->env[0], "%s", how->env[0]);
	proc->pid = (int)++w->nspawned;
	return HD_OK;
}

static inline enum hd_err host_wait(struct hd_host *host, struct hd_proc *proc, int64_t timeout_ns, int *code,
	struct hd_diag *diag)
{
	struct world *w = by_host(host);
	int at = timeout_ns ? w->late[proc->pid - 1] : w->early[proc->pid - 1];

	w->nwaits += timeout_ns > 0;
	if (w->nkills)
		at = 137;
	*code = at;
	if (at == LOST)
		return hd_fail(diag, HD_E_IO, "no such process");
	if (at < 0)
		return HD_E_AGAIN;
	if (w->one_after_another)
		w->early[1] = 4;
	return HD_OK;
}

static inline enum hd_err host_signal(struct hd_host *host, struct hd_proc *proc, enum hd_proc_signal what,
	struct hd_diag *diag)
{
	(void)proc;
	(void)diag;
	by_host(host)->nkills += what == HD_PROC_KILL;
	return HD_OK;
}
static const struct hd_host_ops host_ops = { "the test", host_spawn, host_wait, host_signal };

/* ---- parties ---- */

static inline void on_up(void *self, const struct hd_peer_info *peer)
{
	(void)peer;
	((struct party *)self)->nups++;
}
static inline void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	(void)worker, (void)why, (void)text, ((struct party *)self)->nlosts++;
}
static inline void on_suspect(void *self, uint32_t worker, int64_t ms)
{
	(void)self, (void)worker, (void)ms;
}
static inline void on_message(void *self, const struct hd_message *message)
{
	struct party *p = self;

	assert_true(p->nsaid < SAID && message->len <= sizeof p->said[0].bytes);
	struct said *said = &p->said[p->nsaid++];
	*said = (struct said){ message->worker, message->id, message->len, message->step, "" };
	if (message->len)
		memcpy(said->bytes, message->bytes, message->len);
}
static inline void on_arrived(void *self, const struct hd_arrival *arrival)
{
	struct party *p = self;

	if (arrival->transfer == SUM)
		p->nsums++;
	else
		p->nparts++;
	assert_int_equal(hd_hub_post(&p->hub, arrival->worker, arrival->transfer, arrival->buffer, NULL),
		HD_OK);
}
static inline void on_sent(void *self, const struct hd_sent *sent) { (void)self, (void)sent; }
static inline void on_epoch(void *self, uint32_t worker, uint32_t epoch)
{
	(void)self, (void)worker, (void)epoch;
}
static inline void on_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }

static inline struct world *enter(uint32_t n)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->clock.ops = &clock_ops;
	hd_clock_real(&w->real);
	hd_net_real(&w->net);
	memcpy(w->folder, "/tmp/hd_bench.XXXXXX", 21);
	assert_non_null(mkdtemp(w->folder));
	w->bench = (struct hd_allreduce_bench){ .n = n, .bytes = LEN * sizeof(float), .transport = "unix",
		.rounds = ROUNDS, .folder = w->folder, .clock = &w->clock };
	w->host.ops = &host_ops;
	w->times.ms = w->ms;
	for (int i = 0; i < MOST; i++)
		w->early[i] = w->late[i] = -1;
	return w;
}

static inline struct party *join(struct world *w, uint32_t index, uint32_t worker)
{
	static const uint8_t key[HD_ALLREDUCE_KEY] = { 0 };
	struct party *p = &w->party[index];
	bool leads = worker == HD_ALLREDUCE_LEADER;
	struct hd_hub_config config = hd_allreduce_config(&w->bench, worker,
		leads ? HD_ROLE_COORDINATOR : HD_ROLE_WORKER, leads ? NULL : key);
	struct hd_wire_events events = { p, on_up, on_lost, on_suspect, on_message, on_arrived, on_sent,
		on_epoch, on_epoch, on_probed };
	struct hd_diag diag = { "" };
	char addr[HD_ADDR_CAP];

	config.peers_cap = 8;
	CHECK(!hd_loop_init(&p->loop, &w->real, &diag) && !hd_hub_init(&p->hub, &config, &events, &p->loop,
		&w->net, &diag), "%s", diag.text);
	snprintf(addr, sizeof addr, leads ? "unix:%s/leader" : "unix:%s/%u", w->folder, worker);
	CHECK(!hd_hub_listen(&p->hub, "unix", addr, &diag), "%s", diag.text);
	if (!leads)
		hd_hub_epoch(&p->hub, 1, (struct hd_hash){ "all-reduce" });
	return p;
}

static inline void part(struct party *p)
{
	hd_hub_finish(&p->hub);
	hd_loop_finish(&p->loop);
}

static inline void turn(struct world *w)
{
	struct hd_loop_event event;
	size_t n;

	for (int i = 0; i <= MOST; i++)
		if (w->party[i].hub.impl)
			assert_int_equal(hd_hub_poll(&w->party[i].hub, hd_clock_now_ns(&w->real) + 200000,
				&event, 1, &n, NULL), HD_OK);
}

#define UNTIL(w, what) \
	do { \
		int64_t end_ns = hd_clock_now_ns(&(w)->real) + PATIENCE_S * HD_NS_PER_S; \
		while (!(what)) { \
			turn(w); \
			CHECK(hd_clock_now_ns(&(w)->real) < end_ns, "waited too long"); \
		} \
	} while (0)

static inline void run(void *user)
{
	static const char *const argv[] = { "none", NULL };
	struct job *job = user;
	struct world *w = job->w;

	job->err = job->me == LEADER ? hd_allreduce_bench_lead(&w->bench, &w->host, argv, &w->times,
		&job->diag)
		: hd_allreduce_bench_member(&w->bench, job->me, &job->diag);
	job->ended = true;
}

static inline struct job *start(struct world *w, uint32_t me)
{
	struct job *job = &w->job[me];

	*job = (struct job){ .w = w, .me = me };
	assert_int_equal(hd_thread_start(&job->thread, "bench", -1, run, job, &job->diag), HD_OK);
	return job;
}

static inline void ends(struct job *job, enum hd_err err, const char *text)
{
	UNTIL(job->w, job->ended);
	hd_thread_join(&job->thread);
	CHECK(job->err == err && strstr(job->diag.text, text), "%s: it ended with %d: %s, not %d: %s",
		job->w->name ? job->w->name : "the end",
		(int)job->err, job->diag.text, (int)err, text);
}

static inline void leave(struct world *w)
{
	for (int i = 0; i <= MOST; i++) {
		hd_thread_join(&w->job[i].thread);
		part(&w->party[i]);
	}
	assert_int_equal(rmdir(w->folder), 0);
	free(w);
}

static inline void say(struct party *p, uint32_t to, uint32_t id, uint64_t step, size_t len)
{
	static const uint8_t bytes[MOST * HD_ADDR_CAP];
	struct hd_diag diag = { "" };

	CHECK(!hd_hub_tell(&p->hub, to, id, step, bytes, len, &diag), "%s", diag.text);
}

static inline uint32_t heard(const struct party *p, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nsaid; i++)
		n += p->said[i].id == id;
	return n;
}

#endif
