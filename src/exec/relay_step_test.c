/* Relays of all members over a net of the test's own, which has nothing but the four calls that a relay makes: what it opens, posts and sends in a
 * step, of replicated and of sharded state, begun and taken up again. */
#include "exec/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "tests/check.h"

enum { VNS = 8, NB = 5, CHUNK = 4, CHUNKS = NB * HD_BUCKET_CHUNKS - 1, FLAT = CHUNKS * CHUNK, BUCKET = CHUNK * HD_BUCKET_CHUNKS, MOST = 6, PASSES = 3,
	HEAD = 8, ENTRY = 16, DIGEST = 4, POSTS = 512, ROWS = 1024, EVERY = 2 };

/* ---- share.h ---- */

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

static uint32_t nsegments(uint32_t bucket) { return bucket == NB - 1 ? HD_BUCKET_CHUNKS - 1 : HD_BUCKET_CHUNKS; }
static uint32_t share_pass(uint32_t pass) { return 2 * pass + 1; }       /* numbers of share.h are its own */
static float leaf_value(uint64_t step, uint32_t vn, uint32_t at) { return (float)(step * 100000 + (vn + 1) * (at + 3) + vn * vn); }
static float sum_value(uint64_t step, uint32_t first, uint32_t end, uint32_t at)
{
	float sum = 0;

	for (uint32_t v = first; v < end; v++)
		sum += leaf_value(step, v, at);
	return sum;
}
static float parm_value(uint64_t step, uint32_t at) { return (float)(step * 1000 + at) + 0.5f; }
static double norm_value(uint64_t step, uint32_t segment) { return (double)(step * 1000 + segment) + 0.25; }
static uint8_t digest_value(uint64_t step, uint32_t at) { return (uint8_t)(step * 31 + at * 7 + 1); }

uint64_t hd_share_leaves_bytes(const struct hd_worker *w, uint32_t n) { (void)w; return HEAD + (uint64_t)n * ENTRY; }
uint64_t hd_share_digest_bytes(const struct hd_worker *w, uint32_t b) { return w->digests ? (uint64_t)nsegments(b) * DIGEST : 0; }
uint64_t hd_share_norm_bytes(const struct hd_worker *w, uint32_t b) { (void)w; return nsegments(b) * sizeof(double); }
double *hd_share_norm_at(const struct hd_worker *w, uint32_t b) { return (double *)(uintptr_t)w->norm + b * HD_BUCKET_CHUNKS; }
float *hd_share_parm_at(const struct hd_worker *w, uint32_t b) { return (float *)(uintptr_t)w->parm + b * BUCKET; }
float *hd_share_sum_at(const struct hd_worker *w, uint32_t b) { return (float *)(uintptr_t)w->sum + b * BUCKET; }
bool hd_share_summed(const struct hd_worker *w, uint32_t b) { return w->summed[b]; }
void hd_share_digest_get(const struct hd_worker *w, uint32_t b, uint8_t *bytes)
{
	memcpy(bytes, w->digest + b * HD_BUCKET_CHUNKS * DIGEST, nsegments(b) * DIGEST);
}
void hd_share_digest_put(struct hd_worker *w, uint32_t b, const uint8_t *bytes)
{
	memcpy(w->taken + b * HD_BUCKET_CHUNKS * DIGEST, bytes, nsegments(b) * DIGEST);
}
const float *hd_share_root_at(const struct hd_worker *w, uint32_t pass, uint32_t i, uint32_t bucket)
{
	assert_true(pass % 2 && pass / 2 < PASSES && i < VNS);
	return w->root[pass / 2][i] + bucket * BUCKET;
}
static bool holds(const struct hd_worker *w, const struct hd_pass *p, uint32_t v)
{
	for (uint32_t k = 0; k < p->nranges; k++)
		if (v - w->passes->range[p->first_range + k].first < w->passes->range[p->first_range + k].n)
			return true;
	return false;
}
uint32_t hd_share_nleaves(const struct hd_worker *w, uint32_t pass)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < VNS; v++)
		n += holds(w, w->pass[pass / 2], v);
	return n;
}
void hd_share_leaves_get(const struct hd_worker *w, uint32_t pass, uint8_t *bytes)
{
	uint32_t n = 0;

	hd_put32(bytes, 1);
	hd_put32(bytes + 4, hd_share_nleaves(w, pass));
	for (uint32_t v = 0; v < VNS; v++)
		if (holds(w, w->pass[pass / 2], v)) {
			uint8_t *at = bytes + HEAD + n++ * ENTRY;
			hd_put32(at, v);
			hd_put32(at + 4, 77);
			hd_put64(at + 8, w->step * 100 + v);
		}
}
enum hd_err hd_share_leaves_put(struct hd_worker *w, const uint8_t *bytes, uint64_t len, struct hd_diag *diag)
{
	uint32_t v = hd_get32(bytes + HEAD);

	if (v == VNS)                             /* what a test puts there to be refused */
		return hd_fail(diag, HD_E_INTEGRITY, "refused");
	CHECK(len == HEAD + ENTRY && hd_get32(bytes) == 1 && hd_get32(bytes + 4) == 1 && v < VNS && hd_get32(bytes + HEAD + 4) == 77, "entry of %u", v);
	CHECK(hd_get64(bytes + HEAD + 8) == w->step * 100 + v, "virtual node %u: an entry of another step", v);
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
};

