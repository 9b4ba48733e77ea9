#include "graph/shard.h"

#include <stdio.h>

#include "graph/slices.h"
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
		"param a/0 f32 [4,2] ones tensor 0 a slice 0 of 3 axis 1 of 7 blocks 1\n"
		"param b/0 f32 [5,2] ones tensor 1 b slice 0 of 3 axis 1 of 7 blocks 1\n"
		"param a/1 f32 [4,2] ones tensor 0 a slice 1 of 3 axis 1 of 7 blocks 1\n"
		"param b/1 f32 [5,2] ones tensor 1 b slice 1 of 3 axis 1 of 7 blocks 1\n"
		"param a/2 f32 [4,3] ones tensor 0 a slice 2 of 3 axis 1 of 7 blocks 1\n"
		"param b/2 f32 [5,3] ones tensor 1 b slice 2 of 3 axis 1 of 7 blocks 1\n"
		"%0 = reshape x d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%1 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%2 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%3 = reshape %1 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%4 = reshape %0 d0=-1 d1=4 d2=0 d3=0 d4=0 d5=0 : f32 [*,4]\n"
		"%5 = matmul %2 a/0 ta=0 tb=0 shard=0 : f32 [*,2]\n"
		"%6 = matmul %3 a/1 ta=0 tb=0 shard=1 : f32 [*,2]\n"
		"%7 = matmul %4 a/2 ta=0 tb=0 shard=2 : f32 [*,3]\n"
		"%8 = act %5 act=relu alpha=0 beta=0 shard=0 : f32 [*,2]\n"
		"%9 = act %6 act=relu alpha=0 beta=0 shard=1 : f32 [*,2]\n"
		"%10 = act %7 act=relu alpha=0 beta=0 shard=2 : f32 [*,3]\n"
		"%11 = matmul %8 b/0 ta=0 tb=1 shard=0 : f32 [*,5]\n"
		"%12 = matmul %9 b/1 ta=0 tb=1 shard=1 : f32 [*,5]\n"
		"%13 = matmul %10 b/2 ta=0 tb=1 shard=2 : f32 [*,5]\n"
		"%14 = add %11 %12 : f32 [*,5]\n"
		"%15 = add %14 %13 : f32 [*,5]\n"
		"%16 = mse %15 y : f32 [*]\n"
		"%17 = sum64 %16 : f64 [1]\n"
		"output loss %17\n";
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
	  { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_TOKEN } },
	{ "bert", { { "layers", "1" }, { "width", "12" }, { "heads", "6" }, { "context", "4" }, { "vocab", "9" }, { "head", "cls" }, { "classes", "6" } }, 7, 6,
	  { 0 } },
	{ "lstm", { { "layers", "1" }, { "width", "5" }, { "hidden", "4" }, { "context", "5" }, { "vocab", "9" } }, 5, 5, { 0 } },
};

static void open_model(struct hd_subject *s, size_t m)
{
	hd_subject_model(s, models[m].name, models[m].arg, models[m].nargs, models[m].opts);
	CHECK(s->err == HD_OK, "%s", s->diag.text);
}

