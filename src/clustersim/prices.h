/* prices.h -- what a device of some type cost when: histories of spot prices, out of files.
 *
 * 1. A price holds from its time until the next of the same zone and type. Before the first it is the first.
 * 2. The price of a type is the smallest over its zones.
 * 3. Times are seconds since 1970 (UTC); `start_s` is the earliest. Prices are money per hour, above 0.
 * 4. Bad input is HD_E_INPUT and says file:line:column and the field (of JSON: the value).
 *
 * Ownership: all lies in the arena it was read into. Pure. */
#ifndef HD_CLUSTERSIM_PRICES_H
#define HD_CLUSTERSIM_PRICES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum { HD_PRICE_NAMES = 4096, HD_PRICES = 1 << 24 };
#define HD_PRICE_NONE UINT32_MAX

struct hd_price { uint32_t type, zone; double at_s, usd_h; };

struct hd_prices {
	size_t n;
	/* by (type, zone, time); of equal times the later line counts */
	struct hd_price *at;
	uint32_t ntypes, nzones;
	const char **type, **zone;                /* sorted by name */
	size_t *first;                            /* [ntypes + 1] of each type in `at` */
	double start_s, end_s;
};

/* Distinguished by the first line:
 *	zone TAB type TAB product TAB price TAB time           no header
 *	time,zone,type,price                                   a header with these names, in any order
 *	date,$type,$type...                                    one column a type; the file is one zone, empty:
 *	                                                       no change */
HD_MUST_USE enum hd_err hd_prices_read(struct hd_prices *prices, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena,
	struct hd_diag *diag);
/* The answer of the provider's price-history call: {"SpotPriceHistory": [{InstanceType, AvailabilityZone,
 * Timestamp, SpotPrice}]}. */
HD_MUST_USE enum hd_err hd_prices_json(struct hd_prices *prices, const struct hd_json *file,
	struct hd_arena *arena, struct hd_diag *diag);

/* Several histories as one, of equal times the later counts; with `zones` the lines of these alone: a zone
 * that none has is refused. */
HD_MUST_USE enum hd_err hd_prices_join(struct hd_prices *prices, uint32_t n, const struct hd_prices *parts,
	uint32_t nzones, const char *const *zones,
	struct hd_arena *arena, struct hd_diag *diag);
/* Seconds since 1970 of a time as the files have it: a number, or ISO 8601 with T or a blank. */
HD_MUST_USE enum hd_err hd_prices_time(const char *text, double *at_s, struct hd_diag *diag);

/* HD_PRICE_NONE: not there */
uint32_t hd_prices_type(const struct hd_prices *prices, const char *name);
double hd_price_at(const struct hd_prices *prices, uint32_t type, double at_s);   /* rule 2 */
/* when the next line of the type comes; INFINITY: none */
double hd_price_change(const struct hd_prices *prices, uint32_t type, double after_s);

#endif
