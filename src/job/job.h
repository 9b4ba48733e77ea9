/* job.h -- what a user asks for: the job file, resolved.
 *
 * One table of keys (job/keys.h) gives type, default, range, whether the key fixes
 * the result (R) and a sentence of help; parser, `config show|check|schema`, the
 * job hash and the documentation derive from it.
 *
 * 1. The result is fixed by the R keys alone, and no R key names hardware.
 * 2. job hash = XXH3-128 of the canonical JSON of all R keys: defaults filled in,
 *    keys sorted bytewise, no spaces, numbers as in NDJSON. Of a FILE it says only that
 *    there is one: its reader joins the digest of its content to the hash. Keys that
 *    came after the first hashes (R = 2) are left out while they have their default;
 *    data.split_seed, whose default is not what runs did before it, while it says what they did.
 * 3. Precedence: default < file < environment HEDDLE_<TABLE>_<KEY> < -s key=value
 *    < option of a verb; each value remembers its origin.
 * 4. Every refusal names file:line:column (or the -s text), what is wrong and what
 *    would be right; unknown keys get a did-you-mean.
 *
 * Ownership: texts lie in the arena given. Pure: the caller reads the file and the
 * environment and hands the bytes over. */
#ifndef HD_JOB_JOB_H
#define HD_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/text.h"
#include "job/measures.h"

enum hd_origin { HD_FROM_DEFAULT, HD_FROM_FILE, HD_FROM_ENV, HD_FROM_SET, HD_FROM_OPTION };

enum hd_job_type {
	HD_T_TEXT, HD_T_WORD,             /* word: one of a closed set */
	HD_T_FILE,                        /* a path; its content fixes the result, not its name */
	HD_T_INT, HD_T_NUM,
	HD_T_SIZE,                        /* bytes */
	HD_T_EVERY,                       /* "60 s" or "200 steps" */
	HD_T_SPAN,                        /* "60 s"; lo and hi in milliseconds */
	HD_T_LIST,                        /* of numbers */
	HD_T_NAMES,                       /* of texts: names or patterns of them */
	HD_T_ARGS,                        /* free name: value pairs, checked by their owner (model.args) */
	/* list of names, some with numbers: [flip, {crop: 4}, {normalize: {mean: [0.5], std: [0.25]}}] */
	HD_T_CALLS,
	HD_T_SPLIT,                       /* {train: 0.9, valid: 0.1}: numbers by name */
	HD_T_GROUPS,                      /* of parameters: [{params: [PATTERN], lr: 1e-4, decay: 0}] */
	HD_T_TERMS,                       /* of a loss: [{kind: mse, weight: 0.5}] */
};

/* Indices of words, in the order of job/keys.h. Those of optim.kind, data.order and
 * batch.last are the enums of rooms device and data, those of elastic.redundancy
 * that of pipeline/redundancy.h. */
enum hd_jobkernels { HD_JOBKERNELS_AUTO, HD_JOBKERNELS_LIBRARY, HD_JOBKERNELS_PORTABLE };
enum hd_jobauto    { HD_JOBAUTO_NONE, HD_JOBAUTO_LIBRARY, HD_JOBAUTO_PORTABLE };
enum hd_products   { HD_PRODUCTS_F32, HD_PRODUCTS_BF16, HD_PRODUCTS_BF16_AMX };
enum hd_bn         { HD_BN_GHOST, HD_BN_GLOBAL };
enum hd_mode       { HD_MODE_SYNC, HD_MODE_EXACT, HD_MODE_BOUNDED, HD_MODE_REPLAY };
enum hd_precision  { HD_PRECISION_F32, HD_PRECISION_BF16 };
enum hd_nonfinite  { HD_NONFINITE_STOP, HD_NONFINITE_SKIP };
enum hd_metric     { HD_METRIC_LOSS, HD_METRIC_ACCURACY, HD_METRIC_PERPLEXITY };
enum hd_log_level  { HD_LOG_ERROR, HD_LOG_WARNING, HD_LOG_INFO, HD_LOG_DEBUG };
enum hd_verify     { HD_VERIFY_WRITE, HD_VERIFY_READ_BACK };
enum hd_judge_metric { HD_JUDGE_VAL_LOSS, HD_JUDGE_VAL_ACCURACY, HD_JUDGE_LOSS };        /* then measures.h */
enum hd_stop_mode  { HD_STOP_AUTO, HD_STOP_MIN, HD_STOP_MAX };
enum hd_eval_weights { HD_EVAL_PARAMS, HD_EVAL_EMA };
enum hd_keep_best  { HD_BEST_NONE, HD_BEST_LOSS, HD_BEST_ACCURACY };

