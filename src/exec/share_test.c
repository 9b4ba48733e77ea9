#include "exec/share.h"

#include "exec/testing.h"

/* Several workers in one process, bytes between them moved by memcpy in any order. The oracle is one device of
 * one worker that runs the same steps by hd_worker_step(): states, losses and norms are equal bit for bit. */

enum { MOST = 8, MOST_DEVICES = 3, MOST_RANKS = MOST * MOST_DEVICES, MOST_ROOTS = 64, MOST_BUCKETS = 16, BATCH = 3 };

static uint64_t seed;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static void shuffle(uint32_t *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = draw(i), x = at[i - 1];
		at[i - 1] = at[k];
		at[k] = x;
	}
}

struct member { struct hd_worker *worker; uint16_t id; uint32_t ndevices; };

struct cluster {
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_job *job;
	struct hd_task *task;
	struct hd_worker *one;                    /* the oracle */
	struct hd_step_record want;
	struct member at[MOST];                   /* the view, ascending ids */
	uint32_t n, nbuckets;
	uint16_t next_id;
};

/* One root of somebody's pass. */
struct root { uint32_t member, pass, i; struct hd_tnode name; };
struct roots { struct root at[MOST_ROOTS]; struct hd_tnode name[MOST_ROOTS]; uint32_t n; };

static struct hd_worker *worker_of(struct cluster *c, uint32_t ndevices, uint32_t nthreads, uint32_t wave)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = nthreads, .kernels = HD_KERNELS_PORTABLE, .wave = wave };
	struct hd_worker *worker = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_create(&worker, c->task, &spec, &diag) == HD_OK, "%s", diag.text);
	return worker;
}

static void open_cluster(struct cluster *c, const char *model, uint32_t batch, uint32_t vns, const char *more, uint64_t with_seed)
{
	struct hd_plan *plan;
	struct hd_diag diag = { "" };

	memset(c, 0, sizeof *c);
	seed = with_seed;
	hd_fs_real(&c->fs);
	hd_arena_init(&c->arena, 0);
	c->job = hd_rig_job(model, batch, vns, more, &c->arena);
	CHECK(hd_task_create(&c->task, c->job, &c->fs, &diag) == HD_OK, "%s", diag.text);
	c->one = worker_of(c, 1, 1, 1);
	c->nbuckets = hd_layout_nbuckets(&c->task->layout);
	assert_in_range(c->nbuckets, 1, MOST_BUCKETS);
	struct hd_plan_job pj = { .nvns = vns, .nchunks = c->task->layout.nchunks, .nstages = 1, .clips = true, .wave = 1 };
	plan = hd_arena_take(&c->arena, 1, sizeof *plan);
	CHECK(hd_plan_data(plan, &pj, 1, NULL, &c->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(c->one, plan, &diag) == HD_OK, "%s", diag.text);
}

static void close_cluster(struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		hd_worker_destroy(c->at[m].worker);
	hd_worker_destroy(c->one);
	hd_task_destroy(c->task);
	hd_arena_finish(&c->arena);
}

static struct member *add_member(struct cluster *c, uint32_t ndevices)
{
	struct member *m = &c->at[c->n++];

	*m = (struct member){ worker_of(c, ndevices, 1 + draw(2), draw(4)), c->next_id++, ndevices };
	return m;
}

static void remove_member(struct cluster *c, uint32_t m)
{
	hd_worker_destroy(c->at[m].worker);
	for (c->n--; m < c->n; m++)
		c->at[m] = c->at[m + 1];
}

/* A map over all devices: even runs, uneven runs, scattered, or most on one device. */
static const struct hd_plan *plan_of(struct cluster *c)
{
	uint32_t nvns = c->job->nvns, nranks = 0, *map = hd_arena_take(&c->arena, nvns, sizeof *map), how = draw(4);
	struct hd_plan_job pj = { .nvns = nvns, .nchunks = c->task->layout.nchunks, .nstages = 1, .clips = true, .wave = 1 };
	struct hd_plan *plan = hd_arena_take(&c->arena, 1, sizeof *plan);
	struct hd_diag diag = { "" };
	uint16_t worker[MOST_RANKS];

	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t d = 0; d < c->at[m].ndevices; d++)
			worker[nranks++] = c->at[m].id;
	for (uint32_t v = 0; v < nvns; v++)
		map[v] = how == 0 ? v * nranks / nvns : how == 1 ? v * v * nranks / (nvns * nvns) : how == 2 ? draw(nranks) :
			draw(5) ? nranks - 1 : v % nranks;
	CHECK(hd_plan_of_map(plan, &pj, nranks, map, &c->arena, &diag) == HD_OK, "%s", diag.text);
	memcpy(plan->worker, worker, nranks * sizeof *worker);
	return plan;
}

