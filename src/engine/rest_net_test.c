#include "engine/rest.h"

#include "engine/shadow.h"
#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* A worker is lost within a step that several run together, over a wire that delivers in any order: the
 * others are stopped by a fence and go on with what is left. The step has the bits of one device, and of the
 * stages that live nothing is computed twice. */

static const char small[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 30}\n";
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 4, heads: 1, context: 2, vocab: 8, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 30}\n";

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 4, 1, 1, HD_KEEPS_ALL, 1 }, { "1f1b", 4, 1, 1, HD_KEEPS_ALL, 1 },
	{ "1f1b", 3, 1, 1, HD_KEEPS_INPUT, 1 }, { "1f1b", 2, 1, 2, HD_KEEPS_ALL, 1 },
	{ "zb-h1", 3, 1, 1, HD_KEEPS_ALL, 1 }, { "gpipe", 3, 1, 1, HD_KEEPS_AWAY, 1 },
	{ "1f1b", 2, 1, 1, HD_KEEPS_ALL, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds, MOST_STAGES = 4 };

/* Forwards of stages, not of shadows. */
static _Atomic uint32_t forwards[MOST_STAGES][HD_RIG_VNS];

static void look(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	(void)rank;
	(void)bind;
	if (!(ins->flags & HD_INS_SHADOW))
		forwards[ins->stage][ins->vn]++;
}

struct progress { uint32_t at[HD_MAX_RANKS]; uint8_t arrived[MOST_STAGES * HD_RIG_VNS];
	bool lost[HD_MAX_RANKS]; };
#define LOSS(p) ((struct hd_dist_loss){ .at = (p)->at, .arrived = (p)->arrived, .lost = (p)->lost })

static bool standby;

static void open_net(struct net *net, const char *model, const char *more, const struct hd_rig_kind *kind,
	enum hd_redundancy mode)
{
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	memset(forwards, 0, sizeof forwards);
	hd_rig_open(&net->one, model, 16, 8, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK, "%s: %s", kind->name, diag.text);
	CHECK(hd_rig_shadowed(&net->plan, mode, &net->one.arena, &diag) == HD_OK, "%s: %s", kind->name,
		diag.text);
	add_workers(net, kind->p * kind->d, 1, kind->name);
	if (standby)
		add_worker(net, 1, "without a rank");
}

static void progress_of(const struct net *net, uint32_t victim, struct progress *p)
{
	uint8_t bits[MOST_STAGES * HD_RIG_VNS];
	struct hd_diag diag = { "" };

	memset(p, 0, sizeof *p);
	for (uint32_t m = 0; m < net->n; m++) {
		if (m == victim)
			continue;
		CHECK(hd_dist_stopped(net->at[m].worker, p->at, bits, &diag) == HD_OK, "%s", diag.text);
		for (uint32_t i = 0; i < net->plan.nstages * net->plan.nvns; i++)
			p->arrived[i] |= bits[i];
	}
	for (uint32_t r = 0; r < net->plan.nranks; r++)
		p->lost[r] = net->plan.worker[r] == victim;
}

/* What it says of virtual nodes may have gone out before it was lost, to some. */
static void say_leaves(struct net *net, uint32_t from)
{
	struct hd_worker *w = net->at[from].worker;
	const uint64_t len = hd_dist_leaves_bytes(w, hd_dist_nleaves(w, 0));
	uint8_t *bytes = malloc(len);
	struct hd_diag diag = { "" };

	assert_non_null(bytes);
	hd_dist_leaves_get(w, 0, bytes);
	for (uint32_t m = 0; m < net->n; m++)
		if (m != from && draw(4))
			CHECK(hd_dist_leaves_put(net->at[m].worker, (uint16_t)from, bytes, len, &diag) ==
				HD_OK, "%s", diag.text);
	free(bytes);
}

