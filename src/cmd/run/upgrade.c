#include <stdio.h>
#include <string.h>

#include "sys/process.h"
#include "sys/signal.h"
#include "wire/hub.h"
#include "driver/upgrade.h"
#include "cmd/run/live.h"

/* A run that goes on gets this program, between two steps: first its coordinator, then its workers one at a
 * time. What was done is seen at the processes, so the same command again goes on where one was stopped. */

#define LOOK_NS INT64_C(100000000)
#define TELL_NS INT64_C(5000000000)
#define MEMBERS_NS INT64_C(60000000000)
#define ASK_NS INT64_C(30000000000)               /* for another start of the same, if nothing came of it */
enum { ASKS = 3 };                /* after which it is no accident that the coordinator is another program */

struct upgrade {
	struct hd_cmd *cmd;
	const char *run;
	struct hd_live live, next;
	struct hd_arena looks[2];         /* what `live` points to is in one, the other is of the next look */
	uint32_t nlooks;
	char program[HD_PATH_CAP];
	struct hd_reach_misses misses;
	int64_t said_ns;
	int64_t members;                  /* as the run was found */
	int64_t newest;                   /* the greatest number of a worker before the first one was asked */
	uint32_t replaced;
};

static void say(struct upgrade *u, const char *text, int64_t id)
{
	if (!u->cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> %s %lld\n", text, (long long)id);
	u->said_ns = hd_clock_now_ns(&u->cmd->clock);
}

static enum hd_err judge(struct upgrade *u)
{
	return hd_upgrade_fits(&u->live, u->run, hd_hub_protocol(), &u->cmd->diag);
}

static enum hd_err look(struct upgrade *u)
{
	struct hd_arena *in = &u->looks[u->nlooks % 2];

	hd_arena_reset(in);
	enum hd_err err = hd_live_look_in(u->cmd, in, u->run, &u->next);
	if (hd_reach_missed(&u->misses, err))
		return HD_E_AGAIN;
	if (!err) {
		u->live = u->next;
		u->nlooks++;
	}
	return err;
}

static enum hd_err pause(struct upgrade *u)
{
	struct hd_cmd *cmd = u->cmd;

	if (hd_signal_stop())
		return hd_stop_err(hd_signal_stop());
	hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + LOOK_NS);
	return HD_OK;
}

/* It, or the one that members started in its place. */
static enum hd_err change_coordinator(struct upgrade *u)
{
	const struct hd_json *answer;
	struct hd_json_writer w;
	struct hd_text ask;
	int64_t asked_ns = 0;
	uint32_t nasked = 0;
	enum hd_err err = HD_OK;

	hd_text_init(&ask, &u->cmd->arena);
	hd_json_writer_init(&w, &ask);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "do", "become");
	hd_json_put_text(&w, "program", u->program);
	hd_json_close(&w);
	if (ask.full)
		return hd_fail(&u->cmd->diag, HD_E_NOMEM, "no memory for a request");
	while (!err && !hd_pid_is_alike((int)u->live.coordinator)) {
		int64_t now_ns = hd_clock_now_ns(&u->cmd->clock);
		if (u->live.coordinator && (!asked_ns || now_ns - asked_ns > ASK_NS)) {
			if (nasked == ASKS)
				return hd_fail(&u->cmd->diag, HD_E_REFUSED, "the coordinator of %s, process "
					"%lld, was asked %d times to go on as %s, and is another program: "
					"that path is another file where it runs, or the program ends "
					"there at once; %s/log says more, and the run goes on as it was",
					u->run, (long long)u->live.coordinator, ASKS, u->program, u->run);
			err = hd_live_ask(u->cmd, u->run, ask.at, &answer);
			if (err == HD_E_AGAIN || hd_reach_missed(&u->misses, err)) {
				err = HD_OK;
			} else {
				asked_ns = now_ns;
				nasked++;
			}
		}
		if (now_ns - u->said_ns > TELL_NS)
			say(u, "waits for another program in the place of the coordinator, process",
				u->live.coordinator);
		err = err ? err : pause(u);
		err = err ? err : look(u);
		err = err == HD_E_AGAIN ? HD_OK : err;
		if (!err && !u->live.goes_on)
			return judge(u);
	}
	if (!err && asked_ns)
		say(u, "the coordinator is this program now, process", u->live.coordinator);
	return err;
}

/* Members find the next coordinator; one that was lost meanwhile, or left, is not waited for without end. */
static enum hd_err await_members(struct upgrade *u)
{
	const int64_t until_ns = hd_clock_now_ns(&u->cmd->clock) + MEMBERS_NS;
	enum hd_err err = HD_OK;

	while (!err && u->live.goes_on && (!u->live.members || (u->live.members < u->members &&
		hd_clock_now_ns(&u->cmd->clock) < until_ns))) {
		err = pause(u);
		err = err ? err : look(u);
		err = err == HD_E_AGAIN ? HD_OK : err;
	}
	return err;
}

/* The next member of this machine that runs another program; NULL: none does. */
static const struct hd_live_worker *next_old(const struct upgrade *u)
{
	for (uint32_t i = 0; i < u->live.nworkers; i++) {
		const struct hd_live_worker *one = &u->live.worker[i];
		const bool here = !one->remote && one->pid && !strcmp(one->state, "member");
		if (here && !hd_pid_is_alike((int)one->pid))
			return one;
	}
	return NULL;
}

static bool is_member(const struct upgrade *u, int64_t id)
{
	for (uint32_t i = 0; i < u->live.nworkers; i++)
		if (u->live.worker[i].id == id)
			return !strcmp(u->live.worker[i].state, "member");
	return false;
}

