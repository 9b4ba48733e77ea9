#include "cost/cuts.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { TEXT_CAP = 8192 };

/* "a b c; a>b b>c": node i takes 2^i microseconds, has 10*2^i bytes of parameters and 1000*2^i of activation.
 * Ids that begin with I are data sources, with G unused outputs. */
static void profile_of(const char *nodes, const char *edges, struct hd_profile *p, struct hd_arena *arena)
{
	static char text[1 << 20];
	char one[64], two[64];
	int at = 0, used, n = 0;
	struct hd_diag diag = { "" };

	for (; sscanf(nodes, " %60s%n", one, &used) == 1; nodes += used, n++)
		at += snprintf(text + at, sizeof text - (size_t)at,
			"%s -- %s -- forward_compute_time=0, backward_compute_time=%.3f, "
			"activation_size=%.0f, "
			"parameter_size=%.0f\n", one,
			*one == 'I' ? "Input0" : *one == 'G' ? "__getitem__(1)" : "Conv2d",
			(double)(1 << n) / 1000, 1000.0 * (1 << n), 10.0 * (1 << n));
	for (; sscanf(edges, " %60[^> ]>%60s%n", one, two, &used) == 2; edges += used)
		at += snprintf(text + at, sizeof text - (size_t)at, "\t%s -- %s\n", one, two);
	CHECK(hd_profile_import(p, text, (size_t)at, "g", arena, &diag) == HD_OK, "%s", diag.text);
}

/* Of each cut in order: "name:time_us/out_kB<predecessors;" */
static void cuts_text(const char *nodes, const char *edges, bool compress, struct hd_text *text,
	struct hd_arena *arena)
{
	struct hd_profile p;
	struct hd_cuts c;
	struct hd_diag diag = { "" };

	profile_of(nodes, edges, &p, arena);
	CHECK(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .compress = compress }, "g", arena, &diag) == HD_OK,
		"%s", diag.text);
	hd_text_init(text, arena);
	for (uint32_t j = 0; j < c.n; j++) {
		hd_text_addf(text, "%s%s:%d/%d<", j ? " " : "", c.name[j], (int)(c.time_ns[j] / 1000),
			(int)(c.out[j] / 1000));
		for (uint32_t k = 0; k < c.n; k++)
			if (hd_cuts_precede(&c, k, j))
				hd_text_addf(text, "%u", k);
		assert_int_equal(c.param[j], c.time_ns[j] / 100);
		assert_int_equal(c.act[j], compress ? c.act[j] : c.time_ns[j]);
	}
}

