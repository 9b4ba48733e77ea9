/* One suite for every row of the transports, each with two or three hubs; then what only the simulation can show. */
#include "wire/hub.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/bell.h"
#include "sys/crypto_tls.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "wire/testing.h"
#include "wire/transport.h"

/* On the machine's clock nothing is decided by T, and a machine that has other things to do is waited for. */
enum { HUBS = 3, T_MS = 1000, T_REAL_MS = 30000, PATIENCE_S = 100 };

struct world {
	const char *row;
	bool simulated;
	struct hd_net real;
	struct hd_net_sim sim;
	struct hd_clock clock_real, *clock;
	struct hd_clock_sim clock_sim;
	struct hd_loop loops[HUBS];
	struct hd_net_host hosts[HUBS];
	struct hd_hub hubs[HUBS];
	struct heard heard[HUBS];
	struct hd_hub_config config[HUBS];
	char addr[HUBS][HD_ADDR_CAP], folder[40];
	struct hd_diag diag;
};

static const struct hd_hash plan = { { 7 } };
static const char *const rows[] = { "sim", "unix", "tcp", "shm", "tls" };
static const uint8_t job_key[32] = "a key of the job, thirty-two by.";

static struct hd_net *net_of(struct world *w, int i) { return w->simulated ? &w->hosts[i].net : &w->real; }

static void start_hub(struct world *w, int i)
{
	struct hd_wire_events events = hear_with(&w->heard[i]);

	w->heard[i].clock = w->clock;
	assert_int_equal(hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i), &w->diag), HD_OK);
	snprintf(w->addr[i], sizeof w->addr[i], strcmp(w->row, "tcp") != 0 && strcmp(w->row, "tls") != 0 ? "unix:%s/%d" : "tcp:127.0.0.1:0", w->folder, i);
	CHECK(hd_hub_listen(&w->hubs[i], w->row, w->addr[i], &w->diag) == HD_OK, "%s", w->diag.text);
}

static struct world *enter(const char *row, int n)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->row = row;
	w->simulated = !strcmp(row, "sim");
	hd_clock_real(&w->clock_real);
	hd_clock_sim(&w->clock_sim, HD_NS_PER_S, 0);
	w->clock = w->simulated ? &w->clock_sim.clock : &w->clock_real;
	hd_net_real(&w->real);
	if (w->simulated)
		assert_int_equal(hd_net_sim_init(&w->sim, w->clock, NULL, &w->diag), HD_OK);
	memcpy(w->folder, "/tmp/hd_hub.XXXXXX", 19);
	assert_non_null(mkdtemp(w->folder));
	for (int i = 0; i < HUBS; i++) {
		assert_int_equal(w->simulated ? hd_loop_sim_init(&w->loops[i], &w->clock_sim, &w->diag) :
			hd_loop_init(&w->loops[i], w->clock, &w->diag), HD_OK);
		hd_net_sim_host(&w->sim, (uint32_t)i, &w->loops[i], &w->hosts[i]);
		w->config[i] = (struct hd_hub_config){ .job = { { 1 } }, .job_hash = { { 2 } }, .kernels = { { 3 } }, .worker = (uint32_t)i,
			.role = HD_ROLE_WORKER, .detect_ms = w->simulated ? T_MS : T_REAL_MS, .peers_cap = 8, .streams_cap = 64, .plaintext = true,
			.key = job_key, .key_len = 32 };
	}
	for (int i = 0; i < n; i++)
		start_hub(w, i);
	return w;
}

static void leave(struct world *w)
{
	for (int i = 0; i < HUBS; i++) {
		hd_hub_finish(&w->hubs[i]);
		hd_loop_finish(&w->loops[i]);
	}
	if (w->simulated)
		hd_net_sim_finish(&w->sim);
	assert_int_equal(rmdir(w->folder), 0);
	free(w);
}

/* One turn of whoever is due first (simulated), or of each (real). False: nothing more can happen before until_ns. */
static bool turn(struct world *w, int64_t until_ns)
{
	struct hd_loop_event other[8];
	size_t n;
	int first = -1;
	int64_t at = until_ns;

	for (int i = 0; i < HUBS; i++) {
		if (!w->hubs[i].impl)
			continue;
		if (!w->simulated) {
			assert_int_equal(hd_hub_poll(&w->hubs[i], hd_clock_now_ns(w->clock) + 200000, other, 8, &n, &w->diag), HD_OK);
			continue;
		}
		int64_t due = hd_hub_due_ns(&w->hubs[i]), next = hd_loop_sim_next_ns(&w->loops[i]);
		due = next < due ? next : due;
		if (due < at) {
			at = due;
			first = i;
		}
	}
	if (!w->simulated)
		return hd_clock_now_ns(w->clock) < until_ns;
	if (first < 0) {
		hd_clock_wait_until(w->clock, until_ns);
		return false;
	}
	CHECK(hd_hub_poll(&w->hubs[first], at, other, 8, &n, &w->diag) == HD_OK, "%s", w->diag.text);
	return true;
}

static void run_for(struct world *w, int64_t ms)
{
	int64_t until = hd_clock_now_ns(w->clock) + ms * HD_NS_PER_MS;

	while (turn(w, until))
		;
}

/* Until *what reaches n. */
static void run_until(struct world *w, const uint32_t *what, uint32_t n, const char *name)
{
	int64_t until = hd_clock_now_ns(w->clock) + PATIENCE_S * HD_NS_PER_S;

	while (*(const volatile uint32_t *)what < n)
		CHECK(turn(w, until) || *(const volatile uint32_t *)what >= n, "%s: waited too long for %s; lost: %s", w->row, name,
			w->heard[0].n_losts ? w->heard[0].losts[0].text : w->heard[1].n_losts ? w->heard[1].losts[0].text : "nobody");
}

static void meet(struct world *w, int a, int b)
{
	uint32_t ups_a = w->heard[a].n_ups, ups_b = w->heard[b].n_ups;

	CHECK(hd_hub_connect(&w->hubs[a], w->config[b].worker, w->row, w->addr[b], &w->diag) == HD_OK, "%s: %s", w->row, w->diag.text);
	run_until(w, &w->heard[a].n_ups, ups_a + 1, "up");
	run_until(w, &w->heard[b].n_ups, ups_b + 1, "up");
}

static uint64_t closed(struct world *w, int i, enum hd_close why)
{
	struct hd_hub_stats stats;

	hd_hub_stats(&w->hubs[i], &stats);
	return stats.closed[why];
}

/* ---- the suite ---- */

