// SPDX-License-Identifier: MIT
/*
 * nvcc makes, for a kernel `vectorAdd` whose mangled name is _Z9vectorAddPfi, a host function
 * `vectorAdd` with that same name, and below it a stub named __device_stub_ + the mangled name,
 * itself mangled as a C++ function: _Z29__device_stub__Z9vectorAddPfiPfi, with an L after _Z where
 * it is static. A template has a wrapper more: _Z27__wrapper__device_stub_tmplIfEvRPT_Ri.
 */
#include "cuda/kernel_name.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define STUB    KERNEL_NAME_STUB
#define WRAPPER "__wrapper__device_stub_"

/* The C++ runtime's; the ABI (itanium-cxx-abi, 3.4) declares it in a header for C++ alone. */
extern char *__cxa_demangle(const char *mangled, char *output, size_t *length, int *status);

/*
 * The same, without malloc and in pieces: libstdc++.a has it for std::terminate, libstdc++.so does
 * not. Names come from the traced program, and back references let 236 characters stand for 36 MB,
 * and every eleven more for twice that. A callback can stop that; __cxa_demangle cannot be stopped.
 */
extern int __gcclibcxx_demangle_callback(const char *mangled,
                                         void (*add)(const char *, size_t, void *), void *opaque)
	__attribute__((weak));

static bool is_symbol_char(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '.' || c == '@';
}

bool kernel_name_plausible(const char *text)
{
	bool symbol = true, bracket = false;
	const char *at;

	if (isdigit((unsigned char)text[0]))
		return false;
	for (at = text; *at; at++) {
		if (*at < 0x20 || *at > 0x7e)
			return false;
		symbol &= is_symbol_char((unsigned char)*at);
		bracket |= *at == '(' || *at == '<';
	}
	return at > text && (symbol || (bracket && text[0] != ' '));
}

/* The identifier in `<length><identifier>...`; NULL where there is none. */
static char *source_name(const char *at, const char **end)
{
	unsigned long len;
	char *name;

	if (!isdigit((unsigned char)*at))
		return NULL;
	len = strtoul(at, &name, 10);
	if (!len || len > strlen(name))
		return NULL;
	*end = name + len;
	return xstrndup(name, len);
}

static bool is_stub(const char *name)
{
	return !strncmp(name, STUB, strlen(STUB)) && name[strlen(STUB)];
}

/* The mangled name of the kernel that a stub stands for; NULL where it is no stub. */
static char *stub_kernel(const char *symbol)
{
	const char *at = symbol, *end;
	char *name, *kernel = NULL;

	if (is_stub(symbol))
		return xstrdup(symbol + strlen(STUB));
	if (strncmp(symbol, "_Z", 2))
		return NULL;
	at += 2;
	at += *at == 'L';
	name = source_name(at, &end);
	if (name && is_stub(name))
		kernel = xstrdup(name + strlen(STUB));
	free(name);
	return kernel;
}

/*
 * "cutlass::device_kernel<...>": libstdc++ refuses names of more than 1,024 characters, for fear
 * of its own recursion (GCC PR 87675), and those of CUTLASS's kernels are twice that. The name up
 * to the template arguments needs no recursion.
 */
static char *outer_name(const char *mangled)
{
	const char *at = mangled + 2;
	struct buf out = { 0 };
	char *part;

	at += *at == 'N';
	at += *at == 'L';
	while ((part = source_name(at, &at))) {
		if (out.len)
			buf_puts(&out, "::");
		buf_puts(&out, strncmp(part, "_GLOBAL__N", 10) ? part : "(anonymous namespace)");
		free(part);
		at += *at == 'L';
	}
	if (!out.len)
		return NULL;
	buf_puts(&out, *at == 'I' ? "<...>" : "(...)");
	return out.data;
}

static bool call_gcc(const char *mangled, buf_piece_fn *add, void *opaque)
{
	return !__gcclibcxx_demangle_callback(mangled, add, opaque);
}

static char *demangle_bounded(const char *mangled)
{
	struct buf text = { 0 };

	if (buf_demangle(&text, TEXT_NAME_MAX, mangled, call_gcc) && text.len)
		return text.data;
	buf_free(&text);
	return NULL;
}

/* malloc'ed; NULL where `mangled` is not a mangled function. */
static char *demangle(const char *mangled)
{
	char *plain;
	int status;

	/* Without _Z it is taken for a type: "i" would become "int". */
	if (strncmp(mangled, "_Z", 2))
		return NULL;
	plain = __gcclibcxx_demangle_callback ? demangle_bounded(mangled)
	                                      : __cxa_demangle(mangled, NULL, NULL, &status);
	if (plain)
		text_cut_bytes(plain, TEXT_NAME_MAX);
	if (!plain && strlen(mangled) > 1024)
		plain = outer_name(mangled);
	return plain;
}

static void cut_out(char *text, const char *part)
{
	char *at = strstr(text, part);

	if (at)
		memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
}

