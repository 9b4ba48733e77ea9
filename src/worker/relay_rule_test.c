/* The rules of relay.h, one by one, where a step is opened and where transfers come: in an epoch without its
 * view, before the first step, over places that are awaited, of a link that was lost, without memory, and
 * with each call to the wire failing. */
#include "worker/testing_relays.h"

static enum hd_err open_of(uint32_t m) { return hd_relay_open(&world->node[m]->r, &world->node[m]->x, NULL); }

static uint32_t nposts(uint32_t m)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < world->n; a++)
		n += world->node[m]->with[a].nposts;
	return n;
}

static uint32_t nopened(uint32_t m)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < world->n; a++)
		n += world->node[m]->with[a].nopened;
	return n;
}

/* All that was posted is there no more, as when an epoch ends. */
static void clear(uint32_t m)
{
	for (uint32_t a = 0; a < world->n; a++)
		world->node[m]->with[a].nposts = world->node[m]->with[a].nopened = 0;
}

static void next_view(uint32_t m)
{
	world->view.epoch++;
	hd_relay_epoch(&world->node[m]->r, world->view.epoch);
	hd_relay_view(&world->node[m]->r, &world->view, id_of_member(m));
	clear(m);
}

/* ---- what is wanted first ---- */

/* Of each bucket something is missing at each member when a step is open, nothing once its sum is here, nor
 * between two epochs. */
static void what_is_missing_of_a_bucket_is_wanted(void **state)
{
	const struct scene s = { "three", .n = 3 };

	(void)state;
	enter(3, 0, false);
	begin(&s, 4);
	for (uint32_t m = 0; m < 3; m++) {
		struct hd_relay *r = &world->node[m]->r;
		assert_int_equal(open_of(m), HD_OK);
		for (uint32_t b = 0; b < r->nbuckets; b++) {
			CHECK(hd_relay_want(r, b) != HD_NOBODY, "member %u, bucket %u", m, b);
			hd_exchange_sum(&world->node[m]->x, b);
			assert_int_equal(hd_relay_want(r, b), HD_NOBODY);
		}
	}
	hd_relay_epoch(&world->node[0]->r, 9);
	world->node[0]->x.sum[0] = 0;
	assert_int_equal(hd_relay_want(&world->node[0]->r, 0), HD_NOBODY);
	leave();
}

/* ---- opening ---- */

static void before_a_step_and_between_two_epochs_nothing_is_opened(void **state)
{
	const struct scene s = { "three", .n = 3 };
	struct hd_relay none = { .nvns = VNS };

	(void)state;
	enter(3, 0, false);
	struct hd_relay *r = &world->node[0]->r;
	assert_int_equal(hd_relay_up(&none, id_of_member(1), NULL), HD_OK);        /* no view yet */
	assert_int_equal(hd_relay_up(r, id_of_member(1), NULL), HD_OK);            /* no step yet */
	assert_int_equal(nopened(0) + nposts(0), 0);
	begin(&s, 4);
	hd_relay_epoch(r, 6);                     /* the hub is on, the view is not here */
	assert_int_equal(open_of(0), HD_OK);
	assert_true(!r->x && !nopened(0) && !nposts(0));
	next_view(0);
	assert_int_equal(open_of(0), HD_OK);
	assert_true(nopened(0) == 2 && nposts(0) > 0);
	uint32_t n = nposts(0);
	hd_relay_epoch(r, 7);
	assert_int_equal(hd_relay_up(r, id_of_member(1), NULL), HD_OK);
	assert_int_equal(open_of(0), HD_OK);
	assert_true(nopened(0) == 2 && nposts(0) == n && r->open_epoch[1] == 7);
	hd_relay_epoch(r, 6);
	assert_int_equal(hd_relay_up(r, 77, NULL), HD_OK);                         /* no member */
	assert_int_equal(hd_relay_up(r, id_of_member(0), NULL), HD_OK);            /* itself */
	assert_true(nopened(0) == 2 && nposts(0) == n);
	leave();
}

