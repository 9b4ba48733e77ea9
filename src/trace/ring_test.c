#include "trace/ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "tests/check.h"

enum { MOST = 64 };
static _Alignas(64) uint8_t memory[HD_RING_HEADER_BYTES + MOST * HD_SLOT_BYTES];

/* Event number i; its slots carry i in every field that can. */
static void put_number(struct hd_ring_writer *writer, uint64_t i, bool pair)
{
	struct hd_event event = { .t0 = i, .duration = i & 0xffff, .kind = pair ? HD_EVENT_SEND : HD_EVENT_OP,
		.flags = pair, .name = (uint32_t)i,
		.instr = (uint32_t)~i, .arg = i * 7 };
	struct hd_event_transfer transfer = { .flow = i, .gate_ns = (uint32_t)i, .chunks = (uint32_t)~i };
	uint8_t slot[HD_SLOT_BYTES], ext[HD_SLOT_BYTES];

	hd_event_put(slot, &event);
	hd_event_put_transfer(ext, &transfer);
	if (pair)
		hd_ring_put_pair(writer, slot, ext);
	else
		hd_ring_put(writer, slot);
}

static bool is_whole(const struct hd_event *e)
{
	return e->duration == (e->t0 & 0xffff) && e->name == (uint32_t)e->t0 &&
		e->instr == (uint32_t)~e->t0 && e->arg == e->t0 * 7
		&& e->kind == (e->flags ? HD_EVENT_SEND : HD_EVENT_OP);
}

/* For every fill level a snapshot is the newest events, of which at most two are held back. */
static void a_snapshot_is_the_newest_events_in_order(void **state)
{
	uint8_t slot[MOST][HD_SLOT_BYTES];
	(void)state;

	for (uint32_t nslots = HD_RING_SLOTS_LOW; nslots <= 16; nslots *= 2)
		for (uint64_t n = 0; n < 3 * nslots; n++) {
			struct hd_ring_writer writer;
			struct hd_ring_reader reader;
			hd_ring_init(&writer, memory, nslots);
			for (uint64_t i = 0; i < n; i++)
				put_number(&writer, i, false);
			hd_ring_read_begin(&reader, memory, nslots);
			uint64_t want = n > nslots - 2 ? nslots - 2 : n;
			uint32_t got = hd_ring_read(&reader, slot, MOST);
			CHECK(got == want && reader.nlost == n - want, "%u slots, %llu events: %u read",
				nslots, (unsigned long long)n, got);
			for (uint32_t i = 0; i < got; i++) {
				struct hd_event event;
				CHECK(hd_event_get(slot[i], &event) && is_whole(&event) &&
					event.t0 == n - want + i, "%u slots, %llu events, at %u",
					nslots, (unsigned long long)n, i);
			}
			assert_int_equal(hd_ring_read(&reader, slot, MOST), 0);
		}
}

static void a_drain_takes_up_where_it_left_off(void **state)
{
	struct hd_ring_writer writer;
	struct hd_ring_reader reader;
	uint8_t slot[2][HD_SLOT_BYTES];
	uint64_t next = 0;
	uint32_t n;
	(void)state;

	hd_ring_init(&writer, memory, 16);
	hd_ring_read_begin(&reader, memory, 16);
	for (uint64_t i = 0; i < 200; i += 5) {
		for (uint64_t j = i; j < i + 5; j++)
			put_number(&writer, j, false);
		while ((n = hd_ring_read(&reader, slot, 2)))
			for (uint32_t k = 0; k < n; k++, next++) {
				struct hd_event event;
				CHECK(hd_event_get(slot[k], &event) && event.t0 == next, "event %llu",
					(unsigned long long)next);
			}
	}
	assert_true(next == 200 && reader.nlost == 0);
}

static void an_extension_that_lost_its_base_is_dropped(void **state)
{
	struct hd_ring_writer writer;
	struct hd_ring_reader reader;
	uint8_t slot[MOST][HD_SLOT_BYTES];
	(void)state;

	for (uint64_t shift = 0; shift < 2; shift++) {
		hd_ring_init(&writer, memory, 8);
		for (uint64_t i = 1; i <= 10; i++)
			put_number(&writer, i, true);
		if (shift)
			put_number(&writer, 11, false);
		hd_ring_read_begin(&reader, memory, 8);
		uint32_t n = hd_ring_read(&reader, slot, MOST);
		/* the oldest whole slot is 20 + shift + 2 - 8: a base at 14, an extension at 15 */
		CHECK(n == 6 - shift && !hd_slot_is_ext(slot[0]), "shift %llu: %u slots",
			(unsigned long long)shift, n);
		assert_true(reader.nlost + n == 20 + shift);
	}
}

static void a_pair_cut_by_the_end_of_the_buffer_is_not_a_loss(void **state)
{
	struct hd_ring_writer writer;
	struct hd_ring_reader reader;
	uint8_t slot[3][HD_SLOT_BYTES];
	(void)state;

	hd_ring_init(&writer, memory, 16);
	for (uint64_t i = 0; i < 3; i++)
		put_number(&writer, i, true);
	hd_ring_read_begin(&reader, memory, 16);
	assert_int_equal(hd_ring_read(&reader, slot, 3), 3);
	assert_int_equal(hd_ring_read(&reader, slot, 3), 3);
	assert_true(hd_slot_is_ext(slot[0]) && reader.nlost == 0);
}

