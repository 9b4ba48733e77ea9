/* testing_engine.h -- what the members of testing_relay.h compute with: the world that it turns, and
 * dist.h with nothing behind it but sums whose every addend shows. Included by that header alone. */
#ifndef HD_WORKER_TESTING_ENGINE_H
#define HD_WORKER_TESTING_ENGINE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "protocol/member_int.h"
#include "worker/elastic_int.h"
#include "worker/testing_mail.h"
#include "tests/check.h"

enum {
	R_WORKERS = 4, R_VNS = 16, R_BUCKETS = 3, R_CHUNKS = R_BUCKETS * HD_BUCKET_CHUNKS, R_CHUNK = 4,
		R_BUCKET = R_CHUNK * HD_BUCKET_CHUNKS,
	R_FLAT = R_CHUNKS * R_CHUNK, R_TURNS = 200000, R_ENTRY = 16, R_HEAD = 8,
};

struct r_pass { bool computed; struct hd_vrange range[R_VNS]; uint32_t nranges, nroots;
	struct hd_tnode root[R_VNS]; float flat[R_VNS][R_FLAT]; };

/* The worker that the relay asks for addresses: dist.h with nothing behind it. */
struct hd_worker {
	uint64_t at;
	bool begun, computing, computed;
	uint32_t id, map, npasses;        /* map: which of the two vectors of sums; another with each map */
	float sum[2][R_FLAT];
	struct r_pass pass[HD_DIST_PASSES];
	bool summed[R_BUCKETS], known[R_VNS];
};

struct r_world;
struct r_node {
	struct hd_elastic e;
	struct hd_worker w;
	struct hd_elastic_spec spec;
	struct hd_task task;
	struct hd_net_host host;
	struct r_world *world;
	struct hd_command computing;         /* of the pass at hand */
	uint64_t metrics;                    /* 1 + the step of the last METRICS */
	/* its number in dist.h; the bucket that becomes final next; turns that its hand waits, on average */
	uint32_t number, next, slowness;
	struct hd_view adopted;
	bool alive;
};

enum r_fault { R_FENCE, R_CUT, R_LOSE, R_PLAN, R_NFAULTS };
/* mend, fence: turns after it until the link comes up; until a fence */
struct r_plan { enum r_fault kind; uint32_t turn, a, b, mend, fence; bool again; };
enum r_phase { R_IDLE, R_ASKING, R_VIEWING, R_PREPARING, R_DECIDING };

struct r_world {
	struct hd_clock_sim clock;
	struct hd_net_sim net;
	struct hd_layout layout;
	struct hd_chunk chunk[R_CHUNKS];
	struct hd_segment segment[R_CHUNKS];
	struct r_node *node[R_WORKERS];
	char addr[R_WORKERS][HD_ADDR_CAP];
	uint32_t nworkers, turn, fence_at;   /* fence_at: the turn, 0: none is due */
	uint64_t random;
	bool cut[R_WORKERS][R_WORKERS];
	uint32_t mend_at[R_WORKERS][R_WORKERS];
	/* the coordinator */
	enum r_phase phase;
	uint32_t epoch, fence_delay;
	bool sent[R_WORKERS];
	struct hd_view view, next;
	struct hd_msg_view open;
	struct hd_passes passes;
	struct hd_have have[R_BUCKETS];
	uint64_t at[R_WORKERS];
	char what[200];
};

/* what a test looks at besides; NULL: nothing */
__attribute__((unused)) static void (*r_each_turn)(struct r_world *w);
__attribute__((unused)) static bool r_pairs;      /* of the members that are made (exchange.h, rule 11) */
static struct r_world *r_now;             /* its seed and faults are printed with a failure */

static inline uint32_t r_draw(struct r_world *w, uint32_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return n ? (uint32_t)(w->random % n) : 0;
}

/* ---- what is computed ---- */

