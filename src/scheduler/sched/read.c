/* State files: JSON in the format of the reference job sets, and of the reference hierarchical states. */
#include "scheduler/sched_state.h"

#include <math.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"

struct state_reader {
	struct hd_sched_state *state;
	struct hd_sched_type *types;
	struct hd_sched_job *jobs;
	struct hd_sched_pair *pairs;
	struct hd_sched_entity *entities;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static void *take(struct state_reader *r, size_t n, size_t size, enum hd_err *err)
{
	void *at = *err ? NULL : hd_arena_take(r->arena, n, size);

	if (!*err && !at)
		*err = hd_fail(r->diag, HD_E_NOMEM, "no memory for a state file");
	return at;
}

static enum hd_err bad(struct state_reader *r, const struct hd_json *at, const char *what)
{
	char path[200];

	return hd_fail(r->diag, HD_E_INPUT, "%s %s", hd_json_path(at, path, sizeof path), what);
}

/* ---- what may stand where ---- */

static const char *const of_state[] = { "jobs", "cluster", "pairs", "prices_per_hour", "entities",
	"entity_weights", "entity_parents", "entity_kind", "kind", NULL };
static const char *const of_bare_state[] = { "throughputs", "priority", "num_jobs", "cluster", "pairs",
	"prices_per_hour", "entities", "entity_weights",
	"entity_parents", "entity_kind", "kind", NULL };
static const char *const of_job[] = { "id", "job_type", "scale_factor", "priority", "steps_remaining",
	"time_since_start", "throughput", "deadline_s",
	"usd_per_step", "elastic", "goodput", NULL };
static const char *const of_elastic[] = { "min", "speedup", "virtual_nodes", "resize_s", "mixed", NULL };
static const char *const of_goodput[] = { "ac", "bc", "an", "bn", "ar", "br", "g", "var", "sqr", "batch",
	"most_batch", "most_local", "node", NULL };
static const char *const of_pair[] = { "a", "b", "throughput", NULL };

static enum hd_err number(struct state_reader *r, const struct hd_json *at, enum hd_sched_range range,
	double *out)
{
	char path[200];
	double v = 0;
	enum hd_err err = hd_json_as_f64(at, &v, r->diag);

	if (!err && !hd_sched_in(range, v))
		return hd_fail(r->diag, HD_E_INPUT, "%s is %g; it is %s", hd_json_path(at, path, sizeof path),
			v, hd_sched_range_words(range));
	if (!err)
		*out = v;
	return err;
}

/* A member that may be missing, or null: then `out` keeps its value. */
static enum hd_err maybe(struct state_reader *r, const struct hd_json *object, const char *key,
	enum hd_sched_range range, double *out)
{
	const struct hd_json *at = hd_json_find(object, key);

	return at && hd_json_kind(at) != HD_JSON_NULL ? number(r, at, range, out) : HD_OK;
}

static uint32_t type_of(const struct state_reader *r, const char *name)
{
	for (uint32_t j = 0; j < r->state->ntypes; j++)
		if (!strcmp(r->types[j].name, name))
			return j;
	return HD_SCHED_NONE;
}

static enum hd_err no_type(struct state_reader *r, const struct hd_json *at, const char *name)
{
	struct hd_near near = hd_near_to(name);
	char path[200];

	for (uint32_t j = 0; j < r->state->ntypes; j++)
		hd_near_offer(&near, r->types[j].name);
	return hd_fail(r->diag, HD_E_INPUT, "%s is of a type that \"cluster\" does not list%s%s%s",
		hd_json_path(at, path, sizeof path),
		near.best ? "; did you mean " : ": add it there, with 0 if there are none",
		near.best ? near.best : "", near.best ? "?" : "");
}

/* Of a table by name: a row that must be there, as the table is. */
static enum hd_err row_of(struct state_reader *r, const struct hd_json *table, const char *name,
	const char *what,
	enum hd_sched_range range, double *out)
{
	const struct hd_json *at = hd_json_find(table, name);
	char path[200];

	return at ? number(r, at, range, out) : hd_fail(r->diag, HD_E_INPUT,
		"%s lacks %s %.60s: give every one, or leave the table out",
		hd_json_path(table, path, sizeof path), what, name);
}

/* Of the same table: rows of what is not in `all` (names are its keys). */
static enum hd_err no_other(struct state_reader *r, const struct hd_json *table, const struct hd_json *all)
{
	char path[200];

