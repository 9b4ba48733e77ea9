#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/rounds/int.h"

static struct hd_round_run run_of(const struct hd_rounds *r, const struct pick *pick)
{
	const struct combination *c = &r->cell[pick->cell];
	struct hd_round_run run = { .id = { c->id[0], c->id[1] }, .nmembers = c->nmembers,
		.nneeds = c->nneeds,
		.rate = { c->rate[0], c->rate[1] },
		.spare = pick->spare, .cell = pick->cell };

	memcpy(run.need, c->need, sizeof run.need);
	return run;
}

/* The last round's run of the same members; NULL: none. */
static const struct hd_round_run *before(const struct hd_rounds *r, const struct combination *c)
{
	const struct hd_round_run *old = NULL;

	for (uint8_t m = 0; m < c->nmembers; m++) {
		uint32_t held = rounds_job(r, c->id[m])->held;
		if (held == UINT32_MAX || (old && old != &r->old_run[held]))
			return NULL;
		old = &r->old_run[held];
	}
	return old->nmembers == c->nmembers ? old : NULL;
}

static uint32_t type_of(const struct hd_rounds *r, uint32_t device)
{
	uint32_t t = 0;

	while (device >= r->first_device[t + 1])
		t++;
	return t;
}

/* Whether all devices that it had are free, and as many of each type as it needs. */
static bool keeps(const struct hd_rounds *r, const struct hd_round_run *old, const struct combination *c)
{
	if (old->nneeds != c->nneeds || memcmp(old->need, c->need, c->nneeds * sizeof *c->need) != 0)
		return false;
	for (uint32_t d = 0; d < old->ndevices; d++) {
		uint32_t device = r->old_device[old->first + d];
		if (r->taken[device] || !r->usable[device])
			return false;
	}
	return true;
}

static void give(struct hd_rounds *r, struct hd_round_run *run, uint32_t device)
{
	assert(!r->taken[device] && r->usable[device]);
	r->taken[device] = true;
	r->device[r->ndevices_used++] = device;
	run->ndevices++;
}

static void keep(struct hd_rounds *r, const struct pick *pick, const struct hd_round_run *old)
{
	struct hd_round_run run = run_of(r, pick);

	run.kind = HD_RUN_SAME;
	run.first = r->ndevices_used;
	for (uint32_t d = 0; d < old->ndevices; d++)
		give(r, &run, r->old_device[old->first + d]);
	r->run[r->nruns++] = run;
}

/* ---- gavel: type by type, scale by scale downwards; first jobs that stay, then new ones, in the order of
 * picking ---- */

enum { PLACED = 1 };

static enum hd_err place_scale(struct hd_rounds *r, uint32_t type, uint32_t scale, uint8_t *placed,
	uint32_t *next, struct hd_diag *diag)
{
	for (uint32_t p = 0; p < r->npicks; p++) {
		const struct combination *c = &r->cell[r->pick[p].cell];
		const struct hd_round_run *old = c->need[0].type == type &&
			c->need[0].n == scale ? before(r, c) : NULL;
		if (old && keeps(r, old, c)) {
			keep(r, &r->pick[p], old);
			placed[p] = PLACED;
		}
	}
	for (uint32_t p = 0; p < r->npicks; p++) {
		const struct combination *c = &r->cell[r->pick[p].cell];
		if (placed[p] || c->need[0].type != type || c->need[0].n != scale || !c->known)
			continue;
		struct hd_round_run run = run_of(r, &r->pick[p]);
		run.kind = rounds_job(r, c->id[0])->held == UINT32_MAX ? HD_RUN_START : HD_RUN_MOVE;
		run.first = r->ndevices_used;
		for (; *next < r->first_device[type + 1] && run.ndevices < scale; (*next)++)
			if (!r->taken[*next] && r->usable[*next])
				give(r, &run, *next);
		if (run.ndevices < scale)
			return hd_fail(diag, HD_E_BUG,
				"job %llu was picked for %u devices of %s, there are %u",
				(unsigned long long)c->id[0], scale,
				r->type[type].name, run.ndevices);
		r->run[r->nruns++] = run;
	}
	return HD_OK;
}

enum hd_err rounds_place_gavel(struct hd_rounds *r, const uint32_t *types, struct hd_diag *diag)
{
	uint8_t *placed = (uint8_t *)r->list;             /* of room for cells and jobs */
	enum hd_err err = HD_OK;

	memset(placed, 0, r->npicks);
	for (uint32_t k = 0; k < r->ntypes; k++) {
		uint32_t next = r->first_device[types[k]];
		for (uint32_t scale = UINT32_MAX; !err;) {
			uint32_t largest = 0;
			for (uint32_t p = 0; p < r->npicks; p++) {
				const struct hd_need *need = &r->cell[r->pick[p].cell].need[0];
				if (need->type == types[k] && need->n < scale && need->n > largest)
					largest = need->n;
			}
			if (!largest)
				break;
			err = place_scale(r, types[k], scale = largest, placed, &next, diag);
		}
	}
	return err;
}

/* ---- exact ---- */

static bool is_free(const struct hd_rounds *r, uint32_t device) { return r->usable[device] &&
	!r->taken[device] && !r->kept_for[device]; }

/* Of the free devices of a type the n that lie on the fewest hosts, the tightest first, then of the lowest
 * numbers. */
