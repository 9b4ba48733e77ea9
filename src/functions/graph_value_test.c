/* What functions are worth to published runs: epochs by hand, phases of the models, costs as published. */
#include "functions/graph_value.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;

static bool near(double x, double want) { return fabs(x - want) <= 1e-9 * fabs(want) + 1e-12; }

/* The phases as letters: edges, send, dense. */
static void letters(enum hd_gval_model model, const uint32_t width[], char text[HD_GVAL_PHASES + 1])
{
	struct hd_gval_phase phase[HD_GVAL_PHASES];
	const uint32_t n = hd_gval_phases(model, width, phase);

	for (uint32_t i = 0; i < n; i++)
		text[i] = "esd"[phase[i].kind];
	text[n] = 0;
}

/* GCN: AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB; GA AV SC GA AV^ SCB GAB AVB;
 * GAT: AV SC AE+GA AV SC AE+GA AV^ AEB SCB AEB+GAB AVB AEB SCB AEB+GAB AVB. */
static void phases_follow_the_models(void **state)
{
	static const uint32_t narrows[] = { 602, 128, 41 }, widens[] = { 32, 48, 50 };
	struct hd_gval_phase p[HD_GVAL_PHASES];
	char text[HD_GVAL_PHASES + 1];

	(void)state;
	letters(HD_GVAL_GCN, narrows, text);
	assert_string_equal(text, "dsedsedsedsed");
	letters(HD_GVAL_GCN, widens, text);
	assert_string_equal(text, "edsedsed");
	letters(HD_GVAL_GAT, narrows, text);
	assert_string_equal(text, "dsedsedesedesed");

	/* X W0; act, H W1; loss; H and dZ make dW1 and dH; X and dZ make dW0 */
	hd_gval_phases(HD_GVAL_GCN, narrows, p);
	assert_true(near(p[0].flops, 2 * 602 * 128) && p[0].in == 602 && p[0].out == 128);
	assert_true(p[1].sent == 128 && near(p[2].plain, 128) && p[2].waits);
	assert_true(near(p[3].flops, 2 * 128 * 41) && p[3].in == 128 && p[3].out == 41);
	assert_true(near(p[6].flops, 0) && p[6].in == 41 && p[6].out == 41);
	assert_true(near(p[9].flops, 4 * 128 * 41) && p[9].in == 169 && p[9].out == 128);
	assert_true(near(p[12].flops, 2 * 602 * 128) && p[12].in == 730 && p[12].out == 0);
	/* the loss with H W1, dW1 and what goes back; input rows are there */
	hd_gval_phases(HD_GVAL_GCN, widens, p);
	assert_true(!p[0].waits && near(p[0].plain, 32));
	assert_true(near(p[4].flops, 6 * 48 * 50) && p[4].in == 48 && p[4].out == 48);
	assert_true(near(p[7].flops, 2 * 32 * 48) && p[7].in == 80 && p[7].out == 0);
	hd_gval_phases(HD_GVAL_GAT, narrows, p);
	assert_true(p[1].sent == 129 && near(p[2].weighted, 128) && near(p[2].softmax, 1));
	assert_true(!p[7].waits && p[8].sent == 45 && p[9].waits && near(p[9].softmax, 2));
}

static void play(const struct hd_gval_task *task, uint32_t n, uint32_t intervals, uint32_t cores,
	uint32_t slots,
	struct hd_gval_played *played)
{
	struct hd_diag diag;

	assert_int_equal(hd_gval_play(task, n, intervals, cores, slots, &arena, played, &diag), HD_OK);
}

/* Dense 2 s, send 1 s, edges 3 s.
 *
 * Two intervals, one core: dense 0-2, 2-4; sent 2-3, 4-5; edges wait for both: 5-8, 8-11. On two cores: dense
 * 0-2 both, sent 2-3, 3-4, edges 4-7 both. */
static void rows_are_awaited(void **state)
{
	struct hd_gval_task task[] = { { HD_GVAL_DENSE, false, 2, 0, 10, 0 }, { HD_GVAL_SEND, false, 1, 0,
		0, 0 },
		{ HD_GVAL_EDGES, true, 3, 0, 0, 0 } };
	struct hd_gval_played p;

	(void)state;
	play(task, 3, 2, 1, 0, &p);
	assert_true(near(p.seconds, 11) && near(p.core_s, 10) && near(p.dense_s, 4));
	play(task, 3, 2, 2, 0, &p);
	assert_true(near(p.seconds, 7) && near(p.core_s, 10));
	/* three, one core: dense until 6, the last sent 6-7, edges 7-16; the first ones do not begin at 4 */
	play(task, 3, 3, 1, 0, &p);
	assert_true(near(p.seconds, 16));
	/* three on two cores, sent in half a second, the last one at 4-4.5: edges 4.5-7.5 twice, 7.5-10.5 */
	task[1].here = 0.5;
	play(task, 3, 3, 2, 0, &p);
	assert_true(near(p.seconds, 10.5));
	task[1].here = 1;
	/* without waiting the first interval's edges are done while the second is sent: 0-2, 2-4 dense; the
	 * edges, ready at 3, 4-7; 7-10 */
	task[2].waits = false;
	play(task, 3, 2, 1, 0, &p);
	assert_true(near(p.seconds, 10));
	/* edges before dense work that could begin at 4, too: 4-10, dense 10-12, sent 13, edges 13-16 */
	play(task, 3, 3, 1, 0, &p);
	assert_true(near(p.seconds, 16));
}