	for (size_t k = 0; k < hd_json_count(table); k++) {
		struct hd_near near = hd_near_to(hd_json_key(table, k));
		if (hd_json_find(all, near.word))
			continue;
		for (size_t i = 0; i < hd_json_count(all); i++)
			hd_near_offer(&near, hd_json_key(all, i));
		return hd_fail(r->diag, HD_E_INPUT, "%s is of nothing that the state has%s%s%s",
			hd_json_path(hd_json_item(table, k), path, sizeof path),
			near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
	}
	return HD_OK;
}

static enum hd_err read_types(struct state_reader *r, const struct hd_json *root)
{
	const struct hd_json *cluster, *prices = hd_json_find(root, "prices_per_hour");
	enum hd_err err = hd_json_get(root, "cluster", HD_JSON_OBJECT, &cluster, r->diag);

	if (!err && (hd_json_count(cluster) == 0 || hd_json_count(cluster) > HD_SCHED_TYPES))
		err = bad(r, cluster, "has none or more than 64 types of devices");
	if (!err && prices)
		err = hd_json_as(prices, HD_JSON_OBJECT, r->diag);
	if (err)
		return err;
	r->state->ntypes = (uint32_t)hd_json_count(cluster);
	r->types = take(r, r->state->ntypes, sizeof *r->types, &err);
	for (uint32_t j = 0; !err && j < r->state->ntypes; j++) {
		int64_t n = 0;
		r->types[j].name = hd_json_key(cluster, j);
		err = hd_json_as_i64(hd_json_item(cluster, j), 0, HD_SCHED_DEVICES, &n, r->diag);
		r->types[j].n = (uint32_t)n;
		if (!err && prices)
			err = row_of(r, prices, r->types[j].name, "the price of", HD_SCHED_IN_MONEY,
				&r->types[j].price_usd_h);
	}
	return err || !prices ? err : no_other(r, prices, cluster);
}

static enum hd_err read_rates(struct state_reader *r, const struct hd_json *at, double *rate)
{
	enum hd_err err = hd_json_as(at, HD_JSON_OBJECT, r->diag);

	for (uint32_t k = 0; !err && k < hd_json_count(at); k++) {
		uint32_t j = type_of(r, hd_json_key(at, k));
		err = j == HD_SCHED_NONE ? no_type(r, hd_json_item(at, k), hd_json_key(at, k)) : number(r,
			hd_json_item(at, k), HD_SCHED_IN_RATE, &rate[j]);
	}
	return err;
}

static enum hd_err read_elastic(struct state_reader *r, const struct hd_json *at, struct hd_sched_job *job)
{
	const struct hd_json *curve;
	enum hd_err err = hd_json_only(at, of_elastic, r->diag);
	if (!err)
		err = hd_json_get(at, "speedup", HD_JSON_ARRAY, &curve, r->diag);
	struct hd_sched_elastic *e = take(r, 1, sizeof *e, &err);
	double *speedup = take(r, err ? 1 : hd_json_count(curve) + 1, sizeof *speedup, &err);
	int64_t min = 1, nvns = HD_SCHED_DEVICES;

