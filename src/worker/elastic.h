/* elastic.h -- a process as one worker of a job: joins, syncs, computes its part, leaves, whatever happens
 * to the others.
 *
 * Three machines meet here, and nothing else is decided: the member machine says what to do (member.h), the
 * engine computes (dist.h), the hub talks (wire/hub.h). The thread that calls attend() becomes the *compute
 * thread*, which owns the worker; a second one, the *I/O thread*, owns hub and machine (command.h), but while
 * it rests (ADR 206). Neither waits for the other without a bound.
 *
 * 1. attend() returns when the job is over for this worker: done, released, failed, asked to stop, or
 *    *fenced*: the others went on without it. A fenced worker joins again as a new one: attend() with a new
 *    run. So does one that is to begin from step 0 and does not have that state any more, and one that left
 *    for a notice (worker/notice_agent.h) which is withdrawn by then.
 * 2. State that counts is written by the checkpoint writer alone, into the run's folder. A *remote* worker
 *    cannot reach that folder: it is never the writer, starts no coordinator, and syncs from a member.
 * 3. What this process cannot do (data gone, memory) ends it with an error; to the others it is lost.
 *
 * An address is "TRANSPORT ADDRESS": a row of wire/transport.h and what it understands: "shm
 * unix:runs/x/w12.sock", "tls tcp:127.0.0.1:7000". A worker may announce two, separated by a semicolon,
 * first the one for other machines. A caller takes the last that it can reach, so members of one machine
 * use shared memory. */
#ifndef HD_WORKER_ELASTIC_H
#define HD_WORKER_ELASTIC_H

#include "sys/socket.h"
#include "protocol/message.h"
#include "run/run.h"
#include "worker/notice_agent.h"

#define HD_COORDINATOR_LINK UINT32_C(0x7fffffff)  /* the coordinator's id in the hub; no worker has it */

#define HD_NOTE_REFUSED "plan_refused"    /* what this worker has does not take the plan of a view: JSON */
#define HD_NOTE_STUCK "stuck"             /* this worker has not the memory to go on with a lost one's part */
#define HD_NOTE_NOTICE "notice"           /* this machine will be taken away: JSON (elastic_notice.c) */
#define HD_NOTE_READING "reading"         /* a window of this worker's reading: data/fair_text.h */
#define HD_NOTE_WAITS "waits"             /* what this worker's reads have been waiting for */
#define HD_NOTE_TUNED "reader"            /* a decision of this worker's tuner (data/tune.h) */
#define HD_NOTE_EVALUATING "evaluating"   /* note before an evaluation; a note "eval" follows */

enum { HD_VN_TIME_MS = 60000 };             /* the most that vn_wait_ns is */
/* why it goes with no stages (ADR 0136) */
#define HD_VN_TIME_STAGES \
	"--vn-time is of whole virtual nodes, and this job has stages, whose parts interleave: " \
	"a wait after them says nothing of a pipeline. Leave it out, or take a job without stages"
/* the control message by which a coordinator asks workers for recordings: the last before those that ask
 * for bulk */
enum { HD_ELASTIC_RECORD = 127 };
/* that by which it orders a depth of reading: u32, 0: the worker's own. One that is not heard again for so
 * many windows of reading is forgotten. */
enum { HD_ELASTIC_READ = 126, HD_ELASTIC_KEEPS = 4 };
enum { HD_ELASTIC_ADDR = HD_MSG_ADDR + 1, HD_ELASTIC_LISTENS = 2 };

struct hd_elastic_spec {
	struct hd_run *run;               /* borrowed; options.shared; stands at step 0 */
	struct hd_fs *fs;                 /* borrowed, as clock and texts */
	struct hd_clock *clock;
	const char *dir;                  /* of the run; NULL: remote */
	/* Of another machine that shares the run's folder: it meets the others by the network, and saves,
	 * begins and restores as those of the run's machine do. Starts no coordinator. */
	bool far;
	const char *coordinator;          /* its address */
	/* own addresses, as announced; port 0: any; NULL: no more */
	const char *listen[HD_ELASTIC_LISTENS];
	const char *zone;                 /* what this machine is lost together with; NULL: not known */
	struct hd_hash realm;             /* the job's id on the wire; zeros: its hash */
	const void *key;                  /* of the job; NULL: none */
	size_t key_len;
	uint64_t stop_at;                 /* no step from this one on is run; 0: the job says */
	/* computing takes so many times as long (for tests and demonstrations); 0 and 1: as it is */
	double slow;
	/* each virtual node takes so long, or what it takes if that is more: the rest is waited for, so that
	 * many workers share a core as if each had its own (as above); 0: none */
	int64_t vn_wait_ns;
	/* time of one virtual node on a device, picoseconds; 0: not known */
	uint64_t vn_ps;
	bool plaintext;                   /* TCP without a key: the user was warned */
	/* Starts a coordinator after the old one is gone (it may find that there is one). NULL, or a remote
	 * worker: cannot. HD_E_NOTFOUND: the run is gone, this worker leaves; other errors: tried again */
	enum hd_err (*take_over)(void *user, struct hd_diag *diag);
	void (*admitted)(void *user, uint32_t worker);      /* its id; or NULL. I/O thread */
	/* HD_OK; HD_E_PREEMPTED, HD_E_INTERRUPT: this worker is to leave. Any thread */
	enum hd_err (*stop)(void *user);
	void *user;
	/* borrowed: a notice makes this worker leave with HD_OK, or come back if it is withdrawn. NULL:
	 * none */
	struct hd_notice_agent *notices;
};

/* HD_OK: the job is done, or this worker was released. *fenced: join again. Else the code with which to
 * leave. */
HD_MUST_USE enum hd_err hd_elastic_attend(const struct hd_elastic_spec *spec, bool *fenced,
	struct hd_diag *diag);

/* "TRANSPORT ADDRESS" in its two parts. HD_E_INVAL: it is not of that form. */
HD_MUST_USE enum hd_err hd_elastic_address(const char *text, char transport[16], char addr[HD_ADDR_CAP],
	struct hd_diag *diag);
/* A far worker shows that it shares the folder by a file in it, for as long as it is there: HD_FAR_FOLDER/ID,
 * where "far:ID" is its host in JOIN. */
#define HD_FAR_FOLDER "far"
#define HD_FAR_HOST "far:"
enum { HD_FAR_ID = 16 };          /* hexadecimal digits */
void hd_far_id(char id[HD_FAR_ID + 1]);                   /* of this process */
/* The ID in the host of a JOIN; NULL: it is of no far worker. */
const char *hd_far_of_host(const char *host);

/* Of the addresses that a worker announced: the one for a remote caller, or for one on this machine. */
const char *hd_elastic_reach(const char *addresses, bool remote, char one[HD_ELASTIC_ADDR]);
struct hd_hash hd_elastic_realm(struct hd_hash realm, struct hd_hash job);        /* zeros: the job's */

#endif
