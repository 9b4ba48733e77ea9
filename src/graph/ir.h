/* ir.h -- a model as data: values and nodes in arrays, no pointers, no code.
 *
 * Builders (models/), the text parser and importers make a graph; autodiff adds
 * the gradient nodes; passes rewrite it; plan makers read costs from it; devices
 * run it. Everything prints as text and parses back to the same bytes (text.h).
 *
 * 1. A node and a value are fixed-size and refer to others by index. Node order
 *    is a topological order and the order of execution.
 * 2. A value is made once (by the node `node`, or it is an input, parameter or
 *    constant) and never changes.
 * 3. Extents are fixed or a multiple of the *rows* of the slice of the batch that
 *    the graph is run on; the same graph serves every number of rows.
 * 4. A node belongs to one phase: F, I (gradient of an input) or W (gradient of a
 *    weight); so "B = I followed by W" holds by construction.
 * 5. A buffer is state that no gradient reaches (running statistics): read like a
 *    parameter, moved once per step by the record that names it (hd_running).
 * 6. A node belongs to one stage. Fusion never joins nodes of two stages, and
 *    nothing else depends on stages, so cutting a graph does not change its bits.
 * 7. The gradient of a parameter is one value, or several *parts*, one a use (autodiff.h): the first is the
 *    `grad` of its value, the others are in part[]. Each part is summed over virtual nodes on its own; then
 *    the sums are added, in the order of the parts.
 * 8. A node may be of one shard of the model (shard.h). Passes and autodiff keep that: a gradient node is of
 *    the shard of its forward node. It says where a node may run (tensor.h), and nothing depends
 *    on it.
 *
 * Ownership: all arrays lie in the arena the graph was made in; they grow by
 * doubling inside it. Threads: a finished graph is read-only and shared. */
#ifndef HD_GRAPH_IR_H
#define HD_GRAPH_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
	HD_MAX_DIMS = 6,
	HD_MAX_IN   = 8,
	HD_MAX_OUT  = 4,
	HD_MAX_NODES = 1 << 20,           /* far above any model; bounds hostile files */
	HD_MAX_NAME = 128,
	HD_MAX_PARAMS = 1 << 16,
	HD_MAX_BUFFERS = 1 << 14,
	HD_MAX_ENDS = 64,                 /* inputs, and outputs */
	HD_MAX_STAGES = 1 << 12,
	HD_MAX_SHARDS = 1024,
	HD_MAX_USES_APART = 4,            /* of a parameter whose gradient has parts */
	HD_MAX_GRAD_PARTS = 1 << 14,      /* further ones, of all parameters */
	/* constants are tables and scalars; big tensors are parameters or inputs */
	HD_MAX_CONST_BYTES = 1 << 26,
	HD_MAX_EXTENT = INT32_MAX,        /* what every kernel library takes */
};
#define HD_NONE UINT32_MAX

/*        id    text   bytes; numbers are those of checkpoints, never reused */
#define HD_DTYPES(X)         \
	X(F32, 1, "f32", 4)  \
	X(F64, 2, "f64", 8)  \
	X(I32, 3, "i32", 4)  \
	X(I64, 4, "i64", 8)  \
	X(U8,  5, "u8",  1)

enum hd_dtype {
#define X(id, number, text, bytes) HD_##id = (number),
	HD_DTYPES(X)
#undef X
};
size_t hd_dtype_bytes(enum hd_dtype dtype);
const char *hd_dtype_text(enum hd_dtype dtype);
bool hd_dtype_parse(const char *text, enum hd_dtype *dtype);

enum hd_value_kind {
	HD_TEMP,        /* made by a node */
	HD_INPUT,       /* filled from the data set, field of the same name */
	HD_PARAM,       /* learned; f32; one per tensor of the checkpoint */
	HD_CONST,       /* `data` is its offset in the constant pool */
	HD_BUFFER,      /* state that is not learned; f32; a tensor of the checkpoint too */
};

