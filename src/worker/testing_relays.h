/* testing_relays.h -- relays of all members over a net of the test's own, which has nothing but the four
 * calls that a relay makes, with a worker in the place of dist.h (for the room's tests; one test file a
 * program).
 *
 * enter() makes the members of a view; begin() has each of them begin a step, or take one up again as a scene
 * says; leave() ends all. The net asserts what any hub may: rows rise, a post and a send have a row,
 * nothing is posted twice. */
#ifndef HD_WORKER_TESTING_RELAYS_H
#define HD_WORKER_TESTING_RELAYS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "worker/relay.h"
#include "worker/testing_mail.h"
#include "tests/check.h"

enum { VNS = 8, NB = 5, CHUNK = 4, CHUNKS = NB * HD_BUCKET_CHUNKS - 1, FLAT = CHUNKS * CHUNK,
	BUCKET = CHUNK * HD_BUCKET_CHUNKS, MOST = 6, PASSES = 3,
	HEAD = 8, ENTRY = 16, DIGEST = 4, POSTS = 512, ROWS = 1024, EVERY = 2 };

/* ---- dist.h ---- */

struct hd_worker {
	uint64_t step;
	bool digests;
	const struct hd_pass *pass[PASSES];
	const struct hd_passes *passes;
	float root[PASSES][VNS][FLAT], sum[FLAT], parm[FLAT];
	double norm[CHUNKS];
	uint8_t digest[CHUNKS * DIGEST], taken[CHUNKS * DIGEST];
	bool summed[NB], known[VNS];
};

static inline uint32_t nsegments(uint32_t bucket) { return bucket == NB - 1 ? HD_BUCKET_CHUNKS - 1 :
	HD_BUCKET_CHUNKS; }
/* numbers of dist.h are its own */
static inline uint32_t engine_pass(uint32_t pass) { return 2 * pass + 1; }
static inline float leaf_value(uint64_t step, uint32_t vn, uint32_t at) { return (float)(step * 100000 +
	(vn + 1) * (at + 3) + vn * vn); }
static inline float sum_value(uint64_t step, uint32_t first, uint32_t end, uint32_t at)
{
	float sum = 0;

	for (uint32_t v = first; v < end; v++)
		sum += leaf_value(step, v, at);
	return sum;
}
static inline float parm_value(uint64_t step, uint32_t at) { return (float)(step * 1000 + at) + 0.5f; }
static inline double norm_value(uint64_t step, uint32_t segment) { return (double)(step * 1000 + segment) +
	0.25; }
static inline uint8_t digest_value(uint64_t step, uint32_t at) { return (uint8_t)(step * 31 + at * 7 + 1); }

uint64_t hd_dist_leaves_bytes(const struct hd_worker *w, uint32_t n) { (void)w;
	return HEAD + (uint64_t)n * ENTRY; }
uint64_t hd_dist_digest_bytes(const struct hd_worker *w, uint32_t b) { return w->digests ?
	(uint64_t)nsegments(b) * DIGEST : 0; }
uint64_t hd_dist_norm_bytes(const struct hd_worker *w, uint32_t b) { (void)w;
	return nsegments(b) * sizeof(double); }
double *hd_dist_norm_at(const struct hd_worker *w, uint32_t b) { return (double *)(uintptr_t)w->norm + b *
	HD_BUCKET_CHUNKS; }
/* no state by stages here */
bool hd_dist_measures(const struct hd_worker *w) { (void)w; return false; }
void hd_dist_ratio_get(const struct hd_worker *w, uint32_t b, double *to) { (void)w; (void)b; (void)to; }
void hd_dist_ratio_put(struct hd_worker *w, uint32_t b, const double *from) { (void)w; (void)b; (void)from; }
float *hd_dist_parm_at(const struct hd_worker *w, uint32_t b) { return (float *)(uintptr_t)w->parm + b *
	BUCKET; }
float *hd_dist_sum_at(const struct hd_worker *w, uint32_t b) { return (float *)(uintptr_t)w->sum + b *
	BUCKET; }
