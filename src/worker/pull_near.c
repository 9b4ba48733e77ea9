/* The end that has the parameters. */
#include "worker/pull_int.h"

struct pull_near {
	struct pull *p;
	struct hd_end *e;
	uint32_t asked, unsent;           /* pulls asked for so far; transfers of the one at hand */
	bool up, over;
};

static void failed(struct pull_near *n, enum hd_err err) { hd_ends_failed(&n->p->ends, HD_END_NEAR, err); }

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct pull_near *n = self;
	const struct hd_pull_spec *s = n->p->spec;
	struct hd_transfer row[HD_PULL_RECVS];

	for (uint32_t r = 0; r < s->graph->nrecvs; r++)
		row[r] = (struct hd_transfer){ r, 1, s->bytes[r] };
	failed(n, hd_hub_channel(&n->e->hub, peer->worker, NULL, 0, row, s->graph->nrecvs, &n->e->diag));
	n->up = true;
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct pull_near *n = self;

	(void)worker;
	(void)why;
	if (!n->over)
		failed(n, hd_fail(&n->e->diag, HD_E_PEERLOST, "the sender lost the receiver: %s", text));
}

static void on_message(void *self, const struct hd_message *message)
{
	struct pull_near *n = self;

	if (message->id == PULL_ASKS)
		n->asked = (uint32_t)message->step + 1;
}

static void on_sent(void *self, const struct hd_sent *sent)
{
	struct pull_near *n = self;

	(void)sent;
	n->unsent--;
}

struct pull_asked { const struct pull_near *n; uint32_t k; };
static bool is_asked(const void *asked)
{
	const struct pull_asked *a = asked;
	return a->n->asked > a->k;
}
static bool all_sent(const void *n) { return !((const struct pull_near *)n)->unsent; }

static void answer(struct pull_near *n, uint32_t k)
{
	struct pull *p = n->p;
	const uint32_t *rank = p->order[pull_place(p, k)].priority;

	failed(n, hd_ends_wait(&p->ends, HD_END_NEAR, is_asked, &(struct pull_asked){ n, k }, INT64_MAX,
		"the question for parameters"));
	for (uint32_t r = 0; r < p->spec->graph->nrecvs && !n->e->err; r++) {
		n->unsent++;
		failed(n, hd_hub_send(&n->e->hub, HD_END_FAR, &(struct hd_send){ .transfer = r, .token = r,
			.priority = (int32_t)rank[r], .step = k,
			.bytes = (uint8_t *)p->bytes[HD_END_NEAR].at + p->at[r], .len = p->spec->bytes[r] },
			&n->e->diag));
	}
	if (!n->e->err)
		failed(n, hd_ends_wait(&p->ends, HD_END_NEAR, all_sent, n, INT64_MAX,
			"the last bytes to go"));
}

static void make_bytes(struct pull_near *n)
{
	struct pull *p = n->p;
	const uint32_t last = p->spec->graph->nrecvs - 1;
	const uint64_t len = p->at[last] + p->spec->bytes[last];

	failed(n, hd_memory_take(len, HD_MEMORY_TOUCH, &p->bytes[HD_END_NEAR], &n->e->diag));
	uint8_t *at = p->bytes[HD_END_NEAR].at;
	for (uint64_t k = 0; k < len && !n->e->err; k++)
		at[k] = (uint8_t)(k * 31 + (k >> 8) * 7 + (k >> 16) * 3 + 1);
}

void pull_near(void *user)
{
	struct pull *p = user;
	struct pull_near n = { .p = p, .e = &p->ends.end[HD_END_NEAR] };
	struct hd_wire_events events;

	hd_ends_hear_nothing(&events);
	events.self = &n;
	events.up = on_up;
	events.lost = on_lost;
	events.message = on_message;
	events.sent = on_sent;
	make_bytes(&n);
	if (!n.e->err)
		failed(&n, hd_ends_begin(&p->ends, HD_END_NEAR, &events));
	if (!n.e->err)
		failed(&n, hd_ends_meet(&p->ends, &n.up));
	for (uint32_t k = 0; k < pull_count(p) && !n.e->err; k++)
		answer(&n, k);
	if (!n.e->err)
		failed(&n, hd_hub_tell(&n.e->hub, HD_END_FAR, PULL_OVER, 0, NULL, 0, &n.e->diag));
	n.over = true;
	if (!n.e->err)
		failed(&n, hd_ends_wait_far(&p->ends));
	hd_ends_finish(&p->ends, HD_END_NEAR);
}
