#include "data/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

void hd_tar_init(struct hd_tar *tar)
{
	memset(tar, 0, sizeof *tar);
}

/* Octal with blanks or a zero behind, or, with the highest bit set, the rest as one big number. */
static bool number(const uint8_t *field, size_t len, uint64_t *value)
{
	uint64_t v = field[0] & 0x80 ? field[0] & 0x7f : 0;
	size_t i = 0;

	if (field[0] & 0x80) {
		for (i = 1; i < len; i++)
			if (!hd_mul_u64(v, 256, &v) || !hd_add_u64(v, field[i], &v))
				return false;
		*value = v;
		return true;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		if (!hd_mul_u64(v, 8, &v) || !hd_add_u64(v, (uint64_t)(field[i] - '0'), &v))
			return false;
	*value = v;
	return i == len || field[i] == ' ' || field[i] == '\0';
}

/* With its own field as blanks; some old programs took the bytes as signed. */
static bool sum_fits(const uint8_t *block)
{
	uint64_t said;
	int64_t sum = 0, as_signed = 0;

	for (size_t i = 0; i < HD_TAR_BLOCK; i++) {
		const uint8_t c = i >= 148 && i < 156 ? ' ' : block[i];
		sum += c;
		as_signed += (int8_t)c;
	}
	return number(block + 148, 8, &said) && ((int64_t)said == sum || (int64_t)said == as_signed);
}

size_t hd_tar_key(const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

	return (size_t)(last - name) + strcspn(last, ".");
}

bool hd_tar_begins(const uint8_t block[HD_TAR_BLOCK])
{
	uint64_t size;

	return sum_fits(block) && number(block + 124, 12, &size);
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < HD_TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static void take_name(struct hd_tar *t)
{
	const char *name = (const char *)t->block, *prefix = (const char *)t->block + 345;
	const bool ustar = !memcmp(t->block + 257, "ustar", 6);

	if (t->name[0])
		memcpy(t->member.name, t->name, sizeof t->name);
	else
		(void)snprintf(t->member.name, sizeof t->member.name, "%.*s%s%.*s", ustar ? 155 : 0, prefix,
			ustar && prefix[0] ? "/" : "", 100, name);
	t->name[0] = '\0';
}

static bool is_extra(char type) { return type == 'x' || type == 'L'; }
static bool is_file(char type) { return type == '0' || type == '\0' || type == '7'; }
/* links, devices, folders: whatever size stands there, nothing follows */
static bool is_bare(char type) { return type >= '1' && type <= '6'; }

static enum hd_err take_header(struct hd_tar *t, const char *name, const struct hd_tar_sink *sink,
	struct hd_diag *diag)
{
	const uint64_t at = t->at - HD_TAR_BLOCK;
	uint64_t size;

	if (is_zero(t->block)) {
		t->ended = true;
		return HD_OK;
	}
	if (!sum_fits(t->block) || !number(t->block + 124, 12, &size))
		return hd_fail(diag, HD_E_INPUT, "%s: no header of a tar file stands at byte %" PRIu64, name,
			at);
	t->type = (char)t->block[156];
	if (!is_extra(t->type) && t->has_size)
		size = t->size;
	t->has_size = t->has_size && is_extra(t->type);
	size = is_bare(t->type) ? 0 : size;
	if (size > INT64_MAX - HD_TAR_BLOCK || (is_extra(t->type) && size >= sizeof t->extra))
		return hd_fail(diag, HD_E_INPUT,
			"%s: the member at byte %" PRIu64 " says that it has %" PRIu64
			" bytes, which is too many", name, at, size);
	t->body = size;
	t->left = (size + HD_TAR_BLOCK - 1) / HD_TAR_BLOCK * HD_TAR_BLOCK;
	t->nextra = 0;
	t->in_member = true;
	if (!is_file(t->type)) {
		/* the long name of a folder or a link is not that of the file behind it */
		if (!is_extra(t->type) && t->type != 'K' && t->type != 'g')
			t->name[0] = '\0';
		return HD_OK;
	}
	take_name(t);
	t->member.offset = t->at;
	t->member.len = size;
	return sink->begin(sink->user, &t->member, diag);
}

/* "LENGTH KEY=VALUE\n", again and again. */
static bool take_pax(struct hd_tar *t)
{
	for (size_t at = 0; at < t->nextra;) {
		size_t len = 0, i = at;
		for (; i < t->nextra && t->extra[i] >= '0' && t->extra[i] <= '9' && len < sizeof t->extra;
			i++)
			len = len * 10 + (size_t)(t->extra[i] - '0');
		if (i == at || i >= t->nextra || t->extra[i] != ' ' || len > t->nextra - at ||
			len < i - at + 3 ||
			t->extra[at + len - 1] != '\n')
			return false;
		char *key = t->extra + i + 1, *end = t->extra + at + len - 1;
		*end = '\0';
		if (!strncmp(key, "path=", 5)) {
			if (strlen(key + 5) >= sizeof t->name)
				return false;
			memcpy(t->name, key + 5, strlen(key + 5) + 1);
		} else if (!strncmp(key, "size=", 5)) {
			t->size = 0;
			for (const char *p = key + 5; *p; p++)
				if (*p < '0' || *p > '9' || !hd_mul_u64(t->size, 10, &t->size) ||
					!hd_add_u64(t->size, (uint64_t)(*p - '0'), &t->size))
					return false;
			t->has_size = true;
		}
		at += len;
	}
	return true;
}

static enum hd_err end_member(struct hd_tar *t, const char *name, const struct hd_tar_sink *sink,
	struct hd_diag *diag)
{
	bool good = true;

	t->in_member = false;
	if (is_file(t->type))
		return sink->end(sink->user, diag);
	if (t->type == 'x')
		good = take_pax(t);
	if (t->type == 'L') {
		t->extra[t->nextra] = '\0';
		good = strlen(t->extra) < sizeof t->name;
		if (good)
			memcpy(t->name, t->extra, strlen(t->extra) + 1);
	}
	return good ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s: the long name before byte %" PRIu64
		" makes no sense", name, t->at);
}

/* Of a member's bytes, then of its filling. */
static enum hd_err take_body(struct hd_tar *t, const uint8_t *bytes, size_t len,
	const struct hd_tar_sink *sink,
	struct hd_diag *diag)
{
	const size_t n = len < t->body ? len : (size_t)t->body;

	t->body -= n;
	if (is_extra(t->type)) {
		memcpy(t->extra + t->nextra, bytes, n);
		t->nextra += n;
	}
	return n && is_file(t->type) ? sink->bytes(sink->user, bytes, n, diag) : HD_OK;
}

enum hd_err hd_tar_feed(struct hd_tar *t, const uint8_t *bytes, size_t len, const char *name,
	const struct hd_tar_sink *sink, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	while (!err && len && !t->ended) {
		size_t n;
		if (t->in_member) {
			n = len < t->left ? len : (size_t)t->left;
			err = take_body(t, bytes, n, sink, diag);
			t->left -= n;
			t->at += n;
		} else {
			n = HD_TAR_BLOCK - t->nblock < len ? HD_TAR_BLOCK - t->nblock : len;
			memcpy(t->block + t->nblock, bytes, n);
			t->nblock += n;
			t->at += n;
			if (t->nblock == HD_TAR_BLOCK) {
				t->nblock = 0;
				err = take_header(t, name, sink, diag);
			}
		}
		if (!err && t->in_member && !t->left)
			err = end_member(t, name, sink, diag);
		bytes += n;
		len -= n;
	}
	return err;
}

enum hd_err hd_tar_finish(const struct hd_tar *t, const char *name, struct hd_diag *diag)
{
	return t->ended ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is cut off at byte %" PRIu64
		": a tar file ends with a block of zeros", name, t->at);
}
