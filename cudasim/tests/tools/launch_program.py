"""Launches a kernel once through the driver API, and prints the call's code.

usage: launch_program.py LIBRARY PTX KERNEL cluster|cooperative CLUSTER GRID"""
import ctypes
import sys

ID = {"cluster": 4, "cooperative": 2}                   # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, _COOPERATIVE


class Config(ctypes.Structure):
    _fields_ = [("extents", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p),
                ("count", ctypes.c_uint)]


def main():
    cuda = ctypes.CDLL(sys.argv[1])
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    what, cluster, grid = sys.argv[4], int(sys.argv[5]), int(sys.argv[6])
    for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
                 cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[2], "rb").read() + b"\0"),
                 cuda.cuModuleGetFunction(ctypes.byref(function), module, sys.argv[3].encode())):
        assert code == 0, code
    attribute = (ctypes.c_uint * 18)(ID[what], 0, cluster, 1, 1)
    config = Config(extents=(grid, 1, 1, 64, 1, 1, 0), attributes=ctypes.addressof(attribute), count=1)
    value = ctypes.c_uint64(0)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(value), ctypes.addressof(value))
    print(cuda.cuLaunchKernelEx(ctypes.byref(config), function, values, None))


if __name__ == "__main__":
    main()
