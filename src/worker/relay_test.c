#include "worker/relay_int.h"

#include "worker/testing_relay.h"

/* What a step's exchange gives, when links, members and views come and go at each instant of it. */

static void steps_without_faults_end(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= R_WORKERS; n++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			char what[80];
			snprintf(what, sizeof what, "%u workers, seed %llu", n, (unsigned long long)seed);
			r_run(what, seed, n, NULL, 0, 6);
		}
}

/* One fault at every `every`-th turn of a run. */
static void sweep(const char *name, struct r_plan fault, uint32_t nworkers, uint64_t seed, uint32_t every)
{
	uint32_t turns = r_run(name, seed, nworkers, NULL, 0, 4);

	for (uint32_t at = 1; at < turns; at += every) {
		char what[120];
		fault.turn = at;
		snprintf(what, sizeof what, "%s at turn %u, %u workers, seed %llu", name, at, nworkers,
			(unsigned long long)seed);
		r_run(what, seed, nworkers, &fault, 1, 4);
	}
}

static uint32_t every(uint32_t n)
{
	const char *text = getenv("HD_RELAY_EVERY");       /* 1: each turn, for a hunt */
	return text ? (uint32_t)strtoul(text, NULL, 10) : SANITIZED ? 10 * n : n;
}

static void an_epoch_may_end_at_any_instant(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++)
		sweep("a fence", (struct r_plan){ .kind = R_FENCE }, 3, seed, every(11));
}

/* ---- what a relay refuses, at every turn of steps that go on ---- */

static uint32_t nforeign, nplaces, nunawaited, nunfilled, nbetween;

static void refuses(struct hd_relay *r, struct hd_arrival arrival, enum hd_err err, const char *what)
{
	struct hd_relay before = *r;
	struct hd_relay_news news;
	struct hd_diag diag = { "" };

	CHECK(hd_relay_arrived(r, &arrival, &news, &diag) == err && diag.text[0], "%s: %s, turn %u: %s",
		r_now->what, what, r_now->turn, diag.text);
	CHECK(!memcmp(&before, r, sizeof *r), "%s: %s, turn %u: it was taken in part", r_now->what, what,
		r_now->turn);
}

/* Rule 2: of another step, of no member of the view, to another place than that of its name, or when nothing
 * is awaited. */
static void forge_arrivals(struct hd_relay *r)
{
	if (!r->x || r->step != r->x->step) {
		if (r->has_view && r->x)
			refuses(r, (struct hd_arrival){ .worker = r->view.member[0], .step = r->x->step,
				.transfer = 0, .buffer = r->table }, HD_E_PROTOCOL,
				"not open");
		return;
	}
	for (uint32_t m = 0; m < r->view.nmembers; m++) {
		struct hd_arrival good = { .worker = r->view.member[m], .step = r->step,
			/* the last block of the table: from, to; of itself it names nothing */
			.transfer = hd_transfers_count(&r->rows) -
				r->view.nmembers * (r->view.nmembers - m) + r->me,
			.buffer = r->table }, bad = good;
		bad.step = r->step + 1;
		refuses(r, bad, HD_E_PROTOCOL, "of a step to come");
		bad.step = r->step - 1;
		refuses(r, bad, HD_E_PROTOCOL, "of a step that is over");
		bad = good;
		bad.worker = 77;
		refuses(r, bad, HD_E_PROTOCOL, "of no member");
		nforeign++;
		bad = good;
		bad.buffer = r->table + 1;
		refuses(r, bad, HD_E_INTEGRITY, "to another place");
		nplaces += r->awaited[m] > 0;
		if (!r->awaited[m]) {
			refuses(r, good, HD_E_INTEGRITY, "that is not awaited");
			nunawaited++;
		}
	}
}

static void refuse_the_rest(struct r_world *w)
{
	for (uint32_t i = 0; i < w->nworkers; i++) {
		struct hd_relay *r = &w->node[i]->e.relay, before = *r;
		struct hd_exchange other;
		struct hd_diag diag = { "" };
		if (!w->node[i]->alive || !r->has_view)
			continue;
		forge_arrivals(r);
		assert_int_equal(hd_relay_up(r, 77, &diag), HD_OK);        /* no member */
		/* between two epochs nothing is opened */
		if (r->x && r->epoch != r->view.epoch) {
			assert_int_equal(hd_relay_open(r, r->x, &diag), HD_OK);
			assert_int_equal(hd_relay_up(r, r->view.member[0], &diag), HD_OK);
			nbetween++;
		}
		bool awaits = false;
		for (uint32_t m = 0; m < r->view.nmembers; m++)
			awaits |= r->view.member[m] != r->self && r->awaited[m] &&
				r->open_epoch[m] == (uint64_t)r->view.epoch + 1 &&
				hd_hub_is_up(r->hub, r->view.member[m]);
		if (r->x && r->epoch == r->view.epoch && awaits && r->step == r->x->step) {
			other = *r->x;
			other.step++;
			CHECK(hd_relay_open(r, &other, &diag) == HD_E_INTEGRITY,
				"%s, turn %u: a step began over places that are awaited", w->what, w->turn);
			assert_non_null(strstr(diag.text, "are awaited from worker"));
			nunfilled++;
		}
		CHECK(!memcmp(&before, r, sizeof *r), "%s, turn %u: something was changed", w->what, w->turn);
	}
}

