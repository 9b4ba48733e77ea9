#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"
#include "protocol/ranks.h"
#include "protocol/zones.h"

/* What is wanted is a function of the record (target, draining workers) and of the workers present. Each
 * event that changes either calls hd_co_plan(), which starts what is missing. Nothing is queued, so
 * requests are coalesced. */

static const struct hd_stage_buckets *buckets_of(const struct hd_coordinator *co,
	const struct hd_view_shape *shape)
{
	return co->config.of_shape && shape->nstages ? co->config.of_shape(co->config.of_shape_self, shape) :
		NULL;
}

/* Zones of a view's members. A coordinator that took over knows that of each as it calls. */
static uint32_t zones_of(struct hd_coordinator *co, const struct hd_view *view, uint32_t *zone)
{
	const char *name[HD_MAX_MEMBERS];

	for (uint32_t m = 0; m < view->nmembers; m++) {
		const struct hd_co_worker *w = hd_co_find(co, view->member[m]);
		name[m] = w ? w->zone : "";
	}
	return hd_zones_number(name, view->nmembers, zone);
}

/* Of a view in stages: where the fewest bytes move, and the loss of a zone takes least. */
static void settle(struct hd_coordinator *co, struct hd_view *view, const uint32_t *nranks, uint64_t going)
{
	const struct hd_stage_buckets *buckets = buckets_of(co, &view->shape);
	struct hd_lacks lacks;
	uint32_t zone[HD_MAX_MEMBERS];

	co->moves = co->movers = 0;
	if (!buckets)
		return;
	hd_lacks_make(&lacks, &view->shape, buckets, co->config.bucket_bytes, co->held, view->nmembers);
	hd_ranks_settle(view, nranks, &lacks);
	struct hd_rank_zones zones = { nranks, zone, view->nmembers, zones_of(co, view, zone) };
	co->broken |= hd_ranks_part(view, &zones, &lacks, buckets->shadows, &co->out, NULL) != HD_OK;
	for (uint32_t m = 0; m < view->nmembers; m++) {
		const struct hd_co_worker *w = hd_co_find(co, view->member[m]);
		going |= (uint64_t)(w && w->draining) << m;
	}
	hd_ranks_follow(view, buckets, co->config.bucket_bytes, co->held, going);
	co->moves = hd_view_moves(view, buckets, co->config.bucket_bytes, co->held, &co->movers);
}

/* As the job has it for so many pipelines; what is no share is none of it. */
static void deal(const struct hd_coordinator *co, struct hd_view *view)
{
	const uint32_t npipes = hd_view_pipes(view);
	uint32_t share[HD_VIEW_RANKS];
	uint64_t all = 0;

	if (!co->config.shares || hd_view_has_copies(&view->shape) ||
		!co->config.shares(co->config.of_shape_self, &view->shape, npipes, share))
		return;
	for (uint32_t k = 0; k < npipes; k++)
		all += share[k];
	if (all == co->config.nvns)
		hd_view_deal_pipes(view, share);
}

void hd_co_note_moves(struct hd_coordinator *co)
{
	char of[160] = "", one[16];
	size_t len = 0;

	for (uint32_t m = 0; m < co->view.nmembers && co->moves; m++) {
		if (!(co->movers >> m & 1))
			continue;
		snprintf(one, sizeof one, " %u", co->view.member[m]);
		hd_co_list(of, sizeof of, &len, one);
	}
	if (co->moves)
		hd_co_note(co, "moves", HD_NOBODY, "%llu bytes of state move, to worker%s%s",
			(unsigned long long)co->moves, co->movers & (co->movers - 1) ? "s" : "", of);
	co->moves = 0;
}

void hd_co_list(char *out, size_t cap, size_t *len, const char *word)
{
	static const char more[] = " ...";
	const size_t n = strlen(word);

	if (*len + sizeof more > cap)                     /* it says so already */
		return;
	if (*len + n + sizeof more <= cap) {
		memcpy(out + *len, word, n + 1);
		*len += n;
	} else {
		memcpy(out + *len, more, sizeof more);
		*len = cap;
	}
}

