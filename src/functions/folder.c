#include "functions/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/process.h"
#include "sys/socket.h"

#define FOLDER "heddle-functions-"        /* and the number of the process, in /tmp */

/* What another user put in the place of a folder of ours since it was looked at: so it is moved to where no
 * other user can change it, looked at again, and only then removed. */
static void remove_ours(struct hd_fs *fs, struct hd_net *net, const char *path, const char *box)
{
	char there[HD_PATH_CAP], address[HD_PATH_CAP + 16];

	snprintf(there, sizeof there, "%s/folder", box);
	snprintf(address, sizeof address, "unix:%s/owner", there);
	if (hd_fs_mkdir(fs, box, NULL))
		return;
	if (!hd_fs_rename(fs, path, there, NULL)) {
		if (hd_sock_is_private(net, address))
			(void)!hd_fs_remove_tree(fs, there, NULL);
		else
			(void)!hd_fs_rename(fs, there, path, NULL);
	}
	(void)!hd_fs_rmdir(fs, box, NULL);
}

/* Folders of processes that were killed: nothing else removes them. Those of other users stay. One of our own
 * number is of an earlier process. */
static void sweep(struct hd_fs *fs, uint32_t self, struct hd_arena *arena)
{
	size_t head = strlen(FOLDER), n = 0;
	char **names = NULL, path[HD_PATH_CAP], box[64];
	struct hd_sock sock = { 0 };
	struct hd_stat stat;
	struct hd_net net;

	hd_net_real(&net);
	snprintf(box, sizeof box, "/tmp/" FOLDER "%u-old", self);
	if (hd_fs_list(fs, "/tmp", arena, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *pid = names[i] + head;
		if (strncmp(names[i], FOLDER, head) != 0 || !*pid || strspn(pid, "0123456789") != strlen(pid))
			continue;
		snprintf(path, sizeof path, "/proc/%.20s", pid);
		if (strtoul(pid, NULL, 10) != self && !hd_fs_stat(fs, path, &stat, NULL))
			continue;
		snprintf(path, sizeof path, "unix:/tmp/%.60s/owner", names[i]);
		if (!hd_sock_is_private(&net, path))
			continue;
		sock = (struct hd_sock){ 0 };
		enum hd_err err = hd_sock_connect(&net, path, &sock, NULL);
		hd_sock_close(&sock);
		if (!err || err == HD_E_AGAIN)
			continue;                 /* it lives, in another space of process numbers */
		snprintf(path, sizeof path, "/tmp/%.60s", names[i]);
		remove_ours(fs, &net, path, box);
	}
}

enum hd_err hd_fn_folder_make(struct hd_fs *fs, char path[HD_FN_FOLDER], struct hd_diag *diag)
{
	struct hd_proc_self self;
	struct hd_arena arena;

	hd_proc_self(&self);
	snprintf(path, HD_FN_FOLDER, "/tmp/" FOLDER "%u", self.pid);
	hd_arena_init(&arena, 0);
	sweep(fs, self.pid, &arena);
	hd_arena_finish(&arena);
	enum hd_err err = hd_fs_mkdir(fs, path, diag);
	if (err)
		path[0] = 0;
	return err;
}

void hd_fn_folder_remove(struct hd_fs *fs, const char *path)
{
	if (path[0])
		(void)!hd_fs_remove_tree(fs, path, NULL);
}
