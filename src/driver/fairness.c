#include "driver/fairness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)HD_MAX_MEMBERS <= (int)HD_FAIR_WORKERS, "all members are compared");

#define FELT 0.01                         /* rule 4 */

void hd_fairness_init(struct hd_fairness *f, int64_t window_ns)
{
	memset(f, 0, sizeof *f);
	f->window_ns = window_ns;
	hd_fair_init(&f->fair);
}

/* Rule 2. */
static void follow(struct hd_fairness *f, const struct hd_view *view)
{
	if (f->n == view->nmembers && !memcmp(f->member, view->member, f->n * sizeof *f->member))
		return;
	hd_fairness_init(f, f->window_ns);
	f->n = view->nmembers;
	memcpy(f->member, view->member, f->n * sizeof *f->member);
}

void hd_fairness_take(struct hd_fairness *f, const struct hd_view *view, uint32_t worker,
	const struct hd_fair_part *part, int64_t now_ns)
{
	follow(f, view);
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->member[i] != worker)
			continue;
		f->part[i] = *part;
		if (f->part[i].waited_s < FELT * (double)f->window_ns * 1e-9) {
			f->part[i].waited_s = 0;
			f->part[i].demanded = f->part[i].delivered;
		}
		f->here[i] = true;
		f->first_ns = f->first_ns ? f->first_ns : now_ns;
	}
}

__attribute__((format(printf, 4, 5)))
static void say(struct hd_fairness_out *out, const char *kind, uint32_t worker, const char *fmt, ...)
{
	va_list args;

	if (out->nsaid == HD_FAIRNESS_SAID)
		return;
	struct hd_fairness_said *said = &out->said[out->nsaid++];
	said->kind = kind;
	said->worker = worker;
	va_start(args, fmt);
	(void)vsnprintf(said->text, sizeof said->text, fmt, args);
	va_end(args);
}

static bool is_due(const struct hd_fairness *f, int64_t now_ns)
{
	uint32_t here = 0;

	for (uint32_t i = 0; i < f->n; i++)
		here += f->here[i];
	return here && (here == f->n || now_ns - f->first_ns >= 2 * f->window_ns);
}

/* What was said becomes the newest window. One that said nothing wanted nothing. */
static const struct hd_fair_window *close_window(struct hd_fairness *f)
{
	if (f->nwindows == HD_FAIR_WINDOWS)
		memmove(f->window, f->window + 1, --f->nwindows * sizeof *f->window);
	struct hd_fair_window *w = &f->window[f->nwindows++];
	memset(w, 0, sizeof *w);
	w->nworkers = f->n;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->here[i])
			w->part[i] = f->part[i];
	memset(f->here, 0, sizeof f->here);
	f->first_ns = 0;
	return w;
}

static double got(const struct hd_fair_part *p)
{
	return p->demanded > 0 && p->delivered < p->demanded ? p->delivered / p->demanded : 1;
}

static void say_flags(struct hd_fairness *f, const struct hd_fair_window *w,
	const struct hd_fair_found *found, struct hd_fairness_out *out)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct hd_fair_part *p = &w->part[i];
		if (found->flagged[i] && !f->flagged[i])
			say(out, "reading_unfair", f->member[i], "worker %u gets %.0f %% of what it would "
				"read, and others what they want (fairness %.2f): %s; a read takes it %.2f "
				"ms, one in a hundred %.2f", f->member[i], 100 * got(p), found->jain,
				hd_fair_cause_text(found->cause[i]), p->service_s * 1e3,
				p->service_p99_s * 1e3);
		else if (!found->flagged[i] && f->flagged[i])
			say(out, "reading_fair", f->member[i], "worker %u reads as others do (fairness "
				"%.2f)", f->member[i], found->jain);
		f->proposed[i] = f->proposed[i] && found->flagged[i];
		f->flagged[i] = found->flagged[i];
	}
}

static uint32_t vns_of(const struct hd_view *view, uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		n += view->rank[r].worker == worker ? view->rank[r].nvns : 0;
	return n;
}

