/* sched_log.h -- what a simulated scheduler was given and what it decided, line by line, so that it can be
 * run again.
 *
 * The simulator writes it (`heddle sched simulate --log FILE`), `heddle sched replay FILE` reads it back,
 * runs it and compares. Each line is a JSON object:
 *
 *	{"log":1,...}                       the first: the setting. Then, if there are: {"rates":...},
 *	                                    {"prices":...}, {"events":...}
 *	{"job":0,...}                       a job, when the simulator asked for it
 *	{"at":s,"solve":{...}}              the policy was asked: devices and prices then, and what it
 *	                                    answered
 *	{"at":s,"round":[...],"off":[...]}  the jobs that start, are resized or move on which devices, and
 *	those that lost them; "offer" between boundaries;
 *	                                    no line where all go on
 *	{"at":s,"end":{...}}                the last: what became of it
 *
 * 1. A log needs no other file. Lines that begin with {"at": are decisions, all others are given.
 * 2. Equal givens make equal decisions, to the byte; in which order lines of jobs stand does not matter.
 * 3. Bad input is HD_E_INPUT and says file:line.
 *
 * Ownership: all that is read lies in the arena; `source` of the setting is the log, which must not move.
 * Pure. */
#ifndef HD_CLUSTERSIM_SCHED_LOG_H
#define HD_CLUSTERSIM_SCHED_LOG_H

#include "clustersim/sched_sim.h"

enum { HD_SCHED_LOG_VERSION = 1 };

struct hd_sched_log {
	struct hd_sched_sim_setting setting;      /* complete */
	struct hd_policy_setting policy;
	struct hd_sched_elastic elastic;
	struct hd_estimate_setting estimate;
	struct hd_rates rates;
	struct hd_prices prices;
	struct hd_machine_events events;
	struct hd_job_list list;
	size_t at;
	uint64_t ndecisions;
};

/* Whether a file is one: its first line begins as that of a log does. */
bool hd_sched_log_is(const uint8_t *bytes, size_t len);
HD_MUST_USE enum hd_err hd_sched_log_read(struct hd_sched_log *log, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena,
	struct hd_diag *diag);

/* The first decision in which two logs differ. */
/* line 0: that log has no more */
struct hd_sched_log_difference { uint64_t line[2]; const char *text[2]; size_t len[2]; };
bool hd_sched_log_differ(const char *a, size_t alen, const char *b, size_t blen,
	struct hd_sched_log_difference *where);

#endif
