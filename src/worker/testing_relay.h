/* testing_relay.h -- the members of a job in one thread: real machines, actions, exchanges, relays and hubs,
 * over a simulated net; coordinator, hand and devices are the test's (for the room's tests).
 *
 * A gradient is a small whole number of (step, virtual node, bucket, element), so each way of adding them is
 * exact and each sum its own: a value of another step, one too many or one too few shows, whatever was added
 * to what. Every turn a seed draws what moves: a hub, a compute thread, the coordinator to one member, a link
 * that comes up again. So links come and go, views arrive, and hands fall behind, at every instant of a step.
 *
 *  1. A fold is given the roots that its tree names, of its step (the operands, one by one); a sum that came
 *     is that of all virtual nodes.
 *  2. Whoever finishes a step has all sums and every entry of the table, of that step.
 *  3. No member gives up, and no link is closed for what came over it.
 *  4. When faults stop, steps go on. */
#ifndef HD_WORKER_TESTING_RELAY_H
#define HD_WORKER_TESTING_RELAY_H

#include "worker/testing_engine.h"

/* ---- the hand ---- */

static inline void r_compute_begin(struct r_node *n, const struct hd_command *d)
{
	struct hd_worker *w = &n->w;
	struct hd_vrange range[HD_VIEW_RANKS];
	uint32_t mine = hd_view_ranges(&n->adopted, w->id, range);
	bool own = !w->computed && mine == d->nranges && !memcmp(range, d->range, mine * sizeof *range) &&
		d->flag;

	CHECK(w->begun && w->at == d->step, "%s: worker %u computes step %llu", r_now->what, w->id,
		(unsigned long long)d->step);
	n->number = n->e.relay.engine_pass[d->pass] = own ? 0 : w->npasses++;
	hd_finals_begin(&n->e.finals, &(struct hd_finals_pass){ d->step, d->pass, d->round });
	struct r_pass *p = &w->pass[n->number];
	w->computed |= own;
	p->computed = false;
	p->nranges = d->nranges;
	memcpy(p->range, d->range, d->nranges * sizeof *d->range);
	assert_int_equal(hd_ranges_roots(R_VNS, p->range, p->nranges, p->root, R_VNS, &p->nroots), HD_OK);
	/* the sums may lie in a buffer that the pass uses (adopt.c) */
	for (uint32_t i = 0; own && i < R_FLAT; i++)
		w->sum[w->map][i] = NAN;
	n->computing = *d;
	n->next = 0;
	w->computing = true;
}

/* False: the pass is done. */
static inline bool r_compute_on(struct r_node *n)
{
	struct r_pass *p = &n->w.pass[n->number];
	uint32_t b = n->next++;

	if (b == R_BUCKETS)
		return false;
	for (uint32_t i = 0; i < p->nroots; i++) {
		uint32_t first, end;
		hd_tree_cover(R_VNS, p->root[i], &first, &end);
		for (uint32_t k = b * R_BUCKET; k < (b + 1) * R_BUCKET; k++)
			p->flat[i][k] = r_sum_of(n->w.at, first, end, k);
	}
	if (r_draw(n->world, 4))
		hd_finals_note(&n->e.finals, b);
	return true;
}

static inline void r_begin(struct r_node *n, const struct hd_command *d)
{
	struct hd_worker *w = &n->w;

	CHECK(w->at == d->step && !w->begun, "%s: worker %u begins step %llu at %llu", r_now->what, w->id,
		(unsigned long long)d->step,
		(unsigned long long)w->at);
	if (!n->adopted.epoch || !hd_view_same_map(&n->adopted, d->view)) {
		w->map = !w->map;
		for (uint32_t i = 0; i < R_FLAT; i++)
			w->sum[w->map][i] = NAN;
	}
	n->adopted = *d->view;
	w->begun = true;
	w->computed = false;
	w->npasses = 1;
	memset(w->summed, 0, sizeof w->summed);
	memset(w->known, 0, sizeof w->known);
}

