/* docs/ops.md has what the op table says; examples are lines that parse. */
#include "graph/op_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* In blocks that a pass chooses, or over the global batch: no graph is written with them. */
static bool is_of_a_pass(uint16_t op)
{
	const char *name = hd_ops[op].name;

	return strstr(name, "_b") == name + strlen(name) - 2 || strcmp(name, "block") == 0 ||
		strcmp(name, "unblock") == 0 || strncmp(name, "batchnorm_", 10) == 0 ||
		strcmp(name, "rows_meet") == 0;
}

static void every_op_that_has_a_gradient_has_an_example(void **state)
{
	(void)state;
	for (uint16_t op = 0; op < HD_NOPS; op++)
		CHECK(!hd_ops[op].grad || hd_op_example(op) || is_of_a_pass(op), "%s has no example",
			hd_ops[op].name);
}

static void examples_are_of_their_op_and_parse(void **state)
{
	(void)state;
	for (uint16_t op = 0; op < HD_NOPS; op++) {
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_text results;
		const char *line = hd_op_example(op), *word = line ? strstr(line, " = ") : NULL;
		if (!line)
			continue;
		size_t len = strlen(hd_ops[op].name);
		CHECK(word && strncmp(word + 3, hd_ops[op].name, len) == 0 && word[3 + len] == ' ', "%s: %s",
			hd_ops[op].name, line);
		hd_arena_init(&arena, 0);
		hd_text_init(&results, &arena);
		CHECK(hd_op_example_results(op, &arena, &results, &diag) == HD_OK, "%s: %s", line, diag.text);
		CHECK(results.len > 0, "%s", line);
		hd_arena_finish(&arena);
	}
}

static void the_document_has_the_table_as_it_is(void **state)
{
	enum { MOST = 1 << 18 };
	const char *root = getenv("SOURCE_DIR");
	char path[4096], *have = calloc(1, MOST);
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_text want;

	(void)state;
	if (!root) {
		free(have);
		SKIP("SOURCE_DIR does not say where the document is");
	}
	snprintf(path, sizeof path, "%s/docs/ops.md", root);
	FILE *f = fopen(path, "r");
	CHECK(f && have && fread(have, 1, MOST - 1, f) > 0, "no %s", path);
	fclose(f);
	hd_arena_init(&arena, 0);
	hd_text_init(&want, &arena);
	CHECK(hd_op_document(&arena, &want, &diag) == HD_OK, "%s", diag.text);
	const char *from = strstr(have, "<!-- ops -->\n");
	CHECK(from, "%s has no mark <!-- ops -->", path);
	from += strlen("<!-- ops -->\n");
	CHECK(strncmp(from, want.at, want.len) == 0 && strcmp(from + want.len, "<!-- /ops -->\n") == 0,
		"docs/ops.md is old: between its marks belongs what `heddle model ops -o FILE` writes");
	hd_arena_finish(&arena);
	free(have);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_that_has_a_gradient_has_an_example),
		cmocka_unit_test(examples_are_of_their_op_and_parse),
		cmocka_unit_test(the_document_has_the_table_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
