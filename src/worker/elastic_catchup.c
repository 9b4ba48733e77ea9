#include "worker/elastic_int.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/failpoint.h"

/* State transfer, the part of the I/O thread. A joiner requests chunk after chunk, two at a time, and
 * requests again while one does not come: the end of an epoch may cut off a chunk or drop a request. A
 * new or returned coordinator repeats SEND_STATE: the transfer goes on. The loss of the link to a joiner
 * may be noticed after SEND_STATE, so a named joiner is served whenever it asks. Its requests say
 * whether it goes on: chunk 0 starts over; a number beyond what was sent belongs to a transfer that has
 * ended. A source keeps no request that it cannot serve yet: SYNC may reach the joiner before SEND_STATE
 * reaches the source. When it can, it invites: a request without content, upon which the joiner repeats its
 * own; the pause after which one is repeated without that is as long as a loss takes to be seen. */

enum { HD_ASK_BYTES = 16 };               /* u64 number of the chunk, u64 request to answer; none: invites */

/* ---- the source ---- */

static struct hd_transfer_out *transfer_to(struct hd_elastic *e, uint32_t worker)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (e->transfer[i].worker == worker && !e->transfer[i].ended)
			return &e->transfer[i];
	return NULL;
}

static void give_transfer(struct hd_elastic *e, struct hd_transfer_out *t, bool on)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_commands_give(&e->commands, &(struct hd_command){ .kind = HD_COMMAND_TRANSFER,
		.worker = t->worker, .number = (uint32_t)(t - e->transfer),
		.flag = on }, &diag);

	if (err)
		hd_elastic_fail(e, err, &diag);
}

static void let_go_of(struct hd_chunk_out *out)
{
	if (!out->sending) {
		hd_catchup_chunk_free(out->chunk);
		*out = (struct hd_chunk_out){ 0 };
	}
}

static void end(struct hd_elastic *e, struct hd_transfer_out *t)
{
	if (t->made && !t->ended)
		hd_catchup_source_cancel(&t->source);
	assert(!t->ended);
	t->ended = true;
	for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++) {
		t->out[k].asked = false;
		let_go_of(&t->out[k]);
	}
	give_transfer(e, t, false);
}

/* A joiner whose link is down asks when it is up. */
static void invite(struct hd_elastic *e, uint32_t joiner)
{
	if (hd_hub_is_up(&e->hub, joiner) && hd_hub_tell(&e->hub, joiner, HD_ASK_ID, 0, NULL, 0, NULL))
		return;                   /* it repeats its request by itself, later */
}

/* An entry is free once the compute thread has released it and nothing of it is being sent. */
static bool is_free(const struct hd_transfer_out *t)
{
	for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++)
		if (t->out[k].sending)
			return false;
	return t->worker == HD_NOBODY || (t->ended && t->let_go);
}

static void begin(struct hd_elastic *e, uint32_t joiner)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++) {
		struct hd_transfer_out *t = &e->transfer[i];
		if (!is_free(t))
			continue;
		t->worker = joiner;
		t->made = t->ended = t->let_go = false;
		t->taken = 0;
		give_transfer(e, t, true);
		invite(e, joiner);
		return;
	}
	/* all entries are in use: one becomes free, and the joiner is invited */
}

static bool is_named(const struct hd_elastic *e, uint32_t joiner)
{
	for (uint32_t i = 0; i < e->nnamed; i++)
		if (e->named[i] == joiner)
			return true;
	return false;
}

/* More than a job has members are of previous coordinators: the oldest is forgotten. */
static void name(struct hd_elastic *e, uint32_t joiner, bool on)
{
	uint32_t *at = e->named, n = 0;
	bool full = on && e->nnamed == HD_MAX_MEMBERS && !is_named(e, joiner);

	for (uint32_t i = full; i < e->nnamed; i++)
		if (at[i] != joiner)
			at[n++] = at[i];
	if (on)
		at[n++] = joiner;
	assert(n <= HD_MAX_MEMBERS);
	e->nnamed = n;
}

void hd_elastic_send_state(struct hd_elastic *e, uint32_t joiner, bool on)
{
	struct hd_transfer_out *t = transfer_to(e, joiner);

	name(e, joiner, on);
	if (t && !on)
		end(e, t);
	else if (!t && on)
		begin(e, joiner);
}

/* Joiners that found all entries in use: now one is free. */
static void invite_others(struct hd_elastic *e)
{
	for (uint32_t i = 0; i < e->nnamed; i++)
		if (!transfer_to(e, e->named[i]))
			invite(e, e->named[i]);
}

