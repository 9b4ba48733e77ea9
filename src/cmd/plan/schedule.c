#include "cmd/plan/schedule.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/redundancy.h"
#include "pipeline/staged.h"
#include "cmd/json_line.h"
#include "cmd/plan/lose.h"

enum { MAX_NUMBERS = HD_MAX_RANKS };
static const double MAX_UNITS = 1e6;

static void put_kind(struct hd_cmd *cmd, const struct hd_schedule_kind *k)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "schedule", k->name);
	if (k->other)
		hd_json_put_text(w, "other_name", k->other);
	hd_json_put_text(w, "update", hd_update_names[k->update]);
	hd_json_put_text(w, "about", k->about);
	hd_json_put_text(w, "limits", k->limits);
	hd_json_line_print(&line);
}

bool hd_cmd_schedule_help(struct hd_cmd *cmd)
{
	const char *name = cmd->args.text[HD_OPT_SCHEDULE];

	if (!name || strcmp(name, "help") != 0)
		return false;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name && cmd->args.has[HD_OPT_JSON]; k++)
		put_kind(cmd, k);
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name && !cmd->args.has[HD_OPT_JSON];
		k++)
		printf("%-14s %-11s %-7s %s%s%s%s\n", k->name, k->other ? k->other : "",
			hd_update_names[k->update], k->about,
			*k->limits ? " (" : "", k->limits, *k->limits ? ")" : "");
	return true;
}

bool hd_cmd_is_plan(const char *text)
{
	while (*text == '#' || *text == '\n')
		text = strchr(text, '\n') ? strchr(text, '\n') + 1 : "";
	return !strncmp(text, "plan ", 5);
}

bool hd_cmd_is_job(const char *text)
{
	while (*text == '#' || isspace((unsigned char)*text))
		text = *text == '#' ? text + strcspn(text, "\n") : text + 1;
	const char *word = text;
	while (islower((unsigned char)*word))
		word++;
	return *text == '{' || !strncmp(text, "---", 3) || (word > text && *word == ':');
}

/* "2,1,1": numbers above 0. */
static enum hd_err counts(struct hd_cmd *cmd, enum hd_opt opt, uint32_t **out, uint32_t *n)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[opt], strlen(cmd->args.text[opt])),
		*next = text;
	uint32_t *list = hd_arena_take(&cmd->arena, MAX_NUMBERS, sizeof *list);

	if (!text || !list)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --%s", hd_opts[opt].name);
	for (*n = 0; next; ) {
		char *word = next;
		uint64_t v = 0;
		struct hd_diag why = { "" };
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		if (*n == MAX_NUMBERS)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: more than %d numbers",
				hd_opts[opt].name, MAX_NUMBERS);
		if (hd_num_u64(word, HD_MAX_RANKS, &v, &why))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: %s", hd_opts[opt].name,
				cmd->args.text[opt], why.text);
		list[(*n)++] = (uint32_t)v;
	}
	*out = list;
	return HD_OK;
}

static enum hd_err number(struct hd_cmd *cmd, enum hd_opt opt, uint32_t *out)
{
	if (cmd->args.has[opt] && cmd->args.count[opt] > UINT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %llu is too large", hd_opts[opt].name,
			(unsigned long long)cmd->args.count[opt]);
	*out = cmd->args.has[opt] ? (uint32_t)cmd->args.count[opt] : 0;
	return HD_OK;
}

/* Chunks that fit what is said in units of a full rank. */
static enum hd_err read_cap(struct hd_cmd *cmd, uint32_t v, uint32_t *out)
{
	struct hd_diag why = { "" };
	double units = 0;

