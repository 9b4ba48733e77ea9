/* job_keys.h -- the table of job keys; included with X defined (job.h, job.c).
 * X(id, table, key, type, R, default or NULL, words, lo, hi, about)
 * Not a header of its own: no guard, no declarations.
 *
 * Rows of one table stand together. A key with a dot is a table inside its table. NULL as
 * default: the key is required. `words`: WORD, the closed set; SPLIT, the names; others,
 * which of auto and none they take. Values that exist elsewhere only: job_absent.h. */
X(NAME,       "job",   "name",      TEXT, 0, "job",    "", 0, 0, "names the run directory: 1 to 64 of A-Z a-z 0-9 . _ -")
X(SEED,       "job",   "seed",      INT,  1, "0",      "", 0, 0x1p63, "keys every random number and the data order")
X(STEPS,      "job",   "steps",     INT,  1, "none",   "none", 1, 0x1p43, "steps to train; exactly one of steps and epochs")
X(EPOCHS,     "job",   "epochs",    NUM,  1, "none",   "none", 1e-6, 1e9, "passes over the data to train")
X(REDUCTION,  "job",   "reduction", WORD, 1, "canonical", "canonical", 0, 0, "canonical: the fixed tree of sums, bits promised")
X(KERNELS,    "job",   "kernels",   WORD, 1, "auto",   "auto|library|portable", 0, 0, "library kernels, or portable ones with the same bits on every machine")

X(MODEL,      "model", "use",       TEXT, 1, NULL,     "", 0, 0, "builtin:NAME, graph:FILE (text form) or onnx:FILE")
X(MODEL_ARGS, "model", "args",      ARGS, 1, "{}",     "", 0, 0, "parameters of the model; `heddle model show NAME` lists them")
X(WEIGHTS,    "model", "weights",   FILE, 1, "none",   "none", 0, 0, "parameters to start from: a safetensors file, an index of shards, a folder of them, a run or a checkpoint")
X(WEIGHTS_SKIP, "model", "weights_skip", NAMES, 2, "[]", "", 0, 0, "patterns of names that model.weights need not fit: those parameters get their initial values")
X(FREEZE,     "model", "freeze",    NAMES, 2, "[]",    "", 0, 0, "patterns of names of parameters that are not trained")
X(LORA_RANK,  "model", "lora.rank", INT,  2, "0",      "", 0, 4096, "rank of trained adapters beside frozen parameters; 0: none")
X(LORA_ALPHA, "model", "lora.alpha", NUM, 2, "auto",   "auto", 0, 1e6, "adapters count alpha / rank; auto: the rank")
X(LORA_TARGETS, "model", "lora.targets", NAMES, 2, "[]", "", 0, 0, "patterns of names of matrices that get adapters")
X(LORA_TRAIN, "model", "lora.train", NAMES, 2, "[]",   "", 0, 0, "patterns of names of parameters trained beside the adapters")
X(LOSS,       "model", "loss",      WORD, 1, "cross-entropy", "cross-entropy|mse|none", 0, 0, "loss of a built-in or ONNX model; none: the graph has its own")
X(BN,         "model", "bn",        WORD, 1, "ghost",  "ghost|global", 0, 0, "norms over the batch take their moments per virtual node, or over the global batch (all virtual nodes in lockstep)")
X(SHARDS,     "model", "shards",    INT,  1, "1",      "", 1, 1024, "fixed shards of split sums")
X(PRECISION,  "model", "precision", WORD, 1, "f32",    "f32|bf16-storage", 0, 0, "numbers that parameters may be; arithmetic and optimizer slots are f32")

X(DATA_KIND,  "data",  "kind",      WORD, 1, NULL,     "idx|cifar|csv|text|tokens|npy|synthetic", 0, 0, "what the files are")
X(DATA_PATH,  "data",  "path",      TEXT, 0, "none",   "none", 0, 0, "file, folder or glob; none: where the kind's data set is installed")
X(COLUMNS,    "data",  "columns",   NAMES, 2, "[]",    "", 0, 0, "csv: columns that are the model's numbers, in this order, or the one that is its text; none: all but the label")
X(LABEL,      "data",  "label",     TEXT, 2, "auto",   "auto", 0, 0, "csv: the column to learn, auto: the last; cifar: fine or coarse")
X(CLASSES,    "data",  "classes",   NAMES, 2, "[]",    "", 0, 0, "csv: what the label's classes are called, in order; none: they are numbers from 0")
X(SPLIT,      "data",  "split",     SPLIT, 1, "{train: 0.9, valid: 0.1}", "train|valid", 0, 1, "shares of the samples; text and tokens: valid is the last part")
X(ORDER,      "data",  "order",     WORD, 1, "shuffle", "shuffle|sequential|blocks", 0, 0, "order of the samples, a function of seed and step")
X(AUGMENT,    "data",  "augment",   CALLS, 1, "[]",    "", -1e30, 1e30, "transforms of training samples in order: flip, crop, shift, cutout, brightness, contrast; of all samples: normalize")
X(DATA_COUNT, "data",  "count",     INT,  1, "0",      "", 0, 0x1p40, "synthetic: samples to make; 0: the kind's own number")

