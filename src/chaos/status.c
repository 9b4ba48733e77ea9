#include "chaos/status.h"

#include <stdio.h>
#include <string.h>

static enum hd_err read_worker(const struct hd_json *json, struct hd_status_worker *w, struct hd_diag *diag)
{
	const char *in = "";
	enum hd_err err = hd_json_get_i64(json, "id", 0, INT64_MAX, &w->id, diag);

	if (!err)
		err = hd_json_get_i64(json, "pid", 0, INT64_MAX, &w->pid, diag);
	if (!err)
		err = hd_json_get_text(json, "state", &in, diag);
	w->member = !strcmp(in, "member");
	return err ? err : hd_json_get_i64(json, "virtual_nodes", 0, INT64_MAX, &w->virtual_nodes, diag);
}

enum hd_err hd_status_read(const struct hd_json *answer, struct hd_status *status, struct hd_diag *diag)
{
	struct hd_status s = { .step = 0 };
	const struct { const char *key; int64_t *at; } number[] = { { "pid", &s.coordinator }, { "step",
		&s.step },
		{ "membership", &s.epoch }, { "term", &s.term }, { "members", &s.members },
		{ "target", &s.target } };
	const struct { const char *key; double *at; } real[] = { { "loss", &s.loss }, { "step_ms",
		&s.step_ms } };
	const struct hd_json *workers = NULL;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof number / sizeof *number && !err; i++)
		err = hd_json_get_i64(answer, number[i].key, 0, INT64_MAX, number[i].at, diag);
	for (size_t i = 0; i < sizeof real / sizeof *real && !err; i++)
		err = hd_json_get_f64(answer, real[i].key, real[i].at, diag);
	if (!err)
		err = hd_json_get(answer, "workers", HD_JSON_ARRAY, &workers, diag);
	for (size_t i = 0; !err && i < hd_json_count(workers) && s.nworkers < HD_STATUS_WORKERS; i++)
		err = read_worker(hd_json_item(workers, i), &s.worker[s.nworkers++], diag);
	if (!err)
		*status = s;
	return err;
}

uint32_t hd_status_split(const struct hd_status *status, char *text, size_t cap)
{
	uint32_t n = 0;
	size_t at = 0;

	*text = 0;
	for (uint32_t i = 0; i < status->nworkers; i++) {
		char one[24];
		if (!status->worker[i].member)
			continue;
		int len = snprintf(one, sizeof one, "%s%lld", n++ ? "/" : "",
			(long long)status->worker[i].virtual_nodes);
		if (at + (size_t)len < cap) {
			memcpy(text + at, one, (size_t)len + 1);
			at += (size_t)len;
		} else {
			cap = 0;          /* none after one that did not fit */
		}
	}
	return n;
}
