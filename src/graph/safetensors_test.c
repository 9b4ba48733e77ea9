#include "graph/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

struct bytes { uint8_t at[1 << 16]; size_t len; uint64_t fail_after; };

static enum hd_err put(void *context, const void *at, uint64_t len, struct hd_diag *diag)
{
	struct bytes *b = context;

	if (b->fail_after && b->len + len > b->fail_after)
		return hd_fail(diag, HD_E_IO, "disk full");
	assert_true(b->len + len <= sizeof b->at);
	memcpy(b->at + b->len, at, len);
	b->len += len;
	return HD_OK;
}

static const float weights[6] = { 1, -2, 3.5f, -0.0f, 1e-40f, 6 };
static const int64_t step = INT64_MIN;
static const uint8_t flags[3] = { 1, 0, 1 };
static const struct hd_st_tensor tensors[] = {
	{ "w", HD_ST_F32, 2, { 2, 3 }, weights, NULL, 24 },
	{ "a \"q\" \xc3\xa9", HD_ST_I64, 0, { 0 }, &step, NULL, 8 },
	{ "flags", HD_ST_BOOL, 1, { 3 }, flags, NULL, 3 },
	{ "empty", HD_ST_F64, 2, { 0, 5 }, NULL, NULL, 0 },
};
enum { NTENSORS = sizeof tensors / sizeof tensors[0] };
static const struct hd_st_meta meta[] = { { "job", "tiny" }, { "format", "pt" } };

static void write_all(struct bytes *b)
{
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	memset(b, 0, sizeof *b);
	hd_arena_init(&arena, 0);
	CHECK(hd_safetensors_write(tensors, NTENSORS, meta, 2, &arena, put, b, &diag) == HD_OK, "%s",
		diag.text);
	hd_arena_finish(&arena);
}

static void what_is_written_is_read_back(void **state)
{
	static struct bytes b;
	struct hd_arena arena;
	struct hd_safetensors file;

	(void)state;
	write_all(&b);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_safetensors_read(&file, &arena, "t", b.at, b.len, NULL), HD_OK);
	assert_int_equal(file.ntensors, NTENSORS);
	assert_int_equal(file.nmeta, 2);
	assert_string_equal(file.meta[0].key, "job");
	assert_string_equal(file.meta[1].value, "pt");
	for (int i = 0; i < NTENSORS; i++) {
		const struct hd_st_tensor *t = hd_safetensors_find(&file, tensors[i].name);
		CHECK(t && t->dtype == tensors[i].dtype && t->rank == tensors[i].rank &&
			t->len_bytes == tensors[i].len_bytes, "%s", tensors[i].name);
		CHECK(memcmp(t->dim, tensors[i].dim, t->rank * sizeof t->dim[0]) == 0, "%s", tensors[i].name);
		CHECK(t->len_bytes == 0 || memcmp(t->at, tensors[i].at, t->len_bytes) == 0, "%s",
			tensors[i].name);
	}
	assert_null(hd_safetensors_find(&file, "v"));
	hd_arena_finish(&arena);
}

/* Written by hand from the format's description. */
static void the_bytes_are_the_format_s(void **state)
{
	static struct bytes b;
	static const char header[] =
		"{\"__metadata__\":{\"job\":\"tiny\",\"format\":\"pt\"},"
		"\"a \\\"q\\\" \xc3\xa9\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
		"\"empty\":{\"dtype\":\"F64\",\"shape\":[0,5],\"data_offsets\":[8,8]},"
		"\"flags\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[8,11]},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[11,35]}}";
	size_t padded = (sizeof header - 1 + 7) / 8 * 8;

	(void)state;
	write_all(&b);
	assert_int_equal(b.at[0] | b.at[1] << 8, padded);
	assert_memory_equal(b.at + 8, header, sizeof header - 1);
	for (size_t i = sizeof header - 1; i < padded; i++)
		assert_int_equal(b.at[8 + i], ' ');
	assert_memory_equal(b.at + 8 + padded + 11, weights, 24);
	assert_int_equal(b.len, 8 + padded + 35);
}

