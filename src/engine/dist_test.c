#include "engine/dist.h"

#include <math.h>

#include "engine/testing.h"

/* Several workers in one process, bytes between them moved by memcpy in any order. The oracle is one device
 * of one worker that runs the same steps by hd_worker_step(): states, losses and norms are equal bit for
 * bit. */

enum { MOST = 8, MOST_DEVICES = 3, MOST_RANKS = MOST * MOST_DEVICES, MOST_ROOTS = 64, MOST_BUCKETS = 16,
	BATCH = 3, MOST_PIECES = 2 };

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

static uint32_t slices = 1;               /* of the next cluster's job */

struct dist_member { struct hd_worker *worker; uint16_t id; uint32_t ndevices; };

struct cluster {
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_job *job;
	struct hd_task *task;
	struct hd_worker *one;                    /* the oracle */
	struct hd_step_record want;
	struct dist_member at[MOST];                   /* the view, ascending ids */
	uint32_t n, nbuckets;
	uint16_t next_id;
};

/* One root of somebody's pass. */
struct root { uint32_t member, pass, i; struct hd_tnode name; };
struct roots { struct root at[MOST_ROOTS]; struct hd_tnode name[MOST_ROOTS]; uint32_t n; };

static struct hd_worker *worker_of(struct cluster *c, uint32_t ndevices, uint32_t nthreads, uint32_t wave)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = nthreads,
		.kernels = HD_KERNELS_PORTABLE, .wave = wave };
	struct hd_worker *worker = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_create(&worker, c->task, &spec, &diag) == HD_OK, "%s", diag.text);
	return worker;
}

static void open_cluster(struct cluster *c, const char *model, uint32_t batch, uint32_t vns, const char *more,
	uint64_t with_seed)
{
	struct hd_plan *plan;
	struct hd_diag diag = { "" };

	memset(c, 0, sizeof *c);
	seed = with_seed;
	hd_fs_real(&c->fs);
	hd_arena_init(&c->arena, 0);
	c->job = hd_rig_job(model, batch, vns, more, &c->arena);
	c->job->value[HD_JOB_SLICES].i = slices;
	CHECK(hd_task_create(&c->task, c->job, &c->fs, &diag) == HD_OK, "%s", diag.text);
	c->one = worker_of(c, 1, 1, 1);
	c->nbuckets = hd_layout_nbuckets(&c->task->layout);
	assert_in_range(c->nbuckets, 1, MOST_BUCKETS);
	struct hd_plan_job pj = hd_plan_job_whole(vns, c->task->layout.nchunks);
	pj.lockstep = hd_worker_lockstep(c->one);
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

static struct dist_member *add_member(struct cluster *c, uint32_t ndevices)
{
	struct dist_member *m = &c->at[c->n++];

	*m = (struct dist_member){ worker_of(c, ndevices, 1 + (draw(4) == 0), draw(4)), c->next_id++,
		ndevices };
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
	uint32_t nvns = c->job->nvns, nranks = 0, *map = hd_arena_take(&c->arena, nvns, sizeof *map),
		how = draw(4);
	struct hd_plan_job pj = hd_plan_job_whole(nvns, c->task->layout.nchunks);
	struct hd_plan *plan = hd_arena_take(&c->arena, 1, sizeof *plan);
	struct hd_diag diag = { "" };
	uint16_t worker[MOST_RANKS];

	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t d = 0; d < c->at[m].ndevices; d++)
			worker[nranks++] = c->at[m].id;
	for (uint32_t v = 0; v < nvns; v++)
		map[v] = how == 0 ? v * nranks / nvns : how == 1 ? v * v * nranks / (nvns * nvns) : how == 2 ?
			draw(nranks) :
			draw(5) ? nranks - 1 : v % nranks;
	CHECK(hd_plan_of_map(plan, &pj, nranks, map, &c->arena, &diag) == HD_OK, "%s", diag.text);
	memcpy(plan->worker, worker, nranks * sizeof *worker);
	return plan;
}

static void prepare(const struct cluster *c, const struct hd_plan *plan)
{
	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_dist_view view = { plan, c->at[m].id, BATCH * MOST_ROOTS, 0, NULL };
		struct hd_diag diag = { "" };
		CHECK(hd_dist_prepare(c->at[m].worker, &view, &diag) == HD_OK, "%s", diag.text);
	}
}

static void adopt(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++) {
		assert_true(hd_dist_prepared(c->at[m].worker));
		hd_dist_adopt(c->at[m].worker);
	}
}

static void begin(struct cluster *c)
{
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(c->one, true, &c->want, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t m = 0; m < c->n; m++)
		CHECK(hd_dist_begin(c->at[m].worker, true, &diag) == HD_OK, "%s", diag.text);
}

static void compute(const struct dist_member *m)
{
	struct hd_diag diag = { "" };

	CHECK(hd_dist_compute(m->worker, &diag) == HD_OK, "%s", diag.text);
}

