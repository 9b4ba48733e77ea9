/* campaign.h -- the faults of one run, all drawn from a seed: when (a committed step and a part of a step's
 * time), at which process, what; and whether all of them happened.
 *
 * 1. Equal seeds and counts give equal faults, in the same order, on any machine.
 * 2. No fault is due in the last eighth of the run: a late joiner needs steps to come in.
 * 3. A fault that finds no target, or has to wait for another, is tried again at the next look at the run,
 *    and holds up no other.
 *
 * Ownership: faults lie in the arena. Threads: one. */
#ifndef HD_CHAOS_CAMPAIGN_H
#define HD_CHAOS_CAMPAIGN_H

#include "base/arena.h"
#include "chaos/fault.h"

enum { HD_CAMPAIGN_MOST = 4096, HD_CAMPAIGN_PACE_MS = 1000 };

struct hd_campaign {
	/* given */
	uint64_t seed, nsteps;            /* nsteps >= 3 */
	int64_t detect_ns;                /* T: workers.detect */
	uint32_t nworkers;                /* SCALE asks for 1 to nworkers + 1 */
	uint32_t npoints;                 /* named places that the run may reach, > 0 */
	uint32_t each_point;              /* deaths wanted at each of them; 0: POINT's count, drawn */
	uint32_t count[HD_FAULTS];
	/* planned: in the order in which they are due */
	struct hd_fault *fault;           /* [nfaults] */
	uint32_t nfaults;
	uint32_t next, begun;             /* all before next have begun; so many in all */
};

/* "pause=3,net=5": how many of each kind beside `kills`. `text` NULL: a tenth of the kills of every kind that
 * this build has. HD_E_INVAL: a word is none of this form. */
HD_MUST_USE enum hd_err hd_campaign_counts(const char *text, uint32_t kills, uint32_t count[HD_FAULTS],
	struct hd_diag *diag);
/* The i-th draw of the seed, as a fault of `kind`. */
void hd_campaign_draw(const struct hd_campaign *campaign, uint32_t i, enum hd_fault_kind kind,
	struct hd_fault *fault);
/* With each_point every named place comes so often, in an order that is drawn, in the first half of the run:
 * some are reached late. */
HD_MUST_USE enum hd_err hd_campaign_plan(struct hd_campaign *campaign, struct hd_arena *arena,
	struct hd_diag *diag);
/* Steps that would be over before their faults are made longer, so that each fault has 1.5 T on average: time
 * for a loss to be noticed and mended, and for a new worker to join. */
uint64_t hd_campaign_pace_ms(const struct hd_campaign *campaign);

/* Injects what is due, until the run has ended. Errors are those of hd_harness_look(). */
HD_MUST_USE enum hd_err hd_campaign_run(struct hd_campaign *campaign, struct hd_harness *harness,
	struct hd_faults *faults, struct hd_diag *diag);

/* What a user asks for beside the kind; `fault` fields that are 0 (how: HD_HOWS) are drawn. */
struct hd_injection { enum hd_fault_kind kind; struct hd_fault asked; uint64_t times, mtbf_ms; };
/* Injects one kind `times` times into a run that goes on, with gaps drawn from an exponential distribution of
 * mean mtbf_ms, and waits for the end of those that last. */
HD_MUST_USE enum hd_err hd_campaign_inject(struct hd_campaign *campaign, struct hd_harness *harness,
	struct hd_faults *faults, const struct hd_injection *injection, struct hd_diag *diag);
int64_t hd_campaign_gap_ns(uint64_t mtbf_ms, uint32_t word);

/* How many of a kind were planned and did not happen: the run ended before their step, or no process reached
 * the place. Losses that trigger a death at a place are more than planned, so they make up for none. */
uint32_t hd_campaign_missed(const struct hd_campaign *campaign, const struct hd_faults *faults,
	enum hd_fault_kind kind);
uint32_t hd_campaign_missed_all(const struct hd_campaign *campaign, const struct hd_faults *faults);
/* Deaths at the named places of a phase. */
uint32_t hd_campaign_killed_in(const struct hd_campaign *campaign, const struct hd_faults *faults,
	enum hd_fp_phase phase);
/* HD_E_INTEGRITY: places that had fewer deaths than each_point, by name. */
HD_MUST_USE enum hd_err hd_campaign_all_places(const struct hd_campaign *campaign,
	const struct hd_faults *faults, struct hd_diag *diag);

#endif