	if (hd_num_f64(cmd->args.text[HD_OPT_CAP], 0, MAX_UNITS, &units, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cap %s: %s", cmd->args.text[HD_OPT_CAP], why.text);
	*out = (uint32_t)floor(units * v);
	return *out ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"--cap %s: a rank holds at least one chunk, 1/%u", cmd->args.text[HD_OPT_CAP], v);
}

static enum hd_err by_name(struct hd_cmd *cmd, struct hd_schedules *out)
{
	struct hd_schedule_ask ask = { .name = cmd->args.text[HD_OPT_SCHEDULE] };
	const struct { enum hd_opt opt; uint32_t *to; } fields[] = {
		{ HD_OPT_RANKS, &ask.p }, { HD_OPT_VNS, &ask.m }, { HD_OPT_CHUNKS, &ask.v }, { HD_OPT_GROUP, &ask.group },
	};
	static const struct { enum hd_opt opt; const char *name; } of_one[] = {
		{ HD_OPT_GROUP, "interleaved" }, { HD_OPT_REPLICAS, "1f1b-rr" }, { HD_OPT_CAP, "zb-auto" },
	};
	const struct hd_schedule_kind *kind;
	uint32_t *replicas = NULL;
	enum hd_err err = hd_schedule_kind_find(&kind, ask.name, &cmd->diag);

	if (!err && (!cmd->args.has[HD_OPT_RANKS] || !cmd->args.has[HD_OPT_VNS]))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--schedule %s needs -p RANKS and -m VIRTUAL-NODES",
			ask.name);
	for (size_t i = 0; i < sizeof of_one / sizeof *of_one && !err; i++)
		if (cmd->args.has[of_one[i].opt] && strcmp(kind->name, of_one[i].name) != 0)
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s is of the schedule %s alone; %s takes none",
				hd_opts[of_one[i].opt].name, of_one[i].name,
				kind->name);
	for (size_t i = 0; i < sizeof fields / sizeof *fields && !err; i++)
		err = number(cmd, fields[i].opt, fields[i].to);
	if (!err && cmd->args.has[HD_OPT_CHUNKS] && ask.v == 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "-v 0: a rank holds a chunk of the model at least");
	if (!err && cmd->args.has[HD_OPT_REPLICAS])
		err = counts(cmd, HD_OPT_REPLICAS, &replicas, &ask.nreplicas);
	ask.replicas = replicas;
	struct hd_sim_ask costs = { 0 };
	if (!err)
		err = hd_cmd_sim_ask(cmd, &costs);
	ask.costs = costs.costs;
	if (!err && cmd->args.has[HD_OPT_CAP])
		err = read_cap(cmd, ask.v ? ask.v : kind->vmin, &ask.cap);
	out->at = hd_arena_take(&cmd->arena, 1, sizeof *out->at);
	if (!err && !out->at)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a schedule");
	out->len = 1;
	return err ? err : hd_schedule_make(out->at, &ask, &cmd->arena, &cmd->diag);
}

/* Where schedules come from: lists of a file, a plan (or NULL), else a name. */
struct source { bool lists; struct hd_plan *plan; };

static enum hd_err of_plan(struct hd_cmd *cmd, const char *text, size_t len, struct hd_schedules *out,
	struct hd_plan *plan)
{
	out->at = hd_arena_take(&cmd->arena, 1, sizeof *out->at);
	out->len = 1;
	if (!plan || !out->at)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a plan");
	enum hd_err err = hd_plan_parse(plan, text, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);
	return err ? err : hd_schedule_of_plan(out->at, plan, &cmd->arena, &cmd->diag);
}

static enum hd_err read_any(struct hd_cmd *cmd, struct hd_schedules *out, struct source *from)
{
	static const enum hd_opt of_names[] = { HD_OPT_RANKS, HD_OPT_VNS, HD_OPT_CHUNKS, HD_OPT_GROUP,
		HD_OPT_REPLICAS, HD_OPT_CAP };
	uint8_t *bytes;
	size_t len;
	enum hd_err err;

