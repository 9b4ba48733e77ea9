#include "data/blob.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/clock.h"
#include "sys/crypto_key.h"
#include "sys/file.h"
#include "sys/lock.h"
#include "sys/process.h"
#include "sys/web_get.h"
#include "data/credentials.h"
#include "data/range_head.h"

enum { LINES = 3, SAYS_FIRST_S = 3, SAYS_EACH_S = 10 };
#define CHANGED "the object was changed while it is in use: put the old one back, or begin another run " \
	"with the new one"

/* A request of a call: waiting until `at_ns`, or under way, or done. */
struct flight {
	const struct hd_request *request;
	uint32_t tries, hops;
	int64_t at_ns, began_ns;
	bool under_way, done;
	char place[HD_HTTP_PLACE];        /* where a redirect led; "": the store's own */
};

/* Connections of one thread at a time. */
struct http_lane {
	struct hd_web_gets *gets;
	struct flight flight[HD_WEB_GETS];
	char why[HD_WEB_GET_WHY];         /* of the last try that failed */
	struct http_lane *after;
};

struct http_store {
	struct hd_blob store;
	struct hd_url url;
	char at[HD_HTTP_PLACE];           /* what is asked for: s3 is some https */
	bool plain;
	uint32_t tries;
	char sign[128];                   /* "": unsigned */
	char keys[2 * HD_AWS_KEY + 2];
	struct hd_aws_credentials credentials;
	struct hd_lock lock;
	struct http_lane *lane;                /* that no call has */
	struct hd_clock clock;
	char ca[HD_PATH_CAP];             /* "": the system's */
};

/* ---- answers ---- */

enum verdict { DONE, AGAIN, FOLLOW, FAILED };

static const struct { uint32_t status; enum verdict verdict; enum hd_err err; const char *why; } statuses[] =
	{
	{ 301, FOLLOW, HD_OK, "" }, { 302, FOLLOW, HD_OK, "" }, { 303, FOLLOW, HD_OK, "" },
	{ 307, FOLLOW, HD_OK, "" }, { 308, FOLLOW, HD_OK, "" },
	{ 408, AGAIN, HD_OK, "" }, { 429, AGAIN, HD_OK, "" }, { 500, AGAIN, HD_OK, "" },
	{ 502, AGAIN, HD_OK, "" }, { 503, AGAIN, HD_OK, "" }, { 504, AGAIN, HD_OK, "" },
	{ 401, FAILED, HD_E_REFUSED, "it wants keys: for s3 set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" },
	{ 403, FAILED, HD_E_REFUSED, "it refuses: are the keys right, and not expired?" },
	{ 404, FAILED, HD_E_NOTFOUND, "there is no such object" },
	{ 410, FAILED, HD_E_NOTFOUND, "the object is gone" },
	{ 412, FAILED, HD_E_INTEGRITY, CHANGED },
	{ 416, FAILED, HD_E_INPUT, "it has no such bytes: the index is of another object, or it is empty" },
};

static enum hd_err fail(const struct http_store *s, const struct flight *f, enum hd_err err, uint32_t status,
	const char *why, struct hd_diag *diag)
{
	if (!status)
		return hd_fail(diag, err, "%s: bytes %" PRIu64 " to %" PRIu64 ": %s", s->store.name,
			f->request->offset, f->request->offset + f->request->len - 1, why);
	return hd_fail(diag, err, "%s: bytes %" PRIu64 " to %" PRIu64 " were answered with %u: %s",
		s->store.name,
		f->request->offset, f->request->offset + f->request->len - 1, status, why);
}

/* Of 206 and 200: what is wrong with it; NULL: nothing. The answer to the opening says how long the object
 * is. */