static void what_is_not_awaited_here_and_now_is_refused(void **state)
{
	static const struct r_plan plans[] = { { R_FENCE, 150, 0, 0, 0, 0, false },
		{ R_CUT, 300, 0, 1, 100, 20, true }, { R_FENCE, 500, 0, 0, 0, 0, false } };

	(void)state;
	r_each_turn = refuse_the_rest;
	for (uint64_t seed = 0; seed < 3; seed++)
		r_run("refusals", seed, 3, plans, 3, 5);
	r_each_turn = NULL;
	CHECK(nforeign > 100 && nplaces > 100 && nunawaited > 100 && nunfilled > 20 && nbetween > 5,
		"tried too little: %u, %u, %u, %u, %u", nforeign, nplaces,
		nunawaited, nunfilled, nbetween);
}

static uint32_t ntaken, nbeyond;
static uint64_t most_taken[R_WORKERS];

/* What a worker takes for roots of others in the step at hand: of its passes, which a restart may deal out
 * in more pieces than a view has. */
static uint64_t room_of_step(const struct hd_relay *r)
{
	const struct hd_passes *p = &r->x->passes;
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint64_t roots = 0, bytes = 0;

	for (uint32_t i = 0; i < p->npasses; i++) {
		uint32_t n = 0;
		if (p->pass[i].worker == r->self)
			continue;
		assert_int_equal(hd_ranges_roots(R_VNS, p->range + p->pass[i].first_range, p->pass[i].nranges,
			root, HD_VIEW_ROOTS, &n), HD_OK);
		roots += n;
	}
	for (uint32_t run = 0; run < hd_layout_nruns(r->layout); run++)
		bytes += r->x->held.owner[hd_layout_run(r->layout, run).bucket] == r->me ?
			roots * hd_layout_run_room(r->layout, run) : 0;
	return bytes;
}

/* What the relays took for roots of others is what follows from the views that they were in; more where a
 * step was restarted, and then what its passes need. */
static void count_the_rooms(struct r_world *w)
{
	if (w->turn == 1)
		memset(most_taken, 0, sizeof most_taken);
	for (uint32_t i = 0; i < w->nworkers; i++) {
		const struct hd_relay *r = &w->node[i]->e.relay;
		struct hd_passes own;
		uint64_t n = 0, step;
		if (!w->node[i]->alive || !r->has_view || !r->x || r->step != r->x->step ||
			r->epoch != r->view.epoch)
			continue;
		assert_int_equal(hd_view_received(&r->view, r->self, R_VNS, r->layout, NULL, 0,
			0, &n), HD_OK);
		assert_int_equal(hd_passes_of_view(&own, &r->view), HD_OK);
		step = room_of_step(r);
		const bool restarted = own.npasses != r->x->passes.npasses ||
			memcmp(own.pass, r->x->passes.pass, own.npasses * sizeof *own.pass) ||
			memcmp(own.range, r->x->passes.range, own.nranges * sizeof *own.range);
		CHECK(restarted || step == n, "%s, turn %u: worker %u: %llu bytes, its view says %llu",
			w->what, w->turn, r->self, (unsigned long long)step, (unsigned long long)n);
		most_taken[i] = step > most_taken[i] ? step : most_taken[i];
		CHECK(r->received_cap == most_taken[i], "%s, turn %u: worker %u took %llu bytes, needs %llu",
			w->what, w->turn, r->self,
			(unsigned long long)r->received_cap, (unsigned long long)most_taken[i]);
		ntaken += n > 0;
		nbeyond += restarted && step > n;
	}
}

static void the_room_for_roots_of_others_follows_from_the_view(void **state)
{
	(void)state;
	r_each_turn = count_the_rooms;
	for (uint64_t seed = 0; seed < 8; seed++)
		r_run("rooms", seed, 1 + (uint32_t)seed % 4, NULL, 0, 3);
	r_each_turn = NULL;
	CHECK(ntaken > 100 && nbeyond > 0, "only %u rooms were taken, %u beyond a view's", ntaken, nbeyond);
}

