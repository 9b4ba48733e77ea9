#include "timeline/analyze/path.h"

#include <assert.h>

/* ---- critical path ---- */

struct tl_walk {
	const struct hd_tl_causes *causes;
	struct hd_tl_segment *segment; size_t n, cap;            /* latest first */
	struct hd_arena *arena;
	int64_t at, begin;
	uint32_t lane, stuck;             /* moves to other lanes since time went back */
};

static enum hd_err put(struct tl_walk *w, int64_t from, struct hd_tl_segment s)
{
	from = from > w->begin ? from : w->begin;
	if (from >= w->at)
		return HD_OK;
	if (w->n == w->cap) {
		const size_t cap = w->cap ? 2 * w->cap : 64;
		struct hd_tl_segment *more = hd_arena_take(w->arena, cap, sizeof *more);
		if (!more)
			return HD_E_NOMEM;
		for (size_t i = 0; i < w->n; i++)
			more[i] = w->segment[i];
		w->segment = more;
		w->cap = cap;
	}
	s.t0 = from;
	s.t1 = w->at;
	w->segment[w->n++] = s;
	w->at = from;
	w->stuck = 0;
	return HD_OK;
}

static uint32_t process_of(const struct tl_walk *w, uint32_t lane) { return w->causes->tl->lane[lane].process;
	}

/* Where the walk goes on: at a device of the process that does something then. */
static uint32_t sender_lane(const struct tl_walk *w, uint64_t send)
{
	const struct hd_timeline *tl = w->causes->tl;
	const struct hd_tl_process *p = &tl->process[tl->lane[tl->event[send].lane].process];
	uint32_t found = HD_TL_NONE;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++) {
		if (!hd_tl_is_device(tl, l))
			continue;
		const struct hd_tl_slice *s = hd_tl_slice_before(w->causes, l, tl->event[send].t0);
		if (s && s->part == HD_TL_PART_WORK)
			return l;
		found = found == HD_TL_NONE ? l : found;
	}
	return found;
}

static bool on_channel(enum hd_tl_part part)
{
	return part == HD_TL_PART_ORDER || part == HD_TL_PART_QUEUE || part == HD_TL_PART_WIRE;
}

/* What the slice waited for came from there. */
static uint32_t lane_behind(const struct tl_walk *w, const struct hd_tl_slice *s)
{
	return s->cause == HD_TL_BY_MEETING ? s->last : s->cause == HD_TL_BY_TRANSFER ?
		sender_lane(w, s->send) : HD_TL_NONE;
}

static bool enter(struct tl_walk *w, const struct hd_tl_slice *s)
{
	const uint32_t lane = lane_behind(w, s);

	if (lane == HD_TL_NONE || lane == w->lane || w->stuck++ >= w->causes->tl->nlanes)
		return false;
	w->lane = lane;
	return true;
}

/* The cuts of a slice, latest first, down to what was a peer's. A transfer that was on its way before it was
 * waited for holds from its beginning on: what the receiver did meanwhile did not. */
static enum hd_err go_back(struct tl_walk *w, struct hd_tl_slice s)
{
	const struct hd_timeline *tl = w->causes->tl;
	struct hd_tl_cut cut[HD_TL_CUTS];
	const bool transfer = s.cause == HD_TL_BY_TRANSFER;
	enum hd_err err = HD_OK;

	if (transfer && tl->event[s.send].t0 < s.t0)
		s.t0 = tl->event[s.send].t0;
	for (uint32_t k = hd_tl_slice_cut(w->causes, &s, cut); k-- > 0 && !err && w->at > w->begin;) {
		struct hd_tl_segment to = { .event = s.event, .process = process_of(w, s.lane),
			.peer = HD_TL_NONE, .lane = s.lane, .part = cut[k].part };
		if (cut[k].part == HD_TL_PART_PEER_LATE) {
			if (enter(w, &s))
				return HD_OK;
			to.part = (enum hd_tl_part)s.part;
		}
		if (on_channel(cut[k].part)) {
			to.event = s.recv;
			to.peer = to.process;
			to.process = tl->lane[tl->event[s.send].lane].process;
		}
		err = put(w, cut[k].span.t0, to);
	}
	if (!err && transfer && w->at > w->begin)
		enter(w, &s);
	return err;
}