X(GLOBAL,     "batch", "global",    INT,  1, NULL,     "", 1, 0x1p31, "samples per step: the only batch a user ever writes")
X(VNS,        "batch", "virtual_nodes", INT, 1, "auto", "auto", 1, 65536, "fixed parts of the batch, unit of all scheduling; auto: the most that fit, up to 16")
X(SLICES,     "batch", "slices",    INT,  1, "1",      "", 1, 0x1p31, "parts of a virtual node computed one after the other; saves memory only")
X(LAST,       "batch", "last",      WORD, 1, "ragged", "ragged|drop|wrap", 0, 0, "the end of a data epoch: short step, no step, or run on")
X(NORMALIZE,  "batch", "normalize", WORD, 1, "auto",   "auto|sample|token", 0, 0, "what the weights count; auto: tokens where every token has a label")

X(OPTIM,      "optim", "kind",      WORD, 1, "adamw",  "sgd|momentum|nesterov|adam|adamw|adagrad|lion|lamb", 0, 0, "the optimizer")
X(LR,         "optim", "lr",        NUM,  1, "3e-4",   "", 0, 1e6, "learning rate")
X(BETAS,      "optim", "betas",     LIST, 1, "auto", "auto", 0, 1, "adam, adamw, lamb, lion: decay of the two moments, each below 1; auto: [0.9, 0.999], lion [0.9, 0.99]")
X(EPS,        "optim", "eps",       NUM,  1, "auto",   "auto", 0, 1, "added to the root of the second moment; auto: 1e-8, lamb 1e-6, adagrad 1e-10")
X(MOMENTUM,   "optim", "momentum",  NUM,  1, "0.9",    "", 0, 1, "momentum, nesterov: what stays of the last update")
X(WEIGHT_DECAY, "optim", "weight_decay", NUM, 1, "auto", "auto", 0, 1e6, "auto: 0.01 for adamw and lamb, 0 for the others")
X(SCHEDULE,   "optim", "schedule.kind",   WORD, 1, "cosine", "constant|linear|cosine|step", 0, 0, "how the rate falls after the warm-up")
X(WARMUP,     "optim", "schedule.warmup", INT, 1, "100", "", 0, 0x1p43, "steps in which the rate rises evenly from 0")
X(FLOOR,      "optim", "schedule.floor",  NUM, 1, "0.1", "", 0, 1, "least share of lr; constant has none")
X(EVERY,      "optim", "schedule.every",  INT, 1, "1k",  "", 1, 0x1p43, "step: steps between two falls")
X(FACTOR,     "optim", "schedule.factor", NUM, 1, "0.1", "", 0, 1, "step: what a fall leaves of the rate")
X(CLIP,       "optim", "clip",      NUM,  1, "1",      "", 0, 1e9, "global gradient norm; 0: off")
X(UPDATE,     "optim", "update",    WORD, 1, "flush",  "flush", 0, 0, "flush: synchronous")
X(CUTS,       "optim", "cuts",      TEXT, 1, "none",   "none", 0, 0, "stage cuts that the update needs")
X(ON_NONFINITE, "optim", "on_nonfinite", WORD, 1, "stop", "stop|skip", 0, 0, "a gradient that is not finite: stop (exit 4), or skip the step")

X(EVAL_EVERY, "eval",  "every",     INT,  0, "200",    "", 0, 0x1p43, "steps; 0: only at the end")
X(METRIC,     "eval",  "metric",    WORD, 0, "loss",   "loss|accuracy|perplexity", 0, 0, "what is reported and compared with the target")
X(TARGET,     "eval",  "target",    NUM,  0, "none",   "none", -1e30, 1e30, "stop when reached")

X(DEVICES,    "workers", "devices", TEXT, 0, "auto",   "auto", 0, 0, "auto (chosen by predicted time and memory), auto:8 (of 8 cores), 2, cores:2x2 (two of two threads), reference:1 or null:4")
X(MEMORY,     "workers", "memory",  SIZE, 0, "auto",   "auto", 1, 0x1p50, "limit per device")

X(CKPT_DIR,   "checkpoint", "dir",  TEXT, 0, "ckpt",   "", 0, 0, "inside the run directory, or an absolute path: there each run takes a folder of its own")
X(CKPT_EVERY, "checkpoint", "every", EVERY, 0, "60 s", "", 1, 0x1p43, "a duration, or steps: 200 steps")
X(CKPT_KEEP,  "checkpoint", "keep", INT,  0, "3",      "", 1, 1000000, "newest complete ones")
X(CKPT_VERIFY, "checkpoint", "verify", WORD, 0, "write", "write|read-back", 0, 0, "read-back: each file is read and compared")

X(FLIGHT_SLOTS, "trace", "flight_slots", INT, 0, "65536", "", 64, 0x1p28, "events per thread in the always-on ring")
X(DIGEST,     "trace", "digest",    INT,  0, "auto",   "auto", 1, 0x1p43, "steps between state digests; auto: a power of two, as often as costs at most 1 % of the steps")

X(METRICS_EVERY, "log", "metrics_every", INT, 0, "1",  "", 1, 0x1p43, "steps between two records")
X(LOG_LEVEL,  "log",   "level",     WORD, 0, "info",   "error|warning|info|debug", 0, 0, "info, debug: choices, plans and checkpoints are shown too; warnings always are; the event log has all")
