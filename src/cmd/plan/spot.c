#include "cmd/plan/spot.h"

#include <math.h>
#include <string.h>

#include "planner/ways.h"
#include "clustersim/availability.h"
#include "cmd/json_line.h"

/* Every way through losses of machines, on all grids that the job's keys leave open, with each term of what
 * it is worth, and the keys of the choice. */

enum { MARKET_BYTES = 64 << 20, SHOWN = 12, REFUSED_SHOWN = 8, KEYS = 12 };

struct key { enum hd_job_key key; char value[80]; };

struct spot_ask {
	struct hd_cmd *cmd;
	struct hd_planning *p;
	struct hd_spot_market market;
	struct hd_spot_trace trace;
	bool traced;
	int64_t said_ns;
	struct hd_ways ways;
	struct key key[KEYS];                     /* of the choice */
	uint32_t nkeys;
};

/* Of a fleet larger than what is asked for no more machines count than that. */
static enum hd_err market_of_trace(struct spot_ask *a, const char *name, const struct hd_spot_trace *all)
{
	enum hd_err err = hd_spot_trace_at_most(&a->trace, all, a->p->in.cluster.ndevices, &a->cmd->arena,
		&a->cmd->diag);

	if (err)
		return err;
	a->traced = true;
	hd_spot_market_of(&a->market, &a->trace);
	return a->market.losses_h <= HD_SPOT_LOSSES_H ? HD_OK : hd_fail(&a->cmd->diag, HD_E_INPUT,
		"%s: %g losses an hour: it ends with the machines that it loses; one of an hour or more says "
		"how often they go", name, a->market.losses_h);
}

/* A market as JSON begins with a brace; anything else is a trace of machines. */
static enum hd_err read_market(struct spot_ask *a)
{
	struct hd_cmd *cmd = a->cmd;
	const char *name = cmd->args.text[HD_OPT_MARKET];
	const struct hd_json *json;
	struct hd_spot_trace trace;
	uint8_t *bytes;
	size_t len, at = 0;
	enum hd_err err = hd_file_read_all(&cmd->fs, name, &cmd->arena, MARKET_BYTES, &bytes, &len,
		&cmd->diag);

	if (err)
		return err;
	while (at < len && strchr(" \t\r\n", bytes[at]) && bytes[at])
		at++;
	if (at < len && bytes[at] == '{') {
		err = hd_json_parse(&cmd->arena, name, (const char *)bytes, len, &json, &cmd->diag);
		return err ? err : hd_spot_market_read(&a->market, json, &cmd->diag);
	}
	err = hd_availability_read(&trace, name, bytes, len, 0, &cmd->arena, &cmd->diag);
	return err ? err : market_of_trace(a, name, &trace);
}

/* ---- the search */

/* What the market's file leaves open the job may say. */
static void take_bounds(struct spot_ask *a)
{
	const struct hd_job_value *pause = &a->p->in.job.value[HD_JOB_PAUSE_MAX],
		*deadline = &a->p->in.job.value[HD_JOB_DEADLINE];

	if (!(a->market.pause_max_s > 0) && !pause->is_none)
		a->market.pause_max_s = (double)pause->i * 1e-9;
	if (!(a->market.deadline_s > 0) && !deadline->is_none)
		a->market.deadline_s = (double)deadline->i * 1e-9;
}

/* elastic.redundancy, of each way that may be chosen. */
static const char *const redundancy_of[HD_NSPOT_STRATEGIES] = { [HD_SPOT_CHECKPOINT] = "none",
	[HD_SPOT_REROUTE] = "none", [HD_SPOT_LAZY] = "lazy", [HD_SPOT_EAGER] = "eager",
	[HD_SPOT_FULL] = "full", [HD_SPOT_REPLICA] = "none" };

/* A search of many grids says where it is, at times. */
static void said(void *user, uint32_t done, uint32_t of)
{
	enum { SAYS_NS = 2000000000 };
	struct spot_ask *a = user;
	const int64_t now_ns = hd_clock_now_ns(&a->cmd->clock);

	if (!done)
		a->said_ns = now_ns;
	if (now_ns - a->said_ns < SAYS_NS || a->cmd->args.has[HD_OPT_QUIET])
		return;
	a->said_ns = now_ns;
	fprintf(stderr, ">> %u of %u grids are judged or cannot win\n", done, of);
}

static enum hd_err find(struct spot_ask *a)
{
	const struct hd_job *job = &a->p->in.job;
	struct hd_ways_ask ask = { .plan = a->p->ask, .market = &a->market,
		.batch = (double)hd_job_int(job, HD_JOB_GLOBAL), .all = a->cmd->args.has[HD_OPT_EXPLAIN],
		.trace = a->traced ? &a->trace : NULL, .said = said, .user = a };

