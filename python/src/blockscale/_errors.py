"""Exceptions: the library's status codes as classes, its sentences as their text."""
from __future__ import annotations

from typing import NoReturn

from ._library import lib, text


class Error(Exception):
    """Any failure of blockscale.  The text names the argument, its value and the rule that it breaks."""


class InvalidError(Error, ValueError):
    """An argument breaks a rule that the documentation states."""


class UnsupportedError(Error, NotImplementedError):
    """A legal request that no kernel of this device serves."""


class DeviceError(Error, RuntimeError):
    """A GPU or its driver failed, or there is none."""


class FileError(Error, OSError):
    """A file could not be opened, read or written, or what it holds is malformed."""


class MemoryError_(Error, MemoryError):
    """There is not enough memory."""


_CLASSES: dict[int, type[Error]] = {
    lib.BSM_EINVAL: InvalidError, lib.BSM_EALIGN: InvalidError, lib.BSM_EOVERFLOW: InvalidError,
    lib.BSM_EUNSUPPORTED: UnsupportedError, lib.BSM_ENOMEM: MemoryError_, lib.BSM_EDEVICE: DeviceError,
    lib.BSM_EIO: FileError, lib.BSM_EFILE: FileError,
}


def fail(status: int) -> NoReturn:
    """Raises what the last call of this thread failed with."""
    raise _CLASSES.get(status, Error)(text(lib.bsm_last_error()) or text(lib.bsm_strerror(status)))


def check(status: int) -> None:
    """Raises unless status is BSM_OK."""
    if status != 0:
        fail(status)


def number_of(table: dict[str, int], name: object, argument: str) -> int:
    """The number of a name; InvalidError lists the names there are."""
    number = table.get(name) if isinstance(name, str) else None
    if number is None:
        raise InvalidError(f"{argument}={name!r} is not known: use one of {', '.join(table)}")
    return number