bool hd_dist_summed(const struct hd_worker *w, uint32_t b) { return w->summed[b]; }
void hd_dist_digest_get(const struct hd_worker *w, uint32_t b, uint8_t *bytes)
{
	assert_true(w->digests && (w->step + 1) % EVERY == 0);     /* in other steps there are none */
	memcpy(bytes, w->digest + b * HD_BUCKET_CHUNKS * DIGEST, nsegments(b) * DIGEST);
}
void hd_dist_digest_put(struct hd_worker *w, uint32_t b, const uint8_t *bytes)
{
	memcpy(w->taken + b * HD_BUCKET_CHUNKS * DIGEST, bytes, nsegments(b) * DIGEST);
}
const float *hd_dist_root_at(const struct hd_worker *w, uint32_t pass, uint32_t i, uint32_t bucket)
{
	assert_true(pass % 2 && pass / 2 < PASSES && i < VNS);
	return w->root[pass / 2][i] + bucket * BUCKET;
}
static inline bool holds(const struct hd_worker *w, const struct hd_pass *p, uint32_t v)
{
	for (uint32_t k = 0; k < p->nranges; k++)
		if (v - w->passes->range[p->first_range + k].first < w->passes->range[p->first_range + k].n)
			return true;
	return false;
}
uint32_t hd_dist_nleaves(const struct hd_worker *w, uint32_t pass)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < VNS; v++)
		n += holds(w, w->pass[pass / 2], v);
	return n;
}
void hd_dist_leaves_get(const struct hd_worker *w, uint32_t pass, uint8_t *bytes)
{
	uint32_t n = 0;

	hd_put32(bytes, 1);
	hd_put32(bytes + 4, hd_dist_nleaves(w, pass));
	for (uint32_t v = 0; v < VNS; v++)
		if (holds(w, w->pass[pass / 2], v)) {
			uint8_t *at = bytes + HEAD + n++ * ENTRY;
			hd_put32(at, v);
			hd_put32(at + 4, 77);
			hd_put64(at + 8, w->step * 100 + v);
		}
}
enum hd_err hd_dist_leaves_put(struct hd_worker *w, uint16_t from, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag)
{
	uint32_t v = hd_get32(bytes + HEAD);

	(void)from;
	if (v == VNS)                             /* what a test puts there to be refused */
		return hd_fail(diag, HD_E_INTEGRITY, "refused");
	CHECK(len == HEAD + ENTRY && hd_get32(bytes) == 1 && hd_get32(bytes + 4) == 1 && v < VNS &&
		hd_get32(bytes + HEAD + 4) == 77, "entry of %u", v);
	CHECK(hd_get64(bytes + HEAD + 8) == w->step * 100 + v, "virtual node %u: an entry of another step",
		v);
	assert_false(w->known[v]);
	w->known[v] = true;
	return HD_OK;
}

/* ---- the net ---- */

struct post { uint32_t transfer; void *buffer; };
struct sent { uint32_t transfer; int32_t priority; const void *bytes; uint64_t len, step; };
struct channel {
	struct hd_transfer in[ROWS], out[ROWS];
	size_t n_in, n_out;
	struct post post[POSTS];
	struct sent sent[POSTS];
	uint32_t nposts, nsent, nopened;
	uint64_t mail_token[POSTS]; uint32_t nmail;       /* of mail between stages, in order */
};

/* `up`: also of a member with itself, so that a relay that would call itself shows. */
struct node { struct hd_hub *hub; struct hd_worker w; struct hd_relay r; struct hd_exchange x;
	struct channel with[MOST]; bool up[MOST], one_came[NB]; };

static struct world {
	uint32_t n, copies;
	struct hd_view view;
	struct hd_layout layout;
	struct hd_chunk chunk[CHUNKS];
	struct hd_segment segment[CHUNKS];
	struct hd_passes passes;
	struct node *node[MOST];
	enum hd_err fails;                        /* what post and send say, from the `fail_at`th call on */
	uint32_t fail_at, ncalls;
	bool lost;                                /* they say that the other is lost */
} *world;