struct node { struct hd_hub *hub; struct hd_worker w; struct hd_relay r; struct hd_exchange x; struct channel with[MOST]; bool up[MOST], told[NB]; };

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

static uint32_t id_of_member(uint32_t m) { return 3 + 4 * m; }
static uint32_t member_of_hub(const struct hd_hub *hub) { return (uint32_t)((uintptr_t)hub / 64 - 1); }
static struct channel *channel_of(struct hd_hub *hub, uint32_t worker) { return &world->node[member_of_hub(hub)]->with[(worker - 3) / 4]; }

bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker)
{
	assert_true(worker >= 3 && (worker - 3) % 4 == 0 && (worker - 3) / 4 < world->n);
	return world->node[member_of_hub(hub)]->up[(worker - 3) / 4];
}

static enum hd_err trouble(struct hd_diag *diag)
{
	world->ncalls++;
	if (world->fails && world->ncalls == world->fail_at)
		return hd_fail(diag, world->fails, "trouble");
	CHECK(!world->fails || world->lost || world->ncalls < world->fail_at, "a call after one that failed");
	return HD_OK;
}

static void rows_rise(const struct hd_transfer *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(row[i].bytes && !row[i].slots && (!i || row[i - 1].id < row[i].id), "row %zu is %08x", i, row[i].id);
}

enum hd_err hd_hub_channel(struct hd_hub *hub, uint32_t worker, const struct hd_transfer *in, size_t n_in, const struct hd_transfer *out, size_t n_out,
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

static uint64_t row_bytes(const struct hd_transfer *row, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (row[i].id == id)
			return row[i].bytes;
	return 0;
}

enum hd_err hd_hub_post(struct hd_hub *hub, uint32_t worker, uint32_t transfer, void *buffer, struct hd_diag *diag)
{
	struct channel *c = channel_of(hub, worker);

	CHECK(row_bytes(c->in, c->n_in, transfer) && buffer, "member %u: no row %08x, or no place", member_of_hub(hub), transfer);
	for (uint32_t i = 0; i < c->nposts; i++)
		CHECK(c->post[i].transfer != transfer, "member %u: %08x is posted twice", member_of_hub(hub), transfer);
	if (world->lost)
		return hd_fail(diag, HD_E_PEERLOST, "lost");
	enum hd_err err = trouble(diag);
	if (!err)
		c->post[c->nposts++] = (struct post){ transfer, buffer };
	return err;
}

enum hd_err hd_hub_send(struct hd_hub *hub, uint32_t worker, const struct hd_send *s, struct hd_diag *diag)
{
	struct channel *c = channel_of(hub, worker);

	CHECK(row_bytes(c->out, c->n_out, s->transfer) == s->len && s->token == s->transfer, "member %u sends %08x of %llu bytes, without a row",
		member_of_hub(hub), s->transfer, (unsigned long long)s->len);
	if (world->lost)
		return hd_fail(diag, HD_E_PEERLOST, "lost");
	enum hd_err err = trouble(diag);
	if (!err)
		c->sent[c->nsent++] = (struct sent){ s->transfer, s->priority, s->bytes, s->len, s->step };
	return err;
}

/* ---- life ---- */

static void name_view(uint32_t n, uint32_t epoch)
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

static void enter(uint32_t n, uint32_t copies, bool digests)
{
	world = calloc(1, sizeof *world);
	assert_non_null(world);
	world->n = n;
	world->copies = copies;
	for (uint32_t i = 0; i < CHUNKS; i++) {
		world->chunk[i] = (struct hd_chunk){ (uint64_t)i * CHUNK, CHUNK, i, 1 };
		world->segment[i] = (struct hd_segment){ (uint64_t)i * CHUNK, CHUNK, i, i };
	}
	world->layout = (struct hd_layout){ .elems = FLAT, .nsegments = CHUNKS, .nchunks = CHUNKS, .segment = world->segment, .chunk = world->chunk };
	name_view(n, 5);
	for (uint32_t m = 0; m < n; m++) {
		struct node *o = world->node[m] = calloc(1, sizeof *o);
		assert_non_null(o);
		o->hub = (struct hd_hub *)(uintptr_t)((m + 1) * 64);
		o->w.digests = digests;
		memset(o->up, true, sizeof o->up);
		o->up[m] = false;
		assert_int_equal(hd_relay_init(&o->r, o->hub, &o->w, &world->layout, VNS, NULL), HD_OK);
		assert_int_equal(hd_exchange_init(&o->x, VNS, NB, copies, NULL), HD_OK);
		o->r.digest_every = copies ? EVERY : 0;
		for (uint32_t p = 0; p < PASSES; p++)
			o->r.share_pass[p] = share_pass(p);
		hd_relay_epoch(&o->r, 5);
		hd_relay_view(&o->r, &world->view, id_of_member(m));
	}
}

static void leave(void)
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
struct scene { const char *what; uint32_t n, copies; bool digests, again, repaired, empty; uint64_t have[NB], parm[NB], chain[NB], table, done; };

static void begin(const struct scene *s, uint64_t step)
{
	struct hd_have have[NB], parm[NB], chain[NB];
	uint64_t slots[NB];
	struct hd_passes whole;

	assert_int_equal(hd_passes_of_view(&world->passes, &world->view), HD_OK);
	whole = world->passes;
	if (s->repaired) {                        /* the last member's share was computed by others: by the first in two more passes, by the second in one */
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
		assert_int_equal(hd_exchange_begin(&o->x, &world->view, me, step, s->again ? &whole : &world->passes, slots, NULL), HD_OK);
		for (uint32_t b = 0; b < NB; b++) {
			if (s->have[b] >> m & 1)
				assert_true(hd_exchange_sum(&o->x, b) && (!s->copies || hd_exchange_norm(&o->x, b)));
			if (s->parm[b] >> m & 1)
				assert_true(hd_exchange_parm(&o->x, b));
		}
		if (s->table >> m & 1)
			assert_true(hd_exchange_table(&o->x));
		struct hd_exchange_past past = { .have = have, .parm = parm, .chain = chain, .nhave = NB, .nparm = NB, .nchain = NB, .table = s->table,
			.done = s->done };
		if (s->again)
			assert_int_equal(hd_exchange_again(&o->x, &world->view, me, step, &world->passes, &past, NULL), HD_OK);
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
			assert_int_equal(hd_ranges_roots(VNS, o->x.passes.range + w.pass[p]->first_range, w.pass[p]->nranges, root, VNS, &n), HD_OK);
			for (uint32_t i = 0; i < n; i++) {
				hd_tree_cover(VNS, root[i], &first, &end);
				for (uint32_t k = 0; k < FLAT; k++)
					w.root[p][i][k] = sum_value(step, first, end, k);
			}
		}
		o->w = w;
		for (uint32_t i = 0; i < CHUNKS * DIGEST; i++)    /* who has the parameters has the digests, in the relay that sends them on */
			if (s->parm[i / (HD_BUCKET_CHUNKS * DIGEST)] >> m & 1)
				o->r.digest[i] = digest_value(step, i);
		memset(o->told, 0, sizeof o->told);
	}
}

