#include "run/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

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
			"devices \"%s\": this build has auto, auto:N, cores:N, cores:NxT, reference:N and "
			"null:N", text);
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
	enum hd_err err = parse_auto(devices, &options->auto_cores) ? HD_OK :
		parse_devices(devices, &options->worker, diag);
	return err || !threads ? err : take_threads(options, job->nvns, *threads, ncores, diag);
}
