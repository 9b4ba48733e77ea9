#include "pipeline/assign.h"

#include <stdbool.h>
#include <string.h>

#define NOTHING UINT32_MAX
/* Of the bytes of all layers, and of a penalty: 1,024 times both is a sum. */
static const int64_t most = INT64_C(1) << 51;

/* (The scheduler has one in doubles, with the ties of a published solver.) Square: rows beyond the places are
 * devices that wait, at no cost. */
struct assigner {
	uint32_t n;
	int64_t *cost;                            /* [n * n] row, column */
	int64_t *row, *column;                    /* potentials */
	uint32_t *of_column, *of_row;             /* the match */
	int64_t *slack;
	uint32_t *from;
	bool *seen;
};

static int64_t overlap(const int64_t *upto, struct hd_layer_range a, struct hd_layer_range b)
{
	uint32_t first = a.first > b.first ? a.first : b.first, end = a.end < b.end ? a.end : b.end;

	return first < end ? upto[end] - upto[first] : 0;
}

/* Layers that are in both of a device's ranges count once. */
static int64_t missing(const int64_t *upto, struct hd_layer_range place, const struct hd_device_state *d)
{
	const struct hd_layer_range both = { d->own.first > d->shadow.first ? d->own.first : d->shadow.first,
		d->own.end < d->shadow.end ? d->own.end : d->shadow.end };
	int64_t here = overlap(upto, place, d->own) + overlap(upto, place, d->shadow);

	return upto[place.end] - upto[place.first] - here +
		(both.first < both.end ? overlap(upto, place, both) : 0);
}

/* ---- rows one after the other, along the shortest path of slack */

static void match_row(struct assigner *a, uint32_t row)
{
	uint32_t at = a->n;                       /* column n stands for the new row */

	for (uint32_t c = 0; c <= a->n; c++) {
		a->slack[c] = INT64_MAX;
		a->seen[c] = false;
	}
	a->of_column[a->n] = row;
	do {
		const uint32_t r = a->of_column[at];
		int64_t least = INT64_MAX;
		uint32_t next = 0;
		a->seen[at] = true;
		for (uint32_t c = 0; c < a->n; c++) {
			if (a->seen[c])
				continue;
			const int64_t s = a->cost[(size_t)r * a->n + c] - a->row[r] - a->column[c];
			if (s < a->slack[c]) {
				a->slack[c] = s;
				a->from[c] = at;
			}
			if (a->slack[c] < least) {
				least = a->slack[c];
				next = c;
			}
		}
		for (uint32_t c = 0; c <= a->n; c++) {
			if (a->seen[c]) {
				a->row[a->of_column[c]] += least;
				a->column[c] -= least;
			} else {
				a->slack[c] -= least;
			}
		}
		at = next;
	} while (a->of_column[at] != NOTHING);
	for (uint32_t before; at != a->n; at = before) {
		before = a->from[at];
		a->of_column[at] = a->of_column[before];
	}
}

/* ---- rule 2: every cheapest assignment uses pairs without slack alone */

static bool is_tight(const struct assigner *a, uint32_t r, uint32_t c)
{
	return a->cost[(size_t)r * a->n + c] == a->row[r] + a->column[c];
}

/* Another column for a row, over rows from `fixed` on and columns not seen. */
static bool move_row(struct assigner *a, uint32_t r, uint32_t fixed)
{
	for (uint32_t c = 0; c < a->n; c++) {
		if (a->seen[c] || !is_tight(a, r, c))
			continue;
		a->seen[c] = true;
		const uint32_t other = a->of_column[c];
		if (other != NOTHING && (other < fixed || !move_row(a, other, fixed)))
			continue;
		a->of_column[c] = r;
		a->of_row[r] = c;
		return true;
	}
	return false;
}

/* Gives row r column c if all other rows can still be matched. */
static bool give(struct assigner *a, uint32_t r, uint32_t c)
{
	const uint32_t had = a->of_row[r], other = a->of_column[c];

	memset(a->seen, 0, (size_t)a->n + 1);
	a->seen[c] = true;
	a->of_column[had] = NOTHING;
	a->of_column[c] = r;
	a->of_row[r] = c;
	if (move_row(a, other, r + 1))
		return true;
	a->of_column[had] = r;
	a->of_column[c] = other;
	a->of_row[r] = had;
	return false;
}

static void prefer_lower(struct assigner *a, uint32_t nplaces)
{
	for (uint32_t r = 0; r < nplaces; r++)
		for (uint32_t c = 0; c < a->of_row[r]; c++)
			if (is_tight(a, r, c) && a->of_column[c] > r && give(a, r, c))
				break;
}

/* ---- all of it */

