"""What is in a fatbin, packed or not."""
import subprocess


def ptx_of(cudasim, path):
    """The text that is loaded, line numbers and all, by the command `cudasim`."""
    return subprocess.run([cudasim, "unpack", path], stdout=subprocess.PIPE, check=True).stdout


def cubin_of(cudasim, path):
    return subprocess.run([cudasim, "unpack", path, "--cubin"], stdout=subprocess.PIPE, check=True).stdout
