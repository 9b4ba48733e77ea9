#include "cmd/bench/bench.h"

#include <string.h>

#include "sys/memory.h"
#include "device/spmm_blocks.h"
#include "device/team.h"
#include "cmd/json_line.h"
#include "cmd/bench/power_law.h"

enum { REPEAT = 5, WIDTH_CAP = 602, NDEVICES = 2, L2_BYTES = 2 << 20 };
static const uint32_t widths[] = { 1, 4, 16, 64, 100, 128, 256, WIDTH_CAP };
enum { NWIDTHS = sizeof widths / sizeof *widths };

static const struct { const char *name; uint32_t nvertices; uint64_t nedges; } sizes[] = {
	{ "tiny", 2000, 40000 }, { "small", 40000, 1000000 },
	{ "medium", 200000, 10000000 }, { "large", 2000000, 20000000 },
};
enum { NSIZES = sizeof sizes / sizeof *sizes };

enum way { PLAIN, BF16, OWN, BLOCKS, DEVICES, NWAYS };
static const char *const way_text[NWAYS] = { "plain", "bf16", "own", "blocks", "devices" };

struct spmm_bench {
	struct hd_cmd *cmd;
	struct hd_power_law graph;
	struct hd_memory x, half, y, plain;
	struct hd_team *team;
	struct hd_clock core;             /* processor time of this thread */
	uint64_t repeat;
};

/* Least time of each way, 0: not measured; wall_ms: of one device, as that of several is taken. */
struct spmm_row { uint32_t width, nblocks; double ms[NWAYS], wall_ms; bool equal; };

struct shared { const struct hd_edge_kernels *kernels; struct hd_spmm call; uint64_t nrows; };

static void nothing(void) { }

static void on_device(const void *user, uint32_t i, void *scratch)
{
	const struct shared *s = user;
	struct hd_spmm call = s->call;

	(void)scratch;
	call.first = hd_spmm_cut(call.offset, 0, s->nrows, i, NDEVICES);
	call.last = hd_spmm_cut(call.offset, 0, s->nrows, i + 1, NDEVICES);
	s->kernels->spmm(&call);
}

static void keep_least(double *least,
	double ms) { *least = *least > 0 && *least < ms ? *least : ms; }

/* Each way once, in turn: a machine that slows down slows all of them. */
static void once(struct spmm_bench *b, const struct hd_spmm *own, struct hd_spmm_blocks *blocks,
	struct spmm_row *row)
{
	const struct hd_edge_kernels *kernels = hd_edge_kernels(NULL);
	struct hd_spmm plain = *own, half = *own;
	const struct shared shared = { kernels, *own, own->last };

	plain.y = b->plain.at;
	half.x = b->half.at;
	half.x_stride = hd_bf16_stride(own->width);
	half.flags |= HD_SPMM_BF16;
	for (int way = 0; way < NWAYS; way++) {
		const uint64_t bytes = own->last * own->width * sizeof(float);
		if (way == BLOCKS && blocks->n <= 1)
			continue;
		/* what a way leaves out must not be there by an earlier one; 0xffffffff is no sum */
		memset(way == PLAIN ? plain.y : own->y, 0xff, bytes);
		const int64_t began_ns = hd_clock_now_ns(&b->core), began_wall_ns =
			hd_clock_now_ns(&b->cmd->clock);
		if (way == PLAIN)
			kernels->plain(&plain);
		else if (way == OWN)
			kernels->spmm(own);
		else if (way == BF16)
			kernels->spmm(&half);
		else if (way == BLOCKS)
			hd_spmm_blocks_run(kernels, blocks, *own);
		else if (!hd_team_run(b->team, NDEVICES, false, on_device, &shared))
			row->equal = false;
		const double ms = (double)(hd_clock_now_ns(&b->core) - began_ns) * 1e-6,
			wall_ms = (double)(hd_clock_now_ns(&b->cmd->clock) - began_wall_ns) * 1e-6;
		keep_least(&row->ms[way], way == DEVICES ? wall_ms : ms);
		if (way == OWN)
			keep_least(&row->wall_ms, wall_ms);
		if (way >= OWN)
			row->equal = row->equal && memcmp(own->y, plain.y, bytes) == 0;
	}
}

