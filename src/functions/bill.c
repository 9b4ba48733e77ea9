#include "functions/bill.h"

#include <string.h>

#include "base/checked.h"
#include "base/json.h"

__extension__ typedef __int128 wide;

enum { PICO_DIGITS = 12, FIRST_CALLS = 256 };
#define MS_MB_OF_GB_S INT64_C(1024000)            /* 1000 ms x 1024 MB */
#define MOST_CALLS (UINT64_C(1) << 32)

#define FILE_OF(date, rows) "{\"date\":\"" date "\",\"region\":\"us-east-1\",\"functions\":[" rows "]}"
#define KIND(kind, ms, tiers) "{\"kind\":\"" kind "\",\"granularity_ms\":" ms \
	",\"call_usd\":\"0.0000002\",\"gb_s\":[" tiers "]}"
#define LAST(usd) "{\"usd\":\"" usd "\"}"
#define UP_TO(usd, gb_s) "{\"usd\":\"" usd "\",\"up_to_gb_s\":" gb_s "},"

const struct hd_fn_price_file hd_fn_price_files[] = {
	{ "2020", "AWS Lambda, us-east, as of the summer of 2020: billed by 100 ms",
		FILE_OF("2020-06-01", KIND("lambda-x86_64", "100", LAST("0.0000166667"))) },
	{ "2021", "AWS Lambda, us-east, as of the summer of 2021: billed by 1 ms",
		FILE_OF("2021-06-01", KIND("lambda-x86_64", "1", LAST("0.0000166667"))) },
	{ "2025", "AWS Lambda, us-east, as of 2025: tiers, two architectures, init is billed",
		FILE_OF("2025-08-01",
			KIND("lambda-x86_64", "1", UP_TO("0.0000166667", "6000000000") LAST("0.000015")) ","
			KIND("lambda-arm64", "1", LAST("0.0000133334"))) },
	{ NULL, NULL, NULL },
};

/* ---- prices ---- */

/* Dollars below 1000, as digits with a point, in 10^-12. */
static bool read_pico(const char *text, int64_t *pico)
{
	size_t whole = strspn(text, "0123456789"), digits = 0;
	int64_t v = 0;

	if (!whole || whole > 3 || (text[whole] && text[whole] != '.'))
		return false;
	for (size_t i = 0; i < whole; i++)
		v = v * 10 + (text[i] - '0');
	const char *at = text[whole] ? text + whole + 1 : text + whole;
	if (text[whole] && !*at)
		return false;
	for (; digits < PICO_DIGITS && at[digits] >= '0' && at[digits] <= '9'; digits++)
		v = v * 10 + (at[digits] - '0');
	if (at[digits])
		return false;
	for (; digits < PICO_DIGITS; digits++)
		v *= 10;
	*pico = v;
	return true;
}

static enum hd_err get_pico(const struct hd_json *object, const char *key, int64_t *pico,
	struct hd_diag *diag)
{
	const char *text = NULL;
	char path[128];
	enum hd_err err = hd_json_get_text(object, key, &text, diag);

	if (!err && !read_pico(text, pico))
		err = hd_fail(diag, HD_E_INPUT,
			"%s.%s is %s: dollars as \"0.0000166667\" are right, at most %d "
			"digits behind the point", hd_json_path(object, path, sizeof path), key, text,
				PICO_DIGITS);
	return err;
}

static enum hd_err read_tiers(const struct hd_json *tiers, struct hd_fn_price *p, struct hd_diag *diag)
{
	static const char *const keys[] = { "usd", "up_to_gb_s", NULL };
	int64_t last = 0;
	enum hd_err err = HD_OK;

	p->ntiers = (uint32_t)hd_json_count(tiers);
	if (!p->ntiers || p->ntiers > HD_FN_TIERS)
		return hd_fail(diag, HD_E_INPUT, "a price has 1 to %d tiers", HD_FN_TIERS);
	for (uint32_t i = 0; i < p->ntiers && !err; i++) {
		const struct hd_json *tier = hd_json_item(tiers, i);
		bool end = i + 1 == p->ntiers;
		p->tier[i].up_to_gb_s = INT64_MAX;
		err = hd_json_as(tier, HD_JSON_OBJECT, diag);
		if (!err)
			err = hd_json_only(tier, keys, diag);
		if (!err)
			err = get_pico(tier, "usd", &p->tier[i].pico, diag);
		if (!err && !end)
			err = hd_json_get_i64(tier, "up_to_gb_s", last + 1, INT64_C(1) << 42,
				&p->tier[i].up_to_gb_s,
				diag);
		else if (!err && hd_json_find(tier, "up_to_gb_s"))
			err = hd_fail(diag, HD_E_INPUT, "the last tier of a price has no end");
		last = p->tier[i].up_to_gb_s;
	}
	return err;
}

