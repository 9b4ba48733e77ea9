#include "protocol/coordinator_int.h"

/* Fewer devices than a pipeline needs go on with fewer stages: rule 17 of coordinator.h. */

/* Stages of the view in force that no member of `next` runs: what an heir has run for a step is not its
 * own. */
static uint64_t lost_stages(const struct hd_coordinator *co, const struct hd_view *next)
{
	uint64_t lost = 0;

	for (uint32_t s = 0; s < co->view.shape.nstages; s++) {
		bool runs = false;
		for (uint32_t pipe = 0; pipe < hd_view_pipes(&co->view); pipe++) {
			const uint32_t r = hd_view_rank(&co->view, pipe, s);
			runs |= !hd_view_doubled(&co->view, r) && hd_view_has(next, co->view.rank[r].worker);
		}
		lost |= (uint64_t)!runs << s;
	}
	return lost;
}

/* Of the shape in force, or of the job's, while all hold. */
static const struct hd_view_shape *shape_of(const struct hd_coordinator *co)
{
	return co->view.shape.nstages ? &co->view.shape : &co->config.shape;
}

static bool may(const struct hd_coordinator *co)
{
	const struct hd_stage_buckets *buckets = co->config.fewer && co->config.of_shape ?
		co->config.of_shape(co->config.of_shape_self, shape_of(co)) : NULL;

	return buckets && buckets->shadows;
}

bool hd_co_may_have_fewer(const struct hd_coordinator *co, uint32_t nranks)
{
	return nranks >= 2 && nranks > co->fewer_tried && may(co);
}

bool hd_co_fill_fewer(struct hd_coordinator *co, struct hd_view *next)
{
	const struct hd_view_shape *had = shape_of(co);
	struct hd_view_shape fewer;
	uint32_t width = 0;

	if (co->open.hold || !may(co))
		return false;
	for (uint32_t i = 0; i < next->nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, next->member[i]);
		width += w ? w->ndevices / hd_view_each(had) : 0;
	}
	co->fewer_tried = width;
	if (width < 2 || width >= had->width || !co->config.fewer(co->config.fewer_self, had,
		lost_stages(co, next), width, next->nmembers, &fewer) || fewer.width > width ||
		!co->config.of_shape(co->config.of_shape_self, &fewer) ||
		!hd_co_fill_map(co, next, &fewer, 0))
		return false;
	hd_co_note(co, "fewer", HD_NOBODY,
		"%u stages on %u devices until there are %u: no worker is waited for", fewer.nstages,
		fewer.width * hd_view_each(&fewer), co->config.shape.width * hd_view_each(&co->config.shape));
	return true;
}
