#include "data/shards_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "sys/clock.h"
#include "sys/thread.h"
#include "data/augment.h"
#include "tests/check.h"

/* A set of records whose store is watched: requests are answered by its own reading, but only once the gate
 * is open, and how many calls were inside at once is noted. */
enum { NRECORDS = 60 };

static char path[] = "shards_test_XXXXXX";

static struct watched_store {
	const struct hd_blob_ops *own;
	struct hd_lock lock;
	struct hd_cond change;
	bool open;
	uint32_t inside, most, ncalls;    /* calls */
} watched;

static enum hd_err watched_read(struct hd_blob *store, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_lock_take(&watched.lock);
	watched.ncalls++;
	watched.inside++;
	watched.most = watched.inside > watched.most ? watched.inside : watched.most;
	hd_cond_wake(&watched.change);
	while (!watched.open)
		(void)hd_cond_wait(&watched.change, &watched.lock, hd_clock_now_ns(&clock) + HD_NS_PER_S);
	hd_lock_give(&watched.lock);
	const enum hd_err err = watched.own->read(store, request, n, depth, diag);
	hd_lock_take(&watched.lock);
	watched.inside--;
	hd_lock_give(&watched.lock);
	return err;
}

static const struct hd_blob_ops watched_ops = { .name = "watched", .read = watched_read };

static uint32_t masked(const void *bytes, size_t len)
{
	const uint32_t crc = hd_crc32c(0, bytes, len);

	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Records of one number and a class, in TFRecord's framing; 60 of 8 bytes. */
static int make_file(void **state)
{
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");

	(void)state;
	for (uint32_t i = 0; i < NRECORDS && file; i++) {
		uint8_t head[12], body[8], tail[4];
		const float x = (float)i;
		hd_put64(head, sizeof body);
		hd_put32(head + 8, masked(head, 8));
		memcpy(body, &x, sizeof x);
		hd_put32(body + 4, i % 4);
		hd_put32(tail, masked(body, sizeof body));
		if (fwrite(head, 1, 12, file) + fwrite(body, 1, 8, file) + fwrite(tail, 1, 4, file) != 24)
			return -1;
	}
	return file ? fclose(file) : -1;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static struct hd_dataset *open_watched(uint32_t depth)
{
	const struct hd_data_spec spec = { .kind = "records", .path = path, .classes = 4, .train = 1,
		.dim = { 1 }, .rank = 1 };
	struct hd_dataset *set;
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	hd_fs_real(&fs);
	const enum hd_err err = hd_dataset_open(&set, &spec, &fs, &diag);
	CHECK(!err, "%s", diag.text);
	memset(&watched, 0, sizeof watched);
	hd_lock_init(&watched.lock);
	hd_cond_init(&watched.change);
	struct hd_blob *blob = ((struct hd_shard_set *)set)->shard[0].blob;
	watched.own = blob->ops;
	blob->ops = &watched_ops;
	set->reading->keep_depth(set, depth);
	return set;
}

static void close_watched(struct hd_dataset *set)
{
	((struct hd_shard_set *)set)->shard[0].blob->ops = watched.own;
	hd_dataset_destroy(set);
	hd_cond_finish(&watched.change);
	hd_lock_finish(&watched.lock);
}

struct shard_call { struct hd_dataset *set; uint32_t first, n; uint32_t wrong; struct hd_thread thread; };

static void call(void *user)
{
	struct shard_call *c = user;
	struct hd_ask ask[NRECORDS];
	float x[NRECORDS];
	int32_t y[NRECORDS];

	for (uint32_t i = 0; i < c->n; i++)
		ask[i] = (struct hd_ask){ .index = c->first + i, .out = { &x[i], &y[i] } };
	c->wrong = c->set->read_many(c->set, 0, ask, c->n, true, NULL) ? NRECORDS : 0;
	for (uint32_t i = 0; i < c->n && !c->wrong; i++)
		c->wrong += (uint32_t)(x[i]) % 4 != (uint32_t)y[i];
}

static uint64_t tickets(struct hd_dataset *data)
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	hd_lock_take(&set->lock);
	const uint64_t n = set->ntickets;
	hd_lock_give(&set->lock);
	return n;
}

static void wait_until(bool (*is)(struct hd_dataset *set, uint64_t n), struct hd_dataset *set, uint64_t n)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	const int64_t until_ns = hd_clock_now_ns(&clock) + 60 * HD_NS_PER_S;
	do
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + HD_NS_PER_MS);
	while (!is(set, n) && hd_clock_now_ns(&clock) < until_ns);
	CHECK(is(set, n), "nothing came for a minute");
}