static inline uint32_t r_leaf(uint64_t step, uint32_t vn, uint32_t at)
{
	uint64_t x = (step + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (vn + 1) *
		UINT64_C(0xbf58476d1ce4e5b9) ^ (at + 1) * UINT64_C(0x94d049bb133111eb);

	x ^= x >> 31;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(x >> 40) % 65536 + 1;            /* so that sixteen of them are exact in a float */
}

static inline float r_sum_of(uint64_t step, uint32_t first, uint32_t end, uint32_t at)
{
	uint32_t sum = 0;

	for (uint32_t v = first; v < end; v++)
		sum += r_leaf(step, v, at);
	return (float)sum;
}

/* Which step and virtual nodes a wrong value is of. */
static inline const char *r_origin(float x, uint32_t at, char text[80])
{
	for (uint64_t s = 0; s < 64; s++)
		for (uint32_t first = 0; first < R_VNS; first++)
			for (uint32_t end = first + 1; end <= R_VNS; end++)
				if (x == r_sum_of(s, first, end, at)) {
					snprintf(text, 80, "that of virtual nodes %u..%u in step %llu", first,
						end - 1, (unsigned long long)s);
					return text;
				}
	snprintf(text, 80, isnan(x) ? "scratch" : "%.0f, of no step", (double)x);
	return text;
}

static inline void r_verify(const struct hd_worker *w, const char *what, uint32_t bucket, const float *at,
	uint32_t first, uint32_t end)
{
	char text[80];

	for (uint32_t i = 0; i < R_BUCKET; i++)
		CHECK(at[i] == r_sum_of(w->at, first, end, bucket * R_BUCKET + i),
			"%s; turn %u: worker %u, step %llu: %s, bucket %u: virtual nodes %u..%u: is %s",
			r_now->what, r_now->turn, w->id,
			(unsigned long long)w->at, what, bucket, first, end - 1,
			r_origin(at[i], bucket * R_BUCKET + i, text));
}

/* ---- dist.h ---- */

uint64_t hd_dist_leaves_bytes(const struct hd_worker *w, uint32_t n) { (void)w;
	return R_HEAD + (uint64_t)n * R_ENTRY; }
uint64_t hd_dist_digest_bytes(const struct hd_worker *w, uint32_t bucket) { (void)w; (void)bucket; return 0;
	}
uint64_t hd_dist_norm_bytes(const struct hd_worker *w, uint32_t bucket) { (void)w; (void)bucket; return 8; }
void hd_dist_digest_get(const struct hd_worker *w, uint32_t bucket, uint8_t *bytes) { (void)w; (void)bucket;
	(void)bytes; }
void hd_dist_digest_put(struct hd_worker *w, uint32_t bucket, const uint8_t *bytes) { (void)w; (void)bucket;
	(void)bytes; }
bool hd_dist_measures(const struct hd_worker *w) { (void)w; return false; }
void hd_dist_ratio_get(const struct hd_worker *w, uint32_t bucket, double *to) { (void)w; (void)bucket;
	(void)to; }
void hd_dist_ratio_put(struct hd_worker *w, uint32_t bucket, const double *from) { (void)w; (void)bucket;
	(void)from; }
double *hd_dist_norm_at(const struct hd_worker *w, uint32_t bucket) { (void)w; (void)bucket; return NULL; }
float *hd_dist_parm_at(const struct hd_worker *w, uint32_t bucket) { (void)w; (void)bucket; return NULL; }
bool hd_dist_summed(const struct hd_worker *w, uint32_t bucket) { return w->summed[bucket]; }
float *hd_dist_sum_at(const struct hd_worker *w,
	uint32_t bucket) { return (float *)(uintptr_t)&w->sum[w->map][bucket * R_BUCKET]; }
uint64_t hd_worker_pulse(struct hd_worker *w) { (void)w; return 0; }

const float *hd_dist_root_at(const struct hd_worker *w, uint32_t pass, uint32_t i, uint32_t bucket)
{
	CHECK(pass < w->npasses && i < w->pass[pass].nroots, "%s: worker %u has no root %u of pass %u",
		r_now->what, w->id, i, pass);
	return &w->pass[pass].flat[i][bucket * R_BUCKET];
}

static inline bool r_in(const struct r_pass *p, uint32_t vn)
{
	for (uint32_t i = 0; i < p->nranges; i++)
		if (vn >= p->range[i].first && vn < p->range[i].first + p->range[i].n)
			return true;
	return false;
}

uint32_t hd_dist_nleaves(const struct hd_worker *w, uint32_t pass)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < R_VNS; v++)
		n += r_in(&w->pass[pass], v);
	return n;
}

