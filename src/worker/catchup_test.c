#include "worker/catchup.h"

#include "base/alloc.h"
#include "base/le.h"
#include "engine/testing.h"

/* A member steps and sends state; a second worker syncs from its chunks, cut anywhere, at its own pace.
 * Whenever the stream says that all is there, both states are equal bit for bit. */

static uint64_t seed = 7;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static const char two_buckets[] =
	"model: {use: builtin:mlp, args: {hidden: [300, 300]}}\ndata: {kind: synthetic, count: 61}\n";
static const char more_buckets[] =
	"model: {use: builtin:mlp, args: {hidden: [600, 600]}}\ndata: {kind: synthetic, count: 61}\n";
static const char adamw[] = "optim: {kind: adamw, lr: 1e-2}";

struct school {
	struct hd_rig a, b;
	struct hd_catchup_source source;
	struct hd_catchup_sink sink;
	uint32_t evens;
};

static void open_school(struct school *s, const char *model, const char *optim)
{
	struct hd_diag diag = { "" };

	memset(s, 0, sizeof *s);
	hd_rig_open(&s->a, model, 24, 8, optim, 2);
	hd_rig_open(&s->b, model, 24, 8, optim, 1);
	hd_catchup_source_init(&s->source, s->a.worker, &s->a.task->layout);
	CHECK(hd_dist_prepare(s->b.worker, &(struct hd_dist_view){ .worker = HD_DIST_NOBODY },
		&diag) == HD_OK, "%s", diag.text);
	hd_dist_adopt(s->b.worker);
	CHECK(hd_catchup_sink_init(&s->sink, s->b.worker, &s->b.task->layout, &diag) == HD_OK, "%s",
		diag.text);
}

static void close_school(struct school *s)
{
	hd_catchup_source_finish(&s->source);
	hd_catchup_sink_finish(&s->sink);
	hd_rig_close(&s->a);
	hd_rig_close(&s->b);
}

static void check_even(struct school *s, bool even)
{
	s->evens += even;
	if (even && s->sink.step == hd_worker_at(s->a.worker))
		CHECK(hd_hash_same(hd_worker_digest(s->a.worker), hd_worker_digest(s->b.worker)),
			"step %llu: the transferred state differs",
			(unsigned long long)s->sink.step);
}

static bool feed_one(struct school *s)
{
	struct hd_catchup_chunk *chunk = hd_catchup_source_take(&s->source);
	struct hd_diag diag = { "" };
	bool even = false;

	if (!chunk)
		return false;
	CHECK(hd_catchup_sink_take(&s->sink, chunk->bytes, chunk->len, &even, &diag) == HD_OK, "%s",
		diag.text);
	check_even(s, even);
	hd_catchup_chunk_free(chunk);
	return true;
}

/* All that is queued, in parts of any size; each time all is there the states are compared, if the
 * source stands there still. */
static void feed_all(struct school *s)
{
	struct hd_catchup_chunk *chunk;
	struct hd_diag diag = { "" };

	while ((chunk = hd_catchup_source_take(&s->source))) {
		for (size_t at = 1; at < chunk->len;) {
			size_t n = 1 + draw(draw(2) ? 40 : 300000);
			bool even = false;
			n = n < chunk->len - at ? n : chunk->len - at;
			CHECK(hd_catchup_sink_feed(&s->sink, chunk->bytes + at, n, &even, &diag) == HD_OK,
				"%s",
				diag.text);
			at += n;
			check_even(s, even);
		}
		hd_catchup_chunk_free(chunk);
	}
}

static void step(struct school *s, uint64_t budget)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(s->a.worker, false, &record, &diag) == HD_OK, "%s", diag.text);
	hd_catchup_source_boundary(&s->source, hd_worker_at(s->a.worker), budget);
}