/* Its places are not named yet, and those of the step before lie. */
static void a_link_that_comes_up_before_its_step_is_opened_waits_for_that(void **state)
{
	const struct scene s = { "three", .n = 3 };

	(void)state;
	enter(3, 0, false);
	struct node *o = world->node[0];
	begin(&s, 4);
	o->up[1] = o->up[2] = false;
	assert_int_equal(open_of(0), HD_OK);
	assert_int_equal(nopened(0) + nposts(0), 0);
	begin(&s, 5);
	o->up[1] = true;
	assert_int_equal(hd_relay_up(&o->r, id_of_member(1), NULL), HD_OK);
	assert_int_equal(nopened(0) + nposts(0), 0);
	assert_int_equal(open_of(0), HD_OK);
	assert_true(o->with[1].nopened == 1 && o->with[1].nposts && !o->with[2].nopened);
	leave();
}

/* Rule 2: in a channel all of a step comes before the next begins; what a channel that is gone was to
 * bring is not waited for. */
static void a_step_begins_when_what_was_awaited_came_or_its_link_is_lost(void **state)
{
	const struct scene s = { "three", .n = 3 };

	(void)state;
	for (uint32_t lost = 0; lost < 4; lost++) {
		enter(3, 0, false);
		struct node *o = world->node[0];
		struct hd_diag diag = { "" };
		begin(&s, 4);
		assert_int_equal(open_of(0), HD_OK);
		assert_true(o->r.awaited[1] && o->r.awaited[2]);
		for (uint32_t a = 1; a < 3; a++)
			o->up[a] = !(lost >> (a - 1) & 1);
		clear(0);
		begin(&s, 5);
		enum hd_err err = hd_relay_open(&o->r, &o->x, &diag);
		CHECK(err == (lost == 3 ? HD_OK : HD_E_INTEGRITY), "lost %u: %d", lost, err);
		if (lost == 3) {
			o->up[1] = true;
			assert_int_equal(hd_relay_up(&o->r, id_of_member(1), NULL), HD_OK);
			assert_int_equal(o->r.awaited[1], o->with[1].nposts);
		} else
			assert_non_null(strstr(diag.text, lost & 1 ? "step 4 are awaited from worker 11" :
				"step 4 are awaited from worker 7"));
		leave();
	}
	/* Under another view the step begins again, whatever was awaited. */
	enter(3, 0, false);
	begin(&s, 4);
	assert_int_equal(open_of(0), HD_OK);
	next_view(0);
	assert_int_equal(open_of(0), HD_OK);
	assert_true(nopened(0) == 2 && nposts(0));
	leave();
}

static void each_call_to_the_wire_may_fail(void **state)
{
	static const struct scene scenes[] = {
		{ "three", .n = 3 },
		{ "one copy", .n = 3, .copies = 1, .digests = true },
		{ "three copies", .n = 3, .copies = 3, .digests = true },
		{ "sums and a table", .n = 3, .again = true, .have = { 6, 7, 0, 1, 4 }, .table = 6 },
		{ "sharded, with sums and parameters", .n = 3, .copies = 2, .digests = true, .again = true, .have = { 3, 3, 6, 6, 5 }, .parm = { 6, 3, 2, 7, 4 },
			.chain = { 3, 3, 6, 6, 5 }, .table = 2 },
	};
	uint32_t nfailed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
		const struct scene *s = &scenes[i];
		enter(s->n, s->copies, s->digests);
		begin(s, 5);
		for (uint32_t m = 0; m < s->n; m++) {
			enum hd_err err = HD_E_IO;
			for (uint32_t at = 1; err; at++) {
				struct hd_diag diag = { "" };
				next_view(m);
				world->ncalls = 0;
				world->fails = HD_E_IO;
				world->fail_at = at;
				err = hd_relay_open(&world->node[m]->r, &world->node[m]->x, &diag);
				CHECK(err ? err == HD_E_IO && world->ncalls == at : world->ncalls < at,
					"%s: call %u of %u at %u", s->what,
					at, world->ncalls, m);
				nfailed += err != HD_OK;
			}
		}
		leave();
	}
	CHECK(nfailed > 150, "%u calls failed", nfailed);
}

