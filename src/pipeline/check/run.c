/* Abstract execution of lists: K7 and K8. A rank goes on until it has to wait for another, is noted
 * there, and is looked at again when that one has moved. */
#include <assert.h>
#include <string.h>

#include "pipeline/check/int.h"

#define NO_WAIT UINT32_MAX

struct check_rank {
	uint32_t at, waits_for, next;             /* next: of the ranks that wait for the same one */
	uint32_t first_waiting;                   /* the first rank that waits for this one */
	uint32_t nbars;                           /* barriers reached */
	uint32_t stopped_at;                      /* where it last had to wait */
	uint32_t nsent[2], ntaken[2];             /* gradients, buckets for shadows */
	bool posted;                              /* the group of transfers at `at` is issued */
};

/* Ranks that do something together, time after time: RED of a stage, TIE of a group, NORM, VAL. */
/* members: member[first .. first + n); `here` of them, round `began`, have come */
struct meeting { uint32_t first, n, here, began; };
struct meeting_member { uint32_t rank, came; };                   /* rounds */

struct check_run {
	const struct hd_lists *l;
	struct meeting *meeting;                  /* [stages] RED, then groups, NORM, VAL */
	struct meeting_member *member;
	uint32_t ngroups;
	enum hd_transport transport;
	uint32_t credits;
	struct check_rank *rank;
	uint16_t *seen;                           /* [stages * vns] bits of hd_seen */
	uint32_t *ready, nready;
	uint32_t *counts;                         /* used messages of channel (from, to, kind) */
};

static const struct hd_ins *now(const struct check_run *x,
	uint32_t r) { return &x->l->s->list[r].at[x->rank[r].at];
	}
static bool ended(const struct check_run *x, uint32_t r) { return x->rank[r].at >= x->l->s->list[r].len; }
static size_t index_of(const struct check_run *x, uint32_t stage,
	uint32_t vn) { return (size_t)stage * x->l->s->nvns + vn; }

/* The tensor a transfer moves: by the (stage, virtual node) that makes it. */
static size_t moved(const struct check_run *x, const struct hd_ins *ins)
{
	uint32_t from = ins->op == HD_INS_RA ? ins->stage - 1u : ins->op == HD_INS_RG ? ins->stage + 1u :
		ins->stage;

	return index_of(x, from, ins->vn);
}

static bool is_grad(uint8_t op) { return op == HD_INS_SG || op == HD_INS_RG; }
static bool is_send(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG; }

static uint32_t *channel(const struct check_run *x, uint32_t from, uint32_t to, bool grad)
{
	return &x->counts[((size_t)from * x->l->s->nranks + to) * 2 + grad];
}

/* The rank that an input comes from, if it is not there; NO_WAIT if it is. */
static uint32_t missing(const struct check_run *x, uint32_t r, const struct hd_ins *ins)
{
	bool f = ins->op == HD_INS_F;
	uint32_t from = f ? ins->stage - 1u : ins->stage + 1u;

	if ((!f && ins->op != HD_INS_B && ins->op != HD_INS_I) || (f && ins->stage == 0) ||
		from == x->l->s->nstages)
		return NO_WAIT;
	size_t i = index_of(x, from, ins->vn);
	uint32_t maker = f ? x->l->done[i].f.rank : x->l->done[i].b.rank;
	uint16_t want = maker == r || !x->l->transfers ? f ? HD_DID_F : HD_DID_B | HD_DID_I : f ? HD_GOT_A :
		HD_GOT_G;
	return x->seen[i] & want ? NO_WAIT : maker;
}

/* A tensor from another rank is used up: its credit goes back. */
static void use_up(const struct check_run *x, uint32_t r, const struct hd_ins *ins)
{
	bool f = ins->op == HD_INS_F;
	uint32_t from = f ? ins->stage - 1u : ins->stage + 1u;

	if (!x->counts || (!f && ins->op != HD_INS_B && ins->op != HD_INS_I) || (f && ins->stage == 0) ||
		from == x->l->s->nstages)
		return;
	const struct hd_done *d = &x->l->done[index_of(x, from, ins->vn)];
	++*channel(x, f ? d->f.rank : d->b.rank, r, !f);          /* its own: no rank sends there */
}

