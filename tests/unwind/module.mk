# SPDX-License-Identifier: MIT
# make test-unwind     the rows that stacks are walked by, against libdw, on files of this system and our own
# make frame-by-frame  whole stacks, of a program built in many ways, against its own unwinder and gdb; as root, some minutes

$(B)/tests/unwind/against_libdw: $(B)/tests/unwind/against_libdw.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldw $(LIBS)

test-unwind: $(B)/tests/unwind/against_libdw programs
	tests/unwind/run $(B)

frame-by-frame: all programs simcuda
	tests/unwind/frame_by_frame $(B)

.PHONY: test-unwind frame-by-frame
