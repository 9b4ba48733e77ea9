/* What a manifest must say, field by field, sealed again after each change: so the field is refused, not the
 * seal. And what is the name of a checkpoint. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/ckpt_int.h"
#include "tests/check.h"


static struct hd_manifest manifest_of(void)
{
	return (struct hd_manifest){ .info = { .step = 3, .samples = 30, .job_hash = { { 1 } },
		.data_hash = { { 4 } }, .fingerprint = { { 5 } },
		.digest = { { 6 } }, .data_count = 60, .len_bytes = 60, .lineage = 2, .kernels = "portable",
		.program = "9.9", .model = "m" },
		.file = { { .len_bytes = 10 }, { .len_bytes = 20 }, { .len_bytes = 30 } } };
}

/* The text that `manifest` has, without its seal. */
static size_t body_of(const struct hd_manifest *manifest, struct hd_arena *arena, char *out, size_t cap)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	assert_int_equal(hd_manifest_print(manifest, &text, NULL), HD_OK);
	const char *seal = strstr(text.at, "],\"sha256\"");
	assert_non_null(seal);
	size_t n = (size_t)(seal - text.at) + 1;
	assert_true(n < cap);
	memcpy(out, text.at, n);
	out[n] = '\0';
	return n;
}

static enum hd_err parse_sealed(const char *body, struct hd_manifest *out, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char text[4000], hex[HD_SHA256_HEX];
	struct hd_sha256 sum;

	assert_int_equal(hd_sha256(body, strlen(body), &sum, NULL), HD_OK);
	hd_sha256_hex(&sum, hex);
	int n = snprintf(text, sizeof text, "%s,\"sha256\":\"%s\"}\n", body, hex);
	return hd_manifest_parse(out, arena, "x", text, (size_t)n, diag);
}

/* The first of `is` becomes another text. */
static void change(char *text, size_t cap, const char *good, const char *is, const char *becomes)
{
	const char *at = strstr(good, is);

	CHECK(at, "there is no %s", is);
	snprintf(text, cap, "%.*s%s%s", (int)(at - good), good, becomes, at + strlen(is));
}

