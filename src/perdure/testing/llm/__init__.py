"""The contract of a language model as a suite, and a model that says what it is told to say."""

from perdure.testing.llm.llm import LLMSuite
from perdure.testing.llm.scripted import Script, Scripted, scripted_llm

__all__ = ["LLMSuite", "Script", "Scripted", "scripted_llm"]
