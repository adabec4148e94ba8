"""One way to run a command to its end: with a deadline, and knowing what it cost."""
import contextlib
import os
import signal
import subprocess
import tempfile
import threading


def run(command, seconds, **options):
    """Exit status (None: deadline missed; it and all that it started are killed), standard output, standard error, and the seconds
    of processor time that it used with all that it waited for."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **options)
        late = threading.Event()

        def end():
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(seconds, end)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = [file.seek(0) or file.read().decode(errors="replace") for file in (out, err)]
    return (None if late.is_set() else process.returncode), *texts, used.ru_utime + used.ru_stime
