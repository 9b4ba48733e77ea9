#include "daemon/rest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/near.h"
#include "base/num.h"
#include "scheduler/sched_policy.h"

/* The status of each error that a handler may give; others are 500. */
static const struct { enum hd_err err; int status; } statuses[] = {
	{ HD_E_INVAL, 400 }, { HD_E_INPUT, 422 }, { HD_E_NOTFOUND, 404 }, { HD_E_EXISTS, 409 }, { HD_E_AGAIN, 503 }, { HD_E_REFUSED, 507 },
	{ HD_E_NOSPACE, 507 },
};

int hd_rest_status(enum hd_err err)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].err == err)
			return statuses[i].status;
	return err ? 500 : 200;
}

void hd_rest_refuse(struct hd_rest_response *r, int status, enum hd_err err, const char *sentence,
	struct hd_arena *arena)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	hd_fields_put_object(&hd_answer_error_fields, 0, &(struct hd_answer_error){ .error = sentence,
		.code = err, .exit = hd_err_exit(err) }, NULL, &w);
	*r = (struct hd_rest_response){ status, "application/json", NULL, NULL, text.full ? "{}" : text.at,
		text.full ? 2 : text.len, err, "" };
}

/* ---- before the body ---- */

struct judge {
	const struct hd_rest_gate *gate;
	const struct hd_rest_request *request;
	struct hd_arena *arena;
	struct hd_rest_response *no;
};

__attribute__((format(printf, 4, 5)))
static bool refuse(struct judge *j, int status, enum hd_err err, const char *fmt, ...)
{
	struct hd_diag diag = { "" };
	char text[sizeof diag.text];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	(void)hd_fail(&diag, err, "%s", text);            /* which makes any byte printable */
	hd_rest_refuse(j->no, status, err, diag.text, j->arena);
	return false;
}

static bool is_token(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!strchr("!#$%&'*+-.^_`|~", *text) && !(*text >= '0' && *text <= '9') &&
			!((*text | 32) >= 'a' && (*text | 32) <= 'z'))
			return false;
	return true;
}

static bool is_target(const char *text)
{
	for (; *text; text++)
		if (!strchr("-._~/?&=", *text) && !(*text >= '0' && *text <= '9') &&
			!((*text | 32) >= 'a' && (*text | 32) <= 'z'))
			return false;
	return true;
}

static bool good_line(struct judge *j)
{
	const struct hd_rest_request *r = j->request;

	if (strcmp(r->version, "HTTP/1.1") != 0)
		return refuse(j, 505, HD_E_INVAL, "HTTP/1.1 is spoken here, not \"%.20s\"", r->version);
	if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "POST") != 0) {
		(void)refuse(j, 405, HD_E_INVAL, "the method %.20s: there are GET and POST", r->method);
		j->no->allow = "GET, POST";
		return false;
	}
	if (strlen(r->target) > HD_REST_TARGET)
		return refuse(j, 414, HD_E_INVAL, "the target has %zu bytes: at most %d", strlen(r->target),
			HD_REST_TARGET);
	if (r->target[0] != '/' || !is_target(r->target))
		return refuse(j, 400, HD_E_INVAL,
			"the target \"%.80s\" is not a path of letters, digits and -._~ (/v1/schema lists "
			"them)", r->target);
	return true;
}

/* Those that mean something here: at most once each. */
enum header { HOST, ORIGIN, AUTHORIZATION, CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING, IF_NONE_MATCH,
	NKNOWN };
static const char *const known[NKNOWN] = { "Host", "Origin", "Authorization", "Content-Type",
	"Content-Length", "Transfer-Encoding", "If-None-Match" };

