#include "engine/testing.h"

/* Which parameter has which rate; that all ways of updating go by it. */

static const char gpt[] = "model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24}%s}\n"
	"data: {kind: synthetic, count: 61}\n";

static struct hd_param_rate rate_of(const struct hd_rig *rig, const char *name)
{
	const uint32_t p = hd_graph_find_param(&rig->task->train, name);

	CHECK(p != HD_NONE, "%s", name);
	return rig->task->rate[p];
}

static void open_gpt(struct hd_rig *rig, const char *model, const char *optim)
{
	char text[512];

	snprintf(text, sizeof text, gpt, model);
	hd_rig_open(rig, text, 8, 4, optim, 1);
}

static void norms_and_biases_are_all_vectors_and_no_matrix(void **state)
{
	struct hd_rig rig;

	(void)state;
	open_gpt(&rig, "", "optim: {weight_decay: 0.1, no_decay: norms-and-biases}");
	for (uint32_t p = 0; p < rig.task->train.nparams; p++) {
		const char *name = hd_whole_name(&rig.task->train, p);
		const bool spared = strstr(name, ".bias") || strstr(name, "ln_");
		CHECK((rig.task->rate[p].decay == 0) == spared, "%s has decay %g", name,
			(double)rig.task->rate[p].decay);
		CHECK(rig.task->rate[p].lr_scale == 1, "%s", name);
	}
	hd_rig_close(&rig);
}

static void the_first_group_that_matches_counts(void **state)
{
	struct hd_rig rig;

	(void)state;
	open_gpt(&rig, "", "optim: {lr: 1e-3, weight_decay: 0.1, no_decay: norms-and-biases, groups: [\n"
		"  {params: [h.1.ln_1.weight], decay: 0.5}, {params: [\"h.1.*\"], lr: 2.5e-4},\n"
		"  {params: [\"h.*.weight\"], lr_scale: 3, decay: 0.2}, {params: [wpe.weight]}]}");
	const struct { const char *name; float lr_scale, decay; } want[] = {
		{ "h.1.ln_1.weight", 1, 0.5f }, { "h.1.ln_1.bias", 0.25f, 0 }, { "h.1.mlp.c_fc.weight", 0.25f, 0.1f },
		{ "h.0.mlp.c_fc.weight", 3, 0.2f }, { "h.0.ln_1.weight", 3, 0.2f }, { "h.0.ln_1.bias", 1, 0 },
		{ "wpe.weight", 1, 0.1f }, { "wte.weight", 1, 0.1f },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct hd_param_rate r = rate_of(&rig, want[i].name);
		CHECK(r.lr_scale == want[i].lr_scale && r.decay == want[i].decay, "%s: %g, %g", want[i].name,
			(double)r.lr_scale, (double)r.decay);
	}
	hd_rig_close(&rig);
}

/* model.freeze, adapters and groups together: what each freezes stays as it is, adapters have names. */
static void groups_go_with_adapters_and_frozen_parameters(void **state)
{
	struct hd_rig rig;

	(void)state;
	open_gpt(&rig, ", lora: {rank: 2, targets: ['h.*.attn.*.weight'], train: ['ln_f.*', 'h.*.ln_1.*']}, "
		"freeze: [ln_f.bias]", "optim: {groups: [{params: [\"*.lora_B\"], lr_scale: 16}, "
		"{params: [ln_f.weight], freeze: true}]}");
	const struct hd_graph *g = &rig.task->train;
	assert_true(rate_of(&rig, "h.0.attn.c_attn.weight.lora_B").lr_scale == 16);
	assert_true(rate_of(&rig, "h.0.attn.c_attn.weight.lora_A").lr_scale == 1);
	assert_true(g->param[hd_graph_find_param(g, "ln_f.weight")].frozen);
	assert_false(g->param[hd_graph_find_param(g, "h.1.ln_1.bias")].frozen);
	hd_rig_step(&rig);
	hd_rig_close(&rig);
}

