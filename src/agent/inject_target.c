// SPDX-License-Identifier: MIT
#include "agent/inject_target.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/inject_code.h"
#include "agent/inject_run.h"
#include "agent/inject_stack.h"
#include "agent/inject_thread.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "bpf/wire.h"
#include "probe/elf_image.h"
#include "probe/maps.h"

#define MAPPINGS_MAX 65536
#define ALIVE_TRIES  16

bool target_read(const struct inject_target *target, uint64_t address, void *to, size_t bytes)
{
	return pread(target->memory, to, bytes, (off_t)address) == (ssize_t)bytes;
}

bool target_write(const struct inject_target *target, uint64_t address, const void *from,
                  size_t bytes)
{
	return pwrite(target->memory, from, bytes, (off_t)address) == (ssize_t)bytes;
}

/* ---- permission ------------------------------------------------------------------------------ */

pid_t target_tracer(pid_t pid, pid_t tid)
{
	int tracer = 0;

	process_status(pid, tid, "TracerPid: %d", &tracer);
	return tracer;
}

/* -ESTALE for another one that attaches, which is a matter of a moment. */
static int traced_by(pid_t pid, pid_t tracer, struct err *err)
{
	AT_END(buf_free) struct buf safe = { 0 };
	char comm[32];
	int rc;

	process_comm(tracer, 0, comm, sizeof(comm));
	if (strcmp(comm, INJECT_COMM) == 0)
		return -ESTALE;
	text_add_safe(&safe, comm);
	rc = err_set(err, EBUSY,
	             "process %d is traced by process %d%s%s%s, and only one can do that; end it "
	             "or detach it first",
	             pid, tracer, comm[0] ? " (" : "", comm[0] ? safe.data : "",
	             comm[0] ? ")" : "");
	return rc;
}

int target_yama_scope(void)
{
	char scope[16];

	file_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	return atoi(scope);
}

int target_refused(pid_t pid, pid_t tid, int code, struct err *err)
{
	pid_t tracer = target_tracer(pid, tid);

	if (code == ESRCH)
		return err_set(err, ESRCH, "no process has the pid %d", pid);
	if (tracer)
		return traced_by(pid, tracer, err);
	if (code != EPERM && code != EACCES)
		return err_set(err, code, "cannot trace process %d: %s", pid, strerror(code));
	if (target_yama_scope() >= 3)
		return err_set(
			err, code,
			"cannot attach to process %d: this machine forbids ptrace to "
			"everybody until it is rebooted (kernel.yama.ptrace_scope is 3); start "
			"the program with cuscope instead",
			pid);
	return err_set(err, code,
	               "no permission to attach to process %d; run as root or with CAP_SYS_PTRACE, "
	               "outside of containers",
	               pid);
}

/* Whether the task has memory: one that has ended has not, and no thread of the kernel. */
static bool has_memory(pid_t tid)
{
	unsigned long long kib;

	return process_status(tid, 0, "VmSize: %llu", &kib);
}

static int find_alive(struct inject_target *target, struct err *err)
{
	pid_t pid = target->pid, tid, tracer;

	tid = thread_number(pid, 0);
	if (!tid)
		return err_set(err, ESRCH, "no process has the pid %d", pid);
	for (size_t i = 1; i < ALIVE_TRIES && !has_memory(tid); i++)
		tid = thread_number(pid, i);
	if (!has_memory(tid))
		return err_set(err, ESRCH,
		               "process %d has no memory of its own: it has ended, or is a thread "
		               "of the kernel",
		               pid);
	target->alive = tid;
	tracer = target_tracer(pid, tid);
	return tracer ? traced_by(pid, tracer, err) : 0;
}

/* ---- its mappings ---------------------------------------------------------------------------- */

