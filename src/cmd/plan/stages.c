#include "cmd/plan/stages.h"

#include <string.h>

#include "base/checked.h"
#include "base/num.h"
#include "planner/partition.h"

static const double FREE = 1e18;          /* bytes per second: nothing that travels shows */

enum hd_err hd_cmd_memory(struct hd_cmd *cmd, int64_t *bytes)
{
	const char *text = cmd->args.text[HD_OPT_MEMORY];
	struct hd_diag why = { "" };
	uint64_t whole = 0;
	double v = 0;

	*bytes = 0;
	if (!cmd->args.has[HD_OPT_MEMORY])
		return HD_OK;
	if (!hd_num_size(text, INT64_MAX, &whole, &why))
		*bytes = (int64_t)whole;
	else if (hd_num_f64(text, 0, 0x1p62, &v, &why) || !hd_i64_from_f64(v, bytes))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--memory %s: bytes, as 16e9 or 16GiB, at most 2^62",
			text);
	return *bytes > 0 ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL, "--memory %s: nothing fits", text);
}

static enum hd_err said_cuts(struct hd_cmd *cmd, uint32_t nstages, uint32_t *first)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[HD_OPT_CUTS],
		strlen(cmd->args.text[HD_OPT_CUTS])), *next = text;
	uint32_t n = 0;

	if (!text)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --cuts");
	for (; next; n++) {
		char *word = next;
		uint64_t v = 0;
		struct hd_diag why = { "" };
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		if (hd_num_u64(word, HD_CUTS_CAP, &v, &why))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--cuts %s: %s", cmd->args.text[HD_OPT_CUTS],
				why.text);
		if (n < nstages)
			first[n] = (uint32_t)v;
	}
	if (n && nstages && first[0] != 0)
		return hd_fail(&cmd->diag, HD_E_BADPLAN,
			"--cuts %s: cuts 0-%u belong to no stage; the first stage begins at 0",
			cmd->args.text[HD_OPT_CUTS],
			first[0] - 1);
	return n == nstages ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"--cuts %s: %u stages, the schedule has %u", cmd->args.text[HD_OPT_CUTS], n, nstages);
}

static enum hd_err straight_cuts(struct hd_cmd *cmd, const struct hd_cuts *cuts, uint32_t nstages,
	uint32_t *first)
{
	const struct hd_part_how how = { .variant = HD_PART_PAPER, .level = { { nstages, FREE } },
		.nlevels = 1, .straight = true };
	struct hd_partition part;

	if (nstages > cuts->n)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"the model has %u cuts, the schedule %u stages; the nearest that works: %u stages",
			cuts->n, nstages,
			cuts->n);
	if (nstages == 1) {
		first[0] = 0;
		return HD_OK;
	}
	enum hd_err err = hd_part_solve(&part, cuts, &how, &cmd->arena, &cmd->diag);
	for (uint32_t s = 0; !err && s < nstages; s++)
		first[s] = part.top.stage[s].first;
	return err;
}

enum hd_err hd_cmd_stage_costs(struct hd_cmd *cmd, uint32_t nstages, const struct hd_stage_costs **costs,
	struct hd_cut_sums *out_sums)
{
	struct hd_stage_costs *out = hd_arena_take(&cmd->arena, 1, sizeof *out);
	uint32_t *first = hd_arena_take(&cmd->arena, (size_t)nstages + 1, sizeof *first);
	struct hd_profile *profile = hd_arena_take(&cmd->arena, 1, sizeof *profile);
	struct hd_cuts *cuts = hd_arena_take(&cmd->arena, 1, sizeof *cuts);
	struct hd_cut_sums sums;

	*costs = NULL;
	if (!cmd->args.has[HD_OPT_GRAPH])
		return cmd->args.has[HD_OPT_CUTS] ? hd_fail(&cmd->diag, HD_E_INVAL,
			"--cuts belongs to --graph") : HD_OK;
	if (!out || !first || !profile || !cuts)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the costs of stages");
	enum hd_err err = hd_cmd_cuts(cmd, profile, cuts);
	if (!err)
		err = cmd->args.has[HD_OPT_CUTS] ? said_cuts(cmd, nstages, first) : straight_cuts(cmd, cuts,
			nstages, first);
	err = err ? err : hd_cut_sums_make(&sums, profile, cuts, &cmd->arena, &cmd->diag);
	err = err ? err : hd_stage_costs_make(out, &sums, first, nstages, &cmd->arena, &cmd->diag);
	*costs = err ? NULL : out;
	if (!err && out_sums)
		*out_sums = sums;
	return err;
}
