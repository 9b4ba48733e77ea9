/* lives_int.h -- the steps of collecting (lives.h): reading files into lives, joining those of one process.
 * Private to the room. */
#ifndef HD_TIMELINE_LIVES_INT_H
#define HD_TIMELINE_LIVES_INT_H

#include "timeline/lives.h"

/* Grows a list in the arena to n places; what it held stays. */
HD_MUST_USE enum hd_err hd_tl_grow(struct hd_arena *arena, void *list, uint32_t *cap, uint64_t n, size_t size,
	struct hd_diag *diag);

/* A new life at the end of the list. */
HD_MUST_USE enum hd_err hd_tl_life_add(struct hd_arena *arena, struct hd_tl_lives *lives, const char *file,
	struct hd_tl_life **life, struct hd_diag *diag);
/* A piece at the end of a ring's list, which is not sorted until lives are joined. */
HD_MUST_USE enum hd_err hd_tl_piece_add(struct hd_arena *arena, struct hd_tl_ring *ring,
	struct hd_tl_piece piece, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_tl_read_flight(struct hd_arena *arena, const struct hd_tl_input *input,
	struct hd_tl_lives *lives, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_tl_read_hdt(struct hd_arena *arena, const struct hd_tl_input *input,
	struct hd_tl_lives *lives, struct hd_diag *diag);

/* Sorts the lives and makes one of those of one process. */
HD_MUST_USE enum hd_err hd_tl_join(struct hd_arena *arena, struct hd_tl_lives *lives, struct hd_diag *diag);

#endif