static inline uint32_t id_of_member(uint32_t m) { return 3 + 4 * m; }
static inline uint32_t member_of_hub(const struct hd_hub *hub) { return (uint32_t)((uintptr_t)hub / 64 - 1); }
static inline struct channel *channel_of(struct hd_hub *hub,
	uint32_t worker) { return &world->node[member_of_hub(hub)]->with[(worker - 3) / 4]; }

bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker)
{
	assert_true(worker >= 3 && (worker - 3) % 4 == 0 && (worker - 3) / 4 < world->n);
	return world->node[member_of_hub(hub)]->up[(worker - 3) / 4];
}

static inline enum hd_err trouble(struct hd_diag *diag)
{
	world->ncalls++;
	if (world->fails && world->ncalls == world->fail_at)
		return hd_fail(diag, world->fails, "trouble");
	CHECK(!world->fails || world->lost || world->ncalls < world->fail_at, "a call after one that failed");
	return HD_OK;
}

static inline void rows_rise(const struct hd_transfer *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(row[i].bytes && !row[i].grants && (!i || row[i - 1].id < row[i].id), "row %zu is %u",
			i, row[i].id);
}

enum hd_err hd_hub_channel(struct hd_hub *hub, uint32_t worker, const struct hd_transfer *in, size_t n_in,
	const struct hd_transfer *out, size_t n_out,
	struct hd_diag *diag)
{
	struct channel *c = channel_of(hub, worker);

	assert_true(n_in <= ROWS && n_out <= ROWS && hd_hub_is_up(hub, worker));
	rows_rise(in, n_in);
	rows_rise(out, n_out);
	memcpy(c->in, in, n_in * sizeof *in);
	memcpy(c->out, out, n_out * sizeof *out);
	c->n_in = n_in;
	c->n_out = n_out;
	c->nopened++;
	return trouble(diag);
}

static inline uint64_t row_bytes(const struct hd_transfer *row, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (row[i].id == id)
			return row[i].bytes;
	return 0;
}

enum hd_err hd_hub_post(struct hd_hub *hub, uint32_t worker, uint32_t transfer, void *buffer,
	struct hd_diag *diag)
{
	struct channel *c = channel_of(hub, worker);

	CHECK(row_bytes(c->in, c->n_in, transfer) && buffer, "member %u: no row %u, or no place",
		member_of_hub(hub), transfer);
	for (uint32_t i = 0; i < c->nposts; i++)
		CHECK(c->post[i].transfer != transfer, "member %u: %u is posted twice", member_of_hub(hub),
			transfer);
	if (world->lost)
		return hd_fail(diag, HD_E_PEERLOST, "lost");
	enum hd_err err = trouble(diag);
	if (!err)
		c->post[c->nposts++] = (struct post){ transfer, buffer };
	return err;
}

/* Only of what is awaited. */
void hd_hub_want(struct hd_hub *hub, uint32_t worker, uint32_t transfer)
{
	struct channel *c = channel_of(hub, worker);
	bool posted = false;

	for (uint32_t i = 0; i < c->nposts; i++)
		posted |= c->post[i].transfer == transfer;
	CHECK(posted, "member %u wants %u, which it does not await", member_of_hub(hub), transfer);
}

enum hd_err hd_hub_send(struct hd_hub *hub, uint32_t worker, const struct hd_send *s, struct hd_diag *diag)
{
	struct channel *c = channel_of(hub, worker);

	CHECK(row_bytes(c->out, c->n_out, s->transfer) == s->len &&
		(s->token == s->transfer || s->token >> 63),
		"member %u sends %u of %llu bytes, without a row",
		member_of_hub(hub), s->transfer, (unsigned long long)s->len);
	if (world->lost)
		return hd_fail(diag, HD_E_PEERLOST, "lost");
	enum hd_err err = trouble(diag);
	if (!err)
		c->sent[c->nsent++] = (struct sent){ s->transfer, s->priority, s->bytes, s->len, s->step };
	if (!err && s->token >> 63)
		c->mail_token[c->nmail++] = s->token;
	return err;
}

/* ---- rows ---- */

