#include "pipeline/placement.h"

#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { MOST = 8, DEVICES = 48 };

/* The weights of the header, counted a second time. */
static int64_t weigh(const struct hd_placement_ask *a, const uint32_t *device, uint32_t *same_zone)
{
	const uint32_t p = a->nstages, d = a->npipelines;
	int64_t sum = 0;
	uint32_t used = 0;

	*same_zone = 0;
	for (uint32_t i = 0; i < p * d; i++)
		used |= 1u << a->device[device[i]].zone;
	for (uint32_t k = 0; k < d; k++)
		for (uint32_t s = 0; p > 1 && s < p; s++) {
			const struct hd_placed_device *x = &a->device[device[k * p + s]],
				*y = &a->device[device[k * p + (s + 1) % p]];
			*same_zone += x->zone == y->zone;
			sum += x->zone == y->zone ? 1000 : 0;
			sum += x->zone == y->zone && llabs(x->added_ms - y->added_ms) <= 60000 ? 100 : 0;
			sum += a->cost ? a->cost[x->zone * a->nzones + y->zone] : 0;
		}
	for (uint32_t s = 0; s < p; s++) {
		uint32_t here = 0, might = (uint32_t)__builtin_popcount(used);
		for (uint32_t k = 0; k < d; k++)
			here |= 1u << a->device[device[k * p + s]].zone;
		sum += 10 * ((might < d ? might : d) - (uint32_t)__builtin_popcount(here));
	}
	return sum;
}

static void search(const struct hd_placement_ask *a, uint32_t at, uint32_t *device, int64_t *least,
	uint32_t *least_same)
{
	uint32_t same;

	if (at == a->npipelines * a->nstages) {
		int64_t w = weigh(a, device, &same);
		*least = w < *least ? w : *least;
		*least_same = same < *least_same ? same : *least_same;
		return;
	}
	for (uint32_t i = 0; i < a->ndevices; i++) {
		bool used = false;
		for (uint32_t k = 0; k < at; k++)
			used |= device[k] == i;
		if (used)
			continue;
		device[at] = i;
		search(a, at + 1, device, least, least_same);
	}
}

static void check_whole(const struct hd_placement_ask *a, const struct hd_placement *got)
{
	uint32_t nplaced = 0, same;

	CHECK(weigh(a, got->device, &same) == got->weighted && same == got->same_zone, "%lld, counted %lld",
		(long long)got->weighted, (long long)weigh(a, got->device, &same));
	for (uint32_t i = 0; i < a->ndevices; i++) {
		nplaced += got->place[i] != HD_WAITS;
		CHECK(got->place[i] == HD_WAITS || got->device[got->place[i]] == i, "device %u", i);
	}
	assert_int_equal(nplaced, a->npipelines * a->nstages);
}

/* Up to 7 devices against all placements: neighbours of one zone are as few as can be, and the weighted count
 * is the least but for a few, which the change of two places does not reach. */
static void few_devices_are_placed_as_well_as_can_be(void **state)
{
	struct hd_dice dice = { 2 };
	uint32_t worse = 0, rounds = DRAWS(400);

	(void)state;
	for (uint32_t round = 0; round < rounds; round++) {
		struct hd_placed_device device[MOST];
		uint32_t n = 2 + hd_roll(&dice, 6), order[MOST], least_same = UINT32_MAX;
		int64_t least = INT64_MAX;
		struct hd_placement got;
		struct hd_diag diag = { "" };
		struct hd_placement_ask a = { .device = device, .ndevices = n, .nzones = 1 + hd_roll(&dice,
			3) };
		a.npipelines = 1 + hd_roll(&dice, n > 3 ? 2 : 1);
		a.nstages = n / a.npipelines;
		for (uint32_t i = 0; i < n; i++)
			device[i] = (struct hd_placed_device){ hd_roll(&dice, a.nzones),
				40000 * hd_roll(&dice, 4) };
		search(&a, 0, order, &least, &least_same);
		CHECK(hd_place_devices(&got, &a, &arena, &diag) == HD_OK, "%s", diag.text);
		check_whole(&a, &got);
		CHECK(got.same_zone == least_same, "round %u: %u neighbours share a zone, %u must", round,
			got.same_zone, least_same);
		CHECK(got.weighted >= least, "round %u", round);
		worse += got.weighted > least;
	}
	CHECK(100 * worse <= 5 * rounds, "%u of %u are worse than the best", worse, rounds);
}

/* Devices that stand somewhere are judged as they stand, and what is begun with them is never worse, changes
 * nothing where nothing is better, and is as good as what is placed afresh but for a few. */
