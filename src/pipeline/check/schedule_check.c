#include "pipeline/schedule_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/check/int.h"
#include "pipeline/redundancy.h"
#include "pipeline/simulate.h"

const char *const hd_transport_names[HD_NTRANSPORTS] = {
#define X(id, name) [HD_TRANSPORT_##id] = (name),
	HD_TRANSPORTS(X)
#undef X
};

/* NULL: there are enough. */
static struct hd_finding *begin_finding(struct hd_report *report, const char *rule)
{
	if (report->total++ >= HD_MAX_FINDINGS)
		return NULL;
	struct hd_finding *f = &report->at[report->len++];
	*f = (struct hd_finding){ .rule = rule };
	return f;
}

/* "rank 2, #14 F1.3" */
static void put_place(struct hd_text *text, const struct hd_schedule *s, uint32_t rank, uint32_t at)
{
	hd_text_addf(text, "rank %u, #%u ", rank, at);
	hd_ins_print(&s->list[rank].at[at], text);
}

static void put_sentence(struct hd_text *text, const char *fmt, va_list args)
{
	char sentence[300];

	vsnprintf(sentence, sizeof sentence, fmt, args);
	hd_text_add(text, sentence);
}

static void say_at(const struct hd_lists *l, const char *rule, const struct hd_at place[2], bool named,
	const char *fmt, va_list args)
{
	struct hd_finding *f = begin_finding(l->report, rule);
	uint32_t n = place[0].at == HD_NOWHERE ? 0 : place[1].at == HD_NOWHERE ? 1 : 2;
	struct hd_text text;

	if (!f)
		return;
	hd_text_fixed(&text, f->text, sizeof f->text);
	hd_text_add(&text, "plan: ");
	hd_text_add(&text, l->view ? l->view : "");
	if (n && named)
		put_place(&text, l->s, place[0].rank, place[0].at);
	hd_text_add(&text, n && named ? ": " : "");
	put_sentence(&text, fmt, args);
	if (n == 2 && named) {
		hd_text_add(&text, " [");
		put_place(&text, l->s, place[1].rank, place[1].at);
		hd_text_add(&text, "]");
	}
	for (uint32_t i = 0; i < n; i++)
		hd_fragment_draw(f->fragment[i], sizeof f->fragment[i], &l->s->list[place[i].rank],
			place[i].rank, place[i].at);
}

void hd_lists_say(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at, const char *fmt,
	...)
{
	va_list args;

	va_start(args, fmt);
	say_at(l, rule, (const struct hd_at[]){ { at, (uint16_t)rank }, { HD_NOWHERE, 0 } }, true, fmt, args);
	va_end(args);
}

void hd_lists_say_both(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at, uint32_t other,
	uint32_t other_at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_at(l, rule, (const struct hd_at[]){ { at, (uint16_t)rank }, { other_at, (uint16_t)other } }, true,
		fmt, args);
	va_end(args);
}

void hd_lists_say_drawn(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at,
	uint32_t other, uint32_t other_at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_at(l, rule, (const struct hd_at[]){ { at, (uint16_t)rank }, { other_at, (uint16_t)other } },
		false, fmt, args);
	va_end(args);
}

void hd_lists_say_all(const struct hd_lists *l, const char *rule, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_at(l, rule, (const struct hd_at[]){ { HD_NOWHERE, 0 }, { HD_NOWHERE, 0 } }, true, fmt, args);
	va_end(args);
}

#define HERE(l, rule, ...) hd_lists_say(l, rule, rank, at, __VA_ARGS__)
#define HERE_AND(l, rule, place, ...) \
	hd_lists_say_both(l, rule, rank, at, (place).rank, (place).at, __VA_ARGS__)

/* ---- first walk: what each rank computes, in its own order */

static void forward(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	struct hd_done *d)
{
	if (d->seen & HD_DID_F)
		HERE_AND(l, "K1", d->f, "forward of %u.%u appears twice (ranks %u #%u and %u #%u)", x->stage,
			x->vn, d->f.rank, d->f.at, rank, at);
	else if (d->seen & HD_LOADED && d->f.rank != rank)
		HERE_AND(l, "K3", d->f, "what stage %u needs of virtual node %u is read on rank %u, not here",
			x->stage, x->vn, d->f.rank);
	d->f = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= (uint16_t)(HD_DID_F | (x->flags & HD_INS_CHECKPOINT ? HD_KEPT_INPUT : 0));
}

