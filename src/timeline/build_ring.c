#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/build_int.h"
#include "timeline/lives_int.h"

enum { DEEP = 64, PEER_NONE = 0xffff, NEAR = 8 };

/* First letters of an instruction (plan/ins.h), or of what the control lane names. */
static const struct { const char *text; enum hd_tl_class class; } ops[] = {
	{ "F", HD_TL_FORWARD }, { "FL", HD_TL_FORWARD }, { "R", HD_TL_FORWARD },
	{ "B", HD_TL_BACKWARD }, { "BL", HD_TL_BACKWARD }, { "I", HD_TL_BACKWARD },
	{ "W", HD_TL_WEIGHTS },
	{ "STEP", HD_TL_UPDATE }, { "VAL", HD_TL_UPDATE },
	{ "RED", HD_TL_SUM }, { "TIE", HD_TL_SUM }, { "NORM", HD_TL_SUM },
	{ "SA", HD_TL_SEND }, { "SG", HD_TL_SEND }, { "SHIP", HD_TL_SEND }, { "RSG", HD_TL_SEND },
	{ "HA", HD_TL_SEND }, { "HG", HD_TL_SEND },
	{ "RA", HD_TL_RECEIVE }, { "RG", HD_TL_RECEIVE }, { "TAKE", HD_TL_RECEIVE },
	{ "LD", HD_TL_READ },
	{ "fold", HD_TL_SUM }, { "forward", HD_TL_FORWARD }, { "update", HD_TL_UPDATE },
	{ "commit", HD_TL_COMMIT }, { "checkpoint", HD_TL_COMMIT },
};

static const uint8_t kinds[] = {
	[HD_EVENT_STEP_BEGIN] = HD_TL_MARK, [HD_EVENT_STEP_END] = HD_TL_MARK, [HD_EVENT_SEND] = HD_TL_SEND,
	[HD_EVENT_RECV] = HD_TL_RECEIVE, [HD_EVENT_READ] = HD_TL_READ, [HD_EVENT_WAIT] = HD_TL_WAIT,
	[HD_EVENT_COUNTER] = HD_TL_OTHER, [HD_EVENT_EPOCH] = HD_TL_MARK, [HD_EVENT_CLOCK] = HD_TL_OTHER,
	[HD_EVENT_MARK] = HD_TL_MARK, [HD_EVENT_LOST] = HD_TL_MARK,
};

enum hd_tl_class hd_tl_class_of_op(const char *name)
{
	size_t len = 0;

	while (name[len] >= 'A' && name[len] <= 'Z')
		len++;
	if (!len)
		while (name[len] >= 'a' && name[len] <= 'z')
			len++;
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (strlen(ops[i].text) == len && !memcmp(ops[i].text, name, len))
			return ops[i].class;
	return HD_TL_OTHER;
}

static uint8_t class_of(const struct hd_event *e, const char *name)
{
	if (e->kind == HD_EVENT_OP)
		return (uint8_t)hd_tl_class_of_op(name);
	return e->kind && e->kind < sizeof kinds ? kinds[e->kind] : HD_TL_OTHER;
}

static int order(const struct hd_tl_event *a, const struct hd_tl_event *b)
{
	if (a->t0 != b->t0)
		return a->t0 < b->t0 ? -1 : 1;
	if (a->t1 != b->t1)
		return a->t1 > b->t1 ? -1 : 1;
	return a->kind - b->kind;
}

/* A recorder writes an event when it ends: it is a few places late. */
bool hd_tl_sort_near(struct hd_tl_event *event, uint64_t n)
{
	for (uint64_t i = 1, left = NEAR * n; i < n; i++) {
		const struct hd_tl_event e = event[i];
		uint64_t k = i;
		while (k && left && order(&event[k - 1], &e) > 0) {
			event[k] = event[k - 1];
			k--;
			left--;
		}
		event[k] = e;
		if (!left)
			return false;
	}
	return true;
}

