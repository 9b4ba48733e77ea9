#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tests/check.h"

static struct hd_arena arena;

static int start(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static enum hd_err parse(const char *text, const struct hd_yaml_node **root, struct hd_diag *diag)
{
	diag->text[0] = '\0';
	return hd_yaml_parse(&arena, "f.yaml", text, strlen(text), root, diag);
}

static const struct hd_yaml_node *must(const char *text)
{
	struct hd_diag diag;
	const struct hd_yaml_node *root = NULL;

	CHECK(parse(text, &root, &diag) == HD_OK, "%s", diag.text);
	return root;
}

/* One line that shows all of a tree: key@line:column, then value@line:column. */
static void show(struct hd_text *text, const struct hd_yaml_node *node)
{
	if (node->key)
		hd_text_addf(text, "%s@%u:%u=", node->key, node->key_at.line, node->key_at.column);
	if (node->kind == HD_YAML_SCALAR)
		hd_text_addf(text, node->quoted ? "'%s'" : "%s", node->text);
	else
		hd_text_add(text, node->kind == HD_YAML_SEQ ? "[" : "{");
	hd_text_addf(text, "@%u:%u ", node->at.line, node->at.column);
	uint32_t n = 0;
	for (const struct hd_yaml_node *child = node->first; child; child = child->next, n++)
		show(text, child);
	CHECK(n == node->nchildren, "%u children, not %u", n, node->nchildren);
	if (node->kind != HD_YAML_SCALAR)
		hd_text_add(text, node->kind == HD_YAML_SEQ ? "]" : "}");
}

static const char *shown(const char *yaml)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	show(&text, must(yaml));
	return text.at;
}

static void a_tree_has_texts_quotes_and_places(void **state)
{
	(void)state;
	assert_string_equal(shown("a: 1 # one\nb:\n  c: [x, 'true', {z: 4}]\n  d:\n  - e: f\n    \"g\": "
		"\"h\"\n  k:\n"),
		"{@1:1 a@1:1=1@1:4 b@2:1={@3:3 c@3:3=[@3:6 x@3:7 'true'@3:10 {@3:18 z@3:19=4@3:22 }]"
		"d@4:3=[@5:3 {@5:5 e@5:5=f@5:8 g@6:5='h'@6:10 }]k@7:3=@7:3 }}");
}

static void block_scalars_count_as_quoted(void **state)
{
	const struct hd_yaml_node *root = must("a: |\n  one\n  two\nb: >-\n  one\n  two\n");
	(void)state;

	assert_string_equal(hd_yaml_find(root, "a")->text, "one\ntwo\n");
	assert_string_equal(hd_yaml_find(root, "b")->text, "one two");
	assert_true(hd_yaml_find(root, "a")->quoted && hd_yaml_find(root, "b")->quoted);
}

static void json_is_read_too(void **state)
{
	(void)state;
	assert_string_equal(shown("{\"a\": [1, {\"b\": null}], \"c\": \"\\u00e9\"}"),
		"{@1:1 a@1:2=[@1:7 1@1:8 {@1:11 b@1:12=null@1:17 }]c@1:25='\xc3\xa9'@1:30 }");
}

static void columns_count_characters(void **state)
{
	(void)state;
	assert_string_equal(shown("{\xc3\xa9\xc3\xa9: \xe2\x82\xac, b: 1}\n"),
		"{@1:1 \xc3\xa9\xc3\xa9@1:2=\xe2\x82\xac@1:6 b@1:9=1@1:12 }");
}

static void lists_markers_and_inner_tabs_are_read_too(void **state)
{
	(void)state;
	assert_string_equal(shown("- 1\n- 2\n"), "[@1:1 1@1:3 2@2:3 ]");
	assert_string_equal(shown("---\na: 1\n...\n"), "{@2:1 a@2:1=1@2:4 }");
	assert_string_equal(shown("a: 1\t# x\n"), "{@1:1 a@1:1=1@1:4 }");
	assert_string_equal(shown("{}"), "{@1:1 }");
	assert_string_equal(shown("a: 1\r\nb: 2\r\n"), "{@1:1 a@1:1=1@1:4 b@2:1=2@2:4 }");
}

static void finding_is_by_whole_key(void **state)
{
	const struct hd_yaml_node *root = must("ab: 1\na: 2\n");
	(void)state;

	assert_string_equal(hd_yaml_find(root, "a")->text, "2");
	assert_null(hd_yaml_find(root, "b"));
	assert_null(hd_yaml_find(hd_yaml_find(root, "a"), "a"));
}

