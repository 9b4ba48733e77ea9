/* crc32c.h -- the checksum of frames: CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected, ends inverted).
 *
 * Finds what a path does to bytes by accident; it is no defence against an attacker.
 *
 * 1. Pieces: hd_crc32c(hd_crc32c(0, a), b) is that of a and b joined; 0 begins. "123456789" gives 0xE3069283.
 * 2. Rows with equal answers: 64 bytes folded at a time, the processor's instruction in three lanes, tables;
 *    a call takes the first that the processor has. Pure, any thread. */
#ifndef HD_BASE_CRC32C_H
#define HD_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t hd_crc32c(uint32_t crc, const void *bytes, size_t len);

/* The fastest first; the last can be had everywhere. */
struct hd_crc32c_row {
	const char *name;
	bool (*is_here)(void);
	uint32_t (*crc)(uint32_t crc, const void *bytes, size_t len);
};
enum { HD_CRC32C_ROWS = 3 };
extern const struct hd_crc32c_row hd_crc32c_rows[HD_CRC32C_ROWS];

#endif
