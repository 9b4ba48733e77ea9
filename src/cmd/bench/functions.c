/* bench functions: dense tasks on functions that fail, compared with this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "functions/service.h"
#include "functions/trial.h"
#include "functions/trip.h"
#include "cmd/json_line.h"
#include "cmd/chaos/lambda.h"

enum { TASKS = 100, SLOTS = 4, ROWS = 64, IN = 64, OUT = 32, TRIPS = 100 };
#define LEASE_NS INT64_C(30000000000)
#define PATIENCE_NS INT64_C(300000000000)

/* What stands between the options and the trial. */
struct hd_cmd_functions {
	struct hd_cmd *cmd;
	struct hd_fn_service service;
	bool serves;                      /* a service is called, not a pool */
	struct hd_fn_trial trial;
	struct hd_fn_counts counts;       /* of the trial */
	int64_t empty_ns, http_ns;        /* round trips of an empty task (0: none), of a request over HTTP */
	struct hd_fn_trial_spec spec;
	struct hd_fn_faults faults;
	const char *log_text;             /* the file with REPORT lines; NULL: none */
	uint32_t slots;
	int64_t log_from;                 /* what the log had before are calls of others */
};

static uint64_t count_of(const struct hd_cmd *cmd, enum hd_opt opt, uint64_t otherwise)
{
	return cmd->args.has[opt] ? cmd->args.count[opt] : otherwise;
}

static void print_text(const struct hd_cmd_functions *b, int64_t before, int64_t after)
{
	const struct hd_fn_counts *n = &b->counts;
	const struct hd_fn_trial *t = &b->trial;

	printf("tasks      %u, %u with the bits of this process; %llu committed by functions, %llu run "
		"here\n",
		b->spec.ntasks, t->equal, (unsigned long long)n->accepted, (unsigned long long)n->here);
	printf("attempts   %llu, %llu duplicates (at most 5 %%), %llu failed, %llu ALREADY, %llu refused "
		"at HELLO\n",
		(unsigned long long)n->attempts, (unsigned long long)n->duplicates,
			(unsigned long long)n->failures,
		(unsigned long long)n->already, (unsigned long long)b->service.owner.refused);
	printf("time       %.1f ms here, %.1f ms on functions\n", (double)t->here_ns * 1e-6,
		(double)t->there_ns * 1e-6);
	if (t->trip_ns && b->empty_ns)
		printf("round trip %.3f ms of one task on a warm function, %.3f ms of an empty one, %.1f x "
			"the %.3f ms of a request over HTTP here\n", (double)t->trip_ns * 1e-6,
			(double)b->empty_ns * 1e-6, (double)b->empty_ns / (double)b->http_ns,
			(double)b->http_ns * 1e-6);
	else
		printf("round trip none: no call came through\n");
	if (b->service.owner.last_error[0])
		printf("last error %s\n", b->service.owner.last_error);
	printf("ledger     %llu calls, %lld nano-dollars by answers, %lld by the log (prices of %s%s)\n",
		(unsigned long long)b->service.owner.bill.ncalls, (long long)before, (long long)after,
		b->service.price.date,
		b->service.pays ? "" : ", emulated");
}

/* Null where no call came through. */
static void put_ms(struct hd_json_writer *w, const char *key, int64_t ns)
{
	if (ns)
		hd_json_put_f64(w, key, (double)ns * 1e-6);
	else
		hd_json_put_null(w, key);
}

static void print_json(struct hd_cmd_functions *b, int64_t before, int64_t after, uint64_t estimated)
{
	const struct hd_fn_counts *n = &b->counts;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(b->cmd, &line);

	hd_json_put_i64(w, "tasks", b->spec.ntasks);
	hd_json_put_i64(w, "equal", b->trial.equal);
	hd_json_put_i64(w, "accepted", (int64_t)n->accepted);
	hd_json_put_i64(w, "here", (int64_t)n->here);
	hd_json_put_i64(w, "attempts", (int64_t)n->attempts);
	hd_json_put_i64(w, "duplicates", (int64_t)n->duplicates);
	hd_json_put_i64(w, "failures", (int64_t)n->failures);
	hd_json_put_i64(w, "already", (int64_t)n->already);
	hd_json_put_i64(w, "refused", (int64_t)b->service.owner.refused);
	hd_json_put_f64(w, "here_ms", (double)b->trial.here_ns * 1e-6);
	hd_json_put_f64(w, "functions_ms", (double)b->trial.there_ns * 1e-6);
	put_ms(w, "trip_ms", b->trial.trip_ns);
	put_ms(w, "http_ms", b->http_ns);
	put_ms(w, "empty_ms", b->empty_ns);
	hd_json_put_i64(w, "calls", (int64_t)b->service.owner.bill.ncalls);
	hd_json_put_i64(w, "estimated", (int64_t)estimated);
	hd_json_put_i64(w, "nano_usd_answers", before);
	hd_json_put_i64(w, "nano_usd", after);
	hd_json_put_text(w, "prices", b->service.price.date);
	hd_json_put_text(w, "last_error", b->service.owner.last_error);
	hd_json_line_print(&line);
}