static bool digests_in(const struct scene *s, uint64_t step) { return s->copies && s->digests && (step + 1) % EVERY == 0; }

/* The sum of a bucket is here: it goes on, and if this one is the first of its line, so do its sums of squares. */
static void sum_here(struct node *o, uint32_t b)
{
	o->w.summed[b] = true;
	assert_int_equal(hd_relay_sum(&o->r, b, hd_exchange_sum_to(&o->x, b), NULL), HD_OK);
	for (uint32_t i = 0; i < nsegments(b); i++)
		o->w.norm[b * HD_BUCKET_CHUNKS + i] = norm_value(o->w.step, b * HD_BUCKET_CHUNKS + i);
	if (!o->x.copies || hd_exchange_source(&o->x, b) != o->x.me)
		return;
	hd_exchange_norm(&o->x, b);
	assert_int_equal(hd_relay_norm(&o->r, b, hd_exchange_norm_to(&o->x), NULL), HD_OK);
}

static void root_here(struct node *o, uint32_t worker, uint32_t ordinal, uint32_t b)
{
	CHECK(hd_exchange_root(&o->x, worker, ordinal, b), "root %u of worker %u, bucket %u", ordinal, worker, b);
	if (!hd_exchange_fold(&o->x, b))
		return;
	const float *const *operand = hd_relay_operands(&o->r, b);
	for (uint32_t i = 0; i < o->r.nroots; i++) {
		uint32_t first, end;
		hd_tree_cover(VNS, o->r.root[i], &first, &end);
		for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
			CHECK(operand[i][k] == sum_value(o->w.step, first, end, b * BUCKET + k), "operand %u of bucket %u, element %u", i, b, k);
	}
	for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
		o->w.sum[b * BUCKET + k] = sum_value(o->w.step, 0, VNS, b * BUCKET + k);
	assert_true(hd_exchange_sum(&o->x, b));
	sum_here(o, b);
}

