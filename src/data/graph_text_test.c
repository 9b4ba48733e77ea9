#include "data/graph_text.h"

#include <stdio.h>
#include <string.h>

#include "data/prepared.h"
#include "tests/check.h"

struct seen { char text[400]; size_t n; };

static enum hd_err see_edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	struct seen *seen = user;

	(void)diag;
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "%u>%u%s ", from, to,
		both ? "!" : "");
	return HD_OK;
}

static enum hd_err see_vertex(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	struct seen *seen = user;

	(void)diag;
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "%d/%d",
		(int)row->vertex,
		(int)row->label);
	for (uint32_t i = 0; i < row->n; i++)
		seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, " %u:%g",
			row->column[i], (double)row->value[i]);
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "; ");
	return HD_OK;
}

/* A text, and what is seen, or the message. */
struct text_case { const char *text, *seen, *says; };

static void check_case(const struct text_case *c, const struct seen *seen, enum hd_err err,
	const struct hd_diag *diag)
{
	CHECK(err == (c->says ? HD_E_INPUT : HD_OK), "'%s': %d, '%s'", c->text, (int)err, diag->text);
	if (c->says)
		CHECK(strstr(diag->text, c->says), "'%s': '%s' should hold '%s'", c->text, diag->text,
			c->says);
	else
		CHECK(!strcmp(seen->text, c->seen), "'%s': '%s', not '%s'", c->text, seen->text, c->seen);
}

static void edges_are_two_ids_a_line(void **state)
{
	static const struct text_case cases[] = {
		{ "# Cora\n0 1\n1\t2\n\n2,3\r\n9 0", "0>1 1>2 2>3 9>0 ", NULL },
		{ "0 0\n", "0>0 ", NULL },
		{ "", "", NULL },
		{ "0 1\n3\n", NULL, "f:2: wanted two ids" },
		{ "0 1 0.5\n", NULL, "f:1: wanted two ids and no more: weights" },
		{ "0 10\n", NULL, "f:1: vertex 10, but the features are of 10 vertices" },
		{ "-1 2\n", NULL, "f:1: wanted two ids" },
		{ "0 1x\n", NULL, "f:1: wanted two ids" },
		{ "0 99999999999999999999999\n", NULL, "f:1: wanted two ids" },
		{ "0 4294967296\n", NULL, "f:1: wanted two ids" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_edge_sink sink = { &seen, see_edge };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_edge_text((const uint8_t *)cases[i].text, strlen(cases[i].text), "f", 10,
			&sink,
			&diag);
		check_case(&cases[i], &seen, err, &diag);
	}
}

static void vertices_are_a_label_and_columns_that_ascend(void **state)
{
	static const struct text_case cases[] = {
		{ "2 0:1 7:0.5\n-1\n0 3:-1e2", "0/2 0:1 7:0.5; 1/-1; 2/0 3:-100; ", NULL },
		{ "1 0:1\r\n", "0/1 0:1; ", NULL },
		{ "0\n\n1\n", NULL, "f:2: wanted a label first" },
		{ "-2 1:1\n", NULL, "f:1: wanted a label first" },
		{ "1048576\n", NULL, "f:1: wanted a label first" },
		{ "0 3:1 3:1\n", NULL, "f:1: column 3 after column 3: columns ascend" },
		{ "0 3:1 2:1\n", NULL, "f:1: column 2 after column 3" },
		{ "0 3\n", NULL, "f:1: wanted \"label column:value" },
		{ "0 3:nan\n", NULL, "f:1: wanted \"label column:value" },
		{ "0 3:1e39\n", NULL, "f:1: wanted \"label column:value" },
		{ "0 3:\n", NULL, "f:1: wanted \"label column:value" },
		{ "0 16777216:1\n", NULL, "f:1: column 16777216 of features" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_vertex_sink sink = { &seen, see_vertex };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_vertex_text((const uint8_t *)cases[i].text, strlen(cases[i].text), "f",
			&sink,
			&diag);
		check_case(&cases[i], &seen, err, &diag);
	}
}

static void see_mask(const uint8_t *mask, uint64_t n, struct seen *seen)
{
	for (uint64_t v = 0; v < n; v++)
		seen->text[v] = (char)('0' + mask[v]);
}

static void splits_name_each_vertex_once(void **state)
{
	static const struct text_case cases[] = {
		{ "train 0 1\nval 3\ntest 5 4\n", "110233", NULL },
		{ "# by hand\ntest 0\nvalid 1\n\ntrain\t2\n", "321000", NULL },
		{ "train\n", "000000", NULL },
		{ "train 0 1\ntest 1\n", NULL, "f:2: vertex 1 is in \"train\" already" },
		{ "train 0 0\n", NULL, "f:1: vertex 0 is in \"train\" already" },
		{ "train 6\n", NULL, "f:1: vertex 6, but the features are of 6" },
		{ "train 0\ntrain 1\n", NULL, "f:2: the set stands twice" },
		{ "val 0\nvalid 1\n", NULL, "f:2: the set stands twice" },
		{ "training 0\n", NULL, "f:1: wanted \"train\", \"val\" or \"test\"" },
		{ "0 1\n", NULL, "f:1: wanted \"train\"" },
		{ "train x\n", NULL, "f:1: wanted ids" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_diag diag = { "" };
		uint8_t mask[6] = { 0 };
		enum hd_err err = hd_split_text((const uint8_t *)cases[i].text, strlen(cases[i].text), "f", 6,
			mask,
			&diag);
		see_mask(mask, 6, &seen);
		check_case(&cases[i], &seen, err, &diag);
	}
}

static void labels_are_as_many_as_vertices(void **state)
{
	static const struct text_case cases[] = {
		{ "1\n-1\n0\n", "1 -1 0 ", NULL },
		{ "1\n-1\n0", "1 -1 0 ", NULL },
		{ "1\n0\n", NULL, "f has 2 labels, the features are of 3 vertices" },
		{ "1\n0\n0\n0\n", NULL, "f has more lines than the features have vertices (3)" },
		{ "1\n0 1\n0\n", NULL, "f:2: wanted one label" },
		{ "1\n\n0\n", NULL, "f:2: wanted one label" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_diag diag = { "" };
		int32_t label[3] = { 0 };
		enum hd_err err = hd_label_text((const uint8_t *)cases[i].text, strlen(cases[i].text), "f", 3,
			label,
			&diag);
		for (int v = 0; v < 3; v++)
			seen.n += (size_t)snprintf(seen.text + seen.n, sizeof seen.text - seen.n, "%d ",
				(int)label[v]);
		check_case(&cases[i], &seen, err, &diag);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_are_two_ids_a_line),
		cmocka_unit_test(vertices_are_a_label_and_columns_that_ascend),
		cmocka_unit_test(splits_name_each_vertex_once),
		cmocka_unit_test(labels_are_as_many_as_vertices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