static struct roots roots_of(const struct cluster *c)
{
	struct roots r = { .n = 0 };

	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t p = 0; p < hd_dist_npasses(c->at[m].worker); p++)
			for (uint32_t i = 0; i < hd_dist_nroots(c->at[m].worker, p); i++) {
				assert_true(r.n < MOST_ROOTS);
				r.name[r.n] = hd_dist_root(c->at[m].worker, p, i);
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

static uint64_t bytes_of(const struct cluster *c, uint32_t b) { return hd_layout_bucket(&c->task->layout,
	b).len * sizeof(float); }

/* The pieces of a bucket, behind its own operands: those of others are copied. */
static uint32_t get_pieces(const struct cluster *c, uint32_t m, uint32_t bucket, const struct roots *r,
	const float **operand, float **copy)
{
	const struct hd_layout *layout = &c->task->layout;
	uint32_t first, n = hd_layout_pieces(layout, bucket, &first), ncopies = 0;

	assert_true(n <= MOST_PIECES);
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < r->n; i++) {
			const uint64_t len = hd_layout_run(layout, first + k).len * sizeof(float);
			const float *from = hd_dist_root_at(c->at[r->at[i].member].worker, r->at[i].pass,
				r->at[i].i, first + k);
			operand[(k + 1) * r->n + i] = from;
			if (r->at[i].member == m)
				continue;
			copy[ncopies] = malloc(len);
			memcpy(copy[ncopies], from, len);
			operand[(k + 1) * r->n + i] = copy[ncopies++];
		}
	return ncopies;
}

/* Member m sums some buckets: roots of others come to its places. */
static void fold(const struct cluster *c, uint32_t m, const uint32_t *bucket, uint32_t n)
{
	const struct roots r = roots_of(c);
	struct hd_worker *w = c->at[m].worker;
	const float *operand[BATCH][(1 + MOST_PIECES) * MOST_ROOTS];
	struct hd_dist_fold job[BATCH];
	struct hd_diag diag = { "" };
	float *piece[BATCH * MOST_PIECES * MOST_ROOTS];
	uint32_t npieces = 0;

	CHECK(hd_dist_operands(w, r.name, NULL, r.n, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < r.n; i++) {
			const float *from = hd_dist_root_at(c->at[r.at[i].member].worker, r.at[i].pass,
				r.at[i].i, bucket[k]);
			operand[k][i] = from;
			if (r.at[i].member != m) {
				float *place = hd_dist_place(w, k * MOST_ROOTS + i);
				memcpy(place, from, bytes_of(c, bucket[k]));
				operand[k][i] = place;
			}
		}
		npieces += get_pieces(c, m, bucket[k], &r, operand[k], piece + npieces);
		job[k] = (struct hd_dist_fold){ bucket[k], operand[k] };
	}
	CHECK(hd_dist_fold(w, job, n, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t i = 0; i < npieces; i++)
		free(piece[i]);
}

/* The sum goes from one member to another, which may have it already (a sum that is sent again). */
static void send_sums(const struct cluster *c, uint32_t from, uint32_t to, const uint32_t *bucket, uint32_t n)
{
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < n; k++) {
		assert_true(hd_dist_summed(c->at[from].worker, bucket[k]));
		if (from != to)
			memcpy(hd_dist_sum_at(c->at[to].worker, bucket[k]),
				hd_dist_sum_at(c->at[from].worker, bucket[k]), bytes_of(c, bucket[k]));
	}
	CHECK(hd_dist_arrived(c->at[to].worker, bucket, n, &diag) == HD_OK, "%s", diag.text);
}

/* What is half received is no sum: rubbish at the place of an unsummed bucket must not matter. */
static void spoil(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t b = 0; b < c->nbuckets; b++)
			if (c->n > 1 && !hd_dist_summed(c->at[m].worker, b))
				memset(hd_dist_sum_at(c->at[m].worker, b), 0xab, bytes_of(c, b) / 2);
}

/* Owners sum their buckets in any order and publish them, one by one or several at a time; at most `limit`
 * of them. */
