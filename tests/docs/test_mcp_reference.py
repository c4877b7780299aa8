"""The reference of the MCP server says what its tools say of themselves."""

from tests.docs.mcp_tables import tables, written


def test_the_tables_are_those_of_the_code() -> None:
    assert written() == tables(), "Fix: run `python -m tests.docs.mcp_tables`"
