// SPDX-License-Identifier: MIT
#include "probe/attach.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/later.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

#define FIRST_PART 16          /* points that one link is made of */
#define PART_NS    50000000ull /* that one of the further links is to take */

/* That looking for the points of one set takes at most that no probe can be written to. The kernel
 * needs a grace period for each try, and anybody can have all of a file be so (patched.h). */
#define REFUSED_NS 1000000000ull

struct fds {
	int *fd;
	size_t count;
};

struct attachment {
	struct fds entries, returns;
	uint64_t took_ns, refused_ns; /* the second: for -EFAULT */
};

static void fds_add(struct fds *fds, int fd)
{
	fds->fd = vec_room(fds->fd, fds->count, sizeof(*fds->fd));
	fds->fd[fds->count++] = fd;
}

static void fds_close(struct fds *fds)
{
	if (fds->count)
		close_together(fds->fd, fds->count);
	free(fds->fd);
	memset(fds, 0, sizeof(*fds));
}

/* What the two ways of attaching need to know. */
struct job {
	struct programs *programs;
	char path[32]; /* /proc/self/fd/N: right for deleted files and in every mount namespace */
	struct attachment *into;
	bool returns;
	bool own; /* hooks of wire_hooks.h */
	bool until_end;
};

/* ---- one link for many points (session, multi) --------------------------------------------- */

static int link_range(const struct job *job, struct attach_point *points, size_t count,
                      bool returns)
{
	bool session = programs_mechanism(job->programs) == MECHANISM_SESSION;
	int prog = programs_probe_fd(job->programs, job->own, returns);
	AT_END(at_end_free) uint64_t *offsets = xmalloc(count * sizeof(*offsets));
	AT_END(at_end_free) uint64_t *cookies = xmalloc(count * sizeof(*cookies));
	uint64_t *counters = xmalloc(count * sizeof(*counters));
	bool counted = false;
	int fd;

	for (size_t i = 0; i < count; i++) {
		offsets[i] = points[i].offset;
		cookies[i] = points[i].cookie;
		counters[i] = points[i].counter;
		counted |= counters[i] != 0;
	}
	fd = bpf_link_uprobe_multi(prog, session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
	                           job->path, offsets, cookies, counted ? counters : NULL, count,
	                           returns);
	free(counters);
	return fd;
}

/* The kernel takes a list whole or not at all: halving finds the points that it refuses. */
static size_t link_halving(const struct job *job, struct attach_point *points, size_t count,
                           bool returns)
{
	uint64_t begin_ns = clock_now_ns();
	int fd = link_range(job, points, count, returns);

	if (fd >= 0) {
		fds_add(returns ? &job->into->returns : &job->into->entries, fd);
		return count;
	}
	if (fd == -EFAULT)
		job->into->refused_ns += clock_now_ns() - begin_ns;
	if (count == 1 || fd == -EPERM || fd == -ENOMEM || job->into->refused_ns > REFUSED_NS) {
		for (size_t i = 0; i < count; i++)
			points[i].error = fd;
		return 0;
	}
	return link_halving(job, points, count / 2, returns) +
	       link_halving(job, points + count / 2, count - count / 2, returns);
}

/*
 * In parts, between which a signal may end it: where a thousand processes map the file, each point
 * takes the kernel 10 ms and more. Where few do, the second part is all the rest.
 */
static size_t link_parts(const struct job *job, struct attach_point *points, size_t count,
                         bool returns)
{
	size_t hooked = 0, done = 0, part = FIRST_PART;

	while (done < count && !(job->until_end && end_is_near())) {
		uint64_t begin_ns = clock_now_ns(), took_ns;
		size_t n = part < count - done ? part : count - done;

		hooked += link_halving(job, points + done, n, returns);
		done += n;
		took_ns = clock_now_ns() - begin_ns;
		part = took_ns < PART_NS * n ? PART_NS * n / (took_ns + 1) + 1 : 1;
	}
	for (; done < count; done++)
		points[done].error = -EINTR;
	return hooked;
}

/* ---- a perf event for each point (single, stub) -------------------------------------------- */

