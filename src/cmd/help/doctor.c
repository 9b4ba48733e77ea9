#include <string.h>

#include "base/json_writer.h"
#include "base/timeouts.h"
#include "sys/failpoint.h"
#include "sys/memory.h"
#include "sys/process.h"
#include "sys/thread.h"
#include "graph/autodiff.h"
#include "graph/model.h"
#include "graph/pass.h"
#include "graph/safetensors.h"
#include "graph/text.h"
#include "data/prefetch.h"
#include "wire/frame.h"
#include "wire/hub.h"
#include "plan/plan.h"
#include "plan/tree.h"
#include "protocol/view.h"
#include "functions/service.h"
#include "functions/trial.h"
#include "daemon/pool.h"
#include "cmd/session.h"
#include "cmd/chaos/lambda.h"
#include "cmd/help/build.h"
#include "cmd/run/function.h"

/* ---- limits: a number that a user can run into, and why it is there */

struct limit { const char *what; uint64_t most; const char *unit, *why; };

static const struct limit limits[] = {
	{ "devices of one process",          HD_MAX_DEVICES,       "",       "as many threads as the kernel's affinity mask names" },
	{ "threads of one device",           HD_MAX_THREADS,       "",       "above any machine we know" },
	{ "virtual nodes",                   HD_MAX_VNS,           "",       "a name of a tree node fits a plan instruction" },
	{ "ranks of a plan",                 HD_MAX_RANKS,         "",       "a rank fits a plan instruction" },
	{ "instructions of a plan",          HD_MAX_INS,           "",       "bounds hostile plan files" },
	{ "steps of a job",                  UINT64_C(1) << 43,    "",       "a step number has 44 bits in the keys of random numbers" },
	{ "slice sizes of a job",            HD_MAX_VARIANTS,      "",       "each has kernels prepared before the first step" },
	{ "nodes of a graph",                HD_MAX_NODES,         "",       "far above any model; bounds hostile files" },
	{ "parameters (tensors) of a graph", HD_MAX_PARAMS,        "",       "bounds hostile files" },
	{ "extents of a value",              HD_MAX_DIMS,          "",       "values are of fixed size" },
	{ "one extent",                      HD_MAX_EXTENT,        "",       "what every kernel library takes" },
	{ "constants of a graph",            HD_MAX_CONST_BYTES,   "bytes",  "constants are tables; big tensors are parameters" },
	{ "text of a graph",                 HD_MAX_GRAPH_TEXT,    "bytes",  "bounds hostile files" },
	{ "header of a safetensors file",    HD_ST_HEADER_BYTES,   "bytes",  "bounds hostile files; 100,000 tensors fit" },
	{ "arguments of a model",            HD_MAX_ARGS,          "",       "tables of arguments are of fixed size" },
	{ "fields of a sample",              HD_MAX_FIELDS,        "",       "a sample is an input and its label, a vertex its edges too" },
	{ "steps read ahead",                HD_PREFETCH_DEPTH,    "",       "more hides no disk's pauses better" },
	{ "reading threads",                 HD_PREFETCH_THREADS,  "",       "more than any disk has use for" },
	{ "length of a name",                HD_MAX_NAME - 1,      "bytes",  "names are copied into messages and tables" },
	{ "length of a job's name",          HD_JOB_NAME_CAP,      "bytes",  "it names a folder" },
	{ "length of a path",                HD_PATH_CAP - 1,      "bytes",  "the kernel's own limit" },
	{ "members of a view (workers)",     HD_MAX_MEMBERS,       "",       "sets of them are words of bits in messages" },
	{ "connections of a worker",         HD_HUB_PEERS,         "",       "members, joiners and the coordinator" },
	{ "a frame of data",                 HD_DATA_MAX,          "bytes",  "what a transfer of a higher priority waits for at most" },
	{ "a message between workers",       HD_TELL_MAX,          "bytes",  "bounds hostile peers; a view of 64 members fits" },
	{ "-s of one command",               HD_MAX_SETS,          "",       "more belong into a job file" },
};

