#include <stdio.h>

#include "base/names.h"
#include "sweep/table.h"
#include "daemon/daemon_int.h"

/* Sweeps that lie in the scheduler's folder, as `heddle sweep` last wrote them (explore/explore.h). They are
 * of the folder's owner: it alone can write there. */

enum { SWEEPS = 256, TABLE_BYTES = 4 << 20 };

/* The object in DIR/sweeps/NAME/table.json, in the arena, and its text without braces and what follows. */
static enum hd_err read_table(struct hd_daemon *d, const char *name, struct hd_arena *arena,
	const struct hd_json **json, const char **members, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;

	if (!hd_name_valid(name) || name[0] == '.')
		return hd_fail(diag, HD_E_NOTFOUND, "there is no sweep %.60s", name);
	snprintf(path, sizeof path, "%.2000s/sweeps/%.64s/table.json", d->spec->dir, name);
	enum hd_err err = hd_file_read_all(d->spec->fs, path, arena, TABLE_BYTES, &bytes, &len, NULL);
	if (err)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no sweep %.60s in %.200s/sweeps that has begun",
			name, d->spec->dir);
	while (len && bytes[len - 1] == '\n')
		len--;
	err = hd_json_parse(arena, path, (const char *)bytes, len, json, diag);
	if (!err && (hd_json_kind(*json) != HD_JSON_OBJECT || !hd_json_count(*json)))
		err = hd_fail(diag, HD_E_INTEGRITY, "%s is no table of a sweep", path);
	if (err)
		return err;
	*members = hd_arena_text(arena, (const char *)bytes + 1, len - 2);
	return *members ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a sweep");
}

struct sweep_list { struct hd_daemon *d; char **name; uint32_t n; };

/* One table is in memory at a time. */
static void fill_sweeps(void *user, struct hd_json_writer *w)
{
	const struct sweep_list *list = user;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	for (uint32_t i = 0; i < list->n; i++) {
		struct hd_sweep_table table = { .best = -1 };
		const struct hd_json *json, *trials = NULL;
		const char *members;
		hd_arena_reset(&arena);
		/* one that has not begun, or is damaged, is none */
		if (read_table(list->d, list->name[i], &arena, &json, &members, NULL) ||
			hd_fields_read(&hd_sweep_table_fields, 0, json, &table, NULL) ||
			hd_json_get(json, "trials", HD_JSON_ARRAY, &trials, NULL))
			continue;
		hd_fields_put_object(&hd_answer_sweep_fields, 0, &(struct hd_answer_sweep){
			.name = list->name[i], .method = table.method, .metric = table.metric,
			.goal = table.goal, .over = table.over, .best = table.best, .steps = table.steps,
			.exhaustive = table.exhaustive, .trials_n = (int64_t)hd_json_count(trials) }, NULL,
			w);
	}
	hd_arena_finish(&arena);
}

enum hd_err daemon_show_sweeps(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct sweep_list list = { .d = d };
	char path[HD_PATH_CAP];
	size_t n = 0;

	(void)ask;
	hd_arena_reset(&d->scratch);
	snprintf(path, sizeof path, "%.2000s/sweeps", d->spec->dir);
	enum hd_err err = hd_fs_list(d->spec->fs, path, &d->scratch, &list.name, &n, diag);
	if (err && err != HD_E_NOTFOUND)
		return err;
	list.n = err ? 0 : n < SWEEPS ? (uint32_t)n : SWEEPS;
	hd_fields_put(&hd_answer_sweeps_fields, 0, &(struct hd_answer_sweeps){
		.sweeps = { .fill = fill_sweeps, .user = &list } }, w);
	return HD_OK;
}

enum hd_err daemon_show_sweep(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const char *name = "", *members;
	const struct hd_json *json;
	enum hd_err err = hd_json_get_text(ask, "sweep", &name, diag);

	hd_arena_reset(&d->scratch);
	if (!err)
		err = read_table(d, name, &d->scratch, &json, &members, diag);
	if (!err)
		hd_fields_put_members(w, members);
	return err;
}
