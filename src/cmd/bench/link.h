/* link.h -- what benches of transfers over a link (worker/link.h) share: `bench preempt` and `bench pull`. */
#ifndef HD_CMD_BENCH_LINK_H
#define HD_CMD_BENCH_LINK_H

#include "sys/socket.h"
#include "worker/link.h"
#include "cmd/verbs.h"

uint64_t hd_bench_count(const struct hd_cmd *cmd, enum hd_opt opt, uint64_t other);
/* `name` as on the command line; HD_E_INVAL outside least..most. */
HD_MUST_USE enum hd_err hd_bench_in_range(struct hd_cmd *cmd, const char *name, uint64_t n, uint64_t least,
	uint64_t most);
/* The link of --rate, --delay and --link; a rate of 0: none. */
HD_MUST_USE enum hd_err hd_bench_link(struct hd_cmd *cmd, uint64_t rate_mbit, struct hd_link_spec *link);
/* A folder of this call alone, for sockets: their paths must be short. */
HD_MUST_USE enum hd_err hd_bench_folder(struct hd_cmd *cmd, char folder[HD_ADDR_CAP]);

#endif
