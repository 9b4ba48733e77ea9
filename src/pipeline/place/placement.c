#include "pipeline/placement.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct placer {
	const struct hd_placement_ask *ask;
	uint32_t *device, *count;                 /* [places]; [zones] scratch */
	uint32_t p, d, z;
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

/* Of a ring of two the one pair stands twice: each shadows the other. */
static void count_ring(const struct placer *x, uint32_t k, struct hd_placement *o, int64_t *talk)
{
	for (uint32_t s = 0; s < x->p && x->p > 1; s++) {
		const uint32_t here = k * x->p + s, next = k * x->p + (s + 1) % x->p;
		const uint32_t a = zone_of(x, here), b = zone_of(x, next);
		o->same_zone += a == b;
		o->shared_bytes += a == b && x->ask->out ? x->ask->out[s] : 0;
		o->same_batch += share_batch(x, x->device[here], x->device[next]);
		*talk += x->ask->cost ? x->ask->cost[(size_t)a * x->z + b] : 0;
	}
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
	for (uint32_t k = 0; k < x->d; k++)
		count_ring(x, k, o, &talk);
	for (uint32_t s = 0; s < x->p; s++)
		o->missing_zones += missing_zones(x, s, nall);
	o->weighted = INT64_C(1000) * o->same_zone + INT64_C(100) * o->same_batch + INT64_C(10) *
		o->missing_zones + talk;
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

/* The first exchange that helps, of two places or with one that waits. */
static bool improve(struct placer *x, uint32_t *place, struct hd_placement *best)
{
	for (uint32_t i = 0; i < x->ask->ndevices; i++)
		for (uint32_t k = i + 1; k < x->ask->ndevices; k++) {
			struct hd_placement now;
			if (place[i] == HD_WAITS && place[k] == HD_WAITS)
				continue;
			for (int again = 0; again < 2; again++) {
				if (place[i] != HD_WAITS)
					x->device[place[i]] = again ? i : k;
				if (place[k] != HD_WAITS)
					x->device[place[k]] = again ? k : i;
				if (again)
					break;
				judge(x, &now);
				if (is_better(&now, best)) {
					*best = now;
					exchange(&place[i], &place[k]);
					return true;
				}
			}
		}
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
	if (!all || !one || !*place || !x->device || !x->count)
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
	struct hd_placement best;
	uint32_t *place;

	enum hd_err err = place_first(&x, &place, from, arena, diag);
	if (err)
		return err;
	judge(&x, &best);
	for (uint64_t left = moves ? (uint64_t)ask->ndevices * ask->ndevices : 0; left && improve(&x, place,
		&best); left--)
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