struct mappings {
	struct mapping *at; /* paths are copies */
	size_t n;
};

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct mappings *mappings = data;

	if (mappings->n == MAPPINGS_MAX)
		return 0;
	mappings->at = vec_room(mappings->at, mappings->n, sizeof(*mappings->at));
	mappings->at[mappings->n] = *mapping;
	mappings->at[mappings->n++].path = xstrdup(mapping->path);
	return 0;
}

static void free_mappings(struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->n; i++)
		free((char *)mappings->at[i].path);
	free(mappings->at);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- functions of a library ------------------------------------------------------------------ */

/* The offset in the file of a function that the library exports; 0 if it does not. */
static uint64_t exported(const struct elf_image *image, const char *name)
{
	struct elf_symbols symbols;
	Elf64_Sym found;

	return !elf_symbols_dynamic(image, &symbols) &&
	                       elf_symbols_find(image, &symbols, name, false, &found) == 1
	               ? elf_image_offset(image, found.st_value, 1, true)
	               : 0;
}

/* Its address in the process, by the mapping of its code. */
static uint64_t function_at(const struct elf_image *image, const struct mapping *mapping,
                            const char *name)
{
	uint64_t offset = exported(image, name);

	if (!offset || offset < mapping->offset ||
	    offset - mapping->offset >= mapping->end - mapping->start)
		return 0;
	return mapping->start + (offset - mapping->offset);
}

/* ---- the loader ------------------------------------------------------------------------------ */

/* Where dlopen lives: in libc since glibc 2.34; a library of its own before; the last is glibc's
 * own way in, for programs that never linked that library. */
static const struct {
	const char *dlopen, *dlsym;
	uint64_t mode;
} loaders[] = {
	{ "dlopen", "dlsym", RTLD_NOW | RTLD_LOCAL },
	{ "__libc_dlopen_mode", "__libc_dlsym", RTLD_NOW | 0x80000000 },
};

static void find_in_library(struct inject_target *target, const struct elf_image *image,
                            const struct mapping *mapping, size_t way)
{
	uint64_t open_at = function_at(image, mapping, loaders[way].dlopen);
	uint64_t sym_at = function_at(image, mapping, loaders[way].dlsym);

	if (!target->errno_location)
		target->errno_location = function_at(image, mapping, "__errno_location");
	if (!target->dlopen && open_at && sym_at) {
		target->dlopen = open_at;
		target->dlsym = sym_at;
		target->dlerror = function_at(image, mapping, "dlerror");
		target->mode = loaders[way].mode;
	}
}

static bool is_c_library(const struct mapping *mapping)
{
	const char *name = base_name(mapping->path);

	return mapping->inode && (begins(name, "libc.so") || begins(name, "libc-2.") ||
	                          begins(name, "libdl.so") || begins(name, "libdl-2."));
}

static int no_loader(const struct mappings *mappings, pid_t pid, struct err *err)
{
	bool loader = false;

	for (size_t i = 0; i < mappings->n; i++) {
		const char *name = base_name(mappings->at[i].path);

		if (begins(name, "ld-musl-") || begins(name, "libc.musl-"))
			return err_set(err, ENOTSUP,
			               "process %d uses the C library musl, and cuscope's library "
			               "needs glibc, as CUDA does",
			               pid);
		loader |= begins(name, "ld-");
	}
	if (!loader)
		return err_set(
			err, ENOTSUP,
			"process %d is a static program: it has no loader that could take in "
			"a library",
			pid);
	return err_set(err, ENOTSUP,
	               "process %d has no C library that cuscope knows (glibc), or is just "
	               "starting: dlopen was not found",
	               pid);
}

static int find_loader(struct inject_target *target, const struct mappings *mappings,
                       struct err *err)
{
	for (size_t way = 0; way < ARRAY_SIZE(loaders); way++) {
		for (size_t i = 0; i < mappings->n; i++) {
			const struct mapping *mapping = &mappings->at[i];
			struct elf_image image;
			int fd;

			if (!is_c_library(mapping) || (target->dlopen && target->errno_location))
				continue;
			fd = mapping_open(target->alive, mapping, err);
			if (fd < 0)
				return fd == -ENOENT || fd == -ESTALE ? -ESTALE : fd;
			if (elf_image_open(&image, fd, base_name(mapping->path), NULL) == 0) {
				find_in_library(target, &image, mapping, way);
				elf_image_close(&image);
			}
			close(fd);
		}
	}
	if (!target->dlopen || !target->errno_location)
		return no_loader(mappings, target->pid, err);
	return 0;
}

