/* The bench as a whole: leader and members. */
#include "wire/transports.h"
#include "worker/testing_allreduce.h"

static void the_bench_sums_and_times_every_round(void **state)
{
	static const char *const transports[] = {
#define X(name) #name,
		HD_TRANSPORT_ROWS(X, X)
#undef X
	};

	(void)state;
	for (uint32_t n = 2; n <= MOST; n++)
		for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
			struct world *w = enter(n);
			char env[HD_ADDR_CAP + 40];
			w->bench.transport = transports[i];
			for (uint32_t m = 0; m < n; m++)
				w->late[m] = 0;
			struct job *lead = start(w, LEADER);
			UNTIL(w, w->nspawned == n);
			for (uint32_t m = 0; m < n; m++)
				start(w, m);
			ends(lead, HD_OK, "");
			for (uint32_t m = 0; m < n; m++) {
				ends(&w->job[m], HD_OK, "");
				snprintf(env, sizeof env, HD_ALLREDUCE_MEMBER "=%u:%s", m, w->folder);
				assert_string_equal(w->env[m], env);
			}
			assert_true(w->times.checked && w->ms[0] > 0 && w->ms[1] > 0 && !w->nkills &&
				w->nwaits == n);
			leave(w);
		}
}

static void what_cannot_be_timed_is_refused(void **state)
{
	static const struct { struct hd_allreduce_bench bench; bool can; } cases[] = {
		{ { .n = 2, .bytes = 4, .rounds = 1 }, true },
		{ { .n = 16, .bytes = HD_ALLREDUCE_MOST, .rounds = 1000 }, true },
		{ { .n = 1, .bytes = 4, .rounds = 1 }, false },
		{ { .n = 17, .bytes = 4, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 0, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 6, .rounds = 1 }, false },
		{ { .n = 2, .bytes = HD_ALLREDUCE_MOST + 4, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 4, .rounds = 0 }, false },
		{ { .n = 2, .bytes = 4, .rounds = 1001 }, false } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_allreduce_bench_verify(&cases[i].bench,
			&(struct hd_diag){ "" }) == (cases[i].can ? HD_OK : HD_E_INVAL), "case %zu", i);
}

static void cases_that_cannot_be_summed_are_refused(void **state)
{
	static const struct { struct hd_allreduce_case it; uint32_t rounds; enum hd_err err; } rows[] = {
		{ { HD_COLLECTIVE_RING, { .p = 3, .fast = true }, 64 }, 1, HD_OK },
		{ { HD_COLLECTIVE_RING, { .p = 3 }, 64 }, 1, HD_E_BADPLAN },
		{ { HD_COLLECTIVE_DIRECT, { .p = 2 }, 64 }, 1, HD_E_INVAL },       /* of other members */
		{ { HD_COLLECTIVE_DIRECT, { .p = 3 }, 68 }, 1, HD_E_INVAL },       /* more than the vector has */
		{ { HD_COLLECTIVE_DIRECT, { .p = 3 }, 62 }, 1, HD_E_INVAL },
		{ { HD_COLLECTIVE_DIRECT, { .p = 3 }, 0 }, 1, HD_E_INVAL },
		{ { HD_COLLECTIVE_DIRECT, { .p = 3 }, HD_ALLREDUCE_CASE_MOST + 4 }, 1, HD_E_INVAL },
	};
	static struct hd_allreduce_case many[HD_ALLREDUCE_CASES + 1];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_allreduce_bench bench = { .n = 3, .bytes = rows[i].it.bytes > 68 ?
			rows[i].it.bytes : 64,
			.rounds = 1, .cases = &rows[i].it, .ncases = 1 };
		CHECK(hd_allreduce_bench_verify(&bench, &(struct hd_diag){ "" }) == rows[i].err, "case %zu",
			i);
	}
	for (uint32_t i = 0; i <= HD_ALLREDUCE_CASES; i++)
		many[i] = rows[0].it;
	struct hd_allreduce_bench bench = { .n = 3, .bytes = 64, .rounds = 512, .cases = many,
		.ncases = HD_ALLREDUCE_CASES };
	assert_int_equal(hd_allreduce_bench_verify(&bench, &(struct hd_diag){ "" }), HD_OK);
	bench.rounds++;
	assert_int_equal(hd_allreduce_bench_verify(&bench, &(struct hd_diag){ "" }), HD_E_INVAL);
	bench.rounds = 1;
	bench.ncases++;
	assert_int_equal(hd_allreduce_bench_verify(&bench, &(struct hd_diag){ "" }), HD_E_INVAL);
}

static enum hd_err leads(struct world *w, struct hd_diag *diag)
{
	static const char *const argv[] = { "none", NULL };

	diag->text[0] = 0;
	return hd_allreduce_bench_lead(&w->bench, &w->host, argv, &w->times, diag);
}

static enum hd_err follows(struct world *w, struct hd_diag *diag)
{
	diag->text[0] = 0;
	return hd_allreduce_bench_member(&w->bench, 1, diag);
}

static void what_cannot_begin_starts_nobody(void **state)
{
	struct world *w = enter(3);
	struct hd_diag diag, other = { "" };
	struct hd_loop loop;

	(void)state;
	w->refused = 2;
	assert_int_equal(leads(w, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text, "not started");
	assert_true(w->nspawned == 1 && w->nkills == 1);
	w->nspawned = 0;
	/* Without memory for the loop, and then for the hub. */
	hd_alloc_arm(1);
	assert_int_equal(hd_loop_init(&loop, &w->real, &other), HD_E_NOMEM);
	hd_alloc_arm(0);
	assert_int_equal(hd_loop_init(&loop, &w->real, &diag), HD_OK);
	uint64_t n = hd_alloc_count();
	hd_loop_finish(&loop);
	for (int hub = 0; hub < 2; hub++) {
		hd_alloc_arm(hub ? n + 1 : 1);
		assert_int_equal(leads(w, &diag), HD_E_NOMEM);
		assert_string_equal(diag.text, hub ? "out of memory for a hub" : other.text);
		hd_alloc_arm(hub ? n + 1 : 1);
		assert_int_equal(follows(w, &diag), HD_E_NOMEM);
		assert_string_equal(diag.text, hub ? "out of memory for a hub" : other.text);
		hd_alloc_arm(0);
	}
	w->bench.folder = "/tmp/hd_bench.there_is_none";
	assert_int_not_equal(leads(w, &diag), HD_OK);
	assert_int_equal(w->nspawned, 0);
	assert_int_not_equal(follows(w, &diag), HD_OK);       /* there is no one to be asked */
	assert_non_null(strstr(diag.text, "there_is_none/leader"));
	w->bench.bytes = UINT64_C(1) << 62;
	assert_int_equal(follows(w, &diag), HD_E_NOMEM);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_timed_is_refused),
		cmocka_unit_test(cases_that_cannot_be_summed_are_refused),
		cmocka_unit_test(what_cannot_begin_starts_nobody),
		cmocka_unit_test(the_bench_sums_and_times_every_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