static void each_field_of_a_manifest_is_asked_for(void **state)
{
	static const struct { const char *is, *becomes; } cases[] = {
		{ "\"heddle-checkpoint\"", "\"heddle-checkpoints\"" }, { "\"heddle-checkpoint\"", "1" }, { "\"format\"", "\"formed\"" },
		{ "\"version\":1", "\"version\":2" }, { "\"version\":1", "\"version\":\"a\"" }, { "\"version\":1", "\"version\":0" }, { "\"version\"", "\"verse\"" },
		{ "\"program\":\"9.9\"", "\"program\":9" }, { "\"program\":\"9.9\"", "\"program\":\"12345678901234567890123456789012\"" },
		{ "\"program\"", "\"programme\"" }, { "\"program\":\"9.9\",", "" }, { "\"program\":\"9.9\"", "\"program\":\"9.9\",\"x\":1" },
		{ "\"model\":\"m\"", "\"model\":[]" }, { "\"model\"", "\"modal\"" },
		{ "\"job_hash\":\"01", "\"job_hash\":\"0" }, { "\"job_hash\":\"01", "\"job_hash\":\"0x" }, { "\"job_hash\"", "\"job\"" },
		{ "\"step\":\"3\"", "\"step\":-3" }, { "\"step\":\"3\"", "\"step\":true" }, { "\"step\"", "\"stop\"" },
		{ "\"samples\":\"30\"", "\"samples\":-1" }, { "\"samples\"", "\"sampled\"" },
		{ "\"data\":{", "\"data\":[{" }, { "\"data\"", "\"datum\"" }, { "\"count\":\"60\"", "\"count\":-60" }, { "\"count\":\"60\"", "\"count\":\"60\",\"x\":1" },
		{ "\"count\":\"60\",", "" }, { "\"count\"", "\"count_\"" }, { "\"hash\":\"04", "\"hash\":\"4" }, { "\"hash\"", "\"hush\"" },
		{ "\"kernels\":\"portable\"", "\"kernels\":\"portable_portable\"" }, { "\"kernels\":\"portable\"", "\"kernels\":null" }, { "\"kernels\"", "\"kernel\"" },
		{ "\"kernel_fingerprint\":\"05", "\"kernel_fingerprint\":\"5" }, { "\"kernel_fingerprint\"", "\"kernel_finger\"" },
		{ "\"lineage\":2", "\"lineage\":4294967296" }, { "\"lineage\":2", "\"lineage\":-2" }, { "\"lineage\"", "\"line\"" },
		{ "\"state_digest\":\"06", "\"state_digest\":\"6" }, { "\"state_digest\"", "\"digest\"" },
		{ "\"bytes\":\"60\"", "\"bytes\":\"61\"" }, { "\"bytes\":\"60\"", "\"bytes\":-60" }, { "\"bytes\":\"60\"", "\"byte\":\"60\"" },
		{ "\"files\":[", "\"files\":[[]," }, { "\"files\"", "\"filed\"" }, { "{\"name\":\"model", "1,{\"name\":\"model" },
		{ "\"name\":\"model.safetensors\"", "\"name\":\"optim.safetensors\"" }, { "\"name\":\"model.safetensors\"", "\"name\":1" },
		{ "\"name\":\"model.safetensors\"", "\"nome\":\"model.safetensors\"" }, { "\"name\":\"model.safetensors\",", "" },
		{ "\"name\":\"state.json\"", "\"name\":\"state.jsonl\"" }, { "\"bytes\":10", "\"bytes\":11" }, { "\"bytes\":10", "\"bytes\":-10" },
		{ "\"bytes\":10", "\"bytes\":10,\"x\":1" }, { "\"bytes\":30", "\"bits\":30" },
		{ "\"sha256\":\"00", "\"sha256\":\"0" }, { "\"sha256\":\"00", "\"sha256\":\"zz" }, { "\"sha256\"", "\"sha512\"" },
	};
	struct hd_manifest manifest = manifest_of(), out;
	struct hd_arena arena;
	char good[3000];

	(void)state;
	hd_arena_init(&arena, 0);
	body_of(&manifest, &arena, good, sizeof good);
	assert_int_equal(parse_sealed(good, &out, &arena, NULL), HD_OK);
	assert_memory_equal(&out, &manifest, sizeof out);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		char text[3500];
		change(text, sizeof text, good, cases[i].is, cases[i].becomes);
		memset(&out, 0x5a, sizeof out);
		CHECK(parse_sealed(text, &out, &arena, &diag) == HD_E_INPUT && diag.text[0], "case %zu: %s",
			i, text);
		for (size_t b = 0; b < sizeof out; b++)
			CHECK(((const uint8_t *)&out)[b] == 0x5a, "case %zu: byte %zu was taken", i, b);
	}
	hd_arena_finish(&arena);
}

/* Only one that was kept for it names a measure; the value keeps its bits. */
static void the_best_is_named_with_measure_and_value(void **state)
{
	static const struct { const char *is, *becomes; } cases[] = {
		{ "\"best\":{", "\"best\":[{" }, { "\"by\":\"val_loss\",", "" }, { "\"by\":\"val_loss\"", "\"by\":\"\"" },
		{ "\"by\":\"val_loss\"", "\"by\":\"val_loss_val_loss_val_loss_val_l\"" }, { "\"by\":\"val_loss\"", "\"by\":1" },
		{ "\"value\":", "\"x\":1,\"value\":" }, { "\"value\":", "\"value\":\"nan\",\"x\":" }, { "\"value\":", "\"val\":" },
	};
	struct hd_manifest manifest = manifest_of(), out;
	struct hd_arena arena;
	char good[3000];

	(void)state;
	hd_arena_init(&arena, 0);
	snprintf(manifest.info.best_by, sizeof manifest.info.best_by, "val_loss");
	manifest.info.best = 0x1.23456789abcdfp-3;
	body_of(&manifest, &arena, good, sizeof good);
	assert_non_null(strstr(good, "\"lineage\":2,\"best\":{\"by\":\"val_loss\",\"value\":0.14"));
	assert_int_equal(parse_sealed(good, &out, &arena, NULL), HD_OK);
	assert_memory_equal(&out, &manifest, sizeof out);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		char text[3500];
		change(text, sizeof text, good, cases[i].is, cases[i].becomes);
		CHECK(parse_sealed(text, &out, &arena, &diag) == HD_E_INPUT && diag.text[0], "case %zu: %s",
			i, text);
	}
	hd_arena_finish(&arena);
}

