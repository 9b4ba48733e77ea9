/* import.h -- the frame of the importer, for the files that lower ops.
 *
 * Every name of the ONNX graph is a *value* (struct hd_onnx_val): known to the importer
 * (host.h), or a value of our graph, or bad. Nodes are taken in the file's order, which is
 * topological: what is known is folded, what is a pattern's inside is left out, all else
 * goes to the function of its row (ops.c), which adds nodes of ours.
 *
 * 1. A row's function answers HD_E_INPUT with the reason in call->why when it cannot: the
 *    node is noted, its outputs are bad, and the import goes on to find all others.
 * 2. `dim` of a value is ONNX's (a scalar has rank 0); our graph has [1] for it.
 * 3. A parameter comes into being when it is first read.
 *
 * Private to graph/onnx. Memory: what outlives the import in graph->arena, else file.arena. */
#ifndef HD_GRAPH_ONNX_IMPORT_H
#define HD_GRAPH_ONNX_IMPORT_H

#include "graph/onnx/host.h"
#include "graph/op.h"

enum { HD_ONNX_MAX_IN = 64, HD_ONNX_MAX_OUT = 32 };

enum hd_onnx_kind { HD_VAL_NONE, HD_VAL_BAD, HD_VAL_GRAPH, HD_VAL_HOST, HD_VAL_INIT };

struct hd_onnx_val {
	const char *name;                 /* NULL: an empty place of the table */
	uint8_t kind, rank;
	/* owners.c: enum hd_onnx_role of an initializer, and how it is read */
	uint8_t role, read_as;
	int64_t dim[HD_ONNX_DIMS];        /* -k: k times the rows */
	int32_t type;
	uint32_t value;                   /* GRAPH, and INIT once it is a parameter; HD_NONE: not yet made */
	/* a transposed matrix: the value it is the transpose of, else HD_NONE */
	uint32_t turned;
	/* index of the node that makes it, HD_NONE; how many read it (outputs count) */
	uint32_t maker, nuses;
	/* owners.c: what keeps it, how many copies have names; signature.c: 1 + its entry, 0: none */
	uint32_t first, copies, said;
	/* norm.c: the values [rows..] this scalar sums or averages, else HD_NONE */
	uint32_t sum_of, mean_of;
	struct hd_host_tensor *host;
	const struct hd_onnx_init *init;
};

/* What the file says of an initializer; nothing: floats with extents are parameters, all else are
 * constants. */
enum hd_onnx_role { HD_ROLE_UNSAID, HD_ROLE_PARAM, HD_ROLE_CONST };

struct hd_onnx_match;                     /* pattern.h */

/* An If whose branches lie in the list of nodes before it: [0] else, [1] then. */
struct hd_onnx_branch { const Onnx__NodeProto *node; size_t from[2], n[2]; };

struct hd_importer {
	struct hd_graph *graph;
	struct hd_onnx_file file;
	const struct hd_onnx_opts *opts;
	struct hd_onnx_val *val; uint32_t val_cap;                 /* open addressing by name */
	struct hd_onnx_match *match;      /* [n_node] */
	struct hd_onnx_branch *branch; uint32_t nbranches;
	struct hd_onnx_weight *weight; uint32_t weight_cap;        /* by parameter */
	struct hd_onnx_weight *buffer; uint32_t buffer_cap;        /* by buffer */
	int64_t batch;                    /* rows that were traced, 0: named or unknown */
	uint32_t nbad;
	uint64_t copied;                  /* owners.c: bytes that copies will take */
	struct hd_text bad;               /* "; "-joined, for the message */
};

struct hd_onnx_call {
	struct hd_importer *im;
	const Onnx__NodeProto *node;
	const struct hd_onnx_match *match;        /* not NULL: the op that a pattern became */
	struct hd_onnx_val *in[HD_ONNX_MAX_IN];   /* NULL: absent */
	uint32_t nin;
	struct hd_diag why;
};

