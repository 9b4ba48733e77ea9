/* blob.h -- a source of byte ranges: a file, an object behind HTTP, an object of S3.
 *
 * Sets of samples that are read by ranges, and sources of all others that lie elsewhere, read through it.
 * Rows of one table: `file` (io_uring, or pread on threads, past the page cache where asked), `http` (http,
 * https) and `s3`.
 *
 * 1. What a read hands over are the bytes that stood at that place when the store was opened, or it fails:
 *    HTTP asks with If-Match; a file whose length or time of change has moved is another one.
 * 2. At most `depth` requests of a call are in flight.
 * 3. An answer is taken only if it is 206 with exactly the Content-Range that was asked for, or 200 with
 *    exactly the whole object where all of it was. Others: HD_E_PROTOCOL.
 * 4. 408, 429, 500, 502, 503, 504, a reset, silence: up to HD_BLOB_TRIES tries, after 100 ms * 2^k, 50 % up
 *    or down by a draw of (offset, try), 10 s at most; Retry-After goes before. 412: HD_E_INTEGRITY. 416:
 *    HD_E_INPUT. A file that cannot be read is read once more past nothing (buffered), then it is HD_E_IO
 *    with its offset.
 * 5. At most HD_BLOB_HOPS redirects, never from https to http; keys stay with the host that they are for.
 * 6. http:// only to loopback, or with `plain`. Keys: from the environment (AWS_ACCESS_KEY_ID,
 *    AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), else from the profile of AWS_PROFILE in
 *    AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials, which must be its owner's alone; else none:
 *    unsigned. Metadata services are not asked.
 * 7. Waits are bounded: what is in 4, and sys/web_get.h.
 *
 * Ownership: open/close. Threads: any number may read at once; each such thread has connections of its own.
 * */
#ifndef HD_DATA_BLOB_H
#define HD_DATA_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "data/ranges.h"

enum hd_blob_direct { HD_DIRECT_AUTO, HD_DIRECT_ALWAYS, HD_DIRECT_NEVER };
/* auto: io_uring past the page cache, threads through it, where they copy with several cores */
enum hd_blob_api { HD_API_AUTO, HD_API_URING, HD_API_THREADS };

/* Borrowed until the store is closed. */
struct hd_blob_rules {
	const char *cache; uint64_t cache_bytes;         /* cache.h; NULL, 0: none, auto */
	const char *endpoint, *region;                   /* s3; NULL: of the environment */
	bool plain;
	enum hd_blob_direct direct;
	enum hd_blob_api api;
	uint32_t tries;                                  /* of objects; 0: HD_BLOB_TRIES */
	/* what is waited for, a line: after 3 s, then each 10; any thread; NULL: nothing listens */
	void (*waits)(void *user, const char *text);
	void *user;
};

enum { HD_BLOB_LOOK_MS = 100, HD_BLOB_TRIES = 8, HD_BLOB_HOPS = 3, HD_BLOB_NAME = 2048, HD_BLOB_VERSION = 300,
	HD_BLOB_HERE = 1 << 20 };

/* What reading has cost. */
struct hd_blob_count { uint64_t requests, bytes, wasted, retries; };

struct hd_served;                         /* served.h */
struct hd_blob;
struct hd_blob_ops {
	const char *name;
	/* All requests, `depth` at once; blocks; any thread. Of several failures the message is of the first
	 * in the order of requests. */
	enum hd_err (*read)(struct hd_blob *store, const struct hd_request *request, uint32_t n,
		uint32_t depth,
		struct hd_diag *diag);
	/* What is in this machine's memory, by the caller alone, without waiting: short reads by threads cost
	 * more to hand over than to do. false: some of it is not, and `into` may have part of it; NULL: as
	 * false. */
	bool (*read_here)(struct hd_blob *store, const struct hd_range *range, uint32_t nranges);
	void (*close)(struct hd_blob *store);
};

/* First member of every row's private struct. */
struct hd_blob {
	const struct hd_blob_ops *ops;
	uint64_t size_bytes;
	char name[HD_BLOB_NAME];                 /* as the user wrote it */
	/* names this content among all that the name has had: ETag, or inode and time; "" : the server gives
	 * none, and a change is not seen */
	char version[HD_BLOB_VERSION];
	const char *by;                  /* of files: what reads, "io_uring" or "threads"; else NULL */
	struct hd_diag by_why;           /* why io_uring is not it where it was to be */
	/* of files: whose rings are used, so that a set of many files has few open; NULL: its own. Set before
	 * it is read from; nothing reads when that one is closed */
	struct hd_blob *rings;
	_Atomic uint64_t requests, bytes, wasted, retries;
	/* as of the rules; another one may be set while nothing reads */
	void (*waits)(void *user, const char *text);
	void *waits_user;
	/* where the times of requests are counted, under a group of files; NULL: nowhere. Set before it is
	 * read from; borrowed */
	struct hd_served *served; uint32_t group;
	/* grows by 1 whenever a thread that waits for an answer has looked for it, each HD_BLOB_LOOK_MS at
	 * most; NULL: nowhere. Set before it is read from; borrowed */
	_Atomic uint64_t *looks;
};

bool hd_blob_is_url(const char *text);
/* A path or a URL. Asks for its length and version. rules NULL: the defaults. */
HD_MUST_USE enum hd_err hd_blob_open(struct hd_blob **store, const char *name,
	const struct hd_blob_rules *rules, struct hd_diag *diag);
void hd_blob_close(struct hd_blob *store);                   /* takes NULL */
/* Fills sorted ranges; HD_E_INPUT: one ends behind the store. */
HD_MUST_USE enum hd_err hd_blob_read(struct hd_blob *store, const struct hd_range *range, uint32_t nranges,
	const struct hd_ranges_knobs *knobs, struct hd_diag *diag);
/* As read_here of its row, of HD_BLOB_HERE bytes at most: more is copied by several threads. */
bool hd_blob_read_here(struct hd_blob *store, const struct hd_range *range, uint32_t nranges);
/* A request took so long. */
void hd_blob_served(struct hd_blob *store, int64_t ns);
struct hd_blob_count hd_blob_count(const struct hd_blob *store);
/* Where reading begins before anything is known of a store. */
struct hd_ranges_knobs hd_blob_knobs(const struct hd_blob *store);

/* For the rows. */
HD_MUST_USE enum hd_err hd_blob_file_open(struct hd_blob **store, const char *path,
	const struct hd_blob_rules *rules, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_blob_http_open(struct hd_blob **store, const char *url,
	const struct hd_blob_rules *rules, struct hd_diag *diag);
/* How long to wait before try `k` (1 .. HD_BLOB_TRIES - 1) at what stands at `offset`; pure. */
int64_t hd_blob_backoff_ms(uint64_t offset, uint32_t k);

#endif