enum hd_functions  { HD_FUNCTIONS_NONE, HD_FUNCTIONS_POOL, HD_FUNCTIONS_HTTP, HD_FUNCTIONS_LAMBDA };
enum hd_comm_overlap { HD_OVERLAP_AUTO, HD_OVERLAP_OFF };
enum hd_comm_sync  { HD_SYNC_ALLREDUCE, HD_SYNC_SHARDED, HD_SYNC_STAGES, HD_SYNC_SERVER };
enum hd_comm_primitive { HD_PRIMITIVE_AUTO, HD_PRIMITIVE_DIRECT, HD_PRIMITIVE_HALVING };
enum hd_resilience_by { HD_RESILIENCE_GIVEN, HD_RESILIENCE_BY_NOTICE, HD_RESILIENCE_AUTO,
	HD_RESILIENCE_CHECKPOINT, HD_RESILIENCE_REROUTE, HD_RESILIENCE_LAZY, HD_RESILIENCE_EAGER,
	HD_RESILIENCE_FULL, HD_RESILIENCE_REPLICA_1, HD_RESILIENCE_REPLICA_2, HD_RESILIENCE_REPLICA_3,
	HD_NRESILIENCES };
enum hd_standby    { HD_STANDBY_NONE, HD_STANDBY_FOLLOW };
enum hd_par_mode   { HD_PAR_AUTO, HD_PAR_DATA, HD_PAR_PIPELINE, HD_PAR_TENSOR, HD_PAR_EXPLICIT,
	HD_PAR_GIVEN };
enum hd_par_planner { HD_PLANNER_AUTO, HD_PLANNER_PIPEDREAM, HD_PLANNER_2BW, HD_PLANNER_PTDP };
enum hd_par_recompute { HD_RECOMPUTE_AUTO, HD_RECOMPUTE_NONE, HD_RECOMPUTE_STAGE };
enum hd_par_offload { HD_OFFLOAD_NONE, HD_OFFLOAD_STAGE };

enum { HD_JOB_MAX_ARGS = 32, HD_JOB_MAX_NAMES = 256, HD_JOB_MAX_LIST = 1024, HD_JOB_MAX_CALLS = 16,
	HD_JOB_MAX_GROUPS = 64,
	HD_JOB_MAX_TERMS = 4,             /* = HD_MODEL_TERMS of graph */
	HD_JOB_MAX_PARAMS = 8,
       HD_JOB_ZONE = 32,                  /* length of a name of workers.zones */
       HD_JOB_NAME_CAP = 64, HD_JOB_MAX_CUTS = 16, HD_JOB_MAX_STAGES = 64,
       HD_JOB_AUTO_VNS = 16, HD_JOB_AUTO_WARMUP = 100 };

/* is_word: neither number nor list */
struct hd_job_arg { const char *name, *text; bool is_word; uint32_t line, column; };

/* One entry of CALLS: its parameters by name, in bytewise order; one without a name is the entry's own. */
struct hd_job_param { const char *name; const double *at; uint32_t n; bool is_list; };
struct hd_job_call { const char *name; const struct hd_job_param *param; uint32_t nparams, line, column; };

/* Entry of GROUPS: parameters that one of the patterns names, and no group before this one. Without has_lr
 * the rate is lr_scale times the job's; without has_decay the decay is the job's. */
struct hd_job_group {
	const struct hd_job_arg *params; uint32_t nparams;          /* only the texts */
	double lr, lr_scale, decay;
	bool has_lr, has_lr_scale, has_decay, freeze;
	uint32_t line, column;
};

/* Entry of TERMS: a loss that is added to others, with its weight. */
#define HD_JOB_TERM_OF     "logits"
#define HD_JOB_TERM_TARGET "y"
struct hd_job_term { const char *kind, *of, *target; double weight, smoothing, delta; };

