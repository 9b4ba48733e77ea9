#include "run/run_lines.h"

#include <string.h>

#include "base/alloc.h"

enum { LINE_CAP = 1 << 16, CHUNK_BYTES = 1 << 16 };

struct run_lines {
	char line[LINE_CAP];
	size_t len;
	bool too_long;
	struct hd_arena arena;                    /* of the line */
	uint64_t unreadable;
	void (*take)(void *self, const struct hd_json *line);
	void *self;
};

static void end_line(struct run_lines *l)
{
	const struct hd_json *json;

	if (l->too_long || (l->len && hd_json_parse(&l->arena, "line", l->line, l->len, &json, NULL)))
		l->unreadable++;
	else if (l->len)
		l->take(l->self, json);
	hd_arena_reset(&l->arena);
	l->len = 0;
	l->too_long = false;
}

static void feed(struct run_lines *l, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n')
			end_line(l);
		else if (l->len < LINE_CAP)
			l->line[l->len++] = bytes[i];
		else
			l->too_long = true;
	}
}

enum hd_err hd_run_lines_read(const struct hd_rundir *dir, const char *name, void (*take)(void *self,
	const struct hd_json *line), void *self, uint64_t *unreadable, struct hd_diag *diag)
{
	struct run_lines *l = hd_alloc(sizeof *l);
	char path[HD_PATH_CAP], chunk[CHUNK_BYTES];
	struct hd_file file = { 0 };
	size_t got = 0;

	if (!l)
		return hd_fail(diag, HD_E_NOMEM, "no memory to read %s", name);
	memset(l, 0, sizeof *l);
	l->take = take;
	l->self = self;
	hd_arena_init(&l->arena, 0);
	hd_rundir_path(dir, name, path, sizeof path);
	struct hd_diag why = { "" };
	enum hd_err err = hd_file_open(dir->fs, path, HD_OPEN_READ, &file, &why);
	if (err) {
		err = err == HD_E_NOTFOUND ? HD_OK : hd_fail(diag, err, "%s", why.text);
		goto out;
	}
	do {
		err = hd_file_read(&file, chunk, sizeof chunk, &got, diag);
		if (!err)
			feed(l, chunk, got);
	} while (!err && got == sizeof chunk);
	if (!err)
		end_line(l);
	enum hd_err closed = hd_file_close(&file, diag);
	err = err ? err : closed;
out:
	*unreadable += l->unreadable;
	hd_arena_finish(&l->arena);
	hd_free(l);
	return err;
}
