#include "protocol/member_int.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* A step that goes on after a loss: rule 12 of member.h. */

void hd_member_runs(struct hd_member *m)
{
	m->stop.state = HD_RANKS_RUN;
	m->stop.went_on = false;
	m->stop.epoch = m->view.epoch;
}

static bool has_ranks(const struct hd_member *m) { return hd_view_stages(&m->view, m->worker) != 0; }

/* All that its stages read is here, its passes were asked for, and nothing of it is summed. In the view of a
 * rest the step was begun before, in another one. */
bool hd_member_may_stop(const struct hd_member *m)
{
	return m->config.goes_on && m->begun && m->x_shape.nstages > 1 &&
		m->stop.epoch == m->view.epoch && m->stop.state != HD_RANKS_CANNOT &&
		(m->own.passes.npasses || !has_ranks(m)) && !m->lacks &&
		(!(m->x.fetchers >> m->x.me & 1) || m->fetched) && !m->x.nsums &&
		!m->updating && !m->finishing;
}

static void say_stopped(struct hd_member *m)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_STOPPED);
	const bool stands = m->stop.state == HD_RANKS_STAND;

	msg->stopped = (struct hd_msg_stopped){ .step = m->at, .of = m->stop.epoch,
		.nrank = stands ? m->stop.nranks : 0, .rank = m->stop.rank,
		.nnext = stands ? m->stop.nranks : 0, .next = m->stop.next,
		.narrived = stands ? m->stop.narrived : 0, .arrived = m->stop.arrived };
	hd_member_say(m, msg);
}

void hd_member_stop(struct hd_member *m)
{
	if (!hd_member_may_stop(m))
		return;
	if (m->stop.state == HD_RANKS_RUN && !has_ranks(m)) {
		m->stop.nranks = m->stop.narrived = 0;
		m->stop.state = HD_RANKS_STAND;           /* it waits for a place */
	}
	if (m->stop.state == HD_RANKS_STAND)
		say_stopped(m);
	if (m->stop.state != HD_RANKS_RUN)
		return;
	m->stop.state = HD_RANKS_STOP;
	hd_member_act(m, HD_DO_STOP);
}

/* False: they are too many, or there is no memory. */
static bool put_runs(struct hd_member_stop *stop, const uint8_t *byte, uint32_t n)
{
	stop->narrived = 0;
	if (n > stop->cap) {
		hd_free(stop->arrived);
		stop->arrived = hd_alloc(n * sizeof *stop->arrived);
		stop->cap = stop->arrived ? n : 0;
	}
	for (uint32_t i = 0; i < n && stop->cap; i++)
		if (i && byte[i] == byte[i - 1])
			stop->arrived[stop->narrived - 1].n++;
		else
			stop->arrived[stop->narrived++] = (struct hd_vrange){ byte[i], 1 };
	return n && stop->cap && stop->narrived <= HD_MSG_RUNS;
}

void hd_member_stopped(struct hd_member *m, const struct hd_member_event *event)
{
	const struct hd_member_stood *stood = event->stood;
	struct hd_member_stop *stop = &m->stop;

	if (!m->begun || event->step != m->at || stop->state != HD_RANKS_STOP)
		return;
	assert(stood->nranks <= HD_VIEW_RANKS);
	stop->nranks = stood->nranks;
	if (stood->nranks) {
		memcpy(stop->rank, stood->rank, stood->nranks * sizeof *stop->rank);
		memcpy(stop->next, stood->next, stood->nranks * sizeof *stop->next);
	}
	stop->state = stood->nranks && put_runs(stop, stood->arrived, stood->narrived) ? HD_RANKS_STAND :
		HD_RANKS_CANNOT;
	if (m->held && m->status_said)
		say_stopped(m);
}

bool hd_member_go_on(struct hd_member *m, const struct hd_msg_view *v)
{
	if (!m->begun || m->at != v->step || m->stop.state != HD_RANKS_STAND || v->nnext != m->view.nranks)
		return false;
	m->stop.went_on = true;
	m->stop.state = HD_RANKS_RUN;
	struct hd_member_action *a = hd_member_act(m, HD_DO_GO_ON);
	a->view = &m->view;
	a->next = v->next;
	a->arrived = v->arrived;
	a->narrived = v->narrived;
	return true;
}
