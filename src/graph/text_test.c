#include "graph/text.h"

#include <stdio.h>
#include <stdlib.h>

#include "graph/testing.h"
#include "tests/check.h"

/* A file of golden/, in malloc'ed memory. */
static char *golden(const char *name)
{
	const char *source = getenv("SOURCE_DIR");
	char path[1024], *text = calloc(1, 1 << 16);

	snprintf(path, sizeof path, "%s/src/graph/golden/%s.graph", source ? source : ".", name);
	FILE *file = fopen(path, "rb");
	CHECK(file && text, "cannot read %s", path);
	CHECK(fread(text, 1, (1 << 16) - 1, file) > 0, "%s is empty", path);
	fclose(file);
	return text;
}

static void golden_files_parse_and_print_the_same_bytes(void **state)
{
	static const char *const names[] = { "ops", "mlp", "gpt", "algebra-trained", "lenet-trained",
		"gpt-trained", "batch-trained" };

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct hd_subject s;
		char *text = golden(names[i]);
		hd_subject_parse(&s, text);
		CHECK(s.err == HD_OK, "%s: %s", names[i], s.diag.text);
		assert_string_equal(hd_subject_print(&s), text);
		hd_subject_finish(&s);
		free(text);
	}
}

static void a_frozen_parameter_is_printed_and_parsed_as_one(void **state)
{
	static const char text[] =
		"input x f32 [*,2]\nparam w f32 [2] uniform 0.5 frozen\nparam b f32 [2] ones\n%0 = bias x w "
		"axis=-1 : f32 [*,2]\n"
		"%1 = bias %0 b axis=-1 : f32 [*,2]\n";
	struct hd_subject s;

	(void)state;
	hd_subject_parse(&s, text);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	assert_true(s.graph.param[0].frozen && !s.graph.param[1].frozen);
	assert_string_equal(hd_subject_print(&s), text);
	hd_subject_finish(&s);
}

/* What the builders, passes and autodiff make today is what a reviewer has read in golden/. */
static void models_print_as_their_golden_files(void **state)
{
	static const struct { const char *file, *model; struct hd_model_arg arg[5]; uint32_t nargs, cut;
		bool train; } rows[] = {
		{ "mlp", "mlp", { { 0 } }, 0, 0, false },
		{ "lenet-trained", "lenet", { { 0 } }, 0, 0, true },
		{ "gpt", "gpt", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "context", "4" } }, 4, 0, false },
		{ "gpt-trained", "gpt", { { "layers", "1" }, { "width", "8" }, { "heads", "2" }, { "context", "4" }, { "dropout", "0.1" } },
		  5, 17, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct hd_subject s;
		char *text = golden(rows[i].file);
		hd_subject_model(&s, rows[i].model, rows[i].arg, rows[i].nargs, (struct hd_model_opts){ 0 });
		if (rows[i].cut)
			assert_int_equal(hd_graph_cut(&s.graph, 1, &rows[i].cut, NULL), HD_OK);
		if (rows[i].train) {
			assert_int_equal(hd_graph_optimize(&s.graph, 64, &s.diag), HD_OK);
			assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
		}
		assert_string_equal(hd_subject_print(&s), text);
		hd_subject_finish(&s);
		free(text);
	}
}

static void what_a_person_writes_is_put_into_canonical_form(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_parse(&s,
		"# my graph\r\n\n  param w f32[2,4] zeros   # weights\n\tinput x f32 [ * , 4 ]\n%900=matmul "
		"x w tb = 1\n"
		"output out %900\n%7 = scale %900 by=2.50 : f32[*,2]\nconst $5 f32 [1] 1e2\n");
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	assert_string_equal(hd_subject_print(&s),
		"input x f32 [*,4]\nparam w f32 [2,4] zeros\nconst $0 f32 [1] 100\n"
		"%0 = matmul x w tb=1 : f32 [*,2]\n%1 = scale %0 by=2.5 : f32 [*,2]\noutput out %0\n");
	hd_subject_finish(&s);
}

