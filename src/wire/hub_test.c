/* One suite for every row of the transports, each with two or three hubs; then memory that is refused. */
#include "base/alloc.h"
#include "wire/transport.h"
#include "wire/testing_hubs.h"

static void two_workers_say_everything_to_each_other(struct hubs_world *w)
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
			assert_int_equal(hd_hub_post(&w->hubs[i], peer, channel[k].id, into[i][k], &w->diag),
				HD_OK);
		assert_int_equal(hd_hub_expect(&w->hubs[i], peer, 77, into[i][3], BULK, &w->diag), HD_OK);
	}
	for (int i = 0; i < 2; i++) {
		uint32_t peer = (uint32_t)(1 - i);
		struct hd_answer answer = { .request = 77, .bytes = bytes, .len = BULK, .token = 4 };
		assert_int_equal(hd_hub_answer(&w->hubs[i], peer, &answer, &w->diag), HD_OK);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(hd_hub_send(&w->hubs[i], peer,
				&(struct hd_send){ channel[k].id, 0, 1, bytes, channel[k].bytes, k },
				&w->diag), HD_OK);
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
			CHECK(memcmp(into[i][k], bytes, channel[k].bytes) == 0, "%s: transfer %u", w->row,
				channel[k].id);
		CHECK(memcmp(into[i][3], bytes, BULK) == 0, "%s: bulk", w->row);
		assert_memory_equal(w->heard[i].messages[0].first, "seal", 4);
		assert_true(w->heard[i].messages[0].message.epoch == 1 &&
			w->heard[i].messages[0].message.step == 8);
		for (int k = 0; k < 4; k++) {
			assert_int_equal(w->heard[i].sents[k].err, HD_OK);
			free(into[i][k]);
		}
	}
	free(bytes);
}

static void a_good_bye_reaches_the_other_side_with_its_reason(struct hubs_world *w)
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

static void a_hub_closes_with_a_word_to_all(struct hubs_world *w)
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
		run_until(w, &w->heard[1].n_losts, 2, "no listener");
		assert_int_equal(w->heard[1].losts[1].why, HD_CLOSE_GONE);
	}
}

static void a_peer_that_vanishes_is_lost_at_once_with_all_that_waited(struct hubs_world *w)
{
	static const struct hd_transfer channel[] = { { 3, 0, 1000 } };
	uint8_t bytes[1000] = { 0 };

	meet(w, 0, 1);
	hd_hub_epoch(&w->hubs[0], 1, plan);
	assert_int_equal(hd_hub_channel(&w->hubs[0], 1, NULL, 0, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, bytes, 1000, 5 }, &w->diag),
		HD_OK);
	int64_t before = hd_clock_now_ns(w->clock);
	hd_hub_finish(&w->hubs[1]);
	run_until(w, &w->heard[0].n_losts, 1, "lost");
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_GONE);
	assert_true(w->heard[0].losts[0].at_ns - before < w->config[0].detect_ms * HD_NS_PER_MS);
	assert_int_equal(w->heard[0].n_sents, 1);
	assert_int_equal(w->heard[0].sents[0].err, HD_E_PEERLOST);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, bytes, 1000, 5 }, &w->diag),
		HD_E_PEERLOST);
	assert_int_equal(w->heard[1].n_losts, 0);         /* finish makes no events */
	start_hub(w, 1);
	meet(w, 1, 0);
}

static void an_absent_peer_is_reported(struct hubs_world *w)
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

