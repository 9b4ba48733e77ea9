#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "clustersim/schedsim/log.h"

static const char first_line[] = "{\"log\":", decision[] = "{\"at\":";
static const double LEAST_ROUND_S = 1e-3;         /* a shorter one never ends */

struct log_reader {
	struct hd_sched_log *log;
	const char *name;
	struct hd_arena *arena;
	struct hd_diag *diag;
	size_t jobs_cap;
	uint64_t line;
	struct hd_sched_type *types;
	double *speed;
	uint64_t *ids;                            /* of the jobs, as their lines stand */
	bool has_setting;
};

static bool begins(const char *text, size_t len, const char *with) { return len >= strlen(with) &&
	!memcmp(text, with, strlen(with)); }

bool hd_sched_log_is(const uint8_t *bytes, size_t len) { return begins((const char *)bytes, len, first_line);
	}

static enum hd_err get_fields(const struct hd_json *from, const struct log_field *field, void *to,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (; field->key && !err; field++) {
		void *at = (char *)to + field->at;
		uint64_t u = 0;
		int64_t i = 0;
		if (field->later && !hd_json_find(from, field->key))
			continue;
		switch (field->kind) {
		case LOG_F64:  err = hd_json_get_f64(from, field->key, at, diag); break;
		case LOG_BOOL: err = hd_json_get_bool(from, field->key, at, diag); break;
		case LOG_U64:  err = hd_json_get_u64(from, field->key, UINT64_MAX, at, diag); break;
		case LOG_U32:
			if (!(err = hd_json_get_u64(from, field->key, UINT32_MAX, &u, diag)))
				*(uint32_t *)at = (uint32_t)u;
			break;
		case LOG_INT:
			if (!(err = hd_json_get_i64(from, field->key, 0, 1 << 20, &i, diag)))
				*(int *)at = (int)i;
			break;
		}
		if (!err && field->kind == LOG_F64 && !(*(double *)at >= -1 && isfinite(*(double *)at)))
			err = hd_fail(diag, HD_E_INPUT, "%s is %g", field->key, *(double *)at);
	}
	return err;
}

/* An array of the object, with `n` items at most. */
static enum hd_err list_of(struct log_reader *r, const struct hd_json *from, const char *key, uint64_t most,
	const struct hd_json **list)
{
	enum hd_err err = hd_json_get(from, key, HD_JSON_ARRAY, list, r->diag);

	if (!err && hd_json_count(*list) > most)
		err = hd_fail(r->diag, HD_E_INPUT, "%zu %s; at most %" PRIu64, hd_json_count(*list), key,
			most);
	return err;
}

static enum hd_err room(struct log_reader *r, void *at, size_t n, size_t size)
{
	void **to = at;

	*to = hd_arena_take(r->arena, n + 1, size);
	return *to ? HD_OK : hd_fail(r->diag, HD_E_NOMEM, "no memory for %zu entries", n);
}

/* ---- the first line ---- */

static enum hd_err read_policy(struct log_reader *r, const struct hd_json *line)
{
	struct hd_policy_setting *p = &r->log->policy, named = { 0 };
	const struct hd_json *policy;
	const char *name, *variant;
	char both[160];
	bool gavel;
	enum hd_err err = hd_json_get(line, "policy", HD_JSON_OBJECT, &policy, r->diag);

	if (!err)
		err = get_fields(policy, log_policy_fields, p, r->diag);
	if (err || (err = hd_json_get_text(policy, "name", &name, r->diag)) ||
		(err = hd_json_get_text(policy, "variant", &variant, r->diag))
		|| (err = hd_json_get_bool(policy, "gavel", &gavel, r->diag)))
		return err;
	(void)snprintf(both, sizeof both, "%.64s-%.64s", name, variant);
	if ((err = hd_policy_parse(&named, both, r->diag)))
		return HD_E_INPUT;
	p->policy = named.policy;
	p->variant = named.variant;
	p->fidelity = gavel ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	return hd_json_find(policy, "reference_type") ? hd_json_get_text(policy, "reference_type",
		&p->reference_type, r->diag) : HD_OK;
}

