/* simulation.h -- the control plane of one job in one thread: the runtime's own member machines and
 * coordinator, with a simulated network, disk and devices. All randomness comes from one seed.
 *
 * Devices compute tagged integers in place of gradients: leaf v of step s is one unit in digit v, tagged
 * with the state it was computed from. So it is checked exactly what was added, once, and in which step.
 * These invariants hold after each event:
 *
 *	epoch      epochs rise, at every worker and at the coordinator; equal epochs mean equal views; each
 *	           belongs to one term, and to a failure or a planned change
 *	stored     what a coordinator sends (terms, epochs, worker ids, holders of the state) is in a record
 *	           known to be stored; a kill loses any number of the newest others; a takeover starts from
 *	           what is stored, under a new term
 *	once       a sum has every virtual node once, all computed from X_s; so has the table
 *	state      X_{s+1} is the same wherever it is made
 *	commit     steps are committed in order, when every member of the view holds X_{s+1}
 *	gate       no worker begins s + 1 while a member of its view still needs sums of s
 *	lost       no committed step is lost while a member lives that was not cut off
 *	redo       no virtual node is computed again while the member that computed it is still one
 *	roots      nothing is sent or added that is not there
 *	slots      sharded state: a bucket is updated with slots of that step; workers that need or save slots
 *	           get them; slots are called lost only when they are
 *	proof      a bucket's sum is at all its holders before a worker outside of them updates
 *	ratios     of whole tensors by stages: a worker that updates a part of one has the sums of squares of
 *	           all its parts, of that step
 *	stages     a worker computes a stage with its parameters of that step; no step is begun again that a
 *	           member has finished; with enough devices every stage has a holder
 *	covered    of one death in two pipelines (hd_simulate_death) no committed step is given up for what is
 *	           on disk, and no more than one step is begun again, once
 *	shadow     where each stage has a shadow, two members hold it, unless one has the whole pipeline
 *	follow     where members without a rank follow stages, every one of them that is not to leave holds a
 *	           whole stage
 *	zones      of as many workers in each of two zones, and an even number of ranks, no neighbours of a
 *	           pipeline are in one
 *	failover   a step that goes on does so from what its workers said, without those that are not there,
 *	           and no step is begun in a view with doubled ranks
 *	lists      where workers send one another what a step needs, none begins a step in the epoch in which
 *	           it finished one of an earlier view
 *	refused    no coordinator proposes fewer stages, or a planned change to another shape, which one of
 *	           the members refused, as is stored
 *	lockstep   nothing is computed beside what is there; no step is begun again that a member has finished
 *	rejoin     no worker that is well is ended where the state is lost: it joins again
 *	remote     workers of other machines neither save nor load
 *	expelled   no worker is given up as not heard by its peers, or not hearing them, where all its links
 *	           are well for T/3
 *	named      where no change is under way and all is stored, the record names the members of the view
 *	target     the record's target is the requested one, whichever workers came and went
 *	corrupt    while a present worker has heard two digests of a step, the step is not committed with
 *	           wrong bits, and no wrong state is loaded
 *	taken      a worker that may take over, member or not, does so within 7 T
 *	prompt     a decided view is in force right after the first step in which all its members can say that
 *	           they know of it
 *	record     a step is committed without its record only if no worker that ran it is present
 *	empty      for 10 T a worker is present or about to come, where the coordinator sees processes end
 *	grown      sources that gave up: 45 T after the last fault all wanted workers are members,
 *	           or the run is over
 *	end        the run ends with 0 only after all its steps or at its target; stopped, with 75, before
 *	live       after the last fault a step is committed within 30 T, and the run ends (with 5 only if a
 *	           state was corrupted and no majority could tell which)
 *
 * Pure: no clock, no I/O but the memory it takes. Equal seeds, equal runs. */
#ifndef HD_PROTOCOL_SIMULATION_H
#define HD_PROTOCOL_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Faults that a seed may draw; each seed enables a random subset, so that rare combinations get their
 * turn. */
/*        id         text                                                           */
#define HD_SIM_FAULTS(X)                                                              \
	X(CRASH,     "a worker is killed")                                             \
	X(PAUSE,     "a worker stands still and goes on")                              \
	X(CUT,       "a connection closes")                                            \
	X(MUTE,      "a connection carries nothing for a while")                       \
	X(ISLAND,    "a worker is cut off from all others for a while")                \
	X(CO_CRASH,  "the coordinator is killed")                                      \
	X(STORE,     "the store fails for a while")                                    \
	X(SLOW,      "the network is slow for a while")                                \
	X(SCALE,     "another number of workers is wanted")                            \
	X(DRAIN,     "a worker is asked to leave")                                     \
	X(JOIN,      "a worker comes unasked, here or from another machine")                                         \
	X(HALT,      "the run is asked to stop")