/* ---- the library, from an earlier time ------------------------------------------------------- */

#define BREAKPOINT 0xcc

/* Where recordings put a probe into it, this one's among them (bpf/wire.h); 0: not known. */
static uint64_t probed_function(const struct elf_image *image)
{
	struct elf_symbols symbols;
	Elf64_Sym found;

	return !elf_symbols_dynamic(image, &symbols) &&
	                       elf_symbols_find(image, &symbols, WIRE_WALK_FUNCTION, false,
	                                        &found) == 1
	               ? found.st_value
	               : 0;
}

/*
 * Whether what is mapped at `base` is this library: all of its segments that nobody writes to, with
 * code, constants and build id. Read from memory, which takes no more rights than the rest does.
 */
static bool is_library(const struct inject_target *target, const struct elf_image *image,
                       const struct inject_options *options, uint64_t base)
{
	const uint64_t probed = probed_function(image);
	const uint8_t *bytes = options->library;
	uint8_t part[16384];

	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
			continue;
		if (segment->p_offset > options->bytes ||
		    segment->p_filesz > options->bytes - segment->p_offset)
			return false;
		for (uint64_t at = 0; at < segment->p_filesz;) {
			uint64_t left = segment->p_filesz - at;
			size_t step = left < sizeof(part) ? (size_t)left : sizeof(part);
			uint64_t from = segment->p_vaddr + at;

			if (!target_read(target, base + from, part, step))
				return false;
			if (probed >= from && probed - from < step &&
			    part[probed - from] == BREAKPOINT)
				part[probed - from] = bytes[segment->p_offset + at + probed - from];
			if (memcmp(part, bytes + segment->p_offset + at, step) != 0)
				return false;
			at += step;
		}
	}
	return true;
}

/* The function in an earlier copy, of which `mapping` may be the code; 0 if it is not. */
static uint64_t find_in_copy(const struct inject_target *target, const struct elf_image *image,
                             const struct inject_options *options, const struct mapping *mapping)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t base =
			mapping->start - mapping->offset - segment->p_vaddr + segment->p_offset;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    mapping->offset <= segment->p_offset &&
		    segment->p_offset - mapping->offset < mapping->end - mapping->start)
			return is_library(target, image, options, base)
			               ? function_at(image, mapping, options->function)
			               : 0;
	}
	return 0;
}

static void find_loaded(struct inject_target *target, const struct mappings *mappings,
                        const struct inject_options *options)
{
	AT_END(at_end_close) int fd = memfd_create(options->name, MFD_CLOEXEC);
	AT_END(at_end_free) char *path = xasprintf("/memfd:%s", options->name);
	struct elf_image image;

	if (fd >= 0 && write(fd, options->library, options->bytes) == (ssize_t)options->bytes &&
	    elf_image_open(&image, fd, options->name, NULL) == 0) {
		for (size_t i = 0; i < mappings->n && !target->loaded; i++)
			if (mappings->at[i].inode && strcmp(mappings->at[i].path, path) == 0)
				target->loaded =
					find_in_copy(target, &image, options, &mappings->at[i]);
		elf_image_close(&image);
	}
}

/* ---- a place for the code -------------------------------------------------------------------- */

/*
 * The end of an executable mapping that the linker or the kernel filled up with zeroes: "00 00" is
 * an instruction that nobody means. The place depends on the mapping alone, so that the next one
 * finds what this one left.
 */
