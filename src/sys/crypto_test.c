#include "sys/crypto.h"

#include <errno.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

/* Sums from FIPS 180-2, appendix B. */
static const struct { const char *text, *sum; } known[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

static void sums_are_those_of_the_standard(void **state)
{
	char hex[HD_SHA256_HEX];
	struct hd_sha256 sum, back;

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_int_equal(hd_sha256(known[i].text, strlen(known[i].text), &sum, NULL), HD_OK);
		hd_sha256_hex(&sum, hex);
		assert_string_equal(hex, known[i].sum);
		assert_true(hd_sha256_parse(hex, &back));
		assert_true(hd_sha256_same(&sum, &back));
		back.byte[31] ^= 1;
		assert_false(hd_sha256_same(&sum, &back));
	}
}

/* RFC 4231, cases 1, 2, 4 and 6: keys shorter than a block, of text, longer than a block. */
static void proofs_are_those_of_the_standard(void **state)
{
	uint8_t ones[131], cd[50];
	const char *long_key = "Test Using Larger Than Block-Size Key - Hash Key First";
	uint8_t k4[25];

	(void)state;
	memset(ones, 0x0b, 20);
	memset(cd, 0xcd, sizeof cd);
	for (uint8_t i = 0; i < sizeof k4; i++)
		k4[i] = (uint8_t)(i + 1);
	uint8_t big[131];
	memset(big, 0xaa, sizeof big);
	const struct { const void *key; size_t key_len; const void *text; size_t len;
		const char *proof; } at[] = {
		{ ones, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", 4, "what do ya want for nothing?", 28, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ k4, sizeof k4, cd, sizeof cd, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ big, sizeof big, long_key, strlen(long_key), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	};
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct hd_sha256 proof, other;
		char hex[HD_SHA256_HEX];
		assert_int_equal(hd_hmac_sha256(at[i].key, at[i].key_len, at[i].text, at[i].len, &proof,
			NULL), HD_OK);
		hd_sha256_hex(&proof, hex);
		assert_string_equal(hex, at[i].proof);
		other = proof;
		assert_true(hd_sha256_proves(&proof, &other));
		other.byte[0] ^= 0x80;
		assert_false(hd_sha256_proves(&proof, &other));
	}
}

static void a_stream_in_pieces_is_the_sum_of_the_whole(void **state)
{
	uint8_t bytes[300];
	struct hd_sha256 whole, joined;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 13);
	assert_int_equal(hd_sha256(bytes, sizeof bytes, &whole, NULL), HD_OK);
	for (size_t cut = 0; cut <= sizeof bytes; cut += 37) {
		struct hd_sha256_stream stream = { 0 };
		assert_int_equal(hd_sha256_begin(&stream, NULL), HD_OK);
		assert_int_equal(hd_sha256_add(&stream, bytes, cut, NULL), HD_OK);
		assert_int_equal(hd_sha256_add(&stream, bytes + cut, sizeof bytes - cut, NULL), HD_OK);
		assert_int_equal(hd_sha256_end(&stream, &joined, NULL), HD_OK);
		assert_true(hd_sha256_same(&whole, &joined));
		hd_sha256_finish(&stream);
	}
	struct hd_sha256_stream given_up = { 0 };
	assert_int_equal(hd_sha256_begin(&given_up, NULL), HD_OK);
	hd_sha256_finish(&given_up);
}

static void a_files_sum_is_that_of_its_bytes(void **state)
{
	enum { LONG = (1 << 18) + 5 };
	static uint8_t bytes[2 << 18];
	static const size_t sizes[] = { 0, 1, 1 << 18, LONG, 2 << 18 };
	struct hd_sha256 want, sum;
	uint64_t len;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i >> 3);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hd_fs_sim sim;
		hd_fs_sim_init(&sim);
		assert_int_equal(hd_file_write_atomic(&sim.fs, "/f", bytes, sizes[i], NULL), HD_OK);
		assert_int_equal(hd_sha256(bytes, sizes[i], &want, NULL), HD_OK);
		assert_int_equal(hd_sha256_file(&sim.fs, "/f", &sum, &len, NULL), HD_OK);
		assert_true(hd_sha256_same(&want, &sum));
		assert_int_equal(len, sizes[i]);
		for (uint64_t n = 1; n <= 2; n++) {        /* open, first read */
			struct hd_diag diag = { "" };
			memset(&sum, 7, sizeof sum);
			hd_fs_sim_fail(&sim, n, EIO, false);
			assert_int_equal(hd_sha256_file(&sim.fs, "/f", &sum, &len, &diag), HD_E_IO);
			assert_non_null(strstr(diag.text, "/f"));
			assert_int_equal(sum.byte[0], 7);        /* set only on success */
		}
		hd_fs_sim_finish(&sim);
	}
}

static void only_sixty_four_lower_case_digits_are_a_sum(void **state)
{
	char hex[80];
	struct hd_sha256 sum;

	(void)state;
	memset(hex, 'a', sizeof hex);
	hex[64] = 0;
	assert_true(hd_sha256_parse(hex, &sum));
	hex[63] = 0;
	assert_false(hd_sha256_parse(hex, &sum));
	hex[63] = 'A';
	assert_false(hd_sha256_parse(hex, &sum));
	hex[63] = 'g';
	assert_false(hd_sha256_parse(hex, &sum));
	hex[63] = hex[64] = 'a';
	hex[65] = 0;
	assert_false(hd_sha256_parse(hex, &sum));
	assert_false(hd_sha256_parse("", &sum));
}

static void random_bytes_differ(void **state)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	(void)state;
	assert_int_equal(hd_random_bytes(a, sizeof a, NULL), HD_OK);
	assert_int_equal(hd_random_bytes(b, sizeof b, NULL), HD_OK);
	assert_memory_not_equal(a, b, sizeof a);
	assert_int_equal(hd_random_bytes(a, 0, NULL), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_the_standard),
		cmocka_unit_test(proofs_are_those_of_the_standard),
		cmocka_unit_test(a_stream_in_pieces_is_the_sum_of_the_whole),
		cmocka_unit_test(a_files_sum_is_that_of_its_bytes),
		cmocka_unit_test(only_sixty_four_lower_case_digits_are_a_sum),
		cmocka_unit_test(random_bytes_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