static const char *wrong_with(const struct http_store *s, const struct hd_request *r,
	const struct hd_web_gotten *g, const struct hd_range_head *h)
{
	const uint64_t size = s->store.size_bytes ? s->store.size_bytes : h->total;

	if (g->status == 200)
		return s->store.size_bytes && !r->offset && r->len == size ? NULL :
			"that is all of it, so this server does not read by ranges: copy the object to a "
			"file, or use another server";
	if (!h->has_range)
		return "it does not say which bytes these are";
	if (h->total != size)
		return "it now has another length";
	if (h->first != r->offset || h->end != r->offset + r->len)
		return "it says that these are other bytes than those that were asked for";
	return g->too_long ? "more bytes than were asked for came" : NULL;
}

static enum verdict judge_body(const struct http_store *s, const struct flight *f,
	const struct hd_web_gotten *g, const struct hd_range_head *h, enum hd_err *err, struct hd_diag *diag)
{
	const bool other = s->store.version[0] && h->etag[0] && strcmp(s->store.version, h->etag) != 0;
	const char *why = other ? CHANGED : wrong_with(s, f->request, g, h);

	if (!why)
		return g->len == f->request->len && !g->too_long ? DONE : AGAIN;
	*err = fail(s, f, other ? HD_E_INTEGRITY : HD_E_PROTOCOL, g->status, why, diag);
	return FAILED;
}

static enum verdict judge(const struct http_store *s, const struct flight *f, const struct hd_web_gotten *g,
	struct hd_range_head *h, enum hd_err *err, struct hd_diag *diag)
{
	*h = (struct hd_range_head){ 0 };
	if (g->err == HD_E_REFUSED) {
		*err = fail(s, f, HD_E_REFUSED, 0, g->why, diag);
		return FAILED;
	}
	if (g->err)
		return AGAIN;
	if ((*err = hd_range_head_parse(g->head, g->head_len, h, diag)))
		return FAILED;
	if (g->status == 206 || g->status == 200)
		return judge_body(s, f, g, h, err, diag);
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].status == g->status) {
			if (statuses[i].verdict == FAILED)
				*err = fail(s, f, statuses[i].err, g->status, statuses[i].why, diag);
			return statuses[i].verdict;
		}
	*err = fail(s, f, HD_E_PROTOCOL, g->status, "nothing that a store says", diag);
	return FAILED;
}

/* Whether a URL may be asked: https, or http to this machine or with leave. */
static enum hd_err check_url(const struct http_store *s, const char *text, const struct hd_url *url,
	struct hd_diag *diag)
{
	if (url->scheme == HD_URL_HTTPS || (url->scheme == HD_URL_HTTP && (url->loopback || s->plain)))
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED,
		"%.300s: http:// to other hosts is read only with data.plain_http: "
		"what comes can be changed on its way; use https://", text);
}

static enum hd_err follow(const struct http_store *s, struct flight *f, const struct hd_range_head *h,
	struct hd_diag *diag)
{
	const char *from = f->place[0] ? f->place : s->at;
	char to[HD_HTTP_PLACE];
	struct hd_url was, is;

	if (f->hops++ == HD_BLOB_HOPS)
		return fail(s, f, HD_E_PROTOCOL, h->status, "that is one redirect too many: they lead in a "
			"circle, or name the object where it is", diag);
	if (!hd_url_follow(from, h->place, to, sizeof to) || hd_url_parse(to, &is, NULL) ||
		hd_url_parse(from, &was, NULL))
		return fail(s, f, HD_E_PROTOCOL, h->status, "a redirect to no place that can be read", diag);
	if (was.scheme == HD_URL_HTTPS && is.scheme != HD_URL_HTTPS)
		return fail(s, f, HD_E_REFUSED, h->status, "a redirect from https to http is not followed",
			diag);
	memcpy(f->place, to, sizeof to);
	return check_url(s, to, &is, diag);
}

/* ---- requests ---- */

static void put(void *user, uint64_t name, uint64_t at, const void *bytes, size_t len)
{
	const struct http_lane *lane = user;
	const struct hd_request *r = lane->flight[name].request;

	hd_ranges_put(r, r->offset + at, bytes, len);
}