/* Everything that a lost worker had is gone: it is a process of its own. False: all had computed. */
static bool lose(struct net *net, uint32_t victim, struct progress *p)
{
	begin(net);
	const bool fenced = compute_all(net);
	const bool stale = fenced && is_stale(net);

	if (!net->at[victim].err)
		say_leaves(net, victim);
	progress_of(net, victim, p);
	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_dist_letter none;
		assert_true(m == victim || !hd_dist_mail_next(net->at[m].worker, &none));
	}
	hd_dist_abandon(net->at[victim].worker);
	net->at[victim].gone = true;
	net->epoch++;
	net->fence_after = 0;
	return stale;
}

static void go_on(struct net *net, const struct progress *p, enum hd_redundancy mode, const char *what)
{
	struct hd_diag diag = { "" };
	const uint32_t vns = net->plan.nvns / (net->plan.nranks / net->plan.nstages);
	uint32_t redone[MOST] = { 0 }, made = 0;

	for (uint32_t m = 0; m < net->n; m++)
		CHECK(net->at[m].gone || hd_dist_rest(net->at[m].worker, net->epoch, &LOSS(p),
			&redone[m], &diag) == HD_OK, "%s: worker %u: %s", what, m, diag.text);
	assert_false(compute_all(net));
	for (uint32_t m = 0; m < net->n; m++)
		CHECK(net->at[m].gone || net->at[m].err == HD_OK, "%s: worker %u: %d", what, m,
			(int)net->at[m].err);
	for (uint32_t r = 0; r < net->plan.nranks; r++) {
		const uint32_t of = r / net->plan.nstages * net->plan.nstages, m = net->plan.worker[r];
		const bool heir = p->lost[of + (r + 1) % net->plan.nstages];
		made += redone[m];
		CHECK(heir || !redone[m], "%s: rank %u is no heir, and redoes %u", what, r, redone[m]);
	}
	/* the lost rank's sums are gone; the gradients that its shadow has made are not */
	CHECK(mode == HD_REDUNDANCY_FULL ? made <= vns : made == vns, "%s: %u redone of %u", what, made, vns);
}

/* Of the lost stage again at most what was done of it, and of the others nothing. */
static void look_at_forwards(const struct net *net, uint32_t victim, const char *what)
{
	for (uint32_t s = 0; s < net->plan.nstages; s++)
		for (uint32_t v = 0; v < net->plan.nvns; v++) {
			const uint32_t r = net->plan.map[v] / net->plan.nstages * net->plan.nstages + s;
			const uint32_t most = net->plan.worker[r] == victim ? 2 : 1;
			CHECK(forwards[s][v] <= most, "%s: F%u.%u was run %u times", what, s, v,
				forwards[s][v]);
		}
}

