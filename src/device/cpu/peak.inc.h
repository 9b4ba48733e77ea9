/* peak.inc.h -- as many fused multiply-adds as the core can start, from registers
 * alone: what a kernel's rate is divided by. One source for all paths. HD_PEAK_TERM: another instruction
 * than part_fma. */
#include "device/cpu/vec.h"

#ifndef HD_PEAK_TERM
#define HD_PEAK_TERM part_fma
#endif

enum { CHAINS = 12 };                     /* more than latency times ports: 4 x 2 */

/* `rounds` times CHAINS independent multiply-adds of HD_UNIT lanes; the result keeps them alive. */
static float peak_run(uint64_t rounds)
{
	part acc[CHAINS], x = part_set(1.0f), y = part_set(0x1p-20f), sum = part_set(0);
	float out[HD_WIDTH];

	for (int i = 0; i < CHAINS; i++)
		acc[i] = part_set((float)i);
	for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			acc[i] = HD_PEAK_TERM(acc[i], x, y);
		__asm__ volatile("" : "+v"(x), "+v"(y));
	}
	for (int i = 0; i < CHAINS; i++)
		sum = sum + acc[i];
	part_store(out, sum);
	return out[0];
}

static const double peak_flops_per_round = 2.0 * CHAINS * HD_WIDTH;
