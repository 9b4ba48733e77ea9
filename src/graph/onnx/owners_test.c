#include <stdio.h>

#include "graph/onnx/testing_files.h"

/* x [rows,4,6]. Parameters and buffers by name, in the graph's order; constants with more than one element
 * are counted. */
static void describe(const struct hd_graph *g, char *out, size_t cap)
{
	struct hd_text text;
	uint32_t consts = 0;

	hd_text_fixed(&text, out, cap);
	for (uint32_t i = 0; i < g->nparams; i++)
		hd_text_addf(&text, "%s%s", i ? " " : "", hd_graph_text_of(g,
			g->value[g->param[i].value].name));
	for (uint32_t i = 0; i < g->nbuffers; i++)
		hd_text_addf(&text, "%s%s", i ? " " : " | ",
			hd_graph_text_of(g, g->value[g->buffer[i].value].name));
	for (uint32_t i = 0; i < g->nvalues; i++)
		consts += g->value[i].kind == HD_CONST && hd_value_elems(&g->value[i], 1) > 1;
	if (consts)
		hd_text_addf(&text, " + %u", consts);
}

struct owners_row { const char *text, *want; };

static void check(const struct owners_row *row)
{
	static struct model m;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_graph g;
	char got[400];

	write_model(&m, row->text, 2);
	enum hd_err err = import(&m, &arena, &g, NULL, &diag);
	if (err) {
		CHECK(err == HD_E_INPUT && strstr(diag.text, row->want), "%s\n%s", row->text, diag.text);
	} else {
		describe(&g, got, sizeof got);
		CHECK(!strcmp(got, row->want), "%s\n%s, not %s", row->text, got, row->want);
	}
	hd_arena_finish(&arena);
}

#define BN(x, w, b, m, v, y) "BatchNormalization " x "," w "," b "," m "," v " -> " y "\n"

