/* bench functions: dense tasks on functions that fail, compared with this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "functions/credentials.h"
#include "functions/emulator.h"
#include "functions/http.h"
#include "functions/lambda.h"
#include "functions/trial.h"
#include "functions/trip.h"
#include "cmd/json_line.h"
#include "cmd/chaos/lambda.h"

enum { TASKS = 100, SLOTS = 4, MEMORY_MB = 1769, ROWS = 64, IN = 64, OUT = 32,
	TRIPS = 100 };
#define FOLDER "heddle-functions-"        /* and the number of the process, in /tmp */
#define LEASE_NS INT64_C(30000000000)
#define PATIENCE_NS INT64_C(300000000000)

/* What stands between the options and the trial. */
struct hd_cmd_functions {
	struct hd_cmd *cmd;
	struct hd_fn_owner owner;
	struct hd_fn_instances pool;
	struct hd_fn_lambda lambda;
	struct hd_fn_calls http;
	struct hd_aws_credentials keys;
	char region[HD_AWS_REGION];
	bool serves, plain, pays;         /* a service is called, not a pool; an HTTP front end; a cloud's */
	struct hd_fn_trial trial;
	struct hd_fn_counts counts;       /* of the trial */
	int64_t empty_ns, http_ns;        /* round trips of an empty task, of a request over HTTP here */
	struct hd_fn_trial_spec spec;
	struct hd_fn_faults faults;
	struct hd_fn_price price;
	char dir[64], listen[HD_ADDR_CAP];
	FILE *log;
	char *log_text;
	uint32_t slots;
	int64_t log_from;                 /* what the log had before are calls of others */
};

static uint64_t count_of(const struct hd_cmd *cmd, enum hd_opt opt, uint64_t otherwise)
{
	return cmd->args.has[opt] ? cmd->args.count[opt] : otherwise;
}

static enum hd_err read_price(struct hd_cmd *cmd, struct hd_fn_price *price)
{
	const char *name = cmd->args.has[HD_OPT_PRICE_FILE] ? cmd->args.text[HD_OPT_PRICE_FILE] : "2025";
	const struct hd_fn_price_file *file = hd_fn_price_files;
	uint8_t *bytes = NULL;
	size_t len = 0;

	while (file->name && strcmp(file->name, name) != 0)
		file++;
	if (file->name)
		return hd_fn_price_read(name, file->text, strlen(file->text), "lambda-x86_64", &cmd->arena,
			price,
			&cmd->diag);
	enum hd_err err = hd_file_read_all(&cmd->fs, name, &cmd->arena, HD_FN_PRICE_BYTES, &bytes, &len,
		&cmd->diag);
	return err ? err : hd_fn_price_read(name, (const char *)bytes, len, "lambda-x86_64", &cmd->arena,
		price,
		&cmd->diag);
}

static enum hd_err open_pool(struct hd_cmd_functions *b)
{
	const struct hd_fn_instances_spec spec = { .argv = hd_cmd_function_argv, .dir = b->dir,
		.slots = b->slots,
		.memory_mb = MEMORY_MB, .share = 1, .faults = b->faults, .log = b->log,
			.tag = HD_FN_OWNER_TAGS };
	const struct hd_fn_invoker invoker = { &hd_fn_pool_ops, &b->pool };

	enum hd_err err = hd_fn_instances_open(&b->pool, &spec, &b->owner.loop, &b->cmd->diag);
	if (!err)
		hd_fn_owner_calls(&b->owner, &invoker);
	return err;
}

static const char *variable(const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=' && (*at)[n + 1])
			return *at + n + 1;
	return otherwise;
}

/* Of AWS's own keys one alone is a mistake: those of the file would be another account's. */
static enum hd_err check_variables(struct hd_cmd *cmd)
{
	bool id = variable("AWS_ACCESS_KEY_ID", NULL), secret = variable("AWS_SECRET_ACCESS_KEY", NULL);

	return id == secret ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"AWS_%s is set, AWS_%s is not: set both, or none to use the keys of the shared file",
		id ? "ACCESS_KEY_ID" : "SECRET_ACCESS_KEY", id ? "SECRET_ACCESS_KEY" : "ACCESS_KEY_ID");
}

