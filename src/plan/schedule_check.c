#include "plan/schedule_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/schedule_check_int.h"
#include "plan/simulate.h"

const char *const hd_transport_names[HD_NTRANSPORTS] = {
#define X(id, name) [HD_TRANSPORT_##id] = (name),
	HD_TRANSPORTS(X)
#undef X
};

static void put(struct hd_report *report, const char *rule, const char *place, const char *fmt, va_list args)
{
	if (report->total++ >= HD_MAX_FINDINGS)
		return;
	struct hd_finding *f = &report->at[report->len++];
	f->rule = rule;
	int n = snprintf(f->text, sizeof f->text, "plan: %s", place);
	vsnprintf(f->text + n, sizeof f->text - (size_t)n, fmt, args);
}

void hd_lists_say(const struct hd_lists *l, const char *rule, uint32_t rank, uint32_t at, const char *fmt, ...)
{
	char place[96], word[48];
	struct hd_text text;
	va_list args;

	hd_text_fixed(&text, word, sizeof word);
	hd_ins_print(&l->s->list[rank].at[at], &text);
	snprintf(place, sizeof place, "rank %u, #%u %s: ", rank, at, word);
	va_start(args, fmt);
	put(l->report, rule, place, fmt, args);
	va_end(args);
}

void hd_lists_say_all(const struct hd_lists *l, const char *rule, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put(l->report, rule, "", fmt, args);
	va_end(args);
}

#define HERE(l, rule, ...) hd_lists_say(l, rule, rank, at, __VA_ARGS__)

/* ---- first walk: what each rank computes, in its own order */

static void forward(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, struct hd_done *d)
{
	if (d->seen & HD_DID_F)
		HERE(l, "K1", "forward of %u.%u appears twice (ranks %u #%u and %u #%u)", x->stage, x->vn, d->f.rank, d->f.at, rank, at);
	d->f = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= (uint16_t)(HD_DID_F | (x->flags & HD_INS_CHECKPOINT ? HD_KEPT_INPUT : 0));
}

static void need_activations(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, const struct hd_done *d)
{
	if (d->seen & HD_KEPT_INPUT)
		HERE(l, "K23", "activations of %u.%u were not kept; insert R or drop the flag c", x->stage, x->vn);
	if (d->seen & HD_ON_HOST)
		HERE(l, "K24", "activations of %u.%u are on the host at #%u", x->stage, x->vn, at);
}

static void back(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, struct hd_done *d)
{
	bool whole = x->op == HD_INS_B;

	if (d->seen & (whole ? HD_DID_B : HD_DID_I))
		HERE(l, "K2", whole ? "%u.%u has two backwards" : "%u.%u has I twice", x->stage, x->vn);
	else if (d->seen & (whole ? HD_DID_I | HD_DID_W : HD_DID_B))
		HERE(l, "K2", "%u.%u has both a full and a split backward", x->stage, x->vn);
	else if (!(d->seen & HD_DID_F))
		HERE(l, "K6", "backward before forward");
	else if (d->f.rank != rank)
		HERE(l, "K3", "stage %u lives on rank %u for virtual node %u, not here", x->stage, d->f.rank, x->vn);
	need_activations(l, rank, at, x, d);
	d->b = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= whole ? HD_DID_B : HD_DID_I;
}

static void weights(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, struct hd_done *d)
{
	if (d->seen & HD_DID_W)
		HERE(l, "K2", "%u.%u has W twice", x->stage, x->vn);
	else if (d->seen & HD_DID_B)
		HERE(l, "K2", "%u.%u has both a full and a split backward", x->stage, x->vn);
	else if (!(d->seen & HD_DID_I))
		HERE(l, "K6", "W before I");
	else if (d->b.rank != rank)
		HERE(l, "K3", "stage %u lives on rank %u for virtual node %u, not here", x->stage, d->b.rank, x->vn);
	need_activations(l, rank, at, x, d);
	d->w = (struct hd_at){ at, (uint16_t)rank };
	d->seen |= HD_DID_W;
}

