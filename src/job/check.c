#include "job/int.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/names.h"
#include "pipeline/generate.h"
#include "job/lr.h"

/* The order of all rules, and those of batch, data, optimizer and functions. */

bool hd_job_is_given(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].origin != HD_FROM_DEFAULT;
}

static enum hd_err check_name(struct hd_job_reader *reader)
{
	const char *name = hd_job_text(reader->job, HD_JOB_NAME);

	hd_job_at(reader, HD_JOB_NAME);
	if (strlen(name) > HD_JOB_NAME_CAP || !hd_name_valid(name))
		return hd_job_refuse(reader,
			"job.name is \"%.80s\"; use 1 to %d of A-Z a-z 0-9 . _ -, beginning with none of . -",
			name, HD_JOB_NAME_CAP);
	return HD_OK;
}

/* Of the two the one from nearer to the user counts, so that `-s job.steps=10` shortens a job of epochs. */
static enum hd_err check_length(struct hd_job_reader *reader)
{
	struct hd_job_value *steps = &reader->job->value[HD_JOB_STEPS],
		*epochs = &reader->job->value[HD_JOB_EPOCHS];

	hd_job_at(reader, HD_JOB_STEPS);
	if (steps->is_none && epochs->is_none)
		return hd_job_refuse(reader, "job.steps or job.epochs is missing: say how long to train");
	if (steps->is_none || epochs->is_none)
		return HD_OK;
	if (steps->origin == epochs->origin)
		return hd_job_refuse(reader, "job.steps and job.epochs exclude each other; leave one out");
	struct hd_job_value *loser = steps->origin < epochs->origin ? steps : epochs;
	*loser = (struct hd_job_value){ .type = loser->type, .is_none = true, .text = "none" };
	return HD_OK;
}

/* No virtual node is always empty. */
static bool vns_legal(uint64_t batch, uint64_t nvns) { return (nvns - 1) * hd_ceil_div(batch, nvns) < batch; }

static uint64_t largest_legal(uint64_t batch, uint64_t most)
{
	uint64_t nvns = most < batch ? most : batch;

	while (!vns_legal(batch, nvns))
		nvns--;
	return nvns;
}

static enum hd_err check_batch(struct hd_job_reader *reader)
{
	struct hd_job *job = reader->job;
	struct hd_job_value *vns = &job->value[HD_JOB_VNS];
	uint64_t batch = (uint64_t)hd_job_int(job, HD_JOB_GLOBAL);

	if (vns->is_auto) {
		vns->i = (int64_t)largest_legal(batch, HD_JOB_AUTO_VNS);
		vns->is_auto = false;
	}
	uint64_t nvns = (uint64_t)vns->i, slices = (uint64_t)hd_job_int(job, HD_JOB_SLICES);
	hd_job_at(reader, HD_JOB_VNS);
	if (nvns > batch)
		return hd_job_refuse(reader,
			"batch.virtual_nodes is %llu, more than batch.global %llu; use at most %llu",
			(unsigned long long)nvns, (unsigned long long)batch,
			(unsigned long long)(batch < 65536 ? batch : 65536));
	if (!vns_legal(batch, nvns))
		return hd_job_refuse(reader,
			"batch.virtual_nodes %llu of %llu samples each leave the last one of batch.global "
			"%llu empty; use at most %llu",
			(unsigned long long)nvns, (unsigned long long)hd_ceil_div(batch, nvns),
			(unsigned long long)batch,
			(unsigned long long)largest_legal(batch, nvns));
	job->batch = batch;
	job->nvns = (uint32_t)nvns;
	job->per_vn = hd_ceil_div(batch, nvns);
	if (batch % nvns)
		hd_job_warn(reader,
			"batch.global %llu is no multiple of batch.virtual_nodes %llu: the last virtual "
			"node is shorter",
			(unsigned long long)batch, (unsigned long long)nvns);
	hd_job_at(reader, HD_JOB_SLICES);
	if (slices > job->per_vn)
		return hd_job_refuse(reader,
			"batch.slices is %llu, a virtual node has %llu samples; use at most %llu",
			(unsigned long long)slices, (unsigned long long)job->per_vn,
			(unsigned long long)job->per_vn);
	return HD_OK;
}

/* On Cora in four random parts, all rows of others k epochs late, accuracy fell to 70 % with k = 4. */
enum { MOST_AHEAD = 8, MOST_USUAL = 2 };

