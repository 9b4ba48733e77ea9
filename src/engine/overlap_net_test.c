#include "engine/overlap.h"

#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* Steps that overlap over several workers, in one process: digests, losses and norms are those of one device,
 * bit for bit, wherever the mail of two steps is and whatever ends them. */

static const char gpt[] =
	"model: {use: builtin:gpt, args: {layers: 4, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const struct { const char *model, *more; uint32_t batch, vns; } cases[] = {
	{ gpt,          "optim: {kind: adamw, clip: 0.5, update: 2bw}\n", 16, 8 },
	{ hd_rig_mlp,   "optim: {kind: momentum, lr: 0.05, update: 2bw}\n", 26, 9 },
	{ hd_rig_lenet, "optim: {kind: sgd, lr: 0.05, update: 2bw}\n", 26, 6 },
	/* two steps late */
	{ hd_rig_mlp,   "optim: {kind: adamw, update: vsync, cuts: auto:6}\n", 26, 4 },
};
enum { NCASES = sizeof cases / sizeof *cases, MANY_STEPS = 7 };

static void open_net(struct net *net, size_t c, uint32_t p, uint32_t each, enum hd_stage_keeps keeps)
{
	const struct hd_rig_kind kind = { "1f1b", p, 1, 1, keeps, 1 };
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, &kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK, "%s", diag.text);
	net->plan.overlap = net->overlaps = true;
	add_workers(net, p, each, "overlap");
	for (uint32_t m = 0; m < net->n; m++)
		assert_non_null(hd_worker_work(net->at[m].worker)->overlap);
}

/* What all runs of a test came to: steps that were begun ahead; that a fence ended. */
static uint32_t ahead, stale;

/* `fences`: after at most so many letters of a step; 0: none. */
static void run(size_t c, uint32_t p, uint32_t each, enum hd_stage_keeps keeps, uint32_t fences)
{
	struct net *net = calloc(1, sizeof *net);
	char what[80];

	assert_non_null(net);
	snprintf(what, sizeof what, "case %zu, %u stages, %u a worker, fences %u", c, p, each, fences);
	open_net(net, c, p, each, keeps);
	for (int i = 0; i < MANY_STEPS; i++) {
		ahead += net->ahead;
		net->fence_after = fences && draw(2) ? 1 + draw(fences) : 0;
		step(net, what);
	}
	stale += net->stale;
	close_net(net);
	free(net);
}

static void they_give_the_bits_of_one_device(void **state)
{
	(void)state;
	seed = 1;
	ahead = 0;
	for (size_t c = 0; c < NCASES; c++)
		for (uint32_t p = 2; p <= 4 && 2 * (p - 1) <= cases[c].vns; p++)
			for (uint32_t each = 1; each < p; each++)
				run(c, p, each, (c + p) % 3 ? HD_KEEPS_ALL : HD_KEEPS_INPUT, 0);
	assert_true(ahead > 2 * NCASES * MANY_STEPS);
}

/* Anywhere in a step, also where workers have begun the next one, and between two. */
static void what_was_begun_is_forgotten_with_its_epoch(void **state)
{
	(void)state;
	stale = 0;
	for (uint64_t i = 2; i < 8; i++) {
		seed = i;
		run(i % NCASES, 3, 1, HD_KEEPS_ALL, 40);
		run(i % 3, 3, 2, HD_KEEPS_ALL, 20);
	}
	assert_true(stale);
}

/* The same bits as on one device. */
static void probe(struct net *net, uint32_t m, uint32_t vn)
{
	struct hd_hash want, got;
	struct hd_diag diag = { "" };

	CHECK(hd_dist_probe(net->one.worker, vn, &want, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_probe(net->at[m].worker, vn, &got, &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_hash_same(want, got));
}

/* What was begun of the step to come lies in flat vectors between the two. */
static void a_probe_between_two_steps_changes_nothing(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	uint32_t probed = 0;

	(void)state;
	assert_non_null(net);
	seed = 1;
	for (size_t c = 0; c < 3; c++)
		for (uint32_t each = 1; each < 4; each += 2) {
			open_net(net, c, 4, each, HD_KEEPS_ALL);
			for (uint32_t i = 0; i < MANY_STEPS; i++) {
				step(net, "with probes");
				for (uint32_t m = 0; m < net->n && net->ahead; m++, probed++)
					probe(net, m, i % cases[c].vns);
			}
			close_net(net);
		}
	assert_true(probed > MANY_STEPS);
	free(net);
}

/* Of even steps and of odd ones. */
static void letters_of_two_steps_have_names_of_their_own(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	struct hd_dist_letter l[4 * MOST_VNS];

	(void)state;
	assert_non_null(net);
	open_net(net, 0, 2, 1, HD_KEEPS_ALL);
	const size_t n = hd_dist_mail_list(net->at[0].worker, 1, true, l);
	assert_int_equal(n, 2 * cases[0].vns);
	assert_int_equal(hd_dist_nshadows(net->at[0].worker), 2);
	for (uint32_t i = 0; i < n; i++)
		assert_true(l[i].stage == (i < n / 2 ? 1 : 3) && l[i].vn == i % cases[0].vns);
	close_net(net);
	free(net);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_of_two_steps_have_names_of_their_own),
		cmocka_unit_test(they_give_the_bits_of_one_device),
		cmocka_unit_test(what_was_begun_is_forgotten_with_its_epoch),
		cmocka_unit_test(a_probe_between_two_steps_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