/* All of them are here. */
static inline void r_take_metrics(struct r_node *n, const char *where)
{
	struct hd_worker *w = &n->w;
	struct hd_diag diag = { "" };

	CHECK(hd_relay_take(&n->e.relay, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t v = 0; v < R_VNS; v++) {
		bool own = false;
		for (uint32_t p = 0; p < w->npasses; p++)
			own |= w->pass[p].computed && r_in(&w->pass[p], v);
		CHECK(own || w->known[v],
			"%s; turn %u: worker %u %s step %llu without the entry of virtual node %u",
			r_now->what, r_now->turn, w->id, where,
			(unsigned long long)w->at, v);
	}
}

/* Of a step that was cancelled meanwhile nothing is asked for. */
static inline void r_metrics(struct r_node *n, const struct hd_command *d)
{
	if (!n->w.begun || n->w.at != d->step)
		return;
	r_take_metrics(n, "has all metrics of");
	n->metrics = d->step + 1;
}

static inline void r_finish(struct r_node *n)
{
	struct hd_worker *w = &n->w;

	CHECK(hd_member_exchange(n->e.member)->nmembers < 2 || n->metrics == w->at + 1,
		"%s; turn %u: worker %u finishes step %llu before METRICS", r_now->what, r_now->turn, w->id,
		(unsigned long long)w->at);
	r_take_metrics(n, "finishes");
	for (uint32_t b = 0; b < R_BUCKETS; b++) {
		CHECK(w->summed[b], "%s; turn %u: worker %u finishes step %llu without the sum of bucket %u",
			r_now->what, r_now->turn, w->id,
			(unsigned long long)w->at, b);
		r_verify(w, "a sum of a step that ends", b, hd_dist_sum_at(w, b), 0, R_VNS);
	}
	w->at++;
	w->begun = false;
}

static inline bool r_has_work(const struct r_node *n) { return n->w.computing ||
	n->e.commands.first != n->e.commands.end; }

static inline void r_hand(struct r_node *n)
{
	struct hd_command_done done = { .err = HD_OK };
	struct hd_command d;

	if (n->w.computing) {
		if (r_compute_on(n))
			return;
		n->w.computing = false;
		n->w.pass[n->number].computed = true;
		hd_relay_own_metrics(&n->e.relay, n->computing.pass);
		done.command = n->computing;
		hd_commands_done(&n->e.commands, &done);
		return;
	}
	if (!r_has_work(n) || hd_commands_take(&n->e.commands, &d, 1) != 1)
		return;
	done.command = d;
	switch ((int)d.kind) {
	case HD_COMMAND_BEGIN:   r_begin(n, &d); break;
	case HD_COMMAND_COMPUTE: r_compute_begin(n, &d); return;
	case HD_COMMAND_FOLD:    r_fold(&n->w, &n->e.relay, d.bucket, d.operand); break;
	case HD_COMMAND_ARRIVED:
		r_verify(&n->w, "a sum that came", d.bucket, hd_dist_sum_at(&n->w, d.bucket), 0, R_VNS);
		n->w.summed[d.bucket] = true;
		break;
	case HD_COMMAND_METRICS: r_metrics(n, &d); break;
	case HD_COMMAND_FINISH:  r_finish(n); break;
	case HD_COMMAND_CANCEL:  n->w.begun = false; break;
	default: break;
	}
	hd_commands_done(&n->e.commands, &done);
}

/* ---- links ---- */

static inline struct hd_net_fate r_fate(void *user, const struct hd_net_trip *trip)
{
	struct r_world *w = user;
	return (struct hd_net_fate){ .cut = w->cut[trip->from][trip->to] };
}

/* A link that closed is mended by a new epoch, some time later. */
static inline void r_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct r_node *n = self;
	struct r_world *w = n->world;

	CHECK(why != HD_CLOSE_STREAM && why != HD_CLOSE_ORDER && why != HD_CLOSE_FRAME &&
		why != HD_CLOSE_PLAN, "%s; turn %u: worker %u lost %u: %s", w->what,
		w->turn, n->w.id, worker, text);
	if (!w->fence_at)
		w->fence_at = w->turn + 1 + w->fence_delay;
	hd_elastic_feed(&n->e, &(struct hd_member_event){ .kind = HD_IN_LOST, .worker = worker,
		.why = HD_CLOSED, .text = text ? text : "" });
}

