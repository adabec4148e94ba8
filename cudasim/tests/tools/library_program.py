#!/usr/bin/env python3
"""A program on the driver API, as a user has one: library_program.py LIBRARY KERNEL.ptx ENTRY.  Runs ENTRY(out, in) on
a CTA of 64 threads; exit status 0 if out[i] = in[63 - i] for all i, 1 if not, 2 if a call fails."""
import ctypes
import struct
import sys


def main():
    library = ctypes.CDLL(sys.argv[1])

    def call(name, *arguments):
        status = getattr(library, name)(*arguments)
        if status != 0:
            print("%s: %d" % (name, status))
            sys.exit(2)

    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    out, values = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    text = open(sys.argv[2], "rb").read() + b"\0"
    call("cuModuleLoadData", ctypes.byref(module), text)
    call("cuModuleGetFunction", ctypes.byref(function), module, sys.argv[3].encode())
    numbers = struct.pack("<64I", *[7 * i + 3 for i in range(64)])
    for pointer in (out, values):
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(256))
    call("cuMemcpyHtoD_v2", values, numbers, ctypes.c_size_t(256))
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(values))
    call("cuLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, None, parameters, None)
    call("cuCtxSynchronize")
    got = ctypes.create_string_buffer(256)
    call("cuMemcpyDtoH_v2", got, out, ctypes.c_size_t(256))
    wanted = struct.pack("<64I", *[7 * (63 - i) + 3 for i in range(64)])
    return got.raw[:256] != wanted


if __name__ == "__main__":
    sys.exit(main())
