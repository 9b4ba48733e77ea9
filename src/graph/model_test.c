#include "graph/model.h"

#include <stdio.h>

#include "graph/layout.h"
#include "graph/testing.h"
#include "tests/check.h"

static uint64_t parameters(const char *name, const struct hd_model_arg *arg, uint32_t nargs)
{
	struct hd_subject s;
	struct hd_layout l;

	hd_subject_model(&s, name, arg, nargs, (struct hd_model_opts){ 0 });
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	assert_int_equal(hd_layout_make(&l, &s.graph, &s.arena, NULL), HD_OK);
	hd_subject_finish(&s);
	return l.params_elems;
}

/* LeNet-5, GPT-2 small, BERT base with its head for masked tokens and TinyLlama-1.1B are known by these
 * numbers; PyTorch counts the recurrent ones. */
static void models_have_the_known_numbers_of_parameters(void **state)
{
	static const struct hd_model_arg gpt2[] = {
		{ "layers", "12" }, { "width", "768" }, { "heads", "12" }, { "context", "1024" }, { "vocab", "50257" },
	};

	static const struct hd_model_arg tiny[] = {
		{ "layers", "22" }, { "width", "2048" }, { "heads", "32" }, { "kv_heads", "4" }, { "hidden", "5632" }, { "context", "2048" }, { "vocab", "32000" },
	};

	static const struct hd_model_arg base[] = {
		{ "layers", "12" }, { "width", "768" }, { "heads", "12" }, { "context", "512" }, { "vocab", "30522" }, { "eps", "1e-12" },
	};

	static const struct hd_model_arg classes[] = {
		{ "layers", "12" }, { "width", "768" }, { "heads", "12" }, { "context", "512" }, { "vocab", "30522" }, { "head", "cls" }, { "classes", "2" },
	};

	static const struct hd_model_arg roberta[] = {
		{ "layers", "12" }, { "width", "768" }, { "heads", "12" }, { "context", "512" }, { "offset", "2" },
		{ "positions", "514" }, { "vocab", "50265" }, { "types", "1" }, { "pad", "1" },
	};

	(void)state;
	assert_int_equal(parameters("llama", tiny, 7), 1100048384);
	assert_int_equal(parameters("bert", base, 6), 109514298);
	/* with Hugging Face's head for two classes */
	assert_int_equal(parameters("bert", classes, 7), 109483778);
	assert_int_equal(parameters("lstm", NULL, 0), 256 * 128 + 4 * 256 * (128 + 256 + 2) + 4 * 256 *
		(256 + 256 + 2) + 256 * 257);
	assert_int_equal(parameters("gru", NULL, 0), 256 * 128 + 3 * 256 * (128 + 256 + 2) + 3 * 256 *
		(256 + 256 + 2) + 256 * 257);
	assert_int_equal(parameters("lenet", NULL, 0), 61706);
	assert_int_equal(parameters("gpt", gpt2, 5), 124439808);
	/* torchvision's, as those below */
	assert_int_equal(parameters("resnet18", NULL, 0), 11689512);
	assert_int_equal(parameters("resnet34", NULL, 0), 21797672);
	assert_int_equal(parameters("resnet50", NULL, 0), 25557032);
	assert_int_equal(parameters("resnet101", NULL, 0), 44549160);
	assert_int_equal(parameters("resnet152", NULL, 0), 60192808);
	assert_int_equal(parameters("resnext50_32x4d", NULL, 0), 25028904);
	assert_int_equal(parameters("resnext101_32x8d", NULL, 0), 88791336);
	assert_int_equal(parameters("resnext101_64x4d", NULL, 0), 83455272);
	assert_int_equal(parameters("wide_resnet50_2", NULL, 0), 68883240);
	assert_int_equal(parameters("wide_resnet101_2", NULL, 0), 126886696);
	/* of RobertaForMaskedLM, roberta-base */
	assert_int_equal(parameters("roberta", roberta, 9), 124697433);
	assert_int_equal(parameters("resnet18", (struct hd_model_arg[]){ { "norm", "group" } }, 1), 11689512);
	assert_int_equal(parameters("vgg16", NULL, 0), 138357544);
	assert_int_equal(parameters("vgg16", (struct hd_model_arg[]){ { "norm", "batch" } }, 1), 138365992);
	/* counted by PyTorch (tests/torch/make_fixtures.py) */
	assert_int_equal(parameters("inception", NULL, 0), 10157224);
	assert_int_equal(parameters("inception", (struct hd_model_arg[]){ { "wide", "3x3" } }, 1), 10213800);
	assert_int_equal(parameters("mlp", NULL, 0), 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10);
	assert_int_equal(parameters("mlp", (struct hd_model_arg[]){ { "hidden", "[]" }, { "input", "[4]" } },
		2), 4 * 10 + 10);
}