/* What was to be sent while it was down is lost: a new epoch mends that too. */
static inline void r_up(void *self, const struct hd_peer_info *peer)
{
	struct r_node *n = self;

	hd_elastic_events.up(&n->e, peer);
	if (hd_member_state(n->e.member) == HD_MEMBER && !n->world->fence_at)
		n->world->fence_at = n->world->turn + 1 + n->world->fence_delay;
}

static inline bool r_may_connect(const struct r_world *w, uint32_t a, uint32_t b)
{
	return w->node[a] && w->node[b] && w->node[a]->alive && w->node[b]->alive &&
		w->turn >= w->mend_at[a][b] && !hd_hub_is_up(&w->node[a]->e.hub, b) &&
		!hd_hub_is_up(&w->node[b]->e.hub, a);
}

static inline void r_connect(struct r_world *w, uint32_t a, uint32_t b)
{
	struct hd_diag diag = { "" };

	w->cut[a][b] = w->cut[b][a] = false;
	enum hd_err err = hd_hub_connect(&w->node[a]->e.hub, b, "sim", w->addr[b], &diag);
	CHECK(err == HD_OK || err == HD_E_EXISTS, "%s", diag.text);
}

/* ---- life ---- */

static inline void r_tell(struct r_node *n, struct hd_msg msg)
{
	msg.term = 1;
	hd_elastic_feed(&n->e, &(struct hd_member_event){ .kind = HD_IN_MESSAGE, .worker = HD_COORDINATOR,
		.epoch = msg.epoch, .msg = &msg });
}

static inline void r_nothing(void *user) { (void)user; }

static inline void r_node_open(struct r_world *w, uint32_t id)
{
	struct r_node *n = w->node[id] = calloc(1, sizeof *n);
	struct hd_wire_events events = hd_elastic_events;
	const struct hd_member_config config = { .nvns = R_VNS, .nbuckets = R_BUCKETS, .nsteps = 1 << 20,
		.detect_ns = 60 * HD_NS_PER_S, .ndevices = 1,
		.nonce = 7, .pairs = r_pairs };
	const struct hd_hub_config hub = { .job = { { 1 } }, .job_hash = { { 2 } }, .kernels = { { 3 } },
		.worker = id, .role = HD_ROLE_WORKER,
		.detect_ms = 60000, .peers_cap = 8, .streams_cap = 1024 };
	struct hd_diag diag = { "" };

	assert_non_null(n);
	n->world = w;
	n->w.id = id;
	n->w.npasses = 1;
	n->alive = true;
	n->slowness = r_draw(w, 3) ? r_draw(w, 6) : r_draw(w, 40);
	n->spec = (struct hd_elastic_spec){ .clock = &w->clock.clock };
	n->task.layout = w->layout;
	n->e.spec = &n->spec;
	n->e.task = &n->task;
	n->e.worker = &n->w;
	n->e.nbuckets = R_BUCKETS;
	n->e.detect_ns = config.detect_ns;
	n->e.readmit = n->e.source = HD_NOBODY;
	atomic_store(&n->e.self, id);
	n->e.room = malloc(HD_TELL_MAX);
	assert_non_null(n->e.room);
	hd_arena_init(&n->e.messages, 0);
	events.self = n;                          /* whose first member is the elastic worker */
	assert_int_equal(hd_loop_sim_init(&n->e.loop, &w->clock, &diag), HD_OK);
	hd_net_sim_host(&w->net, id, &n->e.loop, &n->host);
	events.lost = r_lost;
	events.up = r_up;
	CHECK(hd_hub_init(&n->e.hub, &hub, &events, &n->e.loop, &n->host.net, &diag) == HD_OK, "%s",
		diag.text);
	snprintf(w->addr[id], sizeof w->addr[id], "unix:/%u", id);
	CHECK(hd_hub_listen(&n->e.hub, "sim", w->addr[id], &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_commands_init(&n->e.commands, r_nothing, NULL, &diag), HD_OK);
	assert_int_equal(hd_finals_init(&n->e.finals, R_BUCKETS, r_nothing, NULL, &diag), HD_OK);
	assert_int_equal(hd_relay_init(&n->e.relay, &n->e.hub, &n->w, &n->task.layout, R_VNS, &diag), HD_OK);
	assert_int_equal(hd_member_create(&n->e.member, &config, &diag), HD_OK);
	hd_elastic_feed(&n->e, &(struct hd_member_event){ .kind = HD_IN_UP, .worker = HD_COORDINATOR });
	r_tell(n, (struct hd_msg){ .kind = HD_MSG_ADMIT, .admit = { id, 7 } });
	n->e.readmit = HD_NOBODY;
	r_tell(n, (struct hd_msg){ .kind = HD_MSG_SYNC, .sync = { HD_NOBODY, 0 } });
	hd_elastic_feed(&n->e, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = 0 });
}

