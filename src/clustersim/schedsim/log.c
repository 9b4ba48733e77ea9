#include "clustersim/schedsim/log.h"

#include <string.h>

#include "base/json_writer.h"

#define SETTING(name, kind) { #name, kind, offsetof(struct hd_sched_sim_setting, name), false }
const struct log_field log_setting_fields[] = {
	SETTING(round_s, LOG_F64), SETTING(min_reset_s, LOG_F64), SETTING(kappa, LOG_F64),
		SETTING(seed, LOG_U32), SETTING(trace, LOG_BOOL),
	SETTING(first, LOG_U64), SETTING(end, LOG_U64), SETTING(stop_s, LOG_F64),
	SETTING(deadline_factor, LOG_F64), SETTING(free_switching, LOG_BOOL),
	SETTING(lost_s, LOG_F64), SETTING(away_s, LOG_F64), SETTING(failures_per_s, LOG_F64),
	SETTING(prices_from_s, LOG_F64),
	{ "start_s", LOG_F64, offsetof(struct hd_sched_sim_setting, costs.start_s), false },
	{ "resize_s", LOG_F64, offsetof(struct hd_sched_sim_setting, costs.resize_s), false },
	{ "move_s", LOG_F64, offsetof(struct hd_sched_sim_setting, costs.move_s), false },
	{ "preempt_s", LOG_F64, offsetof(struct hd_sched_sim_setting, costs.preempt_s), false },
	{ NULL, LOG_F64, 0, false },
};

#define POLICY(name, kind) { #name, kind, offsetof(struct hd_policy_setting, name), false }
const struct log_field log_policy_fields[] = {
	POLICY(seed, LOG_U32), POLICY(npops, LOG_U32), POLICY(pack_threshold, LOG_F64), POLICY(beta, LOG_F64),
		POLICY(phi, LOG_F64),
	{ "patience", LOG_F64, offsetof(struct hd_policy_setting, patience), true }, POLICY(delay_usd_h, LOG_F64),
	POLICY(alpha, LOG_F64), POLICY(published, LOG_BOOL), POLICY(deadlines, LOG_BOOL),
	POLICY(slo_factor, LOG_F64), POLICY(backfill, LOG_BOOL),
	POLICY(preempt, LOG_BOOL), POLICY(entity_kind, LOG_INT),
	{ "lp_iterations", LOG_U32, offsetof(struct hd_policy_setting, lp_iterations), true },
	{ NULL, LOG_F64, 0, false },
};

#define ELASTIC(name, kind) { #name, kind, offsetof(struct hd_sched_elastic, name), false }
const struct log_field log_elastic_fields[] = {
	ELASTIC(min, LOG_U32), ELASTIC(max, LOG_U32), ELASTIC(nvns, LOG_U32), ELASTIC(resize_s, LOG_F64),
		ELASTIC(mixed, LOG_BOOL), { NULL, LOG_F64, 0, false },
};

#define ESTIMATE(name, kind) { #name, kind, offsetof(struct hd_estimate_setting, name), false }
const struct log_field log_estimate_fields[] = {
	ESTIMATE(q, LOG_F64), ESTIMATE(references, LOG_U32), ESTIMATE(seed, LOG_U32),
		ESTIMATE(published, LOG_BOOL), { NULL, LOG_F64, 0, false },
};

static void put_fields(struct hd_json_writer *w, const struct log_field *field, const void *from)
{
	for (; field->key; field++) {
		const char *at = (const char *)from + field->at;
		switch (field->kind) {
		case LOG_F64:  hd_json_put_f64(w, field->key, *(const double *)(const void *)at); break;
		case LOG_U32:  hd_json_put_i64(w, field->key, *(const uint32_t *)(const void *)at); break;
		case LOG_U64:  hd_json_put_u64(w, field->key, *(const uint64_t *)(const void *)at); break;
		case LOG_INT:  hd_json_put_i64(w, field->key, *(const int *)(const void *)at); break;
		case LOG_BOOL: hd_json_put_bool(w, field->key, *(const bool *)(const void *)at); break;
		}
	}
}

/* ---- what is given ---- */

static const char *const variants[] = {
#define X(id, name) name,
	HD_VARIANTS(X)
#undef X
};

static void put_policy(struct hd_json_writer *w, const struct hd_policy_setting *policy)
{
	hd_json_open_object(w, "policy");
	hd_json_put_text(w, "name", policy->policy->name);
	hd_json_put_text(w, "variant", variants[policy->variant]);
	hd_json_put_bool(w, "gavel", policy->fidelity == HD_FIDELITY_GAVEL);
	if (policy->reference_type)
		hd_json_put_text(w, "reference_type", policy->reference_type);
	put_fields(w, log_policy_fields, policy);
	hd_json_close(w);
}

