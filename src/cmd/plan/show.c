#include <stdio.h>

#include "pipeline/passes.h"
#include "cmd/json_line.h"
#include "cmd/plan/lose.h"
#include "cmd/plan/schedule.h"

/* Lines that readers of lists pass over. */
static void print_transfers(const struct hd_plan *plan, struct hd_text *text)
{
	for (uint32_t i = 0; i < plan->xfers.len; i++) {
		hd_text_add(text, "# ");
		hd_xfer_print(&plan->xfers.at[i], text);
	}
}

static enum hd_err verb_plan_show(struct hd_cmd *cmd)
{
	const struct hd_plan *plan = NULL;
	struct hd_schedules all;
	struct hd_text text;

	if (hd_cmd_schedule_help(cmd))
		return HD_OK;
	/* lists are shown as they are read, also bad ones; nothing is made of those */
	bool makes = cmd->args.has[HD_OPT_REDUNDANCY] || cmd->args.has[HD_OPT_LOSE];
	enum hd_err err = makes ? hd_cmd_schedules_sound(cmd, &all) : hd_cmd_schedules(cmd, &all, &plan);
	if (err)
		return err;
	hd_text_init(&text, &cmd->arena);
	for (uint32_t i = 0; i < all.len && !err; i++) {
		if (cmd->args.has[HD_OPT_COMPLETE])
			err = hd_schedule_complete(&all.at[i], &all.at[i], &(struct hd_pass_options){ 0 },
				&cmd->arena, &cmd->diag);
		err = err ? err : hd_cmd_lose(cmd, &all.at[i]);
		hd_schedule_print(&all.at[i], &text);
	}
	if (plan)
		print_transfers(plan, &text);
	if (err)
		return err;
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text of a schedule");
	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		hd_json_put_text(hd_json_line_open(cmd, &line), "schedules", text.at);
		hd_json_line_print(&line);
	} else {
		fputs(text.at, stdout);
	}
	return HD_OK;
}

const struct hd_verb hd_verb_plan_show = {
	.name = "plan show", .args = "[FILE]", .npos_min = 0, .npos_max = 1,
	.about = "a schedule as text: one line of instructions per rank",
	.more =
		"Of a name: --schedule NAME -p P -m M; --schedule help lists the names. Of a file: "
		"every schedule in it, as it is read. Of a run's plan its transfers follow, a line with # "
		"each: what is sent of each bucket first, how urgent (prio), and what it takes over a free "
		"link (ns; 0: no link was measured).\n"
		"F forward, B backward, I backward for the input, W for the weights; F3.7 is stage 3 on "
		"virtual node 7; (F3.7&B0.2) a pair.\n"
		"--costs and --comm matter to zb-auto alone, which searches for them. --complete adds "
		"what a skeleton lacks: LD, transfers (SA RA activations, SG RG gradients), PIN and REL "
		"of versions, RED of stages with copies, STEP.\n"
		"--redundancy MODE: each rank also holds a shadow of the next stage: x marks its work "
		"(Fx3.7), k what is kept for a loss, SHIP and TAKE bring it gradients. --shadows: where "
		"its forwards stand, by --costs and --comm. `heddle plan check` proves them, simulate "
		"costs them (docs/redundancy.md). --lose R: what the other ranks do for the rest of the step "
		"when rank R is lost at --lose-at of it.",
	.opts = HD_OPTS(HD_SCHEDULE_OPTS, HD_OPT_COMPLETE, HD_OPT_LOSE, HD_OPT_LOSE_AT),
	.run = verb_plan_show, .test = "program_schedule.sh",
};
