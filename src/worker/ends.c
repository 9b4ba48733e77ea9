#include "worker/ends.h"

#include <stdio.h>

#include "sys/crypto.h"
#include "sys/signal.h"

/* ---- what is not heard ---- */

static void no_up(void *self, const struct hd_peer_info *peer) { (void)self, (void)peer; }
static void no_lost(void *self, uint32_t worker, enum hd_close why, const char *text) { (void)self,
	(void)worker, (void)why, (void)text; }
static void no_suspect(void *self, uint32_t worker, int64_t silent_ms) { (void)self, (void)worker,
	(void)silent_ms; }
static void no_message(void *self, const struct hd_message *message) { (void)self, (void)message; }
static void no_arrived(void *self, const struct hd_arrival *arrival) { (void)self, (void)arrival; }
static void no_sent(void *self, const struct hd_sent *sent) { (void)self, (void)sent; }
static void no_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self, (void)worker, (void)epoch; }
static void no_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }

void hd_ends_hear_nothing(struct hd_wire_events *events)
{
	*events = (struct hd_wire_events){ NULL, no_up, no_lost, no_suspect, no_message, no_arrived, no_sent,
		no_epoch, no_epoch, no_probed };
}

/* ---- an end's life ---- */

void hd_ends_failed(struct hd_ends *ends, uint32_t me, enum hd_err err)
{
	ends->end[me].err = ends->end[me].err ? ends->end[me].err : err;
}

enum hd_err hd_ends_begin(struct hd_ends *ends, uint32_t me, const struct hd_wire_events *events)
{
	struct hd_end *e = &ends->end[me];
	struct hd_hub_config config = { .worker = me, .role = HD_ROLE_WORKER, .detect_ms = 10000,
		.peers_cap = 2, .streams_cap = ends->streams_cap, .plaintext = true, .key = ends->key,
		.key_len = sizeof ends->key };

	snprintf((char *)config.job.byte, sizeof config.job.byte, "%s", ends->name);
	enum hd_err err = hd_loop_init(&e->loop, ends->clock, &e->diag);
	if (!err)
		err = hd_hub_init(&e->hub, &config, events, &e->loop, &ends->link.net, &e->diag);
	if (!err)
		hd_hub_epoch(&e->hub, 1, config.job);
	return err;
}

enum hd_err hd_ends_join(struct hd_ends *ends, const struct hd_wire_events *events)
{
	struct hd_end *e = &ends->end[HD_END_FAR];
	char addr[HD_ADDR_CAP];

	enum hd_err err = hd_link_join(&ends->link, addr, &e->diag);
	if (!err)
		err = hd_ends_begin(ends, HD_END_FAR, events);
	if (!hd_hub_names_hosts(ends->transport))
		snprintf(addr, HD_ADDR_CAP, "unix:%.90s/far", ends->folder);
	if (!err)
		err = hd_hub_listen(&e->hub, ends->transport, addr, &e->diag);
	if (!err)
		hd_link_listens(&ends->link, addr);
	return err;
}

static bool is_true(const void *flag) { return *(const bool *)flag; }

enum hd_err hd_ends_meet(struct hd_ends *ends, const bool *up)
{
	struct hd_end *e = &ends->end[HD_END_NEAR];
	char addr[HD_ADDR_CAP];

	enum hd_err err = hd_link_open(&ends->link, &e->diag);
	if (!err)
		err = hd_link_caller(&ends->link, addr, &e->diag);
	if (!err)
		err = hd_hub_connect(&e->hub, HD_END_FAR, ends->transport, addr, &e->diag);
	return err ? err : hd_ends_wait(ends, HD_END_NEAR, is_true, up, INT64_MAX, "the connection");
}

void hd_ends_finish(struct hd_ends *ends, uint32_t me)
{
	if (ends->end[me].err)
		hd_link_fail(&ends->link);
	atomic_store(&ends->ended[me], true);
	hd_hub_finish(&ends->end[me].hub);
	hd_loop_finish(&ends->end[me].loop);
}

enum hd_err hd_ends_wait(struct hd_ends *ends, uint32_t me, bool (*is)(const void *arg), const void *arg,
	int64_t until_ns, const char *what)
{
	enum { LOOK_MS = 100 };
	struct hd_end *e = &ends->end[me];
	const int64_t deadline = hd_clock_now_ns(ends->clock) + ends->patience_ns;
	struct hd_loop_event event;
	size_t n;

	while (!e->err && !is(arg)) {
		const int64_t now = hd_clock_now_ns(ends->clock), look = now + LOOK_MS * HD_NS_PER_MS;
		if (now >= until_ns)
			return HD_E_AGAIN;
		if (now >= deadline || atomic_load(&ends->ended[1 - me]))
			return hd_fail(&e->diag, HD_E_PEERLOST, "%s waited in vain for %s",
				me == HD_END_NEAR ? "the sender" : "the receiver", what);
		if (hd_signal_stop())
			return hd_fail(&e->diag, hd_stop_err(hd_signal_stop()), "ended by %s",
				hd_signal_name(hd_signal_number()));
		hd_ends_failed(ends, me, hd_hub_poll(&e->hub, until_ns < look ? until_ns : look, &event, 1,
			&n, &e->diag));
	}
	return e->err;
}

static bool far_is_over(const void *ends)
{
	const struct hd_ends *e = ends;
	return atomic_load(&e->ended[HD_END_FAR]);
}

enum hd_err hd_ends_wait_far(struct hd_ends *ends)
{
	return hd_ends_wait(ends, HD_END_NEAR, far_is_over, ends, INT64_MAX, "the receiver's end");
}

/* ---- both ---- */

static enum hd_err verdict(const struct hd_ends *ends, struct hd_diag *diag)
{
	const struct hd_end *near = &ends->end[HD_END_NEAR], *far = &ends->end[HD_END_FAR],
		*e = far->err && (!near->err || near->err == HD_E_PEERLOST) ? far : near;

	return e->err ? hd_fail(diag, e->err, "%s", e->diag.text) : HD_OK;
}

enum hd_err hd_ends_run(struct hd_ends *ends, const struct hd_link_spec *link, void (*near)(void *arg),
	void (*far)(void *arg), void *arg, struct hd_diag *diag)
{
	struct hd_thread one = { .started = false }, other = { .started = false };

	ends->clock = link->clock;
	hd_link_init(&ends->link, link);
	ends->link.net.world = true;
	enum hd_err err = hd_random_bytes(ends->key, sizeof ends->key, diag);
	if (!err)
		err = hd_thread_start(&other, "far", -1, far, arg, diag);
	if (!err)
		err = hd_thread_start(&one, "near", -1, near, arg, diag);
	if (err)
		hd_link_fail(&ends->link);
	hd_thread_join(&one);
	hd_thread_join(&other);
	hd_link_close(&ends->link);
	return err ? err : verdict(ends, diag);
}
