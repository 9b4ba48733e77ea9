#include "cmd/demo/graph.h"

#include <stdio.h>
#include <string.h>

#include "sys/process.h"
#include "sys/signal.h"
#include "job/graph.h"
#include "run/functions_bill.h"
#include "gnn/prepare.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
#include "cmd/demo/one_run.h"

/* Cora where it is there, else rings with few edges between them. The functions are processes behind the
 * emulator of AWS Lambda, which kills, delays, loses and doubles calls by draws of one seed. */

static const char job_text[] =
	"job: {name: demo-graph, seed: 17, steps: %u, kernels: portable}\n"
	"model: {use: \"builtin:gcn\", args: {input: %u, classes: %u, slots: %llu, hidden: 16, dropout: 0.5, "
	"bias: \"false\", rows: sum1}}\n"
	"data: {kind: graph, path: %s, order: sequential}\n"
	"batch: {global: %llu, virtual_nodes: %u}\n"
	"optim: {kind: adam, lr: 0.01, weight_decay: 5e-4, decay: [layers.0.*], clip: 0, "
	"schedule: {kind: constant, warmup: 0}}\n"
	"eval: {every: 0, metric: accuracy}\n"
	"trace: {digest: 1}\n";

enum { INTERVALS = 4, SLOTS = 4, STEPS = 60, RINGS = 8, RING = 60, JOB_BYTES = 4096 + 4 * HD_RUN_PATH };
#define SERVES_NS INT64_C(30000000000)    /* until the emulator has an address */
#define LOOK_NS   INT64_C(20000000)
static const char cora[] = "data/graphs/cora", installed[] = "/usr/share/datasets/cora";

/* Where everything lies, and what came of it. */
struct graph_story {
	struct hd_cmd *cmd;
	const char *parent;
	char folder[HD_RUN_PATH], graph[HD_RUN_PATH], reports[HD_RUN_PATH], at[HD_RUN_PATH];
	char yaml[JOB_BYTES], url[64];
	struct hd_host host;
	struct hd_proc emulator;
	bool real;                        /* Cora */
};

/* ---- the graph ---- */

static enum hd_err write_text(struct graph_story *s, char path[HD_RUN_PATH], const char *name,
	const struct hd_text *text)
{
	snprintf(path, HD_RUN_PATH, "%.*s/%s", HD_RUN_PATH - 40, s->folder, name);
	return text->full ? hd_fail(&s->cmd->diag, HD_E_NOMEM, "no memory for a graph") :
		hd_file_write_atomic(&s->cmd->fs, path, text->at, text->len, &s->cmd->diag);
}

static void add_set(struct hd_text *text, const char *name, uint32_t from)
{
	hd_text_addf(text, "%s", name);
	for (uint32_t i = from; i < RINGS * RING; i += 5)
		hd_text_addf(text, " %u", i);
	hd_text_add(text, "\n");
}

/* A ring is a class; each of its vertices knows its number alone. */
static enum hd_err generate(struct graph_story *s, char edges[HD_RUN_PATH], char features[HD_RUN_PATH],
	char split[HD_RUN_PATH])
{
	struct hd_text e, f, sets;

	hd_text_init(&e, &s->cmd->arena);
	hd_text_init(&f, &s->cmd->arena);
	hd_text_init(&sets, &s->cmd->arena);
	for (uint32_t i = 0; i < RINGS * RING; i++) {
		uint32_t first = i / RING * RING;
		hd_text_addf(&e, "%u %u\n%u %u\n", i, first + (i + 1) % RING, i, first + (i + 3) % RING);
		if (i % RING == 0)
			hd_text_addf(&e, "%u %u\n", i, (i + RING + 7) % (RINGS * RING));
		hd_text_addf(&f, "%u %u:1\n", i / RING, i);
	}
	add_set(&sets, "train", 0);
	add_set(&sets, "val", 1);
	add_set(&sets, "test", 2);
	enum hd_err err = write_text(s, edges, "edges.txt", &e);
	if (!err)
		err = write_text(s, features, "features.svm", &f);
	return err ? err : write_text(s, split, "split.txt", &sets);
}

/* Cora's folder, where one is. */
static bool find_cora(struct graph_story *s, char edges[HD_RUN_PATH], char features[HD_RUN_PATH],
	char split[HD_RUN_PATH])
{
	static const char shared[] = "HEDDLE_SHARED=";
	char place[2][HD_RUN_PATH] = { "", "" };
	struct hd_stat stat;

	snprintf(place[1], sizeof place[1], "%s", installed);
	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, shared, sizeof shared - 1))
			snprintf(place[0], sizeof place[0], "%.*s/%s", HD_RUN_PATH - 40, *at + sizeof shared -
				1, cora);
	for (int i = 0; i < 2; i++) {
		snprintf(edges, HD_RUN_PATH, "%.*s/edges.txt", HD_RUN_PATH - 20, place[i]);
		snprintf(features, HD_RUN_PATH, "%.*s/features.svm", HD_RUN_PATH - 20, place[i]);
		snprintf(split, HD_RUN_PATH, "%.*s/split.txt", HD_RUN_PATH - 20, place[i]);
		if (place[i][0] && !hd_fs_stat(&s->cmd->fs, edges, &stat, NULL))
			return true;
	}
	return false;
}

