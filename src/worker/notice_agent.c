#include "worker/notice_agent.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/lock.h"
#include "sys/process.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "spot/lead.h"
#include "worker/notice_call.h"

#define IDLE_NS (60 * HD_NOTICE_S)        /* with nothing to ask */

/* One source: its watch, and the request under way. */
struct link {
	struct hd_notice_watch watch;
	struct hd_notice_place place;
	struct hd_notice_call call;
	/* what stands of it; kind NONE: nothing. Under the lock */
	struct hd_notice standing;
};

struct hd_notice_agent {
	struct hd_notice_agent_spec spec;
	char file[HD_PATH_CAP];
	struct hd_notice_choice choice;
	uint32_t pid;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_thread thread;
	_Atomic bool closing;
	struct link link[HD_NOTICE_SOURCES], probe;
	char body[HD_NOTICE_BODY];
	struct hd_lock lock;              /* of what follows, and of link[].standing */
	uint32_t nlinks;
	struct hd_notice_news news[HD_NOTICE_NEWS];
	uint32_t nnews;
};

void hd_notice_agent_of_job(const struct hd_job *job, struct hd_notice_agent_spec *spec)
{
	const struct hd_job_value *base = &job->value[HD_JOB_NOTICE_BASE],
		*grace = &job->value[HD_JOB_NOTICE_GRACE], *every = &job->value[HD_JOB_NOTICE_EVERY];

	*spec = (struct hd_notice_agent_spec){ .source = hd_job_text(job, HD_JOB_NOTICE_SOURCE),
		.base = base->is_auto ? NULL : base->text,
		.settings = { .grace_ns = grace->is_auto ? 0 : grace->i,
			.every_ns = every->is_auto ? 0 : every->i,
			.approve = hd_job_int(job, HD_JOB_NOTICE_APPROVE) != 0 } };
}

enum hd_err hd_notice_agent_file(char path[HD_PATH_CAP], struct hd_diag *diag)
{
	char *const *environment = hd_proc_environment();
	const char *named = hd_notice_env(environment, "HEDDLE_NOTICE_FILE"),
		*runtime = hd_notice_env(environment, "XDG_RUNTIME_DIR"),
		*home = hd_notice_env(environment, "HOME");
	struct hd_proc_self self;
	int n = -1;

	hd_proc_self(&self);
	if (named && *named)
		n = snprintf(path, HD_PATH_CAP, "%s", named);
	else if (runtime && *runtime == '/')
		n = snprintf(path, HD_PATH_CAP, "%s/heddle/notice-%s.json", runtime, self.host);
	else if (home && *home == '/')
		n = snprintf(path, HD_PATH_CAP, "%s/.heddle/notice-%s.json", home, self.host);
	if (n > 0 && n < HD_PATH_CAP)
		return HD_OK;
	return hd_fail(diag, HD_E_NOTFOUND,
		"there is no place for notices by hand: set HEDDLE_NOTICE_FILE, here and for the workers");
}

/* ---- news ---- */

static void add_news(struct hd_notice_agent *a, const struct hd_notice_news *news)
{
	if (a->nnews == HD_NOTICE_NEWS)
		memmove(a->news, a->news + 1, --a->nnews * sizeof *a->news);
	a->news[a->nnews++] = *news;
}

static void log_line(struct hd_notice_agent *a, const char *line)
{
	struct hd_notice_news news = { .notice = { .kind = HD_NOTICE_NONE, .ends_ns = INT64_MAX } };

	if (!*line)
		return;
	snprintf(news.line, sizeof news.line, "%s", line);
	hd_lock_take(&a->lock);
	add_news(a, &news);
	hd_lock_give(&a->lock);
}

/* Preemptions announced by signals have their own way out. */
static bool is_near(const struct link *l, int64_t now_ns)
{
	return l->standing.kind == HD_NOTICE_PREEMPT && (hd_notice_by_http(&l->watch) ||
		hd_notice_by_file(&l->watch)) &&
		hd_lead_answer(&(struct hd_lead_case){ .left_ms = (l->standing.ends_ns - now_ns) /
			HD_NS_PER_MS }) != HD_LEAD_NOTE;
}

static void note(struct hd_notice_agent *a, struct link *l, const struct hd_notice *notice, int64_t now_ns)
{
	struct hd_notice_news news = { .notice = *notice };

	if (notice->kind == HD_NOTICE_PREEMPT) {
		news.lead_ns = notice->ends_ns - now_ns;
		news.ends_wall_ns = hd_clock_wall_ns(a->spec.clock) + news.lead_ns;
	}
	hd_lock_take(&a->lock);
	l->standing = *notice;
	if (notice->kind == HD_NOTICE_WITHDRAWN)
		l->standing.kind = HD_NOTICE_NONE;
	add_news(a, &news);
	hd_lock_give(&a->lock);
}