static uint32_t compute(struct check_run *x, uint32_t r, uint32_t *moves)
{
	const struct hd_ins *ins = now(x, r);
	uint32_t n = ins->flags & HD_INS_PAIR_BEGIN ? 2 : 1;

	if (hd_ins_redundant(ins)) {
		*moves = 1;
		return NO_WAIT;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t awaited = missing(x, r, &ins[k]);
		if (awaited != NO_WAIT)
			return awaited;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (ins[k].op == HD_INS_F)
			x->seen[index_of(x, ins[k].stage, ins[k].vn)] |= HD_DID_F;
		else if (ins[k].op == HD_INS_B || ins[k].op == HD_INS_I)
			x->seen[index_of(x, ins[k].stage, ins[k].vn)] |= HD_DID_B;
		use_up(x, r, &ins[k]);
	}
	*moves = n;
	return NO_WAIT;
}

/* Every other rank has reached as many barriers. */
static uint32_t barrier(struct check_run *x, uint32_t r, uint32_t *moves)
{
	struct check_rank *me = &x->rank[r];

	me->nbars += !me->posted;
	me->posted = true;
	for (uint32_t k = 0; k < x->l->s->nranks; k++)
		if (x->rank[k].nbars < me->nbars)
			return k;
	me->posted = false;
	*moves = 1;
	return NO_WAIT;
}

static bool is_meeting(uint8_t op) { return op == HD_INS_RED || op == HD_INS_TIE || op == HD_INS_NORM ||
	op == HD_INS_VAL; }

static struct meeting *meeting_of(const struct check_run *x, const struct hd_ins *ins)
{
	uint32_t s = x->l->s->nstages;

	return &x->meeting[ins->op == HD_INS_RED ? ins->stage : ins->op == HD_INS_TIE ? s + ins->stage :
		s + x->ngroups + (ins->op == HD_INS_VAL)];
}

/* Members stand in the order of ranks. */
static struct meeting_member *member_of(const struct check_run *x, const struct meeting *m, uint32_t r)
{
	uint32_t low = m->first, high = m->first + m->n;

	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;
		if (x->member[middle].rank <= r)
			low = middle;
		else
			high = middle;
	}
	return &x->member[low];
}

/* All have come as often as this one. `here` walks over those that have, from the last, since ranks are
 * walked from the first: a waiting rank is woken by the last to come and by few others, and a round costs as
 * many steps as members. */
static uint32_t meet_all(struct check_run *x, uint32_t r, const struct hd_ins *ins, uint32_t *moves)
{
	struct meeting *m = meeting_of(x, ins);
	struct meeting_member *me = member_of(x, m, r);

	me->came += !x->rank[r].posted;
	x->rank[r].posted = true;
	if (me->came > m->began) {
		m->began++;
		m->here = 0;
	}
	while (me->came == m->began && m->here < m->n) {
		const struct meeting_member *last = &x->member[m->first + m->n - 1 - m->here];
		if (last->came < m->began)
			return last->rank;
		m->here++;
	}
	x->rank[r].posted = false;
	*moves = 1;
	return NO_WAIT;
}

static uint32_t send_buffered(struct check_run *x, uint32_t r, const struct hd_ins *ins, uint32_t *moves)
{
	size_t i = moved(x, ins);
	bool grad = is_grad(ins->op);
	uint32_t nth = grad ? x->l->done[i].nth_g : x->l->done[i].nth_a;

	if (x->transport == HD_TRANSPORT_BUFFERED && nth - *channel(x, r, ins->peer, grad) >= x->credits)
		return ins->peer;
	x->seen[i] |= grad ? HD_SENT_G : HD_SENT_A;
	*moves = 1;
	return NO_WAIT;
}

static uint32_t receive(struct check_run *x, const struct hd_ins *ins, uint32_t *moves)
{
	size_t i = moved(x, ins);
	bool grad = is_grad(ins->op);

	if (!(x->seen[i] & (grad ? HD_SENT_G : HD_SENT_A)))
		return ins->peer;
	x->seen[i] |= grad ? HD_GOT_G : HD_GOT_A;
	*moves = 1;
	return NO_WAIT;
}

/* The other side stands at the other half of this transfer: both go on. */
static uint32_t meet(struct check_run *x, uint32_t r, const struct hd_ins *ins, uint32_t *moves)
{
	assert(!ended(x, ins->peer));             /* whose other half is still to come (K10) */
	const struct hd_ins *other = now(x, ins->peer);
	if (!hd_is_transfer(other->op) || other->flags & HD_INS_SHADOW || moved(x, other) != moved(x, ins) ||
		is_grad(other->op) != is_grad(ins->op))
		return ins->peer;
	/* A tensor has one send and one receive, on the ranks that K10 names. */
	assert(is_send(other->op) != is_send(ins->op) && other->peer == r);
	x->seen[moved(x, ins)] |= is_grad(ins->op) ? HD_SENT_G | HD_GOT_G : HD_SENT_A | HD_GOT_A;
	x->rank[ins->peer].at++;
	*moves = 1;
	return NO_WAIT;
}