static bool good_headers(struct judge *j, const char *value[NKNOWN])
{
	const struct hd_rest_request *r = j->request;

	memset(value, 0, NKNOWN * sizeof *value);
	if (r->nheaders > HD_REST_HEADERS)
		return refuse(j, 431, HD_E_INVAL, "%zu headers: at most %d", r->nheaders, HD_REST_HEADERS);
	for (size_t i = 0; i < r->nheaders; i++) {
		if (!is_token(r->header[i].name))
			return refuse(j, 400, HD_E_INVAL, "\"%.40s\" is not the name of a header",
				r->header[i].name);
		for (int k = 0; k < NKNOWN; k++) {
			if (strcasecmp(r->header[i].name, known[k]) != 0)
				continue;
			if (value[k])
				return refuse(j, 400, HD_E_INVAL, "the header %s stands there twice",
					known[k]);
			value[k] = r->header[i].value;
		}
	}
	if (value[TRANSFER_ENCODING])
		return refuse(j, 400, HD_E_INVAL,
			"Transfer-Encoding is not taken: send the body with a Content-Length");
	return true;
}

/* "localhost", "127.0.0.1", "[::1]", with the port that is served: an authority of this machine. */
static bool is_ours(const char *authority, uint16_t port)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	char end[8] = "";

	if (port)
		snprintf(end, sizeof end, ":%u", (unsigned)port);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t len = strlen(names[i]);
		if (!strncasecmp(authority, names[i], len) && !strcmp(authority + len, end))
			return true;
	}
	return false;
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' &&
	(c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* Looks at every digit, whichever differ: what it takes tells nothing of the token. */
static bool is_token_of(const struct hd_key *token, const char *text)
{
	unsigned differs = strlen(text) != 2 * HD_KEY_BYTES;

	if (differs)
		return false;
	for (size_t i = 0; i < HD_KEY_BYTES; i++)
		differs |= (unsigned)(hex(text[2 * i]) * 16 + hex(text[2 * i + 1])) ^ token->byte[i];
	return differs == 0;
}

/* Asked for by this machine, and not by a page of another site. */
static bool is_local(struct judge *j, const char *const value[NKNOWN])
{
	if (!value[HOST] || !is_ours(value[HOST], j->gate->port))
		return refuse(j, 421, HD_E_INVAL,
			"Host \"%.60s\" is not this machine by a loopback name and the port it serves",
			value[HOST] ? value[HOST] : "");
	if (value[ORIGIN] && (strncmp(value[ORIGIN], "http://", 7) != 0 ||
		!is_ours(value[ORIGIN] + 7, j->gate->port)))
		return refuse(j, 403, HD_E_INVAL,
			"requests of pages from elsewhere (Origin \"%.60s\") are not answered",
			value[ORIGIN]);
	return true;
}

enum hd_err hd_identify_owner(void *self, const struct hd_credential *credential, struct hd_caller *by,
	struct hd_diag *diag)
{
	(void)self;
	(void)diag;
	*by = credential->local ? hd_caller_owner(credential->user.uid, credential->user.gid, "") :
		hd_caller_owner(hd_account_self(), HD_NO_UID, "");
	return HD_OK;
}

static bool refuse_token(struct judge *j)
{
	return refuse(j, 401, HD_E_INVAL,
		"the header \"Authorization: Bearer TOKEN\" is missing or has another token: the owner's "
		"stands in the file `token` of the daemon's folder, a user's is made by `heddle user token`");
}

/* A connection of this machine says by itself whose it is, and no token changes that. */
static bool let_in(struct judge *j, const char *const value[NKNOWN], struct hd_rest_way *way)
{
	const struct hd_handler *handler = j->gate->handler;
	const char *bearer = value[AUTHORIZATION];
	struct hd_credential *c = &way->credential;
	struct hd_diag why = { "" };

	*c = j->gate->from;
	if (j->gate->token && (!bearer || strncasecmp(bearer, "Bearer ", 7) != 0))
		return refuse_token(j);
	if (j->gate->token) {
		c->bearer = bearer + 7;
		c->start_token = is_token_of(j->gate->token, bearer + 7);
	}
	if (j->gate->token && !c->start_token && (!handler || handler->identify == hd_identify_owner))
		return refuse_token(j);
	if (!(handler && handler->identify ? handler->identify(handler->self, c, &way->by, &why) :
		hd_identify_owner(NULL, c, &way->by, &why)))
		return true;
	return j->gate->token ? refuse_token(j) : refuse(j, 403, HD_E_REFUSED, "%s", why.text);
}

/* Splits in place; false: more than there is space for. */
static bool split(char *text, const char *between, char **part, size_t cap, size_t *n)
{
	*n = 0;
	for (char *end; text; text = end) {
		if (*n == cap)
			return false;
		end = strpbrk(text, between);
		if (end)
			*end++ = 0;
		part[(*n)++] = text;
	}
	return true;
}

static const struct hd_rest_field *find_field(const struct hd_rest_field *list, const char *name, size_t len)
{
	for (; list->name; list++)
		if (strlen(list->name) == len && !memcmp(list->name, name, len))
			return list;
	return NULL;
}

/* Whether the path's parts are the pattern's; parts in braces are noted. */
static bool fits(const struct hd_rest_route *route, char *const *part, size_t nparts, struct hd_rest_way *way)
{
	const char *pattern = route->path;

	way->nparts = 0;
	/* part[0] is what stands before the first slash */
	for (size_t i = 1; i < nparts; i++) {
		if (*pattern++ != '/')
			return false;
		size_t len = strcspn(pattern, "/");
		if (*pattern == '{' && *part[i])
			way->part[way->nparts++] = (struct hd_rest_part){ find_field(route->ask, pattern + 1,
				len - 2), part[i] };
		else if (strlen(part[i]) != len || memcmp(part[i], pattern, len) != 0)
			return false;
		pattern += len;
	}
	return !*pattern;
}

static bool find_route(struct judge *j, const char *path, char *const *part, size_t nparts,
	struct hd_rest_way *way)
{
	const char *allow = NULL;

	for (const struct hd_rest_route *route = hd_rest_routes; route->method; route++) {
		if ((j->gate->run && !route->run) || !fits(route, part, nparts, way))
			continue;
		way->route = route;
		if (!strcmp(route->method, j->request->method))
			return true;
		allow = route->method;
	}
	if (!allow)
		return refuse(j, 404, HD_E_NOTFOUND, "there is no %.200s: GET /v1/schema lists what there is",
			path);
	(void)refuse(j, 405, HD_E_INVAL, "%.200s takes %s", path, allow);
	j->no->allow = allow;
	return false;
}

static bool in_path(const struct hd_rest_way *way, const struct hd_rest_field *field)
{
	for (size_t i = 0; i < way->nparts; i++)
		if (way->part[i].field == field)
			return true;
	return false;
}

static enum hd_err unknown(const struct hd_rest_way *way, const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);
	char all[300] = "none";
	size_t len = 0;

	for (const struct hd_rest_field *f = way->route->ask; f->name; f++)
		if (!in_path(way, f)) {
			hd_near_offer(&near, f->name);
			len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "",
				f->name);
		}
	return near.best ? hd_fail(diag, HD_E_INVAL, "%s %s: no member \"%.60s\"; did you mean %s?",
		way->route->method, way->route->path, name, near.best) :
		hd_fail(diag, HD_E_INVAL, "%s %s: no member \"%.60s\"; there are: %s", way->route->method,
		way->route->path, name, all);
}

