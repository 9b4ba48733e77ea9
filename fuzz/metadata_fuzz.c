/* metadata_fuzz -- whatever a script and a client say, the services that are played answer whole messages of
 * HTTP that read back, hold a request for a bounded time or on purpose, and take no event that they would not
 * print. The input: pieces ended by a line "%%", a line of a script or a request each; `{` begins the former.
 * */
#define _GNU_SOURCE        /* of the C library: memmem */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void play(struct hd_metadata *m, const char *line, size_t len, int64_t now_ns)
{
	struct hd_metadata_event event;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_metadata_read(line, len, &event, &diag);

	must(err == HD_OK || (err == HD_E_INPUT && diag.text[0]) || err == HD_E_NOMEM);
	if (err)
		return;
	must(event.at_ns >= 0 && event.late_ns >= 0 && *event.node && !strpbrk(event.node, "/ \r\n\"\\"));
	if (hd_metadata_add(m, &event))
		(void)hd_metadata_turn(m, now_ns, now_ns);
	must(m->nscript <= HD_METADATA_SCRIPT && m->nnodes <= HD_METADATA_NODES);
}

static void look_at_answer(const char *out, size_t len)
{
	static char body[4096];
	struct hd_http_head head;
	size_t n = 0;

	must(hd_http_read_head(HD_HTTP_AN_ANSWER, out, len, &head) == HD_OK);
	must(hd_http_read_body(&head, out + head.len_bytes, len - head.len_bytes, true, body, sizeof body,
		&n) == HD_OK);
	must(head.len_bytes + n == len);
}

static void ask(struct hd_metadata *m, const char *text, size_t len, int64_t now_ns)
{
	static char out_bytes[2048], body[HD_METADATA_BODY];
	struct hd_http_head head;
	struct hd_text out;
	int64_t until_ns = 0;
	size_t n = 0;

	if (hd_http_read_head(HD_HTTP_A_REQUEST, text, len, &head) ||
		hd_http_read_body(&head, text + head.len_bytes, len - head.len_bytes, true, body, sizeof body,
		&n))
		return;
	const struct hd_metadata_request r = { .head = &head, .body = body, .came_ns = now_ns };
	hd_text_fixed(&out, out_bytes, sizeof out_bytes);
	enum hd_err err = hd_metadata_answer(m, &r, now_ns, now_ns, &out, &until_ns);
	must(!out.full && (err == HD_OK || err == HD_E_AGAIN));
	must(err == HD_OK || until_ns > now_ns);
	if (!err && out_bytes[0] == 'H')
		look_at_answer(out.at, out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct hd_metadata m;
	const char *at = (const char *)bytes, *end = at + len;
	int64_t now_ns = INT64_C(1505722800000000000);

	hd_metadata_init(&m, now_ns);
	for (int i = 0; at < end && i < 64; i++) {
		const char *mark = memmem(at, (size_t)(end - at), "%%\n", 3);
		size_t n = (size_t)((mark ? mark : end) - at);
		now_ns += INT64_C(1000000000);
		if (n && *at == '{')
			play(&m, at, n, now_ns);
		else
			ask(&m, at, n, now_ns);
		at = mark ? mark + 3 : end;
	}
	return 0;
}
