#include "engine/post.h"

#include <sched.h>

#include "sys/thread.h"
#include "plan/xfer.h"
#include "engine/testing_stages.h"

/* A pipeline whose stages are of several workers, in one process: each computes on a thread of its own, this
 * thread is the wire of all of them and delivers in any order. The oracle is one device of one worker:
 * digests and losses are equal bit for bit. */

enum { MOST = 4, MOST_STAGES = 8, MOST_VNS = 16, MOST_ROOTS = 256, STEPS = 3 };

static uint64_t seed;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct member {
	struct hd_worker *worker;
	struct hd_thread thread;
	enum hd_err err;
	_Atomic bool done;
};

/* A letter on its way: both ends have named it. */
struct mail { struct hd_dist_letter send, post; uint32_t from, to; bool sends, posts, gone; };

struct net {
	struct hd_rig one;                /* the oracle: job and task are its */
	struct hd_step_record want;
	struct hd_plan plan;
	struct member at[MOST];
	uint32_t n, nbuckets;
	struct mail mail[HD_MAILS][MOST_STAGES][MOST_VNS];
	uint32_t fence_after;             /* letters, 0: never */
	uint32_t epoch, stale;            /* stale: steps that a fence ended */
};

/* ---- set-up ---- */

/* Ranks of the plan go to workers one after another, `each` to a worker. */
static void open_net(struct net *net, const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kind, uint32_t each)
{
	const uint32_t nranks = kind->p * kind->d;
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, model, batch, vns, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK,
		"%s: %s", kind->name, diag.text);
	for (uint32_t r = 0; r < nranks; r++)
		net->plan.worker[r] = (uint16_t)(r / each);
	for (uint32_t first = 0; first < nranks; first += each) {
		const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1,
			.ndevices = first + each < nranks ? each : nranks - first,
			.kernels = HD_KERNELS_PORTABLE };
		assert_true(net->n < MOST);
		struct hd_worker **w = &net->at[net->n].worker;
		CHECK(hd_worker_create(w, net->one.task, &spec, &diag) == HD_OK, "%s", diag.text);
		const struct hd_dist_view view = { &net->plan, (uint16_t)net->n, 2 * MOST_ROOTS, 0 };
		CHECK(hd_dist_prepare(*w, &view, &diag) == HD_OK, "%s: %s", kind->name, diag.text);
		hd_dist_adopt(*w);
		net->n++;
	}
}

static void close_net(struct net *net)
{
	for (uint32_t m = 0; m < net->n; m++)
		hd_worker_destroy(net->at[m].worker);
	hd_rig_close(&net->one);
}

/* ---- the wire ---- */

static struct mail *mail_of(struct net *net, const struct hd_dist_letter *l)
{
	assert_true(l->stage < MOST_STAGES && l->vn < MOST_VNS && l->len);
	return &net->mail[l->kind == HD_XFER_ACTIVATIONS ? HD_MAIL_ACT : HD_MAIL_GRAD][l->stage][l->vn];
}

