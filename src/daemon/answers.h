/* answers.h -- what a scheduler answers: a struct and a table of fields for each answer.
 *
 * The daemon fills the structs (daemon_jobs.c, daemon_status.c), the routes have the tables
 * (rest_routes.c), so that GET /v1/schema names every member; the verbs read and print by the same rows. A
 * field is a row below and the line that fills it. docs/fields.md has them all.
 *
 * Times *_s are seconds of the daemon's clock, which starts at 0 with its folder and goes on over restarts.
 *
 * Ownership: texts and lists are borrowed. */
#ifndef HD_DAEMON_ANSWERS_H
#define HD_DAEMON_ANSWERS_H

#include "base/fields.h"
#include "spot/ledger.h"

/* A job as lists show it. */
#define HD_ANSWER_JOB(X)                                                                                    \
	X(int64_t, id, .about = "its number; later jobs have larger ones", .head = "job", .width = 6)       \
	X(const char *, name, .about = "job.name of its file, or as asked", .head = "name", .width = 16)    \
	X(const char *, user, .about = "the user that submitted it; empty: not said",                     \
		.head = "user", .width = 10)                                                                \
	X(const char *, state,                                                                              \
		.about = "queued, starting, running, draining, done, failed, cancelled or timeout",         \
		.head = "state", .width = 9)                                                                \
	X(int64_t, step, .about = "steps that are committed", .head = "step", .width = 15,                  \
		.total = "steps")                                                                           \
	X(int64_t, steps, .about = "of the whole job")                                                      \
	X(double, priority, .about = "its weight: twice as much, twice the share", .head = "priority",      \
		.width = 8)                                                                                 \
	X(int64_t, scale, .about = "devices it wants at once")                                              \
	X(int64_t, devices_n, .about = "devices it has now", .head = "devices", .width = 7,                 \
		.total = "scale")                                                                           \
	X(const char *, type, .about = "of these devices; a+b: several; empty: none", .head = "type",       \
		.width = 10)                                                                                \
	X(double, rate, .about = "steps/s now; 0: none measured", .unit = "1/s")                            \
	X(double, submitted_s, .about = "when it came, seconds of the daemon's clock", .unit = "s")         \
	X(double, started_s, .about = "when it first ran; -1: not yet", .unit = "s")                        \
	X(double, ended_s, .about = "when it was over; -1: not yet", .unit = "s")                           \
	X(double, deadline_s, .about = "when it should be over; -1: none", .unit = "s")                     \
	X(int64_t, exit, .negative = true, .about = "exit code of the job; -1: not over")                   \
	X(bool, held, .may_lack = true, .about = "it is held: it does not run until it is released")        \
	X(int64_t, array, .may_lack = true, .about = "the first task of the array it is in; 0: of none")     \
	X(int64_t, index, .may_lack = true, .about = "of a task, in its array")                             \
	X(const char *, after, .may_lack = true,                                                            \
		.about = "what it runs after, as 7:ok:waits; waits, met or broken; empty: nothing")         \
	X(double, limit_s, .may_lack = true, .unit = "s", .about = "of running time; 0: no limit")         \
	X(double, expected_s, .may_lack = true, .unit = "s",                                                \
		.about = "how long it was said to run on its fastest type; 0: not said")                    \
	X(double, took_s, .may_lack = true, .unit = "s", .about = "how long it ran, all runs together")     \
	X(double, expected_error, .may_lack = true,                                                         \
		.about = "once it is done: took_s over expected_s, less 1, above 0 if it took longer; "     \
		"else nan")                                                                                 \
	X(const char *, partition, .may_lack = true,                                                        \
		.about = "the partition whose devices it is given; empty: there are none")                  \
	X(const char *, account, .may_lack = true, .head = "account", .width = 10,                          \
		.about = "the account whose quotas and share it counts in; empty: none")                    \
	X(const char *, why, .about = "why it is in that state, a sentence; may be empty", .head = "why")

#define HD_ANSWER_RATE(X)                                                                                   \
	X(const char *, type, .about = "of devices")                                                        \
	X(double, steps_s, .about = "steps/s of the job on `scale` of them", .unit = "1/s")                 \
	X(const char *, from, .about = "asked, measured or guessed")

