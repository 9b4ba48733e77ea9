/* le.h -- numbers in bytes, little end first, at any alignment.
 *
 * Wire and file layouts are written and read through these, never by copying structs.
 * Compilers make one move of each. */
#ifndef HD_BASE_LE_H
#define HD_BASE_LE_H

#include <stdint.h>

static inline uint32_t hd_get16(const uint8_t *p) { return (uint32_t)p[1] << 8 | p[0]; }
static inline uint32_t hd_get32(const uint8_t *p) { return hd_get16(p + 2) << 16 | hd_get16(p); }
static inline uint64_t hd_get64(const uint8_t *p) { return (uint64_t)hd_get32(p + 4) << 32 | hd_get32(p); }

static inline void hd_put16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
static inline void hd_put32(uint8_t *p, uint32_t v) { hd_put16(p, v); hd_put16(p + 2, v >> 16); }
static inline void hd_put64(uint8_t *p, uint64_t v) { hd_put32(p, (uint32_t)v);
	hd_put32(p + 4, (uint32_t)(v >> 32)); }

#endif