static enum hd_err read_types(struct log_reader *r, const struct hd_json *line)
{
	struct hd_sched_sim_setting *set = &r->log->setting;
	const struct hd_json *list;
	enum hd_err err = list_of(r, line, "types", HD_SCHED_TYPES, &list);
	size_t n = err ? 0 : hd_json_count(list);

	if (!err && !n)
		err = hd_fail(r->diag, HD_E_INPUT, "there is no type of devices");
	if (!err)
		err = room(r, &r->types, n, sizeof *r->types);
	if (!err)
		err = room(r, &r->speed, n, sizeof *r->speed);
	for (size_t t = 0; t < n && !err; t++) {
		const struct hd_json *item = hd_json_item(list, t);
		struct hd_sched_type *type = &r->types[t];
		uint64_t devices = 0;
		if ((err = hd_json_get_text(item, "name", &type->name, r->diag)) ||
			(err = hd_json_get_u64(item, "n", HD_SCHED_DEVICES, &devices, r->diag))
			|| (err = hd_json_get_f64(item, "price", &type->price_usd_h, r->diag))
			|| (err = hd_json_get_f64(item, "revoked_per_s", &type->revoked_per_s, r->diag))
			|| (err = hd_json_get_f64(item, "speed", &r->speed[t], r->diag)))
			break;
		type->n = (uint32_t)devices;
		if (!(type->price_usd_h >= 0) || !(type->revoked_per_s >= 0) || !(r->speed[t] >= 0) ||
			!isfinite(type->price_usd_h + type->revoked_per_s
			+ r->speed[t]) || (t && strcmp(r->types[t - 1].name, type->name) >= 0))
			err = hd_fail(r->diag, HD_E_INPUT,
				"type %.60s: types are sorted by name; price, revocations and speed are 0 "
				"or more", type->name);
	}
	set->types = r->types;
	set->ntypes = (uint32_t)n;
	set->speed = r->speed;
	return err;
}

static enum hd_err read_hosts(struct log_reader *r, const struct hd_json *line)
{
	const struct hd_json *list;
	uint64_t ndevices = 0, host = 0;
	uint32_t *hosts;
	enum hd_err err;

	if (!hd_json_find(line, "hosts"))
		return HD_OK;
	for (uint32_t t = 0; t < r->log->setting.ntypes; t++)
		ndevices += r->types[t].n;
	if ((err = list_of(r, line, "hosts", ndevices, &list)))
		return err;
	if (hd_json_count(list) != ndevices)
		return hd_fail(r->diag, HD_E_INPUT, "%zu hosts of %" PRIu64 " devices", hd_json_count(list),
			ndevices);
	err = room(r, &hosts, (size_t)ndevices, sizeof *hosts);
	for (size_t d = 0; d < ndevices && !err; d++)
		if (!(err = hd_json_as_u64(hd_json_item(list, d), UINT32_MAX - 1, &host, r->diag)))
			hosts[d] = (uint32_t)host;
	r->log->setting.host = hosts;
	return err;
}

static enum hd_err read_entities(struct log_reader *r, const struct hd_json *line)
{
	const struct hd_json *list;
	struct hd_sched_entity *e;
	enum hd_err err;
	size_t n;

	if (!hd_json_find(line, "entities"))
		return HD_OK;
	if ((err = list_of(r, line, "entities", HD_SCHED_ENTITIES, &list)) ||
		(err = room(r, &e, n = hd_json_count(list), sizeof *e)))
		return err;
	for (size_t i = 0; i < n && !err; i++) {
		const struct hd_json *item = hd_json_item(list, i);
		bool fifo;
		if ((err = hd_json_get_text(item, "name", &e[i].name, r->diag)) ||
			(err = hd_json_get_f64(item, "weight", &e[i].weight, r->diag))
			|| (err = hd_json_get_bool(item, "fifo", &fifo, r->diag)))
			break;
		e[i].kind = fifo ? HD_ENTITY_FIFO : HD_ENTITY_FAIRNESS;
		if (!(e[i].weight > 0) || !isfinite(e[i].weight))
			err = hd_fail(r->diag, HD_E_INPUT, "entity %.60s: weight %g: above 0", e[i].name,
				e[i].weight);
	}
	r->log->setting.entities = e;
	r->log->setting.nentities = (uint32_t)n;
	return err;
}