static void need_activations(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	const struct hd_done *d)
{
	if (d->seen & HD_KEPT_INPUT)
		HERE_AND(l, "K23", d->f, "activations of %u.%u were not kept; insert R or drop the flag c",
			x->stage, x->vn);
	if (d->seen & HD_ON_HOST)
		HERE(l, "K24", "activations of %u.%u are on the host at #%u", x->stage, x->vn, at);
}

static void back(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	struct hd_done *d)
{
	bool whole = x->op == HD_INS_B;

	if (d->seen & (whole ? HD_DID_B : HD_DID_I))
		HERE_AND(l, "K2", d->b, whole ? "%u.%u has two backwards" : "%u.%u has I twice", x->stage,
			x->vn);
	else if (d->seen & (whole ? HD_DID_I | HD_DID_W : HD_DID_B))
		HERE_AND(l, "K2", d->b, "%u.%u has both a full and a split backward", x->stage, x->vn);
	else if (!(d->seen & HD_DID_F))
		HERE(l, "K6", "backward before forward");
	else if (d->f.rank != rank)
		HERE_AND(l, "K3", d->f, "stage %u lives on rank %u for virtual node %u, not here", x->stage,
			d->f.rank, x->vn);
	need_activations(l, rank, at, x, d);
	d->b = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= whole ? HD_DID_B : HD_DID_I;
}

static void weights(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	struct hd_done *d)
{
	if (d->seen & HD_DID_W)
		HERE_AND(l, "K2", d->w, "%u.%u has W twice", x->stage, x->vn);
	else if (d->seen & HD_DID_B)
		HERE_AND(l, "K2", d->b, "%u.%u has both a full and a split backward", x->stage, x->vn);
	else if (!(d->seen & HD_DID_I))
		HERE(l, "K6", "W before I");
	else if (d->b.rank != rank)
		HERE_AND(l, "K3", d->b, "stage %u lives on rank %u for virtual node %u, not here", x->stage,
			d->b.rank, x->vn);
	need_activations(l, rank, at, x, d);
	d->w = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= HD_DID_W;
}

static void move(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	struct hd_done *d)
{
	bool live = d->seen & HD_DID_F && d->f.rank == rank && !(d->seen & (HD_DID_B | HD_DID_W));

	switch (x->op) {
	case HD_INS_R:
		if (!live || !(d->seen & HD_KEPT_INPUT))
			HERE(l, "K23", "there is nothing to recompute of %u.%u here", x->stage, x->vn);
		else if (d->seen & HD_ON_HOST)
			HERE(l, "K24", "activations of %u.%u are on the host at #%u", x->stage, x->vn, at);
		d->seen &= (uint16_t)~HD_KEPT_INPUT;
		break;
	case HD_INS_OFF:
		if (!live || d->seen & HD_ON_HOST)
			HERE(l, "K24", "activations of %u.%u are not live at #%u", x->stage, x->vn, at);
		d->seen |= HD_ON_HOST;
		break;
	case HD_INS_ON:
		if (!live || !(d->seen & HD_ON_HOST))
			HERE(l, "K24", "activations of %u.%u are not on the host at #%u", x->stage, x->vn,
				at);
		d->seen &= (uint16_t)~HD_ON_HOST;
		break;
	default:
		if (x->stage != 0 && x->stage + 1u != l->s->nstages)
			HERE(l, "K4", "stage %u takes nothing from the reader", x->stage);
		if (d->seen & HD_LOADED || (d->seen & HD_DID_F))
			HERE(l, "K6", "LD%u.%u comes twice or after its forward", x->stage, x->vn);
		else
			d->f = (struct hd_at){ at, (uint16_t)rank };
		d->seen |= HD_LOADED;
	}
}