static void exchange_sums(const struct cluster *c, uint32_t limit)
{
	uint32_t order[MOST_BUCKETS], members[MOST];

	shuffle(order, c->nbuckets);
	spoil(c);
	for (uint32_t i = 0, n; i < c->nbuckets && i < limit; i += n) {
		uint32_t owner = order[i] * c->n / c->nbuckets, most = 1 + draw(BATCH);
		for (n = 1; n < most && i + n < c->nbuckets && i + n < limit &&
			order[i + n] * c->n / c->nbuckets == owner; n++)
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
			for (uint32_t p = 0; p < hd_dist_npasses(c->at[m].worker); p++) {
				struct hd_worker *w = c->at[m].worker;
				uint64_t len = hd_dist_leaves_bytes(w, hd_dist_nleaves(w, p));
				uint8_t *bytes = malloc(len);
				if (hd_dist_nroots(w, p) == 0) {
					free(bytes);
					continue;
				}
				hd_dist_leaves_get(w, p, bytes);
				for (uint32_t to = 0; to < c->n; to++)
					CHECK(hd_dist_leaves_put(c->at[to].worker, c->at[m].id, bytes, len,
						&diag) == HD_OK, "%s", diag.text);
				free(bytes);
			}
}

/* All compute one virtual node of the next step, whoever has it in its part, on one device or several: equal
 * bits. What the finished step left can still be asked for. */
static void probe_all(const struct cluster *c, const char *what)
{
	uint32_t vn = draw(c->job->nvns), other = hd_dist_probed(c->one, (uint64_t)hd_worker_at(c->one));
	uint64_t table_bytes = hd_dist_leaves_bytes(c->one, c->job->nvns);
	uint8_t *table = malloc(2 * table_bytes);
	struct hd_hash want, bits;
	struct hd_diag diag = { "" };

	assert_non_null(table);
	CHECK(hd_dist_probe(c->one, vn, &want, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_probe(c->one, other, &bits, &diag) == HD_OK &&
		hd_hash_same(bits, want) == (other == vn),
		"%s: virtual nodes %u and %u", what, vn, other);
	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_worker *w = c->at[m].worker;
		uint64_t sums = hd_dist_sums_digest(w);
		hd_dist_table_get(w, table);
		CHECK(hd_dist_probe(w, vn, &bits, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_hash_same(bits, want), "%s: member %u computes virtual node %u with other bits",
			what, m, vn);
		hd_dist_table_get(w, table + table_bytes);
		CHECK(sums == hd_dist_sums_digest(w) && !memcmp(table, table + table_bytes, table_bytes),
			"%s: a probe changed what the step left", what);
	}
	free(table);
}

static void finish(const struct cluster *c, const char *what)
{
	const struct hd_step_record *want = &c->want;
	struct hd_diag diag = { "" };
	uint64_t sums = 0;

	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_worker *w = c->at[m].worker;
		struct hd_step_record r;
		uint64_t mine = hd_dist_sums_digest(w);
		CHECK(m == 0 || mine == sums, "%s, step %llu: members hold different sums", what,
			(unsigned long long)want->step);
		sums = mine;
		CHECK(hd_dist_finish(w, &r, &diag) == HD_OK, "%s", diag.text);
		CHECK(memcmp(&r.loss_sum, &want->loss_sum, 8) == 0 &&
			memcmp(&r.weight, &want->weight, 8) == 0 &&
			memcmp(&r.correct, &want->correct, 8) == 0,
			"%s, step %llu: loss or hits", what, (unsigned long long)want->step);
		CHECK(memcmp(&r.gnorm, &want->gnorm, 8) == 0 && r.step == want->step &&
			r.samples == want->samples, "%s, step %llu: norm", what,
			(unsigned long long)want->step);
		CHECK(r.has_digest && hd_hash_same(r.digest, want->digest), "%s, step %llu, member %u: state",
			what, (unsigned long long)want->step, m);
		CHECK(hd_hash_same(hd_worker_digest(w), want->digest),
			"%s, step %llu: the digest is not that of the state", what,
			(unsigned long long)want->step);
	}
	if (draw(4) == 0)
		probe_all(c, what);
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

static const char wide[] =
	"model: {use: builtin:mlp, args: {hidden: [700, 400]}}\ndata: {kind: synthetic, count: 61}\n";
static const char gpt[]  =
	"model: {use: builtin:gpt, args: {layers: 1, width: 128, heads: 2, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char resnet[] =
	"model: {use: builtin:resnet18, args: {stem: small, channels: 1, height: 9, width: 6, base: 16, "
	"classes: 5}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const struct { uint32_t batch, vns; } shapes[] = { { 26, 7 }, { 31, 8 }, { 26, 13 }, { 46, 16 } };
static const char *const optims[] = {
	"optim: {kind: adamw, schedule: {warmup: 2}}",
		"optim: {kind: momentum, lr: 0.05, weight_decay: 0.01, clip: 0.1}",
		"optim: {kind: lamb, lr: 0.01}",
	"optim: {kind: sgd, lr: 0.1}",
};

/* Every few steps another map; prepared while a step is under way or between two. */
static void workers_give_the_bits_of_one_device(void **state)
{
	const char *const models[] = { hd_rig_mlp, hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (size_t k = 0; k < sizeof models / sizeof *models; k++)
		for (uint32_t n = 1 + k % 2; n <= MOST; n += SANITIZED ? 4 : k > 1 ? 2 : 1) {
			struct cluster c;
			char what[64];
			open_cluster(&c, models[k], shapes[(n + k) % 4].batch, shapes[(n + k) % 4].vns,
				optims[(n + 2 * k) % 4], 100 * n + k);
			for (uint32_t m = 0; m < n; m++)
				add_member(&c, 1 + draw(n > 4 ? 2 : MOST_DEVICES));
			prepare(&c, plan_of(&c));
			adopt(&c);
			for (uint32_t s = 0; s < 3; s++) {
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

/* Deals leaves that no member knows to the members, in runs. */
static void repair(const struct cluster *c)
{
	uint32_t lost[64], nlost = 0;
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < c->job->nvns; v++) {
		bool has = false;
		for (uint32_t m = 0; m < c->n; m++)
			for (uint32_t p = 0; p < hd_dist_npasses(c->at[m].worker); p++) {
				const struct hd_worker *w = c->at[m].worker;
				has |= hd_dist_nroots(w, p) > 0 &&
					(p ? &w->step->repair[p - 1] : &w->parts->part->work)->has[v];
			}
		if (!has)
			lost[nlost++] = v;
	}
	for (uint32_t m = 0, at = 0, n; m < c->n; m++, at += n) {
		uint32_t before = hd_dist_npasses(c->at[m].worker), pass;
		n = m + 1 == c->n ? nlost - at : draw(nlost - at + 1);
		if (n == 0)
			continue;
		CHECK(hd_dist_repair(c->at[m].worker, lost + at, n, &pass, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(pass, before);
		assert_int_equal(hd_dist_nleaves(c->at[m].worker, pass), n);
	}
}

/* What somebody has summed is handed on; the rest is summed from the roots there are now. */
static void exchange_again(const struct cluster *c)
{
	spoil(c);
	for (uint32_t b = 0; b < c->nbuckets; b++) {
		uint32_t holder = 0;
		while (holder < c->n && !hd_dist_summed(c->at[holder].worker, b))
			holder++;
		if (holder == c->n)
			fold(c, holder = draw(c->n), &b, 1);
		for (uint32_t m = 0; m < c->n; m++)
			if (!hd_dist_summed(c->at[m].worker, b) || draw(2))
				send_sums(c, holder, m, &b, 1);
	}
}

/* A worker is lost before, while or after buckets are summed, and then another one in the repair; some had
 * not begun to compute. */
static void a_loss_in_the_middle_of_a_step_changes_no_bit(void **state)
{
	const char *const models[] = { hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 5 : 14); round++) {
		struct cluster c;
		char what[64];
		size_t k = round % 5;
		open_cluster(&c, models[k], shapes[round % 4].batch, shapes[round % 4].vns,
			optims[round / 2 % 4], 7000 + round);
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
	uint8_t scalars[HD_DIST_SCALARS_BYTES], *bytes = malloc(hd_dist_rest_bytes(donor));
	uint32_t bucket[MOST_BUCKETS], n = 0;
	struct hd_diag diag = { "" };

	hd_dist_scalars_get(donor, scalars);
	for (uint32_t b = 0; b < c->nbuckets; b++)
		if (l->has[b]) {
			memcpy(hd_dist_sum_at(l->worker, b), hd_dist_sum_at(donor, b), bytes_of(c, b));
			bucket[n++] = b;
		}
	CHECK(hd_dist_apply(l->worker, bucket, n, scalars, &diag) == HD_OK, "%s", diag.text);
	hd_dist_rest_get(donor, bytes);
	CHECK(hd_dist_rest_put(l->worker, bytes, hd_dist_rest_bytes(donor), &diag) == HD_OK, "%s",
		diag.text);
	free(bytes);
}

/* Some snaps at this boundary; true: all are there. */
static bool learn(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
{
	uint32_t order[MOST_BUCKETS + 8], n = hd_dist_nsnaps(donor), left = 0;
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
			end = hd_dist_snap_end(donor, first);
			if (s < end) {
				s = first;
				break;
			}
		}
		for (; s < end; s++) {
			uint8_t *bytes = malloc(hd_dist_snap_bytes(donor, s));
			hd_dist_snap_get(donor, s, bytes);
			CHECK(hd_dist_snap_put(l->worker, s, bytes, hd_dist_snap_bytes(donor, s),
				&diag) == HD_OK, "%s", diag.text);
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
	for (uint32_t round = 0; round < (SANITIZED ? 3 : 8); round++) {
		struct cluster c;
		struct learner l = { 0 };
		struct hd_diag diag = { "" };
		char what[64];
		open_cluster(&c, models[round % 3], shapes[round % 4].batch, shapes[round % 4].vns,
			optims[round / 3 % 4], 31 * round);
		for (uint32_t m = 0; m < 1 + round % 3; m++)
			add_member(&c, 1 + draw(2));
		prepare(&c, plan_of(&c));
		adopt(&c);
		snprintf(what, sizeof what, "round %u, V %u", round, c.job->nvns);
		step(&c, what);
		step(&c, what);
		l.worker = worker_of(&c, 1 + round % 2, 1, 0);
		CHECK(hd_dist_prepare(l.worker, &(struct hd_dist_view){ NULL, HD_DIST_NOBODY, 0, 0, NULL },
			&diag) == HD_OK, "%s", diag.text);
		hd_dist_adopt(l.worker);
		while (!learn(&c, &l, c.at[0].worker)) {
			step(&c, what);
			follow(&c, &l, c.at[0].worker);
		}
		step(&c, what);
		follow(&c, &l, c.at[0].worker);
		assert_int_equal(hd_worker_at(l.worker), hd_worker_at(c.at[0].worker));
		CHECK(hd_hash_same(hd_worker_digest(l.worker), c.want.digest), "%s: what was learned differs",
			what);
		assert_int_equal(hd_dist_learned(l.worker, &diag), HD_OK);
		c.at[c.n++] = (struct dist_member){ l.worker, c.next_id++, 1 + round % 2 };
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++)
			step(&c, what);
		close_cluster(&c);
	}
}

/* What a watcher saw of one worker's pass: its roots, copied at the moment they were said to be final. */
struct watched {
	struct cluster *c;
	struct hd_worker *worker;
	struct hd_tnode root[16];
	uint32_t nroots, said[MOST_BUCKETS], pass;
	atomic_uint nfirst;                       /* buckets said before the pass was computed */
	bool waits;                               /* when the first was said another one was not final */
	float *copy[16];
};

static void see(void *user, uint32_t pass, uint32_t bucket)
{
	struct watched *seen = user;
	const struct hd_layout *layout = &seen->c->task->layout;
	uint32_t first, n = hd_layout_pieces(layout, bucket, &first);

	assert_int_equal(pass, seen->pass);
	assert_true(hd_dist_final(seen->worker, pass, bucket));
	seen->said[bucket]++;
	if (seen->worker->step->early && atomic_fetch_add(&seen->nfirst, 1) == 0)
		for (uint32_t b = 0; b < seen->c->nbuckets; b++)
			seen->waits |= !hd_dist_final(seen->worker, pass, b);
	for (uint32_t i = 0; i < seen->nroots; i++)
		for (uint32_t k = 0; k <= n; k++) {
			const struct hd_grad_run run = hd_layout_run(layout, k ? first + k - 1 : bucket);
			memcpy(seen->copy[i] + run.at, hd_dist_root_at(seen->worker, pass, i,
				k ? first + k - 1 : bucket), run.len * sizeof(float));
		}
}

static void check_seen(struct watched *seen, const char *what)
{
	assert_int_equal(seen->nroots, hd_dist_nroots(seen->worker, seen->pass));
	for (uint32_t b = 0; b < seen->c->nbuckets; b++)
		CHECK(seen->said[b] == 1, "%s: bucket %u was said %u times", what, b, seen->said[b]);
	for (uint32_t b = 0; b < hd_layout_nruns(&seen->c->task->layout); b++) {
		const struct hd_grad_run run = hd_layout_run(&seen->c->task->layout, b);
		for (uint32_t i = 0; i < seen->nroots; i++)
			CHECK(memcmp(seen->copy[i] + run.at, hd_dist_root_at(seen->worker, seen->pass, i, b),
				run.len * sizeof(float)) == 0, "%s: root %u of run %u was not final", what,
				i, b);
	}
}

static void buckets_are_final_when_they_are_said_to_be(void **state)
{
	const char *const models[] = { wide, gpt, resnet };
	uint32_t nearly = 0;

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 6 : 12); round++) {
		struct cluster c;
		uint8_t has[16];
		char what[64];
		slices = round % 6 == 5 ? 2 : 1;
		open_cluster(&c, models[round % 3], 46, 16, "", 600 + round);
		slices = 1;
		add_member(&c, 1);
		add_member(&c, 1 + round % 2);
		prepare(&c, plan_of(&c));
		adopt(&c);
		struct watched *seen = hd_arena_take(&c.arena, 2, sizeof *seen);
		for (uint32_t s = 0; s < 2; s++) {        /* step 1 has a short batch: parts without rows */
			begin(&c);
			for (uint32_t m = 0; m < 2; m++) {
				struct hd_worker *w = c.at[m].worker;
				memset(&seen[m], 0, sizeof *seen);
				seen[m].c = &c;
				seen[m].worker = w;
				assert_int_equal(hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has,
					seen[m].root, 16, &seen[m].nroots), HD_OK);
				for (uint32_t i = 0; i < seen[m].nroots; i++)
					seen[m].copy[i] = hd_arena_take(&c.arena, c.task->layout.grad_elems,
						sizeof(float));
				assert_false(hd_dist_final(w, 0, 0));
				hd_dist_watch(w, see, &seen[m]);
				compute(&c.at[m]);
				snprintf(what, sizeof what, "round %u, step %u, member %u", round, s, m);
				check_seen(&seen[m], what);
				nearly += seen[m].waits;
				bool must = c.nbuckets > 1 && w->parts->part->work.nleaves &&
					c.at[m].ndevices == 1;
				CHECK(!must || (seen[m].waits && seen[m].nfirst),
					"%s: nothing was said before the end", what);
				hd_dist_watch(w, NULL, NULL);
			}
			exchange_leaves(&c);
			exchange_sums(&c, UINT32_MAX);
			finish(&c, what);
		}
		close_cluster(&c);
	}
	assert_true(nearly > (SANITIZED ? 2 : 4));
}

/* Member 1 is in its pass; member 0 has done its own. */
struct beside { struct cluster *c; struct hd_tnode own[16]; uint32_t nown; atomic_uint taken; };

/* A bucket that is final is summed at once; every other one is then taken for one that arrived. */
static void sum_beside(void *user, uint32_t pass, uint32_t bucket)
{
	struct beside *beside = user;
	struct hd_worker *zero = beside->c->at[0].worker, *one = beside->c->at[1].worker;
	const struct hd_layout *layout = &beside->c->task->layout;
	const struct hd_chunk run = hd_layout_bucket(layout, bucket);
	struct hd_tnode name[MOST_ROOTS];
	const float *operand[(1 + MOST_PIECES) * MOST_ROOTS];
	float *copy[(1 + MOST_PIECES) * MOST_ROOTS];
	struct hd_diag diag = { "" };
	uint32_t n = hd_dist_nroots(zero, 0), ncopies = 0, first, npieces = hd_layout_pieces(layout, bucket,
		&first);
	bool taken;

	for (uint32_t i = 0; i < n; i++)
		name[i] = hd_dist_root(zero, 0, i);
	for (uint32_t i = 0; i < beside->nown; i++)
		name[n + i] = beside->own[i];
	for (uint32_t k = 0; k <= npieces; k++) {
		const uint32_t number = k ? first + k - 1 : bucket;
		const uint64_t len = hd_layout_run(layout, number).len * sizeof(float);
		const float **row = operand + k * (n + beside->nown);
		for (uint32_t i = 0; i < n; i++) {
			copy[ncopies] = malloc(len);
			memcpy(copy[ncopies], hd_dist_root_at(zero, 0, i, number), len);
			row[i] = copy[ncopies++];
		}
		for (uint32_t i = 0; i < beside->nown; i++)
			row[n + i] = hd_dist_root_at(one, pass, i, number);
	}
	struct hd_dist_fold fold = { bucket, operand };
	CHECK(hd_dist_aside(one, name, NULL, n + beside->nown, &fold, &taken, &diag) == HD_OK, "%s",
		diag.text);
	assert_true(taken && hd_dist_summed(one, bucket));
	for (uint32_t i = 0; i < ncopies; i++)
		free(copy[i]);
	if (bucket % 2) {
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++)
			one->stage->segment_sumsq[i] = -1;
		one->step->summed[bucket] = 0;
		one->step->nsummed--;
		fold.operand = NULL;
		CHECK(hd_dist_aside(one, NULL, NULL, 0, &fold, &taken, &diag) == HD_OK && taken, "%s",
			diag.text);
	}
	assert_int_equal(hd_dist_aside(zero, NULL, NULL, 0, &(struct hd_dist_fold){ bucket, NULL }, &taken,
		&diag), HD_OK);
	assert_false(taken || hd_dist_summed(zero, bucket));     /* it is in no pass */
	atomic_fetch_add(&beside->taken, 1);
}

static void buckets_are_summed_while_a_pass_is_computed(void **state)
{
	const char *const models[] = { wide, gpt, resnet };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 3 : 9); round++) {
		struct cluster c;
		uint8_t has[16];
		char what[64];
		uint32_t all[MOST_BUCKETS];
		struct hd_diag diag = { "" };
		bool taken;
		open_cluster(&c, models[round % 3], 46, 16, optims[round % 4], 800 + round);
		add_member(&c, 1);
		add_member(&c, 1 + round / 6);
		CHECK(hd_dist_aside_open(c.at[0].worker, &diag) == HD_OK &&
			hd_dist_aside_open(c.at[1].worker, &diag) == HD_OK, "%s", diag.text);
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++) {
			struct hd_worker *one = c.at[1].worker;
			struct beside beside = { .c = &c };
			snprintf(what, sizeof what, "round %u, step %u", round, s);
			begin(&c);
			compute(&c.at[0]);
			assert_int_equal(hd_dist_roots_of(one->parts->part->plan, c.at[1].id, 0, has,
				beside.own, 16,
				&beside.nown), HD_OK);
			hd_dist_watch(one, sum_beside, &beside);
			compute(&c.at[1]);
			hd_dist_watch(one, NULL, NULL);
			assert_int_equal(atomic_load(&beside.taken), c.nbuckets);
			assert_int_equal(hd_dist_unsummed(one), 0);
			assert_int_equal(hd_dist_aside(one, NULL, NULL, 0, &(struct hd_dist_fold){ 0, NULL },
				&taken, &diag), HD_OK);
			assert_false(taken);                              /* its pass is over */
			exchange_leaves(&c);
			for (uint32_t b = 0; b < c.nbuckets; b++)
				all[b] = b;
			send_sums(&c, 1, 0, all, c.nbuckets);
			finish(&c, what);
		}
		close_cluster(&c);
	}
}

