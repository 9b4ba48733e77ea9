#include "functions/sigv4.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS = 32, DAY = 8 };

/* Of the proleptic Gregorian calendar; days since 1970. */
static void civil(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468, era = z / 146097, of_era = z - era * 146097;
	int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(y + era * 400 + (*month <= 2));
}

void hd_sigv4_date(int64_t wall_ns, char date[HD_SIGV4_DATE])
{
	int64_t s = wall_ns / INT64_C(1000000000);
	int year, month, day;

	civil(s / 86400, &year, &month, &day);
	snprintf(date, HD_SIGV4_DATE, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)year % 10000,
		(unsigned)month % 100,
		(unsigned)day % 100, (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		(c && strchr("-._~", c));
}

static void add_encoded(struct hd_text *text, const char *at, size_t len, const char *kept)
{
	for (size_t i = 0; i < len; i++)
		if (is_unreserved(at[i]) || (at[i] && strchr(kept, at[i])))
			hd_text_put(text, at + i, 1);
		else
			hd_text_addf(text, "%%%02X", (unsigned char)at[i]);
}

struct param { const char *at; size_t len, name; };

static int by_name_then_value(const void *a, const void *b)
{
	const struct param *x = a, *y = b;
	size_t n = x->name < y->name ? x->name : y->name;
	int order = memcmp(x->at, y->at, n);

	if (order || x->name != y->name)
		return order ? order : x->name < y->name ? -1 : 1;
	n = x->len < y->len ? x->len : y->len;
	order = memcmp(x->at, y->at, n);
	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* Parameters are encoded already, as they are sent. */
static enum hd_err add_query(const char *query, struct hd_text *text, struct hd_diag *diag)
{
	struct param param[PARAMS];
	size_t n = 0;

	while (*query) {
		size_t len = strcspn(query, "&"), name = strcspn(query, "=&");
		if (n == PARAMS)
			return hd_fail(diag, HD_E_INVAL, "a request with more than %d parameters", PARAMS);
		if (len)
			param[n++] = (struct param){ query, len, name };
		query += len + (query[len] == '&');
	}
	qsort(param, n, sizeof *param, by_name_then_value);
	for (size_t i = 0; i < n; i++) {
		hd_text_addf(text, "%s%.*s", i ? "&" : "", (int)param[i].len, param[i].at);
		if (param[i].name == param[i].len)
			hd_text_add(text, "=");
	}
	return HD_OK;
}

static bool ascends(const struct hd_sigv4_request *r)
{
	for (uint32_t i = 1; i < r->nlines; i++)
		if (strcmp(r->line[i - 1].name, r->line[i].name) >= 0)
			return false;
	return r->nlines > 0 && r->nlines <= HD_SIGV4_LINES;
}

static void add_names(const struct hd_sigv4_request *r, struct hd_text *text)
{
	for (uint32_t i = 0; i < r->nlines; i++)
		hd_text_addf(text, "%s%s", i ? ";" : "", r->line[i].name);
}

enum hd_err hd_sigv4_canonical(const struct hd_sigv4_request *r, struct hd_text *text, struct hd_diag *diag)
{
	size_t path = strcspn(r->target, "?");
	char hex[HD_SHA256_HEX];

	if (!ascends(r))
		return hd_fail(diag, HD_E_INVAL, "signed header lines must ascend by name");
	hd_text_addf(text, "%s\n", r->method);
	add_encoded(text, r->target, path, "/");
	hd_text_add(text, "\n");
	enum hd_err err = add_query(r->target + path + (r->target[path] == '?'), text, diag);
	if (err)
		return err;
	hd_text_add(text, "\n");
	for (uint32_t i = 0; i < r->nlines; i++)
		hd_text_addf(text, "%s:%s\n", r->line[i].name, r->line[i].value);
	hd_text_add(text, "\n");
	add_names(r, text);
	hd_sha256_hex(&r->body, hex);
	hd_text_addf(text, "\n%s", hex);
	return text->full ? hd_fail(diag, HD_E_NOSPACE, "the request is too long to be signed") : HD_OK;
}

static void add_scope(const struct hd_sigv4_rights *rights, const struct hd_sigv4_request *r,
	struct hd_text *text)
{
	hd_text_addf(text, "%.*s/%s/%s/aws4_request", DAY, r->date, rights->region, rights->service);
}

/* The key of a day, a region and a service: each step proves the next. */
static enum hd_err make_key(const struct hd_sigv4_rights *rights, const char *date, struct hd_sha256 *key,
	struct hd_diag *diag)
{
	const char *const step[] = { rights->region, rights->service, "aws4_request" };
	char first[256];
	int n = snprintf(first, sizeof first, "AWS4%s", rights->secret);

	if (n < 0 || (size_t)n >= sizeof first)
		return hd_fail(diag, HD_E_INVAL, "the secret key is too long");
	enum hd_err err = hd_hmac_sha256(first, (size_t)n, date, DAY, key, diag);
	memset(first, 0, sizeof first);
	for (size_t i = 0; i < sizeof step / sizeof *step && !err; i++) {
		struct hd_sha256 last = *key;
		err = hd_hmac_sha256(last.byte, sizeof last.byte, step[i], strlen(step[i]), key, diag);
	}
	return err;
}

enum hd_err hd_sigv4_sign(const struct hd_sigv4_rights *rights, const struct hd_sigv4_request *r,
	char signature[HD_SHA256_HEX], struct hd_diag *diag)
{
	char bytes[HD_SIGV4_TEXT], hex[HD_SHA256_HEX];
	struct hd_sha256 sum, key, proof;
	struct hd_text text;

	if (strlen(r->date) != HD_SIGV4_DATE - 1)
		return hd_fail(diag, HD_E_INVAL, "%s: no date of a signed request", r->date);
	hd_text_fixed(&text, bytes, sizeof bytes);
	enum hd_err err = hd_sigv4_canonical(r, &text, diag);
	if (!err)
		err = hd_sha256(text.at, text.len, &sum, diag);
	if (err)
		return err;
	hd_sha256_hex(&sum, hex);
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_text_addf(&text, "AWS4-HMAC-SHA256\n%s\n", r->date);
	add_scope(rights, r, &text);
	hd_text_addf(&text, "\n%s", hex);
	err = make_key(rights, r->date, &key, diag);
	if (!err)
		err = hd_hmac_sha256(key.byte, sizeof key.byte, text.at, text.len, &proof, diag);
	if (!err)
		hd_sha256_hex(&proof, signature);
	return err;
}

enum hd_err hd_sigv4_authorization(const struct hd_sigv4_rights *rights, const struct hd_sigv4_request *r,
	struct hd_text *value, struct hd_diag *diag)
{
	char signature[HD_SHA256_HEX];
	enum hd_err err = hd_sigv4_sign(rights, r, signature, diag);

	if (err)
		return err;
	hd_text_addf(value, "AWS4-HMAC-SHA256 Credential=%s/", rights->key_id);
	add_scope(rights, r, value);
	hd_text_add(value, ", SignedHeaders=");
	add_names(r, value);
	hd_text_addf(value, ", Signature=%s", signature);
	return value->full ? hd_fail(diag, HD_E_NOSPACE, "the signature is too long") : HD_OK;
}
