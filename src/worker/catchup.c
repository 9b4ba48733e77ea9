#include "worker/catchup.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/failpoint.h"

enum { HD_RECORD_SNAP = 1, HD_RECORD_SUM, HD_RECORD_STEP, HD_RECORD_REST, HD_RECORD_EVEN, HD_RECORD_PROBE };
enum { HD_CHUNK_MORE = 1, HD_CHUNK_OVER };

static uint64_t sum_bytes(const struct hd_layout *layout, uint32_t bucket)
{
	return hd_layout_bucket(layout, bucket).len * sizeof(float);
}

/* ---- the source ---- */

void hd_catchup_source_init(struct hd_catchup_source *t, struct hd_worker *worker,
	const struct hd_layout *layout)
{
	assert(worker && layout);
	*t = (struct hd_catchup_source){ .worker = worker, .layout = layout,
		.nsnaps = hd_dist_nsnaps(worker), .nbuckets = hd_dist_nfollowed(worker) };
	hd_lock_init(&t->lock);
	hd_cond_init(&t->less);
}

void hd_catchup_chunk_free(struct hd_catchup_chunk *chunk) { hd_free(chunk); }

static void drop_all(struct hd_catchup_source *t)
{
	while (t->first) {
		struct hd_catchup_chunk *next = t->first->next;
		hd_free(t->first);
		t->first = next;
	}
	t->last = NULL;
	t->queued = 0;
}

void hd_catchup_source_finish(struct hd_catchup_source *t)
{
	if (!t->worker)
		return;
	drop_all(t);
	hd_cond_finish(&t->less);
	hd_lock_finish(&t->lock);
	*t = (struct hd_catchup_source){ 0 };
}

static struct hd_catchup_chunk *chunk(struct hd_catchup_source *t, uint8_t kind)
{
	struct hd_catchup_chunk *p = hd_alloc(sizeof *p + HD_CATCHUP_CHUNK);

	if (!p)
		return NULL;
	*p = (struct hd_catchup_chunk){ .number = t->next++, .len = 1 };
	p->bytes[0] = kind;
	t->queued += p->len;
	*(t->last ? &t->last->next : &t->first) = p;
	return t->last = p;
}

/* Chunks are cut where they are full; records are not aligned to them. NULL: no memory. */
static uint8_t *room_for(struct hd_catchup_source *t, size_t *len)
{
	struct hd_catchup_chunk *p = t->last && t->last->len < HD_CATCHUP_CHUNK ? t->last :
		chunk(t, HD_CHUNK_MORE);

	if (!p)
		return NULL;
	if (*len > HD_CATCHUP_CHUNK - p->len)
		*len = HD_CATCHUP_CHUNK - p->len;
	uint8_t *at = p->bytes + p->len;
	p->len += *len;
	t->queued += *len;
	return at;
}

static void put(struct hd_catchup_source *t, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len) {
		size_t n = len;
		uint8_t *at = room_for(t, &n);
		if (!at) {
			t->over = true;
			return;
		}
		memcpy(at, from, n);
		from += n;
		len -= n;
	}
}

static void put_head(struct hd_catchup_source *t, uint32_t kind, uint32_t index, uint64_t step, uint64_t len)
{
	uint8_t head[HD_CATCHUP_HEAD];

	hd_put32(head, kind);
	hd_put32(head + 4, index);
	hd_put64(head + 8, step);
	hd_put64(head + 16, len);
	put(t, head, sizeof head);
}

static void put_rest(struct hd_catchup_source *t, uint32_t kind, uint64_t step)
{
	uint64_t n = hd_dist_rest_bytes(t->worker);
	uint8_t scalars[HD_DIST_SCALARS_BYTES], *rest = hd_alloc(n);

	if (!rest) {
		t->over = true;
		return;
	}
	put_head(t, kind, 0, step, n + (kind == HD_RECORD_STEP ? sizeof scalars : 0));
	if (kind == HD_RECORD_STEP) {
		hd_dist_scalars_get(t->worker, scalars);
		put(t, scalars, sizeof scalars);
	}
	hd_dist_rest_get(t->worker, rest);
	put(t, rest, n);
	hd_free(rest);
}

