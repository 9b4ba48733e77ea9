/* generate.h -- every schedule that has a name: one row of a table, one file a family.
 *
 * A generator is a pure function of (p, m, v, options, costs). It writes a skeleton: a bare
 * schedule (schedule.h) of compute instructions alone, which passes complete.
 *
 * 1. Virtual nodes of one stage are taken in ascending order, forward and backward.
 * 2. Equal asks give equal bytes on every machine.
 * 3. What a kind cannot do (too few virtual nodes, a wrong number of chunks) is refused with the
 *    reason and the nearest ask that works, HD_E_INVAL. The plan documents call the rule K29.
 * 4. Kinds of delayed updates (`update` not flush) have three sections (schedule.h); the others one.
 *
 * To add one: a file in src/pipeline/schedule/, its functions in src/pipeline/schedule/kind.h, a row in
 * src/pipeline/schedule/generate.c and a row in the test of closed forms. Nothing else names a schedule. */
#ifndef HD_PIPELINE_GENERATE_H
#define HD_PIPELINE_GENERATE_H

#include "pipeline/schedule.h"

/* What a full rank spends on one virtual node, in picoseconds: a chunk of v costs 1/v of it. */
struct hd_rank_costs { int64_t f, i, w, hop; };

#define HD_UNIT_PS INT64_C(12000000)      /* one unit of `--costs`: thirds and tenths of it are whole */
#define HD_UNIT_COSTS ((struct hd_rank_costs){ HD_UNIT_PS, HD_UNIT_PS, HD_UNIT_PS, 0 })

enum { HD_MAX_MODEL_CHUNKS = 64 };

struct hd_schedule_ask {
	const char *name;                         /* of a row, or its other name */
	/* ranks, virtual nodes, model chunks; v 0: the least of the kind */
	uint32_t p, m, v;
	/* interleaved: virtual nodes a group; 0: near-equal groups */
	uint32_t group;
	/* 1f1b-rr: of each stage, p in all; NULL: one each */
	const uint32_t *replicas; uint32_t nreplicas;
	struct hd_rank_costs costs;               /* zb-auto plans by them; all 0: one unit each */
	/* zb-auto: chunks whose activations a rank can hold; 0: any number */
	uint32_t cap;
};

struct hd_schedule_kind {
	const char *name, *other;                 /* other: a second name, or NULL */
	enum hd_update_mode update;
	uint32_t vmin, vmax;
	const char *about, *limits;               /* limits: "" where there are none */
	const struct hd_schedule_maker *maker;    /* src/pipeline/schedule/kind.h */
};
extern const struct hd_schedule_kind hd_schedule_kinds[];     /* ends with name == NULL */

/* NULL and HD_E_INVAL in diag, with the nearest name, if there is none. */
HD_MUST_USE enum hd_err hd_schedule_kind_find(const struct hd_schedule_kind **kind, const char *name,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_schedule_make(struct hd_schedule *out, const struct hd_schedule_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
