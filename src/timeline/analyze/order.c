#include "timeline/analyze/order.h"

#include <stdlib.h>

struct sent { uint32_t process, peer, step; const struct hd_tl_event *event; };

static int by_channel(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->peer != y->peer)
		return x->peer < y->peer ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->event->first != y->event->first)
		return x->event->first < y->event->first ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static bool same(const struct sent *x, const struct sent *y)
{
	return x->process == y->process && x->peer == y->peer && x->step == y->step;
}

/* y's first byte went before x's, or with it */
static void judge(const struct hd_tl_event *y, const struct hd_tl_event *x, struct hd_tl_orders *o)
{
	if (x->priority_class == y->priority_class || x->gate >= y->first)
		return;
	o->pairs++;
	o->violations += x->priority_class < y->priority_class && y->first < x->first;
}

enum hd_err hd_tl_orders_of(const struct hd_timeline *tl, struct hd_arena *arena, struct hd_tl_orders *orders,
	struct hd_diag *diag)
{
	struct hd_tl_orders o = { 0 };
	size_t n = 0;

	for (uint64_t e = 0; e < tl->nevents; e++)
		o.transfers += tl->event[e].kind == HD_EVENT_SEND;
	struct sent *sent = hd_arena_take(arena, (size_t)o.transfers + 1, sizeof *sent);
	if (!sent)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu transfers", (unsigned long
			long)o.transfers);
	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		if (e->kind == HD_EVENT_SEND && e->peer != HD_TL_NONE)
			sent[n++] = (struct sent){ tl->lane[e->lane].process, e->peer, e->step, e };
	}
	if (n)
		qsort(sent, n, sizeof *sent, by_channel);
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n && k - i <= HD_TL_ORDER_REACH && same(&sent[i], &sent[k]); k++)
			judge(sent[i].event, sent[k].event, &o);
	*orders = o;
	return HD_OK;
}
