/* metadata.h -- the metadata services of three clouds, played: what machines of EC2, GCE and Azure would be
 * answered, by a script of events. For tests of the sources of notices (notice/source.h), and for
 * `heddle chaos spot`.
 *
 * Each node (a machine) is served under /NAME with the requests and refusals of the real services: EC2 wants
 * a token of its own [401] with a lifetime of 1 to 21600 s [400]; GCE `Metadata-Flavor: Google` [403], and
 * waits for a change; Azure `Metadata: true` and an api-version [400], counts incarnations, and takes
 * approvals. A node is there from its first event or request on; beyond HD_METADATA_NODES at once there is
 * none.
 *
 * 1. Events come as lines of JSON: {"t":30,"node":"n3","do":"notice","cloud":"ec2","lead":120}. Times are
 *    seconds from the begin, in any order; one that is past happens at once.
 * 2. An event changes what is answered from then on, nothing else: what was said is said again until another
 *    event, as a real service would.
 *
 * Pure: time is an argument. Ownership: plain value of some size; texts are copied. */
#ifndef HD_CHAOS_METADATA_H
#define HD_CHAOS_METADATA_H

#include "base/http_head.h"
#include "base/text.h"
#include "sys/process.h"

enum { HD_METADATA_NODES = 1024, HD_METADATA_NAME = 40, HD_METADATA_SCRIPT = 256, HD_METADATA_WORD = 24,
	HD_METADATA_BODY = 2048,
	HD_METADATA_TOKENS = 16 };

/*        id         word         what happens */
#define HD_METADATA_DOES(X) \
	X(NOTICE,    "notice",    "the machine goes in `lead` s (120, 30, 30 of the three clouds); said `late` s later") \
	X(REBALANCE, "rebalance", "EC2: a rebalance recommendation") \
	X(MIGRATE,   "migrate",   "GCE: the machine moves to another host; Azure: a Freeze of `lead` s") \
	X(MAINTAIN,  "maintain",  "GCE: maintenance of the host ends the machine, in a minute") \
	X(WITHDRAW,  "withdraw",  "what was announced is gone") \
	X(START,     "start",     "Azure: the event has begun") \
	X(EXPIRE,    "expire",    "EC2: all tokens end now") \
	X(FAIL,      "fail",      "all requests are answered with `status` (503); 0: with garbage") \
	X(SILENCE,   "silence",   "requests are not answered") \
	X(HEAL,      "heal",      "requests are answered again")                                               \
	X(ADD,       "add",       "the machine comes: its worker is started")                                  \
	X(KILL,      "kill",      "the machine is gone: its worker's process group gets SIGKILL")              \
	X(FREEZE,    "freeze",    "it stands still for `lead` s (10)")                                         \
	X(SIGNAL,    "signal",    "its worker gets `sig`: TERM, INT, USR1, STOP, CONT or KILL")

enum hd_metadata_do {
#define X(id, word, text) HD_METADATA_##id,
	HD_METADATA_DOES(X)
#undef X
};
enum hd_metadata_cloud { HD_CLOUD_EC2, HD_CLOUD_GCE, HD_CLOUD_AZURE, HD_CLOUD_ALL };

struct hd_metadata_event {
	int64_t at_ns;                    /* from the begin */
	char node[HD_METADATA_NAME];
	enum hd_metadata_do what;
	enum hd_metadata_cloud cloud;
	int64_t lead_ns, late_ns;         /* lead below 0: the cloud's usual one */
	int status;
	char action[HD_METADATA_WORD];
	enum hd_proc_signal sig;
	/* of a run that is played (market.h), beside the time: not before that step is committed; not before
	 * so many workers take part (0: any number); not before the run gave up for lack of machines */
	int64_t step, members;
	bool starved;
};
/* What happens to the machine itself (chaos/cloud.h); services take no notice of it. */
static inline bool hd_metadata_of_machine(enum hd_metadata_do what) { return what >= HD_METADATA_ADD; }

const char *hd_metadata_do_name(enum hd_metadata_do what);
const char *hd_metadata_cloud_name(enum hd_metadata_cloud cloud);
/* One line of a script. HD_E_INPUT: what is wrong with it. */
HD_MUST_USE enum hd_err hd_metadata_read(const char *line, size_t len, struct hd_metadata_event *event,
	struct hd_diag *diag);

struct hd_metadata_node {
	char name[HD_METADATA_NAME], action[HD_METADATA_WORD];
	bool interrupted, preempted, terminated, migrates, event, started, frozen, silent;
	int64_t ends_wall_ns, rebalance_wall_ns, event_wall_ns;       /* rebalance 0: none */
	int64_t freeze_s;
	uint32_t tokens, expired;         /* given; of those the first ones that count no more */
	int64_t until_ns[HD_METADATA_TOKENS];     /* of the last ones, by number */
	uint64_t changes, incarnation, events;
	int failing;                      /* status; -1: not */
	bool gone;                        /* the machine is: another may take its place here */
};

struct hd_metadata {
	struct hd_metadata_node node[HD_METADATA_NODES];
	uint32_t nnodes;
	struct hd_metadata_event script[HD_METADATA_SCRIPT];
	uint32_t nscript;
	int64_t began_ns;
	uint64_t approved;                /* requests for a start that were taken */
};

void hd_metadata_init(struct hd_metadata *m, int64_t now_ns);
/* The machine of that name is gone for good; takes names that are not known. */
void hd_metadata_forget(struct hd_metadata *m, const char *name);
/* false: there is no room for more that have not happened yet */
bool hd_metadata_add(struct hd_metadata *m, const struct hd_metadata_event *event);
/* Lets happen what is due. When the next one is; INT64_MAX: none. */
int64_t hd_metadata_turn(struct hd_metadata *m, int64_t now_ns, int64_t wall_ns);

struct hd_metadata_request {
	const struct hd_http_head *head;
	const char *body;
	int64_t came_ns;                  /* when it was whole: a request that waits is asked again */
};
/* The whole answer, with its head, into `out`. HD_E_AGAIN: not yet; ask again after a turn, at *until_ns at
 * the latest (INT64_MAX: it is never answered). */
HD_MUST_USE enum hd_err hd_metadata_answer(struct hd_metadata *m, const struct hd_metadata_request *request,
	int64_t now_ns, int64_t wall_ns, struct hd_text *out, int64_t *until_ns);

#endif