/* Waits between workers, in workers.detect. */
struct patience { const char *what, *why; uint32_t eighths; };

static const struct patience patience[] = {
#define X(id, eighths, what, why) { what, why, eighths },
	HD_TIMEOUTS(X)
#undef X
};

static void limits_json(struct hd_json_writer *w)
{
	hd_json_open_array(w, "limits");
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "what", limits[i].what);
		hd_json_put_i64(w, "most", (int64_t)limits[i].most);
		hd_json_put_text(w, "unit", limits[i].unit);
		hd_json_put_text(w, "why", limits[i].why);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "waits");
	for (size_t i = 0; i < sizeof patience / sizeof *patience; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "what", patience[i].what);
		hd_json_put_f64(w, "detects", patience[i].eighths / 8.0);
		hd_json_put_text(w, "why", patience[i].why);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void limits_text(void)
{
	printf("%-32s %20s %-6s %s\n", "limit", "most", "unit", "why");
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		printf("%-32s %20llu %-6s %s\n", limits[i].what, (unsigned long long)limits[i].most,
			limits[i].unit, limits[i].why);
	printf("\n%-60s %8s  %s\n", "wait between workers, times workers.detect", "at most", "why");
	for (size_t i = 0; i < sizeof patience / sizeof *patience; i++)
		printf("%-60s %8g  %s\n", patience[i].what, patience[i].eighths / 8.0, patience[i].why);
}

/* ---- what the machine and the build can do */

struct check { const char *what; char text[160]; bool off; };

enum { HD_CHECKS = 20 };
#define TASK_NS INT64_C(10000000000)      /* a function's task may take */

struct report { struct check check[HD_CHECKS]; uint32_t n; };

__attribute__((format(printf, 4, 5)))
static void say(struct report *r, const char *what, bool off, const char *fmt, ...)
{
	va_list args;

	if (r->n == HD_CHECKS)
		return;
	struct check *check = &r->check[r->n++];
	check->what = what;
	check->off = off;
	va_start(args, fmt);
	vsnprintf(check->text, sizeof check->text, fmt, args);
	va_end(args);
}

static void look_at_cores(struct report *r)
{
	struct hd_memory_info memory;
	struct hd_cores cores;

	hd_cores_usable(&cores);
	hd_memory_look(&memory);
	if (cores.quota_cores > 0)
		say(r, "cores", false, "%u usable: %u in the affinity mask, a quota of %.2f", cores.n,
			cores.n_affinity, cores.quota_cores);
	else
		say(r, "cores", false, "%u usable: %u in the affinity mask, no quota", cores.n,
			cores.n_affinity);
	say(r, "memory", false, "%.0f MiB in the machine, %.0f MiB allowed, %.0f MiB free",
		(double)memory.machine_bytes / 0x1p20,
		(double)memory.limit_bytes / 0x1p20, (double)memory.free_bytes / 0x1p20);
}

/* A net with one of each: small enough for a moment, fixed for ever, so that two machines can be compared. */
static enum hd_err probe(struct hd_graph *graph, struct hd_layout *layout, struct hd_program *program,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_model_arg arg[] = { { "layers", "1" }, { "width", "512" }, { "heads", "4" },
		{ "context", "16" }, { "vocab", "256" } };
	const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN };
	const uint64_t rows[] = { 1 };
	enum hd_err err;

	hd_graph_init(graph, arena);
	err = hd_model_build(graph, "gpt", arg, sizeof arg / sizeof *arg, &opts, diag);
	if (!err)
		err = hd_graph_optimize(graph, rows[0], diag);
	if (!err)
		err = hd_graph_autodiff(graph, diag);
	if (!err)
		err = hd_layout_make(layout, graph, arena, diag);
	return err ? err : hd_program_make(program, graph, layout, true, rows, 1, arena, diag);
}

