/* heddle sched advise: what a policy would start next on a Slurm cluster, from squeue and sinfo. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "clustersim/slurm_now.h"
#include "cmd/json_line.h"
#include "cmd/sched/input.h"

enum { TELL_S = 5, WAIT_S = 120 };                /* for an answer of Slurm's controller */

/* Until it ended; of a wait that is longer it is said for what. */
static enum hd_err await(struct hd_cmd *cmd, struct hd_proc *proc, const char *program)
{
	enum hd_err err = HD_E_AGAIN;
	int code = 0;

	for (int s = 0; s < WAIT_S && err == HD_E_AGAIN; s++) {
		if (hd_signal_stop())
			return hd_stop_err(hd_signal_stop());
		if (s == TELL_S && !cmd->args.has[HD_OPT_QUIET])
			fprintf(stderr, "heddle: waiting for %s\n", program);
		err = hd_proc_wait(proc, INT64_C(1000000000), &code, NULL);
	}
	if (err)
		return hd_fail(&cmd->diag, HD_E_AGAIN, "%s has not ended after %d s: does Slurm's controller "
			"answer (scontrol ping)?", program, WAIT_S);
	return code ? hd_fail(&cmd->diag, HD_E_INPUT, "%s ended with exit code %d; is this a machine of the "
		"cluster? else give --squeue FILE and --sinfo FILE", program, code) : HD_OK;
}

/* Runs it and reads what it printed, by a file of its own. */
static enum hd_err run(struct hd_cmd *cmd, const char *const argv[], uint8_t **bytes, size_t *len)
{
	static const char *const env[] = { "SLURM_TIME_FORMAT=%s", NULL };
	const char *parent = getenv("TMPDIR");
	struct hd_proc_self self;
	char path[HD_PATH_CAP];
	struct hd_file out = { 0 };
	struct hd_proc proc = { 0 };
	struct hd_host host;

	hd_host_real(&host);
	hd_proc_self(&self);
	if (snprintf(path, sizeof path, "%s/heddle-%s.%u", parent ? parent : "/tmp", argv[0], self.pid) >=
		(int)sizeof path)
		return hd_fail(&cmd->diag, HD_E_INVAL, "TMPDIR is too long");
	enum hd_err err = hd_file_open(&cmd->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_NEW, &out,
		&cmd->diag);
	if (err)
		return err;
	err = hd_proc_spawn(&host, &(struct hd_spawn){ .argv = argv, .env = env, .in = -1, .out = out.id,
		.err = -1 }, &proc, &cmd->diag);
	if (!err)
		err = await(cmd, &proc, argv[0]);
	hd_proc_finish(&proc);
	if (hd_file_close(&out, NULL) && !err)
		err = hd_fail(&cmd->diag, HD_E_IO, "cannot close %s", path);
	if (!err)
		err = hd_sched_file(cmd, path, bytes, len);
	enum hd_err gone = hd_fs_unlink(&cmd->fs, path, err ? NULL : &cmd->diag);
	return err ? err : gone;
}

static enum hd_err read_live(struct hd_cmd *cmd, struct hd_slurm_now *live)
{
	static const char *const sinfo[] = { "sinfo", "--noheader", "--Node", "-O", HD_LIVE_SINFO, NULL },
		*const squeue[] = { "squeue", "--noheader", "--array", "--states=" HD_LIVE_STATES, "-O",
		HD_LIVE_SQUEUE, NULL };
	const char *path[2] = { cmd->args.text[HD_OPT_SINFO], cmd->args.text[HD_OPT_SQUEUE] };
	uint8_t *bytes;
	size_t len;

