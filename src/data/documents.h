/* documents.h -- the documents of some texts, a batch at a time.
 *
 * 1. A batch has as many documents as fit `batch_bytes`, one at least; their bytes lie in `bytes`.
 * 2. A line ends with \n, the last one also with its file.
 * 3. With `field` a text is JSON Lines, whose lines are given as they are, or a Parquet file, which begins as
 * one:
 *    then each row's cell of that path is a document (is_text), and `line` counts rows.
 *
 * Threads: one; the documents of a batch may be read by any until the next. */
#ifndef HD_DATA_DOCUMENTS_H
#define HD_DATA_DOCUMENTS_H

#include "sys/file.h"

enum { HD_DOCUMENTS_CAP = 1 << 16,        /* of a batch */
       HD_DOCUMENTS_READ = 1 << 20 };

/* line 0: the whole text */
struct hd_document { size_t at, len; uint32_t text; uint64_t line; bool is_text; };

struct hd_document_rows;                  /* of a Parquet file that is open */

struct hd_documents {
	struct hd_fs *fs;
	const char *const *texts; uint32_t ntexts, itext;
	bool lines;
	const char *field;
	struct hd_document_rows *rows;
	size_t batch_bytes, document_cap;
	struct hd_file file; bool open, stdin_open;
	/* lines: read, not given */
	uint8_t *ahead; uint32_t ahead_cap; size_t ahead_at, ahead_len; bool ended;
	uint64_t line;
	uint8_t *bytes; uint32_t bytes_cap; size_t len;
	struct hd_document *at; uint32_t cap, n;
};

void hd_documents_init(struct hd_documents *documents, struct hd_fs *fs, const char *const *texts,
	uint32_t ntexts, bool lines, const char *field, size_t batch_bytes, size_t document_cap);
/* n == 0: no more. */
HD_MUST_USE enum hd_err hd_documents_next(struct hd_documents *documents, struct hd_diag *diag);
void hd_documents_finish(struct hd_documents *documents);

#endif
