#include "data/jsonl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/data_disk.h"

static struct hd_data_spec spec_of(void) { return (struct hd_data_spec){ .kind = "jsonl", .path = "d/t.jsonl",
	.train = 1, .pad = -1, .seed = 7 }; }

/* ---- the parser ---- */

static size_t print_cell(const struct hd_row_cell *c, char *out, size_t cap)
{
	size_t at = 0;

	if (c->kind == HD_ROW_NONE)
		return (size_t)snprintf(out, cap, "-");
	if (c->kind == HD_ROW_TEXT)
		return (size_t)snprintf(out, cap, "'%s'%zu", c->text, c->len);
	for (uint32_t d = 0; d < c->rank; d++)
		at += (size_t)snprintf(out + at, cap - at, "[%" PRId64 "]", c->dim[d]);
	for (uint64_t i = 0; i < c->n; i++)
		at += c->kind == HD_ROW_WHOLE ?
			(size_t)snprintf(out + at, cap - at, "%s%" PRId64, i ? "," : "", c->number[i].whole) :
			(size_t)snprintf(out + at, cap - at, "%s%.17gr", i ? "," : "", c->number[i].real);
	return at;
}

/* The cells "a" and "a.b" of all lines, parted by '|', lines by '/'; or the message. */
static const char *cells_of(const char *text, size_t len)
{
	static const char *const wanted[] = { "a", "a.b" };
	static char out[1024];
	struct hd_row_cell cell[2];
	struct hd_diag diag = { "" };
	struct hd_jsonl j;
	size_t at = 0;

	hd_jsonl_init(&j, (const uint8_t *)text, len, "f", wanted, 2);
	out[0] = 0;
	while (hd_jsonl_more(&j)) {
		if (hd_jsonl_next(&j, cell, &diag)) {
			snprintf(out, sizeof out, "%s", diag.text);
			break;
		}
		at += print_cell(&cell[0], out + at, sizeof out - at);
		at += (size_t)snprintf(out + at, sizeof out - at, "|");
		at += print_cell(&cell[1], out + at, sizeof out - at);
		at += (size_t)snprintf(out + at, sizeof out - at, "/");
	}
	hd_jsonl_finish(&j);
	return out;
}

struct line_case { const char *text, *want; };

static void check_lines(const struct line_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *got = cells_of(cases[i].text, strlen(cases[i].text));
		CHECK(strstr(got, cases[i].want) == got && (cases[i].want[0] || !got[0]),
			"case %zu: '%s', not '%s'",
			i, got, cases[i].want);
	}
}

static void cells_are_numbers_texts_and_lists(void **state)
{
	static const struct line_case cases[] = {
		{ "", "" }, { " \t\r\n\n", "" }, { "{}", "-|-/" }, { "\xef\xbb\xbf{\"a\":1}\n", "1|-/" },
		{ "{\"a\": -7}\r\n\r\n{\"a\":0}", "-7|-/0|-/" }, { "{\"a\":1.5e2}", "150r|-/" },
		{ "{\"a\":9223372036854775807}", "9223372036854775807|-/" },
		{ "{\"a\":9223372036854775808}", "9.2233720368547758e+18r|-/" },
		{ "{\"a\":true,\"b\":{\"c\":[{\"a\":5}]}}", "1|-/" }, { "{\"a\":null}", "-|-/" },
		{ "{\"a\":[]}", "[0]|-/" }, { "{\"a\":[1,2.5,false]}", "[3]1r,2.5r,0r|-/" },
		{ "{\"a\":[[1,2],[3,4],[5,6]]}", "[3][2]1,2,3,4,5,6|-/" },
		{ "{\"a\":[[],[]]}", "[2][0]|-/" }, { "{\"a.b\":3}", "-|3/" }, { "{\"x\":[{\"a\":1}],\"a\":2}", "2|-/" },
		{ "{\"a\":\"\\u0041\\ud83d\\ude00\\n\\\"\\/\"}", "'A\xf0\x9f\x98\x80\n\"/'8|-/" },
		{ "{\"a\":\"\xc3\xa9\"}", "'\xc3\xa9'2|-/" }, { "{\"\\u0061\":4}", "4|-/" }, { "{\"\":{\"a\":1}}", "-|-/" },
	};

	(void)state;
	check_lines(cases, sizeof cases / sizeof *cases);
	CHECK(!strcmp(cells_of("{\"a\":\"x\\u0000y\"}", 16), "'x'3|-/"), "a zero byte");
}

