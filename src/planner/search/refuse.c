#include "planner/search/refuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct need { int64_t bytes; struct hd_auto_shape shape; };

static enum hd_err least_need(struct hd_auto_space *space, struct need *need)
{
	const struct hd_auto_ask *ask = space->ask;
	uint32_t n = space->cluster->ndevices;
	enum hd_err err = HD_OK;

	*need = (struct need){ .bytes = INT64_MAX };
	for (uint32_t p = 1; p <= n && p <= HD_AUTO_RANKS && p <= space->whole.n && !err; p++)
		for (const struct hd_auto_row *row = hd_auto_rows; row->schedule && !err; row++)
			for (uint32_t v = row->vmin; v <= 2 && hd_auto_wanted(ask->p, p) && !err; v++) {
				uint32_t ds[2] = { ask->d ? ask->d : 1, ask->d ? ask->d : n / p };
				for (int k = 0; k < 2 && !err; k++) {
					struct hd_auto_cand c = { .shape = { row->schedule, space->t, p,
						ds[k], v, HD_AUTO_DEEP }, .row = row };
					int64_t bytes = INT64_MAX;
					if (hd_auto_row_may(row, ask, p, v) && hd_auto_wanted(ask->v, v) &&
						p * v <= space->whole.n &&
						(uint64_t)p * ds[k] * space->t <= n && ds[k] <= ask->vns)
						err = hd_auto_least(space, &c, &bytes);
					if (bytes < need->bytes)
						*need = (struct need){ bytes, c.shape };
				}
			}
	return err;
}

/* The schedule that was asked for by its name, or by its update. */
static const struct hd_auto_row *row_asked(const struct hd_auto_ask *ask)
{
	const struct hd_auto_row *row = hd_auto_rows;

	while (row->schedule && (ask->schedule ? strcmp(ask->schedule, row->schedule) != 0 :
		row->update != ask->update))
		row++;
	return row->schedule ? row : NULL;
}

/* Virtual nodes that it needs in all with pipelines of p. */
static uint64_t least_vns(const struct hd_auto_ask *ask, uint32_t p)
{
	const struct hd_auto_row *row = row_asked(ask);

	return (uint64_t)(row ? row->least_m(p) : 1) * (ask->d ? ask->d : 1);
}

static bool too_few(const struct hd_auto_space *space) { return space->ask->vns < least_vns(space->ask,
	space->ask->p ? space->ask->p : 1); }

static enum hd_err refuse_few(struct hd_auto_space *space)
{
	const struct hd_auto_ask *ask = space->ask;
	const struct hd_auto_row *row = row_asked(ask);
	uint32_t p = ask->p ? ask->p : 1, works = p, d = ask->d ? ask->d : 1;
	char or_p[32] = "";

	while (works > 1 && least_vns(ask, works) > ask->vns)
		works--;
	if (works < p && least_vns(ask, works) <= ask->vns)
		snprintf(or_p, sizeof or_p, ", or p = %u", works);
	return hd_fail(space->diag, HD_E_INVAL,
		"%s needs %s; m = %u, p = %u: the nearest that works: V = %" PRIu64 "%s",
		row ? row->schedule : "a pipeline", row ? row->needs : "m >= 1", ask->vns / d, p,
		least_vns(ask, p), or_p);
}

enum hd_err hd_auto_refuse(struct hd_auto_space *space, const struct hd_auto_need *simulated, uint64_t nlate)
{
	const struct hd_auto_ask *ask = space->ask;
	const struct hd_cluster *cluster = space->cluster;
	int64_t largest = 0;
	struct need need;
	enum hd_err err = least_need(space, &need);

	if (err)
		return err;
	if (nlate)
		return hd_fail(space->diag, HD_E_INVAL,
			"no plan of what was asked ends within 2^62 ps (53 days), as far as times are "
			"counted; %" PRIu64
			" were tried that fit: is a bandwidth of the cluster, a speed or a time of the "
				"profile wrong?", nlate);
	for (uint32_t x = 0; x < cluster->ndevices; x++)
		largest = hd_cluster_kind_of(cluster, x)->memory > largest ? hd_cluster_kind_of(cluster,
			x)->memory : largest;
	if (need.bytes <= largest && simulated->bytes < INT64_MAX)
		return hd_fail(space->diag, HD_E_INVAL,
			"no plan fits the memory: of those simulated the one with the smallest need, p = "
			"%u, d = %u, %s, takes %" PRId64
			" bytes on a device that has %" PRId64 ". Give devices of that much, fewer samples "
				"a virtual node, or more devices",
			simulated->shape.p, simulated->shape.d, simulated->shape.schedule, simulated->bytes,
			simulated->has);
	if (need.bytes < INT64_MAX && largest && need.bytes > largest)
		return hd_fail(space->diag, HD_E_INVAL,
			"no plan fits the memory: the smallest need is about %" PRId64 " bytes a device, at "
			"p = %u, d = %u, %s%s; the "
			"largest device has %" PRId64 ". Give devices of that much, fewer samples a virtual "
			"node, or more devices", need.bytes,
				need.shape.p, need.shape.d,
			need.shape.schedule, ask->recompute == HD_AUTO_NEVER ?
			" (without recomputation, as asked)" : ", recompute on", largest);
	if (need.bytes < INT64_MAX)
		return hd_fail(space->diag, HD_E_INVAL,
			"no plan of what was asked works; the nearest that does: p = %u, d = %u, %s",
			need.shape.p,
			need.shape.d,
			need.shape.schedule);
	const struct hd_auto_row *row = row_asked(ask);
	if (row && row->update != ask->update)
		return hd_fail(space->diag, HD_E_INVAL,
			"%s is an order of update %s, and update %s is asked for", row->schedule,
			hd_update_names[row->update], hd_update_names[ask->update]);
	if (too_few(space))
		return refuse_few(space);
	return hd_fail(space->diag, HD_E_INVAL,
		"no plan of what was asked works: %u devices, %u cuts, %u virtual nodes; p is at most %u, t "
		"p d at most %u, and each "
		"pipeline needs a virtual node", cluster->ndevices, space->sums->cuts->n, ask->vns,
		space->whole.n < cluster->ndevices ? space->whole.n : cluster->ndevices, cluster->ndevices);
}