	*from = (struct source){ .lists = false };
	if ((cmd->args.npos == 1) == cmd->args.has[HD_OPT_SCHEDULE])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"either a FILE or --schedule NAME says which schedule; --schedule help lists the "
			"names");
	if (!cmd->args.npos)
		return by_name(cmd, out);
	for (size_t i = 0; i < sizeof of_names / sizeof *of_names; i++)
		if (cmd->args.has[of_names[i]])
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s belongs to --schedule; the file says it itself",
				hd_opts[of_names[i]].name);
	err = hd_file_read_all(&cmd->fs, cmd->args.pos[0], &cmd->arena, HD_SCHEDULE_FILE_BYTES, &bytes, &len,
		&cmd->diag);
	if (!err && hd_cmd_is_plan((const char *)bytes)) {
		from->plan = hd_arena_take(&cmd->arena, 1, sizeof *from->plan);
		return of_plan(cmd, (const char *)bytes, len, out, from->plan);
	}
	from->lists = true;
	err = err ? err : hd_schedules_parse(out, (const char *)bytes, len, cmd->args.pos[0], &cmd->arena,
		&cmd->diag);
	return err || out->len ? err : hd_fail(&cmd->diag, HD_E_INPUT, "%s: there is no schedule in it",
		cmd->args.pos[0]);
}

static uint32_t word_of(const struct hd_cmd *cmd, enum hd_opt opt, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; cmd->args.has[opt] && i < n; i++)
		if (!strcmp(cmd->args.text[opt], names[i]))
			return i;
	return 0;
}

enum hd_err hd_cmd_shadows(struct hd_cmd *cmd, struct hd_schedule *s, const struct hd_sim_setting *set)
{
	const struct hd_redundancy_ask ask = {
		.mode = (enum hd_redundancy)word_of(cmd, HD_OPT_REDUNDANCY, hd_redundancy_names,
			HD_NREDUNDANCIES),
		.place = (enum hd_shadow_place)word_of(cmd, HD_OPT_SHADOWS, hd_shadow_place_names,
			HD_NSHADOW_PLACES), .setting = set };
	struct hd_diag why = { "" };

	if (cmd->args.has[HD_OPT_SHADOWS] && ask.mode == HD_REDUNDANCY_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--shadows says where the work of --redundancy stands: give that too");
	enum hd_err err = hd_redundancy_add(s, s, &ask, &cmd->arena, &why);
	return err ? hd_fail(&cmd->diag, err, "--redundancy %s: %s", hd_redundancy_names[ask.mode],
		why.text) : HD_OK;
}

/* By the even costs of --costs and --comm. */
static enum hd_err add_shadows(struct hd_cmd *cmd, struct hd_schedules *all)
{
	struct hd_sim_ask costs;
	enum hd_err err = hd_cmd_sim_ask(cmd, &costs);

	for (uint32_t i = 0; !err && i < all->len; i++) {
		struct hd_stage_costs even;
		const struct hd_sim_setting set = { .costs = &even, .hop = costs.costs.hop };
		err = hd_stage_costs_even(&even, &costs.costs, all->at[i].nstages, &cmd->arena, &cmd->diag);
		err = err ? err : hd_cmd_shadows(cmd, &all->at[i], &set);
	}
	return err;
}

enum hd_err hd_cmd_schedules(struct hd_cmd *cmd, struct hd_schedules *out, const struct hd_plan **plan)
{
	struct source from;
	enum hd_err err = read_any(cmd, out, &from);

	*plan = from.plan;
	return err ? err : add_shadows(cmd, out);
}

struct hd_schedule_rules hd_cmd_rules(const struct hd_cmd *cmd)
{
	struct hd_schedule_rules rules = { HD_TRANSPORT_EAGER, 0 };
	const char *name = cmd->args.text[HD_OPT_TRANSPORT];

