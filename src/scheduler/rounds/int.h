/* int.h -- the books of the rounds: cells, jobs, devices. */
#ifndef HD_SCHEDULER_ROUNDS_INT_H
#define HD_SCHEDULER_ROUNDS_INT_H

#include "scheduler/mt19937.h"
#include "scheduler/rounds.h"

#define HD_NO_DEVICE UINT32_MAX

struct combination {
	uint64_t id[2];                           /* ascending */
	uint8_t nmembers, nneeds;
	bool known;                               /* the last shares knew the job: gavel places no other */
	/* a job on its scale of one type: stays while the job does */
	bool own;
	bool dead;                                /* the job left; goes before the next round */
	struct hd_need need[HD_SHAPE_NEEDS];
	double rate[2], x, t, deficit, priority;
	double plain;                             /* priority without hysteresis */
};

struct round_job {
	uint64_t id;
	uint32_t scale;
	uint32_t waited;                          /* rounds without devices */
	uint32_t first_out;                       /* of these, rounds in which it was the first without */
	double switch_s;
	bool dead, picked;
	bool walked;                              /* took part in the walk of a boundary */
	bool reserved;                            /* went before all others in the last walk */
	bool lost;                                /* a device that it had, since the last walk */
	uint32_t held;                            /* run of the last round; UINT32_MAX: none */
	uint32_t nlimits, limit[HD_ROUND_LIMITS];
	uint32_t over;                            /* 1 + limit that it was passed over for; 0: none */
};

/* left: in the walk at hand */
struct round_limit { uint32_t devices, jobs, left_devices, left_jobs; };

struct pick { uint32_t cell; bool spare; };

struct hd_rounds {
	struct hd_rounds_setting set;
	uint32_t ntypes;
	struct hd_sched_type type[HD_SCHED_TYPES];
	uint32_t first_device[HD_SCHED_TYPES + 1];
	uint32_t order[HD_SCHED_TYPES];           /* gavel: of types, fast first */
	uint32_t *host;                           /* owned, [ndevices]; NULL: each its own */
	bool *usable;                             /* owned, [ndevices] */
	uint32_t *free_at_host;                   /* owned scratch, [nhosts] */
	uint32_t nhosts;
	bool *taken;                              /* owned scratch, [ndevices] */
	/* owned scratch, [ndevices] 1 + pick that had it and finds it again; 0: none */
	uint32_t *kept_for;
	struct combination *cell;                        /* owned, sorted */
	uint32_t ncells, cells_cap;
	struct round_job *job;                          /* owned, by id */
	uint32_t njobs, jobs_cap;
	struct round_limit *limit;                      /* owned */
	uint32_t nlimits, limits_cap;
	double worked[HD_SCHED_TYPES];            /* W */
	double last_reset_s;
	bool was_reset, stale, asked, conserving, dead;
	bool mid;                                 /* the last walk was between boundaries */
	struct hd_mt mt;
	/* scratch and results, grown as needed */
	uint32_t *list;
	uint32_t list_cap;
	struct pick *pick;
	uint32_t npicks, picks_cap;
	struct hd_round_run *run, *old_run;             /* this round's and the last one's */
	uint32_t nruns, runs_cap, nold, old_cap;
	uint32_t *device, *old_device;
	uint32_t ndevices_used, device_cap, old_device_cap;
};

struct round_job *rounds_job(const struct hd_rounds *r, uint64_t id);       /* NULL: not there */
int rounds_order(const struct combination *a, const struct combination *b);
void rounds_bury(struct hd_rounds *r);                                /* dead cells and jobs go */
bool rounds_fits(const struct combination *c, const uint32_t *left);
void rounds_pick_gavel(struct hd_rounds *r, uint32_t *types);         /* types: the order, [ntypes] */
void rounds_pick(struct hd_rounds *r, bool mid);
HD_MUST_USE enum hd_err rounds_place_gavel(struct hd_rounds *r, const uint32_t *types, struct hd_diag *diag);
HD_MUST_USE enum hd_err rounds_place(struct hd_rounds *r, struct hd_diag *diag);

#endif