	for (int s = 0; s < HD_NSPOT_STRATEGIES; s++)
		ask.runs[s] = redundancy_of[s] != NULL;
	if (!strcmp(a->p->planner->name, "data") && !ask.plan.meetings)
		ask.plan.stages = ask.plan.chunks = 1;
	else if (strcmp(a->p->planner->name, "auto") != 0 && !ask.plan.meetings)
		return hd_fail(&a->cmd->diag, HD_E_INVAL,
			"--spot goes through the grids itself, by the planners auto or data, not %s: leave "
			"--planner and parallel.planner out", a->p->planner->name);
	if (hd_job_int(job, HD_JOB_UPDATE) != HD_UPDATE_FLUSH)
		return hd_fail(&a->cmd->diag, HD_E_INVAL, "--spot judges jobs whose updates are not delayed; "
			"optim.update is %s, not flush", hd_job_text(job, HD_JOB_UPDATE));
	enum hd_err err = a->market.deadline_s > 0 || a->market.budget_usd > 0 ||
		!job->value[HD_JOB_STEPS].is_none ? hd_plan_input_steps(a->cmd, &a->p->in, &ask.steps) :
		HD_OK;
	return err ? err : hd_ways_find(&a->ways, &ask, &a->cmd->arena, &a->cmd->diag);
}

/* ---- the choice as keys */

static struct key *put_key(struct spot_ask *a, enum hd_job_key key)
{
	struct key *k = &a->key[a->nkeys++];

	k->key = key;
	return k;
}

static void put_word(struct spot_ask *a, enum hd_job_key key, const char *word)
{
	snprintf(put_key(a, key)->value, sizeof a->key->value, "%s", word);
}

static void put_number(struct spot_ask *a, enum hd_job_key key, uint32_t n)
{
	snprintf(put_key(a, key)->value, sizeof a->key->value, "%u", n);
}

static void make_keys(struct spot_ask *a)
{
	if (a->ways.chosen == a->ways.n)
		return;
	const struct hd_way *w = &a->ways.way[a->ways.chosen];
	const bool deep = w->ranks > 1,
		shadows = strcmp(redundancy_of[w->value.strategy], "none") != 0,
		stages = hd_job_int(&a->p->in.job, HD_JOB_SYNC) == HD_SYNC_STAGES;

	put_word(a, HD_JOB_PAR_MODE, deep ? "pipeline" : "data");
	if (deep) {
		put_word(a, HD_JOB_PAR_SCHEDULE, w->schedule);
		put_number(a, HD_JOB_PAR_STAGES, w->ranks * w->chunks);
		put_number(a, HD_JOB_PAR_CHUNKS, w->chunks);
		put_number(a, HD_JOB_PAR_REPLICAS, w->pipelines);
	} else if (w->pipelines <= 64) {
		put_number(a, HD_JOB_MAX_WORKERS, w->pipelines);         /* not those that wait */
	}
	const bool spares = w->value.spares;
	if (shadows || spares || (stages && !deep))
		put_word(a, HD_JOB_SYNC, shadows || spares ? "stages" : "allreduce");
	put_word(a, HD_JOB_REDUNDANCY, redundancy_of[w->value.strategy]);
	if (spares)
		snprintf(put_key(a, HD_JOB_RESILIENCE)->value, sizeof a->key->value, "replica:%u",
			w->value.spares);
	else if (hd_job_int(&a->p->in.job, HD_JOB_RESILIENCE) != HD_RESILIENCE_GIVEN)
		put_word(a, HD_JOB_RESILIENCE, "given");         /* the job's word says otherwise, or would */
	/* as the key takes it; what goes back to none is worth what is said with none: one a year */
	snprintf(put_key(a, HD_JOB_CKPT_EVERY)->value, sizeof a->key->value, "%.0f s",
		fmin(fmax(1, w->value.interval_s), 3e7));
}

static const char *table_of(const struct key *k) { return hd_job_keys[k->key].table; }

static void print_keys(const struct spot_ask *a)
{
	for (uint32_t i = 0; i < a->nkeys; i++) {
		const bool begins = !i || strcmp(table_of(&a->key[i]), table_of(&a->key[i - 1])) != 0,
			ends = i + 1 == a->nkeys || strcmp(table_of(&a->key[i]), table_of(&a->key[i + 1])) !=
			0;
		if (begins)
			printf("  %s: {", table_of(&a->key[i]));
		printf("%s%s: %s%s", begins ? "" : ", ", hd_job_keys[a->key[i].key].key, a->key[i].value,
			ends ? "}\n" : "");
	}
}

/* ---- what is said */

static const char *name_of(const struct hd_spot_value *v, char out[32])
{
	snprintf(out, 32, v->spares ? "%s:%u" : "%s", hd_spot_strategy_names[v->strategy], v->spares);
	return out;
}

