#include "pipeline/placement.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct placer {
	const struct hd_placement_ask *ask;
	uint32_t *device, *count;                 /* [places]; [zones] scratch */
	uint32_t p, d, z;
	/* Places in each zone, and how many zones have one: of all [zones], of a stage [stages * zones]. */
	uint32_t *of_all, nall, *of_stage, *nstage;
};

static uint32_t zone_of(const struct placer *x, uint32_t place)
{
	return x->ask->device[x->device[place]].zone;
}

/* ---- what a placement is worth */

static bool share_batch(const struct placer *x, uint32_t a, uint32_t b)
{
	const struct hd_placed_device *i = &x->ask->device[a], *k = &x->ask->device[b];
	const int64_t apart = i->added_ms > k->added_ms ? i->added_ms - k->added_ms :
		k->added_ms - i->added_ms;

	return i->zone == k->zone && apart <= HD_BATCH_MS;
}

/* The pair of a place and the next of its ring. Of a ring of two the one pair stands twice: each shadows the
 * other. */
static void count_pair(const struct placer *x, uint32_t here, struct hd_placement *o, int64_t *talk)
{
	const uint32_t s = here % x->p, next = here - s + (s + 1) % x->p;
	const uint32_t a = zone_of(x, here), b = zone_of(x, next);

	o->same_zone += a == b;
	o->shared_bytes += a == b && x->ask->out ? x->ask->out[s] : 0;
	o->same_batch += share_batch(x, x->device[here], x->device[next]);
	*talk += x->ask->cost ? x->ask->cost[(size_t)a * x->z + b] : 0;
}

static void weigh(struct hd_placement *o, int64_t talk)
{
	o->weighted = INT64_C(1000) * o->same_zone + INT64_C(100) * o->same_batch + INT64_C(10) *
		o->missing_zones + talk;
}

/* Zones that have a place at all. */
static uint32_t zones_of_all(const struct placer *x)
{
	uint32_t n = 0;

	for (uint32_t z = 0; z < x->z; z++)
		x->count[z] = 0;
	for (uint32_t i = 0; i < x->p * x->d; i++)
		n += x->count[zone_of(x, i)]++ == 0;
	return n;
}

static uint32_t missing_zones(const struct placer *x, uint32_t stage, uint32_t nall)
{
	uint32_t zones = 0;

	for (uint32_t z = 0; z < x->z; z++)
		x->count[z] = 0;
	for (uint32_t k = 0; k < x->d; k++)
		zones += x->count[zone_of(x, k * x->p + stage)]++ == 0;
	return (nall < x->d ? nall : x->d) - zones;
}

static void judge(const struct placer *x, struct hd_placement *o)
{
	const uint32_t nall = zones_of_all(x);
	int64_t talk = 0;

	*o = (struct hd_placement){ 0 };
	for (uint32_t i = 0; i < x->p * x->d && x->p > 1; i++)
		count_pair(x, i, o, &talk);
	for (uint32_t s = 0; s < x->p; s++)
		o->missing_zones += missing_zones(x, s, nall);
	weigh(o, talk);
}

static bool is_better(const struct hd_placement *a, const struct hd_placement *b)
{
	return a->weighted != b->weighted ? a->weighted < b->weighted : a->shared_bytes < b->shared_bytes;
}

/* ---- rules 1 and 2 */

/* Devices in the order of dealing: zones by how many are left of each, ids ascending. */
struct dealt { uint32_t zone, id, weight; };

