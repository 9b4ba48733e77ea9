#include "worker/elastic_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_writer.h"
#include "sys/failpoint.h"

/* One event in, its actions out. Actions and all they point to hold until the next event, so they are carried
 * out at once; events that come of them wait in a queue. */

enum { HD_FOLD_LOOK_NS = 200000 };
#define HD_FOLDS_MOST_NS INT64_C(60000000000)

void hd_elastic_fail(struct hd_elastic *e, enum hd_err err, const struct hd_diag *diag)
{
	if (!e->io_err) {
		e->io_err = err;
		e->io_diag = *diag;
	}
	e->leaving = true;
}

static void give(struct hd_elastic *e, const struct hd_command *command)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_commands_give(&e->commands, command, &diag);

	if (err)
		hd_elastic_fail(e, err, &diag);
}

static void judge(struct hd_elastic *e, enum hd_err err, const struct hd_diag *diag)
{
	if (err)
		hd_elastic_fail(e, err, diag);
}

static struct hd_view *copy_of(struct hd_elastic *e, const struct hd_view *view)
{
	struct hd_view *copy = hd_alloc(sizeof *copy);

	if (copy)
		*copy = *view;
	else
		hd_elastic_fail(e, HD_E_NOMEM, &(struct hd_diag){ "no memory for a view" });
	return copy;
}

static uint32_t link_of(uint32_t worker) { return worker == HD_COORDINATOR ? HD_COORDINATOR_LINK : worker; }

/* ---- actions, one function each ---- */

#define ACT(name) static void do_##name(struct hd_elastic *e, const struct hd_member_action *a)

/* A message on a link that is not up is dropped: the machine asks again for what it needs. */
/* Deaths before a message, by its kind. */
static const uint8_t before[HD_MSG_NKINDS] = { [HD_MSG_SEAL] = 1 + HD_FP_SEAL_BEFORE,
	[HD_MSG_STATUS] = 1 + HD_FP_CHANGE_FENCE,
	[HD_MSG_SYNCED] = 1 + HD_FP_LEARN_DONE };

static void tell(struct hd_elastic *e, uint32_t worker, const struct hd_later_message *m)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_hub_tell(&e->hub, link_of(worker), m->id, m->step, m->bytes, m->len, &diag);

	if (err == HD_E_AGAIN)            /* it does not read its messages */
		hd_hub_drop(&e->hub, link_of(worker), HD_CLOSE_DROPPED, "its queue is full");
	else if (err != HD_E_PEERLOST)
		judge(e, err, &diag);
}

void hd_elastic_say_later(struct hd_elastic *e)
{
	const int64_t now_ns = hd_clock_now_ns(e->spec->clock);
	struct hd_later_message m;

	while (hd_later_take(&e->later, &m, now_ns))
		tell(e, HD_COORDINATOR, &m);
}

/* The coordinator waits for no seal: it writes down what it hears of. */
static bool keeps(struct hd_elastic *e, uint32_t worker, const struct hd_later_message *m)
{
	return worker == HD_COORDINATOR && m->id == HD_MSG_SEAL &&
		hd_later_keep(&e->later, m, hd_clock_now_ns(e->spec->clock));
}

ACT(send)
{
	size_t len = 0;
	struct hd_diag diag = { "" };

	if (before[a->msg->kind])
		(void)HD_FAILPOINT_AT((enum hd_failpoint)(before[a->msg->kind] - 1));
	enum hd_err err = hd_msg_encode(a->msg, e->room, HD_TELL_MAX, &len, &diag);

	if (err) {
		judge(e, err, &diag);
		return;
	}
	const struct hd_later_message m = { a->msg->kind == HD_MSG_SEAL ? a->msg->seal.step : 0,
		(uint32_t)a->msg->kind, (uint32_t)len, e->room };
	if (keeps(e, a->worker, &m))
		return;
	if (a->worker == HD_COORDINATOR)
		hd_elastic_say_later(e);
	tell(e, a->worker, &m);
}

