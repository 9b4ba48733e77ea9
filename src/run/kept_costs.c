#include "run/kept_costs.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "run/devices.h"

enum { COSTS_VERSION = 1 };

enum hd_err hd_kept_costs_put(struct hd_rundir *dir, const struct hd_run_costs *costs,
	const struct hd_worker_spec *worker, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "heddle-costs", COSTS_VERSION);
	hd_json_put_i64(&w, "devices", worker->ndevices);
	hd_json_put_i64(&w, "threads", worker->nthreads);
	hd_json_put_f64(&w, "whole", costs->whole);
	hd_json_put_f64(&w, "host", costs->host_ns_per_byte);
	hd_json_put_f64(&w, "took_s", costs->took_s);
	hd_json_put_f64(&w, "late_ns", costs->late_ns);
	hd_json_put_f64(&w, "hop_ns", costs->hop_ns);
	hd_json_put_f64(&w, "pace", costs->pace);
	hd_json_put_f64(&w, "norm_ns", costs->norm_ns);
	hd_json_put_f64(&w, "link_ns_per_byte", costs->link_ns_per_byte);
	hd_json_open_array(&w, "reuse");
	for (unsigned i = 0; i < HD_REUSE_KINDS * HD_REUSE_POINTS; i++)
		hd_json_put_f64(&w, NULL, costs->reuse.by[i / HD_REUSE_POINTS][i % HD_REUSE_POINTS]);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	hd_profile_print(&costs->line.profile, &text);
	hd_text_add(&text, "\n");
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory to keep the costs of a job");
	return hd_rundir_put(dir, HD_RUN_COSTS, text.at, text.len, diag);
}

/* What the first line says. */
struct costs_head {
	int64_t devices, threads;
	double whole, host, took_s, late_ns, hop_ns, pace, norm_ns, link;
	struct hd_reuse reuse;
};

/* Runs that were begun before it was measured have 0. */
static enum hd_err read_later(const struct hd_json *json, const char *name, double *value,
	struct hd_diag *diag)
{
	*value = 0;
	return hd_json_find(json, name) ? hd_json_get_f64(json, name, value, diag) : HD_OK;
}

/* Runs that were begun before there was any have none. */
static enum hd_err read_reuse(struct hd_reuse *reuse, const char *path, const struct hd_json *json,
	struct hd_diag *diag)
{
	const struct hd_json *all = hd_json_find(json, "reuse");
	const unsigned n = HD_REUSE_KINDS * HD_REUSE_POINTS;
	bool counts = hd_json_count(all) == n;
	enum hd_err err = HD_OK;

	hd_reuse_none(reuse);
	for (unsigned i = 0; i < n && counts && !err; i++) {
		double *by = &reuse->by[i / HD_REUSE_POINTS][i % HD_REUSE_POINTS];
		err = hd_json_as_f64(hd_json_item(all, i), by, diag);
		counts = err || (isfinite(*by) && *by >= (i % HD_REUSE_POINTS ? by[-1] : 1));
	}
	return err || counts ? err : hd_fail(diag, HD_E_INPUT,
		"%s: reuse has %u factors from 1 on, rising in each phase", path, n);
}

static enum hd_err read_head(struct costs_head *head, const char *path, const char *text, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *json;
	int64_t version;
	enum hd_err err = hd_json_parse(arena, path, text, len, &json, diag);

	err = err ? err : hd_json_get_i64(json, "heddle-costs", COSTS_VERSION, COSTS_VERSION, &version, diag);
	err = err ? err : hd_json_get_i64(json, "devices", 1, HD_MAX_DEVICES, &head->devices, diag);
	err = err ? err : hd_json_get_i64(json, "threads", 0, HD_MAX_THREADS, &head->threads, diag);
	err = err ? err : hd_json_get_f64(json, "whole", &head->whole, diag);
	err = err ? err : hd_json_get_f64(json, "host", &head->host, diag);
	err = err ? err : hd_json_get_f64(json, "took_s", &head->took_s, diag);
	err = err ? err : read_later(json, "late_ns", &head->late_ns, diag);
	err = err ? err : read_later(json, "hop_ns", &head->hop_ns, diag);
	err = err ? err : read_later(json, "pace", &head->pace, diag);
	err = err ? err : read_later(json, "norm_ns", &head->norm_ns, diag);
	err = err ? err : read_later(json, "link_ns_per_byte", &head->link, diag);
	if (!err && hd_json_find(json, "reuse"))
		err = read_reuse(&head->reuse, path, json, diag);
	else
		hd_reuse_none(&head->reuse);
	if (!err && !(head->whole > 0 && head->host >= 0 && head->late_ns >= 0 && head->norm_ns >= 0 &&
		head->hop_ns >= 0 && head->link >= 0))
		return hd_fail(diag, HD_E_INPUT, "%s: whole is %g, host %g, late_ns %g, hop_ns %g, "
			"norm_ns %g, link_ns_per_byte %g, and no times", path, head->whole, head->host,
			head->late_ns, head->hop_ns, head->norm_ns, head->link);
	return err;
}

enum hd_err hd_kept_costs_get(struct hd_run_costs **costs, struct hd_worker_spec *worker,
	const struct hd_rundir *dir, const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_run_costs *made = NULL;
	struct hd_profile profile;
	struct costs_head head;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(dir, HD_RUN_COSTS, path, sizeof path);
	enum hd_err err = hd_file_read_all(dir->fs, path, arena, HD_PROFILE_BYTES, &bytes, &len, diag);
	if (err)
		return err;
	const char *text = (const char *)bytes, *second = memchr(text, '\n', len);
	const size_t first = second ? (size_t)(second - text) : len;
	err = read_head(&head, path, text, first, arena, diag);
	if (!err && !second)
		return hd_fail(diag, HD_E_INPUT, "%s: its profile is missing", path);
	err = err ? err : hd_profile_parse(&profile, second + 1, len - first - 1, path, arena, diag);
	err = err ? err : hd_run_costs_again(&made, task, &profile, head.whole, arena, diag);
	if (err)
		return err;
	made->took_s = head.took_s;
	made->host_ns_per_byte = head.host;
	made->reuse = head.reuse;
	made->late_ns = head.late_ns;
	made->hop_ns = head.hop_ns > 0 ? head.hop_ns : made->hop_ns;
	made->pace = head.pace;
	made->norm_ns = head.norm_ns;
	made->link_ns_per_byte = head.link;
	worker->ndevices = (uint32_t)head.devices;
	worker->nthreads = (uint32_t)head.threads;
	*costs = made;
	return HD_OK;
}
