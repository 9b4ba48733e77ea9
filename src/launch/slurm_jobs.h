/* slurm_jobs.h -- the batch jobs of one launcher: which there are, and what Slurm is to be asked next (pure).
 *
 * Jobs are submitted as arrays of one-node jobs; Slurm schedules, preempts and requeues each by itself.
 *
 * 1. One question at a time: next() says which, the caller asks, and answers by submitted(), refused(),
 *    looked() or failed(). What next() says changes nothing until then.
 * 2. A job that squeue names under this launcher's name is one of ours, also if the answer of the sbatch that
 *    made it was lost.
 * 3. A job that Slurm queues again (preempted, its node lost, requeued by hand) is the same job, and no other
 *    is submitted in its place.
 * 4. A job is over when squeue says so, or says nothing of it any more. Each is reported once by ended().
 * 5. squeue is asked HD_SLURM_SOON_NS after a change, then at twice the time each, up to HD_SLURM_RARE_NS: a
 *    controller serves many users. waits() is looked at for what changed.
 * 6. After a job that failed the next submission waits HD_SLURM_AGAIN_NS, twice as long after each further
 *    one
 *    in a row, at most HD_SLURM_LONGEST_NS. So do questions that were not answered.
 * 7. Where an earlier process may have submitted some, squeue is asked for them first, and nothing else is
 *    asked before it has answered: they are this one's from then on. What waits keeps its place in the queue
 *    until want() or end() has said how many there are to be.
 *
 * Time is an argument, nanoseconds of a clock that does not go back. Plain value; threads: one. */
#ifndef HD_LAUNCH_SLURM_JOBS_H
#define HD_LAUNCH_SLURM_JOBS_H

#include "launch/slurm_text.h"

enum { HD_SLURM_JOBS = 320, HD_SLURM_IDS = 32 };
#define HD_SLURM_SOON_NS INT64_C(500000000)
#define HD_SLURM_RARE_NS INT64_C(10000000000)
#define HD_SLURM_AGAIN_NS INT64_C(1000000000)
#define HD_SLURM_LONGEST_NS INT64_C(300000000000)
/* so long a job waits before the user hears why, and between two such lines */
#define HD_SLURM_PATIENT_NS INT64_C(5000000000)

struct hd_batch_job {
	struct hd_slurm_line line;        /* as squeue said last */
	int64_t since_ns;                 /* when it came into its stage */
	bool seen, reported, taken_back;      /* in this answer of squeue; by ended(); by scancel, by us */
};

/* CANCEL (all of this launcher's name) and NODES are asked by its caller alone. */
enum hd_slurm_ask { HD_SLURM_NOTHING, HD_SLURM_SUBMIT, HD_SLURM_LOOK, HD_SLURM_TAKE_BACK, HD_SLURM_CANCEL,
	HD_SLURM_NODES };
struct hd_slurm_next {
	enum hd_slurm_ask ask;
	uint32_t n;                       /* jobs of SUBMIT, ids of TAKE_BACK */
	const char *id[HD_SLURM_IDS];
	int64_t at_ns;                    /* NOTHING: not before, unless something else comes */
};

struct hd_slurm_jobs {
	/* rule 7: squeue has not answered yet; want() has not said a number */
	bool finds, unsaid;
	struct hd_batch_job job[HD_SLURM_JOBS];
	uint32_t n, want;
	bool ends;                        /* none is to be left, neither waiting nor running */
	int64_t look_ns, pause_ns;        /* squeue: when, and the pause after that */
	int64_t ready_ns;                 /* sbatch: not before */
	uint32_t nbad;                    /* failures in a row: of jobs, or of sbatch */
	uint32_t nalike;
	int alike_code;
	uint32_t unanswered;              /* questions in a row that failed */
	int64_t said_ns;                  /* when what jobs wait for was said */
	char said[HD_LAUNCHER_WHY];
};

/* what becomes of a job; text: in words */
typedef void hd_slurm_tell(void *user, const struct hd_batch_job *job, const char *text);

void hd_slurm_jobs_init(struct hd_slurm_jobs *jobs);
/* Rule 7; before anything else. */
void hd_slurm_jobs_find(struct hd_slurm_jobs *jobs);
void hd_slurm_jobs_want(struct hd_slurm_jobs *jobs, uint32_t n, int64_t now_ns);
/* None is wanted any more, and those that run are taken back, too. */
void hd_slurm_jobs_end(struct hd_slurm_jobs *jobs, int64_t now_ns);
/* squeue has news: it is asked soon. */
void hd_slurm_jobs_changed(struct hd_slurm_jobs *jobs, int64_t now_ns);
void hd_slurm_jobs_next(struct hd_slurm_jobs *jobs, int64_t now_ns, struct hd_slurm_next *next);

void hd_slurm_jobs_submitted(struct hd_slurm_jobs *jobs, const char *id, uint32_t n,
	int64_t now_ns);
void hd_slurm_jobs_taken_back(struct hd_slurm_jobs *jobs, const struct hd_slurm_next *next, int64_t now_ns);
/* What Slurm says of its jobs. whole: it is all that was said; else none is missed for not being there. */
void hd_slurm_jobs_looked(struct hd_slurm_jobs *jobs, const struct hd_slurm_lines *lines, bool whole,
	int64_t now_ns, hd_slurm_tell *tell, void *user);
/* The question was not answered, or refused for now: it is asked again later. True: it is the first in a
 * row. */
bool hd_slurm_jobs_failed(struct hd_slurm_jobs *jobs, enum hd_slurm_ask ask, int64_t now_ns);

/* false: no more */
bool hd_slurm_jobs_ended(struct hd_slurm_jobs *jobs, struct hd_launcher_end *end, int64_t now_ns);
/* seats: not over, and not taken back */
uint32_t hd_slurm_jobs_seats(const struct hd_slurm_jobs *jobs, enum hd_slurm_stage stage);
uint32_t hd_slurm_jobs_left(const struct hd_slurm_jobs *jobs);    /* not over, whatever is to become of them
	*/
/* "Slurm job 77_0 on k1", of the first that has a seat; "" if none has */
void hd_slurm_jobs_at(const struct hd_slurm_jobs *jobs, char *at, size_t cap);
/* "Priority (3), Resources (1)", of those that wait; "" if none does */
void hd_slurm_jobs_why(const struct hd_slurm_jobs *jobs, char why[HD_LAUNCHER_WHY]);
/* True: some wait for long, and why is not what was said last. */
bool hd_slurm_jobs_waits(struct hd_slurm_jobs *jobs, int64_t now_ns, char text[HD_LAUNCHER_WHY + 64]);

#endif
