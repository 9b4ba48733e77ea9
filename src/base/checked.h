/* checked.h -- arithmetic on numbers that come from outside.
 *
 * Sizes, counts and offsets out of files, job keys and messages are added and
 * multiplied through these, and narrowed through these; inside a room, after the
 * boundary, plain operators serve.
 *
 * 1. true: the exact result is in *out. false: it does not fit, *out is untouched.
 * 2. A double becomes an integer within 2^62 either way, its fraction dropped: two such still add up. NaN
 *    does not fit. */
#ifndef HD_BASE_CHECKED_H
#define HD_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HD_CHECKED(name, type, builtin)                                                       \
	static inline bool name(type a, type b, type *out)                                     \
	{                                                                                      \
		type r;                                                                        \
		return !builtin(a, b, &r) && ((*out = r), true);                               \
	}
HD_CHECKED(hd_add_size, size_t, __builtin_add_overflow)
HD_CHECKED(hd_sub_size, size_t, __builtin_sub_overflow)
HD_CHECKED(hd_mul_size, size_t, __builtin_mul_overflow)
HD_CHECKED(hd_add_u64, uint64_t, __builtin_add_overflow)
HD_CHECKED(hd_sub_u64, uint64_t, __builtin_sub_overflow)
HD_CHECKED(hd_mul_u64, uint64_t, __builtin_mul_overflow)
HD_CHECKED(hd_add_i64, int64_t, __builtin_add_overflow)
HD_CHECKED(hd_sub_i64, int64_t, __builtin_sub_overflow)
HD_CHECKED(hd_mul_i64, int64_t, __builtin_mul_overflow)
#undef HD_CHECKED

static inline bool hd_u32_from(uint64_t v, uint32_t *out) { return v <= UINT32_MAX &&
	((*out = (uint32_t)v), true); }
static inline bool hd_i32_from(int64_t v, int32_t *out) { return v >= INT32_MIN && v <= INT32_MAX &&
	((*out = (int32_t)v), true); }
static inline bool hd_u64_from(int64_t v, uint64_t *out) { return v >= 0 && ((*out = (uint64_t)v), true); }
static inline bool hd_i64_from(uint64_t v, int64_t *out) { return v <= INT64_MAX &&
	((*out = (int64_t)v), true); }
static inline bool hd_i64_from_f64(double v, int64_t *out) { return v >= -0x1p62 && v <= 0x1p62 &&
	((*out = (int64_t)v), true); }

#endif