static void a_channel_that_could_not_be_opened_is_opened_the_next_time(void **state)
{
	const struct scene s = { "two", .n = 2 };

	(void)state;
	enter(2, 0, false);
	begin(&s, 4);
	world->fails = HD_E_AGAIN;
	world->fail_at = 1;
	assert_int_equal(open_of(0), HD_E_AGAIN);
	assert_int_equal(nposts(0), 0);
	world->fails = HD_OK;
	assert_int_equal(open_of(0), HD_OK);
	assert_true(nopened(0) == 2 && nposts(0));
	leave();
}

/* More passes of one worker than a step may have: nothing is opened. */
static void a_step_of_too_many_roots_is_not_opened(void **state)
{
	const struct scene s = { "two", .n = 2 };
	struct hd_diag diag = { "" };

	(void)state;
	enter(2, 0, false);
	begin(&s, 4);
	struct node *o = world->node[0];
	o->x.passes.npasses = HD_MAX_PASSES + 1;
	for (uint32_t i = 0; i <= HD_MAX_PASSES; i++)
		o->x.passes.pass[i] = (struct hd_pass){ .worker = id_of_member(1), .pass = i,
			.first_range = 0, .nranges = 1 };
	assert_int_equal(hd_relay_open(&o->r, &o->x, &diag), HD_E_NOSPACE);
	assert_non_null(strstr(diag.text, "the roots of step 4"));
	assert_int_equal(nopened(0) + nposts(0), 0);
	leave();
}

/* ---- sending ---- */

static enum hd_err say(struct node *o, uint32_t what, uint64_t members)
{
	switch (what) {
	case 0: return hd_relay_sum(&o->r, 0, members, NULL);
	case 1: return hd_relay_norm(&o->r, 0, members, NULL);
	case 2: return hd_relay_parm(&o->r, 0, members, NULL);
	case 3: return hd_relay_table(&o->r, members, NULL);
	case 4: return hd_relay_metrics(&o->r, 0, NULL);
	default: return HD_E_INVAL;
	}
}

/* `members` may name this one, too: nothing goes to itself. Of three the first owns bucket 0. If all hold its
 * slots it sends the sum to all; if it holds them alone, norms and parameters. */
static void what_is_said_goes_to_the_others_once(void **state)
{
	static const struct { enum hd_xfer_kind kind; uint32_t number; } of[] = { { HD_XFER_SUM, 0 },
		{ HD_XFER_NORM, 0 },
		{ HD_XFER_PARAMETERS, 0 }, { HD_XFER_TABLE, 0 }, { HD_XFER_METRICS, 0 } };

	(void)state;
	for (uint32_t what = 0; what < 5; what++) {
		/* parameters and digests; the entries of six virtual nodes */
		uint32_t each = what == 2 ? 2 : what == 4 ? 6 : 1;
		const struct scene s = { "three", .n = 3, .copies = what == 0 ? 3 : 1, .digests = true };
		enter(3, s.copies, true);
		struct node *o = world->node[0];
		begin(&s, 5);
		assert_int_equal(open_of(0), HD_OK);
		assert_int_equal(say(o, what, 7), HD_OK);
		assert_int_equal(o->with[0].nsent, 0);
		for (uint32_t a = 1; a < 3; a++) {
			CHECK(o->with[a].nsent == each, "%u: %u go to %u", what, o->with[a].nsent, a);
			assert_int_equal(o->with[a].sent[0].transfer, row_of(of[what].kind, 0, a,
				of[what].number, 0));
			assert_int_equal(o->with[a].sent[0].step, 5);
			assert_int_equal(o->with[a].sent[0].priority,
				what == 0 || what == 2 ? 2 * NB : 0);
		}
		if (what < 4) {
			assert_int_equal(say(o, what, 4), HD_OK);
			assert_true(o->with[1].nsent == each && o->with[2].nsent == 2 * each);
		}
		world->fails = HD_E_IO;
		for (world->fail_at = 1; world->fail_at <= 2 * each; world->fail_at++) {
			world->ncalls = 0;
			assert_int_equal(say(o, what, 6), HD_E_IO);       /* and after it no other is made */
			assert_int_equal(world->ncalls, world->fail_at);
		}
		leave();
	}
}

/* ---- memory ---- */

/* The same ranges; whose they are is turned round: as many roots, more of them foreign. */
static void turn_ranks(void)
{
	for (uint32_t r = 0; r < world->view.nranks; r++)
		world->view.rank[r].worker = id_of_member(1 - (world->view.rank[r].worker - 3) / 4);
}