static inline struct hd_transfers all_rows(void)
{
	struct hd_transfers t;

	hd_transfers_init(&t, &(struct hd_transfers_spec){ .nmembers = world->n, .nvns = VNS, .nbuckets = NB,
		.copies = world->copies });
	return t;
}
static inline uint32_t row_of(enum hd_xfer_kind kind, uint32_t from, uint32_t to, uint32_t number,
	uint32_t ordinal)
{
	struct hd_transfers t = all_rows();
	return hd_transfers_id(&t, (struct hd_xfer_name){ kind, from, to, number, ordinal });
}
static inline struct hd_xfer_name name_of(uint32_t id)
{
	struct hd_transfers t = all_rows();
	struct hd_xfer_name name = { 0 };

	assert_int_equal(hd_transfers_name(&t, id, &name, NULL), HD_OK);
	return name;
}

/* ---- life ---- */

static inline void name_view(uint32_t n, uint32_t epoch)
{
	struct hd_view *v = &world->view;

	*v = (struct hd_view){ .epoch = epoch, .nmembers = n, .nranks = n + 1 };
	for (uint32_t m = 0; m < n; m++)
		v->member[m] = id_of_member(m);
	for (uint32_t r = 0; r < n; r++)
		v->rank[r] = (struct hd_vrank){ id_of_member(r), r ? 1 : VNS - n - 1 };
	v->rank[n] = (struct hd_vrank){ id_of_member(0), 2 };       /* the first has two ranges */
	assert_int_equal(hd_view_verify(v, VNS, NULL), HD_OK);
}

static inline void enter(uint32_t n, uint32_t copies, bool digests)
{
	world = calloc(1, sizeof *world);
	assert_non_null(world);
	world->n = n;
	world->copies = copies;
	for (uint32_t i = 0; i < CHUNKS; i++) {
		world->chunk[i] = (struct hd_chunk){ (uint64_t)i * CHUNK, CHUNK, i, 1 };
		world->segment[i] = (struct hd_segment){ (uint64_t)i * CHUNK, CHUNK, i, i };
	}
	world->layout = (struct hd_layout){ .elems = FLAT, .nsegments = CHUNKS, .nchunks = CHUNKS,
		.segment = world->segment, .chunk = world->chunk };
	name_view(n, 5);
	for (uint32_t m = 0; m < n; m++) {
		struct node *o = world->node[m] = calloc(1, sizeof *o);
		assert_non_null(o);
		o->hub = (struct hd_hub *)(uintptr_t)((m + 1) * 64);
		o->w.digests = digests;
		memset(o->up, true, sizeof o->up);
		assert_int_equal(hd_relay_init(&o->r, o->hub, &o->w, &world->layout, VNS, NULL), HD_OK);
		assert_int_equal(hd_exchange_init(&o->x, VNS, NB, copies, NULL), HD_OK);
		o->r.digest_every = copies ? EVERY : 0;
		for (uint32_t p = 0; p < PASSES; p++)
			o->r.engine_pass[p] = engine_pass(p);
		hd_relay_epoch(&o->r, 5);
		hd_relay_view(&o->r, &world->view, id_of_member(m));
	}
}

static inline void leave(void)
{
	for (uint32_t m = 0; m < world->n; m++) {
		hd_relay_finish(&world->node[m]->r);
		hd_exchange_finish(&world->node[m]->x);
		free(world->node[m]);
	}
	free(world);
}

/* ---- a step ---- */

/* What there was of a step that is taken up again; members are bits. Without `again` the step begins. */
struct scene { const char *what; uint32_t n, copies; bool digests, again, repaired, empty; uint64_t have[NB],
	parm[NB], chain[NB], table, done; };

