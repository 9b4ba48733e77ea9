/* check.h -- cmocka, and one macro: a check in a loop says which case failed. */
#ifndef HD_TESTS_CHECK_H
#define HD_TESTS_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#define CHECK(cond, ...) \
	do { if (!(cond)) { print_error("%s: ", #cond); fail_msg(__VA_ARGS__); } } while (0)
#endif