static enum hd_err check_close(struct hd_job_reader *reader)
{
	static const enum hd_job_key of[] = { HD_JOB_CLOSE_METRIC, HD_JOB_CLOSE_MARGIN, HD_JOB_CLOSE_EVERY };
	const struct hd_job *job = reader->job;
	const struct hd_job_value *target = &job->value[HD_JOB_CLOSE_TARGET];

	for (size_t i = 0; target->is_none && i < sizeof of / sizeof *of; i++)
		if (job->value[of[i]].i != reader->standard[of[i]].i ||
			job->value[of[i]].f != reader->standard[of[i]].f) {
			hd_job_at(reader, of[i]);
			return hd_job_refuse(reader, "batch.%s says nothing without batch.close.target: "
				"write both, or neither", hd_job_keys[of[i]].key);
		}
	hd_job_at(reader, HD_JOB_CLOSE_TARGET);
	if (!target->is_none && hd_job_int(job, HD_JOB_CLOSE_METRIC) == HD_METRIC_ACCURACY &&
		(target->f < 0 || target->f > 1))
		return hd_job_refuse(reader, "batch.close.target is %g, but batch.close.metric accuracy is a "
			"share from 0 to 1: 0.6 for 60 %%", target->f);
	return HD_OK;
}

/* Cells are equal runs of virtual nodes. With one of them no row would be late. */
static enum hd_err check_mode(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	const int64_t cells = hd_job_int(job, HD_JOB_CELLS), mode = hd_job_int(job, HD_JOB_MODE),
		bound = mode == HD_MODE_BOUNDED || mode == HD_MODE_REPLAY ? hd_job_int(job,
		HD_JOB_STALENESS) : 0;

	hd_job_at(reader, HD_JOB_MODE);
	if (mode != HD_MODE_SYNC && job->nvns < 2)
		return hd_job_refuse(reader, "batch.mode %s is for a graph in several intervals, and "
			"batch.virtual_nodes is 1: write more, or mode sync", hd_job_text(job, HD_JOB_MODE));
	if (mode == HD_MODE_REPLAY && job->value[HD_JOB_REPLAY].is_none)
		return hd_job_refuse(reader, "batch.mode replay needs batch.replay: a run with batch.mode "
			"bounded, or a checkpoint of one");
	hd_job_at(reader, HD_JOB_STALENESS);
	if (bound > MOST_AHEAD)
		return hd_job_refuse(reader, "batch.staleness is %lld: with batch.mode %s a virtual node may "
			"be %d steps ahead of the slowest at most", (long long)bound,
			hd_job_text(job, HD_JOB_MODE), MOST_AHEAD);
	if (bound && hd_job_int(job, HD_JOB_UPDATE) != HD_UPDATE_FLUSH)
		return hd_job_refuse(reader, "batch.staleness is %lld and optim.update is %s: virtual nodes "
			"that run ahead have the weights that they began with: use optim.update flush",
			(long long)bound, hd_job_text(job, HD_JOB_UPDATE));
	if (bound > MOST_USUAL && mode == HD_MODE_BOUNDED && job->value[HD_JOB_CLOSE_TARGET].is_none)
		hd_job_warn(reader, "batch.staleness is %lld: where rows of many edges are so late training "
			"may fail; 1 or 2 is usual, or batch.close, which ends in sync", (long long)bound);
	enum hd_err err = check_close(reader);
	if (err)
		return err;
	if (mode != HD_MODE_EXACT)
		return HD_OK;
	hd_job_at(reader, hd_job_is_given(job, HD_JOB_CELLS) ? HD_JOB_CELLS : HD_JOB_MODE);
	if (cells < 2 || job->nvns % cells)
		return hd_job_refuse(reader, "batch.cells is %lld: with batch.mode exact rows are late from "
			"one cell to another, so write 2 or more, a number that divides "
			"batch.virtual_nodes %u", (long long)cells, job->nvns);
	return HD_OK;
}

static enum hd_err check_split(struct hd_job_reader *reader)
{
	const double *share = reader->job->value[HD_JOB_SPLIT].list;

	hd_job_at(reader, HD_JOB_SPLIT);
	if (share[0] <= 0)
		return hd_job_refuse(reader,
			"data.split leaves nothing to train on; give train a share above 0");
	if (share[0] + share[1] > 1 + 1e-9)
		return hd_job_refuse(reader, "data.split adds up to %g; the shares may be 1 together",
			share[0] + share[1]);
	return HD_OK;
}

#define SPLIT_BY_HASH "idx|cifar|csv|jsonl|parquet|npy|images|webdataset|records"

