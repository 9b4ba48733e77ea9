#include "cmd/bench/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/crypto.h"

enum { RATE_MOST = 100000, DELAY_MOST = 1000 };

uint64_t hd_bench_count(const struct hd_cmd *cmd, enum hd_opt opt, uint64_t other)
{
	return cmd->args.has[opt] ? cmd->args.count[opt] : other;
}

enum hd_err hd_bench_in_range(struct hd_cmd *cmd, const char *name, uint64_t n, uint64_t least, uint64_t most)
{
	return n >= least && n <= most ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"--%s %llu: between %llu and %llu", name, (unsigned long long)n, (unsigned long long)least,
		(unsigned long long)most);
}

enum hd_err hd_bench_link(struct hd_cmd *cmd, uint64_t rate_mbit, struct hd_link_spec *link)
{
	const char *name = hd_args_text(&cmd->args, HD_OPT_LINK, "auto");
	const uint64_t delay = hd_bench_count(cmd, HD_OPT_LINK_DELAY, 0);

	enum hd_err err = cmd->args.has[HD_OPT_MBIT] ?
		hd_bench_in_range(cmd, "rate", rate_mbit, 1, RATE_MOST) : HD_OK;
	if (!err)
		err = hd_bench_in_range(cmd, "delay", delay, 0, DELAY_MOST);
	if (!err && cmd->args.has[HD_OPT_LINK_DELAY] && !rate_mbit)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--delay is of a link with a rate; add --rate MBIT");
	if (!err && delay && !strcmp(name, "netns"))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--link netns has no delay; take relay");
	if (err)
		return err;
	*link = (struct hd_link_spec){ .rate_mbit = (uint32_t)rate_mbit, .delay_ms = (uint32_t)delay,
		.clock = &cmd->clock };
	if (rate_mbit)
		link->kind = !strcmp(name, "netns") ? HD_LINK_NETNS : !strcmp(name, "relay") ? HD_LINK_RELAY :
			hd_link_best(link->delay_ms);
	return HD_OK;
}

enum hd_err hd_bench_folder(struct hd_cmd *cmd, char folder[HD_ADDR_CAP])
{
	uint64_t name;
	const char *parent = getenv("TMPDIR");

	enum hd_err err = hd_random_bytes(&name, sizeof name, &cmd->diag);
	snprintf(folder, HD_ADDR_CAP, "%.70s/heddle-%016llx", parent && *parent ? parent : "/tmp",
		(unsigned long long)name);
	return err ? err : hd_fs_mkdir(&cmd->fs, folder, &cmd->diag);
}