static void check_pair(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	const struct hd_ins *next)
{
	if (x->flags & HD_INS_PAIR_END && (at == 0 || !(x[-1].flags & HD_INS_PAIR_BEGIN)))
		HERE(l, "K25", "the second half of a pair without the first");
	if (!(x->flags & HD_INS_PAIR_BEGIN))
		return;
	if (!next || !(next->flags & HD_INS_PAIR_END) || x->flags & HD_INS_PAIR_END)
		HERE(l, "K25", "the first half of a pair without the second");
	else if ((x->op == HD_INS_F) == (next->op == HD_INS_F) || x->op == HD_INS_W || next->op == HD_INS_W)
		HERE(l, "K25", "a pair needs one forward and one backward");
	else if (x->vn == next->vn)
		HERE(l, "K25", "the two halves of a pair depend on each other");
}

static void compute(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x)
{
	struct hd_done *d = hd_done_of(l, x->stage, x->vn);

	switch (x->op) {
	case HD_INS_F: forward(l, rank, at, x, d); break;
	case HD_INS_B: case HD_INS_I: back(l, rank, at, x, d); break;
	case HD_INS_W: weights(l, rank, at, x, d); break;
	case HD_INS_R: case HD_INS_OFF: case HD_INS_ON: case HD_INS_LD: move(l, rank, at, x, d); break;
	default: break;
	}
}

static bool check_numbers(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x)
{
	struct hd_diag why = { "" };

	if (hd_ins_verify(x, &why))
		hd_lists_say_all(l, "K4", "rank %u, #%u: %.160s", rank, at, why.text);
	else if (hd_ins_uses(x->op, 'v') && x->vn >= l->s->nvns)
		HERE(l, "K4", "virtual node %d does not exist in this step (m = %u)", (int32_t)x->vn,
			l->s->nvns);
	else if (hd_ins_uses(x->op, 's') && x->op != HD_INS_BAR && x->op != HD_INS_TIE &&
		x->stage >= l->s->nstages)
		HERE(l, "K4", "stage %u does not exist (there are %u)", x->stage, l->s->nstages);
	else if (hd_is_transfer(x->op) && (x->peer >= l->s->nranks || x->peer == rank))
		HERE(l, "K4", "rank %u is not another rank of %u", x->peer, l->s->nranks);
	else
		return true;
	return false;
}

static void walk_compute(const struct hd_lists *l)
{
	for (uint32_t rank = 0; rank < l->s->nranks; rank++) {
		const struct hd_ilist *list = &l->s->list[rank];
		for (uint32_t at = 0; at < list->len; at++) {
			if (!check_numbers(l, rank, at, &list->at[at]))
				continue;
			check_pair(l, rank, at, &list->at[at], at + 1 < list->len ? &list->at[at + 1] : NULL);
			compute(l, rank, at, &list->at[at]);
		}
	}
	for (uint32_t s = 0; s < l->s->nstages; s++)
		for (uint32_t v = 0; v < l->s->nvns; v++) {
			const struct hd_done *d = hd_done_of(l, s, v);
			uint16_t seen = d->seen;
			if (!(seen & HD_DID_F))
				hd_lists_say_all(l, "K1", "stage %u never runs forward for virtual node %u",
					s, v);
			else if (l->loads && !(seen & HD_LOADED) && (s == 0 || s + 1 == l->s->nstages))
				hd_lists_say(l, "K10", d->f.rank, d->f.at,
					"nothing reads virtual node %u for stage %u: LD%u.%u is missing", v,
					s, s, v);
			if (!(seen & (HD_DID_B | HD_DID_I | HD_DID_W)))
				hd_lists_say_drawn(l, "K2", d->f.rank, seen & HD_DID_F ? d->f.at : HD_NOWHERE,
					0, HD_NOWHERE, "%u.%u has no backward", s, v);
			else if (seen & HD_DID_I && !(seen & HD_DID_W))
				hd_lists_say_drawn(l, "K2", d->b.rank, d->b.at, 0, HD_NOWHERE,
					"%u.%u has I but no W: its weights would miss a gradient", s, v);
		}
}

/* ---- second walk: transfers, held against what the first has found */

