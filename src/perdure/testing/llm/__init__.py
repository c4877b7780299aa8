"""The contract of a language model as a suite, and a model that says what it is told to say."""

from perdure.testing.llm.llm_suite import LLMSuite
from perdure.testing.llm.scripted import Script, ScriptedCompleter, scripted_llm

__all__ = ["LLMSuite", "Script", "ScriptedCompleter", "scripted_llm"]
