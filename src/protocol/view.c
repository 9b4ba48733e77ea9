#include "protocol/view.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"

uint32_t hd_view_index(const struct hd_view *view, uint32_t worker)
{
	for (uint32_t i = 0; i < view->nmembers; i++)
		if (view->member[i] == worker)
			return i;
	return HD_NOBODY;
}

uint32_t hd_view_writer(const struct hd_view *view)
{
	uint32_t first = view->nmembers ? view->member[0] : HD_NOBODY;

	for (uint32_t r = 0; r < view->nranks && view->shape.nstages; r++)
		first = r && first < view->rank[r].worker ? first : view->rank[r].worker;
	return hd_is_remote(first) ? HD_NOBODY : first;
}

uint64_t hd_bucket_chain(uint32_t bucket, uint32_t nbuckets, uint32_t nmembers, uint32_t copies)
{
	uint32_t owner = hd_bucket_owner(bucket, nbuckets, nmembers);
	uint64_t chain = 0;

	assert(nmembers >= 1 && nmembers <= HD_MAX_MEMBERS && bucket < nbuckets && owner < nmembers);
	for (uint32_t i = 0; i < copies && i < nmembers; i++)
		chain |= UINT64_C(1) << (owner + i) % nmembers;
	return chain;
}

/* ---- copies of stages: rule 13 */

uint32_t hd_view_copies(const struct hd_view_shape *shape, uint32_t stage)
{
	if (!hd_view_has_copies(shape))
		return 1;
	return (stage + 1 < shape->nstages ? shape->place[stage + 1] : shape->width) - shape->place[stage];
}

static uint32_t common_divisor(uint32_t a, uint32_t b) { return b ? common_divisor(b, a % b) : a; }

uint32_t hd_view_lanes(const struct hd_view_shape *shape)
{
	uint32_t lanes = 1;

	for (uint32_t s = 0; s < shape->nstages && hd_view_has_copies(shape) && lanes <= HD_VIEW_RANKS; s++)
		lanes *= hd_view_copies(shape, s) / common_divisor(lanes, hd_view_copies(shape, s));
	return lanes;
}

uint32_t hd_view_rank(const struct hd_view *view, uint32_t lane, uint32_t stage)
{
	const struct hd_view_shape *s = &view->shape;

	if (!s->nstages)
		return lane;
	const uint32_t lanes = hd_view_lanes(s);
	return lane / lanes * s->width + s->place[stage] + lane % lanes * hd_view_copies(s, stage) / lanes;
}

uint32_t hd_view_lane_nvns(const struct hd_view *view, uint32_t lane)
{
	const uint32_t first = hd_view_rank(view, lane, 0), all = view->rank[first].nvns;
	const struct hd_view_shape *s = &view->shape;

	if (!hd_view_has_copies(s))
		return all;
	const uint32_t each = hd_view_lanes(s) / hd_view_copies(s, 0);      /* of the first rank */
	return all / each + (lane % each < all % each);
}

/* First copies count what the lanes of their pipeline are dealt. */
static bool is_dealt(const struct hd_view *view, uint32_t pipe)
{
	const struct hd_view_shape *s = &view->shape;
	const uint32_t lanes = hd_view_lanes(s), copies = hd_view_copies(s, 0), each = lanes / copies;
	uint64_t all = 0, before = 0;

	for (uint32_t q = 0; q < copies; q++)
		all += view->rank[pipe * s->width + q].nvns;
	for (uint32_t q = 0; q < copies; q++) {
		const uint64_t more = all % lanes, upto = (q + 1) * each,
			end = upto * (all / lanes) + (upto < more ? upto : more);
		if (view->rank[pipe * s->width + q].nvns != end - before)
			return false;
		before = end;
	}
	return true;
}

/* Places ascend, and a pipeline has no more lanes than a view has ranks. */
static enum hd_err verify_copies(const struct hd_view *view, struct hd_diag *diag)
{
	const struct hd_view_shape *s = &view->shape;