static void every_refusal_says_where_and_what(void **state)
{
	static const struct { const char *text, *want; } rows[] = {
		{ "a: &x 1\n", "1:4: anchors" },
		{ "a: &x\n  b: 1\n", "1:4: anchors" },
		{ "a: &x [1]\n", "1:4: anchors" },
		{ "&x a: 1\n", "1:1: anchors" },
		{ "b: 1\na: *x\n", "2:4: aliases" },
		{ "*x : 1\n", "1:1: aliases" },
		{ "a:\n  <<: {b: 1}\n", "2:3: merge keys" },
		{ "a:\n  <<: *x\n", "2:3: merge keys" },
		{ "a: !!int 3\n", "1:4: tags" },
		{ "a: !foo [3]\n", "1:4: tags" },
		{ "!foo {a: 3}\n", "1:1: tags" },
		{ "!!str a: 3\n", "1:1: tags" },
		{ "a: 1\n---\nb: 2\n", "2:1: a second document" },
		{ "a: 1\n...\nb: 2\n", "3:1: a second document" },
		{ "%YAML 1.2\n---\na: 1\n", "1:1: directives" },
		{ "# x\n%TAG ! foo\n---\na: 1\n", "2:1: directives" },
		{ "", "1:1: the file is empty" },
		{ "\n# only words\n", "1:1: the file is empty" },
		{ "a:\n\tb: 1\n", "2:1: indented by a tab" },
		{ "a:\n  b: 1\n  \tc: 1\n", "3:1: indented by a tab" },
		{ "? a:\t|\n", "1:5: a tab behind ':'" },
		{ "? a: \t >\n", "1:6: a tab behind ':'" },
		{ "---\n? a|:\t:b|\n o6<[\"\n", "2:6: a tab behind ':'" },
		{ "a: 1\nb:\n  c: 1\n  c: 2\n", "4:3: key \"c\" stands already in line 3" },
		{ "{a: 1, \"a\": 2}\n", "1:8: key \"a\" stands already in line 1" },
		{ "? [a]\n: b\n", "1:3: a key must be plain text" },
		{ "{[a]: b}\n", "1:2: a key must be plain text" },
		{ "? {a: 1}\n: b\n", "1:3: a key must be plain text" },
		{ ": x\n", "1:1: empty key" },
		{ "\"\": x\n", "1:1: empty key" },
		{ "just words\n", "1:1: a table of keys is needed" },
		{ "a: \"\\0\"\n", "1:4: \\0 is not allowed" },
		{ "\"a\\0\": 1\n", "1:1: \\0 is not allowed" },
		{ "a: \xff\n", "1:4: this byte is not UTF-8" },
		{ "\xff\xfe" "a", "1:1: this byte is not UTF-8" },
		{ "a: \x01\n", "1:4: control characters" },
		{ "a: b: c\n", "1:" },
		{ "a: [1, 2\n", "2:1: " },
		{ "a: \"x\n", "1:5: " },
		{ "a: [}\n", "1:5: " },
		{ "a: @b\n", "1:4: " },
		{ "a:\n b: 1\n  c: 2\n", "2:" },
		{ "a: 1\nb\n", "2:1: " },
		{ "a: 1\nb: |0 x\n", "2:2: what follows is not YAML" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct hd_yaml_node *root = NULL;
		struct hd_diag diag;
		CHECK(parse(rows[i].text, &root, &diag) == HD_E_INVAL && !root, "row %zu:\n%s", i,
			rows[i].text);
		CHECK(strncmp(diag.text, "f.yaml:", 7) == 0 &&
			strncmp(diag.text + 7, rows[i].want, strlen(rows[i].want)) == 0, "row %zu: %s", i,
			diag.text);
	}
}

static void a_quoted_merge_sign_is_a_key_like_others(void **state)
{
	(void)state;
	assert_string_equal(shown("\"<<\": 1\n"), "{@1:1 <<@1:1=1@1:7 }");
}

static void a_0_byte_is_refused(void **state)
{
	const struct hd_yaml_node *root;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_yaml_parse(&arena, "f.yaml", "a: 1\0\n", 6, &root, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "f.yaml:1:5: control"));
}

