#include "functions/board.h"

#include <string.h>

#include "base/philox.h"

#define LEAST_WAIT_NS INT64_C(100000000)
#define MOST_WAIT_NS  INT64_C(5000000000)
enum { HERE, THERE };

enum hd_err hd_fn_board_init(struct hd_fn_board *b, uint32_t cap, uint32_t slots, int64_t lease_ns,
	uint64_t seed, struct hd_arena *arena, struct hd_diag *diag)
{
	*b = (struct hd_fn_board){ .cap = cap, .slots = slots, .offers = slots > 0, .lease_ns = lease_ns,
		.seed = seed };
	b->task = hd_arena_take(arena, cap, sizeof *b->task);
	return b->task ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for %u tasks", cap);
}

void hd_fn_board_clear(struct hd_fn_board *b, uint32_t calls)
{
	b->ntasks = b->open = 0;
	b->live = calls;
	b->look_ns = b->late_ns = 0;
}

enum hd_err hd_fn_board_add(struct hd_fn_board *b, uint32_t phase, uint32_t *task, struct hd_diag *diag)
{
	if (b->ntasks == b->cap)
		return hd_fail(diag, HD_E_NOSPACE, "more than %u tasks at once", b->cap);
	b->task[b->ntasks] = (struct hd_fn_task){ .state = HD_FN_READY, .phase = phase % HD_FN_PHASES };
	*task = b->ntasks++;
	b->open++;
	return HD_OK;
}

static struct hd_fn_attempt *find(struct hd_fn_board *b, uint32_t task, uint32_t attempt)
{
	for (size_t i = 0; task < b->ntasks && attempt && i < HD_FN_LIVE; i++)
		if (b->task[task].live[i].number == attempt)
			return &b->task[task].live[i];
	return NULL;
}

static bool is_open(const struct hd_fn_task *t) { return t->state != HD_FN_DONE &&
	t->state != HD_FN_REVOKED; }

static uint32_t nlive(const struct hd_fn_task *t)
{
	return (t->live[0].number ? 1u : 0u) + (t->live[1].number ? 1u : 0u);
}

static void sample(struct hd_fn_board *b, int place, uint32_t phase, int64_t ns)
{
	double *mean = &b->mean_ns[place][phase];

	*mean = *mean > 0 ? 0.95 * *mean + 0.05 * (double)ns : (double)(ns > 0 ? ns : 1);
}

/* ---- what may begin ---- */

static bool is_closed(const struct hd_fn_board *b, int64_t now_ns)
{
	return !b->offers || (b->closed_ns && now_ns < b->closed_ns);
}

static uint32_t slots_now(const struct hd_fn_board *b, int64_t now_ns)
{
	bool halved = b->halved_ns && now_ns < b->halved_ns;

	if (b->probes)
		return b->slots ? 1 : 0;
	return halved && b->slots > 1 ? b->slots / 2 : b->slots;
}

static bool may_duplicate(const struct hd_fn_board *b)
{
	uint32_t n = b->nwindow < HD_FN_WINDOW ? b->nwindow + 1 : HD_FN_WINDOW;
	uint32_t gone = b->nwindow == HD_FN_WINDOW && b->window[b->window_at];

	return (b->window_dups - gone + 1) * 20 <= n;
}

static void remember(struct hd_fn_board *b, bool duplicate)
{
	if (b->nwindow == HD_FN_WINDOW)
		b->window_dups -= b->window[b->window_at];
	else
		b->nwindow++;
	b->window[b->window_at] = duplicate;
	b->window_dups += duplicate;
	b->window_at = (b->window_at + 1) % HD_FN_WINDOW;
}

static struct hd_fn_step begin(struct hd_fn_board *b, uint32_t task, bool duplicate, int64_t now_ns)
{
	struct hd_fn_task *t = &b->task[task];
	struct hd_fn_attempt *a = t->live[0].number ? &t->live[1] : &t->live[0];

	*a = (struct hd_fn_attempt){ ++t->begun, false, now_ns, now_ns + b->lease_ns };
	t->state = HD_FN_LEASED;
	b->live++;
	b->count.attempts++;
	b->count.duplicates += duplicate;
	remember(b, duplicate);
	return (struct hd_fn_step){ HD_FN_INVOKE, task, a->number, duplicate, a->deadline_ns, 0 };
}

bool hd_fn_board_is_away(const struct hd_fn_board *b)
{
	return b->offers && (b->probes || b->failed_in_row >= HD_FN_FAILURES ||
		b->throttled_in_row >= HD_FN_REFUSALS);
}

/* `here`: for a device that has nothing else to do. */
static int64_t straggles_ns(const struct hd_fn_board *b, const struct hd_fn_task *t, bool here)
{
	double mean = b->mean_ns[THERE][t->phase];
	int64_t three = (int64_t)(3 * mean);

	if (mean > 0)
		return three > HD_FN_OLD_NS ? three : HD_FN_OLD_NS;
	if (!here)
		return HD_FN_UNKNOWN_NS;
	return b->failed_in_row || b->probes ? HD_FN_OLD_NS : HD_FN_FIRST_NS;
}