/* What a member says by itself: roots, entries, and what it had of a step that is taken up again. */
static void speak(const struct scene *s, struct node *o, uint32_t m)
{
	uint32_t at = 0;

	for (uint32_t b = 0; b < NB; b++)
		if (s->have[b] >> m & 1)
			sum_here(o, b);
	for (uint32_t b = 0; b < NB && s->copies; b++)
		if (s->parm[b] >> m & 1 && hd_exchange_parm_source(&o->x, b) == m)
			assert_int_equal(hd_relay_parm(&o->r, b, hd_exchange_parm_to(&o->x, b), NULL), HD_OK);
	for (uint32_t p = 0; p < o->x.passes.npasses; p++)
		if (o->x.passes.pass[p].worker == id_of_member(m))
			hd_relay_leaves(&o->r, at++);
	if (s->table && hd_exchange_table_source(&o->x) == m) {
		for (uint32_t v = 0; v < VNS; v++) {      /* it has the entries of all */
			uint8_t *leaf = o->r.leaf + v * o->r.leaf_len;
			hd_put32(leaf, 1);
			hd_put32(leaf + 4, 1);
			hd_put32(leaf + HEAD, v);
			hd_put32(leaf + HEAD + 4, 77);
			hd_put64(leaf + HEAD + 8, o->w.step * 100 + v);
		}
		assert_int_equal(hd_relay_table(&o->r, ((UINT64_C(1) << s->n) - 1) & ~s->table, NULL), HD_OK);
	}
	for (uint32_t p = 0, ordinal = 0; p < at; p++) {
		uint32_t first[HD_MAX_PASSES + 1], npasses;
		struct hd_tnode root[HD_VIEW_ROOTS];
		assert_int_equal(hd_passes_roots(&o->x.passes, VNS, id_of_member(m), root, HD_VIEW_ROOTS, first, &npasses), HD_OK);
		if (!s->table) {
			hd_exchange_leaves(&o->x, id_of_member(m), p);
			assert_int_equal(hd_relay_leaves_out(&o->r, p, NULL), HD_OK);
		}
		for (uint32_t b = 0; b < NB; b++) {
			uint32_t to = hd_exchange_source(&o->x, b);
			if (!hd_exchange_wants_roots(&o->x, b))
				continue;
			if (to != m)
				assert_int_equal(hd_relay_roots(&o->r, p, b, id_of_member(to), NULL), HD_OK);
			for (ordinal = first[p]; to == m && ordinal < first[p + 1]; ordinal++)
				root_here(o, id_of_member(m), ordinal, b);
		}
	}
	assert_int_equal(hd_relay_leaves_out(&o->r, at, NULL), HD_OK);     /* no such pass: nothing */
}

static void take(struct node *o, uint32_t worker, const struct hd_relay_news *news)
{
	uint32_t b = news->bucket, segment = b * HD_BUCKET_CHUNKS;
	bool digest = o->r.digest_every && (o->w.step + 1) % o->r.digest_every == 0 && o->w.digests;

	switch (news->kind) {
	case HD_TRANSFER_ROOT: root_here(o, worker, news->ordinal, b); break;
	case HD_TRANSFER_LEAVES:
		if (news->pass_done)
			CHECK(hd_exchange_leaves(&o->x, worker, news->pass), "pass %u of worker %u came twice", news->pass, worker);
		break;
	case HD_TRANSFER_TABLE: assert_true(hd_exchange_table(&o->x)); break;
	case HD_TRANSFER_SUM:
		switch ((enum hd_sum_part)news->ordinal) {
		case HD_PART_SUM:
			assert_true(hd_exchange_sum(&o->x, b));
			for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
				CHECK(o->w.sum[b * BUCKET + k] == sum_value(o->w.step, 0, VNS, b * BUCKET + k), "the sum of bucket %u, element %u", b, k);
			assert_false(news->parm_done);
			sum_here(o, b);
			break;
		case HD_PART_NORM:
			hd_exchange_norm(&o->x, b);
			for (uint32_t i = 0; i < nsegments(b); i++)
				CHECK(o->r.norm[segment + i] == norm_value(o->w.step, segment + i), "sums of squares of bucket %u", b);
			break;
		case HD_PART_PARM: case HD_PART_DIGEST:
			CHECK(news->parm_done == (o->told[b] || !digest), "bucket %u: both of two parts are news", b);
			o->told[b] = true;
			if (!news->parm_done)
				break;
			assert_true(hd_exchange_parm(&o->x, b));
			for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
				CHECK(o->w.parm[b * BUCKET + k] == parm_value(o->w.step, b * BUCKET + k), "parameters of bucket %u", b);
			break;
		case HD_NPARTS: fail();
		}
	}
}

/* One transfer that was sent and is awaited, from a to m; `last`: the one that was sent last. False: none. */
static bool deliver(struct node *o, uint32_t m, uint32_t a, bool last)
{
	struct channel *from = &world->node[a]->with[m], *to = &o->with[a];

	for (uint32_t n = 0; n < from->nsent; n++) {
		uint32_t i = last ? from->nsent - 1 - n : n;
		struct sent s = from->sent[i];
		for (uint32_t k = 0; k < to->nposts; k++) {
			if (to->post[k].transfer != s.transfer)
				continue;
			struct hd_arrival arrival = { .worker = id_of_member(a), .transfer = s.transfer, .step = s.step, .buffer = to->post[k].buffer,
				.len = s.len };
			struct hd_relay_news news;
			struct hd_diag diag = { "" };
			memcpy(to->post[k].buffer, s.bytes, s.len);
			from->sent[i] = from->sent[--from->nsent];
			to->post[k] = to->post[--to->nposts];
			CHECK(!hd_relay_arrived(&o->r, &arrival, &news, &diag), "%s", diag.text);
			take(o, arrival.worker, &news);
			return true;
		}
	}
	return false;
}

