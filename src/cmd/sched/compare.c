/* heddle sched compare: the same jobs under several policies, as they were recorded, and as Slurm's own rules
 * would have it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmd/sched/show.h"

struct compared {
	const char *name;
	struct hd_sched_sim_result result;
	struct hd_wait_sum *waits, *group;           /* of all that are looked at; of each group */
	uint32_t nwaits, ngroups;
};

struct comparison {
	struct hd_sched_input in;
	struct hd_job_filter filter;
	enum hd_group by;                         /* HD_GROUP_ALL: no groups */
	struct hd_sched_page page;
	struct compared run[HD_REPORT_RUNS];
	uint32_t nruns;
};

static void print_line(const char *name, const struct hd_sched_sim_result *r)
{
	char a[40], b[40], c[40], d[40];

	printf("%-24s %10s %10s %10s %10s %8.3f %6.1f %% %10.2f %7" PRIu64 "%s%s\n", name,
		hd_sched_seconds(a, r->avg_jct_s), hd_sched_seconds(b, r->median_jct_s),
		hd_sched_seconds(c, r->p95_jct_s), hd_sched_seconds(d, r->makespan_s), r->avg_rho,
		100 * r->utilisation, r->cost_usd, r->missed, *r->ended ? "  " : "", r->ended);
}

/* Whether what was recorded fits this cluster. */
static void tell_recorded(const struct comparison *c, const struct hd_sched_sim_result *r)
{
	const char *has = c->in.setting.partitions ? "this cluster, or a partition of it, has" :
		"this cluster has";

	if (r->over)
		fprintf(stderr, "heddle: as it was, jobs held %u devices of a type at once more than %s: the "
			"other rows are of a smaller one\n", r->over, has);
	if (r->nunstarted)
		fprintf(stderr, "heddle: as it was: of %" PRIu64 " jobs no start after their submission is "
			"recorded, they begin when they come\n", r->nunstarted);
}

static void tell_queue(const struct hd_cmd *cmd, const struct comparison *c, const struct compared *run)
{
	const struct hd_sched_sim_result *r = &run->result;

	if (cmd->args.has[HD_OPT_QUIET])
		return;
	if (c->in.setting.queue == HD_QUEUE_RECORDED)
		tell_recorded(c, r);
	hd_sched_tell_queue(cmd, &c->in.setting, r);
}

static enum hd_err run_one(struct hd_cmd *cmd, struct comparison *c, const char *name)
{
	struct compared *run = &c->run[c->nruns];
	enum hd_err err;

	if (c->nruns == HD_REPORT_RUNS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--policy: more than %d", HD_REPORT_RUNS);
	run->name = name;
	if ((err = hd_sched_input_policy(cmd, &c->in, name)) ||
		(err = hd_sched_watch(cmd, &c->page, &c->in.setting, name)) ||
		(err = hd_sched_sim(&run->result, &c->in.setting, &cmd->arena, &cmd->diag)))
		return err;
	hd_sched_note(&c->page, &run->result);
	tell_queue(cmd, c, run);
	c->nruns++;
	err = hd_sched_waits(&run->waits, &run->nwaits, &c->in.setting, &run->result, &c->filter,
		HD_GROUP_ALL, &cmd->arena, &cmd->diag);
	if (!err && c->by != HD_GROUP_ALL)
		err = hd_sched_waits(&run->group, &run->ngroups, &c->in.setting, &run->result, &c->filter,
			c->by,
			&cmd->arena, &cmd->diag);
	return err;
}

static void put_waits(struct hd_json_writer *w, const struct hd_wait_sum *waits)
{
	hd_json_put_text(w, "name", waits->name);
	hd_json_put_i64(w, "jobs", (int64_t)waits->njobs);
	hd_json_put_i64(w, "started", (int64_t)waits->nstarted);
	hd_sched_put_time(w, "mean_s", waits->mean_s);
	hd_sched_put_time(w, "p50_s", waits->p50_s);
	hd_sched_put_time(w, "p90_s", waits->p90_s);
	hd_sched_put_time(w, "max_s", waits->max_s);
	hd_sched_put_time(w, "mean_jct_s", waits->mean_jct_s);
	hd_json_put_f64(w, "device_h", waits->device_h);
}

static enum hd_err print_json(struct hd_cmd *cmd, const struct comparison *c)
{
	struct hd_text out;
	struct hd_json_writer w;