static void connect_to(struct hd_elastic *e, uint32_t worker, const char *text)
{
	char transport[16], addr[HD_ADDR_CAP], one[HD_ELASTIC_ADDR];
	struct hd_diag diag = { "" };
	enum hd_err err = hd_elastic_address(hd_elastic_reach(text, !e->spec->dir || e->spec->far, one),
		transport, addr,
		&diag);

	if (!err)
		err = hd_hub_connect(&e->hub, link_of(worker), transport, addr, &diag);
	if (err && err != HD_E_EXISTS)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_LOST, .worker = worker,
			.why = HD_CLOSED, .text = "" });
}

ACT(connect) { connect_to(e, a->worker, a->text); }

void hd_elastic_call(struct hd_elastic *e)
{
	if (!hd_hub_is_up(&e->hub, HD_COORDINATOR_LINK))
		connect_to(e, HD_COORDINATOR, e->spec->coordinator);
}

ACT(call)
{
	(void)a;
	hd_elastic_call(e);
}

ACT(take_over)
{
	struct hd_diag diag = { "" };

	(void)a;
	(void)HD_FAILPOINT(CHANGE_TAKE_OVER);
	enum hd_err err = e->spec->take_over ? e->spec->take_over(e->spec->user, &diag) : HD_OK;
	if (err == HD_E_NOTFOUND) {
		snprintf(e->text, sizeof e->text, "%s", diag.text);
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_ENDED,
			.code = (uint32_t)hd_err_exit(HD_E_REFUSED), .text = e->text });
	} else if (err)
		fprintf(stderr, "no coordinator could be started: %s\n", diag.text);
}

ACT(admitted)
{
	assert(a->worker != HD_NOBODY && e->readmit == HD_NOBODY);
	e->readmit = a->worker;
	hd_recorder_worker_set(e->recorder, a->worker);
	hd_recorder_mark(e->recorder, HD_RECORDER_CONTROL, HD_RECORDED_ADMITTED, a->worker, 0);
	if (e->spec->admitted)
		e->spec->admitted(e->spec->user, a->worker);
	hd_hub_drop(&e->hub, HD_COORDINATOR_LINK, HD_CLOSE_DONE, "calling again under my id");
}

ACT(warm_up)
{
	(void)a;
	/* hd_worker_create() has warmed all there is */
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_WARMED_UP });
}

ACT(sync)
{
	hd_elastic_slots_forget(e);
	hd_elastic_sync(e, a->worker, a->step);
}
ACT(send_state) { hd_elastic_send_state(e, a->worker, a->flag); }

/* Devices may be in the middle of a long pass, behind which a member makes its part: before its first step of
 * that view in any case. Of the shape that it has nothing speaks against it, and none waits for that. Another
 * one may not fit, and a joiner is to be here first. */
ACT(prepare)
{
	const bool in_turn = e->opened.epoch && hd_view_same_shape(&e->opened.shape, &a->view->shape);
	const uint32_t epoch = a->view->epoch;
	struct hd_view *view = copy_of(e, a->view);

	if (!view)
		return;
	give(e, &(struct hd_command){ .kind = HD_COMMAND_PREPARE, .view = view });
	if (in_turn)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_PREPARED, .epoch = epoch });
}

ACT(decided) { hd_hub_decided(&e->hub, a->epoch); }

/* What members must agree on in an epoch follows from their coordinator's messages; the hash only says
 * which epoch of which job. */
ACT(epoch)
{
	struct { struct hd_hash job; uint32_t epoch, zero; } of = { e->task->job_hash, a->epoch, 0 };

	hd_hub_epoch(&e->hub, a->epoch, hd_hash(&of, sizeof of));
	hd_relay_epoch(&e->relay, a->epoch);
}

/* A plan is in the run's folder before a step of its view can commit: the checkpoint writer's part of
 * the step is queued behind RECORD. */