/* Returns its bytes. */
static uint64_t put_snap(struct hd_catchup_source *t, uint32_t snap, uint64_t step)
{
	uint64_t n = hd_dist_snap_bytes(t->worker, snap);
	uint8_t *bytes = hd_alloc(n);

	if (!bytes) {
		t->over = true;
		return n;
	}
	hd_dist_snap_get(t->worker, snap, bytes);
	put_head(t, HD_RECORD_SNAP, snap, step, n);
	put(t, bytes, n);
	hd_free(bytes);
	return n;
}

/* Sends the sums of the step for all buckets sent before. */
static void follow_step(struct hd_catchup_source *t, uint64_t step)
{
	uint32_t follow = t->given < t->nbuckets ? t->given : t->nbuckets;

	for (uint32_t b = 0; b < follow; b++) {
		put_head(t, HD_RECORD_SUM, b, step - 1, sum_bytes(t->layout, b));
		put(t, hd_dist_follow_at(t->worker, b), sum_bytes(t->layout, b));
	}
	/* where there are no snaps, all is sent once it is proved */
	const bool sent = t->given || t->even;
	put_rest(t, sent ? HD_RECORD_STEP : HD_RECORD_REST, sent ? step - 1 : step);
}

/* Sends more snaps. */
static void add(struct hd_catchup_source *t, uint64_t step, uint64_t budget)
{
	uint64_t spent = 0;

	while (t->given < t->nsnaps && !t->over && t->queued < HD_CATCHUP_QUEUE &&
		(spent == 0 || spent < budget)) {
		uint32_t end = hd_dist_snap_end(t->worker, t->given);
		for (; t->given < end; t->given++)
			spent += put_snap(t, t->given, step);
	}
	if (t->even)
		put_head(t, HD_RECORD_EVEN, 0, step, 0);
}

/* All is sent for the first time. Computed while the I/O thread may take what is queued. */
static void prove(struct hd_catchup_source *t, uint64_t step)
{
	assert(t->given == t->nsnaps && !t->even);
	uint32_t vn = hd_dist_probed(t->worker, step);
	struct hd_hash bits;

	t->unprobed = hd_dist_probe(t->worker, vn, &bits, NULL);
	hd_lock_take(&t->lock);
	put_head(t, HD_RECORD_PROBE, vn, step, t->unprobed ? 0 : sizeof bits);
	put(t, &bits, t->unprobed ? 0 : sizeof bits);
	put_head(t, HD_RECORD_EVEN, 0, step, 0);
	t->even = true;
	if (t->over)
		drop_all(t);
	hd_lock_give(&t->lock);
}

void hd_catchup_source_boundary(struct hd_catchup_source *t, uint64_t step, uint64_t budget)
{
	bool again = t->begun && step == t->at;

	if (again && (t->even || !budget))
		return;
	assert(!t->begun || step >= t->at);
	t->begun = true;
	t->at = step;
	hd_lock_take(&t->lock);
	bool was_over = t->over;
	if (!was_over && !again && t->queued < HD_CATCHUP_QUEUE_MOST)
		follow_step(t, step);
	if (!was_over && t->queued < HD_CATCHUP_QUEUE_MOST)
		add(t, step, budget);
	else if (!again)
		t->over = true;
	if (t->over)                      /* a half record is useless */
		drop_all(t);
	bool whole = t->given == t->nsnaps && !t->even && !t->over;
	hd_lock_give(&t->lock);
	if (whole)
		prove(t, step);
}

bool hd_catchup_source_wait(struct hd_catchup_source *t, int64_t until_ns)
{
	bool in_time = true;

	hd_lock_take(&t->lock);
	while (in_time && t->queued >= HD_CATCHUP_QUEUE)
		in_time = hd_cond_wait(&t->less, &t->lock, until_ns);
	hd_lock_give(&t->lock);
	return in_time;
}

void hd_catchup_source_cancel(struct hd_catchup_source *t)
{
	hd_lock_take(&t->lock);
	t->over = true;
	drop_all(t);
	hd_cond_wake(&t->less);
	hd_lock_give(&t->lock);
}

struct hd_catchup_chunk *hd_catchup_source_take(struct hd_catchup_source *t)
{
	hd_lock_take(&t->lock);
	if (t->over && !t->said_over)          /* without memory: at the next request */
		t->said_over = chunk(t, HD_CHUNK_OVER) != NULL;
	struct hd_catchup_chunk *p = t->first;
	assert((p != NULL) == (t->queued > 0) && (p != NULL) == (t->last != NULL));
	if (p) {
		assert(p->len >= 1 && p->len <= HD_CATCHUP_CHUNK && t->queued >= p->len);
		t->first = p->next;
		t->queued -= p->len;
		if (t->last == p)
			t->last = NULL;
		p->next = NULL;
		hd_cond_wake(&t->less);
	}
	hd_lock_give(&t->lock);
	return p;
}

