#include "sys/signal.h"
#include "wire/hub.h"
#include "worker/preempt.h"
#include "cmd/json_line.h"
#include "cmd/bench/link.h"

enum { REPEAT = 3, URGENT = 256 << 10, BULK = 64 << 20 };

static bool has_steps(enum hd_preempt_case what)
{
	return what == HD_PREEMPT_STATE || what == HD_PREEMPT_GAPS;
}
static double over(double a, double b) { return b > 0 ? a / b : 0; }

static void print_line(const struct hd_preempt_spec *s, enum hd_preempt_case what,
	const struct hd_preempt_row *r)
{
	printf("%-4s %-8s %-6s %6u Mbit/s %4u ms  ", s->transport, hd_preempt_case_name(what),
		hd_link_name(s->link.kind), s->link.rate_mbit, s->link.delay_ms);
	if (has_steps(what))
		printf("step %8.2f ms, beside an answer %8.2f (%+.1f %%), %4.1f %% of the bytes its",
			r->alone, r->bulk, 100 * (over(r->bulk, r->alone) - 1), 100 * r->share);
	else
		printf("urgent %8.2f ms, %5.2f of its wire time", r->urgent, over(r->urgent, r->wire));
	if (r->fifo > 0)
		printf(", by arrival %8.2f", r->fifo);
	if (!has_steps(what))
		printf("; all %8.2f ms (%+.2f %%)", r->bulk, 100 * (over(r->bulk, r->alone) - 1));
	printf("; %llu inversions\n", (unsigned long long)r->inversions);
}

static void put_counts(struct hd_json_writer *w, const struct hd_preempt_row *r)
{
	hd_json_put_i64(w, "inversions", (int64_t)r->inversions);
	hd_json_put_i64(w, "fifo_inversions", (int64_t)r->fifo_inversions);
	hd_json_put_i64(w, "preempted", (int64_t)r->preempted);
	hd_json_put_i64(w, "aged", (int64_t)r->aged);
	hd_json_put_bool(w, "correct", true);
}

static void print_json(struct hd_cmd *cmd, const struct hd_preempt_spec *s, enum hd_preempt_case what,
	const struct hd_preempt_row *r)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "transport", s->transport);
	hd_json_put_text(w, "case", hd_preempt_case_name(what));
	hd_json_put_text(w, "link", hd_link_name(s->link.kind));
	hd_json_put_i64(w, "rate_mbit", s->link.rate_mbit);
	hd_json_put_i64(w, "delay_ms", s->link.delay_ms);
	hd_json_put_i64(w, "bulk_bytes", (int64_t)s->bulk);
	hd_json_put_i64(w, "urgent_bytes", (int64_t)s->urgent);
	hd_json_put_i64(w, "rounds", s->rounds);
	if (has_steps(what)) {
		hd_json_put_f64(w, "step_ms_alone", r->alone);
		hd_json_put_f64(w, "step_ms", r->bulk);
		hd_json_put_f64(w, "step_slowdown", over(r->bulk, r->alone) - 1);
		hd_json_put_f64(w, "bulk_share", r->share);
	} else {
		hd_json_put_f64(w, "wire_ms", r->wire);
		hd_json_put_f64(w, "urgent_ms", r->urgent);
		hd_json_put_f64(w, "urgent_over_wire_time", over(r->urgent, r->wire));
		if (r->fifo > 0) {
			hd_json_put_f64(w, "fifo_ms", r->fifo);
			hd_json_put_f64(w, "fifo_over_wire_time", over(r->fifo, r->wire));
		}
		hd_json_put_f64(w, "bulk_ms_alone", r->alone);
		hd_json_put_f64(w, "bulk_ms", r->bulk);
		hd_json_put_f64(w, "bulk_slowdown", over(r->bulk, r->alone) - 1);
	}
	put_counts(w, r);
	hd_json_line_print(&line);
}

static enum hd_err one_transport(struct hd_cmd *cmd, struct hd_preempt_spec spec)
{
	struct hd_preempt_row row[HD_PREEMPT_CASES];