ACT(adopt)
{
	uint32_t self = hd_member_worker(e->member);

	hd_elastic_record_view(e, a->view);
	if (e->relay.has_view)
		hd_elastic_slots_view(e, &e->relay.view, a->view);
	hd_relay_view(&e->relay, a->view, self);
	/* the lists of a step that goes on are of no view */
	if (!e->spec->dir || hd_view_writer(a->view) != self || hd_view_is_doubled(a->view))
		return;
	struct hd_view *view = copy_of(e, a->view);
	if (view)
		give(e, &(struct hd_command){ .kind = HD_COMMAND_RECORD, .view = view });
}

static void open_exchange(struct hd_elastic *e)
{
	struct hd_diag diag = { "" };

	assert(!e->open_pending);
	judge(e, hd_relay_open(&e->relay, hd_member_exchange(e->member), &diag), &diag);
}

/* Once a view: what was asked for by name does not fit it. A step that is restarted says nothing of that. */
static void say_direct(struct hd_elastic *e, const struct hd_view *now)
{
	const struct hd_exchange *x = hd_member_exchange(e->member);
	char text[160];

	if (!x->pairs || x->paired || x->again || now->nmembers < 2 || e->direct_epoch == now->epoch)
		return;
	e->direct_epoch = now->epoch;
	snprintf(text, sizeof text,
		"comm.primitive: halving-doubling wants 2, 4, 8, .. workers with aligned equal shares "
		"of virtual nodes; partial sums of these %u go direct", now->nmembers);
	hd_elastic_note(e, "warning", text);
}

/* Where sums and roots lie is known once the compute thread has adopted the view. If the map changes,
 * the exchange opens then. */
ACT(begin)
{
	const struct hd_view *now = hd_member_view(e->member);
	struct hd_view *view = copy_of(e, now);

	(void)HD_FAILPOINT(GATE_PASSED);
	e->step = a->step;
	e->metrics_said = 0;
	e->step_from_ns = hd_clock_now_ns(e->spec->clock);
	say_direct(e, now);
	hd_elastic_promoted(e);
	hd_elastic_slots_void(e);
	if (view)
		give(e, &(struct hd_command){ .kind = HD_COMMAND_BEGIN, .step = a->step, .view = view,
			.ahead = a->ahead, .goes_on = a->goes_on, .flag = a->fewer });
	e->begins_open++;
	e->open_pending |= !e->opened.epoch || !hd_view_same_map(&e->opened, now);
	e->opened = *now;
	if (!e->open_pending)
		open_exchange(e);
}

/* The compute thread may be folding from the addresses that are about to change. Folds are short and
 * queued before anything long. */
ACT(again)
{
	int64_t until = hd_clock_now_ns(e->spec->clock) + HD_FOLDS_MOST_NS;
	bool pending = e->open_pending;

	(void)a;
	hd_elastic_slots_void(e);
	hd_elastic_results(e);
	while (e->folds_open && hd_clock_now_ns(e->spec->clock) < until) {
		hd_lock_give(&e->turn);           /* the compute thread may wait for the turn */
		hd_clock_wait_until(e->spec->clock, hd_clock_now_ns(e->spec->clock) + HD_FOLD_LOOK_NS);
		hd_lock_take(&e->turn);
		hd_elastic_results(e);
	}
	if (e->folds_open)
		hd_elastic_fail(e, HD_E_BUG, &(struct hd_diag){ "a fold did not end within a minute" });
	/* else the result of BEGIN opens it, which may have been one of these */
	else if (!pending)
		open_exchange(e);
}

ACT(stop)
{
	give(e, &(struct hd_command){ .kind = HD_COMMAND_STOP, .step = a->step,
		.round = e->round });
}

