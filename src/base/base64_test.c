#include "base/base64.h"

#include <string.h>

#include "tests/check.h"

static void base64_is_that_of_the_standard(void **state)
{
	static const char *const at[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" } };
	static const char *const bad[] = { "Zg=", "Zh==", "Zm9=", "Z===", "Zg==Zg==", "Zm 8", "====",
		"Zm9\n" };
	char bytes[64];
	uint8_t back[64];
	struct hd_text text;
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		hd_text_fixed(&text, bytes, sizeof bytes);
		hd_base64_write(at[i][0], strlen(at[i][0]), &text);
		assert_string_equal(text.at, at[i][1]);
		assert_true(hd_base64_read((struct hd_http_span){ text.at, text.len }, back,
			strlen(at[i][0]), &len));
		assert_int_equal(len, strlen(at[i][0]));
		assert_memory_equal(back, at[i][0], len);
		if (len)
			assert_false(hd_base64_read((struct hd_http_span){ text.at, text.len }, back,
				len - 1, &len));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!hd_base64_read((struct hd_http_span){ bad[i], strlen(bad[i]) }, back, sizeof back,
			&len), "%s",
			bad[i]);
}

/* Longer than the writer's own room: each group of three as if it stood alone. */
static void long_ones_are_their_groups(void **state)
{
	enum { N = 3 * 4099 + 1 };
	static uint8_t bytes[N], back[N];
	static char room[4 * (N / 3 + 1) + 1], few[8];
	struct hd_text text, group;
	size_t len = 0;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	hd_text_fixed(&text, room, sizeof room);
	hd_base64_write(bytes, N, &text);
	assert_int_equal(text.len, 4 * (N / 3 + 1));
	for (size_t i = 0; i < N; i += 3) {
		hd_text_fixed(&group, few, sizeof few);
		hd_base64_write(bytes + i, N - i < 3 ? N - i : 3, &group);
		CHECK(!memcmp(text.at + i / 3 * 4, few, 4), "group at %zu", i);
	}
	assert_true(hd_base64_read((struct hd_http_span){ text.at, text.len }, back, N, &len));
	assert_int_equal(len, N);
	assert_memory_equal(back, bytes, N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_is_that_of_the_standard),
		cmocka_unit_test(long_ones_are_their_groups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