struct tensor { const char *model, *name; int64_t dim[4]; float scale; };

static const struct tensor tensors_of_images[] = {
	{ "resnet18", "conv1.weight", { 64, 3, 7, 7 }, 0.025254f },                  /* sqrt(2 / (7 x 7 x 64)) */
	{ "resnet18", "bn1.weight", { 64 }, 0 },
	{ "resnet18", "layer1.0.conv1.weight", { 64, 64, 3, 3 }, 0.058926f },
	{ "resnet18", "layer2.0.downsample.0.weight", { 128, 64, 1, 1 }, 0.125f },
	{ "resnet18", "layer2.0.downsample.1.bias", { 128 }, 0 },
	{ "resnet18", "layer4.1.bn2.bias", { 512 }, 0 },
	{ "resnet18", "fc.weight", { 1000, 512 }, 0.044194f },                       /* 1 / sqrt(512) */
	{ "resnet34", "layer3.5.conv2.weight", { 256, 256, 3, 3 }, 0.029463f },
	{ "resnet50", "layer1.0.downsample.0.weight", { 256, 64, 1, 1 }, 0.088388f },
	{ "resnet50", "layer4.2.conv3.weight", { 2048, 512, 1, 1 }, 0.03125f },
	{ "resnet50", "layer3.0.conv2.weight", { 256, 256, 3, 3 }, 0.029463f },
	{ "inception", "conv3.conv.weight", { 192, 64, 3, 3 }, 0.034021f },
	{ "inception", "inception3a.branch1.conv.weight", { 64, 192, 1, 1 }, 0.176777f },
	{ "inception", "inception4e.branch2.1.conv.weight", { 256, 192, 3, 3 }, 0.029463f },
	{ "inception", "inception5b.branch3.1.conv.weight", { 128, 64, 5, 5 }, 0.025f },
	{ "inception", "inception5a.branch4.1.bn.weight", { 128 }, 0 },
	{ "inception", "fc.weight", { 1000, 1024 }, 0.03125f },
	{ "vgg16", "features.0.weight", { 64, 3, 3, 3 }, 0.058926f },
	{ "vgg16", "features.28.bias", { 512 }, 0 },
	{ "vgg16", "classifier.0.weight", { 4096, 25088 }, 0.01f },
	{ "vgg16", "classifier.6.bias", { 1000 }, 0 },
};

static void image_models_have_torchvisions_names_shapes_and_initial_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tensors_of_images / sizeof tensors_of_images[0]; i++) {
		const struct tensor *t = &tensors_of_images[i];
		struct hd_subject s;
		hd_subject_model(&s, t->model, NULL, 0, (struct hd_model_opts){ 0 });
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		uint32_t p = hd_graph_find_param(&s.graph, t->name);
		CHECK(p != HD_NONE, "%s: no %s", t->model, t->name);
		const struct hd_value *v = &s.graph.value[s.graph.param[p].value];
		for (int d = 0; d < 4; d++)
			CHECK(t->dim[d] == (d < v->rank ? v->dim[d] : 0), "%s: %s is %s", t->model, t->name,
				hd_value_shape(v).at);
		CHECK(s.graph.param[p].scale >= t->scale * 0.9999f &&
			s.graph.param[p].scale <= t->scale * 1.0001f, "%s: %s has scale %g", t->model,
			t->name, (double)s.graph.param[p].scale);
		hd_subject_finish(&s);
	}
}

static void norms_over_the_batch_have_running_statistics(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "resnet18", (struct hd_model_arg[]){ { "stem", "cifar" } }, 1,
		(struct hd_model_opts){ 0 });
	assert_int_equal(s.graph.nbuffers, 2 * 20);
	assert_int_equal(s.graph.nrunning, 20);
	assert_true(hd_graph_find_buffer(&s.graph, "layer3.0.downsample.1.running_mean") != HD_NONE);
	assert_true(hd_graph_find_buffer(&s.graph, "bn1.running_var") != HD_NONE);
	hd_subject_finish(&s);
	hd_subject_model(&s, "resnet18", (struct hd_model_arg[]){ { "norm", "group" }, { "base", "32" } }, 2,
		(struct hd_model_opts){ 0 });
	assert_int_equal(s.graph.nbuffers, 0);
	hd_subject_finish(&s);
	hd_subject_model(&s, "vgg16", (struct hd_model_arg[]){ { "norm", "batch" } }, 1,
		(struct hd_model_opts){ 0 });
	assert_int_equal(s.graph.nrunning, 13);
	assert_true(hd_graph_find_buffer(&s.graph, "features.41.running_mean") != HD_NONE);
	hd_subject_finish(&s);
}