	if (s->nstages < 2 || s->width > HD_STAGE_BITS || s->groups)
		return hd_fail(diag, HD_E_BADPLAN,
			"view %u: %u stages on %u ranks in groups of %u: stages have copies from 2 stages up "
			"to %d ranks, and no groups", view->epoch, s->nstages, s->width, s->groups,
			HD_STAGE_BITS);
	for (uint32_t i = 0; i < s->nstages; i++)
		if (i ? s->place[i] <= s->place[i - 1] || s->place[i] >= s->width : s->place[0])
			return hd_fail(diag, HD_E_BADPLAN, "view %u: stage %u cannot be at rank %u of %u",
				view->epoch, i, s->place[i], s->width);
	if (hd_view_lanes(s) > HD_VIEW_RANKS)
		return hd_fail(diag, HD_E_BADPLAN,
			"view %u: the copies of its stages make more than %d lanes", view->epoch,
			HD_VIEW_RANKS);
	for (uint32_t k = 0; k < view->nranks / s->width; k++)
		if (!is_dealt(view, k))
			return hd_fail(diag, HD_E_BADPLAN,
				"view %u: the virtual nodes of pipeline %u are not dealt to its %u lanes",
				view->epoch, k, hd_view_lanes(s));
	return HD_OK;
}

/* Rules 6 and 7. */
static enum hd_err verify_shape(const struct hd_view *view, struct hd_diag *diag)
{
	const struct hd_view_shape *s = &view->shape;
	uint64_t filled = 0;

	if (!s->nstages && !s->width)
		return HD_OK;
	if (s->nstages < 1 || s->nstages > HD_STAGE_BITS || s->width < 1 || view->nranks % s->width)
		return hd_fail(diag, HD_E_BADPLAN,
			"view %u: %u ranks are no pipelines of %u ranks with %u stages; 1 to %d stages",
			view->epoch, view->nranks, s->width, s->nstages, HD_STAGE_BITS);
	if (s->each == 1 || s->groups == 1 || s->width % hd_view_groups(s) || s->nstages % hd_view_groups(s))
		return hd_fail(diag, HD_E_BADPLAN,
			"view %u: %u stages on %u ranks are not shared by %u ranks of %u devices",
			view->epoch, s->nstages, s->width, s->groups, s->each);
	enum hd_err err = hd_view_has_copies(s) ? verify_copies(view, diag) : HD_OK;
	if (err)
		return err;
	for (uint32_t i = 0; i < s->nstages; i++) {
		if (s->place[i] >= s->width || (!i && s->place[0]))
			return hd_fail(diag, HD_E_BADPLAN, "view %u: stage %u cannot be at rank %u of %u",
				view->epoch, i, s->place[i], s->width);
		filled |= UINT64_C(1) << s->place[i];
	}
	for (uint32_t i = 0; i < s->nstages && hd_view_nfirst(s); i++)
		if (!i ? s->first[0] != 0 : i % hd_view_groups(s) ? s->first[i] != s->first[i - 1] :
			s->first[i] <= s->first[i - 1])
			return hd_fail(diag, HD_E_BADPLAN, "view %u: stage %u cannot begin with node %u",
				view->epoch, i, s->first[i]);
	if (!hd_view_has_copies(s) && filled != hd_members_all(s->width))
		return hd_fail(diag, HD_E_BADPLAN, "view %u: a rank of its pipelines has no stage",
			view->epoch);
	for (uint32_t r = 0; r < view->nranks; r++)
		if (r % s->width >= hd_view_copies(s, 0) && view->rank[r].nvns)
			return hd_fail(diag, HD_E_BADPLAN,
				"view %u: rank %u is not the first of its pipeline, and has %u virtual nodes",
				view->epoch, r, view->rank[r].nvns);
	return HD_OK;
}

/* Rule 12. */
static enum hd_err verify_doubled(const struct hd_view *view, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < HD_VIEW_RANKS; r++) {
		if (!hd_view_doubled(view, r))
			continue;
		if (r >= view->nranks || view->shape.nstages < 2 ||
			view->shape.nstages != view->shape.width ||
			view->rank[r].worker != view->rank[hd_view_before(view, r)].worker ||
			hd_view_doubled(view, hd_view_before(view, r)))
			return hd_fail(diag, HD_E_BADPLAN,
				"view %u: rank %u is not doubled by the one before it", view->epoch, r);
	}
	return HD_OK;
}

