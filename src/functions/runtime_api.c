#include "functions/runtime_api.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"

static bool copy_span(struct hd_http_span s, char *out, size_t cap)
{
	if (!s.at || !s.len || s.len >= cap)
		return false;
	memcpy(out, s.at, s.len);
	out[s.len] = '\0';
	return true;
}

static bool is_id(const char *id)
{
	static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

	return *id && strspn(id, signs) == strlen(id);
}

enum hd_err hd_runtime_read_next(const struct hd_http_head *head, struct hd_runtime_next *next,
	struct hd_diag *diag)
{
	struct hd_runtime_next n = { .deadline_ms = 0 };
	char deadline[24];

	if (head->status != 200)
		return hd_fail(diag, HD_E_REFUSED, "the runtime API answers with status %d", head->status);
	if (!copy_span(hd_http_find(head, "Lambda-Runtime-Aws-Request-Id"), n.id, sizeof n.id) ||
		!is_id(n.id))
		return hd_fail(diag, HD_E_PROTOCOL, "the runtime API gives no request id");
	if (!copy_span(hd_http_find(head, "Lambda-Runtime-Deadline-Ms"), deadline, sizeof deadline) ||
		hd_num_i64(deadline, 0, INT64_C(1) << 50, &n.deadline_ms, NULL))
		return hd_fail(diag, HD_E_PROTOCOL, "the runtime API gives no deadline");
	(void)copy_span(hd_http_find(head, "Lambda-Runtime-Trace-Id"), n.trace, sizeof n.trace);
	*next = n;
	return HD_OK;
}

static bool span_begins(struct hd_http_span *s, const char *with)
{
	size_t n = strlen(with);

	if (s->len < n || memcmp(s->at, with, n) != 0)
		return false;
	s->at += n;
	s->len -= n;
	return true;
}

enum hd_runtime_what hd_runtime_call(const struct hd_http_head *head, char id[HD_RUNTIME_ID])
{
	static const struct { const char *tail; enum hd_runtime_what what; } of_one[] = {
		{ "/response", HD_RUNTIME_RESPONSE }, { "/error", HD_RUNTIME_ERROR } };
	struct hd_http_span at = head->target;

	id[0] = '\0';
	bool gets = hd_http_is(head->method, "GET"), posts = hd_http_is(head->method, "POST");
	if (!span_begins(&at, HD_RUNTIME_ROOT))
		return HD_RUNTIME_UNKNOWN;
	if (gets && hd_http_is(at, "invocation/next"))
		return HD_RUNTIME_NEXT;
	if (posts && hd_http_is(at, "init/error"))
		return HD_RUNTIME_INIT_ERROR;
	if (!posts || !span_begins(&at, "invocation/"))
		return HD_RUNTIME_UNKNOWN;
	const char *slash = memchr(at.at, '/', at.len);
	struct hd_http_span one = { at.at, slash ? (size_t)(slash - at.at) : 0 },
		tail = { slash, slash ? at.len - one.len : 0 };
	for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
		if (hd_http_is(tail, of_one[i].tail) && copy_span(one, id, HD_RUNTIME_ID) && is_id(id))
			return of_one[i].what;
	id[0] = '\0';
	return HD_RUNTIME_UNKNOWN;
}

/* ---- REPORT ---- */

static void add_ms(struct hd_text *text, const char *name, int64_t us)
{
	hd_text_addf(text, "\t%s: %lld.%02lld ms", name, (long long)(us / 1000), (long long)(us % 1000 / 10));
}

void hd_lambda_report_write(const struct hd_lambda_report *r, struct hd_text *text)
{
	hd_text_addf(text, "REPORT RequestId: %s", r->id);
	add_ms(text, "Duration", r->duration_us);
	hd_text_addf(text, "\tBilled Duration: %lld ms\tMemory Size: %lld MB\tMax Memory Used: %lld MB",
		(long long)r->billed_ms, (long long)r->memory_mb, (long long)r->used_mb);
	if (r->init_us)
		add_ms(text, "Init Duration", r->init_us);
	hd_text_add(text, "\n");
}