static void two_workers_say_everything_to_each_other(struct world *w)
{
	enum { BIG = 3 << 20, BULK = 1 << 20 };
	static const struct hd_transfer channel[] = { { 3, 0, BIG }, { 4, 1, 5 }, { 9, 2, 70000 } };
	uint8_t *bytes = malloc(BIG), *into[2][4];

	meet(w, 0, 1);
	assert_int_equal(w->heard[0].ups[0].worker, 1);
	assert_int_equal(w->heard[1].ups[0].worker, 0);
	assert_true(w->heard[0].ups[0].outgoing && !w->heard[1].ups[0].outgoing);
	assert_string_equal(w->heard[1].ups[0].transport, w->row);
	fill(bytes, BIG, 5);
	int64_t began = hd_clock_now_ns(w->clock);
	for (int i = 0; i < 2; i++) {
		uint32_t peer = (uint32_t)(1 - i);
		hd_hub_epoch(&w->hubs[i], 1, plan);
		assert_int_equal(hd_hub_channel(&w->hubs[i], peer, channel, 3, channel, 3, &w->diag), HD_OK);
		for (int k = 0; k < 4; k++)
			assert_non_null(into[i][k] = calloc(1, BIG));
		for (int k = 0; k < 3; k++)
			assert_int_equal(hd_hub_post(&w->hubs[i], peer, channel[k].id, into[i][k], &w->diag), HD_OK);
		assert_int_equal(hd_hub_expect(&w->hubs[i], peer, 77, into[i][3], BULK, &w->diag), HD_OK);
	}
	for (int i = 0; i < 2; i++) {
		uint32_t peer = (uint32_t)(1 - i);
		struct hd_answer answer = { .request = 77, .bytes = bytes, .len = BULK, .token = 4 };
		assert_int_equal(hd_hub_answer(&w->hubs[i], peer, &answer, &w->diag), HD_OK);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(hd_hub_send(&w->hubs[i], peer, &(struct hd_send){ channel[k].id, 0, 1, bytes, channel[k].bytes, k }, &w->diag), HD_OK);
		assert_int_equal(hd_hub_tell(&w->hubs[i], peer, 30, 8, "seal", 4, &w->diag), HD_OK);
	}
	for (int i = 0; i < 2; i++) {
		run_until(w, &w->heard[i].n_arrivals, 4, "arrivals");
		run_until(w, &w->heard[i].n_sents, 4, "sents");
		run_until(w, &w->heard[i].n_messages, 1, "message");
	}
	/* Where bytes take no time nothing does: nothing waits for a heartbeat. */
	assert_true(!w->simulated || hd_clock_now_ns(w->clock) == began);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++)
			CHECK(memcmp(into[i][k], bytes, channel[k].bytes) == 0, "%s: transfer %u", w->row, channel[k].id);
		CHECK(memcmp(into[i][3], bytes, BULK) == 0, "%s: bulk", w->row);
		assert_memory_equal(w->heard[i].messages[0].first, "seal", 4);
		assert_true(w->heard[i].messages[0].message.epoch == 1 && w->heard[i].messages[0].message.step == 8);
		for (int k = 0; k < 4; k++) {
			assert_int_equal(w->heard[i].sents[k].err, HD_OK);
			free(into[i][k]);
		}
	}
	free(bytes);
}

static void a_good_bye_reaches_the_other_side_with_its_reason(struct world *w)
{
	meet(w, 1, 0);
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 99, 1, "last words", 10, &w->diag), HD_OK);
	hd_hub_drop(&w->hubs[1], 0, HD_CLOSE_DONE, "the job is over");
	assert_false(hd_hub_is_up(&w->hubs[1], 0));
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 99, 1, "x", 1, NULL), HD_E_PEERLOST);
	run_until(w, &w->heard[0].n_losts, 1, "lost");
	run_until(w, &w->heard[1].n_losts, 1, "lost");
	assert_int_equal(w->heard[0].n_messages, 1);
	assert_int_equal(w->heard[0].losts[0].worker, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_DONE);
	assert_non_null(strstr(w->heard[0].losts[0].text, "the job is over"));
	assert_int_equal(w->heard[1].losts[0].why, HD_CLOSE_DONE);
	meet(w, 0, 1);                                    /* and may come again, the other way round */
	assert_true(hd_hub_is_up(&w->hubs[1], 0));
}

static void a_hub_closes_with_a_word_to_all(struct world *w)
{
	struct hd_sock stranger;

	start_hub(w, 2);
	meet(w, 0, 1);
	meet(w, 2, 0);
	bool strange = hd_sock_connect(net_of(w, 2), w->addr[0], &stranger, NULL) == HD_OK;
	run_for(w, 5);
	assert_int_equal(hd_hub_tell(&w->hubs[0], 1, 70, 0, "bye", 4, &w->diag), HD_OK);
	assert_false(hd_hub_is_closed(&w->hubs[0]));
	int64_t began = hd_clock_now_ns(w->clock);
	hd_hub_close(&w->hubs[0], HD_CLOSE_DONE, "all is done");
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, w->row, w->addr[0], NULL), HD_E_EXISTS);
	run_until(w, &w->heard[1].n_losts, 1, "lost");
	run_until(w, &w->heard[2].n_losts, 1, "lost");
	run_until(w, &w->heard[0].n_losts, 2, "lost");
	assert_true(hd_hub_is_closed(&w->hubs[0]));
	assert_true(hd_clock_now_ns(w->clock) - began < w->config[0].detect_ms * HD_NS_PER_MS);
	assert_int_equal(w->heard[1].losts[0].why, HD_CLOSE_DONE);
	assert_non_null(strstr(w->heard[2].losts[0].text, "all is done"));
	assert_memory_equal(w->heard[1].messages[0].first, "bye", 4);
	if (strange)
		hd_sock_close(&stranger);
	if (hd_hub_connect(&w->hubs[1], 0, w->row, w->addr[0], NULL) == HD_OK) {
		run_until(w, &w->heard[1].n_losts, 2, "nobody listens");
		assert_int_equal(w->heard[1].losts[1].why, HD_CLOSE_GONE);
	}
}

static void a_peer_that_vanishes_is_lost_at_once_with_all_that_waited(struct world *w)
{
	static const struct hd_transfer channel[] = { { 3, 0, 1000 } };
	uint8_t bytes[1000] = { 0 };

	meet(w, 0, 1);
	hd_hub_epoch(&w->hubs[0], 1, plan);
	assert_int_equal(hd_hub_channel(&w->hubs[0], 1, NULL, 0, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, bytes, 1000, 5 }, &w->diag), HD_OK);
	int64_t before = hd_clock_now_ns(w->clock);
	hd_hub_finish(&w->hubs[1]);
	run_until(w, &w->heard[0].n_losts, 1, "lost");
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_GONE);
	assert_true(w->heard[0].losts[0].at_ns - before < w->config[0].detect_ms * HD_NS_PER_MS);
	assert_int_equal(w->heard[0].n_sents, 1);
	assert_int_equal(w->heard[0].sents[0].err, HD_E_PEERLOST);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, bytes, 1000, 5 }, &w->diag), HD_E_PEERLOST);
	assert_int_equal(w->heard[1].n_losts, 0);         /* who finishes hears nothing */
	start_hub(w, 1);
	meet(w, 1, 0);
}

static void nobody_at_home_is_told(struct world *w)
{
	char addr[HD_ADDR_CAP];

	memcpy(addr, w->addr[1], sizeof addr);
	hd_hub_finish(&w->hubs[1]);
	enum hd_err err = hd_hub_connect(&w->hubs[0], 1, w->row, addr, &w->diag);
	if (!err) {
		run_until(w, &w->heard[0].n_losts, 1, "lost");
		assert_int_equal(w->heard[0].losts[0].worker, 1);
		assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_GONE);
	} else
		assert_int_equal(err, HD_E_PEERLOST);
	assert_false(hd_hub_is_up(&w->hubs[0], 1));
}

