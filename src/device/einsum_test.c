/* Equations of einsum.h, run by the evaluator in f64, against a loop over all letters. */
#include <math.h>
#include <stdio.h>

#include "graph/einsum.h"
#include "device/program.h"
#include "tests/check.h"
#include "tests/eval64.inc.h"

enum { ROWS = 3 };

/* Extents of the letters a to h; -1: the rows. */
static const struct equation { const char *text; int64_t extent[8]; } equations[] = {
	{ "ab,bc->ac", { 2, 3, 4 } }, { "abc,acd->abd", { -1, 2, 3, 4 } }, { "ba,cb->ca", { 2, 3, 4 } }, { "abc,cd->abd", { -1, 2, 3, 4 } },
	{ "abcd,acbe->bade", { 2, 3, 4, 2, 3 } }, { "ab,ab->", { 2, 3 } }, { "ab,ab->a", { -1, 3 } }, { "a,b->ab", { 4, 3 } },
	{ "abc->ca", { 2, 3, 4 } }, { "abc->", { 2, 3, 4 } }, { "ab->ba", { -1, 4 } }, { "abc,bd->da", { 2, 3, 4, 5 } },
	{ "abcd,aefd->abcef", { 2, 2, 3, 4, 2, 3 } }, { " ab , bc -> ca ", { 2, 3, 4 } }, { "ab,c->bc", { 2, 3, 4 } }, { "ab,a->b", { -1, 3 } },
};

static int64_t extent_of(const struct equation *q, char letter)
{
	int64_t n = q->extent[letter - 'a'];

	return n < 0 ? -n * ROWS : n;
}

/* The letters of an equation, part by part: operand 0, operand 1, result. */
static int split(const char *text, char part[3][8])
{
	int k = 0, n = 0, nin = 1;

	for (const char *c = text; *c; c++) {
		if (*c == ',' || *c == '>')
			part[k][n] = '\0', k = *c == '>' ? 2 : 1, n = 0, nin = *c == ',' ? 2 : nin;
		else if (*c != ' ' && *c != '-')
			part[k][n++] = *c;
	}
	part[k][n] = '\0';
	return nin;
}

static int64_t place(const struct equation *q, const char *part, const int64_t *at)
{
	int64_t e = 0;

	for (; *part; part++)
		e = e * extent_of(q, *part) + at[*part - 'a'];
	return e;
}

static void naive(const struct equation *q, char part[3][8], int nin, double **in, double *out)
{
	int64_t at[8] = { 0 };

	for (;;) {
		int d = 7;
		out[place(q, part[2], at)] += in[0][place(q, part[0], at)] * (nin == 2 ?
			in[1][place(q, part[1], at)] : 1);
		for (; d >= 0; d--) {
			if (q->extent[d] != 0 && ++at[d] < extent_of(q, (char)('a' + d)))
				break;
			at[d] = 0;
		}
		if (d < 0)
			return;
	}
}

static enum hd_err build(struct hd_graph *graph, const struct equation *q, char part[3][8], int nin,
	uint32_t *in, uint32_t *out,
	struct hd_diag *diag)
{
	static const char *const names[] = { "x", "y" };

	for (int i = 0; i < nin; i++) {
		int64_t dim[HD_MAX_DIMS];
		uint8_t rank = 0;
		for (const char *c = part[i]; *c; c++)
			dim[rank++] = q->extent[*c - 'a'];
		CHECK(hd_graph_input(graph, names[i], HD_F32, rank, dim, &in[i], diag) == HD_OK, "%s",
			diag->text);
	}
	return hd_graph_einsum(graph, q->text, (uint8_t)nin, in, 0, out, diag);
}

static void equations_sum_what_their_letters_say(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof equations / sizeof equations[0]; k++) {
		const struct equation *q = &equations[k];
		struct hd_arena arena;
		struct hd_graph graph;
		struct hd_diag diag = { "" };
		struct eval64 ev;
		char part[3][8] = { "" };
		int nin = split(q->text, part);
		uint32_t in[2], out = HD_NONE;
		double want[1000] = { 0 };

		hd_arena_init(&arena, 0);
		hd_graph_init(&graph, &arena);
		CHECK(build(&graph, q, part, nin, in, &out, &diag) == HD_OK, "%s", diag.text);
		eval64_make(&ev, &graph, ROWS);
		for (int i = 0; i < nin; i++)
			for (uint64_t e = 0; e < hd_value_elems(&graph.value[in[i]], ROWS); e++)
				ev.at[in[i]][e] = sin(3.0 * (double)e + i);
		eval64_run(&ev);
		naive(q, part, nin, (double *[]){ ev.at[in[0]], ev.at[in[nin - 1]] }, want);
		for (uint64_t e = 0; e < hd_value_elems(&graph.value[out], ROWS); e++)
			CHECK(fabs(ev.at[out][e] - want[e]) < 1e-12, "%s, element %llu: %g, not %g", q->text,
				(unsigned long long)e, ev.at[out][e], want[e]);
		eval64_finish(&ev);
		hd_arena_finish(&arena);
	}
}

static const struct { struct equation q; const char *says; } refusals[] = {
	{ { "ab,bc", { 2, 3, 4 } }, "'->'" }, { { "aab,bc->ac", { 2, 3, 4 } }, "twice" }, { { "ab,bc->ad", { 2, 3, 4, 5 } }, "no operand has" },
	{ { "ab,cb->ac-", { 2, 3, 4 } }, "follows the result" }, { { "ab,cd->abcd", { -1, 2, -1, 3 } }, "two extents of the result" },
};

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof refusals / sizeof refusals[0]; k++) {
		struct hd_arena arena;
		struct hd_graph graph;
		struct hd_diag diag = { "" };
		char part[3][8] = { "" };
		int nin = split(refusals[k].q.text, part);
		uint32_t in[2], out;

		hd_arena_init(&arena, 0);
		hd_graph_init(&graph, &arena);
		CHECK(build(&graph, &refusals[k].q, part, nin, in, &out, &diag) == HD_E_INVAL, "%s",
			refusals[k].q.text);
		CHECK(strstr(diag.text, refusals[k].says), "%s: %s", refusals[k].q.text, diag.text);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equations_sum_what_their_letters_say),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
