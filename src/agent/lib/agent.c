// SPDX-License-Identifier: MIT
/*
 * The library's entries, and its thread. The thread lives as long as a session does; one that comes
 * while another ends waits for it.
 */
#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/activities.h"
#include "agent/lib/channel.h"
#include "agent/lib/clock.h"
#include "agent/lib/cubins.h"
#include "agent/lib/leave.h"
#include "agent/lib/nvtx.h"
#include "agent/lib/probes.h"
#include "agent/lib/session.h"
#include "agent/lib/stalls.h"
#include "agent/lib/writer.h"

#define DESCRIPTORS        "/proc/thread-self/fd/"
#define OWN_NAME           "/cuscope-agent"
#define ENTRY              __attribute__((visibility("default")))
#define EXIT_FLUSH_MOST_MS 1000
#define EXIT_BUSY_MOST_MS  5000 /* what is taken down under a call of CUPTI's may never end */
#define AFTER_EXIT_MS      10   /* threads may go on, and call, for a while */

int InitializeInjection(void);
int cuscope_agent_enter(int socket);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session session = { .socket = -1, .bell = -1, .cupti = -1 }; /* of the thread */
static bool threaded;                                                      /* the thread is there */
static int next_socket = -1; /* of the session that comes after this one */
static struct own_fd next_is;
static bool handlers_set, exit_registered;
static uint32_t ends;  /* the session is about to end by itself */
static bool measuring; /* the exit waits for the last records */
static bool stays;     /* the session does, and can be woken */
static uint32_t waits; /* cuInit does, until functions are diverted */

enum exiting { EXIT_NOT, EXIT_WANTED, EXIT_DONE };
static uint32_t exiting;

static void note_measuring(bool now, bool going_on)
{
	__atomic_store_n(&measuring, now, __ATOMIC_RELAXED);
	__atomic_store_n(&stays, going_on, __ATOMIC_RELAXED);
}

static void note_waiting(bool now)
{
	__atomic_store_n(&waits, now, __ATOMIC_RELEASE);
}

/* ---- exit ---------------------------------------------------------------------------------- */

/*
 * Not the exiting thread itself: it may be in the middle of anything, with CUPTI's locks held. It
 * waits a while, no longer.
 */
static void at_exit(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	leave_cancel(); /* calls that destructors make are no moment for it */
	if (!__atomic_load_n(&measuring, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&exiting, EXIT_WANTED, __ATOMIC_RELEASE);
	if (__atomic_load_n(&stays, __ATOMIC_RELAXED))
		wake_up();
	for (int i = 0; i < EXIT_FLUSH_MOST_MS || (stalls_are_busy() && i < EXIT_BUSY_MOST_MS);
	     i++) {
		if (__atomic_load_n(&exiting, __ATOMIC_ACQUIRE) != EXIT_WANTED)
			break;
		nanosleep(&pause, NULL);
	}
}

/*
 * Once CUPTI is loaded, so that our part of the exit comes before that of its destructors. By the
 * one whose session it is.
 */
static void register_exit(void)
{
	if (!exit_registered)
		atexit(at_exit);
	exit_registered = true;
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* The process ends: the last records, and no more of CUPTI, which is about to be taken down. */
static void exit_if_wanted(void)
{
	if (__atomic_load_n(&exiting, __ATOMIC_ACQUIRE) != EXIT_WANTED)
		return;
	session_last_flush(&session);
	__atomic_store_n(&exiting, EXIT_DONE, __ATOMIC_RELEASE);
	for (;;) {
		clock_pause_ms(AFTER_EXIT_MS);
		session_look_at_exit(&session);
	}
}

static void run_session(void)
{
	do {
		bool awaited = session_is_awaited(&session);
		bool goes_on = session.order == AGENT_RUN ||
		               (session.probes && session.order == AGENT_PAUSE);

		__atomic_store_n(&ends, session.order == AGENT_STOP, __ATOMIC_RELAXED);
		note_measuring(awaited, awaited && goes_on);
		note_waiting(session_waits(&session));
		exit_if_wanted();
	} while (session_turn(&session));
	note_waiting(false);
	exit_if_wanted();
}

/* The next session's socket; -1: there is none, and the thread is no more. */
static int take_next(struct own_fd *is)
{
	int socket;

	own_fd_room(); /* not under the lock, and not by who brings the socket */
	pthread_mutex_lock(&lock);
	/* the program may have closed it meanwhile, and what has its number is then its own */
	socket = own_fd_is(next_socket, next_is) ? own_fd_move(next_socket) : -1;
	*is = session.socket_is = next_is;
	session.socket = socket; /* from here on a fork's child closes it there */
	next_socket = -1;
	threaded = socket >= 0;
	__atomic_store_n(&ends, 0, __ATOMIC_RELAXED);
	note_measuring(false, false);
	pthread_mutex_unlock(&lock);
	return socket;
}

static void *run(void *begun)
{
	struct own_fd is;
	int socket;

	if (begun)
		run_session();
	while ((socket = take_next(&is)) >= 0) {
		if (!session_begin(&session, socket, is, 0))
			continue;
		register_exit();
		run_session();
	}
	return NULL;
}

/* With all signals blocked: the program's handlers are none of ours to run. */
static int start_thread(bool begun)
{
	sigset_t all, before;
	pthread_t thread;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&thread, NULL, run, begun ? &session : NULL);
	if (!code)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -code;
}

/* ---- fork ---------------------------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child has neither the thread nor the shared memory. It must not keep the socket open, by
 * which cuscope learns of its parent's end. */
static void in_child(void)
{
	wake_forked();
	if (threaded)
		session_close(&session);
	own_fd_close(&next_socket, next_is);
	session = (struct session){ .socket = -1, .bell = -1, .cupti = -1 };
	next_socket = -1;
	ends = 0;
	exiting = EXIT_NOT;
	note_measuring(false, false);
	note_waiting(false);
	threaded = false;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	writer_forked();
	activities_forked();
	buffers_forked();
	leave_forked();
	stalls_forked();
	cubins_forked();
	nvtx_forked();
	probes_forked();
}

/* With the lock held. */
static void set_handlers(void)
{
	if (handlers_set)
		return;
	handlers_set = true;
	pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- entries ------------------------------------------------------------------------------- */

static void set_next(int socket)
{
	next_socket = socket;
	next_is = own_fd_of(socket);
}

/* Whether an object of the loader's is this library. */
static bool is_own(const struct dl_phdr_info *info)
{
	uintptr_t here = (uintptr_t)&lock;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && here >= begin &&
		    here - begin < info->dlpi_phdr[i].p_memsz)
			return true;
	}
	return false;
}