/* Whose right: AWS's own variables, else the shared file; the emulator has keys of its own. */
static enum hd_err find_keys(struct hd_cmd_functions *b, const char *endpoint)
{
	struct hd_cmd *cmd = b->cmd;
	struct hd_fn_lambda *l = &b->lambda;
	const char *home = variable("HOME", ""), *named = variable("AWS_SHARED_CREDENTIALS_FILE", NULL);
	bool web = !strncmp(endpoint, "https://", 8);
	const char *region = variable("AWS_REGION", variable("AWS_DEFAULT_REGION",
		b->region[0] ? b->region : web ? NULL : "us-east-1"));
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;

	l->rights = (struct hd_sigv4_rights){ variable("AWS_ACCESS_KEY_ID", web ? NULL : HD_EMULATED_ID),
		variable("AWS_SECRET_ACCESS_KEY", web ? NULL : HD_EMULATED_SECRET),
		region, "lambda" };
	l->session = variable("AWS_SESSION_TOKEN", NULL);
	enum hd_err err = web ? check_variables(cmd) : HD_OK;
	if (!err && !region)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"%s names no region: set AWS_REGION to the one of the function", endpoint);
	if (err || (l->rights.key_id && l->rights.secret))
		return err;
	snprintf(path, sizeof path, named ? "%s" : "%s/.aws/credentials", named ? named : home);
	err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_AWS_FILE_BYTES, &bytes, &len, NULL);
	if (err)
		return hd_fail(&cmd->diag, HD_E_INVAL, "no keys for %s: set AWS_ACCESS_KEY_ID and "
			"AWS_SECRET_ACCESS_KEY, or write them to %s", endpoint, path);
	err = hd_aws_credentials_read(path, (const char *)bytes, len, variable("AWS_PROFILE", "default"),
		&b->keys, &cmd->diag);
	l->rights.key_id = b->keys.key_id;
	l->rights.secret = b->keys.secret;
	l->session = b->keys.token[0] ? b->keys.token : NULL;
	return err;
}

static enum hd_err open_lambda(struct hd_cmd_functions *b)
{
	const struct hd_fn_invoker invoker = { &hd_fn_lambda_ops, &b->lambda };
	const char *endpoint = b->cmd->args.text[HD_OPT_ENDPOINT];

	b->lambda = (struct hd_fn_lambda){ .function = "heddle", .ca = variable("AWS_CA_BUNDLE", NULL) };
	hd_aws_region_of(endpoint, b->region);
	enum hd_err err = find_keys(b, endpoint);
	if (!err)
		err = hd_fn_lambda_open(&b->lambda, endpoint, HD_FN_OWNER_TAGS, &b->owner.loop,
			&b->cmd->diag);
	if (!err)
		hd_fn_owner_calls(&b->owner, &invoker);
	return err;
}

static enum hd_err open_http(struct hd_cmd_functions *b)
{
	const struct hd_fn_invoker invoker = { &hd_fn_http_ops, &b->http };
	enum hd_err err = hd_fn_http_open(&b->http, b->cmd->args.text[HD_OPT_ENDPOINT],
		variable("AWS_CA_BUNDLE", NULL), HD_FN_OWNER_TAGS, &b->owner.loop, &b->cmd->diag);

	if (!err)
		hd_fn_owner_calls(&b->owner, &invoker);
	return err;
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
		(unsigned long long)n->already, (unsigned long long)b->owner.refused);
	printf("time       %.1f ms here, %.1f ms on functions; one task, warm: %.3f ms\n",
		(double)t->here_ns * 1e-6, (double)t->there_ns * 1e-6, (double)t->trip_ns * 1e-6);
	printf("round trip %.3f ms of an empty task, %.1f x the %.3f ms of a request over HTTP here\n",
		(double)b->empty_ns * 1e-6, (double)b->empty_ns / (double)b->http_ns,
		(double)b->http_ns * 1e-6);
	if (b->owner.last_error[0])
		printf("last error %s\n", b->owner.last_error);
	printf("ledger     %llu calls, %lld nano-dollars by answers, %lld by the log (prices of %s%s)\n",
		(unsigned long long)b->owner.bill.ncalls, (long long)before, (long long)after, b->price.date,
		b->pays ? "" : ", emulated");
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
	hd_json_put_i64(w, "refused", (int64_t)b->owner.refused);
	hd_json_put_f64(w, "here_ms", (double)b->trial.here_ns * 1e-6);
	hd_json_put_f64(w, "functions_ms", (double)b->trial.there_ns * 1e-6);
	hd_json_put_f64(w, "trip_ms", (double)b->trial.trip_ns * 1e-6);
	hd_json_put_f64(w, "http_ms", (double)b->http_ns * 1e-6);
	hd_json_put_f64(w, "empty_ms", (double)b->empty_ns * 1e-6);
	hd_json_put_i64(w, "calls", (int64_t)b->owner.bill.ncalls);
	hd_json_put_i64(w, "estimated", (int64_t)estimated);
	hd_json_put_i64(w, "nano_usd_answers", before);
	hd_json_put_i64(w, "nano_usd", after);
	hd_json_put_text(w, "prices", b->price.date);
	hd_json_put_text(w, "last_error", b->owner.last_error);
	hd_json_line_print(&line);
}

