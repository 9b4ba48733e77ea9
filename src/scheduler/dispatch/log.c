#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "scheduler/dispatch/int.h"

/* The log: what came and what was decided, a line a call; and the same calls made again from it. */

/* ---- records ---- */

static void put_terms(struct hd_json_writer *w, const struct hd_dispatch_job *r)
{
	const struct hd_job_terms *t = &r->terms;
	char after[HD_TERMS_TEXT];

	hd_json_put_bool(w, "timeout", r->timeout);
	hd_json_put_f64(w, "ran_s", r->ran_s);
	hd_json_put_f64(w, "from_s", r->from_s);
	hd_json_put_bool(w, "held", t->held);
	hd_json_put_f64(w, "limit_s", t->limit_s);
	hd_json_put_f64(w, "expect_s", t->expect_s);
	hd_json_put_i64(w, "array", (int64_t)t->array);
	hd_json_put_i64(w, "index", t->index);
	hd_json_put_i64(w, "at_once", t->at_once);
	hd_terms_put_after(t, after);
	hd_json_put_text(w, "after", after);
}

static void put_entity(struct hd_json_writer *w, const char *key, const struct hd_dispatch_entity *e)
{
	hd_json_open_object(w, key);
	hd_json_put_text(w, "name", e->name);
	hd_json_put_f64(w, "weight", e->weight);
	hd_json_put_bool(w, "fifo", e->fifo);
	hd_json_close(w);
}

/* Only of a job that has them: logs of schedulers without users are as they were. */
static void put_limits(struct hd_json_writer *w, const struct hd_dispatch_job *r)
{
	if (r->entity.name[0])
		put_entity(w, "entity", &r->entity);
	if (r->nwithin)
		hd_json_open_array(w, "within");
	for (uint32_t i = 0; i < r->nwithin; i++)
		put_entity(w, NULL, &r->within[i]);
	if (r->nwithin)
		hd_json_close(w);
	if (r->nlimits)
		hd_json_open_array(w, "limits");
	for (uint32_t i = 0; i < r->nlimits; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", r->limit[i].name);
		hd_json_put_i64(w, "devices", r->limit[i].devices);
		hd_json_put_i64(w, "running", r->limit[i].running);
		hd_json_close(w);
	}
	if (r->nlimits)
		hd_json_close(w);
}

static void put_row(struct hd_json_writer *w, const char *key, const struct hd_dispatch_job *r,
	uint32_t ntypes)
{
	hd_json_open_object(w, key);
	hd_json_put_i64(w, "id", (int64_t)r->id);
	hd_json_put_i64(w, "scale", r->scale);
	hd_json_put_i64(w, "min", r->min);
	hd_json_put_i64(w, "max", r->max);
	hd_json_put_i64(w, "nvns", r->nvns);
	hd_json_put_f64(w, "weight", r->weight);
	hd_json_put_f64(w, "submitted_s", r->submitted_s);
	hd_json_put_f64(w, "started_s", r->started_s);
	hd_json_put_f64(w, "ended_s", r->ended_s);
	hd_json_put_f64(w, "deadline_s", r->deadline_s);
	hd_json_put_i64(w, "steps", (int64_t)r->steps);
	hd_json_put_i64(w, "done", (int64_t)r->done);
	hd_json_put_i64(w, "state", r->state);
	hd_json_put_i64(w, "failures", r->failures);
	hd_json_put_i64(w, "leases", r->leases);
	hd_json_put_i64(w, "exit", r->exit);
	hd_json_put_bool(w, "cancel", r->cancel);
	put_terms(w, r);
	if (r->user[0])
		hd_json_put_text(w, "user", r->user);
	if (r->partition[0])
		hd_json_put_text(w, "partition", r->partition);
	hd_json_open_array(w, "rate");
	for (uint32_t t = 0; t < ntypes; t++) {
		hd_json_open_array(w, NULL);
		hd_json_put_f64(w, NULL, r->rate[t].steps_s);
		hd_json_put_f64(w, NULL, r->rate[t].outlier);
		hd_json_put_i64(w, NULL, r->rate[t].from);
		hd_json_close(w);
	}
	hd_json_close(w);
	put_limits(w, r);
	hd_json_close(w);
}

