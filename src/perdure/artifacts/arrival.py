"""A whole history on its way into an empty place: in the end all of it is there, or nothing.

    arriving-00000002   a segment that is being written; nobody else looks at it
    arriving-mark       what the mark will be
    arrived             the first segment; where it is, all the others are whole and durable

Segments get their own names only when all are here, the first one last: without it there is no
history. Whoever finds one that has arrived brings this to its end.
"""

from perdure.artifacts.disk import Disk, File
from perdure.artifacts.mark import MARK, Mark, MarkFile
from perdure.artifacts.segment import segment_name

_ARRIVED = "arrived"
_ARRIVING = "arriving-"
_ARRIVING_MARK = "arriving-mark"


def open_arriving(disk: Disk, number: int) -> File:
    """Return a file for a segment; it is nothing to anybody until `arrive`."""
    return disk.open(f"{_ARRIVING}{number:08d}", create=True)


def clear(disk: Disk) -> None:
    """Remove what never arrived. Only while the lock is held."""
    left = [name for name in disk.names() if name.startswith(_ARRIVING)]
    for name in left:
        disk.remove(name)
    if left:
        disk.sync()


def arrive(disk: Disk, mark: Mark) -> None:
    """Make a history of the segments, all of which are synced. Only while the lock is held."""
    file = disk.open(_ARRIVING_MARK, create=True)
    MarkFile(file).write(mark)
    file.sync()
    disk.sync()
    disk.rename(f"{_ARRIVING}{1:08d}", _ARRIVED)
    disk.sync()
    finish(disk)


def has_arrived(disk: Disk) -> bool:
    return _ARRIVED in disk.names()


def finish(disk: Disk) -> None:
    """Give the segments of a history that has arrived their names, if there is one.

    Only while the lock is held. It may be cut short and done again.
    """
    names = disk.names()
    if _ARRIVED not in names:
        return
    for name in names:
        if name.startswith(_ARRIVING) and name != _ARRIVING_MARK:
            disk.rename(name, segment_name(int(name.removeprefix(_ARRIVING))))
    _acknowledge(disk)
    disk.sync()
    disk.rename(_ARRIVED, segment_name(1))
    disk.sync()
    disk.remove(_ARRIVING_MARK)


def _acknowledge(disk: Disk) -> None:
    """Say that all of it is durable, so that nobody has to make sure of it.

    Into the mark that there is, which others have open, and synced for once: there is no commit
    yet that it could be behind.
    """
    source = disk.open(_ARRIVING_MARK)
    file = disk.open(MARK, create=True)
    file.write(0, [source.read(0, source.size())])
    file.sync()
