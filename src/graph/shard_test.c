#include "graph/shard.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

static void sharded(struct hd_subject *s, uint32_t nshards)
{
	if (s->err == HD_OK)
		s->err = hd_graph_shard(&s->graph, nshards, &s->diag);
	if (s->err == HD_OK)
		s->err = hd_graph_verify(&s->graph, 4, &s->diag);
}

/* Three shards of 7 columns: 2, 2 and 3; x is handed down the tree ((0 1) 2), the results are added up along it. */
static void a_pair_of_products_in_three_shards(void **state)
{
	static const char before[] = "input x f32 [*,4]\ninput y f32 [*,5]\nparam a f32 [4,7] ones\nparam b f32 [5,7] ones\n%0 = matmul x a ta=0 tb=0\n"
		"%1 = act %0 act=relu\n%2 = matmul %1 b ta=0 tb=1\n%3 = mse %2 y\n%4 = sum64 %3\noutput loss %4\n";
	static const char after[] = "input x f32 [*,4]\ninput y f32 [*,5]\nparam a f32 [4,7] ones\nparam b f32 [5,7] ones\n"
		"%0 = reshape x d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%1 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%2 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%3 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%4 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%5 = slice a axis=1 from=0 step=1 count=2 : f32 [4,2]\n"
		"%6 = slice a axis=1 from=2 step=1 count=2 : f32 [4,2]\n"
		"%7 = slice a axis=1 from=4 step=1 count=3 : f32 [4,3]\n"
		"%8 = matmul %2 %5 ta=0 tb=0 : f32 [*,2]\n%9 = matmul %3 %6 ta=0 tb=0 : f32 [*,2]\n%10 = matmul %4 %7 ta=0 tb=0 : f32 [*,3]\n"
		"%11 = act %8 act=relu alpha=0 beta=0 : f32 [*,2]\n%12 = act %9 act=relu alpha=0 beta=0 : f32 [*,2]\n"
		"%13 = act %10 act=relu alpha=0 beta=0 : f32 [*,3]\n"
		"%14 = slice b axis=1 from=0 step=1 count=2 : f32 [5,2]\n%15 = slice b axis=1 from=2 step=1 count=2 : f32 [5,2]\n"
		"%16 = slice b axis=1 from=4 step=1 count=3 : f32 [5,3]\n"
		"%17 = matmul %11 %14 ta=0 tb=1 : f32 [*,5]\n%18 = matmul %12 %15 ta=0 tb=1 : f32 [*,5]\n%19 = matmul %13 %16 ta=0 tb=1 : f32 [*,5]\n"
		"%20 = add %17 %18 : f32 [*,5]\n%21 = add %20 %19 : f32 [*,5]\n%22 = mse %21 y : f32 [*]\n%23 = sum64 %22 : f64 [1]\noutput loss %23\n";
	struct hd_subject s, want;

	(void)state;
	hd_subject_parse(&s, before);
	sharded(&s, 3);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	hd_subject_parse(&want, after);
	CHECK(want.err == HD_OK, "%s", want.diag.text);
	CHECK(!strcmp(hd_subject_print(&s), hd_subject_print(&want)), "%s", hd_subject_print(&s));
	hd_subject_finish(&s);
	hd_subject_finish(&want);
}

static const struct model { const char *name; struct hd_model_arg arg[7]; uint32_t nargs, most; struct hd_model_opts opts; } models[] = {
	{ "mlp", { { "input", "[9]" }, { "hidden", "[12, 8]" }, { "classes", "8" } }, 3, 8, { 0 } },
	{ "gpt", { { "layers", "2" }, { "width", "24" }, { "heads", "6" }, { "context", "5" }, { "vocab", "11" }, { "dropout", "0.1" } }, 6, 6, { 0 } },
	{ "llama", { { "layers", "1" }, { "width", "24" }, { "heads", "6" }, { "context", "5" }, { "vocab", "11" }, { "tie", "true" } }, 6, 6, { 0 } },
	{ "bert", { { "layers", "1" }, { "width", "12" }, { "heads", "6" }, { "context", "4" }, { "vocab", "9" }, { "share", "0.5" } }, 6, 6,
	  { HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_TOKEN } },
	{ "bert", { { "layers", "1" }, { "width", "12" }, { "heads", "6" }, { "context", "4" }, { "vocab", "9" }, { "head", "cls" }, { "classes", "6" } }, 7, 6,
	  { 0 } },
	{ "lstm", { { "layers", "1" }, { "width", "5" }, { "hidden", "4" }, { "context", "5" }, { "vocab", "9" } }, 5, 5, { 0 } },
};