/* The exchange opens when the compute thread has the lists of the rest: letters and roots are theirs. */
ACT(go_on)
{
	const uint32_t n = a->view->nranks, cells = a->view->shape.nstages * e->task->job->nvns;
	struct hd_view *view = copy_of(e, a->view);
	uint32_t *rest = hd_alloc(n * sizeof *rest + cells);
	uint32_t at = 0;

	if (!rest)
		hd_elastic_fail(e, HD_E_NOMEM, &(struct hd_diag){ "no memory for the rest of a step" });
	if (!view || !rest) {
		hd_free(view);
		hd_free(rest);
		return;
	}
	memcpy(rest, a->next, n * sizeof *rest);
	for (uint32_t i = 0; i < a->narrived; i++)
		for (uint32_t k = 0; k < a->arrived[i].n && at < cells; k++)
			((uint8_t *)(rest + n))[at++] = (uint8_t)a->arrived[i].first;
	memset((uint8_t *)(rest + n) + at, 0, cells - at);
	e->round++;
	e->begins_open++;
	e->open_pending = true;
	e->opened = *a->view;
	give(e, &(struct hd_command){ .kind = HD_COMMAND_REST, .step = a->step, .view = view,
		.rest = rest, .round = e->round });
}

ACT(compute)
{
	struct hd_vrange *range = hd_alloc(a->nranges * sizeof *range);

	if (!range) {
		hd_elastic_fail(e, HD_E_NOMEM, &(struct hd_diag){ "no memory for a pass" });
		return;
	}
	memcpy(range, a->range, a->nranges * sizeof *range);
	give(e, &(struct hd_command){ .kind = HD_COMMAND_COMPUTE, .step = a->step, .pass = a->pass,
		.stage = a->stage, .range = range,
		.nranges = a->nranges,
		.round = e->round, .flag = !hd_exchange_any_sum(hd_member_exchange(e->member)) });
}

ACT(roots)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(EXCHANGE_ROOTS);
	judge(e, hd_relay_partial(&e->relay, a->pass, a->bucket, a->worker, &diag), &diag);
}

ACT(leaves)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(EXCHANGE_LEAVES);
	judge(e, hd_relay_metrics(&e->relay, a->pass, &diag), &diag);
}

/* Summing a few buckets costs the I/O thread little, and a core may be idle. Many at once would keep it
 * from its peers. */
bool hd_elastic_background_reduce(struct hd_elastic *e, const struct hd_dist_fold *fold)
{
	struct hd_diag diag = { "" };
	bool taken = false;

	if (e->begins_open || e->nqueued > HD_ELASTIC_BUSY_QUEUE)
		return false;
	judge(e, hd_dist_aside(e->worker, e->relay.root, e->relay.stage, e->relay.nroots, fold, &taken,
		&diag), &diag);
	return taken;
}

ACT(fold)
{
	const struct hd_dist_fold fold = { a->bucket, hd_relay_operands(&e->relay, a->bucket) };

	if (hd_elastic_background_reduce(e, &fold)) {
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_FOLDED, .step = a->step,
			.bucket = a->bucket });
		return;
	}
	give(e, &(struct hd_command){ .kind = HD_COMMAND_FOLD, .step = a->step, .bucket = a->bucket,
		.operand = fold.operand });
	e->folds_open++;
}

ACT(publish)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(EXCHANGE_SUM);
	judge(e, hd_relay_sum(&e->relay, a->bucket, a->mask, &diag), &diag);
}

ACT(table)
{
	struct hd_diag diag = { "" };

	judge(e, hd_relay_table(&e->relay, a->mask, &diag), &diag);
}

ACT(norm)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(NORM_BEFORE);
	judge(e, hd_relay_norm(&e->relay, a->bucket, a->mask, &diag), &diag);
}

ACT(fetch) { hd_elastic_slots_fetch(e, a->step, a->flag); }

/* Does another worker hold some of them? */
static bool own_chains(struct hd_elastic *e)
{
	const struct hd_exchange *x = hd_member_exchange(e->member);
	bool shared = false;

	for (uint32_t b = 0; b < e->nbuckets && e->partial; b++) {
		e->slots.own[b] = hd_exchange_chained(x, b);
		shared |= e->slots.own[b] && (x->chain[b] & (x->chain[b] - 1));
	}
	return shared;
}

