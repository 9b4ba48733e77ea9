/* tokenize.h -- texts to a token file, document by document, by several threads.
 *
 * `heddle data tokenize`. A document is a file, or a line of it, or a field of a line of JSON.
 *
 * 1. Tokens of a document depend on it alone: equal texts give equal bytes, by any number of threads.
 * 2. Documents stand in the order of the texts; lines without anything in them are none.
 * 3. Memory: a batch of HD_TOKENIZE_BATCH bytes a thread, or one document, and a few times that.
 * 4. A request to stop (sys/signal.h) ends it between two documents, as an error does.
 * 5. An error is that of the first document that has one; nothing is left under the output's name.
 *
 * Threads: called by one, starts its own. */
#ifndef HD_DATA_TOKENIZE_H
#define HD_DATA_TOKENIZE_H

#include "token/tokenizer.h"
#include "sys/file.h"

enum { HD_TOKENIZE_BATCH = 4 << 20, HD_TOKENIZE_THREADS = 64 };

struct hd_tokenize {
	const struct hd_tokenizer *tokenizer;
	const char *const *texts; uint32_t ntexts;      /* "-": stdin */
	/* lines are JSON objects, or rows of Parquet: this member is the text; NULL: not so */
	const char *field;
	bool lines;                       /* each line is a document */
	const char *out, *boundaries;     /* data/token_write.h; boundaries: NULL: none */
	bool special;                     /* with what the post-processor adds */
	uint32_t bos, eos;                /* before and behind each document; HD_TOKEN_NONE: nothing */
	uint32_t nthreads;
	void (*progress)(void *user, uint64_t bytes, uint64_t documents);      /* now and then */
	void *user;
};

struct hd_tokenize_report { uint64_t bytes, documents, tokens; uint32_t width_bytes; };

HD_MUST_USE enum hd_err hd_tokenize(const struct hd_tokenize *how, struct hd_fs *fs,
	struct hd_tokenize_report *report, struct hd_diag *diag);

#endif