static void memory_is_taken_where_more_is_needed_than_there_is(void **state)
{
	const struct scene s = { "two", .n = 2 }, more = { "two", .n = 2, .again = true, .repaired = true };

	(void)state;
	enter(2, 0, false);
	begin(&s, 4);
	assert_int_equal(open_of(0), HD_OK);
	hd_alloc_arm(1);                          /* from here on all are refused */
	next_view(0);
	enum hd_err again = open_of(0);
	hd_alloc_arm(0);
	assert_int_equal(again, HD_OK);
	turn_ranks();
	next_view(0);
	begin(&s, 4);
	hd_alloc_arm(1);
	enum hd_err foreign = open_of(0);
	hd_alloc_arm(0);
	assert_int_equal(foreign, HD_E_NOMEM);
	/* What there was is there still: the view before needs no more. */
	for (uint64_t n = 1; n < 4; n++) {
		begin(&more, 4);
		next_view(0);
		hd_alloc_arm(n);
		enum hd_err err = open_of(0);
		hd_alloc_arm(0);
		turn_ranks();
		next_view(0);
		begin(&s, 4);
		hd_alloc_arm(1);
		again = open_of(0);
		hd_alloc_arm(0);
		CHECK(again == HD_OK, "after request %u (%d): %d", (uint32_t)n, err, again);
		if (n == 1)
			assert_int_equal(err, HD_E_NOMEM);
		turn_ranks();
	}
	leave();
}

/* ---- what may come ---- */

static bool tells_of(uint32_t m, uint32_t v)
{
	const struct hd_passes *p = &world->node[0]->x.passes;
	uint32_t first = 0;
	bool tells = false;

	for (uint32_t r = 0; r < world->view.nranks; first += world->view.rank[r++].nvns)
		tells |= world->view.rank[r].worker == id_of_member(m) &&
			v - first < world->view.rank[r].nvns;
	for (uint32_t i = 0; i < p->npasses; i++)
		for (uint32_t k = 0; k < p->pass[i].nranges && p->pass[i].worker == id_of_member(m); k++)
			tells |= v - p->range[p->pass[i].first_range + k].first <
				p->range[p->pass[i].first_range + k].n;
	return tells;
}

/* Rule 1: of the entries those of the sender's part of the view, and of the step at hand; the table
 * whoever needs it. */
static void entries_come_from_those_who_compute_them(void **state)
{
	static const struct scene scenes[] = { { "three", .n = 3 },
		{ "repairs", .n = 3, .again = true, .repaired = true } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		enter(3, 0, false);
		begin(&scenes[i], 4);
		for (uint32_t m = 0; m < 3; m++)
			assert_int_equal(open_of(m), HD_OK);
		for (uint32_t a = 0; a < 3; a++)
			for (uint32_t b = 0; b < 3; b++) {
				const struct channel *c = &world->node[a]->with[b];
				for (uint32_t v = 0; v < VNS && a != b; v++)
					CHECK(!!row_bytes(c->out, c->n_out, row_of(HD_XFER_METRICS, a, b, v,
					0)) == tells_of(a, v),
						"%s: entry %u from %u to %u",
						scenes[i].what, v, a, b);
				assert_true(a == b || row_bytes(c->out, c->n_out, row_of(HD_XFER_TABLE, a, b,
					0, 0)));
			}
		leave();
	}
}

/* No member had the table when the step was taken up; the one that has it now awaits no entries. */
static void who_has_the_table_is_sent_no_entries(void **state)
{
	const struct scene s = { "two", .n = 2, .again = true };

	(void)state;
	for (uint32_t here = 0; here < 2; here++) {
		uint32_t n = 0;
		enter(2, 0, false);
		begin(&s, 4);
		struct node *o = world->node[1];
		if (here)
			assert_true(hd_exchange_table(&o->x));
		assert_int_equal(hd_exchange_table_source(&o->x), HD_NOBODY);
		assert_int_equal(open_of(1), HD_OK);
		for (uint32_t i = 0; i < o->with[0].nposts; i++)
			n += name_of(o->with[0].post[i].transfer).kind == HD_XFER_METRICS;
		assert_int_equal(n, here ? 0 : 7);
		leave();
	}
}