/* Does the text say every key that fixed the result when hashes began? Only a job.resolved.json does. */
static bool says_all(const struct hd_job *job)
{
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		if (hd_job_keys[k].result == 1 && k != HD_JOB_STEPS && k != HD_JOB_EPOCHS &&
			job->value[k].origin == HD_FROM_DEFAULT)
			return false;
	return true;
}

/* A run that began before there was data.split_seed goes on with the split that it has, which job.seed
 * keyed. */
static enum hd_err check_split_seed(struct hd_job_reader *reader)
{
	struct hd_job_value *v = &reader->job->value[HD_JOB_SPLIT_SEED];

	if (v->origin == HD_FROM_DEFAULT && hd_job_has_word(SPLIT_BY_HASH,
		hd_job_text(reader->job, HD_JOB_DATA_KIND)) && says_all(reader->job)) {
		v->is_auto = true;
		v->text = "auto";
	}
	return HD_OK;
}

/* Keys that only some words of another key honour: given and changed, they would be ignored. */
static const struct { enum hd_job_key key, of; const char *words; } depends[] = {
	{ HD_JOB_SMOOTHING,  HD_JOB_LOSS,      "cross-entropy|soft-cross-entropy" },
	{ HD_JOB_CLASS_WEIGHTS, HD_JOB_LOSS,   "cross-entropy|soft-cross-entropy" },
	{ HD_JOB_IGNORE,     HD_JOB_LOSS,      "cross-entropy" },
	{ HD_JOB_POS_WEIGHT, HD_JOB_LOSS,      "bce" },
	{ HD_JOB_DELTA,      HD_JOB_LOSS,      "huber|smooth-l1" },
	{ HD_JOB_BETAS,      HD_JOB_OPTIM,     "adam|adamw|lion|lamb" },
	{ HD_JOB_EPS,        HD_JOB_OPTIM,     "adam|adamw|adagrad|lamb" },
	{ HD_JOB_MOMENTUM,   HD_JOB_OPTIM,     "momentum|nesterov" },
	{ HD_JOB_FLOOR,      HD_JOB_SCHEDULE,  "linear|cosine|step|polynomial|plateau" },
	{ HD_JOB_EVERY,      HD_JOB_SCHEDULE,  "step|plateau" },
	{ HD_JOB_FACTOR,     HD_JOB_SCHEDULE,  "step|plateau" },
	{ HD_JOB_LR_START,   HD_JOB_SCHEDULE,  "one-cycle" },
	{ HD_JOB_LR_END,     HD_JOB_SCHEDULE,  "one-cycle" },
	{ HD_JOB_LR_POWER,   HD_JOB_SCHEDULE,  "polynomial" },
	{ HD_JOB_LR_METRIC,  HD_JOB_SCHEDULE,  "plateau" },
	{ HD_JOB_LR_PATIENCE, HD_JOB_SCHEDULE, "plateau" },
	{ HD_JOB_LR_THRESHOLD, HD_JOB_SCHEDULE, "plateau" },
	{ HD_JOB_CUTS,       HD_JOB_UPDATE,    "stash|vsync" },
	{ HD_JOB_DATA_COUNT, HD_JOB_DATA_KIND, "synthetic" },
	{ HD_JOB_DATA_PATH,  HD_JOB_DATA_KIND, "idx|cifar|csv|jsonl|parquet|text|tokens|npy|images|webdataset|records|graph" },
	{ HD_JOB_DATA_DIRECT, HD_JOB_DATA_KIND, "webdataset|records" },
	{ HD_JOB_DATA_API,   HD_JOB_DATA_KIND, "webdataset|records" },
	{ HD_JOB_DATA_WINDOW, HD_JOB_DATA_KIND, "webdataset|records" },
	{ HD_JOB_SPLIT_SEED, HD_JOB_DATA_KIND, SPLIT_BY_HASH },
	{ HD_JOB_COLUMNS,    HD_JOB_DATA_KIND, "csv|jsonl|parquet|images" },
	{ HD_JOB_LABEL,      HD_JOB_DATA_KIND, "csv|jsonl|parquet|cifar|images" },
	{ HD_JOB_PACK,       HD_JOB_DATA_KIND, "tokens" },
	{ HD_JOB_BOUNDARIES, HD_JOB_PACK,      "order|fit" },
	{ HD_JOB_CLASSES,    HD_JOB_DATA_KIND, "csv|jsonl|parquet|images" },
	{ HD_JOB_IMAGE_SIZE, HD_JOB_DATA_KIND, "images|webdataset" },
	{ HD_JOB_IMAGE_FIT,  HD_JOB_DATA_KIND, "images|webdataset" },
	{ HD_JOB_TOKENIZER,  HD_JOB_DATA_KIND, "csv|jsonl|parquet" },
	{ HD_JOB_PRODUCTS,   HD_JOB_KERNELS,   "auto|portable" },
	{ HD_JOB_MODE,       HD_JOB_DATA_KIND, "graph" },
	{ HD_JOB_STALENESS,  HD_JOB_MODE,      "exact|bounded|replay" },
	{ HD_JOB_CELLS,      HD_JOB_MODE,      "exact" },
	{ HD_JOB_REPLAY,     HD_JOB_MODE,      "replay" },
	{ HD_JOB_CLOSE_TARGET, HD_JOB_MODE,    "exact|bounded|replay" },
	{ HD_JOB_CLOSE_METRIC, HD_JOB_MODE,    "exact|bounded|replay" },
	{ HD_JOB_CLOSE_MARGIN, HD_JOB_MODE,    "exact|bounded|replay" },
	{ HD_JOB_CLOSE_EVERY, HD_JOB_MODE,     "exact|bounded|replay" },
};