static void prepare(const struct cluster *c, const struct hd_plan *plan)
{
	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_share_view view = { plan, c->at[m].id, BATCH * MOST_ROOTS };
		struct hd_diag diag = { "" };
		CHECK(hd_share_prepare(c->at[m].worker, &view, &diag) == HD_OK, "%s", diag.text);
	}
}

static void adopt(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++) {
		assert_true(hd_share_prepared(c->at[m].worker));
		hd_share_adopt(c->at[m].worker);
	}
}

static void begin(struct cluster *c)
{
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(c->one, true, &c->want, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t m = 0; m < c->n; m++)
		CHECK(hd_share_begin(c->at[m].worker, true, &diag) == HD_OK, "%s", diag.text);
}

static void compute(const struct member *m)
{
	struct hd_diag diag = { "" };

	CHECK(hd_share_compute(m->worker, &diag) == HD_OK, "%s", diag.text);
}

static struct roots roots_of(const struct cluster *c)
{
	struct roots r = { .n = 0 };

	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t p = 0; p < hd_share_npasses(c->at[m].worker); p++)
			for (uint32_t i = 0; i < hd_share_nroots(c->at[m].worker, p); i++) {
				assert_true(r.n < MOST_ROOTS);
				r.name[r.n] = hd_share_root(c->at[m].worker, p, i);
				r.at[r.n] = (struct root){ m, p, i, r.name[r.n] };
				r.n++;
			}
	for (uint32_t i = r.n; i > 1; i--) {      /* roots come in any order */
		uint32_t k = draw(i);
		struct root x = r.at[i - 1];
		r.at[i - 1] = r.at[k];
		r.at[k] = x;
	}
	for (uint32_t i = 0; i < r.n; i++)
		r.name[i] = r.at[i].name;
	return r;
}

static uint64_t bytes_of(const struct cluster *c, uint32_t b) { return hd_layout_bucket(&c->task->layout, b).len * sizeof(float); }

/* Member m sums some buckets: roots of others come to its places. */
static void fold(const struct cluster *c, uint32_t m, const uint32_t *bucket, uint32_t n)
{
	const struct roots r = roots_of(c);
	struct hd_worker *w = c->at[m].worker;
	const float *operand[BATCH][MOST_ROOTS];
	struct hd_share_fold job[BATCH];
	struct hd_diag diag = { "" };

	CHECK(hd_share_operands(w, r.name, r.n, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < r.n; i++) {
			const float *from = hd_share_root_at(c->at[r.at[i].member].worker, r.at[i].pass, r.at[i].i, bucket[k]);
			operand[k][i] = from;
			if (r.at[i].member != m) {
				float *place = hd_share_place(w, k * MOST_ROOTS + i);
				memcpy(place, from, bytes_of(c, bucket[k]));
				operand[k][i] = place;
			}
		}
		job[k] = (struct hd_share_fold){ bucket[k], operand[k] };
	}
	CHECK(hd_share_fold(w, job, n, &diag) == HD_OK, "%s", diag.text);
}

/* The sum goes from one member to another, which may have it already (a sum that is sent again). */
static void send_sums(const struct cluster *c, uint32_t from, uint32_t to, const uint32_t *bucket, uint32_t n)
{
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < n; k++) {
		assert_true(hd_share_summed(c->at[from].worker, bucket[k]));
		if (from != to)
			memcpy(hd_share_sum_at(c->at[to].worker, bucket[k]), hd_share_sum_at(c->at[from].worker, bucket[k]), bytes_of(c, bucket[k]));
	}
	CHECK(hd_share_arrived(c->at[to].worker, bucket, n, &diag) == HD_OK, "%s", diag.text);
}

/* What is half received is no sum: rubbish at the place of an unsummed bucket must not matter. */
static void spoil(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t b = 0; b < c->nbuckets; b++)
			if (c->n > 1 && !hd_share_summed(c->at[m].worker, b))
				memset(hd_share_sum_at(c->at[m].worker, b), 0xab, bytes_of(c, b) / 2);
}