/* Two members of one device each, begun; both computed. */
static void open_two(struct cluster *c, const char *model, const char *more)
{
	open_cluster(c, model, 32, 8, more, 5);
	add_member(c, 1);
	add_member(c, 1);
	seed = 0;                                 /* an even map */
	do {
		prepare(c, plan_of(c));
		adopt(c);
	} while (hd_dist_nleaves(c->at[0].worker, 0) != 4);
	begin(c);
	compute(&c->at[0]);
	compute(&c->at[1]);
}

static void entries_that_are_no_leaves_are_refused_and_change_nothing(void **state)
{
	struct cluster c;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, hd_rig_bn(), optims[0]);
	struct hd_worker *a = c.at[0].worker, *b = c.at[1].worker;
	uint64_t len = hd_dist_leaves_bytes(a, 4), entry = (len - 8) / 4;
	uint8_t *bytes = malloc(len + 8);
	for (uint32_t how = 0; how < 8; how++) {
		uint64_t said = len;
		hd_dist_leaves_get(a, 0, bytes);
		switch (how) {
		case 0: said = len - 1; break;
		case 1: said = len + 8; break;
		case 2: said = 7; break;
		case 3: bytes[0]++; break;                        /* another version */
		case 4: bytes[4] = 3; break;                      /* three of four */
		case 5: memcpy(bytes + 8 + entry, bytes + 8, 4); break;  /* a leaf twice */
		case 6: bytes[8 + 3 * entry] = 8; break;          /* there are 8 */
		default: bytes[8 + 2 * entry + 4] = 1; break;     /* what must be 0 */
		}
		diag.text[0] = 0;
		CHECK(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, said, &diag) == HD_E_PROTOCOL,
			"case %u: %s", how,
			diag.text);
		assert_int_equal(hd_dist_leaves_missing(b), 4);
	}
	hd_dist_leaves_get(a, 0, bytes);
	assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, len, &diag), HD_OK);
	assert_int_equal(hd_dist_leaves_missing(b), 0);
	for (uint64_t at = 16; at < entry; at += 8) {     /* any number of an entry that is known already */
		bytes[8 + at] ^= 1;
		assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, len, &diag), HD_E_INTEGRITY);
		bytes[8 + at] ^= 1;
	}
	free(bytes);
	hd_dist_abandon(a);
	hd_dist_abandon(b);
	close_cluster(&c);
}

