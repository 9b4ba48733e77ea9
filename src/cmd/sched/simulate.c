#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "cmd/json_line.h"
#include "cmd/sched/show.h"

const char *hd_sched_seconds(char out[40], double s)
{
	if (!isfinite(s))
		(void)snprintf(out, 40, "-");
	else if (s < 7200)
		(void)snprintf(out, 40, "%.1f s", s);
	else
		(void)snprintf(out, 40, "%.2f h", s / 3600);
	return out;
}

void hd_sched_put_time(struct hd_json_writer *w, const char *key, double s)
{
	if (isfinite(s))
		hd_json_put_f64(w, key, s);
	else
		hd_json_put_null(w, key);
}

static void put_job(struct hd_json_writer *w, const struct hd_sched_sim_setting *set,
	const struct hd_sim_row *row)
{
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "id", (int64_t)row->id);
	hd_json_put_text(w, "kind", row->kind);
	hd_json_put_i64(w, "scale", row->scale);
	hd_sched_put_time(w, "arrival_s", row->arrival_s);
	hd_sched_put_time(w, "first_start_s", row->first_start_s);
	hd_sched_put_time(w, "finish_s", row->finish_s);
	hd_sched_put_time(w, "jct_s", row->jct_s);
	hd_sched_put_time(w, "rho", row->rho);
	hd_json_open_object(w, "device_s");
	for (uint32_t t = 0; t < set->ntypes && t < sizeof row->device_s / sizeof *row->device_s; t++)
		hd_json_put_f64(w, set->types[t].name, row->device_s[t]);
	hd_json_close(w);
	hd_json_put_i64(w, "moves", row->moves);
	hd_json_put_i64(w, "resizes", row->resizes);
	hd_json_put_f64(w, "lost_s", row->lost_s);
	hd_json_put_f64(w, "cost", row->cost_usd);
	if (isfinite(row->deadline_s))
		hd_json_put_bool(w, "deadline_met", row->met);
	if (row->record) {
		hd_json_put_text(w, "recorded_id", row->record->id);
		hd_sched_put_time(w, "recorded_wait_s", row->record->waited_s);
	}
	hd_json_close(w);
}

/* How long jobs waited where they were recorded, and here: of those that started in both. */
struct waits { uint64_t n, sooner; double there_s, here_s; };

static bool wanted(const struct hd_sched_sim_setting *set, uint64_t id) { return !set->end ||
	(id >= set->first && id < set->end); }

static struct waits waits_of(const struct hd_sched_sim_setting *set, const struct hd_sched_sim_result *r)
{
	struct waits w = { 0 };

	for (uint64_t i = 0; i < r->nrows; i++) {
		double there_s = r->row[i].record ? r->row[i].record->waited_s : NAN,
			here_s = r->row[i].first_start_s - r->row[i].arrival_s;
		if (!wanted(set, i) || !isfinite(there_s) || !isfinite(here_s))
			continue;
		w.n++;
		w.sooner += here_s < there_s;
		w.there_s += there_s;
		w.here_s += here_s;
	}
	if (w.n) {
		w.there_s /= (double)w.n;
		w.here_s /= (double)w.n;
	}
	return w;
}