/* The (stage, virtual node) whose tensor a transfer moves, and where that is used. */
struct message { struct hd_done *made; const struct hd_done *used; struct hd_at maker, user; bool grad, send;
	};

static bool message_of(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	struct message *m)
{
	bool grad = x->op == HD_INS_SG || x->op == HD_INS_RG, send = x->op == HD_INS_SA || x->op == HD_INS_SG;
	uint32_t from = x->stage;

	if (!send && !grad && x->stage == 0) {
		HERE(l, "K10", "stage 0 receives no activation");
		return false;
	}
	from = send ? from : grad ? from + 1 : from - 1;
	if (grad ? from == 0 || from >= l->s->nstages : from + 1 >= l->s->nstages) {
		HERE(l, "K10", "there is no stage that this tensor comes from or goes to");
		return false;
	}
	struct hd_done *made = hd_done_of(l, from, x->vn), *used = hd_done_of(l, grad ? from - 1 : from + 1,
		x->vn);
	*m = (struct message){ made, used, grad ? made->b : made->f, grad ? used->b : used->f, grad, send };
	return true;
}

static const char *tensor(const struct message *m) { return m->grad ? "input gradient" : "activation"; }

/* What a stage gives is what the next one takes; gradients likewise. Once a boundary: at virtual node 0. */
static void check_size(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	uint32_t stage, const struct message *m)
{
	uint32_t lower = m->grad ? stage - 1 : stage;

	if (!l->job || !l->job->costs || x->vn != 0 || lower + 1 >= l->job->costs->nstages)
		return;
	int64_t out = l->job->costs->stage[lower].out, in = l->job->costs->stage[lower + 1].in,
		sent = m->grad ? in : out, expected = m->grad ? out : in;
	if (sent != expected)
		HERE_AND(l, "K10", m->user, "sizes differ: %u sends %lld bytes, %u expects %lld", rank,
			(long long)sent, x->peer, (long long)expected);
}

static void check_transfer(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x,
	uint32_t *nth)
{
	struct message m;

	if (!message_of(l, rank, at, x, &m))
		return;
	uint32_t stage = (uint32_t)((size_t)(m.made - l->done) / l->s->nvns);
	uint16_t bit = m.send ? m.grad ? HD_SENT_G : HD_SENT_A : m.grad ? HD_GOT_G : HD_GOT_A;
	uint32_t here = m.send ? m.maker.rank : m.user.rank, there = m.send ? m.user.rank : m.maker.rank;

	if (m.made->seen & bit)
		HERE(l, "K10", "%s of %u.%u is %s twice", tensor(&m), stage, x->vn,
			m.send ? "sent" : "received");
	else if (here != rank || there != x->peer)
		HERE(l, "K10", "%s of %u.%u goes from rank %u to rank %u", tensor(&m), stage, x->vn,
			m.maker.rank, m.user.rank);
	else if (m.send && at < m.maker.at)
		HERE(l, "K10", "%s of %u.%u is sent before it is made (#%u)", tensor(&m), stage, x->vn,
			m.maker.at);
	else if (!m.send && at > m.user.at)
		HERE(l, "K10", "%s of %u.%u is received after it is needed (#%u)", tensor(&m), stage, x->vn,
			m.user.at);
	else if (!m.send && x->slot && (m.grad ? m.made->slot_g : m.made->slot_a) &&
		(m.grad ? m.made->slot_g : m.made->slot_a) != x->slot)
		HERE(l, "K10", "%s of %u.%u is sent into slot %u", tensor(&m), stage, x->vn,
			m.grad ? m.made->slot_g : m.made->slot_a);
	else if (m.send)
		check_size(l, rank, at, x, stage, &m);
	m.made->seen |= bit;
	if (m.send)
		*(m.grad ? &m.made->slot_g : &m.made->slot_a) = x->slot;
	uint32_t *place = m.grad ? &m.made->nth_g : &m.made->nth_a;
	if (m.send)
		*place = nth[x->peer]++;
	else if (*place != nth[x->peer]++)
		HERE(l, "K9", "rank %u expects the %s of %u.%u but rank %u sends another one first", rank,
			tensor(&m), stage, x->vn, x->peer);
}