/* All transfers up to the next compute instruction at once; done when every other side is issued too. */
static uint32_t group(struct check_run *x, uint32_t r, uint32_t *moves)
{
	const struct hd_ilist *list = &x->l->s->list[r];
	uint32_t first = x->rank[r].at, end = first;

	while (end < list->len && hd_is_transfer(list->at[end].op) && !(list->at[end].flags & HD_INS_SHADOW))
		end++;
	for (uint32_t k = first; k < end; k++) {
		const struct hd_ins *ins = &list->at[k];
		x->seen[moved(x, ins)] |= is_send(ins->op) ? is_grad(ins->op) ? HD_SENT_G : HD_SENT_A :
			is_grad(ins->op) ? HD_POSTED_G : HD_POSTED_A;
	}
	for (uint32_t k = first; k < end; k++) {
		const struct hd_ins *ins = &list->at[k];
		uint16_t want = is_send(ins->op) ? is_grad(ins->op) ? HD_POSTED_G : HD_POSTED_A :
			is_grad(ins->op) ? HD_SENT_G : HD_SENT_A;
		if (!(x->seen[moved(x, ins)] & want))
			return ins->peer;
	}
	for (uint32_t k = first; k < end; k++)
		if (!is_send(list->at[k].op))
			x->seen[moved(x, &list->at[k])] |= is_grad(list->at[k].op) ? HD_GOT_G : HD_GOT_A;
	*moves = end - first;
	return NO_WAIT;
}

static bool is_for_shadow(const struct hd_ins *ins)
{
	return hd_ins_redundant(ins) && (hd_is_transfer(ins->op) || ins->op == HD_INS_SHIP ||
		ins->op == HD_INS_TAKE);
}

/* To a shadow: a send never waits; the nth that one rank sends is the nth that its peer takes (K32, K34). */
static uint32_t for_shadow(struct check_run *x, uint32_t r, const struct hd_ins *ins, uint32_t *moves)
{
	const bool bucket = ins->op == HD_INS_SHIP || ins->op == HD_INS_TAKE;
	struct check_rank *me = &x->rank[r];

	if (ins->op == HD_INS_SHIP || ins->op == HD_INS_SG)
		me->nsent[bucket]++;
	else if (me->ntaken[bucket] >= x->rank[ins->peer].nsent[bucket])
		return ins->peer;
	else
		me->ntaken[bucket]++;
	*moves = 1;
	return NO_WAIT;
}

/* One instruction, a pair or a group: the rank to wait for, or NO_WAIT and how far it went. */
static uint32_t step(struct check_run *x, uint32_t r, uint32_t *moves)
{
	const struct hd_ins *ins = now(x, r);

	if (ins->op == HD_INS_BAR)
		return barrier(x, r, moves);
	if (is_meeting(ins->op))
		return meet_all(x, r, ins, moves);
	if (is_for_shadow(ins))
		return for_shadow(x, r, ins, moves);
	if (!hd_is_transfer(ins->op))
		return compute(x, r, moves);
	if (x->transport == HD_TRANSPORT_RENDEZVOUS)
		return meet(x, r, ins, moves);
	if (x->transport == HD_TRANSPORT_GROUPED)
		return group(x, r, moves);
	return is_send(ins->op) ? send_buffered(x, r, ins, moves) : receive(x, ins, moves);
}

static void wake(struct check_run *x, uint32_t r)
{
	for (uint32_t k = x->rank[r].first_waiting; k != NO_WAIT; k = x->rank[k].next) {
		x->rank[k].waits_for = NO_WAIT;
		x->ready[x->nready++] = k;
	}
	x->rank[r].first_waiting = NO_WAIT;
}

/* Takes a rank that waits out of the list it stands in: its partner has moved it on. */
static void unwait(struct check_run *x, uint32_t r)
{
	uint32_t *at = &x->rank[x->rank[r].waits_for].first_waiting;

	while (*at != r)
		at = &x->rank[*at].next;
	*at = x->rank[r].next;
	x->rank[r].waits_for = NO_WAIT;
	x->ready[x->nready++] = r;
}

