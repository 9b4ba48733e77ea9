#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "sys/tty.h"
#include "cmd/data/graph.h"

/* ---- what there is to say of a graph */

static uint64_t ndirected(const struct hd_prepared_report *r, uint64_t nedges)
{
	return r->head.directed ? nedges : nedges / 2;
}

static const char *splitter(const struct hd_prepared_report *r)
{
	return r->head.splitter == HD_SPLITTER_METIS ? "metis" : "own";
}

/* Of the fullest interval against the mean. */
static double times_mean(uint64_t most, uint64_t all, uint32_t n)
{
	return all ? (double)most * n / (double)all : 1;
}

static void print_json(struct hd_cmd *cmd, const struct hd_prepared_report *r, const char *hex)
{
	const struct hd_prepared_head *h = &r->head;
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "digest", hex);
	hd_json_put_i64(&w, "vertices", (int64_t)h->nvertices);
	hd_json_put_i64(&w, "edges", (int64_t)ndirected(r, h->nedges));
	hd_json_put_bool(&w, "directed", h->directed);
	hd_json_put_i64(&w, "loops", (int64_t)h->nloops);
	hd_json_put_i64(&w, "duplicates", (int64_t)h->nduplicates);
	hd_json_put_i64(&w, "width", h->width);
	hd_json_put_bool(&w, "sparse", h->sparse);
	hd_json_put_i64(&w, "features", (int64_t)(h->section[HD_PREPARED_FEATURES].bytes / sizeof(float)));
	hd_json_put_i64(&w, "classes", h->nclasses);
	hd_json_put_i64(&w, "train", (int64_t)r->set[HD_GRAPH_TRAIN]);
	hd_json_put_i64(&w, "valid", (int64_t)r->set[HD_GRAPH_VALID]);
	hd_json_put_i64(&w, "test", (int64_t)r->set[HD_GRAPH_TEST]);
	hd_json_put_i64(&w, "intervals", h->nintervals);
	hd_json_put_text(&w, "splitter", splitter(r));
	hd_json_put_i64(&w, "cut", (int64_t)ndirected(r, r->ncut));
	hd_json_put_f64(&w, "most_vertices", times_mean(r->most_vertices, h->nvertices, h->nintervals));
	hd_json_put_f64(&w, "most_edges", times_mean(r->most_edges, h->nedges, h->nintervals));
	hd_json_put_i64(&w, "bytes", (int64_t)h->file_bytes);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static void print_text(const char *path, const struct hd_prepared_report *r, const char *hex)
{
	const struct hd_prepared_head *h = &r->head;
	uint64_t nedges = ndirected(r, h->nedges), ncut = ndirected(r, r->ncut);

	printf("%-10s %s, %.1f MiB\n", "graph", path, (double)h->file_bytes / 0x1p20);
	printf("%-10s %s\n", "digest", hex);
	printf("%-10s %llu, %u features (%s, %llu stored), %u classes\n", "vertices",
		(unsigned long long)h->nvertices, h->width, h->sparse ? "sparse" : "dense",
		(unsigned long long)(h->section[HD_PREPARED_FEATURES].bytes / sizeof(float)), h->nclasses);
	printf("%-10s %llu %s; left out: %llu doubles, %llu loops\n", "edges", (unsigned long long)nedges,
		h->directed ? "directed" : "undirected", (unsigned long long)h->nduplicates,
		(unsigned long long)h->nloops);
	printf("%-10s train %llu, valid %llu, test %llu\n", "sets",
		(unsigned long long)r->set[HD_GRAPH_TRAIN],
		(unsigned long long)r->set[HD_GRAPH_VALID], (unsigned long long)r->set[HD_GRAPH_TEST]);
	printf("%-10s %u by %s: %llu edges (%.1f %%) go between two; the fullest has %.2f times the mean "
		"vertices, %.2f times the mean edges\n", "intervals", h->nintervals, splitter(r),
		(unsigned long long)ncut, nedges ? 100.0 * (double)ncut / (double)nedges : 0.0,
		times_mean(r->most_vertices, h->nvertices, h->nintervals),
		times_mean(r->most_edges, h->nedges, h->nintervals));
}

enum hd_err hd_prepared_print(struct hd_cmd *cmd, const char *path, const struct hd_prepared_report *report)
{
	char hex[HD_HASH_HEX];

