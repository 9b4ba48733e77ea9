/* Members are the same in one piece and in uneven ones, and lie inside the file, one behind another. */
#include <stdlib.h>
#include <string.h>

#include "data/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen_members { uint64_t n, end, sum, open; size_t len; };

static enum hd_err begin(void *user, const struct hd_tar_member *m, struct hd_diag *diag)
{
	struct seen_members *s = user;

	(void)diag;
	if (m->offset < s->end || !memchr(m->name, 0, sizeof m->name))
		abort();
	s->end = m->offset + m->len;
	s->open = m->len;
	s->n++;
	for (const char *p = m->name; *p; p++)
		s->sum = s->sum * 31 + (uint8_t)*p;
	return HD_OK;
}

static enum hd_err take(void *user, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct seen_members *s = user;

	(void)diag;
	if (len > s->open)
		abort();
	s->open -= len;
	for (size_t i = 0; i < len; i++)
		s->sum = s->sum * 31 + bytes[i];
	return HD_OK;
}

static enum hd_err end(void *user, struct hd_diag *diag)
{
	const struct seen_members *s = user;

	(void)diag;
	if (s->open || s->end > s->len)
		abort();
	return HD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct seen_members whole = { .len = len }, pieces = { .len = len };
	const struct hd_tar_sink to_whole = { &whole, begin, take, end },
		to_pieces = { &pieces, begin, take, end };
	struct hd_tar a, b;
	enum hd_err err = HD_OK;

	hd_tar_init(&a);
	hd_tar_init(&b);
	const enum hd_err first = hd_tar_feed(&a, bytes, len, "t", &to_whole, NULL);
	for (size_t at = 0, n = 1; at < len && !err; at += n, n = n % 700 + 97) {
		n = n < len - at ? n : len - at;
		err = hd_tar_feed(&b, bytes + at, n, "t", &to_pieces, NULL);
	}
	if (err != first || whole.n != pieces.n || whole.sum != pieces.sum)
		abort();
	if (!err && hd_tar_finish(&a, "t", NULL) != hd_tar_finish(&b, "t", NULL))
		abort();
	return 0;
}
