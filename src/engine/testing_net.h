/* testing_net.h -- workers of one job in one process for tests of this room: included by *_test.c only.
 *
 * Each computes on a thread of its own; the test's thread is the wire of all of them and delivers in any
 * order, or fences. The oracle is one device of one worker. */
#ifndef HD_ENGINE_TESTING_NET_H
#define HD_ENGINE_TESTING_NET_H

#include <sched.h>

#include "sys/thread.h"
#include "plan/xfer.h"
#include "engine/testing.h"

enum { MOST = 5, MOST_MAIL = 1 << 14, MOST_VNS = 32, MOST_ROOTS = 256, MOST_PIECES = 4, STEPS = 3 };

static uint64_t seed;
static inline uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct member {
	struct hd_worker *worker;
	struct hd_thread thread;
	enum hd_err err;
	_Atomic bool done;
	bool gone;                        /* lost: nothing comes from it any more */
	uint64_t redundant_ns, stalled_ns;        /* of its last step, as its record has it */
};

/* A letter on its way: both ends have named it. */
struct mail { struct hd_dist_letter send, post; uint32_t from, to; bool sends, posts, gone;
	struct hd_hash bits; };

struct net {
	struct hd_rig one;                /* the oracle: job and task are its */
	struct hd_step_record want;
	struct hd_plan plan;
	struct member at[MOST];
	uint32_t n, nbuckets;
	struct mail mail[MOST_MAIL]; uint32_t nmail;      /* of the step at hand */
	uint32_t fence_after;             /* letters, 0: never */
	uint32_t epoch, stale;            /* stale: steps that a fence ended */
	/* steps overlap: what was begun of the one to begin counts; it begins another one */
	bool overlaps, ahead, goes_on;
	bool runs_ahead;                  /* where nothing else is to do (overlap.h, rule 7) */
	/* times that all came as far as can be; that they were called back; that these were fences */
	uint32_t nahead, ncalled, nfenced;
	uint32_t nvain;                   /* steps whose last stage had updated, and that were skipped */
	/* a letter of a cancelled pass that the wire keeps for so many turns of the next one; 0: none */
	struct hd_dist_letter kept; uint32_t kept_of, keep_turns;
};

/* ---- set-up ---- */

static inline void add_worker(struct net *net, uint32_t ndevices, const char *what)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = ndevices,
		.kernels = HD_KERNELS_PORTABLE };
	const struct hd_dist_view view = { .plan = &net->plan,
		.worker = (uint16_t)net->n, .nplaces = (1 + MOST_PIECES) * MOST_ROOTS };
	struct hd_diag diag = { "" };

	assert_true(net->n < MOST);
	struct hd_worker **w = &net->at[net->n].worker;
	CHECK(hd_worker_create(w, net->one.task, &spec, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_prepare(*w, &view, &diag) == HD_OK, "%s: %s", what, diag.text);
	hd_dist_adopt(*w);
	net->n++;
}

/* Ranks of the plan go to workers one after another, `each` to a worker. */
static inline void add_workers(struct net *net, uint32_t nranks, uint32_t each, const char *what)
{
	for (uint32_t r = 0; r < nranks; r++)
		net->plan.worker[r] = (uint16_t)(r / each);
	for (uint32_t first = 0; first < nranks; first += each)
		add_worker(net, (first + each < nranks ? each : nranks - first) * hd_plan_width(&net->plan),
			what);
}

/* Around the rig `one`, which is there: a plan of all its virtual nodes over so many ranks. */
static inline void add_data_parallel(struct net *net, uint32_t nranks, uint32_t each, const char *what)
{
	const struct hd_plan_job job = hd_worker_plan_job(net->one.worker);
	struct hd_diag diag = { "" };

	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_plan_data(&net->plan, &job, nranks, NULL, &net->one.arena, &diag) == HD_OK, "%s", diag.text);
	add_workers(net, nranks, each, what);
}