typedef enum hd_err hd_onnx_lower(struct hd_onnx_call *call);
/* `since`: the first opset in which the op means what it means now, where that is before 7 (0: 7). */
struct hd_onnx_op { const char *name; hd_onnx_lower *lower; uint8_t since; };
const struct hd_onnx_op *hd_onnx_op_find(const char *name);      /* NULL: is not read */

/* ---- for lowering */

__attribute__((format(printf, 2, 3))) enum hd_err hd_onnx_no(struct hd_onnx_call *call, const char *fmt, ...);

static inline struct hd_onnx_val *hd_onnx_in(const struct hd_onnx_call *call,
	uint32_t i) { return i < call->nin ? call->in[i] : NULL; }
/* Input i as a value of our graph: a parameter or constant is made when it is first asked for; i32 for
 * integers. */
HD_MUST_USE enum hd_err hd_onnx_value(struct hd_onnx_call *call, uint32_t i, uint32_t *value);
HD_MUST_USE enum hd_err hd_onnx_value_of(struct hd_onnx_call *call, struct hd_onnx_val *val, uint32_t *value);
/* Input i as a buffer with the file's values (of the file: a float initializer), else as any value. */
HD_MUST_USE enum hd_err hd_onnx_buffer(struct hd_onnx_call *call, uint32_t i, uint32_t *value);
/* Input i as a known tensor; NULL: it is not known (or absent). A float initializer is known here too. */
const struct hd_host_tensor *hd_onnx_known(struct hd_onnx_call *call, uint32_t i);
/* A single known float of any shape. */
bool hd_onnx_number(struct hd_onnx_call *call, uint32_t i, double *number);
/* Integers of attribute `name`, or of input i (NULL: no such attribute, HD_NONE: no such input); *n 0 and
 * *given false: absent. */
HD_MUST_USE enum hd_err hd_onnx_ints(struct hd_onnx_call *call, const char *name, uint32_t i,
	struct hd_sym *at, uint32_t cap, uint32_t *n, bool *given);

