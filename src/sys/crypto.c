#include "sys/crypto.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"

static enum hd_err refused(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_REFUSED,
		"OpenSSL offers no SHA-256; check its configuration (openssl list -digest-algorithms)");
}

enum hd_err hd_sha256_begin(struct hd_sha256_stream *stream, struct hd_diag *diag)
{
	EVP_MD_CTX *state = EVP_MD_CTX_new();

	if (!state)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a SHA-256 sum");
	if (EVP_DigestInit_ex(state, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(state);
		return refused(diag);
	}
	stream->state = state;
	return HD_OK;
}

enum hd_err hd_sha256_add(struct hd_sha256_stream *stream, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	return EVP_DigestUpdate(stream->state, bytes, len) == 1 ? HD_OK : refused(diag);
}

enum hd_err hd_sha256_end(struct hd_sha256_stream *stream, struct hd_sha256 *sum, struct hd_diag *diag)
{
	struct hd_sha256 whole;
	unsigned len = 0;

	bool good = EVP_DigestFinal_ex(stream->state, whole.byte, &len) == 1 && len == sizeof whole.byte;
	hd_sha256_finish(stream);
	if (!good)
		return refused(diag);
	*sum = whole;
	return HD_OK;
}

void hd_sha256_finish(struct hd_sha256_stream *stream)
{
	EVP_MD_CTX_free(stream->state);
	stream->state = NULL;
}

enum hd_err hd_sha256(const void *bytes, size_t len, struct hd_sha256 *sum, struct hd_diag *diag)
{
	struct hd_sha256_stream stream = { 0 };

	enum hd_err err = hd_sha256_begin(&stream, diag);
	if (!err)
		err = hd_sha256_add(&stream, bytes, len, diag);
	if (!err)
		err = hd_sha256_end(&stream, sum, diag);
	hd_sha256_finish(&stream);
	return err;
}

enum { PIECE_BYTES = 1 << 18 };

static enum hd_err sum_file(struct hd_file *file, uint8_t *piece, struct hd_sha256_stream *stream,
	uint64_t *total, struct hd_diag *diag)
{
	size_t got = PIECE_BYTES;

	for (*total = 0; got == PIECE_BYTES; *total += got) {
		enum hd_err err = hd_file_read(file, piece, PIECE_BYTES, &got, diag);
		if (!err)
			err = hd_sha256_add(stream, piece, got, diag);
		if (err)
			return err;
	}
	return HD_OK;
}

enum hd_err hd_sha256_file(struct hd_fs *fs, const char *path, struct hd_sha256 *sum, uint64_t *len_bytes,
	struct hd_diag *diag)
{
	struct hd_sha256_stream stream = { 0 };
	struct hd_file file = { 0 };
	struct hd_sha256 whole;
	uint64_t total = 0;

	uint8_t *piece = hd_alloc(PIECE_BYTES);
	enum hd_err err = piece ? hd_file_open(fs, path, HD_OPEN_READ, &file, diag) : hd_fail(diag,
		HD_E_NOMEM, "out of memory to read %s", path);
	if (!err)
		err = hd_sha256_begin(&stream, diag);
	if (!err)
		err = sum_file(&file, piece, &stream, &total, diag);
	if (!err)
		err = hd_sha256_end(&stream, &whole, diag);
	hd_sha256_finish(&stream);
	enum hd_err closed = hd_file_close(&file, diag);
	hd_free(piece);
	if (err || closed)
		return err ? err : closed;
	*sum = whole;
	*len_bytes = total;
	return HD_OK;
}

void hd_sha256_hex(const struct hd_sha256 *sum, char hex[HD_SHA256_HEX])
{
	for (size_t i = 0; i < sizeof sum->byte; i++) {
		hex[2 * i] = "0123456789abcdef"[sum->byte[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[sum->byte[i] & 15];
	}
	hex[HD_SHA256_HEX - 1] = 0;
}

static int digit(char c)
{
	const char *at = c ? strchr("0123456789abcdef", c) : NULL;
	return at ? (int)(at - "0123456789abcdef") : -1;
}

bool hd_sha256_parse(const char *hex, struct hd_sha256 *sum)
{
	struct hd_sha256 whole;

	if (strlen(hex) != HD_SHA256_HEX - 1)
		return false;
	for (size_t i = 0; i < sizeof whole.byte; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		whole.byte[i] = (uint8_t)(high << 4 | low);
	}
	*sum = whole;
	return true;
}

bool hd_sha256_same(const struct hd_sha256 *a, const struct hd_sha256 *b) { return !memcmp(a->byte, b->byte,
	sizeof a->byte); }

enum hd_err hd_hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
	struct hd_sha256 *proof, struct hd_diag *diag)
{
	struct hd_sha256 made;
	unsigned n = 0;

	if (key_len > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "a key of %zu bytes is too long", key_len);
	if (!HMAC(EVP_sha256(), key, (int)key_len, bytes, len, made.byte, &n) || n != sizeof made.byte)
		return refused(diag);
	*proof = made;
	return HD_OK;
}

bool hd_sha256_proves(const struct hd_sha256 *a, const struct hd_sha256 *b)
{
	return CRYPTO_memcmp(a->byte, b->byte, sizeof a->byte) == 0;
}

enum hd_err hd_random_bytes(void *bytes, size_t len, struct hd_diag *diag)
{
	for (size_t done = 0; done < len; ) {
		ssize_t n = getrandom((char *)bytes + done, len - done, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hd_fail_errno(diag, errno, "read", "the system's random numbers");
		done += (size_t)n;
	}
	return HD_OK;
}
