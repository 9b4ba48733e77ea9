#include "run/stage_drift.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum hd_err hd_stage_drift_init(struct hd_stage_drift *d, uint32_t nranks, const double *expected_ns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*d = (struct hd_stage_drift){ .nranks = nranks, .window = HD_STAGE_DRIFT_STEPS,
		.expected_ns = expected_ns,
		.seen_ns = hd_arena_take(arena, (size_t)nranks * HD_STAGE_DRIFT_MOST, sizeof *d->seen_ns),
		.sorted = hd_arena_take(arena, HD_STAGE_DRIFT_MOST, sizeof *d->sorted) };
	return d->seen_ns && d->sorted ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory to watch %u ranks",
		nranks);
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(struct hd_stage_drift *d, uint32_t r)
{
	memcpy(d->sorted, d->seen_ns + (size_t)r * HD_STAGE_DRIFT_MOST, d->n * sizeof *d->sorted);
	qsort(d->sorted, d->n, sizeof *d->sorted, rising);
	return d->sorted[(d->n - 1) / 2];
}

bool hd_stage_drift_step(struct hd_stage_drift *d, const double *busy_ns, double *speed)
{
	double least = 0, most = 0;

	assert(d->n < d->window);
	for (uint32_t r = 0; r < d->nranks; r++)
		d->seen_ns[(size_t)r * HD_STAGE_DRIFT_MOST + d->n] = busy_ns[r];
	if (++d->n < d->window)
		return false;
	for (uint32_t r = 0; r < d->nranks; r++) {
		double slow = d->expected_ns[r] > 0 ? median(d, r) / d->expected_ns[r] : 0;
		if (slow <= 0) {          /* nothing is known of it */
			d->n = 0;
			return false;
		}
		speed[r] = 1 / slow;
		least = r == 0 || slow < least ? slow : least;
		most = slow > most ? slow : most;
	}
	d->n = 0;
	return most > HD_STAGE_DRIFT_BOUND * least;
}

void hd_stage_drift_vain(struct hd_stage_drift *d)
{
	d->window = 2 * d->window < HD_STAGE_DRIFT_MOST ? 2 * d->window : HD_STAGE_DRIFT_MOST;
}
