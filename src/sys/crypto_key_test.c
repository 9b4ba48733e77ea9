#include "sys/crypto_key.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[] = "/tmp/hd_key.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void a_new_key_is_this_user_s_alone_and_unlike_any_other(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_key a, b, again;
	struct hd_hash id_a, id_b;
	struct stat st;

	(void)state;
	CHECK(!hd_key_make(path_of("a"), &diag), "%s", diag.text);
	assert_int_equal(stat(path_of("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 65);
	assert_int_equal(hd_key_make(path_of("a"), &diag), HD_E_EXISTS);
	assert_int_equal(hd_key_make(path_of("b"), NULL), HD_OK);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	assert_int_equal(hd_key_read(path_of("a"), &a, NULL), HD_OK);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	assert_int_equal(hd_key_read(path_of("a"), &again, NULL), HD_OK);
	assert_int_equal(hd_key_read(path_of("b"), &b, NULL), HD_OK);
	assert_memory_equal(&a, &again, sizeof a);
	assert_memory_not_equal(&a, &b, sizeof a);
	assert_int_equal(hd_key_id(&a, &id_a, NULL), HD_OK);
	assert_int_equal(hd_key_id(&b, &id_b, NULL), HD_OK);
	assert_false(hd_hash_same(id_a, id_b));
	for (size_t i = 0; i + 4 <= sizeof id_a.byte; i++)        /* the id says nothing of the key */
		for (size_t k = 0; k + 4 <= sizeof a.byte; k++)
			assert_memory_not_equal(id_a.byte + i, a.byte + k, 4);
}

static void the_id_of_a_key_is_the_one_that_others_derive(void **state)
{
	/* HKDF-SHA256 of 00 01 .. 1f with 16 zero bytes as salt and "heddle key id" as info, by Python's
	 * hmac and hashlib */
	static const uint8_t expected[16] = { 0x9c, 0x08, 0x74, 0xb4, 0x91, 0xe6, 0x7a, 0xec, 0x34, 0xb9,
		0xef, 0x9e, 0xc0, 0xf4, 0xb7, 0x66 };
	struct hd_hash id;
	struct hd_key key;

	(void)state;
	for (size_t i = 0; i < sizeof key.byte; i++)
		key.byte[i] = (uint8_t)i;
	assert_int_equal(hd_key_id(&key, &id, NULL), HD_OK);
	assert_memory_equal(id.byte, expected, sizeof expected);
}

static void what_others_may_read_is_refused(void **state)
{
	static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
	static const mode_t modes[] = { 0640, 0604, 0660, 0644, 0700, 0610, 01600, 0200 };
	struct hd_diag diag = { "" };
	struct hd_key key;

	(void)state;
	put("modes", digits, 0600);
	assert_int_equal(hd_key_read(path_of("modes"), &key, NULL), HD_OK);
	assert_int_equal(key.byte[31], 0x1f);
	put("modes", digits, 0400);
	assert_int_equal(hd_key_read(path_of("modes"), &key, NULL), HD_OK);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(path_of("modes"), modes[i]), 0);
		enum hd_err err = hd_key_read(path_of("modes"), &key, &diag);
		CHECK(err == HD_E_REFUSED, "mode %o: %d", modes[i], err);
		assert_int_equal(key.byte[31], 0);
	}
	assert_non_null(strstr(diag.text, "chmod 0600"));
	assert_int_equal(hd_key_read(path_of("nowhere"), &key, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_key_read(folder, &key, NULL), HD_E_INPUT);
}

static void what_is_no_key_is_refused_and_not_repeated(void **state)
{
	static const char *const texts[] = { "", "\n", "secret-word",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F\n",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n",
		"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0",
		"g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" };
	struct hd_key key;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hd_diag diag = { "" };
		put("odd", texts[i], 0600);
		CHECK(hd_key_read(path_of("odd"), &key, &diag) == HD_E_INPUT, "\"%s\"", texts[i]);
		CHECK(strlen(texts[i]) < 8 || !strstr(diag.text, texts[i]), "%s", diag.text);
	}
}

static int enter(void **state) { (void)state; return mkdtemp(folder) == NULL; }

static int leave(void **state)
{
	static const char *const names[] = { "a", "b", "modes", "odd" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(path_of(names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_key_is_this_user_s_alone_and_unlike_any_other),
		cmocka_unit_test(the_id_of_a_key_is_the_one_that_others_derive),
		cmocka_unit_test(what_others_may_read_is_refused),
		cmocka_unit_test(what_is_no_key_is_refused_and_not_repeated),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