	hd_text_init(&out, &cmd->arena);
	hd_json_writer_init(&w, &out);
	hd_json_open_array(&w, NULL);
	for (uint32_t i = 0; i < c->nruns; i++) {
		const struct compared *run = &c->run[i];
		hd_json_open_object(&w, NULL);
		hd_sched_put_summary(&w, &c->in.setting, run->name, &run->result);
		if (run->nwaits) {
			hd_json_open_object(&w, "waits");
			put_waits(&w, run->waits);
			hd_json_close(&w);
		}
		hd_json_open_array(&w, "groups");
		for (uint32_t g = 0; g < run->ngroups; g++) {
			hd_json_open_object(&w, NULL);
			put_waits(&w, &run->group[g]);
			hd_json_close(&w);
		}
		hd_json_close(&w);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	if (out.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the answer");
	printf("%s\n", out.at);
	return HD_OK;
}

static void print_waits(const char *first, const char *policy, const struct hd_wait_sum *w)
{
	char a[40], b[40], c[40], d[40], e[40];

	if (*first)
		printf("%-24.40s ", first);
	printf("%-24s %7" PRIu64 " %10s %10s %10s %10s %10s %12.1f\n", policy, w->njobs, hd_sched_seconds(a,
		w->mean_s), hd_sched_seconds(b, w->p50_s),
		hd_sched_seconds(c, w->p90_s), hd_sched_seconds(d, w->max_s),
		hd_sched_seconds(e, w->mean_jct_s), w->device_h);
}

/* Groups beside each other: of one name a line for each policy. All policies have the same jobs, so the same
 * groups. */
static void print_text(const struct comparison *c)
{
	static const char *const words[] = {
#define X(id, word) word,
		HD_GROUPS(X)
#undef X
	};
	static const char head[] = " %7s %10s %10s %10s %10s %10s %12s\n";

	printf("%-24s %10s %10s %10s %10s %8s %8s %10s %7s\n", "policy", "avg JCT", "median", "95%",
		"makespan", "rho", "busy", "cost $", "missed");
	for (uint32_t i = 0; i < c->nruns; i++) {
		const struct hd_sched_sim_result *r = &c->run[i].result;
		print_line(c->run[i].name, r);
		if (r->kept)
			printf("  %s gave up %" PRIu64 " of %" PRIu64 " times: jobs kept the shares "
				"they had\n", c->run[i].name, r->kept, r->solves);
	}
	printf("\n%-24s", "waits for the start");
	printf(head, "jobs", "mean", "50 %", "90 %", "longest", "avg JCT", "device hours");
	for (uint32_t i = 0; i < c->nruns; i++)
		if (c->run[i].nwaits)
			print_waits("", c->run[i].name, c->run[i].waits);
	if (c->by == HD_GROUP_ALL || !c->nruns)
		return;
	printf("\n%-24s %-24s", words[c->by], "policy");
	printf(head, "jobs", "mean", "50 %", "90 %", "longest", "avg JCT", "device hours");
	for (uint32_t g = 0; g < c->run[0].ngroups; g++)
		for (uint32_t i = 0; i < c->nruns; i++)
			if (g < c->run[i].ngroups)
				print_waits(c->run[i].group[g].name, c->run[i].name, &c->run[i].group[g]);
}

static enum hd_group group_of(const struct hd_cmd *cmd)
{
	static const char *const words[] = {
#define X(id, word) word,
		HD_GROUPS(X)
#undef X
	};

	for (int g = 1; g < HD_NGROUPS && cmd->args.has[HD_OPT_GROUP_BY]; g++)
		if (!strcmp(words[g], cmd->args.text[HD_OPT_GROUP_BY]))
			return (enum hd_group)g;
	return HD_GROUP_ALL;
}

/* Each policy of "--policy A,B,C" on the same jobs. */
static enum hd_err verb_sched_compare(struct hd_cmd *cmd)
{
	const char *names = cmd->args.text[HD_OPT_SCHED_POLICY];
	struct comparison *c = hd_arena_take(&cmd->arena, 1, sizeof *c);
	enum hd_err err = names ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL, "which policies? --policy A,B,C");
	char *at = err ? NULL : hd_arena_text(&cmd->arena, names, strlen(names)), *next;

	if (err)
		return err;
	if (!c || !at)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to compare policies");
	*c = (struct comparison){ .by = group_of(cmd) };
	if ((err = hd_sched_input(cmd, &c->in)) || (err = hd_sched_filter(cmd, &c->filter)) ||
		(err = hd_sched_outputs(cmd)))
		return err;
	c->in.compares = true;
	for (; !err && at; at = next) {
		if ((next = strchr(at, ',')))
			*next++ = 0;
		err = run_one(cmd, c, at);
	}
	if (!err)
		err = hd_sched_write_page(cmd, &c->in.setting, &c->page);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		return print_json(cmd, c);
	print_text(c);
	return HD_OK;
}

const struct hd_verb hd_verb_sched_compare = {
	.name = "sched compare", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "the same jobs under several policies: one line each, and how long jobs waited",
	.more =
		"--policy A,B,C names them. Besides policies: as-it-was, every job when the accounting "
			"says that "
		"it started; slurm, the order and the backfill of Slurm's own scheduler (--slurm).\n"
		"--from, --to, --partition, --account, --user and --min-gpus say which jobs the table of "
			"waits "
		"looks at; all jobs run. To leave jobs out, filter while importing.\n"
		"--partitions FILE, of sinfo, has nodes and partitions: in every row jobs keep to the nodes "
			"of "
			"theirs; slurm goes by tier, MaxTime, PriorityJobFactor and PreemptMode besides.",
	.opts = HD_OPTS(HD_SCHED_OPTS, HD_SCHED_FILTER, HD_OPT_GROUP_BY, HD_OPT_HTML),
	.run = verb_sched_compare, .test = "program_sched_sim.sh",
};