/* After a step a worker can still tell the table to one that lacks it, and its sums. */
static void what_a_step_summed_can_be_told_after_it(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, resnet, optims[0]);
	struct hd_worker *a = c.at[0].worker, *b = c.at[1].worker;
	uint64_t len = hd_dist_leaves_bytes(a, 4), all = hd_dist_leaves_bytes(a, 8);
	uint8_t *bytes = malloc(all);
	hd_dist_leaves_get(b, 0, bytes);
	assert_int_equal(hd_dist_leaves_put(a, HD_DIST_NOBODY, bytes, len, &diag), HD_OK);
	for (uint32_t k = 0; k < c.nbuckets; k++)
		fold(&c, 0, &k, 1);
	assert_int_equal(hd_dist_finish(a, &r, &diag), HD_OK);
	assert_true(hd_hash_same(r.digest, c.want.digest));
	hd_dist_table_get(a, bytes);
	assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, all, &diag), HD_OK);
	for (uint32_t k = 0; k < c.nbuckets; k++)
		send_sums(&c, 0, 1, &k, 1);
	assert_int_equal(hd_dist_finish(b, &r, &diag), HD_OK);
	assert_true(hd_hash_same(r.digest, c.want.digest));
	free(bytes);
	step(&c, "after it");
	close_cluster(&c);
}