static enum hd_err walk(struct tl_walk *w)
{
	enum hd_err err = HD_OK;

	while (w->at > w->begin && !err) {
		const struct hd_tl_slice *s = hd_tl_slice_before(w->causes, w->lane, w->at);
		if (s) {
			err = go_back(w, hd_tl_slice_at(w->causes, s, w->at));
			continue;
		}
		/* outside the lane: idle down to its last slice, or to the begin */
		const uint64_t *begin = w->causes->begin;
		int64_t to = w->begin;
		if (begin[w->lane] < begin[w->lane + 1] && w->causes->slice[begin[w->lane + 1] - 1].t1 <
			w->at)
			to = w->causes->slice[begin[w->lane + 1] - 1].t1;
		err = put(w, to, (struct hd_tl_segment){ .event = HD_TL_NO_EVENT,
			.process = process_of(w, w->lane), .peer = HD_TL_NONE, .lane = w->lane,
			.part = HD_TL_PART_IDLE });
	}
	return err;
}

/* The lane of the process that is busy last. */
static uint32_t last_lane(const struct hd_tl_causes *c, uint32_t process, int64_t end)
{
	const struct hd_timeline *tl = c->tl;
	uint32_t best = HD_TL_NONE;
	int64_t latest = INT64_MIN;

	for (uint32_t l = tl->process[process].lane_begin; l < tl->process[process].lane_end; l++) {
		if (!hd_tl_is_device(tl, l) || c->begin[l] == c->begin[l + 1])
			continue;
		const struct hd_tl_slice *s = hd_tl_slice_before(c, l, end);
		const int64_t t = !s ? INT64_MIN + 1 : s->part == HD_TL_PART_IDLE ? s->t0 : end;
		if (t > latest) {
			latest = t;
			best = l;
		}
	}
	return best;
}

enum hd_err hd_tl_path_of(const struct hd_tl_causes *c, uint64_t number, struct hd_arena *arena,
	struct hd_tl_path *path, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;
	uint32_t row = HD_TL_NONE, lane = HD_TL_NONE;

	for (size_t k = hd_tl_rows_from(c, number); k < c->nrows && c->row[k].first == number; k++) {
		const uint32_t i = (uint32_t)c->row[k].event;
		const struct hd_tl_step *s = &tl->step[i];
		if (row != HD_TL_NONE && s->end <= tl->step[row].end)
			continue;
		const uint32_t l = last_lane(c, s->process, s->end);
		/* one that is not aligned ends the step only where it is alone */
		if (l != HD_TL_NONE && (tl->process[s->process].aligned || row == HD_TL_NONE)) {
			row = i;
			lane = l;
		}
	}
	if (row == HD_TL_NONE)
		return hd_fail(diag, HD_E_NOTFOUND, "no device of the recording ended step %llu; "
			"`heddle trace analyze` says which steps it has", (unsigned long long)number);
	const struct hd_tl_span span = hd_tl_step_span(tl, row);
	struct tl_walk w = { .causes = c, .arena = arena, .at = span.t1, .begin = span.t0, .lane = lane };
	if (walk(&w))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the critical path");
	for (size_t i = 0; i < w.n / 2; i++) {
		const struct hd_tl_segment s = w.segment[i];
		w.segment[i] = w.segment[w.n - 1 - i];
		w.segment[w.n - 1 - i] = s;
	}
	*path = (struct hd_tl_path){ w.segment, w.n, row };
	return HD_OK;
}

/* ---- blame ---- */