static void move(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, struct hd_done *d)
{
	bool live = d->seen & HD_DID_F && d->f.rank == rank && !(d->seen & (HD_DID_B | HD_DID_W));

	switch (x->op) {
	case HD_INS_R:
		if (!live || !(d->seen & HD_KEPT_INPUT))
			HERE(l, "K23", "there is nothing to recompute of %u.%u here", x->stage, x->vn);
		d->seen &= (uint16_t)~HD_KEPT_INPUT;
		break;
	case HD_INS_OFF:
		if (!live || d->seen & HD_ON_HOST)
			HERE(l, "K24", "activations of %u.%u are not live at #%u", x->stage, x->vn, at);
		d->seen |= HD_ON_HOST;
		break;
	case HD_INS_ON:
		if (!live || !(d->seen & HD_ON_HOST))
			HERE(l, "K24", "activations of %u.%u are not on the host at #%u", x->stage, x->vn, at);
		d->seen &= (uint16_t)~HD_ON_HOST;
		break;
	default:
		if (x->stage != 0 && x->stage + 1u != l->s->nstages)
			HERE(l, "K4", "stage %u takes nothing from the reader", x->stage);
		if (d->seen & HD_LOADED || (d->seen & HD_DID_F))
			HERE(l, "K6", "LD%u.%u comes twice or after its forward", x->stage, x->vn);
		d->seen |= HD_LOADED;
	}
}

static void check_pair(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, const struct hd_ins *next)
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
		HERE(l, "K4", "virtual node %d does not exist in this step (m = %u)", (int32_t)x->vn, l->s->nvns);
	else if (hd_ins_uses(x->op, 's') && x->op != HD_INS_BAR && x->op != HD_INS_TIE && x->stage >= l->s->nstages)
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
			uint16_t seen = hd_done_of(l, s, v)->seen;
			if (!(seen & HD_DID_F))
				hd_lists_say_all(l, "K1", "stage %u never runs forward for virtual node %u", s, v);
			if (!(seen & (HD_DID_B | HD_DID_I | HD_DID_W)))
				hd_lists_say_all(l, "K2", "%u.%u has no backward", s, v);
			else if (seen & HD_DID_I && !(seen & HD_DID_W))
				hd_lists_say_all(l, "K2", "%u.%u has I but no W: its weights would miss a gradient", s, v);
		}
}

/* ---- second walk: transfers, held against what the first has found */

/* The (stage, virtual node) whose tensor a transfer moves, and where that is used. */
struct message { struct hd_done *made; const struct hd_done *used; struct hd_at maker, user; bool grad, send; };

static bool message_of(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, struct message *m)
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
	struct hd_done *made = hd_done_of(l, from, x->vn), *used = hd_done_of(l, grad ? from - 1 : from + 1, x->vn);
	*m = (struct message){ made, used, grad ? made->b : made->f, grad ? used->b : used->f, grad, send };
	return true;
}

static const char *tensor(const struct message *m) { return m->grad ? "input gradient" : "activation"; }

