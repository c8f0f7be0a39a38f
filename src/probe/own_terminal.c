// SPDX-License-Identifier: MIT
#include "probe/own_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/worker.h"
#include "base/xalloc.h"
#include "probe/terminal_relay.h"

#define END_MOST_MS 1000

struct own_terminal {
	int slave;   /* -1: handed on */
	int control; /* to the relay */
	pid_t relay;
};

/* ---- making ---------------------------------------------------------------------------------- */

/* A pair with the settings and the size of `like`. */
static int open_pair(int like, uid_t owner, int *master, int *slave)
{
	struct termios settings;
	struct winsize size;
	char name[64];

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	*slave = -1;
	if (*master < 0 || grantpt(*master) || unlockpt(*master) ||
	    ptsname_r(*master, name, sizeof(name)))
		return -errno;
	*slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*slave < 0 || fchown(*slave, owner, (gid_t)-1))
		return -errno;
	if (tcgetattr(like, &settings) == 0)
		tcsetattr(*slave, TCSANOW, &settings);
	if (ioctl(like, TIOCGWINSZ, &size) == 0)
		ioctl(*master, TIOCSWINSZ, &size);
	return 0;
}

static void run_relay(void *data, int socket)
{
	struct relay *relay = data;

	relay->control = socket;
	relay_run(relay);
}

static int begin(struct own_terminal *terminal, struct relay *relay, uid_t owner)
{
	int rc = open_pair(relay->out, owner, &relay->master, &relay->slave);

	if (!rc)
		rc = worker_fork(false, run_relay, relay, &terminal->control);
	if (!rc && worker_receive(terminal->control, &terminal->relay, sizeof(pid_t), NULL) !=
	                   sizeof(pid_t))
		rc = -EPIPE;
	terminal->slave = relay->slave;
	if (relay->master >= 0)
		close(relay->master);
	return rc;
}

int own_terminal_new(const int *streams, uid_t owner, struct own_terminal **terminal_out,
                     struct err *err)
{
	static const int order[] = { STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO };
	struct relay relay = { .in = -1, .out = -1, .owner = getpid() };
	struct own_terminal *terminal;
	int rc;

	*terminal_out = NULL;
	for (size_t i = 0; i < 3; i++) {
		int fd = streams ? streams[order[i]] : order[i];

		if (!isatty(fd))
			continue;
		relay.out = relay.out < 0 ? fd : relay.out;
		relay.in = fd; /* at last the standard input, if it is one */
	}
	if (relay.out < 0)
		return 0;
	terminal = xcalloc(1, sizeof(*terminal));
	terminal->slave = terminal->control = -1;
	rc = begin(terminal, &relay, owner);
	if (rc) {
		own_terminal_free(terminal);
		return err_set(err, rc,
		               "--user: cannot make a terminal of its own for the command: %s; "
		               "without one redirect its input and output (</dev/null, | cat)",
		               strerror(-rc));
	}
	*terminal_out = terminal;
	return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

int own_terminal_enter(const struct own_terminal *terminal)
{
	if (setsid() < 0)
		return errno;
	if (!terminal)
		return 0;
	if (ioctl(terminal->slave, TIOCSCTTY, 0))
		return errno;
	for (int i = 0; i < 3; i++) {
		if (isatty(i) && dup2(terminal->slave, i) < 0)
			return errno;
	}
	return 0;
}

void own_terminal_made(struct own_terminal *terminal)
{
	if (terminal && terminal->slave >= 0) {
		close(terminal->slave);
		terminal->slave = -1;
	}
}

pid_t own_terminal_sender(const struct own_terminal *terminal)
{
	return terminal ? terminal->relay : 0;
}

void own_terminal_end(struct own_terminal *terminal)
{
	struct pollfd done = { .fd = terminal ? terminal->control : -1, .events = POLLIN };

	if (!terminal || terminal->control < 0)
		return;
	if (write(terminal->control, "e", 1) == 1)
		poll(&done, 1, END_MOST_MS);
	close(terminal->control);
	terminal->control = -1;
}

void own_terminal_free(struct own_terminal *terminal)
{
	if (!terminal)
		return;
	own_terminal_made(terminal);
	own_terminal_end(terminal);
	free(terminal);
}