static enum hd_err measure(struct spmm_bench *b, uint32_t width, struct spmm_row *row)
{
	const struct hd_power_law *g = &b->graph;
	const struct hd_spmm own = { .offset = g->offset, .at = g->at, .last = g->nvertices, .width = width,
		.x = b->x.at, .x_stride = width, .y = b->y.at, .y_stride = width };
	const struct hd_spmm_rows rows = { .last = g->nvertices, .width = width, .x = b->x.at,
		.x_stride = width, .to = b->half.at, .to_stride = hd_bf16_stride(width), .bf16 = true };
	struct hd_spmm_blocks blocks = { 0 };
	float *x = b->x.at;

	*row = (struct spmm_row){ .width = width, .equal = true };
	row->nblocks = hd_spmm_blocks_rule(g->nvertices, width * sizeof(float), g->nvertices, g->nedges,
		L2_BYTES);
	for (uint64_t i = 0; i < g->nvertices * width; i++)
		x[i] = (float)((i * 2654435761u >> 8 & 0xffff) + 1) * 0x1p-16f;
	hd_edge_kernels(NULL)->rows(&rows);
	if (row->nblocks > 1) {
		enum hd_err err = hd_spmm_blocks_make(&blocks, g->offset, g->at, 0, g->nvertices,
			g->nvertices, row->nblocks, &b->cmd->diag);
		if (err)
			return err;
	}
	for (uint64_t i = 0; i < b->repeat; i++)
		once(b, &own, &blocks, row);
	hd_spmm_blocks_free(&blocks);
	return row->equal ? HD_OK : hd_fail(&b->cmd->diag, HD_E_BUG, "width %u: the ways differ in bits; "
		"this is a fault of heddle, please report it", width);
}

static void print_row(const struct spmm_row *r)
{
	printf("%6u %10.2f %10.2f %7.2f %7.2f", r->width, r->ms[PLAIN], r->ms[OWN], r->ms[OWN] / r->ms[PLAIN],
		r->ms[BF16] / r->ms[PLAIN]);
	if (r->nblocks > 1)
		printf(" %7.2f (x%u)", r->ms[BLOCKS] / r->ms[PLAIN], r->nblocks);
	else
		printf("       -     ");
	printf(" %9.2f\n", r->ms[DEVICES] / r->wall_ms);
	fflush(stdout);                   /* a width may take seconds */
}

static void put_row(struct hd_json_writer *w, const struct spmm_row *r)
{
	char name[24];

	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "width", r->width);
	hd_json_put_i64(w, "blocks", r->nblocks);
	for (int way = 0; way < NWAYS; way++)
		if (r->ms[way] > 0) {
			snprintf(name, sizeof name, "%s_ms", way_text[way]);
			hd_json_put_f64(w, name, r->ms[way]);
		}
	hd_json_put_f64(w, "own_wall_ms", r->wall_ms);
	hd_json_put_f64(w, "own_over_plain", r->ms[OWN] / r->ms[PLAIN]);
	hd_json_put_f64(w, "bf16_over_plain", r->ms[BF16] / r->ms[PLAIN]);
	if (r->nblocks > 1)
		hd_json_put_f64(w, "blocks_over_plain", r->ms[BLOCKS] / r->ms[PLAIN]);
	hd_json_put_f64(w, "devices_over_own", r->ms[DEVICES] / r->wall_ms);
	hd_json_close(w);
}

static enum hd_err take(struct spmm_bench *b, uint32_t nvertices)
{
	const size_t bytes = (size_t)nvertices * WIDTH_CAP * sizeof(float);
	const struct hd_team_spec spec = { .nthreads = NDEVICES, .first_core = -1, .spin = true,
		.init = nothing };
	enum hd_err err = hd_memory_take(bytes, HD_MEMORY_TOUCH, &b->x, &b->cmd->diag);