static enum hd_err read_elastic(struct log_reader *r, const struct hd_json *line)
{
	struct hd_sched_elastic *to = &r->log->elastic;
	const struct hd_json *from = hd_json_find(line, "elastic"), *list;
	double *speedup;
	enum hd_err err;

	if (!from)
		return HD_OK;
	if ((err = get_fields(from, log_elastic_fields, to, r->diag)) ||
		(err = list_of(r, from, "speedup", HD_JOB_SCALE, &list)))
		return err;
	if (!to->min || to->max < to->min || hd_json_count(list) != (size_t)to->max + 1)
		return hd_fail(r->diag, HD_E_INPUT,
			"elastic: min %u, max %u, %zu speedups: 1 <= min <= max, and one for 0 to max",
			to->min, to->max,
			hd_json_count(list));
	err = room(r, &speedup, (size_t)to->max + 1, sizeof *speedup);
	for (size_t k = 0; k <= to->max && !err; k++)
		if (!(err = hd_json_as_f64(hd_json_item(list, k), &speedup[k], r->diag)) &&
			!(speedup[k] >= 0 && isfinite(speedup[k])))
			err = hd_fail(r->diag, HD_E_INPUT, "elastic: the speedup of %zu devices is %g", k,
				speedup[k]);
	to->speedup = speedup;
	r->log->setting.elastic = to;
	return err;
}

static enum hd_err read_estimate(struct log_reader *r, const struct hd_json *line)
{
	const struct hd_json *from = hd_json_find(line, "estimate");

	if (!from)
		return HD_OK;
	r->log->setting.estimate = &r->log->estimate;
	return get_fields(from, log_estimate_fields, &r->log->estimate, r->diag);
}

static enum hd_err read_setting(struct log_reader *r, const struct hd_json *line)
{
	struct hd_sched_sim_setting *set = &r->log->setting;
	const char *fidelity;
	int64_t version;
	enum hd_err err = hd_json_get_i64(line, "log", 0, INT32_MAX, &version, r->diag);

	if (!err && version != HD_SCHED_LOG_VERSION)
		return hd_fail(r->diag, HD_E_INPUT,
			"a log of version %" PRId64 "; this program reads version %d", version,
			HD_SCHED_LOG_VERSION);
	if (!err)
		err = get_fields(line, log_setting_fields, set, r->diag);
	if (err || (err = hd_json_get_text(line, "fidelity", &fidelity, r->diag)) ||
		(err = read_policy(r, line)) || (err = read_types(r, line)) || (err = read_hosts(r, line)) ||
		(err = read_entities(r, line)) || (err = read_elastic(r, line)) ||
		(err = read_estimate(r, line)))
		return err;
	if (set->round_s > 0 && set->round_s < LEAST_ROUND_S)
		return hd_fail(r->diag, HD_E_INPUT, "a round of %g s: %g at least", set->round_s,
			LEAST_ROUND_S);
	set->fidelity = !strcmp(fidelity, "gavel") ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	set->policy = &r->log->policy;
	r->has_setting = true;
	return HD_OK;
}

/* ---- the other givens ---- */

static enum hd_err read_rates(struct log_reader *r, const struct hd_json *line)
{
	struct hd_sched_sim_setting *set = &r->log->setting;
	const struct hd_json *rates = hd_json_find(line, "rates");
	enum hd_err err = hd_rates_read(&r->log->rates, rates, r->arena, r->diag);

