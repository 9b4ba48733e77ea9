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
	struct hd_edge_table *edges;      /* borrowed from the program; NULL: its op has none */
};

/* Tables of edges (edge_rows.h): one for each list of ends and number of rows. */
struct hd_grid_edges {
	struct hd_grid_edges *next;
	uint32_t ends, others, variant;   /* values, HD_NONE */
	struct hd_edge_table table;
};

struct hd_grid_program {
	struct hd_grid_program *next;
	struct hd_grid_edges *edges;      /* owned list */
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
/* The tables that nodes of the program need. */
HD_MUST_USE enum hd_err hd_grid_edges_take(const struct hd_grid *grid, struct hd_grid_program *loaded,
	struct hd_diag *diag);
void hd_grid_edges_free(struct hd_grid_program *loaded);
uint64_t hd_grid_edges_bytes(const struct hd_grid *grid);
/* Hashes of the lists that a run has read so far: a few lists are read by many nodes. */
struct hd_grid_lists { uint32_t n; struct { const void *at; uint64_t hash; } list[4]; };
/* Gives a call the rows of its edges, if its lists have them. */
void hd_grid_edges_bind(struct hd_edge_table *table, struct hd_call *call, struct hd_grid_lists *lists);
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