static void without_memory_no_relay_is_made(void **state)
{
	static struct hd_worker worker;
	static struct hd_segment segment[R_CHUNKS];
	static struct hd_chunk chunk[R_CHUNKS];
	struct hd_layout layout = { .elems = R_FLAT, .nsegments = R_CHUNKS, .nchunks = R_CHUNKS,
		.segment = segment, .chunk = chunk };
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (uint32_t i = 0; i < R_CHUNKS; i++) {
		chunk[i] = (struct hd_chunk){ (uint64_t)i * R_CHUNK, R_CHUNK, i, 1 };
		segment[i] = (struct hd_segment){ (uint64_t)i * R_CHUNK, R_CHUNK, i, i };
	}
	for (uint64_t n = 1; err; n++) {
		struct hd_relay relay;
		hd_alloc_arm(n);
		err = hd_relay_init(&relay, NULL, &worker, &layout, R_VNS, NULL);
		hd_alloc_arm(0);
		CHECK(n <= 11 ? err == HD_E_NOMEM : err == HD_OK, "request %u: %d", (uint32_t)n, err);
		hd_relay_finish(&relay);
	}
}

static void a_view_may_be_planned_at_any_instant(void **state)
{
	(void)state;
	for (uint64_t seed = 10; seed < 12; seed++)
		sweep("a planned view", (struct r_plan){ .kind = R_PLAN }, 3, seed, every(29));
}

static void a_member_may_be_lost_at_any_instant(void **state)
{
	(void)state;
	for (uint32_t lost = 0; lost < 3; lost++)
		sweep("a loss", (struct r_plan){ .kind = R_LOSE, .a = lost, .fence = 5 }, 3, 20 + lost,
			every(17));
}

static void a_link_may_break_at_any_instant(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		sweep("a broken link", (struct r_plan){ .kind = R_CUT, .a = i == 2, .b = 1 + (i > 0),
			.mend = i & 1 ? 0 : 300, .fence = i & 1 ? 400 : 20,
			.again = i > 1 }, 3, 30 + i, every(17));
}

static void many_faults(uint64_t from, uint64_t n)
{
	for (uint64_t seed = from; seed < from + n; seed++) {
		struct r_world draw = { .random = (seed + 77) * UINT64_C(0xbf58476d1ce4e5b9) | 1 };
		uint32_t nplans = 1 + r_draw(&draw, 12), nworkers = 2 + r_draw(&draw, 3);
		struct r_plan plan[12];
		char what[80];
		for (uint32_t i = 0; i < nplans; i++) {
			plan[i] = (struct r_plan){ (enum r_fault)r_draw(&draw, R_NFAULTS),
				1 + r_draw(&draw, 6000), r_draw(&draw, nworkers - 1), 0,
				r_draw(&draw, 400), r_draw(&draw, 300), r_draw(&draw, 2) };
			plan[i].b = plan[i].a + 1 + r_draw(&draw, nworkers - 1 - plan[i].a);
		}
		snprintf(what, sizeof what, "seed %llu, %u workers, %u faults", (unsigned long long)seed,
			nworkers, nplans);
		r_run(what, seed, nworkers, plan, nplans, 8);
	}
}

static void runs_of_many_faults_give_the_same_sums(void **state)
{
	const char *first = getenv("HD_RELAY_FIRST"), *count = getenv("HD_RELAY_RUNS");

	(void)state;
	many_faults(first ? strtoull(first, NULL, 10) : 0, count ? strtoull(count, NULL, 10) : DRAWS(120));
}

static uint64_t npaired, ndirect;

static void count_the_pairs(struct r_world *w)
{
	for (uint32_t i = 0; i < w->nworkers; i++) {
		const struct hd_exchange *x = w->node[i]->alive ? w->node[i]->e.relay.x : NULL;
		npaired += x && x->paired;
		ndirect += x && !x->paired && x->nmembers > 1;
	}
}

/* The same with pairs: at every instant of a step some members hold what others have added up. */
static void partial_sums_that_go_by_pairs_give_the_same(void **state)
{
	static const uint32_t n[] = { 2, 4 };

	(void)state;
	r_pairs = true;
	r_each_turn = count_the_pairs;
	for (uint32_t i = 0; i < 2; i++) {
		for (uint64_t seed = 50; seed < 54; seed++)
			r_run("pairs", seed, n[i], NULL, 0, 6);
		sweep("a fence with pairs", (struct r_plan){ .kind = R_FENCE }, n[i], 54 + i, every(61));
		sweep("a loss with pairs", (struct r_plan){ .kind = R_LOSE, .a = i, .fence = 5 }, n[i], 60 +
			i,
			every(37));
		sweep("a broken link with pairs", (struct r_plan){ .kind = R_CUT, .a = 0, .b = 1, .mend = 300,
			.fence = 20 }, n[i], 70 + i, every(61));
	}
	r_each_turn = NULL;
	many_faults(500, DRAWS(20));
	r_pairs = false;
	CHECK(npaired > 1000 && ndirect > 100, "%llu turns with pairs, %llu without",
		(unsigned long long)npaired, (unsigned long long)ndirect);
}

