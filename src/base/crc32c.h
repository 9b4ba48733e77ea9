/* crc32c.h -- the checksum of frames: CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected, ends inverted).
 *
 * Finds what a path does to bytes by accident; it is no defence against anybody.
 *
 * 1. Pieces: hd_crc32c(hd_crc32c(0, a), b) is that of a and b joined; 0 begins. "123456789" gives 0xE3069283.
 * 2. Two rows with equal answers: tables, and the processor's instruction in three lanes, chosen
 *    per call by what the processor has. Pure, any thread. */
#ifndef HD_BASE_CRC32C_H
#define HD_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t hd_crc32c(uint32_t crc, const void *bytes, size_t len);

/* For tests: each row by itself; the second only where hd_crc32c_has_fast(). */
uint32_t hd_crc32c_table(uint32_t crc, const void *bytes, size_t len);
uint32_t hd_crc32c_fast(uint32_t crc, const void *bytes, size_t len);
bool hd_crc32c_has_fast(void);

#endif
