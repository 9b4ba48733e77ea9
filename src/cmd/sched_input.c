#include "cmd/sched_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"

static bool has(const struct hd_cmd *cmd, enum hd_opt opt) { return cmd->args.has[opt]; }

static enum hd_err read_file(struct hd_cmd *cmd, const char *path, uint8_t **bytes, size_t *len)
{
	return hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_SCHED_FILE, bytes, len, &cmd->diag);
}

/* "NAME:X,NAME:X": calls `put` for each; X is a number in [0, max]. */
static enum hd_err each(struct hd_cmd *cmd, enum hd_opt opt, double max, struct hd_sched_input *in,
	enum hd_err (*put)(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name, double x))
{
	char *at = hd_arena_text(&cmd->arena, cmd->args.text[opt], strlen(cmd->args.text[opt])), *next;
	enum hd_err err = HD_OK;

	if (!at)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --%s", hd_opts[opt].name);
	for (; at && !err; at = next) {
		char *mark = strpbrk(at, ":=");
		double x = 0;
		if ((next = strchr(at, ',')))
			*next++ = 0;
		if (!mark || (next && mark >= next) || mark == at || hd_num_f64(mark + 1, 0, max, &x, NULL))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: \"%.60s\" is not TYPE:NUMBER, the number from 0 to %.10g", hd_opts[opt].name, at, max);
		*mark = 0;
		err = put(cmd, in, at, x);
	}
	return err;
}

static enum hd_err put_type(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name, double x)
{
	if (in->ntypes == HD_SCHED_TYPES || x != floor(x))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cluster: %s:%g: whole numbers of at most %d types", name, x, HD_SCHED_TYPES);
	for (uint32_t t = 0; t < in->ntypes; t++)
		if (!strcmp(in->type[t].name, name))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--cluster names %s twice", name);
	in->type[in->ntypes++] = (struct hd_sched_type){ .name = name, .n = (uint32_t)x };
	return HD_OK;
}

static uint32_t type_of(struct hd_cmd *cmd, const struct hd_sched_input *in, const char *option, const char *name)
{
	for (uint32_t t = 0; t < in->ntypes; t++)
		if (!strcmp(in->type[t].name, name))
			return t;
	(void)hd_fail(&cmd->diag, HD_E_INVAL, "--%s: the cluster has no type \"%.60s\"", option, name);
	return HD_SCHED_NONE;
}

static enum hd_err put_price(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name, double x)
{
	uint32_t t = type_of(cmd, in, "price", name);

	if (t == HD_SCHED_NONE)
		return HD_E_INVAL;
	in->type[t].price_usd_h = x;
	return HD_OK;
}

static enum hd_err put_speed(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name, double x)
{
	uint32_t t = type_of(cmd, in, "speed", name);

	if (t == HD_SCHED_NONE)
		return HD_E_INVAL;
	in->speed[t] = x;
	return HD_OK;
}

static enum hd_err put_revoked(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name, double x)
{
	uint32_t t = type_of(cmd, in, "revoke", name);

	if (t == HD_SCHED_NONE)
		return HD_E_INVAL;
	in->type[t].revoked_per_s = x / 3600;
	return HD_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const struct hd_sched_type *)a)->name, ((const struct hd_sched_type *)b)->name); }

static enum hd_err read_cluster(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *names[HD_SCHED_TYPES];
	enum hd_err err = has(cmd, HD_OPT_POOL) ? each(cmd, HD_OPT_POOL, HD_SCHED_DEVICES, in, put_type)
		: hd_fail(&cmd->diag, HD_E_INVAL, "which devices? --cluster v100:36,p100:36,k80:36");

	if (err)
		return err;
	qsort(in->type, in->ntypes, sizeof *in->type, by_name);
	for (uint32_t t = 0; t < in->ntypes; t++) {
		names[t] = in->type[t].name;
		in->speed[t] = 1;
		if (in->has_rates && hd_rates_type(&in->all, names[t]) == HD_RATES_NONE)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--cluster: %s has no type \"%.60s\"", cmd->args.text[HD_OPT_THROUGHPUTS], names[t]);
	}
	if (has(cmd, HD_OPT_PRICE))
		err = each(cmd, HD_OPT_PRICE, 1e6, in, put_price);
	if (!err && has(cmd, HD_OPT_SPEED))
		err = each(cmd, HD_OPT_SPEED, 1e9, in, put_speed);
	if (!err && has(cmd, HD_OPT_REVOKE))
		err = each(cmd, HD_OPT_REVOKE, 1e6, in, put_revoked);
	if (!err && in->has_rates)
		err = hd_rates_pick(&in->all, in->ntypes, names, &cmd->arena, &in->rates, &cmd->diag);
	return err;
}

