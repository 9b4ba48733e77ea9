/* lines.h -- a file of records, one a line, that is only added to and never torn.
 *
 * metrics.ndjson, events.ndjson, samples, decisions.ndjson and audit.ndjson are such files. Readers take each
 * line for one record, so half a line followed by the next record would spoil both.
 *
 * 1. Opening cuts off what follows the last line end: a process that died in the middle of a write left it.
 * 2. A record is there whole or not at all. After a write that failed (a full disk) the file is cut back to
 *    the last whole record, at once or, where that fails too, before the next record.
 * 3. A record that could not be written is counted in `lost`, until the owner has reported it and clears the
 *    count.
 *
 * One process writes a file at a time: the owner holds a lock or a name of its own.
 * Ownership: open/close; a zeroed struct is closed, and what is added to it goes nowhere. Threads: one at
 * a time. */
#ifndef HD_SYS_LINES_H
#define HD_SYS_LINES_H

#include "sys/file.h"

struct hd_lines {
	struct hd_file file;
	int64_t end_bytes;                /* of the last whole record */
	bool torn;                        /* something may lie behind it */
	uint64_t lost;                    /* records, since the owner last set it to 0 */
};

/* Made if it is missing. */
HD_MUST_USE enum hd_err hd_lines_open(struct hd_lines *lines, struct hd_fs *fs, const char *path,
	struct hd_diag *diag);
/* `text` is one or more records, each with its line end; they are written or lost together. */
HD_MUST_USE enum hd_err hd_lines_add(struct hd_lines *lines, const char *text, size_t len,
	struct hd_diag *diag);
/* takes zeroed ones */
HD_MUST_USE enum hd_err hd_lines_close(struct hd_lines *lines, struct hd_diag *diag);

#endif
