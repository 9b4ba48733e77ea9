/* Names of policies: ours, "NAME[-VARIANT]" after any number of "pop:K:", and the published ones. */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "scheduler/policy/int.h"

/* A published name is a policy, a variant and what its objective leaves out. */
static const struct alias {
	const char *name, *policy;
	enum hd_variant variant;
	bool deadlines;
	int entity_kind;
} aliases[] = {
	{ "max_min_fairness", "las", HD_VARIANT_PLAIN, false, 0 },
	{ "max_min_fairness_perf", "las", HD_VARIANT_HETERO, false, 0 },
	{ "max_min_fairness_packed", "las", HD_VARIANT_PACKED, false, 0 },
	{ "max_min_fairness_water_filling", "las", HD_VARIANT_PLAIN, false, 0 },
	{ "max_min_fairness_water_filling_perf", "las", HD_VARIANT_HETERO, false, 0 },
	{ "max_min_fairness_water_filling_packed", "las", HD_VARIANT_PACKED, false, 0 },
	{ "finish_time_fairness", "ftf", HD_VARIANT_PLAIN, false, 0 },
	{ "finish_time_fairness_perf", "ftf", HD_VARIANT_HETERO, false, 0 },
	{ "finish_time_fairness_packed", "ftf", HD_VARIANT_PACKED, false, 0 },
	{ "finish_time_fairness_packed_unweighted", "ftf", HD_VARIANT_PACKED, false, 0 },
	{ "min_total_duration", "makespan", HD_VARIANT_PLAIN, false, 0 },
	{ "min_total_duration_perf", "makespan", HD_VARIANT_HETERO, false, 0 },
	{ "min_total_duration_packed", "makespan", HD_VARIANT_PACKED, false, 0 },
	{ "max_sum_throughput_perf", "sum", HD_VARIANT_HETERO, false, 0 },
	{ "max_sum_throughput_packed", "sum", HD_VARIANT_PACKED, false, 0 },
	{ "max_sum_throughput_normalized_by_cost_perf", "cost", HD_VARIANT_HETERO, false, 0 },
	{ "max_sum_throughput_normalized_by_cost_perf_SLOs", "cost", HD_VARIANT_HETERO, true, 0 },
	{ "max_sum_throughput_normalized_by_cost_packed_SLOs", "cost", HD_VARIANT_PACKED, true, 0 },
	{ "hierarchical", "hierarchy", HD_VARIANT_HETERO, false, 0 },
	{ "hierarchical_fairness", "hierarchy", HD_VARIANT_HETERO, false, 1 + HD_ENTITY_FAIRNESS },
	{ "hierarchical_fifo", "hierarchy", HD_VARIANT_HETERO, false, 1 + HD_ENTITY_FIFO },
	{ "hierarchical_entities_mod3_weights123_fairness", "hierarchy", HD_VARIANT_HETERO, false, 1 + HD_ENTITY_FAIRNESS },
	{ "hierarchical_entities_mod3_weights123_fifo", "hierarchy", HD_VARIANT_HETERO, false, 1 + HD_ENTITY_FIFO },
	{ "max_min_fairness_strategy_proof", "nash", HD_VARIANT_HETERO, false, 0 },
	{ "fifo_perf", "fifo", HD_VARIANT_HETERO, false, 0 },
	{ "fifo_packed", "fifo", HD_VARIANT_PACKED, false, 0 },
	{ "gandiva_packed", "gandiva", HD_VARIANT_PACKED, false, 0 },
};

enum { NALIASES = sizeof aliases / sizeof *aliases };

static const char *const variants[] = {
#define X(id, name) name,
	HD_VARIANTS(X)
#undef X
};

const char *hd_policy_published(uint32_t i) { return i < NALIASES ? aliases[i].name : NULL; }

static const struct hd_sched_policy *row_of(const char *name, size_t len)
{
	for (const struct hd_sched_policy *row = hd_sched_policies; row->name; row++)
		if (strlen(row->name) == len && !strncmp(row->name, name, len))
			return row;
	return NULL;
}

/* The plain variants of the original take v100 for every type; its objectives are in steps. */
static enum hd_err published(struct hd_policy_setting *set, const struct alias *alias, struct hd_diag *diag)
{
	set->policy = row_of(alias->policy, strlen(alias->policy));
	set->variant = alias->variant;
	set->deadlines = alias->deadlines;
	set->entity_kind = alias->entity_kind;
	set->reference_type = "v100";
	set->published = true;
	return set->policy ? HD_OK : hd_fail(diag, HD_E_INVAL, "the policy %s is not in this build",
		alias->name);
}

/* "..._slo=3x_v100_time": deadlines of 3 times the work on v100. */
static enum hd_err slo_of(const char *name, size_t *len, double *factor, struct hd_diag *diag)
{
	const char *at = strstr(name, "_slo="), *end = at ? strstr(at, "x_v100_time") : NULL;
	char digits[HD_NUM_CAP];

	*len = strlen(name);
	if (!at || !end || end[11])
		return HD_OK;
	*len = (size_t)(at - name);
	snprintf(digits, sizeof digits, "%.*s", (int)(end - at - 5), at + 5);
	return hd_num_f64(digits, 0, 1e9, factor, diag);
}

static enum hd_err unknown(const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (const struct hd_sched_policy *row = hd_sched_policies; row->name; row++)
		hd_near_offer(&near, row->name);
	for (uint32_t i = 0; i < NALIASES; i++)
		hd_near_offer(&near, aliases[i].name);
	return hd_fail(diag, HD_E_INVAL,
		"there is no policy \"%.60s\"%s%s%s (heddle sched policies lists them)", name,
		near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
}

enum hd_err hd_policy_parse(struct hd_policy_setting *set, const char *name, struct hd_diag *diag)
{
	size_t len = strlen(name);
	const char *colon = !strncmp(name, "pop:", 4) ? strchr(name + 4, ':') : NULL;

	if (colon) {
		char digits[HD_NUM_CAP];
		int64_t n = 0;
		snprintf(digits, sizeof digits, "%.*s", (int)(colon - name - 4), name + 4);
		enum hd_err err = hd_num_i64(digits, 1, 1024, &n, diag);
		if (err)
			return err;
		set->npops = (uint32_t)n;
		name = colon + 1;
		len = strlen(name);
	}
	for (int v = 0; v < HD_NVARIANTS; v++) {          /* "las-plain"; a bare name is hetero */
		size_t tail = strlen(variants[v]);
		bool fits = len > tail + 1 && name[len - tail - 1] == '-' &&
			!strcmp(name + len - tail, variants[v]);
		if (fits && row_of(name, len - tail - 1)) {
			set->policy = row_of(name, len - tail - 1);
			set->variant = (enum hd_variant)v;
			return HD_OK;
		}
	}
	if (row_of(name, len)) {
		set->policy = row_of(name, len);
		return HD_OK;
	}
	enum hd_err err = slo_of(name, &len, &set->slo_factor, diag);
	for (uint32_t i = 0; !err && i < NALIASES; i++)
		if (strlen(aliases[i].name) == len && !strncmp(aliases[i].name, name, len))
			return published(set, &aliases[i], diag);
	return err ? err : unknown(name, diag);
}
