/* simulation.h -- the control plane of one job in one thread: the same member machines and coordinator as in the
 * runtime, between a simulated network, disk and devices, everything drawn from one seed.
 *
 * Devices compute tagged integers in place of gradients: leaf v of step s is one unit in digit v, tagged with
 * the state it was computed from; so what was added, once, in which step, is checked exactly. After each event these hold:
 *
 *	epoch      epochs rise, at every worker and at the coordinator; all who adopt an epoch adopt the same view; each is of one term, and
 *	           of a failure or of a planned change
 *	stored     what a coordinator says (terms, epochs, numbers of workers, who may hold the state) is in a record that it knows to be
 *	           stored: of others a kill leaves any first ones; whoever takes over begins with what is there, and names a new term
 *	once       a sum has every virtual node once, all computed from X_s; so has the table
 *	state      X_{s+1} is the same wherever it is made
 *	commit     steps are committed in order, when every member of the view holds X_{s+1}
 *	gate       nobody begins s + 1 while a member of its view still needs sums of s
 *	lost       no committed step is lost while a member lives that was not cut off
 *	redo       no virtual node of a step is computed again whose maker is still a member
 *	roots      nothing is sent or added that is not there
 *	slots      sharded state: what brings a bucket on are slots of that step, and whoever needs or saves them gets such; they are
 *	           called lost only when they are
 *	remote     workers of other machines neither save nor load
 *	target     what the record wants is what was asked for, whoever came and went
 *	corrupt    while somebody who is there has heard two digests of a step, it is not committed with wrong bits, and no wrong state is loaded
 *	taken      a worker that may take over, of a view or not, does so within 7 T
 *	record     a step is committed without its record only if nobody is there who ran it
 *	empty      for 10 T there is somebody here, or about to come, where the coordinator sees that processes end
 *	grown      donors that gave up: when faults have stopped, as many workers as are wanted are members within 45 T, or the run is over
 *	end        the run ends with 0 only after all its steps, or at its target; stopped, with 75, before
 *	live       when faults stop, a step is committed within 30 T, and the run ends (with 5 alone when
 *	           a state was corrupted and no majority could say whose)
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

struct hd_sim_result {
	bool ok;
	char why[240];                    /* "invariant: what, at which time" */
	uint64_t steps, events;           /* committed; handled */
	uint32_t epochs, crashes, redone, joins, takeovers, restores, fetches, given_up, being_replaced;
	/* learners whose donor gave up; those of them that were members later */
	uint32_t unheard, heeded;
	uint32_t halted;                  /* runs that were asked to stop, and did */
	/* states; workers for it; runs that ended for it; runs in which nobody could know */
	uint32_t corrupted, expelled, undecided, escaped;
	int64_t end_ns;
};

/* Of a seed: state is sharded, two or three copies. */
#define HD_SIM_SHARDED (UINT64_C(1) << 32)
/* Of a seed: others are asked for in the place of workers, and some of these are to stay after all. */
#define HD_SIM_REPLACED (UINT64_C(1) << 33)

/* Of a seed: bits of a worker's state flip once, if state is not sharded. */
#define HD_SIM_CORRUPT (UINT64_C(1) << 34)

/* Of a seed: until faults stop donors give up teaching now and then, as they do of learners that are too
 * slow. */
#define HD_SIM_GIVING_UP (UINT64_C(1) << 35)

/* Of a seed: until faults stop the coordinator is killed now and then while a record of it is being
 * stored. */
#define HD_SIM_UNHEARD (UINT64_C(1) << 36)

/* One line per event and action, for --trace; NULL: silent. */
typedef void hd_sim_line(void *self, int64_t now_ns, const char *line);

/* HD_E_NOMEM alone; a violation is a result. `only`: bits of faults that may be drawn (for shrinking); ~0:
 * all. */
HD_MUST_USE enum hd_err hd_simulate_job(uint64_t seed, uint32_t only, hd_sim_line *line, void *self,
	struct hd_sim_result *result, struct hd_diag *diag);
const char *hd_sim_fault_name(enum hd_sim_fault fault);

#endif
