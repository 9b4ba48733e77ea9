#include "sys/web_get.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/web_int.h"

enum { CONNECT_S = 5, SLOW_S = 10, SLOW_BYTES_S = 1024 };

/* A request under way; its handle keeps its connection's settings until the next one. */
struct getting {
	CURL *easy;
	struct curl_slist *lines;
	bool busy, too_long, barred;
	uint64_t name, cap, len;
	void (*put)(void *user, uint64_t name, uint64_t at, const void *bytes, size_t len);
	void *user;
	char why[CURL_ERROR_SIZE], head[HD_WEB_GET_HEAD];
	struct hd_web_head lead;          /* in `head`, but for a 0 behind it */
};

struct hd_web_gets {
	struct hd_web_multi shared;
	struct getting at[HD_WEB_GETS];
};

/* ---- what the library calls ---- */

static bool is_barred(const struct sockaddr *address)
{
	static const uint8_t ec2[16] = { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 };
	const uint8_t *b;

	if (address->sa_family == AF_INET) {
		b = (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
		return b[0] == 169 && b[1] == 254;
	}
	if (address->sa_family != AF_INET6)
		return true;
	b = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)b))
		return b[12] == 169 && b[13] == 254;
	return (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) || !memcmp(b, ec2, sizeof ec2);
}

static curl_socket_t on_open(void *self, curlsocktype what, struct curl_sockaddr *address)
{
	struct getting *g = self;

	if (what == CURLSOCKTYPE_IPCXN && is_barred(&address->addr)) {
		g->barred = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_head(char *bytes, size_t size, size_t n, void *self)
{
	struct getting *g = self;

	g->too_long = g->too_long || !hd_web_head_add(&g->lead, bytes, size * n);
	return g->too_long ? 0 : size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *self)
{
	struct getting *g = self;
	size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(g->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 && status != 206)
		return len;
	if (len > g->cap - g->len) {
		g->too_long = true;
		return 0;
	}
	g->put(g->user, g->name, g->len, bytes, len);
	g->len += len;
	return len;
}

/* ---- life ---- */

enum hd_err hd_web_gets_open(struct hd_web_gets **gets, const char *ca, struct hd_diag *diag)
{
	struct hd_web_gets *h = hd_alloc(sizeof *h);

	*gets = NULL;
	if (!h)
		return hd_fail(diag, HD_E_NOMEM, "no memory for requests over HTTP");
	memset(h, 0, sizeof *h);
	enum hd_err err = hd_web_multi_open(&h->shared, ca, diag);
	if (err) {
		hd_web_gets_close(h);
		return err;
	}
	*gets = h;
	return HD_OK;
}

static void drop(struct hd_web_gets *h, struct getting *g)
{
	if (g->busy)
		(void)curl_multi_remove_handle(h->shared.multi, g->easy);
	curl_slist_free_all(g->lines);
	g->lines = NULL;
	g->busy = false;
}

void hd_web_gets_close(struct hd_web_gets *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HD_WEB_GETS; i++) {
		drop(h, &h->at[i]);
		if (h->at[i].easy)
			curl_easy_cleanup(h->at[i].easy);
	}
	hd_web_multi_close(&h->shared);
	hd_free(h);
}

/* ---- requests ---- */

static bool add_lines(struct getting *g, const struct hd_web_get *get)
{
	char token[4096];
	bool good = true;

	for (uint32_t i = 0; i < get->nlines && good; i++)
		good = hd_web_line_add(&g->lines, get->line[i]);
	if (!good || !get->sign || !get->token)
		return good;
	return (size_t)snprintf(token, sizeof token, "x-amz-security-token: %s", get->token) < sizeof token &&
		hd_web_line_add(&g->lines, token);
}

static bool set_safety(const struct hd_web_gets *h, CURL *e, const struct hd_web_get *get)
{
	CURLcode bad = curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);

	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_S);
	if (!bad && get->loopback)
		bad = curl_easy_setopt(e, CURLOPT_PROXY, "");
	if (!bad && get->sign)
		bad = curl_easy_setopt(e, CURLOPT_AWS_SIGV4, get->sign);
	if (!bad && get->sign)
		bad = curl_easy_setopt(e, CURLOPT_USERPWD, get->keys);
	return !bad && hd_web_rules(&h->shared, e, get->plain ? "http,https" : "https");
}

static CURLcode set_up(struct getting *g, const struct hd_web_get *get)
{
	CURL *e = g->easy;
	CURLcode bad = curl_easy_setopt(e, CURLOPT_URL, get->url);

	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_ERRORBUFFER, g->why);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_PRIVATE, g);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_HEADERDATA, g);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_WRITEDATA, g);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
	bad = bad ? bad : curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, g);
	return bad ? bad : curl_easy_setopt(e, CURLOPT_HTTPHEADER, g->lines);
}

enum hd_err hd_web_gets_begin(struct hd_web_gets *h, const struct hd_web_get *get, struct hd_diag *diag)
{
	struct getting *g = NULL;

	for (size_t i = 0; i < HD_WEB_GETS && !g; i++)
		g = h->at[i].busy ? NULL : &h->at[i];
	if (!g)
		return HD_E_AGAIN;
	CURL *easy = g->easy ? g->easy : curl_easy_init();
	*g = (struct getting){ .easy = easy, .name = get->name, .cap = get->cap, .put = get->put,
		.user = get->user };
	g->lead = (struct hd_web_head){ g->head, sizeof g->head - 1, 0 };
	if (easy)
		curl_easy_reset(easy);
	if (!easy || !add_lines(g, get) || !set_safety(h, easy, get) || set_up(g, get) ||
		curl_multi_add_handle(h->shared.multi, easy)) {
		drop(h, g);
		return hd_fail(diag, HD_E_INVAL, "%s: libcurl does not take this request", get->url);
	}
	g->busy = true;
	return HD_OK;
}

void hd_web_gets_wait(struct hd_web_gets *h, int ms)
{
	int running = 0;

	(void)curl_multi_perform(h->shared.multi, &running);
	(void)curl_multi_poll(h->shared.multi, NULL, 0, running ? ms : 0, NULL);
	(void)curl_multi_perform(h->shared.multi, &running);
}

static enum hd_err err_of(CURLcode code, const struct getting *g)
{
	if (!code || g->too_long)
		return HD_OK;
	return g->barred || code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_UNSUPPORTED_PROTOCOL ||
		code == CURLE_URL_MALFORMAT || code == CURLE_SSL_CACERT_BADFILE ? HD_E_REFUSED : HD_E_AGAIN;
}

bool hd_web_gets_take(struct hd_web_gets *h, struct hd_web_gotten *out)
{
	CURLMsg *message;
	int left = 0;

	while ((message = curl_multi_info_read(h->shared.multi, &left))) {
		struct getting *g = NULL;
		long status = 0;
		if (message->msg != CURLMSG_DONE ||
			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &g) || !g)
			continue;
		CURLcode code = message->data.result;
		(void)curl_easy_getinfo(g->easy, CURLINFO_RESPONSE_CODE, &status);
		*out = (struct hd_web_gotten){ .name = g->name, .err = err_of(code, g), .len = g->len,
			.status = status > 0 ? (uint32_t)status : 0, .too_long = g->too_long };
		snprintf(out->why, sizeof out->why, "%s", g->barred ?
			"its address is link-local or serves metadata, and none of these serves data" :
			!code ? "" : g->why[0] ? g->why : curl_easy_strerror(code));
		memcpy(out->head, g->head, out->head_len = g->lead.len);
		out->head[g->lead.len] = '\0';
		drop(h, g);
		return true;
	}
	return false;
}