static void advance(struct check_run *x, uint32_t r)
{
	uint32_t moves = 0, awaited = NO_WAIT;
	bool met = x->transport == HD_TRANSPORT_RENDEZVOUS;

	while (!ended(x, r)) {
		const struct hd_ins *ins = now(x, r);
		if ((awaited = step(x, r, &moves)) != NO_WAIT)
			break;
		if (met && hd_is_transfer(ins->op) && !is_for_shadow(ins) &&
			x->rank[ins->peer].waits_for != NO_WAIT)
			unwait(x, ins->peer);
		x->rank[r].at += moves;
	}
	/* also the first arrival at a transfer or a barrier can be what another waits for */
	if (x->rank[r].at != x->rank[r].stopped_at)
		wake(x, r);
	x->rank[r].stopped_at = x->rank[r].at;
	if (ended(x, r))
		return;
	x->rank[r].waits_for = awaited;
	x->rank[r].next = x->rank[awaited].first_waiting;
	x->rank[awaited].first_waiting = r;
}

static void find_groups(struct check_run *x)
{
	for (uint32_t r = 0; r < x->l->s->nranks; r++)
		for (uint32_t i = 0; i < x->l->s->list[r].len; i++) {
			const struct hd_ins *ins = &x->l->s->list[r].at[i];
			if (ins->op == HD_INS_TIE && ins->stage >= x->ngroups)
				x->ngroups = ins->stage + 1u;
		}
}

/* The ranks whose lists have the instruction meet; that all that must have it do is for the rules before.
 * Ranks are walked twice: counted, then written. */
static bool take_meetings(struct check_run *x, struct hd_arena *arena)
{
	const struct hd_schedule *s = x->l->s;
	uint32_t *last, nmembers = 0;

	find_groups(x);
	uint32_t n = s->nstages + x->ngroups + 2;
	x->meeting = hd_arena_take(arena, n, sizeof *x->meeting);
	last = hd_arena_take(arena, n, sizeof *last);
	for (int pass = 0; x->meeting && last && pass < 2; pass++) {
		for (uint32_t r = 0; r < s->nranks; r++)
			for (uint32_t i = 0; i < s->list[r].len; i++) {
				const struct hd_ins *ins = &s->list[r].at[i];
				struct meeting *m = is_meeting(ins->op) ? meeting_of(x, ins) : NULL;
				if (!m || last[m - x->meeting] == (uint32_t)pass * s->nranks + r + 1)
					continue;
				last[m - x->meeting] = (uint32_t)pass * s->nranks + r + 1;
				if (pass)
					x->member[m->first + m->here++].rank = r;
				else
					m->n++;
			}
		for (uint32_t k = 0; k < n && !pass; k++) {
			x->meeting[k].first = nmembers;
			nmembers += x->meeting[k].n;
		}
		if (!pass && !(x->member = hd_arena_take(arena, (size_t)nmembers + 1, sizeof *x->member)))
			return false;
	}
	for (uint32_t k = 0; x->meeting && k < n; k++)
		x->meeting[k].here = 0;
	return x->meeting && last;
}

static bool take(struct check_run *x, struct hd_arena *arena)
{
	size_t n = (size_t)x->l->s->nstages * x->l->s->nvns, p = x->l->s->nranks;

	x->rank = hd_arena_take(arena, p + 1, sizeof *x->rank);
	x->seen = hd_arena_take(arena, n + 1, sizeof *x->seen);
	x->ready = hd_arena_take(arena, 2 * p + 1, sizeof *x->ready);
	x->counts = x->transport == HD_TRANSPORT_BUFFERED ? hd_arena_take(arena, 2 * p * p,
		sizeof *x->counts) : NULL;
	return x->rank && x->seen && x->ready && (x->counts || x->transport != HD_TRANSPORT_BUFFERED) &&
		take_meetings(x, arena);
}

/* HD_OK and *stuck: some rank that has not ended, or NO_WAIT. */
static enum hd_err execute(struct check_run *x, uint32_t *stuck, struct hd_diag *diag)
{
	struct hd_arena *arena = x->l->arena;