#define HD_ANSWER_JOB_WHOLE(X)                                                                              \
	X(struct hd_answer_job, job, .of = &hd_answer_job_fields)                                           \
	X(struct hd_fields_texts, devices, .about = "names of those it has")                                \
	X(struct hd_fields_texts, on, .may_lack = true,                                                     \
		.about = "nodes and batch jobs that these are; empty: devices of this machine")             \
	X(const char *, lease, .about = "state of its lease: released, offered, held, resize, ...")         \
	X(struct hd_fields_list, rates, .of = &hd_answer_rate_fields, .about = "its speeds")                \
	X(int64_t, failures, .about = "runs in a row without a step")                                       \
	X(int64_t, leases, .about = "leases it has had")                                                    \
	X(const char *, run, .about = "its run directory")                                                  \
	X(const char *, digest, .about = "of its state; empty before the end")                              \
	X(struct hd_paid, paid, .of = &hd_paid_fields)

#define HD_ANSWER_JOBS(X)                                                                                   \
	X(struct hd_fields_list, jobs, .of = &hd_answer_job_fields, .about = "the page")                    \
	X(bool, more, .about = "whether another page follows")

#define HD_ANSWER_SUBMITTED(X)                                                                              \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, name, .about = "its name")                                                          \
	X(const char *, run, .about = "its run directory")                                                  \
	X(const char *, state, .about = "as of a job")                                                      \
	X(int64_t, tasks, .may_lack = true,                                                                 \
		.about = "of its array: they have the numbers from id on; 0: it is no array")               \
	X(const char *, account, .may_lack = true, .about = "that it counts to; empty: none")               \
	X(const char *, why, .may_lack = true,                                                              \
		.about = "why it cannot run as things are; empty: it can")

/* A job against a type of device. */
#define HD_ANSWER_JOB_TYPE(X)                                                                               \
	X(const char *, type, .about = "of devices", .head = "type", .width = 12)                           \
	X(int64_t, devices, .about = "of that type", .head = "devices", .width = 8)                         \
	X(int64_t, free, .about = "of these, held by no job", .head = "free", .width = 6)                      \
	X(double, steps_s, .about = "of the job there; 0: cannot run there", .unit = "1/s",                 \
		.head = "steps/s", .width = 12)                                                             \
	X(double, share, .about = "part of the time that the policy gives it there", .head = "share",       \
		.width = 8, .fixed = true)                                                                  \
	X(double, received_s, .about = "seconds it had there since the last reset", .unit = "s",            \
		.head = "received s", .width = 12)                                                          \
	X(double, due_s, .about = "seconds that its share comes to", .unit = "s", .head = "due s",          \
		.width = 10)                                                                                \
	X(double, priority, .about = "in the walk of the next round", .head = "priority", .width = 10)

#define HD_ANSWER_WHY(X)                                                                                    \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, name, .about = "its name")                                                          \
	X(const char *, state, .about = "as of a job")                                                      \
	X(const char *, code, .about = "the leading reason, a word")                                        \
	X(const char *, text, .about = "it as a sentence with its numbers")                                 \
	X(struct hd_fields_texts, more, .about = "what else is to be said")                                 \
	X(double, boundary_s, .about = "when the next round begins", .unit = "s")                           \
	X(struct hd_fields_list, types, .of = &hd_answer_job_type_fields,                                   \
		.about = "the job against each type")

#define HD_ANSWER_STATE(X)                                                                                  \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, state, .about = "as of a job")                                                      \
	X(int64_t, tasks, .may_lack = true, .about = "jobs that were changed")

#define HD_ANSWER_PRIORITY(X)                                                                               \
	X(int64_t, id, .about = "its number")                                                               \
	X(double, priority, .about = "its weight now")

#define HD_ANSWER_SCALE(X)                                                                                  \
	X(int64_t, id, .about = "its number")                                                               \
	X(int64_t, scale, .about = "devices it wants at once, from the next round on")

