#include "protocol/zones.h"

#include <assert.h>
#include <string.h>

#include "pipeline/assign.h"
#include "pipeline/placement.h"

static const uint64_t most_penalty = UINT64_C(1) << 51;   /* assign.h */

/* Ranks that members can have are the devices of placement.h, members in order. */
struct parting {
	const struct hd_rank_zones *zones;
	const struct hd_lacks *lacks;
	struct hd_placed_device *device;          /* [ndevices] */
	uint32_t *member;                         /* [ndevices] of each */
	uint32_t ndevices;
	struct hd_placement_ask ask;
};

/* The last numbers come first, so that of zones as large the first member's loses its places last. */
uint32_t hd_zones_number(const char *const *name, uint32_t n, uint32_t *zone)
{
	uint32_t nzones = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < i && strcmp(name[k], name[i]) != 0)
			k++;
		zone[i] = k < i ? zone[k] : nzones++;
	}
	for (uint32_t i = 0; i < n; i++)
		zone[i] = nzones - 1 - zone[i];
	return nzones;
}

static bool helps(const struct hd_view *view, const struct hd_rank_zones *zones, bool shadows)
{
	const struct hd_view_shape *s = &view->shape;

	return zones->nzones > 1 && s->width > 1 && !hd_view_has_copies(s) && hd_view_groups(s) == 1 &&
		(shadows || hd_view_pipes(view) > 1);
}

uint32_t hd_ranks_together(const struct hd_view *view, const struct hd_rank_zones *zones)
{
	const uint32_t width = view->shape.width;
	uint32_t n = 0;

	for (uint32_t r = 0; r < view->nranks && width > 1; r++) {
		const uint32_t next = r - r % width + (r % width + 1) % width;
		n += zones->zone[hd_view_index(view, view->rank[r].worker)] ==
			zones->zone[hd_view_index(view, view->rank[next].worker)];
	}
	return n;
}

/* Rule 5: of each member, and of all. */
static uint32_t count_devices(const struct hd_rank_zones *zones, const struct hd_view *view, uint32_t *count)
{
	uint32_t had[HD_MAX_MEMBERS] = { 0 };

	for (uint32_t r = 0; r < view->nranks; r++)
		had[hd_view_index(view, view->rank[r].worker)]++;
	for (uint32_t most = view->nranks;; most--) {
		uint32_t n = 0;
		for (uint32_t m = 0; m < zones->n; m++) {
			count[m] = zones->nranks[m] < most ? zones->nranks[m] : most;
			count[m] = count[m] > had[m] ? count[m] : had[m];
			n += count[m];
		}
		if (n <= HD_PLACED_DEVICES || !most)
			return n;
	}
}

static enum hd_err list_devices(struct parting *p, const struct hd_view *view, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t count[HD_MAX_MEMBERS];

	p->ndevices = count_devices(p->zones, view, count);
	p->device = hd_arena_take(arena, p->ndevices, sizeof *p->device);
	p->member = hd_arena_take(arena, p->ndevices, sizeof *p->member);
	if (!p->device || !p->member)
		return hd_fail(diag, HD_E_NOMEM, "no memory to place %u ranks", p->ndevices);
	for (uint32_t m = 0, i = 0; m < p->zones->n; m++)
		for (uint32_t k = 0; k < count[m]; k++, i++) {
			p->device[i] = (struct hd_placed_device){ .zone = p->zones->zone[m] };
			p->member[i] = m;
		}
	p->ask = (struct hd_placement_ask){ .device = p->device, .ndevices = p->ndevices,
		.npipelines = hd_view_pipes(view), .nstages = view->shape.width,
		.nzones = p->zones->nzones };
	return HD_OK;
}

/* The devices of a view's ranks: of each member the first ones that are free. */
static void devices_of(const struct parting *p, const struct hd_view *view, uint32_t *device)
{
	uint32_t had[HD_MAX_MEMBERS] = { 0 };

	for (uint32_t r = 0; r < view->nranks; r++) {
		const uint32_t m = hd_view_index(view, view->rank[r].worker);
		uint32_t i = 0;
		while (p->member[i] != m)
			i++;
		device[r] = i + had[m]++;
	}
}