/* Members that hold have no boundaries; the workers they wait for may have to sync from them. */
void hd_elastic_send_state_standing(struct hd_elastic *e)
{
	struct hd_diag diag = { "" };
	struct hd_view *view = e->standing_open || !hd_member_holds(e->member) ? NULL :
		hd_alloc(sizeof *view);

	if (!view)
		return;                   /* without memory: next time */
	assert(!e->standing_open);
	*view = *hd_member_view(e->member);
	e->standing_open = true;
	if (hd_commands_give(&e->commands,
		&(struct hd_command){ .kind = HD_COMMAND_TRANSFER, .worker = HD_NOBODY,
		.flag = true, .view = view }, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

void hd_elastic_transfer_done(struct hd_elastic *e, const struct hd_command_done *done)
{
	struct hd_transfer_out *t = &e->transfer[done->command.number];

	assert(done->command.worker == HD_NOBODY ? e->standing_open : done->command.flag ? !t->made :
		t->ended);
	if (done->command.worker == HD_NOBODY)
		e->standing_open = false;
	else if (done->command.flag)
		t->made = true;
	else
		t->let_go = true;
	if (done->command.worker != HD_NOBODY && is_free(t))
		invite_others(e);
	hd_elastic_answer(e);
}

static void answer(struct hd_elastic *e, struct hd_transfer_out *t, struct hd_chunk_out *out)
{
	if (!out->chunk && out->number == t->taken && t->made) {
		out->chunk = hd_catchup_source_take(&t->source);
		t->taken += out->chunk != NULL;
	}
	if (!out->chunk)
		return;
	(void)HD_FAILPOINT(TEACH_PIECE);
	const struct hd_answer a = { .request = out->request, .bytes = out->chunk->bytes,
		.len = out->chunk->len,
		.token = (uint64_t)(uintptr_t)out };
	if (hd_hub_answer(&e->hub, t->worker, &a, NULL))
		return;                   /* the joiner is gone, or will ask again */
	out->asked = false;
	out->sending = true;
}

void hd_elastic_answer(struct hd_elastic *e)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++) {
		struct hd_transfer_out *t = &e->transfer[i];
		for (uint32_t k = 0; k < HD_ELASTIC_ASKED && t->worker != HD_NOBODY && !t->ended; k++) {
			struct hd_chunk_out *out = &t->out[(t->taken + k) % HD_ELASTIC_ASKED];
			if (out->asked && !out->sending)
				answer(e, t, out);
		}
	}
}

void hd_elastic_asked(struct hd_elastic *e, uint32_t joiner, const uint8_t *bytes, uint32_t len)
{
	struct hd_transfer_out *t = transfer_to(e, joiner);

	if (len != HD_ASK_BYTES)
		return;
	uint64_t number = hd_get64(bytes), request = hd_get64(bytes + 8);
	if (!t) {
		if (number == 0 && is_named(e, joiner))
			begin(e, joiner);        /* it asks again */
		return;
	}
	struct hd_chunk_out *out = &t->out[number % HD_ELASTIC_ASKED];
	if (number > t->taken + 1) {
		hd_hub_drop(&e->hub, joiner, HD_CLOSE_DROPPED, "it continues a transfer that has ended");
		return;
	}
	if (number == 0 && t->taken && !(out->chunk && out->number == 0)) {
		end(e, t);
		begin(e, joiner);
		return;                   /* it asks again */
	}
	if (out->sending || (out->chunk && number < out->number))
		return;                   /* on its way, or past: it asks again if it must */
	if (out->chunk && number > out->number)
		let_go_of(out);
	out->number = number;
	out->request = request;
	out->asked = true;
	hd_elastic_answer(e);
}

void hd_elastic_chunk_sent(struct hd_elastic *e, const struct hd_sent *sent)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++) {
			struct hd_transfer_out *t = &e->transfer[i];
			struct hd_chunk_out *out = &t->out[k];
			if ((uint64_t)(uintptr_t)out != sent->token || !out->sending)
				continue;
			out->sending = false;
			if (t->ended)
				let_go_of(out);
			if (is_free(t))
				invite_others(e);
			return;
		}
}

/* ---- the joiner ---- */

/* The buffer of a chunk of the present transfer, or a free one for it. */
static struct hd_chunk_in *buffer_of(struct hd_elastic *e, uint64_t number)
{
	struct hd_chunk_in *free = NULL;

	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++) {
		struct hd_chunk_in *l = &e->chunk[i];
		bool used = l->open || l->here || l->applying;
		if (used && l->transfer_round == e->transfer_round && l->number == number)
			return l;
		if (!used)
			free = l;
	}
	return free;
}

static void ask_for(struct hd_elastic *e, uint64_t number, int64_t now)
{
	struct hd_chunk_in *l = buffer_of(e, number);
	uint8_t bytes[HD_ASK_BYTES];

	if (!l || l->here || l->applying || (l->open && now - l->asked_ns < e->detect_ns))
		return;
	if (!l->open) {
		l->request = ++e->next_request;
		if (hd_hub_expect(&e->hub, e->source, l->request, l->bytes, HD_CATCHUP_CHUNK, NULL))
			return;
		l->open = true;
		l->number = number;
		l->worker = e->source;
		l->transfer_round = e->transfer_round;
	}
	hd_put64(bytes, l->number);
	hd_put64(bytes + 8, l->request);
	if (!hd_hub_tell(&e->hub, e->source, HD_ASK_ID, 0, bytes, sizeof bytes, NULL))
		l->asked_ns = now;
}

