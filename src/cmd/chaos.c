#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/philox.h"
#include "sys/signal.h"
#include "run/samples.h"
#include "cmd/fault.h"
#include "cmd/json_line.h"

/* A job under faults and undisturbed, and both states. Every fault is drawn from the seed: when (a committed
 * step and a part of a step's time), whom (any process, the coordinator too), what. */

enum { HD_CHAOS_WORKERS = 3, HD_CHAOS_KILLS = 20, HD_CHAOS_STEPS = 200, HD_CHAOS_MOST = 4096 };
enum { HD_CHAOS_PACE_MS = 1000 };

struct chaos {
	struct hd_trial trial;
	struct hd_faults faults;
	uint64_t seed;
	/* next: all before it have begun; begun: so many in all */
	uint32_t nworkers, nfaults, next, begun, count[HD_FAULTS];
	uint32_t npoints, each_point;     /* named places that the run may come by; deaths wanted at each */
	struct hd_fault *fault;
	int64_t detect_ns;
	struct hd_job *job;
	struct hd_samples_found samples;
	bool exact;                       /* each data epoch took each sample once */
	bool named;                       /* the user said how many of the other kinds */
};

/* ---- what is to happen ---- */

static int by_step(const void *a, const void *b)
{
	const struct hd_fault *x = a, *y = b;

	return x->step != y->step ? (x->step < y->step ? -1 : 1) : x->part != y->part ?
		(x->part < y->part ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* "pause=3,net=5": how many of each kind, in place of a tenth of the kills. */
static enum hd_err count_kinds(struct chaos *c, const char *text, uint32_t kills, struct hd_diag *diag)
{
	c->named = text;
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		c->count[k] = text || (hd_fault_orders(k) && !hd_failpoint_built()) ? 0 : kills / 10;
	c->count[HD_FAULT_KILL] = kills;
	while (text && *text) {
		size_t name = strcspn(text, "=,"), len = strcspn(text, ",");
		char digits[24];
		uint64_t n = 0;
		uint32_t k = HD_FAULT_POINT;
		while (k < HD_FAULTS && (strlen(hd_fault_name[k]) != name ||
			strncmp(hd_fault_name[k], text, name) != 0))
			k++;
		snprintf(digits, sizeof digits, "%.*s", (int)(len > name ? len - name - 1 : 0),
			text + name + (text[name] == '='));
		if (k == HD_FAULTS || text[name] != '=' || hd_num_u64(digits, HD_CHAOS_MOST, &n, NULL))
			return hd_fail(diag, HD_E_INVAL,
				"--faults, at \"%.40s\": write KIND=N,... with point, pause, slow, net, "
				"disk, scale and at most "
				"%d", text, HD_CHAOS_MOST);
		c->count[k] = (uint32_t)n;
		text += len + (text[len] == ',');
	}
	return HD_OK;
}

static void draw(const struct chaos *c, uint32_t i, enum hd_fault_kind kind, struct hd_fault *fault)
{
	const struct hd_philox w = hd_philox((const uint32_t[4]){ i, 0, 0, 0 },
		hd_philox_key(c->seed, HD_RNG_USER));
	const struct hd_philox v = hd_philox((const uint32_t[4]){ i, 1, 0, 0 },
		hd_philox_key(c->seed, HD_RNG_USER));

	hd_fault_draw(fault, kind, (const uint32_t[4]){ w.word[2], w.word[1], v.word[0], v.word[1] },
		c->nworkers + 1, c->npoints, c->detect_ns);
	/* the last steps are for who comes late */
	fault->step = 1 + w.word[0] % (c->trial.nsteps - 2 - c->trial.nsteps / 8);
}

/* Steps that would be over before their faults are made longer, so that each fault has 1.5 T on average: what
 * a loss is noticed and mended in, and somebody new has come. */
static uint64_t pace_ms(const struct chaos *c)
{
	double ms = 1.5e-6 * (double)c->detect_ns * c->nfaults / (double)c->trial.nsteps;

	return ms < HD_CHAOS_PACE_MS ? (uint64_t)ms : HD_CHAOS_PACE_MS;
}

/* With --points N each named place comes N times, in an order that is drawn; in the first half of the run,
 * for some are met late. */
static enum hd_err plan(struct chaos *c)
{
	struct hd_cmd *cmd = c->trial.cmd;
	uint32_t i = 0;

	if (c->each_point)
		c->count[HD_FAULT_POINT] = c->each_point * c->npoints;
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		c->nfaults += c->count[k];
	c->fault = hd_arena_take(&cmd->arena, c->nfaults + 1, sizeof *c->fault);
	if (!c->fault)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u faults", c->nfaults);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		for (uint32_t n = 0; n < c->count[k]; n++, i++) {
			draw(c, i, k, &c->fault[i]);
			if (k == HD_FAULT_POINT && c->each_point) {
				c->fault[i].point = n % c->npoints;
				c->fault[i].step = 1 + c->fault[i].step / 2;
			}
		}
	qsort(c->fault, c->nfaults, sizeof *c->fault, by_step);
	c->trial.pace_ms = pace_ms(c);
	return HD_OK;
}

/* ---- making it happen ---- */

/* Faults whose time has come. One that meets nobody, or has to wait for another, is tried again at the
 * next look, and holds up no other. */
static enum hd_err act(struct chaos *c)
{
	struct hd_clock *clock = &c->trial.cmd->clock;

	for (uint32_t i = c->next; i < c->nfaults && c->fault[i].step <= hd_trial_step(&c->trial); i++) {
		struct hd_fault *f = &c->fault[i];
		if (f->begun)
			continue;
		/* a step that was held up is not waited for: others may stand still meanwhile */
		double step_ns = c->trial.live.step_ms * 1e6, most_ns = (double)c->detect_ns / 4;
		double part_ns = (double)f->part / 0x1p32 * (step_ns < most_ns ? step_ns : most_ns);
		if (!f->tried)
			hd_clock_wait_until(clock, hd_clock_now_ns(clock) + (int64_t)part_ns);
		f->tried = true;
		if (!hd_fault_do(&c->faults, f))
			continue;
		f->begun = true;
		c->begun++;
		while (c->next < c->nfaults && c->fault[c->next].begun)
			c->next++;
		enum hd_err err = hd_trial_look(&c->trial);
		if (err)
			return err;
	}
	return HD_OK;
}

static enum hd_err watch(struct chaos *c)
{
	struct hd_clock *clock = &c->trial.cmd->clock;
	int64_t look = 0, turn = 0;
	enum hd_err err = HD_OK;

	while (!err && !hd_trial_ended(&c->trial)) {
		hd_clock_wait_until(clock, turn < look ? turn : look);
		if (hd_clock_now_ns(clock) >= look) {
			err = hd_trial_look(&c->trial);
			if (!err)
				err = act(c);
			look = hd_clock_now_ns(clock) + HD_TRIAL_LOOK_NS;
		}
		turn = hd_fault_turn(&c->faults);
	}
	hd_fault_end(&c->faults);
	return err;
}

/* ---- what is told ---- */

static uint32_t killed_in(const struct chaos *c, enum hd_fp_phase phase)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < c->npoints; p++)
		n += hd_failpoint_phase(p) == phase ? c->faults.killed[p] : 0;
	return n;
}

