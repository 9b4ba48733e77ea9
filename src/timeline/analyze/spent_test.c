#include "timeline/analyze/spent.h"

#include <math.h>

#include "plan/ins.h"
#include "plan/xfer.h"
#include "timeline/testing.h"

/* Two processes, three steps of 1000 ns; the last of process 1 is dropped: it counts for none. */
static struct tl_maker maker;
static uint32_t lane[2][2];

static void run_op(uint32_t p, int64_t t0, int64_t t1, const char *name, uint32_t stage)
{
	tl_event(&maker, lane[p][0], HD_EVENT_OP, HD_TL_FORWARD, t0, t1, name)->stage = stage;
}

static void move(int64_t t0, int64_t first, int64_t t1, uint64_t bytes, const char *name)
{
	static uint64_t flow;
	struct hd_tl_event *e = tl_event(&maker, lane[0][1], HD_EVENT_SEND, HD_TL_SEND, t0, t1, name);

	e->first = first;
	e->arg = bytes;
	e->flow = ++flow;
	e->peer = 1;
	e = tl_event(&maker, lane[1][1], HD_EVENT_RECV, HD_TL_RECEIVE, first, t1, name);
	e->arg = bytes;
	e->flow = flow;
	e->peer = 0;
}

static void begin(struct hd_tl_causes *causes, struct hd_arena *arena)
{
	tl_begin(&maker);
	for (uint32_t p = 0; p < 2; p++) {
		const uint32_t process = tl_process(&maker, "worker", p);
		lane[p][0] = tl_lane(&maker, process, HD_LANE_DEVICE, "dev 0");
		lane[p][1] = tl_lane(&maker, process, HD_LANE_TRANSFER, "io");
	}
	for (uint32_t p = 0; p < 2; p++)
		for (uint32_t s = 0; s < 3; s++) {
			const int64_t t = 1000 * s;
			/* a wait inside F is not its work; a second one of a wave takes nothing */
			run_op(p, t + 10, t + 110, "F", p);
			tl_event(&maker, lane[p][0], HD_EVENT_WAIT, HD_TL_WAIT, t + 30, t + 50, "wait")->arg =
				hd_wait_arg(HD_WAIT_DATA, 0);
			run_op(p, t + 110, t + 110, "F", p);
			run_op(p, t + 200, t + 500 + 100 * p, "B", p);
			run_op(p, t + 700, t + 730, "forward ahead", HD_TL_NONE);
			run_op(p, t + 740, t + 744, "update ahead", HD_TL_NONE);
			run_op(p, t + 750, t + 760, "STEP", 0);
			run_op(p, t + 800, t + 900, "fold", HD_TL_NONE);
			tl_step(&maker, p, s, t, t + 1000, !(p && s == 2));
		}
	move(100, 200, 200 + 4096, 4096 * 2, "act");      /* 2 bytes a ns */
	move(1100, 1200, 1200 + 512, 4096, "grad");       /* 8 */
	move(1100, 1300, 1300 + 1024, 4096, "act");       /* 4 */
	move(1100, 1110, 1111, 4095, "act");              /* too small */
	move(1100, 1110, 1111, 99999, "root");            /* no mail */
	hd_arena_init(arena, 0);
	assert_int_equal(hd_tl_causes_make(causes, tl_end(&maker), arena, NULL), HD_OK);
}

static const struct hd_tl_spent *find(const struct hd_tl_spents *s, uint8_t op, uint32_t stage,
	uint32_t process)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->at[i].op == op && s->at[i].stage == stage && s->at[i].process == process)
			return &s->at[i];
	return NULL;
}

static void kinds_have_the_work_of_their_events(void **state)
{
	struct hd_tl_causes causes;
	struct hd_arena arena;
	struct hd_tl_spents s;

	(void)state;
	begin(&causes, &arena);
	struct hd_tl_range range = { 0, 2 };
	assert_int_equal(hd_tl_spent_of(&causes, &range, &arena, &s, NULL), HD_OK);
	assert_true(range.first == 0 && range.last == 1);
	for (uint32_t p = 0; p < 2; p++) {
		const struct hd_tl_spent *f = find(&s, HD_INS_F, p, p), *b = find(&s, HD_INS_B, p, p),
			*ahead = find(&s, HD_INS_F, HD_TL_NONE, p), *step = find(&s, HD_INS_STEP, 0, p),
			*brought = find(&s, HD_INS_STEP, HD_TL_NONE, p);
		const double n = 2;
		assert_true(f && b && ahead && step && brought);
		CHECK(f->n == 2 * (uint64_t)n && fabs(f->ns - 80 * n) < 1e-6, "F of %u: %g", p, f->ns);
		CHECK(b->n == (uint64_t)n && fabs(b->ns - (300 + 100 * p) * n) < 1e-6, "B of %u: %g", p,
			b->ns);
		CHECK(ahead->n == 0 && fabs(ahead->ns - 30 * n) < 1e-6, "ahead of %u: %g", p, ahead->ns);
		CHECK(step->n == (uint64_t)n && fabs(step->ns - 10 * n) < 1e-6, "STEP of %u", p);
		CHECK(brought->n == 0 && fabs(brought->ns - 4 * n) < 1e-6, "update of %u", p);
	}
	assert_int_equal(s.n, 10);
	assert_true(s.nprocesses == 2 && s.nsteps == 4);
	assert_true(fabs(s.step_ns - 1000) < 1e-6);
	CHECK(fabs(s.rate - 4) < 1e-9, "%g bytes a ns", s.rate);
	range = (struct hd_tl_range){ 7, 9 };
	assert_int_equal(hd_tl_spent_of(&causes, &range, &arena, &s, NULL), HD_E_NOTFOUND);
	/* of the last step alone one process is all that there is */
	range = (struct hd_tl_range){ 2, 2 };
	assert_int_equal(hd_tl_spent_of(&causes, &range, &arena, &s, NULL), HD_OK);
	assert_true(s.nprocesses == 1 && s.nsteps == 1);
	hd_arena_finish(&arena);
	tl_free(&maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds_have_the_work_of_their_events) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
