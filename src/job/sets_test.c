#include "job/sets.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static const char yaml[] =
	"model: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 16}\noptim: {lr: 0.01}\n"
	"job: {steps: 5}\n";

struct desk { struct hd_arena arena; struct hd_job_sets sets; struct hd_job job; };

static int enter(void **state)
{
	static struct desk d;
	struct hd_diag diag = { "" };

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	assert_int_equal(hd_job_sets_init(&d.sets, 4, &d.arena, &diag), HD_OK);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_arena_finish(&((struct desk *)*state)->arena);
	return 0;
}

/* Whatever of default, file, environment, -s and option says something: the last of them counts, in whichever
 * order it was added. Keys: log.level has a default and is not in the file, optim.lr is in the file. */
static void the_highest_origin_that_says_something_counts(void **state)
{
	static const struct { enum hd_job_key id; const char *key, *in_env, *word, *env, *set, *option,
		*kept; bool file; } keys[] = {
		{ HD_JOB_LR, "optim.lr", "HEDDLE_OPTIM_LR=0.02", "optim.lr=0.03", "0.02", "0.03", "0.04", "0.01", true },
		{ HD_JOB_SEED, "job.seed", "HEDDLE_JOB_SEED=2", "job.seed=3", "2", "3", "4", NULL, false },
	};
	struct desk *d = *state;

	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
		for (uint32_t said = 0; said < 8; said++)
			for (int backwards = 0; backwards < 2; backwards++) {
				char *with[] = { "PATH=/bin", (char *)(uintptr_t)keys[k].in_env, NULL };
				char *without[] = { "HEDDLE_SHARED=/x", NULL };
				struct hd_diag diag = { "" };
				assert_int_equal(hd_job_sets_init(&d->sets, 4, &d->arena, &diag), HD_OK);
				for (int turn = 0; turn < 3; turn++) {
					int what = backwards ? 2 - turn : turn;
					if (what == 0)
						assert_int_equal(hd_job_sets_environment(&d->sets,
							said & 1 ? with : without, &diag), HD_OK);
					if (what == 1 && said & 2)
						assert_int_equal(hd_job_sets_word(&d->sets, keys[k].word,
							&diag), HD_OK);
					if (what == 2 && said & 4)
						hd_job_sets_option(&d->sets, keys[k].key, keys[k].option);
				}
				CHECK(!hd_job_parse(&d->job, "a.yaml", yaml, strlen(yaml), d->sets.set,
					d->sets.n, &d->arena, &diag, NULL), "%s", diag.text);
				const struct hd_job_value *v = &d->job.value[keys[k].id];
				int want = said & 4 ? HD_FROM_OPTION : said & 2 ? HD_FROM_SET : said & 1 ?
					HD_FROM_ENV : keys[k].file ? HD_FROM_FILE : HD_FROM_DEFAULT;
				const char *text = said & 4 ? keys[k].option : said & 2 ? keys[k].set :
					said & 1 ? keys[k].env : keys[k].kept;
				CHECK(v->origin == want, "%s, %u: origin %d", keys[k].key, said, v->origin);
				CHECK(!text || !strcmp(v->text, text), "%s, %u: %s", keys[k].key, said,
					v->text);
			}
}

static void of_two_words_the_later_counts(void **state)
{
	struct desk *d = *state;
	struct hd_diag diag = { "" };

	assert_int_equal(hd_job_sets_word(&d->sets, "optim.lr=0.5", &diag), HD_OK);
	assert_int_equal(hd_job_sets_word(&d->sets, "optim.lr=0.25", &diag), HD_OK);
	assert_int_equal(hd_job_parse(&d->job, "a.yaml", yaml, strlen(yaml), d->sets.set, d->sets.n,
		&d->arena,
		&diag, NULL), HD_OK);
	assert_string_equal(d->job.value[HD_JOB_LR].text, "0.25");
}