static enum hd_err fingerprint(const struct hd_program *program, const struct hd_device_spec *spec,
	struct hd_hash *hash)
{
	struct hd_device *device;
	struct hd_diag why = { "" };
	enum hd_err err = hd_device_create(&device, "cpu", spec, &why);

	if (err)
		return err;
	err = hd_device_fingerprint(device, program, hash, &why);
	hd_device_destroy(device);
	return err;
}

static enum hd_err look_at_kernels(struct report *r, struct hd_cmd *cmd)
{
	static const struct { const char *path, *what; } paths[] = {
		{ "avx512", "kernels avx512" }, { "avx2", "kernels avx2" }, { "portable", "kernels plain" },
	};
	struct hd_program *program = hd_arena_take(&cmd->arena, 1, sizeof *program);
	struct hd_graph graph;
	struct hd_layout layout;
	struct hd_hash hash;
	char hex[HD_HASH_HEX];
	enum hd_err err = program ? probe(&graph, &layout, program, &cmd->arena, &cmd->diag) :
		hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a program");

	if (err)
		return err;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE,
			.path = paths[i].path };
		if (fingerprint(program, &spec, &hash)) {
			say(r, paths[i].what, true, "this processor has no %s", paths[i].path);
			continue;
		}
		hd_hash_hex(hash, hex);
		say(r, paths[i].what, false, "fingerprint %s", hex);
	}
	if (!strstr(hd_build.libraries, "dnnl=yes")) {
		say(r, "kernels library", true,
			"oneDNN was not there when this was built (libdnnl-dev): job.kernels library uses "
			"the kernels above");
	} else if (!fingerprint(program, &(struct hd_device_spec){ .nthreads = 1,
		.kernels = HD_KERNELS_LIBRARY }, &hash)) {
		hd_hash_hex(hash, hex);
		say(r, "kernels library", false, "oneDNN, fingerprint %s", hex);
	} else {
		say(r, "kernels library", true, "oneDNN is linked and failed on a small program");
	}
	return HD_OK;
}

/* By trying: a group is made and removed. */
static void look_at_pools(struct report *r)
{
	struct hd_pools pools = { 0 };
	struct hd_proc_self self;
	struct hd_fs fs;
	char tag[32];

	hd_fs_real(&fs);
	hd_proc_self(&self);
	snprintf(tag, sizeof tag, "doctor-%d", self.pid);
	if (hd_pools_add(&pools, "half:1:0.5", NULL) || hd_pools_open(&pools, &fs, NULL))
		return;
	hd_pools_begin(&pools, tag);
	say(r, "pools", pools.means == HD_POOL_SLOW, "speeds of types (serve --pool) by %s",
		hd_pool_means_text(pools.means));
	hd_pools_close(&pools);
}

/* A task by one process of a pool, compared with this one. */
static enum hd_err try_pool(struct hd_cmd *cmd, struct hd_fn_trial *trial, struct hd_diag *diag)
{
	struct hd_fn_service *s = hd_arena_take(&cmd->arena, 1, sizeof *s);
	const struct hd_fn_service_spec spec = { .clock = &cmd->clock, .fs = &cmd->fs, .kind = "pool",
		.name = "heddle", .argv = hd_cmd_function_argv, .ntasks = 1, .slots = 1,
		.lease_ns = TASK_NS, .memory_mb = HD_FN_MEMORY_MB };
	const struct hd_fn_trial_spec task = { .ntasks = 1, .rows = 1, .in = 1, .out = 1,
		.kernels = "portable", .patience_ns = TASK_NS };

	enum hd_err err = s ? hd_fn_service_open(s, &spec, diag) : HD_E_NOMEM;
	if (!err)
		err = hd_fn_trial_run(&s->owner, &task, trial, diag);
	if (!err && !s->owner.board.count.accepted)
		err = hd_fail(diag, HD_E_REFUSED, "%s", s->owner.last_error[0] ? s->owner.last_error :
			"no process of a pool did a task");
	if (s)
		hd_fn_service_close(s);
	return err;
}

