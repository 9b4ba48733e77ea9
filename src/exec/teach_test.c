#include "exec/teach.h"

#include "exec/testing.h"

/* A member steps and teaches; a second worker learns from its pieces, cut anywhere, at its own pace. Whenever the
 * stream says that all is there, both states are equal bit for bit. */

static uint64_t seed = 7;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct school {
	struct hd_rig a, b;
	struct hd_teacher teacher;
	struct hd_pupil pupil;
	uint32_t evens;
};

static void open_school(struct school *s, const char *model, const char *optim)
{
	struct hd_diag diag = { "" };

	memset(s, 0, sizeof *s);
	hd_rig_open(&s->a, model, 24, 8, optim, 2);
	hd_rig_open(&s->b, model, 24, 8, optim, 1);
	hd_teacher_init(&s->teacher, s->a.worker, &s->a.task->layout);
	CHECK(hd_share_prepare(s->b.worker, &(struct hd_share_view){ .worker = HD_SHARE_NOBODY }, &diag) == HD_OK, "%s", diag.text);
	hd_share_adopt(s->b.worker);
	CHECK(hd_pupil_init(&s->pupil, s->b.worker, &s->b.task->layout, &diag) == HD_OK, "%s", diag.text);
}

static void close_school(struct school *s)
{
	hd_teacher_finish(&s->teacher);
	hd_pupil_finish(&s->pupil);
	hd_rig_close(&s->a);
	hd_rig_close(&s->b);
}

static void check_even(struct school *s, bool even)
{
	s->evens += even;
	if (even && s->pupil.step == hd_worker_at(s->a.worker))
		CHECK(hd_hash_same(hd_worker_digest(s->a.worker), hd_worker_digest(s->b.worker)), "step %llu: what was learned differs",
			(unsigned long long)s->pupil.step);
}

static bool learn_one(struct school *s)
{
	struct hd_handout *piece = hd_teacher_take(&s->teacher);
	struct hd_diag diag = { "" };
	bool even = false;

	if (!piece)
		return false;
	CHECK(hd_pupil_take(&s->pupil, piece->bytes, piece->len, &even, &diag) == HD_OK, "%s", diag.text);
	check_even(s, even);
	hd_teacher_free(piece);
	return true;
}

/* All that is queued, in parts of any size; each time all is there the states are compared, if the donor stands there still. */
static void learn_all(struct school *s)
{
	struct hd_handout *piece;
	struct hd_diag diag = { "" };

	while ((piece = hd_teacher_take(&s->teacher))) {
		for (size_t at = 1; at < piece->len;) {
			size_t n = 1 + draw(draw(2) ? 40 : 300000);
			bool even = false;
			n = n < piece->len - at ? n : piece->len - at;
			CHECK(hd_pupil_learn(&s->pupil, piece->bytes + at, n, &even, &diag) == HD_OK, "%s", diag.text);
			at += n;
			check_even(s, even);
		}
		hd_teacher_free(piece);
	}
}

static void step(struct school *s, uint64_t budget)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(s->a.worker, false, &record, &diag) == HD_OK, "%s", diag.text);
	hd_teacher_boundary(&s->teacher, hd_worker_at(s->a.worker), budget);
}

static void a_pupil_comes_to_the_state_and_follows(void **state)
{
	static const char *const optim[] = { "optim: {kind: adamw, lr: 1e-2}", "optim: {kind: sgd, lr: 1e-2, clip: 0.1}", "optim: {kind: lamb, lr: 1e-2}" };
	const char *const model[] = { hd_rig_mlp, hd_rig_gpt, hd_rig_bn() };

	(void)state;
	for (uint32_t round = 0; round < 9; round++) {
		struct school s;
		open_school(&s, model[round % 3], optim[round / 3]);
		step(&s, 0);
		hd_teacher_boundary(&s.teacher, hd_worker_at(s.a.worker), 0);         /* comes again: adds nothing */
		for (uint32_t k = 0; k < 12; k++) {
			if (draw(3))
				learn_all(&s);
			step(&s, draw(1 << 20));
		}
		learn_all(&s);
		assert_true(s.evens > 0);
		assert_int_equal(s.pupil.step, hd_worker_at(s.a.worker));
		uint32_t before = s.evens;
		step(&s, 0);
		learn_all(&s);
		assert_int_equal(s.evens, before + 1);        /* it hears so at each boundary: a newcomer seals the step before its first */
		close_school(&s);
	}
}

