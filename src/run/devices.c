#include "run/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cost/topology.h"

static const struct { const char *word, *kind; } kinds[] = { { "cores", "cpu" }, { "cpu", "cpu" },
	{ "reference", "reference" }, { "null", "null" } };

static bool parse_auto(const char *text, uint32_t *cores)
{
	uint64_t n = 0;

	if (strncmp(text, "auto", 4) != 0 || (text[4] && (text[4] != ':' ||
		hd_num_u64(text + 5, HD_MAX_DEVICES, &n, NULL) || n == 0)))
		return false;
	*cores = (uint32_t)n;
	return true;
}

/* NULL: there is no such kind. */
static const char *kind_of(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strlen(kinds[i].word) == len && !strncmp(kinds[i].word, word, len))
			return kinds[i].kind;
	return NULL;
}

static enum hd_err parse_devices(const char *text, struct hd_worker_spec *spec, struct hd_diag *diag)
{
	const char *colon = strchr(text, ':'), *counts = colon ? colon + 1 : text, *x = strchr(counts, 'x');
	char number[HD_NUM_CAP] = "";
	uint64_t d = 0, t = 1;

	spec->kind = colon ? kind_of(text, (size_t)(colon - text)) : "cpu";
	if (!spec->kind)
		return hd_fail(diag, HD_E_INVAL,
			"devices \"%s\": this build has auto, auto:N, cores:N, cores:NxT, reference:N, "
			"null:N and paced:N", text);
	snprintf(number, sizeof number, "%.*s", x ? (int)(x - counts) : (int)sizeof number - 1, counts);
	if (hd_num_u64(number, HD_MAX_DEVICES, &d, NULL) || d == 0 ||
		(x && (hd_num_u64(x + 1, HD_MAX_THREADS, &t, NULL) || t == 0)))
		return hd_fail(diag, HD_E_INVAL,
			"devices \"%s\": write a number from 1 to %d, as 4, cores:4 or cores:2x2 (two "
			"devices of two threads, at most %d)", text,
			HD_MAX_DEVICES, HD_MAX_THREADS);
	spec->ndevices = (uint32_t)d;
	spec->nthreads = (uint32_t)t;
	return HD_OK;
}

static const char paced[] = "paced:";

static bool is_paced(const char *text) { return !strncmp(text, paced, sizeof paced - 1); }

/* Numbers between commas, the first `len` characters of a text; false: one of them is none. */
static bool parse_list(struct hd_run_speeds *list, const char *text, size_t len)
{
	const char *end = text + len;

	for (list->n = 0; text <= end; list->n++) {
		char number[HD_NUM_CAP];
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t n = (size_t)((comma ? comma : end) - text);
		if (list->n == HD_RUN_SPEEDS || n >= sizeof number)
			return false;
		snprintf(number, sizeof number, "%.*s", (int)n, text);
		if (hd_num_f64(number, HD_CLUSTER_SPEED_MIN, HD_CLUSTER_SPEED_MAX, &list->at[list->n], NULL))
			return false;
		text += n + 1;
	}
	return true;
}

static enum hd_err parse_paced(const char *text, struct hd_run_options *options, struct hd_diag *diag)
{
	const char *counts = text + sizeof paced - 1, *colon = strchr(counts, ':');
	const size_t len = colon ? (size_t)(colon - counts) : strlen(counts);
	struct hd_run_speeds list = { .n = 0 };
	double pace = 1;
	uint64_t n = 0;
	bool good = parse_list(&list, counts, len) && (!colon || !hd_num_f64(colon + 1, HD_CLUSTER_SPEED_MIN,
		HD_CLUSTER_SPEED_MAX, &pace, NULL));

	if (good && list.n == 1) {
		n = list.at[0] <= HD_MAX_DEVICES ? (uint64_t)list.at[0] : 0;
		good = n > 0 && (double)n == list.at[0];
		list.n = 0;
	}
	if (!good)
		return hd_fail(diag, HD_E_INVAL,
			"devices \"%s\": paced:N, or paced:SPEED,SPEED,... for at most %d devices, and :X "
			"behind it to take X times as long", text, HD_RUN_SPEEDS);
	options->worker.kind = "null";
	options->worker.ndevices = list.n ? list.n : (uint32_t)n;
	options->paced = list;
	options->pace = pace;
	return HD_OK;
}

enum hd_err hd_devices_speeds(struct hd_run_options *options, const char *text, struct hd_diag *diag)
{
	return parse_list(&options->speeds, text, strlen(text)) ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"--speeds %s: a number above 0 for each device, as 1,1,0.5, and at most %d", text,
		HD_RUN_SPEEDS);
}

static enum hd_err take_threads(struct hd_run_options *options, uint32_t nvns, uint64_t threads,
	uint32_t ncores, struct hd_diag *diag)
{
	uint64_t d;

	if (threads < 1 || threads > HD_MAX_THREADS)
		return hd_fail(diag, HD_E_INVAL, "--threads is from 1 to %d", HD_MAX_THREADS);
	options->worker.nthreads = (uint32_t)threads;
	if (options->worker.ndevices)
		return HD_OK;
	d = (options->auto_cores ? options->auto_cores : ncores) / threads;
	options->worker.ndevices = (uint32_t)(d < 1 ? 1 : d < nvns ? d : nvns);
	return HD_OK;
}

enum hd_err hd_devices_ask(struct hd_run_options *options, const struct hd_job *job, const char *devices,
	const uint64_t *threads, uint32_t ncores, struct hd_diag *diag)
{
	options->worker = (struct hd_worker_spec){ .kind = "cpu", .nthreads = 1, .spin = true };
	if (!job->value[HD_JOB_MEMORY].is_auto)
		options->worker.memory_limit_bytes = (uint64_t)hd_job_int(job, HD_JOB_MEMORY);
	if (!devices)
		devices = job->value[HD_JOB_DEVICES].text;
	enum hd_err err = is_paced(devices) ? parse_paced(devices, options, diag) :
		parse_auto(devices, &options->auto_cores) ? HD_OK :
		parse_devices(devices, &options->worker, diag);
	return err || !threads ? err : take_threads(options, job->nvns, *threads, ncores, diag);
}
