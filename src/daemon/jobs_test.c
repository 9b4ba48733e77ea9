#include "daemon/jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "driver/db.h"
#include "driver/store.h"
#include "tests/check.h"

static const struct hd_dispatch_type types[] = { { "fast", 2, 2, 0 }, { "slow", 2, 1, 0 } };
static const struct hd_dispatch_type more[] = { { "between", 1, 1.5, 0 }, { "fast", 3, 2, 0 },
	{ "slow", 2, 1, 0 } };
static const struct hd_dispatch_type fewer[] = { { "fast", 1, 2, 0 } };
static struct hd_fs fs;
static char path[200];

static int fresh(void **state)
{
	char folder[] = "/tmp/hd_jobs.XXXXXX";
	(void)state;

	hd_fs_real(&fs);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/jobs.sqlite", folder);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	*strrchr(path, '/') = 0;
	return hd_fs_remove_tree(&fs, path, NULL);
}

static struct hd_jobs *open_jobs(const struct hd_dispatch_type *type, uint32_t n)
{
	struct hd_jobs *jobs = NULL;
	struct hd_diag diag = { "" };

	CHECK(!hd_jobs_open(&jobs, path, type, n, &diag), "%s", diag.text);
	return jobs;
}

static struct hd_dispatch_job a_row(uint64_t id)
{
	return (struct hd_dispatch_job){ .id = id, .scale = 2, .min = 1, .max = 4, .nvns = 16,
		.weight = 0.1 + (double)id, .submitted_s = 1.0 / 3,
		.started_s = -1, .ended_s = -1, .deadline_s = INFINITY, .steps = 1000, .done = id,
		.failures = 2, .leases = 3, .exit = -1,
		.timeout = id == 1, .ran_s = 1.0 / 9, .from_s = id == 1 ? 17.5 : -1,
		.terms = id != 1 ? (struct hd_job_terms){ 0 } : (struct hd_job_terms){ .held = true,
			.limit_s = 0.3,
		.expect_s = 1e6 / 7, .array = 1, .index = 1000000,
		.at_once = 7, .nafter = 2, .after = { { 3, HD_AFTER_FAIL, HD_AFTER_BROKEN },
		{ 9, HD_AFTER_ANY, HD_AFTER_WAITS } } },
		.why = "because 'it' is", .rate = { { 0.1, -1, HD_RATE_MEASURED },
		{ 1.0 / 7, 12.5, HD_RATE_ASKED } } };
}