void hd_co_note_standing(struct hd_coordinator *co)
{
	const struct hd_view *view = &co->view;
	char of[240] = "", one[48];
	size_t len = 0;
	uint32_t n = 0;

	for (uint32_t m = 0; m < view->nmembers && view->shape.nstages; m++) {
		const uint32_t stage = hd_view_follows(view, view->member[m]);
		if (hd_view_stages(view, view->member[m]))
			continue;
		if (stage == HD_NOBODY)
			snprintf(one, sizeof one, " %u", view->member[m]);
		else
			snprintf(one, sizeof one, " %u (follows stage %u)", view->member[m], stage);
		hd_co_list(of, sizeof of, &len, one);
		n++;
	}
	if (!n)
		return;
	if (hd_view_pipes(view) >= co->config.pipes)
		hd_co_note(co, "stands_by", HD_NOBODY,
			"worker%s%s: the job has at most %u pipeline%s (parallel.replicas, virtual nodes)",
			n > 1 ? "s" : "", of, co->config.pipes, co->config.pipes > 1 ? "s" : "");
	else
		hd_co_note(co, "stands_by", HD_NOBODY,
			"worker%s%s: what is left over is no other pipeline of %u rank%s",
			n > 1 ? "s" : "", of, view->shape.width, view->shape.width == 1 ? "" : "s");
}

/* " 4 5" */
static void name_ids(char *out, size_t cap, const uint32_t *id, uint32_t n)
{
	size_t len = 0;
	char one[16];

	*out = '\0';
	for (uint32_t i = 0; i < n; i++) {
		snprintf(one, sizeof one, " %u", id[i]);
		hd_co_list(out, cap, &len, one);
	}
}

struct hd_co_standing hd_co_standing_in(const struct hd_view *before, const struct hd_view *next)
{
	uint32_t gone[HD_MAX_MEMBERS], in[HD_MAX_MEMBERS], ngone = 0, nin = 0;
	struct hd_co_standing said = { "" };
	char lost[80], stood[80];

	if (!before->shape.nstages || !next->shape.nstages)
		return said;
	for (uint32_t m = 0; m < before->nmembers; m++) {
		const uint32_t worker = before->member[m];
		const bool ran = hd_view_stages(before, worker), runs = hd_view_stages(next, worker);
		if (ran && !hd_view_has(next, worker))
			gone[ngone++] = worker;
		if (!ran && runs)
			in[nin++] = worker;
	}
	if (!ngone || !nin)
		return said;
	name_ids(lost, sizeof lost, gone, ngone);
	name_ids(stood, sizeof stood, in, nin);
	snprintf(said.text, sizeof said.text, "worker%s%s, which stood by, take%s the place of worker%s%s",
		nin > 1 ? "s" : "", stood, nin > 1 ? "" : "s", ngone > 1 ? "s" : "", lost);
	return said;
}

static uint32_t count(uint64_t members) { return (uint32_t)__builtin_popcountll(members); }

/* Between a loss and the view after it the view in force still counts the dead as holders. */
static bool knows_holders(const struct hd_coordinator *co)
{
	return co->has_view && co->phase != HD_CO_FENCING && co->phase != HD_CO_ASKING &&
		co->phase != HD_CO_VIEWING;
}

int32_t hd_co_single(const struct hd_coordinator *co)
{
	const bool holds = !co->view.shape.nstages, settled = !holds && co->committed > co->view_first;
	const struct hd_stage_buckets *buckets = buckets_of(co, holds ? &co->config.shape : &co->view.shape);
	int32_t n = 0;

	if (!buckets || !(buckets->shadows || buckets->follows))
		return 0;
	if (!knows_holders(co))
		return -1;
	for (uint32_t s = 0; s < buckets->nstages; s++) {
		bool two = !settled || count(hd_view_keepers(&co->view, buckets, s)) > 1;
		for (uint32_t b = 0; b < buckets->n && !settled; b++)
			two &= !(buckets->at[b].readers >> s & 1) || count(co->held[b]) > 1;
		n += !two;
	}
	return n;
}