/* The older one of those that live on; a task is LEASED, so there is one. */
static int64_t began_ns(const struct hd_fn_task *t)
{
	const struct hd_fn_attempt *a = &t->live[0], *b = &t->live[1];

	return !b->number || (a->number && a->began_ns < b->began_ns) ? a->began_ns : b->began_ns;
}

/* The task whose oldest attempt is too old; where that is to be called again, one with no other. UINT32_MAX:
 * none. */
static uint32_t straggler(const struct hd_fn_board *b, int64_t now_ns, bool here)
{
	uint32_t found = UINT32_MAX;
	int64_t since_ns = INT64_MAX;

	for (uint32_t i = 0; i < b->ntasks; i++) {
		const struct hd_fn_task *t = &b->task[i];
		if (t->state == HD_FN_LEASED && (here || nlive(t) == 1) && began_ns(t) < since_ns &&
			now_ns - began_ns(t) >= straggles_ns(b, t, here)) {
			found = i;
			since_ns = began_ns(t);
		}
	}
	return found;
}

/* ---- what ends ---- */

static void failed(struct hd_fn_board *b, struct hd_fn_task *t, struct hd_fn_attempt *a)
{
	a->number = 0;
	b->live--;
	b->count.failures++;
	if (!is_open(t) || t->state == HD_FN_RUNS_HERE)
		return;
	t->failed++;
	if (!nlive(t))
		t->state = t->failed >= HD_FN_FAILURES ? HD_FN_FOR_HERE : HD_FN_READY;
}

static void strike(struct hd_fn_board *b, int64_t now_ns)
{
	if (is_closed(b, now_ns))         /* of a call from before */
		return;
	if (!b->probes && ++b->failed_in_row < HD_FN_CIRCUIT)
		return;
	b->failed_in_row = 0;
	b->probes = true;
	b->closed_ns = now_ns + HD_FN_CLOSED_NS;
	b->count.closed++;
}

static void ended_well(struct hd_fn_board *b)
{
	b->failed_in_row = 0;
	b->probes = false;
}

void hd_fn_board_ended(struct hd_fn_board *b, enum hd_fn_outcome outcome, int64_t now_ns)
{
	if (b->live)
		b->live--;
	if (outcome == HD_FN_FAILED || outcome == HD_FN_EMPTY)
		strike(b, now_ns);
	else if (outcome == HD_FN_ENDED)
		ended_well(b);
}

/* The earliest deadline of those that live on. */
static int64_t end_overdue(struct hd_fn_board *b, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (uint32_t i = 0; i < b->ntasks; i++)
		for (size_t k = 0; k < HD_FN_LIVE; k++) {
			struct hd_fn_attempt *a = &b->task[i].live[k];
			if (a->number && now_ns >= a->deadline_ns) {
				failed(b, &b->task[i], a);
				strike(b, now_ns);
			} else if (a->number && a->deadline_ns < next_ns) {
				next_ns = a->deadline_ns;
			}
		}
	return next_ns;
}

static void sooner(int64_t *at_ns, int64_t ns)
{
	if (ns < *at_ns)
		*at_ns = ns;
}

static uint32_t first_in(const struct hd_fn_board *b, enum hd_fn_state state)
{
	for (uint32_t i = 0; i < b->ntasks; i++)
		if (b->task[i].state == state)
			return i;
	return UINT32_MAX;
}

static struct hd_fn_step run_here(struct hd_fn_board *b, uint32_t task)
{
	b->task[task].state = HD_FN_RUNS_HERE;
	return (struct hd_fn_step){ .what = HD_FN_RUN_HERE, .task = task };
}

/* With nothing else to do a device runs what is late at a function: the first result counts. */
static uint32_t late(struct hd_fn_board *b, int64_t now_ns, int64_t *until_ns)
{
	uint32_t task = UINT32_MAX;

	if (b->open && now_ns >= b->late_ns) {
		task = straggler(b, now_ns, true);
		b->late_ns = task == UINT32_MAX ? now_ns + HD_FN_LATE_NS : 0;
	}
	if (b->open)
		sooner(until_ns, b->late_ns);
	return task;
}

struct hd_fn_step hd_fn_board_next(struct hd_fn_board *b, int64_t now_ns, bool here)
{
	struct hd_fn_step wait = { .what = HD_FN_WAIT, .until_ns = end_overdue(b, now_ns) };
	uint32_t ready = first_in(b, HD_FN_READY), task;
	bool closed = is_closed(b, now_ns), pauses = b->wait_ns && now_ns < b->wait_ns;

