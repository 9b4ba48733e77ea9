#include "graph/names.h"

#include <stdio.h>
#include <string.h>

#include "graph/model.h"
#include "tests/check.h"

static void a_pattern_takes_runs_of_characters_and_of_digits(void **state)
{
	static const struct { const char *pattern, *name; bool matches; } cases[] = {
		{ "wte.weight", "wte.weight", true },     { "wte.weight", "wte.weights", false }, { "wte.weight", "wte.weigh", false },
		{ "*", "a", true },                       { "*", "", false },                     { "*.bias", ".bias", false },
		{ "*.bias", "h.0.attn.bias", true },      { "h.*.bias", "h.0.attn.bias", true },  { "h.*.bias", "h..bias", false },
		{ "h.{i}.attn.*", "h.12.attn.w", true },  { "h.{i}.w", "h.1a.w", false },         { "h.{i}.w", "h..w", false },
		{ "*a*a", "aaa", false },                 { "*a*a", "xaya", true },               { "*a*b", "aab", false },
		{ "fc{i}.*", "fc10.bias", true },         { "fc{i}.*", "fcx.bias", false },       { "*.*.*.*", "a.b.c.d", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_name_matches(cases[i].pattern, cases[i].name) == cases[i].matches, "%s on %s",
			cases[i].pattern, cases[i].name);
}

/* A family made here, so that every kind of rule is seen whatever the models need. */
static const struct hd_family toy = {
	.model = "toy", .prefix = { "model.", "m." },
	.rule = { { "enc.{i}.w", "layers.{i}.kernel", .turned = true },
	{ "*.weight", "*.gamma", .old = true }, { "blk.{i}.*", "mem.{i}.*", .old = true, .memory = true }, { "in.weight", "emb.table", .old = false } },
	.ignored = { "layers.{i}.mask" }, .tied = { { "head.w", "in.weight", NULL } },
	.counter = { ".running_mean", ".num_batches_tracked" },
};

static void their_names_become_ours(void **state)
{
	static const struct { const char *theirs, *ours; enum hd_name_kind kind; bool turned; } cases[] = {
		{ "layers.7.kernel", "enc.7.w", HD_NAME_OURS, true }, { "model.layers.12.kernel", "enc.12.w", HD_NAME_OURS, true },
		{ "m.ln.gamma", "ln.weight", HD_NAME_OURS, false },   { "emb.table", "in.weight", HD_NAME_OURS, false },
		{ "head.w", "in.weight", HD_NAME_TIED, false },       { "m.head.w", "in.weight", HD_NAME_TIED, false },
		{ "layers.3.mask", "", HD_NAME_NOTHING, false },      { "bn.num_batches_tracked", "", HD_NAME_NOTHING, false },
		{ "other.b", "other.b", HD_NAME_OURS, false },        { "layers.x.kernel", "layers.x.kernel", HD_NAME_OURS, false },
	};
	struct hd_ours got;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_name_from_theirs(&toy, cases[i].theirs, &got), "%s", cases[i].theirs);
		CHECK(got.kind == cases[i].kind && got.turned == cases[i].turned, "%s: kind %d",
			cases[i].theirs, got.kind);
		CHECK(got.kind == HD_NAME_NOTHING || !strcmp(got.name, cases[i].ours), "%s: %s, not %s",
			cases[i].theirs, got.name, cases[i].ours);
	}
}

static void our_names_become_theirs_by_rules_that_are_not_old(void **state)
{
	static const struct { const char *ours, *theirs; bool turned; } cases[] = {
		{ "enc.7.w", "layers.7.kernel", true }, { "ln.weight", "ln.weight", false }, { "in.weight", "emb.table", false }, { "x", "x", false },
	};
	struct hd_theirs got;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_name_to_theirs(&toy, cases[i].ours, &got), "%s", cases[i].ours);
		CHECK(got.turned == cases[i].turned && !strcmp(got.name, cases[i].theirs), "%s: %s",
			cases[i].ours, got.name);
	}
}

static void names_in_memory_are_those_of_rules_that_say_so(void **state)
{
	struct hd_theirs got;
	struct hd_ours ours;

	(void)state;
	assert_true(hd_name_in_memory(&toy, "blk.3.w", &got));
	assert_string_equal(got.name, "mem.3.w");
	assert_true(hd_name_to_theirs(&toy, "blk.3.w", &got));
	assert_string_equal(got.name, "blk.3.w");
	assert_true(hd_name_in_memory(&toy, "ln.weight", &got));      /* what is old alone is not */
	assert_string_equal(got.name, "ln.weight");
	assert_true(hd_name_in_memory(&toy, "enc.7.w", &got) && got.turned);
	assert_string_equal(got.name, "layers.7.kernel");
	assert_true(hd_name_from_theirs(&toy, "mem.3.w", &ours));
	assert_string_equal(ours.name, "blk.3.w");
}