/* If-Match takes strong names of versions alone. */
static enum hd_err begin(struct http_store *s, struct http_lane *lane, uint32_t i, struct hd_diag *diag)
{
	struct flight *f = &lane->flight[i];
	char range[80], match[HD_BLOB_VERSION + 16];
	const char *line[LINES] = { range, "Accept-Encoding: identity", match }, *url = f->place[0] ?
		f->place :
		s->at;
	const bool strong = s->store.version[0] == '"';
	struct hd_url to;
	enum hd_err err = hd_url_parse(url, &to, diag);

	if (err)
		return err;
	(void)snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, f->request->offset,
		f->request->offset + f->request->len - 1);
	(void)snprintf(match, sizeof match, "If-Match: %s", s->store.version);
	const bool own = !strcmp(to.origin, s->url.origin);
	const struct hd_web_get get = { .name = i, .url = url, .line = line, .nlines = strong ? LINES :
		LINES - 1,
		.sign = s->sign[0] && own ? s->sign : NULL, .keys = s->keys,
		.token = s->credentials.token[0] ? s->credentials.token : NULL,
		.plain = to.scheme == HD_URL_HTTP, .loopback = to.loopback, .cap = f->request->len, .put =
			put,
		.user = lane };
	err = hd_web_gets_begin(lane->gets, &get, diag);
	f->under_way = !err;
	f->began_ns = hd_clock_now_ns(&s->clock);
	return err;
}

/* One answer. */
static enum hd_err take(struct http_store *s, struct http_lane *lane, const struct hd_web_gotten *g,
	struct hd_range_head *h, struct hd_diag *diag)
{
	struct flight *f = &lane->flight[g->name];
	char why[HD_WEB_GET_WHY + 80];
	enum hd_err err = HD_OK;

	f->under_way = false;
	switch (judge(s, f, g, h, &err, diag)) {
	case DONE:
		f->done = true;
		hd_blob_served(&s->store, hd_clock_now_ns(&s->clock) - f->began_ns);
		return HD_OK;
	case FOLLOW:
		return follow(s, f, h, diag);
	case FAILED:
		return err;
	case AGAIN:
	default:
		break;
	}
	(void)snprintf(lane->why, sizeof lane->why, "%s", g->why[0] ? g->why : "the server is busy");
	if (++f->tries == s->tries) {
		(void)snprintf(why, sizeof why, "given up after %u tries%s%s", s->tries,
			g->why[0] ? ", the last one: " : "", g->why);
		return fail(s, f, HD_E_IO, g->status, why, diag);
	}
	s->store.retries++;
	f->at_ns = hd_clock_now_ns(&s->clock) + HD_NS_PER_MS * (h->has_wait ? 1000 * (int64_t)h->wait_s :
		hd_blob_backoff_ms(f->request->offset, f->tries));
	return HD_OK;
}

/* Begins what may begin; *next_ns: when the next one may. *nflying: under way. */
static enum hd_err begin_some(struct http_store *s, struct http_lane *lane, uint32_t n, uint32_t depth,
	uint32_t *nflying, int64_t *next_ns, bool *all, struct hd_diag *diag)
{
	const int64_t now = hd_clock_now_ns(&s->clock);
	enum hd_err err = HD_OK;

	*nflying = 0;
	*next_ns = INT64_MAX;
	*all = true;
	for (uint32_t i = 0; i < n; i++)
		*nflying += lane->flight[i].under_way;
	for (uint32_t i = 0; i < n && !err; i++) {
		struct flight *f = &lane->flight[i];
		*all = *all && f->done;
		if (f->done || f->under_way)
			continue;
		if (f->at_ns > now)
			*next_ns = f->at_ns < *next_ns ? f->at_ns : *next_ns;
		else if (*nflying < depth && !(err = begin(s, lane, i, diag)))
			++*nflying;
	}
	return err;
}

