#include "pipeline/assign.h"

#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { MOST = 6, LAYERS = 12 };

struct drawn {
	struct hd_device_state device[MOST];
	struct hd_layer_range place[MOST];
	int64_t bytes[LAYERS], penalty[MOST * MOST];
	struct hd_assign_ask ask;
};

/* What a device lacks, layer by layer. */
static int64_t lacks(const struct drawn *x, uint32_t place, uint32_t device)
{
	int64_t sum = x->ask.penalty ? x->penalty[place * x->ask.ndevices + device] : 0;

	for (uint32_t k = x->place[place].first; k < x->place[place].end; k++) {
		const struct hd_device_state *d = &x->device[device];
		bool here = (k >= d->own.first && k < d->own.end) || (k >= d->shadow.first &&
			k < d->shadow.end);
		sum += here ? 0 : x->bytes[k];
	}
	return sum;
}

/* All assignments in ascending order of devices: the first of the cheapest. */
static void search(const struct drawn *x, uint32_t place, uint32_t *device, int64_t sum, int64_t *least,
	uint32_t *best)
{
	if (place == x->ask.nplaces) {
		if (sum < *least) {
			*least = sum;
			memcpy(best, device, place * sizeof *best);
		}
		return;
	}
	for (uint32_t c = 0; c < x->ask.ndevices; c++) {
		bool used = false;
		for (uint32_t k = 0; k < place; k++)
			used |= device[k] == c;
		if (used)
			continue;
		device[place] = c;
		search(x, place + 1, device, sum + lacks(x, place, c), least, best);
	}
}

static struct hd_layer_range range(struct hd_dice *dice)
{
	uint32_t a = hd_roll(dice, LAYERS + 1), b = hd_roll(dice, LAYERS + 1);

	return a < b ? (struct hd_layer_range){ a, b } : (struct hd_layer_range){ b, a };
}

static void the_sum_is_the_least_and_the_first_of_equals(void **state)
{
	struct hd_dice dice = { 1 };

	(void)state;
	for (uint32_t round = 0; round < DRAWS(4000); round++) {
		struct drawn x = { 0 };
		uint32_t n = 1 + hd_roll(&dice, MOST), device[MOST], best[MOST] = { 0 };
		int64_t least = INT64_MAX, all = 0;
		struct hd_assignment got;
		struct hd_diag diag = { "" };
		x.ask = (struct hd_assign_ask){ .device = x.device, .ndevices = n, .place = x.place,
			.nplaces = 1 + hd_roll(&dice, n), .bytes = x.bytes, .nlayers = LAYERS,
			.penalty = hd_roll(&dice, 2) ? x.penalty : NULL };
		for (uint32_t k = 0; k < LAYERS; k++)     /* few sizes: many ties */
			x.bytes[k] = hd_roll(&dice, 3);
		for (uint32_t k = 0; k < n; k++)
			x.device[k] = (struct hd_device_state){ range(&dice), range(&dice) };
		for (uint32_t k = 0; k < x.ask.nplaces; k++)
			x.place[k] = range(&dice);
		for (uint32_t k = 0; k < MOST * MOST; k++)
			x.penalty[k] = hd_roll(&dice, 3);
		search(&x, 0, device, 0, &least, best);
		CHECK(hd_assign_devices(&got, &x.ask, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(got.bytes + got.penalty == least, "round %u: %lld, the least are %lld", round,
			(long long)(got.bytes + got.penalty), (long long)least);
		for (uint32_t k = 0; k < x.ask.nplaces; k++) {
			CHECK(got.device[k] == best[k], "round %u: place %u has device %u, not %u", round, k,
				got.device[k], best[k]);
			for (uint32_t l = x.place[k].first; l < x.place[k].end; l++)
				all += x.bytes[l];
		}
		CHECK(x.ask.penalty || got.bytes <= all, "round %u: more than all", round);
	}
}

/* A lost place is taken by the device that waits and holds nothing; the others stay. */
static void waiting_devices_take_the_lost_places(void **state)
{
	static const struct hd_device_state device[] = { { { 0, 4 }, { 4, 8 } }, { { 8, 12 }, { 0, 4 } },
		{ { 0, 0 }, { 0, 0 } } };
	static const struct hd_layer_range place[] = { { 0, 4 }, { 4, 8 }, { 8, 12 } };
	static const int64_t bytes[12] = { 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3 };
	struct hd_assignment got;

	(void)state;
	const struct hd_assign_ask ask = { .device = device, .ndevices = 3, .place = place, .nplaces = 3,
		.bytes = bytes, .nlayers = 12 };
	assert_int_equal(hd_assign_devices(&got, &ask, &arena, NULL), HD_OK);
	/* device 0 has stage 1 as its shadow: the newcomer gets the smaller stage 0 */
	assert_int_equal(got.device[0], 2);
	assert_int_equal(got.device[1], 0);
	assert_int_equal(got.device[2], 1);
	assert_int_equal(got.bytes, 4);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct hd_device_state device[2] = { { { 0, 1 }, { 0, 0 } } }, far[1] = { { { 0, 3 },
		{ 0, 0 } } };
	static const struct hd_layer_range place[3] = { { 0, 1 } }, wrong[1] = { { 1, 3 } };
	static const int64_t bytes[2] = { 1, 1 }, less[2] = { 1, -1 }, more[2] = { 1, INT64_C(1) << 51 },
		minus[2] = { -1, 0 };
	static const struct { struct hd_assign_ask ask; const char *want; } cases[] = {
		{ { device, 2, place, 3, bytes, 2, NULL }, "3 places for 2 devices: there are 1 or more, devices for all, and 1024 at most" },
		{ { device, 2, place, 0, bytes, 2, NULL }, "0 places for 2 devices: there are 1 or more, devices for all, and 1024 at most" },
		{ { device, 2, wrong, 1, bytes, 2, NULL }, "place 0 wants layers 1 to 3 of 2" },
		{ { far, 1, place, 1, bytes, 2, NULL }, "device 0 holds layers that do not exist: there are 2" },
		{ { device, 2, place, 1, less, 2, NULL }, "layer 1: bytes are 0 or more, and all together 2^51 at most" },
		{ { device, 2, place, 1, more, 2, NULL }, "layer 1: bytes are 0 or more, and all together 2^51 at most" },
		{ { device, 2, place, 1, bytes, 2, minus }, "place 0, device 0: a penalty is 0 or more, and 2^51 at most" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_assignment got;
		struct hd_diag diag = { "" };
		CHECK(hd_assign_devices(&got, &cases[k].ask, &arena, &diag) == HD_E_INVAL &&
			!strcmp(diag.text, cases[k].want), "%s: %s", cases[k].want, diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_is_the_least_and_the_first_of_equals),
		cmocka_unit_test(waiting_devices_take_the_lost_places),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