static void put_lease(struct hd_json_writer *w, const char *key, const struct hd_dispatch_lease *l)
{
	hd_json_open_object(w, key);
	hd_json_put_i64(w, "number", l->number);
	hd_json_put_i64(w, "epoch", l->epoch);
	hd_json_put_i64(w, "state", l->state);
	hd_json_put_bool(w, "over", l->over);
	hd_json_put_f64(w, "since_s", l->since_s);
	hd_json_put_f64(w, "until_s", l->until_s);
	hd_json_open_array(w, "device");
	for (uint32_t i = 0; i < l->n; i++)
		hd_json_put_i64(w, NULL, l->device[i]);
	hd_json_close(w);
	hd_json_close(w);
}

struct field { const char *key; void *at; enum { U32, I32, U64, F64, BOOL } type; int64_t max; };

static enum hd_err read_fields(const struct hd_json *json, const struct field *field, size_t n,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < n && !err; i++) {
		int64_t v = 0;
		if (field[i].type == F64) {
			err = hd_json_get_f64(json, field[i].key, field[i].at, diag);
			continue;
		}
		if (field[i].type == BOOL) {
			err = hd_json_get_bool(json, field[i].key, field[i].at, diag);
			continue;
		}
		err = hd_json_get_i64(json, field[i].key, field[i].type == I32 ? -1 : 0, field[i].max, &v,
			diag);
		if (err)
			break;
		if (field[i].type == U32)
			*(uint32_t *)field[i].at = (uint32_t)v;
		else if (field[i].type == I32)
			*(int32_t *)field[i].at = (int32_t)v;
		else
			*(uint64_t *)field[i].at = (uint64_t)v;
	}
	return err;
}

/* A log of a program without terms has none. */
static enum hd_err read_terms(const struct hd_json *json, struct hd_dispatch_job *r, struct hd_diag *diag)
{
	struct hd_job_terms *t = &r->terms;
	const struct field fields[] = { { "timeout", &r->timeout, BOOL, 0 }, { "ran_s", &r->ran_s, F64, 0 },
		{ "from_s", &r->from_s, F64, 0 }, { "held", &t->held, BOOL, 0 }, { "limit_s", &t->limit_s, F64, 0 },
		{ "expect_s", &t->expect_s, F64, 0 }, { "array", &t->array, U64, INT64_MAX },
		{ "index", &t->index, U32, HD_TERMS_INDEX }, { "at_once", &t->at_once, U32, HD_TERMS_TASKS } };
	const char *after = "";

	r->from_s = -1;
	if (!hd_json_find(json, "held"))
		return HD_OK;
	enum hd_err err = read_fields(json, fields, sizeof fields / sizeof *fields, diag);
	if (!err)
		err = hd_json_get_text(json, "after", &after, diag);
	return err ? err : hd_terms_get_after(t, after, diag);
}

static enum hd_err read_entity(const struct hd_json *json, struct hd_dispatch_entity *e, struct hd_diag *diag)
{
	const struct field of[] = { { "weight", &e->weight, F64, 0 }, { "fifo", &e->fifo, BOOL, 0 } };
	const char *name = "";
	enum hd_err err = hd_json_get_text(json, "name", &name, diag);

	snprintf(e->name, sizeof e->name, "%s", name);
	return err ? err : read_fields(json, of, 2, diag);
}

static enum hd_err read_limits(const struct hd_json *json, struct hd_dispatch_job *r, struct hd_diag *diag)
{
	const struct hd_json *limits = hd_json_find(json, "limits"), *entity = hd_json_find(json, "entity"),
		*within = hd_json_find(json, "within");
	const char *name = "";
	enum hd_err err = entity ? read_entity(entity, &r->entity, diag) : HD_OK;

