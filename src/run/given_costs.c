#include "run/given_costs.h"

enum hd_err hd_given_costs(struct hd_run_costs **costs, const struct hd_task *task, struct hd_fs *fs,
	const char *path, double pace, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_profile profile;
	struct hd_diag why = { "" };
	uint8_t *bytes;
	size_t len;

	enum hd_err err = hd_file_read_all(fs, path, arena, HD_PROFILE_BYTES, &bytes, &len, diag);
	err = err ? err : hd_profile_read(&profile, (const char *)bytes, len, path, arena, diag);
	if (err)
		return err;
	err = hd_run_costs_waiting(costs, task, &profile, pace, arena, &why);
	return err ? hd_fail(diag, err, "%s: %s", path, why.text) : HD_OK;
}