static void who_does_not_fit_is_refused_with_the_reason(struct world *w)
{
	static const struct { const char *name; enum hd_close why; int field; } cases[] = {
		{ "another job", HD_CLOSE_JOB, 0 }, { "another job of that name", HD_CLOSE_JOB, 1 }, { "other kernels", HD_CLOSE_KERNELS, 2 },
		{ "our own id", HD_CLOSE_IDENTITY, 3 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hd_hub_finish(&w->hubs[1]);
		struct hd_hub_config was = w->config[1];
		struct hd_hash *const hashes[] = { &w->config[1].job, &w->config[1].job_hash, &w->config[1].kernels };
		if (cases[i].field < 3)
			hashes[cases[i].field]->byte[15] ^= 1;
		else
			w->config[1].worker = 0;
		start_hub(w, 1);
		uint32_t losts = w->heard[1].n_losts;
		/* Where a key is proven, job and id are part of what is proven. By an open way another job learns nothing. */
		unsigned powers = hd_transport_find(w->row)->powers;
		enum hd_close here = powers & HD_WIRE_PROVES && cases[i].field % 3 == 0 ? HD_CLOSE_KEY : cases[i].why;
		enum hd_close there = cases[i].field == 0 && powers & HD_WIRE_OPEN ? HD_CLOSE_GONE : here;
		uint64_t counted = closed(w, 0, here);
		/* Under its own id hub 1 would not call 0: it calls somebody who is not there. */
		assert_int_equal(hd_hub_connect(&w->hubs[1], cases[i].field < 3 ? 0 : 5, w->row, w->addr[0], &w->diag), HD_OK);
		run_until(w, &w->heard[1].n_losts, losts + 1, cases[i].name);
		CHECK(w->heard[1].losts[losts % KEEP].why == there, "%s, %s: %s", w->row, cases[i].name, w->heard[1].losts[losts % KEEP].text);
		run_for(w, 50);
		CHECK(closed(w, 0, here) == counted + 1, "%s, %s: not counted", w->row, cases[i].name);
		assert_int_equal(w->heard[0].n_ups, 0);
		w->config[1] = was;
	}
}

/* Hub 1 does not know the job. A coordinator takes it in as a guest; a worker does not, nor a coordinator one that has an id. */
static void the_job_is_asked_of_a_coordinator_alone(struct world *w)
{
	static const struct { enum hd_role role; uint32_t asker; bool fits; } cases[] = {
		{ HD_ROLE_COORDINATOR, HD_WORKER_NONE, true }, { HD_ROLE_WORKER, HD_WORKER_NONE, false }, { HD_ROLE_COORDINATOR, 1, false } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_hub_config was[2] = { w->config[0], w->config[1] };
		uint32_t ups = w->heard[0].n_ups, own = w->heard[1].n_ups, losts = w->heard[1].n_losts;
		hd_hub_finish(&w->hubs[0]);
		hd_hub_finish(&w->hubs[1]);
		w->config[0].role = cases[i].role;
		w->config[1].worker = cases[i].asker;
		w->config[1].job_hash = (struct hd_hash){ { 0 } };
		start_hub(w, 0);
		start_hub(w, 1);
		assert_int_equal(hd_hub_connect(&w->hubs[1], 0, w->row, w->addr[0], &w->diag), HD_OK);
		if (cases[i].fits) {
			run_until(w, &w->heard[1].n_ups, own + 1, "the asker is up");
			run_until(w, &w->heard[0].n_ups, ups + 1, "its coordinator hears it");
			bool world = hd_transport_find(w->row)->powers & HD_WIRE_WORLD;
			assert_int_equal(hd_hub_is_away(&w->hubs[1], 0), world);
			assert_false(hd_hub_is_away(&w->hubs[1], 7));
		} else {
			run_until(w, &w->heard[1].n_losts, losts + 1, "a refusal");
			assert_int_equal(w->heard[1].losts[losts % KEEP].why, HD_CLOSE_JOB);
			run_for(w, 50);
			assert_int_equal(w->heard[0].n_ups, ups);
			assert_int_equal(closed(w, 0, HD_CLOSE_JOB), 1);
		}
		w->config[0] = was[0];
		w->config[1] = was[1];
	}
}

static void a_worker_has_one_connection(struct world *w)
{
	meet(w, 0, 1);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 1, w->row, w->addr[1], &w->diag), HD_E_EXISTS);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, w->row, w->addr[0], NULL), HD_E_EXISTS);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 0, w->row, w->addr[0], NULL), HD_E_INVAL);
	w->config[2].worker = 0;                          /* a second worker 0 */
	start_hub(w, 2);
	assert_int_equal(hd_hub_connect(&w->hubs[2], 1, w->row, w->addr[1], &w->diag), HD_OK);
	run_until(w, &w->heard[2].n_losts, 1, "refusal");
	assert_int_equal(w->heard[2].losts[0].why, HD_CLOSE_LIVE);
	run_for(w, 20);
	assert_true(hd_hub_is_up(&w->hubs[0], 1) && hd_hub_is_up(&w->hubs[1], 0));
	assert_int_equal(w->heard[1].n_ups, 1);
}

static void two_that_call_each_other_at_once_meet(struct world *w)
{
	assert_int_equal(hd_hub_connect(&w->hubs[0], 1, w->row, w->addr[1], &w->diag), HD_OK);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, w->row, w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	run_until(w, &w->heard[1].n_ups, 1, "up");
	run_for(w, 30);
	assert_true(hd_hub_is_up(&w->hubs[0], 1) && hd_hub_is_up(&w->hubs[1], 0));
	assert_int_equal(w->heard[0].n_ups, 1);
	assert_int_equal(w->heard[1].n_ups, 1);
	assert_int_equal(w->heard[0].n_losts, 0);
	/* The greater id may hear that it was refused, before the other's call reaches it; or its own came first and stays. */
	assert_true(!w->heard[1].n_losts || (w->heard[1].n_losts == 1 && w->heard[1].losts[0].why == HD_CLOSE_LIVE));
	assert_int_equal(hd_hub_tell(&w->hubs[0], 1, 33, 0, NULL, 0, &w->diag), HD_OK);
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 33, 0, NULL, 0, &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_messages, 1, "message");
	run_until(w, &w->heard[1].n_messages, 1, "message");
}

static void a_hub_takes_no_more_peers_than_it_has_room_for(struct world *w)
{
	hd_hub_finish(&w->hubs[0]);
	w->config[0].peers_cap = 1;
	start_hub(w, 0);
	start_hub(w, 2);
	meet(w, 1, 0);
	assert_int_equal(hd_hub_connect(&w->hubs[2], 0, w->row, w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[2].n_losts, 1, "refusal");
	assert_int_equal(w->heard[2].losts[0].why, HD_CLOSE_CROWDED);
	assert_true(hd_hub_is_up(&w->hubs[1], 0));
}

static void who_has_no_id_yet_is_a_guest(struct world *w)
{
	w->config[2].worker = HD_WORKER_NONE;
	start_hub(w, 2);
	meet(w, 2, 0);
	assert_int_equal(w->heard[2].ups[0].worker, 0);
	assert_true(w->heard[0].ups[0].worker >= HD_WORKER_GUEST);
	assert_int_equal(hd_hub_tell(&w->hubs[0], w->heard[0].ups[0].worker, 40, 0, "you are 2", 9, &w->diag), HD_OK);
	run_until(w, &w->heard[2].n_messages, 1, "message");
	hd_hub_drop(&w->hubs[2], 0, HD_CLOSE_DONE, "");
	run_until(w, &w->heard[2].n_losts, 1, "lost");
	hd_hub_call_me(&w->hubs[2], 2);
	meet(w, 2, 0);
	assert_int_equal(w->heard[0].ups[1].worker, 2);
}

static void three_meet_and_a_wake_ends_a_poll(struct world *w)
{
	struct hd_loop_event other[4];
	size_t n;

	start_hub(w, 2);
	meet(w, 0, 1);
	meet(w, 1, 2);
	meet(w, 2, 0);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 3; k++)
			if (i != k)
				assert_int_equal(hd_hub_tell(&w->hubs[i], k, 20 + i, 0, NULL, 0, &w->diag), HD_OK);
	for (int i = 0; i < 3; i++)
		run_until(w, &w->heard[i].n_messages, 2, "messages");
	run_for(w, 20);
	hd_hub_wake(&w->hubs[0]);
	assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock) + 100 * HD_NS_PER_MS, other, 4, &n, &w->diag), HD_OK);
	assert_true(n >= 1 && other[0].what == HD_LOOP_WAKE);
}

