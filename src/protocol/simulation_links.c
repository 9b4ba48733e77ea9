/* The queue of events, and the links between processes. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/simulation_int.h"

/* ---- the queue: by time, then by when it was due, then by order of entry ---- */

static bool earlier(const struct sim_world_event *a, const struct sim_world_event *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

void sim_push(struct sim_world *s, struct sim_world_event event)
{
	event.seq = s->seq++;
	event.due = event.due ? event.due : event.at;
	if (s->nheap == s->heap_cap) {
		size_t cap = s->heap_cap ? 2 * s->heap_cap : 1024;
		struct sim_world_event *more = hd_alloc(cap * sizeof *more);
		if (!more) {
			s->no_memory = true;
			return;
		}
		if (s->nheap)
			memcpy(more, s->heap, s->nheap * sizeof *more);
		hd_free(s->heap);
		s->heap = more;
		s->heap_cap = cap;
	}
	size_t i = s->nheap++;
	for (; i && earlier(&event, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = event;
}

struct sim_world_event sim_pop(struct sim_world *s)
{
	struct sim_world_event top = s->heap[0], last = s->heap[--s->nheap];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < s->nheap; i = child) {
		if (child + 1 < s->nheap && earlier(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!earlier(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return top;
}

/* ---- links: ordered both ways while they live; what is on one that closes is lost ---- */

bool sim_up(struct sim_world *s, uint32_t a, uint32_t b) { return a < SIM_ENDS && b < SIM_ENDS && a != b &&
	sim_link_of(s, a, b)->up; }

uint32_t sim_slot(const struct sim_world *s, uint32_t worker)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (s->proc[i].alive && s->proc[i].id == worker && worker != HD_NOBODY)
			return i;
	return SIM_ENDS;
}

static int64_t delay(struct sim_world *s)
{
	int64_t d = sim_between(s, SIM_MS / 20, 2 * SIM_MS);

	if (sim_rnd(s, 64) == 0)
		d += sim_between(s, 0, 100 * SIM_MS);
	return s->now < s->slow_until ? d * 10 : d;
}

void sim_send(struct sim_world *s, uint32_t from, uint32_t to, const struct sim_packet *packet)
{
	if (to >= SIM_ENDS || from == to || !sim_up(s, from, to))
		return;
	struct sim_link *l = sim_link_of(s, from, to);
	uint32_t dir = from > to;
	struct sim_packet *copy = hd_arena_take(&s->arena, 1, sizeof *copy);
	if (!copy) {
		s->no_memory = true;
		return;
	}
	*copy = *packet;
	int64_t at = s->now + delay(s);
	at = at < l->mute_until[dir] ? l->mute_until[dir] + SIM_MS : at;
	l->last[dir] = at > l->last[dir] ? at : l->last[dir];
	sim_push(s, (struct sim_world_event){ .at = l->last[dir], .kind = EV_PACKET, .end = to, .other = from,
		.link = l->life, .packet = copy });
}

void sim_send_msg(struct sim_world *s, uint32_t from, uint32_t to, const struct hd_msg *msg)
{
	size_t len = 0, cap = hd_msg_len(msg);
	uint8_t *bytes = hd_arena_take(&s->arena, cap, 1);

	if (!bytes) {
		s->no_memory = true;
		return;
	}
	if (hd_msg_encode(msg, bytes, cap, &len, NULL)) {
		sim_bad(s, "message", "%s cannot be written", hd_msg_name(msg->kind));
		return;
	}
	sim_send(s, from, to, &(struct sim_packet){ .kind = SIM_SEND, .epoch = msg->epoch,
		.from = from == SIM_CO ? HD_COORDINATOR : s->proc[from].id,
		.msg_kind = msg->kind, .bytes = bytes, .len = (uint32_t)len });
}

void sim_connect(struct sim_world *s, uint32_t a, uint32_t b)
{
	if (a >= SIM_ENDS || b >= SIM_ENDS || a == b)
		return;
	struct sim_link *l = sim_link_of(s, a, b);
	if (l->up || l->opening || !sim_end_alive(s, b) || s->now < l->mute_until[0] ||
		s->now < l->mute_until[1])
		return;
	l->opening = true;
	l->life++;
	if (!l->late_until && s->seed & HD_SIM_MISSED && a != SIM_CO && b != SIM_CO)
		l->late_until = s->now + sim_between(s, 0, SIM_T / 2);
	const bool missed = s->now < l->late_until;
	s->result->missed += missed;
	sim_push(s, (struct sim_world_event){ .at = s->now + delay(s), .kind = missed ? EV_MISSED : EV_UP,
		.end = a, .other = b, .link = l->life });
}

void sim_report_lost(struct sim_world *s, uint32_t end, uint32_t other, int64_t at, enum hd_suspicion why,
	uint32_t life)
{
	struct sim_link *l = sim_link_of(s, end, other);
	uint32_t worker = other == SIM_CO ? HD_COORDINATOR : s->proc[other].id;

	if (why == HD_CLOSED) {
		l->closing[end > other] = true;
		l->closing_worker[end > other] = worker;
		l->closing_life[end > other] = life;
	}
	sim_push(s, (struct sim_world_event){ .at = at, .kind = EV_LOST, .end = end, .other = other,
		.why = why,
		.link = life, .number = worker,
		.gen = end == SIM_CO ? s->co_gen : s->proc[end].gen });
}

/* after_sent: what was sent arrives before the end is heard (a good-bye, or what a dead process's kernel
 * still sends). */
void sim_close(struct sim_world *s, uint32_t a, uint32_t b, bool after_sent)
{
	if (a >= SIM_ENDS || b >= SIM_ENDS || a == b)
		return;
	struct sim_link *l = sim_link_of(s, a, b);
	uint32_t dir = a > b;

	l->opening = false;
	if (!l->up)
		return;
	int64_t heard = s->now + delay(s);
	if (after_sent && l->last[dir] > heard)
		heard = l->last[dir];
	if (after_sent && s->now >= l->mute_until[dir]) {
		sim_report_lost(s, a, b, s->now, HD_CLOSED, l->life);
		sim_push(s, (struct sim_world_event){ .at = heard, .kind = EV_CLOSE, .end = b, .other = a,
			.link = l->life });
		return;
	}
	l->up = false;
	l->life++;
	sim_report_lost(s, a, b, s->now, HD_CLOSED, l->life);
	sim_report_lost(s, b, a, heard < l->mute_until[dir] ? l->mute_until[dir] : heard, HD_CLOSED, l->life);
}