/* The slots of its own buckets are brought on. */
static bool update(const struct scene *s, struct node *o, uint32_t m, uint64_t step)
{
	uint8_t own[NB];
	bool any = false;

	if (!s->copies || !hd_exchange_may_update(&o->x))
		return false;
	for (uint32_t b = 0; b < NB; b++)
		any |= own[b] = hd_exchange_chained(&o->x, b) && !hd_exchange_fresh(&o->x, b);
	if (!any)
		return false;
	hd_relay_take_norms(&o->r);
	for (uint32_t i = 0; i < CHUNKS; i++)
		CHECK(o->w.norm[i] == norm_value(step, i), "%s: sums of squares of segment %u at %u", s->what, i, m);
	for (uint32_t b = 0; b < NB; b++)
		for (uint32_t k = 0; k < nsegments(b) * CHUNK && own[b]; k++) {
			o->w.parm[b * BUCKET + k] = parm_value(step, b * BUCKET + k);
			o->w.digest[b * BUCKET + k] = digest_value(step, b * BUCKET + k);
		}
	hd_relay_own_digests(&o->r, own);
	for (uint32_t b = 0; b < NB; b++)
		if (own[b]) {
			assert_true(hd_exchange_parm(&o->x, b));
			if (hd_exchange_parm_source(&o->x, b) == m)
				assert_int_equal(hd_relay_parm(&o->r, b, hd_exchange_parm_to(&o->x, b), NULL), HD_OK);
		}
	return true;
}

static void check_end(const struct scene *s, struct node *o, uint32_t m, uint64_t step)
{
	uint8_t own[NB];

	CHECK(hd_exchange_complete(&o->x), "%s: step %llu is not complete at %u", s->what, (unsigned long long)step, m);
	for (uint32_t a = 0; a < s->n; a++) {
		CHECK(!o->with[a].nposts && !o->with[a].nsent && !o->r.awaited[a],
			"%s: step %llu, %u from %u: %u posts are left, %u of what it sends, %u awaited", s->what,
			(unsigned long long)step, m, a, o->with[a].nposts, o->with[a].nsent, o->r.awaited[a]);
		CHECK(o->with[a].nopened == (a != m), "%s: %u channels with %u", s->what, o->with[a].nopened, a);
	}
	struct hd_diag diag = { "" };
	CHECK(!hd_relay_take(&o->r, &diag), "%s", diag.text);
	for (uint32_t v = 0; v < VNS; v++) {
		bool mine = s->table >> m & 1;
		for (uint32_t p = 0; p < PASSES && o->w.pass[p] && !s->table; p++)
			mine |= holds(&o->w, o->w.pass[p], v);
		CHECK(o->w.known[v] == !mine, "%s: virtual node %u at %u: taken %d", s->what, v, m, o->w.known[v]);
	}
	for (uint32_t b = 0; b < NB; b++)
		own[b] = hd_exchange_chained(&o->x, b) || s->parm[b] >> m & 1;
	memset(o->w.taken, 0, sizeof o->w.taken);
	hd_relay_take_digests(&o->r, own);
	for (uint32_t i = 0; i < CHUNKS * DIGEST; i++) {
		bool comes = digests_in(s, step) && !own[i / (HD_BUCKET_CHUNKS * DIGEST)];
		CHECK(o->w.taken[i] == (comes ? digest_value(step, i) : 0), "%s: digest %u at %u is %u", s->what, i, m, o->w.taken[i]);
	}
}

static void open_all(void)
{
	for (uint32_t m = 0; m < world->n; m++) {
		struct hd_diag diag = { "" };
		CHECK(!hd_relay_open(&world->node[m]->r, &world->node[m]->x, &diag), "%s", diag.text);
	}
}

static void make_step(const struct scene *s, uint64_t step, bool last)
{
	begin(s, step);
	open_all();
	for (uint32_t m = 0; m < s->n; m++)
		speak(s, world->node[m], m);
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t m = 0; m < s->n; m++) {
			moved |= update(s, world->node[m], m, step);
			for (uint32_t a = 0; a < s->n; a++)
				moved |= deliver(world->node[m], m, a, last);
		}
	}
	for (uint32_t m = 0; m < s->n; m++)
		check_end(s, world->node[m], m, step);
}

/* Rule 1: what one end may send is what the other may be sent. */
static void both_ends_name_the_same_rows(const char *what)
{
	for (uint32_t a = 0; a < world->n; a++)
		for (uint32_t b = 0; b < world->n; b++) {
			const struct channel *out = &world->node[a]->with[b], *in = &world->node[b]->with[a];
			CHECK(out->n_out == in->n_in && !memcmp(out->out, in->in, in->n_in * sizeof *in->in), "%s: %u to %u: %zu rows, %zu", what,
				a, b, out->n_out, in->n_in);
		}
}

