/* device.h -- the back-end interface: what executes the kernels of one rank. A device is a team of T CPU
 * threads, an accelerator, or nothing at all (`null`: costs only).
 *
 * `engine` opens devices by their text ("cores:2x1", "reference", "null"), loads a
 * program on each and then, step after step, asks for phases of virtual nodes.
 * It never knows which kind it drives.
 *
 * 1. A device is an in-order queue. Calls that may be asynchronous return a `token`; tokens increase, and
 *    wait(token) returns when everything up to it is done. A CPU device may finish before the call
 *    returns, an accelerator need not.
 * 2. A device has an address space. write() and read() copy between it and the host. Devices with
 *    HD_DEVICE_HOST_MEMORY use the host's address space: pointers may be used as they are, and the
 *    devices of a worker may share parameters.
 * 3. No bit of a result depends on the number of threads (kernel.h).
 * 4. After load() nothing allocates.
 *
 * Threads: all calls on one device come from one thread at a time (its leader);
 * its T-1 helpers are its own. Errors of run() are HD_E_BUG or the device's loss. */
#ifndef HD_DEVICE_DEVICE_H
#define HD_DEVICE_DEVICE_H

#include "base/hash.h"
#include "graph/layout.h"
#include "device/kernel.h"
#include "device/memplan.h"

struct hd_device;
struct hd_step_scalars;                   /* optim.h */
struct hd_program;                        /* program.h */

enum hd_device_power {
	HD_DEVICE_HOST_MEMORY = 1,        /* its memory is the host's */
	HD_DEVICE_NO_RESULT   = 2,        /* computes nothing (null): results are zeros */
};

/* bf16, bf16-amx: own kernels with products in bf16 (bf16.h) */
enum hd_kernels { HD_KERNELS_LIBRARY, HD_KERNELS_PORTABLE, HD_KERNELS_BF16, HD_KERNELS_BF16_AMX };
const char *hd_kernels_text(enum hd_kernels kernels);     /* "library", "portable", "bf16", "bf16-amx" */

struct hd_device_spec {
	uint32_t nthreads;                /* T >= 1 */
	uint32_t first_core;              /* pinned to first_core .. +T-1 when `pin` */
	/* spin: helpers poll before they sleep (only while cores are not shared) */
	bool     pin, spin;
	enum hd_kernels kernels;
	uint64_t memory_limit_bytes;      /* 0: none */
	/* instruction set of own kernels: "avx2", ...; NULL or "auto": the widest there is */
	const char *path;
};

/* Where a leaf (the gradient of one virtual node) is added, tensor by tensor, as soon as the
 * tensor is complete: at most HD_MAX_FOLDS moves, the same for every tensor of the leaf.
 * dst and src are flat gradient buffers (layout.h); src NULL: the leaf itself. The moves are a chain, as
 * folds.h makes them: the source of the first is the leaf, that of each further one is the dst before it,
 * whose contents are undefined afterwards. */
enum { HD_MAX_FOLDS = 24 };
struct hd_fold {
	float *dst; const float *src;
	bool add;                         /* dst = dst + src (dst is the lower id), else a copy */
	/* 1 and up: instead of the pointer, the temporary buffer of this number, which lives only while one
	 * tensor of one run is folded */
	uint8_t dst_temp, src_temp;
};
enum { HD_MAX_TEMPS = 16 };

/* A wave: consecutive virtual nodes that one run computes together. Each is a *part*. A phase runs each node
 * of the graph for all parts before the next node: in one call where the kernel allows it (kernel.h,
 * rowwise). It folds the gradients of the parts in ascending order. */
enum { HD_MAX_WAVE = 64 };
struct hd_part { uint64_t rows; uint32_t vn; uint32_t nfolds; const struct hd_fold *fold; };

/* The arguments of a phase on one virtual node (or slice). Pointers are in the device's address space. */
struct hd_bind {
	uint64_t rows;                    /* of this slice; 0: nothing runs */
	struct hd_draw draw;
	const float *params;              /* flat, by layout */
	const float *buffers;             /* flat, by layout; NULL where the graph has none */
	const void *const *input;         /* [ninputs], by input index */
	uint8_t *arena;                   /* memplan.len_bytes */
	const struct hd_fold *fold;       /* nfolds moves after each complete gradient */
	uint32_t nfolds;
	/* nparts > 0: a wave; `rows`, draw.vn, draw.row0, fold and nfolds above are not read. Rows of part i
	 * lie program->part_rows x i rows behind those of part 0, in inputs and temporaries alike. Parts
	 * may have 0 rows: their gradient is +0.0. */
	const struct hd_part *part;
	uint32_t nparts;
	/* Run only nodes at positions [from, to) of the phase's order; `to` 0: up to the end. Those before
	 * `from` have run with the same arena. */
	uint32_t from, to;
	/* What these nodes make lies in the arena already, made elsewhere (engine/stretch.h): no kernel runs,
	 * gradients alone are folded. */
	bool made;
	/* program->temp_elems floats for each temporary buffer that the folds name */
	float *temp;
	/* B: called by the leader after the last fold of a parameter's gradient in this run; a device of
	 * no result need not. NULL: not needed. */
	void (*folded)(void *user, uint32_t grad);
	void *folded_user;
	/* Called by the leader when a node has been run for a part that has rows, before its gradient is
	 * folded, which may change it; bind->part is set. While it is asked for, no kernel folds by itself.
	 * Not for views, nor for what was made elsewhere; a device of no result need not. NULL: not
	 * needed. */
	void (*ran)(void *user, const struct hd_program *program, const struct hd_bind *bind,
		uint32_t inode, uint32_t ipart);
	void *ran_user;
};

enum hd_run_phase { HD_RUN_F, HD_RUN_B, HD_RUN_I, HD_RUN_W };

