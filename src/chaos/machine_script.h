/* machine_script.h -- a trace of machines as events of a script (metadata.h): when each is added, has notice,
 * and is killed, on a clock that runs `speed` times as fast.
 *
 * 1. Times are those of the trace, divided by the speed; so is the lead of a notice.
 * 2. A notice comes so long before the removal; where the machine was not there yet, when it comes, with the
 *    lead that is left. With a share only removals whose draw (Philox of seed and machine) is below it have
 *    one.
 * 3. Events are in order of time; at equal times those that add, then notices, then kills, each in the order
 *    of the trace.
 * 4. A machine whose name is none of a script (metadata.h) is called m1, m2, ... by its number, or m1-2, ...
 *    where another has that name.
 * 5. What is read can be played: there are machines, HD_MACHINES_MOST at once; each comes once, and what
 *    happens to it, or is announced to it, happens while it is there (its service may fail
 *    before); each is of one cloud, the one that gives it notice, which its
 *    event ADD names.
 *
 * Pure. Ownership: all lies in the arena. */
#ifndef HD_CHAOS_MACHINE_SCRIPT_H
#define HD_CHAOS_MACHINE_SCRIPT_H

#include "spot/trace.h"
#include "chaos/metadata.h"

enum { HD_MACHINES_MOST = 128 };
#define HD_MACHINE_MS_MOST INT64_C(100000000000)  /* as played: three years, like a script's */

/* share 0: none has notice */
struct hd_machine_notice { enum hd_metadata_cloud cloud; double lead_s, share; };
/* "ec2:120", "gce:30", "azure:60", "none", "p:0.8" (EC2's two minutes before that share of the removals).
 * HD_E_INVAL: it is none of these. */
HD_MUST_USE enum hd_err hd_machine_notice_read(struct hd_machine_notice *notice, const char *text,
	struct hd_diag *diag);

struct hd_machine_script { struct hd_metadata_event *at; size_t n; };
/* HD_E_INPUT: rule 5, or an event later than HD_MACHINE_MS_MOST; `file` is for what is said. */
HD_MUST_USE enum hd_err hd_machine_script_of(struct hd_machine_script *script,
	const struct hd_spot_trace *trace, const char *file, double speed,
	const struct hd_machine_notice *notice, uint64_t seed, struct hd_arena *arena, struct hd_diag *diag);
/* Lines of JSON, ordered by their times; equal times: as they stand. Their times are divided by the speed.
 * HD_E_INPUT: a line that is wrong, or rule 5. */
HD_MUST_USE enum hd_err hd_machine_script_read(struct hd_machine_script *script, const char *name,
	const char *text, size_t len, double speed, struct hd_arena *arena, struct hd_diag *diag);

#endif