static inline void r_node_close(struct r_node *n)
{
	struct hd_command d;
	struct hd_command_done done;

	if (n->w.computing)
		hd_free((void *)(uintptr_t)n->computing.range);
	while (n->e.commands.first != n->e.commands.end && hd_commands_take(&n->e.commands, &d, 1)) {
		hd_free((void *)(uintptr_t)d.view);
		hd_free((void *)(uintptr_t)d.range);
	}
	while (hd_commands_result(&n->e.commands, &done)) {
		hd_free((void *)(uintptr_t)done.command.view);
		hd_free((void *)(uintptr_t)done.command.range);
	}
	hd_hub_finish(&n->e.hub);
	hd_loop_finish(&n->e.loop);
	hd_member_destroy(n->e.member);
	hd_relay_finish(&n->e.relay);
	hd_commands_finish(&n->e.commands);
	hd_finals_finish(&n->e.finals);
	hd_arena_finish(&n->e.messages);
	free(n->e.room);
	free(n);
}

/* ---- the coordinator: as protocol/coordinator_view.c, of members alone ---- */

static inline void r_map(struct r_world *w, struct hd_view *view)
{
	uint32_t left = R_VNS;

	view->nranks = view->nmembers;
	for (uint32_t i = 0; i < view->nmembers; i++) {
		uint32_t n = i + 1 == view->nmembers ? left : r_draw(w, 3) ? left / (view->nmembers - i) :
			r_draw(w, left + 1);
		view->rank[i] = (struct hd_vrank){ view->member[i], n };
		left -= n;
	}
}

static inline void r_members(const struct r_world *w, struct hd_view *view)
{
	view->nmembers = 0;
	for (uint32_t i = 0; i < w->nworkers; i++)
		if (w->node[i]->alive)
			view->member[view->nmembers++] = i;
}

static inline void r_fence(struct r_world *w)
{
	w->phase = R_ASKING;
	w->epoch++;
	w->fence_at = 0;
	memset(w->sent, 0, sizeof w->sent);
}

static inline struct hd_member *r_member(const struct r_world *w, uint32_t id) { return w->node[id]->e.member;
	}

static inline bool r_all_said(const struct r_world *w)
{
	for (uint32_t i = 0; i < w->nworkers; i++)
		if (w->node[i]->alive && !(w->sent[i] && r_member(w, i)->epoch == w->epoch &&
			r_member(w, i)->held && r_member(w, i)->status_said))
			return false;
	return true;
}

static inline void r_deal(struct r_world *w)
{
	struct hd_vrange missing[HD_VIEW_RANGES];
	uint32_t n = 0;

	assert_int_equal(hd_passes_missing(&w->passes, R_VNS, missing, HD_VIEW_RANGES, &n), HD_OK);
	for (uint32_t i = 0; i < n; i++) {                /* each range to somebody, in one or two parts */
		uint32_t cut = r_draw(w, missing[i].n);
		for (uint32_t part = cut ? 0 : 1; part < 2; part++) {
			struct hd_vrange range = { missing[i].first + (part ? cut : 0),
				part ? missing[i].n - cut : cut };
			uint32_t to, pass = 0;
			do
				to = w->view.member[r_draw(w, w->view.nmembers)];
			while (r_member(w, to)->at != w->open.step);
			while (hd_passes_find(&w->passes, to, pass))
				pass++;
			assert_int_equal(hd_passes_add(&w->passes, to, pass, &range, 1), HD_OK);
		}
	}
}