static bool take_letters(struct net *net)
{
	bool any = false;
	struct hd_dist_letter l;

	for (uint32_t m = 0; m < net->n; m++)
		while (draw(4) && hd_dist_mail_next(net->at[m].worker, &l)) {
			struct mail *mail = mail_of(net, &l);
			any = true;
			assert_int_equal(l.send ? l.from : l.to, m);
			if (l.send) {
				assert_false(mail->sends);
				mail->send = l;
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

static void deliver(struct net *net, struct mail *mail)
{
	struct hd_diag diag = { "" };

	assert_int_equal(mail->send.len, mail->post.len);
	assert_int_equal(mail->send.to, mail->to);
	assert_int_equal(mail->post.from, mail->from);
	memcpy(mail->post.bytes, mail->send.bytes, mail->post.len);
	/* it is the wire's: no device reads it again */
	memset(mail->send.bytes, 0xab, mail->send.len);
	hd_dist_mail_sent(net->at[mail->from].worker, &mail->send);
	CHECK(hd_dist_mail_arrived(net->at[mail->to].worker, &mail->post, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_mail_arrived(net->at[mail->to].worker, &mail->post, &diag) == HD_E_STALE, "twice");
	mail->gone = true;
}

static uint32_t deliver_some(struct net *net)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HD_MAILS * MOST_STAGES * MOST_VNS; i++) {
		struct mail *mail = &net->mail[0][0][0] + i;
		if (mail->sends && mail->posts && !mail->gone && draw(2)) {
			deliver(net, mail);
			n++;
		}
	}
	return n;
}

static void compute(void *user)
{
	struct member *m = user;
	struct hd_diag diag = { "" };

	m->err = hd_dist_compute(m->worker, &diag);
	m->done = true;
}

static bool all_done(const struct net *net)
{
	bool done = true;

	for (uint32_t m = 0; m < net->n; m++)
		done &= net->at[m].done;
	return done;
}

/* What was taken and not delivered comes back, in some order. */
static void cancel(struct net *net)
{
	for (uint32_t i = 0; i < HD_MAILS * MOST_STAGES * MOST_VNS; i++) {
		struct mail *mail = &net->mail[0][0][0] + i;
		if (mail->sends && !mail->gone)
			hd_dist_mail_sent(net->at[mail->from].worker, &mail->send);
	}
}

/* Everybody computes; true: fenced on the way. */
static bool compute_all(struct net *net)
{
	uint32_t delivered = 0;
	struct hd_diag diag = { "" };
	bool fenced = false;

	memset(net->mail, 0, sizeof net->mail);
	for (uint32_t m = 0; m < net->n; m++) {
		net->at[m].done = false;
		CHECK(hd_thread_start(&net->at[m].thread, "member", -1, compute, &net->at[m], &diag) == HD_OK,
			"%s", diag.text);
	}
	while (!all_done(net)) {
		const bool any = take_letters(net);
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
		hd_thread_join(&net->at[m].thread);
	if (fenced)
		cancel(net);
	return fenced;
}

/* ---- sums ---- */

struct roots { uint32_t member[MOST_ROOTS], i[MOST_ROOTS], n; struct hd_tnode node[MOST_ROOTS];
	uint16_t stage[MOST_ROOTS]; };

static void find_roots(const struct net *net, struct roots *r)
{
	r->n = 0;
	for (uint32_t m = 0; m < net->n; m++)
		for (uint32_t i = 0; i < hd_dist_nroots(net->at[m].worker, 0); i++, r->n++) {
			assert_true(r->n < MOST_ROOTS);
			r->member[r->n] = m;
			r->i[r->n] = i;
			r->node[r->n] = hd_dist_root(net->at[m].worker, 0, i);
			r->stage[r->n] = hd_dist_root_stage(net->at[m].worker, 0, i);
		}
}

/* The roots of a stage are those that the plan says. */
static void check_roots(const struct net *net, uint32_t m)
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

static void sum_bucket(struct net *net, const struct roots *r, uint32_t b)
{
	const uint32_t owner = draw(net->n);
	const struct hd_layout *layout = &net->one.task->layout;
	const uint64_t bytes = hd_layout_bucket(layout, b).len * sizeof(float);
	struct hd_worker *w = net->at[owner].worker;
	const float *operand[2 * MOST_ROOTS] = { NULL };
	const struct hd_dist_fold fold = { b, operand };
	struct hd_diag diag = { "" };
	uint32_t piece, npieces = hd_layout_pieces(layout, b, &piece);

	assert_in_range(npieces, 0, 1);
	for (uint32_t at = 0; at < r->n * (1 + npieces); at++) {
		const uint32_t i = at % r->n, run = at < r->n ? b : piece;
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
	for (uint32_t m = 0; m < net->n; m++)
		if (m != owner) {
			memcpy(hd_dist_sum_at(net->at[m].worker, b), hd_dist_sum_at(w, b), bytes);
			CHECK(hd_dist_arrived(net->at[m].worker, &b, 1, &diag) == HD_OK, "%s", diag.text);
		}
}

static void exchange_leaves(struct net *net)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_worker *w = net->at[m].worker;
		const uint64_t len = hd_dist_leaves_bytes(w, hd_dist_nleaves(w, 0));
		uint8_t *bytes = malloc(len);
		hd_dist_leaves_get(w, 0, bytes);
		for (uint32_t to = 0; to < net->n; to++)          /* also to itself: it changes nothing */
			CHECK(hd_dist_leaves_put(net->at[to].worker, (uint16_t)m, bytes, len, &diag) == HD_OK,
				"%s", diag.text);
		free(bytes);
	}
}

static void finish(struct net *net, const char *what)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_step_record r;
		CHECK(hd_dist_finish(net->at[m].worker, &r, &diag) == HD_OK, "%s: %s", what, diag.text);
		CHECK(hd_hash_same(r.digest, net->want.digest), "%s, step %llu: worker %u has other bits",
			what,
			(unsigned long long)r.step, m);
		CHECK(memcmp(&r.loss_sum, &net->want.loss_sum, 8) == 0 && memcmp(&r.gnorm, &net->want.gnorm,
			8)
			== 0 && r.correct == net->want.correct, "%s: loss or norm", what);
	}
}

