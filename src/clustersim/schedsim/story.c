#include "clustersim/schedsim/story.h"

#include <math.h>
#include <string.h>

static const double FIRST_BIN_S = 60;

static void widen(struct hd_sched_story *s)
{
	for (uint32_t i = 0; i < HD_STORY_BINS / 2; i++)
		s->bin[i] = (struct story_bin){ s->bin[2 * i].device_s + s->bin[2 * i + 1].device_s,
			s->bin[2 * i].usd + s->bin[2 * i + 1].usd };
	memset(s->bin + HD_STORY_BINS / 2, 0, HD_STORY_BINS / 2 * sizeof *s->bin);
	s->bin_s *= 2;
}

static void fill_bins(struct hd_sched_story *s, double devices, double usd, double from_s, double to_s)
{
	while (to_s - s->start_s > s->bin_s * HD_STORY_BINS)
		widen(s);
	for (uint32_t i = (uint32_t)((from_s - s->start_s) / s->bin_s); i < HD_STORY_BINS; i++) {
		double low = s->start_s + i * s->bin_s, part = fmin(to_s, low + s->bin_s) - fmax(from_s, low);
		if (low >= to_s)
			break;
		if (!(part > 0))
			continue;
		s->bin[i].device_s += part * devices;
		s->bin[i].usd += usd * part / (to_s - from_s);
	}
}

/* Full: the two neighbours that span least become one, of the devices of the longer; so all bars stay
 * about equally fine. */
static void join_bars(struct story_bar *bar, uint32_t *n)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i + 1 < *n; i++)
		if (bar[i + 1].to_s - bar[i].from_s < bar[best + 1].to_s - bar[best].from_s)
			best = i;
	struct story_bar a = bar[best], b = bar[best + 1], joined = a.to_s - a.from_s >= b.to_s - b.from_s ?
		a : b;
	joined.from_s = a.from_s;
	joined.to_s = b.to_s;
	bar[best] = joined;
	memmove(&bar[best + 1], &bar[best + 2], (*n - best - 2) * sizeof *bar);
	--*n;
}

static void ran(void *self, uint64_t job, uint32_t type, double devices, double usd, double from_s,
	double to_s)
{
	struct hd_sched_story *s = self;

	if (!s->started)
		s->start_s = from_s;
	s->started = true;
	s->end_s = fmax(s->end_s, to_s);
	fill_bins(s, devices, usd, fmax(from_s, s->start_s), to_s);
	if (job < s->first || job - s->first >= HD_STORY_JOBS)
		return;
	uint32_t *n = &s->job[job - s->first].n;
	struct story_bar *bar = s->job[job - s->first].bar, *last = *n ? &bar[*n - 1] : NULL;
	if (last && last->type == type && !(last->devices < devices || last->devices > devices) &&
		from_s <= last->to_s) {
		last->to_s = fmax(last->to_s, to_s);
		return;
	}
	if (*n == HD_STORY_BARS) {
		join_bars(bar, n);
		s->job[job - s->first].joined = true;
	}
	bar[(*n)++] = (struct story_bar){ from_s, to_s, devices, type };
}

enum hd_err hd_sched_story_open(struct hd_sched_story **story, const struct hd_sched_sim_setting *set,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_sched_story *s = hd_arena_take(arena, 1, sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the story of a simulation");
	*s = (struct hd_sched_story){ .watch = { s, ran }, .first = set->first, .bin_s = FIRST_BIN_S };
	*story = s;
	return HD_OK;
}

const struct hd_sim_watch *hd_sched_story_watch(const struct hd_sched_story *story) { return &story->watch; }
