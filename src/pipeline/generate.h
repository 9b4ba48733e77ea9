/* generate.h -- the generators of pipeline schedules (GPipe, 1F1B, interleaved, zero-bubble, ...): one table
 * row for each name, one file for each family.
 *
 * A generator is a pure function of struct hd_schedule_ask. It writes a *skeleton*: a schedule (schedule.h)
 * of compute instructions alone. hd_schedule_complete() (passes.h) adds transfers, versions and updates.
 *
 * 1. Virtual nodes (the micro-batches) of one stage are taken in ascending order, forward and backward; those
 *    of `neighbours` in the order of lanes (lanes.h).
 * 2. Equal arguments give equal bytes on every machine.
 * 3. What a kind cannot do (too few virtual nodes, a wrong number of chunks) is refused with the reason and
 *    the nearest arguments that work, HD_E_INVAL. Elsewhere this is rule K29.
 * 4. Kinds of delayed updates (`update` is not flush; PipeDream) write three sections: prologue, period,
 *    epilogue (schedule.h); the others write one.
 *
 * To add one: a file in src/pipeline/schedule/, a row in src/pipeline/schedule/list.h, and a row with the
 * formula of its time in src/pipeline/sim/simulate_test.c. Nothing else names a schedule. */
#ifndef HD_PIPELINE_GENERATE_H
#define HD_PIPELINE_GENERATE_H

#include "pipeline/schedule.h"

/* What a rank spends on one virtual node, in picoseconds: f forward, i gradient of the input, w gradient of
 * the weights; each of v model chunks costs 1/v of it. hop: a transfer between neighbouring ranks. */
struct hd_rank_costs { int64_t f, i, w, hop; };

#define HD_UNIT_PS INT64_C(12000000)      /* one unit of `--costs`; divides by 3 and 10 */
#define HD_UNIT_COSTS ((struct hd_rank_costs){ HD_UNIT_PS, HD_UNIT_PS, HD_UNIT_PS, 0 })

enum { HD_MAX_MODEL_CHUNKS = 64 };

struct hd_schedule_ask {
	const char *name;                         /* of a row: `name` or `other` */
	/* ranks, virtual nodes, and model chunks (stages) per rank; v 0: the least of the kind */
	uint32_t p, m, v;
	/* interleaved: virtual nodes per group; 0: groups as equal as they can be */
	uint32_t group;
	/* 1f1b-rr: replicas of each stage, p in all; NULL: one each */
	const uint32_t *replicas; uint32_t nreplicas;
	bool neighbours;                          /* a replica's virtual nodes are neighbours (lanes.h) */
	struct hd_rank_costs costs;               /* zb-auto plans by them; all 0: one unit each */
	/* zb-auto: chunks whose activations a rank can hold; 0: any number */
	uint32_t cap;
};

struct hd_schedule_kind {
	const char *name, *other;                 /* other: a second name, or NULL */
	enum hd_update_mode update;
	uint32_t vmin, vmax;
	const char *about, *limits;               /* limits: "" where there are none */
	const struct hd_schedule_maker *maker;    /* how it is made: src/pipeline/schedule/kind.h */
};
extern const struct hd_schedule_kind hd_schedule_kinds[];     /* ends with name == NULL */

/* NULL and HD_E_INVAL in diag, with the nearest name, if there is none. */
HD_MUST_USE enum hd_err hd_schedule_kind_find(const struct hd_schedule_kind **kind, const char *name,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_schedule_make(struct hd_schedule *out, const struct hd_schedule_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