static bool have_come(struct hd_dataset *set, uint64_t n) { return tickets(set) >= n; }

static bool are_inside(struct hd_dataset *set, uint64_t n)
{
	(void)set;
	hd_lock_take(&watched.lock);
	const bool are = watched.ncalls >= n;
	hd_lock_give(&watched.lock);
	return are;
}

static void start(struct hd_dataset *set, struct shard_call *c, uint32_t first, uint32_t n)
{
	const uint64_t before = tickets(set);

	*c = (struct shard_call){ .set = set, .first = first, .n = n };
	assert_int_equal(hd_thread_start(&c->thread, "call", -1, call, c, NULL), HD_OK);
	wait_until(have_come, set, before + 1);
}

static void open_gate(struct shard_call *calls, uint32_t n)
{
	hd_lock_take(&watched.lock);
	watched.open = true;
	hd_cond_wake(&watched.change);
	hd_lock_give(&watched.lock);
	for (uint32_t i = 0; i < n; i++) {
		hd_thread_join(&calls[i].thread);
		assert_int_equal(calls[i].wrong, 0);
	}
	assert_int_equal(watched.ncalls, n);
}

/* Calls of four samples come one after the other: with a depth of 8 two of them read at once, with 1 it is
 * one. */
static void calls_at_once_share_the_depth(void **state)
{
	static const struct { uint32_t depth, inside; } rows[] = { { 1, 1 }, { 4, 1 }, { 8, 2 }, { 16, 4 } };

	(void)state;
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		struct hd_dataset *set = open_watched(rows[r].depth);
		struct shard_call calls[6];
		for (uint32_t i = 0; i < 6; i++)
			start(set, &calls[i], 4 * i, 4);
		wait_until(are_inside, set, rows[r].inside);
		open_gate(calls, 6);
		CHECK(watched.most == rows[r].inside, "depth %u: %u inside", rows[r].depth, watched.most);
		close_watched(set);
	}
}

/* One that would fit does not go before one that came first and does not. */
static void calls_go_in_as_they_came(void **state)
{
	struct hd_dataset *set = open_watched(8);
	struct shard_call calls[3];

	(void)state;
	start(set, &calls[0], 0, 6);
	wait_until(are_inside, set, 1);
	start(set, &calls[1], 10, 4);
	start(set, &calls[2], 20, 2);
	for (uint32_t i = 0; i < 20; i++) {       /* it has had the time to go in, if it were let */
		wait_until(have_come, set, 3);
		assert_false(are_inside(set, 2));
	}
	open_gate(calls, 3);
	close_watched(set);
}

/* The tuner's samples are of rows ahead, which steps wait for; an evaluation's rows are none of them. */
static void what_is_read_for_an_evaluation_is_no_sample(void **state)
{
	struct hd_dataset *set = open_watched(8);
	const struct hd_shard_set *shards = (struct hd_shard_set *)set;
	struct hd_ask ask[4];
	float x[4];
	int32_t y[4];

	(void)state;
	watched.open = true;
	for (uint32_t i = 0; i < 4; i++)
		ask[i] = (struct hd_ask){ .index = i, .out = { &x[i], &y[i] } };
	assert_int_equal(hd_dataset_read_many(set, 0, ask, 4, false, NULL), HD_OK);
	assert_true(shards->delivered == 0 && shards->sample_requests == 0 && shards->since_ns == 0);
	assert_int_equal(hd_dataset_read_many(set, 0, ask, 4, true, NULL), HD_OK);
	assert_true(shards->delivered > 0 && shards->since_ns > 0);
	close_watched(set);
}

