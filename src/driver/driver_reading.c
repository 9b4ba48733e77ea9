#include "driver/driver_int.h"

#include <string.h>

#include "base/le.h"
#include "data/fair_text.h"
#include "worker/elastic.h"

/* Whether workers get their samples alike (fairness.h). */

bool driver_reading_noted(struct driver *c, const char *name, uint32_t worker, const char *text)
{
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	struct hd_fair_part part;

	if (strcmp(name, HD_NOTE_READING) != 0)
		return false;
	if (view && !hd_fair_parse(text, strlen(text), &part, NULL))
		hd_fairness_take(&c->fairness, view, worker, &part, hd_clock_now_ns(c->spec->clock));
	return true;
}

/* Best effort: what does not arrive is ordered again with the next window. */
static void order(struct driver *c, const struct hd_fairness_order *o)
{
	uint8_t bytes[4];

	hd_put32(bytes, o->depth);
	(void)!hd_hub_tell(&c->hub, o->worker, HD_ELASTIC_READ, 0, bytes, sizeof bytes, NULL);
}

void driver_reading_step(struct driver *c)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	struct hd_fairness_out out;

	if (!view || !hd_fairness_step(&c->fairness, view, hd_clock_now_ns(c->spec->clock), &out))
		return;
	for (uint32_t i = 0; i < out.nsaid; i++)
		driver_note(c, out.said[i].kind, out.said[i].worker, out.said[i].text);
	for (uint32_t i = 0; i < out.norders; i++)
		order(c, &out.order[i]);
}
