#include "data/texts.h"

#include "data/augment.h"
#include "tests/data_disk.h"

enum { T = 6 };

#define TOKENIZER(padding) \
	"{\"version\":\"1.0\",\"truncation\":null,\"padding\":" padding ",\"added_tokens\":[]," \
	"\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}," \
	"\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]}," \
	"\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2," \
	"\"[SEP]\":3,\"a\":4,\"b\":5,\"c\":6},\"unk_token\":\"[UNK]\"}}"
#define LEFT "{\"strategy\":{\"Fixed\":9},\"direction\":\"Left\",\"pad_to_multiple_of\":null,\"pad_id\":0," \
	"\"pad_type_id\":0,\"pad_token\":\"[PAD]\"}"

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_text(&sim.fs, "t.csv", "p,q,label\na b,c,1\nx,c b a b,0\n\"c a b c a b\",a,1\n");
	put_text(&sim.fs, "t.jsonl",
		"{\"p\":\"a b\",\"q\":\"c\",\"label\":1}\n{\"p\":\"x\",\"q\":\"c b a b\","
		"\"label\":0}\n{\"p\":\"c a b c a b\",\"q\":\"a\",\"label\":1}\n");
	put_text(&sim.fs, "tok.json", TOKENIZER("null"));
	put_text(&sim.fs, "left.json", TOKENIZER(LEFT));
	return 0;
}

static const struct hd_data_want wants[] = {
	{ .name = "attention_mask", .dtype = HD_I32, .rank = 1, .dim = { T } },
	{ .name = "token_type_ids", .dtype = HD_I32, .rank = 1, .dim = { T }, .bound = 2 },
};
static const char *const columns[] = { "p", "q" };

static struct hd_data_spec spec_of(const char *kind, const char *path, const char *tokenizer,
	uint32_t ncolumns)
{
	return (struct hd_data_spec){ .kind = kind, .path = path, .classes = 2, .train = 1, .context = T,
		.rank = 1, .dim = { T }, .pad = -1, .one_label = true, .tokens = 7, .want = wants, .nwant = 2,
		.tokenizer = tokenizer, .column = columns, .ncolumns = ncolumns };
}

struct row { int32_t x[T], y, seen[T], kind[T]; };

static void check_rows(struct hd_data_spec spec, const struct row *rows)
{
	struct hd_dataset *set = open_set(&sim.fs, spec);

	for (uint64_t i = 0; i < 3; i++) {
		struct row has;
		struct hd_diag diag = { "" };
		void *out[HD_MAX_FIELDS] = { has.x, &has.y, has.seen, has.kind };
		memset(&has, 0x55, sizeof has);
		CHECK(hd_dataset_read(set, 0, i, HD_NO_EPOCH, out, &diag) == HD_OK, "%s", diag.text);
		CHECK(!memcmp(&has, &rows[i], sizeof has), "%s, %s, row %d: x %d %d %d %d %d %d", spec.kind,
			spec.tokenizer, (int)i, has.x[0], has.x[1], has.x[2], has.x[3], has.x[4], has.x[5]);
	}
	hd_dataset_destroy(set);
}

static const char *const kinds[] = { "csv", "jsonl" }, *const paths[] = { "t.csv", "t.jsonl" };

static void a_text_is_cut_and_filled_up(void **state)
{
	static const struct row right[] = {
		{ { 2, 4, 5, 3, 0, 0 }, 1, { 1, 1, 1, 1 }, { 0 } }, { { 2, 1, 3, 0, 0, 0 }, 0, { 1, 1, 1 }, { 0 } },
		{ { 2, 6, 4, 5, 6, 3 }, 1, { 1, 1, 1, 1, 1, 1 }, { 0 } },
	}, left[] = {
		{ { 0, 0, 2, 4, 5, 3 }, 1, { 0, 0, 1, 1, 1, 1 }, { 0 } }, { { 0, 0, 0, 2, 1, 3 }, 0, { 0, 0, 0, 1, 1, 1 }, { 0 } },
		{ { 2, 6, 4, 5, 6, 3 }, 1, { 1, 1, 1, 1, 1, 1 }, { 0 } },
	};
	(void)state;

	for (int k = 0; k < 2; k++) {
		check_rows(spec_of(kinds[k], paths[k], "tok.json", 1), right);
		check_rows(spec_of(kinds[k], paths[k], "left.json", 1), left);
	}
}

