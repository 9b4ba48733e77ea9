#include "graph/shard.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

static void sharded_along(struct hd_subject *s, uint32_t nshards, bool sequence)
{
	if (s->err == HD_OK)
		s->err = hd_graph_shard(&s->graph, nshards, sequence, &s->diag);
	if (s->err == HD_OK)
		s->err = hd_graph_verify(&s->graph, 4, &s->diag);
}

static void sharded(struct hd_subject *s, uint32_t nshards) { sharded_along(s, nshards, false); }

/* Three shards of 7 columns: 2, 2 and 3; x is handed down the tree ((0 1) 2), the results are added up
 * along it. */
static void a_pair_of_products_in_three_shards(void **state)
{
	static const char before[] =
		"input x f32 [*,4]\ninput y f32 [*,5]\nparam a f32 [4,7] ones\nparam b f32 [5,7] ones\n%0 = "
		"matmul x a ta=0 tb=0\n"
		"%1 = act %0 act=relu\n%2 = matmul %1 b ta=0 tb=1\n%3 = mse %2 y\n%4 = sum64 %3\noutput "
		"loss %4\n";
	static const char after[] =
		"input x f32 [*,4]\n"
		"input y f32 [*,5]\n"
		"param a f32 [4,7] ones\n"
		"param b f32 [5,7] ones\n"
		"%0 = reshape x d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%1 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%2 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%3 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%4 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%5 = slice a axis=1 from=0 step=1 count=2 shard=0 : f32 [4,2]\n"
		"%6 = slice a axis=1 from=2 step=1 count=2 shard=1 : f32 [4,2]\n"
		"%7 = slice a axis=1 from=4 step=1 count=3 shard=2 : f32 [4,3]\n"
		"%8 = matmul %2 %5 ta=0 tb=0 shard=0 : f32 [*,2]\n"
		"%9 = matmul %3 %6 ta=0 tb=0 shard=1 : f32 [*,2]\n"
		"%10 = matmul %4 %7 ta=0 tb=0 shard=2 : f32 [*,3]\n"
		"%11 = act %8 act=relu alpha=0 beta=0 shard=0 : f32 [*,2]\n"
		"%12 = act %9 act=relu alpha=0 beta=0 shard=1 : f32 [*,2]\n"
		"%13 = act %10 act=relu alpha=0 beta=0 shard=2 : f32 [*,3]\n"
		"%14 = slice b axis=1 from=0 step=1 count=2 shard=0 : f32 [5,2]\n"
		"%15 = slice b axis=1 from=2 step=1 count=2 shard=1 : f32 [5,2]\n"
		"%16 = slice b axis=1 from=4 step=1 count=3 shard=2 : f32 [5,3]\n"
		"%17 = matmul %11 %14 ta=0 tb=1 shard=0 : f32 [*,5]\n"
		"%18 = matmul %12 %15 ta=0 tb=1 shard=1 : f32 [*,5]\n"
		"%19 = matmul %13 %16 ta=0 tb=1 shard=2 : f32 [*,5]\n"
		"%20 = add %17 %18 : f32 [*,5]\n"
		"%21 = add %20 %19 : f32 [*,5]\n"
		"%22 = mse %21 y : f32 [*]\n"
		"%23 = sum64 %22 : f64 [1]\n"
		"output loss %23\n";
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

static const struct model { const char *name; struct hd_model_arg arg[7]; uint32_t nargs, most;
	struct hd_model_opts opts; } models[] = {
	{ "mlp", { { "input", "[9]" }, { "hidden", "[12, 8]" }, { "classes", "8" } }, 3, 8, { 0 } },
	{ "gpt", { { "layers", "2" }, { "width", "24" }, { "heads", "6" }, { "context", "5" }, { "vocab", "11" }, { "dropout", "0.1" } }, 6, 6, { 0 } },
	{ "llama", { { "layers", "1" }, { "width", "24" }, { "heads", "6" }, { "context", "5" }, { "vocab", "11" }, { "tie", "true" } }, 6, 6, { 0 } },
	{ "llama", { { "layers", "1" }, { "width", "20" }, { "heads", "6" }, { "head_dim", "8" }, { "context", "5" }, { "vocab", "11" } }, 6, 6, { 0 } },
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

/* Every count of shards that divides the heads: a sound graph that prints and parses, with the parameters
 * of before, and a gradient. */
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
				CHECK(6 % t != 0 && strstr(s.diag.text, "heads 6 cannot be split in "),
					"%s, %u shards: %s", models[m].name, t, s.diag.text);
				hd_subject_finish(&s);
				hd_subject_finish(&plain);
				continue;
			}
			CHECK((t == 1) == !strcmp(hd_subject_print(&s), hd_subject_print(&plain)),
				"%s: %u shards", models[m].name, t);
			CHECK(s.graph.nparams == plain.graph.nparams &&
				s.graph.ninputs == plain.graph.ninputs &&
				s.graph.noutputs == plain.graph.noutputs,
				"%s: %u shards change its ends", models[m].name, t);
			for (uint32_t p = 0; p < s.graph.nparams; p++) {
				const struct hd_value *a = &s.graph.value[s.graph.param[p].value],
					*b = &plain.graph.value[plain.graph.param[p].value];
				CHECK(hd_dims_same(a, b) &&
					!strcmp(hd_graph_text_of(&s.graph, a->name),
					hd_graph_text_of(&plain.graph, b->name)),
					"parameter %u", p);
			}
			for (uint32_t o = 0; o < s.graph.noutputs; o++)
				CHECK(hd_dims_same(&s.graph.value[s.graph.output[o].value],
					&plain.graph.value[plain.graph.output[o].value]), "output %u", o);
			CHECK(s.graph.nrandom == plain.graph.nrandom, "random keys");
			CHECK(hd_graph_optimize(&s.graph, 4, &s.diag) == HD_OK &&
				hd_graph_autodiff(&s.graph, &s.diag) == HD_OK
				&& hd_graph_verify(&s.graph, 4, &s.diag) == HD_OK, "%s, %u shards: %s",
					models[m].name, t, s.diag.text);
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
			wide += s.graph.value[v].kind == HD_TEMP &&
				s.graph.value[v].dim[s.graph.value[v].rank - 1] == 11;
		CHECK((t == 1) == (wide > 0), "%u shards: %u values of 11 columns", t, wide);
		hd_subject_finish(&s);
	}
}

