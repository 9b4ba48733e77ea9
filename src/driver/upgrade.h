/* upgrade.h -- may this program take the place of the one that a run goes on with?
 *
 * Members of a run speak one protocol (wire/hub.h), so the other way is by a checkpoint. HD_E_INVAL says
 * which side is older and what to do. `heddle upgrade` asks.
 *
 * Pure. */
#ifndef HD_DRIVER_UPGRADE_H
#define HD_DRIVER_UPGRADE_H

#include "driver/live.h"

HD_MUST_USE enum hd_err hd_upgrade_fits(const struct hd_live *live, const char *run, uint32_t own,
	struct hd_diag *diag);

#endif
