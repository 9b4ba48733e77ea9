/* What a recording says of the ends of its steps (reorder_int.h). */
#include <stdlib.h>
#include <string.h>

#include "plan/xfer.h"
#include "timeline/analyze/costs.h"
#include "timeline/analyze/reorder_int.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to replay the transfers of a recording");
}

/* ---- which workers, which steps ---- */

static uint32_t member_of(const struct hd_tl_endings *e, uint32_t process)
{
	uint32_t m = 0;

	while (m < e->n && e->process[m] != process)
		m++;
	return m;
}

/* Are the rows of a step those of all members, one each? */
static bool is_whole(const struct hd_tl_endings *e, const struct hd_tl_causes *c, uint64_t number)
{
	uint32_t n = 0;
	bool all = true;

	for (size_t i = hd_tl_rows_from(c, number); i < c->nrows && c->row[i].first == number; i++, n++)
		all &= member_of(e, c->tl->step[c->row[i].event].process) < e->n;
	return all && n == e->n;
}

static enum hd_err find_members(struct hd_tl_endings *e, const struct hd_tl_causes *c,
	struct hd_tl_range *range, struct hd_diag *diag)
{
	struct hd_tl_range whole = *range;
	const uint32_t most = hd_tl_range_whole(c, &whole);
	const uint64_t last = whole.last;
	uint64_t first = last;

	if (!most)
		return hd_fail(diag, HD_E_NOTFOUND, "the recording has no step from %llu to %llu that ended",
			(unsigned long long)range->first, (unsigned long long)range->last);
	if (most > HD_TL_MEMBERS)
		return hd_fail(diag, HD_E_REFUSED, "%u workers: transfers of more than %d are not replayed "
			"in another order", most, HD_TL_MEMBERS);
	for (size_t i = hd_tl_rows_from(c, last); i < c->nrows && c->row[i].first == last; i++)
		e->process[e->n++] = c->tl->step[c->row[i].event].process;
	while (first > whole.first && is_whole(e, c, first - 1))
		first--;
	*range = (struct hd_tl_range){ first, last };
	e->nsteps = (uint32_t)(last - first + 1);
	return HD_OK;
}

/* ---- turns ---- */

static enum hd_err open_steps(struct hd_tl_endings *e, const struct hd_tl_causes *c,
	const struct hd_tl_range *range, uint32_t *of_row, double t0, struct hd_arena *arena,
	struct hd_diag *diag)
{
	e->step = hd_arena_take(arena, e->nsteps, sizeof *e->step);
	if (!e->step)
		return no_memory(diag);
	for (uint32_t i = 0; i < c->tl->nsteps; i++)
		of_row[i] = HD_TL_NONE;
	for (uint32_t k = 0; k < e->nsteps; k++) {
		e->step[k].number = range->first + k;
		for (size_t i = hd_tl_rows_from(c, e->step[k].number); i < c->nrows &&
			c->row[i].first == e->step[k].number; i++) {
			const uint32_t row = (uint32_t)c->row[i].event;
			const struct hd_tl_span span = hd_tl_step_span(c->tl, row);
			struct hd_tl_turn *turn = &e->step[k].turn[member_of(e, c->tl->step[row].process)];
			*turn = (struct hd_tl_turn){ .begin = (double)span.t0 - t0,
				.open = (double)c->tl->step[row].begin - t0,
				.end = (double)span.t1 - t0, .pass = -1 };
			of_row[row] = k;
		}
	}
	return HD_OK;
}