static const struct scene scenes[] = {
	{ "one", .n = 1 },
	{ "one, sharded", .n = 1, .copies = 1, .digests = true },
	{ "two", .n = 2 },
	{ "four", .n = 4 },
	{ "more members than buckets", .n = 6 },
	{ "more members than buckets, sharded", .n = 6, .copies = 2, .digests = true },
	{ "two copies of two", .n = 2, .copies = 2, .digests = true },
	{ "two copies of three", .n = 3, .copies = 2, .digests = true },
	{ "two copies of four", .n = 4, .copies = 2 },
	{ "one copy of three", .n = 3, .copies = 1, .digests = true },
	{ "more copies than members", .n = 3, .copies = 5, .digests = true },
	{ "again, nothing was there", .n = 3, .again = true },
	{ "again, with repairs", .n = 3, .again = true, .repaired = true },
	{ "again, some sums", .n = 3, .again = true, .repaired = true, .have = { 4, 0, 3, 0, 2 } },
	{ "again, some sums and a table", .n = 3, .again = true, .have = { 6, 7, 0, 1, 4 }, .table = 6 },
	{ "again, all is here", .n = 3, .again = true, .empty = true, .have = { 1, 7, 2, 4, 6 }, .table = 2 },
	{ "again, sharded: sums at the chain", .n = 3, .copies = 2, .digests = true, .again = true, .have = { 1, 0, 6, 2, 0 }, .chain = { 3, 3, 6, 6, 5 } },
	{ "again, sharded: another chain", .n = 4, .copies = 2, .digests = true, .again = true, .repaired = true, .have = { 8, 0, 8, 4, 1 },
		.chain = { 12, 9, 9, 6, 3 } },
	{ "again, sharded: parameters are here", .n = 3, .copies = 2, .digests = true, .again = true, .have = { 3, 3, 6, 6, 5 },
		.parm = { 6, 3, 2, 7, 4 }, .chain = { 3, 3, 6, 6, 5 }, .table = 7 },
	{ "again, sharded: some have sealed", .n = 3, .copies = 2, .digests = true, .again = true, .have = { 3, 3, 6, 6, 5 }, .parm = { 6, 6, 6, 6, 6 },
		.chain = { 3, 3, 6, 6, 5 }, .table = 7, .done = 4 },
};

static void each_step_brings_what_it_lacks_and_nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		for (uint32_t last = 0; last < 2; last++)
			for (uint64_t step = 4; step < 6; step++) {
				const struct scene *s = &scenes[i];
				enter(s->n, s->copies, s->digests);
				make_step(s, step, last);
				both_ends_name_the_same_rows(s->what);
				struct scene next = { s->what, s->n, s->copies, .digests = s->digests };
				make_step(&next, step + 1, last);  /* in the same channels */
				make_step(&next, step + 2, !last);
				leave();
			}
}

/* Rule 1, spelled out for three and four members: what may go of each bucket from whom to whom, by numbers of members. */
static void what_may_go_of_a_bucket_follows_from_the_view_and_the_step(void **state)
{
	static const char *parts[] = { "sum", "norm", "parm", "digest" };
	static const struct { struct scene scene; const char *rows[NB]; } cases[] = {
		{ { "three", .n = 3 }, {
			"sum 0>1 0>2",
			"sum 0>1 0>2",
			"sum 1>0 1>2",
			"sum 1>0 1>2",
			"sum 2>0 2>1",
		} },
		{ { "three, again", .n = 3, .again = true, .have = { 4, 6, 2, 5, 1 } }, {
			"sum 0>1 0>2 2>0 2>1",
			"sum 0>1 0>2 2>0 2>1",
			"sum 1>0 1>2",
			"sum 1>0 1>2 2>0 2>1",
			"sum 0>1 0>2 2>0 2>1",
		} },
		{ { "sharded", .n = 3, .copies = 2, .digests = true }, {
			"sum 0>1 1>0 norm 0>1 0>2 parm 1>0 1>2 digest 1>0 1>2",
			"sum 0>1 1>0 norm 0>1 0>2 parm 1>0 1>2 digest 1>0 1>2",
			"sum 1>2 2>1 norm 1>0 1>2 parm 2>0 2>1 digest 2>0 2>1",
			"sum 1>2 2>1 norm 1>0 1>2 parm 2>0 2>1 digest 2>0 2>1",
			"sum 0>2 2>0 norm 2>0 2>1 parm 0>1 0>2 digest 0>1 0>2",
		} },
		{ { "sharded, more copies", .n = 3, .copies = 9 }, {
			"sum 0>1 0>2 1>0 1>2 2>0 2>1 norm 0>1 0>2 parm 2>0 2>1",
			"sum 0>1 0>2 1>0 1>2 2>0 2>1 norm 0>1 0>2 parm 2>0 2>1",
			"sum 0>1 0>2 1>0 1>2 2>0 2>1 norm 1>0 1>2 parm 0>1 0>2",
			"sum 0>1 0>2 1>0 1>2 2>0 2>1 norm 1>0 1>2 parm 0>1 0>2",
			"sum 0>1 0>2 1>0 1>2 2>0 2>1 norm 2>0 2>1 parm 1>0 1>2",
		} },
		{ { "sharded, again", .n = 4, .copies = 2, .digests = true, .again = true, .have = { 8, 0, 4, 4, 9 }, .chain = { 12, 9, 9, 6, 3 },
			.parm = { 0, 0, 1, 8, 0 } }, {
			"sum 0>1 0>2 0>3 1>0 1>2 1>3 2>0 2>1 2>3 3>0 3>1 3>2 norm 0>1 0>2 0>3 3>0 3>1 3>2"
				" parm 1>0 1>2 1>3 2>0 2>1 2>3 digest 1>0 1>2 1>3 2>0 2>1 2>3",
			"sum 0>1 0>3 1>0 1>3 3>0 3>1 norm 0>1 0>2 0>3 parm 1>0 1>2 1>3 3>0 3>1 3>2 digest 1>0 1>2 1>3 3>0 3>1 3>2",
			"sum 0>1 0>2 0>3 1>0 1>2 1>3 2>0 2>1 2>3 3>0 3>1 3>2 norm 1>0 1>2 1>3 2>0 2>1 2>3"
				" parm 0>1 0>2 0>3 2>0 2>1 2>3 digest 0>1 0>2 0>3 2>0 2>1 2>3",
			"sum 1>2 1>3 2>1 2>3 3>1 3>2 norm 2>0 2>1 2>3 parm 3>0 3>1 3>2 digest 3>0 3>1 3>2",
			"sum 0>1 0>3 1>0 1>3 3>0 3>1 norm 3>0 3>1 3>2 parm 0>1 0>2 0>3 1>0 1>2 1>3 digest 0>1 0>2 0>3 1>0 1>2 1>3",
		} },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct scene *s = &cases[i].scene;
		enter(s->n, s->copies, s->digests);
		begin(s, 4);
		open_all();
		for (uint32_t b = 0; b < NB; b++) {
			char text[400] = "";
			size_t len = 0;
			for (uint32_t part = 0; part < HD_NPARTS; part++) {
				bool any = false;
				for (uint32_t from = 0; from < s->n; from++)
					for (uint32_t to = 0; to < s->n; to++) {
						const struct channel *c = &world->node[from]->with[to];
						if (!row_bytes(c->out, c->n_out, 1u << 30 | part << 20 | b))
							continue;
						len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %u>%u", any || !len ? "" : " ",
							any ? "" : parts[part], from, to);
						any = true;
					}
			}
			CHECK(!strcmp(text, cases[i].rows[b]), "%s: bucket %u: %s", s->what, b, text);
		}
		leave();
	}
}

