/* testing_member.h -- a member machine at work, and what it asks for in words: included by *_test.c only.
 *
 * Every event gives one line of text: its actions in order, parted by "; ". What a rule forbids is then a
 * line that lacks it, and what it asks for one that has it and nothing else. Worker ids are numbers, the
 * coordinator is `co`.
 *
 *	>1 SEAL@2 3 ran knows 2            a message to worker 1, of epoch 2; then its fields
 *	COMPUTE 3.0 [0+2 6+2]              step 3, pass 0, virtual nodes 0, 1, 6, 7
 *	ROOTS 3.0.1 >2                     of pass 0, bucket 1, to worker 2
 *	PUBLISH 3.1 {02}                   bucket 1 to the members of indices 0 and 2
 *
 * Ownership: at_work_begin/at_work_end. */
#ifndef HD_PROTOCOL_TESTING_MEMBER_H
#define HD_PROTOCOL_TESTING_MEMBER_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/member_int.h"
#include "tests/check.h"

#define AT_WORK_T INT64_C(1000000000)

struct at_work {
	struct hd_member *m;
	int64_t now;
	uint32_t term;
	struct hd_member_actions done;    /* of the last event */
	char text[8192];
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static inline void at_work_put(struct at_work *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(w->text + w->len, sizeof w->text - w->len, fmt, args);
	va_end(args);
	assert_true(n >= 0 && w->len + (size_t)n < sizeof w->text);
	w->len += (size_t)n;
}

static inline void at_work_bits(struct at_work *w, const char *name, const uint64_t *bits, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (i || bits[i])
			at_work_put(w, " %s%s %" PRIx64, name, i ? "+" : "", bits[i]);
}

static inline void at_work_status(struct at_work *w, const struct hd_msg_status *s)
{
	at_work_put(w, " %" PRIu64 "%s%s%s%s%s%s", s->at, s->member ? " member" : "",
		s->begun ? " begun" : "", s->halted ? " halted" : "",
		s->prev ? " prev" : "", s->table ? " table" : "", s->updated ? " updated" : "");
	for (uint32_t p = 0; p < s->npass; p++) {
		at_work_put(w, " [");
		for (uint32_t r = s->pass[p].first_range; r < s->pass[p].first_range + s->pass[p].nranges;
			r++)
			at_work_put(w, "%s%u+%u", r > s->pass[p].first_range ? " " : "", s->range[r].first,
				s->range[r].n);
		at_work_put(w, "]");
	}
	at_work_bits(w, "sum", s->sum, s->nsum);
	at_work_bits(w, "parm", s->parm, s->nparm);
	at_work_bits(w, "slot", s->slot, s->nslot);
	if (s->stops)
		at_work_put(w, " stops");
}

static inline void at_work_seal(struct at_work *w, const struct hd_msg_seal *s)
{
	at_work_put(w, " %" PRIu64 "%s knows %u", s->step, s->ran ? " ran" : "", s->knows);
	if (s->sum_digest || s->state_digest)
		at_work_put(w, " %" PRIu64 "/%" PRIu64, s->sum_digest, s->state_digest);
}

static inline void at_work_msg(struct at_work *w, const struct hd_msg *msg)
{
	at_work_put(w, "%s@%u", hd_msg_name(msg->kind), msg->epoch);
	assert_int_equal(msg->term, w->m->term);
	switch ((int)msg->kind) {
	case HD_MSG_JOIN:
		at_work_put(w, " %d%s at %" PRIu64, (int)msg->join.worker, msg->join.member ? " member" : "",
			msg->join.at);
		break;
	case HD_MSG_READY_TO_SYNC:     at_work_put(w, " %" PRIu64, msg->ready_to_sync.given_up); break;
	case HD_MSG_SYNCED:  at_work_put(w, " %d %" PRIu64, (int)msg->synced.source, msg->synced.transfer);
		break;
	case HD_MSG_PREPARED: at_work_put(w, " %u", msg->decided.next); break;
	case HD_MSG_SEAL:     at_work_seal(w, &msg->seal); break;
	case HD_MSG_SUSPECT:  at_work_put(w, " %u %s", msg->suspect.worker,
		hd_suspicion_name((enum hd_suspicion)msg->suspect.why)); break;
	case HD_MSG_STATUS:   at_work_status(w, &msg->status); break;
	case HD_MSG_STOPPED:
		at_work_put(w, " %" PRIu64 " of %u", msg->stopped.step, msg->stopped.of);
		for (uint32_t i = 0; i < msg->stopped.nrank; i++)
			at_work_put(w, " %u:%u", msg->stopped.rank[i], msg->stopped.next[i]);
		for (uint32_t i = 0; i < msg->stopped.narrived; i++)
			at_work_put(w, " %ux%u", msg->stopped.arrived[i].n, msg->stopped.arrived[i].first);
		break;
	case HD_MSG_ENDED: at_work_put(w, " %.*s", (int)msg->ended.nwhy, msg->ended.why); break;
	case HD_MSG_UNFIT:
		at_work_put(w, " %u %.*s", msg->unfit.view, (int)msg->unfit.nwhy, msg->unfit.why);
		break;
	case HD_MSG_LEAVE:
		at_work_put(w, " %u%s %.*s", msg->leave.code, msg->leave.gone ? " gone" : "",
			(int)msg->leave.nwhy, msg->leave.why);
		if (msg->leave.left_ns)
			at_work_put(w, " in %" PRIu64, msg->leave.left_ns);
		break;
	case HD_MSG_HALT:
	case HD_MSG_SLOTTED:  at_work_put(w, " %" PRIu64, msg->halt.step); break;
	case HD_MSG_DONE:
		at_work_put(w, " %" PRIu64 " code %u %.*s", msg->done.step, msg->done.code,
			(int)msg->done.nwhy, msg->done.why);
		break;
	case HD_MSG_EVENT:
		at_work_put(w, " %.*s %.*s", (int)msg->event.nkind, msg->event.kind, (int)msg->event.njson,
			msg->event.json);
		break;
	case HD_MSG_SPENT:
		at_work_put(w, " %" PRIu64, msg->spent.step);
		for (uint32_t i = 0; i < msg->spent.nspent; i++)
			at_work_put(w, " %u.%u", msg->spent.spent[i].rank, msg->spent.spent[i].stage);
		break;
	case HD_MSG_PROGRESS:
		at_work_put(w, " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s", msg->progress.step,
			msg->progress.done, msg->progress.longest_ns,
			msg->progress.busy ? " busy" : "");
		break;
	default: fail_msg("a member does not say %s", hd_msg_name(msg->kind));
	}
}

static inline void at_work_mask(struct at_work *w, uint64_t mask)
{
	at_work_put(w, " {");
	for (uint32_t i = 0; i < 64; i++)
		if (mask >> i & 1)
			at_work_put(w, "%u", i);
	at_work_put(w, "}");
}

static inline void at_work_action(struct at_work *w, const struct hd_member_action *a)
{
	if (a->kind == HD_DO_SEND) {
		if (a->worker == HD_COORDINATOR)
			at_work_put(w, ">co ");
		else
			at_work_put(w, ">%u ", a->worker);
		at_work_msg(w, a->msg);
		return;
	}
	at_work_put(w, "%s", hd_member_action_name(a->kind));
	switch ((int)a->kind) {
	case HD_DO_CONNECT:  at_work_put(w, " %u %s", a->worker, a->text); break;
	case HD_DO_ADMITTED: at_work_put(w, " %u", a->worker); break;
	case HD_DO_SYNC:    at_work_put(w, " %d %" PRIu64, (int)a->worker, a->step); break;
	case HD_DO_SEND_STATE:   at_work_put(w, " %u%s", a->worker, a->flag ? "" : " no more"); break;
	case HD_DO_PREPARE:
	case HD_DO_ADOPT:    at_work_put(w, " %u of %u", a->view->epoch, a->view->nmembers); break;
	case HD_DO_DECIDED:
	case HD_DO_EPOCH:    at_work_put(w, " %u", a->epoch); break;
	case HD_DO_BEGIN:    at_work_put(w, " %" PRIu64 "%s", a->step, a->fewer ? " fewer" : ""); break;
	case HD_DO_STOP:
	case HD_DO_GO_ON:
	case HD_DO_AGAIN:
	case HD_DO_UPDATE:
	case HD_DO_FINISH:
	case HD_DO_CANCEL:   at_work_put(w, " %" PRIu64, a->step); break;
	case HD_DO_FETCH:    at_work_put(w, " %" PRIu64 "%s", a->step, a->flag ? " own" : ""); break;
	case HD_DO_COMPUTE:
		at_work_put(w, " %" PRIu64 ".%u [", a->step, a->pass);
		for (uint32_t i = 0; i < a->nranges; i++)
			at_work_put(w, "%s%u+%u", i ? " " : "", a->range[i].first, a->range[i].n);
		at_work_put(w, "]");
		break;
	case HD_DO_ROOTS:    at_work_put(w, " %" PRIu64 ".%u.%u >%u", a->step, a->pass, a->bucket, a->worker);
		break;
	case HD_DO_LEAVES:   at_work_put(w, " %" PRIu64 ".%u", a->step, a->pass); break;
	case HD_DO_FOLD:     at_work_put(w, " %" PRIu64 ".%u", a->step, a->bucket); break;
	case HD_DO_PUBLISH:
	case HD_DO_NORM:
	case HD_DO_PARM:
	case HD_DO_RATIO:
		at_work_put(w, " %" PRIu64 ".%u", a->step, a->bucket);
		at_work_mask(w, a->mask);
		break;
	case HD_DO_TABLE:
		at_work_put(w, " %" PRIu64, a->step);
		at_work_mask(w, a->mask);
		break;
	case HD_DO_BOUNDARY: at_work_put(w, " %" PRIu64 "%s%s", a->step, a->flag ? " writer" : "",
		a->final ? " final" : ""); break;
	case HD_DO_EXIT:     at_work_put(w, " %u %s", a->code, a->text); break;
	case HD_DO_FENCED:   at_work_put(w, " %s", a->text); break;
	default: break;
	}
}

/* One event, a nanosecond later; what is asked for. */
static inline const char *feed(struct at_work *w, struct hd_member_event event)
{
	w->done = hd_member_step(w->m, &event, ++w->now);
	w->len = 0;
	*w->text = '\0';
	for (size_t i = 0; i < w->done.n; i++) {
		at_work_put(w, "%s", i ? "; " : "");
		at_work_action(w, &w->done.at[i]);
	}
	return w->text;
}

static inline const char *hear(struct at_work *w, struct hd_msg msg)
{
	msg.term = w->term;
	return feed(w, (struct hd_member_event){ .kind = HD_IN_MESSAGE, .worker = HD_COORDINATOR,
		.msg = &msg });
}

static inline const char *hear_of(struct at_work *w, uint32_t from, struct hd_msg msg)
{
	return feed(w, (struct hd_member_event){ .kind = HD_IN_MESSAGE, .worker = from, .msg = &msg });
}

/* An id, and fields where it has some. */
#define EVENT(...) EVENT_OF(__VA_ARGS__, )
#define EVENT_OF(id, ...) feed(w, (struct hd_member_event){ .kind = HD_IN_##id, __VA_ARGS__ })
#define HEAR(...) HEAR_OF(__VA_ARGS__, )
#define HEAR_OF(id, ...) hear(w, (struct hd_msg){ .kind = HD_MSG_##id, __VA_ARGS__ })
#define PEER_SAYS(from, id, ...) hear_of(w, from, (struct hd_msg){ .kind = HD_MSG_##id, __VA_ARGS__ })
#define IS(said, text_) \
	do { \
		const char *said_ = (said); \
		if (strcmp(said_, text_)) { print_error("%s\n is \"%s\"\n not \"%s\"\n", #said, said_, \
			text_); fail_msg("another answer"); } \
	} while (0)

/* FENCE, and VIEW of the epoch: its fields are the caller's; ranks are even, unless it names some. */
static inline const char *hear_view(struct at_work *w, uint32_t epoch, const uint32_t *member, uint32_t n,
	struct hd_msg_view v)
{
	static const uint32_t ndevices[] = { 1, 1, 1, 1 };
	struct hd_view view;
	uint64_t at[4];