static void what_cannot_be_split_is_refused(void **state)
{
	static const struct { const char *name; struct hd_model_arg arg[6]; uint32_t nargs, shards;
		enum hd_loss loss; const char *says; } cases[] = {
		{ "gpt", { { "heads", "12" }, { "width", "24" } }, 2, 8, HD_LOSS_CROSS_ENTROPY, "heads 12 cannot be split in 8 shards" },
		{ "llama", { { "heads", "8" }, { "kv_heads", "2" }, { "width", "32" } }, 3, 4, HD_LOSS_CROSS_ENTROPY, "heads 2 cannot be split in 4 shards" },
		{ "gpt", { { "vocab", "3" } }, 1, 4, HD_LOSS_CROSS_ENTROPY, "vocabulary 3 cannot be split in 4 shards" },
		{ "mlp", { { "hidden", "[3]" } }, 1, 4, HD_LOSS_CROSS_ENTROPY, "width 3 cannot be split in 4 shards" },
		{ "mlp", { { "hidden", "[]" } }, 1, 2, HD_LOSS_MSE, "nothing of this model can be split in 2 shards" },
		{ "gpt", { { "heads", "4" } }, 1, 1025, HD_LOSS_CROSS_ENTROPY, "1025 shards: from 1 to 1024" },
		{ "gpt", { { "heads", "4" } }, 1, 0, HD_LOSS_CROSS_ENTROPY, "0 shards: from 1 to 1024" },
	};
	static const struct { const char *name; struct hd_model_arg arg[6]; uint32_t nargs; const char *says;
		} along[] = {
		{ "gpt", { { "heads", "4" }, { "width", "24" }, { "context", "6" } }, 3, "sequence 6 cannot be split in 4 shards" },
		{ "bert", { { "heads", "4" }, { "width", "24" }, { "context", "13" } }, 3, "sequence 13 cannot be split in 4 shards" },
		{ "mlp", { { "hidden", "[8]" } }, 1, "nothing of this model lies along a sequence" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_subject s;
		hd_subject_model(&s, cases[i].name, cases[i].arg, cases[i].nargs,
			(struct hd_model_opts){ cases[i].loss, HD_NORMALIZE_SAMPLE });
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		sharded(&s, cases[i].shards);
		CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, cases[i].says), "case %zu: %s", i,
			s.diag.text);
		hd_subject_finish(&s);
	}
	for (size_t i = 0; i < sizeof along / sizeof along[0]; i++) {
		struct hd_subject s;
		hd_subject_model(&s, along[i].name, along[i].arg, along[i].nargs,
			(struct hd_model_opts){ 0 });
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		sharded_along(&s, 4, true);
		CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, along[i].says),
			"case %zu along the sequence: %s", i, s.diag.text);
		hd_subject_finish(&s);
	}
}

