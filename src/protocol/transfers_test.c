#include "protocol/transfers.h"

#include <string.h>

#include "plan/collective.h"
#include "tests/check.h"

static uint64_t state_of_draws = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
	state_of_draws ^= state_of_draws << 13;
	state_of_draws ^= state_of_draws >> 7;
	state_of_draws ^= state_of_draws << 17;
	return (uint32_t)(state_of_draws >> 33) % n;
}

static const enum hd_xfer_kind of_buckets[] = { HD_XFER_SUM, HD_XFER_NORM, HD_XFER_PARAMETERS,
	HD_XFER_DIGEST }, of_tensors[] = { HD_XFER_SUM, HD_XFER_NORM, HD_XFER_RATIO };

/* ---- the numbering, counted through ---- */

struct counted { const struct hd_transfers *t; uint32_t id; };

/* The next row is that one, and says so. */
static void next_is(struct counted *c, enum hd_xfer_kind kind, uint32_t from, uint32_t to, uint32_t number,
	uint32_t ordinal)
{
	const struct hd_xfer_name want = { kind, from, to, number, ordinal };
	struct hd_xfer_name got = { .kind = HD_XFER_SHADOW, .from = 99, .to = 98, .number = 97, .ordinal =
		96 };
	const struct hd_xfer_name before = got;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_transfers_name(c->t, c->id, &got, &diag);

	if (from == to && from != HD_NOBODY) {
		CHECK(err == HD_E_PROTOCOL && !memcmp(&got, &before, sizeof got), "row %u", c->id);
		assert_non_null(strstr(diag.text, "to itself"));
	} else {
		CHECK(!err && got.kind == kind && got.from == from && got.to == to && got.number == number &&
			got.ordinal == ordinal,
			"row %u is kind %d, %u > %u, number %u, ordinal %u", c->id, (int)got.kind, got.from,
			got.to,
			got.number, got.ordinal);
		assert_int_equal(hd_transfers_id(c->t, want), c->id);
	}
	c->id++;
}

static uint32_t owner_of(uint32_t bucket, uint32_t nbuckets, uint32_t n)
{
	uint32_t owner = 0;                       /* the last whose buckets begin at or before it */

	for (uint32_t m = 0; m < n; m++)
		if (m * nbuckets <= bucket * n)
			owner = m;
	return owner;
}

static void rows_are_numbered_block_by_block(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 60; k++) {
		struct hd_transfers_spec spec = { .nmembers = 1 + draw(5), .nvns = 1 + draw(9),
			.nbuckets = 1 + draw(7), .copies = draw(3), .nstages = draw(5), .nsyncs = draw(4) };
		spec.nshadows = k % 2 ? spec.nstages : 0;
		spec.partial = spec.tensors = k % 3 == 0;
		const bool tensors = spec.tensors && !spec.copies;
		const uint32_t ncells = spec.nstages > 1 ? (1 + k % 2) * spec.nstages * spec.nvns : 0;
		struct hd_transfers t;
		uint32_t n = spec.nmembers;
		hd_transfers_init(&t, &spec);
		struct counted c = { &t, 0 };
		for (uint32_t from = 0; from < n; from++)
			for (uint32_t o = 0; o < spec.nvns; o++)
				for (uint32_t b = 0; b < spec.nbuckets; b++)
					next_is(&c, HD_XFER_PARTIAL, from, owner_of(b, spec.nbuckets, n), b,
					o);
		for (uint32_t part = 0; part < (spec.copies ? 4 : tensors ? 3 : 1); part++)
			for (uint32_t b = 0; b < spec.nbuckets; b++)
				for (uint32_t pair = 0; pair < n * n; pair++)
					next_is(&c, (tensors ? of_tensors : of_buckets)[part], pair / n,
						pair % n,
						b, 0);
		for (uint32_t v = 0; v < spec.nvns; v++)
			for (uint32_t pair = 0; pair < n * n; pair++)
				next_is(&c, HD_XFER_METRICS, pair / n, pair % n, v, 0);
		for (uint32_t pair = 0; pair < n * n; pair++)
			next_is(&c, HD_XFER_TABLE, pair / n, pair % n, 0, 0);
		for (uint32_t cell = 0; cell < ncells; cell++)
			next_is(&c, HD_XFER_ACTIVATIONS, HD_NOBODY, HD_NOBODY, cell, 0);
		for (uint32_t cell = 0; cell < ncells; cell++)
			next_is(&c, HD_XFER_GRADIENTS, HD_NOBODY, HD_NOBODY, cell, 0);
		for (uint32_t sync = 0; sync < spec.nsyncs; sync++)
			for (uint32_t pair = 0; pair < n * n; pair++)
				next_is(&c, HD_XFER_MOMENTS, pair / n, pair % n, sync, 0);
		assert_int_equal(hd_transfers_count(&t), c.id);
	}
}

