#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Rule 12 of coordinator.h. Digests are kept by worker and step, whatever the epoch: X_{s+1} is a
 * function of the job, so two different digests mean that some memory or some computation is wrong. They
 * do not tell whose part of the sums was wrong, so every state is suspect, and the minority is expelled.
 * Where it is none (batch.mode bounded), digests of workers that are gone may be of a step that was run again
 * since, with other bits: they are not compared. */

/* without a later state that was the same at all: it is no accident then */
enum { TRIES = 2 };

static const struct hd_co_digests *report_of(const struct hd_co_worker *w, uint64_t step)
{
	const struct hd_co_digests *t = &w->reported[step & 1];

	return t->next == step + 1 ? t : NULL;
}

/* What reports are about: all of the state, or so many buckets of it. */
struct matter { uint32_t first, n; };
static const struct matter all;

static bool about(const struct hd_co_digests *t, struct matter m)
{
	return m.n ? hd_held_of(t->held, t->nheld, m.first, m.n) != NULL : t->sum || t->state;
}

/* Both are about it. */
static bool same(const struct hd_co_digests *a, const struct hd_co_digests *b, struct matter m)
{
	if (!m.n)
		return a->sum == b->sum && a->state == b->state;
	return hd_held_of(a->held, a->nheld, m.first, m.n)->digest ==
		hd_held_of(b->held, b->nheld, m.first, m.n)->digest;
}

/* Do they differ, and in what? */
static bool differ(const struct hd_co_digests *a, const struct hd_co_digests *b, struct matter *in)
{
	const struct hd_held_run *run = hd_held_differ(a->held, a->nheld, b->held, b->nheld);

	*in = all;
	if (about(a, all) && about(b, all) && !same(a, b, all))
		return true;
	if (run)
		*in = (struct matter){ run->first, run->n };
	return run != NULL;
}

static void mismatch(struct hd_coordinator *co, uint64_t step)
{
	if (!co->mismatched || step + 1 < co->mismatched)
		co->mismatched = step + 1;
	/* verified by the remaining members before one of them reported it */
	if (co->verified > step)
		co->verified = co->verified_before <= step ? co->verified_before : 0;
}

void hd_co_on_digests(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_seal *seal)
{
	struct hd_co_digests *mine = &w->reported[seal->step & 1];
	struct matter in;

	if (!seal->ran || !(seal->sum_digest || seal->state_digest || seal->nheld) ||
		seal->step + 1 < mine->next)
		return;
	*mine = (struct hd_co_digests){ seal->step + 1, seal->sum_digest, seal->state_digest,
		.nheld = seal->nheld };
	for (uint32_t i = 0; i < seal->nheld; i++)
		mine->held[i] = seal->held[i];
	for (uint32_t i = 0; i < co->nplaces; i++) {
		if (co->config.varies && !hd_co_is_here(&co->worker[i]))
			memset(co->worker[i].reported, 0, sizeof co->worker[i].reported);
		const struct hd_co_digests *other = report_of(&co->worker[i], seal->step);
		if (other && differ(other, mine, &in))
			mismatch(co, seal->step);
	}
}

/* The other worker's digest may have reached that member alone. */
void hd_co_suspect_digest(struct hd_coordinator *co, const struct hd_co_worker *by, uint32_t worker)
{
	uint64_t next = by->reported[0].next > by->reported[1].next ? by->reported[0].next :
		by->reported[1].next;
	struct hd_co_worker *w = hd_co_find(co, worker);

	if (!next)
		return;
	mismatch(co, next - 1);
	if (w)
		w->suspect_digest = next;
	else
		co->unknown_sender = next;              /* of a previous coordinator's worker, gone since */
}

static const struct hd_co_digests *report_at(struct hd_coordinator *co, uint32_t member, uint64_t step)
{
	const struct hd_co_worker *w = hd_co_find(co, co->view.member[member]);

	return w ? report_of(w, step) : NULL;
}

/* Of state by stages: what two members hold was compared, and there is something that two hold. */
static bool held_compared(struct hd_coordinator *co, uint64_t step)
{
	bool met = false, all_met = true;

	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		const struct hd_co_digests *a = report_at(co, i, step);
		for (uint32_t k = i + 1; a && k < co->view.nmembers && all_met; k++) {
			const struct hd_co_digests *b = report_at(co, k, step);
			all_met = !b || hd_held_meet(a->held, a->nheld, b->held, b->nheld, &met);
		}
	}
	return met && all_met;
}

/* All members reported a digest of the state after it, or of what they hold: equal ones, since no mismatched
 * step is committed. */
void hd_co_verify(struct hd_coordinator *co, uint64_t step)
{
	uint32_t nstates = 0;

	assert(!co->mismatched || step + 1 < co->mismatched);
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		const struct hd_co_digests *t = report_at(co, i, step);
		nstates += t && t->state;
	}
	if (nstates < co->view.nmembers && !held_compared(co, step))
		return;
	co->verified_before = co->verified;
	co->verified = step + 1;
}

/* Members that have not sealed it yet will, or die. */
static bool all_sealed(struct hd_coordinator *co, uint64_t step)
{
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (w && hd_co_is_here(w) && w->sealed <= step)
			return false;
	}
	return true;
}

struct votes {
	struct matter on;
	uint32_t n, most;
	const struct hd_co_worker *of[2];
	const struct hd_co_digests *best;
};

static struct matter matter_of(const struct hd_coordinator *co, uint64_t step)
{
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_digests *t = report_of(&co->worker[i], step);
		for (uint32_t k = i + 1; t && k < co->nplaces; k++) {
			const struct hd_co_digests *other = report_of(&co->worker[k], step);
			struct matter in;
			if (other && differ(t, other, &in))
				return in;
		}
	}
	return all;
}

