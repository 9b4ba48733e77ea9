#include "cmd/bench/members.h"

#include <stdlib.h>

#include "sys/crypto.h"
#include "sys/signal.h"

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double hd_bench_median(double *ms, uint32_t n)
{
	qsort(ms, n, sizeof *ms, rising);
	return ms[(n - 1) / 2];
}

/* A folder of this call alone, for its sockets: their paths must be short. */
static enum hd_err make_folder(struct hd_cmd *cmd, char *folder, size_t cap)
{
	uint64_t name;
	const char *parent = getenv("TMPDIR");

	enum hd_err err = hd_random_bytes(&name, sizeof name, &cmd->diag);
	snprintf(folder, cap, "%.70s/heddle-%016llx", parent && *parent ? parent : "/tmp",
		(unsigned long long)name);
	return err ? err : hd_fs_mkdir(&cmd->fs, folder, &cmd->diag);
}

static enum hd_err lead(struct hd_cmd *cmd, struct hd_allreduce_bench *bench, const char *const *argv,
	struct hd_allreduce_times *times)
{
	char folder[HD_ADDR_CAP];
	struct hd_host host;

	times->ms = hd_arena_take(&cmd->arena, hd_allreduce_bench_times(bench), sizeof *times->ms);
	if (!times->ms)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for times");
	hd_host_real(&host);
	enum hd_err err = hd_signal_install(&cmd->diag);
	if (!err)
		err = make_folder(cmd, folder, sizeof folder);
	if (err)
		return err;
	bench->folder = folder;
	err = hd_allreduce_bench_lead(bench, &host, argv, times, &cmd->diag);
	enum hd_err gone = hd_fs_remove_tree(&cmd->fs, folder, err ? NULL : &cmd->diag);
	bench->folder = NULL;
	return err ? err : gone;
}

static enum hd_err follow(struct hd_cmd *cmd, struct hd_allreduce_bench *bench, const char *member)
{
	char *rest;
	unsigned long me = strtoul(member, &rest, 10);

	if (rest == member || *rest != ':' || me >= bench->n)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			HD_ALLREDUCE_MEMBER "=%s is for members that a bench starts; unset it", member);
	bench->folder = rest + 1;
	return hd_allreduce_bench_member(bench, (uint32_t)me, &cmd->diag);
}

enum hd_err hd_bench_members(struct hd_cmd *cmd, struct hd_allreduce_bench *bench, const char *const *argv,
	struct hd_allreduce_times *times, bool *led)
{
	const char *member = getenv(HD_ALLREDUCE_MEMBER);

	enum hd_err err = hd_allreduce_bench_verify(bench, &cmd->diag);
	if (err)
		return err;
	*led = !member;
	return member ? follow(cmd, bench, member) : lead(cmd, bench, argv, times);
}
