/* testing_coordinator.h -- a coordinator with workers made by hand, and what it does in words: included by
 * *_test.c only.
 *
 * Every event gives one line of text: its actions in order, parted by "; ".
 *
 *	>1 FENCE@3 dead 2 4                a message to worker 1, of epoch 3; then its fields
 *	STORE 5 e 3 next 2 of 0 1          record 5: epoch 3, the next number is 2, members 0 and 1
 *	NOTE lost 2                        a line for events.ndjson about worker 2
 *	COMMIT 7@3                         step 7, epoch 3; "lost" if there is no record of it
 *
 * `stored` tells that the newest record is stored, as often as there is one.
 *
 * Ownership: co_begin/co_end. */
#ifndef HD_PROTOCOL_TESTING_COORDINATOR_H
#define HD_PROTOCOL_TESTING_COORDINATOR_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/coordinator_int.h"
#include "tests/check.h"

#define CO_T INT64_C(1000000000)
enum { CO_GUEST = 0x40000000 };

struct co_at_work {
	struct hd_coordinator *co;
	int64_t now;
	struct hd_co_actions done;
	struct hd_co_record record;       /* handed over last */
	char text[16384];
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static inline void co_put(struct co_at_work *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(c->text + c->len, sizeof c->text - c->len, fmt, args);
	va_end(args);
	assert_true(n >= 0 && c->len + (size_t)n < sizeof c->text);
	c->len += (size_t)n;
}

static inline void co_put_all(struct co_at_work *c, const char *what, const uint32_t *at, uint32_t n)
{
	if (n)
		co_put(c, " %s", what);
	for (uint32_t i = 0; i < n; i++)
		co_put(c, " %u", at[i]);
}

static inline void co_put_runs(struct co_at_work *c, const char *what, const struct hd_have *run, uint32_t n)
{
	if (n)
		co_put(c, " %s", what);
	for (uint32_t i = 0; i < n; i++)
		co_put(c, " %u:%" PRIx64, run[i].first, run[i].members);
}

static inline void co_put_view(struct co_at_work *c, const struct hd_msg_view *v)
{
	co_put(c, " %" PRIu64 "%s%s", v->step, v->afresh ? " afresh" : "", v->hold ? " hold" : "");
	if (v->halt != HD_NO_STEP)
		co_put(c, " halt %" PRIu64, v->halt);
	co_put(c, " of");
	for (uint32_t i = 0; i < v->nmember; i++)
		co_put(c, v->at[i] == v->step ? " %u" : " %u+%d", v->member[i], (int)(v->at[i] - v->step));
	if (v->npass)
		co_put(c, " passes");
	for (uint32_t i = 0; i < v->npass; i++) {
		co_put(c, " %u.%u[", v->pass[i].worker, v->pass[i].pass);
		for (uint32_t r = v->pass[i].first_range; r < v->pass[i].first_range + v->pass[i].nranges;
			r++)
			co_put(c, "%s%u+%u", r > v->pass[i].first_range ? " " : "", v->range[r].first,
				v->range[r].n);
		co_put(c, "]");
	}
	co_put_runs(c, "sums", v->have, v->nhave);
	co_put_runs(c, "parms", v->parm, v->nparm);
	co_put_runs(c, "chain", v->chain, v->nchain);
	if (v->table)
		co_put(c, " table %" PRIx64, v->table);
}

static inline void co_put_msg(struct co_at_work *c, const struct hd_msg *msg)
{
	co_put(c, "%s@%u", hd_msg_name(msg->kind), msg->epoch);
	assert_int_equal(msg->term, c->co->record.term);
	switch ((int)msg->kind) {
	case HD_MSG_ADMIT:   co_put(c, " %u for %" PRIu64, msg->admit.worker, msg->admit.nonce); break;
	case HD_MSG_REFUSE:  co_put(c, " %u", msg->refuse.code); break;
	case HD_MSG_PEER:    co_put(c, " %u %.*s", msg->peer.worker, (int)msg->peer.naddress,
		msg->peer.address); break;
	case HD_MSG_SYNC:   co_put(c, " %d %" PRIx64, (int)msg->sync.source, msg->sync.transfer); break;
	case HD_MSG_SEND_STATE:  co_put(c, " %u%s", msg->send_state.joiner, msg->send_state.on ? "" : " no "
		"more"); break;
	case HD_MSG_PREPARE:
		co_put(c, " %u", msg->prepare.next);
		co_put_all(c, "after", msg->prepare.old, msg->prepare.nold);
		co_put_all(c, "of", msg->prepare.member, msg->prepare.nmember);
		break;
	case HD_MSG_DECIDE:  co_put(c, " %u", msg->decided.next); break;
	case HD_MSG_FENCE:   co_put_all(c, "dead", msg->fence.dead, msg->fence.ndead); break;
	case HD_MSG_VIEW:    co_put_view(c, &msg->view); break;
	case HD_MSG_RELEASE: co_put(c, " %u", msg->release.code); break;
	case HD_MSG_STOP:    co_put(c, " %u %.*s", msg->stop.code, (int)msg->stop.nwhy, msg->stop.why); break;
	default: break;
	}
}

static inline void co_put_record(struct co_at_work *c, const struct hd_co_record *r)
{
	c->record = *r;
	co_put(c, "STORE %" PRIu64 " e %u next %u", r->serial, r->epoch, r->next_worker);
	co_put_all(c, "of", r->member, r->nmembers);
	co_put(c, "%s%s", r->started ? "" : " not started", r->halting ? " halting" : "");
	co_put_all(c, "going", r->going, r->ngoing);
	if (r->mismatches)
		co_put(c, " mismatches %u to %" PRIu64, r->mismatches, r->mismatched);
}

static inline void co_put_action(struct co_at_work *c, const struct hd_co_action *a)
{
	switch (a->kind) {
	case HD_CO_DO_SEND:
		if (a->worker >= CO_GUEST)
			co_put(c, ">g%u ", a->worker - CO_GUEST);
		else
			co_put(c, ">%u ", a->worker);
		co_put_msg(c, a->msg);
		break;
	case HD_CO_DO_DROP:    co_put(c, "DROP %u", a->worker); break;
	case HD_CO_DO_STORE:   co_put_record(c, a->record); break;
	case HD_CO_DO_SPAWN:   co_put(c, "SPAWN %u", a->n); break;
	case HD_CO_DO_END:     co_put(c, "END %u", a->worker); break;
	case HD_CO_DO_RESTORE: co_put(c, "RESTORE"); break;
	case HD_CO_DO_INVALIDATE: co_put(c, "INVALIDATE %" PRIu64, a->step); break;
	case HD_CO_DO_COMMIT:  co_put(c, "COMMIT %" PRIu64 "@%u%s", a->step, a->epoch,
		a->news ? "" : " lost"); break;
	case HD_CO_DO_NOTE:
		co_put(c, "NOTE %s", a->name);
		if (a->worker != HD_NOBODY)
			co_put(c, a->worker >= CO_GUEST ? " g%u" : " %u", a->worker % CO_GUEST);
		break;
	case HD_CO_DO_SPENT:
		co_put(c, "SPENT %u@%u %" PRIu64, a->worker, a->epoch, a->msg->spent.step);
		for (uint32_t i = 0; i < a->msg->spent.nspent; i++)
			co_put(c, " %u.%u", a->msg->spent.spent[i].rank, a->msg->spent.spent[i].stage);
		break;
	case HD_CO_DO_EXIT:    co_put(c, "EXIT %u %s", a->code, a->text); break;
	case HD_CO_DO_NKINDS:  break;
	}
}

/* The text of the first note of that name in what was done last; "": there is none. */
static inline const char *co_note_text(const struct co_at_work *c, const char *name)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_NOTE && !strcmp(c->done.at[i].name, name))
			return c->done.at[i].text;
	return "";
}