/* The log takes the place of estimates; then what is said. */
static enum hd_err say(struct hd_cmd_functions *b)
{
	struct hd_fn_bill *bill = &b->service.owner.bill;
	int64_t before = hd_fn_bill_nano(bill);
	uint64_t estimated = bill->nestimated, added = 0;
	uint8_t *log = NULL;
	size_t len = 0;

	enum hd_err err = HD_OK;
	if (b->log_text)
		err = hd_file_read_all(&b->cmd->fs, b->log_text, &b->cmd->arena, 64 << 20, &log, &len,
		&b->cmd->diag);
	if (!err && b->log_text && (int64_t)len > b->log_from)
		err = hd_fn_bill_settle(bill, (const char *)log + b->log_from, len - (size_t)b->log_from,
			&added, &b->cmd->diag);
	if (err)
		return err;
	if (b->cmd->args.has[HD_OPT_JSON])
		print_json(b, before, hd_fn_bill_nano(bill), estimated);
	else
		print_text(b, before, hd_fn_bill_nano(bill));
	if (b->serves && !b->counts.accepted)
		return hd_fail(&b->cmd->diag, HD_E_REFUSED,
			"no function at %s did a task; the last one says: %s",
			b->cmd->args.text[HD_OPT_ENDPOINT],
			b->service.owner.last_error[0] ? b->service.owner.last_error : "nothing");
	return b->trial.equal == b->spec.ntasks ? HD_OK : hd_fail(&b->cmd->diag, HD_E_INTEGRITY,
		"%u of %u tasks have other bits on functions", b->spec.ntasks - b->trial.equal,
			b->spec.ntasks);
}

/* Of tasks that compute next to nothing: what is left is the way. */
static enum hd_err time_trips(struct hd_cmd_functions *b)
{
	struct hd_fn_trial_spec spec = b->spec;
	struct hd_fn_trial trial;

	spec.ntasks = 1;
	spec.rows = spec.in = spec.out = 1;
	enum hd_err err = hd_fn_trial_run(&b->service.owner, &spec, &trial, &b->cmd->diag);
	b->empty_ns = trial.trip_ns;
	return err;
}

static void waits(const char *text) { fprintf(stderr, ">> %s\n", text); }

static enum hd_err open_service(struct hd_cmd_functions *b)
{
	struct hd_cmd *cmd = b->cmd;
	const struct hd_args *a = &cmd->args;
	struct hd_fn_service_spec spec = { .clock = &cmd->clock, .fs = &cmd->fs,
		.kind = a->has[HD_OPT_FUNCTION] ? a->text[HD_OPT_FUNCTION] : "pool", .name = "heddle",
		.argv = hd_cmd_function_argv, .ntasks = b->spec.ntasks, .slots = b->slots,
		.lease_ns = LEASE_NS, .memory_mb = HD_FN_MEMORY_MB, .faults = b->faults };
	struct hd_stat before;

	spec.endpoint = a->has[HD_OPT_ENDPOINT] ? a->text[HD_OPT_ENDPOINT] : NULL;
	spec.listen = a->has[HD_OPT_LISTEN] ? a->text[HD_OPT_LISTEN] : NULL;
	spec.price = a->has[HD_OPT_PRICE_FILE] ? a->text[HD_OPT_PRICE_FILE] : NULL;
	spec.log = a->has[HD_OPT_OUTPUT] ? a->text[HD_OPT_OUTPUT] : NULL;
	b->log_text = a->has[HD_OPT_REPORTS] ? a->text[HD_OPT_REPORTS] : NULL;
	if (b->serves && b->log_text && !hd_fs_stat(&cmd->fs, b->log_text, &before, NULL))
		b->log_from = before.size_bytes;
	enum hd_err err = hd_fn_service_open(&b->service, &spec, &cmd->diag);
	if (!err && !b->serves)
		b->log_text = spec.log ? spec.log : b->service.log_name;
	return err;
}