/* A file written by others under these names must find its place. */
static void gpt_has_the_public_names_and_shapes(void **state)
{
	static const struct { const char *name; int64_t rows, cols; } tensors[] = {
		{ "wte.weight", 256, 128 }, { "wpe.weight", 128, 128 }, { "h.0.ln_1.weight", 128, 0 }, { "h.0.ln_1.bias", 128, 0 },
		{ "h.0.attn.c_attn.weight", 128, 384 }, { "h.0.attn.c_attn.bias", 384, 0 }, { "h.0.attn.c_proj.weight", 128, 128 },
		{ "h.3.attn.c_proj.bias", 128, 0 }, { "h.3.ln_2.weight", 128, 0 }, { "h.3.mlp.c_fc.weight", 128, 512 },
		{ "h.3.mlp.c_proj.weight", 512, 128 }, { "ln_f.weight", 128, 0 }, { "ln_f.bias", 128, 0 },
	};
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "gpt", NULL, 0, (struct hd_model_opts){ 0 });
	assert_int_equal(s.graph.nparams, 2 + 4 * 12 + 2);
	for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
		uint32_t p = hd_graph_find_param(&s.graph, tensors[i].name);
		CHECK(p != HD_NONE, "%s", tensors[i].name);
		const struct hd_value *v = &s.graph.value[s.graph.param[p].value];
		CHECK(v->dim[0] == tensors[i].rows && v->rank == (tensors[i].cols ? 2 : 1) &&
			(v->rank == 1 || v->dim[1] == tensors[i].cols),
			"%s is %s", tensors[i].name, hd_value_shape(v).at);
	}
	uint32_t p = hd_graph_find_param(&s.graph, "h.2.mlp.c_proj.weight");
	/* 0.02 / sqrt(8) */
	assert_true(s.graph.param[p].scale > 0.00707f && s.graph.param[p].scale < 0.00708f);
	hd_subject_finish(&s);
}

static uint16_t maker_of(const struct hd_subject *s, const char *output, uint32_t *in0)
{
	uint32_t v = hd_graph_find_output(&s->graph, output);

	assert_true(v != HD_NONE);
	const struct hd_node *n = &s->graph.node[s->graph.value[v].node];
	*in0 = n->in[0];
	return n->op;
}

static void weights_count_rows_or_labels(void **state)
{
	static const char *const names[] = { "mlp", "lenet", "gpt" };
	uint32_t counted, summed;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int token = 0; token < 2; token++) {
			struct hd_subject s;
			hd_subject_model(&s, names[i], NULL, 0,
				(struct hd_model_opts){ .loss = HD_LOSS_CROSS_ENTROPY,
					.normalize = (enum hd_normalize)token });
			CHECK(s.err == HD_OK, "%s", s.diag.text);
			assert_int_equal(maker_of(&s, "weight", &counted), HD_OP_COUNT64);
			assert_int_equal(s.graph.value[counted].dtype, token ? HD_I32 : HD_F32);
			assert_true(s.graph.value[counted].dim[0] == -1);
			assert_int_equal(maker_of(&s, "loss", &summed), HD_OP_SUM64);
			bool scaled = s.graph.node[s.graph.value[summed].node].op == HD_OP_SCALE;
			CHECK(scaled == (i == 2 && !token), "%s", names[i]);
			hd_subject_finish(&s);
		}
}

static void groups_of_an_inception_net_divide_a_quarter_of_its_base(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "inception", (struct hd_model_arg[]){ { "norm", "group" } }, 1,
		(struct hd_model_opts){ 0 });
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	assert_int_equal(s.graph.nbuffers, 0);
	hd_subject_finish(&s);
	hd_subject_model(&s, "inception", (struct hd_model_arg[]){ { "norm", "group" }, { "base", "16" } }, 2,
		(struct hd_model_opts){ 0 });
	CHECK(s.err == HD_E_INVAL && strstr(s.diag.text, "a quarter of base, 4, is no multiple of 16"), "%s",
		s.diag.text);
	hd_subject_finish(&s);
}

