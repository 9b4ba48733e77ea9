#include "cmd/verbs.h"

#include <stddef.h>

#define OPTS(...) ((const enum hd_opt[]){ __VA_ARGS__ __VA_OPT__(,) HD_NOPTS })

static const char run_more[] =
	"The run directory is runs/NAME below the current folder (or -C DIR), NAME from job.name; a name "
	"that is taken gets -2, -3 and so on. It holds the resolved job, metrics.ndjson, events.ndjson, "
	"checkpoints and report.html.\n"
	"Devices and threads never change a bit of the result: only how fast it comes. --dry-run says "
	"which are chosen and what memory is predicted; with --workers N of each worker.\n"
	"Nothing listens but Unix sockets in that directory, unless --listen HOST:PORT --key FILE lets "
	"workers of other machines join.\n"
	"SIGTERM, or SIGHUP (the terminal closes): finish the step, checkpoint, exit 75; SIGINT: the same "
	"with 130; a second signal leaves at once. With --detach the run goes on without its terminal, its "
	"words in RUN/log/run.log; so it does under nohup.";

#define RUN_OPTS HD_OPT_STEPS, HD_OPT_WORKERS, HD_OPT_LISTEN, HD_OPT_KEY, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_PLAN, \
	HD_OPT_SET, HD_OPT_EVENTS, \
	HD_OPT_DETACH

#define SCHEDULE_OPTS HD_OPT_SCHEDULE, HD_OPT_RANKS, HD_OPT_VNS, HD_OPT_CHUNKS, HD_OPT_GROUP, \
	HD_OPT_REPLICAS, HD_OPT_CAP, HD_OPT_COSTS, HD_OPT_COMM
#define SCHED_OPTS HD_OPT_SCHED_POLICY, HD_OPT_JOBS, HD_OPT_GENERATE, HD_OPT_THROUGHPUTS, HD_OPT_POOL, HD_OPT_PRICE, \
	HD_OPT_SPEED, HD_OPT_REVOKE, \
	HD_OPT_LOST, HD_OPT_MAP, HD_OPT_FAITHFUL, HD_OPT_ROUND, HD_OPT_RESET, HD_OPT_SWITCHING, HD_OPT_SEED, \
		HD_OPT_NODES, HD_OPT_LP_ITERATIONS, \
	HD_OPT_PRICES, HD_OPT_ZONES, HD_OPT_PRICE_AS, HD_OPT_PRICES_FROM, HD_OPT_SPOT, HD_OPT_ELASTIC, \
		HD_OPT_ENTITIES, HD_OPT_ENTITY_KIND, \
	HD_OPT_DEADLINE_FACTOR, HD_OPT_TUNE, HD_OPT_ESTIMATE
#define COST_OPTS HD_OPT_PERIODS