/* The log takes the place of estimates; then what is said. */
static enum hd_err say(struct hd_cmd_functions *b)
{
	struct hd_fn_bill *bill = &b->owner.bill;
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
			b->owner.last_error[0] ? b->owner.last_error : "nothing");
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
	enum hd_err err = hd_fn_trial_run(&b->owner, &spec, &trial, &b->cmd->diag);
	b->empty_ns = trial.trip_ns;
	return err;
}

static void waits(const char *text) { fprintf(stderr, ">> %s\n", text); }

static enum hd_err run(struct hd_cmd_functions *b)
{
	struct hd_cmd *cmd = b->cmd;
	const struct hd_fn_owner_spec spec = { .clock = &cmd->clock, .listen = b->listen,
		.ntasks = b->spec.ntasks,
		.tls = b->serves, .slots = b->slots, .lease_ns = LEASE_NS, .memory_mb = MEMORY_MB,
			.seed = b->faults.seed,
		.price = b->price };
	struct hd_stat before;

	if (!b->serves && !(b->log = fopen(b->log_text, "w")))
		return hd_fail(&cmd->diag, HD_E_IO, "cannot write %s", b->log_text);
	if (b->serves && b->log_text && !hd_fs_stat(&cmd->fs, b->log_text, &before, NULL))
		b->log_from = before.size_bytes;
	enum hd_err err = hd_fn_owner_open(&b->owner, &spec, &cmd->diag);
	if (!err)
		err = b->plain ? open_http(b) : b->serves ? open_lambda(b) : open_pool(b);
	if (!err)
		err = hd_fn_trial_run(&b->owner, &b->spec, &b->trial, &cmd->diag);
	b->counts = b->owner.board.count;
	if (!err)
		err = time_trips(b);
	if (!err)
		err = hd_fn_http_trip(&cmd->clock, TRIPS, &b->http_ns, &cmd->diag);
	hd_fn_instances_close(&b->pool);
	hd_fn_lambda_close(&b->lambda);
	hd_fn_calls_close(&b->http);
	if (b->log)
		fclose(b->log);
	return err ? err : say(b);
}

/* What another user put in the place of a folder of ours since it was looked at: so it is moved to where no
 * other user can change it, looked at again, and only then removed. */
static void remove_ours(struct hd_cmd *cmd, struct hd_net *net, const char *path, const char *box)
{
	char there[HD_PATH_CAP], address[HD_PATH_CAP + 16];

	snprintf(there, sizeof there, "%s/folder", box);
	snprintf(address, sizeof address, "unix:%s/owner", there);
	if (hd_fs_mkdir(&cmd->fs, box, NULL))
		return;
	if (!hd_fs_rename(&cmd->fs, path, there, NULL)) {
		if (hd_sock_is_private(net, address))
			(void)!hd_fs_remove_tree(&cmd->fs, there, NULL);
		else
			(void)!hd_fs_rename(&cmd->fs, there, path, NULL);
	}
	(void)!hd_fs_rmdir(&cmd->fs, box, NULL);
}

/* Folders of processes that were killed: nothing else removes them. Those of other users stay. One of our own
 * number is of an earlier process. */
