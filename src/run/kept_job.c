#include "run/kept_job.h"

enum { HD_RUN_JOB_BYTES = 1 << 20 };

enum hd_err hd_kept_job_put(struct hd_rundir *dir, const struct hd_kept_value *of, size_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job *kept = hd_arena_take(arena, 1, sizeof *kept);
	struct hd_text text, warnings;
	char path[HD_PATH_CAP];
	uint8_t *file;
	size_t len;

	if (!kept)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the job");
	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	enum hd_err err = hd_file_read_all(dir->fs, path, arena, HD_RUN_JOB_BYTES, &file, &len, diag);
	hd_text_init(&warnings, arena);
	if (!err)
		err = hd_job_parse(kept, path, (const char *)file, len, NULL, 0, arena, diag, &warnings);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		kept->value[of[i].key] = of[i].value;
	hd_text_init(&text, arena);
	hd_job_json(kept, false, &text);
	hd_text_add(&text, "\n");
	return hd_rundir_put(dir, HD_RUN_JOB, text.at, text.len, diag);
}
