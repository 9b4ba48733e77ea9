#include "scheduler/lease.h"

#define TO(state) (1 + HD_LEASE_##state)          /* 0: it does not happen */

static const uint8_t table[HD_LEASE_NSTATES][HD_LEASE_NEVENTS] = {
	[HD_LEASE_OFFERED] = { [HD_LEASE_ON_RAN] = TO(HELD),   [HD_LEASE_ON_CHANGED] = TO(RESIZE),
		[HD_LEASE_ON_LEAVE] = TO(DRAIN),
		[HD_LEASE_ON_LATE] = TO(EXPIRED), [HD_LEASE_ON_ENDED] = TO(DRAIN),
		[HD_LEASE_ON_GONE] = TO(RELEASED) },
	[HD_LEASE_HELD]    = { [HD_LEASE_ON_RAN] = TO(HELD),   [HD_LEASE_ON_CHANGED] = TO(RESIZE),
	[HD_LEASE_ON_LEAVE] = TO(DRAIN),
		[HD_LEASE_ON_LATE] = TO(EXPIRED), [HD_LEASE_ON_ENDED] = TO(DRAIN),
		[HD_LEASE_ON_GONE] = TO(RELEASED) },
	[HD_LEASE_RESIZE]  = { [HD_LEASE_ON_RAN] = TO(HELD),   [HD_LEASE_ON_CHANGED] = TO(RESIZE),
	[HD_LEASE_ON_LEAVE] = TO(DRAIN),
		[HD_LEASE_ON_LATE] = TO(EXPIRED), [HD_LEASE_ON_ENDED] = TO(DRAIN),
		[HD_LEASE_ON_GONE] = TO(RELEASED) },
	[HD_LEASE_DRAIN]   = { [HD_LEASE_ON_LATE] = TO(EXPIRED), [HD_LEASE_ON_ENDED] = TO(DRAIN),
	[HD_LEASE_ON_GONE] = TO(RELEASED) },
	[HD_LEASE_EXPIRED] = { [HD_LEASE_ON_KILL] = TO(KILLED),  [HD_LEASE_ON_ENDED] = TO(EXPIRED),
	[HD_LEASE_ON_GONE] = TO(RELEASED) },
	[HD_LEASE_KILLED]  = { [HD_LEASE_ON_KILL] = TO(KILLED),  [HD_LEASE_ON_ENDED] = TO(KILLED),
	[HD_LEASE_ON_GONE] = TO(RELEASED) },
};

bool hd_lease_next(enum hd_lease_state state, enum hd_lease_event event, enum hd_lease_state *next)
{
	uint8_t to = table[state][event];

	if (to)
		*next = (enum hd_lease_state)(to - 1);
	return to;
}

const char *hd_lease_name(enum hd_lease_state state)
{
	static const char *const names[] = {
#define X(id, number, name) [number] = name,
		HD_LEASE_STATES(X)
#undef X
	};

	return names[state];
}