static void what_is_beyond_the_table_names_nothing(void **state)
{
	static const struct hd_transfers_spec spec = { .nmembers = 2, .nvns = 4, .nbuckets = 3 };
	const struct hd_xfer_name before = { HD_XFER_SHADOW, 9, 8, 7, 6 };
	struct hd_transfers t;

	(void)state;
	hd_transfers_init(&t, &spec);
	const uint32_t beyond[] = { hd_transfers_count(&t), hd_transfers_count(&t) + 1, 1u << 30,
		UINT32_MAX };
	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		struct hd_xfer_name got = before;
		struct hd_diag diag = { "" };
		assert_int_equal(hd_transfers_name(&t, beyond[i], &got, &diag), HD_E_PROTOCOL);
		assert_non_null(strstr(diag.text, "none of the epoch's"));
		assert_memory_equal(&got, &before, sizeof got);
	}
}

/* The largest job: every id fits, and blocks do not run into one another. */
static void the_largest_table_fits_its_ids(void **state)
{
	static const struct hd_transfers_spec spec = { .nmembers = HD_MAX_MEMBERS, .nvns = HD_MAX_VNS,
		.nbuckets = HD_MAX_BUCKETS, .copies = 3 };
	const uint32_t last = HD_MAX_MEMBERS - 1;
	struct hd_transfers t;

	(void)state;
	hd_transfers_init(&t, &spec);
	/* a step has at most HD_VIEW_ROOTS partial sums of all members together: one has no more than half */
	assert_int_equal(t.ordinals, HD_VIEW_ROOTS / 2);
	struct hd_xfer_name ends[] = {
		{ HD_XFER_PARTIAL, 1, 0, 0, 0 }, { HD_XFER_PARTIAL, last - 1, last, HD_MAX_BUCKETS - 1, t.ordinals - 1 },
		{ HD_XFER_SUM, 0, 1, 0, 0 }, { HD_XFER_SUM, last, last - 1, HD_MAX_BUCKETS - 1, 0 },
		{ HD_XFER_NORM, 0, 1, 0, 0 }, { HD_XFER_NORM, last, last - 1, HD_MAX_BUCKETS - 1, 0 },
		{ HD_XFER_PARAMETERS, 0, 1, 0, 0 }, { HD_XFER_PARAMETERS, last, last - 1, HD_MAX_BUCKETS - 1, 0 },
		{ HD_XFER_DIGEST, 0, 1, 0, 0 }, { HD_XFER_DIGEST, last, last - 1, HD_MAX_BUCKETS - 1, 0 },
		{ HD_XFER_METRICS, 0, 1, 0, 0 }, { HD_XFER_METRICS, last, last - 1, HD_MAX_VNS - 1, 0 },
		{ HD_XFER_TABLE, 0, 1, 0, 0 }, { HD_XFER_TABLE, last, last - 1, 0, 0 },
	};
	uint32_t before = 0;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct hd_xfer_name got = { 0 };
		uint32_t id = hd_transfers_id(&t, ends[i]);
		CHECK(id > before, "row %zu has number %u, after %u", i, id, before);
		assert_int_equal(hd_transfers_name(&t, id, &got, NULL), HD_OK);
		assert_memory_equal(&got, &ends[i], sizeof got);
		before = id;
	}
	assert_int_equal(before, hd_transfers_count(&t) - 2);      /* the last is a member's own */
}

