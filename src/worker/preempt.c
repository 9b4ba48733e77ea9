#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/crypto.h"
#include "sys/signal.h"
#include "worker/preempt_int.h"

const struct play preempt_plays[PLAYS] = {
	{ HD_PREEMPT_PLANNED, ALONE }, { HD_PREEMPT_PLANNED, FIFO }, { HD_PREEMPT_PLANNED, TIMED },
	{ HD_PREEMPT_ANSWER, ALONE }, { HD_PREEMPT_ANSWER, TIMED },
	{ HD_PREEMPT_ORDER, FIFO }, { HD_PREEMPT_ORDER, TIMED },
	{ HD_PREEMPT_STATE, ALONE }, { HD_PREEMPT_STATE, TIMED },
	{ HD_PREEMPT_GAPS, ALONE }, { HD_PREEMPT_GAPS, TIMED },
};

const char *hd_preempt_case_name(enum hd_preempt_case what)
{
	static const char *const names[] = { "planned", "answer", "order", "state", "gaps" };

	return names[what];
}

/* ---- both ends ---- */

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

void preempt_hears_nothing(struct hd_wire_events *events)
{
	*events = (struct hd_wire_events){ NULL, no_up, no_lost, no_suspect, no_message, no_arrived, no_sent,
		no_epoch, no_epoch, no_probed };
}

void preempt_failed(struct preempt *p, uint32_t me, enum hd_err err)
{
	p->end[me].err = p->end[me].err ? p->end[me].err : err;
}

enum hd_err preempt_begin(struct preempt *p, uint32_t me, const struct hd_wire_events *events)
{
	struct preempt_end *e = &p->end[me];
	const struct hd_hub_config config = { .job = { "heddle preempt" }, .worker = me,
		.role = HD_ROLE_WORKER, .detect_ms = 10000, .peers_cap = 2, .streams_cap = 256,
		.plaintext = true, .key = p->key, .key_len = sizeof p->key };
	uint64_t len = 0;

	for (uint32_t id = 0; id < IDS; id++)
		len += preempt_len(p->spec, id);
	enum hd_err err = hd_memory_take(len, HD_MEMORY_TOUCH, &e->bytes, &e->diag);
	if (!err)
		err = hd_loop_init(&e->loop, p->clock, &e->diag);
	if (!err)
		err = hd_hub_init(&e->hub, &config, events, &e->loop, &p->link.net, &e->diag);
	uint8_t *at = e->bytes.at;
	for (uint32_t id = 0; id < IDS && !err; at += preempt_len(p->spec, id++))
		e->at[id] = at;
	if (!err)
		hd_hub_epoch(&e->hub, 1, (struct hd_hash){ "preempt" });
	return err;
}

void preempt_finish(struct preempt *p, uint32_t me)
{
	if (p->end[me].err)
		hd_link_fail(&p->link);
	atomic_store(&p->ended[me], true);
	hd_hub_finish(&p->end[me].hub);
	hd_loop_finish(&p->end[me].loop);
}

void preempt_path(const struct preempt *p, char addr[HD_ADDR_CAP])
{
	snprintf(addr, HD_ADDR_CAP, "unix:%.90s/far", p->spec->folder);
}

enum hd_err preempt_wait(struct preempt *p, uint32_t me, bool (*is)(const void *arg), const void *arg,
	int64_t until_ns, const char *what)
{
	enum { LOOK_MS = 100 };
	struct preempt_end *e = &p->end[me];
	const int64_t deadline = hd_clock_now_ns(p->clock) + p->patience_ns;
	struct hd_loop_event event;
	size_t n;

	while (!e->err && !is(arg)) {
		const int64_t now = hd_clock_now_ns(p->clock), look = now + LOOK_MS * HD_NS_PER_MS;
		if (now >= until_ns)
			return HD_E_AGAIN;
		if (now >= deadline || atomic_load(&p->ended[1 - me]))
			return hd_fail(&e->diag, HD_E_PEERLOST, "%s waited in vain for %s",
				me == NEAR_ID ? "the sender" : "the receiver", what);
		if (hd_signal_stop())
			return hd_fail(&e->diag, hd_stop_err(hd_signal_stop()), "ended by %s",
				hd_signal_name(hd_signal_number()));
		preempt_failed(p, me, hd_hub_poll(&e->hub, until_ns < look ? until_ns : look, &event, 1, &n,
			&e->diag));
	}
	return e->err;
}