static int by_zone(const void *a, const void *b)
{
	const struct dealt *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	if (x->zone != y->zone)
		return x->zone < y->zone ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static uint32_t fullest(const uint32_t *count, uint32_t nzones)
{
	uint32_t best = 0;

	for (uint32_t z = 1; z < nzones; z++)
		best = count[z] > count[best] ? z : best;
	return best;
}

/* What is left after the surplus of the fullest zones is left out. */
static uint32_t choose(const struct placer *x, struct dealt *all)
{
	const struct hd_placement_ask *ask = x->ask;
	uint32_t n = 0;

	for (uint32_t z = 0; z < x->z; z++)
		x->count[z] = 0;
	for (uint32_t i = 0; i < ask->ndevices; i++)
		x->count[ask->device[i].zone]++;
	for (uint32_t surplus = ask->ndevices - x->p * x->d; surplus; surplus--)
		x->count[fullest(x->count, x->z)]--;
	for (uint32_t i = 0; i < ask->ndevices; i++) {
		uint32_t before = 0;
		for (uint32_t k = 0; k < n; k++)
			before += all[k].zone == ask->device[i].zone;
		if (before < x->count[ask->device[i].zone])
			all[n++] = (struct dealt){ ask->device[i].zone, i, x->count[ask->device[i].zone] };
	}
	return n;
}

/* Stage of the nth device of a pipeline. */
static uint32_t stage_of(const struct placer *x, uint32_t pipeline, uint32_t n)
{
	const uint32_t half = (x->p + 1) / 2, s = n < half ? 2 * n : 2 * (n - half) + 1;

	return pipeline % 2 && x->p % 2 == 0 ? s ^ 1 : s;
}

/* Dealt in turn, each pipeline has the fullest zone first too, or as many of the next. */
static void deal(struct placer *x, struct dealt *all, struct dealt *one, uint32_t n)
{
	qsort(all, n, sizeof *all, by_zone);
	for (uint32_t k = 0; k < x->d; k++) {
		for (uint32_t z = 0; z < x->z; z++)
			x->count[z] = 0;
		for (uint32_t i = 0; i < x->p; i++)
			x->count[all[i * x->d + k].zone]++;
		for (uint32_t i = 0; i < x->p; i++) {
			one[i] = all[i * x->d + k];
			one[i].weight = x->count[one[i].zone];
		}
		qsort(one, x->p, sizeof *one, by_zone);
		for (uint32_t i = 0; i < x->p; i++)
			x->device[k * x->p + stage_of(x, k, i)] = one[i].id;
	}
}

/* ---- rule 3 */

static void exchange(uint32_t *a, uint32_t *b)
{
	const uint32_t was = *a;

	*a = *b;
	*b = was;
}

static void count_places(struct placer *x)
{
	memset(x->of_all, 0, x->z * sizeof *x->of_all);
	memset(x->of_stage, 0, (size_t)x->p * x->z * sizeof *x->of_stage);
	memset(x->nstage, 0, x->p * sizeof *x->nstage);
	x->nall = 0;
	for (uint32_t i = 0; i < x->p * x->d; i++) {
		const uint32_t s = i % x->p, z = zone_of(x, i);
		x->nall += x->of_all[z]++ == 0;
		x->nstage[s] += x->of_stage[(size_t)s * x->z + z]++ == 0;
	}
}

/* Another device stands there. */
static void put(struct placer *x, uint32_t at, uint32_t device)
{
	const uint32_t s = at % x->p, was = zone_of(x, at), is = x->ask->device[device].zone;
	uint32_t *of_stage = x->of_stage + (size_t)s * x->z;

	x->device[at] = device;
	x->nall -= --x->of_all[was] == 0;
	x->nstage[s] -= --of_stage[was] == 0;
	x->nall += x->of_all[is]++ == 0;
	x->nstage[s] += of_stage[is]++ == 0;
}

/* What a change of the devices at places `at` [n], n 1 or 2, can alter, counted as by judge(): pairs that
 * they are in, zones that their stages miss, and, for all stages, zones that there are. */
static void judge_near(const struct placer *x, const uint32_t *at, uint32_t n, struct hd_placement *o)
{
	uint32_t pair[4] = { 0 };
	int64_t talk = 0;

	*o = (struct hd_placement){ .missing_zones = x->p * (x->nall < x->d ? x->nall : x->d) };
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t s = at[i] % x->p;
		pair[2 * i] = at[i] - s + (s + x->p - 1) % x->p;
		pair[2 * i + 1] = at[i];
		if (i == 0 || s != at[0] % x->p)
			o->missing_zones -= x->nstage[s];
	}
	for (uint32_t i = 0; i < 2 * n && x->p > 1; i++) {
		bool counted = false;
		for (uint32_t k = 0; k < i; k++)
			counted |= pair[k] == pair[i];
		if (!counted)
			count_pair(x, pair[i], o, &talk);
	}
	weigh(o, talk);
}

