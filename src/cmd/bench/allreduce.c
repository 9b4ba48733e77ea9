#include <stdio.h>

#include "cmd/json_line.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/members.h"

enum { BYTES = 25000000, MEMBERS = 2 };

static void print(struct hd_cmd *cmd, const struct hd_allreduce_bench *bench,
	const struct hd_allreduce_times *times)
{
	struct hd_json_line line;
	double *ms = times->ms, median, busbw;

	median = hd_bench_median(ms, bench->rounds);
	busbw = 2.0 * (bench->n - 1) / bench->n * (double)bench->bytes / (median * 1e-3) * 1e-9;
	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%s, %u processes, %llu bytes: %.3f ms median, %.3f least, %.3f greatest of %u; %.3f "
			"GB/s; every bit as added alone\n",
			bench->transport, bench->n, (unsigned long long)bench->bytes, median, ms[0],
			ms[bench->rounds - 1], bench->rounds, busbw);
		return;
	}
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	hd_json_put_text(w, "transport", bench->transport);
	hd_json_put_i64(w, "workers", bench->n);
	hd_json_put_i64(w, "bytes", (int64_t)bench->bytes);
	hd_json_put_i64(w, "rounds", bench->rounds);
	hd_json_put_f64(w, "time_ms_median", median);
	hd_json_put_f64(w, "time_ms_min", ms[0]);
	hd_json_put_f64(w, "time_ms_max", ms[bench->rounds - 1]);
	hd_json_put_f64(w, "busbw_GBps", busbw);
	hd_json_open_array(w, "times_ms");
	for (uint32_t r = 0; r < bench->rounds; r++)
		hd_json_put_f64(w, NULL, ms[r]);
	hd_json_close(w);
	hd_json_put_bool(w, "checked", times->checked);
	hd_json_line_print(&line);
}

static uint64_t count_or(const struct hd_cmd *cmd, enum hd_opt opt,
	uint64_t other) { return cmd->args.has[opt] ? cmd->args.count[opt] : other; }

static uint32_t cut32(uint64_t n) { return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX; }

static enum hd_err verb_bench_allreduce(struct hd_cmd *cmd)
{
	struct hd_allreduce_bench bench = { .n = cut32(count_or(cmd, HD_OPT_WORKERS, MEMBERS)),
		.bytes = count_or(cmd, HD_OPT_BYTES, BYTES),
		.transport = hd_args_text(&cmd->args, HD_OPT_WIRE, "shm"),
		.rounds = cut32(hd_bench_repeat(cmd)), .clock = &cmd->clock };
	struct hd_allreduce_times times = { .ms = NULL };
	char text[3][24];
	const char *argv[] = { "/proc/self/exe", "bench", "allreduce", "--workers", text[0], "--bytes",
		text[1], "--repeat", text[2], "--transport", bench.transport, NULL };
	bool led = false;

	snprintf(text[0], sizeof text[0], "%u", bench.n);
	snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)bench.bytes);
	snprintf(text[2], sizeof text[2], "%u", bench.rounds);
	enum hd_err err = hd_bench_members(cmd, &bench, argv, &times, &led);
	if (!err && led)
		print(cmd, &bench, &times);
	return err;
}

const struct hd_verb hd_verb_bench_allreduce = {
	.name = "bench allreduce", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "time the sum of a vector over processes of this machine",
	.more =
		"Each process has a vector of floats; afterwards all have the sum, added in one fixed "
		"order, by the exchange that training uses: buckets of 1 MiB go to their owners, sums "
		"come back. The time of a round is that of the slowest process, from the word to begin "
		"until its sums are there. busbw_GBps is 2(N-1)/N times the bytes over the median time. "
		"In the first and the last round every element is compared, bit for bit, with a sum "
		"made alone: \"checked\". tcp goes over 127.0.0.1, unprotected.\n"
		"--workers: 2 to 16 (default 2).",
	.opts = HD_OPTS(HD_OPT_WORKERS, HD_OPT_BYTES, HD_OPT_WIRE, HD_OPT_REPEAT),
	.run = verb_bench_allreduce, .test = "program_allreduce.sh",
};
