/* pipe_int.h -- what pipe_make.c, pipe_count.c, pipe_take.c and rest.c share: how a pipe is put together.
 * Private to these files. */
#ifndef HD_ENGINE_PIPE_INT_H
#define HD_ENGINE_PIPE_INT_H

#include "engine/pipe.h"

enum { HD_PIPE_ALIGN = 64 };              /* of what lies in a buffer */

static inline uint64_t hd_pipe_line_up(uint64_t bytes)
{
	return (bytes + HD_PIPE_ALIGN - 1) / HD_PIPE_ALIGN * HD_PIPE_ALIGN;
}
static inline enum hd_err hd_pipe_no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the stages of a pipeline");
}
/* Arena i of a seat is the device's so far behind the first of the rank. */
static inline uint32_t hd_pipe_home(const struct hd_pipe *pipe, uint32_t i) { return i % pipe->width; }

/* The seat of a rank and stage, made if there is none. NULL: of another worker */
struct hd_seat *hd_pipe_seat_at(struct hd_pipe *pipe, uint32_t rank, uint32_t stage, bool shadow);
/* A virtual node's gradient is complete. */
bool hd_pipe_ends_weights(const struct hd_ins *ins);
/* A gradient once more, to a shadow: the cell that made it keeps it. */
bool hd_pipe_is_copy(const struct hd_ins *ins);
/* pool->cap buffers, of the first of the rank's devices or of all in turn; seat->memory has room for them. */
HD_MUST_USE enum hd_err hd_pipe_take_pool(const struct hd_pipe *pipe, struct hd_seat *seat,
	struct hd_mail_pool *pool, bool in_turn, struct hd_arena *arena, struct hd_diag *diag);

/* Flat vectors: how many there are for the scripts of all seats; vector i of the ranks' pools; dealt to the
 * seats; the joins of a stage's roots. vector_bytes is set by the second. */
uint32_t hd_pipe_count_vectors(const struct hd_pipe *pipe);
HD_MUST_USE enum hd_err hd_pipe_count_vector_bytes(struct hd_pipe *pipe, struct hd_arena *arena,
	struct hd_diag *diag);
float *hd_pipe_pool_vector(const struct hd_pipe *pipe, uint32_t i);
void hd_pipe_give_vectors(struct hd_pipe *pipe);
HD_MUST_USE enum hd_err hd_pipe_make_joins(struct hd_pipe *pipe, uint32_t stage,
	const struct hd_layout *layout, struct hd_arena *arena, struct hd_diag *diag);

#endif