static void arrive(struct node *o, uint32_t from, uint32_t transfer, struct hd_relay_news *news)
{
	struct channel *c = &o->with[from];
	struct hd_arrival arrival = { .worker = id_of_member(from), .step = o->x.step, .transfer = transfer };

	for (uint32_t i = 0; i < c->nposts; i++)
		if (c->post[i].transfer == transfer)
			arrival.buffer = c->post[i].buffer;
	assert_non_null(arrival.buffer);
	if (name_of(transfer).kind == HD_XFER_TABLE)
		for (uint32_t v = 0; v < VNS; v++) {
			uint8_t *entry = (uint8_t *)arrival.buffer + HEAD + v * ENTRY;
			hd_put32((uint8_t *)arrival.buffer, 1);
			hd_put32((uint8_t *)arrival.buffer + 4, VNS);
			hd_put32(entry, v);
			hd_put32(entry + 4, 77);
			hd_put64(entry + 8, o->x.step * 100 + v);
		}
	assert_int_equal(hd_relay_arrived(&o->r, &arrival, news, NULL), HD_OK);
}

/* The entry of a pass says nothing of it when it comes from a member that does not compute it. */
static void a_pass_is_done_by_its_own_worker(void **state)
{
	const struct scene s = { "three", .n = 3 };

	(void)state;
	for (uint32_t from = 1; from < 3; from++) {       /* virtual node 5 is the third's */
		struct hd_relay_news news;
		enter(3, 0, false);
		begin(&s, 4);
		struct node *o = world->node[0];
		assert_int_equal(open_of(0), HD_OK);
		struct hd_arrival arrival = { .worker = id_of_member(from), .step = 4,
			.transfer = row_of(HD_XFER_METRICS, from, 0, 5, 0),
			.buffer = o->r.metrics + 5 * o->r.metrics_len };
		assert_int_equal(hd_relay_arrived(&o->r, &arrival, &news, NULL), HD_OK);
		assert_int_equal(news.passes != 0, from == 2);
		leave();
	}
}

/* A table that was whole stays when the step begins again in another view; entries of one that was not
 * come again, all of them. */
static void a_whole_table_stays_when_a_step_begins_again(void **state)
{
	const struct scene first = { "two", .n = 2, .again = true, .table = 1 };

	(void)state;
	for (uint32_t whole = 0; whole < 2; whole++) {
		const struct scene second = { "two", .n = 2, .again = true, .table = whole ? 3 : 0 };
		struct hd_relay_news news;
		enter(2, 0, false);
		begin(&first, 4);
		struct node *o = world->node[1];
		assert_int_equal(open_of(1), HD_OK);
		arrive(o, 0, row_of(HD_XFER_TABLE, 0, 1, 0, 0), &news);
		next_view(1);
		begin(&second, 4);
		assert_int_equal(open_of(1), HD_OK);
		assert_int_equal(hd_relay_take(&o->r, NULL), HD_OK);
		for (uint32_t v = 0; v < VNS; v++)
			CHECK(o->w.known[v] == whole, "entry %u", v);
		leave();
	}
}

static void refuses(struct node *o, struct hd_arrival arrival, enum hd_err err, const char *what)
{
	struct hd_relay before = o->r;
	struct hd_relay_news news;
	struct hd_diag diag = { "" };

	CHECK(hd_relay_arrived(&o->r, &arrival, &news, &diag) == err && diag.text[0], "%s", what);
	CHECK(!memcmp(&before, &o->r, sizeof before), "%s: it was taken in part", what);
}