char *kernel_name_demangle(const char *mangled)
{
	char *kernel = stub_kernel(mangled);
	char *plain = demangle(kernel ? kernel : mangled);

	if (!plain && kernel)
		plain = xstrdup(kernel);
	free(kernel);
	if (!plain)
		return xstrdup(mangled);
	cut_out(plain, WRAPPER);
	return plain;
}

/* ---- the base name ------------------------------------------------------------------------- */

/* Length of what looks like a bracket and is a part of a name: "operator()", "operator<<". */
static size_t operator_length(const char *at)
{
	static const char word[] = "operator";
	size_t len = sizeof(word) - 1;

	if (strncmp(at, word, len))
		return 0;
	if (!strncmp(at + len, "()", 2))
		return len + 2;
	while (at[len] && strchr("<>=-!", at[len]))
		len++;
	return at[len] == '(' || at[len] == '<' ? len : 0;
}

/*
 * What follows the bracket that closes the one at `at`. A template argument can be an expression,
 * "((4)>(2))", so < and > count only where they pair up within the other brackets.
 */
static const char *skip_brackets(const char *at)
{
	char open[128];
	size_t depth = 0;

	for (; *at && depth < sizeof(open); at++) {
		if (strchr("<({[", *at))
			open[depth++] = *at;
		else if (*at == '>' && open[depth - 1] == '<' && at[-1] != '-')
			depth--;
		else if (strchr(")}]", *at)) {
			while (depth && open[depth - 1] == '<')
				depth--;
			depth -= depth > 0;
		}
		if (!depth)
			return at + 1;
	}
	return at + strlen(at);
}

/* Scopes have brackets too, so a bracket ends the name only where no "::" follows it. */
const char *kernel_name_base(const char *name, size_t *len)
{
	const char *first = name, *end = NULL, *at = name;

	while (*at) {
		size_t operator_len = operator_length(at);

		if (operator_len) {
			at += operator_len;
		} else if (!strncmp(at, "::", 2)) {
			first = at += 2;
			end = NULL;
		} else if (*at == ' ' && at[1] != '[') {
			first = ++at; /* that was the type it returns */
			end = NULL;
		} else if (*at == '<' || *at == '(' || *at == '{') {
			if (!end && at > first)
				end = at;
			at = skip_brackets(at);
			if (end && at[-1] == ')' && strncmp(at, "::", 2))
				break; /* the parameters; what follows is "const" or "[clone]" */
		} else {
			at++;
		}
	}
	*len = (size_t)((end ? end : at) - first);
	if (strchr("<({", *first)) /* broken: nothing but brackets */
		*len = 0;
	if (!*len)
		*len = strlen(first = name);
	return first;
}

/* "operator bool", "operator new": a blank that is a part of the name. */
static bool is_operator(const struct buf *out)
{
	static const char word[] = "operator";
	size_t len = sizeof(word) - 1;

	return out->len >= len && !memcmp(out->data + out->len - len, word, len);
}

/* Of a bracket: one that is a scope stays, "(anonymous namespace)::f". What follows it. */
static const char *add_bracket(struct buf *out, const char *at)
{
	const char *behind = skip_brackets(at);

	if (*at != '<' && !strncmp(behind, "::", 2))
		buf_add(out, at, (size_t)(behind - at));
	else if (*at == '(' && out->len && !strchr(behind, '('))
		return behind + strlen(behind); /* the parameters, and "const" */
	return behind;
}

char *kernel_name_qualified(const char *name)
{
	struct buf out = { 0 };

	buf_puts(&out, "");
	for (const char *at = name; *at;) {
		size_t operator_len = operator_length(at);

		if (operator_len) {
			buf_add(&out, at, operator_len);
			at += operator_len;
		} else if (strchr("<({", *at)) {
			at = add_bracket(&out, at);
		} else if (*at == ' ' && !is_operator(&out)) {
			buf_reset(&out); /* that was the type it returns */
			at++;
		} else {
			buf_putc(&out, *at++);
		}
	}
	return out.data;
}

/* Takes one suffix off: _ptsz, _ptds, _v2 ... */
static bool strip_variant(char *name)
{
	char *tail = strrchr(name, '_');

	if (!tail || tail == name)
		return false;
	if (strcmp(tail, "_ptsz") && strcmp(tail, "_ptds") &&
	    !(tail[1] == 'v' && isdigit((unsigned char)tail[2])))
		return false;
	*tail = '\0';
	return true;
}

bool name_match_function(const char *glob, const char *name)
{
	char base[128];

	if (fnmatch(glob, name, 0) == 0)
		return true;
	snprintf(base, sizeof(base), "%s", name);
	while (strip_variant(base)) {
		if (fnmatch(glob, base, 0) == 0)
			return true;
	}
	return false;
}

bool name_match_kernel(const char *glob, const char *name, const char *mangled)
{
	const char *begin;
	char *base;
	size_t len;
	bool is;

	if (fnmatch(glob, name, 0) == 0 || (mangled && fnmatch(glob, mangled, 0) == 0))
		return true;
	begin = kernel_name_base(name, &len);
	base = xstrndup(begin, len);
	is = fnmatch(glob, base, 0) == 0;
	free(base);
	return is;
}