static void put_types(struct hd_json_writer *w, const struct hd_sched_sim_setting *set)
{
	hd_json_open_array(w, "types");
	for (uint32_t t = 0; t < set->ntypes; t++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", set->types[t].name);
		hd_json_put_i64(w, "n", set->types[t].n);
		hd_json_put_f64(w, "price", set->types[t].price_usd_h);
		hd_json_put_f64(w, "revoked_per_s", set->types[t].revoked_per_s);
		hd_json_put_f64(w, "speed", set->speed ? set->speed[t] : 1);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_elastic(struct hd_json_writer *w, const struct hd_sched_elastic *elastic)
{
	hd_json_open_object(w, "elastic");
	put_fields(w, log_elastic_fields, elastic);
	hd_json_open_array(w, "speedup");
	for (uint32_t k = 0; k <= elastic->max; k++)
		hd_json_put_f64(w, NULL, elastic->speedup[k]);
	hd_json_close(w);
	hd_json_close(w);
}

static void put_entities(struct hd_json_writer *w, const struct hd_sched_sim_setting *set)
{
	hd_json_open_array(w, "entities");
	for (uint32_t e = 0; e < set->nentities; e++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", set->entities[e].name);
		hd_json_put_f64(w, "weight", set->entities[e].weight);
		hd_json_put_bool(w, "fifo", set->entities[e].kind == HD_ENTITY_FIFO);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_hosts(struct hd_json_writer *w, const struct sched_sim *sim)
{
	hd_json_open_array(w, "hosts");
	for (uint32_t d = 0; d < sim->ndevices; d++)
		hd_json_put_i64(w, NULL, sim->set->host[d]);
	hd_json_close(w);
}

/* For each type of the cluster its lines, [zone, time, price]; none: the type's own price holds. */
static void put_prices(struct hd_json_writer *w, const struct hd_sched_sim_setting *set)
{
	hd_json_open_object(w, NULL);
	hd_json_open_array(w, "prices");
	for (uint32_t t = 0; t < set->ntypes; t++) {
		uint32_t as = set->price_type[t];
		hd_json_open_array(w, NULL);
		for (size_t i = as == HD_PRICE_NONE ? 0 : set->prices->first[as]; as != HD_PRICE_NONE &&
			i < set->prices->first[as + 1]; i++) {
			hd_json_open_array(w, NULL);
			hd_json_put_i64(w, NULL, set->prices->at[i].zone);
			hd_json_put_f64(w, NULL, set->prices->at[i].at_s);
			hd_json_put_f64(w, NULL, set->prices->at[i].usd_h);
			hd_json_close(w);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_close(w);
}

static void put_events(struct hd_json_writer *w, const struct hd_sched_sim_setting *set)
{
	hd_json_open_object(w, NULL);
	hd_json_open_array(w, "events");
	for (size_t i = 0; i < set->events->n; i++) {
		hd_json_open_array(w, NULL);
		hd_json_put_f64(w, NULL, set->events->at[i].at_s);
		hd_json_put_i64(w, NULL, set->events->at[i].change);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_put_i64(w, "type", set->event_type);
	hd_json_close(w);
}

void schedsim_log_setting(const struct sched_sim *sim)
{
	const struct hd_sched_sim_setting *set = sim->set;
	struct hd_text *log = set->log;
	struct hd_json_writer w;

	if (!log)
		return;
	hd_json_writer_init(&w, log);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "log", HD_SCHED_LOG_VERSION);
	hd_json_put_text(&w, "fidelity", set->fidelity == HD_FIDELITY_GAVEL ? "gavel" : "exact");
	put_policy(&w, set->policy);
	put_fields(&w, log_setting_fields, set);
	put_types(&w, set);
	if (set->host)
		put_hosts(&w, sim);
	if (set->nentities)
		put_entities(&w, set);
	if (set->elastic)
		put_elastic(&w, set->elastic);
	if (set->estimate) {
		hd_json_open_object(&w, "estimate");
		put_fields(&w, log_estimate_fields, set->estimate);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_text_add(log, "\n");
	if (set->rates) {
		struct hd_rates rates = *set->rates;
		rates.pair = sim->packs ? rates.pair : NULL;
		hd_text_add(log, "{\"rates\":");
		hd_rates_print(&rates, log);
		hd_text_add(log, "}\n");
	}
	if (set->prices) {
		put_prices(&w, set);
		hd_text_add(log, "\n");
	}
	if (set->events) {
		put_events(&w, set);
		hd_text_add(log, "\n");
	}
}

void schedsim_log_job(const struct sched_sim *sim, uint64_t id, const struct hd_listed_job *job)
{
	struct hd_json_writer w;

	if (!sim->set->log)
		return;
	hd_json_writer_init(&w, sim->set->log);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "job", (int64_t)id);
	hd_json_put_text(&w, "kind", job->kind);
	hd_json_put_text(&w, "user", job->user);
	hd_json_put_i64(&w, "scale", job->scale);
	hd_json_put_f64(&w, "arrival_s", job->arrival_s);
	hd_json_put_f64(&w, "steps", job->steps);
	hd_json_put_f64(&w, "duration_s", job->duration_s);
	hd_json_put_f64(&w, "weight", job->weight);
	hd_json_put_f64(&w, "slo", job->slo);
	hd_json_put_f64(&w, "deadline_s", job->deadline_s);
	if (job->type)
		hd_json_put_text(&w, "type", job->type);
	hd_json_close(&w);
	hd_text_add(sim->set->log, "\n");
}

/* ---- what is decided ---- */

static void put_shape(struct hd_json_writer *w, const struct hd_sched_state *state,
	const struct hd_shape *shape, double x)
{
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "job", (int64_t)state->jobs[shape->member[0]].id);
	if (shape->nmembers == 2)
		hd_json_put_i64(w, "with", (int64_t)state->jobs[shape->member[1]].id);
	for (uint8_t k = 0; k < shape->nneeds; k++)
		hd_json_put_i64(w, state->types[shape->need[k].type].name, shape->need[k].n);
	hd_json_put_f64(w, "x", x);
	hd_json_close(w);
}

void schedsim_log_solve(const struct sched_sim *sim, const struct hd_sched_state *state,
	const struct hd_shares *shares)
{
	struct hd_json_writer w;

	if (!sim->set->log)
		return;
	hd_json_writer_init(&w, sim->set->log);
	hd_json_open_object(&w, NULL);
	hd_json_put_f64(&w, "at", sim->now_s);
	hd_json_open_object(&w, "solve");
	hd_json_put_i64(&w, "jobs", state->njobs);
	hd_json_open_array(&w, "devices");
	for (uint32_t t = 0; t < state->ntypes; t++)
		hd_json_put_i64(&w, NULL, state->types[t].n);
	hd_json_close(&w);
	hd_json_open_array(&w, "prices");
	for (uint32_t t = 0; t < state->ntypes; t++)
		hd_json_put_f64(&w, NULL, state->types[t].price_usd_h);
	hd_json_close(&w);
	hd_json_put_f64(&w, "objective", shares->objective);
	hd_json_put_bool(&w, "kept", shares->kept);
	hd_json_open_array(&w, "shares");
	for (uint32_t k = 0; k < shares->nshapes; k++)
		put_shape(&w, state, &shares->shape[k], shares->x[k]);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(sim->set->log, "\n");
}

void schedsim_log_end(const struct sched_sim *sim)
{
	const struct hd_sched_sim_result *r = sim->result;
	struct hd_json_writer w;

	if (!sim->set->log)
		return;
	hd_json_writer_init(&w, sim->set->log);
	hd_json_open_object(&w, NULL);
	hd_json_put_f64(&w, "at", sim->now_s);
	hd_json_open_object(&w, "end");
	hd_json_put_text(&w, "why", r->ended);
	hd_json_put_i64(&w, "over", (int64_t)r->nover);
	hd_json_put_f64(&w, "avg_jct_s", r->avg_jct_s);
	hd_json_put_f64(&w, "makespan_s", r->makespan_s);
	hd_json_put_f64(&w, "cost", r->cost_usd);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(sim->set->log, "\n");
}

/* ---- two logs ---- */

static const char decision[] = "{\"at\":";

/* The next line that is a decision; false: there is none. */
static bool next_decision(const char **at, const char *end, uint64_t *line, const char **text, size_t *len)
{
	while (*at < end) {
		const char *eol = memchr(*at, '\n', (size_t)(end - *at));
		*text = *at;
		*len = (size_t)((eol ? eol : end) - *at);
		*at = eol ? eol + 1 : end;
		++*line;
		if (*len >= sizeof decision - 1 && !memcmp(*text, decision, sizeof decision - 1))
			return true;
	}
	return false;
}

bool hd_sched_log_differ(const char *a, size_t alen, const char *b, size_t blen,
	struct hd_sched_log_difference *where)
{
	const char *at[2] = { a, b }, *end[2] = { a + alen, b + blen };
	uint64_t line[2] = { 0 };
	bool has[2];

	do {
		*where = (struct hd_sched_log_difference){ .text = { "", "" } };
		for (int k = 0; k < 2; k++) {
			has[k] = next_decision(&at[k], end[k], &line[k], &where->text[k], &where->len[k]);
			where->line[k] = has[k] ? line[k] : 0;
		}
		if (!has[0] && !has[1])
			return false;
	} while (has[0] && has[1] && where->len[0] == where->len[1] &&
		!memcmp(where->text[0], where->text[1], where->len[0]));
	return true;
}
