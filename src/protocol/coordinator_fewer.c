#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"

/* Fewer devices than a pipeline needs go on with fewer stages, and views are refused: rules 17 and 18 of
 * coordinator.h. */

/* ---- refusals ---- */

static bool refuses(const struct hd_co_unfit *by, const uint32_t *member, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (member[i] == by->worker)
			return true;
	return false;
}

bool hd_co_is_refused(const struct hd_coordinator *co, const struct hd_view_shape *shape,
	const uint32_t *member, uint32_t n)
{
	const uint64_t key = co->record.nunfit ? hd_view_shape_key(shape) : 0;

	for (uint32_t i = 0; i < co->record.nunfit; i++)
		if (co->record.unfit[i].shape == key && refuses(&co->record.unfit[i], member, n))
			return true;
	return false;
}

/* Of the members of `next`; as many as there are room for in `key`. */
static uint32_t all_refused(const struct hd_coordinator *co, const struct hd_view *next, uint64_t *key)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->record.nunfit; i++)
		if (refuses(&co->record.unfit[i], next->member, next->nmembers))
			key[n++] = co->record.unfit[i].shape;
	return n;
}

/* After a takeover one that did not come back is in no table. */
static bool refuser_is_here(struct hd_coordinator *co, uint32_t i)
{
	const struct hd_co_worker *w = hd_co_find(co, co->record.unfit[i].worker);

	return w && hd_co_is_here(w);
}

/* Did another worker that is here refuse that shape, too? */
static bool has_other(struct hd_coordinator *co, uint32_t i)
{
	for (uint32_t k = 0; k < co->record.nunfit; k++)
		if (k != i && co->record.unfit[k].shape == co->record.unfit[i].shape &&
			refuser_is_here(co, k))
			return true;
	return false;
}

/* Which one makes room: the oldest whose worker is gone; else of a shape that stays refused; else the oldest.
 * So members that all refuse all that there is do not forget what the others refused. */
static uint32_t least_needed(struct hd_coordinator *co)
{
	const uint32_t n = co->record.nunfit;

	for (uint32_t i = 0; i < n; i++)
		if (!refuser_is_here(co, i))
			return i;
	for (uint32_t i = 0; i < n; i++)
		if (has_other(co, i))
			return i;
	return 0;
}

static void remember(struct hd_coordinator *co, uint32_t worker, const struct hd_view_shape *shape)
{
	struct hd_co_record *r = &co->record;
	const uint32_t at = least_needed(co);

	if (hd_co_is_refused(co, shape, &worker, 1))
		return;
	if (r->nunfit == HD_CO_UNFIT)
		memmove(r->unfit + at, r->unfit + at + 1, (--r->nunfit - at) * sizeof *r->unfit);
	assert(r->nunfit < HD_CO_UNFIT);
	r->unfit[r->nunfit++] = (struct hd_co_unfit){ worker, hd_view_shape_key(shape) };
	hd_co_store(co);
}

void hd_co_on_unfit(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_unfit *msg)
{
	const bool planned = co->phase >= HD_CO_NUMBERING && co->phase <= HD_CO_DECIDED &&
		msg->view == co->next.epoch;
	const struct hd_view *view = planned ? &co->next : &co->view;

	if (!co->has_view || msg->view != view->epoch || !view->shape.nstages ||
		!hd_view_has(view, w->worker))
		return;
	remember(co, w->worker, &view->shape);
	hd_co_note(co, "unfit", w->worker, "it has not the memory for its part of %u stages: %.*s",
		view->shape.nstages, (int)msg->nwhy, msg->nwhy ? msg->why : "");
	if (planned) {
		hd_co_void(co);
		return;
	}
	co->refused = true;
	if (co->phase <= HD_CO_DECIDED)
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
}

/* ---- fewer stages ---- */

/* Stages of the view before that no member of `next` runs: what an heir has run for a step is not its own. */
static uint64_t lost_stages(const struct hd_view *had, const struct hd_view *next)
{
	uint64_t lost = 0;

	for (uint32_t s = 0; had && s < had->shape.nstages; s++) {
		bool runs = false;
		for (uint32_t pipe = 0; pipe < hd_view_pipes(had); pipe++) {
			const uint32_t r = hd_view_rank(had, pipe, s);
			runs |= !hd_view_doubled(had, r) && hd_view_has(next, had->rank[r].worker);
		}
		lost |= (uint64_t)!runs << s;
	}
	return lost;
}

