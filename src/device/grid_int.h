/* grid_int.h -- what the files of the grid share: grid.c (memory, loading), grid_run.c (phases),
 * grid_vector.c (flat vectors). Private to the room. */
#ifndef HD_DEVICE_GRID_INT_H
#define HD_DEVICE_GRID_INT_H

#include "device/grid.h"
#include "device/program.h"
#include "device/team.h"

/* A node of a loaded program, for one number of rows. */
struct hd_slot {
	const struct hd_cpu_row *row;
	void *prepared;                   /* borrowed from the slot that owns it */
	struct hd_cost cost;              /* of one part */
	uint32_t ntiles;
	bool owner;
};

struct hd_grid_program {
	struct hd_grid_program *next;
	const struct hd_program *of;      /* borrowed, see load() */
	struct hd_slot slot[];            /* [nvariants][nnodes] */
};

static inline struct hd_grid *hd_grid_of(struct hd_device *device) { return (struct hd_grid *)device; }

static inline enum hd_err hd_grid_done(struct hd_grid *grid, uint64_t *token)
{
	*token = ++grid->token;
	return HD_OK;
}

/* Fails unless `good`: what hd_team_run() found. */
enum hd_err hd_grid_arithmetic(bool good, const struct hd_grid *grid, struct hd_diag *diag);
/* NULL: not loaded */
struct hd_grid_program *hd_grid_find(const struct hd_grid *grid, const struct hd_program *of);
/* Does the kernel fold the parts of this gradient itself? Only where all operands have rows, which are its
 * terms. */
bool hd_grid_folds(const struct hd_program *program, uint32_t inode, const struct hd_kernel *kernel,
	const struct hd_call *call);
/* The folds of one part's gradient: number `grad`, leaf at `leaf`. false: as hd_team_run(). */
bool hd_grid_fold(struct hd_grid *grid, const struct hd_program *program, const struct hd_bind *bind,
	const struct hd_part *part,
	uint32_t grad, const float *leaf);

#endif
