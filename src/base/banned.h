/* banned.h -- banned calls are compile errors.
 *
 * The build forces this header into every file of the tree (-include), so it includes
 * nothing: a file's own feature macros still come first. A marked function warns at
 * each use, and -Werror makes that an error; other things of the same name (a
 * parameter `rand`, a member `sleep`) are free. alloca is a macro of the C library:
 * -Walloca bans it.
 *
 * To ban one more: a row here, and what to use instead. */
#ifndef HD_BASE_BANNED_H
#define HD_BASE_BANNED_H

#define HD_BANNED(instead) __attribute__((deprecated("use " instead)))

char *strcpy(char *, const char *) HD_BANNED("base/text.h");
int sprintf(char *, const char *, ...) HD_BANNED("base/text.h");
char *gets(char *) HD_BANNED("sys/file.h");
char *strtok(char *, const char *) HD_BANNED("strcspn: strtok hides state");
int atoi(const char *) HD_BANNED("base/num.h");
int rand(void) HD_BANNED("base/philox.h");
int system(const char *) HD_BANNED("sys: it calls the OS");
unsigned int sleep(unsigned int) HD_BANNED("a wait with a bound on the loop's clock");
int usleep(unsigned int) HD_BANNED("a wait with a bound on the loop's clock");

#undef HD_BANNED

#endif
