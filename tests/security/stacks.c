// SPDX-License-Identifier: MIT
/*
 * Programs whose stacks are made to mislead who walks them. Each prints "ready" and goes on until
 * standard input ends.
 *
 *   stacks python      says that it is Python 3.12, and rewrites its frames all the time: cycles,
 *                      addresses of nothing, thousands of code objects, names full of controls
 *   stacks mappings    maps 3,000 executable pieces
 *   stacks vdso        has damaged the kernel's own library in its memory
 *   stacks churn       maps and unmaps code all the time
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), used))
#define CODES  200000
#define FRAMES 64
#define PAGE   4096u

static volatile int over;

static void *watch_input(void *data)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = 1;
	return data;
}

static void begin(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, watch_input, NULL);
	puts("ready");
	fflush(stdout);
}

/* ---- a Python that is none ------------------------------------------------------------------- */

/* Where 3.12 has them: see python_code.c. */
enum {
	KEY_AT = 1548,
	STATE_CFRAME = 56,
	FRAME_CODE = 0,
	FRAME_PREVIOUS = 8,
	FRAME_INSTRUCTION = 56,
	FRAME_OWNER = 70,
	CODE_FIRST_LINE = 68,
	CODE_FILE = 112,
	CODE_NAME = 128,
	CODE_LINES = 136,
	CODE_BYTES = 256,
	STRING_LENGTH = 16,
	STRING_STATE = 32,
	STRING_TEXT = 40,
};

EXPORT char _PyRuntime[4096];
EXPORT const uint32_t Py_Version = 0x030c01f0;

static char state[128], frames[FRAMES][128], strings[4][512], *codes;
static void *cframe[2];

static void put(void *object, size_t offset, uint64_t value)
{
	memcpy((char *)object + offset, &value, sizeof(value));
}

static void make_strings(void)
{
	static const char *const texts[] = {
		"\x1b[31mred\x07</script><script>alert(1)</script>;x\n<b>&\"'",
		"/tmp/\x1b]0;title\x07</style>.py", "f", "\xff\xfe\x80"
	};

	for (int i = 0; i < 4; i++) {
		put(strings[i], 0, 1); /* reference: it lives */
		put(strings[i], STRING_LENGTH, i == 3 ? UINT64_MAX : strlen(texts[i]));
		put(strings[i], STRING_STATE, 1u << 2 | 1u << 5 | 1u << 6);
		strcpy(strings[i] + STRING_TEXT, texts[i]);
	}
}

static void make_runtime(void)
{
	static uint32_t key[2] = { 1, 0 };
	pthread_key_t made;

	pthread_key_create(&made, NULL);
	pthread_setspecific(made, state);
	key[1] = made;
	memcpy(_PyRuntime + KEY_AT - 4, key, sizeof(key));
	put(state, STATE_CFRAME, (uintptr_t)cframe);
	codes = mmap(NULL, (size_t)CODES * CODE_BYTES, PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	make_strings();
}

static void make_frame(unsigned i, uint64_t turn)
{
	char *code = codes + turn * 2654435761u % CODES * CODE_BYTES;

	put(code, 0, 1);
	put(code, CODE_FILE, (uintptr_t)strings[1]);
	put(code, CODE_NAME, (uintptr_t)strings[turn % 7 ? 0 : turn % 4]);
	put(code, CODE_LINES, turn % 5 ? (uintptr_t)strings[0] : turn << 40);
	put(code, CODE_FIRST_LINE, turn);
	put(frames[i], FRAME_CODE, turn % 11 ? (uintptr_t)code : turn << 33);
	put(frames[i], FRAME_INSTRUCTION, (uintptr_t)code + turn % 1000);
	put(frames[i], FRAME_PREVIOUS, (uintptr_t)frames[(i + 1) % FRAMES]);
	frames[i][FRAME_OWNER] = turn % 13 ? 0 : 3;
}

/* Every so often the chain is a ring, or leads to where nothing is. */
__attribute__((noipa)) static void be_python(void)
{
	uint64_t turn = 0;

	make_runtime();
	begin();
	for (unsigned i = 0; i < FRAMES; i++)
		make_frame(i, i);
	while (!over) {
		make_frame(turn % FRAMES, turn + FRAMES);
		cframe[0] = turn % 3 ? frames[turn % FRAMES] : (void *)(turn << 30);
		cframe[1] = turn % 2 ? (void *)cframe : (void *)(turn << 20);
		if (turn % 4)
			put(frames[turn % FRAMES], FRAME_PREVIOUS, turn % 8 ? 0 : turn << 36);
		turn++;
		for (volatile int i = 0; i < 150000; i++)
			;
	}
}

/* ---- mappings -------------------------------------------------------------------------------- */

__attribute__((noipa)) static void spin(void)
{
	while (!over)
		for (volatile int i = 0; i < 100000; i++)
			;
}

static void be_many_mappings(void)
{
	for (int i = 0; i < 3000; i++) {
		char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		                -1, 0);

		if (at != MAP_FAILED)
			mprotect(at, PAGE, PROT_NONE);
	}
	begin();
	spin();
}

static void be_churn(void)
{
	begin();
	while (!over) {
		void *at[64];

		for (int i = 0; i < 64; i++) {
			at[i] = mmap(NULL, (i % 3 + 1) * PAGE, PROT_READ | PROT_EXEC,
			             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (volatile int k = 0; k < 20000; k++)
				;
		}
		for (int i = 0; i < 64; i++)
			munmap(at[i], (i % 3 + 1) * PAGE);
	}
}

static void be_damaged_vdso(void)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);

	if (vdso && !mprotect(vdso, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		memset(vdso, 0, 64); /* no ELF file any more */
	begin();
	spin();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "python"))
		be_python();
	else if (!strcmp(what, "mappings"))
		be_many_mappings();
	else if (!strcmp(what, "churn"))
		be_churn();
	else if (!strcmp(what, "vdso"))
		be_damaged_vdso();
	else
		return 2;
	return 0;
}
