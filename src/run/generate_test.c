#include "run/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "engine/forward.h"
#include "engine/testing.h"

/* Prompts, and the window of the last tokens: judged by a forward pass of the test's own. */

enum { CONTEXT = 5 };
static const char small[] =
	"model: {use: builtin:gpt, args: {layers: 1, width: 16, heads: 2, context: 5, vocab: 12}}\n"
	"data: {kind: synthetic, count: 16}\n";

static void begin(struct hd_rig *rig, double temperature, uint64_t seed, struct hd_generate *g)
{
	const struct hd_sampling s = { temperature, hd_philox_key(seed, HD_RNG_USER) };
	struct hd_diag diag = { "" };

	hd_rig_open(rig, small, 4, 2, NULL, 1);
	CHECK(hd_generate_init(g, rig->worker, rig->task, &s, &rig->arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(g->context, CONTEXT);
	assert_int_equal(g->vocab, 12);
	assert_false(g->bytes);
}

static void text_is(struct hd_rig *rig, const struct hd_generate *g, const char *want)
{
	struct hd_text text;

	hd_text_init(&text, &rig->arena);
	hd_generate_text(g, &text);
	assert_string_equal(text.at, want);
}

static void a_prompt_is_numbers_or_bytes(void **state)
{
	static const struct { const char *prompt; bool bytes; uint64_t n; const char *text; } cases[] = {
		{ "1 2 11", false, 3, "1 2 11" }, { "  7   0 ", false, 2, "7 0" }, { "\1\2\1", true, 3, "\1\2\1" },
		{ "1 2 3 4 5 6 7 8 9", false, 9, "1 2 3 4 5 6 7 8 9" },
	};
	struct hd_generate g;
	struct hd_diag diag = { "" };
	struct hd_rig rig;
	(void)state;

	begin(&rig, 0, 0, &g);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		g.bytes = cases[c].bytes;
		CHECK(hd_generate_prompt(&g, cases[c].prompt, 3, &rig.arena, &diag) == HD_OK, "%s",
			diag.text);
		assert_int_equal(g.n, cases[c].n);
		assert_int_equal(g.given, cases[c].n);
		text_is(&rig, &g, cases[c].text);
	}
	hd_rig_close(&rig);
}

static void a_bad_prompt_is_refused_with_its_reason(void **state)
{
	static const struct { const char *prompt, *says; bool bytes; uint64_t ntokens; } cases[] = {
		{ "", "--prompt is empty", false, 1 }, { "", "--prompt is empty", true, 1 }, { "   ", "--prompt is empty", false, 1 },
		{ "1 12", "token 12 is outside the model's vocabulary of 12", false, 1 },
		{ "4294967296", "is no token number", false, 1 }, { "1 x", "\"x\" is no token number", false, 1 },
		{ "1,2", "\"1,2\" is no token number", false, 1 }, { "-1", "is no token number", false, 1 },
		{ "a", "token 97 is outside", true, 1 }, { "\xff", "token 255 is outside", true, 1 },
		{ "1", "--tokens is at most 1048576", false, HD_GENERATE_MOST + 1 },
	};
	struct hd_generate g;
	struct hd_rig rig;
	(void)state;

	begin(&rig, 0, 0, &g);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct hd_diag diag = { "" };
		g.bytes = cases[c].bytes;
		enum hd_err err = hd_generate_prompt(&g, cases[c].prompt, cases[c].ntokens, &rig.arena,
			&diag);
		CHECK(err == HD_E_INVAL && strstr(diag.text, cases[c].says), "case %zu: %s", c, diag.text);
	}
	hd_rig_close(&rig);
}

/* Logits after the last tokens of `at`, by rows that the test fills. */
static uint32_t next_by_hand(struct hd_rig *rig, const struct hd_sampling *s, const int32_t *token,
	uint64_t n)
{
	const struct hd_dataset *data = rig->task->data;
	uint64_t len = n < CONTEXT ? n : CONTEXT;
	void *row[HD_MAX_FIELDS];
	double weight[12];
	struct hd_diag diag = { "" };
	const float *logits;

	for (uint32_t f = 0; f < data->nfields; f++) {
		row[f] = hd_arena_take(&rig->arena, 1, data->field[f].sample_bytes);
		memset(row[f], 0, data->field[f].sample_bytes);
		if (!strcmp(data->field[f].name, "x"))
			memcpy(row[f], token + n - len, len * sizeof *token);
	}
	CHECK(hd_worker_forward_rows(rig->worker, (const void *const *)row, 1, &logits, &diag) == HD_OK, "%s",
		diag.text);
	return hd_sampling_token(s, logits + (len - 1) * 12, 12, n, weight);
}