#define PARTS \
	"input a f32 [2,2,3]\ninput b f32 [2,3,3]\ninput c f32 [2,3,4]\n%0 = dropout a p=0.5 whole=5 key=3\n"
#define BUFFERS "input x f32 [*,2]\nparam w f32 [2] ones\nbuffer m f32 [2] zeros\nbuffer v f32 [2] ones\n" \
	"%0,%1,%2 = batchnorm x w w m v axis=1 eps=1e-05\n"
static const struct { const char *text, *says; } errors[] = {
	{ "grph a\n", "t.graph:1:1: 'grph': a line begins with" },
	{ "graph a\ngraph b\n", "t.graph:2:8: the graph has a name already" },
	{ "input x f32 [*,4\n", "t.graph:1:17: ',' is missing here" },
	{ "input x f32 *,4]\n", "t.graph:1:13: '[' is missing here (before '*')" },
	{ "input x f33 [4]\n", "'f33' before this is no dtype" },
	{ "input x f32 [0]\n", "t.graph:1:14: '0' is no whole number from 1" },
	{ "input x f32 [1,1,1,1,1,1,1]\n", "at most 6 extents" },
	{ "input x f32 [*,2*]\n", "two extents that grow" },
	{ "input 9x f32 [1]\n", "name '9x'" },
	{ "input x f32 [1] 5\n", "t.graph:1:17: '5' is too much on this line" },
	{ "input x f32 [1]\nparam x f32 [1] ones\n", "'x' is declared twice" },
	{ "param w i32 [1] ones\n", "parameters are f32" },
	{ "param w f32 [*] ones\n", "cannot depend on the rows" },
	{ "param w f32 [1] ones frosen\n", "t.graph:1:22" },
	{ "param w f32 [2] ones frozen\ninput x f32 [*,2]\n%0 = bias x w axis=-1\n%1 = sum_rows %0 axis=-1 phase=W of=%0\ngrad w %1\n",
	  "a frozen parameter has no gradient" },
	{ "param w f32 [1] gauss\n", "the initial value is missing here" },
	{ "param w f32 [1] normal x\n", "t.graph:1:24: 'x' is no number" },
	{ "param w f32 [1] normal -1\n", "finite and not negative" },
	{ "const $0 f32 [3] 1 2\n", "a number is missing here" },
	{ "const $0 f32 [100000000] 1\n", "written out in full" },
	{ "const $0 u8 [1] 256\n", "'256' is no whole number from 0 to 255" },
	{ "const $0 i32 [1] 1.5\n", "'1.5' is no whole number" },
	{ "const 0 f32 [1] 1\n", "a label like $0" },
	{ "const $0 f32 [1] 1\nconst $0 f32 [1] 1\n", "this label is made twice" },
	{ "%0 = matmul a b\n", "t.graph:1:13: 'a' is not made before this line" },
	{ "input x f32 [2,2]\n%0 = mtmul x x\n", "t.graph:2:6: there is no op 'mtmul'" },
	{ "input x f32 [2,2]\n%0,%1 = matmul x x\n", "matmul makes 1 values, not 2" },
	{ "input x f32 [2,2]\n%0 = matmul x %3\n", "t.graph:2:15: '%3' is not made" },
	{ "input x f32 [2,2]\n%0 = matmul x x tc=1\n", "matmul has no attribute 'tc'" },
	{ "input x f32 [2,2]\n%0 = matmul x x key=1\n", "matmul has no attribute 'key'" },
	{ "input x f32 [2,2]\n%0 = matmul x x ta=\n", "a whole number is missing" },
	{ "input x f32 [2,2]\n%0 = act x act=swish\n", "t.graph:2:16: 'swish' is no activation" },
	{ "input x f32 [2,2]\n%0 = matmul x x : f32 [2,3]\n", "t.graph:2:19: output 0 is f32 [2,2] by the rule of matmul" },
	{ "input x f32 [2,3]\n%0 = matmul x x\n", "t.graph:2:6: matmul: the extents summed over differ" },
	{ "input x f32 [2,2]\n%0 = act x act=relu\n%0 = act x act=relu\n", "this label is made twice" },
	{ "input x f32 [2,2]\n%99999999 = act x act=relu\n", "a label like" },
	{ "input x f32 [2,2]\n%4194304 = act x act=relu\n", "labels go up to" },
	{ "input x f32 [2,2]\n%0 = act x act=relu phase=B\n", "the phase is I or W" },
	{ "input x f32 [2,2]\n%0 = act x act=relu phase=I\n", "names the forward node" },
	{ "input x f32 [2,2]\n%0 = act x act=relu phase=I of=x\n", "'of' names an output" },
	{ "input x f32 [2,2]\n%0 = act x act=relu stage=1\n%1 = act x act=relu\n", "t.graph: node 1 (act): stages never descend" },
	{ "input x f32 [2,2]\n%0 = dropout x p=0.5 key=3\n%1 = dropout x p=0.5 key=3\n", "keys of random nodes ascend" },
	{ PARTS "%1 = dropout b p=0.5 from=2 whole=5 key=3\n", NULL },
	{ PARTS "%1 = dropout b p=0.5 from=1 whole=5 key=3\n", "keys of random nodes ascend, but for parts of one draw; this is 3" },
	{ PARTS "%1 = dropout b p=0.4 from=2 whole=5 key=3\n", "keys of random nodes ascend" },
	{ PARTS "%1 = dropout b p=0.5 from=2 whole=6 key=3\n", "keys of random nodes ascend" },
	{ PARTS "%1 = dropout b p=0.5 from=2 whole=5 key=2\n", "keys of random nodes ascend" },
	{ PARTS "%1 = dropout c p=0.5 from=2 whole=5 key=3\n", "keys of random nodes ascend" },
	{ PARTS "%1 = dropout b p=0.5 key=3\n", "keys of random nodes ascend" },
	{ "buffer m f32 [2] normal 1\n", "begins as zeros or ones" },
	{ "buffer m i32 [2] zeros\n", "buffers are f32" },
	{ "buffer m f32 [*] zeros\n", "cannot depend on the rows" },
	{ "param m f32 [2] zeros\nbuffer m f32 [2] zeros\n", "'m' is declared twice" },
	{ BUFFERS "running m v %2 0.1\n", NULL },
	{ BUFFERS "running m m %2 0.1\n", "mean and variance are two buffers" },
	{ BUFFERS "running m w %2 0.1\n", "mean and variance are two buffers" },
	{ BUFFERS "running m v %1 0.1\n", "the moments are f64 [3,2]" },
	{ BUFFERS "running m v %2 0\n", "the momentum is above 0" },
	{ BUFFERS "running m v %2 1.5\n", "the momentum is above 0" },
	{ BUFFERS "running m v %2 0.1\nrunning v m %2 0.1\n", "a buffer is moved by one record" },
	{ BUFFERS "running m v\n", "is missing" },
	{ "output y x\n", "'x' is not made" },
	{ "input x f32 [2]\noutput y x\noutput y x\n", "'y' is declared twice" },
	{ "input x f32 [2]\noutput loss x\n", "a sum is f64 [1]" },
	{ "input x f32 [2]\ngrad x x\n", "a gradient is given once, to a parameter" },
	{ "param w f32 [2] ones\ngrad w w\n", "without gradient nodes" },
	{ "param a f32 [2] ones\nparam b f32 [2] ones\ninput x f32 [*,2]\n%0 = bias x a axis=-1\n%1 = sum_rows %0 axis=-1 phase=W of=%0\n"
	  "grad a %1\ngrad b %1\n", "shares its gradient" },
	{ "input x f32 [2000000000,8]\n", NULL },
	{ "input x f32 [2000000000,2000000000]\n", "more than 2^42 elements" },
	{ "", NULL },
	{ "graph", "t.graph:1:6: the name of the graph is missing" },
	{ "input", "the name of the input is missing" },
	{ "%", "a label like %0" },
	{ "%0", "'=' is missing" },
	{ "%0 =", "an op is missing" },
};