	if (!err && (hd_json_count(curve) == 0 || hd_json_count(curve) > HD_SCHED_DEVICES))
		err = bad(r, curve, "is no list of speed-ups on 1, 2, ... devices");
	for (uint32_t k = 0; !err && k < hd_json_count(curve); k++)
		err = number(r, hd_json_item(curve, k), HD_SCHED_IN_SPEEDUP, &speedup[k + 1]);
	if (!err && hd_json_find(at, "min"))
		err = hd_json_get_i64(at, "min", 1, HD_SCHED_DEVICES, &min, r->diag);
	if (!err && hd_json_find(at, "virtual_nodes"))
		err = hd_json_get_i64(at, "virtual_nodes", 1, HD_SCHED_DEVICES, &nvns, r->diag);
	if (err)
		return err;
	*e = (struct hd_sched_elastic){ .min = (uint32_t)min, .max = (uint32_t)hd_json_count(curve),
		.nvns = (uint32_t)nvns, .speedup = speedup };
	if (hd_json_find(at, "mixed"))
		err = hd_json_get_bool(at, "mixed", &e->mixed, r->diag);
	job->elastic = e;
	return err ? err : maybe(r, at, "resize_s", HD_SCHED_IN_TIME, &e->resize_s);
}

static enum hd_err read_goodput(struct state_reader *r, const struct hd_json *at, struct hd_sched_job *job)
{
	enum hd_err err = hd_json_only(at, of_goodput, r->diag);
	struct hd_sched_goodput *m = take(r, 1, sizeof *m, &err);
	const struct { const char *key; size_t offset; double lo, hi; bool must; } numbers[] = {
		{ "ac", offsetof(struct hd_sched_goodput, ac), 0, 1e9, true }, { "bc", offsetof(struct hd_sched_goodput, bc), 1e-12, 1e9, true },
		{ "an", offsetof(struct hd_sched_goodput, an), 0, 1e9, false }, { "bn", offsetof(struct hd_sched_goodput, bn), 0, 1e9, false },
		{ "ar", offsetof(struct hd_sched_goodput, ar), 0, 1e9, false }, { "br", offsetof(struct hd_sched_goodput, br), 0, 1e9, false },
		{ "g", offsetof(struct hd_sched_goodput, g), 1, 10, false }, { "var", offsetof(struct hd_sched_goodput, var), 0, 1e300, true },
		{ "sqr", offsetof(struct hd_sched_goodput, sqr), 1e-300, 1e300, true },
	};
	const struct { const char *key; size_t offset; int64_t lo; bool must; } counts[] = {
		{ "batch", offsetof(struct hd_sched_goodput, batch), 1, true }, { "most_batch", offsetof(struct hd_sched_goodput, most_batch), 1, true },
		{ "most_local", offsetof(struct hd_sched_goodput, most_local), 1, true }, { "node", offsetof(struct hd_sched_goodput, node), 0, false },
	};

	if (err)
		return err;
	m->g = 1;
	for (size_t i = 0; !err && i < sizeof numbers / sizeof *numbers; i++) {
		double *to = (double *)((char *)m + numbers[i].offset);
		if (numbers[i].must || hd_json_find(at, numbers[i].key))
			err = hd_json_get_f64(at, numbers[i].key, to, r->diag);
		if (!err && !(*to >= numbers[i].lo && *to <= numbers[i].hi))
			err = bad(r, hd_json_find(at, numbers[i].key),
				"is out of range (docs/scheduling.md)");
	}
	for (size_t i = 0; !err && i < sizeof counts / sizeof *counts; i++) {
		int64_t n = 0;
		if (counts[i].must || hd_json_find(at, counts[i].key))
			err = hd_json_get_i64(at, counts[i].key, counts[i].lo, HD_SCHED_DEVICES, &n, r->diag);
		*(uint32_t *)((char *)m + counts[i].offset) = (uint32_t)n;
	}
	if (!err && m->most_batch < m->batch)
		err = bad(r, hd_json_find(at, "most_batch"), "is less than the first batch");
	job->goodput = m;
	return err;
}

static enum hd_err read_job(struct state_reader *r, const struct hd_json *at, struct hd_sched_job *job)
{
	const struct hd_json *rates = NULL, *kind = hd_json_find(at, "job_type"),
		*elastic = hd_json_find(at, "elastic");
	const struct hd_json *goodput = hd_json_find(at, "goodput");
	enum hd_err err = hd_json_only(at, of_job, r->diag);
	double *rate = take(r, r->state->ntypes, sizeof *rate, &err);
	const struct { const char *key; enum hd_sched_range range; double *to; } numbers[] = {
		{ "priority", HD_SCHED_IN_WEIGHT, &job->weight }, { "time_since_start", HD_SCHED_IN_TIME, &job->age_s },
		{ "deadline_s", HD_SCHED_IN_UNTIL, &job->deadline_s }, { "usd_per_step", HD_SCHED_IN_MONEY, &job->usd_per_step },
	};
	int64_t scale = 1;

