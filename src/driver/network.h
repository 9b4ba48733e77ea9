/* network.h -- how a run is reached from other machines, as its job says: net.listen, net.key,
 * net.insecure_plaintext.
 *
 * Used by the process that drives a run and by a worker that joins one.
 *
 * 1. Nothing listens beyond the run's folder unless net.listen is given, and then only with a key (TLS 1.3)
 *    or with net.insecure_plaintext.
 * 2. The key is read here and nowhere else; a caller that has an hd_network wipes it.
 * 3. A port 0 is chosen once: later coordinators of the same run listen at the port that its folder names.
 *
 * Plain values. Threads: any. */
#ifndef HD_DRIVER_NETWORK_H
#define HD_DRIVER_NETWORK_H

#include "sys/crypto_key.h"
#include "run/rundir.h"
#include "worker/elastic.h"

struct hd_network {
	bool listens, has_key, plaintext;
	struct hd_key key;
	struct hd_hash realm;
	char coordinator[HD_ELASTIC_ADDR];        /* where the coordinator listens, or is called */
	/* where a worker of this machine listens: a port of the system's choice */
	char workers[HD_ELASTIC_ADDR];
};

/* The warning that net.insecure_plaintext costs. */
#define HD_NETWORK_OPEN \
	"net.insecure_plaintext: any process that reaches the port can read and change this run; --key " \
	"FILE protects it"

/* Of the job in the run's folder `dir`. A job that does not listen: zeros. HD_E_INVAL: net.listen is no
 * address, or there is neither a key nor net.insecure_plaintext. */
HD_MUST_USE enum hd_err hd_network_of(struct hd_network *net, const struct hd_job *job, struct hd_fs *fs,
	const char *dir, struct hd_diag *diag);

/* key NULL: none, which only plaintext permits. listen NULL: the address from which this machine calls. */
struct hd_network_call { const char *where, *key, *listen; bool plaintext; };
/* Of a worker that joins the run at call->where (HOST:PORT). */
HD_MUST_USE enum hd_err hd_network_join(struct hd_network *net, const struct hd_network_call *call,
	struct hd_diag *diag);
/* Of a worker that has the run's folder and comes from another machine: net is of the job; its own address
 * becomes `listen`, or NULL: that from which it calls. HD_E_INVAL: the run does not listen. */
HD_MUST_USE enum hd_err hd_network_from_afar(struct hd_network *net, const char *listen,
	struct hd_diag *diag);
void hd_network_wipe(struct hd_network *net);

/* What environment and options of a resumed run say of net.* goes into its job.resolved.json: its workers,
 * and coordinators that follow, read it there, the key by its absolute path. If they say nothing, the file
 * stays as it is. `dir` is held. */
HD_MUST_USE enum hd_err hd_network_keep(struct hd_rundir *dir, const struct hd_job *job,
	struct hd_arena *arena,
	struct hd_diag *diag);

/* HOST:PORT, [HOST]:PORT; all else is a folder. */
bool hd_network_is_address(const char *text);

#endif
