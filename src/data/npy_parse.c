#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "data/npy.h"
#include "data/reader_int.h"

/* The header's text, read from the left. */
struct cursor { const char *at, *end; };

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
		c->at++;
}

static bool take(struct cursor *c, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(c);
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* 'word' into a small buffer; false if it is no quoted word or too long. */
static bool take_quoted(struct cursor *c, char word[32])
{
	size_t len = 0;

	if (!take(c, "'"))
		return false;
	while (c->at < c->end && *c->at != '\'' && len < 31)
		word[len++] = *c->at++;
	word[len] = 0;
	return c->at < c->end && *c->at++ == '\'';
}

static bool take_extent(struct cursor *c, int64_t *extent)
{
	int64_t v = 0;

	skip_blanks(c);
	if (c->at == c->end || *c->at < '0' || *c->at > '9')
		return false;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
		if (!hd_mul_i64(v, 10, &v) || !hd_add_i64(v, *c->at - '0', &v))
			return false;
	*extent = v;
	return true;
}

static bool take_shape(struct cursor *c, struct hd_npy *npy)
{
	if (!take(c, "("))
		return false;
	npy->rank = 0;
	while (!take(c, ")")) {
		if (npy->rank == HD_NPY_RANK || !take_extent(c, &npy->dim[npy->rank]))
			return false;
		npy->rank++;
		if (!take(c, ","))
			/* "(3)" is a number in brackets, no shape */
			return npy->rank > 1 && take(c, ")");
	}
	return true;
}

static const struct { const char *text; enum hd_dtype dtype; } descrs[] = {
	{ "<f4", HD_F32 }, { "<f8", HD_F64 }, { "|u1", HD_U8 }, { "|b1", HD_U8 }, { "<i4", HD_I32 },
	{ "<i8", HD_I64 },
};

static enum hd_err dtype_of(const char *descr, const char *name, enum hd_dtype *dtype, struct hd_diag *diag)
{
	for (size_t i = 0; i < sizeof descrs / sizeof descrs[0]; i++)
		if (strcmp(descrs[i].text, descr) == 0) {
			*dtype = descrs[i].dtype;
			return HD_OK;
		}
	if (strchr(descr, 'O'))
		return hd_fail(diag, HD_E_INPUT,
			"%s holds Python objects: they are never loaded; save an array of numbers", name);
	return hd_fail(diag, HD_E_INPUT,
		"%s has elements of type '%s'; read are <f4, <f8, |u1, |b1, <i4, <i8: convert with astype()",
			name,
		descr);
}

enum key { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

static enum hd_err bad_header(const char *name, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: the header is not what numpy.save() writes", name);
}

static enum hd_err take_pair(struct cursor *c, unsigned *seen, const char *name, struct hd_npy *npy,
	struct hd_diag *diag)
{
	char key[32], descr[32];
	unsigned bit;

	if (!take_quoted(c, key) || !take(c, ":"))
		return bad_header(name, diag);
	bit = strcmp(key, "descr") == 0 ? KEY_DESCR : strcmp(key, "fortran_order") == 0 ? KEY_ORDER :
		strcmp(key, "shape") == 0 ? KEY_SHAPE : 0;
	if (bit == 0 || (*seen & bit))
		return bad_header(name, diag);
	*seen |= bit;
	if (bit == KEY_SHAPE)
		return take_shape(c, npy) ? HD_OK : hd_fail(diag, HD_E_INPUT,
			"%s: the header's shape cannot be read, or has more than %d extents",
			name, HD_NPY_RANK);
	if (bit == KEY_ORDER) {
		if (take(c, "True"))
			return hd_fail(diag, HD_E_INPUT,
				"%s is in Fortran order: save it through numpy.ascontiguousarray()", name);
		return take(c, "False") ? HD_OK : bad_header(name, diag);
	}
	if (take(c, "["))
		return hd_fail(diag, HD_E_INPUT, "%s holds records: save each column as an array of its own",
			name);
	return take_quoted(c, descr) ? dtype_of(descr, name, &npy->dtype, diag) : bad_header(name, diag);
}

static enum hd_err parse_header(const char *text, size_t len, const char *name, struct hd_npy *npy,
	struct hd_diag *diag)
{
	struct cursor c = { text, text + len };
	unsigned seen = 0;

	if (!take(&c, "{"))
		return bad_header(name, diag);
	while (!take(&c, "}")) {
		enum hd_err err = take_pair(&c, &seen, name, npy, diag);
		if (err != HD_OK)
			return err;
		if (!take(&c, ",")) {
			if (take(&c, "}"))
				break;
			return bad_header(name, diag);
		}
	}
	skip_blanks(&c);
	return c.at == c.end && seen == KEY_ALL ? HD_OK : bad_header(name, diag);
}

enum hd_err hd_npy_parse(const uint8_t *bytes, size_t len, const char *name, struct hd_npy *npy,
	struct hd_diag *diag)
{
	static const uint8_t magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
	struct hd_npy got = { 0 };
	uint64_t need = 0;

	if (len < 12 || memcmp(bytes, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT,
			"%s is not an .npy file: the magic number is wrong (%zu bytes)", name, len);
	if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is of .npy version %u.%u; known are 1.0, 2.0, 3.0", name,
			bytes[6], bytes[7]);
	size_t at = bytes[6] == 1 ? 10 : 12, header_len = bytes[6] == 1 ? hd_get16(bytes + 8) :
		hd_get32(bytes + 8);
	if (header_len > len - at)
		return hd_fail(diag, HD_E_INPUT, "%s is cut off inside its header: %zu bytes", name, len);
	enum hd_err err = parse_header((const char *)bytes + at, header_len, name, &got, diag);
	if (err != HD_OK)
		return err;
	got.nelems = 1;
	for (uint32_t i = 0; i < got.rank; i++)
		if (!hd_mul_u64(got.nelems, (uint64_t)got.dim[i], &got.nelems))
			return hd_fail(diag, HD_E_INPUT, "%s: impossible shape %s", name,
				hd_dims_text(got.rank, got.dim).at);
	if (!hd_mul_u64(got.nelems, hd_dtype_bytes(got.dtype), &need))
		need = UINT64_MAX;
	if (need != len - at - header_len)
		return hd_fail(diag, HD_E_INPUT,
			"%s is %s: shape %s of %s does not fit the %zu bytes after the header", name,
			need > len - at - header_len ? "cut off" : "too long",
			hd_dims_text(got.rank, got.dim).at, hd_dtype_text(got.dtype),
				len - at - header_len);
	got.at = bytes + at + header_len;
	*npy = got;
	return HD_OK;
}
