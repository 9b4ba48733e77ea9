/* testing_dist.h -- several workers in one process, bytes between them moved by memcpy in any order:
 * included by dist*_test.c only.
 *
 * The oracle is one device of one worker that runs the same steps by hd_worker_step(): states, losses and
 * norms are equal bit for bit.
 *
 * Ownership: open_cluster/close_cluster. */
#ifndef HD_ENGINE_TESTING_DIST_H
#define HD_ENGINE_TESTING_DIST_H

#include <math.h>

#include "engine/dist.h"
#include "engine/testing.h"

enum { MOST = 8, MOST_DEVICES = 3, MOST_RANKS = MOST * MOST_DEVICES, MOST_ROOTS = 64, MOST_BUCKETS = 16,
	BATCH = 3, MOST_PIECES = 2 };

static uint64_t seed;
static inline uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static inline void shuffle(uint32_t *at, uint32_t n)
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
	struct hd_task *task, *uncut;             /* uncut: the oracle's,
		whose buckets are those of any job */
	struct hd_worker *one;                    /* the oracle */
	struct hd_step_record want;
	struct dist_member at[MOST];                   /* the view, ascending ids */
	uint32_t n, nbuckets;
	uint16_t next_id;
};

/* One root of somebody's pass. */
struct root { uint32_t member, pass, i; struct hd_tnode name; };
struct roots { struct root at[MOST_ROOTS]; struct hd_tnode name[MOST_ROOTS]; uint32_t n; };

static inline struct hd_worker *worker_on(const struct hd_task *task, uint32_t ndevices, uint32_t nthreads,
	uint32_t wave)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = nthreads,
		.kernels = HD_KERNELS_PORTABLE, .wave = wave };
	struct hd_worker *worker = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_create(&worker, task, &spec, &diag) == HD_OK, "%s", diag.text);
	return worker;
}

static inline struct hd_worker *worker_of(const struct cluster *c, uint32_t ndevices, uint32_t nthreads,
	uint32_t wave)
{
	return worker_on(c->task, ndevices, nthreads, wave);
}

/* Of every second cluster buckets are any runs of segments, few or many. */
static inline void cut_buckets(struct cluster *c)
{
	const uint32_t n = c->task->layout.nsegments, each = 1 + draw(n / 4 + 2);
	uint32_t *nsegments = hd_arena_take(&c->arena, MOST_BUCKETS, sizeof *nsegments), nbuckets = 0;
	struct hd_diag diag = { "" };

	if (draw(2))
		return;
	for (uint32_t s = 0; s < n; s += nsegments[nbuckets++]) {
		nsegments[nbuckets] = 1 + draw(2 * each);
		if (nbuckets == MOST_BUCKETS - 1 || nsegments[nbuckets] > n - s)
			nsegments[nbuckets] = n - s;
	}
	CHECK(hd_layout_cut(&c->task->layout, nbuckets, nsegments, &c->arena, &diag) == HD_OK, "%s",
		diag.text);
}

