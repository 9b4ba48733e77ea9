/* lz_int.h -- two formats of literals and copies, private to pack/. True: exactly out_len bytes came out. */
#ifndef HD_BASE_PACK_LZ_INT_H
#define HD_BASE_PACK_LZ_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool hd_snappy_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len);
bool hd_lz4_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len);

#endif
