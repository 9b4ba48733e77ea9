/* Which runs may get another program, and which side is to be upgraded. */
#include "driver/upgrade.h"

#include <string.h>

#include "tests/check.h"

static void a_run_of_another_protocol_is_refused_with_the_side_that_is_older(void **state)
{
	static const struct { struct hd_live live; const char *says, *not; } cases[] = {
		{ { .goes_on = true, .protocol = 7 }, NULL, NULL },
		{ { .goes_on = true, .protocol = 6 }, "the run is older: r speaks protocol 6, and this program 7", "Upgrade" },
		{ { .goes_on = true, .protocol = 6 }, "`heddle stop r`, then `heddle resume r` with this program", "Upgrade" },
		{ { .goes_on = true }, "the run is older: r speaks protocol 0 or an earlier one", "Upgrade" },
		{ { .goes_on = true, .protocol = 8 }, "this program is older: r speaks protocol 8, and this program 7", "the run is" },
		{ { .goes_on = true, .protocol = 8 }, "Upgrade this program", "the run is" },
		{ { .protocol = 7 }, "nothing to upgrade", NULL },
		{ { .goes_on = true, .away = true, .protocol = 7 }, "not go on on this machine", NULL },
		{ { .goes_on = true, .alone = 5 }, "in one process, without workers", NULL },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_upgrade_fits(&cases[i].live, "r", 7, &diag);
		CHECK(cases[i].says ? err == HD_E_INVAL && strstr(diag.text, cases[i].says) != NULL : !err,
			"case %zu: %d, %s", i, err, diag.text);
		CHECK(!cases[i].not || !strstr(diag.text, cases[i].not), "case %zu: %s", i, diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_of_another_protocol_is_refused_with_the_side_that_is_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