/* ---- links that come up again ---- */

static bool posted(const struct post *post, uint32_t n, struct post it)
{
	for (uint32_t i = 0; i < n; i++)
		if (post[i].transfer == it.transfer && post[i].buffer == it.buffer)
			return true;
	return false;
}

/* What may be posted though it came: entries of a pass that is not whole, and both parts of parameters of which one is here. */
static bool comes_again(const struct node *o, uint32_t worker, uint32_t transfer)
{
	uint32_t number = transfer & 0xfffff, part = transfer >> 20 & 0x3ff;

	if (transfer >> 30 == HD_TRANSFER_SUM)
		return part >= HD_PART_PARM && o->told[number] && !hd_exchange_fresh(&o->x, number);
	for (uint32_t i = 0; i < o->x.passes.npasses && transfer >> 30 == HD_TRANSFER_LEAVES; i++)
		if (o->x.passes.pass[i].worker == worker && holds(&o->w, &o->x.passes.pass[i], number))
			return !hd_exchange_has_leaves(&o->x, i);
	return false;
}

static void come_up_again(const struct scene *s, uint32_t m, uint32_t a)
{
	struct node *o = world->node[m];
	struct channel *c = &o->with[a];
	struct post before[POSTS];
	uint32_t n = c->nposts;

	memcpy(before, c->post, n * sizeof *before);
	c->nposts = 0;
	o->up[a] = false;
	assert_int_equal(hd_relay_open(&o->r, &o->x, NULL), HD_OK);        /* to whom there is no link nothing is opened */
	CHECK(!c->nposts && c->nopened == 1, "%s: %u opens a channel to %u without a link", s->what, m, a);
	o->up[a] = true;
	assert_int_equal(hd_relay_up(&o->r, id_of_member(a), NULL), HD_OK);
	CHECK(c->nopened == 2 && o->r.awaited[a] == c->nposts, "%s: %u of %u are awaited", s->what, o->r.awaited[a], c->nposts);
	for (uint32_t i = 0; i < n; i++)
		CHECK(posted(c->post, c->nposts, before[i]), "%s: %08x from %u to %u is not posted again", s->what, before[i].transfer, a, m);
	for (uint32_t i = 0; i < c->nposts; i++)
		CHECK(posted(before, n, c->post[i]) || comes_again(o, id_of_member(a), c->post[i].transfer), "%s: %08x from %u to %u came, and is posted again",
			s->what, c->post[i].transfer, a, m);
	n = c->nposts;
	assert_int_equal(hd_relay_open(&o->r, &o->x, NULL), HD_OK);        /* and once it is open, nothing more */
	CHECK(c->nopened == 2 && c->nposts == n, "%s: %u opens to %u what is open", s->what, m, a);
}