	hd_view_even(&view, epoch, member, ndevices, n, w->m->config.nvns);
	for (uint32_t i = 0; i < n; i++)
		at[i] = v.step;
	v.nmember = n;
	v.member = member;
	if (!v.nat) {
		v.nat = n;
		v.at = at;
	}
	if (!v.nrank) {
		v.nrank = view.nranks;
		v.rank = view.rank;
	}
	return hear(w, (struct hd_msg){ .kind = HD_MSG_VIEW, .epoch = epoch, .view = v });
}

#define VIEW(epoch, n, ...) hear_view(w, epoch, (const uint32_t[]){ 0, 1, 2, 3 }, n, (struct hd_msg_view){ \
	.halt = HD_NO_STEP, __VA_ARGS__ })
#define FENCE(epoch_) HEAR(FENCE, .epoch = (epoch_))

static const struct hd_member_config at_work_config = { .nvns = 4, .nbuckets = 2, .nsteps = 9,
	.detect_ns = AT_WORK_T, .ndevices = 1, .vn_ps = 5,
	.nonce = 7, .address = "here", .host = "host" };

/* Outside, its coordinator is there. */
static inline void at_work_begin(struct at_work *w, const struct hd_member_config *config)
{
	memset(w, 0, sizeof *w);
	w->term = 1;
	assert_int_equal(hd_member_create(&w->m, config, NULL), HD_OK);
	EVENT(UP, .worker = HD_COORDINATOR);
}

static inline void at_work_end(struct at_work *w) { hd_member_destroy(w->m); }

/* Worker `id`, with X_0 loaded. */
static inline void at_work_synced(struct at_work *w, const struct hd_member_config *config, uint32_t id)
{
	at_work_begin(w, config);
	HEAR(ADMIT, .admit = { id, config->nonce });
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { HD_NOBODY, 0 });
	EVENT(SYNCED, .step = 0);
	for (uint32_t peer = 0; peer < 3; peer++)
		if (peer != id) {
			HEAR(PEER, .peer = { .worker = peer, .naddress = 1, .address = &"abc"[peer] });
			EVENT(UP, .worker = peer);
		}
}

/* Worker `id` of `n` in epoch 1, in step 0. */
static inline void at_work_member(struct at_work *w, const struct hd_member_config *config, uint32_t id,
	uint32_t n)
{
	at_work_synced(w, config, id);
	FENCE(1);
	VIEW(1, n, .step = 0);
	EVENT(READY, .step = 0);
}

#endif