void hd_sched_put_summary(struct hd_json_writer *w, const struct hd_sched_sim_setting *set, const char
	*policy,
	const struct hd_sched_sim_result *r)
{
	hd_json_put_text(w, "policy", policy);
	hd_json_put_text(w, "fidelity", set->fidelity == HD_FIDELITY_GAVEL ? "gavel" : "exact");
	hd_sched_put_time(w, "avg_jct_s", r->avg_jct_s);
	hd_sched_put_time(w, "median_jct_s", r->median_jct_s);
	hd_sched_put_time(w, "p95_jct_s", r->p95_jct_s);
	hd_sched_put_time(w, "makespan_s", r->makespan_s);
	hd_sched_put_time(w, "avg_rho", r->avg_rho);
	hd_sched_put_time(w, "worst_rho", r->worst_rho);
	hd_json_put_f64(w, "utilization", r->utilisation);
	hd_json_put_f64(w, "productive", r->productive);
	hd_json_put_f64(w, "cost", r->cost_usd);
	hd_json_put_i64(w, "deadlines", (int64_t)r->deadlines);
	hd_json_put_i64(w, "deadlines_missed", (int64_t)r->missed);
	hd_json_put_f64(w, "lease_extension_pct", 100 * r->extended);
	hd_json_put_i64(w, "njobs", (int64_t)r->njobs);
	hd_json_put_i64(w, "completed", (int64_t)r->nover);
	hd_json_put_i64(w, "dropped", (int64_t)r->ndropped);
	hd_json_put_i64(w, "rounds", (int64_t)r->rounds);
	hd_json_put_i64(w, "solves", (int64_t)r->solves);
	hd_json_put_i64(w, "gave_up", (int64_t)r->kept);
	hd_json_put_i64(w, "moves", (int64_t)r->moves);
	hd_json_put_i64(w, "resizes", (int64_t)r->resizes);
	hd_json_put_i64(w, "revoked", (int64_t)r->revoked);
	if (set->estimate) {
		hd_json_open_object(w, "estimate");
		hd_json_put_i64(w, "pairs", (int64_t)r->estimate.pairs);
		hd_json_put_i64(w, "measured", (int64_t)r->estimate.measured);
		hd_json_put_i64(w, "ran", (int64_t)r->estimate.ran);
		hd_json_put_f64(w, "error", r->estimate.error);
		hd_json_close(w);
	}
	const struct waits waits = waits_of(set, r);
	if (waits.n) {
		hd_json_open_object(w, "recorded");
		hd_json_put_i64(w, "jobs", (int64_t)waits.n);
		hd_json_put_f64(w, "avg_wait_s", waits.there_s);
		hd_json_put_f64(w, "simulated_avg_wait_s", waits.here_s);
		hd_json_put_i64(w, "sooner", (int64_t)waits.sooner);
		hd_json_close(w);
	}
	hd_json_put_text(w, "ended", r->ended);
}

static void print_summary(const struct hd_sched_sim_setting *set, const struct hd_sched_sim_result *r)
{
	const struct waits waits = waits_of(set, r);
	char a[40], b[40], c[40];

	printf("%" PRIu64 " jobs, %" PRIu64 " over%s%s\n", r->njobs, r->nover, *r->ended ? "; ended: " : "",
		r->ended);
	printf("job completion time  average %s, median %s, 95%% %s\n", hd_sched_seconds(a, r->avg_jct_s),
		hd_sched_seconds(b, r->median_jct_s), hd_sched_seconds(c, r->p95_jct_s));
	printf("makespan             %s\n", hd_sched_seconds(a, r->makespan_s));
	printf("finish-time fairness average %.3f, worst %.3f\n", r->avg_rho, r->worst_rho);
	printf("devices              %.1f %% busy, %.1f %% computing\n", 100 * r->utilisation,
		100 * r->productive);
	printf("cost                 $%.2f\n", r->cost_usd);
	if (waits.n)
		printf("wait for the start   average %s, recorded %s; %" PRIu64 " of %" PRIu64 " jobs start "
			"sooner than they did\n", hd_sched_seconds(a, waits.here_s),
			hd_sched_seconds(b, waits.there_s), waits.sooner, waits.n);
	if (r->deadlines)
		printf("deadlines            %" PRIu64 " of %" PRIu64 " missed\n", r->missed, r->deadlines);
	printf("leases               %.1f %% extended; %" PRIu64 " moves, %" PRIu64 " resizes in "
		"%" PRIu64 " rounds, %" PRIu64 " solves\n", 100 * r->extended,
		r->moves, r->resizes, r->rounds, r->solves);
	if (r->kept)
		printf("gave up              the policy, %" PRIu64 " times: jobs kept the shares they had, "
			"new ones got an equal part\n", r->kept);
	if (r->estimate.pairs)
		printf("pairs                %" PRIu64 ", of them %" PRIu64 " measured before and "
			"%" PRIu64 " by running; the guesses are off by %.1f %%\n",
			r->estimate.pairs, r->estimate.measured, r->estimate.ran, 100 * r->estimate.error);
}

static void add_number(struct hd_text *to, double x)
{
	char number[HD_NUM_CAP];

	hd_text_addf(to, ",%s", isfinite(x) ? hd_num_print_f64(number, x) : "");
}