/* With pairs a member's last ordinal goes to its parent, beside those that go to the owner. */
static void a_row_to_the_parent_stands_beside_those_to_the_owner(void **state)
{
	struct hd_transfers_spec spec = { .nmembers = 4, .nvns = 8, .nbuckets = 4, .pairs = true };
	struct hd_transfers t, without;
	struct hd_xfer_name got;
	uint32_t parents = 0;

	(void)state;
	spec.floats = 4 * HD_BUCKET_BYTES / sizeof(float);
	hd_transfers_init(&t, &spec);
	assert_true(t.ordinals == t.roots + 1);
	for (uint32_t id = 0; id < 4 * t.ordinals * 4; id++) {
		if (hd_transfers_name(&t, id, &got, NULL))
			continue;
		const uint32_t owner = hd_bucket_owner(got.number, 4, 4), differs = got.from ^ owner;
		uint32_t to = owner;
		if (got.ordinal == t.roots) {
			to = differs & 1 ? got.from ^ 1 : got.from ^ 2;
			parents++;
			assert_int_equal(hd_transfers_row(&t, &got).primitive, HD_COLLECTIVE_HALVING);
		}
		CHECK(got.kind == HD_XFER_PARTIAL && got.to == to, "row %u: %u to %u, ordinal %u", id,
			got.from,
			got.to, got.ordinal);
		assert_int_equal(hd_transfers_id(&t, got), id);
	}
	assert_int_equal(parents, 4 * 3);         /* of each bucket all but its owner have one */
	/* not of one member or three, nor of state in parts, nor where none asks for it */
	const struct hd_transfers_spec lacks[] = { { .nmembers = 1, .pairs = true },
		{ .nmembers = 3, .pairs = true }, { .nmembers = 4, .pairs = true, .copies = 2 },
		{ .nmembers = 4, .pairs = true, .partial = true }, { .nmembers = 4 },
		{ .nmembers = 4, .pairs = true, .nstages = 2 } };
	for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
		spec = lacks[i];
		spec.nvns = 8;
		spec.nbuckets = 4;
		spec.floats = 4 * HD_BUCKET_BYTES / sizeof(float);
		hd_transfers_init(&without, &spec);
		CHECK(without.ordinals == without.roots, "row %zu", i);
	}
}

/* ---- rows ---- */

static void a_row_says_how_long_and_how_urgent_it_is(void **state)
{
	struct hd_chunk chunk[7];
	const uint32_t member[] = { 5, 8, 1000003 };
	const struct hd_layout layout = { .elems = 70, .nsegments = 14, .nchunks = 7, .chunk = chunk };
	struct hd_transfers_spec spec = { .nmembers = 3, .nvns = 4, .nbuckets = 2, .copies = 2, .member =
		member,
		.layout = &layout, .metrics_bytes = 24, .table_bytes = 72, .digest_bytes = 16 };
	const struct { struct hd_xfer_name name; struct hd_xfer row; } cases[] = {
		{ { HD_XFER_PARTIAL, 1, 0, 0, 1 }, { .from = 8, .to = 5, .priority = 2, .nchunks = 4, .len_bytes = 160 } },
		{ { HD_XFER_PARTIAL, 1, 0, 1, 0 }, { .from = 8, .to = 5, .priority = 1, .bucket = 1,
			.first_chunk = 4, .nchunks = 3, .len_bytes = 120 } },
		{ { HD_XFER_SUM, 1, 2, 1, 0 }, { .from = 8, .to = 1000003, .priority = 3, .bucket = 1,
			.first_chunk = 4, .nchunks = 3, .len_bytes = 120 } },
		{ { HD_XFER_NORM, 1, 2, 1, 0 }, { .from = 8, .to = 1000003, .bucket = 1, .first_chunk = 4,
			.nchunks = 3, .len_bytes = 48 } },
		{ { HD_XFER_PARAMETERS, 0, 1, 0, 0 }, { .from = 5, .to = 8, .priority = 4, .nchunks = 4, .len_bytes = 160 } },
		{ { HD_XFER_DIGEST, 2, 0, 1, 0 }, { .from = 1000003, .to = 5, .priority = 3, .bucket = 1,
			.first_chunk = 4, .nchunks = 3, .len_bytes = 96 } },
		{ { HD_XFER_METRICS, 2, 0, 3, 0 }, { .from = 1000003, .to = 5, .len_bytes = 24 } },
		{ { HD_XFER_TABLE, 2, 1, 0, 0 }, { .from = 1000003, .to = 8, .len_bytes = 72 } },
	};
	struct hd_transfers t;

	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		chunk[i] = (struct hd_chunk){ i * 10, 10, 2 * i, 2 };
	hd_transfers_init(&t, &spec);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_xfer row = hd_transfers_row(&t, &cases[i].name), want = cases[i].row;
		CHECK(row.kind == cases[i].name.kind && row.class == HD_XFER_PLANNED &&
			row.from == want.from &&
			row.to == want.to && row.priority == want.priority && row.bucket == want.bucket &&
			row.first_chunk == want.first_chunk && row.nchunks == want.nchunks &&
			row.len_bytes == want.len_bytes && !row.predicted_ns && !row.primitive,
			"case %zu: priority %u, bucket %u, chunks %u+%u, %llu bytes", i, row.priority,
			row.bucket,
			row.first_chunk, row.nchunks, (unsigned long long)row.len_bytes);
	}
}

