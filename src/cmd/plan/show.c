#include <stdio.h>

#include "pipeline/passes.h"
#include "cmd/json_line.h"
#include "cmd/plan/schedule.h"

enum hd_err hd_cmd_plan_show(struct hd_cmd *cmd)
{
	struct hd_schedules all;
	struct hd_text text;

	if (hd_cmd_schedule_help(cmd))
		return HD_OK;
	enum hd_err err = hd_cmd_schedules(cmd, &all);
	if (err)
		return err;
	hd_text_init(&text, &cmd->arena);
	for (uint32_t i = 0; i < all.len && !err; i++) {
		if (cmd->args.has[HD_OPT_COMPLETE])
			err = hd_schedule_complete(&all.at[i], &all.at[i], &(struct hd_pass_options){ 0 },
				&cmd->arena, &cmd->diag);
		hd_schedule_print(&all.at[i], &text);
	}
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
