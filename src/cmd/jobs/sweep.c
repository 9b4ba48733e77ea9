/* heddle sweep: many trials of one job, through a scheduler. */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "scheduler/sched_policy.h"
#include "explore/explore.h"
#include "cmd/session.h"

enum { HD_SWEEP_BYTES = 1 << 20 };

static enum hd_err stop_request(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

static void say(void *user, uint32_t trial, const char *text)
{
	struct hd_cmd *cmd = user;

	if (cmd->args.has[HD_OPT_QUIET])
		return;
	if (trial == UINT32_MAX)
		fprintf(stderr, ">> sweep  %s\n", text);
	else
		fprintf(stderr, ">> trial %u  %s\n", trial, text);
}

/* "dir/lr.yaml" -> "lr" */
static enum hd_err find_name(struct hd_cmd *cmd, const char *file, const char **name)
{
	const char *slash = strrchr(file, '/'), *stem = slash ? slash + 1 : file, *dot = strrchr(stem, '.');

	*name = cmd->args.has[HD_OPT_JOB_NAME] ? cmd->args.text[HD_OPT_JOB_NAME] :
		hd_arena_text(&cmd->arena, stem, dot && dot > stem ? (size_t)(dot - stem) : strlen(stem));
	if (!*name)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a name");
	return hd_name_valid(*name) && strlen(*name) <= 48 ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"a sweep is called by its file, and \"%.60s\" is no name (1 to 48 of A-Z a-z 0-9 . _ -): "
		"--name NAME",
		*name);
}

/* Beside the sweep file. */
static const char *beside(struct hd_cmd *cmd, const char *file, const char *path)
{
	const char *slash = strrchr(file, '/');
	struct hd_text at;

	if (!slash || *path == '/')
		return path;
	hd_text_init(&at, &cmd->arena);
	hd_text_put(&at, file, (size_t)(slash + 1 - file));
	hd_text_add(&at, path);
	return at.full ? NULL : at.at;
}

static enum hd_err read_sets(struct hd_cmd *cmd, const struct hd_sweep *sweep, struct hd_job_sets *sets)
{
	enum hd_err err = hd_job_sets_init(sets, cmd->args.nsets, &cmd->arena, &cmd->diag);

	if (!err)
		err = hd_session_environment(cmd, sets);
	for (uint32_t i = 0; i < cmd->args.nsets && !err; i++)
		err = hd_job_sets_word(sets, cmd->args.set[i], &cmd->diag);
	for (uint32_t i = 0; i < sets->n && !err; i++)
		for (uint32_t a = 0; a < sweep->naxes; a++)
			if (!strcmp(sets->set[i].key, sweep->axis[a].key))
				return hd_fail(&cmd->diag, HD_E_INVAL,
					"%s is set (-s, or a variable) and is in the "
					"space of %s: which of the two?", sets->set[i].key, sweep->file);
	return err;
}

static const char *absolute(struct hd_cmd *cmd, const char *dir)
{
	char here[HD_PATH_CAP];
	struct hd_text at;

	if (*dir == '/')
		return dir;
	hd_text_init(&at, &cmd->arena);
	if (hd_proc_folder(here, sizeof here, &cmd->diag))
		return NULL;
	hd_text_addf(&at, "%s/%s", here, dir);
	return at.full ? NULL : at.at;
}

static enum hd_err read_all(struct hd_cmd *cmd, struct hd_sweep *sweep, struct hd_explore_spec *spec)
{
	const char *file = cmd->args.pos[0], *path;
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	char *here = hd_arena_take(&cmd->arena, 1, HD_PATH_CAP);
	struct hd_job_sets sets = { 0 };
	uint8_t *bytes = NULL;

	if (!job || !here)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a sweep");
	enum hd_err err = hd_file_read_all(&cmd->fs, file, &cmd->arena, HD_SWEEP_BYTES, &bytes,
		&spec->sweep_len,
		&cmd->diag);
	spec->sweep_text = (const char *)bytes;
	if (!err)
		err = hd_sweep_parse(sweep, file, spec->sweep_text, spec->sweep_len, &cmd->arena, &cmd->diag);
	if (!err)
		err = find_name(cmd, file, &spec->name);
	if (!err)
		err = read_sets(cmd, sweep, &sets);
	path = err ? NULL : beside(cmd, file, sweep->job);
	if (!err)
		err = path ? hd_session_job(cmd, path, job, &spec->job_text, &spec->job_len) :
			hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a path");
	if (!err)
		err = hd_proc_folder(here, HD_PATH_CAP, &cmd->diag);
	spec->sweep = sweep;
	spec->job_name = path;
	spec->folder = here;
	spec->set = sets.set;
	spec->nsets = sets.n;
	return err;
}

