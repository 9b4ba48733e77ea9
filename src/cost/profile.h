/* profile.h -- what the nodes of a model cost on one device: a value, and its two files.
 *
 * Made by the profiler or read from a file; the partitioner and the planners plan by it.
 * Files: our own JSON ("heddle-profile", version 1) and the graph.txt of the PipeDream
 * program, which is read only.
 *
 * 1. Times are whole nanoseconds, sizes whole bytes. Times and sizes of all nodes together stay
 *    below 2^53, so that every sum of them is exact as an integer and as a double.
 * 2. Nodes stand in the order of the file, with ids that differ; edges refer to them by index, differ,
 *    and make no cycle. At least one node has no edge in.
 * 3. f, i and w are forward, backward for the input and backward for the weights; backward is i + w.
 *    Of graph.txt, which has one backward time, i takes the larger half and w the rest when the node
 *    has parameters, else i takes all: `split_assumed` says so.
 * 4. A profile that was read prints to a JSON text that reads back to the same bytes. Members that
 *    this version does not know are left out and listed in `ignored`.
 * 5. What a file breaks is HD_E_INPUT with file:line (graph.txt) or the path of the value (JSON).
 *
 * Ownership: everything lies in the arena given. Pure. */
#ifndef HD_COST_PROFILE_H
#define HD_COST_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

enum {
	HD_PROFILE_NODES = 16384,                 /* ancestors are bit sets: 32 MiB of them */
	HD_PROFILE_EDGES = 1 << 18,
	HD_PROFILE_OUTS = 1 << 10,                /* tensors of one node */
	HD_PROFILE_LINKS = 64,
	HD_PROFILE_BYTES = 32 << 20,              /* of a file */
};
#define HD_PROFILE_SUM_MAX ((int64_t)1 << 53)     /* rule 1 */

/*        id         name                                                          */
#define HD_PROFILE_METHODS(X)                                                       \
	X(MEASURED, "measured")  /* on the device, by `samples` runs */              \
	X(IMPORTED, "imported")  /* from graph.txt */                                \
	X(MODELLED, "modelled")  /* from counts of operations */

enum hd_profile_method {
#define X(id, name) HD_PROFILE_##id,
	HD_PROFILE_METHODS(X)
#undef X
	HD_NPROFILE_METHODS
};

struct hd_profile_cost { int64_t p50_ns, mean_ns, sd_ns, min_ns; uint64_t n; };      /* n 0: unknown */

struct hd_profile_node {
	/* tied: name of the group that shares its parameters, "" none */
	const char *id, *op, *tied;
	struct hd_profile_cost f, i, w;
	int64_t r_ns;                             /* to compute its output again; -1: as f */
	int64_t *out; uint32_t nouts;             /* bytes of each output tensor */
	/* bytes of parameters, activations kept, workspace, optimizer state */
	int64_t param, saved, work, opt;
	double act_w;                             /* share of `saved` that w needs */
	bool recompute_ok;
};

struct hd_profile_edge { uint32_t from, to, out; };      /* output `out` of `from` */
struct hd_profile_link { uint32_t level; const char *kind; int64_t latency_ns; double bytes_per_s;
	bool duplex; };

struct hd_profile {
	enum hd_profile_method method;
	bool split_assumed;                       /* rule 3 */
	/* hash of the job's normalised graph; 0: of no graph of ours */
	uint64_t graph;
	const char *device_kind, *device_name, *isa, *dtype;      /* "" unknown */
	uint32_t threads, vn_size, tensor_shards; /* vn_size 0: unknown */
	uint64_t warmup, samples;
	double step_ns_per_byte, sum_ns_per_byte; /* of the optimizer; of adding two gradients */
	/* a pair over the sum of its halves; compute during a transfer over without; 0: not measured */
	double ovl, comm_tax;
	struct hd_profile_node *node; uint32_t nnodes;
	struct hd_profile_edge *edge; uint32_t nedges;
	struct hd_profile_link *link; uint32_t nlinks;
	const char *ignored;                      /* members of the file left out, "a, b"; "" none */
};

/* A text whose first character that is no blank is { or [ is JSON, else graph.txt. */
HD_MUST_USE enum hd_err hd_profile_read(struct hd_profile *profile, const char *text, size_t len,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_profile_parse(struct hd_profile *profile, const char *text, size_t len,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_profile_import(struct hd_profile *profile, const char *text, size_t len,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_profile_print(const struct hd_profile *profile, struct hd_text *text);      /* JSON, one line */

const char *hd_profile_method_name(enum hd_profile_method method);
static inline int64_t hd_profile_node_ns(const struct hd_profile_node *node) { return node->f.p50_ns +
	node->i.p50_ns + node->w.p50_ns; }

#endif
