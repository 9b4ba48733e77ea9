/* testing_tiles.h -- what tests of products in bf16 ask of the processor itself. For tests alone.
 *
 * 1. No answer comes from what is tested. */
#ifndef HD_DEVICE_CPU_TESTING_TILES_H
#define HD_DEVICE_CPU_TESTING_TILES_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/thread.h"
#include "device/cpu/cpu_kernels.h"

/* The processor has pairs, whatever hd_cpu_has_bf16() answers. */
static inline bool hd_lends_pairs(void)
{
	return hd_cpu_path("avx512") && __builtin_cpu_supports("avx512bf16");
}

/* The processor has the tiles and the system lends them, whatever hd_cpu_has_amx() answers. Asked once: under
 * a hypervisor cpuid is slow. */
static inline bool hd_lends_tiles(void)
{
	static int known = -1;
	unsigned a, b, c, d = 0;

	if (known < 0)
		known = hd_lends_pairs() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 22) &&
			(d & 1u << 24) && hd_thread_tiles_allowed();
	return known > 0;
}

/* Does this thread hold tiles, as the processor counts what it would have to save? */
static inline bool hd_holds_tiles(void)
{
	uint32_t low, high;

	if (!hd_lends_tiles())
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return low & (1u << 17 | 1u << 18);
}

#endif
