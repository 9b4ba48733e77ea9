/* chaos lambda: AWS Lambda on a port of the loopback, which fails by draws. */
#include "cmd/chaos/lambda.h"

#include <string.h>

#include "base/num.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "functions/emulator.h"
#include "functions/service.h"
#include "cmd/json_line.h"

#define LOOK_NS INT64_C(500000000)        /* between looks at a request to stop */
enum { SLOTS = 10, MEMORY_MB = 1769, FULL_CORE_MB = 1769, MOST_MB = 10240, LEAST_MB = 128,
	LOG_BYTES = 256 << 20, LEAST_BYTES_S = 1000 };
#define MOST_BYTES_S UINT64_C(100000000000)

const char *const hd_cmd_function_argv[] = { "/proc/self/exe", "worker", "--function=lambda", "-q", NULL };

static enum hd_err part_of(struct hd_cmd *cmd, enum hd_opt opt, double *out)
{
	struct hd_diag why = { "" };

	if (cmd->args.has[opt] && hd_num_f64(cmd->args.text[opt], 0, 1, out, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s; a part of all calls is right, as 0.05",
			hd_opts[opt].name, why.text);
	return HD_OK;
}

/* "0.05:10": a part of all calls, and how many times as long they take. */
static enum hd_err read_straggle(struct hd_cmd *cmd, struct hd_fn_faults *f)
{
	const char *text = cmd->args.text[HD_OPT_STRAGGLE], *colon = text ? strchr(text, ':') : NULL;
	char part[32];

	f->factor = 10;
	if (!cmd->args.has[HD_OPT_STRAGGLE])
		return HD_OK;
	snprintf(part, sizeof part, "%.*s", (int)(colon ? colon - text : 31), text);
	if (hd_num_f64(part, 0, 1, &f->straggle, NULL) ||
		(colon && hd_num_f64(colon + 1, 1, 1000, &f->factor, NULL)))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--straggle %s: a part of all calls and a factor of 1 to 1000 are right, as "
			"0.05:10", text);
	return HD_OK;
}

enum hd_err hd_cmd_slots(struct hd_cmd *cmd, uint32_t otherwise, uint32_t *slots)
{
	uint64_t n = hd_args_count(&cmd->args, HD_OPT_SLOTS, otherwise);

	if (!n || n > HD_FN_INSTANCES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--slots %llu: 1 to %d are possible",
			(unsigned long long)n, HD_FN_INSTANCES);
	*slots = (uint32_t)n;
	return HD_OK;
}

enum hd_err hd_cmd_faults(struct hd_cmd *cmd, struct hd_fn_faults *f)
{
	f->seed = hd_args_count(&cmd->args, HD_OPT_FAULT_SEED, 0);
	enum hd_err err = part_of(cmd, HD_OPT_KILL, &f->kill);
	if (!err)
		err = part_of(cmd, HD_OPT_DROP_RESPONSE, &f->drop);
	if (!err)
		err = part_of(cmd, HD_OPT_DUPLICATE, &f->duplicate);
	return err ? err : read_straggle(cmd, f);
}

static enum hd_err read_bandwidth(struct hd_cmd *cmd, int64_t *bytes_s)
{
	const char *text = cmd->args.text[HD_OPT_FN_BANDWIDTH];
	struct hd_diag why = { "" };
	uint64_t bytes = 0;

	if (cmd->args.has[HD_OPT_FN_BANDWIDTH] &&
		(hd_num_size(text, MOST_BYTES_S, &bytes, &why) || bytes < LEAST_BYTES_S))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--bandwidth %s: bytes a second, from 1000 to "
			"100000000000, as 10MiB", text);
	*bytes_s = (int64_t)bytes;
	return HD_OK;
}

/* given[0]: the executable of --bootstrap. */
static enum hd_err read_options(struct hd_cmd *cmd, const char *given[2], struct hd_fn_instances_spec *spec)
{
	const struct hd_args *a = &cmd->args;

