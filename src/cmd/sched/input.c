#include "cmd/sched/input.h"

#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "clustersim/job_input.h"

static bool has(const struct hd_cmd *cmd, enum hd_opt opt) { return cmd->args.has[opt]; }

/* As hd_file_write_atomic() will do it: a new file beside the path takes its place. */
static enum hd_err try_output(struct hd_cmd *cmd, const char *path)
{
	char beside[HD_PATH_CAP];
	struct hd_file file = { 0 };
	struct hd_stat stat;

	if (!hd_fs_stat(&cmd->fs, path, &stat, NULL) && stat.kind == HD_FILE_FOLDER)
		return hd_fail(&cmd->diag, HD_E_INVAL, "cannot write %s: it is a folder; name a file in it",
			path);
	if (snprintf(beside, sizeof beside, "%s.tmp", path) >= (int)sizeof beside)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the name of an output file is longer than %d bytes",
			HD_PATH_CAP - 5);
	enum hd_err err = hd_file_open(&cmd->fs, beside, HD_OPEN_WRITE | HD_OPEN_CREATE, &file, &cmd->diag);
	if (!err)
		err = hd_file_close(&file, &cmd->diag);
	return err ? err : hd_fs_unlink(&cmd->fs, beside, &cmd->diag);
}

enum hd_err hd_sched_outputs(struct hd_cmd *cmd)
{
	static const enum hd_opt outputs[] = { HD_OPT_LOG, HD_OPT_ROWS, HD_OPT_HTML, HD_OPT_OUTPUT };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof outputs / sizeof *outputs && !err; i++)
		if (cmd->args.has[outputs[i]])
			err = try_output(cmd, cmd->args.text[outputs[i]]);
	return err;
}

enum hd_err hd_sched_file(struct hd_cmd *cmd, const char *path, uint8_t **bytes, size_t *len)
{
	return hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_SCHED_FILE, bytes, len, &cmd->diag);
}

enum hd_err hd_sched_json(struct hd_cmd *cmd, const char *path, const struct hd_json **json)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);

	return err ? err : hd_json_parse(&cmd->arena, path, (const char *)bytes, len, json, &cmd->diag);
}

enum hd_err hd_sched_each(struct hd_cmd *cmd, enum hd_opt opt, const char *marks, hd_sched_put *put, void *to)
{
	char *at = hd_arena_text(&cmd->arena, cmd->args.text[opt], strlen(cmd->args.text[opt])), *next;
	enum hd_err err = HD_OK;

	if (!at)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --%s", hd_opts[opt].name);
	for (; at && !err; at = next) {
		if ((next = strchr(at, ',')))
			*next++ = 0;
		char *mark = strpbrk(at, marks);
		if (!*at || mark == at)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %.100s: it is %s", hd_opts[opt].name,
				cmd->args.text[opt], hd_opts[opt].value);
		if (mark)
			*mark++ = 0;
		err = put(cmd, to, at, mark);
	}
	return err;
}

enum hd_err hd_sched_keys(struct hd_cmd *cmd, enum hd_opt opt, uint32_t nkeys,
	const struct hd_sched_key *keys, char *name, char *value)
{
	struct hd_near near = hd_near_to(name);
	struct hd_diag why = { "" };

	for (uint32_t k = 0; k < nkeys; k++) {
		hd_near_offer(&near, keys[k].key);
		if (strcmp(keys[k].key, name) != 0)
			continue;
		if (!value != !!keys[k].flag)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s %s", hd_opts[opt].name, name,
				value ? "takes no value" : "needs a value");
		if (keys[k].flag)
			*keys[k].flag = true;
		else if (keys[k].text)
			*keys[k].text = value;
		else if (keys[k].number ? hd_num_f64(value, keys[k].least, keys[k].most, keys[k].number, &why)
			: hd_num_u64(value, (uint64_t)keys[k].most, keys[k].count, &why))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s: %s", hd_opts[opt].name, name,
				why.text);
		return HD_OK;
	}
	return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: there is no \"%.60s\"%s%s%s; it is %s",
		hd_opts[opt].name, name, near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "", hd_opts[opt].value);
}

static enum hd_err read_rates(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const struct hd_json *json;
	enum hd_err err = hd_sched_json(cmd, cmd->args.text[HD_OPT_THROUGHPUTS], &json);

	in->has_rates = true;
	return err ? err : hd_rates_read(&in->all, json, &cmd->arena, &cmd->diag);
}

