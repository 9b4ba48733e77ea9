#include "run/kept_forecast.h"

#include <stdio.h>
#include <string.h>

#include "run/kept_plan.h"

enum hd_err hd_forecast_keep(const struct hd_forecast *forecast, struct hd_rundir *dir, uint32_t number,
	const char *what, struct hd_diag *diag)
{
	char name[64], folder[HD_PATH_CAP];
	struct hd_arena arena;
	struct hd_text text;
	struct hd_json_writer w;

	snprintf(name, sizeof name, HD_PLAN_FOLDER "/%04u.%s.json", number, what);
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "plan", number);
	hd_forecast_put(forecast, &w);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	enum hd_err err = text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for %s", name) :
		text.len > HD_FORECAST_BYTES ? hd_fail(diag, HD_E_NOSPACE,
		"%s would have %zu bytes, of %d that are read: what so many stages take is not kept",
		name, text.len, HD_FORECAST_BYTES) : HD_OK;
	hd_rundir_path(dir, HD_PLAN_FOLDER, folder, sizeof folder);
	err = err ? err : hd_fs_mkdirs(dir->fs, folder, diag);
	err = err ? err : hd_rundir_put(dir, name, text.at, text.len, diag);
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_forecast_newest(const struct hd_json **json, const struct hd_rundir *dir,
	struct hd_arena *arena, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint32_t number;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_plan_newest_of(&number, "." HD_KEPT_MEASURED ".json", dir->fs, dir->path, diag);

	if (err)
		return err;
	snprintf(path, sizeof path, "%s/" HD_PLAN_FOLDER "/%04u." HD_KEPT_MEASURED ".json", dir->path,
		number);
	err = hd_file_read_all(dir->fs, path, arena, HD_FORECAST_BYTES, &bytes, &len, diag);
	return err ? err : hd_json_parse(arena, path, (const char *)bytes, len, json, diag);
}
