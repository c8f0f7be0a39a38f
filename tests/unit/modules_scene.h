/* SPDX-License-Identifier: MIT */
/*
 * For tests of modules: this process is the target, and maps the libraries that it builds. What is
 * attached is not: this stands in for src/probe/attach.c and programs.c.
 */
#ifndef CUSCOPE_TESTS_MODULES_SCENE_H
#define CUSCOPE_TESTS_MODULES_SCENE_H

#include "elf_build.h"
#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>

#include "probe/fold.h"
#include "probe/modules_inside.h"
#include "probe/hook_numbers.h"

/* ---- stand-ins ----------------------------------------------------------------------------- */

struct attachment {
	size_t count;
};

static size_t attached; /* hooks, at this moment */
static size_t known_files;
static struct wire_file last_known;
static uint64_t last_flags;
static bool refuse_all;
static struct wire_state state_of_hooks;

int programs_map(const struct programs *programs, const char *name)
{
	return -1;
}

int attach_own(struct programs *programs, int fd, struct attach_point *points, size_t count,
               bool returns, struct attachment **attachment, struct err *err)
{
	fail_msg("no test here has hooks of its own");
	return -1;
}

int attach(struct programs *programs, int fd, struct attach_point *points, size_t count,
           bool returns, bool until_end, struct attachment **attachment, struct err *err)
{
	if (refuse_all) {
		for (size_t i = 0; i < count; i++)
			points[i].error = -EINVAL;
		return err_set(err, EINVAL, "hooking: refused");
	}
	*attachment = malloc(sizeof(**attachment));
	(*attachment)->count = count;
	attached += count;
	return 0;
}

uint64_t attachment_took_ns(const struct attachment *attachment)
{
	return 0;
}

void attachment_free(struct attachment *attachment)
{
	attached -= attachment ? attachment->count : 0;
	free(attachment);
}

void attachment_free_later(struct attachment *attachment)
{
	attachment_free(attachment);
}

void attachment_drop_returns(struct attachment *attachment)
{
}

struct wire_state *programs_state(struct programs *programs)
{
	return &state_of_hooks;
}

int fold_hook(struct programs *programs, uint16_t hook, const struct api *api, bool per_thread)
{
	return 0;
}

static bool uses_cuda; /* each process */

bool programs_thread_known(const struct programs *programs, pid_t tid)
{
	return uses_cuda;
}

void programs_file_known(struct programs *programs, const struct wire_file *file, uint64_t flags)
{
	known_files++;
	last_known = *file;
	last_flags = flags;
}

static size_t forgotten_files;

void programs_file_unknown(struct programs *programs, const struct wire_file *file)
{
	forgotten_files++;
}

/* ---- libraries, and this process that maps them -------------------------------------------- */

#define MAPPED_MAX 8

static struct {
	void *at;
	size_t len;
} mapped[MAPPED_MAX];
static size_t n_mapped;

/* As the loader maps the code of a library. */
static void map_library(const char *name)
{
	int fd = open(in_dir(name), O_RDONLY);
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0 && n_mapped < MAPPED_MAX);
	mapped[n_mapped].len = (size_t)st.st_size;
	mapped[n_mapped].at =
		mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(mapped[n_mapped++].at != MAP_FAILED);
	close(fd);
}

static void build_library(const char *name, const char *text, const char *flags)
{
	close(build(text, flags));
	run("mv a.out %s", name);
}

/* More functions than half of those that can have hooks. */
static void build_large_library(void)
{
	run("{ echo '.text'; for name in cuInit cuLaunchKernel $(seq -f 'cuF%%.0f' 8200); do"
	    " printf '.globl %%s\\n.type %%s,@function\\n%%s: ret\\n.size %%s,1\\n'"
	    " $name $name $name $name; done; } >large.s");
	run("gcc -shared -nostdlib -o large.so large.s");
}

static int build_all(void **state)
{
	int fd;

	if (make_dir(state))
		return -1;
	build_library("driver.so", driver, LIBRARY);
	build_library("runtime.so", runtime, LIBRARY);
	build_library("other.so", "int f(void) { return 0; }", LIBRARY);
	run("cp driver.so copy.so && head -c 600 driver.so >cut.so && echo text >text.so");
	/* cudart linked in, in a library with a huge .symtab */
	fd = build(runtime, LIBRARY " -fvisibility=hidden");
	enlarge_strings(fd);
	close(fd);
	run("mv a.out huge.so");
	build_large_library();
	run("cp huge.so huge-copy.so");
	return 0;
}

/* ---- what is tested ------------------------------------------------------------------------ */

static struct modules *modules;
static struct selection selection;
static bool lets_go;

static int make(void **state)
{
	const struct modules_options options = { .selection = &selection,
		                                 .returns = true,
		                                 .lets_go = lets_go };

	memset(&selection, 0, sizeof(selection));
	memset(&state_of_hooks, 0, sizeof(state_of_hooks));
	refuse_all = false;
	attached = known_files = 0;
	modules = modules_new(&options);
	return 0;
}

static int destroy(void **state)
{
	modules_free(modules);
	while (n_mapped) {
		n_mapped--;
		munmap(mapped[n_mapped].at, mapped[n_mapped].len);
	}
	return attached != 0;
}

static struct look_result look(enum look how)
{
	struct look_result result;
	struct err err = { 0 };

	assert_int_equal(modules_look(modules, getpid(), how, 0, &result, &err), 0);
	return result;
}

#endif