static enum hd_err copy_text(const struct hd_json *object, const char *key, char *out, size_t cap,
	struct hd_diag *diag)
{
	const char *text = NULL;
	enum hd_err err = hd_json_get_text(object, key, &text, diag);

	if (!err && strlen(text) >= cap)
		err = hd_fail(diag, HD_E_INPUT, "price file: .%s is longer than %zu characters", key,
			cap - 1);
	if (!err)
		memcpy(out, text, strlen(text) + 1);
	return err;
}

static enum hd_err read_kind(const struct hd_json *row, struct hd_fn_price *p, struct hd_diag *diag)
{
	static const char *const keys[] = { "kind", "granularity_ms", "call_usd", "gb_s", NULL };
	const struct hd_json *tiers = NULL;

	enum hd_err err = hd_json_only(row, keys, diag);
	if (!err)
		err = hd_json_get_i64(row, "granularity_ms", 1, 60000, &p->granularity_ms, diag);
	if (!err)
		err = get_pico(row, "call_usd", &p->call_pico, diag);
	if (!err)
		err = hd_json_get(row, "gb_s", HD_JSON_ARRAY, &tiers, diag);
	return err ? err : read_tiers(tiers, p, diag);
}

enum hd_err hd_fn_price_read(const char *name, const char *text, size_t len, const char *kind,
	struct hd_arena *arena, struct hd_fn_price *price, struct hd_diag *diag)
{
	static const char *const keys[] = { "date", "region", "functions", NULL };
	const struct hd_json *file = NULL, *rows = NULL;
	struct hd_fn_price p = { .ntiers = 0 };

	enum hd_err err = hd_json_parse(arena, name, text, len, &file, diag);
	if (!err)
		err = hd_json_as(file, HD_JSON_OBJECT, diag);
	if (!err)
		err = hd_json_only(file, keys, diag);
	if (!err)
		err = copy_text(file, "date", p.date, sizeof p.date, diag);
	if (!err)
		err = copy_text(file, "region", p.region, sizeof p.region, diag);
	if (!err)
		err = hd_json_get(file, "functions", HD_JSON_ARRAY, &rows, diag);
	for (size_t i = 0; !err && i < hd_json_count(rows); i++) {
		const struct hd_json *row = hd_json_item(rows, i);
		err = hd_json_as(row, HD_JSON_OBJECT, diag);
		if (!err)
			err = copy_text(row, "kind", p.kind, sizeof p.kind, diag);
		if (err || strcmp(p.kind, kind) != 0)
			continue;
		err = read_kind(row, &p, diag);
		if (!err)
			*price = p;
		return err;
	}
	return err ? err : hd_fail(diag, HD_E_INVAL,
		"%s has no price of %s: add it, or name another price file", name, kind);
}

/* Pico-dollars x 1,024,000 of an amount: what a tier takes at most, then the next. */
int64_t hd_fn_price_nano(const struct hd_fn_price *price, int64_t ms_mb, int64_t ncalls)
{
	wide sum = (wide)price->call_pico * ncalls * MS_MB_OF_GB_S, left = ms_mb, from = 0;

	for (uint32_t i = 0; i < price->ntiers && left > 0; i++) {
		wide end = (wide)price->tier[i].up_to_gb_s * MS_MB_OF_GB_S;
		wide here = i + 1 < price->ntiers && end - from < left ? end - from : left;
		sum += here * price->tier[i].pico;
		left -= here;
		from += here;
	}
	sum /= (wide)1000 * MS_MB_OF_GB_S;
	return sum > INT64_MAX ? -1 : (int64_t)sum;
}

/* ---- the ledger ---- */

void hd_fn_bill_init(struct hd_fn_bill *bill, const struct hd_fn_price *price, struct hd_arena *arena)
{
	*bill = (struct hd_fn_bill){ .price = *price, .arena = arena };
}

static int64_t round_up(const struct hd_fn_price *p, int64_t ms)
{
	return (ms + p->granularity_ms - 1) / p->granularity_ms * p->granularity_ms;
}

