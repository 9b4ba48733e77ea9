/* file_lost.h -- a mapped file that is truncated while in use: an error with its path instead of SIGBUS.
 *
 * Used by hd_file_map() of the system's files only. Access to bytes that the file no longer has raises
 * SIGBUS, and no call can return an error: the process ends with the message "PATH lost bytes ..." and the
 * exit code of HD_E_INTEGRITY (5).
 *
 * 1. A SIGBUS anywhere else is what it was: the handler that was there before is put back, and the access is
 *    repeated.
 * 2. At most HD_LOST_CAP maps are known; a map beyond them is of use, but ends by the signal as before.
 * 3. The table is a global, as the signal is. Slots are written under a lock; the handler reads without one:
 *    `at` is set last and cleared first.
 *
 * Threads: any. The handler calls only what a handler may. */
#ifndef HD_SYS_FILE_LOST_H
#define HD_SYS_FILE_LOST_H

#include <stddef.h>

enum { HD_LOST_CAP = 256 };               /* maps of one process: one a file of data, model or weights */

void hd_lost_watch(int id, const void *at, size_t len);           /* after the map of the open file */
void hd_lost_forget(const void *at);                              /* before its end; takes unknown ones */

#endif