/* With quotes where a name has what separates. */
static void add_cell(struct hd_text *to, const char *text)
{
	bool bare = !strpbrk(text, ",\"\r\n");

	hd_text_add(to, bare ? "," : ",\"");
	for (const char *c = text; *c; c++)
		hd_text_addf(to, "%s%c", *c == '"' ? "\"" : "", *c);
	hd_text_add(to, bare ? "" : "\"");
}

/* What an accounting said of it: columns that only its jobs have. */
#define HD_RECORD_COLUMNS ",recorded_id,name,user,account,partition,qos,type,limit_s,wait_s,recorded_wait_s"

static void add_record(struct hd_text *to, const struct hd_sim_row *row)
{
	const struct hd_job_record *r = row->record;
	const char *const texts[] = { r->id, row->name, row->user, r->account, r->partition, r->qos,
		row->type ? row->type : "" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		add_cell(to, texts[i]);
	add_number(to, r->limit_s);
	add_number(to, row->first_start_s - row->arrival_s);
	add_number(to, r->waited_s);
}

/* One row a job, as a table. */
static enum hd_err write_rows(struct hd_cmd *cmd, const struct hd_sched_sim_setting *set,
	const struct hd_sched_sim_result *r)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_text_add(&text,
		"id,scale,arrival_s,first_start_s,finish_s,jct_s,rho,cost,lost_s,moves,resizes,deadline_met");
	for (uint32_t t = 0; t < set->ntypes && t < 8; t++)
		hd_text_addf(&text, ",%s_s", set->types[t].name);
	hd_text_addf(&text, "%s\n", r->nrows && r->row[0].record ? HD_RECORD_COLUMNS : "");
	for (uint64_t i = 0; i < r->nrows; i++) {
		const struct hd_sim_row *row = &r->row[i];
		if (!wanted(set, i))
			continue;
		hd_text_addf(&text, "%" PRIu64 ",%u", row->id, row->scale);
		add_number(&text, row->arrival_s);
		add_number(&text, row->first_start_s);
		add_number(&text, row->finish_s);
		add_number(&text, row->jct_s);
		add_number(&text, row->rho);
		add_number(&text, row->cost_usd);
		add_number(&text, row->lost_s);
		hd_text_addf(&text, ",%u,%u,%s", row->moves, row->resizes,
			!isfinite(row->deadline_s) ? "" : row->met ? "1" : "0");
		for (uint32_t t = 0; t < set->ntypes && t < 8; t++)
			add_number(&text, row->device_s[t]);
		if (row->record)
			add_record(&text, row);
		hd_text_add(&text, "\n");
	}
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the table of jobs");
	return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_ROWS], text.at, text.len, &cmd->diag);
}

/* ---- the page ---- */


/* The run at hand will be on the page. */
enum hd_err hd_sched_watch(struct hd_cmd *cmd, struct hd_sched_page *page, struct hd_sched_sim_setting *set,
	const char *policy)
{
	struct hd_sched_story *story;
	struct hd_sched_sim_result *result = hd_arena_take(&cmd->arena, 1, sizeof *result);
	enum hd_err err;

	if (!cmd->args.has[HD_OPT_HTML])
		return HD_OK;
	if (page->nruns == HD_REPORT_RUNS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--html: a page holds %d policies at most",
			HD_REPORT_RUNS);
	if ((err = hd_sched_story_open(&story, set, &cmd->arena, &cmd->diag)))
		return err;
	set->watch = hd_sched_story_watch(story);
	page->run[page->nruns++] = (struct hd_sched_report_run){ policy, result, story };
	return result ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a page");
}

/* What became of it. */
void hd_sched_note(const struct hd_sched_page *page, const struct hd_sched_sim_result *result)
{
	if (page->nruns)
		*(struct hd_sched_sim_result *)page->run[page->nruns - 1].result = *result;
}

enum hd_err hd_sched_write_page(struct hd_cmd *cmd, const struct hd_sched_sim_setting *set,
	const struct hd_sched_page *page)
{
	const char *path = cmd->args.text[HD_OPT_HTML];
	struct hd_text text;

	if (!path)
		return HD_OK;
	hd_text_init(&text, &cmd->arena);
	hd_sched_report_print(&text, page->nruns > 1 ? "Policies on the same jobs" : "A simulated cluster",
		set, page->run, page->nruns, &cmd->arena);
	return text.full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the page %s", path) :
		hd_file_write_atomic(&cmd->fs, path, text.at,
		text.len, &cmd->diag);
}