int64_t hd_fn_billed_ms(const struct hd_fn_price *price, int64_t ns)
{
	return ns <= 0 ? 0 : round_up(price, (ns - 1) / 1000000 + 1);
}

static enum hd_err book(struct hd_fn_bill *b, const struct hd_fn_call_cost *cost, struct hd_diag *diag)
{
	if (cost->ms < 0 || cost->memory_mb < 0 || cost->ms > INT64_C(1) << 30 || cost->memory_mb > 1 << 20)
		return hd_fail(diag, HD_E_INVAL, "a call of %lld ms with %lld MB is none",
			(long long)cost->ms,
			(long long)cost->memory_mb);
	if (b->ncalls == b->cap) {
		uint64_t cap = b->cap ? 2 * b->cap : FIRST_CALLS;
		struct hd_fn_call_cost *more = cap > MOST_CALLS ? NULL : hd_arena_take(b->arena, cap,
			sizeof *more);
		if (!more)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %llu calls in the ledger",
				(unsigned long long)cap);
		if (b->ncalls)
			memcpy(more, b->call, b->ncalls * sizeof *more);
		b->call = more;
		b->cap = cap;
	}
	b->call[b->ncalls++] = *cost;
	b->nestimated += cost->estimated;
	return HD_OK;
}

static struct hd_fn_call_cost cost_of(const struct hd_fn_bill *b, const struct hd_lambda_report *r)
{
	struct hd_fn_call_cost cost = { .ms = round_up(&b->price, r->billed_ms), .memory_mb = r->memory_mb };

	memcpy(cost.id, r->id, sizeof cost.id);
	return cost;
}

enum hd_err hd_fn_bill_report(struct hd_fn_bill *bill, const struct hd_lambda_report *report,
	struct hd_diag *diag)
{
	struct hd_fn_call_cost cost = cost_of(bill, report);

	return book(bill, &cost, diag);
}

enum hd_err hd_fn_bill_estimate(struct hd_fn_bill *bill, int64_t ns, int64_t memory_mb, struct hd_diag *diag)
{
	struct hd_fn_call_cost cost = { .ms = hd_fn_billed_ms(&bill->price, ns), .memory_mb = memory_mb,
		.estimated = true };

	return book(bill, &cost, diag);
}

/* Lines of one id are calls of their own: each entry stands for one line. */
static bool is_booked(const struct hd_fn_bill *b, uint64_t n, const struct hd_fn_call_cost *cost, bool *used)
{
	for (uint64_t i = 0; i < n; i++)
		if (!used[i] && !b->call[i].estimated && !strcmp(b->call[i].id, cost->id) &&
			b->call[i].ms == cost->ms && b->call[i].memory_mb == cost->memory_mb) {
			used[i] = true;
			return true;
		}
	return false;
}

static bool replace_estimate(struct hd_fn_bill *b, uint64_t n, const struct hd_fn_call_cost *cost, bool *used)
{
	for (uint64_t i = 0; b->nestimated && i < n; i++)
		if (b->call[i].estimated) {
			b->call[i] = *cost;
			b->nestimated--;
			used[i] = true;
			return true;
		}
	return false;
}

enum hd_err hd_fn_bill_settle(struct hd_fn_bill *b, const char *log, size_t len, uint64_t *nnew,
	struct hd_diag *diag)
{
	uint64_t n = b->ncalls, added = 0;
	bool *used = hd_arena_take(b->arena, n + 1, sizeof *used);
	struct hd_lambda_report report;
	size_t rest = 0;

	if (!used)
		return hd_fail(diag, HD_E_NOMEM, "no memory to settle %llu calls", (unsigned long long)n);
	for (; !hd_lambda_report_read(log, len, &report, &rest); log += rest, len -= rest) {
		struct hd_fn_call_cost cost = cost_of(b, &report);
		if (is_booked(b, n, &cost, used) || replace_estimate(b, n, &cost, used))
			continue;
		enum hd_err err = book(b, &cost, diag);
		if (err)
			return err;
		added++;
	}
	*nnew = added;
	return HD_OK;
}

int64_t hd_fn_bill_nano(const struct hd_fn_bill *b)
{
	int64_t sum = 0;

	for (uint64_t i = 0; i < b->ncalls; i++) {
		int64_t amount = 0;
		if (!hd_mul_i64(b->call[i].ms, b->call[i].memory_mb, &amount) || !hd_add_i64(sum, amount,
			&sum))
			return -1;
	}
	return hd_fn_price_nano(&b->price, sum, (int64_t)b->ncalls);
}