static void a_joiner_comes_to_the_state_and_follows(void **state)
{
	static const char *const optim[] = { "optim: {kind: adamw, lr: 1e-2}",
		"optim: {kind: sgd, lr: 1e-2, clip: 0.1}", "optim: {kind: lamb, lr: 1e-2}" };
	const char *const model[] = { hd_rig_mlp, hd_rig_gpt, hd_rig_bn() };

	(void)state;
	for (uint32_t round = 0; round < 9; round += RACES ? 4 : 1) {
		struct school s;
		open_school(&s, model[round % 3], optim[round / 3]);
		step(&s, 0);
		/* comes again: adds nothing */
		hd_catchup_source_boundary(&s.source, hd_worker_at(s.a.worker), 0);
		for (uint32_t k = 0; k < 12; k++) {
			if (draw(3))
				feed_all(&s);
			step(&s, draw(1 << 20));
		}
		feed_all(&s);
		assert_true(s.evens > 0);
		assert_int_equal(s.sink.step, hd_worker_at(s.a.worker));
		uint32_t before = s.evens;
		step(&s, 0);
		feed_all(&s);
		/* it hears so at each boundary: a joiner seals the step before its first */
		assert_int_equal(s.evens, before + 1);
		close_school(&s);
	}
}

/* Members that wait for a joiner make no step: it syncs all there is from the one they stand at. */
static void a_source_that_stands_hands_over_the_rest(void **state)
{
	struct school s;

	(void)state;
	open_school(&s, two_buckets, adamw);
	step(&s, 1);
	feed_all(&s);
	assert_int_equal(s.evens, 0);
	for (uint32_t k = 0; k < 3; k++)
		hd_catchup_source_boundary(&s.source, hd_worker_at(s.a.worker), UINT64_MAX);
	feed_all(&s);
	assert_int_equal(s.evens, 1);
	assert_int_equal(s.sink.step, hd_worker_at(s.a.worker));
	step(&s, 0);                                      /* and follows when they go on */
	feed_all(&s);
	assert_int_equal(s.sink.step, hd_worker_at(s.a.worker));
	close_school(&s);
}

/* What is out of order, of another length, or twice, is refused. */
static void a_stream_that_was_tampered_with_is_refused(void **state)
{
	struct school s;
	uint32_t refused = 0;

	(void)state;
	open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
	step(&s, 1 << 24);
	struct hd_catchup_chunk *chunk = hd_catchup_source_take(&s.source);
	for (uint32_t byte = 0; byte < 1 + HD_CATCHUP_HEAD; byte++) {
		struct hd_catchup_sink sink;
		struct hd_diag diag = { "" };
		bool even;
		assert_int_equal(hd_catchup_sink_init(&sink, s.b.worker, &s.b.task->layout, NULL), HD_OK);
		chunk->bytes[byte] ^= 0x40;
		enum hd_err err = hd_catchup_sink_take(&sink, chunk->bytes, chunk->len, &even, &diag);
		refused += err == HD_E_PROTOCOL;
		chunk->bytes[byte] ^= 0x40;
		hd_catchup_sink_finish(&sink);
	}
	/* also another step: what follows is not of it */
	assert_int_equal(refused, 1 + HD_CATCHUP_HEAD);
	hd_catchup_chunk_free(chunk);
	close_school(&s);
}

/* ---- what a sink expects, judged by a model of the header's rules ---- */

enum { SNAP = 1, SUM, STEP, REST, EVEN, PROBE };
enum { MOST_SNAPS = 64 };

struct expects { bool begun, asked, has[MOST_SNAPS]; uint64_t step; uint32_t nhas, nsums, last; };

/* Rules 1, 3 and 4. `nbuckets` snaps, all of them of buckets. */
static bool is_next(const struct expects *x, struct hd_worker *w, const struct hd_layout *layout,
	uint32_t kind, uint32_t index, uint64_t step, uint64_t len)
{
	uint32_t n = hd_dist_nsnaps(w);

	if (kind == REST)
		return !x->begun && index == 0 && len == hd_dist_rest_bytes(w);
	if (!x->begun || step != x->step)
		return false;
	switch (kind) {
	case SNAP:  return !x->nsums && index < n && !x->has[index] && len == hd_dist_snap_bytes(w, index);
	case SUM:   return index < n && x->has[index] && (!x->nsums || index > x->last) &&
		len == hd_layout_bucket(layout, index).len * sizeof(float);
	case STEP:  return index == 0 && len == HD_DIST_SCALARS_BYTES + hd_dist_rest_bytes(w);
	case PROBE: return !x->nsums && x->nhas == n && !x->asked && index == hd_dist_probed(w, step) &&
		(len == 0 || len == 16);
	case EVEN:  return !x->nsums && x->asked && index == 0 && len == 0;
	default:    return false;
	}
}