/* The same of functions, where a word that is said later turns keys off: they rest, so that one word changes
 * how a run goes on. With kind none the whole table rests. */
static const struct { enum hd_job_key key, of; const char *words; } rests[] = {
	{ HD_JOB_FN_ENDPOINT, HD_JOB_FN_KIND,  "http|lambda" },
	{ HD_JOB_FN_LISTEN,  HD_JOB_FN_KIND,   "http|lambda" },
	{ HD_JOB_FN_REPORTS, HD_JOB_FN_KIND,   "http|lambda" },
	{ HD_JOB_FN_NAME,    HD_JOB_FN_KIND,   "lambda" },
	{ HD_JOB_FN_MIN,     HD_JOB_FN_SIZE,   "auto" },
	{ HD_JOB_FN_MAX,     HD_JOB_FN_SIZE,   "auto" },
	{ HD_JOB_FN_BUDGET,  HD_JOB_FN_SIZE,   "auto" },
};

static bool is_standard(const struct hd_job_value *a, const struct hd_job_value *b)
{
	if (a->is_none != b->is_none || a->is_auto != b->is_auto || a->i != b->i || a->f != b->f ||
		a->nlist != b->nlist || a->nargs != b->nargs ||
		a->ncalls != b->ncalls || a->ngroups != b->ngroups || a->nterms != b->nterms)
		return false;
	return !a->nlist || memcmp(a->list, b->list, a->nlist * sizeof *a->list) == 0;
}

bool hd_job_is_left_out(const struct hd_job_reader *reader, enum hd_job_key key)
{
	const struct hd_job_value *v = &reader->job->value[key], *standard = &reader->standard[key];

	return is_standard(v, standard) && (hd_job_keys[key].type != HD_T_TEXT || v->is_none ||
		!strcmp(v->text, standard->text));
}

static enum hd_err check_depends(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	char dotted[HD_DOTTED_CAP], of[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof depends / sizeof depends[0]; i++) {
		const char *word = hd_job_text(job, depends[i].of);
		if (hd_job_has_word(depends[i].words, word) || hd_job_is_left_out(reader, depends[i].key))
			continue;
		hd_job_at(reader, depends[i].key);
		return hd_job_refuse(reader, "%s has no meaning with %s %s (only with %s); leave it out",
			hd_job_dotted(depends[i].key, dotted),
			hd_job_dotted(depends[i].of, of), word, depends[i].words);
	}
	return HD_OK;
}

/* Was `key` said to be of use, in spite of the word of `of`? A job.resolved.json says all keys at once, those
 * that rested, too. */
static bool is_meant(const struct hd_job_reader *reader, enum hd_job_key key, enum hd_job_key of, bool equal)
{
	const uint8_t origin = reader->job->value[key].origin, than = reader->job->value[of].origin;

	if (hd_job_is_left_out(reader, key) || (origin == HD_FROM_FILE && says_all(reader->job)))
		return false;
	return equal ? origin >= than : origin > than;
}

/* graph.price_file stands for functions.price_file in jobs without functions, too. */
static enum hd_err check_no_functions(struct hd_job_reader *reader)
{
	char dotted[HD_DOTTED_CAP];