/* A sample weighs 1 whatever its tokens are; with normalize token only what has a label counts. */
static void a_class_of_a_text_is_one_prediction_per_sample(void **state)
{
	(void)state;
	for (int token = 0; token < 2; token++) {
		uint32_t counted;
		struct hd_subject s;
		hd_subject_model(&s, "bert", (struct hd_model_arg[]){ { "head", "cls" }, { "classes", "3" } },
			2,
			(struct hd_model_opts){ .loss = HD_LOSS_CROSS_ENTROPY,
				.normalize = (enum hd_normalize)token });
		CHECK(s.err == HD_OK, "%s", s.diag.text);
		const struct hd_value *y = &s.graph.value[s.graph.input[hd_graph_find_input(&s.graph, "y")]];
		const struct hd_value *logits = &s.graph.value[hd_graph_find_output(&s.graph, "logits")];
		assert_true(y->rank == 1 && logits->rank == 2 && logits->dim[1] == 3);
		assert_int_equal(maker_of(&s, "weight", &counted), HD_OP_COUNT64);
		assert_int_equal(s.graph.value[counted].dtype, token ? HD_I32 : HD_F32);
		assert_true(hd_graph_find_param(&s.graph, "bert.pooler.dense.weight") != HD_NONE);
		assert_true(hd_graph_find_param(&s.graph, "cls.predictions.bias") == HD_NONE);
		hd_subject_finish(&s);
	}
}

static const struct { const char *model; struct hd_model_arg arg; struct hd_model_opts opts; const char *says;
	} refusals[] = {
	{ "gtp",   { NULL, NULL },             { 0 }, "did you mean 'gpt'" },
	{ "alexnet", { NULL, NULL },           { 0 }, "there is no model 'alexnet'" },
	{ "resnet18", { "stem", "none" },      { 0 }, "none of imagenet, cifar, small" },
	{ "resnet18", { "paths", "2" },        { 0 }, "of models with bottlenecks" },
	{ "resnet34", { "dilate", "[layer4]" }, { 0 }, "of models with bottlenecks" },
	{ "resnet50", { "dilate", "[layer1]" }, { 0 }, "'layer1' is none of layer2|layer3|layer4" },
	{ "resnext50_32x4d", { "base", "2" },  { 0 }, "2 times 4 is no multiple of 64" },
	{ "resnet50", { "zero_init_residual", "maybe" }, { 0 }, "it is true or false" },
	{ "gpt",   { "act", "mish" },          { 0 }, "it is silu, gelu_tanh, gelu, relu or tanh" },
	{ "gpt",   { "tie", "no" },            { 0 }, "argument 'tie' is 'no'" },
	{ "roberta", { "head", "nsp" },        { 0 }, "'nsp' is none of mlm, cls" },
	{ "resnet18", { "norm", "layer" },     { 0 }, "none of batch, group" },
	{ "inception", { "stem", "none" },     { 0 }, "none of imagenet, cifar, small" },
	{ "inception", { "norm", "layer" },    { 0 }, "none of batch, group" },
	{ "inception", { "base", "6" },        { 0 }, "6 is no multiple of 4" },
	{ "inception", { "blocks", "[]" },     { 0 }, "0 stages; give the blocks of 1 to 5" },
	{ "inception", { "blocks", "[1,1,1,1,1,1]" }, { 0 }, "6 stages; give the blocks of 1 to 5" },
	{ "inception", { "blocks", "[27]" },   { 0 }, "argument 'blocks'" },
	{ "inception", { "wide", "7x7" },      { 0 }, "none of 5x5, 3x3" },
	{ "bert",  { "head", "nsp" },          { 0 }, "'nsp' is none of mlm, cls" },
	{ "bert",  { "classes", "0" },         { 0 }, "argument 'classes'" },
	{ "bert",  { "head", "mlm" },          { .loss = HD_LOSS_MSE, .normalize = 0 }, "its loss is cross-entropy" },
	{ "vgg16", { "norm", "group" },        { 0 }, "none of none, batch" },
	{ "vgg16", { "height", "16" },         { 0 }, "argument 'height'" },
	{ "gpt",   { "layer", "2" },           { 0 }, "did you mean 'layers'" },
	{ "gpt",   { "kernel_size", "2" },     { 0 }, "has no argument 'kernel_size'" },
	{ "gpt",   { "layers", "two" },        { 0 }, "argument 'layers'" },
	{ "gpt",   { "layers", "0" },          { 0 }, "argument 'layers'" },
	{ "gpt",   { "dropout", "1" },         { 0 }, "argument 'dropout'" },
	{ "gpt",   { "heads", "5" },           { 0 }, "128 is no multiple of 5" },
	{ "gpt",   { NULL, NULL },             { .loss = HD_LOSS_MSE, .normalize = 0 }, "its loss is cross-entropy" },
	{ "lenet", { "height", "8" },          { 0 }, "argument 'height'" },
	{ "mlp",   { "hidden", "[8, x]" },     { 0 }, "argument 'hidden'" },
	{ "mlp",   { "hidden", "[8" },         { 0 }, "does not end with ']'" },
	{ "mlp",   { "hidden", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]" }, { 0 }, "more than 16 numbers" },
	{ "mlp",   { "act", "swish" },         { 0 }, "'swish' is no activation" },
	{ "mlp",   { "input", "[]" },          { 0 }, "argument 'input'" },
	{ "mlp",   { "input", "[1048576, 1048576]" }, { 0 }, "argument 'input'" },
};

static void wrong_arguments_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		struct hd_subject s;
		hd_subject_model(&s, refusals[i].model, &refusals[i].arg, refusals[i].arg.name ? 1 : 0,
			refusals[i].opts);
		CHECK(s.err == HD_E_INVAL, "%zu: %d", i, s.err);
		CHECK(strstr(s.diag.text, refusals[i].says), "%zu: %s", i, s.diag.text);
		hd_subject_finish(&s);
	}
}

