// SPDX-License-Identifier: MIT
#include "probe/own_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/worker.h"
#include "base/xalloc.h"

#define LOOK_MS    300 /* whether we are in the foreground again */
#define DRAIN_MS   20  /* the kernel brings over what was written a moment ago */
#define HANDLE_MS  100 /* for a program that does something before it stops */
#define AGAIN_MS   1
#define CHUNK      16384
#define TYPED_MOST 1024

struct terminal_relay_state {
	struct relay relay;
	struct termios before; /* of our terminal */
	bool raw;              /* it is ours to read, and nothing but bytes to it */
	bool raw_output;       /* the command's program wants nothing added to its lines */
	bool ended;
	char typed[TYPED_MOST]; /* not taken by the command's terminal yet */
	size_t n_typed;
};

static volatile sig_atomic_t resized, stopped, continued;

/* ---- our terminal ---------------------------------------------------------------------------- */

static bool in_foreground(const struct terminal_relay_state *s)
{
	pid_t group = s->relay.in < 0 ? 0 : tcgetpgrp(s->relay.in);

	return group == getpgrp() || (group < 0 && errno == ENOTTY); /* of no session: no jobs */
}

static void set_raw(struct terminal_relay_state *s)
{
	struct termios raw;

	if (!s->raw && tcgetattr(s->relay.in, &s->before))
		return;
	raw = s->before;
	raw.c_iflag &=
		~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
	if (s->raw_output)
		raw.c_oflag &= ~(tcflag_t)OPOST;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	s->raw = tcsetattr(s->relay.in, TCSANOW, &raw) == 0;
}

/* Only in the foreground: else its settings are somebody else's, as a rule the shell's. */
static void set_back(struct terminal_relay_state *s)
{
	if (s->raw && in_foreground(s))
		tcsetattr(s->relay.in, TCSANOW, &s->before);
	s->raw = s->raw_output = false;
}

static void follow_size(const struct terminal_relay_state *s)
{
	struct winsize size;

	if (ioctl(s->relay.out, TIOCGWINSZ, &size) == 0)
		ioctl(s->relay.master, TIOCSWINSZ, &size);
}

/* After whatever may have changed. */
static void look(struct terminal_relay_state *s)
{
	bool foreground = !s->ended && in_foreground(s);

	if (resized)
		follow_size(s);
	resized = continued = 0;
	if (foreground && !s->raw)
		set_raw(s);
	else if (!foreground)
		set_back(s);
}

/* ---- what is typed --------------------------------------------------------------------------- */

static void pause_ms(unsigned ms)
{
	const struct timespec time = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&time, NULL);
}

/* Cuscope and this process, if somebody looks after them: else the kernel lets it do nothing. */
static void stop_group(void)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL }, before;
	sigset_t set, blocked;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaction(SIGTSTP, &by_default, &before);
	sigprocmask(SIG_UNBLOCK, &set, &blocked);
	kill(0, SIGTSTP);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(SIGTSTP, &before, NULL);
}

/*
 * Nobody in the command's session looks after its jobs, so the kernel lets Ctrl-Z do nothing there.
 * The command is stopped here, and cuscope as well; both go on together.
 */
static void stop_both(struct terminal_relay_state *s, pid_t group)
{
	pause_ms(HANDLE_MS);
	kill(-group, SIGSTOP);
	pause_ms(HANDLE_MS); /* cuscope is to see that it has stopped */
	set_back(s);
	stop_group();
}

static void stop(struct terminal_relay_state *s)
{
	pid_t group = tcgetpgrp(s->relay.master);

	if (group <= 0 || group != tcgetsid(s->relay.master))
		return; /* a shell, which has jobs of its own */
	stop_both(s, group);
	kill(-group, SIGCONT);
	look(s);
}

static void hand_on(struct terminal_relay_state *s)
{
	ssize_t n = write(s->relay.master, s->typed, s->n_typed);

	if (n <= 0)
		return;
	memmove(s->typed, s->typed + n, s->n_typed - (size_t)n);
	s->n_typed -= (size_t)n;
}

/* What keys mean is for the command's terminal to say. */
static bool has_key(const struct terminal_relay_state *s, int which)
{
	struct termios settings;

	return tcgetattr(s->relay.master, &settings) == 0 && settings.c_lflag & ISIG &&
	       memchr(s->typed, settings.c_cc[which], s->n_typed);
}

static void read_keys(struct terminal_relay_state *s)
{
	ssize_t n = read(s->relay.in, s->typed, sizeof(s->typed));
	bool interrupts, stops;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* EIO: not in the foreground any more, or hung up */
		if (n == 0 || in_foreground(s))
			s->relay.in = -1;
		s->raw = false;
		return;
	}
	s->n_typed = (size_t)n;
	interrupts = has_key(s, VINTR);
	stops = has_key(s, VSUSP);
	hand_on(s);
	if (interrupts)
		kill(s->relay.owner, SIGINT);
	if (stops)
		stop(s);
}

/* ---- what is written ------------------------------------------------------------------------- */

/*
 * A terminal may say that it takes more and then not take a byte (a newline is two), so what is
 * tried again waits in any case.
 */
