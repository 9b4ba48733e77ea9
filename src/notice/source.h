/* source.h -- for authors of sources: the row that a source is, and what rows share.
 *
 * A source is a file with one `const struct hd_notice_source hd_notice_of_<id>` and a row of list.h. Slots of
 * another way than the row's are NULL. All slots are pure; none may block.
 *
 * Parsers take whatever a service may send: they set `seen` on HD_KNOWN only, and quote nothing that
 * hd_notice_put() has not made printable. */
#ifndef HD_NOTICE_SOURCE_H
#define HD_NOTICE_SOURCE_H

#include "base/json.h"
#include "notice/notice.h"

enum hd_notice_way { HD_NOTICE_BY_HTTP, HD_NOTICE_BY_FILE, HD_NOTICE_BY_SIGNAL };

enum hd_notice_verdict {
	HD_KNOWN,                          /* `seen` is what is the case */
	HD_MORE,                          /* the next request is due at once */
	HD_FAILED,                        /* not understood; diag says why */
	HD_OFF,                           /* there is nothing to hear here; diag says why */
};

struct hd_notice_source {
	const char *name, *cloud;         /* notice.source takes either; rows of a cloud stand together */
	const char *about;                /* for the list of sources */
	enum hd_notice_way way;
	const char *base;                 /* of HTTP: the usual address */
	int64_t every_ns;                 /* between two requests, at least */
	int64_t lead_ns, most_ns;         /* usual lead time; the longest that it can know of, 0: any */

	/* HTTP: the next request */
	void (*ask)(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *ask);
	/* HTTP and files (a file that is not there: status 404) */
	enum hd_notice_verdict (*answer)(struct hd_notice_memory *m, const struct hd_notice_answer *a,
		struct hd_notice_seen *seen, struct hd_diag *diag);
	/* HTTP, or NULL: tells that `standing` need not wait for us; false: nothing to tell */
	bool (*approve)(const struct hd_notice_seen *standing, struct hd_notice_ask *ask);
	/* signals: does this process run there? */
	bool (*is_here)(char *const *environment);
	/* signals: what the one of that name announces */
	void (*signal)(const char *signal, char *const *environment, struct hd_notice_seen *seen);
};

#define X(id) extern const struct hd_notice_source hd_notice_of_##id;
#include "notice/list.h"
#undef X

/* Copies what is printable, cut to fit. */
void hd_notice_put(char *to, size_t cap, const char *text, size_t len);
/* The body as an object in `arena`; false: diag says what is wrong. */
bool hd_notice_object(struct hd_arena *arena, const struct hd_notice_answer *a, const struct hd_json **object,
	struct hd_diag *diag);
/* A text member; "" where there is none, or another type. */
const char *hd_notice_member(const struct hd_json *object, const char *key);
/* Status and reason, for what is not understood. */
enum hd_notice_verdict hd_notice_strange(const struct hd_notice_answer *a, struct hd_diag *diag);

#endif