	if (!take(x, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to check a schedule");
	for (uint32_t r = x->l->s->nranks; r-- > 0;) {
		x->rank[r].waits_for = x->rank[r].first_waiting = x->rank[r].stopped_at = NO_WAIT;
		x->ready[x->nready++] = r;
	}
	while (x->nready) {
		uint32_t r = x->ready[--x->nready];
		/* a waiting rank stands in one list, and here only when it was taken out of that */
		assert(x->rank[r].waits_for == NO_WAIT);
		advance(x, r);
	}
	*stuck = NO_WAIT;
	for (uint32_t r = x->l->s->nranks; r-- > 0;)
		*stuck = ended(x, r) ? *stuck : r;
	return HD_OK;
}

/* Each rank waits for one other: following them from every rank ends in a circle; the shortest is named. */
static uint32_t shortest_circle(const struct check_run *x, uint32_t *length)
{
	uint32_t p = x->l->s->nranks, best = NO_WAIT;

	*length = NO_WAIT;
	for (uint32_t r = 0; r < p; r++) {
		uint32_t at = x->rank[r].waits_for, n = 1;
		for (; at != NO_WAIT && at != r && n < p && n < *length; n++)
			at = x->rank[at].waits_for;
		if (at == r && n < *length) {
			*length = n;
			best = r;
		}
	}
	return best;
}

static void word_of(const struct check_run *x, uint32_t r, struct hd_text *text)
{
	hd_text_addf(text, "rank %u #%u ", r, x->rank[r].at);
	hd_ins_print(now(x, r), text);
}

static void say_circle(const struct check_run *x, uint32_t stuck)
{
	char room[170];
	struct hd_text text;
	uint32_t n, r = shortest_circle(x, &n);

	hd_text_fixed(&text, room, sizeof room);
	if (r == NO_WAIT) {
		hd_lists_say(x->l, "K7", stuck, x->rank[stuck].at, "it waits for rank %u, which has ended",
			x->rank[stuck].waits_for);
		return;
	}
	uint32_t first = r;
	for (uint32_t k = 0; k < n && k < 4; k++, r = x->rank[r].waits_for) {
		word_of(x, r, &text);
		hd_text_add(&text, " -> ");
	}
	if (n > 4)
		hd_text_addf(&text, "(%u more) -> ", n - 4);
	hd_text_addf(&text, "rank %u", first);
	uint32_t other = x->rank[first].waits_for;
	hd_lists_say_drawn(x->l, "K7", first, x->rank[first].at, other,
		other == first ? HD_NOWHERE : x->rank[other].at,
		"these instructions wait for each other: %s", room);
}

/* The fewest buffers with which it ends; 0: none. */
static enum hd_err enough(const struct hd_lists *l, uint32_t *least, struct hd_diag *diag)
{
	uint32_t low = 1, high = l->s->nvns * (l->s->nstages / l->s->nranks + 1), stuck;
	enum hd_err err = HD_OK;

	while (low < high && !err) {
		uint32_t middle = low + (high - low) / 2;
		struct check_run x = { .l = l, .transport = HD_TRANSPORT_BUFFERED, .credits = middle };
		err = execute(&x, &stuck, diag);
		if (stuck == NO_WAIT)
			high = middle;
		else
			low = middle + 1;
	}
	*least = high;
	return err;
}

static enum hd_err say_stuck(const struct check_run *x, struct hd_diag *diag)
{
	char room[2][64], how[40] = "";
	uint32_t n, a = shortest_circle(x, &n), least = 0;
	struct hd_text text[2], say;
	enum hd_err err = enough(x->l, &least, diag);

	if (err)
		return err;
	assert(a != NO_WAIT);                      /* without waiting for transfers all of them end */
	uint32_t b = x->rank[a].waits_for;
	for (int i = 0; i < 2; i++) {
		hd_text_fixed(&text[i], room[i], sizeof room[i]);
		word_of(x, i ? b : a, &text[i]);
	}
	hd_text_fixed(&say, how, sizeof how);
	if (x->transport == HD_TRANSPORT_BUFFERED)
		hd_text_addf(&say, "%u buffers per channel", x->credits);
	else
		hd_text_addf(&say, "transport %s", hd_transport_names[x->transport]);
	hd_lists_say_drawn(x->l, "K8", a, x->rank[a].at, b, x->rank[b].at,
		"with %s ranks %u and %u wait for each other: %s, %s; %sN = %u is enough",
		how, a, b, room[0], room[1], x->transport == HD_TRANSPORT_BUFFERED ? "" : "buffered with ",
		least);
	return HD_OK;
}

enum hd_err hd_lists_run(const struct hd_lists *l, const struct hd_schedule_rules *rules,
	struct hd_diag *diag)
{
	struct check_run x = { .l = l, .transport = l->transfers ? rules->transport : HD_TRANSPORT_EAGER,
		.credits = rules->credits ? rules->credits : HD_CREDITS };
	uint32_t stuck;
	enum hd_err err = execute(&x, &stuck, diag);

	if (err || stuck == NO_WAIT)
		return err;
	if (x.transport == HD_TRANSPORT_EAGER)
		say_circle(&x, stuck);
	else
		return say_stuck(&x, diag);
	return HD_OK;
}