static const char *grid_of(uint32_t d, uint32_t p, uint32_t v, const char *schedule, char out[64])
{
	if (v > 1)
		snprintf(out, 64, "%u x %u x %u %s", d, p, v, schedule);
	else
		snprintf(out, 64, "%u x %u %s", d, p, schedule);
	return out;
}

static void put_grid(struct hd_json_writer *w, const char *schedule, uint32_t d, uint32_t p, uint32_t v)
{
	hd_json_put_text(w, "schedule", schedule);
	hd_json_put_i64(w, "pipelines", d);
	hd_json_put_i64(w, "stages", p * v);
	hd_json_put_i64(w, "chunks", v);
}

/* Each term of a candidate: its name in JSON; its title in the table, how wide, with how many digits and as
 * how many times itself there; where it is. */
#define TERMS(X)                                                                      \
	X("step_s",             "step ms",     10, 7, 1e3,     v->step_s)             \
	X("losses_h",           "losses/h",     9, 4, 1,       v->losses_h)           \
	X("overhead",           "overhead %",  10, 4, 100,     v->overhead)           \
	X("goes_on",            "goes on %",    9, 4, 100,     way->goes_on)          \
	X("saving",             "saving %",     9, 4, 100,     v->saving)             \
	X("exceeds",            "exceeds %",    9, 4, 100,     v->exceeds)            \
	X("unheld",             "unheld %",     9, 4, 100,     v->unheld)             \
	X("tolerated_s",        "tolerated s", 11, 4, 1,       v->tolerated_s)        \
	X("exceeded_s",         "exceeded s",  10, 4, 1,       v->exceeded_s)         \
	X("stall_s",            "stall s",      9, 4, 1,       v->stall_s)            \
	X("pause_s",            "pause s",      9, 4, 1,       v->pause_s)            \
	X("checkpoint_every_s", "ckpt every s", 12, 4, 1,      v->interval_s)         \
	X("useful",             "useful %",     9, 4, 100,     v->useful)             \
	X("usd_h",              "$/h",          9, 4, 1,       v->usd_h)              \
	X("there",              "there %",      9, 4, 100,     way->there)            \
	X("value_if_there",     "if there",    12, 6, 1,       way->alone)            \
	X("value",              "samples/$",   12, 6, 1,       v->value)              \
	X("hours",              "hours",        9, 4, 1,       way->hours)            \
	X("usd",                "$",            9, 4, 1,       way->usd)