static inline void close_net(struct net *net)
{
	for (uint32_t m = 0; m < net->n; m++)
		hd_worker_destroy(net->at[m].worker);
	hd_rig_close(&net->one);
}

/* ---- the wire ---- */

/* Both ends name it alike. */
static inline struct mail *mail_of(struct net *net, const struct hd_dist_letter *l)
{
	uint32_t i = 0;

	assert_true(l->len);
	for (; i < net->nmail; i++) {
		const struct hd_dist_letter *k = net->mail[i].sends ? &net->mail[i].send : &net->mail[i].post;
		if (k->kind == l->kind && k->stage == l->stage && k->vn == l->vn &&
			k->number == l->number && k->from == l->from && k->to == l->to)
			return &net->mail[i];
	}
	assert_true(net->nmail < MOST_MAIL);
	return &net->mail[net->nmail++];
}

static inline bool take_letters(struct net *net)
{
	bool any = false;
	struct hd_dist_letter l;

	for (uint32_t m = 0; m < net->n; m++)
		while (!net->at[m].gone && draw(4) && hd_dist_mail_next(net->at[m].worker, &l)) {
			struct mail *mail = mail_of(net, &l);
			any = true;
			assert_int_equal(l.send ? l.from : l.to, m);
			if (l.send) {
				assert_false(mail->sends);
				/* its buffer is the wire's */
				assert_false(net->kept.len && m == net->kept_of &&
					l.stage == net->kept.stage);
				mail->send = l;
				mail->bits = hd_hash(l.bytes, l.len);
				mail->from = m;
				mail->sends = true;
			} else {
				assert_false(mail->posts);
				mail->post = l;
				mail->to = m;
				mail->posts = true;
			}
		}
	return any;
}

static inline void deliver(struct net *net, struct mail *mail)
{
	struct hd_diag diag = { "" };

	assert_int_equal(mail->send.len, mail->post.len);
	assert_int_equal(mail->send.to, mail->to);
	assert_int_equal(mail->post.from, mail->from);
	memcpy(mail->post.bytes, mail->send.bytes, mail->post.len);
	/* it is the wire's: no device has written it, none reads it again; moments go to several */
	assert_true(hd_hash_same(mail->bits, hd_hash(mail->send.bytes, mail->send.len)));
	if (mail->send.kind != HD_XFER_MOMENTS)
		memset(mail->send.bytes, 0xab, mail->send.len);
	hd_dist_mail_sent(net->at[mail->from].worker, &mail->send);
	CHECK(hd_dist_mail_arrived(net->at[mail->to].worker, &mail->post, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_mail_arrived(net->at[mail->to].worker, &mail->post, &diag) == HD_E_STALE, "twice");
	mail->gone = true;
}

static inline uint32_t deliver_some(struct net *net)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < net->nmail; i++) {
		struct mail *mail = &net->mail[i];
		if (mail->sends && mail->posts && !mail->gone && draw(2)) {
			deliver(net, mail);
			n++;
		}
	}
	return n;
}

static inline void compute(void *user)
{
	struct member *m = user;
	struct hd_diag diag = { "" };

	m->err = hd_dist_compute(m->worker, &diag);
	m->done = true;
}

static inline bool all_done(const struct net *net)
{
	bool done = true;

	for (uint32_t m = 0; m < net->n; m++)
		done &= net->at[m].done;
	return done;
}

/* What was taken and not delivered comes back, in some order. */
static inline void cancel(struct net *net)
{
	for (uint32_t i = 0; i < net->nmail; i++) {
		struct mail *mail = &net->mail[i];
		if (!mail->sends || mail->gone)
			continue;
		mail->gone = true;
		if (net->keep_turns && !net->kept.len) {
			net->kept = mail->send;
			net->kept_of = mail->from;
			continue;
		}
		hd_dist_mail_sent(net->at[mail->from].worker, &mail->send);
	}
}

static inline void give_back_kept(struct net *net)
{
	if (!net->kept.len || net->keep_turns-- > 1)
		return;
	hd_dist_mail_sent(net->at[net->kept_of].worker, &net->kept);
	net->kept.len = 0;
}