/* Header text and number of data bytes; "" : accepted. */
static const struct { const char *header; size_t data; const char *says; } files[] = {
	{ "{}", 0, "" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}     ", 4, "" },
	{ "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2, "" },
	{ "{\"a\":{\"dtype\":\"F16\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,2]}}", 2, "" },
	{ "", 0, "no safetensors file" },
	{ " {}", 0, "no safetensors file" },
	{ "[]", 0, "no safetensors file" },
	{ "{", 0, "t:1:" },
	{ "{} x", 0, "t:1:" },
	{ "{\"a\":1}", 0, "t: .a" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "t:1:" },
	{ "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "tensor 'a' has dtype 'F8_E4M3'" },
	{ "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype" },
	{ "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1, "a member 'x'" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "9 extents, at most 8" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "shape[0]" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, "shape[0]" },
	{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "larger than any file" },
	{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "larger than any file" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "two numbers" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1, "tensor 'a' lies at 1 to 0" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, "cut short or damaged" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "has 4 bytes, its shape and dtype need 8" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "unused bytes before tensor 'a'" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, "bytes are shared with tensor 'b'" },
	{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 3, "2 bytes at the end belong to no tensor" },
	{ "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__" },
	{ "{\"__metadata__\":[]}", 0, "__metadata__" },
};

static void bad_files_are_refused_and_say_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		struct hd_arena arena;
		struct hd_safetensors file;
		struct hd_diag diag = { "" };
		uint64_t n = strlen(files[i].header);
		uint8_t *at = calloc(1, 8 + n + files[i].data);
		memcpy(at, &n, 8);
		memcpy(at + 8, files[i].header, n);
		hd_arena_init(&arena, 0);
		enum hd_err err = hd_safetensors_read(&file, &arena, "t", at, 8 + n + files[i].data, &diag);
		CHECK(err == (files[i].says[0] ? HD_E_INPUT : HD_OK), "%s: %d %s", files[i].header, err,
			diag.text);
		CHECK(strstr(diag.text, files[i].says), "%s: %s", files[i].header, diag.text);
		hd_arena_finish(&arena);
		free(at);
	}
}

static void every_cut_and_every_wrong_length_is_refused(void **state)
{
	static struct bytes b;
	struct hd_arena arena;
	struct hd_safetensors file;

	(void)state;
	write_all(&b);
	hd_arena_init(&arena, 0);
	for (size_t len = 0; len < b.len; len++) {
		uint8_t *exact = malloc(len + 1);
		memcpy(exact, b.at, len);
		CHECK(hd_safetensors_read(&file, &arena, "t", exact, len, NULL) == HD_E_INPUT, "cut at %zu",
			len);
		free(exact);
		hd_arena_reset(&arena);
	}
	memset(b.at, 0xff, 8);
	assert_int_equal(hd_safetensors_read(&file, &arena, "t", b.at, b.len, NULL), HD_E_INPUT);
	hd_arena_finish(&arena);
}

static void a_failing_write_is_passed_on_wherever_it_fails(void **state)
{
	static struct bytes b;
	struct hd_arena arena;

	(void)state;
	write_all(&b);
	size_t whole = b.len;
	hd_arena_init(&arena, 0);
	for (uint64_t at = 1; at < whole; at++) {
		b = (struct bytes){ .fail_after = at };
		CHECK(hd_safetensors_write(tensors, NTENSORS, meta, 2, &arena, put, &b, NULL) == HD_E_IO,
			"at %llu", (unsigned long long)at);
		hd_arena_reset(&arena);
	}
	hd_arena_finish(&arena);
}

static void names_used_twice_or_reserved_are_refused_by_the_writer(void **state)
{
	static struct bytes b;
	const struct hd_st_tensor twice[] = { tensors[0], tensors[0] };
	struct hd_st_tensor reserved = tensors[0], wrong = tensors[0];
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	reserved.name = "__metadata__";
	wrong.len_bytes = 23;
	assert_int_equal(hd_safetensors_write(twice, 2, NULL, 0, &arena, put, &b, NULL), HD_E_BUG);
	assert_int_equal(hd_safetensors_write(&reserved, 1, NULL, 0, &arena, put, &b, NULL), HD_E_BUG);
	assert_int_equal(hd_safetensors_write(&wrong, 1, NULL, 0, &arena, put, &b, NULL), HD_E_BUG);
	hd_arena_finish(&arena);
}

/* The format's own library reads ours, and what it writes we read. */
static void the_reference_library_agrees(void **state)
{
	static const char script[] =
		"import sys, numpy as np\n"
		"try:\n  from safetensors.numpy import load_file, save_file; from safetensors import "
		"safe_open\n"
		"except Exception: sys.exit(77)\n"
		"t = load_file(sys.argv[1])\n"
		"assert t['w'].shape == (2, 3) and t['w'][1, 2] == 6 and t['w'][0, 2] == np.float32(3.5), "
		"t['w']\n"
		"assert t['flags'].tolist() == [True, False, True] and t['empty'].shape == (0, 5)\n"
		"assert t['a \"q\" \\u00e9'] == -2**63\n"
		"assert safe_open(sys.argv[1], 'np').metadata() == {'job': 'tiny', 'format': 'pt'}\n"
		"save_file({'w': t['w'], 'flags': t['flags'], 'h': np.arange(3, dtype=np.float16)}, "
		"sys.argv[2], {'by': 'python'})\n";
	static struct bytes b;
	const char *python = getenv("HEDDLE_PYTHON") ? getenv("HEDDLE_PYTHON") : "python3";
	char folder[] = "/tmp/hd_st_XXXXXX", ours[64], theirs[64], program[64], command[512];
	struct hd_arena arena;
	struct hd_safetensors file;
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(ours, sizeof ours, "%s/ours", folder);
	snprintf(theirs, sizeof theirs, "%s/theirs", folder);
	snprintf(program, sizeof program, "%s/t.py", folder);
	write_all(&b);
	FILE *out = fopen(ours, "wb"), *py = fopen(program, "wb");
	assert_true(out && py && fwrite(b.at, 1, b.len, out) == b.len && fputs(script, py) >= 0);
	fclose(out);
	fclose(py);
	snprintf(command, sizeof command, "%s %s %s %s 2>&1; echo \"status $?\"", python, program, ours,
		theirs);
	FILE *run = popen(command, "r");
	char said[4096] = "";
	assert_non_null(run);
	size_t len = fread(said, 1, sizeof said - 1, run);
	said[len] = '\0';
	pclose(run);
	bool absent = strstr(said, "status 77") || strstr(said, "status 127");
	if (!absent) {
		CHECK(strcmp(said, "status 0\n") == 0, "%s", said);
		FILE *in = fopen(theirs, "rb");
		assert_non_null(in);
		b.len = fread(b.at, 1, sizeof b.at, in);
		fclose(in);
		hd_arena_init(&arena, 0);
		CHECK(hd_safetensors_read(&file, &arena, "theirs", b.at, b.len, &diag) == HD_OK, "%s",
			diag.text);
		assert_int_equal(file.ntensors, 3);
		assert_memory_equal(hd_safetensors_find(&file, "w")->at, weights, 24);
		assert_int_equal(hd_safetensors_find(&file, "h")->dtype, HD_ST_F16);
		assert_string_equal(file.meta[0].value, "python");
		hd_arena_finish(&arena);
	}
	remove(ours);
	remove(theirs);
	remove(program);
	remove(folder);
	if (absent)
		SKIP("no Python package safetensors: set HEDDLE_PYTHON to an interpreter that has it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(the_bytes_are_the_format_s),
		cmocka_unit_test(bad_files_are_refused_and_say_why),
		cmocka_unit_test(every_cut_and_every_wrong_length_is_refused),
		cmocka_unit_test(a_failing_write_is_passed_on_wherever_it_fails),
		cmocka_unit_test(names_used_twice_or_reserved_are_refused_by_the_writer),
		cmocka_unit_test(the_reference_library_agrees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