static void put_candidates(struct hd_json_writer *w, const struct hd_ways *ways)
{
	char name[32];

	hd_json_open_array(w, "candidates");
	for (uint32_t i = 0; i < ways->n; i++) {
		const struct hd_way *way = &ways->way[i];
		const struct hd_spot_value *v = &way->value;
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "strategy", name_of(v, name));
		put_grid(w, way->schedule, way->pipelines, way->ranks, way->chunks);
		hd_json_put_i64(w, "devices", v->devices);
		hd_json_put_i64(w, "peak_bytes", way->peak);
		hd_json_put_i64(w, "memory_bytes", way->needs);
#define X(json, title, width, digits, times, at) hd_json_put_f64(w, json, at);
		TERMS(X)
#undef X
		hd_json_put_bool(w, "allowed", v->allowed);
		hd_json_put_text(w, "why", hd_way_fate_texts[way->fate]);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_refused(struct hd_json_writer *w, const struct hd_ways *ways)
{
	hd_json_open_array(w, "refused");
	for (uint32_t i = 0; i < ways->nrefused; i++) {
		const struct hd_way_refused *r = &ways->refused[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "strategy", r->strategy < HD_NSPOT_STRATEGIES ?
			hd_spot_strategy_names[r->strategy] : "all");
		put_grid(w, r->schedule, r->pipelines, r->ranks, r->chunks);
		hd_json_put_i64(w, "grids", r->times);
		hd_json_put_text(w, "why", r->why);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void print_json(const struct spot_ask *a)
{
	const struct hd_ways *ways = &a->ways;
	const struct hd_way *c = ways->chosen < ways->n ? &ways->way[ways->chosen] : NULL;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(a->cmd, &line);
	char name[32];

	hd_json_put_text(w, "chosen", c ? name_of(&c->value, name) : "");
	if (c) {
		put_grid(w, c->schedule, c->pipelines, c->ranks, c->chunks);
		hd_json_put_f64(w, "step_s", c->value.step_s);
	}
	hd_json_put_i64(w, "machines", a->p->in.cluster.ndevices);
	hd_json_put_f64(w, "losses_h", a->market.losses_h);
	hd_json_open_array(w, "together");
	for (uint32_t k = 0; k < a->market.ntogether; k++)
		hd_json_put_f64(w, NULL, a->market.together[k]);
	hd_json_close(w);
	hd_json_open_object(w, "keys");
	for (uint32_t i = 0; i < a->nkeys; i++) {
		char dotted[64];
		snprintf(dotted, sizeof dotted, "%s.%s", table_of(&a->key[i]),
			hd_job_keys[a->key[i].key].key);
		hd_json_put_text(w, dotted, a->key[i].value);
	}
	hd_json_close(w);
	put_candidates(w, ways);
	put_refused(w, ways);
	hd_json_put_i64(w, "shapes", ways->nshapes);
	hd_json_put_i64(w, "plans", ways->nplans);
	hd_json_put_i64(w, "hopeless", ways->nhopeless);
	hd_json_put_i64(w, "refused_more", ways->nmore);
	hd_json_line_print(&line);
}

static void print_way(const struct hd_way *way, bool chosen)
{
	const struct hd_spot_value *v = &way->value;
	char name[32], grid[64];

	printf("%c %-13s %-22s %7u %8.1f %10.1f", chosen ? '>' : ' ', name_of(v, name),
		grid_of(way->pipelines, way->ranks, way->chunks, way->schedule, grid), v->devices,
		(double)way->peak * 0x1p-20, (double)way->needs * 0x1p-20);
#define X(json, title, width, digits, times, at) printf(" %*.*g", width, digits, (at) * (times));
	TERMS(X)
#undef X
	printf("  %s\n", hd_way_fate_texts[way->fate]);
}

/* The best, and the best of each strategy; --explain: all. */
static void print_ways(const struct spot_ask *a)
{
	const struct hd_ways *ways = &a->ways;
	bool seen[HD_NSPOT_STRATEGIES] = { false };
	uint32_t hidden = 0;

	printf("\n  %-13s %-22s %7s %8s %10s", "strategy", "pipelines x ranks", "devices", "peak MiB",
		"memory MiB");
#define X(json, title, width, digits, times, at) printf(" %*s", width, title);
	TERMS(X)
#undef X
	printf("  why\n");
	for (uint32_t i = 0; i < ways->n; i++) {
		const enum hd_spot_strategy s = ways->way[i].value.strategy;
		if (i < SHOWN || !seen[s] || i == ways->chosen || a->cmd->args.has[HD_OPT_EXPLAIN])
			print_way(&ways->way[i], i == ways->chosen);
		else
			hidden++;
		seen[s] = true;
	}
	if (hidden)
		printf("  and %u more (--explain, --json)\n", hidden);
}

static void print_text(const struct spot_ask *a)
{
	const struct hd_ways *ways = &a->ways;
	char name[32], grid[64];

	printf("grids     %u of %u have a plan on %u machines", ways->nplans, ways->nshapes,
		a->p->in.cluster.ndevices);
	if (ways->nhopeless)
		printf("; %u could not win even if no device waited", ways->nhopeless);
	printf("\nmarket    %.6g losses/h, %.6g $/h a machine; of 1, 2, ... at once:", a->market.losses_h,
		a->market.usd_h);
	for (uint32_t k = 0; k < a->market.ntogether; k++)
		printf(" %.4g", a->market.together[k]);
	print_ways(a);
	for (uint32_t i = 0; i < ways->nrefused && (i < REFUSED_SHOWN || a->cmd->args.has[HD_OPT_EXPLAIN]);
		i++) {
		const struct hd_way_refused *r = &ways->refused[i];
		printf("refused   %s on %s", r->strategy < HD_NSPOT_STRATEGIES ?
			hd_spot_strategy_names[r->strategy] : "all", grid_of(r->pipelines, r->ranks,
			r->chunks,
			r->schedule, grid));
		if (r->times > 1)
			printf(" and %u more", r->times - 1);
		printf(": %s\n", r->why);
	}
	if (ways->chosen == ways->n) {
		printf("chosen    none: no way is allowed by the bounds on pause, time and money "
			"and has its machines\n");
		return;
	}
	const struct hd_way *c = &ways->way[ways->chosen];
	printf("chosen    %s on %s; as keys of the job:\n", name_of(&c->value, name), grid_of(c->pipelines,
		c->ranks, c->chunks, c->schedule, grid));
	print_keys(a);
}

enum hd_err hd_cmd_plan_spot(struct hd_cmd *cmd, struct hd_planning *planning)
{
	struct spot_ask *a = hd_arena_take(&cmd->arena, 1, sizeof *a);

	if (!a)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the candidates of --spot");
	a->cmd = cmd;
	a->p = planning;
	if (cmd->args.has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
		"--spot chooses keys of the job, not one plan: leave -o out, "
			"and plan the job with the keys that it prints");
	enum hd_err err = read_market(a);
	take_bounds(a);
	err = err ? err : find(a);
	if (err)
		return err;
	make_keys(a);
	if (cmd->args.has[HD_OPT_JSON])
		print_json(a);
	else
		print_text(a);
	return HD_OK;
}
