#include <stdlib.h>
#include <string.h>

#include "timeline/align_int.h"

/* 18 years: sums of a few such times never overflow. */
#define FAR (INT64_C(1) << 59)

__extension__ typedef __int128 wide;

static int64_t clamped(wide t) { return t > FAR ? FAR : t < -FAR ? -FAR : (int64_t)t; }

int64_t hd_tl_local(const struct hd_flight_info *info, uint64_t tick)
{
	wide ticks = (wide)info->latest.tick - info->first.tick,
		ns = (wide)info->latest.ns - info->first.ns, since = (wide)tick - info->first.tick;

	if (info->clock != HD_FLIGHT_CLOCK_TSC)
		return clamped(tick);
	if (ticks <= 0 || ns <= 0 || ns > FAR)
		return clamped(since + info->first.ns);
	/* 2^64 ticks times 2^59 ns fit */
	return clamped(since / ticks * ns + since % ticks * ns / ticks + info->first.ns);
}

/* `end` of the widest sum of an event's time and length. */
static void stretch(struct tl_probes *p, int64_t t0, int64_t t1)
{
	if (t0 < p->begin)
		p->begin = t0;
	if (t1 > p->end)
		p->end = t1;
}

static void read_slots(const struct hd_tl_life *life, const struct hd_tl_ring *ring, uint32_t k,
	const struct hd_flight_info *other, struct tl_probes *p)
{
	const struct hd_tl_piece *piece = &ring->piece[k];

	for (uint64_t i = 0; i < piece->nslots; i++) {
		const uint8_t *slot = piece->slot + i * HD_SLOT_BYTES, *after;
		struct hd_event_probe more;
		struct hd_event e;
		if (!hd_event_get(slot, &e))
			continue;
		int64_t t0 = hd_tl_local(&life->info, e.t0), t1 = hd_tl_local(&life->info, e.t0 + e.duration);
		if (t1 < t0)
			continue;
		stretch(p, t0, t1);
		if (e.kind != HD_EVENT_CLOCK || !(after = hd_tl_slot_after(ring, k, i)) ||
			!hd_event_get_probe(after, &more))
			continue;
		struct hd_tl_probe probe = { .t1 = t0, .t4 = t1, .t2 = hd_tl_local(other, e.arg),
			.t3 = hd_tl_local(other, e.arg + more.between) };
		if (probe.t3 >= probe.t2 && probe.t3 - probe.t2 <= probe.t4 - probe.t1) {
			if (p->at)
				p->at[p->n] = probe;
			p->n++;
		}
	}
}

static int by_t1(const void *a, const void *b)
{
	const struct hd_tl_probe *x = a, *y = b;

	if (x->t1 != y->t1)
		return x->t1 < y->t1 ? -1 : 1;
	return x->t2 < y->t2 ? -1 : x->t2 > y->t2;
}

static void read_life(const struct hd_tl_life *life, const struct hd_flight_info *other, struct tl_probes *p)
{
	p->n = 0;
	for (uint32_t r = 0; r < life->info.nrings; r++)
		for (uint32_t k = 0; k < life->ring[r].npieces; k++)
			read_slots(life, &life->ring[r], k, other, p);
}

/* Counts first, so that the list is as long as it has to be. */
enum hd_err hd_tl_probes_of(struct hd_arena *arena, const struct hd_tl_life *life,
	const struct hd_flight_info *other, struct tl_probes *p, struct hd_diag *diag)
{
	*p = (struct tl_probes){ .begin = hd_tl_local(&life->info, life->info.first.tick) };
	p->end = p->begin;
	read_life(life, other, p);
	p->at = p->n ? hd_arena_take(arena, p->n, sizeof *p->at) : NULL;
	if (p->n && !p->at)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its probes of the clock", life->file);
	if (p->at)
		read_life(life, other, p);
	if (p->n > 1)
		qsort(p->at, p->n, sizeof *p->at, by_t1);
	return HD_OK;
}

static bool one_clock(const struct hd_flight_info *a, const struct hd_flight_info *b)
{
	static const uint8_t none[sizeof a->boot];

	if (a->clock != b->clock || a->clock == HD_FLIGHT_CLOCK_TSC)
		return false;
	return a->clock == HD_FLIGHT_CLOCK_SIMULATED || (!memcmp(a->boot, b->boot, sizeof none) &&
		memcmp(a->boot, none, sizeof none) != 0);
}

/* Is theta = 0 in what each probe allows? */
static bool agree_with_zero(const struct tl_probes *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->at[i].t2 - p->at[i].t1 + HD_TL_RESOLUTION_NS < 0 ||
			p->at[i].t3 - p->at[i].t4 - HD_TL_RESOLUTION_NS > 0)
			return false;
	return true;
}

static const struct hd_tl_clock same = { .aligned = true, .error_ns = HD_TL_RESOLUTION_NS };

/* The clock of a process by that of another of its boot that is aligned already. */
static void borrow(const struct hd_tl_lives *lives, const struct tl_probes *p, struct hd_tl_clock *clock,
	uint32_t i)
{
	for (uint32_t j = 0; j < lives->n && !clock[i].aligned; j++)
		if (j != i && p[j].n >= 2 && clock[j].aligned && one_clock(&lives->life[j]->info,
			&lives->life[i]->info))
			clock[i] = clock[j];
}

/* The coordinator, which comes first; without one and without probes the first process. */
static uint32_t reference_of(const struct hd_tl_lives *lives, const struct tl_probes *p)
{
	bool probed = false;

	for (uint32_t i = 0; i < lives->n; i++)
		probed |= p[i].n > 0;
	return lives->n && (lives->life[0]->info.worker == UINT32_MAX || !probed) ? 0 : lives->n;
}

enum hd_err hd_tl_align(struct hd_arena *arena, const struct hd_tl_lives *lives, struct hd_tl_clock **out,
	uint32_t *reference, struct hd_diag *diag)
{
	static const struct hd_flight_info plain = { .clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW };
	struct hd_tl_clock *clock = hd_arena_take(arena, lives->n + 1ull, sizeof *clock);
	struct tl_probes *p = hd_arena_take(arena, lives->n + 1ull, sizeof *p);
	enum hd_err err = clock && p ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory to align clocks");
	bool coordinated = lives->n && lives->life[0]->info.worker == UINT32_MAX;
	const struct hd_flight_info *other = coordinated ? &lives->life[0]->info : &plain;

	for (uint32_t i = 0; i < lives->n && !err; i++)
		err = hd_tl_probes_of(arena, lives->life[i], other, &p[i], diag);
	if (err)
		return err;
	uint32_t ref = reference_of(lives, p);
	for (uint32_t i = 0; i < lives->n && !err; i++) {
		bool shared = ref < lives->n && one_clock(&lives->life[ref]->info, &lives->life[i]->info);
		if (i == ref)
			clock[i] = (struct hd_tl_clock){ .aligned = true };
		else if (shared && agree_with_zero(&p[i]))
			clock[i] = same;
		else if (p[i].n >= 2)
			err = hd_tl_fit(arena, p[i].at, p[i].n, p[i].begin, p[i].end, &clock[i], diag);
	}
	for (uint32_t i = 0; i < lives->n && !err; i++)
		if (!clock[i].aligned)
			borrow(lives, p, clock, i);
	if (err)
		return err;
	*out = clock;
	*reference = ref;
	return HD_OK;
}
