"""Disks for tests of the artifact store, and what a power cut can leave on them."""

from holdfast.testing.artifacts.memory_disk import MemoryDisk
from holdfast.testing.artifacts.recording import Recording, RecordingDisk
from holdfast.testing.artifacts.states import CrashState, crash_states

__all__ = ["CrashState", "MemoryDisk", "Recording", "RecordingDisk", "crash_states"]
