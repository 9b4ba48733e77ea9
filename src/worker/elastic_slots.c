#include "worker/elastic_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/failpoint.h"

/* Slots of sharded state, from their holders to members that lack them: for the chains of another view
 * (a fetch), and for a checkpoint writer that saves them all (a gathering). The member that lacks them
 * requests bucket by bucket, a few at a time, and again while one does not come. Slots do not change
 * meanwhile (member.h, rule 7), so both ends copy on the I/O thread. A holder gives one answer at a time,
 * from memory that it took at its start; other requests wait meanwhile, and so do those of a step that the
 * holder has not reached. An answer of one byte says: not here, not of that step. */

enum {
	HD_ASK_SLOTS_BYTES = 20,          /* u64 step, u64 request, u32 bucket */
	HD_PLACE_PAGE = 4096,
};

/* Of a place for the largest bucket: whole pages, so that it can be given back by itself. */
static uint64_t place_bytes(const struct hd_elastic *e)
{
	uint64_t most = 1;

	for (uint32_t b = 0; b < e->nbuckets; b++)
		most = hd_dist_slot_bytes(e->worker, b) > most ? hd_dist_slot_bytes(e->worker, b) : most;
	return (most + HD_PLACE_PAGE - 1) / HD_PLACE_PAGE * HD_PLACE_PAGE;
}

enum hd_err hd_elastic_slots_init(struct hd_elastic *e, struct hd_diag *diag)
{
	struct hd_slots *s = &e->slots;

	s->want = hd_alloc(e->nbuckets);
	s->own = hd_alloc(e->nbuckets);
	s->brings = hd_alloc(e->nbuckets);
	s->keep = hd_alloc(e->nbuckets);
	s->held = hd_alloc((e->nbuckets + (size_t)1) * sizeof *s->held);
	if (!s->want || !s->own || !s->brings || !s->keep || !s->held)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the slots of %u buckets", e->nbuckets);
	memset(s->want, 0, e->nbuckets);
	if (!e->partial)
		return HD_OK;
	return hd_memory_take(HD_PIPES_MOVED * place_bytes(e), HD_MEMORY_SMALL, &s->memory, diag);
}

/* The last one is for answers. */
static uint8_t *place(const struct hd_elastic *e, uint32_t i)
{
	return (uint8_t *)e->slots.memory.at + i * place_bytes(e);
}

void hd_elastic_slots_finish(struct hd_elastic *e)
{
	hd_memory_give(&e->slots.memory);
	while (e->slots.out) {
		struct hd_slots_out *next = e->slots.out->next;
		hd_free(e->slots.out);
		e->slots.out = next;
	}
	hd_free(e->slots.want);
	hd_free(e->slots.own);
	hd_free(e->slots.brings);
	hd_free(e->slots.keep);
	hd_free(e->slots.held);
}

/* ---- the holder ---- */

static struct hd_slots_out **sending(struct hd_elastic *e, uint32_t worker, uint64_t request)
{
	struct hd_slots_out **at = &e->slots.out;

	while (*at && ((*at)->worker != worker || (*at)->request != request))
		at = &(*at)->next;
	return at;
}

/* n 0: they are not here. */
static void send(struct hd_elastic *e, const struct hd_slots_later *asked, uint64_t n)
{
	static const uint8_t none[1] = { 0 };
	struct hd_slots *s = &e->slots;
	(void)HD_FAILPOINT(SLOTS_ANSWER);
	struct hd_slots_out *out = hd_alloc(sizeof *out);

	if (!out)
		return;                   /* it asks again */
	*out = (struct hd_slots_out){ .next = s->out, .worker = asked->worker, .request = asked->request,
		.whole = n > 0 };
	if (n)
		hd_dist_slot_get(e->worker, asked->bucket, place(e, HD_ELASTIC_SLOTS));
	const struct hd_answer a = { .request = asked->request,
		.bytes = n ? place(e, HD_ELASTIC_SLOTS) : none, .len = n ? n : 1,
		.token = (uint64_t)(uintptr_t)out };
	if (hd_hub_answer(&e->hub, asked->worker, &a, NULL)) {
		hd_free(out);             /* it asks again */
		return;
	}
	s->out = out;
	s->answering |= out->whole;
}

