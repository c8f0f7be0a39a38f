# SPDX-License-Identifier: MIT
# The files of hooks are in the program, by .incbin.

$(B)/src/hooks/hook_list.o: $(wildcard src/hooks/files/*)
