#include <stdlib.h>
#include <string.h>

#include "plan/collective_cost.h"
#include "cmd/json_line.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/members.h"

enum { MEMBERS = 4, FIRST = 1 << 10, MOST = 1 << 22, GROWS = 4, REPEAT = 5, SEGMENTS = 16 };

/* Rows: the cases of the bench, with what was measured and what is predicted by costs fitted to all of it. */
struct comm_row { double ms, predicted_ms; bool is_chosen, is_best; };
struct comm_bench {
	struct hd_allreduce_bench bench;
	struct hd_allreduce_case at[HD_ALLREDUCE_CASES];
	struct comm_row row[HD_ALLREDUCE_CASES];
	struct hd_collective_table table;
	bool fitted;
};

/* The nodes of `hierarchical`: the largest of a power of two that leaves more nodes than a node has ranks. */
static uint32_t node_of(uint32_t p)
{
	uint32_t node = 2;

	while (p % (2 * node) == 0 && 2 * node * 2 * node <= p)
		node *= 2;
	return p % node == 0 && p > node ? node : 0;
}

static struct hd_collective_shape shape_of(enum hd_collective kind, uint32_t p, uint64_t bytes)
{
	struct hd_collective_table unknown;
	struct hd_collective_shape shape = { .p = p, .fast = true };
	uint64_t bucket = HD_COLLECTIVE_BUCKET * sizeof(float);

	hd_collective_table_init(&unknown);
	shape.node = kind == HD_COLLECTIVE_HIERARCHICAL ? node_of(p) : p;
	shape.segments = hd_collective_segments(&unknown.link[HD_COLLECTIVE_LOCAL], p, bytes < bucket ?
		bytes :
		bucket, SEGMENTS);
	return shape;
}

/* Sizes grow by four; the last is `most`. */
static void make_cases(struct comm_bench *c, uint64_t most, const char *word)
{
	enum hd_collective only = HD_COLLECTIVE_DIRECT;
	bool all = !hd_collective_find(word, &only);

	for (uint64_t bytes = most < FIRST ? most : FIRST; bytes; bytes = bytes == most ? 0 :
		bytes > most / GROWS ? most : bytes * GROWS)
		for (uint32_t k = 0; k < HD_COLLECTIVE_COUNT && c->bench.ncases < HD_ALLREDUCE_CASES; k++) {
			enum hd_collective kind = (enum hd_collective)k;
			struct hd_collective_shape shape = shape_of(kind, c->bench.n, bytes);
			if ((!all && kind != only) || (all && hd_collective_check(kind, &shape, NULL)))
				continue;
			c->at[c->bench.ncases++] = (struct hd_allreduce_case){ kind, shape, bytes };
		}
	c->bench.cases = c->at;
	c->bench.bytes = most;
}

/* ---- what the times say ---- */

static void take_medians(struct comm_bench *c, const struct hd_allreduce_times *times)
{
	double ms[HD_ALLREDUCE_ROUNDS];

	for (uint32_t i = 0; i < c->bench.ncases; i++) {
		uint32_t n = 0;
		for (uint32_t r = 0; r < c->bench.rounds; r++) {
			double it = times->ms[r * c->bench.ncases + i];
			if (it > 0)
				ms[n++] = it;
		}
		c->row[i].ms = n ? hd_bench_median(ms, n) : 0;
	}
}

/* All go over one link here, whatever it is. */
static enum hd_err fit(struct comm_bench *c, struct hd_diag *diag)
{
	struct hd_collective_sample sample[HD_ALLREDUCE_CASES];
	struct hd_collective_costs costs;
	uint32_t n = 0;

	hd_collective_table_init(&c->table);
	for (uint32_t i = 0; i < c->bench.ncases; i++)
		if (c->row[i].ms > 0 && c->at[i].kind != HD_COLLECTIVE_HIERARCHICAL)
			sample[n++] = (struct hd_collective_sample){ c->at[i].kind, c->at[i].shape,
				c->at[i].bytes,
				c->row[i].ms * 1e6 };
	if (!n)
		return HD_OK;
	enum hd_err err = hd_collective_fit(&costs, sample, n, diag);
	if (err)
		return err;
	c->fitted = true;
	for (uint32_t l = 0; l < HD_COLLECTIVE_LINKS; l++)
		c->table.link[l] = costs;
	for (uint32_t i = 0; i < c->bench.ncases; i++)
		c->row[i].predicted_ms = hd_collective_expect(&c->table, c->at[i].kind, &c->at[i].shape,
			c->at[i].bytes) * 1e-6;
	return HD_OK;
}