/* Owners sum their buckets in any order and publish them, one by one or several at a time; at most `limit` of them. */
static void exchange_sums(const struct cluster *c, uint32_t limit)
{
	uint32_t order[MOST_BUCKETS], members[MOST];

	shuffle(order, c->nbuckets);
	spoil(c);
	for (uint32_t i = 0, n; i < c->nbuckets && i < limit; i += n) {
		uint32_t owner = order[i] * c->n / c->nbuckets, most = 1 + draw(BATCH);
		for (n = 1; n < most && i + n < c->nbuckets && i + n < limit && order[i + n] * c->n / c->nbuckets == owner; n++)
			;
		fold(c, owner, order + i, n);
		shuffle(members, c->n);
		for (uint32_t k = 0; k < c->n; k++)
			if (members[k] != owner && (limit >= c->nbuckets || draw(2)))
				send_sums(c, owner, members[k], order + i, n);
	}
}

static void exchange_leaves(const struct cluster *c)
{
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < 2; k++)          /* twice: what comes again changes nothing */
		for (uint32_t m = 0; m < c->n; m++)
			for (uint32_t p = 0; p < hd_share_npasses(c->at[m].worker); p++) {
				struct hd_worker *w = c->at[m].worker;
				uint64_t len = hd_share_leaves_bytes(w, hd_share_nleaves(w, p));
				uint8_t *bytes = malloc(len);
				if (hd_share_nroots(w, p) == 0) {
					free(bytes);
					continue;
				}
				hd_share_leaves_get(w, p, bytes);
				for (uint32_t to = 0; to < c->n; to++)
					CHECK(hd_share_leaves_put(c->at[to].worker, bytes, len, &diag) == HD_OK, "%s", diag.text);
				free(bytes);
			}
}

static void finish(const struct cluster *c, const char *what)
{
	const struct hd_step_record *want = &c->want;
	struct hd_diag diag = { "" };
	uint64_t sums = 0;

	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_worker *w = c->at[m].worker;
		struct hd_step_record r;
		uint64_t mine = hd_share_sums_digest(w);
		CHECK(m == 0 || mine == sums, "%s, step %llu: members hold different sums", what, (unsigned long long)want->step);
		sums = mine;
		CHECK(hd_share_finish(w, &r, &diag) == HD_OK, "%s", diag.text);
		CHECK(memcmp(&r.loss_sum, &want->loss_sum, 8) == 0 && memcmp(&r.weight, &want->weight, 8) == 0 && memcmp(&r.correct, &want->correct, 8) == 0,
			"%s, step %llu: loss or hits", what, (unsigned long long)want->step);
		CHECK(memcmp(&r.gnorm, &want->gnorm, 8) == 0 && r.step == want->step && r.samples == want->samples, "%s, step %llu: norm", what,
			(unsigned long long)want->step);
		CHECK(r.has_digest && hd_hash_same(r.digest, want->digest), "%s, step %llu, member %u: state", what, (unsigned long long)want->step, m);
		CHECK(hd_hash_same(hd_worker_digest(w), want->digest), "%s, step %llu: the digest is not that of the state", what,
			(unsigned long long)want->step);
	}
}

static void step(struct cluster *c, const char *what)
{
	begin(c);
	for (uint32_t m = 0; m < c->n; m++)
		compute(&c->at[m]);
	exchange_leaves(c);
	exchange_sums(c, UINT32_MAX);
	finish(c, what);
}