#define HD_ANSWER_WAITING(X)                                                                                \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, name, .about = "its name")                                                          \
	X(const char *, user, .about = "whose it is; empty: not said")                                      \
	X(double, priority, .about = "its weight")                                                          \
	X(int64_t, scale, .about = "devices it wants at once")                                              \
	X(double, submitted_s, .about = "when it came, seconds of the daemon's clock", .unit = "s")         \
	X(const char *, code, .about = "the leading reason, a word")                                        \
	X(const char *, text, .about = "it as a sentence with its numbers")

#define HD_ANSWER_WAITINGS(X)                                                                               \
	X(struct hd_fields_list, jobs, .of = &hd_answer_waiting_fields, .about = "the page")                \
	X(bool, more, .about = "whether another page follows")

#define HD_ANSWER_SAMPLE(X)                                                                                 \
	X(double, at_s, .about = "seconds of the daemon's clock", .unit = "s")                              \
	X(const char *, type, .about = "of devices")                                                        \
	X(int64_t, busy, .about = "held by jobs then")                                                      \
	X(int64_t, free, .about = "held by no job")                                                         \
	X(int64_t, lost, .about = "out of service")

#define HD_ANSWER_HISTORY(X)                                                                                \
	X(double, now_s, .about = "the daemon's clock", .unit = "s")                                        \
	X(double, every_s, .about = "how far apart samples are", .unit = "s")                               \
	X(struct hd_fields_list, samples, .of = &hd_answer_sample_fields,                                   \
		.about = "of each type, since this daemon started, oldest first")

#define HD_ANSWER_POINT(X)                                                                                  \
	X(int64_t, step, .about = "its number")                                                             \
	X(double, t, .about = "when it was committed, seconds since the run began", .unit = "s")            \
	X(double, loss, .about = "training loss")                                                           \
	X(double, lr, .about = "learning rate")                                                             \
	X(int64_t, workers, .about = "that took part")                                                      \
	X(double, step_ms, .about = "what it took", .unit = "ms")

#define HD_ANSWER_CURVE(X)                                                                                  \
	X(int64_t, id, .about = "of the job")                                                               \
	X(struct hd_fields_list, points, .of = &hd_answer_point_fields,                                     \
		.about = "steps, evenly spaced, the first and the last among them")

#define HD_ANSWER_SPENT(X)                                                                                  \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, name, .about = "its name")                                                          \
	X(const char *, user, .about = "whose it is; empty: not said")                                      \
	X(struct hd_paid, paid, .of = &hd_paid_fields)

#define HD_ANSWER_LEDGER(X)                                                                                 \
	X(struct hd_fields_list, jobs, .of = &hd_answer_spent_fields,                                       \
		.about = "that hold devices, as their coordinators said last")

#define HD_ANSWER_TYPE(X)                                                                                   \
	X(const char *, type, .about = "of devices", .head = "type", .width = 12)                           \
	X(int64_t, devices, .about = "of that type", .head = "devices", .width = 8)                         \
	X(int64_t, busy, .about = "held by jobs", .head = "busy", .width = 6)                               \
	X(int64_t, free, .about = "held by no job", .head = "free", .width = 6)                             \
	X(int64_t, lost, .about = "out of service", .head = "lost", .width = 6)                             \
	X(double, price_usd_h, .about = "of one device and hour", .unit = "USD", .head = "price $/h",       \
		.width = 12)                                                                                \
	X(double, speed, .about = "against the others, while nothing is measured", .head = "speed",         \
		.width = 8, .digits = 3)

/* Of a device with workers, as a machine against others of its type. */
#define HD_ANSWER_HOST(X)                                                                                   \
	X(const char *, host, .about = "the device of the pool, as its workers see a machine",              \
		.head = "host", .width = 24)                                                                \
	X(int64_t, jobs, .about = "jobs with workers on it", .head = "jobs", .width = 5)                    \
	X(int64_t, judged, .about = "of these, jobs that have enough workers elsewhere to judge it by")     \
	X(int64_t, slow_jobs, .about = "of these, jobs in which it is slow", .head = "slow in",             \
		.width = 9, .total = "judged")                                                              \
	X(bool, slow, .about = "it is slow across jobs")                                                    \
	X(const char *, cause, .about = "of that: compute or data; empty: it is not slow",                  \
		.head = "cause", .width = 8)                                                                \
	X(double, times, .about = "its workers' time over the median worker's, in jobs in which it is slow", \
		.head = "times", .width = 7, .digits = 2, .fixed = true)                                    \
	X(double, share, .about = "jobs in which it is slow, of those that judge it")                       \
	X(double, since_s, .about = "since when it is slow; -1: it is not", .unit = "s")                    \
	X(const char *, text, .about = "that as a sentence; empty: it is not slow")

