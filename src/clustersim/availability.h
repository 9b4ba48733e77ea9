/* availability.h -- a file about when machines were there, as one list of events (spot/trace.h).
 *
 * The forms are those of hd_machine_events_csv() (clustersim/machines.h); times become milliseconds. Which
 * machines a falling count takes is drawn from `seed`.
 *
 * Bad input is HD_E_INPUT and says file and place. Ownership: all lies in the arena. Pure. */
#ifndef HD_CLUSTERSIM_AVAILABILITY_H
#define HD_CLUSTERSIM_AVAILABILITY_H

#include "spot/trace.h"

HD_MUST_USE enum hd_err hd_availability_read(struct hd_spot_trace *trace, const char *name,
	const uint8_t *bytes, size_t len, uint64_t seed, struct hd_arena *arena, struct hd_diag *diag);

#endif