struct generate { struct hd_job_generator_setting how; uint64_t seed, first, end, jobs; };

static enum hd_err put_generate(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct generate *g = to;
	const struct hd_sched_key keys[] = {
		{ .key = "rate", .number = &g->how.per_hour, .most = 1e9 }, { .key = "seed", .count = &g->seed, .most = UINT32_MAX - 8 },
		{ .key = "first", .count = &g->first, .most = HD_JOB_LIST }, { .key = "end", .count = &g->end, .most = HD_JOB_LIST },
		{ .key = "jobs", .count = &g->jobs, .most = HD_JOB_LIST }, { .key = "multi", .flag = &g->how.multi },
		{ .key = "priorities", .flag = &g->how.priorities }, { .key = "slo", .flag = &g->how.slos },
	};

	return hd_sched_keys(cmd, HD_OPT_GENERATE, sizeof keys / sizeof *keys, keys, key, value);
}

static enum hd_err read_generate(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct generate g = { 0 };
	enum hd_err err = hd_sched_each(cmd, HD_OPT_GENERATE, ":=", put_generate, &g);

	if (err)
		return err;
	in->first = g.first;
	in->end = g.end;
	if (!in->has_rates)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--generate needs --throughputs: how much work a job is, it takes from there");
	if (!in->end && !g.jobs)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--generate without an end: give jobs=J, or first=A,end=B to look at those jobs of "
			"an endless list");
	if (in->end && in->end <= in->first)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--generate: first=%llu,end=%llu holds no job",
			(unsigned long long)in->first,
			(unsigned long long)in->end);
	g.how.seed = (uint32_t)g.seed;
	in->generates = true;
	in->left = g.jobs ? g.jobs : UINT64_MAX;
	in->setting.seed = g.how.seed;
	return hd_job_generator_init(&in->generator, &g.how, &in->all, &cmd->diag);
}

/* What of an accounting is not in the list, and why. */
static void tell_left_out(const struct hd_cmd *cmd, const char *path, const struct hd_job_list *list)
{
	unsigned long long nbad = list->nbad, ncpu = list->ncpu, nopen = list->nopen;

	if (has(cmd, HD_OPT_QUIET))
		return;
	if (nbad)
		fprintf(stderr, "heddle: %s: %llu row%s could not be read and %s left out:\n", path, nbad,
			nbad == 1 ? "" : "s", nbad == 1 ? "is" : "are");
	for (uint64_t i = 0; i < nbad && i < HD_JOB_BAD; i++)
		fprintf(stderr, "  %s\n", list->bad[i]);
	if (nbad > HD_JOB_BAD)
		fprintf(stderr, "  ... and %llu more\n", nbad - HD_JOB_BAD);
	if (ncpu)
		fprintf(stderr,
			"heddle: %s: %llu job%s without GPUs %s left out (--map gpus=NNodes takes one "
			"device a node)\n", path, ncpu,
			ncpu == 1 ? "" : "s", ncpu == 1 ? "is" : "are");
	if (nopen)
		fprintf(stderr,
			"heddle: %s: %llu job%s still ran when it was written: %s time until then is taken "
			"for all of it\n", path, nopen,
			nopen == 1 ? "" : "s", nopen == 1 ? "its" : "their");
}

static enum hd_err read_trace(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_JOBS];
	struct hd_job_table_how how = { .rates = in->has_rates ? &in->all : NULL,
		.seed = cmd->args.count[HD_OPT_SEED] };
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);

	if (!err && has(cmd, HD_OPT_MAP))
		err = hd_job_columns_parse(&how.columns, cmd->args.text[HD_OPT_MAP], &cmd->arena, &cmd->diag);
	if (err)
		return err;
	err = hd_job_list_read(&in->list, path, bytes, len, &how, &cmd->arena, &cmd->diag);
	if (!err && in->list.ndropped * 20 > in->list.nrows && !has(cmd, HD_OPT_QUIET))
		fprintf(stderr,
			"heddle: %s: %llu of %llu rows are no work (no time or no devices, or too many) and "
			"are left out\n", path,
			(unsigned long long)in->list.ndropped, (unsigned long long)in->list.nrows);
	if (!err)
		tell_left_out(cmd, path, &in->list);
	return err;
}

