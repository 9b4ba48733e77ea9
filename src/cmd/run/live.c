#include "cmd/run/live.h"

#include <string.h>

static void waits(const char *text) { fprintf(stderr, ">> %s\n", text); }

static struct hd_reach reach_in(struct hd_cmd *cmd, struct hd_arena *arena)
{
	return (struct hd_reach){ &cmd->fs, &cmd->clock, arena, cmd->args.has[HD_OPT_QUIET] ? NULL : waits };
}

static struct hd_reach reach_of(struct hd_cmd *cmd) { return reach_in(cmd, &cmd->arena); }

enum hd_err hd_live_ask(struct hd_cmd *cmd, const char *run, const char *ask, const struct hd_json **answer)
{
	struct hd_reach reach = reach_of(cmd);

	return hd_reach_ask(&reach, run, ask, answer, &cmd->diag);
}

enum hd_err hd_live_look_in(struct hd_cmd *cmd, struct hd_arena *arena, const char *run, struct hd_live *live)
{
	struct hd_reach reach = reach_in(cmd, arena);

	return hd_reach_look(&reach, run, live, &cmd->diag);
}

enum hd_err hd_live_look(struct hd_cmd *cmd, const char *run, struct hd_live *live)
{
	return hd_live_look_in(cmd, &cmd->arena, run, live);
}

int hd_live_alone(struct hd_cmd *cmd, const char *run)
{
	struct hd_reach reach = reach_of(cmd);

	return hd_reach_alone(&reach, run);
}

static void print_kept(const struct hd_live *l, struct hd_text *text)
{
	if (l->functions && strcmp(l->functions, "none") != 0)
		hd_fields_say(&hd_live_fields, l, "functions {functions}\n", text);
	if (l->best && strcmp(l->best, "none") != 0)
		hd_fields_say(&hd_live_fields, l, "best     {best}\n", text);
}

/* One line: no worker can be listed. */
static void print_alone(const struct hd_live *l, struct hd_text *text)
{
	const struct hd_fields *f = &hd_live_fields;

	hd_fields_say(f, l, l->steps ? "{name}  {state}  step {step}/{steps}  loss {loss}" :
		"{name}  {state}  step {step}  loss {loss}", text);
	if (l->exit >= 0)
		hd_fields_say(f, l, "  exit code {exit}", text);
	if (l->alone)
		hd_text_addf(text, "  process %lld", (long long)l->alone);
	hd_text_addf(text, "%s%s\n", *l->why ? "  " : "", l->why);
	if (!strcmp(l->state, "unknown"))
		hd_text_add(text, "whether it goes on there cannot be seen from this machine: ask there; "
			"if it has ended, `heddle resume` goes on with it\n");
	if (!strcmp(l->state, "died"))
		hd_text_add(text, "its processes are gone, and did not say why: what they said last is in "
			"its log folder; `heddle resume` goes on with it\n");
	print_kept(l, text);
}

/* The parts that there are, of what was paid. */
static void print_paid(const struct hd_live *l, struct hd_text *text)
{
	const struct hd_paid *paid = &l->paid;

	if (!paid->ms)
		return;
	hd_text_addf(text, "paid: %.3f machine hours", (double)paid->ms / 3.6e6);
	if (paid->nano_usd)
		hd_text_addf(text, ", $%.6f", (double)paid->nano_usd / 1e9);
	for (int i = 0; i < HD_NLEDGER; i++)
		if (paid->part_ms[i])
			hd_text_addf(text, "%s %s %.1f %%", i ? "," : ";", hd_ledger_names[i],
				100 * (double)paid->part_ms[i] / (double)paid->ms);
	hd_text_add(text, "\n");
}

static void print_run(const struct hd_live *l, struct hd_text *text)
{
	const struct hd_fields *f = &hd_live_fields;

	hd_fields_say(f, l, "{name}  {state}  step {step}/{steps}  loss {loss}  "
		"{members} of {target} workers  {virtual_nodes} virtual nodes  "
		"membership {membership}  plan {plan}  step {step_ms} ms",
		text);
	hd_text_addf(text, "%s%s\n", *l->why ? "  " : "", l->why);
	if (l->copies)
		hd_text_addf(text, "state in parts: each part of the optimizer's slots lies on %lld of the "
			"workers\n", (long long)(l->copies < l->members ? l->copies : l->members));
	if (l->redundancy && strcmp(l->redundancy, "none") != 0)
		hd_fields_say(f, l, l->single < 0 ? "redundancy {redundancy}: it is not known how many "
			"workers hold each stage: the membership changes\n" :
			l->single ? "redundancy {redundancy}: {single} stages are held by one "
			"worker alone: the loss of it goes back to a checkpoint\n" :
			"redundancy {redundancy}: each stage is held by two workers\n", text);
	if (l->resilience && strcmp(l->resilience, "given") != 0)
		hd_fields_say(f, l, "resilience {resilience}\n", text);
	if (l->saving && !strncmp(l->saving, "auto", 4))
		hd_fields_say(f, l, "checkpoints {saving}\n", text);
	print_kept(l, text);
	if (l->unrecorded)
		hd_fields_say(f, l,
			"{unrecorded} steps have no line in metrics.ndjson: no process coordinated "
			"them\n", text);
	if (l->given_up)
		hd_fields_say(f, l, "{given_up} workers were given up for lost and lived: this machine is "
			"busier than workers.detect ({detect_ms} ms) allows for; a larger one waits "
			"longer\n", text);
	if (strcmp(l->autoscale, "off") != 0)
		hd_text_addf(text, "autoscale %s: %s\n", l->autoscale,
			*l->autoscale_why ? l->autoscale_why : "measures");
	if (*l->plan_why)
		hd_text_addf(text, "map: %.*s\n", (int)strcspn(l->plan_why, "\n"), l->plan_why);
	print_paid(l, text);
	for (uint32_t i = 0; i < l->nworkers; i++)
		if (l->worker[i].notice && *l->worker[i].notice)
			hd_text_addf(text, "worker %lld has notice by %s\n", (long long)l->worker[i].id,
				l->worker[i].notice);
	for (uint32_t i = 0; i < l->nworkers; i++)
		if (l->worker[i].follows && *l->worker[i].follows)
			hd_fields_say(&hd_live_worker_fields, &l->worker[i],
				"worker {id} follows {follows}: where a worker that runs it is lost, it "
				"takes its place, and no state moves\n", text);
	hd_fields_head(&hd_live_worker_fields, text);
	for (uint32_t i = 0; i < l->nworkers; i++)
		hd_fields_line(&hd_live_worker_fields, &l->worker[i], text);
}

void hd_live_print(const struct hd_live *l, FILE *to)
{
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	if (!l->goes_on || l->alone || l->away)
		print_alone(l, &text);
	else
		print_run(l, &text);
	fputs(text.full ? "no memory for the status\n" : text.at, to);
	hd_arena_finish(&arena);
}