static void sweep(struct hd_cmd *cmd, uint32_t self)
{
	size_t head = strlen(FOLDER), n = 0;
	char **names = NULL, path[HD_PATH_CAP], box[64];
	struct hd_sock sock = { 0 };
	struct hd_stat stat;
	struct hd_net net;

	hd_net_real(&net);
	snprintf(box, sizeof box, "/tmp/" FOLDER "%u-old", self);
	if (hd_fs_list(&cmd->fs, "/tmp", &cmd->arena, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *pid = names[i] + head;
		if (strncmp(names[i], FOLDER, head) != 0 || !*pid || strspn(pid, "0123456789") != strlen(pid))
			continue;
		snprintf(path, sizeof path, "/proc/%.20s", pid);
		if (strtoul(pid, NULL, 10) != self && !hd_fs_stat(&cmd->fs, path, &stat, NULL))
			continue;
		snprintf(path, sizeof path, "unix:/tmp/%.60s/owner", names[i]);
		if (!hd_sock_is_private(&net, path))
			continue;
		sock = (struct hd_sock){ 0 };
		enum hd_err err = hd_sock_connect(&net, path, &sock, NULL);
		hd_sock_close(&sock);
		if (!err || err == HD_E_AGAIN)
			continue;                 /* it lives, in another space of process numbers */
		snprintf(path, sizeof path, "/tmp/%.60s", names[i]);
		remove_ours(cmd, &net, path, box);
	}
}

static enum hd_err verb_bench_functions(struct hd_cmd *cmd)
{
	struct hd_cmd_functions *b = hd_arena_take(&cmd->arena, 1, sizeof *b);
	uint64_t ntasks = count_of(cmd, HD_OPT_COUNT_, TASKS);
	struct hd_proc_self self;
	char log[96];

	if (!b)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a benchmark");
	hd_proc_self(&self);
	b->cmd = cmd;
	snprintf(b->dir, sizeof b->dir, "/tmp/" FOLDER "%u", self.pid);
	snprintf(b->listen, sizeof b->listen, "unix:%s/owner", b->dir);
	snprintf(log, sizeof log, "%s/log", b->dir);
	b->serves = cmd->args.has[HD_OPT_FUNCTION] && strcmp(cmd->args.text[HD_OPT_FUNCTION], "pool") != 0;
	b->plain = b->serves && !strcmp(cmd->args.text[HD_OPT_FUNCTION], "http");
	if (b->serves != cmd->args.has[HD_OPT_ENDPOINT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--function=lambda or http and --endpoint go together");
	b->pays = b->serves && !strncmp(cmd->args.text[HD_OPT_ENDPOINT], "https://", 8);
	if (b->serves && cmd->args.has[HD_OPT_LISTEN] && hd_sock_is_everywhere(cmd->args.text[HD_OPT_LISTEN]))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--listen %s is every address of this machine; name "
			"the one by which workers call it", cmd->args.text[HD_OPT_LISTEN]);
	if (b->serves)
		snprintf(b->listen, sizeof b->listen, "tcp:%.80s", cmd->args.has[HD_OPT_LISTEN] ?
			cmd->args.text[HD_OPT_LISTEN] : "127.0.0.1:0");
	b->log_text = cmd->args.has[HD_OPT_OUTPUT] ? (char *)(uintptr_t)cmd->args.text[HD_OPT_OUTPUT] : log;
	if (b->serves)
		b->log_text = cmd->args.has[HD_OPT_REPORTS] ?
			(char *)(uintptr_t)cmd->args.text[HD_OPT_REPORTS] : NULL;
	b->spec = (struct hd_fn_trial_spec){ .ntasks = (uint32_t)ntasks,
		.rows = ROWS,
		.in = IN, .out = OUT, .seed = count_of(cmd, HD_OPT_FAULT_SEED, 0), .patience_ns = PATIENCE_NS,
		.waits = cmd->args.has[HD_OPT_QUIET] ? NULL : waits,
		.kernels = cmd->args.has[HD_OPT_ISA] ? cmd->args.text[HD_OPT_ISA] : "portable" };
	if (!ntasks || ntasks > 100000)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--count: 1 to 100000 tasks are right");
	enum hd_err err = hd_cmd_faults(cmd, &b->faults);
	if (!err)
		err = hd_cmd_slots(cmd, SLOTS, &b->slots);
	if (!err)
		err = read_price(cmd, &b->price);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		sweep(cmd, self.pid);
	if (!err)
		err = hd_fs_mkdir(&cmd->fs, b->dir, &cmd->diag);
	if (err)
		return err;
	err = run(b);
	hd_fn_owner_close(&b->owner);
	(void)!hd_fs_remove_tree(&cmd->fs, b->dir, NULL);
	return err;
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