	given[0] = a->has[HD_OPT_BOOTSTRAP] ? a->text[HD_OPT_BOOTSTRAP] : NULL;
	given[1] = NULL;

	*spec = (struct hd_fn_instances_spec){
		.argv = a->has[HD_OPT_BOOTSTRAP] ? given : hd_cmd_function_argv,
		.memory_mb = a->has[HD_OPT_MEMORY_MB] ? (int64_t)a->count[HD_OPT_MEMORY_MB] : MEMORY_MB };
	spec->share = (double)spec->memory_mb / FULL_CORE_MB;
	if (spec->memory_mb < LEAST_MB || spec->memory_mb > MOST_MB)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--memory-mb %lld: %d to %d are possible",
			(long long)spec->memory_mb, LEAST_MB, MOST_MB);
	if (a->has[HD_OPT_COLD_MS] && a->count[HD_OPT_COLD_MS] > 60000)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cold-ms: at most 60000 are possible");
	spec->cold_ns = a->has[HD_OPT_COLD_MS] ? (int64_t)a->count[HD_OPT_COLD_MS] * HD_NS_PER_MS : 0;
	enum hd_err err = given[0] ? hd_proc_runs(given[0], &cmd->diag) : HD_OK;
	if (!err)
		err = read_bandwidth(cmd, &spec->bytes_s);
	if (!err)
		err = hd_cmd_slots(cmd, SLOTS, &spec->slots);
	return err ? err : hd_cmd_faults(cmd, &spec->faults);
}

static void say_address(struct hd_cmd *cmd, const char *at)
{
	struct hd_json_line line;
	char url[HD_ADDR_CAP + 8];

	snprintf(url, sizeof url, "http://%s", at);
	if (cmd->args.has[HD_OPT_JSON]) {
		hd_json_put_text(hd_json_line_open(cmd, &line), "address", url);
		hd_json_line_print(&line);
	} else {
		printf("%s\n", url);
	}
	fflush(stdout);
}

static enum hd_err serve(struct hd_cmd *cmd, struct hd_emulator *e)
{
	enum hd_err err = HD_OK;

	say_address(cmd, e->server.listener.addr + 4);
	while (!err && !hd_signal_stop())
		err = hd_emulator_poll(e, hd_clock_now_ns(&cmd->clock) + LOOK_NS, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr,
			">> %llu calls, %llu starts, %llu refused for lack of slots, %llu unsigned "
			"(emulated)\n",
			(unsigned long long)e->ncalls, (unsigned long long)e->instances.nstarts,
			(unsigned long long)e->throttled, (unsigned long long)e->refused);
	return err;
}

/* What the lines REPORT of the file cost: the sum that a caller's ledger must have. */
static enum hd_err say_cost(struct hd_cmd *cmd)
{
	struct hd_fn_price price;
	struct hd_fn_bill bill;
	uint64_t added = 0;
	uint8_t *log;
	size_t len;

	enum hd_err err = hd_fn_price_named(&cmd->fs, cmd->args.text[HD_OPT_PRICE_FILE], &cmd->arena, &price,
		&cmd->diag);
	if (!err)
		err = hd_file_read_all(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], &cmd->arena, LOG_BYTES, &log,
			&len, &cmd->diag);
	if (err)
		return err;
	hd_fn_bill_init(&bill, &price, &cmd->arena);
	err = hd_fn_bill_settle(&bill, (const char *)log, len, &added, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_u64(w, "calls", bill.ncalls);
		hd_json_put_i64(w, "nano_usd", hd_fn_bill_nano(&bill));
		hd_json_put_text(w, "prices", price.date);
		hd_json_put_bool(w, "emulated", true);
		hd_json_line_print(&line);
	} else {
		printf("%llu calls, %lld nano-dollars (prices of %s, emulated)\n",
			(unsigned long long)bill.ncalls, (long long)hd_fn_bill_nano(&bill), price.date);
	}
	return HD_OK;
}

static enum hd_err check_price(struct hd_cmd *cmd)
{
	struct hd_fn_price price;
	struct hd_stat stat;