/* Two parts of two positions: the sum over shards is sliced, what both parts read is handed to them, a sum
 * and its norm stay neighbours, the parts of the dropout have one key and say where they lie, and a reader
 * of all of it gets it joined, once. */
static void a_region_in_two_parts(void **state)
{
	static const char before[] =
		"input x i32 [*,4]\nparam t f32 [6,3] ones\nparam p f32 [4,3] ones\nparam g f32 [3] "
		"ones\nparam b f32 [3] ones\n"
		"%0 = embed x t\n%1 = add %0 p\n%2 = dropout %1 p=0.5\n%3 = add %1 %2\n%4,%5 = layernorm %3 "
		"g b eps=1e-05\n%6 = softmax %4\n"
		"%7 = softmax %4\n%8 = add %6 %7\n%9 = sum64 %8\noutput loss %9\n";
	static const char after[] = "input x i32 [*,4]\n"
		"param t f32 [6,3] ones\n"
		"param p f32 [4,3] ones\n"
		"param g f32 [3] ones\n"
		"param b f32 [3] ones\n"
		"const $0 i32 [1] 0\n"
		"const $1 i32 [1] 3\n"
		"%0 = slice t step=1 count=3 shard=0 : f32 [3,3]\n"
		"%1 = slice t from=3 step=1 count=3 shard=1 : f32 [3,3]\n"
		"%2 = sub x $0 shard=0 : i32 [*,4]\n"
		"%3 = gather %0 %2 shard=0 : f32 [*,4,3]\n"
		"%4 = sub x $1 shard=1 : i32 [*,4]\n"
		"%5 = gather %1 %4 shard=1 : f32 [*,4,3]\n"
		"%6 = add %3 %5 : f32 [*,4,3]\n"
		"%7 = slice %6 axis=1 step=1 count=2 shard=0 : f32 [*,2,3]\n"
		"%8 = slice %6 axis=1 from=2 step=1 count=2 shard=1 : f32 [*,2,3]\n"
		"%9 = slice p step=1 count=2 shard=0 : f32 [2,3]\n"
		"%10 = slice p from=2 step=1 count=2 shard=1 : f32 [2,3]\n"
		"%11 = add %7 %9 shard=0 : f32 [*,2,3]\n"
		"%12 = add %8 %10 shard=1 : f32 [*,2,3]\n"
		"%13 = dropout %11 p=0.5 whole=4 key=0 shard=0 : f32 [*,2,3]\n"
		"%14 = dropout %12 p=0.5 from=2 whole=4 key=0 shard=1 : f32 [*,2,3]\n"
		"%15 = reshape g d0=3 : f32 [3]\n"
		"%16 = reshape %15 d0=3 : f32 [3]\n"
		"%17 = reshape %15 d0=3 : f32 [3]\n"
		"%18 = reshape b d0=3 : f32 [3]\n"
		"%19 = reshape %18 d0=3 : f32 [3]\n"
		"%20 = reshape %18 d0=3 : f32 [3]\n"
		"%21 = add %11 %13 shard=0 : f32 [*,2,3]\n"
		"%22,%23 = layernorm %21 %16 %19 eps=1e-05 shard=0 : f32 [*,2,3], f32 [*,2,2]\n"
		"%24 = add %12 %14 shard=1 : f32 [*,2,3]\n"
		"%25,%26 = layernorm %24 %17 %20 eps=1e-05 shard=1 : f32 [*,2,3], f32 [*,2,2]\n"
		"%27 = concat %22 %25 axis=1 : f32 [*,4,3]\n"
		"%28 = softmax %27 : f32 [*,4,3]\n"
		"%29 = softmax %27 : f32 [*,4,3]\n"
		"%30 = add %28 %29 : f32 [*,4,3]\n"
		"%31 = sum64 %30 : f64 [1]\n"
		"output loss %31\n";
	struct hd_subject s, want;

	(void)state;
	hd_subject_parse(&s, before);
	sharded_along(&s, 2, true);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	hd_subject_parse(&want, after);
	CHECK(want.err == HD_OK, "%s", want.diag.text);
	CHECK(!strcmp(hd_subject_print(&s), hd_subject_print(&want)), "%s", hd_subject_print(&s));
	assert_int_equal(want.graph.nrandom, s.graph.nrandom);
	hd_subject_finish(&s);
	hd_subject_finish(&want);
}