static inline void open_cluster(struct cluster *c, const char *model, uint32_t batch, uint32_t vns,
	const char *more,
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
	CHECK(hd_task_create(&c->uncut, c->job, &c->fs, &diag) == HD_OK, "%s", diag.text);
	cut_buckets(c);
	c->one = worker_on(c->uncut, 1, 1, 1);
	c->nbuckets = hd_layout_nbuckets(&c->task->layout);
	assert_in_range(c->nbuckets, 1, MOST_BUCKETS);
	struct hd_plan_job pj = hd_plan_job_whole(vns, c->uncut->layout.nchunks);
	pj.lockstep = hd_worker_lockstep(c->one);
	plan = hd_arena_take(&c->arena, 1, sizeof *plan);
	CHECK(hd_plan_data(plan, &pj, 1, NULL, &c->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(c->one, plan, &diag) == HD_OK, "%s", diag.text);
}

static inline void close_cluster(struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		hd_worker_destroy(c->at[m].worker);
	hd_worker_destroy(c->one);
	hd_task_destroy(c->task);
	hd_task_destroy(c->uncut);
	hd_arena_finish(&c->arena);
}

static inline struct dist_member *add_member(struct cluster *c, uint32_t ndevices)
{
	struct dist_member *m = &c->at[c->n++];

	*m = (struct dist_member){ worker_of(c, ndevices, 1 + (draw(4) == 0), draw(4)), c->next_id++,
		ndevices };
	return m;
}

static inline void remove_member(struct cluster *c, uint32_t m)
{
	hd_worker_destroy(c->at[m].worker);
	for (c->n--; m < c->n; m++)
		c->at[m] = c->at[m + 1];
}

/* A map over all devices: even runs, uneven runs, scattered, or most on one device. */
static inline const struct hd_plan *plan_of(struct cluster *c)
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

static inline void prepare(const struct cluster *c, const struct hd_plan *plan)
{
	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_dist_view view = { .plan = plan,
			.worker = c->at[m].id, .nplaces = BATCH * MOST_ROOTS };
		struct hd_diag diag = { "" };
		CHECK(hd_dist_prepare(c->at[m].worker, &view, &diag) == HD_OK, "%s", diag.text);
	}
}

static inline void adopt(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++) {
		assert_true(hd_dist_prepared(c->at[m].worker));
		hd_dist_adopt(c->at[m].worker);
	}
}

static inline void begin(struct cluster *c)
{
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(c->one, true, &c->want, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t m = 0; m < c->n; m++)
		CHECK(hd_dist_begin(c->at[m].worker, true, &diag) == HD_OK, "%s", diag.text);
}

static inline void compute(const struct dist_member *m)
{
	struct hd_diag diag = { "" };

	CHECK(hd_dist_compute(m->worker, &diag) == HD_OK, "%s", diag.text);
}

static inline struct roots roots_of(const struct cluster *c)
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

static inline uint64_t bytes_of(const struct cluster *c, uint32_t b)
{
	return hd_layout_bucket(&c->task->layout, b).len * sizeof(float);
}

/* The pieces of a bucket, behind its own operands: those of others are copied. */
static inline uint32_t get_pieces(const struct cluster *c, uint32_t m, uint32_t bucket, const struct roots *r,
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
static inline void fold(const struct cluster *c, uint32_t m, const uint32_t *bucket, uint32_t n)
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
static inline void send_sums(const struct cluster *c, uint32_t from, uint32_t to, const uint32_t *bucket,
	uint32_t n)
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
static inline void spoil(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		for (uint32_t b = 0; b < c->nbuckets; b++)
			if (c->n > 1 && !hd_dist_summed(c->at[m].worker, b))
				memset(hd_dist_sum_at(c->at[m].worker, b), 0xab, bytes_of(c, b) / 2);
}

/* Owners sum their buckets in any order and publish them, one by one or several at a time; at most `limit`
 * of them. */
static inline void exchange_sums(const struct cluster *c, uint32_t limit)
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

static inline void exchange_leaves(const struct cluster *c)
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
static inline void probe_all(const struct cluster *c, const char *what)
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

static inline void finish(const struct cluster *c, const char *what)
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

static inline void step(struct cluster *c, const char *what)
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
	"optim: {kind: adamw, ema: {decay: 0.9}, schedule: {warmup: 2}}",
		"optim: {kind: momentum, lr: 0.05, weight_decay: 0.01, clip: 0.1, schedule: {kind: plateau, "
		"warmup: 0, every: 2, patience: 0, threshold: 0.5}}\nstop: {patience: 90, metric: loss, "
			"every: 3}",
		"optim: {kind: lamb, lr: 0.01, no_decay: norms-and-biases}",
	"optim: {kind: sgd, lr: 0.1, groups: [{params: [\"*.bias\"], lr_scale: 0.5, decay: 0.1}]}",
};

#endif
