#include <string.h>

#include "base/num.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"
#include "pipeline/staged.h"
#include "planner/fit_split.h"
#include "cmd/json_line.h"
#include "cmd/plan/lose.h"
#include "cmd/plan/schedule.h"
#include "cmd/plan/stages.h"

struct warnings { struct hd_sim_warning at[HD_SIM_WARNINGS]; uint32_t len; };

static void print_report(struct hd_cmd *cmd, const char *what, const struct hd_report *report,
	const struct warnings *warnings)
{
	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_text(w, "what", what);
		hd_json_put_bool(w, "accepted", report->total == 0);
		hd_json_open_array(w, "findings");
		for (uint32_t i = 0; i < report->len; i++) {
			hd_json_open_object(w, NULL);
			hd_json_put_text(w, "rule", report->at[i].rule);
			hd_json_put_text(w, "text", report->at[i].text);
			hd_json_open_array(w, "fragment");
			for (int k = 0; k < HD_FRAGMENTS && *report->at[i].fragment[k]; k++)
				hd_json_put_text(w, NULL, report->at[i].fragment[k]);
			hd_json_close(w);
			hd_json_close(w);
		}
		hd_json_close(w);
		hd_json_put_i64(w, "found", (int64_t)report->total);
		hd_json_open_array(w, "warnings");
		for (uint32_t i = 0; i < warnings->len; i++)
			hd_json_put_text(w, NULL, warnings->at[i].text);
		hd_json_close(w);
		hd_json_line_print(&line);
		return;
	}
	printf("%-8s %s\n", report->total ? "refused" : "accepted", what);
	for (uint32_t i = 0; i < report->len; i++) {
		printf("  %-4s %s\n", report->at[i].rule, report->at[i].text);
		for (int k = 0; k < HD_FRAGMENTS && *report->at[i].fragment[k]; k++)
			printf("         %s\n", report->at[i].fragment[k]);
	}
	if (report->total > report->len)
		printf("  and %llu more\n", (unsigned long long)(report->total - report->len));
	for (uint32_t i = 0; i < warnings->len; i++)
		printf("  warning: %s\n", warnings->at[i].text);
}

void hd_cmd_print_refused(struct hd_cmd *cmd, const char *what, const struct hd_report *report)
{
	print_report(cmd, what, report, &(struct warnings){ .len = 0 });
}

static enum hd_err check_plan(struct hd_cmd *cmd, const char *text, size_t len)
{
	struct hd_plan plan;
	struct hd_report report = { 0 };
	enum hd_err err = hd_plan_parse(&plan, text, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);

	if (err)
		return err;
	err = hd_plan_check_file(&plan, &report, &cmd->diag);
	hd_cmd_print_refused(cmd, cmd->args.pos[0], &report);
	return err;
}

/* How fast the checker itself is: best of --repeat runs. */
static enum hd_err time_it(struct hd_cmd *cmd, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules)
{
	int64_t best_ns = INT64_MAX;
	uint64_t nins = 0;
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->list[r].len;
	for (uint64_t i = 0; i < cmd->args.count[HD_OPT_REPEAT] && !err; i++) {
		int64_t start_ns = hd_clock_now_ns(&cmd->clock);
		err = hd_schedule_check(s, rules, NULL, &cmd->diag);
		int64_t took_ns = hd_clock_now_ns(&cmd->clock) - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	if (err || best_ns == INT64_MAX)
		return err ? err : hd_fail(&cmd->diag, HD_E_INVAL, "--repeat is 1 or more");
	printf("%s: %llu instructions in %.3f ms, %.1f ns each\n", s->heading, (unsigned long long)nins,
		(double)best_ns / 1e6,
		(double)best_ns / (double)(nins ? nins : 1));
	return HD_OK;
}

/* What --graph and --memory say of the schedule's stages and devices. */
struct around { struct hd_schedule_job job; struct hd_cut_sums sums; int64_t bytes; };

static enum hd_err read_around(struct hd_cmd *cmd, const struct hd_schedule *s, struct around *out)
{
	int64_t *memory = hd_arena_take(&cmd->arena, (size_t)s->nranks + 1, sizeof *memory);
	int64_t bytes = 0;
	enum hd_err err = HD_OK;

	*out = (struct around){ 0 };
	if (cmd->args.has[HD_OPT_MEMORY] && !cmd->args.has[HD_OPT_GRAPH])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--memory needs --graph: what do the stages take?");
	err = hd_cmd_memory(cmd, &bytes);
	if (!err && !memory)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to check a schedule");
	for (uint32_t r = 0; !err && r < s->nranks; r++)
		memory[r] = bytes;
	out->bytes = bytes;
	out->job.memory = memory;
	return err ? err : hd_cmd_stage_costs(cmd, s->nstages, &out->job.costs, &out->sums);
}

/* What is accepted and yet hardly meant; by even stages where no costs are known. What cannot be simulated
 * is not warned of. */
static void find_warnings(struct hd_cmd *cmd, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, const struct hd_stage_costs *costs,
	struct warnings *out)
{
	struct hd_stage_costs even;
	struct hd_sim_plan sim;