static void a_word_is_parted_at_its_first_equals_sign(void **state)
{
	static const struct { const char *word, *key, *value; } cases[] = {
		{ "a.b=c", "a.b", "c" }, { "a.b=c=d", "a.b", "c=d" }, { "a.b=", "a.b", "" }, { "=c", "", "c" },
	};
	struct desk *d = *state;
	struct hd_diag diag = { "" };

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		assert_int_equal(hd_job_sets_word(&d->sets, cases[c].word, &diag), HD_OK);
		assert_string_equal(d->sets.set[d->sets.n - 1].key, cases[c].key);
		assert_string_equal(d->sets.set[d->sets.n - 1].text, cases[c].value);
		assert_int_equal(d->sets.set[d->sets.n - 1].origin, HD_FROM_SET);
	}
	uint32_t before = d->sets.n;
	assert_int_equal(hd_job_sets_word(&d->sets, "optim.lr", &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "-s optim.lr: write KEY=VALUE, as -s optim.lr=0.1");
	assert_int_equal(d->sets.n, before);
}

/* All keys at once, and nothing else: a longer name, a shorter one, another case, no value. */
static void every_key_has_a_variable_of_its_own(void **state)
{
	static char room[HD_JOB_NKEYS][HD_JOB_VARIABLE + 8];
	char *environment[HD_JOB_NKEYS + 6];
	struct desk *d = *state;
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	environment[n++] = "HEDDLE_OPTIM_LRX=1";
	environment[n++] = "HEDDLE_OPTIM_L=1";
	environment[n++] = "heddle_optim_lr=1";
	environment[n++] = "HEDDLE_OPTIM_LR";
	environment[n++] = "XHEDDLE_OPTIM_LR=1";
	environment[n] = NULL;
	assert_int_equal(hd_job_sets_environment(&d->sets, environment, &diag), HD_OK);
	assert_int_equal(d->sets.n, 0);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		char name[HD_JOB_VARIABLE];
		hd_job_variable((enum hd_job_key)k, name);
		assert_null(strpbrk(name, ".abcdefghijklmnopqrstuvwxyz"));
		snprintf(room[k], sizeof room[k], "%s=v%d", name, k);
		environment[n++] = room[k];
	}
	environment[n] = NULL;
	assert_int_equal(hd_job_sets_environment(&d->sets, environment, &diag), HD_OK);
	assert_int_equal(d->sets.n, HD_JOB_NKEYS);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		char key[96], value[16];
		snprintf(key, sizeof key, "%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
		snprintf(value, sizeof value, "v%d", k);
		assert_string_equal(d->sets.set[k].key, key);
		assert_string_equal(d->sets.set[k].text, value);
		assert_int_equal(d->sets.set[k].origin, HD_FROM_ENV);
	}
}

static void a_slip_in_a_variable_is_said_with_the_nearest_key(void **state)
{
	static const struct { const char *variable, *says; } cases[] = {
		{ "HEDDLE_OPTIM_LRR=1", "!! HEDDLE_OPTIM_LRR is no key of a job and changes nothing; did you mean HEDDLE_OPTIM_LR?\n" },
		{ "HEDDLE_OPTIM_SOMETHING_ELSE=1", "!! HEDDLE_OPTIM_SOMETHING_ELSE is no key of a job and changes nothing\n" },
		{ "HEDDLE_OPTIM_LR=1", "" }, { "HEDDLE_SHARED=/x", "" }, { "HEDDLE_OPTIMLR=1", "" }, { "OPTIM_LRR=1", "" },
	};
	struct desk *d = *state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		char *environment[] = { "HOME=/", (char *)(uintptr_t)cases[c].variable, NULL };
		struct hd_text lines;
		hd_text_init(&lines, &d->arena);
		hd_text_add(&lines, "");
		hd_job_sets_warn(environment, &lines);
		assert_string_equal(lines.at, cases[c].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_highest_origin_that_says_something_counts, enter, leave),
		cmocka_unit_test_setup_teardown(of_two_words_the_later_counts, enter, leave),
		cmocka_unit_test_setup_teardown(a_word_is_parted_at_its_first_equals_sign, enter, leave),
		cmocka_unit_test_setup_teardown(every_key_has_a_variable_of_its_own, enter, leave),
		cmocka_unit_test_setup_teardown(a_slip_in_a_variable_is_said_with_the_nearest_key, enter,
			leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
