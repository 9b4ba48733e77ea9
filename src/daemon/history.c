#include "daemon/history.h"

#include <string.h>

bool hd_history_due(const struct hd_history *h, double now_s)
{
	return !h->n || now_s >= h->sample[h->n - 1].at_s + h->every_s;
}

static void thin(struct hd_history *h)
{
	for (uint32_t i = 0; i < HD_HISTORY / 2; i++)
		h->sample[i] = h->sample[2 * i];
	h->n = HD_HISTORY / 2;
	h->every_s *= 2;
}

void hd_history_add(struct hd_history *h, double now_s, const struct hd_history_count *of, uint32_t ntypes)
{
	if (h->n == HD_HISTORY)
		thin(h);
	struct hd_history_sample *s = &h->sample[h->n++];
	*s = (struct hd_history_sample){ .at_s = now_s };
	memcpy(s->of, of, ntypes * sizeof *of);
}
