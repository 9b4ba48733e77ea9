/* What a seed decides before its run begins. */
#include "protocol/simulation_int.h"

/* Each is of a bucket and the next one, or of the first and the last as slices are; alike in all shapes. */
static void draw_tensors(struct sim_world *s, struct sim_shape *to)
{
	struct hd_bucket_tensors t = { 0, to->first, to->of };

	for (uint32_t b = 0; b < s->nbuckets && s->seed & HD_SIM_TENSORS && s->nbuckets > 1; b++)
		if ((s->seed >> b % 8 ^ b) % 3) {
			to->of[2 * t.n] = b + 1 < s->nbuckets ? b : 0;
			to->of[2 * t.n + 1] = b + 1 < s->nbuckets ? b + 1 : b;
			t.n++;
			to->first[t.n] = 2 * t.n;
		}
	to->buckets.tensors = t;
}

/* Of stages in order. */
static void fill_buckets(struct sim_world *s, struct sim_shape *to)
{
	const uint32_t n = to->shape.nstages;

	for (uint32_t b = 0; b < s->nbuckets; b++) {
		uint32_t stage = b * n / s->nbuckets;
		to->bucket[b] = (struct hd_stage_bucket){ .stage = stage,
			.makers = UINT64_C(1) << stage, .readers = UINT64_C(1) << stage };
		s->bucket_bytes[b] = 100 + b % 3;
	}
	to->buckets = (struct hd_stage_buckets){ .n = s->nbuckets, .nstages = n, .at = to->bucket,
		.whole = (s->seed & HD_SIM_WHOLE) != 0, .shadows = s->seed & HD_SIM_SHADOWED &&
			to->shape.schedule % 3 != 1 && !hd_view_has_copies(&to->shape),
		.follows = (s->seed & HD_SIM_FOLLOWED) != 0 };
	draw_tensors(s, to);
}

/* Sometimes the last stage reads a bucket of the first, too. */
static void draw_buckets(struct sim_world *s, struct sim_shape *to)
{
	fill_buckets(s, to);
	if (sim_rnd(s, 2))
		to->bucket[0].readers |= UINT64_C(1) << (to->shape.nstages - 1);
}

/* Copies instead, 1 to 3 of each of two or three stages, on at most `most` ranks. There are virtual nodes for
 * all their lanes. */
static void draw_copies(struct sim_world *s, struct hd_view_shape *shape, uint32_t most)
{
	struct hd_view_shape made = { .nstages = most > 3 && sim_rnd(s, 2) ? 3 : 2 };

	if (most < 3)
		return;
	for (uint32_t i = 0; i < made.nstages; i++) {
		const uint32_t left = most - made.width - (made.nstages - 1 - i);
		made.place[i] = (uint8_t)made.width;
		made.width += 1 + (uint32_t)sim_rnd(s, left < 3 ? left : 3);
	}
	made.width += !hd_view_has_copies(&made);
	made.schedule = shape->schedule;
	*shape = made;
	s->nvns = s->nvns < hd_view_lanes(&made) ? hd_view_lanes(&made) : s->nvns;
}

/* Every rank has a stage, and any of them the others. */
static void draw_listed(struct sim_world *s, struct hd_view_shape *shape, uint32_t most)
{
	const uint32_t width = shape->width, more = most > width ? (uint32_t)sim_rnd(s, most - width + 1) : 0;

	*shape = (struct hd_view_shape){ .nstages = width + (more > 3 ? 3 : more), .width = width,
		.schedule = shape->schedule };
	for (uint32_t i = 0; i < shape->nstages; i++)
		shape->place[i] = (uint8_t)(i < width ? i : sim_rnd(s, width));
	for (uint32_t i = shape->nstages - 1; i > 1; i--) {
		const uint32_t k = 1 + (uint32_t)sim_rnd(s, i);
		const uint8_t was = shape->place[i];
		shape->place[i] = shape->place[k];
		shape->place[k] = was;
	}
}