/* Edges 1 s, dense 4 s; a call: 1 s until it begins, 2 s, its rows 0.5 s of the link; three intervals, one
 * core.
 *
 * Edges 0-1. The first product: here until 5, called until 4: called at 1, rows until 1.5. Edges 1-2 of the
 * second; with one slot, free at 4, a call would end at 7, the core at 2 + 4 = 6; but edges of the third go
 * first, 2-3; then called from 4 to 7 ends as early as here, 3 to 7: here. The third is called at 4, ends at
 * 7. Two calls. */
static void calls_end_earlier(void **state)
{
	const struct hd_gval_task task[] = { { HD_GVAL_EDGES, false, 1, 0, 0, 0 },
		{ HD_GVAL_DENSE, false, 4, 1, 2, 0.5 } };
	struct hd_gval_played p;

	(void)state;
	play(task, 2, 3, 1, 0, &p);
	assert_true(near(p.seconds, 15) && near(p.dense_s, 12));
	play(task, 2, 3, 1, 1, &p);
	assert_true(near(p.seconds, 7));
	assert_int_equal(p.calls[1], 2);
	assert_int_equal(p.calls[0], 0);
	assert_true(near(p.core_s, 7) && near(p.dense_s, 4));
	/* three slots: each is called as its edges end */
	play(task, 2, 3, 1, 3, &p);
	assert_true(near(p.seconds, 6));
	assert_int_equal(p.calls[1], 3);
}

/* Rows of 2 s on the link keep the second call: edges end at 1 and 2, calls begin at 1 and 3. */
static void calls_share_the_link(void **state)
{
	const struct hd_gval_task task[] = { { HD_GVAL_EDGES, false, 1, 0, 0, 0 },
		{ HD_GVAL_DENSE, false, 40, 0, 4, 2 } };
	struct hd_gval_played p;

	(void)state;
	play(task, 2, 2, 1, 2, &p);
	assert_true(near(p.seconds, 7));
	assert_int_equal(p.calls[1], 2);
}

/* 4 vertices of 8 edges on 2 machines, random split: each of 2 far ones is needed but for 1 / 4. */
static void ghosts_by_hand(void **state)
{
	const struct hd_gval_graph g = { "g", 4, 8, { 1, 1, 1 } };

	(void)state;
	assert_true(near(hd_gval_ghosts(&g, 2, 1), 1.5));
	assert_true(near(hd_gval_ghosts(&g, 1, 1), 0));
	assert_true(near(hd_gval_ghosts(&g, 2, 0), 0));
}

/* Machines at their prices cost what was published, to two cents, and so do the ratios. */
static void published_costs(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (const struct hd_gval_run *r = hd_gval_runs; r->graph.name; r++, n++) {
		const double usd = r->cpu_s / 3600 * r->machines * r->machine.usd_h;
		CHECK(fabs(usd - r->cpu_usd) < 0.02, "%s: %f dollars", r->graph.name, usd);
		const double ratio = r->cpu_s * r->cpu_usd / (r->functions_s * r->functions_usd);
		CHECK(fabs(ratio - r->ratio) < 0.02, "%s: %f", r->graph.name, ratio);
	}
	assert_int_equal(n, 6);
}

static struct hd_fn_price price_of(const char *name)
{
	const struct hd_fn_price_file *file = hd_fn_price_files;
	struct hd_fn_price price;
	struct hd_diag diag;

	while (strcmp(file->name, name) != 0)
		file++;
	assert_int_equal(hd_fn_price_read(name, file->text, strlen(file->text), "lambda-x86_64", &arena,
		&price,
		&diag), HD_OK);
	return price;
}

/* One machine of one core at 3.6 $/h, 16 vertices and edges in 16 intervals of one each, 4-2-1, GCN.
 *
 * Alone. Per interval 2 * 4 * 2 + 2 * 2 * 1 forward, 4 * 2 * 1 + 2 * 4 * 2 back: 44 FLOP at 4 a second, 11 s;
 * columns 2 + 1 + 1 + 2 at 6 a second: 1 s. 16 * 12 = 192 s, 192 * 0.001 $. */