/* Planned: what the members of the view in force hold under it, for those of the next. */
static void hold_as_before(struct hd_coordinator *co, const struct hd_view *next)
{
	const struct hd_stage_buckets *buckets = buckets_of(co, &co->view.shape);
	uint64_t stage[HD_STAGE_BITS] = { 0 };

	if (!buckets)
		return;
	for (uint32_t s = 0; s < co->view.shape.nstages; s++)
		for (uint32_t m = 0; m < next->nmembers; m++)
			stage[s] |= (hd_view_kept(&co->view, buckets, next->member[m]) >> s & 1) << m;
	for (uint32_t b = 0; b < co->config.nbuckets; b++) {
		co->held[b] = 0;
		for (uint64_t of = buckets->at[b].readers; of; of &= of - 1)
			co->held[b] |= stage[__builtin_ctzll(of)];
	}
}

/* Ranks without members that are to leave, if the others are enough for a pipeline: so their stages move, and
 * they can leave with the change after this. */
static void leave_out(uint32_t *nranks, uint32_t n, uint64_t going, uint32_t width)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < n; i++)
		others += going >> i & 1 ? 0 : nranks[i];
	for (uint32_t i = 0; i < n && others >= width; i++)
		nranks[i] = going >> i & 1 ? 0 : nranks[i];
}

bool hd_co_fill_map(struct hd_coordinator *co, struct hd_view *view, const struct hd_view_shape *shape,
	uint64_t going, uint32_t least)
{
	struct hd_member_info info[HD_MAX_MEMBERS];
	uint32_t ndevices[HD_MAX_MEMBERS], nranks[HD_MAX_MEMBERS], member[HD_MAX_MEMBERS];
	struct hd_view planned = *view;

	for (uint32_t i = 0; i < view->nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, view->member[i]);
		info[i] = (struct hd_member_info){ view->member[i], w ? w->ndevices : 1, w ? w->vn_ps : 0,
			w ? w->memory : 0, w ? w->host : "" };
		ndevices[i] = info[i].ndevices;
		nranks[i] = ndevices[i] / hd_view_each(shape);
		member[i] = view->member[i];
	}
	if (shape->nstages)
		leave_out(nranks, view->nmembers, going, shape->width * least);
	if (shape->nstages && hd_view_staged(view, view->epoch, member, nranks, view->nmembers,
		co->config.nvns, shape, co->config.pipes) && hd_view_pipes(view) >= least) {
		deal(co, view);
		settle(co, view, nranks, going);
		return true;
	}
	if (!co->config.shape.nstages && co->config.plan && co->config.plan(co->config.plan_self, &planned,
		info, view->nmembers) &&
		planned.nmembers == view->nmembers &&
	    planned.epoch == view->epoch && !memcmp(planned.member, view->member,
	    view->nmembers * sizeof *view->member) &&
	    !hd_view_verify(&planned, co->config.nvns, NULL)) {
		*view = planned;
		return true;
	}
	hd_view_even(view, view->epoch, member, ndevices, view->nmembers, co->config.nvns);
	return !co->config.shape.nstages;
}

void hd_co_void(struct hd_coordinator *co)
{
	if (co->phase < HD_CO_NUMBERING || co->phase > HD_CO_DECIDED)
		return;
	hd_co_note(co, "void", HD_NOBODY, "the change to epoch %u", co->next.epoch);
	assert(co->has_view);
	co->phase = HD_CO_IDLE;
	co->phase_serial = 0;
	for (uint32_t i = 0; i < co->nplaces; i++)
		co->worker[i].prepared = false;
}

/* ---- a planned change ---- */

