#include "base/pack.h"

#define ZLIB_CONST           /* the input stays const */

#include <limits.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/checked.h"

/* Two passes over the input: the first only counts, into a small window, so that the
 * arena is asked for exactly what is needed and a lying length field costs nothing.
 * Counting takes as long as unpacking, 0.2 s for the 47 MB of Fashion-MNIST. */

enum { WINDOW_BYTES = 64 * 1024, GZIP_ONLY = 16 + MAX_WBITS };

static void *library_alloc(void *ctx, unsigned n, unsigned size)
{
	size_t bytes;

	(void)ctx;
	return hd_mul_size(n, size, &bytes) ? hd_alloc(bytes) : NULL;
}

static void library_free(void *ctx, void *memory)
{
	(void)ctx;
	hd_free(memory);
}

struct pack_source {
	const char *name;
	const uint8_t *bytes;
	size_t len;
	struct hd_diag *diag;
};

static enum hd_err no_memory(const struct pack_source *source)
{
	return hd_fail(source->diag, HD_E_NOMEM, "%s: out of memory while unpacking gzip", source->name);
}

static enum hd_err bad(const struct pack_source *source, const z_stream *z, const char *what)
{
	return hd_fail(source->diag, HD_E_INPUT, "%s: bad gzip data near byte %zu: %s; fetch the file again",
		source->name, source->len - z->avail_in, what);
}

/* Up to `space` more bytes to `to`; *done when the last member ended. zlib counts in 32
 * bits, so that long buffers are fed in parts by the caller's loop. */
static enum hd_err pull(const struct pack_source *source, z_stream *z, size_t *left, uint8_t *to,
	size_t space,
	size_t *got, bool *done)
{
	unsigned feed = *left > UINT_MAX ? UINT_MAX : (unsigned)*left;

	z->next_in = source->bytes + (source->len - *left);
	z->avail_in = feed;
	z->next_out = to;
	z->avail_out = space > UINT_MAX ? UINT_MAX : (unsigned)space;
	unsigned offered = z->avail_out;
	int code = inflate(z, Z_NO_FLUSH);
	*left -= feed - z->avail_in;
	*got = offered - z->avail_out;
	*done = code == Z_STREAM_END && *left == 0;
	if (code == Z_MEM_ERROR)
		return no_memory(source);
	z->avail_in = (unsigned)(*left > UINT_MAX ? UINT_MAX : *left);
	if (code == Z_STREAM_END)
		return *left == 0 || inflateReset(z) == Z_OK ? HD_OK : bad(source, z,
			"a member that cannot start");
	if (code == Z_BUF_ERROR)
		return bad(source, z, "cut short");
	return code == Z_OK ? HD_OK : bad(source, z, z->msg ? z->msg : "damaged");
}

/* to NULL: count into the window. Otherwise exactly `most` bytes are there to be filled. */
static enum hd_err pass(const struct pack_source *source, uint8_t *to, size_t most, size_t *total)
{
	uint8_t window[WINDOW_BYTES];
	z_stream z = { .zalloc = library_alloc, .zfree = library_free };
	size_t left = source->len, sum = 0, got;
	enum hd_err err = HD_OK;
	bool done = false;

	if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
		return no_memory(source);
	while (!err && !done) {
		/* one byte of grace behind `most`, so that the trailer is read when all bytes are out */
		size_t space = to ? most - sum + 1 : sizeof window;
		err = pull(source, &z, &left, to ? to + sum : window, space, &got, &done);
		sum += got;
		if (!err && sum > most)
			err = hd_fail(source->diag, HD_E_INPUT,
				"%s: more than %zu bytes come out of this gzip file", source->name, most);
	}
	inflateEnd(&z);
	*total = sum;
	return err;
}

bool hd_gzip_is(const uint8_t *bytes, size_t len) { return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

enum hd_err hd_gzip_unpack(struct hd_arena *arena, const char *name, const uint8_t *bytes, size_t len,
	size_t max_bytes, uint8_t **out, size_t *out_len, struct hd_diag *diag)
{
	const struct pack_source source = { name, bytes, len, diag };
	size_t total, again, space;

	if (!hd_gzip_is(bytes, len))
		return hd_fail(diag, HD_E_INPUT, "%s: not a gzip file", name);
	enum hd_err err = pass(&source, NULL, max_bytes, &total);
	if (err)
		return err;
	uint8_t *to = hd_add_size(total, 1, &space) ? hd_arena_take(arena, space, 1) : NULL;
	if (!to)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for the %zu bytes that come out of it", name,
			total);
	err = pass(&source, to, total, &again);
	if (err)
		return err;
	if (again != total)
		return hd_fail(diag, HD_E_BUG, "%s: unpacked %zu bytes, then %zu", name, total, again);
	*out = to;
	*out_len = total;
	return HD_OK;
}

uint32_t hd_crc32(const uint8_t *bytes, size_t len) { return (uint32_t)crc32_z(0, bytes, len); }
