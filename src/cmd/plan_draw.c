#include <string.h>

#include "plan/draw.h"
#include "cmd/schedule.h"
#include "cmd/simulate_full.h"

static bool is_svg(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len > 4 && !strcmp(path + len - 4, ".svg");
}

static enum hd_err draw_full(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask, bool svg, struct hd_text *text)
{
	struct hd_sim_setting set;
	struct hd_sim_plan sim;
	enum hd_err err = hd_cmd_sim_setting(cmd, s, ask, &set);

	set.spans = true;
	err = err ? err : hd_sim_plan(&sim, s, &set, &cmd->arena, &cmd->diag);
	if (!err && !svg)
		hd_text_addf(text, "%s\n", s->heading);
	return err ? err : (svg ? hd_draw_plan_svg : hd_draw_plan_text)(&sim, text, &cmd->diag);
}

enum hd_err hd_cmd_plan_draw(struct hd_cmd *cmd)
{
	const char *path = cmd->args.text[HD_OPT_OUTPUT];
	struct hd_schedules all = { 0 };
	struct hd_sim_ask ask;
	struct hd_text text;
	enum hd_err err;

	if (hd_cmd_schedule_help(cmd))
		return HD_OK;
	err = hd_cmd_sim_ask(cmd, &ask);
	err = err ? err : hd_cmd_schedules_sound(cmd, &all);
	ask.spans = true;
	if (!err && is_svg(path) && all.len > 1)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "%s holds %u schedules; a picture shows one", cmd->args.pos[0], all.len);
	hd_text_init(&text, &cmd->arena);
	for (uint32_t i = 0; i < all.len && !err; i++) {
		struct hd_sim sim;
		if (hd_cmd_sim_is_full(cmd, &all.at[i])) {
			err = draw_full(cmd, &all.at[i], &ask, is_svg(path), &text);
			continue;
		}
		err = hd_simulate(&sim, &all.at[i], &ask, &cmd->arena, &cmd->diag);
		if (!err && !is_svg(path))
			hd_text_addf(&text, "%s\n", all.at[i].heading);
		if (!err)
			err = (is_svg(path) ? hd_draw_svg : hd_draw_text)(&sim, &text, &cmd->diag);
	}
	if (err)
		return err;
	if (path)
		return hd_file_write_atomic(&cmd->fs, path, text.at, text.len, &cmd->diag);
	fputs(text.at, stdout);
	return HD_OK;
}