/* Sums and new parameters of buckets that are read earlier go first, and partial sums if so decided. */
static void a_rank_is_an_urgency(void **state)
{
	uint32_t rank[] = { 2, 0, 1 };
	struct hd_comm comm = { .order = HD_COMM_TAC, .nbuckets = 3, .rank = rank };
	const struct hd_transfers_spec spec = { .nmembers = 2, .nvns = 2, .nbuckets = 3, .copies = 2,
		.comm = &comm,
		.floats = 3 * HD_BUCKET_BYTES / sizeof(float), .digest_bytes = 8 };
	static const uint32_t part[2][3] = { { 3, 2, 1 }, { 5, 1, 3 } },
		sum[2][3] = { { 6, 4, 5 }, { 6, 2, 4 } };
	struct hd_transfers t;

	(void)state;
	hd_transfers_init(&t, &spec);
	for (int parts = 0; parts < 2; parts++) {
		comm.parts = parts;
		for (uint32_t b = 0; b < 3; b++) {
			const enum hd_xfer_kind kind[] = { HD_XFER_SUM, HD_XFER_PARAMETERS, HD_XFER_DIGEST };
			const uint32_t owner = hd_bucket_owner(b, 3, 2);
			assert_int_equal(hd_transfers_row(&t, &(struct hd_xfer_name){ HD_XFER_PARTIAL, !owner,
				owner, b, 0 }).priority, part[parts][b]);
			for (size_t k = 0; k < 3; k++)
				assert_int_equal(hd_transfers_row(&t, &(struct hd_xfer_name){ kind[k], owner,
					!owner, b, 0 }).priority, sum[parts][b]);
			assert_int_equal(hd_transfers_row(&t, &(struct hd_xfer_name){ HD_XFER_NORM, 0, 1, b,
				0 }).priority, 0);
		}
	}
}

/* Of a random order a row has the rank that all steps share, and each step another urgency for each two
 * workers: that of their ids, which members' indices may not change. */
static void a_random_order_is_drawn_for_each_step(void **state)
{
	enum { N = 60, STEPS = 50 };
	static const uint32_t member[] = { 4, 9, 30 };
	uint32_t rank[N];
	struct hd_comm comm = { .order = HD_COMM_RANDOM, .parts = true, .nbuckets = N, .rank = rank };
	struct hd_transfers_spec spec = { .nmembers = 3, .nvns = 3, .nbuckets = N, .copies = 2, .comm = &comm,
		.member = member, .floats = N * HD_BUCKET_BYTES / sizeof(float), .digest_bytes = 8 };
	struct hd_transfers t, later;
	uint32_t same[3] = { 0 };

	(void)state;
	for (uint32_t b = 0; b < N; b++)
		rank[b] = N - 1 - b;
	hd_transfers_init(&t, &spec);
	spec.member = &member[1];         /* the first has left */
	spec.nmembers = 2;
	hd_transfers_init(&later, &spec);
	for (uint64_t step = 0; step < STEPS; step++)
		for (uint32_t b = 0; b < N; b++) {
			const struct hd_xfer_name to[] = { { HD_XFER_SUM, 1, 2, b, 0 },
				{ HD_XFER_SUM, 1, 0, b, 0 }, { HD_XFER_SUM, 0, 1, b, 0 }, { HD_XFER_NORM, 1, 2, b, 0 } };
			const uint32_t u = hd_transfers_priority(&t, &to[0], step);
			assert_in_range(u, 1, 2 * N);
			assert_int_equal(hd_transfers_row(&t, &to[0]).priority, 2 + 2 * rank[b]);
			assert_int_equal(hd_transfers_priority(&later, &to[2], step), u);
			assert_int_equal(hd_transfers_priority(&t, &to[3], step), 0);
			same[0] += u == hd_transfers_priority(&t, &to[1], step);
			same[1] += u == hd_transfers_priority(&t, &to[0], step + 1);
			same[2] += u == hd_transfers_row(&t, &to[0]).priority;
		}
	for (int i = 0; i < 3; i++)       /* by chance one in N */
		CHECK(same[i] < 2 * STEPS, "%d: %u of %d are the same", i, same[i], STEPS * N);
	comm.order = HD_COMM_TAC;
	for (uint32_t b = 0; b < N; b++) {
		const struct hd_xfer_name name = { HD_XFER_SUM, 1, 2, b, 0 };
		assert_int_equal(hd_transfers_priority(&t, &name, 7), hd_transfers_row(&t, &name).priority);
	}
}

