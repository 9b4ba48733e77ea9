#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"

/* Workers that are not heard, here or by their peers, and those that make no progress: rule 5. */

#define STANDS_NS INT64_C(5000000000)

static bool any(const uint64_t *bits) { return bits[0] || bits[1]; }

/* The epoch that all members are about to enter, or are in. */
static uint32_t epoch_to_enter(const struct hd_coordinator *co)
{
	return co->phase == HD_CO_DECIDED ? co->next.epoch : co->view.epoch;
}

/* Mostly seals of others are on their way to it, and it enters the view in a moment. */
void hd_co_may_lack(struct hd_coordinator *co, struct hd_co_worker *w)
{
	if (w->lacks_epoch == epoch_to_enter(co))
		return;
	w->lacks_epoch = epoch_to_enter(co);
	w->lacks_ns = co->now_ns;
}

/* It lacks a message indeed, and would wait for ever. */
static bool lacks(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	return w->lacks_epoch == epoch_to_enter(co) && w->spoke < w->lacks_epoch &&
		co->now_ns - w->lacks_ns >= HD_TIMEOUT_NS(LINKS, co->config.detect_ns);
}

void hd_co_on_suspect(struct hd_coordinator *co, const struct hd_co_worker *by,
	const struct hd_msg_suspect *msg)
{
	struct hd_co_worker *w = hd_co_find(co, msg->worker);
	uint64_t i = (uint64_t)(by - co->worker), bit = UINT64_C(1) << i % 64;

	if (msg->why == HD_CORRUPT) {
		hd_co_suspect_digest(co, by, msg->worker);
		return;
	}
	/* whatever the reporter is by now */
	if (msg->why == HD_HEARD) {
		if (!w)
			return;
		co->mend |= hd_co_is_here(w) && (w->closed[i / 64] & bit) != 0;
		w->suspected[i / 64] &= ~bit;
		w->closed[i / 64] &= ~bit;
		return;
	}
	/* of a joiner: messages that it lacks are repeated only in a new epoch */
	if (by->state != HD_W_MEMBER) {
		co->mend |= msg->why == HD_CLOSED && (co->phase == HD_CO_DECIDING ||
			co->phase == HD_CO_DECIDED) && hd_view_has(&co->next, by->worker);
		return;
	}
	/* it cannot do what its view asks of it: another one is due */
	if (w == by) {
		co->mend |= co->phase <= HD_CO_DECIDED;
		return;
	}
	if (!w || !hd_co_is_here(w)) {
		if (co->phase == HD_CO_DECIDED ? !hd_view_has(&co->next, msg->worker) :
			!hd_view_has(&co->view, msg->worker))
			hd_co_may_lack(co, hd_co_find(co, by->worker));
		else
			co->mend |= co->phase <= HD_CO_DECIDED;
		return;
	}
	if (!any(w->suspected))
		w->suspect_ns = co->now_ns;
	w->suspected[i / 64] |= bit;
	if (msg->why != HD_SILENT)
		w->closed[i / 64] |= bit;
	if (w->lost_ns)
		hd_co_dead(co, w, "its links are closed here and at a peer");
}

/* A worker that got its id closes the link and calls again under the id at once. If it does not, it is
 * gone. */
static void on_guest_lost(struct hd_coordinator *co, uint32_t guest)
{
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w->guest == guest)
			w->lost_ns = co->now_ns ? co->now_ns : 1;
	}
}

void hd_co_on_lost(struct hd_coordinator *co, uint32_t worker, enum hd_suspicion why)
{
	struct hd_co_worker *w = hd_co_find(co, worker);

	if (!w) {
		if (worker != HD_NOBODY && why == HD_CLOSED)
			on_guest_lost(co, worker);
		return;
	}
	if (why == HD_HEARD) {
		if (w->silent)
			w->lost_ns = 0;
		w->silent = false;
		return;
	}
	/* what is down is not silent: it is not there before it calls again */
	w->silent = w->up = why == HD_SILENT && w->up;
	w->lost_ns = co->now_ns ? co->now_ns : 1;
	if (why == HD_EXITED)
		hd_co_ended(co, w);
	else if (any(w->suspected))
		hd_co_dead(co, w, "its links are closed here and at a peer");
}

