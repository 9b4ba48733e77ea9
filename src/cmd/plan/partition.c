#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "planner/partition.h"
#include "cmd/json_line.h"
#include "cmd/verbs.h"
#include "cmd/plan/partition_heddle.h"
#include "cmd/plan/partition_simulate.h"
#include "cmd/plan/stages.h"

enum { CUTS_SHOWN = 40 };
#define BANDWIDTH_MAX 1e18

/* The `at`-th item of "a,b,c" into `out`; false: there is none. */
static bool item(const char *list, uint32_t at, char out[HD_NUM_CAP * 2])
{
	while (at--) {
		list = strchr(list, ',');
		if (!list++)
			return false;
	}
	size_t len = strcspn(list, ",");
	if (len >= HD_NUM_CAP * 2)
		len = HD_NUM_CAP * 2 - 1;
	memcpy(out, list, len);
	out[len] = 0;
	return true;
}

static uint32_t items(const char *list)
{
	uint32_t n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

enum hd_err hd_cmd_levels(struct hd_cmd *cmd, struct hd_part_how *how)
{
	const char *machines = cmd->args.text[HD_OPT_MACHINES], *bandwidth = cmd->args.text[HD_OPT_BANDWIDTH];
	char one[HD_NUM_CAP * 2];
	struct hd_diag why = { "" };
	uint64_t n;

	if (!machines || !bandwidth)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"how many machines, how far apart? give --machines 4 --bandwidth "
			"1.25e9, or a list for levels: --machines 8,2 --bandwidth 3e10,3.125e9");
	how->nlevels = items(machines);
	if (items(bandwidth) != how->nlevels)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--machines %s has %u levels, --bandwidth %s has %u: one bandwidth a level", machines,
			how->nlevels,
			bandwidth, items(bandwidth));
	if (how->nlevels > HD_PART_LEVELS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--machines %s: at most %d levels", machines,
			HD_PART_LEVELS);
	for (uint32_t l = 0; l < how->nlevels; l++) {
		(void)item(machines, l, one);
		if (hd_num_u64(one, HD_PART_MACHINES, &n, &why) || n == 0)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--machines %s: each is from 1 to %d",
				machines, HD_PART_MACHINES);
		how->level[l].machines = (uint32_t)n;
		(void)item(bandwidth, l, one);
		if (hd_num_f64(one, 0, BANDWIDTH_MAX, &how->level[l].bytes_per_s, &why) ||
			!(how->level[l].bytes_per_s > 0))
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--bandwidth %s: each is a number of bytes per second above 0, as 1.25e9 "
				"(10 Gb/s)", bandwidth);
	}
	return HD_OK;
}

static enum hd_err read_positive(struct hd_cmd *cmd, enum hd_opt opt, double *out)
{
	struct hd_diag why = { "" };

	if (!cmd->args.has[opt])
		return HD_OK;
	if (hd_num_f64(cmd->args.text[opt], 0, BANDWIDTH_MAX, out, &why) || !(*out > 0))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: a number above 0", hd_opts[opt].name,
			cmd->args.text[opt]);
	return HD_OK;
}

static enum hd_err read_how(struct hd_cmd *cmd, struct hd_part_how *how)
{
	const char *name = hd_args_text(&cmd->args, HD_OPT_VARIANT, hd_part_variant_name(HD_PART_PAPER));
	uint32_t v = 0;

	*how = (struct hd_part_how){ .straight = cmd->args.has[HD_OPT_STRAIGHT],
		.fewer = cmd->args.has[HD_OPT_FEWER] };
	while (v < HD_NPART_VARIANTS && strcmp(name, hd_part_variant_name((enum hd_part_variant)v)) != 0)
		v++;
	/* HD_NPART_VARIANTS: heddle, the only other word that the option takes */
	how->variant = (enum hd_part_variant)v;
	enum hd_err err = hd_cmd_levels(cmd, how);
	if (!err)
		err = read_positive(cmd, HD_OPT_ACTIVATIONS, &how->activations);
	int64_t memory = 0;
	if (!err)
		err = hd_cmd_memory(cmd, &memory);
	how->memory_bytes = (double)memory;
	return err;
}