/* Sends number the messages of their channel, receives compare. */
static void walk_transfers(const struct hd_lists *l, uint32_t *nth)
{
	static const uint8_t ops[] = { HD_INS_SA, HD_INS_SG, HD_INS_RA, HD_INS_RG };

	for (size_t k = 0; k < sizeof ops; k++)
		for (uint32_t rank = 0; rank < l->s->nranks; rank++) {
			const struct hd_ilist *list = &l->s->list[rank];
			for (uint32_t at = 0; at < list->len; at++)
				if (list->at[at].op == ops[k])
					nth[list->at[at].peer] = 0;
			for (uint32_t at = 0; at < list->len; at++)
				if (list->at[at].op == ops[k])
					check_transfer(l, rank, at, &list->at[at], nth);
		}
	for (uint32_t s = 0; s < l->s->nstages; s++)
		for (uint32_t v = 0; v < l->s->nvns; v++) {
			const struct hd_done *d = hd_done_of(l, s, v);
			const struct hd_done *next = hd_done_of(l, s + 1 < l->s->nstages ? s + 1 : s, v),
				*before = hd_done_of(l, s ? s - 1 : s, v);
			const struct { const char *what; uint16_t sent, got; struct hd_at made, used;
				} side[] = {
				{ "activation", HD_SENT_A, HD_GOT_A, d->f, next->f }, { "input gradient", HD_SENT_G, HD_GOT_G, d->b, before->b },
			};
			for (int i = 0; i < 2; i++) {
				bool sent = d->seen & side[i].sent, got = d->seen & side[i].got;
				if (sent && !got)
					hd_lists_say_drawn(l, "K10", side[i].made.rank, side[i].made.at,
						side[i].used.rank, side[i].used.at,
						"%s of %u.%u is sent and never received", side[i].what, s, v);
				else if (!sent && (got || side[i].made.rank != side[i].used.rank))
					hd_lists_say_drawn(l, "K10", side[i].made.rank, side[i].made.at,
						side[i].used.rank, side[i].used.at,
						"%s of %u.%u is received and never sent", side[i].what, s, v);
			}
		}
}

/* ---- barriers */

static const struct hd_ins *next_bar(const struct hd_ilist *list, uint32_t *at)
{
	while (*at < list->len)
		if (list->at[(*at)++].op == HD_INS_BAR)
			return &list->at[*at - 1];
	return NULL;
}

static void check_bars(const struct hd_lists *l)
{
	for (uint32_t rank = 1; rank < l->s->nranks; rank++) {
		const struct hd_ins *mine, *first;
		uint32_t at = 0, first_at = 0;
		do {
			first = next_bar(&l->s->list[0], &first_at);
			mine = next_bar(&l->s->list[rank], &at);
		} while (first && mine && first->stage == mine->stage);
		if (first && !mine)
			hd_lists_say_all(l, "K27", "BAR %u is missing on rank %u", first->stage, rank);
		else if (mine && !first)
			hd_lists_say_all(l, "K27", "BAR %u is missing on rank 0", mine->stage);
		else if (mine)
			hd_lists_say(l, "K27", rank, at - 1, "rank 0 meets at BAR %u here", first->stage);
	}
}

/* ---- all of it */

static void look_for_transfers(struct hd_lists *l)
{
	l->transfers = l->loads = l->job && l->job->whole;
	for (uint32_t r = 0; r < l->s->nranks; r++)
		for (uint32_t i = 0; i < l->s->list[r].len; i++) {
			const struct hd_ins *x = &l->s->list[r].at[i];
			l->transfers |= hd_is_transfer(x->op);
			l->loads |= x->op == HD_INS_LD && (x->stage == 0 || x->stage + 1u == l->s->nstages);
		}
}

