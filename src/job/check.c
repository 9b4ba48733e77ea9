#include "job/int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/names.h"
#include "base/near.h"
#include "notice/notice.h"
#include "notice/place.h"
#include "graph/lora.h"
#include "graph/model.h"
#include "plan/comm.h"
#include "pipeline/redundancy.h"
#include "job/lr.h"
#include "job/measures.h"

static bool is_given(const struct hd_job *job, enum hd_job_key key) { return job->value[key].origin !=
	HD_FROM_DEFAULT; }

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
	hd_job_at(reader, is_given(job, HD_JOB_CELLS) ? HD_JOB_CELLS : HD_JOB_MODE);
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
	if (betas->nlist != 2 || betas->list[0] >= 1 || betas->list[1] >= 1)
		return hd_job_refuse(reader, "optim.betas takes two numbers below 1, as [0.9, 0.999]");
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

/* The arguments of a built-in model as its own table reads them, complete and in its order: so
 * the hash does not depend on how, or whether, a default was written. Those that came after the
 * first hashes are left out while they are the default. */
static enum hd_err fill_args(struct hd_job_reader *reader, const struct hd_model_row *row)
{
	struct hd_job_value *v = &reader->job->value[HD_JOB_MODEL_ARGS];
	struct hd_model_arg given[HD_JOB_MAX_ARGS];
	struct hd_model_value value[HD_MAX_ARGS];
	struct hd_job_arg *arg = hd_arena_take(reader->arena, HD_MAX_ARGS, sizeof *arg);
	struct hd_diag why = { "" };
	struct hd_text text;
	uint32_t n = 0;

	hd_job_at(reader, HD_JOB_MODEL_ARGS);
	for (uint32_t i = 0; i < v->nargs; i++)
		given[i] = (struct hd_model_arg){ v->arg[i].name, v->arg[i].text };
	if (arg && hd_model_args(row, given, v->nargs, value, &why))
		return hd_job_refuse(reader, "model.args: %.300s", why.text);
	for (const struct hd_model_param *p = row->param; arg && p->name; p++) {
		const struct hd_model_value *at = &value[p - row->param];
		if (!hd_model_arg_listed(p, at))
			continue;
		hd_text_init(&text, reader->arena);
		if (p->kind == HD_ARG_WORD)
			hd_text_add(&text, at->word);
		else
			hd_model_arg_print(&text, p, at);
		if (text.full)
			arg = NULL;
		else
			arg[n++] = (struct hd_job_arg){ .name = p->name, .text = text.at,
				.is_word = p->kind == HD_ARG_WORD };
	}
	if (!arg)
		return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the arguments of a model");
	v->arg = arg;
	v->nargs = n;
	return HD_OK;
}

