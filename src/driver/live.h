/* live.h -- where a run stands: one table of fields for the answer of its coordinator, `heddle status` and
 * its --json.
 *
 * The coordinator fills the struct and writes it to its socket (control.h); the other side reads it back by
 * the same rows, and shows it. A field is a row below, and the line that fills it in driver_requests.c.
 * docs/fields.md lists those of --json.
 *
 * Ownership: texts and lists are borrowed; of an answer they lie in it. */
#ifndef HD_DRIVER_LIVE_H
#define HD_DRIVER_LIVE_H

#include "base/fields.h"
#include "spot/ledger.h"

/* Where a row is written: to the coordinator's socket, by --json. */
enum { HD_LIVE_SOCKET = 1, HD_LIVE_JSON = 2 };

#define HD_LIVE_WORKER_FIELDS(X)                                                                            \
	X(int64_t, id, .about = "its number", .head = "worker", .width = 6)                                 \
	X(int64_t, worker, .where = HD_LIVE_JSON, .about = "the same, as events call it")                   \
	X(bool, remote, .where = HD_LIVE_SOCKET, .about = "it came by an address of another machine")       \
	X(const char *, state, .about = "member, standby, joining, ...: see src/protocol/coordinator.h",    \
		.head = "state", .width = 9)                                                                \
	X(int64_t, pid, .about = "its process; 0: not of this machine, or it has not called yet",           \
		.head = "pid", .width = 9)                                                                  \
	X(int64_t, devices, .about = "devices it computes on", .head = "devices", .width = 8)               \
	X(int64_t, virtual_nodes, .about = "virtual nodes it computes", .head = "vnodes", .width = 8)       \
	X(int64_t, stages, .may_lack = true, .about = "stages of the model that it runs; 0 of a member: it " \
		"stands by, ready to take the place of another, or all wait for devices",                   \
		.head = "stages", .width = 7)                                                               \
	X(const char *, follows, .may_lack = true, .about = "the stage whose state it holds without "       \
		"running it, ready to take its worker's place (elastic.standby); may be empty")             \
	X(double, step_ms, .unit = "ms", .about = "its last step", .head = "step ms", .width = 9)           \
	X(double, wait_ms, .unit = "ms", .about = "of that, waiting for others", .head = "wait ms",         \
		.width = 9)                                                                                 \
	X(double, compute_ms, .unit = "ms", .about = "of that, computing")                                  \
	X(double, vn_ms, .unit = "ms", .about = "time of one virtual node, smoothed", .head = "vn ms",      \
		.width = 9)                                                                                 \
	X(int64_t, sum_steps, .where = HD_LIVE_SOCKET, .may_lack = true, .about = "steps that are in the next " \
		"three, under this coordinator")                                                            \
	X(int64_t, sum_vns, .where = HD_LIVE_SOCKET, .may_lack = true, .about = "virtual nodes of them")    \
	X(int64_t, sum_compute_ns, .where = HD_LIVE_SOCKET, .may_lack = true, .about = "computing them")    \
	X(int64_t, sum_read_wait_ns, .where = HD_LIVE_SOCKET, .may_lack = true,                             \
		.about = "of that, waiting for data")                                                       \
	X(double, speed, .about = "against the median worker, which has 1", .head = "speed", .width = 7,    \
		.digits = 2, .fixed = true)                                                                 \
	X(int64_t, redone, .as = "redone_vn", .about = "virtual nodes it computed again for lost workers",  \
		.head = "redone", .width = 7)                                                               \
	X(const char *, notice, .may_lack = true, .about = "what it heard of its machine's end: source, "   \
		"word, time; may be empty")                                                                 \
	X(const char *, zone, .may_lack = true, .about = "what its machine is lost together with: heddle "  \
		"worker --zone; may be empty")                                                              \
	X(const char *, address, .about = "where others reach it", .head = "address")