void hd_elastic_ask(struct hd_elastic *e)
{
	int64_t now = hd_clock_now_ns(e->spec->clock);

	if (e->source == HD_NOBODY || !hd_hub_is_up(&e->hub, e->source))
		return;
	for (uint32_t i = 0; i < HD_ELASTIC_ASKED; i++)
		ask_for(e, e->next_chunk + i, now);
}

void hd_elastic_invited(struct hd_elastic *e, uint32_t source)
{
	if (source != e->source)
		return;
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++)
		e->chunk[i].asked_ns = INT64_MIN / 2;
	hd_elastic_ask(e);
}

void hd_elastic_sync(struct hd_elastic *e, uint32_t source, uint64_t step)
{
	struct hd_diag diag = { "" };

	e->transfer_round++;
	e->next_chunk = 0;
	e->whole = false;
	e->source = source;
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++)
		e->chunk[i].here = false;
	if (source != HD_NOBODY)
		hd_elastic_ask(e);
	else if (hd_commands_give(&e->commands,
		&(struct hd_command){ .kind = HD_COMMAND_RESTORE, .step = step },
		&diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

/* A member makes its own steps: the rest of the transfer is void. */
void hd_elastic_promoted(struct hd_elastic *e)
{
	if (e->source == HD_NOBODY)
		return;
	e->source = HD_NOBODY;
	e->transfer_round++;
}

static void sync_lost(struct hd_elastic *e, bool slow)
{
	e->source = HD_NOBODY;
	e->transfer_round++;
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_SYNC_LOST, .whole = e->whole,
		.slow = slow });
}

/* Gives the next chunk in order, if it is here, to the compute thread. */
static void apply_next(struct hd_elastic *e)
{
	struct hd_chunk_in *l = buffer_of(e, e->next_chunk);
	struct hd_diag diag = { "" };

	if (!l || !l->here)
		return;
	assert(!l->open && !l->applying && l->number == e->next_chunk);
	l->here = false;
	l->applying = true;
	e->whole = false;
	if (hd_commands_give(&e->commands, &(struct hd_command){ .kind = HD_COMMAND_CHUNK, .step = l->number,
		.worker = e->source, .pass = e->transfer_round,
		.number = (uint32_t)(l - e->chunk), .bytes = l->bytes, .len = l->len }, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

void hd_elastic_chunk_here(struct hd_elastic *e, const struct hd_arrival *a)
{
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++) {
		struct hd_chunk_in *l = &e->chunk[i];
		if (!l->open || l->request != a->request || l->worker != a->worker)
			continue;
		assert(!l->here && !l->applying && a->len <= HD_CATCHUP_CHUNK);
		l->open = false;
		l->here = !a->err && l->transfer_round == e->transfer_round;
		l->len = a->len;
		apply_next(e);
		hd_elastic_ask(e);
		return;
	}
}

/* Leaves with the reason if it may leave at once; a worker decided into a view cannot wait for that. */
static void refused(struct hd_elastic *e, const struct hd_diag *diag)
{
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_DRAIN,
		.code = (uint32_t)hd_err_exit(HD_E_INTEGRITY), .text = diag->text });
	if (!e->leaving)
		hd_elastic_fail(e, HD_E_INTEGRITY, diag);
}

void hd_elastic_chunk_done(struct hd_elastic *e, const struct hd_command_done *done)
{
	assert(e->chunk[done->command.number].applying);
	e->chunk[done->command.number].applying = false;
	if (done->command.pass == e->transfer_round) {      /* else of an earlier source */
		if (done->err == HD_E_INTEGRITY) {
			refused(e, &done->diag);
			return;
		}
		if (done->err) {
			sync_lost(e, done->over);
			return;
		}
		e->next_chunk++;
		e->whole = done->synced;
		if (done->synced)
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_SYNCED,
				.step = done->step });
	}
	apply_next(e);
	hd_elastic_ask(e);
}

void hd_elastic_peer_lost(struct hd_elastic *e, uint32_t worker)
{
	struct hd_transfer_out *t = transfer_to(e, worker);

	hd_elastic_slots_lost(e, worker);
	if (t)
		end(e, t);
	for (uint32_t i = 0; i < HD_ELASTIC_CHUNKS; i++)
		if (e->chunk[i].worker == worker)
			e->chunk[i].open = e->chunk[i].here = false;
	if (worker == e->source && worker != HD_NOBODY)
		sync_lost(e, false);
}
