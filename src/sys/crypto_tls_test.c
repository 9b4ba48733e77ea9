#define _GNU_SOURCE        /* of the C library: memmem */
#include "sys/crypto_tls.h"

#include <malloc.h>
#include <string.h>

#include "sys/clock.h"
#include "tests/check.h"

static const uint8_t key[32] = "a key of the job, thirty-two by.";

struct ends {
	struct hd_clock_sim clock;
	struct hd_net_sim net;
	struct hd_sock listener, sock[2];
	struct hd_tls_realm realm;
	struct hd_tls tls[2];
	char asked[HD_TLS_IDENTITY];
	bool refuses;
	struct hd_diag diag;
};

static bool accept_it(void *self, const char *identity)
{
	struct ends *e = self;

	memcpy(e->asked, identity, strlen(identity) + 1);
	return !e->refuses;
}

static struct hd_tls_config config_of(struct ends *e, bool listens)
{
	return (struct hd_tls_config){ .key = key, .key_len = sizeof key, .salt = { 0, 1, 2 },
		.listens = listens, .identity = "hd1/job/3/0",
		.accept = accept_it, .self = e };
}

static void enter(struct ends *e)
{
	memset(e, 0, sizeof *e);
	hd_clock_sim(&e->clock, 0, 0);
	assert_int_equal(hd_net_sim_init(&e->net, &e->clock.clock, NULL, &e->diag), HD_OK);
	assert_int_equal(hd_sock_listen(&e->net.net, "tcp:x", &e->listener, &e->diag), HD_OK);
	assert_int_equal(hd_sock_connect(&e->net.net, "tcp:x", &e->sock[0], &e->diag), HD_OK);
	assert_int_equal(hd_sock_accept(&e->listener, &e->sock[1], &e->diag), HD_OK);
	assert_int_equal(hd_tls_realm_make(&e->realm, &e->diag), HD_OK);
}

static void leave(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		hd_tls_finish(&e->tls[i]);
		hd_sock_close(&e->sock[i]);
	}
	hd_tls_realm_finish(&e->realm);
	hd_sock_close(&e->listener);
	hd_net_sim_finish(&e->net);
}

static void make(struct ends *e, const struct hd_tls_config *connects, const struct hd_tls_config *listens)
{
	assert_int_equal(hd_tls_make(&e->tls[0], &e->realm, connects, &e->sock[0], &e->diag), HD_OK);
	assert_int_equal(hd_tls_make(&e->tls[1], &e->realm, listens, &e->sock[1], &e->diag), HD_OK);
}

/* Both ends in turn until neither waits; what each got. */
static void shake(struct ends *e, enum hd_err got[2])
{
	got[0] = got[1] = HD_E_AGAIN;
	for (int i = 0; i < 20 && (got[0] == HD_E_AGAIN || got[1] == HD_E_AGAIN); i++)
		if (got[i & 1] == HD_E_AGAIN)
			got[i & 1] = hd_tls_shake(&e->tls[i & 1], &e->diag);
}

static void the_secret_is_the_hkdf_of_key_salt_and_identity(void **state)
{
	/* by hmac and hashlib of another language */
	static const uint8_t want[HD_TLS_SECRET] = {
		0xcc, 0xec, 0x9f, 0x95, 0x89, 0xcf, 0x67, 0xae, 0xba, 0xe0, 0xa2, 0x06, 0x36, 0x53, 0x8f,
			0x2d,
		0x2c, 0x6f, 0xd9, 0x62, 0xf4, 0x8e, 0xb4, 0x8c, 0x91, 0xb4, 0x01, 0x2c, 0x25, 0x42, 0x6b,
		0x61,
	};
	struct hd_tls_config config = { .key = key, .key_len = sizeof key };
	uint8_t secret[HD_TLS_SECRET];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		config.salt[i] = i;
	assert_true(hd_tls_secret(&config, "hd1/000102030405060708090a0b0c0d0e0f/3/0", secret));
	assert_memory_equal(secret, want, sizeof want);
}

static void both_prove_the_secret_and_bytes_go_both_ways(void **state)
{
	static uint8_t bytes[100000], into[100000];
	struct ends e;
	enum hd_err got[2];

	(void)state;
	enter(&e);
	struct hd_tls_config connects = config_of(&e, false), listens = config_of(&e, true);
	make(&e, &connects, &listens);
	shake(&e, got);
	CHECK(got[0] == HD_OK && got[1] == HD_OK, "%s", e.diag.text);
	assert_string_equal(e.asked, "hd1/job/3/0");
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	/* More than the net holds: writes are repeated with the same bytes. */
	for (int from = 0; from < 2; from++) {
		size_t out = 0, in = 0, n;
		bool waited = false;
		while (in < sizeof bytes) {
			while (out < sizeof bytes) {
				enum hd_err err = hd_tls_write(&e.tls[from], bytes + out, sizeof bytes - out,
					&n, &e.diag);
				waited |= err == HD_E_AGAIN;
				if (err == HD_E_AGAIN)
					break;
				CHECK(err == HD_OK, "%s", e.diag.text);
				out += n;
			}
			while (hd_tls_read(&e.tls[1 - from], into + in,
				sizeof into - in + (in == sizeof into), &n, &e.diag) == HD_OK && n)
				in += n;
		}
		assert_true(waited);
		assert_memory_equal(into, bytes, sizeof bytes);
	}
	/* Not one byte of what was said is to be seen on the way. */
	size_t n;
	assert_int_equal(hd_tls_write(&e.tls[0], "a secret of the weights", 23, &n, &e.diag), HD_OK);
	assert_int_equal(hd_sock_read(&e.sock[1], into, sizeof into, &n, &e.diag), HD_OK);
	assert_null(memmem(into, n, "weights", 7));
	leave(&e);
}