/* What a loss lets evaluations count; a loss of the graph's own may be anything. */
static unsigned of_loss(const struct hd_job *job)
{
	static const struct { const char *words; unsigned of; } rows[] = {
		{ "cross-entropy|soft-cross-entropy|kl", HD_OF_CLASSES },
		{ "bce", HD_OF_BOTH }, { "mse|l1|smooth-l1|huber", HD_OF_NUMBERS },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (hd_job_has_word(rows[i].words, hd_job_text(job, HD_JOB_LOSS)))
			return rows[i].of;
	return HD_OF_BOTH | HD_OF_NUMBERS;
}

/* A word of a key that goes by a measure, or of eval.metrics. */
static enum hd_err check_measure(struct hd_job_reader *reader, const char *dotted, const char *word, bool val)
{
	const struct hd_job *job = reader->job;
	const enum hd_measure m = hd_measure_find(word, val);

	if (m == HD_NMEASURES ? strcmp(word, "perplexity") != 0 ||
		hd_job_has_word("cross-entropy|soft-cross-entropy|none", hd_job_text(job, HD_JOB_LOSS)) :
		(hd_measures[m].of & of_loss(job)) != 0)
		return HD_OK;
	return hd_job_refuse(reader, "%s is %s, which a model with model.loss %s does not have; use %s",
		dotted,
		word, hd_job_text(job, HD_JOB_LOSS), val ? "val_loss" : "loss");
}

static enum hd_err check_metrics(struct hd_job_reader *reader)
{
	const struct hd_job_value *v = &reader->job->value[HD_JOB_METRICS];
	enum hd_err err = HD_OK;

	hd_job_at(reader, HD_JOB_METRICS);
	for (uint32_t i = 0; i < v->nargs && !err; i++) {
		struct hd_near near = hd_near_to(v->arg[i].text);
		for (int m = 0; m < HD_NMEASURES; m++)
			hd_near_offer(&near, hd_measures[m].word);
		err = hd_measure_find(v->arg[i].text, false) != HD_NMEASURES ?
			check_measure(reader, "eval.metrics", v->arg[i].text, false) :
			hd_job_refuse(reader, "eval.metrics: there is no \"%.40s\"%s%s%s; there are "
			"accuracy, top-2, -3, -5, -10, precision, recall and f1 with -macro, -micro or "
				"-binary, "
			"auroc, mae, mse, r2", v->arg[i].text, near.best ? "; did you mean '" : "",
			near.best ? near.best : "", near.best ? "'?" : "");
	}
	return err;
}

/* Rows are divided by the sum of their weights: with none the loss is 0, which looks like success. */
static enum hd_err check_class_weights(struct hd_job_reader *reader)
{
	const struct hd_job_value *v = &reader->job->value[HD_JOB_CLASS_WEIGHTS];
	bool any = !v->nlist;

	for (uint32_t i = 0; i < v->nlist; i++)
		any = any || (float)v->list[i] > 0;
	if (any)
		return HD_OK;
	hd_job_at(reader, HD_JOB_CLASS_WEIGHTS);
	return hd_job_refuse(reader, "loss.class_weights are all 0: nothing would be learnt; give a class "
		"that counts a weight above 0");
}

/* A target that no run can miss or reach was meant in other units, or of another metric. */
static enum hd_err check_eval(struct hd_job_reader *reader)
{
	static const struct { double lo, hi; const char *range; } of[] = {
		[HD_METRIC_LOSS] = { -1e30, 1e30, "" },
		[HD_METRIC_ACCURACY] = { 0, 1, "a share from 0 to 1: 0.6 for 60 %" },
		[HD_METRIC_PERPLEXITY] = { 1, 1e30, "a number from 1 on" },
	};
	const struct hd_job *job = reader->job;
	const struct hd_job_value *target = &job->value[HD_JOB_TARGET];
	const enum hd_measure measure = hd_measure_find(hd_job_text(job, HD_JOB_METRIC), false);
	int64_t metric = hd_job_int(job, HD_JOB_METRIC);
	enum hd_err err;

	/* measures are shares, but for errors */
	if (metric > HD_METRIC_PERPLEXITY)
		metric = hd_measures[measure].of == HD_OF_NUMBERS ? HD_METRIC_LOSS : HD_METRIC_ACCURACY;
	hd_job_at(reader, HD_JOB_METRIC);
	if ((err = check_measure(reader, "eval.metric", hd_job_text(job, HD_JOB_METRIC), false)) ||
		(err = check_metrics(reader)))
		return err;
	hd_job_at(reader, HD_JOB_CKPT_BEST);
	if ((err = check_measure(reader, "checkpoint.best", hd_job_text(job, HD_JOB_CKPT_BEST), true)))
		return err;
	hd_job_at(reader, HD_JOB_EVAL_WEIGHTS);
	if (hd_job_int(job, HD_JOB_EVAL_WEIGHTS) == HD_EVAL_EMA && job->value[HD_JOB_EMA].is_none)
		return hd_job_refuse(reader, "eval.weights: ema needs optim.ema.decay, which keeps means "
			"of the "
			"parameters, as 0.999");
	if (hd_job_int(job, HD_JOB_EVAL_WEIGHTS) == HD_EVAL_EMA && hd_job_int(job, HD_JOB_SYNC) !=
		HD_SYNC_ALLREDUCE)
		return hd_job_refuse(reader, "eval.weights: ema evaluates where all means are, and with "
			"comm.sync: %s they are spread: leave it out, and ask `heddle eval RUN --ema`, which "
			"reads a checkpoint", hd_job_text(job, HD_JOB_SYNC));
	hd_job_at(reader, HD_JOB_TARGET);
	if (!target->is_none && (target->f < of[metric].lo || target->f > of[metric].hi))
		return hd_job_refuse(reader, "eval.target is %g, but eval.metric %s is %s", target->f,
			hd_job_text(job, HD_JOB_METRIC), of[metric].range);
	return HD_OK;
}

/* Looks are taken by each worker, between two steps. */
static enum hd_err check_judges(struct hd_job_reader *reader)
{
	static const enum hd_job_key of_stop[] = { HD_JOB_STOP_METRIC, HD_JOB_STOP_EVERY, HD_JOB_STOP_DELTA,
		HD_JOB_STOP_MODE };
	const struct hd_job *job = reader->job;
	const struct { bool wanted; enum hd_job_key key, metric; } judge[] = {
		{ hd_job_int(job, HD_JOB_SCHEDULE) == HD_LR_PLATEAU, HD_JOB_SCHEDULE, HD_JOB_LR_METRIC },
		{ !job->value[HD_JOB_STOP_PATIENCE].is_none, HD_JOB_STOP_PATIENCE, HD_JOB_STOP_METRIC } };
	char dotted[HD_DOTTED_CAP], word[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof of_stop / sizeof *of_stop && !judge[1].wanted; i++) {
		hd_job_at(reader, of_stop[i]);
		if (!hd_job_is_left_out(reader, of_stop[i]))
			return hd_job_refuse(reader, "%s has no meaning without stop.patience; leave it out",
				hd_job_dotted(of_stop[i], dotted));
	}
	for (size_t i = 0; i < 2; i++) {
		const int64_t metric = hd_job_int(job, judge[i].metric);
		if (!judge[i].wanted)
			continue;
		hd_job_at(reader, judge[i].key);
		hd_job_dotted(judge[i].key, dotted);
		hd_job_dotted(judge[i].metric, word);
		if (strcmp(hd_job_text(job, HD_JOB_UPDATE), "flush") != 0)
			return hd_job_refuse(reader, "%s looks between two steps, and those of "
				"optim.update: %s "
				"overlap; leave one of them out", dotted, hd_job_text(job, HD_JOB_UPDATE));
		if (metric != HD_JUDGE_LOSS && hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES)
			return hd_job_refuse(reader, "%s measures where the whole model is, and with "
				"comm.sync: "
				"stages no worker has it: write %s: loss", dotted, word);
		enum hd_err err = check_measure(reader, word, hd_job_text(job, judge[i].metric), true);
		if (err)
			return err;
	}
	return HD_OK;
}

static enum hd_err check_weights(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_WEIGHTS_SKIP);
	if (reader->job->value[HD_JOB_WEIGHTS].is_none && reader->job->value[HD_JOB_WEIGHTS_SKIP].nargs)
		return hd_job_refuse(reader,
			"model.weights_skip has no meaning without model.weights; leave it out");
	return HD_OK;
}