static void note(struct expects *x, uint32_t kind, uint32_t index, uint64_t step)
{
	switch (kind) {
	case REST:  x->begun = true; x->step = step; break;
	case SNAP:  x->has[index] = true; x->nhas++; break;
	case SUM:   x->nsums++; x->last = index; break;
	case STEP:  x->nsums = 0; x->step++; break;
	case PROBE: x->asked = true; break;
	default:    break;
	}
}

static void put_record_head(uint8_t *at, uint32_t kind, uint32_t index, uint64_t step, uint64_t len)
{
	hd_put32(at, kind);
	hd_put32(at + 4, index);
	hd_put64(at + 8, step);
	hd_put64(at + 16, len);
}

/* The stream of a transfer without the first bytes of its chunks: sinks that come at once, step by step,
 * and stand at the end. */
static uint8_t *whole_stream(struct school *s, size_t *len)
{
	uint8_t *all = NULL;
	struct hd_catchup_chunk *chunk;

	*len = 0;
	hd_catchup_source_boundary(&s->source, hd_worker_at(s->a.worker), 1);
	for (uint32_t k = 0; k < 40 && !s->source.even; k++)
		step(s, 1);
	step(s, 1);
	step(s, 1);
	assert_true(s->source.even);
	while ((chunk = hd_catchup_source_take(&s->source))) {
		all = realloc(all, *len + chunk->len);
		memcpy(all + *len, chunk->bytes + 1, chunk->len - 1);
		*len += chunk->len - 1;
		hd_catchup_chunk_free(chunk);
	}
	return all;
}

/* At each record of a transfer every other head there could be is refused, and only what the rules allow
 * is taken. */
static void nothing_but_the_next_record_is_taken(void **state)
{
	struct school s;
	struct expects x = { .begun = false };
	struct hd_diag diag = { "" };
	size_t len, at = 0;
	uint32_t refused = 0, evens = 0;

	(void)state;
	open_school(&s, more_buckets, adamw);
	uint32_t n = hd_dist_nsnaps(s.b.worker);
	assert_in_range(n, 3, MOST_SNAPS);
	uint8_t *all = whole_stream(&s, &len);
	while (at < len) {
		uint32_t kind = hd_get32(all + at), index = hd_get32(all + at + 4);
		uint64_t step = hd_get64(all + at + 8), bytes = hd_get64(all + at + 16);
		const uint32_t indices[] = { 0, 1, index, x.last, n - 1, n, UINT32_MAX,
			hd_dist_probed(s.b.worker, x.step) };
		const uint64_t steps[] = { x.step, x.step + 1, x.step - 1, 0 };
		const uint64_t lens[] = { bytes, 0, 16, 17, hd_dist_rest_bytes(s.b.worker),
			HD_DIST_SCALARS_BYTES + hd_dist_rest_bytes(s.b.worker),
			hd_dist_snap_bytes(s.b.worker, 0), hd_dist_snap_bytes(s.b.worker, n - 1),
			hd_layout_bucket(&s.b.task->layout, 0).len * sizeof(float),
			hd_layout_bucket(&s.b.task->layout, n - 1).len * sizeof(float) };
		for (uint32_t k = 0; k < 8; k++)
			for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
				for (size_t t = 0; t < sizeof steps / sizeof *steps; t++)
					for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
						uint8_t head[HD_CATCHUP_HEAD];
						bool even;
						if (is_next(&x, s.b.worker, &s.b.task->layout, k, indices[i],
							steps[t], lens[l]))
							continue;
						put_record_head(head, k, indices[i], steps[t], lens[l]);
						enum hd_err err = hd_catchup_sink_feed(&s.sink, head,
							sizeof head,
							&even, &diag);
						CHECK(err == HD_E_PROTOCOL,
							"at byte %zu: kind %u, index %u, step %llu, %llu "
							"bytes: %d", at, k, indices[i],
							(unsigned long long)steps[t],
							(unsigned long long)lens[l], err);
						/* a sink that goes on in spite of it */
						s.sink.got = 0;
						refused++;
					}
		CHECK(is_next(&x, s.b.worker, &s.b.task->layout, kind, index, step, bytes),
			"kind %u, index %u", kind, index);
		bool even = false;
		CHECK(hd_catchup_sink_feed(&s.sink, all + at, HD_CATCHUP_HEAD + bytes, &even,
			&diag) == HD_OK, "%s",
			diag.text);
		/* with its last byte, not with the next record */
		CHECK(even == (kind == EVEN), "kind %u", kind);
		evens += even;
		note(&x, kind, index, step);
		at += HD_CATCHUP_HEAD + bytes;
	}
	assert_true(refused > 10000 && evens == 3);
	assert_true(hd_hash_same(hd_worker_digest(s.a.worker), hd_worker_digest(s.b.worker)));
	free(all);
	close_school(&s);
}

