/* record.h -- records of a record file, in TFRecord's framing, as its bytes come by.
 *
 *	byte 0        8             12          12 + LENGTH
 *	     LENGTH   check of 0-7  the record  check of the record       all little end first
 *
 * check: CRC-32C c, rotated right by 15, plus 0xa282ead8.
 *
 * 1. Every check is compared; a file that ends inside a record is HD_E_INPUT, with the offset.
 * 2. Pieces of any length give the same records.
 * 3. With `lists`, set after hd_records_init(), a record whose own check is wrong is handed over, too, as
 *    `damaged`; a wrong check of a length still ends it, since what follows stands nowhere.
 *
 * Pure: no file, no allocation. */
#ifndef HD_DATA_RECORD_H
#define HD_DATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_RECORD_HEAD = 12, HD_RECORD_TAIL = 4 };

/* Of the bytes alone; crc: CRC-32C itself. */
struct hd_record { uint64_t offset, len; uint32_t crc; bool damaged; };

struct hd_records {
	uint64_t at;
	uint8_t head[HD_RECORD_HEAD]; uint32_t nhead;
	uint8_t tail[HD_RECORD_TAIL]; uint32_t ntail;
	uint64_t left;
	struct hd_record record;
	bool lists;                       /* see 3 */
};

uint32_t hd_record_check(uint32_t crc);
/* Whether a file begins as one of records does. */
bool hd_record_begins(const uint8_t head[HD_RECORD_HEAD]);
void hd_records_init(struct hd_records *records);
/* `each` is called for each record that is whole and, but for 3, right. */
HD_MUST_USE enum hd_err hd_records_feed(struct hd_records *records, const uint8_t *bytes, size_t len,
	const char *name, enum hd_err (*each)(void *user, const struct hd_record *record,
		struct hd_diag *diag),
	void *user, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_records_finish(const struct hd_records *records, const char *name,
	struct hd_diag *diag);

#endif
