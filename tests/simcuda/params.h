/* SPDX-License-Identifier: MIT */
/*
 * Parameters as pairs of type and name, (CUstream, stream, void **, data), so that a macro that
 * defines a function can also make a struct of its arguments: what a profiler is shown.
 */
#ifndef SIMCUDA_PARAMS_H
#define SIMCUDA_PARAMS_H

/* clang-format off */
/* The number of pairs, up to 11. */
#define PARAMS_COUNT(...) PARAMS_PICK(__VA_ARGS__ __VA_OPT__(,) \
	11, x, 10, x, 9, x, 8, x, 7, x, 6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0)
#define PARAMS_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, count, ...) count

#define PARAMS_JOIN(a, b)  PARAMS_JOIN_(a, b)
#define PARAMS_JOIN_(a, b) a##b

/* X(type, name) for each pair, `between` them. */
#define PARAMS_EACH(X, between, ...) \
	PARAMS_JOIN(PARAMS_EACH_, PARAMS_COUNT(__VA_ARGS__))(X, between __VA_OPT__(,) __VA_ARGS__)
#define PARAMS_EACH_0(X, s)
#define PARAMS_EACH_1(X, s, t, n)       X(t, n)
#define PARAMS_EACH_2(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_1(X, s, __VA_ARGS__)
#define PARAMS_EACH_3(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_2(X, s, __VA_ARGS__)
#define PARAMS_EACH_4(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_3(X, s, __VA_ARGS__)
#define PARAMS_EACH_5(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_4(X, s, __VA_ARGS__)
#define PARAMS_EACH_6(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_5(X, s, __VA_ARGS__)
#define PARAMS_EACH_7(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_6(X, s, __VA_ARGS__)
#define PARAMS_EACH_8(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_7(X, s, __VA_ARGS__)
#define PARAMS_EACH_9(X, s, t, n, ...)  X(t, n) s() PARAMS_EACH_8(X, s, __VA_ARGS__)
#define PARAMS_EACH_10(X, s, t, n, ...) X(t, n) s() PARAMS_EACH_9(X, s, __VA_ARGS__)
#define PARAMS_EACH_11(X, s, t, n, ...) X(t, n) s() PARAMS_EACH_10(X, s, __VA_ARGS__)

#define PARAMS_COMMA()     ,
#define PARAMS_NOTHING()
#define PARAMS_DECL(t, n)  t n
#define PARAMS_FIELD(t, n) t n;
#define PARAMS_NAME(t, n)  n
/* clang-format on */

/* All take a list in its parentheses, without a space before it: PARAMS_PROTOTYPE params */
#define PARAMS_PROTOTYPE(...)      PARAMS_JOIN(PARAMS_PROTOTYPE_, __VA_OPT__(SOME))(__VA_ARGS__)
#define PARAMS_PROTOTYPE_(...)     void
#define PARAMS_PROTOTYPE_SOME(...) PARAMS_EACH(PARAMS_DECL, PARAMS_COMMA, __VA_ARGS__)
#define PARAMS_FIELDS(...)         PARAMS_EACH(PARAMS_FIELD, PARAMS_NOTHING, __VA_ARGS__)
#define PARAMS_NAMES(...)          PARAMS_EACH(PARAMS_NAME, PARAMS_COMMA, __VA_ARGS__)

#endif
