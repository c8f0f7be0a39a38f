// SPDX-License-Identifier: MIT
#include "probe/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/own_terminal.h"

#define LET_GO_MS 200

struct hold {
	struct command command;
	struct identity identity;
	char **environment;
	struct own_terminal *terminal; /* of another user's command; NULL: none */
	hold_look_fn look;
	hold_held_fn ours;
	void *data;

	pthread_t thread;
	bool thread_runs;
	sem_t prepared; /* the child exists and is traced, or could not be made */
	int prepare_error;
	atomic_bool stop; /* the thread is to leave, which detaches all tracees */
	bool traced;

	pthread_mutex_t lock; /* of these: processes that are no longer traced */
	pid_t *free;
	size_t n_free;
	atomic_bool asked; /* there are such */
	long options;
	atomic_int take; /* a process that is to be traced again; 0: none */

	pid_t pid;
	int go_pipe[2];   /* a byte lets the child exec */
	int exec_pipe[2]; /* the child's errno, or closed by exec */
	bool gone;        /* it was let go */
	int ended_fd;     /* eventfd */
	atomic_bool ended;
	int status;
	atomic_ullong holds, longest_ns;
};

/* ---- the child ----------------------------------------------------------------------------- */

static int redirect(const int *streams)
{
	for (int i = 0; streams && i < 3; i++) {
		if (dup2(streams[i], i) < 0)
			return errno;
	}
	return 0;
}