/* Adds a node of ours; a broken rule becomes the reason. */
HD_MUST_USE enum hd_err hd_onnx_node(struct hd_onnx_call *call, enum hd_op op, uint32_t nin,
	const uint32_t *in, struct hd_attr attr, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_node1(struct hd_onnx_call *call, enum hd_op op, uint32_t a,
	struct hd_attr attr, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_node2(struct hd_onnx_call *call, enum hd_op op, uint32_t a, uint32_t b,
	struct hd_attr attr, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_reshape(struct hd_onnx_call *call, uint32_t value, uint32_t rank,
	const int64_t *dim, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_float_const(struct hd_onnx_call *call, double number, uint32_t *value);
const struct hd_value *hd_onnx_shape(const struct hd_onnx_call *call, uint32_t value);

/* Output k of the node. */
HD_MUST_USE enum hd_err hd_onnx_put(struct hd_onnx_call *call, uint32_t k, uint32_t value, uint32_t rank,
	const int64_t *dim);
/* extents of the value itself */
HD_MUST_USE enum hd_err hd_onnx_put_like(struct hd_onnx_call *call, uint32_t k, uint32_t value);
HD_MUST_USE enum hd_err hd_onnx_put_host(struct hd_onnx_call *call, uint32_t k, struct hd_host_tensor *host);
/* NULL: the node has no such output */
struct hd_onnx_val *hd_onnx_out(struct hd_onnx_call *call, uint32_t k);

struct hd_onnx_val *hd_onnx_find(const struct hd_importer *im, const char *name);      /* NULL: unknown */
struct hd_onnx_val *hd_onnx_note(struct hd_importer *im, const char *name);            /* made if it is new */
/* an initializer that is no parameter */
bool hd_onnx_is_constant(const struct hd_onnx_val *v);

/* A known extent as ours; false: it is not one. */
static inline bool hd_onnx_extent(struct hd_sym s, int64_t *dim)
{
	*dim = s.rows ? -s.rows : s.a;
	return s.rows ? s.a == 0 && s.rows > 0 : s.a > 0;
}

/* shape.c, for the others */
HD_MUST_USE enum hd_err hd_onnx_permute(struct hd_onnx_call *call, uint32_t value, uint32_t rank,
	const uint32_t *perm, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_axis_last(struct hd_onnx_call *call, uint32_t value, uint32_t rank,
	uint32_t axis, bool back, uint32_t *out);
HD_MUST_USE enum hd_err hd_onnx_indices(struct hd_onnx_call *call, uint32_t i, int64_t extent,
	uint32_t *value);
HD_MUST_USE enum hd_err hd_onnx_axes(struct hd_onnx_call *call, uint32_t rank, uint32_t *set, uint32_t *n,
	bool *given);

/* attention.c: where `weights` is a softmax of scores, attention as one op: `y` like v; HD_NONE: it is
 * none. */
HD_MUST_USE enum hd_err hd_onnx_attention(struct hd_onnx_call *call, uint32_t weights, uint32_t v,
	uint32_t *y);

/* Takes node `at` of the list; what cannot be had is noted and its outputs are bad. */
HD_MUST_USE enum hd_err hd_onnx_take(struct hd_importer *im, size_t at, struct hd_diag *diag);

/* branches.c: the nodes of branches into the list, before anything is noted of it; out of the walk. */
HD_MUST_USE enum hd_err hd_onnx_branches(struct hd_importer *im, struct hd_diag *diag);
void hd_onnx_leave_branches(struct hd_importer *im);

/* ---- the families */
hd_onnx_lower hd_onnx_gemm, hd_onnx_matmul, hd_onnx_pad;                      /* dense.c */
hd_onnx_lower hd_onnx_conv, hd_onnx_conv_transpose;                           /* conv.c */
hd_onnx_lower hd_onnx_maxpool, hd_onnx_avgpool, hd_onnx_global_avgpool,
	hd_onnx_global_maxpool;                                               /* pools.c */
hd_onnx_lower hd_onnx_gather_nd;                                              /* gathers.c */
hd_onnx_lower hd_onnx_if;                                                     /* branches.c */
hd_onnx_lower hd_onnx_resize;                                                 /* resize.c */
hd_onnx_lower hd_onnx_angle, hd_onnx_lrn;                                     /* angles.c */
hd_onnx_lower hd_onnx_act, hd_onnx_clip, hd_onnx_pow, hd_onnx_binary, hd_onnx_variadic,
	hd_onnx_not, hd_onnx_where, hd_onnx_gelu,
	hd_onnx_cast, hd_onnx_identity, hd_onnx_dropout;                      /* map.c */
hd_onnx_lower hd_onnx_reshape_op, hd_onnx_flatten, hd_onnx_squeeze, hd_onnx_unsqueeze, hd_onnx_shape_op,
	hd_onnx_size, hd_onnx_constant,
	/* shape.c */
	hd_onnx_transpose, hd_onnx_gather, hd_onnx_slice_op, hd_onnx_split, hd_onnx_concat, hd_onnx_expand,
	hd_onnx_filled;
hd_onnx_lower hd_onnx_reduce, hd_onnx_softmax, hd_onnx_layernorm, hd_onnx_batchnorm, hd_onnx_instancenorm,
	hd_onnx_groupnorm,
	hd_onnx_argmax, hd_onnx_xent,
	hd_onnx_nll;                                                          /* norm.c */
hd_onnx_lower hd_onnx_function, hd_onnx_prelu, hd_onnx_xor, hd_onnx_mod, hd_onnx_reduce_of, hd_onnx_hardmax,
	hd_onnx_one_hot,
	hd_onnx_gather_elements, hd_onnx_scatter_elements, hd_onnx_scatter_nd, hd_onnx_tile,
	hd_onnx_depth_space, hd_onnx_mean, hd_onnx_einsum,
	hd_onnx_eye, hd_onnx_mvn;                                             /* made.c */
hd_onnx_lower hd_onnx_recurrent;                                              /* recurrent.c */

/* ends.c: inputs before, outputs and loss after the nodes. */
HD_MUST_USE enum hd_err hd_onnx_inputs(struct hd_importer *im, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_onnx_outputs(struct hd_importer *im, struct hd_diag *diag);

#endif