/* Of a kind, how many were planned and did not happen: the run ended before their step, or nobody came by the
 * place. One that is to bring about a death at a place is more than planned, so it makes up for none. */
static uint32_t missed(const struct chaos *c, enum hd_fault_kind kind)
{
	uint32_t n = 0;

	if (kind == HD_FAULT_POINT)
		return c->count[kind] > c->faults.done[kind] ? c->count[kind] - c->faults.done[kind] : 0;
	for (uint32_t i = c->next; i < c->nfaults; i++)
		n += c->fault[i].kind == kind && !c->fault[i].begun;
	return n;
}

static uint32_t missed_all(const struct chaos *c)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < HD_FAULTS; k++)
		n += missed(c, k);
	return n;
}

static void print_json(const struct chaos *c, const struct hd_trial_end *end)
{
	const struct hd_trial *t = &c->trial;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(t->cmd, &line);

	hd_json_put_u64(w, "seed", c->seed);
	hd_json_put_i64(w, "steps", (int64_t)t->nsteps);
	hd_json_put_i64(w, "pace_ms", (int64_t)t->pace_ms);
	hd_json_put_i64(w, "kills", c->faults.done[HD_FAULT_KILL] + c->faults.done[HD_FAULT_POINT]);
	hd_json_put_i64(w, "coordinators", c->faults.coordinators);
	for (uint32_t k = HD_FAULT_POINT; k < HD_FAULTS; k++) {
		char name[24];
		snprintf(name, sizeof name, "%ss", hd_fault_name[k]);
		hd_json_put_i64(w, name, c->faults.done[k]);
	}
	hd_json_put_i64(w, "planned", c->nfaults);
	hd_json_put_i64(w, "begun", c->begun);
	hd_json_put_i64(w, "missed", missed_all(c));
	hd_json_put_i64(w, "resumed", t->resumed);
	hd_json_put_i64(w, "membership", t->live.epoch);
	hd_json_open_object(w, "phases");
	for (uint32_t p = 0; p < HD_FP_NPHASES; p++)
		hd_json_put_i64(w, hd_fp_phase_name(p), killed_in(c, p));
	hd_json_close(w);
	hd_json_open_object(w, "places");
	for (uint32_t p = 0; p < c->npoints; p++)
		hd_json_put_i64(w, hd_failpoint_name(p), c->faults.killed[p]);
	hd_json_close(w);
	hd_json_put_text(w, "digest", end->disturbed);
	hd_json_put_text(w, "digest_undisturbed", end->twin);
	hd_json_put_bool(w, "identical", end->same);
	hd_json_open_object(w, "samples");
	hd_json_put_i64(w, "epochs", (int64_t)c->samples.epochs);
	hd_json_put_i64(w, "each", (int64_t)c->samples.epoch);
	hd_json_put_i64(w, "rest", (int64_t)c->samples.rest);
	hd_json_put_i64(w, "again", (int64_t)c->samples.again);
	hd_json_put_bool(w, "exact", c->exact);
	hd_json_close(w);
	hd_json_line_print(&line);
}