enum { HD_UPDATE_SLOTS = 3 };            /* two of the optimizer's, and the means */

/* An optimizer update of a range of the flat vectors; formulas: optim.h. Read only until the call returns. */
struct hd_update {
	uint32_t kind;                    /* enum hd_optim_kind */
	float *param; const float *grad; float *slot[HD_UPDATE_SLOTS];
	uint64_t len;                     /* elements; measure() takes the lengths of its segments */
	const struct hd_step_scalars *scalars;
};

/* A reduction of segments of flat vectors: first the joins, in order (dst = a + b, one addition per element;
 * dst may be a or b), then the sums of squares of `flat`, the result of the last join. Pointers are to the
 * begin of the vectors to which the offsets of the segments refer; they are aligned as a float is. */
struct hd_flat_join { float *dst; const float *a, *b; };
struct hd_reduction {
	const struct hd_flat_join *join; uint32_t njoins;
	const float *flat;
	/* elements between segments are not touched */
	const struct hd_segment *segment; uint32_t nsegments;
	/* [nsegments] sums of squares, added in the order of lanes.h; NULL: joins only */
	double *partial;
};

struct hd_device_ops {
	const char *name, *about;
	uint32_t powers;
	/* bytes of the private object; the first member is struct hd_device */
	size_t   size;
	/* Opens; may block; called once. On failure nothing is left open. */
	enum hd_err (*open)(struct hd_device *device, const struct hd_device_spec *spec,
		struct hd_diag *diag);
	/* Allocates device memory, 64-byte aligned, zeroed; give() frees it. Not in the step loop. */
	enum hd_err (*take)(struct hd_device *device, uint64_t len_bytes, void **at, struct hd_diag *diag);
	void        (*give)(struct hd_device *device, void *at, uint64_t len_bytes);
	/* Host to device and back. Asynchronous: the host's bytes must stay until wait(*token). */
	enum hd_err (*write)(struct hd_device *device, void *to, const void *from, uint64_t len_bytes,
		uint64_t *token);
	enum hd_err (*read)(struct hd_device *device, void *to, const void *from, uint64_t len_bytes,
		uint64_t *token);
	/* Prepares kernels for every (op, shape) of the program. May be slow; the program must outlive the
	 * device's use of it. */
	enum hd_err (*load)(struct hd_device *device, const struct hd_program *program, struct hd_diag *diag);
	/* A program that was loaded, or half, is run no more. Others are not touched; takes one that was
	 * never loaded. */
	void (*unload)(struct hd_device *device, const struct hd_program *program);
	/* Does the node make the gradient of a parameter in no memory of the program, since its kernel folds
	 * it by itself? Of a program that is loaded. NULL: no kernel does. */
	bool (*folds)(struct hd_device *device, const struct hd_program *program, uint32_t inode);
	/* Runs a phase of one slice. Asynchronous. B also applies bind->fold to each complete gradient.
	 * A thread's first call may allocate what kernels keep per thread, one of 0 rows too. */
	enum hd_err (*run)(struct hd_device *device, const struct hd_program *program,
		enum hd_run_phase phase,
		const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag);
	/* dst = a + b, elementwise, over `len` floats; a may be dst. One addition per element, no
	 * contraction. */
	enum hd_err (*add)(struct hd_device *device, float *dst, const float *a, const float *b, uint64_t len,
		uint64_t *token,
		struct hd_diag *diag);
	enum hd_err (*reduce)(struct hd_device *device, const struct hd_reduction *reduction, uint64_t *token,
		struct hd_diag *diag);
	/* The first of two passes of optimizers that need norms per tensor (optim.h, unit TENSOR), over n
	 * segments: updates their slots, unless scalars->looks, and sums the squares of parameters and of
	 * update directions per
	 * segment (f64, order of lanes.h). Pointers of `update` are to whole flat vectors. */
	enum hd_err (*measure)(struct hd_device *device, const struct hd_update *update,
		const struct hd_segment *segment, uint32_t n,
		double *param_sumsq, double *move_sumsq, uint64_t *token, struct hd_diag *diag);
	/* The only pass of optimizers of unit ELEMENT; the second of unit TENSOR (scalars->ratio is that of
	 * the tensor). */
	enum hd_err (*update)(struct hd_device *device, const struct hd_update *update, uint64_t *token,
		struct hd_diag *diag);
	/* Blocks until everything up to `token` is done. */
	enum hd_err (*wait)(struct hd_device *device, uint64_t token, struct hd_diag *diag);
	/* Frees what open() and load() took. Idempotent; takes half-opened ones. */
	void        (*close)(struct hd_device *device);
};

struct hd_device {
	const struct hd_device_ops *ops;
	struct hd_device_spec spec;
	uint64_t scratch_bytes;           /* of all its threads, for the kernels that are loaded */
	const char *path;                 /* what `auto` chose: "avx512", "avx2", "portable", "none" */
};

extern const struct hd_device_ops *const hd_devices[];      /* ends with NULL: cpu, reference, null */

/* were the library's kernels built in? Asking for them without is HD_E_REFUSED */
bool hd_device_has_library(void);

HD_MUST_USE enum hd_err hd_device_create(struct hd_device **device, const char *kind,
	const struct hd_device_spec *spec, struct hd_diag *diag);
void hd_device_destroy(struct hd_device *device);            /* closes; takes NULL */

/* Hash of the outputs of every distinct (op, shape) of the program on fixed inputs, on one thread:
 * two devices with equal fingerprints give equal bits for this job. */
HD_MUST_USE enum hd_err hd_device_fingerprint(struct hd_device *device, const struct hd_program *program,
	struct hd_hash *fingerprint, struct hd_diag *diag);

#endif