/* Members that wait for a newcomer make no step: it learns all there is from the one they stand at. */
static void a_teacher_that_stands_hands_over_the_rest(void **state)
{
	struct school s;

	(void)state;
	open_school(&s, "model: {use: builtin:mlp, args: {hidden: [300, 300]}}\ndata: {kind: synthetic, count: 61}\n", "optim: {kind: adamw, lr: 1e-2}");
	step(&s, 1);
	learn_all(&s);
	assert_int_equal(s.evens, 0);
	for (uint32_t k = 0; k < 3; k++)
		hd_teacher_boundary(&s.teacher, hd_worker_at(s.a.worker), UINT64_MAX);
	learn_all(&s);
	assert_int_equal(s.evens, 1);
	assert_int_equal(s.pupil.step, hd_worker_at(s.a.worker));
	step(&s, 0);                                      /* and follows when they go on */
	learn_all(&s);
	assert_int_equal(s.pupil.step, hd_worker_at(s.a.worker));
	close_school(&s);
}

/* What is out of order, of another length, or twice, is refused. */
static void a_stream_that_was_tampered_with_is_refused(void **state)
{
	struct school s;
	uint32_t refused = 0;

	(void)state;
	open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
	step(&s, 1 << 24);
	struct hd_handout *piece = hd_teacher_take(&s.teacher);
	for (uint32_t byte = 0; byte < 1 + HD_TEACH_HEAD; byte++) {
		struct hd_pupil pupil;
		struct hd_diag diag = { "" };
		bool even;
		assert_int_equal(hd_pupil_init(&pupil, s.b.worker, &s.b.task->layout, NULL), HD_OK);
		piece->bytes[byte] ^= 0x40;
		enum hd_err err = hd_pupil_take(&pupil, piece->bytes, piece->len, &even, &diag);
		refused += err == HD_E_PROTOCOL;
		piece->bytes[byte] ^= 0x40;
		hd_pupil_finish(&pupil);
	}
	assert_int_equal(refused, 1 + HD_TEACH_HEAD);         /* also another step: what follows is not of it */
	hd_teacher_free(piece);
	close_school(&s);
}

/* A bit of some weights on their way: the pupil computes other bits than its teacher. */
static void a_pupil_of_other_bits_is_refused(void **state)
{
	struct school s;
	enum hd_err err = HD_OK;
	struct hd_diag diag = { "" };
	struct hd_handout *piece;
	bool even = false, first = true;

	(void)state;
	open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
	step(&s, 1 << 24);
	while (!err && (piece = hd_teacher_take(&s.teacher))) {
		size_t snap = 1 + HD_TEACH_HEAD + (size_t)hd_share_rest_bytes(s.a.worker) + HD_TEACH_HEAD;
		for (uint32_t i = 0; i < 10000 && first; i += 100)        /* of several units: one may be off for all samples */
			piece->bytes[snap + 4 * i + 2] ^= 0x40;
		first = false;
		err = hd_pupil_take(&s.pupil, piece->bytes, piece->len, &even, &diag);
		hd_teacher_free(piece);
	}
	assert_int_equal(err, HD_E_INTEGRITY);
	assert_false(even);
	CHECK(strstr(diag.text, "has other bits here than at the member"), "%s", diag.text);
	close_school(&s);
}