static void a_probe_is_answered(struct world *w)
{
	meet(w, 0, 1);
	hd_hub_probe(&w->hubs[0], 1);
	run_until(w, &w->heard[0].n_probes, 1, "probe");
	const struct hd_probe *p = &w->heard[0].probe;
	assert_true(p->worker == 1 && p->t1 <= p->t2 && p->t2 <= p->t3 && p->t3 <= p->t4);
}

/* ---- callbacks that act ---- */

static struct world *acting;
static uint8_t act_bytes[70000], act_into[70000];
static const struct hd_transfer act_rows[] = { { 1, 0, sizeof act_bytes } };

/* Hub 0, told to go: a new epoch and its channel out of the message, and a transfer at once. */
static void go_on_message(void *self, const struct hd_message *message)
{
	hear_message(self, message);
	if (message->id != 60)
		return;
	hd_hub_epoch(&acting->hubs[0], 2, plan);
	assert_int_equal(hd_hub_channel(&acting->hubs[0], 1, NULL, 0, act_rows, 1, &acting->diag), HD_OK);
	assert_int_equal(hd_hub_send(&acting->hubs[0], 1, &(struct hd_send){ 1, 0, 3, act_bytes, sizeof act_bytes, 7 }, &acting->diag), HD_OK);
}

/* Hub 1: a transfer that has come is answered by a word, and by the good-bye. */
static void end_on_arrival(void *self, const struct hd_arrival *arrival)
{
	hear_arrived(self, arrival);
	assert_int_equal(hd_hub_tell(&acting->hubs[1], 0, 61, 0, "thanks", 6, &acting->diag), HD_OK);
	hd_hub_drop(&acting->hubs[1], 0, HD_CLOSE_DONE, "that was all");
	hd_hub_drop(&acting->hubs[1], 0, HD_CLOSE_DONE, "twice");
	assert_int_equal(hd_hub_post(&acting->hubs[1], 0, 1, act_into, NULL), HD_E_PEERLOST);
}

/* Hub 0: who is lost is called again. */
static void call_again(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	hear_lost(self, worker, why, text);
	assert_int_equal(hd_hub_connect(&acting->hubs[0], worker, acting->row, acting->addr[1], &acting->diag), HD_OK);
}

static void callbacks_may_ask_for_more(struct world *w)
{
	acting = w;
	for (int i = 0; i < 2; i++) {
		struct hd_wire_events events = hear_with(&w->heard[i]);
		events.message = go_on_message;
		events.arrived = end_on_arrival;
		if (i == 0)
			events.lost = call_again;
		hd_hub_finish(&w->hubs[i]);
		assert_int_equal(hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i), &w->diag), HD_OK);
		assert_int_equal(hd_hub_listen(&w->hubs[i], w->row, w->addr[i], &w->diag), HD_OK);
	}
	fill(act_bytes, sizeof act_bytes, 2);
	memset(act_into, 0, sizeof act_into);
	meet(w, 0, 1);
	hd_hub_decided(&w->hubs[0], 2);
	hd_hub_epoch(&w->hubs[1], 2, plan);
	assert_int_equal(hd_hub_channel(&w->hubs[1], 0, act_rows, 1, NULL, 0, &w->diag), HD_OK);
	assert_int_equal(hd_hub_post(&w->hubs[1], 0, 1, act_into, &w->diag), HD_OK);
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 60, 0, NULL, 0, &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_ups, 2, "up again");
	run_until(w, &w->heard[1].n_ups, 2, "up again");
	assert_memory_equal(act_into, act_bytes, sizeof act_bytes);
	assert_int_equal(w->heard[0].n_messages, 2);
	assert_memory_equal(w->heard[0].messages[1].first, "thanks", 6);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_DONE);
	assert_non_null(strstr(w->heard[0].losts[0].text, "that was all"));
	assert_int_equal(w->heard[0].n_sents, 1);
}

static const struct { const char *name; void (*run)(struct world *w); } suite[] = {
	{ "two workers say everything to each other", two_workers_say_everything_to_each_other },
	{ "a good bye reaches the other side with its reason", a_good_bye_reaches_the_other_side_with_its_reason },
	{ "a hub closes with a word to all", a_hub_closes_with_a_word_to_all },
	{ "a peer that vanishes is lost at once with all that waited", a_peer_that_vanishes_is_lost_at_once_with_all_that_waited },
	{ "nobody at home is told", nobody_at_home_is_told },
	{ "who does not fit is refused with the reason", who_does_not_fit_is_refused_with_the_reason },
	{ "the job is asked of a coordinator alone", the_job_is_asked_of_a_coordinator_alone },
	{ "a worker has one connection", a_worker_has_one_connection },
	{ "two that call each other at once meet", two_that_call_each_other_at_once_meet },
	{ "a hub takes no more peers than it has room for", a_hub_takes_no_more_peers_than_it_has_room_for },
	{ "who has no id yet is a guest", who_has_no_id_yet_is_a_guest },
	{ "three meet and a wake ends a poll", three_meet_and_a_wake_ends_a_poll },
	{ "a probe is answered", a_probe_is_answered },
	{ "callbacks may ask for more", callbacks_may_ask_for_more },
};

/* HD_TEST_WIRE=ROW runs the suite for one row. */
static void every_transport_keeps_the_contract(void **state)
{
	const char *only = getenv("HD_TEST_WIRE");

	(void)state;
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) {
			if (only && strcmp(only, rows[r]) != 0)
				continue;
			struct world *w = enter(rows[r], 2);
			print_message("  %s: %s\n", rows[r], suite[i].name);
			suite[i].run(w);
			leave(w);
		}
}

/* ---- what only one row has ---- */

static void tcp_without_a_key_asks_for_a_word(void **state)
{
	struct world *w = enter("sim", 1);
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	(void)state;
	hd_hub_finish(&w->hubs[0]);
	w->config[0].plaintext = false;
	start_hub(w, 0);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 4, "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "pigeon", addr, NULL), HD_E_INVAL);
	leave(w);
}

static void a_folder_that_others_enter_is_not_listened_in(void **state)
{
	struct world *w = enter("unix", 1);
	char addr[HD_ADDR_CAP];

	(void)state;
	assert_int_equal(chmod(w->folder, 0755), 0);
	snprintf(addr, sizeof addr, "unix:%s/other", w->folder);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "unix", addr, NULL), HD_E_REFUSED);
	memcpy(addr, "tcp:127.0.0.1:0", 16);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "unix", addr, NULL), HD_E_INVAL);
	leave(w);
}

static void a_wrong_key_is_refused_on_both_sides(void **state)
{
	static const uint8_t other_key[32] = "another key, of thirty-two byte";
	struct world *w = enter("tls", 2);

	(void)state;
	hd_hub_finish(&w->hubs[1]);
	w->config[1].key = other_key;
	start_hub(w, 1);
	for (int a = 0; a < 2; a++) {
		uint32_t losts = w->heard[a].n_losts;
		uint64_t counted = closed(w, 1 - a, HD_CLOSE_KEY);
		assert_int_equal(hd_hub_connect(&w->hubs[a], (uint32_t)(1 - a), "tls", w->addr[1 - a], &w->diag), HD_OK);
		run_until(w, &w->heard[a].n_losts, losts + 1, "refusal");
		assert_int_equal(w->heard[a].losts[losts].why, HD_CLOSE_KEY);
		assert_non_null(strstr(w->heard[a].losts[losts].text, "do both sides have the same key"));
		run_for(w, 30);
		assert_int_equal(closed(w, 1 - a, HD_CLOSE_KEY), counted + 1);
		assert_int_equal(w->heard[1 - a].n_ups, 0);
	}
	leave(w);
}