static void a_run_by_hand(void **state)
{
	const struct hd_gval_run run = { HD_GVAL_GCN, { "hand", 16, 16, { 4, 2, 1 } }, { "m", 1, 3.6,
		1e6 }, 1,
		0, 0, 0, 0, 0 };
	struct hd_gval_rates rates = { .gather_per_s = 6, .weighted_per_s = 1, .softmax_per_s = 1,
		.flops_per_s = 4, .invoke_ms = 0, .call_ms = 0, .function_bytes_s = 1e6, .memory_mb = 1769,
		.concurrent = 1000, .cut = 1 };
	const struct hd_fn_price price = price_of("2021");
	struct hd_gval_answer a;
	struct hd_diag diag;
	uint32_t slower = 7;

	(void)state;
	assert_int_equal(hd_gval_answer(&run, &rates, &price, &arena, &a, &diag), HD_OK);
	assert_true(near(a.cpu.seconds, 192) && near(a.cpu.usd, 0.192) && near(a.dense, 11.0 / 12));
	/* a second of a function costs 0.0000288 $, one of the machine 0.001 $: many are worth it */
	assert_true(a.ratio > 4 && a.functions.slots >= 8 && a.functions.calls > 0);
	assert_true(near(a.ratio, 192 * 0.192 / (a.functions.seconds * a.functions.usd)));
	assert_int_equal(hd_gval_pays_from(&run, &rates, &price, &arena, &slower, &diag), HD_OK);
	assert_int_equal(slower, 1);
	/* one at once: what it is given is a slot at most */
	rates.concurrent = 1;
	assert_int_equal(hd_gval_answer(&run, &rates, &price, &arena, &a, &diag), HD_OK);
	assert_int_equal(a.functions.slots, 1);
	/* a network that takes longer than the work: nothing is called, whatever it costs */
	rates.function_bytes_s = 1e-7, rates.concurrent = 1000;
	assert_int_equal(hd_gval_answer(&run, &rates, &price, &arena, &a, &diag), HD_OK);
	assert_true(near(a.functions.calls, 0) && near(a.ratio, 1) && a.call_over_core > 1000);
	assert_int_equal(hd_gval_pays_from(&run, &rates, &price, &arena, &slower, &diag), HD_OK);
	assert_int_equal(slower, 0);
}

/* Products at 0.1 GFLOP/s: functions pay where dense work is most; a coarser granularity is worth less. */
static void slow_products_pay(void **state)
{
	const struct hd_gval_rates rates = { .gather_per_s = 1e9, .weighted_per_s = 1e9, .softmax_per_s = 1e8,
		.flops_per_s = 1e8, .invoke_ms = 10, .call_ms = 5, .function_bytes_s = 75e6, .memory_mb =
			1769,
		.concurrent = 1000, .cut = 0.25 };
	const struct hd_fn_price by_1 = price_of("2021"), by_100 = price_of("2020");
	struct hd_gval_answer a, b;
	struct hd_diag diag;

	(void)state;
	for (const struct hd_gval_run *run = hd_gval_runs; run->graph.name; run++) {
		assert_int_equal(hd_gval_answer(run, &rates, &by_1, &arena, &a, &diag), HD_OK);
		assert_int_equal(hd_gval_answer(run, &rates, &by_100, &arena, &b, &diag), HD_OK);
		CHECK(a.functions.calls > 0 && b.ratio < a.ratio, "%s: %f by 100 ms, %f by 1 ms",
			run->graph.name, b.ratio, a.ratio);
		CHECK(a.functions.slots * run->machines <= 1000, "%s: %u slots", run->graph.name,
			a.functions.slots);
		if (run->model == HD_GVAL_GCN && !strcmp(run->graph.name, "amazon"))
			CHECK(a.ratio > 1, "amazon: %f", a.ratio);
	}
}

static void bounds_are_refused(void **state)
{
	const struct hd_gval_task task[] = { { HD_GVAL_EDGES, false, 1, 0, 0, 0 } };
	struct hd_gval_played p;
	struct hd_diag diag;

	(void)state;
	assert_int_equal(hd_gval_play(task, 1, 0, 1, 0, &arena, &p, &diag), HD_E_INVAL);
	assert_int_equal(hd_gval_play(task, 1, 1, 0, 0, &arena, &p, &diag), HD_E_INVAL);
	assert_int_equal(hd_gval_play(task, 1, 1, 1, HD_GVAL_SLOTS + 1, &arena, &p, &diag), HD_E_INVAL);
}

static int begin(void **state) { (void)state; hd_arena_init(&arena, 64 << 20); return 0; }
static int end(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_follow_the_models), cmocka_unit_test(rows_are_awaited),
		cmocka_unit_test(calls_end_earlier), cmocka_unit_test(calls_share_the_link),
		cmocka_unit_test(ghosts_by_hand), cmocka_unit_test(published_costs),
		cmocka_unit_test(a_run_by_hand), cmocka_unit_test(slow_products_pay),
		cmocka_unit_test(bounds_are_refused),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
