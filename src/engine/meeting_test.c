#include "engine/meeting.h"

#include <stdlib.h>

#include "engine/recorder.h"
#include "engine/testing_net.h"

/* Workers that meet at norms over the global batch: digests and losses are those of one device, bit for bit,
 * whatever the map; a fence ends every wait, and what was sent before does no harm. */

/* 61 samples: the third step has 9 rows, so that virtual nodes are short or empty */
enum { BATCH = 26 };

static void model_of(char model[800])
{
	static const char global[] = ", bn: global";

	snprintf(model, 800, "%s", hd_rig_bn());
	char *end = strchr(model, '}');
	memmove(end + strlen(global), end, strlen(end) + 1);
	memcpy(end, global, strlen(global));
}

static void open_net(struct net *net, uint32_t vns, const uint32_t *map, uint32_t nranks, uint32_t each)
{
	struct hd_diag diag = { "" };
	char model[800];

	memset(net, 0, sizeof *net);
	model_of(model);
	hd_rig_open(&net->one, model, BATCH, vns, "optim: {kind: adamw, clip: 0.5}\n", 1);
	assert_true(hd_worker_lockstep(net->one.worker));
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	struct hd_plan_job pj = hd_plan_job_whole(vns, net->one.task->layout.nchunks);
	pj.lockstep = true;
	if (map)
		CHECK(hd_plan_of_map(&net->plan, &pj, nranks, map, &net->one.arena, &diag) == HD_OK, "%s",
			diag.text);
	else
		CHECK(hd_plan_data(&net->plan, &pj, nranks, NULL, &net->one.arena, &diag) == HD_OK, "%s",
			diag.text);
	add_workers(net, nranks, each, "norms over the global batch");
}

static const uint32_t scattered[] = { 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 },
	uneven[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2 },
	nothing[] = { 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 2, 2 };
static const struct { uint32_t vns, nranks, each; const uint32_t *map; } kinds[] = {
	{ 2, 2, 1, NULL }, { 5, 3, 1, NULL }, { 13, 4, 2, NULL }, { 13, 3, 2, NULL }, { 13, 3, 1, scattered },
	{ 13, 3, 1, uneven }, { 13, 3, 1, nothing }, { 13, 3, 2, scattered }, { 26, 2, 1, NULL },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static void compare(size_t n, uint32_t fences)
{
	struct net *net = malloc(sizeof *net);
	uint32_t stale = 0;

	assert_non_null(net);
	for (size_t k = 0; k < n; k++) {
		char what[80];
		snprintf(what, sizeof what, "V %u, %u devices, %u a worker, map %zu", kinds[k].vns,
			kinds[k].nranks, kinds[k].each, k);
		open_net(net, kinds[k].vns, kinds[k].map, kinds[k].nranks, kinds[k].each);
		for (int i = 0; i < STEPS; i++) {
			net->fence_after = fences ? 1 + draw(fences) : 0;
			step(net, what);
		}
		stale += net->stale;
		close_net(net);
	}
	assert_true(!fences || stale > n);
	free(net);
}

static void any_map_over_workers_has_the_bits_of_one_device(void **state)
{
	(void)state;
	seed = 1;
	compare(NKINDS, 0);
}

static void a_fence_ends_the_wait_at_any_letter(void **state)
{
	(void)state;
	seed = 2;
	compare(NKINDS, 12);
}

/* Each worker that computes, `fence` or not: what it says. */
static void all_say(struct net *net, enum hd_err want)
{
	for (uint32_t m = 0; m < net->n; m++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_dist_compute(net->at[m].worker, &diag), want);
		CHECK(strstr(diag.text, "other workers are gone"), "%s", diag.text);
		hd_dist_abandon(net->at[m].worker);
	}
}

static void a_fence_before_the_pass_counts_and_an_older_one_does_not(void **state)
{
	struct net *net = malloc(sizeof *net);

	(void)state;
	seed = 3;
	open_net(net, 5, NULL, 2, 1);
	next_epoch(net);
	for (uint32_t m = 0; m < net->n; m++) {
		hd_dist_fence(net->at[m].worker, net->epoch + 1);
		hd_dist_fence(net->at[m].worker, net->epoch);
	}
	begin(net);
	all_say(net, HD_E_STALE);
	next_epoch(net);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_fence(net->at[m].worker, net->epoch);
	step(net, "in the epoch of the fence");
	close_net(net);
	free(net);
}

/* Letters of virtual nodes that bring nothing: all of them, from the last sync to the first. */
static void bring_nothing(struct hd_worker *w, uint32_t nsyncs)
{
	struct hd_dist_letter letter[64], l;
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	while (n < nsyncs)
		if (!hd_dist_mail_next(w, &l))
			sched_yield();
		else if (l.send)
			hd_dist_mail_sent(w, &l);
		else
			letter[n++] = l;
	while (n--) {
		memset(letter[n].bytes, 0, letter[n].len);
		CHECK(hd_dist_mail_arrived(w, &letter[n], &diag) == HD_OK, "%s", diag.text);
	}
}

