#include "notice/place.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static enum hd_err bad(const char *base, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL,
		"\"%.100s\": %s; write http://HOST[:PORT][/PATH] with the host as numbers, as in "
		"http://169.254.169.254", base, why);
}

/* Printable, without what would need an escape; {pid} is replaced. */
static bool put_path(const char *path, uint32_t pid, char *out, size_t cap)
{
	size_t n = 0;

	for (; *path; path++) {
		int more = 1;
		if (!strncmp(path, "{pid}", 5)) {
			more = snprintf(out + n, cap - n, "%u", pid);
			path += 4;
		} else if (*path <= ' ' || *path >= 0x7f || strchr("{}?#%\"\\<>", *path)) {
			return false;
		} else if (n + 1 < cap) {
			out[n] = *path;
		}
		n += (size_t)more;
		if (n + 1 >= cap)
			return false;
	}
	while (n && out[n - 1] == '/')
		n--;
	out[n] = '\0';
	return true;
}

static bool is_host(const char *host, size_t len)
{
	bool six = len > 2 && host[0] == '[' && host[len - 1] == ']';

	return len > 0 && len < 64 && strspn(six ? host + 1 : host, six ? "0123456789abcdefABCDEF:." :
		"0123456789.") == (six ? len - 2 : len);
}

enum hd_err hd_notice_place(const char *base, uint32_t pid, struct hd_notice_place *place,
	struct hd_diag *diag)
{
	static const char scheme[] = "http://";
	uint64_t port = 80;
	char digits[8];

	if (strncmp(base, scheme, sizeof scheme - 1) != 0)
		return bad(base, "it does not begin with http://", diag);
	const char *host = base + sizeof scheme - 1, *path = host + strcspn(host, "/");
	const char *colon = *host == '[' ? host + strcspn(host, "]") : host + strcspn(host, ":/");
	if (*host == '[' && *colon == ']')
		colon++;
	size_t len = (size_t)(colon - host), ndigits = *colon == ':' ? (size_t)(path - colon - 1) : 0;
	if (colon > path || !is_host(host, len) || (colon != path && *colon != ':'))
		return bad(base, "its host is no number", diag);
	if (*colon == ':') {
		snprintf(digits, sizeof digits, "%.*s", ndigits < 7 ? (int)ndigits : 7, colon + 1);
		if (hd_num_u64(digits, 65535, &port, NULL) || !port || ndigits > 5)
			return bad(base, "its port is none", diag);
	}
	struct hd_notice_place out;
	if (!put_path(path, pid, out.path, sizeof out.path))
		return bad(base, "its path is too long, or has more than letters, digits, signs and {pid}",
		diag);
	snprintf(out.host, sizeof out.host, "%.*s:%u", (int)len, host, (unsigned)port);
	snprintf(out.addr, sizeof out.addr, "tcp:%s", out.host);
	*place = out;
	return HD_OK;
}
