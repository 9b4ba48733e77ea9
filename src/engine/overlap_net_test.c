#include "engine/overlap.h"

#include "engine/eager.h"
#include "engine/reading_int.h"
#include "engine/testing_faulty.h"
#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* Steps that overlap over several workers, in one process: digests, losses and norms are those of one device,
 * bit for bit, wherever the mail of two steps is and whatever ends them. */

static const char gpt[] =
	"model: {use: builtin:gpt, args: {layers: 4, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const char llama[] =
	"model: {use: builtin:llama, args: {layers: 4, width: 16, heads: 2, context: 8}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const struct { const char *model, *more; uint32_t batch, vns; } cases[] = {
	{ gpt,          "optim: {kind: adamw, clip: 0.5, update: 2bw}\n", 16, 8 },
	{ hd_rig_mlp,   "optim: {kind: momentum, lr: 0.05, update: 2bw}\n", 26, 9 },
	{ hd_rig_lenet, "optim: {kind: sgd, lr: 0.05, update: 2bw}\n", 26, 6 },
	/* two steps late */
	{ hd_rig_mlp,   "optim: {kind: adamw, update: vsync, cuts: auto:6}\n", 26, 4 },
	/* the last stage updates before the norm (eager.h); the last: two steps late, one and none */
	{ hd_rig_mlp,   "optim: {kind: adamw, clip: 0, on_nonfinite: skip, update: stash, cuts: auto:4}\n", 26, 9 },
	{ hd_rig_lenet, "optim: {kind: momentum, lr: 0.05, clip: 0, update: stash, cuts: auto:4}\n", 26, 6 },
	{ llama,        "optim: {kind: adamw, clip: 0, on_nonfinite: skip, update: stash, cuts: auto:7}\n", 16, 4 },
};
enum { NCASES = sizeof cases / sizeof *cases, MANY_STEPS = 7, EARLY = 4 };

/* The sample that is no number, or cannot be read; none. */
static uint64_t sick = UINT64_MAX;
static bool unreadable;

static void open_net(struct net *net, size_t c, uint32_t p, uint32_t each, enum hd_stage_keeps keeps)
{
	const struct hd_rig_kind kind = { "1f1b", p, 1, 1, keeps, 1 };
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, 1);
	if (sick != UINT64_MAX)
		spoil(&net->one, 1, sick, !unreadable, false);
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

static struct hd_overlap *of(const struct member *m) { return hd_worker_work(m->worker)->overlap; }
static uint32_t fore(const struct member *m, uint32_t d) { return of(m)->fore[d]; }
static uint32_t done(const struct member *m, uint32_t d) { return of(m)->done[d]; }

/* What the delays of the job make a rank wait for: the step at hand has to end before it. */
static bool needs_the_end(const struct member *m, uint32_t d, uint32_t nvns)
{
	const struct hd_ilist *list = &of(m)->list[1][1][d];
	const struct hd_ins *ins = &list->at[fore(m, d)];

	return fore(m, d) < list->len && (ins->flags & HD_INS_EAGER || ins->op == HD_INS_NORM ||
		((ins->op == HD_INS_F || ins->op == HD_INS_RA) && ins->vn >= nvns));
}

static void came_as_far_as_can_be(const struct net *net, size_t c)
{
	for (uint32_t m = 0; m < net->n; m++) {
		const struct member *at = &net->at[m];
		for (uint32_t d = 0; d < at->worker->spec.ndevices; d++)
			CHECK(done(at, d) == fore(at, d) && needs_the_end(at, d, cases[c].vns),
				"case %zu: device %u of worker %u has run %u of %u instructions", c, d, m,
				done(at, d), fore(at, d));
	}
}

/* Between its last instruction of a step and the end of that step no rank waits for anything but what the
 * delays of the job ask for: nothing is summed or finished yet, and all forwards of the next step are run. */
static void only_the_delays_of_a_job_hold_a_rank_up(void **state)
{
	struct net *net = calloc(1, sizeof *net);

	(void)state;
	assert_non_null(net);
	for (size_t c = 0; c < NCASES; c++)
		for (uint32_t p = 2; p <= 4 && 2 * (p - 1) <= cases[c].vns; p++) {
			seed = 60 + p;
			open_net(net, c, p, 1 + p % 2, HD_KEEPS_ALL);
			for (int t = 0; t < 4; t++) {
				net->goes_on = true;
				begin(net);
				assert_false(compute_all(net));
				if (t % 2 == 0)
					run_ahead(net, 0, false);
				if (t % 2 == 0)
					came_as_far_as_can_be(net, c);
				end_step(net, "run ahead");
				net->ahead = true;
				if (t == 1)
					run_ahead(net, 0, false);
				if (t == 1)
					came_as_far_as_can_be(net, c);
			}
			close_net(net);
		}
	free(net);
}