ACT(update)
{
	(void)own_chains(e);
	give(e, &(struct hd_command){ .kind = HD_COMMAND_UPDATE, .step = a->step, .own = e->slots.own });
}

ACT(parm)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(PARAMS_BEFORE);
	judge(e, hd_relay_parm(&e->relay, a->bucket, a->mask, &diag), &diag);
}

ACT(ratio)
{
	struct hd_diag diag = { "" };

	(void)HD_FAILPOINT(RATIO_BEFORE);
	judge(e, hd_relay_ratio(&e->relay, a->bucket, a->mask, &diag), &diag);
}

ACT(finish)
{
	const bool shared = own_chains(e);

	give(e, &(struct hd_command){ .kind = HD_COMMAND_FINISH, .step = a->step, .own = e->slots.own,
		.flag = shared });
}

ACT(boundary)
{
	give(e, &(struct hd_command){ .kind = HD_COMMAND_BOUNDARY, .step = a->step, .flag = a->flag,
		.final = a->final });
	if (!a->flag)
		hd_elastic_slots_unsaved(e);
}

/* After a loss its epoch has ended: no pass waits for mail any more. A halted job has no such end, and the
 * one that halted before the step sends nothing. */
ACT(cancel)
{
	e->round++;
	if (hd_member_state(e->member) == HD_HALTED)
		hd_dist_fence(e->worker, hd_member_epoch(e->member) + 1);
	/* a BEGIN that is still with the compute thread opens nothing any more; the next one does */
	e->open_pending = false;
	e->opened.epoch = 0;
	give(e, &(struct hd_command){ .kind = HD_COMMAND_CANCEL, .step = a->step });
}

ACT(exit)
{
	e->exit_code = a->code;
	snprintf(e->exit_text, sizeof e->exit_text, "%s", a->text ? a->text : "");
	e->leaving = true;
}

ACT(fenced)
{
	snprintf(e->exit_text, sizeof e->exit_text, "%s", a->text ? a->text : "");
	e->leaving = e->fenced = true;
}

static void (*const act[HD_DO_NKINDS])(struct hd_elastic *e, const struct hd_member_action *a) = {
	[HD_DO_SEND] = do_send, [HD_DO_CONNECT] = do_connect, [HD_DO_CALL] = do_call,
		[HD_DO_TAKE_OVER] = do_take_over,
	[HD_DO_ADMITTED] = do_admitted, [HD_DO_WARM_UP] = do_warm_up, [HD_DO_SYNC] = do_sync,
	[HD_DO_SEND_STATE] = do_send_state, [HD_DO_PREPARE] = do_prepare,
	[HD_DO_DECIDED] = do_decided, [HD_DO_EPOCH] = do_epoch, [HD_DO_ADOPT] = do_adopt,
	[HD_DO_STOP] = do_stop, [HD_DO_GO_ON] = do_go_on, [HD_DO_BEGIN] = do_begin, [HD_DO_AGAIN] = do_again,
	[HD_DO_COMPUTE] = do_compute, [HD_DO_ROOTS] = do_roots, [HD_DO_LEAVES] = do_leaves,
	[HD_DO_FOLD] = do_fold, [HD_DO_PUBLISH] = do_publish,
	[HD_DO_TABLE] = do_table, [HD_DO_NORM] = do_norm, [HD_DO_FETCH] = do_fetch,
	[HD_DO_UPDATE] = do_update, [HD_DO_PARM] = do_parm, [HD_DO_RATIO] = do_ratio,
	[HD_DO_FINISH] = do_finish, [HD_DO_BOUNDARY] = do_boundary, [HD_DO_CANCEL] = do_cancel,
	[HD_DO_EXIT] = do_exit,
	[HD_DO_FENCED] = do_fenced,
};

/* Digests of slots go with the parameters, and are there after UPDATE. */
static uint8_t brings(const struct hd_elastic *e, const struct hd_exchange *x, uint32_t b)
{
	const bool digests = e->relay.digest_every && (x->step + 1) % e->relay.digest_every == 0;

	if (!hd_exchange_chained(x, b))
		return 0;
	return !digests && hd_exchange_parm_source(x, b) == x->me && hd_exchange_parm_to(x, b) ?
		HD_DIST_SENDS : HD_DIST_BRINGS;
}

