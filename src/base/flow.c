#include "base/flow.h"

#include <string.h>

static unsigned characters(const char *text, size_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static void begin_line(const struct hd_flow *flow, struct hd_text *out)
{
	hd_text_addf(out, "\n%*s", (int)flow->indent, "");
}

static void fill(const struct hd_flow *flow, const char *text, size_t len, unsigned at, struct hd_text *out)
{
	bool begins = true;

	while (len) {
		size_t word = 0;
		while (word < len && text[word] != ' ')
			word++;
		unsigned n = characters(text, word);
		if (word && !begins && at + 1 + n > flow->width) {
			begin_line(flow, out);
			at = flow->indent;
			begins = true;
		}
		if (word) {
			hd_text_addf(out, "%s%.*s", begins ? "" : " ", (int)word, text);
			at += n + !begins;
			begins = false;
		}
		word += word < len;
		text += word;
		len -= word;
	}
}

void hd_flow_add(const struct hd_flow *flow, const char *text, unsigned at, struct hd_text *out)
{
	bool first = true, kept_before = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		bool kept = *text == ' ';
		if (!first) {
			if (flow->apart && !(kept && kept_before))
				hd_text_add(out, "\n");
			begin_line(flow, out);
			at = flow->indent;
		}
		if (kept)
			hd_text_put(out, text, len);
		else
			fill(flow, text, len, at, out);
		first = false;
		kept_before = kept;
		text += len + (text[len] == '\n');
	}
}