static void a_peer_that_does_not_fit_is_refused_with_the_reason(struct hubs_world *w)
{
	static const struct { const char *name; enum hd_close why; int field; } cases[] = {
		{ "another job", HD_CLOSE_JOB, 0 }, { "another job of that name", HD_CLOSE_JOB, 1 }, { "other kernels", HD_CLOSE_KERNELS, 2 },
		{ "our own id", HD_CLOSE_IDENTITY, 3 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hd_hub_finish(&w->hubs[1]);
		struct hd_hub_config was = w->config[1];
		struct hd_hash *const hashes[] = { &w->config[1].job, &w->config[1].job_hash,
			&w->config[1].kernels };
		if (cases[i].field < 3)
			hashes[cases[i].field]->byte[15] ^= 1;
		else
			w->config[1].worker = 0;
		start_hub(w, 1);
		uint32_t losts = w->heard[1].n_losts;
		/* Where a key is proven, job and id are part of what is proven. By an open way another job
		 * learns nothing. */
		unsigned powers = hd_transport_find(w->row)->powers;
		enum hd_close here = powers & HD_WIRE_PROVES &&
			cases[i].field % 3 == 0 ? HD_CLOSE_KEY : cases[i].why;
		enum hd_close there = cases[i].field == 0 && powers & HD_WIRE_OPEN ? HD_CLOSE_GONE : here;
		uint64_t counted = closed(w, 0, here);
		/* Under its own id hub 1 would not call 0: it calls a peer that is not there. */
		assert_int_equal(hd_hub_connect(&w->hubs[1], cases[i].field < 3 ? 0 : 5, w->row, w->addr[0],
			&w->diag), HD_OK);
		run_until(w, &w->heard[1].n_losts, losts + 1, cases[i].name);
		CHECK(w->heard[1].losts[losts % KEEP].why == there, "%s, %s: %s", w->row, cases[i].name,
			w->heard[1].losts[losts % KEEP].text);
		run_for(w, 50);
		CHECK(closed(w, 0, here) == counted + 1, "%s, %s: not counted", w->row, cases[i].name);
		assert_int_equal(w->heard[0].n_ups, 0);
		w->config[1] = was;
	}
}

/* Hub 1 does not know the job. A coordinator takes it in as a guest; a worker does not, nor a coordinator
 * one that has an id. */
static void the_job_is_asked_of_a_coordinator_alone(struct hubs_world *w)
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

static uint32_t kept;

static void note_kept(struct hd_net *net, struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value)
{
	(void)net;
	(void)sock;
	kept = knob == HD_SOCK_KEPT_BYTES ? value : kept;
}

/* The other hub asks for nothing; of a socket in this machine nothing is asked. */
static void connections_to_other_machines_keep_what_is_asked_for(struct hubs_world *w)
{
	const bool world = hd_transport_find(w->row)->powers & HD_WIRE_WORLD;
	struct hd_net *net = net_of(w, 1);
	const struct hd_net_ops *was = net->ops;
	struct hd_net_ops noting = *was;

	noting.tune = note_kept;
	net->ops = &noting;
	for (uint32_t asked = 0; asked <= 70000; asked += 70000) {
		kept = 0;
		hd_hub_finish(&w->hubs[0]);
		hd_hub_finish(&w->hubs[1]);
		w->config[1].kept_bytes = asked;
		start_hub(w, 0);
		start_hub(w, 1);
		w->heard[0].n_ups = w->heard[1].n_ups = 0;
		meet(w, 0, 1);
		CHECK(kept == (world ? asked : 0), "%s: %u of %u", w->row, kept, asked);
	}
	hd_hub_finish(&w->hubs[0]);
	hd_hub_finish(&w->hubs[1]);
	net->ops = was;
}

static void a_worker_has_one_connection(struct hubs_world *w)
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

static void two_that_call_each_other_at_once_meet(struct hubs_world *w)
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
	/* The greater id may hear that it was refused, before the other's call reaches it; or its own came
	 * first and stays. */
	assert_true(!w->heard[1].n_losts || (w->heard[1].n_losts == 1 &&
		w->heard[1].losts[0].why == HD_CLOSE_LIVE));
	assert_int_equal(hd_hub_tell(&w->hubs[0], 1, 33, 0, NULL, 0, &w->diag), HD_OK);
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 33, 0, NULL, 0, &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_messages, 1, "message");
	run_until(w, &w->heard[1].n_messages, 1, "message");
}

static void a_hub_takes_no_more_peers_than_it_has_room_for(struct hubs_world *w)
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

static void a_peer_without_an_id_is_a_guest(struct hubs_world *w)
{
	w->config[2].worker = HD_WORKER_NONE;
	start_hub(w, 2);
	meet(w, 2, 0);
	assert_int_equal(w->heard[2].ups[0].worker, 0);
	assert_true(w->heard[0].ups[0].worker >= HD_WORKER_GUEST);
	assert_int_equal(hd_hub_tell(&w->hubs[0], w->heard[0].ups[0].worker, 40, 0, "you are 2", 9, &w->diag),
		HD_OK);
	run_until(w, &w->heard[2].n_messages, 1, "message");
	hd_hub_drop(&w->hubs[2], 0, HD_CLOSE_DONE, "");
	/* another one calls it meanwhile: too early, and again */
	assert_int_equal(hd_hub_connect(&w->hubs[1], 2, w->row, w->addr[2], &w->diag), HD_OK);
	run_until(w, &w->heard[2].n_losts, 1, "lost");
	hd_hub_call_me(&w->hubs[2], 2);
	run_until(w, &w->heard[1].n_losts, 1, "the end of a call that came too early");
	meet(w, 2, 0);
	assert_int_equal(w->heard[0].ups[1].worker, 2);
	w->config[2].worker = 2;
	meet(w, 1, 2);
}

static void three_meet_and_a_wake_ends_a_poll(struct hubs_world *w)
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
				assert_int_equal(hd_hub_tell(&w->hubs[i], k, 20 + i, 0, NULL, 0, &w->diag),
					HD_OK);
	for (int i = 0; i < 3; i++)
		run_until(w, &w->heard[i].n_messages, 2, "messages");
	run_for(w, 20);
	hd_hub_wake(&w->hubs[0]);
	assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock) + 100 * HD_NS_PER_MS, other, 4,
		&n, &w->diag), HD_OK);
	assert_true(n >= 1 && other[0].what == HD_LOOP_WAKE);
}