/* The id in the greeting must be the one that was proven: hub 2 proves itself as 2 and says it is 1. */
static void who_proved_one_id_cannot_greet_as_another(void **state)
{
	struct world *w = enter("tls", 1);
	struct hd_transport const *tls = hd_transport_find("tls");
	struct hd_tls_realm realm;
	struct hd_conn conn = { .ops = tls, .second_id = -1, .ids = { .job = w->config[0].job, .self = 2, .peer = 0, .outgoing = true, .key = job_key,
		.key_len = 32, .realm = &realm } };
	struct hd_greeting_payload hello = { 1, 1, 1, HD_ROLE_WORKER, T_MS, w->config[0].job, w->config[0].job_hash, w->config[0].kernels, { { 5 } } };
	uint8_t bytes[HD_FRAME_HEADER + 80];
	enum hd_err err = HD_E_AGAIN;
	size_t put;

	(void)state;
	assert_int_equal(hd_tls_realm_make(&realm, &w->diag), HD_OK);
	assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &conn.sock, &w->diag), HD_OK);
	for (int i = 0; i < 1000 && err == HD_E_AGAIN; i++) {
		err = tls->ready(&conn, &w->diag);
		run_for(w, 1);
	}
	CHECK(err == HD_OK, "%s", w->diag.text);
	hd_greeting_put(&hello, bytes + HD_FRAME_HEADER);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_HELLO, .len = 80 }, bytes);
	assert_int_equal(tls->write(&conn, &(struct hd_vec){ bytes, sizeof bytes }, 1, &put, &w->diag), HD_OK);
	run_for(w, 30);
	tls->close(&conn);
	hd_tls_realm_finish(&realm);
	run_for(w, 30);
	assert_int_equal(closed(w, 0, HD_CLOSE_IDENTITY), 1);
	assert_int_equal(w->heard[0].n_ups, 0);
	leave(w);
}

static void a_stranger_at_the_door_of_tls_is_counted_and_gone(void **state)
{
	static const char *const says[] = { "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "" };
	struct world *w = enter("tls", 1);
	struct hd_sock sock;
	size_t put;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &sock, &w->diag), HD_OK);
		run_for(w, 20);
		if (*says[i])
			assert_int_equal(hd_sock_write(&sock, says[i], strlen(says[i]), &put, &w->diag), HD_OK);
		run_for(w, 20);
		hd_sock_close(&sock);
		run_for(w, 20);
		assert_int_equal(closed(w, 0, HD_CLOSE_KEY) + closed(w, 0, HD_CLOSE_GONE), i + 1);
	}
	assert_int_equal(w->heard[0].n_ups + w->heard[0].n_losts, 0);
	leave(w);
}

/* Bytes on the liveness socket, words that cannot be, a block of another length: the ring's peer is not believed. */
static void who_breaks_the_shared_ring_is_closed(void **state)
{
	struct world *w;

	(void)state;
	for (int how = 0; how < 2; how++) {
		w = enter("shm", 1);
		struct hd_sock sock;
		struct hd_memory memory = { 0 };
		struct hd_bell bells[2] = { { -1 }, { -1 } };
		int id = -1;
		size_t put;
		assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &sock, &w->diag), HD_OK);
		assert_int_equal(hd_memory_pair(how ? (2 << 20) + 4096 : 1 << 20, &memory, &id, &w->diag), HD_OK);
		assert_int_equal(hd_bell_make(&bells[0], &w->diag), HD_OK);
		assert_int_equal(hd_bell_make(&bells[1], &w->diag), HD_OK);
		assert_int_equal(hd_sock_give(&sock, (int[]){ id, bells[0].id, bells[1].id }, 3, &w->diag), HD_OK);
		run_for(w, 20);
		assert_int_equal(closed(w, 0, HD_CLOSE_FRAME), !how);
		if (how) {
			*(uint64_t *)memory.at = (2 << 20) + 1;           /* head of the first ring: more than it holds */
			hd_bell_ring(&bells[1]);
			run_for(w, 20);
			assert_int_equal(closed(w, 0, HD_CLOSE_FRAME), 1);
		}
		(void)!hd_sock_write(&sock, "x", 1, &put, NULL);
		hd_memory_id_close(id);
		hd_memory_give(&memory);
		hd_bell_close(&bells[0]);
		hd_bell_close(&bells[1]);
		hd_sock_close(&sock);
		leave(w);
	}
}

/* ---- time, simulated ---- */

static struct hd_net_fate script(void *user, const struct hd_net_trip *trip)
{
	const struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } *s = user;
	bool now = trip->now_ns >= s->from_ns && trip->now_ns < s->to_ns && (s->mute == 9 || s->mute == trip->from);

	return (struct hd_net_fate){ .lost = now && s->lost, .delay_ns = now && !s->lost ? s->to_ns - trip->now_ns : 0 };
}

static void a_silent_peer_is_suspected_after_t_and_heard_again(void **state)
{
	struct world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S, 8 * HD_NS_PER_S, false, 1 };

	(void)state;
	meet(w, 0, 1);
	w->sim.fate = script;
	w->sim.user = &s;
	run_for(w, 3900);                                 /* the clock began at 1 s */
	assert_int_equal(w->heard[0].n_suspects + w->heard[1].n_suspects, 0);
	run_for(w, 6000);
	assert_int_equal(w->heard[0].n_suspects, 2);
	struct heard_suspect *first = &w->heard[0].suspects[0], *second = &w->heard[0].suspects[1];
	CHECK(first->worker == 1 && first->silent_ms >= T_MS && first->at_ns >= 5 * HD_NS_PER_S + T_MS * HD_NS_PER_MS * 3 / 4 &&
		first->at_ns <= 5 * HD_NS_PER_S + T_MS * HD_NS_PER_MS, "suspected at %lld", (long long)first->at_ns);
	assert_int_equal(second->silent_ms, 0);
	assert_true(second->at_ns == 8 * HD_NS_PER_S);
	assert_int_equal(w->heard[1].n_suspects, 0);      /* the other direction is well */
	assert_true(hd_hub_is_up(&w->hubs[0], 1));
	leave(w);
}

static void a_half_open_connection_ends_after_eight_t(void **state)
{
	struct world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S, INT64_MAX, true, 9 };

	(void)state;
	meet(w, 0, 1);
	w->sim.fate = script;
	w->sim.user = &s;
	run_for(w, 13500);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->heard[i].n_suspects, 1);
		assert_int_equal(w->heard[i].n_losts, 1);
		assert_int_equal(w->heard[i].losts[0].why, HD_CLOSE_SILENT);
		assert_true(w->heard[i].losts[0].at_ns <= 5 * HD_NS_PER_S + 8 * T_MS * HD_NS_PER_MS);
	}
	assert_int_equal(hd_hub_connect(&w->hubs[0], 1, "sim", w->addr[1], &w->diag), HD_OK);
	int64_t asked = hd_clock_now_ns(w->clock);
	run_until(w, &w->heard[0].n_losts, 2, "a connect into the void");
	assert_int_equal(w->heard[0].losts[1].why, HD_CLOSE_GONE);
	assert_true(w->heard[0].losts[1].at_ns - asked == T_MS * HD_NS_PER_MS);
	leave(w);
}

