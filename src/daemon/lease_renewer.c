#include "daemon/lease_renewer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "sys/lock.h"
#include "sys/thread.h"
#include "driver/control.h"
#include "daemon/jobs.h"

/* a run that does not answer in that time heard it, or is asked again */
#define HD_RENEWER_ASK_NS  INT64_C(1000000000)
/* a wake-up is sent; the look is only the bound that every wait has */
#define HD_RENEWER_IDLE_NS INT64_C(60000000000)

struct leased_run { char dir[HD_JOBS_RUN]; uint32_t uid; };

struct hd_lease_renewer {
	struct hd_clock *clock;
	struct hd_thread thread;
	struct hd_lock lock;              /* of all below */
	struct hd_cond changed;
	bool deciding, quit;
	int64_t until_ns;                 /* of the decision: then `stop` is set */
	atomic_bool stop;
	/* when it speaks, if a decision is under way: a quarter of a lease after they were asked last */
	int64_t next_ns;
	double for_s;
	struct leased_run *run;                  /* owned */
	uint32_t nruns, cap;
};

static int64_t every_ns(const struct hd_lease_renewer *k) { return (int64_t)(k->for_s * 0.25e9); }

static void ask(const struct leased_run *run, double for_s)
{
	char text[64];
	const struct hd_json *answer;
	struct hd_arena arena;

	snprintf(text, sizeof text, "{\"do\":\"status\",\"for_s\":%.3f}", for_s);
	hd_arena_init(&arena, 0);
	(void)!hd_control_ask_run(run->dir, run->uid, text, HD_RENEWER_ASK_NS, &arena, &answer, NULL);
	hd_arena_finish(&arena);
}

static void look_at_time(struct hd_lease_renewer *k)
{
	if (k->deciding && hd_clock_now_ns(k->clock) >= k->until_ns)
		atomic_store(&k->stop, true);
}

/* The lock is held, and given back while it asks: the runs may be others after each. */
static void ask_all(struct hd_lease_renewer *k)
{
	for (uint32_t i = 0; i < k->nruns && k->deciding && !k->quit; i++) {
		const struct leased_run run = k->run[i];
		double for_s = k->for_s;
		hd_lock_give(&k->lock);
		ask(&run, for_s);
		hd_lock_take(&k->lock);
		look_at_time(k);
	}
}

static void keep(void *user)
{
	struct hd_lease_renewer *k = user;

	hd_lock_take(&k->lock);
	while (!k->quit) {
		int64_t now = hd_clock_now_ns(k->clock);
		bool asks = k->deciding && k->nruns && every_ns(k) > 0;
		int64_t next = now + HD_RENEWER_IDLE_NS;
		look_at_time(k);
		if (k->deciding && now < k->until_ns && k->until_ns < next)
			next = k->until_ns;
		if (!asks || now < k->next_ns) {
			(void)hd_cond_wait(&k->changed, &k->lock, asks &&
				k->next_ns < next ? k->next_ns : next);
		} else {
			k->next_ns = now + every_ns(k);
			ask_all(k);
		}
	}
	hd_lock_give(&k->lock);
}

enum hd_err hd_renewer_create(struct hd_lease_renewer **renewer, struct hd_clock *clock, struct hd_diag *diag)
{
	struct hd_lease_renewer *k = hd_alloc(sizeof *k);

	if (!k)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a thread that keeps leases");
	*k = (struct hd_lease_renewer){ .clock = clock };
	hd_lock_init(&k->lock);
	hd_cond_init(&k->changed);
	*renewer = k;
	return hd_thread_start(&k->thread, "hd-renewer", -1, keep, k, diag);
}

void hd_renewer_destroy(struct hd_lease_renewer *k)
{
	if (!k)
		return;
	hd_lock_take(&k->lock);
	k->quit = true;
	hd_lock_give(&k->lock);
	hd_cond_wake(&k->changed);
	hd_thread_join(&k->thread);
	hd_cond_finish(&k->changed);
	hd_lock_finish(&k->lock);
	hd_free(k->run);
	hd_free(k);
}

void hd_renewer_set(struct hd_lease_renewer *k, double for_s)
{
	hd_lock_take(&k->lock);
	k->for_s = for_s;
	k->nruns = 0;
	k->next_ns = hd_clock_now_ns(k->clock) + every_ns(k);
	hd_lock_give(&k->lock);
}

enum hd_err hd_renewer_add(struct hd_lease_renewer *k, const char *run, uint32_t uid,
	struct hd_diag *diag)
{
	hd_lock_take(&k->lock);
	enum hd_err err = hd_grow(&k->run, &k->cap, (uint64_t)k->nruns + 1, sizeof *k->run, "runs", diag);
	if (!err) {
		k->run[k->nruns].uid = uid;
		snprintf(k->run[k->nruns++].dir, sizeof k->run->dir, "%s", run);
	}
	hd_lock_give(&k->lock);
	return err;
}

const atomic_bool *hd_renewer_begin(struct hd_lease_renewer *k, int64_t for_ns)
{
	int64_t now = hd_clock_now_ns(k->clock);

	hd_lock_take(&k->lock);
	k->deciding = true;
	k->until_ns = for_ns < INT64_MAX - now ? now + for_ns : INT64_MAX;
	atomic_store(&k->stop, false);
	hd_lock_give(&k->lock);
	hd_cond_wake(&k->changed);
	return &k->stop;
}

/* No wake-up: it looks by itself. */
bool hd_renewer_end(struct hd_lease_renewer *k)
{
	hd_lock_take(&k->lock);
	k->deciding = false;
	hd_lock_give(&k->lock);
	return atomic_load(&k->stop);
}