/* False: it has to wait, since another answer is on its way. */
static bool answer(struct hd_elastic *e, const struct hd_slots_later *asked)
{
	bool here = asked->bucket < e->nbuckets && hd_member_at(e->member) == asked->step &&
		hd_member_has_slots(e->member, asked->bucket);
	uint64_t n = here ? hd_dist_slot_bytes(e->worker, asked->bucket) : 0;

	if (*sending(e, asked->worker, asked->request))
		return true;
	if (n && e->slots.answering)
		return false;
	send(e, asked, n);
	return true;
}

/* An answer that was sent whole has arrived whole, or its receiver uses another number by now; a second
 * one would have no receiver. */
static bool was_answered(const struct hd_slots *s, const struct hd_slots_later *asked)
{
	uint32_t n = s->nanswered < HD_SLOTS_LATER ? s->nanswered : HD_SLOTS_LATER;

	for (uint32_t i = 0; i < n; i++)
		if (s->answered[i].worker == asked->worker && s->answered[i].request == asked->request)
			return true;
	return false;
}

static bool waits(const struct hd_slots *s, const struct hd_slots_later *asked)
{
	for (uint32_t i = 0; i < s->nlater; i++)
		if (s->later[i].worker == asked->worker && s->later[i].request == asked->request)
			return true;
	return false;
}

void hd_elastic_slots_asked(struct hd_elastic *e, uint32_t worker, const uint8_t *bytes, uint32_t len)
{
	struct hd_slots *s = &e->slots;

	if (len != HD_ASK_SLOTS_BYTES)
		return;
	const struct hd_slots_later asked = { hd_get64(bytes), hd_get64(bytes + 8), worker,
		hd_get32(bytes + 16) };
	if (was_answered(s, &asked))
		return;
	if (waits(s, &asked) || (asked.step <= hd_member_at(e->member) && answer(e, &asked)))
		return;
	if (s->nlater < HD_SLOTS_LATER)
		s->later[s->nlater++] = asked;
	else
		send(e, &asked, 0);
}

void hd_elastic_slots_later(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nlater; i++)
		if (s->later[i].step > hd_member_at(e->member) || !answer(e, &s->later[i]))
			s->later[n++] = s->later[i];
	s->nlater = n;
}

/* It may be stopped and take nothing, and others wait for their answers meanwhile. A joiner, which is in
 * neither view, goes on. */
void hd_elastic_slots_view(struct hd_elastic *e, const struct hd_view *was, const struct hd_view *now)
{
	for (const struct hd_slots_out *out = e->slots.out; out; out = out->next)
		if (out->whole && hd_view_has(was, out->worker) && !hd_view_has(now, out->worker)) {
			hd_hub_drop(&e->hub, out->worker, HD_CLOSE_DROPPED, "it is no member any more");
			return;           /* there is one whole answer at a time */
		}
}

bool hd_elastic_slots_sent(struct hd_elastic *e, const struct hd_sent *sent)
{
	for (struct hd_slots_out **at = &e->slots.out; *at; at = &(*at)->next)
		if ((uint64_t)(uintptr_t)*at == sent->token) {
			struct hd_slots_out *out = *at;
			*at = out->next;
			e->slots.answering &= !out->whole;
			if (!sent->err)
				e->slots.answered[e->slots.nanswered++ % HD_SLOTS_LATER] =
					(struct hd_slots_answered){ out->request, out->worker };
			hd_free(out);
			return true;
		}
	return false;
}

/* ---- the member that lacks them ---- */

static bool is_asked(const struct hd_elastic *e, uint32_t bucket)
{
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		if (e->slots.ask[i].open && e->slots.ask[i].round == e->slots.round &&
			e->slots.ask[i].bucket == bucket)
			return true;
	return false;
}

static uint32_t next_to_ask(const struct hd_elastic *e, uint32_t bucket)
{
	for (; bucket < e->nbuckets; bucket++)
		if (e->slots.want[bucket] && !is_asked(e, bucket))
			break;
	return bucket;
}