enum hd_err hd_cmd_cuts(struct hd_cmd *cmd, struct hd_profile *profile, struct hd_cuts *cuts)
{
	const char *path = cmd->args.text[HD_OPT_GRAPH];
	struct hd_cuts_how how = { .compress = cmd->args.has[HD_OPT_COMPRESS] };
	uint64_t max = hd_args_count(&cmd->args, HD_OPT_MAX_CUTS, HD_CUTS_MAX);
	uint8_t *bytes;
	size_t len;

	if (!path)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"of which model? give --graph FILE, a profile or a graph.txt");
	if (max < 1 || max > HD_CUTS_CAP)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--max-cuts is from 1 to %d", HD_CUTS_CAP);
	how.max = (uint32_t)max;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_PROFILE_BYTES, &bytes, &len,
		&cmd->diag);
	if (!err)
		err = hd_profile_read(profile, (const char *)bytes, len, path, &cmd->arena, &cmd->diag);
	if (!err && *profile->ignored && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "warning: %s: left out what this version does not know: %s\n", path,
			profile->ignored);
	return err ? err : hd_cuts_make(cuts, profile, how, path, &cmd->arena, &cmd->diag);
}

static void put_split(struct hd_json_writer *w, const struct hd_cuts *cuts, const struct hd_part_split *split,
	uint32_t level)
{
	hd_json_open_array(w, "stages");
	for (uint32_t i = 0; i < split->nstages; i++) {
		const struct hd_part_stage *s = &split->stage[i];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "level", level);
		hd_json_put_i64(w, "first", s->first);
		hd_json_put_i64(w, "last", s->last);
		hd_json_put_text(w, "upto", cuts->name[s->last]);
		hd_json_put_i64(w, "replicas", s->replicas);
		if (s->split) {
			hd_json_put_f64(w, "component_s", s->split->time_s);
			put_split(w, cuts, s->split, level - 1);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* A model that takes no time gains nothing. */
static double gain(const struct hd_partition *part) { return part->time_s > 0 ? part->data_s / part->time_s :
	1; }

static const char *split_text(struct hd_cmd *cmd, const struct hd_partition *part, uint32_t nlevels)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_part_print(part, nlevels, &text);
	return text.full ? "" : text.at;
}

static void print_json(struct hd_cmd *cmd, const struct hd_cuts *cuts, const struct hd_part_how *how,
	const struct hd_partition *part)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "variant", hd_part_variant_name(how->variant));
	hd_json_put_i64(w, "states", cuts->n);
	hd_json_put_f64(w, "predicted_s", part->time_s);
	hd_json_put_f64(w, "one_machine_s", part->one_s);
	hd_json_put_f64(w, "data_parallel_s", part->data_s);
	hd_json_put_f64(w, "gain", gain(part));
	hd_json_open_array(w, "machines");
	for (uint32_t l = 0; l < how->nlevels; l++)
		hd_json_put_i64(w, NULL, how->level[l].machines);
	hd_json_close(w);
	hd_json_open_array(w, "bandwidth");
	for (uint32_t l = 0; l < how->nlevels; l++)
		hd_json_put_f64(w, NULL, how->level[l].bytes_per_s);
	hd_json_close(w);
	hd_json_put_text(w, "split", split_text(cmd, part, how->nlevels));
	put_split(w, cuts, &part->top, how->nlevels);
	hd_json_line_print(&line);
}

static double range(const int64_t *upto, const struct hd_part_stage *s) { return (double)(upto[s->last] -
	(s->first ? upto[s->first - 1] : 0)); }

static void print_split(const struct hd_cuts *cuts, const struct hd_part_split *split, uint32_t level,
	uint32_t indent)
{
	for (uint32_t i = 0; i < split->nstages; i++) {
		const struct hd_part_stage *s = &split->stage[i];
		char cut[CUTS_SHOWN];
		snprintf(cut, sizeof cut, "%*s%u-%u", (int)indent, "", s->first, s->last);
		printf("%-5u %-16s %-24.24s %8u %12.6f %12.3f %12.3f\n", level, cut, cuts->name[s->last],
			s->replicas, range(cuts->time_ns, s) / 1e9,
			range(cuts->param, s) / 1e6,
			(double)cuts->out[s->last] / 1e6);
		if (s->split)
			print_split(cuts, s->split, level - 1, indent + 2);
	}
}

