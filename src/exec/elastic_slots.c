#include "exec/elastic_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/le.h"

/* Slots of sharded state, from who holds them to who lacks them: for the chains of another view, and for a scribe that saves them all. The one who
 * lacks them asks bucket by bucket, a few at a time, and asks again while one does not come. Slots stand still meanwhile (member.h, rule 7),
 * so both ends copy on the wire's thread. An answer of one byte says: not here, not of that step. */

enum { HD_ASK_SLOTS_BYTES = 20 };         /* u64 step, u64 request, u32 bucket */

static uint64_t most_bytes(const struct hd_elastic *e)
{
	uint64_t most = 1;

	for (uint32_t b = 0; b < e->nbuckets; b++)
		most = hd_share_slot_bytes(e->worker, b) > most ? hd_share_slot_bytes(e->worker, b) : most;
	return most;
}

enum hd_err hd_elastic_slots_init(struct hd_elastic *e, struct hd_diag *diag)
{
	struct hd_slots *s = &e->slots;

	s->want = hd_alloc(e->nbuckets);
	s->own = hd_alloc(e->nbuckets);
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS && s->want && e->copies; i++)
		if (!(s->ask[i].bytes = hd_alloc(most_bytes(e))))
			return hd_fail(diag, HD_E_NOMEM, "no memory for slots of others");
	if (!s->want || !s->own)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the slots of %u buckets", e->nbuckets);
	memset(s->want, 0, e->nbuckets);
	return HD_OK;
}

void hd_elastic_slots_finish(struct hd_elastic *e)
{
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		hd_free(e->slots.ask[i].bytes);
	while (e->slots.out) {
		struct hd_slots_out *next = e->slots.out->next;
		hd_free(e->slots.out);
		e->slots.out = next;
	}
	hd_free(e->slots.want);
	hd_free(e->slots.own);
}

/* ---- who holds them ---- */

static struct hd_slots_out **sending(struct hd_elastic *e, uint32_t worker, uint64_t request)
{
	struct hd_slots_out **at = &e->slots.out;

	while (*at && ((*at)->worker != worker || (*at)->request != request))
		at = &(*at)->next;
	return at;
}

void hd_elastic_slots_asked(struct hd_elastic *e, uint32_t worker, const uint8_t *bytes, uint32_t len)
{
	if (len != HD_ASK_SLOTS_BYTES)
		return;
	uint64_t step = hd_get64(bytes), request = hd_get64(bytes + 8);
	uint32_t bucket = hd_get32(bytes + 16);
	bool here = bucket < e->nbuckets && hd_member_at(e->member) == step && hd_member_has_slots(e->member, bucket);
	uint64_t n = here ? hd_share_slot_bytes(e->worker, bucket) : 0;
	struct hd_slots_out *out = *sending(e, worker, request) ? NULL : hd_alloc(sizeof *out + (n ? n : 1));

	if (!out)
		return;                   /* on its way, or no memory: it asks again */
	*out = (struct hd_slots_out){ .next = e->slots.out, .worker = worker, .request = request };
	if (n)
		hd_share_slot_get(e->worker, bucket, out->bytes);
	else
		out->bytes[0] = 0;
	const struct hd_answer a = { .request = request, .bytes = out->bytes, .len = n ? n : 1, .token = (uint64_t)(uintptr_t)out };
	if (hd_hub_answer(&e->hub, worker, &a, NULL))
		hd_free(out);
	else
		e->slots.out = out;
}

bool hd_elastic_slots_sent(struct hd_elastic *e, const struct hd_sent *sent)
{
	for (struct hd_slots_out **at = &e->slots.out; *at; at = &(*at)->next)
		if ((uint64_t)(uintptr_t)*at == sent->token) {
			struct hd_slots_out *out = *at;
			*at = out->next;
			hd_free(out);
			return true;
		}
	return false;
}

/* ---- who lacks them ---- */

static bool is_asked(const struct hd_elastic *e, uint32_t bucket)
{
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		if (e->slots.ask[i].open && e->slots.ask[i].round == e->slots.round && e->slots.ask[i].bucket == bucket)
			return true;
	return false;
}

/* One of the holders that is connected, another one at each try. */
static uint32_t holder(struct hd_elastic *e, uint32_t bucket)
{
	uint32_t worker[HD_MAX_MEMBERS], n = hd_member_holders(e->member, bucket, worker), first = e->slots.tries++;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t w = worker[(first + i) % n];
		if (w != atomic_load(&e->self) && hd_hub_is_up(&e->hub, w))
			return w;
	}
	return HD_NOBODY;
}

