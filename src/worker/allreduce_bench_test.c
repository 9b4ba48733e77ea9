/* The leader and the members of the bench, each in a thread, against others that say what a test tells
 * them. */
#include "worker/allreduce_bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "tests/check.h"

enum { MOST = 3, LEADER = MOST, ROUNDS = 2, LEN = 5, LAST = HD_ALLREDUCE_WARMUP + ROUNDS, SAID = 32,
	PATIENCE_S = 100 };
/* Rows of the table of two members and one bucket: member 1's part to 0, and the sum from 0 to 1. */
enum { PART = 2, SUM = 5 };

struct said { uint32_t worker, id, len; uint64_t step; uint8_t bytes[MOST * HD_ADDR_CAP]; };

/* One that the test speaks for: a member, or the leader. */
struct party {
	struct hd_loop loop;
	struct hd_hub hub;
	struct said said[SAID];
	uint32_t nsaid, nups, nlosts, nparts, nsums;
	float part[LEN], sum[LEN];        /* what came last */
};

struct world {
	const char *name;                 /* of the case; NULL: there is one only */
	struct hd_clock clock, real;
	_Atomic int64_t ahead_ns;         /* of the machine's clock */
	struct hd_net net;
	char folder[32];
	struct hd_allreduce_bench bench;
	struct party party[MOST + 1];
	/* the processes that the leader believes in: exit codes, -1: it has not ended */
	struct hd_host host;
	_Atomic int early[MOST], late[MOST];      /* while it gathers; when it waits for them */
	_Atomic uint32_t nspawned, nwaits, nkills;
	uint32_t refused;                 /* the n-th start is; 0: none */
	char env[MOST][HD_ADDR_CAP + 40];
	_Atomic bool one_after_another;   /* 1 ends when it is known that 0 has */
	double ms[ROUNDS];
	struct hd_allreduce_times times;
	/* what runs */
	struct job {
		struct world *w;
		uint32_t me;
		struct hd_thread thread;
		struct hd_diag diag;
		enum hd_err err;
		_Atomic bool ended;
	} job[MOST + 1];
};

/* ---- the clock and the processes ---- */

static struct world *by_clock(struct hd_clock *clock)
{
	return (struct world *)((char *)clock - offsetof(struct world, clock));
}
static int64_t clock_now(struct hd_clock *clock)
{
	return hd_clock_now_ns(&by_clock(clock)->real) + by_clock(clock)->ahead_ns;
}
static int64_t clock_wall(struct hd_clock *clock) { return hd_clock_wall_ns(&by_clock(clock)->real); }
static void clock_wait(struct hd_clock *clock, int64_t at_ns)
{
	hd_clock_wait_until(&by_clock(clock)->real, at_ns - by_clock(clock)->ahead_ns);
}
static const struct hd_clock_ops clock_ops = { "ahead", clock_now, clock_wall, clock_wait };

static struct world *by_host(struct hd_host *host)
{
	return (struct world *)((char *)host - offsetof(struct world, host));
}
static enum hd_err host_spawn(struct hd_host *host, const struct hd_spawn *how, struct hd_proc *proc,
	struct hd_diag *diag)
{
	struct world *w = by_host(host);

	if (w->nspawned + 1 == w->refused) {
		w->refused = 0;
		return hd_fail(diag, HD_E_REFUSED, "not started");
	}
	snprintf(w->env[w->nspawned], sizeof w->env[0], "%s", how->env[0]);
	proc->pid = (int)++w->nspawned;
	return HD_OK;
}

static enum hd_err host_wait(struct hd_host *host, struct hd_proc *proc, int64_t timeout_ns, int *code,
	struct hd_diag *diag)
{
	struct world *w = by_host(host);
	int at = timeout_ns ? w->late[proc->pid - 1] : w->early[proc->pid - 1];

	(void)diag;
	w->nwaits += timeout_ns > 0;
	if (w->nkills)
		at = 137;
	if (at < 0)
		return HD_E_AGAIN;
	*code = at;
	if (w->one_after_another)
		w->early[1] = 4;
	return HD_OK;
}

static enum hd_err host_signal(struct hd_host *host, struct hd_proc *proc, enum hd_proc_signal what,
	struct hd_diag *diag)
{
	(void)proc;
	(void)diag;
	by_host(host)->nkills += what == HD_PROC_KILL;
	return HD_OK;
}
static const struct hd_host_ops host_ops = { "the test", host_spawn, host_wait, host_signal };

/* ---- parties ---- */