static void what_is_of_no_place_of_the_step_at_hand_is_refused(void **state)
{
	const struct scene s = { "three", .n = 3, .copies = 2, .digests = true };

	(void)state;
	enter(3, 2, true);
	struct node *o = world->node[1];
	const uint32_t first = 2;                 /* it owns buckets 2 and 3 */
	struct hd_arrival good = { .worker = id_of_member(0), .step = 4,
		.transfer = row_of(HD_XFER_PARTIAL, 0, 1, first, 0) }, bad;
	refuses(o, good, HD_E_PROTOCOL, "before any step");
	begin(&s, 4);
	assert_int_equal(open_of(1), HD_OK);
	good.buffer = NULL;
	for (uint32_t i = 0; i < o->with[0].nposts; i++)
		if (o->with[0].post[i].transfer == good.transfer)
			good.buffer = o->with[0].post[i].buffer;
	assert_non_null(good.buffer);
	bad = good;
	bad.step = 5;
	refuses(o, bad, HD_E_PROTOCOL, "of a step to come");
	bad.step = 3;
	refuses(o, bad, HD_E_PROTOCOL, "of a step that is over");
	bad = good;
	bad.worker = 77;
	refuses(o, bad, HD_E_PROTOCOL, "of no member");
	bad = good;
	bad.transfer = good.transfer - 1;
	refuses(o, bad, HD_E_INTEGRITY, "a partial sum of a bucket of another owner, before");
	bad.transfer = good.transfer + 2;
	refuses(o, bad, HD_E_INTEGRITY, "a partial sum of a bucket of another owner, behind");
	bad.transfer = row_of(HD_XFER_PARTIAL, 0, 1, first, VNS - 1);
	refuses(o, bad, HD_E_INTEGRITY, "a partial sum that there is not");
	bad.transfer = row_of(HD_XFER_PARTIAL, 2, 1, first, 0);
	refuses(o, bad, HD_E_INTEGRITY, "a row of another member");
	bad.transfer = row_of(HD_XFER_SUM, 0, 1, first, 0);
	refuses(o, bad, HD_E_INTEGRITY, "a row of another kind");
	bad.transfer = row_of(HD_XFER_SUM, 0, 2, first, 0);
	bad.buffer = hd_dist_sum_at(&o->w, first);
	refuses(o, bad, HD_E_INTEGRITY, "a row to another member");
	const struct hd_transfers t = all_rows();
	for (uint32_t beyond = 0; beyond < 2; beyond++) {
		bad.transfer = beyond ? UINT32_MAX : hd_transfers_count(&t);
		refuses(o, bad, HD_E_INTEGRITY, "a row beyond the table");
	}
	bad = good;
	bad.worker = id_of_member(2);
	refuses(o, bad, HD_E_INTEGRITY, "to the place of another's");
	bad = good;
	bad.buffer = (float *)good.buffer + 1;
	refuses(o, bad, HD_E_INTEGRITY, "to another place");
	uint32_t n = o->r.awaited[0];
	o->r.awaited[0] = 0;
	refuses(o, good, HD_E_INTEGRITY, "that is not awaited");
	o->r.awaited[0] = n;
	struct hd_relay_news news;
	assert_int_equal(hd_relay_arrived(&o->r, &good, &news, NULL), HD_OK);
	assert_int_equal(o->r.awaited[0], n - 1);
	begin(&s, 5);                             /* begun and not open */
	good.step = 5;
	refuses(o, good, HD_E_PROTOCOL, "of a step that is not open");
	good.step = 4;
	refuses(o, good, HD_E_PROTOCOL, "of the step before");
	leave();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_a_step_and_between_two_epochs_nothing_is_opened),
		cmocka_unit_test(a_link_that_comes_up_before_its_step_is_opened_waits_for_that),
		cmocka_unit_test(a_step_begins_when_what_was_awaited_came_or_its_link_is_lost),
		cmocka_unit_test(each_call_to_the_wire_may_fail),
		cmocka_unit_test(a_channel_that_could_not_be_opened_is_opened_the_next_time),
		cmocka_unit_test(a_step_of_too_many_roots_is_not_opened),
		cmocka_unit_test(what_is_said_goes_to_the_others_once),
		cmocka_unit_test(memory_is_taken_where_more_is_needed_than_there_is),
		cmocka_unit_test(entries_come_from_those_who_compute_them),
		cmocka_unit_test(who_has_the_table_is_sent_no_entries),
		cmocka_unit_test(what_is_missing_of_a_bucket_is_wanted),
		cmocka_unit_test(a_pass_is_done_by_its_own_worker),
		cmocka_unit_test(a_whole_table_stays_when_a_step_begins_again),
		cmocka_unit_test(what_is_of_no_place_of_the_step_at_hand_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