	if (err)
		return err;
	for (uint32_t t = 0; t < set->ntypes; t++)
		if (r->log->rates.ntypes != set->ntypes || strcmp(r->log->rates.type[t],
			set->types[t].name) != 0)
			return hd_fail(r->diag, HD_E_INPUT, "the rates are of other types than the setting");
	set->rates = &r->log->rates;
	return HD_OK;
}

static enum hd_err read_price(struct log_reader *r, const struct hd_json *line, struct hd_price *to)
{
	uint64_t zone = 0;
	enum hd_err err = hd_json_as(line, HD_JSON_ARRAY, r->diag);

	if (!err && hd_json_count(line) != 3)
		err = hd_fail(r->diag, HD_E_INPUT, "a price is [zone, time, price]");
	if (err || (err = hd_json_as_u64(hd_json_item(line, 0), HD_PRICE_NAMES, &zone, r->diag)) ||
		(err = hd_json_as_f64(hd_json_item(line, 1), &to->at_s, r->diag)) ||
		(err = hd_json_as_f64(hd_json_item(line, 2), &to->usd_h, r->diag)))
		return err;
	to->zone = (uint32_t)zone;
	return isfinite(to->at_s) && to->usd_h > 0 && isfinite(to->usd_h) ? HD_OK : hd_fail(r->diag,
		HD_E_INPUT, "price %g at %g s", to->usd_h, to->at_s);
}

static enum hd_err read_prices(struct log_reader *r, const struct hd_json *line)
{
	struct hd_sched_sim_setting *set = &r->log->setting;
	struct hd_prices *p = &r->log->prices;
	const struct hd_json *lists;
	uint32_t *as;
	size_t n = 0;
	enum hd_err err = set->prices ? hd_fail(r->diag, HD_E_INPUT, "a second list of prices") : list_of(r,
		line, "prices", set->ntypes, &lists);

	if (!err && hd_json_count(lists) != set->ntypes)
		err = hd_fail(r->diag, HD_E_INPUT, "prices of %zu types; there are %u", hd_json_count(lists),
			set->ntypes);
	for (uint32_t t = 0; t < set->ntypes && !err; t++) {
		err = hd_json_as(hd_json_item(lists, t), HD_JSON_ARRAY, r->diag);
		n += err ? 0 : hd_json_count(hd_json_item(lists, t));
	}
	if (err || (err = room(r, &as, set->ntypes, sizeof *as)) ||
		(err = room(r, &p->first, (size_t)set->ntypes + 1, sizeof *p->first))
		|| (err = room(r, &p->at, n, sizeof *p->at)))
		return err;
	for (uint32_t t = 0; t < set->ntypes && !err; t++) {
		const struct hd_json *list = hd_json_item(lists, t);
		as[t] = hd_json_count(list) ? t : HD_PRICE_NONE;
		for (size_t i = 0; i < hd_json_count(list) && !err; i++) {
			struct hd_price *to = &p->at[p->n++];
			to->type = t;
			if (!(err = read_price(r, hd_json_item(list, i), to)) && i &&
				(to->zone < to[-1].zone || (to->zone == to[-1].zone
				&& to->at_s < to[-1].at_s)))
				err = hd_fail(r->diag, HD_E_INPUT,
					"prices of a type are sorted by zone, then by time");
		}
		p->first[t + 1] = p->n;
	}
	p->ntypes = set->ntypes;
	set->prices = p;
	set->price_type = as;
	return err;
}

static enum hd_err read_events(struct log_reader *r, const struct hd_json *line)
{
	struct hd_machine_events *e = &r->log->events;
	const struct hd_json *list;
	uint64_t type = 0;
	int64_t change = 0, there = 0;
	enum hd_err err = r->log->setting.events ? hd_fail(r->diag, HD_E_INPUT, "a second list of events") :
		list_of(r, line, "events", HD_MACHINES, &list);