/* ---- the sink ---- */

enum hd_err hd_catchup_sink_init(struct hd_catchup_sink *p, struct hd_worker *worker,
	const struct hd_layout *layout,
	struct hd_diag *diag)
{
	*p = (struct hd_catchup_sink){ .worker = worker, .layout = layout, .nsnaps = hd_dist_nsnaps(worker),
		.nbuckets = hd_dist_nfollowed(worker) };
	p->has = hd_alloc(p->nsnaps + 1);
	p->sum = p->has ? hd_alloc((p->nbuckets + 1) * sizeof *p->sum) : NULL;
	if (!p->sum)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a state transfer of %u snaps", p->nsnaps);
	memset(p->has, 0, p->nsnaps);
	return HD_OK;
}

void hd_catchup_sink_finish(struct hd_catchup_sink *p)
{
	hd_free(p->has);
	hd_free(p->sum);
	hd_free(p->room);
	*p = (struct hd_catchup_sink){ 0 };
}

struct catchup_record { uint32_t kind, index; uint64_t step, len; };

static struct catchup_record record_of(const struct hd_catchup_sink *p)
{
	return (struct catchup_record){ hd_get32(p->head), hd_get32(p->head + 4), hd_get64(p->head + 8),
		hd_get64(p->head + 16) };
}

static bool has_all(const struct hd_catchup_sink *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nsnaps; i++)
		n += p->has[i];
	return n == p->nsnaps;
}

/* What a record must be, known from its head; so the buffer is never too small. */
static bool expected(const struct hd_catchup_sink *p, const struct catchup_record *r)
{
	switch (r->kind) {
	case HD_RECORD_SNAP:
		return p->begun && r->step == p->step && p->nsums == 0 && r->index < p->nsnaps &&
			!p->has[r->index]
			&& r->len == hd_dist_snap_bytes(p->worker, r->index);
	case HD_RECORD_SUM:
		/* so the transfer has begun */
		return r->step == p->step && r->index < p->nbuckets && p->has[r->index]
			&& (p->nsums == 0 || p->sum[p->nsums - 1] < r->index) &&
				r->len == sum_bytes(p->layout, r->index);
	case HD_RECORD_STEP:
		return p->begun && r->step == p->step && r->index == 0 &&
			r->len == HD_DIST_SCALARS_BYTES + hd_dist_rest_bytes(p->worker);
	case HD_RECORD_REST:
		return !p->begun && r->index == 0 && r->len == hd_dist_rest_bytes(p->worker);
	case HD_RECORD_PROBE:
		return r->step == p->step && p->nsums == 0 && !p->asked &&
			r->index == hd_dist_probed(p->worker, p->step)
			&& (r->len == 0 || r->len == sizeof(struct hd_hash)) && has_all(p);
	case HD_RECORD_EVEN:
		return p->asked && r->step == p->step && p->nsums == 0 && r->index == 0 && r->len == 0;
	default:
		return false;
	}
}

static enum hd_err take_step(struct hd_catchup_sink *p, struct hd_diag *diag)
{
	uint32_t follow = 0;

	for (uint32_t b = 0; b < p->nbuckets; b++)
		follow += p->has[b];
	if (p->nsums != follow)
		return hd_fail(diag, HD_E_PROTOCOL, "step %llu came with %u of %u sums",
			(unsigned long long)p->step, p->nsums, follow);
	enum hd_err err = hd_dist_apply(p->worker, p->sum, p->nsums, p->room, diag);
	if (!err)
		err = hd_dist_rest_put(p->worker, p->room + HD_DIST_SCALARS_BYTES,
			hd_dist_rest_bytes(p->worker), diag);
	p->nsums = 0;
	p->step++;
	return err;
}

/* The same virtual node, from the received state. */
static enum hd_err compare(struct hd_catchup_sink *p, const struct catchup_record *r, struct hd_diag *diag)
{
	struct hd_hash theirs, mine;
	struct hd_diag why = { "" };
	size_t len = sizeof mine;