static enum hd_err without_args(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_MODEL_ARGS);
	if (reader->job->value[HD_JOB_MODEL_ARGS].nargs)
		return hd_job_refuse(reader, "model.args belong to built-in models; a graph file takes none");
	return HD_OK;
}

static enum hd_err check_lora_numbers(struct hd_job_reader *reader, enum hd_job_key key)
{
	const struct hd_job_value *v = &reader->job->value[key];
	char pattern[HD_MAX_NAME], dotted[HD_DOTTED_CAP];
	double number = 0;

	hd_job_at(reader, key);
	for (uint32_t i = 0; i < v->nargs; i++) {
		bool fits = hd_lora_split(v->arg[i].text, pattern, &number);
		if (fits && key == HD_JOB_LORA_RANKS)
			fits = number >= 1 && number <= HD_LORA_MAX_RANK && number == floor(number);
		if (!fits)
			return hd_job_refuse(reader, "%s: '%s' is no PATTERN=%s, as h.0.*=16",
				hd_job_dotted(key, dotted), v->arg[i].text,
				key == HD_JOB_LORA_RANKS ? "RANK with a whole number from 1 to 4096" :
				"ALPHA with a number from 0 to 1e6");
	}
	return HD_OK;
}

static enum hd_err check_lora(struct hd_job_reader *reader)
{
	static const enum hd_job_key inside[] = { HD_JOB_LORA_TARGETS, HD_JOB_LORA_TRAIN, HD_JOB_LORA_RANKS,
		HD_JOB_LORA_ALPHAS }, alone[] = { HD_JOB_LORA_SCALE, HD_JOB_LORA_DROPOUT };
	struct hd_job *job = reader->job;
	struct hd_job_value *alpha = &job->value[HD_JOB_LORA_ALPHA];
	bool on = hd_job_int(job, HD_JOB_LORA_RANK) > 0;
	char dotted[HD_DOTTED_CAP];

