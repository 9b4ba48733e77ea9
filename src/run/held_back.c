#include "run/held_back.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "timeline/analyze/summary.h"
#include "timeline/build.h"

_Static_assert((int)HD_HELD_BACK_BYTES == (int)HD_TL_HELD_BYTES,
	"a sentence has the room that it is made for");

/* a ring of so many slots stays as it is: probes of clocks, decisions */
enum { SHORT_RING = 1024, EVENT_BYTES = 600 };

struct held_files {
	struct hd_fs *fs;
	struct hd_arena arena;
	struct hd_map *map;
	struct hd_tl_input *input;
	size_t bytes;
	uint32_t n;
};

/* Mapped; what is no flight file of a process that was made whole is left out. */
static void take_file(struct held_files *f, const char *path)
{
	struct hd_flight_view *view = hd_arena_take(&f->arena, 1, sizeof *view);
	const char *name = hd_arena_text(&f->arena, path, strlen(path));
	struct hd_map *map = &f->map[f->n];
	struct hd_file file;

	if (!view || !name || hd_file_open(f->fs, path, HD_OPEN_READ, &file, NULL))
		return;
	*map = (struct hd_map){ 0 };
	if (hd_file_map(&file, map, NULL))
		*map = (struct hd_map){ 0 };
	(void)!hd_file_close(&file, NULL);
	if (!map->len || hd_flight_parse(map->bytes, map->len, name, view, NULL)) {
		hd_file_unmap(f->fs, map);
		return;
	}
	f->bytes += map->len;
	f->input[f->n++] = (struct hd_tl_input){ name, map->bytes, map->len };
}

static bool take_files(struct held_files *f, const char *run)
{
	static const char end[] = ".hdfr";
	char path[HD_PATH_CAP];
	char **name;
	size_t n;

	if ((size_t)snprintf(path, sizeof path, "%s/flight", run) >= sizeof path ||
		hd_fs_list(f->fs, path, &f->arena, &name, &n, NULL) || !n)
		return false;
	f->map = hd_arena_take(&f->arena, n, sizeof *f->map);
	f->input = hd_arena_take(&f->arena, n, sizeof *f->input);
	for (size_t i = 0; f->map && f->input && i < n && f->bytes <= HD_HELD_BACK_FILE_BYTES; i++) {
		size_t len = strlen(name[i]);
		if (len < sizeof end || strcmp(name[i] + len - strlen(end), end) != 0 ||
			(size_t)snprintf(path, sizeof path, "%s/flight/%s", run, name[i]) >= sizeof path)
			continue;
		take_file(f, path);
	}
	return f->n && f->bytes <= HD_HELD_BACK_FILE_BYTES;
}

static void keep_of(struct hd_tl_ring *ring, uint64_t most)
{
	uint64_t slots = hd_tl_ring_slots(ring), drop = slots > most ? slots - most : 0;

	if (!drop)
		return;
	while (ring->npieces && ring->piece->nslots <= drop) {
		drop -= ring->piece->nslots;
		ring->piece++;
		ring->npieces--;
		ring->cap--;
	}
	assert(ring->npieces);
	ring->piece->first += drop;
	ring->piece->nslots -= drop;
	ring->piece->slot += drop * HD_SLOT_BYTES;
	ring->lead = ring->piece->first;
}

/* Rule 2. */
static void keep_newest(struct hd_tl_lives *lives)
{
	uint64_t nlong = 0, most;

	for (uint32_t i = 0; i < lives->n; i++)
		for (uint32_t r = 0; r < lives->life[i]->info.nrings; r++)
			nlong += hd_tl_ring_slots(&lives->life[i]->ring[r]) > SHORT_RING;
	most = nlong ? HD_HELD_BACK_SLOTS / nlong : HD_HELD_BACK_SLOTS;
	for (uint32_t i = 0; i < lives->n; i++)
		for (uint32_t r = 0; r < lives->life[i]->info.nrings; r++)
			keep_of(&lives->life[i]->ring[r], most > SHORT_RING ? most : SHORT_RING);
}

static void judge(struct held_files *f, uint64_t began, uint64_t steps, char text[HD_HELD_BACK_BYTES])
{
	const uint64_t most = steps < HD_TL_SUMMARY_STEPS ? steps : HD_TL_SUMMARY_STEPS;
	struct hd_tl_summary summary;
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	struct hd_timeline tl;
	struct hd_arena scratch;
	uint32_t reference;

	if (hd_tl_collect(&f->arena, f->input, f->n, &lives, NULL))
		return;
	keep_newest(&lives);
	if (hd_tl_align(&f->arena, &lives, &clock, &reference, NULL) ||
		hd_tl_build_of(&f->arena, &lives, clock, reference, &tl, NULL))
		return;
	hd_arena_init(&scratch, 0);
	/* of a run that records no longer there may be files of steps before it began */
	if (!hd_tl_summary_of(&tl, most, &f->arena, &scratch, &summary, NULL) && summary.range.first >= began)
		hd_tl_held(&summary, text);
	hd_arena_finish(&scratch);
}

void hd_held_back_look(struct hd_fs *fs, const char *run, uint64_t began, uint64_t step,
	char text[HD_HELD_BACK_BYTES])
{
	struct held_files f = { .fs = fs };

	text[0] = '\0';
	if (step < began || step - began < HD_HELD_BACK_STEPS)
		return;
	hd_arena_init(&f.arena, 0);
	if (take_files(&f, run))
		judge(&f, began, step - began, text);
	for (uint32_t i = 0; i < f.n; i++)
		hd_file_unmap(fs, &f.map[i]);
	hd_arena_finish(&f.arena);
}

void hd_held_back_note(struct hd_rundir *dir, uint64_t began, uint64_t step, char text[HD_HELD_BACK_BYTES])
{
	char room[EVENT_BYTES];
	struct hd_json_writer w;
	struct hd_text body;

	hd_held_back_look(dir->fs, dir->path, began, step, text);
	if (!text[0])
		return;
	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", text);
	hd_json_close(&w);
	if (body.full)
		return;
	body.at[body.len - 1] = '\0';
	hd_rundir_event(dir, "held_back", step, body.at + 1);
}