/* In double quotes: a folder may have any byte but 0. */
static void quote(const char *path, char quoted[4 * HD_RUN_PATH])
{
	size_t n = 0;

	quoted[n++] = '"';
	for (; *path; path++)
		if ((unsigned char)*path < ' ')
			n += (size_t)snprintf(quoted + n, 5, "\\x%02x", (unsigned)*path);
		else
			n += (size_t)snprintf(quoted + n, 3, *path == '"' || *path == '\\' ? "\\%c" : "%c",
				*path);
	snprintf(quoted + n, 2, "\"");
}

/* The graph, at `out`, and the job that reads it where the demo has it. */
static enum hd_err prepare(struct graph_story *s, const char *out)
{
	char path[4 * HD_RUN_PATH];
	char edges[HD_RUN_PATH], features[HD_RUN_PATH], split[HD_RUN_PATH];
	struct hd_prepare how = { .edges = edges, .features = features, .split = split, .out = out,
		.nintervals = INTERVALS, .memory_bytes = UINT64_C(1) << 30 };
	struct hd_prepared_report r;

	s->real = find_cora(s, edges, features, split);
	enum hd_err err = s->real ? HD_OK : generate(s, edges, features, split);
	if (!err)
		err = hd_prepare_graph(&how, &s->cmd->fs, &r, &s->cmd->diag);
	if (err)
		return err;
	quote(s->graph, path);
	snprintf(s->yaml, sizeof s->yaml, job_text, STEPS, r.head.width, r.head.nclasses,
		(unsigned long long)hd_job_graph_slots(r.head.nvertices, r.head.nedges), path,
		(unsigned long long)r.most_vertices * INTERVALS, INTERVALS);
	return HD_OK;
}

/* ---- functions ---- */

/* The first line that it says is its address. */
static enum hd_err await_address(struct graph_story *s)
{
	const int64_t until_ns = hd_clock_now_ns(&s->cmd->clock) + SERVES_NS;
	uint8_t *bytes = NULL;
	size_t len = 0;

	while (hd_clock_now_ns(&s->cmd->clock) < until_ns && !hd_signal_stop()) {
		if (!hd_file_read_all(&s->cmd->fs, s->at, &s->cmd->arena, sizeof s->url, &bytes, &len,
			NULL) && len && memchr(bytes, '\n', len)) {
			snprintf(s->url, sizeof s->url, "%.*s", (int)strcspn((char *)bytes, "\n"),
				(char *)bytes);
			return HD_OK;
		}
		hd_clock_wait_until(&s->cmd->clock, hd_clock_now_ns(&s->cmd->clock) + LOOK_NS);
	}
	return hd_fail(&s->cmd->diag, HD_E_PEERLOST, "the emulator of AWS Lambda did not begin");
}

static enum hd_err start_emulator(struct graph_story *s)
{
	const char *argv[] = { "/proc/self/exe", "chaos", "lambda", "--slots", "4", "--kill", "0.05",
		"--straggle", "0.05:10", "--drop-response", "0.02", "--duplicate", "0.02", "--seed", "17",
		"--no-auth", "-q", "-o", s->reports, NULL };
	struct hd_file out = { 0 };

	hd_host_real(&s->host);
	enum hd_err err = hd_file_open(&s->cmd->fs, s->at, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE,
		&out, &s->cmd->diag);
	if (!err)
		err = hd_proc_spawn(&s->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = out.id,
			.err = out.id }, &s->emulator, &s->cmd->diag);
	if (out.fs && hd_file_close(&out, NULL) && !err)
		err = hd_fail(&s->cmd->diag, HD_E_IO, "cannot close %s", s->at);
	return err ? err : await_address(s);
}

/* ---- runs ---- */

static enum hd_err train(struct graph_story *s, const struct hd_job_set *set, uint32_t nsets,
	struct demo_end *end)
{
	return demo_run(s->cmd, s->yaml, set, nsets, &(struct hd_run_options){ .worker = { .kind = "cpu",
		.ndevices = 1, .nthreads = 1 }, .stages = true }, end);
}

static enum hd_err train_on_functions(struct graph_story *s, struct demo_end *end)
{
	enum hd_err err = start_emulator(s);
	const struct hd_job_set set[] = { { "functions.kind", "lambda", HD_FROM_SET },
		{ "functions.endpoint", s->url, HD_FROM_SET }, { "functions.size", "4", HD_FROM_SET },
		{ "functions.reports", s->reports, HD_FROM_SET } };

	if (!err)
		err = train(s, set, sizeof set / sizeof *set, end);
	hd_proc_finish(&s->emulator);     /* its instances end with it */
	return err;
}

