#include "protocol/member_int.h"

#include <assert.h>
#include <string.h>

/* The life of a step. A step begins when all members have sealed the one before (gate) and its boundary
 * is done (ready). Its table entries are sent when its boundary is done. It is finished when all is
 * here. */

static bool is_final(const struct hd_member_own *own, uint32_t pass, uint32_t bucket)
{
	return own->final[pass * own->words + bucket / 64] >> bucket % 64 & 1;
}

static void set_final(struct hd_member_own *own, uint32_t pass, uint32_t bucket)
{
	own->final[pass * own->words + bucket / 64] |= UINT64_C(1) << bucket % 64;
}

/* With pairs, to the parent: what is added up is sent as one partial sum. */
static void combine_if_ready(struct hd_member *m, uint32_t bucket)
{
	if (!hd_exchange_combine(&m->x, bucket))
		return;
	assert(m->begun && !m->held);
	struct hd_member_action *a = hd_member_act(m, HD_DO_ROOTS);
	a->bucket = bucket;
	a->worker = m->view.member[hd_exchange_root_to(&m->x, bucket)];
}

static void fold_if_ready(struct hd_member *m, uint32_t bucket)
{
	combine_if_ready(m, bucket);
	if (!hd_exchange_fold(&m->x, bucket))
		return;
	assert(m->begun && !m->held);
	hd_member_act(m, HD_DO_FOLD)->bucket = bucket;
	m->folding++;
}

/* Rule 4 of member.h. A member that sealed the step has contributed. */
static bool may_contribute(const struct hd_member *m)
{
	return m->x.step < m->at || (m->ready && m->halt_step != m->at);
}

/* Of partial state a sum says that its sender contributes: others update slots once it has come far
 * enough. */
static void publish(struct hd_member *m, uint32_t bucket)
{
	uint64_t to = hd_exchange_summed(&m->x, bucket) ? hd_exchange_sum_to(&m->x, bucket) : 0;

	if (!to)
		return;
	assert(!(to >> m->x.me & 1));             /* never to itself */
	if (hd_member_is_partial(m) && !may_contribute(m)) {
		m->sums_due = true;
		return;
	}
	struct hd_member_action *a = hd_member_act(m, HD_DO_PUBLISH);
	a->step = m->x.step;
	a->bucket = bucket;
	a->mask = to;
}

/* New parameters, to the members that do not make them. */
static void hand_out(struct hd_member *m, uint32_t bucket)
{
	uint64_t to = hd_exchange_parm_to(&m->x, bucket);

	if (!to || !hd_exchange_fresh(&m->x, bucket) || hd_exchange_parm_source(&m->x, bucket) != m->x.me)
		return;
	assert(!(to >> m->x.me & 1));
	struct hd_member_action *a = hd_member_act(m, HD_DO_PARM);
	a->step = m->x.step;
	a->bucket = bucket;
	a->mask = to;
}

/* Rule 4 of member.h, for the sums of squares, which all need before they update. A member that sealed the
 * step has contributed. The last of a bucket's line sends them, to those that do not get the sum. */
static void send_norm(struct hd_member *m, uint32_t bucket)
{
	bool may = may_contribute(m);
	uint64_t to;

	if (!hd_exchange_squared(&m->x, bucket) || hd_exchange_norm_source(&m->x, bucket) != m->x.me)
		return;
	m->norms_due |= !may;
	to = may ? hd_exchange_norm_to(&m->x, bucket) : 0;
	if (!to)
		return;
	assert(!(to >> m->x.me & 1));
	struct hd_member_action *a = hd_member_act(m, HD_DO_NORM);
	a->step = m->x.step;
	a->bucket = bucket;
	a->mask = to;
}

/* Sums of squares of parameters and moves, to those that hold other parts of the same tensors. */
static void send_ratio(struct hd_member *m, uint32_t bucket)
{
	uint64_t to = hd_exchange_is_measured(&m->x, bucket) ? hd_exchange_ratio_to(&m->x, bucket) : 0;

	if (!to || hd_exchange_ratio_source(&m->x, bucket) != m->x.me)
		return;
	assert(!(to >> m->x.me & 1));
	struct hd_member_action *a = hd_member_act(m, HD_DO_RATIO);
	a->step = m->x.step;
	a->bucket = bucket;
	a->mask = to;
}