/* The last step that the worker had begun by t; HD_TL_NONE: it is before or behind all. */
static uint32_t step_at(const struct hd_tl_endings *e, uint32_t m, double t)
{
	uint32_t lo = 0, hi = e->nsteps;

	while (lo < hi) {
		const uint32_t mid = (lo + hi) / 2;
		if (e->step[mid].turn[m].begin <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return !lo || t > e->step[lo - 1].turn[m].end ? HD_TL_NONE : lo - 1;
}

/* What a slice of work is of its step; `between`: of the one that begins next. */
static void count_slice(struct hd_tl_endings *e, struct hd_tl_turn *turn, const char *name,
	const struct hd_tl_slice *s, bool between)
{
	const double ns = (double)(s->t1 - s->t0);

	turn->backward |= name[0] == 'B' || name[0] == 'I';
	if (!strcmp(name, "forward ahead") && between) {
		turn->between += ns;
	} else if (!strcmp(name, "forward ahead")) {
		turn->ahead += ns;
		e->ahead = true;
	} else if (!strcmp(name, "update ahead")) {
		turn->brought += ns;
	} else if (name[0] == 'F' && !turn->backward) {
		turn->fore += ns;
	}
}

static void read_lane(struct hd_tl_endings *e, const struct hd_tl_causes *c, uint32_t m, uint32_t lane,
	const uint32_t *of_row, double t0)
{
	const struct hd_timeline *tl = c->tl;

	for (uint32_t k = 0; k < e->nsteps; k++) {
		e->step[k].turn[m].backward = false;
		e->step[k].turn[m].nlanes++;
	}
	for (uint64_t i = tl->lane[lane].begin; i < tl->lane[lane].end; i++) {
		const struct hd_tl_event *at = &tl->event[i];
		const uint32_t k = at->step == HD_TL_NONE ? HD_TL_NONE : of_row[at->step];
		if (k == HD_TL_NONE || at->kind != HD_EVENT_OP || strcmp(tl->name[at->name], "RED") != 0)
			continue;
		struct hd_tl_turn *turn = &e->step[k].turn[m];
		const double pass = (double)at->t0 - t0;
		turn->pass = pass > turn->pass ? pass : turn->pass;
	}
	for (uint64_t i = c->begin[lane]; i < c->begin[lane + 1]; i++) {
		const struct hd_tl_slice *s = &c->slice[i];
		const struct hd_tl_event *at = s->event == HD_TL_NO_EVENT ? NULL : &tl->event[s->event];
		const bool between = at && at->step == HD_TL_NONE;
		const uint32_t k = !at ? HD_TL_NONE : between ? step_at(e, m, (double)s->t0 - t0) :
			of_row[at->step];
		if (k != HD_TL_NONE && s->part == HD_TL_PART_WORK && at->kind == HD_EVENT_OP)
			count_slice(e, &e->step[k].turn[m], tl->name[at->name], s, between);
	}
}

static enum hd_err read_turns(struct hd_tl_endings *e, const struct hd_tl_causes *c, const uint32_t *of_row,
	double t0, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;

	for (uint32_t m = 0; m < e->n; m++) {
		const struct hd_tl_process *p = &tl->process[e->process[m]];
		for (uint32_t lane = p->lane_begin; lane < p->lane_end; lane++)
			if (hd_tl_is_device(tl, lane))
				read_lane(e, c, m, lane, of_row, t0);
		for (uint32_t k = 0; k < e->nsteps; k++) {
			struct hd_tl_turn *turn = &e->step[k].turn[m];
			if (turn->pass < 0)
				return hd_fail(diag, HD_E_REFUSED, "step %llu of %s is incomplete in the "
					"recording: its sums are missing; replay fewer steps (--steps N), or "
					"record all of it (heddle trace record)",
					(unsigned long long)e->step[k].number, p->name);
			turn->ahead /= turn->nlanes;
			turn->between /= turn->nlanes;
			turn->fore /= turn->nlanes;
			turn->brought /= turn->nlanes;
		}
	}
	return HD_OK;
}

/* ---- transfers ---- */

static bool is_kept(uint8_t kind)
{
	return kind == HD_XFER_PARTIAL || kind == HD_XFER_SUM || kind == HD_XFER_PARAMETERS ||
		kind == HD_XFER_METRICS;
}

/* A sum may be sent on when its sender's step is over, and comes before its receiver's is. */
static uint32_t step_of(const struct hd_tl_endings *e, const struct hd_tl_moved *m)
{
	const uint32_t k = step_at(e, m->from, m->enqueued);

	if (m->kind != HD_XFER_SUM && m->kind != HD_XFER_PARAMETERS)
		return k;
	const uint32_t came = step_at(e, m->to, m->came);
	return came == HD_TL_NONE || k == HD_TL_NONE ? HD_TL_NONE : came < k ? came : k;
}

static enum hd_err append(struct hd_tl_ending *step, const struct hd_tl_moved *moved, struct hd_arena *arena,
	struct hd_diag *diag)
{
	if (step->nmoved == step->cap) {
		const uint32_t cap = step->cap ? 2 * step->cap : 64;
		struct hd_tl_moved *more = hd_arena_take(arena, cap, sizeof *more);
		if (!more)
			return no_memory(diag);
		if (step->nmoved)
			memcpy(more, step->moved, step->nmoved * sizeof *more);
		step->moved = more;
		step->cap = cap;
	}
	step->moved[step->nmoved++] = *moved;
	return HD_OK;
}

static enum hd_err look_up(struct hd_tl_moved *moved, const struct hd_tl_order *order,
	const struct hd_timeline *tl, uint64_t event, struct hd_diag *diag)
{
	const struct hd_tl_event *send = &tl->event[event];
	const struct hd_tl_row *row = send->instr < order->nrows ? &order->row[send->instr] : NULL;

	if (!row || !hd_tl_is_xfer(tl, event, row->kind) || row->bucket >= order->nbuckets)
		return hd_fail(diag, HD_E_REFUSED, "transfer %u (%.20s) of the recording is not in the job's "
			"table of transfers: the recorded steps are of another plan of its workers, or of "
			"another job; take a run whose workers did not change, or its last steps (--steps N)",
			send->instr, tl->name[send->name]);
	moved->kind = row->kind;
	moved->bucket = row->bucket;
	moved->was = row->was;
	moved->now = row->now;
	return HD_OK;
}

static enum hd_err read_moved(struct hd_tl_endings *e, const struct hd_tl_causes *c, double t0,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < c->nrecvs && !err; i++) {
		const uint64_t recv = c->recv[i].event, send = hd_tl_send_of(c, recv);
		if (send == HD_TL_NO_EVENT || tl->event[send].priority_class != HD_XFER_PLANNED)
			continue;
		const struct hd_tl_event *s = &tl->event[send];
		struct hd_tl_moved moved = { .enqueued = (double)s->t0 - t0,
			.handed = (double)s->t1 - t0, .came = (double)tl->event[recv].t1 - t0,
			.bytes = (double)s->arg,
			.from = (uint8_t)member_of(e, tl->lane[s->lane].process),
			.to = (uint8_t)member_of(e, tl->lane[tl->event[recv].lane].process) };
		if (moved.from >= e->n || moved.to >= e->n || moved.from == moved.to)
			continue;
		const double first = (double)(s->first > s->t0 ? s->first : s->t0) - t0;
		if (step_at(e, moved.from, moved.enqueued) == HD_TL_NONE)
			continue;
		err = look_up(&moved, e->order, tl, send, diag);
		if (moved.came - first >= 0 && (e->late < 0 || moved.came - first < e->late))
			e->late = moved.came - first;
		const uint32_t k = err || !is_kept(moved.kind) ? HD_TL_NONE : step_of(e, &moved);
		if (k != HD_TL_NONE)
			err = append(&e->step[k], &moved, arena, diag);
	}
	e->late = e->late < 0 ? 0 : e->late;
	return err;
}

/* Steps have one number of transfers; rings that were overwritten have lost some of the older ones. To the
 * longest stretch of those that have all. */
static void cut_to_whole(struct hd_tl_endings *e, struct hd_tl_range *range)
{
	uint32_t most = 0, first = 0, n = 0;

	for (uint32_t k = 0; k < e->nsteps; k++)
		most = e->step[k].nmoved > most ? e->step[k].nmoved : most;
	for (uint32_t k = 0, from = 0; k < e->nsteps; k++) {
		from = e->step[k].nmoved < most ? k + 1 : from;
		if (k + 1 - from >= n && k + 1 > from) {
			first = from;
			n = k + 1 - from;
		}
	}
	e->step += first;
	e->nsteps = n;
	*range = (struct hd_tl_range){ e->step[0].number, e->step[n - 1].number };
}

enum hd_err hd_tl_endings_read(struct hd_tl_endings *endings, const struct hd_tl_causes *c,
	struct hd_tl_range *range, const struct hd_tl_order *order, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_tl_endings e = { .order = order, .late = -1 };
	uint32_t *of_row = hd_arena_take(arena, (size_t)c->tl->nsteps + 1, sizeof *of_row);
	enum hd_err err = of_row ? find_members(&e, c, range, diag) : no_memory(diag);

	if (err)
		return err;
	const double t0 = (double)hd_tl_range_span(c->tl, *range).t0;
	err = open_steps(&e, c, range, of_row, t0, arena, diag);
	err = err ? err : read_moved(&e, c, t0, arena, diag);
	if (err)
		return err;
	cut_to_whole(&e, range);
	for (uint32_t i = 0; i < c->tl->nsteps; i++)
		of_row[i] = of_row[i] == HD_TL_NONE || c->tl->step[i].number < range->first ||
			c->tl->step[i].number > range->last ? HD_TL_NONE :
			(uint32_t)(c->tl->step[i].number - range->first);
	err = read_turns(&e, c, of_row, t0, diag);
	err = err ? err : hd_tl_endings_habits(&e, arena, diag);
	if (!err)
		*endings = e;
	return err;
}
