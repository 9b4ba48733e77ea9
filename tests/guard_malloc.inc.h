/* guard_malloc.inc.h -- counts what the process takes from the heap while it is armed.
 *
 * Included once by a test: malloc and its kin of the whole process, libraries included,
 * go through here to glibc's own. Counting is off until hd_guard_arm(). All threads count
 * into one number. Not for sanitizers, which interpose the same names: such a build must
 * skip the test (HD_GUARD_WORKS is then 0). */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HD_GUARD_WORKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HD_GUARD_WORKS 0
#endif
#endif
#ifndef HD_GUARD_WORKS
#define HD_GUARD_WORKS 1
#endif

/* where the code of the test program lies, rooms included; libraries lie elsewhere */
extern char __executable_start[], etext[];

static _Atomic uint64_t guard_count, guard_own;
static atomic_bool guard_armed;

static inline void hd_guard_arm(void)
{
	atomic_store(&guard_count, 0);
	atomic_store(&guard_own, 0);
	atomic_store(&guard_armed, 1);
}

static inline uint64_t hd_guard_disarm(void)
{
	atomic_store(&guard_armed, 0);
	return atomic_load(&guard_count);
}

/* Of the calls counted last those that our code made itself, not a library that it called. */
static inline uint64_t hd_guard_own(void) { return atomic_load(&guard_own); }

#if HD_GUARD_WORKS
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* Inlined into the test, a call of these would seem to come from whoever called the test. */
#define HD_GUARD_APART __attribute__((noinline))

static void guard_see(const void *caller)
{
	if (!atomic_load_explicit(&guard_armed, memory_order_relaxed))
		return;
	atomic_fetch_add(&guard_count, 1);
	atomic_fetch_add(&guard_own, (uintptr_t)caller >= (uintptr_t)__executable_start &&
		(uintptr_t)caller < (uintptr_t)etext);
}

HD_GUARD_APART void *malloc(size_t n)
{
	guard_see(__builtin_return_address(0));
	return __libc_malloc(n);
}

HD_GUARD_APART void *calloc(size_t n, size_t size)
{
	guard_see(__builtin_return_address(0));
	return __libc_calloc(n, size);
}

HD_GUARD_APART void *realloc(void *at, size_t n)
{
	guard_see(__builtin_return_address(0));
	return __libc_realloc(at, n);
}

HD_GUARD_APART void *aligned_alloc(size_t align, size_t n)
{
	guard_see(__builtin_return_address(0));
	return __libc_memalign(align, n);
}

HD_GUARD_APART void *memalign(size_t align, size_t n)
{
	guard_see(__builtin_return_address(0));
	return __libc_memalign(align, n);
}

HD_GUARD_APART int posix_memalign(void **at, size_t align, size_t n)
{
	guard_see(__builtin_return_address(0));
	void *made = __libc_memalign(align, n);
	if (made)
		*at = made;
	return made ? 0 : ENOMEM;
}

HD_GUARD_APART void free(void *at)
{
	if (at)
		guard_see(__builtin_return_address(0));
	__libc_free(at);
}
#endif