void hd_notice_news_put(const struct hd_notice_news *news, struct hd_json_writer *w)
{
	char deadline[HD_CLOCK_TEXT];

	hd_json_put_text(w, "source", news->notice.source);
	hd_json_put_text(w, "notice", hd_notice_kind_name(news->notice.kind));
	if (news->notice.kind == HD_NOTICE_PREEMPT) {
		hd_clock_text(news->ends_wall_ns, deadline);
		hd_json_put_i64(w, "lead_ms", news->lead_ns / HD_NS_PER_MS);
		hd_json_put_text(w, "deadline", deadline);
		hd_json_put_text(w, "of", news->notice.of_process ? "process" : "machine");
	}
	hd_json_put_text(w, "text", news->notice.text);
}

bool hd_notice_agent_fetch(struct hd_notice_agent *a, struct hd_notice_news *news)
{
	bool some = false;

	if (!a)
		return false;
	hd_lock_take(&a->lock);
	some = a->nnews > 0;
	if (some) {
		*news = a->news[0];
		memmove(a->news, a->news + 1, --a->nnews * sizeof *a->news);
	}
	hd_lock_give(&a->lock);
	return some;
}

static bool is_preempted(const struct link *l, int64_t now_ns)
{
	(void)now_ns;
	return l->standing.kind == HD_NOTICE_PREEMPT;
}

/* Of the notices that count. */
static bool first_end(struct hd_notice_agent *a, bool (*counts)(const struct link *l, int64_t now_ns),
	int64_t *left_ns)
{
	int64_t first_ns = INT64_MAX;

	if (!a)
		return false;
	int64_t now_ns = hd_clock_now_ns(a->spec.clock);
	hd_lock_take(&a->lock);
	for (uint32_t i = 0; i < a->nlinks; i++)
		if (counts(&a->link[i], now_ns) && a->link[i].standing.ends_ns < first_ns)
			first_ns = a->link[i].standing.ends_ns;
	hd_lock_give(&a->lock);
	if (first_ns != INT64_MAX && left_ns)
		*left_ns = first_ns - now_ns;
	return first_ns != INT64_MAX;
}

bool hd_notice_agent_leaves(struct hd_notice_agent *a, int64_t *left_ns)
{
	return first_end(a, is_near, left_ns);
}

bool hd_notice_agent_left(struct hd_notice_agent *a, int64_t *left_ns)
{
	return first_end(a, is_preempted, left_ns);
}

/* The first source by signal is the only one (notice/table.c), and no other thread looks at its watch. */
void hd_notice_agent_signal(struct hd_notice_agent *a, int number)
{
	struct hd_notice notice;

	for (uint32_t i = 0; a && i < a->nlinks; i++) {
		int64_t now_ns = hd_clock_now_ns(a->spec.clock);
		struct link *l = &a->link[i];
		if (!hd_notice_by_http(&l->watch) && !hd_notice_by_file(&l->watch) &&
			hd_notice_watch_signal(&l->watch, hd_signal_name(number), hd_proc_environment(),
			now_ns,
			hd_clock_wall_ns(a->spec.clock), &notice))
			note(a, l, &notice, now_ns);
	}
}

/* ---- the loop ---- */

static void failed(struct hd_notice_agent *a, struct link *l, const char *why)
{
	struct hd_diag said = { "" };

	hd_notice_watch_failed(&l->watch, hd_clock_now_ns(a->spec.clock), why, &said);
	log_line(a, said.text);
}

static void answered(struct hd_notice_agent *a, struct link *l, struct hd_notice_answer *answer)
{
	struct hd_notice notice;
	struct hd_diag said = { "" };

	answer->now_ns = hd_clock_now_ns(a->spec.clock);
	answer->wall_ns = hd_clock_wall_ns(a->spec.clock);
	if (hd_notice_watch_answer(&l->watch, answer, &notice, &said))
		note(a, l, &notice, answer->now_ns);
	log_line(a, said.text);
}

static void begin(struct hd_notice_agent *a, struct link *l)
{
	struct hd_diag why = { "" };
	struct hd_notice_ask ask;

	hd_notice_watch_ask(&l->watch, hd_clock_now_ns(a->spec.clock), &ask);
	if (hd_notice_call_begin(&l->call, &a->loop, (uint64_t)(l - a->link) + 1, &a->net, &l->place, &ask,
		&why))
		failed(a, l, why.text);
}