static const char wide[] = "model: {use: builtin:mlp, args: {hidden: [700, 400]}}\ndata: {kind: synthetic, count: 61}\n";
static const char gpt[]  = "model: {use: builtin:gpt, args: {layers: 1, width: 128, heads: 2, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char resnet[] = "model: {use: builtin:resnet18, args: {stem: small, channels: 1, height: 9, width: 6, base: 16, classes: 5}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const struct { uint32_t batch, vns; } shapes[] = { { 26, 7 }, { 31, 8 }, { 26, 13 }, { 46, 16 } };
static const char *const optims[] = {
	"optim: {kind: adamw, schedule: {warmup: 2}}", "optim: {kind: momentum, lr: 0.05, weight_decay: 0.01, clip: 0.1}", "optim: {kind: lamb, lr: 0.01}",
	"optim: {kind: sgd, lr: 0.1}",
};

/* Every few steps another map; prepared while a step is under way or between two. */
static void workers_give_the_bits_of_one_device(void **state)
{
	const char *const models[] = { hd_rig_mlp, hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (size_t k = 0; k < sizeof models / sizeof *models; k++)
		for (uint32_t n = 1 + k % 2; n <= MOST; n += k > 1 ? 2 : 1) {
			struct cluster c;
			char what[64];
			open_cluster(&c, models[k], shapes[(n + k) % 4].batch, shapes[(n + k) % 4].vns, optims[(n + 2 * k) % 4], 100 * n + k);
			for (uint32_t m = 0; m < n; m++)
				add_member(&c, 1 + draw(n > 4 ? 2 : MOST_DEVICES));
			prepare(&c, plan_of(&c));
			adopt(&c);
			for (uint32_t s = 0; s < 4; s++) {
				snprintf(what, sizeof what, "model %zu, V %u, %u workers", k, c.job->nvns, n);
				if (s % 2)
					prepare(&c, plan_of(&c));
				step(&c, what);
				if (s % 2)
					adopt(&c);
			}
			close_cluster(&c);
		}
}

/* Deals leaves that nobody knows to the members, in runs. */
static void repair(const struct cluster *c)
{
	uint32_t lost[64], nlost = 0;
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < c->job->nvns; v++) {
		bool has = false;
		for (uint32_t m = 0; m < c->n; m++)
			for (uint32_t p = 0; p < hd_share_npasses(c->at[m].worker); p++) {
				const struct hd_worker *w = c->at[m].worker;
				has |= hd_share_nroots(w, p) > 0 && (p ? &w->repair[p - 1] : &w->share->work)->has[v];
			}
		if (!has)
			lost[nlost++] = v;
	}
	for (uint32_t m = 0, at = 0, n; m < c->n; m++, at += n) {
		uint32_t before = hd_share_npasses(c->at[m].worker), pass;
		n = m + 1 == c->n ? nlost - at : draw(nlost - at + 1);
		if (n == 0)
			continue;
		CHECK(hd_share_repair(c->at[m].worker, lost + at, n, &pass, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(pass, before);
		assert_int_equal(hd_share_nleaves(c->at[m].worker, pass), n);
	}
}

/* What somebody has summed is handed on; the rest is summed from the roots there are now. */
static void exchange_again(const struct cluster *c)
{
	spoil(c);
	for (uint32_t b = 0; b < c->nbuckets; b++) {
		uint32_t holder = 0;
		while (holder < c->n && !hd_share_summed(c->at[holder].worker, b))
			holder++;
		if (holder == c->n)
			fold(c, holder = draw(c->n), &b, 1);
		for (uint32_t m = 0; m < c->n; m++)
			if (!hd_share_summed(c->at[m].worker, b) || draw(2))
				send_sums(c, holder, m, &b, 1);
	}
}

/* A worker is lost before, while or after buckets are summed, and then another one in the repair; some had not begun to compute. */
static void a_loss_in_the_middle_of_a_step_changes_no_bit(void **state)
{
	const char *const models[] = { hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		struct cluster c;
		char what[64];
		size_t k = round % 5;
		open_cluster(&c, models[k], shapes[round % 4].batch, shapes[round % 4].vns, optims[round / 2 % 4], 7000 + round);
		for (uint32_t m = 0; m < 2 + round % 4; m++)
			add_member(&c, 1 + draw(2));
		prepare(&c, plan_of(&c));
		adopt(&c);
		snprintf(what, sizeof what, "round %u, model %zu, V %u", round, k, c.job->nvns);
		step(&c, what);
		for (uint32_t losses = 0; c.n > 1 && losses < 2; losses++) {
			bool complete = draw(3) > 0;
			begin(&c);
			for (uint32_t m = 0; m < c.n; m++)
				if (complete || draw(2))
					compute(&c.at[m]);
			if (complete) {
				exchange_leaves(&c);
				exchange_sums(&c, draw(c.nbuckets + 1));
			}
			remove_member(&c, draw(c.n));
			repair(&c);
			if (c.n > 1 && draw(2)) {
				remove_member(&c, draw(c.n));
				repair(&c);
			}
			exchange_leaves(&c);
			exchange_again(&c);
			prepare(&c, plan_of(&c));
			finish(&c, what);
			adopt(&c);
			step(&c, what);
		}
		close_cluster(&c);
	}
}

/* What a learner has; versions are those of the donor's boundaries. */
struct learner { struct hd_worker *worker; bool has[MOST_BUCKETS]; uint32_t nfrozen; bool rest; };

static void follow(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
{
	uint8_t scalars[HD_SHARE_SCALARS_BYTES], *bytes = malloc(hd_share_rest_bytes(donor));
	uint32_t bucket[MOST_BUCKETS], n = 0;
	struct hd_diag diag = { "" };

	hd_share_scalars_get(donor, scalars);
	for (uint32_t b = 0; b < c->nbuckets; b++)
		if (l->has[b]) {
			memcpy(hd_share_sum_at(l->worker, b), hd_share_sum_at(donor, b), bytes_of(c, b));
			bucket[n++] = b;
		}
	CHECK(hd_share_apply(l->worker, bucket, n, scalars, &diag) == HD_OK, "%s", diag.text);
	hd_share_rest_get(donor, bytes);
	CHECK(hd_share_rest_put(l->worker, bytes, hd_share_rest_bytes(donor), &diag) == HD_OK, "%s", diag.text);
	free(bytes);
}

/* Some snaps at this boundary; true: all are there. */
static bool learn(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
{
	uint32_t order[MOST_BUCKETS + 8], n = hd_share_nsnaps(donor), left = 0;
	struct hd_diag diag = { "" };

	assert_true(n <= MOST_BUCKETS + 8);
	shuffle(order, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = order[i], end;
		if (s < c->nbuckets && l->has[s])
			continue;
		if (draw(2)) {
			left++;
			continue;
		}
		for (uint32_t first = 0; first <= s; first = end) {
			end = hd_share_snap_end(donor, first);
			if (s < end) {
				s = first;
				break;
			}
		}
		for (; s < end; s++) {
			uint8_t *bytes = malloc(hd_share_snap_bytes(donor, s));
			hd_share_snap_get(donor, s, bytes);
			CHECK(hd_share_snap_put(l->worker, s, bytes, hd_share_snap_bytes(donor, s), &diag) == HD_OK, "%s", diag.text);
			if (s < c->nbuckets)
				l->has[s] = true;
			free(bytes);
		}
	}
	return left == 0;
}

/* A worker joins with other devices while the others go on; it learns bucket by bucket at different steps. */
static void who_learns_while_others_step_comes_to_the_same_state(void **state)
{
	const char *const models[] = { wide, gpt, resnet };

	(void)state;
	for (uint32_t round = 0; round < 8; round++) {
		struct cluster c;
		struct learner l = { 0 };
		struct hd_diag diag = { "" };
		char what[64];
		open_cluster(&c, models[round % 3], shapes[round % 4].batch, shapes[round % 4].vns, optims[round / 3 % 4], 31 * round);
		for (uint32_t m = 0; m < 1 + round % 3; m++)
			add_member(&c, 1 + draw(2));
		prepare(&c, plan_of(&c));
		adopt(&c);
		snprintf(what, sizeof what, "round %u, V %u", round, c.job->nvns);
		step(&c, what);
		step(&c, what);
		l.worker = worker_of(&c, 1 + round % 2, 1, 0);
		CHECK(hd_share_prepare(l.worker, &(struct hd_share_view){ NULL, HD_SHARE_NOBODY, 0 }, &diag) == HD_OK, "%s", diag.text);
		hd_share_adopt(l.worker);
		while (!learn(&c, &l, c.at[0].worker)) {
			step(&c, what);
			follow(&c, &l, c.at[0].worker);
		}
		step(&c, what);
		follow(&c, &l, c.at[0].worker);
		assert_int_equal(hd_worker_at(l.worker), hd_worker_at(c.at[0].worker));
		CHECK(hd_hash_same(hd_worker_digest(l.worker), c.want.digest), "%s: what was learned differs", what);
		assert_int_equal(hd_share_learned(l.worker, &diag), HD_OK);
		c.at[c.n++] = (struct member){ l.worker, c.next_id++, 1 + round % 2 };
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++)
			step(&c, what);
		close_cluster(&c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_give_the_bits_of_one_device),
		cmocka_unit_test(a_loss_in_the_middle_of_a_step_changes_no_bit),
		cmocka_unit_test(who_learns_while_others_step_comes_to_the_same_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