/* What is missing is said; what was begun and given up, or failed before the update, is begun again. */
static void a_step_that_is_not_finished_leaves_the_state_of_its_beginning(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, wide, optims[0]);
	struct hd_hash before = hd_worker_digest(c.at[0].worker);
	exchange_leaves(&c);
	assert_int_equal(hd_dist_finish(c.at[0].worker, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "buckets have no sum, 0 virtual nodes"), "%s", diag.text);
	exchange_sums(&c, 1);
	for (uint32_t m = 0; m < 2; m++) {
		hd_dist_abandon(c.at[m].worker);
		assert_true(hd_hash_same(hd_worker_digest(c.at[m].worker), before));
		assert_int_equal(hd_dist_begin(c.at[m].worker, true, &diag), HD_OK);
		assert_int_equal(hd_dist_unsummed(c.at[m].worker), c.nbuckets);
		assert_int_equal(hd_dist_leaves_missing(c.at[m].worker), 8);
		compute(&c.at[m]);
	}
	exchange_sums(&c, UINT32_MAX);
	diag.text[0] = 0;
	assert_int_equal(hd_dist_finish(c.at[0].worker, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "0 buckets have no sum, 4 virtual nodes"), "%s", diag.text);
	exchange_leaves(&c);
	finish(&c, "begun again");
	begin(&c);
	struct hd_hash bits;
	assert_int_equal(hd_dist_probe(c.at[0].worker, 0, &bits, &diag), HD_E_REFUSED);
	/* a scribe may save before a step that was begun and given up */
	for (uint32_t m = 0; m < 2; m++) {
		float *first = hd_worker_state(c.at[m].worker)->entry[0].at, was = *first;
		CHECK(hd_worker_as_reported(c.at[m].worker), "member %u, in the step", m);
		hd_dist_abandon(c.at[m].worker);
		CHECK(hd_worker_as_reported(c.at[m].worker), "member %u, after it", m);
		*first += 1;
		CHECK(!hd_worker_as_reported(c.at[m].worker), "member %u, a bit flipped", m);
		*first = was;
	}
	close_cluster(&c);
}