/* Slices of another model's tensors: as many, of the same names and extents. */
static void same_tensors(struct hd_subject *s, const struct hd_subject *plain, const char *what)
{
	struct hd_wholes wholes;

	CHECK(hd_wholes_make(&wholes, &s->graph, &s->arena, &s->diag) == HD_OK, "%s: %s", what, s->diag.text);
	CHECK(wholes.n == plain->graph.nparams, "%s: %u tensors", what, wholes.n);
	for (uint32_t t = 0; t < wholes.n; t++) {
		const uint32_t p = wholes.param[wholes.first[t]];
		const struct hd_value a = hd_whole_value(&s->graph, p),
			*b = &plain->graph.value[plain->graph.param[t].value];
		CHECK(hd_dims_same(&a, b) && !strcmp(hd_whole_name(&s->graph, p),
			hd_graph_text_of(&plain->graph, b->name)), "%s: tensor %u", what, t);
	}
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
			same_tensors(&s, &plain, models[m].name);
			CHECK(s.graph.ninputs == plain.graph.ninputs &&
				s.graph.noutputs == plain.graph.noutputs,
				"%s: %u shards change its ends", models[m].name, t);
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
		{ "gpt", { { "vocab", "3" } }, 1, 4, HD_LOSS_CROSS_ENTROPY, "width 3 cannot be split in 4 shards" },
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
			(struct hd_model_opts){ .loss = cases[i].loss, .normalize = HD_NORMALIZE_SAMPLE });
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
		"param g f32 [3] ones tensor 2\n"
		"param b f32 [3] ones tensor 3\n"
		"param t/0 f32 [3,3] ones tensor 0 t slice 0 of 2 axis 0 of 6 blocks 1\n"
		"param p/0 f32 [2,3] ones tensor 1 p slice 0 of 2 axis 0 of 4 blocks 1\n"
		"param t/1 f32 [3,3] ones tensor 0 t slice 1 of 2 axis 0 of 6 blocks 1\n"
		"param p/1 f32 [2,3] ones tensor 1 p slice 1 of 2 axis 0 of 4 blocks 1\n"
		"const $0 i32 [1] 0\n"
		"const $1 i32 [1] 3\n"
		"%0 = sub x $0 shard=0 : i32 [*,4]\n"
		"%1 = gather t/0 %0 shard=0 : f32 [*,4,3]\n"
		"%2 = sub x $1 shard=1 : i32 [*,4]\n"
		"%3 = gather t/1 %2 shard=1 : f32 [*,4,3]\n"
		"%4 = add %1 %3 : f32 [*,4,3]\n"
		"%5 = slice %4 axis=1 step=1 count=2 shard=0 : f32 [*,2,3]\n"
		"%6 = slice %4 axis=1 from=2 step=1 count=2 shard=1 : f32 [*,2,3]\n"
		"%7 = add %5 p/0 shard=0 : f32 [*,2,3]\n"
		"%8 = add %6 p/1 shard=1 : f32 [*,2,3]\n"
		"%9 = dropout %7 p=0.5 whole=4 key=0 shard=0 : f32 [*,2,3]\n"
		"%10 = dropout %8 p=0.5 from=2 whole=4 key=0 shard=1 : f32 [*,2,3]\n"
		"%11 = reshape g d0=3 : f32 [3]\n"
		"%12 = reshape %11 d0=3 : f32 [3]\n"
		"%13 = reshape %11 d0=3 : f32 [3]\n"
		"%14 = reshape b d0=3 : f32 [3]\n"
		"%15 = reshape %14 d0=3 : f32 [3]\n"
		"%16 = reshape %14 d0=3 : f32 [3]\n"
		"%17 = add %7 %9 shard=0 : f32 [*,2,3]\n"
		"%18,%19 = layernorm %17 %12 %15 eps=1e-05 shard=0 : f32 [*,2,3], f32 [*,2,2]\n"
		"%20 = add %8 %10 shard=1 : f32 [*,2,3]\n"
		"%21,%22 = layernorm %20 %13 %16 eps=1e-05 shard=1 : f32 [*,2,3], f32 [*,2,2]\n"
		"%23 = concat %18 %21 axis=1 : f32 [*,4,3]\n"
		"%24 = softmax %23 : f32 [*,4,3]\n"
		"%25 = softmax %23 : f32 [*,4,3]\n"
		"%26 = add %24 %25 : f32 [*,4,3]\n"
		"%27 = sum64 %26 : f64 [1]\n"
		"output loss %27\n";
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
			same_tensors(&s, &plain, model->name);
			CHECK(s.graph.nrandom == plain.graph.nrandom, "%s: keys", model->name);
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
	CHECK(concats == 1 && slices == 0, "%u joins, %u slices", concats, slices);
	hd_subject_finish(&s);
}

/* The token table is the head too: both read the same slices, so each has two parts of its gradient. */
static void a_tied_table_is_cut_once(void **state)
{
	struct hd_subject s;
	uint32_t readers = 0, slices = 0;

	(void)state;
	open_model(&s, 1);
	sharded(&s, 3);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	const uint32_t first = hd_graph_find_param(&s.graph, "wte.weight/0");
	assert_true(first != HD_NONE);
	for (uint32_t i = 0; i < s.graph.nnodes; i++)
		for (uint8_t k = 0; k < s.graph.node[i].nin; k++) {
			readers += s.graph.node[i].in[k] == s.graph.param[first].value;
			slices += s.graph.node[i].op == HD_OP_SLICE &&
				s.graph.value[s.graph.node[i].in[k]].kind == HD_PARAM;
		}
	CHECK(readers == 2 && slices == 0, "%u readers, %u slices of parameters", readers, slices);
	CHECK(hd_graph_autodiff(&s.graph, &s.diag) == HD_OK, "%s", s.diag.text);
	assert_int_equal(s.graph.nparts, 3);
	hd_subject_finish(&s);
}

/* What is read whole too stays one parameter, and shards read slices of it. */
static void who_reads_a_parameter_whole_finds_it_whole(void **state)
{
	struct hd_subject s;
	uint32_t slices = 0;

	(void)state;
	hd_subject_parse(&s,
		PAIR "%2 = matmul %1 b ta=0 tb=0\n%3 = mse %2 y\n%4 = sum64 %3\noutput loss %4\noutput "
		"spare a\n");
	sharded(&s, 2);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	for (uint32_t i = 0; i < s.graph.nnodes; i++)
		slices += s.graph.node[i].op == HD_OP_SLICE;
	CHECK(slices == 2 && s.graph.nparams == 3 && hd_graph_find_param(&s.graph, "a") == 0 &&
		hd_graph_find_param(&s.graph, "b/1") == 2, "%s", hd_subject_print(&s));
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
		cmocka_unit_test(a_tied_table_is_cut_once),
		cmocka_unit_test(who_reads_a_parameter_whole_finds_it_whole),
		cmocka_unit_test(who_reads_a_split_value_whole_gets_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