#define HD_ANSWER_HOSTS(X)                                                                                  \
	X(struct hd_fields_list, hosts, .of = &hd_answer_host_fields, .about = "each, by name")             \
	X(int64_t, left_out, .about = "summaries of workers that had no room; 0: all are in it")

/* A drain, maintenance, a reservation. */
#define HD_ANSWER_WINDOW(X)                                                                                 \
	X(const char *, name, .about = "its name", .head = "window", .width = 20)                           \
	X(const char *, kind, .about = "drain, maintenance or reserved", .head = "kind", .width = 12)       \
	X(bool, now, .about = "it has begun")                                                               \
	X(double, from_s, .about = "when it begins, of the daemon's clock", .unit = "s",                    \
		.head = "from s", .width = 10, .digits = 1, .fixed = true)                                  \
	X(double, until_s, .about = "when it ends; -1: when it is taken back", .unit = "s",                 \
		.head = "until s", .width = 10, .digits = 1, .fixed = true)                                 \
	X(int64_t, devices_n, .about = "devices that it keeps from others", .head = "devices", .width = 8)  \
	X(const char *, of, .about = "the user or account that it is for; empty: none", .head = "for",      \
		.width = 12)                                                                                \
	X(const char *, user, .about = "the user that it is for; empty: none")                              \
	X(const char *, account, .about = "the account that it is for; empty: none")                        \
	X(const char *, reason, .about = "why", .head = "reason", .width = 30)                              \
	X(struct hd_fields_texts, devices, .about = "their names")

#define HD_ANSWER_WINDOWS(X)                                                                                \
	X(double, now_s, .about = "the daemon's clock", .unit = "s")                                        \
	X(struct hd_fields_list, windows, .of = &hd_answer_window_fields, .about = "in the order in which they came")

/* Pilots of a type, of a scheduler whose devices a batch system lends. */
#define HD_ANSWER_LENT(X)                                                                                   \
	X(const char *, type, .about = "of devices", .head = "nodes of", .width = 12)                       \
	X(int64_t, wanted, .about = "nodes that the jobs ask for now", .head = "wanted", .width = 8)        \
	X(int64_t, running, .about = "batch jobs that run", .head = "run", .width = 6)                      \
	X(int64_t, waiting, .about = "batch jobs in the queue", .head = "wait", .width = 6)                 \
	X(const char *, why, .about = "why these wait, as the batch system says; empty: none waits",        \
		.head = "why")

#define HD_ANSWER_PARTITION(X)                                                                              \
	X(const char *, name, .about = "its name", .head = "partition", .width = 14)                        \
	X(bool, standard, .about = "of jobs that name none")                                                \
	X(double, priority, .about = "of devices in several the higher takes first", .head = "priority",    \
		.width = 8)                                                                                 \
	X(const char *, preempt, .about = "partitions whose jobs leave devices that it takes")              \
	X(int64_t, devices, .about = "devices in it", .head = "devices", .width = 8)                        \
	X(int64_t, busy, .about = "held by its jobs", .head = "busy", .width = 6)                           \
	X(int64_t, free, .about = "held by no job", .head = "free", .width = 6)                             \
	X(int64_t, running, .about = "its jobs with devices", .head = "running", .width = 8)                \
	X(int64_t, waiting, .about = "its jobs without", .head = "waiting", .width = 8)                     \
	X(const char *, limits, .about = "of a job, a user, all together, and whose jobs; empty: none",      \
		.head = "limits", .width = 30)

