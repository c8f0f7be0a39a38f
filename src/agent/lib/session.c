// SPDX-License-Identifier: MIT
#include "agent/lib/session.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/activities.h"
#include "agent/lib/channel.h"
#include "agent/lib/clock.h"
#include "agent/lib/cupti.h"
#include "agent/lib/leave.h"
#include "agent/lib/orders.h"
#include "agent/lib/stalls.h"
#include "agent/lib/writer.h"

#define MS              1000000ull
#define HELLO_MOST_MS   2000  /* in the program's cuInit */
#define ENTERED_MOST_MS 10000 /* on a thread of our own, which holds nobody up */
#define FLUSH_LEAST_MS  10
#define FLUSH_USUAL_MS  100
#define CLOCK_EVERY_NS  (10000 * MS)
#define ENDING_LOOK_MS  20
#define OWN_CALL_AFTER  (250 * MS)
#define SETTLE_MOST     10 /* flushes before CUPTI is left, SETTLE_MS apart */
#define SETTLE_MS       5
#define LOOK_MS         100 /* at probes */

/* ---- states -------------------------------------------------------------------------------- */

static void ring(const struct session *session)
{
	if (own_fd_is(session->bell, session->bell_is))
		channel_ring(session->bell);
}

static void say_state(struct session *session, uint32_t state)
{
	session->state = state;
	__atomic_store_n(&writer_shared()->state, state, __ATOMIC_RELEASE);
	ring(session);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void session_close(struct session *session)
{
	own_fd_close(&session->socket, session->socket_is);
	own_fd_close(&session->bell, session->bell_is);
	wake_close();
	own_fd_close(&session->cupti, session->cupti_is);
}

/* The program may have closed them, and what has their numbers is then its own. */
static void look_whether_open(struct session *session)
{
	if (session->socket >= 0 && !own_fd_is(session->socket, session->socket_is)) {
		session->socket = -1;
		session->order = AGENT_STOP;
	}
	if (!own_fd_is(session->bell, session->bell_is))
		session->bell = -1;
	if (!own_fd_is(session->cupti, session->cupti_is))
		session->cupti = -1;
}

/* Where a thread of the program stays in the recording, the ring's memory does, too. */
static void end_probes(struct session *session)
{
	if (session->probes && !orders_close())
		writer_keep();
	session->probes = false;
}

/* Records may still be on their way; then the ring's memory stays until they came. */
static void close_all(struct session *session)
{
	end_probes(session);
	activities_close();
	writer_close();
	session_close(session);
}

static void say_failure(const struct failure *failure)
{
	struct agent_shared *shared = writer_shared();

	shared->failure = failure->what;
	shared->code = failure->code;
	memcpy(shared->text, failure->text, sizeof(shared->text));
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* Graphs as wholes only where none can be older than our being here: see wire.h. */
static uint32_t kinds_possible(struct session *session)
{
	uint32_t kinds = session->kinds;

	if (!(kinds & AGENT_WANT_GRAPHS) || session->from_the_begin)
		return kinds;
	writer_shared()->nodes_instead = 1;
	return (kinds & ~(uint32_t)AGENT_WANT_GRAPHS) | AGENT_WANT_KERNELS;
}

/* No CUPTI, or no more of it. */
static void fail(struct session *session)
{
	session->without_cupti = true;
	say_state(session, session->probes ? AGENT_PROBES_ONLY : AGENT_FAILED);
}

static void measure(struct session *session)
{
	uint32_t kinds = kinds_possible(session);
	bool calls_are_open = !session->from_the_begin;
	struct failure failure = { 0 };

	session->from_the_begin = false;
	if (!kinds) {
		session->without_cupti = true;
		say_state(session, AGENT_RUNNING);
		return;
	}
	say_state(session, AGENT_STARTING);
	if (cupti_begin(kinds, session->cupti, calls_are_open, &failure) == 0) {
		session->clock_ns = session->flush_ns = clock_now();
		say_state(session, AGENT_RUNNING);
		return;
	}
	writer_measure(0);
	say_failure(&failure);
	if (!cupti_entered()) {
		fail(session);
		return;
	}
	/* Half started: what there is goes, then it has failed. */
	session->gives_up = true;
	if (!session->probes)
		session->order = AGENT_STOP;
	session->state = AGENT_RUNNING;
}

static bool is_hello(const struct agent_message *message)
{
	return message->type == AGENT_HELLO && message->abi == AGENT_ABI &&
	       (message->kinds || message->probes & AGENT_PROBES);
}

/* Of a cuscope of another version, as well as can be told. */
static void refuse(struct session *session)
{
	writer_shared()->failure = AGENT_BAD_HELLO;
	say_state(session, AGENT_FAILED);
}

bool session_begin(struct session *session, int socket, struct own_fd is, uint64_t from_ns)
{
	struct agent_message hello = { 0 };
	bool wakes = wake_open();
	int64_t changed;
	int fds[CHANNEL_FDS], got;

	*session = (struct session){ .socket = socket,
		                     .socket_is = is,
		                     .bell = -1,
		                     .cupti = -1,
		                     .from_the_begin = from_ns != 0 };
	got = channel_receive(session->socket, is, from_ns ? HELLO_MOST_MS : ENTERED_MOST_MS,
	                      &hello, fds);
	session->bell = own_fd_move(fds[1]);
	session->bell_is = own_fd_of(session->bell);
	session->cupti = own_fd_move(fds[2]);
	session->cupti_is = own_fd_of(session->cupti);
	if (got <= 0 || fds[0] < 0 || !wakes || writer_open(fds[0])) {
		close_fd(&fds[0]);
		close_all(session);
		return false;
	}
	close(fds[0]);
	changed = clock_set_offset(writer_shared()->clock_offset_ns);
	session->order = AGENT_RUN;
	session->kinds = hello.kinds & ~WRITER_OPEN;
	session->flush_ms = hello.flush_ms ? hello.flush_ms : FLUSH_USUAL_MS;
	if (session->flush_ms < FLUSH_LEAST_MS)
		session->flush_ms = FLUSH_LEAST_MS;
	if (!is_hello(&hello))
		refuse(session);
	else if (session->kinds && activities_open()) {
		writer_shared()->failure = AGENT_NO_MEMORY;
		say_state(session, AGENT_FAILED);
	} else {
		session->probes = hello.probes & AGENT_PROBES;
		if (session->probes)
			orders_open(writer_ring(), hello.probes);
		measure(session);
		if (session->probes && hello.probes & AGENT_PROBES_WAIT)
			session->waits_until = clock_now() + AGENT_WAIT_MS * MS;
	}
	if (from_ns)
		writer_own_time(AGENT_OWN_LOADING, from_ns + (uint64_t)changed);
	if (session->state == AGENT_FAILED)
		close_all(session);
	return session->state != AGENT_FAILED;
}

/* ---- ending -------------------------------------------------------------------------------- */

/* Until nothing more comes: what the GPU has finished was finished a moment ago. */
static void flush_rest(void)
{
	uint64_t *written = &writer_shared()->activities;
	uint64_t before = UINT64_MAX;

	for (int i = 0; i < SETTLE_MOST && __atomic_load_n(written, __ATOMIC_RELAXED) != before;
	     i++) {
		if (i)
			clock_pause_ms(SETTLE_MS);
		before = __atomic_load_n(written, __ATOMIC_RELAXED);
		cupti_flush(false);
	}
	cupti_flush(true);
}

static void ended(struct session *session, bool left)
{
	struct agent_shared *shared = writer_shared();

	shared->pause_ns = left ? leave_took_ns() : 0;
	shared->leftover = left                ? AGENT_LEFT_NOTHING
	                   : cupti_is_shared() ? AGENT_LEFT_SHARED
	                                       : AGENT_LEFT_CUPTI;
	if (left)
		buffers_close();
	else if (session->order == AGENT_STOP || session->gives_up)
		cupti_unsubscribe();
	if (shared->failure)
		fail(session);
	else
		say_state(session, session->order == AGENT_PAUSE ? AGENT_PAUSED : AGENT_OFF);
}

/* CUPTI stays, with what a launch then costs; it measures nothing. */
static void end_without_leaving(struct session *session)
{
	cupti_mute();
	ended(session, false);
}

static void begin_ending(struct session *session)
{
	__atomic_store_n(&writer_shared()->active_until_ns, clock_now(), __ATOMIC_RELAXED);
	writer_measure(0);
	say_state(session, AGENT_ENDING);
	session->ending_since = clock_now();
	session->own_call = false;
	cupti_disable();
	flush_rest();
	if (!cupti_leavable()) {
		end_without_leaving(session);
		return;
	}
	cupti_call_back_always();
	leave_begin(); /* at any moment from here on there is no CUPTI */
}

/* A process that makes no call of CUDA's for a while gets one of ours. */
static void turn_ending(struct session *session)
{
	if (leave_done()) {
		ended(session, true);
	} else if (!cupti_leavable() && leave_cancel()) {
		end_without_leaving(session);
	} else if (!session->own_call && clock_now() - session->ending_since > OWN_CALL_AFTER) {
		session->own_call = true;
		leave_by_own_call();
	}
}

/* ---- a turn -------------------------------------------------------------------------------- */

/* While cuInit waits for this thread to be asked, CUPTI could wait for cuInit. */
static void turn_running(struct session *session)
{
	uint64_t now = clock_now();

	if (session_waits(session))
		return;
	if (now - session->flush_ns >= session->flush_ms * MS) {
		session->flush_ns = now;
		cupti_flush(false);
		cupti_spare();
	}
	session->stalls_ns = stalls_turn(now);
	cupti_tell_launched_modules(stalls_are_sampled());
	if (now - session->clock_ns >= CLOCK_EVERY_NS) {
		session->clock_ns = now;
		cupti_clock();
	}
}

static bool is_request(const struct session *session, const struct agent_message *message)
{
	return session->probes && message->abi == AGENT_ABI && message->type >= AGENT_PROBES_AREA &&
	       message->type <= AGENT_PROBES_TURN;
}

static void take_messages(struct session *session)
{
	struct agent_message message;
	int fds[CHANNEL_FDS], got;

	while (session->socket >= 0 && (got = channel_receive(session->socket, session->socket_is,
	                                                      0, &message, fds)) != 0) {
		if (got > 0 && is_request(session, &message)) {
			orders_take(writer_ring(), &message, fds[0]);
			ring(session);
		} else if (got > 0 && message.type == AGENT_PROBES_GO) {
			session->waits_until = 0;
		} else if (got < 0) { /* it died, or is none of ours: nobody reads any more */
			own_fd_close(&session->socket, session->socket_is);
			session->order = AGENT_STOP;
		} else if (session->order != AGENT_STOP && message.type >= AGENT_RUN &&
		           message.type <= AGENT_STOP) {
			session->order = message.type;
		}
		for (int i = 0; i < CHANNEL_FDS; i++)
			close_fd(&fds[i]);
	}
}

static void wait(struct session *session)
{
	struct pollfd ready[2];
	uint64_t now = clock_now(), due = session->flush_ns + session->flush_ms * MS;
	int timeout_ms = -1;

	if (session->stalls_ns && session->stalls_ns < due)
		due = session->stalls_ns;

	if (session->state == AGENT_RUNNING && !session->without_cupti)
		timeout_ms = due > now ? (int)((due - now) / MS) + 1 : 0;
	else if (session->state == AGENT_ENDING)
		timeout_ms = ENDING_LOOK_MS;
	if (session->probes && (timeout_ms < 0 || timeout_ms > LOOK_MS))
		timeout_ms = LOOK_MS;
	look_whether_open(session);
	if (session->socket < 0 && (timeout_ms < 0 || timeout_ms > ENDING_LOOK_MS))
		timeout_ms = ENDING_LOOK_MS;
	ready[0] = (struct pollfd){ .fd = wake_fd(), .events = POLLIN };
	ready[1] = (struct pollfd){ .fd = session->socket, .events = POLLIN };
	poll(ready, 2, timeout_ms);
	look_whether_open(session);
	wake_done();
}

static void look_at_probes(struct session *session)
{
	uint64_t now = clock_now();

	if (!session->probes || now - session->look_ns < LOOK_MS * MS)
		return;
	session->look_ns = now;
	orders_look();
}

/* What the orders and CUPTI make of the state. */
static void turn_cupti(struct session *session)
{
	if (session->state == AGENT_RUNNING && (session->order != AGENT_RUN || session->gives_up))
		begin_ending(session);
	if (session->state == AGENT_ENDING)
		turn_ending(session);
	if (session->state == AGENT_PAUSED && session->order == AGENT_RUN)
		measure(session);
	if (session->state == AGENT_PAUSED && session->order == AGENT_STOP) {
		if (cupti_entered())
			cupti_unsubscribe();
		say_state(session, AGENT_OFF);
	}
	if (session->state == AGENT_RUNNING && session->order == AGENT_RUN)
		turn_running(session);
}

bool session_turn(struct session *session)
{
	if (session->order == AGENT_STOP)
		end_probes(session);
	if (!session->without_cupti)
		turn_cupti(session);
	else if (session->order == AGENT_STOP)
		say_state(session, writer_shared()->failure ? AGENT_FAILED : AGENT_OFF);
	if (session->state == AGENT_OFF || session->state == AGENT_FAILED) {
		close_all(session);
		return false;
	}
	look_at_probes(session);
	wait(session);
	take_messages(session);
	return true;
}

bool session_waits(const struct session *session)
{
	return session->waits_until > clock_now() && session->order != AGENT_STOP;
}

bool session_is_awaited(const struct session *session)
{
	return session->state == AGENT_RUNNING || session->probes;
}

void session_look_at_exit(const struct session *session)
{
	if (session->probes)
		orders_look();
}

void session_last_flush(struct session *session)
{
	if (session->probes)
		orders_tell_open();
	if (session->state != AGENT_RUNNING || session->without_cupti)
		return;
	stalls_close(true);
	/* What the GPU has not finished yet ends with the process. */
	__atomic_store_n(&writer_shared()->active_until_ns, clock_now(), __ATOMIC_RELAXED);
	cupti_flush(true);
}