/* Notes the arguments of a GET. */
static bool good_query(struct judge *j, char *query, struct hd_rest_way *way)
{
	char *arg[HD_REST_ARGUMENTS];
	struct hd_diag diag = { "" };
	size_t n;

	if (!query)
		return true;
	if (strcmp(way->route->method, "GET") != 0)
		return refuse(j, 400, HD_E_INVAL, "%s %s takes its members in the body, none after ?",
			way->route->method, way->route->path);
	if (!split(query, "&", arg, HD_REST_ARGUMENTS, &n))
		return refuse(j, 400, HD_E_INVAL, "more than %d arguments after ?", HD_REST_ARGUMENTS);
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(arg[i], "=");
		const struct hd_rest_field *field = find_field(way->route->ask, arg[i], len);
		if (!arg[i][len])
			return refuse(j, 400, HD_E_INVAL, "the argument \"%.60s\" is not NAME=VALUE", arg[i]);
		arg[i][len] = 0;
		if (!field || in_path(way, field)) {
			(void)unknown(way, arg[i], &diag);
			return refuse(j, 400, HD_E_INVAL, "%s", diag.text);
		}
		for (size_t k = 0; k < way->nargs; k++)
			if (way->part[way->nparts + k].field == field)
				return refuse(j, 400, HD_E_INVAL, "the argument %s stands there twice",
					field->name);
		way->part[way->nparts + way->nargs++] = (struct hd_rest_part){ field, arg[i] + len + 1 };
	}
	return true;
}