static void measured(struct hd_member *m)
{
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		hd_exchange_measure(&m->x, b);
}

static void on_squared(struct hd_member *m, uint32_t bucket)
{
	if (hd_exchange_square(&m->x, bucket) && !m->held)
		send_norm(m, bucket);
}

/* UPDATE and FINISH come after all that was asked for before. */
static void square_all(struct hd_member *m)
{
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		on_squared(m, b);
}

/* How many roots each own pass has: ordinals run through the passes. */
static void ordinals(const struct hd_member *m, uint32_t pass, uint32_t *first, uint32_t *n)
{
	assert(m->x.step == m->at);
	*first = *n = 0;
	for (uint32_t i = 0; i < m->x.passes.npasses; i++) {
		const struct hd_pass *p = &m->x.passes.pass[i];
		uint32_t roots = m->x.first_root[i + 1] - m->x.first_root[i];
		if (p->worker != m->worker)
			continue;
		if (p->pass == pass)
			*n = roots;
		else if (p->pass < pass)
			*first += roots;
	}
}

static void offer(struct hd_member *m, uint32_t pass, uint32_t bucket)
{
	uint32_t to = hd_exchange_root_to(&m->x, bucket), first, n;

	if (!hd_exchange_wants_roots(&m->x, bucket) ||
		!hd_exchange_makes(&m->x, &m->own.passes.pass[pass], bucket))
		return;
	if (to == m->x.me || m->x.paired) {
		ordinals(m, pass, &first, &n);
		for (uint32_t i = 0; i < n; i++)
			hd_exchange_root(&m->x, m->worker, first + i, bucket);
		fold_if_ready(m, bucket);
		return;
	}
	assert(to < m->view.nmembers);
	struct hd_member_action *a = hd_member_act(m, HD_DO_ROOTS);
	a->pass = pass;
	a->bucket = bucket;
	a->worker = m->view.member[to];
}

/* Rule 4 of member.h: by its entries of the table a member says that the step is run. */
static void send_leaves(struct hd_member *m)
{
	for (uint32_t p = 0; p < m->own.passes.npasses && m->ready; p++) {
		if (!m->own.computed[p] || m->own.sent[p])
			continue;
		assert(p < HD_MAX_PASSES);
		m->own.sent[p] = true;
		hd_exchange_leaves(&m->x, m->worker, p);
		if (m->x.nmembers > 1 && hd_exchange_table_source(&m->x) == HD_NOBODY)
			hd_member_act(m, HD_DO_LEAVES)->pass = p;
	}
}

void hd_member_compute(struct hd_member *m, uint32_t first_pass)
{
	assert(m->begun && first_pass <= m->own.passes.npasses && m->own.passes.npasses <= HD_MAX_PASSES);
	for (uint32_t p = first_pass; p < m->own.passes.npasses; p++) {
		struct hd_member_action *a = hd_member_act(m, HD_DO_COMPUTE);
		a->pass = p;
		a->stage = m->own.passes.pass[p].stage;
		a->range = m->own.passes.range + m->own.passes.pass[p].first_range;
		a->nranges = m->own.passes.pass[p].nranges;
		m->own.computed[p] = m->own.sent[p] = false;
		memset(m->own.final + p * m->own.words, 0, m->own.words * sizeof *m->own.final);
	}
}

static void say_slotted(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SLOTTED);

	m->fetched = true;
	msg->halt.step = m->at;
	for (uint32_t i = 0; i < m->view.nmembers; i++)
		if (m->view.member[i] != m->worker)
			hd_member_send(m, m->view.member[i], msg);
}

static bool is_mine(const struct hd_member *m, uint32_t bucket)
{
	return m->mine[bucket / 64] >> bucket % 64 & 1;
}

/* Is all of the own chains here; `read`: all that the own stages read? */
static bool has_own(const struct hd_member *m, bool read)
{
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		if (hd_exchange_chained(&m->x, b) && (!read || hd_exchange_reads(&m->x, b)) && !is_mine(m, b))
			return false;
	return true;
}