static void draw_shape(struct sim_world *s, struct hd_view_shape *shape, uint32_t most, uint32_t schedule)
{
	uint32_t width = 1 + (uint32_t)sim_rnd(s, 3), chunks = width == 1 ? 2 : 1 + (uint32_t)sim_rnd(s, 2);

	if (s->death) {
		hd_view_shape(shape, s->death->width, s->death->chunks, s->death->vee);
		return;
	}
	if (s->seed & HD_SIM_GOING_ON || sim_loses_zone(s)) {
		width = sim_loses_zone(s) ? 2 + 2 * (uint32_t)sim_rnd(s, 2) : 2 + (uint32_t)sim_rnd(s, 3);
		chunks = 1;
	}
	width = width * chunks > most ? most / chunks : width;
	hd_view_shape(shape, width, chunks, sim_rnd(s, 2));
	shape->schedule = schedule;
	if (s->seed & HD_SIM_LISTED && width > 1)
		draw_listed(s, shape, most);
	if (s->seed & HD_SIM_COPIED && sim_rnd(s, 2))
		draw_copies(s, shape, schedule ? s->shape.width : SIM_COPIED_RANKS);
}

/* Ranks of one device and of two, alone and in pairs. Every worker has two devices, or four. */
static void draw_way(struct hd_view_shape *shape, uint32_t schedule)
{
	shape->each = schedule % 2 ? 2 : 0;
	shape->groups = !hd_view_has_copies(shape) && shape->width % 2 == 0 && shape->nstages % 2 == 0 &&
		schedule % 2 == 0 ? 2 : 0;
	shape->again = schedule == 1;
}

/* Cuts of its own for each shape but that of the job. Stages that are parts of one begin together. */
static void draw_cuts(struct hd_view_shape *shape)
{
	const uint32_t groups = hd_view_groups(shape);

	for (uint32_t i = 1; i < shape->nstages && shape->schedule; i++)
		shape->first[i] = i / groups * groups * (1 + shape->schedule);
}

/* No shadow is of one stage. */
static void draw_fewer(struct sim_world *s, uint32_t width)
{
	struct sim_shape *one = &s->shapes[SIM_SHAPES + SIM_FEWER - 1];

	for (uint32_t i = 0; i < SIM_FEWER - 1 && i + 2 < width; i++) {
		struct sim_shape *few = &s->shapes[SIM_SHAPES + i];
		hd_view_shape(&few->shape, 2 + i, 1, false);
		few->shape.schedule = SIM_SHAPES + i;
		draw_cuts(&few->shape);
		draw_buckets(s, few);
		few->buckets.shadows = s->seed & HD_SIM_SHADOWED;
	}
	one->shape = (struct hd_view_shape){ .nstages = 1, .width = 1,
		.schedule = SIM_SHAPES + SIM_FEWER - 1 };
	fill_buckets(s, one);
	one->buckets.shadows = false;
}

/* As many workers as a pipeline has ranks are enough. */
static void draw_stages(struct sim_world *s)
{
	draw_shape(s, &s->shapes[0].shape, SIM_BUCKETS, 0);
	s->shape = s->shapes[0].shape;
	const uint32_t width = s->shape.width;
	s->pipes = 1 + (uint32_t)sim_rnd(s, 2);
	s->nbuckets = s->shape.nstages + (uint32_t)sim_rnd(s, 3);
	draw_buckets(s, &s->shapes[0]);
	for (uint32_t i = 1; i < SIM_SHAPES && s->seed & HD_SIM_RESHAPED; i++) {
		draw_shape(s, &s->shapes[i].shape, s->nbuckets, i);
		/* no wider: there are always workers enough */
		if (s->shapes[i].shape.width > width)
			hd_view_shape(&s->shapes[i].shape, width, hd_view_has_copies(&s->shape) ? 1 :
				s->shape.nstages / width, sim_rnd(s, 2));
		s->shapes[i].shape.schedule = i;
		draw_way(&s->shapes[i].shape, i);
		draw_cuts(&s->shapes[i].shape);
		draw_buckets(s, &s->shapes[i]);
	}
	if (s->seed & HD_SIM_FEWER)
		draw_fewer(s, width);
	s->pipes += s->seed & HD_SIM_LEAST ? 1 : 0;
	s->nvns += s->seed & HD_SIM_LEAST && s->nvns < 2;
	s->min = width * sim_least(s);
	s->max = width * s->pipes + (uint32_t)sim_rnd(s, 3);
	if (s->seed & HD_SIM_FOLLOWED && s->max + 2 <= SIM_PROCS)
		s->max += 1 + (uint32_t)sim_rnd(s, 2);
	s->target = s->min + (uint32_t)sim_rnd(s, s->max - s->min + 1);
}