/* [stages] ranks with a forward of each. */
static bool count_holders(struct hd_lists *l)
{
	uint32_t *last = hd_arena_take(l->arena, (size_t)l->s->nstages + 1, sizeof *last);

	l->holders = hd_arena_take(l->arena, (size_t)l->s->nstages + 1, sizeof *l->holders);
	for (uint32_t r = 0; last && l->holders && r < l->s->nranks; r++)
		for (uint32_t i = 0; i < l->s->list[r].len; i++) {
			const struct hd_ins *x = &l->s->list[r].at[i];
			if (x->op != HD_INS_F || x->stage >= l->s->nstages || last[x->stage] == r + 1)
				continue;
			l->holders[x->stage]++;
			last[x->stage] = r + 1;
		}
	return last && l->holders;
}

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to check a schedule"); }

static enum hd_err check_flush(struct hd_lists *l, const struct hd_schedule_rules *rules,
	struct hd_diag *diag)
{
	const struct hd_schedule *s = l->s;
	uint64_t nins = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->list[r].len;
	if (s->nvns == 0 || s->nstages == 0) {
		hd_lists_say_all(l, "K1", "it computes nothing: there is no forward in its %llu instructions",
			(unsigned long long)nins);
		return HD_OK;
	}
	if (nins == 0 || (uint64_t)s->nstages * s->nvns > nins) {
		hd_lists_say_all(l, "K1",
			"%u stages of %u virtual nodes need more than its %llu instructions", s->nstages,
			s->nvns, (unsigned long long)nins);
		return HD_OK;
	}
	uint32_t *nth = hd_arena_take(l->arena, s->nranks, sizeof *nth);
	l->done = hd_arena_take(l->arena, (size_t)s->nstages * s->nvns + 1, sizeof *l->done);
	if (!nth || !l->done || !count_holders(l))
		return no_memory(diag);
	look_for_transfers(l);
	walk_compute(l);
	if (!l->report->total && l->transfers)
		walk_transfers(l, nth);
	enum hd_err err = l->report->total ? HD_OK : hd_lists_slots(l, diag);
	if (!err && !l->report->total)
		err = hd_lists_versions(l, diag);
	if (!err && !l->report->total)
		check_bars(l);
	return err || l->report->total ? err : hd_lists_run(l, rules, diag);
}

/* `s`: lists of one section. */
static enum hd_err check_flat(struct hd_lists *l, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, struct hd_diag *diag)
{
	const struct hd_schedule_rules eager = { HD_TRANSPORT_EAGER, 0 };
	struct hd_lists flat = *l;
	struct hd_schedule whole;

	flat.s = s;
	enum hd_err err = check_flush(&flat, &eager, diag);
	l->done = flat.done;
	l->transfers = flat.transfers;
	if (err || l->report->total || rules->transport == HD_TRANSPORT_EAGER)
		return err;
	err = hd_schedule_comms(&whole, s, l->arena, diag);
	flat.s = &whole;
	return err ? err : check_flush(&flat, rules, diag);
}

/* The steps that the prologue covers, those whose versions reach back to the initial weights, and two more:
 * what is wrong with the period shows in the second. */
static uint32_t steps_that_show(const struct hd_lists *l, const struct hd_schedule *s)
{
	uint64_t back = 0;

	for (uint32_t k = 0; k < s->nstages; k++) {
		uint64_t vns = (uint64_t)l->rule[k].delay * l->rule[k].every;
		back = vns > back ? vns : back;
	}
	return (uint32_t)(3 + (s->nranks + s->nvns) / s->nvns + (back + s->nvns - 1) / s->nvns);
}

static enum hd_err check_delayed(struct hd_lists *l, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	struct hd_schedule run;
	enum hd_err err = s->nvns ? hd_schedule_unroll(&run, s, steps_that_show(l, s), l->arena, &why) :
		hd_fail(&why, HD_E_BADPLAN, "it has no instruction");

	if (err == HD_E_NOMEM)
		return no_memory(diag);
	if (err) {
		if (hd_lists_period(l, hd_schedule_prologue_steps(s), diag))
			return no_memory(diag);
		if (!l->report->total)
			hd_lists_say_all(l, "K30", "the period does not repeat: %.200s", why.text);
		return HD_OK;
	}
	if (run.nstages != s->nstages) {
		hd_lists_say_all(l, "K30",
			"the period does not repeat: it has %u stages, the other sections name %u",
			s->nstages, run.nstages);
		return HD_OK;
	}
	err = check_flat(l, &run, rules, diag);
	if (!err && !l->report->total && s->update == HD_UPDATE_2BW && s->nvns < s->nranks)
		hd_lists_say_all(l, "K13", "2bw needs m >= p; m = %u, p = %u; the nearest that works: m = %u",
			s->nvns, s->nranks, s->nranks);
	return err ? err : hd_lists_period(l, hd_schedule_prologue_steps(s), diag);
}