static void on_up(void *self, const struct hd_peer_info *peer) { (void)peer; ((struct party *)self)->nups++; }
static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	(void)worker, (void)why, (void)text, ((struct party *)self)->nlosts++;
}
static void on_suspect(void *self, uint32_t worker, int64_t ms) { (void)self, (void)worker, (void)ms; }
static void on_message(void *self, const struct hd_message *message)
{
	struct party *p = self;

	assert_true(p->nsaid < SAID && message->len <= sizeof p->said[0].bytes);
	struct said *said = &p->said[p->nsaid++];
	*said = (struct said){ message->worker, message->id, message->len, message->step, "" };
	if (message->len)
		memcpy(said->bytes, message->bytes, message->len);
}
static void on_arrived(void *self, const struct hd_arrival *arrival)
{
	struct party *p = self;

	if (arrival->transfer == SUM)
		p->nsums++;
	else
		p->nparts++;
	assert_int_equal(hd_hub_post(&p->hub, arrival->worker, arrival->transfer, arrival->buffer, NULL),
		HD_OK);
}
static void on_sent(void *self, const struct hd_sent *sent) { (void)self, (void)sent; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self, (void)worker, (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }

static struct world *enter(uint32_t n)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->clock.ops = &clock_ops;
	hd_clock_real(&w->real);
	hd_net_real(&w->net);
	memcpy(w->folder, "/tmp/hd_bench.XXXXXX", 21);
	assert_non_null(mkdtemp(w->folder));
	w->bench = (struct hd_allreduce_bench){ n, LEN * sizeof(float), "unix", ROUNDS, w->folder,
		&w->clock };
	w->host.ops = &host_ops;
	w->times.ms = w->ms;
	for (int i = 0; i < MOST; i++)
		w->early[i] = w->late[i] = -1;
	return w;
}

static struct party *join(struct world *w, uint32_t index, uint32_t worker)
{
	static const uint8_t key[HD_ALLREDUCE_KEY] = { 0 };
	struct party *p = &w->party[index];
	bool leads = worker == HD_ALLREDUCE_LEADER;
	struct hd_hub_config config = hd_allreduce_config(&w->bench, worker,
		leads ? HD_ROLE_COORDINATOR : HD_ROLE_WORKER, leads ? NULL : key);
	struct hd_wire_events events = { p, on_up, on_lost, on_suspect, on_message, on_arrived, on_sent,
		on_epoch, on_epoch, on_probed };
	struct hd_diag diag = { "" };
	char addr[HD_ADDR_CAP];

	config.peers_cap = 8;
	CHECK(!hd_loop_init(&p->loop, &w->real, &diag) && !hd_hub_init(&p->hub, &config, &events, &p->loop,
		&w->net, &diag), "%s", diag.text);
	snprintf(addr, sizeof addr, leads ? "unix:%s/leader" : "unix:%s/%u", w->folder, worker);
	CHECK(!hd_hub_listen(&p->hub, "unix", addr, &diag), "%s", diag.text);
	if (!leads)
		hd_hub_epoch(&p->hub, 1, (struct hd_hash){ "all-reduce" });
	return p;
}

static void part(struct party *p)
{
	hd_hub_finish(&p->hub);
	hd_loop_finish(&p->loop);
}

static void turn(struct world *w)
{
	struct hd_loop_event event;
	size_t n;

	for (int i = 0; i <= MOST; i++)
		if (w->party[i].hub.impl)
			assert_int_equal(hd_hub_poll(&w->party[i].hub, hd_clock_now_ns(&w->real) + 200000,
				&event, 1, &n, NULL), HD_OK);
}

#define UNTIL(w, what) \
	do { \
		int64_t end_ns = hd_clock_now_ns(&(w)->real) + PATIENCE_S * HD_NS_PER_S; \
		while (!(what)) { \
			turn(w); \
			CHECK(hd_clock_now_ns(&(w)->real) < end_ns, "waited too long"); \
		} \
	} while (0)

static void run(void *user)
{
	static const char *const argv[] = { "none", NULL };
	struct job *job = user;
	struct world *w = job->w;

	job->err = job->me == LEADER ? hd_allreduce_bench_lead(&w->bench, &w->host, argv, &w->times,
		&job->diag)
		: hd_allreduce_bench_member(&w->bench, job->me, &job->diag);
	job->ended = true;
}

static struct job *start(struct world *w, uint32_t me)
{
	struct job *job = &w->job[me];

	*job = (struct job){ .w = w, .me = me };
	assert_int_equal(hd_thread_start(&job->thread, "bench", -1, run, job, &job->diag), HD_OK);
	return job;
}