/* What is on its way for a step that was begun stays. */
static inline void clear_mail(struct net *net)
{
	const uint32_t had = net->nmail;

	net->nmail = 0;
	for (uint32_t i = 0; i < had; i++)
		if (net->ahead && !net->mail[i].gone)
			net->mail[net->nmail++] = net->mail[i];
	memset(net->mail + net->nmail, 0, (MOST_MAIL - net->nmail) * sizeof *net->mail);
}

/* Everybody computes; true: fenced on the way. */
static inline bool compute_all(struct net *net)
{
	uint32_t delivered = 0;
	struct hd_diag diag = { "" };
	bool fenced = false;

	clear_mail(net);
	for (uint32_t m = 0; m < net->n; m++) {
		net->at[m].done = net->at[m].gone;
		CHECK(net->at[m].gone || hd_thread_start(&net->at[m].thread, "member", -1, compute,
			&net->at[m], &diag) == HD_OK, "%s", diag.text);
	}
	while (!all_done(net)) {
		const bool any = take_letters(net);
		give_back_kept(net);
		delivered += fenced ? 0 : deliver_some(net);
		if (net->fence_after && delivered >= net->fence_after && !fenced) {
			fenced = true;
			for (uint32_t m = 0; m < net->n; m++)
				hd_dist_fence(net->at[m].worker, net->epoch + 1);
		}
		if (!any)
			sched_yield();
	}
	for (uint32_t m = 0; m < net->n; m++)
		if (!net->at[m].gone)
			hd_thread_join(&net->at[m].thread);
	if (fenced)
		cancel(net);
	return fenced;
}

static inline void run_on_ahead(void *user)
{
	struct member *m = user;
	const uint32_t seen = hd_dist_calls(m->worker);

	if (hd_dist_has_ahead(m->worker))
		(void)hd_dist_run_ahead(m->worker, seen);
	m->done = true;
}

/* After so many letters, or when one has ended, all are called back, or fenced; 0: they come as far as they
 * can. */
static inline void run_ahead(struct net *net, uint32_t calls, bool fences)
{
	struct hd_diag diag = { "" };
	uint32_t delivered = 0;
	bool over = false;

	for (uint32_t m = 0; m < net->n; m++) {
		net->at[m].done = false;
		CHECK(hd_thread_start(&net->at[m].thread, "member", -1, run_on_ahead, &net->at[m],
			&diag) == HD_OK, "%s", diag.text);
	}
	while (!all_done(net)) {
		const bool any = take_letters(net);
		delivered += deliver_some(net);
		for (uint32_t m = 0; m < net->n; m++)
			over |= calls && (delivered >= calls || net->at[m].done);
		for (uint32_t m = 0; m < net->n && over; m++) {
			if (fences)
				hd_dist_fence(net->at[m].worker, net->epoch + 1);
			hd_dist_call(net->at[m].worker);
		}
		if (!any)
			sched_yield();
	}
	for (uint32_t m = 0; m < net->n; m++)
		hd_thread_join(&net->at[m].thread);
	net->ncalled += calls > 0;
	net->nahead += !calls;
	net->nfenced += fences;
}

/* ---- sums ---- */

struct roots { uint32_t member[MOST_ROOTS], i[MOST_ROOTS], n; struct hd_tnode node[MOST_ROOTS];
	uint16_t stage[MOST_ROOTS]; };

static inline void find_roots(const struct net *net, struct roots *r)
{
	r->n = 0;
	for (uint32_t m = 0; m < net->n; m++) {
		const uint32_t n = net->at[m].gone ? 0 : hd_dist_nroots(net->at[m].worker, 0);
		for (uint32_t i = 0; i < n; i++, r->n++) {
			assert_true(r->n < MOST_ROOTS);
			r->member[r->n] = m;
			r->i[r->n] = i;
			r->node[r->n] = hd_dist_root(net->at[m].worker, 0, i);
			r->stage[r->n] = hd_dist_root_stage(net->at[m].worker, 0, i);
		}
	}
}