/* An account of users.yaml, with all those below it. */
#define HD_ANSWER_ACCOUNT(X)                                                                                \
	X(const char *, name, .about = "its name", .head = "account", .width = 20)                          \
	X(const char *, parent, .about = "the account that it lies below; empty: none")                     \
	X(int64_t, level, .about = "how many lie above it")                                                 \
	X(double, weight, .about = "among the accounts of its parent, and jobs there", .head = "weight",    \
		.width = 8)                                                                                 \
	X(int64_t, devices, .about = "held by its jobs and those of accounts below it", .head = "devices",  \
		.width = 8)                                                                                 \
	X(double, devices_most, .about = "that these may hold at once; -1: any", .head = "most",            \
		.width = 6)                                                                                 \
	X(int64_t, running, .about = "jobs with devices", .head = "running", .width = 8)                    \
	X(double, running_most, .about = "that may have some at once; -1: any", .head = "most", .width = 6) \
	X(int64_t, waiting, .about = "jobs without", .head = "waiting", .width = 8)                         \
	X(double, queued_most, .about = "that may wait when another comes; -1: any", .head = "most",        \
		.width = 6)

#define HD_ANSWER_STATUS(X)                                                                                 \
	X(int64_t, pid, .about = "the daemon's process")                                                    \
	X(const char *, dir, .about = "its folder")                                                         \
	X(const char *, policy, .about = "the policy that decides")                                                     \
	X(double, asked_s, .may_lack = true, .unit = "s",                                                   \
		.about = "since when the policy is asked; -1: it has answered")                             \
	X(const char *, late, .may_lack = true,                                                             \
		.about = "the policy does not answer, and what to do; empty: it does")                      \
	X(double, round_s, .about = "how long a round lasts", .unit = "s", .digits = 6)                     \
	X(double, now_s, .about = "the daemon's clock", .unit = "s")                                        \
	X(double, boundary_s, .about = "when the next round begins", .unit = "s")                           \
	X(double, since_s, .about = "when this daemon started", .unit = "s")                                \
	X(struct hd_fields_counts, counts, .about = "jobs by state")                                        \
	X(struct hd_fields_list, types, .of = &hd_answer_type_fields, .about = "devices by type")           \
	X(struct hd_fields_list, running, .of = &hd_answer_job_fields,                                      \
		.about = "jobs with devices, 100 at most")                                                  \
	X(struct hd_fields_list, slow, .of = &hd_answer_host_fields, .may_lack = true,                      \
		.about = "devices that are slow across jobs")                                               \
	X(struct hd_fields_list, windows, .of = &hd_answer_window_fields, .may_lack = true,                 \
		.about = "drains, maintenance and reservations that hold or will")                         \
	X(struct hd_fields_list, lent, .of = &hd_answer_lent_fields, .may_lack = true,                      \
		.about = "nodes of a batch system, by type; empty: devices are of this machine")            \
	X(struct hd_fields_list, partitions, .of = &hd_answer_partition_fields, .may_lack = true,           \
		.about = "in the order in which they take devices")                                         \
	X(const char *, partitions_wrong, .may_lack = true,                                                 \
		.about = "what is wrong with partitions.yaml since it was read; empty: nothing")            \
	X(struct hd_fields_list, accounts, .of = &hd_answer_account_fields, .may_lack = true,               \
		.about = "each before those below it, 1,000 at most; to a user its own, those above, "       \
		"those that it operates")

#define HD_ANSWER_POOL(X)                                                                                   \
	X(const char *, type, .about = "of devices")                                                        \
	X(int64_t, devices, .about = "of that type")                                                        \
	X(double, speed, .about = "against the others, while nothing is measured")                          \
	X(double, price_usd_h, .about = "of one device and hour", .unit = "USD")                            \
	X(const char *, means, .about = "what a device of it is")

#define HD_ANSWER_DEVICE(X)                                                                                 \
	X(int64_t, id, .about = "its number")                                                               \
	X(const char *, name, .about = "its name")                                                          \
	X(const char *, type, .about = "its type")                                                          \
	X(const char *, state, .about = "what it does")                                                     \
	X(int64_t, job, .about = "the job that has it; 0: none")                                            \
	X(const char *, window, .may_lack = true,                                                           \
		.about = "the drain, maintenance or reservation that keeps it from jobs; empty: none")      \
	X(const char *, kept, .may_lack = true, .about = "of that: kind, end and reason; empty: none")      \
	X(const char *, on, .may_lack = true,                                                               \
		.about = "the node and batch job that it is; empty: of this machine, or none is there")