static void a_pair_has_two_kinds_of_tokens(void **state)
{
	static const struct row pairs[] = {
		{ { 2, 4, 5, 3, 6, 3 }, 1, { 1, 1, 1, 1, 1, 1 }, { 0, 0, 0, 0, 1, 1 } },
		{ { 2, 1, 3, 6, 5, 3 }, 0, { 1, 1, 1, 1, 1, 1 }, { 0, 0, 0, 1, 1, 1 } },
		{ { 2, 6, 4, 3, 4, 3 }, 1, { 1, 1, 1, 1, 1, 1 }, { 0, 0, 0, 0, 1, 1 } },
	};
	(void)state;

	for (int k = 0; k < 2; k++)
		check_rows(spec_of(kinds[k], paths[k], "tok.json", 2), pairs);
}

static void bytes_have_a_mask_too(void **state)
{
	static const struct row bytes[] = {
		{ { 'a', ' ', 'b' }, 1, { 1, 1, 1 }, { 0 } }, { { 'x' }, 0, { 1 }, { 0 } },
		{ { 'c', ' ', 'a', ' ', 'b', ' ' }, 1, { 1, 1, 1, 1, 1, 1 }, { 0 } },
	};
	(void)state;

	for (int k = 0; k < 2; k++) {
		struct hd_data_spec spec = spec_of(kinds[k], paths[k], NULL, 1);
		spec.tokens = 256;
		check_rows(spec, bytes);
	}
}

static void the_next_token_is_the_label_of_one(void **state)
{
	static const int32_t y[2][T] = { { 4, 5, 3, -1, -1, -1 }, { -1, -1, 4, 5, 3, -1 } };
	static const char *const files[] = { "tok.json", "left.json" };
	(void)state;

	for (int k = 0; k < 2; k++) {
		struct hd_data_spec spec = spec_of("jsonl", "t.jsonl", files[k], 1);
		int32_t out[4][T];
		void *at[HD_MAX_FIELDS] = { out[0], out[1], out[2], out[3] };
		struct hd_diag diag = { "" };
		spec.one_label = false;
		spec.classes = 7;
		struct hd_dataset *set = open_set(&sim.fs, spec);
		CHECK(hd_dataset_read(set, 0, 0, HD_NO_EPOCH, at, &diag) == HD_OK, "%s", diag.text);
		CHECK(!memcmp(out[1], y[k], sizeof y[k]), "%s: %d %d %d", files[k], out[1][0], out[1][1],
			out[1][2]);
		hd_dataset_destroy(set);
	}
}

static void what_does_not_fit_the_model_is_refused(void **state)
{
	struct hd_data_spec spec = spec_of("csv", "t.csv", "tok.json", 1);
	(void)state;

	spec.tokens = 6;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"tok.json has 7 tokens, the model knows 6: set model.args vocab");
	spec.tokens = 7;
	spec.pad = 6;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"fills up with token 0, the model takes 6 for the end of a text");
	spec = spec_of("csv", "t.csv", "none.json", 1);
	check_refused(&sim.fs, spec, HD_E_NOTFOUND, "none.json");
	put_text(&sim.fs, "far.json", TOKENIZER("{\"direction\":\"Right\",\"pad_id\":9}"));
	spec.tokenizer = "far.json";
	check_refused(&sim.fs, spec, HD_E_INPUT, "far.json has 10 tokens, the model knows 7");
	put_text(&sim.fs, "bad.json", "{\"version\":\"2\"}");
	spec.tokenizer = "bad.json";
	check_refused(&sim.fs, spec, HD_E_INPUT, "bad.json");
	put_text(&sim.fs, "u.csv", "p,label\n\xff,1\n");
	spec = spec_of("csv", "u.csv", "tok.json", 1);
	check_refused(&sim.fs, spec, HD_E_INPUT, "u.csv:2: the text: byte 0 (0xff) is no UTF-8");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_text_is_cut_and_filled_up), TEST(a_pair_has_two_kinds_of_tokens),
		TEST(bytes_have_a_mask_too), TEST(the_next_token_is_the_label_of_one),
		TEST(what_does_not_fit_the_model_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
