#include "spot/model.h"

#include <math.h>

#include "spot/lead.h"

static const int64_t DAY_MS = 86400000, NANO = 1000000000;
static const double MOST_USD_H = 1e6;

/* A member that may be missing: then *out stays. */
static enum hd_err number_of(const struct hd_json *of, const char *key, double max, double *out,
	struct hd_diag *diag)
{
	const struct hd_json *value = hd_json_find(of, key);
	char path[160];
	double x = *out;
	enum hd_err err = value ? hd_json_as_f64(value, &x, diag) : HD_OK;

	if (!err && !(x >= 0 && x <= max))
		err = hd_fail(diag, HD_E_INPUT, "%s is from 0 to %g", hd_json_path(value, path, sizeof path),
			max);
	if (!err)
		*out = x;
	return err;
}

static enum hd_err read_price(const struct hd_json *of, double usual, int64_t *nano_usd_h,
	struct hd_diag *diag)
{
	double usd_h = usual;
	enum hd_err err = number_of(of, "usd_h", MOST_USD_H, &usd_h, diag);
	char path[160];

	if (!err && llround(usd_h * (double)NANO) < 1)
		err = hd_fail(diag, HD_E_INPUT, "%s.usd_h is above 0: value is samples per dollar",
			hd_json_path(of, path, sizeof path));
	if (!err)
		*nano_usd_h = llround(usd_h * (double)NANO);
	return err;
}

static enum hd_err read_steps(struct hd_spot_model *m, const struct hd_json *json, struct hd_diag *diag)
{
	const struct hd_json *list;
	char path[160];
	enum hd_err err = hd_json_get(json, "step_ms", HD_JSON_ARRAY, &list, diag);

	if (!err && (hd_json_count(list) < 1 || hd_json_count(list) > HD_SPOT_PIPELINES))
		err = hd_fail(diag, HD_E_INPUT, "%s has the times of 1 to %d pipelines",
			hd_json_path(list, path, sizeof path), HD_SPOT_PIPELINES);
	for (size_t i = 0; !err && i < hd_json_count(list); i++)
		err = hd_json_as_i64(hd_json_item(list, i), 1, DAY_MS, &m->step_ms[m->npipelines++], diag);
	return err;
}

static enum hd_err read_on_demand(struct hd_spot_model *m, const struct hd_json *json, struct hd_diag *diag)
{
	static const char *const keys[] = { "nodes", "step_ms", "usd_h", NULL };
	const struct hd_json *on;
	int64_t nodes = 0;
	enum hd_err err = hd_json_get(json, "on_demand", HD_JSON_OBJECT, &on, diag);

	err = err ? err : hd_json_only(on, keys, diag);
	err = err ? err : hd_json_get_i64(on, "nodes", 1, INT32_MAX, &nodes, diag);
	err = err ? err : hd_json_get_i64(on, "step_ms", 1, DAY_MS, &m->on_demand.step_ms, diag);
	m->on_demand.nodes = (uint32_t)nodes;
	return err ? err : read_price(on, 3.06, &m->on_demand.nano_usd_h, diag);
}

/* Times that a model may leave out. */
static enum hd_err read_times(struct hd_spot_model *m, const struct hd_json *json, struct hd_diag *diag)
{
	const struct { const char *key; int64_t *to, usual, least, most; } rows[] = {
		{ "boot_ms", &m->boot_ms, HD_SPOT_BOOT_MS, 0, DAY_MS },
		{ "rendezvous_ms", &m->rendezvous_ms, HD_SPOT_RENDEZVOUS_MS, 0, DAY_MS },
		{ "save_ms", &m->save_ms, HD_SPOT_SAVE_MS, 0, DAY_MS },
		{ "reload_ms", &m->reload_ms, HD_SPOT_RELOAD_MS, 0, DAY_MS },
		{ "pause_ms", &m->pause_ms, 0, 0, DAY_MS },
		{ "end_ms", &m->end_ms, HD_SPOT_END_MS, 1, 366 * DAY_MS },
		{ "lead_ms", &m->lead_ms, 0, 0, HD_LEAD_AHEAD_MS },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof rows / sizeof *rows && !err; i++) {
		*rows[i].to = rows[i].usual;
		if (hd_json_find(json, rows[i].key))
			err = hd_json_get_i64(json, rows[i].key, rows[i].least, rows[i].most, rows[i].to,
				diag);
	}
	return err;
}

enum hd_err hd_spot_model_read(struct hd_spot_model *model, const struct hd_json *json, struct hd_diag *diag)
{
	static const char *const keys[] = { "name", "stages", "batch", "local_ms", "step_ms", "on_demand",
		"wanted", "usd_h", "redundant", "bubble", "boot_ms", "rendezvous_ms", "save_ms", "reload_ms",
		"pause_ms", "end_ms", "announced", "lead_ms", NULL };
	struct hd_spot_model m = { 0 };
	double redundant = 0, bubble = 0, announced = 0;
	int64_t stages = 0, wanted = 0;
	char path[160];
	enum hd_err err = hd_json_only(json, keys, diag);

	err = err ? err : hd_json_get_text(json, "name", &m.name, diag);
	err = err ? err : hd_json_get_i64(json, "stages", 1, HD_SPOT_STAGES, &stages, diag);
	err = err ? err : hd_json_get_i64(json, "batch", 1, INT32_MAX, &m.batch, diag);
	err = err ? err : hd_json_get_i64(json, "local_ms", 0, DAY_MS, &m.local_ms, diag);
	err = err ? err : read_steps(&m, json, diag);
	err = err ? err : read_on_demand(&m, json, diag);
	if (!err && hd_json_find(json, "wanted"))
		err = hd_json_get_i64(json, "wanted", 1, INT32_MAX, &wanted, diag);
	err = err ? err : read_price(json, 0.91, &m.nano_usd_h, diag);
	err = err ? err : read_times(&m, json, diag);
	err = err ? err : number_of(json, "redundant", 1, &redundant, diag);
	err = err ? err : number_of(json, "bubble", 1, &bubble, diag);
	err = err ? err : number_of(json, "announced", 1, &announced, diag);
	if (!err && redundant + bubble > 1)
		err = hd_fail(diag, HD_E_INPUT, "%s: redundant and bubble are %g together, more than a step",
			hd_json_path(json, path, sizeof path), redundant + bubble);
	if (err)
		return err;
	m.stages = (uint32_t)stages;
	m.wanted = (uint32_t)wanted;
	m.redundant_ppm = (uint32_t)(redundant * HD_SPOT_PPM);
	m.bubble_ppm = (uint32_t)(bubble * HD_SPOT_PPM);
	m.announced_ppm = (uint32_t)(announced * HD_SPOT_PPM + 0.5);
	*model = m;
	return HD_OK;
}

bool hd_spot_model_announces(const struct hd_spot_model *m, uint32_t node)
{
	const uint64_t share = m->announced_ppm;

	return (node + UINT64_C(1)) * share / HD_SPOT_PPM > node * share / HD_SPOT_PPM;
}

double hd_spot_model_on_demand(const struct hd_spot_model *m)
{
	const double usd_h = m->on_demand.nodes * ((double)m->on_demand.nano_usd_h / (double)NANO);

	return (double)m->batch * 3.6e6 / (double)m->on_demand.step_ms / usd_h;
}