static void an_argument_given_twice_is_refused(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "gpt", (struct hd_model_arg[]){ { "layers", "1" }, { "layers", "2" } }, 2,
		(struct hd_model_opts){ 0 });
	assert_int_equal(s.err, HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "given twice"));
	hd_subject_finish(&s);
}

/* What a resolved job holds gives the same model again. */
static void completed_arguments_print_and_parse_back(void **state)
{
	(void)state;
	for (const struct hd_model_row *row = hd_models; row->name; row++) {
		struct hd_model_value value[HD_MAX_ARGS], again[HD_MAX_ARGS];
		struct hd_model_arg arg[HD_MAX_ARGS];
		char text[HD_MAX_ARGS][64];
		uint32_t n = 0;
		assert_int_equal(hd_model_args(row, NULL, 0, value, NULL), HD_OK);
		for (; row->param[n].name; n++) {
			struct hd_text t;
			hd_text_fixed(&t, text[n], sizeof text[n]);
			hd_model_arg_print(&t, &row->param[n], &value[n]);
			bool word = row->param[n].kind == HD_ARG_WORD;
			if (word)
				text[n][t.len - 1] = '\0';
			arg[n] = (struct hd_model_arg){ row->param[n].name, text[n] + word };
			CHECK(!t.full && row->param[n].about[0], "%s", row->param[n].name);
		}
		assert_int_equal(hd_model_args(row, arg, n, again, NULL), HD_OK);
		for (uint32_t i = 0; i < n; i++)
			CHECK(memcmp(&value[i], &again[i], sizeof value[i]) == 0, "%s.%s", row->name,
				arg[i].name);
	}
}

static void lists_are_read_with_or_without_brackets(void **state)
{
	static const char *const texts[] = { "[512,256]", "[ 512 , 256 ]", "512, 256", "[512, 256,]" };
	struct hd_model_value value[HD_MAX_ARGS];

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(hd_model_args(&hd_models[0], &(struct hd_model_arg){ "hidden", texts[i] }, 1,
			value, NULL), HD_OK);
		CHECK(value[1].nlist == 2 && value[1].list[0] == 512 && value[1].list[1] == 256, "%s",
			texts[i]);
	}
}

static void words_of_loss_and_weight_are_known(void **state)
{
	enum hd_normalize normalize;
	enum hd_loss loss;

	(void)state;
	assert_true(hd_normalize_parse("token", &normalize) && normalize == HD_NORMALIZE_TOKEN);
	assert_true(hd_loss_parse("cross-entropy", &loss) && loss == HD_LOSS_CROSS_ENTROPY);
	assert_true(hd_loss_parse("mse", &loss) && loss == HD_LOSS_MSE);
	assert_false(hd_normalize_parse("batch", &normalize) || hd_loss_parse("hinge", &loss));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_have_the_known_numbers_of_parameters),
		cmocka_unit_test(gpt_has_the_public_names_and_shapes),
		cmocka_unit_test(image_models_have_torchvisions_names_shapes_and_initial_values),
		cmocka_unit_test(norms_over_the_batch_have_running_statistics),
		cmocka_unit_test(weights_count_rows_or_labels),
		cmocka_unit_test(groups_of_an_inception_net_divide_a_quarter_of_its_base),
		cmocka_unit_test(a_class_of_a_text_is_one_prediction_per_sample),
		cmocka_unit_test(wrong_arguments_are_refused_by_name),
		cmocka_unit_test(an_argument_given_twice_is_refused),
		cmocka_unit_test(completed_arguments_print_and_parse_back),
		cmocka_unit_test(lists_are_read_with_or_without_brackets),
		cmocka_unit_test(words_of_loss_and_weight_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