/* Rule 4. */
static bool has_first(const struct parting *p, const uint32_t *device, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		if (p->member[device[r]] == p->member[0])
			return true;
	return false;
}

/* Bytes in units of 2^shift, rounded up: to lack none stays better than to lack some. */
static uint64_t units(uint64_t bytes, uint32_t shift)
{
	return (bytes >> shift) + ((bytes & ((UINT64_C(1) << shift) - 1)) != 0);
}

/* So that no penalty of settle() is beyond the largest: (2n + 2) times the bytes of all n ranks. */
static uint32_t unit_of(const struct parting *p, const struct hd_view *view)
{
	const uint64_t n = view->nranks, bound = most_penalty / (2 * n + 2) / n;
	uint32_t shift = 0;

	for (uint32_t m = 0; m < p->zones->n; m++)
		for (uint32_t w = 0; w < view->shape.width; w++)
			while (units(p->lacks->at[m][w], shift) >= bound)
				shift++;
	return shift;
}

/* Rule 3, at the end: in the zones of `like`, where the fewest bytes move. A device of another zone costs
 * more than all bytes do together, and all others more than the first one, which so has a rank. */
static enum hd_err settle(const struct parting *p, const struct hd_view *view, uint32_t *like,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = view->nranks, shift = unit_of(p, view);
	int64_t *penalty = hd_arena_take(arena, (size_t)n * p->ndevices, sizeof *penalty), all = 1;
	struct hd_device_state *state = hd_arena_take(arena, p->ndevices, sizeof *state);
	struct hd_layer_range *none = hd_arena_take(arena, n, sizeof *none);
	struct hd_assignment got;

	if (!penalty || !state || !none)
		return hd_fail(diag, HD_E_NOMEM, "no memory to place %u ranks", p->ndevices);
	for (uint32_t r = 0; r < n; r++) {
		int64_t most = 0;
		for (uint32_t i = 0; i < p->ndevices; i++) {
			const uint64_t bytes = p->lacks->at[p->member[i]][r % view->shape.width];
			const int64_t lacks = (int64_t)units(bytes, shift);
			penalty[(size_t)r * p->ndevices + i] = lacks;
			most = lacks > most ? lacks : most;
		}
		all += most;
	}
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t i = 0; i < p->ndevices; i++)
			penalty[(size_t)r * p->ndevices + i] += (i ? all : 0) +
				(p->device[i].zone != p->device[like[r]].zone ? 2 * n * all : 0);
	const struct hd_assign_ask ask = { .device = state, .ndevices = p->ndevices, .place = none,
		.nplaces = n, .penalty = penalty };
	enum hd_err err = hd_assign_devices(&got, &ask, arena, diag);
	if (!err)
		memcpy(like, got.device, n * sizeof *like);
	return err;
}

enum hd_err hd_ranks_part(struct hd_view *view, const struct hd_rank_zones *zones,
	const struct hd_lacks *lacks, bool shadows, struct hd_arena *arena, struct hd_diag *diag)
{
	struct parting p = { .zones = zones, .lacks = lacks };
	struct hd_placement had, best, near;
	uint32_t device[HD_VIEW_RANKS];

	assert(zones->n == view->nmembers);
	if (!helps(view, zones, shadows))
		return HD_OK;
	enum hd_err err = list_devices(&p, view, arena, diag);
	if (err)
		return err;
	devices_of(&p, view, device);
	err = hd_judge_placement(&had, &p.ask, device, arena, diag);
	if (!err)
		err = hd_place_devices(&best, &p.ask, arena, diag);
	if (err || had.weighted <= best.weighted)
		return err;
	p.ask.from = device;
	err = hd_place_devices(&near, &p.ask, arena, diag);
	const bool reached = !err && near.weighted <= best.weighted &&
		has_first(&p, near.device, view->nranks);
	if (reached)
		memcpy(device, near.device, view->nranks * sizeof *device);
	else if (!err)
		memcpy(device, best.device, view->nranks * sizeof *device);
	if (!err && !reached)
		err = settle(&p, view, device, arena, diag);
	for (uint32_t r = 0; r < view->nranks && !err && has_first(&p, device, view->nranks); r++)
		view->rank[r].worker = view->member[p.member[device[r]]];
	return err;
}
