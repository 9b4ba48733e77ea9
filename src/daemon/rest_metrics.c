/* The cluster in numbers. Labels are types of devices and states: words of whoever serves, not of users. */
#include <math.h>

#include "base/num.h"
#include "daemon/rest.h"

static void head(struct hd_text *t, const char *name, const char *help)
{
	hd_text_addf(t, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void label(struct hd_text *t, const char *key, const char *value)
{
	hd_text_addf(t, "%s=\"", key);
	for (; *value; value++)
		if (*value == '\n')
			hd_text_add(t, "\\n");
		else
			hd_text_addf(t, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	hd_text_add(t, "\"");
}

static void value(struct hd_text *t, double v)
{
	char room[HD_NUM_CAP];

	hd_text_addf(t, " %s\n", isnan(v) ? "NaN" : isinf(v) ? v > 0 ? "+Inf" : "-Inf" :
		hd_num_print_f64(room, v));
}

static void put_counts(const struct hd_json *status, struct hd_text *t)
{
	const struct hd_json *counts = NULL;
	double n = 0;

	if (hd_json_get(status, "counts", HD_JSON_OBJECT, &counts, NULL))
		return;
	head(t, "heddle_jobs", "Jobs by state.");
	for (size_t i = 0; i < hd_json_count(counts); i++) {
		if (hd_json_as_f64(hd_json_item(counts, i), &n, NULL))
			continue;
		hd_text_add(t, "heddle_jobs{");
		label(t, "state", hd_json_key(counts, i));
		hd_text_add(t, "}");
		value(t, n);
	}
}

/* Of each type the member `key`. state NULL: it has none. */
static void put_type(const struct hd_json *types, const char *name, const char *key, const char *state,
	struct hd_text *t)
{
	const char *type = "";
	double v = 0;

	for (size_t i = 0; i < hd_json_count(types); i++) {
		const struct hd_json *of = hd_json_item(types, i);
		if (hd_json_get_text(of, "type", &type, NULL) || hd_json_get_f64(of, key, &v, NULL))
			continue;
		hd_text_addf(t, "%s{", name);
		label(t, "type", type);
		if (state) {
			hd_text_add(t, ",");
			label(t, "state", state);
		}
		hd_text_add(t, "}");
		value(t, v);
	}
}

static void put_types(const struct hd_json *status, struct hd_text *t)
{
	const struct hd_json *types = NULL;

	if (hd_json_get(status, "types", HD_JSON_ARRAY, &types, NULL))
		return;
	head(t, "heddle_devices", "Devices by type and what they do.");
	put_type(types, "heddle_devices", "busy", "busy", t);
	put_type(types, "heddle_devices", "free", "free", t);
	put_type(types, "heddle_devices", "lost", "out", t);
	head(t, "heddle_device_price_usd_per_hour", "Dollars for a device and hour.");
	put_type(types, "heddle_device_price_usd_per_hour", "price_usd_h", NULL, t);
}

static void put_partition(const struct hd_json *list, const char *key, const char *state, struct hd_text *t,
	const char *name)
{
	const char *partition = "";
	double v = 0;

	for (size_t i = 0; i < hd_json_count(list); i++) {
		const struct hd_json *of = hd_json_item(list, i);
		if (hd_json_get_text(of, "name", &partition, NULL) || hd_json_get_f64(of, key, &v, NULL))
			continue;
		hd_text_addf(t, "%s{", name);
		label(t, "partition", partition);
		hd_text_add(t, ",");
		label(t, "state", state);
		hd_text_add(t, "}");
		value(t, v);
	}
}

static void put_partitions(const struct hd_json *status, struct hd_text *t)
{
	const struct hd_json *list = hd_json_find(status, "partitions");

	if (!list || hd_json_as(list, HD_JSON_ARRAY, NULL) || !hd_json_count(list))
		return;
	head(t, "heddle_partition_devices", "Devices of a partition: held by its jobs, held by none.");
	put_partition(list, "busy", "busy", t, "heddle_partition_devices");
	put_partition(list, "free", "free", t, "heddle_partition_devices");
	head(t, "heddle_partition_jobs", "Jobs of a partition with and without devices.");
	put_partition(list, "running", "running", t, "heddle_partition_jobs");
	put_partition(list, "waiting", "waiting", t, "heddle_partition_jobs");
}

static void put_one(const struct hd_json *status, const char *key, const char *name, const char *help,
	struct hd_text *t)
{
	double v = 0;

	if (hd_json_get_f64(status, key, &v, NULL))
		return;
	head(t, name, help);
	hd_text_add(t, name);
	value(t, v);
}

void hd_rest_metrics(const struct hd_json *status, struct hd_text *t)
{
	const struct hd_json *slow = NULL;
	const char *late = "";

	put_counts(status, t);
	put_types(status, t);
	put_partitions(status, t);
	put_one(status, "round_s", "heddle_round_seconds", "How long a round of the scheduler lasts.", t);
	put_one(status, "now_s", "heddle_clock_seconds",
		"The scheduler's clock; it begins with its folder and goes on over restarts.", t);
	put_one(status, "since_s", "heddle_start_clock_seconds",
		"When this process of the scheduler started, by that clock.", t);
	put_one(status, "boundary_s", "heddle_next_round_clock_seconds",
		"When the next round begins, by that clock; -1: without jobs none does.", t);
	if (!hd_json_get_text(status, "late", &late, NULL)) {
		head(t, "heddle_policy_late", "1 while the policy does not answer in time.");
		hd_text_add(t, "heddle_policy_late");
		value(t, *late != 0);
	}
	if (!hd_json_get(status, "slow", HD_JSON_ARRAY, &slow, NULL)) {
		head(t, "heddle_slow_devices", "Devices that are slow across jobs.");
		hd_text_add(t, "heddle_slow_devices");
		value(t, (double)hd_json_count(slow));
	}
}
