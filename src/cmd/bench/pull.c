#include <math.h>
#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "wire/hub.h"
#include "planner/order.h"
#include "worker/pull.h"
#include "cmd/json_line.h"
#include "cmd/bench/link.h"
#include "cmd/plan/job.h"

enum { ROUNDS = 3, RATE = 1000 };
#define COMPUTING_LEAST 0.001
#define COMPUTING_MOST 1000.0

struct pulls {
	const char *transport;
	struct hd_link_spec link;                 /* without a rate where the transport has none */
	uint64_t rate_mbit, rounds, seed;
	double computing;                         /* 0: not said */
};

static double bytes_per_ns(const struct pulls *a) { return (double)a->rate_mbit / 8000; }

/* ---- what is said ---- */

static void print_text(const struct hd_pull_spec *s, uint32_t i, const struct hd_pull_row *r)
{
	printf("%-7s %10.2f ms, predicted %10.2f; transfers %10.2f, computing %10.2f; E %6.3f, S %5.3f",
		hd_order_names[s->order[i]], r->time, r->predicted, r->transfers, r->computing, r->efficiency,
		r->gain);
	if (r->over_random > 0 && s->order[i] != HD_ORDER_RANDOM)
		printf("; random takes %.3f of it", r->over_random);
	printf("; %llu displaced\n", (unsigned long long)r->displaced);
}

static void print_json(struct hd_cmd *cmd, const struct hd_pull_spec *s, uint32_t i,
	const struct hd_pull_row *r)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < s->graph->nrecvs; k++)
		bytes += s->bytes[k];
	hd_json_put_text(w, "name", s->graph->name);
	hd_json_put_text(w, "mode", hd_order_names[s->order[i]]);
	hd_json_put_text(w, "transport", s->transport);
	hd_json_put_text(w, "link", hd_link_name(s->link.kind));
	hd_json_put_i64(w, "rate_mbit", s->link.rate_mbit);
	hd_json_put_i64(w, "delay_ms", s->link.delay_ms);
	hd_json_put_i64(w, "rounds", s->rounds);
	hd_json_put_i64(w, "receives", s->graph->nrecvs);
	hd_json_put_i64(w, "ops", s->graph->nops);
	hd_json_put_i64(w, "bytes", (int64_t)bytes);
	hd_json_put_f64(w, "time_ms", r->time);
	hd_json_put_f64(w, "predicted_ms", r->predicted);
	hd_json_put_f64(w, "transfers_ms", r->transfers);
	hd_json_put_f64(w, "computing_ms", r->computing);
	hd_json_put_f64(w, "efficiency", r->efficiency);
	hd_json_put_f64(w, "gain", r->gain);
	if (r->over_random > 0)
		hd_json_put_f64(w, "over_random", r->over_random);
	hd_json_put_i64(w, "displaced", (int64_t)r->displaced);
	hd_json_put_bool(w, "correct", true);
	hd_json_open_array(w, "arrival");
	for (uint32_t k = 0; k < s->graph->nrecvs; k++)
		hd_json_put_text(w, NULL, s->graph->recv[r->arrival[k]]);
	hd_json_close(w);
	hd_json_line_print(&line);
}

/* ---- what is pulled ---- */

/* Of each receive what its time is at the rate; ops take `computing` times what receives do, if asked. */
static enum hd_err sizes(struct hd_cmd *cmd, const struct pulls *a, struct hd_pull_spec *s)
{
	const struct hd_order_graph *g = s->graph;
	double received = 0, computed = 0;
	uint64_t *bytes = hd_arena_take(&cmd->arena, g->nrecvs + (size_t)1, sizeof *bytes);

	if (!bytes)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u receives", g->nrecvs);
	if (!g->nrecvs || g->nrecvs > HD_PULL_RECVS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "%u receives: 1 to %d can be pulled", g->nrecvs,
			HD_PULL_RECVS);
	for (uint32_t r = 0; r < g->nrecvs; r++) {
		const double n = (double)g->recv_time[r] * s->tick_ns * bytes_per_ns(a);
		received += (double)g->recv_time[r];
		bytes[r] = n < 1 ? 1 : n < (double)HD_PULL_BYTES ? (uint64_t)llround(n) : HD_PULL_BYTES;
	}
	if (received * s->tick_ns * bytes_per_ns(a) > (double)HD_PULL_BYTES)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%.0f bytes: at most %llu can be pulled; take a lower --rate or a smaller model",
			received * s->tick_ns * bytes_per_ns(a), (unsigned long long)HD_PULL_BYTES);
	for (uint32_t o = 0; o < g->nops; o++)
		computed += (double)g->op[o].time;
	s->bytes = bytes;
	s->compute = a->computing > 0 && computed > 0 ? a->computing * received / computed : 1;
	return HD_OK;
}

static enum hd_err pull(struct hd_cmd *cmd, const struct hd_order_graph *graph, double tick_ns);

static enum hd_err of_job(struct hd_cmd *cmd, const struct hd_plan_input *in,
	const struct hd_cluster_level *outer)
{
	struct hd_order_graph graph;
	const double rate = (double)hd_bench_count(cmd, HD_OPT_MBIT, RATE);

	(void)outer;
	if (!(rate > 0))
		return hd_bench_in_range(cmd, "rate", 0, 1, UINT32_MAX);
	enum hd_err err = hd_order_of_profile(&graph, &in->profile, rate * 125e3, 0, &cmd->arena, &cmd->diag);
	return err ? err : pull(cmd, &graph, 1e9 / graph.unit);
}