/* ---- the end ---- */

static enum hd_err say(struct graph_story *s, const struct demo_end *alone, const struct demo_end *lent)
{
	const bool same = !strcmp(alone->hex, lent->hex);
	struct hd_functions_bill bill;
	char said[HD_FN_BILL_WORDS];
	struct hd_json_line line;

	hd_functions_bill_sum(&bill, &s->cmd->fs, lent->dir);
	if (s->cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(s->cmd, &line);
		hd_json_put_text(w, "demo", "graph");
		hd_json_put_text(w, "graph", s->real ? "cora" : "generated");
		hd_json_put_text(w, "digest", lent->hex);
		hd_json_put_bool(w, "identical", same);
		hd_json_put_i64(w, "tasks", (int64_t)bill.accepted);
		hd_json_put_i64(w, "here", (int64_t)bill.here);
		hd_json_put_i64(w, "calls", (int64_t)bill.calls);
		hd_json_put_i64(w, "nano_usd", bill.nano_usd);
		hd_json_put_f32(w, "accuracy", (float)lent->accuracy);
		hd_json_put_text(w, "run", lent->dir);
		hd_json_line_print(&line);
	} else {
		printf("  graph    %s, %u intervals, %u steps\n", s->real ? "Cora" : "generated rings",
			INTERVALS, STEPS);
		if (lent->has_accuracy)
			printf("  accuracy %.1f %% of the validation set\n", lent->accuracy * 100);
		printf("  state    %s   (no functions, %.1f s)\n", alone->hex, alone->seconds);
		printf("  state    %s   (functions that fail, %.1f s)%s\n", lent->hex, lent->seconds,
			same ? "   IDENTICAL" : "   DIFFERENT");
		printf("  bill     %s\n", hd_functions_bill_say(said, &bill));
		printf("  report   %s/report.html\n", lent->dir);
	}
	if (!same)
		return hd_fail(&s->cmd->diag, HD_E_INTEGRITY,
			"the two states differ: `heddle ckpt diff %s %s` says where", alone->dir, lent->dir);
	return bill.accepted ? HD_OK : hd_fail(&s->cmd->diag, HD_E_REFUSED,
		"the states are equal, but no function did a task: %s/events.ndjson says why", lent->dir);
}

/* The job has sizes of the graph: it is prepared in a folder that goes again. */
static enum hd_err show(struct graph_story *s)
{
	struct hd_proc_self self;
	char out[HD_RUN_PATH];

	hd_proc_self(&self);
	snprintf(s->folder, sizeof s->folder, "/tmp/heddle-demo-graph-%u", self.pid);
	snprintf(out, sizeof out, "/tmp/heddle-demo-graph-%u/demo.graph", self.pid);
	enum hd_err err = hd_fs_mkdir(&s->cmd->fs, s->folder, &s->cmd->diag);
	if (err)
		return err;
	err = prepare(s, out);
	enum hd_err gone = hd_fs_remove_tree(&s->cmd->fs, s->folder, err ? NULL : &s->cmd->diag);
	if (!err)
		fputs(s->yaml, stdout);
	return err ? err : gone;
}

enum hd_err hd_demo_graph(struct hd_cmd *cmd)
{
	struct graph_story *s = hd_arena_take(&cmd->arena, 1, sizeof *s);
	struct demo_end alone = { .hex = "" }, lent = { .hex = "" };
	struct hd_stat stat;

	if (!s)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the demo");
	s->cmd = cmd;
	s->parent = hd_args_text(&cmd->args, HD_OPT_DIR, ".");
	snprintf(s->folder, sizeof s->folder, "%.*s/demo-graph", HD_RUN_PATH - 80, s->parent);
	snprintf(s->graph, sizeof s->graph, "%.*s/demo.graph", HD_RUN_PATH - 40, s->folder);
	snprintf(s->reports, sizeof s->reports, "%.*s/reports", HD_RUN_PATH - 40, s->folder);
	snprintf(s->at, sizeof s->at, "%.*s/emulator", HD_RUN_PATH - 40, s->folder);
	if (cmd->args.has[HD_OPT_SHOW])
		return show(s);
	enum hd_err err = hd_signal_install(&cmd->diag);
	if (!err && hd_fs_stat(&cmd->fs, s->parent, &stat, NULL))
		err = hd_fs_mkdir(&cmd->fs, s->parent, &cmd->diag);
	if (!err && hd_fs_stat(&cmd->fs, s->folder, &stat, NULL))
		err = hd_fs_mkdir(&cmd->fs, s->folder, &cmd->diag);
	if (!err)
		err = prepare(s, s->graph);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "  a graph network whose dense work goes to functions: of 100 calls 5 are "
			"killed, 5 take ten times as long, 2 answers are lost, 2 come twice\n");
	if (!err)
		err = train(s, NULL, 0, &alone);
	if (!err)
		err = train_on_functions(s, &lent);
	return err ? err : say(s, &alone, &lent);
}