/* Rule 4: all that it waits for is here, so the fence of its epoch changes nothing; nor does an older one
 * before that. */
static void a_worker_that_has_all_letters_ends_its_pass(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_diag diag = { "" };
	struct hd_dist_letter l;

	(void)state;
	seed = 4;
	open_net(net, 5, NULL, 2, 1);
	struct member *one = &net->at[0];
	next_epoch(net);
	begin(net);
	one->done = false;
	CHECK(hd_thread_start(&one->thread, "member", -1, compute, one, &diag) == HD_OK, "%s", diag.text);
	hd_dist_fence(one->worker, net->epoch);
	bring_nothing(one->worker, hd_dist_nsyncs(one->worker));
	hd_dist_fence(one->worker, net->epoch + 1);
	hd_thread_join(&one->thread);
	assert_int_equal(one->err, HD_OK);
	assert_int_not_equal(hd_dist_nroots(one->worker, 0), 0);
	while (hd_dist_mail_next(one->worker, &l))
		hd_dist_mail_sent(one->worker, &l);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	next_epoch(net);
	step(net, "after it was given up");
	close_net(net);
	free(net);
}

/* Rule 2: of a step that was fenced, too. What is kept counts turns of the wire; a worker that did not wait
 * for it would be heard. */
static void a_buffer_that_the_wire_has_is_not_written(void **state)
{
	struct net *net = malloc(sizeof *net);
	uint32_t kept = 0;

	(void)state;
	seed = 7;
	/* whether the letter comes before the fence is up to the threads: until it did */
	for (int i = 0; i < 4 || (kept == 0 && i < 200); i++) {
		open_net(net, 5, NULL, 2, 1);
		net->fence_after = 1 + draw(3);
		net->keep_turns = 200;
		step(net, "with a letter that the wire kept");
		kept += net->keep_turns == 0;
		assert_int_equal(net->kept.len, 0);
		close_net(net);
	}
	assert_true(kept > 0);
	free(net);
}

/* What is offered is what was announced: both ways, of workers with virtual nodes alone. */
static void letters_are_those_of_the_list(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_dist_letter want[64], l;
	struct hd_diag diag = { "" };

	(void)state;
	seed = 5;
	open_net(net, 13, nothing, 3, 1);
	struct hd_worker *w = net->at[0].worker;
	const uint32_t nsyncs = hd_dist_nsyncs(w);
	assert_in_range(nsyncs, 2, 64);
	assert_int_equal(hd_dist_mail_list(w, 2, false, NULL), nsyncs);
	assert_int_equal(hd_dist_mail_list(w, 2, true, want), nsyncs);
	assert_int_equal(hd_dist_mail_list(w, 1, true, NULL) + hd_dist_mail_list(w, 1, false, NULL), 0);
	assert_int_equal(hd_dist_mail_list(net->at[1].worker, 0, true, NULL), 0);
	assert_true(want[0].from == 0 && want[0].to == 2 && want[0].send);
	assert_int_equal(hd_dist_mail_list(w, 2, false, want), nsyncs);
	begin(net);
	hd_dist_fence(w, net->epoch + 1);
	assert_int_equal(hd_dist_compute(w, &diag), HD_E_STALE);
	for (uint32_t k = 0; k < nsyncs; k++) {
		assert_true(hd_dist_mail_next(w, &l));
		assert_true(!l.send && l.kind == want[k].kind && l.stage == want[k].stage &&
			l.from == want[k].from && l.to == want[k].to && l.len == want[k].len);
	}
	struct hd_dist_letter other = l;
	other.from = 1;
	assert_int_equal(hd_dist_mail_arrived(w, &other, &diag), HD_E_STALE);
	other = l;
	other.stage = (uint16_t)nsyncs;
	assert_int_equal(hd_dist_mail_arrived(w, &other, &diag), HD_E_STALE);
	other = l;
	other.bytes += 8;
	assert_int_equal(hd_dist_mail_arrived(w, &other, &diag), HD_E_STALE);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	assert_int_equal(hd_dist_mail_arrived(w, &l, &diag), HD_E_STALE);
	close_net(net);
	free(net);
}

