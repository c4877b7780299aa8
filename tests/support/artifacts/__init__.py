"""Disks for tests of the artifact store, and what a power cut can leave on them."""

from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import Recording, RecordingDisk
from tests.support.artifacts.states import CrashState, crash_states

__all__ = ["CrashState", "MemoryDisk", "Recording", "RecordingDisk", "crash_states"]