static void a_path_goes_into_objects(void **state)
{
	static const char *const wanted[] = { "a.b.c", "z" };
	static const char text[] =
		"{\"a\":{\"c\":1,\"b\":{\"b\":2,\"c\":[3]}},\"b\":{\"c\":4},\"z\":\"t\",\"y\":[{\"a\":{}}]}";
	struct hd_row_cell cell[2];
	struct hd_diag diag = { "" };
	struct hd_jsonl j;

	(void)state;
	hd_jsonl_init(&j, (const uint8_t *)text, sizeof text - 1, "f", wanted, 2);
	assert_true(hd_jsonl_more(&j));
	CHECK(hd_jsonl_next(&j, cell, &diag) == HD_OK, "%s", diag.text);
	assert_true(cell[0].n == 1 && cell[0].rank == 1 && cell[0].number[0].whole == 3);
	assert_true(cell[1].kind == HD_ROW_TEXT && !strcmp(cell[1].text, "t"));
	assert_false(hd_jsonl_more(&j));
	hd_jsonl_finish(&j);
}

static void what_is_malformed_is_named_by_line_and_byte(void **state)
{
	static const struct line_case cases[] = {
		{ "{}\n[1]", "f:2:1: a line is an object" }, { "{\"a\":1} {}", "f:1:9: more behind the object" },
		{ "{\"a\":1\n}", "f:1:7: the line ends inside an object" }, { "{\"a\":[1", "f:1:8: the line ends inside a list" },
		{ "{\"a\":", "f:1:6: the line ends where a value" }, { "{\"a\" 1}", "f:1:6: a colon is missing" },
		{ "{a:1}", "f:1:2: a member begins with its name" }, { "{\"a\":1,}", "f:1:8: a member begins" },
		{ "{\"a\":[1,]}", "f:1:9: this is no value" }, { "{\"a\":[1 2]}", "f:1:9: neither a comma" },
		{ "{\"a\":01}", "f:1:6: this is no value" }, { "{\"a\":1.}", "f:1:6: this is no value" }, { "{\"a\":NaN}", "f:1:6: this is no value" },
		{ "{\"q\":tru}", "f:1:6: this is no value" }, { "{\"a\":1e999}", "f:1:6: 1e999 is larger" },
		{ "{\"a\":\"x\n\"}", "f:1:6: the text that opens here" }, { "{\"a\":\"\t\"}", "f:1:7: a control character (0x09)" },
		{ "{\"a\":\"\\x\"}", "f:1:7: a backslash" }, { "{\"a\":\"\\u12g4\"}", "f:1:11: \\u wants four" },
		{ "{\"a\":\"\\ud800\"}", "f:1:7: half of a surrogate" }, { "{\"a\":\"\\ud800\\u0041\"}", "f:1:7: half of a surrogate" },
		{ "{\"a\":\"\\udc00\"}", "f:1:7: half of a surrogate" }, { "{\"q\":\"\xff\"}", "f:1:7: 0xff is no UTF-8" },
		{ "{\"a\":1,\"a\":2}", "f:1:8: a second member \"a\"" }, { "{\"a\":{\"b\":1}}", "f:1:6: \"a\" is an object: name a member of it" },
		{ "{\"a\":[{}]}", "f:1:7: \"a\" holds an object" }, { "{\"a\":[\"x\"]}", "f:1:7: a text in the list" },
		{ "{\"a\":[null]}", "f:1:7: null in the list" }, { "{\"a\":[1,[2]]}", "f:1:9: \"a\" has numbers and lists" },
		{ "{\"a\":[[],1]}", "f:1:10: \"a\" has numbers and lists" }, { "{\"a\":[[1],[2,3]]}", "f:1:15: a list of another length" },
		{ "{\"a\":[[1],[]]}", "f:1:12: a list of another length" },
		{ "{\"a\":[[[[[[[[1]]]]]]]]}", "f:1:13: \"a\" has more than 7 lists" },
	};
	char deep[200] = "{\"q\":";

	(void)state;
	check_lines(cases, sizeof cases / sizeof *cases);
	memset(deep + 5, '[', 64);
	CHECK(strstr(cells_of(deep, 69), "f:1:69: more than 64 brackets"), "%s", cells_of(deep, 69));
	CHECK(strstr(cells_of("{\"a\":\0}", 7), "f:1:6: this is no value"), "a zero byte");
}

