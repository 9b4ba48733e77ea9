#include "data/csv.h"

#include <math.h>
#include <stdlib.h>

#include "tests/data_disk.h"

static struct hd_data_spec spec_of(void) { return (struct hd_data_spec){ .kind = "csv", .path = "d/t.csv",
	.train = 1, .seed = 7 }; }

/* All fields of a text, parted by '|', records by '/'; or the message. */
static const char *fields_of(const char *text, size_t len)
{
	static char out[640];
	struct hd_diag diag = { "" };
	struct hd_csv csv;
	size_t at = 0;

	hd_csv_init(&csv, (const uint8_t *)text, len, "f");
	out[0] = 0;
	while (hd_csv_more(&csv)) {
		if (hd_csv_next(&csv, &diag)) {
			snprintf(out, sizeof out, "%s", diag.text);
			break;
		}
		at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", csv.text, csv.last ? "/" : "|");
	}
	return out;
}

static void fields_are_those_of_the_rfc(void **state)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "", "" }, { "a", "a/" }, { "a,b\n", "a|b/" }, { "a,b\r\nc,d", "a|b/c|d/" }, { "a,\n", "a|/" }, { ",\n", "|/" }, { "\n", "/" },
		{ "a\n\nb\n", "a//b/" }, { " a , b\n", " a | b/" }, { "\"a,b\",c\n", "a,b|c/" }, { "\"a\"\"b\"\n", "a\"b/" }, { "\"\",x\n", "|x/" },
		{ "\"a\r\nb\"\r\nc\r\n", "a\r\nb/c/" }, { "\"\"\"\"\n", "\"/" }, { "\xef\xbb\xbf" "a,b\n", "a|b/" }, { "\"a\"", "a/" },
		{ "a\"b\n", "f:1:2: a quote inside a field" }, { "x,\"a\" b\n", "f:1:6: text after the closing quote" },
		{ "x\ny,\"a\nb", "f:2:3: the quote that opens here is never closed" }, { "a\rb", "f:1:2: a carriage return without" },
		{ "a,b\r", "f:1:4: a carriage return without" }, { "\"a\nbc\"x\n", "f:2:4: text after" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *got = fields_of(cases[i].text, strlen(cases[i].text));
		CHECK(strncmp(got, cases[i].want, strlen(cases[i].want)) == 0 &&
			(cases[i].want[0] || !got[0]), "case %zu: '%s'", i, got);
	}
	CHECK(strstr(fields_of("a,\0b\n", 5), "f:1:3: a NUL byte"), "%s", fields_of("a,\0b\n", 5));
	CHECK(strstr(fields_of("\"\0\"", 3), "f:1:2: a NUL byte"), "quoted");
}

static void a_field_has_a_limit(void **state)
{
	char *text = malloc(HD_CSV_FIELD + 10);
	struct hd_diag diag = { "" };
	struct hd_csv csv;

	(void)state;
	assert_non_null(text);
	for (size_t n = HD_CSV_FIELD; n <= HD_CSV_FIELD + 1; n++) {
		memset(text, 'x', n);
		hd_csv_init(&csv, (const uint8_t *)text, n, "f");
		assert_int_equal(hd_csv_next(&csv, &diag), n > HD_CSV_FIELD ? HD_E_INPUT : HD_OK);
	}
	CHECK(strstr(diag.text, "f:1:4097: the field is longer"), "%s", diag.text);
	free(text);
}

/* The last column is the label, the others are "x" in the order of the file. */
static void a_table_is_numbers_and_a_label(void **state)
{
	float x[2];
	int32_t y;

	(void)state;
	put_text(&sim.fs, "d/t.csv", "wide,\"long, really\",kind\r\n1.5,-2e3,0\r\n\"7\",0.25,2\r\n");
	struct hd_dataset *set = open_set(&sim.fs, spec_of());
	assert_true(set->count == 2 && set->split[0].count == 2 && set->nsplits == 1);
	assert_true(set->field[0].rank == 1 && set->field[0].dim[0] == 2 && set->field[0].dtype == HD_F32);
	assert_true(set->field[1].rank == 0 && set->field[1].dtype == HD_I32);
	CHECK(strstr(set->about, "2 records of 2 columns, d/t.csv"), "%s", set->about);
	read_sample(set, 0, 0, x, &y);
	assert_true(x[0] == 1.5f && x[1] == -2000.0f && y == 0);
	read_sample(set, 0, 1, x, &y);
	assert_true(x[0] == 7.0f && x[1] == 0.25f && y == 2);
	hd_dataset_destroy(set);
}