	for (enum hd_job_key k = HD_JOB_FN_KIND + 1; k <= HD_JOB_FN_REPORTS; k++) {
		if (k == HD_JOB_FN_PRICE || !is_meant(reader, k, HD_JOB_FN_KIND, false))
			continue;
		hd_job_at(reader, k);
		return hd_job_refuse(reader, "%s has no meaning without functions.kind; set that to pool, "
			"http or lambda, or leave this out", hd_job_dotted(k, dotted));
	}
	return HD_OK;
}

static enum hd_err check_resting(struct hd_job_reader *reader)
{
	char dotted[HD_DOTTED_CAP], of[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
		const char *word = hd_job_text(reader->job, rests[i].of);
		if (hd_job_has_word(rests[i].words, word) || !is_meant(reader, rests[i].key, rests[i].of,
			true))
			continue;
		hd_job_at(reader, rests[i].key);
		return hd_job_refuse(reader, "%s has no meaning with %s %s (only with %s); leave one of them "
			"out", hd_job_dotted(rests[i].key, dotted), hd_job_dotted(rests[i].of, of), word,
			rests[i].words);
	}
	return HD_OK;
}

/* Here, before a run has a folder and workers that would each say it. */
static enum hd_err check_functions(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	const char *kind = hd_job_text(job, HD_JOB_FN_KIND), *data = hd_job_text(job, HD_JOB_DATA_KIND),
		*endpoint = hd_job_text(job, HD_JOB_FN_ENDPOINT);

	if (strcmp(kind, "none") == 0)
		return check_no_functions(reader);
	enum hd_err err = check_resting(reader);
	if (err)
		return err;
	hd_job_at(reader, HD_JOB_FN_KIND);
	if (strcmp(data, "graph") != 0)
		return hd_job_refuse(reader, "functions.kind %s has no meaning with data.kind %s (only with "
			"graph); leave it out", kind, data);
	if (job->nvns < 2)
		return hd_job_refuse(reader, "functions.kind %s takes work between intervals, and this graph "
			"is one: set graph.intervals (batch.virtual_nodes) to 2 or more", kind);
	if (strcmp(kind, "pool") == 0 || job->value[HD_JOB_FN_ENDPOINT].is_none ||
		strncmp(endpoint, "https:", 6) != 0 || !job->value[HD_JOB_FN_LISTEN].is_none)
		return HD_OK;
	hd_job_at(reader, HD_JOB_FN_ENDPOINT);
	return hd_job_refuse(reader, "functions at %s cannot reach a worker at 127.0.0.1: say by "
		"functions.listen HOST:0 where they reach this machine", endpoint);
}

/* Of a job of epochs the steps are known with the data (lr.c). */
static enum hd_err check_warmup(struct hd_job_reader *reader)
{
	struct hd_job *job = reader->job;
	struct hd_job_value *of[] = { job->value, reader->standard };

	for (int i = 0; i < 2 && !job->value[HD_JOB_STEPS].is_none; i++)
		if (of[i][HD_JOB_WARMUP].is_auto) {
			of[i][HD_JOB_WARMUP].is_auto = false;
			of[i][HD_JOB_WARMUP].i = (int64_t)hd_lr_auto_warmup(
				(enum hd_lr_kind)hd_job_int(job, HD_JOB_SCHEDULE),
				(uint64_t)hd_job_int(job, HD_JOB_STEPS));
		}
	return HD_OK;
}

/* What auto means by kind of optimizer: the values of the papers. The first row serves all that are not
 * named. */
static const struct optim_auto { const char *kind, *eps, *decay; double eps_value, decay_value, beta[2];
	} optim_autos[] = {
	{ "",        "1e-8",  "0",    1e-8,  0,    { 0.9, 0.999 } },
	{ "adamw",   "1e-8",  "0.01", 1e-8,  0.01, { 0.9, 0.999 } },
	{ "adagrad", "1e-10", "0",    1e-10, 0,    { 0.9, 0.999 } },
	{ "lion",    "1e-8",  "0",    1e-8,  0,    { 0.9, 0.99 } },
	{ "lamb",    "1e-6",  "0.01", 1e-6,  0.01, { 0.9, 0.999 } },
};

static void resolve(struct hd_job_value *v, const char *text, double f, const double *list, uint32_t nlist)
{
	if (!v->is_auto)
		return;
	v->is_auto = false;
	v->text = text;
	v->f = f;
	v->list = list;
	v->nlist = nlist;
}

