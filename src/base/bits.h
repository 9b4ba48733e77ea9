/* bits.h -- powers of two and whole multiples, exactly.
 *
 * 1. Pure. Arguments outside the stated range are the caller's bug (assert). */
#ifndef HD_BASE_BITS_H
#define HD_BASE_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

static inline uint32_t hd_floor_log2(uint64_t n) { assert(n > 0); return 63u - (uint32_t)__builtin_clzll(n); }
static inline uint32_t hd_ceil_log2(uint64_t n) { assert(n > 0); return n == 1 ? 0 : hd_floor_log2(n - 1) + 1;
	}
static inline bool hd_is_pow2(uint64_t n) { return n && !(n & (n - 1)); }

/* Where the canonical tree splits n leaves: the largest power of two below n; n >= 2. */
static inline uint64_t hd_tree_split(uint64_t n) { assert(n > 1); return UINT64_C(1) << hd_floor_log2(n - 1);
	}

static inline uint64_t hd_ceil_div(uint64_t n, uint64_t by) { assert(by > 0); return n / by + (n % by != 0); }
/* The caller has checked that the result fits (base/checked.h). */
static inline uint64_t hd_round_up(uint64_t n, uint64_t to) { return hd_ceil_div(n, to) * to; }

#endif