static void begin(struct net *net)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < net->n; m++)
		CHECK(hd_dist_begin(net->at[m].worker, true, &diag) == HD_OK, "%s", diag.text);
}

/* Did the fence find a worker in its pass? Whoever had computed is not touched. */
static bool is_stale(struct net *net)
{
	bool stale = false;

	for (uint32_t m = 0; m < net->n; m++) {
		assert_true(net->at[m].err == HD_OK || net->at[m].err == HD_E_STALE);
		stale |= net->at[m].err == HD_E_STALE;
	}
	net->stale += stale;
	return stale;
}

static void next_epoch(struct net *net)
{
	net->epoch++;
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_epoch(net->at[m].worker, net->epoch);
}

static void step(struct net *net, const char *what)
{
	struct roots roots;

	begin(net);
	const bool fenced = compute_all(net);
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
	net->want = hd_rig_step(&net->one);
	find_roots(net, &roots);
	for (uint32_t b = 0; b < net->nbuckets; b++)
		sum_bucket(net, &roots, b);
	exchange_leaves(net);
	finish(net, what);
	if (fenced)
		next_epoch(net);
}

/* ---- what is promised ---- */

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 2, 1, 1, false }, { "gpipe", 4, 1, 1, true }, { "1f1b", 2, 1, 1, false },
	{ "1f1b", 3, 1, 1, true }, { "1f1b", 2, 1, 2, false }, { "interleaved", 2, 2, 1, false },
	{ "interleaved", 2, 2, 1, true }, { "zb-h1", 3, 1, 1, false }, { "zb-h2", 2, 1, 2, false },
	{ "zb-v", 2, 2, 1, false }, { "v-half", 2, 2, 1, false }, { "dualpipev", 2, 2, 1, false },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more, size_t n,
	uint32_t fences)
{
	struct net *net = malloc(sizeof *net);
	uint32_t stale = 0;

	assert_non_null(net);
	for (size_t k = 0; k < n; k++)
		for (uint32_t each = 1; each < kinds[k].p * kinds[k].d; each++) {
			char what[80];
			snprintf(what, sizeof what, "%s p %u v %u d %u%s, %u ranks a worker", kinds[k].name,
				kinds[k].p, kinds[k].v, kinds[k].d, kinds[k].recompute ? " recompute" : "",
					each);
			open_net(net, model, batch, vns, more, &kinds[k], each);
			for (int i = 0; i < STEPS; i++) {
				net->fence_after = fences ? 1 + draw(fences) : 0;
				step(net, what);
			}
			stale += net->stale;
			close_net(net);
		}
	assert_true(!fences || stale > NKINDS);
	free(net);
}

