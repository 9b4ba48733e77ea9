#include "sys/tty.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MAX = 10000 };

bool hd_tty_is(int fd) { return isatty(fd) == 1; }

unsigned hd_tty_width(int fd)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	char *rest;
	long width = columns ? strtol(columns, &rest, 10) : 0;
	return width >= 1 && width <= WIDTH_MAX && !*rest ? (unsigned)width : HD_TTY_WIDTH;
}

bool hd_tty_colored(int fd, enum hd_tty_color choice)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (choice != HD_COLOR_AUTO)
		return choice == HD_COLOR_ALWAYS;
	return hd_tty_is(fd) && !(no_color && *no_color) && term && *term && strcmp(term, "dumb");
}
