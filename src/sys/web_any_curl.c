#include "sys/web_int.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

enum hd_err hd_web_multi_open(struct hd_web_multi *m, const char *ca, struct hd_diag *diag)
{
	m->multi = NULL;
	m->ca[0] = '\0';
	const CURLcode bad = curl_global_init(CURL_GLOBAL_DEFAULT);
	if (ca && strlen(ca) >= sizeof m->ca)
		return hd_fail(diag, HD_E_INVAL, "%.60s...: the path of the certificates is too long", ca);
	(void)snprintf(m->ca, sizeof m->ca, "%s", ca ? ca : "");
	m->multi = bad ? NULL : curl_multi_init();
	return m->multi ? HD_OK : hd_fail(diag, HD_E_NOMEM, "libcurl does not start");
}

void hd_web_multi_close(struct hd_web_multi *m)
{
	if (m->multi)
		(void)curl_multi_cleanup(m->multi);
	m->multi = NULL;
	curl_global_cleanup();
}

bool hd_web_rules(const struct hd_web_multi *m, void *easy, const char *protocols)
{
	CURLcode bad = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, protocols);

	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	bad = bad ? bad : curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (!bad && m->ca[0])
		bad = curl_easy_setopt(easy, CURLOPT_CAINFO, m->ca);
	return !bad;
}

bool hd_web_head_add(struct hd_web_head *head, const char *bytes, size_t len)
{
	if (len > 5 && !memcmp(bytes, "HTTP/", 5))
		head->len = 0;
	if (len > head->cap - head->len)
		return false;
	memcpy(head->at + head->len, bytes, len);
	head->len += len;
	return true;
}

bool hd_web_line_add(struct curl_slist **lines, const char *line)
{
	struct curl_slist *more = curl_slist_append(*lines, line);

	if (more)
		*lines = more;
	return more != NULL;
}
