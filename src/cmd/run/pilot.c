#include "cmd/run/pilot.h"

#include <string.h>

#include "base/text.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "notice/hand.h"
#include "launch/pilot.h"

/* `heddle worker --join DIR/pilots/TYPE`: a node that a scheduler was lent. */

static size_t notice(int64_t ends_wall_ns, char *text, size_t cap)
{
	char line[HD_HAND_TEXT];
	const size_t n = hd_hand_print(ends_wall_ns, line);

	if (n >= cap)
		return 0;
	memcpy(text, line, n);
	return n;
}

bool hd_pilot_is_asked(struct hd_cmd *cmd, const char *dir) { return hd_pilot_is_folder(&cmd->fs, dir); }

/* What its workers get of this verb's options. */
static enum hd_err take_extra(struct hd_cmd *cmd, struct hd_pilot_spec *spec)
{
	static const enum hd_opt passed[] = { HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_PROFILE, HD_OPT_ZONE };

	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		const struct hd_opt_row *row = &hd_opts[passed[i]];
		struct hd_text name, value;
		if (!cmd->args.has[passed[i]])
			continue;
		hd_text_init(&name, &cmd->arena);
		hd_text_init(&value, &cmd->arena);
		hd_text_addf(&name, "--%s", row->name);
		if (row->kind == HD_TAKES_COUNT)
			hd_text_addf(&value, "%llu", (unsigned long long)cmd->args.count[passed[i]]);
		else
			hd_text_add(&value, cmd->args.text[passed[i]]);
		if (name.full || value.full)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a pilot");
		spec->extra[spec->nextra++] = name.at;
		spec->extra[spec->nextra++] = value.at;
	}
	return HD_OK;
}

enum hd_err hd_worker_pilot(struct hd_cmd *cmd, const char *dir)
{
	struct hd_pilot *pilot = hd_arena_take(&cmd->arena, 1, sizeof *pilot);
	char *program = hd_arena_take(&cmd->arena, 1, HD_PATH_CAP);
	struct hd_pilot_spec spec = { .fs = &cmd->fs, .clock = &cmd->clock, .dir = dir, .program = program,
		.environment = hd_proc_environment(), .notice = notice };
	struct hd_host host;

	if (!pilot || !program)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a pilot");
	hd_host_real(&host);
	spec.host = &host;
	enum hd_err err = hd_proc_program(program, HD_PATH_CAP, &cmd->diag);
	err = err ? err : take_extra(cmd, &spec);
	err = err ? err : hd_signal_install(&cmd->diag);
	err = err ? err : hd_pilot_open(pilot, &spec, &cmd->diag);
	if (err)
		return err;
	hd_title_set(&cmd->title, "heddle pilot", "heddle: pilot of %s", dir);
	while ((err = hd_pilot_turn(pilot, hd_signal_stop() != HD_STOP_NONE, &cmd->diag)) == HD_E_AGAIN)
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + HD_PILOT_LOOK_NS);
	hd_pilot_close(pilot);
	return err;
}