/* What is in memory is read by whatever thread asks: no request comes to the store. */
static void what_is_in_memory_is_read_by_the_caller(void **state)
{
	struct hd_dataset *set = open_watched(8);
	const struct hd_shard_set *shards = (struct hd_shard_set *)set;
	struct hd_blob *blob = shards->shard[0].blob;
	const struct hd_blob_ops here = { .name = "here", .read = watched_read,
		.read_here = watched.own->read_here };
	struct shard_call c = { .set = set, .first = 3, .n = 40 };
	uint8_t byte;

	(void)state;
	blob->ops = &here;
	const bool is = hd_blob_read_here(blob, &(struct hd_range){ 0, 1, &byte }, 1);
	const uint64_t requests = blob->requests, bytes = blob->bytes;
	watched.open = true;
	call(&c);
	assert_int_equal(c.wrong, 0);
	if (!is) {
		print_message("it was evicted, or this file system does not say what is in memory\n");
	} else {
		assert_int_equal(watched.ncalls, 0);
		assert_true(blob->requests == requests + 40 && blob->bytes == bytes + 40 * 8);
		assert_false(hd_blob_read_here(blob, &(struct hd_range){ blob->size_bytes, 1, &byte }, 1));
	}
	close_watched(set);
}

static size_t put_member(uint8_t *at, const char *name, const void *body, size_t len)
{
	uint32_t sum = 0;

	memset(at, 0, 1024);
	snprintf((char *)at, 100, "%s", name);
	snprintf((char *)at + 100, 8, "%07o", 0644u);
	snprintf((char *)at + 124, 12, "%011zo", len);
	memset(at + 148, ' ', 8);
	at[156] = '0';
	memcpy(at + 257, "ustar\00000", 8);
	for (uint32_t i = 0; i < 512; i++)
		sum += at[i];
	snprintf((char *)at + 148, 7, "%06o", sum);
	memcpy(at + 512, body, len);
	return 1024;
}

/* Floats are what a conversion to double and back makes of them, to the bit. */
static void floats_of_a_tar_file_have_their_bits(void **state)
{
	static const uint32_t words[8] = { 0x7fa00001, 0xff800001, 0x7fc00002, 0x7f800000, 0xff800000, 1,
		0x80000000, 0x40490fdb };
	static uint8_t file[4096];
	char tar[] = "shards_test_tar_XXXXXX";
	const struct hd_data_spec spec = { .kind = "webdataset", .path = tar, .classes = 4, .train = 1,
		.dim = { 8 }, .rank = 1 };
	uint32_t got[8];
	int32_t y;
	void *out[] = { got, &y };
	struct hd_diag diag = { "" };
	struct hd_dataset *set;
	struct hd_fs fs;

	(void)state;
	const size_t len = put_member(file, "a.raw", words, sizeof words);
	(void)put_member(file + len, "a.cls", "3", 1);
	const int fd = mkstemp(tar);
	assert_true(fd >= 0 && write(fd, file, sizeof file) == sizeof file && !close(fd));
	hd_fs_real(&fs);
	CHECK(!hd_dataset_open(&set, &spec, &fs, &diag), "%s", diag.text);
	CHECK(!set->ops->read(set, 0, 0, out, &diag) && y == 3, "%s", diag.text);
	for (uint32_t i = 0; i < 8; i++) {
		volatile float single;
		memcpy((void *)(uintptr_t)&single, &words[i], 4);
		volatile double wide = (double)single;
		single = (float)wide;
		CHECK(!memcmp((void *)(uintptr_t)&single, &got[i], 4), "%08x became %08x", words[i], got[i]);
	}
	hd_dataset_destroy(set);
	assert_int_equal(unlink(tar), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_at_once_share_the_depth),
		cmocka_unit_test(calls_go_in_as_they_came),
		cmocka_unit_test(what_is_in_memory_is_read_by_the_caller),
		cmocka_unit_test(floats_of_a_tar_file_have_their_bits),
		cmocka_unit_test(what_is_read_for_an_evaluation_is_no_sample),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