/* Deaths by phase, and within it by place. */
static void print_table(const struct chaos *c)
{
	printf("%-12s %5s  at\n", "killed in", "times");
	for (uint32_t phase = 0; phase < HD_FP_NPHASES; phase++) {
		printf("%-12s %5u ", hd_fp_phase_name(phase), killed_in(c, phase));
		for (uint32_t p = 0; p < c->npoints; p++)
			if (hd_failpoint_phase(p) == phase)
				printf(" %s %u", hd_failpoint_name(p), c->faults.killed[p]);
		putchar('\n');
	}
	printf("%-12s %5u  at any instant\n", "", c->faults.done[HD_FAULT_KILL]);
}

/* Equal states prove less than was asked for. */
static void print_missed(const struct chaos *c)
{
	const char *before = "";

	if (!missed_all(c))
		return;
	printf("missed   %u of %u that were planned (", missed_all(c), c->nfaults);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		if (missed(c, k)) {
			printf("%s%u %s", before, missed(c, k), hd_fault_name[k]);
			before = ", ";
		}
	printf("): the run ended first, or nobody came by the place; give it more --steps\n");
}

static void print(const struct chaos *c, const struct hd_trial_end *end)
{
	const struct hd_trial *t = &c->trial;

	if (t->cmd->args.has[HD_OPT_JSON]) {
		print_json(c, end);
		return;
	}
	printf("faults   ");
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		printf("%s%u %s%s", k ? ", " : "", c->faults.done[k], hd_fault_name[k],
			c->faults.done[k] == 1 ? "" : "s");
	printf(" (the coordinator killed %u times at any instant, the run resumed %u times), membership "
		"%lld\n", c->faults.coordinators, t->resumed,
		(long long)t->live.epoch);
	print_missed(c);
	if (c->count[HD_FAULT_POINT])
		print_table(c);
	printf("state    %s  (under chaos, seed %llu)\nstate    %s  (one device, undisturbed)      %s\n",
		end->disturbed, (unsigned long long)c->seed,
		end->twin, end->same ? "IDENTICAL" : "DIFFERENT");
	if (c->exact)
		printf("samples  each of %llu once in each of %llu data epochs, and %llu of the next; %llu "
			"virtual nodes were computed again, from the "
			"same samples\n", (unsigned long long)c->samples.epoch,
			(unsigned long long)c->samples.epochs, (unsigned long long)c->samples.rest,
			(unsigned long long)c->samples.again);
}