static void check_transfer(const struct hd_lists *l, uint32_t rank, uint32_t at, const struct hd_ins *x, uint32_t *nth)
{
	struct message m;

	if (!message_of(l, rank, at, x, &m))
		return;
	uint32_t stage = (uint32_t)((size_t)(m.made - l->done) / l->s->nvns);
	uint16_t bit = m.send ? m.grad ? HD_SENT_G : HD_SENT_A : m.grad ? HD_GOT_G : HD_GOT_A;
	uint32_t here = m.send ? m.maker.rank : m.user.rank, there = m.send ? m.user.rank : m.maker.rank;

	if (m.made->seen & bit)
		HERE(l, "K10", "%s of %u.%u is %s twice", tensor(&m), stage, x->vn, m.send ? "sent" : "received");
	else if (here != rank || there != x->peer)
		HERE(l, "K10", "%s of %u.%u goes from rank %u to rank %u", tensor(&m), stage, x->vn, m.maker.rank, m.user.rank);
	else if (m.send && at < m.maker.at)
		HERE(l, "K10", "%s of %u.%u is sent before it is made (#%u)", tensor(&m), stage, x->vn, m.maker.at);
	else if (!m.send && at > m.user.at)
		HERE(l, "K10", "%s of %u.%u is received after it is needed (#%u)", tensor(&m), stage, x->vn, m.user.at);
	m.made->seen |= bit;
	uint32_t *place = m.grad ? &m.made->nth_g : &m.made->nth_a;
	if (m.send)
		*place = nth[x->peer]++;
	else if (*place != nth[x->peer]++)
		HERE(l, "K9", "rank %u expects the %s of %u.%u but rank %u sends another one first", rank, tensor(&m), stage, x->vn, x->peer);
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
			const struct { const char *what; uint16_t sent, got; bool far; } side[] = {
				{ "activation", HD_SENT_A, HD_GOT_A, s + 1 < l->s->nstages && hd_done_of(l, s + 1, v)->f.rank != d->f.rank },
				{ "input gradient", HD_SENT_G, HD_GOT_G, s && hd_done_of(l, s - 1, v)->b.rank != d->b.rank },
			};
			for (int i = 0; i < 2; i++) {
				bool sent = d->seen & side[i].sent, got = d->seen & side[i].got;
				if (sent && !got)
					hd_lists_say_all(l, "K10", "%s of %u.%u is sent and never received", side[i].what, s, v);
				else if (!sent && (got || side[i].far))
					hd_lists_say_all(l, "K10", "%s of %u.%u is received and never sent", side[i].what, s, v);
			}
		}
}

/* ---- updates and barriers */

struct stage_end { uint32_t last, steps, reds, red_at, step_at; bool here; };

static void check_stage_end(const struct hd_lists *l, uint32_t rank, uint32_t s, const struct stage_end *e, bool copies)
{
	uint32_t at = e->step_at;

	if (!e->here)
		return;
	if (e->steps == 0) {
		hd_lists_say_all(l, "K16", "rank %u: update 1 of stage %u never happens", rank, s);
		return;
	}
	if (e->steps > 1)
		HERE(l, "K16", "update 1 of stage %u happens twice", s);
	if (at < e->last)
		HERE(l, "K16", "update 1 of stage %u happens before the gradient of virtual node %u", s, l->s->list[rank].at[e->last].vn);
	if (copies && !e->reds)
		hd_lists_say_all(l, "K18", "rank %u: stage %u has copies on other ranks and no RED", rank, s);
	else if (e->reds && (e->red_at < e->last || e->red_at > at))
		hd_lists_say(l, "K16", rank, e->red_at, "the reduction of stage %u must stand between its last gradient (#%u) and its update (#%u)",
			s, e->last, at);
}

static void walk_updates(const struct hd_lists *l, struct stage_end *end, uint32_t *nholders)
{
	bool any = false;

	for (uint32_t rank = 0; rank < l->s->nranks; rank++)
		for (uint32_t at = 0; at < l->s->list[rank].len; at++)
			any |= l->s->list[rank].at[at].op == HD_INS_STEP;
	if (!any)
		return;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t rank = 0; rank < l->s->nranks; rank++) {
			const struct hd_ilist *list = &l->s->list[rank];
			memset(end, 0, l->s->nstages * sizeof *end);
			for (uint32_t at = 0; at < list->len; at++) {
				const struct hd_ins *x = &list->at[at];
				struct stage_end *e = &end[x->stage < l->s->nstages ? x->stage : 0];
				if (x->op == HD_INS_F && !e->here) {
					e->here = true;
					nholders[x->stage] += pass == 0;
				}
				if (x->op == HD_INS_B || x->op == HD_INS_W)
					e->last = at;
				if (x->op == HD_INS_STEP) {
					e->steps++;
					e->step_at = at;
					if (pass && x->ver != HD_VER_RULE && x->ver != 1)
						HERE(l, "K17", "version %u is made before version %u", x->ver, x->ver ? x->ver - 1 : 0);
				}
				if (x->op == HD_INS_RED) {
					e->reds++;
					e->red_at = at;
				}
			}
			for (uint32_t s = 0; pass && s < l->s->nstages; s++)
				check_stage_end(l, rank, s, &end[s], nholders[s] > 1);
		}
}

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