	*job = (struct hd_sched_job){ .kind = "", .ikind = HD_SCHED_NONE, .weight = 1, .deadline_s = INFINITY,
		.entity = HD_SCHED_NONE, .rate = rate };
	if (!err)
		err = hd_json_get_u64(at, "id", UINT64_MAX, &job->id, r->diag);
	if (!err && kind)
		err = hd_json_as_text(kind, &job->kind, r->diag);
	if (!err && hd_json_find(at, "scale_factor"))
		err = hd_json_get_i64(at, "scale_factor", 1, HD_SCHED_DEVICES, &scale, r->diag);
	for (size_t i = 0; !err && i < sizeof numbers / sizeof *numbers; i++)
		err = maybe(r, at, numbers[i].key, numbers[i].range, numbers[i].to);
	if (!err)
		err = hd_json_get_f64(at, "steps_remaining", &job->steps_left, r->diag);
	if (!err)
		err = number(r, hd_json_find(at, "steps_remaining"), HD_SCHED_IN_STEPS, &job->steps_left);
	if (!err)
		err = hd_json_get(at, "throughput", HD_JSON_OBJECT, &rates, r->diag);
	job->scale = (uint32_t)scale;
	if (!err && elastic)
		err = read_elastic(r, elastic, job);
	if (!err && goodput)
		err = read_goodput(r, goodput, job);
	return err ? err : read_rates(r, rates, rate);
}

static enum hd_err read_jobs(struct state_reader *r, const struct hd_json *root)
{
	const struct hd_json *jobs;
	enum hd_err err = hd_json_get(root, "jobs", HD_JSON_ARRAY, &jobs, r->diag);

	if (!err && hd_json_count(jobs) > HD_SCHED_JOBS)
		err = bad(r, jobs, "has more jobs than a state may hold");
	if (err)
		return err;
	r->state->njobs = (uint32_t)hd_json_count(jobs);
	r->jobs = take(r, r->state->njobs, sizeof *r->jobs, &err);
	for (uint32_t i = 0; !err && i < r->state->njobs; i++)
		err = read_job(r, hd_json_item(jobs, i), &r->jobs[i]);
	return err;
}

/* The format of hierarchical_states.json: throughputs and priority by id, one step left and no age. */
static enum hd_err read_bare_jobs(struct state_reader *r, const struct hd_json *rates,
	const struct hd_json *root)
{
	const struct hd_json *weights = hd_json_find(root, "priority"),
		*count = hd_json_find(root, "num_jobs");
	int64_t n = 0;
	enum hd_err err = hd_json_as(rates, HD_JSON_OBJECT, r->diag);

	if (!err && hd_json_count(rates) > HD_SCHED_JOBS)
		err = bad(r, rates, "has more jobs than a state may hold");
	if (!err && count)
		err = hd_json_as_i64(count, (int64_t)hd_json_count(rates), (int64_t)hd_json_count(rates), &n,
			r->diag);
	if (!err && weights)
		err = hd_json_as(weights, HD_JSON_OBJECT, r->diag);
	if (!err && weights)
		err = no_other(r, weights, rates);
	if (err)
		return err;
	r->state->njobs = (uint32_t)hd_json_count(rates);
	r->jobs = take(r, r->state->njobs, sizeof *r->jobs, &err);
	for (uint32_t i = 0; !err && i < r->state->njobs; i++) {
		struct hd_sched_job *job = &r->jobs[i];
		double *rate = take(r, r->state->ntypes, sizeof *rate, &err);
		*job = (struct hd_sched_job){ .kind = "", .ikind = HD_SCHED_NONE, .scale = 1, .weight = 1,
			.steps_left = 1, .deadline_s = INFINITY,
			.entity = HD_SCHED_NONE, .rate = rate };
		if (!err && hd_num_u64(hd_json_key(rates, i), UINT64_MAX, &job->id, NULL))
			err = bad(r, hd_json_item(rates, i), "is named by no number");
		if (!err)
			err = read_rates(r, hd_json_item(rates, i), rate);
		if (!err && weights)
			err = row_of(r, weights, hd_json_key(rates, i), "the priority of job",
				HD_SCHED_IN_WEIGHT, &job->weight);
	}
	return err;
}

/* Files list jobs in order of id mostly: look there first. */
static uint32_t job_of(const struct state_reader *r, uint64_t id)
{
	if (id < r->state->njobs && r->jobs[id].id == id)
		return (uint32_t)id;
	for (uint32_t i = 0; i < r->state->njobs; i++)
		if (r->jobs[i].id == id)
			return i;
	return HD_SCHED_NONE;
}

static enum hd_err read_pair(struct state_reader *r, const struct hd_json *at, struct hd_sched_pair *pair)
{
	const struct hd_json *rates;
	uint64_t a = 0, b = 0;
	enum hd_err err = hd_json_only(at, of_pair, r->diag);