/* What runs ahead needs them before the step is finished: before what follows of them is carried out. */
static void say_metrics(struct hd_elastic *e)
{
	const struct hd_exchange *x = hd_member_exchange(e->member);

	if (!x->table || x->nmembers < 2 || x->step != e->step || e->metrics_said == x->step + 1 ||
		!(hd_dist_wants(e->worker) & HD_DIST_WANTS_METRICS))
		return;
	e->metrics_said = x->step + 1;
	for (uint32_t b = 0; b < e->nbuckets && e->partial; b++)
		e->slots.brings[b] = brings(e, x, b);
	give(e, &(struct hd_command){ .kind = HD_COMMAND_METRICS, .step = x->step, .round = e->round,
		.own = e->slots.brings });
}

/* What others wait for need not wait for the end of the pass (ADR 245). */
static void bring_early(struct hd_elastic *e, const struct hd_member_event *event)
{
	const struct hd_exchange *x = hd_member_exchange(e->member);
	struct hd_diag diag = { "" };
	bool brought = false;

	if ((event->kind != HD_IN_FOLDED && event->kind != HD_IN_SQUARED) || event->step != x->step ||
		x->step != e->step || e->begins_open || e->nqueued > HD_ELASTIC_BUSY_QUEUE ||
		!hd_member_may_early(e->member, event->bucket) ||
		brings(e, x, event->bucket) != HD_DIST_SENDS)
		return;
	judge(e, hd_dist_aside_bring(e->worker, event->bucket, &brought, &diag), &diag);
	if (!brought)
		return;
	(void)HD_FAILPOINT_KEY(PARAMS_EARLY, atomic_load(&e->self));
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_EARLY, .step = x->step,
		.bucket = event->bucket });
}

static void step(struct hd_elastic *e, const struct hd_member_event *event)
{
	struct hd_member_actions done = hd_member_step(e->member, event, hd_clock_now_ns(e->spec->clock));

	say_metrics(e);
	for (size_t i = 0; i < done.n; i++) {
		const struct hd_member_action *a = &done.at[i];
		assert(!(HD_MEMBER_OF_EXCHANGE >> a->kind & 1) ||
			a->step == hd_member_exchange(e->member)->step);
		act[a->kind](e, a);
	}
	bring_early(e, event);
}

void hd_elastic_feed(struct hd_elastic *e, const struct hd_member_event *event)
{
	if (e->nqueued == HD_ELASTIC_EVENTS) {
		hd_elastic_fail(e, HD_E_BUG, &(struct hd_diag){ "more events wait than a step can have" });
		return;
	}
	e->queue[(e->first + e->nqueued++) % HD_ELASTIC_EVENTS] = *event;
	if (e->stepping)
		return;
	e->stepping = true;
	while (e->nqueued && !e->leaving) {
		const struct hd_member_event next = e->queue[e->first];
		e->first = (e->first + 1) % HD_ELASTIC_EVENTS;
		e->nqueued--;
		step(e, &next);
	}
	e->stepping = false;
}

/* ---- results of the compute thread ---- */

static struct hd_step_news news_of(const struct hd_command_done *done)
{
	const struct hd_step_record *r = &done->record;
	struct hd_step_news news = { .loss_sum = r->loss_sum, .weight = r->weight, .correct = r->correct,
		.gnorm = r->gnorm, .lr = (double)r->lr,
		.samples = r->samples, .data_epoch = r->epoch, .step_ns = done->took_ns,
		.wait_ns = done->waited_ns,
		.compute_ns = done->computed_ns, .redundant_ns = r->redundant_ns,
		.stalled_ns = r->stalled_ns, .read_wait_ns = r->wait_data_ns,
		.redone = done->command.number,
		.empty = r->empty, .skipped = r->skipped, .has_digest = r->has_digest, .digest = r->digest,
		.nterms = r->nterms };