static bool has_transfers(const struct hd_schedule *s)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (hd_is_transfer(s->list[r].at[i].op))
				return true;
	return false;
}

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory to check a schedule"); }

static enum hd_err check_flush(struct hd_lists *l, const struct hd_schedule_rules *rules, struct hd_diag *diag)
{
	const struct hd_schedule *s = l->s;
	uint64_t nins = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->list[r].len;
	if (nins == 0 || (uint64_t)s->nstages * s->nvns > nins) {
		hd_lists_say_all(l, "K1", "%u stages of %u virtual nodes need more than its %llu instructions", s->nstages, s->nvns, (unsigned long long)nins);
		return HD_OK;
	}
	uint32_t *nth = hd_arena_take(l->arena, s->nranks, sizeof *nth), *nholders = hd_arena_take(l->arena, (size_t)s->nstages + 1, sizeof *nholders);
	struct stage_end *end = hd_arena_take(l->arena, (size_t)s->nstages + 1, sizeof *end);
	l->done = hd_arena_take(l->arena, (size_t)s->nstages * s->nvns + 1, sizeof *l->done);
	if (!nth || !nholders || !end || !l->done)
		return no_memory(diag);
	l->transfers = has_transfers(s);
	walk_compute(l);
	if (!l->report->total && l->transfers)
		walk_transfers(l, nth);
	if (!l->report->total) {
		walk_updates(l, end, nholders);
		check_bars(l);
	}
	return l->report->total ? HD_OK : hd_lists_run(l, rules, diag);
}

static enum hd_err check_with(const struct hd_schedule *s, const struct hd_schedule_rules *rules, struct hd_report *report,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_lists l = { .s = s, .report = report, .arena = arena };
	const struct hd_schedule_rules eager = { HD_TRANSPORT_EAGER, 0 };
	struct hd_schedule whole;
	enum hd_err err = check_flush(&l, &eager, diag);

	if (err || report->total || rules->transport == HD_TRANSPORT_EAGER)
		return err;
	err = hd_schedule_comms(&whole, s, arena, diag);
	l.s = &whole;
	return err ? err : check_flush(&l, rules, diag);
}

/* The steps that the prologue covers and two more: what is wrong with the period shows in the second. */
static enum hd_err check_delayed(const struct hd_schedule *s, const struct hd_schedule_rules *rules, struct hd_report *report,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_lists l = { .s = s, .report = report, .arena = arena };
	struct hd_diag why = { "" };
	struct hd_schedule run;
	uint32_t steps = 2 + (s->nranks + s->nvns) / (s->nvns ? s->nvns : 1);
	enum hd_err err = s->nvns ? hd_schedule_unroll(&run, s, steps, arena, &why) : hd_fail(&why, HD_E_BADPLAN, "it has no instruction");

	if (err == HD_E_NOMEM)
		return no_memory(diag);
	if (err) {
		hd_lists_say_all(&l, "K30", "the period does not repeat: %.200s", why.text);
		return HD_OK;
	}
	return check_with(&run, rules, report, arena, diag);
}

enum hd_err hd_schedule_check(const struct hd_schedule *s, const struct hd_schedule_rules *rules, struct hd_report *report, struct hd_diag *diag)
{
	struct hd_report own;
	struct hd_arena arena;
	enum hd_err err;

	report = report ? report : &own;
	report->len = 0;
	report->total = 0;
	hd_arena_init(&arena, 0);
	err = (s->prologue ? check_delayed : check_with)(s, rules, report, &arena, diag);
	hd_arena_finish(&arena);
	if (err)
		return err;
	return report->total ? hd_fail(diag, HD_E_BADPLAN, "%s", report->at[0].text) : HD_OK;
}

