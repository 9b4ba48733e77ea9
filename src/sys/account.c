#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/failpoint.h"
#include "sys/file.h"

enum { HD_ACCOUNT_BYTES = 16 << 10 };         /* of an entry of the machine's list, with its texts */

/* The C library's setgroups() changes all threads; the kernel's call changes one. */
static long set_groups(size_t n, const gid_t *group) { return syscall(SYS_setgroups, n, group); }

static void take_groups(struct hd_account *a)
{
	gid_t all[HD_ACCOUNT_GROUPS];
	int n = HD_ACCOUNT_GROUPS;

	if (getgrouplist(a->name, a->gid, all, &n) < 0)
		n = HD_ACCOUNT_GROUPS;
	for (int i = 0; i < n; i++)
		a->group[a->ngroups++] = all[i];
}

enum hd_err hd_account_of(uint32_t uid, uint32_t gid, struct hd_account *account)
{
	char room[HD_ACCOUNT_BYTES];
	struct passwd entry, *found = NULL;

	*account = (struct hd_account){ .uid = uid, .gid = gid, .home = "/" };
	if (getpwuid_r(uid, &entry, room, sizeof room, &found) || !found ||
		strlen(entry.pw_name) >= sizeof account->name)
		return HD_E_NOTFOUND;
	account->gid = entry.pw_gid;
	snprintf(account->name, sizeof account->name, "%s", entry.pw_name);
	if (entry.pw_dir[0] == '/' && strlen(entry.pw_dir) < sizeof account->home)
		snprintf(account->home, sizeof account->home, "%s", entry.pw_dir);
	take_groups(account);
	return HD_OK;
}

uint32_t hd_account_uid(const char *name)
{
	char room[HD_ACCOUNT_BYTES];
	struct passwd entry, *found = NULL;

	return getpwnam_r(name, &entry, room, sizeof room, &found) || !found ? HD_NO_UID : entry.pw_uid;
}

uint32_t hd_account_self(void) { return geteuid(); }
bool hd_account_is_root(void) { return geteuid() == 0; }

/* Neither call says whether it worked: the second one of a number that there is not answers what holds. */
static bool has_rights_of(uint32_t uid, uint32_t gid)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	return (uint32_t)setfsgid((gid_t)-1) == gid && (uint32_t)setfsuid((uid_t)-1) == uid;
}

enum hd_err hd_account_lend(const struct hd_account *a, struct hd_diag *diag)
{
	gid_t group[HD_ACCOUNT_GROUPS];

	for (uint32_t i = 0; i < a->ngroups; i++)
		group[i] = a->group[i];
	if (a->uid == geteuid())
		return HD_OK;
	if (!HD_FAILPOINT(ACCOUNT_LEND) && set_groups(a->ngroups, group) == 0 &&
		has_rights_of(a->uid, a->gid))
		return HD_OK;
	hd_account_take_back();
	return hd_fail(diag, HD_E_REFUSED,
		"the rights of account %u on files cannot be taken: that takes root", a->uid);
}

/* Root needs no groups to open what is there. */
void hd_account_take_back(void)
{
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	if (geteuid() == 0)
		(void)set_groups(0, NULL);
}

bool hd_account_is_lent(void) { return (uint32_t)setfsuid((uid_t)-1) != geteuid(); }

static enum hd_err set(const char *path, const struct hd_account *a, uint32_t mode, struct hd_diag *diag)
{
	int error = 0, fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return hd_fail_errno(diag, errno, "open", path);
	if ((a && fchown(fd, a->uid, a->gid)) || fchmod(fd, mode))
		error = errno;
	close(fd);
	return error ? hd_fail_errno(diag, error, "change the owner or mode of", path) : HD_OK;
}

enum hd_err hd_account_give(const char *path, const struct hd_account *a, uint32_t mode,
	struct hd_diag *diag) { return set(path, a, mode, diag); }

enum hd_err hd_account_mode(const char *path, uint32_t mode, struct hd_diag *diag)
{
	return set(path, NULL, mode, diag);
}

uint32_t hd_account_owner(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? HD_NO_UID : st.st_uid;
}

enum hd_err hd_account_open_to_all(const char *path, struct hd_diag *diag)
{
	return chmod(path, 0666) ? hd_fail_errno(diag, errno, "change the mode of", path) : HD_OK;
}

bool hd_account_is_folder_ours(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0) &&
		!(st.st_mode & 022);
}

enum hd_err hd_account_trust(const char *path, struct hd_diag *diag)
{
	struct stat st;

	if (lstat(path, &st))
		return hd_fail_errno(diag, errno, "look at", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return hd_fail(diag, HD_E_REFUSED,
			"%s is a link, or no file: what it leads to may be changed "
			"by others; put the file itself there", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return hd_fail(diag, HD_E_REFUSED, "%s is account %u's, which could change it: `chown %u` it",
			path, st.st_uid, geteuid());
	if (st.st_mode & 022)
		return hd_fail(diag, HD_E_REFUSED, "others can write %s (mode %03o): `chmod go-w` it", path,
			st.st_mode & 0777);
	return HD_OK;
}

void hd_account_keep_private(void) { (void)umask(077); }

bool hd_sock_user_of(int id, struct hd_sock_user *peer)
{
	struct ucred cred;
	socklen_t len = sizeof cred;

	/* of a socket that is not a Unix one the kernel answers pid 0 */
	if (getsockopt(id, SOL_SOCKET, SO_PEERCRED, &cred, &len) || len != sizeof cred || !cred.pid)
		return false;
	*peer = (struct hd_sock_user){ cred.uid, cred.gid, cred.pid };
	return true;
}

enum hd_err hd_account_hold_socket(const char *path, uint32_t uid, char at[HD_ACCOUNT_AT], int *id)
{
	struct stat st;

	*id = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (*id >= 0 && !fstat(*id, &st) && S_ISSOCK(st.st_mode) && st.st_uid == uid) {
		snprintf(at, HD_ACCOUNT_AT, "/proc/self/fd/%d", *id);
		return HD_OK;
	}
	hd_account_let_go(*id);
	return HD_E_NOTFOUND;
}

void hd_account_let_go(int id)
{
	if (id >= 0)
		close(id);
}

uint32_t hd_pid_uid(int pid)
{
	char path[40], text[4096], *at;
	unsigned uid;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	return pid > 0 && hd_proc_text(path, text, sizeof text) && (at = strstr(text, "\nUid:")) &&
		sscanf(at, "\nUid: %u", &uid) == 1 ? uid : HD_NO_UID;
}
