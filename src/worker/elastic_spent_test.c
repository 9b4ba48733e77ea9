#include "worker/elastic_int.h"

#include <string.h>

#include "run/forecast.h"
#include "tests/check.h"

/* What a worker says of its instructions, step by step: the engine and the machine are played. Each
 * instruction of a device takes what its kind does, and in the first step a hundred times that. */

enum { SELF = 3, OTHER = 7, DEVICES = 4, STAGES = 3, VNS = 2 };

static struct hd_elastic e;
static struct hd_elastic_spec spec;
static struct hd_spent spent[DEVICES][STAGES][HD_INS_END];
static struct hd_ins ins[STAGES][2 * VNS + 2];
static struct hd_ilist list[STAGES];
static bool computes;
static uint32_t nsaid;

struct hd_spent hd_worker_spent(const struct hd_worker *worker, uint32_t r, uint16_t stage, uint8_t op)
{
	(void)worker;
	assert_true(r < DEVICES && stage < STAGES && op < HD_INS_END);
	return spent[r][stage][op];
}

bool hd_worker_computes(const struct hd_worker *worker)
{
	(void)worker;
	return computes;
}

bool hd_forecast_counts(uint8_t op) { return op == HD_INS_F || op == HD_INS_B || op == HD_INS_STEP; }

void hd_elastic_feed(struct hd_elastic *of, const struct hd_member_event *event)
{
	assert_true(of == &e && event->kind == HD_IN_SPENT && event->spent == e.spent.said);
	assert_int_equal(event->n, e.spent.n);
	nsaid++;
}

static uint64_t takes_ns(const struct hd_ins *i, uint32_t device)
{
	return 10u * i->op + 1000u * (device + 1);
}

/* Rank 0 is another worker's; of each of the others a pipeline's stage is here. NORM is not predicted. */
static void begin(uint8_t each, double slow)
{
	spec = (struct hd_elastic_spec){ .slow = slow };
	e = (struct hd_elastic){ .spec = &spec, .adopted = { .epoch = 1, .nranks = STAGES,
		.rank = { { OTHER, VNS }, { SELF, 0 }, { SELF, 0 } },
		.shape = { .nstages = STAGES, .width = STAGES, .each = each } } };
	atomic_store(&e.self, SELF);
	memset(spent, 0, sizeof spent);
	computes = true;
	nsaid = 0;
	for (uint32_t r = 0; r < STAGES; r++) {
		for (uint32_t v = 0; v < 2 * VNS; v++)
			ins[r][v] = (struct hd_ins){ .op = v < VNS ? HD_INS_F : HD_INS_B,
				.stage = (uint16_t)r };
		ins[r][2 * VNS] = (struct hd_ins){ .op = HD_INS_NORM };
		ins[r][2 * VNS + 1] = (struct hd_ins){ .op = HD_INS_STEP };
		list[r] = (struct hd_ilist){ .at = ins[r], .len = 2 * VNS + 2 };
	}
	e.plan[0] = (struct hd_plan){ .nranks = STAGES, .nstages = STAGES, .nvns = VNS, .list = list };
	assert_int_equal(hd_elastic_spent_init(&e, NULL), HD_OK);
}

static void step(uint32_t times)
{
	const uint32_t each = e.adopted.shape.each ? e.adopted.shape.each : 1;

	for (uint32_t r = 1; r < STAGES; r++)
		for (uint32_t i = 0; i < list[r].len; i++) {
			const uint32_t device = (r - 1) * each;
			struct hd_spent *s = &spent[device][ins[r][i].stage][ins[r][i].op];
			s->n++;
			s->ns += times * takes_ns(&ins[r][i], device);
			s->processor_ns += times;
		}
	hd_elastic_spent_count(&e);
	hd_elastic_spent_say(&e, 0);
}

/* F, B and STEP of two ranks, of so many steps. */
static void says(uint32_t steps, double slow)
{
	const uint32_t each = e.adopted.shape.each ? e.adopted.shape.each : 1;

	assert_int_equal(e.spent.n, 6);
	for (uint32_t i = 0; i < e.spent.n; i++) {
		const struct hd_spent_kind *s = &e.spent.said[i];
		const struct hd_ins one = { .op = s->op };
		const uint64_t n = steps * (s->op == HD_INS_STEP ? 1u : VNS);
		const uint64_t ns = n * takes_ns(&one, (s->rank - 1) * each);
		CHECK(s->rank >= 1 && s->rank < STAGES && s->stage == (s->op == HD_INS_STEP ? 0 : s->rank) &&
			s->n == n && s->ns == (uint64_t)((double)ns * slow) && s->processor_ns == n,
			"rank %u, stage %u, op %u: %llu in %llu ns, not %llu", s->rank, s->stage, s->op,
			(unsigned long long)s->n, (unsigned long long)s->ns, (unsigned long long)n);
	}
}

static void all_steps_but_the_first_are_counted(void **state)
{
	static const struct { uint8_t each; double slow, times; } rows[] = { { 0, 0, 1 }, { 2, 1, 1 },
		{ 0, 3, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin(rows[i].each, rows[i].slow);
		for (uint32_t k = 0; k < 4; k++) {
			step(k ? 1 : 100);
			says(k, rows[i].times);
		}
		assert_int_equal(nsaid, 4);
		hd_elastic_spent_finish(&e);
	}
}

/* A step that other lists went on with says nothing, and the next one is the first again. */
static void a_rest_begins_the_count_again(void **state)
{
	(void)state;
	begin(0, 0);
	step(100);
	step(1);
	e.spent.rested = true;
	step(100);
	assert_true(nsaid == 2 && e.spent.n == 0);
	step(100);
	says(0, 1);
	step(1);
	says(1, 1);
	assert_int_equal(nsaid, 4);
	hd_elastic_spent_finish(&e);
}

/* Of whole models devices that compute say nothing; nor is anything said before a view. */
static void what_is_not_predicted_is_not_said(void **state)
{
	(void)state;
	begin(0, 0);
	e.adopted.shape.nstages = 0;
	step(1);
	assert_int_equal(nsaid, 0);
	computes = false;
	e.adopted.epoch = 0;
	step(1);
	assert_int_equal(nsaid, 0);
	e.adopted.epoch = 1;
	step(1);
	assert_int_equal(nsaid, 1);
	hd_elastic_spent_finish(&e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_steps_but_the_first_are_counted),
		cmocka_unit_test(a_rest_begins_the_count_again),
		cmocka_unit_test(what_is_not_predicted_is_not_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
