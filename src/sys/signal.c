#include "sys/signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sys/file.h"

/* signal, its name, its stop request */
#define STOP_SIGNALS(X)                                     \
	X(SIGTERM, "SIGTERM", HD_STOP_PREEMPT)         \
	X(SIGHUP,  "SIGHUP",  HD_STOP_PREEMPT)         \
	X(SIGUSR1, "SIGUSR1", HD_STOP_PREEMPT)         \
	X(SIGUSR2, "SIGUSR2", HD_STOP_PREEMPT)         \
	X(SIGXCPU, "SIGXCPU", HD_STOP_PREEMPT)         \
	X(SIGINT,  "SIGINT",  HD_STOP_INTERRUPT)

static const struct { int number; const char *name; enum hd_stop stop; } stop_signals[] = {
#define X(number, name, stop) { number, name, stop },
	STOP_SIGNALS(X)
#undef X
};
enum { N_STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };

/* The request in the low byte, the signal above it: one word, so that a handler needs no lock. */
static atomic_int asked;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may touch only lock-free atomics");
/* when the first one came, by a clock that runs on; 0: none did */
static atomic_llong first_ns;
static atomic_bool twice;
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "as above");

/* The thread that writes the word puts `said` in its place: one thread only, and the word stays as it is. */
static const struct hd_signal_word said;
static _Atomic(const struct hd_signal_word *) last_word;
_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2, "as above");

static atomic_int dumps, dump_users;
static void (*before_dumps)(int);         /* by hd_signal_dump_take() alone */
static _Atomic(const struct hd_signal_fatal *) fatal;

static void wait_for_the_end(void)
{
	for (;;)
		pause();
}

void hd_signal_word_set(const struct hd_signal_word *word)
{
	const struct hd_signal_word *old = atomic_load(&last_word);

	if (old == &said || !atomic_compare_exchange_strong(&last_word, &old, word))
		wait_for_the_end();
}

/* In a handler: nothing but the write. A third signal, on another thread, waits for the second one's word. */
static void say(enum hd_stop stop)
{
	const struct hd_signal_word *word = atomic_exchange(&last_word, &said);

	if (word == &said)
		wait_for_the_end();
	if (word && word->line[stop].len_bytes)
		(void)!word->to->fs->ops->file.write(word->to->fs, word->to->id, word->line[stop].at,
			word->line[stop].len_bytes, -1);
}

static enum hd_stop stop_of(int number)
{
	for (size_t i = 0; i < N_STOP_SIGNALS; i++)
		if (stop_signals[i].number == number)
			return stop_signals[i].stop;
	return HD_STOP_NONE;
}

void hd_signal_twice(void) { atomic_store(&twice, true); }

/* How long ago the first one came, which may be this one. */
static long long since_first_ns(void)
{
	struct timespec t = { 0 };
	long long first = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	const long long now = t.tv_sec * 1000000000LL + t.tv_nsec;
	return atomic_compare_exchange_strong(&first_ns, &first, now) ? 0 : now - first;
}

static void on_stop_signal(int number)
{
	int stop = (int)stop_of(number), old = 0;
	const long long since_ns = since_first_ns();

	/* A request of our own stands, and this is still the first signal. */
	while (!atomic_compare_exchange_strong(&asked, &old, (old ? old : stop) | number << 8))
		if (old >> 8) {
			if (atomic_load(&twice) && old >> 8 == number && since_ns < HD_SIGNAL_TWICE_NS)
				return;
			say((enum hd_stop)stop);
			_exit(hd_err_exit(hd_stop_err((enum hd_stop)stop)));
		}
}

static void on_nothing(int number) { (void)number; }

static void on_dump(int number)
{
	(void)number;
	atomic_fetch_add(&dumps, 1);
}

int hd_signal_dumps(void) { return atomic_load_explicit(&dumps, memory_order_relaxed); }

void hd_signal_fatal_set(const struct hd_signal_fatal *set) { atomic_store(&fatal, set); }

/* The handler is reset by then: what is raised here ends the process. */
static void on_fault(int number)
{
	const struct hd_signal_fatal *set = atomic_exchange(&fatal, NULL);

	if (set)
		set->act(set->user, number);
	(void)raise(number);
}