static enum hd_err all_places(const struct chaos *c)
{
	char text[400];
	size_t at = 0;
	uint32_t n = 0;

	for (uint32_t p = 0; p < c->npoints; p++)
		if (c->faults.killed[p] < c->each_point && ++n && at < sizeof text - 40)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
				hd_failpoint_name(p));
	return !n ? HD_OK : hd_fail(&c->trial.cmd->diag, HD_E_INTEGRITY,
		"the run ended before %u of %d places had their %u deaths (%s): give it more "
		"--steps", n, c->npoints, c->each_point, text);
}

/* From what was gathered, not from what should have been. */
static enum hd_err count_samples(struct chaos *c)
{
	struct hd_cmd *cmd = c->trial.cmd;
	struct hd_task *task = NULL;
	enum hd_err err = hd_task_create(&task, c->job, &cmd->fs, &cmd->diag);

	if (!err)
		err = hd_samples_verify(task, &cmd->fs, c->trial.dir, c->trial.nsteps, &c->samples,
			&cmd->diag);
	hd_task_destroy(task);
	c->exact = !err;
	return err;
}

/* Equal states after fewer faults than were asked for: not what was asked for. Kinds that nobody named are
 * told, no more. */
static enum hd_err all_planned(const struct chaos *c)
{
	uint32_t n = c->named || c->each_point ? missed_all(c) : missed(c, HD_FAULT_KILL);

	return !n ? HD_OK : hd_fail(&c->trial.cmd->diag, HD_E_AGAIN,
		"%u of %u planned faults did not happen, though the states are equal: "
		"give it more --steps", n, c->nfaults);
}

/* Steps: 200, or as many as the job has, where nobody says. */
static enum hd_err how_much(struct chaos *c, struct hd_cmd *cmd, uint64_t *nsteps)
{
	const struct hd_args *args = &cmd->args;
	const uint64_t kills = args->has[HD_OPT_KILLS] ? args->count[HD_OPT_KILLS] : HD_CHAOS_KILLS;
	const uint64_t points = args->has[HD_OPT_POINTS] ? args->count[HD_OPT_POINTS] : 0;
	const uint64_t most = c->job->value[HD_JOB_STEPS].is_none ? UINT64_MAX : (uint64_t)hd_job_int(c->job,
		HD_JOB_STEPS);

	c->seed = args->has[HD_OPT_SEED] ? args->count[HD_OPT_SEED] : 1;
	c->nworkers = args->has[HD_OPT_WORKERS] ? (uint32_t)args->count[HD_OPT_WORKERS] : HD_CHAOS_WORKERS;
	*nsteps = args->has[HD_OPT_STEPS] ? args->count[HD_OPT_STEPS] : HD_CHAOS_STEPS < most ?
		HD_CHAOS_STEPS : most;
	if (c->nworkers < 1 || c->nworkers > HD_LIVE_WORKERS / 2 || kills > HD_CHAOS_MOST ||
		points > HD_CHAOS_MOST / HD_FP_OF_RUNS || *nsteps < 3)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"from 1 to %d workers, at most %d kills, at most %d deaths at each place, at least "
			"3 steps",
			HD_LIVE_WORKERS / 2, HD_CHAOS_MOST, HD_CHAOS_MOST / HD_FP_OF_RUNS);
	if (*nsteps > most)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--steps %llu: the job has %llu (job.steps)",
			(unsigned long long)*nsteps, (unsigned long long)most);
	c->detect_ns = hd_job_int(c->job, HD_JOB_DETECT);
	c->each_point = (uint32_t)points;
	c->npoints = hd_job_int(c->job, HD_JOB_SYNC) == HD_SYNC_SHARDED ? HD_FP_OF_RUNS : HD_FP_OF_WHOLE;
	return count_kinds(c, args->has[HD_OPT_FAULTS] ? args->text[HD_OPT_FAULTS] : NULL, (uint32_t)kills,
		&cmd->diag);
}

