#include "clustersim/job_input.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

enum { MIX = 2000 };                      /* jobs that are drawn to know what the mix is */

enum hd_err hd_job_list_read(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint8_t *eol = len ? memchr(bytes, '\n', len) : NULL;
	const size_t first = eol ? (size_t)(eol - bytes) : len;

	if (hd_job_list_recorded_is(bytes, len))
		return how->rates ? hd_fail(diag, HD_E_INVAL,
			"%s is a list of recorded jobs, whose kinds the "
			"rates do not know: import the accounting with --throughputs", name) :
			hd_job_list_recorded(list, name, bytes, len, arena, diag);
	if (hd_job_list_json_is(bytes, len))
		return hd_job_list_json(list, name, bytes, len, how, arena, diag);
	if (len && memchr(bytes, '\t', first))
		return hd_job_list_trace(list, name, bytes, len, arena, diag);
	if (len && memchr(bytes, '|', first))
		return hd_job_list_sacct(list, name, bytes, len, how, arena, diag);
	return hd_job_list_csv(list, name, bytes, len, how, arena, diag);
}

uint64_t hd_job_list_bind_types(struct hd_job_list *list, const struct hd_sched_type *type,
	const double *speed, uint32_t ntypes, const char **unknown)
{
	uint64_t nunknown = 0;

	*unknown = NULL;
	for (size_t i = 0; i < list->n; i++) {
		struct hd_listed_job *job = &list->at[i];
		uint32_t t = 0;
		if (!job->type)
			continue;
		while (t < ntypes && strcasecmp(type[t].name, job->type) != 0)
			t++;
		if (t == ntypes) {
			*unknown = *unknown ? *unknown : job->type;
			nunknown++;
		} else if (speed && hd_sched_in(HD_SCHED_IN_STEPS, job->steps * speed[t])) {
			job->steps *= speed[t];
		}
		job->type = t < ntypes ? type[t].name : NULL;
	}
	return nunknown;
}

void hd_job_list_free_types(struct hd_job_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->at[i].record && !strcmp(list->at[i].record->asked, "*"))
			list->at[i].type = NULL;
}

void hd_job_list_bind_accounts(struct hd_job_list *list, const struct hd_sched_entity *entities,
	uint32_t nentities)
{
	for (size_t i = 0; i < list->n && nentities; i++) {
		struct hd_listed_job *job = &list->at[i];
		bool user = false, account = false;
		for (uint32_t e = 0; e < nentities && job->record; e++) {
			user |= !strcmp(entities[e].name, job->user);
			account |= !strcmp(entities[e].name, job->record->account);
		}
		if (account && !user)
			job->user = job->record->account;
	}
}

double hd_job_generator_load(const struct hd_job_generator_setting *how, const struct hd_rates *all,
	const struct hd_rates *rates, const struct hd_sched_type *type, uint32_t ntypes)
{
	double took_s[HD_SCHED_TYPES] = { 0 }, per_s = 0;
	uint32_t n[HD_SCHED_TYPES] = { 0 };
	struct hd_job_generator mix;
	struct hd_listed_job job;

	if (!(how->per_hour > 0) || hd_job_generator_init(&mix, how, all, NULL))
		return 0;
	for (int i = 0; i < MIX; i++) {
		hd_job_generator_next(&mix, &job);
		uint32_t kind = hd_rates_kind(rates, job.kind, job.scale);
		for (uint32_t t = 0; t < ntypes && kind != HD_RATES_NONE; t++) {
			double rate = hd_rates_alone(rates, kind, t);
			took_s[t] += rate > 0 ? job.scale * job.steps / rate : 0;
			n[t] += rate > 0;
		}
	}
	for (uint32_t t = 0; t < ntypes; t++)
		per_s += took_s[t] > 0 ? type[t].n * n[t] / took_s[t] : 0;
	return how->per_hour / 3600 / per_s;
}

