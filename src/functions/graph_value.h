/* graph_value.h -- what an epoch of a whole graph takes and costs on plain machines, alone and with
 * functions: value = 1 / (seconds x dollars), of the graphs whose values are published.
 *
 * `heddle simulate graph` measures the rates of a core and prints what comes of them beside what was
 * published.
 *
 * 1. Played is one machine of `machines` alike, one synchronous epoch: each interval goes through the phases
 *    of the model in order (plan/separate.h). Work along edges is on cores, rows are sent over the machine's
 *    link, dense work is where it ends first, on a core or at a function. A phase that `waits` begins when
 *    the rows of all intervals were sent. What may begin first does; of equals work along edges, then the
 *    earlier phase, then the lower interval.
 * 2. A call holds its slot for invoke_ms, call_ms, its rows over the network and its products; all but the
 *    first is billed, by the granularity of the price. Its rows go over the machine's link, too.
 * 3. Rows of other machines that one reads: a vertex has edges / vertices neighbours, each on that machine by
 *    chance cut / machines (cut 1: a random split). Every machine has equal shares of vertices and edges.
 * 4. The number of slots is the one of 1, 2, 4, ... that is worth most; all machines together have at most
 *    `concurrent`.
 * 5. Not in it: sums of weight gradients, starts of instances, memory, cores that share one memory, epochs
 *    that overlap, stale rows. A core of a machine, a core of a function and the measured one are as fast.
 *
 * Ownership: scratch is of the caller's arena. Pure. */
#ifndef HD_FUNCTIONS_GRAPH_VALUE_H
#define HD_FUNCTIONS_GRAPH_VALUE_H

#include "base/arena.h"
#include "functions/bill.h"

enum { HD_GVAL_PHASES = 24, HD_GVAL_CORES = 64, HD_GVAL_SLOTS = 256, HD_GVAL_LAYERS = 2 };

enum hd_gval_model { HD_GVAL_GCN, HD_GVAL_GAT, HD_GVAL_NMODELS };
extern const char *const hd_gval_models[HD_GVAL_NMODELS];

/* A graph: directed edges; columns of the input, the hidden layer and the output. */
struct hd_gval_graph { const char *name; double vertices, edges; uint32_t width[HD_GVAL_LAYERS + 1]; };
/* A kind of machine; link in bytes/s. */
struct hd_gval_machine { const char *name; uint32_t cores; double usd_h, link; };
/* A published run: seconds and dollars on CPUs alone and with functions, and the ratio of values. */
struct hd_gval_run {
	enum hd_gval_model model;
	struct hd_gval_graph graph;
	struct hd_gval_machine machine;
	uint32_t machines;
	double cpu_s, cpu_usd, functions_s, functions_usd, ratio;
};
/* All of them; ends with a graph without name. */
extern const struct hd_gval_run hd_gval_runs[];

/* What is measured of a core (columns of edges gathered per second without and with weights, weights of edges
 * made per second, FLOP/s), and what is given. */
/*        name             least  otherwise most; otherwise 0: it is measured */
#define HD_GVAL_RATES(X) \
	X(gather_per_s,     1,     0,        1e15) \
	X(weighted_per_s,   1,     0,        1e15) \
	X(softmax_per_s,    1,     0,        1e15) \
	X(flops_per_s,      1,     0,        1e18) \
	X(invoke_ms,        0,     10,       60000) /* until a warm function begins; not billed */ \
	X(call_ms,          0,     5,        60000) /* its connection; billed */ \
	X(function_bytes_s, 1,     75e6,     1e12) \
	X(memory_mb,        128,   1769,     10240) /* of a function: 1769 are one core */ \
	X(concurrent,       1,     1000,     1e6)   /* calls at once, of all machines */ \
	X(cut,              0,     0.25,     1)     /* edges between machines over those of a random split */
struct hd_gval_rates {
#define X(name, least, otherwise, most) double name;
	HD_GVAL_RATES(X)
#undef X
};

/* One phase, of each edge or row: columns summed without and with weights, weights made; FLOP; columns that
 * a function is given and gives back; columns sent to other machines. */
enum hd_gval_kind { HD_GVAL_EDGES, HD_GVAL_SEND, HD_GVAL_DENSE };
struct hd_gval_phase {
	enum hd_gval_kind kind;
	bool waits;
	double plain, weighted, softmax, flops;
	uint32_t in, out, sent;
};

/* The same as times of one interval on one core, over the link, and at a function: `call` of it is billed,
 * `rows` are seconds of the machine's link. */
struct hd_gval_task { enum hd_gval_kind kind; bool waits; double here, invoke, call, rows; };

/* An epoch of one machine; dense_s of core_s is dense work. calls[p] of phase p. */
struct hd_gval_played { double seconds, core_s, dense_s; uint64_t calls[HD_GVAL_PHASES]; };

/* Of all machines. */
struct hd_gval_priced { double seconds, usd; uint32_t slots; double calls; };
/* What comes of a run: on CPUs alone, with the number of slots that is worth most, the ratio of the values,
 * the dense share of the cores' work on CPUs alone, the time of calls over that of their work on a core. */
struct hd_gval_answer { struct hd_gval_priced cpu, functions; double ratio, dense, call_over_core; };

/* Phases of a model, their number. */
uint32_t hd_gval_phases(enum hd_gval_model model, const uint32_t width[], struct hd_gval_phase *phase);
/* Rows of other machines that one reads. */
double hd_gval_ghosts(const struct hd_gval_graph *graph, uint32_t machines, double cut);
/* HD_E_NOMEM, HD_E_INVAL: more of something than there can be. */
HD_MUST_USE enum hd_err hd_gval_play(const struct hd_gval_task *task, uint32_t ntasks, uint32_t intervals,
	uint32_t cores, uint32_t slots, struct hd_arena *arena, struct hd_gval_played *played,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_gval_answer(const struct hd_gval_run *run, const struct hd_gval_rates *rates,
	const struct hd_fn_price *price, struct hd_arena *arena, struct hd_gval_answer *answer,
	struct hd_diag *diag);
/* The least of 1, 2, 4, ... HD_GVAL_SLOWER by which products, here and at functions, are slower than in the
 * rates when functions begin to pay; 0: with none of them. */
enum { HD_GVAL_SLOWER = 1024 };
HD_MUST_USE enum hd_err hd_gval_pays_from(const struct hd_gval_run *run, const struct hd_gval_rates *rates,
	const struct hd_fn_price *price, struct hd_arena *arena, uint32_t *slower, struct hd_diag *diag);

#endif