static void open_model(struct hd_subject *s, size_t m)
{
	hd_subject_model(s, models[m].name, models[m].arg, models[m].nargs, models[m].opts);
	CHECK(s->err == HD_OK, "%s", s->diag.text);
}

/* Every count of shards that divides the heads: a sound graph that prints and parses, with the parameters of before, and a gradient. */
static void models_in_shards_are_sound_and_have_the_same_parameters(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
		for (uint32_t t = 1; t <= models[m].most; t++) {
			struct hd_subject plain, s;
			open_model(&plain, m);
			open_model(&s, m);
			sharded(&s, t);
			if (s.err) {
				CHECK(6 % t != 0 && strstr(s.diag.text, "heads 6 cannot be split in "), "%s, %u shards: %s", models[m].name, t, s.diag.text);
				hd_subject_finish(&s);
				hd_subject_finish(&plain);
				continue;
			}
			CHECK((t == 1) == !strcmp(hd_subject_print(&s), hd_subject_print(&plain)), "%s: %u shards", models[m].name, t);
			CHECK(s.graph.nparams == plain.graph.nparams && s.graph.ninputs == plain.graph.ninputs && s.graph.noutputs == plain.graph.noutputs,
				"%s: %u shards change its ends", models[m].name, t);
			for (uint32_t p = 0; p < s.graph.nparams; p++) {
				const struct hd_value *a = &s.graph.value[s.graph.param[p].value], *b = &plain.graph.value[plain.graph.param[p].value];
				CHECK(hd_dims_same(a, b) && !strcmp(hd_graph_text_of(&s.graph, a->name), hd_graph_text_of(&plain.graph, b->name)),
					"parameter %u", p);
			}
			for (uint32_t o = 0; o < s.graph.noutputs; o++)
				CHECK(hd_dims_same(&s.graph.value[s.graph.output[o].value], &plain.graph.value[plain.graph.output[o].value]), "output %u", o);
			CHECK(s.graph.nrandom == plain.graph.nrandom, "random keys");
			CHECK(hd_graph_optimize(&s.graph, 4, &s.diag) == HD_OK && hd_graph_autodiff(&s.graph, &s.diag) == HD_OK
				&& hd_graph_verify(&s.graph, 4, &s.diag) == HD_OK, "%s, %u shards: %s", models[m].name, t, s.diag.text);
			hd_subject_finish(&s);
			hd_subject_finish(&plain);
		}
}

/* Without the output that wants them whole, no value as wide as the vocabulary is left but the parameters. */
static void the_loss_of_split_logits_gathers_none(void **state)
{
	struct hd_subject s;

	(void)state;
	for (uint32_t t = 1; t <= 2; t++) {
		uint32_t wide = 0;
		open_model(&s, 1);
		for (uint32_t o = 0; o < s.graph.noutputs; o++)
			if (!strcmp(hd_graph_text_of(&s.graph, s.graph.output[o].name), "logits"))
				s.graph.output[o] = s.graph.output[--s.graph.noutputs];
		sharded(&s, t);
		CHECK(s.err == HD_OK && hd_graph_prune(&s.graph, &s.diag) == HD_OK, "%s", s.diag.text);
		for (uint32_t v = 0; v < s.graph.nvalues; v++)
			wide += s.graph.value[v].kind == HD_TEMP && s.graph.value[v].dim[s.graph.value[v].rank - 1] == 11;
		CHECK((t == 1) == (wide > 0), "%u shards: %u values of 11 columns", t, wide);
		hd_subject_finish(&s);
	}
}