static void look_at_functions(struct report *r, struct hd_cmd *cmd)
{
	const bool web = strstr(hd_build.libraries, "curl=yes") != NULL;
	struct hd_fn_trial trial = { 0 };
	struct hd_diag why = { "" };
	char path[HD_PATH_CAP];

	if (try_pool(cmd, &trial, &why))
		say(r, "functions pool", true, "%.140s", why.text);
	else
		say(r, "functions pool", false, "a task by a process of its own: %s, %.3f ms when warm",
			trial.equal ? "the bits of this one" : "OTHER BITS", (double)trial.trip_ns * 1e-6);
	say(r, "functions lambda", !web, web ?
		"called over HTTPS by libcurl, emulated by heddle chaos lambda" :
		"this build has no libcurl (-DHD_CURL=ON): heddle chaos lambda and plain HTTP alone");
	why.text[0] = 0;
	if (hd_cmd_bootstrap(cmd, path, sizeof path, &why))
		say(r, "functions pack", true, "%.140s", why.text);
	else
		say(r, "functions pack", false, "%.140s is what heddle worker --pack lambda packs", path);
}

static void look_at_rooms(struct report *r)
{
	static const char fashion[] = "/usr/share/datasets/fashion-mnist";
	struct hd_stat stat;
	struct hd_fs fs;

	hd_fs_real(&fs);
	bool there = !hd_fs_stat(&fs, fashion, &stat, NULL);
	say(r, "data", !there,
		there ? "%s is installed" :
		"%s is not there (apt install dataset-fashion-mnist); demos make their own data", fashion);
	say(r, "failpoints", !hd_failpoint_built(), hd_failpoint_built() ? "compiled in: HD_FAIL arms them" :
		"not compiled in (-DHD_FAILPOINTS=ON)");
	say(r, "cuda", true, "this build has devices cores, reference and null only");
	say(r, "workers", false,
		"processes here (run --workers), and of other machines (run --listen, worker --join)");
	say(r, "serve", false,
		"schedules jobs over pools (--dir) or coordinates one run (--job); nothing listens beyond "
		"the folder but by --http or --listen");
}

static void print_json(struct hd_cmd *cmd, const struct report *r)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_build_json(&w);
	hd_json_open_array(&w, "checks");
	for (uint32_t i = 0; i < r->n; i++) {
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "what", r->check[i].what);
		hd_json_put_bool(&w, "on", !r->check[i].off);
		hd_json_put_text(&w, "text", r->check[i].text);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	if (cmd->args.has[HD_OPT_LIMITS])
		limits_json(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static void print_text(const struct report *r)
{
	printf("%-16s     %s (%s), %s, %s\n%-16s     %s\n", "heddle", hd_build.version, hd_build.git,
		hd_build.preset, hd_build.compiler,
		"libraries", hd_build.libraries);
	for (uint32_t i = 0; i < r->n; i++)
		printf("%-16s %-3s %s\n", r->check[i].what, r->check[i].off ? "off" : "on", r->check[i].text);
}

static enum hd_err verb_doctor(struct hd_cmd *cmd)
{
	struct report report = { 0 };
	enum hd_err err;

	if (cmd->args.has[HD_OPT_LIMITS] && !cmd->args.has[HD_OPT_JSON]) {
		limits_text();
		return HD_OK;
	}
	look_at_cores(&report);
	err = look_at_kernels(&report, cmd);
	if (err)
		return err;
	look_at_pools(&report);
	look_at_functions(&report, cmd);
	look_at_rooms(&report);
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &report);
	else
		print_text(&report);
	return HD_OK;
}

const struct hd_verb hd_verb_doctor = {
	.name = "doctor", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "what this build and machine can do, and why not more",
	.opts = HD_OPTS(HD_OPT_LIMITS),
	.run = verb_doctor, .test = "program_doctor.sh",
};