	if (err || (err = hd_json_get_u64(line, "type", r->log->setting.ntypes - 1, &type, r->diag)) ||
		(err = room(r, &e->at, hd_json_count(list),
		sizeof *e->at)))
		return err;
	for (size_t i = 0; i < hd_json_count(list) && !err; i++) {
		const struct hd_json *item = hd_json_item(list, i);
		struct hd_machine_event *to = &e->at[i];
		if (hd_json_count(item) != 2)
			return hd_fail(r->diag, HD_E_INPUT, "an event is [time, change]");
		if ((err = hd_json_as_f64(hd_json_item(item, 0), &to->at_s, r->diag)) ||
			(err = hd_json_as_i64(hd_json_item(item, 1), -HD_MACHINES, HD_MACHINES,
			&change, r->diag)))
			return err;
		to->change = (int32_t)change;
		to->name = "";
		there += change;
		if (!isfinite(to->at_s) || (i && to->at_s < to[-1].at_s) || there < 0 ||
			there > r->types[type].n)
			err = hd_fail(r->diag, HD_E_INPUT,
				"event %zu at %g s makes %" PRId64 " machines of %u: sorted by time, from 0 "
				"to what there is", i, to->at_s, there,
				r->types[type].n);
	}
	e->n = hd_json_count(list);
	r->log->setting.events = e;
	r->log->setting.event_type = (uint32_t)type;
	return err;
}

static enum hd_err grow_jobs(struct log_reader *r)
{
	struct hd_job_list *list = &r->log->list;
	struct hd_listed_job *jobs;
	uint64_t *ids;
	enum hd_err err;

	if (list->n < r->jobs_cap)
		return HD_OK;
	r->jobs_cap = r->jobs_cap ? 2 * r->jobs_cap : 256;
	if (r->jobs_cap > HD_JOB_LIST)
		return hd_fail(r->diag, HD_E_INPUT, "more than %d jobs in one log", HD_JOB_LIST);
	if ((err = room(r, &jobs, r->jobs_cap, sizeof *jobs)) ||
		(err = room(r, &ids, r->jobs_cap, sizeof *ids)))
		return err;
	if (list->n) {
		memcpy(jobs, list->at, list->n * sizeof *jobs);
		memcpy(ids, r->ids, list->n * sizeof *ids);
	}
	list->at = jobs;
	r->ids = ids;
	return HD_OK;
}

static enum hd_err read_job(struct log_reader *r, const struct hd_json *line)
{
	struct hd_listed_job job = { .command = "", .folder = "", .steps_arg = "", .name = "" };
	struct { const char *key; double *to, least; } numbers[] = {
		{ "arrival_s", &job.arrival_s, 0 }, { "steps", &job.steps, 0 }, { "duration_s", &job.duration_s, 0 }, { "weight", &job.weight, 0 },
		{ "slo", &job.slo, 0 }, { "deadline_s", &job.deadline_s, -INFINITY },
	};
	uint64_t id = 0, scale = 0;
	enum hd_err err = grow_jobs(r);

	if (err || (err = hd_json_get_u64(line, "job", HD_JOB_LIST, &id, r->diag)) ||
		(err = hd_json_get_text(line, "kind", &job.kind, r->diag)) ||
		(err = hd_json_get_text(line, "user", &job.user, r->diag)) ||
		(err = hd_json_get_u64(line, "scale", HD_JOB_SCALE, &scale, r->diag)))
		return err;
	if (hd_json_find(line, "type"))
		err = hd_json_get_text(line, "type", &job.type, r->diag);
	for (size_t k = 0; k < sizeof numbers / sizeof *numbers && !err; k++)
		if (!(err = hd_json_get_f64(line, numbers[k].key, numbers[k].to, r->diag)) &&
			!(*numbers[k].to >= numbers[k].least))
			err = hd_fail(r->diag, HD_E_INPUT, "job %" PRIu64 ": %s is %g", id, numbers[k].key,
				*numbers[k].to);
	if (!err && (!scale || !(job.weight > 0) || !isfinite(job.weight + job.steps + job.arrival_s +
		job.slo + job.duration_s)))
		err = hd_fail(r->diag, HD_E_INPUT,
			"job %" PRIu64 ": scale and weight are above 0, and all but the deadline is finite",
			id);
	job.scale = (uint32_t)scale;
	r->ids[r->log->list.n] = id;
	r->log->list.at[r->log->list.n++] = job;
	return err;
}

