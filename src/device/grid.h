/* grid.h -- the device of every processor back-end: memory, order of nodes, folds and
 * sharing out of tiles are the same; rows differ in their table of kernels.
 *
 * cpu and reference fill hd_device_ops with HD_GRID_OPS and an open() of their own
 * that chooses a table and calls hd_grid_open().
 *
 * 1. Everything is done when a call returns: tokens count, wait() has nothing to do.
 * 2. run(B), run(I) and run(W) fold a parameter's gradient right after the node that
 *    makes it, while it is in the cache: every move of bind->fold, in order, for that
 *    tensor. Pads between tensors are not touched.
 * 3. Rows 0 (and no parts): no node runs and nothing is folded.
 * 4. Work too small to be worth waking helpers is done by the leader alone; how small
 *    is a function of shape.
 * 5. A memory limit is kept by take(): what would exceed it is refused with the numbers.
 *
 * Ownership: open() takes the team, load() the prepared kernels, take() memory;
 * close() gives back whatever is left. Threads: device.h. */
#ifndef HD_DEVICE_GRID_H
#define HD_DEVICE_GRID_H

#include "device/cpu/cpu_kernels.h"
#include "device/device.h"

/* What a back-end brings. All borrowed, constant. */
struct hd_grid_kernels {
	const struct hd_cpu_row *row;             /* [HD_NOPS] */
	/* [HD_NOPS] for shapes that a row does not take; may be `row` */
	const struct hd_cpu_row *own;
	const struct hd_cpu_vector *vector;
	/* each thread, before its first tile; cheap when repeated */
	void (*init)(void);
	const char *path;
	const struct hd_edge_kernels *edges;      /* NULL: kernels along edges walk their lists */
};

struct hd_grid_program;
struct hd_grid_block;

struct hd_grid {
	struct hd_device device;                  /* first member */
	struct hd_grid_kernels kernels;
	struct hd_team *team;                     /* owned */
	struct hd_grid_program *program;          /* owned list of what was loaded */
	/* owned list of what take() gave and give() did not get back */
	struct hd_grid_block *block;
	uint64_t taken_bytes, token;
};

HD_MUST_USE enum hd_err hd_grid_open(struct hd_device *device, const struct hd_device_spec *spec,
	const struct hd_grid_kernels *kernels, struct hd_diag *diag);

enum hd_err hd_grid_take(struct hd_device *device, uint64_t len_bytes, void **at, struct hd_diag *diag);
void hd_grid_give(struct hd_device *device, void *at, uint64_t len_bytes);
enum hd_err hd_grid_move(struct hd_device *device, void *to, const void *from, uint64_t len_bytes,
	uint64_t *token);
enum hd_err hd_grid_load(struct hd_device *device, const struct hd_program *program, struct hd_diag *diag);
void hd_grid_unload(struct hd_device *device, const struct hd_program *program);
/* The kernel that loading prepares for a call of that op and these shapes. */
const struct hd_cpu_row *hd_grid_row(const struct hd_grid *grid, const struct hd_call *call);
/* Of programs that are not loaded, too. */
bool hd_grid_folds_alone(struct hd_device *device, const struct hd_program *program, uint32_t inode);
enum hd_err hd_grid_run(struct hd_device *device, const struct hd_program *program, enum hd_run_phase phase,
	const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag);
enum hd_err hd_grid_add(struct hd_device *device, float *dst, const float *a, const float *b, uint64_t len,
	uint64_t *token,
	struct hd_diag *diag);
enum hd_err hd_grid_reduce(struct hd_device *device, const struct hd_reduction *reduction, uint64_t *token,
	struct hd_diag *diag);
enum hd_err hd_grid_measure(struct hd_device *device, const struct hd_update *update,
	const struct hd_segment *segment, uint32_t n,
	double *param_sumsq, double *move_sumsq, uint64_t *token, struct hd_diag *diag);
enum hd_err hd_grid_update(struct hd_device *device, const struct hd_update *update, uint64_t *token,
	struct hd_diag *diag);
enum hd_err hd_grid_wait(struct hd_device *device, uint64_t token, struct hd_diag *diag);
void hd_grid_close(struct hd_device *device);

#define HD_GRID_OPS \
	.size = sizeof(struct hd_grid), .take = hd_grid_take, .give = hd_grid_give, .write = hd_grid_move, \
	.read = hd_grid_move, .load = hd_grid_load, .unload = hd_grid_unload, \
	.folds = hd_grid_folds_alone, .run = hd_grid_run, .add = hd_grid_add, \
	.reduce = hd_grid_reduce, .measure = hd_grid_measure, .update = hd_grid_update, \
	.wait = hd_grid_wait, .close = hd_grid_close

/* The devices that there are, in the order of messages: a file defines hd_device_NAME. */
#define HD_DEVICES(X) X(cpu) X(reference) X(null)
#define X(name) extern const struct hd_device_ops hd_device_##name;
HD_DEVICES(X)
#undef X

#endif