static void child_main(struct hold *hold)
{
	int failure;
	char go;

	close(hold->go_pipe[1]);
	close(hold->exec_pipe[0]);
	if (hold->command.origin)
		origin_restore(hold->command.origin);
	if (read(hold->go_pipe[0], &go, 1) != 1)
		_exit(127); /* cuscope is gone */
	failure = redirect(hold->command.streams);
	if (!failure && hold->identity.change)
		failure = own_terminal_enter(hold->terminal);
	if (!failure)
		failure = identity_become(&hold->identity);
	if (!failure) {
		environ = hold->environment; /* its PATH is where the command is looked for */
		execvp(hold->command.argv[0], hold->command.argv);
		failure = errno;
	}
	if (write(hold->exec_pipe[1], &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- the tracing thread -------------------------------------------------------------------- */

static void look(struct hold *hold, pid_t pid, bool begins)
{
	uint64_t begin = clock_now_ns(), took;

	hold->look(hold->data, pid, begins);
	took = clock_now_ns() - begin;
	atomic_fetch_add(&hold->holds, 1);
	if (took > atomic_load(&hold->longest_ns))
		atomic_store(&hold->longest_ns, took);
}

/*
 * Of two that are pending the thread's own comes first, which is how ours was sent. The sender
 * tells nothing: terminals' and sockets' signals are the kernel's too. See hold_thread() there.
 */
static enum held held_by(struct hold *hold, pid_t tid, int sig)
{
	siginfo_t info = { 0 };

	if ((sig != SIGWINCH && sig != SIGSTOP) || ptrace(PTRACE_GETSIGINFO, tid, NULL, &info))
		return HELD_NOT;
	return hold->ours(hold->data, tid);
}

static void command_ended(struct hold *hold, int status)
{
	uint64_t one = 1;

	own_terminal_end(hold->terminal);
	hold->status = status;
	atomic_store(&hold->ended, true);
	if (write(hold->ended_fd, &one, sizeof(one)) < 0)
		return; /* cannot fail on an eventfd that nobody filled */
}

/*
 * A thread that is about to be stopped by SIGSTOP would be for good if cuscope died now. It loses
 * the signal and stops for the tracer alone instead, before it is back in the program.
 */
static bool trade_stop(struct hold *hold, pid_t tid)
{
	int status;
	pid_t changed;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, 0) || ptrace(PTRACE_CONT, tid, NULL, 0))
		return false;
	do
		changed = waitpid(tid, &status, __WALL);
	while (changed < 0 && errno == EINTR); /* somebody asks for something meanwhile */
	if (changed != tid)
		return false;
	if (!WIFSTOPPED(status) && tid == hold->pid)
		command_ended(hold, status);
	return WIFSTOPPED(status);
}

/* ---- processes that are let go --------------------------------------------------------------- */

static bool is_let_go(struct hold *hold, pid_t tid)
{
	bool let_go = false;
	int pid = 0;

	if (!atomic_load(&hold->asked) || !process_status(tid, tid, "Tgid: %d", &pid))
		return false;
	LOCKED(&hold->lock);
	for (size_t i = 0; i < hold->n_free; i++)
		let_go |= hold->free[i] == pid;
	return let_go;
}

/* The eBPF side may have sent it a signal to stop by, which nobody would take away later. */
static bool has_hold_signal(pid_t tid)
{
	unsigned long long pending = 0, blocked = 0;
	unsigned long long ours = 1ull << (SIGWINCH - 1) | 1ull << (SIGSTOP - 1);

	return process_status(tid, tid, "SigPnd: %llx", &pending) && pending & ours &&
	       process_status(tid, tid, "SigBlk: %llx", &blocked) && pending & ours & ~blocked;
}

static bool is_untraced(pid_t pid)
{
	AT_END(process_list_end) DIR *threads = process_list(pid);
	int tracer = 0;
	pid_t tid;

	while (!tracer && (tid = process_next(threads)))
		process_status(pid, tid, "TracerPid: %d", &tracer);
	return !tracer;
}

/* Each of their threads stops, and is detached by that. */
static void let_go_asked(struct hold *hold)
{
	pid_t tid;

	LOCKED(&hold->lock);
	for (size_t i = 0; i < hold->n_free; i++) {
		AT_END(process_list_end) DIR *threads = process_list(hold->free[i]);

		while ((tid = process_next(threads)))
			ptrace(PTRACE_INTERRUPT, tid, NULL, 0);
	}
}

static void on_stop(struct hold *hold, pid_t tid, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	long request = PTRACE_CONT, deliver = 0;
	enum held held;

	if (event == PTRACE_EVENT_EXEC) {
		look(hold, tid, true);
	} else if (event == PTRACE_EVENT_STOP) {
		/* a real SIGSTOP or SIGTSTP stays a stop; SIGTRAP is a new task's first stop */
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
			request = PTRACE_LISTEN;
	} else if (event == 0) {
		held = held_by(hold, tid, sig);
		if (held != HELD_OURS)
			deliver = sig;
		if (held != HELD_NOT && sig == SIGSTOP && !trade_stop(hold, tid))
			return; /* it died */
		if (held != HELD_NOT)
			look(hold, tid, false);
	}
	if (is_let_go(hold, tid) && !(event == PTRACE_EVENT_STOP && has_hold_signal(tid)))
		request = PTRACE_DETACH;
	ptrace(request, tid, NULL, deliver);
}

static int make_child(struct hold *hold)
{
	long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE;

	if (hold->command.follow)
		options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
	hold->pid = fork();
	if (hold->pid == 0)
		child_main(hold);
	own_terminal_made(hold->terminal);
	if (hold->pid < 0)
		return -errno;
	hold->options = options;
	hold->traced = hold->command.hold && ptrace(PTRACE_SEIZE, hold->pid, NULL, options) == 0;
	return 0;
}

/* Deals with one change of a tracee. Returns the tid, 0 when there is none, or a negative errno. */
static pid_t next_change(struct hold *hold, int flags)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | flags);

	if (tid < 0)
		return -errno;
	if (tid && WIFSTOPPED(status))
		on_stop(hold, tid, status);
	else if (tid == hold->pid)
		command_ended(hold, status);
	return tid;
}

/*
 * A thread that was sent a hold signal stops within microseconds, on its way out of mmap. One that
 * were left with a SIGSTOP would stay stopped for good.
 */
static void last_changes(struct hold *hold)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	pid_t tid = 0;

	for (int i = 0; i < 10 && tid != -ECHILD; i++) {
		while ((tid = next_change(hold, WNOHANG)) > 0)
			;
		nanosleep(&pause, NULL);
	}
}