	if (!hd_hub_names_hosts(spec.transport) || !spec.link.rate_mbit)
		spec.link = (struct hd_link_spec){ .clock = spec.link.clock };
	enum hd_err err = hd_preempt_run(&spec, row, &cmd->diag);
	for (enum hd_preempt_case c = 0; c < HD_PREEMPT_CASES && !err; c++)
		if (cmd->args.has[HD_OPT_JSON])
			print_json(cmd, &spec, c, &row[c]);
		else
			print_line(&spec, c, &row[c]);
	return err;
}

static enum hd_err verify(struct hd_cmd *cmd, const struct hd_preempt_spec *s)
{
	enum hd_err err = hd_bench_in_range(cmd, "bytes", s->bulk, HD_PREEMPT_BULK_LEAST,
		HD_PREEMPT_BULK_MOST);

	return err ? err : hd_bench_in_range(cmd, "repeat", s->rounds, 1, HD_PREEMPT_ROUNDS);
}

static enum hd_err verb_bench_preempt(struct hd_cmd *cmd)
{
	static const char *const all[] = { "tcp", "tls", "shm" };
	const char *one = hd_args_text(&cmd->args, HD_OPT_WIRE_ALONE, NULL);
	char folder[HD_ADDR_CAP];
	const uint64_t rounds = hd_bench_count(cmd, HD_OPT_REPEAT, REPEAT);
	struct hd_preempt_spec spec = { .bulk = hd_bench_count(cmd, HD_OPT_BULK, BULK),
		.rounds = (uint32_t)(rounds < UINT32_MAX ? rounds : UINT32_MAX), .folder = folder };

	enum hd_err err = hd_bench_link(cmd, hd_bench_count(cmd, HD_OPT_MBIT, 0), &spec.link);
	if (!err)
		err = verify(cmd, &spec);
	if (err)
		return err;
	spec.urgent = URGENT < spec.bulk / 4 ? (uint64_t)URGENT : spec.bulk / 4;
	err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_bench_folder(cmd, folder);
	if (err)
		return err;
	for (size_t i = 0; i < (one ? 1 : sizeof all / sizeof *all) && !err; i++) {
		spec.transport = one ? one : all[i];
		err = one_transport(cmd, spec);
	}
	enum hd_err gone = hd_fs_remove_tree(&cmd->fs, folder, err ? NULL : &cmd->diag);
	return err ? err : gone;
}

const struct hd_verb hd_verb_bench_preempt = {
	.name = "bench preempt", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "time urgent bytes behind others on one connection",
	.more =
		"Two hubs of this process over a link of --rate Mbit/s. planned: 256 KiB are sent in "
		"the midst of a transfer of --bytes; answer: behind an answer of class 2; order: the "
		"transfers of a step as backward makes them, the most urgent last; state: steps one "
		"after the other while state for a joiner goes; gaps: the same, with pauses as long as "
		"a step. Each runs alone, by arrival and in order, in turns; medians count. All bytes "
		"are compared: \"correct\".\n"
		"urgent_over_wire_time: from send to arrival, over the time of its bytes at the rate, "
		"and the delay. bulk_slowdown: of the bulk, 0.01 is 1 %. inversions: a less urgent "
		"transfer, or a chunk of it, went first although the other could have.\n"
		"--link: netns, two networks of this machine joined by a queue of that rate (root, ip, "
		"tc); relay, a thread that passes bytes on at that rate and after --delay; auto takes "
		"netns where that may be and no delay is asked for. shm and unix are not shaped.\n"
		" heddle bench preempt --rate 1000 --json",
	.opts = HD_OPTS(HD_OPT_MBIT, HD_OPT_LINK_DELAY, HD_OPT_BULK, HD_OPT_WIRE_ALONE, HD_OPT_LINK,
		HD_OPT_REPEAT),
	.run = verb_bench_preempt, .test = "program_preempt.sh",
};
