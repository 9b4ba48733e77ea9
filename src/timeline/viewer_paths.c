/* Critical paths of the steps that a page shows (analyze/path.h). */
#include <stdlib.h>

#include "timeline/viewer_int.h"

static bool shown(const struct hd_viewer_kept *kept, const struct hd_tl_step *s)
{
	return kept->all || (s->number >= kept->step_from && s->number <= kept->step_to);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Numbers of the steps that are shown, each once, ascending. */
static uint32_t list_numbers(const struct hd_timeline *t, const struct hd_viewer_kept *kept, uint64_t *number)
{
	uint32_t n = 0, once = 0;

	for (uint32_t i = 0; i < t->nsteps; i++)
		if (shown(kept, &t->step[i]))
			number[n++] = t->step[i].number;
	if (n)
		qsort(number, n, sizeof *number, by_value);
	for (uint32_t i = 0; i < n; i++)
		if (!once || number[once - 1] != number[i])
			number[once++] = number[i];
	return once;
}

static void add_path(struct hd_viewer_paths *paths, const struct hd_tl_path *path, uint64_t number)
{
	for (size_t i = 0; i < path->n; i++)
		paths->segment[paths->n++] = (struct hd_viewer_segment){ number, path->segment[i] };
}

enum hd_err hd_viewer_walk(const struct hd_timeline *t, const struct hd_viewer_kept *kept,
	struct hd_arena *arena, struct hd_viewer_paths *paths, struct hd_diag *diag)
{
	struct hd_viewer_paths p = { hd_arena_take(arena, HD_VIEWER_SEGMENTS, sizeof *p.segment), 0 };
	uint64_t *number = hd_arena_take(arena, (size_t)t->nsteps + 1, sizeof *number);
	struct hd_tl_causes causes;
	struct hd_arena own;
	enum hd_err err = HD_OK;

	if (!p.segment || !number)
		return hd_fail(diag, HD_E_NOMEM, "no memory for critical paths of a page");
	uint32_t n = list_numbers(t, kept, number);
	if (n)
		err = hd_tl_causes_make(&causes, t, arena, diag);
	hd_arena_init(&own, 0);
	for (uint32_t i = 0; i < n && !err; i++) {
		struct hd_tl_path path;
		hd_arena_reset(&own);
		err = hd_tl_path_of(&causes, number[i], &own, &path, NULL);
		if (err == HD_E_NOTFOUND) {              /* it was dropped */
			err = HD_OK;
			continue;
		}
		if (err || p.n + path.n > HD_VIEWER_SEGMENTS)
			break;
		add_path(&p, &path, number[i]);
	}
	hd_arena_finish(&own);
	if (err)
		return err == HD_E_NOMEM ? hd_fail(diag, err, "no memory for critical paths of a page") : err;
	*paths = p;
	return HD_OK;
}
