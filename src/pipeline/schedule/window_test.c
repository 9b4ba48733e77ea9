#include "pipeline/window.h"

#include <string.h>

#include "pipeline/schedule_check.h"
#include "tests/check.h"

/* Steps one after the other: the first with nothing ahead, the last that begins nothing, and NSTEPS - 2 whose
 * lists are all alike. Here all of it is one schedule of NSTEPS V virtual nodes. */

enum { NSTEPS = 4, MAX_P = 7 };

struct window_case { struct hd_arena arena; struct hd_ilist list[NSTEPS][MAX_P]; uint32_t p, nvns; };

/* Which ranks compute again: none, all, every other one. */
enum { NONE, ALL, SOME, AGAINS };

static void open_case(struct window_case *c, uint32_t p, uint32_t nvns, int again)
{
	*c = (struct window_case){ .p = p, .nvns = nvns };
	hd_arena_init(&c->arena, 0);
	for (uint32_t t = 0; t < NSTEPS; t++)
		for (uint32_t r = 0; r < p; r++)
			assert_int_equal(hd_window_list(&c->list[t][r], &(struct hd_window){ .p = p,
				.nvns = nvns, .ahead = t > 0, .goes_on = t + 1 < NSTEPS,
				.again = again == ALL || (again == SOME && r % 2) }, r, &c->arena, NULL),
				HD_OK);
}

static bool computes(const struct hd_ins *ins) { return ins->op == HD_INS_F || ins->op == HD_INS_B ||
	ins->op == HD_INS_R; }

static void is_sound(uint32_t p, uint32_t nvns, int again)
{
	const struct hd_schedule_rules rules = { .transport = HD_TRANSPORT_BUFFERED };
	struct hd_diag diag = { "" };
	struct hd_report report;
	struct window_case c;
	uint32_t place[MAX_P];

	open_case(&c, p, nvns, again);
	struct hd_schedule s = { .heading = "", .nranks = p, .nvns = NSTEPS * nvns, .nstages = p,
		.place = place, .list = hd_arena_take(&c.arena, p, sizeof *s.list) };
	for (uint32_t r = 0; r < p; r++) {
		place[r] = r;
		s.list[r].at = hd_arena_take(&c.arena, 7 * NSTEPS * nvns, sizeof *s.list[r].at);
		for (uint32_t t = 0; t < NSTEPS; t++) {
			const struct hd_ilist *from = &c.list[t][r];
			assert_int_equal(from->at[from->len - 2].op, HD_INS_NORM);
			assert_int_equal(from->at[from->len - 1].op, HD_INS_STEP);
			for (uint32_t i = 0; i + 2 < from->len; i++) {
				struct hd_ins *to = &s.list[r].at[s.list[r].len++];
				*to = from->at[i];
				assert_true(to->vn < 2 * nvns);
				to->vn += t * nvns;
			}
		}
	}
	CHECK(hd_schedule_check(&s, &rules, &report, &diag) == HD_OK, "p %u V %u, %d: %s", p, nvns, again,
		diag.text);
	hd_arena_finish(&c.arena);
}

/* The checker of schedules proves that every virtual node goes through every stage once each way, that all is
 * received as it is sent, that what is computed again was dropped, and that nothing waits in a circle, with
 * the credits that a run has. */
static void steps_that_overlap_are_one_sound_schedule(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= MAX_P; p++)
		for (uint32_t nvns = 2 * (p - 1); nvns < 2 * p + 5; nvns += 3)
			for (int again = 0; again < AGAINS; again++)
				is_sound(p, nvns, again);
}

/* Time in units of a forward, backwards take two. Ranks meet at the end of each step. When a rank is idle
 * between the first and the last step: never. */
