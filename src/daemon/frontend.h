/* frontend.h -- requests to the scheduler daemon, and the interface of frontends that carry them.
 *
 * A *frontend* speaks to users (the REST server, the line socket); the daemon (daemon/daemon.h) gives it a
 * loop and a *handler* for requests, and calls its slots. Tests use a handler of their own.
 *
 * 1. Changes are on disk before the handler answers. An error changed nothing; it is a code and a text.
 * 2. A frontend watches descriptors with tags of its own range only (an epoll descriptor of a library is one
 *    descriptor).
 *
 * What can be asked. `ask` is an object; members marked ? may be left out. What is answered has the table of
 * that name (answers.h). A job is named by its id (a number) or by its name (a text: the youngest of that
 * name). Unknown members are ignored. Times *_s are seconds of the daemon's clock, which starts at 0 with DIR
 * and goes on over restarts; `t` are seconds since 1970.
 *
 *	do       answer     ask
 *	submit   submitted  job: text of a job file, folder: absolute, where its relative paths begin,
 *	                    set?: [texts "key=value"], name?, priority?: > 0 (default: job.priority),
 *	                    deadline_s?: from now (default: job.deadline), scale?: devices at once (1),
 *	                    min?, max?: devices of an elastic policy (1, virtual nodes),
 *	                    rates?: {TYPE: steps/s on `scale` devices; 0: never there}, user?,
 *	                    account?: that it counts to (job.account, or the first of its user),
 *	                    held?: bool, after?: [texts "JOB:ok", :any, :fail], array?: "0-9%K" ({index} in
 *	                    set and name is the task's), limit_s?: of running time, expect_s?: a guess of it,
 *	                    key?: a text of at most 64 bytes; the same order with the same key again is
 *	                    answered with the first one's job, another order is HD_E_EXISTS,
 *	                    until?: it is done at this step, before its last one
 *	continue submitted  job, until: another job goes on to that step in the run of this one, which is
 *	                    done (and again, if that other one was ended before it got there);
 *	                    priority?, deadline_s?, scale?, min?, max?, key? as above
 *	jobs     jobs       state?, after?: id (0), limit?: 1..1000 (100), ids?: a text, as "3.7-9"
 *	job      job_whole  job
 *	explain  why        job, policy?: false leaves out the what-if
 *	cancel   state      job, tasks?: bool, all tasks of its array (also of the next two)
 *	hold     state      job; if it runs it commits and leaves its devices
 *	release  state      job
 *	prio     priority   job, priority: > 0
 *	scale    scale      job, scale: devices at once, from the next round on
 *	run      run        job
 *	metrics  curve      job, points?: 2..HD_CURVE_POINTS (500)
 *	waiting  waitings   after?: id (0), limit?: 1..100 (50)
 *	ledger   ledger
 *	history  history    after_s?
 *	sweeps   sweeps     of the scheduler's folder
 *	sweep    (a sweep's table, sweep/table.h)   sweep: its name
 *	status   status
 *	hosts    hosts
 *	pools    pools
 *	policy   policy     policy?: a name of `sched policies`
 *	whatif   whatif     job?, priority?, scale?: of that job, without?: a job, add?: {TYPE: devices
 *	                    more}, price?: {TYPE: per hour}, policy?: a name; changes nothing
 *	device   usable     device: name, usable: bool; takes it out of service, or back
 *	backup   backup     folder: absolute, and not there; the store as of now, in that folder (backup.h)
 *	windows  windows
 *	reserve  window     window: name, kind: drain, maintenance or reserved, devices: [texts "TYPE",
 *	                    "TYPE:N", "TYPE-0"], from_s?: from now (0), for_s?: (until it is taken back),
 *	                    user? or account?: of a reservation, reason?: a line
 *	unreserve nothing   window: name
 *	stop     nothing    drain?: bool (false); the daemon ends after the answer
 *	events   events     after?: number (0), limit?: 1..1000 (100), job?: id
 *
 *	STATE    queued starting running draining done failed cancelled timeout
 *
 *	me       me
 *	tokens   tokens
 *	token    token_new  user?: of users.yaml (the caller), for_s?: seconds that it holds (30 days)
 *	revoke   nothing    token: its id
 *
 * A scheduler with users (users.h) answers a question by its caller's rights: what belongs to others does
 * not exist for it (HD_E_NOTFOUND, left out of lists), but for counts. `user` of `submit` is then read from
 * admins only; a job is its caller's.
 *
 * Errors: HD_E_INVAL a member is missing or makes no sense, or the job is over; HD_E_NOTFOUND no such job,
 * device; HD_E_INPUT the job file is bad; HD_E_REFUSED no space (disk, too many jobs); HD_E_AGAIN the
 * scheduler is about to end, or the policy does not answer; HD_E_IO the store could not be written: nothing
 * was changed.
 *
 * Threads: one, the daemon's. Call the handler between two turns or inside a slot. It blocks for its fsync
 * and for orders that follow at once: processes to start, requests to runs (HD_DAEMON_ASK_NS of daemon.h
 * each). */
#ifndef HD_DAEMON_FRONTEND_H
#define HD_DAEMON_FRONTEND_H

#include "base/json.h"
#include "base/json_writer.h"
#include "sys/loop.h"
#include "daemon/users.h"

enum { HD_FRONTEND_TAGS = 1024 };            /* of the loop, that each frontend has */

/* What a request brings to say whose it is: the account at the other end of a Unix socket, a token. */
struct hd_credential {
	bool local;                       /* `user` is known */
	struct hd_sock_user user;
	const char *bearer;               /* NULL: none; not yet believed */
	bool start_token;                 /* it has the token of this start, which is the owner's */
};

struct hd_handler {
	void *self;
	/* Writes members into the open object `answer`. `by`: whose question it is. */
	enum hd_err (*answer)(void *self, const struct hd_caller *by, const char *what,
		const struct hd_json *ask, struct hd_json_writer *answer, struct hd_diag *diag);
	/* Whose it is, now: asked at each request, and again before each page of a stream.
	 * HD_E_REFUSED: no user. hd_identify_owner: of a scheduler that has one owner. */
	enum hd_err (*identify)(void *self, const struct hd_credential *credential, struct hd_caller *by,
		struct hd_diag *diag);
};
enum hd_err hd_identify_owner(void *self, const struct hd_credential *credential, struct hd_caller *by,
	struct hd_diag *diag);

struct hd_frontend_ops {
	const char *name;                 /* "http", "line" */
	/* Once, before the first turn: watches what it wants with tags from `tag` up to tag +
	 * HD_FRONTEND_TAGS. `handler` and `loop` are borrowed until close. */
	enum hd_err (*open)(void *self, const struct hd_handler *handler, struct hd_loop *loop, uint64_t tag,
		struct hd_diag *diag);
	/* An event with one of its tags. */
	void (*event)(void *self, const struct hd_loop_event *event);
	/* After every turn, at least once a second; the clock's time at which it wants to be called again,
	 * INT64_MAX: whenever. */
	int64_t (*tick)(void *self, int64_t now_ns);
	/* Events up to `last` are on the disk: there is something new to ask "events" for. */
	void (*changed)(void *self, uint64_t last);
	/* Once, after the last turn, also when open failed. */
	void (*close)(void *self);
};

struct hd_frontend { const struct hd_frontend_ops *ops; void *self; };

#endif
