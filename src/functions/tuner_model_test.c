/* The tuner over the emulator's model, by a simulated clock: the board says where each task is, the ledger
 * what a call costs, the owner serves one worker after the other, instances start cold, and the device takes
 * tasks, too. The best size is known from price and speed alone, by the oracle below. */
#include "functions/tuner.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "functions/bill.h"
#include "functions/board.h"
#include "tests/check.h"

enum { MAX = 48, EPOCHS = 40, TASKS = 400, MEMORY_MB = 1769 };
#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

/* Milliseconds: of the owner for a task, of a function, of the device here, of the rest of an epoch, of a
 * cold start. `usd_h`: of the owner's machine. */
struct pattern { const char *price; double serve, compute, here, rest, cold, usd_h; };

/* ---- the oracle: queues in closed form; prices are those of AWS's page ---- */

static double epoch_s(const struct pattern *p, uint32_t n, double *usd)
{
	const double alone = p->serve + p->compute, there = n ? fmin(n / alone, 1 / p->serve) : 0,
		here = 1 / p->here, part = there / (there + here);
	const double seconds = (p->rest + TASKS / (there + here)) / 1000,
		call_ms = n ? n / there : 0;      /* Little's law: waiting for the owner is billed, too */

	*usd = p->usd_h / 3600 * seconds + TASKS * part * (call_ms / 1000 * MEMORY_MB / 1024 * 0.0000166667 +
		0.0000002);
	return seconds;
}

static double value_at(const struct pattern *p, uint32_t n)
{
	double usd, seconds = epoch_s(p, n, &usd);

	return 1 / (seconds * usd);
}

/* ---- the model ---- */

struct call { uint32_t task, attempt; int64_t ends_ns, billed_ns; bool goes; };

struct world {
	const struct pattern *p;
	struct hd_arena arena;
	struct hd_fn_board board;
	struct hd_fn_bill bill;
	struct hd_fn_tuner tuner;
	struct call call[64];
	int64_t now_ns, served_ns, here_ns, idle_ns;
	uint32_t here, nwarm, draws, seed;
};

/* Within 2 % of it. */
static int64_t vary(struct world *w, double ms)
{
	const uint32_t counter[4] = { w->draws++, 3, 3, 3 };
	const uint32_t word = hd_philox(counter, hd_philox_key(w->seed, HD_RNG_USER)).word[0];

	return (int64_t)(ms * (0.98 + 0.04 * (double)hd_uniform(word)) * (double)MS);
}

static void call(struct world *w, const struct hd_fn_step *s)
{
	const bool cold = w->board.live > w->nwarm;
	const int64_t asks_ns = w->now_ns + (cold ? vary(w, w->p->cold) : 0);
	struct call *c = w->call;

	while (c->goes)
		c++;
	w->nwarm += cold;
	w->served_ns = (w->served_ns > asks_ns ? w->served_ns : asks_ns) + vary(w, w->p->serve);
	const int64_t ends_ns = w->served_ns + vary(w, w->p->compute);
	*c = (struct call){ s->task, s->attempt, ends_ns, ends_ns - w->now_ns, true };
}

static void end_calls(struct world *w)
{
	for (struct call *c = w->call; c < w->call + 64; c++) {
		if (!c->goes || c->ends_ns > w->now_ns)
			continue;
		(void)hd_fn_board_commit(&w->board, c->task, c->attempt, w->now_ns);
		hd_fn_board_called(&w->board, c->task, c->attempt, HD_FN_ENDED, w->now_ns);
		assert_int_equal(hd_fn_bill_estimate(&w->bill, c->billed_ns, MEMORY_MB, NULL), HD_OK);
		c->goes = false;
	}
}

static int64_t next_ns(const struct world *w, int64_t until_ns)
{
	int64_t next = w->here_ns && w->here_ns < until_ns ? w->here_ns : until_ns;

	for (const struct call *c = w->call; c < w->call + 64; c++)
		next = c->goes && c->ends_ns < next ? c->ends_ns : next;
	return next;
}