/* One that came since the first one was asked is of what starts workers: it would come again and again. */
static enum hd_err refuse_again(const struct upgrade *u)
{
	return hd_fail(&u->cmd->diag, HD_E_INVAL, u->live.starts ?
		"%s: its coordinator became another program meanwhile, and starts that one's workers; call "
		"this again" :
		"%s is a run of a scheduler, which still starts workers of another program: give it this one "
		"first (heddle serve --replace, with its options), then call this again", u->run);
}

/* Another one is started beside it, and takes its place between two steps. Of a scheduler's run it leaves
 * first, since its device is what the next one gets; alone it would end the run. */
static enum hd_err change_worker(struct upgrade *u, int64_t id)
{
	const struct hd_json *answer;
	int64_t asked_ns = 0;
	enum hd_err err = HD_OK;
	char ask[64];

	if (id > u->newest)
		return refuse_again(u);
	if (!u->live.starts && u->live.members < 2)
		return hd_fail(&u->cmd->diag, HD_E_INVAL, "%s is a run of a scheduler and has one worker, "
			"without which it does not go on: `heddle hold JOB`, then `heddle release JOB`, once "
			"its scheduler is this program", u->run);
	snprintf(ask, sizeof ask, "{\"do\":\"%s\",\"worker\":%lld}", u->live.starts ? "replace" : "drain",
		(long long)id);
	while (!err && u->live.goes_on && is_member(u, id)) {
		int64_t now_ns = hd_clock_now_ns(&u->cmd->clock);
		if (!asked_ns || now_ns - asked_ns > ASK_NS) {     /* of a coordinator that died meanwhile */
			err = hd_live_ask(u->cmd, u->run, ask, &answer);
			err = hd_reach_missed(&u->misses, err) ? HD_OK : err;
			asked_ns = now_ns;
			if (err == HD_E_INVAL && !look(u) && !is_member(u, id))
				err = HD_OK;              /* it left meanwhile */
		}
		if (now_ns - u->said_ns > TELL_NS)
			say(u, "waits for one in the place of worker", id);
		err = err ? err : pause(u);
		err = err ? err : look(u);
		err = err == HD_E_AGAIN ? HD_OK : err;
	}
	if (!err && u->live.goes_on) {
		u->replaced++;
		say(u, "this program is in the place of worker", id);
	}
	return err;
}

static enum hd_err upgrade(struct upgrade *u)
{
	struct hd_cmd *cmd = u->cmd;
	const struct hd_live_worker *old;
	uint32_t far = 0;
	enum hd_err err = hd_proc_program(u->program, sizeof u->program, &cmd->diag);

	err = err ? err : hd_signal_install(&cmd->diag);
	err = err ? err : hd_live_look(cmd, u->run, &u->live);
	u->said_ns = hd_clock_now_ns(&cmd->clock);
	err = err ? err : judge(u);
	u->members = u->live.members;
	err = err ? err : change_coordinator(u);
	err = err ? err : await_members(u);
	for (uint32_t i = 0; i < u->live.nworkers && !err; i++)
		if (!u->live.worker[i].remote && u->live.worker[i].id > u->newest)
			u->newest = u->live.worker[i].id;
	while (!err && u->live.goes_on && (old = next_old(u))) {
		err = change_worker(u, old->id);
		err = err ? err : await_members(u);
	}
	if (err)
		return err;
	for (uint32_t i = 0; i < u->live.nworkers; i++)
		far += u->live.worker[i].remote;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"pid\":%lld,\"replaced\":%u,\"remote\":%u,\"goes_on\":%s}\n",
			(long long)u->live.coordinator, u->replaced, far,
			u->live.goes_on ? "true" : "false");
	else if (!cmd->args.has[HD_OPT_QUIET])
		printf("%s: coordinator and workers of this machine are %s, %u workers were replaced%s\n",
			u->run, u->program, u->replaced, u->live.goes_on ? "" : "; the run has ended");
	if (far && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> %u workers came from other machines: start new ones there with the new "
			"program (heddle worker --join), then `heddle stop %s --worker N` for each\n", far,
			u->run);
	return HD_OK;
}

static enum hd_err verb_upgrade(struct hd_cmd *cmd)
{
	struct upgrade *u = hd_arena_take(&cmd->arena, 1, sizeof *u);

	if (!u)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an upgrade");
	u->cmd = cmd;
	u->run = cmd->args.pos[0];
	u->newest = -1;
	for (int i = 0; i < 2; i++)
		hd_arena_init(&u->looks[i], 0);
	enum hd_err err = upgrade(u);
	for (int i = 0; i < 2; i++)
		hd_arena_finish(&u->looks[i]);
	return err;
}

const struct hd_verb hd_verb_upgrade = {
	.name = "upgrade", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "put this program in the place of the one that a run of workers goes on with",
	.more =
		"Call the new program: NEW/heddle upgrade RUN. The coordinator's process becomes it, as the "
		"same process; then each worker of this machine is replaced by a new one, one at a time, "
		"between two steps, so for a moment there is memory for one more. Not a bit of the result "
		"changes.\n"
		"A run whose members speak another protocol is refused (exit 2), with the side that is "
		"older; it goes on by a checkpoint. If it is stopped or killed in the middle the run goes "
		"on, and the same command does the rest. Workers of other machines are counted, and are "
		"replaced by hand.",
	.opts = HD_OPTS(),
	.run = verb_upgrade, .test = "program_upgrade.sh",
};