/* Devices i and k change places, where that helps; `i` or `k` may wait. */
static bool change(struct placer *x, uint32_t *place, uint32_t i, uint32_t k)
{
	const struct hd_placed_device *a = &x->ask->device[i], *b = &x->ask->device[k];
	uint32_t at[2], n = 0;
	struct hd_placement was, now;

	if (a->zone == b->zone && a->added_ms == b->added_ms)
		return false;                     /* nothing of them differs */
	if (place[i] != HD_WAITS)
		at[n++] = place[i];
	if (place[k] != HD_WAITS)
		at[n++] = place[k];
	if (!n)
		return false;
	judge_near(x, at, n, &was);
	for (uint32_t j = 0; j < n; j++)
		put(x, at[j], x->device[at[j]] == i ? k : i);
	judge_near(x, at, n, &now);
	if (is_better(&now, &was)) {
		exchange(&place[i], &place[k]);
		return true;
	}
	for (uint32_t j = 0; j < n; j++)
		put(x, at[j], x->device[at[j]] == i ? k : i);
	return false;
}

/* The first exchange that helps, of two places or with one that waits. */
static bool improve(struct placer *x, uint32_t *place)
{
	for (uint32_t i = 0; i < x->ask->ndevices; i++)
		for (uint32_t k = i + 1; k < x->ask->ndevices; k++)
			if (change(x, place, i, k))
				return true;
	return false;
}

static enum hd_err check(const struct hd_placement_ask *ask, struct hd_diag *diag)
{
	const uint64_t places = (uint64_t)ask->nstages * ask->npipelines;

	if (places == 0 || places > ask->ndevices || ask->ndevices > HD_PLACED_DEVICES)
		return hd_fail(diag, HD_E_INVAL,
			"%u pipelines of %u stages on %u devices: there are 1 or more, devices for all, and "
			"%d at most", ask->npipelines, ask->nstages, ask->ndevices, HD_PLACED_DEVICES);
	for (uint32_t i = 0; i < ask->ndevices; i++)
		if (ask->device[i].zone >= ask->nzones)
			return hd_fail(diag, HD_E_INVAL, "device %u is in zone %u of %u", i,
				ask->device[i].zone, ask->nzones);
	return HD_OK;
}

/* By rules 1 and 2, or as the caller has them; no change yet. */
static enum hd_err place_first(struct placer *x, uint32_t **place, const uint32_t *from,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_placement_ask *ask = x->ask;
	const uint32_t places = x->p * x->d;
	enum hd_err err = check(ask, diag);

	if (err)
		return err;
	struct dealt *all = hd_arena_take(arena, ask->ndevices, sizeof *all),
		*one = hd_arena_take(arena, x->p, sizeof *one);
	*place = hd_arena_take(arena, ask->ndevices, sizeof **place);
	x->device = hd_arena_take(arena, places, sizeof *x->device);
	x->count = hd_arena_take(arena, (size_t)x->z + 1, sizeof *x->count);
	x->of_all = hd_arena_take(arena, (size_t)x->z + 1, sizeof *x->of_all);
	x->of_stage = hd_arena_take(arena, (size_t)x->p * x->z + 1, sizeof *x->of_stage);
	x->nstage = hd_arena_take(arena, x->p, sizeof *x->nstage);
	if (!all || !one || !*place || !x->device || !x->count || !x->of_all || !x->of_stage || !x->nstage)
		return hd_fail(diag, HD_E_NOMEM, "no memory to place %u devices", ask->ndevices);
	if (from)
		memcpy(x->device, from, places * sizeof *from);
	else
		deal(x, all, one, choose(x, all));
	for (uint32_t i = 0; i < ask->ndevices; i++)
		(*place)[i] = HD_WAITS;
	for (uint32_t i = 0; i < places; i++)
		(*place)[x->device[i]] = i;
	return HD_OK;
}

static enum hd_err place_all(struct hd_placement *out, const struct hd_placement_ask *ask,
	const uint32_t *from, bool moves, struct hd_arena *arena, struct hd_diag *diag)
{
	struct placer x = { .ask = ask, .p = ask->nstages, .d = ask->npipelines, .z = ask->nzones };
	uint32_t *place;

	enum hd_err err = place_first(&x, &place, from, arena, diag);
	if (err)
		return err;
	count_places(&x);
	for (uint64_t left = moves ? (uint64_t)ask->ndevices * ask->ndevices : 0; left && improve(&x, place);
		left--)
		;
	judge(&x, out);
	out->device = x.device;
	out->place = place;
	return HD_OK;
}

enum hd_err hd_place_devices(struct hd_placement *out, const struct hd_placement_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return place_all(out, ask, ask->from, true, arena, diag);
}

enum hd_err hd_judge_placement(struct hd_placement *out, const struct hd_placement_ask *ask,
	const uint32_t *device, struct hd_arena *arena, struct hd_diag *diag)
{
	return place_all(out, ask, device, false, arena, diag);
}