/* ---- lines ---- */

static const struct { const char *begins; enum hd_err (*read)(struct log_reader *, const struct hd_json *);
	} givens[] = {
	{ "{\"job\":", read_job }, { "{\"rates\":", read_rates }, { "{\"prices\":", read_prices }, { "{\"events\":", read_events },
	{ first_line, read_setting },
};

static enum hd_err read_line(struct log_reader *r, const char *text, size_t len)
{
	const struct hd_json *json;
	char where[HD_RATES_NAME];

	if (begins(text, len, decision)) {
		r->log->ndecisions++;
		return HD_OK;
	}
	(void)snprintf(where, sizeof where, "%.200s:%" PRIu64, r->name, r->line);
	for (size_t k = 0; k < sizeof givens / sizeof *givens; k++) {
		struct hd_diag why = { "" }, *diag = r->diag;
		if (!begins(text, len, givens[k].begins))
			continue;
		if ((givens[k].read == read_setting) == r->has_setting)
			return hd_fail(diag, HD_E_INPUT, "%s: %s", where,
				r->has_setting ? "a second setting" :
				"the first line of a log is its setting");
		enum hd_err err = hd_json_parse(r->arena, where, text, len, &json, diag);
		if (err)
			return err;
		r->diag = &why;
		err = givens[k].read(r, json);
		r->diag = diag;
		if (err)
			return hd_fail(diag, err, "%s%s%s",
				begins(why.text, strlen(why.text), where) ? "" : where,
				begins(why.text, strlen(why.text), where) ? "" : ": ", why.text);
		return HD_OK;
	}
	return hd_fail(r->diag, HD_E_INPUT, "%s: \"%.*s\" begins no line of a log", where,
		(int)(len < 40 ? len : 40), text);
}

/* Jobs to their ids, which are 0 to n - 1. */
static enum hd_err sort_jobs(struct log_reader *r)
{
	struct hd_job_list *list = &r->log->list;
	struct hd_listed_job *sorted;
	bool *has;
	enum hd_err err = room(r, &sorted, list->n, sizeof *sorted);

	if (!err)
		err = room(r, &has, list->n, sizeof *has);
	for (size_t i = 0; i < list->n && !err; i++) {
		uint64_t id = r->ids[i];
		if (id >= list->n || has[id])
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: job %" PRIu64 " of %zu: every number below the count once", r->name, id,
				list->n);
		has[id] = true;
		sorted[id] = list->at[i];
	}
	if (!err)
		list->at = sorted;
	return err;
}

static bool next_job(void *source, struct hd_listed_job *job)
{
	struct hd_sched_log *log = source;

	if (log->at == log->list.n)
		return false;
	*job = log->list.at[log->at++];
	return true;
}

enum hd_err hd_sched_log_read(struct hd_sched_log *log, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct log_reader r = { .log = log, .name = name, .arena = arena, .diag = diag };
	const char *at = (const char *)bytes, *end = at + len;
	enum hd_err err = HD_OK;

	*log = (struct hd_sched_log){ 0 };
	while (at < end && !err) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((eol ? eol : end) - at);
		r.line++;
		if (!r.has_setting && !begins(at, n, first_line))
			return hd_fail(diag, HD_E_INPUT,
				"%s:%" PRIu64 ": the first line of a log is its setting ({\"log\":...)", name,
				r.line);
		err = read_line(&r, at, n);
		at = eol ? eol + 1 : end;
	}
	if (!err && !r.has_setting)
		return hd_fail(diag, HD_E_INPUT, "%s: the log is empty", name);
	if (!err)
		err = sort_jobs(&r);
	log->setting.next = next_job;
	log->setting.source = log;
	return err;
}
