"""Disks for tests of the artifact store, and what a power cut can leave on them."""

from perdure.testing.artifacts.memory_disk import MemoryDisk
from perdure.testing.artifacts.recording import Recording, RecordingDisk
from perdure.testing.artifacts.states import CrashState, crash_states

__all__ = ["CrashState", "MemoryDisk", "Recording", "RecordingDisk", "crash_states"]