/* Options of what becomes of devices and jobs that only rounds follow; what was given of them. */
static const char *not_followed(const struct hd_cmd *cmd, char out[160])
{
	static const struct { enum hd_opt opt; const char *words; } opts[] = {
		{ HD_OPT_SPOT, "--spot" }, { HD_OPT_REVOKE, "--revoke" }, { HD_OPT_LOST, "--lost" },
		{ HD_OPT_SWITCHING, "--switching" }, { HD_OPT_ELASTIC, "--elastic" },
	};
	struct hd_text text;

	hd_text_fixed(&text, out, 160);
	out[0] = '\0';
	for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
		if (cmd->args.has[opts[i].opt])
			hd_text_addf(&text, "%s%s", *out ? ", " : "", opts[i].words);
	return out;
}

void hd_sched_tell_queue(const struct hd_cmd *cmd, const struct hd_sched_sim_setting *set,
	const struct hd_sched_sim_result *r)
{
	char given[160];

	if (set->queue == HD_QUEUE_ROUNDS)
		return;
	if (*not_followed(cmd, given))
		fprintf(stderr, "heddle: %s: %s changes nothing in this row: its jobs keep their devices "
			"until they end, and pay for no start\n", set->queue == HD_QUEUE_SLURM ? "slurm" :
			"as-it-was", given);
	if (r->ntoo_large)
		fprintf(stderr, "heddle: slurm: %" PRIu64 " jobs ask for more devices than %s has, and never "
			"start\n", r->ntoo_large, set->partitions ? "any of their partitions" : "any type");
	if (r->ntoo_long)
		fprintf(stderr, "heddle: slurm: %" PRIu64 " jobs ask for longer than MaxTime of their "
			"partitions, and never start\n", r->ntoo_long);
	if (r->npreempted)
		fprintf(stderr, "heddle: slurm: jobs were preempted %" PRIu64 " times, and began from their "
			"start again unless they were cancelled\n", r->npreempted);
}

static enum hd_err verb_sched_simulate(struct hd_cmd *cmd)
{
	struct hd_sched_input in;
	struct hd_sched_sim_result result;
	struct hd_text log, out;
	struct hd_json_writer w;
	struct hd_sched_page page = { .nruns = 0 };
	const char *name = cmd->args.text[HD_OPT_SCHED_POLICY];
	enum hd_err err = name ? hd_sched_input(cmd, &in) : hd_fail(&cmd->diag, HD_E_INVAL,
		"which policy? --policy NAME");

	if (!err)
		err = hd_sched_input_policy(cmd, &in, name);
	if (!err)
		err = hd_sched_outputs(cmd);
	if (err)
		return err;
	hd_text_init(&log, &cmd->arena);
	hd_text_init(&out, &cmd->arena);
	in.setting.log = cmd->args.has[HD_OPT_LOG] ? &log : NULL;
	if (in.setting.log && in.setting.partitions)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--log: a log of decisions does not hold partitions; "
			"leave --log or --partitions out");
	if (in.setting.log && in.setting.queue != HD_QUEUE_ROUNDS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--log: %s makes no decisions that are written down; "
			"--rows says when each job began", name);
	if ((err = hd_sched_watch(cmd, &page, &in.setting, name)) ||
		(err = hd_sched_sim(&result, &in.setting, &cmd->arena, &cmd->diag)))
		return err;
	if (!cmd->args.has[HD_OPT_QUIET])
		hd_sched_tell_queue(cmd, &in.setting, &result);
	if (in.setting.log && log.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the log of decisions");
	if (in.setting.log)
		err = hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_LOG], log.at ? log.at : "",
			log.len, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_ROWS])
		err = write_rows(cmd, &in.setting, &result);
	hd_sched_note(&page, &result);
	if (!err)
		err = hd_sched_write_page(cmd, &in.setting, &page);
	if (err)
		return err;
	if (!cmd->args.has[HD_OPT_JSON]) {
		print_summary(&in.setting, &result);
		return HD_OK;
	}
	hd_json_writer_init(&w, &out);
	hd_json_open_object(&w, NULL);
	hd_sched_put_summary(&w, &in.setting, name, &result);
	hd_json_open_array(&w, "jobs");
	for (uint64_t i = 0; i < result.nrows; i++)
		if (wanted(&in.setting, i))
			put_job(&w, &in.setting, &result.row[i]);
	hd_json_close(&w);
	hd_json_close(&w);
	if (out.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the answer");
	printf("%s\n", out.at);
	return HD_OK;
}