/* Without a layout: full buckets of one vector, the last what is left. */
static void a_plain_vector_is_cut_into_full_buckets(void **state)
{
	const struct hd_transfers_spec spec = { .nmembers = 2, .nvns = 2, .nbuckets = 3, .sums_first = true,
		.floats = 2 * HD_BUCKET_BYTES / sizeof(float) + HD_CHUNK_ELEMS + 1 };
	struct hd_transfers t;

	(void)state;
	hd_transfers_init(&t, &spec);
	struct hd_xfer whole = hd_transfers_row(&t, &(struct hd_xfer_name){ HD_XFER_PARTIAL, 0, 1, 2, 0 });
	assert_true(whole.len_bytes == 4 * (HD_CHUNK_ELEMS + 1) && whole.first_chunk == 8 &&
		whole.nchunks == 2 &&
		whole.priority == 3);
	struct hd_xfer sum = hd_transfers_row(&t, &(struct hd_xfer_name){ HD_XFER_SUM, 0, 1, 1, 0 });
	assert_true(sum.len_bytes == HD_BUCKET_BYTES && sum.first_chunk == 4 && sum.nchunks == 4 &&
		!sum.priority);
}

/* ---- what a step can use ---- */

enum { N = 5, V = 11, B = 6, MOST = 1 << 16 };

struct rig { struct hd_view view; struct hd_passes passes; struct hd_transfers t; struct hd_exchange x[N];
	uint32_t n, copies; };

static uint64_t some(uint32_t n) { return draw(1u << n); }

/* Virtual nodes dealt at random, so that a member's part is in pieces. */
static void random_view(struct rig *r)
{
	uint32_t left = V;

	r->view = (struct hd_view){ .epoch = 3, .nmembers = r->n };
	for (uint32_t m = 0; m < r->n; m++)
		r->view.member[m] = 2 + 3 * m;
	while (left) {
		uint32_t nvns = 1 + draw(left < 3 ? left : 3);
		r->view.rank[r->view.nranks++] = (struct hd_vrank){ r->view.member[draw(r->n)], nvns };
		left -= nvns;
	}
	assert_int_equal(hd_view_verify(&r->view, V, NULL), HD_OK);
	assert_int_equal(hd_passes_of_view(&r->passes, &r->view), HD_OK);
}

/* One virtual node of each goes to somebody else, in a pass of its own. */
static void repaired(struct rig *r)
{
	uint32_t npasses[N] = { 0 };

	r->passes.npasses = r->passes.nranges = 0;
	for (uint32_t v = 0; v < V; v++) {
		uint32_t m = draw(r->n);
		if (npasses[m] == HD_MAX_PASSES)
			m = v % r->n;
		assert_int_equal(hd_passes_add(&r->passes, r->view.member[m], npasses[m]++,
			&(struct hd_vrange){ v, 1 }, 1), HD_OK);
	}
}