	if (!path[0] != !path[1])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--squeue FILE and --sinfo FILE go together: both of one moment");
	enum hd_err err = path[0] ? hd_sched_file(cmd, path[0], &bytes, &len) : run(cmd, sinfo, &bytes, &len);
	if (!err)
		err = hd_slurm_nodes(live, path[0] ? path[0] : "sinfo", bytes, len, &cmd->arena, &cmd->diag);
	if (!err)
		err = path[1] ? hd_sched_file(cmd, path[1], &bytes, &len) : run(cmd, squeue, &bytes, &len);
	return err ? err : hd_slurm_jobs(live, path[1] ? path[1] : "squeue", bytes, len, &cmd->arena,
		&cmd->diag);
}

/* ---- what it says ---- */

/* Why a job that waits for devices does, in words; NULL: by its code alone. */
static const struct { enum hd_why_code code; const char *words; } reasons[] = {
	{ HD_WHY_UNRUNNABLE, "no type in its partitions has so many" },
	{ HD_WHY_DRAINING, "devices that it fits on are taken or out of service" },
	{ HD_WHY_QUEUED, "others are before it in the queue" },
	{ HD_WHY_NO_SHARE, "the policy gives it nothing for now" },
	{ HD_WHY_LEFT_IDLE, "its steps are worth less than devices cost" },
	{ HD_WHY_TOO_DEAR, "its steps are worth less than devices cost" },
	{ HD_WHY_HELD_BACK, "devices are kept for another" },
	{ HD_WHY_GANG_NO_FIT, "at its turn fewer are free than it needs at once" },
	{ HD_WHY_OUTRANKED, "at its turn others have taken all" },
};

static const struct { const char *code, *words; } bars[] = {
#define X(id, code, words) { code, words },
	HD_SLURM_BARS(X)
#undef X
};

static const char *words_of(const struct hd_advice *a)
{
	if (a->job->bar)
		return bars[a->job->bar].words;
	for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
		if (reasons[k].code == a->code)
			return reasons[k].words;
	return "";
}

static const char *code_of(const struct hd_advice *a) { return a->job->bar ? bars[a->job->bar].code :
	hd_why_name(a->code); }

static const char *wants(char out[100], const struct hd_slurm_job *job)
{
	(void)snprintf(out, 100, "%u %.80s", job->gpus, *job->gpu ? job->gpu : "GPUs");
	return out;
}

static void print_text(const struct hd_slurm_now *live, const struct hd_advice *advice, uint32_t n)
{
	char what[100];
	uint32_t nstart = 0, nheld = 0, nfree = 0, ndevices = 0;

	for (uint32_t k = 0; k < live->nnodes; k++) {
		ndevices += live->node[k].gpus;
		nfree += live->node[k].usable ? live->node[k].gpus - live->node[k].used : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_advice *a = &advice[i];
		const struct hd_slurm_job *job = a->job;
		nstart += a->starts;
		nheld += job->bar != HD_SLURM_BAR_NONE;
		printf("%-16s %-12s %-12s ", job->id, job->user, wants(what, job));
		if (a->starts) {
			printf("start on %s\n", a->where);
			continue;
		}
		printf("waits: %s, %s", code_of(a), words_of(a));
		if (!job->bar && a->wait.type != HD_SCHED_NONE && a->code != HD_WHY_UNRUNNABLE)
			printf("; %u %s free at its turn", a->wait.free, live->type[a->wait.type].name);
		for (uint32_t k = 0; k < a->wait.nahead && !job->bar; k++)
			printf("%s%s", k ? ", " : "; before it ", live->job[a->wait.ahead[k].id - 1].id);
		printf("%s%s\n", *job->reason ? "; Slurm says " : "", job->reason);
	}
	printf("%u of %u GPUs are free; of %u jobs that wait %u would start, %u cannot yet; %" PRIu64
		" jobs without GPUs are left out\n", nfree, ndevices, n, nstart, nheld, live->nwithout);
}