static void stages_of_several_workers_have_the_bits_of_one_device(void **state)
{
	(void)state;
	seed = 1;
	compare(hd_rig_gpt3, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", NKINDS, 0);
}

/* 61 samples in batches of 26: the third step has 9 rows, most virtual nodes have none. */
static void ragged_and_empty_virtual_nodes(void **state)
{
	(void)state;
	seed = 2;
	compare(hd_rig_lenet, 26, 13, NULL, 6, 0);
}

/* Losses are said by the last stage, statistics by the stage that has the norm. */
static void each_stage_says_its_part_of_a_leaf(void **state)
{
	(void)state;
	seed = 3;
	compare(hd_rig_bn(), 16, 8, NULL, 4, 0);
}

/* Anywhere in a step: whoever waits for mail ends, the state is that of the beginning, and what was on its
 * way does no harm. */
static void a_fenced_step_ends_and_is_run_again(void **state)
{
	(void)state;
	seed = 4;
	compare(hd_rig_mlp, 26, 13, NULL, NKINDS, 20);
}

/* A fence that comes between two steps holds for those that begin later. */
static void a_fence_before_the_step_counts(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_diag diag = { "" };

	(void)state;
	seed = 5;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &kinds[2], 1);
	next_epoch(net);
	for (uint32_t m = 0; m < net->n; m++) {
		hd_dist_fence(net->at[m].worker, net->epoch + 1);
		hd_dist_fence(net->at[m].worker, net->epoch);     /* an older one takes nothing back */
	}
	begin(net);
	for (uint32_t m = 0; m < net->n; m++) {
		assert_int_equal(hd_dist_compute(net->at[m].worker, &diag), HD_E_STALE);
		hd_dist_abandon(net->at[m].worker);
	}
	next_epoch(net);
	step(net, "after a fence");
	close_net(net);
	free(net);
}

/* A worker that is in a later epoch is not touched by the fence of an earlier one. */
static void a_fence_of_an_earlier_epoch_does_nothing(void **state)
{
	struct net *net = malloc(sizeof *net);

	(void)state;
	seed = 6;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &kinds[2], 1);
	for (uint32_t m = 0; m < net->n; m++) {
		hd_dist_epoch(net->at[m].worker, 3);
		hd_dist_fence(net->at[m].worker, 3);
		hd_dist_fence(net->at[m].worker, 2);
	}
	step(net, "in the epoch of the fence");
	close_net(net);
	free(net);
}

/* Credits: however slow a reader is, at most HD_CREDITS buffers of a line are offered. */
static void no_more_buffers_are_offered_than_there_are_credits(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_dist_letter l;
	uint32_t n = 0;

	(void)state;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &kinds[0], 1);
	begin(net);
	while (hd_dist_mail_next(net->at[1].worker, &l)) {
		assert_false(l.send);
		assert_int_equal(l.kind, HD_XFER_ACTIVATIONS);
		assert_int_equal(l.vn, n++);
	}
	assert_int_equal(n, HD_CREDITS);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_dist_mail_arrived(net->at[1].worker, &l, &diag), HD_E_STALE);
	step(net, "after it was given up");
	close_net(net);
	free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_of_several_workers_have_the_bits_of_one_device),
		cmocka_unit_test(ragged_and_empty_virtual_nodes),
		cmocka_unit_test(each_stage_says_its_part_of_a_leaf),
		cmocka_unit_test(a_fenced_step_ends_and_is_run_again),
		cmocka_unit_test(a_fence_before_the_step_counts),
		cmocka_unit_test(a_fence_of_an_earlier_epoch_does_nothing),
		cmocka_unit_test(no_more_buffers_are_offered_than_there_are_credits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