static void rig_open(struct rig *r, bool again)
{
	struct hd_have have[B], parm[B], chain[B];
	uint64_t slots[B], all = (UINT64_C(1) << r->n) - 1;

	r->n = 2 + draw(N - 1);
	r->copies = draw(4);
	all = (UINT64_C(1) << r->n) - 1;
	random_view(r);
	for (uint32_t m = 0; m < r->n; m++)
		assert_int_equal(hd_exchange_init(&r->x[m], V, B, r->copies, NULL), HD_OK);
	for (uint32_t b = 0; b < B; b++) {
		slots[b] = hd_bucket_chain(b, B, r->n, r->copies);
		have[b] = (struct hd_have){ b, some(r->n) };
		parm[b] = (struct hd_have){ b, r->copies ? some(r->n) : 0 };
		chain[b] = (struct hd_have){ b, r->copies ? 1 + draw((uint32_t)all) : 0 };
	}
	const struct hd_exchange_past past = { .have = have, .parm = parm, .chain = chain, .nhave = B,
		.nparm = B,
		.nchain = B, .table = draw(2) ? some(r->n) : 0, .done = some(r->n) };
	if (again)
		repaired(r);
	for (uint32_t m = 0; m < r->n; m++)
		assert_int_equal(again ? hd_exchange_again(&r->x[m], &r->view, r->view.member[m], 7,
		&r->passes,
			&past, NULL) : hd_exchange_begin(&r->x[m], &r->view, r->view.member[m], 7, &r->passes,
			slots,
			NULL), HD_OK);
	hd_transfers_init(&r->t, &(struct hd_transfers_spec){ .nmembers = r->n, .nvns = V, .nbuckets = B,
		.copies = r->copies, .member = r->view.member, .digest_bytes = draw(2) * 8 });
}

static void rig_close(struct rig *r)
{
	for (uint32_t m = 0; m < r->n; m++)
		hd_exchange_finish(&r->x[m]);
}

static bool has(const uint32_t *id, size_t n, uint32_t wanted)
{
	for (size_t i = 0; i < n; i++)
		if (id[i] == wanted)
			return true;
	return false;
}

/* All that the exchange of `from` has it send to `to` in this step is in the list. */
static void all_is_there(const struct rig *r, const struct hd_exchange *x, uint32_t from, uint32_t to,
	const uint32_t *id, size_t n)
{
	uint32_t worker = r->view.member[from], me = x->me;

	assert_int_equal(me, from);
	for (uint32_t i = 0, ordinal = 0; i < x->passes.npasses; i++) {
		const struct hd_pass *p = &x->passes.pass[i];
		if (p->worker != worker)
			continue;
		for (uint32_t k = x->first_root[i]; k < x->first_root[i + 1]; k++, ordinal++)
			for (uint32_t b = 0; b < B; b++)
				if (hd_exchange_wants_roots(x, b) && hd_exchange_source(x, b) == to)
					CHECK(has(id, n, hd_transfers_id(&r->t, (struct hd_xfer_name){
						HD_XFER_PARTIAL, from, to, b, ordinal })), "%u", ordinal);
		for (uint32_t k = 0; k < p->nranges; k++)
			for (uint32_t v = 0; v < x->passes.range[p->first_range + k].n; v++)
				CHECK(has(id, n, hd_transfers_id(&r->t,
				(struct hd_xfer_name){ HD_XFER_METRICS, from,
					to, x->passes.range[p->first_range + k].first + v, 0 })), "%u", v);
	}
	for (uint32_t b = 0; b < B; b++) {
		const bool parm = hd_exchange_parm_source(x, b) == from &&
			hd_exchange_parm_to(x, b) >> to & 1;
		const bool sends[] = { hd_exchange_sum_to(x, b) >> to & 1,
			hd_exchange_norm_source(x, b) == from && hd_exchange_norm_to(x, b) >> to & 1,
			parm, parm && r->t.spec.digest_bytes };
		for (uint32_t part = 0; part < 4; part++)
			if (sends[part])
				CHECK(has(id, n, hd_transfers_id(&r->t,
				(struct hd_xfer_name){ of_buckets[part],
					from, to, b, 0 })), "kind %d of bucket %u", (int)of_buckets[part], b);
	}
	assert_true(has(id, n, hd_transfers_id(&r->t, (struct hd_xfer_name){ HD_XFER_TABLE, from, to, 0,
		0 })));
}

static uint32_t sent[MOST], taken[MOST];