static enum hd_err prepare(struct chaos *c, struct hd_cmd *cmd)
{
	const struct hd_args *args = &cmd->args;
	char parent[HD_RUN_PATH];
	uint64_t nsteps = 0;

	c->job = hd_arena_take(&cmd->arena, 1, sizeof *c->job);
	if (!c->job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	enum hd_err err = hd_session_job(cmd, args->pos[0], c->job, NULL, NULL);
	if (!err)
		err = how_much(c, cmd, &nsteps);
	if (args->has[HD_OPT_OUT])
		snprintf(parent, sizeof parent, "%.400s", args->text[HD_OPT_OUT]);
	else
		hd_trial_folder(cmd, "chaos", parent);
	if (!err)
		err = hd_trial_init(&c->trial, cmd, args->pos[0], parent, nsteps);
	if (err)
		return err;
	c->trial.samples = true;
	bool needs = c->each_point > 0;
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		needs |= hd_fault_orders(k) && c->count[k];
	err = hd_fault_init(&c->faults, &c->trial, c->detect_ns, needs);
	return err ? err : plan(c);
}

enum hd_err hd_cmd_chaos_run(struct hd_cmd *cmd)
{
	struct hd_trial_end end = { .same = false };
	struct chaos c = { .seed = 0 };
	enum hd_err err = prepare(&c, cmd);

	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_trial_start(&c.trial, c.nworkers, cmd->args.has[HD_OPT_DEVICES] ?
			cmd->args.text[HD_OPT_DEVICES] : "1");
	if (!err)
		err = watch(&c);
	if (!err)
		err = hd_trial_compare(&c.trial, &end);
	if (!err)
		err = count_samples(&c);
	if (end.twin[0])
		print(&c, &end);
	if (!err)
		err = all_places(&c);
	if (!err)
		err = all_planned(&c);
	hd_trial_finish(&c.trial);
	return err;
}

/* ---- one kind, in a run that goes on ---- */

/* The gap to the next fault: exponential of mean `mtbf_ms`. */
static int64_t gap_ns(uint64_t mtbf_ms, uint32_t word)
{
	return (int64_t)(-log(((double)word + 0.5) * 0x1p-32) * (double)mtbf_ms * 1e6);
}

static enum hd_err read_asked(struct chaos *c, enum hd_fault_kind kind, struct hd_fault *asked)
{
	struct hd_cmd *cmd = c->trial.cmd;
	const struct hd_args *args = &cmd->args;
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	char dir[HD_RUN_PATH];
	double by = 0;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	enum hd_err err = hd_session_job_of(cmd, args->pos[0], job, dir);
	if (!err && args->has[HD_OPT_SLOW])
		err = hd_num_f64(args->text[HD_OPT_SLOW], 2, 100, &by, &cmd->diag);
	if (err)
		return err;
	c->detect_ns = hd_job_int(job, HD_JOB_DETECT);
	asked->by = (uint32_t)by;
	asked->for_ns = args->has[HD_OPT_FOR] ? (int64_t)args->count[HD_OPT_FOR] * HD_NS_PER_MS : 0;
	asked->target = HD_TARGET_ANY;
	if (args->has[HD_OPT_TARGET])
		asked->target = !strcmp(args->text[HD_OPT_TARGET], "worker") ? HD_TARGET_WORKER
			: !strcmp(args->text[HD_OPT_TARGET], "coordinator") ? HD_TARGET_COORDINATOR :
				HD_TARGET_ANY;
	asked->how = HD_HOWS;
	for (uint32_t h = 0; args->has[HD_OPT_HOW] && h < HD_HOWS; h++)
		if (!strcmp(args->text[HD_OPT_HOW], hd_fault_how_name[h]) &&
			(kind == HD_FAULT_DISK) == (h >= HD_HOW_FULL))
			asked->how = h;
	if (args->has[HD_OPT_HOW] && asked->how == HD_HOWS)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--how %s: of a net it is cut, drop or delay, of a disk full, error or slow",
			args->text[HD_OPT_HOW]);
	return HD_OK;
}