/* One pipeline, and as many followers as it has stages. */
static void draw_followers(struct sim_world *s)
{
	s->pipes = 1;
	s->max = s->target = s->shape.width + s->shape.nstages;
}

static void draw_first(struct sim_world *s)
{
	const bool zone = sim_loses_zone(s);

	s->pipes = zone && s->seed & HD_SIM_SHADOWED ? 1 + (uint32_t)sim_rnd(s, 2) : 2;
	s->max = s->target = s->pipes * s->min;
	s->zone_left[0] = s->zone_left[1] = zone ? s->target / 2 : 0;
	if (s->seed & HD_SIM_FOLLOWED && !zone)
		draw_followers(s);
	s->nvns += s->nvns < 2;
	s->nsteps = 4;
	s->halt_at = UINT64_MAX;
	s->dies_in = 1 + (uint32_t)sim_rnd(s, zone ? 200 : 120);
	s->dying = (uint32_t)sim_rnd(s, s->target);
	if (s->death) {
		s->nsteps = 6;            /* a checkpoint is written after the fifth */
		s->dies_in = s->death->after;
		s->dying = s->death->victim;
	}
}

/* Takes nothing from the draws of the other things. Some buckets have many bytes, some none. */
static void draw_moved(struct sim_world *s)
{
	uint64_t x = (s->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);

	s->by_bytes = !s->death && x >> 63;
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
		s->moved[b] = x >> 62 ? 64 * (x >> 58) : x >> 54;
	}
}

static void quiet_from(struct sim_world *s, int64_t at) { s->quiet_ns = at > s->quiet_ns ? at : s->quiet_ns; }

/* How large the job is, how long it runs and how many members it wants. */
static void draw_job(struct sim_world *s)
{
	s->nvns = 1 + (uint32_t)sim_rnd(s, SIM_VNS);
	s->nbuckets = 1 + (uint32_t)sim_rnd(s, SIM_BUCKETS);
	draw_moved(s);
	s->copies = s->seed & HD_SIM_SHARDED ? 2 + (s->seed % 5 == 0) : 0;
	s->servers = s->seed & HD_SIM_SHARDED && s->seed % 3 == 0 ? s->copies + s->seed % 2 : 0;
	s->min = 1 + (uint32_t)(sim_rnd(s, 4) == 0);
	s->max = s->min + (uint32_t)sim_rnd(s, 6);
	s->target = s->min + (uint32_t)sim_rnd(s, s->max - s->min + 1);
	s->nsteps = 10 + sim_rnd(s, 50);
	s->halt_at = sim_rnd(s, 4) ? UINT64_MAX : 5 + sim_rnd(s, 40);
	s->step_ns = sim_between(s, 5 * SIM_MS, 300 * SIM_MS);
	if (s->seed & HD_SIM_LATE) {
		s->nsteps += 60;
		s->step_ns = sim_between(s, 100 * SIM_MS, 300 * SIM_MS);
	}
	s->lockstep = (s->seed & HD_SIM_LOCKSTEP) != 0;
	s->takers = sim_rnd(s, 2);
	s->reaper = sim_rnd(s, 2);
	if (s->seed & HD_SIM_STAGED)
		draw_stages(s);
	if (s->seed & HD_SIM_FIRST)
		draw_first(s);
	for (uint32_t v = 0; v < s->nvns; v++)
		s->full |= UINT64_C(1) << 4 * v;
}