static int open_single(const struct job *job, const struct attach_point *point, bool returns)
{
	bool cookies = programs_mechanism(job->programs) == MECHANISM_SINGLE;
	int prog = programs_probe_fd(job->programs, job->own, returns);
	int stub = -1, link;
	int perf = perf_uprobe_open(job->path, point->offset, point->counter, returns);

	if (perf < 0)
		return perf;
	if (!cookies && !returns)
		prog = stub = programs_stub(job->programs, job->own ? "hook_exit" : "stub_exit",
		                            point->cookie, NULL);
	link = prog < 0 ? prog : perf_event_attach(perf, prog, cookies, point->cookie);
	if (stub >= 0)
		close(stub);
	if (link <= 0) {
		if (link == 0)
			return perf; /* without a link the event itself holds the program */
		close(perf);
		return link;
	}
	close(perf); /* the link holds the event */
	return link;
}

static size_t link_singly(const struct job *job, struct attach_point *points, size_t count)
{
	size_t hooked = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t begin_ns = clock_now_ns();

		if (job->until_end && end_is_near()) {
			points[i].error = -EINTR;
			continue;
		}
		if (job->into->refused_ns > REFUSED_NS) {
			points[i].error = -EFAULT;
			continue;
		}
		/* the return first: an entry without its return would be a call without an end */
		int back = job->returns ? open_single(job, &points[i], true) : 0;
		int fd = back < 0 ? back : open_single(job, &points[i], false);

		if (job->returns && back >= 0) {
			if (fd < 0)
				close(back); /* each of its hits would count as lost */
			else
				fds_add(&job->into->returns, back);
		}
		if (fd >= 0) {
			fds_add(&job->into->entries, fd);
			hooked++;
		} else {
			points[i].error = fd;
			if (fd == -EFAULT)
				job->into->refused_ns += clock_now_ns() - begin_ns;
		}
	}
	return hooked;
}

/* ---- both ---------------------------------------------------------------------------------- */

static int attach_points(struct job job, int fd, struct attach_point *points, size_t count,
                         bool returns, struct attachment **attachment, struct err *err)
{
	uint64_t begin_ns = clock_now_ns();
	enum mechanism mechanism = programs_mechanism(job.programs);
	size_t hooked;

	job.into = xcalloc(1, sizeof(*job.into));
	snprintf(job.path, sizeof(job.path), "/proc/self/fd/%d", fd);
	job.returns = returns && mechanism != MECHANISM_SESSION;
	for (size_t i = 0; i < count; i++)
		points[i].error = 0;
	if (mechanism == MECHANISM_SESSION || mechanism == MECHANISM_MULTI) {
		if (job.returns)
			link_parts(&job, points, count, true);
		hooked = link_parts(&job, points, count, false);
	} else {
		hooked = link_singly(&job, points, count);
	}
	if (!hooked && count) {
		int code = points[0].error;

		attachment_free(job.into);
		return err_set(err, code, "hooking: %s", strerror(-code));
	}
	job.into->took_ns = clock_now_ns() - begin_ns;
	*attachment = job.into;
	return 0;
}

int attach(struct programs *programs, int fd, struct attach_point *points, size_t count,
           bool returns, bool until_end, struct attachment **attachment, struct err *err)
{
	const struct job job = { .programs = programs, .until_end = until_end };

	return attach_points(job, fd, points, count, returns, attachment, err);
}

int attach_own(struct programs *programs, int fd, struct attach_point *points, size_t count,
               bool returns, struct attachment **attachment, struct err *err)
{
	const struct job job = { .programs = programs, .own = true, .until_end = true };

	return attach_points(job, fd, points, count, returns, attachment, err);
}

uint64_t attachment_took_ns(const struct attachment *attachment)
{
	return attachment ? attachment->took_ns : 0;
}

void attachment_drop_returns(struct attachment *attachment)
{
	fds_close(&attachment->returns);
}

void attachment_free(struct attachment *attachment)
{
	if (!attachment)
		return;
	fds_close(&attachment->entries);
	fds_close(&attachment->returns);
	free(attachment);
}

void attachment_free_later(struct attachment *attachment)
{
	struct fds *const both[] = { &attachment->entries, &attachment->returns };

	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < both[k]->count; i++)
			close_later(both[k]->fd[i]);
		free(both[k]->fd);
	}
	free(attachment);
}
