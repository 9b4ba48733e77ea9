/* straggler.h -- workers that fall behind: who they are, and what is done about them, one thing at a time.
 *
 * Told every step how long the device of each worker took for a virtual node and how late its seal came; answers with at most one
 * action, the cheapest that helps. The runtime and tests drive it alike. Two rules stand in hd_straggler_rules:
 *
 *	ours      speed = profile / measured time, over the median of its type; EWMA 0.1, judged after 10 samples.
 *	          1  below 0.95 for 16 steps: re-map (the map is free to change)
 *	          2  the best plan with it is slower than the best without by more than the margin of solver.h: out of the map, kept as
 *	             standby, tried with one virtual node every 100 steps; back in when its speed is 0.95 or the plan with it gains again
 *	          3  a replacement can be had, and what it saves over the rest of the run is more than its boot: asked for
 *	          The device normal and the seal late (10 % of the step for 16 steps): its chunks move first.
 *	          Nobody is exempt. At most one action for a worker in 100 steps, so that flapping does not oscillate.
 *	ae-2020   throughput over the median of all (even: mean of the middle two), EWMA 0.1 from the first value; below 0.8: asked
 *	          for a replacement, released when that has come. Worker 0 is exempt, as it was there.
 *
 * Every action carries its reason with numbers. All state is in struct hd_straggler. Pure. */
#ifndef HD_CLUSTER_STRAGGLER_H
#define HD_CLUSTER_STRAGGLER_H

#include "plan/solver.h"

enum { HD_STRAGGLER_WORKERS = 256, HD_STRAGGLER_WHY = 240 };

/*        id           words                                                        */
#define HD_STRAGGLER_ACTS(X)                                                        \
	X(NONE,        "nothing")                                                   \
	X(CHUNKS,      "move its chunks to others")                                 \
	X(REMAP,       "share virtual nodes out anew")                              \
	X(DROP,        "take it out of the map, keep it as standby")                \
	X(PROBE,       "try it with one virtual node")                              \
	X(RETURN,      "take it back into the map")                                 \
	X(REPLACE,     "ask for a replacement")                                     \
	X(RELEASE,     "release it: its replacement has come")

enum hd_straggler_act {
#define X(id, words) HD_STRAGGLER_##id,
	HD_STRAGGLER_ACTS(X)
#undef X
};

struct hd_straggler_worker {
	uint32_t type;
	bool in_map, asked;                       /* a replacement was asked for */
	double speed; uint32_t nsamples;          /* EWMA */
	uint32_t low, late;                       /* steps below 0.95; steps whose seal was late */
	uint64_t acted, probed;                   /* step of the last action of the ladder, of the last probe */
	double mapped_speed;                      /* that the map in use was made for */
};

struct hd_straggler_action { enum hd_straggler_act act; uint32_t worker; char why[HD_STRAGGLER_WHY]; };

/* One step of one worker; it has run virtual nodes only if vn_ps > 0. */
struct hd_straggler_sample { int64_t vn_ps, late_ps; };      /* of its device for one virtual node; its seal after the median's */

struct hd_straggler;
struct hd_straggler_rule {
	const char *name, *about;
	void (*on_step)(struct hd_straggler *s, const struct hd_straggler_sample *sample, int64_t step_ps);      /* [nworkers] */
	/* HD_E_...: of the solver. */
	enum hd_err (*decide)(struct hd_straggler *s, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag);
};
extern const struct hd_straggler_rule hd_straggler_rules[];      /* ends with name == NULL */

struct hd_straggler {
	const struct hd_straggler_rule *rule;
	const struct hd_solve_ask *ask;           /* borrowed: one device a worker; the profile's times */
	uint64_t step, left;
	bool replacement;                         /* one can be had */
	bool came; uint32_t came_for;             /* set by the caller: the replacement of this worker is a member */
	int64_t boot_ps;
	struct hd_straggler_worker worker[HD_STRAGGLER_WORKERS];
};

/* HD_E_INVAL: no such rule, too many workers, a worker without one device. */
HD_MUST_USE enum hd_err hd_straggler_init(struct hd_straggler *s, const char *rule, const struct hd_solve_ask *ask, struct hd_diag *diag);
/* After every step, then decide. */
void hd_straggler_on_step(struct hd_straggler *s, const struct hd_straggler_sample *sample, int64_t step_ps);
HD_MUST_USE enum hd_err hd_straggler_decide(struct hd_straggler *s, struct hd_straggler_action *action, struct hd_arena *arena, struct hd_diag *diag);
const char *hd_straggler_words(enum hd_straggler_act act);
/* The map of least step time by the speeds known, on the workers of `use`; speeds of 1 where nothing is known. */
HD_MUST_USE enum hd_err hd_straggler_plan(const struct hd_straggler *s, const uint8_t *use, struct hd_solve_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