static enum hd_err verify_followers(const struct hd_view *view, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < view->nfollows; i++) {
		const struct hd_vrank *f = &view->rank[view->nranks + i];
		bool good = hd_view_has(view, f->worker) && f->nvns & HD_FOLLOWS &&
			(f->nvns & ~HD_FOLLOWS) < view->shape.nstages && (!i || f[-1].worker < f->worker);
		for (uint32_t r = 0; r < view->nranks; r++)
			good &= view->rank[r].worker != f->worker;
		if (!good)
			return hd_fail(diag, HD_E_BADPLAN,
				"view %u: worker %u does not follow stage %u: it is no member without a "
				"rank, or named twice, or there are %u stages", view->epoch, f->worker,
				f->nvns & ~HD_FOLLOWS, view->shape.nstages);
	}
	return HD_OK;
}

enum hd_err hd_view_verify(const struct hd_view *view, uint32_t nvns, struct hd_diag *diag)
{
	uint64_t total = 0;

	if (view->nmembers < 1 || view->nmembers > HD_MAX_MEMBERS || view->nranks < 1 ||
		view->nranks > HD_VIEW_RANKS || view->nfollows > HD_VIEW_RANKS - view->nranks)
		return hd_fail(diag, HD_E_BADPLAN,
			"view %u has %u members with %u devices; at most %d with %d", view->epoch,
			view->nmembers,
			view->nranks, HD_MAX_MEMBERS, HD_VIEW_RANKS);
	for (uint32_t i = 1; i < view->nmembers; i++)
		if (view->member[i - 1] >= view->member[i])
			return hd_fail(diag, HD_E_BADPLAN, "view %u: member %u stands before %u", view->epoch,
				view->member[i - 1], view->member[i]);
	for (uint32_t r = 0; r < view->nranks; r++) {
		if (!hd_view_has(view, view->rank[r].worker))
			return hd_fail(diag, HD_E_BADPLAN,
				"view %u: rank %u is of worker %u, which is no member", view->epoch, r,
				view->rank[r].worker);
		total += view->rank[r].nvns;
	}
	enum hd_err err = verify_shape(view, diag);
	err = err ? err : verify_doubled(view, diag);
	err = err ? err : verify_followers(view, diag);
	if (err)
		return err;
	if (total != nvns)
		return hd_fail(diag, HD_E_BADPLAN, "view %u maps %llu virtual nodes of %u", view->epoch,
			(unsigned long long)total, nvns);
	return HD_OK;
}

void hd_view_even(struct hd_view *view, uint32_t epoch, const uint32_t *member, const uint32_t *ndevices,
	uint32_t n, uint32_t nvns)
{
	assert(n >= 1 && n <= HD_MAX_MEMBERS);
	*view = (struct hd_view){ .epoch = epoch, .nmembers = n };
	for (uint32_t i = 0; i < n; i++) {
		view->member[i] = member[i];
		/* the first device of each later member always finds room */
		for (uint32_t d = 0; d < (ndevices[i] ? ndevices[i] : 1) &&
			view->nranks + (n - 1 - i) < HD_VIEW_RANKS; d++)
			view->rank[view->nranks++].worker = member[i];
	}
	for (uint32_t r = 0; r < view->nranks; r++)
		view->rank[r].nvns = nvns / view->nranks + (r < nvns % view->nranks);
}

void hd_view_shape(struct hd_view_shape *shape, uint32_t width, uint32_t chunks, bool vee)
{
	assert(width >= 1 && chunks >= 1 && width * chunks <= HD_STAGE_BITS);
	*shape = (struct hd_view_shape){ 0 };
	if (width * chunks < 2)
		return;
	shape->nstages = width * chunks;
	shape->width = width;
	for (uint32_t s = 0; s < shape->nstages; s++) {
		bool back = vee && s / width % 2;
		shape->place[s] = (uint8_t)(back ? width - 1 - s % width : s % width);
	}
}