#define HD_ANSWER_POOLS(X)                                                                                  \
	X(struct hd_fields_list, pools, .of = &hd_answer_pool_fields, .about = "by type")                   \
	X(struct hd_fields_list, devices, .of = &hd_answer_device_fields, .about = "each")

#define HD_ANSWER_USABLE(X)                                                                                 \
	X(const char *, device, .about = "its name")                                                        \
	X(bool, usable, .about = "as it is now")

#define HD_ANSWER_BACKUP(X)                                                                                 \
	X(const char *, folder, .about = "where it lies")                                                   \
	X(const char *, program, .about = "that made it")                                                   \
	X(double, t, .about = "when, seconds since 1970", .unit = "s")                                      \
	X(int64_t, jobs, .about = "jobs in it")                                                             \
	X(int64_t, last, .about = "the greatest number of a job")                                           \
	X(int64_t, event, .about = "number of the newest event")                                            \
	X(int64_t, size_bytes, .about = "of all its files", .unit = "bytes")                                \
	X(int64_t, store, .about = "version of the store")                                                  \
	X(const char *, sha256, .about = "of its store")

#define HD_ANSWER_POLICY(X)                                                                                 \
	X(const char *, policy, .about = "its name")                                                        \
	X(double, round_s, .about = "how long a round lasts", .unit = "s")

/* A policy of this build. */
#define HD_ANSWER_BUILT(X)                                                                                  \
	X(const char *, name,                                                                               \
		.about = "to name it by; with -plain, -packed or -kinds where it has that variant")         \
	X(const char *, about, .about = "what it does")                                                     \
	X(const char *, measure, .about = "what its objective is, with its unit; empty: none")              \
	X(bool, built, .about = "whether this build has what it needs")                                     \
	X(struct hd_fields_texts, variants, .about = "that it has")

#define HD_ANSWER_POLICIES(X)                                                                               \
	X(struct hd_fields_list, policies, .of = &hd_answer_built_fields, .about = "one each")

#define HD_ANSWER_AFFECTED(X)                                                                               \
	X(int64_t, id, .about = "of the job")                                                               \
	X(const char *, name, .about = "of the job")                                                        \
	X(double, share, .about = "part of the time that the policy gives it")                              \
	X(double, share_then, .about = "and would give it")                                                 \
	X(double, steps_s, .about = "what that comes to", .unit = "1/s")                                    \
	X(double, steps_s_then, .about = "and would come to", .unit = "1/s")                                \
	X(double, left_s, .about = "seconds to its end at that rate; -1: it has none", .unit = "s")         \
	X(double, left_s_then, .about = "and would have", .unit = "s")

#define HD_ANSWER_WHATIF(X)                                                                                 \
	X(const char *, policy, .about = "the policy that decides")                                                     \
	X(const char *, policy_then, .about = "the one that would")                                                  \
	X(int64_t, jobs, .about = "that were asked about")                                                  \
	X(struct hd_fields_list, affected, .of = &hd_answer_affected_fields,                                \
		.about = "whose share or rate differs, those that lose first")

#define HD_ANSWER_EVENT(X)                                                                                  \
	X(int64_t, number, .about = "of the event; later ones have larger ones")                            \
	X(double, at_s, .about = "seconds of the daemon's clock", .unit = "s")                              \
	X(double, t, .about = "seconds since 1970", .unit = "s")                                            \
	X(const char *, kind, .about = "what happened, a word")                                             \
	X(int64_t, job, .about = "to which job; 0: none")                                                   \
	X(const char *, text, .about = "a sentence")

#define HD_ANSWER_EVENTS(X)                                                                                 \
	X(struct hd_fields_list, events, .of = &hd_answer_event_fields, .about = "the page")                \
	X(int64_t, last, .about = "number of the newest event there is")

/* A sweep that lies in the scheduler's folder. */
#define HD_ANSWER_SWEEP(X)                                                                                  \
	X(const char *, name, .about = "the sweep's")                                                       \
	X(const char *, method, .about = "grid, random, sobol, halving or asha")                            \
	X(const char *, metric, .about = "what is compared")                                                \
	X(const char *, goal, .about = "min or max")                                                        \
	X(bool, over, .about = "no trial runs any more")                                                    \
	X(int64_t, best, .negative = true, .about = "the best trial so far; -1: none reported")             \
	X(int64_t, steps, .about = "of all trials together")                                                \
	X(int64_t, exhaustive, .about = "steps, if each trial ran to the last rung")                        \
	X(int64_t, trials_n, .about = "how many trials it has")

