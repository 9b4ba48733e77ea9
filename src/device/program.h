/* program.h -- a graph made ready to run: order of nodes per phase, memory plan,
 * operands resolved for every number of rows that can occur.
 *
 * Made once per graph and run (training: forward and backward; evaluation:
 * forward only), shared read-only by all devices of a worker.
 *
 * 1. A job knows beforehand which slice sizes occur (full, the partial one, those
 *    of a ragged last step, evaluation's last block): one *variant* each, so that
 *    kernels are prepared before the first step.
 * 2. calls[variant][node] hold resolved extents; `at` of operands is filled per
 *    run from `where` by hd_program_bind(): base pointer plus offset.
 * 3. B lists all gradient nodes in graph order, I and W the same nodes by phase.
 *    The memory plan holds for B as one list and for I followed by W: values share
 *    bytes only if their lives are apart in both orders (memplan.h).
 * 4. draw.row0 of a bound call counts extent 0 of the op's first output: a value of
 *    k x rows starts at k * bind->draw.row0, so element 0 of a call is element
 *    row0 * (elems / dim[0]) of its virtual node.
 * 5. A program for waves of W virtual nodes holds the values of W parts: a value with rows (as its first
 *    extent) has those of all parts one after the other; one without has W copies; what depends on parameters
 *    and constants alone, and has no rows, exists once and is made once per run. */
#ifndef HD_DEVICE_PROGRAM_H
#define HD_DEVICE_PROGRAM_H

#include "graph/parcels.h"
#include "device/device.h"

enum hd_space { HD_IN_ARENA, HD_IN_PARAMS, HD_IN_INPUT, HD_IN_CONSTS, HD_IN_BUFFERS };
struct hd_where { uint8_t space; uint32_t index; uint64_t at_bytes; };      /* index: of the input */

enum { HD_MAX_VARIANTS = 8 };

enum hd_kind { HD_KIND_ROWS, HD_KIND_PART, HD_KIND_SHARED };      /* of a value, see 5 */

struct hd_program {
	const struct hd_graph *graph;     /* borrowed */
	const struct hd_layout *layout;   /* borrowed */
	struct hd_arena *arena;           /* borrowed: holds all below */
	uint32_t *order[4], norder[4];    /* by enum hd_run_phase: node indices */
	struct hd_memplan memory;
	struct hd_where *where;           /* [nvalues] */
	/* [nvalues] number of the gradient that this value is (hd_graph_grad()), or HD_NONE */
	uint32_t *grad_of_value;
	uint32_t nvariants;
	uint64_t rows[HD_MAX_VARIANTS];
	struct hd_call *calls[HD_MAX_VARIANTS];   /* [nnodes], operands without addresses */
	bool training;
	uint32_t max_parts;               /* W */
	uint64_t part_rows;               /* rows[0]: of a full part */
	uint8_t *kind;                    /* [nvalues] enum hd_kind */
	/* [nvalues] from a part's copy to the next one's; 0: shared, or one for all */
	uint64_t *part_bytes;
	/* [nnodes] reads and makes rows, so a rowwise kernel may take all parts in one call */
	bool *together;
	/* the largest parameter's elements, rounded up to HD_FLAT_ALIGN_ELEMS; 0: no training */
	uint64_t temp_elems;
	const bool *runs;                 /* [nnodes] is it in an order? NULL: all are */
};

/* A program whose nodes t devices of a rank run together, in one arena. part[j] has the nodes of device j in
 * its orders, all else is that of `whole`, which no device runs. Where the devices are groups on several
 * workers (graph/spread.h) it is that of one group: the arena has what the group has. */
struct hd_program_tensor {
	struct hd_program whole, *part;   /* [t] */
	uint32_t t;
	struct hd_tensor_list *list[4];   /* by enum hd_run_phase: [t] */
	struct hd_parcels parcels[4];     /* the same; of one group: none */
};
/* One of `ngroups` groups; `at` says which group has what. Borrowed. */
struct hd_program_group { const struct hd_spread_stage *at; uint32_t group, ngroups; };

/* `rows` must hold the largest first; duplicates and zeros are dropped. */
HD_MUST_USE enum hd_err hd_program_make(struct hd_program *program, const struct hd_graph *graph,
	const struct hd_layout *layout, bool training, const uint64_t *rows, uint32_t nrows,
	struct hd_arena *arena, struct hd_diag *diag);
/* The same for waves of at most `nparts` slices. */
HD_MUST_USE enum hd_err hd_program_make_waves(struct hd_program *program, const struct hd_graph *graph,
	const struct hd_layout *layout, bool training, const uint64_t *rows, uint32_t nrows, uint32_t nparts,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of a graph in so many shards, for t devices. t 1: part[0] is the program as one device runs it, and there
 * are no lists. `group` NULL: the devices are of one worker. */
HD_MUST_USE enum hd_err hd_program_make_tensor(struct hd_program_tensor *tensor, const struct hd_graph *graph,
	const struct hd_layout *layout, const uint64_t *rows, uint32_t nrows, uint32_t nshards, uint32_t t,
	const struct hd_program_group *group, struct hd_arena *arena, struct hd_diag *diag);
/* What the value takes in the arena, of all parts of a wave. */
uint64_t hd_program_value_bytes(const struct hd_program *program, uint32_t value);
/* HD_NONE: not prepared */
uint32_t hd_program_variant(const struct hd_program *program, uint64_t rows);

/* Fills `call` for node `inode` of a variant with addresses from `bind`. For tests. */
void hd_program_bind(const struct hd_program *program, uint32_t variant, uint32_t inode,
	const struct hd_bind *bind, struct hd_call *call);
void *hd_program_value(const struct hd_program *program, const struct hd_bind *bind, uint32_t value);
/* The same of part `ipart` of a wave. */
void hd_program_bind_part(const struct hd_program *program, uint32_t variant, uint32_t inode, uint32_t ipart,
	const struct hd_bind *bind, struct hd_call *call);
void *hd_program_part(const struct hd_program *program, const struct hd_bind *bind, uint32_t value,
	uint32_t ipart);
/* Makes the call of a full part one over the rows of `nparts`; the node is `together`. */
void hd_program_widen(const struct hd_program *program, uint32_t inode, uint32_t nparts,
	struct hd_call *call);

/* What a node computes on so many rows: operands without addresses. */
struct hd_call hd_call_of(const struct hd_graph *graph, uint32_t inode, uint64_t rows);
/* Same op, attributes and shapes: one prepared kernel serves both. */
bool hd_call_same(const struct hd_call *a, const struct hd_call *b);

/* Sums of op costs over a phase: FLOPs and bytes of one slice of `rows` rows. */
struct hd_cost hd_program_cost(const struct hd_program *program, enum hd_run_phase phase, uint64_t rows);

#endif
