"""Every extractor that ships passes the whole contract."""

from perdure.engine.learn.extractors import (
    CandidateExtractor,
    EntityEventExtractor,
    PreferenceExtractor,
    ProcedureExtractor,
    ProfileExtractor,
)
from tests.support.extract import DATES, ExtractorSuite


class TestProfile(ExtractorSuite):
    promises = frozenset()
    telling = "I live in Porto."
    asking = "Do I live in Porto?"
    denying = "I don't live in Porto any more."
    unsure = "I think I live in Porto."

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        return ProfileExtractor()


class TestPreference(ExtractorSuite):
    promises = frozenset()
    telling = "I prefer tabs over spaces."
    asking = "Do I prefer tabs over spaces?"
    denying = "I don't like tabs."
    unsure = "I think I prefer tabs over spaces."

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        return PreferenceExtractor()


class TestEntityEvent(ExtractorSuite):
    promises = frozenset({DATES})
    telling = "I sold my boat yesterday."
    asking = "Who sold my boat yesterday?"
    denying = "I didn't sell my boat yesterday."
    unsure = "I think I sold my boat yesterday."

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        return EntityEventExtractor()


class TestProcedure(ExtractorSuite):
    promises = frozenset()
    telling = "To deploy the site, run `make ship`."
    asking = "To deploy the site, should I run `make ship`?"
    denying = "Running `make ship` does not deploy the site."
    unsure = "I think that to deploy the site, you can run `make ship`."

    @staticmethod
    def open_extractor() -> CandidateExtractor:
        return ProcedureExtractor()