const struct hd_verb hd_verb_sched_simulate = {
	.name = "sched simulate", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "run a cluster's jobs under a policy, without the cluster",
	.more =
		"Jobs come from --trace or --generate; a table of another cluster's jobs needs --map "
		"where its columns have other names. Rounds, leases and switching costs are those of "
		"the live scheduler; with --faithful the published scheduler is repeated to its "
		"digits.\n"
		"Policies that resize jobs (heddle, wfs, wfs-2020) take a job's number of devices for "
		"what it wants; --elastic says how fast fewer are.\n"
		"Where the solver of a policy gives up, jobs keep the shares they had and new ones get "
		"an equal part: the summary counts how often (gave_up).",
	.opts = HD_OPTS(HD_SCHED_OPTS, HD_OPT_ROWS, HD_OPT_LOG, HD_OPT_HTML),
	.run = verb_sched_simulate, .test = "program_sched_sim.sh",
};

/* Jobs of any form that is read, as a trace of ten columns; those of an accounting with all that it says,
 * unless rates gave them kinds. */
static enum hd_err write_list(struct hd_cmd *cmd, const struct hd_job_list *list)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	if (list->n && list->at[0].record && !cmd->args.has[HD_OPT_THROUGHPUTS])
		hd_job_list_print_recorded(list, &text);
	else
		hd_job_list_print(list, &text);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %zu lines", list->n);
	if (cmd->args.has[HD_OPT_OUTPUT])
		return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at ? text.at : "",
			text.len, &cmd->diag);
	if (text.len)
		(void)fwrite(text.at, 1, text.len, stdout);
	return HD_OK;
}

static const struct { const char *key, *words; } left_out[HD_LEFT_NREASONS] = {
#define X(id, words) { #id, words },
	HD_LEFT_OUT(X)
#undef X
};

/* Jobs of an accounting that name no partition. */
static uint64_t without_partition(const struct hd_job_list *list)
{
	uint64_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += list->at[i].record && !*list->at[i].record->partition;
	return n;
}