/* What a worker says of it; a report that is not of this says nothing. */
static const struct hd_co_digests *vote_of(const struct hd_co_worker *w, uint64_t step, struct matter on)
{
	const struct hd_co_digests *t = report_of(w, step);

	return t && about(t, on) ? t : NULL;
}

/* One that is said to have sent another digest, and whose report did not come. */
static bool accused(const struct hd_co_worker *w, uint64_t step)
{
	return w->suspect_digest == step + 1 && !report_of(w, step);
}

/* of: two that differ, for a sentence. */
static void count(const struct hd_coordinator *co, uint64_t step, struct votes *v)
{
	*v = (struct votes){ .on = matter_of(co, step), .n = co->unknown_sender == step + 1 };
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		const struct hd_co_digests *t = vote_of(w, step, v->on);
		uint32_t n = 0;
		v->n += t || accused(w, step);
		for (uint32_t k = 0; t && k < co->nplaces; k++) {
			const struct hd_co_digests *other = vote_of(&co->worker[k], step, v->on);
			n += other && same(t, other, v->on);
		}
		if (t && !v->of[0])
			v->of[0] = w;
		else if (!v->of[1] && (t ? !same(t, report_of(v->of[0], step), v->on) :
			accused(w, step)))
			v->of[1] = w;
		if (n > v->most) {
			v->most = n;
			v->best = t;
		}
	}
}

static void invalidate(struct hd_coordinator *co)
{
	hd_co_act(co, HD_CO_DO_INVALIDATE)->step = co->verified;
}

static void forget(struct hd_coordinator *co)
{
	co->mismatched = co->unknown_sender = 0;
	for (uint32_t i = 0; i < HD_CO_NEWS; i++)
		co->news[i].step = 0;                     /* records of steps that are run again */
	for (uint32_t i = 0; i < co->nplaces; i++) {
		memset(co->worker[i].reported, 0, sizeof co->worker[i].reported);
		co->worker[i].suspect_digest = 0;
	}
}

/* No worker is left to report on the mismatch: what was saved of it must be neither restored nor
 * resumed. */
void hd_co_invalidate(struct hd_coordinator *co)
{
	if (co->invalidates || co->mismatched)
		invalidate(co);
	if (co->mismatched)
		forget(co);
	co->invalidates = false;
}

static void give_up(struct hd_coordinator *co, uint64_t step, const struct votes *v, const char *why)
{
	char pair[80] = "", what[60] = "states", text[HD_MSG_TEXT + 1];

	if (v->of[0] && v->of[1])
		snprintf(pair, sizeof pair, "workers %u and %u", v->of[0]->worker, v->of[1]->worker);
	if (v->on.n == 1)
		snprintf(what, sizeof what, "bits of bucket %u of the state", v->on.first);
	else if (v->on.n)
		snprintf(what, sizeof what, "bits of buckets %u to %u of the state", v->on.first,
			v->on.first + v->on.n - 1);
	snprintf(text, sizeof text,
		"step %llu: %s hold different %s, and %s: a memory or a processor gives wrong bits. "
		"Checkpoints up to step %llu are"
		" sound, later ones were removed: have the machines looked at, and resume the run on others",
		(unsigned long long)step,
		*pair ? pair : "workers", what, why, (unsigned long long)co->verified);
	hd_co_note(co, "integrity", HD_NOBODY, "%s", text);
	invalidate(co);
	/* `mismatched` stays: seals may still come, and commit nothing */
	hd_co_store(co);
	hd_co_end(co, 5, text);
}

/* Ends every worker that may hold results of that step. Workers that synced from them sync again by
 * themselves. */
static void begin_again(struct hd_coordinator *co, uint64_t step, const struct votes *v)
{
	const struct hd_co_digests best = *v->best;

	assert(best.next == step + 1 && 2 * v->most > v->n);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		const struct hd_co_digests *t = vote_of(w, step, v->on);
		if (!hd_co_is_here(w) || !(t ? !same(t, &best, v->on) : accused(w, step)))
			continue;
		char *text = hd_arena_take(&co->out, HD_MSG_TEXT + 1, 1);         /* RELEASE keeps it */
		if (!text) {
			co->broken = true;
			return;
		}
		snprintf(text, HD_MSG_TEXT,
			"worker %u held another state after step %llu than %u of %u workers: its memory or "
			"its processor gives wrong bits",
			w->worker, (unsigned long long)step, v->most, v->n);
		hd_co_note(co, "corrupt", w->worker, "%s", text);
		hd_co_release(co, w, 5, text);
		hd_co_dead(co, w, "it is corrupt");
	}
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w->state == HD_W_MEMBER || w->decided)
			hd_co_dead(co, w,
				"its state may have come of what a corrupt worker sent: all begin again "
				"from the newest that was the same at all");
	}
	invalidate(co);
	co->invalidates = true;
	forget(co);
}

void hd_co_judge(struct hd_coordinator *co)
{
	bool open = co->phase >= HD_CO_IDLE && co->phase <= HD_CO_DECIDED;
	uint64_t step = co->mismatched - 1;
	struct votes v;

	assert(!open || co->has_view);
	if (!co->mismatched || !open || !all_sealed(co, step))
		return;
	count(co, step, &v);
	assert(v.most <= v.n);
	/* stored with the epoch that comes of it */
	co->record.mismatches = co->verified > co->record.mismatched ? 1 : co->record.mismatches + 1;
	co->record.mismatched = step > co->record.mismatched ? step : co->record.mismatched;
	if (2 * v.most <= v.n)
		give_up(co, step, &v, "no majority says which is right");
	else if (co->record.mismatches > TRIES)
		give_up(co, step, &v, "it has happened before");
	else
		begin_again(co, step, &v);
}
