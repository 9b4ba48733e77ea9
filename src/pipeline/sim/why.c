#include "pipeline/sim_why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/sim/int.h"

/* Where the path is looked for, backwards: rank (or, if there is one, meeting) at a time. */
struct path_at { uint32_t rank, meeting; int64_t time; };

struct path_walk {
	const struct hd_sim_plan *sim;
	struct hd_sim_reasons *out;
	uint32_t cap;
	struct hd_arena *arena;
};

/* ---- parts */

static bool put(struct path_walk *w, struct hd_path_part part)
{
	struct hd_sim_reasons *o = w->out;

	if (part.start == part.until)
		return true;
	if (o->nparts == w->cap) {
		const uint32_t cap = w->cap ? 2 * w->cap : 64;
		struct hd_path_part *more = hd_arena_take(w->arena, cap, sizeof *more);
		if (!more)
			return false;
		if (o->nparts)
			memcpy(more, o->part, o->nparts * sizeof *more);
		o->part = more;
		w->cap = cap;
	}
	o->part[o->nparts++] = part;
	return true;
}

/* The rank's last wait that is over at a time; NULL: it has worked since the beginning. */
static const struct hd_sim_wait *wait_before(const struct hd_sim_plan *sim, uint32_t rank, int64_t time)
{
	const struct hd_sim_waits *waits = &sim->wait[rank];
	uint32_t low = 0, high = waits->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (waits->at[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &waits->at[low - 1] : NULL;
}

/* The first instruction of the rank that takes time and begins at `time` or later. */
static uint32_t first_from(const struct hd_sim_plan *sim, uint32_t rank, uint32_t i, int64_t time)
{
	const struct hd_ilist *list = &sim->ran.list[rank];

	while (i < list->len && (sim_is_transfer(list->at[i].op) || sim_is_collective(list->at[i].op) ||
		sim_is_shadow_send(&list->at[i]) || sim_is_shadow_take(&list->at[i]) ||
		sim->span[rank][i].start < time || sim->span[rank][i].start == sim->span[rank][i].end))
		i++;
	return i;
}

static bool put_work(struct path_walk *w, uint32_t rank, const struct hd_sim_wait *after, int64_t until)
{
	const int64_t start = after ? after->end : 0;
	const uint32_t first = first_from(w->sim, rank, after ? after->at : 0, start),
		end = first_from(w->sim, rank, first, until);

	return put(w, (struct hd_path_part){ .kind = HD_PATH_WORK, .rank = rank, .from = rank,
		.meeting = HD_NO_MEETING, .first = first, .end = end, .start = start, .until = until });
}

/* One step back: what the path was at `at` for, and where it comes from. false: no memory. */
static bool back(struct path_walk *w, struct path_at *at)
{
	const struct hd_sim_plan *sim = w->sim;

	if (at->meeting != HD_NO_MEETING) {
		const struct hd_sim_meeting *m = &sim->meeting[at->meeting];
		const bool good = put(w, (struct hd_path_part){ .kind = HD_PATH_MEETING, .rank = m->last,
			.from = m->last, .meeting = at->meeting, .start = m->start, .until = at->time });
		*at = (struct path_at){ m->last, m->after, m->start };
		return good;
	}
	const struct hd_sim_wait *wait = wait_before(sim, at->rank, at->time);
	if (!put_work(w, at->rank, wait, at->time))
		return false;
	if (!wait) {
		at->time = 0;
		return true;
	}
	struct hd_path_part part = { .rank = at->rank, .from = wait->rank, .meeting = HD_NO_MEETING,
		.first = wait->at, .end = wait->at + 1, .until = wait->end };
	at->time = wait->end;
	if (wait->meeting != HD_NO_MEETING) {
		const struct hd_sim_meeting *m = &sim->meeting[wait->meeting];
		/* of lockstep the wait may have ended when all had come: then the rank's own work follows */
		if (m->start < wait->end)
			at->meeting = wait->meeting;
		else
			*at = (struct path_at){ m->last, m->after, wait->end };
		return true;
	}
	if (wait->rank == HD_NO_RANK) {
		part.kind = HD_PATH_HOST;
		part.start = at->time = wait->start;
		return put(w, part);
	}
	at->rank = wait->rank;
	if (wait->why == HD_IDLE_CREDIT || wait->since >= wait->end)
		return true;
	part.kind = HD_PATH_TRANSFER;
	part.start = at->time = wait->since;
	return put(w, part);
}

static struct path_at last_of(const struct hd_sim_plan *sim)
{
	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		if (sim->rank[r].last == sim->makespan)
			return (struct path_at){ r, HD_NO_MEETING, sim->makespan };
	for (uint32_t i = 0; i < sim->nmeetings; i++)
		if (sim->meeting[i].end == sim->makespan)
			return (struct path_at){ sim->meeting[i].last, i, sim->makespan };
	return (struct path_at){ 0, HD_NO_MEETING, 0 };
}

/* Nothing that waits may be its own cause: each step goes back in time, or to another rank or meeting. */
static enum hd_err find_path(struct path_walk *w, struct hd_diag *diag)
{
	struct hd_sim_reasons *o = w->out;
	struct path_at at = last_of(w->sim);
	uint64_t still = 0, most = (uint64_t)w->sim->ran.nranks + w->sim->nmeetings;

	while (at.time > 0) {
		const int64_t was = at.time;
		if (!back(w, &at))
			return hd_fail(diag, HD_E_NOMEM, "no memory for a path of %u parts", o->nparts);
		still = at.time < was ? 0 : still + 1;
		if (still > most)
			return hd_fail(diag, HD_E_BUG, "the causes of a simulated step go round at %lld",
				(long long)was);
	}
	for (uint32_t i = 0; i < o->nparts / 2; i++) {
		const struct hd_path_part part = o->part[i];
		o->part[i] = o->part[o->nparts - 1 - i];
		o->part[o->nparts - 1 - i] = part;
	}
	return HD_OK;
}

/* ---- terms */

/* By the spans of its instructions; both halves of a pair have one. What no span shows is work of a rank in
 * a meeting (lockstep). */
static void add_work(struct hd_sim_reasons *o, const struct hd_sim_plan *sim, const struct hd_path_part *part)
{
	int64_t left = part->until - part->start, upto = part->start;
	uint32_t last = HD_INS_FL;

	for (uint32_t i = part->first; i < part->end; i++) {
		const struct hd_ins *ins = &sim->ran.list[part->rank].at[i];
		const struct hd_sim_span *span = &sim->span[part->rank][i];
		if (sim_is_transfer(ins->op) || sim_is_collective(ins->op) || sim_is_shadow_send(ins) ||
			sim_is_shadow_take(ins) || span->end <= upto)
			continue;
		const int64_t took = span->end - (span->start > upto ? span->start : upto);
		o->term[ins->op + (hd_ins_redundant(ins) ? HD_TERM_SHADOW : 0)] += took;
		left -= took;
		upto = span->end;
	}
	o->term[last] += left;
}

static void add_terms(struct hd_sim_reasons *o, const struct hd_sim_plan *sim)
{
	for (uint32_t i = 0; i < o->nparts; i++) {
		const struct hd_path_part *part = &o->part[i];
		const int64_t took = part->until - part->start;
		switch (part->kind) {
		case HD_PATH_WORK:
			add_work(o, sim, part);
			break;
		case HD_PATH_TRANSFER:
			o->term[HD_TERM_TRANSFER] += took;
			break;
		case HD_PATH_MEETING:
			o->term[HD_TERM_MEETING + sim->meeting[part->meeting].op] += took;
			break;
		case HD_PATH_HOST:
			o->term[HD_TERM_HOST] += took;
			break;
		}
	}
}

const char *hd_term_name(uint32_t term, char room[32])
{
	const struct hd_ins_row *row = term < HD_TERM_TRANSFER ? hd_ins_row((uint8_t)(term % HD_INS_END)) :
		NULL;

	if (term == HD_TERM_TRANSFER || term == HD_TERM_HOST)
		return term == HD_TERM_HOST ? "host" : "transfers";
	snprintf(room, 32, "%s%s", row ? row->text : "?", term / HD_INS_END == 1 ? " of shadows" : "");
	return room;
}

/* ---- waits */

static int by_length(const void *x, const void *y)
{
	const struct hd_rank_wait *a = x, *b = y;
	const int64_t key[][2] = { { a->rank, b->rank }, { b->ticks, a->ticks }, { a->why, b->why },
		{ a->op, b->op }, { a->of, b->of } };

	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (key[i][0] != key[i][1])
			return key[i][0] < key[i][1] ? -1 : 1;
	return 0;
}

static void add_wait(struct hd_sim_reasons *o, uint32_t first, const struct hd_rank_wait *wait)
{
	uint32_t i = first;

	while (i < o->nwaits && (o->wait[i].of != wait->of || o->wait[i].op != wait->op ||
		o->wait[i].why != wait->why))
		i++;
	if (i == o->nwaits) {
		o->wait[o->nwaits++] = *wait;
		return;
	}
	o->wait[i].ticks += wait->ticks;
	o->wait[i].n++;
}

static enum hd_err find_waits(struct path_walk *w, struct hd_diag *diag)
{
	const struct hd_sim_plan *sim = w->sim;
	struct hd_sim_reasons *o = w->out;
	size_t n = 1;

	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		n += sim->wait[r].n;
	o->wait = hd_arena_take(w->arena, n, sizeof *o->wait);
	if (!o->wait)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu waits", n);
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		const uint32_t first = o->nwaits;
		for (uint32_t i = 0; i < sim->wait[r].n; i++) {
			const struct hd_sim_wait *one = &sim->wait[r].at[i];
			const bool meets = one->meeting != HD_NO_MEETING;
			add_wait(o, first, &(struct hd_rank_wait){ .rank = r, .why = one->why, .n = 1,
				.of = meets ? sim->meeting[one->meeting].last : one->rank,
				.op = meets ? sim->meeting[one->meeting].op : 0,
				.ticks = one->end - one->start });
		}
	}
	qsort(o->wait, o->nwaits, sizeof *o->wait, by_length);
	return HD_OK;
}

enum hd_err hd_sim_reasons(struct hd_sim_reasons *out, const struct hd_sim_plan *sim, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_sim_reasons o = { 0 };
	struct path_walk w = { .sim = sim, .out = &o, .arena = arena };
	enum hd_err err = find_path(&w, diag);

	if (!err)
		err = find_waits(&w, diag);
	if (err)
		return err;
	add_terms(&o, sim);
	*out = o;
	return HD_OK;
}
