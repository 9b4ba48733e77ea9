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

static _Atomic uint64_t guard_count;
static atomic_bool guard_armed;

static inline void hd_guard_arm(void)
{
	atomic_store(&guard_count, 0);
	atomic_store(&guard_armed, 1);
}

static inline uint64_t hd_guard_disarm(void)
{
	atomic_store(&guard_armed, 0);
	return atomic_load(&guard_count);
}

#if HD_GUARD_WORKS
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void guard_see(void)
{
	if (atomic_load_explicit(&guard_armed, memory_order_relaxed))
		atomic_fetch_add(&guard_count, 1);
}

void *malloc(size_t n)
{
	guard_see();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	guard_see();
	return __libc_calloc(n, size);
}

void *realloc(void *at, size_t n)
{
	guard_see();
	return __libc_realloc(at, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	guard_see();
	return __libc_memalign(align, n);
}

void *memalign(size_t align, size_t n)
{
	guard_see();
	return __libc_memalign(align, n);
}

int posix_memalign(void **at, size_t align, size_t n)
{
	guard_see();
	void *made = __libc_memalign(align, n);
	if (made)
		*at = made;
	return made ? 0 : ENOMEM;
}

void free(void *at)
{
	if (at)
		guard_see();
	__libc_free(at);
}
#endif