	hd_hash_hex(report->digest, hex);
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, report, hex);
	else
		print_text(path, report, hex);
	return HD_OK;
}

enum hd_err hd_prepared_show(struct hd_cmd *cmd, const char *path, bool check)
{
	struct hd_prepared_file file = { 0 };
	struct hd_prepared_report report;
	enum hd_err err = hd_prepared_open(&file, &cmd->fs, path, true, &cmd->diag);

	if (err)
		return err;
	hd_prepared_figures(&file.graph, &report);
	if (!check)
		err = hd_prepared_print(cmd, path, &report);
	else
		printf(cmd->args.has[HD_OPT_JSON] ?
			"{\"ok\":true,\"bytes\":%llu,\"vertices\":%llu,\"edges\":%llu}\n" :
			"ok: %llu bytes read; %llu vertices and %llu edges keep all rules of a prepared "
			"graph\n",
			(unsigned long long)report.head.file_bytes, (unsigned long long)report.head.nvertices,
			(unsigned long long)ndirected(&report, report.head.nedges));
	hd_prepared_close(&file);
	return err;
}

/* ---- prepare */

enum { REWRITE_NS = 100000000, PLAIN_FACTOR = 100 };

struct progress_line { struct hd_cmd *cmd; int64_t shown_ns; bool open; };

static void show_progress(void *user, const char *what, uint64_t done, uint64_t all)
{
	struct progress_line *line = user;
	int64_t now_ns = hd_clock_now_ns(&line->cmd->clock);
	bool rewrite = line->cmd->rewrite;
	char text[120];

	if (line->cmd->args.has[HD_OPT_QUIET] ||
		now_ns - line->shown_ns < (rewrite ? REWRITE_NS : (int64_t)REWRITE_NS * PLAIN_FACTOR))
		return;
	line->shown_ns = now_ns;
	if (all)
		snprintf(text, sizeof text, "%s  %llu of %llu  %.0f %%", what, (unsigned long long)done,
			(unsigned long long)all, 100.0 * (double)done / (double)all);
	else
		snprintf(text, sizeof text, "%s  %llu", what, (unsigned long long)done);
	if (!rewrite) {
		fprintf(stderr, "%s\n", text);
		return;
	}
	unsigned width = hd_tty_width(2);
	fprintf(stderr, "\r\x1b[K%.*s", (int)(width > 1 ? width - 1 : 1), text);
	fflush(stderr);
	line->open = true;
}

static enum hd_err wants(struct hd_cmd *cmd, enum hd_opt opt, const char **text)
{
	*text = cmd->args.text[opt];
	return cmd->args.has[opt] ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL, "--%s FILE is missing: "
		"`heddle data prepare-graph --help` says what it holds", hd_opts[opt].name);
}

static enum hd_err take_count(struct hd_cmd *cmd, enum hd_opt opt, uint64_t most, uint32_t *to)
{
	uint64_t n = cmd->args.count[opt];

	if (!cmd->args.has[opt])
		return HD_OK;
	if (n < 1 || n > most)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %llu: 1 to %llu", hd_opts[opt].name,
			(unsigned long long)n, (unsigned long long)most);
	*to = (uint32_t)n;
	return HD_OK;
}

#define DEFAULT_MEMORY ((uint64_t)1 << 30)

static enum hd_err take_memory(struct hd_cmd *cmd, uint64_t *bytes)
{
	*bytes = DEFAULT_MEMORY;
	if (!cmd->args.has[HD_OPT_SORT_MEMORY])
		return HD_OK;
	return hd_num_size(cmd->args.text[HD_OPT_SORT_MEMORY], INT64_MAX, bytes, &cmd->diag);
}

static const struct { const char *word; enum hd_split_with with; } splitters[] = {
	{ "auto", HD_SPLIT_AUTO }, { "own", HD_SPLIT_OWN }, { "metis", HD_SPLIT_METIS },
};

static void take_splitter(struct hd_cmd *cmd, enum hd_split_with *with)
{
	for (size_t i = 0; i < sizeof splitters / sizeof splitters[0]; i++)
		if (cmd->args.has[HD_OPT_SPLITTER] &&
			strcmp(cmd->args.text[HD_OPT_SPLITTER], splitters[i].word) == 0)
			*with = splitters[i].with;
}