static void print_table(struct hd_cmd *cmd, const struct hd_cuts *cuts, const struct hd_part_how *how,
	const struct hd_partition *part)
{
	printf("%-5s %-16s %-24s %8s %12s %12s %12s\n", "level", "cuts", "up to node", "replicas", "s on one",
		"weights MB", "out MB");
	print_split(cuts, &part->top, how->nlevels, 0);
	printf("\nvariant %s: %s; %u cuts\n", hd_part_variant_name(how->variant),
		hd_part_variant_about(how->variant), cuts->n);
	for (uint32_t l = how->nlevels; l-- > 0;)
		printf("level %u: %u at %g bytes/s\n", l + 1, how->level[l].machines,
			how->level[l].bytes_per_s);
	printf("slowest stage  %.9g s\none machine    %.9g s\ndata parallel  %.9g s\ngain           %.4f\n",
		part->time_s, part->one_s, part->data_s,
		gain(part));
	printf("split          %s\n", split_text(cmd, part, how->nlevels));
}

static enum hd_err by_recurrence(struct hd_cmd *cmd, const struct hd_cuts *cuts,
	const struct hd_part_how *how)
{
	struct hd_partition part;
	enum hd_err err = hd_part_solve(&part, cuts, how, &cmd->arena, &cmd->diag);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, cuts, how, &part);
	else
		print_table(cmd, cuts, how, &part);
	return HD_OK;
}

static enum hd_err verb_plan_partition(struct hd_cmd *cmd)
{
	struct hd_profile profile;
	struct hd_part_how how;
	struct hd_cuts cuts;
	enum hd_err err = read_how(cmd, &how);

	if (!err && cmd->args.has[HD_OPT_VNS] && how.variant != HD_NPART_VARIANTS)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"-m: the variant %s knows a steady state alone; virtual nodes are counted by "
			"--variant heddle",
			hd_part_variant_name(how.variant));
	err = err ? err : hd_cmd_cuts(cmd, &profile, &cuts);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_SIMULATE])
		return hd_cmd_partition_simulate(cmd, &profile, &cuts, &how);
	return how.variant == HD_NPART_VARIANTS ? hd_cmd_partition_heddle(cmd, &profile, &cuts, &how) :
		by_recurrence(cmd, &cuts, &how);
}

const struct hd_verb hd_verb_plan_partition = {
	.name = "plan partition", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "cut a model into stages by its profile, for devices joined by levels of links",
	.more =
		"Minimises the time of the slowest stage, by the recurrences of PipeDream. A cut is a "
		"place where the model can be split; stages are ranges of cuts, each on one or more "
		"machines (or components of machines: level 2 and up). Variants:\n"
		"  paper    all-reduce as the paper's text counts it: 2(m-1)/m of the weights;\n"
		"           activations always counted\n"
		"  printed  the formula as the paper prints it, without the division by m\n"
		"  code     what the authors' program computes; activations count only with\n"
		"           --activations\n"
		"  heddle   one step of -m virtual nodes (default: 4 a machine), fill and drain\n"
		"           counted; sums of gradients once a step; memory with what is in flight,\n"
		"           computing again where it does not fit otherwise; machines may stay\n"
		"           idle. predicted_s is the step's time over -m; `why` says what it is\n"
		"           made of\n"
		"Of equally fast partitions: fewest stages, least traffic between them, then (from the "
		"last stage) the earliest cut and the fewest machines; so the same input gives the same "
		"bytes everywhere. `data parallel` is all machines with the whole model each, as the "
		"authors' program counts it; the gain compares with it.\n"
		"--simulate: instead, minibatches a second of data parallel with its sums beside "
		"backward, of the split `paper` over all machines (at the outermost bandwidth, and at a "
		"machine's share of it), and of one machine a stage, each as PipeDream runs it: "
		"transfers share the links, replicas sum every round. The first of the fastest is "
		"`best`.",
	.opts = HD_OPTS(HD_OPT_GRAPH, HD_OPT_MACHINES, HD_OPT_BANDWIDTH, HD_OPT_VARIANT,
		HD_OPT_STRAIGHT, HD_OPT_FEWER, HD_OPT_ACTIVATIONS, HD_OPT_MEMORY, HD_OPT_SIMULATE,
		HD_OPT_VNS, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS),
	.run = verb_plan_partition, .test = "program_plan.sh",
};