static void a_probe_is_answered(struct hubs_world *w)
{
	meet(w, 0, 1);
	hd_hub_probe(&w->hubs[0], 1);
	run_until(w, &w->heard[0].n_probes, 1, "probe");
	const struct hd_probe *p = &w->heard[0].probe;
	assert_true(p->worker == 1 && p->t1 <= p->t2 && p->t2 <= p->t3 && p->t3 <= p->t4);
}

/* ---- callbacks that act ---- */

static struct hubs_world *acting;
static uint8_t act_bytes[70000], act_into[70000];
static const struct hd_transfer act_rows[] = { { 1, 0, sizeof act_bytes } };

/* Hub 0, on "go": a new epoch and its channel out of the message, and a transfer at once. */
static void go_on_message(void *self, const struct hd_message *message)
{
	hear_message(self, message);
	if (message->id != 60)
		return;
	hd_hub_epoch(&acting->hubs[0], 2, plan);
	assert_int_equal(hd_hub_channel(&acting->hubs[0], 1, NULL, 0, act_rows, 1, &acting->diag), HD_OK);
	assert_int_equal(hd_hub_send(&acting->hubs[0], 1, &(struct hd_send){ 1, 0, 3, act_bytes,
		sizeof act_bytes, 7 }, &acting->diag), HD_OK);
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

/* Hub 0: a lost peer is called again. */
static void call_again(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	hear_lost(self, worker, why, text);
	assert_int_equal(hd_hub_connect(&acting->hubs[0], worker, acting->row, acting->addr[1],
		&acting->diag), HD_OK);
}

static void callbacks_may_ask_for_more(struct hubs_world *w)
{
	acting = w;
	for (int i = 0; i < 2; i++) {
		struct hd_wire_events events = hear_with(&w->heard[i]);
		events.message = go_on_message;
		events.arrived = end_on_arrival;
		if (i == 0)
			events.lost = call_again;
		hd_hub_finish(&w->hubs[i]);
		assert_int_equal(hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i),
			&w->diag), HD_OK);
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

static const struct { const char *name; void (*run)(struct hubs_world *w); } suite[] = {
	{ "two workers say everything to each other", two_workers_say_everything_to_each_other },
	{ "connections to other machines keep what is asked for", connections_to_other_machines_keep_what_is_asked_for },
	{ "a good bye reaches the other side with its reason", a_good_bye_reaches_the_other_side_with_its_reason },
	{ "a hub closes with a word to all", a_hub_closes_with_a_word_to_all },
	{ "a peer that vanishes is lost at once with all that waited", a_peer_that_vanishes_is_lost_at_once_with_all_that_waited },
	{ "an absent peer is reported", an_absent_peer_is_reported },
	{ "a peer that does not fit is refused with the reason", a_peer_that_does_not_fit_is_refused_with_the_reason },
	{ "the job is asked of a coordinator alone", the_job_is_asked_of_a_coordinator_alone },
	{ "a worker has one connection", a_worker_has_one_connection },
	{ "two that call each other at once meet", two_that_call_each_other_at_once_meet },
	{ "a hub takes no more peers than it has room for", a_hub_takes_no_more_peers_than_it_has_room_for },
	{ "a peer without an id is a guest", a_peer_without_an_id_is_a_guest },
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
			struct hubs_world *w = enter(rows[r], 2);
			print_message("  %s: %s\n", rows[r], suite[i].name);
			suite[i].run(w);
			leave(w);
		}
}

/* ---- memory ---- */

/* Init, greeting and channel of both ends with the n-th request for memory refused, for each n until all
 * are granted. */
static void memory_that_is_refused_is_told_and_nothing_leaks(void **state)
{
	static const struct hd_transfer channel[] = { { 1, 1, 10 } };
	uint64_t n = 1, asked = 0;

	(void)state;
	for (bool refused = true; refused; n++) {
		struct hubs_world *w = enter("sim", 0);
		refused = false;
		snprintf(w->addr[0], sizeof w->addr[0], "unix:zero");
		hd_alloc_arm(n);
		for (int i = 0; i < 2; i++) {
			struct hd_wire_events events = hear_with(&w->heard[i]);
			struct hd_diag diag = { "" };
			enum hd_err err = hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i],
				net_of(w, i), &diag);
			CHECK(err == HD_OK || err == HD_E_NOMEM, "request %d: %s", (int)n, diag.text);
			refused |= err != HD_OK;
		}
		if (!refused) {
			assert_int_equal(hd_hub_listen(&w->hubs[0], "sim", w->addr[0], &w->diag), HD_OK);
			assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
			run_for(w, 1);
			for (int i = 0; i < 2; i++) {
				enum hd_err err = hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1,
					channel, 1, NULL);
				CHECK(err == HD_OK || err == HD_E_NOMEM || err == HD_E_PEERLOST,
					"request %d: %d", (int)n, (int)err);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transport_keeps_the_contract),
		cmocka_unit_test(memory_that_is_refused_is_told_and_nothing_leaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