static enum hd_err verb_data_prepare_graph(struct hd_cmd *cmd)
{
	struct progress_line line = { .cmd = cmd, .shown_ns = hd_clock_now_ns(&cmd->clock) };
	struct hd_prepare how = { .labels = cmd->args.text[HD_OPT_LABELS], .progress = show_progress,
		.user = &line, .directed = cmd->args.has[HD_OPT_DIRECTED],
		.seed = cmd->args.count[HD_OPT_SPLIT_SEED] };
	struct hd_prepared_report report;
	enum hd_err err;

	if ((err = wants(cmd, HD_OPT_EDGES, &how.edges)) || (err = wants(cmd, HD_OPT_FEATURES,
		&how.features)) ||
		(err = wants(cmd, HD_OPT_SETS, &how.split)) || (err = wants(cmd, HD_OPT_OUTPUT, &how.out)) ||
		(err = take_count(cmd, HD_OPT_INTERVALS, HD_PREPARED_INTERVALS_CAP, &how.nintervals)) ||
		(err = take_count(cmd, HD_OPT_CLASSES, HD_PREPARED_CLASSES_CAP, &how.nclasses)) ||
		(err = take_memory(cmd, &how.memory_bytes)))
		return err;
	take_splitter(cmd, &how.with);
	err = hd_prepare_graph(&how, &cmd->fs, &report, &cmd->diag);
	if (line.open)
		fprintf(stderr, "\r\x1b[K");
	if (err || (cmd->args.has[HD_OPT_QUIET] && !cmd->args.has[HD_OPT_JSON]))
		return err;
	if (report.nscratch_bytes && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "edges were sorted in parts, with %.1f MiB beside %s meanwhile\n",
			(double)report.nscratch_bytes / 0x1p20, how.out);
	return hd_prepared_print(cmd, how.out, &report);
}

const struct hd_verb hd_verb_data_prepare_graph = {
	.name = "data prepare-graph", .args = "",
	.about = "make a prepared graph of edges, features and a split: cleaned, cut into intervals, "
	"numbered",
	.more =
		"--edges: lines \"from to\" (or with a tab or a comma), vertices from 0, '#' begins a "
		"comment; by its "
		"name FILE.mtx (Matrix Market), FILE.npz (a matrix of scipy.sparse.save_npz), FILE.npy "
		"(integers, "
		"[2, edges] or [edges, 2]), FILE.u32 (pairs of four bytes, little end first). Each edge "
		"counts both "
		"ways unless --directed. Doubles and loops are left out and counted; weights are not read.\n"
		"--features: line i is vertex i, \"label column:value ...\", columns from 0, ascending; "
		"label -1: "
		"none; or FILE.npz (csr), FILE.npy or FILE.csv (dense, without labels). --labels: instead, "
		"one label "
		"a line, or FILE.npy.\n"
		"--split: lines \"train ids...\", \"val ids...\", \"test ids...\".\n"
		"Folders in OGB's layout stand for their files: --edges raw --features raw --split "
		"split/NAME.\n"
		"Any of them may be gzipped. The graph is cut by METIS where it is built in, else by our "
		"own splitter, "
		"into intervals with few edges between them: a power of two, by default one for a million "
		"edges (one both ways is two), 16 "
		"at least, of 16 vertices at least. They are the graph's virtual nodes; how many workers "
		"there are "
		"is another matter. Equal files and options give equal bytes, whatever --memory.\n"
		"Beyond --memory edges are sorted in files beside -o. Cutting takes 12 bytes an edge and "
		"direction, 60 a vertex, and METIS about 60 an edge and direction more.\n"
		" heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt -o "
		"cora.graph\n"
		"`heddle data show` and `heddle data verify` take what it makes.",
	.opts = HD_OPTS(HD_OPT_EDGES, HD_OPT_FEATURES, HD_OPT_LABELS, HD_OPT_SETS, HD_OPT_OUTPUT,
		HD_OPT_INTERVALS, HD_OPT_CLASSES, HD_OPT_DIRECTED, HD_OPT_SPLITTER, HD_OPT_SPLIT_SEED,
		HD_OPT_SORT_MEMORY),
	.run = verb_data_prepare_graph, .test = "program_graph.sh",
};