	if (!err)
		err = hd_memory_take(hd_bf16_elems(nvertices, WIDTH_CAP) * sizeof(uint16_t), HD_MEMORY_TOUCH,
			&b->half, &b->cmd->diag);
	if (!err)
		err = hd_memory_take(bytes, HD_MEMORY_TOUCH, &b->y, &b->cmd->diag);
	if (!err)
		err = hd_memory_take(bytes, HD_MEMORY_TOUCH, &b->plain, &b->cmd->diag);
	return err ? err : hd_team_create(&b->team, &spec, &b->cmd->diag);
}

static enum hd_err run(struct spmm_bench *b)
{
	const bool json = b->cmd->args.has[HD_OPT_JSON];
	struct hd_json_line line;
	struct hd_json_writer *w = json ? hd_json_line_open(b->cmd, &line) : NULL;
	enum hd_err err = HD_OK;

	if (json) {
		hd_json_put_text(w, "path", hd_edge_kernels(NULL)->path);
		hd_json_put_i64(w, "vertices", (int64_t)b->graph.nvertices);
		hd_json_put_i64(w, "edges", (int64_t)b->graph.nedges);
		hd_json_put_i64(w, "repeat", (int64_t)b->repeat);
		hd_json_open_array(w, "rows");
	} else {
		printf("%s, %llu vertices, %llu edges, least of %llu; of plain C: own, bf16, blocks; of own: "
			"%d devices\n width   plain ms     own ms     own    bf16  blocks       devices\n",
			hd_edge_kernels(NULL)->path, (unsigned long long)b->graph.nvertices,
			(unsigned long long)b->graph.nedges, (unsigned long long)b->repeat, NDEVICES);
	}
	for (int i = 0; !err && i < NWIDTHS; i++) {
		struct spmm_row row;
		err = measure(b, widths[i], &row);
		if (!err && json)
			put_row(w, &row);
		else if (!err)
			print_row(&row);
	}
	if (!err && json) {
		hd_json_close(w);
		hd_json_line_print(&line);
	}
	return err;
}

static enum hd_err verb_bench_spmm(struct hd_cmd *cmd)
{
	struct spmm_bench b = { .cmd = cmd,
		.repeat = cmd->args.has[HD_OPT_REPEAT] ? hd_bench_repeat(cmd) : REPEAT };
	const char *name = cmd->args.npos ? cmd->args.pos[0] : "small";
	size_t size = 0;
	enum hd_err err;

	while (size < NSIZES && strcmp(sizes[size].name, name) != 0)
		size++;
	if (size == NSIZES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "no size '%s'; write tiny, small, medium or large",
			name);
	hd_clock_thread(&b.core);
	if (b.repeat == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--repeat 0: nothing would be timed");
	err = take(&b, sizes[size].nvertices);
	if (!err)
		err = hd_power_law_make(&b.graph, sizes[size].nvertices, sizes[size].nedges, 1, &cmd->diag);
	if (!err)
		err = run(&b);
	hd_team_destroy(b.team);
	hd_power_law_free(&b.graph);
	hd_memory_give(&b.plain);
	hd_memory_give(&b.y);
	hd_memory_give(&b.half);
	hd_memory_give(&b.x);
	return err;
}

const struct hd_verb hd_verb_bench_spmm = {
	.name = "bench spmm", .args = "[SIZE]", .npos_min = 0, .npos_max = 1,
	.about = "time sums of rows along the edges of a made graph, against plain C",
	.more =
		"A graph with a power law of degrees (Chung and Lu, exponent 3), its vertices in random "
		"order. SIZE: tiny (2,000 vertices, 40 k edges), small (40,000, 1 M; the default), "
		"medium (200,000, 10 M), large (2 M, 20 M; 17 GB of memory). For each width the least "
		"time of --repeat runs (default 5) of a plain loop whose inner loop is vectors, of the "
		"kernels of device/spmm.h, of rows in bf16, of edges cut into blocks of sources where the "
		"rows exceed 8 times 2 MiB, all in turn and in processor time; then, by the clock on the "
		"wall, of the kernels on two devices, each with half of the edges and rows, over "
		"one. All ways but bf16 are compared bit for bit.",
	.opts = HD_OPTS(HD_OPT_REPEAT),
	.run = verb_bench_spmm, .test = "program_bench_spmm.sh",
};
