#include "cmd/chaos/spot.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "sys/signal.h"
#include "clustersim/availability.h"
#include "driver/launch.h"
#include "daemon/http.h"
#include "cmd/json_line.h"
#include "cmd/ledger.h"
#include "cmd/session.h"
#include "cmd/sim/spot.h"

/* A job on machines of a market that is played; and the metadata services of clouds alone, on a port of the
 * loopback, by a script that may grow while it runs. */

enum { LOOK_NS = 50000000, SCRIPT_BYTES = 1 << 20 };

struct spot_services {
	struct hd_cmd *cmd;
	struct hd_metadata_server *server;
	const char *script;
	size_t taken;                     /* bytes of whole lines */
	uint32_t line;
};

/* New whole lines. What happens is counted from the begin of the server, or for lines that came later and
 * have no time, at once. */
static enum hd_err take_lines(struct spot_services *s)
{
	struct hd_cmd *cmd = s->cmd;
	struct hd_arena arena;
	uint8_t *bytes = NULL;
	size_t len = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(&cmd->fs, s->script, &arena, SCRIPT_BYTES, &bytes, &len,
		&cmd->diag);
	while (!err && s->taken < len) {
		const char *at = (const char *)bytes + s->taken, *end = memchr(at, '\n', len - s->taken);
		struct hd_metadata_event event;
		struct hd_diag why = { "" };
		if (!end)
			break;
		s->line++;
		s->taken += (size_t)(end + 1 - at);
		if (end == at)
			continue;
		err = hd_metadata_read(at, (size_t)(end - at), &event, &why);
		if (!err && hd_metadata_of_machine(event.what))
			err = hd_fail(&why, HD_E_INPUT, "machines come and go of a job alone: heddle chaos "
				"spot JOB "
				"--script FILE");
		if (err)
			err = hd_fail(&cmd->diag, err, "%s:%u: %s", s->script, s->line, why.text);
		else if (!hd_metadata_add(&s->server->metadata, &event))
			err = hd_fail(&cmd->diag, HD_E_INPUT,
				"%s:%u: more than %d events wait for their time; write fewer at once",
				s->script,
				s->line, HD_METADATA_SCRIPT);
	}
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err serve(struct spot_services *s)
{
	struct hd_cmd *cmd = s->cmd;
	enum hd_err err = HD_OK;

	while (!err && !hd_signal_stop()) {
		err = take_lines(s);
		if (!err)
			err = hd_metadata_poll(s->server, hd_clock_now_ns(&cmd->clock) + LOOK_NS, &cmd->diag);
	}
	return err;
}

static enum hd_err serve_services(struct hd_cmd *cmd)
{
	struct spot_services s = { .cmd = cmd, .script = cmd->args.text[HD_OPT_SCRIPT] };
	const char *where = hd_args_text(&cmd->args, HD_OPT_LISTEN, "127.0.0.1:0");
	char addr[HD_ADDR_CAP];

	if (!cmd->args.has[HD_OPT_SCRIPT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--script FILE names the events to play, one JSON object a line; JOB --trace FILE "
			"plays "
			"machines that come and go");
	enum hd_err err = hd_http_where(where, addr, &cmd->diag);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	s.server = err ? NULL : hd_alloc(sizeof *s.server);
	if (!err && !s.server)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the services");
	if (!err)
		err = hd_metadata_open(s.server, &cmd->clock, addr, &cmd->diag);
	if (!err) {
		s.server->log = stdout;
		printf("http://%s\n", s.server->listener.addr + 4);
		fflush(stdout);
		err = serve(&s);
		hd_metadata_close(s.server);
	}
	hd_free(s.server);
	return err;
}

/* ---- a job on machines that come and go */

enum { SPOT_FILE_BYTES = 64 << 20, SPOT_MOST = 16 };

struct spot_play {
	struct hd_cmd *cmd;
	struct hd_play_ask ask;
	struct hd_play *play;
	struct hd_spot_trace trace;
	struct hd_machine_script script;
	struct hd_machine_notice notice;
	int64_t began_ns;
};

static enum hd_err read_machines(struct spot_play *s)
{
	struct hd_cmd *cmd = s->cmd;
	const bool traced = cmd->args.has[HD_OPT_SPOT_TRACE];
	const char *name = cmd->args.text[traced ? HD_OPT_SPOT_TRACE : HD_OPT_SCRIPT];
	struct hd_spot_trace all;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(&cmd->fs, name, &cmd->arena, SPOT_FILE_BYTES, &bytes, &len,
		&cmd->diag);