/* Each worker ends the step alike; only the one that computed the leaf can name the op. */
static void a_number_that_is_not_finite_ends_the_step_everywhere(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	uint32_t named = 0;

	(void)state;
	open_cluster(&c, hd_rig_mlp, 32, 8, "", 9);
	add_member(&c, 2);
	add_member(&c, 1);
	struct hd_plan *plan = hd_arena_take(&c.arena, 1, sizeof *plan);
	struct hd_plan_job pj = hd_plan_job_whole(8, c.task->layout.nchunks);
	assert_int_equal(hd_plan_data(plan, &pj, 3, (uint32_t[]){ 5, 3, 0 }, &c.arena, NULL), HD_OK);
	plan->worker[2] = 1;
	prepare(&c, plan);
	adopt(&c);
	struct hd_hash before[2];
	for (uint32_t m = 0; m < 2; m++) {
		struct hd_diag diag = { "" };
		hd_param_store_at(c.at[m].worker->store, HD_VEC_PARAMS, 0, 1)[0] = INFINITY;
		before[m] = hd_worker_digest(c.at[m].worker);
		assert_int_equal(hd_dist_begin(c.at[m].worker, true, &diag), HD_OK);
		compute(&c.at[m]);
	}
	exchange_leaves(&c);
	exchange_sums(&c, UINT32_MAX);
	for (uint32_t m = 0; m < 2; m++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_dist_finish(c.at[m].worker, &r, &diag), HD_E_DIVERGED);
		named += strstr(diag.text, "made by op") != NULL;
		CHECK(m == 0 ||
			strstr(diag.text,
			"every virtual node of this worker is finite; another one's is not"), "%s",
			diag.text);
		assert_true(hd_hash_same(hd_worker_digest(c.at[m].worker), before[m]));
	}
	assert_int_equal(named, 1);
	close_cluster(&c);
}

static uint64_t places(uint64_t n) { return n * HD_BUCKET_BYTES; }

static void views_that_a_worker_cannot_join_are_refused_by_name(void **state)
{
	struct cluster c;
	struct hd_memory_terms had, has, said;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, wide, optims[0]);
	struct hd_worker *a = c.at[0].worker;
	const struct hd_plan *plan = a->parts->part->plan;
	hd_dist_abandon(a);
	hd_dist_abandon(c.at[1].worker);

	/* a plan with ranks of others is no plan for a worker alone */
	assert_int_equal(hd_worker_adopt(a, plan, &diag), HD_E_BADPLAN);
	diag.text[0] = 0;
	assert_int_equal(hd_worker_step(a, false, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "ranks of other workers"), "%s", diag.text);

	/* other devices than it has */
	plan->worker[1] = c.at[0].id;
	diag.text[0] = 0;
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ plan, c.at[0].id, 0, 0, NULL }, &diag),
		HD_E_BADPLAN);
	CHECK(strstr(diag.text, "the plan is for 2 devices, the worker has 1"), "%s", diag.text);
	plan->worker[1] = c.at[1].id;
	assert_false(hd_dist_prepared(a));

	/* places are counted before they are taken */
	hd_worker_memory(a, &had);
	assert_int_equal(a->parts->need_links, 2);       /* to the other, and to the coordinator */
	CHECK(had.own >= 2 * HD_LINK_BYTES, "links are not counted: %llu", (unsigned long long)had.own);
	a->spec.memory_limit_bytes = had.held + 10 * HD_BUCKET_BYTES;
	/* those that the caller takes, too, and as long as the part is there */
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ plan, c.at[0].id, 0, places(11), NULL },
		&diag),
		HD_E_REFUSED);
	assert_int_equal(hd_dist_memory(a, &(struct hd_dist_view){ plan, c.at[0].id, 0, places(11), NULL },
		&said,
		&diag),
		HD_E_REFUSED);
	assert_int_equal(hd_dist_memory(a, &(struct hd_dist_view){ plan, c.at[0].id, 0, places(10), NULL },
		&said,
		&diag),
		HD_OK);
	assert_false(hd_dist_prepared(a));
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ plan, c.at[0].id, 0, places(10), NULL },
		&diag),
		HD_OK);
	hd_worker_memory(a, &has);
	assert_true(has.total == said.total && has.own == said.own);
	assert_true(has.gradients == had.gradients + 10 * HD_BUCKET_BYTES &&
		has.held == had.held + 10 * HD_BUCKET_BYTES);
	hd_dist_forget(a);
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ plan, c.at[0].id,
		a->parts->nreceive + 11, 0, NULL },
		&diag), HD_E_REFUSED);
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ plan, c.at[0].id,
		a->parts->nreceive + 10, 0, NULL },
		&diag), HD_OK);
	hd_worker_memory(a, &has);
	assert_true(has.gradients == had.gradients + 10 * HD_BUCKET_BYTES &&
		has.held == had.held + 10 * HD_BUCKET_BYTES);
	hd_dist_forget(a);
	close_cluster(&c);
}