/* Hub 1 has lost its side and calls again; hub 0 has not noticed yet: at first it refuses, once it suspects it takes the new one. */
static void who_calls_again_takes_the_place_of_a_suspected_connection(void **state)
{
	struct world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S, 5 * HD_NS_PER_S + 1, true, 9 };
	static const struct hd_transfer channel[] = { { 3, 0, 4 } };

	(void)state;
	meet(w, 1, 0);
	hd_hub_decided(&w->hubs[1], 1);
	hd_hub_epoch(&w->hubs[0], 1, plan);
	assert_int_equal(hd_hub_channel(&w->hubs[0], 1, NULL, 0, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, &w->diag), HD_OK);
	run_for(w, 4000);
	w->sim.fate = script;                             /* what hub 1 says as it ends is lost */
	w->sim.user = &s;
	s.from_ns = hd_clock_now_ns(w->clock);
	s.to_ns = s.from_ns + 10 * HD_NS_PER_MS;
	hd_hub_probe(&w->hubs[1], 0);
	run_for(w, 5);
	hd_hub_finish(&w->hubs[1]);
	run_for(w, 100);
	start_hub(w, 1);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[1].n_losts, 1, "refusal");
	assert_int_equal(w->heard[1].losts[0].why, HD_CLOSE_LIVE);
	run_until(w, &w->heard[0].n_suspects, 1, "suspicion");
	assert_int_equal(w->heard[0].n_losts, 0);
	meet(w, 1, 0);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_SILENT);
	assert_int_equal(w->heard[0].n_sents, 1);
	assert_int_equal(w->heard[0].sents[0].err, HD_E_PEERLOST);
	leave(w);
}

static void a_promised_buffer_is_waited_for_but_not_for_ever(void **state)
{
	static const struct hd_transfer channel[] = { { 3, 1, 4 } };

	(void)state;
	for (int posts = 0; posts < 2; posts++) {
		struct world *w = enter("sim", 2);
		char into[4] = "";
		meet(w, 0, 1);
		for (int i = 0; i < 2; i++) {
			hd_hub_epoch(&w->hubs[i], 1, plan);
			assert_int_equal(hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1, channel, 1, &w->diag), HD_OK);
		}
		assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, &w->diag), HD_OK);
		run_for(w, 7510);
		assert_int_equal(w->heard[1].n_losts + w->heard[1].n_suspects + w->heard[0].n_suspects, 0);
		/* Who waits does not spin. */
		assert_true(hd_hub_due_ns(&w->hubs[1]) > hd_clock_now_ns(w->clock));
		if (posts)
			assert_int_equal(hd_hub_post(&w->hubs[1], 0, 3, into, &w->diag), HD_OK);
		run_for(w, 1000);
		assert_int_equal(w->heard[1].n_arrivals, posts);
		assert_int_equal(w->heard[1].n_losts, !posts);
		assert_string_equal(into, posts ? "abc" : "");
		if (!posts)
			assert_non_null(strstr(w->heard[1].losts[0].text, "no buffer posted"));
		leave(w);
	}
}

static void an_unknown_epoch_is_asked_for_then_closed(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct world *w = enter("sim", 2);
		meet(w, 0, 1);
		hd_hub_epoch(&w->hubs[1], 6, plan);
		assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 50, 1, "abc", 3, &w->diag), HD_OK);
		int64_t told = hd_clock_now_ns(w->clock);
		run_until(w, &w->heard[0].n_aheads, 1, "ahead");
		assert_true(hd_clock_now_ns(w->clock) - told >= T_MS * HD_NS_PER_MS / 4 && hd_clock_now_ns(w->clock) - told <= T_MS * HD_NS_PER_MS / 2);
		assert_int_equal(w->heard[0].ahead_epoch, 6);
		assert_int_equal(w->heard[0].n_messages, 0);
		if (known)
			hd_hub_decided(&w->hubs[0], 6);
		run_for(w, 3000);
		assert_int_equal(w->heard[0].n_messages, known);
		assert_int_equal(w->heard[0].n_losts, !known);
		if (!known)
			assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_EPOCH);
		assert_int_equal(w->heard[0].n_suspects, 0);      /* who does not listen does not call the other silent */
		leave(w);
	}
}

/* A hash of all that three hubs hear, with its time, when writes are late by dice. */
static struct hd_net_fate dice(void *user, const struct hd_net_trip *trip)
{
	uint64_t *random = user;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (struct hd_net_fate){ .delay_ns = (int64_t)(*random >> 40) * (trip->from + 1), .cut = trip->len && *random >> 59 == 0 };
}

static uint64_t history(uint64_t seed)
{
	struct world *w = enter("sim", 3);
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	w->sim.fate = dice;
	w->sim.user = &seed;
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t to = (i + 1) % 3;
			(void)!hd_hub_connect(&w->hubs[i], to, "sim", w->addr[to], NULL);
			for (uint32_t k = 0; k < 3; k++)
				(void)!hd_hub_tell(&w->hubs[i], k, 20 + round, i, act_bytes, k * 40, NULL);
		}
		run_for(w, 100);
		for (int i = 0; i < 3; i++) {
			const struct heard *h = &w->heard[i];
			const uint64_t seen[] = { h->n_messages, h->n_ups, h->n_losts, h->n_suspects, (uint64_t)h->losts[(h->n_losts + KEEP - 1) % KEEP].at_ns,
				h->messages[(h->n_messages + HEARD - 1) % HEARD].crc, h->n_probes };
			hd_hasher_add(&hasher, seen, sizeof seen);
		}
	}
	CHECK(w->heard[0].n_messages > 10 && w->heard[0].n_losts > 0, "%u messages, %u losts", w->heard[0].n_messages, w->heard[0].n_losts);
	leave(w);
	struct hd_hash hash = hd_hasher_end(&hasher);
	return hd_get64(hash.byte);
}

static void a_simulation_repeats_itself_by_its_seed(void **state)
{
	(void)state;
	uint64_t once = history(1);
	assert_true(history(1) == once);
	assert_true(history(2) != once);
}

/* ---- another thread ---- */

/* One end of a race: a thread with its hub. Heartbeats are minutes apart, so that a wake-up that is lost is not made good by one. */
struct racer { struct world *w; int me; uint64_t random; const char *failed; uint32_t round; };
enum { RACE_ROUNDS = 150, RACE_MOST = 1500000 };
static const struct hd_transfer race_rows[] = { { 1, 0, 1 }, { 2, 0, 3000 }, { 3, 0, RACE_MOST }, { 4, 0, 300000 } };

static bool race_until(struct racer *r, const uint32_t *what, uint32_t n)
{
	struct hd_clock *clock = r->w->clock;
	int64_t until = hd_clock_now_ns(clock) + PATIENCE_S * HD_NS_PER_S;
	struct hd_loop_event other[4];
	size_t n_other;

	while (*what < n && hd_clock_now_ns(clock) < until)
		if (hd_hub_poll(&r->w->hubs[r->me], until, other, 4, &n_other, NULL))
			break;
	return *what >= n;
}