static void fetch(struct hd_member *m)
{
	m->lacks = m->config.buckets && !has_own(m, true);
	if (has_own(m, false))
		say_slotted(m);
	else
		hd_member_act(m, HD_DO_FETCH)->flag = m->lacks;
}

/* What is missing for the chains of this view is fetched in its first step. It may have come since the status
 * that the view was made of. */
static void begin_slots(struct hd_member *m)
{
	assert(m->begun && !m->finishing);
	m->updating = m->updated = m->fetched = m->lacks = m->norms_due = m->sums_due = false;
	if (m->x.fetchers >> m->x.me & 1)
		fetch(m);
}

/* Of stages, parameters are fetched with the slots: without them there is nothing to compute with. After a
 * FENCE it still says what is here, until the view of that epoch. */
static void fetched(struct hd_member *m, uint32_t epoch)
{
	const bool waited = m->lacks, first = !m->fetched;

	if (epoch != m->view.epoch)
		return;
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		if (hd_exchange_chained(&m->x, b) && (!waited || hd_exchange_reads(&m->x, b)))
			m->mine[b / 64] |= UINT64_C(1) << b % 64;
	m->lacks = false;
	m->fetched |= has_own(m, false);
	/* the status said less than there is: no need to go back to the disk for it */
	if (m->held && m->status_said)
		hd_member_status(m);
	if (m->held)
		return;
	if (waited)
		fetch(m);
	else if (first)
		say_slotted(m);
	if (waited)
		hd_member_compute(m, 0);
}

/* In a step that is restarted they wait for UPDATE. */
bool hd_member_may_early(const struct hd_member *m, uint32_t bucket)
{
	return m->config.copies && m->begun && !m->held && !m->updated && m->window.ahead &&
		m->window.epoch == m->epoch && m->x.step == m->at && bucket < m->x.nbuckets &&
		hd_exchange_chained(&m->x, bucket) && hd_exchange_summed(&m->x, bucket);
}

static void on_early(struct hd_member *m, uint32_t bucket)
{
	if (!hd_member_may_early(m, bucket))
		return;
	if (hd_exchange_parm(&m->x, bucket))
		hand_out(m, bucket);
}

/* Slots and parameters of the own chains are of the next step; the last of each chain sends them. Of whole
 * tensors by stages they are measured, and unchanged. */
static void updated_own(struct hd_member *m)
{
	if (!m->updating || m->updated)
		return;
	assert(m->begun);
	m->updated = true;
	square_all(m);
	if (!m->config.copies)
		measured(m);
	for (uint32_t b = 0; b < m->x.nbuckets; b++) {
		if (!hd_exchange_chained(&m->x, b))
			continue;
		const bool first = m->config.copies && hd_exchange_parm(&m->x, b);
		if (m->held)
			continue;
		if (first)
			hand_out(m, b);
		send_ratio(m, b);
	}
	if (m->held)                                      /* no status was sent meanwhile */
		hd_member_status(m);
}

bool hd_member_whole(const struct hd_member *m)
{
	for (uint32_t b = 0; b < m->x.nbuckets && hd_member_is_partial(m); b++)
		if (!hd_member_has_slots(m, b))
			return false;
	return true;
}

/* Rule 13. What all know: of a switch that comes next none may yet. */
static void act_begin(struct hd_member *m)
{
	const struct hd_member_window last = m->window;
	struct hd_member_action *a = hd_member_act(m, HD_DO_BEGIN);

	assert(m->view.epoch == m->epoch);
	m->window = (struct hd_member_window){ m->epoch, m->at + 1 < m->config.nsteps,
		last.goes_on && last.epoch == m->epoch };
	a->ahead = m->window.ahead;
	a->goes_on = m->window.goes_on;
	a->fewer = hd_member_may_refuse(m);
}

