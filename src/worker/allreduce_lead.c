#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "sys/crypto.h"
#include "sys/signal.h"
#include "worker/allreduce_bench_int.h"

/* how often it is asked whether a process has ended, or somebody wants an end */
enum { LOOK_MS = 100 };

struct leader {
	const struct hd_allreduce_bench *bench;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_proc proc[HD_ALLREDUCE_MEMBERS];
	uint8_t key[HD_ALLREDUCE_KEY];
	uint8_t addrs[HD_ALLREDUCE_MEMBERS * HD_ADDR_CAP];
	uint32_t addrs_of, results_of;    /* bits of members that have said it */
	struct hd_allreduce_times *times;
	enum hd_err err;
	struct hd_diag diag;
};

static void failed(struct leader *l, enum hd_err err) { l->err = l->err ? l->err : err; }
static uint32_t all_of(const struct leader *l) { return (1u << l->bench->n) - 1; }

/* ---- what the hub says ---- */

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct leader *l = self;
	failed(l, hd_hub_tell(&l->hub, peer->worker, HD_SAYS_START, 0, l->key, sizeof l->key, &l->diag));
}

static void got_addr(struct leader *l, const struct hd_message *message)
{
	memcpy(l->addrs + message->worker * HD_ADDR_CAP, message->bytes, HD_ADDR_CAP);
	l->addrs_of |= 1u << message->worker;
	if (l->addrs_of == all_of(l))
		for (uint32_t i = 0; i < l->bench->n; i++)
			failed(l, hd_hub_tell(&l->hub, i, HD_SAYS_PEERS, 0, l->addrs,
				l->bench->n * HD_ADDR_CAP, &l->diag));
}

static void got_result(struct leader *l, const struct hd_message *message)
{
	for (uint32_t r = 0; r < hd_allreduce_bench_times(l->bench); r++) {
		double ms = (double)hd_get64((const uint8_t *)message->bytes + r * sizeof(uint64_t)) * 1e-6;
		if (ms > l->times->ms[r])
			l->times->ms[r] = ms;
	}
	l->results_of |= 1u << message->worker;
}

/* Each member says where it listens, then how long its rounds took: once. */
static void on_message(void *self, const struct hd_message *message)
{
	struct leader *l = self;
	/* 0: it is no member */
	uint32_t bit = message->worker < l->bench->n ? 1u << message->worker : 0;
	bool has_addr = l->addrs_of & bit, has_result = l->results_of & bit;

	if (bit && !has_addr && message->id == HD_SAYS_ADDR && message->len == HD_ADDR_CAP)
		got_addr(l, message);
	else if (has_addr && !has_result && message->id == HD_SAYS_RESULT &&
		 message->len == hd_allreduce_bench_times(l->bench) * sizeof(uint64_t))
		got_result(l, message);
	else
		failed(l, hd_fail(&l->diag, HD_E_PROTOCOL, "member %u said %u in %u bytes", message->worker,
			message->id, message->len));
}

/* The exit code says how a member ended; one that broke a rule did not end. */
static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct leader *l = self;

	if (hd_close_blame(why) == HD_BLAME_PEER || why == HD_CLOSE_CHECKSUM)
		failed(l, hd_fail(&l->diag, HD_E_PROTOCOL, "member %u: %s", worker, text));
}
static void on_suspect(void *self, uint32_t worker, int64_t silent_ms) { (void)self, (void)worker,
	(void)silent_ms; }
static void on_arrived(void *self, const struct hd_arrival *arrival) { (void)self, (void)arrival; }
static void on_sent(void *self, const struct hd_sent *sent) { (void)self, (void)sent; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self, (void)worker, (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }

/* ---- life ---- */

static enum hd_err begin(struct leader *l)
{
	struct hd_hub_config config = hd_allreduce_config(l->bench, HD_ALLREDUCE_LEADER, HD_ROLE_COORDINATOR,
		NULL);
	struct hd_wire_events events = { l, on_up, on_lost, on_suspect, on_message, on_arrived, on_sent,
		on_epoch, on_epoch, on_probed };
	char addr[HD_ADDR_CAP];

	hd_allreduce_leader_addr(l->bench, addr);
	hd_net_real(&l->net);
	enum hd_err err = hd_random_bytes(l->key, sizeof l->key, &l->diag);
	if (!err)
		err = hd_loop_init(&l->loop, l->bench->clock, &l->diag);
	if (!err)
		err = hd_hub_init(&l->hub, &config, &events, &l->loop, &l->net, &l->diag);
	return err ? err : hd_hub_listen(&l->hub, "unix", addr, &l->diag);
}

static enum hd_err start_all(struct leader *l, struct hd_host *host, const char *const *argv)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < l->bench->n && !err; i++) {
		char member[HD_ADDR_CAP + 40];
		snprintf(member, sizeof member, HD_ALLREDUCE_MEMBER "=%u:%s", i, l->bench->folder);
		struct hd_spawn how = { .argv = argv, .env = (const char *const[]){ member, NULL }, .in = -1,
			.out = 2, .err = -1 };
		err = hd_proc_spawn(host, &how, &l->proc[i], &l->diag);
	}
	return err;
}

/* A member that ended before its time has said why on stderr. */
static void look_at(struct leader *l, uint32_t i)
{
	int code;

	if (hd_proc_wait(&l->proc[i], 0, &code, NULL))
		return;
	failed(l, hd_fail(&l->diag, code == hd_err_exit(HD_E_INTEGRITY) ? HD_E_INTEGRITY : HD_E_WORKERS,
		"member %u of %u ended with exit code %d before all was summed", i, l->bench->n, code));
}