static int rename_own(struct dl_phdr_info *info, size_t bytes, void *data)
{
	char *name = (char *)info->dlpi_name; /* glibc's: link_map.l_name, which it allocated */

	if (!is_own(info))
		return 0;
	if (!strncmp(name, DESCRIPTORS, strlen(DESCRIPTORS)))
		memcpy(name, OWN_NAME, sizeof(OWN_NAME));
	return 1;
}

/*
 * To the loader this library is called /proc/thread-self/fd/.../N, which whoever opens it finds
 * among his own descriptors. gdb does, and was seen to wait for ever in a read of its own pipe.
 * So it is given a name that nobody has. The loader's lock is held meanwhile.
 */
static void give_name(void)
{
	dl_iterate_phdr(rename_own, NULL);
}

ENTRY int cuscope_agent_enter(int socket)
{
	int code = 0;

	give_name();
	pthread_mutex_lock(&lock);
	set_handlers();
	if (threaded) {
		if (__atomic_load_n(&ends, __ATOMIC_RELAXED) && next_socket < 0)
			set_next(socket);
		else
			code = -EBUSY;
	} else {
		set_next(socket);
		code = start_thread(false);
		threaded = !code;
		if (code)
			next_socket = -1;
	}
	pthread_mutex_unlock(&lock);
	if (code)
		close(socket);
	return code;
}

/* Whether no session is there: then it is the caller's to begin one. */
static bool claim(void)
{
	bool claimed;

	pthread_mutex_lock(&lock);
	claimed = !threaded;
	if (claimed)
		set_handlers();
	threaded = true;
	pthread_mutex_unlock(&lock);
	return claimed;
}

static void give_up_claim(void)
{
	pthread_mutex_lock(&lock);
	threaded = false;
	note_measuring(false, false);
	pthread_mutex_unlock(&lock);
}

/*
 * A short program would be over before its functions are diverted. cuscope says when they are, or
 * are not going to be; should it hang, the program goes on all the same.
 */
static void wait_for_cuscope(void)
{
	uint64_t from_ns = clock_now();

	if (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
		return;
	while (__atomic_load_n(&waits, __ATOMIC_ACQUIRE) &&
	       clock_now() - from_ns < AGENT_WAIT_MS * 1000000ull)
		clock_pause_ms(1);
	writer_own_time(AGENT_OWN_WAITING, from_ns);
}

/* Returns only when the first call can be measured. Without the lock: others may fork meanwhile. */
static void begin_started(const char *address)
{
	uint64_t from_ns = clock_now();
	struct own_fd is;
	int socket;

	if (!claim())
		return;
	socket = own_fd_move(channel_connect(address, &is));
	if (socket < 0 || !session_begin(&session, socket, is, from_ns)) {
		give_up_claim();
		return;
	}
	register_exit();
	/* now: a short program ends before the thread has begun to run */
	note_measuring(true, true);
	note_waiting(session_waits(&session));
	if (start_thread(true))
		give_up_claim(); /* measured, but never flushed: CUPTI does */
	else
		wait_for_cuscope();
}

static int begin_next(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	int (*initialize)(void) = NULL;

	if (library)
		initialize = (int (*)(void))dlsym(library, "InitializeInjection");
	return initialize ? initialize() : 1;
}

/*
 * By CUDA, in cuInit, for CUDA_INJECTION64_PATH. 1: all is well. Not for programs with more rights
 * than who started them has. Called again by what comes next, where that is cuscope's library once
 * more: the end of the chain.
 */
ENTRY int InitializeInjection(void)
{
	static __thread bool inside;
	const char *address = secure_getenv(AGENT_ENV), *next = secure_getenv(AGENT_ENV_NEXT);
	int error = errno, result = 1;

	if (inside)
		return result;
	inside = true;
	if (address && *address)
		begin_started(address);
	if (next && *next)
		result = begin_next(next);
	inside = false;
	errno = error;
	return result;
}
