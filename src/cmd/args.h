/* args.h -- the command line as two tables: options and verbs.
 *
 * Parser, help, did-you-mean, shell completion and the manual derive from them.
 * Adding an option is a row of HD_OPTIONS and its id in the verbs that take it;
 * adding a verb is its file and its row of HD_VERBS (cmd/list.h).
 *
 * 1. Options may stand anywhere after the verb, as --name VALUE or --name=VALUE; "--" ends them.
 * 2. An option that a verb does not take is an error that names the verbs that do. Two rows may have one name
 *    where no verb takes both: the verb says which is meant.
 * 3. Values are checked here by kind (count, size, word, text), so verbs get values, not text. */
#ifndef HD_CMD_ARGS_H
#define HD_CMD_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/transports.h"
#include "plan/collective.h"

enum hd_opt_kind { HD_TAKES_FLAG, HD_TAKES_TEXT, HD_TAKES_COUNT, HD_TAKES_REPEAT, HD_TAKES_WORD };

/*  id            letter  name            kind    value      meaning; for words: "a|b: meaning" */
#define HD_OPTIONS(X) \
	/* common to all verbs */                                                                            \
	X(HELP,        0,   "help",          FLAG,   "",        "what this verb does and takes")                   \
	X(JSON,        0,   "json",          FLAG,   "",        "one JSON object, or one a line, on stdout")       \
	X(QUIET,       'q', "quiet",         FLAG,   "",        "only errors")                                     \
	X(VERBOSE,     'v', "verbose",       FLAG,   "",        "every step on a line of its own")                 \
	X(COLOR,       0,   "color",         WORD,   "auto|always|never", "colour and rewriting; auto: on a terminal without NO_COLOR") \
	X(DIR,         'C', "dir",           TEXT,   "DIR",     "parent of runs/, or a scheduler's folder (default: the current one)")   \
	/* of some */                                                                                        \
	X(SET,         's', "set",           REPEAT, "KEY=VALUE", "override a key of the job file, as -s optim.lr=0.1") \
	X(STEPS,       0,   "steps",         COUNT,  "N",       "stop, with a checkpoint, once step N is committed; schedules still count to job.steps") \
	X(DEVICES,     0,   "devices",       TEXT,   "N|SPEC",  "devices of this process: 4, cores:4, cores:2x2, reference:1, null:4, paced:4; of plans: a count") \
	X(THREADS,     0,   "threads",       COUNT,  "T",       "threads per device")                              \
	X(OUT,         0,   "out",           TEXT,   "DIR",     "the run directory itself")                        \
	X(OUTPUT,      'o', "output",        TEXT,   "FILE",    "where to write")                                  \
	X(PLAN,        0,   "plan",          TEXT,   "FILE",    "run this plan (text form) instead of the even map") \
	X(DETACH,      0,   "detach",        FLAG,   "",        "go on when this terminal closes; says where to look and how to end it") \
	X(DRY_RUN,     0,   "dry-run",       FLAG,   "",        "check everything, start nothing")                 \
	X(SHOW_CONFIG, 0,   "show-config",   FLAG,   "",        "print the resolved job with the origin of each value, start nothing") \
	X(EVENTS,      0,   "events",        FLAG,   "",        "events as NDJSON on stdout")                      \
	X(NEW,         0,   "new",           TEXT,   "FILE",    "write a commented job file and stop")             \
	X(FROM,        0,   "from",          COUNT,  "STEP",    "the checkpoint of this step, not the newest")     \
	X(NEW_SEMANTICS, 0, "new-semantics", FLAG,   "",        "allow changes of keys that fix the result: a new lineage of digests") \
	X(SPLIT,       0,   "split",         TEXT,   "NAME",    "train, valid or test")                            \
	X(PROMPT,      0,   "prompt",        TEXT,   "TEXT",    "text to continue (models of text)")               \
	X(TOKENS,      0,   "tokens",        COUNT,  "N",       "how many tokens to sample (default 200)")         \
	X(TEMPERATURE, 0,   "temperature",   TEXT,   "X",       "sampling temperature (default 0.8; 0: the most likely)") \
	X(SEED,        0,   "seed",          COUNT,  "N",       "seed of sampling")                                \
	X(SEEDS,       0,   "seeds",         COUNT,  "M",       "so many seeds, from --seed on (default 1)")        \
	X(SAVE,        0,   "save",          TEXT,   "FILE",    "write what is timed as safetensors: initial parameters and the rows of each step") \
	X(REPEAT,      0,   "repeat",        COUNT,  "N",       "timed repetitions")                               \
	X(COLD,        0,   "cold",          FLAG,   "",        "time ops in the order of the step, operands where it leaves them") \
	X(ULP,         0,   "ulp",           COUNT,  "N",       "count elements within N units in the last place as equal") \
	X(REL,         0,   "rel",           TEXT,   "X",       "count elements within a relative distance as equal") \
	X(SHOW,        0,   "show",          FLAG,   "",        "print the job file of the demonstration, start nothing") \
	X(EPOCH,       0,   "epoch",         COUNT,  "E",       "data epoch")                                      \
	X(STEP,        0,   "step",          COUNT,  "S",       "step")                                            \
	X(LIMITS,      0,   "limits",        FLAG,   "",        "print every limit of this build")                 \
	X(COUNT_,      0,   "count",         COUNT,  "N",       "how many")                                        \
	X(SAFETENSORS, 0,   "safetensors",   TEXT,   "FILE",    "write the parameters as one safetensors file")    \
	X(MODEL,       0,   "model",         TEXT,   "NAME",    "built-in model that the weights are of; plan ptdp: layers,hidden,heads,vocabulary,sequence") \
	X(BASE,        0,   "base",          TEXT,   "DIR|FILE", "import: published weights that an adapter is of; export --names peft: what the adapter says that it is of") \
	X(NAMES,       0,   "names",         WORD,   "torch|heddle|peft", "public names of the tensors, or ours; peft: a folder with the adapters alone, as peft keeps them")             \
	X(DTYPE,       0,   "dtype",         WORD,   "f32|bf16", "what floats are written as; bf16 rounds to nearest even") \
	X(EMA,         0,   "ema",           FLAG,   "",        "the means of the parameters (optim.ema) in their place") \
	X(BEST,        0,   "best",          FLAG,   "",        "the state of the best evaluation (checkpoint.best)") \
	X(TIED,        0,   "tied",          WORD,   "once|both", "a tensor of two names: once and named in the metadata, or under both") \
	X(SCHEDULE,    0,   "schedule",      TEXT,   "NAME",    "gpipe, 1f1b, zb-v, ...; help lists all")           \
	X(RANKS,       'p', "ranks",         COUNT,  "P",       "ranks of the pipeline")                           \
	X(VNS,         'm', "virtual-nodes", COUNT,  "M",       "virtual nodes of a step and pipeline")            \
	X(CHUNKS,      'v', "chunks",        COUNT,  "V",       "model chunks a rank (default: the least of the schedule)") \
	X(GROUP,       0,   "group",         COUNT,  "N",       "interleaved: virtual nodes a group (default: near-equal groups)") \
	X(REPLICAS,    0,   "replicas",      TEXT,   "R,R,...", "1f1b-rr: ranks of each stage, P in all")          \
	X(CAP,         0,   "cap",           TEXT,   "UNITS",   "zb-auto: activations a rank can hold, in a full rank's (default: any number)") \
	X(REDUNDANCY,  0,   "redundancy",    WORD,   "none|lazy|eager|full", "with a shadow of the next stage on each rank (default none)") \
	X(SHADOWS,     0,   "shadows",       WORD,   "auto|receives|gaps", "where its work stands: before receives, in waits, or the faster (default auto)") \
	X(LOSE,        0,   "lose",          TEXT,   "R,R,...", "ranks that are lost: the rest of the step after that, by their shadows") \
	X(LOSE_AT,     0,   "lose-at",       TEXT,   "PART",    "how much of the simulated step is over then (default 0.5)") \
	X(AT_ZONES,    0,   "device-zones",  TEXT,   "Z,Z,...", "zone of each device")                             \
	X(COSTS,       0,   "costs",         TEXT,   "F,B|F,I,W", "forward and backward of a full rank (I = W = B/2), or the three (default 1,1,1)") \
	X(COMM,        0,   "comm",          TEXT,   "C",       "what a tensor takes from rank to rank (default 0)") \
	X(TRANSPORT,   0,   "transport",     WORD,   "eager|buffered|rendezvous|grouped", "how transfers wait (default eager: they never do)") \
	X(CREDITS,     0,   "credits",       COUNT,  "N",       "buffered: tensors under way on a channel (default 2)") \
	X(PERIODS,     0,   "periods",       COUNT,  "N",       "delayed updates: steps that are simulated")       \
	X(AUTODIFF,    0,   "gradients",     FLAG,   "",        "with the nodes that compute gradients") \
	X(GRAPH,       0,   "graph",         TEXT,   "FILE",    "costs of a model's nodes: a profile (JSON), or graph.txt of PipeDream") \
	X(CUTS,        0,   "cuts",          TEXT,   "C,C,...", "first cut of each stage, the first 0 (default: the straight partition)") \
	X(COMPLETE,    0,   "complete",      FLAG,   "",        "with transfers, versions and updates, not the skeleton alone") \
	X(MACHINES,    0,   "machines",      TEXT,   "N[,M...]", "machines of a component, components of the next, ...: innermost first") \
	X(BANDWIDTH,   0,   "bandwidth",     TEXT,   "B[,B...]", "bytes per second between them, one for each level") \
	X(VARIANT,     0,   "variant",       WORD,   "paper|printed|code|heddle", "which recurrence (default paper)") \
	X(STRAIGHT,    0,   "straight",      FLAG,   "",        "one machine a stage, as many stages as machines") \
	X(FEWER,       0,   "fewer",         FLAG,   "",        "leave machines idle where that is no slower") \
	X(ACTIVATIONS, 0,   "activations",   TEXT,   "R",       "variant code: count activations, compressed R times (default: not counted)") \
	X(MEMORY,      0,   "memory",        TEXT,   "BYTES",   "limit of each machine or device; partition: on parameters and activations in flight") \
	X(BATCH,       0,   "batch",         COUNT,  "B",       "samples of a step")                               \
	X(VN_SIZE,     0,   "vn-size",       COUNT,  "b",       "samples of a virtual node (default: chosen)")     \
	X(RULES,       0,   "rules",         FLAG,   "",        "by the paper's rules, one choice after the other, not by search") \
	X(AT,          0,   "at",            TEXT,   "t,p,d[,b,v,R]", "judge this split instead; R: none, selective or full (recomputation)") \
	X(SEQUENCE,    0,   "sequence",      FLAG,   "",        "norms, dropout and residuals on 1/t of the positions") \
	X(PUBLISHED,   0,   "published",     FLAG,   "",        "the published runs, predicted from three of them") \
	X(MAX_CUTS,    0,   "max-cuts",      COUNT,  "N",       "refuse a graph with more cuts (default 5000)") \
	X(SAMPLES,     0,   "samples",       COUNT,  "N",       "timed passes (default: until the times settle, 100 to 1000)") \
	X(WORKERS,     'n', "workers",       COUNT,  "N",       "worker processes; of plans: N equal devices (default: those of the job, or of this machine)") \
	X(CLUSTER,     0,   "cluster",       TEXT,   "FILE",    "plan for these devices: kinds, speeds, memory, links (YAML)") \
	X(PROFILE,     0,   "profile",       TEXT,   "FILE",    "costs of the model's ops, as `heddle profile` writes them (plan JOB, default: modelled; run: what paced devices wait)") \
	X(FORCE_PROFILE, 0, "force-profile", FLAG,   "",        "take the profile even if it is of another graph or other virtual nodes") \
	X(PLANNER,     0,   "planner",       TEXT,   "NAME",    "planner of the plan: auto, data, pipedream, 2bw, ptdp") \
	X(PARTITIONER, 0,   "partitioner",   WORD,   "paper|printed|code|heddle", "recurrence of the planner pipedream (default paper)") \
	X(DRAW,        0,   "draw",          FLAG,   "",        "the timeline, too")                               \
	X(EXPLAIN,     0,   "explain",       FLAG,   "",        "what other plans or planners would do, and why they lost; of a run what each instruction was predicted to take, and took; of two runs the first value that differs; of a store each decision") \
	X(SWEEP,       0,   "sweep",         FLAG,   "",        "beside the tuner a grid of depths and sizes, measured in turns; prints JSON") \
	X(SPEEDS,      0,   "speeds",        TEXT,   "X,X,...", "how fast each device is against the others, for plans by measured costs") \
	X(REPLAN,      0,   "replan",        FLAG,   "",        "plan by costs measured now, not by the plan that the run had") \
	X(SUGGEST,     0,   "suggest-job",   FLAG,   "",        "instead: other sizes of virtual nodes, each with its plan; changes nothing") \
	X(ORDER,       0,   "order",         WORD,   "auto|fifo|random|tic|tic+|tac|search", "in which order (default auto: search where all times are known, else tic+)") \
	X(BUCKETS,     0,   "buckets",       TEXT,   "BYTES",   "the most that a bucket of gradients holds (JOB: 64MiB, FILE: no limit)") \
	X(STEP_VNS,    0,   "vns",           COUNT,  "V",       "virtual nodes of a step")                         \
	X(SHARDS,      0,   "tensor-shards", COUNT,  "T",       "shards of the job's tensors; devices of a tensor group divide it (default 1)") \
	X(UPDATE,      0,   "update",        WORD,   "flush|2bw|stash|vsync", "whose gradients an update waits for (default flush)") \
	X(PIPELINES,   0,   "pipelines",     COUNT,  "D",       "pipelines side by side (default: chosen)")        \
	X(RECOMPUTE,   0,   "recompute",     WORD,   "auto|none|stage", "compute activations again: where they do not fit, never, in every stage") \
	X(WHAT_IF,     0,   "what-if",       TEXT,   "K=X,...", "change by factors: bandwidth, latency, speed, rankN (its device's speed)") \
	X(TRACE_STEPS, 0,   "steps",         COUNT,  "N",       "how many (default 10)")                          \
	X(RECORD,      0,   "trace",         FLAG,   "",        "a full trace of every step, in RUN/trace (trace.record of the job)") \
	X(TIGHTEN,     0,   "tighten",       FLAG,   "",        "clocks by transfers, too: what was received had been sent") \
	X(TRACE,       0,   "trace",         TEXT,   "FILE",    "write what happens as the flight file that a run would write") \
	X(WHOLE_STEPS, 0,   "steps",         TEXT,   "FROM:TO", "of more than a million events: these steps whole (default: the last ones)") \
	X(SIMULATE,    0,   "simulate",      FLAG,   "",        "run PipeDream's ways on these machines in the simulator, beside data parallel") \
	X(JOIN,        0,   "join",          TEXT,   "ADDR",    "the run to join: its folder here, or HOST:PORT where it listens") \
	X(FAR,         0,   "far",           FLAG,   "",        "meet the others over the network, as from another machine that shares the run's folder") \
	X(ZONE,        0,   "zone",          TEXT,   "NAME",    "what this machine is lost together with: an availability zone, a rack (1 to 32 of A-Z a-z 0-9 . _ -)") \
	X(LISTEN,      0,   "listen",        TEXT,   "ADDR:PORT", "listen there, for workers of other machines (net.listen)") \
	X(KEY,         0,   "key",           TEXT,   "FILE",    "the job's key, mode 0600 (net.key)")              \
	X(NEW_KEY,     0,   "new-key",       TEXT,   "FILE",    "write a new key and stop")                        \
	X(JOB,         0,   "job",           TEXT,   "RUN",     "the run to coordinate: its folder")               \
	X(RECORD_IN,   0,   "record-in",     TEXT,   "FOLDER",  "of a run of another machine: keep the recording in FOLDER (heddle trace merge RUN FOLDER)") \
	X(SLOW,        0,   "slow",          TEXT,   "X",       "compute X times as slowly (for tests)")           \
	X(VN_TIME,     0,   "vn-time",       TEXT,   "TIME",    "a virtual node takes so long, as 20ms: what is left of it after computing is waited for, so that many workers share few cores as if each had its own") \
	X(ISA,         0,   "isa",           TEXT,   "NAME",    "own kernels of no wider instruction set: avx512, avx2, portable (for tests)") \
	X(POLICY,      0,   "policy",        TEXT,   "NAME",    "with auto: curve or ae-2020")                     \
	X(KILLS,       0,   "kills",         COUNT,  "K",       "processes to kill (default 20)")                  \
	X(POINTS,      0,   "points",        COUNT,  "N",       "so many deaths at each named failpoint (builds that have them; default 0)") \
	X(FAULTS,      0,   "faults",        TEXT,   "KIND=N,...", "how many of point, pause, slow, net, disk, scale (default: of each a tenth of the kills)") \
	X(MTBF,        0,   "mtbf",          COUNT,  "MS",      "mean time between two faults (default 1000)")     \
	X(TARGET,      0,   "target",        WORD,   "any|worker|coordinator", "which process (default any)")       \
	X(FOR,         0,   "for",           COUNT,  "MS",      "how long it lasts (a fault: default drawn, around workers.detect)") \
	X(HOW,         0,   "how",           WORD,   "cut|drop|delay|full|error|slow", "net: closed, silent or slow; disk: full, failing or slow (default: drawn)") \
	X(WAIT_UP,     0,   "wait",          TEXT,   "TIME",    "try again for so long while there is no run to join, as 60s (default: one try)") \
	X(WAIT,        0,   "wait",          FLAG,   "",        "until it is so")                                  \
	X(WATCH,       0,   "watch",         FLAG,   "",        "again and again until the run is over")           \
	X(EVERY,       0,   "every",         COUNT,  "MS",      "milliseconds between two looks (default 1000)")   \
	X(WORKER,      0,   "worker",        COUNT,  "ID",      "this worker alone")                               \
	X(NOW,         0,   "now",           FLAG,   "",        "without a last checkpoint")                       \
	X(SCRIPT,      0,   "script",        TEXT,   "FILE",    "events to play, one JSON object a line")          \
	X(LOCAL,       0,   "local",         FLAG,   "",        "the workers of this user on this machine, of all runs") \
	X(NOTICE,      0,   "notice",        TEXT,   "TIME",    "how long this machine is still there, as 30s (the default); none: it stays after all") \
	X(COMPRESS,    0,   "compress-branches", FLAG, "",      "make one node of each chain inside a branch first") \
	X(BYTES,       0,   "bytes",         COUNT,  "B",       "of the vector in each process, a multiple of 4 (default 25000000)") \
	X(WIRE,        0,   "transport",     WORD,   HD_TRANSPORT_WORDS, "how bytes go between them (default shm)") \
	X(PRIMITIVE,   0,   "primitive",     WORD,   HD_COLLECTIVE_WORDS, "how a sum is made (default all)")          \
	X(SECONDS,     0,   "seconds",       COUNT,  "S",       "end after this time; what is not summed then has no time") \
	X(MBIT,        0,   "rate",          COUNT,  "MBIT",    "of the link, in 10^6 bits a second (default: as fast as it goes)") \
	X(LINK_DELAY,  0,   "delay",         COUNT,  "MS",      "of the link, each way (default 0)")               \
	X(LINK,        0,   "link",          WORD,   "auto|netns|relay", "what makes the link's rate: two networks, or a thread") \
	X(BULK,        0,   "bytes",         COUNT,  "B",       "of the bulk (default 67108864)")                  \
	X(WIRE_OF,     0,   "transport",     WORD,   HD_TRANSPORT_WORDS, "how bytes go (default tcp)")                \
	X(COMPUTING,   0,   "computing",     TEXT,   "X",       "ops take X times what transfers take, each by the same factor (default: as in FILE, or as costed)") \
	X(WIRE_ALONE,  0,   "transport",     WORD,   HD_TRANSPORT_WORDS, "this one alone (default: tcp, tls and shm)") \
	X(PRIORITY,    0,   "priority",      TEXT,   "P",       "its weight: twice as much, twice the share (default 1)") \
	X(DEADLINE,    0,   "deadline",      TEXT,   "T",       "when it should be over, from now: 90s, 45min, 12h, 3d") \
	X(RATES,       0,   "rates",         TEXT,   "TYPE:X,...", "steps/s on each type, where they are known; 0: never there") \
	X(JOB_NAME,    0,   "name",          TEXT,   "NAME",    "instead of job.name")                             \
	X(JOB_STATE,   0,   "state",         WORD,   "queued|starting|running|draining|done|failed|cancelled|timeout", "only jobs in it") \
	X(HELD,        0,   "hold",          FLAG,   "",        "it does not run until `heddle release`")          \
	X(AFTER,       0,   "after",         TEXT,   "JOB[:ok|:any|:fail],...", "run once these are done (ok), over (any), or ended otherwise (fail)") \
	X(ARRAY,       0,   "array",         TEXT,   "0-9[%K]", "a job for each index, at most K at once; {index} in -s and --name is the task's") \
	X(TIME,        0,   "time",          TEXT,   "T",       "of running, as 45min, 12h: at its end the job commits and ends") \
	X(OF_PARTITION, 0,  "partition",     TEXT,   "NAME",    "whose devices it is given (the scheduler's default)") \
	X(OF_ACCOUNT,  0,   "account",       TEXT,   "NAME",    "which of its user's accounts it counts to (job.account, or the first)") \
	X(EXPECT,      0,   "expect",        TEXT,   "T",       "how long it would run on its fastest type: a guess for policies") \
	X(REASON,      0,   "reason",        TEXT,   "TEXT",    "why, a line for people")                           \
	X(WINDOW_FOR,  0,   "for",           TEXT,   "T",       "how long it lasts, as 90s, 45min, 12h or 3d")      \
	X(WINDOW_UNTIL, 0,  "until",         TEXT,   "T",       "when it ends: a time from now, or a date (2026-12-01T08:00:00Z)") \
	X(WINDOW_FROM, 0,   "from",          TEXT,   "T",       "when it begins (now): a time from now, or a date (2026-12-01T08:00:00Z)") \
	X(WINDOW_DEVICES, 0, "devices",      TEXT,   "TYPE:N,...", "which devices: TYPE:N, a type (all of it), or one by name") \
	X(WINDOW_USER, 0,   "user",          TEXT,   "NAME",    "for jobs of this user")                            \
	X(WINDOW_ACCOUNT, 0, "account",      TEXT,   "NAME",    "for jobs of this account (users.yaml)")            \
	X(MAINTENANCE, 0,   "maintenance",   FLAG,   "",        "for no jobs at all")                               \
	X(TASKS,       0,   "tasks",         FLAG,   "",        "all tasks of its array; jobs: a line for each")   \
	X(WEIGHT,      0,   "weight",        TEXT,   "X",       "of the job: twice as much, twice the share")      \
	X(SCALE,       0,   "scale",         TEXT,   "N",       "devices that the job wants at once")              \
	X(ADD,         0,   "add",           TEXT,   "TYPE:N,...", "so many more devices of a type")               \
	X(STATE,       0,   "state",         TEXT,   "FILE",    "a cluster and its jobs (JSON)")                   \
	X(STATE_SET,   0,   "set",           TEXT,   "NAME",    "which state, where the file holds several")       \
	X(SCHED_POLICY, 0,  "policy",        TEXT,   "NAME",    "which job gets which devices: a policy of `heddle sched policies`, or its published name") \
	X(FAITHFUL,    0,   "faithful",      FLAG,   "",        "do what the published code does, its faults included") \
	X(LP_ITERATIONS, 0, "lp-iterations", COUNT,  "N",       "give a linear program up after so many iterations (default 1000000)") \
	X(JOBS,        0,   "trace",         TEXT,   "FILE",    "jobs: a trace of 10 or 7 columns, a table (CSV), or sacct --parsable") \
	X(GENERATE,    0,   "generate",      TEXT,   "K=X,...", "the published generator: rate, seed, jobs or first and end; multi, priorities, slo") \
	X(THROUGHPUTS, 0,   "throughputs",   TEXT,   "FILE",    "measured rates by kind of job and type (JSON); kinds of a table's jobs are drawn from it") \
	X(POOL,        0,   "cluster",       TEXT,   "TYPE:N,...", "devices of each type")                            \
	X(PRICE,       0,   "price",         TEXT,   "TYPE:X,...", "money per device and hour (default 0)")           \
	X(SPEED,       0,   "speed",         TEXT,   "TYPE:X,...", "work per second of a job without measured rates (default 1); measured: from jobs of an accounting that ran on several types") \
	X(REVOKE,      0,   "revoke",        TEXT,   "TYPE:X,...", "revocations of a device per hour; it is away for ten minutes") \
	X(LOST,        0,   "lost",          TEXT,   "SECONDS", "work that a revocation costs its job (default 0)") \
	X(MAP,         0,   "map",           TEXT,   "FIELD=COLUMN,...", "columns of a table: submit, duration, gpus, type, weight, user, deadline") \
	X(ROUND,       0,   "round",         TEXT,   "SECONDS", "how long an assignment holds (default 60; faithful 360)") \
	X(LEASE,       0,   "lease",         TEXT,   "SECONDS", "so long jobs go on without a word of their scheduler, and a policy may take to answer; at least three rounds (default 30)") \
	X(RESET,       0,   "min-reset",     TEXT,   "SECONDS", "least time between two new shares (default 30; faithful 1920)") \
	X(SWITCHING,   0,   "switching",     TEXT,   "S,R,M,P", "seconds that a start, resize, move and preemption cost (default 30,1,20,5)") \
	X(ROWS,        0,   "rows",          TEXT,   "FILE",    "write one row a job (CSV)")                       \
	X(LOG,         0,   "log",           TEXT,   "FILE",    "write every decision, one JSON object a line")    \
	X(LAUNCH,      0,   "launch",        WORD,   "local|ssh|slurm", "what starts workers (launch.kind)") \
	X(PRINT,       0,   "print",         FLAG,   "",        "print what would be submitted, submit nothing") \
	X(PLACES,      0,   "nodes",         TEXT,   "N[..M]",  "workers on other machines, one a node: M are asked for, with N it begins") \
	X(LENT_NODES,  0,   "nodes",         TEXT,   "[N..]M",  "with --launch: batch jobs of one node, as many as jobs ask for, N at least, M at most") \
	X(NO_PILOTS,   0,   "no-pilots",     FLAG,   "",        "with --launch: a batch job for each job, of as many nodes as it is given") \
	X(LENT_FROM,   0,   "partition",     TEXT,   "NAME",    "with --launch: Slurm's partition (default: the cluster's)") \
	X(LENT_AS,     0,   "account",       TEXT,   "NAME",    "with --launch: Slurm's account") \
	X(LENT_FOR,    0,   "time",          TEXT,   "HH:MM:SS", "with --launch: time limit of one node; another takes its place after that") \
	X(LENT_IDLE,   0,   "idle",          TEXT,   "TIME",    "with --launch: a node without work is given back after it (default 60s)") \
	X(LENT_EXTRA,  0,   "sbatch",        TEXT,   "OPTIONS", "with --launch: more options of sbatch, with blanks between") \
	X(NODES,       0,   "nodes",         TEXT,   "FILE",    "machines with their devices (sn,gpu,model...: Alibaba's list), in place of --cluster") \
	X(PRICES,      0,   "prices",        TEXT,   "FILE,...", "histories of spot prices: lines between tabs, CSV, or the provider's JSON") \
	X(ZONES,       0,   "zones",         TEXT,   "ZONE,...", "only prices of these zones (default: the cheapest of all)") \
	X(PRICE_AS,    0,   "price-as",      TEXT,   "TYPE=NAME,...", "what the prices call a type (default: the same)") \
	X(PRICES_FROM, 0,   "prices-from",   TEXT,   "TIME",    "time of the prices when the first job comes: ISO 8601, or seconds since 1970 (default: their start)") \
	X(SPOT,        0,   "spot",          TEXT,   "[TYPE:]FILE", "machines of a type that come and go: milliseconds,add|remove,name; samples of a count; or name,start,stop") \
	X(MARKET,      0,   "spot",          TEXT,   "FILE",    "what each way through losses of machines is worth: a market (JSON), or a trace of machines") \
	X(SPOT_TRACE,  0,   "trace",         TEXT,   "FILE",    "when machines came and went: milliseconds,add|remove,name; samples of a count; or name,start,stop") \
	X(SPOT_MODEL,  0,   "model",         TEXT,   "FILE",    "what a step takes on 1, 2, ... pipelines, and on machines on demand (JSON)") \
	X(RESILIENCE,  0,   "resilience",    TEXT,   "WAY",     "way through losses: shadow (the default), reroute or checkpoint; :STEPS between checkpoints") \
	X(TIMES_FAST,  0,   "speed",         COUNT,  "X",       "the trace passes so many times as fast (default 1)") \
	X(SPOT_NOTICE, 0,   "notice",        TEXT,   "WHICH",   "what says before that a machine goes: none (the default), ec2:120, gce:30, azure:30 (seconds of the trace), p:0.8 (that share, by EC2)") \
	X(MAX_NODES,   0,   "max-nodes",     COUNT,  "N",       "machines that are taken at once (default 16)")    \
	X(PLAY_MODEL,  0,   "simulate",      FLAG,   "",        "no process: the same machines on a simulated clock, by --model FILE") \
	X(ELASTIC,     0,   "elastic",       TEXT,   "K=X,...", "jobs run on other numbers of devices: min, max, vns, resize (seconds), speedup=S1:S2:..., mixed") \
	X(ENTITIES,    0,   "entities",      TEXT,   "NAME:WEIGHT,...", "entities that share the cluster; a job is of its user, without one of number id mod count") \
	X(ENTITY_KIND, 0,   "entity-kind",   WORD,   "fairness|fifo", "how jobs of an entity share (default fairness)") \
	X(DEADLINE_FACTOR, 0, "deadline-factor", TEXT, "X",    "deadlines for jobs without one, so many times their duration") \
	X(TUNE,        0,   "tune",          TEXT,   "K=X,...", "kappa, away, stop, failures, free-switching; beta, phi, patience, delay, alpha, pack, published, backfill, preempt") \
	X(SLURM,       0,   "slurm",         TEXT,   "K=X,...", "the row slurm: weights age, fairshare, size, partition, qos; max-age, half-life, limit (seconds), small, depth, backfill=conservative|easy|none; partition.NAME, qos.NAME, share.NAME") \
	X(SINFO_PARTITIONS, 0, "partitions", TEXT,   "FILE",    "nodes and partitions, as sinfo prints them (see the help of sched advise), in place of --cluster: jobs keep to the nodes of their partitions") \
	X(ANY_TYPE,    0,   "any-type",      FLAG,   "",        "jobs of an accounting that asked for no type of GPU may run on any, not only on what they got") \
	X(SQUEUE,      0,   "squeue",        TEXT,   "FILE",    "what squeue printed (see the help of sched advise), in place of asking it") \
	X(SINFO,       0,   "sinfo",         TEXT,   "FILE",    "what sinfo printed, of the same moment") \
	X(GROUP_BY,    0,   "by",            WORD,   "user|account|partition|qos|type", "waits of each, too") \
	X(ONLY_USER,   0,   "user",          TEXT,   "NAME",    "look at jobs of this user alone; all others run too") \
	X(ONLY_ACCOUNT, 0,  "account",       TEXT,   "NAME",    "look at jobs of this account alone") \
	X(ONLY_PARTITION, 0, "partition",    TEXT,   "NAME",    "look at jobs of this partition alone") \
	X(FROM_TIME,   0,   "from",          TEXT,   "TIME",    "look at jobs submitted from then on: ISO 8601, or seconds since 1970") \
	X(TO_TIME,     0,   "to",            TEXT,   "TIME",    "look at jobs submitted before") \
	X(MIN_GPUS,    0,   "min-gpus",      COUNT,  "N",       "look at jobs of so many devices or more") \
	X(ESTIMATE,    0,   "estimate",      TEXT,   "K=X,...", "packed policies see estimated pairs: q (part measured, 0.2), r (reference kinds, 16; 0: all), seed, published") \
	X(HTML,        0,   "html",          TEXT,   "FILE",    "write a page about it: distributions, devices of each job, cost; needs nothing else") \
	X(POOLS,       0,   "pool",          TEXT,   "TYPE:N[:SPEED[:PRICE]],...", "devices to hand out: a type's count, its speed against the others, dollars an hour") \
	X(WEBHOOK,     0,   "webhook",       TEXT,   "URL",     "POST what ends jobs and takes devices there, as JSON (https, or http to this machine)") \
	X(HTTP,        0,   "http",          TEXT,   "127.0.0.1:PORT", "serve: listen there too, for clients that have DIR/token; top: the run's page (port 0: any)") \
	X(SOCKET,      0,   "socket",        TEXT,   "FOLDER",  "another folder with a socket for the users of DIR/users.yaml: their --dir") \
	X(CHECK,       0,   "check",         FLAG,   "",        "check DIR/users.yaml, with --pool the whole of DIR, and stop")                   \
	X(TOKEN_FOR,   0,   "for",           TEXT,   "TIME",    "how long it holds, as 12h or 90d (default 30d)")  \
	X(REPLACE,     0,   "replace",       FLAG,   "",        "take the place of the scheduler that serves --dir; jobs go on meanwhile") \
	X(BACKUP,      0,   "backup",        TEXT,   "FOLDER",  "copy the store of the scheduler of --dir to a new folder, while it serves or not, and stop") \
	X(RESTORE,     0,   "restore",       TEXT,   "FOLDER",  "put a backup back into --dir, where no scheduler serves and no run works, and stop") \
	X(DRAIN,       0,   "drain",         FLAG,   "",        "at the end of the scheduler jobs commit and leave first") \
	X(GOING,       0,   "going",         FLAG,   "",        "leave if the run was stopped; else a process that comes later goes on with it") \
	X(HOLD,        0,   "hold",          TEXT,   "FILE",    "pid lock of a scheduler's device: one worker at a time") \
	X(EDGES,       0,   "edges",         TEXT,   "FILE",    "edges of a graph")                                \
	X(FEATURES,    0,   "features",      TEXT,   "FILE",    "features of its vertices, with their labels")     \
	X(LABELS,      0,   "labels",        TEXT,   "FILE",    "labels, where they do not stand with the features") \
	X(SETS,        0,   "split",         TEXT,   "FILE",    "which vertices are for training, validation, test") \
	X(INTERVALS,   0,   "intervals",     COUNT,  "N",       "a power of two (default: by the number of edges)") \
	X(CLASSES,     0,   "classes",       COUNT,  "N",       "labels are below it (default: one more than the highest)") \
	X(DIRECTED,    0,   "directed",      FLAG,   "",        "an edge counts one way")                          \
	X(SPLITTER,    0,   "splitter",      WORD,   "auto|own|metis", "what cuts the graph (default auto: METIS where it is built in)") \
	X(SPLIT_SEED,  0,   "seed",          COUNT,  "N",       "seed of METIS (default 0)")                       \
	X(SORT_MEMORY, 0,   "memory",        TEXT,   "BYTES",   "what sorting edges takes at most, as 256MiB (default 1GiB)") \
	X(FUNCTION,    0,   "function",      WORD,   "lambda|pool|http", "function workers: what this one serves; bench: what calls them") \
	X(PACK,        0,   "pack",          WORD,   "lambda",  "instead: write the zip file that AWS Lambda starts a function worker from, to -o") \
	X(BOOTSTRAP,   0,   "bootstrap",     TEXT,   "FILE",    "the executable of function workers (default: heddle-function, which lies with this program)") \
	X(SLOTS,       0,   "slots",         COUNT,  "N",       "function workers at once (default 4; chaos lambda: 10; worker --function=http: 1)") \
	X(KILL,        0,   "kill",          TEXT,   "P",       "part of all calls whose process is killed, as 0.05") \
	X(STRAGGLE,    0,   "straggle",      TEXT,   "P:FACTOR", "part of all calls that take so many times as long, as 0.05:10") \
	X(DROP_RESPONSE, 0, "drop-response", TEXT,   "P",       "part of all calls whose answer is lost")          \
	X(DUPLICATE,   0,   "duplicate",     TEXT,   "P",       "part of all calls whose event is given out twice") \
	X(FAULT_SEED,  0,   "seed",          COUNT,  "N",       "seed of what fails (default 0)")                  \
	X(PRICE_FILE,  0,   "price",         TEXT,   "NAME",    "prices of functions: 2020, 2021, 2025 (default), or a file") \
	X(GRAPH_PRICES, 0,  "prices",        TEXT,   "NAME",    "prices of functions: 2020, 2021, 2025, or a file (default: 2021, then 2025)") \
	X(GRAPH_RATES, 0,   "rates",         TEXT,   "FILE",    "rates of a core (JSON) in place of those measured here") \
	X(GRAPH_MODEL, 0,   "model",         WORD,   "gcn|gat", "runs of this model alone") \
	X(ENDPOINT,    0,   "endpoint",      TEXT,   "URL",     "where functions are called: https://HOST, or http://127.0.0.1:PORT of chaos lambda or a front end") \
	X(REPORTS,     0,   "reports",       TEXT,   "FILE",    "lines REPORT that chaos lambda wrote: they settle the ledger") \
	X(COLD_MS,     0,   "cold-ms",       COUNT,  "MS",      "what the start of an instance takes at least (default 0)") \
	X(LAST_STEPS,  0,   "steps",         COUNT,  "N",       "the newest N steps of the recording (default 100)") \
	X(CHANNELS,    0,   "bandwidth",     TEXT,   "K",       "bytes travel K times as fast")                    \
	X(WORKER_AS,   0,   "worker",        TEXT,   "W=median", "what worker W does costs what it costs the others") \
	X(PLAN_AS,     0,   "plan",          TEXT,   "FILE",    "steps go by this plan of the same job")          \
	X(ORDER_AS,    0,   "order",         WORD,   "auto|fifo|random|tic|tic+|tac|search", "transfers go as with this comm.order")   \
	X(FASTER,      0,   "compute",       TEXT,   "K",       "devices compute K times as fast")                \
	X(DATA_WAITS,  0,   "data",          TEXT,   "X",       "waits for data take X times as long (0: none)")   \
	X(FN_BANDWIDTH, 0,  "bandwidth",     TEXT,   "BYTES",   "bytes a second between an instance and its owner, as 10MiB (default: no bound)") \
	X(MEMORY_MB,   0,   "memory-mb",     COUNT,  "MB",      "memory of an instance, and its share of a core: 1769 are one (default 1769)") \
	X(NO_AUTH,     0,   "no-auth",       FLAG,   "",        "signatures are not looked at")                    \
	X(TOKENIZER,   0,   "tokenizer",     TEXT,   "FILE",    "a published tokenizer.json")                      \
	X(FIELD,       0,   "field",         TEXT,   "NAME",    "texts are JSON Lines or Parquet: the member of each line, the column, that is a document") \
	X(LINES,       0,   "lines",         FLAG,   "",        "each line of a text is a document")               \
	X(BOS,         0,   "bos",           TEXT,   "TOKEN",   "before each document (default: nothing)")         \
	X(EOS,         0,   "eos",           TEXT,   "TOKEN",   "behind each document (default: the tokenizer's end token; '': nothing)") \
	X(SPECIAL,     0,   "special",       FLAG,   "",        "with the tokens of the tokenizer's post-processor") \
	X(BOUNDARIES,  0,   "boundaries",    TEXT,   "FILE",    "write where each document begins, too")           \
	X(TOKEN_THREADS, 0, "threads",       COUNT,  "T",       "threads that tokenize (default: the cores)")      \
	X(TO_KIND,     0,   "to",            WORD,   "npy|records|tokens", "the kind of data to write")          \
	X(RATE,        0,   "rate",          TEXT,   "R",       "jobs per hour, in the mean of a week (default 11.4: 100,000 a year)")