/* The whole number, or milliseconds with a fraction as microseconds, between `name` and `unit`. */
static bool find_number(const char *at, const char *end, const char *name, const char *unit, bool fraction,
	int64_t *out)
{
	char field[64], digits[24];
	size_t n = strlen(name);

	while (at < end) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		size_t len = (size_t)((tab ? tab : end) - at);
		while (len && at[len - 1] == ' ')
			len--;
		if (len > n && len < sizeof field && !memcmp(at, name, n)) {
			memcpy(field, at + n, len - n);
			field[len - n] = '\0';
			size_t whole = strspn(field, "0123456789");
			double ms = 0;
			if (!whole || whole >= sizeof digits || strlen(field) < strlen(unit) ||
				strcmp(field + strlen(field) - strlen(unit), unit) != 0)
				return false;
			field[strlen(field) - strlen(unit)] = '\0';
			if (!fraction)
				return !hd_num_i64(field, 0, INT64_C(1) << 40, out, NULL);
			if (hd_num_f64(field, 0, 1e12, &ms, NULL))
				return false;
			*out = (int64_t)(ms * 1000 + 0.5);
			return true;
		}
		at = tab ? tab + 1 : end;
	}
	return false;
}

static bool read_report(const char *at, const char *end, struct hd_lambda_report *report)
{
	static const char head[] = "REPORT RequestId: ";
	const char *tab = memchr(at, '\t', (size_t)(end - at));
	struct hd_lambda_report r = { .billed_ms = 0 };

	if (!tab || (size_t)(tab - at) <= sizeof head - 1 || memcmp(at, head, sizeof head - 1) != 0)
		return false;
	struct hd_http_span id = { at + sizeof head - 1, (size_t)(tab - at) - (sizeof head - 1) };
	if (!copy_span(id, r.id, sizeof r.id) || !is_id(r.id))
		return false;
	if (!find_number(tab + 1, end, "Billed Duration: ", " ms", false, &r.billed_ms) ||
		!find_number(tab + 1, end, "Memory Size: ", " MB", false, &r.memory_mb) ||
		!find_number(tab + 1, end, "Duration: ", " ms", true, &r.duration_us))
		return false;
	(void)find_number(tab + 1, end, "Max Memory Used: ", " MB", false, &r.used_mb);
	(void)find_number(tab + 1, end, "Init Duration: ", " ms", true, &r.init_us);
	*report = r;
	return true;
}

enum hd_err hd_lambda_report_read(const char *text, size_t len, struct hd_lambda_report *report, size_t *rest)
{
	for (size_t at = 0; at < len; ) {
		const char *end = memchr(text + at, '\n', len - at);
		if (!end)
			break;
		if (read_report(text + at, end, report)) {
			*rest = (size_t)(end + 1 - text);
			return HD_OK;
		}
		at = (size_t)(end + 1 - text);
	}
	return HD_E_NOTFOUND;
}

enum hd_err hd_lambda_read_outcome(const struct hd_http_head *head, struct hd_lambda_outcome *outcome,
	struct hd_diag *diag)
{
	struct hd_lambda_outcome o = { .status = head->status };
	struct hd_http_span log = hd_http_find(head, "X-Amz-Log-Result");
	uint8_t bytes[HD_LAMBDA_LOG + 1];
	size_t len = 0, rest = 0;

	o.function_error = hd_http_find(head, "X-Amz-Function-Error").at != NULL;
	if (log.at) {
		if (!hd_base64_read(log, bytes, sizeof bytes, &len))
			return hd_fail(diag, HD_E_PROTOCOL,
				"the log of a call is no base64 of at most %d bytes",
				HD_LAMBDA_LOG);
		o.has_report = !hd_lambda_report_read((const char *)bytes, len, &o.report, &rest);
	}
	*outcome = o;
	return HD_OK;
}

bool hd_lambda_function_of(struct hd_http_span target, char name[HD_LAMBDA_NAME])
{
	if (!span_begins(&target, HD_INVOKE_ROOT))
		return false;
	const char *slash = memchr(target.at, '/', target.len);
	struct hd_http_span one = { target.at, slash ? (size_t)(slash - target.at) : 0 },
		tail = { slash, slash ? target.len - one.len : 0 };
	return hd_http_is(tail, "/invocations") && copy_span(one, name, HD_LAMBDA_NAME);
}