void hd_view_shape_read(struct hd_view_shape *shape, uint32_t width, uint32_t schedule, uint32_t way,
	const uint32_t *place, uint32_t nplace, const uint32_t *first, uint32_t nfirst)
{
	const bool fits = nplace <= HD_STAGE_BITS && (!nfirst || nfirst == nplace) && way >> 17 == 0;

	*shape = (struct hd_view_shape){ .nstages = fits ? nplace : HD_STAGE_BITS + 1, .width = width,
		.schedule = schedule, .each = (uint8_t)way, .groups = (uint8_t)(way >> 8),
		.again = way >> 16 & 1 };
	for (uint32_t i = 0; fits && i < nplace; i++) {
		shape->place[i] = place[i] < HD_STAGE_BITS ? (uint8_t)place[i] : HD_STAGE_BITS;
		shape->first[i] = nfirst ? first[i] : 0;
	}
}

bool hd_view_staged(struct hd_view *view, uint32_t epoch, const uint32_t *member, const uint32_t *nranks,
	uint32_t n, uint32_t nvns, const struct hd_view_shape *shape, uint32_t pipes)
{
	struct hd_view made = { .epoch = epoch, .nmembers = n, .shape = *shape };
	uint32_t all = 0;

	assert(n >= 1 && n <= HD_MAX_MEMBERS && shape->nstages >= 1);
	for (uint32_t i = 0; i < n; i++) {
		made.member[i] = member[i];
		all += nranks[i];
	}
	uint32_t d = all / shape->width < pipes ? all / shape->width : pipes;
	const uint32_t lanes = hd_view_lanes(shape);
	d = d < nvns / lanes ? d : nvns / lanes;
	d = d < HD_VIEW_RANKS / shape->width ? d : HD_VIEW_RANKS / shape->width;
	if (!d)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < nranks[i] && made.nranks < d * shape->width; k++)
			made.rank[made.nranks++].worker = member[i];
	for (uint32_t k = 0; k < d; k++) {
		const uint32_t part = nvns / d + (k < nvns % d);
		for (uint32_t l = 0; l < lanes; l++)
			made.rank[hd_view_rank(&made, k * lanes + l, 0)].nvns += part / lanes +
				(l < part % lanes);
	}
	*view = made;
	return true;
}

void hd_view_deal_pipes(struct hd_view *view, const uint32_t *share)
{
	const uint32_t npipes = hd_view_pipes(view);

	assert(view->shape.nstages && !hd_view_has_copies(&view->shape));
	for (uint32_t k = 0; k < npipes; k++)
		view->rank[k * view->shape.width].nvns = share[k];
}

bool hd_view_is_doubled(const struct hd_view *view)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < HD_VIEW_RANKS / 64; i++)
		any |= view->doubled[i];
	return any != 0;
}

uint32_t hd_view_before(const struct hd_view *view, uint32_t rank)
{
	const uint32_t width = view->shape.width;

	return rank - rank % width + (rank % width + width - 1) % width;
}

/* The first of its stages. */
static uint32_t stage_at(const struct hd_view *view, uint32_t rank)
{
	const uint32_t place = rank % view->shape.width;
	uint32_t s = 0;

	while (view->shape.place[s] > place ||
		view->shape.place[s] + hd_view_copies(&view->shape, s) <= place)
		s++;
	return s;
}

bool hd_view_without(struct hd_view *rest, const struct hd_view *view, const uint32_t *member, uint32_t n)
{
	struct hd_view made = { .nmembers = n, .nranks = view->nranks, .shape = view->shape };

	if (view->shape.nstages < 2 || view->shape.nstages != view->shape.width || hd_view_is_doubled(view))
		return false;
	memcpy(made.member, member, n * sizeof *member);
	memcpy(made.rank, view->rank, view->nranks * sizeof *made.rank);
	for (uint32_t r = view->nranks; r < hd_view_named(view); r++)
		if (hd_view_has(&made, view->rank[r].worker))
			made.rank[made.nranks + made.nfollows++] = view->rank[r];
	for (uint32_t r = 0; r < view->nranks; r++) {
		const uint32_t heir = view->rank[hd_view_before(view, r)].worker;
		if (hd_view_has(&made, view->rank[r].worker))
			continue;
		if (!hd_view_has(&made, heir) || hd_view_stages(view, heir) >> stage_at(view, r) & 1)
			return false;
		made.rank[r].worker = heir;
		made.doubled[r / 64] |= UINT64_C(1) << r % 64;
	}
	*rest = made;
	return true;
}