/* What others expect of a worker is what it has. */
static void roots_follow_from_the_plan(void **state)
{
	struct hd_tnode root[16];
	struct cluster c;
	uint8_t has[16];
	uint32_t n;

	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		open_cluster(&c, hd_rig_mlp, 46, 16, "", 40 + k);
		for (uint32_t m = 0; m < 3; m++)
			add_member(&c, 1 + draw(3));
		prepare(&c, plan_of(&c));
		adopt(&c);
		begin(&c);
		for (uint32_t m = 0; m < 3; m++) {
			const struct hd_worker *w = c.at[m].worker;
			assert_int_equal(hd_dist_nroots(w, 0), 0);
			compute(&c.at[m]);
			assert_int_equal(hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has, root, 16,
				&n),
				HD_OK);
			assert_int_equal(hd_dist_nroots(w, 0), n);
			for (uint32_t i = 0; i < n; i++)
				assert_true(hd_tnode_same(hd_dist_root(w, 0, i), root[i]));
			assert_true(n < 2 || hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has, root,
				n - 1,
				&n) == HD_E_NOSPACE);
			hd_dist_abandon(c.at[m].worker);
		}
		close_cluster(&c);
	}
}

static void state_that_is_not_this_jobs_is_refused(void **state)
{
	struct cluster c;
	struct hd_diag diag = { "" };
	uint8_t scalars[HD_DIST_SCALARS_BYTES], *bytes;
	uint64_t at;

	(void)state;
	open_two(&c, wide, "optim: {kind: lamb, lr: 0.01}");
	exchange_leaves(&c);
	exchange_sums(&c, UINT32_MAX);
	finish(&c, "before it");
	struct hd_worker *a = c.at[0].worker;
	struct hd_hash before = hd_worker_digest(a);
	bytes = malloc(hd_dist_snap_bytes(a, 0) + hd_dist_rest_bytes(a));
	hd_dist_snap_get(a, 0, bytes);
	assert_int_equal(hd_dist_snap_put(a, 0, bytes, hd_dist_snap_bytes(a, 0) - 4, &diag), HD_E_PROTOCOL);
	assert_int_equal(hd_dist_snap_put(a, hd_dist_nsnaps(a), bytes, 4, &diag), HD_E_PROTOCOL);
	hd_dist_rest_get(a, bytes);
	assert_int_equal(hd_dist_rest_put(a, bytes, hd_dist_rest_bytes(a) + 8, &diag), HD_E_PROTOCOL);
	bytes[0]++;
	assert_int_equal(hd_dist_rest_put(a, bytes, hd_dist_rest_bytes(a), &diag), HD_E_PROTOCOL);
	hd_dist_scalars_get(a, scalars);
	assert_int_equal(hd_dist_scalars_step(scalars, &at, &diag), HD_OK);
	assert_int_equal(at, 0);
	diag.text[0] = 0;
	assert_int_equal(hd_dist_apply(a, (uint32_t[]){ 0 }, 1, scalars, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "optimizer lamb changes whole tensors"), "%s", diag.text);
	assert_int_equal(hd_dist_apply(a, (uint32_t[]){ 0, 0 }, 2, scalars, &diag), HD_E_INVAL);
	scalars[0]++;
	assert_int_equal(hd_dist_scalars_step(scalars, &at, &diag), HD_E_PROTOCOL);
	assert_true(hd_hash_same(hd_worker_digest(a), before));
	free(bytes);
	close_cluster(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_give_the_bits_of_one_device),
		cmocka_unit_test(a_loss_in_the_middle_of_a_step_changes_no_bit),
		cmocka_unit_test(who_learns_while_others_step_comes_to_the_same_state),
		cmocka_unit_test(buckets_are_final_when_they_are_said_to_be),
		cmocka_unit_test(buckets_are_summed_while_a_pass_is_computed),
		cmocka_unit_test(entries_that_are_no_leaves_are_refused_and_change_nothing),
		cmocka_unit_test(what_a_step_summed_can_be_told_after_it),
		cmocka_unit_test(a_step_that_is_not_finished_leaves_the_state_of_its_beginning),
		cmocka_unit_test(a_number_that_is_not_finite_ends_the_step_everywhere),
		cmocka_unit_test(views_that_a_worker_cannot_join_are_refused_by_name),
		cmocka_unit_test(roots_follow_from_the_plan),
		cmocka_unit_test(state_that_is_not_this_jobs_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
