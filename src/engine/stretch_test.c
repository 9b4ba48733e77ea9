#include "engine/stretch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "functions/owner.h"
#include "functions/worker.h"
#include "engine/testing.h"

/* Dense work of virtual nodes on function workers: the bits of one device, whatever computes and whatever
 * dies. Workers are threads of this process. */

/* 61 samples: step 2 is short, with a partial and empty virtual nodes */
enum { BATCH = 26, VNS = 13, STEPS = 4, WORKERS = 3 };

enum seat_state { FREE, BUSY, ENDED };

/* One function worker. `dies`: its call ends without work. */
struct seat {
	pthread_t thread;
	_Atomic int state;
	struct hd_clock *clock;
	struct hd_fn_worker worker;
	char event[HD_FN_EVENT_BYTES];
	size_t len;
	bool dies;
	struct hd_fn_called called;
};

/* An owner, and what calls its workers; of each `deadly` calls the first dies, 0: none does. Where a device
 * shares, how many there are is chance: it takes what it can while workers start. There is always a first. */
struct pool {
	struct hd_clock clock;
	struct hd_fn_owner owner;
	struct seat seat[WORKERS];
	uint32_t ncalls, deadly, end_of;  /* from call `end_of` on none is taken; 0: all are */
	char dir[32];
};

static void *serve(void *self)
{
	struct seat *s = self;
	struct hd_fn_answer answer;
	struct hd_text text;

	hd_thread_arith_set();
	hd_fn_worker_do(&s->worker, s->event, s->len, "", INT64_MAX, &answer);
	hd_text_fixed(&text, s->called.body, sizeof s->called.body);
	hd_fn_answer_write(&answer, &text);
	s->called.len = text.len;
	atomic_store(&s->state, ENDED);
	return NULL;
}

static enum hd_err call(void *self, uint64_t name, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct pool *p = self;
	struct seat *s = NULL;

	(void)deadline_ns;
	for (int i = 0; i < WORKERS && !s; i++)
		s = atomic_load(&p->seat[i].state) == FREE ? &p->seat[i] : NULL;
	if (!s)
		return HD_E_AGAIN;
	p->ncalls++;
	s->dies = (p->deadly && (p->ncalls - 1) % p->deadly == 0) || (p->end_of && p->ncalls >= p->end_of);
	s->called = (struct hd_fn_called){ .call = name, .end = s->dies ? HD_FN_DIED : HD_FN_ANSWERED,
		.took_ns = 1000 };
	memcpy(s->event, event, len);
	s->len = len;
	atomic_store(&s->state, s->dies ? ENDED : BUSY);
	if (!s->dies && pthread_create(&s->thread, NULL, serve, s))
		return hd_fail(diag, HD_E_NOMEM, "no thread");
	return HD_OK;
}

static void on_event(void *self, const struct hd_loop_event *event) { (void)self, (void)event; }

/* Threads do not wake the loop. */
static int64_t tick(void *self, int64_t now_ns)
{
	struct pool *p = self;
	bool any = false;

	for (int i = 0; i < WORKERS; i++)
		any |= atomic_load(&p->seat[i].state) != FREE;
	return any ? now_ns + HD_NS_PER_MS : INT64_MAX;
}

static bool take(void *self, struct hd_fn_called *called)
{
	struct pool *p = self;

	for (int i = 0; i < WORKERS; i++) {
		struct seat *s = &p->seat[i];
		if (atomic_load(&s->state) != ENDED)
			continue;
		if (!s->dies)
			pthread_join(s->thread, NULL);
		*called = s->called;
		atomic_store(&s->state, FREE);
		return true;
	}
	return false;
}