/* ---- the set ---- */

static void rows_are_numbers_and_a_class(void **state)
{
	static const char *const columns[] = { "m.v", "f" }, *const classes[] = { "no", "yes" };
	struct hd_data_spec spec = spec_of();
	float x[3];
	int32_t y;

	(void)state;
	put_text(&sim.fs, "d/t.jsonl", "{\"label\": \"yes\", \"f\": [1, 2.5], \"id\": \"q\", \"m\": {\"v\": "
		"3}}\n"
		"{\"f\": [4, 5], \"m\": {\"v\": true}, \"label\": \"no\"}\n");
	spec.column = columns;
	spec.ncolumns = 2;
	spec.class = classes;
	spec.nclasses = 2;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->count == 2 && set->field[0].rank == 1 && set->field[0].dim[0] == 3 &&
		set->field[1].rank == 0);
	CHECK(strstr(set->about, "2 rows of 2 columns, d/t.jsonl"), "%s", set->about);
	read_sample(set, 0, 0, x, &y);
	assert_true(x[0] == 3.0f && x[1] == 1.0f && x[2] == 2.5f && y == 1);
	read_sample(set, 0, 1, x, &y);
	assert_true(x[0] == 1.0f && x[1] == 4.0f && x[2] == 5.0f && y == 0);
	hd_dataset_destroy(set);
}

/* The same rows in one file, in two, and gzipped, are one set. */
static void a_set_is_the_same_in_files_and_gzipped(void **state)
{
	static const char text[] = "{\"x\":[[1,2],[3,4]],\"label\":1}\n{\"x\":[[5,6],[7,8]],\"label\":0}\n";
	struct hd_data_spec spec = spec_of();
	uint8_t packed[256];
	float x[4];
	int32_t y;

	(void)state;
	put_text(&sim.fs, "d/t.jsonl", text);
	struct hd_dataset *one = open_set(&sim.fs, spec);
	assert_true(one->field[0].rank == 2 && one->field[0].dim[0] == 2 && one->field[0].dim[1] == 2);
	put_file(&sim.fs, "d/a0.jsonl", text, 30);
	put_file(&sim.fs, "d/a1.jsonl.gz", packed, make_gzip(packed, (const uint8_t *)text + 30,
		sizeof text - 31));
	spec.path = "d/a*";
	struct hd_dataset *two = open_set(&sim.fs, spec);
	assert_true(two->count == 2 && hd_hash_same(one->hash, two->hash));
	read_sample(two, 0, 1, x, &y);
	assert_true(x[0] == 5.0f && x[3] == 8.0f && y == 0);
	hd_dataset_destroy(one);
	hd_dataset_destroy(two);
}