void hd_dist_leaves_get(const struct hd_worker *w, uint32_t pass, uint8_t *bytes)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < R_VNS; v++)
		if (r_in(&w->pass[pass], v)) {
			uint8_t *at = bytes + R_HEAD + n++ * R_ENTRY;
			hd_put32(at, v);
			hd_put32(at + 4, 0);
			hd_put64(at + 8, w->at << 32 | r_leaf(w->at, v, R_FLAT));
		}
	hd_put32(bytes, 1);
	hd_put32(bytes + 4, n);
}

enum hd_err hd_dist_leaves_put(struct hd_worker *w, uint16_t from, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag)
{
	uint32_t v = hd_get32(bytes + R_HEAD);

	(void)diag;
	(void)from;
	CHECK(len == R_HEAD + R_ENTRY && hd_get32(bytes + 4) == 1 && v < R_VNS &&
		hd_get64(bytes + R_HEAD + 8) == (w->at << 32 | r_leaf(w->at, v, R_FLAT)),
		"%s; turn %u: worker %u, step %llu: the entry of virtual node %u is one of step %llu",
		r_now->what, r_now->turn, w->id,
		(unsigned long long)w->at, v, (unsigned long long)(hd_get64(bytes + R_HEAD + 8) >> 32));
	w->known[v] = true;
	return HD_OK;
}

unsigned hd_dist_wants(const struct hd_worker *w)
{
	(void)w;
	return HD_DIST_WANTS_METRICS;
}

uint32_t hd_dist_lacks(const struct hd_worker *w)
{
	(void)w;
	return UINT32_MAX;
}

static inline void r_fold(struct hd_worker *w, const struct hd_relay *r, uint32_t bucket,
	const float *const *operand)
{
	for (uint32_t i = 0; i < r->nroots; i++) {
		uint32_t first, end;
		hd_tree_cover(R_VNS, r->root[i], &first, &end);
		r_verify(w, r->of[i].worker == w->id ? "an own root" : "a root that came", bucket, operand[i],
			first, end);
	}
	float *sum = hd_dist_sum_at(w, bucket);
	for (uint32_t k = 0; k < R_BUCKET; k++) {
		sum[k] = 0;
		for (uint32_t i = 0; i < r->nroots; i++)
			sum[k] += operand[i][k];
	}
	r_verify(w, "the sum that was folded", bucket, sum, 0, R_VNS);
	for (uint32_t i = 0; i < r->nroots; i++)          /* what was received is scratch now */
		for (uint32_t k = 0; k < R_BUCKET && r->of[i].worker != w->id; k++)
			((float *)(uintptr_t)operand[i])[k] = NAN;
	w->summed[bucket] = true;
}

static inline struct r_node *r_node_of(const struct hd_worker *w) { return r_now->node[w->id]; }

enum hd_err hd_dist_aside(struct hd_worker *w, const struct hd_tnode *root, const uint16_t *stage,
	uint32_t nroots,
	const struct hd_dist_fold *fold, bool *taken,
	struct hd_diag *diag)
{
	(void)root;
	(void)nroots;
	(void)stage;
	(void)diag;
	*taken = w->computing;
	if (*taken && fold->operand)
		r_fold(w, &r_node_of(w)->e.relay, fold->bucket, fold->operand);
	else if (*taken)
		r_verify(w, "a sum that came", fold->bucket, hd_dist_sum_at(w, fold->bucket), 0, R_VNS);
	if (*taken)
		w->summed[fold->bucket] = true;
	return HD_OK;
}