void hd_tl_sort(struct hd_tl_event *event, struct hd_tl_event *spare, uint64_t n)
{
	struct hd_tl_event *from = event, *to = spare, *swap;

	for (uint64_t width = 1; width < n; width *= 2) {
		for (uint64_t at = 0; at < n; at += 2 * width) {
			uint64_t middle = at + width < n ? at + width : n, end = at + 2 * width < n ?
				at + 2 * width : n, a = at, b = middle;
			for (uint64_t k = at; k < end; k++)
				to[k] = a < middle && (b == end || order(&from[a], &from[b]) <= 0) ?
					from[a++] : from[b++];
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != event)
		memcpy(event, from, n * sizeof *event);
}

static int64_t within(int64_t t, int64_t low, int64_t high) { return t < low ? low : t > high ? high : t; }

static void put_transfer(const struct tl_build *b, uint32_t life, int64_t began,
	const struct hd_event_transfer *more, struct hd_tl_event *to)
{
	to->gate = within(hd_tl_time(b, life, began + more->gate_ns, NULL), to->t0, to->t1);
	to->first = within(hd_tl_time(b, life, began + more->first_ns, NULL), to->t0, to->t1);
	to->flow = more->flow;
	to->predicted_ns = more->predicted_ns;
	to->chunks = more->chunks;
	to->peer = more->peer == PEER_NONE ? HD_TL_NONE : more->peer;
	to->preempted = more->preempted;
	to->priority_class = more->class;
	to->primitive = more->primitive;
}

/* What has no name of its own has that of its kind, a wait that of its reason. */
static const char *named(const struct hd_event *e, const char *name)
{
	const char *kind = e->kind == HD_EVENT_WAIT ? hd_wait_text((uint8_t)e->arg) : hd_event_text(e->kind);

	return strcmp(name, "?") != 0 || !kind ? name : kind;
}

static enum hd_err put_event(struct tl_build *b, uint32_t life, const struct hd_event *e,
	const struct hd_event_transfer *more, struct hd_tl_event *to, struct hd_diag *diag)
{
	const struct hd_tl_life *from = b->lives->life[life];
	const char *name = named(e, hd_names_text(from->names, from->names_used, e->name));
	int64_t began = hd_tl_local(&from->info, e->t0), ended = hd_tl_local(&from->info,
		e->t0 + e->duration), error = 0;

	*to = (struct hd_tl_event){ .arg = e->arg, .instr = e->instr, .step = HD_TL_NONE, .vn = HD_TL_NONE,
		.stage = HD_TL_NONE, .peer = HD_TL_NONE, .kind = e->kind, .flags = e->flags,
		.class = class_of(e, name) };
	to->t0 = to->t1 = to->gate = to->first = hd_tl_time(b, life, began, &error);
	b->error_ns = error > b->error_ns ? error : b->error_ns;
	if (ended > began) {
		int64_t t1 = hd_tl_time(b, life, ended, &error);
		b->error_ns = error > b->error_ns ? error : b->error_ns;
		to->t1 = t1 > to->t0 ? t1 : to->t0;
	}
	if (more)
		put_transfer(b, life, began, more, to);
	if (e->kind == HD_EVENT_OP) {
		to->vn = hd_work_vn(e->arg) == HD_WORK_NO_VN ? HD_TL_NONE : hd_work_vn(e->arg);
		to->stage = hd_work_stage(e->arg) == HD_WORK_NO_STAGE ? HD_TL_NONE : hd_work_stage(e->arg);
	}
	b->out->nunknown += !hd_event_text(e->kind);
	return hd_tl_name_of(b->arena, &b->names, name, strlen(name), &to->name, diag);
}

/* A place at the end of the timeline's events; in an outline always the same. */
static struct hd_tl_event *place(struct tl_build *b)
{
	return &b->out->event[b->outline ? 0 : b->out->nevents];
}

enum hd_err hd_tl_note(struct tl_build *b, uint32_t process, const struct hd_tl_event *e,
	struct hd_diag *diag)
{
	struct hd_timeline *t = b->out;
	struct tl_seen *seen = &b->seen[process];

	t->begin = t->nevents && t->begin < e->t0 ? t->begin : e->t0;
	t->end = t->nevents && t->end > e->t1 ? t->end : e->t1;
	seen->first = seen->first < e->t0 ? seen->first : e->t0;
	seen->last = seen->last > e->t1 ? seen->last : e->t1;
	t->nevents++;
	if (e->kind != HD_EVENT_STEP_BEGIN && e->kind != HD_EVENT_STEP_END)
		return HD_OK;
	enum hd_err err = hd_tl_grow(b->arena, &b->mark, &b->marks_cap, b->nmarks + 1ull, sizeof *b->mark,
		diag);
	if (!err)
		b->mark[b->nmarks++] = (struct tl_mark){ .at = e->t0, .number = e->arg, .seq = t->nevents,
			.lane = t->nlanes, .kind = e->kind, .committed = e->instr == 1 };
	return err;
}

static enum hd_err read_piece(struct tl_build *b, uint32_t life, const struct hd_tl_ring *ring, uint32_t k,
	struct hd_diag *diag)
{
	const struct hd_tl_piece *piece = &ring->piece[k];
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < piece->nslots && !err; i++) {
		const uint8_t *slot = piece->slot + i * HD_SLOT_BYTES, *after;
		struct hd_event_transfer more;
		struct hd_event e;
		if (!hd_event_get(slot, &e))
			continue;
		bool pair = e.kind != HD_EVENT_CLOCK && hd_event_has_ext(e.kind) &&
			(after = hd_tl_slot_after(ring, k, i)) && hd_event_get_transfer(after, &more);
		struct hd_tl_event *to = place(b);
		err = put_event(b, life, &e, pair ? &more : NULL, to, diag);
		err = err ? err : hd_tl_note(b, life, to, diag);
	}
	return err;
}