static void race(void *user)
{
	struct racer *r = user;
	struct hd_hub *hub = &r->w->hubs[r->me];
	struct heard *heard = &r->w->heard[r->me];
	uint32_t peer = (uint32_t)(1 - r->me), got = 0, said = 0;
	uint8_t *bytes = malloc(RACE_MOST), *into = malloc(RACE_MOST);

	r->failed = "memory";
	if (!bytes || !into)
		goto out;
	r->failed = "connecting";
	if ((!r->me && hd_hub_connect(hub, 1, r->w->row, r->w->addr[1], NULL)) || !race_until(r, &heard->n_ups, 1))
		goto out;
	r->failed = "the channel";
	hd_hub_epoch(hub, 1, plan);
	if (hd_hub_channel(hub, peer, race_rows, 4, race_rows, 4, NULL))
		goto out;
	for (r->round = 1; r->round <= RACE_ROUNDS; r->round++) {
		/* The same choice at both ends; the one that is ready first waits for the other. */
		r->random = r->random * 6364136223846793005u + 1442695040888963407u;
		const struct hd_transfer *row = &race_rows[r->random >> 62];
		/* One way or both: what comes back would hide that nobody was woken for what goes. */
		uint32_t senders = 1 + (uint32_t)(r->random >> 40) % 3;
		fill(bytes, row->bytes, r->round + (uint32_t)r->me);
		r->failed = "asking";
		if (senders >> peer & 1 && hd_hub_post(hub, peer, row->id, into, NULL))
			goto out;
		if (senders >> r->me & 1 && (hd_hub_tell(hub, peer, 20, r->round, bytes, row->bytes % 5000, NULL) ||
		    hd_hub_send(hub, peer, &(struct hd_send){ row->id, 0, r->round, bytes, row->bytes, r->round }, NULL)))
			goto out;
		said += senders >> r->me & 1;
		got += senders >> peer & 1;
		r->failed = "waiting";
		if (!race_until(r, &heard->n_arrivals, got) || !race_until(r, &heard->n_sents, said) || !race_until(r, &heard->n_messages, got))
			goto out;
		r->failed = "the bytes";
		fill(bytes, row->bytes, r->round + peer);
		if (senders >> peer & 1 && (memcmp(bytes, into, row->bytes) != 0 ||
		    heard->messages[(got - 1) % HEARD].crc != hd_crc32c(0, bytes, row->bytes % 5000)))
			goto out;
	}
	r->failed = NULL;
out:
	/* The other end may still wait for what is on its way from here. */
	hd_hub_close(hub, HD_CLOSE_DONE, "");
	(void)race_until(r, &heard->n_losts, 1);
	free(bytes);
	free(into);
}

static void two_threads_lose_no_wake_up(void **state)
{
	(void)state;
	for (size_t i = 1; i < sizeof rows / sizeof *rows; i++) {
		struct world *w = enter(rows[i], 0);
		struct racer racers[2];
		struct hd_thread threads[2] = { { 0 }, { 0 } };
		for (int k = 0; k < 2; k++) {
			w->config[k].detect_ms = 600000;
			racers[k] = (struct racer){ w, k, 5, NULL, 0 };
			start_hub(w, k);
		}
		for (int k = 0; k < 2; k++)
			assert_int_equal(hd_thread_start(&threads[k], "racer", -1, race, &racers[k], &w->diag), HD_OK);
		for (int k = 0; k < 2; k++)
			hd_thread_join(&threads[k]);
		for (int k = 0; k < 2; k++)
			CHECK(!racers[k].failed, "%s, end %d, round %u: %s; %s", w->row, k, racers[k].round, racers[k].failed,
				w->heard[k].n_losts ? w->heard[k].losts[0].text : "");
		leave(w);
	}
}

static void wake_many(void *user)
{
	for (int i = 0; i < 1000; i++)
		hd_hub_wake(user);
}

static void any_thread_may_wake_a_hub(void **state)
{
	struct world *w = enter("unix", 2);
	struct hd_thread thread = { 0 };
	struct hd_loop_event other[4];
	size_t n = 0, wakes = 0;

	(void)state;
	meet(w, 0, 1);
	assert_int_equal(hd_thread_start(&thread, "waker", -1, wake_many, &w->hubs[0], &w->diag), HD_OK);
	for (int64_t until = hd_clock_now_ns(w->clock) + PATIENCE_S * HD_NS_PER_S; !wakes && hd_clock_now_ns(w->clock) < until;) {
		assert_int_equal(hd_hub_poll(&w->hubs[0], until, other, 4, &n, &w->diag), HD_OK);
		wakes += n;
	}
	hd_thread_join(&thread);
	assert_true(wakes > 0);
	leave(w);
}

/* ---- memory ---- */

/* Init, greeting and channel of both ends with the n-th request for memory refused, for each n until all are granted. */
static void memory_that_is_refused_is_told_and_nothing_leaks(void **state)
{
	static const struct hd_transfer channel[] = { { 1, 1, 10 } };
	uint64_t n = 1, asked = 0;

	(void)state;
	for (bool refused = true; refused; n++) {
		struct world *w = enter("sim", 0);
		refused = false;
		snprintf(w->addr[0], sizeof w->addr[0], "unix:zero");
		hd_alloc_arm(n);
		for (int i = 0; i < 2; i++) {
			struct hd_wire_events events = hear_with(&w->heard[i]);
			struct hd_diag diag = { "" };
			enum hd_err err = hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i), &diag);
			CHECK(err == HD_OK || err == HD_E_NOMEM, "request %d: %s", (int)n, diag.text);
			refused |= err != HD_OK;
		}
		if (!refused) {
			assert_int_equal(hd_hub_listen(&w->hubs[0], "sim", w->addr[0], &w->diag), HD_OK);
			assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
			run_for(w, 1);
			for (int i = 0; i < 2; i++) {
				enum hd_err err = hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1, channel, 1, NULL);
				CHECK(err == HD_OK || err == HD_E_NOMEM || err == HD_E_PEERLOST, "request %d: %d", (int)n, (int)err);
				refused |= err != HD_OK;
			}
		}
		asked = hd_alloc_count();
		hd_alloc_arm(0);
		run_for(w, 10);
		assert_true(refused || hd_hub_is_up(&w->hubs[0], 1));
		leave(w);
	}
	assert_true(n > 8 && asked >= n - 2);
}

/* ---- strangers ---- */

static void put_hello(const struct world *w, uint32_t worker, uint8_t bytes[HD_FRAME_HEADER + 80])
{
	struct hd_greeting_payload hello = { 1, 1, worker, HD_ROLE_WORKER, T_MS, w->config[0].job, w->config[0].job_hash, w->config[0].kernels, { { 5 } } };

	hd_greeting_put(&hello, bytes + HD_FRAME_HEADER);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_HELLO, .len = 80 }, bytes);
}

static void stranger(struct world *w, struct hd_sock *sock, const void *bytes, size_t len)
{
	size_t put;

	assert_int_equal(hd_sock_connect(&w->hosts[2].net, w->addr[0], sock, &w->diag), HD_OK);
	if (len)
		assert_int_equal(hd_sock_write(sock, bytes, len, &put, &w->diag), HD_OK);
}

