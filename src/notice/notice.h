/* notice.h -- notices that a machine will be taken away: what they are, and the machine that hears one
 * source.
 *
 * A *source* is a place that gives notice: a cloud's metadata service, a batch system's signals, a file that
 * a user's command writes. Each is a row of list.h and a file of its own (source.h). The agent of a process
 * (worker/notice_agent.h) gives a *watch* of each source time, answers and signals; the watch says what to
 * ask, when, and which notices came of it.
 *
 * 1. A source says what is the case now, a watch what has changed: a notice that is there again is none, one
 *    with another end is a new one, one that is gone is withdrawn, unless what it announced has begun.
 * 2. No answer, and an answer that cannot be understood, say nothing: what stands goes on to stand. The
 *    watch asks again after 1 s, then twice as long each time, at most HD_NOTICE_BACKOFF_NS, and says so
 *    once (`said`), and once more when the source answers again.
 * 3. A preemption always has an end, by the monotonic clock: an absolute time is counted from the date of the
 *    answer (the service's clock), else from our wall clock. An end in the past is now; one further away than
 *    the source can know (row: most_ns) shows a wrong clock, and is taken for the usual one.
 * 4. At most one request of a source is under way. Redirects are answers that cannot be understood.
 *
 * Pure: time and bytes are arguments. Plain values, no ownership; texts of settings are borrowed. */
#ifndef HD_NOTICE_NOTICE_H
#define HD_NOTICE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/http_head.h"

enum { HD_NOTICE_TEXT = 96, HD_NOTICE_ID = 72, HD_NOTICE_SOURCES = 16, HD_NOTICE_BODY = 64 << 10 };
#define HD_NOTICE_S INT64_C(1000000000)
#define HD_NOTICE_BACKOFF_NS (30 * HD_NOTICE_S)

/*        id         name */
#define HD_NOTICE_KINDS(X) \
	X(NONE,      "none") \
	X(PREEMPT,   "preempt")           /* the machine goes at ends_ns */ \
	X(RISK,      "risk")              /* it may go; nothing is known of when */ \
	X(WITHDRAWN, "withdrawn")         /* what this source said before is not so any more */

enum hd_notice_kind {
#define X(id, name) HD_NOTICE_##id,
	HD_NOTICE_KINDS(X)
#undef X
};
const char *hd_notice_kind_name(enum hd_notice_kind kind);

struct hd_notice {
	enum hd_notice_kind kind;
	const char *source;               /* name of its row */
	bool of_process;                  /* a signal: this process goes, its machine may stay */
	int64_t ends_ns;                  /* PREEMPT: by the monotonic clock; else INT64_MAX */
	char text[HD_NOTICE_TEXT];        /* the source's word for it: "terminate"; printable */
};

struct hd_notice_settings {
	int64_t grace_ns;                 /* lead time of signals; 0: what the source assumes */
	int64_t every_ns;                 /* of HTTP: between two requests; 0: as its row says */
	bool approve;                     /* tell the source when nothing stands in its way any more */
};

/* A request over HTTP/1.1: the method, then what follows the base address. */
struct hd_notice_ask {
	int what;                         /* which of its row's requests */
	const char *method;
	char target[256], lines[448], body[192];  /* lines: whole, each with its end */
	int64_t timeout_ns;
};
struct hd_notice_answer {
	int what, status;
	const struct hd_http_head *head;  /* NULL: of a file */
	const char *body;                 /* [len], ended by 0 */
	size_t len;
	int64_t now_ns, wall_ns;          /* wall_ns: ours */
};

/* What one source remembers between two requests; rows say what they use. */
struct hd_notice_memory {
	char token[260], etag[68], self[132];
	int64_t token_until_ns, token_renew_ns;
	bool token_is_new;                /* no request with it was answered yet */
};

/* What is the case, as an answer says. */
struct hd_notice_seen {
	enum hd_notice_kind kind;         /* NONE, PREEMPT or RISK */
	enum hd_notice_end { HD_END_USUAL, HD_END_WALL, HD_END_LEAD } end;
	int64_t end_ns;                   /* WALL: since 1970; LEAD: from now */
	bool begun;                       /* if it is gone later it was not withdrawn: it has happened */
	char id[HD_NOTICE_ID], text[HD_NOTICE_TEXT];
};

struct hd_notice_source;

struct hd_notice_watch {
	const struct hd_notice_source *source;
	struct hd_notice_settings settings;
	struct hd_notice_memory memory;
	struct hd_notice_seen standing;
	int64_t next_ns, asked_ns, failing_ns;
	uint32_t fails;                   /* in a row */
	bool asking, off, said;           /* off: it will not be asked again */
};

/* ---- sources ---- */

/* The row of a name; NULL: there is none. */
const struct hd_notice_source *hd_notice_find(const char *name);
const char *hd_notice_name(const struct hd_notice_source *source);
/* Is it a word of `notice.source`: auto, env, none, a source, or a cloud with its sources? If not, `words`
 * says which there are. */
bool hd_notice_is_setting(const char *word, char words[256]);
/* The sources that a word stands for, without those that answer only after a probe; `probe`: the first of
 * each cloud, to be asked in this order, at most one of which is there. `environment`: "NAME=value", ends
 * with NULL. */
struct hd_notice_choice {
	const struct hd_notice_source *source[HD_NOTICE_SOURCES], *probe[HD_NOTICE_SOURCES];
	uint32_t n, nprobes;
};
void hd_notice_choose(const char *word, char *const *environment, struct hd_notice_choice *choice);
/* All sources of the cloud of `probed`, which was there. */
void hd_notice_chosen(const struct hd_notice_source *probed, struct hd_notice_choice *choice);

/* The value of NAME in an environment; NULL: it is not there. */
const char *hd_notice_env(char *const *environment, const char *name);

/* ---- a watch ---- */

void hd_notice_watch_init(struct hd_notice_watch *w, const struct hd_notice_source *source,
	const struct hd_notice_settings *settings, int64_t now_ns);
bool hd_notice_by_http(const struct hd_notice_watch *w);
bool hd_notice_by_file(const struct hd_notice_watch *w);
const char *hd_notice_base(const struct hd_notice_source *source);        /* its usual address; "": none */
/* When to ask next; INT64_MAX: not before an answer, or never. */
int64_t hd_notice_watch_next(const struct hd_notice_watch *w);
void hd_notice_watch_ask(struct hd_notice_watch *w, int64_t now_ns, struct hd_notice_ask *ask);
/* True: `notice` came of it. `said`: something to log, or empty; both may be. */
bool hd_notice_watch_answer(struct hd_notice_watch *w, const struct hd_notice_answer *answer,
	struct hd_notice *notice, struct hd_diag *said);
void hd_notice_watch_failed(struct hd_notice_watch *w, int64_t now_ns, const char *why, struct hd_diag *said);
/* A signal came (its name). False: this source does not take signals for notices. */
bool hd_notice_watch_signal(struct hd_notice_watch *w, const char *signal, char *const *environment,
	int64_t now_ns, int64_t wall_ns, struct hd_notice *notice);
/* The evacuation is done: the request that says so; false: none is due. */
bool hd_notice_watch_approve(struct hd_notice_watch *w, struct hd_notice_ask *ask);
/* Did a probe find its cloud? After an answer. */
bool hd_notice_watch_answered(const struct hd_notice_watch *w);

#endif
