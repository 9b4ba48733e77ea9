#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/thread.h"

#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "sys/file.h"

_Static_assert(sizeof(pthread_t) == sizeof(unsigned long), "struct hd_thread holds a pthread_t");

enum { FTZ = 0x8000, DAZ = 0x0040, ROUNDING = 0x6000 };        /* of MXCSR */

void hd_thread_arith_set(void)
{
	fesetround(FE_TONEAREST);
	_mm_setcsr(_mm_getcsr() & ~(unsigned)(FTZ | DAZ | ROUNDING));
}

bool hd_thread_arith_ok(void)
{
	return !(_mm_getcsr() & (FTZ | DAZ | ROUNDING)) && fegetround() == FE_TONEAREST;
}

bool hd_thread_tiles_allowed(void)
{
	enum { ASK = 0x1023, TILE_DATA = 18 };        /* ARCH_REQ_XCOMP_PERM; XFEATURE_XTILEDATA */

	return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

static const int faults[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE };

static void *main_of(void *user)
{
	struct hd_thread *thread = user;

	pthread_setname_np(pthread_self(), thread->name);
	hd_thread_arith_set();
	thread->run(thread->user);
	return NULL;
}

static int attributes(pthread_attr_t *attr, int core)
{
	cpu_set_t set;

	int error = pthread_attr_init(attr);
	if (error || core < 0)
		return error;
	if (core >= CPU_SETSIZE) {
		pthread_attr_destroy(attr);
		return EINVAL;
	}
	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	error = pthread_attr_setaffinity_np(attr, sizeof set, &set);
	if (error)
		pthread_attr_destroy(attr);
	return error;
}

/* stack 0: as the system has it */
static enum hd_err start(struct hd_thread *thread, const char *name, int core, size_t stack,
	void (*run)(void *user), void *user, struct hd_diag *diag)
{
	sigset_t all, before;
	pthread_attr_t attr;

	*thread = (struct hd_thread){ .run = run, .user = user, .core = core };
	snprintf(thread->name, sizeof thread->name, "%s", name);
	int error = attributes(&attr, core);
	if (!error && stack)
		error = pthread_attr_setstacksize(&attr, stack);
	if (error)
		return hd_fail(diag, HD_E_REFUSED,
			"cannot start thread %s on core %d: %s; see `taskset -p $$` for the cores allowed",
			name, core,
			       strerror(error));
	/* The child inherits the mask: blocked here, so that no signal falls between start and block. A fault
	 * of its own is not blocked: the system would end the process without the handler that names what
	 * was lost. */
	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread->handle, &attr, main_of, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (error)
		return hd_fail(diag, HD_E_REFUSED,
			"cannot start thread %s (core %d): %s; use fewer threads, or raise the limit "
			"(ulimit -u)", name,
			       core, strerror(error));
	thread->started = true;
	return HD_OK;
}

enum hd_err hd_thread_start(struct hd_thread *thread, const char *name, int core, void (*run)(void *user),
	void *user, struct hd_diag *diag)
{
	return start(thread, name, core, 0, run, user, diag);
}

enum hd_err hd_thread_start_small(struct hd_thread *thread, const char *name, void (*run)(void *user),
	void *user, struct hd_diag *diag)
{
	return start(thread, name, -1, HD_THREAD_SMALL, run, user, diag);
}

int64_t hd_thread_cpu_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void hd_thread_join(struct hd_thread *thread)
{
	if (!thread->started)
		return;
	int error = pthread_join(thread->handle, NULL);
	assert(!error);
	(void)error;
	thread->started = false;
}

enum hd_err hd_thread_pin(int core, struct hd_diag *diag)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (core >= 0 && core < CPU_SETSIZE)
		CPU_SET((size_t)core, &set);
	int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	return error ? hd_fail(diag, HD_E_REFUSED,
		"cannot use core %d: %s; see `taskset -p $$` for the cores allowed", core, strerror(error)) :
		HD_OK;
}