	p->asked = true;
	p->unprobed = r->len == 0;
	if (p->unprobed)
		return HD_OK;
	memcpy(&theirs, p->room, sizeof theirs);
	enum hd_err err = hd_dist_probe(p->worker, r->index, &mine, &why);
	p->unprobed = err == HD_E_REFUSED || err == HD_E_NOMEM;
	if (err)
		return p->unprobed ? HD_OK : hd_fail(diag, err, "%s", why.text);
	(void)HD_FAILPOINT_BYTES(LEARN_PROBE, &mine, &len);
	return hd_hash_same(mine, theirs) ? HD_OK : hd_fail(diag, HD_E_INTEGRITY,
		"virtual node %u of step %llu has other bits here than at the member "
		"that sent it the state, with the same state: its memory or its processor gives "
		"wrong bits, or its data are others. It is refused; "
		"have the machine looked at", r->index, (unsigned long long)p->step);
}

static enum hd_err take(struct hd_catchup_sink *p, const struct catchup_record *r, bool *even,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	switch (r->kind) {
	case HD_RECORD_SNAP:
		err = hd_dist_snap_put(p->worker, r->index, p->room, r->len, diag);
		p->has[r->index] = 1;
		break;
	case HD_RECORD_SUM:
		assert(p->nsums < p->nbuckets);   /* their indices rise */
		p->sum[p->nsums++] = r->index;
		break;
	case HD_RECORD_STEP:
		err = take_step(p, diag);
		break;
	case HD_RECORD_PROBE:
		err = compare(p, r, diag);
		break;
	case HD_RECORD_REST:
		err = hd_dist_rest_put(p->worker, p->room, r->len, diag);
		p->step = r->step;
		p->begun = true;
		break;
	default:
		*even = true;
	}
	return err;
}

/* Sums go where an update reads them, all else through the buffer. */
static enum hd_err where(struct hd_catchup_sink *p, const struct catchup_record *r, uint8_t **at,
	struct hd_diag *diag)
{
	if (r->kind == HD_RECORD_SUM) {
		*at = (uint8_t *)hd_dist_sum_at(p->worker, r->index);
		return HD_OK;
	}
	if (r->len > p->room_cap) {
		hd_free(p->room);
		p->room = hd_alloc(r->len);
		p->room_cap = p->room ? r->len : 0;
		if (!p->room)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %llu bytes of the state",
				(unsigned long long)r->len);
	}
	*at = p->room;
	return HD_OK;
}

enum hd_err hd_catchup_sink_feed(struct hd_catchup_sink *p, const uint8_t *bytes, size_t len, bool *even,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	*even = false;
	while (!err) {                    /* until bytes are missing */
		if (p->got < HD_CATCHUP_HEAD) {
			size_t n = len < HD_CATCHUP_HEAD - p->got ? len : HD_CATCHUP_HEAD - (size_t)p->got;
			memcpy(p->head + p->got, bytes, n);
			p->got += n;
			bytes += n;
			len -= n;
			if (p->got < HD_CATCHUP_HEAD)
				break;
		}
		assert(p->got >= HD_CATCHUP_HEAD);
		const struct catchup_record r = record_of(p);
		uint64_t in = p->got - HD_CATCHUP_HEAD;
		uint8_t *at = NULL;
		if (!expected(p, &r))
			return hd_fail(diag, HD_E_PROTOCOL,
				"state transfer: unexpected record of kind %u, index %u, step %llu, %llu "
				"bytes, at step %llu", r.kind,
				r.index, (unsigned long long)r.step, (unsigned long long)r.len,
				(unsigned long long)p->step);
		err = where(p, &r, &at, diag);
		if (err)
			break;
		size_t n = r.len - in < len ? (size_t)(r.len - in) : len;
		/* the buffer is there since the first record, which is never empty */
		memcpy(at + in, bytes, n);
		p->got += n;
		bytes += n;
		len -= n;
		if (p->got - HD_CATCHUP_HEAD < r.len)
			break;
		p->got = 0;
		err = take(p, &r, even, diag);
	}
	return err;
}

enum hd_err hd_catchup_sink_take(struct hd_catchup_sink *p, const uint8_t *chunk, size_t len, bool *even,
	struct hd_diag *diag)
{
	*even = false;
	p->over |= len == 1 && chunk[0] == HD_CHUNK_OVER;
	if (p->over)
		return HD_OK;
	if (len < 2 || chunk[0] != HD_CHUNK_MORE)
		return hd_fail(diag, HD_E_PROTOCOL,
			"state transfer: unknown record type in a chunk of %zu bytes",
			len);
	return hd_catchup_sink_feed(p, chunk + 1, len - 1, even, diag);
}
