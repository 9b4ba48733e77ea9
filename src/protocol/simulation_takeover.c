#include "protocol/simulation_int.h"

#include <string.h>

/* What outlives a coordinator is its record, once it is known to be stored: nothing that it says may need
 * more. */

static bool has(const struct hd_co_record *record, uint32_t worker)
{
	for (uint32_t i = 0; i < record->nmembers; i++)
		if (record->member[i] == worker)
			return true;
	return false;
}

/* Of the newest view, which it has not entered and will not: it has adopted a later epoch, and may have
 * said so. */
static bool is_outside(const struct sim_world *s, uint32_t worker)
{
	uint32_t slot = sim_slot(s, worker);
	const struct hd_member *m = slot < SIM_PROCS ? s->proc[slot].m : NULL;

	return m && hd_member_state(m) == HD_SYNCING && hd_member_epoch(m) > s->newest.epoch;
}

/* A new coordinator asks the workers that the record names, and no others. */
static void check_members(struct sim_world *s)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = s->co ? hd_coordinator_workers(s->co, w, HD_MAX_WORKERS) : 0;

	for (uint32_t i = 0; i < n && s->store.started; i++)
		if (w[i].state == HD_W_MEMBER && hd_view_has(&s->newest, w[i].worker) &&
			!has(&s->store, w[i].worker) &&
		    !is_outside(s, w[i].worker))
			sim_bad(s, "stored",
				"worker %u is a member of epoch %u, and the record does not say so",
				w[i].worker, s->newest.epoch);
}

/* The next coordinator waits for all workers that the record names: where nothing is under way, they are
 * those of the view. */
void sim_check_named(struct sim_world *s)
{
	const struct hd_view *view = s->co ? hd_coordinator_view(s->co) : NULL;
	struct hd_co_status status;

	if (!view || s->store.serial != s->handed)
		return;
	hd_coordinator_status(s->co, &status);
	if (!status.changing && s->store.nmembers != view->nmembers)
		sim_bad(s, "named", "the record has %u members, and the view in force, of epoch %u, %u",
			s->store.nmembers, view->epoch, view->nmembers);
	for (uint32_t i = 0; i < view->nmembers && !status.changing; i++)
		if (!has(&s->store, view->member[i]))
			sim_bad(s, "named", "worker %u of epoch %u is not in the record", view->member[i],
				view->epoch);
}

static void durable(struct sim_world *s, const struct hd_co_record *record)
{
	if (record->term < s->store.term || record->serial < s->store.serial ||
		record->epoch < s->store.epoch ||
	    record->next_worker < s->store.next_worker)
		sim_bad(s, "stored", "an older record overwrites a newer one");
	s->store = *record;
	check_members(s);
}

void sim_store(struct sim_world *s, const struct hd_co_record *record, bool ok, int64_t in_ns)
{
	struct hd_co_record *copy = hd_arena_take(&s->arena, 1, sizeof *copy);
	uint32_t before = s->nstoring ? s->storing[s->nstoring - 1].record->target : s->store.target;

	if (!copy) {
		s->no_memory = true;
		return;
	}
	if (record->target != s->target && record->target != before)
		sim_bad(s, "target", "%u workers are stored as asked for, after %u and %u", record->target,
			before, s->target);
	if (s->nstoring == SIM_STORING) {
		sim_bad(s, "memory", "more than %d records are being stored", SIM_STORING);
		return;
	}
	*copy = *record;
	s->handed = record->serial;
	s->storing[s->nstoring].record = copy;
	s->storing[s->nstoring++].ok = ok;
	s->store_ns = s->now + in_ns > s->store_ns ? s->now + in_ns : s->store_ns;
	sim_push(s, (struct sim_world_event){ .at = s->store_ns, .kind = EV_STORED, .gen = s->co_gen,
		.number = record->serial, .step = ok });
	if (s->seed & HD_SIM_UNHEARD && s->now < s->quiet_ns && sim_rnd(s, 8) == 0)
		sim_push(s, (struct sim_world_event){ .at = s->now + (int64_t)sim_rnd(s,
			(uint64_t)(s->store_ns - s->now)), .kind = EV_FAULT,
			.what = HD_SIM_CO_CRASH });
}

void sim_stored(struct sim_world *s)
{
	if (s->storing[0].ok)
		durable(s, s->storing[0].record);
	memmove(s->storing, s->storing + 1, --s->nstoring * sizeof *s->storing);
}

/* Some of what it handed over may be on the disk all the same, up to any of it. */
void sim_store_cut(struct sim_world *s)
{
	for (uint32_t i = 0; i < s->nstoring; i++) {
		if (__builtin_parityll(s->seed + s->storing[i].record->serial))
			break;
		if (s->storing[i].ok)
			durable(s, s->storing[i].record);
	}
	s->nstoring = 0;
}

/* ---- what is said ---- */

/* An epoch is of one term, and either of a failure or of a planned change. */
static void check_number(struct sim_world *s, const struct hd_msg *msg, uint32_t epoch, bool planned)
{
	uint32_t i = epoch % SIM_EPOCHS;

	if (epoch > s->store.epoch)
		sim_bad(s, "stored", "%s of epoch %u, the record says %u", hd_msg_name(msg->kind), epoch,
			s->store.epoch);
	if (s->numbered[i].epoch == epoch && (s->numbered[i].term != msg->term ||
		s->numbered[i].planned != planned))
		sim_bad(s, "epoch", "%s of epoch %u by term %u, which term %u said for %s",
			hd_msg_name(msg->kind), epoch, msg->term,
			s->numbered[i].term, s->numbered[i].planned ? "a change" : "a failure");
	s->numbered[i].epoch = epoch;
	s->numbered[i].term = msg->term;
	s->numbered[i].planned = planned;
}

