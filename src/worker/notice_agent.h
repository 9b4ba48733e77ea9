/* notice_agent.h -- the agent of a process: asks the sources of notices and says when to leave.
 *
 * One thread with a loop of its own asks each source that the job names (notice/notice.h), at most one
 * request a source at a time. The process fetches the news, which become lines of the run's event log, and
 * asks whether it is to leave: a worker in its I/O thread, a run in one process between two steps.
 *
 * 1. A process is to leave once a preemption that stands is near enough (spot/lead.h, NOTE): at once for all
 *    that clouds announce a short time before. A notice of an end that is further off can still be withdrawn.
 * 2. An agent that cannot reach its sources never ends a run: it says so once, and asks again.
 * 3. Signals are announced by the agent, and obeyed by their own way (sys/signal.h).
 * 4. elastic.notice.source auto: clouds are asked one after the other, HD_NOTICE_PROBE_NS each; what was
 *    chosen is news.
 *
 * Ownership: open/close; the spec's pointers are borrowed until close. close() tells sources that wait for it
 * that they need not (elastic.notice.approve), within 2 s each. Threads: any but where said. */
#ifndef HD_WORKER_NOTICE_AGENT_H
#define HD_WORKER_NOTICE_AGENT_H

#include "base/json_writer.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "notice/notice.h"
#include "job/job.h"

#define HD_NOTICE_PROBE_NS (HD_NOTICE_S * 3 / 10)
enum { HD_NOTICE_NEWS = 32 };             /* that wait to be fetched; of more the oldest are lost */

struct hd_notice_agent;

struct hd_notice_agent_spec {
	struct hd_clock *clock;
	struct hd_fs *fs;
	/* base NULL: the usual address of each source; else asked there, and it outlives the agent */
	const char *source, *base;
	struct hd_notice_settings settings;
	/* file by which notice is given by hand; NULL: where hd_notice_agent_file() says */
	const char *file;
};

/* What the keys elastic.notice.* of a job say; the rest is zero. */
void hd_notice_agent_of_job(const struct hd_job *job, struct hd_notice_agent_spec *spec);
/* *agent NULL with HD_OK: there is nothing to hear (source none). HD_E_INVAL: source or base are none. */
HD_MUST_USE enum hd_err hd_notice_agent_open(struct hd_notice_agent **agent,
	const struct hd_notice_agent_spec *spec, struct hd_diag *diag);
void hd_notice_agent_close(struct hd_notice_agent *agent);        /* takes NULL */

/* News: a notice, or with kind NONE a line for the log. */
struct hd_notice_news {
	struct hd_notice notice;
	int64_t lead_ns, ends_wall_ns;    /* PREEMPT: left when it came; when that is, since 1970 */
	char line[256];
};
/* Members of an event: source, notice, text; of a preemption lead_ms, deadline, of (process, machine). */
void hd_notice_news_put(const struct hd_notice_news *news, struct hd_json_writer *w);
/* The oldest that was not fetched yet. Takes NULL. */
bool hd_notice_agent_fetch(struct hd_notice_agent *agent, struct hd_notice_news *news);
/* Is this process to leave? Takes NULL: no. left_ns (may be NULL): until the first end that says so. */
bool hd_notice_agent_leaves(struct hd_notice_agent *agent, int64_t *left_ns);
/* Until the first end that any notice names, signals too, however far it is. False: none does. Takes NULL. */
bool hd_notice_agent_left(struct hd_notice_agent *agent, int64_t *left_ns);
/* The signal `number` came; it becomes news of the source that it comes from. Takes NULL. */
void hd_notice_agent_signal(struct hd_notice_agent *agent, int number);

/* HEDDLE_NOTICE_FILE, else heddle/notice-HOST.json in XDG_RUNTIME_DIR, else .heddle/notice-HOST.json in HOME:
 * folders that are this user's. HD_E_NOTFOUND: none of them is set. */
HD_MUST_USE enum hd_err hd_notice_agent_file(char path[HD_PATH_CAP], struct hd_diag *diag);

#endif
