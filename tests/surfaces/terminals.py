"""Runs the command line as a program of its own, for a user called Ana: in pipes, at a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

PERDURE = str(Path(sys.executable).with_name("perdure"))


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "USER": "ana", "PATH": os.environ["PATH"], **more}


def perdure(
    home: Path, *words: str | bytes, typed: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PERDURE, *words],
        env=environment(home, **environ),
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def at_a_terminal(home: Path, *words: str, typed: str = "", **environ: str) -> tuple[int, str]:
    """Run it with a terminal of 80 columns for everything; return the code and what was seen."""
    ours, theirs = pty.openpty()
    environ = environment(home, TERM="xterm", COLUMNS="80", **environ)
    command = [PERDURE, *words]
    with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = b""
        try:
            while data := os.read(ours, 4096):
                seen += data
        except OSError:  # the other end was closed
            pass
        os.close(ours)
    return run.returncode, seen.decode().replace("\r\n", "\n")
