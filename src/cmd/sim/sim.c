#include <inttypes.h>
#include <stdio.h>

#include "protocol/simulation.h"
#include "cmd/json_line.h"
#include "cmd/verbs.h"

static void print_line(void *self, int64_t now_ns, const char *line)
{
	(void)self;
	printf("%10.6f %s\n", (double)now_ns / 1e9, line);
}

static void put(struct hd_cmd *cmd, uint64_t seed, const struct hd_sim_result *r)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_i64(w, "seed", (int64_t)seed);
	hd_json_put_bool(w, "ok", r->ok);
	hd_json_put_text(w, "why", r->why);
	hd_json_put_i64(w, "steps", (int64_t)r->steps);
	hd_json_put_i64(w, "events", (int64_t)r->events);
	hd_json_put_i64(w, "epochs", r->epochs);
	hd_json_put_i64(w, "crashes", r->crashes);
	hd_json_put_i64(w, "redone", r->redone);
	hd_json_open_array(w, "left");
	for (size_t i = 0; i < HD_SIM_LEFT; i++)
		hd_json_put_i64(w, NULL, r->left[i]);
	hd_json_close(w);
	hd_json_put_f64(w, "simulated_s", (double)r->end_ns / 1e9);
	hd_json_line_print(&line);
}

static enum hd_err verb_sim(struct hd_cmd *cmd)
{
	uint64_t first = hd_args_count(&cmd->args, HD_OPT_SEED, 1),
		n = hd_args_count(&cmd->args, HD_OPT_SEEDS, 1);
	struct hd_sim_result total = { .ok = true };
	uint64_t bad = 0;

	for (uint64_t seed = first; seed - first < n; seed++) {
		struct hd_sim_result r;
		enum hd_err err = hd_simulate_job(seed, UINT32_MAX,
			cmd->args.has[HD_OPT_EXPLAIN] ? print_line : NULL, NULL, &r, &cmd->diag);
		if (err)
			return err;
		if (cmd->args.has[HD_OPT_JSON])
			put(cmd, seed, &r);
		else if (!r.ok)
			printf("seed %" PRIu64 ": %s\n", seed, r.why);
		bad += !r.ok;
		total.steps += r.steps;
		total.events += r.events;
		total.epochs += r.epochs;
		total.crashes += r.crashes;
		total.redone += r.redone;
	}
	if (!cmd->args.has[HD_OPT_JSON])
		printf("%" PRIu64 " seeds, %" PRIu64 " violated: %" PRIu64 " steps, %" PRIu64 " events, %u "
			"epochs, %u workers killed, "
			"%u virtual nodes redone\n", n, bad,
			total.steps, total.events, total.epochs, total.crashes, total.redone);
	if (bad)
		return hd_fail(&cmd->diag, HD_E_BUG,
			"%" PRIu64 " of %" PRIu64 " seeds violated an invariant; `heddle sim --seed N "
			"--explain` shows one", bad, n);
	return HD_OK;
}

const struct hd_verb hd_verb_sim = {
	.name = "sim", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "test the protocol between the workers of a job in a simulated world, by seed",
	.more =
		"The machines that admit workers, change views and repair losses are those of a run; "
		"network, disk, devices and their faults (kills, pauses, cut and silent links, islands, "
		"lost coordinators, a store that fails) are drawn from the seed. After each event the "
		"invariants are checked: every virtual node once in every sum, one state per step, no "
		"committed step lost, none begins while others need what it overwrites, and the run "
		"ends. Exit 0: none was violated; 1: the seed, the invariant and what happened. "
		"--explain: every event and action of the seed. A seed that fails once stays in "
		"tests/seeds.txt.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_SEEDS, HD_OPT_EXPLAIN),
	.run = verb_sim, .test = "program_sim.sh",
};