static void begin(struct hd_member *m)
{
	struct hd_passes passes;
	struct hd_diag diag = { "" };

	assert(m->has_view && m->ready && !m->begun && !m->held);
	hd_member_shape_exchange(m);
	if (hd_passes_of_view(&passes, &m->view) || hd_exchange_begin(&m->x, &m->view, m->worker, m->at,
		&passes, m->slots, &diag)) {
		hd_member_break(m, 1, *diag.text ? diag.text : "a view of too many ranges");
		return;
	}
	assert(!m->folding);
	m->begun = true;
	m->own.passes.npasses = m->own.passes.nranges = 0;
	memset(m->own.computed, 0, sizeof m->own.computed);       /* COMPUTE may have to wait */
	for (uint32_t i = 0; i < passes.npasses; i++) {
		const struct hd_pass *p = &passes.pass[i];
		if (p->worker == m->worker && hd_passes_add_stage(&m->own.passes, m->worker, p->pass,
			p->stage, passes.range + p->first_range, p->nranges))
			hd_member_break(m, 1, "a share of too many ranges");
	}
	act_begin(m);
	hd_member_runs(m);
	begin_slots(m);
	if (!m->lacks)
		hd_member_compute(m, 0);
}

void hd_member_boundary(struct hd_member *m)
{
	if (m->at >= m->config.nsteps)
		m->halt_step = m->at;                     /* also one that loaded the end */
	struct hd_member_action *a = hd_member_act(m, HD_DO_BOUNDARY);
	const struct hd_view *view = m->at == m->switch_step ? &m->next.view : &m->view;

	assert(m->has_view || m->at == m->switch_step);
	m->boundary_due = false;
	m->was_writer = hd_view_writer(view) == m->worker;
	a->flag = m->was_writer;
	a->final = m->halt_step == m->at;
	m->asked_final = a->final;
	m->asked++;
	m->ready = false;
}

void hd_member_offer_all(struct hd_member *m)
{
	assert(m->has_view && m->x.step <= m->at);
	m->norms_due = true;
	m->sums_due = false;
	for (uint32_t b = 0; b < m->x.nbuckets; b++) {
		publish(m, b);
		hand_out(m, b);
		if (m->updated || m->x.step != m->at)     /* else UPDATE comes, once more perhaps */
			send_ratio(m, b);
		for (uint32_t p = 0; m->x.step == m->at && p < m->own.passes.npasses; p++)
			if (is_final(&m->own, p, b))
				offer(m, p, b);
	}
	if (hd_exchange_table_source(&m->x) == m->x.me) {
		uint64_t all = m->x.nmembers == 64 ? UINT64_MAX : (UINT64_C(1) << m->x.nmembers) - 1;
		struct hd_member_action *a = all & ~m->x.table_have ? hd_member_act(m, HD_DO_TABLE) : NULL;
		if (a) {
			a->step = m->x.step;
			a->mask = all & ~m->x.table_have;
		}
	}
	memset(m->own.sent, 0, sizeof m->own.sent);
}

/* ---- reports of devices and the wire ---- */

static void on_final(struct hd_member *m, uint32_t pass, uint32_t bucket)
{
	if (pass >= m->own.passes.npasses || bucket >= m->x.nbuckets || is_final(&m->own, pass, bucket))
		return;
	assert(m->begun && m->x.step == m->at);
	set_final(&m->own, pass, bucket);
	if (!m->held)
		offer(m, pass, bucket);
}

static void on_computed(struct hd_member *m, uint32_t pass)
{
	if (pass >= m->own.passes.npasses)
		return;
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		on_final(m, pass, b);
	m->own.computed[pass] = true;
}

static void on_folded(struct hd_member *m, uint32_t bucket)
{
	assert(m->folding > 0);
	m->folding--;
	if (!hd_exchange_sum(&m->x, bucket))
		return;
	hd_exchange_square(&m->x, bucket);
	if (!m->held) {
		publish(m, bucket);
		send_norm(m, bucket);
	} else if (!m->folding) {
		hd_member_status(m);
	}
}

/* A member of the chain passes it on. */
static void on_sum(struct hd_member *m, uint32_t bucket)
{
	if (hd_exchange_sum(&m->x, bucket))
		publish(m, bucket);
}

