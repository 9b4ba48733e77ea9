/* cloud.h -- machines of a market that is played: of each a worker process of a run, started, stopped and
 * killed as a script says (machine_script.h), beside metadata services that give them notice.
 *
 * 1. A machine's process is `heddle worker --join RUN` with the machine's own address of the services. It has
 *    a process group, which a kill takes as a whole.
 * 2. A worker that ends while its machine is there is started again, unless it had
 *    notice; one that fails HD_CLOUD_ALIKE times in a row is an error.
 * 3. A machine is paid from the start of its process to its end, whole milliseconds, rounded down; the time
 *    between two processes of one machine is not paid.
 * 4. What a machine's worker has started goes with the machine: a coordinator that took over, too. No process
 *    outlives the cloud, nor the process that it belongs to, however that ends.
 *
 * Ownership: init/finish; what the spec names is borrowed. Threads: one. */
#ifndef HD_CHAOS_CLOUD_H
#define HD_CHAOS_CLOUD_H

#include "sys/clock.h"
#include "sys/file.h"
#include "chaos/machine_script.h"
#include "chaos/metadata_server.h"

enum { HD_CLOUD_ALIKE = 5 };
#define HD_CLOUD_FREEZE_NS INT64_C(10000000000)

struct hd_cloud_spec {
	struct hd_host *host;
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_metadata_server *services;
	const char *dir;                  /* of the run */
	const char *devices;              /* of each worker */
	const char *slow;                 /* --slow of each; NULL: as fast as it is */
	const char *vn_time;              /* --vn-time of each; NULL: none */
	const char *steps;                /* --steps; NULL: those of the job */
	double speed;                     /* of the script: a source is asked so much more often */
	bool noticed;                     /* machines ask the services of their cloud for notices */
	void (*said)(void *user, const struct hd_metadata_event *event);
	void *user;
};

struct hd_cloud_machine {
	char name[HD_METADATA_NAME];      /* "": free */
	enum hd_metadata_cloud cloud;     /* whose services it asks */
	struct hd_tie tie;                /* what its processes end with, whatever group they are of */
	struct hd_proc proc;              /* host NULL: no process now */
	int64_t began_ns, again_ns, thaw_ns;      /* thaw 0: it runs */
	bool warned, booted;              /* booted: its worker was seen as a member */
	uint32_t failed;
};

struct hd_cloud {
	struct hd_cloud_spec spec;
	struct hd_cloud_machine machine[HD_MACHINES_MOST];
	uint32_t n;                       /* machines that are there */
	uint32_t most, added, killed, warned, again, signals;         /* most: at once */
	int64_t paid_ms;                  /* of processes that ended */
};

void hd_cloud_init(struct hd_cloud *cloud, const struct hd_cloud_spec *spec);
/* What a script says happens now; that it can was checked when it was read (machine_script.h). HD_E_INPUT:
 * more than HD_METADATA_SCRIPT events that are late. */
HD_MUST_USE enum hd_err hd_cloud_do(struct hd_cloud *cloud, const struct hd_metadata_event *event,
	struct hd_diag *diag);
/* Processes that ended, and those that are started again where `again`. HD_E_INTEGRITY: as rule 2 says. */
HD_MUST_USE enum hd_err hd_cloud_look(struct hd_cloud *cloud, bool again, struct hd_diag *diag);
/* Kills all that is left. Takes zeroed ones. */
void hd_cloud_finish(struct hd_cloud *cloud);

#endif