/* All tasks of an epoch, by the board's words. */
static void run_tasks(struct world *w)
{
	uint32_t task;

	hd_fn_board_clear(&w->board, 0);
	for (uint32_t i = 0; i < TASKS; i++)
		assert_int_equal(hd_fn_board_add(&w->board, 0, &task, NULL), HD_OK);
	while (w->board.open || w->board.live) {
		const struct hd_fn_step s = hd_fn_board_next(&w->board, w->now_ns, !w->here_ns);
		if (s.what == HD_FN_INVOKE) {
			call(w, &s);
		} else if (s.what == HD_FN_RUN_HERE) {
			w->here = s.task;
			w->here_ns = w->now_ns + vary(w, w->p->here);
		} else {
			const int64_t was_ns = w->now_ns;
			w->now_ns = next_ns(w, s.until_ns);
			w->idle_ns += w->here_ns ? 0 : w->now_ns - was_ns;
			if (w->here_ns && w->here_ns <= w->now_ns) {
				(void)hd_fn_board_ran(&w->board, w->here, w->here_ns - was_ns);
				w->here_ns = 0;
			}
			end_calls(w);
		}
	}
}

/* As run/functions.c does it. */
static struct hd_fn_tuned run_epoch(struct world *w)
{
	const int64_t began_ns = w->now_ns, nano = hd_fn_bill_nano(&w->bill);

	w->idle_ns = 0;
	w->board.slots = w->tuner.slots;
	w->board.offers = w->board.slots > 0;
	run_tasks(w);
	w->now_ns += vary(w, w->p->rest);
	const int64_t took_ns = w->now_ns - began_ns;
	const double seconds = (double)took_ns / (double)S, usd = (double)(hd_fn_bill_nano(&w->bill) - nano) *
		1e-9;
	for (int i = 0; i <= 3; i++)
		hd_fn_tuner_window(&w->tuner, w->idle_ns > took_ns / 8 ? 0 : i);
	return hd_fn_tuner_next(&w->tuner, &(struct hd_fn_tuner_epoch){ seconds, usd + w->p->usd_h / 3600 *
		seconds, usd, hd_fn_board_is_away(&w->board) });
}

static void settle(struct world *w, const struct pattern *p, uint32_t seed)
{
	const struct hd_fn_tuner_spec spec = { 1, MAX, 0, 0 };
	struct hd_fn_price price;
	size_t k = 0;

	memset(w, 0, sizeof *w);
	w->p = p;
	w->seed = seed;
	w->now_ns = S;
	hd_arena_init(&w->arena, 256 << 20);
	while (strcmp(hd_fn_price_files[k].name, p->price) != 0)
		k++;
	assert_int_equal(hd_fn_price_read(p->price, hd_fn_price_files[k].text,
		strlen(hd_fn_price_files[k].text), "lambda-x86_64", &w->arena, &price, NULL), HD_OK);
	hd_fn_bill_init(&w->bill, &price, &w->arena);
	assert_int_equal(hd_fn_board_init(&w->board, TASKS, MAX, 900 * S, seed, &w->arena, NULL), HD_OK);
	w->board.shares = true;
	hd_fn_tuner_init(&w->tuner, &spec, TASKS);
	for (uint32_t e = 0; e < EPOCHS; e++)
		(void)run_epoch(w);
}

static void within_5_percent_of_the_best_value_over_the_model(void **state)
{
	static const struct pattern patterns[] = {
		{ "2025", 5, 55, 120, 400, 300, 20 },     /* the owner has work for 12 */
		{ "2025", 2, 60, 80, 200, 300, 2 },
		{ "2021", 10, 60, 400, 1000, 150, 40 },
		{ "2025", 1, 100, 50, 2000, 500, 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		for (uint32_t seed = 1; seed <= DRAWS(5); seed++) {
			static struct world w;
			uint32_t best = 1;
			for (uint32_t n = 1; n <= MAX; n++)
				best = value_at(&patterns[i], n) > value_at(&patterns[i], best) ? n : best;
			settle(&w, &patterns[i], seed);
			double part = value_at(&patterns[i], w.tuner.slots) / value_at(&patterns[i], best);
			print_message("pattern %zu, seed %u: %u at once, best %u: %.3f of its value\n", i,
				seed, w.tuner.slots, best, part);
			assert_true(w.tuner.settled);
			CHECK(part >= 0.95, "%.3f", part);
			hd_arena_finish(&w.arena);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_5_percent_of_the_best_value_over_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
