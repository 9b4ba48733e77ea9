/* machine_check.h -- a script of machines proved playable before it is played, for machine_script.c: rule 5
 * of machine_script.h. Pure. */
#ifndef HD_CHAOS_MACHINE_CHECK_H
#define HD_CHAOS_MACHINE_CHECK_H

#include "chaos/machine_script.h"

/* Of events in order; line: [n] where each stands in the file, NULL: a trace. Sets the cloud of each event
 * ADD. HD_E_INPUT: the first that cannot be. */
HD_MUST_USE enum hd_err hd_machine_script_check(struct hd_machine_script *script, const char *file,
	const size_t *line, struct hd_arena *arena, struct hd_diag *diag);

#endif