static enum hd_err print(struct hd_cmd *cmd, const struct hd_sweep_table *table)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	if (cmd->args.has[HD_OPT_JSON])
		hd_sweep_table_json(table, &text);
	else
		hd_sweep_table_text(table, &text);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the table");
	fputs(text.at, stdout);
	return HD_OK;
}

static enum hd_err verb_sweep(struct hd_cmd *cmd)
{
	struct hd_sweep *sweep = hd_arena_take(&cmd->arena, 1, sizeof *sweep);
	char pools[32];
	struct hd_sweep_table table = { .best = -1 };

	if (!cmd->args.has[HD_OPT_DIR])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--dir DIR names the folder of a scheduler, or a new one: the "
			"sweep then starts one there");
	struct hd_cores cores;
	hd_cores_usable(&cores);
	snprintf(pools, sizeof pools, "cpu:%u", cores.n);
	struct hd_explore_spec spec = { .fs = &cmd->fs, .clock = &cmd->clock,
		.dir = absolute(cmd, cmd->args.text[HD_OPT_DIR]),
		.partition = hd_args_text(&cmd->args, HD_OPT_OF_PARTITION, NULL),
		.account = hd_args_text(&cmd->args, HD_OPT_OF_ACCOUNT, NULL),
		.pools = hd_args_text(&cmd->args, HD_OPT_POOLS, pools),
		.policy = hd_args_text(&cmd->args, HD_OPT_SCHED_POLICY, "wfs"),
		.round = hd_args_text(&cmd->args, HD_OPT_ROUND, "2"),
		.stop = stop_request, .say = say, .user = cmd };
	enum hd_err err = sweep && spec.dir ? read_all(cmd, sweep, &spec) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a sweep");
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_explore(&spec, &cmd->arena, &table, &cmd->diag);
	if (err)
		return err;
	err = print(cmd, &table);
	if (!err && table.best < 0)
		err = hd_fail(&cmd->diag, HD_E_DIVERGED, "no trial has reported: all failed");
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> best  trial %lld, %lld steps in all, %.1f %% of %lld; "
			"%s/sweeps/%s/sweep.html\n", (long long)table.best, (long long)table.steps,
			100.0 * (double)table.steps / (double)table.exhaustive, (long long)table.exhaustive,
			spec.dir,
			spec.name);
	return err;
}

const struct hd_verb hd_verb_sweep = {
	.name = "sweep", .args = "FILE", .npos_min = 1, .npos_max = 1,
	.about = "try many values of a job's keys, by a grid, at random or by halving",
	.more =
		"FILE says which job, which keys take which values, by which method, and what is compared:\n"
		"  job: job.yaml\n"
		"  method: halving          # grid, random, sobol, halving, asha\n"
		"  draw: grid               # of halving and asha: how points are taken (random)\n"
		"  space: {optim.lr: {log: [1e-4, 1e-1], n: 9}, batch.global: [32, 64, 128]}\n"
		"  metric: {name: loss, over: 5}        # loss, val_loss, val_accuracy\n"
		"  steps: {min: 20, max: 180, eta: 3}   # of the first rung and the last\n"
		"Trials are jobs of the scheduler of --dir; where none serves, one is started with --pool "
		"(all cores), --policy (wfs: trials take what is free) and --round (2), and ended with the "
		"sweep. A trial that is stopped at a rung goes on later from there, with the bits of a run "
		"that never stopped; `heddle resume` goes on with any of them by hand.\n"
		"--partition and --account are of each trial's job, as of `heddle submit`: a scheduler that "
		"has no such one, or does not let its user have it, refuses the first trial, and nothing "
		"runs.\n"
		"The same command again goes on after a stop or a kill; what came stands in "
		"DIR/sweeps/NAME/record.ndjson, the page is sweep.html beside it.",
	.opts = HD_OPTS(HD_OPT_JOB_NAME, HD_OPT_POOLS, HD_OPT_SCHED_POLICY, HD_OPT_ROUND, HD_OPT_SET,
		HD_OPT_OF_PARTITION, HD_OPT_OF_ACCOUNT),
	.run = verb_sweep, .test = "program_sweep.sh",
};