/* The text is a format: members stand in this order, numbers of 64 bits as text. */
static void the_text_of_a_manifest(void **state)
{
	static const char want[] =
		"{\"format\":\"heddle-checkpoint\",\"version\":1,\"program\":\"9.9\",\"model\":\"m\","
		"\"job_hash\":\"01000000000000000000000000000000\",\"step\":\"3\",\"samples\":\"30\","
		"\"data\":{\"count\":\"60\",\"hash\":\"04000000000000000000000000000000\"},"
		"\"kernels\":\"portable\",\"kernel_fingerprint\":\"05000000000000000000000000000000\","
		"\"lineage\":2,"
		"\"state_digest\":\"06000000000000000000000000000000\",\"bytes\":\"60\",\"files\":["
		"{\"name\":\"model.safetensors\",\"bytes\":10,"
		"\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"},"
		"{\"name\":\"optim.safetensors\",\"bytes\":20,"
		"\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"},"
		"{\"name\":\"state.json\",\"bytes\":30,"
		"\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"}]";
	struct hd_manifest manifest = manifest_of();
	struct hd_arena arena;
	char body[3000];

	(void)state;
	hd_arena_init(&arena, 0);
	body_of(&manifest, &arena, body, sizeof body);
	assert_string_equal(body, want);
	/* of a model with tied parameters one member more */
	manifest.info.order[HD_CKPT_ORDER_TIED] = true;
	body_of(&manifest, &arena, body, sizeof body);
	const char *tied = strstr(body, ",\"tied\":\"parts\"");
	assert_true(tied && tied - body == strstr(want, ",\"state_digest\"") - want);
	assert_string_equal(tied + strlen(",\"tied\":\"parts\""), want + (tied - body));
	/* and of one in shards that goes by norms */
	manifest.info.order[HD_CKPT_ORDER_SLICED] = true;
	body_of(&manifest, &arena, body, sizeof body);
	assert_non_null(strstr(body,
		"\"lineage\":2,\"tied\":\"parts\",\"norms\":\"slices\",\"state_digest\""));
	hd_arena_finish(&arena);
}