static bool look_for_place(struct inject_target *target, const struct mapping *mapping)
{
	const size_t bytes = (size_t)(inject_code_end - inject_code), around = 32;
	uint64_t at = (mapping->end - bytes) & ~63ull;
	uint8_t there[2048];

	if (mapping->writable || bytes + around + 64 > sizeof(there) ||
	    at < mapping->start + around ||
	    !target_read(target, at - around, there, mapping->end - at + around))
		return false;
	for (size_t i = 0; i < mapping->end - at + around; i++) {
		size_t in = i - around;

		if (there[i] && (i < around || in >= bytes || there[i] != inject_code[in]))
			return false;
	}
	target->code = at;
	target->code_is_there = memcmp(there + around, inject_code, bytes) == 0;
	return true;
}

static int find_place(struct inject_target *target, const struct mappings *mappings,
                      struct err *err)
{
	for (size_t i = 0; i < mappings->n; i++)
		if (strcmp(mappings->at[i].path, "[vdso]") == 0 &&
		    look_for_place(target, &mappings->at[i]))
			return 0;
	for (size_t i = 0; i < mappings->n; i++)
		if (mappings->at[i].inode && mappings->at[i].private &&
		    look_for_place(target, &mappings->at[i]))
			return 0;
	return err_set(err, ENOSPC,
	               "process %d has no page of code with %zu unused bytes at its end, which "
	               "attaching needs; start the program with cuscope instead",
	               target->pid, (size_t)(inject_code_end - inject_code));
}

/* ---- all of it ------------------------------------------------------------------------------- */

/*
 * ThreadSanitizer follows each thread through what it calls. One that is borrowed for dlopen in the
 * middle of anything ended the program by a segmentation fault in half of all tries.
 */
static int under_tsan(pid_t pid, struct err *err)
{
	return err_set(err, ENOTSUP,
	               "process %d is built with ThreadSanitizer, which a thread that is borrowed "
	               "ends; start the program with cuscope instead",
	               pid);
}

static bool has_tsan(const struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->n; i++)
		if (mappings->at[i].inode && begins(base_name(mappings->at[i].path), "libtsan."))
			return true;
	return false;
}

static int check_program(const struct inject_target *target, struct err *err)
{
	pid_t pid = target->pid;
	struct elf_image image;
	char path[64], what[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/exe", target->alive);
	snprintf(what, sizeof(what), "the program of process %d", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return target_refused(pid, target->alive, errno == ENOENT ? ESRCH : errno, err);
	rc = elf_image_open(&image, fd, what, err);
	if (!rc && exported(&image, "__tsan_init"))
		rc = under_tsan(pid, err);
	if (image.fd >= 0)
		elf_image_close(&image);
	close(fd);
	return rc;
}

int target_look(const struct inject_options *options, struct inject_target *target, struct err *err)
{
	struct mappings mappings = { 0 };
	char path[64];
	int rc;

	*target = (struct inject_target){ .pid = options->pid,
		                          .start_time = options->start_time,
		                          .memory = -1,
		                          .looked_ns = clock_now_ns() };
	rc = find_alive(target, err);
	if (!rc)
		rc = check_program(target, err);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/mem", target->alive);
	target->memory = open(path, O_RDWR | O_CLOEXEC);
	if (target->memory < 0)
		return target_refused(target->pid, target->alive, errno, err);
	rc = maps_each_code(target->alive, note_mapping, &mappings, err);
	target->stacks = thread_stacks_new(mappings.at, mappings.n);
	if (!rc && has_tsan(&mappings))
		rc = under_tsan(target->pid, err);
	if (!rc)
		rc = find_loader(target, &mappings, err);
	if (!rc) {
		find_loaded(target, &mappings, options);
		rc = find_place(target, &mappings, err);
	}
	free_mappings(&mappings);
	if (rc)
		target_close(target);
	return rc;
}

void target_close(struct inject_target *target)
{
	if (target->memory >= 0)
		close(target->memory);
	target->memory = -1;
	thread_stacks_free(target->stacks);
	target->stacks = NULL;
}
