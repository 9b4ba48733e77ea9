#include "worker/offer.h"

#include <string.h>

#include "wire/hub.h"
#include "worker/elastic.h"

enum { OFFER_DETECT_MS = 1000, OFFER_STREAMS = 16 };
#define HD_OFFER_WAIT_NS INT64_C(11000000000)

struct asking {
	struct hd_hub hub;
	struct hd_arena *arena;
	struct hd_offer *offer;
	const char *where;
	bool over;
	enum hd_err err;
	struct hd_diag diag;
};

static void fail(struct asking *a, enum hd_err err)
{
	a->err = a->err ? a->err : err;
	a->over = true;
}

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct asking *a = self;
	struct hd_msg msg = { .kind = HD_MSG_ASK };
	uint8_t bytes[64];
	size_t len = 0;

	enum hd_err err = hd_msg_encode(&msg, bytes, sizeof bytes, &len, &a->diag);
	if (!err)
		err = hd_hub_tell(&a->hub, peer->worker, HD_MSG_ASK, 0, bytes, len, &a->diag);
	if (err)
		fail(a, err);
}

/* Whose fault it is decides whether trying again can help. */
static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct asking *a = self;

	(void)worker;
	if (a->over)
		return;
	if (why == HD_CLOSE_KEY)
		fail(a, hd_fail(&a->diag, HD_E_INVAL,
			"%s does not take this key: give the file that the run was started with, by --key",
			a->where));
	else if (hd_close_blame(why) == HD_BLAME_PEER)
		fail(a, hd_fail(&a->diag, HD_E_INVAL, "%s cannot be joined: %s", a->where,
			hd_close_text(why)));
	else
		fail(a, hd_fail(&a->diag, HD_E_PEERLOST,
			"no answer from %s: %s; is the run there, and started with --listen?", a->where,
			text && *text ? text : hd_close_text(why)));
}

static void on_message(void *self, const struct hd_message *m)
{
	struct asking *a = self;
	struct hd_msg msg;

	enum hd_err err = hd_msg_decode(&msg, m->id, m->bytes, m->len, a->arena, &a->diag);
	if (!err && msg.kind != HD_MSG_OFFER)
		return;                   /* the coordinator's other news are not for us */
	if (!err) {
		const struct hd_msg_offer *o = &msg.offer;
		*a->offer = (struct hd_offer){ .job = o->job, .data = o->data, .data_count = o->data_count,
			.len = o->ntext,
			.text = hd_arena_text(a->arena, o->text, o->ntext),
			.folder = hd_arena_text(a->arena, o->folder, o->nfolder) };
		if (!a->offer->text || !a->offer->folder)
			err = hd_fail(&a->diag, HD_E_NOMEM, "no memory for the job of the run");
	}
	fail(a, err);
}

static void on_suspect(void *self, uint32_t worker, int64_t silent_ms) { (void)self; (void)worker;
	(void)silent_ms; }
static void on_arrived(void *self, const struct hd_arrival *arrival) { (void)self; (void)arrival; }
static void on_sent(void *self, const struct hd_sent *sent) { (void)self; (void)sent; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self; (void)worker; (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self; (void)probe; }

static void wait_for_answer(struct asking *a, struct hd_clock *clock)
{
	int64_t until = hd_clock_now_ns(clock) + HD_OFFER_WAIT_NS;
	struct hd_loop_event other[4];
	size_t n;

	while (!a->over && hd_clock_now_ns(clock) < until) {
		enum hd_err err = hd_hub_poll(&a->hub, until, other, 4, &n, &a->diag);
		if (err)
			fail(a, err);
	}
	if (!a->over)
		fail(a, hd_fail(&a->diag, HD_E_PEERLOST, "%s does not say which job it is", a->where));
	hd_hub_close(&a->hub, HD_CLOSE_DONE, "");
	until = hd_clock_now_ns(clock) + HD_NS_PER_S;
	while (!hd_hub_is_closed(&a->hub) && hd_clock_now_ns(clock) < until)
		if (hd_hub_poll(&a->hub, until, other, 4, &n, NULL))
			return;
}

enum hd_err hd_offer_ask(const struct hd_offer_spec *spec, struct hd_arena *arena, struct hd_offer *offer,
	struct hd_diag *diag)
{
	struct asking a = { .arena = arena, .offer = offer };
	const struct hd_wire_events events = { .self = &a, .up = on_up, .lost = on_lost,
		.suspect = on_suspect, .message = on_message,
		.arrived = on_arrived, .sent = on_sent, .stale = on_epoch, .ahead = on_epoch,
		.probed = on_probed };
	const struct hd_hub_config config = { .job = spec->realm, .worker = HD_WORKER_NONE,
		.role = HD_ROLE_WORKER, .detect_ms = OFFER_DETECT_MS,
		.peers_cap = 1, .streams_cap = OFFER_STREAMS, .plaintext = spec->plaintext, .key = spec->key,
		.key_len = spec->key_len };
	char transport[16], addr[HD_ADDR_CAP];
	struct hd_loop loop = { 0 };
	struct hd_net net;

	enum hd_err err = hd_elastic_address(spec->coordinator, transport, addr, diag);
	if (err)
		return err;
	a.where = addr + (strncmp(addr, "tcp:", 4) ? 0 : 4);
	hd_net_real(&net);
	net.world = true;
	err = hd_loop_init(&loop, spec->clock, diag);
	if (!err)
		err = hd_hub_init(&a.hub, &config, &events, &loop, &net, diag);
	if (!err)
		err = hd_hub_connect(&a.hub, HD_COORDINATOR_LINK, transport, addr, diag);
	if (!err) {
		wait_for_answer(&a, spec->clock);
		err = a.err ? hd_fail(diag, a.err, "%s", a.diag.text) : HD_OK;
	}
	hd_hub_finish(&a.hub);
	hd_loop_finish(&loop);
	return err;
}

enum hd_err hd_offer_agrees(const struct hd_offer *offer, const char *where, const struct hd_task *task,
	struct hd_diag *diag)
{
	if (!hd_hash_same(task->job_hash, offer->job))
		return hd_fail(diag, HD_E_INVAL,
			"what fixes the result differs from the job of the run at %s: leave out -s and "
			"HEDDLE_ variables that change it, and use the same model and weights files and the "
			"same heddle", where);
	if (task->data->count != offer->data_count || !hd_hash_same(task->data->hash, offer->data))
		return hd_fail(diag, HD_E_INPUT,
			"the data here (%s) are not those of the run at %s, %llu samples of other content: "
			"copy them, or say where they are by -s data.path=PATH", task->data->about, where,
			(unsigned long long)offer->data_count);
	return HD_OK;
}