static inline const char *co_step(struct co_at_work *c, struct hd_co_event event)
{
	c->done = hd_coordinator_step(c->co, &event, ++c->now);
	c->len = 0;
	*c->text = '\0';
	for (size_t i = 0; i < c->done.n; i++) {
		co_put(c, "%s", i ? "; " : "");
		co_put_action(c, &c->done.at[i]);
	}
	return c->text;
}

static inline const char *co_hear(struct co_at_work *c, uint32_t from, bool remote, struct hd_msg msg)
{
	return co_step(c, (struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = from, .msg = &msg,
		.remote = remote });
}

#define CO(...) CO_OF(__VA_ARGS__, )         /* an id, and fields where it has some */
#define CO_OF(id, ...) co_step(c, (struct hd_co_event){ .kind = HD_CO_IN_##id, __VA_ARGS__ })
#define FROM(worker_, id, ...) co_hear(c, worker_, false, (struct hd_msg){ .kind = HD_MSG_##id, __VA_ARGS__ })
#define STORED() CO(STORED, .serial = c->record.serial, .ok = true)
#define IS(said, text_) \
	do { \
		const char *said_ = (said); \
		if (strcmp(said_, text_)) { print_error("%s\n is \"%s\"\n not \"%s\"\n", #said, said_, \
			text_); fail_msg("another answer"); } \
	} while (0)

