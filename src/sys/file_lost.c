#include "sys/file_lost.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

enum { NAME = 512 };

struct lost_slot {
	atomic_uintptr_t at;              /* 0: free */
	size_t len;
	char name[NAME];
};

static struct lost_slot slots[HD_LOST_CAP];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;

static void say(const char *text)
{
	if (write(2, text, strlen(text)) < 0)
		return;                   /* no other map and no handler to call */
}

static void on_bus(int number, siginfo_t *info, void *context)
{
	uintptr_t where = (uintptr_t)info->si_addr;
	/* else it was sent by a process: there is no address, and nothing to repeat */
	bool access = info->si_code > 0 && info->si_code != BUS_MCEERR_AO;

	(void)context;
	for (size_t i = 0; access && i < HD_LOST_CAP; i++) {
		uintptr_t at = atomic_load_explicit(&slots[i].at, memory_order_acquire);
		if (!at || where < at || where - at >= slots[i].len)
			continue;
		say("heddle: ");
		say(slots[i].name);
		say(" lost bytes that are in use: it was cut, or its disk cannot be read. Put back the file "
			"as it was, then start the command again, of a run `heddle resume`; "
			"write a new version under another name\n");
		_exit(hd_err_exit(HD_E_INTEGRITY));
	}
	/* the access is repeated, and meets what was there */
	(void)sigaction(number, &before, NULL);
	if (!access)
		(void)raise(number);
}

/* The path that the open file has now; a map stays of use without it. */
static void find_name(int id, char name[NAME])
{
	char link[40];

	snprintf(link, sizeof link, "/proc/self/fd/%d", id);
	ssize_t len = readlink(link, name, NAME - 1);
	if (len > 0)
		name[len] = 0;
	else
		snprintf(name, NAME, "a mapped file");
}

/* Once, and again where another handler was set since. Without it the signal is what it was. */
static void install(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, now;

	action.sa_sigaction = on_bus;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus))
		return;
	before = now;
	(void)sigaction(SIGBUS, &action, NULL);
}

void hd_lost_watch(int id, const void *at, size_t len)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	install();
	while (i < HD_LOST_CAP && atomic_load(&slots[i].at))
		i++;
	if (i < HD_LOST_CAP) {
		find_name(id, slots[i].name);
		slots[i].len = len;
		atomic_store_explicit(&slots[i].at, (uintptr_t)at, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
}

void hd_lost_forget(const void *at)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < HD_LOST_CAP; i++)
		if (atomic_load(&slots[i].at) == (uintptr_t)at)
			atomic_store_explicit(&slots[i].at, 0, memory_order_release);
	pthread_mutex_unlock(&lock);
}