/* An extent > 0 is fixed; an extent -k stands for k times the rows. 0 does not exist. */
struct hd_value {
	int64_t  dim[HD_MAX_DIMS];
	uint8_t  rank, dtype, kind;
	uint8_t  pad[5];
	uint32_t node;                    /* maker of a TEMP, else HD_NONE */
	uint32_t name;                    /* offset in the name pool, HD_NONE: unnamed */
	/* CONST: offset in the pool; PARAM, INPUT, BUFFER: its index in param[], input[], buffer[] */
	uint32_t data;
	/* PARAM: value that holds its complete gradient (its first part) after autodiff, else HD_NONE */
	uint32_t grad;
};

enum hd_phase { HD_PHASE_F, HD_PHASE_I, HD_PHASE_W };

/* Attributes of an op: names and meaning in its row of the op table. */
struct hd_attr {
	int32_t i[10];
	float   f[4];
};

struct hd_node {
	uint16_t op;                      /* enum hd_op (op.h) */
	uint8_t  nin, nout;
	uint8_t  phase;
	uint8_t  pad;
	uint16_t stage;
	uint32_t in[HD_MAX_IN];
	uint32_t out;                     /* outputs are the values out .. out+nout-1 */
	uint32_t of;                      /* gradient nodes: the forward node, else HD_NONE */
	/* random ops: the op id of philox.h; the gradient has its forward's */
	uint32_t key;
	uint16_t shard;                   /* 1 + the shard that it is of (shard.h); 0: of none */
	uint16_t unused;
	struct hd_attr attr;
};

/*        id       text       meaning of `scale` */
#define HD_INITS(X)                                        \
	X(ZEROS,   "zeros",   "unused")                    \
	X(ONES,    "ones",    "unused")                    \
	X(NORMAL,  "normal",  "standard deviation")        \
	X(UNIFORM, "uniform", "bound: uniform in [-scale, scale)")

enum hd_init_kind {
#define X(id, text, about) HD_INIT_##id,
	HD_INITS(X)
#undef X
};

/* Which tensor of the model a parameter is, or is a slice of (slices.h): `number` of `n` of a tensor that has
 * `extent` along `axis`. n 1: all of it, and the rest says nothing. `tensor`: its number among the
 * parameters of the model before it came in shards. */
struct hd_slice { uint32_t tensor, name, extent; uint16_t number, n; uint8_t axis, blocks; };

/* A frozen one is read and kept, and never learned: no gradient, no optimizer slots. */
struct hd_param { uint32_t value; uint32_t init; float scale; bool frozen; struct hd_slice slice; };

/* A further part of a parameter's gradient. value HD_NONE: another graph makes it (stages.h). */
struct hd_grad_part { uint32_t param, value; };

/* A buffer begins as zeros or ones. */
struct hd_buffer { uint32_t value, init; };

/* Running statistics: after each step the buffers `mean` and `variance` [C] are moved towards those of the
 * whole batch, by `momentum`; `moments` f64 [3,C] (n, mean, sum of squared distances from it; made by a
 * forward node) is what one part of the batch contributes. */
struct hd_running { uint32_t mean, variance, moments; float momentum; };

/* What a run reads out: "loss" (sum over the rows, f64 [1]), "weight" (f64 [1]),
 * "correct", "loss_1" to "loss_4" (f64 [1], optional), "logits" (optional, what predict writes). */
struct hd_output { uint32_t name, value; };

struct hd_graph {
	struct hd_arena  *arena;          /* borrowed; everything below lies in it */
	struct hd_value  *value;  uint32_t nvalues, value_cap;
	struct hd_node   *node;   uint32_t nnodes, node_cap;
	struct hd_param  *param;  uint32_t nparams, param_cap;       /* order of the flat layout */
	struct hd_buffer *buffer; uint32_t nbuffers, buffer_cap;     /* order of their flat layout */
	struct hd_running *running; uint32_t nrunning, running_cap;
	struct hd_grad_part *part; uint32_t nparts, part_cap;        /* by parameter, then last use first */
	uint32_t         *input;  uint32_t ninputs, input_cap;       /* value ids */
	struct hd_output *output; uint32_t noutputs, output_cap;
	char             *names;  uint32_t names_len, names_cap;
	uint8_t          *consts; uint32_t consts_len, consts_cap;
	uint32_t          name;           /* of the graph */
	uint32_t          nforward;       /* nodes before autodiff; == nnodes until then */
	/* keys given out: a random op's key is its rank among them, whatever passes do later */
	uint32_t          nrandom;
};

void hd_graph_init(struct hd_graph *graph, struct hd_arena *arena);