	hd_job_at(reader, HD_JOB_LORA_RANK);
	if (on && !job->value[HD_JOB_LORA_TARGETS].nargs)
		return hd_job_refuse(reader,
			"model.lora.rank needs model.lora.targets: patterns of "
			"the matrices that get adapters, as [h.*.attn.c_attn.weight]");
	hd_job_at(reader, HD_JOB_LORA_ALPHA);
	if (!on && !alpha->is_auto)
		return hd_job_refuse(reader,
			"model.lora.alpha has no meaning without model.lora.rank; leave it out");
	for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
		hd_job_at(reader, inside[i]);
		if (!on && job->value[inside[i]].nargs)
			return hd_job_refuse(reader,
				"%s has no meaning without model.lora.rank; leave it out",
				hd_job_dotted(inside[i], dotted));
	}
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
		hd_job_at(reader, alone[i]);
		if (!on && !hd_job_is_left_out(reader, alone[i]))
			return hd_job_refuse(reader,
				"%s has no meaning without model.lora.rank; leave it out",
				hd_job_dotted(alone[i], dotted));
	}
	for (size_t i = 2; i < sizeof inside / sizeof inside[0]; i++) {
		enum hd_err err = check_lora_numbers(reader, inside[i]);
		if (err)
			return err;
	}
	return HD_OK;
}

static enum hd_err check_shards(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_SEQUENCE_SHARDS);
	if (hd_job_int(reader->job, HD_JOB_SEQUENCE_SHARDS) && hd_job_int(reader->job, HD_JOB_SHARDS) == 1)
		return hd_job_refuse(reader,
			"model.sequence_shards splits in model.shards parts, and that is 1; give "
			"model.shards, or leave this out");
	return HD_OK;
}

static enum hd_err check_graph_file(struct hd_job_reader *reader)
{
	struct hd_job *job = reader->job;
	struct hd_job_value *loss = &job->value[HD_JOB_LOSS];

	hd_job_at(reader, HD_JOB_LOSS);
	if (is_given(job, HD_JOB_LOSS) && strcmp(loss->text, "none") != 0)
		return hd_job_refuse(reader,
			"model.loss is %s, but a graph file has its own loss; write none or leave it out",
			loss->text);
	loss->text = "none";
	const char *word;
	for (size_t len, i = 0; (word = hd_job_word(hd_job_keys[HD_JOB_LOSS].words, (uint32_t)i, &len)); i++)
		loss->i = len == 4 && !memcmp(word, "none", len) ? (int64_t)i : loss->i;
	return without_args(reader);
}

static enum hd_err check_model(struct hd_job_reader *reader)
{
	static const char builtin[] = "builtin:", graph[] = "graph:", onnx[] = "onnx:";
	const char *use = hd_job_text(reader->job, HD_JOB_MODEL);
	const struct hd_model_row *row = NULL;
	struct hd_diag why = { "" };