const struct hd_verb hd_verbs[] = {
	{ "run", "JOB", 0, 1, "train a job here", run_more,
	  OPTS(RUN_OPTS, HD_OPT_OUT, HD_OPT_DRY_RUN, HD_OPT_SHOW_CONFIG, HD_OPT_NEW), hd_cmd_run,
	  "program_run.sh" },
	{ "resume", "RUN", 1, 1, "continue a run from its newest whole checkpoint, bit for bit",
	  "A checkpoint that is damaged is reported and the next older one is taken. A run that ended "
	  "before its first one begins at step 0.",
	  OPTS(RUN_OPTS, HD_OPT_FROM, HD_OPT_NEW_SEMANTICS), hd_cmd_resume, "program_resume.sh" },
	{ "eval", "RUN", 1, 1, "loss and accuracy of a run's newest checkpoint on a split",
	  "RUN is a run directory or a checkpoint folder. The metric has the same bits on any number of "
	  "devices.",
	  OPTS(HD_OPT_SPLIT, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET), hd_cmd_eval, "program_eval.sh" },
	{ "predict", "RUN", 1, 1, "outputs of a run's newest checkpoint: a .npy of a split, or sampled text",
	  "With --prompt the model continues the text (models of tokens); otherwise the outputs (logits) "
	  "of every row of the split are written to --output (default predictions.npy in the run "
	  "directory).",
	  OPTS(HD_OPT_SPLIT, HD_OPT_OUTPUT, HD_OPT_PROMPT, HD_OPT_TOKENS, HD_OPT_TEMPERATURE, HD_OPT_SEED,
	  HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET),
	  hd_cmd_predict, "program_predict.sh" },
	{ "worker", "", 0, 0, "join a run as one of its workers, with the devices of this machine",
	  "--join RUN: the folder of a run that was started with --workers; `heddle run` starts its own "
	  "workers this way. A worker learns the state while the others go on, takes its part between two "
	  "steps, and leaves at SIGTERM or SIGHUP after the step at hand (exit 75). If the others went on "
	  "without it, it joins again. If the coordinator is gone, it starts another.\n"
	  "ps and top show it as `heddle: worker N of RUN`, N its number in `heddle status RUN`, and then "
	  "its arguments.\n"
	  "--join HOST:PORT --key FILE: a run of another machine, started with --listen HOST:PORT --key "
	  "FILE. The job comes from there; the data must be here too, at the same path or where -s "
	  "data.path=PATH says. Other workers call this one at --listen HOST:PORT, by default at the "
	  "address from which it calls the run. Without a way to the run for 30 times workers.detect: exit "
	  "75.\n"
	  "--wait 60s: a run that is not there yet is tried again for so long, in pauses of at most 5 s.",
	  OPTS(HD_OPT_JOIN, HD_OPT_WAIT_UP, HD_OPT_KEY, HD_OPT_LISTEN, HD_OPT_DEVICES, HD_OPT_THREADS,
	  HD_OPT_STEPS, HD_OPT_SLOW, HD_OPT_ISA, HD_OPT_HOLD,
		  HD_OPT_SET),
	  hd_cmd_worker, "program_remote.sh" },
	{ "serve", "", 0, 0, "schedule the jobs of a folder over local devices; or coordinate one run",
	  "--dir DIR --pool TYPE:N[:SPEED],...: schedules what is submitted to DIR over so many devices of "
	  "each type, one worker process each; slower types have a part of a core. --policy decides which "
	  "job gets which for how long, round by round; jobs are resized and moved while they run, or commit "
	  "and go on later, with the same bits; by what a move costs (--switching; 2 s) they hold on to "
	  "devices.\n"
	  "Jobs outlive the scheduler: started again with the same DIR it finds them.\n"
	  "SIGTERM or SIGHUP ends it and lets jobs go on; with --drain they commit and leave. A second one "
	  "of the same DIR is refused (exit 1). Users come through DIR/heddle.sock; nothing else listens "
	  "unless --http asks for it.\n"
	  "--job RUN: takes over the run in that folder: its members and what was decided stand "
	  "in its store. Workers do so by themselves. While another one coordinates it, nothing is done "
	  "(exit 1).\n"
	  "--job RUN --workers N: begins it, or goes on from its newest checkpoint, for N workers (how a "
	  "scheduler starts a job).\n"
	  "--new-key FILE: writes a new key for `run --listen` and `worker --join HOST:PORT`, readable by "
	  "you alone, and stops. Copy the file to the other machines; it is never sent, nor named in an "
	  "argument or a log.",
	  OPTS(HD_OPT_POOLS, HD_OPT_SCHED_POLICY, HD_OPT_ROUND, HD_OPT_SWITCHING, HD_OPT_HTTP, HD_OPT_DRAIN,
	  HD_OPT_JOB, HD_OPT_WORKERS, HD_OPT_LISTEN,
		  HD_OPT_KEY, HD_OPT_NEW_KEY, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_STEPS, HD_OPT_SET),
		  hd_cmd_serve, "program_cluster.sh" },
	{ "chaos run", "JOB", 1, 1, "run a job under faults, and undisturbed on one device, and compare the states",
	  "SIGKILL to any process of the run, the coordinator too, at any instant; a tenth as many of each "
	  "other kind (--faults): pauses (SIGSTOP, SIGCONT), processes slowed, links cut, dumb or late, "
	  "disks full, failing or slow, deaths at named places, other numbers of workers. What, when and "
	  "at which process is drawn from --seed. Exit 0 only if both runs end with the same bits, and the "
	  "run "
	  "recorded each sample once in each data epoch (heddle data verify); 5 if not, if no step is "
	  "committed for a minute, or if --points was asked for and a place had fewer deaths; 1 if kills, "
	  "or faults of a kind that --faults names, had no turn. Steps that would be over before their "
	  "faults are made longer (workers.pace). If all processes died, the run is resumed. The run "
	  "directories stay: --out DIR (default runs/chaos, chaos-2, ...) holds chaos and undisturbed.",
	  OPTS(HD_OPT_SEED, HD_OPT_KILLS, HD_OPT_POINTS, HD_OPT_FAULTS, HD_OPT_STEPS, HD_OPT_WORKERS,
	  HD_OPT_DEVICES, HD_OPT_OUT, HD_OPT_SET),
	  hd_cmd_chaos_run, "program_chaos.sh" },
	{ "chaos kill", "RUN", 1, 1, "kill processes of a run that goes on with workers",
	  "--kills K, one after the other, --mtbf apart on average; a process is left each time that can "
	  "go on.",
	  OPTS(HD_OPT_SEED, HD_OPT_KILLS, HD_OPT_MTBF, HD_OPT_TARGET), hd_cmd_chaos_kill,
	  "program_chaos.sh" },
	{ "chaos pause", "RUN", 1, 1, "stop processes of a run (SIGSTOP) and let them go on (SIGCONT)",
	  "A process that stands still for longer than workers.detect finds that the others went on without "
	  "it, and joins again.",
	  OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR), hd_cmd_chaos_pause,
	  "program_chaos.sh" },
	{ "chaos slow", "RUN", 1, 1, "let processes of a run have a part of their time only",
	  "--slow X: one X-th of it, by stops of less than 30 ms.",
	  OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR, HD_OPT_SLOW),
	  hd_cmd_chaos_slow, "program_chaos.sh" },
	{ "chaos net", "RUN", 1, 1, "disturb links between processes of a run",
	  "One end of a link between two workers, or of a worker to the coordinator: it closes and cannot "
	  "be opened (cut), hears nothing (drop), or is late with everything (delay). Builds with "
	  "failpoints.",
	  OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_FOR, HD_OPT_HOW), hd_cmd_chaos_net,
	  "program_chaos.sh" },
	{ "chaos disk", "RUN", 1, 1, "let writes of checkpoints, decisions and logs of a run fail, or be slow",
	  "Builds with failpoints.",
	  OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR, HD_OPT_HOW),
	  hd_cmd_chaos_disk, "program_chaos.sh" },
	{ "scale", "RUN N|+K|-K|auto", 2, 2, "ask a run for another number of workers, while it goes on",
	  "The run is one of `heddle run --workers`. Workers come and go between two steps; not a bit of "
	  "the result depends on it.\n"
	  "auto: the run tries sizes and stays at the best (elastic.autoscale of the job says what that "
	  "is); `heddle status` says why.\n"
	  "A number turns that off. --wait: until that many are members.",
	  OPTS(HD_OPT_WAIT, HD_OPT_POLICY), hd_cmd_scale, "program_elastic.sh" },
	{ "stop", "RUN", 1, 1, "end a run after the step at hand, with a checkpoint (exit 75 there); or let one worker go",
	  "--worker ID: that worker leaves, the run goes on. --now: the run ends without a last checkpoint.",
	  OPTS(HD_OPT_WORKER, HD_OPT_NOW), hd_cmd_stop, "program_elastic.sh" },
	{ "submit", "JOB", 1, 1, "hand a job to a scheduler (`heddle serve --dir DIR`)",
	  "The job file, -s and the model are checked here first; relative paths begin in the current "
	  "folder. The job's number goes to stdout.\n"
	  "--scale: devices it wants at once. --rates: its steps/s on that many devices of a type, where "
	  "they are known; others are measured.",
	  OPTS(HD_OPT_PRIORITY, HD_OPT_DEADLINE, HD_OPT_SCALE, HD_OPT_RATES, HD_OPT_JOB_NAME, HD_OPT_SET),
	  hd_cmd_submit, "program_jobs.sh" },
	{ "jobs", "", 0, 0, "the jobs of a scheduler, oldest first", "--json: an object a line.", OPTS(HD_OPT_JOB_STATE), hd_cmd_jobs, "program_jobs.sh" },
	{ "explain", "JOB", 1, 1, "why a job of a scheduler waits, or runs where it runs",
	  "JOB is its number or name (the youngest of that name). One leading reason with its numbers, "
	  "what would help, and the job against each type of device: its speed there, its share of the "
	  "time, what it received of what it was due.",
	  OPTS(), hd_cmd_explain, "program_jobs.sh" },
	{ "cancel", "JOB", 1, 1, "end a job of a scheduler", "A job that runs finishes the step at hand and commits; its run directory stays.", OPTS(), hd_cmd_cancel,
	  "program_jobs.sh" },
	{ "prio", "JOB P", 2, 2, "give a job of a scheduler another priority", "It weighs from the next round on: twice as much, twice the share.", OPTS(), hd_cmd_prio,
	  "program_jobs.sh" },
	{ "status", "[RUN]", 0, 1, "where a run stands: step, loss, workers; without RUN a scheduler: devices, jobs, why they wait",
	  "Of a run, whether it goes on or how it ended; or of the scheduler of --dir. Where a run's "
	  "coordinator is gone it waits for the next one, as scale and stop do. States: new, starting, "
	  "running, evaluating, waiting, stopping; done, stopped, failed, died; ended: an earlier program "
	  "did not record how.",
	  OPTS(HD_OPT_WATCH, HD_OPT_EVERY), hd_cmd_status, "program_elastic.sh" },
	{ "top", "[RUN]", 0, 1, "the same as a live screen",
	  "On a terminal the screen is rewritten, elsewhere a table follows the other; ends with the run, "
	  "or the scheduler.",
	  OPTS(HD_OPT_EVERY), hd_cmd_top, "program_elastic.sh" },
	{ "ckpt ls", "RUN", 1, 1, "list the checkpoints of a run", "", OPTS(), hd_cmd_ckpt_ls, "program_ckpt.sh" },
	{ "ckpt show", "CKPT", 1, 1, "what a checkpoint holds", "A run directory stands for its newest whole checkpoint.", OPTS(), hd_cmd_ckpt_show,
		"program_ckpt.sh" },
	{ "ckpt verify", "CKPT", 1, 1, "check sizes, hashes, structure and digest",
		"Of a run directory every checkpoint is checked, a line each; exit 5 if any is bad.", OPTS(),
		hd_cmd_ckpt_verify, "program_ckpt.sh" },
	{ "ckpt digest", "CKPT", 1, 1, "print the state digest: one hex line", "", OPTS(), hd_cmd_ckpt_digest, "program_ckpt.sh" },
	{ "ckpt diff", "A B", 2, 2, "compare two checkpoints or runs, bit for bit",
	  "Exit 0: identical; 5: different; 3: unreadable. For runs the first divergent step of their "
	  "digest logs is named.",
	  OPTS(HD_OPT_ULP, HD_OPT_REL), hd_cmd_ckpt_diff, "program_ckpt.sh" },
	{ "ckpt export", "CKPT", 1, 1, "write the parameters as one safetensors file", "Our names and f32 unless --names and --dtype say otherwise.",
		OPTS(HD_OPT_SAFETENSORS, HD_OPT_OUTPUT, HD_OPT_NAMES, HD_OPT_DTYPE, HD_OPT_TIED),
		hd_cmd_ckpt_export, "program_ckpt.sh" },
	{ "ckpt gc", "RUN", 1, 1, "remove all but the newest checkpoints", "", OPTS(HD_OPT_COUNT_, HD_OPT_DRY_RUN), hd_cmd_ckpt_gc, "program_ckpt.sh" },
	{ "data show", "JOB", 1, 1, "fields, splits and content hash of a job's data", "", OPTS(HD_OPT_SET), hd_cmd_data_show, "program_data.sh" },
	{ "data verify", "JOB|RUN", 1, 1, "read every sample once; or prove that each data epoch of a run took each sample once",
	  "Of a run with trace.samples: from what its virtual nodes took, as whoever computed them wrote "
	  "it into RUN/samples/WORKER.ndjson: a line {\"step\":12,\"vn\":3,\"took\":[[0,[17,4,5]]]} has "
	  "the samples of each data epoch in the order of the rows. What was computed twice must have "
	  "taken the same, and counts once. Steps up to the newest checkpoint count. Exit 5: a sample is "
	  "missing, or was taken twice.\n"
	  "Workers of other machines keep no record.",
	  OPTS(HD_OPT_SET), hd_cmd_data_verify, "program_data.sh" },
	{ "data order", "JOB", 1, 1, "sample ids of a step, or of a step of a data epoch", "", OPTS(HD_OPT_STEP, HD_OPT_EPOCH, HD_OPT_SET),
		hd_cmd_data_order, "program_data.sh" },
	{ "data cat", "JOB", 1, 1, "print samples of a split as JSON lines, as the model sees them", "", OPTS(HD_OPT_SPLIT, HD_OPT_COUNT_, HD_OPT_EPOCH,
		HD_OPT_SET), hd_cmd_data_cat, "program_data.sh" },
	{ "model ls", "", 0, 0, "built-in models and their arguments", "", OPTS(), hd_cmd_model_ls, "program_model.sh" },
	{ "model show", "NAME|JOB|FILE.graph", 1, 1, "a model as graph text, with its size and cost", "", OPTS(HD_OPT_SET, HD_OPT_AUTODIFF, HD_OPT_OUTPUT),
		hd_cmd_model_show, "program_model.sh" },
	{ "model import", "FILE|DIR", 1, 1, "make a model of ours from published weights, or from an ONNX file",
	  "A .safetensors file, a *.safetensors.index.json with its shards, or a folder that holds either. "
	  "A config.json beside them (of transformers: gpt2, llama, bert) gives model and arguments: each "
	  "of its keys is read, or refused by name; for arguments -s ARGUMENT=VALUE counts more. Writes "
	  "DIR/model.safetensors and DIR/job.yaml.\n"
	  "Of FILE.onnx (exported for training) the graph too, DIR/model.graph; what of it cannot be had "
	  "is listed, node by node.",
	  OPTS(HD_OPT_MODEL, HD_OPT_SET, HD_OPT_OUTPUT), hd_cmd_model_import, "program_weights.sh" },
	{ "model export", "RUN", 1, 1, "write a run's newest checkpoint for others to load",
	  "-o FILE.safetensors: public names unless --names heddle, what load_state_dict(strict=True) of "
	  "the PyTorch module takes.\n"
	  "-o FILE.onnx: the graph from x to logits for inference, opset 17, weights inside.",
	  OPTS(HD_OPT_OUTPUT, HD_OPT_NAMES, HD_OPT_DTYPE, HD_OPT_TIED), hd_cmd_model_export,
	  "program_weights.sh" },
	{ "config check", "JOB", 1, 1, "check a job file", "", OPTS(HD_OPT_SET), hd_cmd_config_check, "program_config.sh" },
	{ "config show", "JOB", 1, 1, "the resolved job: every value and where it came from", "", OPTS(HD_OPT_SET), hd_cmd_config_show, "program_config.sh" },
	{ "config schema", "", 0, 0, "JSON Schema of job files", "", OPTS(), hd_cmd_config_schema, "program_config.sh" },
	{ "doctor", "", 0, 0, "what this build and machine can do, and why not more", "", OPTS(HD_OPT_LIMITS), hd_cmd_doctor, "program_doctor.sh" },
	{ "bench step", "JOB", 1, 1, "time the training step of a job",
	  "Medians of real steps after three others; phases are those of device 0, folds counted as "
	  "backward, waits for other devices as joins and update. On one device the cost of virtual nodes "
	  "too: V of them against V times the forward and backward pass of one (the same job with batch/V, "
	  "V = 1) + folds + joins and update, least times; folds are taken as V - 1 passes over a "
	  "gradient, which kernels that fold as they go undercut (an excess below zero).\n"
	  "Memory: what is predicted before the first step, how far the process's resident bytes rose "
	  "above what they were before there was a worker, and how much of that are pages of programs and "
	  "files: no prediction counts those.\n"
	  "Explained: how much of the step are its ops, timed cold (bench op --cold), and its joins and "
	  "update; on one device. Floor: every operation of the step at the measured peak of fused "
	  "multiply-adds, on all its cores.\n"
	  "Nothing of the run is kept.\n"
	  "--save FILE.safetensors: the same problem for another program: parameters before the first step "
	  "by the names of `model export`, the rows of step 0, 1, ... as step0.x, step0.y, ..., the job as "
	  "JSON in the metadata; --json then has the loss of each of these steps to compare with.",
	  OPTS(HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_REPEAT, HD_OPT_SAVE, HD_OPT_SET), hd_cmd_bench_step,
	  "program_bench.sh" },
	{ "bench op", "JOB", 1, 1, "time each op of a job's training step alone, against the roofline",
	  "One device of one thread, each set of kernels that this build has: every distinct (op, shape) "
	  "of the step, best of\n"
	  "--repeat runs in the wave of virtual nodes that the job would use, operands as in the step. All "
	  "columns are of one virtual node: a call that takes W of them counts as W calls of 1/W of its "
	  "time. Gradients of parameters include their folds. MB: what the op reads and writes if nothing "
	  "is cached, so GB/s may exceed the memory's. Share: time at the measured peak (compute) or "
	  "copying speed (memory) of a core, whichever is longer, over the best time.\n"
	  "Last: the sum over a step + the update, and the measured step.\n"
	  "A repeated op finds in the caches what fits them. --cold: --repeat passes over the whole step "
	  "instead, each op once a pass, so that operands are as far away as the step leaves them; best of "
	  "the passes, mean over the ops of a row.",
	  OPTS(HD_OPT_COLD, HD_OPT_REPEAT, HD_OPT_SET), hd_cmd_bench_op, "program_bench.sh" },
	{ "bench allreduce", "", 0, 0, "time the sum of a vector over processes of this machine",
	  "Each process has a vector of floats; afterwards all have the sum, added in one fixed order, by "
	  "the exchange that training uses: buckets of 1 MiB go to their owners, sums come back. The time "
	  "of a round is that of the slowest process, from the word to begin until its sums are there. "
	  "busbw_GBps is 2(N-1)/N times the bytes over the median time. In the first and the last round "
	  "every element is compared, bit for bit, with a sum made alone: \"checked\". tcp goes over "
	  "127.0.0.1, unprotected.\n"
	  "--workers: 2 to 16 (default 2).",
	  OPTS(HD_OPT_WORKERS, HD_OPT_BYTES, HD_OPT_WIRE, HD_OPT_REPEAT), hd_cmd_bench_allreduce,
	  "program_allreduce.sh" },
	{ "profile", "JOB", 1, 1, "measure what each op of a job costs on one device of this machine, for planners",
	  "-o FILE: the profile, which `heddle plan` and `heddle plan partition --graph` read; --json: the "
	  "same on stdout. A node is an op, fused ones together, with its forward pass (F), its backward "
	  "pass for the input (I) and for the weights (W), each timed alone in passes of one virtual node "
	  "of the job; medians are printed. Saved: what the backward pass reads again.\n"
	  "Of links, memory: two threads that hand tensors to one another. Last: the nodes of all virtual "
	  "nodes beside steps that really ran, in whose waves several virtual nodes may share a call. "
	  "Nothing of the run is kept.",
	  OPTS(HD_OPT_SAMPLES, HD_OPT_OUTPUT, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET), hd_cmd_profile,
	  "program_plan.sh" },
	{ "plan show", "[FILE]", 0, 1, "a schedule as text: a line of instructions a rank",
	  "Of a name: --schedule NAME -p P -m M; --schedule help lists the names. Of a file: every "
	  "schedule in it, as it is read.\n"
	  "F forward, B backward, I backward for the input, W for the weights; F3.7 is stage 3 on virtual "
	  "node 7; (F3.7&B0.2) a pair.\n"
	  "--costs and --comm matter to zb-auto alone, which searches for them. --complete adds what a "
	  "skeleton lacks: LD, transfers (SA RA activations, SG RG gradients), PIN and REL of versions, "
	  "RED of stages with copies, STEP.",
	  OPTS(SCHEDULE_OPTS, HD_OPT_COMPLETE), hd_cmd_plan_show, "program_schedule.sh" },
	{ "plan check", "FILE", 1, 1, "prove the schedules of a file, or a plan: complete, in order, no waiting in a circle",
	  "Every finding is a line: the rule, rank, instruction, sentence. Exit 2 if a rule is broken, 3 "
	  "if the file cannot be read.\n"
	  "Below it five instructions before and after each that it names. A file of schedules may hold "
	  "several; --transport adds their transfers and asks whether they end. A plan is a file that a "
	  "run wrote (plan/NNNN.plan): it is held against the rules of this build's runtime. Warnings (a "
	  "bubble above a half, uneven stages, ranks without work) refuse nothing. With\n"
	  "--graph and --memory the predicted peak of each rank is held against the bytes of a device; if "
	  "it is more, a split that fits is named. --repeat N: times the checker itself instead, best of N "
	  "runs.",
	  OPTS(HD_OPT_TRANSPORT, HD_OPT_CREDITS, HD_OPT_GRAPH, HD_OPT_CUTS, HD_OPT_MEMORY, HD_OPT_MAX_CUTS,
	  HD_OPT_COMPRESS, HD_OPT_REPEAT),
	  hd_cmd_plan_check, "program_schedule.sh" },
	{ "plan diff", "A B", 2, 2, "what moves between two plans, or two schedules",
	  "Stages that change ranks, virtual nodes that change ranks (of stages with copies), owners of "
	  "chunks, workers of ranks, and of each list how many instructions are removed and added. With "
	  "--graph, the bytes that ranks need of the stages which they come to hold: weights and optimizer "
	  "state. Exit 0 if nothing differs, 5 if something does, 3 if a file cannot be read.",
	  OPTS(HD_OPT_GRAPH, HD_OPT_CUTS, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS), hd_cmd_plan_diff,
	  "program_plan.sh" },
	{ "plan draw", "[FILE]", 0, 1, "the timeline of a schedule, as text or (-o FILE.svg) as a picture",
	  "Time runs to the right, a line a rank. F forward, B backward, I and W its halves; the number is "
	  "the virtual node, a letter behind it the model chunk (b, c, ... of the second, third, ...); = "
	  "and & continue an instruction and a pair.\n"
	  "With --profile, --cluster or another option of `heddle simulate` also why ranks stand still; as "
	  "text then 120 columns.\n"
	  "--json: one object a schedule: of each rank its instructions and waits, from start to end "
	  "(`before`: which instruction waits).\n"
	  "A FILE, schedules or a plan, passes `heddle plan check` first: what it refuses is printed as "
	  "there, with exit 2.",
	  OPTS(SCHEDULE_OPTS, COST_OPTS, HD_OPT_OUTPUT, HD_OPT_PROFILE, HD_OPT_CUTS, HD_OPT_MAX_CUTS,
	  HD_OPT_COMPRESS, HD_OPT_CLUSTER, HD_OPT_TRANSPORT,
		  HD_OPT_CREDITS, HD_OPT_SEED, HD_OPT_STEPS), hd_cmd_plan_draw, "program_schedule.sh" },
	{ "plan partition", "", 0, 0, "cut a model into stages for machines in levels, by its profile",
	  "Minimises the time of the slowest stage, by the recurrences of PipeDream. A cut is a place "
	  "where the model can be split; stages are ranges of cuts, each on one or more machines (or "
	  "components of machines: level 2 and up). Variants:\n"
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
	  "Of equally fast partitions: fewest stages, least traffic between them, then (from the last "
	  "stage) the earliest cut and the fewest machines; so the same input gives the same bytes "
	  "everywhere. `data parallel` is all machines with the whole model each, as the authors' program "
	  "counts it; the gain compares with it.\n"
	  "--simulate: instead, minibatches a second of data parallel with its sums beside backward, of "
	  "the split `paper` over all machines (at the outermost bandwidth, and at a machine's share of "
	  "it), and of one machine a stage, each as PipeDream runs it: "
	  "transfers share the links, replicas sum every round. The first of the fastest is `best`.",
	  OPTS(HD_OPT_GRAPH, HD_OPT_MACHINES, HD_OPT_BANDWIDTH, HD_OPT_VARIANT, HD_OPT_STRAIGHT, HD_OPT_FEWER,
	  HD_OPT_ACTIVATIONS, HD_OPT_MEMORY,
		  HD_OPT_SIMULATE, HD_OPT_VNS, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS), hd_cmd_plan_partition,
		  "program_plan.sh" },
	{ "plan 2bw", "", 0, 0, "how deep and wide to run a model whose updates are delayed by one, by 2BW's formulas",
	  "Tries every depth p and width d that divides the V virtual nodes with m = V/d of at least p, "
	  "without and with recomputation, on equal stages: memory 2W/p + p A/p + p In, or 2W/p + A/p + p "
	  "In (W weights, A activations and In input of a stage); the time of a virtual node is the "
	  "slowest stage's. Gradients, optimizer and workspace are not in these formulas. Of equally fast "
	  "ones: no recomputation, smaller p, smaller d. -p P: this depth alone. Nothing fits: exit 2, "
	  "with the smallest need.\n"
	  "What takes more than 2^62 ps a virtual node is left out and counted.\n"
	  "-o FILE: the schedule of one pipeline, for `heddle plan check` and `plan draw`.",
	  OPTS(HD_OPT_GRAPH, HD_OPT_STEP_VNS, HD_OPT_MACHINES, HD_OPT_BANDWIDTH, HD_OPT_CLUSTER, HD_OPT_RANKS,
	  HD_OPT_MEMORY, HD_OPT_OUTPUT, HD_OPT_MAX_CUTS,
		  HD_OPT_COMPRESS), hd_cmd_plan_2bw, "program_2bw.sh" },
	{ "plan auto", "", 0, 0, "choose a plan for a model and a cluster: stages, pipelines, schedule, recomputation; say why",
	  "Goes through (t, p, d, v, schedule, placement): t devices a tensor group, p ranks a pipeline, d "
	  "pipelines, v stages a rank.\n"
	  "Each is cut for fill and steady state under the memory of its devices, the 50 best estimates "
	  "are made into schedules, checked and simulated with links and sums of gradients (fewer where "
	  "they are very long). The choice is never slower there than one device or data parallel; what "
	  "would take more than 2^62 ps is left out and counted. The same input gives the same bytes "
	  "everywhere. --update stash|vsync: every virtual node updates by itself, in one pipeline of -p "
	  "stages (or of as many as are fastest: they become part of the job).\n"
	  "-o PLAN: the schedule of all ranks with its map as remarks, for `heddle plan check` and `plan "
	  "draw`. -p, --pipelines, "
	  "--chunks, --schedule, --recompute: keep this, choose the rest. Nothing works: exit 2, the "
	  "reason and what would.\n"
	  "A cluster file: kinds of devices (speed 1: the one profiled; memory), levels of links innermost "
	  "first, devices in order:\n"
	  "  kinds: {new: {speed: 1, memory: 16GiB}, old: {speed: 0.5}}\n"
	  "  levels: [{name: server, components: 4, bytes_per_s: 12e9, latency_ns: 5000}, {name: rack, "
	  "components: 2, bytes_per_s: 1.25e9}]\n"
	  "  devices: [{kind: new, count: 4}, {kind: old, count: 4}]",
	  OPTS(HD_OPT_PROFILE, HD_OPT_CLUSTER, HD_OPT_STEP_VNS, HD_OPT_SHARDS, HD_OPT_SEQUENCE, HD_OPT_UPDATE,
	  HD_OPT_RANKS, HD_OPT_PIPELINES,
		  HD_OPT_CHUNKS, HD_OPT_SCHEDULE, HD_OPT_RECOMPUTE, HD_OPT_EXPLAIN, HD_OPT_OUTPUT,
		  HD_OPT_MAX_CUTS, HD_OPT_COMPRESS),
		hd_cmd_plan_auto, "program_plan_auto.sh" },
	{ "plan ptdp", "", 0, 0, "split a transformer over tensor, pipeline and data, by the model of PTD-P",
	  "Finds the fastest (t, p, d), with samples b of a virtual node, model chunks v of a rank and "
	  "recomputation, that fits the memory; --rules decides one after the other as the paper does; "
	  "--at judges a split that you name. Devices are A100 of 80 GB, eight a server with a network "
	  "card of 200 Gb/s each, half precision, Adam; what of their peak is reached was fitted to three "
	  "published runs (--published shows how well it predicts the others). t lies inside a server. The "
	  "step is that of the simulated schedule. Nothing fits: exit 2, with the least memory that would "
	  "do.",
	  OPTS(HD_OPT_MODEL, HD_OPT_DEVICES, HD_OPT_BATCH, HD_OPT_VN_SIZE, HD_OPT_MEMORY, HD_OPT_SEQUENCE,
	  HD_OPT_RULES, HD_OPT_AT,
		  HD_OPT_PUBLISHED), hd_cmd_plan_ptdp, "program_ptdp.sh" },
	{ "plan order", "FILE|JOB", 1, 1, "in which order a step should receive what it waits for",
	  "FILE: {\"recv\": {NAME: TIME}, \"ops\": {NAME: {\"time\": T, \"inputs\": [NAME, ...]}}}, or "
	  "{\"cases\": [...]} of such: one channel, one compute unit. JOB: its parameters over the slowest "
	  "link of the cluster, and its forward pass; costs as for `heddle plan JOB`.\n"
	  "fifo as declared, random by --seed, tic and tic+ without times (receives that share a priority "
	  "come as declared), tac by times (TicTac), search by moves from the best of these. efficiency: "
	  "100 % is all beside everything, 0 % nothing beside anything.",
	  OPTS(HD_OPT_ORDER, HD_OPT_SEED, HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
	  HD_OPT_FORCE_PROFILE, HD_OPT_SET), hd_cmd_plan_order,
	  "program_plan_order.sh" },
	{ "plan buckets", "FILE|JOB", 1, 1, "in which order to compute gradients, and in which buckets to sum them",
	  "FILE: {\"ops\": {NAME: {\"time\": T, \"inputs\": [NAME, ...]}}, \"gradient_size\": {NAME: "
	  "BYTES}, \"alpha\": A, \"beta\": B}, or {\"cases\": "
	  "[...]} of such: a bucket of n bytes takes A + B n on one channel, once its gradients are made. "
	  "JOB: its backward pass and weights, summed over all devices on the slowest link of the cluster; "
	  "costs as for `heddle plan JOB`. The compute order is greedy (least time a byte), the buckets "
	  "are the best for it; where the declared order is faster, that is printed. Bits do not depend on "
	  "buckets.",
	  OPTS(HD_OPT_BUCKETS, HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE, HD_OPT_FORCE_PROFILE,
	  HD_OPT_SET), hd_cmd_plan_buckets,
	  "program_plan_order.sh" },
	{ "plan", "JOB", 1, 1, "make the plan of a job: where its stages run and what a step will take; runs nothing",
	  "JOB has a . or a / in its name (./check is a file). Costs are those of --profile FILE, else "
	  "modelled from counts of operations on a nominal core; devices those of --cluster FILE, else "
	  "--workers N equal ones. The table parallel of the job says what is wished for. Every plan is "
	  "simulated with its transfers and sums of gradients: time of a step, bubble (step over the "
	  "busiest rank's work, less 1), why each rank stands still, memory at the worst time. -o PLAN: "
	  "what `heddle run\n"
	  "--plan` takes where every device has the whole model; else a schedule for `heddle plan check`. "
	  "--suggest-job: how large a virtual node is belongs to the job; it prints sizes 1, 2, 4, ... and "
	  "the job's own, with how fast each would be.",
	  OPTS(HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE, HD_OPT_FORCE_PROFILE, HD_OPT_PLANNER,
	  HD_OPT_PARTITIONER, HD_OPT_SCHEDULE, HD_OPT_DRAW,
		  HD_OPT_EXPLAIN, HD_OPT_SUGGEST, HD_OPT_OUTPUT, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS,
		  HD_OPT_SET), hd_cmd_plan, "program_plan_job.sh" },
	{ "simulate", "[FILE|JOB]", 0, 1, "predict time, bubble and activations of a schedule, or of the plan of a job",
	  "Costs are of a full rank and one virtual node, in units of your choice; a chunk costs 1/V of "
	  "them. bubble over ideal: "
	  "makespan over the busiest rank's work, less 1. span idle: the most that a rank idles between "
	  "its first and last instruction. peak activations: in those of a full rank and virtual node. "
	  "Exact and equal on every machine.\n"
	  "--repeat N: times the simulator itself instead, best of N runs. FILE may be a plan that a run "
	  "wrote (plan/NNNN.plan).\n"
	  "A FILE, schedules or a plan, passes `heddle plan check` first: what it refuses is printed as "
	  "there, with exit 2.\n"
	  "With any of the options from --profile to --trace: per rank work and why it stands still, "
	  "memory by what it is for, traffic of links, warnings. --profile FILE: seconds and bytes of a "
	  "model's stages (--cuts; default: the straight partition) instead of units; --cluster FILE: "
	  "devices and links that transfers share (as `heddle plan` takes it); --seed N: costs vary as "
	  "they did when profiled; --steps N: as many steps; --trace FILE: what happens, as a run's "
	  "flight/N.hdfr.\n"
	  "A JOB is planned first, as `heddle plan JOB` does with the same options (--workers, --cluster, "
	  "--profile, --planner, --schedule, -s); then that plan is simulated on those devices, buffered "
	  "unless --transport says otherwise.",
	  OPTS(SCHEDULE_OPTS, COST_OPTS, HD_OPT_REPEAT, HD_OPT_PROFILE, HD_OPT_CUTS, HD_OPT_MAX_CUTS,
	  HD_OPT_COMPRESS, HD_OPT_CLUSTER, HD_OPT_TRANSPORT,
		  HD_OPT_CREDITS, HD_OPT_WHAT_IF, HD_OPT_SEED, HD_OPT_STEPS, HD_OPT_TRACE, HD_OPT_WORKERS,
		  HD_OPT_FORCE_PROFILE, HD_OPT_PLANNER,
		  HD_OPT_PARTITIONER, HD_OPT_SET), hd_cmd_simulate, "program_schedule.sh" },
	{ "demo", "[NAME]", 0, 1, "a scripted story that checks its own claim; without a name: train",
	  "train: a network learns from real images on one device, then on all; the two states must be "
	  "equal bit for bit.\n"
	  "elastic: worker processes join, differ in speed, are killed, the coordinator too; the state "
	  "must be that of one worker.\n"
	  "Exit 0 only if the claim at the end was verified.",
	  OPTS(HD_OPT_SHOW, HD_OPT_DEVICES), hd_cmd_demo, "program_demo.sh" },
	{ "completion", "bash|zsh|fish", 1, 1, "shell completion", "", OPTS(), hd_cmd_completion, "program_completion.sh" },
	{ "sim", "", 0, 0, "run the control plane of a job in a simulated world, by seed",
	  "The machines that admit workers, change views and repair losses are those of a run; network, "
	  "disk, devices and their faults (kills, pauses, cut and silent links, islands, lost "
	  "coordinators, a store that fails) are drawn from the seed. After each event the invariants are "
	  "checked: every virtual node once in every sum, one state per step, no committed step lost, "
	  "none begins while others need what it overwrites, and the run ends. Exit 0: none was "
	  "violated; 1: the seed, the invariant and what happened. --explain: every event and action of "
	  "the seed. A seed that fails once stays in tests/seeds.txt.",
	  OPTS(HD_OPT_SEED, HD_OPT_SEEDS, HD_OPT_EXPLAIN), hd_cmd_sim, "program_sim.sh" },
	{ "sched policies", "", 0, 0, "which job should get which devices: the policies, their variants and published names",
	  "NAME is the variant hetero; NAME-plain, NAME-packed the others.", OPTS(), hd_cmd_sched_policies,
	  "program_sched.sh" },
	{ "sched solve", "", 0, 0, "shares of devices by a policy, for one state of a cluster",
	  "--state FILE: jobs (id, scale_factor, priority, steps_remaining, time_since_start, throughput "
	  "by type; deadline_s, elastic), cluster (devices by type), and pairs, prices_per_hour, entities "
	  "as they are needed. --json: objective, allocation, prices of devices and promises (duals), and "
	  "of jobs that wait why, the first 20. A policy that needs a solver which this build lacks: exit "
	  "2. Its solver gives up: exit 1; what is printed are equal parts, and says so.",
	  OPTS(HD_OPT_STATE, HD_OPT_STATE_SET, HD_OPT_SCHED_POLICY, HD_OPT_FAITHFUL, HD_OPT_LP_ITERATIONS,
	  HD_OPT_SEED), hd_cmd_sched_solve, "program_sched.sh" },
	{ "sched whatif", "[JOB]", 0, 1, "the same state with something changed: whose share differs, and by how much",
	  "The policy is asked twice. --weight X and --scale N are of JOB (steps/s are taken to grow with "
	  "its devices); --add TYPE:N brings devices,\n"
	  "--price TYPE:X changes what one costs. Jobs that lose stand first.\n"
	  "The solver gives up on either: exit 1, nothing is printed.",
	  OPTS(HD_OPT_STATE, HD_OPT_STATE_SET, HD_OPT_SCHED_POLICY, HD_OPT_FAITHFUL, HD_OPT_LP_ITERATIONS,
	  HD_OPT_WEIGHT, HD_OPT_SCALE, HD_OPT_ADD, HD_OPT_PRICE),
	  hd_cmd_sched_whatif, "program_sched.sh" },
	{ "sched simulate", "", 0, 0, "run a cluster's jobs under a policy, without the cluster",
	  "Jobs come from --trace or --generate; a table of another cluster's jobs needs --map where its "
	  "columns have other names. Rounds, leases and switching costs are those of the live scheduler; "
	  "with --faithful the published scheduler is repeated to its digits.\n"
	  "Policies that resize jobs (heddle, wfs, wfs-2020) take a job's number of devices for what it "
	  "wants; --elastic says how fast fewer are.\n"
	  "Where the solver of a policy gives up, jobs keep the shares they had and new ones get an equal "
	  "part: the summary counts how often (gave_up).",
	  OPTS(SCHED_OPTS, HD_OPT_ROWS, HD_OPT_LOG, HD_OPT_HTML), hd_cmd_sched_simulate,
	  "program_sched_sim.sh" },
	{ "sched compare", "", 0, 0, "the same jobs under several policies, one line each",
	  "--policy A,B,C names them.", OPTS(SCHED_OPTS, HD_OPT_HTML), hd_cmd_sched_compare,
	  "program_sched_sim.sh" },
	{ "sched replay", "LOG|TRACE", 1, 1, "run a log of decisions again and compare, or a list of jobs under a policy",
	  "A log (`heddle sched simulate --log FILE`) holds all that was given: nothing else is read, and "
	  "no option may change it. Its decisions are made again and compared byte for byte: exit 0 equal, "
	  "5 with the first line that differs; -o writes the log made now.\n"
	  "A list of jobs (a trace, a table, sacct's output) is simulated as `heddle sched simulate "
	  "--trace` does. Commands in it are text.",
	  OPTS(SCHED_OPTS, HD_OPT_ROWS, HD_OPT_LOG, HD_OPT_HTML, HD_OPT_OUTPUT), hd_cmd_sched_replay,
	  "program_sched_replay.sh" },
	{ "sched bench", "", 0, 0, "how long policies take over thousands of jobs that are drawn",
	  "Seconds of one decision from an empty memory (the middle of --repeat, default 3), linear "
	  "programs and pivots, and the largest gap of their certificates. --count N: at most so many jobs "
	  "in each case; --policy NAME: its cases alone.",
	  OPTS(HD_OPT_SCHED_POLICY, HD_OPT_REPEAT, HD_OPT_COUNT_, HD_OPT_SEED), hd_cmd_sched_bench,
	  "program_sched_replay.sh" },
	{ "sched gen", "", 0, 0, "make jobs up, as a trace of ten columns",
	  "--generate: the published generator. Otherwise --count jobs with the marginals of a published "
	  "cluster: 93 % of one device, durations from minutes to weeks, arrivals by day and week; a job "
	  "more changes none before it.",
	  OPTS(HD_OPT_GENERATE, HD_OPT_THROUGHPUTS, HD_OPT_COUNT_, HD_OPT_RATE, HD_OPT_SEED, HD_OPT_OUTPUT),
	  hd_cmd_sched_gen, "program_sched_sim.sh" },
	{ "sched import", "FILE", 1, 1, "a trace, a table of jobs or sacct's output as a trace of ten columns",
	  "Times of a table become seconds after its first job. With --throughputs each job is given a "
	  "kind of its size, drawn by --seed.",
	  OPTS(HD_OPT_MAP, HD_OPT_THROUGHPUTS, HD_OPT_SEED, HD_OPT_OUTPUT), hd_cmd_sched_import,
	  "program_sched_sim.sh" },
	{ "version", "", 0, 0, "version, build and libraries", "", OPTS(), hd_cmd_version, "program_doctor.sh" },
	{ 0 },
};
