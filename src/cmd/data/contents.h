/* contents.h -- what a tar shard or a record file holds, a line a member or a record, as its bytes come by.
 *
 * `data cat` of a file or an object prints through it.
 *
 * 1. What it is, its first block says (data/tar.h, data/record.h), not its name. Others print nothing.
 * 2. At most `limit` lines; what comes after is counted. Memory does not grow with the file.
 * 3. Damage ends the listing or, of a record whose length is right, is a line; hd_contents_end() says where
 *    the first is: HD_E_INPUT.
 * 4. Names in text are printable ASCII: other bytes are '?'. In JSON they are escaped.
 *
 * Ownership: none; `name` and `cmd` are borrowed. */
#ifndef HD_CMD_DATA_CONTENTS_H
#define HD_CMD_DATA_CONTENTS_H

#include "base/json_writer.h"
#include "data/record.h"
#include "data/tar.h"
#include "cmd/verbs.h"

enum hd_contents_form { HD_CONTENTS_NONE, HD_CONTENTS_TAR, HD_CONTENTS_RECORDS };

struct hd_contents {
	enum hd_contents_form form;
	const char *name;
	bool json;
	uint64_t limit, n, listed, damaged, damaged_at;      /* damaged_at: offset of the first */
	struct hd_tar tar;
	struct hd_records records;
	enum hd_err err;
	struct hd_diag why;
};

/* `bytes`: the first of the file, HD_TAR_BLOCK of them or all. */
void hd_contents_begin(struct hd_contents *contents, const char *name, uint64_t limit, bool json,
	const uint8_t *bytes, size_t len);
void hd_contents_feed(struct hd_contents *contents, const uint8_t *bytes, size_t len);
/* How many there are, as keys of an object; nothing for other files. */
void hd_contents_put(const struct hd_contents *contents, struct hd_json_writer *w);
HD_MUST_USE enum hd_err hd_contents_end(struct hd_contents *contents, struct hd_diag *diag);

#endif
