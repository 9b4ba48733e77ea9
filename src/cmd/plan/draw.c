#include <string.h>

#include "pipeline/draw.h"
#include "cmd/json_line.h"
#include "cmd/plan/schedule.h"
#include "cmd/sim/full.h"

static bool is_svg(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len > 4 && !strcmp(path + len - 4, ".svg");
}

static enum hd_err run_full(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask,
	struct hd_sim_plan *sim)
{
	struct hd_sim_setting set;
	enum hd_err err = hd_cmd_sim_setting(cmd, s, ask, &set);

	set.spans = true;
	return err ? err : hd_sim_plan(sim, s, &set, &cmd->arena, &cmd->diag);
}

static enum hd_err draw_full(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask,
	struct hd_text *text)
{
	const bool svg = is_svg(cmd->args.text[HD_OPT_OUTPUT]);
	struct hd_sim_plan sim;
	enum hd_err err = run_full(cmd, s, ask, &sim);

	if (!err && !svg)
		hd_text_addf(text, "%s\n", s->heading);
	return err ? err : (svg ? hd_draw_plan_svg : hd_draw_plan_text)(&sim, text, &cmd->diag);
}

static enum hd_err draw_bare(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask,
	struct hd_text *text)
{
	const bool svg = is_svg(cmd->args.text[HD_OPT_OUTPUT]);
	struct hd_sim sim;
	enum hd_err err = hd_simulate(&sim, s, ask, &cmd->arena, &cmd->diag);

	if (!err && !svg)
		hd_text_addf(text, "%s\n", s->heading);
	return err ? err : (svg ? hd_draw_svg : hd_draw_text)(&sim, text, &cmd->diag);
}

/* ---- --json: the same as data, all ranks and instructions */

static void put_span(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_sim_plan *sim, uint32_t r,
	uint32_t i)
{
	const bool seconds = cmd->args.has[HD_OPT_PROFILE];
	struct hd_text word;

	hd_text_init(&word, &cmd->arena);
	hd_ins_print(&sim->ran.list[r].at[i], &word);
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "does", word.full ? "" : word.at);
	hd_json_put_f64(w, "start", hd_cmd_sim_time(sim, seconds, sim->span[r][i].start));
	hd_json_put_f64(w, "end", hd_cmd_sim_time(sim, seconds, sim->span[r][i].end));
	hd_json_close(w);
}

static void put_wait(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_sim_plan *sim,
	const struct hd_sim_wait *wait)
{
	const bool seconds = cmd->args.has[HD_OPT_PROFILE];

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "why", hd_idle_names[wait->why]);
	hd_json_put_i64(w, "before", wait->at);
	hd_json_put_f64(w, "start", hd_cmd_sim_time(sim, seconds, wait->start));
	hd_json_put_f64(w, "end", hd_cmd_sim_time(sim, seconds, wait->end));
	hd_json_close(w);
}

static enum hd_err draw_json(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask,
	struct hd_text *text)
{
	struct hd_json_writer w;
	struct hd_sim_plan sim;
	enum hd_err err = run_full(cmd, s, ask, &sim);

	if (err)
		return err;
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "schedule", s->heading);
	hd_json_put_text(&w, "unit", cmd->args.has[HD_OPT_PROFILE] ? "s" : "as --costs");
	hd_json_put_f64(&w, "makespan", hd_cmd_sim_time(&sim, cmd->args.has[HD_OPT_PROFILE], sim.makespan));
	hd_json_open_array(&w, "ranks");
	for (uint32_t r = 0; r < sim.ran.nranks; r++) {
		hd_json_open_object(&w, NULL);
		hd_json_open_array(&w, "instructions");
		for (uint32_t i = 0; i < sim.ran.list[r].len; i++)
			put_span(cmd, &w, &sim, r, i);
		hd_json_close(&w);
		hd_json_open_array(&w, "waits");
		for (uint32_t i = 0; i < sim.wait[r].n; i++)
			put_wait(cmd, &w, &sim, &sim.wait[r].at[i]);
		hd_json_close(&w);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(text, "\n");
	return HD_OK;
}

static enum hd_err verb_plan_draw(struct hd_cmd *cmd)
{
	const char *path = cmd->args.text[HD_OPT_OUTPUT];
	struct hd_schedules all = { 0 };
	struct hd_sim_ask ask;
	struct hd_text text;
	enum hd_err err;

	if (hd_cmd_schedule_help(cmd))
		return HD_OK;
	if (is_svg(path) && cmd->args.has[HD_OPT_JSON])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s is a picture, --json prints the same as data: leave one of them out", path);
	err = hd_cmd_sim_ask(cmd, &ask);
	err = err ? err : hd_cmd_schedules_sound(cmd, &all);
	ask.spans = true;
	if (!err && is_svg(path) && all.len > 1)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "%s holds %u schedules; a picture shows one",
			cmd->args.pos[0], all.len);
	hd_text_init(&text, &cmd->arena);
	for (uint32_t i = 0; i < all.len && !err; i++)
		err = (cmd->args.has[HD_OPT_JSON] ? draw_json : hd_cmd_sim_is_full(cmd, &all.at[i]) ?
			draw_full : draw_bare)(cmd, &all.at[i], &ask, &text);
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a drawing");
	if (err)
		return err;
	if (path)
		return hd_file_write_atomic(&cmd->fs, path, text.at, text.len, &cmd->diag);
	fputs(text.at, stdout);
	return HD_OK;
}

const struct hd_verb hd_verb_plan_draw = {
	.name = "plan draw", .args = "[FILE]", .npos_min = 0, .npos_max = 1,
	.about = "the timeline of a schedule, as text or (-o FILE.svg) as a picture",
	.more =
		"Time runs to the right, a line a rank. F forward, B backward, I and W its halves; the "
		"number is the virtual node, a letter behind it the model chunk (b, c, ... of the "
		"second, third, ...); = and & continue an instruction and a pair.\n"
		"With --profile, --cluster or another option of `heddle simulate` also why ranks stand "
		"still; as text then 120 columns. With --redundancy MODE too: small letters are work of "
		"shadow stages.\n"
		"--json: one object a schedule: of each rank its instructions and waits, from start to "
		"end (`before`: which instruction waits).\n"
		"A FILE, schedules or a plan, passes `heddle plan check` first: what it refuses is "
		"printed as there, with exit 2.",
	.opts = HD_OPTS(HD_SCHEDULE_OPTS, HD_OPT_PERIODS, HD_OPT_OUTPUT, HD_OPT_PROFILE, HD_OPT_CUTS,
		HD_OPT_MAX_CUTS, HD_OPT_COMPRESS, HD_OPT_CLUSTER, HD_OPT_TRANSPORT, HD_OPT_CREDITS,
		HD_OPT_SEED, HD_OPT_STEPS),
	.run = verb_plan_draw, .test = "program_schedule.sh",
};