	for (size_t i = 0; within && i < hd_json_count(within) && !err; i++)
		err = r->nwithin == HD_DISPATCH_WITHIN ? hd_fail(diag, HD_E_INPUT,
			"an account of the log lies more than %d deep", HD_DISPATCH_WITHIN) :
			read_entity(hd_json_item(within, i), &r->within[r->nwithin++], diag);
	for (size_t i = 0; limits && i < hd_json_count(limits) && !err; i++) {
		struct hd_dispatch_limit *l = &r->limit[r->nlimits];
		const struct hd_json *item = hd_json_item(limits, i);
		const struct field of[] = { { "devices", &l->devices, U32, UINT32_MAX },
			{ "running", &l->running, U32, UINT32_MAX } };
		if (r->nlimits++ == HD_DISPATCH_LIMITS)
			return hd_fail(diag, HD_E_INPUT, "a job of the log has more than %d limits",
				HD_DISPATCH_LIMITS);
		err = hd_json_get_text(item, "name", &name, diag);
		snprintf(l->name, sizeof l->name, "%s", name);
		err = err ? err : read_fields(item, of, 2, diag);
	}
	return err;
}

/* A name of less than `cap` bytes; "" where a log does not say. */
static enum hd_err read_name(const struct hd_json *json, const char *key, char *to, size_t cap,
	struct hd_diag *diag)
{
	const char *text = "";
	enum hd_err err = hd_json_find(json, key) ? hd_json_get_text(json, key, &text, diag) : HD_OK;

	if (!err && strlen(text) >= cap)
		err = hd_fail(diag, HD_E_INPUT, "the %s of a job of the log: at most %zu bytes", key,
			cap - 1);
	if (!err)
		snprintf(to, cap, "%s", text);
	return err;
}

static enum hd_err read_row(const struct hd_json *json, struct hd_dispatch_job *r, struct hd_diag *diag)
{
	uint32_t state = 0;
	const struct hd_json *rates = NULL;
	const struct field fields[] = { { "id", &r->id, U64, INT64_MAX },
		{ "scale", &r->scale, U32, UINT32_MAX }, { "min", &r->min, U32, UINT32_MAX },
		{ "max", &r->max, U32, UINT32_MAX }, { "nvns", &r->nvns, U32, UINT32_MAX }, { "weight", &r->weight, F64, 0 },
		{ "submitted_s", &r->submitted_s, F64, 0 }, { "started_s", &r->started_s, F64, 0 }, { "ended_s", &r->ended_s, F64, 0 },
		{ "deadline_s", &r->deadline_s, F64, 0 }, { "steps", &r->steps, U64, INT64_MAX }, { "done", &r->done, U64, INT64_MAX },
		{ "state", &state, U32, HD_DISPATCH_NSTATES - 1 }, { "failures", &r->failures, U32, UINT32_MAX }, { "leases", &r->leases, U32, UINT32_MAX },
		{ "exit", &r->exit, I32, INT32_MAX }, { "cancel", &r->cancel, BOOL, 0 } };

	*r = (struct hd_dispatch_job){ 0 };
	enum hd_err err = read_fields(json, fields, sizeof fields / sizeof *fields, diag);
	r->state = (enum hd_dispatch_state)state;
	if (!err)
		err = read_terms(json, r, diag);
	if (!err)
		err = read_name(json, "user", r->user, sizeof r->user, diag);
	if (!err)
		err = read_name(json, "partition", r->partition, sizeof r->partition, diag);
	if (!err)
		err = hd_json_get(json, "rate", HD_JSON_ARRAY, &rates, diag);
	for (size_t t = 0; !err && t < hd_json_count(rates); t++) {
		const struct hd_json *item = hd_json_item(rates, t);
		int64_t from = 0;
		if (t >= HD_DISPATCH_TYPES || hd_json_kind(item) != HD_JSON_ARRAY || hd_json_count(item) != 3)
			return hd_fail(diag, HD_E_INPUT, "a rate of the log is not one");
		err = hd_json_as_f64(hd_json_item(item, 0), &r->rate[t].steps_s, diag);
		if (!err)
			err = hd_json_as_f64(hd_json_item(item, 1), &r->rate[t].outlier, diag);
		if (!err)
			err = hd_json_as_i64(hd_json_item(item, 2), 0, HD_RATE_MEASURED, &from, diag);
		r->rate[t].from = (enum hd_rate_from)from;
	}
	return err ? err : read_limits(json, r, diag);
}

