#include "token/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "tests/check.h"

/* Answers are the package's (tests/data/tokenize/golden.jsonl, made by bench/tokenize.py --golden): a text of
 * many kinds of characters, its tokens, and the text that they stand for. */

enum { GOLDEN_BYTES = 1 << 20 };

static char *read_golden(size_t *len)
{
	const char *folder = getenv("SOURCE_DIR");
	char path[1024];

	snprintf(path, sizeof path, "%s/tests/data/tokenize/golden.jsonl", folder ? folder : ".");
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	char *text = malloc(GOLDEN_BYTES);
	assert_non_null(text);
	*len = fread(text, 1, GOLDEN_BYTES, file);
	fclose(file);
	return text;
}

struct golden { const char *name, *text, *back, *file; const struct hd_json *ids; };

static void check_ids(const struct golden *g, const struct hd_token_ids *ids)
{
	int64_t want;

	for (size_t i = 0; i < hd_json_count(g->ids) && i < ids->n; i++) {
		assert_int_equal(hd_json_as_i64(hd_json_item(g->ids, i), 0, INT32_MAX, &want, NULL), HD_OK);
		CHECK(ids->at[i] == want, "%s: token %zu is %u, not %lld", g->name, i, ids->at[i],
			(long long)want);
	}
	CHECK(hd_json_count(g->ids) == ids->n, "%s: %u tokens, not %zu", g->name, ids->n,
		hd_json_count(g->ids));
}

static void check_golden(const struct golden *g)
{
	struct hd_tokenizer *tokenizer;
	struct hd_token_work *work;
	struct hd_token_ids ids = { 0 };
	struct hd_token_text text = { 0 };
	struct hd_diag diag = { "" };

	CHECK(!hd_tokenizer_create(&tokenizer, g->name, g->file, strlen(g->file), &diag), "%s", diag.text);
	CHECK(!hd_token_work_create(&work, tokenizer, &diag), "%s", diag.text);
	for (unsigned k = 0; k < 2; k++) {               /* the second time from the cache of words */
		ids.n = 0;
		CHECK(!hd_tokenizer_encode(work, "text", g->text, strlen(g->text), true, &ids, &diag),
			"%s: %s",
			g->name, diag.text);
		check_ids(g, &ids);
	}
	CHECK(!hd_tokenizer_decode(work, ids.at, ids.n, false, &text, &diag), "%s: %s", g->name, diag.text);
	CHECK(text.len == strlen(g->back) && !memcmp(text.at, g->back, text.len), "%s: '%.*s' is not '%s'",
		g->name, (int)text.len, (char *)text.at, g->back);
	hd_free(ids.at);
	hd_free(text.at);
	hd_token_work_destroy(work);
	hd_tokenizer_destroy(tokenizer);
}

static void tokens_are_those_of_the_package(void **state)
{
	struct hd_arena arena;
	size_t len, n = 0;
	char *all = read_golden(&len);

	(void)state;
	if (!all)
		SKIP("no tests/data/tokenize/golden.jsonl");
	hd_arena_init(&arena, 0);
	for (char *at = all, *end; at < all + len; at = end + 1, n++) {
		const struct hd_json *json;
		struct golden g;
		end = memchr(at, '\n', (size_t)(all + len - at));
		assert_non_null(end);
		assert_int_equal(hd_json_parse(&arena, "golden", at, (size_t)(end - at), &json, NULL), HD_OK);
		assert_true(!hd_json_get_text(json, "name", &g.name, NULL) && !hd_json_get_text(json, "text",
			&g.text, NULL) && !hd_json_get_text(json, "back", &g.back, NULL) &&
			!hd_json_get_text(json, "file", &g.file, NULL) && !hd_json_get(json, "ids",
			HD_JSON_ARRAY, &g.ids, NULL));
		check_golden(&g);
	}
	assert_true(n >= 8);
	hd_arena_finish(&arena);
	free(all);
}

#define WORDS "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"u\", \"vocab\": {\"u\": 0, \"a\": 1}}"
#define BPE(more) "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}" more "}}"

