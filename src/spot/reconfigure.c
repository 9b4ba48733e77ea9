#include "spot/reconfigure.h"

const char *const hd_reconfigure_names[HD_NRECONFIGURES] = {
#define X(id, name, about) [HD_RECONFIGURE_##id] = name,
	HD_RECONFIGURE_RULES(X)
#undef X
};

uint32_t hd_spot_pipelines(uint32_t devices, uint32_t stages, uint32_t most)
{
	return devices / stages < most ? devices / stages : most;
}

enum hd_reconfigure hd_reconfigure(const struct hd_spot_standing *s)
{
	if (s->leaving)
		return HD_RECONFIGURE_EVACUATE;
	if (s->doubled && s->waiting >= s->doubled)
		return HD_RECONFIGURE_REPLACE;
	if (s->doubled && 2000000ull * s->doubled > (uint64_t)s->risk_ppm * s->active)
		return HD_RECONFIGURE_REBALANCE;
	if (hd_spot_pipelines(s->active + s->waiting, s->stages, s->most) > s->pipelines)
		return HD_RECONFIGURE_GROW;
	return HD_RECONFIGURE_GO_ON;
}