static enum hd_err of_file(struct hd_cmd *cmd, const char *bytes, size_t len)
{
	struct hd_order_graph *graph = NULL;
	uint32_t n = 0;
	enum hd_err err = hd_order_read(&graph, &n, bytes, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);

	for (uint32_t i = 0; i < n && !err; i++)
		err = pull(cmd, &graph[i], 1e6 / graph[i].unit);
	return err;
}

/* ---- what is asked for ---- */

static enum hd_err read_args(struct hd_cmd *cmd, struct pulls *a)
{
	const char *x = cmd->args.text[HD_OPT_COMPUTING];

	*a = (struct pulls){ .transport = hd_args_text(&cmd->args, HD_OPT_WIRE_OF, "tcp"),
		.rounds = hd_bench_count(cmd, HD_OPT_REPEAT, ROUNDS),
		.seed = hd_bench_count(cmd, HD_OPT_SEED, 1),
		.rate_mbit = hd_bench_count(cmd, HD_OPT_MBIT, RATE) };
	enum hd_err err = hd_bench_link(cmd, a->rate_mbit, &a->link);
	if (!err)
		err = hd_bench_in_range(cmd, "repeat", a->rounds, 1, HD_PULL_ROUNDS);
	if (!err && x && hd_num_f64(x, COMPUTING_LEAST, COMPUTING_MOST, &a->computing, NULL))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--computing %s: a number from %g to %g", x,
			COMPUTING_LEAST, COMPUTING_MOST);
	if (!err && !hd_hub_names_hosts(a->transport))
		a->link = (struct hd_link_spec){ .clock = a->link.clock };
	return err;
}

static enum hd_err pull(struct hd_cmd *cmd, const struct hd_order_graph *graph, double tick_ns)
{
	static const enum hd_order_mode all[] = { HD_ORDER_RANDOM, HD_ORDER_TIC, HD_ORDER_TIC_PLUS,
		HD_ORDER_TAC, HD_ORDER_SEARCH };
	struct hd_pull_row row[HD_NORDERS];
	char folder[HD_ADDR_CAP];
	struct pulls a;
	enum hd_order_mode one = hd_order_auto(graph);

	enum hd_err err = read_args(cmd, &a);
	for (int m = 0; m < HD_NORDERS; m++)
		if (!strcmp(hd_args_text(&cmd->args, HD_OPT_ORDER, ""), hd_order_names[m]))
			one = (enum hd_order_mode)m;
	struct hd_pull_spec s = { .transport = a.transport, .link = a.link, .graph = graph,
		.tick_ns = tick_ns, .order = cmd->args.has[HD_OPT_ORDER] ? &one : all,
		.norders = cmd->args.has[HD_OPT_ORDER] ? 1 : sizeof all / sizeof *all,
		.rounds = (uint32_t)a.rounds, .seed = a.seed, .folder = folder };
	if (!err)
		err = sizes(cmd, &a, &s);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_bench_folder(cmd, folder);
	if (err)
		return err;
	err = hd_pull_run(&s, row, &cmd->arena, &cmd->diag);
	for (uint32_t i = 0; i < s.norders && !err; i++)
		if (cmd->args.has[HD_OPT_JSON])
			print_json(cmd, &s, i, &row[i]);
		else
			print_text(&s, i, &row[i]);
	enum hd_err gone = hd_fs_remove_tree(&cmd->fs, folder, err ? NULL : &cmd->diag);
	return err ? err : gone;
}

static enum hd_err verb_bench_pull(struct hd_cmd *cmd)
{
	return hd_cmd_graph_file(cmd, &(struct hd_cmd_graph_readers){ of_file, of_job });
}

const struct hd_verb hd_verb_bench_pull = {
	.name = "bench pull", .args = "FILE|JOB", .npos_min = 1, .npos_max = 1,
	.about = "time a forward pass that waits for its parameters, in orders of `plan order`",
	.more =
		"As a worker that serves, or begins a step, has it: one end asks, the other sends each "
		"parameter as a transfer with the rank of the order, and ops of the graph wait for their "
		"inputs and then take their time (nothing is computed). FILE and JOB as in `heddle plan "
		"order`; a time of 1 in a FILE is 1 ms. Without --order random, tic, tic+, tac and search "
		"follow one another in turns, --repeat times (default 3); medians count, and each round's "
		"random order is another one.\n"
		"efficiency E: 1 if as short as the longer of transfers and computing, 0 if as long as both. "
		"gain S: what overlap can save at most, over the longer. over_random: random over this one, "
		"of one round each. displaced: transfers that came after a less urgent one. All bytes are "
		"compared: \"correct\".\n"
		" heddle bench pull job.yaml --rate 1000 --computing 1 --json",
	.opts = HD_OPTS(HD_OPT_ORDER, HD_OPT_SEED, HD_OPT_COMPUTING, HD_OPT_MBIT, HD_OPT_LINK_DELAY,
		HD_OPT_LINK, HD_OPT_WIRE_OF, HD_OPT_REPEAT, HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
		HD_OPT_FORCE_PROFILE, HD_OPT_SET),
	.run = verb_bench_pull, .test = "program_pull.sh",
};
