#include "data/record.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"

uint32_t hd_record_check(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

bool hd_record_begins(const uint8_t head[HD_RECORD_HEAD])
{
	return hd_record_check(hd_crc32c(0, head, 8)) == hd_get32(head + 8) && hd_get64(head) <= INT64_MAX;
}

void hd_records_init(struct hd_records *r) { memset(r, 0, sizeof *r); }

static enum hd_err take_head(struct hd_records *r, const char *name, struct hd_diag *diag)
{
	r->record = (struct hd_record){ .offset = r->at, .len = hd_get64(r->head) };
	if (!hd_record_begins(r->head))
		return hd_fail(diag, HD_E_INPUT,
			"%s: no record begins at byte %" PRIu64 ": the check of its length "
			"is wrong", name, r->at - HD_RECORD_HEAD);
	r->left = r->record.len;
	return HD_OK;
}

/* Up to `want` bytes into a field; how many it took. */
static size_t fill(uint8_t *field, uint32_t *n, uint32_t want, const uint8_t *bytes, size_t len)
{
	const size_t take = want - *n < len ? want - *n : len;

	memcpy(field + *n, bytes, take);
	*n += (uint32_t)take;
	return take;
}

enum hd_err hd_records_feed(struct hd_records *r, const uint8_t *bytes, size_t len, const char *name,
	enum hd_err (*each)(void *user, const struct hd_record *record, struct hd_diag *diag), void *user,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	while (len && !err) {
		size_t n;
		if (r->nhead < HD_RECORD_HEAD) {
			n = fill(r->head, &r->nhead, HD_RECORD_HEAD, bytes, len);
		} else if (r->left) {
			n = len < r->left ? len : (size_t)r->left;
			r->record.crc = hd_crc32c(r->record.crc, bytes, n);
			r->left -= n;
		} else {
			n = fill(r->tail, &r->ntail, HD_RECORD_TAIL, bytes, len);
		}
		const bool begins = r->nhead == HD_RECORD_HEAD && !r->left && !r->ntail &&
			!r->record.offset;
		r->at += n;
		bytes += n;
		len -= n;
		if (begins)
			err = take_head(r, name, diag);
		if (err || r->ntail < HD_RECORD_TAIL)
			continue;
		r->record.damaged = hd_record_check(r->record.crc) != hd_get32(r->tail);
		if (r->record.damaged && !r->lists)
			return hd_fail(diag, HD_E_INPUT,
				"%s: the record at byte %" PRIu64 " is damaged: its check is "
				"wrong", name, r->record.offset);
		err = each(user, &r->record, diag);
		r->nhead = r->ntail = 0;
		r->record = (struct hd_record){ 0 };
	}
	return err;
}

enum hd_err hd_records_finish(const struct hd_records *r, const char *name, struct hd_diag *diag)
{
	return !r->nhead ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is cut off inside a record: it has %" PRIu64
		" bytes", name, r->at);
}
