/* Without libcurl. */
#include "sys/web_get.h"

enum hd_err hd_web_gets_open(struct hd_web_gets **gets, const char *ca, struct hd_diag *diag)
{
	(void)ca;
	*gets = NULL;
	return hd_fail(diag, HD_E_REFUSED, "http:// and s3:// are not spoken by this build: it was "
		"made without libcurl (libcurl4-openssl-dev); build again with it, -DHD_CURL=ON says what is "
		"missing");
}

void hd_web_gets_close(struct hd_web_gets *gets) { (void)gets; }

enum hd_err hd_web_gets_begin(struct hd_web_gets *gets, const struct hd_web_get *get, struct hd_diag *diag)
{
	(void)gets, (void)get;
	return hd_fail(diag, HD_E_REFUSED, "http:// is not spoken by this build");
}

void hd_web_gets_wait(struct hd_web_gets *gets, int ms) { (void)gets, (void)ms; }

bool hd_web_gets_take(struct hd_web_gets *gets, struct hd_web_gotten *gotten)
{
	(void)gets, (void)gotten;
	return false;
}