static void what_is_not_supported_is_refused_with_its_place(void **state)
{
	static const struct { const char *file, *says; } cases[] = {
		{ "{\"model\": ", "t:1:" },
		{ "{}", "\"model\"" },
		{ "{\"model\": {\"type\": \"Best\", \"vocab\": {}}}", ".model.type" },
		{ "{" WORDS ", \"normaliser\": null}", "normaliser" },
		{ "{" WORDS ", \"version\": \"2.0\"}", ".version is \"2.0\"" },
		{ "{" WORDS ", \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFX\"}]}}", ".normalizer.normalizers[0]: the type \"NFX\"" },
		{ "{" WORDS ", \"normalizer\": {\"type\": \"Strip\", \"strip_left\": true}}", "strip_right" },
		{ "{" WORDS ", \"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}}", ".pre_tokenizer: the type \"UnicodeScripts\"" },
		{ "{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a)\\\\1\"}, \"behavior\": \"Isolated\", \"invert\": false}}", "character 5 of the regular expression" },
		{ "{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a(\"}, \"behavior\": \"Isolated\", \"invert\": false}}", "is none" },
		{ "{" WORDS ", \"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAA\"}}", "is no map of characters" },
		{ "{" WORDS ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {}}}", "\"x\" is not among special_tokens" },
		{ "{" WORDS ", \"added_tokens\": [{\"id\": 7, \"content\": \"n\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": true, \"special\": false}]}", "is said to be token 7, and is 2" },
		{ BPE(""), "\"merges\"" },
		{ BPE(", \"merges\": [\"a  b\"]"), ".merges[0]" },
		{ BPE(", \"merges\": [[\"a\", \"c\"]]"), "\"c\" is not in the vocabulary" },
		{ BPE(", \"merges\": [[\"b\", \"a\"]]"), "\"ba\" is not in the vocabulary" },
		{ BPE(", \"merges\": [], \"dropout\": 0.1"), "dropout" },
		{ "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": 4194304}}}", ".vocab.a" },
		{ "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 1, \"vocab\": [[\"a\", 0.5]]}}", ".unk_id" },
	};
	struct hd_tokenizer *tokenizer;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_tokenizer_create(&tokenizer, "t", cases[i].file, strlen(cases[i].file),
			&diag);
		CHECK(err == HD_E_INPUT && strstr(diag.text, cases[i].says), "case %zu: %d '%s', not '%s'", i,
			err,
			diag.text, cases[i].says);
	}
}

static void a_text_that_is_no_utf8_is_refused_with_its_byte(void **state)
{
	static const char file[] = "{" WORDS "}";
	struct hd_tokenizer *tokenizer;
	struct hd_token_work *work;
	struct hd_token_ids ids = { 0 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_tokenizer_create(&tokenizer, "t", file, sizeof file - 1, NULL), HD_OK);
	assert_int_equal(hd_token_work_create(&work, tokenizer, NULL), HD_OK);
	assert_int_equal(hd_tokenizer_encode(work, "x.txt", "0123456789\xc3", 11, false, &ids, &diag),
		HD_E_INPUT);
	CHECK(strstr(diag.text, "x.txt: byte 10 (0xc3) is no UTF-8"), "%s", diag.text);
	assert_int_equal(hd_tokenizer_encode(work, "x.txt", "", 0, false, &ids, NULL), HD_OK);
	assert_int_equal(ids.n, 0);
	assert_int_equal(hd_tokenizer_encode(work, "x.txt", "a", 1, false, &ids, NULL), HD_OK);
	assert_true(ids.n == 1 && ids.at[0] == 1);
	hd_free(ids.at);
	hd_token_work_destroy(work);
	hd_tokenizer_destroy(tokenizer);
}

/* What the package 0.23.3 answers, too: of equal sums the way found first; letters of Unicode 16. */
static void ties_and_new_letters_are_those_of_the_package(void **state)
{
	static const struct { const char *file, *text; uint32_t n, first; } cases[] = {
		{ "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"u\", 0.0], [\"a\", -1.0], [\"b\", -1.0], [\"ab\", -2.0]]}}", "ab", 1, 3 },
		{ "{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{L}+\"}, \"behavior\": \"Removed\", \"invert\": false}}", "a\xe1\xb2\x8a" "a", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_tokenizer *tokenizer;
		struct hd_token_work *work;
		struct hd_token_ids ids = { 0 };
		assert_int_equal(hd_tokenizer_create(&tokenizer, "t", cases[i].file, strlen(cases[i].file),
			NULL), HD_OK);
		assert_int_equal(hd_token_work_create(&work, tokenizer, NULL), HD_OK);
		assert_int_equal(hd_tokenizer_encode(work, "x", cases[i].text, strlen(cases[i].text), false,
			&ids, NULL), HD_OK);
		CHECK(ids.n == cases[i].n && (!ids.n || ids.at[0] == cases[i].first), "case %zu: %u tokens",
			i,
			ids.n);
		hd_free(ids.at);
		hd_token_work_destroy(work);
		hd_tokenizer_destroy(tokenizer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_those_of_the_package),
		cmocka_unit_test(what_is_not_supported_is_refused_with_its_place),
		cmocka_unit_test(a_text_that_is_no_utf8_is_refused_with_its_byte),
		cmocka_unit_test(ties_and_new_letters_are_those_of_the_package),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