static void say_move(struct hd_fairness *f, const struct hd_view *view, const struct hd_fair_window *w,
	uint32_t at, struct hd_fairness_out *out)
{
	const uint32_t n = vns_of(view, f->member[at]), left = (uint32_t)(got(&w->part[at]) * n + 0.5);

	if (f->proposed[at])
		return;
	f->proposed[at] = true;
	say(out, "reading_answer", f->member[at], "virtual nodes should move away from worker %u: it reads "
		"for %u of its %u in time; maps follow its measured pace, where elastic.straggler allows it",
		f->member[at], left, n);
}

static void say_answer(struct hd_fairness *f, const struct hd_view *view, const struct hd_fair_window *w,
	const uint32_t *was, const uint32_t *depth, struct hd_fair_answer a, struct hd_fairness_out *out)
{
	static const char *const why[] = {
		[HD_FAIR_LOWER] = "it does not wait, and others do",
		[HD_FAIR_DEEPEN] = "it waits, and others do not",
		[HD_FAIR_BACK] = "it began to wait",
	};

	for (uint32_t i = 0; i < f->n && a.act != HD_FAIR_UNDO; i++)
		if (i != a.worker && depth[i] != was[i])
			say(out, "reading_answer", f->member[i], "worker %u reads %u at once again (it was "
				"%u): that brought nothing", f->member[i], depth[i], was[i]);
	if (a.act == HD_FAIR_UNDO)
		say(out, "reading_answer", UINT32_MAX, "all read as they would again: they were served alike "
			"in %u windows", f->fair.holds);
	else if (a.act == HD_FAIR_MOVE)
		say_move(f, view, w, a.worker, out);
	else
		say(out, "reading_answer", f->member[a.worker], "worker %u reads %u at once (it was %u): %s",
			f->member[a.worker], depth[a.worker], was[a.worker], why[a.act]);
}

static void react(struct hd_fairness *f, const struct hd_view *view, const struct hd_fair_window *w,
	const struct hd_fair_found *found, struct hd_fairness_out *out)
{
	uint32_t depth[HD_FAIR_WORKERS] = { 0 }, was[HD_FAIR_WORKERS];

	for (uint32_t i = 0; i < f->n; i++) {
		const uint32_t own = w->part[i].depth ? w->part[i].depth : 1;
		depth[i] = f->ordered[i] ? f->ordered[i] : own;
		if (!f->ordered[i])
			f->fair.before[i] = own;  /* its tuner's: no answer of here lowered it */
	}
	memcpy(was, depth, sizeof was);
	const struct hd_fair_answer a = hd_fair_react(&f->fair, w, found, depth);
	if (!f->fair.any)                 /* no answer is in force: UNDO, or the last ones were taken back */
		memset(f->ordered, 0, sizeof f->ordered);
	if (a.act == HD_FAIR_STAY)
		return;
	say_answer(f, view, w, was, depth, a, out);
	for (uint32_t i = 0; i < f->n && a.act != HD_FAIR_UNDO; i++)
		if (depth[i] != was[i])
			f->ordered[i] = depth[i];
}

bool hd_fairness_step(struct hd_fairness *f, const struct hd_view *view, int64_t now_ns,
	struct hd_fairness_out *out)
{
	struct hd_fair_found found;
	uint32_t before[HD_FAIR_WORKERS];

	out->nsaid = out->norders = 0;
	follow(f, view);
	if (f->n < 2 || !is_due(f, now_ns))
		return false;
	const struct hd_fair_window *w = close_window(f);
	hd_fair_judge(f->window, f->nwindows, f->flagged, &found);
	memcpy(before, f->ordered, sizeof before);
	if (!found.stalled) {             /* where none read, or got anything, none is worse */
		say_flags(f, w, &found, out);
		react(f, view, w, &found, out);
	}
	for (uint32_t i = 0; i < f->n; i++)
		if (f->ordered[i] || before[i])
			out->order[out->norders++] = (struct hd_fairness_order){ f->member[i],
				f->ordered[i] };
	return true;
}