static enum hd_err read_lease(const struct hd_json *json, uint64_t job, struct hd_dispatch_lease *l,
	struct hd_diag *diag)
{
	const struct hd_json *devices = NULL;
	uint32_t state = 0;
	const struct field fields[] = { { "number", &l->number, U32, UINT32_MAX },
		{ "epoch", &l->epoch, U32, UINT32_MAX },
		{ "state", &state, U32, HD_LEASE_NSTATES - 1 }, { "over", &l->over, BOOL, 0 }, { "since_s", &l->since_s, F64, 0 },
		{ "until_s", &l->until_s, F64, 0 } };

	*l = (struct hd_dispatch_lease){ .job = job };
	enum hd_err err = read_fields(json, fields, sizeof fields / sizeof *fields, diag);
	l->state = (enum hd_lease_state)state;
	if (!err)
		err = hd_json_get(json, "device", HD_JSON_ARRAY, &devices, diag);
	for (size_t i = 0; !err && i < hd_json_count(devices); i++) {
		int64_t v = 0;
		if (i >= HD_DISPATCH_SET)
			return hd_fail(diag, HD_E_INPUT, "a lease of the log has more than %d devices",
				HD_DISPATCH_SET);
		err = hd_json_as_i64(hd_json_item(devices, i), 0, UINT32_MAX, &v, diag);
		l->device[l->n++] = (uint32_t)v;
	}
	return err;
}

/* ---- lines ---- */

static void put_window(struct hd_json_writer *w, const struct hd_kept *window)
{
	hd_json_open_object(w, "window");
	hd_window_put(window, w);
	hd_json_open_array(w, "device");
	for (uint32_t i = 0; i < window->ndevices; i++)
		hd_json_put_i64(w, NULL, window->device[i]);
	hd_json_close(w);
	hd_json_close(w);
}

static enum hd_err read_window(const struct hd_json *json, struct hd_kept *window, struct hd_diag *diag)
{
	const struct hd_json *devices = NULL;
	enum hd_err err = hd_window_get(json, window, diag);

	if (!err)
		err = hd_json_get(json, "device", HD_JSON_ARRAY, &devices, diag);
	for (size_t i = 0; !err && i < hd_json_count(devices); i++) {
		int64_t v = 0;
		if (i >= HD_WINDOW_DEVICES)
			return hd_fail(diag, HD_E_INPUT, "a window of the log has more than %d devices",
				HD_WINDOW_DEVICES);
		err = hd_json_as_i64(hd_json_item(devices, i), 0, UINT32_MAX, &v, diag);
		window->device[window->ndevices++] = (uint32_t)v;
	}
	return err;
}

static struct hd_json_writer line(struct hd_dispatch *d)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, d->log);
	hd_json_open_object(&w, NULL);
	return w;
}

static void end(struct hd_dispatch *d, struct hd_json_writer *w)
{
	while (w->depth)
		hd_json_close(w);
	hd_text_add(d->log, "\n");
}

void dispatch_log_open(struct hd_dispatch *d)
{
	if (!d->log || d->logged)
		return;
	d->logged = true;
	struct hd_json_writer w = line(d);
	hd_json_put_text(&w, "open", d->policy_name);
	hd_json_put_f64(&w, "round_s", d->set.round_s);
	hd_json_put_f64(&w, "min_reset_s", d->set.min_reset_s);
	hd_json_put_f64(&w, "kappa", d->set.kappa);
	hd_json_put_f64(&w, "move_s", d->set.move_s);
	hd_json_put_f64(&w, "start_s", d->set.start_s);
	hd_json_put_f64(&w, "drain_s", d->set.drain_s);
	hd_json_put_f64(&w, "began_s", d->began_s);
	if (d->set.apart)
		hd_json_put_bool(&w, "apart", true);
	if (d->set.whole)
		hd_json_put_bool(&w, "whole", true);
	hd_json_open_array(&w, "types");
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "name", d->type[t].name);
		hd_json_put_i64(&w, "n", d->type[t].n);
		hd_json_put_f64(&w, "speed", d->type[t].speed);
		hd_json_put_f64(&w, "price_usd_h", d->type[t].price_usd_h);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	dispatch_put_parts(d, &w);
	end(d, &w);
}