static void say_prepare(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_PREPARE);

	assert(co->phase == HD_CO_PREPARING || co->phase == HD_CO_DECIDED);     /* the epoch is stored */
	if (msg)
		msg->prepare = (struct hd_msg_prepare){ .next = co->next.epoch,
			.nold = co->view.nmembers, .old = co->view.member,
			.nmember = co->next.nmembers, .member = co->next.member,
			.nrank = hd_view_named(&co->next), .rank = co->next.rank };
	if (msg && co->config.shape.nstages) {
		struct hd_msg_prepare *p = &msg->prepare;
		p->width = co->next.shape.width;
		p->old_width = co->view.shape.width;
		p->schedule = co->next.shape.schedule;
		p->old_schedule = co->view.shape.schedule;
		p->way = hd_view_way(&co->next.shape);
		p->old_way = hd_view_way(&co->view.shape);
		p->nold_rank = hd_view_named(&co->view);
		p->old_rank = co->view.rank;
		p->place = hd_co_places(co, &co->next, &p->nplace);
		p->old_place = hd_co_places(co, &co->view, &p->nold_place);
		p->first = co->next.shape.first;
		p->nfirst = hd_view_nfirst(&co->next.shape);
		p->old_first = co->view.shape.first;
		p->nold_first = hd_view_nfirst(&co->view.shape);
	}
	hd_co_send(co, w, msg);
}

static void say_decide(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_DECIDE);

	assert(co->phase == HD_CO_DECIDED);               /* the decision is stored */
	if (msg)
		msg->decided.next = co->next.epoch;
	hd_co_send(co, w, msg);
}

static bool concerned(const struct hd_coordinator *co, const struct hd_co_worker *w)
{
	return hd_view_has(&co->view, w->worker) || hd_view_has(&co->next, w->worker);
}

static void add_member(struct hd_view *view, uint32_t worker)
{
	uint32_t at = view->nmembers++;

	assert(at < HD_MAX_MEMBERS && worker != HD_NOBODY);
	for (; at > 0 && view->member[at - 1] > worker; at--)
		view->member[at] = view->member[at - 1];
	view->member[at] = worker;
}

/* Sharded state: all holders of a bucket but one may leave at a time. Of those that are to leave, the
 * oldest stay for now. */
static void keep_holders(struct hd_coordinator *co, struct hd_view *next)
{
	uint32_t copies = co->config.copies < co->view.nmembers ? co->config.copies : co->view.nmembers,
		gone = 0;

	for (uint32_t i = 0; i < co->view.nmembers; i++)
		gone += !hd_view_has(next, co->view.member[i]);
	for (uint32_t i = 0; i < co->view.nmembers && copies && gone >= copies &&
		next->nmembers < HD_MAX_MEMBERS; i++) {
		const struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (hd_view_has(next, co->view.member[i]) || !w || w->state != HD_W_MEMBER)
			continue;
		add_member(next, co->view.member[i]);
		gone--;
	}
}

/* Stages: one holder of each stays, if only one that shadows or follows it, or the state would be lost. Of
 * those that are to leave the oldest. */
static void keep_stages(struct hd_coordinator *co, struct hd_view *next)
{
	const struct hd_stage_buckets *buckets = buckets_of(co, &co->view.shape);

	for (uint32_t s = 0; s < co->view.shape.nstages; s++) {
		const uint64_t holders = buckets ? hd_view_keepers(&co->view, buckets, s) :
			hd_view_holders(&co->view, s);
		uint64_t stay = 0;
		uint32_t first = HD_NOBODY;
		for (uint32_t i = 0; i < co->view.nmembers; i++) {
			const struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
			if (!(holders >> i & 1))
				continue;
			stay |= (uint64_t)hd_view_has(next, co->view.member[i]) << i;
			if (first == HD_NOBODY && w && w->state == HD_W_MEMBER)
				first = i;
		}
		if (!stay && first != HD_NOBODY && next->nmembers < HD_MAX_MEMBERS)
			add_member(next, co->view.member[first]);
	}
}

static void add_members_that_stay(struct hd_coordinator *co, struct hd_view *next, bool being_replaced,
	uint32_t n[2])
{
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (w && w->state == HD_W_MEMBER && !w->draining && w->being_replaced == being_replaced &&
			hd_co_has_room(co, w->worker, n[0], n[1])) {
			add_member(next, w->worker);
			n[hd_is_remote(w->worker)]++;
		}
	}
}

/* Members that stay, then ready workers, then members being replaced, as long as there is room; of too
 * many the youngest leave. */