static void devices_that_stand_change_places_alone(void **state)
{
	struct hd_dice dice = { 8 };
	uint32_t worse = 0, moved = 0, rounds = DRAWS(300);

	(void)state;
	for (uint32_t round = 0; round < rounds; round++) {
		struct hd_placed_device device[MOST] = { { 0 } };
		uint32_t order[MOST], same;
		struct hd_placement had, got, fresh, again;
		struct hd_diag diag = { "" };
		struct hd_placement_ask a = { .device = device, .ndevices = 4 + hd_roll(&dice, MOST - 3),
			.npipelines = 2, .nstages = 2, .nzones = 2 + hd_roll(&dice, 2) };
		for (uint32_t i = 0; i < a.ndevices; i++) {
			const uint32_t k = hd_roll(&dice, i + 1);
			device[i].zone = hd_roll(&dice, a.nzones);
			order[i] = order[k];
			order[k] = i;
		}
		CHECK(hd_judge_placement(&had, &a, order, &arena, &diag) == HD_OK, "%s", diag.text);
		check_whole(&a, &had);
		assert_memory_equal(had.device, order, 4 * sizeof *order);
		CHECK(hd_place_devices(&fresh, &a, &arena, &diag) == HD_OK, "%s", diag.text);
		a.from = order;
		CHECK(hd_place_devices(&got, &a, &arena, &diag) == HD_OK, "%s", diag.text);
		check_whole(&a, &got);
		a.from = got.device;
		CHECK(hd_place_devices(&again, &a, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(got.weighted <= had.weighted && weigh(&a, order, &same) == had.weighted, "round %u",
			round);
		assert_memory_equal(again.device, got.device, 4 * sizeof *order);
		worse += got.weighted > fresh.weighted;
		moved += memcmp(got.device, order, 4 * sizeof *order) != 0;
	}
	CHECK(SANITIZED || (50 * worse <= rounds && moved > rounds / 4),
		"%u of %u are worse than afresh, %u moved", worse, rounds, moved);
}

/* Bytes between neighbours of one zone. */
static int64_t shared(const struct hd_placement_ask *a, const uint32_t *device)
{
	const uint32_t p = a->nstages;
	int64_t sum = 0;

	for (uint32_t i = 0; i < p * a->npipelines && p > 1; i++)
		sum += a->device[device[i]].zone == a->device[device[i - i % p + (i % p + 1) % p]].zone ?
			a->out[i % p] : 0;
	return sum;
}

/* Rule 3: whichever two change places in the end, one of which may wait, nothing gets better. */
static void no_exchange_of_two_helps_any_more(void **state)
{
	struct hd_dice dice = { 21 };
	uint32_t moved = 0, rounds = DRAWS(300);

	(void)state;
	for (uint32_t round = 0; round < rounds; round++) {
		struct hd_placed_device device[DEVICES];
		uint32_t n = 2 + hd_roll(&dice, 19), order[DEVICES], same;
		int64_t out[DEVICES], cost[25];
		struct hd_placement got;
		struct hd_diag diag = { "" };
		struct hd_placement_ask a = { .device = device, .ndevices = n, .out = out, .cost = cost,
			.from = order, .nzones = 2 + hd_roll(&dice, 4) };
		a.nstages = 1 + hd_roll(&dice, n < 8 ? n : 8);
		a.npipelines = 1 + hd_roll(&dice, n / a.nstages);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t k = hd_roll(&dice, i + 1);
			device[i] = (struct hd_placed_device){ hd_roll(&dice, a.nzones),
				round % 2 ? 40000 * hd_roll(&dice, 4) : 0 };
			out[i] = hd_roll(&dice, 9);
			order[i] = order[k];
			order[k] = i;
		}
		for (uint32_t i = 0; i < a.nzones * a.nzones; i++)
			cost[i] = round % 3 ? hd_roll(&dice, 50) : 0;
		CHECK(hd_place_devices(&got, &a, &arena, &diag) == HD_OK, "%s", diag.text);
		check_whole(&a, &got);
		assert_int_equal(got.shared_bytes, shared(&a, got.device));
		moved += memcmp(got.device, order, (size_t)a.nstages * a.npipelines * sizeof *order) != 0;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < i; k++) {
				memcpy(order, got.device, (size_t)a.nstages * a.npipelines * sizeof *order);
				if (got.place[i] != HD_WAITS)
					order[got.place[i]] = k;
				if (got.place[k] != HD_WAITS)
					order[got.place[k]] = i;
				const int64_t w = weigh(&a, order, &same);
				CHECK(w > got.weighted || (w == got.weighted &&
					shared(&a, order) >= got.shared_bytes), "round %u: %u and %u", round,
					i, k);
			}
	}
	CHECK(moved > rounds / 2, "%u of %u have moved", moved, rounds);
}

/* A whole zone is lost. How many stages have no device left in any pipeline, and how many of the lost devices
 * have lost the one before them, too, which has their shadow. */
static void lose_zone(const struct hd_placement_ask *a, const struct hd_placement *got, uint32_t zone,
	uint32_t *unheld, uint32_t *unshadowed)
{
	const uint32_t p = a->nstages;

	*unheld = *unshadowed = 0;
	for (uint32_t s = 0; s < p; s++) {
		uint32_t held = 0;
		for (uint32_t k = 0; k < a->npipelines; k++) {
			const uint32_t *pipeline = got->device + k * p;
			const bool lost = a->device[pipeline[s]].zone == zone;
			held += !lost;
			*unshadowed += lost && a->device[pipeline[(s + p - 1) % p]].zone == zone;
		}
		*unheld += !held;
	}
}