	hd_job_at(reader, HD_JOB_MODEL);
	if (strncmp(use, onnx, sizeof onnx - 1) == 0 && use[sizeof onnx - 1])
		return without_args(reader);
	if (strncmp(use, graph, sizeof graph - 1) == 0 && use[sizeof graph - 1])
		return check_graph_file(reader);
	if (strncmp(use, builtin, sizeof builtin - 1) != 0)
		return hd_job_refuse(reader,
			"model.use is \"%.60s\"; write builtin:NAME (heddle model ls prints the names), "
			"graph:FILE or onnx:FILE", use);
	if (hd_model_find(use + sizeof builtin - 1, &row, &why))
		return hd_job_refuse(reader, "model.use: %.200s", why.text);
	if (!strcmp(hd_job_text(reader->job, HD_JOB_LOSS), "none")) {
		hd_job_at(reader, HD_JOB_LOSS);
		return hd_job_refuse(reader,
			"model.loss is none, but a built-in model needs one, as cross-entropy or mse");
	}
	return fill_args(reader, row);
}

static enum hd_err check_notice(struct hd_job_reader *reader)
{
	const struct hd_job_value *source = &reader->job->value[HD_JOB_NOTICE_SOURCE],
		*base = &reader->job->value[HD_JOB_NOTICE_BASE];
	struct hd_notice_place place;
	struct hd_diag why = { "" };
	char words[256];

	hd_job_at(reader, HD_JOB_NOTICE_SOURCE);
	if (!hd_notice_is_setting(source->text, words))
		return hd_job_refuse(reader, "elastic.notice.source is \"%.40s\"; there are %s", source->text,
		words);
	hd_job_at(reader, HD_JOB_NOTICE_BASE);
	if (!base->is_auto && hd_notice_place(base->text, 0, &place, &why))
		return hd_job_refuse(reader, "elastic.notice.base is %.300s", why.text);
	return HD_OK;
}

/* The word that another key means, as if it had stood in that one's place. */
static void say(struct hd_job_value *v, const struct hd_job_value *as, int64_t i, const char *word)
{
	*v = *as;
	v->i = i;
	v->text = word;
}

/* redundancy: by-notice are two words in one: which redundancy, and by what it is on. */
static void take_by_notice(struct hd_job *job)
{
	struct hd_job_value *mode = &job->value[HD_JOB_REDUNDANCY], *by = &job->value[HD_JOB_RESILIENCE];

	if (mode->i < HD_NREDUNDANCIES)
		return;
	say(by, mode, HD_RESILIENCE_BY_NOTICE, "by-notice");
	say(mode, mode, HD_REDUNDANCY_LAZY, hd_redundancy_names[HD_REDUNDANCY_LAZY]);
}

/* Words that are a redundancy. Of two keys that say different ones the later word counts (file, environment,
 * -s), and both keys are from there: a run keeps what was set. At the same place they contradict each
 * other. */
static enum hd_err take_way(struct hd_job_reader *reader)
{
	static const enum hd_redundancy is[HD_NRESILIENCES] = { [HD_RESILIENCE_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_RESILIENCE_EAGER] = HD_REDUNDANCY_EAGER, [HD_RESILIENCE_FULL] = HD_REDUNDANCY_FULL };
	struct hd_job *job = reader->job;
	struct hd_job_value *mode = &job->value[HD_JOB_REDUNDANCY], *by = &job->value[HD_JOB_RESILIENCE];
	const enum hd_redundancy way = is[by->i];