/* Where a clock was set. */
static enum hd_err put_clock_steps(struct tl_build *b, uint32_t life, struct hd_diag *diag)
{
	const struct hd_tl_clock *clock = &b->clock[life];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < clock->nsteps && !err; i++) {
		struct hd_tl_event *to = place(b);
		int64_t at = hd_tl_time(b, life, clock->step[i], NULL);
		*to = (struct hd_tl_event){ .t0 = at, .t1 = at, .gate = at, .first = at,
			.step = HD_TL_NONE, .vn = HD_TL_NONE, .stage = HD_TL_NONE, .peer = HD_TL_NONE,
			.kind = HD_EVENT_MARK, .class = HD_TL_MARK };
		err = hd_tl_name_of(b->arena, &b->names, "clock step", strlen("clock step"),
			&to->name, diag);
		err = err ? err : hd_tl_note(b, life, to, diag);
	}
	return err;
}

static bool is_transfer(const struct hd_tl_event *e)
{
	return e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV || e->kind == HD_EVENT_READ;
}

/* Ends of what is open in each line, innermost last. */
struct open_spans { int64_t end[TL_LINES][DEEP]; uint32_t n[TL_LINES]; };

static bool fits(struct open_spans *open, uint32_t line, const struct hd_tl_event *e)
{
	uint32_t *n = &open->n[line];

	while (*n && open->end[line][*n - 1] <= e->t0)
		--*n;
	if (*n == DEEP || (*n && open->end[line][*n - 1] < e->t1))
		return false;
	open->end[line][(*n)++] = e->t1;
	return true;
}

void hd_tl_part(struct hd_tl_event *event, uint8_t *lines, uint64_t n)
{
	struct open_spans open = { .n = { 0 } };

	for (uint64_t i = 0; i < n; i++) {
		struct hd_tl_event *e = &event[i];
		uint32_t line = TL_OWN;
		lines[i] = is_transfer(e) ? TL_TRANSFERS : TL_OWN;
		if (is_transfer(e) || e->t0 == e->t1)
			continue;
		while (line < TL_LINES && (line == TL_TRANSFERS || !fits(&open, line, e)))
			line++;
		if (line == TL_LINES) {
			e->t1 = e->gate = e->first = e->t0;
			e->flags |= HD_EVENT_FLAG_OPEN;
			line = TL_OWN;
		}
		lines[i] = (uint8_t)line;
	}
}

void hd_tl_line_name(char *name, size_t cap, const char *lane, uint32_t line)
{
	if (line == TL_OWN)
		snprintf(name, cap, "%s", lane);
	else if (line == TL_TRANSFERS)
		snprintf(name, cap, "%s transfers", lane);
	else
		snprintf(name, cap, "%s +%u", lane, line - TL_SPILLED + 1);
}