	for (int t = 0; name && t < HD_NTRANSPORTS; t++)
		if (!strcmp(name, hd_transport_names[t]))
			rules.transport = (enum hd_transport)t;
	if (cmd->args.has[HD_OPT_CREDITS])
		rules.credits = cmd->args.count[HD_OPT_CREDITS] < UINT32_MAX ?
			(uint32_t)cmd->args.count[HD_OPT_CREDITS] : UINT32_MAX;
	return rules;
}

static const char *heading_of(const struct hd_cmd *cmd, const struct hd_schedule *s)
{
	return *s->heading || !cmd->args.npos ? s->heading : cmd->args.pos[0];
}

enum hd_err hd_cmd_schedules_sound(struct hd_cmd *cmd, struct hd_schedules *out)
{
	const struct hd_schedule_rules rules = hd_cmd_rules(cmd);
	struct hd_report report = { 0 };
	struct source from;
	enum hd_err err = read_any(cmd, out, &from);

	for (uint32_t i = 0; !err && i < out->len; i++)
		if (cmd->args.has[HD_OPT_PERIODS] && !out->at[i].prologue)
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s: %s has none, its updates are not delayed",
				hd_opts[HD_OPT_PERIODS].name,
				heading_of(cmd, &out->at[i]));
	if (!err && from.plan) {
		err = hd_plan_check_file(from.plan, &report, &cmd->diag);
		if (err == HD_E_BADPLAN)
			hd_cmd_print_refused(cmd, cmd->args.pos[0], &report);
	}
	for (uint32_t i = 0; !err && from.lists && i < out->len; i++) {
		err = hd_schedule_check(&out->at[i], &rules, &report, &cmd->diag);
		if (err == HD_E_BADPLAN && hd_cmd_lose_made(cmd, &out->at[i]))
			return HD_E_INVAL;
		if (err == HD_E_BADPLAN)
			hd_cmd_print_refused(cmd, heading_of(cmd, &out->at[i]), &report);
	}
	return err ? err : add_shadows(cmd, out);
}

/* ---- costs */

/* Decimal numbers of units with commas between; picoseconds. */
static enum hd_err units(struct hd_cmd *cmd, enum hd_opt opt, int64_t *out, uint32_t most, uint32_t *n)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[opt], strlen(cmd->args.text[opt])),
		*next = text;

	if (!text)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --%s", hd_opts[opt].name);
	for (*n = 0; next; ) {
		char *word = next;
		double v = 0;
		struct hd_diag why = { "" };
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		if (*n == most)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: it is %s", hd_opts[opt].name,
				cmd->args.text[opt], hd_opts[opt].value);
		if (hd_num_f64(word, 0, MAX_UNITS, &v, &why))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: %s", hd_opts[opt].name,
				cmd->args.text[opt], why.text);
		out[(*n)++] = llround(v * (double)HD_UNIT_PS);
	}
	return HD_OK;
}

enum hd_err hd_cmd_sim_ask(struct hd_cmd *cmd, struct hd_sim_ask *out)
{
	int64_t c[3] = { HD_UNIT_PS, HD_UNIT_PS, HD_UNIT_PS }, hop = 0;
	uint32_t n = 3, one;
	struct hd_sim_ask ask = { 0 };
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_COSTS])
		err = units(cmd, HD_OPT_COSTS, c, 3, &n);
	if (!err && cmd->args.has[HD_OPT_COMM])
		err = units(cmd, HD_OPT_COMM, &hop, 1, &one);
	if (!err && n < 2)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--costs %s: it is %s", cmd->args.text[HD_OPT_COSTS],
			hd_opts[HD_OPT_COSTS].value);
	if (n == 2) {
		c[2] = c[1] / 2;                  /* of an odd number of picoseconds I takes one more */
		c[1] -= c[2];
	}
	if (!err && c[0] + c[1] + c[2] == 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--costs: at least one is above 0");
	if (!err && cmd->args.has[HD_OPT_PERIODS] && cmd->args.count[HD_OPT_PERIODS] == 0)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--%s 0: 1 or more", hd_opts[HD_OPT_PERIODS].name);
	err = err ? err : number(cmd, HD_OPT_PERIODS, &ask.steps);
	ask.costs = (struct hd_rank_costs){ c[0], c[1], c[2], hop };
	*out = ask;
	return err;
}