static void live_fault(const struct chaos *c, enum hd_fault_kind kind, uint32_t i,
	const struct hd_fault *asked, struct hd_fault *fault)
{
	draw(c, i, kind, fault);
	fault->target = asked->target;
	if (asked->by)
		fault->by = asked->by;
	if (asked->for_ns)
		fault->for_ns = asked->for_ns;
	if (asked->how != HD_HOWS)
		fault->how = asked->how;
}

static enum hd_err strike(struct chaos *c, enum hd_fault_kind kind, uint64_t n, const struct hd_fault *asked)
{
	struct hd_cmd *cmd = c->trial.cmd;
	uint64_t mtbf = cmd->args.has[HD_OPT_MTBF] ? cmd->args.count[HD_OPT_MTBF] : 1000;
	int64_t due = 0, look = 0, turn = 0;
	struct hd_fault fault;
	enum hd_err err = HD_OK;

	live_fault(c, kind, 0, asked, &fault);
	while (!err && (c->next < n || hd_fault_lasts(&c->faults))) {
		hd_clock_wait_until(&cmd->clock, turn < look ? turn : look);
		int64_t now = hd_clock_now_ns(&cmd->clock);
		if (now >= look) {
			err = hd_trial_look(&c->trial);
			look = now + HD_TRIAL_LOOK_NS;
			if (!err && c->next < n && now >= due && hd_fault_do(&c->faults, &fault)) {
				live_fault(c, kind, ++c->next, asked, &fault);
				due = now + gap_ns(mtbf, fault.part);
			}
		}
		turn = hd_fault_turn(&c->faults);
	}
	hd_fault_end(&c->faults);
	return err;
}

static enum hd_err befall(struct hd_cmd *cmd, enum hd_fault_kind kind)
{
	const struct hd_args *args = &cmd->args;
	struct chaos c = { .seed = args->has[HD_OPT_SEED] ? args->count[HD_OPT_SEED] : 1 };
	enum hd_opt many = kind == HD_FAULT_KILL ? HD_OPT_KILLS : HD_OPT_COUNT_;
	uint64_t n = args->has[many] ? args->count[many] : 1;
	struct hd_fault asked = { .kind = kind };
	const struct hd_json *answer;
	enum hd_err err = hd_trial_visit(&c.trial, cmd, args->pos[0]);

	if (!err)
		err = read_asked(&c, kind, &asked);
	if (!err)
		err = hd_live_ask(cmd, args->pos[0], "{\"do\":\"status\"}", &answer);
	if (!err)
		err = hd_fault_init(&c.faults, &c.trial, c.detect_ns, hd_fault_orders(kind));
	if (!err)
		err = hd_signal_install(&cmd->diag);
	c.nworkers = 1;
	if (!err)
		err = strike(&c, kind, n, &asked);
	if (!err || c.faults.done[kind]) {
		if (args->has[HD_OPT_JSON]) {
			struct hd_json_line line;
			struct hd_json_writer *w = hd_json_line_open(cmd, &line);
			hd_json_put_text(w, "fault", hd_fault_name[kind]);
			hd_json_put_i64(w, "times", c.faults.done[kind]);
			hd_json_put_i64(w, "step", (int64_t)hd_trial_step(&c.trial));
			hd_json_line_print(&line);
		} else {
			printf("%u of %llu: %s, up to step %llu\n", c.faults.done[kind],
				(unsigned long long)n, hd_fault_name[kind],
				(unsigned long long)hd_trial_step(&c.trial));
		}
	}
	hd_trial_finish(&c.trial);
	return err;
}

enum hd_err hd_cmd_chaos_kill(struct hd_cmd *cmd) { return befall(cmd, HD_FAULT_KILL); }
enum hd_err hd_cmd_chaos_pause(struct hd_cmd *cmd) { return befall(cmd, HD_FAULT_PAUSE); }
enum hd_err hd_cmd_chaos_slow(struct hd_cmd *cmd) { return befall(cmd, HD_FAULT_SLOW); }
enum hd_err hd_cmd_chaos_net(struct hd_cmd *cmd) { return befall(cmd, HD_FAULT_NET); }
enum hd_err hd_cmd_chaos_disk(struct hd_cmd *cmd) { return befall(cmd, HD_FAULT_DISK); }