enum hd_err hd_dist_aside_bring(struct hd_worker *w, uint32_t bucket, bool *brought, struct hd_diag *diag)
{
	(void)w;
	(void)bucket;
	(void)diag;
	*brought = false;
	return HD_OK;
}

/* ---- teaching, and slots of sharded state: none ---- */

enum hd_err hd_elastic_address(const char *text, char transport[16], char addr[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	(void)text;
	(void)transport;
	(void)addr;
	return hd_fail(diag, HD_E_INVAL, "the test connects");
}
const char *hd_elastic_reach(const char *addrs, bool remote, char one[HD_ELASTIC_ADDR]) { (void)remote;
	(void)one; return addrs; }
void hd_elastic_send_state(struct hd_elastic *e, uint32_t learner, bool on) { (void)e; (void)learner;
	(void)on; }
void hd_elastic_send_state_standing(struct hd_elastic *e) { (void)e; }
void hd_elastic_transfer_done(struct hd_elastic *e, const struct hd_command_done *done) { (void)e;
	(void)done; }
void hd_elastic_asked(struct hd_elastic *e, uint32_t learner, const uint8_t *bytes, uint32_t len) { (void)e;
	(void)learner; (void)bytes; (void)len; }
void hd_elastic_invited(struct hd_elastic *e, uint32_t source) { (void)e; (void)source; }
void hd_elastic_answer(struct hd_elastic *e) { (void)e; }
void hd_elastic_chunk_sent(struct hd_elastic *e, const struct hd_sent *sent) { (void)e; (void)sent; }
void hd_elastic_sync(struct hd_elastic *e, uint32_t source, uint64_t step) { (void)e; (void)source;
	(void)step; }
void hd_elastic_promoted(struct hd_elastic *e) { (void)e; }
void hd_elastic_ask(struct hd_elastic *e) { (void)e; }
void hd_elastic_chunk_here(struct hd_elastic *e, const struct hd_arrival *arrival) { (void)e; (void)arrival; }
void hd_elastic_chunk_done(struct hd_elastic *e, const struct hd_command_done *done) { (void)e; (void)done; }
void hd_elastic_peer_lost(struct hd_elastic *e, uint32_t worker) { (void)e; (void)worker; }
void hd_elastic_look_at_notices(struct hd_elastic *e) { (void)e; }
void hd_elastic_look_at_stop(struct hd_elastic *e) { (void)e; }
void hd_elastic_look_at_reading(struct hd_elastic *e) { (void)e; }
void hd_elastic_read_ordered(struct hd_elastic *e, const struct hd_message *m) { (void)e; (void)m; }
void hd_elastic_note(struct hd_elastic *e, const char *kind, const char *text)
{
	(void)e;
	(void)kind;
	(void)text;
}
void hd_elastic_slots_fetch(struct hd_elastic *e, uint64_t step, bool read)
{
	(void)e;
	(void)step;
	(void)read;
}
void hd_elastic_slots_gather(struct hd_elastic *e, const struct hd_command *boundary) { (void)e;
	(void)boundary; }
void hd_elastic_stopped(struct hd_elastic *e, const struct hd_command *d) { (void)e; (void)d; }
void hd_elastic_slots_void(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_saved(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_unsaved(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_forget(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_later(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_again(struct hd_elastic *e, uint32_t worker) { (void)e; (void)worker; }
void hd_elastic_slots_ask(struct hd_elastic *e) { (void)e; }
void hd_elastic_slots_asked(struct hd_elastic *e, uint32_t worker, const uint8_t *bytes,
	uint32_t len) { (void)e; (void)worker; (void)bytes; (void)len; }
bool hd_elastic_slots_here(struct hd_elastic *e, const struct hd_arrival *arrival) { (void)e; (void)arrival;
	return false; }
bool hd_elastic_slots_sent(struct hd_elastic *e, const struct hd_sent *sent) { (void)e; (void)sent;
	return true; }
void hd_elastic_slots_view(struct hd_elastic *e, const struct hd_view *was, const struct hd_view *now)
{
	(void)e;
	(void)was;
	(void)now;
}

#endif
