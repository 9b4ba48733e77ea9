#include "cost/profile.h"

#include <string.h>

#include "tests/check.h"

#define COSTS(f, b, a, p) \
	"forward_compute_time=" f ", backward_compute_time=" b ", activation_size=" a ", parameter_size=" p
#define NODE(id) id " -- Conv2d(3, 64) -- " COSTS("1.5", "3.001", "100.0", "40.000")

static enum hd_err import(struct hd_profile *p, const char *text, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_profile_import(p, text, strlen(text), "m.txt", arena, diag);
}

static void a_graph_txt_is_read_in_the_order_of_its_lines(void **state)
{
	static const char text[] = "n2 -- LSTM(1, 2), x -- " COSTS("0.001", "0.003", "[8.0; 4; 1.0]",
		"12.0") " -- stage_id=3\n"
		"\n"
		"\tn2 -- n1\r\n"
		"n1 -- ReLU -- parameter_size=0.0, backward_compute_time=2, activation_size=16, "
		"forward_compute_time=1\n"
		"\tn2 -- n1";
	struct hd_profile p;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(import(&p, text, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(p.nnodes, 2);
	assert_int_equal(p.nedges, 1);            /* twice the same is one */
	assert_int_equal(p.method, HD_PROFILE_IMPORTED);
	assert_true(p.split_assumed);
	assert_string_equal(p.node[0].id, "n2");
	assert_string_equal(p.node[0].op, "LSTM(1, 2), x");
	assert_int_equal(p.node[0].f.p50_ns, 1000);
	assert_int_equal(p.node[0].i.p50_ns, 1500);      /* halves of 3 us */
	assert_int_equal(p.node[0].w.p50_ns, 1500);
	assert_int_equal(p.node[0].nouts, 3);
	assert_int_equal(p.node[0].saved, 13);
	assert_int_equal(p.node[0].param, 12);
	assert_int_equal(p.node[1].i.p50_ns, 2000000);   /* no parameters: all of it is for the input */
	assert_int_equal(p.node[1].w.p50_ns, 0);
	assert_int_equal(p.edge[0].from, 0);
	assert_int_equal(p.edge[0].to, 1);
	assert_int_equal(hd_profile_node_ns(&p.node[0]), 4000);
	hd_arena_finish(&arena);
}

static void every_bad_line_of_a_graph_txt_is_named(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "", "m.txt: there is no node without an edge in" },
		{ "n1\n", "m.txt:1: a node is 'ID -- DESCRIPTION -- COSTS'" },
		{ NODE("n1") " -- x -- y\n", "m.txt:1: a node is" },
		{ NODE("n1") " -- phase=3\n", "m.txt:1: after the costs only stage_id=N may stand, not 'phase=3'" },
		{ NODE("n1") "\n\n" NODE("n1"), "m.txt:3: node 'n1' is there already, in line 1" },
		{ NODE("n1") "\n\tn1 -- n2\n", "m.txt:2: there is no node 'n2'" },
		{ NODE("n1") "\n\tn0 -- n1\n", "m.txt:2: there is no node 'n0'" },
		{ NODE("n1") "\n\tn1\n", "m.txt:2: an edge is a tab and 'FROM -- TO'" },
		{ NODE("n1") "\n\tn1 -- n1\n", "m.txt:2: node 'n1' has an edge to itself" },
		{ " -- x -- " COSTS("1", "1", "1", "1"), "m.txt:1: the id is empty" },
		{ "n\xff -- x -- " COSTS("1", "1", "1", "1"), "m.txt:1: the id is empty, or id or description are not UTF-8 text" },
		{ "n1 -- x -- forward_compute_time=1, backward_compute_time=1, activation_size=1", "m.txt:1: parameter_size is missing" },
		{ "n1 -- x -- " COSTS("1", "1", "1", "1") ", colour=3", "m.txt:1: 'colour=3' is no cost of a node" },
		{ "n1 -- x -- " COSTS("1", "1", "1", "1") ", parameter_size=1", "m.txt:1: parameter_size stands there twice" },
		{ "n1 -- x -- " COSTS("-1", "1", "1", "1"), "m.txt:1: forward_compute_time: " },
		{ "n1 -- x -- " COSTS("1", "nan", "1", "1"), "m.txt:1: backward_compute_time: " },
		{ "n1 -- x -- " COSTS("1", "inf", "1", "1"), "m.txt:1: backward_compute_time: " },
		{ "n1 -- x -- " COSTS("1", "", "1", "1"), "m.txt:1: backward_compute_time: " },
		{ "n1 -- x -- " COSTS("1", "1e30", "1", "1"), "m.txt:1: backward_compute_time: " },
		{ "n1 -- x -- " COSTS("1", "1", "1.5", "1"), "m.txt:1: activation_size is '1.5': bytes are whole" },
		{ "n1 -- x -- " COSTS("1", "1", "[1; 2", "1"), "m.txt:1: activation_size lacks its ']'" },
		{ "n1 -- x -- " COSTS("1", "1", "[]", "1"), "m.txt:1: activation_size: " },
		{ "n1 -- x -- " COSTS("1", "1", "[9007199254740992; 1]", "1"), "m.txt:1: activation_size adds up to more than 2^53" },
		{ "n1 -- x -- " COSTS("1", "1", "1", "9007199254740993000"), "m.txt:1: parameter_size: " },
		{ NODE("a") "\n" NODE("b") "\n" NODE("c") "\n\ta -- b\n\tb -- c\n\tc -- b\n", "m.txt:" },
		{ NODE("a") "\n" NODE("b") "\n\ta -- b\n\tb -- a\n", "the edges go round in a circle through this node" },
		{ "a -- x -- " COSTS("9007199253", "1", "1", "1") "\nb -- x -- " COSTS("1000", "1", "1", "1"), "m.txt:2: times or sizes add up" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_profile p;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		enum hd_err err = import(&p, cases[i].text, &arena, &diag);
		CHECK(err == HD_E_INPUT && strstr(diag.text, cases[i].says),
			"case %zu: %d '%s' should hold '%s'", i, err, diag.text, cases[i].says);
		hd_arena_finish(&arena);
	}
}

static void a_circle_is_told_at_a_node_that_is_in_it(void **state)
{
	struct hd_profile p;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	/* d hangs behind the circle b c: it is not taken either, but it is not in it */
	assert_int_equal(import(&p,
		NODE("d") "\n" NODE("a") "\n" NODE("b") "\n" NODE("c") "\n\ta -- b\n\tb -- c\n\tc -- b\n\tc "
		"-- d\n", &arena, &diag),
		HD_E_INPUT);
	CHECK(strstr(diag.text, "m.txt:3: ") || strstr(diag.text, "m.txt:4: "), "%s", diag.text);
	hd_arena_finish(&arena);
}

#define COST(n) "{\"p50\":" #n ",\"mean\":" #n ",\"sd\":1,\"min\":1,\"n\":100}"
#define JNODE(id, more) \
	"{\"id\":\"" id "\",\"op\":\"dense\",\"f\":" COST(10) ",\"i\":{\"p50\":6},\"w\":" COST(5) "," \
	"\"out\":[64,8],\"param\":32,\"saved\":64" more "}"
#define JSON(nodes, edges, more) "{\"format\":\"heddle-profile\",\"version\":1,\"method\":\"measured\"," \
	"\"nodes\":[" nodes "],\"edges\":[" edges "]" more "}"

static enum hd_err parse(struct hd_profile *p, const char *text, struct hd_arena *arena, struct hd_diag *diag)
{
	return hd_profile_read(p, text, strlen(text), "p.json", arena, diag);
}

static void a_profile_prints_and_reads_back_to_the_same_bytes(void **state)
{
	static const char *const texts[] = {
		JSON(JNODE("a", "") "," JNODE("b",
			",\"act_w\":0.25,\"work\":3,\"opt\":64,\"tied\":\"t\",\"recompute_ok\":false,"
			"\"r\":7"),
			"[\"a\",\"b\",1],[\"a\",\"b\",0]",
			",\"graph\":\"18446744073709551615\",\"vn_size\":8,\"dtype\":\"f32\","
			"\"step\":{\"optimizer\":0.5,\"sum\":0.1},"
			"\"ovl\":0.8,\"comm_tax\":1.25,"
			"\"device\":{\"kind\":\"cpu\",\"name\":\"x\",\"threads\":1,\"isa\":\"avx2\"},"
			"\"links\":[{\"level\":1,\"kind\":\"tcp\",\"latency\":5000,\"bytes_per_s\":1.25e9,"
			"\"duplex\":true}]"),
		NODE("n1") "\n" NODE("n2") "\n\tn1 -- n2\n",
	};
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hd_profile p, again;
		struct hd_arena arena;
		struct hd_text one, two;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		hd_text_init(&one, &arena);
		hd_text_init(&two, &arena);
		CHECK(parse(&p, texts[i], &arena, &diag) == HD_OK, "%s", diag.text);
		hd_profile_print(&p, &one);
		CHECK(parse(&again, one.at, &arena, &diag) == HD_OK, "%s", diag.text);
		hd_profile_print(&again, &two);
		assert_string_equal(one.at, two.at);
		assert_string_equal(again.ignored, "");
		assert_int_equal(again.split_assumed, i == 1);
		if (i == 0) {
			assert_int_equal(again.nedges, 2);        /* two tensors */
			assert_true(again.graph == UINT64_MAX);
			assert_int_equal(again.node[1].r_ns, 7);
			assert_int_equal(again.node[0].r_ns, -1);
			assert_int_equal(again.node[0].i.mean_ns, 6);
			assert_true(again.node[1].act_w == 0.25 && !again.node[1].recompute_ok);
			assert_string_equal(again.node[1].tied, "t");
			assert_true(again.link[0].bytes_per_s == 1.25e9);
			assert_true(again.step_ns_per_byte == 0.5);
			assert_true(again.ovl == 0.8 && again.comm_tax == 1.25);
		}
		hd_arena_finish(&arena);
	}
}