static void put_advice(struct hd_json_writer *w, const struct hd_slurm_now *live, const struct hd_advice *a)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "job", a->job->id);
	hd_json_put_text(w, "name", a->job->name);
	hd_json_put_text(w, "user", a->job->user);
	hd_json_put_text(w, "account", a->job->account);
	hd_json_put_text(w, "partition", a->job->partition);
	hd_json_put_i64(w, "gpus", a->job->gpus);
	hd_json_put_text(w, "type", a->job->gpu);
	hd_json_put_bool(w, "starts", a->starts);
	hd_json_put_text(w, "nodes", a->where);
	hd_json_put_text(w, "code", code_of(a));
	hd_json_put_text(w, "why", a->starts ? "" : words_of(a));
	hd_json_put_text(w, "slurm", a->job->reason);
	hd_json_open_array(w, "before");
	for (uint32_t k = 0; k < a->wait.nahead && !a->job->bar; k++)
		hd_json_put_text(w, NULL, live->job[a->wait.ahead[k].id - 1].id);
	hd_json_close(w);
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct hd_slurm_now *live, const char *policy,
	const struct hd_advice *advice, uint32_t n)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "policy", policy);
	hd_json_open_array(w, "types");
	for (uint32_t t = 0; t < live->ntypes; t++) {
		uint32_t nfree = 0;
		for (uint32_t k = 0; k < live->nnodes; k++)
			nfree += live->node[k].type == t && live->node[k].usable ?
				live->node[k].gpus - live->node[k].used : 0;
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "type", live->type[t].name);
		hd_json_put_i64(w, "devices", live->type[t].n);
		hd_json_put_i64(w, "free", nfree);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "jobs");
	for (uint32_t i = 0; i < n; i++)
		put_advice(w, live, &advice[i]);
	hd_json_close(w);
	hd_json_put_i64(w, "without_gpus", (int64_t)live->nwithout);
	hd_json_line_print(&line);
}

static enum hd_err verb_sched_advise(struct hd_cmd *cmd)
{
	const char *name = cmd->args.text[HD_OPT_SCHED_POLICY];
	struct hd_policy_setting policy = { 0 };
	struct hd_advice *advice = NULL;
	struct hd_slurm_now *live = hd_arena_take(&cmd->arena, 1, sizeof *live);
	const bool slurms = name && !strcmp(name, "slurm");
	uint32_t n = 0;
	enum hd_err err = !name ? hd_fail(&cmd->diag, HD_E_INVAL,
		"which policy? --policy NAME (heddle sched policies lists them), or slurm") :
		slurms ? HD_OK : hd_policy_parse(&policy, name, &cmd->diag);

	if (!live)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for nodes and jobs");
	policy.fidelity = HD_FIDELITY_EXACT;
	policy.deadlines = !policy.published;
	if (!err)
		err = hd_sched_lp_limit(cmd, &policy);
	if (!err)
		err = read_live(cmd, live);
	if (!err)
		err = hd_slurm_advise(&advice, &n, live, slurms ? NULL : &policy, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, live, name, advice, n);
	else
		print_text(live, advice, n);
	return HD_OK;
}

const struct hd_verb hd_verb_sched_advise = {
	.name = "sched advise", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "what a policy would start next on a Slurm cluster, where, and why others wait",
	.more =
		"Asks squeue and sinfo, or reads what they printed:\n"
		"  squeue --noheader --array --states=" HD_LIVE_STATES " -O " HD_LIVE_SQUEUE "\n"
		"  sinfo --noheader --Node -O " HD_LIVE_SINFO "\n"
		"with SLURM_TIME_FORMAT=%s in the environment. Nothing in the cluster is changed. The "
			"policy is "
		"asked about jobs that wait and GPUs that are free; jobs that could not start on free ones "
		"are listed with the reason. --policy slurm: Slurm's own order (tier, priority) with "
			"backfill by limits.",
	.opts = HD_OPTS(HD_OPT_SCHED_POLICY, HD_OPT_SQUEUE, HD_OPT_SINFO, HD_OPT_LP_ITERATIONS),
	.run = verb_sched_advise, .test = "program_sched_advise.sh",
};