static void what_cannot_be_split_is_refused(void **state)
{
	static const struct { const char *name; struct hd_model_arg arg[6]; uint32_t nargs, shards; enum hd_loss loss; const char *says; } cases[] = {
		{ "gpt", { { "heads", "12" }, { "width", "24" } }, 2, 8, HD_LOSS_CROSS_ENTROPY, "heads 12 cannot be split in 8 shards" },
		{ "llama", { { "heads", "8" }, { "kv_heads", "2" }, { "width", "32" } }, 3, 4, HD_LOSS_CROSS_ENTROPY, "heads 2 cannot be split in 4 shards" },
		{ "gpt", { { "vocab", "3" } }, 1, 4, HD_LOSS_CROSS_ENTROPY, "vocabulary 3 cannot be split in 4 shards" },
		{ "mlp", { { "hidden", "[3]" } }, 1, 4, HD_LOSS_CROSS_ENTROPY, "width 3 cannot be split in 4 shards" },
		{ "mlp", { { "hidden", "[]" } }, 1, 2, HD_LOSS_MSE, "nothing of this model can be split in 2 shards" },
		{ "gpt", { { "heads", "4" } }, 1, 1025, HD_LOSS_CROSS_ENTROPY, "1025 shards: from 1 to 1024" },
		{ "gpt", { { "heads", "4" } }, 1, 0, HD_LOSS_CROSS_ENTROPY, "0 shards: from 1 to 1024" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_subject s;
		hd_subject_model(&s, cases[i].name, cases[i].arg, cases[i].nargs, (struct hd_model_opts){ cases[i].loss, HD_NORMALIZE_SAMPLE });
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		sharded(&s, cases[i].shards);
		CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, cases[i].says), "case %zu: %s", i, s.diag.text);
		hd_subject_finish(&s);
	}
}

#define PAIR "input x f32 [*,4]\ninput y f32 [*,6]\nparam a f32 [4,6] ones\nparam b f32 [6,6] ones\n%0 = matmul x a ta=0 tb=0\n" \
	"%1 = act %0 act=relu\n"

/* A value that is read whole too is made whole, once: each reader has what it had. */
static void who_reads_a_split_value_whole_gets_it_whole(void **state)
{
	struct hd_subject s;
	uint32_t concats = 0, slices = 0;

	(void)state;
	hd_subject_parse(&s, PAIR "%2 = matmul %1 b ta=0 tb=0\n%3 = softmax %1\n%4 = add %2 %3\n%5 = mse %4 y\n%6 = sum64 %5\noutput loss %6\n"
		"output logits %1\n");
	sharded(&s, 2);
	CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, "nothing of this model can be split"), "%s", s.diag.text);      /* readers differ: not split */
	hd_subject_finish(&s);
	hd_subject_parse(&s, PAIR "%2 = matmul %1 b ta=0 tb=0\n%3 = mse %2 y\n%4 = sum64 %3\noutput loss %4\noutput logits %1\noutput again %1\n");
	sharded(&s, 2);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	for (uint32_t i = 0; i < s.graph.nnodes; i++) {
		concats += s.graph.node[i].op == HD_OP_CONCAT;
		slices += s.graph.node[i].op == HD_OP_SLICE;
	}
	CHECK(concats == 1 && slices == 4, "%u joins, %u slices", concats, slices);
	hd_subject_finish(&s);
}

/* The token table is the head too: both read the same slices, so that its gradient is put together once. */
static void a_tied_table_is_sliced_once(void **state)
{
	struct hd_subject s;
	uint32_t slices = 0;

	(void)state;
	open_model(&s, 1);
	sharded(&s, 3);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	for (uint32_t i = 0; i < s.graph.nnodes; i++)
		slices += s.graph.node[i].op == HD_OP_SLICE && s.graph.node[i].in[0] == s.graph.param[0].value;
	CHECK(slices == 3, "%u slices of %s", slices, hd_graph_text_of(&s.graph, s.graph.value[s.graph.param[0].value].name));
	hd_subject_finish(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_of_products_in_three_shards),
		cmocka_unit_test(models_in_shards_are_sound_and_have_the_same_parameters),
		cmocka_unit_test(the_loss_of_split_logits_gathers_none),
		cmocka_unit_test(what_cannot_be_split_is_refused),
		cmocka_unit_test(a_tied_table_is_sliced_once),
		cmocka_unit_test(who_reads_a_split_value_whole_gets_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