#define HD_ANSWER_SWEEPS(X)                                                                                 \
	X(struct hd_fields_list, sweeps, .of = &hd_answer_sweep_fields, .about = "each, by name; 256 at most")

#define HD_ANSWER_QUOTA(X)                                                                                  \
	X(const char *, of, .about = "the user, account or group that shares it", .head = "of", .width = 20) \
	X(double, devices, .about = "devices at once; -1: any", .head = "devices", .width = 8)              \
	X(double, running, .about = "jobs with devices at once; -1: any", .head = "running", .width = 8)    \
	X(double, queued, .about = "jobs that wait, when another comes; -1: any", .head = "queued",         \
		.width = 8)                                                                                 \
	X(double, priority, .about = "of a job; -1: any", .head = "priority", .width = 8)

#define HD_ANSWER_ME(X)                                                                                     \
	X(const char *, user, .about = "the name of the asking user")                                       \
	X(int64_t, uid, .negative = true, .about = "its account's number; -1: it has none here")            \
	X(const char *, role, .about = "user, operator or admin")                                           \
	X(bool, owner, .about = "the scheduler is its: no quota holds")                                     \
	X(const char *, account, .about = "that its jobs count to if they name none; empty: none")          \
	X(struct hd_fields_texts, accounts, .may_lack = true, .about = "that its jobs may name")            \
	X(struct hd_fields_texts, operates, .may_lack = true,                                               \
		.about = "accounts of whose jobs it may what an operator may; and of those below")          \
	X(struct hd_fields_list, quotas, .of = &hd_answer_quota_fields,                                     \
		.about = "that hold for its jobs: its own, of its accounts, of those above, of its groups") \
	X(const char *, wrong, .about = "what is wrong with users.yaml since it was read; empty: nothing")

#define HD_ANSWER_TOKEN(X)                                                                                  \
	X(int64_t, id, .about = "its number, to revoke it by", .head = "token", .width = 6)                 \
	X(const char *, user, .about = "whose it is", .head = "user", .width = 16)                          \
	X(double, made_t, .about = "seconds since 1970", .unit = "s")                                       \
	X(double, until_t, .about = "until when it holds, seconds since 1970", .unit = "s")

#define HD_ANSWER_TOKENS(X)                                                                                 \
	X(struct hd_fields_list, tokens, .of = &hd_answer_token_fields, .about = "by number; not their texts")

#define HD_ANSWER_TOKEN_NEW(X)                                                                              \
	X(int64_t, id, .about = "its number, to revoke it by")                                              \
	X(const char *, user, .about = "whose it is")                                                       \
	X(double, until_t, .about = "until when it holds, seconds since 1970", .unit = "s")                 \
	X(const char *, token, .about = "its text: it is not stored, and never shown again")

/* Of a request that was refused. */
#define HD_ANSWER_ERROR(X)                                                                                  \
	X(const char *, error, .about = "what is wrong, and what to do")                                    \
	X(int64_t, code, .negative = true, .about = "of src/base/err.h")                                    \
	X(int64_t, exit, .about = "what the program would exit with")

struct hd_loss_point;

