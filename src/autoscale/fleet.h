/* fleet.h -- hosts that are slow across jobs, from small summaries of the jobs' workers.
 *
 * A slow worker of one job may be slow by its job; a host whose workers are slow in several jobs is slow
 * itself. Every window of 5 s each job gives one summary a worker: what a virtual node took of the worker's
 * own time, by cause. Waiting for other workers is no part of it: in a synchronous job all of them wait.
 *
 * 1. Within a job (at most HD_FLEET_WORKERS workers) a worker is slow if a cause's time exceeds the median by
 *    3 MAD and by a quarter, and by 5 % of the median worker's whole time; MAD is the median absolute
 *    deviation, at least 5 % of the median. With fewer than 4 workers: 1.5 times the least of the others
 *    instead. Its cause is the one with the largest excess.
 * 2. A host is slow in a job if at least half of its workers there are, in 2 of the job's last 3 summaries. A
 *    host with more than half of a job's workers is not judged by it: it would be its own measure.
 * 3. A host is *slow* if it is so in at least two jobs and in half of those that judge it, or in the only job
 *    that does.
 * 4. State is bounded: HD_FLEET_HOSTS hosts of HD_FLEET_JOBS jobs each; of more jobs the one heard longest
 *    ago goes, of more hosts those that no job named for HD_FLEET_FORGET_S, else the newcomer is left out and
 *    counted. A pair of host and job that was not heard for so long counts no more.
 * 5. A job with n workers on k hosts costs O(n log n + k log hosts).
 *
 * Times: seconds of the caller's clock, picoseconds a virtual node. All state is in struct hd_fleet. Pure. */
#ifndef HD_AUTOSCALE_FLEET_H
#define HD_AUTOSCALE_FLEET_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_FLEET_WORKERS = 128, HD_FLEET_HOSTS = 1024, HD_FLEET_JOBS = 32, HD_FLEET_NAME = 64,
	HD_FLEET_WINDOW_S = 5, HD_FLEET_FORGET_S = 60, HD_FLEET_TEXT = 240 };

/*        id,      name,      of a host that is slow by it */
#define HD_FLEET_CAUSES(X) \
	X(COMPUTE, "compute", "computing") \
	X(LINK,    "link",    "its link") \
	X(DATA,    "data",    "waiting for data")

enum hd_fleet_cause {
#define X(id, name, words) HD_FLEET_##id,
	HD_FLEET_CAUSES(X)
#undef X
	HD_FLEET_NCAUSES,
};

/* Of one worker in one window; `host` is borrowed for the call, longer names are cut. ps: of a virtual node,
 * below 2^60; what is not measured is 0. */
struct hd_fleet_summary { const char *host; uint32_t worker, steps; uint64_t ps[HD_FLEET_NCAUSES]; };

/* A job on a host; bits: was it slow in the last summaries, the newest lowest. */
struct hd_fleet_pair { uint64_t job; double heard_s; float times; uint8_t bits, cause; bool judged; };

struct hd_fleet_host {
	char name[HD_FLEET_NAME];
	double heard_s, since_s;                  /* since: below 0 while it is not slow */
	uint32_t n;
	struct hd_fleet_pair pair[HD_FLEET_JOBS];
};

struct hd_fleet {
	uint32_t n;
	uint64_t left_out;                        /* summaries of hosts without room */
	struct hd_fleet_host host[HD_FLEET_HOSTS];       /* by rising names */
};

/* What is known of a host. times: its slow workers' time over the median worker's, on average over the slow
 * jobs; share: slow jobs over those that judge it. */
struct hd_fleet_said {
	const char *name;                         /* of the fleet, until its next change */
	bool slow;
	enum hd_fleet_cause cause;                /* with slow; and these */
	double times, share, since_s;
	uint32_t jobs, judged, slow_jobs;
};

void hd_fleet_init(struct hd_fleet *fleet);
/* The job's workers of one window; more than HD_FLEET_WORKERS are not looked at. Times are rising. */
void hd_fleet_take(struct hd_fleet *fleet, uint64_t job, const struct hd_fleet_summary *summary, uint32_t n,
	double now_s);
/* Of host[i]; false: no job has named it lately. */
bool hd_fleet_say(const struct hd_fleet *fleet, uint32_t i, double now_s, struct hd_fleet_said *said);
/* A sentence of a slow host; "" of another. */
void hd_fleet_text(const struct hd_fleet_said *said, double now_s, char text[HD_FLEET_TEXT]);
const char *hd_fleet_cause_name(enum hd_fleet_cause cause);

#endif