	_Static_assert(sizeof news.term_sum == sizeof r->term_sum, "as many terms");
	memcpy(news.term_sum, r->term_sum, sizeof news.term_sum);
	return news;
}

/* What went out since it was asked last: what an attempt sent that was cancelled counts, too. */
static void sent_since(struct hd_elastic *e, struct hd_step_news *news)
{
	const struct hd_hub_stats was = e->sent;

	hd_hub_stats(&e->hub, &e->sent);
	news->bytes_out = e->sent.bytes_sent - was.bytes_sent;
	news->preempted = e->sent.preempted - was.preempted;
	news->inverted = e->sent.inverted - was.inverted;
}

void hd_elastic_say_refused(struct hd_elastic *e)
{
	char room[sizeof e->refused.text * 2 + 40];
	struct hd_json_writer w;
	struct hd_text body;

	if (!e->refused.text[0])
		return;
	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", e->refused.text);
	hd_json_close(&w);
	e->refused.text[0] = '\0';
	step(e, &(struct hd_member_event){ .kind = HD_IN_NOTE, .name = HD_NOTE_REFUSED,
		.text = body.full ? "{}" : room });
}

/* What stops a step is every worker's failure; all else is this process's own. */
static void failed(struct hd_elastic *e, const struct hd_command_done *done)
{
	bool step = done->command.kind == HD_COMMAND_FINISH || done->command.kind == HD_COMMAND_UPDATE;

	if (step && (done->err == HD_E_DIVERGED || done->for_all)) {
		snprintf(e->text, sizeof e->text, "%s", done->diag.text);
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_FAILED,
			.step = done->command.step,
			.code = (uint32_t)hd_err_exit(done->err),
			.text = e->text });
		return;
	}
	if (done->refused && !e->refused.text[0])
		e->refused = done->diag;
	hd_elastic_fail(e, done->err, &done->diag);
}

/* This worker stays as it is; another view follows, or has come: then what is fetched is that one's. */
static void unfit(struct hd_elastic *e, const struct hd_command_done *done)
{
	e->unfit_why = done->diag;
	if (done->command.kind == HD_COMMAND_BEGIN && !e->begins_open)
		hd_elastic_slots_void(e);         /* what its part would read is not fetched */
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_UNFIT,
		.epoch = done->command.view->epoch, .text = e->unfit_why.text });
}

/* A command after which the machine hears of one thing of its step alone. */
static void step_event(struct hd_elastic *e, enum hd_member_event_kind kind, const struct hd_command *d)
{
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = kind, .step = d->step, .bucket = d->bucket });
}

static void finished(struct hd_elastic *e, const struct hd_command_done *done)
{
	struct hd_step_news *news = &e->news[e->nnews++ % HD_ELASTIC_NEWS];

	*news = news_of(done);
	sent_since(e, news);
	e->step_took_ns = (int64_t)done->took_ns;
	hd_elastic_spent_say(e, done->command.step);
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_UPDATED, .step = done->command.step,
		.news = news, .sum_digest = done->sum_digest, .state_digest = done->state_digest,
		.held = done->held });
}

static void at_boundary(struct hd_elastic *e, const struct hd_command_done *done)
{
	const struct hd_command *d = &done->command;

	if (done->lacks) {
		hd_elastic_slots_gather(e, d);
		return;
	}
	if (d->gathered)
		hd_elastic_slots_saved(e);
	hd_elastic_answer(e);
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_READY, .step = d->step,
		.halt = done->halt });
}

static void restored(struct hd_elastic *e, const struct hd_command_done *done)
{
	if (done->rejoin)
		e->leaving = e->fenced = true;
	else
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = done->step });
}

static void begun(struct hd_elastic *e, const struct hd_command_done *done)
{
	assert(e->begins_open > 0);
	e->begins_open--;
	if (done->unfit) {
		unfit(e, done);
		return;
	}
	if (done->stuck && done->command.round == e->round) {
		e->open_pending = false;
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_STUCK,
			.step = done->command.step });
		return;
	}
	/* of several the last has the view in force */
	if (e->open_pending && !e->begins_open) {
		e->open_pending = false;
		open_exchange(e);
	}
}