static inline bool r_prev(const struct hd_member *m) { return !m->begun && m->at && m->x.step == m->at - 1 &&
	hd_exchange_complete(&m->x); }

static inline void r_decide(struct r_world *w)
{
	uint64_t step = UINT64_MAX;
	bool open = false, whole = true, beyond = false;

	w->view = (struct hd_view){ .epoch = w->epoch };
	r_members(w, &w->view);
	for (uint32_t i = 0; i < w->view.nmembers; i++)
		step = r_member(w, w->view.member[i])->at < step ? r_member(w, w->view.member[i])->at : step;
	w->open = (struct hd_msg_view){ .step = step, .halt = HD_NO_STEP };
	w->passes.npasses = w->passes.nranges = 0;
	for (uint32_t i = 0; i < w->view.nmembers; i++) {
		const struct hd_member *m = r_member(w, w->view.member[i]);
		CHECK(m->at <= step + 1, "%s: worker %u is at step %llu, another at %llu", w->what, m->worker,
			(unsigned long long)m->at,
			(unsigned long long)step);
		w->at[i] = m->at;
		open |= m->at > step || m->begun;
		beyond |= m->at > step;
	}
	for (uint32_t i = 0; i < w->view.nmembers; i++)
		beyond |= r_member(w, w->view.member[i])->x.table;
	if (open && !beyond && !r_draw(w, 12)) {
		w->open.afresh = true;
	} else if (open) {
		for (uint32_t i = 0; i < w->view.nmembers; i++) {
			const struct hd_member *m = r_member(w, w->view.member[i]);
			w->open.table |= (uint64_t)(m->at > step ? r_prev(m) : m->begun && m->x.table) << i;
			for (uint32_t p = 0; m->at == step && m->begun && p < m->own.passes.npasses; p++)
				assert_int_equal(hd_passes_add(&w->passes, m->worker, p,
					m->own.passes.range + m->own.passes.pass[p].first_range,
					m->own.passes.pass[p].nranges), HD_OK);
		}
		for (uint32_t b = 0; b < R_BUCKETS; b++) {
			w->have[b] = (struct hd_have){ b, 0 };
			for (uint32_t i = 0; i < w->view.nmembers; i++) {
				const struct hd_member *m = r_member(w, w->view.member[i]);
				w->have[b].members |= (uint64_t)(m->at > step ? r_prev(m) : m->begun &&
					m->x.sum[0] >> b & 1) << i;
			}
			whole &= w->have[b].members != 0;
		}
		w->open.nhave = R_BUCKETS;
		w->open.have = w->have;
		if (!whole || !w->open.table)
			r_deal(w);
	}
	r_map(w, &w->view);
	w->open.nmember = w->open.nat = w->view.nmembers;
	w->open.member = w->view.member;
	w->open.at = w->at;
	w->open.nrank = w->view.nranks;
	w->open.rank = w->view.rank;
	w->open.npass = w->passes.npasses;
	w->open.pass = w->passes.pass;
	w->open.nrange = w->passes.nranges;
	w->open.range = w->passes.range;
	w->phase = R_VIEWING;
	memset(w->sent, 0, sizeof w->sent);
}

/* The next step of what the coordinator is at, to one member that it was not sent to. False: nothing is to be
 * said now. */