static void errors_say_file_line_column_and_what(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		struct hd_subject s;
		hd_subject_parse(&s, errors[i].text);
		CHECK((s.err == HD_OK) == !errors[i].says, "'%s': %s", errors[i].text, s.diag.text);
		if (errors[i].says) {
			CHECK(s.err == HD_E_INPUT, "'%s'", errors[i].text);
			CHECK(strstr(s.diag.text, errors[i].says), "'%s': %s", errors[i].text, s.diag.text);
		}
		hd_subject_finish(&s);
	}
}

/* Every prefix of a graph, and the graph with each byte replaced, parses or is refused; what parses, prints
 * to a text that parses to the same text. */
static void no_text_breaks_the_parser(void **state)
{
	static const char bytes[] = "\n %0$*[=,x\xff";
	char *text = golden("gpt-trained");
	size_t len = strlen(text), parsed = 0;

	(void)state;
	for (size_t i = 0; i < len * 2; i++) {
		struct hd_subject s, again;
		size_t at = i / 2;
		char kept = text[at];
		text[at] = i & 1 ? bytes[at % (sizeof bytes - 1)] : '\0';
		hd_subject_init(&s);
		s.err = hd_graph_parse(&s.graph, "t", text, i & 1 ? len : at, &s.diag);
		CHECK(s.err == HD_OK || (s.err == HD_E_INPUT && s.diag.text[0]), "byte %zu", at);
		if (s.err == HD_OK) {
			const char *printed = hd_subject_print(&s);
			hd_subject_parse(&again, printed);
			CHECK(again.err == HD_OK, "byte %zu: %s", at, again.diag.text);
			CHECK(strcmp(hd_subject_print(&again), printed) == 0, "byte %zu", at);
			hd_subject_finish(&again);
			parsed++;
		}
		hd_subject_finish(&s);
		text[at] = kept;
	}
	assert_true(parsed > 20);
	free(text);
}

