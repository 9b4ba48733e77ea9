/* Without libcurl. */
#include "sys/web.h"

enum hd_err hd_web_open(struct hd_web **web, struct hd_loop *loop, uint64_t tag, const char *ca,
	struct hd_diag *diag)
{
	(void)loop, (void)tag, (void)ca;
	*web = NULL;
	return hd_fail(diag, HD_E_REFUSED, "HTTPS is not spoken by this build: it was made without "
		"libcurl (libcurl4-openssl-dev); build again with it, -DHD_CURL=ON says what is missing");
}

void hd_web_plain(struct hd_web *web) { (void)web; }

void hd_web_close(struct hd_web *web) { (void)web; }

enum hd_err hd_web_post(struct hd_web *web, uint64_t name, const char *url, const char *lines,
	const char *body, size_t len, int64_t deadline_ns, struct hd_diag *diag)
{
	(void)web, (void)name, (void)url, (void)lines, (void)body, (void)len, (void)deadline_ns;
	return hd_fail(diag, HD_E_REFUSED, "HTTPS is not spoken by this build");
}

void hd_web_event(struct hd_web *web, const struct hd_loop_event *event) { (void)web, (void)event; }

int64_t hd_web_tick(struct hd_web *web, int64_t now_ns)
{
	(void)web, (void)now_ns;
	return INT64_MAX;
}

bool hd_web_take(struct hd_web *web, struct hd_web_reply *reply)
{
	(void)web, (void)reply;
	return false;
}