	out->len = 0;
	if (!costs && hd_stage_costs_even(&even, &HD_UNIT_COSTS, s->nstages, &cmd->arena, NULL))
		return;
	const struct hd_sim_setting set = { .costs = costs ? costs : &even, .transport = rules->transport,
		.credits = rules->credits };
	if (!hd_sim_plan(&sim, s, &set, &cmd->arena, NULL))
		out->len = hd_sim_plan_warnings(&sim, out->at, HD_SIM_WARNINGS);
}

/* A schedule that needs too much: where to cut the model instead. */
static enum hd_err print_fit(struct hd_cmd *cmd, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, const struct around *around)
{
	struct hd_diag why = { "" };
	struct hd_text cuts;
	struct hd_split_fit fit;
	enum hd_err err = hd_fit_split(&fit, s, &around->sums, rules, around->bytes, &cmd->arena, &why);

	if (err == HD_E_NOMEM)
		return hd_fail(&cmd->diag, err, "%s", why.text);
	hd_text_init(&cuts, &cmd->arena);
	for (uint32_t k = 0; !err && k < s->nstages; k++)
		hd_text_addf(&cuts, "%s%u", k ? "," : "", fit.first[k]);
	if (cmd->args.has[HD_OPT_JSON])
		return HD_OK;
	if (err)
		printf("  %s\n", why.text);
	else if (fit.memory <= around->bytes)
		printf("  the nearest that works: --cuts %s\n", cuts.at);
	else
		printf("  no split into %u stages fits; the nearest that works: --memory %lld --cuts %s\n",
			s->nstages, (long long)fit.memory, cuts.at);
	return HD_OK;
}

static bool lacks_memory(const struct hd_report *report)
{
	return report->len && !strcmp(report->at[0].rule, "K22");
}

static enum hd_err verb_plan_check(struct hd_cmd *cmd)
{
	const struct hd_schedule_rules rules = hd_cmd_rules(cmd);
	struct hd_schedules all;
	uint8_t *bytes;
	size_t len;
	enum hd_err worst = HD_OK;
	enum hd_err err = hd_file_read_all(&cmd->fs, cmd->args.pos[0], &cmd->arena, HD_SCHEDULE_FILE_BYTES,
		&bytes, &len, &cmd->diag);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_CREDITS] && rules.transport != HD_TRANSPORT_BUFFERED)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--credits belongs to --transport buffered");
	if (cmd->args.has[HD_OPT_CREDITS] && rules.credits == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--credits is 1 or more");
	if (hd_cmd_is_plan((const char *)bytes))
		return check_plan(cmd, (const char *)bytes, len);
	err = hd_schedules_parse(&all, (const char *)bytes, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);
	if (!err && all.len == 0)
		err = hd_fail(&cmd->diag, HD_E_INPUT, "%s: there is no schedule in it", cmd->args.pos[0]);
	for (uint32_t i = 0; !err && i < all.len; i++) {
		struct hd_report report;
		if (cmd->args.has[HD_OPT_REPEAT]) {
			err = time_it(cmd, &all.at[i], &rules);
			continue;
		}
		struct around around;
		if ((err = read_around(cmd, &all.at[i], &around)))
			break;
		enum hd_err one = hd_schedule_check_job(&all.at[i], &around.job, &rules, &report, &cmd->diag);
		if (one && one != HD_E_BADPLAN)
			return one;
		if (one && (err = hd_cmd_lose_made(cmd, &all.at[i])))
			return err;
		struct warnings warnings = { .len = 0 };
		if (!one)
			find_warnings(cmd, &all.at[i], &rules, around.job.costs, &warnings);
		print_report(cmd, *all.at[i].heading ? all.at[i].heading : cmd->args.pos[0], &report,
			&warnings);
		if (lacks_memory(&report))
			err = print_fit(cmd, &all.at[i], &rules, &around);
		worst = worst ? worst : one;
	}
	return err ? err : worst;
}

const struct hd_verb hd_verb_plan_check = {
	.name = "plan check", .args = "FILE", .npos_min = 1, .npos_max = 1,
	.about = "prove the schedules of a file, or a plan: complete, in order, without deadlock",
	.more =
		"Every finding is a line: the rule, rank, instruction, sentence. Exit 2 if a rule is "
		"broken, 3 if the file cannot be read.\n"
		"Below it five instructions before and after each that it names. A file of schedules "
		"may hold several; --transport adds their transfers and asks whether they end. A plan "
		"is a file that a run wrote (plan/NNNN.plan): it is held against the rules of this "
		"build's runtime. Warnings (a bubble above a half, uneven stages, ranks without work) "
		"refuse nothing. With\n"
		"--graph and --memory the predicted peak of each rank is held against the bytes of a "
		"device; if it is more, a split that fits is named. --repeat N: times the checker "
		"itself instead, best of N runs.",
	.opts = HD_OPTS(HD_OPT_TRANSPORT, HD_OPT_CREDITS, HD_OPT_GRAPH, HD_OPT_CUTS, HD_OPT_MEMORY,
		HD_OPT_MAX_CUTS, HD_OPT_COMPRESS, HD_OPT_REPEAT),
	.run = verb_plan_check, .test = "program_schedule.sh",
};