uint64_t hd_view_holders(const struct hd_view *view, uint32_t stage)
{
	uint64_t members = 0;

	for (uint32_t k = 0; k < hd_view_nlanes(view); k++) {
		uint32_t m = hd_view_index(view, view->rank[hd_view_rank(view, k, stage)].worker);
		assert(m != HD_NOBODY);
		members |= UINT64_C(1) << m;
	}
	return members;
}

uint64_t hd_view_stages(const struct hd_view *view, uint32_t worker)
{
	uint64_t stages = 0;

	for (uint32_t s = 0; s < hd_view_nstages(view); s++)
		for (uint32_t k = 0; k < hd_view_nlanes(view); k++)
			if (view->rank[hd_view_rank(view, k, s)].worker == worker)
				stages |= UINT64_C(1) << s;
	return stages;
}

/* The rank with the shadow of a stage of a pipeline; HD_NOBODY: there is none. */
static uint32_t shadow_rank(const struct hd_view *view, uint32_t pipe, uint32_t stage)
{
	const uint32_t width = view->shape.width, place = view->shape.place[stage],
		worker = view->rank[pipe * width + place].worker;

	/* rules 12 and 13 */
	if (hd_view_has_copies(&view->shape) || hd_view_doubled(view, pipe * width + place))
		return HD_NOBODY;
	for (uint32_t back = 1; back < width; back++) {
		const uint32_t r = pipe * width + (place + width - back) % width;
		if (hd_view_doubled(view, r))
			return HD_NOBODY;
		if (view->rank[r].worker != worker)
			return r;
	}
	return HD_NOBODY;
}

uint64_t hd_view_shadows(const struct hd_view *view, uint32_t stage)
{
	uint64_t members = 0;

	for (uint32_t k = 0; view->shape.nstages && k < hd_view_pipes(view); k++) {
		const uint32_t r = shadow_rank(view, k, stage);
		if (r != HD_NOBODY)
			members |= UINT64_C(1) << hd_view_index(view, view->rank[r].worker);
	}
	return members;
}

uint64_t hd_view_shadowed(const struct hd_view *view, uint32_t worker)
{
	const uint32_t m = hd_view_index(view, worker);
	uint64_t stages = 0;

	for (uint32_t s = 0; m != HD_NOBODY && s < hd_view_nstages(view); s++)
		stages |= (hd_view_shadows(view, s) >> m & 1) << s;
	return stages;
}

/* ---- followers: rule 14 ---- */

static const struct hd_vrank *follower(const struct hd_view *view, uint32_t i)
{
	return &view->rank[view->nranks + i];
}

uint32_t hd_view_follows(const struct hd_view *view, uint32_t worker)
{
	for (uint32_t i = 0; i < view->nfollows; i++)
		if (follower(view, i)->worker == worker)
			return follower(view, i)->nvns & ~HD_FOLLOWS;
	return HD_NOBODY;
}

void hd_view_take_ranks(struct hd_view *view, const struct hd_vrank *rank, uint32_t n)
{
	assert(n <= HD_VIEW_RANKS);
	for (uint32_t i = 0; i < n; i++)
		view->rank[i] = rank[i];
	view->nranks = n;
	while (view->nranks && view->rank[view->nranks - 1].nvns & HD_FOLLOWS)
		view->nranks--;
	view->nfollows = n - view->nranks;
}

