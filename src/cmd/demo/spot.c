#include "cmd/demo/spot.h"

#include <stdio.h>
#include <string.h>

#include "clustersim/availability.h"
#include "cmd/chaos/spot.h"
#include "cmd/session.h"

/* An hour of a market in half a minute: six machines at most, each a worker that waits most of its time,
 * as if
 * it had cores of its own. Two vanish at once, two have notice, all but one are gone for a while. */

static const char job[] =
	"job: {name: demo-spot, seed: 23, steps: 1000000}\n"
	"model: {use: builtin:gpt, args: {layers: 1, width: 64, heads: 4, context: 32, vocab: 256}}\n"
	"data: {kind: synthetic, count: 4096}\n"
	"batch: {global: 48, virtual_nodes: 12}\n"
	"optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}\n"
	"eval: {every: 0}\n"
	"checkpoint: {every: 50 steps}\n"
	"trace: {digest: 1}\n"
	"workers: {detect: 1 s}\n";

static const char trace[] =
	"0,add,n1\n0,add,n2\n0,add,n3\n0,add,n4\n600000,add,n5\n600000,add,n6\n"
	"1200000,remove,n2\n1200000,remove,n5\n1500000,add,n7\n1700000,remove,n1\n1800000,add,n8\n"
	"2100000,remove,n3\n2100000,remove,n6\n2100000,remove,n7\n2400000,add,n9\n2400000,add,n10\n"
	"3000000,remove,n4\n3600000,remove,n8\n";

enum { SPEED = 120, MOST = 6, SEED = 5 };

static enum hd_err prepare(struct hd_cmd *cmd, struct hd_play_ask *ask, struct hd_spot_trace *machines,
	struct hd_machine_script *script)
{
	struct hd_machine_notice notice = { .share = 0 };
	struct hd_job *parsed = hd_arena_take(&cmd->arena, 1, sizeof *parsed);
	char *path = hd_arena_take(&cmd->arena, HD_HARNESS_PATH + 8, 1);
	const char *dir = hd_args_text(&cmd->args, HD_OPT_DIR, ".");
	char runs[HD_HARNESS_PATH];
	enum hd_err err = parsed && path ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");

	if (err)
		return err;
	*ask = (struct hd_play_ask){ .fs = &cmd->fs, .clock = &cmd->clock, .arena = &cmd->arena, .path = path,
		.job = parsed, .nsteps = 1000000, .seed = SEED, .most = MOST, .speed = SPEED, .slow = "8",
		.noticed = true, .script = script, .trace = machines, .set = cmd->args.set,
		.nsets = cmd->args.nsets };
	hd_harness_folder(&cmd->fs, dir, "demo-spot", ask->parent);
	(void)snprintf(path, HD_HARNESS_PATH + 8, "%s.yaml", ask->parent);
	(void)snprintf(runs, sizeof runs, "%.400s/runs", dir);
	err = hd_fs_mkdirs(&cmd->fs, runs, &cmd->diag);
	err = err ? err : hd_file_write_atomic(&cmd->fs, path, job, strlen(job), &cmd->diag);
	err = err ? err : hd_session_job(cmd, path, parsed, NULL, NULL);
	err = err ? err : hd_machine_notice_read(&notice, "p:0.4", &cmd->diag);
	err = err ? err : hd_availability_read(machines, "the demo's trace", (const uint8_t *)trace,
		strlen(trace), SEED, &cmd->arena, &cmd->diag);
	return err ? err : hd_machine_script_of(script, machines, "the demo's trace", SPEED, &notice, SEED,
		&cmd->arena, &cmd->diag);
}

enum hd_err hd_demo_spot(struct hd_cmd *cmd)
{
	struct hd_spot_trace machines;
	struct hd_machine_script script;
	struct hd_play_ask ask;

	if (cmd->args.has[HD_OPT_SHOW]) {
		fputs(job, stdout);
		fputs(trace, stdout);
		return HD_OK;
	}
	enum hd_err err = prepare(cmd, &ask, &machines, &script);
	if (!err && !cmd->args.has[HD_OPT_JSON] && !cmd->args.has[HD_OPT_QUIET])
		printf("  an hour of a market in %d s: at most %d machines, each a worker process; some "
			"say before "
			"that they go\n", 3600 / SPEED, MOST);
	return err ? err : hd_spot_play(cmd, &ask);
}