/* Until a look finds none that is not ours: their threads may start others meanwhile. */
static void take_asked(struct hold *hold)
{
	pid_t pid = atomic_load(&hold->take), tid;
	bool again = pid != 0;

	for (int i = 0; again && i < 16; i++) {
		AT_END(process_list_end) DIR *threads = process_list(pid);

		again = false;
		while ((tid = process_next(threads)))
			again |= !ptrace(PTRACE_SEIZE, tid, NULL, hold->options);
	}
	atomic_store(&hold->take, 0);
}

/* Leaving this function detaches every tracee: the kernel does that for a tracer that is gone. */
static void *tracer_main(void *argument)
{
	struct hold *hold = argument;
	pid_t tid = 0;

	hold->prepare_error = make_child(hold);
	sem_post(&hold->prepared);
	while (!hold->prepare_error && !atomic_load(&hold->stop) && tid != -ECHILD) {
		tid = next_change(hold, 0);
		if (tid == -EINTR) {
			let_go_asked(hold);
			take_asked(hold);
		}
	}
	if (hold->traced && tid != -ECHILD)
		last_changes(hold);
	return NULL;
}

static void interrupt_wait(int sig)
{
}

static int start_tracer(struct hold *hold)
{
	struct sigaction action = { .sa_handler = interrupt_wait }; /* no SA_RESTART */
	sigset_t all, old;
	int r;

	sigaction(SIGRTMIN, &action, NULL);
	sigfillset(&all);
	sigdelset(&all, SIGRTMIN);
	pthread_sigmask(SIG_SETMASK, &all,
	                &old); /* inherited: other signals go to the main thread */
	r = pthread_create(&hold->thread, NULL, tracer_main, hold);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

/* ---- the interface ------------------------------------------------------------------------- */

int hold_prepare(const struct command *command, hold_look_fn look_fn, hold_held_fn ours, void *data,
                 struct hold **result, pid_t *pid, bool *held, struct err *err)
{
	struct hold *hold = xcalloc(1, sizeof(*hold));
	int r;

	hold->command = *command;
	hold->look = look_fn;
	hold->ours = ours;
	hold->data = data;
	hold->go_pipe[0] = hold->go_pipe[1] = hold->exec_pipe[0] = hold->exec_pipe[1] = -1;
	hold->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sem_init(&hold->prepared, 0, 0);
	pthread_mutex_init(&hold->lock, NULL);
	r = identity_find(command->user, &hold->identity, err);
	if (!r)
		hold->environment = environment_new(&hold->identity, &command->environment);
	if (!r && hold->identity.change)
		r = own_terminal_new(command->streams, hold->identity.uid, &hold->terminal, err);
	if (!r && (pipe2(hold->go_pipe, O_CLOEXEC) || pipe2(hold->exec_pipe, O_CLOEXEC)))
		r = err_set(err, errno, "making pipes: %s", strerror(errno));
	if (!r) {
		r = start_tracer(hold);
		hold->thread_runs = r == 0;
		if (hold->thread_runs)
			while (sem_wait(&hold->prepared) && errno == EINTR)
				;
		r = r ? r : hold->prepare_error;
		if (r)
			err_set(err, r, "starting '%s': %s", command->argv[0], strerror(-r));
	}
	if (r) {
		hold_free(hold);
		return r;
	}
	*result = hold;
	*pid = hold->pid;
	*held = hold->traced;
	return 0;
}

int hold_go(struct hold *hold, struct err *err)
{
	struct pollfd ended = { .fd = hold->ended_fd, .events = POLLIN };
	int failure = 0;

	hold->gone = true;
	close(hold->exec_pipe[1]);
	hold->exec_pipe[1] = -1;
	if (write(hold->go_pipe[1], "g", 1) != 1)
		return err_set(err, errno, "starting '%s': %s", hold->command.argv[0],
		               strerror(errno));
	while (read(hold->exec_pipe[0], &failure, sizeof(failure)) < 0 && errno == EINTR)
		;
	if (!failure)
		return 0;
	poll(&ended, 1, 1000); /* it is about to: nobody is to be told that it is waited for */
	return err_set(err, failure, "cannot run '%s': %s%s", hold->command.argv[0],
	               strerror(failure),
	               failure == ENOENT ? " (is it spelled right and in PATH?)" : "");
}

bool hold_gone(const struct hold *hold)
{
	return hold->gone;
}

void hold_pass_on(struct hold *hold, int sig, pid_t from)
{
	pid_t to = hold->pid;

	if (sig == SIGINT) {
		if (!hold->identity.change || (from && from == own_terminal_sender(hold->terminal)))
			return;
		to = -to; /* as a terminal does */
	}
	kill(to, sig);
}

int hold_fd(const struct hold *hold)
{
	return hold->ended_fd;
}

bool hold_ended(struct hold *hold, int *status)
{
	if (!atomic_load(&hold->ended))
		return false;
	*status = hold->status;
	return true;
}

void hold_times(const struct hold *hold, uint64_t *count, uint64_t *longest_ns)
{
	*count = atomic_load(&hold->holds);
	*longest_ns = atomic_load(&hold->longest_ns);
}

int hold_let_go(struct hold *hold, pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (!hold->thread_runs || !hold->traced)
		return 0;
	pthread_mutex_lock(&hold->lock);
	hold->free = vec_room(hold->free, hold->n_free, sizeof(*hold->free));
	hold->free[hold->n_free++] = pid;
	pthread_mutex_unlock(&hold->lock);
	atomic_store(&hold->asked, true);
	/* again and again: the signal may come just before the thread begins to wait */
	for (int i = 0; i < LET_GO_MS; i++) {
		if (is_untraced(pid))
			return 0;
		pthread_kill(hold->thread, SIGRTMIN);
		nanosleep(&pause, NULL);
	}
	return is_untraced(pid) ? 0 : -EAGAIN;
}

void hold_take(struct hold *hold, pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	size_t kept = 0;

	if (!hold->thread_runs || !hold->traced)
		return;
	pthread_mutex_lock(&hold->lock);
	for (size_t i = 0; i < hold->n_free; i++) {
		if (hold->free[i] != pid)
			hold->free[kept++] = hold->free[i];
	}
	hold->n_free = kept;
	pthread_mutex_unlock(&hold->lock);
	atomic_store(&hold->take, pid);
	for (int i = 0; i < LET_GO_MS && atomic_load(&hold->take); i++) {
		pthread_kill(hold->thread, SIGRTMIN);
		nanosleep(&pause, NULL);
	}
}

void hold_release(struct hold *hold)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (!hold->thread_runs)
		return;
	atomic_store(&hold->stop, true);
	/* again and again: the signal may come just before the thread begins to wait */
	while (pthread_tryjoin_np(hold->thread, NULL) == EBUSY) {
		pthread_kill(hold->thread, SIGRTMIN);
		nanosleep(&pause, NULL);
	}
	hold->thread_runs = false;
}

int hold_wait(struct hold *hold, bool patient)
{
	struct sigaction hangup;
	siginfo_t info = { 0 };
	int status = 0, sig;
	sigset_t set;

	hold_release(hold);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN) /* nohup */
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (!hold_ended(hold, &status)) {
		if (waitpid(hold->pid, &status, WNOHANG) != 0) {
			command_ended(hold, status);
			continue;
		}
		sig = sigwaitinfo(&set, &info);
		if (sig <= 0 || sig == SIGCHLD)
			continue;
		if (!patient)
			return -sig;
		patient = false;
		hold_pass_on(hold, sig, info.si_code == SI_KERNEL ? 0 : info.si_pid);
	}
	return status;
}

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
	}
}

void hold_free(struct hold *hold)
{
	if (!hold)
		return;
	if (hold->pid > 0 && !hold->gone)
		kill(hold->pid, SIGKILL);
	hold_release(hold);
	close_pair(hold->go_pipe);
	close_pair(hold->exec_pipe);
	close(hold->ended_fd);
	own_terminal_free(hold->terminal);
	environment_free(hold->environment);
	sem_destroy(&hold->prepared);
	pthread_mutex_destroy(&hold->lock);
	free(hold->free);
	free(hold);
}
