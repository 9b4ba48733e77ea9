#include "protocol/member_int.h"

#include <assert.h>
#include <string.h>

#include "base/timeouts.h"

/* Without a coordinator: rule 6 of member.h, and the end of a run that no coordinator says. */

static const char *why_alone(const struct hd_member *m)
{
	if (m->config.none_takes_over && !m->peer_lost)
		return "no coordinator for thirty times workers.detect, and no worker here can start one: "
			"`heddle resume` of the run goes on";
	return m->vain && !m->peer_lost ?
		"no coordinator for thirty times workers.detect, and after a step that was skipped its "
		"members wait for one" :
		"no coordinator for thirty times workers.detect, and a member is missing";
}

void hd_member_alone(struct hd_member *m)
{
	int64_t t = m->config.detect_ns;

	if (m->now_ns >= m->call_ns) {
		hd_member_act(m, HD_DO_CALL);
		m->call_ns = m->now_ns + HD_TIMEOUT_NS(HEARTBEAT, t);
	}
	bool member = m->state == HD_MEMBER || m->state == HD_HALTED;
	if (m->config.takes_over && m->now_ns >= m->take_over_ns) {
		hd_member_act(m, HD_DO_TAKE_OVER);
		m->take_over_ns = m->now_ns + HD_TIMEOUT_NS(TAKE_OVER, t);
	}
	if (m->now_ns - m->co_lost_ns < HD_TIMEOUT_NS(NO_COORDINATOR, t) || m->finishing ||
		hd_member_in_update(m))
		return;
	if (!member) {
		hd_member_exit(m, 75, "no coordinator for thirty times workers.detect");
		return;
	}
	if (!m->config.none_takes_over && !m->peer_lost && !m->held && !m->hold && m->state != HD_HALTED)
		return;
	uint32_t i = 0;
	assert(hd_member_is_in(m, m->worker));
	while (!hd_member_is_up(m, m->view.member[i]))    /* it is up itself, so the loop ends */
		i++;
	uint32_t first = m->view.member[i];
	if (first == m->worker && !m->done && !hd_is_remote(first) && hd_member_whole(m) && !m->diverged) {
		if (m->begun)                             /* it may have changed parts ahead of its end */
			hd_member_cancel(m);
		struct hd_member_action *a = hd_member_act(m, HD_DO_BOUNDARY);
		a->flag = a->final = true;
	}
	hd_member_exit(m, m->state == HD_HALTED && m->done ? m->done_code : 75, why_alone(m));
}

/* Peers that are connected hear it too: those of other machines cannot read it. */
void hd_member_ended(struct hd_member *m, uint32_t code, const char *why)
{
	struct hd_msg *msg = hd_member_msg(m, HD_MSG_ENDED);
	const char *text = hd_arena_text(&m->out, why, strnlen(why, HD_MSG_TEXT));

	msg->ended = (struct hd_msg_ended){ .nwhy = text ? (uint32_t)strlen(text) : 0, .why = text };
	for (uint32_t i = 0; i < m->npeers; i++)
		if (m->peer[i].up)
			hd_member_send(m, m->peer[i].worker, msg);
	hd_member_exit(m, code, text ? text : "");
}

/* Whoever has a coordinator hears it from that one. */
void hd_member_on_ended(struct hd_member *m, const struct hd_msg_ended *msg)
{
	char why[HD_MSG_TEXT + 1];

	if (m->state == HD_GONE || (m->co_up && !m->co_silent))
		return;
	if (msg->nwhy)
		memcpy(why, msg->why, msg->nwhy);
	why[msg->nwhy] = '\0';
	hd_member_ended(m, HD_MEMBER_STOPPED, why);
}
