#include <stdio.h>
#include <string.h>

#include "pipeline/placement.h"
#include "cmd/json_line.h"

/* Zones of the devices, one word each, as they are named; numbered as they appear. */
struct zones { const char *name[HD_PLACED_DEVICES]; struct hd_placed_device device[HD_PLACED_DEVICES];
	uint32_t nzones, ndevices; };

static enum hd_err read_zones(struct hd_cmd *cmd, struct zones *z)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[HD_OPT_AT_ZONES],
		strlen(cmd->args.text[HD_OPT_AT_ZONES]));

	if (!text)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --device-zones");
	for (char *next = text; next;) {
		char *word = next;
		uint32_t k = 0;
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		if (!*word || z->ndevices == HD_PLACED_DEVICES)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--device-zones: a name for each device with commas between, for 1 to %d "
				"devices",
				HD_PLACED_DEVICES);
		while (k < z->nzones && strcmp(z->name[k], word) != 0)
			k++;
		z->name[k] = word;
		z->nzones += k == z->nzones;
		z->device[z->ndevices++].zone = k;
	}
	return HD_OK;
}

static void print_json(struct hd_cmd *cmd, const struct hd_placement_ask *ask, const struct hd_placement *got)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_open_array(w, "pipelines");
	for (uint32_t k = 0; k < ask->npipelines; k++) {
		hd_json_open_array(w, NULL);
		for (uint32_t s = 0; s < ask->nstages; s++)
			hd_json_put_i64(w, NULL, got->device[k * ask->nstages + s]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "waiting");
	for (uint32_t i = 0; i < ask->ndevices; i++)
		if (got->place[i] == HD_WAITS)
			hd_json_put_i64(w, NULL, i);
	hd_json_close(w);
	hd_json_put_i64(w, "neighbours_in_one_zone", got->same_zone);
	hd_json_put_i64(w, "zones_missing", got->missing_zones);
	hd_json_line_print(&line);
}

static void print_text(const struct zones *z, const struct hd_placement_ask *ask,
	const struct hd_placement *got)
{
	for (uint32_t k = 0; k < ask->npipelines; k++) {
		printf("pipeline %u:", k);
		for (uint32_t s = 0; s < ask->nstages; s++) {
			const uint32_t i = got->device[k * ask->nstages + s];
			printf("  %u (%s)", i, z->name[z->device[i].zone]);
		}
		printf("\n");
	}
	for (uint32_t i = 0; i < ask->ndevices; i++)
		if (got->place[i] == HD_WAITS)
			printf("waits: %u (%s)\n", i, z->name[z->device[i].zone]);
	printf("neighbours in one zone: %u%s\n", got->same_zone, ask->nzones == 1 ?
		"   (there is one zone alone)" : "");
	if (ask->npipelines > 1)
		printf("zones that copies of stages miss: %u\n", got->missing_zones);
}

static enum hd_err verb_plan_place(struct hd_cmd *cmd)
{
	struct zones *z = hd_arena_take(&cmd->arena, 1, sizeof *z);
	struct hd_placement got;

	if (!z)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for zones");
	if (!cmd->args.has[HD_OPT_AT_ZONES] || !cmd->args.has[HD_OPT_RANKS] ||
		cmd->args.count[HD_OPT_RANKS] < 1 ||
		cmd->args.count[HD_OPT_RANKS] > HD_PLACED_DEVICES)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"plan place needs --device-zones Z,Z,... and -p STAGES, from 1 to %d",
			HD_PLACED_DEVICES);
	enum hd_err err = read_zones(cmd, z);
	struct hd_placement_ask ask = { .device = z->device, .ndevices = z->ndevices, .nzones = z->nzones,
		.nstages = (uint32_t)cmd->args.count[HD_OPT_RANKS] };
	ask.npipelines = z->ndevices / ask.nstages;
	if (!err && ask.npipelines == 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "-p %u: %u devices are too few for a pipeline of so "
			"many stages",
			ask.nstages, z->ndevices);
	err = err ? err : hd_place_devices(&got, &ask, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &ask, &got);
	else
		print_text(z, &ask, &got);
	return HD_OK;
}

const struct hd_verb hd_verb_plan_place = {
	.name = "plan place", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "which device holds which stage, so that no zone takes two neighbours with it",
	.more =
		"--device-zones names the zone of each device, -p the stages of a pipeline; there are as "
		"many "
		"pipelines as devices are enough for, the others wait. A line a pipeline: the device of "
		"each stage, with its zone. A stage whose device is lost goes on with its shadow on the "
		"device before it (docs/redundancy.md), so neighbours, the last and the first too, "
		"stand in different zones where that is possible, and so do the copies of a stage.",
	.opts = HD_OPTS(HD_OPT_AT_ZONES, HD_OPT_RANKS),
	.run = verb_plan_place, .test = "program_schedule.sh",
};