/* The roots of a stage are those that the plan says. */
static inline void check_roots(const struct net *net, uint32_t m)
{
	const struct hd_worker *w = net->at[m].worker;
	uint8_t has[MOST_VNS];
	struct hd_tnode root[MOST_VNS];
	uint32_t at = 0, n;

	for (uint16_t s = 0; s < net->plan.nstages; s++) {
		assert_int_equal(hd_dist_roots_of(&net->plan, (uint16_t)m, s, has, root, MOST_VNS, &n),
			HD_OK);
		for (uint32_t i = 0; i < n; i++, at++)
			assert_true(hd_dist_root_stage(w, 0, at) == s &&
				hd_tnode_same(hd_dist_root(w, 0, at), root[i]));
	}
	assert_int_equal(at, hd_dist_nroots(w, 0));
}

/* At its owner alone. */
static inline void fold_bucket(struct net *net, const struct roots *r, uint32_t b, uint32_t owner)
{
	const struct hd_layout *layout = &net->one.task->layout;
	struct hd_worker *w = net->at[owner].worker;
	const float *operand[(1 + MOST_PIECES) * MOST_ROOTS] = { NULL };
	const struct hd_dist_fold fold = { b, operand };
	struct hd_diag diag = { "" };
	uint32_t piece, npieces = hd_layout_pieces(layout, b, &piece);

	assert_in_range(npieces, 0, MOST_PIECES);
	for (uint32_t at = 0; at < r->n * (1 + npieces); at++) {
		const uint32_t i = at % r->n, run = at < r->n ? b : piece + at / r->n - 1;
		if (!hd_dist_run_has(w, run, r->stage[i]))
			continue;
		operand[at] = hd_dist_root_at(net->at[r->member[i]].worker, 0, r->i[i], run);
		if (r->member[i] == owner)
			continue;
		memcpy(hd_dist_place(w, at), operand[at], hd_layout_run(layout, run).len * sizeof(float));
		operand[at] = hd_dist_place(w, at);
	}
	CHECK(hd_dist_operands(w, r->node, r->stage, r->n, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_fold(w, &fold, 1, &diag) == HD_OK, "%s", diag.text);
}

static inline void sum_bucket(struct net *net, const struct roots *r, uint32_t b)
{
	uint32_t owner = draw(net->n);
	while (net->at[owner].gone)
		owner = (owner + 1) % net->n;
	const uint64_t bytes = hd_layout_bucket(&net->one.task->layout, b).len * sizeof(float);
	struct hd_worker *w = net->at[owner].worker;
	struct hd_diag diag = { "" };

	fold_bucket(net, r, b, owner);
	for (uint32_t m = 0; m < net->n; m++)
		if (m != owner && !net->at[m].gone) {
			memcpy(hd_dist_sum_at(net->at[m].worker, b), hd_dist_sum_at(w, b), bytes);
			CHECK(hd_dist_arrived(net->at[m].worker, &b, 1, &diag) == HD_OK, "%s", diag.text);
		}
}

static inline void exchange_leaves(struct net *net)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_worker *w = net->at[m].worker;
		if (net->at[m].gone)
			continue;
		const uint64_t len = hd_dist_leaves_bytes(w, hd_dist_nleaves(w, 0));
		uint8_t *bytes = malloc(len);
		hd_dist_leaves_get(w, 0, bytes);
		for (uint32_t to = 0; to < net->n; to++)          /* also to itself: it changes nothing */
			CHECK(net->at[to].gone || hd_dist_leaves_put(net->at[to].worker, (uint16_t)m, bytes,
				len, &diag) == HD_OK, "%s", diag.text);
		free(bytes);
	}
}

