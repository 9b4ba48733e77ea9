/* network.h -- how a run is reached from other machines, as its job says: net.listen, net.key,
 * net.insecure_plaintext.
 *
 * Nothing listens beyond the run's folder unless net.listen is given, and then only with a key (TLS 1.3) or
 * where the user said in so many words that there shall be none. The key is read here and nowhere else;
 * whoever took one gives it back. */
#ifndef HD_CMD_NETWORK_H
#define HD_CMD_NETWORK_H

#include "sys/crypto_key.h"
#include "worker/elastic.h"
#include "cmd/verbs.h"

struct hd_network {
	bool listens, has_key, plaintext;
	struct hd_key key;
	struct hd_hash realm;
	char coordinator[HD_ELASTIC_ADDR];        /* where the coordinator listens, or is called */
	/* where a worker of this machine listens: a port of the system's choice */
	char workers[HD_ELASTIC_ADDR];
};

/* Of the job in the run's folder `dir`. A job that does not listen: zeros. */
HD_MUST_USE enum hd_err hd_network_of(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_network *net);
/* Of who joins the run at `where` (HOST:PORT) by --key, --listen, net.insecure_plaintext of -s. */
HD_MUST_USE enum hd_err hd_network_join(struct hd_cmd *cmd, const char *where, struct hd_network *net);
void hd_network_give(struct hd_network *net);

/* HOST:PORT, [HOST]:PORT; all else is a folder. */
bool hd_network_is_address(const char *text);

#endif