static void draw_faults(struct sim_world *s, uint32_t only, int64_t span)
{
	uint32_t kinds[HD_SIM_NFAULTS], n = 0;

	for (uint32_t f = 0; f < HD_SIM_NFAULTS; f++)
		if (sim_rnd(s, 3) == 0 && only >> f & 1)
			kinds[n++] = f;
	uint64_t count = n ? sim_rnd(s, 12) : 0;
	for (uint64_t i = 0; i < count; i++) {
		int64_t at = sim_rnd(s, 8) ? sim_between(s, 0, span) : 0;
		/* close to the one before: failures during the reaction */
		if (i && sim_rnd(s, 3) == 0)
			at = s->quiet_ns + sim_between(s, 0, 100 * SIM_MS);
		sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_FAULT,
			.what = kinds[sim_rnd(s, n)] });
		quiet_from(s, at);
	}
}

/* What is asked for from outside: other workers, other shapes, links that flap, machines that go. */
static void draw_changes(struct sim_world *s, int64_t span)
{
	for (uint64_t i = s->seed & HD_SIM_REPLACED ? 1 + sim_rnd(s, 6) : 0; i > 0; i--)
		sim_push(s, (struct sim_world_event){ .at = sim_between(s, 0, span), .kind = EV_REPLACE,
			.what = sim_rnd(s, 4) != 0 });
	for (uint64_t i = s->seed & HD_SIM_RESHAPED ? 1 + sim_rnd(s, 6) : 0; i > 0; i--) {
		int64_t at = sim_between(s, 0, span);
		sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_RESHAPE,
			.what = (uint32_t)sim_rnd(s, SIM_SHAPES),
			.end = sim_least(s) + (uint32_t)sim_rnd(s, 2) });
		quiet_from(s, at);
	}
	for (uint64_t i = s->seed & HD_SIM_FLAPPED ? 1 + sim_rnd(s, 8) : 0; i > 0; i--) {
		int64_t at = sim_between(s, 2 * SIM_T, 4 * SIM_T + span);
		sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_FLAP });
		quiet_from(s, at + 2 * SIM_T);
	}
	for (uint64_t i = s->seed & HD_SIM_LATE ? 1 + sim_rnd(s, 4) : 0; i > 0; i--) {
		int64_t at = sim_between(s, 2 * SIM_T, span);
		sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_FAULT, .what = HD_SIM_DRAIN });
		quiet_from(s, at);
	}
}

void sim_draw(struct sim_world *s, uint32_t only)
{
	draw_job(s);
	const int64_t span = (int64_t)s->nsteps * s->step_ns + 2 * SIM_T;
	draw_faults(s, only, span);
	draw_changes(s, span);
	s->digest_every = 1;
	if (s->seed & HD_SIM_CORRUPT && !s->copies) {
		s->digest_every += sim_rnd(s, 2) * sim_rnd(s, 5);
		int64_t at = sim_between(s, 2 * SIM_T, span);
		sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_CORRUPT });
		quiet_from(s, at);
	}
	if (s->seed & HD_SIM_UNHEARD)
		quiet_from(s, sim_between(s, 0, span));
	if (s->seed & HD_SIM_GIVING_UP) {
		s->gives_up_in = 2u << sim_rnd(s, 4);
		/* some are long enough to see it end well */
		s->nsteps += sim_rnd(s, 8) ? 0 : 400;
		quiet_from(s, sim_between(s, 0, span));
		sim_push(s, (struct sim_world_event){ .at = s->quiet_ns + 1, .kind = EV_ASK });
	}
	if (s->seed & HD_SIM_UNCHAINED)
		s->unchains_in = 1 + (uint32_t)(sim_rnd(s, 2) * sim_rnd(s, 60));
}
