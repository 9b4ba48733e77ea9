#include "cmd/verbs.h"

#include <string.h>

#include "tests/check.h"

static enum hd_err find(const char *first, const char *second, const struct hd_verb **verb, int *used,
	struct hd_diag *diag)
{
	char a[64], b[64], *argv[] = { a, b };

	snprintf(a, sizeof a, "%s", first);
	snprintf(b, sizeof b, "%s", second ? second : "");
	diag->text[0] = '\0';
	return hd_verb_find(second ? 2 : 1, argv, verb, used, diag);
}

static void one_or_two_words_name_a_verb(void **state)
{
	static const struct { const char *first, *second; const struct hd_verb *verb; int used; } cases[] = {
		{ "run", NULL, &hd_verb_run, 1 }, { "run", "x.yaml", &hd_verb_run, 1 },
		{ "ckpt", "ls", &hd_verb_ckpt_ls, 2 }, { "plan", "check", &hd_verb_plan_check, 2 },
		/* of a verb with subverbs a file or an option is an argument */
		{ "plan", "./check", &hd_verb_plan, 1 }, { "plan", "job.yaml", &hd_verb_plan, 1 },
		{ "plan", "--help", &hd_verb_plan, 1 }, { "plan", NULL, &hd_verb_plan, 1 },
	};
	const struct hd_verb *verb;
	struct hd_diag diag;
	int used;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(!find(cases[i].first, cases[i].second, &verb, &used, &diag), "case %zu: %s", i,
			diag.text);
		CHECK(verb == cases[i].verb && used == cases[i].used, "case %zu: %s, %d", i, verb->name,
			used);
	}
}

static void a_slip_is_answered_with_what_was_meant(void **state)
{
	static const struct { const char *first, *second, *says; } cases[] = {
		{ "rnu", NULL, "there is no verb \"rnu\"; did you mean \"run\"? `heddle help` lists them" },
		{ "zzzzzz", NULL, "there is no verb \"zzzzzz\"; `heddle help` lists them" },
		{ "ckpt", "lss", "`heddle ckpt` has no \"lss\"; did you mean \"ls\"?" },
		{ "ckpt", NULL, "`heddle ckpt` needs one of: ls, show, verify, digest" },
		{ "ckpt", "--json", "`heddle ckpt` needs one of: ls" },
		{ "plan", "chekc", "; did you mean \"check\"?" },
		{ "plan", "chekc", "a job file of that name is ./chekc" },
		{ "ckp", "ls", "did you mean \"ckpt\"?" },
	};
	const struct hd_verb *verb;
	struct hd_diag diag;
	int used;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(find(cases[i].first, cases[i].second, &verb, &used, &diag) == HD_E_INVAL, "case %zu",
			i);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

static void every_row_is_whole(void **state)
{
	(void)state;
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		CHECK(v->name && *v->name && v->args && v->run && v->opts, "row %td", at - hd_verbs);
		CHECK(v->npos_min <= v->npos_max && v->npos_max <= HD_MAX_POSITIONALS, "%s", v->name);
		CHECK(!*v->args == !v->npos_max, "%s takes up to %u of \"%s\"", v->name, v->npos_max,
			v->args);
		size_t len = strlen(v->about);
		CHECK(len > 0 && v->about[len - 1] != '.', "%s: about is one line without a full stop",
			v->name);
		CHECK(!v->more || (*v->more && v->more[strlen(v->more) - 1] != '\n'), "%s", v->name);
		CHECK(v->test && !strncmp(v->test, "program_", 8), "%s names a whole-program test", v->name);
	}
}

/* An option that two rows could mean would be found as the first of them. */
static void no_verb_takes_two_options_of_one_name(void **state)
{
	(void)state;
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++)
		for (const enum hd_opt *o = v->opts; *o != HD_NOPTS; o++) {
			for (int i = 0; i <= HD_OPT_DIR; i++)
				CHECK(strcmp(hd_opts[*o].name, hd_opts[i].name) != 0, "%s: --%s", v->name,
					hd_opts[i].name);
			for (const enum hd_opt *p = v->opts; p < o; p++)
				CHECK(strcmp(hd_opts[*o].name, hd_opts[*p].name) != 0 &&
					(!hd_opts[*o].letter ||
					hd_opts[*o].letter != hd_opts[*p].letter), "%s: --%s and --%s",
						v->name,
					hd_opts[*p].name, hd_opts[*o].name);
		}
}

/* Completion and help list a family once, where its first verb stands. */
static void verbs_of_a_family_stand_together(void **state)
{
	(void)state;
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " ");
		bool left = false;
		for (const struct hd_verb *const *to = at + 1, *w; (w = *to); to++) {
			bool same = strcspn(w->name, " ") == len && !strncmp(v->name, w->name, len);
			CHECK(!(same && left), "%s stands apart from %s", w->name, v->name);
			CHECK(strcmp(v->name, w->name) != 0, "%s is there twice", v->name);
			left |= !same;
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_or_two_words_name_a_verb),
		cmocka_unit_test(a_slip_is_answered_with_what_was_meant),
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(no_verb_takes_two_options_of_one_name),
		cmocka_unit_test(verbs_of_a_family_stand_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