/* ---- figures ---- */

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, uint32_t n)
{
	qsort(x, n, sizeof *x, rising);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void take_play(const struct preempt *p, struct preempt_figures *f, uint32_t i,
	struct hd_preempt_row *row)
{
	const enum how how = preempt_plays[i].how;
	const double urgent = median(f->urgent[i], p->spec->rounds), whole = median(f->whole[i],
		p->spec->rounds);

	if (how == ALONE || (how == FIFO && preempt_plays[i].what == HD_PREEMPT_ORDER))
		row->alone = whole;
	if (how == FIFO) {
		row->fifo = urgent;
		row->fifo_inversions = f->inversions[i];
	}
	if (how != TIMED)
		return;
	row->bulk = whole;
	row->urgent = urgent;
	row->inversions = f->inversions[i];
	row->preempted = f->preempted[i];
	row->aged = f->aged[i];
	row->share = f->share[i] / p->spec->rounds;
}

static void take_rows(const struct preempt *p, struct preempt_figures *f,
	struct hd_preempt_row row[HD_PREEMPT_CASES])
{
	const struct hd_preempt_spec *s = p->spec;

	memset(row, 0, HD_PREEMPT_CASES * sizeof *row);
	for (uint32_t i = 0; i < PLAYS; i++)
		take_play(p, f, i, &row[preempt_plays[i].what]);
	const double per_ms = s->link.rate_mbit ? s->link.rate_mbit * 125.0 :
		(double)s->bulk / row[HD_PREEMPT_PLANNED].alone;
	for (enum hd_preempt_case c = 0; c <= HD_PREEMPT_ORDER; c++)
		row[c].wire = s->link.delay_ms + (double)preempt_len(s, c == HD_PREEMPT_ORDER ?
			(uint32_t)ID_LAYERS : (uint32_t)ID_URGENT) / per_ms;
}

static enum hd_err verdict(const struct preempt *p, struct hd_diag *diag)
{
	/* of two, the one that did not only wait in vain for the other */
	const struct preempt_end *e = &p->end[p->end[FAR_ID].err && (!p->end[NEAR_ID].err ||
		p->end[NEAR_ID].err == HD_E_PEERLOST)];

	return e->err ? hd_fail(diag, e->err, "%s", e->diag.text) : HD_OK;
}

enum hd_err hd_preempt_run(const struct hd_preempt_spec *spec, struct hd_preempt_row row[HD_PREEMPT_CASES],
	struct hd_diag *diag)
{
	struct hd_thread near = { .started = false }, far = { .started = false };
	struct hd_memory room;

	enum hd_err err = hd_memory_take(sizeof(struct preempt) + sizeof(struct preempt_figures),
		HD_MEMORY_LAZY, &room, diag);
	if (err)
		return err;
	struct preempt *p = room.at;
	p->spec = spec;
	p->figures = (struct preempt_figures *)(p + 1);
	p->clock = spec->link.clock;
	p->patience_ns = 60 * HD_NS_PER_S;
	if (spec->link.rate_mbit)
		p->patience_ns += (int64_t)(spec->bulk * 80000 / spec->link.rate_mbit);
	hd_link_init(&p->link, &spec->link);
	p->link.net.world = true;
	err = hd_random_bytes(p->key, sizeof p->key, diag);
	if (!err)
		err = hd_thread_start(&far, "far", -1, preempt_far, p, diag);
	if (!err)
		err = hd_thread_start(&near, "near", -1, preempt_near, p, diag);
	if (err)
		hd_link_fail(&p->link);
	hd_thread_join(&near);
	hd_thread_join(&far);
	hd_link_close(&p->link);
	err = err ? err : verdict(p, diag);
	if (!err)
		take_rows(p, p->figures, row);
	hd_memory_give(&p->end[0].bytes);
	hd_memory_give(&p->end[1].bytes);
	hd_memory_give(&room);
	return err;
}
