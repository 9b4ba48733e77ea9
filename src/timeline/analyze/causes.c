#include "timeline/analyze/causes.h"

#include <assert.h>
#include <stdlib.h>

static const char *const part_text[HD_TL_NPARTS] = {
#define X(id, text, about) [HD_TL_PART_##id] = (text),
	HD_TL_PARTS_TABLE(X)
#undef X
};

const char *hd_tl_part_text(enum hd_tl_part part) { return part_text[part]; }

static const uint8_t part_of_reason[] = {
	[HD_WAIT_TRANSFER] = HD_TL_PART_TRANSFER, [HD_WAIT_DATA] = HD_TL_PART_DATA,
	[HD_WAIT_SLOT] = HD_TL_PART_SLOT, [HD_WAIT_COMMIT] = HD_TL_PART_COMMIT,
	[HD_WAIT_MEMORY] = HD_TL_PART_MEMORY, [HD_WAIT_PLAN_CHANGE] = HD_TL_PART_PLAN_CHANGE,
	[HD_WAIT_OTHER] = HD_TL_PART_OTHER,
};

bool hd_tl_is_device(const struct hd_timeline *tl, uint32_t lane)
{
	return tl->lane[lane].kind == HD_LANE_DEVICE;
}

struct hd_tl_span hd_tl_step_span(const struct hd_timeline *tl, uint32_t i)
{
	const struct hd_tl_step *s = &tl->step[i], *before = i ? s - 1 : NULL;
	int64_t begin = s->begin;

	if (before && before->process == s->process && before->committed && before->number + 1 == s->number &&
		before->end <= s->end)
		begin = before->end;
	return (struct hd_tl_span){ begin, s->end > begin ? s->end : begin };
}

static bool counts(const struct hd_tl_event *e)
{
	return (e->kind == HD_EVENT_OP || e->kind == HD_EVENT_WAIT) && e->t1 > e->t0;
}

static uint8_t part_of(const struct hd_timeline *tl, uint64_t event)
{
	if (event == HD_TL_NO_EVENT)
		return HD_TL_PART_IDLE;
	const struct hd_tl_event *e = &tl->event[event];
	if (e->kind == HD_EVENT_OP)
		return HD_TL_PART_WORK;
	const uint8_t reason = (uint8_t)e->arg;
	return reason >= HD_WAIT_TRANSFER && reason <= HD_WAIT_OTHER ? part_of_reason[reason] :
		HD_TL_PART_OTHER;
}

/* ---- slices ---- */

struct cutter {
	const struct hd_timeline *tl;
	struct hd_tl_slice *slice; uint64_t n;
	uint64_t *open; size_t nopen;     /* events that lie over the instant, outermost first */
	int64_t at;
	uint32_t lane;
};

static void emit(struct cutter *c, int64_t to, uint64_t event)
{
	if (to <= c->at)
		return;
	c->slice[c->n++] = (struct hd_tl_slice){ .t0 = c->at, .t1 = to, .event = event, .lane = c->lane,
		.send = HD_TL_NO_EVENT, .recv = HD_TL_NO_EVENT, .part = part_of(c->tl, event) };
	c->at = to;
}

static void close_until(struct cutter *c, int64_t t)
{
	while (c->nopen && c->tl->event[c->open[c->nopen - 1]].t1 <= t) {
		emit(c, c->tl->event[c->open[c->nopen - 1]].t1, c->open[c->nopen - 1]);
		c->nopen--;
	}
	emit(c, t, c->nopen ? c->open[c->nopen - 1] : HD_TL_NO_EVENT);
}

static void cut_lane(struct cutter *c, uint32_t lane)
{
	const struct hd_tl_lane *l = &c->tl->lane[lane];
	const struct hd_tl_process *p = &c->tl->process[l->process];
	int64_t from = INT64_MAX, to = INT64_MIN;

	for (uint64_t e = l->begin; e < l->end; e++)
		if (counts(&c->tl->event[e])) {
			from = c->tl->event[e].t0 < from ? c->tl->event[e].t0 : from;
			to = c->tl->event[e].t1 > to ? c->tl->event[e].t1 : to;
		}
	if (to == INT64_MIN)
		return;
	for (uint32_t s = p->step_begin; s < p->step_end; s++) {
		from = c->tl->step[s].begin < from ? c->tl->step[s].begin : from;
		to = c->tl->step[s].end > to ? c->tl->step[s].end : to;
	}
	c->lane = lane;
	c->at = from;
	c->nopen = 0;
	for (uint64_t e = l->begin; e < l->end; e++)
		if (counts(&c->tl->event[e])) {
			close_until(c, c->tl->event[e].t0);
			c->open[c->nopen++] = e;
		}
	close_until(c, to);
	assert(c->at == to);
}

