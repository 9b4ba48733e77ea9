/* kind.h -- what the generators of schedules share. Private to this folder.
 *
 * A maker writes the list of one rank at a time (`list`), or all ranks together (`all`) where
 * one rank's order depends on another's. The lists have room for every instruction of the rank:
 * hd_emit() asserts it. */
#ifndef HD_PIPELINE_SCHEDULE_KIND_H
#define HD_PIPELINE_SCHEDULE_KIND_H

#include <assert.h>

#include "pipeline/generate.h"
#include "pipeline/schedule/list.h"

enum hd_place { HD_PLACE_MOD, HD_PLACE_V, HD_PLACE_REPLICAS };

/* The rank at hand. p, m, v are settled. */
struct hd_emit {
	const struct hd_schedule_ask *ask;
	uint32_t p, m, v, r;
	struct hd_schedule *schedule;
	struct hd_ilist *list;                    /* of rank r, in the section at hand */
	struct hd_arena *arena;
	struct hd_diag *diag;
};

struct hd_schedule_maker {
	enum hd_place place;
	bool split;                               /* I and W, not B */
	/* rule K29; NULL slots are not allowed: hd_no_limits */
	enum hd_err (*limits)(const struct hd_emit *e);
	void (*list)(struct hd_emit *e);          /* NULL: `all` writes them */
	enum hd_err (*all)(struct hd_emit *e);    /* NULL: `list`, rank by rank */
};

static inline void hd_emit(struct hd_emit *e, uint8_t op, uint32_t stage, uint32_t vn)
{
	assert(e->list->len < e->list->cap);
	e->list->at[e->list->len++] = (struct hd_ins){ .op = op, .stage = (uint16_t)stage, .vn = vn };
}

static inline uint32_t hd_least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Stage of chunk 0 and of chunk 1 of a rank that are placed like a V. */
static inline uint32_t hd_v_down(const struct hd_emit *e) { return e->r; }
static inline uint32_t hd_v_up(const struct hd_emit *e) { return 2 * e->p - 1 - e->r; }

enum hd_err hd_no_limits(const struct hd_emit *e);
/* "KIND needs REASON: m = M, p = P", and the nearest that works: -m `m_works` (0: none). */
enum hd_err hd_limit(const struct hd_emit *e, const char *needs, uint32_t m_works);

#define X(maker, ...) extern const struct hd_schedule_maker hd_make_##maker;
HD_SCHEDULES(X)
#undef X

#endif