/* That in force, or the one before fewer stages that were refused. NULL: another coordinator knew it. */
static const struct hd_view *before(const struct hd_coordinator *co)
{
	if (!co->refused)
		return &co->view;
	return co->fewer_of.epoch ? &co->fewer_of : NULL;
}

/* Of the job, while all hold. */
static const struct hd_view_shape *shape_of(const struct hd_coordinator *co)
{
	const struct hd_view *view = before(co);

	return view && view->shape.nstages ? &view->shape : &co->config.shape;
}

static const struct hd_stage_buckets *shadowed(const struct hd_coordinator *co,
	const struct hd_view_shape *shape)
{
	const struct hd_stage_buckets *buckets = co->config.fewer && co->config.of_shape ?
		co->config.of_shape(co->config.of_shape_self, shape) : NULL;

	return buckets && (buckets->shadows || hd_co_least(co) > 1) ? buckets : NULL;
}

/* Members that hold all that a stage reads. */
static uint64_t holders_of(const struct hd_coordinator *co, const struct hd_stage_buckets *buckets,
	uint32_t stage)
{
	uint64_t holders = UINT64_MAX;

	for (uint32_t b = 0; b < co->config.nbuckets; b++)
		holders &= buckets->at[b].readers >> stage & 1 ? co->held[b] : UINT64_MAX;
	return holders;
}

/* The same after a takeover, by what members hold: a shadow is beside the stage before it, so whoever has a
 * stage and not that one runs it. */
static uint64_t lost_as_held(const struct hd_coordinator *co, const struct hd_view_shape *had)
{
	const struct hd_stage_buckets *buckets = shadowed(co, had);
	const uint32_t n = had->nstages;
	uint64_t lost = 0;

	for (uint32_t s = 0; s < n; s++)
		lost |= (uint64_t)!(holders_of(co, buckets, s) & ~holders_of(co, buckets, (s + n - 1) % n)) <<
			s;
	return lost;
}

bool hd_co_may_have_fewer(const struct hd_coordinator *co, uint32_t nranks)
{
	return nranks / hd_co_least(co) >= 1 && nranks > co->fewer_tried && shadowed(co, shape_of(co));
}

static void note_fewer(struct hd_coordinator *co, const struct hd_view_shape *fewer)
{
	const uint32_t ndevices = fewer->width * hd_view_each(fewer) * hd_co_least(co);

	hd_co_note(co, "fewer", HD_NOBODY,
		"%u stage%s on %u device%s until there are %u: no worker is waited for", fewer->nstages,
		fewer->nstages == 1 ? "" : "s", ndevices, ndevices == 1 ? "" : "s",
		co->config.shape.width * hd_view_each(&co->config.shape) * hd_co_least(co));
}

bool hd_co_fill_fewer(struct hd_coordinator *co, struct hd_view *next, const struct hd_view_shape *running)
{
	if (running && hd_co_is_refused(co, running, next->member, next->nmembers))
		running = NULL;
	const struct hd_view_shape *had = running ? running : shape_of(co);
	const struct hd_view *of = before(co);
	uint64_t refused[HD_CO_UNFIT];
	struct hd_fewer_ask ask = { .shape = had, .n = next->nmembers, .refused = refused };
	struct hd_view_shape fewer;
	uint32_t width = 0;

	if (co->open.hold || !shadowed(co, had))
		return false;
	for (uint32_t i = 0; i < next->nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, next->member[i]);
		width += w ? w->ndevices / hd_view_each(had) : 0;
	}
	co->fewer_tried = width;
	width /= hd_co_least(co);
	ask.lost = running ? lost_as_held(co, running) : lost_stages(of, next);
	ask.width = width;
	ask.nrefused = all_refused(co, next, refused);
	if (width < 1 || width >= had->width || !co->config.fewer(co->config.fewer_self, &ask, &fewer) ||
		fewer.width > width || !co->config.of_shape(co->config.of_shape_self, &fewer) ||
		hd_co_is_refused(co, &fewer, next->member, next->nmembers) ||
		!hd_co_fill_map(co, next, &fewer, 0, hd_co_least(co)))
		return false;
	if (of)
		co->fewer_of = *of;
	note_fewer(co, &fewer);
	return true;
}