/* The number up to `end`, of which *at is moved behind; false: none in the range, or it ends otherwise. */
static bool take(const char **at, char end, double least, double most, double *out)
{
	const char stop[] = { end, 0 };
	size_t len = strcspn(*at, stop);
	char digits[40];

	if (len >= sizeof digits)
		return false;
	memcpy(digits, *at, len);
	digits[len] = 0;
	*at += len;
	return hd_num_f64(digits, least, most, out, NULL) == HD_OK;
}

enum hd_err hd_switch_costs_parse(struct hd_switch_costs *costs, const char *text)
{
	struct hd_switch_costs c = *costs;
	double *to[] = { &c.start_s, &c.resize_s, &c.move_s, &c.preempt_s };

	for (size_t i = 0; i < 4; i++) {
		if (!take(&text, ',', 0, 1e9, to[i]) || !*text != (i == 3))
			return HD_E_INVAL;
		text += !!*text;
	}
	*costs = c;
	return HD_OK;
}

enum hd_err hd_speedup_parse(double *speedup, const char *text, uint64_t max, uint64_t nvns)
{
	for (uint64_t k = 1; k <= max; k++) {
		uint64_t used = k < nvns ? k : nvns;
		speedup[k] = (double)nvns / (double)((nvns + used - 1) / used);
		if (!text)
			continue;
		if (!take(&text, ':', fmax(k > 1 ? speedup[k - 1] : 0, 1e-6), 1e6, &speedup[k]) ||
			!*text != (k == max))
			return HD_E_INVAL;
		text += !!*text;
	}
	return HD_OK;
}

enum hd_err hd_elastic_make(struct hd_sched_elastic *elastic, uint64_t min, uint64_t max, uint64_t nvns,
	const char *speedup, struct hd_arena *arena, struct hd_diag *diag)
{
	if (!min || max < min)
		return hd_fail(diag, HD_E_INVAL,
			"min %llu, max %llu: 1 device at least, and max no less than min",
			(unsigned long long)min, (unsigned long long)max);
	double *s = hd_arena_take(arena, max + 1, sizeof *s);
	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the speedups of %llu sizes",
			(unsigned long long)max);
	nvns = nvns ? nvns : max;
	if (hd_speedup_parse(s, speedup, max, nvns))
		return hd_fail(diag, HD_E_INVAL,
			"speedup=%s: one number for each count of devices up to max, not falling", speedup);
	elastic->min = (uint32_t)min;
	elastic->max = (uint32_t)max;
	elastic->nvns = (uint32_t)nvns;
	elastic->speedup = s;
	return HD_OK;
}

enum hd_err hd_entity_add(struct hd_entity_list *list, const char *name, const char *weight,
	const char *kind, struct hd_arena *arena, struct hd_diag *diag)
{
	double w = 1;

	if (list->n == HD_SCHED_ENTITIES ||
		(weight && (hd_num_f64(weight, 0, 1e9, &w, NULL) || !hd_sched_in(HD_SCHED_IN_WEIGHT, w))))
		return hd_fail(diag, HD_E_INVAL, "%.60s:%.40s: a weight above 0, of at most %d entities",
			name, weight ? weight : "", HD_SCHED_ENTITIES);
	for (uint32_t e = 0; e < list->n; e++)
		if (!strcmp(list->at[e].name, name))
			return hd_fail(diag, HD_E_INVAL, "%.60s is named twice", name);
	struct hd_sched_entity *entities = hd_arena_take(arena, list->n + 1, sizeof *entities);
	if (!entities)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u entities", list->n + 1);
	if (list->n)
		memcpy(entities, list->at, list->n * sizeof *entities);
	entities[list->n] = (struct hd_sched_entity){ .name = name, .weight = w,
		.kind = kind && !strcmp(kind, "fifo") ? HD_ENTITY_FIFO : HD_ENTITY_FAIRNESS };
	*list = (struct hd_entity_list){ entities, list->n + 1 };
	return HD_OK;
}