static inline const char *co_tick_at(struct co_at_work *c, int64_t now)
{
	c->now = now - 1;
	return CO(TICK, .n = 0);
}

/* The same, all workers that have a link having said a sign of life right before. */
static inline const char *co_heard_at(struct co_at_work *c, int64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->co->nplaces; i++)
		n += c->co->worker[i].up && hd_co_is_here(&c->co->worker[i]);
	c->now = now - n - 1;
	for (uint32_t i = 0; i < c->co->nplaces; i++) {
		const struct hd_co_worker *w = &c->co->worker[i];
		if (w->up && hd_co_is_here(w))
			FROM(w->worker, PROGRESS, .epoch = w->spoke);
	}
	return CO(TICK, .n = 0);
}

static const struct hd_co_config co_config = { .nvns = 4, .nbuckets = 2, .min = 1, .max = 4, .target = 2,
	.detect_ns = CO_T, .min_wait_ns = 100 * CO_T };

static inline void co_begin(struct co_at_work *c, const struct hd_co_config *config)
{
	memset(c, 0, sizeof *c);
	assert_int_equal(hd_coordinator_create(&c->co, config, 0, NULL), HD_OK);
}

static inline void co_end(struct co_at_work *c) { hd_coordinator_destroy(c->co); }

/* A process has a nonce. */
static inline const char *co_host(uint64_t nonce)
{
	static char host[24];

	snprintf(host, sizeof host, "pid:%" PRIu64, nonce);
	return host;
}

static inline const char *co_join(struct co_at_work *c, uint32_t guest, uint64_t nonce)
{
	return FROM(CO_GUEST + guest, JOIN, .join = { .worker = HD_NOBODY, .ndevices = 1, .vn_ps = 1,
		.nonce = nonce, .naddress = 1,
		.address = &"abcdefgh"[guest % 8],
		.nhost = (uint32_t)strlen(co_host(nonce)), .host = co_host(nonce) });
}

static inline const char *co_return(struct co_at_work *c, uint32_t worker, uint64_t nonce, bool member)
{
	return FROM(worker, JOIN, .join = { .worker = worker, .member = member, .ndevices = 1, .vn_ps = 1,
		.nonce = nonce, .naddress = 1,
		.address = &"abcdefgh"[worker % 8],
		.nhost = (uint32_t)strlen(co_host(nonce)), .host = co_host(nonce) });
}

/* Worker `id` has its number, is back under it and could learn: the nonce is 10 + id. */
static inline void co_admit(struct co_at_work *c, uint32_t id)
{
	co_join(c, id, 10 + id);
	STORED();
	co_return(c, id, 10 + id, false);
}

