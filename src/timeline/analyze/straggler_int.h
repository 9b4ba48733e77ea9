/* straggler_int.h -- how stragglers are judged (private): what is known of the steps that are judged,
 * what a run would gain (straggler_gain.c), of what kind a process is (straggler_cause.c), and the rules
 * (straggler_rules.c), each a row of a table. straggler.h says what they are. */
#ifndef HD_TIMELINE_ANALYZE_STRAGGLER_INT_H
#define HD_TIMELINE_ANALYZE_STRAGGLER_INT_H

#include "timeline/analyze/excess.h"
#include "timeline/analyze/replay.h"
#include "timeline/analyze/straggler.h"

enum { HOLD_QUARTERS = 4 };

struct hold_judge {
	const struct hd_tl_causes *causes;
	struct hd_arena *scratch;
	struct hd_diag *diag;
	struct hd_tl_range range;
	double *share, *gain;             /* [nprocesses] */
	uint32_t *led;                    /* [nprocesses] steps with more than half of the path */
	int64_t *starved, *held;          /* [nprocesses] */
	int64_t *of, total;               /* [nprocesses] of paths: ns; of all */
	uint32_t nsteps, ncompute;
	uint64_t *nops;                   /* [nprocesses] instructions */
};

/* ---- straggler_gain.c ---- */

/* The costs of the process become those of the others. */
struct hd_tl_whatif hd_tl_hold_alike(uint32_t process, bool work, bool reading, bool channels);
HD_MUST_USE enum hd_err hd_tl_hold_gain(struct hold_judge *j, struct hd_tl_whatif whatif, double *gain);
/* The k-th quarter of the steps. */
struct hd_tl_range hd_tl_hold_quarter(const struct hold_judge *j, uint64_t k);
/* What is left of the gain when twice its standard error, by the quarters of the steps, is taken off: is it
 * more than so many percent? */
HD_MUST_USE enum hd_err hd_tl_hold_lasts(struct hold_judge *j, struct hd_tl_whatif whatif, int percent,
	bool *does);

/* ---- straggler_cause.c ---- */

/* Has it devices, and is it aligned? */
bool hd_tl_hold_computes(const struct hd_tl_causes *c, uint32_t process);
/* Rule e, of which measure of standing still. */
bool hd_tl_hold_stands_still(const struct hold_judge *j, struct hd_tl_span span,
	int64_t (*measure)(const struct
	hd_tl_causes *causes, uint32_t process, struct hd_tl_span span), struct hd_tl_straggler *s);
/* Than the one of the others that is least so. */
int64_t hd_tl_hold_more_of(const struct hold_judge *j, const int64_t *ns, uint32_t process);
HD_MUST_USE enum hd_err hd_tl_hold_look_at(const struct hold_judge *j, uint32_t process,
	struct hd_tl_span span,
	struct hd_tl_excess *x);
/* Rule d, of transfers, which need a thread of the process to run: by what instructions have not taken. */
bool hd_tl_hold_starves_transfers(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	double gain, struct hd_tl_span span);
/* Did a quota or stops take what its transfers gain? */
bool hd_tl_hold_is_held(const struct hold_judge *j, uint32_t process, double channels,
	struct hd_tl_span span);
/* Of what computes slowly. *is: not by rule d */
enum hd_tl_hold hd_tl_hold_why_slow(const struct hold_judge *j, uint32_t process,
	const struct hd_tl_excess *x,
	struct hd_tl_span span, bool *is);
HD_MUST_USE enum hd_err hd_tl_hold_cause(struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	enum hd_tl_hold *cause, bool *is);

/* ---- straggler_rules.c ---- */

/* The first rule that names a process has the word; rule e is not among them. */
HD_MUST_USE enum hd_err hd_tl_hold_rules(struct hold_judge *j, struct hd_tl_span span,
	struct hd_tl_stragglers *to);

#endif
