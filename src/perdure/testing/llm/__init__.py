"""The contract of a language model as a suite, and a model that plays a script."""

from perdure.testing.llm.llm_suite import LLMSuite
from perdure.testing.llm.scripted import Script, ScriptedCompleter, scripted_llm

__all__ = ["LLMSuite", "Script", "ScriptedCompleter", "scripted_llm"]
