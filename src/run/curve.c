#include "run/curve.h"

#include <string.h>

#include "base/json.h"

struct curve_reader {
	struct hd_file file;
	int64_t size;
	struct hd_loss_point *point;             /* [most + 1] */
	uint32_t n;
	int64_t last;                             /* where the line of the last one begins; -1: none */
	char buf[HD_CURVE_READ];
};

static bool read_line(const char *line, size_t len, struct hd_loss_point *p)
{
	const struct { const char *key; double *to; } real[] = { { "t", &p->t }, { "lr", &p->lr },
		{ "step_ms", &p->step_ms } };
	const struct hd_json *json = NULL;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	*p = (struct hd_loss_point){ 0 };
	bool good = !hd_json_parse(&arena, "line", line, len, &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT &&
		!hd_json_get_i64(json, "step", 0, INT64_MAX, &p->step, NULL) &&
		!hd_json_get_f64(json, "loss", &p->loss, NULL);
	for (size_t i = 0; good && i < sizeof real / sizeof *real; i++)
		if (hd_json_find(json, real[i].key))
			(void)!hd_json_get_f64(json, real[i].key, real[i].to, NULL);
	if (good && hd_json_find(json, "workers"))
		(void)!hd_json_get_i64(json, "workers", 0, INT64_MAX, &p->workers, NULL);
	hd_arena_finish(&arena);
	return good;
}

static void take(struct curve_reader *r, int64_t at, const char *line, size_t len)
{
	struct hd_loss_point p;

	if (at <= r->last || !read_line(line, len, &p))
		return;
	r->last = at;
	while (r->n && r->point[r->n - 1].step >= p.step)
		r->n--;
	r->point[r->n++] = p;
}

/* The first whole line that begins at `from` or later; `last`: the last one that does. */
static void look(struct curve_reader *r, int64_t from, bool last)
{
	size_t len = 0, begin = 0, at = 0, end = 0;
	int64_t before = from ? from - 1 : 0;     /* a line begins behind a line feed, or the file */

	if (hd_file_pread(&r->file, r->buf, sizeof r->buf, before, &len, NULL))
		return;
	const char *feed = from ? memchr(r->buf, '\n', len) : NULL;
	if (from && !feed)
		return;
	begin = from ? (size_t)(feed - r->buf) + 1 : 0;
	while ((feed = memchr(r->buf + begin, '\n', len - begin))) {
		at = begin;
		end = (size_t)(feed - r->buf);
		begin = end + 1;
		if (!last)
			break;
	}
	if (end)
		take(r, before + (int64_t)at, r->buf + at, end - at);
}

enum hd_err hd_curve_read(struct hd_fs *fs, const char *path, uint32_t most, struct hd_arena *arena,
	const struct hd_loss_point **points, uint32_t *n, struct hd_diag *diag)
{
	struct curve_reader *r = hd_arena_take(arena, 1, sizeof *r);
	struct hd_stat stat;

	if (r)
		*r = (struct curve_reader){ .last = -1,
			.point = hd_arena_take(arena, most + 1u, sizeof *r->point) };
	if (!r || !r->point)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u points", most);
	enum hd_err err = hd_fs_stat(fs, path, &stat, diag);
	if (!err)
		err = hd_file_open(fs, path, HD_OPEN_READ, &r->file, diag);
	if (err)
		return err;
	r->size = stat.size_bytes;
	for (uint32_t i = 0; i + 1 < most; i++)
		look(r, r->size * i / (most - 1), false);
	look(r, r->size > HD_CURVE_READ ? r->size - HD_CURVE_READ + 1 : 0, true);
	(void)!hd_file_close(&r->file, NULL);
	*points = r->point;
	*n = r->n;
	return HD_OK;
}