static void bind_types(const struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *unknown;
	unsigned long long nunknown = hd_job_list_bind_types(&in->list, in->type,
		in->has_rates ? NULL : in->speed, in->ntypes, &unknown);

	if (has(cmd, HD_OPT_ANY_TYPE))
		hd_job_list_free_types(&in->list);

	if (nunknown && !has(cmd, HD_OPT_QUIET))
		fprintf(stderr,
			"heddle: %s: %llu job%s had devices of a type that the cluster has not (%s...) and "
			"may run on any: call the types as "
			"the file does\n", cmd->args.text[HD_OPT_JOBS], nunknown, nunknown == 1 ? "" : "s",
			unknown);
}

enum hd_err hd_sched_input_jobs(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	enum hd_err err = HD_OK;

	if (has(cmd, HD_OPT_THROUGHPUTS))
		err = read_rates(cmd, in);
	if (err)
		return err;
	if (has(cmd, HD_OPT_JOBS) == has(cmd, HD_OPT_GENERATE))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"which jobs? either --trace FILE or --generate rate=R,seed=N,jobs=J");
	return has(cmd, HD_OPT_JOBS) ? read_trace(cmd, in) : read_generate(cmd, in);
}

static enum hd_err time_of(struct hd_cmd *cmd, enum hd_opt opt, double *at_s)
{
	struct hd_diag why = { "" };