/* One resolved value. `auto` and `none` are states of their own for the keys that allow them. */
struct hd_job_value {
	uint8_t type, origin;
	bool    is_auto, is_none, every_steps;
	/* the default; data.split_seed: it parts data as job.seed does */
	bool    is_standard;
	/* INT, SIZE (bytes), EVERY (ns or steps), SPAN (ns), WORD (index in its set) */
	int64_t i;
	double  f;                        /* NUM */
	const char *text;                 /* TEXT, WORD; as written for all scalars */
	uint32_t nlist; const double *list;       /* LIST; SPLIT in the order of its names */
	/* of a built-in model: all of its arguments, defaults filled in; NAMES: only the texts */
	uint32_t nargs; const struct hd_job_arg *arg;
	uint32_t ncalls; const struct hd_job_call *call;  /* CALLS */
	uint32_t ngroups; const struct hd_job_group *group;       /* GROUPS */
	uint32_t nterms; const struct hd_job_term *term;          /* TERMS */
	uint32_t line, column;            /* in the file, from 1; 0: not from the file */
};

/* A pattern of optim.no_decay: all parameters that are vectors or single numbers. */
#define HD_JOB_NORMS_AND_BIASES "norms-and-biases"

enum hd_job_key {
#define X(id, table, key, type, r, def, words, lo, hi, about) HD_JOB_##id,
#include "job/keys.h"
#undef X
	HD_JOB_NKEYS
};

struct hd_job_key_row {
	const char *table, *key;          /* "batch", "global"; a dot in `key`: a table inside the table */
	uint8_t type, result;             /* R: 0 no; 1 yes; 2 yes, hashed only when it is not the default */
	const char *def;                  /* as a user would write it; NULL: required */
	const char *words;                /* WORD, SPLIT: "a|b|c"; others: which of "auto|none" are allowed */
	double lo, hi;                    /* range of INT and NUM, inclusive */
	const char *about;
};
extern const struct hd_job_key_row hd_job_keys[HD_JOB_NKEYS];

struct hd_job {
	struct hd_job_value value[HD_JOB_NKEYS];
	const char *file;                 /* for messages */
	struct hd_hash hash;
	/* what follows from the keys, checked */
	uint32_t nvns;                    /* V */
	uint64_t batch, per_vn;           /* B, b = ceil(B/V) */
};

/* One value from outside the file. Key "batch.global", "optim.schedule.kind" or, for one argument of
 * the model, "model.args.layers"; lists and tables as in the file: "[0.9, 0.99]", "{layers: 2}". */
struct hd_job_set { const char *key, *text; enum hd_origin origin; };

/* Sets count by their origin, then in the order given. Warnings are whole lines. */
HD_MUST_USE enum hd_err hd_job_parse(struct hd_job *job, const char *file, const char *bytes, size_t len,
	const struct hd_job_set *set, uint32_t nsets, struct hd_arena *arena, struct hd_diag *diag,
	struct hd_text *warnings);

/* All values as JSON, which parses again to the same job; with `origins` each value also says where it came
 * from. The R keys alone, canonical, are what is hashed. */
void hd_job_json(const struct hd_job *job, bool origins, struct hd_text *text);
void hd_job_canonical(const struct hd_job *job, struct hd_text *text);
void hd_job_schema(struct hd_text *text);                 /* JSON Schema of a job file */
/* a commented job file with every key (`run --new`) */
void hd_job_template(struct hd_text *text);

/* Stages that a text of optim.cuts declares; 0: it is none. Without `balance`, node[] is the first of
 * each. */
uint32_t hd_job_cuts(const char *text, bool *balance, uint32_t node[HD_JOB_MAX_CUTS]);

/* parallel.copies: "3,1", the ranks of each stage. How many stages; 0: it is none, or neither of two numbers
 * divides the other, or one is 0 or all are 1, or there are more than HD_JOB_MAX_STAGES stages or ranks. What
 * the user reads of it has a sentence for each of these (copies.c). */
uint32_t hd_job_stage_copies(const char *text, uint32_t copies[HD_JOB_MAX_STAGES]);