/* Among the canonical rows of one size that were timed: the least time measured, and the least predicted. */
static void choose(struct comm_bench *c)
{
	for (uint32_t i = 0, end; i < c->bench.ncases; i = end) {
		struct comm_row *best = NULL, *chosen = NULL;
		for (end = i; end < c->bench.ncases && c->at[end].bytes == c->at[i].bytes; end++) {
			struct comm_row *row = &c->row[end];
			if (!(row->ms > 0) || !hd_collective_is_canonical(c->at[end].kind))
				continue;
			best = !best || row->ms < best->ms ? row : best;
			chosen = !chosen || row->predicted_ms < chosen->predicted_ms ? row : chosen;
		}
		if (!best)
			continue;
		best->is_best = true;
		chosen->is_chosen = c->fitted;
	}
}

/* ---- printing ---- */

/* As nccl-tests define it for a sum over n: each byte crosses the bus 2 (n - 1) / n times. */
static double bus(const struct comm_bench *c, double algbw) { return algbw * 2 * (c->bench.n -
	1) / c->bench.n; }

static void print_json(struct hd_cmd *cmd, const struct comm_bench *c, uint32_t i, bool correct)
{
	const struct hd_allreduce_case *at = &c->at[i];
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	double algbw = (double)at->bytes / (c->row[i].ms * 1e6);

	hd_json_put_text(w, "primitive", hd_collective_word(at->kind));
	hd_json_put_i64(w, "bytes", (int64_t)at->bytes);
	hd_json_put_text(w, "transport", c->bench.transport);
	hd_json_put_i64(w, "workers", c->bench.n);
	hd_json_put_i64(w, "rounds", c->bench.rounds);
	hd_json_put_f64(w, "time_ms", c->row[i].ms);
	hd_json_put_f64(w, "algbw_GBps", algbw);
	hd_json_put_f64(w, "busbw_GBps", bus(c, algbw));
	hd_json_put_f64(w, "predicted_ms", c->row[i].predicted_ms);
	hd_json_put_bool(w, "canonical", hd_collective_is_canonical(at->kind));
	hd_json_put_bool(w, "chosen", c->row[i].is_chosen);
	hd_json_put_bool(w, "best", c->row[i].is_best);
	hd_json_put_bool(w, "correct", correct);
	hd_json_line_print(&line);
}

static void print_text(const struct comm_bench *c, uint32_t i)
{
	double algbw = (double)c->at[i].bytes / (c->row[i].ms * 1e6);

	printf("%-20s %11llu %12.4f %12.4f %8.3f %8.3f %s%s\n", hd_collective_word(c->at[i].kind),
		(unsigned long long)c->at[i].bytes, c->row[i].ms, c->row[i].predicted_ms, algbw, bus(c,
			algbw),
		c->row[i].is_chosen ? " chosen" : "", c->row[i].is_best ? " best" : "");
}

static enum hd_err print(struct hd_cmd *cmd, struct comm_bench *c, bool correct)
{
	bool json = cmd->args.has[HD_OPT_JSON];
	const struct hd_collective_costs *k = &c->table.link[HD_COLLECTIVE_LOCAL];
	struct hd_text text;

	if (!json)
		printf("%s, %u processes, median of %u; every bit as added alone\n"
			"%-20s %11s %12s %12s %8s %8s\n",
			c->bench.transport, c->bench.n, c->bench.rounds, "primitive", "bytes", "ms",
			"predicted ms", "algbw", "busbw");
	for (uint32_t i = 0; i < c->bench.ncases; i++) {
		if (!(c->row[i].ms > 0))
			continue;
		if (json)
			print_json(cmd, c, i, correct);
		else
			print_text(c, i);
	}
	if (!json)
		printf("alpha %.0f ns, beta %.4f ns/B, gamma %.4f ns/B, overhead %.0f ns, incast %.2f\n",
			k->alpha_ns,
			k->beta_ns, k->gamma_ns, k->overhead_ns, k->incast);
	if (!cmd->args.has[HD_OPT_OUTPUT])
		return HD_OK;
	if (!c->fitted)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"no sum was timed within --seconds, so no costs are written; "
			"give it more");
	hd_text_init(&text, &cmd->arena);
	hd_collective_table_print(&c->table, &text);
	return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len, &cmd->diag);
}