	if (!err)
		err = hd_json_get_u64(at, "a", UINT64_MAX, &a, r->diag);
	if (!err)
		err = hd_json_get_u64(at, "b", UINT64_MAX, &b, r->diag);
	if (!err)
		err = hd_json_get(at, "throughput", HD_JSON_OBJECT, &rates, r->diag);
	if (err)
		return err;
	pair->a = job_of(r, a);
	pair->b = job_of(r, b);
	if (pair->a == HD_SCHED_NONE || pair->b == HD_SCHED_NONE || a == b)
		return bad(r, at, "pairs a job that is not there, or with itself");
	double *first = take(r, r->state->ntypes, sizeof *first, &err),
		*second = take(r, r->state->ntypes, sizeof *second, &err);
	pair->rate[0] = first;
	pair->rate[1] = second;
	for (uint32_t k = 0; !err && k < hd_json_count(rates); k++) {
		const struct hd_json *two = hd_json_item(rates, k);
		uint32_t j = type_of(r, hd_json_key(rates, k));
		if (j == HD_SCHED_NONE)
			return no_type(r, two, hd_json_key(rates, k));
		if (hd_json_kind(two) != HD_JSON_ARRAY || hd_json_count(two) != 2)
			return bad(r, two, "is not the speeds of two jobs");
		err = number(r, hd_json_item(two, 0), HD_SCHED_IN_RATE, &first[j]);
		if (!err)
			err = number(r, hd_json_item(two, 1), HD_SCHED_IN_RATE, &second[j]);
	}
	if (!err && r->jobs[pair->a].scale != r->jobs[pair->b].scale)
		err = bad(r, at, "pairs jobs of different scale");
	return err;
}

static enum hd_err read_pairs(struct state_reader *r, const struct hd_json *root)
{
	const struct hd_json *pairs = hd_json_find(root, "pairs");
	enum hd_err err = pairs ? hd_json_as(pairs, HD_JSON_ARRAY, r->diag) : HD_OK;

	if (err || !pairs)
		return err;
	r->state->npairs = (uint32_t)hd_json_count(pairs);
	r->pairs = take(r, r->state->npairs, sizeof *r->pairs, &err);
	for (uint32_t k = 0; !err && k < r->state->npairs; k++)
		err = read_pair(r, hd_json_item(pairs, k), &r->pairs[k]);
	return err;
}

static enum hd_err read_members(struct state_reader *r, const struct hd_json *ids, uint32_t entity)
{
	enum hd_err err = hd_json_as(ids, HD_JSON_ARRAY, r->diag);

	for (uint32_t k = 0; !err && k < hd_json_count(ids); k++) {
		uint64_t id = 0;
		err = hd_json_as_u64(hd_json_item(ids, k), UINT64_MAX, &id, r->diag);
		uint32_t i = err ? 0 : job_of(r, id);
		if (!err && (i == HD_SCHED_NONE || r->jobs[i].entity != HD_SCHED_NONE))
			err = bad(r, hd_json_item(ids, k), i == HD_SCHED_NONE ? "is no job" :
				"belongs to another entity already");
		if (!err)
			r->jobs[i].entity = entity;
	}
	return err;
}

static enum hd_err read_entity_kind(struct state_reader *r, const struct hd_json *root,
	enum hd_entity_kind *kind)
{
	const struct hd_json *at = hd_json_find(root, "entity_kind");
	const char *word = "fairness";
	enum hd_err err = HD_OK;

	at = at ? at : hd_json_find(root, "kind");
	if (at)
		err = hd_json_as_text(at, &word, r->diag);
	if (!err && strcmp(word, "fairness") != 0 && strcmp(word, "fifo") != 0)
		err = bad(r, at, "is neither fairness nor fifo");
	*kind = !err && !strcmp(word, "fifo") ? HD_ENTITY_FIFO : HD_ENTITY_FAIRNESS;
	return err;
}

/* {"a": "b"}: a lies within b. Whether that goes round hd_sched_order finds. */
static enum hd_err read_parents(struct state_reader *r, const struct hd_json *parents)
{
	const uint32_t n = r->state->nentities;
	enum hd_err err = HD_OK;

	for (size_t k = 0; !err && k < hd_json_count(parents); k++) {
		const struct hd_json *at = hd_json_item(parents, k);
		const char *name = "";
		uint32_t of = 0, in = 0;
		if ((err = hd_json_as_text(at, &name, r->diag)))
			break;
		while (strcmp(r->entities[of].name, hd_json_key(parents, k)) != 0)
			of++;                     /* one of them is: no_other() */
		while (in < n && strcmp(r->entities[in].name, name) != 0)
			in++;
		if (in == n)
			return bad(r, at, "is no entity");
		r->entities[of].within = in + 1;
	}
	return err;
}

static enum hd_err read_entities(struct state_reader *r, const struct hd_json *root)
{
	const struct hd_json *entities = hd_json_find(root, "entities"),
		*weights = hd_json_find(root, "entity_weights"),
		*parents = hd_json_find(root, "entity_parents");
	enum hd_entity_kind kind = HD_ENTITY_FAIRNESS;
	enum hd_err err = entities ? hd_json_as(entities, HD_JSON_OBJECT, r->diag) : HD_OK;