/* A lane of events [begin, begin + n). */
static enum hd_err put_lane(struct tl_build *b, uint32_t process, uint32_t ring, uint32_t line,
	uint64_t begin, uint64_t n, struct hd_diag *diag)
{
	const struct hd_flight_lane *lane = &b->lives->life[process]->info.lane[ring];
	struct hd_timeline *t = b->out;
	char name[HD_FLIGHT_LANE_NAME + 16];

	if (line != TL_OWN && !n)
		return HD_OK;
	for (uint64_t i = begin; i < begin + n && !b->outline; i++)
		t->event[i].lane = t->nlanes;
	hd_tl_line_name(name, sizeof name, lane->name, line);
	uint32_t text;
	enum hd_err err = hd_tl_name_of(b->arena, &b->names, name, strlen(name), &text, diag);
	if (err)
		return err;
	t->lane[t->nlanes++] = (struct hd_tl_lane){ .process = process, .kind = line == TL_TRANSFERS ?
		HD_LANE_TRANSFER : lane->kind, .index = lane->index, .name = b->names.text[text],
		.begin = begin, .end = begin + n, .nlost = line == TL_OWN ?
		hd_tl_ring_lost(&b->lives->life[process]->ring[ring]) : 0 };
	return HD_OK;
}

static enum hd_err no_memory(uint64_t n, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to sort %llu events of a lane; take fewer files or steps",
		(unsigned long long)n);
}

/* Room grows, by the largest ring so far; what it held is given up. */
static enum hd_err room(struct hd_arena *arena, void *list, uint64_t *cap, uint64_t n, size_t size,
	struct hd_diag *diag)
{
	void *at = n > *cap ? hd_arena_take(arena, n, size) : NULL;

	if (n <= *cap)
		return HD_OK;
	if (!at)
		return no_memory(n, diag);
	memcpy(list, &at, sizeof at);
	*cap = n;
	return HD_OK;
}

static enum hd_err sort(struct tl_build *b, struct hd_tl_event *event, uint64_t n, struct hd_diag *diag)
{
	if (hd_tl_sort_near(event, n))
		return HD_OK;
	enum hd_err err = room(b->arena, &b->spare, &b->spare_cap, n, sizeof *event, diag);
	if (!err)
		hd_tl_sort(event, b->spare, n);
	return err;
}

/* Line by line, in the place of all of them. count[]: of each line. */
static enum hd_err gather(struct tl_build *b, struct hd_tl_event *event, uint64_t n, uint64_t count[TL_LINES],
	struct hd_diag *diag)
{
	uint64_t kept = 0, at[TL_LINES];

	for (uint64_t i = 0; i < n; i++)
		count[b->line[i]]++;
	at[TL_TRANSFERS] = 0;
	for (uint32_t line = TL_SPILLED; line < TL_LINES; line++)
		at[line] = at[line - 1] + count[line - 1];
	enum hd_err err = room(b->arena, &b->spare, &b->spare_cap, n - count[TL_OWN], sizeof *event, diag);
	if (err || n == count[TL_OWN])
		return err;
	for (uint64_t i = 0; i < n; i++)
		if (b->line[i] == TL_OWN)
			event[kept++] = event[i];
		else
			b->spare[at[b->line[i]]++] = event[i];
	memcpy(event + kept, b->spare, (n - kept) * sizeof *event);
	return HD_OK;
}

/* The control lane, or the first: marks that no recorder put stand there. */
static uint32_t ring_of_marks(const struct hd_flight_info *info)
{
	for (uint32_t r = 0; r < info->nrings; r++)
		if (info->lane[r].kind == HD_LANE_CONTROL)
			return r;
	return 0;
}

enum hd_err hd_tl_build_ring(struct tl_build *b, uint32_t life, uint32_t ring, struct hd_diag *diag)
{
	const struct hd_tl_life *from = b->lives->life[life];
	uint64_t begin = b->out->nevents, count[TL_LINES] = { 0 };
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < from->ring[ring].npieces && !err; k++)
		err = read_piece(b, life, &from->ring[ring], k, diag);
	if (!err && ring == ring_of_marks(&from->info))
		err = put_clock_steps(b, life, diag);
	const uint64_t n = b->out->nevents - begin;
	struct hd_tl_event *event = b->outline ? NULL : b->out->event + begin;
	count[TL_OWN] = n;
	if (!err && event)
		err = sort(b, event, n, diag);
	if (!err && event && from->info.lane[ring].kind == HD_LANE_DEVICE) {
		err = room(b->arena, &b->line, &b->line_cap, n, 1, diag);
		if (!err && n)
			hd_tl_part(event, b->line, n);
		count[TL_OWN] = 0;
		err = err ? err : gather(b, event, n, count, diag);
	}
	for (uint32_t line = 0; line < TL_LINES && !err; begin += count[line++])
		err = put_lane(b, life, ring, line, begin, count[line], diag);
	return err;
}
