import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless `-m net_recall` asks for it."""
    if "net_recall" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("net_recall")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