static void ends(struct job *job, enum hd_err err, const char *text)
{
	UNTIL(job->w, job->ended);
	hd_thread_join(&job->thread);
	CHECK(job->err == err && strstr(job->diag.text, text), "%s: it ended with %d: %s, not %d: %s",
		job->w->name ? job->w->name : "the end",
		(int)job->err, job->diag.text, (int)err, text);
}

static void leave(struct world *w)
{
	for (int i = 0; i <= MOST; i++) {
		hd_thread_join(&w->job[i].thread);
		part(&w->party[i]);
	}
	assert_int_equal(rmdir(w->folder), 0);
	free(w);
}

static void say(struct party *p, uint32_t to, uint32_t id, uint64_t step, size_t len)
{
	static const uint8_t bytes[MOST * HD_ADDR_CAP];
	struct hd_diag diag = { "" };

	CHECK(!hd_hub_tell(&p->hub, to, id, step, bytes, len, &diag), "%s", diag.text);
}

static uint32_t heard(const struct party *p, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nsaid; i++)
		n += p->said[i].id == id;
	return n;
}

/* ---- all of them ---- */

static void the_bench_sums_and_times_every_round(void **state)
{
	static const char *const transports[] = { "unix", "shm", "tcp", "tls" };

	(void)state;
	for (uint32_t n = 2; n <= MOST; n++)
		for (size_t i = 0; i < 4; i++) {
			struct world *w = enter(n);
			char env[HD_ADDR_CAP + 40];
			w->bench.transport = transports[i];
			for (uint32_t m = 0; m < n; m++)
				w->late[m] = 0;
			struct job *lead = start(w, LEADER);
			UNTIL(w, w->nspawned == n);
			for (uint32_t m = 0; m < n; m++)
				start(w, m);
			ends(lead, HD_OK, "");
			for (uint32_t m = 0; m < n; m++) {
				ends(&w->job[m], HD_OK, "");
				snprintf(env, sizeof env, HD_ALLREDUCE_MEMBER "=%u:%s", m, w->folder);
				assert_string_equal(w->env[m], env);
			}
			assert_true(w->times.checked && w->ms[0] > 0 && w->ms[1] > 0 && !w->nkills &&
				w->nwaits == n);
			leave(w);
		}
}

static void what_cannot_be_timed_is_refused(void **state)
{
	static const struct { struct hd_allreduce_bench bench; bool can; } cases[] = {
		{ { .n = 2, .bytes = 4, .rounds = 1 }, true },
		{ { .n = 16, .bytes = HD_ALLREDUCE_MOST, .rounds = 1000 }, true },
		{ { .n = 1, .bytes = 4, .rounds = 1 }, false },
		{ { .n = 17, .bytes = 4, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 0, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 6, .rounds = 1 }, false },
		{ { .n = 2, .bytes = HD_ALLREDUCE_MOST + 4, .rounds = 1 }, false },
		{ { .n = 2, .bytes = 4, .rounds = 0 }, false },
		{ { .n = 2, .bytes = 4, .rounds = 1001 }, false } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_allreduce_bench_verify(&cases[i].bench,
			&(struct hd_diag){ "" }) == (cases[i].can ? HD_OK : HD_E_INVAL), "case %zu", i);
}

/* ---- the leader ---- */

static struct job *led(struct world *w, uint32_t first, uint32_t n)
{
	struct job *lead = start(w, LEADER);
	char addr[HD_ADDR_CAP];

	UNTIL(w, w->nspawned == w->bench.n);
	hd_allreduce_leader_addr(&w->bench, addr);
	for (uint32_t m = 0; m < n; m++) {
		struct party *p = join(w, m, first + m);
		assert_int_equal(hd_hub_connect(&p->hub, HD_ALLREDUCE_LEADER, "unix", addr, NULL), HD_OK);
		UNTIL(w, heard(p, HD_SAYS_START) == 1);
	}
	return lead;
}

