# SPDX-License-Identifier: MIT
# libiberty for Rust's names only: src/stack/function_name.c
LIBS += -liberty