static enum hd_err cut(struct hd_tl_causes *causes, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *tl = causes->tl;
	uint64_t ndevice = 0, longest = 0;

	for (uint32_t l = 0; l < tl->nlanes; l++)
		if (hd_tl_is_device(tl, l)) {
			const uint64_t n = tl->lane[l].end - tl->lane[l].begin;
			ndevice += 2 * n + 1;
			longest = n > longest ? n : longest;
		}
	struct cutter c = { .tl = tl };
	c.slice = hd_arena_take(arena, ndevice + 1, sizeof *c.slice);
	c.open = hd_arena_take(arena, longest + 1, sizeof *c.open);
	causes->begin = hd_arena_take(arena, (size_t)tl->nlanes + 1, sizeof *causes->begin);
	if (!c.slice || !c.open || !causes->begin)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %llu events of the recording",
			(unsigned long long)tl->nevents);
	for (uint32_t l = 0; l < tl->nlanes; l++) {
		causes->begin[l] = c.n;
		if (hd_tl_is_device(tl, l))
			cut_lane(&c, l);
	}
	causes->begin[tl->nlanes] = c.n;
	assert(c.n <= ndevice);
	causes->slice = c.slice;
	return HD_OK;
}

const struct hd_tl_slice *hd_tl_slice_before(const struct hd_tl_causes *causes, uint32_t lane, int64_t t)
{
	uint64_t low = causes->begin[lane], high = causes->begin[lane + 1];
	const uint64_t end = high;

	while (low < high) {
		const uint64_t mid = low + (high - low) / 2;
		if (causes->slice[mid].t1 < t)
			low = mid + 1;
		else
			high = mid;
	}
	return low < end && causes->slice[low].t0 < t ? &causes->slice[low] : NULL;
}

/* ---- what ended a wait ---- */

static int by_key(const void *a, const void *b)
{
	const struct hd_tl_key *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static enum hd_err gather(struct hd_tl_causes *c, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;
	size_t nsends = 0, nrecvs = 0;

	for (uint64_t e = 0; e < tl->nevents; e++) {
		nsends += tl->event[e].kind == HD_EVENT_SEND && tl->event[e].flow;
		nrecvs += tl->event[e].kind == HD_EVENT_RECV;
	}
	struct hd_tl_key *send = hd_arena_take(arena, nsends + 1, sizeof *send),
		*recv = hd_arena_take(arena, nrecvs + 1, sizeof *recv);
	if (!send || !recv)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the transfers of the recording");
	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		if (e->kind == HD_EVENT_SEND && e->flow)
			send[c->nsends++] = (struct hd_tl_key){ e->flow, i, e->t0 };
		else if (e->kind == HD_EVENT_RECV)
			recv[c->nrecvs++] = (struct hd_tl_key){ tl->lane[e->lane].process, i, e->t1 };
	}
	qsort(send, c->nsends, sizeof *send, by_key);
	qsort(recv, c->nrecvs, sizeof *recv, by_key);
	c->send = send;
	c->recv = recv;
	return HD_OK;
}

static enum hd_err reach(struct hd_tl_causes *c, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;

	c->reach = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *c->reach);
	if (!c->reach)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the ends of %llu events",
			(unsigned long long)tl->nevents);
	for (uint32_t l = 0; l < tl->nlanes; l++)
		for (uint64_t e = tl->lane[l].begin, most = e; e < tl->lane[l].end; e++) {
			most = tl->event[e].t1 > tl->event[most].t1 ? e : most;
			c->reach[e] = tl->event[most].t1;
		}
	return HD_OK;
}