static void a_text_too_small_says_so(void **state)
{
	struct hd_subject s;
	struct hd_text text;
	char room[20];

	(void)state;
	hd_subject_model(&s, "mlp", NULL, 0, (struct hd_model_opts){ 0 });
	hd_text_fixed(&text, room, sizeof room);
	assert_int_equal(hd_graph_print(&s.graph, &text, &s.diag), HD_E_NOSPACE);
	hd_subject_finish(&s);
}

static void without_memory_parsing_fails_cleanly(void **state)
{
	char *text = golden("gpt-trained");
	uint32_t failures = 0;
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (size_t budget = 1024; err != HD_OK; budget += 1024) {
		struct hd_subject s;
		hd_subject_init(&s);
		s.arena.budget_bytes = budget;
		err = hd_graph_parse(&s.graph, "t", text, strlen(text), &s.diag);
		CHECK(err == HD_OK || err == HD_E_NOMEM, "%zu bytes: %s", budget, s.diag.text);
		failures += err != HD_OK;
		hd_subject_finish(&s);
	}
	assert_true(failures > 5);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_files_parse_and_print_the_same_bytes),
		cmocka_unit_test(a_frozen_parameter_is_printed_and_parsed_as_one),
		cmocka_unit_test(models_print_as_their_golden_files),
		cmocka_unit_test(what_a_person_writes_is_put_into_canonical_form),
		cmocka_unit_test(errors_say_file_line_column_and_what),
		cmocka_unit_test(no_text_breaks_the_parser),
		cmocka_unit_test(a_text_too_small_says_so),
		cmocka_unit_test(without_memory_parsing_fails_cleanly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