static void a_ring_of_any_bytes_gives_slots_or_none(void **state)
{
	static const uint64_t heads[] = { 0, 1, 5, 16, 17, UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 2 + 1,
		UINT64_MAX - 1 };
	struct hd_ring_reader reader;
	uint8_t slot[MOST][HD_SLOT_BYTES];
	(void)state;

	for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++) {
		memset(memory, 0xff, sizeof memory);
		memcpy(memory, &heads[h], 8);
		hd_ring_read_begin(&reader, memory, 16);
		for (int again = 0; again < 3; again++)
			CHECK(hd_ring_read(&reader, slot, MOST) <= 16, "head %llu",
				(unsigned long long)heads[h]);
	}
}

static void only_powers_of_two_in_range_are_sizes(void **state)
{
	(void)state;
	assert_true(hd_ring_slots_ok(4) && hd_ring_slots_ok(65536) && hd_ring_slots_ok(1 << 24));
	assert_false(hd_ring_slots_ok(0) || hd_ring_slots_ok(2) || hd_ring_slots_ok(6) ||
		hd_ring_slots_ok(1 << 25) || hd_ring_slots_ok(UINT64_C(1) << 32));
	assert_int_equal(hd_ring_bytes(65536), 64 + (2 << 20));
}

static void the_drain_says_what_it_missed(void **state)
{
	struct hd_ring_writer writer;
	uint64_t lost;
	(void)state;

	hd_ring_init(&writer, memory, 4);
	hd_ring_lost_set(writer.ring, 9);
	memcpy(&lost, memory + 8, 8);
	assert_int_equal(lost, 9);
}

enum { EVENTS = 300000 };
static _Atomic bool finished;

static void *write_all(void *user)
{
	for (uint64_t i = 0; i < EVENTS; i++)
		put_number(user, i, i % 3 == 0);
	atomic_store(&finished, true);
	return NULL;
}

/* One drains while the other laps it: no slot is torn, none comes twice, none is missed without being
 * counted. */
static void a_reader_beside_the_writer_sees_whole_events_only(void **state)
{
	struct hd_ring_writer writer;
	struct hd_ring_reader reader;
	uint8_t slot[MOST][HD_SLOT_BYTES];
	uint64_t nread = 0, wrong = 0, last = 0, total = EVENTS + (EVENTS + 2) / 3;
	bool want_ext = false, any = false, end;
	pthread_t thread;
	(void)state;

	hd_ring_init(&writer, memory, MOST);
	hd_ring_read_begin(&reader, memory, MOST);
	assert_int_equal(pthread_create(&thread, NULL, write_all, &writer), 0);
	do {
		end = atomic_load(&finished);
		uint64_t lost = reader.nlost;
		uint32_t n = hd_ring_read(&reader, slot, MOST);
		if (reader.nlost != lost)
			want_ext = false;
		for (uint32_t i = 0; i < n; i++) {
			struct hd_event event;
			struct hd_event_transfer transfer;
			if (hd_event_get(slot[i], &event)) {
				wrong += !is_whole(&event) || want_ext || (any && event.t0 <= last);
				last = event.t0;
				any = true;
				want_ext = event.flags != 0;
			} else {
				wrong += !hd_event_get_transfer(slot[i], &transfer) || !want_ext ||
					transfer.flow != last || transfer.gate_ns != (uint32_t)last
					|| transfer.chunks != (uint32_t)~last;
				want_ext = false;
			}
		}
		nread += n;
		if (n == 0)
			sched_yield();
	} while (!end);
	pthread_join(thread, NULL);
	CHECK(wrong == 0 && nread + reader.nlost == total && nread > 0,
		"%llu wrong; %llu read, %llu lost of %llu", (unsigned long long)wrong,
		(unsigned long long)nread, (unsigned long long)reader.nlost, (unsigned long long)total);
}

/* hd_ring_put_event() and a slot of hd_event_put() are the same bytes, whatever is in the event. */
static void an_event_is_put_as_its_slot(void **state)
{
	static const uint64_t edge[] = { 0, 1, 0xff, UINT32_MAX, HD_EVENT_DURATION_MAX,
		HD_EVENT_DURATION_MAX + 1, UINT64_MAX };
	enum { N = sizeof edge / sizeof edge[0] };
	_Alignas(64) static uint8_t other[sizeof memory];
	(void)state;

	for (uint32_t i = 0; i < N * N * N; i++) {
		const struct hd_event event = { .t0 = edge[i % N], .duration = edge[i / N % N],
			.arg = edge[i / N / N], .name = (uint32_t)edge[(i + 1) % N],
			.instr = (uint32_t)edge[(i + 2) % N], .flags = (uint8_t)edge[i / N % N],
			.kind = (uint8_t)(i % 255) };
		struct hd_ring_writer one, two;
		uint8_t slot[HD_SLOT_BYTES];
		hd_ring_init(&one, memory, 4);
		hd_ring_init(&two, other, 4);
		for (uint32_t k = 0; k < 1 + i % 6; k++) {
			hd_event_put(slot, &event);
			hd_ring_put(&one, slot);
			hd_ring_put_event(&two, &event);
		}
		assert_memory_equal(memory, other, hd_ring_bytes(4));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_put_as_its_slot),
		cmocka_unit_test(a_snapshot_is_the_newest_events_in_order),
		cmocka_unit_test(a_drain_takes_up_where_it_left_off),
		cmocka_unit_test(an_extension_that_lost_its_base_is_dropped),
		cmocka_unit_test(a_pair_cut_by_the_end_of_the_buffer_is_not_a_loss),
		cmocka_unit_test(a_ring_of_any_bytes_gives_slots_or_none),
		cmocka_unit_test(only_powers_of_two_in_range_are_sizes),
		cmocka_unit_test(the_drain_says_what_it_missed),
		cmocka_unit_test(a_reader_beside_the_writer_sees_whole_events_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