/* A sum before the probe: it was of the state before that. */
static void a_probe_after_a_sum_is_refused(void **state)
{
	struct school s;
	struct hd_diag diag = { "" };
	uint8_t head[HD_CATCHUP_HEAD];
	size_t len, at = 0;
	enum hd_err err = HD_OK;
	bool even, skip = false;

	(void)state;
	open_school(&s, two_buckets, adamw);
	uint8_t *all = whole_stream(&s, &len);
	while (!err && at < len && !(skip && s.sink.nsums)) {
		uint32_t kind = hd_get32(all + at);
		size_t record = HD_CATCHUP_HEAD + (size_t)hd_get64(all + at + 16);
		skip |= kind == PROBE;
		if (kind != PROBE && kind != EVEN)
			err = hd_catchup_sink_feed(&s.sink, all + at, record, &even, &diag);
		at += record;
	}
	CHECK(err == HD_OK && s.sink.nsums == 1, "%s", diag.text);
	put_record_head(head, PROBE, hd_dist_probed(s.b.worker, s.sink.step), s.sink.step, 0);
	assert_int_equal(hd_catchup_sink_feed(&s.sink, head, sizeof head, &even, &diag), HD_E_PROTOCOL);
	free(all);
	close_school(&s);
}

/* A step with a sum too few, and one whose scalars are none. */
static void a_step_that_is_not_whole_is_refused(void **state)
{
	(void)state;
	for (int wrong = 0; wrong < 2; wrong++) {
		struct school s;
		struct hd_diag diag = { "" };
		size_t len, at = 0;
		enum hd_err err = HD_OK;
		bool even;
		open_school(&s, two_buckets, adamw);
		uint8_t *all = whole_stream(&s, &len);
		while (!err && at < len) {
			uint32_t kind = hd_get32(all + at);
			size_t record = HD_CATCHUP_HEAD + (size_t)hd_get64(all + at + 16);
			if (wrong && kind == STEP)
				memset(all + at + HD_CATCHUP_HEAD, 0xff, 4);
			if (wrong || kind != SUM || hd_get32(all + at + 4) != 0)
				err = hd_catchup_sink_feed(&s.sink, all + at, record, &even, &diag);
			at += record;
		}
		assert_int_equal(err, HD_E_PROTOCOL);
		assert_non_null(strstr(diag.text, wrong ? "these are no scalars of a step" : "sums"));
		free(all);
		close_school(&s);
	}
}

static void a_chunk_is_more_or_the_end(void **state)
{
	static const struct { uint8_t bytes[3]; size_t len; enum hd_err err; bool over; } cases[] = {
		{ { 2 }, 1, HD_OK, true }, { { 2, 0 }, 2, HD_E_PROTOCOL, false }, { { 1 }, 1, HD_E_PROTOCOL, false }, { { 3 }, 1, HD_E_PROTOCOL, false },
		{ { 0 }, 0, HD_E_PROTOCOL, false }, { { 3, 0 }, 2, HD_E_PROTOCOL, false }, { { 1, REST }, 2, HD_OK, false },
	};
	struct school s;

	(void)state;
	open_school(&s, hd_rig_mlp, "optim: {kind: sgd, lr: 1e-2}");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_catchup_sink sink;
		bool even;
		assert_int_equal(hd_catchup_sink_init(&sink, s.b.worker, &s.b.task->layout, NULL), HD_OK);
		CHECK(hd_catchup_sink_take(&sink, cases[i].bytes, cases[i].len, &even,
			NULL) == cases[i].err &&
			sink.over == cases[i].over, "case %zu", i);
		hd_catchup_sink_finish(&sink);
	}
	close_school(&s);
}