	if (by->i < HD_RESILIENCE_CHECKPOINT)
		return HD_OK;
	hd_job_at(reader, HD_JOB_RESILIENCE);
	if (by->i == HD_RESILIENCE_REROUTE && !job->value[HD_JOB_PAR_REPLICAS].is_auto &&
		hd_job_int(job, HD_JOB_PAR_REPLICAS) == 1)
		return hd_job_refuse(reader, "elastic.resilience: reroute lets peers in other pipelines go "
			"on, and with parallel.replicas: 1 there is none: write 2 or more, or checkpoint");
	const uint32_t least = hd_job_least_pipelines(job);
	if (least > 1 && !job->value[HD_JOB_PAR_REPLICAS].is_auto &&
		hd_job_int(job, HD_JOB_PAR_REPLICAS) < least)
		return hd_job_refuse(reader, "elastic.resilience: %s keeps %u pipelines, and "
			"parallel.replicas is %lld: write %u or more", by->text, least,
			(long long)hd_job_int(job, HD_JOB_PAR_REPLICAS), least);
	if (least > 1 && !job->value[HD_JOB_PAR_COPIES].is_none)
		return hd_job_refuse(reader, "elastic.resilience: %s keeps %u whole pipelines, and "
			"parallel.copies has stages in other numbers: leave one of them out", by->text,
			least);
	if (mode->i == (int64_t)way)
		return HD_OK;
	if (mode->origin == by->origin)
		return hd_job_refuse(reader, "elastic.resilience: %s is redundancy %s, and "
			"elastic.redundancy is %s: leave one of them out", by->text,
			hd_redundancy_names[way], mode->text);
	if (mode->origin > by->origin)
		say(by, mode, HD_RESILIENCE_GIVEN, "given");
	else
		say(mode, by, way, hd_redundancy_names[way]);
	return HD_OK;
}

/* Of state that every worker holds there is nothing to hold twice. */
static enum hd_err check_redundancy(struct hd_job_reader *reader)
{
	static const char *const why[] = {
		[HD_SYNC_ALLREDUCE] = "every worker holds all of the state, and any may be lost as it is",
		[HD_SYNC_SHARDED] = "comm.copies says how many workers hold each part",
		[HD_SYNC_SERVER] = "comm.copies says how many workers hold each part",
	};
	struct hd_job *job = reader->job;
	const int64_t sync = hd_job_int(job, HD_JOB_SYNC);

	take_by_notice(job);
	const enum hd_err err = take_way(reader);
	if (err)
		return err;
	const int64_t mode = hd_job_int(job, HD_JOB_REDUNDANCY);
	hd_job_at(reader, HD_JOB_RESILIENCE);
	if (hd_job_int(job, HD_JOB_RESILIENCE) != HD_RESILIENCE_GIVEN && sync != HD_SYNC_STAGES)
		return hd_job_refuse(reader, "elastic.resilience: %s turns the redundancy of stages "
			"(comm.sync: stages) on and off; with comm.sync: %s %s: leave it out",
			hd_job_text(job, HD_JOB_RESILIENCE), hd_job_text(job, HD_JOB_SYNC), why[sync]);
	hd_job_at(reader, HD_JOB_REDUNDANCY);
	if (mode != HD_REDUNDANCY_NONE && sync != HD_SYNC_STAGES)
		return hd_job_refuse(reader, "elastic.redundancy: %s holds the state of stages (comm.sync: "
			"stages) at another worker too; with comm.sync: %s %s: leave it out",
			hd_job_text(job, HD_JOB_REDUNDANCY), hd_job_text(job, HD_JOB_SYNC), why[sync]);
	if (mode == HD_REDUNDANCY_NONE || mode == HD_REDUNDANCY_LAZY)
		return HD_OK;
	if (strcmp(hd_job_text(job, HD_JOB_UPDATE), "flush") != 0)
		return hd_job_refuse(reader,
			"elastic.redundancy: %s computes with the parameters of the step alone, and "
			"optim.update: %s reads earlier ones: lazy goes with it",
			hd_job_text(job, HD_JOB_REDUNDANCY), hd_job_text(job, HD_JOB_UPDATE));
	return hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_AUTO ? HD_OK : hd_job_refuse(reader,
		"elastic.redundancy: %s goes with one stage a device, and parallel.mode: auto may choose "
		"otherwise: write parallel.mode: pipeline, or redundancy: lazy",
		hd_job_text(job, HD_JOB_REDUNDANCY));
}

/* Partial sums are added up on their way to the owner: a sum that all get, of whole models. */
static enum hd_err check_primitive(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_COMM_PRIMITIVE);
	if (hd_job_int(job, HD_JOB_COMM_PRIMITIVE) != HD_PRIMITIVE_HALVING)
		return HD_OK;
	if (hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_ALLREDUCE)
		return hd_job_refuse(reader,
			"comm.primitive: halving-doubling goes with state that every worker "
			"holds (comm.sync: allreduce), and comm.sync is %s: leave it out, or write direct",
			hd_job_text(job, HD_JOB_SYNC));
	return hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_PIPELINE ? HD_OK : hd_job_refuse(reader,
		"comm.primitive: halving-doubling goes with whole models, and parallel.mode is pipeline: "
		"leave it out, or write direct");
}