/* The workers that are left, in a plan of their own. */
static void another_step(struct net *net, const char *what)
{
	const struct hd_rig_kind kind = { "1f1b", net->n - 1, 1, 1, HD_KEEPS_ALL, 1 };
	struct hd_diag diag = { "" };
	uint32_t r = 0;

	CHECK(hd_rig_staged(net->one.worker, net->one.task, &kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK, "%s", diag.text);
	for (uint32_t m = 0; m < net->n; m++)
		if (!net->at[m].gone)
			net->plan.worker[r++] = (uint16_t)m;
	for (uint32_t m = 0; m < net->n; m++) {
		const struct hd_dist_view view = { .plan = &net->plan, .worker = (uint16_t)m,
			.nplaces = 2 * MOST_ROOTS };
		if (net->at[m].gone)
			continue;
		CHECK(hd_dist_prepare(net->at[m].worker, &view, &diag) == HD_OK, "%s: %s", what, diag.text);
		hd_dist_adopt(net->at[m].worker);
	}
	begin(net);
	assert_false(compute_all(net));
	end_step(net, what);
}

/* A step of a kind sends some 90 letters: how many lie between two losses. With sanitizers there are half as
 * many losses. */
enum { EVERY = SANITIZED ? 96 : 48 };

/* How many steps a fence has met within. */
static uint32_t lose_each(const char *model, const char *more, size_t nkinds, enum hd_redundancy mode,
	uint32_t every)
{
	struct net *net = malloc(sizeof *net);
	uint32_t cases = 0;

	assert_non_null(net);
	for (size_t k = 0; k < nkinds; k++)
		for (uint32_t victim = 0; victim < kinds[k].p * kinds[k].d; victim++)
			for (uint32_t after = 1 + draw(every); after < 90; after += 1 + draw(every)) {
				static struct progress p;
				char what[160];
				snprintf(what, sizeof what, "%s p %u d %u %s: worker %u after %u letters",
					kinds[k].name, kinds[k].p, kinds[k].d, hd_redundancy_names[mode],
					victim, after);
				open_net(net, model, more, &kinds[k], mode);
				step(net, what);
				memset(forwards, 0, sizeof forwards);
				for (uint32_t m = 0; m < net->n; m++)
					hd_worker_work(net->at[m].worker)->pipe->watch = look;
				net->fence_after = after;
				const bool stale = lose(net, victim, &p);
				go_on(net, &p, mode, what);
				look_at_forwards(net, victim, what);
				end_step(net, what);
				if (net->n > 2)
					another_step(net, what);
				cases += stale;
				close_net(net);
			}
	free(net);
	return cases;
}

static void any_worker_may_be_lost_after_any_letter(void **state)
{
	(void)state;
	seed = 1;
	uint32_t n = lose_each(small, "optim: {kind: adamw, clip: 0.5}\n", NKINDS, HD_REDUNDANCY_EAGER,
		EVERY);
	n += lose_each(small, "optim: {kind: momentum, lr: 0.05}\n", NKINDS, HD_REDUNDANCY_FULL, EVERY);
	n += lose_each(small, "optim: {kind: adam}\n", NKINDS, HD_REDUNDANCY_LAZY, EVERY);
	CHECK(n >= (SANITIZED ? 15 : 30), "%u losses within a step", n);
}

static void a_worker_without_a_rank_goes_on_too(void **state)
{
	(void)state;
	seed = 5;
	standby = true;
	uint32_t n = lose_each(small, "optim: {kind: adam}\n", 3, HD_REDUNDANCY_EAGER, 48);
	standby = false;
	CHECK(n >= 2, "%u losses within a step", n);
}

static void tied_weights_and_drawn_noise(void **state)
{
	(void)state;
	seed = 2;
	uint32_t n = lose_each(tied, "optim: {kind: lamb}\n", 2, HD_REDUNDANCY_EAGER, 80);
	n += lose_each(tied, "optim: {kind: adam}\n", 2, HD_REDUNDANCY_FULL, 80);
	CHECK(n >= 5, "%u losses within a step", n);
}

/* What cannot be gone on with is begun again: no parameter has changed. */
static void a_step_that_is_refused_is_begun_again(void **state)
{
	struct net *net = malloc(sizeof *net);
	static struct progress p;
	struct hd_diag diag = { "" };
	uint32_t redone;

	(void)state;
	assert_non_null(net);
	seed = 3;
	open_net(net, small, NULL, &kinds[1], HD_REDUNDANCY_EAGER);
	begin(net);
	net->fence_after = 12;
	assert_true(compute_all(net) && is_stale(net));
	progress_of(net, HD_NONE, &p);
	p.lost[1] = p.lost[2] = true;     /* the one held the shadow of the other */
	for (uint32_t m = 0; m < net->n; m++) {
		assert_int_equal(hd_dist_rest(net->at[m].worker, 1, &LOSS(&p), &redone, &diag),
			HD_E_REFUSED);
		hd_dist_abandon(net->at[m].worker);
	}
	CHECK(strstr(diag.text, "ranks 1 and 2 are lost"), "%s", diag.text);
	next_epoch(net);
	net->fence_after = 0;
	step(net, "begun again");
	close_net(net);
	free(net);
}

static void a_step_is_gone_on_with_once(void **state)
{
	struct net *net = malloc(sizeof *net);
	static struct progress p;
	uint8_t bits[MOST_STAGES * HD_RIG_VNS];
	struct hd_diag diag = { "" };
	uint32_t redone;

	(void)state;
	assert_non_null(net);
	seed = 4;
	open_net(net, small, NULL, &kinds[1], HD_REDUNDANCY_FULL);
	net->fence_after = 12;
	assert_true(lose(net, 2, &p));
	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_worker *w = net->at[m].worker;
		if (m == 2)
			continue;
		CHECK(hd_dist_rest(w, 1, &LOSS(&p), &redone, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(hd_dist_stopped(w, p.at, bits, &diag), HD_E_REFUSED);
		CHECK(strstr(diag.text, "lost in this step before"), "%s", diag.text);
		hd_dist_abandon(w);
		assert_int_equal(hd_dist_stopped(w, p.at, bits, &diag), HD_E_REFUSED);
		diag.text[0] = '\0';
	}
	close_net(net);
	free(net);
}

/* Of lists without redundancy nothing was kept. */
static void what_was_not_kept_is_not_sent_again(void **state)
{
	struct net *net = malloc(sizeof *net);
	static struct progress p;
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(net);
	open_net(net, small, NULL, &kinds[1], HD_REDUNDANCY_NONE);
	begin(net);
	assert_int_equal(hd_dist_stopped(net->at[0].worker, p.at, p.arrived, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "ranks keep what they send"), "%s", diag.text);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	close_net(net);
	free(net);
}

/* ---- rows */

static struct { const struct hd_reader_ops *under; _Atomic uint32_t n; } counted;

static enum hd_err read_counted(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	counted.n++;
	return counted.under->read(set, split, index, out, diag);
}

static void end_counted(struct hd_dataset *set) { counted.under->destroy(set); }

static void reread(struct hd_worker *w, bool ahead)
{
	struct hd_diag diag = { "" };

	hd_reading_spare(w, ahead);
	CHECK(hd_worker_reread(w, &diag) == HD_OK, "%s", diag.text);
}

/* Without a loss: the first stage its samples, the last one its labels, and the one device of the test. */
static void lazy_reads_what_its_own_stages_read(void **state)
{
	static const struct hd_reader_ops ops = { .name = "counted", .about = "another reader, which counts",
		.read = read_counted, .destroy = end_counted };
	static const uint32_t rows[2] = { 16, 14 };
	struct net *net = malloc(sizeof *net);

	(void)state;
	assert_non_null(net);
	seed = 6;
	open_net(net, small, NULL, &kinds[1], HD_REDUNDANCY_LAZY);
	struct hd_dataset *data = net->one.task->data;
	counted.under = data->ops;
	data->ops = &ops;
	data->at_hand = true;
	for (uint32_t m = 0; m < net->n; m++)
		reread(net->at[m].worker, false);
	reread(net->one.worker, false);
	for (int i = 0; i < 2; i++) {
		counted.n = 0;
		step(net, "lazy");
		CHECK(counted.n == 3 * rows[i], "%u rows were read, of %u", counted.n, rows[i]);
	}
	data->ops = counted.under;
	close_net(net);
	free(net);
}

/* The heir of a lost stage reads what its worker has not read, with threads that read ahead, too. */
static void an_heir_reads_beside_readers_that_are_ahead(void **state)
{
	struct net *net = malloc(sizeof *net);
	static struct progress p;

	(void)state;
	assert_non_null(net);
	seed = 7;
	for (uint32_t victim = 0; victim < 4; victim++) {
		net->fence_after = 0;
		open_net(net, small, NULL, &kinds[1], HD_REDUNDANCY_LAZY);
		for (uint32_t m = 0; m < net->n; m++)
			reread(net->at[m].worker, true);
		for (int i = 0; i <= HD_PREFETCH_STEPS; i++)
			step(net, "ahead");
		net->fence_after = 12;
		(void)lose(net, victim, &p);
		go_on(net, &p, HD_REDUNDANCY_LAZY, "ahead");
		end_step(net, "ahead");
		close_net(net);
	}
	free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_worker_may_be_lost_after_any_letter),
		cmocka_unit_test(a_worker_without_a_rank_goes_on_too),
		cmocka_unit_test(tied_weights_and_drawn_noise),
		cmocka_unit_test(a_step_that_is_refused_is_begun_again),
		cmocka_unit_test(a_step_is_gone_on_with_once),
		cmocka_unit_test(what_was_not_kept_is_not_sent_again),
		cmocka_unit_test(lazy_reads_what_its_own_stages_read),
		cmocka_unit_test(an_heir_reads_beside_readers_that_are_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