struct blame {
	const struct hd_tl_causes *causes;
	int64_t *ns;
	uint8_t *entered;                 /* [nlanes] on the way to here */
	struct tl_walk lanes;                /* for sender_lane() */
};

static void give(struct blame *b, uint32_t lane, struct hd_tl_span span, int depth);

static void give_cut(struct blame *b, const struct hd_tl_slice *s, const struct hd_tl_cut *cut,
	struct hd_tl_span span, int depth)
{
	const struct hd_timeline *tl = b->causes->tl;
	uint32_t process = tl->lane[s->lane].process;
	enum hd_tl_part part = cut->part;

	if (part == HD_TL_PART_PEER_LATE) {
		const uint32_t lane = lane_behind(&b->lanes, s);
		if (lane != HD_TL_NONE && !b->entered[lane] && depth < HD_TL_BLAME_DEPTH) {
			give(b, lane, span, depth + 1);
			return;
		}
	} else if (on_channel(part)) {
		process = tl->lane[tl->event[s->send].lane].process;
	}
	b->ns[(size_t)process * HD_TL_NPARTS + part] += span.t1 - span.t0;
}

static void give(struct blame *b, uint32_t lane, struct hd_tl_span span, int depth)
{
	const struct hd_tl_causes *c = b->causes;
	const uint32_t process = c->tl->lane[lane].process;
	const bool empty = c->begin[lane] == c->begin[lane + 1];
	const int64_t end = empty ? INT64_MIN : c->slice[c->begin[lane + 1] - 1].t1;
	int64_t rest = span.t1 - span.t0;

	b->entered[lane] = 1;
	while (span.t1 > span.t0) {
		const struct hd_tl_slice *s = hd_tl_slice_before(c, lane, span.t1);
		struct hd_tl_cut cut[HD_TL_CUTS];
		if (!s && span.t1 > end && span.t0 < end) {
			span.t1 = end;
			continue;
		}
		if (!s)
			break;
		for (uint32_t k = 0, n = hd_tl_slice_cut(c, s, cut); k < n; k++) {
			const struct hd_tl_span part = hd_tl_clip(cut[k].span, span);
			rest -= part.t1 - part.t0;
			if (part.t1 > part.t0)
				give_cut(b, s, &cut[k], part, depth);
		}
		span.t1 = s->t0 > span.t0 ? s->t0 : span.t0;
	}
	/* the lane does not reach so far */
	b->ns[(size_t)process * HD_TL_NPARTS + HD_TL_PART_IDLE] += rest;
	b->entered[lane] = 0;
}

enum hd_err hd_tl_blame(const struct hd_tl_causes *c, uint32_t lane, struct hd_tl_span span, int64_t *ns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct blame b = { .causes = c, .ns = ns, .lanes = { .causes = c } };

	b.entered = hd_arena_take(arena, (size_t)c->tl->nlanes + 1, 1);
	if (!b.entered)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u lanes", c->tl->nlanes);
	give(&b, lane, span, 0);
	return HD_OK;
}

enum hd_err hd_tl_waited_for(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span,
	struct hd_arena *scratch, double *part, struct hd_diag *diag)
{
	const size_t n = (size_t)c->tl->nprocesses * HD_TL_NPARTS;
	int64_t waited = 0, time = 0;

	for (uint32_t l = 0; l < c->tl->nlanes; l++) {
		if (c->tl->lane[l].process == process || c->begin[l] == c->begin[l + 1])
			continue;
		hd_arena_reset(scratch);
		int64_t *ns = hd_arena_take(scratch, n, sizeof *ns);
		if (!ns)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u processes", c->tl->nprocesses);
		enum hd_err err = hd_tl_blame(c, l, span, ns, scratch, diag);
		if (err)
			return err;
		waited += ns[(size_t)process * HD_TL_NPARTS + HD_TL_PART_WORK];
		time += span.t1 - span.t0;
	}
	*part = time > 0 ? (double)waited / (double)time : 0;
	return HD_OK;
}
