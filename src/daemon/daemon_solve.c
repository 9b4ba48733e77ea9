#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/failpoint.h"
#include "daemon/daemon_int.h"

/* Threads of policies: one is in the question of the machine that decides, others are in questions that
 * that were given up. */

#define HD_DAEMON_LAST_LOOK_NS INT64_C(50000000)

static void solve(void *user)
{
	struct policy_thread *s = user;

	(void)HD_FAILPOINT(DAEMON_SOLVE);
	hd_dispatch_solve(s->question);
	atomic_store(&s->done, true);
	hd_loop_wake(s->loop);
}

/* The one that answers the machine; NULL: none does. */
static struct policy_thread *current(const struct hd_daemon *d)
{
	struct policy_thread *last = d->nsolving ? d->solving[d->nsolving - 1] : NULL;

	return last && !last->given_up ? last : NULL;
}

static void leave_alone(struct policy_thread *s)
{
	s->given_up = true;
	hd_dispatch_stop(s->question);
}

/* Joins those that are through. True: the machine has its answer. */
static bool end_threads(struct hd_daemon *d)
{
	const struct policy_thread *mine = current(d);
	bool answered = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->nsolving; i++) {
		struct policy_thread *s = d->solving[i];
		if (!atomic_load(&s->done)) {
			d->solving[n++] = s;
			continue;
		}
		answered |= s == mine;
		hd_thread_join(&s->thread);
		hd_dispatch_release(s->question);
		hd_free(s);
	}
	d->nsolving = n;
	return answered;
}

/* A policy that is in a question which was given up is not asked another one: it would not answer that
 * either. */
static bool may_ask(const struct hd_daemon *d)
{
	for (uint32_t i = 0; i < d->nsolving; i++)
		if (!strcmp(d->solving[i]->policy, d->policy))
			return false;
	return d->nsolving < HD_DAEMON_SOLVES;
}

/* False: there is no thread for it. */
static bool begin(struct hd_daemon *d, struct hd_dispatch_question *question)
{
	struct policy_thread *s = hd_alloc(sizeof *s);

	if (!s)
		return false;
	*s = (struct policy_thread){ .question = question, .loop = &d->loop, .since_s = daemon_now_s(d) };
	snprintf(s->policy, sizeof s->policy, "%s", d->policy);
	hd_dispatch_hold(question);
	if (hd_thread_start(&s->thread, "policy", -1, solve, s, NULL)) {
		hd_dispatch_release(question);
		hd_free(s);
		return false;
	}
	d->solving[d->nsolving++] = s;
	return true;
}

static void say_given_up(const struct hd_daemon *d, const struct policy_thread *s, char text[HD_DAEMON_LATE])
{
	if (s->late)
		snprintf(text, HD_DAEMON_LATE,
			"policy %.64s has not answered within %.0f s and was given up: the shares of before "
			"stay, and jobs without one wait. Choose another policy (POST /v1/policy), or serve "
			"with longer rounds (--round)", s->policy, daemon_lease_s(d));
	else
		snprintf(text, HD_DAEMON_LATE,
			"policy %.64s is still in a question of before another one was chosen, and is asked "
			"again when that has ended: jobs keep their devices, waiting jobs wait", s->policy);
}

static void give_up(struct hd_daemon *d, struct policy_thread *s)
{
	struct hd_diag diag = { "" };
	char text[HD_DAEMON_LATE];

	s->late = true;
	say_given_up(d, s, text);
	leave_alone(s);
	(void)!daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_GIVE_UP, .text = text },
		NULL, NULL, &diag);
}

/* Without a thread a question is answered here. */
void daemon_turn_policy(struct hd_daemon *d)
{
	struct hd_diag diag = { "" };
	bool answered = end_threads(d);
	struct policy_thread *late = current(d);

	if (d->broken)
		return;
	if (late && daemon_now_s(d) - late->since_s > daemon_lease_s(d))
		give_up(d, late);
	struct hd_dispatch_question *question = answered || current(d) ? NULL : hd_dispatch_asks(d->dispatch);
	if (question && may_ask(d))
		answered = !begin(d, question);
	if (answered && !d->broken)
		(void)!daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SHARES }, NULL,
			NULL, &diag);
}

void daemon_swap_dispatch(struct hd_daemon *d, struct hd_dispatch *made, const char *policy)
{
	if (current(d))
		leave_alone(current(d));
	hd_dispatch_destroy(d->dispatch);
	d->dispatch = made;
	if (policy != d->policy)
		snprintf(d->policy, sizeof d->policy, "%s", policy);
}

/* Runs keep their leases meanwhile. */
bool daemon_end_policies(struct hd_daemon *d)
{
	int64_t until = hd_clock_now_ns(d->clock) + HD_DAEMON_LAST_NS;
	struct hd_loop_event event[8];
	size_t n;

	for (uint32_t i = 0; i < d->nsolving; i++)
		leave_alone(d->solving[i]);
	(void)end_threads(d);
	if (!d->nsolving)
		return true;
	(void)hd_renewer_begin(d->renewer, INT64_MAX);
	for (int64_t now = hd_clock_now_ns(d->clock); d->nsolving && now < until;
		now = hd_clock_now_ns(d->clock)) {
		if (hd_loop_poll(&d->loop, now + HD_DAEMON_LAST_LOOK_NS, event, sizeof event / sizeof *event,
			&n, NULL))
			break;
		(void)end_threads(d);
	}
	(void)hd_renewer_end(d->renewer);
	if (d->nsolving)
		daemon_log(d, "warning", 0, "a policy does not come to an end; it ends with this process");
	return !d->nsolving;
}

double daemon_asked_s(const struct hd_daemon *d) { return current(d) ? current(d)->since_s : -1; }

void daemon_late_text(const struct hd_daemon *d, char text[HD_DAEMON_LATE])
{
	text[0] = 0;
	for (uint32_t i = 0; i < d->nsolving && !*text; i++)
		if (!strcmp(d->solving[i]->policy, d->policy) && d->solving[i]->given_up)
			say_given_up(d, d->solving[i], text);
	if (!*text && !current(d) && d->nsolving == HD_DAEMON_SOLVES)
		snprintf(text, HD_DAEMON_LATE,
			"policy %.64s is not asked: %d others have not come to an end. Restart the "
			"scheduler; jobs outlive it",
			d->policy, HD_DAEMON_SOLVES);
}
