#include "cmd/plan/lose.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/failover.h"
#include "cmd/plan/schedule.h"

/* in the heading of what --lose prints, and of nothing else that this program prints */
#define MARK ", without rank "

static enum hd_err read_lost(struct hd_cmd *cmd, uint32_t nranks, bool *lost)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[HD_OPT_LOSE],
		strlen(cmd->args.text[HD_OPT_LOSE]));

	if (!text)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --lose");
	for (char *next = text; next;) {
		char *word = next;
		uint64_t r = 0;
		struct hd_diag why = { "" };
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		if (hd_num_u64(word, nranks - 1, &r, &why))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--lose %s: %s; ranks are 0 to %u",
				cmd->args.text[HD_OPT_LOSE], why.text, nranks - 1);
		lost[r] = true;
	}
	return HD_OK;
}

static enum hd_err read_part(struct hd_cmd *cmd, double *part)
{
	struct hd_diag why = { "" };

	*part = 0.5;
	if (cmd->args.has[HD_OPT_LOSE_AT] && hd_num_f64(cmd->args.text[HD_OPT_LOSE_AT], 0, 1, part, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--lose-at %s: %s; it is a part of the step, 0 to 1",
			cmd->args.text[HD_OPT_LOSE_AT], why.text);
	return HD_OK;
}

/* How far the step is when that part of its time is over. */
static enum hd_err progress_of(struct hd_cmd *cmd, const struct hd_schedule *s, double part,
	struct hd_step_progress *now)
{
	struct hd_sim_ask ask;
	struct hd_stage_costs even;
	struct hd_sim_plan sim;
	enum hd_err err = hd_cmd_sim_ask(cmd, &ask);

	err = err ? err : hd_stage_costs_even(&even, &ask.costs, s->nstages, &cmd->arena, &cmd->diag);
	const struct hd_sim_setting set = { .costs = &even, .hop = ask.costs.hop, .spans = true };
	err = err ? err : hd_sim_plan(&sim, s, &set, &cmd->arena, &cmd->diag);
	return err ? err : hd_step_progress_at(now, &sim, llround(part * (double)sim.makespan), &cmd->arena,
		&cmd->diag);
}

enum hd_err hd_cmd_lose(struct hd_cmd *cmd, struct hd_schedule *s)
{
	bool *lost = hd_arena_take(&cmd->arena, (size_t)s->nranks + 1, sizeof *lost);
	struct hd_step_progress now;
	struct hd_diag why = { "" };
	struct hd_text heading;
	double part;

	if (!cmd->args.has[HD_OPT_LOSE])
		return !cmd->args.has[HD_OPT_LOSE_AT] ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
			"--lose-at says when ranks of --lose are lost: give that too");
	if (!lost || !s->nranks)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u ranks", s->nranks);
	enum hd_err err = read_lost(cmd, s->nranks, lost);
	err = err ? err : read_part(cmd, &part);
	err = err ? err : progress_of(cmd, s, part, &now);
	if (err)
		return err;
	err = hd_failover(s, s, &now, lost, &cmd->arena, &why);
	if (err)
		return hd_fail(&cmd->diag, err == HD_E_REFUSED ? HD_E_INVAL : err, "--lose %s: %s%s",
			cmd->args.text[HD_OPT_LOSE], why.text,
			hd_redundancy_in(s) ? "" : ": give --redundancy MODE");
	hd_text_init(&heading, &cmd->arena);
	hd_text_addf(&heading, "%s" MARK "%s from %g of the step on", s->heading,
		cmd->args.text[HD_OPT_LOSE], part);
	s->heading = heading.full ? s->heading : heading.at;
	return HD_OK;
}

enum hd_err hd_cmd_lose_made(struct hd_cmd *cmd, const struct hd_schedule *s)
{
	if (!strstr(s->heading, MARK))
		return HD_OK;
	cmd->diag = (struct hd_diag){ "" };       /* the first finding: of a whole step */
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"%s: what is left of a step after a loss, as `plan show --lose` prints it, is no whole step "
		"to check or simulate; it follows from the schedule that it was made of: give that",
		cmd->args.npos ? cmd->args.pos[0] : s->heading);
}
