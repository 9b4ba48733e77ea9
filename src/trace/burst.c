#include "trace/burst.h"

void hd_burst_begin(struct hd_burst *b, uint64_t now_ns)
{
	*b = (struct hd_burst){ .since_ns = now_ns, .due_ns = now_ns, .runs = true };
}

void hd_burst_end(struct hd_burst *b) { *b = (struct hd_burst){ 0 }; }

static uint64_t away_ns(const struct hd_burst_probe *p) { return p->t4 - p->t1 - (p->t3 - p->t2); }

static bool is_sound(const struct hd_burst_probe *p)
{
	return p->t4 >= p->t1 && p->t3 >= p->t2 && p->t4 - p->t1 >= p->t3 - p->t2;
}

static bool give(struct hd_burst *b, struct hd_burst_probe *kept)
{
	const bool has = b->has;

	if (has)
		*kept = b->best;
	b->has = false;
	return has;
}

bool hd_burst_due(struct hd_burst *b, uint64_t now_ns, struct hd_burst_probe *kept, bool *keep)
{
	*keep = false;
	if (!b->runs || now_ns < b->due_ns)
		return false;
	*keep = give(b, kept);
	b->left = HD_BURST_PROBES;
	b->due_ns = now_ns + (now_ns - b->since_ns < HD_BURST_YOUNG_NS ? HD_BURST_SOON_NS :
		HD_BURST_EVERY_NS);
	return true;
}

bool hd_burst_took(struct hd_burst *b, const struct hd_burst_probe *probe, struct hd_burst_probe *kept,
	bool *keep)
{
	*keep = false;
	if (!b->left)                     /* of no burst */
		return false;
	if (is_sound(probe) && (!b->has || away_ns(probe) < away_ns(&b->best))) {
		b->best = *probe;
		b->has = true;
	}
	if (--b->left)
		return true;
	*keep = give(b, kept);
	return false;
}
