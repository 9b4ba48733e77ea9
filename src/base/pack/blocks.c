#include "base/pack.h"

#define ZLIB_CONST
#include <limits.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/pack/lz_int.h"

static void *block_alloc(void *ctx, unsigned n, unsigned size)
{
	size_t bytes;

	(void)ctx;
	return hd_mul_size(n, size, &bytes) ? hd_alloc(bytes) : NULL;
}

static void block_free(void *ctx, void *memory)
{
	(void)ctx;
	hd_free(memory);
}

/* Writers of Parquet write one member; zlib counts in 32 bits, which blocks do not need. */
static bool gzip_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len)
{
	z_stream z = { .zalloc = block_alloc, .zfree = block_free, .next_in = bytes,
		.avail_in = (unsigned)len,
		.next_out = out, .avail_out = (unsigned)out_len };

	if (len > UINT_MAX || out_len > UINT_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return false;
	const int ended = inflate(&z, Z_FINISH);
	const bool all = z.avail_out == 0 && z.avail_in == 0;
	(void)inflateEnd(&z);
	return ended == Z_STREAM_END && all;
}

static bool zstd_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len)
{
	const size_t got = ZSTD_decompress(out, out_len, bytes, len);

	return !ZSTD_isError(got) && got == out_len;
}

static const struct { const char *name; bool (*unpack)(const uint8_t *, size_t, uint8_t *,
	size_t); } codecs[] = {
	[HD_CODEC_SNAPPY] = { "snappy", hd_snappy_unpack },
	[HD_CODEC_LZ4] = { "lz4", hd_lz4_unpack },
	[HD_CODEC_GZIP] = { "gzip", gzip_unpack },
	[HD_CODEC_ZSTD] = { "zstd", zstd_unpack },
};

enum hd_err hd_block_unpack(enum hd_codec codec, const char *name, const uint8_t *bytes, size_t len,
	uint8_t *out,
	size_t out_len, struct hd_diag *diag)
{
	return codecs[codec].unpack(bytes, len, out, out_len) ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"%s: %zu bytes of %s do not unpack to the %zu that they should be: fetch the file again",
		name, len,
		codecs[codec].name, out_len);
}