static enum hd_err read_rates(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_THROUGHPUTS];
	const struct hd_json *json;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = read_file(cmd, path, &bytes, &len);

	if (!err)
		err = hd_json_parse(&cmd->arena, path, (const char *)bytes, len, &json, &cmd->diag);
	in->has_rates = true;
	return err ? err : hd_rates_read(&in->all, json, &cmd->arena, &cmd->diag);
}

/* "rate=R,seed=N,first=A,end=B,jobs=J,multi,priorities,slo" */
static enum hd_err read_generate(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct hd_job_generator_setting how = { 0 };
	char *at = hd_arena_text(&cmd->arena, cmd->args.text[HD_OPT_GENERATE], strlen(cmd->args.text[HD_OPT_GENERATE])), *next;
	uint64_t seed = 0, jobs = 0;
	struct { const char *key; uint64_t *count; uint64_t max; bool *flag; double *number; } keys[] = {
		{ .key = "rate", .number = &how.per_hour }, { .key = "seed", .count = &seed, .max = UINT32_MAX - 8 },
		{ .key = "first", .count = &in->first, .max = HD_JOB_LIST }, { .key = "end", .count = &in->end, .max = HD_JOB_LIST },
		{ .key = "jobs", .count = &jobs, .max = HD_JOB_LIST }, { .key = "multi", .flag = &how.multi },
		{ .key = "priorities", .flag = &how.priorities }, { .key = "slo", .flag = &how.slos },
	};
	enum { NKEYS = sizeof keys / sizeof *keys };

	for (; at; at = next) {
		char *value = strchr(at, '=');
		size_t k;
		if ((next = strchr(at, ',')))
			*next++ = 0;
		value = value && (!next || value < next) ? value : NULL;
		if (value)
			*value++ = 0;
		for (k = 0; k < NKEYS && strcmp(keys[k].key, at) != 0; k++)
			;
		if (k == NKEYS || (!value != !!keys[k].flag)
			|| (keys[k].count && hd_num_u64(value, keys[k].max, keys[k].count, NULL)) || (keys[k].number && hd_num_f64(value, 0, 1e9,
				keys[k].number, NULL)))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--generate: %s \"%.60s\"; it takes rate=R,seed=N,first=A,end=B,jobs=J,multi,priorities,slo",
				k == NKEYS ? "there is no" : "no such value may be given to", at);
		if (keys[k].flag)
			*keys[k].flag = true;
	}
	if (!in->has_rates)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--generate needs --throughputs: how much work a job is, it takes from there");
	if (!in->end && !jobs)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--generate without an end: give jobs=J, or first=A,end=B to look at those jobs of an endless list");
	if (in->end && in->end <= in->first)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--generate: first=%llu,end=%llu holds no job", (unsigned long long)in->first,
			(unsigned long long)in->end);
	how.seed = (uint32_t)seed;
	in->generates = true;
	in->left = jobs ? jobs : UINT64_MAX;
	in->setting.seed = how.seed;
	return hd_job_generator_init(&in->generator, &how, &in->all, &cmd->diag);
}

static enum hd_err read_trace(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_JOBS];
	struct hd_job_table_how how = { .rates = in->has_rates ? &in->all : NULL, .seed = cmd->args.count[HD_OPT_SEED] };
	uint8_t *bytes;
	size_t len;
	enum hd_err err = read_file(cmd, path, &bytes, &len);

	if (!err && has(cmd, HD_OPT_MAP))
		err = hd_job_columns_parse(&how.columns, cmd->args.text[HD_OPT_MAP], &cmd->arena, &cmd->diag);
	if (err)
		return err;
	const uint8_t *eol = len ? memchr(bytes, '\n', len) : NULL;
	size_t first = eol ? (size_t)(eol - bytes) : len;
	/* told apart by the first line: tabs, bars, commas */
	if (len && memchr(bytes, '\t', first))
		err = hd_job_list_trace(&in->list, path, bytes, len, &cmd->arena, &cmd->diag);
	else if (len && memchr(bytes, '|', first))
		err = hd_job_list_sacct(&in->list, path, bytes, len, &how, &cmd->arena, &cmd->diag);
	else
		err = hd_job_list_csv(&in->list, path, bytes, len, &how, &cmd->arena, &cmd->diag);
	if (!err && in->list.ndropped * 20 > in->list.nrows && !has(cmd, HD_OPT_QUIET))
		fprintf(stderr, "heddle: %s: %llu of %llu rows are no work (no time or no devices, or too many) and are left out\n", path,
			(unsigned long long)in->list.ndropped, (unsigned long long)in->list.nrows);
	return err;
}