static void each_token_follows_from_the_last_of_the_context(void **state)
{
	static const struct { double temperature; const char *prompt; uint64_t n; } cases[] = {
		{ 0, "3 1 4", 3 }, { 0, "3 1 4 7 9 2 5", 7 }, { 0, "3 1 4 7 9", 5 }, { 0.8, "6", 1 },
		{ 3, "0 11 0 11 0 11", 6 },
	};
	struct hd_diag diag = { "" };
	(void)state;

	for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
		struct hd_generate g;
		struct hd_rig rig;
		begin(&rig, cases[t].temperature, 21, &g);
		assert_int_equal(hd_generate_prompt(&g, cases[t].prompt, 12, &rig.arena, &diag), HD_OK);
		for (uint64_t i = 0; i < 12; i++) {
			CHECK(hd_generate_next(&g, &diag) == HD_OK, "%s", diag.text);
			assert_int_equal(g.n, cases[t].n + i + 1);
			uint32_t want = next_by_hand(&rig, &g.sampling, g.token, g.n - 1);
			CHECK((uint32_t)g.token[g.n - 1] == want, "token %u", (unsigned)i);
		}
		assert_int_equal(g.given, cases[t].n);
		hd_rig_close(&rig);
	}
}

static void models_that_predict_no_tokens_are_refused(void **state)
{
	const struct hd_sampling s = { 0 };
	struct hd_diag diag = { "" };
	struct hd_generate g;
	struct hd_rig rig;
	(void)state;

	hd_rig_open(&rig, hd_rig_mlp, 4, 2, NULL, 1);
	assert_int_equal(hd_generate_init(&g, rig.worker, rig.task, &s, &rig.arena, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "--prompt is for models of text"));
	hd_rig_close(&rig);
}

static void models_that_do_not_continue_what_they_read_are_refused(void **state)
{
	static const char *const models[] = {
		"builtin:bert, args: {layers: 1, width: 16, heads: 2, context: 5, vocab: 12}",
		"builtin:roberta, args: {layers: 1, width: 16, heads: 2, context: 5, vocab: 12}",
		"builtin:t5, args: {layers: 1, width: 16, heads: 2, context: 5, target: 5, vocab: 12}",
		"builtin:t5, args: {layers: 1, width: 16, heads: 2, context: 5, target: 5, vocab: 3}",
	};
	static const char *const causal[] = {
		"builtin:llama, args: {layers: 1, width: 16, heads: 2, hidden: 8, context: 5, vocab: 12}",
		"builtin:mixtral, args: {layers: 1, heads: 4, context: 5, vocab: 12, capacity: 0.5}",
		"builtin:mixtral, args: {layers: 1, heads: 4, context: 5, vocab: 12}",
		"builtin:gpt, args: {layers: 1, width: 16, heads: 2, context: 2, vocab: 2}",
		"builtin:gpt, args: {layers: 1, width: 16, heads: 2, context: 4, vocab: 3}",
		"builtin:lstm, args: {width: 8, context: 5, vocab: 9}",
	};
	const struct hd_sampling s = { 0 };
	(void)state;

	for (size_t i = 0; i < 10; i++) {
		struct hd_diag diag = { "" };
		struct hd_generate g;
		struct hd_rig rig;
		char job[300];
		snprintf(job, sizeof job, "model: {use: %s}\ndata: {kind: synthetic, count: 16}\n",
			i < 4 ? models[i] : causal[i - 4]);
		hd_rig_open(&rig, job, 4, 2, NULL, 1);
		enum hd_err err = hd_generate_init(&g, rig.worker, rig.task, &s, &rig.arena, &diag);
		CHECK(err == (i < 4 ? HD_E_INVAL : HD_OK), "%s: %s", job, diag.text);
		CHECK(!err || strstr(diag.text, "--prompt is for models that continue a text"), "%s",
			diag.text);
		hd_rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_is_numbers_or_bytes),
		cmocka_unit_test(a_bad_prompt_is_refused_with_its_reason),
		cmocka_unit_test(each_token_follows_from_the_last_of_the_context),
		cmocka_unit_test(models_that_predict_no_tokens_are_refused),
		cmocka_unit_test(models_that_do_not_continue_what_they_read_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