static bool wanted(struct hd_coordinator *co, struct hd_view *next)
{
	uint32_t n[2] = { 0 };                            /* local, remote */

	*next = (struct hd_view){ .nmembers = 0 };
	add_members_that_stay(co, next, false, n);
	for (;;) {
		struct hd_co_worker *first = NULL;
		for (uint32_t i = 0; i < co->nplaces; i++) {
			struct hd_co_worker *w = &co->worker[i];
			if (w->state == HD_W_READY && w->up && !w->draining &&
				!hd_view_has(next, w->worker) && (!first || w->worker < first->worker) &&
			    hd_co_has_room(co, w->worker, n[0], n[1]))
				first = w;
		}
		if (!first)
			break;
		n[hd_is_remote(first->worker)]++;
		add_member(next, first->worker);          /* an earlier id may be ready later */
	}
	add_members_that_stay(co, next, true, n);
	return next->nmembers != co->view.nmembers || memcmp(next->member, co->view.member,
		next->nmembers * sizeof *next->member) != 0;
}

/* Before the next change all must have entered the last view: a worker that has not would take one
 * change for the other. */
static bool all_entered(struct hd_coordinator *co)
{
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		const struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (w && hd_co_is_here(w) && w->spoke < co->view.epoch)
			return false;
	}
	return true;
}

/* Of the members that are wanted; where one refused the shape that is wanted they have the one in force. */
static const struct hd_view_shape *shape_for(const struct hd_coordinator *co, const struct hd_view *next)
{
	return hd_co_is_refused(co, &co->config.shape, next->member, next->nmembers) ? &co->view.shape :
		&co->config.shape;
}

static void open_change(struct hd_coordinator *co)
{
	struct hd_view next;
	uint64_t going = 0;
	bool other = wanted(co, &next);

	if (!next.nmembers) {
		hd_co_note(co, "halt", HD_NOBODY, "all members leave");
		hd_co_on_halt(co, 75, "all its workers were asked to leave");
		return;
	}
	if (next.nmembers < co->config.min || hd_view_writer(&next) == HD_NOBODY)
		return;                                   /* leavers wait for their substitutes */
	const struct hd_view stay = next;
	keep_holders(co, &next);
	keep_stages(co, &next);
	const struct hd_view_shape *shape = shape_for(co, &next);
	if (!other && !co->replan && hd_view_same_shape(&co->view.shape, shape))
		return;
	for (uint32_t i = 0; i < next.nmembers; i++)
		going |= (uint64_t)!hd_view_has(&stay, next.member[i]) << i;
	next.epoch = co->record.epoch + 1;
	hold_as_before(co, &next);
	if (!hd_co_fill_map(co, &next, shape, going, hd_co_least(co)) &&
		!hd_co_plan_fewer(co, &next, going, other))
		return;                                   /* leavers wait for devices in their place */
	co->replan = false;
	/* the leaver must stay for its slots, unless the others are fewer stages */
	if (hd_view_same_map(&next, &co->view) && (!going || !hd_co_plan_fewer(co, &next, going, other) ||
		hd_view_same_map(&next, &co->view)))
		return;
	assert(co->phase == HD_CO_IDLE && next.epoch > co->view.epoch);
	co->next = next;
	co->record.epoch = next.epoch;
	co->phase = HD_CO_NUMBERING;
	co->phase_serial = hd_co_store(co);
	for (uint32_t i = 0; i < co->nplaces; i++)
		co->worker[i].prepared = false;
}

void hd_co_on_prepared(struct hd_coordinator *co, struct hd_co_worker *w, uint32_t epoch)
{
	if (co->phase != HD_CO_PREPARING || epoch != co->next.epoch)
		return;
	w->prepared = true;
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (hd_co_is_here(&co->worker[i]) && concerned(co, &co->worker[i]) && !co->worker[i].prepared)
			return;
	/* from now on either view's members may hold the state */
	co->record.nmembers = co->view.nmembers;
	memcpy(co->record.member, co->view.member, co->view.nmembers * sizeof *co->view.member);
	for (uint32_t i = 0; i < co->next.nmembers; i++)
		if (!hd_view_has(&co->view, co->next.member[i]))
			co->record.member[co->record.nmembers++] = co->next.member[i];
	assert(co->record.nmembers <= HD_MAX_WORKERS);
	co->phase = HD_CO_DECIDING;
	co->phase_serial = hd_co_store(co);
}