static void wait_to_write(int fd)
{
	struct pollfd more = { .fd = fd, .events = POLLOUT };

	if (poll(&more, 1, LOOK_MS) != 0)
		pause_ms(AGAIN_MS);
}

/*
 * Whoever else has our terminal open may have set O_NONBLOCK, which is all of theirs: then it is
 * waited for as write would, until it takes it all or hangs up (EIO).
 */
static void write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t put = write(fd, bytes, n);

		if (put < 0 && errno == EAGAIN)
			wait_to_write(fd);
		else if (put < 0 && errno != EINTR)
			return; /* hung up: nobody reads it */
		bytes += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
	}
}

/* Our terminal adds the carriage returns, as it does for what cuscope writes: these go. */
static size_t without_returns(char *bytes, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != '\r' || i + 1 == n || bytes[i + 1] != '\n')
			bytes[to++] = bytes[i];
	}
	return to;
}

/* Whether there was something. */
static bool show(struct terminal_relay_state *s)
{
	char bytes[CHUNK];
	struct termios settings;
	ssize_t n = read(s->relay.master, bytes, sizeof(bytes));
	size_t left;
	bool plain;

	if (n <= 0)
		return false;
	left = (size_t)n;
	plain = tcgetattr(s->relay.master, &settings) == 0 && !(settings.c_oflag & OPOST);
	if (s->raw && plain != s->raw_output) {
		s->raw_output = plain;
		set_raw(s);
	}
	if (!plain && s->before.c_oflag & OPOST && s->before.c_oflag & ONLCR)
		left = without_returns(bytes, left);
	write_all(s->relay.out, bytes, left);
	return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Processes that the command has left behind may write on: that is shown until they are gone. */
static void end(struct terminal_relay_state *s)
{
	struct pollfd more = { .fd = s->relay.master, .events = POLLIN };

	if (s->ended)
		return;
	while (poll(&more, 1, DRAIN_MS) == 1 && show(s))
		;
	set_back(s);
	s->ended = true;
	s->relay.in = -1;
	if (write(s->relay.control, "e", 1) < 0) { /* it is gone */
	}
	close(s->relay.control);
	close(s->relay.slave);
	s->relay.control = s->relay.slave = -1;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void note(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else if (sig == SIGTSTP)
		stopped = 1;
	else
		continued = 1;
}

/* Signals that mean something come during ppoll only. Those for cuscope's group leave it alone. */
static void set_signals(sigset_t *during_poll)
{
	static const int ignored[] = { SIGTTIN, SIGTTOU, SIGPIPE, SIGINT, SIGQUIT, SIGTERM };
	static const int noted[] = { SIGWINCH, SIGTSTP, SIGCONT };
	struct sigaction action = { .sa_handler = note };
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, during_poll);
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(noted); i++) {
		sigaction(noted[i], &action, NULL);
		sigaddset(&set, noted[i]);
		sigdelset(during_poll, noted[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

/* All that is not for here: a pipe whose reader waits for its end, and cuscope's own. */
static void close_others(const struct relay *relay)
{
	const int kept[] = { relay->in, relay->out, relay->master, relay->slave, relay->control };

	for (int fd = 0; fd < 1024; fd++) {
		bool keep = false;

		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			keep |= kept[i] == fd;
		if (!keep)
			close(fd);
	}
	syscall(SYS_close_range, 1024u, ~0u, 0u);
}

static void turn(struct terminal_relay_state *s, const sigset_t *during_poll)
{
	struct pollfd fds[] = {
		{ s->relay.master, (short)(POLLIN | (s->n_typed ? POLLOUT : 0)), 0 },
		{ s->raw && !s->n_typed ? s->relay.in : -1, POLLIN, 0 },
		{ s->relay.control, POLLIN, 0 },
	};
	const struct timespec look_after = { .tv_nsec = LOOK_MS * 1000000l };
	bool waits = !s->ended && !s->raw && s->relay.in >= 0;

	if (ppoll(fds, 3, waits ? &look_after : NULL, during_poll) < 0)
		fds[0].revents = fds[1].revents = fds[2].revents = 0;
	if (fds[0].revents & (POLLIN | POLLHUP | POLLERR) && !show(s) && s->ended)
		_exit(0); /* nobody has it open any more */
	if (fds[0].revents & POLLOUT && s->n_typed)
		hand_on(s);
	if (fds[1].revents)
		read_keys(s);
	if (fds[2].revents)
		end(s);
	if (stopped) { /* by another than us */
		stopped = 0;
		set_back(s);
		kill(getpid(), SIGSTOP);
	}
	if (resized || continued || !s->raw)
		look(s);
}

void relay_run(const struct relay *relay)
{
	struct terminal_relay_state s = { .relay = *relay };
	sigset_t during_poll;
	pid_t self = getpid();

	set_signals(&during_poll);
	close_others(relay);
	prctl(PR_SET_NAME, "cuscope-tty");
	fcntl(relay->master, F_SETFL, O_RDWR | O_NONBLOCK);
	tcgetattr(relay->out, &s.before);
	look(&s);
	if (write(relay->control, &self, sizeof(self)) != sizeof(self))
		_exit(1);
	for (;;)
		turn(&s, &during_poll);
}

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