/* ---- the pass that adds transfers */

struct adder { struct hd_lists *l; struct hd_ilist *to; uint32_t rank; };

static void add(struct adder *a, uint8_t op, const struct hd_ins *x, uint32_t peer)
{
	a->to->at[a->to->len++] = (struct hd_ins){ .op = op, .stage = x->stage, .vn = x->vn, .peer = (uint16_t)peer };
}

static void add_before(struct adder *a, const struct hd_ins *x)
{
	const struct hd_schedule *s = a->l->s;

	if (x->op == HD_INS_F && (x->stage == 0 || x->stage + 1u == s->nstages) && !(hd_done_of(a->l, x->stage, x->vn)->seen & HD_LOADED))
		add(a, HD_INS_LD, x, 0);
	if (x->op == HD_INS_F && x->stage && hd_done_of(a->l, x->stage - 1u, x->vn)->f.rank != a->rank)
		add(a, HD_INS_RA, x, hd_done_of(a->l, x->stage - 1u, x->vn)->f.rank);
	if ((x->op == HD_INS_B || x->op == HD_INS_I) && x->stage + 1u < s->nstages && hd_done_of(a->l, x->stage + 1u, x->vn)->b.rank != a->rank)
		add(a, HD_INS_RG, x, hd_done_of(a->l, x->stage + 1u, x->vn)->b.rank);
}

static void add_after(struct adder *a, const struct hd_ins *x)
{
	const struct hd_schedule *s = a->l->s;

	if (x->op == HD_INS_F && x->stage + 1u < s->nstages && hd_done_of(a->l, x->stage + 1u, x->vn)->f.rank != a->rank)
		add(a, HD_INS_SA, x, hd_done_of(a->l, x->stage + 1u, x->vn)->f.rank);
	if ((x->op == HD_INS_B || x->op == HD_INS_I) && x->stage && hd_done_of(a->l, x->stage - 1u, x->vn)->b.rank != a->rank)
		add(a, HD_INS_SG, x, hd_done_of(a->l, x->stage - 1u, x->vn)->b.rank);
}

enum { ADDED_MOST = 3 };          /* around one instruction: LD, a receive, a send */

static bool add_list(struct adder *a, const struct hd_ilist *from, struct hd_arena *arena)
{
	a->to->cap = (ADDED_MOST + 1) * from->len;
	a->to->at = hd_arena_take(arena, (size_t)a->to->cap + 1, sizeof *a->to->at);
	for (uint32_t i = 0, n; a->to->at && i < from->len; i += n) {
		n = from->at[i].flags & HD_INS_PAIR_BEGIN ? 2 : 1;
		for (uint32_t k = i; k < i + n; k++)
			add_before(a, &from->at[k]);
		for (uint32_t k = i; k < i + n; k++)
			a->to->at[a->to->len++] = from->at[k];
		for (uint32_t k = i; k < i + n; k++)
			add_after(a, &from->at[k]);
	}
	return a->to->at;
}

enum hd_err hd_schedule_comms(struct hd_schedule *out, const struct hd_schedule *s, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_report report = { 0 };
	struct hd_lists l = { .s = s, .report = &report, .arena = arena };
	struct hd_schedule o = *s;

	if (s->prologue)
		return hd_fail(diag, HD_E_INVAL, "transfers are added to the steps of delayed updates, not to their sections");
	if (has_transfers(s)) {
		*out = o;
		return HD_OK;
	}
	l.done = hd_arena_take(arena, (size_t)s->nstages * s->nvns + 1, sizeof *l.done);
	o.list = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *o.list);
	if (!l.done || !o.list)
		return no_memory(diag);
	walk_compute(&l);
	if (report.total)
		return hd_fail(diag, HD_E_BADPLAN, "%s", report.at[0].text);
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct adder a = { &l, &o.list[r], r };
		if (!add_list(&a, &s->list[r], arena))
			return no_memory(diag);
	}
	*out = o;
	return HD_OK;
}