/* Of two faults the first is reported, and no later field makes good what an earlier one lacks. */
static void the_first_fault_of_a_manifest_is_told(void **state)
{
	static const struct { const char *is, *becomes, *says; } cases[] = {
		{ "\"format\":\"heddle-checkpoint\"", "\"format\":7", "format" }, { "\"version\":1", "\"version\":\"a\"", "version" },
		{ "\"heddle-checkpoint\",\"version\":1", "\"x\",\"version\":2", "its format is \"x\"" },
		{ "{\"name\":\"model.safetensors\",\"bytes\":10,", "{\"bytes\":10,", "files[0] has 2 members instead of 3" },
		{ "{\"name\":\"model.safetensors\",", "{\"name\":\"model.safetensors\",\"x\":1,", "files[0] has 4 members instead of 3" },
		{ "\"bytes\":10", "\"bytes\":-10", "files[0].bytes" }, { "\"bytes\":30", "\"bytes\":true", "files[2].bytes" },
		{ "\"bytes\":20,\"sha256\":\"00", "\"bytes\":20,\"sha256\":\"0", "files[1].sha256 is not 64 hex digits" },
		{ "\"bytes\":20,\"sha256\":\"0", "\"bytes\":20,\"sha512\":\"0", "sha256" },
		{ "\"files\":[", "\"files\":[0,", "files has 4 members instead of 3" },
		{ "\"60\",\"files\":[{\"name\":\"model.safetensors\",\"bytes\":10", "\"50\",\"files\":[{\"name\":\"model.safetensors\",\"bytes\":-10", "files[0].bytes" },
	};
	struct hd_manifest manifest = manifest_of(), out;
	struct hd_arena arena;
	char good[3000], text[3500];

	(void)state;
	hd_arena_init(&arena, 0);
	body_of(&manifest, &arena, good, sizeof good);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *at = strstr(good, cases[i].is);
		struct hd_diag diag = { "" };
		CHECK(at, "case %zu: %s", i, cases[i].is);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].becomes,
			at + strlen(cases[i].is));
		CHECK(parse_sealed(text, &out, &arena, &diag) == HD_E_INPUT &&
			strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
	/* how sums of tied parameters are made is parts, or not said */
	struct hd_diag tied = { "" };
	manifest.info.order[HD_CKPT_ORDER_TIED] = true;
	body_of(&manifest, &arena, good, sizeof good);
	assert_true(parse_sealed(good, &out, &arena, NULL) == HD_OK && out.info.order[HD_CKPT_ORDER_TIED]);
	const char *parts = strstr(good, "\"parts\"");
	snprintf(text, sizeof text, "%.*s\"whole\"%s", (int)(parts - good), good,
		parts + strlen("\"parts\""));
	CHECK(parse_sealed(text, &out, &arena, &tied) == HD_E_INPUT && strstr(tied.text, "tied is \"whole\""),
		"%s", tied.text);
	snprintf(text, sizeof text, "%.*s1%s", (int)(parts - good), good, parts + strlen("\"parts\""));
	assert_int_equal(parse_sealed(text, &out, &arena, NULL), HD_E_INPUT);
	manifest.info.order[HD_CKPT_ORDER_TIED] = false;
	/* so are norms of slices, which is another member */
	manifest.info.order[HD_CKPT_ORDER_SLICED] = true;
	body_of(&manifest, &arena, good, sizeof good);
	assert_true(parse_sealed(good, &out, &arena, NULL) == HD_OK && out.info.order[HD_CKPT_ORDER_SLICED] &&
		!out.info.order[HD_CKPT_ORDER_TIED]);
	manifest.info.order[HD_CKPT_ORDER_SLICED] = false;
	body_of(&manifest, &arena, good, sizeof good);
	/* an entry that is no object, with as many members */
	const char *first = strstr(good, "{\"name\":\"model"), *end = strchr(first, '}');
	struct hd_diag diag = { "" };
	snprintf(text, sizeof text, "%.*s[1,2,3]%s", (int)(first - good), good, end + 1);
	assert_int_equal(parse_sealed(text, &out, &arena, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "files[0]") && strstr(diag.text, "object"), "%s", diag.text);
	hd_arena_finish(&arena);
}