static void texts_are_bytes_with_a_class_or_a_next_one(void **state)
{
	static const char *const pair[] = { "text", "more" };
	struct hd_data_spec spec = spec_of();
	int32_t x[4], y[4];

	(void)state;
	put_text(&sim.fs, "d/t.jsonl",
		"{\"text\":\"ab\",\"more\":\"c\",\"label\":2}\n"
		"{\"text\":\"abcdef\",\"more\":\"\",\"label\":0}\n");
	spec.context = 4;
	spec.tokens = 257;
	spec.pad = 256;
	spec.one_label = true;
	spec.column = pair;
	spec.ncolumns = 1;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	read_sample(set, 0, 0, x, y);
	assert_true(x[0] == 'a' && x[1] == 'b' && x[2] == 256 && x[3] == 256 && y[0] == 2);
	CHECK(strstr(set->about, "1 of them cut at 4"), "%s", set->about);
	hd_dataset_destroy(set);
	spec.ncolumns = 2;
	set = open_set(&sim.fs, spec);
	read_sample(set, 0, 0, x, y);
	assert_true(x[2] == '\n' && x[3] == 'c');
	hd_dataset_destroy(set);
	spec.one_label = false;
	spec.ncolumns = 1;
	spec.pad = -1;
	set = open_set(&sim.fs, spec);
	assert_true(set->field[1].rank == 1 && set->field[1].dim[0] == 4);
	read_sample(set, 0, 0, x, y);
	assert_true(x[1] == 'b' && x[2] == 0 && y[0] == 'b' && y[1] == -1 && y[2] == -1 && y[3] == -1);
	read_sample(set, 0, 1, x, y);
	assert_true(x[3] == 'd' && y[0] == 'b' && y[2] == 'd' && y[3] == 'e');
	hd_dataset_destroy(set);
}

static void tokens_may_have_labels_of_their_own(void **state)
{
	static const char *const columns[] = { "ids" };
	struct hd_data_spec spec = spec_of();
	int32_t x[3], y[3];

	(void)state;
	put_text(&sim.fs, "d/t.jsonl",
		"{\"ids\":[4,5],\"labels\":[-100,1]}\n{\"ids\":[6,7,8,9],\"labels\":[0,-1,1,1]}\n");
	spec.context = 3;
	spec.tokens = 10;
	spec.classes = 2;
	spec.column = columns;
	spec.ncolumns = 1;
	spec.label = "labels";
	struct hd_dataset *set = open_set(&sim.fs, spec);
	read_sample(set, 0, 0, x, y);
	assert_true(x[0] == 4 && x[1] == 5 && x[2] == 0 && y[0] == -1 && y[1] == 1 && y[2] == -1);
	read_sample(set, 0, 1, x, y);
	assert_true(x[2] == 8 && y[0] == 0 && y[1] == -1 && y[2] == 1);
	hd_dataset_destroy(set);
}

static void targets_are_numbers(void **state)
{
	struct hd_data_spec spec = spec_of();
	float x[1], y[2];

	(void)state;
	put_text(&sim.fs, "d/t.jsonl", "{\"a\":1,\"y\":[0.5,2]}\n");
	spec.float_target = true;
	spec.classes = 2;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[1].dtype == HD_F32 && set->field[1].dim[0] == 2);
	read_sample(set, 0, 0, x, y);
	assert_true(x[0] == 1.0f && y[0] == 0.5f && y[1] == 2.0f);
	hd_dataset_destroy(set);
	spec.classes = 3;
	check_refused(&sim.fs, spec, HD_E_INPUT, "d/t.jsonl:1:8: \"y\": 2 numbers, the model gives 3");
}