/* whole: norms that lie behind no sum over shards, and stay whole. */
static const struct along { const char *name; struct hd_model_arg arg[7]; uint32_t nargs, whole;
	} along_models[] = {
	{ "gpt", { { "layers", "2" }, { "width", "24" }, { "heads", "6" }, { "context", "6" }, { "vocab", "11" }, { "dropout", "0.1" } }, 6, 0 },
	{ "llama", { { "layers", "2" }, { "width", "24" }, { "heads", "6" }, { "context", "6" }, { "vocab", "11" } }, 5, 0 },
	{ "bert", { { "layers", "1" }, { "width", "12" }, { "heads", "6" }, { "context", "6" }, { "vocab", "9" }, { "share", "0.5" } }, 6, 1 },
};

struct op_counts { uint32_t norms, fused, dropouts, whole, other; };

static struct op_counts count_nodes(const struct hd_graph *g, int64_t positions)
{
	struct op_counts c = { 0 };

	for (uint32_t i = 0; i < g->nforward; i++) {
		const struct hd_node *n = &g->node[i];
		bool fused = n->op == HD_OP_ADD_LAYERNORM || n->op == HD_OP_ADD_RMSNORM, norm = fused ||
			n->op == HD_OP_LAYERNORM || n->op == HD_OP_RMSNORM;
		c.norms += norm;
		c.fused += fused;
		c.dropouts += n->op == HD_OP_DROPOUT;
		c.whole += (norm || n->op == HD_OP_DROPOUT) && g->value[n->out].dim[1] == 6;
		c.other += (norm || n->op == HD_OP_DROPOUT) && g->value[n->out].dim[1] != 6 &&
			g->value[n->out].dim[1] != positions;
	}
	return c;
}