void dispatch_log_restore(struct hd_dispatch *d, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease)
{
	if (!d->log)
		return;
	struct hd_json_writer w = line(d);
	put_row(&w, "restore", row, d->set.ntypes);
	if (lease)
		put_lease(&w, "lease", lease);
	end(d, &w);
}

static const char *const in_names[] = {
#define X(id, payload, text) [HD_DISPATCH_IN_##id] = #id,
	HD_DISPATCH_EVENTS(X)
#undef X
};

static const char *const out_names[] = {
#define X(id, name, payload, text) [HD_DISPATCH_DO_##id] = name,
	HD_DISPATCH_OUTS(X)
#undef X
};

/* Of all kinds the same members: what an event does not have is 0. */
static void put_event(struct hd_json_writer *w, const struct hd_dispatch_event *e, uint32_t ntypes)
{
	hd_json_put_text(w, "in", in_names[e->kind]);
	if (e->kind == HD_DISPATCH_IN_TICK)
		return;
	if (e->kind == HD_DISPATCH_IN_SHARES)
		return;
	hd_json_put_i64(w, "job", (int64_t)e->job);
	hd_json_put_i64(w, "step", (int64_t)e->step);
	hd_json_put_i64(w, "lease", e->lease);
	hd_json_put_i64(w, "device", e->device);
	hd_json_put_i64(w, "n", e->n);
	hd_json_put_i64(w, "code", e->code);
	hd_json_put_f64(w, "value", e->value);
	hd_json_put_bool(w, "ok", e->ok);
	if (e->early)
		hd_json_put_bool(w, "early", true);
	if (e->text)
		hd_json_put_text(w, "text", e->text);
	if (e->window)
		put_window(w, e->window);
	if (e->row && e->n < 2)
		put_row(w, "row", e->row, ntypes);
	if (!e->row || e->n < 2)
		return;
	hd_json_open_array(w, "rows");
	for (uint32_t i = 0; i < e->n; i++)
		put_row(w, NULL, &e->row[i], ntypes);
	hd_json_close(w);
}

static void put_out(struct hd_json_writer *w, const struct hd_dispatch_out *o, uint32_t ntypes)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "do", out_names[o->kind]);
	switch (o->kind) {
	case HD_DISPATCH_DO_JOB:
		put_row(w, "row", o->row, ntypes);
		break;
	case HD_DISPATCH_DO_LEASE:
		hd_json_put_i64(w, "job", (int64_t)o->job);
		put_lease(w, "held", o->held);
		break;
	case HD_DISPATCH_DO_NOTE:
		hd_json_put_i64(w, "job", (int64_t)o->job);
		hd_json_put_text(w, "kind", o->name);
		hd_json_put_text(w, "text", o->text);
		break;
	case HD_DISPATCH_DO_START: case HD_DISPATCH_DO_WORKER: case HD_DISPATCH_DO_SCALE:
	case HD_DISPATCH_DO_LEAVE: case HD_DISPATCH_DO_STOP:
	case HD_DISPATCH_DO_KILL: case HD_DISPATCH_DO_NKINDS:
		hd_json_put_i64(w, "job", (int64_t)o->job);
		hd_json_put_i64(w, "device", o->device);
		hd_json_put_i64(w, "n", o->n);
		break;
	}
	hd_json_close(w);
}