static inline void finish(struct net *net, const char *what)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_step_record r;
		if (net->at[m].gone)
			continue;
		CHECK(hd_dist_finish(net->at[m].worker, &r, &diag) == HD_OK, "%s: %s", what, diag.text);
		net->at[m].redundant_ns = r.redundant_ns;
		net->at[m].stalled_ns = r.stalled_ns;
		CHECK(hd_hash_same(r.digest, net->want.digest), "%s, step %llu: worker %u has other bits",
			what,
			(unsigned long long)r.step, m);
		CHECK(memcmp(&r.loss_sum, &net->want.loss_sum, 8) == 0 && memcmp(&r.gnorm, &net->want.gnorm,
			8)
			== 0 && r.correct == net->want.correct, "%s: loss or norm", what);
	}
}

static inline void begin(struct net *net)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n && net->overlaps; m++)
		CHECK(hd_dist_overlap(net->at[m].worker, net->ahead, net->goes_on, &diag) == HD_OK, "%s",
			diag.text);
	for (uint32_t m = 0; m < net->n; m++)
		CHECK(net->at[m].gone || hd_dist_begin(net->at[m].worker, true, &diag) == HD_OK, "%s",
			diag.text);
}

/* Did the fence find a worker in its pass? Whoever had computed is not touched. */
static inline bool is_stale(struct net *net)
{
	bool stale = false;

	for (uint32_t m = 0; m < net->n; m++) {
		assert_true(net->at[m].err == HD_OK || net->at[m].err == HD_E_STALE);
		stale |= net->at[m].err == HD_E_STALE;
	}
	net->stale += stale;
	return stale;
}

static inline void next_epoch(struct net *net)
{
	net->epoch++;
	net->ahead = false;
	for (uint32_t m = 0; m < net->n && net->overlaps; m++)
		assert_int_equal(hd_dist_overlap(net->at[m].worker, false, false, NULL), HD_OK);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_epoch(net->at[m].worker, net->epoch);
}

/* All have computed: sums, what each says, the update, and one device beside it. */
static inline void end_step(struct net *net, const char *what)
{
	struct roots roots;

	net->want = hd_rig_step(&net->one);
	find_roots(net, &roots);
	for (uint32_t b = 0; b < net->nbuckets; b++)
		sum_bucket(net, &roots, b);
	exchange_leaves(net);
	finish(net, what);
}

/* What was begun of the next step is in vain. */
static inline bool ends_epoch(const struct net *net)
{
	return net->want.skipped && net->one.task->delays.early;
}

static inline void step(struct net *net, const char *what)
{
	net->goes_on = net->overlaps && draw(5);
	begin(net);
	bool fenced = compute_all(net);
	if (fenced && is_stale(net)) {
		for (uint32_t m = 0; m < net->n; m++)
			hd_dist_abandon(net->at[m].worker);
		next_epoch(net);
		net->fence_after = 0;
		begin(net);
		assert_false(compute_all(net));
	}
	for (uint32_t m = 0; m < net->n; m++) {
		assert_int_equal(net->at[m].err, HD_OK);
		check_roots(net, m);
	}
	for (uint32_t turns = draw(3); net->runs_ahead && !fenced && turns; turns--) {
		fenced = draw(6) == 0;
		run_ahead(net, 1 + draw(12), fenced);
	}
	end_step(net, what);
	net->ahead = net->goes_on && !ends_epoch(net);
	for (uint32_t turns = draw(3); net->runs_ahead && !fenced && net->ahead && turns; turns--)
		run_ahead(net, draw(4) ? 1 + draw(12) : 0, false);
	for (uint32_t turns = draw(4); net->ahead && turns; turns--) {      /* between two steps */
		take_letters(net);
		if (!fenced)
			deliver_some(net);
	}
	if (fenced && net->ahead)
		cancel(net);
	if (net->goes_on && ends_epoch(net)) {            /* as the member machine does: rule 13 */
		for (uint32_t m = 0; m < net->n; m++)
			hd_dist_fence(net->at[m].worker, net->epoch + 1);
		cancel(net);
		net->nvain++;
	}
	if (fenced || (net->goes_on && ends_epoch(net)))
		next_epoch(net);
}

#endif