static uint64_t count_or(const struct hd_cmd *cmd, enum hd_opt opt, uint64_t other)
{
	return cmd->args.has[opt] ? cmd->args.count[opt] : other;
}
static uint32_t cut32(uint64_t n) { return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX; }

static enum hd_err verb_bench_comm(struct hd_cmd *cmd)
{
	struct comm_bench *c = hd_arena_take(&cmd->arena, 1, sizeof *c);
	const char *word = hd_args_text(&cmd->args, HD_OPT_PRIMITIVE, "all");
	struct hd_allreduce_times times = { .ms = NULL };
	char text[4][24];
	bool led = false;

	if (!c)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a bench");
	memset(c, 0, sizeof *c);
	c->bench = (struct hd_allreduce_bench){ .n = cut32(count_or(cmd, HD_OPT_WORKERS, MEMBERS)),
		.transport = hd_args_text(&cmd->args, HD_OPT_WIRE, "shm"),
		.rounds = cut32(count_or(cmd, HD_OPT_REPEAT, REPEAT)), .clock = &cmd->clock,
		.budget_ns = (int64_t)(count_or(cmd, HD_OPT_SECONDS, 0) % 1000000) * HD_NS_PER_S };
	make_cases(c, count_or(cmd, HD_OPT_BYTES, MOST), word);
	snprintf(text[0], sizeof text[0], "%u", c->bench.n);
	snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)c->bench.bytes);
	snprintf(text[2], sizeof text[2], "%u", c->bench.rounds);
	snprintf(text[3], sizeof text[3], "%llu", (unsigned long long)count_or(cmd, HD_OPT_SECONDS, 0));
	const char *argv[] = { "/proc/self/exe", "bench", "comm", "--workers", text[0], "--bytes", text[1],
		"--repeat", text[2], "--seconds", text[3], "--primitive", word, "--transport",
			c->bench.transport,
		NULL };
	enum hd_err err = hd_bench_members(cmd, &c->bench, argv, &times, &led);
	if (err || !led)
		return err;
	take_medians(c, &times);
	err = fit(c, &cmd->diag);
	if (err)
		return err;
	choose(c);
	return print(cmd, c, times.checked);
}

const struct hd_verb hd_verb_bench_comm = {
	.name = "bench comm", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "time sums over processes by each primitive, fit costs to them",
	.more =
		"Each process has a vector of floats; afterwards all have the sum. Sizes from 1 KiB grow "
		"by four to "
		"--bytes (default 4 MiB, at most 256 MiB); all rows are summed once for nothing, then "
		"--repeat times "
		"(default 5), one after the other. A time is the median of the slowest process's times. "
		"algbw_GBps: "
		"bytes over it; busbw_GBps: 2(N-1)/N of that, as nccl-tests define it. \"correct\": in the "
		"first and "
		"the last round every element is compared, bit for bit, with a sum made alone: along the "
		"canonical "
		"tree, or in the ring's or the tree's own order. ring and tree (\"canonical\": false) are "
		"measured alone: no job can ask for them.\n"
		"predicted_ms is by costs fitted to all rows but hierarchical ones; of each size the "
		"canonical one "
		"with the least prediction is \"chosen\", the one with the least time \"best\". --output "
		"writes the "
		"costs as a table, for reading: no verb takes it so far.\n"
		"--workers: 2 to 16 (default 4). tcp goes over 127.0.0.1, unprotected.",
	.opts = HD_OPTS(HD_OPT_WORKERS, HD_OPT_BYTES, HD_OPT_WIRE, HD_OPT_REPEAT, HD_OPT_PRIMITIVE,
		HD_OPT_SECONDS, HD_OPT_OUTPUT),
	.run = verb_bench_comm, .test = "program_comm.sh",
};