void hd_co_change_stored(struct hd_coordinator *co)
{
	if (co->phase == HD_CO_NUMBERING) {
		co->phase = HD_CO_PREPARING;
		co->prepare_ns = co->now_ns;
		for (uint32_t i = 0; i < co->nplaces; i++)
			if (hd_co_is_here(&co->worker[i]) && concerned(co, &co->worker[i]))
				say_prepare(co, &co->worker[i]);
	} else if (co->phase == HD_CO_DECIDING) {
		co->phase = HD_CO_DECIDED;
		for (uint32_t i = 0; i < co->nplaces; i++) {
			struct hd_co_worker *w = &co->worker[i];
			if (!hd_co_is_here(w))
				continue;
			w->decided = hd_view_has(&co->next, w->worker);
			say_decide(co, w);
		}
	}
}

void hd_co_change_again(struct hd_coordinator *co, struct hd_co_worker *w)
{
	if (!hd_co_is_here(w))
		return;
	hd_co_transfers_again(co, w);
	if ((co->phase == HD_CO_PREPARING || co->phase == HD_CO_DECIDED) && concerned(co, w))
		say_prepare(co, w);
	if (co->phase == HD_CO_DECIDED)
		say_decide(co, w);
	struct hd_msg *msg = co->halting && w->state == HD_W_MEMBER ? hd_co_msg(co, HD_MSG_STOP) : NULL;
	if (!msg)
		return;
	/* it may be the end in this very call */
	const char *why = hd_arena_text(&co->out, co->halt_why, strlen(co->halt_why));
	if (why)
		msg->stop = (struct hd_msg_stop){ .code = co->halt_code, .nwhy = (uint32_t)strlen(why),
			.why = why };
	co->broken |= !why;
	hd_co_send(co, w, msg);
}

/* A worker that has not prepared in time counts as silent, joiner or member. */
static void prepare_tick(struct hd_coordinator *co)
{
	bool late = co->now_ns - co->prepare_ns >= HD_TIMEOUT_NS(PREPARE, co->config.detect_ns);

	/* the first death voids the change */
	for (uint32_t i = 0; i < co->nplaces && late && co->phase == HD_CO_PREPARING; i++)
		if (concerned(co, &co->worker[i]) && !co->worker[i].prepared)
			hd_co_dead(co, &co->worker[i], "it did not prepare for the next view");
}

/* ---- seals, commit, the switch ---- */

void hd_co_commit(struct hd_coordinator *co)
{
	assert(co->has_view);
	for (; co->committed < co->seals.committed && (!co->mismatched || co->committed + 1 < co->mismatched);
		co->committed++) {
		const struct hd_co_news *news = &co->news[co->committed % HD_CO_NEWS];
		struct hd_co_action *a = hd_co_act(co, HD_CO_DO_COMMIT);
		a->step = co->committed;
		a->epoch = co->view.epoch;
		a->news = news->step == co->committed + 1 ? &news->news : NULL;
		hd_co_verify(co, co->committed);
	}
}

