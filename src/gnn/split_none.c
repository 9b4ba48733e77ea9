/* For builds without METIS. */
#include "gnn/split_int.h"

bool hd_split_metis_built(void) { return false; }

enum hd_err hd_bisect_metis(const struct hd_bisect *graph, uint64_t seed, uint8_t *side, struct hd_diag *diag)
{
	(void)graph, (void)seed, (void)side;
	return hd_fail(diag, HD_E_REFUSED, "this build has no METIS: install libmetis-dev and build again, "
		"or "
		"take --splitter own");
}
