/* Of each caller, by account or token: any request is refused with a reason and asks none, or becomes a
 * question that the caller may ask, whose members the route's table
 * has, or is a file of the page; every response is JSON with a status, but for these and for numbers. The
 * input: a line "METHOD TARGET VERSION", lines "Name: value", an empty line, the body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* An account that is refused, and what is left in place of it: no account has that number. */
enum { REFUSED = 13, NOT_KNOWN = 4096 };

static int asked;

/* An account is a user, an operator, an admin or refused by its number; so is a token by its first byte. */
static enum hd_err identify(void *self, const struct hd_credential *c, struct hd_caller *by,
	struct hd_diag *diag)
{
	uint32_t uid = c->bearer ? (uint8_t)*c->bearer : c->user.uid;

	(void)self;
	*by = (struct hd_caller){ .uid = uid, .role = (enum hd_role)(uid % 4) };
	if (uid % 4 != 3 && uid != REFUSED)
		return HD_OK;
	by->uid = NOT_KNOWN;
	by->role = HD_ROLE_ADMIN;
	return hd_fail(diag, HD_E_REFUSED, "no user");
}

static bool has(const struct hd_rest_field *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return true;
	return false;
}

/* Some route of that question has each member. */
static enum hd_err answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	bool known = false;

	(void)self, (void)diag;
	asked++;
	/* of a refused credential, and of one that may not ask that, nothing comes here */
	if (by->uid == NOT_KNOWN || hd_caller_may(by, what, ask, NULL))
		abort();
	for (const struct hd_rest_route *r = hd_rest_routes; r->method && !known; r++) {
		known = !strcmp(r->what, what);
		for (size_t i = 0; known && i < hd_json_count(ask); i++)
			known = !strcmp(hd_json_key(ask, i), "do") || has(r->ask, hd_json_key(ask, i));
	}
	if (!known)
		abort();
	hd_json_put_text(w, "what", what);
	return HD_OK;
}

/* The line up to `end`, ended by 0; what follows it. */
static char *cut(char *at, const char *end)
{
	size_t n = strcspn(at, end);
	char *next = at[n] ? at + n + 1 : at + n;

	at[n] = 0;
	return next;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct hd_handler door = { NULL, answer, identify };
	static const struct hd_key key = { { 1 } };
	struct hd_rest_header header[HD_REST_HEADERS + 1];
	struct hd_rest_gate gate = { .handler = len % 5 ? &door : NULL, .from = { .local = true,
		.user = { .uid = (uint32_t)(len % 17) } } };
	struct hd_rest_response response;
	const struct hd_json *json;
	struct hd_rest_way way;
	struct hd_arena arena;

	hd_arena_init(&arena, 64 << 20);
	char *text = hd_arena_text(&arena, (const char *)bytes, len), *at = text;
	struct hd_rest_request r = { .header = header, .method = at };
	char *head = strstr(text, "\n\n"), *body = head ? head + 2 : text + strlen(text);
	if (head)
		head[1] = 0;
	r.target = at = cut(at, " ");
	r.version = at = cut(at, " ");
	at = cut(at, "\n");
	while (*at && r.nheaders <= HD_REST_HEADERS) {
		char *line = at;
		at = cut(at, "\n");
		char *value = cut(line, ":");
		header[r.nheaders++] = (struct hd_rest_header){ line, value + strspn(value, " ") };
	}
	if (r.nheaders > 20)
		gate = (struct hd_rest_gate){ .token = &key, .port = 80, .run = r.nheaders % 2,
			 .handler = len % 5 ? &door : NULL };
	asked = 0;
	bool admitted = hd_rest_admit(&gate, &r, &arena, &way, &response);
	if (admitted)
		hd_rest_reply(&door, &way, body, len - (size_t)(body - text), &arena, &response);
	if (response.status < 200 || response.status > 599 || response.status == 500 || (!response.file &&
		strncmp(response.type, "text/plain", 10) != 0 &&
		hd_json_parse(&arena, "f", response.body, response.len, &json, NULL)))
		abort();
	if ((response.status == 200 || response.status == 304) != (response.err == HD_OK) ||
		(response.file && asked) || (asked && response.err))
		abort();
	hd_arena_finish(&arena);
	return 0;
}