/* Whoever waits for long learns for what. *from_ns: when something came last; *next_ns: when to say it. */
static void say_waits(const struct http_store *s, const struct http_lane *lane, int64_t now_ns,
	int64_t from_ns, int64_t *say_ns)
{
	char text[HD_BLOB_NAME + 2 * HD_WEB_GET_WHY];

	if (!s->store.waits || now_ns < *say_ns)
		return;
	(void)snprintf(text, sizeof text, "%s: nothing came for %d s%s%s; each request is tried %u times",
		s->store.name, (int)((now_ns - from_ns) / HD_NS_PER_S), lane->why[0] ? ": " : "", lane->why,
		s->tries);
	s->store.waits(s->store.waits_user, text);
	*say_ns = now_ns + SAYS_EACH_S * HD_NS_PER_S;
}

/* Until then, or for as long as there is to be no look. */
static void wait_a_look(struct http_store *s, int64_t until_ns)
{
	const int64_t look_ns = hd_clock_now_ns(&s->clock) + HD_BLOB_LOOK_MS * HD_NS_PER_MS;

	hd_clock_wait_until(&s->clock, until_ns < look_ns ? until_ns : look_ns);
}

static enum hd_err fly(struct http_store *s, struct http_lane *lane, const struct hd_request *request,
	uint32_t n,
	uint32_t depth, struct hd_range_head *h, struct hd_diag *diag)
{
	struct hd_web_gotten gotten;
	uint32_t nflying = 0;
	int64_t next_ns, from_ns = hd_clock_now_ns(&s->clock);
	int64_t say_ns = from_ns + SAYS_FIRST_S * HD_NS_PER_S;
	bool all = false;
	enum hd_err err = HD_OK;

	lane->why[0] = '\0';
	assert(n <= HD_WEB_GETS);
	for (uint32_t i = 0; i < n; i++) {
		struct flight *f = &lane->flight[i];
		f->request = &request[i];
		f->tries = f->hops = 0;
		f->at_ns = 0;
		f->under_way = f->done = false;
		f->place[0] = '\0';
	}
	while (!err) {
		err = begin_some(s, lane, n, depth, &nflying, &next_ns, &all, diag);
		if (err || all)
			break;
		if (!nflying)
			wait_a_look(s, next_ns < say_ns ? next_ns : say_ns);
		else
			hd_web_gets_wait(lane->gets, HD_BLOB_LOOK_MS);
		if (s->store.looks)
			atomic_fetch_add_explicit(s->store.looks, 1, memory_order_relaxed);
		const int64_t now_ns = hd_clock_now_ns(&s->clock);
		while (!err && hd_web_gets_take(lane->gets, &gotten)) {
			err = take(s, lane, &gotten, h, diag);
			if (lane->flight[gotten.name].done) {
				from_ns = now_ns;
				say_ns = now_ns + SAYS_FIRST_S * HD_NS_PER_S;
			}
		}
		say_waits(s, lane, now_ns, from_ns, &say_ns);
	}
	return err;
}

/* ---- lanes ---- */

static enum hd_err lane_take(struct http_store *s, struct http_lane **out, struct hd_diag *diag)
{
	hd_lock_take(&s->lock);
	struct http_lane *lane = s->lane;
	if (lane)
		s->lane = lane->after;
	hd_lock_give(&s->lock);
	if (!lane) {
		lane = hd_alloc(sizeof *lane);
		if (!lane)
			return hd_fail(diag, HD_E_NOMEM, "no memory to read %s", s->store.name);
		lane->gets = NULL;
	}
	enum hd_err err = lane->gets ? HD_OK : hd_web_gets_open(&lane->gets, s->ca[0] ? s->ca : NULL, diag);
	if (err) {
		hd_free(lane);
		return err;
	}
	*out = lane;
	return HD_OK;
}

/* What is under way of a call that failed would write to memory of its caller. */
static void lane_give(struct http_store *s, struct http_lane *lane, bool failed)
{
	if (failed) {
		hd_web_gets_close(lane->gets);
		hd_free(lane);
		return;
	}
	hd_lock_take(&s->lock);
	lane->after = s->lane;
	s->lane = lane;
	hd_lock_give(&s->lock);
}

