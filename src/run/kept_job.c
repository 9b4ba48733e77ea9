#include "run/kept_job.h"

#include "run/job_files.h"

enum { HD_RUN_JOB_BYTES = 1 << 20 };

enum hd_err hd_kept_job_read(struct hd_job **kept, const struct hd_rundir *dir, const struct hd_job_set *set,
	uint32_t nset, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_text warnings;
	char path[HD_PATH_CAP];
	uint8_t *file;
	size_t len;

	*kept = hd_arena_take(arena, 1, sizeof **kept);
	if (!*kept)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the job");
	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	hd_text_init(&warnings, arena);
	enum hd_err err = hd_file_read_all(dir->fs, path, arena, HD_RUN_JOB_BYTES, &file, &len, diag);
	return err ? err : hd_job_parse(*kept, path, (const char *)file, len, set, nset, arena, diag,
		&warnings);
}

static enum hd_err read_kept(struct hd_job **kept, struct hd_rundir *dir, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_kept_job_read(kept, dir, NULL, 0, arena, diag);
}

static enum hd_err write_kept(struct hd_rundir *dir, const struct hd_job *kept, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_job_json(kept, false, &text);
	hd_text_add(&text, "\n");
	return hd_rundir_put(dir, HD_RUN_JOB, text.at, text.len, diag);
}

enum hd_err hd_kept_job_put(struct hd_rundir *dir, const struct hd_kept_value *of, size_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job *kept;
	enum hd_err err = read_kept(&kept, dir, arena, diag);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		kept->value[of[i].key] = of[i].value;
	return write_kept(dir, kept, arena, diag);
}

static bool is_recorded(const struct hd_job *job)
{
	const int64_t mode = hd_job_int(job, HD_JOB_MODE);

	return mode == HD_MODE_BOUNDED || mode == HD_MODE_REPLAY;
}

/* As the state table of the two differs: its rows of earlier steps, and the recording. */
static bool other_rows(const struct hd_job *a, const struct hd_job *b)
{
	const bool recorded = is_recorded(a), steps = a->value[HD_JOB_STEPS].is_none ||
		b->value[HD_JOB_STEPS].is_none || hd_job_int(a, HD_JOB_STEPS) != hd_job_int(b, HD_JOB_STEPS);

	if (recorded != is_recorded(b) || hd_job_int(a, HD_JOB_STALENESS) != hd_job_int(b, HD_JOB_STALENESS))
		return true;
	return recorded ? steps && !hd_hash_same(a->hash, b->hash) :
		hd_job_int(a, HD_JOB_MODE) != hd_job_int(b, HD_JOB_MODE);
}

enum hd_err hd_kept_job_settings(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum { NPATHS = 4 };
	static const enum hd_job_key paths[NPATHS] = { HD_JOB_DATA_PATH, HD_JOB_BOUNDARIES, HD_JOB_PAR_PLAN,
		HD_JOB_NET_KEY };
	struct hd_job *kept;
	bool any = false;
	enum hd_err err = read_kept(&kept, dir, arena, diag);

	if (err)
		return err;
	if (other_rows(kept, job))
		return hd_fail(diag, HD_E_INVAL, "the run began " HD_OTHER_ROWS);
	if (!hd_hash_same(kept->hash, job->hash))
		return hd_fail(diag, HD_E_INVAL,
			"what fixes the result differs from the job that the run began with, and its workers "
			"go on with that: leave out -s and HEDDLE_ variables that change it, or resume in "
			"one process (without --workers) with --new-semantics");
	for (int key = 0; key < HD_JOB_NKEYS; key++) {
		uint8_t origin = job->value[key].origin;

		if (hd_job_keys[key].result || (origin != HD_FROM_SET && origin != HD_FROM_ENV))
			continue;
		kept->value[key] = job->value[key];
		any = true;
		for (size_t i = 0; i < NPATHS; i++)
			if (paths[i] == (enum hd_job_key)key && !kept->value[key].is_none)
				kept->value[key].text = hd_job_file_from_root(job->value[key].text, arena);
	}
	return any ? write_kept(dir, kept, arena, diag) : HD_OK;
}
