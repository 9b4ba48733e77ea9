/* account.h -- accounts of this machine: whose a process is, and work that is done with their rights.
 *
 * A scheduler of several users reads whose the other end of a Unix socket is (hd_sock_user_of), starts
 * processes as the user whose they are (hd_account_spawn), and touches a user's files with that user's rights
 * (hd_account_lend): what the user may not open, it cannot be led to open either.
 *
 * 1. An account is its number. Its name and its groups are looked up; one that the machine has no name for
 *    stays the account of its number, with no further groups.
 * 2. hd_account_lend changes the rights of the calling thread on files alone, and of no other thread;
 *    connections and what it creates count as that account's too. Meanwhile a pipe in the place of a file is
 *    not waited for. Only root can; between lend and hd_account_take_back nothing else is to be done.
 * 3. A process that is started as an account has its user, group and further groups for good, its HOME, USER
 *    and LOGNAME, a plain PATH, and nothing else of our environment. No moment of it has our rights.
 *
 * Plain values. Threads: any; lend and take_back on one. The look-ups may wait for the machine's name
 * service. */
#ifndef HD_SYS_ACCOUNT_H
#define HD_SYS_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	HD_ACCOUNT_NAME = 65,             /* with the final 0 */
	HD_ACCOUNT_GROUPS = 64,           /* further ones; beyond, the last are left out */
	HD_ACCOUNT_HOME = 256,
};
#define HD_NO_UID UINT32_MAX

struct hd_account {
	uint32_t uid, gid;
	uint32_t ngroups, group[HD_ACCOUNT_GROUPS];
	char name[HD_ACCOUNT_NAME];       /* "": the machine has none for it */
	char home[HD_ACCOUNT_HOME];
};

/* HD_E_NOTFOUND: no name; `account` then has the number, and `gid` as its group. */
HD_MUST_USE enum hd_err hd_account_of(uint32_t uid, uint32_t gid, struct hd_account *account);
/* HD_NO_UID: there is no such account. */
uint32_t hd_account_uid(const char *name);
uint32_t hd_account_self(void);           /* whose this process is */
bool hd_account_is_root(void);

/* HD_E_REFUSED: this process may not. */
HD_MUST_USE enum hd_err hd_account_lend(const struct hd_account *account, struct hd_diag *diag);
void hd_account_take_back(void);          /* also when nothing was lent */
bool hd_account_is_lent(void);

/* A folder or file of ours becomes that account's, with this mode. Links are refused. */
HD_MUST_USE enum hd_err hd_account_give(const char *path, const struct hd_account *account, uint32_t mode,
	struct hd_diag *diag);
/* The mode of one of ours. Links are refused. */
HD_MUST_USE enum hd_err hd_account_mode(const char *path, uint32_t mode, struct hd_diag *diag);
/* Whose the file is; HD_NO_UID: there is none. Links are looked at, not followed. */
uint32_t hd_account_owner(const char *path);
/* A Unix socket of ours, in a folder that is ours: every account may connect to it. */
HD_MUST_USE enum hd_err hd_account_open_to_all(const char *path, struct hd_diag *diag);
/* Whether none but this process's account and root can put files into the folder, or take them away. */
bool hd_account_is_folder_ours(const char *path);
/* A file or folder that none but this process's account and root can write; HD_E_REFUSED: it is not, or is a
 * link, and what to do. */
HD_MUST_USE enum hd_err hd_account_trust(const char *path, struct hd_diag *diag);
/* What this process makes from now on is its account's alone. */
void hd_account_keep_private(void);

/* The account that began the other end of a Unix connection; pid as of then. False: it is none. */
struct hd_sock_user { uint32_t uid, gid; int pid; };
bool hd_sock_user_of(int id, struct hd_sock_user *peer);
/* A Unix socket that lies under that name and is that account's: `at` leads to it alone, whatever is put
 * there meanwhile, until hd_account_let_go. HD_E_NOTFOUND: there is none, or a link, or another account's. */
enum { HD_ACCOUNT_AT = 32 };
HD_MUST_USE enum hd_err hd_account_hold_socket(const char *path, uint32_t uid, char at[HD_ACCOUNT_AT],
	int *id);
void hd_account_let_go(int id);
/* Whose that process is; HD_NO_UID: there is none. */
uint32_t hd_pid_uid(int pid);

/* As hd_proc_spawn (process.h) on the system, as that account; argv[0] is a path, `env` of `how` is not
 * read. */
struct hd_spawn;
struct hd_proc;
struct hd_host;
HD_MUST_USE enum hd_err hd_account_spawn(struct hd_host *host, const struct hd_account *account,
	const struct hd_spawn *how, struct hd_proc *proc, struct hd_diag *diag);
/* As hd_pid_signal, where the number came from a file that the account can write: a process of another
 * account is HD_E_NOTFOUND. `what`: of enum hd_proc_signal, TERM, KILL or STOP. */
HD_MUST_USE enum hd_err hd_account_signal(int pid, uint32_t uid, int what);

#endif