void hd_member_stepwork(struct hd_member *m, const struct hd_member_event *event)
{
	if (event->step != m->at || !m->begun)
		return;
	switch ((int)event->kind) {
	case HD_IN_FINAL:    on_final(m, event->pass, event->bucket); return;
	case HD_IN_COMPUTED: on_computed(m, event->pass); return;
	case HD_IN_FOLDED:   on_folded(m, event->bucket); return;
	case HD_IN_SQUARED:  on_squared(m, event->bucket); return;
	case HD_IN_EARLY:    on_early(m, event->bucket); return;
	case HD_IN_UPDATED_OWN: updated_own(m); return;
	case HD_IN_FETCHED:  fetched(m, event->epoch); return;
	default: break;
	}
	if (event->epoch != m->epoch || m->held)
		return;
	switch ((int)event->kind) {
	case HD_IN_ROOT:
		if (hd_exchange_root(&m->x, event->worker, event->ordinal, event->bucket))
			fold_if_ready(m, event->bucket);
		break;
	case HD_IN_SUM:    on_sum(m, event->bucket); break;
	case HD_IN_NORM:   hd_exchange_norm(&m->x, event->bucket); break;
	case HD_IN_PARM:   hd_exchange_parm(&m->x, event->bucket); break;
	case HD_IN_RATIO:  hd_exchange_ratio(&m->x, event->bucket); break;
	case HD_IN_LEAVES: hd_exchange_leaves(&m->x, event->worker, event->pass); break;
	case HD_IN_TABLE:  hd_exchange_table(&m->x); break;
	default: break;
	}
}

/* ---- seals ---- */

struct hd_msg *hd_member_seal_msg(struct hd_member *m, const struct hd_msg_seal *seal)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_SEAL);
	const struct hd_member_held *held = &m->said_held[seal->step & 1];

	msg->seal = *seal;
	if (held->next == seal->step + 1) {
		msg->seal.nheld = held->n;
		msg->seal.held = held->at;
	}
	return msg;
}

/* The first step whose seals all know of a decided view is s0; from s0 + 1 on it is in force. Only a
 * member that got DECIDE says so: a joiner need not have received it itself. */
static void find_switch(struct hd_member *m)
{
	uint64_t s0 = hd_seals_known_since(&m->seals);

	if (!m->next.open || m->switch_step != HD_NO_STEP || s0 == HD_SEAL_UNKNOWN)
		return;
	m->switch_step = s0 + 1;
	if (!m->next.decided)
		hd_member_act(m, HD_DO_DECIDED)->epoch = m->next.view.epoch;
	m->next.decided = true;
	assert(m->next.view.epoch > m->epoch);
}

static void count_seal(struct hd_member *m, const struct hd_seal *seal)
{
	struct hd_diag diag = { "" };
	uint32_t committed = 0;
	enum hd_err err = hd_seals_add(&m->seals, seal, &committed, &diag);

	if (err == HD_E_INTEGRITY)
		hd_member_diverged(m, seal->step + 1);
	find_switch(m);
}

/* What lies in the message's arena goes with it. */
static struct hd_msg_seal without_held(const struct hd_msg_seal *seal)
{
	struct hd_msg_seal s = *seal;

	s.nheld = 0;
	s.held = NULL;
	return s;
}

static void say_held(struct hd_member *m, const uint64_t *digest)
{
	struct hd_member_held *said = &m->said_held[m->at & 1];

	if (!digest)
		return;
	said->next = m->at + 1;
	said->n = hd_held_make(said->at, digest, m->x.chain, m->x.nbuckets);
}

void hd_member_on_seal(struct hd_member *m, uint32_t from, const struct hd_msg *msg)
{
	hd_member_on_digests(m, from, &msg->seal);
	if (m->state == HD_SYNCING && msg->seal.ran)
		m->heard[msg->seal.step % HD_MEMBER_NEWS] =
			(struct hd_member_news){ msg->seal.step + 1, without_held(&msg->seal) };
	if (!m->has_view && !m->next.open)
		return;
	count_seal(m, &(struct hd_seal){ msg->epoch, from, msg->seal.step, msg->seal.sum_digest,
		msg->seal.state_digest, msg->seal.knows });
}