/* The members that have a copy of each stage without running it. */
static void find_spares(uint64_t spare[HD_STAGE_BITS], const struct hd_view *view,
	const struct hd_stage_buckets *buckets)
{
	for (uint32_t s = 0; s < view->shape.nstages; s++)
		spare[s] = buckets->shadows ? hd_view_shadows(view, s) : 0;
	for (uint32_t i = 0; i < view->nfollows; i++)
		spare[follower(view, i)->nvns & ~HD_FOLLOWS] |= UINT64_C(1) << hd_view_index(view,
			follower(view, i)->worker);
}

uint64_t hd_view_keepers(const struct hd_view *view, const struct hd_stage_buckets *buckets, uint32_t stage)
{
	uint64_t spare[HD_STAGE_BITS];

	find_spares(spare, view, buckets);
	return hd_view_holders(view, stage) | spare[stage];
}

uint64_t hd_view_kept(const struct hd_view *view, const struct hd_stage_buckets *buckets, uint32_t worker)
{
	const uint32_t m = hd_view_index(view, worker);
	uint64_t stages = hd_view_stages(view, worker), spare[HD_STAGE_BITS];

	if (m == HD_NOBODY || !view->shape.nstages)
		return stages;
	find_spares(spare, view, buckets);
	for (uint32_t s = 0; s < view->shape.nstages; s++)
		stages |= (spare[s] >> m & 1) << s;
	return stages;
}

void hd_view_holding(struct hd_holding *holding, const struct hd_view *view,
	const struct hd_stage_buckets *buckets,
	uint32_t copies, uint32_t servers)
{
	uint64_t stage[HD_STAGE_BITS], spare[HD_STAGE_BITS];
	const bool staged = buckets && view->shape.nstages;

	assert(!staged || view->shape.nstages == buckets->nstages);
	for (uint32_t s = 0; staged && s < view->shape.nstages; s++)
		stage[s] = hd_view_holders(view, s);
	if (staged)
		find_spares(spare, view, buckets);
	const struct hd_holders members = { view->nmembers, view->member, staged ? stage : NULL,
		staged ? spare : NULL };
	hd_holding_make(holding, buckets, &members, copies, servers);
}

uint32_t hd_view_lane(const struct hd_view *view, uint32_t vn)
{
	const uint32_t n = hd_view_nlanes(view);
	uint32_t k = 0;

	for (uint32_t here; k + 1 < n && vn >= (here = hd_view_lane_nvns(view, k)); k++)
		vn -= here;
	return k;
}

uint32_t hd_view_runs(const struct hd_view *view, uint32_t vn, uint32_t stage)
{
	return hd_view_index(view, view->rank[hd_view_rank(view, hd_view_lane(view, vn), stage)].worker);
}

struct hd_hash hd_view_hash(const struct hd_view *view)
{
	uint8_t bytes[12 + 4 * HD_MAX_MEMBERS + 8 * HD_VIEW_RANKS + 12 + 5 * HD_STAGE_BITS + 4 +
		HD_VIEW_RANKS / 8], *at = bytes;

	hd_put32(at, view->epoch);
	hd_put32(at + 4, view->nmembers);
	hd_put32(at + 8, view->nranks);
	at += 12;
	for (uint32_t i = 0; i < view->nmembers; i++, at += 4)
		hd_put32(at, view->member[i]);
	for (uint32_t r = 0; r < hd_view_named(view); r++, at += 8) {
		hd_put32(at, view->rank[r].worker);
		hd_put32(at + 4, view->rank[r].nvns);
	}
	if (view->shape.nstages) {
		hd_put32(at, view->shape.nstages);
		hd_put32(at + 4, view->shape.width);
		hd_put32(at + 8, view->shape.schedule);
		memcpy(at + 12, view->shape.place, view->shape.nstages);
		at += 12 + view->shape.nstages;
		for (uint32_t s = 0; s < hd_view_nfirst(&view->shape); s++, at += 4)
			hd_put32(at, view->shape.first[s]);
		if (hd_view_way(&view->shape)) {
			hd_put32(at, hd_view_way(&view->shape));
			at += 4;
		}
	}
	for (uint32_t i = 0; hd_view_is_doubled(view) && i < HD_VIEW_RANKS / 64; i++, at += 8)
		hd_put64(at, view->doubled[i]);
	return hd_hash(bytes, (size_t)(at - bytes));
}

