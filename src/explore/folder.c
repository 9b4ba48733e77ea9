#include <stdio.h>
#include <string.h>

#include "sweep/page.h"
#include "driver/pid_lock.h"
#include "explore/explore_int.h"

/* The sweep's folder: lock, record, table, page. */

enum { HD_RECORD_BYTES = 64 << 20 };

static enum hd_err add_line(struct explore *x, const struct hd_text *line, struct hd_diag *diag)
{
	enum hd_err err = line->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a line") :
		hd_lines_add(&x->record, line->at, line->len, diag);

	return err ? err : hd_file_sync(&x->record.file, diag);
}

enum hd_err explore_open(struct explore *x, bool *began, struct hd_diag *diag)
{
	const struct hd_explore_spec *s = x->spec;
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;

	*began = false;
	if ((size_t)snprintf(x->path, sizeof x->path, "%s/sweeps/%s", s->dir, s->name) >= sizeof x->path)
		return hd_fail(diag, HD_E_INVAL, "the path of %.80s is too long", s->dir);
	enum hd_err err = hd_fs_mkdirs(s->fs, x->path, diag);
	snprintf(path, sizeof path, "%s/lock", x->path);
	if (!err)
		err = hd_pid_lock_take(&x->lock, s->fs, s->clock, path, 1, 1, NULL);
	if (err == HD_E_AGAIN)
		return hd_fail(diag, err, "another process drives the sweep %s in %s", s->name, x->path);
	snprintf(path, sizeof path, "%s/record.ndjson", x->path);
	if (!err)
		err = hd_lines_open(&x->record, s->fs, path, diag);
	hd_arena_reset(&x->scratch);
	if (!err)
		err = hd_file_read_all(s->fs, path, &x->scratch, HD_RECORD_BYTES, &bytes, &len, diag);
	return err ? err : hd_sweep_replay(path, (const char *)bytes, len, &x->id, s->sweep, x->rung,
		x->nrungs,
		x->trials, began, diag);
}

enum hd_err explore_begin(struct explore *x, uint32_t parallel, struct hd_diag *diag)
{
	struct hd_text line;

	hd_arena_reset(&x->scratch);
	hd_text_init(&line, &x->scratch);
	hd_sweep_record_begin(&x->id, x->spec->sweep->ntrials, parallel, &line);
	enum hd_err err = add_line(x, &line, diag);
	if (!err)
		err = hd_fs_sync_folder(x->spec->fs, x->path, diag);
	if (!err)
		hd_trials_begin(x->trials, x->spec->sweep, x->rung, x->nrungs, parallel);
	return err;
}

enum hd_err explore_take(struct explore *x, const struct hd_trial_event *event, struct hd_diag *diag)
{
	char room[4096];                          /* each byte of `why` may take six, as JSON */
	struct hd_text line;

	hd_text_fixed(&line, room, sizeof room);
	hd_sweep_record_event(event, &line);
	enum hd_err err = add_line(x, &line, diag);
	return err ? err : hd_trials_take(x->trials, event, diag);
}

/* Both can be made again at any time from the record. */
enum hd_err explore_write(struct explore *x, struct hd_diag *diag)
{
	struct hd_sweep_table table;
	struct hd_text text, page;
	struct hd_arena arena;
	char path[HD_PATH_CAP];

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_text_init(&page, &arena);
	enum hd_err err = hd_sweep_table_make(&table, x->spec->name, x->spec->sweep, x->trials, &arena, diag);
	if (!err) {
		hd_sweep_table_json(&table, &text);
		hd_sweep_page(&table, x->spec->sweep, x->trials, &page);
		err = text.full || page.full ? hd_fail(diag, HD_E_NOMEM, "no memory for a page") : HD_OK;
	}
	snprintf(path, sizeof path, "%s/table.json", x->path);
	if (!err)
		err = hd_file_write_atomic(x->spec->fs, path, text.at, text.len, diag);
	snprintf(path, sizeof path, "%s/sweep.html", x->path);
	if (!err)
		err = hd_file_write_atomic(x->spec->fs, path, page.at, page.len, diag);
	hd_arena_finish(&arena);
	return err;
}

void explore_close(struct explore *x)
{
	(void)!hd_lines_close(&x->record, NULL);
	(void)!hd_file_close(&x->lock, NULL);
}