	if (!err && weights)
		err = hd_json_as(weights, HD_JSON_OBJECT, r->diag);
	if (!err && parents)
		err = hd_json_as(parents, HD_JSON_OBJECT, r->diag);
	if (!err && !entities && (weights || parents || hd_json_find(root, "entity_kind")))
		err = hd_json_get(root, "entities", HD_JSON_OBJECT, &entities, r->diag);
	if (!err && weights)
		err = no_other(r, weights, entities);
	if (!err && parents)
		err = no_other(r, parents, entities);
	if (err || !entities)
		return err;
	if (hd_json_count(entities) > HD_SCHED_ENTITIES)
		return bad(r, entities, "has more entities than a state may hold");
	err = read_entity_kind(r, root, &kind);
	r->state->nentities = (uint32_t)hd_json_count(entities);
	r->entities = take(r, r->state->nentities, sizeof *r->entities, &err);
	for (uint32_t k = 0; !err && k < r->state->nentities; k++) {
		r->entities[k] = (struct hd_sched_entity){ .name = hd_json_key(entities, k), .weight = 1,
			.kind = kind };
		if (weights)
			err = row_of(r, weights, r->entities[k].name, "the weight of", HD_SCHED_IN_WEIGHT,
				&r->entities[k].weight);
		if (!err)
			err = read_members(r, hd_json_item(entities, k), k);
	}
	return err || !parents ? err : read_parents(r, parents);
}

static enum hd_err find_set(const struct hd_json *file, const char *set, const struct hd_json **root,
	struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(set ? set : "");
	char name[100];

	*root = file;
	hd_json_path(file, name, sizeof name);
	/* a state has lists; whatever holds states has none */
	for (size_t i = 0; !set && i < hd_json_count(file); i++)
		if (hd_json_find(file, "cluster") || hd_json_kind(file) != HD_JSON_OBJECT ||
			hd_json_kind(hd_json_item(file, i)) != HD_JSON_OBJECT)
			return HD_OK;
	if (!set && hd_json_count(file) == 1) {
		*root = hd_json_item(file, 0);
		return HD_OK;
	}
	if (set)
		*root = hd_json_find(file, set);
	if (set && *root)
		return HD_OK;
	for (size_t i = 0; i < hd_json_count(file); i++)
		hd_near_offer(&near, hd_json_key(file, i));
	if (!set)
		return hd_fail(diag, HD_E_INPUT,
			"%s holds %zu states: choose one by its name (the first is %s)", name,
			hd_json_count(file),
			hd_json_count(file) ? hd_json_key(file, 0) : "missing");
	return hd_fail(diag, HD_E_INPUT, "%s has no state \"%.60s\"%s%s%s", name, set,
		near.best ? "; did you mean " : "", near.best ? near.best : "",
		near.best ? "?" : "");
}

enum hd_err hd_sched_read(struct hd_sched_state *state, const struct hd_json *file, const char *set,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct state_reader r = { .state = state, .arena = arena, .diag = diag };
	const struct hd_json *root = NULL, *bare;
	struct hd_diag why = { "" };
	char path[200];
	enum hd_err err = find_set(file, set, &root, diag);

	*state = (struct hd_sched_state){ 0 };
	if (err)
		return err;
	bare = hd_json_find(root, "throughputs");
	err = hd_json_only(root, bare ? of_bare_state : of_state, diag);
	if (!err)
		err = read_types(&r, root);
	if (err)
		return err;
	err = bare ? read_bare_jobs(&r, bare, root) : read_jobs(&r, root);
	if (!err)
		err = read_pairs(&r, root);
	if (!err)
		err = read_entities(&r, root);
	if (err)
		return err;
	state->types = r.types;
	state->jobs = r.jobs;
	state->pairs = r.pairs;
	state->entities = r.entities;
	err = hd_sched_order(state, arena, &why);
	return err ? hd_fail(diag, err == HD_E_INVAL ? HD_E_INPUT : err, "%s: %s",
		hd_json_path(root, path, sizeof path), why.text) : HD_OK;
}
