/* What functions and owners say to each other, whatever comes: it is refused with a reason, or it is written
 * again as it was. The first byte says which reader has the rest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "data/credentials.h"
#include "functions/bill.h"
#include "functions/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void event(const char *at, size_t len, struct hd_arena *arena)
{
	struct hd_fn_event e, back;
	struct hd_diag diag = { "" };
	char text_bytes[2 * HD_FN_EVENT_BYTES];
	struct hd_text text;
	enum hd_err err = hd_fn_event_read(at, len, arena, &e, &diag);

	must(err == HD_OK || diag.text[0]);
	if (err)
		return;
	hd_text_fixed(&text, text_bytes, sizeof text_bytes);
	hd_fn_event_write(&e, &text);
	must(!text.full && !hd_fn_event_read(text.at, text.len, arena, &back, NULL));
	must(!strcmp(e.host, back.host) && e.port == back.port && hd_sha256_same(&e.token, &back.token));
}

static void answer(const char *at, size_t len, struct hd_arena *arena)
{
	struct hd_fn_answer a, back;
	struct hd_text text;

	if (hd_fn_answer_read(at, len, arena, &a, NULL))
		return;
	hd_text_init(&text, arena);
	hd_fn_answer_write(&a, &text);
	must(!hd_fn_answer_read(text.at, text.len, arena, &back, NULL) && back.error == a.error);
}

static void price(const char *at, size_t len, struct hd_arena *arena)
{
	struct hd_fn_price p;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_fn_price_read("f", at, len, "lambda-x86_64", arena, &p, &diag);

	must(err == HD_OK || diag.text[0]);
	must(err || (p.ntiers >= 1 && hd_fn_price_nano(&p, 1, 1) >= 0 && hd_fn_billed_ms(&p, 1) >= 1));
}

/* A log, and heads of both sides of both APIs. */
static void service(const char *at, size_t len, struct hd_arena *arena)
{
	struct hd_lambda_outcome outcome;
	struct hd_lambda_report report;
	struct hd_runtime_next next;
	struct hd_http_head head;
	char id[HD_RUNTIME_ID];
	struct hd_text text;
	size_t rest = 0;

	if (!hd_lambda_report_read(at, len, &report, &rest)) {
		struct hd_lambda_report back;
		size_t end = 0;
		must(rest <= len);
		hd_text_init(&text, arena);
		hd_lambda_report_write(&report, &text);
		must(!hd_lambda_report_read(text.at, text.len, &back, &end));
		must(back.billed_ms == report.billed_ms && back.memory_mb == report.memory_mb);
	}
	if (!hd_http_read_head(HD_HTTP_AN_ANSWER, at, len, &head)) {
		(void)!hd_runtime_read_next(&head, &next, NULL);
		(void)!hd_lambda_read_outcome(&head, &outcome, NULL);
	}
	if (!hd_http_read_head(HD_HTTP_A_REQUEST, at, len, &head))
		(void)hd_runtime_call(&head, id);
}

static void hello(const uint8_t *at, size_t len, struct hd_arena *arena)
{
	struct hd_fn_hello h;
	struct hd_text text;

	if (hd_fn_hello_get(at, len, &h, NULL))
		return;
	hd_text_init(&text, arena);
	hd_fn_hello_put(&h, &text);
	must(text.len == len && !memcmp(text.at, at, len));
}

static void work(const uint8_t *at, size_t len, struct hd_arena *arena)
{
	static struct hd_fn_work w;
	struct hd_text text;

	if (hd_fn_work_get(at, len, &w, NULL))
		return;
	hd_text_init(&text, arena);
	hd_fn_work_put(&w, &text);
	must(text.len == len && !memcmp(text.at, at, len));
}

static void frame(const uint8_t *at, size_t len)
{
	uint8_t again[HD_FN_FRAME];
	struct hd_fn_frame f;

	if (len < HD_FN_FRAME || hd_fn_frame_get(at, &f, NULL))
		return;
	if (f.len != len - HD_FN_FRAME || hd_fn_frame_check(&f, at + HD_FN_FRAME, NULL))
		return;
	hd_fn_frame_put(f.type, at + HD_FN_FRAME, f.len, again);
	must(!memcmp(again, at, sizeof again));
}

static void base64(const char *at, size_t len, struct hd_arena *arena)
{
	uint8_t *out = hd_arena_take(arena, len + 1, 1);
	struct hd_text text;
	size_t n = 0;

	if (!out || !hd_base64_read((struct hd_http_span){ at, len }, out, len, &n))
		return;
	hd_text_init(&text, arena);
	hd_text_add(&text, "");
	hd_base64_write(out, n, &text);
	must(text.len == len && !memcmp(text.at, at, len));
}

/* A shared file of AWS, and an endpoint. What a key is stands in no message. */
static void credentials(const char *at, size_t len)
{
	static struct hd_aws_credentials keys;
	struct hd_diag diag = { "" };
	char region[HD_AWS_REGION];

	enum hd_err err = hd_aws_credentials_read("f", at, len, "default", &keys, &diag);
	must(err == HD_OK ? keys.key_id[0] && keys.secret[0] : diag.text[0] != 0);
	must(memchr(keys.token, 0, sizeof keys.token) && memchr(keys.secret, 0, sizeof keys.secret));
	must(!err || !strstr(diag.text, "SECRET"));
	hd_aws_region_of(at, region);
	must(memchr(region, 0, sizeof region));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;

	if (!len)
		return 0;
	hd_arena_init(&arena, 64 << 20);
	const uint8_t *at = bytes + 1;
	char *text = hd_arena_text(&arena, (const char *)at, len - 1);
	switch (bytes[0]) {
	case 'e': event(text, len - 1, &arena); break;
	case 'a': answer(text, len - 1, &arena); break;
	case 'p': price(text, len - 1, &arena); break;
	case 's': service(text, len - 1, &arena); break;
	case 'h': hello(at, len - 1, &arena); break;
	case 'w': work(at, len - 1, &arena); break;
	case 'f': frame(at, len - 1); break;
	case 'b': base64(text, len - 1, &arena); break;
	case 'c': credentials(text, len - 1); break;
	default: break;
	}
	hd_arena_finish(&arena);
	return 0;
}
