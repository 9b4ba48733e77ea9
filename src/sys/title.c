#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/title.h"

#include <assert.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/cgroup.h"

/* The usual way, writing over argv and on into the environment, would lose the arguments or
 * /proc/PID/environ. Instead the kernel gets another address for the arguments: PR_SET_MM_MAP needs no
 * privilege, but wants all of its numbers, those of now. One of them, the end of the heap, another thread
 * could move meanwhile: hence once, and alone. */

enum { NTHREADS = 20, START_CODE = 26, END_CODE, START_STACK, START_DATA = 45, END_DATA, START_BRK, ARG_START,
	ARG_END, ENV_START, ENV_END, NFIELDS };

/* Fields of /proc/self/stat by their numbers in proc(5); the second may hold anything, but ends with the
 * last bracket. */
static bool look(unsigned long long field[NFIELDS])
{
	char text[2048], *at;

	if (!hd_proc_text("/proc/self/stat", text, sizeof text) || !(at = strrchr(text, ')')) ||
		strlen(at) < 4)
		return false;
	at += 3;                          /* ") R": a letter is the third */
	for (int i = 4; i < NFIELDS; i++) {
		char *end;
		field[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

/* name ... NUL arguments: they end with the NUL that the kernel looks for there. */
static void take_line(struct hd_title *title, size_t name_len)
{
	unsigned long long f[NFIELDS];

	if (!look(f) || f[NTHREADS] != 1 || f[ARG_END] < f[ARG_START])
		return;
	size_t space = name_len + HD_TITLE_GROWS + 1, args = (size_t)(f[ARG_END] - f[ARG_START]);
	char *at = mmap(NULL, space + args, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return;
	memcpy(at + space, (const void *)(uintptr_t)f[ARG_START], args);
	struct prctl_mm_map map = { .start_code = f[START_CODE], .end_code = f[END_CODE],
		.start_data = f[START_DATA], .end_data = f[END_DATA],
		.start_brk = f[START_BRK], .brk = (uintptr_t)sbrk(0), .start_stack = f[START_STACK],
		.arg_start = (uintptr_t)at,
		.arg_end = (uintptr_t)at + space + args, .env_start = f[ENV_START], .env_end = f[ENV_END],
		.exe_fd = (uint32_t)-1 };
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0)) {
		munmap(at, space + args);
		return;
	}
	title->at = at;
	title->space = space;
}

/* Of the process, whichever thread asks. */
static void put_brief(const char *brief)
{
	int file = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
	char name[HD_TITLE_BRIEF + 1];
	size_t n = 0;

	for (; brief[n] && n < HD_TITLE_BRIEF; n++)
		name[n] = brief[n] == ' ' && getenv("SLURM_JOB_ID") ? '-' : brief[n];
	if (file < 0)
		return;
	(void)!write(file, name, n);
	close(file);
}

void hd_title_set(struct hd_title *title, const char *brief, const char *fmt, ...)
{
	char name[4096 + 128];            /* a path and some words; longer ones are cut */
	va_list args;

	assert(*brief && strlen(brief) <= HD_TITLE_BRIEF);
	va_start(args, fmt);
	int len = vsnprintf(name, sizeof name, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	put_brief(brief);
	if (!title->tried)
		take_line(title, strlen(name));
	title->tried = true;
	if (!title->at)
		return;
	size_t keep = strnlen(name, title->space - 1);
	memcpy(title->at, name, keep);
	memset(title->at + keep, 0, title->space - keep);
}