static enum hd_err gather(struct leader *l)
{
	int64_t rounds = hd_allreduce_bench_times(l->bench) + HD_ALLREDUCE_WARMUP + 1 + l->bench->ncases,
		deadline_ns = hd_clock_now_ns(l->bench->clock) + rounds * HD_ALLREDUCE_PATIENCE_NS;
	struct hd_loop_event event;
	size_t n;

	while (!l->err && l->results_of != all_of(l)) {
		int64_t now = hd_clock_now_ns(l->bench->clock);
		if (now >= deadline_ns)
			failed(l, hd_fail(&l->diag, HD_E_WORKERS,
				"%d of %u members have not finished in time",
				__builtin_popcount(all_of(l) & ~l->results_of), l->bench->n));
		failed(l, hd_hub_poll(&l->hub, now + LOOK_MS * HD_NS_PER_MS, &event, 1, &n, &l->diag));
		for (uint32_t i = 0; i < l->bench->n; i++)
			look_at(l, i);
		enum hd_stop stop = hd_signal_stop();
		if (stop)
			failed(l, hd_fail(&l->diag, hd_stop_err(stop), "ended by %s",
				hd_signal_name(hd_signal_number())));
	}
	return l->err;
}

/* They end when the leader has gone; one that does not is ended. */
static enum hd_err dismiss(struct leader *l)
{
	enum hd_err err = HD_OK;
	int code;

	hd_hub_finish(&l->hub);
	for (uint32_t i = 0; i < l->bench->n && !err; i++) {
		err = hd_proc_wait(&l->proc[i], HD_ALLREDUCE_PATIENCE_NS, &code, &l->diag);
		if (err == HD_E_AGAIN)
			err = hd_fail(&l->diag, HD_E_WORKERS,
				"member %u of %u has not ended %d s after all was summed",
				i, l->bench->n, (int)(HD_ALLREDUCE_PATIENCE_NS / HD_NS_PER_S));
		else if (!err && code)
			err = hd_fail(&l->diag, HD_E_WORKERS,
				"member %u of %u ended with exit code %d after all was summed", i,
				l->bench->n, code);
	}
	return err;
}

static enum hd_err verify_cases(const struct hd_allreduce_bench *bench, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (bench->ncases > HD_ALLREDUCE_CASES ||
		hd_allreduce_bench_times(bench) > HD_TELL_MAX / sizeof(uint64_t))
		return hd_fail(diag, HD_E_INVAL, "%u cases of %u rounds; at most %d, and %d times",
			bench->ncases,
			bench->rounds, HD_ALLREDUCE_CASES, (int)(HD_TELL_MAX / sizeof(uint64_t)));
	for (uint32_t i = 0; i < bench->ncases && !err; i++) {
		const struct hd_allreduce_case *c = &bench->cases[i];
		err = hd_collective_check(c->kind, &c->shape, diag);
		if (!err && (c->shape.p != bench->n || c->bytes < sizeof(float) || c->bytes % sizeof(float) ||
			c->bytes > bench->bytes || c->bytes > HD_ALLREDUCE_CASE_MOST))
			err = hd_fail(diag, HD_E_INVAL,
				"%llu bytes; 4 to %llu are summed by a primitive, a multiple of 4",
				(unsigned long long)c->bytes, (unsigned long long)HD_ALLREDUCE_CASE_MOST);
	}
	return err;
}

enum hd_err hd_allreduce_bench_verify(const struct hd_allreduce_bench *bench, struct hd_diag *diag)
{
	if (bench->n < 2 || bench->n > HD_ALLREDUCE_MEMBERS)
		return hd_fail(diag, HD_E_INVAL, "%u members; 2 to %d can sum", bench->n,
			HD_ALLREDUCE_MEMBERS);
	if (bench->bytes < sizeof(float) || bench->bytes % sizeof(float) || bench->bytes > HD_ALLREDUCE_MOST)
		return hd_fail(diag, HD_E_INVAL,
			"%llu bytes; floats are summed: 4 to %llu bytes, a multiple of 4",
			(unsigned long long)bench->bytes,
			(unsigned long long)HD_ALLREDUCE_MOST);
	if (bench->rounds < 1 || bench->rounds > HD_ALLREDUCE_ROUNDS)
		return hd_fail(diag, HD_E_INVAL, "%u rounds; 1 to %d can be timed", bench->rounds,
			HD_ALLREDUCE_ROUNDS);
	return verify_cases(bench, diag);
}

enum hd_err hd_allreduce_bench_lead(const struct hd_allreduce_bench *bench, struct hd_host *host,
	const char *const *argv,
				    struct hd_allreduce_times *times, struct hd_diag *diag)
{
	struct leader l = { .bench = bench, .times = times };

	memset(times->ms, 0, hd_allreduce_bench_times(bench) * sizeof *times->ms);
	enum hd_err err = begin(&l);
	if (!err)
		err = start_all(&l, host, argv);
	if (!err)
		err = gather(&l);
	if (!err)
		err = dismiss(&l);
	times->checked = !err;
	hd_hub_finish(&l.hub);
	hd_loop_finish(&l.loop);
	for (uint32_t i = 0; i < bench->n; i++)
		hd_proc_finish(&l.proc[i]);
	return err ? hd_fail(diag, err, "%s", l.diag.text) : HD_OK;
}