static bool take_free(struct hd_rounds *r, struct hd_round_run *run, uint32_t type, uint32_t n)
{
	uint32_t from = r->first_device[type], to = r->first_device[type + 1];

	while (n) {
		uint32_t best = UINT32_MAX;
		if (r->nhosts == r->first_device[r->ntypes]) {           /* each device its own host */
			while (from < to && !is_free(r, from))
				from++;
			if (from == to)
				return false;
			give(r, run, from);
			n--;
			continue;
		}
		for (uint32_t d = from; d < to; d++)
			r->free_at_host[r->host[d]] = 0;
		for (uint32_t d = from; d < to; d++)
			r->free_at_host[r->host[d]] += is_free(r, d);
		for (uint32_t d = from; d < to; d++) {
			uint32_t here = r->free_at_host[r->host[d]],
				there = best == UINT32_MAX ? 0 : r->free_at_host[r->host[best]];
			if (here && (there < n ? here > there : here >= n && here < there))
				best = d;
		}
		if (best == UINT32_MAX)
			return false;
		for (uint32_t d = from, host = r->host[best]; d < to && n; d++)
			if (r->host[d] == host && is_free(r, d)) {
				give(r, run, d);
				n--;
			}
	}
	return true;
}

/* Devices that a member had, as far as they are free and of a type it needs, are reserved for it: a
 * growing job takes none of a shrinking one. */
static void put_by(struct hd_rounds *r, uint32_t p)
{
	const struct combination *c = &r->cell[r->pick[p].cell];

	for (uint8_t k = 0; k < c->nneeds; k++) {
		uint32_t left = c->need[k].n;
		for (uint8_t m = 0; m < c->nmembers; m++) {
			uint32_t held = rounds_job(r, c->id[m])->held;
			for (uint32_t d = 0; held != UINT32_MAX && d < r->old_run[held].ndevices && left;
				d++) {
				uint32_t device = r->old_device[r->old_run[held].first + d];
				if (type_of(r, device) != c->need[k].type || !is_free(r, device))
					continue;
				r->kept_for[device] = p + 1;
				left--;
			}
		}
	}
}

/* Those devices; how many. */
static uint32_t take_old(struct hd_rounds *r, struct hd_round_run *run, uint32_t p, uint32_t type)
{
	uint32_t got = 0;

	for (uint8_t m = 0; m < run->nmembers; m++) {
		uint32_t held = rounds_job(r, run->id[m])->held;
		for (uint32_t d = 0; held != UINT32_MAX && d < r->old_run[held].ndevices; d++) {
			uint32_t device = r->old_device[r->old_run[held].first + d];
			if (type_of(r, device) != type || r->kept_for[device] != p + 1)
				continue;
			r->kept_for[device] = 0;
			give(r, run, device);
			got++;
		}
	}
	return got;
}

static enum hd_err place_one(struct hd_rounds *r, uint32_t p, struct hd_diag *diag)
{
	struct hd_round_run run = run_of(r, &r->pick[p]);
	uint32_t got = 0;
	bool held = false;

	run.first = r->ndevices_used;
	for (uint8_t m = 0; m < run.nmembers; m++)
		held |= rounds_job(r, run.id[m])->held != UINT32_MAX;
	for (uint8_t k = 0; k < run.nneeds; k++) {
		uint32_t old = held ? take_old(r, &run, p, run.need[k].type) : 0;
		got += old;
		if (!take_free(r, &run, run.need[k].type, run.need[k].n - old))
			return hd_fail(diag, HD_E_BUG,
				"job %llu was picked for %u devices of %s, which are not free",
				(unsigned long long)run.id[0],
				run.need[k].n, r->type[run.need[k].type].name);
	}
	run.kind = got ? HD_RUN_RESIZE : held ? HD_RUN_MOVE : HD_RUN_START;
	r->run[r->nruns++] = run;
	return HD_OK;
}

static uint32_t size_of(const struct combination *c)
{
	uint32_t n = 0;

	for (uint8_t k = 0; k < c->nneeds; k++)
		n += c->need[k].n;
	return n;
}

/* Jobs that stay; then those that had devices, so that they find their own; then the others, largest
 * first. */
enum hd_err rounds_place(struct hd_rounds *r, struct hd_diag *diag)
{
	uint8_t *placed = (uint8_t *)r->list;
	enum hd_err err = HD_OK;

	memset(placed, 0, r->npicks);
	for (uint32_t p = 0; p < r->npicks; p++) {
		const struct combination *c = &r->cell[r->pick[p].cell];
		const struct hd_round_run *old = before(r, c);
		if (old && keeps(r, old, c)) {
			keep(r, &r->pick[p], old);
			placed[p] = PLACED;
		}
	}
	for (uint32_t p = 0; p < r->npicks; p++)
		if (!placed[p])
			put_by(r, p);
	for (int held = 1; held >= 0; held--)
		for (uint32_t size = UINT32_MAX, largest; !err; size = largest) {
			largest = 0;
			for (uint32_t p = 0; p < r->npicks; p++) {
				const struct combination *c = &r->cell[r->pick[p].cell];
				uint32_t n = size_of(c);
				bool had = rounds_job(r, c->id[0])->held != UINT32_MAX ||
					(c->nmembers == 2 && rounds_job(r, c->id[1])->held != UINT32_MAX);
				if (placed[p] || had != held)
					continue;
				if (n == size) {
					if ((err = place_one(r, p, diag)))
						return err;
					placed[p] = PLACED;
				} else if (n < size && n > largest) {
					largest = n;
				}
			}
			if (!largest)
				break;
		}
	return err;
}