	if (here && (task = first_in(b, HD_FN_FOR_HERE)) != UINT32_MAX)
		return run_here(b, task);
	if (here && closed && ready != UINT32_MAX)
		return run_here(b, ready);
	if (closed && b->offers)
		sooner(&wait.until_ns, b->closed_ns);
	bool full = b->live >= slots_now(b, now_ns);
	if (here && (full || pauses) && b->shares && ready != UINT32_MAX)
		return run_here(b, ready);
	task = here && b->shares && ready == UINT32_MAX ? late(b, now_ns, &wait.until_ns) : UINT32_MAX;
	if (task != UINT32_MAX)
		return run_here(b, task);
	if (closed || full)
		return wait;
	if (pauses) {
		sooner(&wait.until_ns, b->wait_ns);
		return wait;
	}
	if (ready != UINT32_MAX)
		return begin(b, ready, false, now_ns);
	if (b->live && now_ns >= b->look_ns) {
		task = may_duplicate(b) ? straggler(b, now_ns, false) : UINT32_MAX;
		if (task != UINT32_MAX)
			return begin(b, task, true, now_ns);
		b->look_ns = now_ns + HD_FN_LOOK_NS;
	}
	if (b->live)
		sooner(&wait.until_ns, b->look_ns);
	return wait;
}

bool hd_fn_board_greet(struct hd_fn_board *b, uint32_t task, uint32_t attempt, int64_t now_ns)
{
	struct hd_fn_attempt *a = find(b, task, attempt);

	if (!a || a->greeted || now_ns >= a->deadline_ns || !is_open(&b->task[task]))
		return false;
	a->greeted = true;
	return true;
}

enum hd_fn_reply hd_fn_board_commit(struct hd_fn_board *b, uint32_t task, uint32_t attempt, int64_t now_ns)
{
	struct hd_fn_task *t = task < b->ntasks ? &b->task[task] : NULL;

	if (!t || t->state == HD_FN_REVOKED || !attempt || attempt > t->begun) {
		b->count.stale++;
		return HD_FN_STALE;
	}
	if (t->state == HD_FN_DONE) {
		b->count.already++;
		return HD_FN_ALREADY;
	}
	struct hd_fn_attempt *a = find(b, task, attempt);
	if (a)
		sample(b, THERE, t->phase, now_ns - a->began_ns);
	t->state = HD_FN_DONE;
	b->open--;
	b->count.accepted++;
	return HD_FN_ACCEPTED;
}

/* Half of the pause is fixed, half drawn: owners that were refused together do not come back together. */
static void pause_calls(struct hd_fn_board *b, int64_t now_ns)
{
	const uint32_t counter[4] = { (uint32_t)b->count.throttled, (uint32_t)(b->count.throttled >> 32), 0,
		0 };
	int64_t most_ns = MOST_WAIT_NS;

	if (b->throttled_in_row < 6)
		most_ns = LEAST_WAIT_NS << b->throttled_in_row;
	if (most_ns > MOST_WAIT_NS)
		most_ns = MOST_WAIT_NS;
	b->throttled_in_row++;
	uint32_t word = hd_philox(counter, hd_philox_key(b->seed, HD_RNG_USER)).word[0];
	int64_t drawn_ns = (int64_t)((double)(most_ns / 2) * (double)hd_uniform(word));
	int64_t wait_ns = most_ns - drawn_ns;
	b->wait_ns = now_ns + (wait_ns < LEAST_WAIT_NS ? LEAST_WAIT_NS : wait_ns);
	b->halved_ns = now_ns + HD_FN_HALVED_NS;
}

void hd_fn_board_called(struct hd_fn_board *b, uint32_t task, uint32_t attempt, enum hd_fn_outcome outcome,
	int64_t now_ns)
{
	struct hd_fn_attempt *a = find(b, task, attempt);

	if (!a)
		return;                   /* it is dead already */
	struct hd_fn_task *t = &b->task[task];
	if (outcome == HD_FN_THROTTLED) {
		a->number = 0;
		b->live--;
		b->count.throttled++;
		if (t->state == HD_FN_LEASED && !nlive(t))
			t->state = HD_FN_READY;
		pause_calls(b, now_ns);
		if (!b->live && b->throttled_in_row >= HD_FN_REFUSALS)
			strike(b, now_ns);
		return;
	}
	b->throttled_in_row = 0;
	if (outcome == HD_FN_UNFIT)
		t->failed = HD_FN_FAILURES;
	if (outcome != HD_FN_ENDED || is_open(t)) {
		failed(b, t, a);
		strike(b, now_ns);
		return;
	}
	a->number = 0;
	b->live--;
	ended_well(b);
}

enum hd_fn_reply hd_fn_board_ran(struct hd_fn_board *b, uint32_t task, int64_t took_ns)
{
	struct hd_fn_task *t = task < b->ntasks ? &b->task[task] : NULL;

	if (!t || t->state == HD_FN_REVOKED)
		return HD_FN_STALE;
	sample(b, HERE, t->phase, took_ns);
	if (t->state == HD_FN_DONE)
		return HD_FN_ALREADY;
	t->state = HD_FN_DONE;
	b->open--;
	b->count.here++;
	return HD_FN_ACCEPTED;
}

void hd_fn_board_revoke(struct hd_fn_board *b, uint32_t task)
{
	if (task >= b->ntasks || !is_open(&b->task[task]))
		return;
	b->task[task].state = HD_FN_REVOKED;
	b->open--;
}