static inline const char *co_ready_to_sync(struct co_at_work *c,
	uint32_t id) { return FROM(id, READY_TO_SYNC, .ready_to_sync = { 0 }); }

static inline const char *co_synced(struct co_at_work *c, uint32_t id)
{
	const struct hd_co_worker *w = hd_co_find(c->co, id);

	return FROM(id, SYNCED, .synced = { w->source, w->transfer });
}

static inline const char *co_seal(struct co_at_work *c, uint32_t id, uint32_t epoch, uint64_t step)
{
	return FROM(id, SEAL, .epoch = epoch, .seal = { .step = step, .ran = true, .knows = epoch });
}

/* `n` members, 0 .. n - 1, in epoch 1 before step 0. */
static inline void co_run(struct co_at_work *c, const struct hd_co_config *config, uint32_t n)
{
	struct hd_co_config with = *config;

	with.target = n;
	co_begin(c, &with);
	for (uint32_t i = 0; i < n; i++) {
		co_admit(c, i);
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	STORED();                         /* of the fence */
	for (uint32_t i = 0; i < n; i++)
		FROM(i, STATUS, .epoch = 1, .status = { .at = with.step, .nslot = 1,
			.slot = (const uint64_t[]){ UINT64_MAX } });
	STORED();                         /* of the members */
	assert_true(c->co->has_view && c->co->view.epoch == 1 && c->co->view.nmembers == n &&
		c->co->phase == HD_CO_IDLE);
	for (uint32_t i = 0; i < n; i++)
		FROM(i, PROGRESS, .epoch = 1);
}

/* A member's STATUS, and a joiner's: before step `at`, of which it began nothing. */
#define MEMBER_AT(w, epoch_, at_) FROM(w, STATUS, .epoch = (epoch_), .status = { .member = true, .at = (at_) \
	})
#define NEWCOMER_AT(w, epoch_, at_) FROM(w, STATUS, .epoch = (epoch_), .status = { .at = (at_) })

/* Worker `id` of another machine, likewise. */
static inline void co_admit_remote(struct co_at_work *c, uint32_t id)
{
	co_hear(c, CO_GUEST + id, true, (struct hd_msg){ .kind = HD_MSG_JOIN,
		.join = { .worker = HD_NOBODY, .ndevices = 1, .nonce = 10 + id } });
	STORED();
	co_return(c, HD_REMOTE_WORKER + id, 10 + id, false);
}

/* The members of the record, in the epoch after its own, before step `at`: a coordinator that took over. */
static inline void co_take_over(struct co_at_work *c, const struct hd_co_config *config, uint64_t step)
{
	const struct hd_co_record *r = &config->record;

	co_begin(c, config);
	CO(TICK, .n = 0);
	for (uint32_t i = 0; i < r->nmembers; i++)
		co_return(c, r->member[i], 10 + i, true);
	STORED();
	for (uint32_t i = 0; i < r->nmembers; i++)
		FROM(r->member[i], STATUS, .epoch = r->epoch + 1,
			.status = { .member = true, .at = step, .nslot = 1,
			.slot = (const uint64_t[]){ UINT64_MAX } });
	assert_true(c->co->has_view && c->co->view.nmembers == r->nmembers && c->co->phase == HD_CO_IDLE);
	for (uint32_t i = 0; i < r->nmembers; i++)
		FROM(r->member[i], PROGRESS, .epoch = r->epoch + 1);
}

/* The table is full: whoever is gone from it, and its link with it, loses its place to the next one. */
static inline void co_crowd(struct co_at_work *c)
{
	while (c->co->nplaces < HD_MAX_WORKERS)
		co_admit(c, c->co->record.next_worker);
}

/* One more has synced and is prepared for, up to that all are asked. */
static inline void co_one_more(struct co_at_work *c, uint32_t id)
{
	CO(SCALE, .n = id + 1);
	co_admit(c, id);
	co_ready_to_sync(c, id);
	co_synced(c, id);
}

#endif