static void equal_tensors_made_one_are_several_again(void **state)
{
	static const struct owners_row rows[] = {
		/* as the older exporter writes a fresh model for evaluation */
		{ "w [4]=1\nb [4]=0\nIdentity w -> v\nIdentity b -> m\nIdentity w -> w2\nIdentity b -> b2\nIdentity b -> m2\nIdentity w -> v2\n"
		  BN("x", "w", "b", "m", "v", "h") BN("h", "w2", "b2", "m2", "v2", "out"),
		  "w b w2 b2 | m v m2 v2" },
		/* the same, made smaller further */
		{ "w [4]=1\nb [4]=0\n" BN("x", "w", "b", "b", "w", "h") BN("h", "w", "b", "b", "w", "out"), "w b w-3 b-3 | b-2 w-2 b-4 w-4" },
		/* one module used twice, and one of which only the gain is used twice */
		{ "w [4]=1\nb [4]=0\nm [4]=0\nv [4]=1\n" BN("x", "w", "b", "m", "v", "h") BN("h", "w", "b", "m", "v", "out"),
		  "another node moves its running statistics" },
		{ "w [4]\nb [4]=0\nb2 [4]\nm [4]=0\nv [4]=1\n" BN("x", "w", "b", "m", "v", "h") BN("h", "w", "b2", "m", "v", "out"), "w b b2 | m v m-2 v-2" },
		/* ties of tensors that are no one number stay, and so do shared gains where nothing shows
		 * that the file was made smaller */
		{ "w [6,6]\nIdentity w -> u\nMatMul x,w -> h\nMatMul h,u -> out\n", "w" },
		{ "w [6]=1\nMul x,w -> h\nMul h,w -> out\n", "w" },
		{ "w [6]=1\nIdentity w -> u\nMul x,w -> h\nMul h,u -> out\n", "w u" },
		/* statistics that no training could move */
		{ "w [4]\nb [4]\nm [4]\nv [4]\nRelu m -> n\n" BN("x", "w", "b", "n", "v", "out"), "its running mean 'n' is no tensor of its own" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(&rows[i]);
}

#define NORM(x, w, b, y, call) "LayerNormalization " x "," w "," b " -> " y " axis=-1@" call "\n"

static void a_signature_says_what_is_trained(void **state)
{
	static const struct owners_row rows[] = {
		/* buffers, constants and what was computed are constants, whatever they are called */
		{ "!p_w: PARAMETER target='w'\n!b_s: BUFFER target='s' persistent=True\n!c_lifted: CONSTANT_TENSOR target='lifted'\n!x: USER_INPUT\n"
		  "w [6,6]\ns [6]\nlifted [6]\nval_9 [6]\nMatMul x,w -> a@%linear : (%x, %p_w)\nMul a,s -> "
		  "b@%mul : (%a, %b_s)\n"
		  "Add b,lifted -> c@%add : (%b, %lifted)\nMul c,val_9 -> out@%mul_1 : (%c, %d)\n", "w + 3" },
		/* one norm in the place of another: each its own, under its own name; used twice it is one */
		{ "!p_a_w: PARAMETER target='a.w'\n!p_a_b: PARAMETER target='a.b'\n!p_b_w: PARAMETER target='b.w'\n!p_b_b: PARAMETER target='b.b'\n"
		  "a.w [6]=1\na.b [6]=0\n" NORM("x", "a.w", "a.b", "h", "%n : (%x, %p_a_w, %p_a_b)") NORM("h",
		  "a.w", "a.b", "i", "%m : (%h, %p_b_w, %p_b_b)")
		  NORM("i", "a.w", "a.b", "out", "%o : (%i, %p_a_w, %p_a_b)"), "a.w a.b b.w b.b" },
		/* a turned weight is the weight; so are both norms' constants of their own making
		 * constants */
		{ "!p_w: PARAMETER target='w'\nval_1 [6,6]\nMatMul x,val_1 -> out@%linear : (%x, %p_w)\n", "val_1" },
		{ "!p_w: PARAMETER target='w'\n!p_b: PARAMETER target='b'\n!p_g_w: PARAMETER target='g.w'\n!p_g_b: PARAMETER target='g.b'\nw [6]=1\nb [6]=0\n"
		  "val_1 [4]=1\nval_2 [4]=0\nMul x,w -> a@%mul : (%x, %p_w)\nAdd a,b -> c@%add : (%a, %p_b)\n"
		  "InstanceNormalization c,val_1,val_2 -> d@%gn : (%c, 2, %p_g_w, %p_g_b)\nMul d,w -> e@%gn "
		  ": (%c, 2, %p_g_w, %p_g_b)\n"
		  "Add e,b -> out@%gn : (%c, 2, %p_g_w, %p_g_b)\n", "w b g.w g.b + 2" },
		/* used twice: it stays one; an equal one is another */
		{ "!p_w: PARAMETER target='w'\n!p_u: PARAMETER target='u'\nval_1 [6,6]\nMatMul x,val_1 -> h@%l : (%x, %p_w)\n"
		  "MatMul h,val_1 -> i@%m : (%h, %p_u)\nMatMul i,val_1 -> j@%n : (%i, %p_w)\nMatMul j,val_1 "
		  "-> out@%o : (%j, %p_u)\n", "val_1 val_1-2" },
		{ "!p_w: PARAMETER target='w'\n!p_u: PARAMETER target='u'\nw [6]=1\nMul x,w -> h@%l : (%x, %p_u)\n"
		  "Mul h,w -> i@%m : (%h, %p_w)\nMul i,w -> out@%n : (%i, %p_u)\n", "u w" },
		/* a buffer that has an equal parameter's values */
		{ "!p_w: PARAMETER target='w'\n!b_s: BUFFER target='s' persistent=False\nw [6]=1\nMul x,w -> a@%mul : (%x, %p_w)\n"
		  "Mul a,w -> out@%mul_1 : (%a, %b_s)\n", "w + 1" },
		{ "!p_w: PARAMETER target='n.w'\n!p_b: PARAMETER target='n.b'\n!b_m: BUFFER target='n.m' persistent=True\n!b_v: BUFFER target='n.v' persistent=True\n"
		  "n.w [4]=1\nn.b [4]=0\nBatchNormalization x,n.w,n.b,n.b,n.w -> out@%bn : (%x, %p_w, %p_b, "
		  "%b_m, %b_v)\n", "n.w n.b | n.m n.v" },
		/* a number that is trained, and one that is not used */
		{ "!p_s: PARAMETER target='s'\n!p_u: PARAMETER target='u'\ns: 0.5\nMul x,s -> out@%mul : (%x, %p_s)\n", "s" },
		/* what is ambiguous is refused by name */
		{ "!p_w: PARAMETER target='w'\n!p_b: PARAMETER target='l.b'\nw [6,6]\nMatMul x,w -> out@%linear : (%x, %p_w, %p_b)\n", "parameter 'l.b' is not in the file" },
		{ "!p_w: PARAMETER target='w'\nsoftmax [6]\nMul x,softmax -> out@%mul : (%x, %softmax)\n", "'w' is not in the file: the exporter left it out or computed 'softmax'" },
		{ "!p_w: PARAMETER target='w'\nw [6,6]\nval_1 [6,6]\nMatMul x,w -> h@%l : (%x, %p_w)\nMatMul h,val_1 -> out@%m : (%h, %p_w)\n",
		  "reads a copy of 'w' that the exporter computed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(&rows[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_tensors_made_one_are_several_again),
		cmocka_unit_test(a_signature_says_what_is_trained),
	};
	hd_arena_init(&messages, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&messages);
	return failed;
}
