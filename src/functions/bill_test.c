#include "functions/bill.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

struct fixture { struct hd_arena arena; struct hd_fn_price price; };

static struct fixture *open_at(const char *date, const char *kind)
{
	static struct fixture f;
	const struct hd_fn_price_file *file = hd_fn_price_files;

	hd_arena_init(&f.arena, 64 << 20);
	while (strcmp(file->name, date) != 0)
		file++;
	assert_int_equal(hd_fn_price_read(file->name, file->text, strlen(file->text), kind, &f.arena,
		&f.price,
		NULL), HD_OK);
	return &f;
}

static void shipped_files_have_the_published_prices(void **state)
{
	(void)state;
	struct fixture *f = open_at("2025", "lambda-x86_64");
	/* 1 GB-s is 16,666.7 nano-dollars, a million calls are 0.20 dollars; rounded down once */
	assert_int_equal(hd_fn_price_nano(&f->price, 1024000, 0), 16666);
	assert_int_equal(hd_fn_price_nano(&f->price, 10 * INT64_C(1024000), 0), 166667);
	assert_int_equal(hd_fn_price_nano(&f->price, 0, 1000000), INT64_C(200000000));
	assert_int_equal(hd_fn_price_nano(&f->price, 3 * 192, 1), 209);          /* 200 + 9.375... */
	/* 6 G GB-s at the first price, one more at the second */
	int64_t six = INT64_C(6000000000);
	assert_int_equal(hd_fn_price_nano(&f->price, (six + 1) * 1024000, 0),
		INT64_C(100000200000000) + 15000);
	hd_arena_finish(&f->arena);
	f = open_at("2020", "lambda-x86_64");
	assert_int_equal(hd_fn_billed_ms(&f->price, 1), 100);
	assert_int_equal(hd_fn_billed_ms(&f->price, 100000001), 200);
	hd_arena_finish(&f->arena);
	f = open_at("2021", "lambda-x86_64");
	assert_int_equal(hd_fn_billed_ms(&f->price, 1000000), 1);
	assert_int_equal(hd_fn_billed_ms(&f->price, 1000001), 2);
	hd_arena_finish(&f->arena);
}

static void a_file_without_the_price_is_refused_by_name(void **state)
{
	static const char head[] = "{\"date\":\"d\",\"region\":\"r\",\"functions\":[{\"kind\":\"k\","
		"\"granularity_ms\":1,\"call_usd\":\"0.1\",\"gb_s\":[";
	static const struct { const char *tail, *kind; enum hd_err err; } at[] = {
		{ "{\"usd\":\"0.0000166667\"}]}]}", "k", HD_OK },
		{ "{\"usd\":\"0.0000166667\"}]}]}", "lambda", HD_E_INVAL },
		{ "{\"usd\":0.0000166667}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"-1\"}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"1.\"}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"0.0000000000001\"}]}]}", "k", HD_E_INPUT },
		{ "]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"1\",\"up_to_gb_s\":5}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"1\"},{\"usd\":\"1\"}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"1\",\"up_to_gb_s\":5},{\"usd\":\"1\",\"up_to_gb_s\":5},{\"usd\":\"1\"}]}]}", "k", HD_E_INPUT },
		{ "{\"usd\":\"1\",\"tax\":5}]}]}", "k", HD_E_INPUT },
	};
	struct hd_fn_price price;
	struct hd_arena arena;
	char text[400];

	(void)state;
	hd_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		snprintf(text, sizeof text, "%s%s", head, at[i].tail);
		CHECK(hd_fn_price_read("f", text, strlen(text), at[i].kind, &arena, &price,
			NULL) == at[i].err, "%s",
			text);
	}
	hd_arena_finish(&arena);
}

static struct hd_lambda_report report(const char *id, int64_t ms)
{
	struct hd_lambda_report r = { .duration_us = ms * 1000 - 250, .billed_ms = ms, .memory_mb = 192,
		.used_mb = 20 };

	snprintf(r.id, sizeof r.id, "%s", id);
	return r;
}

/* The ledger after a log is what the log says: whichever calls came with their report, estimated or not at
 * all. */
static void a_settled_ledger_is_the_log(void **state)
{
	struct fixture *f = open_at("2025", "lambda-x86_64");
	const struct hd_lambda_report all[] = { report("a", 3), report("b", 7), report("a", 3), report("c",
		11),
		report("d", 13) };
	int64_t ms = 3 + 7 + 3 + 11 + 13;
	char bytes[2000];
	struct hd_text log;

	(void)state;
	hd_text_fixed(&log, bytes, sizeof bytes);
	for (size_t i = 0; i < 5; i++) {
		hd_text_add(&log, "START of something\n");
		hd_lambda_report_write(&all[i], &log);
	}
	for (unsigned known = 0; known < 32; known++)
		for (uint32_t lost = 0; lost <= 5 - (uint32_t)__builtin_popcount(known); lost++) {
			struct hd_fn_bill bill;
			uint64_t added = 0;
			hd_fn_bill_init(&bill, &f->price, &f->arena);
			for (uint32_t i = 0; i < lost; i++)
				assert_int_equal(hd_fn_bill_estimate(&bill, 5000000 + i, 192, NULL), HD_OK);
			for (size_t i = 0; i < 5; i++)
				if (known >> i & 1)
					assert_int_equal(hd_fn_bill_report(&bill, &all[i], NULL), HD_OK);
			assert_int_equal(bill.nestimated, lost);
			assert_int_equal(hd_fn_bill_settle(&bill, log.at, log.len, &added, NULL), HD_OK);
			assert_int_equal(bill.ncalls, 5);
			assert_int_equal(bill.nestimated, 0);
			assert_int_equal(added, 5 - (uint32_t)__builtin_popcount(known) - lost);
			assert_int_equal(hd_fn_bill_nano(&bill), hd_fn_price_nano(&f->price, ms * 192, 5));
		}
	hd_arena_finish(&f->arena);
}

static void no_amount_is_refused(void **state)
{
	struct fixture *f = open_at("2025", "lambda-x86_64");
	struct hd_lambda_report r = report("a", -1);
	struct hd_fn_bill bill;

	(void)state;
	hd_fn_bill_init(&bill, &f->price, &f->arena);
	assert_int_equal(hd_fn_bill_report(&bill, &r, NULL), HD_E_INVAL);
	assert_int_equal(hd_fn_bill_nano(&bill), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hd_fn_bill_estimate(&bill, 1, 128, NULL), HD_OK);
	assert_int_equal(hd_fn_bill_nano(&bill), hd_fn_price_nano(&f->price, 128000, 1000));
	hd_arena_finish(&f->arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_files_have_the_published_prices),
		cmocka_unit_test(a_file_without_the_price_is_refused_by_name),
		cmocka_unit_test(a_settled_ledger_is_the_log),
		cmocka_unit_test(no_amount_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