/* Called back anywhere, before a step ends and after it; also where samples are no numbers. */
static void how_far_it_came_changes_no_bit(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	uint32_t called = 0, far = 0, fenced = 0;

	(void)state;
	assert_non_null(net);
	for (uint64_t i = 0; i < 3 * NCASES; i++) {
		const size_t c = i % NCASES;
		const uint32_t p = 2 + i % 2;
		seed = 90 + i;
		sick = c == EARLY ? 7 * i : UINT64_MAX;
		open_net(net, c, p, 1 + (uint32_t)i % 3 % p, i % 4 ? HD_KEEPS_ALL : HD_KEEPS_INPUT);
		net->runs_ahead = true;
		for (int t = 0; t < MANY_STEPS; t++) {
			net->fence_after = draw(4) ? 0 : 1 + draw(30);
			step(net, "called back");
		}
		called += net->ncalled;
		far += net->nahead;
		fenced += net->nfenced;
		close_net(net);
	}
	sick = UINT64_MAX;
	free(net);
	CHECK(called > 3 * NCASES && far > NCASES && fenced > NCASES, "%u called back, %u fenced, %u not",
		called, fenced, far);
}

/* The step at hand ends as ever; the one that could not be begun says why, and is begun again. */
static void what_fails_ahead_is_said_by_its_own_step(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(net);
	seed = 5;
	open_net(net, 1, 3, 1, HD_KEEPS_ALL);
	sick = hd_sampler_at(&net->one.task->sampler, 1, 20);     /* of virtual node 6 */
	close_net(net);
	unreadable = true;
	open_net(net, 1, 3, 1, HD_KEEPS_ALL);
	unreadable = false;
	sick = UINT64_MAX;
	net->goes_on = true;
	begin(net);
	assert_false(compute_all(net));
	run_ahead(net, 1000, false);
	assert_false(hd_dist_has_ahead(net->at[0].worker));
	end_step(net, "with a sample of the next that cannot be read");
	net->ahead = true;
	begin(net);
	assert_int_equal(hd_dist_compute(net->at[0].worker, &diag), HD_E_IO);
	assert_non_null(strstr(diag.text, "cannot be read"));
	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_reading *reading = net->at[m].worker->reading;
		hd_prefetch_destroy(reading->prefetch);
		reading->prefetch = NULL;
		hd_dist_fence(net->at[m].worker, net->epoch + 1);
		hd_dist_abandon(net->at[m].worker);
	}
	cancel(net);
	mend(&net->one);
	next_epoch(net);
	for (int t = 0; t < 3; t++)
		step(net, "after that");
	close_net(net);
	free(net);
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

/* A sample that is no number: what was begun with the version that never was is done again, in another epoch,
 * and all bits are those of one device. Of `2bw` nothing is. */
static void a_step_that_is_not_finite_ends_its_epoch(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	uint32_t skipped = 0, vain = 0;

	(void)state;
	assert_non_null(net);
	for (uint64_t i = 0; i < 8; i++) {
		seed = 20 + i;
		sick = 7 * i;
		open_net(net, EARLY, 3, 1 + i % 2, HD_KEEPS_ALL);
		for (int t = 0; t < MANY_STEPS; t++) {
			net->fence_after = draw(3) ? 0 : 1 + draw(30);
			step(net, "not finite");
			skipped += net->want.skipped;
		}
		vain += net->nvain;
		close_net(net);
	}
	sick = UINT64_MAX;
	free(net);
	CHECK(vain > 3 && skipped >= vain, "%u skipped, %u in vain", skipped, vain);
}

/* All of what the last stage has brought on, in both vectors: as one device has it, that has not begun. */
static void began_with(const struct net *net, struct hd_worker *w, bool made)
{
	const struct hd_eager *e = hd_worker_work(w)->overlap->eager;
	const struct hd_chunk *all = net->one.task->layout.chunk;
	bool changed = false;

	for (uint32_t c = 0; c < net->one.task->layout.nchunks; c++)
		for (uint32_t k = 0; k <= hd_param_store_nslots(w->store); k++) {
			const enum hd_vector vector = (enum hd_vector)(HD_VEC_PARAMS + k);
			const uint64_t bytes = all[c].len * sizeof(float);
			float *want = malloc(bytes), *got = malloc(bytes);
			assert_true(want && got);
			hd_param_store_read(net->one.worker->store, vector, all[c].at, all[c].len, want);
			hd_eager_read(w, vector, all[c].at, all[c].len, (uint8_t *)got);
			assert_memory_equal(want, got, bytes);
			hd_param_store_read(w->store, vector, all[c].at, all[c].len, got);
			changed |= memcmp(want, got, bytes) != 0;
			free(want);
			free(got);
		}
	assert_true(e->made == made && changed == made);
}