/*        struct, table        rows                  what it is */
#define HD_ANSWERS(X)                                                                                       \
	X(job,                 HD_ANSWER_JOB,        "a job as lists show it")                              \
	X(rate,                HD_ANSWER_RATE,       "speed of a job on a type of device")                  \
	X(job_whole,           HD_ANSWER_JOB_WHOLE,  "a job")                                               \
	X(jobs,                HD_ANSWER_JOBS,       "a page of jobs")                                      \
	X(submitted,           HD_ANSWER_SUBMITTED,  "a job that was taken")                                \
	X(job_type,            HD_ANSWER_JOB_TYPE,   "a job against a type of device")                      \
	X(why,                 HD_ANSWER_WHY,        "why a job waits, or runs where it runs")              \
	X(state,               HD_ANSWER_STATE,      "a job's state")                                       \
	X(priority,            HD_ANSWER_PRIORITY,   "a job's weight")                                      \
	X(scale,               HD_ANSWER_SCALE,      "a job's size")                                        \
	X(waiting,             HD_ANSWER_WAITING,    "a job that waits")                                    \
	X(waitings,            HD_ANSWER_WAITINGS,   "jobs that wait, and why")                             \
	X(sample,              HD_ANSWER_SAMPLE,     "what devices of a type did")                          \
	X(history,             HD_ANSWER_HISTORY,    "what devices did over time")                          \
	X(point,               HD_ANSWER_POINT,      "a step")                                              \
	X(curve,               HD_ANSWER_CURVE,      "how a run went, in few points")                       \
	X(spent,               HD_ANSWER_SPENT,      "what a job was paid for")                             \
	X(ledger,              HD_ANSWER_LEDGER,     "what jobs were paid for")                             \
	X(type,                HD_ANSWER_TYPE,       "devices of a type")                                   \
	X(host,                HD_ANSWER_HOST,       "a device, and whether it is slow across jobs")         \
	X(hosts,               HD_ANSWER_HOSTS,      "devices, and which are slow across jobs")             \
	X(window,              HD_ANSWER_WINDOW,     "devices that are kept from jobs for a time")         \
	X(windows,             HD_ANSWER_WINDOWS,    "drains, maintenance and reservations")               \
	X(lent,                HD_ANSWER_LENT,       "nodes that a batch system lends")                     \
	X(partition,           HD_ANSWER_PARTITION,  "devices of a name, and jobs that are given them")     \
	X(account,             HD_ANSWER_ACCOUNT,    "an account, with those below it")                     \
	X(status,              HD_ANSWER_STATUS,     "the cluster at a glance")                             \
	X(pool,                HD_ANSWER_POOL,       "a pool")                                              \
	X(device,              HD_ANSWER_DEVICE,     "a device")                                            \
	X(pools,               HD_ANSWER_POOLS,      "pools and devices")                                   \
	X(usable,              HD_ANSWER_USABLE,     "whether a device is in service")                      \
	X(backup,              HD_ANSWER_BACKUP,     "a copy of a scheduler's store")                       \
	X(policy,              HD_ANSWER_POLICY,     "the policy that decides")                             \
	X(built,               HD_ANSWER_BUILT,      "a policy of this build")                              \
	X(policies,            HD_ANSWER_POLICIES,   "policies of this build")                              \
	X(affected,            HD_ANSWER_AFFECTED,   "a job that a change would reach")                     \
	X(whatif,              HD_ANSWER_WHATIF,     "what a change would do")                              \
	X(event,               HD_ANSWER_EVENT,      "an event")                                            \
	X(events,              HD_ANSWER_EVENTS,     "a page of events")                                    \
	X(sweep,               HD_ANSWER_SWEEP,      "a sweep at a glance")                                 \
	X(sweeps,              HD_ANSWER_SWEEPS,     "sweeps of the scheduler's folder")                    \
	X(quota,               HD_ANSWER_QUOTA,      "what a user, account or group may have")              \
	X(me,                  HD_ANSWER_ME,         "the asking user")                                     \
	X(token,               HD_ANSWER_TOKEN,      "a token")                                             \
	X(tokens,              HD_ANSWER_TOKENS,     "tokens")                                              \
	X(token_new,           HD_ANSWER_TOKEN_NEW,  "a token that was made")                               \
	X(error,               HD_ANSWER_ERROR,      "why a request is refused")

#define X(name, rows, about) \
	struct hd_answer_##name { HD_FIELDS_MEMBERS(rows) }; \
	extern const struct hd_fields hd_answer_##name##_fields;
HD_ANSWERS(X)
#undef X
extern const struct hd_fields hd_answer_nothing_fields;      /* no members */

/* The points of a curve (run/curve.h), as `fill` of hd_answer_curve.points: `user` is this struct. */
struct hd_answer_points { const struct hd_loss_point *at; uint32_t n; };
void hd_answer_points_fill(void *user, struct hd_json_writer *w);

#endif