/* Without room nobody is refused, but it is said. */
static void without_room_for_a_probe_it_is_said(void **state)
{
	struct school s;

	(void)state;
	for (uint32_t who = 0; who < 3; who++) {
		open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
		if (who)                          /* what a test may do to have it refused */
			(who == 1 ? s.a : s.b).worker->spec.memory_limit_bytes = 1;
		step(&s, 1 << 24);
		learn_all(&s);
		assert_int_equal(s.evens, 1);
		assert_int_equal(s.pupil.unprobed, who > 0);
		close_school(&s);
	}
}

static const char wide[] = "model: {use: builtin:mlp, args: {hidden: [900, 900]}}\ndata: {kind: synthetic, count: 61}\n";

/* The pupil is in the middle of a record when it is told. */
static void a_teacher_that_nobody_hears_gives_up(void **state)
{
	struct school s;
	uint64_t queued = 0;

	(void)state;
	open_school(&s, wide, "optim: {kind: sgd, lr: 1e-2}");
	step(&s, 1 << 24);
	assert_true(learn_one(&s));
	assert_true(s.pupil.got > 0);
	for (uint32_t k = 0; k < 60 && !s.teacher.over; k++) {
		step(&s, 1 << 24);
		queued = s.teacher.queued > queued ? s.teacher.queued : queued;
	}
	assert_true(s.teacher.over);
	assert_true(queued < 2 * (uint64_t)HD_TEACH_MOST);
	assert_true(learn_one(&s));
	assert_true(s.pupil.over);
	step(&s, 1 << 24);
	assert_false(learn_one(&s));
	close_school(&s);
}

/* So that somebody waits by then. */
static void a_while(void)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 50000000);
}

static void take_all(void *user)
{
	struct school *s = user;
	struct hd_handout *piece;

	a_while();
	while ((piece = hd_teacher_take(&s->teacher)))
		hd_teacher_free(piece);
}

static void leave(void *user)
{
	struct school *s = user;

	a_while();
	hd_teacher_leave(&s->teacher);
}

/* Of a learner that has taken nothing, until the other thread does that; a minute is too long. */
static void wait_until(void (*does)(void *user), struct school *s)
{
	struct hd_thread thread;
	struct hd_clock clock;
	struct hd_diag diag = { "" };

	hd_clock_real(&clock);
	open_school(s, wide, "optim: {kind: sgd, lr: 1e-2}");
	assert_true(hd_teacher_wait(&s->teacher, 0));
	while (s->teacher.queued < HD_TEACH_QUEUE)
		step(s, 1 << 24);
	assert_false(hd_teacher_wait(&s->teacher, 0));
	CHECK(hd_thread_start(&thread, "pupil", -1, does, s, &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_teacher_wait(&s->teacher, hd_clock_now_ns(&clock) + INT64_C(60000000000)));
	hd_thread_join(&thread);
}

static void a_teacher_waits_for_who_lags(void **state)
{
	struct school s;

	(void)state;
	wait_until(take_all, &s);
	assert_false(s.teacher.over);
	close_school(&s);
}

/* Its link was lost, or it is a learner no more: members go on at once, and nothing is put in for it. */
static void nobody_waits_for_who_is_gone(void **state)
{
	struct school s;

	(void)state;
	wait_until(leave, &s);
	step(&s, 1 << 24);
	assert_true(s.teacher.over && s.teacher.queued == 0);
	close_school(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pupil_comes_to_the_state_and_follows),
		cmocka_unit_test(a_teacher_that_stands_hands_over_the_rest),
		cmocka_unit_test(a_stream_that_was_tampered_with_is_refused),
		cmocka_unit_test(a_pupil_of_other_bits_is_refused),
		cmocka_unit_test(without_room_for_a_probe_it_is_said),
		cmocka_unit_test(a_teacher_that_nobody_hears_gives_up),
		cmocka_unit_test(a_teacher_waits_for_who_lags),
		cmocka_unit_test(nobody_waits_for_who_is_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