static inline bool r_coordinate(struct r_world *w)
{
	uint32_t left[R_WORKERS], n = 0;

	for (uint32_t i = 0; i < w->nworkers; i++)
		if (w->node[i]->alive && !w->sent[i])
			left[n++] = i;
	if (w->phase == R_IDLE)
		return false;
	if (n) {
		uint32_t id = left[r_draw(w, n)];
		struct r_node *node = w->node[id];
		w->sent[id] = true;
		switch (w->phase) {
		case R_ASKING:  r_tell(node, (struct hd_msg){ .kind = HD_MSG_FENCE, .epoch = w->epoch });
			break;
		case R_VIEWING: r_tell(node, (struct hd_msg){ .kind = HD_MSG_VIEW, .epoch = w->epoch,
			.view = w->open }); break;
		case R_PREPARING:
			r_tell(node, (struct hd_msg){ .kind = HD_MSG_PREPARE, .epoch = w->view.epoch,
				.prepare = { .next = w->next.epoch,
				.nold = w->view.nmembers, .old = w->view.member, .nmember = w->next.nmembers,
				.member = w->next.member, .nrank = w->next.nranks,
				.rank = w->next.rank } });
			break;
		case R_DECIDING: r_tell(node, (struct hd_msg){ .kind = HD_MSG_DECIDE, .epoch = w->view.epoch,
			.decided = { w->next.epoch } }); break;
		case R_IDLE: break;
		}
		return true;
	}
	switch (w->phase) {
	case R_ASKING:
		if (!r_all_said(w))
			return false;
		r_decide(w);
		return true;
	case R_PREPARING:
		for (uint32_t i = 0; i < w->nworkers; i++)
			if (w->node[i]->alive && !r_member(w, i)->next.said)
				return false;
		w->phase = R_DECIDING;
		memset(w->sent, 0, sizeof w->sent);
		return true;
	case R_DECIDING:
		/* a fence beforehand goes by what is in force at each */
		w->view = w->next;
		w->phase = R_IDLE;
		return true;
	case R_VIEWING: w->phase = R_IDLE; return true;
	case R_IDLE: break;
	}
	return false;
}

static inline void r_plan_view(struct r_world *w)
{
	bool stands = w->phase == R_IDLE;

	for (uint32_t i = 0; i < w->nworkers; i++) {
		const struct hd_member *m = r_member(w, i);
		stands &= !w->node[i]->alive || (m->epoch == w->epoch && !m->held && m->state == HD_MEMBER);
	}
	if (!stands)
		return;
	w->next = (struct hd_view){ .epoch = ++w->epoch };
	r_members(w, &w->next);
	r_map(w, &w->next);
	w->phase = R_PREPARING;
	memset(w->sent, 0, sizeof w->sent);
}

/* ---- turns ---- */

static inline void r_break(struct r_world *w, const struct r_plan *f)
{
	switch (f->kind) {
	case R_FENCE: w->fence_at = w->turn; break;
	case R_CUT:
		w->cut[f->a][f->b] = w->cut[f->b][f->a] = true;
		w->mend_at[f->a][f->b] = w->turn + f->mend;
		w->fence_delay = f->fence;
		if (w->node[f->a]->alive && f->again)
			hd_hub_drop(&w->node[f->a]->e.hub, f->b, HD_CLOSE_DROPPED, "the test");
		break;
	case R_LOSE: {
		uint32_t alive = 0;
		for (uint32_t i = 0; i < w->nworkers; i++)
			alive += w->node[i]->alive;
		if (alive < 2 || !w->node[f->a]->alive)
			break;
		w->node[f->a]->alive = false;
		w->fence_delay = f->fence;
		hd_hub_finish(&w->node[f->a]->e.hub);
		w->fence_at = w->fence_at ? w->fence_at : w->turn + 1 + f->fence;
		break;
	}
	case R_PLAN: r_plan_view(w); break;
	case R_NFAULTS: break;
	}
}

static inline void r_poll(struct r_node *n)
{
	struct hd_loop_event other[8];
	struct hd_diag diag = { "" };
	size_t got;

	CHECK(hd_hub_poll(&n->e.hub, hd_clock_now_ns(n->spec.clock), other, 8, &got, &diag) == HD_OK, "%s",
		diag.text);
	hd_elastic_results(&n->e);
	CHECK(!n->e.leaving, "%s; turn %u: worker %u leaves: %s%s", n->world->what, n->world->turn, n->w.id,
		n->e.io_diag.text, n->e.exit_text);
}