/* ---- planned ---- */

/* A worker is here, and has no state yet. */
static bool one_comes(const struct hd_coordinator *co)
{
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		if ((w->state == HD_W_ADMITTED || w->state == HD_W_SYNCING || w->state == HD_W_BACKOFF) &&
			!w->draining)
			return true;
	}
	return false;
}

/* For one in its place, longer where it is here already; where its machine goes, half of what is left: the
 * other half is for the change. */
static int64_t waits_ns(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	const int64_t most = one_comes(co) ? HD_TIMEOUT_NS(START, co->config.detect_ns) :
		HD_TIMEOUT_NS(SUBSTITUTE, co->config.detect_ns), half = (w->goes_ns - w->stays_ns) / 2;

	return w->goes_ns && half < most ? half : most;
}

/* Is there one that has waited to leave for as long as one in its place may take? */
static bool has_waited(struct hd_coordinator *co)
{
	bool any = false;

	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (!w || w->state != HD_W_MEMBER || !w->draining)
			continue;
		w->stays_ns = w->stays_ns ? w->stays_ns : co->now_ns ? co->now_ns : 1;
		any |= co->now_ns - w->stays_ns >= waits_ns(co, w);
	}
	return any;
}

/* Once a view. Whoever keeps so many pipelines without being asked to may keep fewer. */
static void note_stays(struct hd_coordinator *co)
{
	char others[48] = "no pipeline of fewer stages";

	if (co->stays_epoch == co->view.epoch)
		return;
	co->stays_epoch = co->view.epoch;
	if (hd_co_least(co) > 1)
		snprintf(others, sizeof others, "no %u pipelines of any number of stages", hd_co_least(co));
	hd_co_note(co, "stays", HD_NOBODY,
		"the others are %s: a worker that is asked to leave stays until there is one in its place",
		others);
}

/* Ranks of members that are not to leave. */
static uint32_t ranks_that_stay(struct hd_coordinator *co, const struct hd_view *next, uint64_t going)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < next->nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, next->member[i]);
		n += w && !(going >> i & 1) ? w->ndevices / hd_view_each(&co->config.shape) : 0;
	}
	return n;
}

static bool fill_planned(struct hd_coordinator *co, struct hd_view *next, uint64_t going, uint32_t width)
{
	const struct hd_view_shape *in_force = &co->view.shape;
	const bool grows = width > in_force->width;
	const struct hd_view_shape *of = grows ? &co->config.shape : in_force;
	uint64_t refused[HD_CO_UNFIT];
	struct hd_view stay = { .nmembers = 0 };
	struct hd_view_shape to;

	for (uint32_t i = 0; i < next->nmembers; i++)
		if (!(going >> i & 1))
			stay.member[stay.nmembers++] = next->member[i];
	const struct hd_fewer_ask ask = { .shape = of, .width = width, .n = next->nmembers,
		.lost = grows ? 0 : lost_stages(&co->view, &stay), .refused = refused,
		.nrefused = all_refused(co, next, refused) };
	if (width < 1 || width >= of->width || !shadowed(co, of) ||
		!co->config.fewer(co->config.fewer_self, &ask, &to) || to.width > width ||
		(grows && to.width <= in_force->width) ||
		!co->config.of_shape(co->config.of_shape_self, &to) ||
		hd_co_is_refused(co, &to, next->member, next->nmembers) ||
		!hd_co_fill_map(co, next, &to, going, hd_co_least(co)))
		return false;
	note_fewer(co, &to);
	return true;
}

bool hd_co_plan_fewer(struct hd_coordinator *co, struct hd_view *next, uint64_t going, bool other)
{
	const struct hd_view_shape *in_force = &co->view.shape;
	const uint32_t width = ranks_that_stay(co, next, going) / hd_co_least(co);

	if (!in_force->nstages)
		return false;
	if (width == in_force->width)
		return other && hd_co_fill_map(co, next, in_force, going, hd_co_least(co));
	if (width < in_force->width && !has_waited(co))
		return false;
	if (fill_planned(co, next, going, width))
		return true;
	if (width < in_force->width && shadowed(co, in_force))
		note_stays(co);
	return false;
}