/* What is decided, of a step that the view in force began: its chains hold the slots then (carry_slots()). */
static uint32_t knows(const struct hd_member *m)
{
	return m->next.open && m->next.decided && m->window.epoch == m->epoch ? m->next.view.epoch :
		m->view.epoch;
}

/* Without such a view what was begun, if anything was, is what the next step begins with. */
static bool is_early(const struct hd_member *m)
{
	return m->config.early && m->config.early(m->config.of_shape_self, &m->view);
}

/* All members have the same record of the step, and know of no other epoch in which it was begun. */
static void end_window(struct hd_member *m, const struct hd_step_news *news)
{
	if (!news->skipped || !m->window.goes_on || m->window.epoch != m->epoch || m->held ||
		m->switch_step == m->at || !is_early(m))
		return;
	m->hold = m->vain = true;
	hd_member_say_vain(m);
}

void hd_member_say_vain(struct hd_member *m)
{
	if (m->vain && m->view.member[0] == m->worker)
		hd_member_suspect(m, m->worker, HD_CLOSED);
}

void hd_member_seal(struct hd_member *m, const struct hd_member_event *event)
{
	if (event->step != m->at || !m->finishing)
		return;
	assert(m->begun && !m->folding && hd_exchange_complete(&m->x));
	struct hd_msg_seal seal = {
		.step = m->at, .knows = knows(m), .ran = true,
		.sum_digest = event->sum_digest, .state_digest = event->state_digest, .news = *event->news,
	};
	m->news[m->at % HD_MEMBER_NEWS] = (struct hd_member_news){ m->at + 1, seal };
	say_held(m, event->held);
	struct hd_msg *msg = hd_member_seal_msg(m, &seal);
	hd_member_send_all(m, msg);
	hd_member_say(m, msg);
	hd_member_compare(m);
	m->asked = 0;
	square_all(m);
	measured(m);                      /* FINISH does so, too */
	count_seal(m, &(struct hd_seal){ m->epoch, m->worker, seal.step, seal.sum_digest, seal.state_digest,
		seal.knows });
	m->at++;
	memcpy(m->slots, m->x.chain, m->x.nbuckets * sizeof *m->slots);
	m->begun = m->finishing = m->updating = m->updated = false;
	end_window(m, event->news);
	if (m->held && !m->status_said)                   /* it waited for this */
		hd_member_status(m);
	/* rule 2: whose boundary it is may be known with the last seal */
	m->boundary_due = seal.knows > m->epoch;
	m->ready = false;
	if (!m->boundary_due)
		hd_member_boundary(m);
}

/* All of them: it is not known which ones a dead coordinator had counted, nor whether it had written
 * them down. */
void hd_member_resay_seals(struct hd_member *m)
{
	for (uint64_t s = m->at > HD_MEMBER_NEWS ? m->at - HD_MEMBER_NEWS : 0; s < m->at; s++)
		if (m->news[s % HD_MEMBER_NEWS].step == s + 1)
			hd_member_say(m, hd_member_seal_msg(m, &m->news[s % HD_MEMBER_NEWS].seal));
}

/* ---- the end ---- */

void hd_member_done(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_DONE);

	assert(m->state == HD_HALTED);
	msg->done = (struct hd_msg_done){ .step = m->at, .code = m->done_code,
		.nwhy = (uint32_t)strlen(m->done_why), .why = m->done_why };
	m->done = true;
	hd_member_say(m, msg);
}

static void say_halt(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_HALT);

	assert(m->was_writer && m->halt_step == m->at);
	msg->halt.step = m->at;
	hd_member_send_all(m, msg);
	hd_member_say(m, msg);
}

/* A checkpoint writer that was asked to stop does so where it has not begun. */
static void stop_here(struct hd_member *m)
{
	if (!m->stopping || !m->ready || m->begun || !hd_member_is_writer(m) || m->halt_step != HD_NO_STEP)
		return;
	m->halt_step = m->at;
}