static void a_name_that_does_not_fit_is_no_name(void **state)
{
	char longest[HD_MAX_NAME + 1];
	struct hd_ours ours;

	(void)state;
	memset(longest, 'a', sizeof longest);
	longest[HD_MAX_NAME] = 0;
	assert_false(hd_name_from_theirs(&toy, longest, &ours));
	longest[HD_MAX_NAME - 1] = 0;
	assert_true(hd_name_from_theirs(&toy, longest, &ours));
}

/* Every model, with the arguments of its defaults: out and in again is the same name and storage, no two
 * share one. */
static void the_names_of_every_model_go_out_and_come_back(void **state)
{
	(void)state;
	for (const struct hd_model_row *row = hd_models; row->name; row++) {
		struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY,
			.normalize = HD_NORMALIZE_SAMPLE };
		const struct hd_family *family = hd_family_of(row->name);
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_graph g;
		hd_arena_init(&arena, 0);
		hd_graph_init(&g, &arena);
		CHECK(hd_model_build(&g, row->name, NULL, 0, &opts, &diag) == HD_OK, "%s", diag.text);
		struct hd_theirs *theirs = hd_arena_take(&arena, g.nparams, sizeof *theirs);
		for (uint32_t p = 0; p < g.nparams; p++) {
			const struct hd_value *v = &g.value[g.param[p].value];
			const char *name = hd_graph_text_of(&g, v->name);
			struct hd_ours back;
			CHECK(hd_name_to_theirs(family, name, &theirs[p]) &&
				hd_name_from_theirs(family, theirs[p].name, &back), "%s: %s", row->name,
				name);
			if (back.kind == HD_NAME_TIED && !strcmp(back.second, name))       /* untied here */
				continue;
			CHECK(back.kind == HD_NAME_OURS && back.turned == theirs[p].turned &&
				!strcmp(back.name, name), "%s: %s -> %s -> %s", row->name, name,
				theirs[p].name, back.name);
			CHECK(!theirs[p].turned || v->rank == 2, "%s: %s is turned", row->name, name);
			for (uint32_t q = 0; q < p; q++)
				CHECK(strcmp(theirs[p].name, theirs[q].name) != 0, "%s: %s twice", row->name,
					theirs[p].name);
		}
		hd_arena_finish(&arena);
	}
}

/* The published files, from their documentation: names, and what of them is no parameter. */
static void public_names_of_gpt2_are_known(void **state)
{
	static const struct { const char *theirs, *ours; enum hd_name_kind kind; } cases[] = {
		{ "wte.weight", "wte.weight", HD_NAME_OURS },
		{ "transformer.wpe.weight", "wpe.weight", HD_NAME_OURS },
		{ "h.11.attn.c_attn.weight", "h.11.attn.c_attn.weight", HD_NAME_OURS },
		{ "transformer.h.0.mlp.c_proj.bias", "h.0.mlp.c_proj.bias", HD_NAME_OURS },
		{ "h.0.attn.bias", "", HD_NAME_NOTHING },
		{ "transformer.h.3.attn.masked_bias", "", HD_NAME_NOTHING },
		{ "lm_head.weight", "wte.weight", HD_NAME_TIED },
	};
	struct hd_ours got;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_name_from_theirs(hd_family_of("gpt"), cases[i].theirs, &got), "%s", cases[i].theirs);
		CHECK(got.kind == cases[i].kind && (!*cases[i].ours || !strcmp(got.name, cases[i].ours)),
			"%s: %s", cases[i].theirs, got.name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_takes_runs_of_characters_and_of_digits),
		cmocka_unit_test(their_names_become_ours),
		cmocka_unit_test(our_names_become_theirs_by_rules_that_are_not_old),
		cmocka_unit_test(names_in_memory_are_those_of_rules_that_say_so),
		cmocka_unit_test(a_name_that_does_not_fit_is_no_name),
		cmocka_unit_test(the_names_of_every_model_go_out_and_come_back),
		cmocka_unit_test(public_names_of_gpt2_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