static void check_holders(struct sim_world *s, const struct hd_msg *msg, const uint32_t *member, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!s->store.started || !has(&s->store, member[i]))
			sim_bad(s, "stored", "%s with worker %u, and the record does not have it",
				hd_msg_name(msg->kind), member[i]);
}

static void check_id(struct sim_world *s, const struct hd_msg_admit *msg)
{
	uint32_t id = msg->worker % HD_REMOTE_WORKER;

	if (id >= s->store.next_worker)
		sim_bad(s, "stored", "the number %u is given out, and the record ends with %u", id,
			s->store.next_worker);
	if (id >= SIM_IDS || (s->nonce_of[id] && s->nonce_of[id] != msg->nonce))
		sim_bad(s, "stored", "the number %u is given to two workers", id);
	else
		s->nonce_of[id] = msg->nonce;
}

void sim_check_said(struct sim_world *s, const struct hd_msg *msg)
{
	static const bool decides[HD_MSG_NKINDS] = { [HD_MSG_ADMIT] = true, [HD_MSG_SYNC] = true,
		[HD_MSG_SEND_STATE] = true, [HD_MSG_PREPARE] = true,
		[HD_MSG_DECIDE] = true, [HD_MSG_FENCE] = true, [HD_MSG_VIEW] = true };

	if (decides[msg->kind] && msg->term > s->store.term)
		sim_bad(s, "stored", "%s in term %u, the record says %u", hd_msg_name(msg->kind), msg->term,
			s->store.term);
	sim_check_refused(s, msg);
	switch ((int)msg->kind) {
	case HD_MSG_ADMIT:
		check_id(s, &msg->admit);
		break;
	case HD_MSG_PREPARE:
		check_number(s, msg, msg->prepare.next, true);
		s->planned.epoch = msg->prepare.next;
		s->planned.n = msg->prepare.nmember;
		memcpy(s->planned.member, msg->prepare.member,
			msg->prepare.nmember * sizeof *msg->prepare.member);
		break;
	case HD_MSG_DECIDE:
		check_number(s, msg, msg->decided.next, true);
		if (s->planned.epoch != msg->decided.next)
			sim_bad(s, "stored", "DECIDE of epoch %u without a PREPARE",
				msg->decided.next);
		check_holders(s, msg, s->planned.member, s->planned.n);
		break;
	case HD_MSG_FENCE:
		check_number(s, msg, msg->epoch, false);
		break;
	case HD_MSG_VIEW:
		check_number(s, msg, msg->epoch, false);
		check_holders(s, msg, msg->view.member, msg->view.nmember);
		break;
	default:
		break;
	}
}

void sim_check_takeover(struct sim_world *s)
{
	struct hd_co_status status;

	hd_coordinator_status(s->co, &status);
	if (status.term != s->store.term + 1 || status.epoch != s->store.epoch)
		sim_bad(s, "stored",
			"a coordinator begins with term %u and epoch %u, the record says %u and %u",
			status.term, status.epoch,
			s->store.term, s->store.epoch);
	if (s->store.target && status.asked != s->store.target)
		sim_bad(s, "target", "a coordinator begins with %u workers, the record says %u", status.asked,
			s->store.target);
	if (s->store.halting && !status.halting)
		sim_bad(s, "stored", "a coordinator goes on with what the record says is stopped");
}

/* Since when it could have noticed: it was there, and did not stand still, and heard that its link had
 * closed. */
static int64_t noticed_ns(const struct sim_world *s, uint32_t slot)
{
	const struct sim_proc *p = &s->proc[slot];
	const struct sim_link *l = &s->link[slot][SIM_CO];
	int64_t since = s->co_killed_ns;

	since = p->began_ns > since ? p->began_ns : since;
	since = p->paused_until > since ? p->paused_until : since;
	return l->mute_until[1] > since ? l->mute_until[1] : since;
}

void sim_check_taken_over(struct sim_world *s)
{
	for (uint32_t i = 0; i < SIM_PROCS && !s->co && s->takers && !s->over; i++)
		if (s->proc[i].alive && !s->proc[i].paused && !s->proc[i].remote &&
			s->now - noticed_ns(s, i) > 7 * SIM_T)
			sim_bad(s, "taken",
				"process %u, worker %u, has no coordinator since %.3f s, and takes nothing "
				"over", i, s->proc[i].id,
				(double)s->co_killed_ns / 1e9);
}

/* A coordinator that sees its children end and has a disk starts others. */
void sim_check_empty(struct sim_world *s)
{
	bool some = !s->co || !s->reaper || s->nstarting || s->over || s->now < s->store_bad_until + SIM_T;

	for (uint32_t i = 0; i < SIM_PROCS && !some; i++)
		some = s->proc[i].alive && !s->proc[i].remote;
	if (some)
		s->somebody_ns = s->now;
	else if (s->now - s->somebody_ns > 10 * SIM_T)
		sim_bad(s, "empty", "no worker is here or about to come since %.3f s",
			(double)s->somebody_ns / 1e9);
}