static void nesting_is_allowed_to_16_and_no_deeper(void **state)
{
	char text[2 * HD_YAML_DEPTH + 3] = "";
	const struct hd_yaml_node *root;
	struct hd_diag diag;
	(void)state;

	memset(text, '[', HD_YAML_DEPTH);
	memset(text + HD_YAML_DEPTH, ']', HD_YAML_DEPTH);
	assert_int_equal(parse(text, &root, &diag), HD_OK);
	memset(text, '[', HD_YAML_DEPTH + 1);
	memset(text + HD_YAML_DEPTH + 1, ']', HD_YAML_DEPTH + 1);
	assert_int_equal(parse(text, &root, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "f.yaml:1:17: nested deeper than 16");
}

static void a_table_has_4096_keys_at_most(void **state)
{
	struct hd_text text;
	const struct hd_yaml_node *root;
	struct hd_diag diag;
	(void)state;

	hd_text_init(&text, &arena);
	for (int i = 0; i < HD_YAML_KEYS; i++)
		hd_text_addf(&text, "k%d: 1\n", i);
	assert_int_equal(parse(text.at, &root, &diag), HD_OK);
	assert_int_equal(root->nchildren, HD_YAML_KEYS);
	hd_text_add(&text, "more: 1\n");
	assert_int_equal(parse(text.at, &root, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "f.yaml:4097:1: too many keys in one table");
}

static void a_text_longer_than_the_limit_is_refused_unread(void **state)
{
	const struct hd_yaml_node *root;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_yaml_parse(&arena, "f.yaml", "a: 1", (size_t)HD_YAML_BYTES + 1, &root, &diag),
		HD_E_INVAL);
}

static const char sample[] =
	"job:\n  name: \"tiny\"\n  list: [a, 'b', {c: |-}]\nmore:\n- x: 1\n  y: 2\n- z\n";

/* Cut anywhere: read or refused, never half a tree. */
static void every_prefix_is_read_or_refused_with_a_place(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof sample; len++) {
		const struct hd_yaml_node *root = NULL;
		struct hd_diag diag = { "" };
		char *exact = malloc(len + 1);           /* the sanitizer sees a read beyond the end */
		assert_non_null(exact);
		memcpy(exact, sample, len);
		exact = realloc(exact, len ? len : 1);
		enum hd_err err = hd_yaml_parse(&arena, "f.yaml", exact, len, &root, &diag);
		CHECK(err == HD_OK ? root != NULL : err == HD_E_INVAL &&
			strncmp(diag.text, "f.yaml:", 7) == 0, "%zu: %s", len, diag.text);
		free(exact);
	}
}

static void an_arena_too_small_is_out_of_memory_for_every_size(void **state)
{
	static const char text[] =
		"job:\n  name: \"tiny\"\n  list: [a, 'b', {c: d}]\nmore:\n- x: 1\n  y: 2\n- z\n";
	enum hd_err err = HD_E_NOMEM;
	size_t budget = 64;
	(void)state;

	for (; err && budget < 100000; budget += 64) {
		struct hd_arena own;
		struct hd_diag diag = { "" };
		const struct hd_yaml_node *root = NULL;
		hd_arena_init(&own, budget);
		err = hd_yaml_parse(&own, "f.yaml", text, sizeof text - 1, &root, &diag);
		CHECK(err == HD_OK || (err == HD_E_NOMEM && !root && strstr(diag.text, "out of memory")),
			"budget %zu: %s", budget, diag.text);
		hd_arena_finish(&own);
	}
	CHECK(err == HD_OK && budget > 1000, "%zu", budget);
}

static void the_first_block_may_fail(void **state)
{
	struct hd_arena own;
	struct hd_diag diag = { "" };
	const struct hd_yaml_node *root = NULL;
	(void)state;

	hd_arena_init(&own, 0);
	hd_alloc_arm(1);
	enum hd_err err = hd_yaml_parse(&own, "f.yaml", "a: 1", 4, &root, &diag);
	hd_alloc_arm(0);
	assert_true(err == HD_E_NOMEM && !root);
	hd_arena_finish(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_has_texts_quotes_and_places),
		cmocka_unit_test(block_scalars_count_as_quoted),
		cmocka_unit_test(json_is_read_too),
		cmocka_unit_test(columns_count_characters),
		cmocka_unit_test(lists_markers_and_inner_tabs_are_read_too),
		cmocka_unit_test(finding_is_by_whole_key),
		cmocka_unit_test(every_refusal_says_where_and_what),
		cmocka_unit_test(a_quoted_merge_sign_is_a_key_like_others),
		cmocka_unit_test(a_0_byte_is_refused),
		cmocka_unit_test(nesting_is_allowed_to_16_and_no_deeper),
		cmocka_unit_test(a_table_has_4096_keys_at_most),
		cmocka_unit_test(a_text_longer_than_the_limit_is_refused_unread),
		cmocka_unit_test(every_prefix_is_read_or_refused_with_a_place),
		cmocka_unit_test(an_arena_too_small_is_out_of_memory_for_every_size),
		cmocka_unit_test(the_first_block_may_fail),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