/* Between two steps: equal bits at every worker and at one alone, and no bit of the step after it changes. */
static void a_probe_computes_one_virtual_node_as_all_there_is(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_hash want, got, other;
	struct hd_diag diag = { "" };

	(void)state;
	seed = 6;
	open_net(net, 13, nothing, 3, 1);
	for (int i = 0; i < STEPS; i++) {
		CHECK(hd_dist_probe(net->one.worker, 2, &other, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_dist_probe(net->one.worker, 3, &want, &diag) == HD_OK, "%s", diag.text);
		assert_false(hd_hash_same(want, other));
		for (uint32_t m = 0; m < net->n; m++) {
			CHECK(hd_dist_probe(net->at[m].worker, 3, &got, &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_hash_same(want, got), "worker %u, step %d", m, i);
		}
		step(net, "after a probe");
	}
	close_net(net);
	free(net);
}

/* What was awaited under another map is no part of a pass that waits for nothing: the worker would seem to
 * have computed for less than no time. */
static void nothing_is_awaited_where_nothing_is_met(void **state)
{
	static const uint32_t alone[13] = { 0 };
	struct net *net = malloc(sizeof *net);
	struct hd_diag diag = { "" };

	(void)state;
	seed = 7;
	open_net(net, 13, uneven, 3, 1);
	step(net, "among three");
	assert_true(hd_dist_awaited_ns(net->at[0].worker) > 0);
	struct hd_plan_job pj = hd_plan_job_whole(13, net->one.task->layout.nchunks);
	pj.lockstep = true;
	CHECK(hd_plan_of_map(&net->plan, &pj, 3, alone, &net->one.arena, &diag) == HD_OK, "%s", diag.text);
	for (uint16_t r = 0; r < 3; r++)
		net->plan.worker[r] = r;
	next_epoch(net);
	struct hd_worker *w = net->at[0].worker;
	CHECK(hd_dist_prepare(w, &(struct hd_dist_view){ .plan = &net->plan,
		.nplaces = (1 + MOST_PIECES) * MOST_ROOTS }, &diag) == HD_OK, "%s", diag.text);
	hd_dist_adopt(w);
	CHECK(hd_dist_begin(w, true, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_compute(w, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_dist_awaited_ns(w), 0);
	hd_dist_abandon(w);
	close_net(net);
	free(net);
}

static void none_is_computed_apart(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_diag diag = { "" };
	uint32_t pass;

	(void)state;
	open_net(net, 5, NULL, 2, 1);
	begin(net);
	assert_int_equal(hd_dist_repair(net->at[0].worker, (uint32_t[]){ 4 }, 1, &pass, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "norms over the global batch"), "%s", diag.text);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	close_net(net);
	free(net);
}

static void memory_counts_what_is_exchanged(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_memory_terms alone, among;

	(void)state;
	open_net(net, 5, NULL, 2, 1);
	const uint64_t bytes = hd_lockstep_bytes(&net->one.task->train, net->one.task->job);
	hd_worker_memory(net->one.worker, &alone);
	hd_worker_memory(net->at[0].worker, &among);
	/* its own leaves out, all others in */
	assert_true(bytes && among.gradients >= alone.gradients + bytes);
	assert_int_equal(hd_meeting_bytes(net->one.worker), 0);
	assert_int_equal(hd_meeting_bytes(net->at[0].worker), bytes);
	close_net(net);
	free(net);
}

#ifdef HD_FAILPOINTS
/* The recorder's clock may run slower than that of waits; here it stands still. */
static void what_took_less_than_was_awaited_took_nothing(void **state)
{
	char folder[] = "/tmp/hd_meeting_XXXXXX";
	struct net *net = malloc(sizeof *net);
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	assert_non_null(mkdtemp(folder));
	setenv("HD_TRACE_CLOCK", "0,-1e6", 1);
	CHECK(hd_recorder_open(&recorder, &(struct hd_recorder_spec){ .fs = &fs, .folder = folder,
		.nranks = 1, .nslots = 4096 }, &diag) == HD_OK, "%s", diag.text);
	unsetenv("HD_TRACE_CLOCK");
	seed = 8;
	open_net(net, 13, uneven, 3, 1);
	struct hd_worker *w = net->at[0].worker;
	w->spec.recorder = recorder;
	step(net, "by a clock that stands still");
	assert_true(hd_dist_awaited_ns(w) > 0);
	assert_true(hd_worker_longest_ns(w) < UINT64_C(3600000000000));
	w->spec.recorder = NULL;
	close_net(net);
	hd_recorder_close(recorder);
	assert_int_equal(hd_fs_remove_tree(&fs, folder, NULL), HD_OK);
	free(net);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_map_over_workers_has_the_bits_of_one_device),
		cmocka_unit_test(a_fence_ends_the_wait_at_any_letter),
		cmocka_unit_test(a_fence_before_the_pass_counts_and_an_older_one_does_not),
		cmocka_unit_test(a_worker_that_has_all_letters_ends_its_pass),
		cmocka_unit_test(a_buffer_that_the_wire_has_is_not_written),
		cmocka_unit_test(letters_are_those_of_the_list),
		cmocka_unit_test(a_probe_computes_one_virtual_node_as_all_there_is),
		cmocka_unit_test(nothing_is_awaited_where_nothing_is_met),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(what_took_less_than_was_awaited_took_nothing),
#endif
		cmocka_unit_test(none_is_computed_apart),
		cmocka_unit_test(memory_counts_what_is_exchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