void dispatch_log_step(struct hd_dispatch *d, const struct hd_dispatch_event *e)
{
	if (!d->log || (e->kind == HD_DISPATCH_IN_TICK && !d->decided && !d->nouts))
		return;
	struct hd_json_writer w = line(d);
	hd_json_put_f64(&w, "at", d->now_s);
	put_event(&w, e, d->set.ntypes);
	hd_json_open_array(&w, "out");
	for (uint32_t i = 0; i < d->nouts; i++)
		put_out(&w, &d->out[d->nouts + i], d->set.ntypes);
	end(d, &w);
}

/* ---- again ---- */

static enum hd_err read_setting(const struct hd_json *json, struct hd_arena *arena,
	struct hd_dispatch_setting *set, struct hd_diag *diag)
{
	const struct field fields[] = { { "round_s", &set->round_s, F64, 0 },
		{ "min_reset_s", &set->min_reset_s, F64, 0 }, { "kappa", &set->kappa, F64, 0 },
		{ "move_s", &set->move_s, F64, 0 }, { "start_s", &set->start_s, F64, 0 }, { "drain_s", &set->drain_s, F64, 0 },
		{ "began_s", &set->began_s, F64, 0 } };
	const struct hd_json *types = NULL;
	struct hd_dispatch_type *type = NULL;