/* Longest texts fit; a sum that wraps round does not count; a text too short for a seal is cut. */
static void a_manifest_at_its_limits(void **state)
{
	static const char *const brief[] = { "{\"format\":\"heddle-checkpoint\",\"version\":1}",
		"{\"format\":\"heddle-checkpoint\",\"version\":1}\n" };
	struct hd_manifest manifest = manifest_of(), out;
	struct hd_arena arena;
	struct hd_text text;
	char body[3000];

	(void)state;
	hd_arena_init(&arena, 0);
	memset(manifest.info.program, 'p', sizeof manifest.info.program - 1);
	memset(manifest.info.model, 'q', sizeof manifest.info.model - 1);
	memset(manifest.info.kernels, 'r', sizeof manifest.info.kernels - 1);
	manifest.info.lineage = UINT32_MAX;
	body_of(&manifest, &arena, body, sizeof body);
	assert_int_equal(parse_sealed(body, &out, &arena, NULL), HD_OK);
	assert_memory_equal(&out, &manifest, sizeof out);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(hd_manifest_parse(&out, &arena, "x", brief[i], strlen(brief[i]), NULL),
			HD_E_INTEGRITY);
	/* memory ends at each place in turn */
	enum hd_err err = HD_E_NOMEM;
	for (size_t bytes = 64; err; bytes += 64) {
		struct hd_arena little;
		hd_arena_init(&little, bytes);
		hd_text_init(&text, &little);
		err = hd_manifest_print(&manifest, &text, NULL);
		CHECK(!err || err == HD_E_NOMEM, "%zu bytes: %d", bytes, err);
		CHECK(err || (text.len > 100 && !strcmp(text.at + text.len - 3, "\"}\n")),
			"%zu bytes: not whole", bytes);
		hd_arena_finish(&little);
	}
	hd_arena_finish(&arena);
}

static void names_of_checkpoints_are_known(void **state)
{
	static const struct { const char *name; bool is, old; uint64_t step; } cases[] = {
		{ "step-000000003", true, false, 3 }, { "step-000000000", true, false, 0 }, { "step-999999999", true, false, 999999999 },
		{ "step-1000000000", true, false, 1000000000 }, { "step-9223372036854775807", true, false, INT64_MAX },
		{ "step-000000003.old", true, true, 3 }, { "step-0000000003", false, false, 0 }, { "step-00000003", false, false, 0 },
		{ "step-9223372036854775808", false, false, 0 }, { "step-99999999999999999999999999", false, false, 0 }, { "step-", false, false, 0 },
		{ "step-000000003x", false, false, 0 }, { "step-000000003.old2", false, false, 0 }, { "stop-000000003", false, false, 0 },
		{ ".tmp-step-000000003", false, false, 0 }, { "step-000000003 ", false, false, 0 }, { "", false, false, 0 }, { "step-.old", false, false, 0 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t step = 77;
		bool old = false;
		CHECK(hd_ckpt_folder_parse(cases[i].name, &step, &old) == cases[i].is, "%s", cases[i].name);
		CHECK(!cases[i].is || (step == cases[i].step && old == cases[i].old), "%s: step %llu",
			cases[i].name, (unsigned long long)step);
	}
}

static void a_path_is_joined_or_empty(void **state)
{
	char out[8];

	(void)state;
	hd_ckpt_join(out, sizeof out, "ab", "cde");
	assert_string_equal(out, "ab/cde");
	hd_ckpt_join(out, sizeof out, NULL, "cde");
	assert_string_equal(out, "cde");
	hd_ckpt_join(out, sizeof out, "ab", "cdef");
	assert_string_equal(out, "ab/cdef");
	hd_ckpt_join(out, sizeof out, "ab", "cdefg");
	assert_string_equal(out, "");
}

static void who_owns_a_checkpoint(void **state)
{
	const struct hd_ckpt_info mine = { .job_hash = { { 1 } }, .lineage = 2 };
	static const struct { uint8_t job; uint32_t lineage; bool owns; } cases[] = {
		{ 1, 2, true }, { 1, 9, true }, { 2, 1, true }, { 2, 2, false }, { 2, 3, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_ckpt_info there = { .job_hash = { { cases[i].job } },
			.lineage = cases[i].lineage };
		CHECK(hd_ckpt_owns(&mine, &there) == cases[i].owns, "case %zu", i);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_of_a_manifest_is_asked_for),
		cmocka_unit_test(the_best_is_named_with_measure_and_value),
		cmocka_unit_test(the_text_of_a_manifest),
		cmocka_unit_test(the_first_fault_of_a_manifest_is_told),
		cmocka_unit_test(a_manifest_at_its_limits),
		cmocka_unit_test(names_of_checkpoints_are_known),
		cmocka_unit_test(a_path_is_joined_or_empty),
		cmocka_unit_test(who_owns_a_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
