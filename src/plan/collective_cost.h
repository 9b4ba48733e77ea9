/* collective_cost.h -- what a sum of p ranks by each primitive is predicted to take, and which one to take.
 *
 * Users: `heddle bench comm` (fits and prints a table), the choice of `comm.primitive: auto`.
 *
 * Times are ns. A link class has five *costs*: alpha, the latency of a message; beta, ns a byte; gamma, ns to
 * add a byte; overhead, ns of each further message of one round; incast, by how much bytes are slower where
 * many send to one, at least 1. With n bytes,
	r partial sums a rank (1 if aligned) and f folds (collective.h):
 *
 *	direct               2 (alpha + (p-1) o) + (1+r) (p-1)/p n beta incast + (p r - 1)/p n gamma
 *	owner, s of them     2 (alpha + (p-1) o) + (1+r) p/s (p-1)/p n beta incast + (p r - 1)/s n gamma
 *	halving-doubling     F + 2 log2 q alpha + 2 (q-1)/q n beta + (q-1)/q n gamma
 *	recursive-doubling   F + log2 q (alpha + n beta + n gamma)
 *	hierarchical         direct of g ranks, and of p/g with n/g bytes
 *	ring                 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma
 *	tree, k segments     (2h + k - 1) (alpha + n/k (2 beta + gamma)), h = floor(log2 p)
 *
 * q: the ranks that are left after folding, F = f (2 alpha + 2 n beta + n gamma). Here all ranks of `owner`
 * are workers; of the tree every inner rank receives from two.
 *
 * 1. Each formula is linear in alpha, beta, gamma, overhead and beta (incast -
	1): its *terms*. The fit is the
 *    least sum of squared relative errors over them, none below 0 and incast at most HD_COLLECTIVE_INCAST:
 *    exact, by all choices of which are at a bound; of equal ones the one with fewer terms.
 * 2. The *ratio* of a primitive and a size class (bytes in [2^k, 2^(k+1))) multiplies its prediction. A
 *    measurement moves it by a tenth of the way; it stays in [1/8, 8]. -1: unusable.
 * 3. The choice is the least prediction among those that hd_collective_check() lets and that are usable; of
 *    equal ones the lower number. direct is never unusable: there is always one.
 * 4. A table prints to text that reads back to the same table and prints to the same bytes:
 *
 *	heddle-collectives 1
 *	link local 12000 0.21 0.09 400 1.2      # ns, ns a byte, ns a byte, ns, ratio
 *	link remote 90000 8.1 0.09 400 1.2
 *	ratio ring 20 1.25                      # primitive, size class; left out: 1
 *	ratio tree 30 -1
 *
 *    local: between processes of one machine, or of one node; remote: between nodes.
 *
 * Source of the formulas: Thakur and others (collective.h), with terms for partial sums and for incast.
 * Pure; nothing is kept but in the arguments. */
#ifndef HD_PLAN_COLLECTIVE_COST_H
#define HD_PLAN_COLLECTIVE_COST_H

#include "base/text.h"
#include "plan/collective.h"

enum { HD_COLLECTIVE_INCAST = 16 };       /* the greatest */
enum { HD_COLLECTIVE_TERMS = 5, HD_COLLECTIVE_CLASSES = 41 };      /* sizes below 2^41 bytes */
enum hd_collective_link { HD_COLLECTIVE_LOCAL, HD_COLLECTIVE_REMOTE, HD_COLLECTIVE_LINKS };

struct hd_collective_costs { double alpha_ns, beta_ns, gamma_ns, overhead_ns, incast; };

struct hd_collective_table {
	struct hd_collective_costs link[HD_COLLECTIVE_LINKS];
	double ratio[HD_COLLECTIVE_COUNT][HD_COLLECTIVE_CLASSES];
};

/* A sum that was timed. */
struct hd_collective_sample { enum hd_collective kind; struct hd_collective_shape shape; uint64_t bytes;
	double ns; };

/* Of a machine that nothing is known of; every ratio 1. */
void hd_collective_table_init(struct hd_collective_table *table);
uint32_t hd_collective_class(uint64_t bytes);

/* The factors of a formula (rule 1); of any but hierarchical. */
void hd_collective_terms(double terms[HD_COLLECTIVE_TERMS], enum hd_collective kind,
	const struct hd_collective_shape *shape, double bytes);
/* How many segments the tree should have: the square root of the balance, 1..`most`. */
uint32_t hd_collective_segments(const struct hd_collective_costs *costs, uint32_t p, uint64_t bytes,
	uint32_t most);
/* ns, without the ratio. `inside`: where a node's ranks talk; `outside`: all others; hierarchical has both */
double hd_collective_predict(enum hd_collective kind, const struct hd_collective_shape *shape, uint64_t bytes,
	const struct hd_collective_costs *inside, const struct hd_collective_costs *outside);
/* ns by the table, with the ratio; below 0: unusable. A shape of one node talks locally. */
double hd_collective_expect(const struct hd_collective_table *table, enum hd_collective kind,
	const struct hd_collective_shape *shape, uint64_t bytes);
/* Rule 3. *ns: what is expected. */
enum hd_collective hd_collective_choose(const struct hd_collective_table *table,
	const struct hd_collective_shape *shape, uint64_t bytes, double *ns);

/* Rule 1. HD_E_INVAL: no samples, or of no bytes or no time, or of hierarchical sums. */
HD_MUST_USE enum hd_err hd_collective_fit(struct hd_collective_costs *costs,
	const struct hd_collective_sample *sample, uint32_t n, struct hd_diag *diag);
/* Rule 2. */
void hd_collective_refine(struct hd_collective_table *table, const struct hd_collective_sample *sample);

/* HD_E_INPUT with file:line:column. */
HD_MUST_USE enum hd_err hd_collective_table_parse(struct hd_collective_table *table, const char *text,
	size_t len, const char *file, struct hd_diag *diag);
void hd_collective_table_print(const struct hd_collective_table *table, struct hd_text *text);

#endif