/* As of redundancy: a worker that holds everything has nothing to follow. */
static enum hd_err check_standby(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_STANDBY);
	if (hd_job_int(job, HD_JOB_STANDBY) == HD_STANDBY_NONE || hd_job_int(job, HD_JOB_SYNC) ==
		HD_SYNC_STAGES)
		return HD_OK;
	return hd_job_refuse(reader, "elastic.standby: follow has a worker that is left over hold the state "
		"of a stage (comm.sync: stages); with comm.sync: %s it holds what every worker holds: leave "
		"it out", hd_job_text(job, HD_JOB_SYNC));
}

static enum hd_err check_servers(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_COPIES);
	return hd_job_servers(job) >= hd_job_copies(job) || !hd_job_servers(job) ? HD_OK :
		hd_job_refuse(reader, "comm.servers: %u workers hold no comm.copies: %u of each part of the "
			"slots: write as many servers, or more", hd_job_servers(job), hd_job_copies(job));
}

/* Whether it fits the model is seen where its layout is made (engine/task.h). */
static enum hd_err check_comm(struct hd_job_reader *reader)
{
	const struct hd_job_value *settled = &reader->job->value[HD_JOB_COMM_SETTLED];
	struct hd_diag why = { "" };
	struct hd_comm comm;

	hd_job_at(reader, HD_JOB_COMM_SETTLED);
	const enum hd_err err = settled->is_none ? HD_OK :
		hd_comm_read(&comm, settled->text, reader->arena, &why);
	return err != HD_E_INPUT ? err : hd_job_refuse(reader,
		"comm.settled: %s; a run writes it as ORDER ranks LIST segments LIST: leave it out",
		why.text);
}

static enum hd_err check_zones(struct hd_job_reader *reader)
{
	const struct hd_job_value *zones = &reader->job->value[HD_JOB_ZONES];

	hd_job_at(reader, HD_JOB_ZONES);
	for (uint32_t i = 0; i < zones->nargs; i++)
		if (strlen(zones->arg[i].text) > HD_JOB_ZONE || !hd_name_valid(zones->arg[i].text))
			return hd_job_refuse(reader, "workers.zones: \"%.64s\": use 1 to %d of A-Z a-z 0-9 "
				". _ -, beginning with none of . -", zones->arg[i].text, HD_JOB_ZONE);
	return HD_OK;
}

enum hd_err hd_job_check(struct hd_job_reader *reader)
{
	static enum hd_err (*const checks[])(struct hd_job_reader *reader) = {
		check_name, check_length, check_batch, check_split, check_split_seed, check_optim,
			hd_job_check_groups, hd_job_check_terms,
			check_warmup, check_depends, check_mode, check_functions, hd_job_check_cuts,
		check_available, hd_job_check_parallel, check_ckpt_dir, check_class_weights, check_eval,
		check_judges, check_weights, check_lora,
		check_shards, check_notice, check_redundancy, check_standby, check_primitive,
		check_comm, check_servers, check_zones,
		check_model,
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof checks / sizeof checks[0] && !err; i++)
		err = checks[i](reader);
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		reader->job->value[k].is_standard = is_standard(&reader->job->value[k], &reader->standard[k]);
	struct hd_job_value *v = reader->job->value;
	if (!err && hd_job_has_word(SPLIT_BY_HASH, hd_job_text(reader->job, HD_JOB_DATA_KIND)))
		v[HD_JOB_SPLIT_SEED].is_standard = v[HD_JOB_SPLIT_SEED].is_auto ||
			v[HD_JOB_SPLIT_SEED].i == v[HD_JOB_SEED].i || v[HD_JOB_SPLIT].list[0] >= 1;
	return err;
}