static void both_ends_of_a_step_name_the_same_rows(void **state)
{
	static struct rig r;

	(void)state;
	for (uint32_t k = 0; k < 200; k++) {
		rig_open(&r, k % 2);
		for (uint32_t from = 0; from < r.n; from++)
			for (uint32_t to = 0; to < r.n; to++) {
				if (from == to)
					continue;
				size_t n = hd_transfers_between(&r.t, &r.view, &r.x[from], from, to, NULL);
				assert_true(n <= MOST);
				assert_int_equal(hd_transfers_between(&r.t, &r.view, &r.x[from], from, to,
					sent), n);
				assert_int_equal(hd_transfers_between(&r.t, &r.view, &r.x[to], from, to,
					taken), n);
				assert_memory_equal(sent, taken, n * sizeof *sent);
				for (size_t i = 0; i < n; i++) {
					struct hd_xfer_name name = { 0 };
					assert_int_equal(hd_transfers_name(&r.t, sent[i], &name, NULL),
						HD_OK);
					CHECK(name.from == from && name.to == to && (!i ||
						sent[i - 1] < sent[i]),
						"row %zu of %zu", i, n);
				}
				all_is_there(&r, &r.x[from], from, to, sent, n);
			}
		rig_close(&r);
	}
}

/* A member that knows that a step is over opens its channels with the next one, while others take the step up
 * again in the same epoch: what the next step sends has a row at both ends, of one number. */
static void ends_in_two_steps_of_an_epoch_have_the_rows_of_the_later(void **state)
{
	static struct rig r;
	uint64_t slots[B];

	(void)state;
	for (uint32_t k = 0; k < 100; k++) {
		struct hd_exchange next;
		struct hd_passes passes;
		rig_open(&r, true);
		assert_int_equal(hd_passes_of_view(&passes, &r.view), HD_OK);
		for (uint32_t b = 0; b < B; b++)
			slots[b] = hd_bucket_chain(b, B, r.n, r.copies);
		for (uint32_t from = 0; from < r.n; from++) {
			assert_int_equal(hd_exchange_init(&next, V, B, r.copies, NULL), HD_OK);
			assert_int_equal(hd_exchange_begin(&next, &r.view, r.view.member[from], 8, &passes,
				slots,
				NULL), HD_OK);
			for (uint32_t to = 0; to < r.n; to++) {
				if (from == to)
					continue;
				size_t n = hd_transfers_between(&r.t, &r.view, &next, from, to, sent);
				all_is_there(&r, &next, from, to, sent, n);
				n = hd_transfers_between(&r.t, &r.view, &r.x[to], from, to, taken);
				all_is_there(&r, &next, from, to, taken, n);
			}
			hd_exchange_finish(&next);
		}
		rig_close(&r);
	}
}

/* Rows of a bucket that one member needs for another, beside partial sums. All hold the slots: the owner's
 * sums. Else the sum goes along the `copies` members from the owner on, and the last of them sends norms,
 * parameters and digests to the rest. */
static uint32_t rows_of_bucket(const struct rig *r, uint32_t b, uint32_t from, uint32_t to)
{
	uint32_t owner = owner_of(b, B, r->n);
	uint32_t from_at = (from + r->n - owner) % r->n, to_at = (to + r->n - owner) % r->n;

	if (!r->copies || r->copies >= r->n)
		return owner == from;
	if (to_at < r->copies)
		return from_at + 1 == to_at;
	return from_at + 1 == r->copies ? r->t.spec.digest_bytes ? 3 : 2 : 0;
}

/* Nothing beyond what a step of the view uses. */
static void a_plain_step_names_nothing_else(void **state)
{
	static struct rig r;

	(void)state;
	for (uint32_t k = 0; k < 200; k++) {
		rig_open(&r, false);
		for (uint32_t from = 0; from < r.n; from++)
			for (uint32_t to = 0; to < r.n; to++) {
				struct hd_vrange range[HD_VIEW_RANKS];
				struct hd_tnode root[V];
				uint32_t nroots = 0, want = 1;
				if (from == to)
					continue;
				uint32_t nranges = hd_view_ranges(&r.view, r.view.member[from], range);
				assert_int_equal(hd_ranges_roots(V, range, nranges, root, V, &nroots), HD_OK);
				for (uint32_t i = 0; i < nranges; i++)
					want += range[i].n;
				for (uint32_t b = 0; b < B; b++)
					want += rows_of_bucket(&r, b, from, to) +
						(owner_of(b, B, r.n) == to ? nroots : 0);
				assert_int_equal(hd_transfers_between(&r.t, &r.view, &r.x[from], from, to,
					NULL), want);
			}
		rig_close(&r);
	}
}

