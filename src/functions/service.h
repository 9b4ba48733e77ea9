/* service.h -- functions that a process can call, by words: an owner of tasks with what calls for it, a local
 * pool, AWS Lambda or an HTTP front end.
 *
 * Training (run/functions.h) and `heddle bench functions` open one.
 *
 * 1. A pool's sockets lie in a folder of this user alone below /tmp, named by the process, which ends with
 *    it; folders of processes that were killed go when the next pool is opened.
 * 2. Keys of AWS come from its variables, else from its shared file; the emulator, an endpoint of plain HTTP,
 *    has keys of its own. Nothing of them is in a spec.
 * 3. Workers answer over TLS where a service is called, and at an address that others can reach: one that is
 *    every address of this machine is refused.
 *    Of several processes of a run with one `listen` each takes the first port that is free (nports).
 * 4. A bill is `emulated` where nothing is paid for.
 *
 * Ownership: open/close in the caller's memory, which does not move; texts of the spec are borrowed. Threads:
 * one, that of the owner. */
#ifndef HD_FUNCTIONS_SERVICE_H
#define HD_FUNCTIONS_SERVICE_H

#include "sys/file.h"
#include "data/credentials.h"
#include "functions/http.h"
#include "functions/lambda.h"
#include "functions/owner.h"

enum { HD_FN_MEMORY_MB = 1769 };          /* a core of AWS */

/* What is asked for. */
struct hd_fn_service_spec {
	struct hd_clock *clock;
	struct hd_fs *fs;
	const char *kind;                 /* "pool", "lambda", "http" */
	const char *name;                 /* of the function; of lambda alone */
	const char *endpoint;             /* URL; NULL for a pool */
	const char *listen;               /* HOST:PORT where workers reach this process; NULL: the loopback */
	uint32_t nports;                  /* the first free one from PORT on, of so many; 0: PORT itself */
	const char *const *argv;          /* of a pool: starts a worker; ends with NULL */
	const char *price;                /* "2020", "2021", "2025" or a file; NULL: the newest */
	uint32_t ntasks, slots;           /* tasks and calls at once; slots 0: none is called */
	int64_t lease_ns, memory_mb;
	struct hd_fn_faults faults;       /* of a pool; `seed` also of waits */
	const char *log;                  /* of a pool: file for REPORT lines; NULL: in its folder */
};

/* It, ready. */
struct hd_fn_service {
	struct hd_fn_service_spec spec;
	struct hd_fn_owner owner;
	struct hd_fn_instances pool;
	struct hd_fn_lambda lambda;
	struct hd_fn_calls http;
	struct hd_aws_credentials keys;
	struct hd_fn_price price;
	struct hd_arena arena;
	char region[HD_AWS_REGION], dir[64], listen[HD_ADDR_CAP], log_name[96];
	FILE *log;
	bool pays;                        /* a cloud's, not emulated */
};

/* Of the files that come with the program by their date, else of a file: "2020", "2021", "2025"; NULL: the
 * newest. */
HD_MUST_USE enum hd_err hd_fn_price_named(struct hd_fs *fs, const char *name, struct hd_arena *arena,
	struct hd_fn_price *price, struct hd_diag *diag);
/* HD_E_INVAL: words that do not go together, no keys, no such price. */
HD_MUST_USE enum hd_err hd_fn_service_open(struct hd_fn_service *service,
	const struct hd_fn_service_spec *spec, struct hd_diag *diag);
/* No call goes out any more, and a pool's log is whole; the owner with its ledger stays. */
void hd_fn_service_stop(struct hd_fn_service *service);
/* Takes zeroed and closed ones. */
void hd_fn_service_close(struct hd_fn_service *service);

#endif