	if (has(cmd, opt) && hd_prices_time(cmd->args.text[opt], at_s, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s", hd_opts[opt].name, why.text);
	return HD_OK;
}

enum hd_err hd_sched_filter(struct hd_cmd *cmd, struct hd_job_filter *filter)
{
	enum hd_err err;

	*filter = HD_JOB_FILTER;
	filter->user = cmd->args.text[HD_OPT_ONLY_USER];
	filter->account = cmd->args.text[HD_OPT_ONLY_ACCOUNT];
	filter->partition = cmd->args.text[HD_OPT_ONLY_PARTITION];
	if (cmd->args.count[HD_OPT_MIN_GPUS] > HD_JOB_SCALE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--min-gpus is at most %d", HD_JOB_SCALE);
	filter->min_devices = (uint32_t)cmd->args.count[HD_OPT_MIN_GPUS];
	err = time_of(cmd, HD_OPT_FROM_TIME, &filter->from_s);
	return err ? err : time_of(cmd, HD_OPT_TO_TIME, &filter->to_s);
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

enum hd_err hd_sched_switching(struct hd_cmd *cmd, struct hd_switch_costs *costs)
{
	if (hd_switch_costs_parse(costs, cmd->args.text[HD_OPT_SWITCHING]))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--switching %s: four numbers of seconds, START,RESIZE,MOVE,PREEMPT",
			cmd->args.text[HD_OPT_SWITCHING]);
	return HD_OK;
}

static enum hd_err seconds_of(struct hd_cmd *cmd, enum hd_opt opt, double *out)
{
	struct hd_diag why = { "" };

	if (has(cmd, opt) && hd_num_f64(cmd->args.text[opt], 0, 1e9, out, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s", hd_opts[opt].name, why.text);
	return HD_OK;
}

/* What has no option of its own: numbers of the policy and of the simulation. */
static enum hd_err put_tune(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct hd_sched_input *in = to;
	struct hd_policy_setting *p = &in->tuned;
	struct hd_sched_sim_setting *s = &in->setting;
	const struct hd_sched_key keys[] = {
		{ .key = "kappa", .number = &s->kappa, .least = -1, .most = 1e6 }, { .key = "away", .number = &s->away_s, .most = 1e9 },
		{ .key = "stop", .number = &s->stop_s, .most = 1e12 }, { .key = "failures", .number = &s->failures_per_s, .most = 1 },
		{ .key = "free-switching", .flag = &s->free_switching },
		{ .key = "beta", .number = &p->beta, .least = -1, .most = 1e6 }, { .key = "phi", .number = &p->phi, .least = -1, .most = 1 },
		{ .key = "patience", .number = &p->patience, .most = 1 },
		{ .key = "delay", .number = &p->delay_usd_h, .most = 1e9 }, { .key = "alpha", .number = &p->alpha, .most = 1 }, { .key = "pack", .number = &p->pack_threshold, .most = 2 },
		{ .key = "published", .flag = &p->published }, { .key = "backfill", .flag = &p->backfill }, { .key = "preempt", .flag = &p->preempt },
	};

	return hd_sched_keys(cmd, HD_OPT_TUNE, sizeof keys / sizeof *keys, keys, key, value);
}

/* "partition.gpu=10", "qos.high=2", "share.vision=3": numbers of names. */
static enum hd_err put_slurm_number(struct hd_cmd *cmd, struct hd_slurm_setting *s, char *key,
	const char *value)
{
	static const char *const words[] = { [HD_SLURM_PARTITION] = "partition", [HD_SLURM_QOS] = "qos",
		[HD_SLURM_SHARE] = "share" };
	char *name = strchr(key, '.');
	size_t of = 0;
	double x;

	*name++ = 0;
	while (of < sizeof words / sizeof *words && strcmp(words[of], key) != 0)
		of++;
	if (of == sizeof words / sizeof *words || !*name || !value || hd_num_f64(value, 0, 1e9, &x, NULL) ||
		(of == HD_SLURM_SHARE && !(x > 0)))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--slurm: \"%.20s.%.60s\" is partition.NAME=X, "
			"qos.NAME=X or share.NAME=X, X from 0 to 1e9, a share above 0", key, name);
	if (s->nnumbers == HD_SLURM_NUMBERS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--slurm: more than %d names", HD_SLURM_NUMBERS);
	s->number[s->nnumbers++] = (struct hd_slurm_number){ (enum hd_slurm_of)of, name, x };
	return HD_OK;
}

static enum hd_err put_backfill(struct hd_cmd *cmd, struct hd_slurm_setting *s, const char *word)
{
	static const char *const words[] = { [HD_BACKFILL_CONSERVATIVE] = "conservative",
		[HD_BACKFILL_EASY] = "easy", [HD_BACKFILL_NONE] = "none" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(words[i], word)) {
			s->backfill = (enum hd_backfill)i;
			return HD_OK;
		}
	return hd_fail(&cmd->diag, HD_E_INVAL, "--slurm: backfill=%.40s; it is conservative, easy or none",
		word);
}

static enum hd_err put_slurm(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct hd_slurm_setting *s = to;
	const char *backfill = NULL;
	uint64_t depth = s->depth;
	const struct hd_sched_key keys[] = {
		{ .key = "age", .number = &s->age, .most = 1e9 }, { .key = "fairshare", .number = &s->fairshare, .most = 1e9 },
		{ .key = "size", .number = &s->job_size, .most = 1e9 }, { .key = "partition", .number = &s->partition, .most = 1e9 },
		{ .key = "qos", .number = &s->qos, .most = 1e9 }, { .key = "max-age", .number = &s->max_age_s, .least = 1, .most = 1e12 },
		{ .key = "half-life", .number = &s->half_life_s, .least = 1, .most = 1e12 }, { .key = "limit", .number = &s->limit_s, .least = 1, .most = 1e12 },
		{ .key = "depth", .count = &depth, .most = 1000000 }, { .key = "small", .flag = &s->favor_small }, { .key = "backfill", .text = &backfill },
	};

	if (strchr(key, '.'))
		return put_slurm_number(cmd, s, key, value);
	enum hd_err err = hd_sched_keys(cmd, HD_OPT_SLURM, sizeof keys / sizeof *keys, keys, key, value);
	s->depth = depth ? (uint32_t)depth : 1;
	return err || !backfill ? err : put_backfill(cmd, s, backfill);
}

static enum hd_err put_estimate(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct hd_sched_input *in = to;
	uint64_t r = in->estimate.references, seed = in->estimate.seed;
	const struct hd_sched_key keys[] = {
		{ .key = "q", .number = &in->estimate.q, .least = 1e-6, .most = 1 }, { .key = "r", .count = &r, .most = HD_RATES_KINDS },
		{ .key = "seed", .count = &seed, .most = UINT32_MAX }, { .key = "published", .flag = &in->estimate.published },
	};
	enum hd_err err = hd_sched_keys(cmd, HD_OPT_ESTIMATE, sizeof keys / sizeof *keys, keys, key, value);

	in->estimate.references = (uint32_t)r;
	in->estimate.seed = (uint32_t)seed;
	return err;
}

static enum hd_err read_estimate(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	in->estimate = (struct hd_estimate_setting){ .q = 0.2, .references = 16, .seed = in->setting.seed };
	in->setting.estimate = &in->estimate;
	return hd_sched_each(cmd, HD_OPT_ESTIMATE, "=", put_estimate, in);
}

struct elastic_ask { uint64_t min, max, nvns; const char *speedup; struct hd_sched_elastic *elastic; };

static enum hd_err put_elastic(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct elastic_ask *ask = to;
	const struct hd_sched_key keys[] = {
		{ .key = "min", .count = &ask->min, .most = HD_SCHED_MOST }, { .key = "max", .count = &ask->max, .most = HD_SCHED_MOST },
		{ .key = "vns", .count = &ask->nvns, .most = HD_JOB_SCALE }, { .key = "resize", .number = &ask->elastic->resize_s, .most = 1e6 },
		{ .key = "speedup", .text = &ask->speedup }, { .key = "mixed", .flag = &ask->elastic->mixed },
	};

	return hd_sched_keys(cmd, HD_OPT_ELASTIC, sizeof keys / sizeof *keys, keys, key, value);
}

static enum hd_err read_elastic(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct elastic_ask ask = { .min = 1, .max = 8, .elastic = &in->elastic };
	struct hd_diag why = { "" };
	enum hd_err err = hd_sched_each(cmd, HD_OPT_ELASTIC, ":=", put_elastic, &ask);

	if (err)
		return err;
	err = hd_elastic_make(&in->elastic, ask.min, ask.max, ask.nvns, ask.speedup, &cmd->arena, &why);
	in->setting.elastic = &in->elastic;
	return err ? hd_fail(&cmd->diag, err, "--elastic: %s", why.text) : HD_OK;
}

static enum hd_err put_entity(struct hd_cmd *cmd, void *to, char *name, char *weight)
{
	struct hd_sched_input *in = to;
	struct hd_entity_list list = { in->setting.entities, in->setting.nentities };
	struct hd_diag why = { "" };
	enum hd_err err = hd_entity_add(&list, name, weight, cmd->args.text[HD_OPT_ENTITY_KIND], &cmd->arena,
		&why);

	in->setting.entities = list.at;
	in->setting.nentities = list.n;
	return err ? hd_fail(&cmd->diag, err, "--entities: %s", why.text) : HD_OK;
}

static enum hd_err read_entities(struct hd_cmd *cmd, struct hd_sched_input *in) { return hd_sched_each(cmd,
	HD_OPT_ENTITIES, ":=", put_entity, in); }

static void tell_overload(const struct hd_cmd *cmd, const struct hd_sched_input *in)
{
	const struct hd_job_generator_setting *how = &in->generator.setting;

	if (!in->generates || in->left != UINT64_MAX || in->setting.stop_s > 0 || has(cmd, HD_OPT_QUIET))
		return;
	double load = hd_job_generator_load(how, &in->all, &in->rates, in->type, in->ntypes);
	if (load > 1)
		fprintf(stderr,
			"heddle: rate=%g is about %.1f times what this cluster gets done of jobs as they "
			"come: unless the policy knows which "
			"devices suit them, the queue grows without end, and jobs %llu to %llu may never "
			"all be over. --tune stop=SECONDS ends it; "
			"jobs=J ends the list\n", how->per_hour, load, (unsigned long long)in->first,
			(unsigned long long)in->end - 1);
}

enum hd_err hd_sched_input(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct hd_sched_sim_setting *set = &in->setting;
	enum hd_err err;

	*in = (struct hd_sched_input){ 0 };
	err = hd_sched_input_jobs(cmd, in);
	if (!err)
		err = hd_sched_pool(cmd, in);
	if (!err)
		bind_types(cmd, in);
	if (!err)
		err = hd_sched_split(cmd, in);
	set->costs = HD_SWITCH_COSTS;
	set->away_s = 600;
	if (!err && has(cmd, HD_OPT_SWITCHING))
		err = hd_sched_switching(cmd, &set->costs);
	if (!err)
		err = seconds_of(cmd, HD_OPT_ROUND, &set->round_s);
	if (!err)
		err = seconds_of(cmd, HD_OPT_RESET, &set->min_reset_s);
	if (!err)
		err = seconds_of(cmd, HD_OPT_LOST, &set->lost_s);
	if (!err)
		err = seconds_of(cmd, HD_OPT_DEADLINE_FACTOR, &set->deadline_factor);
	if (!err && has(cmd, HD_OPT_TUNE))
		err = hd_sched_each(cmd, HD_OPT_TUNE, ":=", put_tune, in);
	in->slurm = HD_SLURM_SETTING;
	if (!err && has(cmd, HD_OPT_SLURM))
		err = hd_sched_each(cmd, HD_OPT_SLURM, "=", put_slurm, &in->slurm);
	if (!err && has(cmd, HD_OPT_ELASTIC))
		err = read_elastic(cmd, in);
	if (!err && has(cmd, HD_OPT_ENTITIES))
		err = read_entities(cmd, in);
	if (err)
		return err;
	hd_job_list_bind_accounts(&in->list, set->entities, set->nentities);
	if (has(cmd, HD_OPT_SEED) && cmd->args.count[HD_OPT_SEED] > UINT32_MAX - 8)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--seed is at most %u", UINT32_MAX - 8);
	if (has(cmd, HD_OPT_SEED))
		set->seed = (uint32_t)cmd->args.count[HD_OPT_SEED];
	if (has(cmd, HD_OPT_ESTIMATE) && (err = read_estimate(cmd, in)))
		return err;
	set->fidelity = has(cmd, HD_OPT_FAITHFUL) ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	set->ntypes = in->ntypes;
	set->types = in->type;
	/* jobs of a table of times have no kind: their work is seconds on the type of speed 1 */
	set->rates = in->has_rates && (in->generates || !in->list.n || *in->list.at[0].kind) ? &in->rates :
		NULL;
	set->speed = in->speed;
	set->next = next_job;
	set->source = in;
	set->trace = !in->generates;
	set->first = in->first;
	set->end = in->end;
	tell_overload(cmd, in);
	return HD_OK;
}

enum hd_err hd_sched_lp_limit(struct hd_cmd *cmd, struct hd_policy_setting *set)
{
	uint64_t n = cmd->args.count[HD_OPT_LP_ITERATIONS];

	if (!has(cmd, HD_OPT_LP_ITERATIONS))
		return HD_OK;
	if (!n || n > INT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--lp-iterations is from 1 to %d", INT32_MAX);
	set->lp_iterations = (uint32_t)n;
	return HD_OK;
}

/* Rows that are no policies. */
static enum hd_sim_queue queue_of(const char *name)
{
	return !strcmp(name, "as-it-was") ? HD_QUEUE_RECORDED : !strcmp(name, "slurm") ? HD_QUEUE_SLURM :
		HD_QUEUE_ROUNDS;
}

enum hd_err hd_sched_input_policy(struct hd_cmd *cmd, struct hd_sched_input *in, const char *name)
{
	/* names that are ours and the published ones, and mean another variant there */
	static const struct { const char *name; enum hd_variant variant;
		} published[] = { { "fifo", HD_VARIANT_PLAIN }, { "gandiva", HD_VARIANT_PACKED } };
	enum hd_err err;

	in->at = 0;
	if ((in->setting.queue = queue_of(name)) != HD_QUEUE_ROUNDS) {
		in->setting.slurm = &in->slurm;
		return in->generates ? hd_fail(&cmd->diag, HD_E_INVAL,
			"%s: it is for jobs of a file (--trace), not for generated ones", name) : HD_OK;
	}
	in->policy = in->tuned;
	if ((err = hd_policy_parse(&in->policy, name, &cmd->diag)) ||
		(err = hd_sched_lp_limit(cmd, &in->policy)))
		return err;
	if (in->setting.elastic && !in->compares && !(in->policy.policy->powers & HD_POLICY_ELASTIC))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--elastic: the policy %s runs jobs on the devices they ask for, or not at all",
			name);
	in->policy.fidelity = in->setting.fidelity;
	in->policy.deadlines |= in->policy.fidelity == HD_FIDELITY_EXACT && !in->policy.published;
	in->policy.seed = in->setting.seed;
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		if (in->setting.fidelity == HD_FIDELITY_GAVEL && !strcmp(name, published[i].name))
			in->policy.variant = published[i].variant;
	in->setting.policy = &in->policy;
	if (in->generates) {
		struct hd_job_generator_setting how = in->generator.setting;
		err = hd_job_generator_init(&in->generator, &how, &in->all, &cmd->diag);
	}
	return err;
}