/* One of the holders that is connected, another one at each try. */
static uint32_t holder(struct hd_elastic *e, uint32_t bucket)
{
	uint32_t worker[HD_MAX_MEMBERS], n = hd_member_holders(e->member, bucket, worker),
		first = e->slots.tries++;

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

	(void)HD_FAILPOINT(SLOTS_ASK);
	hd_put64(bytes, e->slots.step);
	hd_put64(bytes + 8, a->request);
	hd_put32(bytes + 16, a->bucket);
	if (!hd_hub_tell(&e->hub, a->worker, HD_ASK_SLOTS_ID, e->slots.step, bytes, sizeof bytes, NULL))
		a->asked_ns = now;
}

void hd_elastic_slots_again(struct hd_elastic *e, uint32_t worker)
{
	struct hd_slots *s = &e->slots;

	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		if (s->ask[i].open && s->ask[i].worker == worker && s->ask[i].round == s->round)
			ask(e, &s->ask[i], hd_clock_now_ns(e->spec->clock));
}

void hd_elastic_slots_ask(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;
	int64_t now = hd_clock_now_ns(e->spec->clock);
	uint32_t b = 0;

	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS && s->left; i++) {
		struct hd_slots_ask *a = &s->ask[i];
		if (a->open && now - a->asked_ns >= e->detect_ns && hd_hub_is_up(&e->hub, a->worker))
			ask(e, a, now);
		b = next_to_ask(e, b);
		uint32_t from = a->open || b == e->nbuckets ? HD_NOBODY : holder(e, b);
		if (from == HD_NOBODY)
			continue;
		*a = (struct hd_slots_ask){ .worker = from, .bucket = b, .round = s->round,
			.request = ++e->next_request };
		if (hd_hub_expect(&e->hub, from, a->request, place(e, i), hd_dist_slot_bytes(e->worker, b),
			NULL))
			continue;
		assert(s->want[b] && !a->open);
		a->open = true;
		ask(e, a, now);
	}
}

/* By the work at hand; of a fetch, as it was asked for. */
static bool is_wanted(const struct hd_elastic *e, uint32_t bucket)
{
	const struct hd_exchange *x = hd_member_exchange(e->member);

	return e->slots.now == HD_SLOTS_GATHER || (hd_exchange_chained(x, bucket) &&
		(!e->slots.fetch_read || hd_exchange_reads(x, bucket)));
}

static void want(struct hd_elastic *e, uint64_t step)
{
	struct hd_slots *s = &e->slots;

	assert(s->now == HD_SLOTS_FETCH || s->now == HD_SLOTS_GATHER);
	s->round++;
	s->left = 0;
	s->fetched = 0;
	s->step = step;
	for (uint32_t b = 0; b < e->nbuckets; b++) {
		s->keep[b] = hd_member_has_slots(e->member, b);
		s->want[b] = hd_dist_slot_bytes(e->worker, b) && is_wanted(e, b) && !s->keep[b];
		s->left += s->want[b];
	}
	hd_elastic_slots_ask(e);
}