static void open_pool(struct pool *p, uint32_t slots)
{
	static const struct hd_fn_invoker_ops ops = { "threads", call, on_event, tick, take };
	const struct hd_fn_invoker invoker = { &ops, p };
	struct hd_diag diag = { "" };
	char listen[64];

	memset(p, 0, sizeof *p);
	hd_clock_real(&p->clock);
	snprintf(p->dir, sizeof p->dir, "/tmp/heddle-stretch-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(listen, sizeof listen, "unix:%s/o", p->dir);
	const struct hd_fn_owner_spec spec = { .clock = &p->clock, .listen = listen, .ntasks = BATCH,
		.slots = slots, .lease_ns = INT64_C(600000000000), .memory_mb = 1769,
		.price = { .ntiers = 1, .granularity_ms = 1 } };
	CHECK(hd_fn_owner_open(&p->owner, &spec, &diag) == HD_OK, "%s", diag.text);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(hd_fn_worker_init(&p->seat[i].worker, &p->clock, &diag), HD_OK);
	hd_fn_owner_calls(&p->owner, &invoker);
}

static void close_pool(struct pool *p)
{
	uint32_t none;

	while (hd_fn_owner_is_calling(&p->owner))
		assert_int_equal(hd_fn_owner_turn(&p->owner, hd_clock_now_ns(&p->clock) + HD_NS_PER_MS, false,
			&none, NULL), HD_OK);
	for (int i = 0; i < WORKERS; i++)
		hd_fn_worker_finish(&p->seat[i].worker);
	hd_fn_owner_close(&p->owner);
	assert_int_equal(rmdir(p->dir), 0);
}

/* ---- a run ---- */

struct outcome { struct hd_hash digest[STEPS]; double loss[STEPS]; uint32_t stretches; };

static const char *model(void)
{
	static char text[900];
	static const char global[] = ", bn: global";
	snprintf(text, sizeof text, "%s", hd_rig_bn());
	char *end = strchr(text, '}');
	memmove(end + sizeof global - 1, end, strlen(end) + 1);
	memcpy(end, global, sizeof global - 1);
	return text;
}

static struct outcome train(struct hd_fn_owner *owner)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .functions = owner };
	struct outcome out;
	struct hd_rig rig;
	const char *why;

	hd_rig_open_on(&rig, model(), BATCH, VNS, "optim: {kind: adamw, schedule: {warmup: 2}}", &spec);
	out.stretches = hd_stretches_of(rig.worker, &why);
	CHECK(!why[0], "%s", why);
	for (int s = 0; s < STEPS; s++) {
		struct hd_step_record r = hd_rig_step(&rig);
		out.digest[s] = r.digest;
		out.loss[s] = r.loss_sum;
	}
	hd_rig_close(&rig);
	return out;
}

static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
	for (int s = 0; s < STEPS; s++) {
		CHECK(memcmp(&a->loss[s], &b->loss[s], sizeof a->loss[s]) == 0,
			"%s: the loss of step %d differs: %.17g, %.17g", what, s, a->loss[s], b->loss[s]);
		CHECK(hd_hash_same(a->digest[s], b->digest[s]), "%s: the state after step %d differs", what,
			s);
	}
}

/* Each stretch of each full virtual node is one task, which counts once. */
static void check_counts(const struct pool *p, const struct outcome *out)
{
	const struct hd_fn_counts *n = &p->owner.board.count;
	/* 61 samples in 26: two steps of 13 full virtual nodes, one of 4 and a half, then the next epoch */
	uint64_t full = 13 + 13 + 4 + 13;

	assert_true(out->stretches >= 2);
	CHECK(n->accepted + n->here == full * out->stretches, "%llu + %llu tasks of %u stretches",
		(unsigned long long)n->accepted, (unsigned long long)n->here, out->stretches);
}

static void functions_give_the_bits_of_the_device(void **state)
{
	static const struct { const char *what; uint32_t slots, deadly, end_of; bool shares; } ways[] = {
		{ "all run here, as tasks", 0, 0, 0, false },
		{ "all on functions", WORKERS, 0, 0, false },
		{ "on functions and here", WORKERS, 0, 0, true },
		{ "one call in four dies", WORKERS, 4, 0, true },
		{ "functions end in the middle", WORKERS, 0, 70, false },
	};
	const struct outcome alone = train(NULL);

	(void)state;
	assert_int_equal(alone.stretches, 0);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct pool p;
		open_pool(&p, ways[i].slots);
		p.deadly = ways[i].deadly;
		p.end_of = ways[i].end_of;
		p.owner.board.shares = ways[i].shares;
		const struct outcome got = train(&p.owner);
		same(&alone, &got, ways[i].what);
		check_counts(&p, &got);
		if (i == 0)
			assert_int_equal(p.owner.board.count.accepted, 0);
		if (i == 1)
			assert_int_equal(p.owner.board.count.here, 0);
		if (ways[i].deadly)
			assert_true(p.owner.board.count.failures > 0);
		if (ways[i].end_of)
			assert_true(p.owner.board.count.closed > 0);
		close_pool(&p);
	}
}

static void what_has_nothing_to_give_is_refused(void **state)
{
	struct hd_worker *worker = NULL;
	struct hd_diag diag = { "" };
	struct hd_rig rig;
	struct pool p;

	(void)state;
	open_pool(&p, 0);
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .functions = &p.owner };
	hd_rig_begin(&rig, hd_rig_mlp, BATCH, VNS, NULL);
	CHECK(hd_task_create(&rig.task, rig.job, &rig.fs, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_worker_create(&worker, rig.task, &spec, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "between the meetings of virtual nodes"), "%s", diag.text);
	hd_rig_close(&rig);
	close_pool(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_give_the_bits_of_the_device),
		cmocka_unit_test(what_has_nothing_to_give_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