static bool good_body(struct judge *j, const char *const value[NKNOWN], struct hd_rest_way *way)
{
	const char *type = value[CONTENT_TYPE], *length = value[CONTENT_LENGTH];
	uint64_t len = 0;

	if (length && hd_num_u64(length, UINT64_MAX, &len, NULL))
		return refuse(j, 400, HD_E_INVAL, "Content-Length \"%.40s\" is not a number of bytes",
			length);
	if (len && (way->file || !strcmp(way->route->method, "GET")))
		return refuse(j, 400, HD_E_INVAL, "GET has no body");
	if (len > HD_REST_BODY)
		return refuse(j, 413, HD_E_INVAL, "a body of %llu bytes: at most %d", (unsigned long long)len,
			HD_REST_BODY);
	size_t mark = type ? strcspn(type, "; ") : 0;
	if (len && (mark != strlen("application/json") || strncasecmp(type, "application/json", mark) != 0))
		return refuse(j, 415, HD_E_INVAL, "a body is JSON: Content-Type: application/json");
	way->body_bytes = (size_t)len;
	return true;
}

bool hd_rest_admit(const struct hd_rest_gate *gate, const struct hd_rest_request *request,
	struct hd_arena *arena, struct hd_rest_way *way,
	struct hd_rest_response *no)
{
	struct judge j = { gate, request, arena, no };
	const char *value[NKNOWN];
	char *part[HD_REST_PARTS + 1], *query, *path, *whole;
	size_t nparts;

	*way = (struct hd_rest_way){ .run = gate->run };
	if (!good_line(&j) || !good_headers(&j, value) || !is_local(&j, value))
		return false;
	if (!strcmp(request->method, "GET") && (way->file = hd_page_find(request->target))) {
		way->known = value[IF_NONE_MATCH] && strstr(value[IF_NONE_MATCH], way->file->tag);
		return good_body(&j, value, way);
	}
	if (!let_in(&j, value, way))
		return false;
	if (!(whole = hd_arena_text(arena, request->target, strlen(request->target))) ||
		!(path = hd_arena_text(arena, whole, strcspn(whole, "?"))))
		return refuse(&j, 507, HD_E_NOMEM, "no memory for the request");
	if ((query = strchr(whole, '?')))
		*query++ = 0;
	if (!split(whole, "/", part, HD_REST_PARTS + 1, &nparts))
		return refuse(&j, 404, HD_E_NOTFOUND,
			"there is no %.200s: GET /v1/schema lists what there is", path);
	return find_route(&j, path, part, nparts, way) && good_query(&j, query, way) &&
		good_body(&j, value, way);
}

/* ---- with the body ---- */

static bool in_range(const struct hd_rest_field *f, double v) { return (f->min == 0 && f->max == 0) ||
	(v >= f->min && v <= f->max); }

static const char *words_of(const struct hd_rest_field *f)
{
	static const char *const words[] = {
#define X(id, words, type) words,
		HD_REST_KINDS(X)
#undef X
	};
	return words[f->kind];
}

