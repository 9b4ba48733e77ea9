#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/tty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/check.h"

/* A terminal to look at: the far side of a pseudo-terminal. Not every sandbox has one. */
static int terminal(int *master)
{
	*master = posix_openpt(O_RDWR | O_NOCTTY);
	if (*master < 0 || grantpt(*master) || unlockpt(*master))
		return -1;
	return open(ptsname(*master), O_RDWR | O_NOCTTY);
}

static void a_file_is_no_terminal(void **state)
{
	(void)state;
	int null = open("/dev/null", O_RDWR);
	assert_false(hd_tty_is(null));
	assert_false(hd_tty_is(-1));
	assert_false(hd_tty_colored(null, HD_COLOR_AUTO));
	assert_true(hd_tty_colored(null, HD_COLOR_ALWAYS));
	assert_false(hd_tty_colored(null, HD_COLOR_NEVER));
	close(null);
}

static void without_a_terminal_columns_tells_the_width(void **state)
{
	static const struct { const char *columns; unsigned width; } cases[] = {
		{ "120", 120 }, { "0", HD_TTY_WIDTH }, { "-3", HD_TTY_WIDTH }, { "10001", HD_TTY_WIDTH }, { "12x", HD_TTY_WIDTH }, { "", HD_TTY_WIDTH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(setenv("COLUMNS", cases[i].columns, 1), 0);
		CHECK(hd_tty_width(-1) == cases[i].width, "COLUMNS=%s", cases[i].columns);
	}
	assert_int_equal(unsetenv("COLUMNS"), 0);
	assert_int_equal(hd_tty_width(-1), HD_TTY_WIDTH);
}

static void a_terminal_has_its_width_and_colour_unless_told_not(void **state)
{
	static const struct { const char *no_color, *term; bool colored; } cases[] = {
		{ NULL, "xterm", true }, { "", "xterm", true }, { "1", "xterm", false }, { NULL, "dumb", false }, { NULL, "", false }, { NULL, NULL, false },
	};
	struct winsize size = { .ws_row = 10, .ws_col = 133 };
	int master;

	(void)state;
	int fd = terminal(&master);
	if (fd < 0)
		SKIP("no pseudo-terminal here");
	assert_true(hd_tty_is(fd));
	assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
	assert_int_equal(hd_tty_width(fd), 133);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(cases[i].no_color ? setenv("NO_COLOR", cases[i].no_color, 1) :
			unsetenv("NO_COLOR"), 0);
		assert_int_equal(cases[i].term ? setenv("TERM", cases[i].term, 1) : unsetenv("TERM"), 0);
		CHECK(hd_tty_colored(fd, HD_COLOR_AUTO) == cases[i].colored, "case %zu", i);
		assert_false(hd_tty_colored(fd, HD_COLOR_NEVER));
	}
	close(fd);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_no_terminal),
		cmocka_unit_test(without_a_terminal_columns_tells_the_width),
		cmocka_unit_test(a_terminal_has_its_width_and_colour_unless_told_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