	if (!cmd->args.has[HD_OPT_PRICE_FILE])
		return HD_OK;
	if (!cmd->args.has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--price sums the lines REPORT of a file: add -o FILE");
	if (!hd_fs_stat(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], &stat, NULL) &&
		stat.kind != HD_FILE_REGULAR)
		return hd_fail(&cmd->diag, HD_E_INVAL, "-o %s: --price reads the lines again at the end: "
			"give a regular file", cmd->args.text[HD_OPT_OUTPUT]);
	return hd_fn_price_named(&cmd->fs, cmd->args.text[HD_OPT_PRICE_FILE], &cmd->arena, &price,
		&cmd->diag);
}

static enum hd_err verb_chaos_lambda(struct hd_cmd *cmd)
{
	struct hd_emulator *e = hd_arena_take(&cmd->arena, 1, sizeof *e);
	struct hd_fn_instances_spec spec;
	const char *given[2];
	FILE *log = stderr;
	enum hd_err err = e ? read_options(cmd, given, &spec) : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory");

	if (!err)
		err = check_price(cmd);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err && cmd->args.has[HD_OPT_OUTPUT] && !(log = fopen(cmd->args.text[HD_OPT_OUTPUT], "w")))
		err = hd_fail(&cmd->diag, HD_E_IO, "cannot write %s", cmd->args.text[HD_OPT_OUTPUT]);
	if (err)
		return err;
	spec.log = log;
	err = hd_emulator_open(e, &cmd->clock, "tcp:127.0.0.1:0", &spec, &cmd->diag);
	e->no_auth = cmd->args.has[HD_OPT_NO_AUTH];
	if (!err)
		err = serve(cmd, e);
	hd_emulator_close(e);
	if (log != stderr)
		fclose(log);
	return err || !cmd->args.has[HD_OPT_PRICE_FILE] ? err : say_cost(cmd);
}

const struct hd_verb hd_verb_chaos_lambda = {
	.name = "chaos lambda", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "AWS Lambda on a port of the loopback, whose calls fail by draws",
	.more =
		"Prints its address, then serves the Invoke API until it is stopped; instances are processes "
		"(heddle worker --function=lambda, or --bootstrap FILE) that speak the "
		"Runtime API. --slots at once (429 beyond), "
		"--cold-ms for each start, --memory-mb with its share of a core (1769 MB are one), "
		"--bandwidth of bytes a second between an instance and the owner of its tasks, which "
		"instances of Heddle keep.\n"
		"Calls fail by draws of (--seed, number of the call): --kill 0.05 ends the process in its "
		"task, "
		"--straggle 0.05:10 lets it take ten times as long, --drop-response 0.02 loses the answer, "
		"--duplicate 0.02 gives the event out twice. Each run of an event leaves a line REPORT on "
		"stderr, "
		"or in -o FILE; with --price 2020, 2021, 2025 or a file their sum is printed at the end.\n"
		"--json: the address is one object, the sum another.\n"
		"Requests are signed with the key " HD_EMULATED_ID " and the secret " HD_EMULATED_SECRET
		", or not looked at: --no-auth.\n"
		"  heddle chaos lambda --kill 0.05 -o reports &\n"
		"  heddle bench functions --function=lambda --endpoint http://127.0.0.1:PORT --reports "
		"reports",
	.opts = HD_OPTS(HD_OPT_SLOTS, HD_OPT_COLD_MS, HD_OPT_MEMORY_MB, HD_OPT_FN_BANDWIDTH,
		HD_OPT_KILL, HD_OPT_STRAGGLE,
		HD_OPT_DROP_RESPONSE, HD_OPT_DUPLICATE, HD_OPT_FAULT_SEED, HD_OPT_NO_AUTH, HD_OPT_BOOTSTRAP,
		HD_OPT_PRICE_FILE, HD_OPT_OUTPUT),
	.run = verb_chaos_lambda, .test = "program_functions.sh",
};
