/* Each key of the table functions reaches what it names: a job with it asks for another thing than one
 * without, in that place alone. What a service does with it the programs test. */
#include "run/functions.h"

#include <string.h>

#include "job/job.h"
#include "run/run_int.h"
#include "tests/check.h"

#define JOB "job: {steps: 10, seed: 5}\nmodel: {use: builtin:gcn, args: {input: 9, classes: 3, slots: 4}}\n" \
	"data: {kind: graph, path: g.graph, order: sequential}\nbatch: {global: 64, virtual_nodes: 4}\n"

/* What a job asks for, as text: one word a field. */
struct asked { char word[16][64]; };
enum field { KIND, NAME, ENDPOINT, LISTEN, PRICE, SLOTS, LEASE, MEMORY, MIN, MAX, BUDGET, NFIELDS };
static const char *const names[NFIELDS] = { "kind", "name", "endpoint", "listen", "price", "slots", "lease",
	"memory", "min", "max", "budget" };

static struct asked ask(const char *key, const char *value, const char *with)
{
	struct hd_job_set set[4] = { { "functions.kind", with, HD_FROM_SET }, { key, value, HD_FROM_SET } };
	struct hd_fn_service_spec s;
	struct hd_fn_tuner_spec t;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_job job;
	struct asked a = { { "" } };

	hd_arena_init(&arena, 0);
	CHECK(hd_job_parse(&job, "t.yaml", JOB, sizeof JOB - 1, set, key ? 2 : 1, &arena, &diag, NULL) ==
		HD_OK, "%s: %s", key ? key : "", diag.text);
	hd_run_functions_ask(&job, &s, &t);
	const char *const text[] = { [KIND] = s.kind, [NAME] = s.name, [ENDPOINT] = s.endpoint,
		[LISTEN] = s.listen, [PRICE] = s.price };
	for (int i = KIND; i <= PRICE; i++)
		snprintf(a.word[i], sizeof a.word[i], "%s", text[i] ? text[i] : "none");
	snprintf(a.word[SLOTS], 64, "%u", s.slots);
	snprintf(a.word[LEASE], 64, "%lld", (long long)s.lease_ns);
	snprintf(a.word[MEMORY], 64, "%lld", (long long)s.memory_mb);
	snprintf(a.word[MIN], 64, "%u", t.min);
	snprintf(a.word[MAX], 64, "%u", t.max);
	snprintf(a.word[BUDGET], 64, "%g", t.budget_per_hour);
	assert_int_equal(s.ntasks, 4);
	assert_int_equal(s.faults.seed, 5);
	assert_true(t.least_s >= 1);
	hd_arena_finish(&arena);
	return a;
}

/* `also`: a second place that the key changes; NFIELDS: none. */
static const struct { const char *key, *value, *kind; enum field field; const char *becomes;
	enum field also; } rows[] = {
	{ "functions.kind", "http", "lambda", KIND, "http", NFIELDS },
	{ "functions.name", "other", "lambda", NAME, "other", NFIELDS },
	{ "functions.endpoint", "http://127.0.0.1:9", "lambda", ENDPOINT, "http://127.0.0.1:9", NFIELDS },
	{ "functions.listen", "127.0.0.1:8", "http", LISTEN, "127.0.0.1:8", NFIELDS },
	{ "functions.price_file", "2021", "pool", PRICE, "2021", NFIELDS },
	{ "functions.size", "3", "pool", SLOTS, "3", MAX },
	{ "functions.max", "5", "pool", MAX, "5", SLOTS },
	{ "functions.min", "2", "pool", MIN, "2", NFIELDS },
	{ "functions.budget_per_hour", "0.5", "pool", BUDGET, "0.5", NFIELDS },
	{ "functions.memory", "512", "pool", MEMORY, "512", NFIELDS },
	{ "functions.deadline", "3 s", "pool", LEASE, "3000000000", NFIELDS },
};

static void each_key_reaches_what_it_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct asked without = ask(NULL, NULL, rows[i].kind),
			with = ask(rows[i].key, rows[i].value, rows[i].kind);
		for (int f = 0; f < NFIELDS; f++) {
			const bool changed = strcmp(with.word[f], without.word[f]) != 0,
				its = f == (int)rows[i].field || f == (int)rows[i].also;
			CHECK(changed == its, "%s: %s is %s, was %s", rows[i].key, names[f], with.word[f],
				without.word[f]);
		}
		CHECK(!strcmp(with.word[rows[i].field], rows[i].becomes), "%s: %s", rows[i].key,
			with.word[rows[i].field]);
	}
}

/* All keys of the table but the file of reports, which is read at the end. */
static void no_key_is_without_a_row(void **state)
{
	(void)state;
	for (const struct hd_job_key_row *key = hd_job_keys; key < hd_job_keys + HD_JOB_NKEYS; key++) {
		bool found = !strcmp(key->key, "reports");
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			found |= !strcmp(rows[i].key + sizeof "functions." - 1, key->key);
		CHECK(found || strcmp(key->table, "functions") != 0, "functions.%s", key->key);
	}
}

/* What a run says of a service that was silent, by when a call ended well, calls being under way. */
static void a_service_is_back_though_a_call_is_always_under_way(void **state)
{
	static struct hd_run run;
	static struct hd_run_functions f;
	struct hd_clock_sim clock;
	const int64_t second = INT64_C(1000000000);

	(void)state;
	hd_clock_sim(&clock, 100 * second, 0);
	run.clock = &clock.clock;
	run.functions = &f;
	f.said = f.silent = true;
	struct hd_fn_owner *o = &f.service.owner;
	o->spec.clock = &clock.clock;
	o->calling = 1;
	o->board.offers = true;
	o->tried_ns = 96 * second;                /* silent all the time */
	hd_run_functions_look(&run, false);
	assert_true(f.silent);
	o->tried_ns = 99 * second;                /* one ended well, others are under way */
	o->board.probes = true;                   /* but the circuit is not open again */
	hd_run_functions_look(&run, false);
	assert_true(f.silent);
	o->board.probes = false;
	o->board.offers = false;                  /* of no call nothing is known */
	hd_run_functions_look(&run, false);
	assert_true(f.silent);
	o->board.offers = true;
	hd_run_functions_look(&run, false);
	assert_false(f.silent);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_reaches_what_it_names),
		cmocka_unit_test(no_key_is_without_a_row),
		cmocka_unit_test(a_service_is_back_though_a_call_is_always_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