static void ask(struct hd_elastic *e, struct hd_slots_ask *a, int64_t now)
{
	uint8_t bytes[HD_ASK_SLOTS_BYTES];

	hd_put64(bytes, e->slots.step);
	hd_put64(bytes + 8, a->request);
	hd_put32(bytes + 16, a->bucket);
	if (!hd_hub_tell(&e->hub, a->worker, HD_ASK_SLOTS_ID, e->slots.step, bytes, sizeof bytes, NULL))
		a->asked_ns = now;
}

void hd_elastic_slots_ask(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;
	int64_t now = hd_clock_now_ns(e->spec->clock);
	uint32_t b = 0;

	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS && s->left; i++) {
		struct hd_slots_ask *a = &s->ask[i];
		if (a->open && a->round == s->round && now - a->asked_ns >= e->detect_ns && hd_hub_is_up(&e->hub, a->worker))
			ask(e, a, now);
		while (!a->open && b < e->nbuckets && (!s->want[b] || is_asked(e, b)))
			b++;
		uint32_t from = a->open || b == e->nbuckets ? HD_NOBODY : holder(e, b);
		if (from == HD_NOBODY)
			continue;
		*a = (struct hd_slots_ask){ .bytes = a->bytes, .worker = from, .bucket = b, .round = s->round, .request = ++e->next_request };
		if (hd_hub_expect(&e->hub, from, a->request, a->bytes, hd_share_slot_bytes(e->worker, b), NULL))
			continue;
		a->open = true;
		ask(e, a, now);
	}
}

static void over(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;
	struct hd_duty boundary = s->boundary;
	struct hd_diag diag = { "" };

	if (s->left || !s->under_way)
		return;
	s->under_way = false;
	boundary.gathered = true;
	if (!s->saving)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_FETCHED, .epoch = s->epoch, .step = s->step });
	else if (hd_duties_give(&e->duties, &boundary, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

static void want(struct hd_elastic *e, uint64_t step, bool saving)
{
	struct hd_slots *s = &e->slots;
	const struct hd_exchange *x = hd_member_exchange(e->member);

	s->round++;
	s->left = 0;
	s->step = step;
	s->epoch = hd_member_epoch(e->member);
	s->saving = saving;
	s->under_way = true;
	for (uint32_t b = 0; b < e->nbuckets; b++) {
		s->want[b] = hd_share_slot_bytes(e->worker, b) && (saving || hd_exchange_chained(x, b)) && !hd_member_has_slots(e->member, b);
		s->left += s->want[b];
	}
	hd_elastic_slots_ask(e);
	over(e);
}

void hd_elastic_slots_fetch(struct hd_elastic *e, uint64_t step) { want(e, step, false); }

void hd_elastic_slots_gather(struct hd_elastic *e, const struct hd_duty *boundary)
{
	e->slots.boundary = *boundary;
	want(e, boundary->step, true);
}

/* A step begins, or begins again: who was to fetch for it is told so after this. */
void hd_elastic_slots_void(struct hd_elastic *e)
{
	if (e->slots.saving)
		return;
	e->slots.round++;
	e->slots.left = 0;
	e->slots.under_way = false;
}

bool hd_elastic_slots_here(struct hd_elastic *e, const struct hd_arrival *arrival)
{
	struct hd_slots *s = &e->slots;
	struct hd_diag diag = { "" };

	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++) {
		struct hd_slots_ask *a = &s->ask[i];
		if (!a->open || a->request != arrival->request || a->worker != arrival->worker)
			continue;
		a->open = false;
		bool wanted = !arrival->err && a->round == s->round && s->left && s->want[a->bucket] && arrival->len > 1;
		if (!wanted)
			return true;      /* of another round; or it is asked for again with the next tick */
		if (hd_share_slot_put(e->worker, a->bucket, a->bytes, arrival->len, &diag)) {
			hd_elastic_fail(e, HD_E_BUG, &diag);
			return true;
		}
		s->want[a->bucket] = 0;
		s->left--;
		hd_elastic_slots_ask(e);
		over(e);
		return true;
	}
	return false;
}

void hd_elastic_slots_lost(struct hd_elastic *e, uint32_t worker)
{
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		if (e->slots.ask[i].worker == worker)
			e->slots.ask[i].open = false;
}