/* Two stages of one bucket each, at members 0 and 1, and a third that holds nothing. */
static void of_stages_owners_and_norms_are_the_holding_s(void **state)
{
	static const struct hd_stage_bucket of_two[] = { { .stage = 0, .makers = 1, .readers = 1 },
		{ .stage = 0, .makers = 1, .readers = 1 }, { .stage = 1, .makers = 2, .readers = 2 } };
	/* a tensor of buckets 1 and 2 */
	static uint32_t first[] = { 0, 2 }, bucket[] = { 1, 2 };
	static const struct hd_stage_buckets two = { .n = 3, .nstages = 2, .tensors = { 1, first, bucket },
		.at = (struct hd_stage_bucket *)(uintptr_t)of_two };
	static const struct hd_view view = { .epoch = 3, .nmembers = 3, .nranks = 2, .member = { 4, 6, 9 },
		.rank = { { 6, 5 }, { 4, 0 } }, .shape = { .nstages = 2, .width = 2, .place = { 0, 1 } } };
	static const uint64_t all[3] = { 7, 7, 7 };
	static uint32_t id[MOST];
	struct hd_passes passes;
	struct hd_exchange x;
	struct hd_transfers t;

	(void)state;
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
	assert_int_equal(hd_exchange_init(&x, 5, 3, 0, NULL), HD_OK);
	hd_exchange_stages(&x, &two);
	assert_int_equal(hd_exchange_begin(&x, &view, 4, 7, &passes, all, NULL), HD_OK);
	hd_transfers_init(&t, &(struct hd_transfers_spec){ .nmembers = 3, .nvns = 5, .nbuckets = 3,
		.nstages = 2, .partial = true, .tensors = true, .owner = x.held.owner,
			.member = view.member });
	for (uint32_t from = 0; from < 3; from++)
		for (uint32_t to = 0; to < 3; to++) {
			uint32_t count[HD_XFER_KINDS] = { 0 };
			size_t n = from == to ? 0 : hd_transfers_between(&t, &view, &x, from, to, id);
			for (size_t i = 0; i < n; i++) {
				struct hd_xfer_name name = { 0 };
				assert_int_equal(hd_transfers_name(&t, id[i], &name, NULL), HD_OK);
				assert_int_equal(hd_transfers_id(&t, name), id[i]);
				assert_true(name.from == from && name.to == to);
				count[name.kind]++;
			}
			/* member 1 holds buckets 0 and 1, member 0 bucket 2: each sends their norms */
			uint32_t norms = from == to || from == 2 ? 0 : from == 1 ? 2 : 1;
			uint32_t roots = from == to || from == 2 || to == 2 ? 0 : to == 1 ? 2 : 1;
			/* each of the first two has a part of the tensor */
			CHECK(count[HD_XFER_RATIO] == (from != to && from < 2 && to < 2), "%u to %u", from,
				to);
			CHECK(count[HD_XFER_NORM] == norms && count[HD_XFER_PARTIAL] == roots &&
				!count[HD_XFER_SUM] && !count[HD_XFER_PARAMETERS] && !count[HD_XFER_DIGEST],
				"%u to %u: %u norms, %u roots", from, to, count[HD_XFER_NORM],
				count[HD_XFER_PARTIAL]);
		}
	hd_exchange_finish(&x);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_numbered_block_by_block),
		cmocka_unit_test(what_is_beyond_the_table_names_nothing),
		cmocka_unit_test(a_row_to_the_parent_stands_beside_those_to_the_owner),
		cmocka_unit_test(the_largest_table_fits_its_ids),
		cmocka_unit_test(a_row_says_how_long_and_how_urgent_it_is),
		cmocka_unit_test(a_rank_is_an_urgency),
		cmocka_unit_test(a_random_order_is_drawn_for_each_step),
		cmocka_unit_test(a_plain_vector_is_cut_into_full_buckets),
		cmocka_unit_test(both_ends_of_a_step_name_the_same_rows),
		cmocka_unit_test(ends_in_two_steps_of_an_epoch_have_the_rows_of_the_later),
		cmocka_unit_test(a_plain_step_names_nothing_else),
		cmocka_unit_test(of_stages_owners_and_norms_are_the_holding_s),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