/* Rule 2 at its limits: how much is queued is the test's to say. */
static void a_boundary_adds_what_its_limits_allow(void **state)
{
	struct school s;
	struct hd_catchup_source *t = &s.source;

	(void)state;
	open_school(&s, two_buckets, adamw);
	uint64_t at = hd_worker_at(s.a.worker), queued;
	assert_int_equal(at, 0);
	/* the first, of step 0: REST and one group */
	hd_catchup_source_boundary(t, 0, 1);
	assert_true(t->begun && t->given == 1 && !t->even);
	queued = t->queued;
	hd_catchup_source_boundary(t, 0, 0);
	assert_true(t->given == 1 && t->queued == queued);
	/* it stands: no reason to give up */
	t->queued = HD_CATCHUP_QUEUE_MOST;
	hd_catchup_source_boundary(t, 0, UINT64_MAX);
	assert_true(t->given == 1 && !t->over);
	t->queued = HD_CATCHUP_QUEUE;
	hd_catchup_source_boundary(t, 0, UINT64_MAX);
	assert_true(t->given == 1 && !t->over && t->queued == HD_CATCHUP_QUEUE);
	t->queued = queued;
	hd_catchup_source_boundary(t, 0, UINT64_MAX);                    /* all at once */
	assert_true(t->given == t->nsnaps && t->even);
	queued = t->queued;
	hd_catchup_source_boundary(t, 0, UINT64_MAX);                    /* all is said */
	assert_int_equal(t->queued, queued);
	t->queued = HD_CATCHUP_QUEUE_MOST;
	hd_alloc_arm(0);
	/* nothing is copied for a joiner so far behind */
	hd_catchup_source_boundary(t, 1, UINT64_MAX);
	assert_true(t->over && t->queued == 0 && !t->first);
	assert_int_equal(hd_alloc_count(), 0);
	hd_catchup_source_boundary(t, 2, UINT64_MAX);
	assert_int_equal(hd_alloc_count(), 0);
	hd_catchup_source_finish(t);
	assert_true(!t->worker && !t->first);
	hd_catchup_source_finish(t);                                     /* takes finished ones */
	hd_catchup_source_init(t, s.a.worker, &s.a.task->layout);
	close_school(&s);
}

/* A chunk is taken while others wait: what is added goes behind those. */
static void chunks_stay_in_order_when_one_is_taken(void **state)
{
	struct school s;

	(void)state;
	open_school(&s, two_buckets, adamw);
	step(&s, 1 << 24);
	assert_true(feed_one(&s));
	assert_non_null(s.source.first);
	step(&s, 1 << 24);
	while (feed_one(&s))
		;
	assert_int_equal(s.sink.step, hd_worker_at(s.a.worker));
	assert_true(hd_hash_same(hd_worker_digest(s.a.worker), hd_worker_digest(s.b.worker)));
	close_school(&s);
}

/* Each request for memory fails in turn: the source gives up at once, holds nothing, and does not call
 * itself even; the sink says so. */