enum hd_err hd_sched_input_jobs(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	enum hd_err err = HD_OK;

	if (has(cmd, HD_OPT_THROUGHPUTS))
		err = read_rates(cmd, in);
	if (err)
		return err;
	if (has(cmd, HD_OPT_JOBS) == has(cmd, HD_OPT_GENERATE))
		return hd_fail(&cmd->diag, HD_E_INVAL, "which jobs? either --trace FILE or --generate rate=R,seed=N,jobs=J");
	return has(cmd, HD_OPT_JOBS) ? read_trace(cmd, in) : read_generate(cmd, in);
}

static bool next_job(void *source, struct hd_listed_job *job)
{
	struct hd_sched_input *in = source;

	if (in->generates) {
		if (in->at++ >= in->left)
			return false;
		hd_job_generator_next(&in->generator, job);
		return true;
	}
	if (in->at == in->list.n)
		return false;
	*job = in->list.at[in->at++];
	return true;
}

/* "START,RESIZE,MOVE,PREEMPT" in seconds. */
static enum hd_err read_switching(struct hd_cmd *cmd, struct hd_switch_costs *costs)
{
	double *to[] = { &costs->start_s, &costs->resize_s, &costs->move_s, &costs->preempt_s };
	const char *at = cmd->args.text[HD_OPT_SWITCHING];

	for (size_t i = 0; i < 4; i++) {
		char digits[40];
		size_t len = strcspn(at, ",");
		bool last = at[len] == 0;
		if (len < sizeof digits) {
			memcpy(digits, at, len);
			digits[len] = 0;
		}
		if (len >= sizeof digits || last != (i == 3) || hd_num_f64(digits, 0, 1e9, to[i], NULL))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--switching %s: four numbers of seconds, START,RESIZE,MOVE,PREEMPT",
				cmd->args.text[HD_OPT_SWITCHING]);
		at += len + !last;
	}
	return HD_OK;
}

static enum hd_err seconds_of(struct hd_cmd *cmd, enum hd_opt opt, double *out)
{
	struct hd_diag why = { "" };

	if (has(cmd, opt) && hd_num_f64(cmd->args.text[opt], 0, 1e9, out, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s", hd_opts[opt].name, why.text);
	return HD_OK;
}

enum hd_err hd_sched_input(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct hd_sched_sim_setting *set = &in->setting;
	enum hd_err err;

	*in = (struct hd_sched_input){ 0 };
	err = hd_sched_input_jobs(cmd, in);
	if (!err)
		err = read_cluster(cmd, in);
	set->costs = HD_SWITCH_COSTS;
	if (!err && has(cmd, HD_OPT_SWITCHING))
		err = read_switching(cmd, &set->costs);
	if (!err)
		err = seconds_of(cmd, HD_OPT_ROUND, &set->round_s);
	if (!err)
		err = seconds_of(cmd, HD_OPT_RESET, &set->min_reset_s);
	if (!err)
		err = seconds_of(cmd, HD_OPT_LOST, &set->lost_s);
	if (err)
		return err;
	if (has(cmd, HD_OPT_SEED) && cmd->args.count[HD_OPT_SEED] > UINT32_MAX - 8)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--seed is at most %u", UINT32_MAX - 8);
	if (has(cmd, HD_OPT_SEED))
		set->seed = (uint32_t)cmd->args.count[HD_OPT_SEED];
	set->fidelity = has(cmd, HD_OPT_FAITHFUL) ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	set->ntypes = in->ntypes;
	set->types = in->type;
	/* jobs of a table of times have no kind: their work is seconds on the type of speed 1 */
	set->rates = in->has_rates && (in->generates || !in->list.n || *in->list.at[0].kind) ? &in->rates : NULL;
	set->speed = in->speed;
	set->next = next_job;
	set->source = in;
	set->trace = !in->generates;
	set->first = in->first;
	set->end = in->end;
	set->away_s = 600;
	return HD_OK;
}

enum hd_err hd_sched_input_policy(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name)
{
	/* names that are ours and the published ones, and mean another variant there */
	static const struct { const char *name; enum hd_variant variant; } published[] = { { "fifo", HD_VARIANT_PLAIN }, { "gandiva", HD_VARIANT_PACKED } };
	enum hd_err err;

	in->policy = (struct hd_policy_setting){ .fidelity = in->setting.fidelity };
	if ((err = hd_policy_parse(&in->policy, name, &cmd->diag)))
		return err;
	in->policy.fidelity = in->setting.fidelity;
	in->policy.seed = in->setting.seed;
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		if (in->setting.fidelity == HD_FIDELITY_GAVEL && !strcmp(name, published[i].name))
			in->policy.variant = published[i].variant;
	in->setting.policy = &in->policy;
	in->at = 0;
	if (in->generates) {
		struct hd_job_generator_setting how = in->generator.setting;
		err = hd_job_generator_init(&in->generator, &how, &in->all, &cmd->diag);
	}
	return err;
}