static void norms_and_dropout_between_split_sums_work_on_their_part_of_the_positions(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof along_models / sizeof along_models[0]; m++)
		for (uint32_t t = 2; t <= 6; t += t == 3 ? 3 : 1) {
			const struct along *model = &along_models[m];
			struct hd_subject plain, s, read;
			hd_subject_model(&plain, model->name, model->arg, model->nargs,
				(struct hd_model_opts){ 0 });
			hd_subject_model(&s, model->name, model->arg, model->nargs,
				(struct hd_model_opts){ 0 });
			sharded_along(&s, t, true);
			CHECK(s.err == HD_OK, "%s, %u shards: %s", model->name, t, s.diag.text);
			CHECK(s.graph.nparams == plain.graph.nparams &&
				s.graph.nrandom == plain.graph.nrandom, "%s: parameters, keys", model->name);
			hd_subject_parse(&read, hd_subject_print(&s));
			CHECK(read.err == HD_OK && !strcmp(hd_subject_print(&read), hd_subject_print(&s)),
				"%s is read otherwise: %s", model->name,
				read.diag.text);
			CHECK(hd_graph_optimize(&s.graph, 4, &s.diag) == HD_OK &&
				hd_graph_optimize(&plain.graph, 4, &s.diag) == HD_OK, "%s", s.diag.text);
			struct op_counts a = count_nodes(&plain.graph, 6), b = count_nodes(&s.graph, 6 / t);
			CHECK(b.whole == model->whole && b.other == 0 &&
				b.norms == t * (a.norms - model->whole) + model->whole
				&& b.dropouts == t * a.dropouts && b.fused == t * a.fused,
				"%s, %u shards: %u norms, %u fused with their sum, %u dropouts, %u of all "
				"positions, %u of others; whole: %u, %u, %u",
				model->name, t, b.norms, b.fused, b.dropouts, b.whole, b.other, a.norms,
				a.fused, a.dropouts);
			CHECK(hd_graph_autodiff(&s.graph, &s.diag) == HD_OK &&
				hd_graph_verify(&s.graph, 4, &s.diag) == HD_OK, "%s, %u shards: %s",
				model->name, t, s.diag.text);
			hd_subject_finish(&s);
			hd_subject_finish(&read);
			hd_subject_finish(&plain);
		}
}

#define PAIR "input x f32 [*,4]\ninput y f32 [*,6]\nparam a f32 [4,6] ones\nparam b f32 [6,6] ones\n%0 = " \
	"matmul x a ta=0 tb=0\n" \
	"%1 = act %0 act=relu\n"

/* A value that is read whole too is made whole, once: each reader has what it had. */
static void who_reads_a_split_value_whole_gets_it_whole(void **state)
{
	struct hd_subject s;
	uint32_t concats = 0, slices = 0;

	(void)state;
	hd_subject_parse(&s,
		PAIR "%2 = matmul %1 b ta=0 tb=0\n%3 = softmax %1\n%4 = add %2 %3\n%5 = mse %4 y\n%6 = "
		"sum64 %5\noutput loss %6\n"
		"output logits %1\n");
	sharded(&s, 2);
	/* readers differ: not split */
	CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, "nothing of this model can be split"), "%s",
		s.diag.text);
	hd_subject_finish(&s);
	hd_subject_parse(&s,
		PAIR "%2 = matmul %1 b ta=0 tb=0\n%3 = mse %2 y\n%4 = sum64 %3\noutput loss %4\noutput "
		"logits %1\noutput again %1\n");
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
		slices += s.graph.node[i].op == HD_OP_SLICE &&
			s.graph.node[i].in[0] == s.graph.param[0].value;
	CHECK(slices == 3, "%u slices of %s", slices, hd_graph_text_of(&s.graph,
		s.graph.value[s.graph.param[0].value].name));
	hd_subject_finish(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_of_products_in_three_shards),
		cmocka_unit_test(models_in_shards_are_sound_and_have_the_same_parameters),
		cmocka_unit_test(the_loss_of_split_logits_gathers_none),
		cmocka_unit_test(what_cannot_be_split_is_refused),
		cmocka_unit_test(a_region_in_two_parts),
		cmocka_unit_test(norms_and_dropout_between_split_sums_work_on_their_part_of_the_positions),
		cmocka_unit_test(a_tied_table_is_sliced_once),
		cmocka_unit_test(who_reads_a_split_value_whole_gets_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
