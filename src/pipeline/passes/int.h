/* int.h -- sections of a schedule that is rewritten. Private to this folder. */
#ifndef HD_PIPELINE_PASSES_INT_H
#define HD_PIPELINE_PASSES_INT_H

#include <assert.h>

#include "pipeline/passes.h"

enum { HD_SECTIONS = 3 };

/* Prologue, the only list or the period, epilogue; NULL: there is none. */
static inline struct hd_ilist *hd_section(const struct hd_schedule *s,
	int i) { return i == 0 ? s->prologue : i == 1 ? s->list : s->epilogue; }

static inline void hd_pass_put(struct hd_ilist *to, struct hd_ins ins)
{
	assert(to->len < to->cap);
	to->at[to->len++] = ins;
}

/* `out` like `s`, its lists empty with room for `times` the instructions and `more`. */
HD_MUST_USE enum hd_err hd_pass_begin(struct hd_schedule *out, const struct hd_schedule *s, uint32_t times,
	uint32_t more,
	struct hd_arena *arena, struct hd_diag *diag);
/* Any section has an instruction of these (0 ends them). */
bool hd_schedule_has(const struct hd_schedule *s, const uint8_t *ops);
/* Every stage and virtual node that an instruction names exists. */
HD_MUST_USE enum hd_err hd_pass_numbers(const struct hd_schedule *s, struct hd_diag *diag);

/* Residue of a virtual node: its number inside a step. */
static inline uint32_t hd_inside(const struct hd_schedule *s, uint32_t vn)
{
	int32_t v = (int32_t)vn, m = (int32_t)s->nvns;
	return (uint32_t)(v >= 0 ? v % m : (m - -v % m) % m);
}

#endif