enum hd_sim_fault {
#define X(id, text) HD_SIM_##id,
	HD_SIM_FAULTS(X)
#undef X
	HD_SIM_NFAULTS
};

enum { HD_SIM_LEFT = 4 };

struct hd_sim_result {
	bool ok;
	char why[240];                    /* "invariant: what, at which time" */
	uint64_t steps, events;           /* committed; handled */
	uint32_t epochs, crashes, redone, joins, takeovers, restores, fetches, given_up, being_replaced;
	uint32_t ratios;                  /* sent */
	uint32_t early;                   /* new parameters of a bucket before UPDATE */
	uint32_t unchained;               /* buckets whose slots went with all their holders then */
	uint32_t paired;                  /* partial sums sent to a parent (exchange.h, rule 11) */
	uint32_t gone_on, stuck;          /* steps that went on after a loss; workers that could not */
	uint32_t refused;                 /* views, and changes, that a worker refused */
	uint32_t fewer;                   /* views with fewer stages than were wanted, for want of devices */
	/* of HD_SIM_LATE: members asked to prepare fewer stages; machines that went, of them with a member */
	uint32_t narrowed, went, overstayed;
	uint32_t parted;                  /* views whose members are as many in each of two zones */
	uint32_t bared;                   /* kills of workers that alone held some part of the state */
	/* joiners whose source gave up; those of them that became members later */
	uint32_t unheard, heeded;
	uint32_t missed;                  /* calls */
	uint32_t flapped, unheeded;       /* links; of them, with the word that they are well again lost */
	uint32_t vain;                    /* times that a member began of a step what a skipped one undid */
	uint32_t ahead;                   /* steps that a member began while it ended the one before */
	uint32_t rolled;                  /* restores that gave up steps that were committed */
	uint32_t again;                   /* steps that were begun in another view, too */
	/* of hd_simulate_death: it came; of the checkpoint writer, in the middle of a checkpoint; of a worker
	 * that had the sum of a bucket, of which there was no norm yet */
	uint32_t died, died_saving, died_summed;
	uint32_t halted;                  /* runs that were asked to stop, and did */
	/* members asked to leave that did, by how many steps they sealed after the one at hand (and more) */
	uint32_t left[HD_SIM_LEFT];
	/* states; workers expelled; runs ended for it; runs without enough digests to notice */
	uint32_t reshaped;                /* other shapes that a coordinator was asked for */
	uint32_t corrupted, expelled, undecided, escaped;
	int64_t end_ns;
};

/* Of a seed: state is sharded, two or three copies. */
#define HD_SIM_SHARDED (UINT64_C(1) << 32)
/* Of a seed: workers are replaced on request; some requests are taken back. */
#define HD_SIM_REPLACED (UINT64_C(1) << 33)

/* Of a seed: bits of a worker's state flip once, if state is not sharded; of state by stages those of a
 * bucket that it holds. */
#define HD_SIM_CORRUPT (UINT64_C(1) << 34)

/* Of a seed: until faults stop, sources abort transfers now and then, as for joiners that are too slow. */
#define HD_SIM_GIVING_UP (UINT64_C(1) << 35)

/* Of a seed: until faults stop, the coordinator is killed now and then while its record is being stored. */
#define HD_SIM_UNHEARD (UINT64_C(1) << 36)

/* Of a seed: the model is in stages, of one or two pipelines; not with HD_SIM_SHARDED. */
#define HD_SIM_STAGED (UINT64_C(1) << 37)

/* Of a seed: all virtual nodes of a step meet, so that no pass ends before all members compute; not with
 * HD_SIM_STAGED. */
#define HD_SIM_LOCKSTEP (UINT64_C(1) << 38)

/* Of a seed with HD_SIM_STAGED: other shapes (stages, places, schedule, pipelines) are asked for now and
 * then. */
#define HD_SIM_RESHAPED (UINT64_C(1) << 39)

/* Of a seed with HD_SIM_STAGED: every member holds all state, whatever stages it runs. */
#define HD_SIM_WHOLE (UINT64_C(1) << 40)

/* Of a seed with HD_SIM_STAGED: each stage has a shadow at another member (view.h, rule 10); of the other
 * shapes of HD_SIM_RESHAPED some have none. */
#define HD_SIM_SHADOWED (UINT64_C(1) << 41)