static void columns_and_label_are_chosen_by_name(void **state)
{
	static const char *const columns[] = { "c", "a" }, *const classes[] = { "no", "yes", "may, be" };
	struct hd_data_spec spec = spec_of();
	float x[2];
	int32_t y;

	(void)state;
	put_text(&sim.fs, "d/t.csv",
		"a,tag,label,b,c\n1,Ann,yes,,3\n4,\"Bo\nb\",no,oh,6\n7,,\"may, be\",-,9\n");
	spec.column = columns;
	spec.ncolumns = 2;
	spec.label = "label";
	spec.class = classes;
	spec.nclasses = 3;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	static const struct { float x[2]; int32_t y; } want[] = { { { 3, 1 }, 1 }, { { 6, 4 }, 0 },
		{ { 9, 7 }, 2 } };
	for (uint64_t i = 0; i < 3; i++) {
		read_sample(set, 0, i, x, &y);
		CHECK(memcmp(x, want[i].x, sizeof x) == 0 && y == want[i].y, "record %d", (int)i);
	}
	hd_dataset_destroy(set);
	spec.nclasses = 2;
	check_refused(&sim.fs, spec, HD_E_INPUT, "d/t.csv:5:4: \"may, be\" is none of data.classes");
	spec.column = (const char *const[]){ "c", "c" };
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.columns names \"c\", which it names already");
	spec.column = (const char *const[]){ "c", "label" };
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.columns names \"label\", which is the label");
	spec.column = (const char *const[]){ "c", "labl" };
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/t.csv: there is no column \"labl\", which data.columns names; did you mean label?");
	spec.label = "kind";
	check_refused(&sim.fs, spec, HD_E_INPUT, "there is no column \"kind\", which data.label names");
}

static void a_loss_on_numbers_gets_numbers(void **state)
{
	struct hd_data_spec spec = spec_of();
	float x, y;

	(void)state;
	put_text(&sim.fs, "d/t.csv", "a,y\n1,2.5\n3,-4\n");
	spec.float_target = true;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[1].dtype == HD_F32 && set->field[1].rank == 1 && set->field[1].dim[0] == 1);
	read_sample(set, 0, 1, &x, &y);
	assert_true(x == 3 && y == -4);
	hd_dataset_destroy(set);
	spec.classes = 3;
	check_refused(&sim.fs, spec, HD_E_INPUT, "the model gives 3 numbers, the label of a csv is one");
	spec.classes = 1;
	spec.class = (const char *const[]){ "a" };
	spec.nclasses = 1;
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.classes names classes, the loss wants numbers");
	spec.float_target = false;
	spec.nclasses = 0;
	check_refused(&sim.fs, spec, HD_E_INPUT, "d/t.csv:2:3: ");
}

static void what_is_wrong_is_named_by_line_and_column(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "a,y\n1,0\n,1\n", "d/t.csv:3:1: column \"a\" has no value here" },
		{ "a,y\n1,0\n2,\n", "d/t.csv:3:3: column \"y\" has no value here: fill it in" },
		{ "a,y\n1,0\nx,1\n", "d/t.csv:3:1: column \"a\": \"x\" is not a number" },
		{ "a,y\n 1,0\n", "d/t.csv:2:1: column \"a\": " }, { "a,y\nnan,0\n", "d/t.csv:2:1: column \"a\": " },
		{ "a,y\n1e39,0\n", "d/t.csv:2:1: column \"a\": 1e39 is not between" }, { "a,y\n1,-1\n", "d/t.csv:2:3: " },
		{ "a,y\n1,1.5\n", "d/t.csv:2:3: " }, { "a,y\n1,3\n", "d/t.csv:2:3: " },
		{ "a,y\n1,0\n2\n", "d/t.csv:3:1: the record ends after 1 of 2 fields" },
		{ "a,y\n1,0,5\n", "d/t.csv:2:5: a field beyond the 2 columns" }, { "a,y\n\n", "d/t.csv:2:1: the record ends after 1 of 2 fields" },
		{ "a,y\n", "d/t.csv has a header and no record" }, { "y\n1\n", "d/t.csv has no column but the label" },
		{ "a,,y\n1,2,0\n", "d/t.csv:1:3: a column has no name" }, { "a,y\n\"1\n", "d/t.csv:2:1: the quote that opens" },
	};
	struct hd_data_spec spec = spec_of();

	(void)state;
	spec.classes = 3;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put_text(&sim.fs, "d/t.csv", cases[i].text);
		check_refused(&sim.fs, spec, HD_E_INPUT, cases[i].says);
	}
	put_text(&sim.fs, "d/t.csv", "a,a,y\n1,2,0\n");
	spec.column = (const char *const[]){ "a" };
	spec.ncolumns = 1;
	check_refused(&sim.fs, spec, HD_E_INPUT, "2 columns are called \"a\"");
	spec = spec_of();
	spec.rank = 1;
	spec.dim[0] = 4;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"samples have the shape [2] (2 numbers), the model takes [4] (4)");
	spec.path = NULL;
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.kind csv needs a file");
	spec = spec_of();
	spec.classes = 1;
	spec.class = (const char *const[]){ "a", "b" };
	spec.nclasses = 2;
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.classes has 2 names, the model 1 classes");
}