static void members_that_are_not_known_are_left_out_and_told(void **state)
{
	struct hd_profile p;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(parse(&p, JSON(JNODE("a", ",\"mood\":1") "," JNODE("b", ",\"mood\":2"), "", ",\"haste\":1.5"),
		&arena, &diag) == HD_OK, "%s", diag.text);
	assert_string_equal(p.ignored, "mood, haste");
	hd_arena_finish(&arena);
}

static void every_bad_value_of_a_profile_is_named_by_its_path(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{", "p.json:1:" },
		{ " \r\n\t{\"format\":\"other\",\"version\":1}", ".format is \"other\"" },
		{ "[1]", "the whole is an array, not an object" },
		{ "\n[[[[", "p.json:2:" },
		{ "{\"format\":\"other\",\"version\":1}", ".format is \"other\"" },
		{ "{\"format\":\"heddle-profile\",\"version\":2,\"method\":\"measured\"}", "version 2 of the format" },
		{ "{\"format\":\"heddle-profile\",\"version\":1,\"method\":\"guessed\"}", ".method is \"guessed\"" },
		{ JSON("", "", ",\"split\":\"known\""), ".split is \"known\"" },
		{ JSON("", "", ""), "there is no node" },
		{ JSON(JNODE("", ""), "", ""), ".nodes[0].id is \"\"" },
		{ JSON(JNODE("a", "") "," JNODE("a", ""), "", ""), ".nodes[1].id is \"a\"" },
		{ JSON("{\"id\":\"a\",\"op\":\"x\"}", "", ""), ".nodes[0]" },
		{ JSON("{\"id\":\"a\",\"op\":\"x\",\"f\":{}}", "", ""), ".nodes[0].f" },
		{ JSON(JNODE("a", ",\"work\":-1"), "", ""), ".nodes[0].work" },
		{ JSON(JNODE("a", ",\"act_w\":1.5"), "", ""), ".nodes[0].act_w" },
		{ JSON(JNODE("a", ""), "[\"a\",\"b\",0]", ""), ".edges[0][1] is \"b\": there is no such node" },
		{ JSON(JNODE("a", ""), "[\"a\",\"a\",0]", ""), ".edges[0]: node \"a\"" },
		{ JSON(JNODE("a", "") "," JNODE("b", ""), "[\"a\",\"b\",2]", ""), ".edges[0]: node \"a\" has 2 outputs" },
		{ JSON(JNODE("a", "") "," JNODE("b", ""), "[\"a\",\"b\"]", ""), ".edges[0] is not [from, to, output index]" },
		{ JSON(JNODE("a", "") "," JNODE("b", ""), "[\"a\",\"b\",0],[\"b\",\"a\",0]", ""), "the edges go round in a circle" },
		{ JSON(JNODE("a", ",\"opt\":9007199254740992"), "", ""), ".nodes[0] (\"a\"): times or sizes" },
		{ JSON(JNODE("a", ""), "", ",\"step\":{\"sum\":-1}"), ".step.sum" },
		{ JSON(JNODE("a", ""), "", ",\"step\":{\"sum\":\"nan\"}"), ".step.sum" },
		{ JSON(JNODE("a", ""), "", ",\"links\":[{}]"), ".links[0]" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_profile p;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		enum hd_err err = parse(&p, cases[i].text, &arena, &diag);
		CHECK(err == HD_E_INPUT && strstr(diag.text, cases[i].says),
			"case %zu: %d '%s' should hold '%s'", i, err, diag.text, cases[i].says);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_txt_is_read_in_the_order_of_its_lines),
		cmocka_unit_test(every_bad_line_of_a_graph_txt_is_named),
		cmocka_unit_test(a_circle_is_told_at_a_node_that_is_in_it),
		cmocka_unit_test(a_profile_prints_and_reads_back_to_the_same_bytes),
		cmocka_unit_test(members_that_are_not_known_are_left_out_and_told),
		cmocka_unit_test(every_bad_value_of_a_profile_is_named_by_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