static enum hd_err install(int number, void (*handler)(int), struct hd_diag *diag)
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	action.sa_handler = handler;
	sigfillset(&action.sa_mask);              /* on one thread a handler ends before the next begins */
	if (sigaction(number, &action, NULL))
		return hd_fail(diag, HD_E_REFUSED, "cannot handle signal %d: %s", number, strerror(errno));
	return HD_OK;
}

enum hd_err hd_signal_dump_take(struct hd_diag *diag)
{
	struct sigaction was;
	enum hd_err err = HD_OK;

	if (!atomic_load(&dump_users) && !sigaction(SIGQUIT, NULL, &was)) {
		before_dumps = was.sa_handler;
		err = install(SIGQUIT, on_dump, diag);
	}
	atomic_fetch_add(&dump_users, !err);
	return err;
}

void hd_signal_dump_give(void)
{
	if (atomic_fetch_sub(&dump_users, 1) == 1)
		(void)install(SIGQUIT, before_dumps, NULL);
}

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HD_SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { HD_SANITIZED = 1 };
#else
enum { HD_SANITIZED = 0 };
#endif
#else
enum { HD_SANITIZED = 0 };
#endif

static enum hd_err install_faults(struct hd_diag *diag)
{
	struct sigaction action = { .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };

	action.sa_handler = on_fault;
	for (size_t i = 0; i < sizeof faults / sizeof *faults && !HD_SANITIZED; i++)
		if (sigaction(faults[i], &action, NULL))
			return hd_fail(diag, HD_E_REFUSED, "cannot handle signal %d: %s", faults[i],
				strerror(errno));
	return HD_OK;
}

/* Under nohup the end of a terminal is no stop request. */
static bool is_ignored(int number)
{
	struct sigaction action;

	return number == SIGHUP && !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

static void stops(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < N_STOP_SIGNALS; i++)
		sigaddset(set, stop_signals[i].number);
}

void hd_signal_hold(void)
{
	sigset_t set;

	stops(&set);
	(void)pthread_sigmask(SIG_SETMASK, &set, NULL);
	if (hd_signal_number())
		(void)raise(hd_signal_number());        /* of this thread: others do not hold it */
}

void hd_signal_hold_not(void)
{
	static const struct timespec at_once;
	sigset_t set;

	sigemptyset(&set);
	if (hd_signal_number()) {                 /* its own, once more: it is not a second one */
		sigaddset(&set, hd_signal_number());
		(void)sigtimedwait(&set, NULL, &at_once);
	}
	stops(&set);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

enum hd_err hd_signal_install(struct hd_diag *diag)
{
	enum hd_err err = install(SIGCONT, on_nothing, diag);
	sigset_t held;

	if (!err)
		err = install(SIGPIPE, SIG_IGN, diag);
	if (!err)
		err = install_faults(diag);
	for (size_t i = 0; !err && i < N_STOP_SIGNALS; i++)
		if (!is_ignored(stop_signals[i].number))
			err = install(stop_signals[i].number, on_stop_signal, diag);
	stops(&held);
	if (!err)
		(void)pthread_sigmask(SIG_UNBLOCK, &held, NULL);
	return err;
}

enum hd_stop hd_signal_stop(void) { return (enum hd_stop)(atomic_load_explicit(&asked,
	memory_order_relaxed) & 0xff); }
int hd_signal_number(void) { return atomic_load_explicit(&asked, memory_order_relaxed) >> 8; }
void hd_signal_stop_set(enum hd_stop stop) { atomic_store(&asked, (int)stop); }

const char *hd_signal_name(int number)
{
	for (size_t i = 0; i < N_STOP_SIGNALS; i++)
		if (stop_signals[i].number == number)
			return stop_signals[i].name;
	return "signal";
}

enum hd_err hd_signal_term_again(void)
{
	(void)raise(SIGTERM);
	return hd_stop_err(hd_signal_stop());
}

enum hd_err hd_stop_err(enum hd_stop stop)
{
	switch (stop) {
	case HD_STOP_NONE: return HD_OK;
	case HD_STOP_PREEMPT: return HD_E_PREEMPTED;
	case HD_STOP_INTERRUPT: return HD_E_INTERRUPT;
	}
	return HD_OK;
}