/* What was computed is void. */
void hd_member_cancel(struct hd_member *m)
{
	assert(m->begun);
	hd_member_act(m, HD_DO_CANCEL);
	m->begun = false;
	m->folding = 0;
	m->own.passes.npasses = m->own.passes.nranges = 0;
	hd_member_runs(m);
}

/* The checkpoint writer that stopped here may be gone, and the coordinator that asked for it. Without a
 * request or a target known here, the stop must not look like the end: what stopped too early is never
 * taken for done. */
static void code_of_halt(struct hd_member *m)
{
	if (m->at >= m->config.nsteps || m->done_code)
		return;
	if (m->stopping)
		m->done_code = m->stop_code;
	else if (hd_member_is_writer(m) && m->reached != m->at)
		m->done_code = HD_MEMBER_STOPPED;
}

static void halt_here(struct hd_member *m)
{
	bool first = m->state == HD_MEMBER;

	assert(m->halt_step == m->at && !m->finishing && !m->updating);
	if (first && m->was_writer && m->at < m->config.nsteps)
		say_halt(m);
	m->state = HD_HALTED;
	if (m->begun)
		hd_member_cancel(m);
	if (first && !m->asked_final)
		/* the last BOUNDARY did not say that nothing follows */
		hd_member_boundary(m);
	if (m->ready && !m->done) {
		code_of_halt(m);
		hd_member_done(m);
	}
}

static bool may_begin(const struct hd_member *m)
{
	return m->ready && !m->begun && (!m->diverged || m->at < m->diverged) &&
		hd_seals_gate(&m->seals, m->at) && !m->hold && !m->links_ns;
}

/* What waited for the boundary. */
static void send_due(struct hd_member *m)
{
	bool sums = m->sums_due, norms = m->norms_due;

	if (m->x.step >= m->at && !m->begun)
		return;
	m->sums_due = m->norms_due = false;
	for (uint32_t b = 0; b < m->x.nbuckets && sums; b++)
		publish(m, b);
	for (uint32_t b = 0; b < m->x.nbuckets && norms; b++)
		send_norm(m, b);
}

/* Slots of other chains would fall behind; those chains have them. */
void hd_member_keep_own(struct hd_member *m)
{
	for (uint32_t b = 0; b < m->x.nbuckets; b++)
		if (!hd_exchange_chained(&m->x, b))
			m->mine[b / 64] &= ~(UINT64_C(1) << b % 64);
}

/* Has an update of this step two phases? */
static bool is_apart(const struct hd_member *m) { return m->config.copies || m->x.joint; }

/* Sharded state: updates the own buckets once all inputs are here. Whole tensors by stages: measures them. */
static void update(struct hd_member *m)
{
	if (!is_apart(m) || !m->begun || m->updating || !m->ready || !hd_exchange_may_update(&m->x) ||
		!hd_member_all_slotted(m))
		return;
	/* a fold sends the bucket's sums of squares */
	assert(!m->folding);
	m->updating = true;
	if (m->config.copies)                             /* what is measured stays as it is */
		hd_member_keep_own(m);
	hd_member_act(m, HD_DO_UPDATE);
}

void hd_member_progress(struct hd_member *m)
{
	if (m->held)
		return;
	if (m->boundary_due && hd_seals_gate(&m->seals, m->at))
		hd_member_boundary(m);
	if (m->switch_step == m->at)
		hd_member_switch(m);
	if ((m->state != HD_MEMBER && m->state != HD_HALTED) || m->switch_step == m->at)
		return;
	stop_here(m);
	send_due(m);
	/* what failed elsewhere will fail here as well */
	if (m->halt_step == m->at && !m->finishing && !m->updating) {
		halt_here(m);
		return;
	}
	send_leaves(m);
	if (may_begin(m))
		begin(m);
	update(m);
	if (m->begun && !m->finishing && m->ready && hd_exchange_complete(&m->x) &&
		(m->updated || (!is_apart(m) && hd_member_all_slotted(m)))) {
		assert(!m->folding && !m->held);
		m->finishing = true;
		if (hd_member_is_partial(m))
			hd_member_keep_own(m);
		hd_member_act(m, HD_DO_FINISH);
	}
}