uint64_t hd_tl_first_until(const struct hd_tl_causes *c, uint32_t lane, int64_t t)
{
	uint64_t low = c->tl->lane[lane].begin, high = c->tl->lane[lane].end;

	while (low < high) {
		const uint64_t mid = low + (high - low) / 2;
		if (c->reach[mid] <= t)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static enum hd_err sort_steps(struct hd_tl_causes *c, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tl_key *row = hd_arena_take(arena, (size_t)c->tl->nsteps + 1, sizeof *row);

	if (!row)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u steps", c->tl->nsteps);
	for (uint32_t i = 0; i < c->tl->nsteps; i++)
		if (c->tl->step[i].committed)
			row[c->nrows++] = (struct hd_tl_key){ c->tl->step[i].number, i, i };
	qsort(row, c->nrows, sizeof *row, by_key);
	c->row = row;
	return HD_OK;
}

/* How many keys are at most (first, t). */
static size_t up_to(const struct hd_tl_key *key, size_t n, uint64_t first, int64_t t)
{
	size_t low = 0;

	while (low < n) {
		const size_t mid = low + (n - low) / 2;
		if (key[mid].first < first || (key[mid].first == first && key[mid].t <= t))
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

size_t hd_tl_received_until(const struct hd_tl_causes *c, uint64_t process, int64_t t)
{
	return up_to(c->recv, c->nrecvs, process, t);
}

size_t hd_tl_rows_from(const struct hd_tl_causes *c, uint64_t number)
{
	return up_to(c->row, c->nrows, number, -1);
}

static bool aligned(const struct hd_timeline *tl, uint64_t event)
{
	return tl->process[tl->lane[tl->event[event].lane].process].aligned;
}

/* The last one inside the wait; of its id, if one of those is there. */
static uint64_t find_recv(const struct hd_tl_causes *c, const struct hd_tl_slice *s)
{
	const uint64_t process = c->tl->lane[s->lane].process, id = c->tl->event[s->event].arg >> 8;
	uint64_t any = HD_TL_NO_EVENT;

	for (size_t i = up_to(c->recv, c->nrecvs, process, s->t1); i-- > 0;) {
		if (c->recv[i].first != process || c->recv[i].t <= s->t0)
			break;
		if (any == HD_TL_NO_EVENT)
			any = c->recv[i].event;
		if (id && c->tl->event[c->recv[i].event].instr == id)
			return c->recv[i].event;
	}
	return any;
}

/* The last one before its arrival; by the error of the clocks it may lie after it. */
uint64_t hd_tl_send_of(const struct hd_tl_causes *c, uint64_t recv)
{
	const uint64_t flow = c->tl->event[recv].flow;
	size_t i = up_to(c->send, c->nsends, flow, c->tl->event[recv].t1);

	if (!flow)
		return HD_TL_NO_EVENT;
	if (i && c->send[i - 1].first == flow)
		i--;
	else if (i == c->nsends || c->send[i].first != flow)
		return HD_TL_NO_EVENT;
	return aligned(c->tl, c->send[i].event) && aligned(c->tl, recv) ? c->send[i].event : HD_TL_NO_EVENT;
}

static bool find_transfer(const struct hd_tl_causes *c, struct hd_tl_slice *s)
{
	const uint64_t recv = find_recv(c, s), send = recv == HD_TL_NO_EVENT ? recv : hd_tl_send_of(c, recv);

	if (send == HD_TL_NO_EVENT)
		return false;
	s->recv = recv;
	s->send = send;
	s->cause = HD_TL_BY_TRANSFER;
	return true;
}

uint32_t hd_tl_slice_met(const struct hd_tl_causes *c, const struct hd_tl_slice *s,
	const struct hd_tl_slice **met)
{
	const struct hd_timeline *tl = c->tl;
	uint32_t n = 0;

	for (uint32_t l = 0; l < tl->nlanes; l++) {
		const struct hd_tl_process *p = &tl->process[tl->lane[l].process];
		if (tl->lane[l].process == tl->lane[s->lane].process || !hd_tl_is_device(tl, l) ||
			!p->aligned)
			continue;
		const struct hd_tl_slice *o = c->begin[l] == c->begin[l + 1] ? NULL :
			&c->slice[c->begin[l + 1] - 1];
		if (o && o->t1 >= s->t1)
			o = hd_tl_slice_before(c, l, s->t1);
		/* it may have been released a little earlier than this one */
		while (o && o > &c->slice[c->begin[l]] && o->part != s->part && o->t0 > s->t0)
			o--;
		if (o && o->part == s->part && o->t1 > s->t0)
			met[n++] = o;
	}
	return n;
}

/* The last to have begun to wait releases them all. */
static bool find_last(const struct hd_tl_causes *c, struct hd_tl_slice *s, const struct hd_tl_slice **met)
{
	const uint32_t n = hd_tl_slice_met(c, s, met);

	s->last = s->lane;
	s->arrival = s->t0;
	for (uint32_t i = 0; i < n; i++)
		if (met[i]->t0 > s->arrival) {
			s->arrival = met[i]->t0;
			s->last = met[i]->lane;
		}
	s->cause = n ? HD_TL_BY_MEETING : HD_TL_BY_NONE;
	return n > 0;
}

static void find(struct hd_tl_causes *c, struct hd_tl_slice *s, const struct hd_tl_slice **met)
{
	const bool transfer = s->part == HD_TL_PART_TRANSFER;

	if (!transfer && s->part != HD_TL_PART_COMMIT)
		return;
	c->nwaits += transfer;
	if (!c->tl->process[c->tl->lane[s->lane].process].aligned ||
		(!(transfer && find_transfer(c, s)) && !find_last(c, s, met)))
		c->nunmatched += transfer;
}

struct hd_tl_slice hd_tl_slice_at(const struct hd_tl_causes *c, const struct hd_tl_slice *slice, int64_t t)
{
	struct hd_tl_slice s = *slice;

	if (t >= s.t1)
		return s;
	s.t1 = t;
	s.cause = HD_TL_BY_NONE;
	if (s.part == HD_TL_PART_TRANSFER && c->tl->process[c->tl->lane[s.lane].process].aligned)
		find_transfer(c, &s);
	return s;
}

enum hd_err hd_tl_causes_make(struct hd_tl_causes *causes, const struct hd_timeline *tl,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tl_causes c = { .tl = tl };
	const struct hd_tl_slice **met = hd_arena_take(arena, (size_t)tl->nlanes + 1, sizeof *met);
	enum hd_err err = met ? cut(&c, arena, diag) : hd_fail(diag, HD_E_NOMEM, "no memory for %u lanes",
		tl->nlanes);

	if (!err)
		err = gather(&c, arena, diag);
	if (!err)
		err = sort_steps(&c, arena, diag);
	if (!err)
		err = reach(&c, arena, diag);
	if (err)
		return err;
	for (uint64_t i = 0; i < c.begin[tl->nlanes]; i++)
		find(&c, &c.slice[i], met);
	*causes = c;
	return HD_OK;
}

/* ---- cuts ---- */

static uint32_t until(struct hd_tl_cut *cut, uint32_t n, const struct hd_tl_slice *s, int64_t *at, int64_t t,
	enum hd_tl_part part)
{
	t = t < s->t1 ? t : s->t1;
	if (t <= *at)
		return n;
	cut[n] = (struct hd_tl_cut){ { *at, t }, part };
	*at = t;
	return n + 1;
}

uint32_t hd_tl_slice_cut(const struct hd_tl_causes *causes, const struct hd_tl_slice *s,
	struct hd_tl_cut cut[HD_TL_CUTS])
{
	int64_t at = s->t0;
	uint32_t n = 0;

	if (s->cause == HD_TL_BY_TRANSFER) {
		const struct hd_tl_event *send = &causes->tl->event[s->send], *recv =
			&causes->tl->event[s->recv];
		n = until(cut, n, s, &at, send->t0, HD_TL_PART_PEER_LATE);
		n = until(cut, n, s, &at, send->gate, HD_TL_PART_ORDER);
		n = until(cut, n, s, &at, send->first, HD_TL_PART_QUEUE);
		n = until(cut, n, s, &at, recv->t1, HD_TL_PART_WIRE);
		return until(cut, n, s, &at, s->t1, HD_TL_PART_DELIVERY);
	}
	if (s->cause == HD_TL_BY_MEETING)
		n = until(cut, n, s, &at, s->arrival, HD_TL_PART_PEER_LATE);
	return until(cut, n, s, &at, s->t1, (enum hd_tl_part)s->part);
}