/* Builders. They fail only by HD_E_NOMEM or by a rule of the op (hd_fail says which). Names are copied. */
HD_MUST_USE enum hd_err hd_graph_input(struct hd_graph *graph, const char *name, enum hd_dtype dtype,
	uint8_t rank, const int64_t *dim, uint32_t *value, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_param(struct hd_graph *graph, const char *name, uint8_t rank,
	const int64_t *dim,
	enum hd_init_kind init, float scale, uint32_t *value, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_buffer(struct hd_graph *graph, const char *name, uint8_t rank,
	const int64_t *dim,
	enum hd_init_kind init, uint32_t *value, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_running(struct hd_graph *graph, const struct hd_running *running,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_part(struct hd_graph *graph, uint32_t param, uint32_t value,
	struct hd_diag *diag);
/* Puts parts into their order: by parameter; those of one parameter stay as they were made. */
HD_MUST_USE enum hd_err hd_graph_sort_parts(struct hd_graph *graph, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_const(struct hd_graph *graph, enum hd_dtype dtype, uint8_t rank,
	const int64_t *dim,
	const void *data, uint32_t *value, struct hd_diag *diag);
/* Shapes of the outputs come from the op's shape rule. `out` receives the first output. */
HD_MUST_USE enum hd_err hd_graph_node(struct hd_graph *graph, uint16_t op, uint8_t nin, const uint32_t *in,
	const struct hd_attr *attr, uint16_t stage, uint32_t *out, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_output(struct hd_graph *graph, const char *name, uint32_t value,
	struct hd_diag *diag);
/* Stages by cuts: stage i+1 begins at node first[i] (ascending). Before autodiff. For tests. */
HD_MUST_USE enum hd_err hd_graph_cut(struct hd_graph *graph, uint32_t ncuts, const uint32_t *first,
	struct hd_diag *diag);

/* For passes and readers. Shapes of a node's outputs by its rules, attributes checked; operands must
 * exist. */
HD_MUST_USE enum hd_err hd_graph_name(struct hd_graph *graph, const char *name, uint32_t *at,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_graph_shapes(const struct hd_graph *graph, const struct hd_node *node,
	struct hd_value out[HD_MAX_OUT], struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_value_check(const struct hd_value *value, struct hd_diag *diag);

const char *hd_graph_text_of(const struct hd_graph *graph, uint32_t name);         /* "" for HD_NONE */
uint32_t hd_graph_find_output(const struct hd_graph *graph, const char *name);     /* value id or HD_NONE */
/* param index or HD_NONE */
uint32_t hd_graph_find_param(const struct hd_graph *graph, const char *name);
/* buffer index or HD_NONE */
uint32_t hd_graph_find_buffer(const struct hd_graph *graph, const char *name);
/* input index or HD_NONE */
uint32_t hd_graph_find_input(const struct hd_graph *graph, const char *name);

/* Gradients are numbered: first the parameters' (their first parts), then the further parts. */
static inline uint32_t hd_graph_ngrads(const struct hd_graph *graph)
{
	return graph->nparams + graph->nparts;
}
/* its value, HD_NONE: there is none here; the parameter that it is of */
uint32_t hd_graph_grad(const struct hd_graph *graph, uint32_t grad);
uint32_t hd_graph_grad_param(const struct hd_graph *graph, uint32_t grad);

/* Elements and bytes of a value when the graph runs on `rows` rows. Checked when the graph is verified for
 * its largest rows. */
uint64_t hd_value_elems(const struct hd_value *value, uint64_t rows);
uint64_t hd_value_bytes(const struct hd_value *value, uint64_t rows);

/* Extents multiplied, in their own encoding: -k is k times the rows. 0: two extents of rows, or above
 * 2^42. */
int64_t hd_dims_product(const int64_t *dim, uint32_t rank);
bool hd_dims_same(const struct hd_value *a, const struct hd_value *b);

/* "f32 [*,128]" for messages; use as hd_value_shape(v).at */
struct hd_shape_text { char at[128]; };
struct hd_shape_text hd_value_shape(const struct hd_value *value);
static inline int64_t hd_extent(int64_t dim, uint64_t rows) { return dim < 0 ? -dim * (int64_t)rows : dim; }

#endif