/* Nothing can move: time goes on to whatever is due first. */
static inline void r_wait(struct r_world *w)
{
	int64_t due = INT64_MAX, now = hd_clock_now_ns(&w->clock.clock);

	for (uint32_t i = 0; i < w->nworkers; i++) {
		if (!w->node[i]->alive)
			continue;
		int64_t hub = hd_hub_due_ns(&w->node[i]->e.hub),
			loop = hd_loop_sim_next_ns(&w->node[i]->e.loop);
		due = hub < due ? hub : due;
		due = loop < due ? loop : due;
	}
	if (due > now && due != INT64_MAX)
		hd_clock_sim_advance(&w->clock, due - now < 1000000 ? due - now : 1000000);
}

static inline bool r_moves(struct r_world *w)
{
	struct r_node *n = w->node[r_draw(w, w->nworkers)];
	int64_t now = hd_clock_now_ns(&w->clock.clock);
	uint32_t a = r_draw(w, w->nworkers), b = r_draw(w, w->nworkers);

	if (a < b && r_may_connect(w, a, b))
		r_connect(w, a, b);
	if (!r_draw(w, 4) && r_coordinate(w))
		return true;
	if (!n->alive)
		return false;
	if (r_has_work(n) && !r_draw(w, 1 + n->slowness)) {
		r_hand(n);
		return true;
	}
	if (hd_hub_due_ns(&n->e.hub) <= now || hd_loop_sim_next_ns(&n->e.loop) <= now ||
		n->e.commands.first_done != n->e.commands.end_done || n->e.finals.some) {
		r_poll(n);
		return true;
	}
	return false;
}

static inline uint64_t r_least(const struct r_world *w)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < w->nworkers; i++)
		if (w->node[i]->alive && r_member(w, i)->at < least)
			least = r_member(w, i)->at;
	return least;
}

/* Until all have made `steps` steps. How many turns that took. */
static inline uint32_t r_run(const char *what, uint64_t seed, uint32_t nworkers, const struct r_plan *plan,
	uint32_t nplans, uint64_t steps)
{
	struct r_world *w = r_now = calloc(1, sizeof *w);
	struct hd_diag diag = { "" };
	uint32_t still = 0, turns;

	assert_non_null(w);
	snprintf(w->what, sizeof w->what, "%s", what);
	w->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	w->nworkers = nworkers;
	for (uint32_t i = 0; i < R_CHUNKS; i++) {
		w->chunk[i] = (struct hd_chunk){ (uint64_t)i * R_CHUNK, R_CHUNK, i, 1 };
		w->segment[i] = (struct hd_segment){ (uint64_t)i * R_CHUNK, R_CHUNK, i, i };
	}
	w->layout = (struct hd_layout){ .elems = R_FLAT, .nsegments = R_CHUNKS, .nchunks = R_CHUNKS,
		.segment = w->segment, .chunk = w->chunk };
	hd_clock_sim(&w->clock, HD_NS_PER_S, 0);
	assert_int_equal(hd_net_sim_init(&w->net, &w->clock.clock, NULL, &diag), HD_OK);
	w->net.fate = r_fate;
	w->net.user = w;
	for (uint32_t i = 0; i < nworkers; i++)
		r_node_open(w, i);
	r_fence(w);
	for (w->turn = 1; r_least(w) < steps || w->phase != R_IDLE; w->turn++) {
		CHECK(w->turn < R_TURNS, "%s: step %llu does not end", what, (unsigned long long)r_least(w));
		for (uint32_t i = 0; i < nplans; i++)
			if (plan[i].turn == w->turn)
				r_break(w, &plan[i]);
		if (w->fence_at && w->turn >= w->fence_at && !(w->phase == R_VIEWING && w->open.afresh))
			r_fence(w);
		still = r_moves(w) ? 0 : still + 1;
		if (r_each_turn)
			r_each_turn(w);
		if (still > 64)
			r_wait(w);
	}
	turns = w->turn;
	for (uint32_t i = 0; i < nworkers; i++)
		r_node_close(w->node[i]);
	hd_net_sim_finish(&w->net);
	free(w);
	return turns;
}

#endif