static void without_memory_nobody_teaches_and_nobody_syncs(void **state)
{
	struct school s;
	uint64_t n = 0;
	bool over = true, even;

	(void)state;
	open_school(&s, more_buckets, adamw);
	while (over) {
		hd_catchup_source_finish(&s.source);
		hd_catchup_source_init(&s.source, s.a.worker, &s.a.task->layout);
		hd_alloc_arm(++n);
		hd_catchup_source_boundary(&s.source, 0, UINT64_MAX);
		uint64_t asked = hd_alloc_count();
		hd_alloc_arm(0);
		over = s.source.over;
		if (over)
			CHECK(!s.source.even && !s.source.first && s.source.queued == 0 && asked <= n + 3,
				"request %llu of %llu", (unsigned long long)n,
				(unsigned long long)asked);
	}
	assert_true(n > 5 && s.source.even);
	struct hd_catchup_chunk *chunk = hd_catchup_source_take(&s.source);
	enum hd_err err = HD_E_NOMEM;
	for (n = 1; err == HD_E_NOMEM; n++) {
		struct hd_catchup_sink sink;
		hd_alloc_arm(n);
		err = hd_catchup_sink_init(&sink, s.b.worker, &s.b.task->layout, NULL);
		if (!err)
			err = hd_catchup_sink_take(&sink, chunk->bytes, chunk->len, &even, NULL);
		hd_alloc_arm(0);
		hd_catchup_sink_finish(&sink);
	}
	assert_int_equal(err, HD_OK);
	assert_true(n > 3);
	hd_catchup_chunk_free(chunk);
	close_school(&s);
}

/* A bit of some weights on their way: the sink computes other bits than its source. */
static void a_joiner_of_other_bits_is_refused(void **state)
{
	struct school s;
	enum hd_err err = HD_OK;
	struct hd_diag diag = { "" };
	struct hd_catchup_chunk *chunk;
	bool even = false, first = true;

	(void)state;
	open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
	step(&s, 1 << 24);
	while (!err && (chunk = hd_catchup_source_take(&s.source))) {
		size_t snap = 1 + HD_CATCHUP_HEAD + (size_t)hd_dist_rest_bytes(s.a.worker) + HD_CATCHUP_HEAD;
		/* of several units: one may be off for all samples */
		for (uint32_t i = 0; i < 10000 && first; i += 100)
			chunk->bytes[snap + 4 * i + 2] ^= 0x40;
		first = false;
		err = hd_catchup_sink_take(&s.sink, chunk->bytes, chunk->len, &even, &diag);
		hd_catchup_chunk_free(chunk);
	}
	assert_int_equal(err, HD_E_INTEGRITY);
	assert_false(even);
	CHECK(strstr(diag.text, "has other bits here than at the member"), "%s", diag.text);
	close_school(&s);
}

/* Without memory for PROBE the joiner is accepted, with a note. */
static void without_room_for_a_probe_it_is_said(void **state)
{
	struct school s;

	(void)state;
	for (uint32_t lacks = 0; lacks < 3; lacks++) {
		open_school(&s, hd_rig_mlp, "optim: {kind: adamw, lr: 1e-2}");
		if (lacks)                          /* what a test may do to have it refused */
			(lacks == 1 ? s.a : s.b).worker->spec.memory_limit_bytes = 1;
		step(&s, 1 << 24);
		feed_all(&s);
		assert_int_equal(s.evens, 1);
		assert_int_equal(s.sink.unprobed, lacks > 0);
		close_school(&s);
	}
}

/* Nor where memory ends in the very moment. */
static void without_memory_for_a_probe_it_is_said(void **state)
{
	struct school s;
	struct hd_diag diag = { "" };
	size_t len, at = 0;

	(void)state;
	open_school(&s, two_buckets, adamw);
	uint8_t *all = whole_stream(&s, &len);
	while (at < len) {
		size_t record = HD_CATCHUP_HEAD + (size_t)hd_get64(all + at + 16);
		bool even, probe = hd_get32(all + at) == PROBE;
		hd_alloc_arm(probe);
		enum hd_err err = hd_catchup_sink_feed(&s.sink, all + at, record, &even, &diag);
		CHECK(err == HD_OK && (!probe || (hd_alloc_count() > 0 && s.sink.unprobed)), "%s",
			diag.text);
		hd_alloc_arm(0);
		at += record;
	}
	assert_true(s.sink.asked && s.sink.unprobed);
	assert_true(hd_hash_same(hd_worker_digest(s.a.worker), hd_worker_digest(s.b.worker)));
	free(all);
	close_school(&s);
}

static const char wide[] =
	"model: {use: builtin:mlp, args: {hidden: [900, 900]}}\ndata: {kind: synthetic, count: 61}\n";