static void what_a_member_says_it_says_once_and_in_order(void **state)
{
	static const struct {
		const char *name;
		uint32_t worker;
		struct { uint32_t id; size_t len; } say[3];
	} bad[] = {
		{ "an address twice", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_ADDR, HD_ADDR_CAP } } },
		{ "a short address", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP - 1 } } },
		{ "times before an address", 0, { { HD_SAYS_RESULT, ROUNDS * 8 } } },
		{ "times twice", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_RESULT, ROUNDS * 8 },
			{ HD_SAYS_RESULT, ROUNDS * 8 } } },
		{ "too few times", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_RESULT, ROUNDS * 8 - 8 } } },
		{ "what is not for it", 0, { { HD_SAYS_READY, HD_ADDR_CAP } } },
		{ "what is not for it, later", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP },
			{ HD_SAYS_READY, ROUNDS * 8 } } },
		{ "an address of a stranger", 5, { { HD_SAYS_ADDR, HD_ADDR_CAP } } },
		{ "times of a stranger", 5, { { HD_SAYS_RESULT, ROUNDS * 8 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct world *w = enter(2);
		struct job *lead = led(w, bad[i].worker, 1);
		char text[40];
		for (int k = 0; k < 3 && bad[i].say[k].id; k++)
			say(&w->party[0], HD_ALLREDUCE_LEADER, bad[i].say[k].id, 0, bad[i].say[k].len);
		snprintf(text, sizeof text, "member %u said", bad[i].worker);
		w->name = bad[i].name;
		ends(lead, HD_E_PROTOCOL, text);
		assert_true(!w->times.checked && w->nkills == 2);
		leave(w);
	}
}

static void addresses_are_told_when_all_are_here_and_times_are_the_slowest(void **state)
{
	static const uint64_t ns[2][ROUNDS] = { { 5000000, 1000000 }, { 2000000, 7000000 } };
	struct world *w = enter(2);
	struct job *lead = led(w, 0, 1);
	char addr[HD_ADDR_CAP];
	uint8_t bytes[ROUNDS * 8];

	(void)state;
	for (uint32_t m = 0; m < 2; m++) {        /* member 1 comes when 0 has said all */
		struct party *p = &w->party[m];
		w->late[m] = 0;
		if (m) {
			p = join(w, 1, 1);
			hd_allreduce_leader_addr(&w->bench, addr);
			assert_int_equal(hd_hub_connect(&p->hub, HD_ALLREDUCE_LEADER, "unix", addr, NULL),
				HD_OK);
			UNTIL(w, p->nups == 1);
		}
		snprintf(addr, sizeof addr, "address of %u", m);
		assert_int_equal(hd_hub_tell(&p->hub, HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, addr, sizeof addr,
			NULL), HD_OK);
		for (int r = 0; r < ROUNDS; r++)
			hd_put64(bytes + 8 * r, ns[m][r]);
		if (m)
			UNTIL(w, heard(&w->party[0], HD_SAYS_PEERS) && heard(&w->party[1], HD_SAYS_PEERS));
		assert_int_equal(hd_hub_tell(&p->hub, HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, bytes,
			sizeof bytes, NULL), HD_OK);
	}
	for (uint32_t m = 0; m < 2; m++) {
		const struct said *said = &w->party[m].said[1];
		assert_true(said->id == HD_SAYS_PEERS && said->len == 2 * HD_ADDR_CAP);
		assert_string_equal((const char *)said->bytes, "address of 0");
		assert_string_equal((const char *)said->bytes + HD_ADDR_CAP, "address of 1");
	}
	ends(lead, HD_OK, "");
	assert_true(w->times.checked && w->ms[0] > 4.99 && w->ms[0] < 5.01 && w->ms[1] > 6.99 &&
		w->ms[1] < 7.01);
	leave(w);
}

/* Both members have said all; then they are waited for, one after the other. */
static void members_are_waited_for_when_all_is_summed(void **state)
{
	static const struct { int late[2]; enum hd_err err; const char *text; uint32_t nwaits; } cases[] = {
		{ { 0, 0 }, HD_OK, "", 2 },
		{ { 4, 0 }, HD_E_WORKERS, "member 0 of 2 ended with exit code 4 after all was summed", 1 },
		{ { 0, 4 }, HD_E_WORKERS, "member 1 of 2 ended with exit code 4 after all was summed", 2 },
		{ { -1, 0 }, HD_E_WORKERS, "member 0 of 2 has not ended 60 s after all was summed", 1 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		for (int m = 0; m < 2; m++)
			w->late[m] = cases[i].late[m];
		struct job *lead = led(w, 0, 2);
		for (int m = 0; m < 2; m++) {
			say(&w->party[m], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
			say(&w->party[m], HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, ROUNDS * 8);
		}
		ends(lead, cases[i].err, cases[i].text);
		CHECK(w->times.checked == !cases[i].err && w->nwaits >= cases[i].nwaits, "case %zu", i);
		leave(w);
	}
}

static void a_member_that_is_lost_is_told_of_by_what_it_did(void **state)
{
	static const struct { enum hd_close why; int early; enum hd_err err; const char *text; } cases[] = {
		{ HD_CLOSE_FRAME, -1, HD_E_PROTOCOL, "member 0: " },
		{ HD_CLOSE_CHECKSUM, -1, HD_E_PROTOCOL, "member 0: " },
		{ HD_CLOSE_DONE, 3, HD_E_WORKERS, "member 0 of 2 ended with exit code 3 before" },
		{ HD_CLOSE_GONE, 0, HD_E_WORKERS, "member 0 of 2 ended with exit code 0 before" } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		struct job *lead = led(w, 0, 1);
		hd_hub_drop(&w->party[0].hub, HD_ALLREDUCE_LEADER, cases[i].why, "for the test");
		UNTIL(w, w->party[0].nlosts || lead->ended);
		w->early[0] = cases[i].early;
		ends(lead, cases[i].err, cases[i].text);
		/* it does not wait for those that it kills as for those that go */
		assert_int_equal(w->nwaits, w->nkills);
		leave(w);
	}
}

static void a_member_that_ends_early_ends_all_with_its_own_words(void **state)
{
	struct world *w = enter(2);

	(void)state;
	struct job *lead = led(w, 0, 1);
	w->early[1] = hd_err_exit(HD_E_INTEGRITY);
	ends(lead, HD_E_INTEGRITY, "member 1 of 2");
	leave(w);
	w = enter(2);
	w->one_after_another = true;
	lead = led(w, 0, 1);
	w->early[0] = 3;
	/* not those of one that ended after it */
	ends(lead, HD_E_WORKERS, "member 0 of 2 ended with exit code 3 before");
	leave(w);
}

static void the_leader_does_not_wait_for_ever(void **state)
{
	struct world *w = enter(2);
	struct job *lead = led(w, 0, 2);

	(void)state;
	say(&w->party[0], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
	say(&w->party[0], HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, ROUNDS * 8);
	say(&w->party[1], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
	UNTIL(w, heard(&w->party[0], HD_SAYS_PEERS));
	w->ahead_ns += (LAST + 1) * HD_ALLREDUCE_PATIENCE_NS;
	ends(lead, HD_E_WORKERS, "1 of 2 members have not finished in time");
	leave(w);
	w = enter(2);
	lead = led(w, 0, 1);
	hd_signal_stop_set(HD_STOP_INTERRUPT);
	ends(lead, HD_E_INTERRUPT, "ended by");
	hd_signal_stop_set(HD_STOP_NONE);
	leave(w);
}

static enum hd_err leads(struct world *w, struct hd_diag *diag)
{
	static const char *const argv[] = { "none", NULL };

	diag->text[0] = 0;
	return hd_allreduce_bench_lead(&w->bench, &w->host, argv, &w->times, diag);
}

static enum hd_err follows(struct world *w, struct hd_diag *diag)
{
	diag->text[0] = 0;
	return hd_allreduce_bench_member(&w->bench, 1, diag);
}

static void what_cannot_begin_starts_nobody(void **state)
{
	struct world *w = enter(3);
	struct hd_diag diag, other = { "" };
	struct hd_loop loop;

	(void)state;
	w->refused = 2;
	assert_int_equal(leads(w, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text, "not started");
	assert_true(w->nspawned == 1 && w->nkills == 1);
	w->nspawned = 0;
	/* Without memory for the loop, and then for the hub. */
	hd_alloc_arm(1);
	assert_int_equal(hd_loop_init(&loop, &w->real, &other), HD_E_NOMEM);
	hd_alloc_arm(0);
	assert_int_equal(hd_loop_init(&loop, &w->real, &diag), HD_OK);
	uint64_t n = hd_alloc_count();
	hd_loop_finish(&loop);
	for (int hub = 0; hub < 2; hub++) {
		hd_alloc_arm(hub ? n + 1 : 1);
		assert_int_equal(leads(w, &diag), HD_E_NOMEM);
		assert_string_equal(diag.text, hub ? "out of memory for a hub" : other.text);
		hd_alloc_arm(hub ? n + 1 : 1);
		assert_int_equal(follows(w, &diag), HD_E_NOMEM);
		assert_string_equal(diag.text, hub ? "out of memory for a hub" : other.text);
		hd_alloc_arm(0);
	}
	w->bench.folder = "/tmp/hd_bench.there_is_none";
	assert_int_not_equal(leads(w, &diag), HD_OK);
	assert_int_equal(w->nspawned, 0);
	assert_int_not_equal(follows(w, &diag), HD_OK);       /* there is no one to be asked */
	assert_non_null(strstr(diag.text, "there_is_none/leader"));
	w->bench.bytes = UINT64_C(1) << 62;
	assert_int_equal(follows(w, &diag), HD_E_NOMEM);
	leave(w);
}

/* ---- a member ---- */

/* Member `me` of two, or of `n`, with the key; the test is the leader. */
static struct job *with_key(struct world *w, uint32_t me)
{
	struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
	struct job *member = start(w, me);

	UNTIL(w, leader->nups == 1);
	say(leader, me, HD_SAYS_START, 0, HD_ALLREDUCE_KEY);
	UNTIL(w, heard(leader, HD_SAYS_ADDR) == 1);
	return member;
}

/* And the other member too: they are connected, with the channel of one bucket, which is member 0's. */
static struct job *met(struct world *w, uint32_t me)
{
	static const struct hd_transfer root = { PART, 0, LEN * sizeof(float) },
		sum = { SUM, 1, LEN * sizeof(float) };
	struct job *member = with_key(w, me);
	struct party *leader = &w->party[LEADER], *other = join(w, 1 - me, 1 - me);
	char addrs[2 * HD_ADDR_CAP] = "";

	for (int m = 0; m < 2; m++)
		snprintf(addrs + m * HD_ADDR_CAP, HD_ADDR_CAP, "unix:%s/%d", w->folder, m);
	assert_int_equal(hd_hub_tell(&leader->hub, me, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL), HD_OK);
	if (!me)
		assert_int_equal(hd_hub_connect(&other->hub, 0, "unix", addrs, NULL), HD_OK);
	UNTIL(w, other->nups == 1);
	assert_int_equal(me ? hd_hub_channel(&other->hub, 1, &root, 1, &sum, 1,
		NULL) : hd_hub_channel(&other->hub, 0, &sum, 1, &root, 1, NULL), HD_OK);
	assert_int_equal(me ? hd_hub_post(&other->hub, 1, PART, other->part, NULL) : hd_hub_post(&other->hub,
		0, SUM, other->sum, NULL), HD_OK);
	return member;
}

/* What member 0 has to add, by its sum with zeros; it ends, as that is not the sum that should be. */
static void learn(float values[LEN])
{
	static const float zeros[LEN];
	struct world *w = enter(2);
	struct job *member = met(w, 0);
	struct party *other = &w->party[1];

	say(other, 0, HD_SAYS_READY, 1, 0);
	UNTIL(w, heard(other, HD_SAYS_GO));
	assert_int_equal(hd_hub_send(&other->hub, 0, &(struct hd_send){ .transfer = PART, .step = 1,
		.bytes = zeros, .len = sizeof zeros }, NULL), HD_OK);
	UNTIL(w, other->nsums == 1);
	memcpy(values, other->sum, sizeof other->sum);
	ends(member, HD_E_INTEGRITY, "element 0 of the sum at member 0");
	leave(w);
}

/* Member 0 plays with member 1: right sums, but in round `wrong`. */
static void play(struct world *w, const float values[LEN], uint32_t wrong, uint32_t rounds)
{
	struct party *zero = &w->party[0];
	static float sum[LEN];

	for (uint32_t r = 1; r <= rounds; r++) {
		UNTIL(w, heard(zero, HD_SAYS_READY) == r);
		assert_true(zero->said[zero->nsaid - 1].step == r);
		say(zero, 1, HD_SAYS_GO, r, 0);
		UNTIL(w, zero->nparts == r);
		for (int k = 0; k < LEN; k++)
			sum[k] = r == wrong && k == LEN - 1 ? 0.0f : values[k] + zero->part[k];
		assert_int_equal(hd_hub_send(&zero->hub, 1, &(struct hd_send){ .transfer = SUM, .step = r,
			.bytes = sum, .len = sizeof sum }, NULL), HD_OK);
		turn(w);
		if (r == wrong && w->job[1].ended)
			return;
	}
}

static void the_first_round_and_the_last_are_compared(void **state)
{
	static const uint32_t wrongs[] = { 0, 1, 3, LAST };
	float values[LEN];

	(void)state;
	learn(values);
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		struct job *member = met(w, 1);
		struct party *leader = &w->party[LEADER];
		bool bad = wrongs[i] == 1 || wrongs[i] == LAST;
		play(w, values, wrongs[i], bad ? wrongs[i] : LAST);
		if (bad) {
			ends(member, HD_E_INTEGRITY, "element 4 of the sum at member 1");
			assert_int_equal(heard(leader, HD_SAYS_RESULT), 0);
		/* after it has reported its times a member may go, and the leader ends it */
		} else {
			UNTIL(w, heard(leader, HD_SAYS_RESULT) == 1);
			const struct said *said = &leader->said[leader->nsaid - 1];
			assert_int_equal(said->len, ROUNDS * 8);
			assert_true(hd_get64(said->bytes) > 0 && hd_get64(said->bytes + 8) > 0);
			part(&w->party[0]);
			hd_hub_probe(&leader->hub, 1);
			turn(w);
			assert_false(member->ended);
			part(leader);
			ends(member, HD_OK, "");
		}
		leave(w);
	}
}

static void what_is_told_is_told_once_and_by_whom_it_should(void **state)
{
	static const struct { const char *name; uint32_t me; bool meets; uint32_t by,
		id; uint64_t step; size_t len; int times; } bad[] = {
		{ "a key again", 1, false, LEADER, HD_SAYS_START, 0, HD_ALLREDUCE_KEY, 1 },
		{ "addresses that are too few", 1, false, LEADER, HD_SAYS_PEERS, 0, HD_ADDR_CAP, 1 },
		{ "what is said to it alone, as long as a key", 1, false, LEADER, HD_SAYS_RESULT, 0,
			HD_ALLREDUCE_KEY, 1 },
		{ "what is said to it alone, as long as addresses", 1, false, LEADER, HD_SAYS_ADDR, 0,
			2 * HD_ADDR_CAP, 1 },
		{ "the word to begin, of the leader", 1, false, LEADER, HD_SAYS_GO, 1, 0, 1 },
		{ "readiness, of the leader", 0, false, LEADER, HD_SAYS_READY, 1, 0, 1 },
		{ "addresses again", 1, true, LEADER, HD_SAYS_PEERS, 0, 2 * HD_ADDR_CAP, 1 },
		{ "a key by a member", 1, true, 0, HD_SAYS_START, 0, HD_ALLREDUCE_KEY, 1 },
		{ "addresses by a member", 1, true, 0, HD_SAYS_PEERS, 0, 2 * HD_ADDR_CAP, 1 },
		{ "the word for a later round", 1, true, 0, HD_SAYS_GO, 2, 0, 1 },
		{ "the word for no round", 1, true, 0, HD_SAYS_GO, 0, 0, 1 },
		{ "the word again", 1, true, 0, HD_SAYS_GO, 1, 0, 2 },
		{ "readiness, unasked", 1, true, 0, HD_SAYS_READY, 1, 0, 1 },
		{ "readiness for a later round", 0, true, 1, HD_SAYS_READY, 2, 0, 1 },
		{ "the word, to its sender", 0, true, 1, HD_SAYS_GO, 1, 0, 1 },
		{ "readiness again", 0, true, 1, HD_SAYS_READY, 1, 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct world *w = enter(2);
		struct job *member = bad[i].meets ? met(w, bad[i].me) : with_key(w, bad[i].me);
		w->name = bad[i].name;
		if (bad[i].meets && bad[i].me)
			UNTIL(w, heard(&w->party[0], HD_SAYS_READY));
		for (int k = 0; k < bad[i].times; k++)
			say(&w->party[bad[i].by], bad[i].me, bad[i].id, bad[i].step, bad[i].len);
		ends(member, HD_E_PROTOCOL, "has no place here");
		leave(w);
	}
	struct world *w = enter(2);               /* before it has a key */
	struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
	struct job *member = start(w, 1);
	UNTIL(w, leader->nups == 1);
	say(leader, 1, HD_SAYS_START, 0, HD_ALLREDUCE_KEY - 1);
	ends(member, HD_E_PROTOCOL, "has no place here");
	leave(w);
}

/* Three members: with 0 there, 1 is not ready for another. */
static void member_zero_waits_for_each_of_the_others(void **state)
{
	struct world *w = enter(3);
	struct job *member = with_key(w, 0);
	struct party *leader = &w->party[LEADER];
	char addrs[3 * HD_ADDR_CAP] = "";

	(void)state;
	snprintf(addrs, sizeof addrs, "unix:%s/0", w->folder);
	assert_int_equal(hd_hub_tell(&leader->hub, 0, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL), HD_OK);
	for (uint32_t m = 1; m < 3; m++) {
		struct party *p = join(w, m, m);
		assert_int_equal(hd_hub_connect(&p->hub, 0, "unix", addrs, NULL), HD_OK);
		UNTIL(w, p->nups == 1);
	}
	say(&w->party[1], 0, HD_SAYS_READY, 1, 0);
	say(&w->party[2], 0, HD_SAYS_READY, 1, 0);
	UNTIL(w, heard(&w->party[1], HD_SAYS_GO) == 1 && heard(&w->party[2], HD_SAYS_GO) == 1);
	/* of the next round, before this one is over there */
	say(&w->party[2], 0, HD_SAYS_READY, 2, 0);
	say(&w->party[2], 0, HD_SAYS_READY, 2, 0);
	ends(member, HD_E_PROTOCOL, "has no place here");
	leave(w);
}

static void who_is_lost_before_the_end_ends_a_member(void **state)
{
	static const char *const texts[] = { "lost the leader, 16", "lost member 0" };

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		struct world *w = enter(2);
		struct job *member = met(w, 1);
		say(&w->party[0], 1, HD_SAYS_GO, 1, 0);
		UNTIL(w, w->party[0].nparts == 1);
		part(&w->party[lost ? 0 : LEADER]);
		ends(member, HD_E_PEERLOST, texts[lost]);
		leave(w);
	}
}

/* Time goes by: a member that is waited for hears a ping, looks at the clock, and ends with the name of what
 * it waited for. */
static void a_member_does_not_wait_for_ever(void **state)
{
	static const char *const texts[] = { "waited 60 s for the leader", "for the addresses of the others",
		"for the word to begin", "for the sums of a round" };

	(void)state;
	for (int what = 0; what < 4; what++) {
		struct world *w = enter(2);
		struct party *leader = &w->party[LEADER];
		struct job *member;
		if (what) {
			member = what == 1 ? with_key(w, 1) : met(w, 1);
			if (what >= 2)
				UNTIL(w, heard(&w->party[0], HD_SAYS_READY));
			if (what == 3) {
				say(&w->party[0], 1, HD_SAYS_GO, 1, 0);
				UNTIL(w, w->party[0].nparts == 1);
			}
		} else {
			leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
			member = start(w, 1);
			UNTIL(w, leader->nups == 1);
		}
		for (int i = 0; i < 20; i++)
			turn(w);
		assert_false(member->ended);
		w->ahead_ns += HD_ALLREDUCE_PATIENCE_NS + HD_NS_PER_S;
		hd_hub_probe(&leader->hub, 1);
		ends(member, HD_E_PEERLOST, texts[what]);
		leave(w);
	}
}

static void members_listen_where_their_transport_can_be_reached(void **state)
{
	static const struct { const char *transport, *at; } cases[] = {
		{ "unix", "unix:/tmp/" }, { "shm", "unix:/tmp/" },
		{ "tcp", "tcp:127.0.0.1:" }, { "tls", "tcp:127.0.0.1:" } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		w->bench.transport = cases[i].transport;
		struct job *member = with_key(w, 1);
		const struct said *said = &w->party[LEADER].said[0];
		CHECK(!strncmp((const char *)said->bytes, cases[i].at, strlen(cases[i].at)), "%s: %s",
			cases[i].transport, (const char *)said->bytes);
		part(&w->party[LEADER]);
		ends(member, HD_E_PEERLOST, "lost the leader");
		leave(w);
	}
}

/* Where it would listen somebody listens; one of two to be called has an address that is none. */
static void a_member_that_cannot_listen_or_call_says_so(void **state)
{
	struct world *w = enter(2);
	struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
	char addrs[3 * HD_ADDR_CAP] = "nowhere";

	(void)state;
	join(w, 1, 1);
	struct job *member = start(w, 1);
	UNTIL(w, leader->nups == 1);
	say(leader, 1, HD_SAYS_START, 0, HD_ALLREDUCE_KEY);
	ends(member, HD_E_REFUSED, "/1");
	leave(w);
	w = enter(3);
	member = with_key(w, 2);
	join(w, 1, 1);
	snprintf(addrs + HD_ADDR_CAP, HD_ADDR_CAP, "unix:%s/1", w->folder);
	assert_int_equal(hd_hub_tell(&w->party[LEADER].hub, 2, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL),
		HD_OK);
	ends(member, HD_E_INVAL, "nowhere");
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_timed_is_refused),
		cmocka_unit_test(what_cannot_begin_starts_nobody),
		cmocka_unit_test(the_bench_sums_and_times_every_round),
		cmocka_unit_test(what_a_member_says_it_says_once_and_in_order),
		cmocka_unit_test(addresses_are_told_when_all_are_here_and_times_are_the_slowest),
		cmocka_unit_test(members_are_waited_for_when_all_is_summed),
		cmocka_unit_test(a_member_that_is_lost_is_told_of_by_what_it_did),
		cmocka_unit_test(a_member_that_ends_early_ends_all_with_its_own_words),
		cmocka_unit_test(the_leader_does_not_wait_for_ever),
		cmocka_unit_test(the_first_round_and_the_last_are_compared),
		cmocka_unit_test(what_is_told_is_told_once_and_by_whom_it_should),
		cmocka_unit_test(member_zero_waits_for_each_of_the_others),
		cmocka_unit_test(who_is_lost_before_the_end_ends_a_member),
		cmocka_unit_test(a_member_does_not_wait_for_ever),
		cmocka_unit_test(members_listen_where_their_transport_can_be_reached),
		cmocka_unit_test(a_member_that_cannot_listen_or_call_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