static void go_on(struct hd_notice_agent *a, struct link *l)
{
	struct hd_notice_answer answer = { .len = 0 };
	struct hd_diag why = { "" };
	enum hd_err err = hd_notice_call_go_on(&l->call, a->body, &answer, &why);

	if (!err)
		answered(a, l, &answer);
	else if (err != HD_E_AGAIN)
		failed(a, l, why.text);
}

static void look_at_file(struct hd_notice_agent *a, struct link *l)
{
	struct hd_notice_answer answer = { .status = 404, .body = "" };
	struct hd_notice_ask ask;
	struct hd_arena arena;
	uint8_t *bytes = NULL;
	size_t len = 0;

	hd_notice_watch_ask(&l->watch, hd_clock_now_ns(a->spec.clock), &ask);
	hd_arena_init(&arena, 0);
	if (*a->file && hd_file_read_all(a->spec.fs, a->file, &arena, HD_NOTICE_BODY - 1, &bytes, &len,
		NULL) == HD_OK)
		answer = (struct hd_notice_answer){ .status = 200, .body = (const char *)bytes, .len = len };
	answered(a, l, &answer);
	hd_arena_finish(&arena);
}

/* Begins what is due; the time at which something is due next. */
static int64_t look(struct hd_notice_agent *a)
{
	int64_t next_ns = hd_clock_now_ns(a->spec.clock) + IDLE_NS;

	for (uint32_t i = 0; i < a->nlinks; i++) {
		struct link *l = &a->link[i];
		int64_t now_ns = hd_clock_now_ns(a->spec.clock);
		if (l->call.loop && now_ns >= l->call.until_ns)
			go_on(a, l);
		else if (hd_notice_watch_next(&l->watch) <= now_ns && hd_notice_by_file(&l->watch))
			look_at_file(a, l);
		else if (hd_notice_watch_next(&l->watch) <= now_ns)
			begin(a, l);
		int64_t at_ns = l->call.loop ? l->call.until_ns : hd_notice_watch_next(&l->watch);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	return next_ns;
}

static void turn(struct hd_notice_agent *a)
{
	struct hd_loop_event event[HD_NOTICE_SOURCES];
	int64_t next_ns = look(a);
	size_t n = 0;

	if (hd_loop_poll(&a->loop, next_ns, event, HD_NOTICE_SOURCES, &n, NULL))
		hd_clock_wait_until(a->spec.clock, hd_clock_now_ns(a->spec.clock) + HD_NOTICE_S / 10);
	for (size_t i = 0; i < n; i++)
		if (event[i].tag && event[i].tag <= a->nlinks && a->link[event[i].tag - 1].call.loop)
			go_on(a, &a->link[event[i].tag - 1]);
}

/* Blocks until it is answered, has failed, or with `stoppable` the agent is to close. */
static enum hd_err ask_once(struct hd_notice_agent *a, struct link *l, const struct hd_notice_ask *ask,
	bool stoppable, struct hd_notice_answer *answer)
{
	struct hd_loop_event event;
	size_t n = 0;
	enum hd_err err = hd_notice_call_begin(&l->call, &a->loop, 1, &a->net, &l->place, ask, NULL);

	if (err)
		return err;
	do {
		err = hd_loop_poll(&a->loop, l->call.until_ns, &event, 1, &n, NULL);
		err = err ? err : hd_notice_call_go_on(&l->call, a->body, answer, NULL);
	} while (err == HD_E_AGAIN && !(stoppable && atomic_load(&a->closing)));
	hd_notice_call_end(&l->call);
	return err;
}

static enum hd_err set_up(struct hd_notice_agent *a, struct link *l, const struct hd_notice_source *source,
	struct hd_diag *diag)
{
	const char *base = a->spec.base ? a->spec.base : hd_notice_base(source);

	*l = (struct link){ .standing = { .kind = HD_NOTICE_NONE } };
	hd_notice_watch_init(&l->watch, source, &a->spec.settings, hd_clock_now_ns(a->spec.clock));
	return hd_notice_by_http(&l->watch) ? hd_notice_place(base, a->pid, &l->place, diag) : HD_OK;
}

/* Its first request is answered as its cloud would. */
static bool is_there(struct hd_notice_agent *a, const struct hd_notice_source *source)
{
	struct hd_notice_answer answer = { .len = 0 };
	struct hd_notice_ask ask;
	struct hd_notice notice;
	struct link *l = &a->probe;

	if (set_up(a, l, source, NULL))
		return false;
	hd_notice_watch_ask(&l->watch, hd_clock_now_ns(a->spec.clock), &ask);
	ask.timeout_ns = HD_NOTICE_PROBE_NS;
	enum hd_err err = ask_once(a, l, &ask, true, &answer);
	answer.now_ns = hd_clock_now_ns(a->spec.clock);
	answer.wall_ns = hd_clock_wall_ns(a->spec.clock);
	if (!err)
		(void)hd_notice_watch_answer(&l->watch, &answer, &notice, &(struct hd_diag){ "" });
	hd_notice_call_finish(&l->call);
	return !err && hd_notice_watch_answered(&l->watch);
}

static void probe(struct hd_notice_agent *a)
{
	const struct hd_notice_source *found = NULL;
	uint32_t known = a->choice.n;
	char line[160];

	for (uint32_t i = 0; i < a->choice.nprobes && !found && !atomic_load(&a->closing); i++)
		found = is_there(a, a->choice.probe[i]) ? a->choice.probe[i] : NULL;
	if (found)
		hd_notice_chosen(found, &a->choice);
	for (uint32_t i = known; i < a->choice.n; i++) {
		if (set_up(a, &a->link[i], a->choice.source[i], NULL))
			break;
		hd_lock_take(&a->lock);
		a->nlinks = i + 1;
		hd_lock_give(&a->lock);
	}
	snprintf(line, sizeof line, "elastic.notice.source auto: %s", found ? hd_notice_name(found) :
		"no cloud answers: signals and heddle stop --local alone");
	log_line(a, line);
}

/* Sources that wait for a word get it. */
static void approve(struct hd_notice_agent *a)
{
	struct hd_notice_answer answer = { .len = 0 };
	struct hd_notice_ask ask;

	for (uint32_t i = 0; i < a->nlinks; i++)
		hd_notice_call_end(&a->link[i].call);
	for (uint32_t i = 0; i < a->nlinks; i++)
		if (hd_notice_watch_approve(&a->link[i].watch, &ask) && ask_once(a, &a->link[i], &ask, false,
			&answer))
			fprintf(stderr, "notices of %s: it did not hear that this process has left\n",
				hd_notice_name(a->link[i].watch.source));
}

static void run(void *agent)
{
	struct hd_notice_agent *a = agent;

	if (a->choice.nprobes)
		probe(a);
	while (!atomic_load(&a->closing))
		turn(a);
	approve(a);
}

/* ---- open, close ---- */

static void finish(struct hd_notice_agent *a)
{
	for (uint32_t i = 0; i < HD_NOTICE_SOURCES; i++)
		hd_notice_call_finish(&a->link[i].call);
	hd_loop_finish(&a->loop);
	hd_lock_finish(&a->lock);
	hd_free(a);
}

enum hd_err hd_notice_agent_open(struct hd_notice_agent **agent, const struct hd_notice_agent_spec *spec,
	struct hd_diag *diag)
{
	struct hd_notice_choice choice;
	struct hd_proc_self self;

	*agent = NULL;
	hd_notice_choose(spec->source, hd_proc_environment(), &choice);
	if (!choice.n)
		return HD_OK;
	struct hd_notice_agent *a = hd_alloc(sizeof *a);
	if (!a)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the agent of notices");
	memset(a, 0, sizeof *a);
	a->spec = *spec;
	a->choice = choice;
	hd_proc_self(&self);
	a->pid = self.pid;
	hd_lock_init(&a->lock);
	hd_net_real(&a->net);
	a->net.world = true;              /* metadata services are no address of this machine */
	if (spec->file)
		snprintf(a->file, sizeof a->file, "%s", spec->file);
	else if (hd_notice_agent_file(a->file, NULL))
		a->file[0] = '\0';
	enum hd_err err = hd_loop_init(&a->loop, spec->clock, diag);
	for (uint32_t i = 0; i < choice.n && !err; i++)
		err = set_up(a, &a->link[a->nlinks++], choice.source[i], diag);
	if (!err)
		err = hd_thread_start(&a->thread, "notices", -1, run, a, diag);
	if (err)
		finish(a);
	else
		*agent = a;
	return err;
}

void hd_notice_agent_close(struct hd_notice_agent *a)
{
	if (!a)
		return;
	atomic_store(&a->closing, true);
	hd_loop_wake(&a->loop);
	hd_thread_join(&a->thread);
	finish(a);
}
