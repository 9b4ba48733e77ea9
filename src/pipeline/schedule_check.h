/* schedule_check.h -- proves that a bare schedule is complete, in order and never waits in a circle.
 *
 * Plan files and schedules written by hand go through it, and every generator's lists in tests.
 * (Plans of this build's runtime: check.h.) Rules carry the ids of the plan documents:
 *
 *	K5      the stages cover every node of the graph once, in cut order (where the job says which)
 *	K1 K2   every (stage, virtual node) has one forward and one whole backward
 *	K3 K4   on the rank that holds it; numbers exist
 *	K6      forward before backward, I before W, on the rank's own order
 *	K7      no instructions that wait for each other, however large the buffers
 *	K8      nor under the transport asked for; says how many buffers would do
 *	K9 K10  transfers: in the order of the sends, each sent and received once, after its maker; all that
 *	is read is used
 *	K11     buffers that receives name are free by then
 *	K12-15  versions: the rule's one, made and not yet released, no more than the rule needs, each pin
 *	released K16-18  one STEP an update and holder, after its gradients, in order; RED where a stage has
 *	copies, in one order K19-21  tied weights summed, clipped gradients normed, eager updates validated
 *	K22     the simulated peak of each rank fits its device (where costs are known)
 *	K23 K24 activations: recomputed where only the input was kept, back from the host where used
 *	K25 K27 pairs are independent; barriers stand in one order
 *	K26 K28 members of tensor groups have one list; pipelines share all virtual nodes of the job
 *	K30     of delayed updates: the period repeats
 *	K31-35  shadow stages (redundancy.h): on the rank before, of one stage each; every input of their work
 *	is there; what is sent is kept; every bucket shipped once, after its sum; STEPx after all of them, and
 *	no shadow work behind it
 *
 * 1. Schedules of compute instructions alone have their transfers implied: K8 then speaks of what
 *    hd_schedule_comms() adds.
 * 2. An accepted schedule computes every (stage, virtual node) once each way and ends.
 * 3. Linear in the number of instructions; all findings up to HD_MAX_FINDINGS are listed.
 *
 * 4. Lists without any update are skeletons: their updates are implied, directly after the last gradient.
 * 5. Lists with shadow stages are judged without them first (findings say so), then with them. They are
 *    complete: transfers and updates stand in them. What is sent to a shadow has buffers of its own.
 * 6. A finding about two instructions names the second after the sentence, and draws both.
 *
 * Generators say K29.
 *
 * Pure. */
#ifndef HD_PIPELINE_SCHEDULE_CHECK_H
#define HD_PIPELINE_SCHEDULE_CHECK_H

#include "plan/check.h"
#include "pipeline/schedule_job.h"

/*        id          name           */
#define HD_TRANSPORTS(X)                                                                     \
	X(EAGER,      "eager")       /* a send never waits */                              \
	X(BUFFERED,   "buffered")    /* a send waits while `credits` tensors of its channel are not used up */ \
	X(RENDEZVOUS, "rendezvous")  /* a send waits for its receive */                    \
	X(GROUPED,    "grouped")     /* as rendezvous; transfers without compute between them are issued together */

enum hd_transport {
#define X(id, name) HD_TRANSPORT_##id,
	HD_TRANSPORTS(X)
#undef X
	HD_NTRANSPORTS
};
extern const char *const hd_transport_names[HD_NTRANSPORTS];

enum { HD_CREDITS = 2 };                  /* of a channel, where nothing else is said */

struct hd_schedule_rules { enum hd_transport transport; uint32_t credits; };      /* credits 0: HD_CREDITS */

HD_MUST_USE enum hd_err hd_schedule_check(const struct hd_schedule *schedule,
	const struct hd_schedule_rules *rules,
	struct hd_report *report, struct hd_diag *diag);

/* The same, held against a job (schedule_job.h). */
HD_MUST_USE enum hd_err hd_schedule_check_job(const struct hd_schedule *schedule,
	const struct hd_schedule_job *job,
	const struct hd_schedule_rules *rules, struct hd_report *report, struct hd_diag *diag);

/* The pass that adds transfers: receives directly before what needs them, sends directly after what makes
 * them, LD before the F that reads it; in all sections of delayed updates. A schedule that has transfers
 * already is left as it is. HD_E_BADPLAN: a stage lacks a virtual node. The rank of the forward runs the
 * backward (K3). */
HD_MUST_USE enum hd_err hd_schedule_comms(struct hd_schedule *out, const struct hd_schedule *schedule,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