static enum hd_err run(struct hd_cmd_functions *b)
{
	struct hd_cmd *cmd = b->cmd;
	enum hd_err err = open_service(b);

	if (!err)
		err = hd_fn_trial_run(&b->service.owner, &b->spec, &b->trial, &cmd->diag);
	b->counts = b->service.owner.board.count;
	if (!err)
		err = time_trips(b);
	if (!err)
		err = hd_fn_http_trip(&cmd->clock, TRIPS, &b->http_ns, &cmd->diag);
	hd_fn_service_stop(&b->service);
	if (!err)
		err = say(b);
	hd_fn_service_close(&b->service);
	return err;
}

static enum hd_err verb_bench_functions(struct hd_cmd *cmd)
{
	struct hd_cmd_functions *b = hd_arena_take(&cmd->arena, 1, sizeof *b);
	uint64_t ntasks = count_of(cmd, HD_OPT_COUNT_, TASKS);

	if (!b)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a benchmark");
	b->cmd = cmd;
	b->serves = cmd->args.has[HD_OPT_FUNCTION] && strcmp(cmd->args.text[HD_OPT_FUNCTION], "pool") != 0;
	if (b->serves != cmd->args.has[HD_OPT_ENDPOINT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--function=lambda or http and --endpoint go together");
	b->spec = (struct hd_fn_trial_spec){ .ntasks = (uint32_t)ntasks,
		.rows = ROWS,
		.in = IN, .out = OUT, .seed = count_of(cmd, HD_OPT_FAULT_SEED, 0), .patience_ns = PATIENCE_NS,
		.waits = cmd->args.has[HD_OPT_QUIET] ? NULL : waits,
		.kernels = hd_args_text(&cmd->args, HD_OPT_ISA, "portable") };
	if (!ntasks || ntasks > 100000)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--count: 1 to 100000 tasks are right");
	enum hd_err err = hd_cmd_faults(cmd, &b->faults);
	if (!err)
		err = hd_cmd_slots(cmd, SLOTS, &b->slots);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	return err ? err : run(b);
}

const struct hd_verb hd_verb_bench_functions = {
	.name = "bench functions", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "dense tasks on function workers that fail, compared with this process",
	.more =
		"A pool of --slots processes (heddle worker --function=pool) gets --count tasks, each a "
		"layer with "
		"its gradient. Calls fail by draws of --seed: --kill 0.05 ends a process in its task, "
		"--straggle "
		"0.05:10 lets one take ten times as long, --drop-response 0.02 loses an answer, "
		"--duplicate 0.02 "
		"gives an event out twice. All outputs must have the bits of a run in this process (else "
		"exit 5), "
		"each task counts once; lines REPORT of the pool go to -o FILE; the ledger is their sum.\n"
		"Kernels are those of --isa (default: portable). Prices: --price 2020, 2021, 2025 or a file. "
		"A pool and the emulator cost nothing: their bills are emulated.\n"
		"--function=lambda --endpoint URL: calls `heddle chaos lambda`, whose own options say what "
		"fails; --function=http --endpoint URL: calls `heddle worker --function=http`, Knative or "
		"OpenFaaS. "
		"--endpoint https://lambda.REGION.amazonaws.com: AWS Lambda's function `heddle` itself, "
		"with the keys of AWS's variables or ~/.aws/credentials; --listen HOST:PORT: where its "
		"workers reach this process. Workers answer over TLS; exit 11 where none did a task. "
		"--reports FILE: what it wrote by -o.",
	.opts = HD_OPTS(HD_OPT_FUNCTION, HD_OPT_ENDPOINT, HD_OPT_LISTEN, HD_OPT_REPORTS,
		HD_OPT_COUNT_, HD_OPT_SLOTS,
		HD_OPT_KILL, HD_OPT_STRAGGLE, HD_OPT_DROP_RESPONSE,
		HD_OPT_DUPLICATE, HD_OPT_FAULT_SEED, HD_OPT_ISA, HD_OPT_PRICE_FILE, HD_OPT_OUTPUT),
	.run = verb_bench_functions, .test = "program_functions.sh",
};