/* parallel.settled: "zb-v 4 2 0,6,12,18 recompute of 4": schedule, stages, a multiple of the devices of a
 * pipeline (`width`), and what may be left out: the first node of each stage (n 0: the FLOPs say them), that
 * all stages compute again, how many devices a rank has and on how many workers ("tensor 4 groups 2"; 0:
 * one), the ranks of each stage ("copies 3,1"; one each), and for how many devices it was chosen (0: not
 * known). "data-parallel 1 1": each device has the whole
 * model. */
#define HD_JOB_SETTLED_DATA "data-parallel"
struct hd_job_settled {
	char schedule[32];
	uint32_t stages, width, n, node[HD_JOB_MAX_STAGES], ndevices;
	uint32_t tensor, groups;
	bool has_copies;
	uint32_t copies[HD_JOB_MAX_STAGES];
	bool recompute;
};
bool hd_job_settled(struct hd_job_settled *settled, const char *text);
void hd_job_settled_put(const struct hd_job_settled *settled, struct hd_text *text);

/* What of `parallel:` this build plans for and does not run: HD_E_INVAL with the place, and what to do.
 * Verbs that train ask. */
HD_MUST_USE enum hd_err hd_job_trains(const struct hd_job *job, struct hd_diag *diag);
/* Does it ask for devices that share the shards of a rank; for stages one after another; for ranks of a plan
 * with stages: one of these, or recomputation? */
bool hd_job_has_tensor(const struct hd_job *job);
bool hd_job_has_depth(const struct hd_job *job);
bool hd_job_has_stages(const struct hd_job *job);
/* Do the lists of a plan file that was read say it (parallel.lists)? */
bool hd_job_is_listed(const struct hd_job *job);
/* Over workers: what mode: auto chose (parallel.settled); stages that are asked for, or were chosen. */
bool hd_job_has_settled(const struct hd_job *job, struct hd_job_settled *settled);
bool hd_job_has_pipes(const struct hd_job *job);
/* Keys that go with the whole model on each device alone: state sharded, slices, norms over the batch. */
bool hd_job_is_whole(const struct hd_job *job);
/* What of it runs in one process alone, where several workers are to train: HD_E_INVAL, with the place. */
HD_MUST_USE enum hd_err hd_job_spreads(const struct hd_job *job, struct hd_diag *diag);

/* May it be done before its last step (eval.target, stop.patience)? */
static inline bool hd_job_ends_early(const struct hd_job *job)
{
	return !job->value[HD_JOB_TARGET].is_none || !job->value[HD_JOB_STOP_PATIENCE].is_none;
}
static inline int64_t hd_job_int(const struct hd_job *job, enum hd_job_key key) { return job->value[key].i; }
/* Of sharded state, of each part of the optimizer's slots; 0: every worker has all. */
static inline uint32_t hd_job_copies(const struct hd_job *job)
{
	const int64_t sync = job->value[HD_JOB_SYNC].i;

	return sync == HD_SYNC_SHARDED || sync == HD_SYNC_SERVER ? (uint32_t)job->value[HD_JOB_COPIES].i : 0;
}
/* The workers that all of these lie at; 0: at any. */
static inline uint32_t hd_job_servers(const struct hd_job *job)
{
	return job->value[HD_JOB_SYNC].i == HD_SYNC_SERVER ? (uint32_t)job->value[HD_JOB_SERVERS].i : 0;
}
/* Pipelines that a run in stages never has fewer of (elastic.resilience). */
static inline uint32_t hd_job_least_pipelines(const struct hd_job *job)
{
	const int64_t by = job->value[HD_JOB_RESILIENCE].i;

	return by < HD_RESILIENCE_REPLICA_1 ? 1 : (uint32_t)(2 + by - HD_RESILIENCE_REPLICA_1);
}
/* What keys the split into train and valid. */
static inline uint64_t hd_job_split_seed(const struct hd_job *job)
{
	const struct hd_job_value *v = &job->value[HD_JOB_SPLIT_SEED];

	return (uint64_t)(v->is_auto ? job->value[HD_JOB_SEED].i : v->i);
}
static inline double hd_job_num(const struct hd_job *job, enum hd_job_key key) { return job->value[key].f; }
static inline const char *hd_job_text(const struct hd_job *job,
	enum hd_job_key key) { return job->value[key].text; }

#endif