/* The sink is in the middle of a record when the source gives up. */
static void a_source_that_nobody_hears_gives_up(void **state)
{
	struct school s;
	uint64_t queued = 0;

	(void)state;
	open_school(&s, wide, "optim: {kind: sgd, lr: 1e-2}");
	step(&s, 1 << 24);
	assert_true(feed_one(&s));
	assert_true(s.sink.got > 0);
	for (uint32_t k = 0; k < 60 && !s.source.over; k++) {
		step(&s, 1 << 24);
		queued = s.source.queued > queued ? s.source.queued : queued;
	}
	assert_true(s.source.over);
	assert_true(queued < 2 * (uint64_t)HD_CATCHUP_QUEUE_MOST);
	assert_true(feed_one(&s));
	assert_true(s.sink.over);
	step(&s, 1 << 24);
	assert_false(feed_one(&s));
	close_school(&s);
}

/* So that somebody waits by then. */
static void a_while(void)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 50000000);
}

static void take_all(void *user)
{
	struct school *s = user;
	struct hd_catchup_chunk *chunk;

	a_while();
	while ((chunk = hd_catchup_source_take(&s->source)))
		hd_catchup_chunk_free(chunk);
}

static void leave(void *user)
{
	struct school *s = user;

	a_while();
	hd_catchup_source_cancel(&s->source);
}

/* Of a joiner that has taken nothing, until the other thread does that; a minute is too long. */
static void wait_until(void (*does)(void *user), struct school *s)
{
	struct hd_thread thread;
	struct hd_clock clock;
	struct hd_diag diag = { "" };

	hd_clock_real(&clock);
	open_school(s, wide, "optim: {kind: sgd, lr: 1e-2}");
	assert_true(hd_catchup_source_wait(&s->source, 0));
	while (s->source.queued < HD_CATCHUP_QUEUE)
		step(s, 1 << 24);
	assert_false(hd_catchup_source_wait(&s->source, 0));
	CHECK(hd_thread_start(&thread, "sink", -1, does, s, &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_catchup_source_wait(&s->source, hd_clock_now_ns(&clock) + INT64_C(60000000000)));
	hd_thread_join(&thread);
}

static void a_source_waits_for_who_lags(void **state)
{
	struct school s;

	(void)state;
	wait_until(take_all, &s);
	assert_false(s.source.over);
	close_school(&s);
}

/* Its link was lost, or it is a joiner no more: members go on at once, and nothing is put in for it. */
static void nobody_waits_for_who_is_gone(void **state)
{
	struct school s;

	(void)state;
	wait_until(leave, &s);
	step(&s, 1 << 24);
	assert_true(s.source.over && s.source.queued == 0);
	close_school(&s);
}

int main(void)
{
	/* one thread sends and receives */
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(nothing_but_the_next_record_is_taken),
		cmocka_unit_test(a_step_that_is_not_whole_is_refused),
		cmocka_unit_test(a_probe_after_a_sum_is_refused),
		cmocka_unit_test(a_chunk_is_more_or_the_end),
		cmocka_unit_test(a_boundary_adds_what_its_limits_allow),
		cmocka_unit_test(chunks_stay_in_order_when_one_is_taken),
		cmocka_unit_test(without_memory_nobody_teaches_and_nobody_syncs),
		cmocka_unit_test(a_stream_that_was_tampered_with_is_refused),
		cmocka_unit_test(a_joiner_of_other_bits_is_refused),
		cmocka_unit_test(without_room_for_a_probe_it_is_said),
		cmocka_unit_test(without_memory_for_a_probe_it_is_said),
		cmocka_unit_test(a_source_that_nobody_hears_gives_up),
	}, together[] = {
		cmocka_unit_test(a_joiner_comes_to_the_state_and_follows),
		cmocka_unit_test(a_source_that_stands_hands_over_the_rest),
		cmocka_unit_test(a_source_waits_for_who_lags),
		cmocka_unit_test(nobody_waits_for_who_is_gone),
	};
	int failed = cmocka_run_group_tests(together, NULL, NULL);

	if (!RACES)
		failed += cmocka_run_group_tests(alone, NULL, NULL);
	return failed;
}