static void put_left_out(struct hd_cmd *cmd, const struct hd_job_list *list)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	char key[24];

	hd_json_put_i64(w, "jobs", (int64_t)list->n);
	hd_json_put_i64(w, "rejoined", (int64_t)list->nrejoined);
	hd_json_put_i64(w, "without_partition", (int64_t)without_partition(list));
	hd_json_open_object(w, "left_out");
	for (int k = 0; k < HD_LEFT_NREASONS; k++) {
		size_t n = 0;
		for (; left_out[k].key[n] && n + 1 < sizeof key; n++)
			key[n] = left_out[k].key[n] == '_' ? '_' : (char)(left_out[k].key[n] | 0x20);
		key[n] = 0;
		hd_json_put_i64(w, key, (int64_t)list->left_out[k]);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

/* What became of all rows of an accounting, in one line. */
static void tell_rows(const char *path, const struct hd_job_list *list)
{
	const char *before = "; left out are rows ";

	fprintf(stderr, "heddle: %s: %zu jobs", path, list->n);
	for (int k = 0; k < HD_LEFT_NREASONS; k++) {
		if (!list->left_out[k])
			continue;
		fprintf(stderr, "%s%s: %" PRIu64, before, left_out[k].words, list->left_out[k]);
		before = ", ";
	}
	if (list->nrejoined)
		fprintf(stderr, "; of %" PRIu64 " rows a name with bars was put together again",
			list->nrejoined);
	if (without_partition(list))
		fprintf(stderr, "; %" PRIu64 " jobs name no partition", without_partition(list));
	fprintf(stderr, "\n");
}

static enum hd_err verb_sched_import(struct hd_cmd *cmd)
{
	struct hd_sched_input in = { 0 };
	struct hd_job_filter filter;
	const bool json = cmd->args.has[HD_OPT_JSON];
	enum hd_err err;

	if (json && !cmd->args.has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--json prints the counts on stdout: say with -o FILE where the jobs go");

	cmd->args.text[HD_OPT_JOBS] = cmd->args.pos[0];
	cmd->args.has[HD_OPT_JOBS] = true;
	if ((err = hd_sched_filter(cmd, &filter)) || (err = hd_sched_input_jobs(cmd, &in)))
		return err;
	hd_job_list_filter(&in.list, &filter);
	if ((err = write_list(cmd, &in.list)))
		return err;
	if (json)
		put_left_out(cmd, &in.list);
	if (in.list.n && in.list.at[0].record && !cmd->args.has[HD_OPT_QUIET])
		tell_rows(cmd->args.pos[0], &in.list);
	return HD_OK;
}

const struct hd_verb hd_verb_sched_import = {
	.name = "sched import", .args = "FILE", .npos_min = 1, .npos_max = 1,
	.about = "a trace, a table of jobs or sacct's output in the form that is read fastest",
	.more =
		"A trace or a table becomes a trace of ten columns; times of a table become seconds after "
		"its first job. With --throughputs each job is given a kind of its size, drawn by --seed.\n"
		"sacct --parsable (any columns; those that are needed are named where they are missing) or "
		"sacct --json becomes a table that keeps user, account, partition, "
		"QOS, type, limit, start, end and state; --from, --user and the like keep some of them. "
			"Rows that are no jobs cost themselves alone; how "
		"many, and why, is said on stderr, with --json as an object.",
	.opts = HD_OPTS(HD_OPT_MAP, HD_OPT_THROUGHPUTS, HD_OPT_SEED, HD_OPT_OUTPUT, HD_SCHED_FILTER),
	.run = verb_sched_import, .test = "program_sched_sim.sh",
};

/* --generate: the published generator. Otherwise a synthetic list of ours, --count jobs. */
static enum hd_err verb_sched_gen(struct hd_cmd *cmd)
{
	struct hd_sched_input in = { 0 };
	struct hd_job_synthesis how = { .seed = cmd->args.count[HD_OPT_SEED],
		.n = cmd->args.count[HD_OPT_COUNT_], .per_hour = 100000 / 8760.0 };
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_GENERATE]) {
		if ((err = hd_sched_input_jobs(cmd, &in)))
			return err;
		in.list.n = in.left == UINT64_MAX ? in.end : in.left;
		if (!(in.list.at = hd_arena_take(&cmd->arena, in.list.n, sizeof *in.list.at)))
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %zu jobs", in.list.n);
		for (size_t i = 0; i < in.list.n; i++)
			hd_job_generator_next(&in.generator, &in.list.at[i]);
		return write_list(cmd, &in.list);
	}
	if (!how.n)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"how many jobs? --count N, or --generate rate=R,seed=N,jobs=J for the published "
			"generator");
	if (cmd->args.has[HD_OPT_RATE] && hd_num_f64(cmd->args.text[HD_OPT_RATE], 1e-6, 1e9, &how.per_hour,
		&cmd->diag))
		return HD_E_INVAL;
	if (cmd->args.has[HD_OPT_THROUGHPUTS]) {
		const struct hd_json *json;
		if ((err = hd_sched_json(cmd, cmd->args.text[HD_OPT_THROUGHPUTS], &json)) ||
			(err = hd_rates_read(&in.all, json, &cmd->arena, &cmd->diag)))
			return err;
		how.rates = &in.all;
	}
	err = hd_job_synthesize(&in.list, &how, &cmd->arena, &cmd->diag);
	return err ? err : write_list(cmd, &in.list);
}

const struct hd_verb hd_verb_sched_gen = {
	.name = "sched gen", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "generate jobs, as a trace of ten columns",
	.more =
		"--generate: the published generator. Otherwise --count jobs with the marginals of a "
		"published cluster: 93 % of one device, durations from minutes to weeks, arrivals by "
		"day and week; a job more changes none before it.",
	.opts = HD_OPTS(HD_OPT_GENERATE, HD_OPT_THROUGHPUTS, HD_OPT_COUNT_, HD_OPT_RATE, HD_OPT_SEED,
		HD_OPT_OUTPUT),
	.run = verb_sched_gen, .test = "program_sched_sim.sh",
};