/* Does the word of that worker count? What said nothing for two signs of life may be gone: then its reports
 * are nothing, and what it reported may be all that is left. It is heard again, or is lost T later. */
static bool is_fresh(const struct hd_coordinator *co, const struct hd_co_worker *by)
{
	return !by->lost_ns &&
		co->now_ns - by->heard_ns <= 2 * HD_TIMEOUT_NS(HEARTBEAT, co->config.detect_ns);
}

static bool reports(const struct hd_coordinator *co, const struct hd_co_worker *by,
	const struct hd_co_worker *w)
{
	uint64_t i = (uint64_t)(by - co->worker);

	return w->suspected[i / 64] >> i % 64 & 1 && is_fresh(co, by);
}

/* How many report it whose word counts. */
static uint32_t reporters(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces; i++)
		n += reports(co, &co->worker[i], w);
	return n;
}

static bool suspected_for(const struct hd_coordinator *co, const struct hd_co_worker *w, int64_t ns)
{
	return hd_co_is_here(w) && any(w->suspected) && co->now_ns - w->suspect_ns >= ns &&
		reporters(co, w);
}

/* With how many others it has a broken link, whichever end said so: one that hears none of its peers reports
 * all of them. What is not heard here either is at fault by itself. A report of the last moment may be taken
 * back. */
static uint32_t broken_links(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	int64_t ripe_ns = HD_TIMEOUT_NS(SILENT, co->config.detect_ns) / 2;
	bool ripe = suspected_for(co, w, ripe_ns);
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *other = &co->worker[i];
		n += (ripe && reports(co, other, w)) ||
			(reports(co, w, other) && other->up && !other->lost_ns &&
			suspected_for(co, other, ripe_ns));
	}
	return n;
}

/* Of two workers the one that is to go rather: the one with more broken links, then that of which there are
 * more reports, then the higher id. */
static bool is_worse(const struct hd_coordinator *co, const struct hd_co_worker *a,
	const struct hd_co_worker *b)
{
	uint32_t la = broken_links(co, a), lb = broken_links(co, b), na = reporters(co, a),
		nb = reporters(co, b);

	if (la != lb)
		return la > lb;
	return na != nb ? na > nb : a->worker > b->worker;
}

/* Peers miss them, we hear them. */
static struct hd_co_worker *worst(struct hd_coordinator *co)
{
	struct hd_co_worker *worst = NULL;
	bool due = false;

