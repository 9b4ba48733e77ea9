/* pilots.h -- devices that a batch system lends: a scheduler's pilots (launch/pilot.h), as the slots of its
 * pools that they fill.
 *
 * A type of the pools has as many devices as there may be pilots of it. A device is there while a pilot is
 * bound to it; the others are out of service. How many pilots of each type are wanted follows from the jobs
 * (hd_pilots_plan); a launcher of each type gets them.
 *
 * 1. A pilot is bound to a free device when its state is first seen, and stays so; its order names the
 *    device, so that a scheduler that starts again binds it alike before leases are carried out.
 * 2. A pilot whose beat stands still for HD_PILOTS_SILENT_NS of looks is gone, and so is its worker: its node
 *    may be lost, or only its way to the folder. If it comes back it counts as another pilot, and its worker
 *    is asked to leave, as any worker that no lease knows.
 * 3. More is wanted at once; less only after it was less for idle_ns. Then pilots without a job go, the one
 *    that was bound last first. One with a worker is never sent away for that.
 * 4. A launcher's refusal is said once and tried again; it ends no scheduler.
 *
 * Ownership: open/close; the spec is borrowed. Threads: one; only open and stop block. */
#ifndef HD_DAEMON_PILOTS_H
#define HD_DAEMON_PILOTS_H

#include "launch/launcher.h"
#include "launch/pilot.h"
#include "daemon/pool.h"

enum { HD_PILOTS_ASKS = 1024 };
#define HD_PILOTS_FOLDER "pilots"         /* in the scheduler's; one of each type in it */
#define HD_PILOTS_SILENT_NS INT64_C(30000000000)
#define HD_PILOTS_BEAT_NS   INT64_C(2000000000)
#define HD_PILOTS_STOP_NS   INT64_C(60000000000)
/* batch jobs of a type that wait for so long, while none came: a job that waits is to run on another type */
#define HD_PILOTS_STUCK_NS  INT64_C(10000000000)

struct hd_pilots_spec {
	struct hd_fs *fs;
	struct hd_clock *clock;
	const char *dir;                  /* the scheduler's */
	const struct hd_pools *pools;     /* open */
	struct hd_launcher *launcher[HD_DISPATCH_TYPES];          /* of each type */
	uint32_t least, most;             /* pilots in all */
	int64_t idle_ns;
	const char *own;                  /* the host, in numbers, by which nodes call this machine */
};

/* A device's pilot as it was seen last. */
struct hd_pilot_seen {
	char name[HD_PILOT_NAME];
	uint32_t type, device;            /* HD_POOL_DEVICES: not bound yet */
	struct hd_pilot_state is;
	struct hd_pilot_order order;      /* the last */
	int64_t changed_ns;               /* when its beat was another one last */
	bool known, going;                /* in this look; sent away */
};

struct hd_pilots;
typedef void hd_pilots_say(void *user, const char *kind, const char *text);

HD_MUST_USE enum hd_err hd_pilots_open(struct hd_pilots **pilots, const struct hd_pilots_spec *spec,
	hd_pilots_say *say, void *user, struct hd_diag *diag);
void hd_pilots_close(struct hd_pilots *pilots);                   /* takes NULL */

/* What is there; what is due for the launchers. */
void hd_pilots_look(struct hd_pilots *pilots);
/* NULL: no pilot is bound to it, or it leaves. */
const struct hd_pilot_seen *hd_pilots_at(const struct hd_pilots *pilots, uint32_t device);
/* The same, with those that leave or were sent away. */
const struct hd_pilot_seen *hd_pilots_any(const struct hd_pilots *pilots, uint32_t device);
/* Its worker is there, or on its way there: an order that was not taken yet counts. */
bool hd_pilots_work(const struct hd_pilot_seen *seen);
/* What is to be on that device, job and lease of `order` and its run; n and device are set here. An order
 * that
 * stands already is not given again, but for work whose worker has ended. */
HD_MUST_USE enum hd_err hd_pilots_order(struct hd_pilots *pilots, uint32_t device,
	const struct hd_pilot_order *order, struct hd_diag *diag);

/* What one job asks for: devices at once, of one type; steps/s by type, 0: not there. now: it has so many of
 * that type. */
struct hd_pilots_ask { uint32_t least, most, now, type; bool at[HD_DISPATCH_TYPES]; };
/* Pilots of each type: jobs in the order given, those that have devices first; each on the first type,
 * fastest
 * first, that has room for its least, and as much of its most as is left. can: of each type as many as can be
 * had now; a job that fits in none of that waits for more of a type. Pure. */
void hd_pilots_plan(const struct hd_pools *pools, uint32_t least, uint32_t most,
	const uint32_t can[HD_DISPATCH_TYPES], const struct hd_pilots_ask *ask, uint32_t n,
	uint32_t want[HD_DISPATCH_TYPES]);
/* The devices of a type, or, of one that is stuck, those that are there. */
void hd_pilots_can(const struct hd_pilots *pilots, uint32_t can[HD_DISPATCH_TYPES]);
/* Rule 3. busy: which devices have a job. */
void hd_pilots_want(struct hd_pilots *pilots, const uint32_t want[HD_DISPATCH_TYPES],
	const bool busy[HD_POOL_DEVICES]);
/* Of a type: what the launcher has, and is asked for. */
void hd_pilots_count(const struct hd_pilots *pilots, uint32_t type, struct hd_launcher_count *count,
	uint32_t *want);

/* The scheduler ends. all: pilots go and nothing is left in the queue, which is waited for; else they wait
 * for
 * the next scheduler, and those without work for HD_PILOT_ENDED_NS. */
HD_MUST_USE enum hd_err hd_pilots_stop(struct hd_pilots *pilots, bool all, struct hd_diag *diag);

#endif