	enum hd_err err = hd_json_get_text(json, "open", &set->policy, diag);
	if (!err)
		err = read_fields(json, fields, sizeof fields / sizeof *fields, diag);
	if (!err)
		err = hd_json_get(json, "types", HD_JSON_ARRAY, &types, diag);
	if (!err && hd_json_find(json, "apart"))
		err = hd_json_get_bool(json, "apart", &set->apart, diag);
	if (!err && hd_json_find(json, "whole"))
		err = hd_json_get_bool(json, "whole", &set->whole, diag);
	set->ntypes = err ? 0 : (uint32_t)hd_json_count(types);
	if (!err && !(type = hd_arena_take(arena, set->ntypes + 1, sizeof *type)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u types", set->ntypes);
	for (uint32_t t = 0; t < set->ntypes && !err; t++) {
		const struct field of[] = { { "n", &type[t].n, U32, HD_SCHED_DEVICES },
			{ "speed", &type[t].speed, F64, 0 },
			{ "price_usd_h", &type[t].price_usd_h, F64, 0 } };
		err = hd_json_get_text(hd_json_item(types, t), "name", &type[t].name, diag);
		if (!err)
			err = read_fields(hd_json_item(types, t), of, sizeof of / sizeof *of, diag);
	}
	set->type = type;
	return err || !hd_json_find(json, "partitions") ? err : dispatch_read_parts(
		hd_json_find(json, "partitions"), arena, set, diag);
}

static enum hd_err read_rows(const struct hd_json *rows, struct hd_dispatch_event *e, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_dispatch_job *row = NULL;
	enum hd_err err = hd_json_as(rows, HD_JSON_ARRAY, diag);

	if (!err && (hd_json_count(rows) != e->n || !(row = hd_arena_take(arena, e->n, sizeof *row))))
		return hd_fail(diag, HD_E_INPUT, "%zu rows of %u tasks", hd_json_count(rows), e->n);
	for (uint32_t i = 0; i < e->n && !err; i++)
		err = read_row(hd_json_item(rows, i), &row[i], diag);
	e->row = row;
	return err;
}

static enum hd_err read_event(const struct hd_json *json, struct hd_dispatch_event *e,
	struct hd_dispatch_job *row, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct field fields[] = { { "job", &e->job, U64, INT64_MAX },
		{ "step", &e->step, U64, INT64_MAX }, { "lease", &e->lease, U32, UINT32_MAX },
		{ "device", &e->device, U32, UINT32_MAX }, { "n", &e->n, U32, UINT32_MAX }, { "code", &e->code, I32, INT32_MAX },
		{ "value", &e->value, F64, 0 }, { "ok", &e->ok, BOOL, 0 } };
	const char *name = "";
	uint32_t kind = 0;

	*e = (struct hd_dispatch_event){ 0 };
	enum hd_err err = hd_json_get_text(json, "in", &name, diag);
	while (!err && kind < HD_DISPATCH_IN_NKINDS && strcmp(name, in_names[kind]) != 0)
		kind++;
	if (!err && kind == HD_DISPATCH_IN_NKINDS)
		return hd_fail(diag, HD_E_INPUT,
			"the log has an event \"%.40s\", which this program does not know", name);
	e->kind = (enum hd_dispatch_event_kind)kind;
	if (err || e->kind == HD_DISPATCH_IN_TICK || e->kind == HD_DISPATCH_IN_SHARES)
		return err;
	err = read_fields(json, fields, sizeof fields / sizeof *fields, diag);
	if (!err && hd_json_find(json, "early"))
		err = hd_json_get_bool(json, "early", &e->early, diag);
	if (!err && hd_json_find(json, "text"))
		err = hd_json_get_text(json, "text", &e->text, diag);
	if (!err && hd_json_find(json, "window")) {
		struct hd_kept *window = hd_arena_take(arena, 1, sizeof *window);
		err = window ? read_window(hd_json_find(json, "window"), window, diag) :
			hd_fail(diag, HD_E_NOMEM, "no memory for a window");
		e->window = window;
	}
	if (!err && hd_json_find(json, "row")) {
		err = read_row(hd_json_find(json, "row"), row, diag);
		e->row = row;
	}
	return err || !hd_json_find(json, "rows") ? err : read_rows(hd_json_find(json, "rows"), e, arena,
		diag);
}

static enum hd_err repeat(struct hd_dispatch **d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_arena *lines, struct hd_text *again, struct hd_diag *diag)
{
	struct hd_dispatch_setting set = { 0 };
	struct hd_dispatch_lease lease;
	struct hd_dispatch_event event;
	struct hd_dispatch_outs outs;
	struct hd_dispatch_job row;
	enum hd_err err;
	double at_s = 0;

	/* a scheduler that starts again begins a new log */
	if (hd_json_find(json, "open")) {
		hd_dispatch_destroy(*d);
		*d = NULL;
		err = read_setting(json, arena, &set, diag);
		if (!err)
			err = hd_dispatch_create(d, &set, again, diag);
		if (!err)
			dispatch_log_open(*d);
		return err;
	}
	if (!*d)
		return hd_fail(diag, HD_E_INPUT, "the log does not begin with the setting of a scheduler");
	if (hd_json_find(json, "restore")) {
		bool leased = hd_json_find(json, "lease");
		err = read_row(hd_json_find(json, "restore"), &row, diag);
		if (!err && leased)
			err = read_lease(hd_json_find(json, "lease"), row.id, &lease, diag);
		return err ? err : hd_dispatch_restore(*d, &row, leased ? &lease : NULL, diag);
	}
	err = hd_json_get_f64(json, "at", &at_s, diag);
	if (!err)
		err = read_event(json, &event, &row, lines, diag);
	return err ? err : hd_dispatch_step(*d, &event, at_s, &outs, diag);
}

enum hd_err hd_dispatch_replay(const char *name, const char *log, size_t len, struct hd_arena *arena,
	struct hd_text *again, struct hd_diag *diag)
{
	struct hd_dispatch *d = NULL;
	struct hd_arena lines;
	enum hd_err err = HD_OK;

	hd_arena_init(&lines, 0);
	for (size_t at = 0, number = 1; at < len && !err; number++) {
		const char *nl = memchr(log + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (log + at)) : len - at;
		const struct hd_json *json;
		char where[120];
		snprintf(where, sizeof where, "%.80s:%zu", name, number);
		if (!nl)
			break;                    /* the last line was cut: it was never acted on */
		hd_arena_reset(&lines);
		err = hd_json_parse(&lines, where, log + at, n, &json, diag);
		if (!err)
			err = repeat(&d, json, arena, &lines, again, diag);
		at += n + 1;
	}
	hd_dispatch_destroy(d);
	hd_arena_finish(&lines);
	return err;
}