static void who_does_not_greet_in_order_is_closed_without_a_word(void **state)
{
	static const struct { const char *name; enum hd_close why; uint32_t len, change; } cases[] = {
		{ "nothing", HD_CLOSE_LATE, 0, 0 }, { "half a header", HD_CLOSE_LATE, 20, 0 }, { "half a greeting", HD_CLOSE_LATE, 100, 0 },
		{ "a broken header", HD_CLOSE_FRAME, 128, 1 }, { "another frame", HD_CLOSE_ORDER, 56, 2 }, { "a welcome", HD_CLOSE_ORDER, 128, 3 },
		{ "a later version", HD_CLOSE_VERSION, 128, 4 }, { "an unknown role", HD_CLOSE_FRAME, 128, 5 },
		{ "text of the web", HD_CLOSE_FRAME, 60, 6 }, { "an id of a guest", HD_CLOSE_IDENTITY, 128, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = enter("sim", 1);
		struct hd_sock sock;
		uint8_t bytes[HD_FRAME_HEADER + 80], answer[256];
		size_t got = 0;
		put_hello(w, 5, bytes);
		if (cases[i].change == 1)
			bytes[9] ^= 1;
		if (cases[i].change == 2)
			hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, bytes);
		if (cases[i].change == 3)
			hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_WELCOME, .len = 80 }, bytes);
		if (cases[i].change == 4) {
			hd_put16(bytes + 48, 2);
			hd_put16(bytes + 50, 3);
		}
		if (cases[i].change == 5)
			bytes[48 + 8] = 4;
		if (cases[i].change == 6)
			memcpy(bytes, "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: text/html, */*\r\n\r\n", 60);
		if (cases[i].change == 7)
			hd_put32(bytes + 48 + 4, HD_WORKER_GUEST + 1);
		stranger(w, &sock, bytes, cases[i].len);
		run_for(w, 4900);
		CHECK(closed(w, 0, cases[i].why) == (cases[i].why != HD_CLOSE_LATE), "%s: closed too early or for another reason", cases[i].name);
		enum hd_err err = hd_sock_read(&sock, answer, sizeof answer, &got, NULL);
		CHECK(got == 0 || cases[i].why == HD_CLOSE_VERSION || cases[i].why == HD_CLOSE_IDENTITY, "%s: answered with %zu bytes (%d)",
			cases[i].name, got, (int)err);
		hd_sock_close(&sock);
		run_for(w, 1500);
		CHECK(closed(w, 0, cases[i].why) + closed(w, 0, HD_CLOSE_GONE) == 1, "%s: not counted", cases[i].name);
		assert_int_equal(w->heard[0].n_ups + w->heard[0].n_losts, 0);
		leave(w);
	}
}

static void late_greetings_are_closed_after_five_t(void **state)
{
	struct world *w = enter("sim", 1);
	struct hd_sock sock;
	struct hd_hub_stats stats;

	(void)state;
	stranger(w, &sock, "HD", 2);
	run_for(w, 4990);
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, 1);
	run_for(w, 20);
	assert_int_equal(closed(w, 0, HD_CLOSE_LATE), 1);
	hd_sock_close(&sock);
	leave(w);
}

static void no_more_than_sixty_four_strangers_are_kept(void **state)
{
	struct world *w = enter("sim", 2);
	struct hd_sock socks[HD_HUB_GREETING + 3];
	struct hd_hub_stats stats;

	(void)state;
	meet(w, 1, 0);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		stranger(w, &socks[i], "HD", 2);
	run_for(w, 100);
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	assert_int_equal(stats.closed[HD_CLOSE_CROWDED], 3);
	assert_int_equal(stats.up, 1);                    /* who is known is not disturbed */
	run_for(w, 6000);
	assert_int_equal(closed(w, 0, HD_CLOSE_LATE), HD_HUB_GREETING);
	assert_true(hd_hub_is_up(&w->hubs[0], 1));
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		hd_sock_close(&socks[i]);
	leave(w);
}

/* Whoever reaches the port can connect and keep silent; workers of this machine come by sockets that only their user can open. */
static void strangers_at_an_open_port_keep_nobody_of_this_machine_out(void **state)
{
	struct world *w = enter("unix", 2);
	struct hd_sock socks[HD_HUB_GREETING + 3];
	struct hd_hub_stats stats;
	char port[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	(void)state;
	assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", port, &w->diag), HD_OK);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		assert_int_equal(hd_sock_connect(&w->real, port, &socks[i], &w->diag), HD_OK);
	do
		hd_hub_stats(&w->hubs[0], &stats);
	while (stats.greeting + stats.closed[HD_CLOSE_CROWDED] < HD_HUB_GREETING + 3 && turn(w, INT64_MAX));
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	assert_int_equal(stats.closed[HD_CLOSE_CROWDED], 3);
	meet(w, 1, 0);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		hd_sock_close(&socks[i]);
	leave(w);
}

/* How long we wait is ours to say. */
static void a_peer_does_not_buy_patience_with_a_long_t(void **state)
{
	struct world *w = enter("sim", 1);
	struct hd_sock sock;
	uint8_t bytes[HD_FRAME_HEADER + 80];

	(void)state;
	put_hello(w, 5, bytes);
	hd_put32(bytes + HD_FRAME_HEADER + 12, 600000);
	stranger(w, &sock, bytes, sizeof bytes);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	run_for(w, 3990);
	assert_int_equal(w->heard[0].n_suspects, 0);
	run_for(w, 20);
	assert_int_equal(w->heard[0].n_suspects, 1);
	run_for(w, 7 * 4000);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_SILENT);
	hd_sock_close(&sock);
	leave(w);
}

static void who_stops_inside_a_frame_is_closed_after_t(void **state)
{
	struct world *w = enter("sim", 1);
	struct hd_sock sock;
	uint8_t bytes[HD_FRAME_HEADER + 80], ping[HD_FRAME_HEADER + 8] = { 0 };
	size_t put;

	(void)state;
	put_hello(w, 5, bytes);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, ping);
	stranger(w, &sock, bytes, sizeof bytes);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	assert_int_equal(hd_sock_write(&sock, ping, 50, &put, &w->diag), HD_OK);
	run_for(w, 990);
	assert_int_equal(w->heard[0].n_losts, 0);
	run_for(w, 20);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_STALLED);
	hd_sock_close(&sock);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transport_keeps_the_contract),
		cmocka_unit_test(tcp_without_a_key_asks_for_a_word),
		cmocka_unit_test(a_folder_that_others_enter_is_not_listened_in),
		cmocka_unit_test(a_wrong_key_is_refused_on_both_sides),
		cmocka_unit_test(who_proved_one_id_cannot_greet_as_another),
		cmocka_unit_test(a_stranger_at_the_door_of_tls_is_counted_and_gone),
		cmocka_unit_test(who_breaks_the_shared_ring_is_closed),
		cmocka_unit_test(a_silent_peer_is_suspected_after_t_and_heard_again),
		cmocka_unit_test(a_half_open_connection_ends_after_eight_t),
		cmocka_unit_test(who_calls_again_takes_the_place_of_a_suspected_connection),
		cmocka_unit_test(a_promised_buffer_is_waited_for_but_not_for_ever),
		cmocka_unit_test(an_unknown_epoch_is_asked_for_then_closed),
		cmocka_unit_test(a_simulation_repeats_itself_by_its_seed),
		cmocka_unit_test(two_threads_lose_no_wake_up),
		cmocka_unit_test(any_thread_may_wake_a_hub),
		cmocka_unit_test(memory_that_is_refused_is_told_and_nothing_leaks),
		cmocka_unit_test(who_does_not_greet_in_order_is_closed_without_a_word),
		cmocka_unit_test(late_greetings_are_closed_after_five_t),
		cmocka_unit_test(no_more_than_sixty_four_strangers_are_kept),
		cmocka_unit_test(strangers_at_an_open_port_keep_nobody_of_this_machine_out),
		cmocka_unit_test(a_peer_does_not_buy_patience_with_a_long_t),
		cmocka_unit_test(who_stops_inside_a_frame_is_closed_after_t),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