static enum hd_err read_with(struct http_store *s, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_range_head *h, struct hd_diag *diag)
{
	struct http_lane *lane = NULL;
	enum hd_err err = lane_take(s, &lane, diag);

	if (err)
		return err;
	err = fly(s, lane, request, n, depth, h, diag);
	lane_give(s, lane, err != HD_OK);
	return err;
}

static enum hd_err http_read(struct hd_blob *store, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	struct hd_range_head h;

	return read_with((struct http_store *)store, request, n, depth, &h, diag);
}

static void http_close(struct hd_blob *store)
{
	struct http_store *s = (struct http_store *)store;

	for (struct http_lane *lane = s->lane, *after; lane; lane = after) {
		after = lane->after;
		hd_web_gets_close(lane->gets);
		hd_free(lane);
	}
	hd_lock_finish(&s->lock);
	memset(s->keys, 0, sizeof s->keys);
	memset(&s->credentials, 0, sizeof s->credentials);
	hd_free(s);
}

static const struct hd_blob_ops http_ops = { .name = "http", .read = http_read, .close = http_close },
	s3_ops = { .name = "s3", .read = http_read, .close = http_close };

/* ---- opening ---- */

static const char *variable(const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=' && (*at)[n + 1])
			return *at + n + 1;
	return otherwise;
}

static enum hd_err read_keys(struct hd_aws_credentials *keys, struct hd_diag *diag)
{
	const char *named = variable("AWS_SHARED_CREDENTIALS_FILE", NULL);
	struct hd_arena arena;
	char path[HD_PATH_CAP];
	struct hd_fs fs;
	uint8_t *bytes;
	size_t len;

	(void)snprintf(path, sizeof path, named ? "%s" : "%s/.aws/credentials", named ? named :
		variable("HOME", ""));
	struct hd_diag why = { "" };
	enum hd_err err = hd_key_private(path, &why);
	if (err == HD_E_NOTFOUND && !named)
		return HD_OK;
	if (err)
		return hd_fail(diag, err, "%s", why.text);
	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	err = hd_file_read_all(&fs, path, &arena, HD_AWS_FILE_BYTES, &bytes, &len, diag);
	err = err ? err : hd_aws_credentials_read(path, (const char *)bytes, len, variable("AWS_PROFILE",
		"default"), keys, diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err find_keys(struct http_store *s, const char *region, struct hd_diag *diag)
{
	const char *id = variable("AWS_ACCESS_KEY_ID", NULL), *secret = variable("AWS_SECRET_ACCESS_KEY",
		NULL);
	struct hd_aws_credentials *keys = &s->credentials;
	enum hd_err err = HD_OK;

	if (!id != !secret)
		return hd_fail(diag, HD_E_INVAL,
			"AWS_%s is set, AWS_%s is not: set both, or none to use the keys "
			"of the shared file", id ? "ACCESS_KEY_ID" : "SECRET_ACCESS_KEY",
			id ? "SECRET_ACCESS_KEY" : "ACCESS_KEY_ID");
	if (id) {
		(void)snprintf(keys->key_id, sizeof keys->key_id, "%s", id);
		(void)snprintf(keys->secret, sizeof keys->secret, "%s", secret);
		(void)snprintf(keys->token, sizeof keys->token, "%s", variable("AWS_SESSION_TOKEN", ""));
	} else {
		err = read_keys(keys, diag);
	}
	if (err || !keys->key_id[0])
		return err;
	(void)snprintf(s->sign, sizeof s->sign, "aws:amz:%.80s:s3", region);
	(void)snprintf(s->keys, sizeof s->keys, "%s:%s", keys->key_id, keys->secret);
	return HD_OK;
}

/* Keys of objects as they stand in a path. */
static bool add_encoded(char *to, size_t cap, const char *key)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/%";
	size_t n = strlen(to);

	for (; *key; key++) {
		if (n + 4 > cap)
			return false;
		n += (size_t)snprintf(to + n, cap - n, strchr(plain, *key) ? "%c" : "%%%02X",
			(unsigned char)*key);
	}
	return true;
}

/* s3://BUCKET/KEY: with an endpoint the bucket stands in the path, and where its name has dots, which no
 * certificate of Amazon's fits. */
static enum hd_err find_object(struct http_store *s, const struct hd_blob_rules *rules, struct hd_diag *diag)
{
	const char *name = s->store.name, *key = name + strlen(s->url.origin) + 1, *bucket = s->url.host;
	const char *endpoint = rules->endpoint ? rules->endpoint : variable("AWS_ENDPOINT_URL_S3",
		variable("AWS_ENDPOINT_URL", NULL));
	const char *region = rules->region ? rules->region : variable("AWS_REGION",
		variable("AWS_DEFAULT_REGION", "us-east-1"));
	const bool dots = strchr(bucket, '.') != NULL;
	char own[300];

