/* rates.h -- how fast which kind of job goes on which type of device, alone and beside another: measured, in
 * a file.
 *
 * The simulator and the importers of traces look speeds up in it; the scheduler's state (sched_state.h) takes
 * its rows.
 *
 * 1. Types are sorted by name, kinds by (name, scale). A kind is a model with its batch, on `scale` devices
 *    together.
 * 2. Rates are steps/s, never negative, NaN or infinite; 0: cannot run there, or not measured.
 * 3. Types whose name ends in "_unconsolidated" repeat others; they are left out and counted.
 * 4. A pair stands in the table both ways round. Where a file states only one, the other is its mirror; two
 *    that differ are refused.
 *
 * Ownership: all lies in the arena it was read into. Pure. */
#ifndef HD_SCHEDULER_RATES_H
#define HD_SCHEDULER_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

enum { HD_RATES_TYPES = 64, HD_RATES_KINDS = 1024, HD_RATES_SCALE = 1 << 20,
       HD_RATES_NAME = 256 };                     /* bytes of a printed kind */
#define HD_RATES_NONE UINT32_MAX

struct hd_rate_kind { const char *name; uint32_t scale; };

struct hd_rates {
	uint32_t ntypes, nkinds, nleft_out;      /* nleft_out: types of rule 3 */
	const char **type;
	struct hd_rate_kind *kind;
	double *alone;                            /* [nkinds][ntypes] */
	/* [nkinds][nkinds][ntypes][2]: of the first, of the second; NULL: none known */
	double *pair;
};

/* Both published forms, distinguished by the outermost names:
 *	{type: {"('Model (batch size b)', scale)": {"null": alone, "('Other ...', scale)": [mine, the
 *	other's]}}} {"('Model ...', scale)": {type: alone}} */
HD_MUST_USE enum hd_err hd_rates_read(struct hd_rates *rates, const struct hd_json *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* The first form; reads back to the same table. */
void hd_rates_print(const struct hd_rates *rates, struct hd_text *to);

/* HD_RATES_NONE: not there */
uint32_t hd_rates_type(const struct hd_rates *rates, const char *name);
uint32_t hd_rates_kind(const struct hd_rates *rates, const char *name, uint32_t scale);
/* The same with the types of `names` alone, in that order; a name that is not in the table gets zeros. */
HD_MUST_USE enum hd_err hd_rates_pick(const struct hd_rates *rates, uint32_t n, const char *const *names,
	struct hd_arena *arena,
	struct hd_rates *out, struct hd_diag *diag);

static inline double hd_rates_alone(const struct hd_rates *rates, uint32_t kind, uint32_t type)
{
	return rates->alone[(size_t)kind * rates->ntypes + type];
}

#endif