/* Steps begin while two sums are being sent, then one of the buffers after; they come back in any order. */
static void what_is_being_sent_keeps_its_buffers(void **state)
{
	const uint64_t lent = UINT64_C(1) << 62;
	struct hd_relay r = { .received_serial = 5, .lent = 2, .received_cap = 64 };

	(void)state;
	assert_non_null(r.received = hd_alloc(64));
	uint8_t *first = memset(r.received, 1, 64);
	assert_int_equal(hd_relay_keep_lent(&r, NULL), HD_OK);
	assert_true(!r.received && !r.received_cap && !r.lent && r.kept && r.kept->bytes == first);
	assert_int_equal(hd_relay_keep_lent(&r, NULL), HD_OK);     /* nothing is lent */
	assert_true(!r.kept->next && r.received_serial == 6);
	assert_non_null(r.received = hd_alloc(64));
	r.lent = 1;
	assert_int_equal(hd_relay_keep_lent(&r, NULL), HD_OK);
	assert_non_null(r.received = hd_alloc(64));
	r.lent = 1;
	assert_false(hd_relay_given_back(&r, 5) || hd_relay_given_back(&r, UINT64_C(1) << 63 | 5));
	assert_true(hd_relay_given_back(&r, lent | 5) && r.kept->next && r.kept->next->bytes == first);
	assert_int_equal(first[63], 1);
	assert_true(hd_relay_given_back(&r, lent | 5) && r.kept && r.kept->serial == 6 && !r.kept->next);
	assert_true(hd_relay_given_back(&r, lent | 7) && !r.lent && r.received && r.kept);
	assert_true(hd_relay_given_back(&r, lent | 6) && !r.kept);
	hd_free(r.received);
}

/* In a world that goes on worker 0 learns that it cannot take a plan, while an event is carried out, as
 * HD_DO_AGAIN does that waits for folds, or between two. */
static bool within, refused;

static bool has_said(const struct r_node *n)
{
	static const char want[] = "{\"text\":\"no room for \\\"it\\\"\"}";
	const size_t len = sizeof want - 1;
	size_t at = 0;

	while (at + len < HD_TELL_MAX && memcmp(n->e.room + at, want, len) != 0)
		at++;
	return at + len < HD_TELL_MAX;
}

static void refuse_a_plan(struct r_world *w)
{
	struct r_node *n = w->node[0];
	struct hd_elastic *e = &n->e;
	struct hd_command d;

	if (refused || w->turn < 50 || n->w.computing || e->commands.first != e->commands.end)
		return;
	refused = true;
	assert_int_equal(hd_commands_give(&e->commands, &(struct hd_command){ .kind = HD_COMMAND_PREPARE },
		NULL), HD_OK);
	assert_int_equal(hd_commands_take(&e->commands, &d, 1), 1);
	hd_commands_done(&e->commands, &(struct hd_command_done){ .command = d, .err = HD_E_NOMEM,
		.refused = true, .diag = { "no room for \"it\"" } });
	e->stepping = within;
	hd_elastic_results(e);
	e->stepping = false;
	assert_true(e->leaving && e->io_err == HD_E_NOMEM && !has_said(n));
	hd_elastic_say_refused(e);
	CHECK(has_said(n), "%s an event: nothing was said", within ? "within" : "outside");
	memset(e->room, 0, HD_TELL_MAX);
	hd_elastic_say_refused(e);
	assert_false(has_said(n));                /* once */
	e->leaving = false;                       /* the world goes on to its end */
	e->io_err = HD_OK;
}

static void why_a_plan_is_not_taken_is_said_before_the_links_close(void **state)
{
	(void)state;
	r_each_turn = refuse_a_plan;
	for (uint32_t i = 0; i < 2; i++) {
		within = i;
		refused = false;
		r_run("a plan that is not taken", 1, 2, NULL, 0, 4);
		assert_true(refused);
	}
	r_each_turn = NULL;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_without_faults_end),
		cmocka_unit_test(the_room_for_roots_of_others_follows_from_the_view),
		cmocka_unit_test(without_memory_no_relay_is_made),
		cmocka_unit_test(what_is_not_awaited_here_and_now_is_refused),
		cmocka_unit_test(an_epoch_may_end_at_any_instant),
		cmocka_unit_test(a_view_may_be_planned_at_any_instant),
		cmocka_unit_test(a_member_may_be_lost_at_any_instant),
		cmocka_unit_test(a_link_may_break_at_any_instant),
		cmocka_unit_test(why_a_plan_is_not_taken_is_said_before_the_links_close),
		cmocka_unit_test(runs_of_many_faults_give_the_same_sums),
		cmocka_unit_test(partial_sums_that_go_by_pairs_give_the_same),
		cmocka_unit_test(what_is_being_sent_keeps_its_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
