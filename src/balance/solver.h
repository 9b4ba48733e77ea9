/* solver.h -- how many virtual nodes each of several uneven devices gets, and whether the slow ones are worth
 * it.
 *
 * `heddle plan`, the choice of a map at start, a change of membership and drift ask; the answer is a map and
 * the words for it.
 *
 *	T = max over devices of cost(v) + max(0, C - back)         (vn_cost.h; back: the least of the devices
 *	                                                           used)
 *	C = max over members of (r + 1) * gradient * (n - 1) / n / bytes_per_s  +  2 * latency * ceil(log2 n)
 *
 * r: roots of a member's range (arrange.h), n: members, which are the workers with a used device. One member:
 * C = 0.
 *
 * 1. Each worker has one contiguous range, and each device of it one inside. Within a worker the next virtual
 *    node goes to the device that would be done with it first (equal: the lower); so its slowest device is as
 *    early as can be.
 * 2. Workers of equal devices and links are interchangeable: numbers of used workers of each class are
 *    enumerated, up to HD_SOLVE_SETS; beyond, workers join by the time of one virtual node (equal: the
 *    lower).
 * 3. T is the least there is, of all counts and orders, where the search is exact (`exact`: V and the classes
 *    are small enough, HD_SOLVE_WORK). Elsewhere counts are those of least max cost, what is too much taken
 *    one by one from the largest cost (equal: the higher device), then arranged.
 * 4. Ties: fewer members, smaller largest root count, fewer roots, then the plan in use (`now`), then the
 *    arrangement that is first when lower classes come first and larger counts first. Of equal workers those
 *    with more virtual nodes now get the larger counts (equal: the lower).
 * 5. A worker more never makes T longer where the search is exact. Equal devices may be swapped; all times
 *    times k give T times k.
 * 6. Since models err, a plan with a type or a device more than the simple one is proposed only if it is
 *    faster by more than the margin max(2 %, twice the mean error of the last 8 predictions), 3 % before any.
 *    Simple is the best plan on the devices in use, or at the start the best plan on devices of one type.
 *
 * Everything lies in the arena given. Pure: integers only, equal arguments give equal bytes. */
#ifndef HD_BALANCE_SOLVER_H
#define HD_BALANCE_SOLVER_H

#include "base/text.h"
#include "balance/vn_cost.h"

enum { HD_SOLVE_TYPES = 64, HD_SOLVE_DEVICES = 4096, HD_SOLVE_SETS = 1000000, HD_SOLVE_WORK = 1 << 25,
	HD_SOLVE_ERRORS = 8, HD_SOLVE_RIVALS = 16 };
#define HD_SOLVE_ERROR_PPM 30000                    /* before any prediction was judged */
#define HD_SOLVE_MARGIN_PPM 20000
#define HD_SOLVE_GRADIENT_MAX (INT64_C(1) << 46)

struct hd_solve_device { uint32_t type, worker; };
struct hd_solve_worker { uint64_t bytes_per_s; };   /* of its link; 0: it costs nothing */

struct hd_solve_ask {
	uint32_t nvns;
	const struct hd_vn_cost *type; uint32_t ntypes;         /* tables for nvns virtual nodes */
	const struct hd_solve_device *device; uint32_t ndevices;
	const struct hd_solve_worker *worker; uint32_t nworkers;
	int64_t gradient_bytes, latency_ps;
	/* [ndevices] virtual nodes of the plan in use; NULL: none is */
	const uint32_t *now;
	/* |measured - predicted| / predicted of the last plans, newest last */
	const uint32_t *error_ppm; uint32_t nerrors;
};

struct hd_solve_plan {
	uint32_t *count, *first;                  /* [ndevices] virtual nodes; the first of its range */
	int64_t step_ps, compute_ps, exchange_ps; /* T, max cost, C */
	uint32_t ndevices, nmembers, most_roots, roots;         /* used; of the workers' ranges */
	bool exact;
};

/*        id              words */
#define HD_VERDICTS(X) \
	X(CHOSEN,          "this is the plan")                                                                \
	X(SLOWER,          "computing takes longer")                                                          \
	X(EXCHANGE,        "exchange outweighs compute")                                                      \
	X(TOO_SLOW,        "one virtual node takes there longer than the whole step")                         \
	X(NO_GAIN,         "nothing would be faster")                                                         \
	X(WITHIN_ERROR,    "less than predictions may err")                                                   \
	X(NO_MEMORY,       "not even one virtual node fits")

enum hd_verdict {
#define X(id, words) HD_VERDICT_##id,
	HD_VERDICTS(X)
#undef X
};

struct hd_solve_rival {
	enum hd_verdict verdict;
	uint32_t ndevices, type;                  /* of this type left out, or alone */
	bool alone;                               /* without all other types */
	int64_t step_ps;                          /* 0: none */
	int32_t slower_ppm;                       /* than the plan; below 0: faster */
};

struct hd_solve {
	struct hd_solve_plan plan;
	uint32_t margin_ppm;
	struct hd_solve_rival rival[HD_SOLVE_RIVALS]; uint32_t nrivals;
};

/* The plan of least T on the devices allowed (NULL: all), without rule 6; for `must` (NULL: none) a device of
 * that type is used. HD_E_REFUSED: nothing fits, with the smallest need. */
HD_MUST_USE enum hd_err hd_solve_least(struct hd_solve_plan *plan, const struct hd_solve_ask *ask,
	const uint8_t *allowed, const uint32_t *must,
	struct hd_arena *arena, struct hd_diag *diag);
/* With rule 6, and what was rejected and why. */
HD_MUST_USE enum hd_err hd_solve(struct hd_solve *solve, const struct hd_solve_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

/* The same ask with the times of device d multiplied by slow[d], rounded to hundredths, so that devices that
 * are as slow as one another stay interchangeable; coarser, doubling, where there would be more than
 * HD_SOLVE_TYPES types. */
HD_MUST_USE enum hd_err hd_solve_slowed(struct hd_solve_ask *out, const struct hd_solve_ask *ask,
	const double *slow, struct hd_arena *arena,
	struct hd_diag *diag);

/* Faster by more than the margin. */
bool hd_solve_gains(int64_t step_ps, int64_t over_ps, uint32_t margin_ppm);
/* by - over in ppm of over, within 1000 times over. */
int32_t hd_solve_slower_ppm(int64_t by_ps, int64_t over_ps);
/* map[v] = device. For tests. */
void hd_solve_map(const struct hd_solve_plan *plan, const struct hd_solve_ask *ask, uint32_t *map);
/* a line each: the plan, then its rivals */
void hd_solve_print(const struct hd_solve *solve, const struct hd_solve_ask *ask, struct hd_text *text);
const char *hd_verdict_words(enum hd_verdict verdict);

#endif