#define HD_LIVE_FIELDS(X)                                                                                   \
	X(int64_t, coordinator, .as = "pid", .where = HD_LIVE_SOCKET, .about = "the coordinator's process") \
	X(int64_t, protocol, .where = HD_LIVE_SOCKET, .may_lack = true, .about = "that its members speak "  \
		"(wire/hub.h); 0: an earlier program, which does not say it")                               \
	X(bool, starts, .where = HD_LIVE_SOCKET, .may_lack = true, .about = "it starts workers of this "    \
		"machine itself; else a scheduler does, or a launcher")                                     \
	X(const char *, name, .about = "job.name")                                                          \
	X(const char *, state, .about = "starting, running, evaluating, waiting or stopping; without a "    \
		"coordinator new, running, evaluating, done, stopped, failed, died, ended or unknown")      \
	X(const char *, why, .about = "why it is in that state; may be empty")                              \
	X(int64_t, exit, .where = HD_LIVE_JSON, .rule = HD_FIELDS_NULL_BELOW_0,                             \
		.about = "exit code of a run that ended; null: it goes on, or died")                        \
	X(int64_t, alone, .as = "pid", .where = HD_LIVE_JSON, .rule = HD_FIELDS_LEFT_OUT_AT_0,              \
		.about = "process of a run without workers; only while it goes on, on this machine")        \
	X(int64_t, step, .about = "steps that are committed")                                               \
	X(int64_t, steps, .about = "of the whole job; 0: not known")                                        \
	X(double, loss, .about = "of the last step", .digits = 4, .fixed = true)                            \
	X(double, step_ms, .unit = "ms", .about = "the last step", .digits = 3)                             \
	X(double, wait_ms, .unit = "ms", .about = "of that, waiting for others")                            \
	X(int64_t, epoch, .as = "membership", .about = "grows with every change of workers")                \
	X(int64_t, term, .about = "grows with every coordinator")                                           \
	X(int64_t, plan, .about = "number of the plan that runs")                                           \
	X(int64_t, members, .about = "workers that take part")                                              \
	X(int64_t, target, .about = "workers wanted, with those of other machines")                         \
	X(int64_t, asked, .about = "workers asked for on this machine")                                     \
	X(int64_t, virtual_nodes, .about = "virtual nodes of the job")                                      \
	X(const char *, autoscale, .about = "policy that chooses the number of workers; off: none")         \
	X(const char *, autoscale_why, .about = "its last reason; may be empty")                            \
	X(const char *, plan_why, .about = "why virtual nodes lie as they do; may be empty")                \
	X(double, predicted_ms, .unit = "ms", .about = "step that the map was chosen for; 0: no prediction") \
	X(int64_t, unrecorded, .about = "steps without a line in metrics.ndjson")                           \
	X(int64_t, copies, .about = "workers that each part of sharded state lies on; 0: not sharded")      \
	X(const char *, redundancy, .may_lack = true, .about = "that there is: the view's")                 \
	X(const char *, resilience, .may_lack = true, .about = "by-notice: whether that has redundancy on, "  \
		"and why; auto: what each mode was worth when it was judged; else the job's word")          \
	X(const char *, saving, .may_lack = true, .about = "checkpoint.every; auto: how far apart checkpoints " \
		"are, and why")                                                                             \
	X(const char *, best, .may_lack = true, .about = "checkpoint.best: value and step of the one that is kept; " \
		"none: none is, yet or at all")                                                             \
	X(const char *, functions, .may_lack = true, .about = "tasks that functions did, or workers in their "   \
		"place, calls and what they cost; none: there are none")                                    \
	X(int64_t, functions_nano_usd, .may_lack = true, .about = "that cost, in 1e-9 dollars")             \
	X(int64_t, single, .may_lack = true, .negative = true, .about = "stages that one worker alone "     \
		"holds at the moment, with redundancy; -1: not known")                                      \
	X(int64_t, given_up, .about = "workers given up for lost that lived")                               \
	X(struct hd_paid, paid, .of = &hd_paid_fields)                                              \
	X(double, detect_ms, .where = HD_LIVE_SOCKET, .unit = "ms", .about = "silence after which a "       \
		"worker is lost (workers.detect)")                                                          \
	X(const char *, listen, .where = HD_LIVE_SOCKET, .about = "address for workers of other machines")  \
	X(struct hd_fields_counts, refused, .where = HD_LIVE_SOCKET,                                        \
		.about = "connections that ended by a fault of the other side, by reason")                  \
	X(struct hd_fields_list, workers, .of = &hd_live_worker_fields, .about = "workers of the run")

struct hd_live_worker { HD_FIELDS_MEMBERS(HD_LIVE_WORKER_FIELDS) };

enum { HD_LIVE_WORKERS = 128 };
struct hd_live {
	HD_FIELDS_MEMBERS(HD_LIVE_FIELDS)
	/* false: no process answers, `state` says how it ended: done, stopped, failed, died, new; */
	/* unknown: on a machine whose locks are not seen here */
	bool goes_on;
	bool away;                                       /* on another machine: only its folder was read */
	uint32_t nworkers;
	struct hd_live_worker worker[HD_LIVE_WORKERS];   /* what `workers` lists */
};

extern const struct hd_fields hd_live_fields, hd_live_worker_fields;

/* The members that `where` has, with the workers, into the object that stands open. */
void hd_live_put(const struct hd_live *live, unsigned where, struct hd_json_writer *w);
/* The coordinator's answer; of more than HD_LIVE_WORKERS workers the first ones. */
HD_MUST_USE enum hd_err hd_live_read(const struct hd_json *answer, struct hd_live *live,
	struct hd_diag *diag);

#endif
