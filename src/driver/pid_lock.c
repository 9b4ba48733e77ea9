#include "driver/pid_lock.h"

#include <stdio.h>
#include <string.h>

#include "sys/process.h"

enum { HD_PID_LOCK_TEXT = 128 };
#define HD_PID_LOCK_LOOK_NS INT64_C(5000000)

enum hd_err hd_pid_lock_take(struct hd_file *lock, struct hd_fs *fs, struct hd_clock *clock, const char *path,
	uint64_t job, uint32_t lease,
	struct hd_diag *diag)
{
	int64_t until = hd_clock_now_ns(clock) + HD_PID_LOCK_WAIT_NS;
	struct hd_proc_self self;
	char text[HD_PID_LOCK_TEXT];

	hd_proc_self(&self);
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, lock, diag);
	if (err)
		return err;
	while ((err = hd_file_lock(lock, NULL)) == HD_E_AGAIN && hd_clock_now_ns(clock) < until)
		hd_clock_wait_until(clock, hd_clock_now_ns(clock) + HD_PID_LOCK_LOOK_NS);
	if (err == HD_E_AGAIN)
		err = hd_fail(diag, HD_E_AGAIN, "%s: another process is there", path);
	else if (err)
		err = hd_fail(diag, err, "%s cannot be locked", path);
	int n = snprintf(text, sizeof text, "%llu %u %u %llu\n", (unsigned long long)job, lease, self.pid,
		(unsigned long long)hd_pid_began((int)self.pid));
	if (!err)
		err = hd_file_truncate(lock, 0, diag);
	if (!err)
		err = hd_file_pwrite(lock, text, (size_t)n, 0, diag);
	if (err)
		(void)!hd_file_close(lock, NULL);
	return err;
}

enum hd_err hd_pid_lock_look(struct hd_fs *fs, const char *path, struct hd_pid_lock_holder *holder,
	struct hd_diag *diag)
{
	unsigned long long job, began;
	unsigned lease, pid;
	char text[HD_PID_LOCK_TEXT] = "";
	struct hd_file file;
	size_t n = 0;

	enum hd_err err = hd_file_open(fs, path, HD_OPEN_READ, &file, NULL);
	if (err == HD_E_NOTFOUND)
		return err;
	if (err)
		return hd_fail(diag, err, "%s cannot be opened", path);
	err = hd_file_lock_shared(&file, NULL);           /* two that look at once do not see each other */
	if (err != HD_E_AGAIN) {
		(void)!hd_file_close(&file, NULL);
		return err ? hd_fail(diag, err, "%s cannot be locked", path) : HD_E_NOTFOUND;
	}
	*holder = (struct hd_pid_lock_holder){ 0 };
	err = hd_file_pread(&file, text, sizeof text - 1, 0, &n, diag);
	(void)!hd_file_close(&file, NULL);
	if (!err && sscanf(text, "%llu %u %u %llu", &job, &lease, &pid, &began) == 4 && began &&
		hd_pid_began((int)pid) == began)
		*holder = (struct hd_pid_lock_holder){ job, lease, (int)pid };
	return err;
}