void hd_co_switched(struct hd_coordinator *co)
{
	uint64_t next[HD_MAX_MEMBERS];

	assert(co->phase == HD_CO_DECIDED && co->has_view);
	for (uint32_t i = 0; i < co->next.nmembers; i++) {
		struct hd_co_worker *w = hd_co_find(co, co->next.member[i]);
		assert(w && hd_co_is_here(w));            /* else the change was void */
		next[i] = w->sealed;
		hd_co_transfer_ended(co, w);
		w->state = HD_W_MEMBER;
		w->done_ns = co->now_ns;
	}
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		if (w && !hd_view_has(&co->next, w->worker))
			hd_co_left(co, w);
	}
	for (uint32_t i = 0; i < co->nplaces; i++)
		co->worker[i].decided = false;
	const struct hd_co_standing in = hd_co_standing_in(&co->view, &co->next);
	co->view = co->next;
	co->view_epoch = 0;
	co->view_first = 0;
	for (uint32_t i = 0; i < co->next.nmembers; i++)
		co->view_first = next[i] > co->view_first ? next[i] : co->view_first;
	hd_seals_of(&co->seals, co->view.epoch, co->view.member, next, 0, co->view.nmembers);
	co->seals.observes = true;
	co->record.nmembers = co->view.nmembers;
	memcpy(co->record.member, co->view.member, co->view.nmembers * sizeof *co->view.member);
	hd_co_store(co);
	co->phase = HD_CO_IDLE;
	hd_co_end_backoff(co);
	hd_co_note(co, "view", HD_NOBODY, "%u members", co->view.nmembers);
	hd_co_note_moves(co);
	hd_co_note_standing(co);
	if (*in.text)
		hd_co_note(co, "stands_in", HD_NOBODY, "%s", in.text);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w->state == HD_W_OUT || w->state == HD_W_MEMBER)
			continue;
		/* also to leavers, which may lack a message of those that left before */
		hd_co_send(co, w, hd_co_msg(co, HD_MSG_ENTERED));
		if (w->source != HD_NOBODY && !hd_view_has(&co->view, w->source))
			hd_co_sync_lost(co, w);
	}
	for (uint32_t i = 0; i < co->nplaces && co->halting; i++)
		hd_co_change_again(co, &co->worker[i]);
	hd_co_commit(co);
}

void hd_co_on_seal(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg)
{
	const struct hd_msg_seal *s = &msg->seal;
	struct hd_co_news *news = &co->news[s->step % HD_CO_NEWS];
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	if ((s->ran || s->news.samples) && s->step >= co->committed && news->step != s->step + 1)
		*news = (struct hd_co_news){ s->step + 1, s->news };
	else if (s->ran && news->step == s->step + 1 && s->step + 1 > w->sealed && s->step + 1 > w->counted)
		news->news.redone += s->news.redone;      /* each says what it did */
	/* it may say so again before there is a view in which it counts as sealed */
	if (s->ran && s->step + 1 > w->counted)
		w->counted = s->step + 1;
	hd_co_on_digests(co, w, s);
	if (!co->has_view)
		return;
	if (s->step + 1 > w->sealed)
		w->sealed = s->step + 1;
	/* nothing more is taken from a worker that is no member: what it sealed counts when its view is
	 * in force */
	/* from a joiner: the view that it announced is in force */
	if (!s->ran) {
		hd_seals_reach(&co->seals, w->worker, s->step + 1);
		hd_co_commit(co);
		return;
	}
	/* sent before an epoch that it has entered since: it holds the step all the same */
	struct hd_seal seal = { co->view.epoch, w->worker, s->step, s->sum_digest, s->state_digest,
		s->knows };
	enum hd_err err = hd_seals_add(&co->seals, &seal, &n, &diag);
	/* one reported a digest, the other none: nothing to compare */
	if (err == HD_E_INTEGRITY && !co->mismatched) {
		hd_co_note(co, "integrity", w->worker, "%s", diag.text);
		hd_co_end(co, 5, diag.text);
		return;
	}
	hd_co_commit(co);
}

/* ---- what to open next ---- */

/* Workers that can be asked to begin. One whose link is down comes back or dies; without it an epoch
 * would be empty. */
static uint32_t count_ready(const struct hd_coordinator *co, bool local)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		n += w->state == HD_W_READY && !w->draining && w->up && !(local && hd_is_remote(w->worker));
	}
	return n;
}

/* Ranks that the devices make of workers that are ready, and of members. */
static uint32_t count_ranks(const struct hd_coordinator *co)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		bool here = w->state == HD_W_READY && !w->draining && w->up;
		n += here || w->state == HD_W_MEMBER ? w->ndevices / hd_view_each(&co->config.shape) : 0;
	}
	return n;
}

/* Stages: are there devices for a pipeline, or as many as there are to be? */
static bool fits_shape(const struct hd_coordinator *co)
{
	return !co->config.shape.nstages || count_ranks(co) >= co->config.shape.width * hd_co_least(co);
}

