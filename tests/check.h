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
/* A sanitizer makes a test five to ten times as slow: it has to see each path, and takes a tenth of the draws
 * that the build without one takes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
#define DRAWS(n) (SANITIZED ? ((n) + 9) / 10 : (n))
/* ThreadSanitizer looks for races, and takes ten times as long: what has no second thread, and every third of
 * alike cases, are for the other builds. */
#ifdef __SANITIZE_THREAD__
#define RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES 1
#endif
#endif
#ifndef RACES
#define RACES 0
#endif
/* `call` once for each piece that it takes of arenas, with that one refused (base/alloc.h): it says that
 * there is no memory, and nothing worse happens. Ends with the call that all is given to. */
#define EACH_PIECE_REFUSED(err, call) \
	do { \
		uint64_t piece_ = 0, left_; \
		do { \
			hd_alloc_arm_piece(++piece_); \
			(err) = (call); \
			left_ = hd_alloc_arm_piece(0); \
			CHECK((err) == (left_ ? HD_OK : HD_E_NOMEM), \
				"piece %u refused, and it ended with %d", (unsigned)piece_, \
				(int)(err)); \
		} while (!left_); \
		CHECK(piece_ > 1, "no piece was asked for"); \
	} while (0)
#define SKIP(why) do { print_message("skip: %s\n", why); skip(); } while (0)

#endif