	(void)snprintf(own, sizeof own, "https://%.80s%ss3.%.80s.amazonaws.com", dots ? "" : bucket,
		dots ? "" : ".", region);
	size_t len = strlen(endpoint ? endpoint : own);
	len -= endpoint && len && endpoint[len - 1] == '/';
	(void)snprintf(s->at, sizeof s->at, endpoint || dots ? "%.*s/%s/" : "%.*s/", (int)len,
		endpoint ? endpoint : own, bucket);
	if (!add_encoded(s->at, sizeof s->at, key))
		return hd_fail(diag, HD_E_INVAL, "%.100s...: the key is too long", name);
	enum hd_err err = hd_url_parse(s->at, &s->url, diag);
	if (!err && s->url.scheme != HD_URL_HTTPS && s->url.scheme != HD_URL_HTTP)
		err = hd_fail(diag, HD_E_INVAL, "data.endpoint %.100s is no http:// or https:// address",
			endpoint ? endpoint : own);
	return err ? err : find_keys(s, region, diag);
}

/* The first byte, whose answer says how many there are, and of which version. */
static enum hd_err look(struct http_store *s, struct hd_diag *diag)
{
	uint8_t byte;
	const struct hd_range range = { 0, 1, &byte };
	const struct hd_request request = { 0, 1, &range, 1 };
	struct hd_range_head h = { 0 };
	enum hd_err err = read_with(s, &request, 1, 1, &h, diag);

	if (err)
		return err;
	s->store.size_bytes = h.total;
	(void)snprintf(s->store.version, sizeof s->store.version, "%s", h.etag);
	return HD_OK;
}

enum hd_err hd_blob_http_open(struct hd_blob **store, const char *url, const struct hd_blob_rules *rules,
	struct hd_diag *diag)
{
	struct http_store *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory to open %s", url);
	memset(s, 0, sizeof *s);
	s->plain = rules->plain;
	s->tries = rules->tries ? rules->tries : HD_BLOB_TRIES;
	s->store.waits = rules->waits;
	s->store.waits_user = rules->user;
	(void)snprintf(s->store.name, sizeof s->store.name, "%s", url);
	(void)snprintf(s->at, sizeof s->at, "%s", url);
	(void)snprintf(s->ca, sizeof s->ca, "%s", variable("AWS_CA_BUNDLE", ""));
	hd_clock_real(&s->clock);
	hd_lock_init(&s->lock);
	enum hd_err err = hd_url_parse(url, &s->url, diag);
	const bool s3 = !err && s->url.scheme == HD_URL_S3;
	s->store.ops = s3 ? &s3_ops : &http_ops;
	if (!err && s3)
		err = find_object(s, rules, diag);
	if (!err)
		err = check_url(s, s->at, &s->url, diag);
	if (!err)
		err = look(s, diag);
	if (err) {
		http_close(&s->store);
		return err;
	}
	*store = &s->store;
	return HD_OK;
}