static struct hd_data_spec text_spec(void)
{
	struct hd_data_spec spec = spec_of();

	spec.context = 4;
	spec.rank = 1;
	spec.dim[0] = 4;
	spec.tokens = 257;
	spec.classes = 2;
	spec.pad = 256;
	spec.one_label = true;
	return spec;
}

static void a_text_is_its_bytes_then_pads_and_long_ones_are_cut(void **state)
{
	static const int32_t want[3][4] = { { 'a', 'b', 256, 256 }, { ',', ' ', 0xc3, 0xa4 },
		{ 'c', 'd', 'e', 'f' } };
	struct hd_data_spec spec = text_spec();
	int32_t x[4], y;

	(void)state;
	put_text(&sim.fs, "d/t.csv", "text,y\nab,1\n\", \xc3\xa4\",0\ncdefg,1\n");
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[0].dtype == HD_I32 && set->field[0].rank == 1 && set->field[0].dim[0] == 4 &&
		set->field[1].rank == 0);
	CHECK(strstr(set->about, "3 texts, 1 of them cut at 4 bytes"), "%s", set->about);
	for (uint64_t i = 0; i < 3; i++) {
		read_sample(set, 0, i, x, &y);
		CHECK(!memcmp(x, want[i], sizeof x) && y == (i != 1), "text %u", (unsigned)i);
	}
	hd_dataset_destroy(set);
	spec.pad = -1;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/t.csv:2:1: a text of 2 bytes, the model reads 4 tokens: name a token to fill it up");
	spec.pad = 'b';
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/t.csv:2:1: byte 2 of the text is 98, which the model takes for the end of it");
	spec.pad = 0;
	spec.tokens = 128;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/t.csv:3:1: byte 3 of the text is 195, the model knows tokens from 0 to 127");
	put_text(&sim.fs, "d/t.csv", "text,y\nab,1\n\"\",0\n");
	check_refused(&sim.fs, text_spec(), HD_E_INPUT, "d/t.csv:3:1: column \"text\" has no value here");
}

static void columns_of_token_numbers_are_a_sample_too(void **state)
{
	static const int32_t want[4] = { 256, 0, 7, 3 };
	struct hd_data_spec spec = text_spec();
	int32_t x[4], y;

	(void)state;
	put_text(&sim.fs, "d/t.csv", "a,b,c,d,y\n256,0,7,3,1\n");
	struct hd_dataset *set = open_set(&sim.fs, spec);
	read_sample(set, 0, 0, x, &y);
	assert_true(!memcmp(x, want, sizeof x) && y == 1);
	hd_dataset_destroy(set);
	spec.tokens = 256;
	check_refused(&sim.fs, spec, HD_E_INPUT, "d/t.csv:2:1: column \"a\": 256 is not between 0 and 255");
	spec.column = (const char *const[]){ "a", "b" };
	spec.ncolumns = 2;
	check_refused(&sim.fs, spec, HD_E_INPUT, "d/t.csv has 2 columns for \"x\", the model reads 4 tokens");
	put_text(&sim.fs, "d/t.csv", "a,b,c,d,y\n1,0,7.5,3,1\n");
	check_refused(&sim.fs, text_spec(), HD_E_INPUT, "d/t.csv:2:5: column \"c\": ");
}

static void files_of_one_table_have_one_header(void **state)
{
	struct hd_data_spec spec = spec_of();
	float x;
	int32_t y;

	(void)state;
	spec.path = "d/*.csv";
	put_text(&sim.fs, "d/a.csv", "a,y\n1,0\n2,1");
	put_text(&sim.fs, "d/b.csv", "a,y\n3,2\n");
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_int_equal(set->count, 3);
	read_sample(set, 0, 2, &x, &y);
	assert_true(x == 3 && y == 2);
	hd_dataset_destroy(set);
	put_text(&sim.fs, "d/b.csv", "a,z\n3,2\n");
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/b.csv:1:3: column 2 is called \"z\" here, \"y\" in d/a.csv");
	put_text(&sim.fs, "d/b.csv", "a\n3\n");
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"d/b.csv:1:1: the header ends here, that of d/a.csv has a column \"y\" more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_those_of_the_rfc),
		cmocka_unit_test(a_field_has_a_limit),
		ON_DISK(a_table_is_numbers_and_a_label),
		ON_DISK(columns_and_label_are_chosen_by_name),
		ON_DISK(a_loss_on_numbers_gets_numbers),
		ON_DISK(what_is_wrong_is_named_by_line_and_column),
		ON_DISK(a_text_is_its_bytes_then_pads_and_long_ones_are_cut),
		ON_DISK(columns_of_token_numbers_are_a_sample_too),
		ON_DISK(files_of_one_table_have_one_header),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
