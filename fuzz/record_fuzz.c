/* Records are the same in one piece and in uneven ones, and lie inside the file, one behind another;
 * with damaged ones listed, too, there are no fewer. */
#include <stdlib.h>

#include "data/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen_records { uint64_t n, end, sum; size_t len; };

static enum hd_err each(void *user, const struct hd_record *r, struct hd_diag *diag)
{
	struct seen_records *s = user;

	(void)diag;
	if (r->offset < s->end + HD_RECORD_HEAD || r->offset + r->len + HD_RECORD_TAIL > s->len)
		abort();
	s->end = r->offset + r->len + HD_RECORD_TAIL;
	s->n++;
	s->sum = s->sum * 31 + r->crc;
	return HD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct seen_records whole = { .len = len }, pieces = { .len = len };
	struct hd_records a, b;
	enum hd_err err = HD_OK;

	hd_records_init(&a);
	hd_records_init(&b);
	const enum hd_err first = hd_records_feed(&a, bytes, len, "r", each, &whole, NULL);
	for (size_t at = 0, n = 1; at < len && !err; at += n, n = n % 13 + 1) {
		n = n < len - at ? n : len - at;
		err = hd_records_feed(&b, bytes + at, n, "r", each, &pieces, NULL);
	}
	if (err != first || whole.n != pieces.n || whole.sum != pieces.sum || whole.end != pieces.end)
		abort();
	struct seen_records listed = { .len = len };
	hd_records_init(&b);
	b.lists = true;
	if ((hd_records_feed(&b, bytes, len, "r", each, &listed, NULL) && !first) || listed.n < whole.n)
		abort();
	if (!err && (hd_records_finish(&a, "r", NULL) == HD_OK) != (whole.end == len))
		abort();
	return 0;
}