static enum hd_err wrong(const struct hd_rest_way *way, const struct hd_rest_field *f, struct hd_diag *diag)
{
	char range[80] = "";

	if ((f->min != 0 || f->max != 0) && (f->kind == HD_REST_TEXT || f->kind == HD_REST_JOB))
		snprintf(range, sizeof range, " of 1 to %.0f bytes", f->max);
	else if (f->min != 0 || f->max != 0)
		snprintf(range, sizeof range, " from %g to %g", f->min, f->max);
	return hd_fail(diag, HD_E_INVAL, "%s %s: %s is %s%s (%s)", way->route->method, way->route->path,
		f->name, words_of(f), range, f->about);
}

static bool good_text(const struct hd_rest_field *f, const char *text) { return *text &&
	in_range(f, (double)strlen(text)); }

/* A member of path or query, by its kind, into the question. */
static enum hd_err put_part(struct hd_json_writer *w, const struct hd_rest_way *way,
	const struct hd_rest_part *part, struct hd_diag *diag)
{
	const struct hd_rest_field *f = part->field;
	bool digits = strspn(part->text, "0123456789") == strlen(part->text);
	int64_t n = 0;
	double v = 0;

	if (f->kind == HD_REST_INT || (f->kind == HD_REST_JOB && digits)) {
		if (hd_num_i64(part->text, 0, INT64_MAX, &n, NULL) ||
			(f->kind == HD_REST_INT && !in_range(f, (double)n)))
			return wrong(way, f, diag);
		hd_json_put_i64(w, f->name, n);
	} else if (f->kind == HD_REST_REAL) {
		if (hd_num_f64(part->text, -1e300, 1e300, &v, NULL) || !in_range(f, v))
			return wrong(way, f, diag);
		hd_json_put_f64(w, f->name, v);
	} else if (f->kind == HD_REST_BOOL) {
		if (strcmp(part->text, "true") != 0 && strcmp(part->text, "false") != 0)
			return wrong(way, f, diag);
		hd_json_put_bool(w, f->name, *part->text == 't');
	} else {
		if (!good_text(f, part->text))
			return wrong(way, f, diag);
		hd_json_put_text(w, f->name, part->text);
	}
	return HD_OK;
}

static bool put_texts(struct hd_json_writer *w, const struct hd_rest_field *f, const struct hd_json *value)
{
	const char *text;

	if (hd_json_kind(value) != HD_JSON_ARRAY)
		return false;
	hd_json_open_array(w, f->name);
	for (size_t i = 0; i < hd_json_count(value); i++) {
		if (hd_json_as_text(hd_json_item(value, i), &text, NULL))
			return false;
		hd_json_put_text(w, NULL, text);
	}
	hd_json_close(w);
	return true;
}

static bool put_numbers(struct hd_json_writer *w, const struct hd_rest_field *f, const struct hd_json *value)
{
	double v;

	if (hd_json_kind(value) != HD_JSON_OBJECT)
		return false;
	hd_json_open_object(w, f->name);
	for (size_t i = 0; i < hd_json_count(value); i++) {
		if (hd_json_as_f64(hd_json_item(value, i), &v, NULL) || !in_range(f, v))
			return false;
		hd_json_put_f64(w, hd_json_key(value, i), v);
	}
	hd_json_close(w);
	return true;
}