static void plan_start(struct hd_coordinator *co)
{
	/* remote ones join when there is a member to sync from */
	uint32_t ready = count_ready(co, false), later = hd_co_remotes(co);
	int64_t waited = co->now_ns - co->start_ns;
	bool late = waited > co->config.min_wait_ns;

	if (co->halting)
		hd_co_end_halted(co, co->config.step);
	else if (late && !fits_shape(co))
		hd_co_end(co, 10,
			"fewer devices came within workers.min_wait than a pipeline of the job's stages has "
			"ranks: start more workers, or give them more devices (--devices)");
	else if (fits_shape(co) && ready && (ready >= co->record.target ||
		((late || waited > HD_TIMEOUT_NS(SHORT_HANDED, co->config.detect_ns)) &&
		ready + later >= co->config.min)))
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
	else if (late)
		hd_co_end(co, 10, "too few workers came within workers.min_wait");
}

static void plan_hold(struct hd_coordinator *co)
{
	uint32_t ready = count_ready(co, false);
	assert(co->has_view && co->holding);
	bool saves = hd_view_writer(&co->view) != HD_NOBODY || count_ready(co, true);

	if (co->view_alone) {
		co->hold_ns = co->now_ns;                 /* no wait: its step is computed */
		if (co->committed >= co->view_first)      /* its step is over */
			hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
		return;
	}
	const bool fits = fits_shape(co) || hd_co_may_have_fewer(co, count_ranks(co));
	if (saves && fits && co->view.nmembers + ready >= co->config.min &&
		co->now_ns - co->refence_ns >= HD_TIMEOUT_NS(SILENT, co->config.detect_ns)) {
		co->refence_ns = co->now_ns;
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
	} else if (co->now_ns - co->hold_ns > co->config.min_wait_ns) {
		hd_co_halt(co, 10, "too few workers");    /* not stored: another coordinator waits again */
	}
}

/* Even to stop, a worker must save what remote workers hold. */
static bool needs_more(const struct hd_coordinator *co)
{
	return !co->halting || (co->holding && hd_view_writer(&co->view) == HD_NOBODY);
}

/* Local launchers are asked for the missing workers, and again for those that do not come in 30 T. */
static void spawn(struct hd_coordinator *co)
{
	const int64_t patience_ns = HD_TIMEOUT_NS(START, co->config.detect_ns);
	uint32_t here = 0;                        /* or about to be, in a process that is there */

	if (!needs_more(co))
		return;
	if (co->now_ns - co->spawn_ns > patience_ns)
		co->spawned = 0;
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		here += hd_co_is_here(w) ? !w->draining && !w->being_replaced && !hd_is_remote(w->worker) :
			w->rejoins_ns && co->now_ns - w->rejoins_ns <= patience_ns;
	}
	if (here + co->spawned >= co->record.target || co->phase == HD_CO_ASKING ||
		co->phase == HD_CO_FENCING)
		return;
	/* of the oldest: one that never comes must not be waited for as long as others do */
	if (!co->spawned)
		co->spawn_ns = co->now_ns;
	assert(here < co->record.target);
	hd_co_act(co, HD_CO_DO_SPAWN)->n = co->record.target - here - co->spawned;
	co->spawned = co->record.target - here;
}

/* The final state is saved and every member is there: DONE may overtake the seals of others. */
static void end_if_done(struct hd_coordinator *co)
{
	if (co->done && co->committed >= co->done_step)
		hd_co_end_halted(co, co->done_step);
}

void hd_co_plan(struct hd_coordinator *co)
{
	end_if_done(co);
	if (co->phase == HD_CO_ENDING)
		return;
	if (co->phase == HD_CO_START && co->record.started) {
		/* taken over: members call each T/4 */
		hd_co_fence(co, HD_TIMEOUT_NS(CALLED_BACK, co->config.detect_ns));
		return;
	}
	spawn(co);
	prepare_tick(co);
	if (co->phase == HD_CO_START || (co->has_view && needs_more(co)))
		hd_co_start_transfers(co);
	if (co->phase == HD_CO_START)
		plan_start(co);
	else if (co->phase <= HD_CO_DECIDED && co->mend)
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
	else if (co->phase == HD_CO_IDLE && co->holding)
		plan_hold(co);
	else if (co->phase == HD_CO_IDLE && !co->halting && all_entered(co))
		open_change(co);
}
