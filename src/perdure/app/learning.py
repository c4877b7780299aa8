"""Who learns from sessions: rules, or the language model that the owner switched on for it."""

from typing import TYPE_CHECKING

from perdure.config import LanguageModelSettings
from perdure.engine.extract.rules.extractors import extractors
from perdure.engine.merge.comparing import compare
from perdure.engine.saving.saving import Learning
from perdure.model import RequestContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from perdure.app.llm import LanguageModel
    from perdure.engine.llm.contract import LLM


def learning_by_rules() -> Learning:
    """Return who learns without a model."""
    return Learning(extractors(), compare)


def learning_for(
    settings: LanguageModelSettings,
    language_model: "Callable[[], LanguageModel | None]",
    ctx: RequestContext,
) -> Learning:
    """Return who learns from a session; a model is asked only for what it was switched on for."""
    learning = learning_by_rules()
    if not (settings.extract or settings.merge):
        return learning
    from perdure.engine.extract.asked import extractors as asked
    from perdure.engine.merge.asking import AskingJudge

    model = language_model()
    if model is None:
        return learning
    return Learning(
        asked.extractors(_asked(model, ctx, "extract"))
        if settings.extract
        else learning.extractors,
        AskingJudge(_asked(model, ctx, "merge")) if settings.merge else learning.judge,
    )


def _asked(model: "LanguageModel", ctx: RequestContext, purpose: str) -> "LLM":
    from perdure.engine.llm.contract import Occasion

    return model.on(Occasion(ctx.account_id, f"user:{ctx.user_id}", ctx.session_id, purpose))