enum hd_opt {
#define X(id, letter, name, kind, value, about) HD_OPT_##id,
	HD_OPTIONS(X)
#undef X
	HD_NOPTS
};

struct hd_opt_row { char letter; const char *name; uint8_t kind; const char *value, *about; };
extern const struct hd_opt_row hd_opts[HD_NOPTS];

enum { HD_MAX_POSITIONALS = 250, HD_MAX_SETS = 64 };

struct hd_args {
	bool        has[HD_NOPTS];
	const char *text[HD_NOPTS];               /* TEXT, WORD */
	uint64_t    count[HD_NOPTS];              /* COUNT */
	const char *set[HD_MAX_SETS]; uint32_t nsets;      /* REPEAT, in order */
	const char *pos[HD_MAX_POSITIONALS]; uint32_t npos;
};

/* What an option says, or what is meant without it. */
static inline const char *hd_args_text(const struct hd_args *args, enum hd_opt opt, const char *otherwise)
{
	return args->has[opt] ? args->text[opt] : otherwise;
}
static inline uint64_t hd_args_count(const struct hd_args *args, enum hd_opt opt, uint64_t otherwise)
{
	return args->has[opt] ? args->count[opt] : otherwise;
}

struct hd_verb;

/* argv without the program's name and the verb. Texts are borrowed from argv. */
HD_MUST_USE enum hd_err hd_args_parse(struct hd_args *args, const struct hd_verb *verb, int argc, char **argv,
	struct hd_diag *diag);

#endif