static uint64_t run_units(const struct window_case *c, uint64_t began[NSTEPS + 1], uint64_t *idle)
{
	static uint64_t done[2][MAX_P][NSTEPS * 32];          /* when F and B of (stage, virtual node) end */
	uint64_t now = 0;

	memset(done, 0xff, sizeof done);
	*idle = 0;
	for (uint32_t t = 0; t < NSTEPS; t++) {
		uint64_t clock[MAX_P], end = 0;
		uint32_t at[MAX_P] = { 0 };
		bool moved = true;
		began[t] = now;
		for (uint32_t r = 0; r < c->p; r++)
			clock[r] = now;
		while (moved) {
			moved = false;
			for (uint32_t r = 0; r < c->p; r++)
				while (at[r] < c->list[t][r].len) {
					const struct hd_ins *ins = &c->list[t][r].at[at[r]];
					const bool back = ins->op == HD_INS_B, once = ins->op == HD_INS_F;
					uint64_t *need = NULL, ready;
					if (once && r)
						need = &done[0][r - 1][t * c->nvns + ins->vn];
					if (back && r + 1 < c->p)
						need = &done[1][r + 1][t * c->nvns + ins->vn];
					if (need && *need == UINT64_MAX)
						break;
					moved = true;
					at[r]++;
					if (!computes(ins))
						continue;
					ready = need && *need > clock[r] ? *need : clock[r];
					*idle += t && t + 1 < NSTEPS ? ready - clock[r] : 0;
					clock[r] = ready + (back ? 2 : 1);
					if (ins->op != HD_INS_R)
						done[back][r][t * c->nvns + ins->vn] = clock[r];
				}
		}
		for (uint32_t r = 0; r < c->p; r++) {
			assert_int_equal(at[r], c->list[t][r].len);
			end = clock[r] > end ? clock[r] : end;
		}
		for (uint32_t r = 0; r < c->p && t && t + 1 < NSTEPS; r++)
			*idle += end - clock[r];
		now = end;
	}
	return began[NSTEPS] = now;
}

static void no_rank_is_idle_in_the_steady_state(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= MAX_P; p++)
		for (uint32_t i = 0, nvns; nvns = 2 * (p - 1) + i / 2, nvns <= 2 * p + 8; i++) {
			const int again = i % 2 ? ALL : NONE;
			uint64_t began[NSTEPS + 1], idle;
			struct window_case c;
			open_case(&c, p, nvns, again);
			run_units(&c, began, &idle);
			CHECK(idle == 0, "p %u V %u: %llu units idle", p, nvns, (unsigned long long)idle);
			for (uint32_t t = 1; t + 1 < NSTEPS; t++)
				assert_int_equal(began[t + 1] - began[t], (again ? UINT64_C(4) : 3) * nvns);
			hd_arena_finish(&c.arena);
		}
}

static void what_a_rank_begins_is_what_the_next_list_leaves_out(void **state)
{
	struct window_case c;

	(void)state;
	open_case(&c, 4, 9, NONE);
	for (uint32_t r = 0; r < 4; r++) {
		uint32_t n[2][2] = { { 0 } };     /* F and B; of this step, of the next */
		for (uint32_t i = 0; i < c.list[1][r].len; i++)
			if (computes(&c.list[1][r].at[i]))
				n[c.list[1][r].at[i].op == HD_INS_B][c.list[1][r].at[i].vn >= 9]++;
		assert_int_equal(n[0][1], 6 - r);
		assert_int_equal(n[1][1], r);
		assert_int_equal(n[0][0], 9 - (6 - r));
		assert_int_equal(n[1][0], 9 - r);
	}
	hd_arena_finish(&c.arena);
	assert_false(hd_window_fits(4, 5));
	assert_true(hd_window_fits(4, 6));
	assert_false(hd_window_fits(1, 5));
}

/* The last rank's list alone has it, where it goes on; without it all is as ever. */
static void the_last_rank_updates_between_two_steps(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= MAX_P; p++)
		for (uint32_t i = 0; i < 4 * p; i++) {
			struct hd_window w = { .p = p, .nvns = 2 * p, .ahead = i & 1, .goes_on = i & 2 };
			struct hd_ilist plain, eager;
			struct hd_arena arena;
			hd_arena_init(&arena, 0);
			assert_int_equal(hd_window_list(&plain, &w, i / 4, &arena, NULL), HD_OK);
			w.eager = true;
			assert_int_equal(hd_window_list(&eager, &w, i / 4, &arena, NULL), HD_OK);
			uint32_t at = 0;
			while (at < eager.len && !(eager.at[at].flags & HD_INS_EAGER))
				at++;
			const bool has = at < eager.len;
			assert_int_equal(has, i / 4 + 1 == p && w.goes_on);
			for (uint32_t k = 0; k < eager.len && has; k++)
				if (computes(&eager.at[k]))
					assert_true(k < at ? eager.at[k].vn < w.nvns : eager.at[k].vn >=
						w.nvns);
			assert_true(!has || (eager.at[at].op == HD_INS_STEP && eager.at[at].stage == p - 1));
			assert_int_equal(eager.len, plain.len + has);
			if (has)
				memmove(eager.at + at, eager.at + at + 1, (--eager.len - at) *
					sizeof *eager.at);
			assert_memory_equal(eager.at, plain.at, plain.len * sizeof *plain.at);
			hd_arena_finish(&arena);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_that_overlap_are_one_sound_schedule),
		cmocka_unit_test(no_rank_is_idle_in_the_steady_state),
		cmocka_unit_test(what_a_rank_begins_is_what_the_next_list_leaves_out),
		cmocka_unit_test(the_last_rank_updates_between_two_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