/* What another thread fetches while devices compute. */
struct reader {
	struct hd_thread thread;
	const struct net *net;
	struct hd_worker *worker;
	_Atomic bool over;
	uint32_t nreads, nother;          /* bucket and vector; with other bits than the step began with */
};

static void read_all(struct reader *r, float *want, float *got)
{
	const struct hd_layout *layout = &r->net->one.task->layout;
	const struct hd_param_store *one = r->net->one.worker->store;

	for (uint32_t b = 0; b < r->net->nbuckets; b++)
		for (int v = HD_VEC_PARAMS; v < HD_VECS; v++) {
			const enum hd_vector vector = (enum hd_vector)v;
			const struct hd_chunk run = hd_layout_bucket(layout, b);
			if (vector == HD_VEC_BUFFERS || !hd_param_store_elems(one, vector))
				continue;
			hd_eager_read(r->worker, vector, run.at, run.len, (uint8_t *)got);
			/* earlier ones mean something where a parameter is late */
			if (vector > HD_VEC_BUFFERS)
				continue;
			hd_param_store_read(one, vector, run.at, run.len, want);
			r->nreads++;
			r->nother += memcmp(want, got, run.len * sizeof *want) != 0;
		}
}

static void read_on(void *user)
{
	struct reader *r = user;
	float *want = malloc(HD_BUCKET_BYTES), *got = malloc(HD_BUCKET_BYTES);

	do {
		read_all(r, want, got);
	} while (!r->over);
	free(want);
	free(got);
}

/* Whenever it reads, it reads what the step began with. */
static void others_read_while_the_last_stage_updates(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	struct reader reader = { 0 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(net);
	for (size_t c = EARLY; c < NCASES; c++) {
		seed = c;
		open_net(net, c, 3, 1, HD_KEEPS_ALL);
		for (int t = 0; t < MANY_STEPS; t++) {
			net->goes_on = true;
			begin(net);
			reader = (struct reader){ .net = net, .worker = net->at[2].worker };
			CHECK(hd_thread_start(&reader.thread, "reader", -1, read_on, &reader, &diag) == HD_OK,
				"%s", diag.text);
			assert_false(compute_all(net));
			reader.over = true;
			hd_thread_join(&reader.thread);
			CHECK(reader.nreads && !reader.nother, "%u of %u have other bits", reader.nother,
				reader.nreads);
			assert_true(hd_worker_work(net->at[2].worker)->overlap->eager->made);
			end_step(net, "read meanwhile");
			net->ahead = true;
		}
		close_net(net);
	}
	free(net);
}

static void others_read_what_the_step_began_with(void **state)
{
	struct net *net = calloc(1, sizeof *net);
	uint32_t made = 0;

	(void)state;
	assert_non_null(net);
	for (size_t c = EARLY; c < NCASES; c++) {
		seed = c;
		open_net(net, c, 3, 1, HD_KEEPS_ALL);
		for (int t = 0; t < MANY_STEPS; t++) {
			net->goes_on = t % 3 != 0;
			for (int again = t % 2; again >= 0; again--) {
				begin(net);
				assert_false(compute_all(net));
				for (uint32_t m = 0; m < net->n; m++)
					began_with(net, net->at[m].worker, m == 2 && net->goes_on);
				made += net->goes_on;
				for (uint32_t m = 0; m < net->n && again; m++)
					hd_dist_fence(net->at[m].worker, net->epoch + 1);
				for (uint32_t m = 0; m < net->n && again; m++)
					hd_dist_abandon(net->at[m].worker);
				if (again)
					cancel(net);
				for (uint32_t m = 0; m < net->n && again; m++)
					began_with(net, net->at[m].worker, false);
				if (again)
					next_epoch(net);
			}
			/* a worker that saves inside the step updates with the others */
			if (t % 4 == 2)
				run_ahead(net, 4, false);
			for (uint32_t m = 0; m < net->n && t % 4 == 2; m++) {
				hd_dist_as_begun(net->at[m].worker);
				began_with(net, net->at[m].worker, false);
			}
			/* what it would read comes with the update */
			assert_true(t % 4 != 2 || !hd_dist_has_ahead(net->at[2].worker));
			end_step(net, "read on the way");
			net->ahead = net->goes_on;
		}
		close_net(net);
	}
	free(net);
	assert_true(made > NCASES);
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
		cmocka_unit_test(only_the_delays_of_a_job_hold_a_rank_up),
		cmocka_unit_test(how_far_it_came_changes_no_bit),
		cmocka_unit_test(what_fails_ahead_is_said_by_its_own_step),
		cmocka_unit_test(what_was_begun_is_forgotten_with_its_epoch),
		cmocka_unit_test(a_step_that_is_not_finite_ends_its_epoch),
		cmocka_unit_test(others_read_what_the_step_began_with),
		cmocka_unit_test(others_read_while_the_last_stage_updates),
		cmocka_unit_test(a_probe_between_two_steps_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
