/* What is accepted keeps to the rules of the header: an extent inside its object, texts that end, a wait with
 * a limit; and a URL that is accepted leads to itself. */
#include <stdlib.h>
#include <string.h>

#include "data/range_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char text[4096], to[HD_HTTP_PLACE];
	struct hd_range_head h;
	struct hd_url url;

	if (hd_range_head_parse((const char *)bytes, len, &h, NULL) == HD_OK) {
		if (h.has_range && (h.first >= h.end || h.end > h.total))
			abort();
		if (h.wait_s > HD_HTTP_WAIT_S || h.status < 100 || h.status > 599)
			abort();
		if (!memchr(h.etag, 0, sizeof h.etag) || !memchr(h.place, 0, sizeof h.place))
			abort();
		(void)hd_url_follow("http://h/a", h.place, to, sizeof to);
	}
	if (len >= sizeof text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (hd_url_parse(text, &url, NULL) == HD_OK &&
		(url.scheme == HD_URL_HTTP || url.scheme == HD_URL_HTTPS) &&
		hd_url_follow("http://h/a", text, to, sizeof to) && strcmp(to, text) != 0)
		abort();
	return 0;
}