static void became(struct hd_elastic *e, const struct hd_command_done *done)
{
	const struct hd_command *d = &done->command;

	switch (d->kind) {
	case HD_COMMAND_PREPARE:
		if (done->unfit)
			unfit(e, done);
		else
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_PREPARED,
				.epoch = d->view->epoch });
		break;
	case HD_COMMAND_COMPUTE:
		if (d->round == e->round)
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = d->step,
				.pass = d->pass });
		break;
	case HD_COMMAND_FOLD:     step_event(e, HD_IN_FOLDED, d); break;
	case HD_COMMAND_ARRIVED:  step_event(e, HD_IN_SQUARED, d); break;
	case HD_COMMAND_FINISH:   finished(e, done); break;
	case HD_COMMAND_UPDATE:
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_UPDATED_OWN, .step = d->step });
		break;
	case HD_COMMAND_BOUNDARY: at_boundary(e, done); break;
	case HD_COMMAND_RESTORE:  restored(e, done); break;
	case HD_COMMAND_CHUNK:    hd_elastic_chunk_done(e, done); break;
	case HD_COMMAND_TRANSFER: hd_elastic_transfer_done(e, done); break;
	case HD_COMMAND_STOP:     hd_elastic_stopped(e, d); break;
	case HD_COMMAND_BEGIN: case HD_COMMAND_REST: begun(e, done); break;
	case HD_COMMAND_METRICS: case HD_COMMAND_READABLE: case HD_COMMAND_CANCEL: case HD_COMMAND_RECORD:
	case HD_COMMAND_QUIT: case HD_COMMAND_NKINDS:
		break;                    /* what follows is queued behind them */
	}
}

/* Roots that are final while devices still compute. Only with the exchange open and the machine idle:
 * all else comes first. */
static void finals(struct hd_elastic *e)
{
	struct hd_finals_pass of;
	const uint64_t *bit = e->stepping || e->open_pending ? NULL : hd_finals_fetch(&e->finals, e->round,
		&of);

	for (uint32_t b = 0; bit && b < e->nbuckets && of.round == e->round; b++)
		if (bit[b / 64] >> b % 64 & 1)
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_FINAL, .step = of.step,
				.pass = of.pass, .bucket = b });
}

/* New parameters that others wait for, likewise. */
static void early(struct hd_elastic *e, const uint64_t *bit, const struct hd_finals_pass *of)
{
	for (uint32_t b = 0; bit && b < e->nbuckets && of->round == e->round; b++)
		if (bit[b / 64] >> b % 64 & 1)
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_EARLY, .step = of->step,
				.bucket = b });
}

void hd_elastic_results(struct hd_elastic *e)
{
	struct hd_command_done done;
	struct hd_finals_pass of;
	/* before the results: that of the FOLD which made the sum is there by then, and comes first */
	const uint64_t *bit = e->stepping || e->open_pending ? NULL : hd_finals_fetch(&e->early, e->round,
		&of);

	while (hd_commands_result(&e->commands, &done)) {
		assert(e->folds_open || done.command.kind != HD_COMMAND_FOLD);
		e->folds_open -= done.command.kind == HD_COMMAND_FOLD;
		/* a pass without its mail: the step was fenced, and its CANCEL comes */
		const bool stale = done.err == HD_E_STALE && done.command.kind == HD_COMMAND_COMPUTE;
		if (done.err && !stale && done.command.kind != HD_COMMAND_CHUNK)
			failed(e, &done);
		else if (!stale)
			became(e, &done);
		hd_free((void *)(uintptr_t)done.command.view);
		hd_free((void *)(uintptr_t)done.command.range);
		hd_free((void *)(uintptr_t)done.command.rest);
	}
	finals(e);
	early(e, bit, &of);
}