	if (!err && !traced)
		return hd_machine_script_read(&s->script, name, (const char *)bytes, len,
			s->ask.speed, &cmd->arena, &cmd->diag);
	err = err ? err : hd_availability_read(&all, name, bytes, len, s->ask.seed, &cmd->arena, &cmd->diag);
	err = err ? err : hd_spot_trace_at_most(&s->trace, &all, s->ask.most, &cmd->arena, &cmd->diag);
	err = err ? err : hd_machine_script_of(&s->script, &s->trace, name, s->ask.speed, &s->notice,
		s->ask.seed, &cmd->arena, &cmd->diag);
	s->ask.trace = &s->trace;
	return err;
}

/* What is wrong with them is said here, not by each worker. */
static enum hd_err check_paces(struct spot_play *s)
{
	struct hd_cmd *cmd = s->cmd;
	const char *slow = s->ask.slow, *vn_time = s->ask.vn_time;
	struct hd_diag why = { "" };
	uint64_t ms;
	double times;

	if (slow && hd_num_f64(slow, 1, 1000, &times, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--slow %s: %s", slow, why.text);
	if (vn_time && hd_num_duration(vn_time, HD_VN_TIME_MS, &ms, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--vn-time %s: %s", vn_time, why.text);
	if (vn_time && hd_job_has_stages(s->ask.job))
		return hd_fail(&cmd->diag, HD_E_INVAL, HD_VN_TIME_STAGES);
	return HD_OK;
}

static enum hd_err read_ask(struct spot_play *s)
{
	struct hd_cmd *cmd = s->cmd;
	const struct hd_args *args = &cmd->args;
	struct hd_play_ask *ask = &s->ask;
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	enum hd_err err = job ? hd_session_job(cmd, args->pos[0], job, NULL, NULL) :
		hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");

	*ask = (struct hd_play_ask){ .fs = &cmd->fs, .clock = &cmd->clock, .arena = &cmd->arena,
		.path = args->pos[0], .job = job, .seed = hd_args_count(args, HD_OPT_SEED, 1),
		.most = args->has[HD_OPT_MAX_NODES] ? (uint32_t)args->count[HD_OPT_MAX_NODES] : SPOT_MOST,
		.speed = args->has[HD_OPT_TIMES_FAST] ? (uint32_t)args->count[HD_OPT_TIMES_FAST] : 1,
		.slow = hd_args_text(args, HD_OPT_SLOW, NULL),
		.vn_time = hd_args_text(args, HD_OPT_VN_TIME, NULL),
		.script = &s->script,
		.set = args->set, .nsets = args->nsets, .user = s };
	if (!err && args->has[HD_OPT_SPOT_TRACE] == args->has[HD_OPT_SCRIPT])
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--trace FILE says when machines come and go, or "
			"--script "
			"FILE: one of them");
	if (!err && (args->has[HD_OPT_MAX_NODES] && (args->count[HD_OPT_MAX_NODES] < 1 ||
		args->count[HD_OPT_MAX_NODES] > HD_LAUNCH_WORKERS)))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--max-nodes is from 1 to %d", HD_LAUNCH_WORKERS);
	if (!err && args->has[HD_OPT_TIMES_FAST] && (args->count[HD_OPT_TIMES_FAST] < 1 ||
		args->count[HD_OPT_TIMES_FAST] > 1000000))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--speed is from 1 to 1000000");
	err = err ? err : check_paces(s);
	err = err ? err : hd_machine_notice_read(&s->notice, hd_args_text(args, HD_OPT_SPOT_NOTICE, "none"),
		&cmd->diag);
	if (err)
		return err;
	ask->noticed = args->has[HD_OPT_SCRIPT] || s->notice.share > 0;
	ask->nsteps = args->has[HD_OPT_STEPS] ? args->count[HD_OPT_STEPS] :
		job->value[HD_JOB_STEPS].is_none ? 0 :
		(uint64_t)hd_job_int(job, HD_JOB_STEPS);
	if (!ask->nsteps)
		return hd_fail(&cmd->diag, HD_E_INVAL, "how many steps at most? the job has none "
			"(job.steps): "
			"--steps N");
	return read_machines(s);
}

/* ---- what is said */

static void said(void *user, const struct hd_metadata_event *e)
{
	struct spot_play *s = user;
	const struct hd_status *live = &s->play->harness.live;
	const int64_t t_ms = (hd_clock_now_ns(&s->cmd->clock) - s->play->market.began_ns) / HD_NS_PER_MS;

	if (s->cmd->args.has[HD_OPT_QUIET])
		return;
	if (s->cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(s->cmd, &line);
		hd_json_put_i64(w, "t_ms", t_ms);
		hd_json_put_i64(w, "trace_ms", (int64_t)((double)e->at_ns / 1e6 * s->ask.speed));
		hd_json_put_text(w, "do", hd_metadata_do_name(e->what));
		hd_json_put_text(w, "node", e->node);
		hd_json_put_i64(w, "step", live->step);
		hd_json_put_i64(w, "members", live->members);
		hd_json_line_print(&line);
	} else {
		printf("  %8.3f s  step %6lld  %2lld workers   %-8s %s\n", (double)t_ms / 1e3,
			(long long)live->step,
			(long long)live->members, hd_metadata_do_name(e->what), e->node);
	}
	fflush(stdout);
}

static void put_value(struct hd_json_writer *w, const struct hd_play *p)
{
	hd_json_put_f64(w, "value", p->value);
	if (!p->modelled)
		return;
	hd_json_open_object(w, "checkpoints_alone");
	hd_json_put_i64(w, "every", p->every);
	hd_json_put_i64(w, "steps", (int64_t)p->checkpoints.steps);
	hd_json_put_f64(w, "value", p->checkpoints.value);
	hd_json_close(w);
	hd_json_put_f64(w, "value_to_checkpoints", p->checkpoints.value > 0 ?
		p->value / p->checkpoints.value : 0);
	hd_json_put_f64(w, "on_demand_value", p->on_demand);
	hd_json_put_f64(w, "value_ratio", p->value / p->on_demand);
}

static void print_json_end(const struct spot_play *s)
{
	const struct hd_play *p = s->play;
	const struct hd_cloud *c = &p->market.cloud;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(s->cmd, &line);

	hd_json_put_i64(w, "steps", (int64_t)p->harness.nsteps);
	hd_json_put_i64(w, "samples", (int64_t)p->samples);
	hd_json_put_i64(w, "added", c->added);
	hd_json_put_i64(w, "removed", c->killed);
	hd_json_put_i64(w, "noticed", c->warned);
	hd_json_put_i64(w, "most", c->most);
	hd_json_put_i64(w, "started_again", c->again);
	hd_json_put_i64(w, "resumed", p->harness.resumed);
	hd_json_put_i64(w, "membership", p->harness.live.epoch);
	hd_json_put_f64(w, "speed", s->ask.speed);
	hd_json_put_i64(w, "played_ms", p->market.played_ns / HD_NS_PER_MS);
	hd_ledger_put_json(&p->ledger, &p->paid, w);
	put_value(w, p);
	if (p->not_kept.text[0])
		hd_json_put_text(w, "model_not_kept", p->not_kept.text);
	hd_json_put_text(w, "digest", p->end.disturbed);
	hd_json_put_text(w, "digest_undisturbed", p->end.twin);
	hd_json_put_bool(w, "identical", p->end.same);
	hd_json_put_text(w, "run", p->harness.dir);
	hd_json_line_print(&line);
}

static void print_text_end(const struct spot_play *s)
{
	const struct hd_play *p = s->play;
	const struct hd_cloud *c = &p->market.cloud;

	printf("machines %u came, %u went (%u with notice), at most %u at once; the run resumed %u "
		"times\n", c->added,
		c->killed, c->warned, c->most, p->harness.resumed);
	hd_ledger_print(&p->ledger, &p->paid);
	printf("samples  %llu, at the prices of 2021: 0.91 a machine and hour of the trace\n",
		(unsigned long long)p->samples);
	printf("value    %.6g samples/$\n", p->value);
	if (p->modelled)
		printf("         %.6g checkpoint-and-restart at its best, every %u steps: %.2f times that\n"
			"         %.6g machines on demand (3.06 an hour): %.2f times that\n",
			p->checkpoints.value,
			p->every, p->checkpoints.value > 0 ? p->value / p->checkpoints.value : 0,
				p->on_demand,
			p->value / p->on_demand);
	if (p->not_kept.text[0])
		printf("model    not kept, a lower --speed would make it shorter: %s\n", p->not_kept.text);
	printf("state    %s  (step %llu, on machines that came and went)\nstate    %s  (one device, "
		"undisturbed)"
		"   %s\n", p->end.disturbed, (unsigned long long)p->harness.nsteps, p->end.twin,
		p->end.same ? "IDENTICAL" : "DIFFERENT");
}

/* The same machines, and what a run does that has no shadows: peers take what is lost. */
static enum hd_err simulate(struct spot_play *s)
{
	struct hd_cmd *cmd = s->cmd;
	const struct hd_job_value *every = &s->ask.job->value[HD_JOB_CKPT_EVERY];
	char way[40];

	if (!s->ask.trace)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--simulate plays a trace: --trace FILE");
	if (!cmd->args.has[HD_OPT_SPOT_MODEL])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--simulate needs --model FILE, which says what "
			"steps take; "
			"without --simulate the same play measures it, and leaves it as model.json beside "
			"its runs");
	(void)snprintf(way, sizeof way, every->every_steps ? "reroute:%lld" : "reroute", (long long)every->i);
	return hd_simulate_spot(cmd, way, s->ask.trace);
}

enum hd_err hd_spot_play(struct hd_cmd *cmd, const struct hd_play_ask *ask)
{
	struct spot_play s = { .cmd = cmd, .ask = *ask };
	enum hd_err err = hd_signal_install(&cmd->diag);

	s.play = err ? NULL : hd_alloc(sizeof *s.play);
	if (err || !s.play)
		return err ? err : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a market");
	*s.play = (struct hd_play){ .samples = 0 };
	s.ask.said = said;
	s.ask.user = &s;
	err = hd_play(&s.ask, s.play, &cmd->diag);
	if (s.play->end.twin[0]) {
		if (cmd->args.has[HD_OPT_JSON])
			print_json_end(&s);
		else
			print_text_end(&s);
	}
	hd_play_close(s.play);
	hd_free(s.play);
	return err;
}

static enum hd_err play_job(struct hd_cmd *cmd)
{
	struct spot_play *s = hd_arena_take(&cmd->arena, 1, sizeof *s);
	const struct hd_args *args = &cmd->args;

	if (!s)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a market");
	s->cmd = cmd;
	enum hd_err err = read_ask(s);
	if (err || args->has[HD_OPT_PLAY_MODEL])
		return err ? err : simulate(s);
	if (args->has[HD_OPT_OUT])
		(void)snprintf(s->ask.parent, sizeof s->ask.parent, "%.400s", args->text[HD_OPT_OUT]);
	else
		hd_harness_folder(&cmd->fs, hd_args_text(args, HD_OPT_DIR, "."), "spot",
			s->ask.parent);
	return hd_spot_play(cmd, &s->ask);
}

static enum hd_err verb_chaos_spot(struct hd_cmd *cmd)
{
	return cmd->args.npos ? play_job(cmd) : serve_services(cmd);
}

const struct hd_verb hd_verb_chaos_spot = {
	.name = "chaos spot", .args = "[JOB]", .npos_min = 0, .npos_max = 1,
	.about = "a job on machines that come and go; or the metadata services of EC2, GCE and Azure alone",
	.more =
		"JOB --trace FILE: a worker process for each machine of the trace, started when it comes, "
		"killed with its process group when it goes, under a coordinator that starts none itself; at "
		"most --max-nodes at once, the others are left out. --notice ec2:120 announces it so many "
		"seconds of the trace before, by the metadata service. Then the same job undisturbed on one "
		"device: exit 0 only if both digests are equal. Says what a dollar bought at the published "
		"prices of 2021 (0.91 an hour, on demand 3.06), beside checkpoint-and-restart on the same "
		"trace "
		"and machines on demand, by the steps that were measured. --vn-time T makes each virtual "
		"node take T, for the most part by waiting, so that many workers share few cores as if "
		"each had its own; --slow X makes workers wait X - 1 times as long as they compute.\n"
		" heddle chaos spot job.yaml --trace p3-trace.csv --speed 600 --notice ec2:120\n"
		"JOB --script FILE: machines by a script: do: add, kill, freeze (lead s), signal (sig), "
		"beside "
		"what follows; step: not before that step; members: not before so many workers take part; "
		"when: starved: not before "
		"the run gave up. "
		"--simulate plays a trace on a simulated clock, by --model. Both runs and model.json, what "
		"was measured, stay in --out DIR (default runs/spot, "
		"spot-2, ...).\n"
		"Without JOB: prints the base address, then each request as a line of JSON; ends at "
		"SIGTERM. A "
		"node is served under /NAME: workers hear it with -s elastic.notice.source=ec2 -s "
		"elastic.notice.base=http://127.0.0.1:PORT/NAME, where {pid} stands for their process.\n"
		"--script FILE: one event a line, as {\"t\":30,\"node\":\"n3\",\"do\":\"notice\","
		"\"cloud\":\"ec2\",\"lead\":120}; lines may be added while it runs. t: seconds from the "
		"begin, past or missing: at once. do: notice, rebalance, migrate, maintain, withdraw, start, "
		"expire, "
		"fail, silence, heal; late: the notice comes so much later; status of fail (0: "
		"garbage); action of ec2.",
	.opts = HD_OPTS(HD_OPT_SCRIPT, HD_OPT_LISTEN, HD_OPT_SPOT_TRACE, HD_OPT_TIMES_FAST,
		HD_OPT_SPOT_NOTICE,
		HD_OPT_MAX_NODES, HD_OPT_PLAY_MODEL, HD_OPT_SPOT_MODEL, HD_OPT_SEED, HD_OPT_STEPS,
			HD_OPT_SLOW, HD_OPT_VN_TIME, HD_OPT_OUT, HD_OPT_SET),
	.run = verb_chaos_spot, .test = "program_spot.sh",
};