static void a_link_that_is_up_again_is_given_places_for_what_did_not_come(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
		const struct scene *s = &scenes[i];
		uint32_t total = UINT32_MAX;
		for (uint32_t cut = 0; cut < total; cut += 5) {
			enter(s->n, s->copies, s->digests);
			begin(s, 5);
			open_all();
			for (uint32_t m = 0; m < s->n; m++)
				speak(s, world->node[m], m);
			uint32_t moves = 0;
			for (bool moved = true; moved && moves < cut;) {
				moved = false;
				for (uint32_t m = 0; m < s->n; m++) {
					moved |= update(s, world->node[m], m, 5);
					for (uint32_t a = 0; a < s->n && moves < cut; a++) {
						bool one = deliver(world->node[m], m, a, cut & 1);
						moves += one;
						moved |= one;
					}
				}
			}
			total = moves < cut ? cut : total;        /* all of it came: the last time */
			for (uint32_t m = 0; m < s->n; m++)
				for (uint32_t a = 0; a < s->n; a++)
					if (a != m)
						come_up_again(s, m, a);
			leave();
		}
	}
}

/* ---- trouble ---- */

static enum hd_err say_all(struct node *o, struct hd_diag *diag)
{
	enum hd_err err = hd_relay_open(&o->r, &o->x, diag);

	err = err ? err : hd_relay_leaves_out(&o->r, 0, diag);
	err = err ? err : hd_relay_table(&o->r, 6, diag);
	for (uint32_t b = 0; b < NB && !err; b++) {
		if (hd_bucket_owner(b, NB, 3) != 0)
			err = hd_relay_roots(&o->r, 0, b, id_of_member(hd_bucket_owner(b, NB, 3)), diag);
		else
			err = hd_relay_norm(&o->r, b, 6, diag);
	}
	err = err ? err : hd_relay_sum(&o->r, 0, 2, diag);
	return err ? err : hd_relay_parm(&o->r, 4, 6, diag);
}

static void trouble_of_the_wire_is_told_at_once_and_a_loss_by_itself(void **state)
{
	const struct scene s = { "trouble", .n = 3, .copies = 2, .digests = true };
	enum hd_err err = HD_E_IO;
	uint32_t at = 0;

	(void)state;
	while (err) {
		struct hd_diag diag = { "" };
		enter(3, 2, true);
		begin(&s, 5);
		world->fails = HD_E_IO;
		world->fail_at = ++at;
		world->node[0]->x.chain[4] = 1;           /* so that it has all of its kinds to send */
		err = say_all(world->node[0], &diag);
		CHECK(err ? err == HD_E_IO && !strcmp(diag.text, "trouble") : at == world->ncalls + 1, "call %u of %u: %s", at, world->ncalls, diag.text);
		leave();
	}
	assert_true(at > 40);
	enter(3, 2, true);
	begin(&s, 5);
	world->lost = true;
	assert_int_equal(say_all(world->node[0], NULL), HD_OK);
	for (uint32_t m = 0; m < 3; m++)
		assert_int_equal(world->node[0]->r.awaited[m], 0);
	leave();
}

static void without_memory_a_step_is_not_opened(void **state)
{
	const struct scene s = { "memory", .n = 3 }, more = { "memory", .n = 3, .again = true, .repaired = true };
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (uint64_t n = 1; err; n++) {
		for (uint32_t first = 0; first < 2; first++) {    /* where it has none yet, and where there are too few */
			struct hd_diag diag = { "" };
			enter(3, 0, false);
			if (first)
				make_step(&s, 4, false);
			world->view.epoch++;
			hd_relay_epoch(&world->node[0]->r, world->view.epoch);
			hd_relay_view(&world->node[0]->r, &world->view, id_of_member(0));
			begin(&more, 5);
			hd_alloc_arm(n);
			err = hd_relay_open(&world->node[0]->r, &world->node[0]->x, &diag);
			hd_alloc_arm(0);
			CHECK(err == HD_OK || (err == HD_E_NOMEM && strstr(diag.text, "no memory")), "request %u: %s", (uint32_t)n, diag.text);
			if (n == 1)
				assert_int_equal(err, HD_E_NOMEM);
			leave();
		}
	}
}

static void an_entry_that_is_refused_ends_the_taking(void **state)
{
	const struct scene s = { "entries", .n = 2 };
	struct hd_diag diag = { "" };

	(void)state;
	enter(2, 0, false);
	make_step(&s, 4, false);
	struct node *o = world->node[1];          /* virtual nodes 0 .. 4, 6 and 7 came */
	memset(o->w.known, 0, sizeof o->w.known);
	hd_put32(o->r.leaf + 2 * o->r.leaf_len + HEAD, VNS);
	assert_int_equal(hd_relay_take(&o->r, &diag), HD_E_INTEGRITY);
	assert_string_equal(diag.text, "refused");
	assert_true(o->w.known[0] && o->w.known[1] && !o->w.known[3]);
	leave();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_brings_what_it_lacks_and_nothing_else),
		cmocka_unit_test(what_may_go_of_a_bucket_follows_from_the_view_and_the_step),
		cmocka_unit_test(a_link_that_is_up_again_is_given_places_for_what_did_not_come),
		cmocka_unit_test(trouble_of_the_wire_is_told_at_once_and_a_loss_by_itself),
		cmocka_unit_test(without_memory_a_step_is_not_opened),
		cmocka_unit_test(an_entry_that_is_refused_ends_the_taking),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
