#include "timeline/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "timeline/build_int.h"

static enum hd_err no_memory(struct hd_diag *diag, const char *what)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the %s of a timeline; take fewer files or steps",
		what);
}

int64_t hd_tl_time(const struct tl_build *b, uint32_t life, int64_t local, int64_t *error_ns)
{
	const struct hd_tl_clock *clock = &b->clock[life];

	if (clock->aligned)
		return hd_tl_reference(clock, local, error_ns) - b->out->base_ns;
	const struct hd_flight_info *info = &b->lives->life[life]->info;
	if (error_ns)
		*error_ns = 0;
	return local - hd_tl_local(info, info->first.tick);
}

/* 6. */
static void set_base(struct tl_build *b)
{
	struct hd_timeline *t = b->out;
	bool found = false;

	for (uint32_t i = 0; i < b->lives->n; i++) {
		const struct hd_flight_info *info = &b->lives->life[i]->info;
		int64_t start = hd_tl_reference(&b->clock[i], hd_tl_local(info, info->first.tick), NULL);
		if (!b->clock[i].aligned || (found && start >= t->base_ns))
			continue;
		found = true;
		t->base_ns = start;
		t->realtime_ns = info->realtime_ns;
		if (i == b->reference && info->worker == UINT32_MAX)
			break;
	}
}

static enum hd_err put_process(struct tl_build *b, uint32_t i, struct hd_diag *diag)
{
	const struct hd_tl_life *life = b->lives->life[i];
	char name[32];

	if (life->info.worker == UINT32_MAX)
		snprintf(name, sizeof name, "coordinator");
	else if (life->info.clock == HD_FLIGHT_CLOCK_SIMULATED)
		snprintf(name, sizeof name, "simulated");
	else
		snprintf(name, sizeof name, "worker %u", life->info.worker);
	struct hd_tl_process *p = &b->out->process[i];
	*p = (struct hd_tl_process){ .worker = life->info.worker, .pid = life->info.pid,
		.name = hd_arena_text(b->arena, name, strlen(name)), .host = "", .state = life->state,
		.aligned = b->clock[i].aligned, .lane_begin = b->out->nlanes };
	if (!p->name)
		return no_memory(diag, "processes");
	enum hd_err err = HD_OK;
	for (uint32_t r = 0; r < life->info.nrings && !err; r++)
		err = hd_tl_build_ring(b, i, r, diag);
	p->lane_end = b->out->nlanes;
	p->error_ns = b->error_ns;
	b->error_ns = 0;
	return err;
}

/* SEND and RECV name a worker: the life of it that was there then. */
static uint32_t peer_of(const struct hd_timeline *t, const struct tl_seen *seen, const struct hd_tl_event *e)
{
	for (uint32_t p = 0; p < t->nprocesses; p++)
		if (t->process[p].worker == e->peer && p != t->lane[e->lane].process &&
			seen[p].first <= e->t1 && seen[p].last >= e->t0)
			return p;
	return HD_TL_NONE;
}

static enum hd_err take_room(struct tl_build *b, struct hd_diag *diag)
{
	uint64_t events = 0, rings = 0;

	for (uint32_t i = 0; i < b->lives->n; i++) {
		const struct hd_tl_life *life = b->lives->life[i];
		rings += life->info.nrings;
		events += b->clock[i].nsteps;
		for (uint32_t r = 0; r < life->info.nrings; r++)
			events += hd_tl_ring_slots(&life->ring[r]);
	}
	b->lanes_cap = (uint32_t)(rings * (2 + HD_TL_SPILL));
	b->out->event = hd_arena_take(b->arena, b->outline ? 1 : events + 1,
		sizeof *b->out->event);
	b->out->lane = hd_arena_take(b->arena, b->lanes_cap + 1ull, sizeof *b->out->lane);
	b->out->process = hd_arena_take(b->arena, b->lives->n + 1ull, sizeof *b->out->process);
	b->seen = hd_arena_take(b->arena, b->lives->n + 1ull, sizeof *b->seen);
	if (!b->out->event || !b->out->lane || !b->out->process || !b->seen)
		return no_memory(diag, "events");
	return HD_OK;
}

static enum hd_err put_job(struct tl_build *b, struct hd_diag *diag)
{
	struct hd_hash job;
	char hex[HD_HASH_HEX] = "";

	if (b->lives->n) {
		memcpy(job.byte, b->lives->life[0]->info.job, sizeof job.byte);
		hd_hash_hex(job, hex);
	}
	b->out->job = hd_arena_text(b->arena, hex, strlen(hex));
	return b->out->job ? HD_OK : no_memory(diag, "job");
}

static enum hd_err build_all(struct tl_build *b, struct hd_diag *diag)
{
	struct hd_timeline *t = b->out;
	uint32_t unknown;
	enum hd_err err = take_room(b, diag);

	if (!err)
		err = hd_tl_name_of(b->arena, &b->names, "?", 1, &unknown, diag);
	if (!err)
		err = put_job(b, diag);
	if (err)
		return err;
	set_base(b);
	for (; t->nprocesses < b->lives->n && !err; t->nprocesses++) {
		uint32_t i = t->nprocesses;
		b->seen[i] = (struct tl_seen){ INT64_MAX, INT64_MIN };
		err = put_process(b, i, diag);
		err = err ? err : hd_tl_build_steps(b, i, diag);
	}
	if (err)
		return err;
	for (uint64_t i = 0; i < t->nevents && !b->outline; i++)
		if (t->event[i].peer != HD_TL_NONE)
			t->event[i].peer = peer_of(t, b->seen, &t->event[i]);
	if (b->outline)
		t->event = NULL;
	for (uint32_t l = 0; l < t->nlanes; l++)
		t->nlost += t->lane[l].nlost;
	t->name = b->names.text;
	t->nnames = b->names.n;
	return err;
}

static enum hd_err build(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, bool outline, struct hd_timeline *timeline,
	struct hd_diag *diag)
{
	struct hd_timeline got = { 0 };
	struct tl_build build = { .arena = arena, .lives = lives, .clock = clock, .reference = reference,
		.outline = outline, .out = &got };
	enum hd_err err = build_all(&build, diag);

	if (!err)
		*timeline = got;
	return err;
}

enum hd_err hd_tl_build_of(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, struct hd_timeline *timeline,
	struct hd_diag *diag)
{
	return build(arena, lives, clock, reference, false, timeline, diag);
}

enum hd_err hd_tl_outline_of(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint32_t reference, struct hd_timeline *timeline,
	struct hd_diag *diag)
{
	return build(arena, lives, clock, reference, true, timeline, diag);
}
