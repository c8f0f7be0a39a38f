/* SPDX-License-Identifier: MIT */
/* EACH(macro, with, a, b, c) is macro(with, a) macro(with, b) macro(with, c); 256 at most. */
#pragma once

#define EACH(macro, with, ...) EACH_4(EACH_STEP(macro, with, __VA_ARGS__))
#define EACH_4(...)            EACH_3(EACH_3(EACH_3(EACH_3(__VA_ARGS__))))
#define EACH_3(...)            EACH_2(EACH_2(EACH_2(EACH_2(__VA_ARGS__))))
#define EACH_2(...)            EACH_1(EACH_1(EACH_1(EACH_1(__VA_ARGS__))))
#define EACH_1(...)            __VA_ARGS__
#define EACH_AGAIN()           EACH_STEP
#define EACH_PARENS            ()
#define EACH_STEP(macro, with, a, ...)                                                             \
	macro(with, a) __VA_OPT__(EACH_AGAIN EACH_PARENS(macro, with, __VA_ARGS__))