static enum hd_err check(const struct hd_assign_ask *ask, struct hd_diag *diag)
{
	if (ask->nplaces == 0 || ask->nplaces > ask->ndevices || ask->ndevices > HD_ASSIGNED_DEVICES)
		return hd_fail(diag, HD_E_INVAL,
			"%u places for %u devices: there are 1 or more, devices for all, and %d at most",
			ask->nplaces, ask->ndevices, HD_ASSIGNED_DEVICES);
	for (uint32_t k = 0; k < ask->nplaces; k++)
		if (ask->place[k].first > ask->place[k].end || ask->place[k].end > ask->nlayers)
			return hd_fail(diag, HD_E_INVAL, "place %u wants layers %u to %u of %u", k,
				ask->place[k].first, ask->place[k].end, ask->nlayers);
	for (uint32_t k = 0; k < ask->ndevices; k++)
		if (ask->device[k].own.end > ask->nlayers || ask->device[k].shadow.end > ask->nlayers)
			return hd_fail(diag, HD_E_INVAL, "device %u holds layers that do not exist: there "
				"are %u",
				k, ask->nlayers);
	return HD_OK;
}

static enum hd_err sum_layers(const struct hd_assign_ask *ask, int64_t *upto, struct hd_diag *diag)
{
	upto[0] = 0;
	for (uint32_t k = 0; k < ask->nlayers; k++) {
		if (ask->bytes[k] < 0 || ask->bytes[k] > most - upto[k])
			return hd_fail(diag, HD_E_INVAL,
				"layer %u: bytes are 0 or more, and all together 2^51 at most", k);
		upto[k + 1] = upto[k] + ask->bytes[k];
	}
	return HD_OK;
}

static enum hd_err fill(struct assigner *a, const struct hd_assign_ask *ask, const int64_t *upto,
	struct hd_diag *diag)
{
	for (uint32_t r = 0; r < ask->nplaces; r++)
		for (uint32_t c = 0; c < a->n; c++) {
			const int64_t extra = ask->penalty ? ask->penalty[(size_t)r * a->n + c] : 0;
			if (extra < 0 || extra > most)
				return hd_fail(diag, HD_E_INVAL,
					"place %u, device %u: a penalty is 0 or more, and 2^51 at most", r,
					c);
			a->cost[(size_t)r * a->n + c] = missing(upto, ask->place[r], &ask->device[c]) + extra;
		}
	return HD_OK;
}

static bool take(struct assigner *a, struct hd_arena *arena)
{
	const size_t n = (size_t)a->n + 1;

	a->cost = hd_arena_take(arena, n * n, sizeof *a->cost);
	a->row = hd_arena_take(arena, n, sizeof *a->row);
	a->column = hd_arena_take(arena, n, sizeof *a->column);
	a->of_column = hd_arena_take(arena, n, sizeof *a->of_column);
	a->of_row = hd_arena_take(arena, n, sizeof *a->of_row);
	a->slack = hd_arena_take(arena, n, sizeof *a->slack);
	a->from = hd_arena_take(arena, n, sizeof *a->from);
	a->seen = hd_arena_take(arena, n, sizeof *a->seen);
	return a->cost && a->row && a->column && a->of_column && a->of_row && a->slack && a->from && a->seen;
}

enum hd_err hd_assign_devices(struct hd_assignment *out, const struct hd_assign_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct assigner a = { .n = ask->ndevices };
	struct hd_assignment o = { 0 };
	enum hd_err err = check(ask, diag);

	if (err)
		return err;
	int64_t *upto = hd_arena_take(arena, (size_t)ask->nlayers + 1, sizeof *upto);
	o.device = hd_arena_take(arena, ask->nplaces, sizeof *o.device);
	if (!upto || !o.device || !take(&a, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to assign %u devices", ask->ndevices);
	err = sum_layers(ask, upto, diag);
	err = err ? err : fill(&a, ask, upto, diag);
	if (err)
		return err;
	for (uint32_t c = 0; c <= a.n; c++)
		a.of_column[c] = NOTHING;
	for (uint32_t r = 0; r < a.n; r++)
		match_row(&a, r);
	for (uint32_t c = 0; c < a.n; c++)
		a.of_row[a.of_column[c]] = c;
	prefer_lower(&a, ask->nplaces);
	for (uint32_t r = 0; r < ask->nplaces; r++) {
		o.device[r] = a.of_row[r];
		o.penalty += ask->penalty ? ask->penalty[(size_t)r * a.n + a.of_row[r]] : 0;
		o.bytes += missing(upto, ask->place[r], &ask->device[a.of_row[r]]);
	}
	*out = o;
	return HD_OK;
}
