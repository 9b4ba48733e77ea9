/* What relays open, post and send in a step, of replicated and of sharded state, begun and taken up again. */
#include "worker/testing_relays.h"

static bool digests_in(const struct scene *s, uint64_t step) { return s->copies && s->digests &&
	(step + 1) % EVERY == 0; }

/* The sum of a bucket is here: it goes on, and if this one is the last of its line, its sums of squares go to
 * the others. */
static void sum_here(struct node *o, uint32_t b)
{
	o->w.summed[b] = true;
	assert_int_equal(hd_relay_sum(&o->r, b, hd_exchange_sum_to(&o->x, b), NULL), HD_OK);
	for (uint32_t i = 0; i < nsegments(b); i++)
		o->w.norm[b * HD_BUCKET_CHUNKS + i] = norm_value(o->w.step, b * HD_BUCKET_CHUNKS + i);
	if (hd_exchange_norm_source(&o->x, b) == o->x.me)
		assert_int_equal(hd_relay_norm(&o->r, b, hd_exchange_norm_to(&o->x, b), NULL), HD_OK);
}

static void root_here(struct node *o, uint32_t worker, uint32_t ordinal, uint32_t b)
{
	CHECK(hd_exchange_root(&o->x, worker, ordinal, b), "root %u of worker %u, bucket %u", ordinal, worker,
		b);
	if (!hd_exchange_fold(&o->x, b))
		return;
	const float *const *operand = hd_relay_operands(&o->r, b);
	for (uint32_t i = 0; i < o->r.nroots; i++) {
		uint32_t first, end;
		hd_tree_cover(VNS, o->r.root[i], &first, &end);
		for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
			CHECK(operand[i][k] == sum_value(o->w.step, first, end, b * BUCKET + k),
				"operand %u of bucket %u, element %u", i, b, k);
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
			hd_relay_own_metrics(&o->r, at++);
	if (s->table && hd_exchange_table_source(&o->x) == m) {
		hd_put32(o->r.table, 1);
		hd_put32(o->r.table + 4, VNS);
		for (uint32_t v = 0; v < VNS; v++) {      /* it has the entries of all */
			uint8_t *entry = o->r.table + HEAD + v * ENTRY;
			hd_put32(entry, v);
			hd_put32(entry + 4, 77);
			hd_put64(entry + 8, o->w.step * 100 + v);
		}
		assert_int_equal(hd_relay_table(&o->r, ((UINT64_C(1) << s->n) - 1) & ~s->table, NULL), HD_OK);
	}
	for (uint32_t p = 0, ordinal = 0; p < at; p++) {
		uint32_t first[HD_MAX_PASSES + 1], npasses;
		struct hd_tnode root[HD_VIEW_ROOTS];
		assert_int_equal(hd_passes_roots(&o->x.passes, VNS, id_of_member(m), root, HD_VIEW_ROOTS,
			first, &npasses), HD_OK);
		if (!s->table) {
			hd_exchange_leaves(&o->x, id_of_member(m), p);
			assert_int_equal(hd_relay_metrics(&o->r, p, NULL), HD_OK);
		}
		for (uint32_t b = 0; b < NB; b++) {
			uint32_t to = hd_exchange_source(&o->x, b);
			if (!hd_exchange_wants_roots(&o->x, b))
				continue;
			if (to != m)
				assert_int_equal(hd_relay_partial(&o->r, p, b, id_of_member(to), NULL),
				HD_OK);
			for (ordinal = first[p]; to == m && ordinal < first[p + 1]; ordinal++)
				root_here(o, id_of_member(m), ordinal, b);
		}
	}
	assert_int_equal(hd_relay_metrics(&o->r, at, NULL), HD_OK);     /* no such pass: nothing */
}

static void take(struct node *o, uint32_t worker, const struct hd_relay_news *news)
{
	uint32_t b = news->bucket, segment = b * HD_BUCKET_CHUNKS;
	bool digest = o->r.digest_every && (o->w.step + 1) % o->r.digest_every == 0 && o->w.digests;

	switch (news->kind) {
	case HD_XFER_PARTIAL: root_here(o, worker, news->ordinal, b); break;
	case HD_XFER_METRICS:
		for (uint32_t p = 0; p < HD_MAX_PASSES; p++)
			CHECK(!(news->passes >> p & 1) || hd_exchange_leaves(&o->x, worker, p),
				"pass %u of worker %u came twice", p, worker);
		break;
	case HD_XFER_TABLE: assert_true(hd_exchange_table(&o->x)); break;
	case HD_XFER_SUM:
		assert_true(hd_exchange_sum(&o->x, b));
		for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
			CHECK(o->w.sum[b * BUCKET + k] == sum_value(o->w.step, 0, VNS, b * BUCKET + k),
				"the sum of bucket %u, element %u", b, k);
		assert_false(news->parm_done);
		sum_here(o, b);
		break;
	case HD_XFER_NORM:
		hd_exchange_norm(&o->x, b);
		for (uint32_t i = 0; i < nsegments(b); i++)
			CHECK(o->r.norm[segment + i] == norm_value(o->w.step, segment + i),
				"sums of squares of bucket %u", b);
		break;
	case HD_XFER_PARAMETERS: case HD_XFER_DIGEST:
		CHECK(news->parm_done == (o->one_came[b] || !digest), "bucket %u: both of two parts are news",
			b);
		o->one_came[b] = true;
		if (!news->parm_done)
			break;
		assert_true(hd_exchange_parm(&o->x, b));
		for (uint32_t k = 0; k < nsegments(b) * CHUNK; k++)
			CHECK(o->w.parm[b * BUCKET + k] == parm_value(o->w.step, b * BUCKET + k),
				"parameters of bucket %u", b);
		break;
	case HD_XFER_RATIO:
	case HD_XFER_ACTIVATIONS: case HD_XFER_GRADIENTS: case HD_XFER_MOMENTS: case HD_XFER_SHARDS:
	case HD_XFER_STATE:
	case HD_XFER_SHADOW: fail();
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
			struct hd_arrival arrival = { .worker = id_of_member(a), .transfer = s.transfer,
				.step = s.step, .buffer = to->post[k].buffer,
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
		CHECK(o->w.norm[i] == norm_value(step, i), "%s: sums of squares of segment %u at %u", s->what,
			i, m);
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
				assert_int_equal(hd_relay_parm(&o->r, b, hd_exchange_parm_to(&o->x, b), NULL),
					HD_OK);
		}
	return true;
}

static void check_end(const struct scene *s, struct node *o, uint32_t m, uint64_t step)
{
	uint8_t own[NB];

	CHECK(hd_exchange_complete(&o->x), "%s: step %llu is not complete at %u", s->what,
		(unsigned long long)step, m);
	for (uint32_t a = 0; a < s->n; a++) {
		CHECK(!o->with[a].nposts && !o->with[a].nsent && !o->r.awaited[a],
			"%s: step %llu, %u from %u: %u posts are left, %u of what it sends, %u awaited",
			s->what,
			(unsigned long long)step, m, a, o->with[a].nposts, o->with[a].nsent, o->r.awaited[a]);
		CHECK(o->with[a].nopened == (a != m), "%s: %u channels with %u", s->what, o->with[a].nopened,
			a);
	}
	struct hd_diag diag = { "" };
	CHECK(!hd_relay_take(&o->r, &diag), "%s", diag.text);
	for (uint32_t v = 0; v < VNS; v++) {
		bool mine = s->table >> m & 1;
		for (uint32_t p = 0; p < PASSES && o->w.pass[p] && !s->table; p++)
			mine |= holds(&o->w, o->w.pass[p], v);
		CHECK(o->w.known[v] == !mine, "%s: virtual node %u at %u: taken %d", s->what, v, m,
			o->w.known[v]);
	}
	for (uint32_t b = 0; b < NB; b++)
		own[b] = hd_exchange_chained(&o->x, b) || s->parm[b] >> m & 1;
	memset(o->w.taken, 0, sizeof o->w.taken);
	hd_relay_take_digests(&o->r, own);
	for (uint32_t i = 0; i < CHUNKS * DIGEST; i++) {
		bool comes = digests_in(s, step) && !own[i / (HD_BUCKET_CHUNKS * DIGEST)];
		CHECK(o->w.taken[i] == (comes ? digest_value(step, i) : 0), "%s: digest %u at %u is %u",
			s->what, i, m, o->w.taken[i]);
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
			CHECK(out->n_out == in->n_in && !memcmp(out->out, in->in, in->n_in * sizeof *in->in),
				"%s: %u to %u: %zu rows, %zu", what,
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

/* Rule 1, spelled out for three and four members: what may go of each bucket, from>to, by numbers
 * of members. */
static void what_may_go_of_a_bucket_follows_from_the_view_and_the_step(void **state)
{
	static const char *parts[] = { "sum", "norm", "parm", "digest" };
	static const enum hd_xfer_kind kind[] = { HD_XFER_SUM, HD_XFER_NORM, HD_XFER_PARAMETERS,
		HD_XFER_DIGEST };
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
			"sum 0>1 0>2 2>0",
			"sum 1>0 1>2",
			"sum 1>0 1>2 2>1",
			"sum 0>1 0>2 2>0 2>1",
		} },
		{ { "sharded", .n = 3, .copies = 2, .digests = true }, {
			"sum 0>1 norm 1>2 parm 1>2 digest 1>2",
			"sum 0>1 norm 1>2 parm 1>2 digest 1>2",
			"sum 1>2 norm 2>0 parm 2>0 digest 2>0",
			"sum 1>2 norm 2>0 parm 2>0 digest 2>0",
			"sum 2>0 norm 0>1 parm 0>1 digest 0>1",
		} },
		{ { "sharded, more copies", .n = 3, .copies = 9 }, {
			"sum 0>1 0>2",
			"sum 0>1 0>2",
			"sum 1>0 1>2",
			"sum 1>0 1>2",
			"sum 2>0 2>1",
		} },
		{ { "sharded, again", .n = 4, .copies = 2, .digests = true, .again = true, .have = { 8, 0, 4, 4, 9 }, .chain = { 12, 9, 9, 6, 3 },
			.parm = { 0, 0, 1, 8, 0 } }, {
			"sum 0>1 3>2 norm 1>2 1>3 2>0 2>1 parm 1>2 1>3 2>0 2>1 digest 1>2 1>3 2>0 2>1",
			"sum 0>1 0>3 norm 1>2 1>3 3>1 3>2 parm 1>2 1>3 3>1 3>2 digest 1>2 1>3 3>1 3>2",
			"sum 1>2 2>3 3>0 norm 0>1 2>0 2>3 parm 0>1 0>2 2>0 2>3 digest 0>1 0>2 2>0 2>3",
			"sum 2>1 2>3 norm 1>0 1>3 3>0 3>1 parm 3>0 3>1 digest 3>0 3>1",
			"sum 0>1 3>0 norm 0>1 0>2 1>2 parm 0>1 0>2 1>2 1>3 digest 0>1 0>2 1>2 1>3",
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
			for (uint32_t part = 0; part < (s->copies ? 4 : 1); part++) {
				bool any = false;
				for (uint32_t from = 0; from < s->n; from++)
					for (uint32_t to = 0; to < s->n; to++) {
						const struct channel *c = &world->node[from]->with[to];
						if (from == to || !row_bytes(c->out, c->n_out,
							row_of(kind[part], from, to, b, 0)))
							continue;
						len += (size_t)snprintf(text + len, sizeof text - len,
							"%s%s %u>%u", any || !len ? "" : " ",
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

/* What may be posted though it came: entries of a pass that is not whole, and both parts of parameters of
 * which one is here. */
static bool comes_again(const struct node *o, uint32_t worker, uint32_t transfer)
{
	struct hd_xfer_name name = name_of(transfer);
	uint32_t number = name.number;

	if (name.kind == HD_XFER_PARAMETERS || name.kind == HD_XFER_DIGEST)
		return o->one_came[number] && !hd_exchange_fresh(&o->x, number);
	for (uint32_t i = 0; i < o->x.passes.npasses && name.kind == HD_XFER_METRICS; i++)
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
	/* without a link nothing is opened */
	assert_int_equal(hd_relay_open(&o->r, &o->x, NULL), HD_OK);
	CHECK(!c->nposts && c->nopened == 1, "%s: %u opens a channel to %u without a link", s->what, m, a);
	o->up[a] = true;
	assert_int_equal(hd_relay_up(&o->r, id_of_member(a), NULL), HD_OK);
	CHECK(c->nopened == 2 && o->r.awaited[a] == c->nposts, "%s: %u of %u are awaited", s->what,
		o->r.awaited[a], c->nposts);
	for (uint32_t i = 0; i < n; i++)
		CHECK(posted(c->post, c->nposts, before[i]), "%s: %u from %u to %u is not posted again",
			s->what, before[i].transfer, a, m);
	for (uint32_t i = 0; i < c->nposts; i++)
		CHECK(posted(before, n, c->post[i]) || comes_again(o, id_of_member(a), c->post[i].transfer),
			"%s: %u from %u to %u came, and is posted again",
			s->what, c->post[i].transfer, a, m);
	n = c->nposts;
	/* and once it is open, nothing more */
	assert_int_equal(hd_relay_open(&o->r, &o->x, NULL), HD_OK);
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

	err = err ? err : hd_relay_metrics(&o->r, 0, diag);
	err = err ? err : hd_relay_table(&o->r, 6, diag);
	for (uint32_t b = 0; b < NB && !err; b++) {
		if (hd_bucket_owner(b, NB, 3) != 0)
			err = hd_relay_partial(&o->r, 0, b, id_of_member(hd_bucket_owner(b, NB, 3)), diag);
		else
			err = hd_relay_norm(&o->r, 4, 2, diag);
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
		CHECK(err ? err == HD_E_IO && !strcmp(diag.text, "trouble") : at == world->ncalls + 1,
			"call %u of %u: %s", at, world->ncalls, diag.text);
		leave();
	}
	assert_true(at > 40);
	enter(3, 2, true);
	begin(&s, 5);
	world->lost = true;
	world->node[0]->x.chain[4] = 1;
	assert_int_equal(say_all(world->node[0], NULL), HD_OK);
	for (uint32_t m = 0; m < 3; m++)
		assert_int_equal(world->node[0]->r.awaited[m], 0);
	leave();
}

static void without_memory_a_step_is_not_opened(void **state)
{
	const struct scene s = { "memory", .n = 3 }, more = { "memory", .n = 3, .again = true,
		.repaired = true };
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (uint64_t n = 1; err; n++) {
		/* where it has none yet, and where there are too few */
		for (uint32_t first = 0; first < 2; first++) {
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
			CHECK(err == HD_OK || (err == HD_E_NOMEM && strstr(diag.text, "no memory")),
				"request %u: %s", (uint32_t)n, diag.text);
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
	hd_put32(o->r.metrics + 2 * o->r.metrics_len + HEAD, VNS);
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
