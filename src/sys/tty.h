/* tty.h -- what the far end of an output is: a terminal or not, how wide, with colour or without.
 *
 * cmd decides by it between one rewritten line and plain lines. Threads: any. */
#ifndef HD_SYS_TTY_H
#define HD_SYS_TTY_H

#include <stdbool.h>

enum hd_tty_color { HD_COLOR_AUTO, HD_COLOR_ALWAYS, HD_COLOR_NEVER };      /* --color */
enum { HD_TTY_WIDTH = 80 };               /* when unknown */

bool hd_tty_is(int fd);
unsigned hd_tty_width(int fd);            /* of the terminal, else COLUMNS (1-10000), else HD_TTY_WIDTH */
/* auto: a terminal, NO_COLOR unset or empty, TERM set and not "dumb". */
bool hd_tty_colored(int fd, enum hd_tty_color choice);

#endif