/* The boundary's command once more. */
static void give_boundary(struct hd_elastic *e, const struct hd_command *boundary)
{
	struct hd_diag diag = { "" };

	if (hd_commands_give(&e->commands, boundary, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

static void save(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;
	struct hd_command boundary = s->boundary;

	assert(s->now == HD_SLOTS_GATHER && !s->left);
	(void)HD_FAILPOINT(SLOTS_SAVE);
	s->now = HD_SLOTS_SAVE;
	boundary.gathered = true;
	boundary.own = s->keep;
	give_boundary(e, &boundary);
}

static void note_fetched(struct hd_elastic *e)
{
	char text[96];

	snprintf(text, sizeof text, "%llu bytes of state came before step %llu",
		(unsigned long long)e->slots.fetched, (unsigned long long)e->slots.step);
	if (e->slots.fetched)
		hd_elastic_note(e, "fetched", text);
}

/* Starts what is due and ends what is complete; the event may make something due. */
static void go_on(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;

	for (;;) {
		if (s->now == HD_SLOTS_IDLE && s->gather_due) {
			s->gather_due = false;
			s->now = HD_SLOTS_GATHER;
			want(e, s->boundary.step);
		} else if (s->now == HD_SLOTS_IDLE && s->fetch_due) {
			s->fetch_due = false;
			s->now = HD_SLOTS_FETCH;
			want(e, s->fetch_step);
		} else if (s->now == HD_SLOTS_GATHER && !s->left) {
			save(e);
		} else if (s->now == HD_SLOTS_FETCH && !s->left) {
			s->now = HD_SLOTS_IDLE;
			/* the checkpoint writer alone uses them as long as the view stays */
			if (e->partial)
				hd_memory_drop(s->memory.at, HD_ELASTIC_SLOTS * place_bytes(e));
			note_fetched(e);
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_FETCHED,
				.epoch = s->fetch_epoch, .step = s->step });
		} else {
			return;
		}
	}
}

static void end(struct hd_elastic *e, enum hd_slots_work work)
{
	if (e->slots.now == work) {
		e->slots.now = HD_SLOTS_IDLE;
		e->slots.left = 0;
		e->slots.round++;
	}
}

void hd_elastic_slots_fetch(struct hd_elastic *e, uint64_t step, bool read)
{
	e->slots.fetch_read = read;
	e->slots.fetch_due = true;
	e->slots.fetch_step = step;
	e->slots.fetch_epoch = hd_member_epoch(e->member);
	go_on(e);
}

void hd_elastic_slots_gather(struct hd_elastic *e, const struct hd_command *boundary)
{
	if (boundary->step != hd_member_at(e->member))
		/* all began again from disk meanwhile: that boundary is of no step any more */
		return;
	e->slots.boundary = *boundary;
	e->slots.gather_due = true;
	if (hd_member_saves(e->member))
		go_on(e);
	else
		hd_elastic_slots_unsaved(e);
}

void hd_elastic_slots_unsaved(struct hd_elastic *e)
{
	struct hd_slots *s = &e->slots;

	s->boundary.flag = false;
	if (s->gather_due) {
		s->gather_due = false;
		give_boundary(e, &s->boundary);
	} else if (s->now == HD_SLOTS_GATHER) {
		s->left = 0;
		s->round++;
		save(e);                  /* what came is dropped */
	}
}

void hd_elastic_slots_saved(struct hd_elastic *e)
{
	end(e, HD_SLOTS_SAVE);
	go_on(e);
}

/* A step begins, or begins again: FETCH for it comes after this. */
void hd_elastic_slots_void(struct hd_elastic *e)
{
	e->slots.fetch_due = false;
	end(e, HD_SLOTS_FETCH);
	go_on(e);
}

void hd_elastic_slots_forget(struct hd_elastic *e)
{
	e->slots.gather_due = false;
	end(e, HD_SLOTS_GATHER);
	hd_elastic_slots_void(e);
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
		if (arrival->err || a->round != s->round || arrival->len == 1)
			return true;      /* of another round; or it is asked for again with the next tick */
		/* a bucket is asked for once at a time in a round */
		assert(s->left && s->want[a->bucket]);
		(void)HD_FAILPOINT(SLOTS_HERE);
		if (hd_dist_slot_put(e->worker, a->bucket, place(e, i), arrival->len,
			s->now == HD_SLOTS_GATHER, &diag)) {
			hd_elastic_fail(e, HD_E_BUG, &diag);
			return true;
		}
		s->want[a->bucket] = 0;
		s->left--;
		s->fetched += arrival->len;
		hd_elastic_slots_ask(e);
		go_on(e);
		return true;
	}
	return false;
}

void hd_elastic_slots_lost(struct hd_elastic *e, uint32_t worker)
{
	struct hd_slots *s = &e->slots;
	uint32_t n = 0;

	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		if (s->ask[i].worker == worker)
			s->ask[i].open = false;
	for (uint32_t i = 0; i < s->nlater; i++)
		if (s->later[i].worker != worker)
			s->later[n++] = s->later[i];
	s->nlater = n;
}