static enum hd_err check_all(struct hd_lists *l, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, struct hd_diag *diag)
{
	struct hd_stage_rule *rule = hd_arena_take(l->arena, (size_t)s->nstages + 1, sizeof *rule);
	struct hd_diag why = { "" };

	if (!rule)
		return no_memory(diag);
	l->rule = rule;
	if (s->nvns && hd_stage_rules(rule, s, l->job, &why)) {
		hd_lists_say_all(l, "K16", "%s", why.text);
		return HD_OK;
	}
	return (s->prologue ? check_delayed : check_flat)(l, s, rules, diag);
}

/* First without their shadows, then what shadows keep, then all of it run. */
static enum hd_err check_shadowed(struct hd_lists *l, const struct hd_schedule *s,
	const struct hd_schedule_rules *rules, struct hd_diag *diag)
{
	struct hd_schedule bare;
	struct hd_lists without = *l;
	enum hd_err err = hd_redundancy_erase(&bare, s, l->arena, diag);

	without.s = &bare;
	without.view = "without its shadows: ";
	for (uint32_t r = 0; !err && r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (hd_ins_verify(&s->list[r].at[i], NULL))
				hd_lists_say_all(l, "K4", "rank %u, #%u: it is no instruction", r, i);
	err = err || l->report->total ? err : check_all(&without, &bare, rules, diag);
	if (!err && !l->report->total && !without.transfers)
		hd_lists_say_all(l, "K31", "shadow work stands in complete lists: transfers are missing");
	if (!err && !l->report->total)
		err = hd_lists_shadows(l, diag);
	l->done = without.done;
	l->transfers = without.transfers;
	return err || l->report->total ? err : hd_lists_run(l, rules, diag);
}

/* What a job says that is not in the lists; of tensor groups `groups` remain. */
static enum hd_err check_around(struct hd_lists *l, struct hd_schedule *groups, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (l->job->layers)
		err = hd_lists_layers(l, diag);
	if (!err && l->job->pipeline)
		err = hd_lists_pipelines(l, diag);
	if (!err && l->job->tensor && l->s->nranks) {
		err = hd_lists_tensor_groups(l, groups, diag);
		l->s = groups->nranks ? groups : l->s;
	}
	return err;
}

enum hd_err hd_schedule_check(const struct hd_schedule *s, const struct hd_schedule_rules *rules,
	struct hd_report *report, struct hd_diag *diag)
{
	return hd_schedule_check_job(s, NULL, rules, report, diag);
}

enum hd_err hd_schedule_check_job(const struct hd_schedule *s, const struct hd_schedule_job *job,
	const struct hd_schedule_rules *rules,
	struct hd_report *report, struct hd_diag *diag)
{
	struct hd_report own;
	struct hd_arena arena;
	struct hd_schedule groups = { 0 };
	struct hd_lists l = { .s = s, .job = job, .arena = &arena, .update = s->update, .step_vns = s->nvns };
	enum hd_err err;

	l.report = report = report ? report : &own;
	report->len = 0;
	report->total = 0;
	hd_arena_init(&arena, 0);
	err = job ? check_around(&l, &groups, diag) : HD_OK;
	if (!err && !(job && job->tensor && report->total))
		err = (hd_redundancy_in(l.s) ? check_shadowed : check_all)(&l, l.s, rules, diag);
	if (!err && !report->total && job && job->costs && job->memory)
		err = hd_lists_memory(&l, rules, diag);
	hd_arena_finish(&arena);
	if (err)
		return err;
	return report->total ? hd_fail(diag, HD_E_BADPLAN, "%s", report->at[0].text) : HD_OK;
}