static void an_orderly_end_reads_as_the_end(void **state)
{
	struct ends e;
	enum hd_err got[2];
	uint8_t byte;
	size_t n = 1;

	(void)state;
	enter(&e);
	struct hd_tls_config connects = config_of(&e, false), listens = config_of(&e, true);
	make(&e, &connects, &listens);
	shake(&e, got);
	assert_int_equal(hd_tls_read(&e.tls[1], &byte, 1, &n, &e.diag), HD_E_AGAIN);
	hd_tls_finish(&e.tls[0]);
	assert_int_equal(hd_tls_read(&e.tls[1], &byte, 1, &n, &e.diag), HD_OK);
	assert_int_equal(n, 0);
	leave(&e);
	/* The socket's end without a word is not orderly: it may have been cut. */
	enter(&e);
	make(&e, &connects, &listens);
	shake(&e, got);
	e.net.faults = &(struct hd_net_fault){ .write = e.net.writes + 1, .cut = true };
	e.net.n_faults = 1;
	assert_int_equal(hd_tls_write(&e.tls[0], "x", 1, &n, &e.diag), HD_E_PEERLOST);
	assert_int_equal(hd_tls_read(&e.tls[1], &byte, 1, &n, &e.diag), HD_E_PEERLOST);
	leave(&e);
}

static void who_lacks_the_secret_is_refused(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct ends e;
		enum hd_err got[2];
		uint8_t other[32] = { 1 };
		enter(&e);
		struct hd_tls_config connects = config_of(&e, false), listens = config_of(&e, true);
		if (how == 0)
			connects.key = other;
		if (how == 1)
			connects.salt[0] = 9;
		if (how == 2)
			e.refuses = true;
		make(&e, &connects, &listens);
		shake(&e, got);
		CHECK(got[1] == HD_E_REFUSED, "case %d: %d", how, (int)got[1]);
		CHECK(got[0] == HD_E_REFUSED, "case %d: %d", how, (int)got[0]);
		leave(&e);
	}
}

static void a_short_key_is_no_key(void **state)
{
	struct ends e;

	(void)state;
	enter(&e);
	struct hd_tls_config connects = config_of(&e, false);
	connects.key_len = 15;
	assert_int_equal(hd_tls_make(&e.tls[0], &e.realm, &connects, &e.sock[0], &e.diag), HD_E_REFUSED);
	assert_non_null(strstr(e.diag.text, "16 are the least"));
	leave(&e);
}

/* OpenSSL's own memory counts: an unauthenticated peer makes us spend it. */
static void who_has_not_shaken_hands_holds_little(void **state)
{
	enum { N = 30 };
	/* announces 16 KiB */
	static const uint8_t part_of_hello[] = { 0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3 };
	struct ends e;
	struct hd_sock near[N], far[N];
	struct hd_tls tls[N] = { { NULL } };
	size_t n;

	(void)state;
	enter(&e);
	struct hd_tls_config connects = config_of(&e, false), listens = config_of(&e, true);
	enum hd_err got[2];
	make(&e, &connects, &listens);
	/* what the first one ever takes is not this one's */
	shake(&e, got);
	struct mallinfo2 before = mallinfo2();
	for (int i = 0; i < N; i++) {
		assert_int_equal(hd_sock_connect(&e.net.net, "tcp:x", &near[i], &e.diag), HD_OK);
		assert_int_equal(hd_sock_accept(&e.listener, &far[i], &e.diag), HD_OK);
		assert_int_equal(hd_tls_make(&tls[i], &e.realm, &listens, &far[i], &e.diag), HD_OK);
		assert_int_equal(hd_tls_shake(&tls[i], &e.diag), HD_E_AGAIN);
		assert_int_equal(hd_sock_write(&near[i], part_of_hello, sizeof part_of_hello, &n, &e.diag),
			HD_OK);
		assert_int_equal(hd_tls_shake(&tls[i], &e.diag), HD_E_AGAIN);
	}
	size_t each = (mallinfo2().uordblks - before.uordblks) / N;
	CHECK(each < 60 << 10, "%zu bytes each", each);
	print_message("  %zu bytes each\n", each);
	for (int i = 0; i < N; i++) {
		hd_tls_finish(&tls[i]);
		hd_sock_close(&near[i]);
		hd_sock_close(&far[i]);
	}
	leave(&e);
}

/* Equal at both ends, and of no other connection of the same key and identity. */
static void a_binding_is_of_one_connection(void **state)
{
	uint8_t binding[2][2][HD_TLS_SECRET];

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct ends e;
		enum hd_err got[2];
		enter(&e);
		struct hd_tls_config connects = config_of(&e, false), listens = config_of(&e, true);
		make(&e, &connects, &listens);
		assert_false(hd_tls_binding(&e.tls[0], binding[k][0]));   /* before they have shaken hands */
		shake(&e, got);
		CHECK(got[0] == HD_OK && got[1] == HD_OK, "%s", e.diag.text);
		for (int end = 0; end < 2; end++)
			assert_true(hd_tls_binding(&e.tls[end], binding[k][end]));
		assert_memory_equal(binding[k][0], binding[k][1], HD_TLS_SECRET);
		leave(&e);
	}
	assert_memory_not_equal(binding[0][0], binding[1][0], HD_TLS_SECRET);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_secret_is_the_hkdf_of_key_salt_and_identity),
		cmocka_unit_test(both_prove_the_secret_and_bytes_go_both_ways),
		cmocka_unit_test(an_orderly_end_reads_as_the_end),
		cmocka_unit_test(who_lacks_the_secret_is_refused),
		cmocka_unit_test(a_short_key_is_no_key),
		cmocka_unit_test(who_has_not_shaken_hands_holds_little),
		cmocka_unit_test(a_binding_is_of_one_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
