/* emulator.h -- AWS Lambda on a port of the loopback: the Invoke API before instances (instances.h).
 *
 * `heddle chaos lambda` is its user; owners call it as they call AWS. What is made with it is emulated.
 *
 * 1. POST /2015-03-31/functions/NAME/invocations, RequestResponse alone [400]; any NAME. Signatures are made
 *    again with HD_EMULATED_ID and HD_EMULATED_SECRET and compared, unless `no_auth` [403].
 * 2. 429: all slots are busy. 413: more than an event may have. A function that fails is 200 with
 *    X-Amz-Function-Error. Each answer has the line REPORT of its call in X-Amz-Log-Result; a lost one is no
 *    answer: the connection ends.
 * 3. One request a connection (server.h).
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: one; poll() blocks. */
#ifndef HD_FUNCTIONS_EMULATOR_H
#define HD_FUNCTIONS_EMULATOR_H

#include "functions/instances.h"
#include "functions/server.h"
#include "functions/sigv4.h"

#define HD_EMULATED_ID "AKIDHEDDLE"
#define HD_EMULATED_SECRET "emulated"

/* The service. */
struct hd_emulator {
	struct hd_clock *clock;           /* borrowed */
	struct hd_loop loop;
	struct hd_net net;
	struct hd_fn_server server;
	struct hd_fn_instances instances;
	bool no_auth;
	int64_t timeout_ns;               /* of a call */
	uint64_t ncalls, throttled, refused;
};

/* "tcp:127.0.0.1:0"; spec->tag is chosen here. */
HD_MUST_USE enum hd_err hd_emulator_open(struct hd_emulator *emulator, struct hd_clock *clock,
	const char *addr,
	const struct hd_fn_instances_spec *spec, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_emulator_close(struct hd_emulator *emulator);
/* Serves until at_ns, or a wake. */
HD_MUST_USE enum hd_err hd_emulator_poll(struct hd_emulator *emulator, int64_t at_ns, struct hd_diag *diag);

#endif