bool hd_view_same_shape(const struct hd_view_shape *a, const struct hd_view_shape *b)
{
	return a->nstages == b->nstages && a->width == b->width && a->schedule == b->schedule &&
		hd_view_way(a) == hd_view_way(b) && !memcmp(a->place, b->place, sizeof a->place) &&
		!memcmp(a->first, b->first, sizeof a->first);
}

uint64_t hd_view_shape_key(const struct hd_view_shape *s)
{
	uint8_t bytes[16 + 5 * HD_STAGE_BITS], *at = bytes + 16;

	hd_put32(bytes, s->nstages);
	hd_put32(bytes + 4, s->width);
	hd_put32(bytes + 8, s->schedule);
	hd_put32(bytes + 12, hd_view_way(s));
	for (uint32_t i = 0; i < HD_STAGE_BITS; i++, at += 5) {
		*at = s->place[i];
		hd_put32(at + 1, s->first[i]);
	}
	const uint64_t key = hd_hash64(bytes, sizeof bytes);
	return key ? key : 1;
}

bool hd_view_same_map(const struct hd_view *a, const struct hd_view *b)
{
	struct hd_view x = *a;

	x.epoch = b->epoch;
	return hd_hash_same(hd_view_hash(&x), hd_view_hash(b));
}

/* The virtual nodes of a rank's lanes, which are neighbours. */
static struct hd_vrange range_of(const struct hd_view *view, uint32_t rank)
{
	const uint32_t n = hd_view_nlanes(view), stage = view->shape.nstages ? stage_at(view, rank) : 0;
	struct hd_vrange range = { 0, 0 };

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t at = hd_view_rank(view, k, stage);
		range.first += at < rank ? hd_view_lane_nvns(view, k) : 0;
		range.n += at == rank ? hd_view_lane_nvns(view, k) : 0;
	}
	return range;
}

uint32_t hd_view_devices(const struct hd_view *view, uint32_t worker, struct hd_vrange *out)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		if (view->rank[r].worker == worker)
			out[n++] = range_of(view, r);
	return n;
}

/* Ascending ranges without empty ones; those that meet are one. Two ranks of a pipeline have the same. */
static uint32_t merged(struct hd_vrange *range, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!range[i].n || (kept && range[i].first < range[kept - 1].first + range[kept - 1].n))
			continue;
		if (kept && range[kept - 1].first + range[kept - 1].n == range[i].first)
			range[kept - 1].n += range[i].n;
		else
			range[kept++] = range[i];
	}
	return kept;
}

uint32_t hd_view_stage_ranges(const struct hd_view *view, uint32_t worker, uint32_t stage,
	struct hd_vrange *out)
{
	uint32_t n = 0, first = 0;

	for (uint32_t k = 0; k < hd_view_nlanes(view); k++) {
		const uint32_t nvns = hd_view_lane_nvns(view, k);
		if (view->rank[hd_view_rank(view, k, stage)].worker == worker)
			out[n++] = (struct hd_vrange){ first, nvns };
		first += nvns;
	}
	return merged(out, n);
}

uint32_t hd_view_ranges(const struct hd_view *view, uint32_t worker, struct hd_vrange *out)
{
	uint32_t n = hd_view_devices(view, worker, out);

	assert(n <= HD_VIEW_RANKS);
	return merged(out, n);
}

/* One at a time, to the member that would finish first with one more: the classical greedy, optimal for
 * identical jobs. */
void hd_view_deal(const uint32_t *load, const uint64_t *vn_ps, uint32_t n, uint32_t missing, uint32_t *extra)
{
	assert(n || !missing);
	memset(extra, 0, n * sizeof *extra);
	for (; missing; missing--) {
		uint32_t best = 0;
		uint64_t least = UINT64_MAX;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t one = vn_ps[i] ? vn_ps[i] : 1, done;
			if (__builtin_mul_overflow(one, (uint64_t)load[i] + extra[i] + 1, &done))
				done = UINT64_MAX - 1;
			if (done < least) {
				least = done;
				best = i;
			}
		}
		extra[best]++;
	}
}