	for (uint32_t i = 0; i < co->nplaces; i++)
		due |= suspected_for(co, &co->worker[i], HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
	for (uint32_t i = 0; i < co->nplaces && due; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (hd_co_is_here(w) && broken_links(co, w) && (!worst || is_worse(co, w, worst)))
			worst = w;
	}
	assert(!due || worst);
	return worst;
}

/* Reports of the one that goes are forgotten: it may be all that there was on the others. */
static void expel(struct hd_coordinator *co)
{
	struct hd_co_worker *w;

	while ((w = worst(co)))
		hd_co_dead(co, w, any(w->suspected) ? "its peers do not hear it" : "it does not hear its "
			"peers");
}

static int64_t hung_after(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	int64_t longest = w->longest_ns > INT64_MAX / 8 ? INT64_MAX : 8 * (int64_t)w->longest_ns,
		least = HD_TIMEOUT_NS(PROGRESS, co->config.detect_ns);

	return longest > least ? longest : least;
}

static bool hung(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	return w->state == HD_W_MEMBER && w->busy && co->now_ns - w->done_ns > hung_after(co, w);
}

/* Of a member that may be lost, or hung, and will be given up only after more than 5 s: said after 5 s in
 * which it should have been heard, or have ended twice its longest instruction, then after twice as long each
 * further time. */
static void say_that_it_stands(struct hd_coordinator *co, struct hd_co_worker *w)
{
	const int64_t t = co->config.detect_ns, due = HD_TIMEOUT_NS(HEARTBEAT, t) * 5 / 4,
		after = hung_after(co, w) / 4;
	const int64_t silent = co->now_ns - w->heard_ns, still = w->busy ? co->now_ns - w->done_ns : 0;
	const bool unheard = silent >= STANDS_NS && silent >= due && silent < t;
	const int64_t ns = unheard ? silent : still >= STANDS_NS && still >= after ? still : 0;

	if (w->state != HD_W_MEMBER || !ns) {
		w->stands_said_ns = 0;
		return;
	}
	if (ns < 2 * w->stands_said_ns)
		return;
	w->stands_said_ns = ns;
	hd_co_note(co, "waits", w->worker, "%s for %lld s; it counts as %s after %lld s", unheard ?
		"nothing was heard of it" : "it makes no progress", (long long)(ns / 1000000000), unheard ?
		"lost" : "hung", (long long)((unheard ? t : hung_after(co, w)) / 1000000000));
}

/* Of the step that is not committed: has a member sealed it? The others are named. */
static bool is_sealed_by_some(struct hd_coordinator *co, char *others, size_t cap)
{
	bool some = false;
	size_t len = 0;
	char one[16];

	others[0] = '\0';
	for (uint32_t m = 0; m < co->view.nmembers && co->has_view && co->phase <= HD_CO_DECIDED; m++) {
		const struct hd_co_worker *w = hd_co_find(co, co->view.member[m]);
		if (w && w->sealed > co->committed) {
			some = true;
			continue;
		}
		snprintf(one, sizeof one, " %u", co->view.member[m]);
		hd_co_list(others, cap, &len, one);
	}
	return some && len;
}

/* A member that has ended a step goes on when all have, and they end it at about the same time: longer than
 * that, and the run stands still. It is said after 5 s, and after twice as long each further time. */
static void say_for_what_all_wait(struct hd_coordinator *co)
{
	char others[160];

	const bool split = is_sealed_by_some(co, others, sizeof others);
	if (!split || co->split_step != co->committed + 1) {
		co->split_step = split ? co->committed + 1 : 0;
		co->split_ns = co->now_ns;
		co->split_said_ns = 0;
		return;
	}
	const int64_t ns = co->now_ns - co->split_ns;
	if (ns < STANDS_NS || ns < 2 * co->split_said_ns)
		return;
	co->split_said_ns = ns;
	hd_co_note(co, "waits", HD_NOBODY, "for %lld s all wait for worker%s%s to end step %llu, which "
		"others have ended", (long long)(ns / 1000000000), strchr(others + 1, ' ') ? "s" : "", others,
		(unsigned long long)co->committed);
}

void hd_co_watch(struct hd_coordinator *co)
{
	int64_t t = co->config.detect_ns;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w->lost_ns && co->now_ns - w->lost_ns >= HD_TIMEOUT_NS(SILENT, t))
			hd_co_dead(co, w, w->up ? "nothing was heard of it" : "its link closed");
		else if (w->guest != HD_NOBODY && co->now_ns - w->joined_ns > HD_TIMEOUT_NS(START, t))
			hd_co_dead(co, w, "it did not come back under its id");
		else if (hung(co, w))
			hd_co_dead(co, w, "it makes no progress");
		say_that_it_stands(co, w);
		/* an epoch that is under way has no such members */
		co->mend |= co->phase <= HD_CO_DECIDED && hd_co_is_here(w) && lacks(co, w);
	}
	expel(co);
	say_for_what_all_wait(co);
}