/* No neighbours in one zone; and when either is lost, each lost device's shadow is alive, and with two
 * pipelines each stage has a device: nothing goes back to a checkpoint. */
static void two_zones_and_an_even_depth_have_no_neighbours_in_one(void **state)
{
	struct hd_dice dice = { 4 };

	(void)state;
	for (uint32_t p = 2; p <= 12; p += 2)
		for (uint32_t d = 1; d <= 4; d++)
			for (uint32_t extra = 0; extra < 3; extra += 2) {
				struct hd_placed_device device[DEVICES + 4] = { { 0 } };
				uint32_t n = p * d + extra, of[2] = { 0 };
				struct hd_placement got;
				struct hd_diag diag = { "" };
				/* in any order, as many of each */
				for (uint32_t i = 0; i < n; i++) {
					uint32_t z = hd_roll(&dice, 2);
					z = of[z] == n / 2 ? 1 - z : z;
					of[z]++;
					device[i].zone = z;
				}
				const struct hd_placement_ask a = { .device = device, .ndevices = n,
					.npipelines = d,
					.nstages = p, .nzones = 2 };
				CHECK(hd_place_devices(&got, &a, &arena, &diag) == HD_OK, "%s", diag.text);
				check_whole(&a, &got);
				CHECK(got.same_zone == 0, "p %u d %u: %u", p, d, got.same_zone);
				CHECK(d == 1 || got.missing_zones == 0, "p %u d %u: a stage lacks a zone %u "
					"times", p,
					d, got.missing_zones);
				for (uint32_t z = 0; z < 2; z++) {
					uint32_t unheld, unshadowed;
					lose_zone(&a, &got, z, &unheld, &unshadowed);
					CHECK(unshadowed == 0 && (d == 1 || unheld == 0),
						"p %u d %u, zone %u lost: %u stages without a device, %u "
						"without a shadow", p, d, z, unheld, unshadowed);
				}
			}
}

/* Devices of one launch are kept apart where zones cannot be; ties go to smaller activations. */
static void batches_and_boundaries_are_looked_at_too(void **state)
{
	static const struct hd_placed_device batch[] = { { 0, 0 }, { 0, 1 }, { 0, 200000 }, { 0, 200001 } },
		three[] = { { 0, 0 }, { 0, 100000 }, { 0, 200000 }, { 1, 0 } };
	static const int64_t out[] = { 50, 1, 2, 50 };
	struct hd_placement got;

	(void)state;
	assert_int_equal(hd_place_devices(&got, &(struct hd_placement_ask){ .device = batch, .ndevices = 4,
		.npipelines = 1, .nstages = 4, .nzones = 1 }, &arena, NULL), HD_OK);
	assert_int_equal(got.same_zone, 4);
	assert_int_equal(got.same_batch, 0);
	/* the device of zone 1 parts the large boundaries: it stands on stage 0 */
	assert_int_equal(hd_place_devices(&got, &(struct hd_placement_ask){ .device = three, .ndevices = 4,
		.npipelines = 1, .nstages = 4, .nzones = 2, .out = out }, &arena, NULL), HD_OK);
	assert_int_equal(got.same_zone, 2);
	assert_int_equal(got.shared_bytes, 3);
	assert_int_equal(got.device[0], 3);
	/* a costly link between zones 0 and 2: they do not talk if they need not */
	static const struct hd_placed_device zones[] = { { 0, 0 }, { 1, 0 }, { 1, 0 }, { 2, 0 } };
	static const int64_t cost[9] = { 0, 1, 9, 1, 0, 1, 9, 1, 0 };
	assert_int_equal(hd_place_devices(&got, &(struct hd_placement_ask){ .device = zones, .ndevices = 4,
		.npipelines = 1, .nstages = 4, .nzones = 3, .cost = cost }, &arena, NULL), HD_OK);
	assert_int_equal(got.weighted, 4);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct hd_placed_device device[] = { { 0, 0 }, { 2, 0 } };
	struct hd_placement got;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_place_devices(&got, &(struct hd_placement_ask){ .device = device, .ndevices = 2,
		.npipelines = 1, .nstages = 3, .nzones = 3 }, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text,
		"1 pipelines of 3 stages on 2 devices: there are 1 or more, devices for all, and 256 at "
		"most");
	diag.text[0] = '\0';
	assert_int_equal(hd_place_devices(&got, &(struct hd_placement_ask){ .device = device, .ndevices = 2,
		.npipelines = 1, .nstages = 2, .nzones = 2 }, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "device 1 is in zone 2 of 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_devices_are_placed_as_well_as_can_be),
		cmocka_unit_test(devices_that_stand_change_places_alone),
		cmocka_unit_test(no_exchange_of_two_helps_any_more),
		cmocka_unit_test(two_zones_and_an_even_depth_have_no_neighbours_in_one),
		cmocka_unit_test(batches_and_boundaries_are_looked_at_too),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