static void a_rate_of_nothing_moves_nothing(void **state)
{
	static const char *const kinds[] = { "sgd", "momentum", "nesterov", "adam", "adamw", "adagrad",
		"lion",
		"lamb" };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct hd_rig rig;
		char optim[160];
		float before[33], after[33], others[17], moved[17];
		snprintf(optim, sizeof optim, "optim: {kind: %s, weight_decay: 0.1, schedule: {warmup: 0}, "
			"groups: [{params: [fc1.bias], lr_scale: 0}]}", kinds[k]);
		hd_rig_open(&rig, hd_rig_mlp, 26, 13, optim, 2);
		struct hd_state *s = hd_worker_state(rig.worker);
		hd_state_get(hd_state_find(s, "fc1.bias"), 0, 33, before);
		hd_state_get(hd_state_find(s, "fc2.bias"), 0, 17, others);
		hd_rig_step(&rig);
		hd_state_get(hd_state_find(s, "fc1.bias"), 0, 33, after);
		hd_state_get(hd_state_find(s, "fc2.bias"), 0, 17, moved);
		CHECK(!memcmp(before, after, sizeof before), "%s", kinds[k]);
		CHECK(memcmp(others, moved, sizeof others) != 0, "%s", kinds[k]);
		hd_rig_close(&rig);
	}
}

/* What a key says of all parameters is what a group says of each. */
static void one_group_of_all_is_the_job_itself(void **state)
{
	static const char *const kinds[] = { "sgd", "momentum", "adamw", "lion", "lamb", "adagrad" };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct hd_hash digest[2];
		for (int by_group = 0; by_group < 2; by_group++) {
			struct hd_rig rig;
			char optim[200];
			snprintf(optim, sizeof optim, by_group ?
				"optim: {kind: %s, lr: 1e-2, weight_decay: 0.7, "
				"groups: [{params: [fc1.*], lr_scale: 0.5, decay: 0.25}, {params: [\"fc*\"], "
				"lr_scale: 0.5, decay: 0.25}]}" : "optim: {kind: %s, lr: 5e-3, weight_decay: "
				"0.25}", kinds[k]);
			hd_rig_open(&rig, hd_rig_mlp, 26, 13, optim, 1 + (uint32_t)by_group);
			for (int s = 0; s < 3; s++)
				hd_rig_step(&rig);
			digest[by_group] = hd_hash(hd_rig_params(&rig), rig.task->layout.elems *
				sizeof(float));
			hd_rig_close(&rig);
		}
		CHECK(hd_hash_same(digest[0], digest[1]), "%s", kinds[k]);
	}
}

static void what_names_nothing_is_refused(void **state)
{
	static const struct { const char *optim, *says; } cases[] = {
		{ "{no_decay: [fc9.weight]}", "optim.no_decay: \"fc9.weight\" names no parameter" },
		{ "{decay: [fc9.weight]}", "optim.decay: \"fc9.weight\" names no parameter" },
		{ "{groups: [{params: [fc1.weight, fc9.weight], decay: 0}]}",
			"optim.groups: \"fc9.weight\" names no parameter" },
		{ "{groups: [{params: [\"fc*\"]}, {params: [fc1.weight], decay: 0}]}",
			"every parameter of group 2 is in a group before it" },
		{ "{groups: [{params: [\"*\"], freeze: true}]}", "nothing to train" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		char text[200];
		snprintf(text, sizeof text, "optim: %s", cases[i].optim);
		hd_rig_begin(&rig, hd_rig_mlp, 8, 4, text);
		CHECK(hd_task_create(&rig.task, rig.job, &rig.fs, &diag) == HD_E_INVAL, "%s", text);
		CHECK(strstr(diag.text, cases[i].says), "%s\n%s", text, diag.text);
		hd_rig_close(&rig);
	}
}

static void the_text_for_users_counts_what_is_trained(void **state)
{
	struct hd_text text;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 8, 4, "optim: {weight_decay: 0.1, no_decay: norms-and-biases, groups: "
		"[{params: [fc3.weight], lr_scale: 0.5}, {params: [fc2.weight], freeze: true}]}", 1);
	hd_text_init(&text, &rig.arena);
	hd_param_rates_print(rig.task->rate, &rig.task->train, 0.1f, &text);
	assert_string_equal(text.at, "1 at 1 times the rate, decay 0.1; 3 at 1 times the rate, decay 0; "
		"1 at 0.5 times the rate, decay 0.1");
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(norms_and_biases_are_all_vectors_and_no_matrix),
		cmocka_unit_test(the_first_group_that_matches_counts),
		cmocka_unit_test(groups_go_with_adapters_and_frozen_parameters),
		cmocka_unit_test(a_rate_of_nothing_moves_nothing),
		cmocka_unit_test(one_group_of_all_is_the_job_itself),
		cmocka_unit_test(what_names_nothing_is_refused),
		cmocka_unit_test(the_text_for_users_counts_what_is_trained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