static void put(struct hd_jobs *jobs, uint64_t id, const char *key)
{
	struct hd_jobs_card card = { .id = id, .run = "/runs/x" };
	struct hd_dispatch_job row = a_row(id);

	snprintf(card.name, sizeof card.name, "job%llu", (unsigned long long)(id % 10));
	snprintf(card.key, sizeof card.key, "%s", key);
	assert_int_equal(hd_jobs_put_card(jobs, &card, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_row(jobs, &row, NULL), HD_OK);
}

/* Member by member: what lies between them is nothing. */
static void same_terms(const struct hd_dispatch_job *a, const struct hd_dispatch_job *b)
{
	const struct hd_job_terms *x = &a->terms, *y = &b->terms;
	char after[2][HD_TERMS_TEXT];

	CHECK(a->timeout == b->timeout && a->ran_s == b->ran_s && a->from_s == b->from_s, "running time");
	CHECK(x->held == y->held && x->limit_s == y->limit_s && x->expect_s == y->expect_s &&
		x->array == y->array && x->index == y->index && x->at_once == y->at_once, "terms");
	hd_terms_put_after(x, after[0]);
	hd_terms_put_after(y, after[1]);
	assert_string_equal(after[0], after[1]);
}

static void same_row(const struct hd_dispatch_job *a, const struct hd_dispatch_job *b)
{
	CHECK(a->id == b->id && a->scale == b->scale && a->min == b->min && a->max == b->max &&
		a->nvns == b->nvns && a->steps == b->steps, "counts");
	CHECK(a->done == b->done && a->failures == b->failures && a->leases == b->leases &&
		a->exit == b->exit && a->cancel == b->cancel, "more counts");
	CHECK(a->state == b->state && !strcmp(a->why, b->why), "state");
	CHECK(a->weight == b->weight && a->submitted_s == b->submitted_s && a->started_s == b->started_s &&
		a->ended_s == b->ended_s &&
		a->deadline_s == b->deadline_s, "times");
	same_terms(a, b);
}

static void what_was_committed_is_there_to_the_bit_and_nothing_else(void **state)
{
	struct hd_jobs_card card;
	struct hd_dispatch_job row, want = a_row(1);
	struct hd_dispatch_lease lease, held = { .job = 1, .number = 3, .epoch = 7, .state = HD_LEASE_RESIZE,
		.over = true, .since_s = 0.1, .until_s = INFINITY,
		.n = 3, .device = { 0, 1, 3 } };
	double number = 0;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 1, "k");
	assert_int_equal(hd_jobs_put_lease(jobs, &held, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_digest(jobs, 1, "abc", NULL), HD_OK);
	assert_int_equal(hd_jobs_put_number(jobs, "now_s", 2.5, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_word(jobs, "policy", "las", NULL), HD_OK);
	assert_int_equal(hd_jobs_put_word(jobs, "policy", "isolated", NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 2, "");
	hd_jobs_close(jobs);                      /* as a death does */

	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_get(jobs, 1, &card, &row, &lease, NULL), HD_OK);
	same_row(&row, &want);
	for (int t = 0; t < 2; t++)
		CHECK(!memcmp(&row.rate[t], &want.rate[t], sizeof row.rate[t]), "rate %d", t);
	CHECK(lease.number == 3 && lease.epoch == 7 && lease.state == HD_LEASE_RESIZE && lease.over &&
		lease.n == 3 && lease.device[2] == 3 &&
		lease.since_s == 0.1 && lease.until_s == INFINITY, "the lease");
	assert_string_equal(card.digest, "abc");
	assert_int_equal(hd_jobs_get_number(jobs, "now_s", &number, NULL), HD_OK);
	assert_true(number == 2.5);
	assert_int_equal(hd_jobs_get_number(jobs, "other", &number, NULL), HD_E_NOTFOUND);
	char word[5] = "x";
	assert_int_equal(hd_jobs_get_word(jobs, "policy", word, sizeof word, NULL), HD_OK);
	assert_string_equal(word, "isol");
	assert_int_equal(hd_jobs_get_word(jobs, "other", word, sizeof word, NULL), HD_E_NOTFOUND);
	assert_string_equal(word, "");
	assert_int_equal(hd_jobs_get(jobs, 2, &card, &row, &lease, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_jobs_last(jobs), 1);
	held.state = HD_LEASE_RELEASED;
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_lease(jobs, &held, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_get(jobs, 1, NULL, NULL, &lease, NULL), HD_OK);
	CHECK(lease.state == HD_LEASE_RELEASED && lease.n == 0, "a lease that was released");
	hd_jobs_close(jobs);
}

static void pools_may_grow_and_a_lease_of_a_device_that_went_is_refused(void **state)
{
	struct hd_dispatch_lease lease, held = { .job = 1, .number = 1, .epoch = 1, .state = HD_LEASE_HELD,
		.n = 2, .device = { 1, 3 } };
	struct hd_dispatch_job row;
	struct hd_diag diag = { "" };
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 1, "");
	assert_int_equal(hd_jobs_put_lease(jobs, &held, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_jobs_close(jobs);
	jobs = open_jobs(more, 3);                /* between-0, fast-0..2, slow-0..1 */
	assert_int_equal(hd_jobs_get(jobs, 1, NULL, &row, &lease, NULL), HD_OK);
	CHECK(lease.n == 2 && lease.device[0] == 2 && lease.device[1] == 5, "devices %u and %u",
		lease.device[0], lease.device[1]);
	CHECK(row.rate[0].from == HD_RATE_GUESSED && row.rate[0].steps_s == 3 && row.rate[1].steps_s == 0.1 &&
		row.rate[2].steps_s == 1.0 / 7, "rates by name");
	hd_jobs_close(jobs);
	jobs = open_jobs(fewer, 1);
	assert_int_equal(hd_jobs_get(jobs, 1, NULL, &row, &lease, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "fast-1"), "%s", diag.text);
	hd_jobs_close(jobs);
}

static void a_second_scheduler_is_refused_and_foreign_files_stay_as_they_are(void **state)
{
	struct hd_jobs *other = NULL;
	struct hd_file file;
	char junk[8192];
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_open(&other, path, types, 2, NULL), HD_E_AGAIN);
	hd_jobs_close(jobs);
	memset(junk, 'x', sizeof junk);
	assert_int_equal(hd_file_open(&fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		NULL), HD_OK);
	assert_int_equal(hd_file_write(&file, junk, sizeof junk, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	assert_int_equal(hd_jobs_open(&other, path, types, 2, NULL), HD_E_INTEGRITY);
}

static void a_store_of_another_kind_is_refused_and_stays_as_it_is(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_store *run = NULL;
	struct hd_jobs *jobs = NULL;

	(void)state;
	assert_int_equal(hd_store_open(&run, path, &diag), HD_OK);
	hd_store_close(run);
	assert_int_equal(hd_jobs_open(&jobs, path, types, 2, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "is no store of a scheduler"));
	assert_int_equal(hd_store_open(&run, path, &diag), HD_OK);
	assert_int_equal(hd_store_term(run), 2);
	hd_store_close(run);
}

static void a_key_names_one_job_and_a_name_the_youngest(void **state)
{
	uint64_t id = 0;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 3, "first");
	put(jobs, 13, "");
	put(jobs, 23, "");
	const struct hd_jobs_card again = { .id = 24, .name = "n", .key = "first" };
	assert_int_not_equal(hd_jobs_put_card(jobs, &again, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_by_key(jobs, "first", &id, NULL), HD_OK);
	assert_int_equal(id, 3);
	assert_int_equal(hd_jobs_by_name(jobs, "job3", &id, NULL), HD_OK);
	assert_int_equal(id, 23);
	assert_int_equal(hd_jobs_by_name(jobs, "job4", &id, NULL), HD_E_NOTFOUND);
	for (uint64_t below = UINT64_MAX, at = 23; at > 3; below = at, at -= 10) {
		assert_int_equal(hd_jobs_by_name_below(jobs, below, "job3", &id, NULL), HD_OK);
		assert_int_equal(id, at);
	}
	assert_int_equal(hd_jobs_by_name_below(jobs, 3, "job3", &id, NULL), HD_E_NOTFOUND);
	hd_jobs_close(jobs);
}

static void the_youngest_job_of_a_run_is_found(void **state)
{
	const struct hd_jobs_card first = { .id = 1, .name = "a", .run = "/runs/1-a" },
		other = { .id = 2, .name = "b", .run = "/runs/2-b" },
		later = { .id = 3, .name = "a", .run = "/runs/1-a" };
	uint64_t id = 0;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_card(jobs, &first, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_card(jobs, &other, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_card(jobs, &later, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_by_run(jobs, "/runs/1-a", &id, NULL), HD_OK);
	assert_int_equal(id, 3);
	assert_int_equal(hd_jobs_by_run(jobs, "/runs/2-b", &id, NULL), HD_OK);
	assert_int_equal(id, 2);
	assert_int_equal(hd_jobs_by_run(jobs, "/runs/3-c", &id, NULL), HD_E_NOTFOUND);
	hd_jobs_close(jobs);
}

static const struct hd_db_kind raw = { .id = 0x48444c4a, .version = 2, .name = "store", .busy = "busy",
	.damaged = "", .tables = "" };

static void what_was_ordered_with_a_key_is_kept_also_in_a_store_that_never_noted_it(void **state)
{
	struct hd_jobs_card card = { .id = 1, .name = "a", .run = "/runs/a", .key = "k", .account = "lab",
		.order = "0123456789abcdef0123456789abcdef" }, got;
	const struct hd_dispatch_job row = a_row(1);
	struct hd_db db;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_card(jobs, &card, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_row(jobs, &row, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_jobs_close(jobs);
	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_get(jobs, 1, &got, NULL, NULL, NULL), HD_OK);
	assert_string_equal(got.order, card.order);
	assert_string_equal(got.account, "lab");
	hd_jobs_close(jobs);

	assert_int_equal(hd_db_open(&db, path, &raw, NULL), HD_OK);
	assert_int_equal(hd_db_run(&db, "DROP TABLE ordered; DROP TABLE billed", NULL), HD_OK);
	hd_db_close(&db);
	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_get(jobs, 1, &got, NULL, NULL, NULL), HD_OK);
	assert_string_equal(got.order, "");
	assert_string_equal(got.account, "");
	assert_string_equal(got.key, "k");
	hd_jobs_close(jobs);
}

struct jobs_seen { uint64_t first, last; uint32_t n; };

static enum hd_err count_job(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct jobs_seen *s = user;
	(void)row;
	(void)lease;
	(void)diag;

	CHECK(card->id > s->last, "job %llu after %llu", (unsigned long long)card->id,
		(unsigned long long)s->last);
	s->first = s->n++ ? s->first : card->id;
	s->last = card->id;
	return HD_OK;
}

static enum hd_err count_event(void *user, const struct hd_jobs_event *e, struct hd_diag *diag)
{
	struct jobs_seen *s = user;
	(void)diag;

	s->first = s->n++ ? s->first : e->number;
	s->last = e->number;
	return HD_OK;
}

/* 10,000 jobs in the queue: a page and the counts are index scans. The time is printed, the pages are
 * counted. */
static void a_store_without_terms_becomes_one_that_its_program_refuses(void **state)
{
	struct hd_db_kind older = raw;
	struct hd_dispatch_job row, want = a_row(1);
	struct hd_diag diag = { "" };
	struct hd_db db;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 1, "");
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_jobs_close(jobs);
	assert_int_equal(hd_db_open(&db, path, &raw, NULL), HD_OK);
	assert_int_equal(hd_db_run(&db, "DROP TABLE terms; PRAGMA user_version = 1", NULL), HD_OK);
	hd_db_close(&db);
	older.version = 1;
	assert_int_equal(hd_db_open(&db, path, &older, NULL), HD_OK);
	hd_db_close(&db);
	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_get(jobs, 1, NULL, &row, NULL, NULL), HD_OK);
	want.terms = (struct hd_job_terms){ 0 };
	want.timeout = false;
	want.ran_s = 0;
	want.from_s = -1;
	same_row(&row, &want);
	hd_jobs_close(jobs);
	assert_int_equal(hd_db_open(&db, path, &older, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "is of version 2, this program reads up to 1"), "%s", diag.text);
	hd_db_close(&db);
}

struct heard { uint32_t n; char text[200]; };

static enum hd_err hear(void *user, const char *name, const char *value, struct hd_diag *diag)
{
	struct heard *h = user;
	(void)diag;

	h->n++;
	snprintf(h->text + strlen(h->text), sizeof h->text - strlen(h->text), "[%s=%s]", name, value);
	return HD_OK;
}

static void words_are_listed_by_what_their_names_begin_with(void **state)
{
	struct heard heard = { 0 };
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_put_word(jobs, "drain b", "2", NULL), HD_OK);
	assert_int_equal(hd_jobs_put_word(jobs, "drain a", "1", NULL), HD_OK);
	assert_int_equal(hd_jobs_put_word(jobs, "drain", "3", NULL), HD_OK);
	assert_int_equal(hd_jobs_put_word(jobs, "drain c", "4", NULL), HD_OK);
	assert_int_equal(hd_jobs_drop_word(jobs, "drain c", NULL), HD_OK);
	assert_int_equal(hd_jobs_drop_word(jobs, "none", NULL), HD_OK);
	assert_int_equal(hd_jobs_words(jobs, "drain ", hear, &heard, NULL), HD_OK);
	assert_string_equal(heard.text, "[a=1][b=2]");
	hd_jobs_close(jobs);
}

static void ten_thousand_queued_jobs_are_listed_page_by_page(void **state)
{
	uint64_t n[HD_DISPATCH_NSTATES], leased[HD_LEASE_NSTATES], number = 0;
	struct hd_clock clock;
	struct jobs_seen s = { 0 };
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	for (uint64_t id = 1; id <= 10000; id++) {
		const struct hd_jobs_event event = { .job = id % 7, .at_s = 1, .kind = "submit",
			.text = "x" };
		put(jobs, id, "");
		assert_int_equal(hd_jobs_put_event(jobs, &event, &number, NULL), HD_OK);
	}
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_clock_real(&clock);
	int64_t began = hd_clock_now_ns(&clock);
	assert_int_equal(hd_jobs_count(jobs, n, leased, NULL), HD_OK);
	assert_int_equal(hd_jobs_list(jobs, "live", 9000, 100, count_job, &s, NULL), HD_OK);
	print_message("count and a page of 10,000 jobs: %.2f ms\n",
		(double)(hd_clock_now_ns(&clock) - began) * 1e-6);
	CHECK(n[HD_DISPATCH_OPEN] == 10000 && s.n == 100 && s.first == 9001 && s.last == 9100,
		"%llu open, %u from %llu", (unsigned long long)n[0], s.n,
		(unsigned long long)s.first);
	s = (struct jobs_seen){ 0 };
	assert_int_equal(hd_jobs_list(jobs, "failed", 0, 100, count_job, &s, NULL), HD_OK);
	assert_int_equal(s.n, 0);
	assert_int_equal(hd_jobs_events(jobs, 100, 10, 0, count_event, &s, NULL), HD_OK);
	CHECK(s.n == 10 && s.first == 101 && s.last == 110, "events %llu to %llu",
		(unsigned long long)s.first, (unsigned long long)s.last);
	s = (struct jobs_seen){ 0 };
	assert_int_equal(hd_jobs_events(jobs, 9990, 100, 3, count_event, &s, NULL), HD_OK);
	CHECK(s.n == 2 && s.first == 9992 && s.last == 9999, "%u events of job 3, the first %llu", s.n,
		(unsigned long long)s.first);
	assert_int_equal(hd_jobs_last_event(jobs), 10000);
	hd_jobs_close(jobs);
}

/* Job 1 is of account 7, job 2 of account 8, job 0 is none. */
static void events_are_of_an_account_of_all_jobs_or_of_the_cluster_too(void **state)
{
	static const struct { uint32_t uid; bool cluster; uint64_t job; uint32_t n; } rows[] = {
		{ HD_NO_UID, true, 0, 6 }, { HD_NO_UID, false, 0, 4 }, { 7, false, 0, 2 }, { 8, false, 0, 2 },
		{ 7, true, 0, 4 }, { 9, false, 0, 0 }, { 7, false, 1, 2 }, { 7, false, 2, 0 },
		{ HD_NO_UID, false, 2, 2 },
	};
	uint64_t number = 0;
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	for (uint64_t id = 1; id <= 2; id++) {
		const struct hd_jobs_card card = { .id = id, .name = "a", .run = "/r", .uid =
			6 + (uint32_t)id };
		assert_int_equal(hd_jobs_put_card(jobs, &card, NULL), HD_OK);
	}
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(hd_jobs_put_event(jobs, &(struct hd_jobs_event){ .job = i % 3, .kind = "k",
			.text = "x" }, &number, NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	uint64_t open = 9;
	assert_int_equal(hd_jobs_count_open(jobs, 7, &open, NULL), HD_OK);
	assert_int_equal(open, 1);
	assert_int_equal(hd_jobs_count_open(jobs, 9, &open, NULL), HD_OK);
	assert_int_equal(open, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct jobs_seen s = { 0 };
		assert_int_equal(hd_jobs_events_of(jobs, rows[i].uid, rows[i].cluster, 0, 100, rows[i].job,
			count_event, &s, NULL), HD_OK);
		CHECK(s.n == rows[i].n, "row %zu: %u events", i, s.n);
	}
	hd_jobs_close(jobs);
}

/* While the store is open, not when it is opened alone: a scheduler lives for months. */
static void old_events_go(void **state)
{
	uint64_t number = 0;
	struct jobs_seen s = { 0 };
	(void)state;

	struct hd_jobs *jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 1, "");
	for (uint32_t i = 0; i < HD_JOBS_EVENTS + 1000; i++) {
		const struct hd_jobs_event event = { .job = 1, .at_s = i, .kind = "lease", .text = "x" };
		assert_int_equal(hd_jobs_put_event(jobs, &event, &number, NULL), HD_OK);
	}
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_events(jobs, 0, HD_JOBS_EVENTS + 1000, 0, count_event, &s, NULL), HD_OK);
	CHECK(s.n >= HD_JOBS_EVENTS && s.n < HD_JOBS_EVENTS + 256 && s.last == HD_JOBS_EVENTS + 1000 &&
		s.first == s.last - s.n + 1,
		"%u events, %llu to %llu", s.n, (unsigned long long)s.first, (unsigned long long)s.last);
	hd_jobs_close(jobs);
	jobs = open_jobs(types, 2);
	s = (struct jobs_seen){ 0 };
	assert_int_equal(hd_jobs_events(jobs, 0, HD_JOBS_EVENTS + 1000, 0, count_event, &s, NULL), HD_OK);
	assert_int_equal(s.n, HD_JOBS_EVENTS);
	hd_jobs_close(jobs);
}

/* ---- tokens ---- */

struct seen_tokens { uint32_t n; int64_t id[4]; };

static void see_token(void *user, const struct hd_jobs_token *token)
{
	struct seen_tokens *seen = user;

	assert_true(seen->n < 4);
	seen->id[seen->n++] = token->id;
}

static void check_tokens(struct hd_jobs *jobs, const int64_t *id, uint32_t n)
{
	struct seen_tokens seen = { 0 };

	assert_int_equal(hd_jobs_tokens(jobs, see_token, &seen, NULL), HD_OK);
	assert_int_equal(seen.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen.id[i], id[i]);
}

static void tokens_are_found_by_their_hash_until_they_are_dropped(void **state)
{
	struct hd_jobs_token ada = { .uid = 1000, .made_s = 1e9 + 0.25, .until_s = 2e9 + 0.5, .user = "ada" },
		bob = { .uid = 4000000000u, .made_s = 3, .until_s = 4, .user = "bob" }, got;
	struct hd_jobs *jobs = open_jobs(types, 2);
	(void)state;

	check_tokens(jobs, NULL, 0);
	assert_int_equal(hd_jobs_get_token(jobs, "aa", &got, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_jobs_put_token(jobs, "aa", &ada, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_token(jobs, "bb", &bob, NULL), HD_OK);
	assert_true(ada.id > 0 && bob.id > ada.id);
	/* that hash is another token's */
	struct hd_jobs_token third = bob;
	assert_int_not_equal(hd_jobs_put_token(jobs, "aa", &third, NULL), HD_OK);
	assert_int_equal(third.id, bob.id);
	hd_jobs_close(jobs);

	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_get_token(jobs, "bb", &got, NULL), HD_OK);
	CHECK(got.id == bob.id && got.uid == bob.uid && got.made_s == bob.made_s &&
		got.until_s == bob.until_s && !strcmp(got.user, "bob"), "%s", got.user);
	assert_int_equal(hd_jobs_get_token(jobs, "aa", &got, NULL), HD_OK);
	CHECK(got.id == ada.id && got.uid == ada.uid && got.made_s == ada.made_s &&
		got.until_s == ada.until_s && !strcmp(got.user, "ada"), "%s", got.user);
	check_tokens(jobs, (int64_t[]){ ada.id, bob.id }, 2);
	assert_int_equal(hd_jobs_drop_token(jobs, ada.id, NULL), HD_OK);
	assert_int_equal(hd_jobs_get_token(jobs, "aa", &got, NULL), HD_E_NOTFOUND);
	check_tokens(jobs, &bob.id, 1);
	hd_jobs_close(jobs);
}

/* ---- what a store that was restored is given ---- */

struct seen_events { uint32_t n; uint64_t number[4]; double at_s; int64_t t_ms; char text[80]; };

static enum hd_err see_event(void *user, const struct hd_jobs_event *e, struct hd_diag *diag)
{
	struct seen_events *seen = user;

	(void)diag;
	assert_true(seen->n < 4 && e->job == 0);
	seen->number[seen->n++] = e->number;
	seen->at_s = e->at_s;
	seen->t_ms = e->t_ms;
	snprintf(seen->text, sizeof seen->text, "%s %s", e->kind, e->text);
	return HD_OK;
}

static void a_first_event_comes_after_those_delivered_and_those_there(void **state)
{
	struct hd_jobs *jobs = open_jobs(types, 2);
	struct seen_events seen = { 0 };
	uint64_t number = 0;
	(void)state;

	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_number(jobs, "now_s", 12.5, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_first(jobs, 100, 1700, "restored", "of then", NULL), HD_OK);
	assert_int_equal(hd_jobs_last_event(jobs), 101);
	assert_int_equal(hd_jobs_events(jobs, 0, 10, 0, see_event, &seen, NULL), HD_OK);
	CHECK(seen.n == 1 && seen.number[0] == 101 && seen.at_s == 12.5 && seen.t_ms == 1700, "%s",
		seen.text);
	assert_string_equal(seen.text, "restored of then");
	assert_int_equal(hd_jobs_put_event(jobs, &(struct hd_jobs_event){ .kind = "x", .text = "y" },
		&number, NULL), HD_OK);
	assert_int_equal(number, 102);
	assert_int_equal(hd_jobs_put_first(jobs, 7, 0, "restored", "again", NULL), HD_OK);
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_jobs_close(jobs);
	jobs = open_jobs(types, 2);
	assert_int_equal(hd_jobs_last_event(jobs), 103);
	hd_jobs_close(jobs);
}

static void a_run_that_is_ahead_of_its_job_raises_it(void **state)
{
	const struct hd_dispatch_lease held = { .job = 1, .number = 3, .epoch = 1, .state = HD_LEASE_HELD,
		.n = 1, .device = { 0 } };
	struct hd_jobs *jobs = open_jobs(types, 2);
	struct hd_dispatch_lease lease;
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	(void)state;

	assert_int_equal(hd_jobs_begin(jobs, NULL), HD_OK);
	put(jobs, 1, "");
	assert_int_equal(hd_jobs_put_lease(jobs, &held, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_number(jobs, "now_s", 50, NULL), HD_OK);
	assert_int_equal(hd_jobs_put_ran(jobs, 1, 5, 9, "", NULL), HD_OK);
	assert_int_equal(hd_jobs_get(jobs, 1, &card, &row, &lease, NULL), HD_OK);
	assert_true(row.leases == 5 && row.done == 9 && row.state == HD_DISPATCH_OPEN && row.started_s == -1);
	assert_int_equal(lease.state, HD_LEASE_RELEASED);
	/* what it knows already it keeps; its end is that of the run */
	assert_int_equal(hd_jobs_put_ran(jobs, 1, 4, 8, "abc", NULL), HD_OK);
	assert_int_equal(hd_jobs_get(jobs, 1, &card, &row, &lease, NULL), HD_OK);
	assert_true(row.leases == 5 && row.done == 9 && row.state == HD_DISPATCH_DONE && row.exit == 0);
	assert_true(row.started_s == a_row(1).submitted_s && row.ended_s == 50);
	assert_string_equal(card.digest, "abc");
	assert_int_equal(hd_jobs_commit(jobs, NULL), HD_OK);
	hd_jobs_close(jobs);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_committed_is_there_to_the_bit_and_nothing_else,
			fresh, gone),
		cmocka_unit_test_setup_teardown(pools_may_grow_and_a_lease_of_a_device_that_went_is_refused,
		fresh, gone),
		cmocka_unit_test_setup_teardown(
			a_second_scheduler_is_refused_and_foreign_files_stay_as_they_are, fresh, gone),
		cmocka_unit_test_setup_teardown(a_store_of_another_kind_is_refused_and_stays_as_it_is, fresh,
		gone),
		cmocka_unit_test_setup_teardown(a_key_names_one_job_and_a_name_the_youngest, fresh, gone),
		cmocka_unit_test_setup_teardown(
			what_was_ordered_with_a_key_is_kept_also_in_a_store_that_never_noted_it, fresh, gone),
		cmocka_unit_test_setup_teardown(the_youngest_job_of_a_run_is_found, fresh, gone),
		cmocka_unit_test_setup_teardown(a_store_without_terms_becomes_one_that_its_program_refuses,
			fresh, gone),
		cmocka_unit_test_setup_teardown(words_are_listed_by_what_their_names_begin_with, fresh, gone),
		cmocka_unit_test_setup_teardown(ten_thousand_queued_jobs_are_listed_page_by_page, fresh,
		gone),
		cmocka_unit_test_setup_teardown(events_are_of_an_account_of_all_jobs_or_of_the_cluster_too,
			fresh, gone),
		cmocka_unit_test_setup_teardown(old_events_go, fresh, gone),
		cmocka_unit_test_setup_teardown(tokens_are_found_by_their_hash_until_they_are_dropped, fresh,
			gone),
		cmocka_unit_test_setup_teardown(a_first_event_comes_after_those_delivered_and_those_there,
			fresh, gone),
		cmocka_unit_test_setup_teardown(a_run_that_is_ahead_of_its_job_raises_it, fresh, gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