static inline void begin(const struct scene *s, uint64_t step)
{
	struct hd_have have[NB], parm[NB], chain[NB];
	uint64_t slots[NB];
	struct hd_passes whole;

	assert_int_equal(hd_passes_of_view(&world->passes, &world->view), HD_OK);
	whole = world->passes;
	/* the last member's part was computed by others: by the first in two more passes, by the second
	 * in one */
	if (s->repaired) {
		const struct hd_vrange all[] = { { 0, 1 }, { 3, 1 }, { 1, 2 }, { 4, 1 }, { 5, 3 } };
		world->passes.npasses = world->passes.nranges = 0;
		assert_int_equal(hd_passes_add(&world->passes, id_of_member(0), 0, all, 2), HD_OK);
		assert_int_equal(hd_passes_add(&world->passes, id_of_member(0), 1, all + 2, 1), HD_OK);
		assert_int_equal(hd_passes_add(&world->passes, id_of_member(1), 0, all + 3, 1), HD_OK);
		assert_int_equal(hd_passes_add(&world->passes, id_of_member(1), 1, all + 4, 1), HD_OK);
	}
	if (s->empty)
		world->passes.npasses = world->passes.nranges = 0;
	for (uint32_t b = 0; b < NB; b++) {
		have[b] = (struct hd_have){ b, s->have[b] };
		parm[b] = (struct hd_have){ b, s->parm[b] };
		chain[b] = (struct hd_have){ b, s->chain[b] };
		slots[b] = hd_bucket_chain(b, NB, s->n, s->copies);
	}
	for (uint32_t m = 0; m < s->n; m++) {
		struct node *o = world->node[m];
		uint32_t me = id_of_member(m), at = 0;
		assert_int_equal(hd_exchange_begin(&o->x, &world->view, me, step,
			s->again ? &whole : &world->passes, slots, NULL), HD_OK);
		for (uint32_t b = 0; b < NB; b++) {
			if (s->have[b] >> m & 1)
				assert_true(hd_exchange_sum(&o->x, b));
			if (s->parm[b] >> m & 1)
				assert_true(hd_exchange_parm(&o->x, b));
		}
		if (s->table >> m & 1)
			assert_true(hd_exchange_table(&o->x));
		struct hd_exchange_past past = { .have = have, .parm = parm, .chain = chain, .nhave = NB,
			.nparm = NB, .nchain = NB, .table = s->table,
			.done = s->done };
		if (s->again)
			assert_int_equal(hd_exchange_again(&o->x, &world->view, me, step, &world->passes,
				&past, NULL), HD_OK);
		struct hd_worker w = { .step = step, .digests = s->digests, .passes = &o->x.passes };
		memset(w.sum, 0xff, sizeof w.sum);
		for (uint32_t k = 0; k < FLAT; k++) {
			w.sum[k] = s->have[k / BUCKET] >> m & 1 ? sum_value(step, 0, VNS, k) : -1;
			w.parm[k] = s->parm[k / BUCKET] >> m & 1 ? parm_value(step, k) : -1;
		}
		for (uint32_t i = 0; i < CHUNKS; i++)
			w.norm[i] = s->have[i / HD_BUCKET_CHUNKS] >> m & 1 ? norm_value(step, i) : -1;
		for (uint32_t b = 0; b < NB; b++)
			w.summed[b] = s->have[b] >> m & 1;
		for (uint32_t p = 0; p < o->x.passes.npasses; p++)
			if (o->x.passes.pass[p].worker == me)
				w.pass[at++] = &o->x.passes.pass[p];
		for (uint32_t p = 0; p < at; p++) {
			struct hd_tnode root[VNS];
			uint32_t n, first, end;
			assert_int_equal(hd_ranges_roots(VNS, o->x.passes.range + w.pass[p]->first_range,
				w.pass[p]->nranges, root, VNS, &n), HD_OK);
			for (uint32_t i = 0; i < n; i++) {
				hd_tree_cover(VNS, root[i], &first, &end);
				for (uint32_t k = 0; k < FLAT; k++)
					w.root[p][i][k] = sum_value(step, first, end, k);
			}
		}
		o->w = w;
		/* the holder of parameters has the digests, in the relay that sends them on */
		for (uint32_t i = 0; i < CHUNKS * DIGEST; i++)
			if (s->parm[i / (HD_BUCKET_CHUNKS * DIGEST)] >> m & 1)
				o->r.digest[i] = digest_value(step, i);
		memset(o->one_came, 0, sizeof o->one_came);
	}
}

#endif