static void cuts_of_small_graphs_are_those_of_the_definition(void **state)
{
	static const struct { const char *nodes, *edges; bool compress; const char *cuts; } cases[] = {
		{ "a", "", false, "a:1/1<" },
		{ "a b c", "a>b b>c", false, "a:1/1< b:3/2<0 c:7/4<01" },
		{ "c b a", "a>b b>c", false, "a:4/4< b:6/2<0 c:7/1<01" },                       /* the order of the file is no matter */
		/* a diamond: with b done, a's output still goes to c; of two members each keeps a; then d */
		{ "a b c d", "a>b a>c b>d c>d", false, "a:1/1< c:5/5<0 b:3/3<0 b+c:7/7<012 d:15/8<0123" },
		/* a skip: while b and c run, a's output is needed by d */
		{ "a b c d", "a>b b>c a>d c>d", false, "a:1/1< b:3/3<0 c:7/5<01 d:15/8<012" },
		/* data sources and unused outputs go, once: the b behind I does not */
		{ "I a b G", "I>a a>b b>G", false, "a:2/2< b:6/4<0" },
		/* a second source enters as an ancestor only */
		{ "a b c", "a>c b>c", false, "a:1/1< c:7/4<0" },
		/* chains of branches: b c becomes one with the output of c; e stays, d joins */
		{ "a b c d e", "a>b b>c c>d a>e e>d", true, "a:1/1< e:17/17<0 b:7/5<0 b+e:23/21<012 d:31/8<0123" },
		/* no branch: nothing to make one of */
		{ "a b c", "a>b b>c", true, "a:1/1< b:3/2<0 c:7/4<01" },
		{ "a b c d e", "a>b b>c c>d a>e", true, "a:1/1< e:17/17<0 b:15/9<0 b+e:31/25<012" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_arena arena;
		struct hd_text text;
		hd_arena_init(&arena, 0);
		cuts_text(cases[i].nodes, cases[i].edges, cases[i].compress, &text, &arena);
		CHECK(!strcmp(text.at, cases[i].cuts), "case %zu:\n  have %s\n  want %s", i, text.at,
			cases[i].cuts);
		hd_arena_finish(&arena);
	}
}

static void wide(uint32_t branches, uint32_t length, char nodes[TEXT_CAP], char edges[TEXT_CAP])
{
	int n = snprintf(nodes, TEXT_CAP, "s"), e = 0;

	for (uint32_t b = 0; b < branches; b++)
		for (uint32_t i = 0; i < length; i++) {
			char to[32], from[32] = "s";
			snprintf(to, sizeof to, "b%u.%u", b, i);
			if (i)
				snprintf(from, sizeof from, "b%u.%u", b, i - 1);
			n += snprintf(nodes + n, TEXT_CAP - (size_t)n, " %s", to);
			e += snprintf(edges + e, TEXT_CAP - (size_t)e, "%s>%s ", from, to);
		}
}

static void a_wide_fork_is_refused_at_the_limit_and_compressed_it_is_not(void **state)
{
	static char nodes[TEXT_CAP], edges[TEXT_CAP];
	struct hd_profile p;
	struct hd_cuts c;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	wide(4, 6, nodes, edges);                  /* 7^4 cuts: each branch stands at one of seven places */
	profile_of(nodes, edges, &p, &arena);
	assert_int_equal(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .max = 2400 }, "g", &arena, &diag),
		HD_E_INPUT);
	assert_string_equal(diag.text, "g: this graph has more than 2400 cuts; try --compress-branches");
	diag.text[0] = 0;
	CHECK(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .max = 2401 }, "g", &arena, &diag) == HD_OK, "%s",
		diag.text);
	assert_int_equal(c.n, 2401);
	CHECK(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .max = 16, .compress = true }, "g", &arena,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(c.n, 16);
	assert_int_equal(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .max = 15, .compress = true }, "g",
		&arena, &diag), HD_E_INPUT);
	assert_string_equal(diag.text, "g: this graph has more than 15 cuts; raise --max-cuts");
	assert_int_equal(hd_cuts_make(&c, &p, (struct hd_cuts_how){ .max = HD_CUTS_CAP + 1 }, "g", &arena,
		&diag), HD_E_INVAL);
	hd_arena_finish(&arena);
}

static void a_model_of_data_sources_alone_has_no_cut(void **state)
{
	struct hd_profile p;
	struct hd_cuts c;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	profile_of("I I2", "", &p, &arena);
	assert_int_equal(hd_cuts_make(&c, &p, (struct hd_cuts_how){ 0 }, "g", &arena, &diag), HD_E_INPUT);
	assert_true(strstr(diag.text, "nothing is left to be cut") != NULL);
	hd_arena_finish(&arena);
}

static void parts_that_no_edge_joins_are_refused(void **state)
{
	static const struct { const char *nodes, *edges, *lost; } cases[] = {
		{ "a b c d", "a>b c>d", "reaches the node c:" }, { "a b", "", "reaches the node b:" }, { "c a b", "a>b", "reaches the node a:" },
		{ "I a b", "I>a I>b", "reaches the node b:" },            /* what joined them is a data source, which is dropped */
		{ "a b c G", "a>G b>c c>G", "reaches the node b:" },      /* an unused output likewise */
		{ "I a b G H", "I>a a>b b>G b>H", NULL }, { "a b c d", "a>c b>c b>d", NULL }, { "a b c", "b>c a>c", NULL },
	};

	(void)state;
	for (int compress = 0; compress < 2; compress++)
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
			struct hd_profile p;
			struct hd_cuts c;
			struct hd_arena arena;
			struct hd_diag diag = { "" };
			hd_arena_init(&arena, 0);
			profile_of(cases[k].nodes, cases[k].edges, &p, &arena);
			enum hd_err err = hd_cuts_make(&c, &p, (struct hd_cuts_how){ .compress = compress },
				"g", &arena, &diag);
			CHECK(cases[k].lost ? err == HD_E_INPUT &&
				strstr(diag.text, cases[k].lost) : err == HD_OK, "case %zu: %s", k,
				diag.text);
			hd_arena_finish(&arena);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_of_small_graphs_are_those_of_the_definition),
		cmocka_unit_test(a_wide_fork_is_refused_at_the_limit_and_compressed_it_is_not),
		cmocka_unit_test(a_model_of_data_sources_alone_has_no_cut),
		cmocka_unit_test(parts_that_no_edge_joins_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