/* Of a seed: the first calls between two workers fail for up to T/2, as of a socket that is late. */
#define HD_SIM_MISSED (UINT64_C(1) << 42)

/* Of a seed with HD_SIM_STAGED: two pipelines of as many workers as that takes, one of which is killed after
 * some action of its first two steps; with HD_SIM_FOLLOWED one pipeline, and a follower for each stage. */
#define HD_SIM_FIRST (UINT64_C(1) << 43)

/* Of a seed with HD_SIM_STAGED and HD_SIM_SHADOWED: a stage a rank and a rank a worker, and steps go on after
 * losses within them. */
#define HD_SIM_GOING_ON (UINT64_C(1) << 44)

/* Of a seed: links between two workers are silent for little more than T, and what is heard of each again may
 * be lost with the link to the coordinator. */
#define HD_SIM_FLAPPED (UINT64_C(1) << 45)

/* Of a seed with HD_SIM_STAGED: stages of about every other shape have copies (view.h, rule 13). */
#define HD_SIM_COPIED (UINT64_C(1) << 46)

/* Of a seed with HD_SIM_STAGED: stages lie where nothing but a plan file puts them. */
#define HD_SIM_LISTED (UINT64_C(1) << 51)

/* Of a seed with HD_SIM_STAGED and HD_SIM_SHADOWED: where a loss leaves too few devices for a pipeline, the
 * others go on with fewer stages, down to one. */
#define HD_SIM_FEWER (UINT64_C(1) << 47)

/* Of a seed with HD_SIM_STAGED: the optimizer changes whole tensors, and some lie in several buckets. */
#define HD_SIM_TENSORS (UINT64_C(1) << 48)

/* Of a seed with HD_SIM_STAGED: some workers have not the memory for some shapes, and refuse them. */
#define HD_SIM_REFUSING (UINT64_C(1) << 49)

/* Of a seed with HD_SIM_STAGED: no step begins in fewer than two pipelines. */
#define HD_SIM_LEAST (UINT64_C(1) << 50)

/* Of a seed with HD_SIM_STAGED: workers are in zones. With HD_SIM_FIRST half of the first ones in each of
 * two, pipelines of an even number of ranks (with HD_SIM_SHADOWED also one alone), and a whole zone is killed
 * after some action of its first steps. */
#define HD_SIM_ZONED (UINT64_C(1) << 52)

/* Of a seed with HD_SIM_STAGED: members without a rank follow stages (view.h, rule 14), and there are one or
 * two more workers than the pipelines take. */
#define HD_SIM_FOLLOWED (UINT64_C(1) << 53)

/* Of a seed: workers are asked to leave, and the machines of most go 1 to 16 T later; those that are asked
 * for come up to 20 T later. */
#define HD_SIM_LATE (UINT64_C(1) << 54)

/* Of a seed of replicated state without stages: partial sums go by pairs where a view allows it. */
#define HD_SIM_PAIRED (UINT64_C(1) << 55)

/* Of a seed with HD_SIM_SHARDED: all members that hold the slots of a bucket are killed as its new parameters
 * go out, before UPDATE or with it. */
#define HD_SIM_UNCHAINED (UINT64_C(1) << 56)

/* One line per event and action, for --trace; NULL: silent. */
typedef void hd_sim_line(void *self, int64_t now_ns, const char *line);

/* HD_E_NOMEM alone; a violation is a result. `only`: bits of faults that may be drawn (for shrinking); ~0:
 * all. */
HD_MUST_USE enum hd_err hd_simulate_job(uint64_t seed, uint32_t only, hd_sim_line *line, void *self,
	struct hd_sim_result *result, struct hd_diag *diag);

/* One death and no other fault, at a place that is counted: of a model in stages over two pipelines, a worker
 * a rank. */
enum { HD_SIM_COORDINATOR = 1000 };
struct hd_sim_death {
	uint32_t width, chunks;           /* ranks of a pipeline; stages of a rank */
	bool vee;                         /* view.h */
	uint32_t victim;                  /* a worker of the first view, or HD_SIM_COORDINATOR */
	uint32_t after;                   /* so many actions of its machine, from the first view on */
};

/* As hd_simulate_job(). Without `died` the run ended before. */
HD_MUST_USE enum hd_err hd_simulate_death(uint64_t seed, const struct hd_sim_death *death, hd_sim_line *line,
	void *self, struct hd_sim_result *result, struct hd_diag *diag);
const char *hd_sim_fault_name(enum hd_sim_fault fault);

#endif
