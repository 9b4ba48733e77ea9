#include "planner/ports.h"

#include <assert.h>
#include <math.h>

/* Of one side of the flows: what is left of each port, and among how many. */
struct port_side { double left[HD_PORTS]; uint32_t n[HD_PORTS]; };

static uint32_t end_of(const struct hd_port_flow *flow, uint32_t side)
{
	return side ? flow->to : flow->from;
}

void hd_ports_share(struct hd_port_flow *flow, uint32_t nflows, uint32_t nports, double rate)
{
	struct port_side at[2] = { { .n = { 0 } }, { .n = { 0 } } };

	assert(nports <= HD_PORTS);
	for (uint32_t s = 0; s < 2; s++) {
		for (uint32_t w = 0; w < nports; w++)
			at[s].left[w] = rate;
		for (uint32_t i = 0; i < nflows; i++) {
			at[s].n[end_of(&flow[i], s)]++;
			flow[i].rate = 0;
		}
	}
	for (uint32_t given = 0; given < nflows;) {
		uint32_t side = 0, port = 0;
		double least = INFINITY;
		for (uint32_t s = 0; s < 2; s++)
			for (uint32_t w = 0; w < nports; w++)
				if (at[s].n[w] && at[s].left[w] / at[s].n[w] < least) {
					least = at[s].left[w] / at[s].n[w];
					side = s;
					port = w;
				}
		for (uint32_t i = 0; i < nflows; i++) {
			if (flow[i].rate > 0 || end_of(&flow[i], side) != port)
				continue;
			flow[i].rate = least;
			for (uint32_t s = 0; s < 2; s++) {
				at[s].left[end_of(&flow[i], s)] -= least;
				at[s].n[end_of(&flow[i], s)]--;
			}
			given++;
		}
	}
}
