#include "driver/upgrade.h"

enum hd_err hd_upgrade_fits(const struct hd_live *live, const char *run, uint32_t own, struct hd_diag *diag)
{
	const long long has = live->protocol;

	if (live->alone)
		return hd_fail(diag, HD_E_INVAL, "%s goes on in one process, without workers: `heddle stop "
			"%s`, then `heddle resume %s` with the new program", run, run, run);
	if (!live->goes_on || live->away)
		return hd_fail(diag, HD_E_INVAL, "%s does not go on on this machine: there is nothing to "
			"upgrade; `heddle resume` goes on with a run by the program that is called", run);
	if (has == own)
		return HD_OK;
	if (has < own)
		return hd_fail(diag, HD_E_INVAL, "the run is older: %s speaks protocol %lld%s, and this "
			"program %u, so they can not be members of one run. Stop it and go on from its "
			"checkpoint: `heddle stop %s`, then `heddle resume %s` with this program", run, has,
			has ? "" : " or an earlier one", own, run, run);
	return hd_fail(diag, HD_E_INVAL, "this program is older: %s speaks protocol %lld, and this program "
		"%u, so they can not be members of one run. Upgrade this program; or, to go back, `heddle "
		"stop %s`, then `heddle resume %s`", run, has, own, run, run);
}