static void what_does_not_fit_is_refused_with_its_place(void **state)
{
	static const struct { const char *text, *says; uint32_t context,
		classes; bool one_label; } cases[] = {
		{ "{\"x\":1,\"label\":0}\n{\"x\":\"t\",\"label\":0}", "d/t.jsonl:2:2: \"x\": a text where the first row has numbers", 0, 0, false },
		{ "{\"x\":\"t\",\"label\":0}", "t.jsonl:1:2: \"x\": a text, and the model reads numbers", 0, 0, false },
		{ "{\"x\":[1],\"label\":0}\n\n{\"x\":[1,2],\"label\":0}", "t.jsonl:3:2: \"x\": the shape [2], that of the first row is [1]", 0, 0, false },
		{ "{\"x\":1,\"label\":0}\n{\"label\":0}", "t.jsonl:2: \"x\": no value here: fill it in, or leave it out of data.columns", 0, 0, false },
		{ "{\"x\":1,\"label\":null}", "t.jsonl:1:8: \"label\": no value here", 0, 0, false },
		{ "{\"x\":1e39,\"label\":0}", "\"x\": 1e+39 is not finite, or too large", 0, 0, false },
		{ "{\"x\":1,\"label\":3}", "\"label\": 3 is no class: they are 0 to 2", 0, 3, false },
		{ "{\"x\":1,\"label\":0.5}", "\"label\": a label is the number of a class", 0, 3, false },
		{ "{\"x\":1,\"label\":\"no\"}", "\"label\": \"no\" is a text: name the classes", 0, 3, false },
		{ "{\"label\":1}", "d/t.jsonl has nothing but the label", 0, 0, false }, { "\n \n", "has blank lines alone", 0, 0, false },
		{ "{\"x\":\"abc\",\"label\":0}", "\"x\": 3 tokens, the model reads 4: name a token to fill it up", 4, 0, true },
		{ "{\"x\":[1,300],\"label\":0}", "\"x\": token 2 is 300, the model knows tokens from 0 to 255", 4, 0, true },
		{ "{\"x\":[0.5],\"label\":0}", "\"x\": a number with a fraction is no token", 4, 0, true },
		{ "{\"x\":3,\"z\":4,\"label\":0}", "has 2 numbers for \"x\", the model reads 4 tokens", 4, 0, true },
		{ "{\"x\":1,\"label\":[[[[[[[1]]]]]]]}", "a sample's \"y\" would have the shape [1,1,1,1,1,1,1]: at most 6 extents", 0, 0, false },
		{ "{\"x\":1,\"x\":2,\"label\":0}", "d/t.jsonl: two columns are called \"x\"", 0, 0, false },
		{ "{\"x\":[[1]],\"label\":0}", "\"x\": lists in a list are no tokens", 4, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_data_spec spec = spec_of();
		spec.context = cases[i].context;
		spec.tokens = spec.context ? 256 : 0;
		spec.classes = cases[i].classes;
		spec.one_label = cases[i].one_label;
		put_text(&sim.fs, "d/t.jsonl", cases[i].text);
		check_refused(&sim.fs, spec, HD_E_INPUT, cases[i].says);
	}
	static const char *const columns[] = { "txt" };
	struct hd_data_spec spec = spec_of();
	spec.column = columns;
	spec.ncolumns = 1;
	put_text(&sim.fs, "d/t.jsonl", "{\"text\":1,\"label\":0}");
	check_refused(&sim.fs, spec, HD_E_INPUT, "there is no \"txt\", which data.columns names; did you "
		"mean text?");
}

/* Of more members than a row may have those of use are named. */
static void one_of_many_members_is_found(void **state)
{
	static const char *const columns[] = { "m390" };
	static char text[1 << 13];
	struct hd_data_spec spec = spec_of();
	size_t n = 0;
	float x;
	int32_t y;

	(void)state;
	for (int i = 0; i < 400; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s\"m%d\":%d", i ? "," : "{", i, i);
	snprintf(text + n, sizeof text - n, "}\n");
	put_text(&sim.fs, "d/t.jsonl", text);
	check_refused(&sim.fs, spec, HD_E_INPUT, "more than 255 columns: name those of use in data.columns");
	spec.column = columns;
	spec.ncolumns = 1;
	spec.label = "m380";
	struct hd_dataset *set = open_set(&sim.fs, spec);
	read_sample(set, 0, 0, &x, &y);
	assert_true(x == 390.0f && y == 380);
	hd_dataset_destroy(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_numbers_texts_and_lists),
		cmocka_unit_test(a_path_goes_into_objects),
		cmocka_unit_test(what_is_malformed_is_named_by_line_and_byte),
		ON_DISK(rows_are_numbers_and_a_class),
		ON_DISK(a_set_is_the_same_in_files_and_gzipped),
		ON_DISK(texts_are_bytes_with_a_class_or_a_next_one),
		ON_DISK(tokens_may_have_labels_of_their_own),
		ON_DISK(one_of_many_members_is_found),
		ON_DISK(targets_are_numbers),
		ON_DISK(what_does_not_fit_is_refused_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