/* A member of the body, if it is what the row says. */
static bool put_member(struct hd_json_writer *w, const struct hd_rest_field *f, const struct hd_json *value)
{
	enum hd_json_kind is = hd_json_kind(value);
	const char *text;
	int64_t n;
	double v;
	bool b;

	switch (f->kind) {
	case HD_REST_JOB:
	case HD_REST_INT:
		if (is == HD_JSON_TEXT && f->kind == HD_REST_JOB && !hd_json_as_text(value, &text, NULL) &&
			good_text(f, text)) {
			hd_json_put_text(w, f->name, text);
			return true;
		}
		if (is != HD_JSON_INT || hd_json_as_i64(value, INT64_MIN, INT64_MAX, &n, NULL) ||
			(f->kind == HD_REST_INT && !in_range(f, (double)n)))
			return false;
		hd_json_put_i64(w, f->name, n);
		return true;
	case HD_REST_REAL:
		if ((is != HD_JSON_INT && is != HD_JSON_REAL) || hd_json_as_f64(value, &v, NULL) ||
			!in_range(f, v))
			return false;
		hd_json_put_f64(w, f->name, v);
		return true;
	case HD_REST_TEXT:
		if (is != HD_JSON_TEXT || hd_json_as_text(value, &text, NULL) || !good_text(f, text))
			return false;
		hd_json_put_text(w, f->name, text);
		return true;
	case HD_REST_BOOL:
		if (is != HD_JSON_BOOL || hd_json_as_bool(value, &b, NULL))
			return false;
		hd_json_put_bool(w, f->name, b);
		return true;
	case HD_REST_TEXTS:
		return put_texts(w, f, value);
	case HD_REST_NUMBERS:
		return put_numbers(w, f, value);
	}
	return false;
}

static bool given(const struct hd_rest_way *way, const struct hd_json *body,
	const struct hd_rest_field *field)
{
	for (size_t i = 0; i < way->nparts + way->nargs; i++)
		if (way->part[i].field == field)
			return true;
	return body && hd_json_find(body, field->name);
}

/* The question: members of path, query and body, each as its row says. */
static enum hd_err make_ask(const struct hd_rest_way *way, const char *body, size_t len,
	struct hd_arena *arena, const struct hd_json **ask,
	struct hd_diag *diag)
{
	const struct hd_json *members = NULL;
	struct hd_json_writer w;
	struct hd_text text;
	enum hd_err err = HD_OK;

	if (len && hd_json_parse(arena, "body", body, len, &members, diag))
		return HD_E_INVAL;
	if (members && hd_json_kind(members) != HD_JSON_OBJECT)
		return hd_fail(diag, HD_E_INVAL, "the body is an object of members");
	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "do", way->route->what);
	for (size_t i = 0; i < way->nparts + way->nargs && !err; i++)
		err = put_part(&w, way, &way->part[i], diag);
	for (size_t i = 0; !err && members && i < hd_json_count(members); i++) {
		const char *key = hd_json_key(members, i);
		const struct hd_rest_field *f = find_field(way->route->ask, key, strlen(key));
		if (!f || in_path(way, f))
			err = unknown(way, key, diag);
		else if (!put_member(&w, f, hd_json_item(members, i)))
			err = wrong(way, f, diag);
	}
	for (const struct hd_rest_field *f = way->route->ask; f->name && !err; f++)
		if (f->needed && !given(way, members, f))
			err = hd_fail(diag, HD_E_INVAL, "%s %s needs %s: %s (%s)", way->route->method,
				way->route->path, f->name, words_of(f), f->about);
	if (err)
		return err;
	hd_json_close(&w);
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the question") : hd_json_parse(arena,
		"question", text.at, text.len, ask, diag);
}

static void fill_policies(void *user, struct hd_json_writer *w)
{
	static const char *const names[] = {
#define X(id, name) name,
		HD_VARIANTS(X)
#undef X
	};
	(void)user;
	for (const struct hd_sched_policy *row = hd_sched_policies; row->name; row++) {
		const char *variant[HD_NVARIANTS];
		struct hd_answer_built built = { .name = row->name, .about = row->about,
			.measure = row->measure, .variants.at = variant,
			.built = !(row->powers & HD_POLICY_LP) || hd_policy_has_lp() };
		for (int v = 0; v < HD_NVARIANTS; v++)
			if (row->variants & 1u << v)
				variant[built.variants.n++] = names[v];
		hd_fields_put_object(&hd_answer_built_fields, 0, &built, NULL, w);
	}
}