static enum hd_err check_optim(struct hd_job_reader *reader)
{
	struct hd_job *job = reader->job;
	const struct optim_auto *row = optim_autos;
	struct hd_job_value *of[] = { job->value, reader->standard };
	const struct hd_job_value *betas = &job->value[HD_JOB_BETAS];

	for (size_t i = 1; i < sizeof optim_autos / sizeof optim_autos[0]; i++)
		if (!strcmp(hd_job_text(job, HD_JOB_OPTIM), optim_autos[i].kind))
			row = &optim_autos[i];
	for (int i = 0; i < 2; i++) {
		resolve(&of[i][HD_JOB_BETAS], NULL, 0, row->beta, 2);
		resolve(&of[i][HD_JOB_EPS], row->eps, row->eps_value, NULL, 0);
		resolve(&of[i][HD_JOB_WEIGHT_DECAY], row->decay, row->decay_value, NULL, 0);
	}
	hd_job_at(reader, HD_JOB_EMA_EVERY);
	if (job->value[HD_JOB_EMA].is_none && hd_job_int(job, HD_JOB_EMA_EVERY) != 1)
		return hd_job_refuse(reader, "optim.ema.every has no meaning without optim.ema.decay; "
			"leave it "
			"out");
	hd_job_at(reader, HD_JOB_BETAS);
	if (betas->nlist != 2 || (float)betas->list[0] >= 1 ||
		(float)betas->list[1] >= 1)
		return hd_job_refuse(reader, "optim.betas takes two numbers below 1, as [0.9, 0.999]; of "
			"32-bit floats 0.9999999 is the largest");
	return HD_OK;
}

/* A way up would lead out of the run directory, or say another folder than it seems to. */
static enum hd_err check_ckpt_dir(struct hd_job_reader *reader)
{
	const char *dir = hd_job_text(reader->job, HD_JOB_CKPT_DIR);

	hd_job_at(reader, HD_JOB_CKPT_DIR);
	for (const char *part = dir; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strcspn(part, "/") == 2 && !strncmp(part, "..", 2))
			return hd_job_refuse(reader,
				"checkpoint.dir is \"%.80s\"; write a folder inside the run directory or an "
				"absolute path, without ..", dir);
	}
	return HD_OK;
}

/* Values that the keys allow by their type and this build does not honour. */
static enum hd_err check_available(struct hd_job_reader *reader)
{
	static const enum hd_job_key paths[] = { HD_JOB_CKPT_DIR, HD_JOB_WEIGHTS, HD_JOB_REPLAY,
		HD_JOB_TOKENIZER,
		HD_JOB_DATA_CACHE };
	const struct hd_job *job = reader->job;
	char dotted[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		if (strstr(hd_job_text(job, paths[i]), "://")) {
			hd_job_at(reader, paths[i]);
			return hd_job_refuse(reader,
				"%s: addresses are not available in this build; name a file or folder",
				hd_job_dotted(paths[i], dotted));
		}
	return HD_OK;
}

enum hd_err hd_job_check_each(struct hd_job_reader *reader, hd_job_rule *const *rules, size_t nrules)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < nrules && !err; i++)
		err = rules[i](reader);
	return err;
}

enum hd_err hd_job_check(struct hd_job_reader *reader)
{
	static hd_job_rule *const checks[] = {
		check_name, check_length, check_batch, check_split, check_split_seed, check_optim,
		hd_job_check_groups, hd_job_check_terms, check_warmup, check_depends, check_mode,
		check_functions, hd_job_check_cuts, check_available, hd_job_check_parallel, check_ckpt_dir,
		hd_job_check_class_weights, hd_job_check_measures, hd_job_check_parts, hd_job_check_workers,
		hd_job_check_model,
	};
	enum hd_err err = hd_job_check_each(reader, checks, sizeof checks / sizeof checks[0]);

	for (int k = 0; k < HD_JOB_NKEYS; k++)
		reader->job->value[k].is_standard = is_standard(&reader->job->value[k], &reader->standard[k]);
	struct hd_job_value *v = reader->job->value;
	if (!err && hd_job_has_word(SPLIT_BY_HASH, hd_job_text(reader->job, HD_JOB_DATA_KIND)))
		v[HD_JOB_SPLIT_SEED].is_standard = v[HD_JOB_SPLIT_SEED].is_auto ||
			v[HD_JOB_SPLIT_SEED].i == v[HD_JOB_SEED].i || v[HD_JOB_SPLIT].list[0] >= 1;
	return err;
}
