#include "clustersim/availability.h"

#include <math.h>

#include "clustersim/machines.h"

enum hd_err hd_availability_read(struct hd_spot_trace *trace, const char *name, const uint8_t *bytes,
	size_t len, uint64_t seed, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_machine_events events;
	struct hd_diag why = { "" };
	enum hd_err err = hd_machine_events_csv(&events, name, bytes, len, arena, diag);

	if (err)
		return err;
	if (!events.n)
		return hd_fail(diag, HD_E_INPUT, "%s: no machine ever comes in it", name);
	struct hd_spot_change *changes = hd_arena_take(arena, events.n, sizeof *changes);
	if (!changes)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its events", name);
	for (size_t i = 0; i < events.n; i++) {
		const struct hd_machine_event *e = &events.at[i];
		changes[i] = (struct hd_spot_change){ llround(e->at_s * 1000), e->change,
			*e->name ? e->name : NULL };
	}
	err = hd_spot_trace_make(trace, events.n, changes, seed, arena, &why);
	return err ? hd_fail(diag, err, "%s: %s", name, why.text) : HD_OK;
}