static void put_policies(struct hd_json_writer *w)
{
	hd_fields_put(&hd_answer_policies_fields, 0,
		&(struct hd_answer_policies){ .policies.fill = fill_policies }, w);
}

static enum hd_err make_answer(const struct hd_handler *handler, const struct hd_rest_way *way,
	const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	switch (way->route->how) {
	case HD_REST_STREAM:
	case HD_REST_ASK:
	case HD_REST_METRICS:
		return handler->answer(handler->self, &way->by, way->route->what, ask, w, diag);
	case HD_REST_SCHEMA:
		hd_rest_schema(way->run, w);
		return HD_OK;
	case HD_REST_POLICIES:
		put_policies(w);
		return HD_OK;
	}
	return hd_fail(diag, HD_E_BUG, "a route without a way to answer");
}

static void give_file(const struct hd_rest_way *way, struct hd_rest_response *response)
{
	const struct hd_page_file *f = way->file;

	*response = (struct hd_rest_response){ way->known ? 304 : 200, f->type, NULL, f, f->bytes,
		way->known ? 0 : f->len, HD_OK, "" };
}

/* What was answered as JSON, as text. */
static enum hd_err in_numbers(struct hd_text *text, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *answer = NULL;
	struct hd_text as_text;
	enum hd_err err = text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for numbers") :
		hd_json_parse(arena, "answer", text->at, text->len, &answer, diag);

	hd_text_init(&as_text, arena);
	if (!err)
		hd_rest_metrics(answer, &as_text);
	if (!err)
		*text = as_text;
	return err;
}

/* Of a job that was taken the one that it counts to; else the one that was asked for, granted or not. */
static void find_account(const struct hd_rest_way *way, const struct hd_json *ask, struct hd_arena *arena,
	struct hd_rest_response *response)
{
	const struct hd_json *in = ask;
	const char *name = "";

	if (!way->route->changes)
		return;
	if (!response->err && way->route->answer == &hd_answer_submitted_fields &&
		hd_json_parse(arena, "answer", response->body, response->len, &in, NULL))
		return;
	if (in && hd_json_find(in, "account") && !hd_json_get_text(in, "account", &name, NULL))
		snprintf(response->account, sizeof response->account, "%.64s", name);
}

void hd_rest_reply(const struct hd_handler *handler, const struct hd_rest_way *way, const char *body,
	size_t len, struct hd_arena *arena,
	struct hd_rest_response *response)
{
	const struct hd_json *ask = NULL;
	struct hd_diag diag = { "" };
	struct hd_json_writer w;
	struct hd_text text;

	if (way->file) {
		give_file(way, response);
		return;
	}
	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	enum hd_err err = make_ask(way, body, len, arena, &ask, &diag);
	if (!err && way->route->how != HD_REST_SCHEMA && way->route->how != HD_REST_POLICIES &&
		hd_caller_may(&way->by, way->route->what, ask, &diag)) {
		hd_rest_refuse(response, 403, HD_E_REFUSED, diag.text, arena);
		find_account(way, ask, arena, response);
		return;
	}
	if (!err)
		err = make_answer(handler, way, ask, &w, &diag);
	while (!err && w.depth)
		hd_json_close(&w);
	bool numbers = way->route->how == HD_REST_METRICS;
	if (!err && numbers)
		err = in_numbers(&text, arena, &diag);
	if (!err && (text.full || text.len > HD_REST_ANSWER))
		err = hd_fail(&diag, HD_E_NOSPACE, "the answer is longer than %d bytes: ask for a part of it",
			HD_REST_ANSWER);
	if (err)
		hd_rest_refuse(response, hd_rest_status(err), err,
			diag.text[0] ? diag.text : hd_err_text(err), arena);
	else
		*response = (struct hd_rest_response){ 200,
			numbers ? "text/plain; version=0.0.4; charset=utf-8" : "application/json", NULL, NULL,
			text.at, text.len, HD_OK, "" };
	find_account(way, ask, arena, response);
}
