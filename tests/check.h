/* check.h -- cmocka, and two macros: a check in a loop says which case failed, a skipped
 * test says why (tools/run_tests.sh lists the reasons). */
#ifndef HD_TESTS_CHECK_H
#define HD_TESTS_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#define CHECK(cond, ...) \
	do { if (!(cond)) { print_error("%s: ", #cond); fail_msg(__VA_ARGS__); } } while (0)
#define SKIP(why) do { print_message("skip: %s\n", why); skip(); } while (0)

#endif
